/*
 * Calls that are on their way to a master while sentinels put another one in its place. The old master is stopped with the
 * call in its ears, and goes on as soon as the client has gone over to the new one, so its answer comes late.
 */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bed.h"
#include "redis_bed.h"
#include "redis_fleet.h"

#define LEASE_MS 40000
#define LONG_LEASE_MS 120000

typedef struct scene {
    redis_fleet fleet;
    bool thaws;              /* the old master goes on when it was replaced */
    atomic_bool is_replaced; /* the client has gone over to another one */
    sneck_client *client;
    sneck_lock *lock;
} scene;

static void on_log(void *context, sneck_log_level level, const char *text)
{
    (void)level;
    scene *self = context;
    if (strstr(text, "event=master") != NULL && strstr(text, "before=\"\"") == NULL)
        self->is_replaced = true;
}

static int set_up(void **state)
{
    scene *self = calloc(1, sizeof *self);
    if (self == NULL)
        return -1;
    fleet_start_sentinels(&self->fleet, NULL);
    sneck_error error;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = LEASE_MS;
    options.watchdog_ms = SNECK_NEVER; /* which would give up a silent master itself */
    options.log = on_log;
    options.log_context = self;
    /* Left to itself the call would wait for its answer for a minute. */
    EXPECT(SNECK_OK, sneck_open(fleet_sentinel_url(&self->fleet, "timeout=60000"), &options, &self->client, &error));
    self->lock = test_mutex(self->client, "a", NULL);
    /* The server is to know the scripts: that it does not know one proves that it did not run, so it would be sent on. */
    EXPECT(SNECK_OK, sneck_acquire(self->lock, 0, &error));
    EXPECT(SNECK_OK, sneck_extend(self->lock, LEASE_MS, &error));
    EXPECT(SNECK_OK, sneck_release(self->lock, &error));
    *state = self;
    return 0;
}

static int tear_down(void **state)
{
    scene *self = *state;
    (void)kill(self->fleet.servers[0].pid, SIGCONT);
    sneck_lock_free(self->lock);
    sneck_close(self->client);
    fleet_stop(&self->fleet);
    free(self);
    return 0;
}

static void hold(scene *self)
{
    sneck_error error;
    EXPECT(SNECK_OK, sneck_acquire(self->lock, 0, &error));
    fleet_await_acknowledged(&self->fleet.servers[0], 2);
}

static const redis_server *new_master(scene *self)
{
    return &self->fleet.servers[fleet_await_master(&self->fleet, 0)];
}

/* The old master goes on after the client has asked the new one for claims that are over: what it says now comes later. */
static void *fail_over(void *argument)
{
    scene *self = argument;
    fleet_do(&self->fleet.sentinels[0], "SENTINEL FAILOVER " FLEET_SERVICE);
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (!self->is_replaced && test_now_ms() < limit_ms)
        redis_bed_pause(1);
    if (self->thaws) {
        fleet_await(new_master(self), "cmdstat_eval:", "INFO commandstats");
        (void)kill(self->fleet.servers[0].pid, SIGCONT);
    }
    return NULL;
}

/* What comes of a call during which the master is replaced. */
static sneck_status call_over(scene *self, sneck_status (*call)(sneck_lock *lock, sneck_error *error),
                              sneck_error *error)
{
    pthread_t thread;
    assert_int_equal(kill(self->fleet.servers[0].pid, SIGSTOP), 0);
    assert_int_equal(pthread_create(&thread, NULL, fail_over, self), 0);
    sneck_status status = call(self->lock, error);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return status;
}

static sneck_status extend(sneck_lock *lock, sneck_error *error)
{
    return sneck_extend(lock, LONG_LEASE_MS, error);
}

static sneck_status try_once(sneck_lock *lock, sneck_error *error)
{
    return sneck_acquire(lock, 0, error);
}

/* The old master prolongs the lease too, and that is worth nothing. */
static void test_a_lease_is_prolonged_where_it_counts(void **state)
{
    scene *self = *state;
    sneck_error error;
    self->thaws = true;
    hold(self);
    EXPECT(SNECK_OK, call_over(self, extend, &error));
    assert_true(strtol(fleet_ask(new_master(self), "PTTL lock:a"), NULL, 10) > LEASE_MS);
    EXPECT(SNECK_OK, sneck_release(self->lock, &error));
}

static void test_a_lease_is_prolonged_though_the_old_master_never_answers(void **state)
{
    scene *self = *state;
    sneck_error error;
    hold(self);
    EXPECT(SNECK_OK, call_over(self, extend, &error));
    assert_true(strtol(fleet_ask(new_master(self), "PTTL lock:a"), NULL, 10) > LEASE_MS);
    EXPECT(SNECK_OK, sneck_release(self->lock, &error));
}

/* The new master never heard of the release. */
static void test_a_release_that_the_old_master_answers_ends_the_lock_on_the_new_one(void **state)
{
    scene *self = *state;
    sneck_error error;
    self->thaws = true;
    hold(self);
    EXPECT(SNECK_OK, call_over(self, sneck_release, &error));
    int64_t released_ms = test_now_ms();
    fleet_await(new_master(self), "0", "EXISTS lock:a");
    assert_true(test_now_ms() - released_ms < LEASE_MS / 4); /* so it was not the lease that ended it */
}

/* Two clients could believe to hold it otherwise: the new master does not know of the grant. */
static void test_a_grant_by_the_old_master_is_not_believed(void **state)
{
    scene *self = *state;
    sneck_error error;
    self->thaws = true;
    EXPECT(SNECK_UNKNOWN, call_over(self, try_once, &error));
    assert_non_null(strstr(error.message, "replaced"));
    assert_false(sneck_is_held(self->lock));
    EXPECT(SNECK_OK, sneck_acquire(self->lock, 5000, &error)); /* on the new one */
    assert_string_equal(fleet_ask(new_master(self), "EXISTS lock:a"), "1");
    EXPECT(SNECK_OK, sneck_release(self->lock, &error));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_lease_is_prolonged_where_it_counts),
        TEST(test_a_lease_is_prolonged_though_the_old_master_never_answers),
        TEST(test_a_release_that_the_old_master_answers_ends_the_lock_on_the_new_one),
        TEST(test_a_grant_by_the_old_master_is_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
