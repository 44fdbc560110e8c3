#include "timer.h"

#include <sys/timerfd.h>

#include "base/clock.h"
#include "base/limits.h"

int snk_timer_open(void)
{
    return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

void snk_timer_set(int fd, int64_t at_ns)
{
    struct itimerspec time = { 0 }; /* all zero disarms it */
    if (at_ns != SNK_NEVER_NS)
        time.it_value = snk_timespec(at_ns > 0 ? at_ns : 1);
    (void)timerfd_settime(fd, TFD_TIMER_ABSTIME, &time, NULL);
}
