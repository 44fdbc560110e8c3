/* Every limit of the library, in one place. */
#ifndef SNK_BASE_LIMITS_H
#define SNK_BASE_LIMITS_H

#include <stdint.h>

#define SNK_NS_PER_US INT64_C(1000)
#define SNK_NS_PER_MS INT64_C(1000000)
#define SNK_NS_PER_S INT64_C(1000000000)

/* A point in time that never comes. */
#define SNK_NEVER_NS INT64_MAX

/* What users may give. */
#define SNK_NAME_LENGTH_MAX 512
#define SNK_PREFIX_LENGTH_MAX 128
#define SNK_WHY_LENGTH_MAX 200
#define SNK_OWNER_LENGTH_MAX 63 /* "<uuid>:<thread id>" */
#define SNK_HOST_LENGTH_MAX 63
#define SNK_HOLDS_MAX 255
#define SNK_LEASE_MS_MIN INT64_C(100)
#define SNK_LEASE_MS_MAX (INT64_C(7) * 24 * 3600 * 1000)
#define SNK_WATCHDOG_MS_MIN INT64_C(100)
#define SNK_ALERT_THRESHOLD_MAX 255
#define SNK_RETRY_MS_MIN INT64_C(1)
#define SNK_LOCKS_MAX_DEFAULT 1000000
#define SNK_URL_LENGTH_MAX 2048

/* Defaults. */
#define SNK_LEASE_MS_DEFAULT INT64_C(30000)
#define SNK_WATCHDOG_MS_DEFAULT INT64_C(5000)
#define SNK_RETRY_MS_DEFAULT INT64_C(100)
#define SNK_PREFIX_DEFAULT "lock:"

/*
 * The part of a lease that we do not use: a tenth of it, because two clocks may each run 5 % off, and a bit for the
 * way between looking at the clock and acting on it.
 */
#define SNK_DRIFT_DIVISOR 10
#define SNK_MARGIN_NS (2 * SNK_NS_PER_MS)

/*
 * Local hand-off: what one client may do with a lock before the store sees it again. A block of tokens never reaches
 * further than a millisecond ahead of the clock (a token is a microsecond), or tokens would outrun it.
 */
#define SNK_TOKEN_BLOCK_MAX 512
#define SNK_HANDOFF_TIME_NS (20 * SNK_NS_PER_MS)
/* How long newcomers may take a lock that was passed to a thread which is still waking up. */
#define SNK_BARGE_TIME_NS (1 * SNK_NS_PER_MS)

/* How long the store remembers that a claim which was never answered is given up: max(lease, this). */
#define SNK_TOMBSTONE_NS (600 * SNK_NS_PER_S)
/* An offered lock must be confirmed by its first renewal within min(this, lease). */
#define SNK_OFFER_NS (2 * SNK_NS_PER_S)
/*
 * When a hold that began with an offer is renewed: after this part of the offer's life. Most holds are released before,
 * and then neither the store nor the thread that renews hears of them.
 */
#define SNK_CONFIRM_DIVISOR 32

/* What a look at a claim asks for: a lease so short that it prolongs nothing. */
#define SNK_CHECK_LEASE_NS (1 * SNK_NS_PER_MS)

/* Timers that follow each other more closely are served together. */
#define SNK_GATHER_NS (5 * SNK_NS_PER_MS)

/* Bounds of retries after a failed request: the first pause, and the longest. */
#define SNK_BACKOFF_NS_MIN (10 * SNK_NS_PER_MS)
#define SNK_BACKOFF_NS_MAX (1 * SNK_NS_PER_S)

/* The watchdog: findings in a row before an alert, and what counts as flapping: so many connects in such a time. */
#define SNK_ALERT_THRESHOLD 3
#define SNK_FLAPPING_CONNECTS 4
#define SNK_FLAPPING_NS (60 * SNK_NS_PER_S)

