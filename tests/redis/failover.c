/*
 * The master is killed while eight processes work, again and again; every second time nothing of the last moments had
 * reached a replica. What must hold: work goes on, whoever lost a lock is told, and tokens rise whatever was forgotten.
 */
#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "bed.h"
#include "process.h"
#include "redis_bed.h"
#include "redis_fleet.h"
#include "toil.h"

#define LEASE_MS 3000
#define STEADY_LEASE_MS 30000
#define DOOMED_LEASE_MS 9000
#define ROUNDS 20
#define GOES_ON_MS 2000 /* after there is a new master; stretched where everything is slower */

typedef struct scene {
    redis_fleet fleet;
    bool is_cluster;
    toil *work;
    sneck_client *client;
    sneck_lock *steady; /* held all the time, and known to the replicas */
    uint64_t steady_token;
    sneck_client *doomed_client; /* whose locks no replica hears of */
    int64_t promoted_ns;         /* when there was a new master, the last time */
    int64_t longest_failover_ms;
    int64_t longest_pause_ms; /* until the first one goes on */
    int64_t longest_round_ms; /* until each of them has had the lock again */
    int64_t longest_loss_ms;
    unsigned vanished;
} scene;

/* Why a lock was lost is worth to know where none should be. */
static void show_loss(void *context, const sneck_event *event)
{
    (void)context;
    if (event->kind == SNECK_EVENT_LOST)
        printf("# %s was lost: %s, with %lld ms left; %s\n", event->name, sneck_cause_name(event->cause),
               (long long)event->remaining_ms, event->message);
}

static sneck_client *open_client(const char *url, int64_t lease_ms)
{
    sneck_error error;
    sneck_client *client = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = lease_ms;
    options.on_event = show_loss;
    EXPECT(SNECK_OK, sneck_open(url, &options, &client, &error));
    return client;
}

static void begin(scene *self, const char *url)
{
    self->work = toil_start(url, LEASE_MS); /* before this process has threads */
    self->client = open_client(url, STEADY_LEASE_MS);
    self->doomed_client = open_client(url, DOOMED_LEASE_MS);
    self->steady = test_mutex(self->client, TOIL_TAG "steady", NULL);
    sneck_error error;
    EXPECT(SNECK_OK, sneck_acquire(self->steady, 0, &error));
    self->steady_token = sneck_token(self->steady);
}

static void end(scene *self, const char *kind, unsigned rounds)
{
    sneck_error error;
    assert_true(sneck_token(self->steady) == self->steady_token);
    EXPECT(SNECK_OK, sneck_release(self->steady, &error));
    sneck_lock_free(self->steady);
    sneck_close(self->doomed_client);
    sneck_close(self->client);
    printf("# figure: %s: %u masters killed; failover at most %lld ms, then the first of 8 processes had the lock "
           "within %lld ms "
           "and the last within %lld ms; %u locks vanished, each was told within %lld ms of the new master\n",
           kind, rounds, (long long)self->longest_failover_ms, (long long)self->longest_pause_ms,
           (long long)self->longest_round_ms, self->vanished, (long long)self->longest_loss_ms);
    toil_stop(self->work);
}

static void keep_longest(int64_t *longest_ms, int64_t ns)
{
    if (ns / SNK_NS_PER_MS > *longest_ms)
        *longest_ms = ns / SNK_NS_PER_MS;
}

static int64_t goes_on_ms(void)
{
    return GOES_ON_MS * (test_patience_ns() / (30 * SNK_NS_PER_S));
}

static unsigned slot_of_locks(scene *self)
{
    return fleet_slot(&self->fleet, TOIL_TAG);
}

/* Waits until everybody can know who is the master now. */
static size_t await_next(scene *self, size_t master)
{
    size_t next = master;
    if (!self->is_cluster) {
        next = fleet_await_master(&self->fleet, master);
        fleet_await_announced(&self->fleet, next);
        return next;
    }
    int64_t limit_ns = snk_now_ns() + test_patience_ns();
    while (next == master) {
        assert_true(snk_now_ns() < limit_ns);
        redis_bed_pause(1);
        next = fleet_owner(&self->fleet, slot_of_locks(self));
    }
    return next;
}

/* Kills the master; returns the new one. */
static size_t kill_master(scene *self, size_t master)
{
    int64_t killed_ns = snk_now_ns();
    redis_server_kill(&self->fleet.servers[master]);
    size_t next = await_next(self, master);
    self->promoted_ns = snk_now_ns();
    keep_longest(&self->longest_failover_ms, self->promoted_ns - killed_ns);
    keep_longest(&self->longest_pause_ms, toil_await_any_ns(self->work, self->promoted_ns));
    keep_longest(&self->longest_round_ms, toil_await_all_ns(self->work, self->promoted_ns));
    assert_true(self->longest_pause_ms < goes_on_ms());
    assert_true(self->longest_round_ms < 3 * goes_on_ms());
    return next;
}

