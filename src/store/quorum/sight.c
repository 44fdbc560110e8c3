#include "store/quorum/sight.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/redis/entries.h"

/* What the inspect script answers, in this order. */
enum {
    SEEN_NOW,
    SEEN_TTL,
    SEEN_LOCK,
    SEEN_TOKEN,
    SEEN_LOG,
    SEEN_COUNT
};

/* The answer of a node; NULL: there is none that makes sense. */
static const redisReply *answer_of(const snk_operation *look, uint32_t node)
{
    const snk_redis_call *call = snk_operation_call(look, node);
    const redisReply *reply = call->reply;
    if (look->says[node] != SNK_NODE_YES || reply == NULL || reply->type != REDIS_REPLY_ARRAY ||
        reply->elements != SEEN_COUNT || reply->element[SEEN_NOW]->type != REDIS_REPLY_INTEGER ||
        reply->element[SEEN_TTL]->type != REDIS_REPLY_INTEGER || reply->element[SEEN_LOCK]->type != REDIS_REPLY_ARRAY ||
        reply->element[SEEN_TOKEN]->type != REDIS_REPLY_STRING || reply->element[SEEN_LOG]->type != REDIS_REPLY_ARRAY)
        return NULL;
    return reply;
}

/* ---- Who has it ---- */

/* The value of a field of the lock, or NULL. */
static const char *field_of(const redisReply *answer, const char *field)
{
    const redisReply *fields = answer->element[SEEN_LOCK];
    for (size_t i = 0; i + 1 < fields->elements; i += 2)
        if (fields->element[i]->type == REDIS_REPLY_STRING && fields->element[i + 1]->type == REDIS_REPLY_STRING &&
            strcmp(fields->element[i]->str, field) == 0)
            return fields->element[i + 1]->str;
    return NULL;
}

/* Whose vote it is, in words that are the same on all nodes; "" when it is nobody's. */
static void read_holder(const redisReply *answer, char holder[SNK_ID_TEXT_SIZE])
{
    const char *claim = field_of(answer, "~claim");
    holder[0] = '\0';
    if (claim != NULL && strlen(claim) >= SNK_ID_TEXT_SIZE - 1) {
        memcpy(holder, claim, SNK_ID_TEXT_SIZE - 1);
        holder[SNK_ID_TEXT_SIZE - 1] = '\0';
    } else if (answer->element[SEEN_LOCK]->elements > 0) {
        memcpy(holder, "?", 2); /* a client of another kind */
    }
}

/* How many nodes have the same holder as this one; as a set too. */
static uint32_t count_same(const snk_quorum_store *store, char holders[][SNK_ID_TEXT_SIZE], uint32_t node,
                           uint32_t *set_out)
{
    uint32_t count = 0;
    *set_out = 0;
    for (uint32_t i = 0; i < store->quorum.nodes && holders[node][0] != '\0'; i++) {
        bool same = strcmp(holders[i], holders[node]) == 0;
        count += same;
        *set_out |= (uint32_t)same << i;
    }
    return count;
}

static int64_t ttl_of(const snk_operation *look, uint32_t node)
{
    const redisReply *answer = answer_of(look, node);
    return answer == NULL ? 0 : answer->element[SEEN_TTL]->integer;
}

/* When the holder has no majority any more; of one that has none now, when its last vote ends. */
static int64_t find_end_ms(const snk_quorum_store *store, const snk_operation *look, uint32_t set, uint32_t count)
{
    uint32_t majority = snk_quorum_majority(&store->quorum);
    uint32_t wanted = count >= majority ? majority : 1;
    int64_t end_ms = 0;
    for (uint32_t i = 0; i < store->quorum.nodes; i++) {
        uint32_t longer = 0;
        for (uint32_t j = 0; j < store->quorum.nodes; j++)
            longer += (set >> j & 1) != 0 && ttl_of(look, j) >= ttl_of(look, i);
        if ((set >> i & 1) != 0 && longer >= wanted && ttl_of(look, i) > end_ms)
            end_ms = ttl_of(look, i);
    }
    return end_ms;
}

static uint64_t number_of(const char *text)
{
    return text == NULL ? 0 : strtoull(text, NULL, 10);
}

static void find_token(const snk_quorum_store *store, const snk_operation *look, snk_sight *sight)
{
    for (uint32_t i = 0; i < store->quorum.nodes; i++) {
        const redisReply *answer = answer_of(look, i);
        if (answer == NULL || (sight->held && (sight->holders >> i & 1) == 0))
            continue;
        uint64_t token =
            sight->held ? number_of(field_of(answer, "~token")) : number_of(answer->element[SEEN_TOKEN]->str);
        if (token > sight->token)
            sight->token = token;
    }
}

