/* The store's side: what each execution may do (store/store.h), and what is true of a lock between events. */
#include <string.h>

#include "base/clock.h"
#include "oracle.h"

static int64_t store_now(const sim_world *world)
{
    return sim_clock_local(&world->store_clock, world->now_ns);
}

/* ---- Executions ---- */

void oracle_before_execution(const sim_world *world, uint32_t lock, oracle_store_before *before_out)
{
    const model_lock *model = &world->store.data.locks[lock];
    model_lock *copy = &before_out->lock;
    copy->held = model->held;
    copy->offered = model->offered;
    copy->holder = model->holder;
    copy->token_first = model->token_first;
    copy->token_last = model->token_last;
    copy->counter = model->counter;
    copy->queue_count = model->queue_count;
    memcpy(copy->queue, model->queue, model->queue_count * sizeof model->queue[0]);
}

static const model_entry *find_live(const model_lock *lock, const snk_id *claim, int64_t now_ns)
{
    if (lock->held && lock->holder.expires_at_ns > now_ns && snk_id_equal(&lock->holder.claim, claim))
        return &lock->holder;
    for (uint32_t i = 0; i < lock->queue_count; i++)
        if (lock->queue[i].expires_at_ns > now_ns && snk_id_equal(&lock->queue[i].claim, claim))
            return &lock->queue[i];
    return NULL;
}

static const model_entry *find_holder(const model_lock *lock, int64_t now_ns)
{
    return lock->held && lock->holder.expires_at_ns > now_ns ? &lock->holder : NULL;
}

static const model_entry *find_first(const model_lock *lock, const snk_id *except, int64_t now_ns)
{
    for (uint32_t i = 0; i < lock->queue_count; i++)
        if (lock->queue[i].expires_at_ns > now_ns && (except == NULL || !snk_id_equal(&lock->queue[i].claim, except)))
            return &lock->queue[i];
    return NULL;
}

/* Nobody's request changes another claim, except that the first of the queue may be granted a lock that is free. */
static void check_others(sim_world *world, const model_lock *before, const model_lock *after, const snk_id *subject,
                         int64_t now_ns)
{
    const model_entry *holder = find_holder(before, now_ns);
    if (holder != NULL && (subject == NULL || !snk_id_equal(&holder->claim, subject))) {
        if (!after->held || !snk_id_equal(&after->holder.claim, &holder->claim) ||
            after->holder.expires_at_ns != holder->expires_at_ns || after->token_first != before->token_first)
            sim_violate(world, "I3", "a request about another claim changed the holder");
    }
    for (uint32_t i = 0; i < before->queue_count; i++) {
        const model_entry *entry = &before->queue[i];
        if (entry->expires_at_ns <= now_ns) {
            sim_saw(world, SIM_PROBE_WAITER_EXPIRED);
            continue;
        }
        if (subject != NULL && snk_id_equal(&entry->claim, subject))
            continue;
        const model_entry *now = find_live(after, &entry->claim, now_ns);
        if (now == NULL || (now != &after->holder && now->expires_at_ns != entry->expires_at_ns))
            sim_violate(world, "I3", "a request about another claim changed the queue");
    }
}

/* After healing news arrive, so an offer is taken up at once, unless the answer to an earlier question was lost. */
static bool is_told_at_once(const sim_world *world, const sim_claim *claim)
{
    const sim_process *process = &world->processes[claim->process];
    bool asked_before = claim->in_flight > 0 && claim->sent_at_ns <= world->healed_at_ns;
    return world->phase == SIM_PHASE_HEALED && process->engine.pushes_wakeups && process->up && !process->closing &&
           process->epoch == claim->epoch && process->paused_until_ns < world->now_ns && !claim->forgotten &&
           !asked_before;
}

static void check_new_holder(sim_world *world, uint32_t lock, const model_lock *before, const snk_id *subject,
                             const snk_answer *answer)
{
    const model_lock *after = &world->store.data.locks[lock];
    sim_ledger *ledger = &world->ledgers[lock];
    int64_t now_ns = store_now(world);
    const model_entry *first = find_first(before, subject != NULL && answer == NULL ? subject : NULL, now_ns);
    bool asked = subject != NULL && snk_id_equal(&after->holder.claim, subject);
    sim_claim *claim = sim_find_claim(world, &after->holder.claim);
    if (first != NULL && !snk_id_equal(&first->claim, &after->holder.claim))
        sim_violate(world, "I11", "granted out of turn");
    if (first == NULL && !asked)
        sim_violate(world, "I3", "granted to a claim that nobody asked for");
    if (after->token_first <= ledger->granted_token || after->token_last < after->token_first)
        sim_violate(world, "I1", "the store gave token %llu after %llu", (unsigned long long)after->token_first,
                    (unsigned long long)ledger->granted_token);
    ledger->granted_token = after->token_last;
    claim->granted = true;
    if (asked)
        return;
    int64_t life_ns = after->holder.lease_ns < SNK_OFFER_NS ? after->holder.lease_ns : SNK_OFFER_NS;
    if (after->holder.expires_at_ns > now_ns + life_ns)
        sim_violate(world, "I6", "an offer lives longer than it should");
    sim_saw(world, SIM_PROBE_OFFERED);
    if (is_told_at_once(world, claim))
        claim->offered_at_ns = world->now_ns;
}

