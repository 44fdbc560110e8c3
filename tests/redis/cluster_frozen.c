/* One of five servers of a cluster stands still: the locks on the others are renewed as if nothing were. */
#include "test.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "bed.h"
#include "redis_bed.h"
#include "redis_fleet.h"

#define SERVERS 5
#define EACH 4
#define LEASE_MS 1500
#define RENEW_MS 250
/* Locks on the server that hangs, beside those that are measured. */
#define OTHERS 4
#define MANY 150

static redis_fleet fleet;

static int start(void **state)
{
    (void)state;
    fleet_start_masters(&fleet, SERVERS);
    return 0;
}

static int start_with_replicas(void **state)
{
    (void)state;
    fleet_start_cluster(&fleet, 3);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    fleet_stop(&fleet);
    return 0;
}

/* A lock, and when it was renewed. */
typedef struct renewed {
    char name[32];
    sneck_lock *lock;
    int64_t at_ms; /* the last time; 0: never */
} renewed;

typedef struct lateness {
    int64_t sum_ms; /* of how much longer than RENEW_MS it took from one renewal to the next */
    int64_t most_ms;
    unsigned count;
} lateness;

static void note_renewal(renewed *one, const sneck_event *event, lateness *found)
{
    int64_t late_ms = event->time_ms - one->at_ms - RENEW_MS;
    if (one->at_ms != 0) {
        late_ms = late_ms > 0 ? late_ms : 0;
        found->sum_ms += late_ms;
        found->most_ms = late_ms > found->most_ms ? late_ms : found->most_ms;
        found->count++;
    }
    one->at_ms = event->time_ms;
}

/* What is measured: the same number of locks on each of some servers, of which the first will hang. */
typedef struct scene {
    sneck_client *client;
    size_t servers;
    renewed locks[SERVERS][EACH];
    lateness before;
    lateness frozen;
} scene;

/* Listens for so long to the renewals of locks on all servers but the first. */
static lateness measure(scene *self, int64_t length_ms)
{
    lateness found = { 0 };
    int64_t until_ms = test_now_ms() + length_ms;
    int fd = sneck_event_fd(self->client);
    for (int64_t left_ms = length_ms; left_ms > 0; left_ms = until_ms - test_now_ms()) {
        sneck_event event;
        if (!test_readable(fd, (int)left_ms) || !sneck_event_next(self->client, &event) ||
            event.kind != SNECK_EVENT_RENEWED)
            continue;
        for (size_t i = 0; i < (self->servers - 1) * EACH; i++) {
            renewed *one = &self->locks[1 + i / EACH][i % EACH];
            if (strcmp(one->name, event.name) == 0)
                note_renewal(one, &event, &found);
        }
    }
    return found;
}

static double mean(const lateness *found)
{
    return found->count == 0 ? 0 : (double)found->sum_ms / found->count;
}

static sneck_lock_options short_lease(int64_t renew_ms)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = LEASE_MS;
    options.renew_ms = renew_ms;
    return options;
}

static sneck_lock *lock_on(sneck_client *client, size_t server, unsigned number, const sneck_lock_options *options)
{
    char name[32];
    return test_mutex(client, fleet_name_on(&fleet, server, number, name), options);
}

/* Takes all locks, and sees how they are renewed while all servers are well. */
static void begin(scene *self, size_t servers, const char *keys)
{
    sneck_error error;
    sneck_lock_options options = short_lease(RENEW_MS);
    *self = (scene){ .servers = servers };
    EXPECT(SNECK_OK, sneck_open(fleet_cluster_url(&fleet, keys), NULL, &self->client, &error));
    assert_true(sneck_event_fd(self->client) >= 0);
    for (size_t server = 0; server < servers; server++) {
        for (unsigned i = 0; i < EACH; i++) {
            renewed *one = &self->locks[server][i];
            (void)fleet_name_on(&fleet, server, i, one->name);
            one->lock = test_mutex(self->client, one->name, &options);
            EXPECT(SNECK_OK, sneck_acquire(one->lock, 0, &error));
        }
    }
    self->before = measure(self, INT64_C(2) * LEASE_MS);
}

/* Longer than the lease, and than a call to a silent server may take. */
static void watch_frozen(scene *self)
{
    self->frozen = measure(self, INT64_C(3) * LEASE_MS);
    const lateness *before = &self->before;
    const lateness *frozen = &self->frozen;
    print_message("# figure: %zu masters: renewals later than due before one was frozen: mean %.1f ms, latest %d ms,"
                  " of %u; on the others while it was: mean %.1f ms, latest %d ms, of %u\n",
                  self->servers, mean(before), (int)before->most_ms, before->count, mean(frozen), (int)frozen->most_ms,
                  frozen->count);
    for (unsigned i = 0; i < EACH; i++) {
        assert_false(sneck_is_held(self->locks[0][i].lock));
        for (size_t server = 1; server < self->servers; server++)
            assert_true(sneck_is_held(self->locks[server][i].lock));
    }
}

static void thaw(size_t server)
{
    assert_int_equal(kill(fleet.servers[server].pid, SIGCONT), 0);
    for (size_t i = 0; i < fleet.count; i++)
        fleet_await(&fleet.servers[i], "cluster_state:ok", "CLUSTER INFO");
}

