#include "client/wait.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/agent.h"
#include "client/deadlock.h"
#include "client/perform.h"
#include "client/probes.h"

/* One acquire of one thread, on its stack. */
typedef struct wait {
    sneck_lock *lock;
    const snk_asking *asking;
    snk_agent agent;
    int64_t until_ns;
    uint64_t ticket; /* of the claim that the thread waits with; 0: it waits for others of this process only */
    snk_id claim;    /* with which it waits then */
    bool news;       /* the store said that there may be some */
    bool is_granted; /* namely that the claim was granted the lock: `grant` */
    snk_grant grant;
    int cancel_state;          /* the caller's */
    const snk_wait_hook *hook; /* NULL: none, or called */
    snk_wait_record record;    /* of a thread, while it waits */
    bool is_recorded;
    uint64_t asked; /* its number among the requests of threads */
} wait;

static bool is_registered(const snk_seek *seek)
{
    return seek->state == SNK_SEEK_QUEUED || seek->state == SNK_SEEK_ASKING;
}

/*
 * Word and ticket are read under entry.mutex, in which also every step that could change them is taken: so whatever
 * happens from here on finds the word ASLEEP, and no wake-up is lost.
 */
static bool begin_sleep_locked(wait *self)
{
    const snk_seek *seek = &self->agent.waiter.seek;
    self->ticket = is_registered(seek) ? seek->ticket : 0;
    self->claim = seek->claim;
    return snk_parking_begin(&self->agent.parking);
}

static void sleep_until_called(wait *self)
{
    snk_store *store = self->lock->client->store;
    _Atomic uint32_t *word = &self->agent.parking.word;
    if (self->ticket != 0) {
        self->news = store->ops->wait(store, self->ticket, word, SNK_ASLEEP, self->until_ns);
        return;
    }
    int64_t timeout_ns = self->until_ns == SNK_NEVER_NS ? SNK_NEVER_NS : self->until_ns - snk_now_ns();
    snk_futex_word sleeper = { .word = word, .expected = SNK_ASLEEP };
    if (timeout_ns > 0)
        (void)snk_futex_wait_any(&sleeper, 1, timeout_ns);
}

static void end_record(wait *self)
{
    if (self->is_recorded)
        snk_waits_end(&self->record);
    self->is_recorded = false;
}

/* Releases what the thread was given while it was being cancelled. */
static void release_again(wait *self)
{
    snk_turn turn;
    snk_event event = { .kind = SNK_EVENT_RELEASE, .owner = self->agent.waiter.owner };
    snk_turn_run(&turn, self->lock->client, self->lock->entry, &event);
    snk_perform(&turn, NULL);
}

/* The thread was cancelled in its sleep and will not come back: it leaves nothing behind. */
static void on_cancel(void *argument)
{
    wait *self = argument;
    sneck_client *client = self->lock->client;
    snk_entry *entry = self->lock->entry;
    snk_turn turn;
    snk_turn_init(&turn, client, entry);
    (void)pthread_mutex_lock(&entry->mutex);
    snk_agent_give_up_locked(&self->agent, &turn, SNECK_CANCELED);
    snk_agent_end_locked(&self->agent, entry);
    (void)pthread_mutex_unlock(&entry->mutex);
    snk_turn_end(&turn);
    snk_perform(&turn, NULL);
    end_record(self);
    if (self->agent.waiter.result.status == SNECK_OK)
        release_again(self);
    snk_gate_leave(&client->gate);
}

/* The only place where a thread can be cancelled. */
static void sleep_cancellably(wait *self)
{
    pthread_cleanup_push(on_cancel, self);
    (void)pthread_setcancelstate(self->cancel_state, NULL);
    sleep_until_called(self);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cleanup_pop(0);
}

/* The news may be that the claim was granted the lock: then nothing has to be asked. */
static void look_for_grant(wait *self)
{
    snk_store *store = self->lock->client->store;
    self->is_granted =
        self->news && store->ops->find_grant != NULL && store->ops->find_grant(store, &self->claim, &self->grant);
}

/*
 * Whoever waits for one of several locks may be interrupted while it is not waiting for any. Whoever interrupts counts
 * first, and tells those who wait then, under entry.mutex: so what is not told is seen here.
 */
static void note_interrupt_locked(wait *self)
{
    const snk_asking *asking = self->asking;
    if (asking->interrupts != NULL &&
        atomic_load_explicit(asking->interrupts, memory_order_relaxed) != asking->interrupts_seen)
        self->agent.waiter.interrupted = true;
}

/* One round: goes on, or gives up, or sleeps and then goes on. True when it is decided. */
static bool go_round(wait *self)
{
    snk_entry *entry = self->lock->entry;
    snk_turn turn;
    snk_turn_init(&turn, self->lock->client, entry);
    (void)pthread_mutex_lock(&entry->mutex);
    bool sleeps = false;
    note_interrupt_locked(self);
    if (self->agent.waiter.decided)
        snk_turn_take_sends(&turn, NULL, 0);
    else if (snk_now_ns() >= self->until_ns)
        snk_agent_give_up_locked(&self->agent, &turn, SNECK_TIMEOUT);
    else if (self->news || self->agent.news || self->agent.waiter.interrupted || !begin_sleep_locked(self))
        snk_agent_go_on_locked(&self->agent, &turn, self->news, self->is_granted ? &self->grant : NULL);
    else
        sleeps = true;
    self->news = false;
    self->is_granted = false;
    bool decided = self->agent.waiter.decided;
    if (decided)
        snk_agent_end_locked(&self->agent, entry);
    (void)pthread_mutex_unlock(&entry->mutex);
    if (sleeps) {
        snk_probe_wait(entry);
        sleep_cancellably(self);
        snk_parking_end(&self->agent.parking);
        look_for_grant(self);
        return false;
    }
    snk_turn_end(&turn);
    snk_perform(&turn, NULL);
    return decided;
}

