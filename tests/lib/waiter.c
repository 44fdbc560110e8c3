#include "waiter.h"

#include "bed.h"

static void *wait_for_it(void *argument)
{
    test_waiter *self = argument;
    self->status = sneck_acquire(self->lock, self->wait_ms, &self->error);
    self->served_at_ms = test_now_ms();
    self->token = sneck_token(self->lock);
    if (self->status == SNECK_OK)
        self->status = sneck_release(self->lock, &self->error);
    return NULL;
}

void test_waiter_start(test_waiter *waiter, sneck_lock *lock, int64_t wait_ms)
{
    *waiter = (test_waiter){ .lock = lock, .wait_ms = wait_ms };
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_it, waiter), 0);
}

void test_waiter_join(test_waiter *waiter)
{
    assert_int_equal(pthread_join(waiter->thread, NULL), 0);
    if (waiter->status != SNECK_OK)
        fail_msg("%s: %s", sneck_status_name(waiter->status), waiter->error.message);
}
