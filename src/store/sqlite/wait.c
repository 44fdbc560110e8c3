/*
 * How a thread sleeps until there is news about its claim.
 *
 * A ticket, which comes with each answer "queued", says what to sleep on:
 *
 *     bit 63      always set: no ticket is 0
 *     bits 52-62  slot of the client to watch, SNK_SLOT_NONE, or SNK_SLOT_MANY: all that claims of this client watch
 *     bits 36-51  incarnation of that slot, low bits; MANY: how many of them had died before, low bits
 *     bits 32-35  which of our words is the claim's
 *     bits 0-31   value of that word before the transaction that queued or refreshed the claim
 */
#include <linux/futex.h>
#include <limits.h>

#include "base/clock.h"
#include "base/futex.h"
#include "store/sqlite/grants.h"
#include "store/sqlite/sqlite.h"

/* After a mark, how often the liveness lock is looked at: first often, since files are mostly closed at once. */
#define LOOK_OFTEN_NS (1 * SNK_NS_PER_MS)
#define LOOK_OFTEN_FOR_NS (100 * SNK_NS_PER_MS)
#define LOOK_SELDOM_NS (10 * SNK_NS_PER_MS)

typedef struct watch {
    snk_sidecar *sidecar;
    uint32_t slot; /* SNK_SLOT_NONE: nobody */
    uint16_t incarnation;
    bool owned;        /* its life mutex had an owner when we looked */
    int64_t marked_ns; /* since when it has none; 0: it has */
} watch;

typedef enum watch_state {
    WATCH_NOTHING, /* nobody to watch */
    WATCH_SLEEP,   /* sleep on a word of its slot, too */
    WATCH_LOOK,    /* it may be dying: look again soon */
    WATCH_GONE     /* it is dead */
} watch_state;

/* Slot and incarnation in one word, for snk_sqlite.watched; 0 is nobody. */
static uint32_t pack(uint32_t slot, uint16_t incarnation)
{
    return UINT32_C(1) << 31 | slot << 16 | incarnation;
}

/* Takes out somebody who is dead. Who waits for more than one learns it from the count. */
static void strike_out(snk_sqlite *store, size_t index, uint32_t packed)
{
    if (atomic_compare_exchange_strong(&store->watched[index], &packed, 0))
        (void)atomic_fetch_add(&store->deaths, 1);
}

static bool strike_out_the_dead(snk_sqlite *store)
{
    bool room = false;
    for (size_t i = 0; i < SNK_WATCHED_MAX; i++) {
        uint32_t packed = atomic_load(&store->watched[i]);
        if (packed != 0 && !snk_slot_is_alive(store->sidecar, (packed >> 16) % SNK_SIDECAR_SLOTS, (uint16_t)packed))
            strike_out(store, i, packed);
        room = room || atomic_load(&store->watched[i]) == 0;
    }
    return room;
}

/*
 * For waits that are not for one client alone: everybody whom some claim of this client watches, or has watched. Called
 * in a transaction, so nobody else adds; a wait takes out who is dead. False: there is no room.
 */
static bool remember_watched(snk_sqlite *store, uint32_t packed)
{
    size_t empty = SNK_WATCHED_MAX;
    for (size_t i = 0; i < SNK_WATCHED_MAX; i++) {
        uint32_t present = atomic_load(&store->watched[i]);
        if (present == packed)
            return true;
        if (present == 0)
            empty = i;
    }
    if (empty < SNK_WATCHED_MAX) {
        atomic_store(&store->watched[empty], packed);
        return true;
    }
    if (!atomic_load(&store->watches_too_many) && strike_out_the_dead(store))
        return remember_watched(store, packed);
    atomic_store(&store->watches_too_many, true);
    return false;
}

/* Whom a wait is to watch. */
typedef struct aim {
    uint32_t slot; /* SNK_SLOT_NONE: nobody, which is ourselves, or one that cannot be judged */
    uint16_t incarnation;
    bool fits; /* it is in snk_sqlite.watched */
} aim;

