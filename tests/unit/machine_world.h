/* For tests of the lock machine, event by event: a clock and a store that are only numbers here. */
#ifndef SNK_TEST_MACHINE_WORLD_H
#define SNK_TEST_MACHINE_WORLD_H

#include "test.h"

#include <string.h>

#include "base/limits.h"
#include "engine/machine.h"

#define MS SNK_NS_PER_MS
#define LEASE_NS (30000 * MS)

/* One machine, the actions of its last step, and a counter that makes claim ids. */
typedef struct world {
    snk_engine engine;
    snk_machine machine;
    snk_actions actions;
    int64_t now_ns;
    uint64_t tokens;
    uint8_t ids;
    snk_hold holds[8];
} world;

static inline bool draw_id(void *context, snk_id *id_out)
{
    world *w = context;
    memset(id_out, 0, sizeof *id_out);
    id_out->bytes[0] = ++w->ids;
    return true;
}

static inline int set_up(void **state)
{
    world *w = calloc(1, sizeof *w);
    if (w == NULL)
        return -1;
    w->engine = (snk_engine){
        .draw_id = draw_id, .context = w, .retry_ns = 100 * MS, .token_blocks = true, .pushes_wakeups = true
    };
    w->now_ns = 1000 * MS;
    w->tokens = 100;
    snk_machine_init(&w->machine, &w->engine);
    *state = w;
    return 0;
}

static inline int tear_down(void **state)
{
    free(*state);
    return 0;
}

static inline void step(world *w, snk_event event)
{
    event.now_ns = w->now_ns;
    snk_machine_step(&w->machine, &event, &w->actions);
    assert_true(snk_machine_is_sound(&w->machine));
}

static inline snk_waiter asker(world *w, uint64_t owner)
{
    return (snk_waiter){
        .owner = owner,
        .terms = { .lease_ns = LEASE_NS, .renew_ns = LEASE_NS / 3, .forget_on_loss = true },
        .reentrant = true,
        .hold = &w->holds[owner],
    };
}

static inline void ask(world *w, snk_waiter *waiter)
{
    step(w, (snk_event){ .kind = SNK_EVENT_ASK, .waiter = waiter });
}

static inline void resume(world *w, snk_waiter *waiter, bool news)
{
    step(w, (snk_event){ .kind = SNK_EVENT_RESUME, .waiter = waiter, .news = news });
}

static inline void give_up(world *w, snk_waiter *waiter, sneck_status status)
{
    step(w, (snk_event){ .kind = SNK_EVENT_GIVE_UP, .waiter = waiter, .status = status });
}

static inline sneck_status release(world *w, uint64_t owner)
{
    step(w, (snk_event){ .kind = SNK_EVENT_RELEASE, .owner = owner });
    return w->actions.release.status;
}

static inline void reply_with(world *w, snk_send send, snk_answer answer)
{
    step(w, (snk_event){ .kind = SNK_EVENT_REPLY, .send = &send, .answer = &answer });
}

static inline void reply(world *w, snk_send send, snk_answer_kind kind)
{
    snk_answer answer = { .kind = kind };
    if (kind == SNK_ANSWER_HELD && send.ask == SNK_ASK_ACQUIRE) {
        answer.token_first = ++w->tokens;
        answer.token_last = w->tokens += send.tokens - 1;
    } else if (kind == SNK_ANSWER_HELD) {
        answer.token_first = answer.token_last = ++w->tokens;
    } else if (kind == SNK_ANSWER_FAILED) {
        answer.error.status = SNECK_UNAVAILABLE;
    } else if (kind == SNK_ANSWER_UNCERTAIN) {
        answer.error.status = SNECK_UNKNOWN;
    }
    reply_with(w, send, answer);
}

/* The only send of the last step. */
static inline snk_send only_send(const world *w, snk_ask kind)
{
    assert_int_equal(w->actions.send_count, 1);
    assert_int_equal(w->actions.sends[0].ask, kind);
    return w->actions.sends[0];
}

static inline bool was_woken(const world *w, const snk_waiter *waiter)
{
    for (const snk_waiter *woken = w->actions.woken; woken != NULL; woken = woken->next_woken)
        if (woken == waiter)
            return true;
    return false;
}

static inline void assert_decided(const snk_waiter *waiter, sneck_status status)
{
    assert_true(waiter->decided);
    assert_int_equal(waiter->result.status, status);
}

/* Owner has the lock, uncontended. */
static inline snk_waiter acquired(world *w, uint64_t owner)
{
    snk_waiter waiter = asker(w, owner);
    ask(w, &waiter);
    reply(w, only_send(w, SNK_ASK_ACQUIRE), SNK_ANSWER_HELD);
    assert_decided(&waiter, SNECK_OK);
    return waiter;
}

/* Owner waits in the store's queue. */
static inline void queue_up(world *w, snk_waiter *waiter)
{
    ask(w, waiter);
    reply(w, only_send(w, SNK_ASK_ACQUIRE), SNK_ANSWER_QUEUED);
    assert_false(waiter->decided);
}

#endif
