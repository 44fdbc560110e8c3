#include "redis/commit.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"

#define ROUND_MAX 64

/* One call that waits for its round, or is in it; on the stack of its thread. */
typedef struct member {
    snk_link link;
    snk_redis_call *call;
    bool done; /* under commit.mutex */
} member;

typedef struct round_trip {
    member *members[ROUND_MAX];
    size_t count;
    unsigned needed;
    int64_t timeout_ns;
} round_trip;

unsigned snk_commit_needed(const snk_commitment *commitment, unsigned replicas)
{
    unsigned needed = commitment->count;
    if (commitment->rule == SNK_COMMIT_MAJORITY)
        needed = (replicas + 1) / 2;
    if (commitment->rule == SNK_COMMIT_ALL)
        needed = replicas;
    return needed > 0 ? needed : 1;
}

void snk_commit_init(snk_commit *commit)
{
    (void)pthread_mutex_init(&commit->mutex, NULL);
    (void)pthread_cond_init(&commit->changed, NULL);
    commit->busy = false;
    snk_list_init(&commit->waiting);
}

void snk_commit_deinit(snk_commit *commit)
{
    (void)pthread_cond_destroy(&commit->changed);
    (void)pthread_mutex_destroy(&commit->mutex);
}

/* ---- A round ---- */

/* How many replicas are connected, as the server says; 0 when it does not. */
static unsigned count_replicas(snk_redis *redis)
{
    snk_redis_call role;
    snk_redis_call_init(&role);
    unsigned count = 0;
    if (snk_redis_call_format(&role, 1, (const char *const[]){ "ROLE" }, NULL, NULL) == SNECK_OK) {
        snk_redis_drive(redis, &(snk_redis_call *){ &role }, 1);
        if (role.outcome == SNK_REDIS_REPLY && role.reply->type == REDIS_REPLY_ARRAY && role.reply->elements == 3 &&
            role.reply->element[2]->type == REDIS_REPLY_ARRAY)
            count = (unsigned)role.reply->element[2]->elements;
    }
    snk_redis_call_deinit(&role);
    return count;
}

static bool format_wait(snk_redis_call *wait, const round_trip *round, int64_t call_timeout_ns)
{
    char needed[16];
    char timeout[24];
    (void)snprintf(needed, sizeof needed, "%u", round->needed);
    (void)snprintf(timeout, sizeof timeout, "%lld", (long long)(round->timeout_ns / SNK_NS_PER_MS));
    snk_redis_call_init(wait);
    wait->lane = SNK_REDIS_BLOCKING;
    wait->timeout_ns = snk_time_add(round->timeout_ns, call_timeout_ns > 0 ? call_timeout_ns : SNK_REDIS_COMMAND_NS);
    return snk_redis_call_format(wait, 3, (const char *const[]){ "WAIT", needed, timeout }, NULL, NULL) == SNECK_OK;
}

static void run_round(snk_redis *redis, const round_trip *round)
{
    snk_redis_call wait;
    snk_redis_call *calls[ROUND_MAX + 1];
    assert(round->count > 0); /* whoever leads is one of them */
    for (size_t i = 0; i < round->count; i++) {
        calls[i] = round->members[i]->call;
        calls[i]->lane = SNK_REDIS_BLOCKING;
    }
    calls[round->count] = &wait;
    bool waits = format_wait(&wait, round, calls[0]->timeout_ns);
    snk_redis_drive(redis, calls, waits ? round->count + 1 : round->count);
    unsigned acknowledged = 0;
    /* Without an answer nobody knows of any replica that has it. */
    if (waits && wait.outcome == SNK_REDIS_REPLY && wait.reply->type == REDIS_REPLY_INTEGER && wait.reply->integer > 0)
        acknowledged = (unsigned)wait.reply->integer;
    for (size_t i = 0; i < round->count; i++) {
        calls[i]->commitment->needed = round->needed;
        calls[i]->commitment->acknowledged = acknowledged;
    }
    snk_redis_call_deinit(&wait);
}

/* ---- Who leads it ---- */

static void gather_locked(snk_commit *commit, round_trip *round)
{
    snk_link *link;
    round->count = 0;
    while (round->count < ROUND_MAX && (link = snk_list_first(&commit->waiting)) != NULL) {
        snk_list_remove(link);
        round->members[round->count++] = SNK_CONTAINER(link, member, link);
    }
}

/* The first of those who wait leads the next round for all of them. */
static void lead_locked(snk_commit *commit, snk_redis *redis, const snk_commitment *commitment, unsigned replicas)
{
    round_trip round;
    commit->busy = true;
    gather_locked(commit, &round);
    (void)pthread_mutex_unlock(&commit->mutex);
    if (replicas == 0 && commitment->rule != SNK_COMMIT_COUNT)
        replicas = count_replicas(redis);
    round.needed = snk_commit_needed(commitment, replicas);
    round.timeout_ns = commitment->timeout_ns;
    run_round(redis, &round);
    (void)pthread_mutex_lock(&commit->mutex);
    for (size_t i = 0; i < round.count; i++)
        round.members[i]->done = true;
    commit->busy = false;
    (void)pthread_cond_broadcast(&commit->changed);
}

void snk_commit_drive(snk_commit *commit, snk_redis *redis, snk_redis_call *call, unsigned replicas)
{
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    member self = { .call = call };
    (void)pthread_mutex_lock(&commit->mutex);
    snk_list_append(&commit->waiting, &self.link);
    while (!self.done) {
        if (!commit->busy && snk_list_first(&commit->waiting) == &self.link)
            lead_locked(commit, redis, call->commitment, replicas);
        else
            (void)pthread_cond_wait(&commit->changed, &commit->mutex);
    }
    (void)pthread_mutex_unlock(&commit->mutex);
    pthread_setcancelstate(cancel_state, NULL);
}
