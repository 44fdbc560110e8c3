/* Options from struct, URL and environment; and every wrong argument, refused before any I/O. */
#include "bed.h"

#include <string.h>
#include <unistd.h>

#include "client/client.h"

static void clear_environment(void)
{
    static const char *const names[] = { "SNECK_STORE", "SNECK_LEASE", "SNECK_WATCHDOG", "SNECK_RETRY" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unsetenv(names[i]);
}

static int set_up(void **state)
{
    (void)state;
    clear_environment();
    return 0;
}

typedef struct times {
    int64_t lease_ms;
    int64_t watchdog_ms;
    int64_t retry_ms;
} times;

static void expect_times(const char *url, const sneck_client_options *options, times expected)
{
    sneck_error error;
    sneck_client *client = NULL;
    EXPECT(SNECK_OK, sneck_open(url, options, &client, &error));
    assert_true(client->settings.lease_ms == expected.lease_ms);
    assert_true(client->settings.watchdog_ms == expected.watchdog_ms);
    assert_true(client->settings.retry_ms == expected.retry_ms);
    sneck_close(client);
}

static void test_an_option_beats_the_url_which_beats_the_environment(void **state)
{
    (void)state;
    expect_times("memory:", NULL, (times){ 30000, 5000, 100 });
    (void)setenv("SNECK_LEASE", "20s", 1);
    (void)setenv("SNECK_WATCHDOG", "off", 1);
    (void)setenv("SNECK_RETRY", "7ms", 1);
    expect_times("memory:", NULL, (times){ 20000, SNECK_NEVER, 7 });
    expect_times("memory:?lease=10s&watchdog=1s&retry=8ms", NULL, (times){ 10000, 1000, 8 });
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    expect_times("memory:?lease=10s", &options, (times){ 10000, SNECK_NEVER, 7 });
    options.lease_ms = 5000;
    options.watchdog_ms = 2000;
    options.retry_ms = 9;
    expect_times("memory:?lease=10s&watchdog=1s&retry=8ms", &options, (times){ 5000, 2000, 9 });
    options.watchdog_ms = SNECK_NEVER;
    expect_times("memory:", &options, (times){ 5000, SNECK_NEVER, 9 });
    (void)setenv("SNECK_LEASE", "", 1); /* as if it were not there */
    expect_times("memory:", NULL, (times){ 30000, SNECK_NEVER, 7 });
}

static void test_the_prefix_comes_from_struct_url_or_default(void **state)
{
    (void)state;
    sneck_error error;
    static const struct {
        const char *url;
        const char *option;
        const char *prefix;
    } rows[] = {
        { "memory:", NULL, "lock:" },   { "memory:?prefix=a%3Ab", NULL, "a:b" }, { "memory:?prefix=", NULL, "" },
        { "memory:?prefix=x", "", "" }, { "memory:?prefix=x", "y", "y" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
        options.prefix = rows[i].option;
        sneck_client *client = NULL;
        EXPECT(SNECK_OK, sneck_open(rows[i].url, &options, &client, &error));
        assert_string_equal(client->settings.prefix, rows[i].prefix);
        sneck_close(client);
    }
}

static void test_the_environment_names_the_store_where_no_url_does(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = NULL;
    (void)setenv("SNECK_STORE", "memory:?lease=11s", 1);
    expect_times(NULL, NULL, (times){ 11000, 5000, 100 });
    (void)setenv("SNECK_STORE", "nonsense:", 1);
    EXPECT(SNECK_UNSUPPORTED, sneck_open(NULL, NULL, &client, &error));
    assert_null(client);
    (void)unsetenv("SNECK_STORE");
    assert_string_equal(snk_settings_url(NULL), "sqlite:");
    assert_string_equal(snk_settings_url("memory:"), "memory:");
}

static void test_wrong_urls_and_environments_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        const char *variable;
        const char *value;
        const char *says;
    } rows[] = {
        { "", NULL, NULL, "empty" },
        { "no url", NULL, NULL, "space" },
        { "memory", NULL, NULL, "scheme" },
        { "memory:?lease=99ms", NULL, NULL, "lease= in the store's URL is 99 ms" },
        { "memory:?lease=8000h", NULL, NULL, "lease= in the store's URL" },
        { "memory:?lease=soon", NULL, NULL, "not a duration" },
        { "memory:?lease=off", NULL, NULL, "not a duration" },
        { "memory:?lease=", NULL, NULL, "not a duration" },
        { "memory:?watchdog=99ms", NULL, NULL, "watchdog= in the store's URL" },
        { "memory:?retry=0", NULL, NULL, "retry= in the store's URL" },
        { "memory:?retyr=1s", NULL, NULL, "did you mean \"retry\"" },
        { "memory:?file_mode=0600", NULL, NULL, "unknown key \"file_mode\"" },
        { "memory:?lease=1s&lease=2s", NULL, NULL, "twice" },
        { "memory:?prefix=%01", NULL, NULL, "prefix" },
        { "memory:", "SNECK_LEASE", "soon", "SNECK_LEASE" },
        { "memory:", "SNECK_LEASE", "50ms", "SNECK_LEASE" },
        { "memory:", "SNECK_WATCHDOG", "50ms", "SNECK_WATCHDOG" },
        { "memory:", "SNECK_RETRY", "-1", "SNECK_RETRY" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sneck_error error = { .status = SNECK_OK };
        sneck_client *client = NULL;
        clear_environment();
        if (rows[i].variable != NULL)
            (void)setenv(rows[i].variable, rows[i].value, 1);
        if (sneck_open(rows[i].url, NULL, &client, &error) != SNECK_INVALID || error.status != SNECK_INVALID)
            fail_msg("row %zu: %s", i, error.message);
        if (client != NULL || strstr(error.message, rows[i].says) == NULL)
            fail_msg("row %zu does not say \"%s\": %s", i, rows[i].says, error.message);
    }
}

/* A store that cannot exist: whatever is refused with INVALID was refused before it was opened. */
#define NOWHERE "sqlite:///nonexistent/directory/locks.db"

static void test_wrong_client_options_are_refused_before_any_io(void **state)
{
    (void)state;
    static const struct {
        sneck_client_options options;
        const char *says;
    } rows[] = {
        { { .size = 0 }, "SNECK_CLIENT_OPTIONS_INIT" },
        { { .size = 4 }, "SNECK_CLIENT_OPTIONS_INIT" },
        { { .size = (size_t)-1 }, "SNECK_CLIENT_OPTIONS_INIT" },
        { { .size = sizeof(sneck_client_options), .lease_ms = 99 }, "lease_ms is 99 ms" },
        { { .size = sizeof(sneck_client_options), .lease_ms = -1 }, "lease_ms is -1 ms" },
        { { .size = sizeof(sneck_client_options), .lease_ms = INT64_MAX }, "lease_ms" },
        { { .size = sizeof(sneck_client_options), .watchdog_ms = 99 }, "watchdog_ms is 99 ms" },
        { { .size = sizeof(sneck_client_options), .watchdog_ms = -2 }, "or off" },
        { { .size = sizeof(sneck_client_options), .retry_ms = -1 }, "retry_ms" },
        { { .size = sizeof(sneck_client_options), .prefix = "a\nb" }, "control character" },
        { { .size = sizeof(sneck_client_options), .prefix = "\xFF" }, "UTF-8" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sneck_error error;
        sneck_client *client = NULL;
        if (sneck_open(NOWHERE, &rows[i].options, &client, &error) != SNECK_INVALID)
            fail_msg("row %zu: %s", i, error.message);
        if (strstr(error.message, rows[i].says) == NULL)
            fail_msg("row %zu does not say \"%s\": %s", i, rows[i].says, error.message);
    }
    sneck_error error;
    EXPECT(SNECK_INVALID, sneck_open("memory:", NULL, NULL, &error));
    sneck_client *client = NULL;
    sneck_status status = sneck_open(NOWHERE, NULL, &client, &error);
    assert_true(status == SNECK_UNAVAILABLE || status == SNECK_INVALID || status == SNECK_DENIED);
    assert_null(client);
}

static void test_structs_of_other_versions_are_taken(void **state)
{
    (void)state;
    sneck_error error;
    struct {
        sneck_client_options options;
        int64_t later[4];
    } later = { .options = SNECK_CLIENT_OPTIONS_INIT };
    sneck_client *client = NULL;
    later.options.size = sizeof later;
    EXPECT(SNECK_OK, sneck_open("memory:", &later.options, &client, &error));
    sneck_close(client);
    later.later[2] = 1; /* asks for something that we do not know */
    EXPECT(SNECK_UNSUPPORTED, sneck_open("memory:", &later.options, &client, &error));
    sneck_client_options older = SNECK_CLIENT_OPTIONS_INIT;
    older.size = offsetof(sneck_client_options, watchdog_ms);
    older.lease_ms = 7000;
    older.watchdog_ms = 1; /* not there, as far as the caller knows */
    expect_times("memory:", &older, (times){ 7000, 5000, 100 });
}

static void test_wrong_lock_options_are_refused(void **state)
{
    (void)state;
    char long_why[202];
    memset(long_why, 'w', 201);
    long_why[201] = '\0';
#define ROW(...)                                                                                                       \
    {                                                                                                                  \
        .size = sizeof(sneck_lock_options), .reentrant = true, __VA_ARGS__                                             \
    }
    const struct {
        sneck_lock_options options;
        sneck_status status;
        const char *says;
    } rows[] = {
        { { .size = 0 }, SNECK_INVALID, "SNECK_LOCK_OPTIONS_INIT" },
        { ROW(.lease_ms = 99), SNECK_INVALID, "lease_ms is 99 ms" },
        { ROW(.lease_ms = -1), SNECK_INVALID, "lease_ms" },
        { ROW(.lease_ms = 1000, .renew_ms = 501), SNECK_INVALID, "renew_ms is 501" },
        { ROW(.renew_ms = -2), SNECK_INVALID, "renew_ms" },
        { ROW(.owner = (sneck_owner)7), SNECK_INVALID, "owner is 7" },
        { ROW(.recovery = (sneck_recovery)7), SNECK_INVALID, "recovery is 7" },
        { ROW(.watchdog_ms = 99), SNECK_INVALID, "watchdog_ms is 99" },
        { ROW(.recovery = SNECK_RECOVER_REACQUIRE, .watchdog_ms = SNECK_NEVER), SNECK_INVALID, "needs the watchdog" },
        { ROW(.stuck_ms = 1, .watchdog_ms = SNECK_NEVER), SNECK_INVALID, "stuck_ms needs the watchdog" },
        { ROW(.stuck_ms = 1, .owner = SNECK_OWNER_HANDLE), SNECK_INVALID, "SNECK_OWNER_THREAD" },
        { ROW(.stuck_ms = -1), SNECK_INVALID, "stuck_ms is -1" },
        { ROW(.max_hold_ms = -1), SNECK_INVALID, "max_hold_ms is -1" },
        { ROW(.max_hold_ms = 1, .watchdog_ms = SNECK_NEVER), SNECK_INVALID, "max_hold_ms needs the watchdog" },
        { ROW(.alert_threshold = 256), SNECK_INVALID, "alert_threshold is 256" },
        { ROW(.why = long_why), SNECK_INVALID, "why is longer than 200" },
        { ROW(.why = "\t"), SNECK_INVALID, "why has a control character" },
    };
#undef ROW
    sneck_error error;
    sneck_client *client = NULL;
    EXPECT(SNECK_OK, sneck_open("memory:", NULL, &client, &error));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sneck_lock *lock = (sneck_lock *)(void *)&error;
        if (sneck_mutex(client, "a", &rows[i].options, &lock, &error) != rows[i].status || lock != NULL)
            fail_msg("row %zu: %s", i, error.message);
        if (strstr(error.message, rows[i].says) == NULL)
            fail_msg("row %zu does not say \"%s\": %s", i, rows[i].says, error.message);
    }
    sneck_close(client);
}

static bool ignore_info(void *context, const sneck_info *info)
{
    (void)context;
    (void)info;
    return true;
}

static void test_wrong_arguments_are_refused(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = NULL;
    sneck_lock *lock = NULL;
    sneck_info *info = NULL;
    char long_text[514];
    memset(long_text, 'x', 513);
    long_text[513] = '\0';
    EXPECT(SNECK_OK, sneck_open("memory:", NULL, &client, &error));
    EXPECT(SNECK_INVALID, sneck_mutex(NULL, "a", NULL, &lock, &error));
    EXPECT(SNECK_INVALID, sneck_mutex(client, NULL, NULL, &lock, &error));
    EXPECT(SNECK_INVALID, sneck_mutex(client, "", NULL, &lock, &error));
    EXPECT(SNECK_INVALID, sneck_mutex(client, long_text, NULL, &lock, &error));
    EXPECT(SNECK_INVALID, sneck_mutex(client, "a\n", NULL, &lock, &error));
    EXPECT(SNECK_INVALID, sneck_mutex(client, "a", NULL, NULL, &error));
    EXPECT(SNECK_INVALID, sneck_acquire(NULL, 0, &error));
    EXPECT(SNECK_INVALID, sneck_acquire_for(NULL, 0, 1000, &error));
    EXPECT(SNECK_INVALID, sneck_release(NULL, &error));
    EXPECT(SNECK_INVALID, sneck_extend(NULL, 1000, &error));
    EXPECT(SNECK_INVALID, sneck_inspect(NULL, "a", &info, &error));
    EXPECT(SNECK_INVALID, sneck_inspect(client, "", &info, &error));
    EXPECT(SNECK_INVALID, sneck_inspect(client, "a", NULL, &error));
    EXPECT(SNECK_INVALID, sneck_list(NULL, NULL, ignore_info, NULL, &error));
    EXPECT(SNECK_INVALID, sneck_list(client, NULL, NULL, NULL, &error));
    EXPECT(SNECK_INVALID, sneck_list(client, "\x80", ignore_info, NULL, &error));
    EXPECT(SNECK_INVALID, sneck_break(NULL, "a", 1, "r", &error));
    EXPECT(SNECK_INVALID, sneck_break(client, "a", 0, "r", &error));
    EXPECT(SNECK_INVALID, sneck_break(client, "a", 1, "", &error));
    EXPECT(SNECK_INVALID, sneck_break(client, "a", 1, NULL, &error));
    EXPECT(SNECK_INVALID, sneck_break(client, "a", 1, long_text, &error));
    EXPECT(SNECK_INVALID, sneck_break(client, NULL, 1, "r", &error));
    lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_INVALID, sneck_acquire(lock, -2, &error));
    EXPECT(SNECK_INVALID, sneck_acquire_for(lock, 0, 99, &error));
    EXPECT(SNECK_INVALID, sneck_acquire_for(lock, -5, 1000, &error));
    EXPECT(SNECK_INVALID, sneck_extend(lock, 0, &error));
    assert_false(sneck_is_held(NULL));
    assert_int_equal(sneck_hold_count(NULL), 0);
    assert_int_equal(sneck_lost_fd(NULL), -1);
    assert_int_equal(sneck_event_fd(NULL), -1);
    sneck_interrupt(NULL);
    sneck_info_free(NULL);
    sneck_list_local(NULL, NULL, NULL);
    sneck_list_local(client, NULL, NULL);
    assert_int_equal(sneck_acquire(lock, INT64_MAX, NULL), SNECK_OK); /* longer than time lasts is for ever */
    assert_int_equal(sneck_release(lock, NULL), SNECK_OK);
    sneck_lock_free(lock);
    sneck_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_an_option_beats_the_url_which_beats_the_environment, set_up),
        cmocka_unit_test_setup(test_the_prefix_comes_from_struct_url_or_default, set_up),
        cmocka_unit_test_setup(test_the_environment_names_the_store_where_no_url_does, set_up),
        cmocka_unit_test_setup(test_wrong_urls_and_environments_are_refused, set_up),
        cmocka_unit_test_setup(test_wrong_client_options_are_refused_before_any_io, set_up),
        cmocka_unit_test_setup(test_structs_of_other_versions_are_taken, set_up),
        cmocka_unit_test_setup(test_wrong_lock_options_are_refused, set_up),
        cmocka_unit_test_setup(test_wrong_arguments_are_refused, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
