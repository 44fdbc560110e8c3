#include "client/patrol.h"

#include <stdlib.h>

#include "base/clock.h"
#include "client/batch.h"
#include "client/client.h"
#include "client/perform.h"
#include "client/thread_state.h"

/* A thread that owns holds, as it was seen from round to round. */
typedef struct owner {
    int32_t thread;
    uint64_t round; /* in which it was seen last */
    snk_thread_facts facts;
    snk_stillness stillness;
} owner;

struct snk_patrol {
    sneck_client *client; /* borrowed */
    snk_batch *batch;     /* owned */
    size_t lost_late;     /* holds that were lost by answers which came after their round, for the report of the next */
    uint64_t round;
    owner *owners; /* owned */
    size_t owner_count;
    size_t owner_capacity;
    size_t last;  /* index of the owner that was asked for last: mostly it is asked for again */
    bool is_full; /* in this round a remedy was put off: those that were put off before need not ask */
};

/* In hold.reported, beside the finding: what was to be done about it was put off. */
#define PUT_OFF UINT8_C(0x80)

/* What is to be done about one hold, once its mutex was given back. */
typedef struct verdict {
    snk_finding finding;
    snk_remedy remedy;
    uint64_t owner;
    uint64_t token;
    bool is_news;
    bool was_put_off; /* it was told before, and nothing was done about it yet */
    bool at_risk;
    int64_t remaining_ns;
} verdict;

snk_patrol *snk_patrol_new(sneck_client *client)
{
    snk_patrol *patrol = calloc(1, sizeof *patrol);
    snk_batch *batch = snk_batch_new(client, &client->watch.parking);
    if (patrol == NULL || batch == NULL) {
        free(patrol);
        snk_batch_free(batch);
        return NULL;
    }
    patrol->client = client;
    patrol->batch = batch;
    return patrol;
}

void snk_patrol_free(snk_patrol *patrol)
{
    if (patrol == NULL)
        return;
    snk_batch_free(patrol->batch);
    free(patrol->owners);
    free(patrol);
}

/* ---- Owners ---- */

static owner *add_owner(snk_patrol *patrol, int32_t thread)
{
    if (patrol->owners == NULL || patrol->owner_count == patrol->owner_capacity) {
        size_t capacity = patrol->owner_capacity == 0 ? 16 : 2 * patrol->owner_capacity;
        owner *owners = realloc(patrol->owners, capacity * sizeof *owners);
        if (owners == NULL)
            return NULL;
        patrol->owners = owners;
        patrol->owner_capacity = capacity;
    }
    patrol->last = patrol->owner_count++;
    patrol->owners[patrol->last] = (owner){ .thread = thread };
    return &patrol->owners[patrol->last];
}

/* The thread, looked at once in a round; NULL when out of memory. */
static owner *find_owner(snk_patrol *patrol, int32_t thread)
{
    owner *found = patrol->last < patrol->owner_count ? &patrol->owners[patrol->last] : NULL;
    for (size_t i = 0; (found == NULL || found->thread != thread) && i < patrol->owner_count; i++) {
        found = &patrol->owners[i];
        patrol->last = i;
    }
    if (found == NULL || found->thread != thread)
        found = add_owner(patrol, thread);
    if (found != NULL && found->round != patrol->round) {
        found->round = patrol->round;
        snk_thread_look(thread, &found->facts);
    }
    return found;
}

/* Those that own nothing any more. A thread that comes back is a new one: its id may be another thread's by then. */
static void forget_owners(snk_patrol *patrol)
{
    size_t kept = 0;
    for (size_t i = 0; i < patrol->owner_count; i++)
        if (patrol->owners[i].round == patrol->round)
            patrol->owners[kept++] = patrol->owners[i];
    patrol->owner_count = kept;
    patrol->last = 0;
}

/* ---- One hold ---- */

static void judge_locked(snk_patrol *patrol, snk_entry *entry, verdict *verdict_out)
{
    snk_hold *hold = entry->machine.hold;
    const snk_care *care = &hold->terms.care;
    int64_t now_ns = snk_now_ns();
    int64_t deadline_ns = snk_deadline_peek(&entry->machine.deadline);
    *verdict_out = (verdict){ .owner = hold->owner, .token = hold->token, .remaining_ns = deadline_ns - now_ns };
    if (care->watchdog_ms == 0 || hold->owner == 0 || deadline_ns <= now_ns)
        return;
    owner *seen = hold->thread != 0 ? find_owner(patrol, hold->thread) : NULL;
    verdict_out->finding = snk_watchdog_judge_owner(hold, seen == NULL ? NULL : &seen->facts,
                                                    seen == NULL ? NULL : &seen->stillness, now_ns);
    verdict_out->remedy = snk_watchdog_choose(verdict_out->finding, (sneck_recovery)care->recovery);
    verdict_out->at_risk = !hold->renewal.is_warned && snk_watchdog_is_at_risk(hold, deadline_ns, now_ns);
    if (verdict_out->at_risk)
        hold->renewal.is_warned = true;
}

