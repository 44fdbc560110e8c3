#include "world.h"

#define RATE_PPM_MAX 50000

/* ---- The plan ---- */

static uint32_t draw_chance(sim_random *random, uint32_t most)
{
    return sim_random_chance(random, 500) ? 1 + sim_random_below(random, most) : 0;
}

static int64_t draw_every(sim_random *random, uint32_t armed, int64_t low_ns, int64_t high_ns)
{
    int64_t every_ns = sim_random_octaves(random, low_ns, high_ns);
    return sim_random_chance(random, armed) ? every_ns : 0;
}

static int64_t draw_rate(sim_random *random, bool drift)
{
    if (!drift)
        return 0;
    if (sim_random_chance(random, 300))
        return sim_random_chance(random, 500) ? RATE_PPM_MAX : -RATE_PPM_MAX;
    return sim_random_range(random, -RATE_PPM_MAX, RATE_PPM_MAX);
}

/* Clocks that are set by others agree to a few milliseconds, or not at all. */
static void draw_clocks(qs_world *world, bool drift)
{
    sim_random *random = &world->faults;
    int64_t base_ns = sim_random_range(random, 1000 * SNK_NS_PER_S, INT64_C(1) << 60);
    int64_t apart_ns = sim_random_octaves(random, SNK_NS_PER_US, world->quorum.lease_max_ns / 5);
    for (uint32_t i = 0; i < world->quorum.nodes; i++) {
        sim_clock *clock = &world->nodes[i].clock;
        clock->offset_ns = base_ns + sim_random_range(random, 0, apart_ns);
        clock->rate_ppm = draw_rate(random, drift);
    }
    /* One of them may be quite wrong: the others must do without it. */
    if (sim_random_chance(random, 100))
        world->nodes[sim_random_below(random, world->quorum.nodes)].clock.offset_ns +=
            (sim_random_chance(random, 500) ? -1 : 1) * world->quorum.lease_max_ns * 3;
    for (uint32_t i = 0; i < QS_PROCESSES_MAX; i++) {
        world->processes[i].clock.offset_ns = sim_random_range(random, SNK_NS_PER_S, 100 * SNK_NS_PER_S);
        world->processes[i].clock.rate_ppm = draw_rate(random, drift);
    }
}

/* How long a node is young, and so of little use, is what the faults of nodes are measured by. */
static void draw_faults(sim_random *random, qs_plan *plan, int64_t young_ns)
{
    int64_t lease_ns = plan->lease_ns;
    plan->every_ns[QS_FAULT_PAUSE] = draw_every(random, 400, lease_ns, lease_ns * 8);
    plan->every_ns[QS_FAULT_FREEZE] = draw_every(random, 200, young_ns / 2, young_ns * 4);
    plan->every_ns[QS_FAULT_CRASH] = draw_every(random, 250, lease_ns * 2, lease_ns * 16);
    plan->every_ns[QS_FAULT_CUT] = draw_every(random, 450, lease_ns / 4, lease_ns * 4);
    plan->every_ns[QS_FAULT_RESET] = draw_every(random, 350, lease_ns / 8, lease_ns * 4);
    plan->every_ns[QS_FAULT_NODE_PAUSE] = draw_every(random, 400, lease_ns / 2, lease_ns * 4);
    plan->every_ns[QS_FAULT_NODE_EMPTY] = draw_every(random, 500, young_ns / 8, young_ns * 4);
    plan->every_ns[QS_FAULT_NODE_STALE] = draw_every(random, 300, young_ns / 8, young_ns * 4);
    plan->every_ns[QS_FAULT_FLUSH] = draw_every(random, 250, young_ns / 8, young_ns * 4);
    plan->every_ns[QS_FAULT_BREAK] = draw_every(random, 150, lease_ns / 2, lease_ns * 4);
    plan->every_ns[QS_FAULT_SAVE] = draw_every(random, 800, lease_ns / 8, lease_ns * 4);
}

