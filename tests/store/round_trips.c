/* What each thing costs on each store that has a server: round trips, counted by a proxy in between. */
#include "test.h"

#include <string.h>

#include "bed.h"
#include "claims.h"
#include "proxy.h"
#include "redis_bed.h"
#if SNK_WITH_MYSQL
#include "mysql_bed.h"
#endif
#if SNK_WITH_POSTGRES
#include "postgres_bed.h"
#endif
#if SNK_HAS_ZOOKEEPER
#include "zookeeper_bed.h"
#endif

/* ---- Servers ---- */

static fault_proxy proxy;
static char url[256];
static bool has_nodes; /* instead of a language for what is to be done with them */

static void use(int port, const char *(*url_at)(int port, const char *keys))
{
    assert_true(proxy_start(&proxy, port));
    (void)snprintf(url, sizeof url, "%s", url_at(proxy.port, NULL));
    has_nodes = false;
}

static redis_bed redis;

static int set_up_redis(void **state)
{
    (void)state;
    if (redis.server.pid == 0)
        redis_bed_start(&redis);
    redis_bed_do(&redis, "FLUSHALL");
    use(redis.server.port, redis_bed_url_at);
    return 0;
}

#if SNK_WITH_MYSQL
static mysql_bed mysql;

static int set_up_mysql(void **state)
{
    (void)state;
    if (mysql.server.pid == 0)
        mysql_bed_start(&mysql);
    mysql_bed_clear(&mysql);
    use(mysql.server.port, mysql_bed_url_at);
    return 0;
}
#endif

#if SNK_WITH_POSTGRES
static postgres_bed postgres;

static int set_up_postgres(void **state)
{
    (void)state;
    if (postgres.server.pid == 0)
        postgres_bed_start(&postgres);
    postgres_bed_clear(&postgres);
    use(postgres.server.port, postgres_bed_url_at);
    return 0;
}
#endif

#if SNK_HAS_ZOOKEEPER
static int set_up_zookeeper(void **state)
{
    (void)zookeeper_bed_set_up(state);
    use(zookeeper_bed_server()->port, zookeeper_bed_url);
    has_nodes = true;
    return 0;
}
#endif

static int tear_down(void **state)
{
    (void)state;
    proxy_stop(&proxy);
    return 0;
}

static int stop_servers(void **state)
{
    (void)state;
    if (redis.server.pid != 0)
        redis_bed_stop(&redis);
#if SNK_WITH_MYSQL
    if (mysql.server.pid != 0)
        mysql_bed_stop(&mysql);
#endif
#if SNK_WITH_POSTGRES
    if (postgres.server.pid != 0)
        postgres_bed_stop(&postgres);
#endif
#if SNK_HAS_ZOOKEEPER
    zookeeper_bed_stop();
#endif
    return 0;
}

/* ---- Those who are alone ---- */

typedef struct things {
    sneck_client *client;
    sneck_lock *reader;
    sneck_lock *writer;
    sneck_semaphore *semaphore;
    sneck_permit *permit;
    sneck_latch *latch;
} things;

static sneck_status read_acquire(things *all, sneck_error *error)
{
    return sneck_acquire(all->reader, 1000, error);
}

static sneck_status read_release(things *all, sneck_error *error)
{
    return sneck_release(all->reader, error);
}

static sneck_status write_acquire(things *all, sneck_error *error)
{
    return sneck_acquire(all->writer, 1000, error);
}

static sneck_status write_release(things *all, sneck_error *error)
{
    return sneck_release(all->writer, error);
}

static sneck_status permit_acquire(things *all, sneck_error *error)
{
    return sneck_semaphore_acquire(all->semaphore, 2, 1000, &all->permit, error);
}

static sneck_status permit_release(things *all, sneck_error *error)
{
    return sneck_permit_release(all->permit, error);
}

static sneck_status latch_set(things *all, sneck_error *error)
{
    return sneck_latch_set(all->latch, 1, error);
}

static sneck_status latch_down(things *all, sneck_error *error)
{
    return sneck_latch_count_down(all->latch, error);
}

static sneck_status latch_wait(things *all, sneck_error *error)
{
    return sneck_latch_wait(all->latch, 1000, error);
}

/*
 * In an order in which each finds nobody in its way. A server that runs a script or a procedure is asked once. ZooKeeper
 * knows nodes and nothing else: whoever is not alone has to be looked for, and a count is read before it is written.
 */
static const struct operation {
    const char *name;
    sneck_status (*run)(things *all, sneck_error *error);
    int most_with_nodes;
} operations[] = {
    { "acquire of the read side", read_acquire, 3 },
    { "release of the read side", read_release, 1 },
    { "acquire of the write side", write_acquire, 1 },
    { "release of the write side", write_release, 1 },
    { "acquire of a permit", permit_acquire, 4 },
    { "release of a permit", permit_release, 1 },
    { "setting of a latch", latch_set, 3 },
    { "count-down", latch_down, 3 },
    { "wait for a latch", latch_wait, 1 },
};

#define OPERATIONS (sizeof operations / sizeof operations[0])

static things open_things(void)
{
    sneck_error error;
    things all = { .client = NULL };
    EXPECT(SNECK_OK, sneck_open(url, NULL, &all.client, &error));
    EXPECT(SNECK_OK, sneck_read_lock(all.client, "a", NULL, &all.reader, &error));
    EXPECT(SNECK_OK, sneck_write_lock(all.client, "a", NULL, &all.writer, &error));
    EXPECT(SNECK_OK, sneck_semaphore_open(all.client, "s", NULL, &all.semaphore, &error));
    EXPECT(SNECK_OK, sneck_semaphore_set_permits(all.semaphore, 3, &error));
    EXPECT(SNECK_OK, sneck_latch_open(all.client, "l", NULL, &all.latch, &error));
    return all;
}

