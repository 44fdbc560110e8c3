/* What others see in Redis of what is not held alone: keys, fields, time limits; and that nothing is left. */
#include "test.h"

#include <string.h>

#include "bed.h"
#include "claims.h"
#include "redis_bed.h"

#define MONTH_MS 2592000000LL

static const snk_grip shared = { .mode = SNK_MODE_SHARED };

static snk_id hold(snk_store *store, snk_grip grip, int64_t lease_ms)
{
    snk_id claim = test_id();
    test_ask how = { .lease_ms = lease_ms, .tokens = 1, .grip = grip, .why = "nightly report" };
    test_expect_answer(test_acquire(store, "a", &claim, how), SNK_ANSWER_HELD);
    return claim;
}

static snk_id wait_for(snk_store *store, snk_grip grip)
{
    snk_id claim = test_id();
    test_ask how = { .lease_ms = 30000, .tokens = 1, .queue = true, .grip = grip };
    test_expect_answer(test_acquire(store, "a", &claim, how), SNK_ANSWER_QUEUED);
    return claim;
}

static void release(snk_store *store, const snk_id *claim, snk_grip grip)
{
    test_expect_answer(test_release_as(store, "a", claim, grip, true), SNK_ANSWER_DONE);
}

static snk_tallied tally(snk_store *store, snk_object object, snk_tally_verb verb, int64_t value)
{
    snk_tally asked = { .object = object, .verb = verb, .name = "a", .value = value, .id = test_id() };
    snk_tallied tallied = { 0 };
    sneck_error error;
    EXPECT(SNECK_OK, store->ops->tally(store, &asked, &tallied, &error));
    return tallied;
}

static snk_store *open_store(redis_bed *bed)
{
    return test_store(redis_bed_url(bed, NULL));
}

static void expect_month(redis_bed *bed, const char *key)
{
    assert_in_range(redis_bed_number(bed, "PTTL %s", key), MONTH_MS - 60000, MONTH_MS);
}

/* Its connection is cut, and for now it cannot listen again. */
static void make_deaf(redis_bed *bed)
{
    redis_bed_do(bed, "ACL SETUSER sneck -subscribe");
    redis_bed_do(bed, "CLIENT KILL TYPE pubsub");
}

static void test_readers_are_as_documented(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = open_store(bed);
    snk_id first = hold(store, shared, 30000);
    snk_id second = hold(store, shared, 60000);
    assert_string_equal(redis_bed_keys(bed), "lock:a {lock:a}:holders {lock:a}:holders:info {lock:a}:token");
    assert_string_equal(redis_bed_text(bed, "HGET lock:a ~claim"), "crowd");
    assert_string_equal(redis_bed_text(bed, "HMGET lock:a ~holders ~shared ~permits ~used ~taken"), "2 2 0 0 0");
    char owner[64];
    (void)snprintf(owner, sizeof owner, "%s", redis_bed_text(bed, "HGET lock:a ~owner"));
    assert_int_equal(owner[36], ':');
    assert_int_equal(redis_bed_number(bed, "HGET lock:a %s", owner), 2); /* both are of one thread */

    char id[SNK_ID_TEXT_SIZE];
    snk_id_to_hex(&first, id);
    char entry[256];
    (void)snprintf(entry, sizeof entry, "%s", redis_bed_text(bed, "HGET {lock:a}:holders:info %s", id));
    char expected[128];
    const char *token = redis_bed_text(bed, "GET {lock:a}:token");
    (void)snprintf(expected, sizeof expected, "shared 0 %s %s 0 ", token, token);
    assert_memory_equal(entry, expected, strlen(expected));
    assert_memory_equal(entry + strlen(expected), owner, strlen(owner));
    assert_non_null(strstr(entry, " testhost nightly report"));

    /* The keys last as long as the last of them; each has an end of its own. */
    int64_t now_ms = redis_bed_number(bed, "PEXPIRETIME lock:a") - redis_bed_number(bed, "PTTL lock:a");
    assert_in_range(redis_bed_number(bed, "ZSCORE {lock:a}:holders %s", id) - now_ms, 20000, 30010);
    assert_in_range(redis_bed_number(bed, "PTTL lock:a"), 50000, 60000);
    long long ends = redis_bed_number(bed, "PEXPIRETIME lock:a");
    assert_int_equal(redis_bed_number(bed, "PEXPIRETIME {lock:a}:holders"), ends);
    assert_int_equal(redis_bed_number(bed, "PEXPIRETIME {lock:a}:holders:info"), ends);

    /* Nobody waits for a lease that was given back. */
    release(store, &second, shared);
    assert_in_range(redis_bed_number(bed, "PTTL lock:a"), 20000, 30000);
    assert_in_range(redis_bed_number(bed, "PTTL {lock:a}:holders"), 20000, 30000);
    assert_int_equal(redis_bed_number(bed, "HGET lock:a %s", owner), 1);
    release(store, &first, shared);
    assert_string_equal(redis_bed_keys(bed), "{lock:a}:token");
    redis_bed_expect_limits(bed);
    test_store_close(store);
}