/* Those on the first server were lost. Held up once, each of the others would be late by longer than its lease. */
static void end(scene *self)
{
    sneck_error error;
    for (size_t server = 0; server < self->servers; server++) {
        for (unsigned i = 0; i < EACH; i++) {
            EXPECT(server == 0 ? SNECK_LOST : SNECK_OK, sneck_release(self->locks[server][i].lock, &error));
            sneck_lock_free(self->locks[server][i].lock);
        }
    }
    sneck_close(self->client);
    assert_true(self->before.count > (self->servers - 1) * EACH && self->frozen.count > (self->servers - 1) * EACH);
    assert_true(mean(&self->frozen) < mean(&self->before) + 50);
}

static void test_a_server_that_hangs_holds_up_nothing_on_the_others(void **state)
{
    (void)state;
    scene self;
    begin(&self, SERVERS, NULL);
    assert_int_equal(kill(fleet.servers[0].pid, SIGSTOP), 0);
    watch_frozen(&self);
    thaw(0);
    end(&self);
}

static void count_down(void *context, sneck_status status, const sneck_error *error)
{
    (void)status;
    (void)error;
    (void)atomic_fetch_sub((atomic_uint *)context, 1);
}

static void test_requests_to_a_server_that_hangs_hold_up_no_renewals(void **state)
{
    (void)state;
    sneck_error error;
    scene self;
    begin(&self, SERVERS, NULL);
    sneck_lock_options options = short_lease(RENEW_MS);
    options.owner = SNECK_OWNER_HANDLE;
    sneck_lock *others[OTHERS];
    for (unsigned i = 0; i < OTHERS; i++)
        others[i] = lock_on(self.client, 0, EACH + i, &options);
    static atomic_uint left;
    atomic_store(&left, OTHERS);
    assert_int_equal(kill(fleet.servers[0].pid, SIGSTOP), 0);
    for (unsigned i = 0; i < OTHERS; i++)
        EXPECT(SNECK_OK, sneck_acquire_async(others[i], TEST_PATIENCE_MS, count_down, &left, NULL, &error));
    watch_frozen(&self);
    thaw(0);
    int64_t until_ms = test_now_ms() + INT64_C(2) * TEST_PATIENCE_MS;
    while (atomic_load(&left) > 0) {
        assert_true(test_now_ms() < until_ms);
        (void)usleep(1000);
    }
    for (unsigned i = 0; i < OTHERS; i++)
        sneck_lock_free(others[i]);
    end(&self);
}

static void test_locks_to_be_had_again_from_a_server_that_hangs_hold_up_no_renewals(void **state)
{
    (void)state;
    sneck_error error;
    scene self;
    begin(&self, SERVERS, NULL);
    sneck_lock_options options = short_lease(RENEW_MS);
    options.recovery = SNECK_RECOVER_REACQUIRE;
    sneck_lock *others[OTHERS];
    for (unsigned i = 0; i < OTHERS; i++) {
        others[i] = lock_on(self.client, 0, EACH + i, &options);
        EXPECT(SNECK_OK, sneck_acquire(others[i], 0, &error));
    }
    assert_int_equal(kill(fleet.servers[0].pid, SIGSTOP), 0);
    watch_frozen(&self);
    thaw(0);
    for (unsigned i = 0; i < OTHERS; i++) {
        EXPECT(SNECK_LOST, sneck_release(others[i], &error));
        EXPECT(SNECK_OK, sneck_acquire(others[i], TEST_PATIENCE_MS, &error));
        EXPECT(SNECK_OK, sneck_release(others[i], &error));
        sneck_lock_free(others[i]);
    }
    end(&self);
}

/* Each of them falls due alone, so there are more requests under way than one flush of the renewals makes. */
static void test_many_locks_on_a_server_that_hangs_hold_up_no_renewals(void **state)
{
    (void)state;
    sneck_error error;
    scene self;
    begin(&self, SERVERS, NULL);
    sneck_lock_options options = short_lease(LEASE_MS / 2);
    static sneck_lock *others[MANY];
    for (unsigned i = 0; i < MANY; i++)
        others[i] = lock_on(self.client, 0, EACH + i, &options);
    for (unsigned i = 0; i < MANY; i++) {
        EXPECT(SNECK_OK, sneck_acquire(others[i], 0, &error));
        (void)usleep(LEASE_MS / 2 * 1000 / MANY);
    }
    assert_int_equal(kill(fleet.servers[0].pid, SIGSTOP), 0);
    watch_frozen(&self);
    thaw(0);
    for (unsigned i = 0; i < MANY; i++)
        sneck_lock_free(others[i]);
    end(&self);
}

/* Its replica hangs too: else that would take its place. */
static void test_where_replicas_are_waited_for_a_server_that_hangs_holds_up_nothing_either(void **state)
{
    (void)state;
    scene self;
    begin(&self, 3, "replicas=all");
    assert_int_equal(kill(fleet.servers[3].pid, SIGSTOP), 0);
    assert_int_equal(kill(fleet.servers[0].pid, SIGSTOP), 0);
    watch_frozen(&self);
    assert_int_equal(kill(fleet.servers[3].pid, SIGCONT), 0);
    thaw(0);
    end(&self);
}

#define ON_MASTERS(test) cmocka_unit_test_setup_teardown(test, start, stop)
#define WITH_REPLICAS(test) cmocka_unit_test_setup_teardown(test, start_with_replicas, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_MASTERS(test_a_server_that_hangs_holds_up_nothing_on_the_others),
        ON_MASTERS(test_requests_to_a_server_that_hangs_hold_up_no_renewals),
        ON_MASTERS(test_locks_to_be_had_again_from_a_server_that_hangs_hold_up_no_renewals),
        ON_MASTERS(test_many_locks_on_a_server_that_hangs_hold_up_no_renewals),
        WITH_REPLICAS(test_where_replicas_are_waited_for_a_server_that_hangs_holds_up_nothing_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
