/* Everything that a client counts, as text for Prometheus. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/exposition.h"
#include "client/client.h"
#include "client/health.h"

static const snk_labels none = { .name = NULL };

static snk_labels label(const char *name, const char *value)
{
    return (snk_labels){ .name = name, .value = value };
}

static snk_labels of_lock(const char *lock, const char *second_name, const char *second_value)
{
    return (snk_labels){ .name = "lock", .value = lock, .second_name = second_name, .second_value = second_value };
}

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

static void write_histogram(snk_exposition *out, snk_labels labels, const snk_bounds *bounds,
                            const snk_histogram *histogram)
{
    uint64_t counts[SNK_BUCKETS + 1];
    for (size_t i = 0; i <= SNK_BUCKETS; i++)
        counts[i] = snk_counter_read(&histogram->counts[i]);
    int64_t sum_ns = atomic_load_explicit(&histogram->sum_ns, memory_order_relaxed);
    snk_exposition_histogram(out, labels, bounds->ns, SNK_BUCKETS, counts, sum_ns);
}

/* ---- Locks ---- */

/* What is seen by looking at the locks, by class. */
typedef struct tally {
    const snk_class *kin;
    uint64_t held;
    uint64_t waiting;
    int64_t oldest_ns;
} tally;

typedef struct census {
    uint64_t locks;
    size_t count;
    tally tallies[SNK_CLASSES_MAX + 1];
} census;

static void count_row(void *context, const snk_census_row *row)
{
    census *self = context;
    self->locks++;
    for (size_t i = 0; i < self->count; i++) {
        tally *found = &self->tallies[i];
        if (found->kin != row->entry->kin)
            continue;
        found->held += row->held;
        found->waiting += row->waiting;
        if (row->held_ns > found->oldest_ns)
            found->oldest_ns = row->held_ns;
        return;
    }
}

static void take_census(sneck_client *client, census *self)
{
    self->count = atomic_load_explicit(&client->metrics.class_count, memory_order_acquire);
    for (size_t i = 0; i < self->count; i++)
        self->tallies[i].kin = client->metrics.classes[i];
    snk_census_take(client, count_row, self);
}

static const char *const results[SNK_STATUS_COUNT] = {
    [SNECK_OK] = "acquired",       [SNECK_BUSY] = "busy",           [SNECK_TIMEOUT] = "timeout",
    [SNECK_CANCELED] = "canceled", [SNECK_LOST] = "lost",           [SNECK_UNAVAILABLE] = "unavailable",
    [SNECK_UNKNOWN] = "unknown",   [SNECK_DENIED] = "denied",       [SNECK_DEADLOCK] = "deadlock",
    [SNECK_LIMIT] = "limit",       [SNECK_NO_MEMORY] = "no-memory",
};

static void write_attempts(snk_exposition *out, const census *self)
{
    snk_exposition_family(out, "sneck_acquire_total", "counter",
                          "Acquires that ended, by result; re-entries not counted.");
    for (size_t i = 0; i < self->count; i++)
        for (size_t j = 0; j < SNK_STATUS_COUNT; j++)
            if (results[j] != NULL)
                snk_exposition_count(out, of_lock(self->tallies[i].kin->label, "result", results[j]),
                                     snk_counter_read(&self->tallies[i].kin->attempts[j]));
    snk_exposition_family(out, "sneck_lost_total", "counter", "Holds that ended without a release, by cause.");
    for (size_t i = 0; i < self->count; i++)
        for (size_t j = SNECK_CAUSE_EXPIRED; j <= SNECK_CAUSE_OVERDUE; j++)
            snk_exposition_count(out, of_lock(self->tallies[i].kin->label, "cause", sneck_cause_name((sneck_cause)j)),
                                 snk_counter_read(&self->tallies[i].kin->lost[j]));
}

static void write_lock_histograms(snk_exposition *out, const census *self)
{
    snk_exposition_family(out, "sneck_wait_seconds", "histogram", "From an acquire to the lock, of those that got it.");
    for (size_t i = 0; i < self->count; i++)
        write_histogram(out, label("lock", self->tallies[i].kin->label), &snk_bounds_of_locks,
                        &self->tallies[i].kin->waits);
    snk_exposition_family(out, "sneck_hold_seconds", "histogram", "How long locks were held.");
    for (size_t i = 0; i < self->count; i++)
        write_histogram(out, label("lock", self->tallies[i].kin->label), &snk_bounds_of_locks,
                        &self->tallies[i].kin->holds);
    snk_exposition_family(out, "sneck_hand_off_seconds", "histogram",
                          "From a release to the next owner in the same process.");
    for (size_t i = 0; i < self->count; i++)
        write_histogram(out, label("lock", self->tallies[i].kin->label), &snk_bounds_of_locks,
                        &self->tallies[i].kin->hand_offs);
}

