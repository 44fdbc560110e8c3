/* What users choose: an option in the struct beats the URL, the URL beats the environment, and that beats the default. */
#ifndef SNK_CLIENT_OPTIONS_H
#define SNK_CLIENT_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/url.h"
#include "engine/claim.h"
#include "sneck.h"

typedef struct snk_settings {
    int64_t lease_ms;
    int64_t watchdog_ms;
    int64_t retry_ms;
    size_t max_locks;
    sneck_log_fn log;
    void *log_context;
    sneck_log_format log_format;
    sneck_event_fn on_event;
    void *event_context;
    char prefix[SNK_PREFIX_LENGTH_MAX + 1];
} snk_settings;

/* The URL that counts: `url`, else SNECK_STORE, else the embedded store. */
const char *snk_settings_url(const char *url);

/* Everything is checked; nothing is opened. `options` may be NULL. */
sneck_status snk_settings_load(snk_settings *settings, const snk_url *url, const sneck_client_options *options,
                               sneck_error *error);

/* The options of a lock with every default filled in; `options` may be NULL. */
sneck_status snk_lock_options_load(sneck_lock_options *out, const sneck_lock_options *options,
                                   const snk_settings *settings, sneck_error *error);

/*
 * Copies an option struct of the caller's size over `to`, which has ours. One that is larger than ours is of a later
 * version: it is taken as long as it asks for nothing that we do not know. `what` names it in messages.
 */
sneck_status snk_options_copy(void *to, const void *from, size_t size, const char *what, sneck_error *error);

/* SNECK_INVALID unless it is a lease that can be had. */
sneck_status snk_lease_check(int64_t lease_ms, sneck_error *error);
/* SNECK_INVALID unless it is SNECK_FOREVER, 0 or more. */
sneck_status snk_wait_check(int64_t wait_ms, sneck_error *error);

/* How a hold with these options, which were loaded before, is to be kept. */
snk_terms snk_lock_terms(const sneck_lock_options *options);

#endif
