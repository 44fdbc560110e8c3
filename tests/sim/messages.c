#include "messages.h"

#include "agents.h"
#include "model_client.h"

static void push(sim_world *world, const sim_claim *claim, uint32_t news, int64_t way_ns)
{
    sim_push(world, world->now_ns + way_ns,
             &(sim_event){ .kind = SIM_EVENT_NEWS,
                           .process = claim->process,
                           .lock = claim->lock,
                           .epoch = claim->epoch,
                           .index = (uint32_t)(claim - world->claims),
                           .generation = news });
}

void messages_carry(sim_world *world, const model_news *news)
{
    for (uint32_t i = 0; i < news->count; i++) {
        sim_claim *claim = sim_find_claim(world, &news->grants[i].claim);
        if (claim == NULL)
            continue;
        uint32_t number = claim->grant_count++ % SIM_GRANTS_MAX;
        claim->grants[number] = news->grants[i];
        if (!world->processes[claim->process].engine.pushes_wakeups)
            continue;
        uint32_t says = world->store.announces_grants ? SIM_NEWS_GRANT + number : SIM_NEWS_LOOK;
        if (!client_is_lost(world, world->plan.news_lost))
            push(world, claim, says, client_draw_way_ns(world));
        if (client_is_lost(world, world->plan.news_repeated))
            push(world, claim, says, client_draw_way_ns(world));
    }
}

void messages_haunt(sim_world *world)
{
    for (uint32_t i = 0; i < world->plan.lock_count && world->store.announces_grants; i++) {
        const model_lock *lock = &world->store.data.locks[i];
        for (uint32_t j = 0; j < lock->queue_count; j++) {
            const sim_claim *claim = sim_find_claim(world, &lock->queue[j].claim);
            int64_t way_ns = sim_random_octaves(&world->network, SNK_NS_PER_MS, world->plan.late_ns);
            if (claim->grant_count > 0)
                push(world, claim, SIM_NEWS_GRANT + (claim->grant_count - 1) % SIM_GRANTS_MAX, way_ns);
        }
    }
}

static sim_thread *find_seeker(sim_process *process, uint32_t lock, const snk_id *claim)
{
    for (uint32_t i = 0; i < SIM_AGENTS_MAX; i++) {
        sim_thread *thread = &process->threads[i];
        if (thread->state == SIM_THREAD_WAITING && thread->lock == lock && thread->waiter.seek.state != SNK_SEEK_NONE &&
            snk_id_equal(&thread->waiter.seek.claim, claim))
            return thread;
    }
    return NULL;
}

/* The id of a claim that waits is known to nobody who could forge a message. */
static bool read_message(sim_world *world, const sim_event *event, bool is_sought, snk_grant *grant)
{
    if (event->generation >= SIM_NEWS_GRANT && event->generation < SIM_NEWS_FORGED) {
        *grant = world->claims[event->index].grants[event->generation - SIM_NEWS_GRANT];
        return true;
    }
    if (event->generation != SIM_NEWS_FORGED || is_sought)
        return false;
    grant->token_first = sim_random_next(&world->faults) >> 8;
    grant->token_last = grant->token_first + sim_random_below(&world->faults, 100);
    grant->run = world->store.run;
    return true;
}

void messages_arrive(sim_world *world, const sim_event *event)
{
    sim_process *process = &world->processes[event->process];
    snk_grant grant = { .run = 0 };
    if (event->index < world->claim_count) {
        grant.claim = world->claims[event->index].id;
    } else {
        for (size_t i = 0; i < SNK_ID_BYTES; i++)
            grant.claim.bytes[i] = (uint8_t)sim_random_next(&world->faults);
    }
    sim_thread *seeker = find_seeker(process, event->lock, &grant.claim);
    bool granted = read_message(world, event, seeker != NULL, &grant);
    sim_record(world, granted ? "granted" : "news", event->process, event->lock, event->index, event->generation);
    if (world->plan.news_by_agent && seeker != NULL) {
        /* It reaches the thread in its sleep, which hands it on when it wakes up. */
        if (granted)
            seeker->grant = grant;
        agent_wake(world, process, seeker, true);
        return;
    }
    snk_event step = { .kind = SNK_EVENT_NEWS, .claim = grant.claim, .grant = granted ? &grant : NULL };
    snk_actions actions;
    client_step(world, process, event->lock, &step, &actions);
}
