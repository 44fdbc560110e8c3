#include "model_store.h"

#include <assert.h>
#include <string.h>

#include "base/bug.h"
#include "base/limits.h"

static int64_t longer(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t shorter(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void model_store_wipe(model_store *store)
{
    for (uint32_t i = 0; i < MODEL_LOCKS_MAX; i++) {
        model_lock *lock = &store->data.locks[i];
        lock->held = false;
        lock->offered = false;
        lock->counter = 0;
        lock->queue_count = 0;
        lock->token_first = 0;
        lock->token_last = 0;
        memset(&lock->holder, 0, sizeof lock->holder);
    }
    store->data.tombstone_count = 0;
}

void model_store_clear(model_store *store)
{
    model_store_wipe(store);
    store->is_saved = false;
    store->run = 1;
}

static void copy_data(model_data *to, const model_data *from)
{
    for (uint32_t i = 0; i < MODEL_LOCKS_MAX; i++)
        to->locks[i] = from->locks[i];
    to->tombstone_count = from->tombstone_count;
    memcpy(to->tombstones, from->tombstones, from->tombstone_count * sizeof from->tombstones[0]);
}

void model_store_save(model_store *store)
{
    copy_data(&store->saved, &store->data);
    store->is_saved = true;
}

void model_store_restart(model_store *store, bool saved)
{
    store->run++;
    if (saved && store->is_saved)
        copy_data(&store->data, &store->saved);
}

/* ---- Tombstones ---- */

static void trim_tombstones(model_store *store, int64_t now_ns)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < store->data.tombstone_count; i++) {
        if (store->data.tombstones[i].expires_at_ns > now_ns)
            store->data.tombstones[kept++] = store->data.tombstones[i];
    }
    store->data.tombstone_count = kept;
}

static void bury(model_store *store, const snk_send *send, int64_t now_ns)
{
    if (SNK_BUGGY(53))
        return;
    trim_tombstones(store, now_ns);
    assert(store->data.tombstone_count < MODEL_TOMBSTONES_MAX);
    int64_t lasts_ns = SNK_BUGGY(54) ? send->lease_ns / 8 : longer(send->lease_ns, SNK_TOMBSTONE_NS);
    store->data.tombstones[store->data.tombstone_count++] =
        (model_tombstone){ .claim = send->claim, .expires_at_ns = now_ns + lasts_ns };
}

static bool is_buried(const model_store *store, const snk_id *claim, int64_t now_ns)
{
    for (uint32_t i = 0; i < store->data.tombstone_count; i++) {
        if (snk_id_equal(&store->data.tombstones[i].claim, claim) && store->data.tombstones[i].expires_at_ns > now_ns)
            return true;
    }
    return false;
}

/* ---- Tokens ---- */

/*
 * The clock is the floor, so that tokens go on rising when the counter is lost; a block that would reach more than a
 * millisecond ahead of the clock shrinks to one token, so that tokens never outrun it.
 */
static void give_tokens(model_store *store, model_lock *lock, uint32_t wanted, int64_t now_ns)
{
    uint64_t wall_us = (uint64_t)(now_ns / SNK_NS_PER_US + store->wall_offset_us);
    uint64_t first = lock->counter + 1;
    if (first < wall_us && !SNK_BUGGY(55))
        first = wall_us;
    uint64_t count = wanted > 0 && store->token_blocks ? wanted : 1;
    if (count > SNK_TOKEN_BLOCK_MAX)
        count = SNK_TOKEN_BLOCK_MAX;
    if (first + count - 1 > wall_us + 1000)
        count = 1;
    lock->token_first = first;
    lock->token_last = first + count - 1;
    lock->counter = SNK_BUGGY(56) ? first : lock->token_last;
}

/* ---- Holder and queue ---- */

static void grant(model_store *store, model_lock *lock, const model_entry *entry, int64_t now_ns)
{
    lock->held = true;
    lock->offered = false;
    lock->holder = *entry;
    give_tokens(store, lock, entry->tokens, now_ns);
}

static void leave_queue(model_lock *lock, uint32_t place)
{
    lock->queue_count--;
    memmove(&lock->queue[place], &lock->queue[place + 1], (lock->queue_count - place) * sizeof lock->queue[0]);
}

static void trim_queue(model_lock *lock, int64_t now_ns)
{
    if (SNK_BUGGY(57))
        return;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < lock->queue_count; i++) {
        if (lock->queue[i].expires_at_ns > now_ns)
            lock->queue[kept++] = lock->queue[i];
    }
    lock->queue_count = kept;
}

static void offer_to_first(model_store *store, model_lock *lock, int64_t now_ns, model_news *news)
{
    uint32_t place = SNK_BUGGY(58) ? lock->queue_count - 1 : 0;
    model_entry entry = lock->queue[place];
    leave_queue(lock, place);
    entry.expires_at_ns = now_ns + shorter(SNK_OFFER_NS, entry.lease_ns);
    if (SNK_BUGGY(59))
        entry.expires_at_ns = now_ns + INT64_C(1000) * SNK_NS_PER_S;
    grant(store, lock, &entry, now_ns);
    lock->offered = true;
    if (news->count < sizeof news->grants / sizeof news->grants[0])
        news->grants[news->count++] = (snk_grant){ .claim = entry.claim,
                                                   .token_first = lock->token_first,
                                                   .token_last = lock->token_last,
                                                   .run = store->announces_grants ? store->run : 0 };
}

