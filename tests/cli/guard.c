/* The guard process, with the test in the place of sneck. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "guard.h"
#include "guard_process.h"
#include "page.h"
#include "process.h"

#define KILL_AFTER_NS (100 * SNK_NS_PER_MS)
#define LEASE_NS (500 * SNK_NS_PER_MS)

typedef struct scene {
    snk_page *page;
    int page_fd;
    int sockets[2]; /* ours, the guard's */
    pid_t command;
} scene;

static int run_for_ever(void *context)
{
    (void)context;
    (void)setpgid(0, 0);
    while (pause() < 0) /* always so */
        continue;
    return 0;
}

static int be_guard(void *context)
{
    scene *s = context;
    (void)close(s->sockets[0]);
    if (dup2(s->page_fd, SNK_GUARD_PAGE_FD) < 0 || dup2(s->sockets[1], SNK_GUARD_SOCKET_FD) < 0)
        return 1;
    (void)close(SNK_GUARD_LIVENESS_FD);
    return snk_guard_process();
}

/* Descriptors out of the way of where the guard expects them. */
static void move_up(int *fd)
{
    int moved = fcntl(*fd, F_DUPFD_CLOEXEC, 16);
    assert_true(moved >= 16);
    (void)close(*fd);
    *fd = moved;
}

/* A command that runs until it is stopped, under a lease that nobody renews. */
static void set(scene *s)
{
    s->command = test_spawn(run_for_ever, NULL); /* first: it must not have the sockets */
    (void)setpgid(s->command, s->command);
    s->page = snk_page_new(&s->page_fd);
    assert_non_null(s->page);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->sockets), 0);
    move_up(&s->page_fd);
    move_up(&s->sockets[0]);
    move_up(&s->sockets[1]);
    s->page->kill_after_ns = KILL_AFTER_NS;
    s->page->stop_signal = SIGTERM;
    s->page->stops_on_loss = 1;
    s->page->lock_count = 1;
    s->page->group = s->command;
    atomic_store(&s->page->deadlines_ns[0], snk_now_ns() + LEASE_NS);
}

static void strike(scene *s)
{
    snk_page_unmap(s->page);
    (void)close(s->page_fd);
    (void)close(s->sockets[0]);
}

static pid_t start_guard(scene *s)
{
    pid_t guard = test_spawn(be_guard, s);
    (void)close(s->sockets[1]);
    return guard;
}

/* As when sneck is stopped, or hangs, at the very moment when it has started the guard. */
static void test_a_guard_to_whom_nobody_ever_speaks_stops_the_command_by_the_deadline(void **state)
{
    (void)state;
    scene s;
    set(&s);
    pid_t guard = start_guard(&s);
    assert_int_equal(test_join(s.command), 128 + SIGTERM);
    assert_true(atomic_load(&s.page->stop_begun_ns) >= atomic_load(&s.page->deadlines_ns[0]) - KILL_AFTER_NS);
    assert_int_equal(test_join(guard), 0);
    strike(&s);
}

/* As when sneck is killed at that moment. */
static void test_a_guard_whose_sneck_is_gone_already_stops_the_command_at_once(void **state)
{
    (void)state;
    scene s;
    set(&s);
    atomic_store(&s.page->deadlines_ns[0], snk_now_ns() + 3600 * SNK_NS_PER_S);
    (void)close(s.sockets[0]);
    s.sockets[0] = -1;
    pid_t guard = start_guard(&s);
    assert_int_equal(test_join(s.command), 128 + SIGTERM);
    assert_int_equal(test_join(guard), 0);
    strike(&s);
}

static void test_a_guard_that_is_sent_away_leaves_the_command_alone(void **state)
{
    (void)state;
    scene s;
    set(&s);
    static const snk_guard_letter letter;
    char done = SNK_GUARD_DONE;
    assert_int_equal(send(s.sockets[0], &letter, sizeof letter, MSG_NOSIGNAL), sizeof letter);
    assert_int_equal(send(s.sockets[0], &done, 1, MSG_NOSIGNAL), 1);
    pid_t guard = start_guard(&s);
    assert_int_equal(test_join(guard), 0);
    assert_int_equal(waitpid(s.command, NULL, WNOHANG), 0);
    test_kill(s.command);
    strike(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_guard_to_whom_nobody_ever_speaks_stops_the_command_by_the_deadline),
        cmocka_unit_test(test_a_guard_whose_sneck_is_gone_already_stops_the_command_at_once),
        cmocka_unit_test(test_a_guard_that_is_sent_away_leaves_the_command_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
