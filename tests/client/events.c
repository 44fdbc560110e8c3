/* Events: by callback of the client and of handles, and by descriptor. */
#include "bed.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* What a callback has heard. */
typedef struct heard {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    char text[512];
    unsigned count;
    sneck_lock *frees; /* the callback frees this handle */
    bool holds_up;     /* the callback does not return while this is set */
    unsigned inside;
} heard;

#define HEARD_NOTHING                                                                                                  \
    {                                                                                                                  \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                                        \
    }

static void listen(void *context, const sneck_event *event)
{
    heard *self = context;
    (void)pthread_mutex_lock(&self->mutex);
    if (strlen(self->text) < sizeof self->text - 64) {
        test_append(self->text, sizeof self->text, event->name);
        test_append(self->text, sizeof self->text, ":");
        test_append(self->text, sizeof self->text, sneck_event_kind_name(event->kind));
        test_append(self->text, sizeof self->text, " ");
    }
    self->count++;
    self->inside++;
    sneck_lock *frees = self->frees;
    self->frees = NULL;
    (void)pthread_cond_broadcast(&self->changed);
    while (self->holds_up)
        (void)pthread_cond_wait(&self->changed, &self->mutex);
    (void)pthread_mutex_unlock(&self->mutex);
    sneck_lock_free(frees);
    (void)pthread_mutex_lock(&self->mutex);
    self->inside--;
    (void)pthread_cond_broadcast(&self->changed);
    (void)pthread_mutex_unlock(&self->mutex);
}

static void await_count(heard *self, unsigned count)
{
    (void)pthread_mutex_lock(&self->mutex);
    while (self->count < count)
        (void)pthread_cond_wait(&self->changed, &self->mutex);
    (void)pthread_mutex_unlock(&self->mutex);
}

static void await_text(heard *self, const char *text)
{
    (void)pthread_mutex_lock(&self->mutex);
    while (strstr(self->text, text) == NULL)
        (void)pthread_cond_wait(&self->changed, &self->mutex);
    (void)pthread_mutex_unlock(&self->mutex);
}

static sneck_lock_options listening(heard *self)
{
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.on_event = listen;
    options.event_context = self;
    return options;
}

static void test_the_client_hears_of_every_lock_and_handles_of_their_name(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    heard all = HEARD_NOTHING;
    heard one = HEARD_NOTHING;
    sneck_client_options client_options = SNECK_CLIENT_OPTIONS_INIT;
    client_options.on_event = listen;
    client_options.event_context = &all;
    sneck_client *client = test_open(bed, &client_options);
    sneck_lock_options options = listening(&one);
    sneck_lock *a = test_mutex(client, "a", &options);
    sneck_lock *same = test_mutex(client, "a", NULL);
    sneck_lock *b = test_mutex(client, "b", NULL);
    EXPECT(SNECK_OK, sneck_acquire(a, 0, &error));
    EXPECT(SNECK_OK, sneck_acquire(a, 0, &error)); /* a level is no event */
    EXPECT(SNECK_OK, sneck_release(a, &error));
    EXPECT(SNECK_OK, sneck_release(a, &error));
    EXPECT(SNECK_OK, sneck_acquire(same, 0, &error));
    EXPECT(SNECK_OK, sneck_acquire(b, 0, &error));
    await_count(&all, 4);
    sneck_close(client); /* what was queued is told, and that closing releases */
    assert_string_equal(all.text, "a:acquired a:released a:acquired b:acquired a:released b:released ");
    assert_string_equal(one.text, "a:acquired a:released a:acquired a:released ");
    sneck_lock_free(a);
    sneck_lock_free(same);
    sneck_lock_free(b);
}

