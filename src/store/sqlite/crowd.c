#include "store/sqlite/crowd.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "store/sqlite/settle.h"
#include "store/tokens.h"

#define LOOK_OFTEN_NS (50 * SNK_NS_PER_MS)

/* All claims on one thing. */
typedef struct everybody {
    snk_sqlite *store;
    snk_lock_row *row;
    bool out_of_memory;
    size_t count;
    size_t room;
    snk_claim_row *claims; /* owned; in the order of their places: holders, then those who wait */
} everybody;

static bool take(void *context, const snk_claim_row *claim)
{
    everybody *all = context;
    snk_claim_row *claims = snk_array_with_room(all->claims, all->count, &all->room, sizeof *claims);
    all->out_of_memory = claims == NULL;
    if (claims == NULL)
        return false;
    all->claims = claims;
    claims[all->count++] = *claim;
    return true;
}

/* The highest token of the lock is in its row or in that of a holder. */
static bool load(everybody *all, snk_sqlite *store, snk_lock_row *row)
{
    *all = (everybody){ .store = store, .row = row };
    if (!snk_lock_read(store, row) || !snk_claims_read(store, take, all)) {
        if (all->out_of_memory)
            store->code = SQLITE_NOMEM;
        return false;
    }
    for (size_t i = 0; i < all->count; i++) {
        if (all->claims[i].state != SNK_CLAIM_QUEUED && all->claims[i].token_last > row->token)
            row->token = all->claims[i].token_last;
    }
    return true;
}

static bool holds(const snk_claim_row *claim)
{
    return claim->state != SNK_CLAIM_QUEUED;
}

static snk_crowd crowd_of(const everybody *all)
{
    snk_crowd crowd = { .count = all->row->count };
    for (size_t i = 0; i < all->count; i++) {
        if (holds(&all->claims[i]))
            snk_crowd_add(&crowd, (snk_mode)all->claims[i].record.mode, all->claims[i].record.units);
    }
    return crowd;
}

static size_t first_waiting(const everybody *all)
{
    size_t index = 0;
    while (index < all->count && holds(&all->claims[index]))
        index++;
    return index;
}

static size_t find(const everybody *all, const snk_id *claim)
{
    size_t index = 0;
    while (index < all->count && !snk_id_equal(&all->claims[index].record.claim, claim))
        index++;
    return index;
}

/* Removes a claim. `unused`: what a TAKE took goes back. */
static bool end_claim(everybody *all, size_t index, bool unused)
{
    snk_claim_row gone = all->claims[index];
    if (!snk_claim_remove(all->store, &(snk_lock_row){ .is_all = true }, gone.place))
        return false;
    all->count--;
    for (size_t i = index; i < all->count; i++)
        all->claims[i] = all->claims[i + 1];
    /* Its token is kept in the lock's own row from now on. */
    all->row->token_left = all->row->token_left || holds(&gone);
    bool refunds = holds(&gone) && unused && gone.record.mode == SNK_MODE_TAKE;
    return !refunds || snk_lock_set_count(all->store, all->row, all->row->count + gone.record.units);
}

static bool is_lock(const snk_sqlite *store)
{
    return snk_object_of_mark(store->resource[0]) == SNK_OBJECT_LOCK;
}

static bool end_what_is_over(everybody *all)
{
    snk_sqlite *store = all->store;
    for (size_t i = all->count; i > 0; i--) {
        const snk_claim_row *claim = &all->claims[i - 1];
        snk_fate fate = snk_fate_of(store, &claim->record.stamp, claim->expires_ns);
        if (fate == SNK_FATE_ALIVE)
            continue;
        const char *kind = fate == SNK_FATE_DIED ? "died" : "expired";
        if (holds(claim) && is_lock(store) && !snk_incident_add(store, claim, kind, ""))
            return false;
        if (!end_claim(all, i - 1, true))
            return false;
    }
    return true;
}

/* Whoever shares gets the epoch; everybody else a token that is higher than all before. */
static void give_tokens(everybody *all, snk_mode mode, uint32_t asked, snk_claim_row *claim)
{
    snk_lock_row *row = all->row;
    snk_token_block tokens = { .first = row->token, .last = row->token };
    if (mode != SNK_MODE_SHARED || row->token == 0)
        tokens = snk_tokens_next(row->token, all->store->wall_us, mode == SNK_MODE_EXCLUSIVE ? asked : 1);
    row->token = tokens.last;
    claim->token_first = tokens.first;
    claim->token_last = tokens.last;
}

static snk_grip grip_of(const snk_claim_row *claim)
{
    return (snk_grip){ .mode = (snk_mode)claim->record.mode, .units = claim->record.units };
}

static bool offer(everybody *all, snk_claim_row *claim)
{
    snk_sqlite *store = all->store;
    int64_t lease_ns = claim->record.lease_ns;
    give_tokens(all, (snk_mode)claim->record.mode, claim->record.tokens, claim);
    claim->expires_ns = snk_time_add(store->now_ns, lease_ns < SNK_OFFER_NS ? lease_ns : SNK_OFFER_NS);
    if (!snk_claim_offer(store, claim))
        return false;
    return claim->record.mode != SNK_MODE_TAKE ||
           snk_lock_set_count(store, all->row, all->row->count - claim->record.units);
}

