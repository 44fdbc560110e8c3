/* What the server may answer instead of doing it, each provoked on a real one. */
#include "test.h"

#include <pthread.h>
#include <string.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "bed.h"
#include "redis_bed.h"

/* A client with a lock, on the server of the test. */
typedef struct scene {
    redis_bed *bed;
    sneck_client *client;
    sneck_lock *lock;
} scene;

static scene open_scene(redis_bed *bed, const char *keys, int64_t lease_ms)
{
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = lease_ms;
    scene made = { .bed = bed, .client = redis_bed_open(bed, keys, &options) };
    made.lock = test_mutex(made.client, "a", NULL);
    return made;
}

static void close_scene(scene *made)
{
    sneck_lock_free(made->lock);
    sneck_close(made->client);
}

/* Waits until the holder knows that it lost the lock; returns how long that took. */
static int64_t await_loss(const scene *made)
{
    int64_t begin_ms = test_now_ms();
    while (sneck_is_held(made->lock)) {
        assert_true(test_now_ms() - begin_ms < TEST_PATIENCE_MS);
        redis_bed_pause(1);
    }
    return test_now_ms() - begin_ms;
}

static void expect_pair(const scene *made)
{
    sneck_error error;
    EXPECT(SNECK_OK, sneck_acquire(made->lock, 20000, &error));
    EXPECT(SNECK_OK, sneck_release(made->lock, &error));
}

/* ---- Scripts and data gone ---- */

static void test_scripts_that_were_flushed_are_sent_again(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    scene made = open_scene(bed, NULL, 300);
    for (int i = 0; i < 20; i++) {
        redis_bed_do(bed, "SCRIPT FLUSH");
        EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
        redis_bed_do(bed, "SCRIPT FLUSH");
        EXPECT(SNECK_OK, sneck_extend(made.lock, 1000, &error));
        redis_bed_do(bed, "SCRIPT FLUSH");
        EXPECT(SNECK_OK, sneck_release(made.lock, &error));
    }
    close_scene(&made);
}

