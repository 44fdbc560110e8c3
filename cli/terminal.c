#include "terminal.h"

#include <fcntl.h>
#include <unistd.h>

void snk_terminal_open(snk_terminal *terminal)
{
    terminal->fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

void snk_terminal_close(snk_terminal *terminal)
{
    if (terminal->fd >= 0)
        close(terminal->fd);
    terminal->fd = -1;
}

bool snk_terminal_is_ours(const snk_terminal *terminal)
{
    return snk_terminal_is_of(terminal, getpgrp());
}

bool snk_terminal_is_of(const snk_terminal *terminal, pid_t group)
{
    return terminal->fd >= 0 && tcgetpgrp(terminal->fd) == group;
}

void snk_terminal_give(const snk_terminal *terminal, pid_t group)
{
    if (terminal->fd >= 0)
        (void)tcsetpgrp(terminal->fd, group); /* fails when the terminal or the group is gone: then nothing is lost */
}

void snk_terminal_take_from(const snk_terminal *terminal, pid_t group)
{
    if (snk_terminal_is_of(terminal, group))
        (void)tcsetpgrp(terminal->fd, getpgrp());
}