/* A renewal of one never lengthens what another has. */
static void test_each_reader_ends_by_itself(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = open_store(bed);
    snk_id dead = hold(store, shared, 5000);
    snk_id other = hold(store, shared, 5000);
    char id[SNK_ID_TEXT_SIZE];
    snk_id_to_hex(&dead, id);
    long long ends = redis_bed_number(bed, "ZSCORE {lock:a}:holders %s", id);
    test_expect_answer(test_renew_as(store, "a", &other, shared), SNK_ANSWER_HELD); /* for 60 s */
    assert_int_equal(redis_bed_number(bed, "ZSCORE {lock:a}:holders %s", id), ends);
    assert_in_range(redis_bed_number(bed, "PTTL lock:a"), 50000, 60000);
    /* And when its time is up, it is gone, though the keys are not. */
    redis_bed_do(bed, "ZADD {lock:a}:holders 1 %s", id);
    test_expect_answer(test_renew_as(store, "a", &other, shared), SNK_ANSWER_HELD);
    assert_int_equal(redis_bed_number(bed, "ZCARD {lock:a}:holders"), 1);
    assert_int_equal(redis_bed_number(bed, "HGET lock:a ~shared"), 1);
    assert_non_null(strstr(redis_bed_text(bed, "LINDEX {lock:a}:log -1"), " expired "));
    test_store_close(store);
}

static void test_permits_are_as_documented(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = open_store(bed);
    snk_grip three = { .mode = SNK_MODE_PERMIT, .units = 3 };
    (void)tally(store, SNK_OBJECT_LOCK, SNK_TALLY_SET, 5);
    assert_string_equal(redis_bed_keys(bed), "{lock:a}:count");
    assert_string_equal(redis_bed_text(bed, "GET {lock:a}:count"), "5");
    expect_month(bed, "{lock:a}:count");
    redis_bed_do(bed, "PEXPIRE {lock:a}:count 60000");
    snk_id claim = hold(store, three, 30000);
    expect_month(bed, "{lock:a}:count"); /* after its last use */
    assert_string_equal(redis_bed_text(bed, "HMGET lock:a ~holders ~shared ~permits ~used ~taken"), "1 0 1 3 0");
    assert_in_range(redis_bed_number(bed, "PTTL lock:a"), 20000, 30000);
    redis_bed_do(bed, "PEXPIRE {lock:a}:count 60000");
    test_expect_answer(test_renew_as(store, "a", &claim, three), SNK_ANSWER_HELD);
    expect_month(bed, "{lock:a}:count"); /* a renewal is a use */
    (void)wait_for(store, three);
    assert_string_equal(
        redis_bed_keys(bed),
        "lock:a {lock:a}:count {lock:a}:holders {lock:a}:holders:info {lock:a}:queue {lock:a}:queue:info "
        "{lock:a}:queue:until {lock:a}:token");
    assert_non_null(strstr(redis_bed_text(bed, "HVALS {lock:a}:queue:info"), "30000 3 0 permit "));
    redis_bed_expect_limits(bed);
    release(store, &claim, three);
    assert_int_equal(redis_bed_number(bed, "EXISTS {lock:a}:queue"), 0);
    assert_in_range(redis_bed_number(bed, "PTTL lock:a"), 1, 2000); /* an offer */
    redis_bed_await(bed, "EXISTS lock:a", 0);
    assert_string_equal(redis_bed_keys(bed), "{lock:a}:count {lock:a}:token");
    test_store_close(store);
}

