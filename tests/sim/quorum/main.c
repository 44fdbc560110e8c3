/* The simulator of a quorum; see ../program.h for its arguments. */
#include "program.h"
#include "world.h"

int main(int argc, char **argv)
{
    return sim_program(&qs_subject, argc, argv);
}
