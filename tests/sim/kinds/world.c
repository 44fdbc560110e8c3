#include "kinds/world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"

#define EVENTS_MAX 60000
#define RATE_PPM_MAX 50000
#define OFFSET_NS_MAX (100 * SNK_NS_PER_S)

/* ---- Small things ---- */

void kinds_push(kinds_world *world, int64_t at_ns, const sim_event *event)
{
    sim_event dated = *event;
    dated.at_ns = at_ns;
    if (!sim_heap_push(&world->heap, &dated))
        kinds_violate(world, "SIM", "more than %d events ahead", SIM_HEAP_MAX);
}

/* The first bytes of an id are its number, so that no search is needed; the rest is random. */
kinds_claim *kinds_find_claim(kinds_world *world, const snk_id *id)
{
    uint32_t number;
    memcpy(&number, id->bytes, sizeof number);
    return &world->claims[number];
}

bool kinds_draw_id(void *context, snk_id *id_out)
{
    const kinds_agent *agent = context;
    kinds_world *world = agent->world;
    if (world->claim_count == KINDS_CLAIMS_MAX) {
        kinds_violate(world, "SIM", "more than %d claims", KINDS_CLAIMS_MAX);
        return false;
    }
    uint32_t number = world->claim_count++;
    uint64_t random[2] = { sim_random_next(&world->ids), sim_random_next(&world->ids) };
    memcpy(id_out->bytes, random, sizeof random);
    memcpy(id_out->bytes, &number, sizeof number);
    world->claims[number] =
        (kinds_claim){ .id = *id_out, .agent = (uint8_t)kinds_agent_number(agent), .epoch = agent->epoch };
    return true;
}

static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (; *text != '\0'; text++)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001B3);
    return hash;
}

void kinds_record(kinds_world *world, const char *what, uint32_t agent, uint32_t thing, uint64_t a, uint64_t b)
{
    static const char *const things[] = { "lock", "semaphore", "latch", "condition" };
    uint64_t hash = world->hash ^ (uint64_t)world->now_ns;
    hash = (hash ^ hash_of(what)) * UINT64_C(0x9E3779B97F4A7C15);
    hash = (hash ^ hash >> 29 ^ agent ^ (uint64_t)thing << 8 ^ a << 16) * UINT64_C(0xBF58476D1CE4E5B9);
    world->hash = (hash ^ hash >> 32) + b;
    if (world->tracing)
        printf("%12.6f ms  p%" PRIu32 " %-9s  %-14s %" PRIu64 " %" PRIu64 "\n",
               (double)world->now_ns / (double)SNK_NS_PER_MS, agent, things[thing], what, a, b);
}

void kinds_violate(kinds_world *world, const char *invariant, const char *format, ...)
{
    if (world->failed)
        return;
    world->failed = true;
    world->broken_invariant = invariant;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(world->failure, sizeof world->failure, format, arguments);
    va_end(arguments);
}

/* ---- The plan and its faults ---- */

/* Armed in half of the seeds, and then with a chance of its own. */
static uint32_t draw_chance(sim_random *random, uint32_t most)
{
    return sim_random_chance(random, 500) ? 1 + sim_random_below(random, most) : 0;
}

static void draw_clock(sim_random *random, sim_clock *clock, bool drifts)
{
    clock->offset_ns = sim_random_range(random, SNK_NS_PER_S, OFFSET_NS_MAX);
    clock->rate_ppm = drifts ? sim_random_range(random, -RATE_PPM_MAX, RATE_PPM_MAX) : 0;
}

