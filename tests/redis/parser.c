/* What the parser takes and what it refuses, before anything is allocated for it. */
#include "test.h"

#include <string.h>

#include "redis/parser.h"

static bool feeds(const char *text)
{
    snk_redis_measure measure = { .where = "redis here" };
    sneck_error error;
    return snk_redis_measure_feed(&measure, text, strlen(text), &error);
}

static void test_an_array_of_two_billion_elements_is_refused_at_its_header(void **state)
{
    (void)state;
    assert_false(feeds("*2147483647\r\n"));
    assert_false(feeds("*262145\r\n"));
    assert_true(feeds("*262144\r\n"));
}

static void test_elements_of_nested_arrays_count_together(void **state)
{
    (void)state;
    assert_true(feeds("*2\r\n*200000\r\n"));
    assert_false(feeds("*200000\r\n*200000\r\n"));
}

static void test_a_string_that_is_too_long_is_refused_at_its_header(void **state)
{
    (void)state;
    assert_true(feeds("$16777000\r\n"));
    assert_false(feeds("$16777217\r\n"));
    assert_false(feeds("$99999999999999999999\r\n"));
    assert_false(feeds("$-2\r\n"));
    assert_false(feeds("$\r\n"));
    assert_false(feeds("$1x\r\n"));
}

static void test_strings_of_one_reply_count_together(void **state)
{
    (void)state;
    snk_redis_measure measure = { .where = "redis here" };
    sneck_error error;
    char *half = calloc(1, 9 * 1024 * 1024 + 2);
    assert_non_null(half);
    const char header[] = "$9437184\r\n";
    assert_true(snk_redis_measure_feed(&measure, "*2\r\n", 4, &error));
    assert_true(snk_redis_measure_feed(&measure, header, strlen(header), &error));
    assert_true(snk_redis_measure_feed(&measure, half, 9 * 1024 * 1024 + 2, &error));
    assert_false(snk_redis_measure_feed(&measure, header, strlen(header), &error));
    /* As replies of their own both are fine. */
    measure = (snk_redis_measure){ .where = "redis here" };
    for (int i = 0; i < 2; i++) {
        assert_true(snk_redis_measure_feed(&measure, header, strlen(header), &error));
        assert_true(snk_redis_measure_feed(&measure, half, 9 * 1024 * 1024 + 2, &error));
    }
    free(half);
}

static void test_arrays_nested_too_deep_are_refused(void **state)
{
    (void)state;
    assert_true(feeds("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"));
    assert_false(feeds("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"));
}

static void test_a_line_without_end_is_refused(void **state)
{
    (void)state;
    snk_redis_measure measure = { .where = "redis here" };
    sneck_error error;
    bool fine = snk_redis_measure_feed(&measure, "+", 1, &error);
    for (int i = 0; i < 70000 && fine; i++)
        fine = snk_redis_measure_feed(&measure, "x", 1, &error);
    assert_false(fine);
    assert_int_equal(error.status, SNECK_UNAVAILABLE);
}

static void test_types_of_resp3_and_garbage_are_refused(void **state)
{
    (void)state;
    assert_false(feeds("%1\r\n"));
    assert_false(feeds("_\r\n"));
    assert_false(feeds("HTTP/1.1 400 Bad Request\r\n"));
    assert_false(feeds("\r\n"));
}

static void feed_in_steps(snk_redis_parser *parser, const char *text, size_t length, size_t step)
{
    sneck_error error;
    for (size_t i = 0; i < length; i += step) {
        size_t count = length - i < step ? length - i : step;
        assert_true(snk_redis_parser_feed(parser, text + i, count, &error));
    }
}

static void test_replies_come_out_whole_however_the_bytes_are_cut(void **state)
{
    (void)state;
    static const char text[] = "*4\r\n:7\r\n$5\r\na\r\nb\0\r\n*0\r\n*-1\r\n+OK\r\n$-1\r\n-ERR no\r\n$0\r\n\r\n";
    for (size_t step = 1; step < sizeof text; step++) {
        snk_redis_parser parser;
        sneck_error error;
        assert_int_equal(snk_redis_parser_init(&parser, "redis here", &error), SNECK_OK);
        feed_in_steps(&parser, text, sizeof text - 1, step);
        static const int types[] = { REDIS_REPLY_ARRAY, REDIS_REPLY_STATUS, REDIS_REPLY_NIL, REDIS_REPLY_ERROR,
                                     REDIS_REPLY_STRING };
        for (size_t i = 0; i < 5; i++) {
            redisReply *reply;
            assert_true(snk_redis_parser_next(&parser, &reply, &error));
            assert_non_null(reply);
            assert_int_equal(reply->type, types[i]);
            if (i == 0) {
                assert_int_equal(reply->elements, 4);
                assert_memory_equal(reply->element[1]->str, "a\r\nb\0", 5);
            }
            freeReplyObject(reply);
        }
        redisReply *none;
        assert_true(snk_redis_parser_next(&parser, &none, &error));
        assert_null(none);
        /* All counters are back at their start: the next reply has the whole allowance. */
        assert_int_equal(parser.measure.depth, 0);
        assert_int_equal(parser.measure.bytes, 0);
        assert_int_equal(parser.measure.elements, 0);
        snk_redis_parser_deinit(&parser);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_array_of_two_billion_elements_is_refused_at_its_header),
        cmocka_unit_test(test_elements_of_nested_arrays_count_together),
        cmocka_unit_test(test_a_string_that_is_too_long_is_refused_at_its_header),
        cmocka_unit_test(test_strings_of_one_reply_count_together),
        cmocka_unit_test(test_arrays_nested_too_deep_are_refused),
        cmocka_unit_test(test_a_line_without_end_is_refused),
        cmocka_unit_test(test_types_of_resp3_and_garbage_are_refused),
        cmocka_unit_test(test_replies_come_out_whole_however_the_bytes_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
