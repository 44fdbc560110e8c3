#include "client/tally.h"

#include "base/error.h"

sneck_status snk_client_tally(sneck_client *client, const snk_tally *tally, snk_tallied *tallied_out,
                              sneck_error *error)
{
    sneck_status status = snk_client_enter(client, error);
    if (status != SNECK_OK)
        return status;
    int state = 0;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    status = client->store->ops->tally(client->store, tally, tallied_out, error);
    snk_gate_leave(&client->gate);
    (void)pthread_setcancelstate(state, NULL);
    return status;
}

sneck_status snk_claim_open(sneck_client *client, const char *name, snk_entry_key key,
                            const sneck_lock_options *options, sneck_lock **lock_out, sneck_error *error)
{
    key.owner = snk_single_draw_owner(client);
    sneck_status status = snk_single_new(client, name, &key, options, lock_out, error);
    if (status == SNECK_OK)
        (*lock_out)->terms.is_unused = key.mode == SNK_MODE_TAKE;
    return status;
}

static void free_released(void *context, sneck_status status, const sneck_error *error)
{
    (void)status;
    (void)error;
    sneck_lock_free(context);
}

static void use_up(sneck_lock *lock)
{
    snk_entry *entry = lock->entry;
    (void)pthread_mutex_lock(&entry->mutex);
    if (entry->machine.hold != NULL)
        entry->machine.hold->terms.is_unused = false;
    (void)pthread_mutex_unlock(&entry->mutex);
}

void snk_claim_retire(sneck_lock *lock)
{
    use_up(lock);
    if (sneck_release_async(lock, free_released, lock, NULL, NULL) != SNECK_OK)
        sneck_lock_free(lock);
}
