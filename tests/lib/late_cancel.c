#include "late_cancel.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

#define TRIES 5000 /* of 2 ms */

enum {
    LISTENER_NONE = -1,
    LISTENER_UNKNOWN = -2
};

/* From now on the kernel asks before this thread, and no other, may signal a thread. Returns where it asks. */
static int hold_signals_back(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = sizeof rules / sizeof rules[0], .filter = rules };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return LISTENER_NONE;
    long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    return fd >= 0 ? (int)fd : LISTENER_NONE;
}

static void *cancel(void *argument)
{
    late_cancel *late = argument;
    late->listener = hold_signals_back();
    (void)pthread_cancel(late->target);
    return NULL;
}

static void pause_briefly(void)
{
    (void)usleep(2000);
}

/* What the kernel does for a thread: the number of the system call and its arguments, or "running". */
static bool read_call(pid_t id, char *text, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)id);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    bool read = fgets(text, (int)size, file) != NULL;
    (void)fclose(file);
    return read;
}

static bool is_running(const char *call)
{
    return strncmp(call, "running", 7) == 0;
}

static bool sleeps_on_futex(const char *call)
{
    long number = strtol(call, NULL, 10);
    return !is_running(call) && number == SYS_futex;
}

static bool await_request(late_cancel *late)
{
    struct pollfd polled = { .fd = late->listener, .events = POLLIN };
    struct seccomp_notif request;
    memset(&request, 0, sizeof request);
    /* Without a signal the thread ends, which is seen here too (POLLHUP). */
    if (poll(&polled, 1, TRIES * 2) != 1 || (polled.revents & POLLIN) == 0)
        return false;
    if (ioctl(late->listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0)
        return false;
    late->request = request.id;
    return true;
}

bool late_cancel_begin(late_cancel *late, pthread_t target, pid_t target_id)
{
    *late = (late_cancel){ .target = target, .target_id = target_id, .listener = LISTENER_UNKNOWN };
    while (read_call(target_id, late->target_call, sizeof late->target_call) && !sleeps_on_futex(late->target_call))
        pause_briefly();
    assert_int_equal(pthread_create(&late->canceller, NULL, cancel, late), 0);
    while (late->listener == LISTENER_UNKNOWN)
        pause_briefly();
    if (late->listener >= 0 && await_request(late))
        return true;
    assert_int_equal(pthread_join(late->canceller, NULL), 0);
    if (late->listener >= 0)
        (void)close(late->listener);
    return false;
}

void late_cancel_await_move(const late_cancel *late)
{
    char call[sizeof late->target_call] = "running";
    for (int i = 0; i < TRIES; i++) {
        if (!read_call(late->target_id, call, sizeof call))
            return; /* it is gone */
        if (!is_running(call) && strcmp(call, late->target_call) != 0)
            return;
        pause_briefly();
    }
    fail_msg("the thread still sleeps in %s", call);
}

void late_cancel_deliver(late_cancel *late)
{
    struct seccomp_notif_resp answer = { .id = late->request, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
    assert_int_equal(ioctl(late->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer), 0);
    assert_int_equal(pthread_join(late->canceller, NULL), 0);
    (void)close(late->listener);
}