static void tell_if_registered(wait *self)
{
    snk_entry *entry = self->lock->entry;
    const snk_waiter *waiter = &self->agent.waiter;
    (void)pthread_mutex_lock(&entry->mutex);
    bool registered = !waiter->decided && is_registered(&waiter->seek);
    (void)pthread_mutex_unlock(&entry->mutex);
    if (!registered)
        return;
    const snk_wait_hook *hook = self->hook;
    self->hook = NULL;
    if (hook->registered(hook->context))
        return;
    (void)pthread_mutex_lock(&entry->mutex);
    self->agent.waiter.interrupted = true;
    (void)pthread_mutex_unlock(&entry->mutex);
}

/* The thread is about to wait, and others may be waiting for it. True: for ever, so that it gives up. */
static bool would_wait_for_ever(wait *self, sneck_error *deadlock)
{
    snk_entry *entry = self->lock->entry;
    uint64_t owner = self->agent.waiter.owner;
    if (self->agent.waiter.once || (owner & SNK_OWNER_IS_HANDLE) != 0)
        return false;
    (void)pthread_mutex_lock(&entry->mutex);
    bool decided = self->agent.waiter.decided;
    (void)pthread_mutex_unlock(&entry->mutex);
    if (decided)
        return false;
    self->record = (snk_wait_record){
        .owner = owner,
        .asked = self->asked,
        .place = self->lock->client->neighbour.place,
        .entry = entry,
    };
    snk_waits_begin(&self->record);
    self->is_recorded = true;
    return snk_deadlock_find(&self->record, deadlock);
}

/* Gives up; should the lock have come meanwhile, there was no deadlock. */
static void give_up(wait *self, const sneck_error *deadlock)
{
    snk_entry *entry = self->lock->entry;
    snk_turn turn;
    snk_turn_init(&turn, self->lock->client, entry);
    (void)pthread_mutex_lock(&entry->mutex);
    snk_agent_give_up_locked(&self->agent, &turn, SNECK_CANCELED);
    snk_agent_end_locked(&self->agent, entry);
    (void)pthread_mutex_unlock(&entry->mutex);
    snk_turn_end(&turn);
    snk_perform(&turn, NULL);
    if (self->agent.waiter.result.status != SNECK_CANCELED)
        return;
    snk_note note = { .kind = SNECK_EVENT_DEADLOCK, .status = SNECK_DEADLOCK };
    self->agent.waiter.result = *deadlock;
    snk_events_emit(self->lock->client, entry, &note, deadlock->message);
}

/* The thread has a request in flight, or must wait; the gate was entered under entry.mutex. */
static void wait_until_decided(wait *self, snk_turn *turn)
{
    self->until_ns = snk_wait_until_ns(self->asking->wait_ms);
    self->asked = snk_waits_ask();
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &self->cancel_state);
    snk_perform(turn, NULL);
    sneck_error deadlock;
    bool decided = would_wait_for_ever(self, &deadlock);
    if (decided)
        give_up(self, &deadlock);
    while (!decided) {
        if (self->hook != NULL)
            tell_if_registered(self);
        decided = go_round(self);
    }
    end_record(self);
    snk_gate_leave(&self->lock->client->gate);
    (void)pthread_setcancelstate(self->cancel_state, NULL);
}

sneck_status snk_wait_acquire(sneck_lock *lock, const snk_terms *terms, const snk_asking *asking,
                              const snk_wait_hook *hook, sneck_error *error)
{
    wait self;
    self.lock = lock;
    self.asking = asking;
    self.news = false;
    self.is_granted = false;
    self.hook = hook;
    self.is_recorded = false;
    snk_agent_init(&self.agent, lock, terms, asking->wait_ms);
    snk_entry *entry = lock->entry;
    snk_turn turn;
    snk_turn_init(&turn, lock->client, entry);
    (void)pthread_mutex_lock(&entry->mutex);
    snk_agent_ask_locked(&self.agent, &turn);
    bool decided = self.agent.waiter.decided;
    /* Whoever gets here before the machine is closed is let in: closing waits only after it has closed all machines. */
    if (decided)
        snk_agent_end_locked(&self.agent, entry);
    bool stays = (!decided || turn.actions.send_count > 0) && snk_gate_enter(&lock->client->gate);
    (void)pthread_mutex_unlock(&entry->mutex);
    snk_turn_end(&turn);
    if (stays)
        wait_until_decided(&self, &turn);
    snk_agent_account(&self.agent, lock);
    return snk_fail_as(error, &self.agent.waiter.result);
}
