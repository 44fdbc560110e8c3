/*
 * sneck - distributed locking for C.
 *
 *     sneck_client *client;
 *     sneck_lock *lock;
 *     sneck_error error;
 *
 *     if (sneck_open(NULL, NULL, &client, &error) != SNECK_OK ||
 *         sneck_mutex(client, "stock/42", NULL, &lock, &error) != SNECK_OK ||
 *         sneck_acquire(lock, 5000, &error) != SNECK_OK) {
 *         fprintf(stderr, "%s\n", error.message);
 *         return 1;
 *     }
 *     write_stock(42, sneck_token(lock));     // the resource refuses a lower token than it has seen
 *     sneck_release(lock, &error);
 *     sneck_lock_free(lock);
 *     sneck_close(client);
 *
 * What a lock here promises, and what it cannot promise:
 *
 *   - Each hold has a lease. While the process runs, the lease is renewed in the background; when the process dies, is
 *     stopped or loses its store, the lease ends and somebody else may take the lock. From that moment on no call of
 *     the old holder says "held".
 *   - Each hold has a token that is higher than the token of every earlier hold of that lock. A resource that refuses
 *     tokens lower than the highest it has seen is safe even from a holder that was paused between its look at the
 *     lock and its write. Nothing else is: no lease lock can promise that two holders never overlap in time.
 *
 * Threads: a client and every handle made from it may be used by any number of threads at once, unless a function says
 * otherwise. Functions that free an object must be the last call on it.
 *
 * Statuses say what the caller must do next. A sneck_error, where given, is always filled, also on SNECK_OK; every
 * `error` parameter may be NULL. The library prints nothing, installs no signal handler, never ends the process and
 * keeps no state outside of its clients, but for one gate: fork() waits, for at most a second, until no transaction of
 * an embedded store is under way in this process.
 *
 * fork(): the child owns nothing. In it every call on a client or handle of the parent is SNECK_INVALID (release:
 * SNECK_NOT_OWNER); close and free are allowed there, and do not touch what the parent holds.
 */
#ifndef SNECK_H
#define SNECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SNECK_API __attribute__((visibility("default")))
#define SNECK_MUST_CHECK __attribute__((warn_unused_result))
#else
#define SNECK_API
#define SNECK_MUST_CHECK
#endif

#define SNECK_VERSION_MAJOR 0
#define SNECK_VERSION_MINOR 1
#define SNECK_VERSION_PATCH 0

/* Wait without a limit (a `wait_ms`). */
#define SNECK_FOREVER INT64_C(-1)
/* Switch off (a `renew_ms` or `watchdog_ms`). */
#define SNECK_NEVER INT64_C(-1)

/* ---- Statuses and errors ---------------------------------------------------------------------------------------- */

typedef enum sneck_status {
    SNECK_OK = 0,
    SNECK_BUSY,        /* somebody else has it, and the call was not to wait */
    SNECK_TIMEOUT,     /* somebody else had it, or was before the caller, for as long as the call was to wait */
    SNECK_CANCELED,    /* the wait was interrupted, or the client was closed; nothing is held */
    SNECK_LOST,        /* the caller had it and lost it: the lease ended, or it was broken by force */
    SNECK_NOT_OWNER,   /* the caller does not hold it */
    SNECK_CONFLICT,    /* the expected version or token is not the current one */
    SNECK_UNAVAILABLE, /* the store could not be reached or used; it did not happen */
    SNECK_UNKNOWN,     /* a request left and no answer came; it may have happened */
    SNECK_DENIED,      /* the store's access rules refuse it */
    SNECK_INVALID,     /* a wrong argument; the message says which and what is allowed */
    SNECK_UNSUPPORTED, /* this store cannot do it */
    SNECK_LIMIT,       /* a limit of the library is reached; the message names it */
    SNECK_DEADLOCK,    /* waiting would never end */
    SNECK_NO_MEMORY    /* out of memory; nothing was changed */
} sneck_status;

/* The name of a status, such as "SNECK_BUSY"; "SNECK_?" for a value that is none. */
SNECK_API const char *sneck_status_name(sneck_status status);

/* The version of the library that runs, such as "0.1.0". */
SNECK_API const char *sneck_version_string(void);

typedef struct sneck_error {
    sneck_status status;
    int cause;         /* errno, or the store's own code; 0 when there is none */
    char message[240]; /* for people; always ends in NUL; empty on SNECK_OK */
} sneck_error;

/* ---- Events ----------------------------------------------------------------------------------------------------- */

typedef enum sneck_event_kind {
    SNECK_EVENT_ACQUIRED = 1,
    SNECK_EVENT_RELEASED,
    SNECK_EVENT_RENEWED,
    SNECK_EVENT_RENEWAL_FAILED,  /* one renewal failed; the hold lasts until its deadline, and it is tried again */
    SNECK_EVENT_LOST,            /* the hold is over; `cause` and `message` say why. After `released`: it had been over
                                    before, as the store said to the release */
    SNECK_EVENT_AT_RISK,         /* held, but renewals fail or do not come: it may be lost soon */
    SNECK_EVENT_RECOVERED,       /* the watchdog has put something right: `message` says what; with a token: acquired
                                    again, and the owner's next acquire takes it over */
    SNECK_EVENT_CONNECTION_DOWN, /* of the store; `name` is empty, as in the next one */
    SNECK_EVENT_CONNECTION_UP,
    SNECK_EVENT_OWNER_DIED, /* the thread that holds it has ended */
    SNECK_EVENT_STUCK,      /* the thread that holds it is blocked for longer than stuck_ms, or holds it for longer than
                               max_hold_ms; with an empty name: the renewal thread */
    SNECK_EVENT_DEADLOCK,   /* an acquire was refused because its wait would never end */
    SNECK_EVENT_BROKEN      /* a hold that was lost before was broken by force; `message` has the reason given */
} sneck_event_kind;

