/*
 * What must be true, said once more and without the code that makes it so: who may hold together, in what order those
 * who wait are served, what becomes of counts and signals.
 */
#include "base/clock.h"
#include "base/limits.h"
#include "kinds/world.h"

void kinds_before_execution(const kinds_world *world, kinds_thing thing, kinds_before *before_out)
{
    before_out->state = world->store.things[thing];
}

/* ---- Small questions ---- */

static const kinds_entry *find_live(const kinds_entries *entries, const snk_id *claim, int64_t now_ns)
{
    uint32_t index = kinds_find(entries, claim);
    return index < entries->count && entries->at[index].expires_at_ns > now_ns ? &entries->at[index] : NULL;
}

static uint32_t count_live(const kinds_entries *entries, int64_t now_ns)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < entries->count; i++)
        count += entries->at[i].expires_at_ns > now_ns;
    return count;
}

static int64_t units_of(const kinds_entries *entries, int64_t now_ns)
{
    int64_t units = 0;
    for (uint32_t i = 0; i < entries->count; i++)
        if (entries->at[i].expires_at_ns > now_ns)
            units += entries->at[i].grip.units;
    return units;
}

/* Whether a claim could be served with these holders, all of them live. */
static bool could_hold(const kinds_state *state, const snk_grip *grip)
{
    switch (grip->mode) {
    case SNK_MODE_EXCLUSIVE:
        return state->holders.count == 0;
    case SNK_MODE_SHARED:
        for (uint32_t i = 0; i < state->holders.count; i++)
            if (state->holders.at[i].grip.mode != SNK_MODE_SHARED)
                return false;
        return true;
    case SNK_MODE_PERMIT:
        return units_of(&state->holders, INT64_MIN) + grip->units <= state->count;
    case SNK_MODE_TAKE:
        return state->count >= grip->units;
    case SNK_MODE_PASS:
        return state->count == 0;
    }
    return false;
}

/* ---- What an execution may change ---- */

/* I3: no request changes another claim, but that who waited may be served. */
static void check_others(kinds_world *world, const kinds_state *before, const kinds_state *after, const snk_id *subject)
{
    int64_t now_ns = kinds_store_now(world);
    const kinds_entries *lists[] = { &before->holders, &before->queue };
    for (uint32_t list = 0; list < 2; list++) {
        for (uint32_t i = 0; i < lists[list]->count; i++) {
            const kinds_entry *entry = &lists[list]->at[i];
            if (entry->expires_at_ns <= now_ns || (subject != NULL && snk_id_equal(&entry->claim, subject)))
                continue;
            const kinds_entry *held = find_live(&after->holders, &entry->claim, now_ns);
            const kinds_entry *queued = find_live(&after->queue, &entry->claim, now_ns);
            bool same = list == 0 ? held != NULL && held->expires_at_ns == entry->expires_at_ns
                                  : held != NULL || (queued != NULL && queued->expires_at_ns == entry->expires_at_ns);
            if (!same)
                kinds_violate(world, list == 0 && entry->grip.mode == SNK_MODE_PERMIT ? "I7" : "I3",
                              "a request changed or ended the claim of another");
        }
    }
    for (uint32_t i = 0; i < after->holders.count; i++)
        if (after->holders.at[i].expires_at_ns <= now_ns)
            kinds_violate(world, "I6", "a lease is over, and its claim holds on");
    for (uint32_t i = 0; i < after->queue.count; i++)
        if (after->queue.at[i].expires_at_ns <= now_ns)
            kinds_violate(world, "I6", "a lease is over, and its claim waits on");
}

/* I11, I8: those who wait are served in their order, and nobody passes them but who stands beside his own hold. */
static void check_order(kinds_world *world, const kinds_state *before, const kinds_state *after,
                        const kinds_request *request)
{
    int64_t now_ns = kinds_store_now(world);
    bool somebody_waits = false;
    uint32_t served = 0;
    for (uint32_t i = 0; i < before->queue.count; i++) {
        const kinds_entry *entry = &before->queue.at[i];
        if (entry->expires_at_ns <= now_ns)
            continue;
        bool holds = find_live(&after->holders, &entry->claim, now_ns) != NULL;
        bool waits = find_live(&after->queue, &entry->claim, now_ns) != NULL;
        if (holds && somebody_waits)
            kinds_violate(world, "I11", "somebody was served before one who came earlier");
        somebody_waits |= waits;
        served += holds;
    }
    if (served > 1)
        kinds_saw(world, KINDS_PROBE_SEVERAL_AT_ONCE);
    bool newcomer = request != NULL && !request->is_tally && request->send.ask == SNK_ASK_ACQUIRE &&
                    request->answer.kind == SNK_ANSWER_HELD;
    if (!newcomer || !somebody_waits)
        return;
    if (kinds_find(&before->holders, &request->grip.beside) == before->holders.count)
        kinds_violate(world, "I8", "a newcomer was served, and others wait");
    else
        kinds_saw(world, KINDS_PROBE_DOWNGRADE_WAITED_FOR);
}

