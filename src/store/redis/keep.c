#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "redis/errors.h"
#include "store/redis/claims.h"
#include "store/redis/run.h"

bool snk_keep_applies(snk_redis_store *store, const snk_claim *claim, const snk_redis_call *call)
{
    char name[SNK_NAME_LENGTH_MAX + 1];
    return claim->send.ask == SNK_ASK_RENEW && claim->grip.mode == SNK_MODE_EXCLUSIVE &&
           call->outcome == SNK_REDIS_REPLY && snk_redis_error_of(call->reply) == SNK_REDIS_TRYAGAIN &&
           !snk_waiting_find(&store->waiting, &claim->send.claim, name);
}

bool snk_keep_format(snk_redis_store *store, const snk_claim *claim, bool with_text, snk_redis_call *call)
{
    snk_keys keys;
    char id[SNK_ID_TEXT_SIZE];
    char lease[24];
    snk_id_to_hex(&claim->send.claim, id);
    (void)snprintf(lease, sizeof lease, "%lld",
                   (long long)((claim->send.lease_ns + SNK_NS_PER_MS - 1) / SNK_NS_PER_MS));
    snk_run run = { .script = SNK_SCRIPT_KEEP, .keys = &keys, .count = 2, .arguments = { id, lease } };
    return snk_keys_make(&keys, store->prefix, claim->name, NULL) == SNECK_OK &&
           snk_run_format(store, &run, with_text, call, NULL) == SNECK_OK;
}

/* A claim that is not where the lock's key should be may be anywhere: nobody knows until all keys are in one place. */
void snk_keep_settle(const snk_redis_store *store, snk_redis_call *call)
{
    if (call->outcome != SNK_REDIS_REPLY || call->reply->type != REDIS_REPLY_ARRAY || call->reply->elements != 1)
        return;
    snk_redis_call_reset(call);
    call->outcome = SNK_REDIS_NOT_SENT;
    (void)snk_fail(&call->error, SNECK_UNAVAILABLE, 0, "%s: the cluster is moving the keys of this lock", store->where);
}
