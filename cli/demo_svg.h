/* The picture of a demo: for each round the sellers as lanes over time, and what came of it. */
#ifndef SNK_CLI_DEMO_SVG_H
#define SNK_CLI_DEMO_SVG_H

#include "demo_shop.h"

/* Writes the picture of `SNK_DEMO_ROUNDS` rounds to the file `path`. False, with errno set, when that fails. */
bool snk_demo_svg_write(const char *path, const snk_demo_rule rules[], const snk_demo_board boards[],
                        const snk_demo_score scores[]);

#endif
