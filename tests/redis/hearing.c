/* Threads that sleep until they are told something, and receive messages meanwhile. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/futex.h"
#include "redis_ask.h"
#include "redis_server.h"

#define SLEEPERS_MAX 4
#define CALLED 1
#define FLOOD 1500
#define FEW_READS 600 /* messages, more than in four reads */
#define SLOW '9'      /* begins a message that takes time to hear */

static redis_server server;

/* A thread that sleeps until a message with its number comes. */
typedef struct sleeper {
    struct scene *made;
    pthread_t thread;
    _Atomic uint32_t word;
    bool may_receive;
    _Atomic int told; /* messages for it */
    _Atomic int naps; /* how often it fell asleep */
    _Atomic int done;
} sleeper;

typedef struct scene {
    snk_redis *redis;
    sleeper sleepers[SLEEPERS_MAX];
    _Atomic int messages;
    _Atomic int subscribed;
    _Atomic int deafened;
    _Atomic uintptr_t heard_by; /* the thread that called the listener last */
} scene;

static void call(scene *made, sleeper *self)
{
    atomic_store(&self->word, CALLED);
    if (!snk_redis_rouse(made->redis, &self->word))
        snk_futex_wake(&self->word, 1, false);
}

static void hear_message(void *context, const snk_redis_message *message)
{
    scene *made = context;
    unsigned number = (unsigned)(message->payload[0] - '0');
    atomic_store(&made->heard_by, (uintptr_t)pthread_self());
    if (message->payload[0] == SLOW)
        (void)usleep(100);
    if (number < SLEEPERS_MAX) {
        made->sleepers[number].told++;
        call(made, &made->sleepers[number]);
    }
    made->messages++;
}

static void hear_subscribed(void *context, const char *channel, size_t length, snk_redis_run run)
{
    (void)channel;
    (void)length;
    (void)run;
    ((scene *)context)->subscribed++;
}

static void hear_deafened(void *context)
{
    ((scene *)context)->deafened++;
}

static int set_up(void **state)
{
    if (!redis_server_start(&server, NULL))
        return -1;
    scene *made = calloc(1, sizeof *made);
    assert_non_null(made);
    snk_redis_config config = { .host = "127.0.0.1",
                                .port = server.port,
                                .command_timeout_ns = SNK_NS_PER_S,
                                .listener = { .message = hear_message,
                                              .subscribed = hear_subscribed,
                                              .deafened = hear_deafened,
                                              .context = made } };
    made->redis = redis_open(&config);
    sneck_error error;
    assert_int_equal(snk_redis_subscribe(made->redis, "all", 3, &error), SNECK_OK);
    assert_true(snk_redis_await_subscribed(made->redis, "all", 3, snk_now_ns() + 5 * SNK_NS_PER_S, &error));
    *state = made;
    return 0;
}

static int tear_down(void **state)
{
    scene *made = *state;
    snk_redis_close(made->redis);
    redis_server_stop(&server);
    free(made);
    return 0;
}

static void *run_sleeper(void *argument)
{
    sleeper *self = argument;
    snk_redis_nap nap = { .word = &self->word, .until_ns = SNK_NEVER_NS, .may_receive = self->may_receive };
    while (atomic_load(&self->word) != CALLED) {
        self->naps++;
        snk_redis_sleep(self->made->redis, &nap);
    }
    self->done = 1;
    return NULL;
}

/* Sleeps, or is about to: what comes from now on must be heard all the same. */
static sleeper *start(scene *made, unsigned number, bool may_receive)
{
    sleeper *self = &made->sleepers[number];
    self->made = made;
    self->may_receive = may_receive;
    atomic_store(&self->word, 0);
    self->naps = 0;
    self->done = 0;
    assert_int_equal(pthread_create(&self->thread, NULL, run_sleeper, self), 0);
    assert_true(wait_for_number(&self->naps, 1));
    return self;
}

static void join(sleeper *self)
{
    assert_true(wait_for_number(&self->done, 1));
    assert_int_equal(pthread_join(self->thread, NULL), 0);
}

