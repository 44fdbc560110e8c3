#include "kinds/store.h"

#include <assert.h>
#include <string.h>

#include "base/bug.h"
#include "base/limits.h"

#define RUN 1

void kinds_store_clear(kinds_store *store)
{
    for (uint32_t i = 0; i < KINDS_THINGS; i++) {
        store->things[i].holders.count = 0;
        store->things[i].queue.count = 0;
        store->things[i].count = i == KINDS_SEMAPHORE ? -1 : 0;
        store->things[i].token = 0;
    }
    store->tombstone_count = 0;
}

/* ---- Lists ---- */

uint32_t kinds_find(const kinds_entries *entries, const snk_id *claim)
{
    uint32_t index = 0;
    while (index < entries->count && !snk_id_equal(&entries->at[index].claim, claim))
        index++;
    return index;
}

static void append(kinds_entries *entries, const kinds_entry *entry)
{
    assert(entries->count < KINDS_ENTRIES_MAX);
    entries->at[entries->count++] = *entry;
}

static void drop(kinds_entries *entries, uint32_t index)
{
    entries->count--;
    memmove(&entries->at[index], &entries->at[index + 1], (entries->count - index) * sizeof entries->at[0]);
}

static bool is_buried(const kinds_store *store, const snk_id *id, int64_t now_ns)
{
    for (uint32_t i = 0; i < store->tombstone_count; i++)
        if (snk_id_equal(&store->tombstones[i].id, id) && store->tombstones[i].expires_at_ns > now_ns)
            return true;
    return false;
}

static void bury(kinds_store *store, const snk_id *id, int64_t now_ns, int64_t lease_ns)
{
    assert(store->tombstone_count < KINDS_TOMBSTONES_MAX);
    store->tombstones[store->tombstone_count++] = (kinds_tombstone){
        .id = *id,
        .expires_at_ns = now_ns + (lease_ns > SNK_TOMBSTONE_NS ? lease_ns : SNK_TOMBSTONE_NS),
    };
}

/* ---- Granting ---- */

static snk_crowd crowd_of(const kinds_state *state)
{
    snk_crowd crowd = { .count = state->count };
    for (uint32_t i = 0; i < state->holders.count; i++)
        snk_crowd_add(&crowd, state->holders.at[i].grip.mode, state->holders.at[i].grip.units);
    return crowd;
}

static kinds_entry *grant(kinds_state *state, const kinds_entry *entry, int64_t until_ns, int64_t now_ns)
{
    snk_crowd crowd = crowd_of(state);
    append(&state->holders, entry);
    kinds_entry *holder = &state->holders.at[state->holders.count - 1];
    holder->expires_at_ns = until_ns;
    uint64_t floor = (uint64_t)(now_ns / SNK_NS_PER_US);
    bool shares = entry->grip.mode == SNK_MODE_SHARED && state->token != 0;
    if (SNK_BUGGY(150) && state->token == 0)
        floor = 1;
    if (!shares && !SNK_BUGGY(86))
        state->token = state->token + 1 > floor ? state->token + 1 : floor;
    holder->token = state->token;
    if (entry->grip.mode == SNK_MODE_PERMIT && entry->grip.units == 0)
        holder->grip.units = (uint32_t)(SNK_BUGGY(73) ? state->count : state->count - crowd.used);
    if (entry->grip.mode == SNK_MODE_TAKE)
        state->count -= entry->grip.units;
    return holder;
}

/* `unused`: a signal whose receiver did not come to use it goes to the next one. */
static void end_hold(kinds_state *state, uint32_t index, bool unused)
{
    const kinds_entry ended = state->holders.at[index];
    drop(&state->holders, index);
    if (ended.grip.mode == SNK_MODE_TAKE && (unused || SNK_BUGGY(83)) && !SNK_BUGGY(81))
        state->count += ended.grip.units;
    if (ended.grip.mode == SNK_MODE_PERMIT && SNK_BUGGY(76))
        state->count += ended.grip.units;
}

static void end_what_is_over(kinds_state *state, int64_t now_ns)
{
    for (uint32_t i = state->holders.count; i > 0; i--)
        if (state->holders.at[i - 1].expires_at_ns <= now_ns)
            end_hold(state, i - 1, true);
    for (uint32_t i = state->queue.count; i > 0; i--)
        if (state->queue.at[i - 1].expires_at_ns <= now_ns && !SNK_BUGGY(87))
            drop(&state->queue, i - 1);
}

