/*
 * A master and replicas that nobody watches: every server is asked for its role. Nothing tells when that changes; it is
 * asked again when the master refuses to write or cannot be reached, and now and then.
 */
#include <stdlib.h>

#include "base/error.h"
#include "redis/leader.h"

#define IDLE_NS (15 * SNK_NS_PER_S)

/* The one among those that say they are the master; NULL with `error` when there is none, or nobody can say which. */
static snk_node *choose(const snk_topology *topology, const snk_question questions[], size_t count, sneck_error *error)
{
    snk_node *best = NULL;
    size_t most = 0;
    bool tied = false;
    sneck_error why;
    snk_fail(error, SNECK_UNAVAILABLE, 0, "redis: none of the %zu servers is a master", count);
    for (size_t i = 0; i < count; i++) {
        size_t replicas = 0;
        if (!snk_leader_is_master(snk_question_answer(&questions[i], NULL), &replicas)) {
            snk_leader_explain(&questions[i], &why);
            /* A wrong password is worth more to know than a server that is away. */
            if (best == NULL && (why.status != SNECK_UNAVAILABLE || error->status == SNECK_UNAVAILABLE))
                *error = why;
            continue;
        }
        /* As long as it calls itself the master it stays: another one that does so has its own state of things. */
        if (questions[i].node == topology->master)
            return questions[i].node;
        tied = best != NULL && (replicas == most || (tied && replicas < most));
        if (best == NULL || replicas > most) {
            best = questions[i].node;
            most = replicas;
        }
    }
    if (best != NULL && tied) {
        snk_fail(error, SNECK_UNAVAILABLE, 0,
                 "redis: several servers say that they are the master; make the others its replicas (REPLICAOF)");
        return NULL;
    }
    return best;
}

/* Whether the master is there and still is the master. */
static bool is_settled(snk_topology *topology)
{
    snk_question question = { .node = topology->master };
    if (question.node == NULL)
        return false;
    snk_question_ask(&question, 1, 1, (const char *const[]){ "ROLE" }, snk_question_timeout_ns(topology));
    bool is_master = snk_leader_is_master(snk_question_answer(&question, NULL), NULL);
    snk_question_clear(&question, 1);
    return is_master;
}

static sneck_status look(snk_topology *topology, bool idly, sneck_error *error)
{
    if (idly && is_settled(topology))
        return snk_ok(error);
    const snk_plan *plan = &topology->plan;
    snk_question *questions = calloc(plan->host_count, sizeof *questions);
    if (questions == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "redis: no memory to look for the master");
    for (size_t i = 0; i < plan->host_count; i++)
        questions[i].node = snk_node_get(topology, SNK_NODE_SERVER, &plan->hosts[i], NULL);
    snk_question_ask(questions, plan->host_count, 1, (const char *const[]){ "ROLE" },
                     snk_question_timeout_ns(topology));
    snk_node *master = choose(topology, questions, plan->host_count, error);
    if (master != NULL)
        snk_leader_adopt(topology, master, (unsigned)plan->host_count - 1);
    snk_question_clear(questions, plan->host_count);
    for (size_t i = 0; i < plan->host_count; i++)
        snk_node_unref(questions[i].node);
    free(questions);
    return master != NULL ? snk_ok(error) : error->status;
}

const snk_topology_ops snk_topology_replicated = {
    .route_locked = snk_leader_route_locked,
    .look = look,
    .idle_ns = IDLE_NS,
};
