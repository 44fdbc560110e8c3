/*
 * A store's URL in pieces: scheme ":" ["//" [user [":" password] "@"] host-list] [path] ["?" key=value {"&" key=value}].
 * Percent-decoded. `sqlite:` and `memory:` have no host part; `sqlite:///absolute/file` has a path.
 */
#ifndef SNK_BASE_URL_H
#define SNK_BASE_URL_H

#include <stddef.h>

#include "sneck.h"

#define SNK_URL_HOSTS_MAX 32
#define SNK_URL_KEYS_MAX 32

typedef struct snk_url_host {
    const char *name; /* without the brackets of IPv6; may be "" */
    int port;         /* 0 when not given */
} snk_url_host;

typedef struct snk_url_key {
    const char *key;
    const char *value;
} snk_url_key;

typedef struct snk_url {
    char *memory; /* owned; the texts below point into it */
    const char *scheme;
    const char *user;     /* "" when not given */
    const char *password; /* "" when not given; never print it */
    snk_url_host hosts[SNK_URL_HOSTS_MAX];
    size_t host_count;
    const char *path; /* with its leading '/'; "" when not given */
    snk_url_key keys[SNK_URL_KEYS_MAX];
    size_t key_count;
} snk_url;

/* SNECK_INVALID with a message that says what is wrong and never contains a password. */
sneck_status snk_url_parse(snk_url *url, const char *text, sneck_error *error);
void snk_url_deinit(snk_url *url);

/* The value of a query key, or NULL. */
const char *snk_url_value(const snk_url *url, const char *key);

/*
 * SNECK_INVALID when a key is none of `known` (ends with NULL), naming the nearest known one, or when one occurs twice.
 */
sneck_status snk_url_check_keys(const snk_url *url, const char *const known[], sneck_error *error);

#endif
