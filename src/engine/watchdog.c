#include "engine/watchdog.h"

#include <assert.h>

#include "base/clock.h"
#include "engine/parts.h"

/* How often each remedy may be tried within a window of time. */
typedef struct rate {
    uint32_t count_max;
    int64_t window_ns;
} rate;

static const rate rates[SNK_REMEDY_COUNT] = {
    [SNK_REMEDY_NOTIFY] = { .count_max = UINT32_MAX, .window_ns = SNK_NS_PER_S },
    /* Each one that is replaced may hang for ever, with its stack. */
    [SNK_REMEDY_REPLACE_RENEWER] = { .count_max = 3, .window_ns = 60 * SNK_NS_PER_S },
    [SNK_REMEDY_RECONNECT] = { .count_max = 6, .window_ns = 60 * SNK_NS_PER_S },
    [SNK_REMEDY_RELEASE] = { .count_max = 10000, .window_ns = SNK_NS_PER_S },
    [SNK_REMEDY_REACQUIRE] = { .count_max = 100, .window_ns = SNK_NS_PER_S },
};

const char *snk_finding_name(snk_finding finding)
{
    static const char *const names[] = {
        [SNK_FINDING_NONE] = "none",
        [SNK_FINDING_RENEWAL_STUCK] = "renewal-stuck",
        [SNK_FINDING_RENEWAL_LATE] = "renewal-late",
        [SNK_FINDING_RENEWAL_FAILING] = "renewal-failing",
        [SNK_FINDING_CLAIM_LOST] = "claim-lost",
        [SNK_FINDING_OWNER_DIED] = "owner-died",
        [SNK_FINDING_OWNER_STUCK] = "owner-stuck",
        [SNK_FINDING_OWNER_OVERDUE] = "owner-overdue",
        [SNK_FINDING_DISCONNECTED] = "disconnected",
        [SNK_FINDING_HALF_OPEN] = "half-open",
        [SNK_FINDING_FLAPPING] = "flapping",
        [SNK_FINDING_RECOVERY_FAILED] = "recovery-failed",
    };
    return names[finding];
}

const char *snk_remedy_name(snk_remedy remedy)
{
    static const char *const names[] = {
        [SNK_REMEDY_NOTIFY] = "notify",       [SNK_REMEDY_REPLACE_RENEWER] = "replace-renewer",
        [SNK_REMEDY_RECONNECT] = "reconnect", [SNK_REMEDY_RELEASE] = "release",
        [SNK_REMEDY_REACQUIRE] = "reacquire",
    };
    return names[remedy];
}

sneck_check_kind snk_finding_check(snk_finding finding)
{
    switch (finding) {
    case SNK_FINDING_RENEWAL_STUCK:
    case SNK_FINDING_RENEWAL_LATE:
    case SNK_FINDING_RENEWAL_FAILING:
        return SNECK_CHECK_RENEWAL;
    case SNK_FINDING_CLAIM_LOST:
        return SNECK_CHECK_STATE;
    case SNK_FINDING_OWNER_DIED:
    case SNK_FINDING_OWNER_STUCK:
    case SNK_FINDING_OWNER_OVERDUE:
        return SNECK_CHECK_OWNER;
    case SNK_FINDING_DISCONNECTED:
    case SNK_FINDING_HALF_OPEN:
    case SNK_FINDING_FLAPPING:
        return SNECK_CHECK_CONNECTION;
    case SNK_FINDING_NONE:
    case SNK_FINDING_RECOVERY_FAILED:
    case SNK_FINDING_COUNT:
        break;
    }
    return SNECK_CHECK_RECOVERY;
}

void snk_watchdog_init(snk_watchdog *watchdog)
{
    *watchdog = (snk_watchdog){ .connects = 0 };
}

/* ---- Judging ---- */

