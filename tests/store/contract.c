/* What every store must do with locks (store/store.h), against every store. */
#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "base/futex.h"
#include "store_bed.h"

#define MS SNK_NS_PER_MS
/* A lease that is to end: long enough for what must happen before, on a slow store. */
#define SOON_MS 500

/* ---- acquire ---------------------------------------------------------------------------------------------------- */

static void test_a_free_lock_is_granted_for_the_full_lease(void **state)
{
    clients *world = *state;
    snk_id claim = test_id();
    expect(test_acquire(world->a, "x", &claim, TEST_TRY), SNK_ANSWER_HELD);
    int64_t remaining = remaining_ms(world->b, "x");
    assert_in_range(remaining, TEST_LEASE_MS / 3, TEST_LEASE_MS);
}

static void test_a_held_lock_is_busy_and_nothing_is_registered(void **state)
{
    clients *world = *state;
    snk_id holder = test_must_hold(world->a, "x");
    snk_id claim = test_id();
    expect(test_acquire(world->b, "x", &claim, TEST_TRY), SNK_ANSWER_BUSY);
    expect(test_renew(world->b, "x", &claim, TEST_LEASE_MS), SNK_ANSWER_GONE);
    expect(test_release(world->a, "x", &holder), SNK_ANSWER_DONE);
    expect(test_acquire(world->c, "x", &claim, TEST_TRY), SNK_ANSWER_HELD);
}

static void test_one_client_cannot_hold_a_lock_twice(void **state)
{
    clients *world = *state;
    (void)test_must_hold(world->a, "x");
    snk_id claim = test_id();
    expect(test_acquire(world->a, "x", &claim, TEST_TRY), SNK_ANSWER_BUSY);
}

static void test_locks_of_other_names_are_other_locks(void **state)
{
    clients *world = *state;
    static const char *const names[] = { "x", "X", "x ", "x/y", "lock:x", "'", "\"; --", "%", "_", "\xC3\xA4", "x*" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)test_must_hold(world->a, names[i]);
    char longest[513];
    memset(longest, 'n', sizeof longest - 1);
    longest[512] = '\0';
    (void)test_must_hold(world->a, longest);
    longest[511] = 'm';
    (void)test_must_hold(world->a, longest);
}

static void test_a_queued_claim_gets_a_ticket_and_a_time_to_look(void **state)
{
    clients *world = *state;
    (void)test_must_hold(world->a, "x");
    snk_answer answer;
    (void)test_must_queue(world->b, "x", &answer);
    assert_true(answer.ticket != 0);
    assert_in_range(answer.look_after_ns, 1, TEST_LEASE_MS * MS);
}

static void test_a_waiter_is_told_to_look_when_the_hold_ends(void **state)
{
    clients *world = *state;
    store_bed_warm_up(world);
    snk_id holder = test_id();
    expect(test_acquire(world->a, "x", &holder, (test_ask){ .lease_ms = 500 }), SNK_ANSWER_HELD);
    snk_answer answer;
    (void)test_must_queue(world->b, "x", &answer);
    assert_in_range(answer.look_after_ns, 1, 510 * MS);
}

static void test_newcomers_do_not_overtake_the_queue(void **state)
{
    clients *world = *state;
    store_bed_needs_order(world);
    store_bed_warm_up(world);
    snk_id holder = test_id();
    expect(test_acquire(world->a, "x", &holder, (test_ask){ .lease_ms = 500, .why = "ends" }), SNK_ANSWER_HELD);
    snk_id waiter = test_must_queue(world->b, "x", NULL);
    await_end(world->d, "x", "ends");
    snk_id newcomer = test_id();
    expect(test_acquire(world->c, "x", &newcomer, TEST_TRY), SNK_ANSWER_BUSY);
    expect(test_renew(world->b, "x", &waiter, TEST_LEASE_MS), SNK_ANSWER_HELD);
}

/* ---- renew ------------------------------------------------------------------------------------------------------ */

static void test_a_renew_sets_the_full_lease(void **state)
{
    clients *world = *state;
    snk_id claim = test_id();
    expect(test_acquire(world->a, "x", &claim, (test_ask){ .lease_ms = TEST_LEASE_MS / 6 }), SNK_ANSWER_HELD);
    expect(test_renew(world->a, "x", &claim, TEST_LONG_MS), SNK_ANSWER_HELD);
    assert_in_range(remaining_ms(world->a, "x"), TEST_LONG_MS * 2 / 3, TEST_LONG_MS);
}

static void test_a_renew_never_shortens(void **state)
{
    clients *world = *state;
    snk_id claim = test_id();
    expect(test_acquire(world->a, "x", &claim, (test_ask){ .lease_ms = TEST_LONG_MS }), SNK_ANSWER_HELD);
    expect(test_renew(world->a, "x", &claim, 1000), SNK_ANSWER_HELD);
    assert_in_range(remaining_ms(world->a, "x"), TEST_LONG_MS * 2 / 3, TEST_LONG_MS);
}

static void test_a_renew_never_registers_an_unknown_claim(void **state)
{
    clients *world = *state;
    snk_id claim = test_id();
    expect(test_renew(world->a, "x", &claim, TEST_LEASE_MS), SNK_ANSWER_GONE);
    assert_int_equal(remaining_ms(world->a, "x"), 0);
    (void)test_must_hold(world->b, "x");
    expect(test_renew(world->a, "x", &claim, TEST_LEASE_MS), SNK_ANSWER_GONE);
    snk_view *view = inspect(world->a, "x");
    assert_int_equal(view->info.waiter_count, 0);
    snk_view_free(view);
}

