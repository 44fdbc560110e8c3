/* Shows that the simulator of a store with a replica finds bugs. See program.h for the arguments. */
#include "bug_switch.h"

#include "program.h"
#include "world.h"

int sim_bug = 0;

static const sim_bug_entry bugs[] = {
    { 31, "S1", "the new master's answer that it does not know the claim is not loss" },
    { 55, "S5", "store: tokens are a counter, and fall when a replica takes over that has not heard of the last ones" },
    { 64, "S5", "store: the new master's clock is further behind than the failover took" },
};

int main(int argc, char **argv)
{
    return sim_bug_program(&sim_subject_replica, &sim_bug, bugs, sizeof bugs / sizeof bugs[0], argc, argv);
}
