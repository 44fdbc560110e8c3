/* Many threads on one connection: every answer reaches its question, whatever happens to the connection. */
#include "test.h"

#include <pthread.h>

#include "proxy.h"
#include "redis_ask.h"
#include "redis_server.h"

#define THREADS 64

static redis_server server;

static int set_up(void **state)
{
    (void)state;
    return redis_server_start(&server, NULL) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    redis_server_stop(&server);
    return 0;
}

typedef struct asker {
    pthread_t thread;
    snk_redis *redis;
    int number;
    int rounds;
    int replies;
    int wrong;
    int not_sent;
    int uncertain;
    uint64_t incremented; /* answered increments */
    _Atomic int *left;    /* submitted calls that are not done */
} asker;

static void judge(asker *self, const snk_redis_call *call, const char *expected)
{
    switch (call->outcome) {
    case SNK_REDIS_REPLY:
        self->replies++;
        if (call->reply->type != REDIS_REPLY_STRING || strcmp(call->reply->str, expected) != 0)
            self->wrong++;
        return;
    case SNK_REDIS_NOT_SENT:
        self->not_sent++;
        return;
    case SNK_REDIS_UNCERTAIN:
        self->uncertain++;
        return;
    }
    self->wrong++;
}

/* Asks for its own text, and now and then for two or three at once. */
static void *ask_echoes(void *argument)
{
    asker *self = argument;
    for (int i = 0; i < self->rounds; i++) {
        snk_redis_call calls[3];
        char text[3][64];
        size_t count = i % 7 == 0 ? 3 : 1;
        for (size_t k = 0; k < count; k++) {
            snk_redis_call_init(&calls[k]);
            char line[80];
            snprintf(text[k], sizeof text[k], "%d-%d-%zu", self->number, i, k);
            snprintf(line, sizeof line, "ECHO %s", text[k]);
            redis_format(&calls[k], line);
        }
        snk_redis_drive(self->redis, (snk_redis_call *[]){ &calls[0], &calls[1], &calls[2] }, count);
        for (size_t k = 0; k < count; k++) {
            judge(self, &calls[k], text[k]);
            snk_redis_call_deinit(&calls[k]);
        }
    }
    return NULL;
}

/* A submitted call that checks itself and frees itself. */
typedef struct loose_call {
    snk_redis_call call;
    char text[64];
    asker *owner;
    int again;
} loose_call;

static void format_loose(loose_call *loose)
{
    char line[80];
    snprintf(loose->text, sizeof loose->text, "loose-%d-%d", loose->owner->number, loose->again);
    snprintf(line, sizeof line, "ECHO %s", loose->text);
    redis_format(&loose->call, line);
}

static void loose_done(snk_redis_call *call)
{
    loose_call *loose = call->context;
    asker *owner = loose->owner;
    judge(owner, call, loose->text); /* calls of one asker follow each other, so its counts have one writer */
    if (loose->again-- > 0) {
        format_loose(loose);
        snk_redis_submit(owner->redis, &(snk_redis_call *){ call }, 1);
        return;
    }
    snk_redis_call_deinit(call);
    _Atomic int *left = owner->left;
    free(loose);
    atomic_fetch_sub(left, 1);
}

static void start_loose(asker *owner, int again)
{
    loose_call *loose = calloc(1, sizeof *loose);
    assert_non_null(loose);
    snk_redis_call_init(&loose->call);
    loose->owner = owner;
    loose->again = again;
    loose->call.done = loose_done;
    loose->call.context = loose;
    format_loose(loose);
    atomic_fetch_add(owner->left, 1);
    snk_redis_submit(owner->redis, &(snk_redis_call *){ &loose->call }, 1);
}

static void run_threads(asker askers[], int count, void *(*work)(void *), snk_redis *redis, int rounds)
{
    for (int i = 0; i < count; i++) {
        askers[i] = (asker){ .redis = redis, .number = i, .rounds = rounds };
        assert_int_equal(pthread_create(&askers[i].thread, NULL, work, &askers[i]), 0);
    }
}

static void join(asker askers[], int count)
{
    for (int i = 0; i < count; i++)
        pthread_join(askers[i].thread, NULL);
}

static void test_64_threads_get_their_own_answers(void **state)
{
    (void)state;
    snk_redis_config config = { .host = "127.0.0.1", .port = server.port };
    snk_redis *redis = redis_open(&config);
    static asker askers[THREADS];
    int rounds = (int)test_scaled(5000);
    run_threads(askers, THREADS, ask_echoes, redis, rounds);
    join(askers, THREADS);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(askers[i].wrong, 0);
        assert_int_equal(askers[i].replies, rounds + 2 * ((rounds + 6) / 7));
    }
    snk_redis_server known;
    snk_redis_describe(redis, &known);
    assert_int_equal(known.connects, 1);
    snk_redis_close(redis);
}

static void test_driven_and_submitted_calls_share_the_connection(void **state)
{
    (void)state;
    snk_redis_config config = { .host = "127.0.0.1", .port = server.port };
    snk_redis *redis = redis_open(&config);
    static asker askers[8];
    static asker loose[8];
    _Atomic int left = 0;
    int rounds = (int)test_scaled(5000);
    run_threads(askers, 8, ask_echoes, redis, rounds);
    for (int i = 0; i < 8; i++) {
        loose[i] = (asker){ .redis = redis, .number = i, .left = &left };
        start_loose(&loose[i], rounds);
    }
    join(askers, 8);
    for (int i = 0; i < 5000 && left > 0; i++)
        sleep_ms(2);
    assert_int_equal(left, 0);
    snk_redis_close(redis);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(askers[i].wrong + loose[i].wrong, 0);
        assert_int_equal(loose[i].replies, rounds + 1);
    }
}

