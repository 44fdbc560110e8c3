/* Calls on their way: to the server for their slot, and on from there until one has answered. */
#include <errno.h>

#include "base/clock.h"
#include "base/error.h"
#include "redis/backoff.h"
#include "redis/errors.h"
#include "redis/latch.h"
#include "redis/topology_parts.h"
#include "redis/verdict.h"

#define HOPS_MAX 8 /* at once, one after the other; then with pauses */
#define PAUSE_NS_MIN (2 * SNK_NS_PER_MS)
#define PAUSE_NS_MAX (50 * SNK_NS_PER_MS)

/* When a call goes on. */
typedef enum pace {
    PACE_OVER,
    PACE_NOW,
    PACE_SOON,
    PACE_AFTER_LOOK
} pace;

#define TOGETHER_MAX 256 /* calls that travel together; their addresses are on the stack */

typedef struct journey {
    snk_topology *topology;
    size_t count;
    snk_redis_call *pending[TOGETHER_MAX];
    int64_t until_ns;
    unsigned rounds;
    uint64_t looks; /* of the scout, when this round began */
} journey;

/* ---- One call ---- */

static int64_t timeout_of(const snk_topology *topology)
{
    int64_t timeout_ns = topology->plan.server.command_timeout_ns;
    return timeout_ns > 0 ? timeout_ns : SNK_REDIS_COMMAND_NS;
}

static void settle_unserved_locked(const snk_topology *topology, snk_redis_call *call)
{
    call->outcome = SNK_REDIS_NOT_SENT;
    call->sent_at_ns = 0;
    call->reply_at_ns = snk_now_ns();
    if (topology->closing)
        snk_fail(&call->error, SNECK_UNAVAILABLE, ECANCELED, "redis: the client is being closed");
    else if (topology->trouble.status != SNECK_OK)
        snk_fail_as(&call->error, &topology->trouble);
    else if (call->slot == SNK_REDIS_SLOT_ANY)
        snk_fail(&call->error, SNECK_UNAVAILABLE, ETIMEDOUT, "redis: no server was found in time");
    else
        snk_fail(&call->error, SNECK_UNAVAILABLE, 0, "redis: no server is known for slot %u", call->slot);
}

/* Finds the server that the call goes to. False when there is none: then it is done. */
static bool aim_locked(snk_topology *topology, snk_redis_call *call)
{
    if (call->node != NULL && call->node->retired) {
        snk_node_unref_locked(call->node);
        call->node = NULL;
        call->asking = false;
    }
    if (call->node == NULL && !topology->closing)
        call->node = snk_node_ref_locked(snk_topology_route_locked(topology, call->slot));
    call->version = topology->version;
    if (call->node != NULL)
        return true;
    settle_unserved_locked(topology, call);
    return false;
}

static void let_go(snk_redis_call *call)
{
    snk_node_unref(call->node);
    call->node = NULL;
    call->asking = false;
}

/* Who is in a hurry does not wait for a server that was not there a moment ago. */
static bool is_refused(snk_redis_call *call)
{
    if (!call->hasty || !snk_node_is_down(call->node, &call->error))
        return false;
    call->outcome = SNK_REDIS_NOT_SENT;
    return true;
}

/* Has the call sent to where the server that answered has pointed. */
static pace follow_pointer(snk_topology *topology, snk_redis_call *call, snk_verdict verdict,
                           const snk_redis_address *to, uint16_t slot)
{
    snk_node *node = snk_node_get(topology, SNK_NODE_SERVER, to, NULL);
    if (node == NULL)
        return PACE_AFTER_LOOK;
    if (verdict == SNK_VERDICT_ASK) {
        call->node = node;
        call->asking = true;
    } else {
        pthread_mutex_lock(&topology->mutex);
        topology->ops->moved_locked(topology, slot, node);
        snk_scout_want_locked(topology);
        snk_node_unref_locked(node);
        pthread_mutex_unlock(&topology->mutex);
    }
    return ++call->hops <= HOPS_MAX ? PACE_NOW : PACE_SOON;
}

/* Whether it was asked of a server that had been replaced before it was answered, or given up. */
static bool is_late(snk_topology *topology, const snk_redis_call *call)
{
    pthread_mutex_lock(&topology->mutex);
    bool late = call->node != NULL && call->node->retired && call->outcome != SNK_REDIS_NOT_SENT;
    pthread_mutex_unlock(&topology->mutex);
    return late;
}

