/*
 * The line that tells who has the lock while we wait for it: on a terminal rewritten each second, with --json an event
 * each time something has changed, else with -v once.
 */
#ifndef SNK_CLI_WAITLINE_H
#define SNK_CLI_WAITLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "sneck.h"

typedef struct snk_waitline {
    const snk_cli *cli;
    sneck_client *client; /* borrowed */
    int64_t began_at_ns;
    int64_t give_up_at_ns; /* SNK_NEVER_NS: no limit */
    int64_t next_at_ns;    /* when to look (again); SNK_NEVER_NS: not at all */
    bool on_terminal;
    bool shown;          /* a line stands on the terminal */
    uint64_t last_token; /* what the last event told */
    size_t last_place;
} snk_waitline;

void snk_waitline_init(snk_waitline *line, const snk_cli *cli, sneck_client *client, int64_t give_up_at_ns);

/* Shows how things stand with `name`, if it is time to; it asks the store. */
void snk_waitline_step(snk_waitline *line, const char *name);

/* Wipes the line off the terminal. */
void snk_waitline_clear(snk_waitline *line);

#define SNK_HOLDER_TEXT_SIZE 384

/* Who holds a lock, for people: `host:pid ("why") for 3m12s`, not escaped yet. Returns `text`. */
const char *snk_waitline_holder(char text[SNK_HOLDER_TEXT_SIZE], const sneck_party *holder);

#endif