static void check_new_tokens(kinds_world *world, const kinds_state *before, const kinds_state *after)
{
    uint64_t highest = before->token;
    for (uint32_t i = 0; i < after->holders.count; i++) {
        const kinds_entry *entry = &after->holders.at[i];
        if (kinds_find(&before->holders, &entry->claim) < before->holders.count)
            continue;
        /* A writer that was served and gave up within this execution has left its token and nothing else. */
        if (entry->grip.mode == SNK_MODE_SHARED && highest != 0 && entry->token != highest &&
            entry->token != after->token)
            kinds_violate(world, "I1", "the token of a reader is not that of the last writer");
        if (entry->grip.mode != SNK_MODE_SHARED && entry->token <= highest)
            kinds_violate(world, "I1", "a token does not rise");
        highest = entry->token > highest ? entry->token : highest;
    }
}

/* I1: tokens of those who are alone, and of permits, rise though the store forgets. */
static void check_highest_token(kinds_world *world, kinds_thing thing, const kinds_state *before,
                                const kinds_state *after)
{
    uint64_t *highest = &world->highest[thing];
    uint64_t now = *highest;
    for (uint32_t i = 0; i < after->holders.count; i++) {
        const kinds_entry *entry = &after->holders.at[i];
        bool is_new = kinds_find(&before->holders, &entry->claim) == before->holders.count;
        if (is_new && entry->grip.mode != SNK_MODE_SHARED && entry->token <= *highest)
            kinds_violate(world, "I1", "a token is not higher than one before");
        now = entry->token > now ? entry->token : now;
    }
    *highest = after->token > now ? after->token : now;
}

static void check_nobody_forgotten(kinds_world *world, const kinds_state *after)
{
    if (after->queue.count > 0 && could_hold(after, &after->queue.at[0].grip))
        kinds_violate(world, "I6", "the first one who waits could be served, and is not");
}

/* ---- By kind ---- */

/* I8: a writer is alone, but for the reader that it is about to become. */
static void check_lock(kinds_world *world, const kinds_state *after)
{
    uint32_t writers = 0;
    const kinds_entry *writer = NULL;
    for (uint32_t i = 0; i < after->holders.count; i++) {
        if (after->holders.at[i].grip.mode == SNK_MODE_EXCLUSIVE) {
            writers++;
            writer = &after->holders.at[i];
        }
    }
    uint32_t readers = after->holders.count - writers;
    if (writers > 1)
        kinds_violate(world, "I8", "%u writers", writers);
    for (uint32_t i = 0; i < after->holders.count && writer != NULL; i++) {
        const kinds_entry *entry = &after->holders.at[i];
        if (entry != writer && !snk_id_equal(&entry->grip.beside, &writer->claim))
            kinds_violate(world, "I8", "a reader beside a writer that is another's");
    }
    if (readers > 1)
        kinds_saw(world, KINDS_PROBE_READERS_TOGETHER);
    if (after->queue.count > 0 && readers > 0 && after->queue.at[0].grip.mode == SNK_MODE_EXCLUSIVE)
        kinds_saw(world, KINDS_PROBE_WRITER_WAITED);
    if (after->queue.count > 1 && readers > 0 && after->queue.at[1].grip.mode == SNK_MODE_SHARED)
        kinds_saw(world, KINDS_PROBE_READER_BEHIND_WRITER);
}