/* What is taken is counted off when it is used, so that nothing must happen for it to come back. */
static void test_what_was_taken_comes_back_though_all_keys_are_gone(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = open_store(bed);
    snk_grip two = { .mode = SNK_MODE_TAKE, .units = 2 };
    (void)tally(store, SNK_OBJECT_LOCK, SNK_TALLY_SET, 3);
    (void)hold(store, two, 30000);
    assert_string_equal(redis_bed_text(bed, "HGET lock:a ~taken"), "2");
    assert_int_equal(tally(store, SNK_OBJECT_LOCK, SNK_TALLY_READ, 0).count, 1);
    redis_bed_expect_limits(bed);
    redis_bed_do(bed, "DEL lock:a {lock:a}:holders {lock:a}:holders:info"); /* as their limits do */
    assert_string_equal(redis_bed_keys(bed), "{lock:a}:count");
    assert_int_equal(tally(store, SNK_OBJECT_LOCK, SNK_TALLY_READ, 0).count, 3);
    snk_id claim = hold(store, two, 30000);
    release(store, &claim, two);
    assert_string_equal(redis_bed_text(bed, "GET {lock:a}:count"), "1");
    test_store_close(store);
}

static void test_a_latch_is_as_documented(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = open_store(bed);
    snk_grip pass = { .object = SNK_OBJECT_LATCH, .mode = SNK_MODE_PASS };
    (void)tally(store, SNK_OBJECT_LATCH, SNK_TALLY_SET_IF_ZERO, 2);
    assert_string_equal(redis_bed_keys(bed), "{lock:a}:latch:count");
    expect_month(bed, "{lock:a}:latch:count");
    snk_id waiter = wait_for(store, pass);
    redis_bed_do(bed, "PEXPIRE {lock:a}:latch:count 60000");
    test_expect_answer(test_renew_as(store, "a", &waiter, pass), SNK_ANSWER_QUEUED);
    expect_month(bed, "{lock:a}:latch:count"); /* it does not open because nobody came for long */
    (void)tally(store, SNK_OBJECT_LATCH, SNK_TALLY_DOWN, 1);
    assert_string_equal(redis_bed_keys(bed),
                        "{lock:a}:latch:count {lock:a}:latch:gone {lock:a}:latch:queue {lock:a}:latch:queue:info "
                        "{lock:a}:latch:queue:until");
    assert_in_range(redis_bed_number(bed, "PTTL {lock:a}:latch:gone"), 590000, 600000);
    (void)tally(store, SNK_OBJECT_LATCH, SNK_TALLY_DOWN, 1);
    assert_string_equal(redis_bed_keys(bed),
                        "{lock:a}:latch {lock:a}:latch:gone {lock:a}:latch:holders {lock:a}:latch:holders:info");
    redis_bed_expect_limits(bed);
    release(store, &waiter, pass);
    assert_string_equal(redis_bed_keys(bed), "{lock:a}:latch:gone");
    test_store_close(store);
}

static void test_a_condition_is_as_documented(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = open_store(bed);
    snk_grip take = { .object = SNK_OBJECT_CONDITION, .mode = SNK_MODE_TAKE, .units = 1 };
    snk_id waiter = wait_for(store, take);
    assert_string_equal(redis_bed_keys(bed), "{lock:a}:condition:queue {lock:a}:condition:queue:info "
                                             "{lock:a}:condition:queue:until");
    (void)tally(store, SNK_OBJECT_CONDITION, SNK_TALLY_SIGNAL, 1);
    assert_string_equal(redis_bed_keys(bed), "{lock:a}:condition {lock:a}:condition:count {lock:a}:condition:holders "
                                             "{lock:a}:condition:holders:info");
    redis_bed_expect_limits(bed);
    release(store, &waiter, take);
    assert_string_equal(redis_bed_keys(bed), "");
    test_store_close(store);
}

static void test_a_signal_is_not_lost_to_one_who_does_not_hear_it(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = open_store(bed);
    snk_grip take = { .object = SNK_OBJECT_CONDITION, .mode = SNK_MODE_TAKE, .units = 1 };
    snk_id waiter = wait_for(store, take);
    make_deaf(bed);
    assert_true(tally(store, SNK_OBJECT_CONDITION, SNK_TALLY_SIGNAL, 1).done);
    snk_id late = wait_for(store, take);
    test_expect_answer(test_renew_as(store, "a", &waiter, take), SNK_ANSWER_HELD);
    test_expect_answer(test_renew_as(store, "a", &late, take), SNK_ANSWER_QUEUED);
    test_store_close(store);
}

