#include "store_bed.h"

#include <string.h>

#include "base/error.h"
#include "quorum_bed.h"
#include "redis_bed.h"
#include "store/memory/memory.h"

/* Long enough for tests of locks that somebody holds all the while, short enough to wait for. */
#define QUORUM_LEASES_MS 12000

/* One server for all tests of the suite, emptied before each. */
static redis_bed redis;

typedef struct store_kind {
    const char *name;
    void (*open)(clients *world);
} store_kind;

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
    world->a = test_store(url);
    world->b = test_store(url);
    world->c = test_store(url);
    world->d = test_store(url);
}

static void open_redis(clients *world, const char *keys)
{
    if (redis.server.pid == 0)
        redis_bed_start(&redis);
    redis_bed_do(&redis, "FLUSHALL");
    world->a = test_store(redis_bed_url(&redis, keys));
    world->b = test_store(redis_bed_url(&redis, keys));
    world->c = test_store(redis_bed_url(&redis, keys));
    world->d = test_store(redis_bed_url(&redis, keys));
}

static void open_redis_hash(clients *world)
{
    open_redis(world, "layout=hash");
}

static void open_redis_string(clients *world)
{
    open_redis(world, "layout=string");
}

/* The nodes are started before the tests on other stores, so that they count when their turn comes. */
static quorum_bed quorum;

static void open_quorum(clients *world)
{
    quorum_bed_await_ripe(&quorum);
    quorum_bed_clear(&quorum);
    world->a = test_store(quorum_bed_url(&quorum, NULL));
    world->b = test_store(quorum_bed_url(&quorum, NULL));
    world->c = test_store(quorum_bed_url(&quorum, NULL));
    world->d = test_store(quorum_bed_url(&quorum, NULL));
    test_lease_ms = quorum.lease_max_ms / 2;
    test_long_lease_ms = quorum.lease_max_ms;
}

static const store_kind kinds[] = {
    { .name = "redis hash", .open = open_redis_hash }, { .name = "redis string", .open = open_redis_string },
    { .name = "memory", .open = open_memory },         { .name = "sqlite", .open = open_sqlite },
    { .name = "quorum", .open = open_quorum }, /* the last: it knows mutexes only */
};

static int set_up(void **state)
{
    const store_kind *kind = *state;
    clients *world = calloc(1, sizeof *world);
    test_lease_ms = TEST_LEASE_MS_USUAL;
    test_long_lease_ms = TEST_LONG_MS_USUAL;
    kind->open(world);
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

void await_free(snk_store *store, const char *name)
{
    int64_t limit_ns = snk_now_ns() + 20 * SNK_NS_PER_S;
    while (is_held(store, name)) {
        assert_true(snk_now_ns() < limit_ns);
        struct timespec pause = snk_timespec(SNK_NS_PER_MS);
        (void)nanosleep(&pause, NULL);
    }
}

void store_bed_needs(const clients *world, snk_mode mode)
{
    if ((world->a->traits.modes & SNK_MODE_BIT(mode)) == 0)
        test_skip("this store cannot do it");
}

void store_bed_needs_order(const clients *world)
{
    if (world->a->traits.keeps_no_order)
        test_skip("this store keeps no order of those who wait");
}

void store_bed_needs_blocks(const clients *world)
{
    if (!world->a->traits.token_blocks)
        test_skip("this store gives one token at a time");
}

#define KINDS (sizeof kinds / sizeof kinds[0])
#define KINDS_WITH_ALL_MODES (KINDS - 1)

static struct CMUnitTest test_on(const struct CMUnitTest *test, store_kind *kind)
{
    size_t size = strlen(kind->name) + strlen(test->name) + 3;
    char *name = malloc(size);
    assert_non_null(name);
    (void)snprintf(name, size, "%s: %s", kind->name, test->name);
    return (struct CMUnitTest){ name, test->test_func, set_up, tear_down, kind };
}

static int run_on(size_t kind_count, const char *group, const struct CMUnitTest tests[], size_t count)
{
    static store_kind copies[KINDS]; /* cmocka wants initial states that are not const */
    memcpy(copies, kinds, sizeof copies);
    struct CMUnitTest *all = calloc(kind_count * count, sizeof *all);
    if (all == NULL)
        return 1;
    for (size_t i = 0; i < kind_count * count; i++)
        all[i] = test_on(&tests[i % count], &copies[i / count]);
    int failed = _cmocka_run_group_tests(group, all, kind_count * count, NULL, NULL);
    for (size_t i = 0; i < kind_count * count; i++)
        free((void *)(uintptr_t)all[i].name);
    free(all);
    if (redis.server.pid != 0)
        redis_bed_stop(&redis);
    return failed;
}

int store_bed_run(const char *group, const struct CMUnitTest tests[], size_t count)
{
    quorum_bed_start(&quorum, QUORUM_LEASES_MS);
    int failed = run_on(KINDS, group, tests, count);
    quorum_bed_stop(&quorum);
    return failed;
}

int store_bed_run_kinds(const char *group, const struct CMUnitTest tests[], size_t count)
{
    return run_on(KINDS_WITH_ALL_MODES, group, tests, count);
}
