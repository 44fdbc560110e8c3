/*
 * Calling the application: its on_event, its log, and the `done` of its requests.
 *
 * What must come one after the other is a lane: the events of one lock for one listener, the results of one handle, the
 * lines of the log. Lanes do not wait for each other. Usually one thread serves all of them, in the order in which
 * things happened: the leader. While it is inside a callback, a second one stands by; if that callback takes long and
 * something else could be called, the one that stands by leads from then on, and another one will stand by. So a thread
 * is started for each callback that takes long, and none for those that do not. Who comes back and is not the leader
 * any more stands by, or ends if somebody does already.
 */
#ifndef SNK_CLIENT_CALLBACKS_H
#define SNK_CLIENT_CALLBACKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "client/ear.h"
#include "client/event_queue.h"
#include "sneck.h"

typedef enum snk_lane_kind {
    SNK_LANE_NONE,
    SNK_LANE_EVENTS,
    SNK_LANE_RESULTS,
    SNK_LANE_LOG
} snk_lane_kind;

typedef struct snk_lane {
    snk_lane_kind kind;
    uint64_t who;           /* EVENTS: the ear, 0: the client's on_event. RESULTS: the owner */
    const snk_entry *entry; /* NULL: of no lock */
} snk_lane;

/* A thread that calls; under callbacks.mutex. */
typedef struct snk_teller {
    sneck_client *client; /* borrowed; NULL: no such thread */
    pthread_t thread;
    snk_lane lane;  /* that it is calling for now; NONE: it is in no callback */
    uint64_t calls; /* that it has begun */
    bool has_ended; /* and is to be joined */
} snk_teller;

/*
 * Waking a thread costs more than everything else about an event. So a leader that has just been busy naps for a moment
 * before it sleeps, and only what is urgent wakes it from that, or that much waits.
 */
typedef enum snk_sleep {
    SNK_SLEEP_NONE,
    SNK_SLEEP_NAP,
    SNK_SLEEP_SOUND
} snk_sleep;

typedef struct snk_callbacks {
    pthread_mutex_t mutex;   /* a leaf: nothing is taken under it, and it is not held while a callback runs */
    pthread_cond_t work;     /* the leader has something to do */
    pthread_cond_t trouble;  /* who stands by should look at the leader */
    pthread_cond_t returned; /* a callback has returned */
    snk_event_queue events;
    snk_list results; /* requests whose `done` is to be called */
    snk_list lines;   /* for the application's log */
    size_t line_count;
    uint64_t lines_dropped;
    snk_teller tellers[SNK_CALLBACK_THREADS_MAX];
    size_t busy;         /* tellers that are in a callback */
    snk_teller *leader;  /* takes what is to be called next; may be inside a callback */
    snk_teller *standby; /* NULL: nobody */
    snk_sleep sleep;     /* of the leader */
    bool is_watched;     /* who stands by waits for the leader to come back, for a limited time */
    bool is_running;
    bool is_stopping;
} snk_callbacks;

void snk_callbacks_init(snk_callbacks *callbacks);
/* Drops what was not called; no other thread is there any more. */
void snk_callbacks_deinit(sneck_client *client);

/* A thread calls from now on, and events are queued. SNECK_NO_MEMORY when it cannot be started. */
sneck_status snk_callbacks_start(sneck_client *client, sneck_error *error);
/* Everything that is queued has been called, and has returned, when it returns. */
void snk_callbacks_stop(sneck_client *client);

/*
 * An event for everybody who listens: the client, and the ears of its entry (locked, if it has one). Of events that
 * were dropped for it up to `room` entries are put into `unpin`, to be unpinned later; their number is returned.
 */
size_t snk_callbacks_push_event_locked(sneck_client *client, const snk_record *record, const char *detail,
                                       snk_entry *unpin[], size_t room);

/* The result of a request is to be told. */
void snk_callbacks_push_result(sneck_client *client, sneck_request *request);

/* A line for the application's log; copied. When too many wait it is dropped, and counted. */
void snk_callbacks_push_line(sneck_client *client, sneck_log_level level, const char *text);

/* How many events wait to be told, and how many were dropped because too many waited. */
void snk_callbacks_count(sneck_client *client, uint64_t *waiting_out, uint64_t *dropped_out);

/*
 * What waits for this ear, which is detached, is dropped. Returns when no callback of it runs, unless it is called from
 * that callback.
 */
void snk_callbacks_forget_ear(sneck_client *client, const snk_ear *ear);

/* True on a thread that calls. */
bool snk_callbacks_is_own_thread(sneck_client *client);

/* ---- Between the queues and the threads ---- */

/* What is to be called. */
typedef struct snk_job {
    snk_lane lane;
    snk_record record; /* EVENTS */
    snk_link *link;    /* RESULTS, LOG */
} snk_job;

bool snk_callbacks_is_busy_locked(const snk_callbacks *callbacks, const snk_lane *lane);
/* Is there anything that could be called now? And anything at all? */
bool snk_callbacks_has_ready_locked(const snk_callbacks *callbacks);
bool snk_callbacks_is_empty_locked(const snk_callbacks *callbacks);
/* Takes the first thing out that could be called now. False: there is none. */
bool snk_callbacks_take_locked(snk_callbacks *callbacks, snk_job *job_out);
/* Calls, without any lock held, and frees what the job had. */
void snk_callbacks_call(sneck_client *client, const snk_job *job);

sneck_status snk_callbacks_start_locked(sneck_client *client, sneck_error *error);
/* Something for `lane` was queued. */
void snk_callbacks_wake_locked(snk_callbacks *callbacks, const snk_lane *lane, bool is_urgent);

#endif
