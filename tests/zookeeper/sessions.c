/* What belongs to a session: claims that wait when it ends, children of fork(), and threads that share it. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bed.h"
#include "proxy.h"
#include "waiter.h"
#include "zookeeper_bed.h"

/* ---- Its end, while a claim waits ---- */

static void test_a_waiter_whose_session_ended_waits_on_in_a_new_one(void **state)
{
    (void)state;
    sneck_error error;
    fault_proxy proxy;
    const zookeeper_server *server = zookeeper_bed_server();
    assert_true(proxy_start(&proxy, server->port));
    zookeeper_scene holder = zookeeper_scene_open(zookeeper_bed_url(server->port, NULL), 30000);
    zookeeper_scene made = zookeeper_scene_open(zookeeper_bed_url(proxy.port, NULL), 2000);
    EXPECT(SNECK_OK, sneck_acquire(holder.lock, 0, &error));
    uint64_t token = sneck_token(holder.lock);
    test_waiter waiter;
    test_waiter_start(&waiter, made.lock, 6 * (int64_t)TEST_PATIENCE_MS);
    zookeeper_bed_await_watch(server);
    proxy_harm(&proxy, PROXY_STALL_REQUESTS, "");
    zookeeper_scene_await_claims(&holder, 1); /* the server has ended the session, and what was in it */
    proxy_harm(&proxy, PROXY_PASS, "");
    zookeeper_scene_await_claims(&holder, 2);
    EXPECT(SNECK_OK, sneck_release(holder.lock, &error));
    test_waiter_join(&waiter);
    assert_true(waiter.token > token);
    zookeeper_scene_await_claims(&holder, 0);
    zookeeper_scene_close(&made);
    zookeeper_scene_close(&holder);
    proxy_stop(&proxy);
}

static void test_a_server_that_was_frozen_past_the_lease_serves_who_waited(void **state)
{
    (void)state;
    sneck_error error;
    const zookeeper_server *server = zookeeper_bed_server();
    zookeeper_scene holder = zookeeper_scene_open(zookeeper_bed_url(server->port, NULL), 2000);
    zookeeper_scene made = zookeeper_scene_open(zookeeper_bed_url(server->port, NULL), 2000);
    EXPECT(SNECK_OK, sneck_acquire(holder.lock, 0, &error));
    uint64_t token = sneck_token(holder.lock);
    test_waiter waiter;
    test_waiter_start(&waiter, made.lock, 6 * (int64_t)TEST_PATIENCE_MS);
    zookeeper_bed_await_watch(server);
    assert_int_equal(kill(server->pid, SIGSTOP), 0);
    int64_t took_ms = zookeeper_scene_await_loss(&holder);
    assert_int_equal(kill(server->pid, SIGCONT), 0);
    assert_in_range(took_ms, 1, 2000);
    test_waiter_join(&waiter);
    assert_true(waiter.token > token);
    EXPECT(SNECK_LOST, sneck_release(holder.lock, &error));
    zookeeper_scene_await_claims(&made, 0);
    zookeeper_scene_close(&made);
    zookeeper_scene_close(&holder);
}

/* ---- fork() ---- */

static int use_in_child(zookeeper_scene *scene, const char *url)
{
    sneck_client *client = NULL;
    sneck_lock *lock = NULL;
    if (sneck_acquire(scene->lock, 0, NULL) != SNECK_INVALID || sneck_is_held(scene->lock))
        return 1;
    sneck_lock_free(scene->lock);
    sneck_close(scene->client); /* the session is the parent's, and must not end */
    if (sneck_open(url, NULL, &client, NULL) != SNECK_OK || sneck_mutex(client, "a", NULL, &lock, NULL) != SNECK_OK)
        return 2;
    if (sneck_acquire(lock, 0, NULL) != SNECK_BUSY)
        return 3;
    sneck_lock_free(lock);
    sneck_close(client);
    return 0;
}

static void test_a_child_of_fork_owns_nothing_and_ends_nothing(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    test_skip("ThreadSanitizer allows no threads after fork()");
    return;
#endif
    sneck_error error;
    const zookeeper_server *server = zookeeper_bed_server();
    zookeeper_scene made = zookeeper_scene_open(zookeeper_bed_url(server->port, NULL), 20000);
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    uint64_t token = sneck_token(made.lock);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(use_in_child(&made, zookeeper_bed_url(server->port, NULL)));
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    EXPECT(SNECK_OK, sneck_extend(made.lock, 20000, &error));
    assert_true(sneck_token(made.lock) == token);
    assert_true(test_is_held_in_store(made.client, "a"));
    EXPECT(SNECK_OK, sneck_release(made.lock, &error));
    zookeeper_scene_close(&made);
}