static void write_gauges(snk_exposition *out, const census *self)
{
    snk_exposition_family(out, "sneck_held", "gauge", "Locks that are held now.");
    for (size_t i = 0; i < self->count; i++)
        snk_exposition_count(out, label("lock", self->tallies[i].kin->label), self->tallies[i].held);
    snk_exposition_family(out, "sneck_waiting", "gauge", "Threads and requests that wait for a lock now.");
    for (size_t i = 0; i < self->count; i++)
        snk_exposition_count(out, label("lock", self->tallies[i].kin->label), self->tallies[i].waiting);
    snk_exposition_family(out, "sneck_oldest_hold_seconds", "gauge", "Age of the oldest hold; 0 when none is held.");
    for (size_t i = 0; i < self->count; i++)
        snk_exposition_value(out, label("lock", self->tallies[i].kin->label), seconds(self->tallies[i].oldest_ns));
    snk_exposition_family(out, "sneck_locks", "gauge", "Lock names that are alive in the client.");
    snk_exposition_count(out, none, self->locks);
}

/* ---- Renewal and watchdog ---- */

static void write_renewals(snk_exposition *out, const snk_metrics *metrics)
{
    snk_exposition_family(out, "sneck_renewals_total", "counter", "Renewals of holds, by result.");
    snk_exposition_count(out, label("result", "ok"), snk_counter_read(&metrics->events[SNECK_EVENT_RENEWED]));
    snk_exposition_count(out, label("result", "failed"),
                         snk_counter_read(&metrics->events[SNECK_EVENT_RENEWAL_FAILED]));
    snk_exposition_family(out, "sneck_renewal_margin_seconds", "histogram",
                          "What was left of the lease when a renewal succeeded.");
    write_histogram(out, none, &snk_bounds_of_leases, &metrics->margins);
    snk_exposition_family(out, "sneck_renewal_lateness_seconds", "histogram",
                          "How long after it was due a renewal was answered.");
    write_histogram(out, none, &snk_bounds_of_leases, &metrics->lateness);
}

static void write_checks(snk_exposition *out, const snk_watchdog *engine)
{
    snk_exposition_family(out, "sneck_watchdog_checks_total", "counter", "Checks that the watchdog has made.");
    for (size_t i = 0; i < SNECK_CHECK_COUNT; i++)
        snk_exposition_count(out, label("check", sneck_check_kind_name((sneck_check_kind)i)), engine->checks[i].runs);
    snk_exposition_family(out, "sneck_watchdog_findings_total", "counter", "What the watchdog has found, by kind.");
    for (size_t i = SNK_FINDING_NONE + 1; i < SNK_FINDING_COUNT; i++)
        snk_exposition_count(out, label("finding", snk_finding_name((snk_finding)i)), engine->by_finding[i]);
    snk_exposition_family(out, "sneck_watchdog_alerts_total", "counter",
                          "Checks that found something several times in a row.");
    for (size_t i = 0; i < SNECK_CHECK_COUNT; i++)
        snk_exposition_count(out, label("check", sneck_check_kind_name((sneck_check_kind)i)), engine->alerts[i]);
}

/* So that one that hangs in its first round is seen too. */
static double round_age(sneck_client *client, const snk_watchdog *engine)
{
    int64_t run_at_ns = engine->checks[SNECK_CHECK_RECOVERY].run_at_ns; /* the last one of a round */
    if (run_at_ns == 0)
        run_at_ns = atomic_load(&client->watch.started_at_ns);
    return run_at_ns == 0 ? 0 : seconds(snk_now_ns() - run_at_ns);
}

