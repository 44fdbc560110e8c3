/*
 * What a server may answer instead of doing it, each provoked on a real one: the caller is told what and why, nothing is
 * left behind, a lock that was held before is held after, and once the cause is gone everything goes on.
 */
#include "test.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bed.h"
#include "redis_scene.h"

/* A client that holds one lock all the while, and is refused another. */
typedef struct trial {
    redis_scene scene;
    sneck_lock *held;
} trial;

static trial begin_with(redis_bed *bed, const char *keys)
{
    sneck_error error;
    trial made = { .scene = redis_scene_open(bed, keys, 5000) };
    made.held = test_mutex(made.scene.client, "held", NULL);
    EXPECT(SNECK_OK, sneck_acquire(made.held, 0, &error));
    return made;
}

static trial begin(redis_bed *bed)
{
    return begin_with(bed, NULL);
}

static void end(trial *made)
{
    sneck_error error;
    redis_scene_pair(&made->scene);
    assert_true(sneck_is_held(made->held));
    EXPECT(SNECK_OK, sneck_extend(made->held, 6000, &error));
    EXPECT(SNECK_OK, sneck_release(made->held, &error));
    sneck_lock_free(made->held);
    redis_scene_close(&made->scene);
    redis_scene_expect_free(&made->scene);
    redis_bed_expect_limits(made->scene.bed);
}

static void expect_words(const sneck_error *error, const char *words)
{
    if (strstr(error->message, words) == NULL || strstr(error->message, "redis 127.0.0.1:") == NULL)
        fail_msg("the message does not say %s, or not where: %s", words, error->message);
    assert_null(strstr(error->message, "secret"));
}

static void expect_refused(const trial *made, sneck_status status, const char *words)
{
    sneck_error error;
    EXPECT(status, sneck_acquire(made->scene.lock, 0, &error));
    expect_words(&error, words);
    EXPECT(status, sneck_acquire(made->scene.lock, 1000, &error)); /* the first contact fails at once */
    expect_words(&error, words);
    assert_false(sneck_is_held(made->scene.lock));
}

/* Cuts all connections. The first call that finds out may not know what became of it. */
static void cut_all(const trial *made)
{
    sneck_error error;
    redis_bed_do(made->scene.bed, "CLIENT KILL TYPE normal SKIPME yes");
    assert_int_not_equal(sneck_acquire(made->scene.lock, 0, &error), SNECK_OK);
}

/* A new client is told the same. */
static void expect_not_opened(const redis_bed *bed, sneck_status status, const char *words)
{
    sneck_error error;
    sneck_client *client = NULL;
    EXPECT(status, sneck_open(redis_bed_url(bed, NULL), NULL, &client, &error));
    assert_null(client);
    expect_words(&error, words);
}

/* ---- The state of the server ---- */

static void test_a_replica_refuses(void **state)
{
    redis_bed *bed = *state;
    trial made = begin(bed);
    redis_bed_do(bed, "REPLICAOF 127.0.0.1 1");
    expect_refused(&made, SNECK_UNAVAILABLE, "READONLY");
    redis_bed_do(bed, "REPLICAOF NO ONE");
    end(&made);
}

static void test_a_server_with_too_few_replicas_refuses(void **state)
{
    redis_bed *bed = *state;
    trial made = begin(bed);
    redis_bed_do(bed, "CONFIG SET min-replicas-to-write 1");
    expect_refused(&made, SNECK_UNAVAILABLE, "NOREPLICAS");
    redis_bed_do(bed, "CONFIG SET min-replicas-to-write 0");
    end(&made);
}