void snk_sight_make(const snk_quorum_store *store, const snk_operation *look, snk_sight *sight)
{
    char holders[SNK_QUORUM_NODES_MAX][SNK_ID_TEXT_SIZE];
    uint32_t most = 0;
    *sight = (snk_sight){ .answered = 0 };
    for (uint32_t i = 0; i < store->quorum.nodes; i++) {
        const redisReply *answer = answer_of(look, i);
        holders[i][0] = '\0';
        sight->answered += answer != NULL;
        sight->silent |= (uint32_t)(answer == NULL) << i;
        if (answer != NULL)
            read_holder(answer, holders[i]);
    }
    for (uint32_t i = 0; i < store->quorum.nodes; i++) {
        uint32_t set = 0;
        uint32_t count = count_same(store, holders, i, &set);
        if (count <= most)
            continue;
        most = count;
        sight->holders = set;
        sight->first = i;
    }
    uint32_t unknown = store->quorum.nodes - sight->answered;
    sight->held = most > 0 && most + unknown >= snk_quorum_majority(&store->quorum);
    if (sight->held && !snk_id_from_hex(&sight->claim, holders[sight->first]))
        sight->claim = (snk_id){ { 0 } };
    sight->remaining_ms = sight->held ? find_end_ms(store, look, sight->holders, most) : 0;
    find_token(store, look, sight);
}

/* ---- For people ---- */

static void show_holder(const snk_operation *look, const snk_sight *sight, snk_view *view)
{
    snk_holder_entry holder;
    const redisReply *answer = answer_of(look, sight->first);
    view->info.token = sight->token;
    if (!sight->held || answer == NULL || !snk_entry_read_hash(answer->element[SEEN_LOCK], &holder))
        return;
    /* The token was the time when it was asked for, and a bit. */
    int64_t age_us = answer->element[SEEN_NOW]->integer - (int64_t)sight->token;
    holder.party.age_ms = sight->token > 0 && age_us > 0 ? age_us / 1000 : 0;
    holder.party.remaining_ms = sight->remaining_ms;
    snk_view_hold(view, &holder.party, sight->token, false);
}

static int compare_incidents(const void *a, const void *b)
{
    const snk_log_entry *left = *(snk_log_entry *const *)a;
    const snk_log_entry *right = *(snk_log_entry *const *)b;
    if (left->incident.time_ms != right->incident.time_ms)
        return left->incident.time_ms < right->incident.time_ms ? -1 : 1;
    return (left->incident.token > right->incident.token) - (left->incident.token < right->incident.token);
}

static bool is_known(snk_log_entry *const entries[], size_t count, const snk_log_entry *entry)
{
    for (size_t i = 0; i < count; i++)
        if (entries[i]->incident.token == entry->incident.token &&
            strcmp(entries[i]->incident.kind, entry->incident.kind) == 0)
            return true;
    return false;
}

/* What each node has noted is put together; each hold has ended once. */
static void show_log(const snk_quorum_store *store, const snk_operation *look, snk_view *view)
{
    size_t most = (size_t)store->quorum.nodes * SNK_INCIDENTS_MAX;
    snk_log_entry *entries = calloc(most, sizeof *entries);
    snk_log_entry **known = calloc(most, sizeof(void *));
    size_t count = 0;
    for (uint32_t i = 0; i < store->quorum.nodes && entries != NULL && known != NULL; i++) {
        const redisReply *answer = answer_of(look, i);
        const redisReply *log = answer == NULL ? NULL : answer->element[SEEN_LOG];
        for (size_t j = 0; log != NULL && j < log->elements && count < most; j++) {
            if (snk_entry_read_log(log->element[j], &entries[count]) && !is_known(known, count, &entries[count])) {
                known[count] = &entries[count];
                count++;
            }
        }
    }
    if (entries == NULL || known == NULL)
        view->out_of_memory = true;
    else if (count > 0)
        qsort(known, count, sizeof(void *), compare_incidents);
    for (size_t i = count > SNK_INCIDENTS_MAX ? count - SNK_INCIDENTS_MAX : 0; i < count; i++)
        snk_view_incident(view, &known[i]->incident);
    free(known);
    free(entries);
}

/* What is known of them, and what they said just now. */
static void show_nodes(snk_quorum_store *store, const snk_operation *look, const snk_sight *sight, snk_view *view)
{
    sneck_node nodes[SNK_QUORUM_NODES_MAX];
    snk_quorum_report(store, nodes);
    for (uint32_t i = 0; i < store->quorum.nodes; i++) {
        bool away = look->says[i] != SNK_NODE_YES;
        if (away) {
            nodes[i].state = "away";
            nodes[i].trouble = snk_operation_call(look, i)->error.message;
            nodes[i].counts_in_ms = 0;
        }
        nodes[i].holds = sight->held && (sight->holders >> i & 1) != 0;
        snk_view_node(view, &nodes[i]);
    }
}

void snk_sight_show(snk_quorum_store *store, const snk_operation *look, const snk_sight *sight, snk_view *view)
{
    show_holder(look, sight, view);
    show_log(store, look, view);
    show_nodes(store, look, sight, view);
}
