/*
 * A MariaDB server of one's own, on a free port and a unix socket in a temporary directory. It dies with the process that
 * started it. Nothing is synced to disk.
 */
#ifndef SNK_TEST_MYSQL_SERVER_H
#define SNK_TEST_MYSQL_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct mysql_server {
    pid_t pid; /* 0: not running */
    int port;
    char directory[64];
    const char *const *options; /* further words of its command line, ending with NULL; or NULL */
    char socket[96];
} mysql_server;

/* Makes a data directory and starts its server. False when that fails. */
bool mysql_server_start(mysql_server *server);
bool mysql_server_start_with(mysql_server *server, const char *const options[]);
/* Ends it at once, as a crash does; the directory stays. */
void mysql_server_crash(mysql_server *server);
/* Starts it again in its place. */
bool mysql_server_restart(mysql_server *server);
/* Ends it and removes its directory. */
void mysql_server_stop(mysql_server *server);

#endif