static void tell(const snk_patrol *patrol, snk_entry *entry, const verdict *found, sneck_event_kind kind,
                 const char *message)
{
    snk_note note = {
        .kind = kind,
        .token = found->token,
        .remaining_ns = found->remaining_ns,
        .message = message,
    };
    snk_events_emit(patrol->client, entry, &note, NULL);
}

/* A step that ends a hold, or what an owner has of it. */
static void end_hold(const snk_patrol *patrol, snk_entry *entry, snk_event event, bool is_remedy)
{
    snk_turn turn;
    snk_turn_run(&turn, patrol->client, entry, &event);
    sneck_error result = turn.actions.release;
    bool is_chased = turn.actions.send_count > 0 && !turn.actions.pending; /* its answer comes later */
    snk_perform(&turn, &result);
    if (is_remedy && !is_chased)
        snk_watchdog_worked(&patrol->client->watch.engine, SNK_REMEDY_RELEASE,
                            result.status == SNECK_OK || result.status == SNECK_LOST);
}

static bool may_end(snk_patrol *patrol, const verdict *found)
{
    snk_watchdog *engine = &patrol->client->watch.engine;
    if (patrol->is_full && found->was_put_off)
        return false;
    if (snk_watchdog_may_try(engine, SNK_REMEDY_RELEASE, snk_now_ns()))
        return true;
    patrol->is_full = true;
    return false;
}

/* It is still to be done, in a later round. */
static void put_off(snk_entry *entry, const verdict *found)
{
    (void)pthread_mutex_lock(&entry->mutex);
    snk_hold *hold = entry->machine.hold;
    if (hold != NULL && hold->owner == found->owner && hold->token == found->token)
        hold->reported |= PUT_OFF;
    (void)pthread_mutex_unlock(&entry->mutex);
}

static void tell_finding(const snk_patrol *patrol, snk_entry *entry, const verdict *found)
{
    if (found->finding == SNK_FINDING_OWNER_DIED)
        tell(patrol, entry, found, SNECK_EVENT_OWNER_DIED, "the thread that holds it has ended");
    else
        tell(patrol, entry, found, SNECK_EVENT_STUCK,
             found->finding == SNK_FINDING_OWNER_STUCK ? "its owner is blocked or stopped for longer than stuck_ms"
                                                       : "it is held for longer than max_hold_ms");
}

/* Tells what was found, once, and does what is to be done about it. False: that was put off. */
static bool act(snk_patrol *patrol, snk_entry *entry, const verdict *found)
{
    if (found->is_news)
        tell_finding(patrol, entry, found);
    if (found->remedy != SNK_REMEDY_RELEASE && found->remedy != SNK_REMEDY_REACQUIRE)
        return true;
    if (!may_end(patrol, found)) {
        put_off(entry, found);
        return false;
    }
    snk_event event = { .kind = SNK_EVENT_OWNER_GONE, .owner = found->owner, .token = found->token };
    if (found->finding != SNK_FINDING_OWNER_DIED) {
        event.kind = SNK_EVENT_REVOKE;
        event.cause = found->finding == SNK_FINDING_OWNER_STUCK ? SNECK_CAUSE_STUCK : SNECK_CAUSE_OVERDUE;
    }
    end_hold(patrol, entry, event, true);
    return true;
}

/* A hold whose owner was reported and who keeps it is not reported in each round. */
static void compare_locked(snk_hold *hold, verdict *found)
{
    bool is_found = found->finding != SNK_FINDING_NONE;
    found->is_news = is_found && (hold->reported & ~PUT_OFF) != (int)found->finding;
    found->was_put_off = is_found && !found->is_news && (hold->reported & PUT_OFF) != 0;
    hold->reported = (uint8_t)found->finding;
}

/* ---- The round ---- */

/* Its claim is to be looked up in the store. */
static bool wants_check_locked(const snk_machine *machine, snk_patrol_orders orders, snk_send *send_out)
{
    const snk_hold *hold = machine->hold;
    int64_t now_ns = snk_now_ns();
    bool is_due = orders.asks_all || snk_watchdog_wants_check(hold, now_ns);
    if (!orders.asks_store || !is_due || snk_deadline_peek(&machine->deadline) <= now_ns)
        return false;
    *send_out = (snk_send){
        .ask = SNK_ASK_RENEW,
        .claim = hold->claim,
        .lease_ns = SNK_CHECK_LEASE_NS,
        .sent_at_ns = now_ns,
        .check = true,
    };
    return true;
}