snk_finding snk_watchdog_judge_renewal(snk_watchdog *watchdog, const snk_renewal_facts *facts, int64_t now_ns)
{
    bool none_succeeded = facts->succeeded == watchdog->renewals_succeeded;
    bool some_failed = facts->failed != watchdog->renewals_failed;
    watchdog->renewals_succeeded = facts->succeeded;
    watchdog->renewals_failed = facts->failed;
    if (!facts->runs)
        return SNK_FINDING_NONE;
    int64_t still_since_ns = facts->beat_at_ns > facts->pending_at_ns ? facts->beat_at_ns : facts->pending_at_ns;
    if (facts->pending_at_ns != SNK_NEVER_NS && snk_time_add(still_since_ns, facts->patience_ns) <= now_ns)
        return SNK_FINDING_RENEWAL_STUCK;
    if (facts->late_ns > 0 && facts->late_ns >= facts->lease_ns / 4)
        return SNK_FINDING_RENEWAL_LATE;
    return some_failed && none_succeeded ? SNK_FINDING_RENEWAL_FAILING : SNK_FINDING_NONE;
}

/* True when the last SNK_FLAPPING_CONNECTS connects all fell into SNK_FLAPPING_NS. */
static bool is_flapping(snk_watchdog *watchdog, uint64_t connects, int64_t now_ns)
{
    uint64_t fresh = watchdog->has_looked && connects > watchdog->connects ? connects - watchdog->connects : 0;
    watchdog->connects = connects;
    watchdog->has_looked = true;
    for (uint64_t i = 0; i < fresh && i < SNK_FLAPPING_CONNECTS; i++) {
        watchdog->connects_at_ns[watchdog->connects_next] = now_ns;
        watchdog->connects_next = (watchdog->connects_next + 1) % SNK_FLAPPING_CONNECTS;
    }
    int64_t oldest_ns = watchdog->connects_at_ns[watchdog->connects_next];
    return oldest_ns != 0 && now_ns - oldest_ns <= SNK_FLAPPING_NS;
}

snk_finding snk_watchdog_judge_connection(snk_watchdog *watchdog, const snk_connection_facts *facts, int64_t now_ns)
{
    if (!facts->has_one)
        return SNK_FINDING_NONE;
    bool flaps = is_flapping(watchdog, facts->connects, now_ns);
    if (!facts->answers)
        return facts->is_open ? SNK_FINDING_HALF_OPEN : SNK_FINDING_DISCONNECTED;
    return flaps ? SNK_FINDING_FLAPPING : SNK_FINDING_NONE;
}

static int64_t ns_of(uint32_t ms)
{
    return (int64_t)ms * SNK_NS_PER_MS;
}

/* Since when it has not moved, as far as looks can tell; `now_ns` if it has. */
static int64_t still_since(const snk_thread_facts *thread, snk_stillness *stillness, int64_t now_ns)
{
    if (thread->runs || stillness->since_ns == 0 || thread->cpu_ns != stillness->cpu_ns)
        *stillness = (snk_stillness){ .cpu_ns = thread->cpu_ns, .since_ns = now_ns };
    return stillness->since_ns;
}

snk_finding snk_watchdog_judge_owner(const snk_hold *hold, const snk_thread_facts *thread, snk_stillness *stillness,
                                     int64_t now_ns)
{
    const snk_care *care = &hold->terms.care;
    if (hold->owner == 0)
        return SNK_FINDING_NONE;
    if (thread != NULL && !thread->known)
        return SNK_FINDING_OWNER_DIED;
    if (care->max_hold_ms > 0 && now_ns - hold->since_ns >= ns_of(care->max_hold_ms))
        return SNK_FINDING_OWNER_OVERDUE;
    if (care->stuck_ms == 0 || thread == NULL || stillness == NULL)
        return SNK_FINDING_NONE;
    /* It does not count how long it stood still before it had the lock. */
    int64_t since_ns = still_since(thread, stillness, now_ns);
    if (since_ns < hold->since_ns)
        since_ns = hold->since_ns;
    return now_ns - since_ns >= ns_of(care->stuck_ms) ? SNK_FINDING_OWNER_STUCK : SNK_FINDING_NONE;
}

bool snk_watchdog_wants_check(const snk_hold *hold, int64_t now_ns)
{
    const snk_care *care = &hold->terms.care;
    return care->watchdog_ms > 0 && now_ns - hold->renewal.confirmed_at_ns >= ns_of(care->watchdog_ms);
}

