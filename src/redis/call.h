/*
 * One command to a Redis server, and what came of it.
 *
 * The call is the caller's memory and stays in place from submit until it is done. "Nobody knows" is never folded into
 * "did not happen": the outcome says which.
 */
#ifndef SNK_REDIS_CALL_H
#define SNK_REDIS_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include "base/list.h"
#include "sneck.h"

/* Which connection a call takes. */
typedef enum snk_redis_lane {
    SNK_REDIS_SHARED,  /* the command connection of all threads: for commands that answer at once */
    SNK_REDIS_BLOCKING /* a connection of its own for commands that block (WAIT), so that nothing waits behind them */
} snk_redis_lane;

typedef enum snk_redis_outcome {
    SNK_REDIS_REPLY,    /* the server answered: `reply`, which may be an error (see errors.h) */
    SNK_REDIS_NOT_SENT, /* no byte of it left: it was not executed and never will be; `error` says why */
    SNK_REDIS_UNCERTAIN /* bytes left and no answer came: it may have been executed, or may be yet; `error` says why */
} snk_redis_outcome;

/* What becomes of the answer of a server in whose place there was another one before it came. */
typedef enum snk_redis_late {
    SNK_REDIS_LATE_COUNTS,  /* it is the answer */
    SNK_REDIS_LATE_REPEATS, /* the new one is asked as well, and says what counts: to ask twice is as good as once */
    SNK_REDIS_LATE_DOUBTED  /* nobody knows whether it counts: UNCERTAIN */
} snk_redis_late;

/*
 * Names one run of one server process (64 bits of its run_id); 0 when not known. Equal and not 0 means: the same
 * process, which has not been restarted between.
 */
typedef uint64_t snk_redis_run;

typedef struct snk_redis_call {
    /* Set by the caller after snk_redis_call_init. */
    snk_redis_lane lane;
    int64_t timeout_ns; /* from submit; 0: the command timeout of the configuration */
    /*
     * Called exactly once when the call is done, with nothing of the client locked, on whatever thread got the answer,
     * perhaps before submit returns. It may submit calls, this one too (after another format), but not drive any. May
     * be NULL for a call that is driven.
     */
    void (*done)(struct snk_redis_call *call);
    void *context;
    bool patient; /* nobody minds if its answer is heard a few ms late, unless the caller attends to the server */
    bool asking;  /* cluster: ASKING goes right before it, so that a server which is being given the slot serves it */

    /* For topology.h; the client of one server does not look at them. */
    uint16_t slot;                     /* of its keys */
    bool hasty;                        /* it is not worth waiting until somebody can serve it */
    bool yields;                       /* while its keys are being moved (TRYAGAIN) the caller has another way */
    snk_redis_late late;               /* what an answer is worth that comes from a server which has been replaced */
    struct snk_commitment *commitment; /* borrowed: replicas must have it too (commit.h); NULL: not so */

    /* What came of it; valid once it is done. */
    snk_redis_outcome outcome;
    int stage;           /* private; under the connection's mutex */
    redisReply *reply;   /* owned by the call; NULL unless the outcome is SNK_REDIS_REPLY */
    snk_redis_run run;   /* of the server that answered */
    int64_t sent_at_ns;  /* snk_now_ns() before its first byte could leave; 0 when not sent */
    int64_t reply_at_ns; /* snk_now_ns() when it was done */
    bool lingered;       /* the answer may have been there for a few ms before that */
    sneck_error error; /* SNECK_UNAVAILABLE or SNECK_UNKNOWN (or SNECK_DENIED, SNECK_LIMIT, …); SNECK_OK with a reply */

    /* Private to the topology. */
    struct snk_node *node; /* where it goes; a reference. NULL: to the server for its slot */
    unsigned hops;         /* how often it was sent on */
    uint64_t version;      /* of what was known about who serves what when it was sent */

    /* Private to src/redis; see conn_parts.h. */
    char *command; /* owned; the formatted bytes */
    size_t command_length;
    snk_link link;                   /* under the connection's mutex: queued, or about to be called back */
    struct snk_redis_driver *driver; /* borrowed from the thread that drives it; NULL: nobody does */
    uint64_t position;               /* under the connection's mutex: place in the stream of commands */
    int64_t deadline_ns;             /* when it is given up */
} snk_redis_call;

/* A call without a command. */
void snk_redis_call_init(snk_redis_call *call);

/*
 * Formats the command, replacing an earlier one; the result of an earlier run is dropped. Arguments are bytes with
 * lengths; `lengths` NULL: they end in NUL. SNECK_NO_MEMORY, or SNECK_LIMIT when the command is longer than
 * SNK_REDIS_COMMAND_BYTES_MAX.
 */
sneck_status snk_redis_call_format(snk_redis_call *call, size_t count, const char *const arguments[],
                                   const size_t lengths[], sneck_error *error);

/* Drops the result but keeps the command, which may then be submitted again. */
void snk_redis_call_reset(snk_redis_call *call);

/* Frees what the call owns. It must not be on its way. */
void snk_redis_call_deinit(snk_redis_call *call);

#endif