static bool is_grantable(const kinds_state *state, const snk_grip *grip, bool stands_beside)
{
    snk_crowd crowd = crowd_of(state);
    return snk_crowd_allows(&crowd, grip, stands_beside);
}

static void settle(kinds_store *store, kinds_thing thing, int64_t now_ns, kinds_news *news)
{
    kinds_state *state = &store->things[thing];
    end_what_is_over(state, now_ns);
    while (state->queue.count > 0) {
        uint32_t place = SNK_BUGGY(88) ? state->queue.count - 1 : 0;
        kinds_entry entry = state->queue.at[place];
        if (!is_grantable(state, &entry.grip, false))
            break;
        drop(&state->queue, place);
        int64_t life_ns = entry.lease_ns < SNK_OFFER_NS ? entry.lease_ns : SNK_OFFER_NS;
        const kinds_entry *holder = grant(state, &entry, now_ns + life_ns, now_ns);
        news->grants[news->count++] = (snk_grant){ .claim = entry.claim,
                                                   .token_first = holder->token,
                                                   .token_last = holder->token,
                                                   .run = store->announces_grants ? RUN : 0 };
        if (SNK_BUGGY(84))
            break;
    }
    if (thing == KINDS_CONDITION && !SNK_BUGGY(82))
        state->count = 0;
}

void kinds_store_settle(kinds_store *store, kinds_thing thing, int64_t now_ns, kinds_news *news_out)
{
    news_out->count = 0;
    settle(store, thing, now_ns, news_out);
}

/* ---- Requests ---- */

static void answer_held(const kinds_entry *holder, snk_answer *answer)
{
    answer->kind = SNK_ANSWER_HELD;
    answer->token_first = holder->token;
    answer->token_last = holder->token;
    answer->units = holder->grip.units;
}

static void answer_queued(const kinds_store *store, const kinds_state *state, const snk_send *send, int64_t now_ns,
                          snk_answer *answer)
{
    answer->kind = SNK_ANSWER_QUEUED;
    answer->ticket = 1;
    answer->run = store->announces_grants ? RUN : 0;
    answer->look_after_ns = send->lease_ns / 3;
    for (uint32_t i = 0; i < state->holders.count; i++) {
        int64_t left_ns = state->holders.at[i].expires_at_ns - now_ns + SNK_NS_PER_MS;
        if (left_ns < answer->look_after_ns)
            answer->look_after_ns = left_ns;
    }
}

static void acquire(kinds_store *store, kinds_thing thing, const snk_grip *grip, const snk_send *send, int64_t now_ns,
                    snk_answer *answer)
{
    kinds_state *state = &store->things[thing];
    const kinds_entry entry = {
        .claim = send->claim,
        .grip = *grip,
        .lease_ns = send->lease_ns,
        .expires_at_ns = now_ns + send->lease_ns,
    };
    bool stands_beside = kinds_find(&state->holders, &grip->beside) < state->holders.count;
    if (SNK_BUGGY(85) && grip->mode == SNK_MODE_SHARED && !snk_id_equal(&grip->beside, &(snk_id){ { 0 } }))
        stands_beside = state->holders.count > 0;
    bool overtakes = stands_beside || state->queue.count == 0 || (SNK_BUGGY(74) && grip->mode == SNK_MODE_SHARED);
    if (is_buried(store, &send->claim, now_ns)) {
        answer->kind = SNK_ANSWER_GONE;
    } else if (overtakes && is_grantable(state, grip, stands_beside)) {
        answer_held(grant(state, &entry, entry.expires_at_ns, now_ns), answer);
    } else if (send->queue) {
        append(&state->queue, &entry);
        answer_queued(store, state, send, now_ns, answer);
    } else {
        answer->kind = SNK_ANSWER_BUSY;
    }
}

static void refresh(kinds_entry *entry, int64_t until_ns)
{
    if (entry->expires_at_ns < until_ns)
        entry->expires_at_ns = until_ns;
}