/* Why a hold ended that nobody released. */
typedef enum sneck_cause {
    SNECK_CAUSE_NONE = 0,
    SNECK_CAUSE_EXPIRED,   /* its lease ended: renewals failed or were not answered, or it was not to be renewed */
    SNECK_CAUSE_PAUSED,    /* its lease ended while the process, or its renewal, did not run */
    SNECK_CAUSE_GONE,      /* the store no longer had the claim: broken, deleted, or ended there */
    SNECK_CAUSE_TAKEN,     /* the store showed somebody else as the holder */
    SNECK_CAUSE_GIVEN_UP,  /* a renewal failed, with alert_threshold 1 and SNECK_RECOVER_RELEASE */
    SNECK_CAUSE_STUCK,     /* its owner was blocked or stopped for longer than stuck_ms */
    SNECK_CAUSE_OVERDUE,   /* it lasted longer than max_hold_ms */
    SNECK_CAUSE_OWNER_DIED /* its owner ended without releasing it */
} sneck_cause;

typedef struct sneck_event {
    sneck_event_kind kind;
    sneck_status status;  /* why a renewal failed; SNECK_OK where it has no meaning */
    sneck_cause cause;    /* of a loss; SNECK_CAUSE_NONE where it has no meaning */
    uint64_t token;       /* of the hold that the event is about; 0: of none */
    int64_t time_ms;      /* wall clock, milliseconds since 1970 */
    int64_t remaining_ms; /* time left of the hold at the event */
    char name[513];       /* the lock; empty when it is about none */
    char message[160];    /* for people; may be empty */
} sneck_event;

/*
 * Called on a callback thread of the client, with nothing of the library locked: it may call sneck. Events of one lock
 * come one at a time and in order, and usually so do all of a client. But while a callback takes long (from some
 * milliseconds on), events of other locks do not wait for it: the function may then run on several threads at once, with
 * different locks. Up to 16 may take long at the same time; what comes then waits, and what does not fit into the queue
 * is counted and dropped, oldest first, but never a loss. What happens all day (acquired, released, renewed) is told
 * together when much of it comes, and then up to 20 ms after it happened; everything else at once.
 */
typedef void (*sneck_event_fn)(void *context, const sneck_event *event);

/*
 * A log line without newline: key=value text, or with SNECK_LOG_JSON an object. Values are escaped; no line has a
 * password in it. Called on a callback thread of the client, one line at a time, so it may come late; a slow one delays
 * later lines and nothing else. At most ten lines of one event a second; the next one says how many were left out.
 */
typedef enum sneck_log_level {
    SNECK_LOG_ERROR = 1,
    SNECK_LOG_WARNING,
    SNECK_LOG_INFO,
    SNECK_LOG_DEBUG
} sneck_log_level;
typedef void (*sneck_log_fn)(void *context, sneck_log_level level, const char *text);
typedef enum sneck_log_format {
    SNECK_LOG_TEXT = 0, /* ts=2026-01-31T12:00:00.123Z level=warning event=lost lock="stock/42" token=17 */
    SNECK_LOG_JSON /* {"ts":"2026-01-31T12:00:00.123Z","level":"warning","event":"lost","lock":"stock/42","token":17} */
} sneck_log_format;

/* The name of an event kind, such as "acquired" or "renewal-failed"; "?" for a value that is none. */
SNECK_API const char *sneck_event_kind_name(sneck_event_kind kind);
/* The name of a cause, such as "expired"; "" for SNECK_CAUSE_NONE, "?" for a value that is none. */
SNECK_API const char *sneck_cause_name(sneck_cause cause);

/* ---- Clients ---------------------------------------------------------------------------------------------------- */

typedef struct sneck_client sneck_client;

/*
 * Start from SNECK_CLIENT_OPTIONS_INIT and change what you need. A zero means "not given": then the URL, then the
 * environment (SNECK_LEASE, SNECK_WATCHDOG, SNECK_RETRY), then the default decides.
 */
typedef struct sneck_client_options {
    size_t size;         /* set by the initialiser; lets later versions append fields */
    int64_t lease_ms;    /* default 30000; at least 100 */
    int64_t watchdog_ms; /* default 5000; at least 100; SNECK_NEVER: no watchdog */
    int64_t retry_ms;    /* default 100: longest pause between looks where the store cannot wake waiters */
    const char *prefix;  /* put before every name in the store; default "lock:"; "" is allowed */
    size_t max_locks;    /* names alive in this client at once, else SNECK_LIMIT; default 1000000 */
    sneck_log_fn log;    /* NULL: no log */
    void *log_context;
    sneck_event_fn on_event; /* events of every lock of the client; NULL: none */
    void *event_context;
    sneck_log_format log_format;
} sneck_client_options;