bool snk_watchdog_is_at_risk(const snk_hold *hold, int64_t deadline_ns, int64_t now_ns)
{
    return hold->owner != 0 && hold->terms.renew_ns != SNK_NEVER_NS && deadline_ns > now_ns &&
           deadline_ns - now_ns < snk_hold_lease_ns(hold) / 4;
}

/* ---- Noting ---- */

bool snk_watchdog_note(snk_watchdog *watchdog, sneck_check_kind kind, snk_finding finding, uint64_t count,
                       int64_t now_ns)
{
    assert(finding == SNK_FINDING_NONE || (count > 0 && snk_finding_check(finding) == kind));
    snk_check *check = &watchdog->checks[kind];
    check->runs++;
    check->run_at_ns = now_ns;
    check->last = finding;
    if (finding == SNK_FINDING_NONE) {
        check->in_a_row = 0;
        return false;
    }
    check->findings += count;
    check->found_at_ns = now_ns;
    watchdog->by_finding[finding] += count;
    if (++check->in_a_row != SNK_ALERT_THRESHOLD)
        return false;
    watchdog->alerts[kind]++;
    return true;
}

/* ---- Remedies ---- */

static snk_remedy choose_for_lock(sneck_recovery recovery)
{
    switch (recovery) {
    case SNECK_RECOVER_RELEASE:
        return SNK_REMEDY_RELEASE;
    case SNECK_RECOVER_NOTIFY:
        break;
    case SNECK_RECOVER_REACQUIRE:
        return SNK_REMEDY_REACQUIRE;
    }
    return SNK_REMEDY_NOTIFY;
}

snk_remedy snk_watchdog_choose(snk_finding finding, sneck_recovery recovery)
{
    switch (finding) {
    case SNK_FINDING_RENEWAL_STUCK:
        return SNK_REMEDY_REPLACE_RENEWER;
    case SNK_FINDING_HALF_OPEN:
        return SNK_REMEDY_RECONNECT;
    case SNK_FINDING_OWNER_DIED:
        /* There is nobody left who could take over what was acquired again. */
        return recovery == SNECK_RECOVER_NOTIFY ? SNK_REMEDY_NOTIFY : SNK_REMEDY_RELEASE;
    case SNK_FINDING_CLAIM_LOST:
    case SNK_FINDING_OWNER_STUCK:
    case SNK_FINDING_OWNER_OVERDUE:
        return choose_for_lock(recovery);
    case SNK_FINDING_NONE:
    case SNK_FINDING_RENEWAL_LATE:
    case SNK_FINDING_RENEWAL_FAILING:
    case SNK_FINDING_DISCONNECTED: /* the store connects again by itself */
    case SNK_FINDING_FLAPPING:
    case SNK_FINDING_RECOVERY_FAILED:
    case SNK_FINDING_COUNT:
        break;
    }
    return SNK_REMEDY_NOTIFY;
}

bool snk_watchdog_may_try(snk_watchdog *watchdog, snk_remedy remedy, int64_t now_ns)
{
    snk_remedy_state *state = &watchdog->remedies[remedy];
    const rate *limit = &rates[remedy];
    if (state->window_at_ns == 0 || now_ns - state->window_at_ns >= limit->window_ns) {
        state->window_at_ns = now_ns;
        state->window_count = 0;
    }
    if (state->window_count >= limit->count_max) {
        state->put_off++;
        return false;
    }
    state->window_count++;
    state->tried++;
    state->pending = true;
    return true;
}

void snk_watchdog_worked(snk_watchdog *watchdog, snk_remedy remedy, bool worked)
{
    snk_remedy_state *state = &watchdog->remedies[remedy];
    state->pending = false;
    if (worked)
        state->worked++;
    else
        state->failed++;
}

bool snk_watchdog_settle(snk_watchdog *watchdog, snk_remedy remedy, bool finding_is_there)
{
    if (!watchdog->remedies[remedy].pending)
        return false;
    snk_watchdog_worked(watchdog, remedy, !finding_is_there);
    return finding_is_there;
}
