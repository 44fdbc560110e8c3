/* One round of the watchdog: the five checks, and what follows from them. */
#ifndef SNK_CLIENT_WATCH_ROUND_H
#define SNK_CLIENT_WATCH_ROUND_H

#include "engine/watchdog.h"
#include "sneck.h"

/* What a round found, by check. */
typedef struct snk_round {
    snk_finding findings[SNECK_CHECK_COUNT];
} snk_round;

/* Takes watch.mutex; the store may be used. `asks_all`: every hold is looked up in the store. */
snk_round snk_watch_round(sneck_client *client, bool asks_all);

#endif
