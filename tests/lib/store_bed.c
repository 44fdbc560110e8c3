#include "store_bed.h"

#include <string.h>

#include "base/error.h"
#if SNK_WITH_MYSQL
#include "mysql_bed.h"
#endif
#if SNK_WITH_POSTGRES
#include "postgres_bed.h"
#endif
#include "quorum_bed.h"
#include "redis_bed.h"
#include "redis_fleet.h"
#include "store/memory/memory.h"
#include "zookeeper_server.h"

/* Long enough for tests of locks that somebody holds all the while, short enough to wait for. */
#define QUORUM_LEASES_MS 12000

/* One server, or one cluster, for all tests of the suite, emptied before each. */
static redis_bed redis;
/* The same; each test has a path of its own on it. */
static zookeeper_server zookeeper;
static redis_fleet cluster;

typedef struct store_kind {
    const char *name;
    void (*open)(clients *world);
    bool fair; /* its clients ask to be served in order */
} store_kind;

static void open_all(clients *world, const char *url)
{
    world->a = test_store(url);
    world->b = test_store(url);
    world->c = test_store(url);
    world->d = test_store(url);
}

static void open_memory(clients *world)
{
    snk_store **views[] = { &world->b, &world->c, &world->d };
    world->a = test_store("memory:");
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        snk_id client = test_id();
        snk_identity identity = test_identity(&client);
        assert_int_equal(snk_memory_share(world->a, &identity, views[i], NULL), SNECK_OK);
    }
}

static void open_sqlite(clients *world)
{
    char url[128];
    test_make_folder(world->folder, sizeof world->folder);
    (void)snprintf(url, sizeof url, "sqlite://%s/locks.db", world->folder);
    open_all(world, url);
}

static void open_redis(clients *world, const char *keys)
{
    if (redis.server.pid == 0)
        redis_bed_start(&redis);
    redis_bed_do(&redis, "FLUSHALL");
    open_all(world, redis_bed_url(&redis, keys));
}

static void open_redis_hash(clients *world)
{
    open_redis(world, "layout=hash");
}

static void open_redis_string(clients *world)
{
    open_redis(world, "layout=string");
}

#if SNK_WITH_POSTGRES
static postgres_bed postgres;

static void open_postgres(clients *world, const char *keys)
{
    if (postgres.server.pid == 0)
        postgres_bed_start(&postgres);
    postgres_bed_clear(&postgres);
    open_all(world, postgres_bed_url(&postgres, keys));
}

static void open_postgres_lease(clients *world)
{
    open_postgres(world, "mode=lease");
}

static void open_postgres_row(clients *world)
{
    open_postgres(world, "mode=row");
}
#endif

#if SNK_WITH_MYSQL
static mysql_bed mysql;

static void open_mysql(clients *world, const char *keys)
{
    if (mysql.server.pid == 0)
        mysql_bed_start(&mysql);
    mysql_bed_clear(&mysql);
    open_all(world, mysql_bed_url(&mysql, keys));
}

static void open_mysql_lease(clients *world)
{
    open_mysql(world, "mode=lease");
}

static void open_mysql_row(clients *world)
{
    open_mysql(world, "mode=row");
}
#endif

/* The nodes are started before the tests on other stores, so that they count when their turn comes. */
static quorum_bed quorum;

static void open_quorum(clients *world)
{
    quorum_bed_await_ripe(&quorum);
    quorum_bed_clear(&quorum);
    open_all(world, quorum_bed_url(&quorum, NULL));
    test_lease_ms = quorum.lease_max_ms / 2;
    test_long_lease_ms = quorum.lease_max_ms;
}

#if SNK_HAS_ZOOKEEPER
static void open_zookeeper(clients *world)
{
    static unsigned paths;
    char url[128];
    if (!zookeeper_server_exists())
        test_skip("there is no ZooKeeper server on this machine");
    if (zookeeper.pid == 0)
        assert_true(zookeeper_server_start(&zookeeper, NULL));
    /* Some leases of the suite are an hour, and a session must be longer than any. */
    (void)snprintf(url, sizeof url, "zk://127.0.0.1:%d/test/%u?session=5000s&timeout=20s", zookeeper.port, ++paths);
    open_all(world, url);
}
#endif

/* Three servers that have a third of the slots each. */
static void open_redis_cluster(clients *world)
{
    if (cluster.count == 0)
        fleet_start_cluster(&cluster, 0);
    for (size_t i = 0; i < cluster.count; i++)
        fleet_do(&cluster.servers[i], "FLUSHALL");
    open_all(world, fleet_cluster_url(&cluster, NULL));
}

static const store_kind kinds[] = {
    { .name = "redis cluster", .open = open_redis_cluster },
#if SNK_WITH_MYSQL
    { .name = "mysql lease", .open = open_mysql_lease },
    { .name = "mysql row", .open = open_mysql_row },
#endif
#if SNK_WITH_POSTGRES
    { .name = "postgres lease", .open = open_postgres_lease },
    { .name = "postgres row", .open = open_postgres_row },
#endif
    { .name = "redis hash", .open = open_redis_hash },
    { .name = "redis string", .open = open_redis_string },
    { .name = "memory", .open = open_memory },
    { .name = "sqlite", .open = open_sqlite },
#if SNK_HAS_ZOOKEEPER
    { .name = "zookeeper", .open = open_zookeeper },
#endif
    { .name = "quorum", .open = open_quorum },
};

/* Of the test that runs. */
static bool asks_fairly;

bool store_bed_is_fair(void)
{
    return asks_fairly;
}

