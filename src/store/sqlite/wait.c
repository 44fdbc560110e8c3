/*
 * How a thread sleeps until there is news about its claim.
 *
 * A ticket, which comes with each answer "queued", says what to sleep on:
 *
 *     bit 63      always set: no ticket is 0
 *     bits 52-62  slot of the client to watch, or SNK_SLOT_NONE
 *     bits 36-51  incarnation of that slot, low bits
 *     bits 32-35  which of our words is the claim's
 *     bits 0-31   value of that word before the transaction that queued or refreshed the claim
 */
#include <linux/futex.h>
#include <limits.h>

#include "base/clock.h"
#include "base/futex.h"
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
    WATCH_SLEEP,   /* sleep on its word, too */
    WATCH_LOOK,    /* it may be dying: look again soon */
    WATCH_GONE     /* it is dead */
} watch_state;

uint64_t snk_ticket_make(const snk_sqlite *store, const snk_id *claim, const snk_stamp *watched)
{
    uint32_t word = snk_word_of(claim);
    uint64_t slot = SNK_SLOT_NONE;
    uint16_t incarnation = 0;
    bool ours = snk_id_equal(&watched->client, &store->identity.client);
    if (!ours && watched->generation == store->sidecar->generation && watched->slot < SNK_SIDECAR_SLOTS) {
        slot = watched->slot;
        incarnation = (uint16_t)atomic_load(&store->sidecar->file->slots[slot].incarnation);
        if (!snk_client_is_alive(store->sidecar, watched))
            incarnation++; /* died since we looked, and the slot may be another's: the wait ends at once */
    }
    return UINT64_C(1) << 63 | slot << 52 | (uint64_t)incarnation << 36 | (uint64_t)word << 32 |
           store->words_before[word];
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
    if ((uint16_t)atomic_load(&slot->incarnation) != watched->incarnation)
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
    return marked ? WATCH_LOOK : WATCH_NOTHING;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Sleeps on the words for so long; where the kernel cannot wait for several, on the first, for a while. */
static void sleep_on(const snk_sqlite *store, const snk_futex_word words[], size_t count, int64_t limit_ns)
{
    if (!snk_futex_wait_any(words, count, limit_ns))
        (void)snk_futex_wait_any(words, 1, least(limit_ns, store->retry_ns));
}

static bool wait_with_ticket(const snk_sqlite *store, snk_sidecar *sidecar, uint64_t ticket,
                             const snk_futex_word *local, int64_t until_ns)
{
    snk_futex_word words[3] = { *local };
    words[1] = (snk_futex_word){
        .word = &snk_sidecar_slot(sidecar)->words[(ticket >> 32) % SNK_SIDECAR_WORDS],
        .expected = (uint32_t)ticket,
        .shared = true,
    };
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
        if (state == WATCH_GONE || atomic_load(words[1].word) != words[1].expected)
            return true;
        if (now_ns >= until_ns || atomic_load(local->word) != local->expected)
            return false;
        int64_t limit_ns = until_ns == SNK_NEVER_NS ? SNK_NEVER_NS : until_ns - now_ns;
        if (state == WATCH_LOOK) {
            bool often = now_ns - watched.marked_ns < LOOK_OFTEN_FOR_NS;
            limit_ns = least(limit_ns, often ? LOOK_OFTEN_NS : LOOK_SELDOM_NS);
        }
        sleep_on(store, words, state == WATCH_SLEEP ? 3 : 2, limit_ns);
    }
}

/* True when a word has moved since the last wait without a ticket; it has not from now on. */
static bool take_news(snk_sqlite *store, snk_slot *slot)
{
    bool news = false;
    for (size_t i = 0; i < SNK_SIDECAR_WORDS; i++) {
        uint32_t value = atomic_load(&slot->words[i]);
        if (atomic_exchange(&store->words_seen[i], value) != value)
            news = true;
    }
    return news;
}

static bool wait_for_any(snk_sqlite *store, snk_sidecar *sidecar, const snk_futex_word *local, int64_t until_ns)
{
    snk_slot *slot = snk_sidecar_slot(sidecar);
    snk_futex_word words[1 + SNK_SIDECAR_WORDS] = { *local };
    for (;;) {
        for (size_t i = 0; i < SNK_SIDECAR_WORDS; i++) {
            words[1 + i] = (snk_futex_word){
                .word = &slot->words[i],
                .expected = atomic_load(&store->words_seen[i]),
                .shared = true,
            };
        }
        if (take_news(store, slot))
            return true;
        int64_t now_ns = snk_now_ns();
        if (now_ns >= until_ns || atomic_load(local->word) != local->expected)
            return false;
        sleep_on(store, words, 1 + SNK_SIDECAR_WORDS, until_ns == SNK_NEVER_NS ? SNK_NEVER_NS : until_ns - now_ns);
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

bool snk_sqlite_wait(snk_store *base, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns)
{
    snk_sqlite *store = snk_sqlite_of(base);
    const snk_futex_word local = { .word = word, .expected = expected };
    /* The sidecar may be replaced while we sleep, and the thread may be cancelled in it. */
    loan borrowed = { .store = store, .sidecar = snk_sidecar_ref(store) };
    volatile bool news = false;
    if (borrowed.sidecar == NULL) {
        int64_t now_ns = snk_now_ns();
        int64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
        (void)snk_futex_wait_any(&local, 1, least(left_ns, store->retry_ns));
        return true;
    }
    pthread_cleanup_push(give_back, &borrowed);
    news = ticket == 0 ? wait_for_any(store, borrowed.sidecar, &local, until_ns)
                       : wait_with_ticket(store, borrowed.sidecar, ticket, &local, until_ns);
    pthread_cleanup_pop(1);
    return news;
}
