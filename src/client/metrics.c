#include "client/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/name.h"

#define US SNK_NS_PER_US
#define MS SNK_NS_PER_MS
#define S SNK_NS_PER_S

const snk_bounds snk_bounds_of_locks = { .ns = { 100 * US, 500 * US, 1 * MS, 5 * MS, 10 * MS, 50 * MS, 100 * MS,
                                                 500 * MS, 1 * S, 5 * S, 10 * S, 30 * S, 60 * S, 300 * S, 600 * S } };
const snk_bounds snk_bounds_of_leases = { .ns = { 1 * MS, 5 * MS, 10 * MS, 50 * MS, 100 * MS, 250 * MS, 500 * MS, 1 * S,
                                                  2500 * MS, 5 * S, 10 * S, 20 * S, 30 * S, 60 * S, 300 * S } };
const snk_bounds snk_bounds_of_requests = { .ns = { 10 * US, 50 * US, 100 * US, 250 * US, 500 * US, 1 * MS, 2500 * US,
                                                    5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 500 * MS, 1 * S,
                                                    3 * S } };

void snk_metrics_deinit(snk_metrics *metrics)
{
    for (size_t i = 0; i <= SNK_CLASSES_MAX; i++)
        free(metrics->classes[i]);
}

/* ---- Classes ---- */

static snk_class *find_class(const snk_metrics *metrics, const char *label)
{
    size_t count = atomic_load_explicit(&metrics->class_count, memory_order_acquire);
    for (size_t i = 0; i < count; i++)
        if (strcmp(metrics->classes[i]->label, label) == 0)
            return metrics->classes[i];
    return NULL;
}

static snk_class *new_class(const char *label)
{
    snk_class *made = calloc(1, sizeof *made);
    if (made != NULL)
        (void)snk_copy_text(made->label, sizeof made->label, label);
    return made;
}

/* Without memory, or when there are too many, locks are counted together with others. */
static snk_class *add_class(snk_metrics *metrics, const char *label)
{
    size_t count = atomic_load_explicit(&metrics->class_count, memory_order_relaxed);
    snk_class *made = count > SNK_CLASSES_MAX ? NULL : new_class(label);
    if (made == NULL)
        return metrics->classes[0];
    metrics->classes[count] = made;
    atomic_store_explicit(&metrics->class_count, count + 1, memory_order_release);
    return made;
}

bool snk_metrics_init(snk_metrics *metrics)
{
    memset(metrics, 0, sizeof *metrics);
    metrics->classes[0] = new_class("other");
    atomic_init(&metrics->class_count, 1);
    return metrics->classes[0] != NULL;
}

snk_class *snk_metrics_class(snk_metrics *metrics, const char *name)
{
    char label[SNK_CLASS_LABEL_SIZE];
    snk_name_class(name, label);
    snk_class *found = find_class(metrics, label);
    return found != NULL ? found : add_class(metrics, label);
}

/* ---- Counting ---- */

static void raise_counter(snk_counter *counter)
{
    (void)atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static void raise_to(_Atomic int64_t *word, int64_t value)
{
    int64_t seen = atomic_load_explicit(word, memory_order_relaxed);
    while (value > seen &&
           !atomic_compare_exchange_weak_explicit(word, &seen, value, memory_order_relaxed, memory_order_relaxed))
        ;
}

static void count_renewal(snk_metrics *metrics, const snk_entry *entry, const snk_note *note)
{
    if (!note->of_offer)
        snk_histogram_add(&metrics->margins, &snk_bounds_of_leases, note->took_ns);
    if (note->delay_ns < 0)
        return;
    snk_histogram_add(&metrics->lateness, &snk_bounds_of_leases, note->delay_ns);
    raise_to(&metrics->late_ns_max, note->delay_ns);
    if (note->delay_ns <= atomic_load_explicit(&metrics->late_ns, memory_order_relaxed))
        return;
    /* The two words are of one renewal, or nearly: the watchdog only wants to know whether something is late. */
    if (entry->machine.hold != NULL)
        atomic_store_explicit(&metrics->late_lease_ns, entry->machine.hold->terms.lease_ns, memory_order_relaxed);
    raise_to(&metrics->late_ns, note->delay_ns);
}

static void count_note(snk_metrics *metrics, const snk_entry *entry, const snk_note *note)
{
    snk_class *kin = entry->kin;
    raise_counter(&metrics->events[note->kind]);
    if (note->kind == SNECK_EVENT_RENEWED)
        count_renewal(metrics, entry, note);
    if (note->kind == SNECK_EVENT_ACQUIRED) {
        raise_counter(&kin->attempts[SNECK_OK]);
        snk_histogram_add(&kin->waits, &snk_bounds_of_locks, note->took_ns);
        if (note->delay_ns >= 0)
            snk_histogram_add(&kin->hand_offs, &snk_bounds_of_locks, note->delay_ns);
    } else if (note->kind == SNECK_EVENT_RELEASED || (note->kind == SNECK_EVENT_LOST && note->hold != NULL)) {
        snk_histogram_add(&kin->holds, &snk_bounds_of_locks, note->took_ns);
    }
    if (note->kind == SNECK_EVENT_LOST)
        raise_counter(&kin->lost[note->cause]);
}

static void count_answer(snk_metrics *metrics, const snk_event *event)
{
    const snk_send *send = event->send;
    const snk_answer *answer = event->answer;
    if (send->check)
        return;
    snk_histogram_add(&metrics->requests[send->ask], &snk_bounds_of_requests, event->now_ns - send->sent_at_ns);
    raise_counter(&metrics->answers[send->ask][answer->kind]);
    if (answer->kind == SNK_ANSWER_FAILED || answer->kind == SNK_ANSWER_UNCERTAIN)
        raise_counter(&metrics->errors[answer->error.status]);
}

void snk_metrics_take_locked(snk_metrics *metrics, const snk_entry *entry, const snk_event *event,
                             const snk_actions *actions)
{
    if (metrics->is_off)
        return;
    if (event->kind == SNK_EVENT_REPLY)
        count_answer(metrics, event);
    for (uint32_t i = 0; i < actions->note_count; i++)
        count_note(metrics, entry, &actions->notes[i]);
}

void snk_metrics_event(snk_metrics *metrics, sneck_event_kind kind)
{
    if (!metrics->is_off)
        raise_counter(&metrics->events[kind]);
}

void snk_metrics_refused(snk_metrics *metrics, const snk_entry *entry, sneck_status status)
{
    if (!metrics->is_off && status < SNK_STATUS_COUNT)
        raise_counter(&entry->kin->attempts[status]);
}

void snk_metrics_renewals(snk_metrics *metrics, snk_renewal_facts *facts)
{
    facts->succeeded = snk_counter_read(&metrics->events[SNECK_EVENT_RENEWED]);
    facts->failed = snk_counter_read(&metrics->events[SNECK_EVENT_RENEWAL_FAILED]);
    facts->late_ns = atomic_exchange_explicit(&metrics->late_ns, 0, memory_order_relaxed);
    facts->lease_ns = atomic_load_explicit(&metrics->late_lease_ns, memory_order_relaxed);
}
