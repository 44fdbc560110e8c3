/* The thread that finds out who serves what: one look at a time, when there is a reason, and not too often. */
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "redis/backoff.h"
#include "redis/topology_parts.h"

/* The pause after a look, which doubles while looks follow each other, and is forgotten after a while without any. */
#define PAUSE_NS_MIN (10 * SNK_NS_PER_MS)
#define PAUSE_NS_MAX (400 * SNK_NS_PER_MS)
#define CALM_NS (2 * SNK_NS_PER_S)
#define SLEEP_NS_MAX (3600 * SNK_NS_PER_S)

void snk_topology_sleep_locked(snk_topology *topology, int64_t until_ns)
{
    int64_t left_ns = until_ns - snk_now_ns();
    if (left_ns <= 0)
        return;
    if (left_ns > SLEEP_NS_MAX)
        left_ns = SLEEP_NS_MAX; /* the kernel counts in seconds since its start */
    struct timespec until = snk_timespec(snk_time_add(snk_clock_read_ns(CLOCK_MONOTONIC), left_ns));
    (void)pthread_cond_timedwait(&topology->changed, &topology->mutex, &until);
}

/* ---- Looking ---- */

/* Of which a random half is left out, so that the clients of a store do not all ask at once. */
static int64_t pause_ns_locked(snk_topology *topology)
{
    int64_t pause_ns = PAUSE_NS_MIN;
    for (unsigned i = 1; i < topology->looks_in_row && pause_ns < PAUSE_NS_MAX; i++)
        pause_ns *= 2;
    if (pause_ns > PAUSE_NS_MAX)
        pause_ns = PAUSE_NS_MAX;
    return pause_ns - (int64_t)(snk_redis_random(&topology->random) % (uint64_t)(pause_ns / 2));
}

static void look_locked(snk_topology *topology)
{
    sneck_error error = { .status = SNECK_OK };
    bool idly = !topology->look_wanted && !topology->look_urgently;
    topology->look_wanted = false;
    topology->look_urgently = false;
    pthread_mutex_unlock(&topology->mutex);
    sneck_status status = topology->ops->look(topology, idly, &error);
    if (status != SNECK_OK)
        snk_topology_log(topology, SNECK_LOG_WARNING, "event=look-failed error=\"%s\"", error.message);
    snk_nodes_tell_cuts(topology, &error);
    bool down[SNK_REDIS_NODES_MAX];
    bool is_settled = status == SNECK_OK && snk_nodes_find_down(topology, down) == 0;
    pthread_mutex_lock(&topology->mutex);
    int64_t now = snk_now_ns();
    topology->looks_in_row = now - topology->looked_at_ns < CALM_NS ? topology->looks_in_row + 1 : 1;
    topology->looked_at_ns = now;
    topology->look_after_ns = now + pause_ns_locked(topology);
    topology->looks++;
    topology->trouble = error;
    if (snk_follows_place_locked(topology) || status != SNECK_OK)
        topology->look_wanted = topology->look_wanted || topology->follows.count > 0;
    /* Renewals do not wait for a server that is away: they come again, and then the one in its place is to be known. */
    if (!is_settled && now - topology->wanted_at_ns < CALM_NS)
        topology->look_wanted = true;
    pthread_cond_broadcast(&topology->changed);
}

/* What has moved since the last time is told without the mutex. */
static void tell_displaced_locked(snk_topology *topology)
{
    if (!topology->is_displaced)
        return;
    uint8_t slots[sizeof topology->displaced];
    memcpy(slots, topology->displaced, sizeof slots);
    memset(topology->displaced, 0, sizeof topology->displaced);
    topology->is_displaced = false;
    pthread_mutex_unlock(&topology->mutex);
    if (topology->plan.displaced != NULL)
        topology->plan.displaced(topology->plan.server.listener.context, slots);
    pthread_mutex_lock(&topology->mutex);
}

/* When to look next. What somebody said is looked into at once, but not as often as somebody can say it. */
static int64_t due_at_locked(const snk_topology *topology)
{
    if (topology->look_urgently)
        return topology->looked_at_ns + PAUSE_NS_MIN;
    return topology->look_wanted ? topology->look_after_ns
                                 : snk_time_add(topology->looked_at_ns, topology->ops->idle_ns);
}

static void *run(void *argument)
{
    snk_topology *topology = argument;
    pthread_mutex_lock(&topology->mutex);
    while (!topology->closing) {
        if (snk_now_ns() >= due_at_locked(topology)) {
            look_locked(topology);
            tell_displaced_locked(topology);
            continue;
        }
        pthread_mutex_unlock(&topology->mutex);
        int64_t sweep_at_ns = snk_nodes_sweep(topology);
        pthread_mutex_lock(&topology->mutex);
        int64_t due_at_ns = due_at_locked(topology);
        if (!topology->closing)
            snk_topology_sleep_locked(topology, due_at_ns < sweep_at_ns ? due_at_ns : sweep_at_ns);
    }
    pthread_mutex_unlock(&topology->mutex);
    return NULL;
}

/* ---- Asking for it ---- */

static void start_locked(snk_topology *topology)
{
    if (topology->scout_started || topology->closing || topology->plan.kind == SNK_TOPOLOGY_SINGLE)
        return;
    topology->looked_at_ns = snk_now_ns() - CALM_NS;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    topology->scout_started = pthread_create(&topology->scout, NULL, run, topology) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void snk_scout_want_locked(snk_topology *topology)
{
    topology->wanted_at_ns = snk_now_ns();
    if (topology->look_wanted)
        return;
    topology->look_wanted = true;
    start_locked(topology);
    pthread_cond_broadcast(&topology->changed);
}

void snk_scout_want(snk_topology *topology)
{
    pthread_mutex_lock(&topology->mutex);
    snk_scout_want_locked(topology);
    pthread_mutex_unlock(&topology->mutex);
}

void snk_scout_urge(snk_topology *topology)
{
    pthread_mutex_lock(&topology->mutex);
    topology->look_urgently = true;
    topology->looks_in_row = 0;
    start_locked(topology);
    pthread_cond_broadcast(&topology->changed);
    pthread_mutex_unlock(&topology->mutex);
}

void snk_scout_await_locked(snk_topology *topology, uint64_t looks, int64_t until_ns)
{
    if (topology->looks == looks)
        snk_scout_want_locked(topology);
    while (topology->looks == looks && !topology->closing && snk_now_ns() < until_ns)
        snk_topology_sleep_locked(topology, until_ns);
}

void snk_scout_stop(snk_topology *topology)
{
    pthread_mutex_lock(&topology->mutex);
    bool started = topology->scout_started;
    pthread_cond_broadcast(&topology->changed);
    pthread_mutex_unlock(&topology->mutex);
    if (started)
        pthread_join(topology->scout, NULL);
}
