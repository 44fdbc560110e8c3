/*
 * A redis-server of one's own, on a free port and a unix socket in a temporary directory. It dies with the process that
 * started it. Without persistence unless the options say otherwise. SNECK_TEST_REDIS_SERVER names another program for it.
 */
#ifndef SNK_TEST_REDIS_SERVER_H
#define SNK_TEST_REDIS_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#define REDIS_SERVER_PATH_SIZE 128
#define REDIS_SERVER_OPTIONS_MAX 32

typedef struct redis_server {
    pid_t pid; /* 0: not running */
    int port;
    int tls_port; /* 0: none */
    char directory[64];
    char socket[80];
    const char *options[REDIS_SERVER_OPTIONS_MAX]; /* words added to the command line, ends with NULL; borrowed */
    bool is_sentinel;                              /* all it is told stands in sentinel.conf in its directory */
} redis_server;

/* Starts a server with extra words on its command line (NULL: none; ends with NULL). False when that fails. */
bool redis_server_start(redis_server *server, const char *const options[]);

/* The same with TLS on tls_port, with the certificates that tls_make put into `directory`. */
bool redis_server_start_tls(redis_server *server, const char *certificates, bool clients_need_one);

/* A sentinel, with lines for its configuration. */
bool redis_server_start_sentinel(redis_server *server, const char *lines);

/* Kills it and starts it again on the same port and in the same directory. */
bool redis_server_restart(redis_server *server);

/* Kills it (SIGKILL) but keeps the directory. */
void redis_server_kill(redis_server *server);

/* Kills it and removes its directory. */
void redis_server_stop(redis_server *server);

/* A port that was free a moment ago. */
int redis_server_free_port(void);

#endif
