#include "client/turn.h"

#include <limits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "client/agent.h"
#include "client/async.h"
#include "client/client.h"
#include "client/ear.h"

void snk_turn_init(snk_turn *turn, sneck_client *client, snk_entry *entry)
{
    /* Not the whole: it is a kilobyte, and a re-entry must not pay for it. */
    turn->client = client;
    turn->entry = entry;
    turn->call_renewer = false;
    turn->call_keeper = false;
    turn->word_count = 0;
    turn->unpin_count = 0;
}

static void wake_thread_locked(snk_turn *turn, snk_agent *agent)
{
    if (!snk_parking_call(&agent->parking))
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
    if (turn->actions.note_count > 0)
        turn->unpin_count = snk_events_take_locked(turn->client, entry, &turn->actions, turn->unpin);
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

static void log_notes(const snk_turn *turn)
{
    for (uint32_t i = 0; i < turn->actions.note_count; i++) {
        const snk_note *note = &turn->actions.notes[i];
        if (note->kind == SNECK_EVENT_LOST || note->kind == SNECK_EVENT_RENEWAL_FAILED)
            snk_client_log(turn->client, SNECK_LOG_WARNING, "event=%s token=%llu lock=\"%s\" message=\"%s\"",
                           sneck_event_kind_name(note->kind), (unsigned long long)note->token, turn->entry->name,
                           note->message);
    }
}

void snk_turn_end(snk_turn *turn)
{
    /* A sleeper may have gone meanwhile, with the stack its word was on: a wake on a stale address harms nobody. */
    for (size_t i = 0; i < turn->word_count; i++)
        snk_futex_wake(turn->words[i], INT_MAX, false);
    if (turn->call_renewer)
        snk_renewer_call(turn->client);
    if (turn->call_keeper)
        snk_keeper_call(turn->client);
    for (size_t i = 0; i < turn->unpin_count; i++)
        snk_registry_unpin(&turn->client->registry, turn->unpin[i]);
    if (turn->actions.note_count > 0 && turn->client->settings.log != NULL)
        log_notes(turn);
}

void snk_turn_run(snk_turn *turn, sneck_client *client, snk_entry *entry, snk_event *event)
{
    snk_turn_init(turn, client, entry);
    (void)pthread_mutex_lock(&entry->mutex);
    snk_turn_take_locked(turn, event);
    (void)pthread_mutex_unlock(&entry->mutex);
    snk_turn_end(turn);
}
