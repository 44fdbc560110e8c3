/*
 * Claims that came back. When another server takes the place of one that died, it may not have heard of the last writes:
 * a claim that we have released holds the lock again, or waits in the queue, and nobody would end it before its lease
 * does. So each lock that we used of late is asked for claims of ours, and those that we do not have any more are
 * released, exactly those, by their ids. A claim of ours is in the table from before its acquire leaves until it is
 * given up, and ids are never used twice: one that the store has and the table has not is over for good. One whose release
 * was answered by a server that is not the present one is looked for after that, since it was in the table until then.
 *
 * Nobody waits for any of this. What is not answered is left to the leases.
 */
#include <stdlib.h>
#include <string.h>

#include "store/redis/claims.h"
#include "store/redis/run.h"

/* One question or one release on its way; frees itself. */
typedef struct errand {
    snk_redis_call call;
    snk_redis_store *store;
    bool with_text;
    bool asks;
    snk_id claim; /* of a release */
    char name[];
} errand;

static void send_errand(errand *self);

static errand *new_errand(snk_redis_store *store, const char *name)
{
    size_t size = strlen(name) + 1;
    errand *self = calloc(1, sizeof *self + size);
    if (self == NULL)
        return NULL;
    snk_redis_call_init(&self->call);
    self->store = store;
    memcpy(self->name, name, size);
    return self;
}

static void end_errand(errand *self)
{
    snk_redis_call_deinit(&self->call);
    free(self);
}

/* Ends a claim that came back. */
static void lay(errand *question, const char *text)
{
    snk_redis_store *store = question->store;
    snk_id claim;
    if (!snk_id_from_hex(&claim, text) || snk_waiting_has(&store->waiting, &claim))
        return;
    errand *self = new_errand(store, question->name);
    if (self == NULL)
        return;
    self->claim = claim;
    (void)atomic_fetch_add_explicit(&store->repairs.ghosts, 1, memory_order_relaxed);
    send_errand(self);
}

static void on_done(snk_redis_call *call)
{
    errand *self = SNK_CONTAINER(call, errand, call);
    if (snk_topology_resend(self->store->topology, call))
        return;
    if (snk_run_needs_text(call) && !self->with_text) {
        self->with_text = true;
        send_errand(self);
        return;
    }
    const redisReply *reply = call->outcome == SNK_REDIS_REPLY ? call->reply : NULL;
    for (size_t i = 0; self->asks && reply != NULL && reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        if (reply->element[i]->type == REDIS_REPLY_STRING)
            lay(self, reply->element[i]->str);
    }
    end_errand(self);
}

static sneck_status format(errand *self)
{
    snk_redis_store *store = self->store;
    if (!self->asks) {
        snk_claim claim = { .name = self->name, .send = { .ask = SNK_ASK_RELEASE, .claim = self->claim } };
        return snk_claim_format(store, &claim, self->with_text, &self->call, NULL);
    }
    snk_keys keys;
    sneck_status status = snk_keys_make(&keys, store->prefix, self->name, NULL);
    snk_run run = { .script = SNK_SCRIPT_GHOSTS, .keys = &keys, .count = 1, .arguments = { store->identity.uuid } };
    return status == SNECK_OK ? snk_run_format(store, &run, self->with_text, &self->call, NULL) : status;
}

static void send_errand(errand *self)
{
    if (format(self) != SNECK_OK) {
        end_errand(self);
        return;
    }
    self->call.done = on_done;
    snk_topology_send(self->store->topology, &self->call);
}

void snk_ghosts_seek_on(snk_redis_store *store, const char *name)
{
    errand *self = new_errand(store, name);
    if (self == NULL)
        return;
    self->asks = true;
    send_errand(self);
}

static void look_for_ghosts(void *context, const char *name)
{
    snk_ghosts_seek_on(context, name);
}

void snk_ghosts_seek(void *context, const uint8_t slots[])
{
    snk_redis_store *store = context;
    snk_recent_visit(&store->recent, slots, look_for_ghosts, store);
}