static void check_held_answer(sim_world *world, const model_lock *before, const model_lock *after, const snk_send *send,
                              const snk_answer *answer)
{
    int64_t now_ns = store_now(world);
    const model_entry *entry = find_live(before, &send->claim, now_ns);
    if (!after->held || !snk_id_equal(&after->holder.claim, &send->claim))
        sim_violate(world, "S2", "held is answered, and another claim holds the lock");
    if (after->holder.expires_at_ns < now_ns + send->lease_ns)
        sim_violate(world, "S2", "held is answered without the full lease");
    /* A claim that waited, and is granted by this, has had no lease of the lock so far. */
    if (entry == &before->holder && after->holder.expires_at_ns < entry->expires_at_ns)
        sim_violate(world, "S2", "a renewal shortened the lease");
    if (answer->token_first != after->token_first || answer->token_last != after->token_last)
        sim_violate(world, "I1", "the tokens of the answer are not those of the grant");
}

static void check_renew(sim_world *world, const model_lock *before, const model_lock *after, const snk_send *send,
                        const snk_answer *answer)
{
    int64_t now_ns = store_now(world);
    bool known = find_live(before, &send->claim, now_ns) != NULL;
    const model_entry *entry = find_live(after, &send->claim, now_ns);
    if (!known && (answer->kind != SNK_ANSWER_GONE || entry != NULL))
        sim_violate(world, "S4", "a renewal registered an unknown claim");
    if (known && (entry == NULL || entry->expires_at_ns < now_ns + send->lease_ns))
        sim_violate(world, "S2", "a renewal did not refresh its claim");
    if (known && answer->kind != (entry == &after->holder ? SNK_ANSWER_HELD : SNK_ANSWER_QUEUED))
        sim_violate(world, "S2", "a renewal was answered wrongly");
}

static void check_acquire(sim_world *world, const model_lock *after, const snk_send *send, const snk_answer *answer)
{
    int64_t now_ns = store_now(world);
    const model_entry *entry = find_live(after, &send->claim, now_ns);
    sim_claim *claim = sim_find_claim(world, &send->claim);
    claim->acquire_applied = true;
    if (claim->buried) {
        sim_saw(world, SIM_PROBE_ACQUIRE_REFUSED);
        if (answer->kind != SNK_ANSWER_GONE || entry != NULL)
            sim_violate(world, "S4", "a claim that was given up is registered after all");
    }
    switch (answer->kind) {
    case SNK_ANSWER_HELD:
        sim_saw(world, SIM_PROBE_GRANTED);
        break;
    case SNK_ANSWER_QUEUED:
        sim_saw(world, SIM_PROBE_QUEUED);
        if (!send->queue || entry == NULL || entry == &after->holder)
            sim_violate(world, "S2", "queued is answered, and the claim does not wait");
        break;
    case SNK_ANSWER_BUSY:
        if (entry != NULL || find_holder(after, now_ns) == NULL)
            sim_violate(world, "I16", "busy is answered, and nobody else has the lock");
        break;
    default:
        if (entry != NULL)
            sim_violate(world, "S4", "an acquire was refused, and its claim is registered");
        break;
    }
}

static void check_release(sim_world *world, const model_lock *before, const model_lock *after, const snk_send *send,
                          const snk_answer *answer)
{
    int64_t now_ns = store_now(world);
    bool known = find_live(before, &send->claim, now_ns) != NULL;
    sim_claim *claim = sim_find_claim(world, &send->claim);
    claim->released = true;
    claim->buried |= send->unanswered;
    if (find_live(after, &send->claim, now_ns) != NULL)
        sim_violate(world, "I5", "a claim is there after its release");
    /* One that waited may have been granted and ended in the same execution; it was there all the same. */
    if ((answer->kind == SNK_ANSWER_DONE) != known)
        sim_violate(world, "I16", "a release was answered wrongly");
}

