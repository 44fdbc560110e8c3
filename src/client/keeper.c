#include "client/keeper.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/limits.h"
#include "client/async.h"
#include "client/client.h"
#include "client/perform.h"
#include "client/thread.h"

void snk_keeper_init(snk_keeper *keeper)
{
    snk_timers_init(&keeper->deadlines);
    snk_timers_init(&keeper->timeouts);
    keeper->clock_fd = -1;
}

void snk_keeper_deinit(snk_keeper *keeper)
{
    if (keeper->clock_fd >= 0)
        (void)close(keeper->clock_fd);
    snk_timers_deinit(&keeper->deadlines);
    snk_timers_deinit(&keeper->timeouts);
}

/* The sleep ends at `at_ns`; never when that is SNK_NEVER_NS. */
static void set_alarm(const snk_keeper *keeper, int64_t at_ns)
{
    struct itimerspec time = { .it_value = snk_timespec(at_ns == SNK_NEVER_NS ? 0 : at_ns) };
    (void)timerfd_settime(keeper->clock_fd, TFD_TIMER_ABSTIME, &time, NULL);
}

void snk_keeper_call(sneck_client *client)
{
    if (snk_parking_call(&client->keeper.parking))
        set_alarm(&client->keeper, 1); /* long past */
}

/* Whoever calls after the alarm was set finds the thread asleep and sets it anew; before, there is no sleep. */
static void sleep_until(snk_keeper *keeper, int64_t until_ns)
{
    uint64_t count = 0;
    set_alarm(keeper, until_ns);
    if (!snk_parking_begin(&keeper->parking))
        return;
    ssize_t rc = read(keeper->clock_fd, &count, sizeof count);
    (void)rc; /* whatever woke it, it looks at the clock */
    snk_parking_end(&keeper->parking);
}

static void pin_entry(snk_timer *timer)
{
    snk_entry_pin(SNK_CONTAINER(timer, snk_entry, deadline));
}

static void pin_request(snk_timer *timer)
{
    snk_request_ref(SNK_CONTAINER(timer, sneck_request, timeout));
}

/*
 * News about no claim at all: the step looks at the clock, which is all that is wanted here. It leaves renewals and
 * looks that are due to the renewer, because this thread must not wait for the store.
 */
static void look_at_clock(sneck_client *client, snk_entry *entry)
{
    snk_turn turn;
    snk_event event = { .kind = SNK_EVENT_NEWS };
    snk_turn_run(&turn, client, entry, &event);
    snk_perform_chases(&turn);
}

/* The earliest timer of a deadline, if it fires until `until_ns`. False: there is none, or it will fire in this time again. */
static bool serve_deadline(sneck_client *client, int64_t until_ns)
{
    snk_timer *timer = snk_timers_pop(&client->keeper.deadlines, until_ns, pin_entry);
    if (timer == NULL)
        return false;
    snk_entry *entry = SNK_CONTAINER(timer, snk_entry, deadline);
    look_at_clock(client, entry);
    bool is_put_off = snk_timer_at_ns(timer) > until_ns;
    snk_registry_unpin(&client->registry, entry);
    return is_put_off;
}

/*
 * Most deadlines were put off by renewals before their timers fire. Those that come soon are set right while the thread
 * is awake; the first one that still stands ends that, and is served when its time comes.
 */
static void serve_deadlines(sneck_client *client, int64_t now_ns)
{
    if (snk_timers_next(&client->keeper.deadlines) > now_ns)
        return;
    while (snk_timers_next(&client->keeper.deadlines) <= now_ns)
        (void)serve_deadline(client, now_ns);
    while (serve_deadline(client, now_ns + SNK_GATHER_NS))
        ;
}

static int64_t serve(sneck_client *client)
{
    snk_keeper *keeper = &client->keeper;
    int64_t now_ns = snk_now_ns();
    snk_timer *timer = NULL;
    serve_deadlines(client, now_ns);
    while ((timer = snk_timers_pop(&keeper->timeouts, now_ns, pin_request)) != NULL) {
        sneck_request *request = SNK_CONTAINER(timer, sneck_request, timeout);
        snk_request_time_out(request);
        snk_request_unref(request);
    }
    int64_t deadline_ns = snk_timers_next(&keeper->deadlines);
    int64_t timeout_ns = snk_timers_next(&keeper->timeouts);
    return deadline_ns < timeout_ns ? deadline_ns : timeout_ns;
}

static void *run(void *argument)
{
    sneck_client *client = argument;
    snk_keeper *keeper = &client->keeper;
    const snk_store_ops *ops = client->store->ops;
    if (ops->adopt_thread != NULL)
        ops->adopt_thread(client->store);
    atomic_store_explicit(&keeper->adopted, 1, memory_order_release);
    snk_futex_wake(&keeper->adopted, 1, false);
    while (!atomic_load_explicit(&keeper->is_stopping, memory_order_acquire))
        sleep_until(keeper, serve(client));
    if (ops->disown_thread != NULL)
        ops->disown_thread(client->store);
    return NULL;
}

sneck_status snk_keeper_start(sneck_client *client, sneck_error *error)
{
    snk_keeper *keeper = &client->keeper;
    if (keeper->is_running)
        return SNECK_OK;
    if (keeper->clock_fd < 0)
        keeper->clock_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (keeper->clock_fd < 0)
        return snk_fail(error, SNECK_NO_MEMORY, errno, "cannot make a timer: no memory, or too many open files");
    sneck_status status = snk_thread_start(&keeper->thread, "sneck-keeper", run, client, error);
    if (status != SNECK_OK)
        return status;
    keeper->is_running = true;
    while (atomic_load_explicit(&keeper->adopted, memory_order_acquire) == 0) {
        snk_futex_word word = { .word = &keeper->adopted, .expected = 0 };
        (void)snk_futex_wait_any(&word, 1, SNK_NEVER_NS);
    }
    return SNECK_OK;
}

void snk_keeper_stop(sneck_client *client)
{
    snk_keeper *keeper = &client->keeper;
    if (!keeper->is_running)
        return;
    atomic_store_explicit(&keeper->is_stopping, true, memory_order_release);
    snk_keeper_call(client);
    (void)pthread_join(keeper->thread, NULL);
    keeper->is_running = false;
}
