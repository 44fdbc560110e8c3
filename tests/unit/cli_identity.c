#include "test.h"

#include <stdbool.h>
#include <string.h>

#include "store_identity.h"

static bool same(const char *a, const char *b)
{
    char *left = snk_store_identity(a);
    char *right = snk_store_identity(b);
    assert_non_null(left);
    assert_non_null(right);
    bool equal = strcmp(left, right) == 0;
    free(left);
    free(right);
    return equal;
}

static void test_urls_of_the_same_locks(void **state)
{
    (void)state;
    assert_true(same("sqlite:", "sqlite:?lease=40s"));
    assert_true(same("sqlite:///dev/null", "sqlite:///dev/../dev/null?prefix=lock:"));
    assert_true(same("sqlite:///no/such/file", "sqlite:///no/such/file?retry=1s"));
    assert_true(same("redis://host", "redis://host:6379/0"));
    assert_true(same("redis://host/", "rediss://HOST"));
    assert_true(same("redis://user:secret@host", "redis://user@host"));
    assert_true(same("redis://user:secret@host", "redis://:other@host?timeout=100"));
    assert_true(same("redis+unix:///dev/null", "redis+unix:///dev/./null"));
    assert_true(same("nonsense", "nonsense"));
}

static void test_urls_of_other_locks(void **state)
{
    (void)state;
    assert_false(same("sqlite:", "sqlite:///dev/null"));
    assert_false(same("sqlite:///dev/null", "sqlite:///dev/zero"));
    assert_false(same("sqlite:", "sqlite:?prefix="));
    assert_false(same("redis://host", "redis://other"));
    assert_false(same("redis://host", "redis://host:6380"));
    assert_false(same("redis://host", "redis://host/1"));
    assert_false(same("redis://host", "redis://host?prefix=a:"));
    assert_false(same("redis://host", "memory:"));
    assert_false(same("redis+unix:///dev/null", "redis+unix:///dev/zero"));
}

static void test_nothing_secret_and_no_control_character_is_in_it(void **state)
{
    (void)state;
    char *identity = snk_store_identity("redis://user:secret@host?prefix=a%0Ab%09c");
    assert_non_null(identity);
    assert_null(strstr(identity, "secret"));
    assert_null(strpbrk(identity, "\n\t"));
    free(identity);
    identity = snk_store_identity("redis://user:secret@host?");
    assert_non_null(identity);
    assert_null(strstr(identity, "secret"));
    free(identity);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls_of_the_same_locks),
        cmocka_unit_test(test_urls_of_other_locks),
        cmocka_unit_test(test_nothing_secret_and_no_control_character_is_in_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