static void write_watchdog(snk_exposition *out, sneck_client *client, const snk_watchdog *engine)
{
    int64_t period_ms = atomic_load(&client->watch.period_ms);
    write_checks(out, engine);
    snk_exposition_family(out, "sneck_watchdog_round_age_seconds", "gauge",
                          "Since the watchdog's last round was complete, or since it began; 0: it is off.");
    snk_exposition_value(out, none, round_age(client, engine));
    snk_exposition_family(out, "sneck_watchdog_period_seconds", "gauge", "How often the watchdog looks; 0: it is off.");
    snk_exposition_value(out, none, period_ms == INT64_MAX ? 0 : (double)period_ms / 1e3);
    snk_exposition_family(out, "sneck_recoveries_total", "counter",
                          "What was done about findings, and what came of it.");
    for (size_t i = SNK_REMEDY_NOTIFY + 1; i < SNK_REMEDY_COUNT; i++) {
        const snk_remedy_state *state = &engine->remedies[i];
        snk_labels labels = label("remedy", snk_remedy_name((snk_remedy)i));
        labels.second_name = "result";
        labels.second_value = "worked";
        snk_exposition_count(out, labels, state->worked);
        labels.second_value = "failed";
        snk_exposition_count(out, labels, state->failed);
        labels.second_value = "put-off";
        snk_exposition_count(out, labels, state->put_off);
    }
}

/* ---- The store ---- */

static void write_requests(snk_exposition *out, const snk_metrics *metrics)
{
    static const char *const asks[SNK_ASK_COUNT] = {
        [SNK_ASK_ACQUIRE] = "acquire", [SNK_ASK_RENEW] = "renew", [SNK_ASK_RELEASE] = "release"
    };
    snk_exposition_family(out, "sneck_backend_request_seconds", "histogram", "How long the store took, by request.");
    for (size_t i = 0; i < SNK_ASK_COUNT; i++)
        write_histogram(out, label("op", asks[i]), &snk_bounds_of_requests, &metrics->requests[i]);
    snk_exposition_family(out, "sneck_backend_errors_total", "counter",
                          "Requests to the store that failed or were not answered, by kind.");
    static const sneck_status kinds[] = { SNECK_UNAVAILABLE, SNECK_UNKNOWN, SNECK_DENIED,
                                          SNECK_INVALID,     SNECK_LIMIT,   SNECK_NO_MEMORY };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        snk_exposition_count(out, label("kind", kinds[i] == SNECK_INVALID ? "invalid" : results[kinds[i]]),
                             snk_counter_read(&metrics->errors[kinds[i]]));
}

static void write_connection(snk_exposition *out, sneck_client *client, const snk_link_report *link)
{
    snk_store_state state = { .connected = true };
    if (client->store->ops->describe != NULL)
        client->store->ops->describe(client->store, &state);
    snk_exposition_family(out, "sneck_backend_up", "gauge", "1 when the store is connected, or needs no connection.");
    snk_exposition_count(out, none, state.connected);
    snk_exposition_family(out, "sneck_backend_reconnects_total", "counter", "Connections that were made anew.");
    snk_exposition_count(out, none, snk_store_reconnects(&state));
    snk_exposition_family(out, "sneck_backend_connect_failures_total", "counter",
                          "Attempts to connect that failed, and connections given up.");
    snk_exposition_count(out, none, state.failures);
    snk_exposition_family(out, "sneck_backend_in_flight", "gauge", "Requests that wait for their answer.");
    snk_exposition_count(out, none, state.in_flight);
    snk_exposition_family(out, "sneck_backend_round_trip_seconds", "gauge",
                          "Round trip of the watchdog's last probe; 0 before the first.");
    snk_exposition_value(out, none, link->round_trip_ns < 0 ? 0 : seconds(link->round_trip_ns));
    snk_exposition_family(out, "sneck_clock_offset_seconds", "gauge",
                          "The store's wall clock minus ours, at the last probe.");
    snk_exposition_value(out, none, link->has_clock ? seconds(link->clock_offset_ns) : 0);
    snk_exposition_family(out, "sneck_quorum_nodes", "gauge",
                          "Nodes of a quorum, all and those that are up; 0: it is none.");
    snk_exposition_count(out, label("state", "all"), state.nodes);
    snk_exposition_count(out, label("state", "up"), state.nodes_up);
}

/* Each family in one piece, as the format wants it. */
typedef struct node_writer {
    snk_exposition *out;
    double (*value_of)(const sneck_node *node);
} node_writer;

static void write_node(void *context, const sneck_node *node)
{
    const node_writer *self = context;
    snk_exposition_value(self->out, label("node", node->name), self->value_of(node));
}

static double up_of(const sneck_node *node)
{
    return strcmp(node->state, "away") != 0;
}

static double counts_of(const sneck_node *node)
{
    return strcmp(node->state, "counts") == 0;
}

