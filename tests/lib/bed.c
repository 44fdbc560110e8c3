#include "bed.h"

#include <dirent.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#if SNK_WITH_MYSQL
#include "mysql_bed.h"
#endif
#if SNK_WITH_POSTGRES
#include "postgres_bed.h"
#endif
#include "quorum_bed.h"
#include "redis_bed.h"

/* ---- Beds ---- */

#define LEASE_MAX_MS 3600000
/* Of the quorum: it counts so long after it was started. */
#define QUORUM_LEASES_MS 8000

static test_bed *new_bed(void)
{
    test_bed *bed = calloc(1, sizeof *bed);
    if (bed == NULL)
        return NULL;
    bed->is_fair = true;
    bed->lease_max_ms = LEASE_MAX_MS;
    return bed;
}

static int make_bed(void **state, bool on_disk)
{
    test_bed *bed = new_bed();
    if (bed == NULL)
        return -1;
    (void)snk_copy_text(bed->url, sizeof bed->url, "memory:");
    if (on_disk) {
        /* In memory where possible: a test of locks is no test of a disk that others use too. */
        bool in_memory = access("/dev/shm", W_OK) == 0;
        (void)snk_copy_text(bed->directory, sizeof bed->directory,
                            in_memory ? "/dev/shm/sneck-test-XXXXXX" : "/tmp/sneck-test-XXXXXX");
        if (mkdtemp(bed->directory) == NULL) {
            free(bed);
            return -1;
        }
        (void)snprintf(bed->url, sizeof bed->url, "sqlite://%s/locks.db", bed->directory);
    }
    bed->client = test_open(bed, NULL);
    *state = bed;
    return 0;
}

static int make_memory(void **state)
{
    return make_bed(state, false);
}

static int make_sqlite(void **state)
{
    return make_bed(state, true);
}

/* One server for all tests of a program, emptied before each. */
static redis_bed redis;

static int make_redis(void **state)
{
    test_bed *bed = new_bed();
    if (bed == NULL)
        return -1;
    if (redis.server.pid == 0)
        redis_bed_start(&redis);
    redis_bed_do(&redis, "FLUSHALL");
    (void)snprintf(bed->url, sizeof bed->url, "%s", redis_bed_url(&redis, NULL));
    bed->client = test_open(bed, NULL);
    *state = bed;
    return 0;
}

/* The nodes are started before the tests on other stores, so that they count when their turn comes. */
static quorum_bed quorum;

static int make_quorum(void **state)
{
    test_bed *bed = new_bed();
    if (bed == NULL)
        return -1;
    quorum_bed_await_ripe(&quorum);
    quorum_bed_clear(&quorum);
    bed->is_fair = false;
    bed->lease_max_ms = quorum.lease_max_ms;
    (void)snprintf(bed->url, sizeof bed->url, "%s", quorum_bed_url(&quorum, "lease=8s"));
    bed->client = test_open(bed, NULL);
    *state = bed;
    return 0;
}

void test_needs_order(const test_bed *bed)
{
    if (!bed->is_fair)
        test_skip("this store keeps no order of those who wait");
}

void test_needs_findings(const test_bed *bed)
{
    if (bed->tells_of_loss)
        test_skip("this store tells of a loss before the watchdog looks");
}

#if SNK_WITH_POSTGRES
static postgres_bed postgres;

static int make_on_postgres(void **state, const char *keys)
{
    test_bed *bed = new_bed();
    if (bed == NULL)
        return -1;
    if (postgres.server.pid == 0)
        postgres_bed_start(&postgres);
    postgres_bed_clear(&postgres);
    (void)snprintf(bed->url, sizeof bed->url, "%s", postgres_bed_url(&postgres, keys));
    bed->client = test_open(bed, NULL);
    *state = bed;
    return 0;
}

static int make_postgres(void **state)
{
    return make_on_postgres(state, NULL);
}

static int make_postgres_row(void **state)
{
    int made = make_on_postgres(state, "mode=row");
    if (made == 0)
        ((test_bed *)*state)->tells_of_loss = true;
    return made;
}
#endif

#if SNK_WITH_MYSQL
static mysql_bed mysql;

static int make_mysql(void **state)
{
    test_bed *bed = new_bed();
    if (bed == NULL)
        return -1;
    if (mysql.server.pid == 0)
        mysql_bed_start(&mysql);
    mysql_bed_clear(&mysql);
    (void)snprintf(bed->url, sizeof bed->url, "%s", mysql_bed_url(&mysql, NULL));
    bed->client = test_open(bed, NULL);
    *state = bed;
    return 0;
}
#endif