void qs_draw_plan(qs_world *world)
{
    static const uint32_t sizes[] = { 5, 5, 5, 3, 3, 4, 7, 1 };
    sim_random *random = &world->faults;
    qs_plan *plan = &world->plan;
    *plan = (qs_plan){ 0 };
    bool drift = sim_random_chance(random, 400);
    plan->lease_ns = sim_random_octaves(random, SNK_LEASE_MS_MIN * SNK_NS_PER_MS, 5 * SNK_NS_PER_S);
    world->quorum.nodes = sizes[sim_random_below(random, sizeof sizes / sizeof sizes[0])];
    world->quorum.lease_max_ns = plan->lease_ns * (drift ? 8 : 1 + (int64_t)sim_random_below(random, 4));
    plan->latency_ns = sim_random_octaves(random, 20 * SNK_NS_PER_US, plan->lease_ns / 100);
    plan->timeout_ns = plan->lease_ns / 8 > 25 * SNK_NS_PER_MS ? plan->lease_ns / 8 : 25 * SNK_NS_PER_MS;
    plan->retry_ns = plan->lease_ns / 8;
    plan->process_count = 2 + sim_random_below(random, QS_PROCESSES_MAX - 1);
    plan->thread_count = 1 + sim_random_below(random, QS_THREADS_MAX);
    plan->event_budget = 400 + sim_random_below(random, 1200);
    plan->late = draw_chance(random, 200);
    plan->news_lost = draw_chance(random, 1000);
    plan->once = draw_chance(random, 500);
    plan->unrenewed = draw_chance(random, 600);
    draw_faults(random, plan, world->quorum.lease_max_ns + SNK_QUORUM_YOUNG_NS);
    draw_clocks(world, drift);
    plan->horizon_ns = plan->lease_ns * (drift ? 16 : 60);
    plan->every_ns[QS_FAULT_FORGET] = draw_every(random, 200, plan->lease_ns / 16, plan->lease_ns * 4);
    plan->every_ns[QS_FAULT_REFUSE] = draw_every(random, 200, plan->lease_ns / 4, plan->lease_ns * 4);
}

/* ---- Faults ---- */

static void push_fault(qs_world *world, qs_fault fault, int64_t from_ns)
{
    int64_t every_ns = world->plan.every_ns[fault];
    if (every_ns == 0 || world->phase != QS_PHASE_FAULTS)
        return;
    qs_push(world, from_ns + sim_random_range(&world->faults, 1, every_ns * 2),
            &(sim_event){ .kind = QS_EVENT_FAULT, .index = (uint32_t)fault });
}

void qs_faults_begin(qs_world *world)
{
    for (uint32_t i = 0; i < QS_FAULT_COUNT; i++)
        push_fault(world, (qs_fault)i, 0);
}

static void pause_process(qs_world *world, qs_process *process, int64_t least_ns, int64_t most_ns)
{
    int64_t pause_ns = sim_random_octaves(&world->faults, least_ns, most_ns);
    if (process->paused_until_ns > world->now_ns)
        return;
    process->paused_until_ns = world->now_ns + pause_ns;
    if (pause_ns > world->plan.lease_ns && process->machine.hold != NULL)
        qs_saw(world, QS_PROBE_PAUSED_PAST_LEASE);
    qs_record(world, "pause", qs_number(world, process), (uint64_t)pause_ns, 0);
}

/* One pause at a time, so that what waits for its end stays in order. */
static void pause_node(qs_world *world, qs_node *node)
{
    if (node->paused_until_ns > world->now_ns)
        return;
    qs_saw(world, QS_PROBE_PAUSED_NODE);
    node->paused_until_ns = world->now_ns + sim_random_octaves(&world->faults, SNK_NS_PER_MS, world->plan.lease_ns * 2);
    qs_record(world, "pause node", 0, (uint64_t)(node - world->nodes), (uint64_t)node->paused_until_ns);
}

/* A pause that no clock of the process counts, as some virtual machines have it. */
static void freeze_process(qs_world *world, qs_process *process)
{
    if (process->paused_until_ns > world->now_ns)
        return;
    pause_process(world, process, world->plan.lease_ns, 2 * (world->quorum.lease_max_ns + SNK_QUORUM_YOUNG_NS));
    process->clock.offset_ns -= process->paused_until_ns - world->now_ns;
    for (uint32_t i = 0; i < world->claim_count; i++)
        if (world->claims[i].process == qs_number(world, process))
            world->claims[i].blind = true;
}

static void drop_all(qs_world *world, const qs_process *process)
{
    uint8_t number = qs_number(world, process);
    qs_drop_requests(world, process);
    for (uint32_t i = 0; i < QS_OPERATIONS_MAX; i++)
        if (world->operations[i].process == number)
            world->operations[i].used = false;
    for (uint32_t i = 0; i < QS_UNDOS_MAX; i++)
        if (world->undos[i].process == number)
            world->undos[i].used = false;
    for (uint32_t i = 0; i < QS_CHASES_MAX; i++)
        if (world->chases[i].process == number)
            world->chases[i].used = false;
}

static void crash_process(qs_world *world, qs_process *process)
{
    if (!process->up)
        return;
    if (process->machine.hold != NULL)
        qs_saw(world, QS_PROBE_CRASHED_HOLDING);
    qs_record(world, "crash", qs_number(world, process), 0, 0);
    drop_all(world, process);
    process->up = false;
    process->epoch++;
    process->paused_until_ns = 0;
    qs_push(world, world->now_ns + sim_random_octaves(&world->faults, SNK_NS_PER_MS, world->plan.lease_ns),
            &(sim_event){ .kind = QS_EVENT_RESTART, .process = qs_number(world, process), .epoch = process->epoch });
}

