#include "base/duration.h"
#include "test.h"

static void test_durations_are_read_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        { "0", 0 },
        { "0ms", 0 },
        { "250ms", 250 },
        { "1.5", 1500 },
        { "30s", 30000 },
        { "5m", 300000 },
        { "1h", 3600000 },
        { "0.5h", 1800000 },
        { ".5s", 500 },
        { "10", 10000 },
        { "0.0001s", 1 },
        { "1.0004ms", 2 },
        { "0.0000000001", 1 },
        { "1.0000000000", 1000 },
        { "24h", 86400000 },
        { "007s", 7000 },
        { "1000000h", 3600000000000 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t ms = -7;
        if (!snk_duration_parse_ms(rows[i].text, &ms) || ms != rows[i].ms)
            fail_msg("%s is %lld", rows[i].text, (long long)ms);
    }
}

static void test_what_is_no_duration_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "-1",
        "+1",
        "1 s",
        " 1",
        "1 ",
        "1d",
        "1S",
        "ms",
        "1.",
        ".",
        "1..2",
        "1e3",
        "0x10",
        "1,5",
        "1s1",
        "nan",
        "inf",
        "off",
        "1.s",
        "--",
        "5mm",
        "9223372036854775807",
        "99999999999999999999",
        "99999999999999999h",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t ms = -7;
        if (snk_duration_parse_ms(rows[i], &ms))
            fail_msg("\"%s\" is %lld", rows[i], (long long)ms);
    }
    int64_t ms = 0;
    assert_false(snk_duration_parse_ms(NULL, &ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_durations_are_read_as_people_write_them),
        cmocka_unit_test(test_what_is_no_duration_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