/* Everything so far is on the replicas. */
static void await_replicas(const redis_fleet *fleet, size_t master, unsigned replicas)
{
    char text[32];
    (void)snprintf(text, sizeof text, "connected_slaves:%u", replicas);
    fleet_await(&fleet->servers[master], text, "INFO replication");
    fleet_await_acknowledged(&fleet->servers[master], replicas);
}

/*
 * The last failover is over for who holds a lock, too. A hold outlives each one that takes less than what is left of its
 * lease; not several in a row without a renewal between.
 */
static void await_renewed(scene *self)
{
    int64_t limit_ns = snk_now_ns() + test_patience_ns();
    while (sneck_remaining_ms(self->steady) < STEADY_LEASE_MS / 2) {
        assert_true(sneck_is_held(self->steady));
        assert_true(snk_now_ns() < limit_ns);
        redis_bed_pause(1);
    }
}

/* Nothing reaches the replicas, and then the master dies: what was locked since has vanished, and its holder is told. */
static size_t kill_forgetful_master(scene *self, size_t master)
{
    sneck_error error;
    fleet_cut_replication(&self->fleet, master);
    sneck_lock *doomed = test_mutex(self->doomed_client, TOIL_TAG "doomed", NULL);
    EXPECT(SNECK_OK, sneck_acquire(doomed, 5000, &error));
    uint64_t token = sneck_token(doomed);
    int lost_fd = sneck_lost_fd(doomed);
    redis_bed_pause(50); /* work goes on, to be forgotten */
    size_t next = kill_master(self, master);
    assert_string_equal(fleet_ask(&self->fleet.servers[next], "EXISTS lock:" TOIL_TAG "doomed"), "0");
    assert_true(test_readable(lost_fd, TEST_PATIENCE_MS));
    int64_t told_ns = snk_now_ns() - self->promoted_ns;
    keep_longest(&self->longest_loss_ms, told_ns);
    assert_true(told_ns < (DOOMED_LEASE_MS / 3 + goes_on_ms()) * SNK_NS_PER_MS); /* at its next renewal */
    EXPECT(SNECK_LOST, sneck_release(doomed, &error));
    EXPECT(SNECK_OK, sneck_acquire(doomed, 5000, &error));
    assert_true(sneck_token(doomed) > token);
    EXPECT(SNECK_OK, sneck_release(doomed, &error));
    sneck_lock_free(doomed);
    self->vanished++;
    return next;
}

static void test_sentinels_promote_a_replica_and_work_goes_on(void **state)
{
    (void)state;
    scene *self = calloc(1, sizeof *self);
    assert_non_null(self);
    fleet_start_sentinels(&self->fleet, NULL);
    begin(self, fleet_sentinel_url(&self->fleet, NULL));
    unsigned rounds = test_scaled(ROUNDS);
    for (unsigned i = 0; i < rounds; i++) {
        await_renewed(self);
        size_t master = fleet_await_settled(&self->fleet);
        (void)(i % 2 == 0 ? kill_forgetful_master(self, master) : kill_master(self, master));
        fleet_rejoin(&self->fleet, master, fleet_await_agreed(&self->fleet));
        assert_true(sneck_is_held(self->steady));
    }
    end(self, "sentinels", rounds);
    fleet_stop(&self->fleet);
    free(self);
}

static void test_a_cluster_promotes_a_replica_and_work_goes_on(void **state)
{
    (void)state;
    scene *self = calloc(1, sizeof *self);
    assert_non_null(self);
    self->is_cluster = true;
    fleet_start_cluster(&self->fleet, 3);
    begin(self, fleet_cluster_url(&self->fleet, NULL));
    unsigned rounds = test_scaled(ROUNDS);
    for (unsigned i = 0; i < rounds; i++) {
        size_t master = fleet_owner(&self->fleet, slot_of_locks(self));
        await_replicas(&self->fleet, master, 1);
        await_renewed(self);
        (void)(i % 2 == 0 ? kill_forgetful_master(self, master) : kill_master(self, master));
        assert_true(redis_server_restart(&self->fleet.servers[master])); /* it finds its place by itself */
        assert_true(sneck_is_held(self->steady));
    }
    end(self, "cluster", rounds);
    fleet_stop(&self->fleet);
    free(self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentinels_promote_a_replica_and_work_goes_on),
        cmocka_unit_test(test_a_cluster_promotes_a_replica_and_work_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
