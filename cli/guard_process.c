/*
 * What it does, in this order:
 *
 *   1. It watches: the deadline in the page, on its own clock, and the socket, which ends when sneck dies.
 *   2. When the deadline comes near, or sneck is dead, it stops the group: the stop signal first, KILL in the end.
 *   3. When the group is gone, it releases the claims by their ids. Until then it keeps the descriptor open that keeps
 *      them alive, so that nobody else gets the lock while the command still runs.
 *
 * It is in a session of its own, with every signal blocked, and says nothing to anybody: whatever could make it wait is
 * left out.
 */
#include "guard_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/supervise.h"
#include "exit.h"
#include "group.h"
#include "guard.h"
#include "page.h"
#include "stop.h"
#include "timer.h"

#define LOOK_NS_MIN (5 * SNK_NS_PER_MS) /* between looks whether the group is gone */
#define LOOK_NS_MAX (200 * SNK_NS_PER_MS)
#define KILLED_WAIT_NS (10 * SNK_NS_PER_S)  /* after this a killed group that does not go is beyond us */
#define SNECK_WAIT_NS (500 * SNK_NS_PER_MS) /* for a sneck that lives, to release by itself */
#define RELEASE_SECONDS 10

struct watch {
    snk_page *page;
    snk_guard_letter letter;
    bool letter_is_whole;
    bool sneck_is_dead;
    bool is_done; /* sneck says so */
    int timer_fd;
    snk_stop stop;
};

/* Reads the whole letter, without waiting for anybody. False when it is not there: then there is nothing to release. */
static bool read_letter(snk_guard_letter *letter)
{
    size_t used = 0;
    while (used < sizeof *letter) {
        ssize_t length = recv(SNK_GUARD_SOCKET_FD, (char *)letter + used, sizeof *letter - used, MSG_DONTWAIT);
        if (length == 0 || (length < 0 && errno != EINTR))
            return false;
        used += length > 0 ? (size_t)length : 0;
    }
    return true;
}

static void listen_to_sneck(struct watch *watch)
{
    char byte = 0;
    ssize_t length = recv(SNK_GUARD_SOCKET_FD, &byte, 1, MSG_DONTWAIT);
    if (length == 1 && byte == SNK_GUARD_DONE)
        watch->is_done = true;
    else if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR))
        watch->sneck_is_dead = true;
}

/* Sleeps until that time, or until sneck says something or dies. */
static void sleep_until(struct watch *watch, int64_t at_ns)
{
    struct pollfd fds[] = {
        { .fd = watch->timer_fd, .events = POLLIN },
        { .fd = watch->sneck_is_dead ? -1 : SNK_GUARD_SOCKET_FD, .events = POLLIN },
    };
    snk_timer_set(watch->timer_fd, at_ns);
    if (poll(fds, 2, -1) > 0 && fds[1].revents != 0)
        listen_to_sneck(watch);
}

/* Returns when the group must be stopped, or sneck is done. */
static void watch_deadline(struct watch *watch)
{
    while (!watch->is_done && !watch->sneck_is_dead) {
        int64_t next_ns = SNK_NEVER_NS;
        if (watch->page->stops_on_loss != 0) {
            snk_stop_look(&watch->stop, snk_page_deadline(watch->page));
            if (snk_stop_is_due(&watch->stop, snk_now_ns()))
                return;
            next_ns = snk_stop_due_at(&watch->stop);
        }
        sleep_until(watch, next_ns);
    }
}

/* A deadline that sneck's last renewal may have moved since we looked. */
static int64_t kill_at(struct watch *watch)
{
    int64_t begun_ns = atomic_load(&watch->page->stop_begun_ns);
    if (watch->page->stops_on_loss == 0)
        return snk_time_add(begun_ns, watch->stop.kill_after_ns);
    snk_stop_look(&watch->stop, snk_page_deadline(watch->page));
    return snk_stop_kill_at(&watch->stop, begun_ns);
}

