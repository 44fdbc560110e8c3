/* How a client is: sneck_health and sneck_check. */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/client.h"
#include "client/health.h"
#include "client/watch_round.h"

static int64_t ago_ms(int64_t at_ns, int64_t now_ns)
{
    return at_ns == 0 ? -1 : (now_ns - at_ns) / SNK_NS_PER_MS;
}

static void show_check(const snk_check *check, int64_t now_ns, sneck_check_result *result)
{
    result->ok = check->last == SNK_FINDING_NONE;
    result->in_a_row = check->in_a_row;
    result->runs = check->runs;
    result->findings = check->findings;
    result->last_run_ms = ago_ms(check->run_at_ns, now_ns);
    result->last_finding_ms = ago_ms(check->found_at_ns, now_ns);
    (void)snk_copy_text(result->message, sizeof result->message, result->ok ? "" : snk_finding_name(check->last));
}

static void show_watchdog(sneck_client *client, sneck_health_report *report)
{
    snk_watchdog engine;
    snk_link_report link;
    int64_t now_ns = snk_now_ns();
    snk_watch_show(client, &engine, &link);
    report->healthy = true;
    for (size_t i = 0; i < SNECK_CHECK_COUNT; i++) {
        show_check(&engine.checks[i], now_ns, &report->checks[i]);
        report->healthy &= report->checks[i].ok;
        report->alerts += engine.alerts[i];
    }
    for (size_t i = 0; i < SNK_REMEDY_COUNT; i++) {
        report->recoveries += engine.remedies[i].worked;
        report->recoveries_failed += engine.remedies[i].failed;
        report->recoveries_put_off += engine.remedies[i].put_off;
    }
    report->round_trip_us = link.round_trip_ns < 0 ? -1 : link.round_trip_ns / SNK_NS_PER_US;
    report->renewal_threads_replaced = (unsigned)atomic_load(&client->watch.replaced);
}

void snk_census_take(sneck_client *client, snk_census_fn visit, void *context)
{
    int64_t now_ns = snk_now_ns();
    for (snk_entry *entry = snk_registry_first(&client->registry); entry != NULL;
         entry = snk_registry_next(&client->registry, entry)) {
        snk_census_row row = { .entry = entry };
        (void)pthread_mutex_lock(&entry->mutex);
        const snk_machine *machine = &entry->machine;
        row.held = machine->hold != NULL && machine->hold->owner != 0 && snk_deadline_peek(&machine->deadline) > now_ns;
        row.held_ns = row.held ? now_ns - machine->hold->since_ns : 0;
        for (snk_link *link = snk_list_first(&machine->waiters); link != NULL;
             link = snk_list_next(&machine->waiters, link))
            row.waiting++;
        (void)pthread_mutex_unlock(&entry->mutex);
        visit(context, &row);
    }
}

static void add_row(void *context, const snk_census_row *row)
{
    sneck_health_report *report = context;
    report->locks++;
    report->held += row->held;
    report->waiting += row->waiting;
}

static void show_counters(sneck_client *client, sneck_health_report *report)
{
    const snk_metrics *metrics = &client->metrics;
    report->lost = snk_counter_read(&metrics->events[SNECK_EVENT_LOST]);
    report->renewals = snk_counter_read(&metrics->events[SNECK_EVENT_RENEWED]);
    report->renewals_failed = snk_counter_read(&metrics->events[SNECK_EVENT_RENEWAL_FAILED]);
    report->renewal_late_ms = atomic_load_explicit(&metrics->late_ns_max, memory_order_relaxed) / SNK_NS_PER_MS;
    snk_events_count(client, &report->events_waiting, &report->events_dropped);
}

static void show_connection(sneck_client *client, sneck_health_report *report)
{
    const snk_store_ops *ops = client->store->ops;
    snk_store_state state = { .connected = true };
    if (ops->describe != NULL)
        ops->describe(client->store, &state);
    report->connected = state.connected;
    report->connects = state.connects;
    report->connect_failures = state.failures;
}

static bool is_watched(sneck_client *client)
{
    (void)pthread_mutex_lock(&client->start_mutex);
    bool watched = client->watch.is_running;
    (void)pthread_mutex_unlock(&client->start_mutex);
    return watched;
}

sneck_status sneck_health(sneck_client *client, sneck_health_report *report_out, sneck_error *error)
{
    if (report_out == NULL || report_out->size < sizeof report_out->size || report_out->size > 4096)
        return snk_fail(error, SNECK_INVALID, 0, "the report: start from SNECK_HEALTH_REPORT_INIT");
    sneck_status status = snk_client_enter(client, error);
    if (status != SNECK_OK)
        return status;
    sneck_health_report report = { .size = report_out->size };
    show_watchdog(client, &report);
    show_counters(client, &report);
    show_connection(client, &report);
    snk_census_take(client, add_row, &report);
    report.watched = is_watched(client);
    snk_gate_leave(&client->gate);
    size_t size = report_out->size;
    memset(report_out, 0, size);
    memcpy(report_out, &report, size < sizeof report ? size : sizeof report);
    return snk_ok(error);
}

/* ---- Checking now ---- */

static sneck_status verdict(const snk_round *round, sneck_error *error)
{
    static const struct {
        sneck_check_kind check;
        sneck_status status;
        const char *text;
    } verdicts[] = {
        { SNECK_CHECK_STATE, SNECK_LOST, "the store no longer had a lock of this client" },
        { SNECK_CHECK_CONNECTION, SNECK_UNAVAILABLE, "the connection to the store" },
        { SNECK_CHECK_RENEWAL, SNECK_TIMEOUT, "the renewals" },
        { SNECK_CHECK_OWNER, SNECK_TIMEOUT, "the owner of a lock" },
        { SNECK_CHECK_RECOVERY, SNECK_UNKNOWN, "what was done about an earlier finding did not help" },
    };
    for (size_t i = 0; i < sizeof verdicts / sizeof verdicts[0]; i++) {
        snk_finding finding = round->findings[verdicts[i].check];
        if (finding != SNK_FINDING_NONE)
            return snk_fail(error, verdicts[i].status, 0, "%s: %s", verdicts[i].text, snk_finding_name(finding));
    }
    return snk_ok(error);
}

sneck_status sneck_check(sneck_client *client, sneck_error *error)
{
    sneck_status status = snk_client_enter(client, error);
    if (status != SNECK_OK)
        return status;
    int state = 0;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    (void)pthread_mutex_lock(&client->start_mutex);
    bool prepared = snk_watch_prepare(client);
    (void)pthread_mutex_unlock(&client->start_mutex);
    if (prepared) {
        snk_round round = snk_watch_round(client, true);
        status = verdict(&round, error);
    } else {
        status = snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for the checks");
    }
    (void)pthread_setcancelstate(state, NULL);
    snk_gate_leave(&client->gate);
    return status;
}
