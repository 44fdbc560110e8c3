/* Runs simulated worlds in which clients share. See program.h for the arguments. */
#include "kinds/world.h"
#include "program.h"

int main(int argc, char **argv)
{
    return sim_program(&sim_subject_kinds, argc, argv);
}
