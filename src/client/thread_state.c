#include "client/thread_state.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* The kernel's number of the clock that counts what a thread uses: its id, inverted, and "of a thread, by the scheduler". */
static int64_t cpu_time_ns(int32_t thread)
{
    clockid_t clock = (clockid_t)((~(uint32_t)thread << 3) | 6U);
    struct timespec time;
    if (clock_gettime(clock, &time) != 0)
        return 0;
    return (int64_t)time.tv_sec * SNK_NS_PER_S + time.tv_nsec;
}

/* The letter for its state; 'R' when it cannot be had. */
static char state_of(int32_t thread)
{
    char path[64];
    char line[512];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 'R';
    ssize_t length = read(fd, line, sizeof line - 1);
    (void)close(fd);
    line[length > 0 ? length : 0] = '\0';
    /* "<id> (<name>) <state> …", and the name may contain anything. */
    const char *end_of_name = strrchr(line, ')');
    return end_of_name != NULL && end_of_name[1] == ' ' ? end_of_name[2] : 'R';
}

void snk_thread_look(int32_t thread, snk_thread_facts *facts_out)
{
    *facts_out = (snk_thread_facts){ .known = true, .runs = true };
    if (syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH) {
        facts_out->known = false;
        return;
    }
    facts_out->runs = state_of(thread) == 'R';
    facts_out->cpu_ns = cpu_time_ns(thread);
}
