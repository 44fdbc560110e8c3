/* Requests to nodes: in their order on each connection, until that falls. */
#include "world.h"

static qs_request *take_request(qs_world *world)
{
    for (uint32_t i = 0; i < QS_REQUESTS_MAX; i++) {
        qs_request *request = &world->requests[(world->request_next + i) % QS_REQUESTS_MAX];
        if (!request->used) {
            world->request_next = (world->request_next + i + 1) % QS_REQUESTS_MAX;
            return request;
        }
    }
    qs_violate(world, "SIM", "more than %d requests at once", QS_REQUESTS_MAX);
    return NULL;
}

static void unref(qs_request *request)
{
    if (--request->references == 0)
        request->used = false;
}

static void push_for(qs_world *world, qs_request *request, qs_event_kind kind, int64_t at_ns)
{
    request->references++;
    qs_push(world, at_ns,
            &(sim_event){ .kind = (uint8_t)kind,
                          .process = request->process,
                          .epoch = request->epoch,
                          .index = (uint32_t)(request - world->requests) });
}

int64_t qs_draw_way(qs_world *world)
{
    const qs_plan *plan = &world->plan;
    if (world->phase == QS_PHASE_FAULTS && sim_random_chance(&world->network, plan->late))
        return sim_random_octaves(&world->network, SNK_NS_PER_MS / 4, plan->lease_ns);
    return sim_random_range(&world->network, plan->latency_ns / 2, plan->latency_ns * 3 / 2);
}

/* A connection is made in no time, or cannot be had. The node tells who it is, and the time. */
static bool connect(qs_world *world, qs_process *process, uint32_t number)
{
    qs_link *link = &process->links[number];
    const qs_node *node = &world->nodes[number];
    if (link->connected)
        return true;
    if (node->down_until_ns > world->now_ns || node->paused_until_ns > world->now_ns ||
        link->cut_until_ns > world->now_ns)
        return false;
    int64_t local_ns = qs_local(world, process);
    int64_t node_ns = qs_node_now(world, node);
    link->connected = true;
    link->connection++;
    int64_t after_ns = link->run != 0 && link->run != node->run ? link->run_heard_at_ns : 0;
    link->run = node->run;
    link->run_heard_at_ns = local_ns;
    link->last_arrival_ns = world->now_ns;
    link->last_reply_ns = world->now_ns;
    snk_node_clock_started(&link->clock, &world->quorum, qs_node_uptime_ns(node, node_ns), after_ns, local_ns);
    snk_node_clock_heard(&link->clock, node_ns / SNK_NS_PER_US, local_ns, local_ns);
    return true;
}

/* At the end of what is on its way to the node. */
static void depart(qs_world *world, qs_request *request)
{
    qs_link *link = &world->processes[request->process].links[request->node];
    int64_t at_ns = world->now_ns + qs_draw_way(world);
    if (at_ns <= link->last_arrival_ns)
        at_ns = link->last_arrival_ns + 1;
    link->last_arrival_ns = at_ns;
    push_for(world, request, QS_EVENT_REQUEST_ARRIVES, at_ns);
}

void qs_send(qs_world *world, qs_process *process, uint32_t number, const qs_question *question, qs_sender sender)
{
    static const char *const names[] = { "ask vote", "ask renew", "ask release", "ask adopt" };
    qs_request *request = take_request(world);
    if (request == NULL)
        return;
    qs_link *link = &process->links[number];
    bool connected = connect(world, process, number);
    *request = (qs_request){
        .used = true,
        .waited_for = true,
        .may_execute = connected,
        .left = connected,
        .process = qs_number(world, process),
        .node = (uint8_t)number,
        .epoch = process->epoch,
        .connection = link->connection,
        .run = link->run,
        .operation = sender.operation,
        .undo = sender.undo,
        .round = sender.round,
        .sent_at_ns = qs_local(world, process),
        .question = *question,
    };
    qs_record(world, names[question->ask], request->process, number, question->token);
    push_for(world, request, QS_EVENT_REQUEST_OVER,
             sim_clock_true(&process->clock, request->sent_at_ns + world->plan.timeout_ns));
    if (!connected)
        return;
    depart(world, request);
}

/* The nodes of a process that wait for the lock hear that a vote was given back. */
static void publish(qs_world *world, uint32_t number)
{
    for (uint32_t i = 0; i < world->plan.process_count; i++) {
        const qs_process *process = &world->processes[i];
        if (!process->up || process->links[number].cut_until_ns > world->now_ns ||
            (world->phase == QS_PHASE_FAULTS && sim_random_chance(&world->network, world->plan.news_lost)))
            continue;
        qs_push(
            world, world->now_ns + qs_draw_way(world),
            &(sim_event){ .kind = QS_EVENT_MESSAGE, .process = (uint8_t)i, .epoch = process->epoch, .index = number });
    }
}

/* The node does nothing but to say why: true. A script that is sent with the question is known from then on. */
static bool is_put_off(const qs_world *world, qs_node *node, qs_request *request)
{
    uint32_t script = UINT32_C(1) << request->question.ask;
    request->reply = (qs_reply){ .time_us = qs_node_now(world, node) / SNK_NS_PER_US };
    request->reply.refused = node->refuses_until_ns > world->now_ns;
    if (request->reply.refused)
        return true;
    if (request->sent_again)
        node->scripts |= script;
    request->reply.forgotten = (node->scripts & script) == 0;
    return request->reply.forgotten;
}

/* Once more, with the script, behind all that has been sent meanwhile. */
static void send_again(qs_world *world, qs_request *request)
{
    qs_saw(world, QS_PROBE_SENT_AGAIN);
    request->sent_again = true;
    request->may_execute = true;
    request->sent_at_ns = qs_local(world, &world->processes[request->process]);
    qs_record(world, "send again", request->process, request->node, request->question.ask);
    depart(world, request);
}

