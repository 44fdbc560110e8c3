#include "store/sqlite/settle.h"

#include "store/sqlite/crowd.h"

snk_fate snk_fate_of(const snk_sqlite *store, const snk_stamp *stamp, int64_t expires_ns)
{
    if (expires_ns <= store->now_ns)
        return SNK_FATE_EXPIRED;
    if (snk_id_equal(&stamp->client, &store->identity.client))
        return SNK_FATE_ALIVE;
    return snk_client_is_alive(store->sidecar, stamp) ? SNK_FATE_ALIVE : SNK_FATE_DIED;
}

bool snk_settle(snk_sqlite *store, snk_lock_row *row)
{
    while (row->first.found) {
        const snk_claim_row *first = &row->first;
        if (first->record.mode != SNK_MODE_EXCLUSIVE)
            return snk_crowd_settle(store, row);
        bool holds = first->state != SNK_CLAIM_QUEUED;
        snk_fate fate = snk_fate_of(store, &first->record.stamp, first->expires_ns);
        if (fate == SNK_FATE_ALIVE && holds)
            return true;
        if (fate == SNK_FATE_ALIVE)
            return snk_lock_offer(store, row);
        if ((holds && !snk_incident_add(store, first, fate == SNK_FATE_DIED ? "died" : "expired", "")) ||
            !snk_claim_remove(store, row, first->place))
            return false;
    }
    return true;
}

bool snk_settle_before(snk_sqlite *store, snk_lock_row *row, int64_t place, snk_claim_row *before)
{
    for (;;) {
        if (!snk_claim_before(store, place, before))
            return false;
        if (!before->found || before->place == row->first.place ||
            snk_fate_of(store, &before->record.stamp, before->expires_ns) == SNK_FATE_ALIVE)
            return true;
        if (!snk_claim_remove(store, row, before->place))
            return false;
    }
}