static void renew(kinds_store *store, kinds_thing thing, const snk_send *send, int64_t now_ns, snk_answer *answer)
{
    kinds_state *state = &store->things[thing];
    uint32_t held = kinds_find(&state->holders, &send->claim);
    uint32_t queued = kinds_find(&state->queue, &send->claim);
    if (held < state->holders.count) {
        refresh(&state->holders.at[held], now_ns + send->lease_ns);
        for (uint32_t i = 0; i < state->holders.count && SNK_BUGGY(75); i++)
            refresh(&state->holders.at[i], now_ns + send->lease_ns);
        answer_held(&state->holders.at[held], answer);
    } else if (queued < state->queue.count) {
        refresh(&state->queue.at[queued], now_ns + send->lease_ns);
        answer_queued(store, state, send, now_ns, answer);
    } else {
        answer->kind = SNK_ANSWER_GONE;
    }
}

static void release(kinds_store *store, kinds_thing thing, const snk_send *send, int64_t now_ns, snk_answer *answer)
{
    kinds_state *state = &store->things[thing];
    uint32_t held = kinds_find(&state->holders, &send->claim);
    uint32_t queued = kinds_find(&state->queue, &send->claim);
    if (send->unanswered)
        bury(store, &send->claim, now_ns, send->lease_ns);
    answer->kind = SNK_ANSWER_DONE;
    if (held < state->holders.count)
        end_hold(state, held, !send->ends_hold);
    else if (queued < state->queue.count)
        drop(&state->queue, queued);
    else
        answer->kind = SNK_ANSWER_GONE;
}

snk_answer kinds_store_execute(kinds_store *store, kinds_thing thing, const snk_grip *grip, const snk_send *send,
                               int64_t now_ns, kinds_news *news_out)
{
    snk_answer answer = { .kind = SNK_ANSWER_FAILED };
    news_out->count = 0;
    settle(store, thing, now_ns, news_out);
    switch (send->ask) {
    case SNK_ASK_ACQUIRE:
        acquire(store, thing, grip, send, now_ns, &answer);
        break;
    case SNK_ASK_RENEW:
        renew(store, thing, send, now_ns, &answer);
        break;
    case SNK_ASK_RELEASE:
        release(store, thing, send, now_ns, &answer);
        settle(store, thing, now_ns, news_out);
        break;
    }
    return answer;
}

/* ---- Counts ---- */

static bool count_down(kinds_store *store, kinds_state *state, const snk_id *id, int64_t now_ns)
{
    if (state->count == 0 || (is_buried(store, id, now_ns) && !SNK_BUGGY(78)))
        return false;
    bury(store, id, now_ns, 0);
    state->count--;
    return true;
}

static bool signal_waiters(kinds_state *state, int64_t value)
{
    int64_t waiting = state->queue.count;
    if (SNK_BUGGY(89))
        waiting = waiting > 1 ? waiting - 1 : waiting;
    state->count = value < waiting || SNK_BUGGY(82) ? value : waiting;
    return state->count > 0;
}

static bool set_permits(kinds_state *state, int64_t value)
{
    state->count = value;
    while (SNK_BUGGY(77) && crowd_of(state).used > value)
        end_hold(state, state->holders.count - 1, false);
    return true;
}

static bool change(kinds_store *store, kinds_state *state, const snk_tally *tally, int64_t now_ns)
{
    switch (tally->verb) {
    case SNK_TALLY_READ:
        return false;
    case SNK_TALLY_SET:
        return set_permits(state, tally->value);
    case SNK_TALLY_SET_IF_ZERO:
        if (state->count > 0 && !SNK_BUGGY(79))
            return false;
        state->count = tally->value;
        return true;
    case SNK_TALLY_ADD:
        state->count += tally->value;
        return true;
    case SNK_TALLY_DOWN:
        return count_down(store, state, &tally->id, now_ns);
    case SNK_TALLY_SIGNAL:
        return signal_waiters(state, tally->value);
    }
    return false;
}

snk_tallied kinds_store_tally(kinds_store *store, kinds_thing thing, const snk_tally *tally, int64_t now_ns,
                              kinds_news *news_out)
{
    kinds_state *state = &store->things[thing];
    news_out->count = 0;
    settle(store, thing, now_ns, news_out);
    bool done = change(store, state, tally, now_ns);
    if (!SNK_BUGGY(80))
        settle(store, thing, now_ns, news_out);
    return (snk_tallied){ .count = state->count, .used = crowd_of(state).used, .done = done };
}
