/* A store between a client and its real one, which does on command what networks do. */
#ifndef SNK_TEST_FAULTY_H
#define SNK_TEST_FAULTY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "engine/claim.h"
#include "sneck.h"
#include "store/store.h"

typedef enum test_fault {
    TEST_WORKS,
    TEST_FAILS,     /* it does not happen: SNECK_UNAVAILABLE */
    TEST_NO_ANSWER, /* it happens, and no answer comes: SNECK_UNKNOWN */
    TEST_SWALLOWS,  /* it does not happen, and no answer comes: SNECK_UNKNOWN */
    TEST_HANGS      /* it hangs until the fault is changed, and happens then */
} test_fault;

typedef struct test_faulty {
    snk_store base;
    snk_store_ops ops;
    snk_store *inner;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    test_fault faults[3];   /* by snk_ask; under mutex */
    unsigned epochs[3];     /* goes up when calls that hang may go on; under mutex */
    atomic_bool is_deaf;    /* whoever waits sleeps until it is cancelled */
    atomic_uint deaf_waits; /* begun so far */
    unsigned hanging;       /* calls that hang; under mutex */
    atomic_uint calls[3];   /* by snk_ask */
    atomic_uint claims[3];  /* in them */
    atomic_uint checks;     /* claims that were looked up */
    atomic_uint tallies;    /* counts that were read or changed */
} test_faulty;

/* From now on each name is in the part of the store that its first letter says. */
void test_split_by_letter(test_faulty *faulty);

/* Puts itself between a client that was just opened and its store. It goes with the client. */
test_faulty *test_make_faulty(sneck_client *client);

void test_set_fault(test_faulty *faulty, snk_ask ask, test_fault fault);
/* Those that hang go on hanging until the next test_set_fault; later ones work. */
void test_hang_no_more(test_faulty *faulty, snk_ask ask);
/* Returns when so many calls hang. */
void test_await_hanging(test_faulty *faulty, unsigned count);

#endif