static pace judge_late(snk_redis_call *call)
{
    if (call->late == SNK_REDIS_LATE_REPEATS)
        return ++call->hops <= HOPS_MAX ? PACE_NOW : PACE_SOON;
    if (call->late == SNK_REDIS_LATE_DOUBTED && call->outcome == SNK_REDIS_REPLY &&
        snk_redis_error_of(call->reply) == SNK_REDIS_NO_ERROR) {
        freeReplyObject(call->reply);
        call->reply = NULL;
        call->outcome = SNK_REDIS_UNCERTAIN;
        snk_fail(&call->error, SNECK_UNKNOWN, 0, "redis: the master was replaced before it answered");
    }
    return PACE_OVER;
}

/* What follows for a call that came back from its server, which it parts from. */
static pace judge(snk_topology *topology, snk_redis_call *call)
{
    snk_redis_address to;
    uint16_t slot = 0;
    const char *from = call->node == NULL ? "" : call->node->address.host;
    snk_verdict verdict = snk_verdict_of(call, topology->plan.kind == SNK_TOPOLOGY_CLUSTER, from, &to, &slot);
    bool late = verdict == SNK_VERDICT_DONE && is_late(topology, call);
    let_go(call);
    switch (verdict) {
    case SNK_VERDICT_DONE:
        if (late)
            return judge_late(call);
        if (call->outcome == SNK_REDIS_UNCERTAIN)
            snk_scout_want(topology);
        return PACE_OVER;
    case SNK_VERDICT_MOVED:
    case SNK_VERDICT_ASK:
        return follow_pointer(topology, call, verdict, &to, slot);
    case SNK_VERDICT_SOON:
        return call->yields ? PACE_OVER : PACE_SOON;
    case SNK_VERDICT_LOOK:
        snk_scout_want(topology);
        return PACE_AFTER_LOOK;
    }
    return PACE_OVER;
}

bool snk_topology_has_changed_since(snk_topology *topology, const snk_redis_call *call)
{
    if (topology->plan.kind == SNK_TOPOLOGY_SINGLE)
        return false;
    pthread_mutex_lock(&topology->mutex);
    bool changed = topology->version != call->version;
    pthread_mutex_unlock(&topology->mutex);
    return changed;
}

/* ---- Without waiting ---- */

void snk_topology_send(snk_topology *topology, snk_redis_call *call)
{
    snk_redis_call *const calls[] = { call };
    pthread_mutex_lock(&topology->mutex);
    bool aimed = aim_locked(topology, call);
    /* From submit on the call may be done, and part from its server, on another thread. */
    snk_node *node = aimed ? snk_node_ref_locked(call->node) : NULL;
    pthread_mutex_unlock(&topology->mutex);
    if (!aimed || is_refused(call)) {
        call->done(call);
    } else {
        call->timeout_ns = timeout_of(topology);
        snk_redis_submit(node->redis, calls, 1);
    }
    snk_node_unref(node);
}

bool snk_topology_resend(snk_topology *topology, snk_redis_call *call)
{
    if (judge(topology, call) != PACE_NOW) {
        let_go(call); /* it may have been pointed to a server once more */
        return false;
    }
    snk_redis_call_reset(call);
    snk_topology_send(topology, call);
    return true;
}

/* ---- Driving ---- */

/* Takes those that go to the same server as the first one to the front; how many there are. */
static size_t gather(snk_redis_call *calls[], size_t count)
{
    size_t same = 1;
    for (size_t i = 1; i < count; i++) {
        if (calls[i]->node != calls[0]->node)
            continue;
        snk_redis_call *call = calls[i];
        calls[i] = calls[same];
        calls[same++] = call;
    }
    return same;
}

/* Several servers at once: a slow one does not hold up the others. */
static void send_to_many(snk_redis_call *calls[], size_t count)
{
    snk_latch latch;
    snk_latch_set(&latch, calls, count);
    for (size_t begin = 0; begin < count;) {
        size_t same = gather(calls + begin, count - begin);
        snk_redis_submit(calls[begin]->node->redis, calls + begin, same);
        begin += same;
    }
    snk_latch_wait(&latch);
    for (size_t i = 0; i < count; i++)
        calls[i]->done = NULL;
}

/* Finds a server for each that is pending; how many have one. */
static size_t aim_all(journey *travel, snk_redis_call *aimed[])
{
    snk_topology *topology = travel->topology;
    size_t count = 0;
    pthread_mutex_lock(&topology->mutex);
    travel->looks = topology->looks;
    for (size_t i = 0; i < travel->count; i++) {
        snk_redis_call_reset(travel->pending[i]);
        if (aim_locked(topology, travel->pending[i]))
            aimed[count++] = travel->pending[i];
    }
    pthread_mutex_unlock(&topology->mutex);
    return count;
}