/* I7: what is given out fits; fewer permits take none away; and only setting them changes how many there are. */
static void check_semaphore(kinds_world *world, const kinds_state *before, const kinds_state *after,
                            const kinds_request *request)
{
    int64_t now_ns = kinds_store_now(world);
    bool sets = request != NULL && request->is_tally && request->tally.verb == SNK_TALLY_SET;
    int64_t used = units_of(&after->holders, now_ns);
    int64_t kept = 0;
    uint32_t kept_count = 0;
    for (uint32_t i = 0; i < after->holders.count; i++) {
        if (kinds_find(&before->holders, &after->holders.at[i].claim) < before->holders.count) {
            kept += after->holders.at[i].grip.units;
            kept_count++;
        }
    }
    /* What a lease that is over leaves to others is given out before permits are set. */
    int64_t most = sets && before->count > after->count ? before->count : after->count;
    if (after->holders.count > kept_count && used > most)
        kinds_violate(world, "I7", "%lld permits are out, and there are %lld", (long long)used, (long long)most);
    if (!sets && after->count != before->count)
        kinds_violate(world, "I7", "permits became more or fewer, and nobody set them");
    if (sets && after->count != request->tally.value)
        kinds_violate(world, "I7", "permits were not set");
    if (count_live(&before->holders, now_ns) < before->holders.count)
        kinds_saw(world, KINDS_PROBE_PERMIT_DIED);
    if (used == after->count && used > 0)
        kinds_saw(world, KINDS_PROBE_PERMITS_OUT);
    if (used > after->count && kept > 0)
        kinds_saw(world, KINDS_PROBE_PERMITS_OVER);
    if (request != NULL && !request->is_tally && request->send.ask == SNK_ASK_ACQUIRE && request->grip.units == 0 &&
        request->answer.kind == SNK_ANSWER_HELD)
        kinds_saw(world, KINDS_PROBE_PERMITS_DRAINED);
}

static void note_zero(kinds_world *world)
{
    for (uint32_t i = 0; i < world->plan.agent_count; i++)
        for (uint32_t j = 0; j < KINDS_MACHINES; j++)
            world->agents[i].units[j].saw_zero = true;
}

/* I9: it rises only from 0, by being set, and falls by one for each count-down, however often that comes. */
static void check_latch(kinds_world *world, const kinds_state *before, const kinds_state *after,
                        const kinds_request *request, bool applied_before)
{
    bool counts = request != NULL && request->is_tally;
    int64_t expected = before->count;
    if (counts && request->tally.verb == SNK_TALLY_SET_IF_ZERO && before->count == 0)
        expected = request->tally.value;
    if (counts && request->tally.verb == SNK_TALLY_DOWN && before->count > 0 && !applied_before) {
        expected = before->count - 1;
        kinds_find_claim(world, &request->tally.id)->counted = true;
    }
    if (after->count != expected)
        kinds_violate(world, "I9", "the latch was at %lld, should be at %lld and is at %lld", (long long)before->count,
                      (long long)expected, (long long)after->count);
    if (counts && applied_before && request->tally.verb == SNK_TALLY_DOWN)
        kinds_saw(world, KINDS_PROBE_LATCH_REPEATED);
    if (counts && request->tally.verb == SNK_TALLY_SET_IF_ZERO)
        kinds_saw(world, request->tallied.done ? KINDS_PROBE_LATCH_SET : KINDS_PROBE_LATCH_REFUSED);
    if (before->count == 1 && after->count == 0 && before->queue.count > 0)
        kinds_saw(world, KINDS_PROBE_LATCH_OPENED);
    if (before->count > 0 && after->count > 0) {
        for (uint32_t i = 0; i < after->holders.count; i++)
            if (kinds_find(&before->holders, &after->holders.at[i].claim) == before->holders.count)
                kinds_violate(world, "I9", "somebody passed a latch that is not at 0");
    } else {
        note_zero(world);
    }
}

/*
 * Signals are for those who wait: each signal goes to one of them, and a signal whose receiver died or gave up before
 * he used it goes to the next one, unless nobody waits.
 */