static void test_a_full_server_grants_nothing_but_renews_and_releases(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    trial made = begin(bed);
    sneck_lock *other = test_mutex(made.scene.client, "other", NULL);
    EXPECT(SNECK_OK, sneck_acquire(other, 0, &error));
    redis_bed_do(bed, "CONFIG SET maxmemory 1");
    EXPECT(SNECK_OK, sneck_extend(other, 5000, &error));
    EXPECT(SNECK_OK, sneck_release(other, &error));
    expect_refused(&made, SNECK_UNAVAILABLE, "OOM");
    redis_bed_do(bed, "CONFIG SET maxmemory 0");
    sneck_lock_free(other);
    end(&made);
}

static void test_a_full_server_counts_levels(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    trial made = begin_with(bed, "holds=store");
    const char *count = "EVAL %s 1 lock:held";
    const char *script = "return redis.call('HGET', KEYS[1], redis.call('HGET', KEYS[1], '~owner'))";
    uint64_t failed = test_health(made.scene.client).renewals_failed;
    redis_bed_do(bed, "CONFIG SET maxmemory 1");
    EXPECT(SNECK_OK, sneck_acquire(made.held, 0, &error));
    assert_int_equal(sneck_hold_count(made.held), 2);
    assert_string_equal(redis_bed_text(bed, count, script), "2");
    EXPECT(SNECK_OK, sneck_release(made.held, &error));
    assert_string_equal(redis_bed_text(bed, count, script), "1");
    assert_true(test_health(made.scene.client).renewals_failed == failed);
    redis_bed_do(bed, "CONFIG SET maxmemory 0");
    end(&made);
}

static void test_a_server_that_cannot_save_refuses(void **state)
{
    redis_bed *bed = *state;
    trial made = begin(bed);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/dump.rdb", bed->server.directory);
    assert_int_equal(mkdir(path, 0700), 0); /* nothing can be saved over a folder */
    redis_bed_do(bed, "CONFIG SET save %s", "3600 1");
    redis_bed_do(bed, "SET something else EX 60");
    redis_bed_do(bed, "BGSAVE");
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (strstr(redis_bed_text(bed, "INFO persistence"), "rdb_last_bgsave_status:err") == NULL)
        assert_true(test_now_ms() < limit_ms);
    expect_refused(&made, SNECK_UNAVAILABLE, "MISCONF");
    redis_bed_do(bed, "CONFIG SET stop-writes-on-bgsave-error no");
    end(&made);
}

static void await_answer(redis_bed *bed, const char *begins_with)
{
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (strncmp(redis_bed_text(bed, "GET x"), begins_with, strlen(begins_with)) != 0)
        assert_true(test_now_ms() < limit_ms);
}

static void test_a_server_whose_script_runs_away_is_waited_for(void **state)
{
    redis_bed *bed = *state;
    trial made = begin(bed);
    redis_bed_do(bed, "SET x fine EX 60");
    redis_bed_do(bed, "CONFIG SET lua-time-limit 10");
    redisContext *runaway = redis_bed_send_aside(bed, "EVAL %s 0", "while true do end");
    await_answer(bed, "BUSY");
    expect_refused(&made, SNECK_UNAVAILABLE, "BUSY");
    expect_not_opened(bed, SNECK_UNAVAILABLE, "BUSY");
    redis_bed_do(bed, "SCRIPT KILL");
    await_answer(bed, "fine"); /* it ends at its next look */
    end(&made);
    redisFree(runaway);
}

static void test_a_server_that_reads_its_data_is_waited_for(void **state)
{
    redis_bed *bed = *state;
    trial made = begin(bed);
    redis_bed_do(bed, "SET x fine EX 60");
    redis_bed_do(bed, "DEBUG POPULATE 2000 other 10");
    redis_bed_do(bed, "SAVE");
    redis_bed_do(bed, "CONFIG SET loading-process-events-interval-bytes 1024");
    redis_bed_do(bed, "CONFIG SET key-load-delay 1000");
    redisContext *loader = redis_bed_send_aside(bed, "DEBUG RELOAD %s", "NOSAVE");
    await_answer(bed, "LOADING");
    expect_refused(&made, SNECK_UNAVAILABLE, "LOADING");
    expect_not_opened(bed, SNECK_UNAVAILABLE, "LOADING");
    redis_bed_do(bed, "CONFIG SET key-load-delay 0");
    await_answer(bed, "fine");
    redis_bed_do(bed, "EVAL %s 0", "for i = 0, 1999 do redis.call('DEL', 'other:' .. i) end");
    end(&made);
    redisFree(loader);
}

