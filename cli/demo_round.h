/* One round of `sneck demo`, from the parent's side: starts the sellers, watches, thaws the frozen, ends in time. */
#ifndef SNK_CLI_DEMO_ROUND_H
#define SNK_CLI_DEMO_ROUND_H

#include "demo_shop.h"

/* Called every now and then while a round is played, with the score so far. */
typedef void (*snk_demo_watch_fn)(void *context, const snk_demo_score *score, int frozen_seller);

typedef enum snk_demo_ending {
    SNK_DEMO_PLAYED,
    SNK_DEMO_FAILED,     /* it could not be played; it printed why */
    SNK_DEMO_INTERRUPTED /* by a signal, see snk_demo_signal */
} snk_demo_ending;

/*
 * Plays a round on `board`, at most until `limit_ns` and a little. No client may be open in this process: the sellers
 * are forked from it.
 */
snk_demo_ending snk_demo_round_play(const snk_demo_shop *shop, const snk_demo_rule *rule, snk_demo_board *board,
                                    int64_t limit_ns, snk_demo_watch_fn watch, void *context);

/* From now on SIGINT, SIGTERM and SIGHUP end a round early instead of the process. */
void snk_demo_catch_signals(void);

/* The signal that came, or 0. */
int snk_demo_signal(void);

#endif