static aim aim_at(snk_sqlite *store, const snk_stamp *stamp)
{
    aim found = { .slot = SNK_SLOT_NONE, .fits = true };
    if (snk_id_equal(&stamp->client, &store->identity.client) || stamp->generation != store->sidecar->generation ||
        stamp->slot >= SNK_SIDECAR_SLOTS)
        return found;
    found.slot = stamp->slot;
    found.incarnation = (uint16_t)atomic_load(&store->sidecar->file->slots[stamp->slot].incarnation);
    if (!snk_client_is_alive(store->sidecar, stamp))
        found.incarnation++; /* died since we looked, and the slot may be another's: the wait ends at once */
    found.fits = remember_watched(store, pack(found.slot, found.incarnation));
    return found;
}

static uint64_t make_ticket(const snk_sqlite *store, const snk_id *claim, uint32_t slot, uint16_t detail)
{
    uint32_t word = snk_word_of(claim);
    return UINT64_C(1) << 63 | (uint64_t)slot << 52 | (uint64_t)detail << 36 | (uint64_t)word << 32 |
           store->words_before[word];
}

uint64_t snk_ticket_make(snk_sqlite *store, const snk_id *claim, const snk_stamp *watched)
{
    aim found = aim_at(store, watched);
    return make_ticket(store, claim, found.slot, found.incarnation);
}

uint64_t snk_ticket_make_many(const snk_sqlite *store, const snk_id *claim)
{
    return make_ticket(store, claim, SNK_SLOT_MANY, (uint16_t)store->deaths_before);
}

bool snk_watch(snk_sqlite *store, const snk_stamp *stamp)
{
    return aim_at(store, stamp).fits;
}

/*
 * Looks at the life word of the watched client, and makes the kernel wake us when its owner dies: it does so only if
 * the waiters bit is set, and only one of us, who then wakes the rest.
 */