static void draw_plan(kinds_world *world)
{
    sim_random *random = &world->faults;
    kinds_plan *plan = &world->plan;
    *plan = (kinds_plan){ .lease_ns = sim_random_octaves(random, 100 * SNK_NS_PER_MS, 30 * SNK_NS_PER_S) };
    plan->latency_ns = sim_random_octaves(random, 20 * SNK_NS_PER_US, plan->lease_ns / 64);
    plan->timeout_ns = sim_random_octaves(random, plan->latency_ns * 8, plan->lease_ns);
    plan->late = draw_chance(random, 200);
    plan->request_lost = draw_chance(random, 150);
    plan->request_repeated = draw_chance(random, 400);
    plan->reply_lost = draw_chance(random, 150);
    plan->news_lost = draw_chance(random, 1000);
    plan->news_repeated = draw_chance(random, 500);
    plan->unrenewed = draw_chance(random, 300);
    for (uint32_t i = 0; i < KINDS_THINGS; i++)
        plan->weights[i] = draw_chance(random, 10);
    plan->weights[sim_random_below(random, KINDS_THINGS)] += 5;
    plan->every_ns[KINDS_FAULT_PAUSE] = sim_random_chance(random, 400) ? plan->lease_ns * 2 : 0;
    plan->every_ns[KINDS_FAULT_CRASH] = sim_random_chance(random, 400) ? plan->lease_ns * 2 : 0;
    plan->every_ns[KINDS_FAULT_OUTAGE] = sim_random_chance(random, 250) ? plan->lease_ns * 4 : 0;
    plan->every_ns[KINDS_FAULT_WIPE] = sim_random_chance(random, 150) ? plan->lease_ns * 6 : 0;
    plan->every_ns[KINDS_FAULT_SETTLE] = sim_random_chance(random, 300) ? plan->lease_ns / 4 : 0;
    plan->agent_count = 2 + sim_random_below(random, KINDS_AGENTS_MAX - 1);
    plan->event_budget = 300 + sim_random_below(random, 1500);
    bool drifts = sim_random_chance(random, 500);
    draw_clock(random, &world->store_clock, drifts);
    world->store.announces_grants = sim_random_chance(random, 800);
    bool pushes = sim_random_chance(random, 800);
    for (uint32_t i = 0; i < KINDS_AGENTS_MAX; i++) {
        kinds_agent *agent = &world->agents[i];
        draw_clock(random, &agent->clock, drifts);
        agent->engine.pushes_wakeups = pushes;
        agent->engine.retry_ns = plan->lease_ns / 8;
    }
}

static void push_fault(kinds_world *world, kinds_fault fault)
{
    int64_t every_ns = world->plan.every_ns[fault];
    if (every_ns != 0 && !world->healed)
        kinds_push(world, world->now_ns + sim_random_range(&world->faults, 1, every_ns * 2),
                   &(sim_event){ .kind = KINDS_EVENT_FAULT, .index = (uint32_t)fault });
}

static void crash(kinds_world *world, kinds_agent *agent)
{
    if (!agent->up)
        return;
    for (uint32_t i = 0; i < KINDS_MACHINES; i++)
        if (agent->units[i].machine.hold != NULL || agent->units[i].waits)
            kinds_saw(world, KINDS_PROBE_CRASHED);
    kinds_record(world, "crash", kinds_agent_number(agent), 0, 0, 0);
    kinds_drop_all(agent);
    agent->up = false;
    agent->epoch++;
    agent->paused_until_ns = 0;
    kinds_push(world, world->now_ns + sim_random_octaves(&world->faults, SNK_NS_PER_MS, world->plan.lease_ns * 2),
               &(sim_event){
                   .kind = KINDS_EVENT_RESTART, .process = (uint8_t)kinds_agent_number(agent), .epoch = agent->epoch });
}

/* Tokens rise all the same, as long as the clock is past the last one. */
static bool tokens_would_rise(const kinds_world *world)
{
    for (uint32_t i = 0; i < KINDS_THINGS; i++)
        if (world->highest[i] >= (uint64_t)(kinds_store_now(world) / SNK_NS_PER_US))
            return false;
    return true;
}

static void wipe(kinds_world *world)
{
    if (!tokens_would_rise(world))
        return;
    kinds_saw(world, KINDS_PROBE_WIPED);
    kinds_record(world, "wipe", 0, 0, 0, 0);
    kinds_before_wipe(world);
    kinds_store_clear(&world->store);
}

