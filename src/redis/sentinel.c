/*
 * A master that sentinels watch. They are asked who it is, and the one they agree on is asked itself (ROLE) before
 * anything is sent there. Their message that the master has changed makes the scout look at once; so do a master that
 * refuses to write and a connection that is cut.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "redis/election.h"
#include "redis/leader.h"

#define SWITCH_CHANNEL "+switch-master"
#define IDLE_NS (15 * SNK_NS_PER_S)

typedef struct watch {
    snk_topology *topology;
    size_t count;
    snk_node *sentinels[SNK_SENTINELS_MAX];    /* references */
    snk_question addresses[SNK_SENTINELS_MAX]; /* SENTINEL get-master-addr-by-name */
    snk_question states[SNK_SENTINELS_MAX];    /* SENTINEL MASTER, or SENTINELS */
    snk_vote votes[SNK_SENTINELS_MAX];         /* of those that answered */
    size_t vote_count;
    size_t strangers; /* sentinels that know no such master */
    sneck_error why;  /* one of them gave no answer; the worst */
} watch;

/* ---- The sentinels ---- */

static bool is_known(const watch *self, const snk_redis_address *address)
{
    for (size_t i = 0; i < self->count; i++) {
        if (snk_redis_address_equal(&self->sentinels[i]->address, address))
            return true;
    }
    return false;
}

/* A wrong password is worth more to know than a sentinel that is away. */
static void note_trouble(watch *self, const sneck_error *error)
{
    if (self->why.status == SNECK_OK || error->status != SNECK_UNAVAILABLE)
        self->why = *error;
}

/* One that was known before stays, and so does its subscription. */
static void add_sentinel(watch *self, const snk_redis_address *address)
{
    if (self->count == SNK_SENTINELS_MAX || is_known(self, address))
        return;
    sneck_error error;
    snk_node *node = snk_node_get(self->topology, SNK_NODE_SENTINEL, address, &error);
    if (node == NULL) {
        note_trouble(self, &error);
        return;
    }
    pthread_mutex_lock(&self->topology->mutex);
    bool is_new = !node->mapped;
    node->mapped = true;
    pthread_mutex_unlock(&self->topology->mutex);
    if (is_new)
        (void)snk_redis_subscribe(node->redis, SWITCH_CHANNEL, strlen(SWITCH_CHANNEL), NULL);
    self->sentinels[self->count++] = node;
}

/* Those of the plan, and those that were found since. */
static void gather_sentinels(watch *self)
{
    snk_topology *topology = self->topology;
    for (size_t i = 0; i < topology->plan.host_count; i++)
        add_sentinel(self, &topology->plan.hosts[i]);
    for (size_t i = 0; i < SNK_REDIS_NODES_MAX; i++) {
        snk_redis_address address;
        pthread_mutex_lock(&topology->mutex);
        const snk_node *node = atomic_load_explicit(&topology->nodes[i], memory_order_relaxed);
        bool is_sentinel = node != NULL && node->kind == SNK_NODE_SENTINEL && node->mapped;
        if (is_sentinel)
            address = node->address;
        pthread_mutex_unlock(&topology->mutex);
        if (is_sentinel)
            add_sentinel(self, &address);
    }
}

/* ---- Their answers ---- */

static void ask(watch *self, snk_question questions[], const char *what)
{
    const char *const words[] = { "SENTINEL", what, self->topology->plan.service };
    for (size_t i = 0; i < self->count; i++)
        questions[i].node = self->sentinels[i];
    snk_question_ask(questions, self->count, 3, words, snk_question_timeout_ns(self->topology));
}

/* The value of a key in a flat array of keys and values; "" when it is not there. */
static const char *value_of(const redisReply *reply, const char *key)
{
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2) {
        if (reply->element[i]->type == REDIS_REPLY_STRING && reply->element[i + 1]->type == REDIS_REPLY_STRING &&
            strcmp(reply->element[i]->str, key) == 0)
            return reply->element[i + 1]->str;
    }
    return "";
}

static bool read_pair(const redisReply *reply, snk_redis_address *address)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 && reply->element[0]->type == REDIS_REPLY_STRING &&
           reply->element[1]->type == REDIS_REPLY_STRING &&
           snk_redis_address_set(address, reply->element[0]->str, (size_t)reply->element[0]->len,
                                 strtoll(reply->element[1]->str, NULL, 10));
}