static double latency_of(const sneck_node *node)
{
    return node->latency_us < 0 ? 0 : (double)node->latency_us / 1e6;
}

static double offset_of(const sneck_node *node)
{
    return (double)node->clock_offset_us / 1e6;
}

static void write_nodes(snk_exposition *out, sneck_client *client)
{
    static const struct {
        const char *name;
        const char *help;
        double (*value_of)(const sneck_node *node);
    } families[] = {
        { "sneck_quorum_node_up", "1 when the last request to this node was answered.", up_of },
        { "sneck_quorum_node_counts", "1 when its votes count; 0: it is away, or was started or emptied lately.",
          counts_of },
        { "sneck_quorum_node_latency_seconds", "How long its answers take, smoothed; 0: it never answered.",
          latency_of },
        { "sneck_quorum_node_clock_offset_seconds", "Its clock minus the middle one of all nodes' clocks.", offset_of },
    };
    if (client->store->ops->each_node == NULL)
        return;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        node_writer writer = { .out = out, .value_of = families[i].value_of };
        snk_exposition_family(out, families[i].name, "gauge", families[i].help);
        client->store->ops->each_node(client->store, write_node, &writer);
    }
}

/* ---- Events and the process ---- */

static void write_events(snk_exposition *out, sneck_client *client)
{
    uint64_t waiting = 0;
    uint64_t dropped = 0;
    snk_events_count(client, &waiting, &dropped);
    snk_exposition_family(out, "sneck_events_total", "counter", "What happened to locks, by kind.");
    for (size_t i = SNECK_EVENT_ACQUIRED; i < SNK_EVENT_KIND_COUNT; i++)
        snk_exposition_count(out, label("kind", sneck_event_kind_name((sneck_event_kind)i)),
                             snk_counter_read(&client->metrics.events[i]));
    snk_exposition_family(out, "sneck_events_waiting", "gauge",
                          "Events that wait for the callback thread or a reader.");
    snk_exposition_count(out, none, waiting);
    snk_exposition_family(out, "sneck_events_dropped_total", "counter",
                          "Events that were dropped because too many waited.");
    snk_exposition_count(out, none, dropped);
}

static double resident_bytes(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return 0;
    char line[128] = "";
    if (fgets(line, sizeof line, file) != NULL) {
        const char *second = strchr(line, ' ');
        pages = second == NULL ? 0 : strtol(second, NULL, 10);
    }
    (void)fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void write_process(snk_exposition *out)
{
    struct rusage usage;
    double cpu = 0;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        cpu = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
              (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    snk_exposition_family(out, "sneck_process_cpu_seconds_total", "counter", "Processor time of the whole process.");
    snk_exposition_value(out, none, cpu);
    snk_exposition_family(out, "sneck_process_resident_memory_bytes", "gauge", "Resident memory of the whole process.");
    snk_exposition_value(out, none, resident_bytes());
}

static void write_all(snk_exposition *out, sneck_client *client, census *self)
{
    snk_watchdog engine;
    snk_link_report link;
    snk_watch_show(client, &engine, &link);
    take_census(client, self);
    snk_exposition_family(out, "sneck_build_info", "gauge", "Version of the library, and the store that it uses.");
    snk_labels build = label("version", sneck_version_string());
    build.second_name = "backend";
    build.second_value = client->metrics.backend;
    snk_exposition_count(out, build, 1);
    write_attempts(out, self);
    write_lock_histograms(out, self);
    write_gauges(out, self);
    write_renewals(out, &client->metrics);
    write_watchdog(out, client, &engine);
    write_requests(out, &client->metrics);
    write_connection(out, client, &link);
    write_nodes(out, client);
    write_events(out, client);
    write_process(out);
}

sneck_status sneck_metrics_write(sneck_client *client, sneck_write_fn write, void *context)
{
    if (write == NULL)
        return SNECK_INVALID;
    sneck_status status = snk_client_enter(client, NULL);
    if (status != SNECK_OK)
        return status;
    snk_exposition *out = malloc(sizeof *out);
    census *self = calloc(1, sizeof *self);
    if (out != NULL && self != NULL) {
        snk_exposition_begin(out, write, context);
        write_all(out, client, self);
        snk_exposition_end(out);
    } else {
        status = SNECK_NO_MEMORY;
    }
    free(out);
    free(self);
    snk_gate_leave(&client->gate);
    return status;
}
