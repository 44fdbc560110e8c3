/* For tests of stores: clients without an engine, which ask about claims by hand. */
#ifndef SNK_TEST_CLAIMS_H
#define SNK_TEST_CLAIMS_H

#include "base/clock.h"
#include "store/store.h"

/* What tests of stores ask for where the length does not matter, and what is long. Some stores know a longest lease. */
#define TEST_LEASE_MS_USUAL 60000
#define TEST_LONG_MS_USUAL 3600000
extern int64_t test_lease_ms;
extern int64_t test_long_lease_ms;
#define TEST_LEASE_MS test_lease_ms
#define TEST_LONG_MS test_long_lease_ms

/* A folder for lock files, in memory where there is a place for it; remove it with test_remove_folder. */
void test_make_folder(char *path, size_t size);
void test_remove_folder(const char *path);

snk_id test_id(void);
snk_identity test_identity(const snk_id *client);

/* Opens the store of that URL as a new client, with the prefix "lock:". */
sneck_status test_store_open(const char *url, snk_store **store_out, sneck_error *error);
/* The same, where it must work. */
snk_store *test_store(const char *url);
void test_store_close(snk_store *store);

typedef struct test_ask {
    int64_t lease_ms;
    uint32_t tokens;
    bool queue;
    bool fair;
    bool unanswered;
    bool ends_hold;
    const char *why;
    snk_grip grip;
} test_ask;

/* What an acquire, renew or release asks for, where the test does not say otherwise. */
#define TEST_TRY                                                                                                       \
    (test_ask)                                                                                                         \
    {                                                                                                                  \
        .lease_ms = TEST_LEASE_MS, .tokens = 1                                                                         \
    }
#define TEST_QUEUE                                                                                                     \
    (test_ask)                                                                                                         \
    {                                                                                                                  \
        .lease_ms = TEST_LEASE_MS, .tokens = 1, .queue = true                                                          \
    }

snk_answer test_acquire(snk_store *store, const char *name, const snk_id *claim, test_ask ask);
snk_answer test_renew(snk_store *store, const char *name, const snk_id *claim, int64_t lease_ms);
snk_answer test_release(snk_store *store, const char *name, const snk_id *claim);
snk_answer test_release_unanswered(snk_store *store, const char *name, const snk_id *claim);

/* The same about a claim on something else than a lock that is held alone. */
snk_answer test_renew_as(snk_store *store, const char *name, const snk_id *claim, snk_grip grip);
snk_answer test_release_as(snk_store *store, const char *name, const snk_id *claim, snk_grip grip, bool ends_hold);

/* Acquires as a new claim and insists on the kind of answer. */
snk_id test_must_hold(snk_store *store, const char *name);
snk_id test_must_queue(snk_store *store, const char *name, snk_answer *answer_out);

/* Takes the lock, waiting in the store's queue as long as it takes. Returns the answer "held". */
snk_answer test_take(snk_store *store, const char *name, const snk_id *claim, int64_t lease_ms);

void test_expect_kind(const snk_answer *answer, snk_answer_kind kind);
/* The same for an answer of which nothing else is wanted. */
void test_expect_answer(snk_answer answer, snk_answer_kind kind);

#endif