static void test_a_server_without_room_is_waited_for(void **state)
{
    redis_bed *bed = *state;
    trial made = begin(bed);
    redis_bed_do(bed, "CONFIG SET maxclients 1");
    expect_not_opened(bed, SNECK_UNAVAILABLE, "max number of clients");
    cut_all(&made);
    expect_refused(&made, SNECK_UNAVAILABLE, "max number of clients");
    redis_bed_do(bed, "CONFIG SET maxclients 100");
    end(&made);
}

/* ---- Passwords and access rules ---- */

static void test_a_user_whose_password_was_changed_is_denied(void **state)
{
    redis_bed *bed = *state;
    trial made = begin(bed);
    redis_bed_do(bed, "ACL SETUSER sneck resetpass >other");
    cut_all(&made);
    expect_refused(&made, SNECK_DENIED, "WRONGPASS");
    redis_bed_do(bed, "ACL SETUSER sneck resetpass >secret");
    end(&made);
}

typedef struct lines {
    pthread_mutex_t mutex;
    char text[1 << 16];
} lines;

static void keep_line(void *context, sneck_log_level level, const char *text)
{
    lines *self = context;
    (void)level;
    (void)pthread_mutex_lock(&self->mutex);
    test_append(self->text, sizeof self->text, text);
    test_append(self->text, sizeof self->text, "\n");
    (void)pthread_mutex_unlock(&self->mutex);
}

static bool has_line_with(lines *self, const char *words)
{
    (void)pthread_mutex_lock(&self->mutex);
    bool has = strstr(self->text, words) != NULL;
    (void)pthread_mutex_unlock(&self->mutex);
    return has;
}

static void await_line(lines *self, const char *words)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (!has_line_with(self, words)) {
        if (test_now_ms() > until_ms)
            fail_msg("no line has %s:\n%s", words, self->text);
        (void)usleep(1000);
    }
}

/* Not even where the password is what is wrong. */
static void test_no_line_of_the_log_has_the_password(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    lines *self = calloc(1, sizeof *self);
    assert_non_null(self);
    (void)pthread_mutex_init(&self->mutex, NULL);
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.log = keep_line;
    options.log_context = self;
    sneck_client *client = redis_bed_open(bed, NULL, &options);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    redis_bed_do(bed, "ACL SETUSER sneck resetpass >another-word");
    redis_bed_do(bed, "CLIENT KILL USER sneck");
    await_line(self, "WRONGPASS");
    redis_bed_do(bed, "ACL SETUSER sneck resetpass >secret");
    await_line(self, "event=connection-up");
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
    assert_null(strstr(self->text, "secret"));
    assert_null(strstr(self->text, "another-word"));
    free(self);
}

static void test_a_user_without_the_right_is_denied(void **state)
{
    redis_bed *bed = *state;
    trial made = begin(bed);
    redis_bed_do(bed, "ACL SETUSER sneck -evalsha");
    expect_refused(&made, SNECK_DENIED, "NOPERM");
    redis_bed_do(bed, "ACL SETUSER sneck +evalsha resetkeys");
    expect_refused(&made, SNECK_DENIED, "NOPERM");
    redis_bed_do(bed, "ACL SETUSER sneck ~lock:* ~{lock:*");
    end(&made);
}

