/* The book of subscriptions: what is to be sent, and which answer confirms what. */
#include "test.h"

#include <string.h>

#include "redis/channels.h"

static snk_redis_channels channels;

static int set_up(void **state)
{
    (void)state;
    snk_redis_channels_init(&channels);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    snk_redis_channels_deinit(&channels);
    return 0;
}

static void want(const char *name)
{
    assert_int_equal(snk_redis_channels_want(&channels, name, strlen(name), NULL), SNECK_OK);
}

static void unwant(const char *name)
{
    snk_redis_channels_unwant(&channels, name, strlen(name));
}

static void expect_sent(const char *name, bool join)
{
    snk_redis_channel *channel;
    bool joins;
    assert_true(snk_redis_channels_next(&channels, &channel, &joins));
    assert_string_equal(channel->name, name);
    assert_int_equal(joins, join);
}

static void expect_nothing_to_send(void)
{
    snk_redis_channel *channel;
    bool joins;
    assert_false(snk_redis_channels_next(&channels, &channel, &joins));
}

static bool is_confirmed(const char *name)
{
    const snk_redis_channel *channel = snk_redis_channels_find(&channels, name, strlen(name));
    return channel != NULL && channel->confirmed;
}

static void test_only_the_answer_to_the_last_command_confirms(void **state)
{
    (void)state;
    want("a");
    expect_sent("a", true);
    unwant("a");
    expect_sent("a", false);
    want("a");
    expect_sent("a", true);
    assert_null(snk_redis_channels_answered(&channels, NULL));
    assert_false(is_confirmed("a"));
    assert_null(snk_redis_channels_answered(&channels, NULL));
    assert_false(is_confirmed("a"));
    assert_non_null(snk_redis_channels_answered(&channels, NULL));
    assert_true(is_confirmed("a"));
}

static void test_what_changes_back_before_it_is_sent_is_not_sent(void **state)
{
    (void)state;
    want("a");
    unwant("a");
    expect_nothing_to_send();
    assert_int_equal(channels.count, 0);
    want("b");
    want("b");
    expect_sent("b", true);
    unwant("b");
    expect_nothing_to_send();
}

static void test_a_channel_is_forgotten_when_its_leaving_is_confirmed(void **state)
{
    (void)state;
    want("a");
    expect_sent("a", true);
    snk_redis_channels_answered(&channels, NULL);
    unwant("a");
    expect_sent("a", false);
    assert_int_equal(channels.count, 1);
    assert_null(snk_redis_channels_answered(&channels, NULL));
    assert_int_equal(channels.count, 0);
}

static void test_after_a_cut_everything_that_is_wanted_is_sent_again(void **state)
{
    (void)state;
    want("a");
    want("b");
    expect_sent("a", true);
    expect_sent("b", true);
    snk_redis_channels_answered(&channels, NULL);
    assert_true(is_confirmed("a"));
    unwant("b");
    snk_redis_channels_cut(&channels);
    assert_false(is_confirmed("a"));
    assert_int_equal(channels.count, 1);
    expect_sent("a", true);
    expect_nothing_to_send();
}

static void test_a_refusal_is_kept_until_the_next_attempt(void **state)
{
    (void)state;
    sneck_error refusal = { .status = SNECK_DENIED };
    want("a");
    expect_sent("a", true);
    const snk_redis_channel *channel = snk_redis_channels_answered(&channels, &refusal);
    assert_non_null(channel);
    assert_false(channel->confirmed);
    assert_int_equal(channel->refused.status, SNECK_DENIED);
    snk_redis_channels_cut(&channels);
    expect_sent("a", true);
    assert_int_equal(channel->refused.status, SNECK_OK);
}

static void test_an_answer_to_no_command_is_ignored(void **state)
{
    (void)state;
    assert_null(snk_redis_channels_answered(&channels, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_only_the_answer_to_the_last_command_confirms, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_changes_back_before_it_is_sent_is_not_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_channel_is_forgotten_when_its_leaving_is_confirmed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_after_a_cut_everything_that_is_wanted_is_sent_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_refusal_is_kept_until_the_next_attempt, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_answer_to_no_command_is_ignored, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