static void check_condition(kinds_world *world, const kinds_state *before, const kinds_state *after,
                            const kinds_request *request)
{
    int64_t now_ns = kinds_store_now(world);
    int64_t signals = 0;
    int64_t waiting = count_live(&before->queue, now_ns);
    for (uint32_t i = 0; i < before->holders.count; i++)
        signals += before->holders.at[i].expires_at_ns <= now_ns;
    /* Those who waited and were served by what came back first are not there for a signal that comes now. */
    int64_t passed_on = signals < waiting ? signals : waiting;
    waiting -= passed_on;
    bool releases = request != NULL && !request->is_tally && request->send.ask == SNK_ASK_RELEASE;
    bool held = releases && find_live(&before->holders, &request->send.claim, now_ns) != NULL;
    bool queued = releases && find_live(&before->queue, &request->send.claim, now_ns) != NULL;
    if (held && request->send.ends_hold)
        kinds_saw(world, KINDS_PROBE_SIGNAL_USED);
    int64_t more = held && !request->send.ends_hold;
    if (request != NULL && request->is_tally)
        more = request->tally.value;
    int64_t expected = passed_on + (more < waiting ? more : waiting);
    /* One that leaves the queue, served or not in this very execution, leaves its signal to the others. */
    if (queued) {
        int64_t others = count_live(&before->queue, now_ns) - 1;
        expected = signals < others ? signals : others;
    }
    int64_t served = 0;
    for (uint32_t i = 0; i < after->holders.count; i++)
        served += kinds_find(&before->holders, &after->holders.at[i].claim) == before->holders.count;
    if (served != expected)
        kinds_violate(world, "CV", "%lld were to get a signal, and %lld did", (long long)expected, (long long)served);
    if (after->count != 0)
        kinds_violate(world, "CV", "a signal is kept for nobody");
    if (passed_on > 0 || (more > 0 && releases && served > 0))
        kinds_saw(world, KINDS_PROBE_SIGNAL_PASSED_ON);
    if (request != NULL && request->is_tally)
        kinds_saw(world, served > 0 ? KINDS_PROBE_SIGNALLED : KINDS_PROBE_SIGNAL_ALONE);
}

/* ---- Answers ---- */

static void check_answer(kinds_world *world, const kinds_state *after, const kinds_request *request)
{
    int64_t now_ns = kinds_store_now(world);
    const snk_send *send = &request->send;
    kinds_claim *claim = kinds_find_claim(world, &send->claim);
    const kinds_entry *held = find_live(&after->holders, &send->claim, now_ns);
    const kinds_entry *queued = find_live(&after->queue, &send->claim, now_ns);
    if (request->answer.kind == SNK_ANSWER_HELD && (held == NULL || held->expires_at_ns < now_ns + send->lease_ns))
        kinds_violate(world, "S2", "held is answered without the full lease");
    if (request->answer.kind == SNK_ANSWER_QUEUED && queued == NULL)
        kinds_violate(world, "S2", "queued is answered, and the claim does not wait");
    if (send->ask == SNK_ASK_ACQUIRE && claim->buried) {
        kinds_saw(world, KINDS_PROBE_REFUSED);
        if (held != NULL || queued != NULL)
            kinds_violate(world, "S4", "a claim that was given up is registered after all");
    }
    if (send->ask == SNK_ASK_RELEASE && (held != NULL || queued != NULL))
        kinds_violate(world, "I5", "a claim is there after its release");
    claim->buried |= send->ask == SNK_ASK_RELEASE && send->unanswered;
}

/* I5: each claim in the store is known to a machine, or somebody is about to release it. */
static void check_orphans(kinds_world *world, const kinds_entries *entries)
{
    int64_t now_ns = kinds_store_now(world);
    for (uint32_t i = 0; i < entries->count; i++) {
        const kinds_claim *claim = kinds_find_claim(world, &entries->at[i].claim);
        const kinds_agent *agent = &world->agents[claim->agent];
        const kinds_unit *unit = &agent->units[claim->unit];
        if (entries->at[i].expires_at_ns <= now_ns || claim->epoch != agent->epoch || claim->in_flight > 0 ||
            claim->forgotten)
            continue;
        bool holds = unit->machine.hold != NULL && snk_id_equal(&unit->machine.hold->claim, &claim->id);
        bool seeks = unit->waits && !unit->waiter.decided && snk_id_equal(&unit->waiter.seek.claim, &claim->id);
        if (!holds && !seeks)
            kinds_violate(world, "I5", "a claim is in the store, and nobody knows of it");
    }
}

