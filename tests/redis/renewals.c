/*
 * Very many locks that one client holds on one server: all are renewed in time, by one thread, and at little cost.
 * In `./dev prove` 100,000 of them with leases of 30 s for 5 minutes; else a tenth, with leases as much shorter, so that
 * as many are renewed each second.
 */
#include "test.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "bed.h"
#include "client/client.h"
#include "redis_bed.h"

#define LOCKS_FULL 100000

/* With one, memory says nothing. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER 1
#else
#define HAS_SANITIZER TEST_HAS_TSAN
#endif

typedef struct measure {
    unsigned locks;
    int64_t lease_ms;
    int64_t lasts_ms;
} measure;

static measure size_of_run(void)
{
    unsigned locks = test_scaled(LOCKS_FULL);
    bool full = locks >= LOCKS_FULL;
    return (measure){
        .locks = locks,
        .lease_ms = full ? 30000 : 6000,
        .lasts_ms = full ? 300000 : 7000,
    };
}

/* What the process took so far. */
typedef struct effort {
    double cpu_s;
    double sleeps; /* times that a thread went to sleep */
} effort;

static effort effort_now(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (effort){
        .cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
        .sleeps = (double)usage.ru_nvcsw,
    };
}

/* Memory that the process has of its own, but for pages of files. */
static double memory_now(void)
{
    char line[128];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "re");
    assert_non_null(status);
    while (kib < 0 && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "RssAnon:", 8) == 0)
            kib = strtol(line + 8, NULL, 10);
    (void)fclose(status);
    return (double)kib * 1024;
}

/* A first lock starts the threads and connects, so that this does not count. */
static void acquire_first(sneck_client *client)
{
    sneck_error error;
    sneck_lock *lock = test_mutex(client, "first", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
}

static void acquire_all(sneck_client *client, sneck_lock *locks[], unsigned count)
{
    sneck_error error;
    for (unsigned i = 0; i < count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "many/%u", i);
        locks[i] = test_mutex(client, name, NULL);
        EXPECT(SNECK_OK, sneck_acquire(locks[i], 0, &error));
    }
}

static void test_very_many_locks_are_renewed_in_time(void **state)
{
    redis_bed *bed = *state;
    measure run = size_of_run();
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = run.lease_ms;
    options.max_locks = run.locks + 1;
    sneck_client *client = redis_bed_open(bed, NULL, &options);
    sneck_lock **locks = calloc(run.locks, sizeof(void *));
    assert_non_null(locks);
    memset(locks, 1, run.locks * sizeof(void *)); /* touched, so that it does not count */
    acquire_first(client);
    double memory = memory_now();
    acquire_all(client, locks, run.locks);
    uint64_t renewed = test_health(client).renewals;
    effort before = effort_now();
    int64_t began_ns = snk_now_ns();
    (void)poll(NULL, 0, (int)run.lasts_ms); /* nothing of this test runs meanwhile, but the library's own threads */
    double seconds = (double)(snk_now_ns() - began_ns) / 1e9;
    effort after = effort_now();
    double share = (after.cpu_s - before.cpu_s) / seconds * 100;
    sneck_health_report report = test_health(client);
    double count = (double)(report.renewals - renewed);
    double bytes = (memory_now() - memory) / run.locks;
    int64_t late_ms = atomic_load(&client->metrics.late_ns_max) / SNK_NS_PER_MS;
    printf(
        "# figure: %u held locks with leases of %lld s: %.0f renewals/s, none later than %lld ms, %.1f %% of a core, "
        "%.2f sleeps of a thread each, %llu lost, in %.0f s, %.0f bytes a lock\n",
        run.locks, (long long)run.lease_ms / 1000, count / seconds, (long long)late_ms, share,
        (after.sleeps - before.sleeps) / count, (unsigned long long)report.lost, seconds, bytes);
    assert_int_equal(report.lost, 0);
    assert_int_equal(report.renewals_failed, 0);
    /* Each lock once in each third of a lease, but for those whose turn comes just after the end. */
    assert_true(count >= (double)run.locks * ((double)run.lasts_ms * 3 / (double)run.lease_ms - 1.5));
    /* They leave together: no thread wakes up for one alone. */
    assert_true(after.sleeps - before.sleeps < count / 4);
    assert_true(late_ms <= run.lease_ms / 2);
    if (run.locks >= LOCKS_FULL) { /* with fewer, what all of them share counts for more */
        assert_true(share <= 10);
        assert_true(bytes <= 600 || HAS_SANITIZER);
    }
    for (unsigned i = 0; i < run.locks; i++)
        assert_true(sneck_is_held(locks[i]));
    sneck_close(client);
    for (unsigned i = 0; i < run.locks; i++)
        sneck_lock_free(locks[i]);
    free(locks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_very_many_locks_are_renewed_in_time, redis_bed_set_up,
                                        redis_bed_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
