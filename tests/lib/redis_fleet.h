/*
 * Several servers that belong together: a master with replicas, sentinels that watch them, or a cluster. All on free
 * ports of this machine, with the users of redis_bed; they die with the process that started them.
 */
#ifndef SNK_TEST_REDIS_FLEET_H
#define SNK_TEST_REDIS_FLEET_H

#include <hiredis/hiredis.h>

#include "redis_server.h"

#define FLEET_SERVERS_MAX 6
#define FLEET_SENTINELS 3
#define FLEET_SERVICE "mymaster"

typedef struct redis_fleet {
    redis_server servers[FLEET_SERVERS_MAX];
    size_t count;
    redis_server sentinels[FLEET_SENTINELS];
    bool has_sentinels;
    char rules[64];
    char words[FLEET_SERVERS_MAX][2][16]; /* ports, for command lines */
} redis_fleet;

/* A master (the first) and its replicas, which have caught up when it returns. */
void fleet_start_replicated(redis_fleet *fleet, size_t replicas);
/* The same, and three sentinels that know all of them and each other. `lines`: more of their configuration, or NULL. */
void fleet_start_sentinels(redis_fleet *fleet, const char *lines);
/* Three masters with a third of the slots each, and `replicas` (0 or 3) replicas, the i-th of the i-th. */
void fleet_start_cluster(redis_fleet *fleet, size_t replicas);
/* A cluster of so many masters that share the slots. */
void fleet_start_masters(redis_fleet *fleet, size_t masters);
void fleet_stop(redis_fleet *fleet);

/* The server that says it is the master, among those that run; waits for it. Its number. */
size_t fleet_await_master(redis_fleet *fleet, size_t except);
/* Waits until a sentinel says that this is the master: only then can anybody know. */
void fleet_await_announced(redis_fleet *fleet, size_t master);
/* Waits until every sentinel says so. */
void fleet_await_agreement(redis_fleet *fleet, size_t master);
/*
 * Waits until all sentinels name a server that says it is the master; its number. On a slow machine they may choose another
 * one though nobody has died.
 */
size_t fleet_await_agreed(const redis_fleet *fleet);
/* The same, and all others are its replicas and have all that is written to it. */
size_t fleet_await_settled(const redis_fleet *fleet);
/* Waits until that many replicas have what is written to the server, and it knows it. */
void fleet_await_acknowledged(const redis_server *server, size_t replicas);
/* Starts a killed server again, as a replica of another; returns when it has caught up. */
void fleet_rejoin(redis_fleet *fleet, size_t server, size_t master);
/* From now on nothing that is written to the server reaches its replicas, though it does not notice. */
void fleet_cut_replication(redis_fleet *fleet, size_t master);

/* ---- Cluster ---- */

unsigned fleet_slot(redis_fleet *fleet, const char *key);
/* The number of the master for a slot, as the first server that runs sees it. */
size_t fleet_owner(redis_fleet *fleet, unsigned slot);
size_t fleet_owner_seen_by(const redis_fleet *fleet, const redis_server *server, unsigned slot);
/* The name of a lock (with the usual prefix) that is on that server; another one for each number. */
const char *fleet_name_on(redis_fleet *fleet, size_t server, unsigned number, char name[32]);
/* Begins to move a slot: from now on one server exports it and the other imports it. */
void fleet_begin_move(redis_fleet *fleet, unsigned slot, size_t from, size_t to);
/* Moves all keys of the slot that there are now. */
void fleet_move_keys(redis_fleet *fleet, unsigned slot, size_t from, size_t to);
/* The slot belongs to `to` from now on; all masters know it when it returns. */
void fleet_end_move(redis_fleet *fleet, unsigned slot, size_t from, size_t to);

/* ---- Asking ---- */

/* As administrator. The text of the answer, of its elements joined by ' ', in static memory. */
const char *fleet_ask(const redis_server *server, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for a command that must not fail. */
void fleet_do(const redis_server *server, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Asks until the answer contains `text`. */
void fleet_await(const redis_server *server, const char *text, const char *command);

/* URLs as the documented user; static memory. `keys`: "wake=all", or NULL. */
const char *fleet_replicated_url(const redis_fleet *fleet, const char *keys);
const char *fleet_sentinel_url(const redis_fleet *fleet, const char *keys);
const char *fleet_cluster_url(const redis_fleet *fleet, const char *keys);

#endif
