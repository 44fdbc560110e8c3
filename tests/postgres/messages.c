/* The connection that listens: when it comes late, when it is lost, and when it cannot be had. */
#include "test.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

#include "base/clock.h"
#include "bed.h"
#include "claims.h"
#include "postgres_bed.h"
#include "proxy.h"
#include "store/postgres/postgres.h"
#include "waiter.h"

#define QUEUE "SELECT count(*) FROM sneck_queue"
#define LISTENERS " FROM pg_stat_activity WHERE query LIKE 'LISTEN%%'"
#define OUR_SESSIONS "SELECT count(*) FROM pg_stat_activity WHERE usename = 'sneck'"

/* Of a lease of a minute: who is not told looks after a third of it, and has lost its offer after two seconds. */
enum {
    LEASE_MS = 60000,
    AT_ONCE_MS = 1500
};

static sneck_client *open_at(int port, const char *keys)
{
    sneck_error error;
    sneck_client *client = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = LEASE_MS;
    EXPECT(SNECK_OK, sneck_open(postgres_bed_url_at(port, keys), &options, &client, &error));
    return client;
}

/* A holder, and one that waits, each a client of its own. */
typedef struct pair {
    postgres_bed *bed;
    sneck_client *clients[2];
    sneck_lock *lock;
    test_waiter waiter;
} pair;

static pair start_pair(postgres_bed *bed, int waiters_port, const char *waiters_keys)
{
    pair made = { .bed = bed };
    sneck_error error;
    made.clients[0] = open_at(bed->server.port, NULL);
    made.clients[1] = open_at(waiters_port, waiters_keys);
    made.lock = test_mutex(made.clients[0], "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    return made;
}

static void start_waiting(pair *made)
{
    test_waiter_start(&made->waiter, test_mutex(made->clients[1], "a", NULL), TEST_PATIENCE_MS);
    postgres_bed_await(made->bed, QUEUE, 1);
}

/* The holder releases, and whoever waits must be served at once. */
static void expect_quick_hand_over(pair *made)
{
    sneck_error error;
    int64_t released_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_release(made->lock, &error));
    test_waiter_join(&made->waiter);
    assert_in_range(made->waiter.served_at_ms - released_ms, 0, AT_ONCE_MS);
}

static void end_pair(pair *made)
{
    sneck_lock_free(made->lock);
    sneck_lock_free(made->waiter.lock);
    sneck_close(made->clients[0]);
    sneck_close(made->clients[1]);
}

