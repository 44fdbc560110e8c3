/* What each thing costs the server: scripts for one who is alone, commands for a hand-off. */
#include "test.h"

#include <string.h>

#include "bed.h"
#include "claims.h"
#include "redis_bed.h"

/* ---- Counting ---- */

/* How often commands ran since the last reset, as the server counts: those whose name begins so, "" for all. */
static long long calls_of(redis_bed *bed, const char *command)
{
    redisReply *reply = redis_bed_command(bed, "INFO commandstats");
    long long calls = 0;
    char mark[40];
    (void)snprintf(mark, sizeof mark, "cmdstat_%s", command);
    for (const char *at = strstr(reply->str, mark); at != NULL; at = strstr(at + 1, mark)) {
        const char *count = strstr(at, "calls=");
        /* What the test itself asks is left out. */
        if (count != NULL && strncmp(at, "cmdstat_info", 12) != 0 && strncmp(at, "cmdstat_config", 14) != 0)
            calls += strtoll(count + 6, NULL, 10);
    }
    freeReplyObject(reply);
    return calls;
}

static void reset(redis_bed *bed)
{
    redis_bed_do(bed, "CONFIG RESETSTAT");
}

/* Runs it once so that the server knows its scripts, and once to count them. */
#define ONE_SCRIPT(call)                                                                                               \
    do {                                                                                                               \
        reset(bed);                                                                                                    \
        EXPECT(SNECK_OK, call);                                                                                        \
        if (calls_of(bed, "eval") != 1)                                                                                \
            fail_msg("%s: %lld scripts", #call, calls_of(bed, "eval"));                                                \
    } while (0)

/* ---- Those who are alone ---- */

static void test_a_read_lock_is_one_script(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *client = redis_bed_open(bed, NULL, NULL);
    sneck_lock *reader = NULL;
    sneck_lock *writer = NULL;
    EXPECT(SNECK_OK, sneck_read_lock(client, "a", NULL, &reader, &error));
    EXPECT(SNECK_OK, sneck_write_lock(client, "a", NULL, &writer, &error));
    EXPECT(SNECK_OK, sneck_acquire(reader, 1000, &error));
    EXPECT(SNECK_OK, sneck_release(reader, &error));
    EXPECT(SNECK_OK, sneck_acquire(writer, 1000, &error));
    EXPECT(SNECK_OK, sneck_release(writer, &error));
    ONE_SCRIPT(sneck_acquire(reader, 1000, &error));
    ONE_SCRIPT(sneck_release(reader, &error));
    ONE_SCRIPT(sneck_acquire(writer, 1000, &error));
    ONE_SCRIPT(sneck_acquire(reader, 1000, &error)); /* both sides: the way down */
    ONE_SCRIPT(sneck_release(writer, &error));
    ONE_SCRIPT(sneck_release(reader, &error));
    sneck_lock_free(reader);
    sneck_lock_free(writer);
    sneck_close(client);
}

static void test_a_permit_is_one_script(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *client = redis_bed_open(bed, NULL, NULL);
    sneck_semaphore *semaphore = NULL;
    sneck_permit *permit = NULL;
    int64_t count = 0;
    EXPECT(SNECK_OK, sneck_semaphore_open(client, "a", NULL, &semaphore, &error));
    EXPECT(SNECK_OK, sneck_semaphore_set_permits(semaphore, 3, &error));
    EXPECT(SNECK_OK, sneck_semaphore_acquire(semaphore, 1, 1000, &permit, &error));
    EXPECT(SNECK_OK, sneck_permit_release(permit, &error));
    ONE_SCRIPT(sneck_semaphore_set_permits(semaphore, 2, &error));
    ONE_SCRIPT(sneck_semaphore_acquire(semaphore, 2, 1000, &permit, &error));
    ONE_SCRIPT(sneck_semaphore_available(semaphore, &count, &error));
    ONE_SCRIPT(sneck_permit_release(permit, &error));
    ONE_SCRIPT(sneck_semaphore_drain(semaphore, &permit, &error));
    ONE_SCRIPT(sneck_permit_release(permit, &error));
    sneck_semaphore_free(semaphore);
    sneck_close(client);
}

static void test_a_latch_and_a_version_are_one_script(void **state)
{
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *client = redis_bed_open(bed, NULL, NULL);
    sneck_latch *latch = NULL;
    int64_t count = 0;
    uint64_t version = 0;
    EXPECT(SNECK_OK, sneck_latch_open(client, "a", NULL, &latch, &error));
    EXPECT(SNECK_OK, sneck_latch_count(latch, &count, &error));
    EXPECT(SNECK_OK, sneck_version_get(client, "a", &version, &error));
    ONE_SCRIPT(sneck_latch_set(latch, 1, &error));
    ONE_SCRIPT(sneck_latch_count(latch, &count, &error));
    ONE_SCRIPT(sneck_latch_count_down(latch, &error));
    ONE_SCRIPT(sneck_latch_wait(latch, 1000, &error));
    ONE_SCRIPT(sneck_version_get(client, "a", &version, &error));
    ONE_SCRIPT(sneck_version_bump(client, "a", version, &error));
    sneck_latch_free(latch);
    sneck_close(client);
}

static void test_several_locks_are_taken_in_one_script_or_not_at_all(void **state)
{
    enum {
        MEMBERS = 5
    };
    redis_bed *bed = *state;
    sneck_error error;
    sneck_client *client = redis_bed_open(bed, "history=off", NULL);
    sneck_client *rival = redis_bed_open(bed, "history=off", NULL);
    sneck_lock *members[MEMBERS];
    for (int i = 0; i < MEMBERS; i++)
        members[i] = test_mutex(client, (char[]){ (char)('a' + i), '\0' }, NULL);
    sneck_lock *all = NULL;
    EXPECT(SNECK_OK, sneck_multi_lock(members, MEMBERS, &all, &error));
    EXPECT(SNECK_OK, sneck_acquire(all, 0, &error));
    EXPECT(SNECK_OK, sneck_release(all, &error));
    ONE_SCRIPT(sneck_acquire(all, 0, &error));
    assert_int_equal(redis_bed_number(bed, "EXISTS lock:a lock:b lock:c lock:d lock:e"), MEMBERS);
    for (int i = 0; i < MEMBERS; i++)
        assert_true(sneck_token(members[i]) > 0);
    EXPECT(SNECK_OK, sneck_release(all, &error));

    /* One of them is held: nothing is written for the others. */
    sneck_lock *held = test_mutex(rival, "c", NULL);
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    reset(bed);
    EXPECT(SNECK_BUSY, sneck_acquire(all, 0, &error));
    assert_int_equal(calls_of(bed, "eval"), 1);
    assert_int_equal(calls_of(bed, "hset"), 0);
    EXPECT(SNECK_OK, sneck_release(held, &error));
    EXPECT(SNECK_OK, sneck_acquire(all, 0, &error));
    sneck_lock_free(held);
    sneck_lock_free(all);
    for (int i = 0; i < MEMBERS; i++)
        sneck_lock_free(members[i]);
    sneck_close(rival);
    sneck_close(client);
}

/* ---- Those who wait ---- */

static snk_answer ask(snk_store *store, snk_grip grip, bool queue, snk_id *claim_out)
{
    *claim_out = test_id();
    return test_acquire(store, "a", claim_out,
                        (test_ask){ .lease_ms = TEST_LEASE_MS, .tokens = 1, .queue = queue, .grip = grip });
}

/* How many commands the release of `before` takes, and with it the grant to the first of so many who wait. */
static long long cost_of_handing_on(redis_bed *bed, snk_grip before, snk_grip waiting, size_t waiters)
{
    redis_bed_do(bed, "FLUSHDB");
    snk_store *store = test_store(redis_bed_url(bed, "history=off"));
    snk_tally one = { .object = SNK_OBJECT_LOCK, .verb = SNK_TALLY_SET, .name = "a", .value = 1 };
    snk_tallied tallied;
    snk_id holder;
    snk_id waiter;
    assert_int_equal(store->ops->tally(store, &one, &tallied, NULL), SNECK_OK);
    test_expect_answer(ask(store, before, false, &holder), SNK_ANSWER_HELD);
    for (size_t i = 0; i < waiters; i++)
        test_expect_answer(ask(store, waiting, true, &waiter), SNK_ANSWER_QUEUED);
    /* So that the server knows the script. */
    snk_id nobody = test_id();
    test_expect_answer(test_release_as(store, "a", &nobody, before, true), SNK_ANSWER_GONE);
    reset(bed);
    test_expect_answer(test_release_as(store, "a", &holder, before, true), SNK_ANSWER_DONE);
    long long commands = calls_of(bed, "");
    assert_int_equal(calls_of(bed, "eval"), 1);
    assert_int_equal(calls_of(bed, "publish"), 2); /* to one of them, and to whoever wants to know */
    assert_int_equal(redis_bed_number(bed, "ZCARD {lock:a}:queue"), waiters - 1);
    test_store_close(store);
    return commands;
}

static void test_the_cost_of_a_hand_off_does_not_grow_with_those_who_wait(void **state)
{
    static const snk_grip alone = { .mode = SNK_MODE_EXCLUSIVE };
    static const snk_grip shared = { .mode = SNK_MODE_SHARED };
    static const snk_grip permit = { .mode = SNK_MODE_PERMIT, .units = 1 };
    static const struct {
        const char *name;
        const snk_grip *before;
        const snk_grip *waiting;
    } cases[] = {
        { "from permit to permit", &permit, &permit },
        { "from reader to writer", &shared, &alone },
        { "from writer to permit", &alone, &permit },
    };
    redis_bed *bed = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        long long few = cost_of_handing_on(bed, *cases[i].before, *cases[i].waiting, 2);
        long long many = cost_of_handing_on(bed, *cases[i].before, *cases[i].waiting, 32);
        printf("# figure: a hand-off %s takes %lld commands with 2 who wait, %lld with 32\n", cases[i].name, few, many);
        assert_int_equal(few, many);
    }
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, redis_bed_set_up, redis_bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_read_lock_is_one_script),
        TEST(test_a_permit_is_one_script),
        TEST(test_a_latch_and_a_version_are_one_script),
        TEST(test_several_locks_are_taken_in_one_script_or_not_at_all),
        TEST(test_the_cost_of_a_hand_off_does_not_grow_with_those_who_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
