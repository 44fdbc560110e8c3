/* The parts of a topology that need no server: slots, addresses, what an answer asks for, votes, the map. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "redis/address.h"
#include "redis/election.h"
#include "redis/map.h"
#include "redis/slot.h"
#include "redis/verdict.h"

/* ---- Slots ---- */

static unsigned slot_of(const char *key)
{
    return snk_redis_slot_of(key, strlen(key));
}

static void test_slots_are_those_of_redis(void **state)
{
    (void)state;
    assert_int_equal(slot_of("123456789"), 0x31C3); /* the check value of the specification */
    assert_int_equal(slot_of("foo"), 12182);
    assert_int_equal(slot_of("{user1000}.following"), slot_of("{user1000}.followers"));
    assert_int_equal(slot_of("foo{{bar}}zap"), slot_of("{bar"));
    assert_int_equal(slot_of("foo{bar}{zap}"), slot_of("bar"));
    assert_int_not_equal(slot_of("foo{}{bar}"), slot_of("bar")); /* an empty tag is none */
    assert_int_equal(slot_of(""), 0);
}

static void test_each_slot_has_the_smallest_number_in_it(void **state)
{
    (void)state;
    static uint32_t tags[SNK_REDIS_SLOTS];
    snk_redis_slot_tags(tags);
    for (unsigned i = 0; i < SNK_REDIS_SLOTS; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "x:{%u}", (unsigned)tags[i]);
        assert_int_equal(slot_of(text), i);
    }
    char digits[16];
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(digits, sizeof digits, "%u", i);
        assert_true(tags[slot_of(digits)] <= i);
    }
}

/* ---- Addresses ---- */

static void expect_address(const char *text, const char *host, int port)
{
    snk_redis_address address;
    if (!snk_redis_address_parse(&address, text, "asked"))
        fail_msg("%s is not read", text);
    assert_string_equal(address.host, host);
    assert_int_equal(address.port, port);
}

static void test_addresses_are_read_as_servers_write_them(void **state)
{
    (void)state;
    snk_redis_address address;
    expect_address("127.0.0.1:6381", "127.0.0.1", 6381);
    expect_address("::1:6381", "::1", 6381);
    expect_address("redis.example.org:1", "redis.example.org", 1);
    expect_address(":6381", "asked", 6381); /* it does not know its own name */
    const char *const wrong[] = { "", "host", "host:", "host:x", "host:0", "host:65536", "host:1x" };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (snk_redis_address_parse(&address, wrong[i], "asked"))
            fail_msg("%s is read", wrong[i]);
    }
    char longer[300];
    memset(longer, 'h', sizeof longer);
    memcpy(longer + sizeof longer - 3, ":1", 3);
    assert_false(snk_redis_address_parse(&address, longer, "asked"));
}

/* ---- What an answer asks for ---- */

static snk_verdict verdict_of(const char *text, bool sharded, snk_redis_address *to, uint16_t *slot)
{
    char copy[128];
    (void)snprintf(copy, sizeof copy, "%s", text);
    redisReply reply = { .type = REDIS_REPLY_ERROR, .str = copy };
    snk_redis_call call = { .outcome = SNK_REDIS_REPLY, .reply = &reply };
    return snk_verdict_of(&call, sharded, "asked", to, slot);
}

static void test_only_answers_that_prove_that_nothing_ran_send_a_call_on(void **state)
{
    (void)state;
    snk_redis_address to;
    uint16_t slot = 0;
    assert_int_equal(verdict_of("MOVED 3999 127.0.0.1:6381", true, &to, &slot), SNK_VERDICT_MOVED);
    assert_int_equal(slot, 3999);
    assert_int_equal(to.port, 6381);
    assert_int_equal(verdict_of("ASK 1 :6382", true, &to, &slot), SNK_VERDICT_ASK);
    assert_string_equal(to.host, "asked");
    assert_int_equal(verdict_of("MOVED 3999 127.0.0.1:6381", false, &to, &slot), SNK_VERDICT_DONE);
    const char *const nonsense[] = { "MOVED", "MOVED x 127.0.0.1:1", "MOVED 16384 127.0.0.1:1", "MOVED 1 nowhere" };
    for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++)
        assert_int_equal(verdict_of(nonsense[i], true, &to, &slot), SNK_VERDICT_LOOK);
    assert_int_equal(verdict_of("TRYAGAIN Multiple keys", true, &to, &slot), SNK_VERDICT_SOON);
    const char *const looks[] = { "READONLY You can't write", "LOADING Redis is", "CLUSTERDOWN The cluster is down",
                                  "MASTERDOWN Link with MASTER is down",
                                  "ERR Error running script (call to f_1): @user_script:1: -READONLY You can't" };
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++)
        assert_int_equal(verdict_of(looks[i], true, &to, &slot), SNK_VERDICT_LOOK);
    const char *const answers[] = { "NOSCRIPT No matching", "OOM command", "NOPERM this user", "ERR whatever",
                                    "UNBLOCKED force unblock" };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        assert_int_equal(verdict_of(answers[i], true, &to, &slot), SNK_VERDICT_DONE);
}

static void test_a_call_without_an_answer_is_sent_on_only_if_it_never_left(void **state)
{
    (void)state;
    snk_redis_address to;
    uint16_t slot = 0;
    snk_redis_call call = { .outcome = SNK_REDIS_UNCERTAIN, .error = { .status = SNECK_UNKNOWN } };
    assert_int_equal(snk_verdict_of(&call, true, "", &to, &slot), SNK_VERDICT_DONE);
    call = (snk_redis_call){ .outcome = SNK_REDIS_NOT_SENT, .error = { .status = SNECK_UNAVAILABLE } };
    assert_int_equal(snk_verdict_of(&call, true, "", &to, &slot), SNK_VERDICT_LOOK);
    call.error.status = SNECK_DENIED;
    assert_int_equal(snk_verdict_of(&call, true, "", &to, &slot), SNK_VERDICT_DONE);
}

