/*
 * Renewals that nobody waits for: sent to all servers at once, answered as the answers come. A server that hangs holds up
 * nothing but its own.
 */
#include <stdlib.h>

#include "base/error.h"
#include "store/redis/claims.h"
#include "store/redis/run.h"

/* How far a request has come. */
typedef enum stage {
    STAGE_SENT,
    STAGE_WITH_TEXT,
    STAGE_KEPT,
    STAGE_KEPT_WITH_TEXT
} stage;

struct bundle;

typedef struct parcel {
    snk_redis_call call;
    struct bundle *bundle;
    size_t index; /* of its claim */
    stage stage;
} parcel;

typedef struct bundle {
    snk_redis_store *store;
    snk_call *call;
    _Atomic size_t left; /* parcels that are under way, and one while they are being sent */
    parcel parcels[];
} bundle;

/* Acquire-release: whoever is last sees all answers. */
static void finish(bundle *whole, size_t count)
{
    if (atomic_fetch_sub_explicit(&whole->left, count, memory_order_acq_rel) > count)
        return;
    snk_call *call = whole->call;
    free(whole);
    call->done(call);
}

static bool send_again(parcel *self, stage next)
{
    snk_redis_store *store = self->bundle->store;
    const snk_claim *claim = &self->bundle->call->claims[self->index];
    self->stage = next;
    bool formatted = next == STAGE_WITH_TEXT ? snk_claim_format(store, claim, true, &self->call, NULL) == SNECK_OK
                                             : snk_keep_format(store, claim, next == STAGE_KEPT_WITH_TEXT, &self->call);
    if (formatted)
        snk_topology_send(store->topology, &self->call);
    return formatted;
}

static void on_done(snk_redis_call *call)
{
    parcel *self = SNK_CONTAINER(call, parcel, call);
    bundle *whole = self->bundle;
    snk_redis_store *store = whole->store;
    const snk_claim *claim = &whole->call->claims[self->index];
    snk_answer *answer = &whole->call->answers[self->index];
    if (snk_topology_resend(store->topology, call))
        return;
    bool may_need_text = self->stage == STAGE_SENT || self->stage == STAGE_KEPT;
    if (may_need_text && snk_run_needs_text(call) && send_again(self, self->stage + 1))
        return;
    if (self->stage < STAGE_KEPT && snk_keep_applies(store, claim, call) && send_again(self, STAGE_KEPT))
        return;
    if (self->stage >= STAGE_KEPT)
        snk_keep_settle(store, call);
    /* What was said before it listened was missed, and this is no place to ask: it looks again soon. */
    if (snk_claim_answer(store, claim, call, answer) == SNK_WAKE_MISSED && store->retry_ns < answer->look_after_ns)
        answer->look_after_ns = store->retry_ns;
    snk_redis_call_deinit(call);
    finish(whole, 1);
}

/* False: it was refused, and is not under way. */
static bool send_first(bundle *whole, size_t index)
{
    parcel *self = &whole->parcels[index];
    snk_answer *answer = &whole->call->answers[index];
    sneck_error error;
    *self = (parcel){ .bundle = whole, .index = index };
    snk_redis_call_init(&self->call);
    if (snk_claim_prepare(whole->store, &whole->call->claims[index], answer, &self->call, &error) != SNECK_OK) {
        snk_claim_refuse(answer, &error);
        snk_redis_call_deinit(&self->call);
        return false;
    }
    self->call.done = on_done;
    self->call.hasty = true;
    self->call.yields = true;
    snk_topology_send(whole->store->topology, &self->call);
    return true;
}

void snk_background_submit(snk_redis_store *store, snk_call *call)
{
    bundle *whole = malloc(sizeof *whole + call->count * sizeof whole->parcels[0]);
    if (whole == NULL) {
        sneck_error error;
        (void)snk_fail(&error, SNECK_NO_MEMORY, 0, "out of memory");
        for (size_t i = 0; i < call->count; i++)
            snk_claim_refuse(&call->answers[i], &error);
        call->done(call);
        return;
    }
    whole->store = store;
    whole->call = call;
    size_t count = call->count;
    atomic_init(&whole->left, count + 1);
    size_t finished = 1;
    for (size_t i = 0; i < count; i++)
        finished += !send_first(whole, i);
    finish(whole, finished);
}