/* Stops the group and waits until it is gone. False when it does not go, or sneck is done. */
static bool stop_group(struct watch *watch)
{
    pid_t group = (pid_t)watch->page->group;
    int64_t look_ns = LOOK_NS_MIN;
    if (atomic_load(&watch->page->group_is_gone) != 0)
        return true;
    /* If sneck has told the group already and lives, that was enough; a dead one may not have come to it. */
    int64_t begun_ns = snk_now_ns();
    if ((snk_page_begin_stop(watch->page, begun_ns) || watch->sneck_is_dead) && begun_ns < kill_at(watch)) {
        snk_group_signal(group, watch->page->stop_signal);
        snk_group_signal(group, SIGCONT); /* one that is stopped must be able to hear it */
    }
    while (!watch->is_done && !snk_group_is_gone(group)) {
        int64_t now_ns = snk_now_ns();
        int64_t kill_at_ns = kill_at(watch);
        if (now_ns >= kill_at_ns)
            snk_group_signal(group, SIGKILL);
        if (now_ns >= snk_time_add(kill_at_ns, KILLED_WAIT_NS))
            return false;
        int64_t next_ns = now_ns + look_ns;
        sleep_until(watch, now_ns < kill_at_ns && kill_at_ns < next_ns ? kill_at_ns : next_ns);
        look_ns = 2 * look_ns < LOOK_NS_MAX ? 2 * look_ns : LOOK_NS_MAX;
    }
    return !watch->is_done;
}

/* Gives a sneck that lives the time to end the matter itself. */
static void wait_for_sneck(struct watch *watch)
{
    int64_t until_ns = snk_time_add(snk_now_ns(), SNECK_WAIT_NS);
    while (!watch->is_done && !watch->sneck_is_dead && snk_now_ns() < until_ns)
        sleep_until(watch, until_ns);
}

static void release(const snk_guard_letter *letter)
{
    sneck_client *client = NULL;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    alarm(RELEASE_SECONDS); /* by its default action it ends us: the leases end by themselves */
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    if (sneck_open(letter->url, NULL, &client, NULL) != SNECK_OK)
        return;
    for (uint32_t i = 0; i < letter->count && i < SNK_RUN_LOCKS_MAX; i++)
        (void)snk_client_forget(client, letter->claims[i].name, &letter->claims[i].id, NULL);
    sneck_close(client);
}

/* Away from the terminal, the signals and the descriptors of the caller. */
static void detach(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGALRM, SIG_DFL);
    setsid();
    prctl(PR_SET_NAME, "sneck-guard");
    int null_fd = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2 && null_fd >= 0; fd++)
        dup2(null_fd, fd);
    close_range(SNK_GUARD_LIVENESS_FD + 1, ~0U, 0); /* also closes null_fd */
    fcntl(SNK_GUARD_PAGE_FD, F_SETFD, FD_CLOEXEC);
    fcntl(SNK_GUARD_SOCKET_FD, F_SETFD, FD_CLOEXEC);
    fcntl(SNK_GUARD_LIVENESS_FD, F_SETFD, FD_CLOEXEC);
}

int snk_guard_process(void)
{
    struct watch watch = { .page = snk_page_map(SNK_GUARD_PAGE_FD) };
    if (watch.page == NULL || watch.page->group <= 1)
        return SNK_EXIT_USAGE; /* somebody typed it */
    detach();
    watch.timer_fd = snk_timer_open();
    watch.stop.kill_after_ns = watch.page->kill_after_ns;
    watch.letter_is_whole = read_letter(&watch.letter);
    char ready = SNK_GUARD_READY;
    (void)send(SNK_GUARD_SOCKET_FD, &ready, 1, MSG_NOSIGNAL);
    watch_deadline(&watch);
    if (watch.is_done || !stop_group(&watch))
        return SNK_EXIT_OK;
    wait_for_sneck(&watch);
    if (!watch.is_done && watch.letter_is_whole)
        release(&watch.letter);
    explicit_bzero(&watch.letter, sizeof watch.letter);
    return SNK_EXIT_OK;
}
