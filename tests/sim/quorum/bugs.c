/* Shows that the simulator of a quorum finds bugs: each deliberate one must be caught. */
#include "bug_switch.h"

#include "program.h"
#include "world.h"

int sim_bug = 0;

static const sim_bug_entry bugs[] = {
    { 1, "S1", "the deadline lies after the lease" },
    { 3, "S1", "validity counts from the answer and not from the sending" },
    { 24, "S2", "a renewal counts from when its answer came" },
    { 110, "S6", "the token comes from one node" },
    { 111, "S9", "a node that was restarted counts at once" },
    { 112, "S6", "votes for different tokens are counted together" },
    { 114, "S4", "the votes of silent nodes are not taken back" },
    { 115, "S4", "what is taken back unanswered is not buried" },
    { 116, "I2", "half of the nodes are a majority" },
    { 117, "I2", "less than a majority renews" },
    { 118, "S6", "node: votes for a token that is not above its last" },
    { 119, "S6", "node: votes for a token that is not above its clock" },
    { 121, "S9", "node: one that was emptied votes at once" },
    { 122, "S4", "a vote that came behind its own release stays" },
    { 123, "S4", "a release that a node answered with an error is not repeated" },
};

int main(int argc, char **argv)
{
    return sim_bug_program(&qs_subject, &sim_bug, bugs, sizeof bugs / sizeof bugs[0], argc, argv);
}