static void test_a_flushed_server_is_told_at_the_next_renewal_and_tokens_rise(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    scene made = open_scene(bed, NULL, 3000);
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    uint64_t before = sneck_token(made.lock);
    redis_bed_do(bed, "FLUSHALL");
    assert_true(await_loss(&made) < 2000); /* a third of the lease, not its end */
    EXPECT(SNECK_LOST, sneck_release(made.lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    assert_true(sneck_token(made.lock) > before);
    close_scene(&made);
}

static void test_a_restart_without_data_is_loss_and_tokens_rise(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    scene made = open_scene(bed, NULL, 3000);
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    uint64_t before = sneck_token(made.lock);
    redis_bed_crash(bed, false);
    redis_bed_restart(bed);
    (void)await_loss(&made);
    EXPECT(SNECK_LOST, sneck_release(made.lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 20000, &error));
    assert_true(sneck_token(made.lock) > before);
    close_scene(&made);
}

static void test_a_restart_with_data_is_survived(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    scene made = open_scene(bed, NULL, 6000);
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    uint64_t before = sneck_token(made.lock);
    redis_bed_crash(bed, true);
    redis_bed_restart(bed);
    redis_bed_pause(6000);
    assert_true(sneck_token(made.lock) == before); /* renewed since, or it would be over */
    EXPECT(SNECK_OK, sneck_release(made.lock, &error));
    close_scene(&made);
}

/* ---- Refused ---- */

static void expect_refused_until(const scene *made, sneck_status status, const char *words, const char *cure)
{
    sneck_error error;
    EXPECT(status, sneck_acquire(made->lock, 0, &error));
    if (strstr(error.message, words) == NULL)
        fail_msg("the message does not say %s: %s", words, error.message);
    assert_null(strstr(error.message, "secret"));
    redis_bed_do(made->bed, cure);
    expect_pair(made);
}

static void test_a_replica_refuses(void **state)
{
    redis_bed *bed = *state;
    scene made = open_scene(bed, NULL, 3000);
    redis_bed_do(bed, "REPLICAOF 127.0.0.1 1");
    expect_refused_until(&made, SNECK_UNAVAILABLE, "READONLY", "REPLICAOF NO ONE");
    close_scene(&made);
}

static void test_a_full_server_grants_nothing_but_renews_and_releases(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    scene made = open_scene(bed, NULL, 3000);
    sneck_lock *held = test_mutex(made.client, "held", NULL);
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    redis_bed_do(bed, "CONFIG SET maxmemory 1");
    EXPECT(SNECK_OK, sneck_extend(held, 5000, &error));
    EXPECT(SNECK_OK, sneck_release(held, &error));
    expect_refused_until(&made, SNECK_UNAVAILABLE, "OOM", "CONFIG SET maxmemory 0");
    sneck_lock_free(held);
    close_scene(&made);
}

static void test_a_server_that_cannot_save_refuses(void **state)
{
    redis_bed *bed = *state;
    scene made = open_scene(bed, NULL, 3000);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/dump.rdb", bed->server.directory);
    assert_int_equal(mkdir(path, 0700), 0); /* nothing can be saved over a folder */
    redis_bed_do(bed, "CONFIG SET save %s", "3600 1");
    redis_bed_do(bed, "SET something else");
    redis_bed_do(bed, "BGSAVE");
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (strstr(redis_bed_text(bed, "INFO persistence"), "rdb_last_bgsave_status:err") == NULL)
        assert_true(test_now_ms() < limit_ms);
    expect_refused_until(&made, SNECK_UNAVAILABLE, "MISCONF", "CONFIG SET stop-writes-on-bgsave-error no");
    close_scene(&made);
}

static void test_a_user_without_the_right_is_denied(void **state)
{
    redis_bed *bed = *state;
    scene made = open_scene(bed, NULL, 3000);
    redis_bed_do(bed, "ACL SETUSER sneck -evalsha");
    expect_refused_until(&made, SNECK_DENIED, "NOPERM", "ACL SETUSER sneck +evalsha");
    redis_bed_do(bed, "ACL SETUSER sneck resetkeys");
    expect_refused_until(&made, SNECK_DENIED, "NOPERM", "ACL SETUSER sneck ~lock:* ~{lock:*");
    close_scene(&made);
}

static void test_a_server_whose_script_runs_away_is_waited_for(void **state)
{
    redis_bed *bed = *state;
    scene made = open_scene(bed, NULL, 3000);
    redis_bed_do(bed, "CONFIG SET lua-time-limit 10");
    redisContext *runaway = redisConnectUnix(bed->server.socket);
    assert_non_null(runaway);
    (void)redisAppendCommand(runaway, "EVAL %s 0", "while true do end");
    int done = 0;
    while (done == 0)
        assert_int_equal(redisBufferWrite(runaway, &done), REDIS_OK);
    redis_bed_pause(100);
    sneck_error error;
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(made.lock, 0, &error));
    assert_non_null(strstr(error.message, "BUSY"));
    redis_bed_do(bed, "SCRIPT KILL");
    while (strcmp(redis_bed_text(bed, "PING"), "PONG") != 0)
        redis_bed_pause(1); /* it ends at its next look */
    expect_pair(&made);
    redisFree(runaway);
    close_scene(&made);
}

static void expect_open(sneck_status expected, const char *url)
{
    sneck_error error;
    sneck_client *client = NULL;
    EXPECT(expected, sneck_open(url, NULL, &client, &error));
    assert_null(client);
    assert_true(strlen(error.message) > 0);
    assert_null(strstr(error.message, "wrong-word"));
}

static void test_what_cannot_be_opened_says_why_without_the_password(void **state)
{
    redis_bed *bed = *state;
    char url[256];
    (void)snprintf(url, sizeof url, "redis://sneck:wrong-word@127.0.0.1:%d", bed->server.port);
    expect_open(SNECK_DENIED, url);
    (void)snprintf(url, sizeof url, "redis://sneck:secret@127.0.0.1:%d/99", bed->server.port);
    expect_open(SNECK_INVALID, url);
    (void)snprintf(url, sizeof url, "redis://sneck:secret@127.0.0.1:1/0?timeout=500");
    expect_open(SNECK_UNAVAILABLE, url);
    expect_open(SNECK_UNSUPPORTED, redis_bed_url(bed, "layout=redisson"));
    expect_open(SNECK_INVALID, redis_bed_url(bed, "replicas=some"));
    expect_open(SNECK_INVALID, redis_bed_url(bed, "replicas_timeout=100"));
    expect_open(SNECK_INVALID, redis_bed_url(bed, "layout=list"));
    expect_open(SNECK_INVALID, redis_bed_url(bed, "wake=all&announce=off"));
    expect_open(SNECK_INVALID, redis_bed_url(bed, "layuot=hash"));
    expect_open(SNECK_INVALID, redis_bed_url(bed, "timeout=soon"));
    expect_open(SNECK_UNAVAILABLE, "redis+cluster://127.0.0.1:1,127.0.0.1:2?timeout=500");
    expect_open(SNECK_UNSUPPORTED, "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3");
    redis_bed_do(bed, "CONFIG SET requirepass something");
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", bed->server.port);
    expect_open(SNECK_DENIED, url);
}

static void test_the_password_may_come_from_a_file(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *client = NULL;
    char path[128];
    char url[128];
    (void)snprintf(path, sizeof path, "%s/password", bed->server.directory);
    (void)snprintf(url, sizeof url, "redis://sneck@127.0.0.1:%d", bed->server.port);
    assert_int_equal(setenv("SNECK_PASSWORD_FILE", path, 1), 0);
    EXPECT(SNECK_DENIED, sneck_open(url, NULL, &client, &error));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("secret\n", file);
    assert_int_equal(fclose(file), 0);
    EXPECT(SNECK_OK, sneck_open(url, NULL, &client, &error));
    sneck_close(client);
    assert_int_equal(unsetenv("SNECK_PASSWORD_FILE"), 0);
}

/* ---- Slow, and cut ---- */

static void test_a_server_that_pauses_is_waited_for(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    scene made = open_scene(bed, NULL, 3000);
    int64_t begin_ms = test_now_ms();
    redis_bed_do(bed, "CLIENT PAUSE 300");
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    assert_true(test_now_ms() - begin_ms >= 250);
    /* The time that the answer took is not ours. */
    assert_true(sneck_remaining_ms(made.lock) <= 3000 - 250);
    EXPECT(SNECK_OK, sneck_release(made.lock, &error));
    redisContext *sleeper = redisConnectUnix(bed->server.socket);
    assert_non_null(sleeper);
    (void)redisAppendCommand(sleeper, "DEBUG SLEEP 0.3");
    int done = 0;
    while (done == 0)
        assert_int_equal(redisBufferWrite(sleeper, &done), REDIS_OK);
    expect_pair(&made);
    redisFree(sleeper);
    close_scene(&made);
}

typedef struct hammer {
    const scene *made;
    _Atomic int *inside;
    unsigned pairs;
    unsigned overlaps;
    unsigned unclear;
    atomic_bool *stop;
} hammer;

static void *hammer_on(void *argument)
{
    hammer *self = argument;
    sneck_error error;
    sneck_lock *lock = test_mutex(self->made->client, "a", NULL);
    while (!atomic_load(self->stop)) {
        if (sneck_acquire(lock, 5000, &error) != SNECK_OK) {
            self->unclear++;
            continue;
        }
        if (atomic_fetch_add(self->inside, 1) != 0)
            self->overlaps++;
        (void)atomic_fetch_sub(self->inside, 1);
        self->pairs++;
        if (sneck_release(lock, &error) != SNECK_OK)
            self->unclear++;
    }
    sneck_lock_free(lock);
    return NULL;
}

static void test_connections_killed_under_load_cost_no_exclusion_and_leave_nothing(void **state)
{
    redis_bed *bed = *state;
    enum {
        THREADS = 4
    };
    scene scenes[2] = { open_scene(bed, NULL, 2000), open_scene(bed, NULL, 2000) };
    _Atomic int inside = 0;
    atomic_bool stop = false;
    pthread_t threads[THREADS];
    hammer hammers[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        hammers[i] = (hammer){ .made = &scenes[i % 2], .inside = &inside, .stop = &stop };
        assert_int_equal(pthread_create(&threads[i], NULL, hammer_on, &hammers[i]), 0);
    }
    for (unsigned i = 0; i < test_scaled(300); i++) {
        redis_bed_pause(20);
        redis_bed_do(bed, i % 3 == 0 ? "CLIENT KILL TYPE pubsub" : "CLIENT KILL TYPE normal SKIPME yes");
    }
    atomic_store(&stop, true);
    unsigned pairs = 0;
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(hammers[i].overlaps, 0);
        pairs += hammers[i].pairs;
    }
    assert_true(pairs > 0);
    close_scene(&scenes[0]);
    close_scene(&scenes[1]);
    /* What was given up is chased, or ends with its lease; nothing stays. */
    redis_bed_await(bed, "EXISTS lock:a {lock:a}:queue {lock:a}:queue:info {lock:a}:queue:until", 0);
    redis_bed_expect_limits(bed);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, redis_bed_set_up, redis_bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_scripts_that_were_flushed_are_sent_again),
        TEST(test_a_flushed_server_is_told_at_the_next_renewal_and_tokens_rise),
        TEST(test_a_restart_without_data_is_loss_and_tokens_rise),
        TEST(test_a_restart_with_data_is_survived),
        TEST(test_a_replica_refuses),
        TEST(test_a_full_server_grants_nothing_but_renews_and_releases),
        TEST(test_a_server_that_cannot_save_refuses),
        TEST(test_a_user_without_the_right_is_denied),
        TEST(test_a_server_whose_script_runs_away_is_waited_for),
        TEST(test_what_cannot_be_opened_says_why_without_the_password),
        TEST(test_the_password_may_come_from_a_file),
        TEST(test_a_server_that_pauses_is_waited_for),
        TEST(test_connections_killed_under_load_cost_no_exclusion_and_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
