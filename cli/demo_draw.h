/* What `sneck demo` shows on a terminal or in a pipe: a bar a round while it is played, and the table at the end. */
#ifndef SNK_CLI_DEMO_DRAW_H
#define SNK_CLI_DEMO_DRAW_H

#include "demo_shop.h"

/* What standard output can show. */
typedef struct snk_demo_screen {
    bool live; /* lines can be drawn again */
    bool color;
    bool utf8;
    int bar_width;
} snk_demo_screen;

snk_demo_screen snk_demo_screen_look(void);

void snk_demo_draw_title(const snk_demo_screen *screen);

/* Draws the bar of round `number` (from 1), over the one drawn before. `frozen_seller` is -1 when none is. */
void snk_demo_draw_bar(const snk_demo_screen *screen, int number, const snk_demo_rule *rule,
                       const snk_demo_score *score, int frozen_seller);

/* The same for the last time: the line stays. */
void snk_demo_draw_result(const snk_demo_screen *screen, int number, const snk_demo_rule *rule,
                          const snk_demo_score *score);

void snk_demo_draw_table(const snk_demo_screen *screen, const snk_demo_rule rules[], const snk_demo_score scores[],
                         size_t count);

#endif
