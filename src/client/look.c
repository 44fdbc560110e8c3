/* Looking at locks, here and in the store, and breaking them by force. */
#include "base/clock.h"
#include "base/error.h"
#include "base/name.h"
#include "client/client.h"
#include "store/view.h"

/* ---- In the store ---- */

static sneck_status check_inspect(const sneck_client *client, const char *name, sneck_info **info_out,
                                  sneck_error *error)
{
    if (info_out == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "info_out is NULL: give the address of a sneck_info *");
    *info_out = NULL;
    sneck_status status = snk_client_check(client, error);
    return status == SNECK_OK ? snk_name_check(name, error) : status;
}

static sneck_status inspect(const sneck_client *client, const char *name, snk_view *view, sneck_error *error)
{
    sneck_status status = client->store->ops->inspect(client->store, name, view, error);
    if (status == SNECK_OK)
        snk_view_name(view, name);
    if (status == SNECK_OK && view->out_of_memory)
        status = snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for what the store says");
    return status;
}

sneck_status sneck_inspect(sneck_client *client, const char *name, sneck_info **info_out, sneck_error *error)
{
    sneck_status status = check_inspect(client, name, info_out, error);
    if (status == SNECK_OK)
        status = snk_client_enter(client, error);
    if (status != SNECK_OK)
        return status;
    int state = 0;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    snk_view *view = snk_view_new();
    status = view == NULL ? snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for what the store says")
                          : inspect(client, name, view, error);
    snk_gate_leave(&client->gate);
    (void)pthread_setcancelstate(state, NULL);
    if (status != SNECK_OK) {
        snk_view_free(view);
        return status;
    }
    *info_out = &view->info;
    return snk_ok(error);
}

void sneck_info_free(sneck_info *info)
{
    /* The info is the first thing in its view. */
    snk_view_free((snk_view *)(void *)info);
}

typedef struct listing {
    sneck_list_fn callback;
    void *context;
} listing;

static bool list_one(void *context, const snk_view *view)
{
    const listing *self = context;
    return self->callback(self->context, &view->info);
}

sneck_status sneck_list(sneck_client *client, const char *pattern, sneck_list_fn callback, void *context,
                        sneck_error *error)
{
    if (callback == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "callback is NULL: give a function that takes each lock");
    sneck_status status = snk_client_check(client, error);
    if (status == SNECK_OK && pattern != NULL)
        status = snk_text_check(pattern, "the pattern", 0, SNK_NAME_LENGTH_MAX, error);
    if (status == SNECK_OK)
        status = snk_client_enter(client, error);
    if (status != SNECK_OK)
        return status;
    listing self = { .callback = callback, .context = context };
    int state = 0;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    status = client->store->ops->list(client->store, pattern == NULL ? "*" : pattern, list_one, &self, error);
    snk_gate_leave(&client->gate);
    (void)pthread_setcancelstate(state, NULL);
    return status == SNECK_OK ? snk_ok(error) : status;
}

sneck_status sneck_break(sneck_client *client, const char *name, uint64_t token, const char *reason, sneck_error *error)
{
    sneck_status status = snk_client_check(client, error);
    if (status == SNECK_OK)
        status = snk_name_check(name, error);
    if (status == SNECK_OK && token == 0)
        status = snk_fail(error, SNECK_INVALID, 0, "the token is 0: give the one that sneck_inspect shows");
    if (status == SNECK_OK)
        status = snk_text_check(reason, "the reason", 1, SNK_WHY_LENGTH_MAX, error);
    if (status == SNECK_OK)
        status = snk_client_enter(client, error);
    if (status != SNECK_OK)
        return status;
    int state = 0;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    status = client->store->ops->break_hold(client->store, name, token, reason, error);
    snk_gate_leave(&client->gate);
    (void)pthread_setcancelstate(state, NULL);
    return status == SNECK_OK ? snk_ok(error) : status;
}

/* ---- In this client ---- */

static unsigned count_waiting_locked(const snk_machine *machine)
{
    unsigned count = 0;
    for (snk_link *link = snk_list_first(&machine->waiters); link != NULL;
         link = snk_list_next(&machine->waiters, link))
        count++;
    return count;
}

static void describe_locked(snk_machine *machine, sneck_local *local)
{
    int64_t now_ns = snk_now_ns();
    const snk_hold *hold = machine->hold;
    local->waiting = count_waiting_locked(machine);
    local->last_renewal_ms = -1;
    if (hold == NULL || hold->owner == 0)
        return;
    local->holds = snk_machine_levels(machine, hold->owner, now_ns);
    if (local->holds == 0)
        return;
    local->token = hold->token;
    local->remaining_ms = (snk_deadline_peek(&machine->deadline) - now_ns) / SNK_NS_PER_MS;
    if (hold->renewal.renewed_at_ns != 0)
        local->last_renewal_ms = (now_ns - hold->renewal.renewed_at_ns) / SNK_NS_PER_MS;
}

void sneck_list_local(sneck_client *client, sneck_local_fn callback, void *context)
{
    if (callback == NULL || snk_client_check(client, NULL) != SNECK_OK)
        return;
    for (snk_entry *entry = snk_registry_first(&client->registry); entry != NULL;
         entry = snk_registry_next(&client->registry, entry)) {
        sneck_local local = { .name = entry->name };
        (void)pthread_mutex_lock(&entry->mutex);
        describe_locked(&entry->machine, &local);
        (void)pthread_mutex_unlock(&entry->mutex);
        if ((local.holds > 0 || local.waiting > 0) && !callback(context, &local)) {
            snk_registry_unpin(&client->registry, entry);
            return;
        }
    }
}
