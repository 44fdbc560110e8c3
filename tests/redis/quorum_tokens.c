/*
 * Tokens of a quorum rise strictly, and its holders exclude each other, over thousands of acquisitions while nodes are
 * stopped, killed, restarted without data, emptied, and their connections cut; never more than two of five at a time.
 */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "bed.h"
#include "quorum_bed.h"

#define WORKERS 4
#define ACQUISITIONS 10000

static quorum_bed nodes;

/* What the lock protects. It is checked under a mutex of its own, so that it sees what comes, whoever comes. */
static struct resource {
    pthread_mutex_t mutex;
    uint64_t highest;
    unsigned count;
    unsigned too_low;
    unsigned met; /* two were inside at a time */
    unsigned inside;
} resource = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static atomic_uint wanted;
static atomic_uint failures;

static void enter(uint64_t token)
{
    (void)pthread_mutex_lock(&resource.mutex);
    resource.too_low += token <= resource.highest;
    if (token > resource.highest)
        resource.highest = token;
    resource.met += resource.inside++ > 0;
    (void)pthread_mutex_unlock(&resource.mutex);
}

static void leave(void)
{
    (void)pthread_mutex_lock(&resource.mutex);
    resource.inside--;
    resource.count++;
    (void)pthread_mutex_unlock(&resource.mutex);
}

static unsigned done_so_far(void)
{
    (void)pthread_mutex_lock(&resource.mutex);
    unsigned count = resource.count;
    (void)pthread_mutex_unlock(&resource.mutex);
    return count;
}

static void *work(void *context)
{
    sneck_client *client = context;
    sneck_lock *lock = NULL;
    sneck_error error;
    if (sneck_mutex(client, "tokens", NULL, &lock, &error) != SNECK_OK)
        return NULL;
    while (done_so_far() < atomic_load(&wanted)) {
        sneck_status status = sneck_acquire(lock, TEST_PATIENCE_MS, &error);
        if (status != SNECK_OK) {
            atomic_fetch_add(&failures, 1); /* allowed, as long as others go on */
            continue;
        }
        uint64_t token = sneck_token(lock);
        if (token != 0) {
            enter(token);
            leave();
        }
        (void)sneck_release(lock, &error);
    }
    sneck_lock_free(lock);
    return NULL;
}

/* ---- Faults ---- */

static bool is_over(void)
{
    return done_so_far() >= atomic_load(&wanted);
}

static void stop_two(const uint32_t pair[2])
{
    for (int i = 0; i < 2; i++)
        quorum_bed_freeze(&nodes, pair[i]);
    redis_bed_pause(150);
    for (int i = 0; i < 2; i++)
        quorum_bed_thaw(&nodes, pair[i]);
}

static void cut_two(const uint32_t pair[2], proxy_mode mode)
{
    for (int i = 0; i < 2; i++)
        proxy_harm(&nodes.proxies[pair[i]], mode, "");
    redis_bed_pause(100);
    for (int i = 0; i < 2; i++)
        proxy_harm(&nodes.proxies[pair[i]], PROXY_PASS, "");
}

/* They count again after a while; until then the other three must do. */
static void forget_two(const uint32_t pair[2], bool killed)
{
    for (int i = 0; i < 2; i++) {
        if (killed)
            quorum_bed_kill(&nodes, pair[i]);
        else
            redis_bed_do(&nodes.nodes[pair[i]], "FLUSHALL");
    }
    redis_bed_pause(50);
    for (int i = 0; i < 2 && killed; i++)
        quorum_bed_revive(&nodes, pair[i]);
    int64_t until_ms = test_now_ms() + QUORUM_LEASE_MAX_MS + 3000;
    while (test_now_ms() < until_ms && !is_over())
        redis_bed_pause(20);
}

static unsigned do_harm(void)
{
    static const uint32_t pairs[5][2] = { { 0, 1 }, { 1, 2 }, { 2, 3 }, { 3, 4 }, { 4, 0 } };
    unsigned faults = 0;
    for (; !is_over(); faults++) {
        const uint32_t *pair = pairs[faults % 5];
        switch (faults % 12) {
        case 3:
            forget_two(pair, true);
            break;
        case 9:
            forget_two(pair, false);
            break;
        case 0:
        case 4:
        case 8:
            stop_two(pair);
            break;
        case 1:
        case 5:
            cut_two(pair, PROXY_CUT_AFTER);
            break;
        case 2:
        case 6:
            cut_two(pair, PROXY_STALL_REPLIES);
            break;
        default:
            cut_two(pair, PROXY_STALL_REQUESTS);
            break;
        }
    }
    return faults;
}

static void test_tokens_rise_whatever_two_nodes_do(void **state)
{
    (void)state;
    sneck_client *clients[WORKERS];
    pthread_t threads[WORKERS];
    atomic_store(&wanted, test_scaled(ACQUISITIONS));
    for (int i = 0; i < WORKERS; i++)
        clients[i] = quorum_bed_open(&nodes, NULL);
    int64_t began_ms = test_now_ms();
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, clients[i]), 0);
    unsigned faults = do_harm();
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    printf("# figure: quorum: %u acquisitions by %d clients under %u faults in %.1f s: %u tokens too low, %u meetings, "
           "%u acquires failed\n",
           resource.count, WORKERS, faults, (double)(test_now_ms() - began_ms) / 1000, resource.too_low, resource.met,
           atomic_load(&failures));
    unsigned connections = 0;
    for (uint32_t i = 0; i < QUORUM_NODES; i++)
        connections += (unsigned)nodes.proxies[i].connections;
    printf("# figure: quorum: %.1f connections were made for each fault of two nodes\n",
           (double)connections / (faults > 0 ? faults : 1));
    for (int i = 0; i < WORKERS; i++)
        sneck_close(clients[i]);
    assert_int_equal(resource.too_low, 0);
    assert_int_equal(resource.met, 0);
    assert_true(resource.count >= atomic_load(&wanted));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_tokens_rise_whatever_two_nodes_do) };
    quorum_bed_choose(&nodes, QUORUM_LEASE_MAX_MS, true);
    return cmocka_run_group_tests(tests, quorum_bed_set_up, quorum_bed_tear_down);
}