static void on_fault(kinds_world *world, kinds_fault fault)
{
    kinds_agent *agent = &world->agents[sim_random_below(&world->faults, world->plan.agent_count)];
    if (world->healed)
        return;
    switch (fault) {
    case KINDS_FAULT_PAUSE:
        agent->paused_until_ns =
            world->now_ns + sim_random_octaves(&world->faults, SNK_NS_PER_MS, world->plan.lease_ns * 3);
        break;
    case KINDS_FAULT_CRASH:
        crash(world, agent);
        break;
    case KINDS_FAULT_OUTAGE:
        world->outage_until_ns =
            world->now_ns + sim_random_octaves(&world->faults, SNK_NS_PER_MS, world->plan.lease_ns * 2);
        break;
    case KINDS_FAULT_WIPE:
        wipe(world);
        break;
    case KINDS_FAULT_SETTLE:
        kinds_settle_store(world);
        break;
    case KINDS_FAULT_COUNT:
        break;
    }
    push_fault(world, fault);
}

/* ---- A run ---- */

static void begin(kinds_world *world, uint64_t seed)
{
    world->seed = seed;
    sim_random_init(&world->network, seed, 1);
    sim_random_init(&world->workload, seed, 2);
    sim_random_init(&world->faults, seed, 3);
    sim_random_init(&world->ids, seed, 4);
    sim_heap_clear(&world->heap);
    kinds_store_clear(&world->store);
    for (uint32_t i = 0; i < KINDS_THINGS; i++)
        world->highest[i] = 0;
    world->healed = false;
    world->now_ns = 0;
    world->outage_until_ns = 0;
    world->event_count = 0;
    world->claim_count = 0;
    world->hash = sim_mix64(seed);
    world->failed = false;
    for (uint32_t i = 0; i < KINDS_REQUESTS_MAX; i++)
        world->requests[i].used = false;
    draw_plan(world);
    for (uint32_t i = 0; i < KINDS_AGENTS_MAX; i++) {
        kinds_agent *agent = &world->agents[i];
        agent->world = world;
        agent->epoch = 1;
        agent->paused_until_ns = 0;
        agent->generation = 0;
        agent->up = false;
        for (uint32_t j = 0; j < KINDS_MACHINES; j++)
            agent->units[j].timer_generation = 0;
    }
    for (uint32_t i = 0; i < world->plan.agent_count; i++)
        kinds_agent_start(&world->agents[i]);
    for (uint32_t i = 0; i < KINDS_FAULT_COUNT; i++)
        push_fault(world, (kinds_fault)i);
}

static bool is_for_agent(const sim_event *event)
{
    return event->kind != KINDS_EVENT_ARRIVES && event->kind != KINDS_EVENT_FAULT && event->kind != KINDS_EVENT_RESTART;
}

/* For the store, or of a request, whatever has become of who sent it. */
static bool is_for_anybody(const sim_event *event)
{
    return event->kind == KINDS_EVENT_ARRIVES || event->kind == KINDS_EVENT_REPLY || event->kind == KINDS_EVENT_OVER ||
           event->kind == KINDS_EVENT_AGAIN || event->kind == KINDS_EVENT_FAULT;
}

static void dispatch_to_agent(kinds_world *world, const sim_event *event)
{
    kinds_agent *agent = &world->agents[event->process];
    if (event->kind == KINDS_EVENT_ACT && event->generation == agent->generation)
        kinds_agent_act(agent);
    else if (event->kind == KINDS_EVENT_WAKE)
        kinds_agent_woken(agent, &agent->units[event->lock]);
    else if (event->kind == KINDS_EVENT_LIMIT && event->generation == agent->generation)
        kinds_agent_limit(agent);
}

static void dispatch(kinds_world *world, const sim_event *event)
{
    if (!is_for_anybody(event) && event->epoch != world->agents[event->process].epoch)
        return;
    switch ((kinds_event_kind)event->kind) {
    case KINDS_EVENT_ACT:
    case KINDS_EVENT_WAKE:
    case KINDS_EVENT_LIMIT:
        dispatch_to_agent(world, event);
        break;
    case KINDS_EVENT_ARRIVES:
        kinds_on_arrives(world, event);
        break;
    case KINDS_EVENT_REPLY:
        kinds_on_reply(world, event);
        break;
    case KINDS_EVENT_OVER:
        kinds_on_over(world, event);
        break;
    case KINDS_EVENT_AGAIN:
        kinds_on_again(world, event);
        break;
    case KINDS_EVENT_NEWS:
        kinds_on_news(world, event);
        break;
    case KINDS_EVENT_TIMER:
        kinds_on_timer(world, event);
        break;
    case KINDS_EVENT_RESTART:
        kinds_agent_start(&world->agents[event->process]);
        break;
    case KINDS_EVENT_FAULT:
        on_fault(world, (kinds_fault)event->index);
        break;
    }
}

