/* What an error reply of a Redis server means, in one place. */
#ifndef SNK_REDIS_ERRORS_H
#define SNK_REDIS_ERRORS_H

#include <hiredis/hiredis.h>

#include "sneck.h"

typedef enum snk_redis_error_kind {
    SNK_REDIS_NO_ERROR,
    SNK_REDIS_NOSCRIPT,      /* the script must be loaded */
    SNK_REDIS_READONLY,      /* a replica: find the master */
    SNK_REDIS_LOADING,       /* the server reads its data */
    SNK_REDIS_BUSY_SCRIPT,   /* another script runs too long */
    SNK_REDIS_OOM,           /* maxmemory reached */
    SNK_REDIS_NOAUTH,        /* a password is needed */
    SNK_REDIS_WRONGPASS,     /* user or password is wrong */
    SNK_REDIS_NOPERM,        /* the ACL of the user forbids it */
    SNK_REDIS_SCRIPT_DENIED, /* the ACL of the user forbids a command in a script, which may have written before that */
    SNK_REDIS_PROTECTED,     /* protected mode: only from its own machine, or with a password */
    SNK_REDIS_BAD_DATABASE,  /* SELECT of a number that is not there */
    SNK_REDIS_MISCONF,       /* the server refuses writes because it cannot save */
    SNK_REDIS_MASTERDOWN,    /* a replica that lost its master */
    SNK_REDIS_NOREPLICAS,    /* min-replicas-to-write is not met */
    SNK_REDIS_MAXCLIENTS,    /* no room for another connection */
    SNK_REDIS_WRONGTYPE,     /* somebody's data is at our key */
    SNK_REDIS_MOVED,         /* cluster: the slot lives elsewhere */
    SNK_REDIS_ASK,           /* cluster: the slot is being moved */
    SNK_REDIS_TRYAGAIN,      /* cluster: the keys of the slot are being moved */
    SNK_REDIS_CLUSTERDOWN,   /* cluster: not all slots are served */
    SNK_REDIS_CROSSSLOT,     /* cluster: keys of one command in several slots */
    SNK_REDIS_UNBLOCKED,     /* a blocking command was ended by force, or by a change of role */
    SNK_REDIS_KILLED,        /* the script was killed (SCRIPT KILL) before it wrote anything */
    SNK_REDIS_OTHER_ERROR    /* anything else: what happened is not known */
} snk_redis_error_kind;

/* The kind of a reply; SNK_REDIS_NO_ERROR when it is no error (an error nested in an array is not looked at). */
snk_redis_error_kind snk_redis_error_of(const redisReply *reply);

/*
 * True when this error proves that the command changed nothing. Within a script the server reports the first error of
 * a command that the script ran; all our scripts look before they write, and what is refused here is refused at the
 * first write or before the script starts. (Access rules may refuse any command: SNK_REDIS_SCRIPT_DENIED.)
 */
bool snk_redis_error_is_harmless(snk_redis_error_kind kind);

/*
 * Fills `error` with the status for callers and a message that says what to do; SNECK_OK for SNK_REDIS_NO_ERROR.
 * `where` names the server, such as "redis 10.0.0.5:6379".
 */
sneck_status snk_redis_error_explain(const redisReply *reply, const char *where, sneck_error *error);

#endif