/* clang-format off */
#define SNECK_CLIENT_OPTIONS_INIT { .size = sizeof(sneck_client_options) }
/* clang-format on */

/*
 * Opens a store. `url` NULL: the environment variable SNECK_STORE, and without it the embedded store of this user and
 * machine ("sqlite:"). `options` may be NULL. The client needs no other object; close it with sneck_close.
 *
 * SNECK_INVALID      the URL or an option is wrong; found before any I/O
 * SNECK_UNAVAILABLE  the store cannot be reached or used
 * SNECK_DENIED       the store's access rules, or the permissions of its file, refuse us
 * SNECK_UNSUPPORTED  this build has no such store
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_open(const char *url, const sneck_client_options *options,
                                                   sneck_client **client_out, sneck_error *error);

/*
 * Ends a client: threads that wait return SNECK_CANCELED, asynchronous requests are completed, held locks are released
 * (waiting, bounded, for the answers), threads end. Handles become inert, every call on them is SNECK_INVALID, and must
 * still be freed. Must not be called from a callback of this client. NULL is a no-op.
 */
SNECK_API void sneck_close(sneck_client *client);

/*
 * A file descriptor that is readable while events wait, for poll(2); -1 when it cannot be had. From the first call on,
 * events are also queued for sneck_event_next. Owned by the client; do not read or close it.
 */
SNECK_API int sneck_event_fd(sneck_client *client);

/* Takes the oldest queued event; false when there is none. */
SNECK_API bool sneck_event_next(sneck_client *client, sneck_event *event_out);

/* ---- Locks ------------------------------------------------------------------------------------------------------ */

typedef struct sneck_lock sneck_lock;

typedef enum sneck_owner {
    SNECK_OWNER_THREAD = 0, /* the calling thread owns what it acquires, and re-enters */
    SNECK_OWNER_HANDLE      /* the handle owns, whichever thread calls: for event loops and coroutines */
} sneck_owner;

/*
 * What happens when a hold was lost, or the watchdog finds its owner dead, stuck or overdue (see stuck_ms and
 * max_hold_ms below).
 */
typedef enum sneck_recovery {
    SNECK_RECOVER_RELEASE = 0, /* the store is told to forget the claim: after loss once its lease is over by every
                                  clock, with a dead, stuck or overdue owner at once; the default */
    SNECK_RECOVER_NOTIFY,      /* only report: the claim ends with its lease; a stuck or overdue owner keeps it */
    SNECK_RECOVER_REACQUIRE    /* as RELEASE, and then it is acquired again in the background: a new hold with a new
                                  token, which the owner gets by its next acquire after it has released every level of
                                  the lost one. It is kept for one lease after that. Needs the watchdog */
} sneck_recovery;

/* Start from SNECK_LOCK_OPTIONS_INIT and change what you need. */
typedef struct sneck_lock_options {
    size_t size;      /* set by the initialiser; lets later versions append fields */
    int64_t lease_ms; /* 0: the client's; at least 100 */
    int64_t renew_ms; /* 0: a third of the lease; at most half of it; SNECK_NEVER: the hold ends with its lease */
    bool fair;        /* first come, first served, across all processes */
    bool reentrant;   /* true by the initialiser; false: acquiring again is SNECK_DEADLOCK, not another level */
    sneck_owner owner;
    sneck_recovery recovery;
    const char *why;         /* shown to others that look; at most 200 bytes; copied */
    sneck_event_fn on_event; /* events of this name in this client; NULL: none */
    void *event_context;
    int64_t watchdog_ms;      /* 0: the client's; at least 100; SNECK_NEVER: the watchdog leaves this lock alone */
    unsigned alert_threshold; /* 0: 3; failed renewals in a row before SNECK_EVENT_AT_RISK; at most 255. With 1 and
                                 SNECK_RECOVER_RELEASE the first failed renewal gives the hold up */
    int64_t stuck_ms;         /* 0: off; a thread that holds the lock and has been blocked or stopped for so long is
                                 stuck: SNECK_EVENT_STUCK, and what `recovery` says. Seen at looks of the watchdog */
    int64_t max_hold_ms;      /* 0: no limit; a hold that lasts longer is ended as `recovery` says */
} sneck_lock_options;

/* clang-format off */
#define SNECK_LOCK_OPTIONS_INIT { .size = sizeof(sneck_lock_options), .reentrant = true }
/* clang-format on */

/*
 * A handle on the mutex `name`: 1 to 512 bytes of UTF-8 without control characters. No I/O. Two handles on one name
 * in one client share the lock; each acquire counts with the options of its own handle. Free it with sneck_lock_free,
 * before or after the client is closed.
 *
 * SNECK_INVALID  the name or an option is wrong
 * SNECK_LIMIT    the client has max_locks names alive
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_mutex(sneck_client *client, const char *name,
                                                    const sneck_lock_options *options, sneck_lock **lock_out,
                                                    sneck_error *error);

/*
 * Handles on the two sides of a read-write lock: any number of readers, or one writer. A name is one lock, however it
 * is taken: the write side is the mutex of that name. Each reader has its own lease, and its token is the epoch: the
 * token of the last writer.
 *
 * A writer that waits stops readers that come after it. Who writes may also take the read side, and then give the write
 * side up (a downgrade: waiting readers come in); who reads and asks for the write side gets SNECK_DEADLOCK from
 * sneck_acquire, because it would wait for itself.
 *
 * SNECK_UNSUPPORTED  the store cannot keep readers
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_read_lock(sneck_client *client, const char *name,
                                                        const sneck_lock_options *options, sneck_lock **lock_out,
                                                        sneck_error *error);
SNECK_API SNECK_MUST_CHECK sneck_status sneck_write_lock(sneck_client *client, const char *name,
                                                         const sneck_lock_options *options, sneck_lock **lock_out,
                                                         sneck_error *error);

/* The most locks that one multi-lock, and one segmented lock, may have. */
#define SNECK_MULTI_MAX 256

