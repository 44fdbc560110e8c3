#include "test.h"

#include <signal.h>
#include <string.h>

#include "base/nearest.h"
#include "escape.h"
#include "json.h"
#include "output.h"
#include "signals.h"

static void check_escape(const char *text, const char *expected)
{
    char buffer[256];
    assert_string_equal(snk_escape(buffer, sizeof buffer, text), expected);
    char *written = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&written, &length);
    snk_escape_write(stream, text);
    fclose(stream);
    assert_string_equal(written, expected);
    free(written);
}

static void test_ordinary_text_stays(void **state)
{
    (void)state;
    check_escape("", "");
    check_escape("deploy/prod 42", "deploy/prod 42");
    check_escape("t\xC3\xBCr \xE2\x82\xAC \xF0\x9F\x94\x92", "t\xC3\xBCr \xE2\x82\xAC \xF0\x9F\x94\x92");
}

static void test_nothing_reaches_the_terminal_that_could_control_it(void **state)
{
    (void)state;
    check_escape("\x1B[2J", "\\x1B[2J");
    check_escape("a\nb\tc\rd\\", "a\\nb\\tc\\x0Dd\\\\");
    check_escape("\x7F", "\\x7F");
    check_escape("\xC2\x9B"
                 "2J",
                 "\\u009B2J");               /* the one-byte form of ESC [ */
    check_escape("\xE2\x80\xAE", "\\u202E"); /* right-to-left override */
    check_escape("\xE2\x81\xA6\xE2\x80\xA8", "\\u2066\\u2028");
}

static void test_what_is_not_utf8_is_shown_as_bytes(void **state)
{
    (void)state;
    check_escape("\xFF", "\\xFF");
    check_escape("\xC3", "\\xC3");
    check_escape("\xC0\x80", "\\xC0\\x80");                   /* too long a form of NUL */
    check_escape("\xED\xA0\x80", "\\xED\\xA0\\x80");          /* half of a surrogate pair */
    check_escape("\xF4\x90\x80\x80", "\\xF4\\x90\\x80\\x80"); /* beyond Unicode */
    check_escape("\xE2\x82", "\\xE2\\x82");
}

static void test_a_long_text_is_cut_between_characters(void **state)
{
    (void)state;
    char buffer[8];
    assert_string_equal(snk_escape(buffer, sizeof buffer, "1234567"), "1234567");
    assert_string_equal(snk_escape(buffer, sizeof buffer, "12345678"), "1234...");
    assert_string_equal(snk_escape(buffer, sizeof buffer, "123\xE2\x82\xAC\xE2\x82\xAC"), "123...");
    assert_string_equal(snk_escape(buffer, sizeof buffer, "12\n\n\n"), "12\\n...");
}

static void test_json_is_valid_whatever_the_text(void **state)
{
    (void)state;
    char *written = NULL;
    size_t length = 0;
    snk_json json = snk_json_on(open_memstream(&written, &length));
    snk_json_open(&json, NULL, '{');
    snk_json_text(&json, "a\"b", "x\n\x1B\\\"\xFF\xC2\x9B\xC3\xBC");
    snk_json_text(&json, "none", NULL);
    snk_json_open(&json, "list", '[');
    snk_json_int(&json, NULL, -5);
    snk_json_uint(&json, NULL, UINT64_MAX);
    snk_json_close(&json, ']');
    snk_json_open(&json, "empty", '{');
    snk_json_close(&json, '}');
    snk_json_bool(&json, "yes", true);
    snk_json_number(&json, "half", 0.5, 2);
    snk_json_close(&json, '}');
    snk_json_end(&json);
    fclose(json.stream);
    assert_string_equal(written, "{\"a\\\"b\":\"x\\u000a\\u001b\\\\\\\"\\ufffd\\u009b\xC3\xBC\",\"none\":null,"
                                 "\"list\":[-5,18446744073709551615],\"empty\":{},\"yes\":true,\"half\":0.50}\n");
    free(written);
}

static void check_duration(int64_t ms, const char *expected)
{
    char text[SNK_TIME_TEXT_SIZE];
    assert_string_equal(snk_format_duration(text, ms), expected);
}

static void test_durations_for_people(void **state)
{
    (void)state;
    check_duration(-1, "0s");
    check_duration(0, "0ms");
    check_duration(999, "999ms");
    check_duration(1000, "1.0s");
    check_duration(9999, "9.9s");
    check_duration(59999, "59s");
    check_duration(192000, "3m12s");
    check_duration(7500000, "2h05m");
    check_duration(INT64_C(273600000), "3d04h");
    check_duration(INT64_MAX, "106751991167d07h");
}

static void test_times_for_people(void **state)
{
    (void)state;
    char text[SNK_TIME_TEXT_SIZE];
    assert_string_equal(snk_format_time(text, 0), "1970-01-01T00:00:00.000Z");
    assert_string_equal(snk_format_time(text, INT64_C(1769868131250)), "2026-01-31T14:02:11.250Z");
    assert_string_equal(snk_format_time(text, -1), "?");
    assert_string_equal(snk_format_time(text, INT64_MAX), "?");
}

static const char *nearest_of(const char *typed)
{
    snk_nearest nearest = snk_nearest_to(typed);
    snk_nearest_offer(&nearest, "lease");
    snk_nearest_offer(&nearest, "renew");
    snk_nearest_offer(&nearest, "run");
    return nearest.best;
}

static void test_a_typing_error_finds_the_word(void **state)
{
    (void)state;
    assert_string_equal(nearest_of("lese"), "lease");
    assert_string_equal(nearest_of("laese"), "lease");
    assert_string_equal(nearest_of("rnu"), "run");
    assert_string_equal(nearest_of("renwe"), "renew");
    assert_null(nearest_of("zzzzz"));
    assert_null(nearest_of("a-word-that-is-far-longer-than-any-flag-of-ours"));
}

static void test_signals_by_name_and_number(void **state)
{
    (void)state;
    int number = 0;
    static const char *const good[] = { "TERM", "SIGTERM", "term", "15" };
    static const char *const bad[] = { "", "SIG", "NOPE", "0", "-15", "999", "15x", "TERM " };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        number = 0;
        assert_true(snk_signal_parse(good[i], &number));
        assert_int_equal(number, SIGTERM);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(snk_signal_parse(bad[i], &number));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordinary_text_stays),
        cmocka_unit_test(test_nothing_reaches_the_terminal_that_could_control_it),
        cmocka_unit_test(test_what_is_not_utf8_is_shown_as_bytes),
        cmocka_unit_test(test_a_long_text_is_cut_between_characters),
        cmocka_unit_test(test_json_is_valid_whatever_the_text),
        cmocka_unit_test(test_durations_for_people),
        cmocka_unit_test(test_times_for_people),
        cmocka_unit_test(test_a_typing_error_finds_the_word),
        cmocka_unit_test(test_signals_by_name_and_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
