/*
 * A PostgreSQL server of one's own, on a free port and a unix socket in a temporary directory. It dies with the process
 * that started it. As root it runs as another user, because it insists. Nothing is synced to disk.
 */
#ifndef SNK_TEST_POSTGRES_SERVER_H
#define SNK_TEST_POSTGRES_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct postgres_server {
    pid_t pid; /* 0: not running */
    int port;
    char directory[64];      /* the socket is in it too */
    const char *options[16]; /* words added to the command line, ends with NULL; borrowed */
} postgres_server;

/* Makes a database cluster and starts its server, with extra words on its command line. False when that fails. */
bool postgres_server_start(postgres_server *server, const char *const options[]);

/* A standby of another server, which follows it. */
bool postgres_server_start_standby(postgres_server *server, const postgres_server *primary);

/* Ends it at once, as a crash does; the directory stays. */
void postgres_server_crash(postgres_server *server);

/* Starts it again in its place, after a crash or a kill. */
bool postgres_server_restart(postgres_server *server);

/* Stops all its processes where they are (SIGSTOP), and lets them go on. */
void postgres_server_freeze(const postgres_server *server);
void postgres_server_thaw(const postgres_server *server);

/* Ends it and removes its directory. */
void postgres_server_stop(postgres_server *server);

/* Where the programs of PostgreSQL are; "" when there are none. Static memory. */
const char *postgres_programs(void);

#endif
