/*
 * The mapped file beside the database: who is alive, where waiters sleep, and in what order processes write.
 *
 * It holds no claims: those are in the database, and everything here can be lost. Each client of the file has a slot:
 *
 *   liveness  an OFD lock on the byte of the slot, which the kernel drops when the last descriptor of it is closed. It
 *             alone decides whether a client is alive. A slot is taken only with its lock.
 *   life      a robust mutex that a thread of the client keeps for life. The kernel marks its word when that thread
 *             dies, before it closes files: a hint to look at the liveness lock.
 *   words     futex words on which the client's threads sleep; a claim uses the word of its hash. Raised with each
 *             piece of news, never reset.
 *   grants    the last claims of the client that were granted a lock after they had waited: see grants.h.
 *
 * Layout, fixed by SNK_SIDECAR_VERSION: header, then slots. Byte 0 of the file is locked (OFD) while somebody opens
 * it; byte SNK_SIDECAR_LIVENESS + n is the liveness lock of slot n.
 */
#ifndef SNK_STORE_SQLITE_SIDECAR_H
#define SNK_STORE_SQLITE_SIDECAR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ids.h"
#include "store/sqlite/path.h"

#define SNK_SIDECAR_VERSION 2
#define SNK_SIDECAR_SLOTS 1024
#define SNK_SIDECAR_WORDS 16
#define SNK_SIDECAR_GRANTS 4
#define SNK_SIDECAR_LIVENESS 4096
#define SNK_SLOT_NONE 0x7FFU /* as it fits into a ticket */
#define SNK_SLOT_MANY 0x7FEU /* the same: not one, but everybody in snk_sqlite.watched */

/* A claim uses the note of its hash. */
typedef struct snk_grant_note {
    _Atomic uint64_t writes; /* odd while somebody writes */
    _Atomic uint64_t claim[2];
    _Atomic uint64_t token_first;
    _Atomic uint64_t token_last;
} snk_grant_note;

typedef struct snk_slot {
    _Atomic uint64_t client[2];   /* whose it is, or was last */
    _Atomic uint32_t incarnation; /* counts up when a client takes it, and when one has left it */
    uint32_t reserved;
    pthread_mutex_t life; /* robust, between processes */
    _Atomic uint32_t words[SNK_SIDECAR_WORDS];
    snk_grant_note grants[SNK_SIDECAR_GRANTS];
} snk_slot;

typedef struct snk_sidecar_file {
    _Atomic uint64_t magic; /* written last when the file is made */
    uint32_t version;
    uint32_t layout;     /* sizes that differ between builds that cannot share the file */
    uint64_t generation; /* random: names this file among all that were ever made at its path */
    uint64_t reserved[5];
    pthread_mutex_t writer; /* robust, between processes: writers queue here instead of on SQLite's lock */
    char padding[4096 - 64 - sizeof(pthread_mutex_t)];
    snk_slot slots[SNK_SIDECAR_SLOTS];
} snk_sidecar_file;

typedef struct snk_sidecar {
    snk_sidecar_file *file; /* mapped */
    int fd;                 /* carries our liveness lock */
    snk_file_id id;
    uint64_t generation;
    uint32_t slot;       /* ours; SNK_SLOT_NONE before snk_sidecar_take_slot */
    unsigned references; /* under the store's gate */
} snk_sidecar;

/*
 * Opens the file, making it if needed, and returns with its opening lock (byte 0) held: nobody else opens or makes the
 * file or the database until snk_sidecar_opened.
 */
sneck_status snk_sidecar_open(const snk_place *place, snk_sidecar **sidecar_out, sneck_error *error);

/* Takes the opening lock again, for a sidecar that is open; SNECK_UNAVAILABLE when somebody keeps it. */
sneck_status snk_sidecar_reopen(snk_sidecar *sidecar, const snk_place *place, sneck_error *error);
void snk_sidecar_opened(snk_sidecar *sidecar);

/* Takes a slot for this client, and with it the liveness lock. SNECK_LIMIT when all are taken. */
sneck_status snk_sidecar_take_slot(snk_sidecar *sidecar, const snk_id *client, sneck_error *error);

/* Closes and frees, and with that gives the slot up; `abandon`: in a child of fork(), whose parent still uses it. */
void snk_sidecar_close(snk_sidecar *sidecar, bool abandon);

static inline snk_slot *snk_sidecar_slot(const snk_sidecar *sidecar)
{
    return &sidecar->file->slots[sidecar->slot];
}

/* Tells all who wait, whatever for: they look, and find what they were not told. */
void snk_sidecar_tell_all(snk_sidecar *sidecar);

/* Waits for the turn to write, until `limit_ns` of CLOCK_MONOTONIC. False: not ours, SQLite's own lock must do. */
bool snk_sidecar_lock_writer(snk_sidecar *sidecar, int64_t limit_ns);
void snk_sidecar_unlock_writer(snk_sidecar *sidecar);

#endif
