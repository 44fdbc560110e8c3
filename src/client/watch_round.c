#include "client/watch_round.h"

#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/client.h"
#include "client/patrol.h"

/* The shortest time in which a server must answer a probe: one that is busy is not dead. */
#define PROBE_NS_MIN (1 * SNK_NS_PER_S)
#define SLOW_NS (100 * SNK_NS_PER_MS)
/* After which a renewal thread that seems to be stuck is looked at again. */
#define SECOND_LOOK_NS (250 * SNK_NS_PER_MS)
/* So long a round waits for answers about claims, or its period if that is less; the others are taken when they come. */
#define ANSWER_NS_MAX (1 * SNK_NS_PER_S)

static void tell(sneck_client *client, sneck_event_kind kind, const char *message)
{
    snk_note note = { .kind = kind, .message = message };
    snk_events_emit(client, NULL, &note, NULL);
}

/* Those who ask see it from now on. */
static void show(sneck_client *client)
{
    snk_watch *watch = &client->watch;
    (void)pthread_mutex_lock(&watch->shown_mutex);
    watch->shown = watch->engine;
    (void)pthread_mutex_unlock(&watch->shown_mutex);
}

void snk_watch_note(sneck_client *client, sneck_check_kind kind, snk_found found)
{
    const snk_log_field fields[] = {
        { .key = "check", .text = sneck_check_kind_name(kind) },
        { .key = "finding", .text = snk_finding_name(found.finding) },
        { .key = "count", .number = (int64_t)found.count },
        { .key = "remedy", .text = snk_remedy_name(found.remedy) },
        { .key = NULL },
    };
    if (found.finding != SNK_FINDING_NONE)
        snk_log_write(client, SNECK_LOG_WARNING, "finding", fields);
    if (snk_watchdog_note(&client->watch.engine, kind, found.finding, found.count, snk_now_ns()))
        snk_log_write(client, SNECK_LOG_ERROR, "alert", fields);
    show(client);
}

/* Of what is about no lock: there is one remedy for each finding. */
static void note(sneck_client *client, sneck_check_kind kind, snk_finding finding)
{
    snk_watch_note(client, kind, (snk_found){ finding, 1, snk_watchdog_choose(finding, SNECK_RECOVER_NOTIFY) });
}

static int64_t period_ns(sneck_client *client)
{
    int64_t period_ms = atomic_load(&client->watch.period_ms);
    return (period_ms == INT64_MAX ? SNK_WATCHDOG_MS_DEFAULT : period_ms) * SNK_NS_PER_MS;
}

/* ---- Renewal ---- */

static void replace_renewer(sneck_client *client)
{
    sneck_error error;
    tell(client, SNECK_EVENT_STUCK, "the renewal thread does not move");
    if (!snk_watchdog_may_try(&client->watch.engine, SNK_REMEDY_REPLACE_RENEWER, snk_now_ns()))
        return;
    if (snk_renewer_replace(client, &error) == SNECK_OK) {
        (void)atomic_fetch_add(&client->watch.replaced, 1);
        return;
    }
    snk_watchdog_worked(&client->watch.engine, SNK_REMEDY_REPLACE_RENEWER, false);
    const snk_log_field fields[] = { { .key = "error", .text = error.message }, { .key = NULL } };
    snk_log_write(client, SNECK_LOG_ERROR, "replace-failed", fields);
}

static snk_finding look_at_renewal(sneck_client *client)
{
    snk_renewal_facts facts = {
        .runs = snk_renewer_beat_ns(client) != 0,
        .beat_at_ns = snk_renewer_beat_ns(client),
        .pending_at_ns = snk_renewer_pending_ns(client),
        .patience_ns = period_ns(client),
    };
    snk_metrics_renewals(&client->metrics, &facts);
    return snk_watchdog_judge_renewal(&client->watch.engine, &facts, snk_now_ns());
}

/* After a pause of the whole process it stood still because everybody did: only who stands still while we go on is stuck. */
static snk_finding judge_renewal(sneck_client *client)
{
    snk_finding finding = look_at_renewal(client);
    if (finding != SNK_FINDING_RENEWAL_STUCK)
        return finding;
    int64_t beat_ns = snk_renewer_beat_ns(client);
    struct timespec moment = snk_timespec(SECOND_LOOK_NS);
    (void)nanosleep(&moment, NULL);
    /* Though the process may have been stopped again meanwhile: what has moved is not stuck. */
    return snk_renewer_beat_ns(client) != beat_ns ? SNK_FINDING_NONE : look_at_renewal(client);
}

/* True when an earlier remedy did not help. */
static bool check_renewal(sneck_client *client, snk_round *round)
{
    snk_watchdog *engine = &client->watch.engine;
    snk_finding finding = judge_renewal(client);
    bool was_pending = engine->remedies[SNK_REMEDY_REPLACE_RENEWER].pending;
    bool failed = snk_watchdog_settle(engine, SNK_REMEDY_REPLACE_RENEWER, finding == SNK_FINDING_RENEWAL_STUCK);
    note(client, SNECK_CHECK_RENEWAL, finding);
    if (was_pending && !failed)
        tell(client, SNECK_EVENT_RECOVERED, "another renewal thread has taken over");
    if (snk_watchdog_choose(finding, SNECK_RECOVER_RELEASE) == SNK_REMEDY_REPLACE_RENEWER)
        replace_renewer(client);
    round->findings[SNECK_CHECK_RENEWAL] = finding;
    return failed;
}

/* ---- Connection ---- */

static void keep_report(sneck_client *client, const snk_probe *probe)
{
    snk_watch *watch = &client->watch;
    (void)pthread_mutex_lock(&watch->shown_mutex);
    watch->link.round_trip_ns = probe->round_trip_ns;
    watch->link.has_clock = probe->has_clock;
    watch->link.clock_offset_ns = probe->clock_offset_ns;
    (void)pthread_mutex_unlock(&watch->shown_mutex);
}