/*
 * Several locks as one, of any kind and of any clients: all or none. They are waited for in one order, by store and name,
 * so that two callers cannot wait for each other; those that are free are asked for at once, of each store by one call,
 * and stores in parallel. A store that does not answer is waited for as long as its own limit says, and then what the
 * others gave is given back. The handles are borrowed: free them after the multi-lock, and after those who use it are
 * done. One lock by handles of two clients would wait for itself.
 *
 * It is held while all of them are: the loss of one is the loss of all. sneck_token is that of the first one in that
 * order, sneck_remaining_ms the shortest, sneck_lost_fd readable as soon as one is lost. A release gives all back; its
 * result is SNECK_LOST if one was lost. If one is lost before all of them are had, they are given back and asked for
 * again; without time left for that the acquire returns SNECK_LOST. It has no asynchronous calls (SNECK_INVALID).
 *
 * SNECK_INVALID  no members, a wrong one, one twice, or more than SNECK_MULTI_MAX, those within members counted
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_multi_lock(sneck_lock *const members[], size_t count,
                                                         sneck_lock **lock_out, sneck_error *error);

/*
 * One hot name spread over several, "name#0", "name#1" and so on: the segment that is responsible for a key, the mutex
 * of a segment, and the multi-lock of all of them. All users must agree on the number of segments, at most
 * SNECK_MULTI_MAX. A key has the same segment in every process and version.
 */
SNECK_API unsigned sneck_segment_of(const void *key, size_t key_length, unsigned segments);
SNECK_API SNECK_MUST_CHECK sneck_status sneck_segment(sneck_client *client, const char *name, unsigned segment,
                                                      const sneck_lock_options *options, sneck_lock **lock_out,
                                                      sneck_error *error);
SNECK_API SNECK_MUST_CHECK sneck_status sneck_segments_all(sneck_client *client, const char *name, unsigned segments,
                                                           const sneck_lock_options *options, sneck_lock **lock_out,
                                                           sneck_error *error);

/*
 * Drops a handle. A hold that only this handle could release is released (one with SNECK_OWNER_HANDLE, or the calling
 * thread's when no other handle of this client has the name). No other call may use the handle. NULL is a no-op.
 */
SNECK_API void sneck_lock_free(sneck_lock *lock);

/*
 * Takes the lock. `wait_ms` 0 tries once, SNECK_FOREVER waits, else at most so long. The owner may acquire again: that
 * adds a level without I/O, and each level needs its own release. A point of thread cancellation while it waits; the
 * cancelled thread leaves nothing behind.
 *
 * SNECK_OK           held; sneck_token and sneck_remaining_ms tell more
 * SNECK_BUSY         somebody else has it (wait_ms 0)
 * SNECK_TIMEOUT      somebody else had it, or was before the caller in the queue, all the time
 * SNECK_CANCELED     interrupted or closed
 * SNECK_LOST         the owner lost this lock and has levels of it left to release; no level was added
 * SNECK_LIMIT        the owner has 255 levels
 * SNECK_DEADLOCK     the owner has it and the handle is not reentrant; or reads and wants to write; or threads of this
 *                    process would wait for each other in a circle, through any of its clients, and this one came last:
 *                    the message has the circle. Also if one of these waits has a limit, or one of the holds an end
 * SNECK_UNAVAILABLE  the store cannot be reached: it was not acquired
 * SNECK_UNKNOWN      no answer came in time; should it have been acquired, it is being released
 * SNECK_DENIED, SNECK_INVALID, SNECK_NO_MEMORY
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_acquire(sneck_lock *lock, int64_t wait_ms, sneck_error *error);

/*
 * As sneck_acquire, but this hold ends `lease_ms` (at least 100) after it began and is not renewed. As an inner level
 * it changes nothing about the outer hold's lease.
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_acquire_for(sneck_lock *lock, int64_t wait_ms, int64_t lease_ms,
                                                          sneck_error *error);

/*
 * Gives one level back; the outermost gives the lock back to the store.
 *
 * SNECK_OK           given back
 * SNECK_LOST         the hold had ended before; said for each level up to the outermost
 * SNECK_NOT_OWNER    the caller has no level; nothing was changed
 * SNECK_UNAVAILABLE, SNECK_UNKNOWN  the level is gone here; the store is told as soon as it answers, and frees the
 *                    lock by itself when the lease ends
 */
SNECK_API sneck_status sneck_release(sneck_lock *lock, sneck_error *error);

typedef sneck_status (*sneck_work_fn)(void *context, sneck_lock *lock);

/*
 * Runs `work` under the lock and releases it however `work` returns; the result is that of `work`, or SNECK_LOST if
 * `work` returned SNECK_OK but the lock was lost on the way. When the lock cannot be had, `busy` (may be NULL) runs
 * instead as the fallback, and its result is returned; without it the result of the acquire. Not for code that leaves
 * `work` by longjmp.
 */
