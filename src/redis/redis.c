#include "redis/redis.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "redis/conn.h"
#include "redis/pubsub.h"

#define LANES 2

struct snk_redis {
    snk_redis_settings settings;  /* unchanging, as are the pointers below */
    int stop_fd;                  /* owned; written once, when closing begins */
    snk_redis_conn *lanes[LANES]; /* owned; by snk_redis_lane */
    snk_redis_pubsub *pubsub;     /* owned */
};

static void free_parts(snk_redis *redis)
{
    for (size_t i = 0; i < LANES; i++)
        snk_redis_conn_close(redis->lanes[i]);
    snk_redis_pubsub_close(redis->pubsub);
    if (redis->stop_fd >= 0)
        close(redis->stop_fd);
    snk_redis_settings_deinit(&redis->settings);
    free(redis);
}

sneck_status snk_redis_open(const snk_redis_config *config, snk_redis **redis_out, sneck_error *error)
{
    *redis_out = NULL;
    snk_redis *redis = calloc(1, sizeof *redis);
    if (redis == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, ENOMEM, "redis: no memory for a client");
    redis->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sneck_status status = SNECK_OK;
    if (redis->stop_fd < 0)
        status = snk_fail(error, SNECK_LIMIT, errno, "redis: no file descriptor for a client");
    if (status == SNECK_OK)
        status = snk_redis_settings_init(&redis->settings, config, error);
    for (size_t i = 0; i < LANES && status == SNECK_OK; i++)
        status = snk_redis_conn_open(&redis->settings, (snk_redis_lane)i, redis->stop_fd, &redis->lanes[i], error);
    if (status == SNECK_OK)
        status = snk_redis_pubsub_open(&redis->settings, redis->stop_fd, &redis->pubsub, error);
    if (status != SNECK_OK) {
        free_parts(redis);
        return status;
    }
    *redis_out = redis;
    return snk_ok(error);
}

void snk_redis_submit(snk_redis *redis, snk_redis_call *const calls[], size_t count)
{
    /* Runs of one lane travel together. */
    while (count > 0) {
        snk_redis_lane lane = calls[0]->lane;
        size_t run = 1;
        while (run < count && calls[run]->lane == lane)
            run++;
        snk_redis_conn_submit(redis->lanes[lane], calls, run);
        calls += run;
        count -= run;
    }
}

void snk_redis_submit_later(snk_redis *redis, snk_redis_call *call, int64_t at_ns)
{
    snk_redis_conn_submit_later(redis->lanes[call->lane], call, at_ns);
}

void snk_redis_drive(snk_redis *redis, snk_redis_call *const calls[], size_t count)
{
    if (count > 0)
        snk_redis_conn_drive(redis->lanes[calls[0]->lane], calls, count);
}

static void shared_lanes(snk_redis *const servers[], size_t count, snk_redis_conn *conns[])
{
    for (size_t i = 0; i < count; i++)
        conns[i] = servers[i]->lanes[SNK_REDIS_SHARED];
}

bool snk_redis_attend(snk_redis *const servers[], size_t count)
{
    snk_redis_conn *conns[SNK_REDIS_ATTEND_MAX];
    shared_lanes(servers, count, conns);
    return snk_redis_conns_attend(conns, count);
}

void snk_redis_receive(snk_redis *const servers[], size_t count, _Atomic uint32_t *left, int64_t until_ns)
{
    snk_redis_conn *conns[SNK_REDIS_ATTEND_MAX];
    shared_lanes(servers, count, conns);
    snk_redis_conns_receive(conns, count, left, until_ns);
}

void snk_redis_describe(snk_redis *redis, snk_redis_server *server_out)
{
    snk_redis_conn_describe(redis->lanes[SNK_REDIS_SHARED], server_out);
}

void snk_redis_reconnect(snk_redis *redis)
{
    snk_redis_conn_give_up(redis->lanes[SNK_REDIS_SHARED]);
}

const char *snk_redis_where(const snk_redis *redis)
{
    return redis->settings.where;
}

sneck_status snk_redis_subscribe(snk_redis *redis, const char *channel, size_t length, sneck_error *error)
{
    return snk_redis_pubsub_subscribe(redis->pubsub, channel, length, false, error);
}

sneck_status snk_redis_subscribe_sharded(snk_redis *redis, const char *channel, size_t length, sneck_error *error)
{
    return snk_redis_pubsub_subscribe(redis->pubsub, channel, length, true, error);
}

void snk_redis_unsubscribe(snk_redis *redis, const char *channel, size_t length)
{
    snk_redis_pubsub_unsubscribe(redis->pubsub, channel, length);
}

bool snk_redis_is_subscribed(snk_redis *redis, const char *channel, size_t length, snk_redis_run *run_out)
{
    return snk_redis_pubsub_is_subscribed(redis->pubsub, channel, length, run_out);
}

bool snk_redis_await_subscribed(snk_redis *redis, const char *channel, size_t length, int64_t until_ns,
                                sneck_error *error)
{
    return snk_redis_pubsub_await(redis->pubsub, channel, length, until_ns, error);
}

void snk_redis_sleep(snk_redis *redis, const snk_redis_nap *nap)
{
    snk_redis_pubsub_sleep(redis->pubsub, nap);
}

bool snk_redis_rouse(snk_redis *redis, const _Atomic uint32_t *word)
{
    return snk_redis_pubsub_rouse(redis->pubsub, word);
}

void snk_redis_begin_close(snk_redis *redis)
{
    eventfd_write(redis->stop_fd, 1);
    for (size_t i = 0; i < LANES; i++)
        snk_redis_conn_begin_close(redis->lanes[i]);
    snk_redis_pubsub_begin_close(redis->pubsub);
}

void snk_redis_close(snk_redis *redis)
{
    if (redis == NULL)
        return;
    snk_redis_begin_close(redis);
    free_parts(redis);
}

void snk_redis_abandon(snk_redis *redis)
{
    for (size_t i = 0; i < LANES; i++)
        snk_redis_conn_abandon(redis->lanes[i]);
    snk_redis_pubsub_abandon(redis->pubsub);
    close(redis->stop_fd);
}
