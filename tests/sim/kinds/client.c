/* Requests and what comes of them. */
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "engine/renewal.h"
#include "kinds/world.h"

#define TIMER_LATENESS_NS (50 * SNK_NS_PER_US)

static const char *const ask_names[] = {
    [SNK_ASK_ACQUIRE] = "acquire",
    [SNK_ASK_RENEW] = "renew",
    [SNK_ASK_RELEASE] = "release",
};

static uint32_t number_of(const kinds_world *world, const kinds_request *request)
{
    return (uint32_t)(request - world->requests);
}

static bool is_hit(kinds_world *world, uint32_t chance)
{
    return !world->healed && sim_random_chance(&world->network, chance);
}

static int64_t draw_way_ns(kinds_world *world)
{
    const kinds_plan *plan = &world->plan;
    if (is_hit(world, plan->late))
        return sim_random_octaves(&world->network, SNK_NS_PER_MS, plan->lease_ns * 2);
    return sim_random_range(&world->network, plan->latency_ns / 2, plan->latency_ns * 3 / 2);
}

/* ---- Sending ---- */

static kinds_request *take_request(kinds_world *world)
{
    for (uint32_t i = 0; i < KINDS_REQUESTS_MAX; i++) {
        kinds_request *request = &world->requests[i];
        if (!request->used) {
            *request = (kinds_request){ .used = true };
            return request;
        }
    }
    kinds_violate(world, "SIM", "more than %d requests at once", KINDS_REQUESTS_MAX);
    return NULL;
}

static void push(kinds_world *world, kinds_request *request, kinds_event_kind kind, int64_t at_ns)
{
    request->references++;
    kinds_push(world, at_ns,
               &(sim_event){ .kind = (uint8_t)kind,
                             .process = request->agent,
                             .lock = request->unit,
                             .epoch = request->epoch,
                             .index = number_of(world, request) });
}

static void unref(kinds_request *request)
{
    if (--request->references == 0)
        request->used = false;
}

static const snk_id *id_of(const kinds_request *request)
{
    return request->is_tally ? &request->tally.id : &request->send.claim;
}

/* Sends what is in the request; again, if it was sent before. */
static void transmit(kinds_world *world, kinds_request *request)
{
    const kinds_agent *agent = &world->agents[request->agent];
    request->waited_for = true;
    kinds_record(world, request->is_tally ? "count" : ask_names[request->send.ask], request->agent, request->thing,
                 request->is_tally ? (uint64_t)request->tally.verb : request->send.chase,
                 (uint64_t)(kinds_find_claim(world, id_of(request)) - world->claims));
    push(world, request, KINDS_EVENT_OVER,
         sim_clock_true(&agent->clock, kinds_local_now(agent) + world->plan.timeout_ns));
    if (!is_hit(world, world->plan.request_lost))
        push(world, request, KINDS_EVENT_ARRIVES, world->now_ns + draw_way_ns(world));
    /* What a client sends again after a timeout may find its first copy still on its way. */
    if (request->repeats && is_hit(world, world->plan.request_repeated))
        push(world, request, KINDS_EVENT_ARRIVES, world->now_ns + draw_way_ns(world));
}

static kinds_request *new_request(kinds_agent *agent, kinds_thing thing)
{
    kinds_request *request = take_request(agent->world);
    if (request == NULL)
        return NULL;
    request->agent = (uint8_t)kinds_agent_number(agent);
    request->epoch = agent->epoch;
    request->thing = thing;
    return request;
}

static void send(kinds_agent *agent, const kinds_unit *unit, const snk_send *send)
{
    kinds_world *world = agent->world;
    kinds_claim *claim = kinds_find_claim(world, &send->claim);
    if (send->ask == SNK_ASK_ACQUIRE) {
        claim->unit = (uint8_t)(unit - agent->units);
        claim->thing = unit->thing;
        claim->grip = unit->grip;
    }
    kinds_request *request = new_request(agent, claim->thing);
    if (request == NULL)
        return;
    request->unit = claim->unit;
    request->grip = claim->grip;
    request->send = *send;
    request->repeats = send->chase;
    if (claim->thing == KINDS_CONDITION && send->ends_hold && !send->chase && !agent->units[0].has)
        kinds_violate(world, "CV", "a signal was used up by one who does not have the lock");
    claim->in_flight++;
    if (!send->chase) {
        transmit(world, request);
        return;
    }
    kinds_saw(world, KINDS_PROBE_CHASED);
    int64_t now_ns = kinds_local_now(agent);
    int64_t at_ns = send->not_before_ns > now_ns ? send->not_before_ns : now_ns;
    push(world, request, KINDS_EVENT_AGAIN, sim_clock_true(&agent->clock, at_ns));
}

