#include "store/sql/link.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"

void snk_sql_link_init(snk_sql_link *link, const snk_store_config *config)
{
    link->tell = config->link;
    link->context = config->link_context;
}

void snk_sql_link_up(snk_sql_link *link)
{
    if (atomic_load_explicit(&link->is_up, memory_order_acquire) || atomic_exchange(&link->is_up, true))
        return;
    (void)atomic_fetch_add(&link->connects, 1);
    if (atomic_exchange(&link->was_up, true) && link->tell != NULL)
        link->tell(link->context, true, "");
}

void snk_sql_link_down(snk_sql_link *link, const char *why)
{
    (void)atomic_fetch_add(&link->failures, 1);
    if (atomic_exchange(&link->is_up, false) && link->tell != NULL)
        link->tell(link->context, false, why);
}

void snk_sql_link_describe(snk_sql_link *link, snk_store_state *state_out)
{
    *state_out = (snk_store_state){
        .connected = atomic_load(&link->is_up),
        .connects = atomic_load(&link->connects),
        .failures = atomic_load(&link->failures),
        .in_flight = atomic_load(&link->in_flight),
    };
}

void snk_sql_end_sockets(_Atomic int sockets[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int fd = atomic_load(&sockets[i]);
        if (fd >= 0)
            (void)shutdown(fd, SHUT_RD);
    }
}

void snk_sql_read_clock(const char *text, int64_t sent_ns, snk_probe *probe_out)
{
    int64_t wall_us = snk_wall_us();
    char *end = NULL;
    long long server_us = strtoll(text, &end, 10);
    *probe_out = (snk_probe){ .round_trip_ns = snk_now_ns() - sent_ns, .has_clock = end != text };
    if (probe_out->has_clock)
        probe_out->clock_offset_ns = (server_us - wall_us) * SNK_NS_PER_US + probe_out->round_trip_ns / 2;
}