static void test_a_version_is_as_documented(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *client = redis_bed_open(bed, "layout=string", NULL);
    EXPECT(SNECK_OK, sneck_version_bump(client, "a", 0, &error));
    uint64_t version = 0;
    EXPECT(SNECK_OK, sneck_version_get(client, "a", &version, &error));
    assert_string_equal(redis_bed_keys(bed), "{lock:a}:version");
    assert_true((uint64_t)redis_bed_number(bed, "GET {lock:a}:version") == version);
    expect_month(bed, "{lock:a}:version");
    sneck_close(client);
}

static void test_a_writer_among_readers_is_one_of_several(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = open_store(bed);
    snk_id writer = test_must_hold(store, "a");
    snk_grip beside = shared;
    beside.beside = writer;
    snk_id reader = hold(store, beside, 30000);
    assert_string_equal(redis_bed_text(bed, "HMGET lock:a ~claim ~holders ~shared"), "crowd 2 1");
    snk_answer answer = test_renew(store, "a", &writer, TEST_LEASE_MS);
    test_expect_kind(&answer, SNK_ANSWER_HELD);
    assert_true(answer.token_first > 0);
    test_expect_answer(test_release(store, "a", &writer), SNK_ANSWER_DONE);
    assert_string_equal(redis_bed_text(bed, "HMGET lock:a ~claim ~holders ~shared"), "crowd 1 1");
    assert_non_null(strstr(redis_bed_text(bed, "LINDEX {lock:a}:log -1"), " released "));
    release(store, &reader, shared);
    assert_string_equal(redis_bed_keys(bed), "{lock:a}:log {lock:a}:token");
    test_store_close(store);
}

/* Nobody has to look for it to happen. */
static void test_a_writer_that_gives_up_lets_readers_in_at_once(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = open_store(bed);
    (void)hold(store, shared, 30000);
    snk_id writer = test_must_queue(store, "a", NULL);
    (void)wait_for(store, shared);
    assert_int_equal(redis_bed_number(bed, "ZCARD {lock:a}:holders"), 1);
    test_expect_answer(test_release(store, "a", &writer), SNK_ANSWER_DONE);
    assert_int_equal(redis_bed_number(bed, "ZCARD {lock:a}:holders"), 2);
    assert_int_equal(redis_bed_number(bed, "EXISTS {lock:a}:queue"), 0);
    test_store_close(store);
}

/* Before a reader that asks stands a writer that hears nothing: the reader gets what it wants, and no more than that. */
static void test_a_reader_passes_a_deaf_writer_as_a_reader(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = open_store(bed);
    snk_id first = test_must_hold(store, "a");
    (void)test_must_queue(store, "a", NULL);
    snk_id reader = wait_for(store, shared);
    make_deaf(bed);
    test_expect_answer(test_release(store, "a", &first), SNK_ANSWER_DONE);
    test_expect_answer(test_renew_as(store, "a", &reader, shared), SNK_ANSWER_HELD);
    assert_string_equal(redis_bed_text(bed, "HMGET lock:a ~claim ~shared"), "crowd 1");
    release(store, &reader, shared);
    test_store_close(store);
}

/* Readers and writers in turns, who want to wait so long. */
static void queue_in_turns(snk_store *store, int count, int64_t lease_ms)
{
    for (int i = 0; i < count; i++) {
        snk_id claim = test_id();
        test_ask how = { .lease_ms = lease_ms, .tokens = 1, .queue = true };
        if (i % 2 == 1)
            how.grip = shared;
        test_expect_answer(test_acquire(store, "a", &claim, how), SNK_ANSWER_QUEUED);
    }
}

static long long calls_of(redis_bed *bed, const char *command)
{
    char name[64];
    (void)snprintf(name, sizeof name, "cmdstat_%s:calls=", command);
    const char *found = strstr(redis_bed_text(bed, "INFO commandstats"), name);
    return found == NULL ? 0 : strtoll(found + strlen(name), NULL, 10);
}

