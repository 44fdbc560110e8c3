/* One round of the watchdog: the five checks, and what follows from them. */
#ifndef SNK_CLIENT_WATCH_ROUND_H
#define SNK_CLIENT_WATCH_ROUND_H

#include "engine/watchdog.h"
#include "sneck.h"

/* What a round found, by check. */
typedef struct snk_round {
    snk_finding findings[SNECK_CHECK_COUNT];
} snk_round;

/* What a check found first, how much, and what is done about that. */
typedef struct snk_found {
    snk_finding finding;
    uint64_t count;
    snk_remedy remedy;
} snk_found;

/* A check ran: noted, logged, and shown to those who ask. Under watch.mutex. */
void snk_watch_note(sneck_client *client, sneck_check_kind kind, snk_found found);

/* Takes watch.mutex; the store may be used. `asks_all`: every hold is looked up in the store. */
snk_round snk_watch_round(sneck_client *client, bool asks_all);

#endif
