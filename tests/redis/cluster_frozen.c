/* One of five servers of a cluster stands still: the locks on the others are renewed as if nothing were. */
#include "test.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "bed.h"
#include "redis_bed.h"
#include "redis_fleet.h"

#define SERVERS 5
#define EACH 4
#define LEASE_MS 1500
#define RENEW_MS 250

static redis_fleet fleet;

static int start(void **state)
{
    (void)state;
    fleet_start_masters(&fleet, SERVERS);
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

/* Listens for so long to the renewals of locks on all servers but the first. */
static lateness measure(sneck_client *client, renewed locks[SERVERS][EACH], int64_t length_ms)
{
    lateness found = { 0 };
    int64_t until_ms = test_now_ms() + length_ms;
    int fd = sneck_event_fd(client);
    for (int64_t left_ms = length_ms; left_ms > 0; left_ms = until_ms - test_now_ms()) {
        sneck_event event;
        if (!test_readable(fd, (int)left_ms) || !sneck_event_next(client, &event) || event.kind != SNECK_EVENT_RENEWED)
            continue;
        for (size_t i = 0; i < (size_t)(SERVERS - 1) * EACH; i++) {
            renewed *one = &locks[1 + i / EACH][i % EACH];
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

static void take_all(sneck_client *client, renewed locks[SERVERS][EACH])
{
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = LEASE_MS;
    options.renew_ms = RENEW_MS;
    for (size_t server = 0; server < SERVERS; server++) {
        for (unsigned i = 0; i < EACH; i++) {
            renewed *one = &locks[server][i];
            *one = (renewed){ .at_ms = 0 };
            (void)fleet_name_on(&fleet, server, i, one->name);
            one->lock = test_mutex(client, one->name, &options);
            EXPECT(SNECK_OK, sneck_acquire(one->lock, 0, &error));
        }
    }
}

static void release_all(renewed locks[SERVERS][EACH])
{
    sneck_error error;
    for (size_t server = 0; server < SERVERS; server++) {
        for (unsigned i = 0; i < EACH; i++) {
            EXPECT(server == 0 ? SNECK_LOST : SNECK_OK, sneck_release(locks[server][i].lock, &error));
            sneck_lock_free(locks[server][i].lock);
        }
    }
}

static void test_a_server_that_hangs_holds_up_nothing_on_the_others(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = NULL;
    renewed locks[SERVERS][EACH];
    EXPECT(SNECK_OK, sneck_open(fleet_cluster_url(&fleet, NULL), NULL, &client, &error));
    take_all(client, locks);
    assert_true(sneck_event_fd(client) >= 0);
    /* Longer than the lease, and than a call to a silent server may take. */
    int64_t length_ms = INT64_C(3) * LEASE_MS;
    lateness before = measure(client, locks, length_ms);
    assert_int_equal(kill(fleet.servers[0].pid, SIGSTOP), 0);
    lateness frozen = measure(client, locks, length_ms);
    print_message("# figure: five masters: renewals later than due before one was frozen: mean %.1f ms, latest %d ms,"
                  " of %u; on the other four while it was: mean %.1f ms, latest %d ms, of %u\n",
                  mean(&before), (int)before.most_ms, before.count, mean(&frozen), (int)frozen.most_ms, frozen.count);
    for (unsigned i = 0; i < EACH; i++) {
        assert_false(sneck_is_held(locks[0][i].lock));
        for (size_t server = 1; server < SERVERS; server++)
            assert_true(sneck_is_held(locks[server][i].lock));
    }
    assert_int_equal(kill(fleet.servers[0].pid, SIGCONT), 0);
    for (size_t i = 0; i < fleet.count; i++)
        fleet_await(&fleet.servers[i], "cluster_state:ok", "CLUSTER INFO");
    release_all(locks);
    sneck_close(client);
    assert_true(before.count > (SERVERS - 1) * EACH && frozen.count > (SERVERS - 1) * EACH);
    /* Held up once, each of them would be late by what a call may take, which is longer than the lease. */
    assert_true(mean(&frozen) < mean(&before) + 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_server_that_hangs_holds_up_nothing_on_the_others),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