void oracle_after_execution(sim_world *world, uint32_t lock, const snk_send *send, const snk_answer *answer,
                            const snk_id *broken, const oracle_store_before *before)
{
    const model_lock *after = &world->store.data.locks[lock];
    int64_t now_ns = store_now(world);
    const snk_id *subject = send != NULL ? &send->claim : broken;
    const model_entry *holder = find_holder(&before->lock, now_ns);
    check_others(world, &before->lock, after, subject, now_ns);
    if (before->lock.held && before->lock.offered && holder == NULL)
        sim_saw(world, SIM_PROBE_OFFER_LAPSED);
    if (after->held && after->holder.expires_at_ns <= now_ns)
        sim_violate(world, "I6", "a lease is over, and the lock is not free");
    if (!after->held && find_first(after, NULL, now_ns) != NULL)
        sim_violate(world, "I6", "the lock is free, and the queue waits");
    bool is_new = after->held && (holder == NULL || !snk_id_equal(&after->holder.claim, &holder->claim));
    bool ends_subject = send == NULL || send->ask == SNK_ASK_RELEASE;
    if (is_new)
        check_new_holder(world, lock, &before->lock, subject, ends_subject ? NULL : answer);
    if (send == NULL)
        return;
    sim_find_claim(world, &send->claim)->offered_at_ns = 0;
    if (answer->kind == SNK_ANSWER_HELD)
        check_held_answer(world, &before->lock, after, send, answer);
    if (send->ask == SNK_ASK_RENEW)
        check_renew(world, &before->lock, after, send, answer);
    else if (send->ask == SNK_ASK_ACQUIRE)
        check_acquire(world, after, send, answer);
    else
        check_release(world, &before->lock, after, send, answer);
}

/* ---- Between events ---- */

/* Somebody still cares for this claim: a machine that knows it, or a request or a chase on its way. */
static bool is_cared_for(const sim_world *world, const sim_claim *claim)
{
    const sim_process *process = &world->processes[claim->process];
    if (claim->forgotten || claim->epoch != process->epoch || claim->in_flight > 0)
        return true;
    const snk_machine *machine = &process->machines[claim->lock];
    if (machine->hold != NULL && snk_id_equal(&machine->hold->claim, &claim->id))
        return true;
    for (uint32_t i = 0; i < SIM_AGENTS_MAX; i++) {
        const sim_thread *thread = &process->threads[i];
        if (thread->state == SIM_THREAD_WAITING && thread->lock == claim->lock && !thread->waiter.decided &&
            thread->waiter.seek.state != SNK_SEEK_NONE && snk_id_equal(&thread->waiter.seek.claim, &claim->id))
            return true;
    }
    return false;
}

static void check_orphans(sim_world *world, uint32_t lock)
{
    const model_lock *model = &world->store.data.locks[lock];
    int64_t now_ns = store_now(world);
    if (find_holder(model, now_ns) != NULL && !is_cared_for(world, sim_find_claim(world, &model->holder.claim)))
        sim_violate(world, "I5", "a claim holds the lock, and nobody knows of it");
    for (uint32_t i = 0; i < model->queue_count; i++)
        if (model->queue[i].expires_at_ns > now_ns &&
            !is_cared_for(world, sim_find_claim(world, &model->queue[i].claim)))
            sim_violate(world, "I5", "a claim waits, and nobody knows of it");
}

/* A process believes in its hold until its deadline on its own clock: so long the store must have it, for it alone. */
static bool check_belief(sim_world *world, const sim_process *process, uint32_t lock)
{
    const snk_machine *machine = &process->machines[lock];
    const model_lock *model = &world->store.data.locks[lock];
    if (!process->up || machine->hold == NULL)
        return false;
    int64_t deadline_ns = snk_deadline_peek(&machine->deadline);
    if (deadline_ns <= sim_local_now(world, process))
        return false;
    const sim_claim *claim = sim_find_claim(world, &machine->hold->claim);
    if (claim->broken)
        return false;
    if (!model->held || !snk_id_equal(&model->holder.claim, &claim->id)) {
        sim_violate(world, "I2", "a process believes in a hold that the store has ended");
        return true;
    }
    int64_t ends_at_ns = sim_clock_true(&world->store_clock, model->holder.expires_at_ns);
    if (sim_clock_true(&process->clock, deadline_ns) > ends_at_ns)
        sim_violate(world, "S2", "a process believes in its hold for longer than the store keeps it");
    return true;
}

void oracle_check_lock(sim_world *world, uint32_t lock)
{
    uint32_t believers = 0;
    if (world->trail.failed)
        return;
    for (uint32_t i = 0; i < world->plan.process_count; i++)
        believers += check_belief(world, &world->processes[i], lock);
    if (believers > 1)
        sim_violate(world, "I2", "%u processes believe that they hold the lock", believers);
    check_orphans(world, lock);
}

