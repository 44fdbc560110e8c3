/*
 * One command connection to one server, shared by any number of threads. See redis.h for what it promises, and
 * conn_parts.h for who does the I/O.
 */
#ifndef SNK_REDIS_CONN_H
#define SNK_REDIS_CONN_H

#include "redis/settings.h"

typedef struct snk_redis_conn snk_redis_conn;

/* `settings` and `stop_fd` (readable from the moment of closing) are borrowed. */
sneck_status snk_redis_conn_open(const snk_redis_settings *settings, snk_redis_lane lane, int stop_fd,
                                 snk_redis_conn **conn_out, sneck_error *error);

void snk_redis_conn_submit(snk_redis_conn *conn, snk_redis_call *const calls[], size_t count);
void snk_redis_conn_submit_later(snk_redis_conn *conn, snk_redis_call *call, int64_t at_ns);
void snk_redis_conn_drive(snk_redis_conn *conn, snk_redis_call *const calls[], size_t count);
void snk_redis_conn_describe(snk_redis_conn *conn, snk_redis_server *server_out);
void snk_redis_conn_give_up(snk_redis_conn *conn);

void snk_redis_conn_begin_close(snk_redis_conn *conn);
void snk_redis_conn_close(snk_redis_conn *conn);
void snk_redis_conn_abandon(snk_redis_conn *conn);

/* As snk_redis_attend and snk_redis_receive in redis.h. */
bool snk_redis_conns_attend(snk_redis_conn *const conns[], size_t count);
void snk_redis_conns_receive(snk_redis_conn *const conns[], size_t count, _Atomic uint32_t *left, int64_t until_ns);

#endif
