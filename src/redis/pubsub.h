/* The connection for subscriptions, with a thread of its own that is started by the first of them. See redis.h. */
#ifndef SNK_REDIS_PUBSUB_H
#define SNK_REDIS_PUBSUB_H

#include "redis/settings.h"

typedef struct snk_redis_pubsub snk_redis_pubsub;

/* `settings` and `stop_fd` (readable from the moment of closing) are borrowed. */
sneck_status snk_redis_pubsub_open(const snk_redis_settings *settings, int stop_fd, snk_redis_pubsub **pubsub_out,
                                   sneck_error *error);

sneck_status snk_redis_pubsub_subscribe(snk_redis_pubsub *pubsub, const char *channel, size_t length, bool sharded,
                                        sneck_error *error);
void snk_redis_pubsub_unsubscribe(snk_redis_pubsub *pubsub, const char *channel, size_t length);
bool snk_redis_pubsub_is_subscribed(snk_redis_pubsub *pubsub, const char *channel, size_t length,
                                    snk_redis_run *run_out);
bool snk_redis_pubsub_await(snk_redis_pubsub *pubsub, const char *channel, size_t length, int64_t until_ns,
                            sneck_error *error);

/* See snk_redis_sleep and snk_redis_rouse. */
void snk_redis_pubsub_sleep(snk_redis_pubsub *pubsub, const snk_redis_nap *nap);
bool snk_redis_pubsub_rouse(snk_redis_pubsub *pubsub, const _Atomic uint32_t *word);

void snk_redis_pubsub_begin_close(snk_redis_pubsub *pubsub);
void snk_redis_pubsub_close(snk_redis_pubsub *pubsub);
void snk_redis_pubsub_abandon(snk_redis_pubsub *pubsub);

#endif
