/* Acquire, renew and release of one claim, inside a transaction. */
#include "base/clock.h"
#include "store/sqlite/settle.h"

static void answer_held(const snk_lock_row *row, snk_answer *answer)
{
    answer->kind = SNK_ANSWER_HELD;
    answer->token_first = row->token_first;
    answer->token_last = row->token;
}

/*
 * Each waiter watches only the one before it: that one's release or death is what makes it next. So a hand-off needs no
 * new aim for those behind.
 */
static bool answer_queued(snk_sqlite *store, snk_lock_row *row, int64_t place, const snk_send *send, snk_answer *answer)
{
    snk_stamp watched;
    int64_t expires_ns = 0;
    if (!snk_settle_before(store, row, place, &watched, &expires_ns))
        return false;
    int64_t remaining_ns = expires_ns - store->now_ns + SNK_NS_PER_MS;
    answer->kind = SNK_ANSWER_QUEUED;
    answer->ticket = snk_ticket_make(store, &send->claim, &watched);
    answer->look_after_ns = remaining_ns < send->lease_ns / 3 ? remaining_ns : send->lease_ns / 3;
    return true;
}

static bool do_acquire(snk_sqlite *store, snk_lock_row *row, const snk_claim *claim, snk_answer *answer)
{
    if (!row->found && !snk_lock_add(store, row))
        return false;
    if (row->tombstones_until_ns > store->now_ns) {
        bool given_up = false;
        if (!snk_tombstone_find(store, &claim->send.claim, &given_up))
            return false;
        if (given_up) {
            answer->kind = SNK_ANSWER_GONE;
            return true;
        }
    }
    if (!snk_settle_holder(store, row) || !snk_settle_queue(store, row))
        return false;
    if (!row->held) {
        if (!snk_lock_grant(store, row, claim))
            return false;
        answer_held(row, answer);
        return true;
    }
    answer->kind = SNK_ANSWER_BUSY;
    int64_t place = 0;
    return !claim->send.queue ||
           (snk_queue_add(store, row, claim, &place) && answer_queued(store, row, place, &claim->send, answer));
}

static bool renew_queued(snk_sqlite *store, snk_lock_row *row, const snk_send *send, snk_answer *answer)
{
    snk_queue_row queued;
    if (!snk_queue_find(store, &send->claim, &queued))
        return false;
    if (!queued.found)
        return true;
    if (queued.expires_ns <= store->now_ns) {
        snk_queue_row after;
        if (!snk_queue_remove(store, row, queued.place) || !snk_queue_after(store, queued.place, &after))
            return false;
        if (after.found)
            snk_add_wake(store, &after.stamp, &after.claim);
        return true;
    }
    int64_t until_ns = snk_time_add(store->now_ns, send->lease_ns);
    return snk_queue_renew(store, &queued, until_ns > queued.expires_ns ? until_ns : queued.expires_ns) &&
           answer_queued(store, row, queued.place, send, answer);
}

static bool do_renew(snk_sqlite *store, snk_lock_row *row, const snk_send *send, snk_answer *answer)
{
    answer->kind = SNK_ANSWER_GONE;
    if (!snk_settle_holder(store, row) || !snk_settle_queue(store, row))
        return false;
    if (row->held && snk_id_equal(&row->claim, &send->claim)) {
        int64_t until_ns = snk_time_add(store->now_ns, send->lease_ns);
        answer_held(row, answer);
        return snk_lock_renew(store, row, until_ns > row->expires_ns ? until_ns : row->expires_ns);
    }
    return row->waiters == 0 || renew_queued(store, row, send, answer);
}

/* Takes a waiting claim out; the one behind it has somebody else to watch from now on. */
static bool leave_queue(snk_sqlite *store, snk_lock_row *row, const snk_id *claim, snk_answer *answer)
{
    snk_queue_row queued;
    snk_queue_row after;
    if (!snk_queue_find(store, claim, &queued))
        return false;
    if (!queued.found)
        return true;
    if (!snk_queue_remove(store, row, queued.place) || !snk_queue_after(store, queued.place, &after))
        return false;
    if (after.found)
        snk_add_wake(store, &after.stamp, &after.claim);
    answer->kind = SNK_ANSWER_DONE;
    return true;
}

static bool do_release(snk_sqlite *store, snk_lock_row *row, const snk_send *send, snk_answer *answer)
{
    answer->kind = SNK_ANSWER_GONE;
    if (send->unanswered) {
        int64_t life_ns = send->lease_ns > SNK_TOMBSTONE_NS ? send->lease_ns : SNK_TOMBSTONE_NS;
        if ((!row->found && !snk_lock_add(store, row)) ||
            !snk_tombstone_add(store, row, &send->claim, snk_time_add(store->now_ns, life_ns)))
            return false;
    }
    if (!snk_settle_holder(store, row))
        return false;
    if (row->held && snk_id_equal(&row->claim, &send->claim)) {
        row->held = false;
        answer->kind = SNK_ANSWER_DONE;
    } else if (row->waiters > 0 && !leave_queue(store, row, &send->claim, answer)) {
        return false;
    }
    return snk_settle_queue(store, row);
}

bool snk_do_claim(snk_sqlite *store, const snk_claim *claim, snk_answer *answer)
{
    snk_set_resource(store, claim->name);
    snk_lock_row row;
    if (!snk_lock_find(store, &row))
        return false;
    bool done = false;
    switch (claim->send.ask) {
    case SNK_ASK_ACQUIRE:
        done = do_acquire(store, &row, claim, answer);
        break;
    case SNK_ASK_RENEW:
        done = do_renew(store, &row, &claim->send, answer);
        break;
    case SNK_ASK_RELEASE:
        done = do_release(store, &row, &claim->send, answer);
        break;
    }
    return done && snk_lock_store(store, &row);
}