/* What is left of signals that nobody took is over. */
static bool forget_signals(everybody *all)
{
    bool is_condition = snk_object_of_mark(all->store->resource[0]) == SNK_OBJECT_CONDITION;
    return !is_condition || all->row->count == 0 || snk_lock_set_count(all->store, all->row, 0);
}

/* Tells one that waits to look, because it has somebody else to watch from now on. */
static void tell(const everybody *all, size_t index)
{
    if (index < all->count && !holds(&all->claims[index]))
        snk_add_wake(all->store, &all->claims[index].record.stamp, &all->claims[index].record.claim);
}

static bool settle(everybody *all)
{
    all->store->tells_strangers = true;
    if (!end_what_is_over(all))
        return false;
    size_t first = first_waiting(all);
    size_t next = first;
    for (; next < all->count; next++) {
        snk_crowd crowd = crowd_of(all);
        snk_grip grip = grip_of(&all->claims[next]);
        if (!snk_crowd_allows(&crowd, &grip, false))
            break;
        if (!offer(all, &all->claims[next]))
            return false;
    }
    /* Who waits next watched the last of those alone; now there are others, too. */
    if (next > first && next > 1)
        tell(all, next);
    return forget_signals(all);
}

bool snk_crowd_settle(snk_sqlite *store, snk_lock_row *row)
{
    everybody all;
    snk_lock_row whole;
    uint64_t token = row->token;
    bool token_left = row->token_left;
    bool done = load(&all, store, &whole);
    if (done) {
        whole.token = token > whole.token ? token : whole.token;
        whole.token_left = token_left;
        done = settle(&all) && snk_lock_store(store, &whole) && snk_lock_read(store, row);
    }
    free(all.claims);
    return done;
}

/* ---- Requests ---- */

static void answer_held(const snk_claim_row *claim, snk_answer *answer)
{
    answer->kind = SNK_ANSWER_HELD;
    answer->token_first = claim->token_first;
    answer->token_last = claim->token_last;
    answer->units = claim->record.units;
}

typedef struct watching {
    snk_sqlite *store;
    bool all_fit;
} watching;

static bool watch_holder(void *context, const snk_claim_row *claim)
{
    watching *self = context;
    if (holds(claim))
        self->all_fit = snk_watch(self->store, &claim->record.stamp) && self->all_fit;
    return holds(claim);
}

void snk_crowd_watch(snk_sqlite *store, const snk_claim_row *before, const snk_send *send, snk_answer *answer)
{
    if (!holds(before) || before->record.mode == SNK_MODE_EXCLUSIVE)
        return;
    watching self = { .store = store, .all_fit = true };
    bool read = snk_claims_read(store, watch_holder, &self);
    answer->ticket = snk_ticket_make_many(store, &send->claim);
    if (!(read && self.all_fit) && answer->look_after_ns > LOOK_OFTEN_NS)
        answer->look_after_ns = LOOK_OFTEN_NS;
}

/* Each waiter watches the claim before it; the first one of those who wait for nobody's hold watches nobody. */
static void answer_queued(const everybody *all, size_t index, const snk_send *send, snk_answer *answer)
{
    snk_sqlite *store = all->store;
    answer->kind = SNK_ANSWER_QUEUED;
    answer->look_after_ns = send->lease_ns / 3;
    snk_stamp own = snk_own_stamp(store);
    const snk_claim_row *before = index > 0 ? &all->claims[index - 1] : NULL;
    answer->ticket = snk_ticket_make(store, &send->claim, before == NULL ? &own : &before->record.stamp);
    if (before == NULL)
        return;
    int64_t remaining_ns = before->expires_ns - store->now_ns + SNK_NS_PER_MS;
    if (remaining_ns < answer->look_after_ns)
        answer->look_after_ns = remaining_ns;
    snk_crowd_watch(store, before, send, answer);
}

static bool grant(everybody *all, const snk_claim *claim, size_t beside, snk_answer *answer)
{
    snk_sqlite *store = all->store;
    snk_lock_row *row = all->row;
    snk_crowd crowd = crowd_of(all);
    int64_t last_place = all->count > 0 ? all->claims[all->count - 1].place : 0;
    snk_claim_row granted = {
        .place = beside < all->count ? all->claims[beside].place + 1 : last_place + SNK_PLACE_STEP,
        .expires_ns = snk_time_add(store->now_ns, claim->send.lease_ns),
        .record.units = claim->grip.units,
    };
    if (claim->grip.mode == SNK_MODE_PERMIT && claim->grip.units == 0)
        granted.record.units = (uint32_t)(row->count - crowd.used);
    give_tokens(all, claim->grip.mode, claim->send.tokens, &granted);
    if (!snk_claim_hold(store, claim, &granted))
        return false;
    answer_held(&granted, answer);
    return claim->grip.mode != SNK_MODE_TAKE || snk_lock_set_count(store, row, row->count - claim->grip.units);
}