void kinds_after_execution(kinds_world *world, kinds_thing thing, const kinds_request *request, bool applied_before,
                           const kinds_before *before)
{
    const kinds_state *after = &world->store.things[thing];
    const snk_id *subject = request != NULL && !request->is_tally ? &request->send.claim : NULL;
    check_others(world, &before->state, after, subject);
    check_order(world, &before->state, after, request);
    check_new_tokens(world, &before->state, after);
    check_highest_token(world, thing, &before->state, after);
    switch (thing) {
    case KINDS_LOCK:
        check_lock(world, after);
        break;
    case KINDS_SEMAPHORE:
        check_semaphore(world, &before->state, after, request);
        break;
    case KINDS_LATCH:
        check_latch(world, &before->state, after, request, applied_before);
        break;
    case KINDS_CONDITION:
        check_condition(world, &before->state, after, request);
        break;
    case KINDS_THINGS:
        break;
    }
    check_nobody_forgotten(world, after);
    if (request != NULL && !request->is_tally)
        check_answer(world, after, request);
}

/* ---- Clients ---- */

/* I2, S2: while a process believes in its hold, on its own clock, the store has that claim as a holder. */
static void check_belief(kinds_world *world, const kinds_agent *agent, const kinds_unit *unit)
{
    const snk_hold *hold = unit->machine.hold;
    const kinds_entries *holders = &world->store.things[unit->thing].holders;
    uint32_t index = kinds_find(holders, &hold->claim);
    /* A store that was emptied is believed in until it is asked. */
    if (kinds_find_claim(world, &hold->claim)->forgotten)
        return;
    if (index == holders->count) {
        kinds_violate(world, "I2", "a process believes in a hold that the store has ended");
        return;
    }
    int64_t ends_at_ns = sim_clock_true(&world->store_clock, holders->at[index].expires_at_ns);
    if (sim_clock_true(&agent->clock, snk_deadline_peek(&unit->machine.deadline)) > ends_at_ns)
        kinds_violate(world, "S2", "a process believes in its hold for longer than the store keeps it");
    if (hold->token_first != holders->at[index].token)
        kinds_violate(world, "I1", "the token of a hold is not that of its grant");
}

void kinds_check_beliefs(kinds_world *world)
{
    for (uint32_t i = 0; i < world->plan.agent_count && !world->failed; i++)
        for (uint32_t j = 0; j < KINDS_MACHINES; j++)
            if (kinds_believes(&world->agents[i], &world->agents[i].units[j]))
                check_belief(world, &world->agents[i], &world->agents[i].units[j]);
}

static void forget(kinds_world *world, const kinds_entries *entries, kinds_probe probe)
{
    int64_t now_ns = kinds_store_now(world);
    for (uint32_t i = 0; i < entries->count; i++) {
        kinds_find_claim(world, &entries->at[i].claim)->forgotten = true;
        if (entries->at[i].expires_at_ns > now_ns)
            kinds_saw(world, probe);
    }
}

/* Its tombstones go with it: what was given up may come after all, until its lease ends it; and what was counted, again. */
void kinds_before_wipe(kinds_world *world)
{
    for (uint32_t i = 0; i < KINDS_THINGS; i++) {
        forget(world, &world->store.things[i].holders, KINDS_PROBE_WIPED_HOLD);
        forget(world, &world->store.things[i].queue, KINDS_PROBE_WIPED_WAIT);
    }
    for (uint32_t i = 0; i < world->claim_count; i++) {
        kinds_claim *claim = &world->claims[i];
        claim->forgotten |= claim->buried;
        claim->buried = false;
        claim->counted = false;
    }
    note_zero(world);
}

void kinds_check_granted(kinds_agent *agent, kinds_unit *unit)
{
    kinds_world *world = agent->world;
    if (!kinds_believes(agent, unit)) {
        kinds_violate(world, "I4", "granted, and over already");
        return;
    }
    if (unit->thing == KINDS_LATCH && !unit->saw_zero)
        kinds_violate(world, "I9", "a wait for the latch ended, and it was never at 0");
}

void kinds_check_orphans(kinds_world *world)
{
    for (uint32_t i = 0; i < KINDS_THINGS && !world->failed; i++) {
        check_orphans(world, &world->store.things[i].holders);
        check_orphans(world, &world->store.things[i].queue);
    }
}

void kinds_check_end(kinds_world *world)
{
    int64_t now_ns = kinds_store_now(world);
    for (uint32_t i = 0; i < KINDS_THINGS; i++)
        if (count_live(&world->store.things[i].holders, now_ns) + count_live(&world->store.things[i].queue, now_ns) > 0)
            kinds_violate(world, "I5", "everybody is gone, the leases are over, and the store is not empty");
}
