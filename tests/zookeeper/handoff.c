/* From one holder to the next: what it costs, and who may not be passed over. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "bed.h"
#include "proxy.h"
#include "turns.h"
#include "waiter.h"
#include "zookeeper_bed.h"

#define ROUNDS 20
#define CROWD 4
/* How long a busy machine takes is not the question here. */
#define PATIENT "timeout=30s"

/* The number of the last change on the server. */
static long long last_change(const zookeeper_server *server)
{
    const char *text = strstr(zookeeper_server_ask(server, "srvr"), "Zxid: ");
    assert_non_null(text);
    return strtoll(text + strlen("Zxid: "), NULL, 16);
}

/* How many changes a release and the pair of who waited for it make. */
static long long changes_of_hand_off(const zookeeper_server *server, const zookeeper_scene *from,
                                     const zookeeper_scene *to)
{
    sneck_error error;
    test_waiter waiter;
    EXPECT(SNECK_OK, sneck_acquire(from->lock, TEST_PATIENCE_MS, &error));
    test_waiter_start(&waiter, to->lock, TEST_PATIENCE_MS);
    zookeeper_bed_await_watch(server);
    long long before = last_change(server);
    EXPECT(SNECK_OK, sneck_release(from->lock, &error));
    test_waiter_join(&waiter);
    return last_change(server) - before;
}

/* Two nodes are deleted, and nothing is written: who waited begins with what it was told. One that is slow is renewed. */
static void test_a_short_hold_after_a_wait_writes_nothing(void **state)
{
    (void)state;
    const zookeeper_server *server = zookeeper_bed_server();
    zookeeper_scene one = zookeeper_scene_open(zookeeper_bed_url(server->port, NULL), 20000);
    zookeeper_scene two = zookeeper_scene_open(zookeeper_bed_url(server->port, NULL), 20000);
    long long least = 100;
    for (int i = 0; i < ROUNDS && least > 2; i++) {
        long long changes = changes_of_hand_off(server, &one, &two);
        least = changes < least ? changes : least;
    }
    assert_int_equal(least, 2);
    zookeeper_scene_close(&two);
    zookeeper_scene_close(&one);
}

/* The node that was waited for goes, and another one stands in its place, without a gap. */
static void test_a_writer_that_became_a_reader_is_still_waited_for(void **state)
{
    (void)state;
    sneck_error error;
    const zookeeper_server *server = zookeeper_bed_server();
    zookeeper_scene one = zookeeper_scene_open(zookeeper_bed_url(server->port, NULL), 20000);
    zookeeper_scene two = zookeeper_scene_open(zookeeper_bed_url(server->port, NULL), 20000);
    sneck_lock *writes = NULL;
    sneck_lock *reads = NULL;
    EXPECT(SNECK_OK, sneck_write_lock(one.client, "a", NULL, &writes, &error));
    EXPECT(SNECK_OK, sneck_read_lock(one.client, "a", NULL, &reads, &error));
    for (int i = 0; i < ROUNDS; i++) {
        test_waiter waiter;
        EXPECT(SNECK_OK, sneck_acquire(writes, TEST_PATIENCE_MS, &error));
        test_waiter_start(&waiter, two.lock, TEST_PATIENCE_MS);
        zookeeper_bed_await_watch(server);
        EXPECT(SNECK_OK, sneck_acquire(reads, 0, &error));
        EXPECT(SNECK_OK, sneck_release(writes, &error));
        /* The watch has fired by now; it is told that the writer has gone, and waits for the reader then. */
        zookeeper_bed_await_watch(server);
        int64_t freed_ms = test_now_ms();
        EXPECT(SNECK_OK, sneck_release(reads, &error));
        test_waiter_join(&waiter);
        assert_true(waiter.served_at_ms >= freed_ms);
    }
    sneck_lock_free(reads);
    sneck_lock_free(writes);
    zookeeper_scene_close(&two);
    zookeeper_scene_close(&one);
}

/* What was asked before this is answered by now, since it goes over the same connection. */
static void await_answers(const zookeeper_scene *of)
{
    sneck_error error;
    uint64_t version = 0;
    for (int i = 0; i < 3; i++)
        EXPECT(SNECK_OK, sneck_version_get(of->client, "a", &version, &error));
}

/* Of one round: how often who waited asked something, from the release on until its own was answered. */
static int questions_of_hand_off(const zookeeper_server *server, const zookeeper_scene *from, const zookeeper_scene *to,
                                 const fault_proxy *before_to)
{
    sneck_error error;
    test_waiter waiter;
    EXPECT(SNECK_OK, sneck_acquire(from->lock, TEST_PATIENCE_MS, &error));
    test_waiter_start(&waiter, to->lock, TEST_PATIENCE_MS);
    zookeeper_bed_await_watch(server);
    await_answers(to);
    int before = atomic_load(&before_to->round_trips);
    EXPECT(SNECK_OK, sneck_release(from->lock, &error));
    test_waiter_join(&waiter);
    return atomic_load(&before_to->round_trips) - before;
}