static watch_state look(watch *watched, snk_futex_word *word_out, int64_t now_ns)
{
    if (watched->slot == SNK_SLOT_NONE)
        return WATCH_NOTHING;
    snk_slot *slot = &watched->sidecar->file->slots[watched->slot];
    _Atomic uint32_t *word = snk_slot_life_word(slot);
    uint32_t value = atomic_load(word);
    while ((value & FUTEX_TID_MASK) != 0 && (value & (FUTEX_WAITERS | FUTEX_OWNER_DIED)) == 0) {
        if (atomic_compare_exchange_weak(word, &value, value | FUTEX_WAITERS))
            value |= FUTEX_WAITERS;
    }
    uint32_t incarnation = atomic_load(&slot->incarnation);
    if ((uint16_t)incarnation != watched->incarnation)
        return WATCH_GONE;
    if ((value & FUTEX_TID_MASK) != 0 && (value & FUTEX_OWNER_DIED) == 0) {
        watched->owned = true;
        *word_out = (snk_futex_word){ .word = word, .expected = value, .shared = true };
        return WATCH_SLEEP;
    }
    /* Nobody has it: dead, or closing; or not there yet, and then only its liveness lock can tell. */
    bool marked = (value & FUTEX_OWNER_DIED) != 0 || watched->owned;
    if (marked && watched->marked_ns == 0) {
        watched->marked_ns = now_ns;
        snk_futex_wake(word, INT_MAX, true);
    }
    if (!snk_slot_is_alive(watched->sidecar, watched->slot, watched->incarnation))
        return WATCH_GONE;
    if (marked)
        return WATCH_LOOK;
    *word_out = (snk_futex_word){ .word = &slot->incarnation, .expected = incarnation, .shared = true };
    return WATCH_SLEEP;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t look_pause_ns(const watch *watched, int64_t now_ns)
{
    return now_ns - watched->marked_ns < LOOK_OFTEN_FOR_NS ? LOOK_OFTEN_NS : LOOK_SELDOM_NS;
}

/* Sleeps on the words for so long; where the kernel cannot wait for several, on the first, for a while. */
static void sleep_on(const snk_sqlite *store, const snk_futex_word words[], size_t count, int64_t limit_ns)
{
    if (!snk_futex_wait_any(words, count, limit_ns))
        (void)snk_futex_wait_any(words, 1, least(limit_ns, store->retry_ns));
}

static int64_t left_ns(int64_t until_ns, int64_t now_ns)
{
    return until_ns == SNK_NEVER_NS ? SNK_NEVER_NS : until_ns - now_ns;
}

/* What the claim with that ticket sleeps on. */
static snk_futex_word claim_word(const snk_sidecar *sidecar, uint64_t ticket)
{
    return (snk_futex_word){
        .word = &snk_sidecar_slot(sidecar)->words[(ticket >> 32) % SNK_SIDECAR_WORDS],
        .expected = (uint32_t)ticket,
        .shared = true,
    };
}

static bool has_moved(const snk_futex_word *word)
{
    return atomic_load(word->word) != word->expected;
}

static bool wait_for_one(const snk_sqlite *store, snk_sidecar *sidecar, uint64_t ticket, const snk_futex_word *local,
                         int64_t until_ns)
{
    snk_futex_word words[3] = { *local, claim_word(sidecar, ticket) };
    watch watched = {
        .sidecar = sidecar,
        .slot = (uint32_t)(ticket >> 52) & SNK_SLOT_NONE,
        .incarnation = (uint16_t)(ticket >> 36),
    };
    if (watched.slot >= SNK_SIDECAR_SLOTS)
        watched.slot = SNK_SLOT_NONE;
    for (;;) {
        int64_t now_ns = snk_now_ns();
        /* Before any return: the one wake-up that a death gives may have come to us, and is to be passed on. */
        watch_state state = look(&watched, &words[2], now_ns);
        if (state == WATCH_GONE || has_moved(&words[1]))
            return true;
        if (now_ns >= until_ns || has_moved(local))
            return false;
        int64_t limit_ns = left_ns(until_ns, now_ns);
        if (state == WATCH_LOOK)
            limit_ns = least(limit_ns, look_pause_ns(&watched, now_ns));
        sleep_on(store, words, state == WATCH_SLEEP ? 3 : 2, limit_ns);
    }
}

/* True when a word has moved, or somebody has died, since the last wait without a ticket; not so from now on. */
static bool take_news(snk_sqlite *store, snk_slot *slot)
{
    uint32_t deaths = atomic_load(&store->deaths);
    bool news = atomic_exchange(&store->deaths_seen, deaths) != deaths;
    for (size_t i = 0; i < SNK_SIDECAR_WORDS; i++) {
        uint32_t value = atomic_load(&slot->words[i]);
        if (atomic_exchange(&store->words_seen[i], value) != value)
            news = true;
    }
    return news;
}

/* Everything that a wait for more than one client sleeps on. */
typedef struct many_wait {
    watch watches[SNK_WATCHED_MAX];
    uint32_t packed[SNK_WATCHED_MAX]; /* whom each of them watches */
    snk_futex_word words[1 + SNK_SIDECAR_WORDS + SNK_WATCHED_MAX];
    size_t count;
    int64_t pause_ns; /* look again after this time */
} many_wait;

_Static_assert(1 + SNK_SIDECAR_WORDS + SNK_WATCHED_MAX <= SNK_FUTEX_WORDS_MAX, "all words fit into one wait");

/* Looks at everybody who is watched, and strikes out who is dead. */
static void watch_all(snk_sqlite *store, snk_sidecar *sidecar, many_wait *waiting, int64_t now_ns)
{
    for (size_t i = 0; i < SNK_WATCHED_MAX; i++) {
        uint32_t packed = atomic_load(&store->watched[i]);
        watch *watched = &waiting->watches[i];
        if (packed != waiting->packed[i] || packed == 0) {
            waiting->packed[i] = packed;
            *watched = (watch){ .sidecar = sidecar, .slot = SNK_SLOT_NONE };
            if (packed != 0) {
                watched->slot = (packed >> 16) % SNK_SIDECAR_SLOTS;
                watched->incarnation = (uint16_t)packed;
            }
        }
        watch_state state = look(watched, &waiting->words[waiting->count], now_ns);
        if (state == WATCH_SLEEP)
            waiting->count++;
        if (state == WATCH_LOOK)
            waiting->pause_ns = least(waiting->pause_ns, look_pause_ns(watched, now_ns));
        if (state == WATCH_GONE)
            strike_out(store, i, packed);
    }
}

static bool wait_for_many(snk_sqlite *store, snk_sidecar *sidecar, uint64_t ticket, const snk_futex_word *local,
                          int64_t until_ns)
{
    many_wait waiting = { .words = { *local, claim_word(sidecar, ticket) } };
    for (;;) {
        int64_t now_ns = snk_now_ns();
        waiting.count = 2;
        waiting.pause_ns = left_ns(until_ns, now_ns);
        watch_all(store, sidecar, &waiting, now_ns);
        if ((uint16_t)atomic_load(&store->deaths) != (uint16_t)(ticket >> 36) || has_moved(&waiting.words[1]))
            return true;
        if (now_ns >= until_ns || has_moved(local))
            return false;
        sleep_on(store, waiting.words, waiting.count, waiting.pause_ns);
    }
}

static bool wait_with_ticket(snk_sqlite *store, snk_sidecar *sidecar, uint64_t ticket, const snk_futex_word *local,
                             int64_t until_ns)
{
    if (((uint32_t)(ticket >> 52) & SNK_SLOT_NONE) == SNK_SLOT_MANY)
        return wait_for_many(store, sidecar, ticket, local, until_ns);
    return wait_for_one(store, sidecar, ticket, local, until_ns);
}

static bool wait_for_any(snk_sqlite *store, snk_sidecar *sidecar, const snk_futex_word *local, int64_t until_ns)
{
    snk_slot *slot = snk_sidecar_slot(sidecar);
    many_wait waiting = { .words = { *local } };
    int64_t poll_ns = snk_time_add(snk_now_ns(), store->retry_ns);
    for (;;) {
        int64_t now_ns = snk_now_ns();
        for (size_t i = 0; i < SNK_SIDECAR_WORDS; i++) {
            waiting.words[1 + i] = (snk_futex_word){
                .word = &slot->words[i],
                .expected = atomic_load(&store->words_seen[i]),
                .shared = true,
            };
        }
        waiting.count = 1 + SNK_SIDECAR_WORDS;
        waiting.pause_ns = left_ns(until_ns, now_ns);
        watch_all(store, sidecar, &waiting, now_ns);
        if (take_news(store, slot))
            return true;
        if (now_ns >= until_ns || has_moved(local))
            return false;
        if (atomic_load(&store->watches_too_many)) {
            if (now_ns >= poll_ns)
                return true;
            waiting.pause_ns = least(waiting.pause_ns, poll_ns - now_ns);
        }
        sleep_on(store, waiting.words, waiting.count, waiting.pause_ns);
    }
}

typedef struct loan {
    snk_sqlite *store;
    snk_sidecar *sidecar;
} loan;

static void give_back(void *context)
{
    loan *borrowed = context;
    snk_sidecar_unref(borrowed->store, borrowed->sidecar, false);
}

bool snk_sqlite_find_grant(snk_store *base, const snk_id *claim, snk_grant *grant_out)
{
    snk_sqlite *store = snk_sqlite_of(base);
    snk_sidecar *sidecar = snk_sidecar_ref(store);
    bool found = sidecar != NULL && snk_grant_read(snk_sidecar_slot(sidecar), claim, grant_out);
    if (found) {
        grant_out->claim = *claim;
        grant_out->run = sidecar->generation;
    }
    snk_sidecar_unref(store, sidecar, false);
    return found;
}

bool snk_sqlite_wait(snk_store *base, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns)
{
    snk_sqlite *store = snk_sqlite_of(base);
    const snk_futex_word local = { .word = word, .expected = expected };
    /* The sidecar may be replaced while we sleep, and the thread may be cancelled in it. */
    loan borrowed = { .store = store, .sidecar = snk_sidecar_ref(store) };
    volatile bool news = false;
    if (borrowed.sidecar == NULL) {
        int64_t now_ns = snk_now_ns();
        int64_t limit_ns = until_ns > now_ns ? until_ns - now_ns : 0;
        (void)snk_futex_wait_any(&local, 1, least(limit_ns, store->retry_ns));
        return true;
    }
    pthread_cleanup_push(give_back, &borrowed);
    news = ticket == 0 ? wait_for_any(store, borrowed.sidecar, &local, until_ns)
                       : wait_with_ticket(store, borrowed.sidecar, ticket, &local, until_ns);
    pthread_cleanup_pop(1);
    return news;
}
