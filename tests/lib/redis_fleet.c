#include "redis_fleet.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "process.h"
#include "redis_bed.h"
#include "test.h"
#include "toil.h"

#define TEXT_SIZE 65536
#define MASTERS 3
#define SLOTS 16384

/* ---- Asking ---- */

static size_t add_reply(const redisReply *reply, char text[TEXT_SIZE], size_t length)
{
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++)
        length = add_reply(reply->element[i], text, length);
    if (reply->type == REDIS_REPLY_ARRAY || length + 1 >= TEXT_SIZE)
        return length;
    const char *between = length > 0 ? " " : "";
    if (reply->type == REDIS_REPLY_INTEGER)
        length += (size_t)snprintf(text + length, TEXT_SIZE - length, "%s%lld", between, reply->integer);
    else if (reply->str != NULL)
        length += (size_t)snprintf(text + length, TEXT_SIZE - length, "%s%s", between, reply->str);
    return length < TEXT_SIZE ? length : TEXT_SIZE - 1;
}

/* False when the server is not there, or answers with an error. */
static bool ask(const redis_server *server, const char *command, char text[TEXT_SIZE])
{
    text[0] = '\0';
    struct timeval patience = { .tv_sec = 10 };
    redisContext *context = redisConnectUnixWithTimeout(server->socket, patience);
    redisReply *reply = NULL;
    if (context != NULL && context->err == 0) {
        (void)redisSetTimeout(context, patience);
        reply = redisCommand(context, command);
    }
    bool fine = reply != NULL && reply->type != REDIS_REPLY_ERROR;
    if (reply != NULL)
        (void)add_reply(reply, text, 0);
    else
        (void)snprintf(text, TEXT_SIZE, "no answer");
    if (reply != NULL)
        freeReplyObject(reply);
    if (context != NULL)
        redisFree(context);
    return fine;
}

