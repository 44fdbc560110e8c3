#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/url.h"
#include "test.h"

static void parse(snk_url *url, const char *text)
{
    sneck_error error;
    if (snk_url_parse(url, text, &error) != SNECK_OK)
        fail_msg("%s: %s", text, error.message);
}

static void test_a_url_comes_apart_into_its_pieces(void **state)
{
    (void)state;
    snk_url url;
    parse(&url, "REDIS+sentinel://me:p%40ss@h1:26379,[::1]:7,h3/service/0?lease=30s&prefix=a%26b%3D&retry=");
    assert_string_equal(url.scheme, "redis+sentinel");
    assert_string_equal(url.user, "me");
    assert_string_equal(url.password, "p@ss");
    assert_int_equal(url.host_count, 3);
    assert_string_equal(url.hosts[0].name, "h1");
    assert_int_equal(url.hosts[0].port, 26379);
    assert_string_equal(url.hosts[1].name, "::1");
    assert_int_equal(url.hosts[1].port, 7);
    assert_string_equal(url.hosts[2].name, "h3");
    assert_int_equal(url.hosts[2].port, 0);
    assert_string_equal(url.path, "/service/0");
    assert_int_equal(url.key_count, 3);
    assert_string_equal(snk_url_value(&url, "lease"), "30s");
    assert_string_equal(snk_url_value(&url, "prefix"), "a&b=");
    assert_string_equal(snk_url_value(&url, "retry"), "");
    assert_null(snk_url_value(&url, "leas"));
    snk_url_deinit(&url);
}

static void test_missing_pieces_are_empty(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *path;
        size_t hosts;
    } rows[] = {
        { "sqlite:", "", 0 },
        { "memory:?lease=1s", "", 0 },
        { "sqlite:///a/b%20c", "/a/b c", 0 },
        { "sqlite:/abs", "/abs", 0 },
        { "redis://h", "", 1 },
        { "redis://h/", "/", 1 },
        { "redis://h?lease=1s", "", 1 },
        { "redis://:pw@h", "", 1 },
        { "sqlite:?", "", 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snk_url url;
        parse(&url, rows[i].text);
        assert_string_equal(url.path, rows[i].path);
        assert_int_equal(url.host_count, rows[i].hosts);
        assert_string_equal(url.user, "");
        snk_url_deinit(&url);
    }
}

static void test_wrong_urls_are_refused_and_no_password_is_shown(void **state)
{
    (void)state;
    char too_long[SNK_URL_LENGTH_MAX + 32];
    memset(too_long, 'x', sizeof too_long);
    memcpy(too_long, "sqlite:///", 10);
    too_long[sizeof too_long - 1] = '\0';
    char many[1024] = "redis://h";
    for (int i = 0; i < 40; i++)
        (void)snk_copy_text(many + strlen(many), sizeof many - strlen(many), ",hunter2");
    const char *const rows[] = {
        NULL,
        "",
        "hunter2",
        "/tmp/hunter2",
        "1redis://u:hunter2@h",
        "re dis://u:hunter2@h",
        "redis://u:hunter2@",
        "redis://u:hunter2@h:0",
        "redis://u:hunter2@h:65536",
        "redis://u:hunter2@h:hunter2",
        "redis://u:hunter2@h:",
        "redis://u:hunter2@h,,g",
        "redis://u:hunter2@::1",
        "redis://u:hunter2@[::1",
        "redis://u:hunter2@[::1]x",
        "redis://u:hunter2%4@h",
        "redis://u:hunter2%zz@h",
        "redis://u:hunter2%00@h",
        "redis://u:hunter2#@h",
        "redis://u:hunter2\n@h",
        "redis://u:hunter2@h/%",
        "redis://u:hunter2@h?=v",
        "redis://u:hunter2@h?lease",
        "redis://u:hunter2@h?lease=%",
        "redis://u:hunter2@h?a=1&&b=2",
        "redis://u:hunter2@h?le%61se=1",
        "sqlite:hunter2",
        "user:hunter2@host",
        too_long,
        many,
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snk_url url;
        sneck_error error = { .status = SNECK_OK };
        if (snk_url_parse(&url, rows[i], &error) != SNECK_INVALID || error.status != SNECK_INVALID)
            fail_msg("row %zu was taken", i);
        if (strstr(error.message, "hunter2") != NULL || strlen(error.message) < 30)
            fail_msg("row %zu says: %s", i, error.message);
        assert_null(url.memory);
    }
}

static void test_an_unknown_key_names_the_nearest_known_one(void **state)
{
    (void)state;
    static const char *const known[] = { "prefix", "lease", "watchdog", "retry", NULL };
    static const struct {
        const char *url;
        const char *says;
    } rows[] = {
        { "sqlite:?leese=1s", "unknown key \"leese\"; did you mean \"lease\"?" },
        { "sqlite:?lease=1s&watchdgo=1s", "did you mean \"watchdog\"?" },
        { "sqlite:?leaes=1s", "did you mean \"lease\"?" },
        { "sqlite:?x=1", "unknown key \"x\"; did you mean \"" },
        { "sqlite:?lease=1s&retry=1&lease=2s", "\"lease\" twice" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snk_url url;
        sneck_error error;
        parse(&url, rows[i].url);
        assert_int_equal(snk_url_check_keys(&url, known, &error), SNECK_INVALID);
        if (strstr(error.message, rows[i].says) == NULL)
            fail_msg("row %zu says: %s", i, error.message);
        snk_url_deinit(&url);
    }
    snk_url url;
    parse(&url, "sqlite:?lease=1s&prefix=");
    assert_int_equal(snk_url_check_keys(&url, known, NULL), SNECK_OK);
    snk_url_deinit(&url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_url_comes_apart_into_its_pieces),
        cmocka_unit_test(test_missing_pieces_are_empty),
        cmocka_unit_test(test_wrong_urls_are_refused_and_no_password_is_shown),
        cmocka_unit_test(test_an_unknown_key_names_the_nearest_known_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