/* ---- The resource ---- */

static bool admit(sim_world *world, sim_resource *resource, uint64_t token)
{
    if (token < resource->highest_token) {
        sim_saw(world, SIM_PROBE_WRITE_REFUSED);
        return false;
    }
    resource->highest_token = token;
    return true;
}

void oracle_read(sim_world *world, sim_thread *thread, uint64_t token)
{
    sim_resource *resource = &world->ledgers[thread->lock].resource;
    thread->has_read = admit(world, resource, token);
    thread->read_version = resource->version;
}

void oracle_write(sim_world *world, sim_thread *thread, uint64_t token)
{
    sim_resource *resource = &world->ledgers[thread->lock].resource;
    if (!thread->has_read || !admit(world, resource, token))
        return;
    if (thread->read_version != resource->version && resource->writer_token != token)
        sim_violate(world, "I1", "a write with token %llu went over one with %llu that it had not read",
                    (unsigned long long)token, (unsigned long long)resource->writer_token);
    resource->version++;
    resource->writer_token = token;
    thread->read_version = resource->version;
}

/* ---- After healing ---- */

static bool somebody_waits(const sim_world *world, uint32_t lock)
{
    for (uint32_t i = 0; i < world->plan.process_count; i++)
        for (uint32_t j = 0; j < SIM_AGENTS_MAX; j++) {
            const sim_thread *thread = &world->processes[i].threads[j];
            if (world->processes[i].up && world->processes[i].paused_until_ns < world->now_ns &&
                thread->state == SIM_THREAD_WAITING && thread->lock == lock && !thread->waiter.decided)
                return true;
        }
    return false;
}

void oracle_check_progress(sim_world *world)
{
    /* The longest pause between two looks, one request that went unanswered before, and a good measure. */
    int64_t take_up_ns = world->plan.latency_ns * 16 + 40 * SNK_NS_PER_MS + SNK_OFFER_NS / SNK_CONFIRM_DIVISOR;
    int64_t bound_ns = world->plan.lease_ns * 2 + world->plan.timeout_ns * 2 + 3 * SNK_NS_PER_S;
    for (uint32_t lock = 0; lock < world->plan.lock_count; lock++) {
        sim_ledger *ledger = &world->ledgers[lock];
        const model_lock *model = &world->store.data.locks[lock];
        const sim_claim *holder = model->held ? sim_find_claim(world, &model->holder.claim) : NULL;
        if (holder != NULL && holder->offered_at_ns != 0 && world->now_ns - holder->offered_at_ns > take_up_ns)
            sim_violate(world, "I6", "an offer that was announced is not taken up");
        bool stuck = find_holder(model, store_now(world)) == NULL && somebody_waits(world, lock);
        if (!stuck)
            ledger->free_since_ns = -1;
        else if (ledger->free_since_ns < 0)
            ledger->free_since_ns = world->now_ns;
        else if (world->now_ns - ledger->free_since_ns > bound_ns)
            sim_violate(world, "I6", "the lock is free, somebody waits, and nothing happens");
    }
}

void oracle_check_closed(sim_world *world, const sim_process *process)
{
    uint32_t number = sim_process_number(world, process);
    int64_t now_ns = store_now(world);
    for (uint32_t i = 0; i < SIM_HOLDINGS_MAX; i++)
        if (process->holdings[i].state == SIM_HOLDING_TAKEN)
            sim_violate(world, "I15", "memory of a hold is left after close");
    for (uint32_t lock = 0; lock < world->plan.lock_count; lock++) {
        const model_lock *model = &world->store.data.locks[lock];
        const model_entry *holder = find_holder(model, now_ns);
        const sim_claim *claim = holder == NULL ? NULL : sim_find_claim(world, &holder->claim);
        if (claim != NULL && claim->process == number && claim->epoch == process->epoch && !claim->forgotten)
            sim_violate(world, "I5", "a lock is held after close");
        for (uint32_t i = 0; i < model->queue_count; i++) {
            claim = sim_find_claim(world, &model->queue[i].claim);
            if (claim->process == number && claim->epoch == process->epoch && !claim->forgotten &&
                model->queue[i].expires_at_ns > now_ns)
                sim_violate(world, "I5", "a claim waits after close");
        }
    }
}

void oracle_check_end(sim_world *world)
{
    int64_t now_ns = store_now(world);
    for (uint32_t lock = 0; lock < world->plan.lock_count; lock++) {
        const model_lock *model = &world->store.data.locks[lock];
        if (find_holder(model, now_ns) != NULL || find_first(model, NULL, now_ns) != NULL)
            sim_violate(world, "I5", "everybody is gone, the leases are over, and the store is not empty");
    }
}
