#include "client/perform.h"

#include <assert.h>
#include <pthread.h>

#include "base/error.h"
#include "client/chaser.h"
#include "client/client.h"
#include "store/store.h"

/* A follow-up rarely has one of its own; what does not fit here would be a bug of the engine, and is left to leases. */
#define JOBS_MAX 32

typedef struct job {
    snk_send send;
    snk_asker asker;
} job;

typedef struct jobs {
    size_t first;
    size_t count;
    job ring[JOBS_MAX];
} jobs;

static void ask_store(const snk_turn *turn, const job *work, snk_answer *answer)
{
    snk_claim claim = {
        .name = turn->entry->name,
        .why = snk_why_text(work->asker.why),
        .thread = work->asker.thread,
        .grip = snk_entry_grip(turn->entry),
        .send = work->send,
    };
    claim.grip.beside = work->asker.beside;
    snk_store_ask(turn->client->store, &claim, answer);
    snk_answer_settle(answer);
}

/* Without memory to remember it, the chase is tried once, here and now. */
static void chase(const snk_turn *turn, const job *work)
{
    snk_answer answer;
    if (!snk_chaser_add(turn->client, turn->entry, &work->send))
        ask_store(turn, work, &answer);
}

static void collect(jobs *todo, const snk_turn *turn)
{
    for (uint32_t i = 0; i < turn->actions.send_count; i++) {
        job work = { .send = turn->actions.sends[i], .asker = turn->askers[i] };
        if (work.send.chase) {
            chase(turn, &work);
            continue;
        }
        assert(todo->count < JOBS_MAX);
        if (todo->count < JOBS_MAX)
            todo->ring[(todo->first + todo->count++) % JOBS_MAX] = work;
        else
            snk_why_unref(work.asker.why);
    }
}

static job take(jobs *todo)
{
    job work = todo->ring[todo->first];
    todo->first = (todo->first + 1) % JOBS_MAX;
    todo->count--;
    return work;
}

/* Takes the answer back to the machine; the turn is that of the answer from now on. */
static void reply(snk_turn *turn, const snk_send *send, const snk_answer *answer)
{
    snk_event event = { .kind = SNK_EVENT_REPLY, .send = send, .answer = answer };
    snk_turn_run(turn, turn->client, turn->entry, &event);
}

void snk_perform(snk_turn *turn, sneck_error *result)
{
    if (turn->actions.send_count == 0)
        return;
    /* The store's I/O has cancellation points, and whoever is cancelled there could not clean up after itself. */
    int state = 0;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    jobs todo = { .first = 0, .count = 0 };
    bool pending = turn->actions.pending;
    collect(&todo, turn);
    while (todo.count > 0) {
        job work = take(&todo);
        snk_answer answer;
        ask_store(turn, &work, &answer);
        snk_why_unref(work.asker.why);
        reply(turn, &work.send, &answer);
        if (pending && result != NULL)
            *result = turn->actions.release;
        pending = false;
        collect(&todo, turn);
    }
    (void)pthread_setcancelstate(state, NULL);
}

void snk_perform_chases(snk_turn *turn)
{
    for (uint32_t i = 0; i < turn->actions.send_count; i++) {
        const snk_send *send = &turn->actions.sends[i];
        assert(send->chase);
        const snk_log_field fields[] = { { .key = "lock", .text = turn->entry->name }, { .key = NULL } };
        if (!snk_chaser_add(turn->client, turn->entry, send))
            snk_log_write(turn->client, SNECK_LOG_WARNING, "chase-dropped", fields);
    }
}
