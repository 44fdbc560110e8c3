#include "client/supervise.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/name.h"
#include "client/lock.h"
#include "client/perform.h"

bool snk_lock_claim(sneck_lock *lock, snk_id *claim_out)
{
    if (snk_lock_check(lock, NULL) != SNECK_OK)
        return false;
    snk_entry *entry = lock->entry;
    (void)pthread_mutex_lock(&entry->mutex);
    bool held = snk_machine_levels(&entry->machine, snk_lock_owner(lock), snk_now_ns()) > 0;
    if (held)
        *claim_out = entry->machine.hold->claim;
    (void)pthread_mutex_unlock(&entry->mutex);
    return held;
}

/* The renewal that the hold would get in a few milliseconds anyway. */
static void confirm(sneck_lock *lock)
{
    sneck_client *client = lock->client;
    snk_entry *entry = lock->entry;
    snk_event event = { .kind = SNK_EVENT_EXTEND, .owner = snk_lock_owner(lock) };
    snk_turn turn;
    snk_turn_init(&turn, client, entry);
    (void)pthread_mutex_lock(&entry->mutex);
    const snk_hold *hold = entry->machine.hold;
    bool confirms = hold != NULL && hold->renewal.is_offer && snk_gate_enter(&client->gate);
    if (confirms) {
        event.lease_ns = hold->terms.lease_ns;
        snk_turn_take_locked(&turn, &event);
    }
    (void)pthread_mutex_unlock(&entry->mutex);
    if (!confirms)
        return;
    snk_turn_end(&turn);
    snk_perform(&turn, NULL);
    snk_gate_leave(&client->gate);
}

void snk_lock_mirror_deadline(sneck_lock *lock, _Atomic int64_t *word)
{
    if (snk_lock_check(lock, NULL) != SNECK_OK)
        return;
    snk_entry *entry = lock->entry;
    if (word != NULL)
        confirm(lock);
    (void)pthread_mutex_lock(&entry->mutex);
    entry->mirror = word;
    if (word != NULL)
        atomic_store_explicit(word, snk_deadline_peek(&entry->machine.deadline), memory_order_release);
    (void)pthread_mutex_unlock(&entry->mutex);
}

sneck_status snk_client_forget(sneck_client *client, const char *name, const snk_id *claim, sneck_error *error)
{
    sneck_status status = snk_client_check(client, error);
    if (status == SNECK_OK)
        status = snk_name_check(name, error);
    if (status == SNECK_OK)
        status = snk_client_enter(client, error);
    if (status != SNECK_OK)
        return status;
    snk_claim request = {
        .name = name,
        .why = "",
        .send = { .ask = SNK_ASK_RELEASE, .claim = *claim, .sent_at_ns = snk_now_ns() },
    };
    snk_answer answer;
    snk_store_ask(client->store, &request, &answer);
    snk_gate_leave(&client->gate);
    if (answer.kind == SNK_ANSWER_FAILED || answer.kind == SNK_ANSWER_UNCERTAIN)
        return snk_fail_as(error, &answer.error);
    if (answer.kind != SNK_ANSWER_DONE)
        return snk_fail(error, SNECK_LOST, 0, "the store no longer had the claim");
    return snk_ok(error);
}

int snk_client_liveness_fd(sneck_client *client)
{
    if (snk_client_check(client, NULL) != SNECK_OK || client->store->ops->liveness_fd == NULL)
        return -1;
    return client->store->ops->liveness_fd(client->store);
}