static void execute(qs_world *world, qs_request *request)
{
    static const char *const kinds[] = { "open", "yes", "low", "high", "taken", "buried", "young", "failed", "silent" };
    qs_node *node = &world->nodes[request->node];
    qs_link *link = &world->processes[request->process].links[request->node];
    request->may_execute = false;
    /* Only the end of a hold is announced: votes come and go. */
    if (is_put_off(world, node, request))
        qs_record(world, request->reply.refused ? "refuses" : "forgot script", request->process, request->node,
                  request->question.ask);
    else if (qs_node_execute(node, &request->question, qs_node_now(world, node), &request->reply) &&
             request->question.attempt == QS_ALL_TRIES)
        publish(world, request->node);
    if (request->reply.refused || request->reply.forgotten)
        ; /* noted above */
    else if (request->question.ask == QS_VOTE)
        qs_record(world, kinds[request->reply.vote.kind], request->process, request->node, request->reply.vote.floor);
    else
        qs_record(world, request->reply.says == SNK_NODE_YES ? "says yes" : "says no", request->process, request->node,
                  request->question.ask);
    if (request->connection != link->connection || request->epoch != world->processes[request->process].epoch)
        return; /* nobody listens there any more */
    int64_t at_ns = world->now_ns + qs_draw_way(world);
    if (at_ns <= link->last_reply_ns)
        at_ns = link->last_reply_ns + 1;
    link->last_reply_ns = at_ns;
    push_for(world, request, QS_EVENT_REPLY_ARRIVES, at_ns);
}

void qs_on_request_arrives(qs_world *world, const sim_event *event)
{
    qs_request *request = &world->requests[event->index];
    const qs_node *node = &world->nodes[request->node];
    const qs_link *link = &world->processes[request->process].links[request->node];
    bool same = request->connection == link->connection;
    if (request->may_execute && node->paused_until_ns > world->now_ns) {
        /* It waits in the node's buffer; what comes at the same time leaves it in the order in which it came. */
        push_for(world, request, QS_EVENT_REQUEST_ARRIVES, node->paused_until_ns + 1);
    } else if (request->may_execute && node->down_until_ns <= world->now_ns && request->run == node->run &&
               (!same || link->cut_until_ns <= world->now_ns)) {
        execute(world, request);
    } else {
        request->may_execute = false; /* lost on the way */
    }
    unref(request);
}

static void settle(qs_world *world, qs_request *request, snk_node_says outcome)
{
    qs_process *process = &world->processes[request->process];
    bool current = request->waited_for && request->epoch == process->epoch && process->up;
    request->waited_for = false;
    if (current)
        qs_settle(world, request, outcome);
}

void qs_on_reply_arrives(qs_world *world, const sim_event *event)
{
    qs_request *request = &world->requests[event->index];
    qs_process *process = &world->processes[request->process];
    qs_link *link = &process->links[request->node];
    if (request->waited_for && request->epoch == process->epoch && request->connection == link->connection &&
        link->connected && link->cut_until_ns <= world->now_ns) {
        /* An error does not tell the time. */
        if (!request->reply.forgotten && !request->reply.refused) {
            link->run_heard_at_ns = qs_local(world, process);
            snk_node_clock_heard(&link->clock, request->reply.time_us, request->sent_at_ns, qs_local(world, process));
        }
        if (request->reply.forgotten)
            send_again(world, request);
        else
            settle(world, request, request->reply.refused ? SNK_NODE_FAILED : SNK_NODE_OPEN);
    }
    unref(request);
}

/* Too late. A request that had no connection never left. After a silence the connection is not trusted any more. */
void qs_on_request_over(qs_world *world, const sim_event *event)
{
    qs_request *request = &world->requests[event->index];
    if (request->waited_for && request->epoch == world->processes[request->process].epoch) {
        qs_process *process = &world->processes[request->process];
        qs_link *link = &process->links[request->node];
        bool trusted = sim_random_chance(&world->network, 500);
        settle(world, request, request->left ? SNK_NODE_SILENT : SNK_NODE_FAILED);
        if (request->left && !trusted && request->connection == link->connection)
            qs_reset(world, process, request->node, true);
    }
    unref(request);
}

void qs_reset(qs_world *world, qs_process *process, uint32_t number, bool late)
{
    qs_link *link = &process->links[number];
    uint32_t connection = link->connection;
    uint8_t process_number = qs_number(world, process);
    if (!link->connected)
        return;
    link->connected = false;
    qs_record(world, "reset", process_number, number, connection);
    for (uint32_t i = 0; i < QS_REQUESTS_MAX; i++) {
        qs_request *request = &world->requests[i];
        if (!request->used || request->process != process_number || request->node != number ||
            request->connection != connection || request->epoch != process->epoch || !request->left)
            continue;
        /* What had not left is known not to have left. */
        bool unsent = request->may_execute && request->waited_for && sim_random_chance(&world->faults, 200);
        if (request->may_execute && (unsent || !late || sim_random_chance(&world->faults, 500)))
            request->may_execute = false;
        if (request->waited_for)
            settle(world, request, unsent ? SNK_NODE_FAILED : SNK_NODE_SILENT);
    }
}

void qs_drop_requests(qs_world *world, const qs_process *process)
{
    for (uint32_t i = 0; i < QS_REQUESTS_MAX; i++) {
        qs_request *request = &world->requests[i];
        if (request->used && request->process == qs_number(world, process)) {
            request->waited_for = false;
            if (sim_random_chance(&world->faults, 500))
                request->may_execute = false;
        }
    }
}