static void test_a_renew_refreshes_a_waiting_claim(void **state)
{
    clients *world = *state;
    store_bed_needs_order(world);
    snk_id holder = test_must_hold(world->a, "x");
    snk_id waiter = test_id();
    snk_answer answer = test_acquire(world->b, "x", &waiter, (test_ask){ .lease_ms = 5000, .queue = true });
    test_expect_kind(&answer, SNK_ANSWER_QUEUED);
    answer = test_renew(world->b, "x", &waiter, TEST_LONG_MS);
    test_expect_kind(&answer, SNK_ANSWER_QUEUED);
    assert_true(answer.ticket != 0);
    snk_view *view = inspect(world->a, "x");
    assert_int_equal(view->info.waiter_count, 1);
    assert_in_range(view->info.waiters[0].remaining_ms, TEST_LONG_MS * 2 / 3, TEST_LONG_MS);
    snk_view_free(view);
    expect(test_release(world->a, "x", &holder), SNK_ANSWER_DONE);
    expect(test_renew(world->b, "x", &waiter, TEST_LEASE_MS), SNK_ANSWER_HELD);
}

static void test_a_hold_whose_lease_has_ended_is_gone_for_good(void **state)
{
    clients *world = *state;
    snk_id claim = test_id();
    expect(test_acquire(world->a, "x", &claim, (test_ask){ .lease_ms = SOON_MS }), SNK_ANSWER_HELD);
    await_free(world->b, "x");
    expect(test_renew(world->a, "x", &claim, TEST_LEASE_MS), SNK_ANSWER_GONE);
    expect(test_release(world->a, "x", &claim), SNK_ANSWER_GONE);
    (void)test_must_hold(world->b, "x");
    snk_view *view = inspect(world->b, "x");
    /* Nodes of a quorum do not know whether a vote was a hold, so they do not note that. */
    assert_int_equal(view->info.incident_count, world->a->traits.keeps_no_order ? 0 : 1);
    if (!world->a->traits.keeps_no_order) {
        /* There a hold lives in a session, which the server may end first. */
        bool in_session = strstr(world->a->ops->scheme, "mode=row") != NULL;
        const char *kind = view->info.incidents[0].kind;
        assert_true(strcmp(kind, "expired") == 0 || (in_session && strcmp(kind, "died") == 0));
    }
    snk_view_free(view);
}

static void test_a_renew_of_a_waiting_claim_takes_over_an_ended_hold(void **state)
{
    clients *world = *state;
    store_bed_warm_up(world);
    snk_id holder = test_id();
    expect(test_acquire(world->a, "x", &holder, (test_ask){ .lease_ms = 500, .why = "ends" }), SNK_ANSWER_HELD);
    snk_id waiter = test_must_queue(world->b, "x", NULL);
    await_end(world->c, "x", "ends");
    expect(test_renew(world->b, "x", &waiter, TEST_LEASE_MS), SNK_ANSWER_HELD);
    assert_in_range(remaining_ms(world->c, "x"), TEST_LEASE_MS / 3, TEST_LEASE_MS);
}

static void count_done(snk_call *call)
{
    (*(int *)call->context)++;
}

static void test_many_claims_are_renewed_at_once(void **state)
{
    clients *world = *state;
    snk_id held = test_must_hold(world->a, "held");
    (void)test_must_hold(world->b, "waited");
    snk_id queued = test_must_queue(world->a, "waited", NULL);
    snk_id unknown = test_id();
    snk_claim claims[] = {
        { .name = "held", .send = { .ask = SNK_ASK_RENEW, .claim = held, .lease_ns = 1000 * MS } },
        { .name = "waited", .send = { .ask = SNK_ASK_RENEW, .claim = queued, .lease_ns = 1000 * MS } },
        { .name = "unknown", .send = { .ask = SNK_ASK_RENEW, .claim = unknown, .lease_ns = 1000 * MS } },
    };
    snk_answer answers[3];
    int done = 0;
    snk_call call = { .claims = claims, .answers = answers, .count = 3, .done = count_done, .context = &done };
    snk_store_submit(world->a, &call);
    assert_int_equal(done, 1); /* both stores answer before submit returns */
    test_expect_kind(&answers[0], SNK_ANSWER_HELD);
    test_expect_kind(&answers[1], SNK_ANSWER_QUEUED);
    test_expect_kind(&answers[2], SNK_ANSWER_GONE);
}

/* ---- release, queue and offers ---------------------------------------------------------------------------------- */

static void test_a_release_frees_the_lock(void **state)
{
    clients *world = *state;
    snk_id claim = test_must_hold(world->a, "x");
    expect(test_release(world->a, "x", &claim), SNK_ANSWER_DONE);
    expect(test_release(world->a, "x", &claim), SNK_ANSWER_GONE);
    expect(test_renew(world->a, "x", &claim, TEST_LEASE_MS), SNK_ANSWER_GONE);
    (void)test_must_hold(world->b, "x");
}

static void test_a_release_never_touches_another_claim(void **state)
{
    clients *world = *state;
    snk_id holder = test_must_hold(world->a, "x");
    snk_id waiter = test_must_queue(world->b, "x", NULL);
    snk_id stranger = test_id();
    expect(test_release(world->a, "x", &stranger), SNK_ANSWER_GONE);
    expect(test_release_unanswered(world->a, "x", &stranger), SNK_ANSWER_GONE);
    expect(test_release(world->a, "y", &holder), SNK_ANSWER_GONE);
    expect(test_renew(world->a, "x", &holder, TEST_LEASE_MS), SNK_ANSWER_HELD);
    expect(test_renew(world->b, "x", &waiter, TEST_LEASE_MS), SNK_ANSWER_QUEUED);
}

static void test_anybody_who_knows_a_claim_may_release_it(void **state)
{
    clients *world = *state;
    snk_id claim = test_must_hold(world->a, "x");
    expect(test_release(world->b, "x", &claim), SNK_ANSWER_DONE);
    expect(test_renew(world->a, "x", &claim, TEST_LEASE_MS), SNK_ANSWER_GONE);
}

static void test_a_release_hands_the_lock_to_the_first_waiter_in_the_same_step(void **state)
{
    clients *world = *state;
    store_bed_needs_order(world);
    snk_id holder = test_must_hold(world->a, "x");
    snk_id first = test_must_queue(world->b, "x", NULL);
    snk_id second = test_must_queue(world->c, "x", NULL);
    expect(test_release(world->a, "x", &holder), SNK_ANSWER_DONE);
    snk_view *view = inspect(world->d, "x");
    assert_true(view->info.held);
    assert_int_equal(view->info.waiter_count, 1);
    assert_in_range(view->info.holder.remaining_ms, 1, SNK_OFFER_NS / MS); /* an offer, until the first renew */
    snk_view_free(view);
    snk_id newcomer = test_id();
    expect(test_acquire(world->d, "x", &newcomer, TEST_TRY), SNK_ANSWER_BUSY);
    expect(test_renew(world->c, "x", &second, TEST_LEASE_MS), SNK_ANSWER_QUEUED);
    expect(test_renew(world->b, "x", &first, TEST_LEASE_MS), SNK_ANSWER_HELD);
    assert_in_range(remaining_ms(world->d, "x"), TEST_LEASE_MS / 3, TEST_LEASE_MS);
}

static void test_waiters_are_served_in_the_order_they_came(void **state)
{
    clients *world = *state;
    store_bed_needs_order(world);
    snk_store *stores[] = { world->b, world->c, world->d, world->b, world->c, world->d, world->a };
    enum {
        COUNT = sizeof stores / sizeof stores[0]
    };
    snk_id holder = test_must_hold(world->a, "x");
    snk_store *holder_store = world->a;
    snk_id waiters[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        waiters[i] = test_must_queue(stores[i], "x", NULL);
    for (size_t i = 0; i < COUNT; i++) {
        expect(test_release(holder_store, "x", &holder), SNK_ANSWER_DONE);
        for (size_t other = i + 1; other < COUNT; other++)
            expect(test_renew(stores[other], "x", &waiters[other], TEST_LEASE_MS), SNK_ANSWER_QUEUED);
        expect(test_renew(stores[i], "x", &waiters[i], TEST_LEASE_MS), SNK_ANSWER_HELD);
        holder = waiters[i];
        holder_store = stores[i];
    }
}

static void test_a_released_waiter_leaves_the_queue(void **state)
{
    clients *world = *state;
    snk_id holder = test_must_hold(world->a, "x");
    snk_id first = test_must_queue(world->b, "x", NULL);
    snk_id second = test_must_queue(world->c, "x", NULL);
    expect(test_release(world->b, "x", &first), SNK_ANSWER_DONE);
    expect(test_renew(world->b, "x", &first, TEST_LEASE_MS), SNK_ANSWER_GONE);
    expect(test_release(world->a, "x", &holder), SNK_ANSWER_DONE);
    expect(test_renew(world->c, "x", &second, TEST_LEASE_MS), SNK_ANSWER_HELD);
}

static void test_a_waiter_whose_lease_has_ended_is_passed_over(void **state)
{
    clients *world = *state;
    store_bed_needs_order(world);
    snk_id holder = test_must_hold(world->a, "x");
    snk_id first = test_id();
    expect(test_acquire(world->b, "x", &first, (test_ask){ .lease_ms = SOON_MS, .queue = true }), SNK_ANSWER_QUEUED);
    snk_id second = test_must_queue(world->c, "x", NULL);
    await_waiters(world->d, "x", 1);
    expect(test_release(world->a, "x", &holder), SNK_ANSWER_DONE);
    expect(test_renew(world->c, "x", &second, TEST_LEASE_MS), SNK_ANSWER_HELD);
    expect(test_renew(world->b, "x", &first, TEST_LEASE_MS), SNK_ANSWER_GONE);
}

static void test_an_offer_that_nobody_takes_lapses_with_its_lease(void **state)
{
    clients *world = *state;
    store_bed_needs_order(world);
    snk_id holder = test_must_hold(world->a, "x");
    snk_id first = test_id();
    expect(test_acquire(world->b, "x", &first, (test_ask){ .lease_ms = 300, .queue = true, .why = "lapses" }),
           SNK_ANSWER_QUEUED);
    snk_id second = test_must_queue(world->c, "x", NULL);
    expect(test_release(world->a, "x", &holder), SNK_ANSWER_DONE);
    assert_in_range(remaining_ms(world->d, "x"), 0, 300);
    await_end(world->d, "x", "lapses");
    expect(test_renew(world->c, "x", &second, TEST_LEASE_MS), SNK_ANSWER_HELD);
    expect(test_renew(world->b, "x", &first, TEST_LEASE_MS), SNK_ANSWER_GONE);
}

static void test_an_offer_never_outlives_its_limit(void **state)
{
    clients *world = *state;
    store_bed_needs_order(world);
    snk_id holder = test_must_hold(world->a, "x");
    snk_id waiter = test_must_queue(world->b, "x", NULL);
    expect(test_release(world->a, "x", &holder), SNK_ANSWER_DONE);
    await_free(world->d, "x");
    expect(test_renew(world->b, "x", &waiter, TEST_LEASE_MS), SNK_ANSWER_GONE);
    (void)test_must_hold(world->c, "x");
}

static void test_an_offer_may_be_given_back_unseen(void **state)
{
    clients *world = *state;
    store_bed_needs_order(world);
    snk_id holder = test_must_hold(world->a, "x");
    snk_id first = test_must_queue(world->b, "x", NULL);
    snk_id second = test_must_queue(world->c, "x", NULL);
    expect(test_release(world->a, "x", &holder), SNK_ANSWER_DONE);
    expect(test_release(world->b, "x", &first), SNK_ANSWER_DONE);
    expect(test_renew(world->c, "x", &second, TEST_LEASE_MS), SNK_ANSWER_HELD);
}

/* ---- tombstones ------------------------------------------------------------------------------------------------- */

static void test_an_acquire_that_comes_after_its_release_is_refused(void **state)
{
    clients *world = *state;
    snk_id claim = test_id();
    expect(test_release_unanswered(world->a, "x", &claim), SNK_ANSWER_GONE);
    expect(test_acquire(world->a, "x", &claim, TEST_QUEUE), SNK_ANSWER_GONE);
    (void)test_must_hold(world->b, "x");
    expect(test_acquire(world->a, "x", &claim, TEST_QUEUE), SNK_ANSWER_GONE);
    snk_view *view = inspect(world->a, "x");
    assert_int_equal(view->info.waiter_count, 0);
    snk_view_free(view);
}

static void test_an_unanswered_release_of_a_hold_also_leaves_a_tombstone(void **state)
{
    clients *world = *state;
    snk_id claim = test_must_hold(world->a, "x");
    expect(test_release_unanswered(world->a, "x", &claim), SNK_ANSWER_DONE);
    expect(test_acquire(world->a, "x", &claim, TEST_TRY), SNK_ANSWER_GONE);
    (void)test_must_hold(world->b, "x");
}

static void test_an_unanswered_release_of_a_waiter_also_leaves_a_tombstone(void **state)
{
    clients *world = *state;
    snk_id holder = test_must_hold(world->a, "x");
    snk_id waiter = test_must_queue(world->b, "x", NULL);
    expect(test_release_unanswered(world->b, "x", &waiter), SNK_ANSWER_DONE);
    expect(test_acquire(world->b, "x", &waiter, TEST_QUEUE), SNK_ANSWER_GONE);
    expect(test_release(world->a, "x", &holder), SNK_ANSWER_DONE);
    (void)test_must_hold(world->c, "x");
}

static void test_an_acquire_that_comes_after_its_release_is_refused_though_others_wait(void **state)
{
    clients *world = *state;
    (void)test_must_hold(world->a, "x");
    (void)test_must_queue(world->b, "x", NULL);
    snk_id claim = test_id();
    expect(test_release_unanswered(world->c, "x", &claim), SNK_ANSWER_GONE);
    expect(test_acquire(world->c, "x", &claim, TEST_QUEUE), SNK_ANSWER_GONE);
    expect(test_acquire(world->c, "x", &claim, TEST_TRY), SNK_ANSWER_GONE);
}

static void test_a_tombstone_is_for_one_claim(void **state)
{
    clients *world = *state;
    for (int i = 0; i < 20; i++) {
        snk_id claim = test_id();
        expect(test_release_unanswered(world->a, "x", &claim), SNK_ANSWER_GONE);
    }
    (void)test_must_hold(world->a, "x");
}

/* ---- tokens ----------------------------------------------------------------------------------------------------- */

static void test_each_grant_has_higher_tokens_than_all_before(void **state)
{
    clients *world = *state;
    snk_store *stores[] = { world->a, world->b, world->c };
    uint64_t highest = 0;
    for (uint32_t i = 0; i < 300; i++) {
        snk_store *store = stores[i % 3];
        snk_id claim = test_id();
        snk_answer answer = test_acquire(store, "x", &claim, (test_ask){ .lease_ms = TEST_LEASE_MS, .tokens = i % 50 });
        test_expect_kind(&answer, SNK_ANSWER_HELD);
        assert_true(answer.token_first > highest);
        assert_true(answer.token_last >= answer.token_first);
        assert_true(answer.token_last - answer.token_first + 1 <= (i % 50 == 0 ? 1 : i % 50));
        highest = answer.token_last;
        expect(test_release(store, "x", &claim), SNK_ANSWER_DONE);
    }
}

static void test_tokens_start_at_the_clock(void **state)
{
    clients *world = *state;
    if (world->a->traits.tokens != SNK_TOKEN_TIME_FLOORED || !world->a->traits.token_blocks)
        test_skip("the tokens of this store do not come from a clock");
    int64_t before_us = snk_wall_us();
    snk_id claim = test_id();
    snk_answer answer = test_acquire(world->a, "x", &claim, TEST_TRY);
    assert_true(answer.token_first >= (uint64_t)before_us);
    assert_true(answer.token_last <= (uint64_t)snk_wall_us());
}

static void needs_blocks(const clients *world)
{
    if (!world->a->traits.token_blocks)
        test_skip("this store gives a token at a time");
}

static void test_a_block_is_as_large_as_asked(void **state)
{
    clients *world = *state;
    needs_blocks(world);
    snk_id claim = test_id();
    snk_answer answer = test_acquire(world->a, "x", &claim, (test_ask){ .lease_ms = TEST_LEASE_MS, .tokens = 40 });
    assert_int_equal(answer.token_last - answer.token_first + 1, 40);
    claim = test_id();
    answer = test_acquire(world->a, "y", &claim, (test_ask){ .lease_ms = TEST_LEASE_MS, .tokens = 100000 });
    assert_int_equal(answer.token_last - answer.token_first + 1, SNK_TOKEN_BLOCK_MAX);
}

static void test_blocks_never_run_far_ahead_of_the_clock(void **state)
{
    clients *world = *state;
    needs_blocks(world);
    uint64_t singles = 0;
    for (int i = 0; i < 200; i++) {
        snk_id claim = test_id();
        snk_answer answer =
            test_acquire(world->a, "x", &claim, (test_ask){ .lease_ms = TEST_LEASE_MS, .tokens = SNK_TOKEN_BLOCK_MAX });
        test_expect_kind(&answer, SNK_ANSWER_HELD);
        singles += answer.token_first == answer.token_last;
        assert_true(answer.token_last <= (uint64_t)snk_wall_us() + 1000 + singles);
        expect(test_release(world->a, "x", &claim), SNK_ANSWER_DONE);
    }
}

static void test_a_renew_answers_with_the_same_tokens(void **state)
{
    clients *world = *state;
    snk_id claim = test_id();
    snk_answer granted = test_acquire(world->a, "x", &claim, (test_ask){ .lease_ms = TEST_LEASE_MS, .tokens = 10 });
    snk_answer renewed = test_renew(world->a, "x", &claim, TEST_LEASE_MS);
    assert_true(renewed.token_first == granted.token_first && renewed.token_last == granted.token_last);
}

static void test_an_offer_comes_with_the_tokens_that_the_waiter_asked_for(void **state)
{
    clients *world = *state;
    store_bed_needs_order(world);
    snk_id holder = test_must_hold(world->a, "x");
    snk_view *view = inspect(world->a, "x");
    uint64_t before = view->info.token;
    snk_view_free(view);
    snk_id waiter = test_id();
    expect(test_acquire(world->b, "x", &waiter, (test_ask){ .lease_ms = TEST_LEASE_MS, .tokens = 5, .queue = true }),
           SNK_ANSWER_QUEUED);
    expect(test_release(world->a, "x", &holder), SNK_ANSWER_DONE);
    snk_answer answer = test_renew(world->b, "x", &waiter, TEST_LEASE_MS);
    test_expect_kind(&answer, SNK_ANSWER_HELD);
    assert_true(answer.token_first > before);
    assert_int_equal(answer.token_last - answer.token_first + 1, world->b->traits.token_blocks ? 5 : 1);
}

/* ---- inspect, list, break --------------------------------------------------------------------------------------- */

static void test_a_name_that_nobody_used_is_free(void **state)
{
    clients *world = *state;
    snk_view *view = inspect(world->a, "never");
    assert_string_equal(view->info.name, "never");
    assert_false(view->info.held);
    assert_int_equal(view->info.token, 0);
    assert_int_equal(view->info.waiter_count, 0);
    snk_view_free(view);
}

static void test_inspect_shows_who_holds_and_who_waits(void **state)
{
    clients *world = *state;
    store_bed_needs_order(world);
    snk_id claim = test_id();
    snk_answer held = test_acquire(
        world->a, "x", &claim, (test_ask){ .lease_ms = TEST_LEASE_MS, .tokens = 3, .fair = true, .why = "because" });
    snk_id waiter = test_id();
    expect(test_acquire(world->b, "x", &waiter, (test_ask){ .lease_ms = 50000, .queue = true, .why = "first" }),
           SNK_ANSWER_QUEUED);
    expect(test_acquire(world->c, "x", &(snk_id){ { 1 } },
                        (test_ask){ .lease_ms = 50000, .queue = true, .why = "second" }),
           SNK_ANSWER_QUEUED);
    snk_view *view = inspect(world->d, "x");
    const sneck_info *info = &view->info;
    assert_true(info->held && info->fair);
    assert_true(info->token == held.token_first);
    assert_string_equal(info->holder.why, "because");
    assert_string_equal(info->holder.host, "testhost");
    assert_int_equal(strlen(info->holder.owner), 38);
    assert_string_equal(info->holder.owner + 36, ":7");
    assert_true(info->holder.pid > 1);
    assert_in_range(info->holder.age_ms, 0, 20000);
    assert_int_equal(info->waiter_count, 2);
    assert_string_equal(info->waiters[0].why, "first");
    assert_string_equal(info->waiters[1].why, "second");
    assert_in_range(info->waiters[0].remaining_ms, 30000, 50000);
    assert_true(strncmp(info->waiters[0].owner, info->holder.owner, 36) != 0);
    snk_view_free(view);
    expect(test_release(world->a, "x", &claim), SNK_ANSWER_DONE);
    expect(test_release(world->a, "x", &waiter), SNK_ANSWER_DONE);
    expect(test_release(world->a, "x", &(snk_id){ { 1 } }), SNK_ANSWER_DONE);
    view = inspect(world->d, "x");
    assert_false(view->info.held);
    assert_true(view->info.token > held.token_last); /* the last that was given out */
    snk_view_free(view);
}

typedef struct listing {
    char names[256];
    unsigned limit;
} listing;

static bool note_name(void *context, const snk_view *view)
{
    listing *list = context;
    size_t length = strlen(list->names);
    (void)snprintf(list->names + length, sizeof list->names - length, "%s;", view->info.name);
    return --list->limit > 0;
}

static void expect_list(snk_store *store, const char *pattern, unsigned limit, const char *expected)
{
    listing list = { .limit = limit };
    sneck_error error;
    assert_int_equal(store->ops->list(store, pattern, note_name, &list, &error), SNECK_OK);
    assert_string_equal(list.names, expected);
}

static void test_list_shows_what_is_in_use_in_the_order_of_names(void **state)
{
    clients *world = *state;
    expect_list(world->a, NULL, 100, "");
    (void)test_must_hold(world->a, "shop/b");
    (void)test_must_hold(world->b, "shop/a");
    snk_id freed = test_must_hold(world->a, "shop/c");
    (void)test_must_hold(world->c, "b\xC3\xBCro");
    expect(test_release(world->a, "shop/c", &freed), SNK_ANSWER_DONE);
    expect_list(world->a, NULL, 100, "b\xC3\xBCro;shop/a;shop/b;");
    expect_list(world->a, "*", 2, "b\xC3\xBCro;shop/a;");
    expect_list(world->a, "shop/*", 100, "shop/a;shop/b;");
    expect_list(world->a, "*b", 100, "shop/b;");
    expect_list(world->a, "b?ro", 100, "b\xC3\xBCro;");
    expect_list(world->a, "shop/[!a]", 100, "shop/b;");
    expect_list(world->a, "shop", 100, "");
}

static bool ask_back(void *context, const snk_view *view)
{
    snk_store *store = context;
    snk_view *again = inspect(store, view->info.name);
    assert_true(again->info.held);
    snk_view_free(again);
    return true;
}

static void test_the_callback_of_a_list_may_use_the_store(void **state)
{
    clients *world = *state;
    (void)test_must_hold(world->a, "x");
    (void)test_must_hold(world->a, "y");
    assert_int_equal(world->a->ops->list(world->a, NULL, ask_back, world->a, NULL), SNECK_OK);
}

static void test_break_needs_the_token_that_inspect_shows(void **state)
{
    clients *world = *state;
    sneck_error error;
    snk_store *other = world->b;
    assert_int_equal(other->ops->break_hold(other, "x", 1, "test", &error), SNECK_CONFLICT);
    snk_id claim = test_id();
    snk_answer held = test_acquire(world->a, "x", &claim, (test_ask){ .lease_ms = TEST_LEASE_MS, .tokens = 2 });
    if (held.token_last != held.token_first)
        assert_int_equal(other->ops->break_hold(other, "x", held.token_last, "test", &error), SNECK_CONFLICT);
    assert_int_equal(other->ops->break_hold(other, "x", held.token_last + 1, "test", &error), SNECK_CONFLICT);
    assert_int_equal(other->ops->break_hold(other, "x", held.token_first - 1, "test", &error), SNECK_CONFLICT);
    expect(test_renew(world->a, "x", &claim, TEST_LEASE_MS), SNK_ANSWER_HELD);
    assert_int_equal(other->ops->break_hold(other, "x", held.token_first, "stuck since noon", &error), SNECK_OK);
    expect(test_renew(world->a, "x", &claim, TEST_LEASE_MS), SNK_ANSWER_GONE);
    assert_int_equal(other->ops->break_hold(other, "x", held.token_first, "test", &error), SNECK_CONFLICT);
    snk_view *view = inspect(world->a, "x");
    assert_int_equal(view->info.incident_count, 1);
    const sneck_incident *incident = &view->info.incidents[0];
    assert_string_equal(incident->kind, "broken");
    assert_non_null(strstr(incident->text, "stuck since noon"));
    assert_true(incident->token == held.token_first);
    assert_int_equal(strlen(incident->owner), 38);
    assert_in_range(incident->time_ms, snk_wall_us() / 1000 - 20000, snk_wall_us() / 1000);
    snk_view_free(view);
    claim = test_id();
    snk_answer next = test_acquire(world->c, "x", &claim, TEST_TRY);
    assert_true(next.token_first > held.token_last);
}

static void test_a_broken_lock_goes_to_the_first_waiter(void **state)
{
    clients *world = *state;
    snk_id claim = test_id();
    snk_answer held = test_acquire(world->a, "x", &claim, TEST_TRY);
    snk_id waiter = test_must_queue(world->b, "x", NULL);
    assert_int_equal(world->c->ops->break_hold(world->c, "x", held.token_first, "test", NULL), SNECK_OK);
    expect(test_renew(world->b, "x", &waiter, TEST_LEASE_MS), SNK_ANSWER_HELD);
    expect(test_renew(world->a, "x", &claim, TEST_LEASE_MS), SNK_ANSWER_GONE);
}

static void test_the_last_32_incidents_are_kept(void **state)
{
    clients *world = *state;
    uint64_t last = 0;
    for (int i = 0; i < 40; i++) {
        snk_id claim = test_id();
        last = test_acquire(world->a, "x", &claim, TEST_TRY).token_first;
        assert_int_equal(world->a->ops->break_hold(world->a, "x", last, "test", NULL), SNECK_OK);
    }
    snk_view *view = inspect(world->a, "x");
    assert_int_equal(view->info.incident_count, SNK_INCIDENTS_MAX);
    assert_true(view->info.incidents[SNK_INCIDENTS_MAX - 1].token == last);
    assert_true(view->info.incidents[0].token < last);
    snk_view_free(view);
}

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

typedef struct sleeper {
    snk_store *store;
    uint64_t ticket;
    _Atomic uint32_t word;
    int64_t limit_ms;
    bool news;
} sleeper;

static void *sleep_in_store(void *context)
{
    sleeper *sleeping = context;
    sleeping->news = sleeping->store->ops->wait(sleeping->store, sleeping->ticket, &sleeping->word, 0,
                                                snk_now_ns() + sleeping->limit_ms * MS);
    return NULL;
}

static void test_a_sleeper_is_woken_by_its_grant(void **state)
{
    clients *world = *state;
    for (unsigned i = 0; i < test_scaled(1000); i++) {
        snk_answer answer;
        snk_id holder = test_must_hold(world->a, "x");
        snk_id waiter = test_must_queue(world->b, "x", &answer);
        sleeper sleeping = { .store = world->b, .ticket = answer.ticket, .limit_ms = 60000 };
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, sleep_in_store, &sleeping), 0);
        expect(test_release(world->a, "x", &holder), SNK_ANSWER_DONE);
        int64_t before_ns = snk_now_ns();
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(sleeping.news);
        assert_true(snk_now_ns() - before_ns < 30 * SNK_NS_PER_S);
        expect(test_renew(world->b, "x", &waiter, TEST_LEASE_MS), SNK_ANSWER_HELD);
        expect(test_release(world->b, "x", &waiter), SNK_ANSWER_DONE);
    }
}

static void test_a_grant_before_the_sleep_is_not_slept_over(void **state)
{
    clients *world = *state;
    snk_answer answer;
    snk_id holder = test_must_hold(world->a, "x");
    (void)test_must_queue(world->b, "x", &answer);
    expect(test_release(world->a, "x", &holder), SNK_ANSWER_DONE);
    sleeper sleeping = { .store = world->b, .ticket = answer.ticket, .limit_ms = 60000 };
    (void)sleep_in_store(&sleeping);
    assert_true(sleeping.news);
}

static void test_a_sleeper_without_a_ticket_is_woken_by_any_grant_of_its_client(void **state)
{
    clients *world = *state;
    for (unsigned i = 0; i < test_scaled(1000); i++) {
        snk_id holder = test_must_hold(world->a, "x");
        snk_id waiter = test_must_queue(world->b, "x", NULL);
        sleeper sleeping = { .store = world->b, .ticket = 0, .limit_ms = 60000 };
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, sleep_in_store, &sleeping), 0);
        expect(test_release(world->a, "x", &holder), SNK_ANSWER_DONE);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(sleeping.news);
        expect(test_release(world->b, "x", &waiter), SNK_ANSWER_DONE);
    }
}

/*
 * Waits for a held lock until the store has nothing more to say: what may have been missed before it was listened to
 * counts as news. Fills the tickets of its last look, and of any claim.
 */
static void queue_in_silence(snk_store *store, const char *name, uint64_t tickets_out[2])
{
    snk_answer answer;
    snk_id claim = test_must_queue(store, name, &answer);
    /* Longer than it takes to begin to listen, which is told. */
    sleeper sleeping = { .store = store, .ticket = answer.ticket, .limit_ms = 200 };
    for (sleep_in_store(&sleeping); sleeping.news && store->traits.pushes_wakeups; sleep_in_store(&sleeping)) {
        answer = test_renew(store, name, &claim, TEST_LEASE_MS);
        expect(answer, SNK_ANSWER_QUEUED);
        sleeping.ticket = answer.ticket;
    }
    (void)store->ops->wait(store, 0, &sleeping.word, 0, snk_now_ns());
    tickets_out[0] = answer.ticket;
    tickets_out[1] = 0;
}

static void test_a_sleeper_is_woken_by_its_own_word(void **state)
{
    clients *world = *state;
    uint64_t tickets[2];
    (void)test_must_hold(world->a, "x");
    queue_in_silence(world->b, "x", tickets);
    for (size_t i = 0; i < 2; i++) {
        sleeper sleeping = { .store = world->b, .ticket = tickets[i], .limit_ms = 60000 };
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, sleep_in_store, &sleeping), 0);
        atomic_store(&sleeping.word, 1);
        snk_futex_wake(&sleeping.word, 1, false);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_false(sleeping.news);
    }
}

static void test_a_sleep_ends_at_its_limit(void **state)
{
    clients *world = *state;
    uint64_t tickets[2];
    (void)test_must_hold(world->a, "x");
    queue_in_silence(world->b, "x", tickets);
    for (size_t i = 0; i < 2; i++) {
        sleeper sleeping = { .store = world->b, .ticket = tickets[i], .limit_ms = 20 };
        int64_t before_ns = snk_now_ns();
        (void)sleep_in_store(&sleeping);
        if (sleeping.news && !world->b->traits.pushes_wakeups)
            continue; /* nobody is told there, and it was time to look */
        assert_false(sleeping.news);
        assert_true(snk_now_ns() - before_ns >= 19 * MS);
    }
}

static void test_a_sleeper_can_be_cancelled(void **state)
{
    clients *world = *state;
    uint64_t tickets[2];
    (void)test_must_hold(world->a, "x");
    queue_in_silence(world->b, "x", tickets);
    for (size_t i = 0; i < 2; i++) {
        sleeper sleeping = { .store = world->b, .ticket = tickets[i], .limit_ms = 60000 };
        pthread_t thread;
        void *result = NULL;
        assert_int_equal(pthread_create(&thread, NULL, sleep_in_store, &sleeping), 0);
        assert_int_equal(pthread_cancel(thread), 0);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_ptr_equal(result, PTHREAD_CANCELED);
    }
}

/* ---- all at once ------------------------------------------------------------------------------------------------- */

typedef struct race {
    snk_store *store;
    int64_t *counter;  /* plain: only the lock keeps it sound */
    uint64_t *highest; /* token seen by the resource */
    unsigned rounds;
    unsigned lower; /* tokens that came too late */
} race;

static void *run_race(void *context)
{
    race *racing = context;
    for (unsigned i = 0; i < racing->rounds; i++) {
        snk_id claim = test_id();
        snk_answer answer = test_take(racing->store, "race", &claim, TEST_LEASE_MS);
        int64_t value = *racing->counter;
        if (answer.token_first <= *racing->highest)
            racing->lower++;
        *racing->highest = answer.token_first;
        *racing->counter = value + 1;
        (void)test_release(racing->store, "race", &claim);
    }
    return NULL;
}

static void test_eight_threads_of_four_clients_exclude_each_other(void **state)
{
    clients *world = *state;
    enum {
        THREADS = 8
    };
    snk_store *stores[] = { world->a, world->b, world->c, world->d };
    pthread_t threads[THREADS];
    race races[THREADS];
    int64_t counter = 0;
    uint64_t highest = 0;
    unsigned rounds = test_scaled(2000);
    for (size_t i = 0; i < THREADS; i++) {
        races[i] = (race){ .store = stores[i % 4], .counter = &counter, .highest = &highest, .rounds = rounds };
        assert_int_equal(pthread_create(&threads[i], NULL, run_race, &races[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(races[i].lower, 0);
    }
    assert_int_equal(counter, (int64_t)rounds * THREADS);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_free_lock_is_granted_for_the_full_lease),
        cmocka_unit_test(test_a_held_lock_is_busy_and_nothing_is_registered),
        cmocka_unit_test(test_one_client_cannot_hold_a_lock_twice),
        cmocka_unit_test(test_locks_of_other_names_are_other_locks),
        cmocka_unit_test(test_a_queued_claim_gets_a_ticket_and_a_time_to_look),
        cmocka_unit_test(test_a_waiter_is_told_to_look_when_the_hold_ends),
        cmocka_unit_test(test_newcomers_do_not_overtake_the_queue),
        cmocka_unit_test(test_a_renew_sets_the_full_lease),
        cmocka_unit_test(test_a_renew_never_shortens),
        cmocka_unit_test(test_a_renew_never_registers_an_unknown_claim),
        cmocka_unit_test(test_a_renew_refreshes_a_waiting_claim),
        cmocka_unit_test(test_a_hold_whose_lease_has_ended_is_gone_for_good),
        cmocka_unit_test(test_a_renew_of_a_waiting_claim_takes_over_an_ended_hold),
        cmocka_unit_test(test_many_claims_are_renewed_at_once),
        cmocka_unit_test(test_a_release_frees_the_lock),
        cmocka_unit_test(test_a_release_never_touches_another_claim),
        cmocka_unit_test(test_anybody_who_knows_a_claim_may_release_it),
        cmocka_unit_test(test_a_release_hands_the_lock_to_the_first_waiter_in_the_same_step),
        cmocka_unit_test(test_waiters_are_served_in_the_order_they_came),
        cmocka_unit_test(test_a_released_waiter_leaves_the_queue),
        cmocka_unit_test(test_a_waiter_whose_lease_has_ended_is_passed_over),
        cmocka_unit_test(test_an_offer_that_nobody_takes_lapses_with_its_lease),
        cmocka_unit_test(test_an_offer_never_outlives_its_limit),
        cmocka_unit_test(test_an_offer_may_be_given_back_unseen),
        cmocka_unit_test(test_an_acquire_that_comes_after_its_release_is_refused),
        cmocka_unit_test(test_an_unanswered_release_of_a_hold_also_leaves_a_tombstone),
        cmocka_unit_test(test_an_unanswered_release_of_a_waiter_also_leaves_a_tombstone),
        cmocka_unit_test(test_an_acquire_that_comes_after_its_release_is_refused_though_others_wait),
        cmocka_unit_test(test_a_tombstone_is_for_one_claim),
        cmocka_unit_test(test_each_grant_has_higher_tokens_than_all_before),
        cmocka_unit_test(test_tokens_start_at_the_clock),
        cmocka_unit_test(test_a_block_is_as_large_as_asked),
        cmocka_unit_test(test_blocks_never_run_far_ahead_of_the_clock),
        cmocka_unit_test(test_a_renew_answers_with_the_same_tokens),
        cmocka_unit_test(test_an_offer_comes_with_the_tokens_that_the_waiter_asked_for),
        cmocka_unit_test(test_a_name_that_nobody_used_is_free),
        cmocka_unit_test(test_inspect_shows_who_holds_and_who_waits),
        cmocka_unit_test(test_list_shows_what_is_in_use_in_the_order_of_names),
        cmocka_unit_test(test_the_callback_of_a_list_may_use_the_store),
        cmocka_unit_test(test_break_needs_the_token_that_inspect_shows),
        cmocka_unit_test(test_a_broken_lock_goes_to_the_first_waiter),
        cmocka_unit_test(test_the_last_32_incidents_are_kept),
        cmocka_unit_test(test_a_sleeper_is_woken_by_its_grant),
        cmocka_unit_test(test_a_grant_before_the_sleep_is_not_slept_over),
        cmocka_unit_test(test_a_sleeper_without_a_ticket_is_woken_by_any_grant_of_its_client),
        cmocka_unit_test(test_a_sleeper_is_woken_by_its_own_word),
        cmocka_unit_test(test_a_sleep_ends_at_its_limit),
        cmocka_unit_test(test_a_sleeper_can_be_cancelled),
        cmocka_unit_test(test_eight_threads_of_four_clients_exclude_each_other),
    };
    return store_bed_run("store contract", tests, sizeof tests / sizeof tests[0]);
}