/* However many hear nothing, a script looks at 64 of them: the server does nothing else meanwhile. */
static void test_a_release_looks_at_no_more_than_64_who_are_deaf(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = open_store(bed);
    snk_id first = test_must_hold(store, "a");
    queue_in_turns(store, 300, 30000);
    make_deaf(bed);
    redis_bed_do(bed, "CONFIG RESETSTAT");
    test_expect_answer(test_release(store, "a", &first), SNK_ANSWER_DONE);
    assert_in_range(calls_of(bed, "zrange"), 60, 70);
    assert_int_equal(redis_bed_number(bed, "EXISTS lock:a"), 0);
    assert_int_equal(redis_bed_number(bed, "ZCARD {lock:a}:queue"), 300); /* they keep their places */
    test_store_close(store);
}

/* Whoever lives has its turn soon after the leases of those before it are over, however many they are. */
static void test_a_waiter_behind_many_who_are_gone_has_its_turn(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = open_store(bed);
    snk_store *dying = open_store(bed);
    snk_id first = test_must_hold(store, "a");
    queue_in_turns(dying, 300, 2000);
    test_store_close(dying);
    snk_id last = wait_for(store, shared);
    test_expect_answer(test_release(store, "a", &first), SNK_ANSWER_DONE);
    redis_bed_pause(2100);
    int looks = 1;
    while (test_renew_as(store, "a", &last, shared).kind != SNK_ANSWER_HELD && looks < 100)
        looks++;
    assert_in_range(looks, 2, 6); /* 64 and a few at once */
    release(store, &last, shared);
    assert_int_equal(redis_bed_number(bed, "EXISTS {lock:a}:queue"), 0);
    test_store_close(store);
}

/* What somebody has deleted is counted again; a lock is never held by nobody. */
static void test_holders_that_somebody_deleted_are_gone(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = open_store(bed);
    snk_id claim = hold(store, shared, 30000);
    redis_bed_do(bed, "DEL {lock:a}:holders");
    test_expect_answer(test_renew_as(store, "a", &claim, shared), SNK_ANSWER_GONE);
    assert_int_equal(redis_bed_number(bed, "EXISTS lock:a {lock:a}:holders {lock:a}:holders:info"), 0);
    (void)hold(store, shared, 30000);
    redis_bed_do(bed, "DEL lock:a");
    snk_id writer = test_must_hold(store, "a");
    snk_id again = test_id();
    test_expect_answer(test_acquire(store, "a", &again, (test_ask){ .lease_ms = 30000, .tokens = 1, .grip = shared }),
                       SNK_ANSWER_BUSY);
    test_expect_answer(test_release(store, "a", &writer), SNK_ANSWER_DONE);
    (void)hold(store, shared, 30000);
    assert_int_equal(redis_bed_number(bed, "ZCARD {lock:a}:holders"), 1);
    test_store_close(store);
}

static void test_data_of_others_in_place_of_the_holders_is_not_touched(void **state)
{
    static const char *const helpers[] = { "holders", "holders:info" };
    redis_bed *bed = *state;
    snk_store *store = open_store(bed);
    for (size_t i = 0; i < sizeof helpers / sizeof helpers[0]; i++) {
        snk_id claim = test_id();
        test_ask how = { .lease_ms = 30000, .tokens = 1, .grip = shared };
        redis_bed_do(bed, "SADD {lock:a}:%s somebody", helpers[i]);
        test_expect_answer(test_acquire(store, "a", &claim, how), SNK_ANSWER_FAILED);
        assert_string_equal(redis_bed_text(bed, "SMEMBERS {lock:a}:%s", helpers[i]), "somebody");
        redis_bed_do(bed, "DEL {lock:a}:%s", helpers[i]);
        assert_int_equal(redis_bed_number(bed, "EXISTS lock:a {lock:a}:holders {lock:a}:holders:info"), 0);
    }
    test_store_close(store);
}

