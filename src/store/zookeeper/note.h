/*
 * What a node in a queue says about its claim: lines of key=value, with the claim and its owner first. `held` is since
 * when the claim has the lock (wall clock, ms); 0: it waits, or was not heard of since it was let in.
 */
#ifndef SNK_STORE_ZOOKEEPER_NOTE_H
#define SNK_STORE_ZOOKEEPER_NOTE_H

#include "base/limits.h"
#include "store/store.h"

#define SNK_ZK_NOTE_SIZE 1024

typedef struct snk_zk_note {
    snk_id claim;
    char owner[SNK_OWNER_LENGTH_MAX + 1];
    char host[SNK_HOST_LENGTH_MAX + 1];
    char why[SNK_WHY_LENGTH_MAX + 1];
    int64_t pid;
    int64_t lease_ms;
    int64_t held_ms;
    uint64_t token; /* of a reader, or 0 */
    uint32_t units;
    bool fair;
} snk_zk_note;

void snk_zk_note_write(const snk_zk_note *note, char text[SNK_ZK_NOTE_SIZE]);
/* Takes what it understands; a node of another program is one without a claim. */
void snk_zk_note_read(const char *text, snk_zk_note *note_out);

#endif
