#include <string.h>

#include "base/limits.h"
#include "base/name.h"
#include "test.h"

static void test_names_of_utf8_are_taken(void **state)
{
    (void)state;
    char longest[SNK_NAME_LENGTH_MAX + 1];
    memset(longest, 'x', SNK_NAME_LENGTH_MAX);
    longest[SNK_NAME_LENGTH_MAX] = '\0';
    const char *const rows[] = {
        "a",        "stock/42",         "with space", "{tag}",        "ä",
        "日本",     "\xF0\x9F\x94\x92", "~!",         "\xEF\xBF\xBD", "\xF4\x8F\xBF\xBF",
        "\xC2\xA0", "\xED\x9F\xBF",     longest,
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sneck_error error;
        if (snk_name_check(rows[i], &error) != SNECK_OK)
            fail_msg("%s: %s", rows[i], error.message);
        assert_int_equal(error.status, SNECK_OK);
    }
}

static void test_other_names_are_refused_with_a_reason(void **state)
{
    (void)state;
    char too_long[SNK_NAME_LENGTH_MAX + 2];
    memset(too_long, 'x', SNK_NAME_LENGTH_MAX + 1);
    too_long[SNK_NAME_LENGTH_MAX + 1] = '\0';
    const struct {
        const char *name;
        const char *says;
    } rows[] = {
        { NULL, "NULL" },
        { "", "empty" },
        { too_long, "longer than 512" },
        { "a\nb", "control character at byte 1" },
        { "\x1B[31m", "control character at byte 0" },
        { "ab\x7F", "control character at byte 2" },
        { "\xC2\x85", "control character" }, /* U+0085 */
        { "a\x80", "not UTF-8 at byte 1" },  /* a continuation alone */
        { "\xC3", "not UTF-8" },             /* cut */
        { "\xE2\x82", "not UTF-8" },         /* cut */
        { "\xC0\xAF", "not UTF-8" },         /* longer than need be */
        { "\xE0\x80\xAF", "not UTF-8" },     /* longer than need be */
        { "\xF0\x80\x80\xAF", "not UTF-8" }, /* longer than need be */
        { "\xED\xA0\x80", "not UTF-8" },     /* half of a surrogate pair */
        { "\xF4\x90\x80\x80", "not UTF-8" }, /* beyond the last character */
        { "\xFF", "not UTF-8" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sneck_error error = { .status = SNECK_OK };
        assert_int_equal(snk_name_check(rows[i].name, &error), SNECK_INVALID);
        assert_int_equal(error.status, SNECK_INVALID);
        if (strstr(error.message, rows[i].says) == NULL)
            fail_msg("row %zu: \"%s\" does not say \"%s\"", i, error.message, rows[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_utf8_are_taken),
        cmocka_unit_test(test_other_names_are_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
