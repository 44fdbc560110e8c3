/* Shows that the simulator finds bugs: each deliberate one must be caught. See program.h for the arguments. */
#include "bug_switch.h"

#include "program.h"
#include "world.h"

int sim_bug = 0;

static const sim_bug_entry bugs[] = {
    { 1, "S1", "the deadline lies after the lease" },
    { 2, "S1", "an answer that comes after the deadline revives the hold" },
    { 3, "S1", "a lease counts from when its answer came" },
    { 4, "S1", "a failed renewal is loss" },
    { 5, "I3", "release by a stranger" },
    { 6, "S4", "an acquire that was not answered leaves again with its id" },
    { 7, "S4", "what is given up is not chased" },
    { 8, "S4", "a chase leaves no tombstone" },
    { 9, "I1", "a hand-off keeps the token" },
    { 11, "I6", "news during a request are forgotten" },
    { 12, "I6", "a hold kept for hand-off outlives its heirs" },
    { 13, "S1", "a grant that comes after its deadline is taken" },
    { 14, "I5", "a waiter that gives up stays in the queue" },
    { 16, "I10", "a 256th level" },
    { 17, "S3", "acquire ignores levels of a lost hold" },
    { 20, "S3", "one release pays for all levels of a lost hold" },
    { 21, "I6", "loss wakes nobody" },
    { 22, "I6", "the answer to a release wakes nobody" },
    { 23, "S2", "an extend counts before it is answered" },
    { 24, "S2", "a renewal counts from when its answer came" },
    { 25, "I1", "hand-off beyond the block of tokens" },
    { 26, "I15", "granted after close" },
    { 27, "I5", "a stale grant displaces a newer hold" },
    { 28, "I6", "a waiter without an id does not pass its turn on" },
    { 29, "I16", "silence of the store shown as a timeout" },
    { 30, "I16", "unknown shown as a timeout" },
    { 31, "S1", "a clear answer is not loss" },
    { 32, "I14", "a message alone is loss" },
    { 33, "S1", "a lost claim is released while its lease may last" },
    { 34, "I6", "a waiter that leaves takes its wake-up along" },
    { 35, "I16", "unknown shown as denied" },
    { 36, "S1", "an offer counts from when its message came" },
    { 37, "I14", "a grant of another run of the server is believed" },
    { 38, "S1", "a grant is believed however old it may be" },
    { 39, "S1", "a \"queued\" that the grant overtook is taken for loss" },
    { 40, "I6", "a hold that began with an offer is not confirmed" },
    { 41, "I14", "a grant to another claim is believed" },
    { 42, "I14", "a grant to another claim of this client ends its hold" },
    { 43, "S2", "an offer counts for a full lease" },
    { 44, "S1", "an offer counts from a request that was not answered" },
    { 90, "S3", "what was acquired again is the owner's at once" },
    { 91, "I6", "what was acquired again, and nobody comes for, is kept for ever" },
    { 92, "I5", "what the watchdog ends stays in the store" },
    { 93, "S1", "a look of the watchdog that fails is loss" },
    { 94, "S3", "what was acquired again goes to anybody" },
    { 95, "S1", "a hold that is given up is released while its lease may last" },
    { 96, "I4", "a loss that only the release finds is not told" },
    { 50, "I3", "store: release frees whatever is held" },
    { 51, "S2", "store: renew shortens" },
    { 52, "S4", "store: renew registers unknown claims" },
    { 53, "S4", "store: no tombstone" },
    { 54, "S4", "store: tombstones end early" },
    { 55, "I1", "store: tokens are a counter that can be lost" },
    { 56, "I1", "store: the next block begins inside the last one" },
    { 57, "I6", "store: dead waiters stay" },
    { 58, "I11", "store: the last of the queue comes first" },
    { 59, "I6", "store: an offer never lapses" },
    { 60, "I6", "store: leases end much too late" },
    { 61, "I2", "store: leases end too early" },
    { 62, "S2", "store: renew says held and prolongs nothing" },
    { 63, "I5", "store: release of a queued claim does nothing" },
};

int main(int argc, char **argv)
{
    return sim_bug_program(&sim_subject_one_store, &sim_bug, bugs, sizeof bugs / sizeof bugs[0], argc, argv);
}
