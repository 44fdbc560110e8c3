/* What the URL of a MariaDB store says. */
#ifndef SNK_STORE_MYSQL_OPTIONS_H
#define SNK_STORE_MYSQL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/url.h"
#include "store/settings.h"

typedef struct snk_my_host {
    char name[256]; /* a path: a unix socket; "": the socket that the library knows */
    unsigned port;
} snk_my_host;

typedef struct snk_my_options {
    snk_my_host hosts[SNK_URL_HOSTS_MAX];
    size_t host_count;
    char user[128];
    char password[SNK_PASSWORD_SIZE]; /* cleared when the store is closed */
    char database[128];
    char ca[512]; /* "": none, and so for the next two */
    char certificate[512];
    char key[512];
    bool locks_rows; /* mode=row */
    bool wants_tls;  /* ca=, cert= or verify= was given */
    bool verifies;   /* the server's certificate, by `ca` or else by what the system trusts */
    int64_t timeout_ns;
    unsigned connections;
    char where[128]; /* the server, for messages */
} snk_my_options;

/* The query keys of MariaDB, beside those of every store; ends with NULL. */
extern const char *const snk_my_keys[];

/* SNECK_INVALID, or SNECK_DENIED when the password file cannot be read. No network I/O. */
sneck_status snk_my_options_load(snk_my_options *options, const snk_url *url, sneck_error *error);

#endif
