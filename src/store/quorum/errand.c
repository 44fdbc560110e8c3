#include "store/quorum/errand.h"

#include <stdlib.h>

static void free_call(snk_redis_call *call)
{
    snk_redis_call_deinit(call);
    free(call);
}

/* Makes the script known to the server, ahead of whatever is sent after this. False when out of memory. */
static bool teach(const snk_errand *errand)
{
    snk_redis_call *call = malloc(sizeof *call);
    if (call == NULL)
        return false;
    snk_redis_call_init(call);
    call->done = free_call;
    if (snk_node_script_format(errand->script, call, NULL) != SNECK_OK) {
        free_call(call);
        return false;
    }
    snk_redis_call *const calls[] = { call };
    snk_redis_submit(errand->node->redis, calls, 1);
    return true;
}

static void on_done(snk_redis_call *call)
{
    snk_errand *errand = SNK_CONTAINER(call, snk_errand, call);
    if (snk_node_needs_script(call) && !errand->is_sent_again && teach(errand)) {
        errand->is_sent_again = true;
        snk_errand_repeat(errand);
        return;
    }
    snk_quorum_node_asked(errand->node, call);
    errand->done(errand);
}

void snk_errand_init(snk_errand *errand, snk_quorum_node *node, snk_node_script script,
                     void (*done)(snk_errand *errand))
{
    snk_redis_call_init(&errand->call);
    errand->call.done = on_done;
    errand->node = node;
    errand->script = script;
    errand->is_sent_again = false;
    errand->done = done;
}

void snk_errands_submit(snk_errand *const errands[], size_t count)
{
    snk_redis_call *calls[SNK_RENEW_BATCH_MAX];
    for (size_t i = 0; i < count; i++)
        calls[i] = &errands[i]->call;
    if (count > 0)
        snk_redis_submit(errands[0]->node->redis, calls, count);
}

void snk_errand_repeat(snk_errand *errand)
{
    snk_redis_call_reset(&errand->call);
    snk_errands_submit(&errand, 1);
}

void snk_errand_repeat_later(snk_errand *errand, int64_t at_ns)
{
    snk_redis_call_reset(&errand->call);
    snk_redis_submit_later(errand->node->redis, &errand->call, at_ns);
}
