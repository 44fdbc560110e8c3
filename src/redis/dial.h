/* From a name to a connected socket. */
#ifndef SNK_REDIS_DIAL_H
#define SNK_REDIS_DIAL_H

#include "redis/settings.h"

/* A blocking recv on a dialled socket returns after this time at the latest. */
#define SNK_REDIS_TICK_NS (100 * SNK_NS_PER_MS)

/*
 * Looks the name up and tries its addresses in turn, by `until_ns` and unless `stop_fd` becomes readable. The socket
 * resets its connection when closed.
 */
sneck_status snk_redis_dial(const snk_redis_settings *settings, int stop_fd, int64_t until_ns, int *fd_out,
                            sneck_error *error);

#endif