SNECK_API sneck_status sneck_with(sneck_lock *lock, int64_t wait_ms, sneck_work_fn work, sneck_work_fn busy,
                                  void *context, sneck_error *error);

/*
 * Prolongs the caller's hold: from now on at least `lease_ms`, asked of the store before it returns. It never shortens.
 * A hold that is not renewed ends then; one that is renewed goes on with its own lease.
 *
 * SNECK_OK, SNECK_LOST, SNECK_NOT_OWNER, SNECK_UNAVAILABLE, SNECK_UNKNOWN (the old deadline still counts)
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_extend(sneck_lock *lock, int64_t lease_ms, sneck_error *error);

/*
 * Every caller that waits on this handle now returns SNECK_CANCELED. Not sticky: later calls wait again. A handle per
 * thread interrupts one thread. Not for signal handlers.
 */
SNECK_API void sneck_interrupt(sneck_lock *lock);

/*
 * Local answers, without I/O, exact at the moment of the call; each looks at the clock first. A lock that was waited for
 * may begin with a short time left, at most two seconds, and have its full lease some milliseconds later.
 */
SNECK_API bool sneck_is_held(const sneck_lock *lock);         /* by the caller (or the handle) */
SNECK_API unsigned sneck_hold_count(const sneck_lock *lock);  /* levels of the caller; 0 when not held or lost */
SNECK_API uint64_t sneck_token(const sneck_lock *lock);       /* 0 when not held or lost */
SNECK_API int64_t sneck_remaining_ms(const sneck_lock *lock); /* until the deadline; 0 when not held or lost */

/*
 * A file descriptor that becomes readable at the moment the current hold of this name is lost, also when no thread of
 * this process gets to run; -1 when nothing is held by the caller. It belongs to the handle, stays valid until the
 * handle is freed (of a read lock that a thread owns: until the thread has given it back) and is armed anew by each call
 * of this function. Do not read or close it.
 */
SNECK_API int sneck_lost_fd(sneck_lock *lock);

/* ---- Semaphores ------------------------------------------------------------------------------------------------- */

typedef struct sneck_semaphore sneck_semaphore;
typedef struct sneck_permit sneck_permit;

/* Start from SNECK_SEMAPHORE_OPTIONS_INIT and change what you need. */
typedef struct sneck_semaphore_options {
    size_t size;      /* set by the initialiser; lets later versions append fields */
    int64_t lease_ms; /* of each permit; 0: the client's; at least 100 */
    int64_t renew_ms; /* 0: a third of the lease; at most half of it; SNECK_NEVER: a permit ends with its lease */
    bool fair;        /* first come, first served: as it is in any case for those who wait */
    bool leased;      /* true by the initialiser; false: plain counting, in which a permit whose holder dies is gone */
    const char *why;  /* shown to others that look; at most 200 bytes; copied */
} sneck_semaphore_options;

/* clang-format off */
#define SNECK_SEMAPHORE_OPTIONS_INIT { .size = sizeof(sneck_semaphore_options), .leased = true }
/* clang-format on */

/*
 * A handle on the semaphore `name`, for any number of threads. No I/O. All users of a semaphore must agree on `leased`.
 * Permits outlive the handle.
 *
 * SNECK_INVALID      the name or an option is wrong
 * SNECK_UNSUPPORTED  the store cannot keep semaphores
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_semaphore_open(sneck_client *client, const char *name,
                                                             const sneck_semaphore_options *options,
                                                             sneck_semaphore **semaphore_out, sneck_error *error);
SNECK_API void sneck_semaphore_free(sneck_semaphore *semaphore);

/*
 * Sets how many permits there are, 0 to 2147483647: leased, in all (those that are out stay out, so that fewer may be
 * left than none for a while); plain, those that are left. Until it is set, nobody gets any.
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_semaphore_set_permits(sneck_semaphore *semaphore, int64_t count,
                                                                    sneck_error *error);

/* How many permits could be had now; never less than 0. */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_semaphore_available(sneck_semaphore *semaphore, int64_t *count_out,
                                                                  sneck_error *error);

/*
 * Takes `units` permits (at least 1) at once, as one sneck_permit. `wait_ms` and results as of sneck_acquire. Whoever
 * waits for many is not overtaken by those who want few.
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_semaphore_acquire(sneck_semaphore *semaphore, uint32_t units,
                                                                int64_t wait_ms, sneck_permit **permit_out,
                                                                sneck_error *error);

/* Takes all that are left, at least one: SNECK_BUSY when there is none. Leased semaphores only. */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_semaphore_drain(sneck_semaphore *semaphore, sneck_permit **permit_out,
                                                              sneck_error *error);

/* Adds permits to a plain semaphore, whoever took them, as releasing them does. SNECK_INVALID on a leased one. */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_semaphore_add(sneck_semaphore *semaphore, uint32_t units,
                                                            sneck_error *error);

/*
 * Gives the permits back, and frees the permit whatever the result. They go back at most once.
 *
 * SNECK_OK    given back
 * SNECK_LOST  their lease had ended: they went back before
 * SNECK_UNAVAILABLE, SNECK_UNKNOWN  as of sneck_release; of a plain semaphore: not given back, or perhaps
 */