static void take_vote(watch *self, const snk_question *state_question, const snk_question *address_question)
{
    sneck_error error;
    const redisReply *state = snk_question_answer(state_question, &error);
    if (state == NULL) {
        const snk_redis_call *call = &state_question->call;
        self->strangers += call->outcome == SNK_REDIS_REPLY && strstr(call->reply->str, "No such master") != NULL;
        note_trouble(self, &error);
        return;
    }
    const redisReply *address = snk_question_answer(address_question, NULL);
    snk_vote *vote = &self->votes[self->vote_count];
    if (address == NULL || !read_pair(address, &vote->master))
        return;
    const char *flags = value_of(state, "flags");
    vote->voter = state_question->call.run;
    vote->epoch = strtoull(value_of(state, "config-epoch"), NULL, 10);
    vote->sentinels = (size_t)strtoull(value_of(state, "num-other-sentinels"), NULL, 10) + 1;
    vote->replicas = (unsigned)strtoul(value_of(state, "num-slaves"), NULL, 10);
    vote->sees = strstr(flags, "down") == NULL && strstr(flags, "disconnected") == NULL;
    self->vote_count++;
}

static void take_votes(watch *self)
{
    self->vote_count = 0;
    self->strangers = 0;
    /*
     * The epoch first, the address after it: if the master is replaced in between, the new address counts with the old
     * epoch. The other way round an old address would count as the newest.
     */
    ask(self, self->states, "MASTER");
    ask(self, self->addresses, "get-master-addr-by-name");
    for (size_t i = 0; i < self->count; i++)
        take_vote(self, &self->states[i], &self->addresses[i]);
    snk_question_clear(self->addresses, self->count);
    snk_question_clear(self->states, self->count);
}

/* Asks for the others that they know of. True when there are some of whom we had not heard. */
static bool discover(watch *self)
{
    size_t before = self->count;
    snk_redis_address found[SNK_SENTINELS_MAX];
    size_t found_count = 0;
    ask(self, self->states, "SENTINELS");
    for (size_t i = 0; i < before; i++) {
        const redisReply *others = snk_question_answer(&self->states[i], NULL);
        for (size_t j = 0; others != NULL && j < others->elements && found_count < SNK_SENTINELS_MAX; j++) {
            const char *host = value_of(others->element[j], "ip");
            found_count += snk_redis_address_set(&found[found_count], host, strlen(host),
                                                 strtoll(value_of(others->element[j], "port"), NULL, 10));
        }
    }
    snk_question_clear(self->states, before);
    for (size_t i = 0; i < found_count; i++)
        add_sentinel(self, &found[i]);
    return self->count > before;
}

static bool lacks_sentinels(const watch *self)
{
    for (size_t i = 0; i < self->vote_count; i++) {
        if (self->votes[i].sentinels > self->count)
            return true;
    }
    return false;
}

/* ---- The master ---- */

static sneck_status verify(snk_topology *topology, const snk_vote *vote, sneck_error *error)
{
    snk_question question = { .node = snk_node_get(topology, SNK_NODE_SERVER, &vote->master, error) };
    if (question.node == NULL)
        return error->status;
    snk_question_ask(&question, 1, 1, (const char *const[]){ "ROLE" }, snk_question_timeout_ns(topology));
    bool is_master = snk_leader_is_master(snk_question_answer(&question, error), NULL);
    if (is_master)
        snk_leader_adopt(topology, question.node, vote->replicas);
    else
        snk_leader_explain(&question, error);
    snk_question_clear(&question, 1);
    snk_node_unref(question.node);
    return is_master ? SNECK_OK : error->status;
}

static sneck_status explain(const watch *self, sneck_error *error)
{
    if (self->vote_count > 0)
        return error->status;
    if (self->strangers > self->count / 2)
        return snk_fail(error, SNECK_INVALID, 0, "redis: the sentinels know no master named \"%.60s\"",
                        self->topology->plan.service);
    return snk_fail_as(error, &self->why);
}

static sneck_status find(watch *self, sneck_error *error)
{
    const snk_node *now = self->topology->master;
    gather_sentinels(self);
    take_votes(self);
    if (lacks_sentinels(self) && discover(self))
        take_votes(self);
    const snk_vote *vote = NULL;
    sneck_status status =
        snk_election_hold(self->votes, self->vote_count, now == NULL ? NULL : &now->address, &vote, error);
    return status == SNECK_OK ? verify(self->topology, vote, error) : explain(self, error);
}

static sneck_status look(snk_topology *topology, bool idly, sneck_error *error)
{
    (void)idly;
    watch *self = calloc(1, sizeof *self);
    if (self == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "redis: no memory to look for the master");
    self->topology = topology;
    sneck_status status = find(self, error);
    for (size_t i = 0; i < self->count; i++)
        snk_node_unref(self->sentinels[i]);
    free(self);
    return status == SNECK_OK ? snk_ok(error) : status;
}

const snk_topology_ops snk_topology_sentinel = {
    .route_locked = snk_leader_route_locked,
    .look = look,
    .idle_ns = IDLE_NS,
};
