#include "client/turn.h"

#include <limits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "client/agent.h"
#include "client/async.h"
#include "client/client.h"
#include "client/ear.h"
#include "client/probes.h"

void snk_turn_init(snk_turn *turn, sneck_client *client, snk_entry *entry)
{
    /* Not the whole: it is a kilobyte, and a re-entry must not pay for it. */
    turn->client = client;
    turn->entry = entry;
    turn->call_renewer = false;
    turn->call_errands = false;
    turn->call_keeper = false;
    turn->call_watch = false;
    turn->word_count = 0;
    turn->unpin_count = 0;
}

/* The thread leaves its wait only with entry.mutex, so until then the store is open. */
static void wake_thread_locked(snk_turn *turn, snk_agent *agent)
{
    if (!snk_parking_call(&agent->parking))
        return;
    snk_store *store = turn->client->store;
    if (store->ops->rouse != NULL && store->ops->rouse(store, &agent->parking.word))
        return;
    if (turn->word_count < SNK_TURN_WORDS_MAX)
        turn->words[turn->word_count++] = &agent->parking.word;
    else
        snk_futex_wake(&agent->parking.word, INT_MAX, false);
}

static void wake_locked(snk_turn *turn, const snk_waiter *self)
{
    snk_waiter *next = NULL;
    for (snk_waiter *waiter = turn->actions.woken; waiter != NULL; waiter = next) {
        next = waiter->next_woken;
        snk_agent *agent = snk_agent_of(waiter);
        if (agent->request != NULL)
            snk_request_woken_locked(turn, agent->request);
        else if (waiter != self)
            wake_thread_locked(turn, agent);
    }
}

static void free_holds_locked(snk_turn *turn)
{
    snk_hold *next = NULL;
    for (snk_hold *hold = turn->actions.freed; hold != NULL; hold = next) {
        next = hold->next_freed;
        snk_entry_free_hold_locked(turn->entry, hold);
    }
}

static void arm_timers_locked(snk_turn *turn)
{
    snk_entry *entry = turn->entry;
    sneck_client *client = turn->client;
    turn->call_renewer |= snk_timers_arm_lazily(&client->renewer.timers, &entry->renewal, entry->machine.timer_at_ns);
    int64_t deadline_ns = snk_deadline_peek(&entry->machine.deadline);
    if (deadline_ns > 0)
        turn->call_keeper |= snk_timers_arm_lazily(&client->keeper.deadlines, &entry->deadline, deadline_ns);
}

static snk_agent *find_agent_locked(const snk_entry *entry, const snk_id *claim)
{
    const snk_list *waiters = &entry->machine.waiters;
    for (snk_link *link = snk_list_first(waiters); link != NULL; link = snk_list_next(waiters, link)) {
        snk_waiter *waiter = SNK_CONTAINER(link, snk_waiter, link);
        if (waiter->seek.state != SNK_SEEK_NONE && snk_id_equal(&waiter->seek.claim, claim))
            return snk_agent_of(waiter);
    }
    return NULL;
}

bool snk_turn_seeks_locked(const snk_entry *entry, const snk_id *claim)
{
    return find_agent_locked(entry, claim) != NULL;
}

/* Only an acquire that is really sent needs the kernel's thread id. `self` is the waiter of the calling thread. */
static void find_askers_locked(snk_turn *turn, const snk_waiter *self)
{
    for (uint32_t i = 0; i < turn->actions.send_count; i++) {
        turn->askers[i] = (snk_asker){ 0 };
        if (turn->actions.sends[i].ask != SNK_ASK_ACQUIRE)
            continue;
        snk_agent *agent = find_agent_locked(turn->entry, &turn->actions.sends[i].claim);
        if (agent == NULL)
            continue;
        if (agent->thread == 0 && &agent->waiter == self)
            agent->thread = gettid();
        turn->askers[i] = (snk_asker){
            .thread = agent->thread,
            .why = snk_why_ref(agent->why),
            .beside = agent->beside,
        };
    }
}

/* What a step did is told to those who listen, count and watch. */
static void take_notes_locked(snk_turn *turn)
{
    sneck_client *client = turn->client;
    snk_entry *entry = turn->entry;
    const snk_actions *actions = &turn->actions;
    turn->unpin_count = snk_events_take_locked(client, entry, actions->notes, actions->note_count, turn->unpin);
    for (uint32_t i = 0; i < actions->note_count; i++) {
        snk_probe_note(entry, &actions->notes[i]);
        if (actions->notes[i].kind == SNECK_EVENT_LOST)
            turn->call_watch |= snk_watch_lost_locked(client, entry, &actions->notes[i]);
    }
}

