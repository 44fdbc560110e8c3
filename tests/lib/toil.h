/*
 * Processes that work under one lock while servers die: each reads, adds one and writes back, at a resource that takes
 * no token lower than the highest it has seen.
 */
#ifndef SNK_TEST_TOIL_H
#define SNK_TEST_TOIL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#define TOIL_TAG "{t}" /* locks with this in their names are in one slot of a cluster */
#define TOIL_PROCESSES 8
#define TOIL_TOKENS_MAX 4000000

typedef struct toil {
    char url[512];
    int64_t lease_ms;
    _Atomic uint32_t stop;
    _Atomic uint32_t ready;
    _Atomic uint64_t grants;                      /* of all processes */
    _Atomic int64_t served_at_ns[TOIL_PROCESSES]; /* when each last had the lock */
    _Atomic uint64_t failures;                    /* acquires that came to nothing */
    _Atomic uint64_t told;                        /* holds whose end came before their release */
    pthread_mutex_t mutex;                        /* of the resource; shared by the processes */
    uint64_t highest;                             /* under mutex, as all that follows */
    int64_t value;
    uint64_t accepted;
    uint64_t refused;
    uint64_t lost_updates; /* writes that were accepted and did not build on the one before */
    uint64_t falling;      /* grants whose token was not above one that had been shown before they were asked for */
    size_t token_count;
    uint64_t tokens[TOIL_TOKENS_MAX];
    pid_t workers[TOIL_PROCESSES];
} toil;

/* Starts the processes; before this one has threads. They work until they are stopped. */
toil *toil_start(const char *url, int64_t lease_ms);
/* Stops them and checks: none failed, no update was lost, no token was given twice. */
void toil_stop(toil *work);
/* Waits until each of them has had the lock after `since_ns`; how long after, for the last one. */
int64_t toil_await_all_ns(toil *work, int64_t since_ns);
/* The same for any of them. */
int64_t toil_await_any_ns(toil *work, int64_t since_ns);

#endif
