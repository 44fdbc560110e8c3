/* The table of locks behind one or more views: what claims.c and look.c work on, and memory.c serves. */
#ifndef SNK_STORE_MEMORY_TABLE_H
#define SNK_STORE_MEMORY_TABLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/limits.h"
#include "base/list.h"
#include "store/store.h"
#include "store/tokens.h"
#include "store/view.h"

#define SNK_MEMORY_BUCKETS 1024
#define SNK_MEMORY_WORDS 64
#define SNK_FULL_NAME_SIZE (SNK_PREFIX_LENGTH_MAX + SNK_NAME_LENGTH_MAX + 1)

/* A claim that holds or waits. */
typedef struct snk_memory_claim {
    snk_id id;
    int64_t lease_ns;
    int64_t since_ns;
    int64_t expires_at_ns;
    uint32_t tokens_asked;
    snk_token_block tokens; /* while it holds */
    bool fair;
    int64_t pid;
    char owner[SNK_OWNER_LENGTH_MAX + 1];
    char host[SNK_HOST_LENGTH_MAX + 1];
    char why[SNK_WHY_LENGTH_MAX + 1];
} snk_memory_claim;

typedef struct snk_memory_incident {
    int64_t time_ms;
    const char *kind; /* static text */
    uint64_t token;
    char owner[SNK_OWNER_LENGTH_MAX + 1];
    char text[SNK_WHY_LENGTH_MAX + 80];
} snk_memory_incident;

/* Never freed before the table: its token counter must not be forgotten. */
typedef struct snk_memory_lock {
    struct snk_memory_lock *next; /* in its bucket */
    uint64_t token;               /* highest given out */
    bool held;
    snk_memory_claim holder; /* while held */
    snk_memory_claim *queue; /* owned; first come first */
    size_t waiters;          /* in `queue` */
    size_t room;             /* in `queue` */
    uint64_t incidents_seen;
    snk_memory_incident incidents[SNK_INCIDENTS_MAX]; /* a ring: number n is at n % SNK_INCIDENTS_MAX */
    char name[];                                      /* with prefix */
} snk_memory_lock;

typedef struct snk_memory_tombstone {
    snk_id claim;
    int64_t expires_at_ns;
} snk_memory_tombstone;

typedef struct snk_memory_table {
    pthread_mutex_t mutex; /* guards all but the words; nothing else is locked under it */
    size_t views;
    snk_memory_lock *buckets[SNK_MEMORY_BUCKETS];
    snk_memory_tombstone *tombstones; /* owned */
    size_t tombstone_count;
    size_t tombstone_room;
    _Atomic uint32_t words[SNK_MEMORY_WORDS]; /* a claim's word goes up when there is news about it */
    _Atomic uint32_t any;                     /* goes up with each of them */
} snk_memory_table;

typedef struct snk_memory {
    snk_store base;
    snk_memory_table *table; /* shared; see views */
    snk_identity identity;
    _Atomic uint32_t any_seen; /* the value of table.any that the last wait for any claim has reported */
    char prefix[SNK_PREFIX_LENGTH_MAX + 1];
} snk_memory;

/* The lock of that full name; made if `create`. NULL: none, or out of memory. */
snk_memory_lock *snk_memory_find_locked(snk_memory_table *table, const char *full_name, bool create);

/* Ends the hold if its lease is over, and hands a free lock to the first live claim of the queue. */
void snk_memory_settle_locked(snk_memory_table *table, snk_memory_lock *lock, int64_t now_ns);

void snk_memory_incident_locked(snk_memory_lock *lock, const char *kind, const char *text);

/* Does one request. */
void snk_memory_do_locked(snk_memory *memory, const snk_claim *claim, snk_answer *answer);

/* The word, and what its value makes a ticket. */
size_t snk_memory_word_of(const snk_id *claim);

sneck_status snk_memory_inspect(snk_store *store, const char *name, snk_view *view, sneck_error *error);
sneck_status snk_memory_list(snk_store *store, const char *pattern, snk_view_fn callback, void *context,
                             sneck_error *error);
sneck_status snk_memory_break(snk_store *store, const char *name, uint64_t token, const char *reason,
                              sneck_error *error);

#endif
