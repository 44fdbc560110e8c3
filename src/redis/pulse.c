#include "redis/pulse.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "redis/topology_parts.h"

struct round;

/* One server that is asked. */
typedef struct beat {
    snk_redis_call call;
    snk_node *node; /* a reference */
    int64_t wall_us;
    struct round *round;
} beat;

/* All that are asked; each call is done by its time limit, so whoever asks waits for all of them. */
typedef struct round {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* with mutex */
    size_t left;            /* under mutex */
    size_t count;
    beat beats[SNK_REDIS_NODES_MAX];
} round;

static void on_done(snk_redis_call *call)
{
    beat *self = call->context;
    round *all = self->round;
    self->wall_us = snk_wall_us();
    (void)pthread_mutex_lock(&all->mutex);
    if (--all->left == 0)
        (void)pthread_cond_signal(&all->changed);
    (void)pthread_mutex_unlock(&all->mutex);
}

static bool prepare(round *all, snk_node *node, int64_t timeout_ns)
{
    beat *self = &all->beats[all->count];
    snk_redis_call_init(&self->call);
    if (snk_redis_call_format(&self->call, 1, (const char *const[]){ "TIME" }, NULL, NULL) != SNECK_OK)
        return false;
    self->call.timeout_ns = timeout_ns;
    self->call.done = on_done;
    self->call.context = self;
    self->node = node;
    self->round = all;
    all->count++;
    return true;
}

/* Those that are connected. One that nobody has needed yet is not, and that is no fault. */
static void choose(snk_topology *topology, round *all, snk_pulse *pulse)
{
    for (size_t i = 0; i < SNK_REDIS_NODES_MAX; i++) {
        snk_redis_server server;
        snk_node *node = snk_node_of_map(topology, i);
        if (node == NULL)
            continue;
        snk_redis_describe(node->redis, &server);
        if (server.connected && prepare(all, node, pulse->timeout_ns))
            continue;
        pulse->down += !server.connected && (server.connects > 0 || server.failures > 0);
        snk_node_unref(node);
    }
}

static void ask(round *all)
{
    all->left = all->count;
    for (size_t i = 0; i < all->count; i++)
        snk_redis_submit(all->beats[i].node->redis, &(snk_redis_call *){ &all->beats[i].call }, 1);
    (void)pthread_mutex_lock(&all->mutex);
    while (all->left > 0)
        (void)pthread_cond_wait(&all->changed, &all->mutex);
    (void)pthread_mutex_unlock(&all->mutex);
}

static void judge(round *all, snk_pulse *pulse)
{
    for (size_t i = 0; i < all->count; i++) {
        beat *self = &all->beats[i];
        bool answered = self->call.outcome == SNK_REDIS_REPLY;
        pulse->silent += !answered;
        atomic_store_explicit(&self->node->silent, !answered, memory_order_relaxed);
        if (answered)
            pulse->answered(pulse->context, &self->call, self->wall_us);
        snk_redis_call_deinit(&self->call);
        snk_node_unref(self->node);
    }
}

sneck_status snk_topology_take_pulse(snk_topology *topology, snk_pulse *pulse, sneck_error *error)
{
    pulse->silent = 0;
    pulse->down = 0;
    round *all = calloc(1, sizeof *all);
    if (all == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, ENOMEM, "redis: no memory to ask the servers");
    (void)pthread_mutex_init(&all->mutex, NULL);
    (void)pthread_cond_init(&all->changed, NULL);
    choose(topology, all, pulse);
    ask(all);
    size_t asked = all->count;
    judge(all, pulse);
    (void)pthread_cond_destroy(&all->changed);
    (void)pthread_mutex_destroy(&all->mutex);
    free(all);
    if (pulse->silent + pulse->down > 0 || asked == 0)
        return snk_fail(error, SNECK_UNAVAILABLE, 0,
                        "redis: of the servers with keys %u do not answer, and %u are not connected", pulse->silent,
                        pulse->down);
    return SNECK_OK;
}
