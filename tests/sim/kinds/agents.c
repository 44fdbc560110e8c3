/* What the threads do: one thing after the other, each with its own way to end. */
#include "base/clock.h"
#include "base/limits.h"
#include "kinds/world.h"

#define OWNER 1
#define PAUSE_SHORT_NS (2 * SNK_NS_PER_MS)

static void finish(kinds_agent *agent, kinds_unit *unit);

static bool chance(kinds_world *world, uint32_t per_mille)
{
    return sim_random_chance(&world->workload, per_mille);
}

static void push(kinds_agent *agent, kinds_event_kind kind, uint32_t unit, int64_t at_ns)
{
    kinds_push(agent->world, at_ns,
               &(sim_event){ .kind = (uint8_t)kind,
                             .process = (uint8_t)kinds_agent_number(agent),
                             .lock = (uint8_t)unit,
                             .epoch = agent->epoch,
                             .generation = agent->generation });
}

static int64_t draw_pause_ns(kinds_world *world)
{
    if (!world->healed && chance(world, 150))
        return sim_random_range(&world->workload, 1, world->plan.lease_ns * 3 / 2);
    return sim_random_octaves(&world->workload, SNK_NS_PER_US, PAUSE_SHORT_NS * 2);
}

static void schedule_after(kinds_agent *agent, kinds_doing doing, int64_t pause_ns)
{
    agent->doing = doing;
    agent->generation++;
    push(agent, KINDS_EVENT_ACT, 0, agent->world->now_ns + pause_ns);
}

static void schedule(kinds_agent *agent, kinds_doing doing)
{
    schedule_after(agent, doing, draw_pause_ns(agent->world));
}

void kinds_agent_start(kinds_agent *agent)
{
    agent->up = true;
    agent->engine.draw_id = kinds_draw_id;
    agent->engine.context = agent;
    agent->wants_signal = false;
    agent->rounds_left = 1;
    for (uint32_t i = 0; i < KINDS_MACHINES; i++) {
        kinds_unit *unit = &agent->units[i];
        uint32_t timer_generation = unit->timer_generation + 1;
        *unit = (kinds_unit){ .armed_at_ns = SNK_NEVER_NS, .timer_generation = timer_generation };
        snk_machine_init(&unit->machine, &agent->engine);
    }
    schedule(agent, KINDS_IDLE);
}

void kinds_agent_wake(kinds_agent *agent, kinds_unit *unit, bool news)
{
    kinds_world *world = agent->world;
    unit->news_pending |= news;
    if (!unit->waits || unit->wake_pending)
        return;
    unit->wake_pending = true;
    int64_t delay_ns = sim_random_octaves(&world->network, SNK_NS_PER_US, 5 * SNK_NS_PER_MS);
    push(agent, KINDS_EVENT_WAKE, (uint32_t)(unit - agent->units), world->now_ns + delay_ns);
}

/* ---- Asking and giving back ---- */

static snk_hold *bring_hold(kinds_world *world, kinds_unit *unit)
{
    for (uint32_t i = 0; i < KINDS_HOLDS; i++) {
        if (!unit->hold_used[i]) {
            unit->hold_used[i] = true;
            return &unit->holds[i];
        }
    }
    kinds_violate(world, "I15", "a machine keeps the memory of %d holds", KINDS_HOLDS);
    return NULL;
}

