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