/* Takes the next event; false when there is none, or an invariant was violated. */
static bool advance(kinds_world *world)
{
    sim_event event;
    if (world->failed || !sim_heap_pop(&world->heap, &event))
        return false;
    world->now_ns = event.at_ns;
    /* A process that is stopped finds everything that happened meanwhile at once, in no order. */
    int64_t paused_until_ns = world->agents[event.process].paused_until_ns;
    if (is_for_agent(&event) && paused_until_ns > world->now_ns) {
        kinds_push(world, paused_until_ns + sim_random_range(&world->network, 0, 200 * SNK_NS_PER_US), &event);
        return true;
    }
    if (++world->event_count > EVENTS_MAX)
        kinds_violate(world, "I6", "more than %d events: something runs hot", EVENTS_MAX);
    dispatch(world, &event);
    kinds_check_orphans(world);
    return !world->failed;
}

static bool everybody_is_done(const kinds_world *world)
{
    for (uint32_t i = 0; i < world->plan.agent_count; i++)
        if (!world->agents[i].up || world->agents[i].doing != KINDS_DONE)
            return false;
    return true;
}

/* Nothing goes wrong any more; there are permits for all, and the latch is open. */
static void heal(kinds_world *world)
{
    kinds_record(world, "heal", 0, 0, 0, 0);
    world->healed = true;
    world->outage_until_ns = 0;
    world->store.things[KINDS_SEMAPHORE].count = KINDS_PERMITS_MAX;
    world->store.things[KINDS_LATCH].count = 0;
    for (uint32_t i = 0; i < world->plan.agent_count; i++)
        for (uint32_t j = 0; j < KINDS_MACHINES; j++)
            world->agents[i].units[j].saw_zero = true;
    kinds_settle_store(world);
}

/* After healing everybody is served or gives up in bounded time, and then nothing is left. */
static void run_healed(kinds_world *world)
{
    int64_t bound_ns =
        world->now_ns + (world->plan.lease_ns * 8 + 5 * SNK_NS_PER_S) * (int64_t)(world->plan.agent_count + 4);
    while (!everybody_is_done(world) && advance(world))
        if (world->now_ns > bound_ns)
            kinds_violate(world, "I6", "somebody still waits long after healing");
    if (!world->failed && !everybody_is_done(world))
        kinds_violate(world, "I6", "nothing more happens, and somebody waits");
    while (advance(world))
        ;
    world->now_ns += world->plan.lease_ns * 4 + 2 * SNK_OFFER_NS;
    if (!world->failed)
        kinds_check_end(world);
}

static void run_seed(void *context, uint64_t seed, bool tracing, sim_outcome *outcome)
{
    kinds_world *world = context;
    world->tracing = tracing;
    begin(world, seed);
    while (world->event_count < world->plan.event_budget && advance(world))
        ;
    if (!world->failed) {
        heal(world);
        run_healed(world);
    }
    *outcome = (sim_outcome){
        .hash = world->hash,
        .events = world->event_count,
        .invariant = world->failed ? world->broken_invariant : NULL,
        .failure = world->failure,
        .probes = world->probes,
    };
}

static const char *const probe_texts[] = {
#define PROBE_TEXT(name, text) [KINDS_PROBE_##name] = (text),
    KINDS_PROBES(PROBE_TEXT)
#undef PROBE_TEXT
};

const sim_subject sim_subject_kinds = {
    .program = "sneck-sim-kinds",
    .seeds_full = 50000,
    .world_size = sizeof(kinds_world),
    .run = run_seed,
    .probe_count = KINDS_PROBE_COUNT,
    .probe_texts = probe_texts,
};
