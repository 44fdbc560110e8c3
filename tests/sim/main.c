/* The simulator; see program.h for its arguments. */
#include "program.h"
#include "world.h"

int main(int argc, char **argv)
{
    return sim_program(&sim_subject_one_store, argc, argv);
}