static void restart_node(qs_world *world, uint32_t number, bool empty)
{
    qs_node *node = &world->nodes[number];
    if (qs_node_is_taken(node, qs_node_now(world, node)))
        qs_saw(world, empty ? QS_PROBE_RESTARTED_EMPTY : QS_PROBE_RESTARTED_STALE);
    qs_record(world, empty ? "restart empty" : "restart stale", 0, number, 0);
    qs_node_restart(node, empty, qs_node_now(world, node));
    /* Somebody else may have made them known again at once: where nothing else makes nodes forget them, that is so. */
    if (world->plan.every_ns[QS_FAULT_FORGET] > 0)
        qs_node_forget_scripts(node, UINT32_MAX);
    node->forgot_at_ns = world->now_ns;
    node->paused_until_ns = 0;
    node->down_until_ns = world->now_ns;
    if (sim_random_chance(&world->faults, 500))
        node->down_until_ns += sim_random_octaves(&world->faults, SNK_NS_PER_MS, world->plan.lease_ns * 2);
    for (uint32_t i = 0; i < world->plan.process_count; i++)
        if (world->processes[i].paused_until_ns <= world->now_ns)
            qs_reset(world, &world->processes[i], number, false);
}

static void flush_node(qs_world *world, uint32_t number)
{
    qs_node *node = &world->nodes[number];
    if (qs_node_is_taken(node, qs_node_now(world, node)))
        qs_saw(world, QS_PROBE_FLUSHED);
    qs_record(world, "flush", 0, number, 0);
    qs_node_flush(node);
    node->forgot_at_ns = world->now_ns;
}

/* Whoever has the lock loses it on every node at once. */
static void break_lock(qs_world *world)
{
    for (uint32_t i = 0; i < world->plan.process_count; i++) {
        const snk_hold *hold = world->processes[i].machine.hold;
        if (!world->processes[i].up || hold == NULL)
            continue;
        qs_find_claim(world, &hold->claim)->broken = true;
        qs_saw(world, QS_PROBE_BROKEN);
        qs_record(world, "break", i, 0, 0);
        for (uint32_t j = 0; j < world->quorum.nodes; j++) {
            qs_memory *memory = &world->nodes[j].memory;
            if (memory->taken && snk_id_equal(&memory->claim, &hold->claim))
                memory->taken = false;
        }
    }
}

void qs_on_fault(qs_world *world, const sim_event *event)
{
    if (world->phase != QS_PHASE_FAULTS)
        return;
    qs_process *process = &world->processes[sim_random_below(&world->faults, world->plan.process_count)];
    uint32_t node = sim_random_below(&world->faults, world->quorum.nodes);
    bool runs = process->up && process->paused_until_ns <= world->now_ns;
    switch ((qs_fault)event->index) {
    case QS_FAULT_PAUSE:
        pause_process(world, process, SNK_NS_PER_MS, world->plan.lease_ns * 3);
        break;
    case QS_FAULT_FREEZE:
        freeze_process(world, process);
        break;
    case QS_FAULT_CRASH:
        crash_process(world, process);
        break;
    case QS_FAULT_CUT:
        process->links[node].cut_until_ns =
            world->now_ns + sim_random_octaves(&world->faults, SNK_NS_PER_MS, world->plan.lease_ns * 2);
        qs_record(world, "cut", qs_number(world, process), node, (uint64_t)process->links[node].cut_until_ns);
        break;
    case QS_FAULT_RESET:
        if (runs)
            qs_reset(world, process, node, true);
        break;
    case QS_FAULT_NODE_PAUSE:
        pause_node(world, &world->nodes[node]);
        break;
    case QS_FAULT_NODE_EMPTY:
        restart_node(world, node, true);
        break;
    case QS_FAULT_NODE_STALE:
        restart_node(world, node, false);
        break;
    case QS_FAULT_FLUSH:
        flush_node(world, node);
        break;
    case QS_FAULT_FORGET:
        qs_record(world, "forget scripts", 0, node, 0);
        qs_node_forget_scripts(&world->nodes[node], sim_random_below(&world->faults, 16));
        break;
    case QS_FAULT_REFUSE:
        world->nodes[node].refuses_until_ns =
            world->now_ns + sim_random_octaves(&world->faults, SNK_NS_PER_MS, world->plan.lease_ns * 2);
        qs_record(world, "refuse", 0, node, (uint64_t)world->nodes[node].refuses_until_ns);
        break;
    case QS_FAULT_BREAK:
        break_lock(world);
        break;
    case QS_FAULT_SAVE:
        qs_node_save(&world->nodes[node]);
        break;
    case QS_FAULT_COUNT:
        break;
    }
    push_fault(world, (qs_fault)event->index, world->now_ns);
}

void qs_heal(qs_world *world)
{
    qs_record(world, "heal", 0, 0, 0);
    world->phase = QS_PHASE_HEALED;
    for (uint32_t i = 0; i < world->quorum.nodes; i++) {
        world->nodes[i].down_until_ns = 0;
        world->nodes[i].refuses_until_ns = 0;
        for (uint32_t j = 0; j < world->plan.process_count; j++)
            world->processes[j].links[i].cut_until_ns = 0;
    }
}
