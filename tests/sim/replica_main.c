/* The simulator of a store with an asynchronous replica; see program.h for its arguments. */
#include "program.h"
#include "world.h"

int main(int argc, char **argv)
{
    return sim_program(&sim_subject_replica, argc, argv);
}
