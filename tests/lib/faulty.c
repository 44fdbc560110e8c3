#include "faulty.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/futex.h"
#include "base/limits.h"
#include "client/client.h"
#include "test.h"

static test_faulty *of(snk_store *store)
{
    return SNK_CONTAINER(store, test_faulty, base);
}

static test_fault next_fault(test_faulty *faulty, snk_ask ask)
{
    (void)pthread_mutex_lock(&faulty->mutex);
    faulty->hanging++;
    (void)pthread_cond_broadcast(&faulty->changed);
    unsigned epoch = faulty->epochs[ask];
    bool hangs = faulty->faults[ask] == TEST_HANGS;
    while (hangs && faulty->epochs[ask] == epoch)
        (void)pthread_cond_wait(&faulty->changed, &faulty->mutex);
    faulty->hanging--;
    (void)pthread_cond_broadcast(&faulty->changed);
    test_fault fault = faulty->faults[ask];
    (void)pthread_mutex_unlock(&faulty->mutex);
    return fault;
}

static void ignore(snk_call *call)
{
    (void)call;
}

/* The stores under test answer before submit returns. */
static void submit(snk_store *store, snk_call *call)
{
    test_faulty *faulty = of(store);
    snk_ask ask = call->claims[0].send.ask;
    atomic_fetch_add(&faulty->calls[ask], 1);
    atomic_fetch_add(&faulty->claims[ask], (unsigned)call->count);
    test_fault fault = next_fault(faulty, ask);
    snk_call inner = *call;
    inner.done = ignore;
    if (fault == TEST_WORKS || fault == TEST_NO_ANSWER)
        snk_store_submit(faulty->inner, &inner);
    for (size_t i = 0; i < call->count && fault != TEST_WORKS; i++) {
        bool failed = fault == TEST_FAILS;
        call->answers[i] = (snk_answer){ .kind = failed ? SNK_ANSWER_FAILED : SNK_ANSWER_UNCERTAIN };
        (void)snk_fail(&call->answers[i].error, failed ? SNECK_UNAVAILABLE : SNECK_UNKNOWN, 0, "a fault of the test");
    }
    call->done(call);
}

/* Looks of the watchdog are not hurt: it is about renewals. */
static void check(snk_store *store, snk_call *call)
{
    snk_store *inner = of(store)->inner;
    atomic_fetch_add(&of(store)->checks, (unsigned)call->count);
    if (inner->ops->check != NULL)
        inner->ops->check(inner, call);
    else
        snk_store_submit(inner, call);
}

static bool wait_for_news(snk_store *store, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected,
                          int64_t until_ns)
{
    snk_store *inner = of(store)->inner;
    _Atomic uint32_t nobody_wakes_it = 0;
    if (atomic_load(&of(store)->is_deaf))
        atomic_fetch_add(&of(store)->deaf_waits, 1);
    while (atomic_load(&of(store)->is_deaf))
        (void)snk_futex_wait_any(&(snk_futex_word){ .word = &nobody_wakes_it }, 1, 10 * SNK_NS_PER_MS);
    return inner->ops->wait(inner, ticket, word, expected, until_ns);
}

static bool find_grant(snk_store *store, const snk_id *claim, snk_grant *grant_out)
{
    snk_store *inner = of(store)->inner;
    return inner->ops->find_grant != NULL && inner->ops->find_grant(inner, claim, grant_out);
}

static sneck_status inspect(snk_store *store, const char *name, snk_view *view, sneck_error *error)
{
    snk_store *inner = of(store)->inner;
    return inner->ops->inspect(inner, name, view, error);
}

static sneck_status tally(snk_store *store, const snk_tally *asked, snk_tallied *tallied_out, sneck_error *error)
{
    snk_store *inner = of(store)->inner;
    atomic_fetch_add(&of(store)->tallies, 1);
    return inner->ops->tally(inner, asked, tallied_out, error);
}

static bool rouse(snk_store *store, const _Atomic uint32_t *word)
{
    snk_store *inner = of(store)->inner;
    return inner->ops->rouse != NULL && inner->ops->rouse(inner, word);
}

static sneck_status break_hold(snk_store *store, const char *name, uint64_t token, const char *reason,
                               sneck_error *error)
{
    snk_store *inner = of(store)->inner;
    return inner->ops->break_hold(inner, name, token, reason, error);
}

static void close_both(snk_store *store)
{
    test_faulty *faulty = of(store);
    faulty->inner->ops->close(faulty->inner);
    (void)pthread_cond_destroy(&faulty->changed);
    (void)pthread_mutex_destroy(&faulty->mutex);
    free(faulty);
}

test_faulty *test_make_faulty(sneck_client *client)
{
    test_faulty *faulty = calloc(1, sizeof *faulty);
    assert_non_null(faulty);
    faulty->ops = (snk_store_ops){
        .scheme = "faulty",
        .submit = submit,
        .check = check,
        .wait = wait_for_news,
        .rouse = rouse,
        .find_grant = find_grant,
        .inspect = inspect,
        .tally = tally,
        .break_hold = break_hold,
        .close = close_both,
    };
    faulty->base.ops = &faulty->ops;
    faulty->base.traits = client->store->traits;
    faulty->inner = client->store;
    (void)pthread_mutex_init(&faulty->mutex, NULL);
    (void)pthread_cond_init(&faulty->changed, NULL);
    client->store = &faulty->base;
    return faulty;
}

void test_set_fault(test_faulty *faulty, snk_ask ask, test_fault fault)
{
    (void)pthread_mutex_lock(&faulty->mutex);
    faulty->faults[ask] = fault;
    faulty->epochs[ask]++;
    (void)pthread_cond_broadcast(&faulty->changed);
    (void)pthread_mutex_unlock(&faulty->mutex);
}

void test_hang_no_more(test_faulty *faulty, snk_ask ask)
{
    (void)pthread_mutex_lock(&faulty->mutex);
    faulty->faults[ask] = TEST_WORKS;
    (void)pthread_mutex_unlock(&faulty->mutex);
}

void test_await_hanging(test_faulty *faulty, unsigned count)
{
    (void)pthread_mutex_lock(&faulty->mutex);
    while (faulty->hanging != count)
        (void)pthread_cond_wait(&faulty->changed, &faulty->mutex);
    (void)pthread_mutex_unlock(&faulty->mutex);
}

static uint32_t part_by_letter(snk_store *store, const char *name)
{
    (void)store;
    return (uint32_t)name[0];
}

void test_split_by_letter(test_faulty *faulty)
{
    faulty->ops.part = part_by_letter;
}
