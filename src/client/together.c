#include "client/together.h"

#include <stdlib.h>

#include "base/error.h"
#include "client/agent.h"
#include "client/delivery.h"
#include "client/perform.h"

/* One lock of several. */
typedef struct attempt {
    sneck_lock *lock;
    sneck_lock *single; /* by which the caller asks; NULL: it does not ask */
    snk_agent agent;    /* of an acquire */
    snk_delivery delivery;
    bool is_inside; /* the gate was entered */
    sneck_error result;
} attempt;

typedef struct attempts {
    size_t delivery_count;
    snk_delivery **deliveries; /* of those that have something to send; owned */
    attempt each[];
} attempts;

static attempts *new_attempts(size_t count)
{
    /* No more of it is touched than is used. */
    attempts *all = malloc(sizeof *all + count * sizeof all->each[0]);
    if (all == NULL)
        return NULL;
    all->delivery_count = 0;
    all->deliveries = calloc(count, sizeof(void *));
    if (all->deliveries == NULL) {
        free(all);
        return NULL;
    }
    return all;
}

static void free_attempts(attempts *all)
{
    free(all->deliveries);
    free(all);
}

/* Everything that has something to send is sent. */
static void run(attempts *all, snk_ask ask)
{
    if (all->delivery_count > 0)
        snk_deliver(all->deliveries, all->delivery_count, ask);
}

static void leave(attempt *one)
{
    if (one->is_inside)
        snk_gate_leave(&one->lock->client->gate);
    if (one->single != NULL)
        one->lock->ops->settle(one->lock);
}

/* ---- Acquire ---- */

/* The caller asks with this lock's single handle, or has its result. */
static void begin_try(attempts *all, attempt *one, int64_t lease_ms)
{
    sneck_client *client = one->lock->client;
    one->is_inside = false;
    one->single = NULL;
    sneck_status status = snk_client_start(client, &one->result);
    if (status == SNECK_OK)
        status = one->lock->ops->single(one->lock, true, &one->single, &one->result);
    if (status == SNECK_OK)
        status = snk_client_enter(client, &one->result);
    if (status != SNECK_OK)
        return;
    one->is_inside = true;
    snk_terms terms = snk_single_terms(one->single, lease_ms);
    snk_turn *turn = &one->delivery.turn;
    snk_entry *entry = one->single->entry;
    snk_agent_init(&one->agent, one->single, &terms, 0);
    snk_turn_init(turn, client, entry);
    (void)pthread_mutex_lock(&entry->mutex);
    snk_agent_ask_locked(&one->agent, turn);
    (void)pthread_mutex_unlock(&entry->mutex);
    snk_turn_end(turn);
    if (turn->actions.send_count > 0)
        all->deliveries[all->delivery_count++] = &one->delivery;
}

/* A try is decided by its answer; should one not be, it is given up. */
static void end_try(attempt *one)
{
    if (one->is_inside) {
        snk_entry *entry = one->single->entry;
        snk_turn turn;
        snk_turn_init(&turn, one->lock->client, entry);
        (void)pthread_mutex_lock(&entry->mutex);
        if (one->agent.waiter.decided)
            snk_turn_take_sends(&turn, NULL, 0);
        else
            snk_agent_give_up_locked(&one->agent, &turn, SNECK_TIMEOUT);
        snk_agent_end_locked(&one->agent, entry);
        one->result = one->agent.waiter.result;
        (void)pthread_mutex_unlock(&entry->mutex);
        snk_turn_end(&turn);
        snk_perform(&turn, NULL);
        snk_agent_account(&one->agent, one->single);
        if (one->result.status == SNECK_OK)
            (void)snk_single_tell_acquired(one->single, &one->result);
    }
    leave(one);
}

void snk_try_together(sneck_lock *const locks[], size_t count, int64_t lease_ms, sneck_error results[])
{
    attempts *all = new_attempts(count);
    int state = 0;
    if (all == NULL) {
        for (size_t i = 0; i < count; i++)
            (void)snk_fail(&results[i], SNECK_NO_MEMORY, 0, "out of memory for %zu locks", count);
        return;
    }
    /* The agents are in memory that only this thread frees. */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    for (size_t i = 0; i < count; i++) {
        all->each[i].lock = locks[i];
        begin_try(all, &all->each[i], lease_ms);
    }
    run(all, SNK_ASK_ACQUIRE);
    for (size_t i = 0; i < count; i++) {
        end_try(&all->each[i]);
        results[i] = all->each[i].result;
    }
    (void)pthread_setcancelstate(state, NULL);
    free_attempts(all);
}

/* ---- Release ---- */

static void begin_release(attempts *all, attempt *one)
{
    one->is_inside = false;
    one->single = NULL;
    sneck_status status = snk_lock_check_release(one->lock, &one->result);
    if (status == SNECK_OK)
        status = one->lock->ops->single(one->lock, false, &one->single, &one->result);
    if (status != SNECK_OK)
        return;
    one->is_inside = snk_single_begin_release(one->single, snk_lock_owner(one->single), &one->delivery.turn);
    one->result = one->delivery.turn.actions.release;
    if (one->is_inside)
        all->deliveries[all->delivery_count++] = &one->delivery;
}

static void end_release(attempt *one)
{
    if (one->is_inside && one->delivery.is_pending)
        one->result = one->delivery.released;
    if (one->single != NULL && one->result.status == SNECK_OK)
        (void)snk_single_tell_released(one->single, &one->result);
    leave(one);
}

void snk_release_together(sneck_lock *const locks[], size_t count, sneck_error results[])
{
    attempts *all = new_attempts(count);
    int state = 0;
    if (all == NULL) {
        for (size_t i = count; i > 0; i--)
            (void)sneck_release(locks[i - 1], &results[i - 1]);
        return;
    }
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    for (size_t i = count; i > 0; i--) {
        all->each[i - 1].lock = locks[i - 1];
        begin_release(all, &all->each[i - 1]);
    }
    run(all, SNK_ASK_RELEASE);
    for (size_t i = 0; i < count; i++) {
        end_release(&all->each[i]);
        results[i] = all->each[i].result;
    }
    (void)pthread_setcancelstate(state, NULL);
    free_attempts(all);
}
