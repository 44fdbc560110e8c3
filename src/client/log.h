/*
 * The application's log: structured lines by callback, on the callback thread, so that a log that is slow to write
 * delays nothing here. At most SNK_LOG_RATE lines of one event a second; what is left out is counted and told by the next
 * line of that event. No line has a password in it: none is ever given to this.
 */
#ifndef SNK_CLIENT_LOG_H
#define SNK_CLIENT_LOG_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "sneck.h"

#define SNK_LOG_RATE 10
#define SNK_LOG_KINDS 64
#define SNK_LOG_FIELDS_MAX 8

/* What a line says beside its event; the last one of a list has no key. */
typedef struct snk_log_field {
    const char *key;
    const char *text; /* NULL: the number counts */
    int64_t number;
} snk_log_field;

typedef struct snk_log {
    pthread_mutex_t mutex; /* a leaf */
    struct snk_log_limit {
        int64_t since_ns; /* when the present second began */
        uint32_t count;   /* of lines in it */
        uint32_t left_out;
        char event[32];
    } limits[SNK_LOG_KINDS]; /* under mutex */
    size_t count;            /* of those in use; under mutex */
} snk_log;

void snk_log_init(snk_log *log);
void snk_log_deinit(snk_log *log);

/* Writes a line, unless nobody wants it or there were too many. Never waits. `fields` (may be NULL) ends without key. */
void snk_log_write(sneck_client *client, sneck_log_level level, const char *event, const snk_log_field fields[]);

/* For a store, which has its line as text: `event=word key=word key="text"`. */
void snk_log_store(void *client, sneck_log_level level, const char *text);

#endif