static void remove_directory(const char *directory)
{
    DIR *listing = opendir(directory);
    if (listing == NULL)
        return;
    const struct dirent *file = NULL;
    while ((file = readdir(listing)) != NULL) {
        char path[PATH_MAX];
        (void)snprintf(path, sizeof path, "%s/%s", directory, file->d_name);
        (void)unlink(path);
    }
    (void)closedir(listing);
    (void)rmdir(directory);
}

static int clear_bed(void **state)
{
    test_bed *bed = *state;
    sneck_close(bed->client);
    if (bed->directory[0] != '\0')
        remove_directory(bed->directory);
    free(bed);
    return 0;
}

static struct CMUnitTest test_on(const struct CMUnitTest *test, const char *store, CMFixtureFunction make)
{
    size_t size = strlen(store) + strlen(test->name) + 2;
    char *name = malloc(size);
    if (name != NULL)
        (void)snprintf(name, size, "%s %s", store, test->name);
    return (struct CMUnitTest){
        .name = name, .test_func = test->test_func, .setup_func = make, .teardown_func = clear_bed
    };
}

typedef struct store_choice {
    const char *name;
    CMFixtureFunction make;
    bool mutexes_only; /* it has no other kinds of locks */
    bool short_leases; /* it knows a longest one */
} store_choice;

static const store_choice stores[] = {
    { .name = "memory", .make = make_memory },
    { .name = "sqlite", .make = make_sqlite },
    { .name = "redis", .make = make_redis },
#if SNK_WITH_MYSQL
    { .name = "mysql", .make = make_mysql },
#endif
#if SNK_WITH_POSTGRES
    { .name = "postgres", .make = make_postgres },
    { .name = "postgres row", .make = make_postgres_row, .mutexes_only = true },
#endif
    { .name = "quorum", .make = make_quorum, .mutexes_only = true, .short_leases = true },
};

#define STORES (sizeof stores / sizeof stores[0])

/* Leaves out the stores that are what `without` is in any way. */
static int run_group(const struct CMUnitTest tests[], size_t count, const store_choice *without)
{
    struct CMUnitTest *all = calloc(STORES * count, sizeof *all);
    size_t made = 0;
    if (all == NULL)
        return 1;
    for (size_t i = 0; i < STORES * count; i++) {
        const store_choice *store = &stores[i / count];
        if (!(store->mutexes_only && without->mutexes_only) && !(store->short_leases && without->short_leases))
            all[made++] = test_on(&tests[i % count], store->name, store->make);
    }
    bool with_quorum = !without->mutexes_only && !without->short_leases;
    if (with_quorum)
        quorum_bed_start(&quorum, QUORUM_LEASES_MS);
    int failed = _cmocka_run_group_tests("client", all, made, NULL, NULL);
    if (with_quorum)
        quorum_bed_stop(&quorum);
    for (size_t i = 0; i < made; i++)
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
    return failed;
}

int test_run_on_stores(const struct CMUnitTest tests[], size_t count)
{
    return run_group(tests, count, &(store_choice){ .name = NULL });
}

int test_run_kinds_on_stores(const struct CMUnitTest tests[], size_t count)
{
    return run_group(tests, count, &(store_choice){ .mutexes_only = true });
}

int test_run_long_leases_on_stores(const struct CMUnitTest tests[], size_t count)
{
    return run_group(tests, count, &(store_choice){ .short_leases = true });
}

sneck_client *test_open(const test_bed *bed, const sneck_client_options *options)
{
    sneck_error error;
    sneck_client *client = NULL;
    EXPECT(SNECK_OK, sneck_open(bed->url, options, &client, &error));
    return client;
}

sneck_lock *test_mutex(sneck_client *client, const char *name, const sneck_lock_options *options)
{
    sneck_error error;
    sneck_lock *lock = NULL;
    EXPECT(SNECK_OK, sneck_mutex(client, name, options, &lock, &error));
    return lock;
}

sneck_lock *test_handle(sneck_client *client, const char *name)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.owner = SNECK_OWNER_HANDLE;
    return test_mutex(client, name, &options);
}

/* ---- Asserting ---- */