void kinds_tally(kinds_agent *agent, kinds_thing thing, snk_tally_verb verb, int64_t value)
{
    kinds_world *world = agent->world;
    kinds_request *request = new_request(agent, thing);
    if (request == NULL)
        return;
    request->is_tally = true;
    request->repeats = verb == SNK_TALLY_DOWN;
    request->generation = agent->generation;
    request->tally = (snk_tally){ .verb = verb, .value = value };
    if (!kinds_draw_id(agent, &request->tally.id))
        return;
    kinds_find_claim(world, &request->tally.id)->in_flight++;
    transmit(world, request);
}

void kinds_on_again(kinds_world *world, const sim_event *event)
{
    kinds_request *request = &world->requests[event->index];
    if (request->epoch == world->agents[request->agent].epoch)
        transmit(world, request);
    unref(request);
}

/* ---- At the store ---- */

static void carry(kinds_world *world, const kinds_news *news)
{
    for (uint32_t i = 0; i < news->count; i++) {
        kinds_claim *claim = kinds_find_claim(world, &news->grants[i].claim);
        claim->grant = news->grants[i];
        sim_event event = { .kind = KINDS_EVENT_NEWS,
                            .process = claim->agent,
                            .lock = claim->unit,
                            .epoch = claim->epoch,
                            .index = (uint32_t)(claim - world->claims),
                            .generation = world->store.announces_grants };
        if (!is_hit(world, world->plan.news_lost))
            kinds_push(world, world->now_ns + draw_way_ns(world), &event);
        if (is_hit(world, world->plan.news_repeated))
            kinds_push(world, world->now_ns + draw_way_ns(world), &event);
    }
}

static void execute(kinds_world *world, kinds_request *request)
{
    kinds_before before;
    kinds_news news;
    int64_t now_ns = kinds_store_now(world);
    bool applied_before = request->is_tally && kinds_find_claim(world, &request->tally.id)->counted;
    kinds_before_execution(world, request->thing, &before);
    if (request->is_tally)
        request->tallied = kinds_store_tally(&world->store, request->thing, &request->tally, now_ns, &news);
    else
        request->answer =
            kinds_store_execute(&world->store, request->thing, &request->grip, &request->send, now_ns, &news);
    kinds_record(world, "executed", request->agent, request->thing,
                 request->is_tally ? (uint64_t)request->tallied.count : (uint64_t)request->answer.kind,
                 (uint64_t)(kinds_find_claim(world, id_of(request)) - world->claims));
    kinds_after_execution(world, request->thing, request, applied_before, &before);
    carry(world, &news);
    kinds_check_beliefs(world);
}

void kinds_on_arrives(kinds_world *world, const sim_event *event)
{
    kinds_request *request = &world->requests[event->index];
    if (world->now_ns >= world->outage_until_ns) {
        execute(world, request);
        if (!is_hit(world, world->plan.reply_lost))
            push(world, request, KINDS_EVENT_REPLY, world->now_ns + draw_way_ns(world));
    }
    unref(request);
}

void kinds_settle_store(kinds_world *world)
{
    for (uint32_t thing = 0; thing < KINDS_THINGS; thing++) {
        kinds_before before;
        kinds_news news;
        kinds_before_execution(world, (kinds_thing)thing, &before);
        kinds_store_settle(&world->store, (kinds_thing)thing, kinds_store_now(world), &news);
        kinds_after_execution(world, (kinds_thing)thing, NULL, false, &before);
        carry(world, &news);
    }
}

/* ---- Answers ---- */

/* `answered`: the answer in the request counts; otherwise there is none. */
static void deliver(kinds_world *world, kinds_request *request, bool answered)
{
    kinds_agent *agent = &world->agents[request->agent];
    request->waited_for = false;
    if (request->epoch != agent->epoch)
        return;
    if (request->repeats && !answered) {
        int64_t pause_ns = snk_backoff_ns(++request->failures, SNK_BACKOFF_NS_MAX);
        push(world, request, KINDS_EVENT_AGAIN, world->now_ns + pause_ns);
        return;
    }
    kinds_find_claim(world, id_of(request))->in_flight--;
    if (request->is_tally) {
        if (request->generation == agent->generation)
            kinds_agent_counted(agent);
        return;
    }
    if (request->send.chase)
        return;
    snk_answer silence = { .kind = SNK_ANSWER_UNCERTAIN, .error = { .status = SNECK_UNKNOWN } };
    snk_event event = { .kind = SNK_EVENT_REPLY,
                        .send = &request->send,
                        .answer = answered ? &request->answer : &silence };
    snk_actions actions;
    kinds_unit *unit = &agent->units[request->unit];
    kinds_step(agent, unit, &event, &actions);
    bool is_gone = answered && request->send.ask == SNK_ASK_RENEW && request->answer.kind == SNK_ANSWER_GONE;
    if (is_gone && kinds_believes(agent, unit) && snk_id_equal(&unit->machine.hold->claim, &request->send.claim))
        kinds_violate(world, "S1", "the store said that it has forgotten a hold, and its process believes in it");
}

