/* Sleeping on a word, and being cancelled there. */
#include "test.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "late_cancel.h"

typedef struct sleeper {
    pthread_t thread;
    _Atomic pid_t id;
    _Atomic uint32_t word;
    int event_fd;
    _Atomic bool is_awake;  /* the sleep is over */
    _Atomic bool has_read;  /* what it did with cancellation disabled is done */
    _Atomic bool has_ended; /* it was not cancelled at all */
    /* Not on its stack, where the address sanitizer guards them even when the thread is no longer there. */
    snk_futex_word watched;
    eventfd_t value;
} sleeper;

static void *sleep_and_read(void *argument)
{
    sleeper *self = argument;
    self->id = (pid_t)syscall(SYS_gettid);
    self->watched.word = &self->word;
    while (self->word == 0)
        (void)snk_futex_wait_any(&self->watched, 1, SNK_NEVER_NS);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    self->is_awake = true;
    (void)eventfd_read(self->event_fd, &self->value); /* a point of cancellation, were it not disabled */
    self->has_read = true;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel();
    self->has_ended = true;
    return NULL;
}

static void start(sleeper *self)
{
    *self = (sleeper){ .event_fd = eventfd(0, EFD_CLOEXEC) };
    assert_true(self->event_fd >= 0);
    assert_int_equal(pthread_create(&self->thread, NULL, sleep_and_read, self), 0);
    while (self->id == 0)
        (void)usleep(100);
}

static void wake(sleeper *self)
{
    self->word = 1;
    snk_futex_wake(&self->word, 1, false);
}

static void expect_canceled(sleeper *self)
{
    void *result = NULL;
    assert_int_equal(pthread_join(self->thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_false(self->has_ended);
    assert_int_equal(close(self->event_fd), 0);
}

static void test_a_sleeper_can_be_cancelled(void **state)
{
    (void)state;
    sleeper self;
    start(&self);
    assert_int_equal(pthread_cancel(self.thread), 0);
    expect_canceled(&self);
    assert_false(self.is_awake);
}

static void test_a_cancel_is_not_obeyed_late_where_it_is_disabled(void **state)
{
    (void)state;
    sleeper self;
    late_cancel late;
    start(&self);
    bool can = late_cancel_begin(&late, self.thread, self.id);
    wake(&self);
    if (can) {
        late_cancel_await_move(&late);
        late_cancel_deliver(&late);
    }
    assert_int_equal(eventfd_write(self.event_fd, 1), 0);
    expect_canceled(&self);
    if (!can)
        test_skip("this kernel cannot hold back a signal");
    assert_int_equal(self.has_read, self.is_awake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sleeper_can_be_cancelled),
        cmocka_unit_test(test_a_cancel_is_not_obeyed_late_where_it_is_disabled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
