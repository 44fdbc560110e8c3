/*
 * The Redis store: claims in keys of one server, changed by scripts; waiters are woken by messages.
 *
 * Every request is one script, sent by the thread that asks, over the connection that all threads share (redis/redis.h).
 * The store itself keeps nothing but the table of claims that wait (waiting.h), so that it knows whom a message is for.
 *
 * Locks: waiting.mutex, a leaf. Nothing is held while the server is asked or the client is told.
 */
#ifndef SNK_STORE_REDIS_REDIS_H
#define SNK_STORE_REDIS_REDIS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/list.h"
#include "redis/redis.h"
#include "store/bell.h"
#include "store/redis/keys.h"
#include "store/redis/options.h"
#include "store/waiting.h"
#include "store/store.h"

/* Wrong state that was found in the store and put right. */
typedef struct snk_repairs {
    _Atomic uint64_t ttl;   /* locks without time limit, which got one lease */
    _Atomic uint64_t owner; /* locks without owner, or with no holds left, which were free */
    _Atomic uint64_t queue; /* waiters of whom half was there */
} snk_repairs;

typedef struct snk_redis_store {
    snk_store base;

    /* Set when it is opened. */
    snk_identity identity;
    char host[SNK_HOST_LENGTH_MAX + 1]; /* of the identity, without spaces */
    char prefix[SNK_PREFIX_LENGTH_MAX + 1];
    char where[128]; /* the server, for messages */
    snk_redis_options options;
    int64_t retry_ns;
    snk_link_fn link;
    void *link_context;
    void (*log)(void *context, sneck_log_level level, const char *text);
    void *log_context;
    snk_redis *redis; /* owned */

    snk_waiting waiting;
    _Atomic bool is_heard; /* the private channel has been confirmed once */
    snk_bell bell;
    snk_repairs repairs;
} snk_redis_store;

static inline snk_redis_store *snk_redis_store_of(snk_store *store)
{
    return SNK_CONTAINER(store, snk_redis_store, base);
}

#define SNK_RELEASE_CHANNEL "lock:release:"
#define SNK_WAKE_CHANNEL "lock:wake:"
#define SNK_CHANNEL_SIZE (sizeof SNK_RELEASE_CHANNEL + SNK_NAME_LENGTH_MAX)
/* The beginning of a release message, up to the number that is its time; a name may have to be escaped. */
#define SNK_MESSAGE_SIZE (2 * SNK_NAME_LENGTH_MAX + 64)

/* claims.c */
void snk_redis_store_submit(snk_store *base, snk_call *call);

/* The public channel of a lock, and what a message on it begins with; both "" when nothing is announced. */
typedef struct snk_announcement {
    char channel[SNK_CHANNEL_SIZE];
    char message[SNK_MESSAGE_SIZE];
} snk_announcement;
void snk_announcement_make(const snk_redis_store *store, const char *name, snk_announcement *announcement);

/* wake.c */

/* What the connection tells the store. */
snk_redis_listener snk_wake_listener(snk_redis_store *store);
bool snk_redis_store_wait(snk_store *base, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected,
                          int64_t until_ns);
bool snk_redis_store_rouse(snk_store *base, const _Atomic uint32_t *word);

typedef enum snk_wake_hearing {
    SNK_WAKE_HEARS,  /* it has been listening since before the claim waited */
    SNK_WAKE_MISSED, /* it listens since just now: ask once more */
    SNK_WAKE_DEAF    /* not yet: look often */
} snk_wake_hearing;

/* The claim waits now: from now on messages about it must be heard. `may_wait`: it may take a moment. */
snk_wake_hearing snk_wake_listen(snk_redis_store *store, const snk_id *claim, bool holder_is_foreign, bool may_wait);
/* It does no more. */
void snk_wake_forget(snk_redis_store *store, const snk_id *claim);

/* watch.c: what the watchdog asks */
void snk_redis_store_check(snk_store *base, snk_call *call);
sneck_status snk_redis_store_probe(snk_store *base, int64_t timeout_ns, snk_probe *probe_out, sneck_error *error);
void snk_redis_store_describe(snk_store *base, snk_store_state *state_out);
void snk_redis_store_reconnect(snk_store *base);

/* look.c */
sneck_status snk_redis_store_inspect(snk_store *base, const char *name, snk_view *view, sneck_error *error);
sneck_status snk_redis_store_list(snk_store *base, const char *pattern, snk_view_fn callback, void *context,
                                  sneck_error *error);
sneck_status snk_redis_store_break(snk_store *base, const char *name, uint64_t token, const char *reason,
                                   sneck_error *error);

#endif
