/* The table of things behind one or more views: what the files of this folder work on, and memory.c serves. */
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
#define SNK_FULL_NAME_SIZE (1 + SNK_PREFIX_LENGTH_MAX + SNK_NAME_LENGTH_MAX + 1)

/* A claim that holds or waits. */
typedef struct snk_memory_claim {
    snk_id id;
    int64_t lease_ns;
    int64_t since_ns;
    int64_t expires_at_ns;
    uint32_t tokens_asked;
    snk_token_block tokens; /* while it holds */
    snk_grip grip;
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

/* Claims in the order they came. */
typedef struct snk_memory_claims {
    snk_memory_claim *at; /* owned */
    size_t count;
    size_t room;
} snk_memory_claims;

/* Never freed before the table: its token counter must not be forgotten. */
typedef struct snk_memory_lock {
    struct snk_memory_lock *next; /* in its bucket */
    snk_object object;
    uint64_t token; /* highest given out */
    uint64_t version;
    int64_t count; /* see snk_tally; -1: never set */
    snk_memory_claims holders;
    snk_memory_claims queue;
    uint64_t incidents_seen;
    snk_memory_incident incidents[SNK_INCIDENTS_MAX]; /* a ring: number n is at n % SNK_INCIDENTS_MAX */
    char name[];                                      /* as snk_memory_name makes it */
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

/* table.c */

/* The full name of a thing: with prefix, and for what is no lock with a byte before it that no name has. */
void snk_memory_name(const snk_memory *memory, snk_object object, const char *name, char full_name[SNK_FULL_NAME_SIZE]);

/* The thing of that full name; made if `create`. NULL: none, or out of memory. */
snk_memory_lock *snk_memory_find_locked(snk_memory_table *table, const char *full_name, bool create);

/* Its index, or the count when it is not there. */
size_t snk_memory_index(const snk_memory_claims *claims, const snk_id *id);
void snk_memory_remove(snk_memory_claims *claims, size_t index);
/* False when out of memory. */
bool snk_memory_append(snk_memory_claims *claims, const snk_memory_claim *claim);

/* Whether the id is in a tombstone; forgets those whose time is over. */
bool snk_memory_is_buried_locked(snk_memory_table *table, const snk_id *id, int64_t now_ns);
/* False when out of memory. */
bool snk_memory_bury_locked(snk_memory_table *table, const snk_id *id, int64_t until_ns);

void snk_memory_incident_locked(snk_memory_lock *lock, const snk_memory_claim *holder, const char *kind,
                                const char *text);

/* grants.c */

/* Whether a claim that comes now gets what it wants at once. */
bool snk_memory_is_free_locked(const snk_memory_lock *lock, const snk_grip *grip);
/* Makes it a holder, for `life_ns`. NULL: out of memory, and nothing is changed. */
const snk_memory_claim *snk_memory_grant_locked(snk_memory_lock *lock, const snk_memory_claim *claim, int64_t now_ns,
                                                int64_t life_ns);
/* Ends a hold; `unused`: what a TAKE took goes back. */
void snk_memory_end_locked(snk_memory_lock *lock, size_t index, bool unused);
/* Ends what is past its lease, and grants to the queue whatever can be granted. */
void snk_memory_settle_locked(snk_memory_table *table, snk_memory_lock *lock, int64_t now_ns);

/* Units of the permits that are out. */
int64_t snk_memory_used_locked(const snk_memory_lock *lock);

/* claims.c */

/* Does one request. */
void snk_memory_do_locked(snk_memory *memory, const snk_claim *claim, snk_answer *answer);

/* counts.c */
sneck_status snk_memory_tally(snk_store *store, const snk_tally *tally, snk_tallied *tallied_out, sneck_error *error);
sneck_status snk_memory_version(snk_store *store, const char *name, const uint64_t *expected, uint64_t *version_out,
                                sneck_error *error);

/* The word of a claim: which one, and news for whoever sleeps on it. */
size_t snk_memory_word_of(const snk_id *claim);
void snk_memory_tell(snk_memory_table *table, const snk_id *claim);

sneck_status snk_memory_inspect(snk_store *store, const char *name, snk_view *view, sneck_error *error);
sneck_status snk_memory_list(snk_store *store, const char *pattern, snk_view_fn callback, void *context,
                             sneck_error *error);
sneck_status snk_memory_break(snk_store *store, const char *name, uint64_t token, const char *reason,
                              sneck_error *error);

#endif
