/* Lines of a log: what they look like, and that no value can break out of its place. */
#include "test.h"

#include <string.h>

#include "base/logline.h"

#define MOMENT_US INT64_C(1769860800123456)

static const char *line_of(bool is_json, const char *value)
{
    static snk_logline line;
    snk_logline_begin(&line, is_json, MOMENT_US, SNECK_LOG_WARNING, "lost");
    snk_logline_text(&line, "lock", value);
    snk_logline_number(&line, "token", -17);
    return snk_logline_end(&line);
}

static void test_a_line_says_when_how_bad_what_and_about_what(void **state)
{
    (void)state;
    assert_string_equal(line_of(false, "stock/42"),
                        "ts=2026-01-31T12:00:00.123Z level=warning event=lost lock=\"stock/42\" token=-17");
    assert_string_equal(line_of(true, "stock/42"), "{\"ts\":\"2026-01-31T12:00:00.123Z\",\"level\":\"warning\","
                                                   "\"event\":\"lost\",\"lock\":\"stock/42\",\"token\":-17}");
}

static void test_values_cannot_break_out(void **state)
{
    (void)state;
    const struct {
        const char *value;
        const char *shown;
    } rows[] = {
        { "a\" event=forged x=\"", "a\\\" event=forged x=\\\"" },
        { "a\\", "a\\\\" },
        { "a\nts=1", "a\\u000ats=1" },
        { "\x1b[2J", "\\u001b[2J" },
        { "\x7f", "\\u007f" },
        { "\xe2\x80\xae evil", "\\u202e evil" },
        { "\xff\xfe", "\\ufffd\\ufffd" },
        { "\xc3\xa4 \xf0\x9f\x94\x92", "\xc3\xa4 \xf0\x9f\x94\x92" },
        { "", "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char expected[128];
        (void)snprintf(expected, sizeof expected, " lock=\"%s\" token=-17", rows[i].shown);
        if (strstr(line_of(false, rows[i].value), expected) == NULL)
            fail_msg("row %zu: %s", i, line_of(false, rows[i].value));
        (void)snprintf(expected, sizeof expected, ",\"lock\":\"%s\",\"token\":-17}", rows[i].shown);
        if (strstr(line_of(true, rows[i].value), expected) == NULL)
            fail_msg("row %zu: %s", i, line_of(true, rows[i].value));
    }
}

static void test_what_does_not_fit_is_left_out_whole(void **state)
{
    (void)state;
    char huge[2 * SNK_LOGLINE_SIZE];
    memset(huge, 'x', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    assert_string_equal(line_of(false, huge), "ts=2026-01-31T12:00:00.123Z level=warning event=lost");
    assert_string_equal(line_of(true, huge),
                        "{\"ts\":\"2026-01-31T12:00:00.123Z\",\"level\":\"warning\",\"event\":\"lost\"}");
    /* Escapes at the very end are not cut either. */
    memset(huge, '\n', sizeof huge - 1);
    assert_null(strstr(line_of(true, huge), "\\"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_says_when_how_bad_what_and_about_what),
        cmocka_unit_test(test_values_cannot_break_out),
        cmocka_unit_test(test_what_does_not_fit_is_left_out_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
