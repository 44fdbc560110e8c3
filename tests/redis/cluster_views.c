/* The servers of a cluster do not learn at the same time who has died, and who serves in its place. */
#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "bed.h"
#include "process.h"
#include "redis/topology.h"
#include "redis_bed.h"
#include "redis_fleet.h"

#define STALE 0 /* is asked first */
#define KNOWING 1
#define DEAD 2
#define HEIR (DEAD + 3) /* its replica */

typedef struct scene {
    redis_fleet fleet;
    unsigned slot; /* one of those of the server that dies */
    snk_topology *topology;
} scene;

static snk_topology *open_topology(const redis_fleet *fleet)
{
    snk_redis_address hosts[3];
    for (size_t i = 0; i < 3; i++)
        assert_true(snk_redis_address_set(&hosts[i], "127.0.0.1", strlen("127.0.0.1"), fleet->servers[i].port));
    snk_topology_config config = {
        .kind = SNK_TOPOLOGY_CLUSTER,
        .server = { .user = "sneck", .password = "secret" },
        .hosts = hosts,
        .host_count = 3,
    };
    sneck_error error;
    snk_topology *topology = NULL;
    EXPECT(SNECK_OK, snk_topology_open(&config, &topology, &error));
    return topology;
}

static void ping(const scene *self, bool hasty, snk_redis_call *call)
{
    snk_redis_call_init(call);
    assert_int_equal(snk_redis_call_format(call, 1, (const char *const[]){ "PING" }, NULL, NULL), SNECK_OK);
    call->slot = (uint16_t)self->slot;
    call->hasty = hasty;
    snk_topology_drive(self->topology, &(snk_redis_call *){ call }, 1);
}

/* All servers are known, and the replica of one of them will not take its place before it is told to. */
static int begin(void **state)
{
    scene *self = calloc(1, sizeof *self);
    assert_non_null(self);
    fleet_start_cluster(&self->fleet, 3);
    fleet_do(&self->fleet.servers[HEIR], "CONFIG SET cluster-replica-no-failover yes");
    self->slot = 16383;
    assert_int_equal(fleet_owner(&self->fleet, self->slot), DEAD);
    self->topology = open_topology(&self->fleet);
    snk_redis_call call;
    ping(self, false, &call);
    assert_int_equal(call.outcome, SNK_REDIS_REPLY);
    snk_redis_call_deinit(&call);
    *state = self;
    return 0;
}

static int end(void **state)
{
    scene *self = *state;
    snk_topology_close(self->topology);
    fleet_stop(&self->fleet);
    free(self);
    return 0;
}

static size_t owner_seen_by(const scene *self, size_t server)
{
    return fleet_owner_seen_by(&self->fleet, &self->fleet.servers[server], self->slot);
}

static void test_a_server_that_missed_a_failover_is_not_believed(void **state)
{
    scene *self = *state;
    redis_server *servers = self->fleet.servers;
    char id[64];
    (void)snprintf(id, sizeof id, "%s", fleet_ask(&servers[HEIR], "CLUSTER MYID"));
    fleet_do(&servers[STALE], "CLUSTER FORGET %s", id); /* it hears nothing of that one for a minute */
    redis_server_kill(&servers[DEAD]);
    fleet_do(&servers[HEIR], "CLUSTER FAILOVER TAKEOVER");
    int64_t limit_ns = snk_now_ns() + test_patience_ns();
    while (owner_seen_by(self, KNOWING) != HEIR) {
        assert_true(snk_now_ns() < limit_ns);
        redis_bed_pause(1);
    }
    assert_int_equal(owner_seen_by(self, STALE), DEAD);
    snk_redis_call call;
    ping(self, false, &call);
    if (call.outcome == SNK_REDIS_UNCERTAIN) { /* it met the end of the connection */
        snk_redis_call_deinit(&call);
        ping(self, false, &call);
    }
    assert_int_equal(owner_seen_by(self, STALE), DEAD);
    assert_int_equal(call.outcome, SNK_REDIS_REPLY);
    snk_redis_call_deinit(&call);
}

static long count_looks(const scene *self)
{
    const char *text = "cmdstat_cluster|slots:calls=";
    const char *found = strstr(fleet_ask(&self->fleet.servers[KNOWING], "INFO commandstats"), text);
    return found == NULL ? 0 : strtol(found + strlen(text), NULL, 10);
}

/* Renewals do not wait: whoever comes next is to find that the new server is known. */
static void test_while_a_server_is_away_it_is_looked_for_though_nobody_waits(void **state)
{
    enum {
        LOOKS = 5 /* one is what the call itself causes, and another if it met the end of the connection */
    };
    scene *self = *state;
    redis_server_kill(&self->fleet.servers[DEAD]);
    long before = count_looks(self);
    snk_redis_call call;
    ping(self, true, &call);
    assert_int_not_equal(call.outcome, SNK_REDIS_REPLY);
    snk_redis_call_deinit(&call);
    int64_t limit_ns = snk_now_ns() + 10 * SNK_NS_PER_S; /* a look without a reason comes after 15 s */
    while (count_looks(self) < before + LOOKS) {
        assert_true(snk_now_ns() < limit_ns);
        redis_bed_pause(5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_server_that_missed_a_failover_is_not_believed, begin, end),
        cmocka_unit_test_setup_teardown(test_while_a_server_is_away_it_is_looked_for_though_nobody_waits, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
