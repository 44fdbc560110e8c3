/* What is in ZooKeeper: who may see it, what is left of it, what it is called, and whom a release wakes. */
#include "test.h"

#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/futex.h"
#include "bed.h"
#include "children.h"
#include "claims.h"
#include "store/zookeeper/paths.h"
#include "zookeeper_bed.h"

/* ---- Names ---- */

static void expect_folder(const char *prefix, const char *name, const char *expected)
{
    snk_zk_path path;
    char back[SNK_NAME_LENGTH_MAX + 1];
    snk_zk_folder("/locks", prefix, "", name, path);
    assert_string_equal(path, expected);
    assert_true(snk_zk_unescape(prefix, path + strlen("/locks/"), back));
    assert_string_equal(back, name);
}

static void test_names_are_escaped_and_found_again(void **state)
{
    (void)state;
    expect_folder("lock:", "job", "/locks/job");
    expect_folder("lock:", "lock:job", "/locks/lock:job");
    expect_folder("", "job", "/locks/job");
    expect_folder("mine:", "job", "/locks/mine:job");
    expect_folder("lock:", "a/b", "/locks/a%2Fb");
    expect_folder("lock:", "100%", "/locks/100%25");
    expect_folder("lock:", ".", "/locks/%2E");
    expect_folder("lock:", "..", "/locks/%2E.");
    expect_folder("lock:", "a.b", "/locks/a.b");
    expect_folder("lock:", "%latch:x", "/locks/%25latch:x");
    expect_folder("lock:", "\xC3\xA4", "/locks/\xC3\xA4");
    expect_folder("lock:", "\xEE\x80\x80", "/locks/%EE%80%80");
    expect_folder("lock:", "\xEF\xBF\xBD", "/locks/%EF%BF%BD");
    expect_folder("lock:", "\xEF\xA4\x80", "/locks/\xEF\xA4\x80");
    char name[SNK_NAME_LENGTH_MAX + 1];
    assert_false(snk_zk_unescape("lock:", "%latch:x", name));
    assert_false(snk_zk_unescape("mine:", "job", name));
}

static void test_nodes_are_ordered_also_where_their_numbers_run_over(void **state)
{
    (void)state;
    static const char *const names[] = { "lock-2147483646", "read-2147483647", "lock--2147483648",
                                         "write--2147483647" };
    snk_zk_node nodes[4];
    for (size_t i = 0; i < 4; i++)
        assert_true(snk_zk_node_parse(names[i], &nodes[i]));
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 4; j++)
            assert_int_equal(snk_zk_node_order(&nodes[i], &nodes[j]) < 0, i < j);
    assert_true(snk_zk_node_parse("read-0000000007", &nodes[0]) && snk_zk_node_parse("lock-0000000007", &nodes[1]));
    assert_true(snk_zk_node_order(&nodes[1], &nodes[0]) < 0); /* a writer before the reader that it becomes */
    assert_false(snk_zk_node_parse("count", &nodes[0]));
    assert_false(snk_zk_node_parse("lock-", &nodes[0]));
    assert_false(snk_zk_node_parse("lock-12x", &nodes[0]));
}

/* Names that ZooKeeper itself would refuse. */
static void test_any_name_can_be_locked(void **state)
{
    (void)state;
    static const char *const names[] = { "a/b", "..", ".", "%", "\xEE\x80\x80", "\xEF\xBF\xBF", "zookeeper", "a//b/" };
    sneck_error error;
    zookeeper_scene made = zookeeper_scene_open(zookeeper_bed_url(zookeeper_bed_server()->port, NULL), 5000);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        sneck_lock *lock = test_mutex(made.client, names[i], NULL);
        EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
        assert_true(test_is_held_in_store(made.client, names[i]));
        sneck_lock_free(lock);
    }
    zookeeper_scene_close(&made);
}

/* ---- Access ---- */

static const char *url_as(const char *login, const char *path)
{
    static char url[256];
    (void)snprintf(url, sizeof url, "zk://%s127.0.0.1:%d%s", login, zookeeper_bed_server()->port, path);
    return url;
}