void test_expect(sneck_status expected, sneck_status status, const sneck_error *error, const char *call)
{
    if (status == expected && error->status == expected)
        return;
    fail_msg("%s: %s (error.status %s) instead of %s: %s", call, sneck_status_name(status),
             sneck_status_name(error->status), sneck_status_name(expected), error->message);
}

void test_append(char *to, size_t size, const char *text)
{
    size_t length = strlen(to);
    (void)snk_copy_text(to + length, size - length, text);
}

int64_t test_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool test_readable(int fd, int ms)
{
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
    return poll(&poll_fd, 1, ms) == 1 && (poll_fd.revents & POLLIN) != 0;
}

/* ---- Threads ---- */

typedef struct errand {
    void (*function)(void *argument);
    void *argument;
} errand;

static void *run(void *argument)
{
    const errand *self = argument;
    self->function(self->argument);
    return NULL;
}

void test_on_thread(void (*function)(void *argument), void *argument)
{
    errand self = { .function = function, .argument = argument };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, &self), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

typedef struct search {
    const char *name;
    unsigned waiting;
} search;

static bool look_for(void *context, const sneck_local *local)
{
    search *self = context;
    if (strcmp(local->name, self->name) == 0)
        self->waiting = local->waiting;
    return true;
}

void test_await_waiting(sneck_client *client, const char *name, unsigned waiting)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    for (;;) {
        search self = { .name = name };
        sneck_list_local(client, look_for, &self);
        if (self.waiting == waiting)
            return;
        if (test_now_ms() > until_ms)
            fail_msg("%u wait for %s, not %u", self.waiting, name, waiting);
        (void)usleep(1000);
    }
}

/* ---- Events and health ---- */

sneck_event test_await_event(sneck_client *client, sneck_event_kind kind)
{
    int fd = sneck_event_fd(client);
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    sneck_event event = { .kind = 0 };
    while (event.kind != kind) {
        int64_t left_ms = until_ms - test_now_ms();
        if (left_ms <= 0 || !test_readable(fd, (int)left_ms))
            fail_msg("no event \"%s\" came", sneck_event_kind_name(kind));
        (void)sneck_event_next(client, &event);
    }
    return event;
}

sneck_health_report test_health(sneck_client *client)
{
    sneck_error error;
    sneck_health_report report = SNECK_HEALTH_REPORT_INIT;
    EXPECT(SNECK_OK, sneck_health(client, &report, &error));
    return report;
}

static void await_check(sneck_client *client, sneck_check_kind kind, uint64_t runs, uint64_t findings)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    for (;;) {
        sneck_check_result result = test_health(client).checks[kind];
        if (result.runs >= runs && result.findings >= findings)
            return;
        if (test_now_ms() > until_ms)
            fail_msg("the check %s has run %llu times and found %llu", sneck_check_kind_name(kind),
                     (unsigned long long)result.runs, (unsigned long long)result.findings);
        (void)usleep(1000);
    }
}

void test_await_runs(sneck_client *client, sneck_check_kind kind, uint64_t runs)
{
    await_check(client, kind, runs, 0);
}

void test_await_findings(sneck_client *client, sneck_check_kind kind, uint64_t findings)
{
    await_check(client, kind, 0, findings);
}

/* ---- The store ---- */

static sneck_info *inspect(sneck_client *client, const char *name)
{
    sneck_error error;
    sneck_info *info = NULL;
    EXPECT(SNECK_OK, sneck_inspect(client, name, &info, &error));
    return info;
}

void test_break(sneck_client *client, const char *name)
{
    sneck_error error;
    sneck_info *info = inspect(client, name);
    assert_true(info->held);
    EXPECT(SNECK_OK, sneck_break(client, name, info->token, "a test", &error));
    sneck_info_free(info);
}

void test_find_loss(sneck_client *client, uint64_t lost)
{
    sneck_error error;
    sneck_status status = sneck_check(client, &error);
    assert_true(status == SNECK_LOST || status == SNECK_OK);
    assert_int_equal(test_health(client).lost, lost);
}

bool test_is_held_in_store(sneck_client *client, const char *name)
{
    sneck_info *info = inspect(client, name);
    bool held = info->held;
    sneck_info_free(info);
    return held;
}

size_t test_queue_in_store(sneck_client *client, const char *name)
{
    sneck_info *info = inspect(client, name);
    size_t count = info->waiter_count;
    sneck_info_free(info);
    return count;
}