static void publish(scene *made, unsigned number)
{
    char line[32];
    (void)snprintf(line, sizeof line, "PUBLISH all %u", number);
    assert_int_equal(redis_integer(made->redis, line), 1);
}

static void test_a_sleeper_receives_its_message_itself(void **state)
{
    scene *made = *state;
    int by_itself = 0;
    for (int i = 0; i < 100; i++) {
        sleeper *self = start(made, 0, true);
        sleep_ms(i % 2); /* it is mostly asleep by then */
        publish(made, 0);
        uintptr_t thread = (uintptr_t)self->thread;
        join(self);
        assert_int_equal(self->told, i + 1);
        by_itself += atomic_load(&made->heard_by) == thread;
    }
    /* But for the first time, when the connection's own thread may just be receiving. */
    assert_in_range(by_itself, 80, 100);
}

static void test_one_sleeper_receives_for_the_others(void **state)
{
    scene *made = *state;
    sleep_ms(50); /* the connection's own thread has nothing to receive any more */
    sleeper *first = start(made, 0, true);
    sleep_ms(50);
    sleeper *second = start(made, 1, true);
    sleeper *third = start(made, 2, false);
    uintptr_t thread = (uintptr_t)first->thread;
    publish(made, 1);
    join(second);
    assert_int_equal(atomic_load(&made->heard_by), thread);
    publish(made, 2);
    join(third);
    assert_int_equal(atomic_load(&made->heard_by), thread);
    publish(made, 0);
    join(first);
}

static void test_those_who_stay_are_heard_for_when_the_receiver_leaves(void **state)
{
    scene *made = *state;
    for (int i = 0; i < 50; i++) {
        sleeper *first = start(made, 0, true);
        sleeper *second = start(made, 1, i % 2 == 0);
        publish(made, 0);
        join(first);
        publish(made, 1);
        join(second);
    }
}

static void test_a_receiver_is_called_away(void **state)
{
    scene *made = *state;
    for (int i = 0; i < 100; i++) {
        sleeper *self = start(made, 0, true);
        call(made, self);
        join(self);
    }
    assert_int_equal(made->messages, 0);
}

static void test_a_sleep_ends_in_time(void **state)
{
    scene *made = *state;
    _Atomic uint32_t word = 0;
    for (int i = 0; i < 2; i++) {
        int64_t begin_ns = snk_now_ns();
        snk_redis_nap nap = { .word = &word, .until_ns = begin_ns + 20 * SNK_NS_PER_MS, .may_receive = i == 0 };
        while (snk_now_ns() < nap.until_ns)
            snk_redis_sleep(made->redis, &nap);
        assert_true(snk_now_ns() - begin_ns < SNK_NS_PER_S);
    }
}

/* Messages that come faster than they are heard: many reads of them lie ready before the sleep begins. */
static void test_a_sleep_ends_in_time_however_much_there_is_to_hear(void **state)
{
    scene *made = *state;
    _Atomic uint32_t word = 0;
    snk_redis_nap nap = { .word = &word, .until_ns = snk_now_ns() + 20 * SNK_NS_PER_MS, .may_receive = true };
    snk_redis_sleep(made->redis, &nap);
    publish(made, SLEEPERS_MAX); /* nobody's; from now on messages are left to those who sleep */
    assert_true(wait_for_number(&made->messages, 1));
    for (int i = 0; i < FLOOD; i += 100)
        redis_do(made->redis, "EVAL for\ti=1,100\tdo\tredis.call('PUBLISH','all','9'..string.rep('x',100))end 0");
    nap.until_ns = snk_now_ns() + 20 * SNK_NS_PER_MS;
    snk_redis_sleep(made->redis, &nap);
    assert_true(atomic_load(&made->messages) > 1);
    assert_true(atomic_load(&made->messages) < FEW_READS);
    sleeper *self = start(made, 0, true);
    assert_true(wait_for_number(&made->messages, FLOOD));
    call(made, self);
    join(self);
}