/* `limit_ns` < 0: for ever. */
static void ask(kinds_agent *agent, kinds_unit *unit, kinds_thing thing, const snk_grip *grip, int64_t limit_ns)
{
    kinds_world *world = agent->world;
    unit->thing = thing;
    unit->grip = *grip;
    unit->grant.run = 0;
    unit->news_pending = false;
    unit->wake_pending = false;
    unit->saw_zero = world->store.things[KINDS_LATCH].count == 0;
    unit->waits = true;
    unit->waiter = (snk_waiter){
        .owner = OWNER,
        .tag = agent,
        .terms = { .lease_ns = world->plan.lease_ns,
                   .renew_ns = chance(world, world->plan.unrenewed) ? SNK_NEVER_NS : world->plan.lease_ns / 3,
                   .fair = chance(world, 300),
                   .forget_on_loss = true,
                   .is_unused = grip->mode == SNK_MODE_TAKE },
        .once = limit_ns == 0,
        .reentrant = true,
        .hold = bring_hold(world, unit),
    };
    agent->generation++;
    if (limit_ns > 0)
        push(agent, KINDS_EVENT_LIMIT, (uint32_t)(unit - agent->units), world->now_ns + limit_ns);
    snk_event event = { .kind = SNK_EVENT_ASK, .waiter = &unit->waiter };
    snk_actions actions;
    kinds_step(agent, unit, &event, &actions);
    if (unit->waits && unit->waiter.decided)
        finish(agent, unit);
}

static int64_t draw_limit_ns(kinds_world *world)
{
    if (chance(world, 100))
        return 0;
    return sim_random_octaves(&world->workload, SNK_NS_PER_MS / 4, world->plan.lease_ns * 4);
}

static void give_back(kinds_agent *agent, kinds_unit *unit)
{
    snk_event event = { .kind = SNK_EVENT_RELEASE, .owner = OWNER };
    snk_actions actions;
    bool held = kinds_believes(agent, unit);
    unit->has = false;
    kinds_step(agent, unit, &event, &actions);
    if (!held && (actions.pending || actions.release.status != SNECK_LOST))
        kinds_violate(agent->world, "I4", "release of what is lost: %s", sneck_status_name(actions.release.status));
}

void kinds_agent_woken(kinds_agent *agent, kinds_unit *unit)
{
    snk_grant grant = unit->grant;
    unit->wake_pending = false;
    if (!unit->waits)
        return;
    if (!unit->waiter.decided) {
        snk_event event = { .kind = SNK_EVENT_RESUME,
                            .waiter = &unit->waiter,
                            .news = unit->news_pending,
                            .grant = grant.run != 0 ? &grant : NULL };
        snk_actions actions;
        unit->news_pending = false;
        unit->grant.run = 0;
        kinds_step(agent, unit, &event, &actions);
    }
    if (unit->waits && unit->waiter.decided)
        finish(agent, unit);
}

void kinds_agent_limit(kinds_agent *agent)
{
    for (uint32_t i = 0; i < KINDS_MACHINES; i++) {
        kinds_unit *unit = &agent->units[i];
        if (!unit->waits)
            continue;
        if (!unit->waiter.decided) {
            snk_event event = { .kind = SNK_EVENT_GIVE_UP, .waiter = &unit->waiter, .status = SNECK_TIMEOUT };
            snk_actions actions;
            kinds_step(agent, unit, &event, &actions);
            kinds_saw(agent->world, KINDS_PROBE_TIMED_OUT);
        }
        if (unit->waits && unit->waiter.decided)
            finish(agent, unit);
    }
}

/* ---- The parts of what it does ---- */

static void take_lock_again(kinds_agent *agent)
{
    agent->doing = KINDS_RETURNING;
    ask(agent, &agent->units[0], KINDS_LOCK, &(snk_grip){ .mode = SNK_MODE_EXCLUSIVE }, -1);
}

/* A signal is used up when its receiver has the lock again; else it goes to the next one. */
static void end_sleep(kinds_agent *agent)
{
    kinds_unit *signal = &agent->units[1];
    if (signal->has && agent->units[0].has && signal->machine.hold != NULL)
        signal->machine.hold->terms.is_unused = false;
    else if (signal->has)
        kinds_saw(agent->world, KINDS_PROBE_SIGNAL_UNUSED);
    if (signal->has)
        give_back(agent, signal);
    agent->wants_signal = false;
    schedule(agent, agent->units[0].has ? KINDS_HOLDING : KINDS_IDLE);
}

