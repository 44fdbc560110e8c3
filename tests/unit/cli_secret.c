#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "secret.h"

static void check_strip(const char *url, const char *expected)
{
    char *stripped = snk_secret_strip_url(url);
    assert_string_equal(stripped, expected);
    free(stripped);
}

static void test_a_password_is_taken_out(void **state)
{
    (void)state;
    check_strip("redis://user:secret@host:6379/0", "redis://user@host:6379/0");
    check_strip("redis://:secret@host", "redis://host");
    check_strip("redis://user:a:b@c@h1,h2/0?prefix=x", "redis://user@h1,h2/0?prefix=x");
    check_strip("redis+unix://user:secret@/run/redis.sock", "redis+unix://user@/run/redis.sock");
    check_strip("redis://user:@host", "redis://user@host");
}

static void test_a_url_without_password_stays(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "sqlite:", "sqlite:///a/b@c:d",  "redis://host:6379/0",         "redis://user@host", "memory:",
        "",        "redis://[::1]:6379", "sqlite:///file?prefix=a:b@c",
    };
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++)
        check_strip(urls[i], urls[i]);
}

static void test_an_argument_keeps_its_length_and_loses_its_password(void **state)
{
    (void)state;
    char argument[] = "redis://user:secret@host/0";
    char url[64];
    assert_true(snk_secret_take_url(argument, url, sizeof url));
    assert_string_equal(url, "redis://user:secret@host/0");
    assert_string_equal(argument, "redis://user:******@host/0");
}

static void test_an_argument_that_is_refused_loses_its_password_too(void **state)
{
    (void)state;
    char argument[] = "redis://user:secret@host/0";
    char empty[] = "";
    char url[10];
    assert_false(snk_secret_take_url(argument, url, sizeof url));
    assert_string_equal(argument, "redis://user:******@host/0");
    assert_false(snk_secret_take_url(empty, url, sizeof url));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_password_is_taken_out),
        cmocka_unit_test(test_a_url_without_password_stays),
        cmocka_unit_test(test_an_argument_keeps_its_length_and_loses_its_password),
        cmocka_unit_test(test_an_argument_that_is_refused_loses_its_password_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
