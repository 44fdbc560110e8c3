/* The two programs of a kind of simulated world: one that runs seeds, and one that shows that it finds bugs. */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include "batch.h"

/*
 *     PROGRAM                              as a test: prints TAP; SNECK_TEST_SCALE=1 runs all seeds
 *     PROGRAM --seeds N --from S -j 2      a batch
 *     PROGRAM --seed S [--trace]           one seed again
 */
int sim_program(const sim_subject *subject, int argc, char **argv);

typedef struct sim_bug_entry {
    int number;
    const char *rule; /* of docs/design.md that it takes out, or the invariant that it breaks */
    const char *text;
} sim_bug_entry;

/*
 *     PROGRAM-bugs             as a test: prints TAP, a line a bug
 *     PROGRAM-bugs NUMBER      one bug, with the command that replays it
 *     PROGRAM-bugs NUMBER SEED one bug, one seed, with its trace
 *
 * `bug` is the variable behind which the deliberate bugs are.
 */
int sim_bug_program(const sim_subject *subject, int *bug, const sim_bug_entry bugs[], size_t count, int argc,
                    char **argv);

#endif