static void test_a_server_without_memory_keeps_what_is_held_and_takes_it_back(void **state)
{
    redis_bed *bed = *state;
    snk_store *store = open_store(bed);
    snk_grip one = { .mode = SNK_MODE_TAKE, .units = 1 };
    (void)tally(store, SNK_OBJECT_LOCK, SNK_TALLY_SET, 3);
    snk_id taken = hold(store, one, 30000);
    snk_id other = hold(store, one, 30000);
    redis_bed_do(bed, "CONFIG SET maxmemory 1");
    test_expect_answer(test_renew_as(store, "a", &taken, one), SNK_ANSWER_HELD);
    release(store, &taken, one);
    release(store, &other, one);
    snk_id claim = test_id();
    snk_answer refused = test_acquire(store, "a", &claim, (test_ask){ .lease_ms = 30000, .tokens = 1, .grip = one });
    assert_int_equal(refused.kind, SNK_ANSWER_FAILED);
    redis_bed_do(bed, "CONFIG SET maxmemory 0");
    assert_int_equal(tally(store, SNK_OBJECT_LOCK, SNK_TALLY_READ, 0).count, 1);
    test_store_close(store);
}

static bool note_name(void *context, const sneck_info *info)
{
    test_append(context, 64, info->name);
    return true;
}

/* Whatever the prefix is: without one, a latch's keys look most like a lock's. */
static void expect_list(redis_bed *bed, const char *keys)
{
    sneck_error error;
    redis_bed_do(bed, "FLUSHDB");
    sneck_client *client = redis_bed_open(bed, keys, NULL);
    sneck_lock *lock = NULL;
    sneck_latch *latch = NULL;
    sneck_semaphore *semaphore = NULL;
    EXPECT(SNECK_OK, sneck_read_lock(client, "{lock:r}", NULL, &lock, &error));
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_latch_open(client, "{lock:r}", NULL, &latch, &error));
    EXPECT(SNECK_OK, sneck_latch_set(latch, 1, &error));
    EXPECT(SNECK_TIMEOUT, sneck_latch_wait(latch, 1, &error));
    EXPECT(SNECK_OK, sneck_semaphore_open(client, "{lock:s}", NULL, &semaphore, &error));
    EXPECT(SNECK_OK, sneck_semaphore_set_permits(semaphore, 1, &error));
    EXPECT(SNECK_OK, sneck_version_bump(client, "{lock:v}", 0, &error));
    char names[64] = "";
    EXPECT(SNECK_OK, sneck_list(client, "*", note_name, names, &error));
    assert_string_equal(names, "{lock:r}");
    sneck_latch_free(latch);
    sneck_semaphore_free(semaphore);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_a_list_shows_locks_and_not_what_stands_beside_them(void **state)
{
    expect_list(*state, NULL);
    expect_list(*state, "prefix=");
}

static void test_a_string_has_no_place_for_them(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *client = redis_bed_open(bed, "layout=string", NULL);
    sneck_lock *lock = NULL;
    sneck_semaphore *semaphore = NULL;
    sneck_latch *latch = NULL;
    EXPECT(SNECK_UNSUPPORTED, sneck_read_lock(client, "a", NULL, &lock, &error));
    assert_non_null(strstr(error.message, "layout=string"));
    EXPECT(SNECK_UNSUPPORTED, sneck_semaphore_open(client, "a", NULL, &semaphore, &error));
    assert_non_null(strstr(error.message, "layout=string"));
    EXPECT(SNECK_UNSUPPORTED, sneck_latch_open(client, "a", NULL, &latch, &error));
    assert_non_null(strstr(error.message, "layout=string"));
    sneck_close(client);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, redis_bed_set_up, redis_bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_readers_are_as_documented),
        TEST(test_each_reader_ends_by_itself),
        TEST(test_permits_are_as_documented),
        TEST(test_what_was_taken_comes_back_though_all_keys_are_gone),
        TEST(test_a_latch_is_as_documented),
        TEST(test_a_condition_is_as_documented),
        TEST(test_a_signal_is_not_lost_to_one_who_does_not_hear_it),
        TEST(test_a_version_is_as_documented),
        TEST(test_a_writer_among_readers_is_one_of_several),
        TEST(test_a_writer_that_gives_up_lets_readers_in_at_once),
        TEST(test_a_reader_passes_a_deaf_writer_as_a_reader),
        TEST(test_a_release_looks_at_no_more_than_64_who_are_deaf),
        TEST(test_a_waiter_behind_many_who_are_gone_has_its_turn),
        TEST(test_holders_that_somebody_deleted_are_gone),
        TEST(test_data_of_others_in_place_of_the_holders_is_not_touched),
        TEST(test_a_server_without_memory_keeps_what_is_held_and_takes_it_back),
        TEST(test_a_list_shows_locks_and_not_what_stands_beside_them),
        TEST(test_a_string_has_no_place_for_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