/* `taken_back`: what the acquire has done can be undone at once, because a release does not need that command. */
static void deny(const trial *made, const char *command, bool taken_back)
{
    redis_bed *bed = made->scene.bed;
    sneck_error error;
    redis_bed_do(bed, "ACL SETUSER sneck -%s", command);
    sneck_status status = sneck_acquire(made->scene.lock, 0, &error);
    if (status != SNECK_DENIED && (taken_back || status != SNECK_UNKNOWN))
        fail_msg("without %s: %s", command, sneck_status_name(status));
    expect_words(&error, "access rules");
    assert_int_equal(redis_bed_number(bed, "EXISTS lock:a"), 0);
    redis_bed_do(bed, "ACL SETUSER sneck +%s", command);
    redis_scene_pair(&made->scene);
}

/* Rules may forbid any command of a script, also one that comes after the lock was written. */
static void test_a_script_that_is_denied_halfway_leaves_nothing(void **state)
{
    static const char *const commands[] = { "set", "rpush" };
    static const char *const needed[] = { "exists", "time" };
    static const char *const layouts[] = { "layout=hash", "layout=string" };
    for (size_t i = 0; i < 2; i++) {
        trial made = begin_with(*state, layouts[i]);
        for (size_t j = 0; j < sizeof commands / sizeof commands[0]; j++)
            deny(&made, commands[j], true);
        for (size_t j = 0; j < sizeof needed / sizeof needed[0]; j++)
            deny(&made, needed[j], false);
        if (i == 0) {
            deny(&made, "hset", true);
            deny(&made, "pexpire", true);
        } else {
            deny(&made, "get", false);
        }
        end(&made);
    }
}

static void test_a_waiter_that_is_denied_halfway_leaves_nothing(void **state)
{
    static const char *const commands[] = { "hset", "zadd", "pexpire" };
    redis_bed *bed = *state;
    sneck_error error;
    trial made = begin(bed);
    sneck_client *other = redis_bed_open(bed, NULL, NULL);
    sneck_lock *holder = test_mutex(other, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        redis_bed_do(bed, "ACL SETUSER sneck -%s", commands[i]);
        EXPECT(SNECK_DENIED, sneck_acquire(made.scene.lock, 1000, &error));
        expect_words(&error, "access rules");
        redis_bed_do(bed, "ACL SETUSER sneck +%s", commands[i]);
        assert_int_equal(redis_bed_number(bed, "ZCARD {lock:a}:queue"), 0);
    }
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    sneck_lock_free(holder);
    sneck_close(other);
    end(&made);
}

static void test_a_release_that_is_denied_is_made_good(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    trial made = begin(bed);
    EXPECT(SNECK_OK, sneck_acquire(made.scene.lock, 0, &error));
    redis_bed_do(bed, "ACL SETUSER sneck -del");
    sneck_status status = sneck_release(made.scene.lock, &error);
    assert_true(status == SNECK_DENIED || status == SNECK_UNKNOWN);
    expect_words(&error, "access rules");
    assert_int_equal(redis_bed_number(bed, "EXISTS lock:a"), 1);
    redis_bed_do(bed, "ACL SETUSER sneck +del");
    redis_bed_await(bed, "EXISTS lock:a", 0);
    end(&made);
}

/* ---- Somebody's data in the place of ours ---- */

static void expect_untouched(const trial *made, const char *helper, sneck_lock *holder)
{
    redis_bed *bed = made->scene.bed;
    sneck_error error;
    redis_bed_do(bed, "DEL {lock:a}:%s", helper);
    redis_bed_do(bed, "SADD {lock:a}:%s somebody", helper);
    if (holder == NULL)
        expect_refused(made, SNECK_INVALID, "WRONGTYPE");
    else
        EXPECT(SNECK_INVALID, sneck_acquire(made->scene.lock, 1000, &error));
    assert_string_equal(redis_bed_text(bed, "SMEMBERS {lock:a}:%s", helper), "somebody");
    redis_bed_do(bed, "DEL {lock:a}:%s", helper);
    assert_int_equal(redis_bed_number(bed, "EXISTS lock:a"), holder == NULL ? 0 : 1);
    assert_int_equal(redis_bed_number(bed, "EXISTS {lock:a}:queue {lock:a}:queue:info {lock:a}:queue:until"), 0);
}