static void test_only_who_made_a_lock_may_use_it(void **state)
{
    (void)state;
    sneck_error error;
    static const char *const strangers[] = { "", "alice:wrong@", "bob:secret@" };
    zookeeper_scene made = zookeeper_scene_open(url_as("alice:secret@", "/private"), 5000);
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        zookeeper_scene other = zookeeper_scene_open(url_as(strangers[i], "/private"), 5000);
        sneck_info *info = NULL;
        EXPECT(SNECK_DENIED, sneck_acquire(other.lock, 0, &error));
        EXPECT(SNECK_DENIED, sneck_inspect(other.client, "a", &info, &error));
        EXPECT(SNECK_DENIED, sneck_break(other.client, "a", sneck_token(made.lock), "test", &error));
        zookeeper_scene_close(&other);
    }
    zookeeper_scene friend = zookeeper_scene_open(url_as("alice:secret@", "/private"), 5000);
    EXPECT(SNECK_BUSY, sneck_acquire(friend.lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(made.lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(friend.lock, 0, &error));
    zookeeper_scene_close(&friend);
    zookeeper_scene_close(&made);
}

static void test_a_lease_that_the_session_cannot_keep_is_refused(void **state)
{
    (void)state;
    sneck_error error;
    zookeeper_scene made = zookeeper_scene_open(zookeeper_bed_url(zookeeper_bed_server()->port, NULL), 5000);
    EXPECT(SNECK_INVALID, sneck_acquire_for(made.lock, 0, 600000, &error));
    assert_non_null(strstr(error.message, "session="));
    (void)zookeeper_scene_pair(&made);
    zookeeper_scene_close(&made);
}

/* ---- What is left ---- */

static long node_count(void)
{
    const char *found = strstr(zookeeper_server_ask(zookeeper_bed_server(), "srvr"), "Node count: ");
    return found == NULL ? -1 : strtol(found + strlen("Node count: "), NULL, 10);
}

static void test_nothing_is_left_of_locks_that_nobody_uses(void **state)
{
    (void)state;
    sneck_error error;
    zookeeper_scene made = zookeeper_scene_open(zookeeper_bed_url(zookeeper_bed_server()->port, NULL), 5000);
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    long before = node_count();
    sneck_lock *held = test_mutex(made.client, "held", NULL);
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    for (int i = 0; i < 20; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%d", i);
        sneck_lock *lock = test_mutex(made.client, name, NULL);
        EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
        EXPECT(SNECK_OK, sneck_release(lock, &error));
        sneck_lock_free(lock);
    }
    /* Other tests' folders may go meanwhile as well; this one's held lock stays. */
    while (node_count() > before + 2) {
        assert_true(test_now_ms() < limit_ms);
        (void)poll(NULL, 0, 20);
    }
    assert_true(sneck_is_held(held) && test_is_held_in_store(made.client, "held"));
    sneck_lock_free(held);
    zookeeper_scene_close(&made);
}

/* ---- Whom a release wakes ---- */

enum {
    WAITERS = 16
};

typedef struct board {
    _Atomic uint32_t turn; /* how many have had the lock */
    _Atomic uint32_t news[WAITERS];
    _Atomic uint32_t places; /* given out */
    char url[256];
} board;

static board *shared;

static void count_news(void *context, const char *name, const snk_id *claim, const snk_grant *grant)
{
    (void)name;
    (void)claim;
    (void)grant;
    _Atomic uint32_t *news = context;
    (void)atomic_fetch_add(news, 1);
    snk_futex_wake(news, 1, true);
}

static snk_store *open_counting(const char *url_text, _Atomic uint32_t *news)
{
    snk_url url;
    snk_store *store = NULL;
    if (snk_url_parse(&url, url_text, NULL) != SNECK_OK)
        return NULL;
    snk_id client = test_id();
    snk_store_config config = {
        .url = &url, .prefix = "lock:", .identity = test_identity(&client), .news = count_news, .news_context = news
    };
    (void)snk_store_open(&config, &store, NULL);
    snk_url_deinit(&url);
    return store;
}

/* Waits in the queue, asks once when it is told to, and passes the lock on. */
static int wait_for_turn(void *context)
{
    (void)context;
    _Atomic uint32_t *news = &shared->news[atomic_fetch_add(&shared->places, 1)];
    snk_store *store = open_counting(shared->url, news);
    CHECK(store != NULL);
    snk_id claim = test_id();
    snk_answer answer = test_acquire(store, "a", &claim, TEST_QUEUE);
    CHECK(answer.kind == SNK_ANSWER_QUEUED);
    test_child_ready();
    while (atomic_load(news) == 0)
        (void)snk_futex_wait_any(&(snk_futex_word){ .word = news, .expected = 0, .shared = true }, 1, SNK_NEVER_NS);
    answer = test_renew(store, "a", &claim, TEST_LEASE_MS);
    CHECK(answer.kind == SNK_ANSWER_HELD);
    (void)atomic_fetch_add(&shared->turn, 1);
    answer = test_release(store, "a", &claim);
    CHECK(answer.kind == SNK_ANSWER_DONE);
    /* It stays until all have had their turn, so that it would hear what is not for it. */
    for (int i = 0; i < 3000 && atomic_load(&shared->turn) < WAITERS; i++)
        (void)poll(NULL, 0, 10);
    test_store_close(store);
    return 0;
}

static void test_a_release_wakes_one_of_sixteen(void **state)
{
    (void)state;
    test_child children[WAITERS];
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    (void)snprintf(shared->url, sizeof shared->url, "%s",
                   zookeeper_bed_url(zookeeper_bed_server()->port, "session=200s&timeout=20s"));
    snk_store *store = test_store(shared->url);
    snk_id holder = test_must_hold(store, "a");
    for (int i = 0; i < WAITERS; i++)
        children[i] = test_child_start(wait_for_turn, NULL);
    for (int i = 0; i < WAITERS; i++)
        test_child_await(&children[i]);
    test_expect_answer(test_release(store, "a", &holder), SNK_ANSWER_DONE);
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(test_child_join(&children[i]), 0);
    /* Each was told once: when its turn came. */
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(atomic_load(&shared->news[i]), 1);
    test_store_close(store);
    (void)munmap(shared, sizeof *shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_escaped_and_found_again),
        cmocka_unit_test(test_nodes_are_ordered_also_where_their_numbers_run_over),
        cmocka_unit_test_setup(test_any_name_can_be_locked, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_only_who_made_a_lock_may_use_it, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_a_lease_that_the_session_cannot_keep_is_refused, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_nothing_is_left_of_locks_that_nobody_uses, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_a_release_wakes_one_of_sixteen, zookeeper_bed_set_up),
    };
    int failed = cmocka_run_group_tests_name("zookeeper nodes", tests, NULL, NULL);
    zookeeper_bed_stop();
    return failed;
}
