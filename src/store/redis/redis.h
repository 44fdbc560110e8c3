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
#include "redis/topology.h"
#include "store/bell.h"
#include "store/redis/keys.h"
#include "store/redis/options.h"
#include "store/redis/recent.h"
#include "store/store.h"
#include "store/waiting.h"

_Static_assert(SNK_WAITING_PARTS == SNK_REDIS_SLOTS, "each slot is a part of the store");

/* Wrong state that was found in the store and put right. */
typedef struct snk_repairs {
    _Atomic uint64_t ttl;    /* locks without time limit, which got one lease */
    _Atomic uint64_t owner;  /* locks without owner, or with no holds left, which were free */
    _Atomic uint64_t queue;  /* waiters of whom half was there */
    _Atomic uint64_t ghosts; /* claims that came back after they had been given up, and were ended again */
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
    snk_topology *topology; /* owned */
    uint32_t *slot_tags;    /* owned; for each slot a number that is in it. NULL unless this is a cluster */

    bool tracks; /* the store may forget what was written last: claims are kept track of while they hold, too */
    snk_waiting waiting;
    snk_recent recent;
    _Atomic uint8_t is_heard[SNK_REDIS_SLOTS / 8]; /* the private channel of the slot has been confirmed once */
    snk_bell bell;
    snk_repairs repairs;
} snk_redis_store;

static inline snk_redis_store *snk_redis_store_of(snk_store *store)
{
    return SNK_CONTAINER(store, snk_redis_store, base);
}

#define SNK_RELEASE_CHANNEL "lock:release:"
#define SNK_WAKE_CHANNEL "lock:wake:"
#define SNK_CHANNEL_SIZE (sizeof SNK_RELEASE_CHANNEL + SNK_KEY_SIZE + 2)
/* The beginning of a release message, up to the number that is its time; a name may have to be escaped. */
#define SNK_MESSAGE_SIZE (2 * SNK_NAME_LENGTH_MAX + 64)

/* claims.c */
void snk_redis_store_submit(snk_store *base, snk_call *call);

/* The public channel of a lock, and what a message on it begins with; both "" when nothing is announced. */
typedef struct snk_announcement {
    const char *command;
    char channel[SNK_CHANNEL_SIZE];
    char message[SNK_MESSAGE_SIZE];
} snk_announcement;
void snk_announcement_make(const snk_redis_store *store, const char *name, const snk_keys *keys,
                           snk_announcement *announcement);

/* channel.c: names of channels */

/* The slot of a lock; 0 unless this is a cluster. */
uint16_t snk_channel_slot(const snk_redis_store *store, const snk_keys *keys);
/* What the name of a channel ends with so that it is in the slot; "" unless this is a cluster. */
#define SNK_SHARD_SIZE 16
void snk_channel_shard(const snk_redis_store *store, uint16_t slot, char shard[SNK_SHARD_SIZE]);
/* The private channel of this client for locks in that slot. */
void snk_channel_private(const snk_redis_store *store, uint16_t slot, char channel[SNK_CHANNEL_SIZE]);
/* The public channel of a lock; true when it is for SPUBLISH and SSUBSCRIBE. */
bool snk_channel_public(const snk_redis_store *store, const char *name, const snk_keys *keys,
                        char channel[SNK_CHANNEL_SIZE]);
/* The name of the lock whose public channel this is; false when it is none. */
bool snk_channel_name(const snk_redis_store *store, const char *channel, size_t length,
                      char name[SNK_NAME_LENGTH_MAX + 1]);

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
snk_wake_hearing snk_wake_listen(snk_redis_store *store, const snk_id *claim, uint16_t slot, bool holder_is_foreign,
                                 bool may_wait);
/* It does no more: it holds the lock now, or is over. */
void snk_wake_hold(snk_redis_store *store, const snk_id *claim);
void snk_wake_forget(snk_redis_store *store, const snk_id *claim);

/* ghosts.c: ends claims of ours on one lock that came back, without waiting for it. */
void snk_ghosts_seek_on(snk_redis_store *store, const char *name);
/* The same for all locks of these slots; as snk_topology_config.displaced, with the store as context. */
void snk_ghosts_seek(void *context, const uint8_t slots[]);

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
