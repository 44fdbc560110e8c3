/*
 * What stores on SQL servers share of the thread that hears who was granted something: starting it when the first claim
 * waits, what is known of it, and ending it.
 */
#ifndef SNK_STORE_SQL_EAR_H
#define SNK_STORE_SQL_EAR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum snk_sql_hearing {
    SNK_SQL_SILENT, /* nobody listens yet, or not at the moment */
    SNK_SQL_HEARS,
    SNK_SQL_DEAF /* nothing is heard here */
} snk_sql_hearing;

typedef struct snk_sql_ear {
    pthread_mutex_t mutex; /* guards is_started */
    bool is_started;
    pthread_t thread;
    int stop_fd;            /* readable: end */
    _Atomic int socket;     /* of its connection; -1: none */
    _Atomic uint32_t state; /* snk_sql_hearing */
} snk_sql_ear;

void snk_sql_ear_init(snk_sql_ear *ear);
/* Ends the thread. */
void snk_sql_ear_deinit(snk_sql_ear *ear);
/* In a child of fork(): closes descriptors, and nothing else. */
void snk_sql_ear_abandon(snk_sql_ear *ear);

/* For the thread. */
void snk_sql_ear_set(snk_sql_ear *ear, snk_sql_hearing state);
/* Waits so long for the end; true: it is to end. */
bool snk_sql_ear_is_stopping(const snk_sql_ear *ear, int64_t wait_ns);

/*
 * From now on there is something to hear: starts the thread with `run` unless it is there, and waits for nothing. False: it
 * does not hear yet, or never will, and the claim must look often. Whoever sets the state tells all claims that wait when it
 * begins to hear, because what was said before was missed, and when it ends, because nobody tells them then.
 */
bool snk_sql_ear_listen(snk_sql_ear *ear, void *(*run)(void *store), void *store);

#endif