/* ---- Threads of one client ---- */

typedef struct busy_thread {
    pthread_t thread;
    sneck_lock *lock;
    atomic_bool stop;
    _Atomic unsigned pairs;
} busy_thread;

static void *take_and_release(void *argument)
{
    busy_thread *self = argument;
    while (!atomic_load(&self->stop)) {
        if (sneck_acquire(self->lock, 0, NULL) == SNECK_OK && sneck_release(self->lock, NULL) == SNECK_OK)
            (void)atomic_fetch_add(&self->pairs, 1);
    }
    return NULL;
}

static void await_pairs(busy_thread *self, unsigned count)
{
    int64_t limit_ms = test_now_ms() + INT64_C(3) * TEST_PATIENCE_MS;
    unsigned target = atomic_load(&self->pairs) + count;
    while (atomic_load(&self->pairs) < target)
        assert_true(test_now_ms() < limit_ms);
}

/* One that does its own receiving must not keep to itself what it receives for another. */
static void test_a_waiter_is_told_while_another_thread_of_its_client_is_busy(void **state)
{
    (void)state;
    sneck_error error;
    const zookeeper_server *server = zookeeper_bed_server();
    zookeeper_scene holder = zookeeper_scene_open(zookeeper_bed_url(server->port, NULL), 60000);
    zookeeper_scene made = zookeeper_scene_open(zookeeper_bed_url(server->port, NULL), 60000);
    busy_thread self = { .lock = test_mutex(made.client, "b", NULL) };
    assert_int_equal(pthread_create(&self.thread, NULL, take_and_release, &self), 0);
    await_pairs(&self, 20); /* it drives by now */
    for (int i = 0; i < 5; i++) {
        EXPECT(SNECK_OK, sneck_acquire(holder.lock, 0, &error));
        test_waiter waiter;
        test_waiter_start(&waiter, made.lock, 6 * (int64_t)TEST_PATIENCE_MS);
        zookeeper_scene_await_claims(&holder, 2);
        await_pairs(&self, 20);
        EXPECT(SNECK_OK, sneck_release(holder.lock, &error));
        int64_t begin_ms = test_now_ms();
        test_waiter_join(&waiter);
        assert_true(test_now_ms() - begin_ms < 10000); /* told, and not by its next look after 20 s */
    }
    atomic_store(&self.stop, true);
    assert_int_equal(pthread_join(self.thread, NULL), 0);
    sneck_lock_free(self.lock);
    zookeeper_scene_close(&made);
    zookeeper_scene_close(&holder);
}

/* Each of them finds the others under way, or nobody: both who drives and who sleeps are answered. */
static void test_threads_with_a_lock_each_are_all_answered(void **state)
{
    enum {
        THREADS = 4
    };
    (void)state;
    const zookeeper_server *server = zookeeper_bed_server();
    zookeeper_scene made = zookeeper_scene_open(zookeeper_bed_url(server->port, NULL), 20000);
    busy_thread threads[THREADS] = { { .lock = NULL } };
    for (int i = 0; i < THREADS; i++) {
        char name[] = { (char)('b' + i), '\0' };
        threads[i].lock = test_mutex(made.client, name, NULL);
        assert_int_equal(pthread_create(&threads[i].thread, NULL, take_and_release, &threads[i]), 0);
        for (int j = 0; j <= i; j++)
            await_pairs(&threads[j], 50);
    }
    for (int i = 0; i < THREADS; i++) {
        atomic_store(&threads[i].stop, true);
        assert_int_equal(pthread_join(threads[i].thread, NULL), 0);
        for (int j = i + 1; j < THREADS; j++)
            await_pairs(&threads[j], 50);
        sneck_lock_free(threads[i].lock);
    }
    zookeeper_scene_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_waiter_whose_session_ended_waits_on_in_a_new_one, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_a_server_that_was_frozen_past_the_lease_serves_who_waited, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_a_child_of_fork_owns_nothing_and_ends_nothing, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_a_waiter_is_told_while_another_thread_of_its_client_is_busy, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_threads_with_a_lock_each_are_all_answered, zookeeper_bed_set_up),
    };
    int failed = cmocka_run_group_tests_name("zookeeper sessions", tests, NULL, NULL);
    zookeeper_bed_stop();
    return failed;
}