void snk_turn_take_locked(snk_turn *turn, snk_event *event)
{
    snk_entry *entry = turn->entry;
    /* Here, not before the mutex was had: who knows how long that took. */
    event->now_ns = snk_now_ns();
    snk_machine_step(&entry->machine, event, &turn->actions);
    if (entry->mirror != NULL)
        atomic_store_explicit(entry->mirror, snk_deadline_peek(&entry->machine.deadline), memory_order_release);
    if (entry->ears != NULL)
        snk_ears_follow_locked(entry, &turn->actions);
    arm_timers_locked(turn);
    snk_metrics_take_locked(&turn->client->metrics, entry, event, &turn->actions);
    if (turn->actions.note_count > 0)
        take_notes_locked(turn);
    if (turn->actions.send_count > 0)
        find_askers_locked(turn, event->waiter);
    free_holds_locked(turn);
    wake_locked(turn, event->waiter);
}

void snk_turn_take_sends(snk_turn *turn, const snk_send sends[], uint32_t count)
{
    turn->actions.woken = NULL;
    turn->actions.freed = NULL;
    turn->actions.pending = false;
    turn->actions.more = false;
    turn->actions.note_count = 0;
    turn->actions.send_count = count;
    for (uint32_t i = 0; i < count; i++) {
        turn->actions.sends[i] = sends[i];
        turn->askers[i] = (snk_asker){ 0 };
    }
}

void snk_turn_call_locked(snk_turn *turn, const snk_id *claim, const snk_grant *grant)
{
    snk_turn_take_sends(turn, NULL, 0);
    snk_agent *agent = find_agent_locked(turn->entry, claim);
    if (agent == NULL)
        return;
    agent->news = true;
    if (grant != NULL) {
        agent->is_granted = true;
        agent->grant = *grant;
    }
    if (agent->request != NULL)
        snk_request_woken_locked(turn, agent->request);
    else
        wake_thread_locked(turn, agent);
}

/* What went wrong is a warning; the rest is for those who want to know everything. */
static sneck_log_level level_of(sneck_event_kind kind)
{
    switch (kind) {
    case SNECK_EVENT_ACQUIRED:
    case SNECK_EVENT_RELEASED:
    case SNECK_EVENT_RENEWED:
        return SNECK_LOG_DEBUG;
    case SNECK_EVENT_RECOVERED:
    case SNECK_EVENT_CONNECTION_UP:
        return SNECK_LOG_INFO;
    case SNECK_EVENT_RENEWAL_FAILED:
    case SNECK_EVENT_LOST:
    case SNECK_EVENT_AT_RISK:
    case SNECK_EVENT_CONNECTION_DOWN:
    case SNECK_EVENT_OWNER_DIED:
    case SNECK_EVENT_STUCK:
    case SNECK_EVENT_DEADLOCK:
    case SNECK_EVENT_BROKEN:
        break;
    }
    return SNECK_LOG_WARNING;
}

void snk_turn_log(sneck_client *client, const snk_entry *entry, const snk_note *note, const char *detail)
{
    snk_log_field fields[SNK_LOG_FIELDS_MAX];
    size_t count = 0;
    if (client->settings.log == NULL)
        return;
    if (entry != NULL)
        fields[count++] = (snk_log_field){ .key = "lock", .text = entry->name };
    if (note->token != 0)
        fields[count++] = (snk_log_field){ .key = "token", .number = (int64_t)note->token };
    if (note->cause != SNECK_CAUSE_NONE)
        fields[count++] = (snk_log_field){ .key = "cause", .text = sneck_cause_name(note->cause) };
    if (note->status != SNECK_OK)
        fields[count++] = (snk_log_field){ .key = "status", .text = sneck_status_name(note->status) };
    if (note->took_ns > 0)
        fields[count++] = (snk_log_field){ .key = "took_us", .number = note->took_ns / SNK_NS_PER_US };
    const char *message = detail != NULL && detail[0] != '\0' ? detail : note->message;
    if (message != NULL && message[0] != '\0')
        fields[count++] = (snk_log_field){ .key = "message", .text = message };
    fields[count].key = NULL;
    snk_log_write(client, level_of(note->kind), sneck_event_kind_name(note->kind), fields);
}

void snk_turn_end(snk_turn *turn)
{
    /* A sleeper may have gone meanwhile, with the stack its word was on: a wake on a stale address harms nobody. */
    for (size_t i = 0; i < turn->word_count; i++)
        snk_futex_wake(turn->words[i], INT_MAX, false);
    if (turn->call_renewer)
        snk_renewer_call(turn->client);
    if (turn->call_errands)
        snk_errands_call(turn->client);
    if (turn->call_keeper)
        snk_keeper_call(turn->client);
    if (turn->call_watch)
        snk_watch_call(turn->client);
    for (size_t i = 0; i < turn->unpin_count; i++)
        snk_registry_unpin(&turn->client->registry, turn->unpin[i]);
    for (uint32_t i = 0; i < turn->actions.note_count; i++)
        snk_turn_log(turn->client, turn->entry, &turn->actions.notes[i], NULL);
}

void snk_turn_run(snk_turn *turn, sneck_client *client, snk_entry *entry, snk_event *event)
{
    snk_turn_init(turn, client, entry);
    (void)pthread_mutex_lock(&entry->mutex);
    snk_turn_take_locked(turn, event);
    (void)pthread_mutex_unlock(&entry->mutex);
    snk_turn_end(turn);
}
