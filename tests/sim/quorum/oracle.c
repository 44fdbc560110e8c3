/* Knows everything about the world, and checks the invariants. Ids as in ../README.md. */
#include "world.h"

/* ---- Decisions ---- */

/* Everybody who waits, and sees now that another claim has a vote, or another thread the lock. */
static void note_others(qs_world *world)
{
    for (uint32_t i = 0; i < world->plan.process_count * QS_THREADS_MAX; i++) {
        qs_process *process = &world->processes[i / QS_THREADS_MAX];
        qs_thread *thread = &process->threads[i % QS_THREADS_MAX];
        thread->saw_other |= process->machine.hold != NULL;
        for (uint32_t j = 0; j < world->quorum.nodes && !thread->saw_other; j++) {
            const qs_node *node = &world->nodes[j];
            thread->saw_other = qs_node_is_taken(node, qs_node_now(world, node)) &&
                                !snk_id_equal(&node->memory.claim, &thread->waiter.seek.claim);
        }
    }
}

static void check_token(qs_world *world, const qs_thread *thread)
{
    uint64_t token = thread->waiter.token;
    if (token <= thread->floor_token)
        qs_violate(world, "I1", "token %llu, and %llu was returned before this acquire began",
                   (unsigned long long)token, (unsigned long long)thread->floor_token);
    for (uint32_t i = 0; i < world->token_count; i++)
        if (world->tokens[i] == token)
            qs_violate(world, "I1", "token %llu given to two holds", (unsigned long long)token);
    if (world->token_count < QS_TOKENS_MAX)
        world->tokens[world->token_count++] = token;
    if (token > world->highest_token)
        world->highest_token = token;
}

void qs_check_decision(qs_world *world, qs_process *process, qs_thread *thread)
{
    sneck_status status = thread->waiter.result.status;
    if (thread->noticed)
        return;
    thread->noticed = true;
    note_others(world);
    qs_record(world, sneck_status_name(status), qs_number(world, process), thread->waiter.token, 0);
    if (status == SNECK_OK) {
        const snk_hold *hold = process->machine.hold;
        if (hold == NULL || hold->token != thread->waiter.token) {
            qs_violate(world, "I10", "granted, and the machine has no hold for it");
            return;
        }
        thread->token = thread->waiter.token;
        check_token(world, thread);
    } else if (status == SNECK_BUSY && !thread->saw_other) {
        qs_violate(world, "I16", "busy is said, and nobody else had a vote");
    } else if (status == SNECK_UNKNOWN) {
        qs_saw(world, QS_PROBE_UNKNOWN);
    } else if (status == SNECK_UNAVAILABLE) {
        qs_saw(world, QS_PROBE_UNAVAILABLE);
    } else if (status == SNECK_TIMEOUT) {
        qs_saw(world, QS_PROBE_TIMED_OUT);
    }
}

/* ---- Between events ---- */

/*
 * While a process believes in its hold, on its own clock, a majority of the nodes have the claim for at least as long;
 * or have forgotten it since, and then do not count for anybody else.
 */
static bool check_belief(qs_world *world, const qs_process *process)
{
    const snk_machine *machine = &process->machine;
    if (!process->up || machine->hold == NULL)
        return false;
    int64_t deadline_ns = snk_deadline_peek(&machine->deadline);
    const qs_claim *claim = qs_find_claim(world, &machine->hold->claim);
    if (deadline_ns <= qs_local(world, process) || claim->broken || claim->blind)
        return false;
    int64_t ends_at_ns = sim_clock_true(&process->clock, deadline_ns);
    uint32_t support = 0;
    for (uint32_t i = 0; i < world->quorum.nodes; i++) {
        const qs_node *node = &world->nodes[i];
        bool has = node->memory.taken && snk_id_equal(&node->memory.claim, &claim->id) &&
                   node->memory.attempt == claim->held_by &&
                   sim_clock_true(&node->clock, node->memory.ends_at_ns) >= ends_at_ns;
        support += has || node->forgot_at_ns >= claim->asked_at_ns;
    }
    if (support < snk_quorum_majority(&world->quorum))
        qs_violate(world, "S2", "a process believes in a hold that only %u of %u nodes keep so long", support,
                   world->quorum.nodes);
    return true;
}

