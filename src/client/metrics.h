/*
 * Counting what happens, for sneck_health and sneck_metrics_write.
 *
 * Where it is cheap to count, that is in the turns of locks and with the times that these have read anyway: no clock is
 * read here, and no lock is taken. What can be seen by looking (how many are held, who waits) is looked at when somebody
 * asks, and not counted.
 *
 * Locks are counted by class: the name up to its first '/'. There are at most SNK_CLASSES_MAX of them; what comes later
 * is `other`.
 */
#ifndef SNK_CLIENT_METRICS_H
#define SNK_CLIENT_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/name.h"
#include "client/entry.h"
#include "client/histogram.h"
#include "engine/machine.h"
#include "engine/watchdog.h"
#include "sneck.h"

#define SNK_CLASSES_MAX 100
#define SNK_STATUS_COUNT (SNECK_NO_MEMORY + 1)
#define SNK_CAUSE_COUNT (SNECK_CAUSE_OWNER_DIED + 1)
#define SNK_EVENT_KIND_COUNT (SNECK_EVENT_BROKEN + 1)
#define SNK_ASK_COUNT (SNK_ASK_RELEASE + 1)
#define SNK_ANSWER_COUNT (SNK_ANSWER_UNCERTAIN + 1)

typedef _Atomic uint64_t snk_counter;

struct snk_class {
    snk_counter attempts[SNK_STATUS_COUNT]; /* by result */
    snk_counter lost[SNK_CAUSE_COUNT];
    snk_histogram waits;
    snk_histogram holds;
    snk_histogram hand_offs; /* inside this process */
    char label[SNK_CLASS_LABEL_SIZE];
};

typedef struct snk_metrics {
    bool is_off;                             /* nothing is counted; set before anything happens */
    snk_class *classes[SNK_CLASSES_MAX + 1]; /* owned; added under registry.mutex; the first is `other` */
    _Atomic size_t class_count;              /* stored (release) after the class, loaded (acquire) by readers */
    snk_counter events[SNK_EVENT_KIND_COUNT];
    snk_histogram margins;  /* what was left of the lease when a renewal succeeded */
    snk_histogram lateness; /* how long after it was due a renewal was answered */
    _Atomic int64_t late_ns_max;
    _Atomic int64_t late_ns; /* the latest renewal since the watchdog's last look, and its lease */
    _Atomic int64_t late_lease_ns;
    snk_histogram requests[SNK_ASK_COUNT]; /* how long the store took */
    snk_counter answers[SNK_ASK_COUNT][SNK_ANSWER_COUNT];
    snk_counter errors[SNK_STATUS_COUNT]; /* of requests that failed or were not answered */
    char backend[16];                     /* the scheme of the store */
} snk_metrics;

/* Of waits, holds and hand-offs; of margins and lateness; of requests. */
extern const snk_bounds snk_bounds_of_locks;
extern const snk_bounds snk_bounds_of_leases;
extern const snk_bounds snk_bounds_of_requests;

/* False when out of memory. */
bool snk_metrics_init(snk_metrics *metrics);
void snk_metrics_deinit(snk_metrics *metrics);

/* The class of a name, made if need be. Under registry.mutex. */
snk_class *snk_metrics_class(snk_metrics *metrics, const char *name);

/* A step was taken. */
void snk_metrics_take_locked(snk_metrics *metrics, const snk_entry *entry, const snk_event *event,
                             const snk_actions *actions);
/* Something happened that no step of a machine has noted. */
void snk_metrics_event(snk_metrics *metrics, sneck_event_kind kind);
/* An acquire ended otherwise than by SNECK_OK. */
void snk_metrics_refused(snk_metrics *metrics, const snk_entry *entry, sneck_status status);

/* Fills in what the watchdog wants to know about renewals; the latest one counts from now on. */
void snk_metrics_renewals(snk_metrics *metrics, snk_renewal_facts *facts);

static inline uint64_t snk_counter_read(const snk_counter *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif
