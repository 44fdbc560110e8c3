/* How the embedded store tells a waiter that it was granted the lock: in the mapped file, without a transaction. */
#include "test.h"

#include <pthread.h>
#include <unistd.h>

#include "base/futex.h"
#include "bed.h"
#include "faulty.h"
#include "lockfile.h"
#include "store/sqlite/grants.h"
#include "store/sqlite/sqlite.h"

static bool find_grant(snk_store *store, const snk_id *claim, snk_grant *grant)
{
    *grant = (snk_grant){ .run = 0 };
    return store->ops->find_grant(store, claim, grant);
}

static void test_a_release_says_what_it_granted(void **state)
{
    test_place *here = *state;
    snk_store *a = test_store(here->url);
    snk_store *b = test_store(here->url);
    snk_id held = test_must_hold(a, "x");
    snk_answer queued;
    snk_id waiting = test_must_queue(b, "x", &queued);
    snk_grant grant;
    assert_false(find_grant(b, &waiting, &grant));
    test_expect_answer(test_release(a, "x", &held), SNK_ANSWER_DONE);
    _Atomic uint32_t nothing = 0;
    assert_true(b->ops->wait(b, queued.ticket, &nothing, 0, snk_now_ns() + 30 * SNK_NS_PER_S));
    assert_true(find_grant(b, &waiting, &grant));
    assert_true(snk_id_equal(&grant.claim, &waiting));
    assert_true(grant.run != 0 && grant.run == queued.run);
    assert_int_equal(test_ask_sql(here, "SELECT state FROM sneck_lock WHERE place > 0"), 1);
    snk_answer answer = test_renew(b, "x", &waiting, TEST_LEASE_MS);
    test_expect_kind(&answer, SNK_ANSWER_HELD);
    assert_int_equal(grant.token_first, answer.token_first);
    assert_int_equal(grant.token_last, answer.token_last);
    assert_int_equal(test_ask_sql(here, "SELECT state FROM sneck_lock WHERE place > 0"), 2);
    test_store_close(b);
    test_store_close(a);
}

static void test_what_is_granted_because_a_holder_died_is_said_to_the_next_only(void **state)
{
    test_place *here = *state;
    snk_store *a = test_store(here->url);
    snk_store *b = test_store(here->url);
    snk_store *c = test_store(here->url);
    (void)test_must_hold(a, "x");
    snk_id next = test_must_queue(b, "x", NULL);
    snk_id last = test_must_queue(c, "x", NULL);
    test_store_close(a);
    test_expect_answer(test_renew(c, "x", &last, TEST_LEASE_MS), SNK_ANSWER_QUEUED);
    snk_grant grant;
    assert_true(find_grant(b, &next, &grant));
    assert_false(find_grant(c, &last, &grant));
    last.bytes[15] ^= 1U; /* another claim with the same place for its note */
    next.bytes[15] ^= 1U;
    assert_false(find_grant(b, &next, &grant));
    test_store_close(c);
    test_store_close(b);
}

static void test_nothing_is_said_about_what_was_not_committed(void **state)
{
    test_place *here = *state;
    snk_store *a = test_store(here->url);
    snk_store *b = test_store(here->url);
    snk_id held = test_must_hold(a, "x");
    snk_answer queued;
    snk_id waiting = test_must_queue(b, "x", &queued);
    snk_sqlite *embedded = snk_sqlite_of(a);
    assert_int_equal(snk_begin(embedded, true, NULL), SNECK_OK);
    snk_claim claim = { .name = "x", .send = { .ask = SNK_ASK_RELEASE, .claim = held } };
    snk_answer answer;
    snk_do_claim(embedded, &claim, &answer);
    test_expect_kind(&answer, SNK_ANSWER_DONE);
    embedded->code = SQLITE_FULL;
    assert_int_equal(snk_end(embedded, NULL, NULL), SNECK_UNAVAILABLE);
    snk_grant grant;
    _Atomic uint32_t nothing = 0;
    assert_false(find_grant(b, &waiting, &grant));
    assert_false(b->ops->wait(b, queued.ticket, &nothing, 0, snk_now_ns() + 20 * SNK_NS_PER_MS));
    test_expect_answer(test_renew(b, "x", &waiting, TEST_LEASE_MS), SNK_ANSWER_QUEUED);
    test_store_close(b);
    test_store_close(a);
}

static void test_a_note_that_was_written_half_is_none(void **state)
{
    test_place *here = *state;
    snk_store *store = test_store(here->url);
    snk_slot *slot = snk_sidecar_slot(snk_sqlite_of(store)->sidecar);
    snk_grant granted = { .claim = test_id(), .token_first = 7, .token_last = 9 };
    snk_grant found;
    snk_grant_write(slot, &granted);
    assert_true(find_grant(store, &granted.claim, &found));
    (void)atomic_fetch_add(&slot->grants[granted.claim.bytes[0] % SNK_SIDECAR_GRANTS].writes, 1); /* and died */
    assert_false(find_grant(store, &granted.claim, &found));
    snk_grant_write(slot, &granted);
    assert_true(find_grant(store, &granted.claim, &found));
    assert_int_equal(found.token_first, 7);
    assert_int_equal(found.token_last, 9);
    test_store_close(store);
}

static void test_a_note_of_a_file_that_was_replaced_is_none(void **state)
{
    test_place *here = *state;
    char sidecar[128];
    (void)snprintf(sidecar, sizeof sidecar, "%s-sneck", here->path);
    snk_store *store = test_store(here->url);
    snk_grant granted = { .claim = test_id(), .token_first = 7, .token_last = 9 };
    snk_grant found;
    snk_grant_write(snk_sidecar_slot(snk_sqlite_of(store)->sidecar), &granted);
    assert_true(find_grant(store, &granted.claim, &found));
    uint64_t run = found.run;
    assert_int_equal(unlink(sidecar), 0);
    snk_sqlite_of(store)->sidecar_look_ns = 0; /* as if it had been looked at long ago */
    (void)test_must_hold(store, "x");
    assert_false(find_grant(store, &granted.claim, &found));
    assert_true(snk_sqlite_of(store)->sidecar->generation != run);
    test_store_close(store);
}

typedef struct scribe {
    snk_slot *slot;
    snk_grant grants[2]; /* share a note */
    _Atomic bool stop;
} scribe;

static void *write_notes(void *context)
{
    scribe *self = context;
    for (size_t i = 0; !atomic_load(&self->stop); i++)
        snk_grant_write(self->slot, &self->grants[i % 2]);
    return NULL;
}

static void test_a_note_is_read_whole_or_not_at_all(void **state)
{
    test_place *here = *state;
    snk_store *store = test_store(here->url);
    scribe self = { .slot = snk_sidecar_slot(snk_sqlite_of(store)->sidecar) };
    self.grants[0] = (snk_grant){ .claim = test_id(), .token_first = 10, .token_last = 19 };
    self.grants[1] = (snk_grant){ .claim = self.grants[0].claim, .token_first = 20, .token_last = 29 };
    self.grants[1].claim.bytes[SNK_ID_BYTES - 1] ^= 1U; /* only the second half differs */
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_notes, &self), 0);
    unsigned found = 0;
    for (unsigned i = 0; i < test_scaled(100000000) || found == 0; i++) {
        const snk_grant *wanted = &self.grants[i % 2];
        snk_grant grant;
        if (!snk_grant_read(self.slot, &wanted->claim, &grant))
            continue;
        found++;
        if (grant.token_first != wanted->token_first || grant.token_last != wanted->token_last)
            fail_msg("claim %u with tokens of the other", i % 2);
    }
    atomic_store(&self.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    test_store_close(store);
}

/* ---- The whole way ---- */

typedef struct waiter {
    sneck_lock *lock;
    sneck_status status;
    uint64_t token;
    _Atomic uint32_t ended;
} waiter;

static void *acquire_and_release(void *context)
{
    waiter *self = context;
    self->status = sneck_acquire(self->lock, TEST_PATIENCE_MS, NULL);
    self->token = sneck_token(self->lock);
    atomic_store(&self->ended, 1);
    snk_futex_wake(&self->ended, 1, false);
    (void)sneck_release(self->lock, NULL);
    return NULL;
}

static bool has_ended_by(waiter *self, int64_t until_ns)
{
    int64_t left_ns = until_ns - snk_now_ns();
    while (atomic_load(&self->ended) == 0 && left_ns > 0) {
        (void)snk_futex_wait_any(&(snk_futex_word){ .word = &self->ended }, 1, left_ns);
        left_ns = until_ns - snk_now_ns();
    }
    return atomic_load(&self->ended) != 0;
}

/* Hands the lock to a waiter that cannot ask the store. True when it got it all the same. */
static bool hands_over_while_nothing_can_be_asked(sneck_client *from, sneck_client *to, test_faulty *faulty)
{
    sneck_error error;
    sneck_lock *held = test_mutex(from, "x", NULL);
    EXPECT(SNECK_OK, sneck_acquire(held, TEST_PATIENCE_MS, &error));
    waiter self = { .lock = test_mutex(to, "x", NULL) };
    uint64_t token = sneck_token(held);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, acquire_and_release, &self), 0);
    while (test_queue_in_store(from, "x") == 0)
        continue;
    test_set_fault(faulty, SNK_ASK_RENEW, TEST_HANGS);
    EXPECT(SNECK_OK, sneck_release(held, &error));
    bool ended = has_ended_by(&self, snk_now_ns() + SNK_OFFER_NS / 4);
    test_set_fault(faulty, SNK_ASK_RENEW, TEST_WORKS);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self.status, SNECK_OK);
    assert_true(self.token > token);
    sneck_lock_free(self.lock);
    sneck_lock_free(held);
    return ended;
}

static void test_a_waiter_starts_without_asking(void **state)
{
    test_place *here = *state;
    sneck_error error;
    sneck_client *from = NULL;
    sneck_client *to = NULL;
    EXPECT(SNECK_OK, sneck_open(here->url, NULL, &from, &error));
    EXPECT(SNECK_OK, sneck_open(here->url, NULL, &to, &error));
    test_faulty *faulty = test_make_faulty(to);
    /* One that was woken late has to ask, so on a machine that is busy elsewhere a few may. */
    bool started = false;
    for (int round = 0; round < 20 && !started; round++)
        started = hands_over_while_nothing_can_be_asked(from, to, faulty);
    assert_true(started);
    sneck_close(to);
    sneck_close(from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_AT_PLACE(test_a_release_says_what_it_granted),
        TEST_AT_PLACE(test_what_is_granted_because_a_holder_died_is_said_to_the_next_only),
        TEST_AT_PLACE(test_nothing_is_said_about_what_was_not_committed),
        TEST_AT_PLACE(test_a_note_that_was_written_half_is_none),
        TEST_AT_PLACE(test_a_note_of_a_file_that_was_replaced_is_none),
        TEST_AT_PLACE(test_a_note_is_read_whole_or_not_at_all),
        TEST_AT_PLACE(test_a_waiter_starts_without_asking),
    };
    return cmocka_run_group_tests_name("embedded store and its grants", tests, NULL, NULL);
}