static bool is_same(const qs_memory *memory, const qs_question *question)
{
    return snk_id_equal(&memory->claim, &question->claim) &&
           (memory->attempt == question->attempt || question->attempt == QS_ALL_TRIES);
}

/* Somebody still cares for the vote of this node. */
static bool is_cared_for(const qs_world *world, uint32_t node, const qs_claim *claim)
{
    const qs_memory *memory = &world->nodes[node].memory;
    const qs_process *process = &world->processes[claim->process];
    if (claim->epoch != process->epoch || !process->up || claim->broken || memory->adopted)
        return true;
    if (claim->state == QS_CLAIM_HELD && claim->held_by == memory->attempt)
        return true;
    for (uint32_t i = 0; i < QS_OPERATIONS_MAX; i++) {
        const qs_operation *operation = &world->operations[i];
        if (operation->used && operation->votes && !operation->answered &&
            snk_id_equal(&operation->send.claim, &claim->id) && operation->attempt == memory->attempt)
            return true;
    }
    for (uint32_t i = 0; i < QS_UNDOS_MAX; i++)
        if (world->undos[i].used && world->undos[i].node == node && is_same(memory, &world->undos[i].question))
            return true;
    for (uint32_t i = 0; i < QS_REQUESTS_MAX; i++) {
        const qs_request *request = &world->requests[i];
        if (request->used && request->waited_for && request->node == node && is_same(memory, &request->question))
            return true;
    }
    return false;
}

static void check_orphans(qs_world *world)
{
    for (uint32_t i = 0; i < world->quorum.nodes; i++) {
        const qs_node *node = &world->nodes[i];
        if (!qs_node_is_taken(node, qs_node_now(world, node)) || node->forgot_at_ns >= 0)
            continue; /* a node that went back in time may have anything */
        if (!is_cared_for(world, i, qs_find_claim(world, &node->memory.claim)))
            qs_violate(world, "I5", "node %u is locked by a claim that nobody knows of", i);
    }
}

void qs_check(qs_world *world)
{
    uint32_t believers = 0;
    if (world->trail.failed)
        return;
    note_others(world);
    for (uint32_t i = 0; i < world->plan.process_count; i++)
        believers += check_belief(world, &world->processes[i]);
    if (believers > 1)
        qs_violate(world, "I2", "%u processes believe that they hold the lock", believers);
    check_orphans(world);
}

void qs_check_end(qs_world *world)
{
    for (uint32_t i = 0; i < world->quorum.nodes; i++)
        if (qs_node_is_taken(&world->nodes[i], qs_node_now(world, &world->nodes[i])) &&
            world->nodes[i].memory.ends_at_ns > qs_node_now(world, &world->nodes[i]) + world->quorum.lease_max_ns)
            qs_violate(world, "I5", "everybody is gone, the leases are over, and node %u is locked", i);
}

/* ---- The resource ---- */

static bool admit(qs_world *world, uint64_t token)
{
    if (token < world->resource_token) {
        qs_saw(world, QS_PROBE_WRITE_REFUSED);
        return false;
    }
    world->resource_token = token;
    return true;
}

void qs_read(qs_world *world, qs_thread *thread)
{
    thread->has_read = admit(world, thread->token);
    thread->read_version = world->resource_version;
}

void qs_write(qs_world *world, qs_thread *thread)
{
    if (!thread->has_read || !admit(world, thread->token))
        return;
    if (thread->read_version != world->resource_version && world->writer_token != thread->token)
        qs_violate(world, "I1", "a write with token %llu went over one with %llu that it had not read",
                   (unsigned long long)thread->token, (unsigned long long)world->writer_token);
    world->resource_version++;
    world->writer_token = thread->token;
    thread->read_version = world->resource_version;
}
