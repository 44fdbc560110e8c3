/*
 * Connecting within a time limit. libpq may block where it looks a name up or reads a file, so it does that on a thread of
 * its own, which is left behind with nothing but its own memory when the time is over.
 */
#ifndef SNK_STORE_POSTGRES_DIAL_H
#define SNK_STORE_POSTGRES_DIAL_H

#include <libpq-fe.h>

#include "store/postgres/options.h"

/*
 * A connection that does not block, or NULL with `error`. `stop_fd` (-1: none) ends it early when it becomes readable. If
 * a pooler refuses our settings that is noted in the target, and it connects without them. No cancellation point.
 */
PGconn *snk_pg_dial(snk_pg_target *target, const char *where, int stop_fd, int64_t until_ns, sneck_error *error);

/*
 * Ends a connection so that nothing which was not sent yet is sent any more, now or by the kernel later. NULL is a no-op.
 */
void snk_pg_hang_up(PGconn *connection);

/*
 * Waits until the descriptor is ready for `events`, or `stop_fd` (-1: none) is readable, or it is `until_ns`. What it is
 * ready for; 0 when it is not.
 */
short snk_pg_poll(int fd, short events, int stop_fd, int64_t until_ns);

#endif
