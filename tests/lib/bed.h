/*
 * What tests of the client stand on: a client on a store of its own, made before each test and gone after it. A suite
 * runs once on each store.
 */
#ifndef SNK_TEST_BED_H
#define SNK_TEST_BED_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "sneck.h"
#include "test.h"

typedef struct test_bed {
    char directory[64]; /* of the store's file; "" when it has none */
    char url[512];
    bool is_fair;         /* the store serves those who wait in order where they ask for it */
    bool tells_of_loss;   /* the store tells of a hold that it has ended, before anybody looks */
    int64_t lease_max_ms; /* the longest lease that tests may ask for */
    sneck_client *client;
} test_bed;

/* Runs each of the tests, which take a test_bed as their state, on each store. The result is for main to return. */
int test_run_on_stores(const struct CMUnitTest tests[], size_t count);
/* The same for tests of more than mutexes: stores that have nothing else are left out. */
int test_run_kinds_on_stores(const struct CMUnitTest tests[], size_t count);
/* The same for tests with long leases: stores that know a longest lease are left out. */
int test_run_long_leases_on_stores(const struct CMUnitTest tests[], size_t count);

/* Skips the running test where the store keeps no order of those who wait. */
void test_needs_order(const test_bed *bed);

/* Skips the running test where the watchdog is never the first to find a hold that the store has ended. */
void test_needs_findings(const test_bed *bed);

/* Opens a client on the bed's store (for memory: on one of its own). Fails the test when it cannot. */
sneck_client *test_open(const test_bed *bed, const sneck_client_options *options);

/* A handle; fails the test when it cannot be had. */
sneck_lock *test_mutex(sneck_client *client, const char *name, const sneck_lock_options *options);
/* A handle that owns for itself. */
sneck_lock *test_handle(sneck_client *client, const char *name);

/* assert that the call had this status, and show the message if not */
void test_expect(sneck_status expected, sneck_status status, const sneck_error *error, const char *call);
#define EXPECT(expected, call) test_expect(expected, call, &error, #call)

/* How long a test waits for something that must happen, in ms: generous, because machines are slow. */
#define TEST_PATIENCE_MS 20000

/* True when `fd` became readable within `ms`. */
bool test_readable(int fd, int ms);

/* Runs a function on a thread of its own, and waits for it. */
void test_on_thread(void (*function)(void *argument), void *argument);

/* Waits until `client` has exactly so many callers that wait for `name`. */
void test_await_waiting(sneck_client *client, const char *name, unsigned waiting);

/* Takes a hold away by force, by the token that the store shows. */
void test_break(sneck_client *client, const char *name);

/* After that the loss of one more hold is known: it is looked for, where the store has not told of it. */
void test_find_loss(sneck_client *client, uint64_t lost);

/* The holder that the store shows for `name`; true when it is held. */
bool test_is_held_in_store(sneck_client *client, const char *name);
/* How many claims the store has in the queue of `name`. */
size_t test_queue_in_store(sneck_client *client, const char *name);

/*
 * Waits for an event of this kind, by sneck_event_next; those before it are dropped. Call sneck_event_fd first. Fails
 * the test when it does not come.
 */
sneck_event test_await_event(sneck_client *client, sneck_event_kind kind);
/* How the client is. */
sneck_health_report test_health(sneck_client *client);
/* Waits until a check has run, or has found something, so often. */
void test_await_runs(sneck_client *client, sneck_check_kind kind, uint64_t runs);
void test_await_findings(sneck_client *client, sneck_check_kind kind, uint64_t findings);

/* Appends to a text that has room for `size` bytes; what does not fit is cut. */
void test_append(char *to, size_t size, const char *text);

int64_t test_now_ms(void);

#endif
