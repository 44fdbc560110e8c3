/* The command `sneck`. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "command.h"
#include "exit.h"
#include "guard.h"
#include "guard_process.h"
#include "output.h"

static int unknown_command(const snk_cli *cli, const char *name)
{
    snk_nearest nearest = snk_nearest_to(name);
    for (const snk_command *command = snk_commands; command->usage != NULL; command++)
        snk_nearest_offer(&nearest, command->usage->name);
    if (nearest.best != NULL)
        snk_complain(cli, "unknown command %s; did you mean %s? (try: sneck --help)", name, nearest.best);
    else
        snk_complain(cli, "unknown command %s (try: sneck --help)", name);
    return SNK_EXIT_USAGE;
}

/* What runs here runs commands that the caller names: with borrowed rights that would give them away. */
static bool has_borrowed_rights(void)
{
    return getuid() != geteuid() || getgid() != getegid();
}

/* A descriptor that the caller closed must not become one of ours: a message would be written into the store. */
static void fill_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", O_RDWR); /* takes the lowest number that is free: this one */
    }
}

int main(int argc, char **argv)
{
    snk_arguments arguments;
    fill_standard_descriptors();
    if (argc == 2 && strcmp(argv[1], SNK_GUARD_COMMAND) == 0)
        return snk_guard_process();
    int code = snk_options_parse_common(argc, argv, &arguments);
    if (code != SNK_PARSED)
        return code;
    if (arguments.count == 0) {
        snk_complain(&arguments.cli, "a command is missing (try: sneck --help)");
        return SNK_EXIT_USAGE;
    }
    if (has_borrowed_rights()) {
        snk_complain(&arguments.cli, "sneck must not be installed set-user-id or set-group-id");
        return SNK_EXIT_CONFIG;
    }
    const snk_command *command = snk_command_find(arguments.operands[0]);
    if (command == NULL)
        return unknown_command(&arguments.cli, arguments.operands[0]);
    code = command->run(&arguments.cli, arguments.count, arguments.operands);
    if (fflush(stdout) != 0 && code == SNK_EXIT_OK)
        code = SNK_EXIT_INTERNAL;
    return code;
}