const char *fleet_ask(const redis_server *server, const char *format, ...)
{
    static char text[TEXT_SIZE];
    char command[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    (void)ask(server, command, text);
    return text;
}

void fleet_do(const redis_server *server, const char *format, ...)
{
    static char text[TEXT_SIZE];
    char command[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    if (!ask(server, command, text))
        fail_msg("%s: %s", command, text);
}

void fleet_await(const redis_server *server, const char *text, const char *command)
{
    int64_t limit_ns = snk_now_ns() + test_patience_ns();
    while (strstr(fleet_ask(server, "%s", command), text) == NULL) {
        if (snk_now_ns() > limit_ns)
            fail_msg("%s does not say %s but %s", command, text, fleet_ask(server, "%s", command));
        redis_bed_pause(5);
    }
}

/* ---- A master with replicas ---- */

static void start_server(redis_fleet *fleet, size_t index, size_t master)
{
    redis_server *server = &fleet->servers[index];
    const char *options[REDIS_SERVER_OPTIONS_MAX] = { "--aclfile", fleet->rules, "--repl-diskless-sync-delay", "0" };
    if (master != index) {
        (void)snprintf(fleet->words[index][0], sizeof fleet->words[index][0], "%d", fleet->servers[master].port);
        options[4] = "--replicaof";
        options[5] = "127.0.0.1";
        options[6] = fleet->words[index][0];
    }
    if (!redis_server_start(server, options))
        fail_msg("redis-server does not start");
}

static void await_caught_up(const redis_server *replica)
{
    fleet_await(replica, "master_link_status:up", "INFO replication");
}

/*
 * One try, in one write: whoever is told by a sentinel to be another's replica, or the master, closes all connections, and
 * then there is no answer.
 */
static bool is_acknowledged(const redis_server *server, size_t replicas)
{
    redisContext *context = redisConnectUnix(server->socket);
    void *written = NULL;
    void *counted = NULL;
    if (context != NULL && context->err == 0) {
        (void)redisAppendCommand(context, "SET " TOIL_TAG "written 1 PX 1");
        (void)redisAppendCommand(context, "WAIT %d 100", (int)replicas);
        if (redisGetReply(context, &written) == REDIS_OK)
            (void)redisGetReply(context, &counted);
    }
    const redisReply *count = counted;
    bool known = count != NULL && count->type == REDIS_REPLY_INTEGER && count->integer >= (long long)replicas;
    freeReplyObject(written);
    freeReplyObject(counted);
    if (context != NULL)
        redisFree(context);
    return known;
}

void fleet_await_acknowledged(const redis_server *server, size_t replicas)
{
    int64_t limit_ns = snk_now_ns() + test_patience_ns();
    while (!is_acknowledged(server, replicas)) {
        assert_true(snk_now_ns() < limit_ns);
        redis_bed_pause(1);
    }
}

void fleet_start_replicated(redis_fleet *fleet, size_t replicas)
{
    *fleet = (redis_fleet){ .count = replicas + 1 };
    redis_bed_write_users(fleet->rules);
    for (size_t i = 0; i < fleet->count; i++)
        start_server(fleet, i, 0);
    for (size_t i = 1; i < fleet->count; i++)
        await_caught_up(&fleet->servers[i]);
    fleet_await_acknowledged(&fleet->servers[0], replicas);
}

void fleet_rejoin(redis_fleet *fleet, size_t index, size_t master)
{
    redis_server *server = &fleet->servers[index];
    (void)snprintf(fleet->words[index][0], sizeof fleet->words[index][0], "%d", fleet->servers[master].port);
    server->options[4] = "--replicaof";
    server->options[5] = "127.0.0.1";
    server->options[6] = fleet->words[index][0];
    assert_true(redis_server_restart(server));
    await_caught_up(server);
}

void fleet_cut_replication(redis_fleet *fleet, size_t master)
{
    const redis_server *server = &fleet->servers[master];
    fleet_do(server, "ACL SETUSER default -psync -sync");
    fleet_do(server, "CLIENT KILL TYPE replica");
    fleet_await(server, "connected_slaves:0", "INFO replication");
}

static bool says_master(const redis_server *server)
{
    return server->pid != 0 && strncmp(fleet_ask(server, "ROLE"), "master", strlen("master")) == 0;
}

size_t fleet_await_master(redis_fleet *fleet, size_t except)
{
    int64_t limit_ns = snk_now_ns() + test_patience_ns();
    for (;;) {
        for (size_t i = 0; i < fleet->count; i++) {
            if (i != except && says_master(&fleet->servers[i]))
                return i;
        }
        if (snk_now_ns() > limit_ns)
            fail_msg("no server becomes the master");
        redis_bed_pause(2);
    }
}

/* ---- Sentinels ---- */

void fleet_start_sentinels(redis_fleet *fleet, const char *lines)
{
    fleet_start_replicated(fleet, 2);
    fleet->has_sentinels = true;
    char config[1024];
    (void)snprintf(config, sizeof config,
                   "sentinel monitor " FLEET_SERVICE " 127.0.0.1 %d 2\n"
                   "sentinel down-after-milliseconds " FLEET_SERVICE " 1000\n"
                   "sentinel failover-timeout " FLEET_SERVICE " 1000\n"
                   "sentinel parallel-syncs " FLEET_SERVICE " 2\n%s",
                   fleet->servers[0].port, lines == NULL ? "" : lines);
    for (size_t i = 0; i < FLEET_SENTINELS; i++) {
        if (!redis_server_start_sentinel(&fleet->sentinels[i], config))
            fail_msg("a sentinel does not start");
    }
    for (size_t i = 0; i < FLEET_SENTINELS; i++) {
        fleet_await(&fleet->sentinels[i], "num-slaves 2", "SENTINEL MASTER " FLEET_SERVICE);
        fleet_await(&fleet->sentinels[i], "num-other-sentinels 2", "SENTINEL MASTER " FLEET_SERVICE);
    }
}

/* So many sentinels say that it is the master. */
static size_t count_namers(const redis_fleet *fleet, size_t master)
{
    char text[32];
    size_t count = 0;
    (void)snprintf(text, sizeof text, "127.0.0.1 %d", fleet->servers[master].port);
    for (size_t i = 0; i < FLEET_SENTINELS; i++)
        count += strcmp(fleet_ask(&fleet->sentinels[i], "SENTINEL get-master-addr-by-name " FLEET_SERVICE), text) == 0;
    return count;
}

static void await_namers(const redis_fleet *fleet, size_t master, size_t count)
{
    int64_t limit_ns = snk_now_ns() + test_patience_ns();
    while (count_namers(fleet, master) < count) {
        if (snk_now_ns() > limit_ns)
            fail_msg("%zu sentinels do not name server %zu", count, master);
        redis_bed_pause(1);
    }
}

void fleet_await_announced(redis_fleet *fleet, size_t master)
{
    await_namers(fleet, master, 1);
}

void fleet_await_agreement(redis_fleet *fleet, size_t master)
{
    await_namers(fleet, master, FLEET_SENTINELS);
}

static bool is_agreed(const redis_fleet *fleet, size_t master)
{
    return says_master(&fleet->servers[master]) && count_namers(fleet, master) == FLEET_SENTINELS;
}

static bool is_settled(const redis_fleet *fleet, size_t master)
{
    const redis_server *server = &fleet->servers[master];
    size_t replicas = fleet->count - 1;
    char text[32];
    (void)snprintf(text, sizeof text, "connected_slaves:%zu", replicas);
    return is_agreed(fleet, master) && strstr(fleet_ask(server, "INFO replication"), text) != NULL &&
           is_acknowledged(server, replicas);
}

static size_t await_one(const redis_fleet *fleet, bool (*is_the_one)(const redis_fleet *fleet, size_t master))
{
    int64_t limit_ns = snk_now_ns() + test_patience_ns();
    for (size_t i = 0;; i = (i + 1) % fleet->count) {
        if (is_the_one(fleet, i))
            return i;
        if (snk_now_ns() > limit_ns)
            fail_msg("the servers do not agree about one master");
        redis_bed_pause(1);
    }
}

size_t fleet_await_agreed(const redis_fleet *fleet)
{
    return await_one(fleet, is_agreed);
}

size_t fleet_await_settled(const redis_fleet *fleet)
{
    return await_one(fleet, is_settled);
}

/* ---- A cluster ---- */

static void start_node(redis_fleet *fleet, size_t index)
{
    (void)snprintf(fleet->words[index][0], sizeof fleet->words[index][0], "%d", redis_server_free_port());
    const char *options[REDIS_SERVER_OPTIONS_MAX] = { "--aclfile",
                                                      fleet->rules,
                                                      "--repl-diskless-sync-delay",
                                                      "0",
                                                      "--cluster-enabled",
                                                      "yes",
                                                      "--cluster-config-file",
                                                      "nodes.conf",
                                                      "--cluster-node-timeout",
                                                      "1000",
                                                      "--cluster-port",
                                                      fleet->words[index][0],
                                                      "--cluster-replica-validity-factor",
                                                      "0",
                                                      "--cluster-require-full-coverage",
                                                      "no" };
    if (!redis_server_start(&fleet->servers[index], options))
        fail_msg("redis-server does not start");
}

static void node_id(const redis_server *server, char id[41])
{
    (void)snprintf(id, 41, "%s", fleet_ask(server, "CLUSTER MYID"));
}

static void start_cluster(redis_fleet *fleet, size_t masters, size_t replicas)
{
    *fleet = (redis_fleet){ .count = masters + replicas };
    redis_bed_write_users(fleet->rules);
    for (size_t i = 0; i < fleet->count; i++)
        start_node(fleet, i);
    for (size_t i = 0; i < fleet->count; i++) {
        fleet_do(&fleet->servers[i], "CLUSTER SET-CONFIG-EPOCH %zu", i + 1);
        if (i < masters)
            fleet_do(&fleet->servers[i], "CLUSTER ADDSLOTSRANGE %zu %zu", i * SLOTS / masters,
                     (i + 1) * SLOTS / masters - 1);
        fleet_do(&fleet->servers[i], "CLUSTER MEET 127.0.0.1 %d %s", fleet->servers[0].port, fleet->words[0][0]);
    }
    char known[64];
    (void)snprintf(known, sizeof known, "cluster_known_nodes:%zu", fleet->count);
    for (size_t i = 0; i < fleet->count; i++)
        fleet_await(&fleet->servers[i], known, "CLUSTER INFO");
    for (size_t i = masters; i < fleet->count; i++) {
        char id[41];
        node_id(&fleet->servers[i - masters], id);
        char command[64];
        (void)snprintf(command, sizeof command, "CLUSTER REPLICATE %s", id);
        fleet_await(&fleet->servers[i], "OK", command);
    }
    for (size_t i = 0; i < fleet->count; i++)
        fleet_await(&fleet->servers[i], "cluster_state:ok", "CLUSTER INFO");
    for (size_t i = masters; i < fleet->count; i++)
        await_caught_up(&fleet->servers[i]);
}

void fleet_start_cluster(redis_fleet *fleet, size_t replicas)
{
    start_cluster(fleet, MASTERS, replicas);
}

void fleet_start_masters(redis_fleet *fleet, size_t masters)
{
    start_cluster(fleet, masters, 0);
}

unsigned fleet_slot(redis_fleet *fleet, const char *key)
{
    return (unsigned)strtoul(fleet_ask(&fleet->servers[0], "CLUSTER KEYSLOT %s", key), NULL, 10);
}

static const redis_server *first_running(const redis_fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++) {
        if (fleet->servers[i].pid != 0)
            return &fleet->servers[i];
    }
    fail_msg("no server runs");
    return NULL;
}

size_t fleet_owner(redis_fleet *fleet, unsigned slot)
{
    return fleet_owner_seen_by(fleet, first_running(fleet), slot);
}

size_t fleet_owner_seen_by(const redis_fleet *fleet, const redis_server *server, unsigned slot)
{
    redisContext *context = redisConnectUnix(server->socket);
    redisReply *reply = redisCommand(context, "CLUSTER SLOTS");
    long long port = 0;
    for (size_t i = 0; reply != NULL && i < reply->elements; i++) {
        const redisReply *range = reply->element[i];
        if (range->element[0]->integer <= slot && slot <= range->element[1]->integer)
            port = range->element[2]->element[1]->integer;
    }
    freeReplyObject(reply);
    redisFree(context);
    for (size_t i = 0; i < fleet->count; i++) {
        if (fleet->servers[i].port == port)
            return i;
    }
    fail_msg("nobody has slot %u", slot);
    return 0;
}

const char *fleet_name_on(redis_fleet *fleet, size_t server, unsigned number, char name[32])
{
    for (unsigned i = number * 1000;; i++) {
        char key[64];
        (void)snprintf(key, sizeof key, "lock:n%u", i);
        (void)snprintf(name, 32, "n%u", i);
        if (fleet_owner(fleet, fleet_slot(fleet, key)) == server)
            return name;
    }
}

void fleet_begin_move(redis_fleet *fleet, unsigned slot, size_t from, size_t to)
{
    char from_id[41];
    char to_id[41];
    node_id(&fleet->servers[from], from_id);
    node_id(&fleet->servers[to], to_id);
    fleet_do(&fleet->servers[to], "CLUSTER SETSLOT %u IMPORTING %s", slot, from_id);
    fleet_do(&fleet->servers[from], "CLUSTER SETSLOT %u MIGRATING %s", slot, to_id);
}

void fleet_move_keys(redis_fleet *fleet, unsigned slot, size_t from, size_t to)
{
    redisContext *context = redisConnectUnix(fleet->servers[from].socket);
    redisReply *keys = redisCommand(context, "CLUSTER GETKEYSINSLOT %u 100", slot);
    assert_non_null(keys);
    for (size_t i = 0; i < keys->elements; i++) {
        redisReply *reply =
            redisCommand(context, "MIGRATE 127.0.0.1 %d %s 0 5000", fleet->servers[to].port, keys->element[i]->str);
        if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
            fail_msg("MIGRATE %s: %s", keys->element[i]->str, reply == NULL ? "no answer" : reply->str);
        freeReplyObject(reply);
    }
    freeReplyObject(keys);
    redisFree(context);
}

void fleet_end_move(redis_fleet *fleet, unsigned slot, size_t from, size_t to)
{
    char to_id[41];
    node_id(&fleet->servers[to], to_id);
    fleet_do(&fleet->servers[to], "CLUSTER SETSLOT %u NODE %s", slot, to_id);
    fleet_do(&fleet->servers[from], "CLUSTER SETSLOT %u NODE %s", slot, to_id);
    for (size_t i = 0; i < MASTERS; i++)
        fleet_do(&fleet->servers[i], "CLUSTER SETSLOT %u NODE %s", slot, to_id);
}

void fleet_stop(redis_fleet *fleet)
{
    for (size_t i = 0; fleet->has_sentinels && i < FLEET_SENTINELS; i++)
        redis_server_stop(&fleet->sentinels[i]);
    for (size_t i = 0; i < fleet->count; i++)
        redis_server_stop(&fleet->servers[i]);
    (void)unlink(fleet->rules);
}

/* ---- URLs ---- */

static const char *make_url(const char *scheme, const redis_server servers[], size_t count, const char *path,
                            const char *keys)
{
    static char url[512];
    size_t length = (size_t)snprintf(url, sizeof url, "%s://sneck:secret@", scheme);
    for (size_t i = 0; i < count; i++)
        length +=
            (size_t)snprintf(url + length, sizeof url - length, "%s127.0.0.1:%d", i == 0 ? "" : ",", servers[i].port);
    (void)snprintf(url + length, sizeof url - length, "%s%s%s", path, keys == NULL ? "" : "?",
                   keys == NULL ? "" : keys);
    return url;
}

const char *fleet_replicated_url(const redis_fleet *fleet, const char *keys)
{
    return make_url("redis+replicated", fleet->servers, fleet->count, "", keys);
}

const char *fleet_sentinel_url(const redis_fleet *fleet, const char *keys)
{
    return make_url("redis+sentinel", fleet->sentinels, FLEET_SENTINELS, "/" FLEET_SERVICE, keys);
}

const char *fleet_cluster_url(const redis_fleet *fleet, const char *keys)
{
    return make_url("redis+cluster", fleet->servers, fleet->count, "", keys);
}