/* The wait of this unit is decided. */
static void finish(kinds_agent *agent, kinds_unit *unit)
{
    kinds_world *world = agent->world;
    kinds_doing doing = agent->doing;
    bool granted = unit->waiter.result.status == SNECK_OK;
    unit->waits = false;
    unit->has = granted;
    if (unit->waiter.hold != NULL)
        unit->hold_used[unit->waiter.hold - unit->holds] = false;
    kinds_record(world, sneck_status_name(unit->waiter.result.status), kinds_agent_number(agent), unit->thing,
                 (uint64_t)(unit - agent->units), unit->waiter.token);
    if (doing == KINDS_DOWNGRADING && granted) {
        kinds_saw(world, KINDS_PROBE_DOWNGRADED);
        give_back(agent, &agent->units[0]);
    }
    if (doing == KINDS_SLEEPING && agent->gave_up_lock)
        take_lock_again(agent);
    else if (doing == KINDS_SLEEPING || doing == KINDS_RETURNING)
        end_sleep(agent);
    else
        schedule(agent, agent->units[0].has || agent->units[1].has ? KINDS_HOLDING : KINDS_IDLE);
}

/* Who waits for a condition gives the lock up as soon as it stands in the condition's queue. */
void kinds_agent_stepped(kinds_agent *agent, const kinds_unit *unit)
{
    if (agent->doing != KINDS_SLEEPING || unit != &agent->units[1] || agent->gave_up_lock || !unit->waits ||
        unit->waiter.decided || unit->waiter.seek.state != SNK_SEEK_QUEUED)
        return;
    agent->gave_up_lock = true;
    give_back(agent, &agent->units[0]);
}

void kinds_agent_counted(kinds_agent *agent)
{
    if (agent->doing == KINDS_COUNTING)
        schedule(agent, KINDS_IDLE);
}

/* A reader that wants to write, and reads on meanwhile: it would wait for itself, for ever. */
static void upgrade(kinds_agent *agent)
{
    snk_grip write = { .mode = SNK_MODE_EXCLUSIVE };
    if (snk_grip_waits_for_itself(&write, 1, 0)) {
        kinds_saw(agent->world, KINDS_PROBE_UPGRADE_REFUSED);
        schedule(agent, KINDS_HOLDING);
        return;
    }
    agent->doing = KINDS_ACQUIRING;
    ask(agent, &agent->units[1], KINDS_LOCK, &write, -1);
}

static void act_holding(kinds_agent *agent)
{
    kinds_world *world = agent->world;
    kinds_unit *first = &agent->units[0];
    bool writes = first->has && first->grip.mode == SNK_MODE_EXCLUSIVE && kinds_believes(agent, first);
    if (writes && agent->wants_signal) {
        agent->doing = KINDS_SLEEPING;
        agent->gave_up_lock = false;
        ask(agent, &agent->units[1], KINDS_CONDITION,
            &(snk_grip){ .object = SNK_OBJECT_CONDITION, .mode = SNK_MODE_TAKE, .units = 1 },
            sim_random_octaves(&world->workload, SNK_NS_PER_MS, world->plan.lease_ns * 4));
        return;
    }
    if (writes && !agent->units[1].has && chance(world, 300)) {
        agent->doing = KINDS_DOWNGRADING;
        ask(agent, &agent->units[1], KINDS_LOCK,
            &(snk_grip){ .mode = SNK_MODE_SHARED, .beside = first->machine.hold->claim }, draw_limit_ns(world));
        return;
    }
    bool reads = first->has && first->grip.mode == SNK_MODE_SHARED && kinds_believes(agent, first);
    if (reads && !agent->units[1].has && chance(world, 200)) {
        upgrade(agent);
        return;
    }
    for (uint32_t i = 0; i < KINDS_MACHINES; i++)
        if (agent->units[i].has)
            give_back(agent, &agent->units[i]);
    schedule(agent, KINDS_IDLE);
}

