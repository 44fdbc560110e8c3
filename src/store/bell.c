#include "store/bell.h"

#include <limits.h>

#include "base/clock.h"
#include "base/futex.h"

static size_t index_of(const snk_id *claim)
{
    return claim->bytes[0] % SNK_BELL_WORDS;
}

/* A ticket: bit 63 (no ticket is 0), bits 32-62 which word, bits 0-31 its value. */
uint64_t snk_bell_ticket(const snk_bell *bell, const snk_id *claim)
{
    uint64_t index = index_of(claim);
    return UINT64_C(1) << 63 | index << 32 | atomic_load(&bell->words[index]);
}

void snk_bell_ring_grant(snk_bell *bell, const char *name, const snk_id *claim, const snk_grant *grant)
{
    if (bell->news != NULL) {
        bell->news(bell->news_context, name, claim, grant);
        return;
    }
    _Atomic uint32_t *word = &bell->words[index_of(claim)];
    (void)atomic_fetch_add(word, 1);
    (void)atomic_fetch_add(&bell->any, 1);
    snk_futex_wake(word, INT_MAX, false);
    snk_futex_wake(&bell->any, INT_MAX, false);
}

void snk_bell_ring(void *bell, const char *name, const snk_id *claim)
{
    snk_bell_ring_grant(bell, name, claim, NULL);
}

static bool wait_on_words(snk_bell *bell, uint64_t ticket, const snk_futex_word *local, int64_t limit_ns)
{
    bool any = ticket == 0;
    _Atomic uint32_t *news = any ? &bell->any : &bell->words[(ticket >> 32) % SNK_BELL_WORDS];
    uint32_t known = any ? atomic_load(&bell->any_seen) : (uint32_t)ticket;
    if (atomic_load(news) == known && limit_ns > 0) {
        const snk_futex_word words[] = { *local, { .word = news, .expected = known } };
        if (!snk_futex_wait_any(words, 2, limit_ns))
            (void)snk_futex_wait_any(words, 1, limit_ns < SNK_NS_PER_MS ? limit_ns : SNK_NS_PER_MS);
    }
    uint32_t value = atomic_load(news);
    return any ? atomic_exchange(&bell->any_seen, value) != value : value != known;
}

bool snk_bell_wait(snk_bell *bell, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns)
{
    const snk_futex_word local = { .word = word, .expected = expected };
    int64_t limit_ns = until_ns == SNK_NEVER_NS ? SNK_NEVER_NS : until_ns - snk_now_ns();
    if (bell->news == NULL)
        return wait_on_words(bell, ticket, &local, limit_ns);
    if (limit_ns > 0)
        (void)snk_futex_wait_any(&local, 1, limit_ns);
    return false;
}