static snk_connection_facts probe_connection(sneck_client *client)
{
    const snk_store_ops *ops = client->store->ops;
    snk_connection_facts facts = { .has_one = ops->probe != NULL };
    if (!facts.has_one)
        return facts;
    snk_probe probe = { .round_trip_ns = 0 };
    snk_store_state state;
    int64_t timeout_ns = period_ns(client) / 2;
    facts.answers =
        ops->probe(client->store, timeout_ns > PROBE_NS_MIN ? timeout_ns : PROBE_NS_MIN, &probe, NULL) == SNECK_OK;
    ops->describe(client->store, &state);
    facts.is_open = state.connected || probe.is_half_open;
    /* All nodes of a quorum have one each, which may all be made anew at once. */
    uint64_t reconnects = snk_store_reconnects(&state);
    facts.connects = state.nodes > 0 ? reconnects / state.nodes : reconnects;
    if (facts.answers)
        keep_report(client, &probe);
    return facts;
}

static bool check_connection(sneck_client *client, snk_round *round)
{
    snk_watchdog *engine = &client->watch.engine;
    snk_connection_facts facts = probe_connection(client);
    snk_finding finding = snk_watchdog_judge_connection(engine, &facts, snk_now_ns());
    bool failed = snk_watchdog_settle(engine, SNK_REMEDY_RECONNECT, facts.has_one && !facts.answers);
    note(client, SNECK_CHECK_CONNECTION, finding);
    if (snk_watchdog_choose(finding, SNECK_RECOVER_RELEASE) == SNK_REMEDY_RECONNECT &&
        snk_watchdog_may_try(engine, SNK_REMEDY_RECONNECT, snk_now_ns()))
        client->store->ops->reconnect(client->store);
    round->findings[SNECK_CHECK_CONNECTION] = finding;
    return failed;
}

/* ---- The round ---- */

/* A store that lets the renewals wait would let the watchdog wait too, which must go on looking. */
static bool store_is_slow(sneck_client *client)
{
    int64_t since_ns = snk_renewer_asks_ns(client);
    return since_ns != SNK_NEVER_NS && snk_now_ns() - since_ns >= SLOW_NS;
}

static void check_holds(sneck_client *client, bool asks_all, snk_round *round)
{
    snk_patrol_report report;
    bool answers = round->findings[SNECK_CHECK_CONNECTION] == SNK_FINDING_NONE ||
                   round->findings[SNECK_CHECK_CONNECTION] == SNK_FINDING_FLAPPING;
    int64_t patience_ns = period_ns(client) < ANSWER_NS_MAX ? period_ns(client) : ANSWER_NS_MAX;
    /* A part that does not answer is not waited for, and is no reason not to ask the others. */
    bool has_parts = client->store->ops->part != NULL;
    snk_patrol_orders orders = {
        .asks_store = (answers || has_parts) && !store_is_slow(client),
        .until_ns = snk_time_add(snk_now_ns(), patience_ns),
        .asks_all = asks_all,
    };
    snk_patrol_walk(client->watch.patrol, orders, &report);
    round->findings[SNECK_CHECK_OWNER] = report.owner;
    round->findings[SNECK_CHECK_STATE] = report.lost_count > 0 ? SNK_FINDING_CLAIM_LOST : SNK_FINDING_NONE;
    snk_watch_note(client, SNECK_CHECK_OWNER, (snk_found){ report.owner, report.owner_count, report.remedy });
    /* Told; those that are to be acquired again are logged one by one. */
    snk_watch_note(client, SNECK_CHECK_STATE,
                   (snk_found){ round->findings[SNECK_CHECK_STATE], report.lost_count, SNK_REMEDY_NOTIFY });
}

/* What came of releases whose answers others had. */
static void settle_releases(snk_watch *watch)
{
    uint32_t worked = atomic_exchange(&watch->released, 0);
    uint32_t failed = atomic_exchange(&watch->unreleased, 0);
    for (uint32_t i = 0; i < worked + failed; i++)
        snk_watchdog_worked(&watch->engine, SNK_REMEDY_RELEASE, i < worked);
}

/* Of the remedies that are not settled by a look: what came of them since the last round. */
static uint64_t failures_of(const snk_watchdog *engine)
{
    return engine->remedies[SNK_REMEDY_RELEASE].failed + engine->remedies[SNK_REMEDY_REACQUIRE].failed;
}

snk_round snk_watch_round(sneck_client *client, bool asks_all)
{
    snk_watch *watch = &client->watch;
    snk_round round = { .findings = { SNK_FINDING_NONE } };
    (void)pthread_mutex_lock(&watch->mutex);
    bool failed = check_renewal(client, &round);
    failed |= check_connection(client, &round);
    check_holds(client, asks_all, &round);
    settle_releases(watch);
    uint64_t failures = failures_of(&watch->engine);
    failed |= failures != watch->failures;
    watch->failures = failures;
    round.findings[SNECK_CHECK_RECOVERY] = failed ? SNK_FINDING_RECOVERY_FAILED : SNK_FINDING_NONE;
    note(client, SNECK_CHECK_RECOVERY, round.findings[SNECK_CHECK_RECOVERY]);
    (void)pthread_mutex_unlock(&watch->mutex);
    return round;
}

void snk_watch_show(sneck_client *client, snk_watchdog *engine_out, snk_link_report *link_out)
{
    snk_watch *watch = &client->watch;
    (void)pthread_mutex_lock(&watch->shown_mutex);
    *engine_out = watch->shown;
    *link_out = watch->link;
    (void)pthread_mutex_unlock(&watch->shown_mutex);
}