SNECK_API sneck_status sneck_permit_release(sneck_permit *permit, sneck_error *error);

/* Prolongs the permit, as sneck_extend does a hold. SNECK_INVALID for a plain one, which has no lease. */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_permit_extend(sneck_permit *permit, int64_t lease_ms, sneck_error *error);

/* Local answers, without I/O. A plain permit is held until it is released, and has no token. */
SNECK_API bool sneck_permit_is_held(const sneck_permit *permit);
SNECK_API uint32_t sneck_permit_units(const sneck_permit *permit);
SNECK_API uint64_t sneck_permit_token(const sneck_permit *permit);       /* 0 when not held or lost */
SNECK_API int64_t sneck_permit_remaining_ms(const sneck_permit *permit); /* 0 when not held, lost or plain */
/* As sneck_lost_fd; belongs to the permit. -1 for a plain one. */
SNECK_API int sneck_permit_lost_fd(sneck_permit *permit);

/* ---- Count-down latches ------------------------------------------------------------------------------------------ */

typedef struct sneck_latch sneck_latch;

typedef struct sneck_latch_options {
    size_t size;      /* set by the initialiser; lets later versions append fields */
    int64_t lease_ms; /* of those who wait, so that the dead are forgotten; 0: the client's; at least 100 */
} sneck_latch_options;

/* clang-format off */
#define SNECK_LATCH_OPTIONS_INIT { .size = sizeof(sneck_latch_options) }
/* clang-format on */

/* A handle on the latch `name`, for any number of threads; latches have names of their own. No I/O. */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_latch_open(sneck_client *client, const char *name,
                                                         const sneck_latch_options *options, sneck_latch **latch_out,
                                                         sneck_error *error);
SNECK_API void sneck_latch_free(sneck_latch *latch);

/*
 * Sets what must be counted down, 1 to 2147483647, once per generation: SNECK_CONFLICT while the last one is not over.
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_latch_set(sneck_latch *latch, int64_t count, sneck_error *error);

/*
 * Counts down by one, unless it is 0 already; at 0 all who wait go on. However often the request had to be sent, it
 * counts once. SNECK_UNKNOWN: no answer came; it counted once or not at all.
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_latch_count_down(sneck_latch *latch, sneck_error *error);

/* Waits until it is 0; one that was never set is. `wait_ms` and results as of sneck_acquire. */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_latch_wait(sneck_latch *latch, int64_t wait_ms, sneck_error *error);

/* What is left to be counted down. */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_latch_count(sneck_latch *latch, int64_t *count_out, sneck_error *error);

/* ---- Conditions -------------------------------------------------------------------------------------------------- */

typedef struct sneck_condition sneck_condition;

/*
 * A condition of a lock: a mutex, or the write side, made by sneck_mutex or sneck_write_lock. Its name is 1 to 64 bytes
 * without '/', together with the lock's at most 511. The lock's handle must outlive it.
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_condition_open(sneck_lock *lock, const char *name,
                                                             sneck_condition **condition_out, sneck_error *error);
SNECK_API void sneck_condition_free(sneck_condition *condition);

/*
 * Gives the lock up, with all levels of the caller, waits for a signal, and takes it again, with as many levels, before
 * it returns. Somebody who changes what is waited for while holding the lock, and signals, is always heard. As always
 * with conditions: look again at what was waited for, whatever the result.
 *
 * SNECK_OK         signalled; the lock is held
 * SNECK_TIMEOUT    not signalled in time; the lock is held (taking it again may have needed longer)
 * SNECK_CANCELED   interrupted, by sneck_condition_interrupt or by sneck_interrupt of the lock; the lock is held, unless
 *                  the client was closed
 * SNECK_NOT_OWNER  the caller does not hold the lock
 * SNECK_LOST, SNECK_UNAVAILABLE, SNECK_UNKNOWN, SNECK_DEADLOCK, ...  the lock could not be given up properly, which ends the wait at
 *                  once, or could not be taken again: sneck_is_held says whether it is held
 *
 * A signal that came is used up by SNECK_OK alone; otherwise it is the next one's. The lock is taken again with the lease
 * of its handle, also after sneck_acquire_for.
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_condition_wait(sneck_condition *condition, int64_t wait_ms,
                                                             sneck_error *error);

/*
 * Wakes the one who has waited longest, in whatever process; or all who wait now. With nobody waiting nothing happens. A
 * signal whose receiver dies, or fails, before it has the lock again goes to the next one who waits. The caller should hold the
 * lock, and need not.
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_condition_signal(sneck_condition *condition, sneck_error *error);
SNECK_API SNECK_MUST_CHECK sneck_status sneck_condition_broadcast(sneck_condition *condition, sneck_error *error);
/* Every caller that waits on this handle now returns SNECK_CANCELED. */
SNECK_API void sneck_condition_interrupt(sneck_condition *condition);

/* ---- Optimistic versions ----------------------------------------------------------------------------------------- */

/* The version of a name; 0 for one that was never bumped. */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_version_get(sneck_client *client, const char *name, uint64_t *version_out,
                                                          sneck_error *error);