static void *count_up(void *argument)
{
    asker *self = argument;
    for (int i = 0; i < self->rounds; i++) {
        snk_redis_call call;
        if (redis_ask(self->redis, &call, "INCR counter") == SNK_REDIS_REPLY)
            self->incremented++;
        else if (call.outcome == SNK_REDIS_NOT_SENT)
            self->not_sent++;
        else
            self->uncertain++;
        snk_redis_call_deinit(&call);
    }
    return NULL;
}

/* The counter shows that no "not sent" was executed, and that no answered call was executed twice or never. */
static void test_under_cuts_no_call_is_told_wrongly(void **state)
{
    (void)state;
    snk_redis_config config = { .host = "127.0.0.1", .port = server.port, .command_timeout_ns = 500 * SNK_NS_PER_MS };
    snk_redis *observer = redis_open(&config);
    redis_do(observer, "SET counter 0");
    fault_proxy proxy;
    assert_true(proxy_start(&proxy, server.port));
    config.port = proxy.port;
    snk_redis *redis = redis_open(&config);
    static asker askers[16];
    run_threads(askers, 16, count_up, redis, (int)test_scaled(3000));
    for (int i = 0; i < 30; i++) {
        proxy_harm(&proxy, i % 2 == 0 ? PROXY_CUT_BEFORE : PROXY_CUT_AFTER, "INCR");
        sleep_ms(5);
        proxy_harm(&proxy, PROXY_PASS, "");
        sleep_ms(10);
    }
    join(askers, 16);
    uint64_t answered = 0;
    int uncertain = 0;
    int not_sent = 0;
    for (int i = 0; i < 16; i++) {
        answered += askers[i].incremented;
        uncertain += askers[i].uncertain;
        not_sent += askers[i].not_sent;
    }
    snk_redis_close(redis);
    proxy_stop(&proxy);
    uint64_t counter = (uint64_t)redis_integer(observer, "GET counter");
    snk_redis_close(observer);
    print_message("# figure: %llu answered, %d uncertain, %d not sent, counter %llu, %d cuts\n",
                  (unsigned long long)answered, uncertain, not_sent, (unsigned long long)counter, proxy.cuts);
    assert_true(counter >= answered);
    assert_true(counter <= answered + (uint64_t)uncertain);
    assert_true(answered > 0);
}

static void test_closing_under_load_ends_every_call(void **state)
{
    (void)state;
    snk_redis_config config = { .host = "127.0.0.1", .port = server.port };
    for (unsigned i = 0; i < test_scaled(200); i++) {
        snk_redis *redis = redis_open(&config);
        static asker askers[16];
        static asker loose[4];
        _Atomic int left = 0;
        run_threads(askers, 16, ask_echoes, redis, 20);
        for (int k = 0; k < 4; k++) {
            loose[k] = (asker){ .redis = redis, .number = k, .left = &left };
            start_loose(&loose[k], 20);
        }
        sleep_ms((int)(i % 5));
        snk_redis_begin_close(redis);
        join(askers, 16);
        snk_redis_close(redis);
        assert_int_equal(left, 0);
        for (int k = 0; k < 16; k++)
            assert_int_equal(askers[k].wrong, 0);
    }
}

static void *ask_in_haste(void *argument)
{
    asker *self = argument;
    for (int i = 0; i < self->rounds; i++) {
        snk_redis_call call;
        char line[64];
        snk_redis_call_init(&call);
        snprintf(line, sizeof line, "ECHO %d-%d", self->number, i);
        call.timeout_ns = 50 * SNK_NS_PER_US * (1 + (self->number + i) % 20);
        redis_format(&call, line);
        snk_redis_drive(self->redis, &(snk_redis_call *){ &call }, 1);
        judge(self, &call, line + 5);
        snk_redis_call_deinit(&call);
    }
    return NULL;
}

/* Calls that give up leave holes in the stream, and readers that leave hand their role on. */
static void test_calls_that_time_out_never_shift_the_answers_of_others(void **state)
{
    (void)state;
    snk_redis_config config = { .host = "127.0.0.1", .port = server.port };
    snk_redis *redis = redis_open(&config);
    redis_do(redis, "PING");
    static asker hasty[16];
    static asker patient[16];
    run_threads(hasty, 16, ask_in_haste, redis, (int)test_scaled(5000));
    run_threads(patient, 16, ask_echoes, redis, (int)test_scaled(5000));
    join(hasty, 16);
    join(patient, 16);
    int uncertain = 0;
    for (int i = 0; i < 16; i++) {
        assert_int_equal(hasty[i].wrong + patient[i].wrong, 0);
        assert_int_equal(patient[i].uncertain + patient[i].not_sent, 0);
        uncertain += hasty[i].uncertain;
    }
    print_message("# figure: %d calls gave up\n", uncertain);
    snk_redis_close(redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_64_threads_get_their_own_answers),
        cmocka_unit_test(test_driven_and_submitted_calls_share_the_connection),
        cmocka_unit_test(test_under_cuts_no_call_is_told_wrongly),
        cmocka_unit_test(test_closing_under_load_ends_every_call),
        cmocka_unit_test(test_calls_that_time_out_never_shift_the_answers_of_others),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
