/* The application's log: on each store, in both forms, at a limited rate, and late rather than in the way. */
#include "bed.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

typedef struct written {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned count;
    bool holds_up; /* the callback does not return while this is set */
    char text[65536];
} written;

static written *new_written(void)
{
    written *self = calloc(1, sizeof *self);
    assert_non_null(self);
    (void)pthread_mutex_init(&self->mutex, NULL);
    (void)pthread_cond_init(&self->changed, NULL);
    return self;
}

static void write_line(void *context, sneck_log_level level, const char *text)
{
    written *self = context;
    (void)level;
    (void)pthread_mutex_lock(&self->mutex);
    self->count++;
    test_append(self->text, sizeof self->text, text);
    test_append(self->text, sizeof self->text, "\n");
    (void)pthread_cond_broadcast(&self->changed);
    while (self->holds_up)
        (void)pthread_cond_wait(&self->changed, &self->mutex);
    (void)pthread_mutex_unlock(&self->mutex);
}

static bool has_text(written *self, const char *text)
{
    (void)pthread_mutex_lock(&self->mutex);
    bool has = strstr(self->text, text) != NULL;
    (void)pthread_mutex_unlock(&self->mutex);
    return has;
}

static void await_text(written *self, const char *text)
{
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (!has_text(self, text)) {
        if (test_now_ms() > until_ms)
            fail_msg("no line has %s:\n%s", text, self->text);
        (void)usleep(1000);
    }
}

static void set_holds_up(written *self, bool holds_up)
{
    (void)pthread_mutex_lock(&self->mutex);
    self->holds_up = holds_up;
    (void)pthread_cond_broadcast(&self->changed);
    (void)pthread_mutex_unlock(&self->mutex);
}

static sneck_client *open_logging(const test_bed *bed, written *self, sneck_log_format format)
{
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.log = write_line;
    options.log_context = self;
    options.log_format = format;
    return test_open(bed, &options);
}

static void lose(sneck_client *client, const char *name)
{
    sneck_error error;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.renew_ms = SNECK_NEVER;
    sneck_lock *lock = test_mutex(client, name, &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    uint64_t lost = test_health(client).lost;
    test_break(client, name);
    test_find_loss(client, lost + 1);
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    sneck_lock_free(lock);
}

static void test_lines_are_text_or_json(void **state)
{
    test_bed *bed = *state;
    test_needs_findings(bed);
    written *text = new_written();
    sneck_client *client = open_logging(bed, text, SNECK_LOG_TEXT);
    lose(client, "quote\"d");
    await_text(text, "event=lost lock=\"quote\\\"d\" token=");
    await_text(text, " cause=\"gone\" ");
    await_text(text, "level=warning event=finding check=\"state\" finding=\"claim-lost\" count=1");
    sneck_close(client);
    written *json = new_written();
    client = open_logging(bed, json, SNECK_LOG_JSON);
    lose(client, "quote\"d");
    await_text(json, ",\"level\":\"warning\",\"event\":\"lost\",\"lock\":\"quote\\\"d\",\"token\":");
    sneck_close(client);
    assert_null(strstr(json->text, "event=")); /* also what the store itself says */
    free(text);
    free(json);
}

static void test_a_flood_is_cut_and_counted(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    written *self = new_written();
    sneck_client *client = open_logging(bed, self, SNECK_LOG_TEXT);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.reentrant = false;
    sneck_lock *lock = test_mutex(client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    for (int i = 0; i < 1000; i++)
        EXPECT(SNECK_DEADLOCK, sneck_acquire(lock, 0, &error));
    int64_t until_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (test_now_ms() < until_ms) {
        EXPECT(SNECK_DEADLOCK, sneck_acquire(lock, 0, &error));
        if (has_text(self, "left_out="))
            break;
        (void)usleep(10000);
    }
    await_text(self, "left_out=");
    sneck_lock_free(lock);
    sneck_close(client);
    assert_true(strtol(strstr(self->text, "left_out=") + 9, NULL, 10) >= 990);
    assert_true(self->count < 60);
    free(self);
}

static void leave_three(void *argument)
{
    sneck_lock **locks = argument;
    sneck_error error;
    for (int i = 0; i < 3; i++)
        EXPECT(SNECK_OK, sneck_acquire(locks[i], 0, &error));
}

static void test_what_happens_all_the_time_takes_no_line_from_what_went_wrong(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    written *self = new_written();
    sneck_client *client = open_logging(bed, self, SNECK_LOG_TEXT);
    sneck_lock *locks[] = { test_mutex(client, "a", NULL), test_mutex(client, "b", NULL),
                            test_mutex(client, "c", NULL) };
    for (int i = 0; i < 40; i++) {
        EXPECT(SNECK_OK, sneck_acquire(locks[0], 0, &error));
        EXPECT(SNECK_OK, sneck_release(locks[0], &error));
    }
    test_on_thread(leave_three, locks);
    for (int i = 0; i < 3; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "level=warning event=owner-died lock=\"%c\"", 'a' + i);
        await_text(self, text);
    }
    await_text(self, "event=finding check=\"owner\" finding=\"owner-died\" count=3 remedy=\"release\"");
    /* One finding, seen once: no alert; and it is shown before the next round. */
    sneck_health_report report = test_health(client);
    assert_int_equal(report.checks[SNECK_CHECK_OWNER].findings, 3);
    assert_int_equal(report.checks[SNECK_CHECK_OWNER].runs, 1);
    assert_int_equal(report.alerts, 0);
    assert_false(report.healthy);
    for (int i = 0; i < 3; i++)
        sneck_lock_free(locks[i]);
    sneck_close(client);
    assert_null(strstr(self->text, "event=alert"));
    free(self);
}

static void test_a_log_that_does_not_return_holds_up_nothing(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    written *self = new_written();
    self->holds_up = true;
    sneck_client *client = open_logging(bed, self, SNECK_LOG_TEXT);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = 600;
    options.renew_ms = 100;
    sneck_lock *lock = test_mutex(client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    await_text(self, "event=");
    assert_false(test_readable(sneck_lost_fd(lock), 1500)); /* renewals go on */
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    set_holds_up(self, false);
    sneck_lock_free(lock);
    sneck_close(client);
    assert_non_null(strstr(self->text, "event=released"));
    free(self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_text_or_json),
        cmocka_unit_test(test_a_flood_is_cut_and_counted),
        cmocka_unit_test(test_what_happens_all_the_time_takes_no_line_from_what_went_wrong),
        cmocka_unit_test(test_a_log_that_does_not_return_holds_up_nothing),
    };
    return test_run_on_stores(tests, sizeof tests / sizeof tests[0]);
}