/* ---- Votes ---- */

static snk_vote vote(unsigned voter, unsigned epoch, bool sees, int port)
{
    return (snk_vote){
        .voter = voter, .epoch = epoch, .sentinels = 3, .sees = sees, .master = { .host = "127.0.0.1", .port = port }
    };
}

/* The port of the master that is chosen; 0: none. */
static int elect(const snk_vote votes[], size_t count, int now_port)
{
    sneck_error error;
    snk_redis_address now = { .host = "127.0.0.1", .port = now_port };
    const snk_vote *chosen = NULL;
    if (snk_election_hold(votes, count, now_port == 0 ? NULL : &now, &chosen, &error) != SNECK_OK) {
        assert_int_equal(error.status, SNECK_UNAVAILABLE);
        return 0;
    }
    return chosen->master.port;
}

static void test_a_minority_of_sentinels_decides_nothing(void **state)
{
    (void)state;
    const snk_vote alone[] = { vote(1, 9, true, 1) };
    assert_int_equal(elect(alone, 1, 0), 0);
    assert_int_equal(elect(alone, 0, 0), 0);
    const snk_vote twice[] = { vote(1, 9, true, 1), vote(1, 9, true, 1) }; /* at two addresses */
    assert_int_equal(elect(twice, 2, 0), 0);
    const snk_vote two[] = { vote(1, 9, true, 1), vote(2, 9, true, 1) };
    assert_int_equal(elect(two, 2, 0), 1);
    snk_vote of_four[] = { vote(1, 9, true, 1), vote(2, 9, true, 1) };
    of_four[1].sentinels = 4;
    assert_int_equal(elect(of_four, 2, 0), 0);
}

static void test_the_highest_epoch_wins_over_any_number(void **state)
{
    (void)state;
    const snk_vote votes[] = { vote(1, 1, true, 1), vote(2, 1, true, 1), vote(3, 2, false, 2) };
    assert_int_equal(elect(votes, 3, 0), 2);
    assert_int_equal(elect(votes, 3, 1), 2);
}

static void test_with_equal_epochs_those_count_that_see_the_master(void **state)
{
    (void)state;
    const snk_vote votes[] = { vote(1, 1, false, 1), vote(2, 1, false, 1), vote(3, 1, true, 2) };
    assert_int_equal(elect(votes, 3, 0), 2);
    const snk_vote tied[] = { vote(1, 1, true, 1), vote(2, 1, true, 2) };
    assert_int_equal(elect(tied, 2, 2), 2); /* the one that is used already */
    assert_int_equal(elect(tied, 2, 1), 1);
}

/* ---- The map ---- */

static redisReply *parse(const char *text)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;
    assert_int_equal(redisReaderFeed(reader, text, strlen(text)), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    redisReaderFree(reader);
    assert_non_null(reply);
    return reply;
}

static snk_map_range *read_map(const char *text, size_t *count, size_t *slots)
{
    redisReply *reply = parse(text);
    snk_map_range *ranges = snk_map_read(reply, "asked", count, slots);
    freeReplyObject(reply);
    return ranges;
}

static void test_the_map_is_read(void **state)
{
    (void)state;
    size_t count = 0;
    size_t slots = 0;
    snk_map_range *ranges = read_map("*2\r\n"
                                     "*4\r\n:0\r\n:99\r\n*3\r\n$9\r\n127.0.0.1\r\n:7000\r\n$2\r\nid\r\n"
                                     "*3\r\n$9\r\n127.0.0.1\r\n:7003\r\n$2\r\nid\r\n"
                                     "*3\r\n:100\r\n:16383\r\n*2\r\n$-1\r\n:7001\r\n",
                                     &count, &slots);
    assert_non_null(ranges);
    assert_int_equal(count, 2);
    assert_int_equal(slots, SNK_REDIS_SLOTS);
    assert_int_equal(ranges[0].last, 99);
    assert_int_equal(ranges[0].replicas, 1);
    assert_int_equal(ranges[0].address.port, 7000);
    assert_string_equal(ranges[1].address.host, "asked"); /* a server that knows no name for itself */
    assert_int_equal(ranges[1].replicas, 0);
    free(ranges);
}

static void test_a_map_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    const char *const wrong[] = {
        "*0\r\n",
        "+OK\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n*2\r\n:0\r\n:1\r\n",
        "*1\r\n*3\r\n:5\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:0\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n:1\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n$1\r\na\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n+a\r\n",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        size_t count = 0;
        size_t slots = 0;
        if (read_map(wrong[i], &count, &slots) != NULL)
            fail_msg("%s is taken for a map", wrong[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_are_those_of_redis),
        cmocka_unit_test(test_each_slot_has_the_smallest_number_in_it),
        cmocka_unit_test(test_addresses_are_read_as_servers_write_them),
        cmocka_unit_test(test_only_answers_that_prove_that_nothing_ran_send_a_call_on),
        cmocka_unit_test(test_a_call_without_an_answer_is_sent_on_only_if_it_never_left),
        cmocka_unit_test(test_a_minority_of_sentinels_decides_nothing),
        cmocka_unit_test(test_the_highest_epoch_wins_over_any_number),
        cmocka_unit_test(test_with_equal_epochs_those_count_that_see_the_master),
        cmocka_unit_test(test_the_map_is_read),
        cmocka_unit_test(test_a_map_that_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