#define SNK_RENEW_BATCH_MAX 256
/* Several locks at once: of one call to a store, and threads that ask stores in parallel beside the caller's. */
#define SNK_TOGETHER_MAX 64
#define SNK_TOGETHER_THREADS_MAX 16
#define SNK_EVENTS_QUEUED_MAX 1024
#define SNK_LOG_LINES_MAX 256
/* Callbacks that run at the same time at most, and how long one may take before others do not wait for it. */
#define SNK_CALLBACK_THREADS_MAX 16
#define SNK_CALLBACK_SLOW_NS (5 * SNK_NS_PER_MS)
#define SNK_INCIDENTS_MAX 32
#define SNK_INCIDENT_AGE_S (24 * 3600)

/* The Redis client. Replies are measured before anything is allocated for them. */
#define SNK_REDIS_CONNECT_NS (3 * SNK_NS_PER_S)
#define SNK_REDIS_COMMAND_NS (3 * SNK_NS_PER_S)
#define SNK_REDIS_KEEPALIVE_NS (15 * SNK_NS_PER_S)
#define SNK_REDIS_IN_FLIGHT_MAX 65536 /* calls of one connection that are not answered, sent or not */
#define SNK_REDIS_QUEUED_BYTES_MAX 67108864
#define SNK_REDIS_DRIVE_MAX 1024
#define SNK_REDIS_ATTEND_MAX 31 /* servers that one thread receives from at a time */
#define SNK_REDIS_COMMAND_BYTES_MAX 16777216
#define SNK_REDIS_REPLY_BYTES_MAX 16777216
#define SNK_REDIS_REPLY_ELEMENTS_MAX 262144 /* of one reply, in all its arrays together */
#define SNK_REDIS_REPLY_DEPTH_MAX 7         /* what the reader of hiredis 0.14 takes */
#define SNK_REDIS_REPLY_LINE_MAX 65536
#define SNK_REDIS_CHANNELS_MAX 65536
#define SNK_REDIS_NODES_MAX 1024 /* servers of one store, replicas not counted */

/* A quorum of nodes. */
#define SNK_QUORUM_NODES_MAX 31 /* sets of nodes are 32 bits */
#define SNK_QUORUM_LEASE_MAX_MS INT64_C(60000)
#define SNK_QUORUM_TIMEOUT_NS (500 * SNK_NS_PER_MS) /* of one node; an eighth of the lease if that is shorter */
#define SNK_QUORUM_CONNECT_FACTOR 4 /* making a connection takes several round trips, and no lease runs meanwhile */

/* The PostgreSQL store. */
#define SNK_PG_TIMEOUT_NS (3 * SNK_NS_PER_S) /* to connect, and for an answer */
#define SNK_PG_CONNECTIONS_DEFAULT 4
#define SNK_PG_CONNECTIONS_MAX 64
#define SNK_PG_ROWS_MAX 256 /* mode=row: locks that one client holds, each with a connection */
#define SNK_PG_TRIES_MAX 8  /* after serialization failures and deadlocks */
#define SNK_PG_SETUP_NS (60 * SNK_NS_PER_S)
#define SNK_PG_PROBE_NS (2 * SNK_NS_PER_S)    /* for a message of our own to come back */
#define SNK_PG_DEAF_TRIES 2                   /* so many in a row without it: messages do not come here */
#define SNK_PG_DEAF_NS (60 * SNK_NS_PER_S)    /* then it is tried so often */
#define SNK_PG_SILENCE_NS (10 * SNK_NS_PER_S) /* then the connection for messages is asked whether it lives */
#define SNK_PG_LIST_PAGE 1000
#define SNK_PG_REAP_EACH 4096 /* requests of one client */

/* The MariaDB store. */
#define SNK_MY_TIMEOUT_NS (3 * SNK_NS_PER_S) /* to connect, and for an answer */
#define SNK_MY_CONNECTIONS_DEFAULT 4
#define SNK_MY_CONNECTIONS_MAX 64
#define SNK_MY_ROWS_MAX 256 /* mode=row: locks that one client holds, each with a connection */
#define SNK_MY_TRIES_MAX 8  /* after deadlocks */
/* One sleep of the session that waits to be told. Of some 50,000 calls one was not heard: its offer must still be good. */
#define SNK_MY_LISTEN_S 1
#define SNK_MY_LIST_PAGE 1000
#define SNK_MY_REAP_EACH 4096 /* requests of one client */

#define SNK_CLOSE_WAIT_NS (5 * SNK_NS_PER_S)

#endif