static void visit(snk_patrol *patrol, snk_entry *entry, snk_patrol_orders orders, snk_patrol_report *report)
{
    verdict found = { .finding = SNK_FINDING_NONE };
    snk_send send;
    bool checks = false;
    (void)pthread_mutex_lock(&entry->mutex);
    if (entry->machine.hold != NULL) {
        judge_locked(patrol, entry, &found);
        compare_locked(entry->machine.hold, &found);
        checks = wants_check_locked(&entry->machine, orders, &send);
    }
    (void)pthread_mutex_unlock(&entry->mutex);
    if (found.at_risk)
        tell(patrol, entry, &found, SNECK_EVENT_AT_RISK, "it was not renewed in time");
    if (found.finding != SNK_FINDING_NONE && report->owner == SNK_FINDING_NONE) {
        report->owner = found.finding;
        report->remedy = found.remedy;
    }
    report->owner_count += found.finding != SNK_FINDING_NONE;
    if (found.is_news || found.was_put_off)
        (void)act(patrol, entry, &found);
    if (checks)
        report->lost_count += snk_batch_add(patrol->batch, entry, &send);
}

void snk_patrol_walk(snk_patrol *patrol, snk_patrol_orders orders, snk_patrol_report *report_out)
{
    snk_registry *registry = &patrol->client->registry;
    *report_out = (snk_patrol_report){ .owner = SNK_FINDING_NONE };
    patrol->round++;
    patrol->is_full = false;
    for (snk_entry *entry = snk_registry_first(registry); entry != NULL; entry = snk_registry_next(registry, entry))
        visit(patrol, entry, orders, report_out);
    report_out->lost_count += patrol->lost_late + snk_batch_finish(patrol->batch, orders.until_ns);
    patrol->lost_late = 0;
    forget_owners(patrol);
}

void snk_patrol_collect(snk_patrol *patrol)
{
    patrol->lost_late += snk_batch_flush(patrol->batch);
}

void snk_patrol_finish(snk_patrol *patrol)
{
    (void)snk_batch_finish(patrol->batch, SNK_NEVER_NS);
}

/* ---- The end of an owner ---- */

/* Somebody waits to have it again for this owner. */
static bool is_rescued_locked(const snk_machine *machine, uint64_t owner_number)
{
    for (snk_link *link = snk_list_first(&machine->waiters); link != NULL;
         link = snk_list_next(&machine->waiters, link)) {
        const snk_waiter *waiter = SNK_CONTAINER(link, snk_waiter, link);
        if (waiter->reserves && waiter->owner == owner_number)
            return true;
    }
    return false;
}

static bool has_something_locked(const snk_machine *machine, uint64_t owner_number, verdict *found)
{
    const snk_hold *hold = machine->hold;
    if (hold != NULL && hold->owner == owner_number) {
        *found = (verdict){
            .finding = SNK_FINDING_OWNER_DIED,
            .remedy = snk_watchdog_choose(SNK_FINDING_OWNER_DIED, (sneck_recovery)hold->terms.care.recovery),
            .owner = owner_number,
            .token = hold->token,
            .remaining_ns = snk_deadline_peek(&machine->deadline) - snk_now_ns(),
        };
        return hold->terms.care.watchdog_ms > 0;
    }
    *found = (verdict){ .owner = owner_number };
    if (hold != NULL && hold->reserved_for == owner_number)
        return true;
    if (is_rescued_locked(machine, owner_number))
        return true;
    for (snk_link *link = snk_list_first(&machine->lost); link != NULL; link = snk_list_next(&machine->lost, link))
        if (SNK_CONTAINER(link, snk_hold, link)->owner == owner_number)
            return true;
    return false;
}

/* What it has left in one lock. */
static void bury_in(snk_patrol *patrol, snk_entry *entry, uint64_t owner_number, snk_burial *burial)
{
    verdict found;
    (void)pthread_mutex_lock(&entry->mutex);
    bool has_something = has_something_locked(&entry->machine, owner_number, &found);
    if (has_something && found.finding == SNK_FINDING_OWNER_DIED)
        compare_locked(entry->machine.hold, &found);
    (void)pthread_mutex_unlock(&entry->mutex);
    if (found.is_news && burial->count++ == 0)
        burial->remedy = found.remedy;
    if (found.is_news || found.was_put_off)
        burial->is_done &= act(patrol, entry, &found);
    else if (has_something && found.finding == SNK_FINDING_NONE)
        end_hold(patrol, entry, (snk_event){ .kind = SNK_EVENT_OWNER_GONE, .owner = owner_number }, false);
}

snk_burial snk_patrol_bury(snk_patrol *patrol, uint64_t owner_number)
{
    snk_registry *registry = &patrol->client->registry;
    snk_burial burial = { .is_done = true };
    patrol->is_full = false;
    for (snk_entry *entry = snk_registry_first(registry); entry != NULL; entry = snk_registry_next(registry, entry))
        bury_in(patrol, entry, owner_number, &burial);
    return burial;
}