/* The session that listens stands still between LISTEN and the message by which it is tried, for longer than that may take. */
static void test_a_session_that_stalls_at_first_is_heard_afterwards(void **state)
{
    postgres_bed *bed = *state;
    static fault_proxy proxy;
    assert_true(proxy_start(&proxy, bed->server.port));
    pair made = start_pair(bed, proxy.port, "timeout=20000");
    proxy.request_delay_ms = 300; /* so that there is time to stop it */
    start_waiting(&made);
    postgres_bed_await(bed, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'", 1);
    pid_t session = (pid_t)postgres_bed_number(bed, "SELECT pid" LISTENERS);
    assert_int_equal(kill(session, SIGSTOP), 0);
    proxy.request_delay_ms = 0;
    postgres_bed_pause(SNK_PG_PROBE_NS / SNK_NS_PER_MS + 1000);
    assert_int_equal(kill(session, SIGCONT), 0);
    postgres_bed_pause(500); /* time for those who wait to look, and to believe that they will be told */
    expect_quick_hand_over(&made);
    end_pair(&made);
    proxy_stop(&proxy);
}

/* As many sessions as there are now may be, and no more. */
static void allow_no_more_sessions(postgres_bed *bed, int fewer)
{
    postgres_bed_do(bed, "ALTER ROLE sneck CONNECTION LIMIT %lld", postgres_bed_number(bed, OUR_SESSIONS) - fewer);
}

static void test_a_listener_that_is_lost_and_cannot_be_replaced_leaves_nobody_asleep(void **state)
{
    postgres_bed *bed = *state;
    pair made = start_pair(bed, bed->server.port, NULL);
    start_waiting(&made);
    postgres_bed_await(bed, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'", 1);
    postgres_bed_pause(300); /* the look that follows */
    allow_no_more_sessions(bed, 1);
    postgres_bed_do(bed, "SELECT pg_terminate_backend(pid, 5000)" LISTENERS);
    postgres_bed_pause(100);
    expect_quick_hand_over(&made);
    end_pair(&made);
}

static void test_nobody_waits_longer_than_asked_for_a_listener_that_cannot_be_had(void **state)
{
    postgres_bed *bed = *state;
    sneck_error error;
    snk_store *holder = test_store(postgres_bed_url(bed, NULL));
    (void)test_must_hold(holder, "a");
    sneck_client *client = open_at(bed->server.port, NULL);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_BUSY, sneck_acquire(lock, 0, &error));
    allow_no_more_sessions(bed, 0);
    for (int i = 0; i < 3; i++) {
        int64_t began_ms = test_now_ms();
        EXPECT(SNECK_TIMEOUT, sneck_acquire(lock, 50, &error));
        assert_in_range(test_now_ms() - began_ms, 50, 600);
    }
    sneck_lock_free(lock);
    sneck_close(client);
    test_store_close(holder);
}

/* ---- A claim whose answer comes late ---- */

static sem_t is_queued;
static sem_t may_go_on;

/* The first claim that was answered stays here, as on a machine that is busy. */
static bool listen_late(snk_store *store)
{
    snk_pg_store_of(store)->waiters.listen = snk_pg_listen;
    (void)sem_post(&is_queued);
    (void)sem_wait(&may_go_on);
    return snk_pg_listen(store);
}

typedef struct late_claim {
    snk_store *store;
    snk_id id;
    snk_answer answer;
} late_claim;

static void *queue_up(void *argument)
{
    late_claim *self = argument;
    self->answer = test_acquire(self->store, "x", &self->id, TEST_QUEUE);
    return NULL;
}

static void test_a_claim_that_was_granted_before_anybody_listened_looks(void **state)
{
    postgres_bed *bed = *state;
    snk_store *holder = test_store(postgres_bed_url(bed, NULL));
    late_claim self = { .store = test_store(postgres_bed_url(bed, NULL)), .id = test_id() };
    snk_id x = test_must_hold(holder, "x");
    (void)test_must_hold(holder, "y");
    assert_true(sem_init(&is_queued, 0, 0) == 0 && sem_init(&may_go_on, 0, 0) == 0);
    snk_pg_store_of(self.store)->waiters.listen = listen_late;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, queue_up, &self), 0);
    assert_int_equal(sem_wait(&is_queued), 0);
    /* It is granted, and told so; nobody listens yet. */
    test_expect_answer(test_release(holder, "x", &x), SNK_ANSWER_DONE);
    (void)test_must_queue(self.store, "y", NULL);
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (atomic_load(&snk_pg_store_of(self.store)->ear.state) != SNK_SQL_HEARS)
        assert_true(test_now_ms() < limit_ms);
    assert_int_equal(sem_post(&may_go_on), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    test_expect_kind(&self.answer, SNK_ANSWER_QUEUED);
    _Atomic uint32_t word = 0;
    assert_true(snk_pg_wait(self.store, self.answer.ticket, &word, 0, snk_now_ns() + 10 * SNK_NS_PER_S));
    test_expect_answer(test_renew(self.store, "x", &self.id, LEASE_MS), SNK_ANSWER_HELD);
    test_store_close(self.store);
    test_store_close(holder);
}

static int tear_down(void **state)
{
    postgres_bed_do(*state, "ALTER ROLE sneck CONNECTION LIMIT -1");
    return postgres_bed_tear_down(state);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, postgres_bed_set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_session_that_stalls_at_first_is_heard_afterwards),
        TEST(test_a_listener_that_is_lost_and_cannot_be_replaced_leaves_nobody_asleep),
        TEST(test_nobody_waits_longer_than_asked_for_a_listener_that_cannot_be_had),
        TEST(test_a_claim_that_was_granted_before_anybody_listened_looks),
    };
    return cmocka_run_group_tests(tests, NULL, postgres_bed_end);
}
