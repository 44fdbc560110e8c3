/* Who gets what, and when it ends: the rules of store/grip.h. Everything here runs under table.mutex. */
#include "base/clock.h"
#include "store/memory/table.h"

static snk_crowd crowd_of(const snk_memory_lock *lock)
{
    snk_crowd crowd = { .count = lock->count };
    for (size_t i = 0; i < lock->holders.count; i++)
        snk_crowd_add(&crowd, lock->holders.at[i].grip.mode, lock->holders.at[i].grip.units);
    return crowd;
}

int64_t snk_memory_used_locked(const snk_memory_lock *lock)
{
    return crowd_of(lock).used;
}

static bool nothing_stands_in_the_way(const snk_memory_lock *lock, const snk_grip *grip)
{
    snk_crowd crowd = crowd_of(lock);
    return snk_crowd_allows(&crowd, grip, false);
}

bool snk_memory_is_free_locked(const snk_memory_lock *lock, const snk_grip *grip)
{
    /* A hold that it stands beside lets it pass those who wait for that very hold to end. */
    bool stands_beside = snk_memory_index(&lock->holders, &grip->beside) < lock->holders.count;
    snk_crowd crowd = crowd_of(lock);
    return (stands_beside || lock->queue.count == 0) && snk_crowd_allows(&crowd, grip, stands_beside);
}

/* Whoever shares gets the epoch: the last token that was given out. */
static snk_token_block tokens_for(snk_memory_lock *lock, const snk_memory_claim *claim)
{
    if (claim->grip.mode == SNK_MODE_SHARED && lock->token != 0)
        return (snk_token_block){ .first = lock->token, .last = lock->token };
    uint32_t asked = claim->grip.mode == SNK_MODE_EXCLUSIVE ? claim->tokens_asked : 1;
    snk_token_block tokens = snk_tokens_next(lock->token, snk_wall_us(), asked);
    lock->token = tokens.last;
    return tokens;
}

const snk_memory_claim *snk_memory_grant_locked(snk_memory_lock *lock, const snk_memory_claim *claim, int64_t now_ns,
                                                int64_t life_ns)
{
    if (!snk_memory_append(&lock->holders, claim))
        return NULL;
    snk_memory_claim *holder = &lock->holders.at[lock->holders.count - 1];
    holder->tokens = tokens_for(lock, holder);
    holder->since_ns = now_ns;
    holder->expires_at_ns = snk_time_add(now_ns, life_ns);
    if (holder->grip.mode == SNK_MODE_PERMIT && holder->grip.units == 0)
        holder->grip.units = (uint32_t)(lock->count - snk_memory_used_locked(lock));
    if (holder->grip.mode == SNK_MODE_TAKE)
        lock->count -= holder->grip.units;
    return holder;
}

void snk_memory_end_locked(snk_memory_lock *lock, size_t index, bool unused)
{
    const snk_memory_claim *holder = &lock->holders.at[index];
    if (unused && holder->grip.mode == SNK_MODE_TAKE)
        lock->count += holder->grip.units;
    snk_memory_remove(&lock->holders, index);
}

static void end_what_is_over(snk_memory_lock *lock, int64_t now_ns)
{
    for (size_t i = lock->holders.count; i > 0; i--) {
        const snk_memory_claim *holder = &lock->holders.at[i - 1];
        if (holder->expires_at_ns > now_ns)
            continue;
        if (lock->object == SNK_OBJECT_LOCK)
            snk_memory_incident_locked(lock, holder, "expired", "");
        snk_memory_end_locked(lock, i - 1, true);
    }
    for (size_t i = lock->queue.count; i > 0; i--) {
        if (lock->queue.at[i - 1].expires_at_ns <= now_ns)
            snk_memory_remove(&lock->queue, i - 1);
    }
}

void snk_memory_settle_locked(snk_memory_table *table, snk_memory_lock *lock, int64_t now_ns)
{
    end_what_is_over(lock, now_ns);
    while (lock->queue.count > 0 && nothing_stands_in_the_way(lock, &lock->queue.at[0].grip)) {
        snk_memory_claim first = lock->queue.at[0];
        int64_t life_ns = first.lease_ns < SNK_OFFER_NS ? first.lease_ns : SNK_OFFER_NS;
        if (snk_memory_grant_locked(lock, &first, now_ns, life_ns) == NULL)
            return; /* whoever comes next tries again */
        snk_memory_remove(&lock->queue, 0);
        snk_memory_tell(table, &first.id);
    }
    /* A signal is for those who wait; what none of them took is over. */
    if (lock->object == SNK_OBJECT_CONDITION)
        lock->count = 0;
}