static bool join_queue(everybody *all, const snk_claim *claim, snk_answer *answer)
{
    int64_t last_place = all->count > 0 ? all->claims[all->count - 1].place : 0;
    answer_queued(all, all->count, &claim->send, answer);
    return snk_claim_queue(all->store, claim, last_place + SNK_PLACE_STEP);
}

static bool do_acquire(everybody *all, const snk_claim *claim, snk_answer *answer)
{
    snk_sqlite *store = all->store;
    if (!all->row->found && !snk_lock_add(store, all->row))
        return false;
    bool given_up = false;
    if (all->row->tombstones_until_ns > store->now_ns && !snk_tombstone_find(store, &claim->send.claim, &given_up))
        return false;
    answer->kind = SNK_ANSWER_GONE;
    if (given_up)
        return true;
    if (!settle(all))
        return false;
    size_t beside = find(all, &claim->grip.beside);
    bool stands_beside = beside < all->count && holds(&all->claims[beside]);
    snk_crowd crowd = crowd_of(all);
    if ((stands_beside || first_waiting(all) == all->count) && snk_crowd_allows(&crowd, &claim->grip, stands_beside))
        return grant(all, claim, stands_beside ? beside : all->count, answer);
    answer->kind = SNK_ANSWER_BUSY;
    return !claim->send.queue || join_queue(all, claim, answer);
}

static bool do_renew(everybody *all, const snk_send *send, snk_answer *answer)
{
    answer->kind = SNK_ANSWER_GONE;
    if (!settle(all))
        return false;
    size_t index = find(all, &send->claim);
    if (index == all->count)
        return true;
    snk_claim_row *claim = &all->claims[index];
    if (holds(claim))
        answer_held(claim, answer);
    else
        answer_queued(all, index, send, answer);
    return snk_claim_renew(all->store, claim, send->lease_ns);
}

/* The acquire of the claim may still arrive, after its release. */
static bool leave_tombstone(everybody *all, const snk_send *send)
{
    int64_t life_ns = send->lease_ns > SNK_TOMBSTONE_NS ? send->lease_ns : SNK_TOMBSTONE_NS;
    return (all->row->found || snk_lock_add(all->store, all->row)) &&
           snk_tombstone_add(all->store, all->row, &send->claim, snk_time_add(all->store->now_ns, life_ns));
}

static bool do_release(everybody *all, const snk_send *send, snk_answer *answer)
{
    answer->kind = SNK_ANSWER_GONE;
    if ((send->unanswered && !leave_tombstone(all, send)) || !settle(all))
        return false;
    size_t index = find(all, &send->claim);
    if (index == all->count)
        return true;
    answer->kind = SNK_ANSWER_DONE;
    if (!end_claim(all, index, !send->ends_hold))
        return false;
    tell(all, index);
    return settle(all);
}

static bool do_ask(everybody *all, const snk_claim *claim, snk_answer *answer)
{
    switch (claim->send.ask) {
    case SNK_ASK_ACQUIRE:
        return do_acquire(all, claim, answer);
    case SNK_ASK_RENEW:
        return do_renew(all, &claim->send, answer);
    case SNK_ASK_RELEASE:
        return do_release(all, &claim->send, answer);
    }
    return false;
}

void snk_do_crowd_claim(snk_sqlite *store, const snk_claim *claim, snk_answer *answer)
{
    snk_set_resource(store, claim->grip.object, claim->name);
    everybody all;
    snk_lock_row row;
    bool done = load(&all, store, &row) && do_ask(&all, claim, answer) && snk_lock_store(store, &row);
    free(all.claims);
    if (!done && store->code == SQLITE_OK)
        store->code = SQLITE_INTERNAL; /* a failure that did not say how */
}

/* ---- Breaking and counting ---- */

static bool break_all(everybody *all, uint64_t token, const char *text, bool *broken_out)
{
    if (!settle(all))
        return false;
    for (size_t i = all->count; i > 0; i--) {
        const snk_claim_row *claim = &all->claims[i - 1];
        if (!holds(claim) || claim->token_first != token)
            continue;
        *broken_out = true;
        if (!snk_incident_add(all->store, claim, "broken", text) || !end_claim(all, i - 1, true))
            return false;
    }
    return settle(all);
}

void snk_crowd_break(snk_sqlite *store, uint64_t token, const char *text, bool *broken_out)
{
    everybody all;
    snk_lock_row row;
    bool done = load(&all, store, &row);
    if (done && row.found)
        (void)(break_all(&all, token, text, broken_out) && snk_lock_store(store, &row));
    free(all.claims);
}

bool snk_crowd_used(snk_sqlite *store, const snk_lock_row *row, int64_t *used_out)
{
    everybody all;
    snk_lock_row now;
    bool done = load(&all, store, &now);
    if (done) {
        now.count = row->count;
        *used_out = crowd_of(&all).used;
    }
    free(all.claims);
    return done;
}

bool snk_crowd_waiting(snk_sqlite *store, int64_t *waiting_out)
{
    everybody all;
    snk_lock_row row;
    bool done = load(&all, store, &row);
    if (done)
        *waiting_out = (int64_t)(all.count - first_waiting(&all));
    free(all.claims);
    return done;
}
