#include "redis/verdict.h"

#include <stdlib.h>
#include <string.h>

#include "redis/errors.h"
#include "redis/slot.h"

/* "MOVED 3999 127.0.0.1:6381" */
static bool read_redirection(const char *text, const char *from, snk_redis_address *to, uint16_t *slot)
{
    const char *number = strchr(text, ' ');
    if (number == NULL)
        return false;
    char *end = NULL;
    long value = strtol(number + 1, &end, 10);
    if (end == number + 1 || *end != ' ' || value < 0 || value >= SNK_REDIS_SLOTS)
        return false;
    *slot = (uint16_t)value;
    return snk_redis_address_parse(to, end + 1, from);
}

static snk_verdict verdict_of_error(snk_redis_error_kind kind, bool sharded)
{
    switch (kind) {
    case SNK_REDIS_MOVED:
        return sharded ? SNK_VERDICT_MOVED : SNK_VERDICT_DONE;
    case SNK_REDIS_ASK:
        return sharded ? SNK_VERDICT_ASK : SNK_VERDICT_DONE;
    case SNK_REDIS_TRYAGAIN:
        return SNK_VERDICT_SOON;
    case SNK_REDIS_READONLY:
    case SNK_REDIS_LOADING:
    case SNK_REDIS_MASTERDOWN:
    case SNK_REDIS_CLUSTERDOWN:
        return SNK_VERDICT_LOOK;
    case SNK_REDIS_NO_ERROR:
    case SNK_REDIS_NOSCRIPT:
    case SNK_REDIS_BUSY_SCRIPT:
    case SNK_REDIS_OOM:
    case SNK_REDIS_NOAUTH:
    case SNK_REDIS_WRONGPASS:
    case SNK_REDIS_NOPERM:
    case SNK_REDIS_SCRIPT_DENIED:
    case SNK_REDIS_PROTECTED:
    case SNK_REDIS_BAD_DATABASE:
    case SNK_REDIS_MISCONF:
    case SNK_REDIS_NOREPLICAS:
    case SNK_REDIS_MAXCLIENTS:
    case SNK_REDIS_WRONGTYPE:
    case SNK_REDIS_CROSSSLOT:
    case SNK_REDIS_UNBLOCKED:
    case SNK_REDIS_KILLED:
    case SNK_REDIS_OTHER_ERROR:
        break;
    }
    return SNK_VERDICT_DONE;
}

snk_verdict snk_verdict_of(const snk_redis_call *call, bool sharded, const char *from, snk_redis_address *to_out,
                           uint16_t *slot_out)
{
    if (call->outcome == SNK_REDIS_NOT_SENT)
        return call->error.status == SNECK_UNAVAILABLE ? SNK_VERDICT_LOOK : SNK_VERDICT_DONE;
    if (call->outcome == SNK_REDIS_UNCERTAIN)
        return SNK_VERDICT_DONE;
    snk_redis_error_kind kind = snk_redis_error_of(call->reply);
    if (kind == SNK_REDIS_NO_ERROR)
        return SNK_VERDICT_DONE;
    snk_verdict verdict = verdict_of_error(kind, sharded);
    bool redirects = verdict == SNK_VERDICT_MOVED || verdict == SNK_VERDICT_ASK;
    if (redirects && !read_redirection(call->reply->str, from, to_out, slot_out))
        return SNK_VERDICT_LOOK;
    return verdict;
}