static void settle(model_store *store, model_lock *lock, int64_t now_ns, model_news *news)
{
    int64_t over_at_ns = lock->holder.expires_at_ns;
    if (SNK_BUGGY(60))
        over_at_ns += INT64_C(20) * lock->holder.lease_ns;
    if (SNK_BUGGY(61))
        over_at_ns -= lock->holder.lease_ns / 4;
    if (lock->held && over_at_ns <= now_ns)
        lock->held = false;
    trim_queue(lock, now_ns);
    if (!lock->held && lock->queue_count > 0)
        offer_to_first(store, lock, now_ns, news);
}

static bool holds(const model_lock *lock, const snk_id *claim)
{
    return lock->held && snk_id_equal(&lock->holder.claim, claim);
}

static model_entry *find_queued(model_lock *lock, const snk_id *claim)
{
    for (uint32_t i = 0; i < lock->queue_count; i++) {
        if (snk_id_equal(&lock->queue[i].claim, claim))
            return &lock->queue[i];
    }
    return NULL;
}

/* ---- Requests ---- */

static void answer_held(const model_lock *lock, snk_answer *answer)
{
    answer->kind = SNK_ANSWER_HELD;
    answer->token_first = lock->token_first;
    answer->token_last = lock->token_last;
}

static void answer_queued(const model_store *store, const model_lock *lock, int64_t now_ns, snk_answer *answer)
{
    answer->kind = SNK_ANSWER_QUEUED;
    answer->ticket = 1;
    answer->run = store->announces_grants ? store->run : 0;
    answer->look_after_ns = longer(lock->holder.expires_at_ns - now_ns, 1);
}

static void prolong(model_entry *entry, int64_t lease_ns, int64_t now_ns)
{
    int64_t until_ns = now_ns + lease_ns;
    if (SNK_BUGGY(51))
        entry->expires_at_ns = until_ns; /* also when that is sooner */
    else if (!SNK_BUGGY(62))
        entry->expires_at_ns = longer(entry->expires_at_ns, until_ns);
}

static void renew(const model_store *store, model_lock *lock, const snk_send *send, int64_t now_ns, snk_answer *answer)
{
    model_entry *queued = find_queued(lock, &send->claim);
    if (holds(lock, &send->claim)) {
        prolong(&lock->holder, send->lease_ns, now_ns);
        lock->offered = false;
        answer_held(lock, answer);
    } else if (queued != NULL) {
        queued->expires_at_ns = longer(queued->expires_at_ns, now_ns + send->lease_ns);
        answer_queued(store, lock, now_ns, answer);
    } else {
        answer->kind = SNK_ANSWER_GONE;
    }
}

static void acquire(model_store *store, model_lock *lock, const snk_send *send, int64_t now_ns, snk_answer *answer)
{
    model_entry entry = {
        .claim = send->claim,
        .lease_ns = send->lease_ns,
        .expires_at_ns = now_ns + send->lease_ns,
        .tokens = send->tokens,
        .fair = send->fair,
    };
    if (is_buried(store, &send->claim, now_ns)) {
        answer->kind = SNK_ANSWER_GONE;
    } else if (!lock->held) {
        grant(store, lock, &entry, now_ns);
        answer_held(lock, answer);
    } else if (send->queue && lock->queue_count < MODEL_QUEUE_MAX) {
        lock->queue[lock->queue_count++] = entry;
        answer_queued(store, lock, now_ns, answer);
    } else {
        answer->kind = SNK_ANSWER_BUSY;
    }
}

static void release(model_store *store, model_lock *lock, const snk_send *send, int64_t now_ns, snk_answer *answer)
{
    model_entry *queued = find_queued(lock, &send->claim);
    answer->kind = SNK_ANSWER_GONE;
    if (send->unanswered)
        bury(store, send, now_ns);
    if (holds(lock, &send->claim) || (SNK_BUGGY(50) && lock->held)) {
        lock->held = false;
        answer->kind = SNK_ANSWER_DONE;
    } else if (queued != NULL) {
        if (!SNK_BUGGY(63))
            leave_queue(lock, (uint32_t)(queued - lock->queue));
        answer->kind = SNK_ANSWER_DONE;
    }
}

void model_store_execute(model_store *store, uint32_t lock_number, const snk_send *send, int64_t now_ns,
                         snk_answer *answer_out, model_news *news_out)
{
    model_lock *lock = &store->data.locks[lock_number];
    news_out->count = 0;
    answer_out->kind = SNK_ANSWER_FAILED;
    answer_out->token_first = 0;
    answer_out->token_last = 0;
    answer_out->look_after_ns = 0;
    answer_out->ticket = 0;
    answer_out->run = 0;
    settle(store, lock, now_ns, news_out);
    switch (send->ask) {
    case SNK_ASK_ACQUIRE:
        acquire(store, lock, send, now_ns, answer_out);
        break;
    case SNK_ASK_RENEW:
        if (SNK_BUGGY(52) && !holds(lock, &send->claim) && find_queued(lock, &send->claim) == NULL)
            acquire(store, lock, send, now_ns, answer_out);
        else
            renew(store, lock, send, now_ns, answer_out);
        break;
    case SNK_ASK_RELEASE:
        release(store, lock, send, now_ns, answer_out);
        settle(store, lock, now_ns, news_out);
        break;
    }
}

void model_store_settle(model_store *store, uint32_t lock, int64_t now_ns, model_news *news_out)
{
    news_out->count = 0;
    settle(store, &store->data.locks[lock], now_ns, news_out);
}

bool model_store_break(model_store *store, uint32_t lock_number, int64_t now_ns, snk_id *claim_out,
                       model_news *news_out)
{
    model_lock *lock = &store->data.locks[lock_number];
    model_store_settle(store, lock_number, now_ns, news_out);
    if (!lock->held)
        return false;
    *claim_out = lock->holder.claim;
    lock->held = false;
    settle(store, lock, now_ns, news_out);
    return true;
}
