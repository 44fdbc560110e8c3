/* Acquire, renew and release of one claim, inside a transaction. */
#include "base/clock.h"
#include "store/sqlite/crowd.h"
#include "store/sqlite/settle.h"

static void answer_held(const snk_lock_row *row, snk_answer *answer)
{
    answer->kind = SNK_ANSWER_HELD;
    answer->token_first = row->first.token_first;
    answer->token_last = row->first.token_last;
}

/*
 * Each waiter watches only the one before it: that one's release or death is what makes it next. So a hand-off needs no
 * new aim for those behind.
 */
static void answer_queued(snk_sqlite *store, const snk_claim_row *before, const snk_send *send, snk_answer *answer)
{
    int64_t remaining_ns = before->expires_ns - store->now_ns + SNK_NS_PER_MS;
    answer->kind = SNK_ANSWER_QUEUED;
    answer->run = store->sidecar->generation;
    answer->ticket = snk_ticket_make(store, &send->claim, &before->record.stamp);
    answer->look_after_ns = remaining_ns < send->lease_ns / 3 ? remaining_ns : send->lease_ns / 3;
    snk_crowd_watch(store, before, send, answer);
}

static bool join_queue(snk_sqlite *store, snk_lock_row *row, const snk_claim *claim, snk_answer *answer)
{
    snk_claim_row last;
    if (!snk_settle_before(store, row, INT64_MAX, &last) || !snk_claim_queue(store, claim, last.place + SNK_PLACE_STEP))
        return false;
    answer_queued(store, &last, &claim->send, answer);
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
    if (!snk_settle(store, row))
        return false;
    if (!row->first.found) {
        if (!snk_lock_grant(store, row, claim))
            return false;
        answer_held(row, answer);
        return true;
    }
    answer->kind = SNK_ANSWER_BUSY;
    return !claim->send.queue || join_queue(store, row, claim, answer);
}

/* Takes a waiting claim out; the one behind it has somebody else to watch from now on. */
static bool leave_queue(snk_sqlite *store, snk_lock_row *row, const snk_claim_row *queued)
{
    snk_claim_row after;
    if (!snk_claim_remove(store, row, queued->place) || !snk_claim_after(store, queued->place, &after))
        return false;
    if (after.found)
        snk_add_wake(store, &after.record.stamp, &after.record.claim);
    return true;
}

static bool renew_queued(snk_sqlite *store, snk_lock_row *row, const snk_send *send, snk_answer *answer)
{
    snk_claim_row queued;
    snk_claim_row before;
    if (!snk_claim_find(store, &send->claim, &queued))
        return false;
    if (!queued.found)
        return true;
    if (queued.expires_ns <= store->now_ns)
        return leave_queue(store, row, &queued);
    if (!snk_claim_renew(store, &queued, send->lease_ns) || !snk_settle_before(store, row, queued.place, &before))
        return false;
    answer_queued(store, &before, send, answer);
    return true;
}

static bool is_holder(const snk_lock_row *row, const snk_id *claim)
{
    return row->first.found && snk_id_equal(&row->first.record.claim, claim);
}

static bool do_renew(snk_sqlite *store, snk_lock_row *row, const snk_send *send, snk_answer *answer)
{
    answer->kind = SNK_ANSWER_GONE;
    if (!snk_settle(store, row))
        return false;
    if (!is_holder(row, &send->claim))
        return renew_queued(store, row, send, answer);
    answer_held(row, answer);
    return snk_claim_renew(store, &row->first, send->lease_ns);
}

static bool release_queued(snk_sqlite *store, snk_lock_row *row, const snk_id *claim, snk_answer *answer)
{
    snk_claim_row queued;
    if (!snk_claim_find(store, claim, &queued))
        return false;
    if (!queued.found)
        return true;
    answer->kind = SNK_ANSWER_DONE;
    /* Those behind it may have waited for it alone. */
    return leave_queue(store, row, &queued) && snk_settle(store, row);
}

/* The acquire of the claim may still arrive, after its release. */
static bool leave_tombstone(snk_sqlite *store, const snk_send *send)
{
    int64_t life_ns = send->lease_ns > SNK_TOMBSTONE_NS ? send->lease_ns : SNK_TOMBSTONE_NS;
    snk_lock_row row;
    return snk_lock_read(store, &row) && (row.found || snk_lock_add(store, &row)) &&
           snk_tombstone_add(store, &row, &send->claim, snk_time_add(store->now_ns, life_ns));
}

static bool do_release(snk_sqlite *store, snk_lock_row *row, const snk_send *send, snk_answer *answer)
{
    answer->kind = SNK_ANSWER_GONE;
    if (!snk_settle(store, row))
        return false;
    if (!is_holder(row, &send->claim))
        return release_queued(store, row, &send->claim, answer);
    answer->kind = SNK_ANSWER_DONE;
    return snk_claim_remove(store, row, row->first.place) && snk_settle(store, row);
}

void snk_do_claim(snk_sqlite *store, const snk_claim *claim, snk_answer *answer)
{
    const snk_send *send = &claim->send;
    snk_set_resource(store, SNK_OBJECT_LOCK, claim->name);
    snk_lock_row row;
    bool done = false;
    switch (send->ask) {
    case SNK_ASK_ACQUIRE:
        done = snk_lock_read(store, &row) && do_acquire(store, &row, claim, answer);
        break;
    case SNK_ASK_RENEW:
        done = snk_lock_read_claims(store, &row, 1) && do_renew(store, &row, send, answer);
        break;
    case SNK_ASK_RELEASE:
        done = (!send->unanswered || leave_tombstone(store, send)) && snk_lock_read_claims(store, &row, 2) &&
               do_release(store, &row, send, answer);
        break;
    }
    done = done && snk_lock_store(store, &row);
    if (!done && store->code == SQLITE_OK)
        store->code = SQLITE_INTERNAL; /* a failure that did not say how */
}