static void count(kinds_agent *agent, kinds_thing thing, snk_tally_verb verb, int64_t value)
{
    agent->doing = KINDS_COUNTING;
    agent->generation++;
    kinds_tally(agent, thing, verb, value);
}

static void use_lock(kinds_agent *agent)
{
    kinds_world *world = agent->world;
    bool reads = chance(world, 600);
    agent->wants_signal = false;
    ask(agent, &agent->units[0], KINDS_LOCK, &(snk_grip){ .mode = reads ? SNK_MODE_SHARED : SNK_MODE_EXCLUSIVE },
        draw_limit_ns(world));
}

static void use_semaphore(kinds_agent *agent)
{
    kinds_world *world = agent->world;
    if (!world->healed && chance(world, 150)) {
        count(agent, KINDS_SEMAPHORE, SNK_TALLY_SET, sim_random_below(&world->workload, KINDS_PERMITS_MAX + 1));
        return;
    }
    bool drains = chance(world, 150);
    uint32_t units = drains ? 0 : 1 + sim_random_below(&world->workload, KINDS_UNITS_MAX);
    ask(agent, &agent->units[0], KINDS_SEMAPHORE, &(snk_grip){ .mode = SNK_MODE_PERMIT, .units = units },
        drains ? 0 : draw_limit_ns(world));
}

static void use_latch(kinds_agent *agent)
{
    kinds_world *world = agent->world;
    uint32_t what = sim_random_below(&world->workload, 10);
    if (what < 2)
        count(agent, KINDS_LATCH, SNK_TALLY_SET_IF_ZERO, 1 + sim_random_below(&world->workload, KINDS_COUNT_MAX));
    else if (what < 6)
        count(agent, KINDS_LATCH, SNK_TALLY_DOWN, 1);
    else
        ask(agent, &agent->units[0], KINDS_LATCH, &(snk_grip){ .object = SNK_OBJECT_LATCH, .mode = SNK_MODE_PASS },
            draw_limit_ns(world));
}

static void use_condition(kinds_agent *agent)
{
    kinds_world *world = agent->world;
    if (chance(world, 400)) {
        count(agent, KINDS_CONDITION, SNK_TALLY_SIGNAL, chance(world, 700) ? 1 : INT32_MAX);
        return;
    }
    agent->wants_signal = true;
    ask(agent, &agent->units[0], KINDS_LOCK, &(snk_grip){ .mode = SNK_MODE_EXCLUSIVE }, draw_limit_ns(world));
}

static kinds_thing draw_thing(kinds_world *world)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < KINDS_THINGS; i++)
        sum += world->plan.weights[i];
    uint32_t drawn = sim_random_below(&world->workload, sum);
    uint32_t thing = 0;
    while (drawn >= world->plan.weights[thing])
        drawn -= world->plan.weights[thing++];
    return (kinds_thing)thing;
}

static void begin_round(kinds_agent *agent)
{
    if (agent->world->healed && agent->rounds_left-- == 0) {
        agent->doing = KINDS_DONE;
        return;
    }
    agent->doing = KINDS_ACQUIRING;
    switch (draw_thing(agent->world)) {
    case KINDS_LOCK:
        use_lock(agent);
        break;
    case KINDS_SEMAPHORE:
        use_semaphore(agent);
        break;
    case KINDS_LATCH:
        use_latch(agent);
        break;
    case KINDS_CONDITION:
        use_condition(agent);
        break;
    case KINDS_THINGS:
        break;
    }
}

void kinds_agent_act(kinds_agent *agent)
{
    if (agent->doing == KINDS_HOLDING) {
        act_holding(agent);
        return;
    }
    if (agent->doing != KINDS_IDLE)
        return;
    /* A release is waited for, as sneck_release does. */
    for (uint32_t i = 0; i < KINDS_MACHINES; i++) {
        if (!snk_machine_is_idle(&agent->units[i].machine)) {
            schedule_after(agent, KINDS_IDLE, agent->world->plan.lease_ns / 128);
            return;
        }
    }
    begin_round(agent);
}
