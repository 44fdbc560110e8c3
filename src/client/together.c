#include "client/together.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/futex.h"
#include "client/agent.h"
#include "client/perform.h"

/* One lock of several. */
typedef struct attempt {
    sneck_lock *lock;
    snk_agent agent;
    snk_turn turn;
    bool sends;
} attempt;

typedef struct attempts {
    size_t count;
    size_t sent;
    attempt each[SNK_TOGETHER_MAX];
    attempt *senders[SNK_TOGETHER_MAX];
    snk_claim claims[SNK_TOGETHER_MAX];
    snk_answer answers[SNK_TOGETHER_MAX];
} attempts;

static void begin(attempts *all, attempt *one)
{
    snk_entry *entry = one->lock->entry;
    snk_agent_init(&one->agent, one->lock, &one->lock->terms, 0);
    snk_turn_init(&one->turn, one->lock->client, entry);
    (void)pthread_mutex_lock(&entry->mutex);
    snk_agent_ask_locked(&one->agent, &one->turn);
    (void)pthread_mutex_unlock(&entry->mutex);
    snk_turn_end(&one->turn);
    /* What else a turn may want sent with it, if anything, is left to the way in which one lock is asked for. */
    one->sends = one->turn.actions.send_count == 1 && one->turn.actions.sends[0].ask == SNK_ASK_ACQUIRE;
    if (!one->sends) {
        snk_perform(&one->turn, NULL);
        return;
    }
    const snk_asker *asker = &one->turn.askers[0];
    all->claims[all->sent] = (snk_claim){
        .name = entry->name,
        .why = snk_why_text(asker->why),
        .thread = asker->thread,
        .grip = snk_entry_grip(entry),
        .send = one->turn.actions.sends[0],
    };
    all->claims[all->sent].grip.beside = asker->beside;
    all->senders[all->sent++] = one;
}

static void note_done(snk_call *call)
{
    _Atomic uint32_t *word = call->context;
    atomic_store_explicit(word, 1, memory_order_release);
    snk_futex_wake(word, 1, false);
}

static void ask_store(snk_store *store, attempts *all)
{
    _Atomic uint32_t word = 0;
    snk_call call = {
        .claims = all->claims,
        .answers = all->answers,
        .count = all->sent,
        .done = note_done,
        .context = &word,
    };
    snk_store_submit(store, &call);
    while (atomic_load_explicit(&word, memory_order_acquire) == 0)
        (void)snk_futex_wait_any(&(snk_futex_word){ .word = &word, .expected = 0 }, 1, SNK_NEVER_NS);
}

static void take_answer(attempt *one, const snk_send *send, snk_answer *answer)
{
    snk_why_unref(one->turn.askers[0].why);
    snk_answer_settle(answer);
    snk_event event = { .kind = SNK_EVENT_REPLY, .send = send, .answer = answer };
    snk_turn_run(&one->turn, one->lock->client, one->lock->entry, &event);
    snk_perform(&one->turn, NULL);
}

/* A try is decided by its answer; should one not be, it is given up. */
static void end(attempt *one, sneck_error *result)
{
    snk_entry *entry = one->lock->entry;
    snk_turn turn;
    snk_turn_init(&turn, one->lock->client, entry);
    (void)pthread_mutex_lock(&entry->mutex);
    if (one->agent.waiter.decided)
        snk_turn_take_sends(&turn, NULL, 0);
    else
        snk_agent_give_up_locked(&one->agent, &turn, SNECK_TIMEOUT);
    snk_agent_end_locked(&one->agent, entry);
    *result = one->agent.waiter.result;
    (void)pthread_mutex_unlock(&entry->mutex);
    snk_turn_end(&turn);
    snk_perform(&turn, NULL);
    snk_agent_account(&one->agent, one->lock);
}

static void try_all(sneck_client *client, attempts *all, sneck_error results[])
{
    int state = 0;
    /* The agents are in memory that only this thread frees. */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    for (size_t i = 0; i < all->count; i++)
        begin(all, &all->each[i]);
    if (all->sent > 0)
        ask_store(client->store, all);
    for (size_t i = 0; i < all->sent; i++)
        take_answer(all->senders[i], &all->claims[i].send, &all->answers[i]);
    for (size_t i = 0; i < all->count; i++)
        end(&all->each[i], &results[i]);
    (void)pthread_setcancelstate(state, NULL);
}

void snk_try_together(sneck_lock *const locks[], size_t count, sneck_error results[])
{
    sneck_client *client = locks[0]->client;
    sneck_error trouble;
    attempts *all = malloc(sizeof *all);
    sneck_status status = snk_client_start(client, &trouble);
    if (status == SNECK_OK && all == NULL)
        status = snk_fail(&trouble, SNECK_NO_MEMORY, 0, "out of memory for %zu locks", count);
    if (status == SNECK_OK)
        status = snk_client_enter(client, &trouble);
    if (all == NULL || status != SNECK_OK) {
        for (size_t i = 0; i < count; i++)
            results[i] = trouble;
        free(all);
        return;
    }
    all->count = count;
    all->sent = 0;
    for (size_t i = 0; i < count; i++)
        all->each[i].lock = locks[i];
    try_all(client, all, results);
    snk_gate_leave(&client->gate);
    free(all);
}
