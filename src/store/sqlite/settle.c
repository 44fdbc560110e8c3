#include "store/sqlite/settle.h"

snk_fate snk_fate_of(const snk_sqlite *store, const snk_stamp *stamp, int64_t expires_ns)
{
    if (expires_ns <= store->now_ns)
        return SNK_FATE_EXPIRED;
    if (snk_id_equal(&stamp->client, &store->identity.client))
        return SNK_FATE_ALIVE;
    return snk_client_is_alive(store->sidecar, stamp) ? SNK_FATE_ALIVE : SNK_FATE_DIED;
}

bool snk_settle_holder(snk_sqlite *store, snk_lock_row *row)
{
    if (!row->held)
        return true;
    snk_fate fate = snk_fate_of(store, &row->stamp, row->expires_ns);
    if (fate == SNK_FATE_ALIVE)
        return true;
    row->held = false;
    return snk_incident_add(store, row, fate == SNK_FATE_DIED ? "died" : "expired", "");
}

bool snk_settle_queue(snk_sqlite *store, snk_lock_row *row)
{
    while (!row->held && row->waiters > 0) {
        snk_queue_row next;
        if (!snk_queue_first(store, &next))
            return false;
        if (!next.found) {
            row->waiters = 0; /* somebody else changed the tables by hand; the count follows */
            return true;
        }
        if (snk_fate_of(store, &next.stamp, next.expires_ns) != SNK_FATE_ALIVE) {
            if (!snk_queue_remove(store, row, next.place))
                return false;
            continue;
        }
        if (!snk_lock_offer(store, row, &next))
            return false;
        snk_add_wake(store, &next.stamp, &next.claim);
    }
    return true;
}

bool snk_settle_before(snk_sqlite *store, snk_lock_row *row, int64_t place, snk_stamp *watched_out,
                       int64_t *expires_out)
{
    for (;;) {
        snk_queue_row before;
        if (!snk_queue_before(store, place, &before))
            return false;
        if (!before.found) {
            *watched_out = row->stamp;
            *expires_out = row->expires_ns;
            return true;
        }
        if (snk_fate_of(store, &before.stamp, before.expires_ns) == SNK_FATE_ALIVE) {
            *watched_out = before.stamp;
            *expires_out = before.expires_ns;
            return true;
        }
        if (!snk_queue_remove(store, row, before.place))
            return false;
    }
}
