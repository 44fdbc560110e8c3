/* A ZooKeeper server of its own, in a folder of its own: alone, or one of an ensemble. */
#ifndef SNK_TEST_ZOOKEEPER_SERVER_H
#define SNK_TEST_ZOOKEEPER_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#define ZOOKEEPER_ENSEMBLE 3

typedef struct zookeeper_server {
    pid_t pid; /* 0: not running */
    int port;
    int peer_port; /* 0: alone */
    int election_port;
    int number;         /* in its ensemble */
    char directory[64]; /* in memory where there is a place for it */
    char peers[256];    /* lines of the configuration */
    const char *extra;  /* the same; or NULL */
} zookeeper_server;

/* Whether there is a server to start; otherwise tests are skipped. */
bool zookeeper_server_exists(void);

/* `extra`: lines for its configuration, or NULL. True when it accepts connections. */
bool zookeeper_server_start(zookeeper_server *server, const char *extra);
/* Three that form an ensemble; true when one of them leads. */
bool zookeeper_ensemble_start(zookeeper_server servers[ZOOKEEPER_ENSEMBLE], const char *extra);

/* Ends it at once, as a crash does. */
void zookeeper_server_kill(zookeeper_server *server);
/* Starts it again in its place, with what it had. */
bool zookeeper_server_restart(zookeeper_server *server);
/* Ends it and removes its folder. */
void zookeeper_server_stop(zookeeper_server *server);

/* What it answers to a four-letter word, in static memory; "" when it does not. */
const char *zookeeper_server_ask(const zookeeper_server *server, const char *word);

#endif