static int set_up(void **state)
{
    const store_kind *kind = *state;
    clients *world = calloc(1, sizeof *world);
    test_lease_ms = TEST_LEASE_MS_USUAL;
    test_long_lease_ms = TEST_LONG_MS_USUAL;
    kind->open(world);
    asks_fairly = kind->fair;
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    clients *world = *state;
    test_store_close(world->d);
    test_store_close(world->c);
    test_store_close(world->b);
    test_store_close(world->a);
    if (world->folder[0] != '\0')
        test_remove_folder(world->folder);
    free(world);
    return 0;
}

void expect(snk_answer answer, snk_answer_kind kind)
{
    test_expect_kind(&answer, kind);
}

snk_view *inspect(snk_store *store, const char *name)
{
    snk_view *view = snk_view_new();
    sneck_error error;
    if (store->ops->inspect(store, name, view, &error) != SNECK_OK)
        fail_msg("inspect: %s", error.message);
    return view;
}

int64_t remaining_ms(snk_store *store, const char *name)
{
    snk_view *view = inspect(store, name);
    int64_t remaining = view->info.held ? view->info.holder.remaining_ms : 0;
    snk_view_free(view);
    return remaining;
}

bool is_held(snk_store *store, const char *name)
{
    snk_view *view = inspect(store, name);
    bool held = view->info.held;
    snk_view_free(view);
    return held;
}

static bool is_held_with(const snk_view *view, const void *why)
{
    return view->info.held && (why == NULL || strcmp(view->info.holder.why, why) == 0);
}

static bool has_more_waiters(const snk_view *view, const void *count)
{
    return view->info.waiter_count > *(const size_t *)count;
}

/* Time passes while the store shows this. */
static void await_change(snk_store *store, const char *name, bool (*shows)(const snk_view *view, const void *what),
                         const void *what)
{
    int64_t limit_ns = snk_now_ns() + 20 * SNK_NS_PER_S;
    bool goes_on = true;
    while (goes_on) {
        snk_view *view = inspect(store, name);
        goes_on = shows(view, what);
        snk_view_free(view);
        assert_true(snk_now_ns() < limit_ns);
        struct timespec pause = snk_timespec(SNK_NS_PER_MS);
        (void)nanosleep(&pause, NULL);
    }
}

void await_free(snk_store *store, const char *name)
{
    await_change(store, name, is_held_with, NULL);
}

void await_end(snk_store *store, const char *name, const char *why)
{
    await_change(store, name, is_held_with, why);
}

void await_waiters(snk_store *store, const char *name, size_t count)
{
    await_change(store, name, has_more_waiters, &count);
}

void store_bed_needs(const clients *world, snk_mode mode)
{
    static const char *const things[] = {
        [SNK_MODE_EXCLUSIVE] = "locks", [SNK_MODE_SHARED] = "readers", [SNK_MODE_PERMIT] = "permits",
        [SNK_MODE_TAKE] = "signals",    [SNK_MODE_PASS] = "latches",
    };
    char why[80];
    if ((world->a->traits.modes & SNK_MODE_BIT(mode)) != 0)
        return;
    (void)snprintf(why, sizeof why, "SNECK_UNSUPPORTED: this store keeps no %s", things[mode]);
    test_skip(why);
}

void store_bed_needs_order(const clients *world)
{
    if (world->a->traits.keeps_no_order)
        test_skip("SNECK_UNSUPPORTED: this store keeps no order of those who wait");
}

void store_bed_warm_up(const clients *world)
{
    snk_store *stores[] = { world->b, world->c, world->d };
    snk_id claims[3];
    snk_id holder = test_must_hold(world->a, "warm");
    for (size_t i = 0; i < 3; i++)
        claims[i] = test_must_queue(stores[i], "warm", NULL);
    for (size_t i = 0; i < 3; i++)
        expect(test_release(stores[i], "warm", &claims[i]), SNK_ANSWER_DONE);
    expect(test_release(world->a, "warm", &holder), SNK_ANSWER_DONE);
}

#define KINDS (sizeof kinds / sizeof kinds[0])

static struct CMUnitTest test_on(const struct CMUnitTest *test, store_kind *kind)
{
    static const char fair[] = ", fair";
    size_t size = strlen(kind->name) + sizeof fair + strlen(test->name) + 3;
    char *name = malloc(size);
    assert_non_null(name);
    (void)snprintf(name, size, "%s%s: %s", kind->name, kind->fair ? fair : "", test->name);
    return (struct CMUnitTest){ name, test->test_func, set_up, tear_down, kind };
}

static int run(const char *group, const struct CMUnitTest tests[], size_t count, bool fair_too)
{
    static store_kind copies[2 * KINDS]; /* cmocka wants initial states that are not const */
    size_t total = (fair_too ? 2 : 1) * KINDS * count;
    for (size_t i = 0; i < 2 * KINDS; i++) {
        copies[i] = kinds[i % KINDS];
        copies[i].fair = i >= KINDS;
    }
    struct CMUnitTest *all = calloc(total, sizeof *all);
    if (all == NULL)
        return 1;
    for (size_t i = 0; i < total; i++)
        all[i] = test_on(&tests[i % count], &copies[i / count]);
    quorum_bed_start(&quorum, QUORUM_LEASES_MS);
    int failed = _cmocka_run_group_tests(group, all, total, NULL, NULL);
    quorum_bed_stop(&quorum);
    for (size_t i = 0; i < total; i++)
        free((void *)(uintptr_t)all[i].name);
    free(all);
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
    if (zookeeper.pid != 0)
        zookeeper_server_stop(&zookeeper);
    fleet_stop(&cluster);
    return failed;
}

int store_bed_run(const char *group, const struct CMUnitTest tests[], size_t count)
{
    return run(group, tests, count, false);
}

int store_bed_run_fair_too(const char *group, const struct CMUnitTest tests[], size_t count)
{
    return run(group, tests, count, true);
}