/*
 * Raises the version, if it is `expected`: by one or more, and never to a value it had before.
 *
 * SNECK_OK        raised
 * SNECK_CONFLICT  it is another one
 * SNECK_UNKNOWN   no answer came: read it again
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_version_bump(sneck_client *client, const char *name, uint64_t expected,
                                                           sneck_error *error);

/* Reads, computes, and commits by a bump of `version`. SNECK_CONFLICT: somebody was faster, call it again. */
typedef sneck_status (*sneck_version_fn)(void *context, uint64_t version);

/*
 * Reads the version and calls `work` with it, again and again while that returns SNECK_CONFLICT, after pauses that grow
 * and are jittered, for at most `wait_ms` (SNECK_FOREVER: without limit; 0: once). The result is that of `work`.
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_version_retry(sneck_client *client, const char *name, int64_t wait_ms,
                                                            sneck_version_fn work, void *context, sneck_error *error);

/* ---- Without blocking ------------------------------------------------------------------------------------------- */

typedef struct sneck_request sneck_request;

/*
 * Called exactly once, on a callback thread of the client; it may call sneck (not sneck_close). Results of one handle are
 * told one after the other, those of different handles may be told at the same time if one takes long.
 */
typedef void (*sneck_done_fn)(void *context, sneck_status status, const sneck_error *error);

/*
 * Starts an acquire or a release and returns. Results are those of sneck_acquire and sneck_release. The handle must
 * have SNECK_OWNER_HANDLE, else SNECK_INVALID, and must not be freed before `done` was called. If the call itself does
 * not return SNECK_OK, `done` is never called. `request_out` may be NULL; otherwise free the request.
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_acquire_async(sneck_lock *lock, int64_t wait_ms, sneck_done_fn done,
                                                            void *context, sneck_request **request_out,
                                                            sneck_error *error);
SNECK_API SNECK_MUST_CHECK sneck_status sneck_release_async(sneck_lock *lock, sneck_done_fn done, void *context,
                                                            sneck_request **request_out, sneck_error *error);

/* Asks that a waiting request end with SNECK_CANCELED. `done` is called in any case, with what really happened. */
SNECK_API void sneck_cancel(sneck_request *request);

/* Drops the request object, at any time; the request itself goes on. NULL is a no-op. */
SNECK_API void sneck_request_free(sneck_request *request);

/* ---- Health -------------------------------------------------------------------------------------------------------- */

/*
 * The watchdog is a thread of its own that looks at everything else each watchdog_ms, from the first acquire on. Its
 * five checks:
 */
typedef enum sneck_check_kind {
    SNECK_CHECK_RENEWAL,    /* does the renewal thread move, how late is it, do renewals succeed; replaced when stuck */
    SNECK_CHECK_STATE,      /* does the store still show our claims; one that is gone or another's is lost now */
    SNECK_CHECK_OWNER,      /* threads that hold: ended (noticed at once), stuck, or for too long */
    SNECK_CHECK_CONNECTION, /* does the store answer, how often was it connected; made anew when half open */
    SNECK_CHECK_RECOVERY    /* did what was done about earlier findings help */
} sneck_check_kind;
#define SNECK_CHECK_COUNT 5

/* The name of a check, such as "renewal"; "?" for a value that is none. */
SNECK_API const char *sneck_check_kind_name(sneck_check_kind kind);

typedef struct sneck_check_result {
    bool ok;           /* the last run found nothing; also when it never ran */
    unsigned in_a_row; /* runs in a row that found something */
    uint64_t runs;
    uint64_t findings;
    int64_t last_run_ms;     /* ago; -1: never */
    int64_t last_finding_ms; /* ago; -1: never */
    char message[64];        /* what the last run found; "" when nothing */
} sneck_check_result;

/* Start from SNECK_HEALTH_REPORT_INIT. Counters count from the open on. */
typedef struct sneck_health_report {
    size_t size;                                  /* set by the initialiser; lets later versions append fields */
    bool healthy;                                 /* every check is ok */
    bool watched;                                 /* the watchdog runs */
    sneck_check_result checks[SNECK_CHECK_COUNT]; /* by sneck_check_kind */

    uint64_t locks; /* names alive in this client */
    uint64_t held;
    uint64_t waiting; /* threads and requests that wait for a lock */
    uint64_t lost;

    uint64_t renewals; /* that succeeded */
    uint64_t renewals_failed;
    int64_t renewal_late_ms; /* the latest one: how long after it was due it was answered */
    unsigned renewal_threads_replaced;

    bool connected;        /* true also for a store without connection */
    int64_t round_trip_us; /* at the last look; -1: none yet, or no connection */
    uint64_t connects;
    uint64_t connect_failures; /* attempts that failed, and connections given up */

    uint64_t recoveries;         /* remedies that worked */
    uint64_t recoveries_failed;  /* that did not */
    uint64_t recoveries_put_off; /* that were not tried, because they had been tried too often */
    uint64_t alerts;

    uint64_t events_waiting; /* for callbacks and for sneck_event_next */
    uint64_t events_dropped;
} sneck_health_report;

/* clang-format off */
#define SNECK_HEALTH_REPORT_INIT { .size = sizeof(sneck_health_report) }
/* clang-format on */

/* How this client is, as it was at the last looks; no I/O. */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_health(sneck_client *client, sneck_health_report *report_out,
                                                     sneck_error *error);