static void test_a_cancelled_receiver_leaves_the_role_to_others(void **state)
{
    scene *made = *state;
    for (int i = 0; i < 20; i++) {
        sleeper *first = start(made, 0, true);
        sleeper *second = start(made, 1, true);
        if (i % 2 == 0)
            sleep_ms(2);
        assert_int_equal(pthread_cancel(first->thread), 0);
        assert_int_equal(pthread_join(first->thread, NULL), 0);
        publish(made, 1);
        join(second);
    }
}

static void test_after_a_kill_a_sleeper_is_told_again(void **state)
{
    scene *made = *state;
    for (int i = 0; i < 10; i++) {
        sleeper *self = start(made, 0, true);
        sleeper *other = start(made, 1, true);
        if (i % 2 == 0)
            sleep_ms(10);
        redis_do(made->redis, "CLIENT KILL TYPE pubsub");
        assert_true(wait_for_number(&made->deafened, i + 1));
        assert_true(wait_for_number(&made->subscribed, i + 2));
        publish(made, 0);
        publish(made, 1);
        join(self);
        join(other);
    }
}

/* A subscription that comes while a sleeper receives is sent, and confirmed. */
static void test_subscriptions_change_while_a_sleeper_receives(void **state)
{
    scene *made = *state;
    sleeper *self = start(made, 0, true);
    for (int i = 0; i < 20; i++) {
        sneck_error error;
        assert_int_equal(snk_redis_subscribe(made->redis, "more", 4, &error), SNECK_OK);
        assert_true(snk_redis_await_subscribed(made->redis, "more", 4, snk_now_ns() + 5 * SNK_NS_PER_S, &error));
        assert_int_equal(redis_integer(made->redis, "PUBLISH more 9"), 1);
        snk_redis_unsubscribe(made->redis, "more", 4);
    }
    assert_true(wait_for_number(&made->messages, 20));
    publish(made, 0);
    join(self);
}

/* The answer to a subscription is heard though the one who received leaves before it comes. */
static void test_an_answer_is_heard_after_the_receiver_has_left(void **state)
{
    scene *made = *state;
    sleeper *self = start(made, 0, true);
    publish(made, 1); /* heard: the sleeper receives from now on */
    assert_true(wait_for_number(&made->messages, 1));
    kill(server.pid, SIGSTOP);
    sneck_error error;
    assert_int_equal(snk_redis_subscribe(made->redis, "more", 4, &error), SNECK_OK);
    sleep_ms(100); /* it is sent by then, most of the time; otherwise there is nothing to see */
    call(made, self);
    join(self);
    kill(server.pid, SIGCONT);
    assert_true(snk_redis_await_subscribed(made->redis, "more", 4, snk_now_ns() + 5 * SNK_NS_PER_S, &error));
    assert_int_equal(made->deafened, 0);
}

/* A server that says nothing is noticed though a sleeper waits for it to say something. */
static void test_a_silent_server_is_given_up(void **state)
{
    scene *made = *state;
    sleeper *self = start(made, 0, true);
    redis_do(made->redis, "PING");
    kill(server.pid, SIGSTOP);
    sneck_error error;
    assert_int_equal(snk_redis_subscribe(made->redis, "more", 4, &error), SNECK_OK);
    assert_true(wait_for_number(&made->deafened, 1));
    kill(server.pid, SIGCONT);
    assert_true(wait_for_number(&made->subscribed, 3)); /* before, and both afterwards */
    publish(made, 0);
    join(self);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_sleeper_receives_its_message_itself),
        TEST(test_one_sleeper_receives_for_the_others),
        TEST(test_those_who_stay_are_heard_for_when_the_receiver_leaves),
        TEST(test_a_receiver_is_called_away),
        TEST(test_a_sleep_ends_in_time),
        TEST(test_a_sleep_ends_in_time_however_much_there_is_to_hear),
        TEST(test_a_cancelled_receiver_leaves_the_role_to_others),
        TEST(test_after_a_kill_a_sleeper_is_told_again),
        TEST(test_subscriptions_change_while_a_sleeper_receives),
        TEST(test_an_answer_is_heard_after_the_receiver_has_left),
        TEST(test_a_silent_server_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
