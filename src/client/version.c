/* Versions for optimistic work: whoever bumps first wins, the others begin again. */
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/name.h"
#include "client/agent.h"
#include "client/client.h"
#include "engine/renewal.h"

/* The longest pause before work is done again: others who were in the way are done by then. */
#define PAUSE_NS_MAX (100 * SNK_NS_PER_MS)

static sneck_status ask(sneck_client *client, const char *name, const uint64_t *expected, uint64_t *version_out,
                        sneck_error *error)
{
    sneck_status status = snk_client_check(client, error);
    if (status == SNECK_OK)
        status = snk_name_check(name, error);
    if (status == SNECK_OK)
        status = snk_client_enter(client, error);
    if (status != SNECK_OK)
        return status;
    const snk_store_ops *ops = client->store->ops;
    int state = 0;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    if (ops->version != NULL)
        status = ops->version(client->store, name, expected, version_out, error);
    else
        status =
            snk_fail(error, SNECK_UNSUPPORTED, 0, "%s cannot keep versions; use another store for them", ops->scheme);
    snk_gate_leave(&client->gate);
    (void)pthread_setcancelstate(state, NULL);
    return status;
}

sneck_status sneck_version_get(sneck_client *client, const char *name, uint64_t *version_out, sneck_error *error)
{
    if (version_out == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "version_out is NULL: give the address of a uint64_t");
    *version_out = 0;
    return ask(client, name, NULL, version_out, error);
}

sneck_status sneck_version_bump(sneck_client *client, const char *name, uint64_t expected, sneck_error *error)
{
    uint64_t version = 0;
    return ask(client, name, &expected, &version, error);
}

/* A random part of the pause that is due, so that those who met once do not meet again. */
static void pause_before(sneck_client *client, uint32_t attempts, int64_t until_ns)
{
    snk_id id = { { 0 } };
    (void)snk_idpool_draw(&client->ids, &id);
    int64_t longest_ns = snk_backoff_ns(attempts, PAUSE_NS_MAX);
    int64_t pause_ns = longest_ns * (1 + id.bytes[0]) / 256;
    int64_t left_ns = until_ns == SNK_NEVER_NS ? pause_ns : until_ns - snk_now_ns();
    struct timespec pause = snk_timespec(pause_ns < left_ns ? pause_ns : left_ns);
    (void)nanosleep(&pause, NULL);
}

sneck_status sneck_version_retry(sneck_client *client, const char *name, int64_t wait_ms, sneck_version_fn work,
                                 void *context, sneck_error *error)
{
    if (work == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "work is NULL: give a function to run with the version");
    sneck_status status = snk_wait_check(wait_ms, error);
    if (status != SNECK_OK)
        return status;
    int64_t until_ns = snk_wait_until_ns(wait_ms);
    for (uint32_t attempts = 1;; attempts++) {
        uint64_t version = 0;
        status = sneck_version_get(client, name, &version, error);
        if (status != SNECK_OK)
            return status;
        status = work(context, version);
        if (status == SNECK_OK)
            return snk_ok(error);
        if (status != SNECK_CONFLICT || snk_now_ns() >= until_ns)
            return snk_fail(error, status, 0, "work returned %s", sneck_status_name(status));
        pause_before(client, attempts, until_ns);
    }
}