static void test_renewal_and_loss_are_told(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    heard self = HEARD_NOTHING;
    sneck_lock_options options = listening(&self);
    options.lease_ms = 2000;
    options.renew_ms = 50;
    sneck_lock *lock = test_mutex(bed->client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    await_count(&self, 2);
    int fd = sneck_lost_fd(lock);
    test_break(bed->client, "a");
    assert_true(test_readable(fd, TEST_PATIENCE_MS));
    await_text(&self, "a:broken ");
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    sneck_lock_free(lock);
    assert_int_equal(strncmp(self.text, "a:acquired a:renewed ", 21), 0);
    assert_string_equal(strstr(self.text, "a:lost "), "a:lost a:broken ");
}

static void test_freeing_a_handle_waits_for_its_callback(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    heard self = HEARD_NOTHING;
    self.holds_up = true;
    sneck_lock_options options = listening(&self);
    sneck_lock *lock = test_mutex(bed->client, "a", &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    await_count(&self, 1);
    (void)pthread_mutex_lock(&self.mutex);
    self.holds_up = false;
    (void)pthread_cond_broadcast(&self.changed);
    (void)pthread_mutex_unlock(&self.mutex);
    sneck_lock_free(lock);
    (void)pthread_mutex_lock(&self.mutex);
    assert_int_equal(self.inside, 0);
    (void)pthread_mutex_unlock(&self.mutex);
}

static void test_a_callback_may_free_its_own_handle(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    heard self = HEARD_NOTHING;
    sneck_lock_options options = listening(&self);
    sneck_lock *lock = test_mutex(bed->client, "a", &options);
    sneck_lock *other = test_mutex(bed->client, "a", NULL);
    self.frees = lock;
    EXPECT(SNECK_OK, sneck_acquire(other, 0, &error));
    await_count(&self, 1);
    EXPECT(SNECK_OK, sneck_release(other, &error));
    sneck_lock_free(other);
    (void)pthread_mutex_lock(&self.mutex);
    while (self.inside > 0)
        (void)pthread_cond_wait(&self.changed, &self.mutex);
    (void)pthread_mutex_unlock(&self.mutex);
    assert_null(self.frees);
}

static void test_events_can_be_polled_for(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_event event;
    sneck_lock *lock = test_mutex(bed->client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    assert_false(sneck_event_next(bed->client, &event));
    int fd = sneck_event_fd(bed->client);
    assert_true(fd >= 0);
    assert_int_equal(sneck_event_fd(bed->client), fd);
    assert_false(test_readable(fd, 0)); /* from the first call on */
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    uint64_t token = sneck_token(lock);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    assert_true(test_readable(fd, 0));
    assert_true(sneck_event_next(bed->client, &event));
    assert_int_equal(event.kind, SNECK_EVENT_ACQUIRED);
    assert_string_equal(event.name, "a");
    assert_true(event.token == token);
    assert_true(event.remaining_ms > 0 && event.time_ms > 0);
    assert_true(test_readable(fd, 0));
    assert_true(sneck_event_next(bed->client, &event));
    assert_int_equal(event.kind, SNECK_EVENT_RELEASED);
    assert_false(test_readable(fd, 0));
    assert_false(sneck_event_next(bed->client, &event));
    sneck_lock_free(lock);
    assert_false(sneck_event_next(bed->client, NULL));
}

static void test_a_full_queue_drops_the_oldest_but_never_a_loss(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sneck_event event;
    assert_true(sneck_event_fd(bed->client) >= 0);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = 500;
    options.renew_ms = SNECK_NEVER;
    sneck_lock *loser = test_mutex(bed->client, "loser", &options);
    EXPECT(SNECK_OK, sneck_acquire(loser, 0, &error));
    assert_true(test_readable(sneck_lost_fd(loser), TEST_PATIENCE_MS));
    EXPECT(SNECK_LOST, sneck_release(loser, &error));
    sneck_lock *lock = test_mutex(bed->client, "a", NULL);
    for (int i = 0; i < 600; i++) {
        EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
        EXPECT(SNECK_OK, sneck_release(lock, &error));
    }
    assert_true(sneck_event_next(bed->client, &event));
    assert_int_equal(event.kind, SNECK_EVENT_LOST);
    assert_string_equal(event.name, "loser");
    unsigned count = 1;
    while (sneck_event_next(bed->client, &event))
        count++;
    assert_int_equal(count, 1024);
    assert_int_equal(event.kind, SNECK_EVENT_RELEASED);
    sneck_lock_free(loser);
    sneck_lock_free(lock);
}

typedef struct lines {
    atomic_uint count;
} lines;

static void write_line(void *context, sneck_log_level level, const char *text)
{
    if (level == SNECK_LOG_WARNING && strstr(text, "event=lost") != NULL && strstr(text, "lock=\"a\"") != NULL)
        atomic_fetch_add(&((lines *)context)->count, 1);
}

static void test_loss_is_logged(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    lines written = { 0 };
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.log = write_line;
    options.log_context = &written;
    sneck_client *client = test_open(bed, &options);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire_for(lock, 0, 500, &error));
    assert_true(test_readable(sneck_lost_fd(lock), TEST_PATIENCE_MS));
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
    assert_int_equal(atomic_load(&written.count), 1);
}

static void test_kinds_have_names(void **state)
{
    (void)state;
    assert_string_equal(sneck_event_kind_name(SNECK_EVENT_RENEWAL_FAILED), "renewal-failed");
    assert_string_equal(sneck_event_kind_name((sneck_event_kind)99), "?");
}

/* A callback that sleeps in the first event of the lock "sleeper". */
typedef struct sleeper {
    heard heard;
    int64_t woke_at_ms; /* 0: it sleeps still; under heard.mutex */
    int64_t lost_at_ms; /* when the loss of "b" was told; under heard.mutex */
    bool was_disturbed; /* another event of the same lock was told meanwhile */
} sleeper;

static void sleep_or_listen(void *context, const sneck_event *event)
{
    sleeper *self = context;
    bool sleeps = event->kind == SNECK_EVENT_ACQUIRED && strcmp(event->name, "sleeper") == 0;
    (void)pthread_mutex_lock(&self->heard.mutex);
    if (event->kind == SNECK_EVENT_LOST)
        self->lost_at_ms = test_now_ms();
    if (strcmp(event->name, "sleeper") == 0 && !sleeps && self->woke_at_ms == 0)
        self->was_disturbed = true;
    (void)pthread_mutex_unlock(&self->heard.mutex);
    listen(&self->heard, event);
    if (!sleeps)
        return;
    (void)usleep(1000 * test_scaled(10000));
    (void)pthread_mutex_lock(&self->heard.mutex);
    self->woke_at_ms = test_now_ms();
    (void)pthread_mutex_unlock(&self->heard.mutex);
}

static bool is_asleep(sleeper *self)
{
    (void)pthread_mutex_lock(&self->heard.mutex);
    bool asleep = self->woke_at_ms == 0;
    (void)pthread_mutex_unlock(&self->heard.mutex);
    return asleep;
}

static void test_a_callback_that_sleeps_delays_no_renewal_and_no_other_event(void **state)
{
    test_bed *bed = *state;
    sneck_error error;
    sleeper self = { .heard = HEARD_NOTHING };
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.on_event = sleep_or_listen;
    options.event_context = &self;
    sneck_client *client = test_open(bed, &options);
    assert_true(sneck_event_fd(client) >= 0);
    sneck_lock_options lock_options = SNECK_LOCK_OPTIONS_INIT;
    lock_options.lease_ms = 1000;
    lock_options.renew_ms = 100;
    sneck_lock *slow = test_mutex(client, "sleeper", &lock_options);
    sneck_lock *other = test_mutex(client, "b", &lock_options);
    EXPECT(SNECK_OK, sneck_acquire(slow, 0, &error));
    await_text(&self.heard, "sleeper:acquired ");
    EXPECT(SNECK_OK, sneck_acquire(other, 0, &error));
    await_text(&self.heard, "b:acquired ");
    test_break(client, "b");
    (void)test_await_event(client, SNECK_EVENT_LOST);
    int64_t lost_at_ms = test_now_ms();
    await_text(&self.heard, "b:lost ");
    assert_true(is_asleep(&self));
    print_message("# figure: while a callback of another lock slept %u ms, a loss was told after %d ms\n",
                  test_scaled(10000), self.lost_at_ms > lost_at_ms ? (int)(self.lost_at_ms - lost_at_ms) : 0);
    do
        (void)test_await_event(client, SNECK_EVENT_RENEWED);
    while (is_asleep(&self));
    assert_true(sneck_is_held(slow));
    EXPECT(SNECK_LOST, sneck_release(other, &error));
    EXPECT(SNECK_OK, sneck_release(slow, &error));
    sneck_close(client);
    assert_false(self.was_disturbed);
    sneck_lock_free(slow);
    sneck_lock_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_client_hears_of_every_lock_and_handles_of_their_name),
        cmocka_unit_test(test_renewal_and_loss_are_told),
        cmocka_unit_test(test_freeing_a_handle_waits_for_its_callback),
        cmocka_unit_test(test_a_callback_may_free_its_own_handle),
        cmocka_unit_test(test_events_can_be_polled_for),
        cmocka_unit_test(test_a_full_queue_drops_the_oldest_but_never_a_loss),
        cmocka_unit_test(test_a_callback_that_sleeps_delays_no_renewal_and_no_other_event),
        cmocka_unit_test(test_loss_is_logged),
        cmocka_unit_test(test_kinds_have_names),
    };
    return test_run_on_stores(tests, sizeof tests / sizeof tests[0]);
}
