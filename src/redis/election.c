#include "redis/election.h"

#include "base/error.h"

static bool is_repeated(const snk_vote votes[], size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (votes[i].voter != 0 && votes[i].voter == votes[index].voter)
            return true; /* one sentinel, asked at two addresses */
    }
    return false;
}

/* How many sentinels have answered, and how many there are, as far as any of them knows. */
static size_t count_voters(const snk_vote votes[], size_t count, size_t *all_out)
{
    size_t voters = 0;
    *all_out = 0;
    for (size_t i = 0; i < count; i++) {
        voters += !is_repeated(votes, i);
        if (votes[i].sentinels > *all_out)
            *all_out = votes[i].sentinels;
    }
    if (*all_out < voters)
        *all_out = voters;
    return voters;
}

static uint64_t highest_epoch(const snk_vote votes[], size_t count)
{
    uint64_t highest = 0;
    for (size_t i = 0; i < count; i++)
        highest = votes[i].epoch > highest ? votes[i].epoch : highest;
    return highest;
}

static size_t count_support(const snk_vote votes[], size_t count, const snk_vote *candidate)
{
    size_t support = 0;
    for (size_t i = 0; i < count; i++) {
        support += votes[i].epoch == candidate->epoch && votes[i].sees && !is_repeated(votes, i) &&
                   snk_redis_address_equal(&votes[i].master, &candidate->master);
    }
    return support;
}

sneck_status snk_election_hold(const snk_vote votes[], size_t count, const snk_redis_address *now,
                               const snk_vote **vote_out, sneck_error *error)
{
    size_t all = 0;
    size_t voters = count_voters(votes, count, &all);
    if (voters == 0 || voters <= all / 2)
        return snk_fail(error, SNECK_UNAVAILABLE, 0, "redis: %zu of %zu sentinels answer; a majority must", voters,
                        all);
    uint64_t epoch = highest_epoch(votes, count);
    const snk_vote *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < count; i++) {
        if (votes[i].epoch != epoch)
            continue;
        size_t support = count_support(votes, count, &votes[i]);
        bool is_now = now != NULL && snk_redis_address_equal(now, &votes[i].master);
        if (best == NULL || support > most || (support == most && is_now)) {
            best = &votes[i];
            most = support;
        }
    }
    if (best == NULL)
        return snk_fail(error, SNECK_UNAVAILABLE, 0, "redis: the sentinels name no master");
    *vote_out = best;
    return snk_ok(error);
}
