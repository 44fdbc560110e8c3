/* What the URL of a quorum says. */
#ifndef SNK_STORE_QUORUM_OPTIONS_H
#define SNK_STORE_QUORUM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/settings.h"

typedef struct snk_quorum_options {
    bool announce;
    bool history;
    bool count_holds;   /* holds=store */
    int64_t timeout_ns; /* of one node */
    int64_t lease_max_ms;
    int database;
    char password[SNK_PASSWORD_SIZE]; /* never printed */
} snk_quorum_options;

/* The query keys, beside those of every store; ends with NULL. */
extern const char *const snk_quorum_keys[];

/* SNECK_INVALID, SNECK_UNSUPPORTED, or SNECK_DENIED when the password file cannot be read. No network I/O. */
sneck_status snk_quorum_options_load(snk_quorum_options *options, const snk_url *url, sneck_error *error);

#endif
