/* What the watchdog is told between its rounds. */
#ifndef SNK_CLIENT_LETTER_H
#define SNK_CLIENT_LETTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "client/entry.h"
#include "engine/claim.h"
#include "sneck.h"

typedef enum snk_letter_kind {
    SNK_LETTER_OWNER_ENDED,   /* owner */
    SNK_LETTER_LOST,          /* a hold of that owner, to be acquired again */
    SNK_LETTER_INQUIRY,       /* a hold was lost in the store: perhaps it was broken by force */
    SNK_LETTER_RECOVERY_ENDED /* status: an attempt to acquire it again */
} snk_letter_kind;

typedef struct snk_letter {
    snk_link link;
    snk_letter_kind kind;
    snk_entry *entry; /* pinned; NULL when it is about no lock */
    uint64_t owner;
    int32_t thread;       /* LOST: that owned it */
    uint64_t token;       /* INQUIRY */
    uint64_t token_first; /* INQUIRY: as the store shows it */
    uint8_t tries;        /* INQUIRY: that failed */
    snk_terms terms;
    sneck_status status;
    int64_t again_at_ns; /* OWNER_ENDED, LOST, INQUIRY: when to try (again) */
} snk_letter;

#endif