/*
 * Runs the five checks now, on the calling thread, with everything that follows from them.
 *
 * SNECK_OK           nothing was found
 * SNECK_LOST         the store no longer had a lock of this client; its owner was told
 * SNECK_UNAVAILABLE  the store does not answer
 * SNECK_TIMEOUT      something does not move that should: the renewal thread, or the owner of a lock
 * SNECK_UNKNOWN      what was done about an earlier finding did not help
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_check(sneck_client *client, sneck_error *error);

/* Takes a piece of text that does not end in NUL. */
typedef void (*sneck_write_fn)(void *context, const char *text, size_t length);

/*
 * Writes everything that this client counts, as text for Prometheus (exposition format 0.0.4), by one call of `write`
 * or more on the calling thread. No I/O. Locks are counted by class: the name up to its first '/', at most 100 classes,
 * the rest as "other". Every series is there from the start.
 *
 * SNECK_OK, SNECK_INVALID, SNECK_NO_MEMORY
 */
SNECK_API sneck_status sneck_metrics_write(sneck_client *client, sneck_write_fn write, void *context);

/* ---- Looking, and breaking by force ------------------------------------------------------------------------------ */

/* Somebody who holds or waits, as the store knows it. */
typedef struct sneck_party {
    const char *owner; /* "<client uuid>:<thread id>" */
    const char *host;
    const char *why; /* "" when none was given */
    int64_t pid;
    int64_t age_ms;       /* since it acquired, or began to wait */
    int64_t remaining_ms; /* until its lease ends unless renewed */
    const char *mode;     /* "exclusive", "shared", "permit"; "take" for permits of a plain semaphore */
    uint32_t units;       /* of a permit; 0 otherwise */
    uint64_t token;       /* of a holder (the first of a block); 0 of a waiter */
} sneck_party;

/* Something that happened to a lock, as far as the store keeps it. */
typedef struct sneck_incident {
    int64_t time_ms;  /* wall clock, milliseconds since 1970 */
    const char *kind; /* "expired", "died", "broken" */
    const char *owner;
    const char *text; /* the reason given, or "" */
    uint64_t token;
} sneck_incident;

/* A node of a quorum (redlock:), as this client knows it. */
typedef struct sneck_node {
    const char *name; /* "host:port" */
    /*
     * "counts"; "young": it was started or emptied lately, and its votes do not count yet; "refuses": other clients use it
     * with another lease_max; "away"
     */
    const char *state;
    const char *trouble;     /* why it is away, or what else is wrong with it; "" otherwise */
    bool holds;              /* it has the vote of the holder */
    int64_t latency_us;      /* of its answers, smoothed; -1: it never answered */
    int64_t clock_offset_us; /* of its clock from the middle one of all nodes' clocks; 0 when it is not known */
    int64_t counts_in_ms;    /* "young": until its votes count; 0 otherwise */
} sneck_node;

typedef struct sneck_info {
    const char *name;
    bool held;
    bool fair;          /* how the holder took it */
    uint64_t token;     /* the holder's (the first of a block); when free, the last that was given out */
    sneck_party holder; /* only when held */
    size_t waiter_count;
    const sneck_party *waiters; /* in the order in which they are served */
    size_t incident_count;
    const sneck_incident *incidents; /* oldest first, at most 32 */
    size_t holder_count;
    const sneck_party *holders; /* all of them: readers, permits; `holder` is the first */
    int64_t permits;            /* of a semaphore; -1: never set */
    size_t node_count;
    const sneck_node *nodes; /* of a quorum, in the order of its URL; none on other stores */
} sneck_info;

/*
 * What the store knows about one lock; a name that nobody ever used is simply free. Free the result with
 * sneck_info_free. A snapshot: it may be out of date when it arrives.
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_inspect(sneck_client *client, const char *name, sneck_info **info_out,
                                                      sneck_error *error);
SNECK_API void sneck_info_free(sneck_info *info);

/* Returns false to stop the listing. `info` is valid during the call only. */
typedef bool (*sneck_list_fn)(void *context, const sneck_info *info);

/*
 * Calls `callback` for each lock that is held or waited for and whose name matches the shell pattern (NULL: all), in
 * the order of names. `*` and `?` match any character, also '/'.
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_list(sneck_client *client, const char *pattern, sneck_list_fn callback,
                                                   void *context, sneck_error *error);

/* What this client itself holds and waits for; no I/O. */
typedef struct sneck_local {
    const char *name;
    uint64_t token; /* 0 when nothing is held */
    unsigned holds;
    unsigned waiting; /* threads and requests of this client that wait for it */
    int64_t remaining_ms;
    int64_t last_renewal_ms; /* ago; -1 when it was not renewed yet */
} sneck_local;
typedef bool (*sneck_local_fn)(void *context, const sneck_local *local);
SNECK_API void sneck_list_local(sneck_client *client, sneck_local_fn callback, void *context);

/*
 * Takes a lock away from its holder, whoever that is: only with the token that sneck_inspect shows, so that nobody
 * breaks another hold than the one he looked at. The store keeps who did it and `reason` (1 to 200 bytes). The next
 * token is higher; the old holder is told at its next renewal at the latest.
 *
 * SNECK_OK        it was held with that token, and is free now (or the next waiter's)
 * SNECK_CONFLICT  it is free, or held with another token; nothing was changed
 */
SNECK_API SNECK_MUST_CHECK sneck_status sneck_break(sneck_client *client, const char *name, uint64_t token,
                                                    const char *reason, sneck_error *error);

#ifdef __cplusplus
}
#endif

#endif
