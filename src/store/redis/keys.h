/*
 * The keys of one lock. `<key>` is prefix and name. Its helpers are `<key>:<helper>` when `<key>` has a hash tag, else
 * `{<key>}:<helper>`, so that in a cluster all of them are in one slot, whatever the name. A latch or a condition of that name
 * has keys of its own, which begin with `{<key>}:latch` or `{<key>}:condition` in place of `<key>`.
 *
 * The scripts have some more keys, which only what is not held alone has: `holders`, `holders:info`, `count`; and
 * `version`. They make them of the others, so that a request for a mutex need not name them.
 */
#ifndef SNK_STORE_REDIS_KEYS_H
#define SNK_STORE_REDIS_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"
#include "sneck.h"
#include "store/grip.h"

typedef enum snk_key {
    SNK_KEY_LOCK,
    SNK_KEY_TOKEN,       /* the highest token so far */
    SNK_KEY_GONE,        /* claims that were given up unanswered, by the time when they may be forgotten */
    SNK_KEY_LOG,         /* what happened */
    SNK_KEY_QUEUE,       /* waiting claims by the order in which they came */
    SNK_KEY_QUEUE_INFO,  /* what is to be known about each */
    SNK_KEY_QUEUE_UNTIL, /* until when each one counts */
    SNK_KEYS
} snk_key;

#define SNK_KEY_SIZE (SNK_PREFIX_LENGTH_MAX + SNK_NAME_LENGTH_MAX + 32)

typedef struct snk_keys {
    size_t length[SNK_KEYS];
    char text[SNK_KEYS][SNK_KEY_SIZE];
} snk_keys;

/* SNECK_INVALID when prefix and name have braces that are no hash tag: the helpers could not share the lock's slot. */
sneck_status snk_keys_make(snk_keys *keys, const char *prefix, const char *name, sneck_error *error);
/* The same for what may be something else than a lock. */
sneck_status snk_keys_make_for(snk_keys *keys, snk_object object, const char *prefix, const char *name,
                               sneck_error *error);

/*
 * The name of the lock that a key found in the store belongs to, copied: false when it is neither a lock with that
 * prefix nor the queue of one.
 */
bool snk_keys_name_of(const char *key, size_t length, const char *prefix, char name[SNK_NAME_LENGTH_MAX + 1]);

#endif