static void commit(snk_redis_call *call)
{
    snk_node *node = call->node;
    pthread_mutex_lock(&node->topology->mutex);
    unsigned replicas = node->replicas;
    pthread_mutex_unlock(&node->topology->mutex);
    snk_commit_drive(&node->commit, node->redis, call, replicas);
}

/* Sends what is pending, and returns when all of it is done. */
static void send_round(journey *travel)
{
    snk_redis_call *sent[TOGETHER_MAX];
    size_t aimed = aim_all(travel, sent);
    size_t count = 0;
    int64_t now = snk_now_ns();
    for (size_t i = 0; i < aimed; i++) {
        sent[i]->timeout_ns = travel->until_ns > now ? travel->until_ns - now : 1;
        if (!is_refused(sent[i]))
            sent[count++] = sent[i];
    }
    if (count == 0)
        return;
    if (sent[0]->commitment != NULL)
        commit(sent[0]);
    else if (gather(sent, count) == count)
        snk_redis_drive(sent[0]->node->redis, sent, count);
    else
        send_to_many(sent, count);
}

/* Looks at what came back; the slowest pace of those that go on. */
static pace judge_round(journey *travel)
{
    size_t left = 0;
    pace slowest = PACE_OVER;
    for (size_t i = 0; i < travel->count; i++) {
        snk_redis_call *call = travel->pending[i];
        pace next = judge(travel->topology, call);
        if (next == PACE_OVER || (call->hasty && next != PACE_NOW))
            continue;
        travel->pending[left++] = call;
        slowest = next > slowest ? next : slowest;
    }
    travel->count = left;
    return slowest;
}

/* False when there is no time left. */
static bool pause_for(journey *travel, pace next)
{
    snk_topology *topology = travel->topology;
    int64_t now = snk_now_ns();
    int64_t pause_ns = PAUSE_NS_MIN << (travel->rounds < 5 ? travel->rounds : 5);
    if (pause_ns > PAUSE_NS_MAX)
        pause_ns = PAUSE_NS_MAX;
    pthread_mutex_lock(&topology->mutex);
    pause_ns -= (int64_t)(snk_redis_random(&topology->random) % (uint64_t)(pause_ns / 2));
    bool goes_on = !topology->closing && (next == PACE_NOW || now + pause_ns < travel->until_ns);
    if (goes_on && next == PACE_AFTER_LOOK)
        snk_scout_await_locked(topology, travel->looks, travel->until_ns);
    while (goes_on && next != PACE_NOW && !topology->closing && snk_now_ns() < now + pause_ns)
        snk_topology_sleep_locked(topology, now + pause_ns);
    goes_on = goes_on && !topology->closing && (next == PACE_NOW || snk_now_ns() < travel->until_ns);
    pthread_mutex_unlock(&topology->mutex);
    travel->rounds++;
    return goes_on;
}

static void travel_all(journey *travel)
{
    for (;;) {
        send_round(travel);
        pace next = judge_round(travel);
        if (travel->count == 0 || !pause_for(travel, next))
            break;
    }
    /* Those that were to go to a certain server do not get there any more. */
    for (size_t i = 0; i < travel->count; i++)
        let_go(travel->pending[i]);
}

static void drive_some(snk_topology *topology, snk_redis_call *const calls[], size_t count)
{
    journey travel;
    travel.topology = topology;
    travel.count = count;
    travel.rounds = 0;
    int64_t given_ns = calls[0]->timeout_ns;
    travel.until_ns = snk_time_add(snk_now_ns(), given_ns > 0 ? given_ns : timeout_of(topology));
    for (size_t i = 0; i < count; i++) {
        travel.pending[i] = calls[i];
        calls[i]->hops = 0;
    }
    travel_all(&travel);
    for (size_t i = 0; i < count; i++)
        calls[i]->timeout_ns = given_ns;
}

void snk_topology_drive(snk_topology *topology, snk_redis_call *const calls[], size_t count)
{
    if (topology->plan.kind == SNK_TOPOLOGY_SINGLE) {
        snk_node *only = topology->master;
        if (count == 1 && calls[0]->commitment != NULL)
            snk_commit_drive(&only->commit, only->redis, calls[0], 0);
        else
            snk_redis_drive(only->redis, calls, count);
        return;
    }
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    snk_topology_enter(topology);
    for (size_t begin = 0; begin < count; begin += TOGETHER_MAX)
        drive_some(topology, calls + begin, count - begin < TOGETHER_MAX ? count - begin : TOGETHER_MAX);
    snk_topology_leave(topology);
    pthread_setcancelstate(cancel_state, NULL);
}