void kinds_on_reply(kinds_world *world, const sim_event *event)
{
    kinds_request *request = &world->requests[event->index];
    if (request->waited_for)
        deliver(world, request, true);
    unref(request);
}

void kinds_on_over(kinds_world *world, const sim_event *event)
{
    kinds_request *request = &world->requests[event->index];
    if (request->waited_for)
        deliver(world, request, false);
    unref(request);
}

void kinds_on_news(kinds_world *world, const sim_event *event)
{
    kinds_agent *agent = &world->agents[event->process];
    kinds_unit *unit = &agent->units[event->lock];
    const kinds_claim *claim = &world->claims[event->index];
    kinds_record(world, "news", event->process, unit->thing, event->index, event->generation);
    if (unit->waiter.seek.state == SNK_SEEK_NONE || !snk_id_equal(&unit->waiter.seek.claim, &claim->id))
        return;
    if (event->generation != 0)
        unit->grant = claim->grant;
    kinds_agent_wake(agent, unit, true);
}

void kinds_drop_all(kinds_agent *agent)
{
    kinds_world *world = agent->world;
    for (uint32_t i = 0; i < KINDS_REQUESTS_MAX; i++)
        if (world->requests[i].agent == kinds_agent_number(agent))
            world->requests[i].waited_for = false;
}

/* ---- Steps and timers ---- */

static void arm_timer(kinds_agent *agent, kinds_unit *unit)
{
    kinds_world *world = agent->world;
    int64_t due_ns = unit->machine.timer_at_ns;
    int64_t deadline_ns = snk_deadline_peek(&unit->machine.deadline);
    if (unit->machine.hold != NULL && deadline_ns > 0 && deadline_ns < due_ns)
        due_ns = deadline_ns;
    if (due_ns == SNK_NEVER_NS)
        return;
    int64_t at_ns = sim_clock_true(&agent->clock, due_ns);
    at_ns = at_ns < world->now_ns ? world->now_ns : at_ns;
    at_ns += sim_random_range(&world->network, 1, TIMER_LATENESS_NS);
    if (at_ns >= unit->armed_at_ns)
        return;
    unit->armed_at_ns = at_ns;
    unit->timer_generation++;
    kinds_push(world, at_ns,
               &(sim_event){ .kind = KINDS_EVENT_TIMER,
                             .process = (uint8_t)kinds_agent_number(agent),
                             .lock = (uint8_t)(unit - agent->units),
                             .epoch = agent->epoch,
                             .generation = unit->timer_generation });
}

void kinds_on_timer(kinds_world *world, const sim_event *event)
{
    kinds_agent *agent = &world->agents[event->process];
    kinds_unit *unit = &agent->units[event->lock];
    if (event->generation != unit->timer_generation)
        return;
    unit->armed_at_ns = SNK_NEVER_NS;
    int64_t now_ns = kinds_local_now(agent);
    int64_t deadline_ns = snk_deadline_peek(&unit->machine.deadline);
    if (unit->machine.timer_at_ns > now_ns && (unit->machine.hold == NULL || deadline_ns > now_ns)) {
        arm_timer(agent, unit);
        return;
    }
    snk_actions actions;
    do {
        snk_event step = { .kind = SNK_EVENT_TIMER };
        kinds_step(agent, unit, &step, &actions);
    } while (actions.more && !world->failed);
}

static void free_holds(kinds_unit *unit, const snk_hold *freed)
{
    for (; freed != NULL; freed = freed->next_freed)
        unit->hold_used[freed - unit->holds] = false;
}

void kinds_step(kinds_agent *agent, kinds_unit *unit, snk_event *event, snk_actions *actions)
{
    kinds_world *world = agent->world;
    bool decided = unit->waiter.decided;
    event->now_ns = kinds_local_now(agent);
    snk_machine_step(&unit->machine, event, actions);
    if (!snk_machine_is_sound(&unit->machine))
        kinds_violate(world, "SIM", "the machine is not sound");
    for (uint32_t i = 0; i < actions->send_count && !world->failed; i++)
        send(agent, unit, &actions->sends[i]);
    for (uint32_t i = 0; i < actions->note_count; i++)
        if (actions->notes[i].kind == SNECK_EVENT_LOST)
            kinds_saw(world, KINDS_PROBE_LOST);
    free_holds(unit, actions->freed);
    if (!decided && unit->waiter.decided && unit->waiter.result.status == SNECK_OK) {
        kinds_check_granted(agent, unit);
        if (event->grant != NULL)
            kinds_saw(world, KINDS_PROBE_STARTED);
    }
    for (snk_waiter *waiter = actions->woken; waiter != NULL; waiter = waiter->next_woken)
        kinds_agent_wake(agent, unit, false);
    arm_timer(agent, unit);
    kinds_check_beliefs(world);
    kinds_agent_stepped(agent, unit);
}