/* It knew that nobody else stood before it: what it asks for is its own release. On a slow machine it may ask more. */
static void test_who_is_next_starts_without_a_question(void **state)
{
    (void)state;
    const zookeeper_server *server = zookeeper_bed_server();
    fault_proxy proxy;
    assert_true(proxy_start(&proxy, server->port));
    zookeeper_scene one = zookeeper_scene_open(zookeeper_bed_url(server->port, NULL), 20000);
    zookeeper_scene two = zookeeper_scene_open(zookeeper_bed_url(proxy.port, NULL), 20000);
    int rounds_with_one = 0;
    for (int i = 0; i < ROUNDS; i++)
        rounds_with_one += questions_of_hand_off(server, &one, &two, &proxy) == 1;
    assert_true(rounds_with_one > ROUNDS / 2);
    zookeeper_scene_close(&two);
    zookeeper_scene_close(&one);
    proxy_stop(&proxy);
}

/*
 * After a reconnect the server tells that the node has gone, and not that it had changed before. All within a second: who
 * has waited for longer asks in any case.
 */
static void test_a_writer_that_became_a_reader_unheard_is_still_waited_for(void **state)
{
    (void)state;
    sneck_error error;
    test_waiter waiter;
    const zookeeper_server *server = zookeeper_bed_server();
    fault_proxy proxy;
    assert_true(proxy_start(&proxy, server->port));
    zookeeper_scene one = zookeeper_scene_open(zookeeper_bed_url(server->port, NULL), 20000);
    zookeeper_scene two = zookeeper_scene_open(zookeeper_bed_url(proxy.port, "timeout=200"), 20000);
    sneck_lock *writes = NULL;
    sneck_lock *reads = NULL;
    EXPECT(SNECK_OK, sneck_write_lock(one.client, "a", NULL, &writes, &error));
    EXPECT(SNECK_OK, sneck_read_lock(one.client, "a", NULL, &reads, &error));
    EXPECT(SNECK_OK, sneck_acquire(writes, TEST_PATIENCE_MS, &error));
    test_waiter_start(&waiter, two.lock, TEST_PATIENCE_MS);
    zookeeper_bed_await_watch(server);
    int cuts = atomic_load(&proxy.cuts);
    proxy_harm(&proxy, PROXY_CUT_BEFORE, "");
    /* It is cut, and so is each try to connect. */
    assert_int_not_equal(sneck_version_get(two.client, "a", &(uint64_t){ 0 }, &error), SNECK_OK);
    assert_true(atomic_load(&proxy.cuts) > cuts);
    EXPECT(SNECK_OK, sneck_acquire(reads, 0, &error));
    EXPECT(SNECK_OK, sneck_release(writes, &error));
    proxy_harm(&proxy, PROXY_PASS, "");
    zookeeper_bed_await_watch(server);
    await_answers(&two);
    int64_t freed_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_release(reads, &error));
    test_waiter_join(&waiter);
    assert_true(waiter.served_at_ms >= freed_ms);
    sneck_lock_free(reads);
    sneck_lock_free(writes);
    zookeeper_scene_close(&two);
    zookeeper_scene_close(&one);
    proxy_stop(&proxy);
}

/* Almost every turn is taken over from somebody, by what a watch has told. */
static void test_processes_take_turns_and_tokens_rise(void **state)
{
    (void)state;
    turns work;
    test_child children[CROWD];
    turns_init(&work, zookeeper_bed_url(zookeeper_bed_server()->port, PATIENT), 20000);
    work.rounds = test_scaled(500);
    turns_start(&work, children, CROWD);
    atomic_store(&work.board->go, true);
    turns_join(children, CROWD);
    turns_expect_clean(&work);
    assert_int_equal(atomic_load(&work.board->pairs), CROWD * work.rounds);
    print_message("# figure: %u ZooKeeper turns of %d processes, none overlapped\n", CROWD * work.rounds, CROWD);
    turns_deinit(&work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_short_hold_after_a_wait_writes_nothing, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_a_writer_that_became_a_reader_is_still_waited_for, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_who_is_next_starts_without_a_question, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_a_writer_that_became_a_reader_unheard_is_still_waited_for, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_processes_take_turns_and_tokens_rise, zookeeper_bed_set_up),
    };
    int failed = cmocka_run_group_tests_name("zookeeper hand-off", tests, NULL, NULL);
    zookeeper_bed_stop();
    return failed;
}