static void close_things(things *all)
{
    sneck_lock_free(all->reader);
    sneck_lock_free(all->writer);
    sneck_semaphore_free(all->semaphore);
    sneck_latch_free(all->latch);
    sneck_close(all->client);
}

/* The least of some rounds: a sign of life may come in between, and the first makes what is there from then on. */
static void test_one_who_is_alone_takes_the_fewest_round_trips(void **state)
{
    enum {
        ROUNDS = 5
    };
    (void)state;
    sneck_error error;
    things all = open_things();
    int least[OPERATIONS] = { 0 };
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < OPERATIONS; i++) {
            int before = atomic_load(&proxy.round_trips);
            EXPECT(SNECK_OK, operations[i].run(&all, &error));
            int trips = atomic_load(&proxy.round_trips) - before;
            if (round == 0 || trips < least[i])
                least[i] = trips;
        }
    }
    for (size_t i = 0; i < OPERATIONS; i++)
        printf("# figure: %.5s: %s: %d round trips\n", url, operations[i].name, least[i]);
    for (size_t i = 0; i < OPERATIONS; i++)
        if (least[i] > (has_nodes ? operations[i].most_with_nodes : 1))
            fail_msg("%s takes %d round trips", operations[i].name, least[i]);
    close_things(&all);
}

/* ---- Those who wait ---- */

/* Round trips of a release, and of the one that was granted what was released, with so many who wait. */
static int cost_of_handing_on(snk_grip grip, int waiters, long *bytes_out)
{
    static unsigned number;
    char name[16];
    (void)snprintf(name, sizeof name, "w%u", number++); /* nobody else uses it */
    snk_store *store = test_store(url);
    snk_id holder = test_id();
    snk_id first = test_id();
    snk_tally one = { .object = SNK_OBJECT_LOCK, .verb = SNK_TALLY_SET, .name = name, .value = 1 };
    snk_tallied tallied;
    test_ask how = { .lease_ms = TEST_LEASE_MS, .tokens = 1, .queue = true, .grip = grip };
    assert_int_equal(store->ops->tally(store, &one, &tallied, NULL), SNECK_OK);
    test_expect_answer(test_acquire(store, name, &holder, how), SNK_ANSWER_HELD);
    test_expect_answer(test_acquire(store, name, &first, how), SNK_ANSWER_QUEUED);
    for (int i = 1; i < waiters; i++) {
        snk_id other = test_id();
        test_expect_answer(test_acquire(store, name, &other, how), SNK_ANSWER_QUEUED);
    }
    long bytes = atomic_load(&proxy.bytes);
    int before = atomic_load(&proxy.round_trips);
    test_expect_answer(test_release_as(store, name, &holder, grip, true), SNK_ANSWER_DONE);
    test_expect_answer(test_renew_as(store, name, &first, grip), SNK_ANSWER_HELD);
    int trips = atomic_load(&proxy.round_trips) - before;
    *bytes_out = atomic_load(&proxy.bytes) - bytes;
    test_store_close(store);
    return trips;
}

/*
 * What wakes the next one may be under way, on a connection of its own, when the hand-off is over: then it is counted or
 * not. So the least with many is compared with the most with two.
 */
static void test_a_hand_off_takes_no_more_round_trips_when_many_wait(void **state)
{
    static const struct {
        const char *name;
        snk_grip grip;
    } cases[] = {
        { "of a lock", { .mode = SNK_MODE_EXCLUSIVE } },
        { "of a permit", { .mode = SNK_MODE_PERMIT, .units = 1 } },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int least[2] = { 0, 0 };
        int most[2] = { 0, 0 };
        long bytes[2] = { 0, 0 };
        for (int round = 0; round < 6; round++) {
            int many = round % 2;
            long used = 0;
            int trips = cost_of_handing_on(cases[i].grip, many ? 32 : 2, &used);
            if (round < 2 || trips < least[many])
                least[many] = trips;
            if (trips > most[many])
                most[many] = trips;
            if (round < 2 || used < bytes[many])
                bytes[many] = used;
        }
        printf(
            "# figure: %.5s: a hand-off %s takes %d to %d round trips and %ld bytes with 2 who wait, %d to %d and %ld "
            "with 32\n",
            url, cases[i].name, least[0], most[0], bytes[0], least[1], most[1], bytes[1]);
        assert_in_range(least[1], 1, most[0]);
    }
}

int main(void)
{
    test_lease_ms = 20000; /* ZooKeeper's sessions are no longer than 30 s */
#define ON(store, function)                                                                                            \
    {                                                                                                                  \
        .name = #store " " #function, .test_func = (function), .setup_func = set_up_##store,                           \
        .teardown_func = tear_down                                                                                     \
    }
#define EACH(store)                                                                                                    \
    ON(store, test_one_who_is_alone_takes_the_fewest_round_trips),                                                     \
        ON(store, test_a_hand_off_takes_no_more_round_trips_when_many_wait)
    const struct CMUnitTest tests[] = {
        EACH(redis),
#if SNK_WITH_MYSQL
        EACH(mysql),
#endif
#if SNK_WITH_POSTGRES
        EACH(postgres),
#endif
#if SNK_HAS_ZOOKEEPER
        EACH(zookeeper),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, stop_servers);
}
