#include "client/delivery.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/futex.h"
#include "base/limits.h"
#include "client/perform.h"
#include "client/thread.h"

/* What goes to one store as one call. */
typedef struct parcel {
    size_t first; /* in claims, answers and packed */
    size_t count;
} parcel;

typedef struct parcels {
    snk_ask ask;
    size_t count;
    size_t packed_count;
    _Atomic size_t next; /* that nobody has begun */
    parcel *each;        /* owned, as the others */
    snk_delivery **packed;
    snk_claim *claims;
    snk_answer *answers;
} parcels;

/* ---- Packing ---- */

/* How many requests of `count` go with one call: a store that does them one after the other gets several. */
static size_t size_of_parcel(const sneck_client *client, size_t count)
{
    size_t lanes = client->store->traits.lanes;
    size_t share = lanes > 1 ? (count + lanes - 1) / lanes : count;
    return share < SNK_TOGETHER_MAX ? share : SNK_TOGETHER_MAX;
}

static void pack(parcels *all, snk_delivery *delivery)
{
    const snk_turn *turn = &delivery->turn;
    const snk_asker *asker = &turn->askers[0];
    snk_claim *claim = &all->claims[all->packed_count];
    *claim = (snk_claim){
        .name = turn->entry->name,
        .why = snk_why_text(asker->why),
        .thread = asker->thread,
        .grip = snk_entry_grip(turn->entry),
        .send = turn->actions.sends[0],
    };
    claim->grip.beside = asker->beside;
    delivery->is_packed = true;
    all->packed[all->packed_count++] = delivery;
}

/* One call asks one kind of thing. */
static bool is_for(const parcels *all, const snk_delivery *delivery, const sneck_client *client)
{
    const snk_actions *actions = &delivery->turn.actions;
    return delivery->turn.client == client && !delivery->is_packed && actions->send_count == 1 &&
           actions->sends[0].ask == all->ask && !actions->sends[0].chase;
}

/* Everything for one client. */
static void pack_client(parcels *all, snk_delivery *const deliveries[], size_t count, const sneck_client *client)
{
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++)
        wanted += is_for(all, deliveries[i], client);
    size_t size = wanted == 0 ? 0 : size_of_parcel(client, wanted);
    for (size_t i = 0, done = 0; done < wanted; i++) {
        if (!is_for(all, deliveries[i], client))
            continue;
        if (done % size == 0)
            all->each[all->count++] = (parcel){ .first = all->packed_count };
        pack(all, deliveries[i]);
        all->each[all->count - 1].count++;
        done++;
    }
}

static bool make(parcels *all, size_t count, snk_ask ask)
{
    *all = (parcels){
        .ask = ask,
        .each = calloc(count, sizeof *all->each),
        .packed = calloc(count, sizeof(void *)),
        .claims = calloc(count, sizeof *all->claims),
        .answers = calloc(count, sizeof *all->answers),
    };
    atomic_init(&all->next, 0);
    return all->each != NULL && all->packed != NULL && all->claims != NULL && all->answers != NULL;
}

static void unmake(parcels *all)
{
    free(all->each);
    free(all->packed);
    free(all->claims);
    free(all->answers);
}

/* ---- Asking ---- */

static void note_done(snk_call *call)
{
    _Atomic uint32_t *word = call->context;
    atomic_store_explicit(word, 1, memory_order_release);
    snk_futex_wake(word, 1, false);
}

static void ask_store(snk_store *store, const snk_claim claims[], snk_answer answers[], size_t count)
{
    _Atomic uint32_t word = 0;
    snk_call call = { .claims = claims, .answers = answers, .count = count, .done = note_done, .context = &word };
    snk_store_submit(store, &call);
    while (atomic_load_explicit(&word, memory_order_acquire) == 0)
        (void)snk_futex_wait_any(&(snk_futex_word){ .word = &word, .expected = 0 }, 1, SNK_NEVER_NS);
}

static void take_answer(snk_delivery *delivery, const snk_send *send, snk_answer *answer)
{
    snk_turn *turn = &delivery->turn;
    bool was_pending = turn->actions.pending;
    snk_why_unref(turn->askers[0].why);
    snk_answer_settle(answer);
    snk_event event = { .kind = SNK_EVENT_REPLY, .send = send, .answer = answer };
    snk_turn_run(turn, turn->client, turn->entry, &event);
    if (was_pending)
        delivery->released = turn->actions.release;
    delivery->is_pending = was_pending;
    snk_perform(turn, NULL);
}

static void deliver(parcels *all, const parcel *one)
{
    snk_store *store = all->packed[one->first]->turn.client->store;
    ask_store(store, &all->claims[one->first], &all->answers[one->first], one->count);
    for (size_t i = one->first; i < one->first + one->count; i++)
        take_answer(all->packed[i], &all->claims[i].send, &all->answers[i]);
}

static void *deliver_all(void *argument)
{
    parcels *all = argument;
    for (;;) {
        /* Relaxed: the parcels were there before this thread was. */
        size_t next = atomic_fetch_add_explicit(&all->next, 1, memory_order_relaxed);
        if (next >= all->count)
            return NULL;
        deliver(all, &all->each[next]);
    }
}

/* The calling thread does its share, and all of it when there are no threads to be had. */
static void deliver_in_parallel(parcels *all)
{
    pthread_t threads[SNK_TOGETHER_THREADS_MAX];
    size_t started = 0;
    while (started < SNK_TOGETHER_THREADS_MAX && started + 1 < all->count &&
           snk_thread_start(&threads[started], "sneck-asker", deliver_all, all, NULL) == SNECK_OK)
        started++;
    (void)deliver_all(all);
    for (size_t i = 0; i < started; i++)
        (void)pthread_join(threads[i], NULL);
}

void snk_deliver(snk_delivery *const deliveries[], size_t count, snk_ask ask)
{
    parcels all;
    bool made = make(&all, count, ask);
    for (size_t i = 0; i < count; i++)
        deliveries[i]->is_packed = deliveries[i]->is_pending = false;
    for (size_t i = 0; i < count && made; i++)
        pack_client(&all, deliveries, count, deliveries[i]->turn.client);
    if (made)
        deliver_in_parallel(&all);
    unmake(&all);
    /* What is more than one thing to send, and everything without memory, goes the way in which one lock goes. */
    for (size_t i = 0; i < count; i++) {
        snk_delivery *delivery = deliveries[i];
        if (delivery->is_packed)
            continue;
        delivery->is_pending = delivery->turn.actions.pending;
        snk_perform(&delivery->turn, &delivery->released);
    }
}