static void test_data_of_others_in_place_of_helpers_is_not_touched(void **state)
{
    static const char *const helpers[] = { "token", "log", "gone", "queue" };
    static const char *const queue_helpers[] = { "gone", "queue", "queue:info", "queue:until" };
    redis_bed *bed = *state;
    sneck_error error;
    trial made = begin(bed);
    for (size_t i = 0; i < sizeof helpers / sizeof helpers[0]; i++)
        expect_untouched(&made, helpers[i], NULL);
    sneck_client *other = redis_bed_open(bed, NULL, NULL);
    sneck_lock *holder = test_mutex(other, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(holder, 0, &error));
    for (size_t i = 0; i < sizeof queue_helpers / sizeof queue_helpers[0]; i++)
        expect_untouched(&made, queue_helpers[i], holder);
    EXPECT(SNECK_OK, sneck_release(holder, &error));
    sneck_lock_free(holder);
    sneck_close(other);
    end(&made);
}

static void test_several_locks_of_which_one_is_refused_leave_none_held(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *client = redis_bed_open(bed, NULL, NULL);
    sneck_lock *members[] = { test_mutex(client, "a", NULL), test_mutex(client, "b", NULL) };
    sneck_lock *both = NULL;
    EXPECT(SNECK_OK, sneck_multi_lock(members, 2, &both, &error));
    redis_bed_do(bed, "SADD {lock:b}:token somebody");
    EXPECT(SNECK_INVALID, sneck_acquire(both, 0, &error));
    assert_int_equal(redis_bed_number(bed, "EXISTS lock:a lock:b"), 0);
    redis_bed_do(bed, "DEL {lock:b}:token");
    EXPECT(SNECK_OK, sneck_acquire(both, 0, &error));
    EXPECT(SNECK_OK, sneck_release(both, &error));
    sneck_lock_free(both);
    sneck_lock_free(members[0]);
    sneck_lock_free(members[1]);
    sneck_close(client);
}

/* ---- Opening ---- */

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
    static const char *const times[] = { "timeout=soon", "timeout=",   "timeout=0",   "timeout=1.5",
                                         "timeout=-1",   "timeout=2h", "timeout=0ms", "timeout=99999999999999999999" };
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        expect_open(SNECK_INVALID, redis_bed_url(bed, times[i]));
    expect_open(SNECK_UNAVAILABLE, "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3");
    expect_open(SNECK_UNAVAILABLE, "redis+cluster://127.0.0.1:1,127.0.0.1:2?timeout=500");
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

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, redis_bed_set_up, redis_bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_replica_refuses),
        TEST(test_a_server_with_too_few_replicas_refuses),
        TEST(test_a_full_server_grants_nothing_but_renews_and_releases),
        TEST(test_a_full_server_counts_levels),
        TEST(test_a_server_that_cannot_save_refuses),
        TEST(test_a_server_whose_script_runs_away_is_waited_for),
        TEST(test_a_server_that_reads_its_data_is_waited_for),
        TEST(test_a_server_without_room_is_waited_for),
        TEST(test_a_user_whose_password_was_changed_is_denied),
        TEST(test_no_line_of_the_log_has_the_password),
        TEST(test_a_user_without_the_right_is_denied),
        TEST(test_a_script_that_is_denied_halfway_leaves_nothing),
        TEST(test_a_waiter_that_is_denied_halfway_leaves_nothing),
        TEST(test_a_release_that_is_denied_is_made_good),
        TEST(test_data_of_others_in_place_of_helpers_is_not_touched),
        TEST(test_several_locks_of_which_one_is_refused_leave_none_held),
        TEST(test_what_cannot_be_opened_says_why_without_the_password),
        TEST(test_the_password_may_come_from_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
