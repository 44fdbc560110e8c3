#include "client/agent.h"

#include "base/clock.h"
#include "base/error.h"

void snk_agent_init(snk_agent *agent, const sneck_lock *lock, const snk_terms *terms, int64_t wait_ms)
{
    /* Field by field: clearing the message buffer of the result would cost a re-entry more than the step does. */
    snk_waiter *waiter = &agent->waiter;
    waiter->owner = snk_lock_owner(lock);
    waiter->tag = lock->tag;
    waiter->terms = *terms;
    waiter->once = wait_ms == 0;
    waiter->reentrant = lock->is_reentrant;
    waiter->reserves = false;
    waiter->thread = snk_lock_is_of_thread(lock) ? snk_presence_thread() : 0;
    waiter->hold = NULL;
    waiter->woken = false;
    waiter->interrupted = false;
    waiter->decided = false;
    waiter->next_woken = NULL;
    atomic_init(&agent->parking.word, SNK_AWAKE);
    agent->news = false;
    agent->is_granted = false;
    agent->thread = 0;
    agent->why = lock->why;
    agent->beside = lock->beside;
    agent->request = NULL;
}

static bool is_owner_locked(const snk_entry *entry, uint64_t owner)
{
    return entry->machine.hold != NULL && entry->machine.hold->owner == owner;
}

void snk_agent_ask_locked(snk_agent *agent, snk_turn *turn)
{
    snk_waiter *waiter = &agent->waiter;
    snk_event event = { .kind = SNK_EVENT_ASK, .waiter = waiter };
    /* Whoever has the lock already gets another level, or a refusal, but no other hold. */
    if (!is_owner_locked(turn->entry, waiter->owner)) {
        waiter->hold = snk_entry_new_hold_locked(turn->entry);
        if (waiter->hold == NULL) {
            waiter->decided = true;
            (void)snk_fail(&waiter->result, SNECK_NO_MEMORY, 0, "out of memory for a hold; nothing was changed");
            snk_turn_take_sends(turn, NULL, 0);
            return;
        }
    }
    snk_turn_take_locked(turn, &event);
}

void snk_agent_go_on_locked(snk_agent *agent, snk_turn *turn, bool news, const snk_grant *grant)
{
    if (agent->waiter.interrupted) {
        snk_agent_give_up_locked(agent, turn, SNECK_CANCELED);
        return;
    }
    snk_event event = {
        .kind = SNK_EVENT_RESUME,
        .waiter = &agent->waiter,
        .news = news || agent->news,
        .grant = agent->is_granted ? &agent->grant : grant,
    };
    agent->news = false;
    agent->is_granted = false;
    snk_turn_take_locked(turn, &event);
}

void snk_agent_give_up_locked(snk_agent *agent, snk_turn *turn, sneck_status status)
{
    snk_event event = { .kind = SNK_EVENT_GIVE_UP, .waiter = &agent->waiter, .status = status };
    snk_turn_take_locked(turn, &event);
}

void snk_agent_end_locked(snk_agent *agent, snk_entry *entry)
{
    if (agent->waiter.hold != NULL)
        snk_entry_free_hold_locked(entry, agent->waiter.hold);
    agent->waiter.hold = NULL;
}

void snk_agent_account(const snk_agent *agent, const sneck_lock *lock)
{
    sneck_status status = agent->waiter.result.status;
    if (status != SNECK_OK)
        snk_metrics_refused(&lock->client->metrics, lock->entry, status);
    else if (snk_lock_is_of_thread(lock))
        snk_presence_add_level();
}

int64_t snk_wait_until_ns(int64_t wait_ms)
{
    if (wait_ms < 0 || wait_ms > SNK_NEVER_NS / SNK_NS_PER_MS)
        return SNK_NEVER_NS;
    return snk_time_add(snk_now_ns(), wait_ms * SNK_NS_PER_MS);
}
