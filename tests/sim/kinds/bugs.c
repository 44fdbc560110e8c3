/* Shows that bugs of what is shared are found: each deliberate one must be caught. See program.h for the arguments. */
#include "bug_switch.h"

#include "kinds/world.h"
#include "program.h"

int sim_bug = 0;

static const sim_bug_entry bugs[] = {
    { 31, "S1", "who is told that the store has forgotten its hold believes in it" },
    { 70, "I8", "a reader comes in to a writer" },
    { 71, "I8", "a writer comes in to readers" },
    { 72, "I7", "a permit of several counts as one" },
    { 73, "I7", "a drain takes what is out as well" },
    { 74, "I8", "store: a reader passes a writer that waits" },
    { 75, "I3", "store: the renewal of one reader keeps all alive" },
    { 76, "I7", "store: a permit that comes back makes one more" },
    { 77, "I7", "store: fewer permits take some away" },
    { 78, "I9", "store: a repeated count-down counts again" },
    { 79, "I9", "store: a latch that is set is set again" },
    { 80, "I6", "store: a count that changes serves nobody" },
    { 81, "CV", "store: a signal dies with its receiver" },
    { 82, "CV", "store: a signal is kept for nobody" },
    { 83, "CV", "store: a signal that was used goes to the next one" },
    { 84, "I6", "store: one release serves only one" },
    { 85, "I8", "store: a reader stands beside any writer" },
    { 86, "I1", "store: tokens of writers and permits do not rise" },
    { 87, "I6", "store: dead ones wait on" },
    { 88, "I11", "store: the last of the queue comes first" },
    { 89, "CV", "store: a broadcast forgets one" },
    { 90, "I9", "a latch opens at 1" },
    { 150, "I1", "store: one that was emptied begins its tokens again" },
    { 151, "I6", "a reader that wants to write waits for itself" },
    { 152, "CV", "a signal is used up by one who cannot have the lock again" },
};

int main(int argc, char **argv)
{
    return sim_bug_program(&sim_subject_kinds, &sim_bug, bugs, sizeof bugs / sizeof bugs[0], argc, argv);
}
