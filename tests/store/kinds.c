/* What every store must do with what is not held alone (store/grip.h), against every store that can. */
#include "base/error.h"
#include "store_bed.h"

static const snk_grip alone = { .mode = SNK_MODE_EXCLUSIVE };
static const snk_grip shared = { .mode = SNK_MODE_SHARED };
static const snk_grip on_latch = { .object = SNK_OBJECT_LATCH, .mode = SNK_MODE_PASS };
static const snk_grip on_condition = { .object = SNK_OBJECT_CONDITION, .mode = SNK_MODE_TAKE, .units = 1 };

static snk_grip permits(uint32_t units)
{
    return (snk_grip){ .mode = SNK_MODE_PERMIT, .units = units };
}

static snk_grip takes(uint32_t units)
{
    return (snk_grip){ .mode = SNK_MODE_TAKE, .units = units };
}

/* A new claim that asks and, unless it gets what it wants, waits. */
static snk_answer ask(snk_store *store, const char *name, snk_grip grip, snk_id *claim_out)
{
    *claim_out = test_id();
    return test_acquire(
        store, name, claim_out,
        (test_ask){ .lease_ms = TEST_LEASE_MS, .tokens = 1, .queue = true, .fair = store_bed_is_fair(), .grip = grip });
}

static snk_id must_hold(snk_store *store, const char *name, snk_grip grip)
{
    snk_id claim;
    expect(ask(store, name, grip, &claim), SNK_ANSWER_HELD);
    return claim;
}

static snk_id must_queue(snk_store *store, const char *name, snk_grip grip)
{
    snk_id claim;
    expect(ask(store, name, grip, &claim), SNK_ANSWER_QUEUED);
    return claim;
}

static void must_be_busy(snk_store *store, const char *name, snk_grip grip)
{
    snk_id claim = test_id();
    expect(test_acquire(store, name, &claim, (test_ask){ .lease_ms = TEST_LEASE_MS, .tokens = 1, .grip = grip }),
           SNK_ANSWER_BUSY);
}

static void release(snk_store *store, const char *name, const snk_id *claim, snk_grip grip)
{
    expect(test_release_as(store, name, claim, grip, true), SNK_ANSWER_DONE);
}

static snk_tallied tally(snk_store *store, snk_object object, snk_tally_verb verb, int64_t value)
{
    snk_tally asked = { .object = object, .verb = verb, .name = "x", .value = value, .id = test_id() };
    snk_tallied tallied = { 0 };
    sneck_error error;
    if (store->ops->tally(store, &asked, &tallied, &error) != SNECK_OK)
        fail_msg("tally: %s", error.message);
    return tallied;
}

static snk_tallied set_permits(snk_store *store, int64_t count)
{
    return tally(store, SNK_OBJECT_LOCK, SNK_TALLY_SET, count);
}

static int64_t used(snk_store *store)
{
    return tally(store, SNK_OBJECT_LOCK, SNK_TALLY_READ, 0).used;
}

static int64_t count(snk_store *store, snk_object object)
{
    return tally(store, object, SNK_TALLY_READ, 0).count;
}

/* ---- Mutexes ---------------------------------------------------------------------------------------------------- */

static void test_a_mutex_goes_from_one_to_the_next_in_order(void **state)
{
    clients *world = *state;
    store_bed_needs_order(world);
    snk_id first = must_hold(world->a, "x", alone);
    must_be_busy(world->b, "x", alone);
    snk_id second = must_queue(world->b, "x", alone);
    snk_id third = must_queue(world->c, "x", alone);
    release(world->a, "x", &first, alone);
    expect(test_renew_as(world->c, "x", &third, alone), SNK_ANSWER_QUEUED);
    expect(test_renew_as(world->b, "x", &second, alone), SNK_ANSWER_HELD);
    release(world->b, "x", &second, alone);
    expect(test_renew_as(world->c, "x", &third, alone), SNK_ANSWER_HELD);
}

static void test_a_mutex_of_the_dead_goes_to_the_next(void **state)
{
    clients *world = *state;
    if (store_bed_is_fair())
        store_bed_needs_order(world);
    snk_id dies = test_id();
    expect(test_acquire(world->a, "x", &dies, (test_ask){ .lease_ms = 500, .tokens = 1, .grip = alone }),
           SNK_ANSWER_HELD);
    snk_id next = must_queue(world->b, "x", alone);
    int64_t limit_ns = snk_now_ns() + 20 * SNK_NS_PER_S;
    snk_answer answer = test_renew_as(world->b, "x", &next, alone);
    while (answer.kind == SNK_ANSWER_QUEUED && snk_now_ns() < limit_ns)
        answer = test_renew_as(world->b, "x", &next, alone);
    test_expect_kind(&answer, SNK_ANSWER_HELD);
    expect(test_renew_as(world->a, "x", &dies, alone), SNK_ANSWER_GONE);
}

/* ---- Readers and writers ---------------------------------------------------------------------------------------- */

static void test_readers_share_and_a_writer_waits_for_all_of_them(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_SHARED);
    snk_id first = must_hold(world->a, "x", shared);
    snk_id second = must_hold(world->b, "x", shared);
    must_be_busy(world->c, "x", alone);
    snk_id writer = must_queue(world->c, "x", alone);
    release(world->a, "x", &first, shared);
    expect(test_renew_as(world->c, "x", &writer, alone), SNK_ANSWER_QUEUED);
    release(world->b, "x", &second, shared);
    expect(test_renew_as(world->c, "x", &writer, alone), SNK_ANSWER_HELD);
}

static void test_two_readers_of_one_client_hold_each_for_itself(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_SHARED);
    snk_id first = must_hold(world->a, "x", shared);
    snk_id second = must_hold(world->a, "x", shared);
    release(world->a, "x", &first, shared);
    expect(test_renew_as(world->a, "x", &first, shared), SNK_ANSWER_GONE);
    expect(test_renew_as(world->a, "x", &second, shared), SNK_ANSWER_HELD);
    must_be_busy(world->b, "x", alone);
}

static void test_a_writer_keeps_readers_out(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_SHARED);
    snk_id writer = must_hold(world->a, "x", alone);
    must_be_busy(world->b, "x", shared);
    snk_id first = must_queue(world->b, "x", shared);
    snk_id second = must_queue(world->c, "x", shared);
    release(world->a, "x", &writer, alone);
    expect(test_renew_as(world->c, "x", &second, shared), SNK_ANSWER_HELD);
    expect(test_renew_as(world->b, "x", &first, shared), SNK_ANSWER_HELD);
}

static void test_a_waiting_writer_stops_new_readers(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_SHARED);
    snk_id reader = must_hold(world->a, "x", shared);
    snk_id writer = must_queue(world->b, "x", alone);
    must_be_busy(world->c, "x", shared);
    snk_id late = must_queue(world->c, "x", shared);
    release(world->a, "x", &reader, shared);
    expect(test_renew_as(world->c, "x", &late, shared), SNK_ANSWER_QUEUED);
    expect(test_renew_as(world->b, "x", &writer, alone), SNK_ANSWER_HELD);
    release(world->b, "x", &writer, alone);
    expect(test_renew_as(world->c, "x", &late, shared), SNK_ANSWER_HELD);
}

static void test_a_writer_that_gives_up_lets_the_readers_behind_it_in(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_SHARED);
    (void)must_hold(world->a, "x", shared);
    snk_id writer = must_queue(world->b, "x", alone);
    snk_id late = must_queue(world->c, "x", shared);
    expect(test_release_as(world->b, "x", &writer, alone, false), SNK_ANSWER_DONE);
    expect(test_renew_as(world->c, "x", &late, shared), SNK_ANSWER_HELD);
}

static void test_a_writer_becomes_a_reader_without_a_gap(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_SHARED);
    snk_id writer = must_hold(world->a, "x", alone);
    snk_id rival = must_queue(world->b, "x", alone);
    snk_id behind = must_queue(world->c, "x", shared);
    snk_grip downgrade = shared;
    downgrade.beside = writer;
    snk_id reader = must_hold(world->a, "x", downgrade);
    release(world->a, "x", &writer, alone);
    expect(test_renew_as(world->b, "x", &rival, alone), SNK_ANSWER_QUEUED);
    expect(test_release_as(world->b, "x", &rival, alone, false), SNK_ANSWER_DONE);
    expect(test_renew_as(world->c, "x", &behind, shared), SNK_ANSWER_HELD);
    expect(test_renew_as(world->a, "x", &reader, shared), SNK_ANSWER_HELD);
}

static void test_nobody_stands_beside_a_hold_that_is_not_there(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_SHARED);
    (void)must_hold(world->a, "x", alone);
    snk_grip liar = shared;
    liar.beside = test_id();
    must_be_busy(world->b, "x", liar);
}

static void test_each_reader_has_a_lease_of_its_own(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_SHARED);
    snk_id dies = test_id();
    expect(test_acquire(world->a, "x", &dies, (test_ask){ .lease_ms = 500, .tokens = 1, .grip = shared }),
           SNK_ANSWER_HELD);
    snk_id lives = must_hold(world->b, "x", shared);
    snk_id writer = must_queue(world->c, "x", alone);
    int64_t limit_ns = snk_now_ns() + 20 * SNK_NS_PER_S;
    snk_answer answer = test_renew_as(world->b, "x", &lives, shared);
    snk_view *view = inspect(world->d, "x");
    while (view->info.holder_count > 1 && snk_now_ns() < limit_ns) {
        snk_view_free(view);
        answer = test_renew_as(world->b, "x", &lives, shared); /* this one's renewals keep nobody else alive */
        test_expect_kind(&answer, SNK_ANSWER_HELD);
        view = inspect(world->d, "x");
    }
    assert_int_equal(view->info.holder_count, 1);
    snk_view_free(view);
    expect(test_renew_as(world->a, "x", &dies, shared), SNK_ANSWER_GONE);
    release(world->b, "x", &lives, shared);
    expect(test_renew_as(world->c, "x", &writer, alone), SNK_ANSWER_HELD);
}

/* The holder has died; those who wait come before one that comes only now, though nobody has asked for them yet. */
static void test_whoever_comes_after_the_death_of_a_writer_stays_behind_the_readers(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_SHARED);
    snk_id dies = test_id();
    expect(test_acquire(world->a, "x", &dies, (test_ask){ .lease_ms = 500, .tokens = 1, .why = "dies" }),
           SNK_ANSWER_HELD);
    snk_id reader = must_queue(world->b, "x", shared);
    await_end(world->d, "x", "dies");
    must_be_busy(world->c, "x", alone);
    expect(test_renew_as(world->b, "x", &reader, shared), SNK_ANSWER_HELD);
}

/* What a change of the count finds due is not granted twice over. */
static void test_a_writer_that_is_due_keeps_permits_out_when_their_number_changes(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_PERMIT);
    snk_id dies = test_id();
    expect(test_acquire(world->a, "x", &dies, (test_ask){ .lease_ms = 500, .tokens = 1, .why = "dies" }),
           SNK_ANSWER_HELD);
    snk_id writer = must_queue(world->b, "x", alone);
    snk_id behind = must_queue(world->c, "x", permits(1));
    await_end(world->d, "x", "dies");
    (void)set_permits(world->d, 2);
    expect(test_renew_as(world->b, "x", &writer, alone), SNK_ANSWER_HELD);
    expect(test_renew_as(world->c, "x", &behind, permits(1)), SNK_ANSWER_QUEUED);
}

static void test_a_readers_token_is_the_epoch_of_the_last_writer(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_SHARED);
    snk_id writer = test_id();
    snk_answer wrote = test_acquire(world->a, "x", &writer, TEST_TRY);
    test_expect_kind(&wrote, SNK_ANSWER_HELD);
    release(world->a, "x", &writer, alone);
    snk_id claims[2];
    snk_answer first = ask(world->b, "x", shared, &claims[0]);
    snk_answer second = ask(world->c, "x", shared, &claims[1]);
    assert_true(first.token_first == wrote.token_last && second.token_first == wrote.token_last);
    release(world->b, "x", &claims[0], shared);
    release(world->c, "x", &claims[1], shared);
    snk_id next = test_id();
    snk_answer again = test_acquire(world->a, "x", &next, TEST_TRY);
    assert_true(again.token_first > first.token_last);
}

static void test_a_reader_of_a_new_lock_has_a_token(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_SHARED);
    snk_id claim;
    snk_answer answer = ask(world->a, "x", shared, &claim);
    test_expect_kind(&answer, SNK_ANSWER_HELD);
    assert_true(answer.token_first > 0);
}

static void test_inspect_shows_all_readers(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_SHARED);
    (void)must_hold(world->a, "x", shared);
    (void)must_hold(world->b, "x", shared);
    (void)must_queue(world->c, "x", alone);
    snk_view *view = inspect(world->d, "x");
    assert_true(view->info.held);
    assert_int_equal(view->info.holder_count, 2);
    assert_string_equal(view->info.holders[0].mode, "shared");
    assert_string_equal(view->info.holders[1].mode, "shared");
    assert_string_not_equal(view->info.holders[0].owner, view->info.holders[1].owner);
    assert_int_equal(view->info.waiter_count, 1);
    assert_string_equal(view->info.waiters[0].mode, "exclusive");
    snk_view_free(view);
}

static void test_a_break_ends_all_readers_of_the_epoch(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_SHARED);
    snk_id first = must_hold(world->a, "x", shared);
    snk_id second = must_hold(world->b, "x", shared);
    snk_view *view = inspect(world->d, "x");
    sneck_error error;
    assert_int_equal(world->d->ops->break_hold(world->d, "x", view->info.token, "test", &error), SNECK_OK);
    snk_view_free(view);
    expect(test_renew_as(world->a, "x", &first, shared), SNK_ANSWER_GONE);
    expect(test_renew_as(world->b, "x", &second, shared), SNK_ANSWER_GONE);
    (void)must_hold(world->c, "x", alone);
}

static void test_a_reader_that_comes_after_its_release_is_refused(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_SHARED);
    snk_id claim = test_id();
    expect(test_release_unanswered(world->a, "x", &claim), SNK_ANSWER_GONE);
    expect(test_acquire(world->a, "x", &claim, (test_ask){ .lease_ms = TEST_LEASE_MS, .tokens = 1, .grip = shared }),
           SNK_ANSWER_GONE);
    (void)must_hold(world->b, "x", alone);
}

/* ---- Permits ---------------------------------------------------------------------------------------------------- */

static void test_a_semaphore_without_permits_gives_none(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_PERMIT);
    must_be_busy(world->a, "x", permits(1));
    assert_int_equal(count(world->a, SNK_OBJECT_LOCK), -1);
    snk_id waiter = must_queue(world->a, "x", permits(1));
    assert_true(set_permits(world->b, 1).done);
    expect(test_renew_as(world->a, "x", &waiter, permits(1)), SNK_ANSWER_HELD);
}

static void test_permits_are_given_out_up_to_their_number(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_PERMIT);
    (void)set_permits(world->a, 5);
    snk_id two = must_hold(world->a, "x", permits(2));
    (void)must_hold(world->b, "x", permits(3));
    assert_int_equal(used(world->c), 5);
    must_be_busy(world->c, "x", permits(1));
    snk_id waiter = must_queue(world->c, "x", permits(2));
    release(world->a, "x", &two, permits(2));
    snk_answer answer = test_renew_as(world->c, "x", &waiter, permits(2));
    test_expect_kind(&answer, SNK_ANSWER_HELD);
    assert_int_equal(answer.units, 2);
    assert_int_equal(used(world->d), 5);
}

static void test_whoever_wants_many_is_not_overtaken(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_PERMIT);
    (void)set_permits(world->a, 3);
    snk_id held = must_hold(world->a, "x", permits(2));
    snk_id many = must_queue(world->b, "x", permits(3));
    must_be_busy(world->c, "x", permits(1));
    snk_id few = must_queue(world->c, "x", permits(1));
    release(world->a, "x", &held, permits(2));
    expect(test_renew_as(world->c, "x", &few, permits(1)), SNK_ANSWER_QUEUED);
    expect(test_renew_as(world->b, "x", &many, permits(3)), SNK_ANSWER_HELD);
}

static void test_one_release_serves_as_many_as_fit(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_PERMIT);
    (void)set_permits(world->a, 3);
    snk_id held = must_hold(world->a, "x", permits(3));
    snk_id waiters[4];
    for (size_t i = 0; i < 4; i++)
        waiters[i] = must_queue(world->b, "x", permits(1));
    release(world->a, "x", &held, permits(3));
    for (size_t i = 0; i < 3; i++)
        expect(test_renew_as(world->b, "x", &waiters[i], permits(1)), SNK_ANSWER_HELD);
    expect(test_renew_as(world->b, "x", &waiters[3], permits(1)), SNK_ANSWER_QUEUED);
}

static void test_a_permit_is_given_back_at_most_once(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_PERMIT);
    (void)set_permits(world->a, 2);
    snk_id claim = must_hold(world->a, "x", permits(2));
    release(world->a, "x", &claim, permits(2));
    expect(test_release_as(world->a, "x", &claim, permits(2), true), SNK_ANSWER_GONE);
    assert_int_equal(used(world->a), 0);
    assert_int_equal(count(world->a, SNK_OBJECT_LOCK), 2);
}

static void test_permits_of_the_dead_come_back(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_PERMIT);
    (void)set_permits(world->a, 1);
    snk_id dies = test_id();
    expect(test_acquire(world->a, "x", &dies, (test_ask){ .lease_ms = 500, .tokens = 1, .grip = permits(1) }),
           SNK_ANSWER_HELD);
    await_free(world->b, "x");
    assert_int_equal(used(world->b), 0);
    (void)must_hold(world->b, "x", permits(1));
    expect(test_renew_as(world->a, "x", &dies, permits(1)), SNK_ANSWER_GONE);
}

static void test_fewer_permits_take_none_away(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_PERMIT);
    (void)set_permits(world->a, 3);
    snk_id claims[3];
    for (size_t i = 0; i < 3; i++)
        claims[i] = must_hold(world->a, "x", permits(1));
    snk_tallied tallied = set_permits(world->b, 1);
    assert_int_equal(tallied.count, 1);
    assert_int_equal(tallied.used, 3);
    release(world->a, "x", &claims[0], permits(1));
    release(world->a, "x", &claims[1], permits(1));
    must_be_busy(world->b, "x", permits(1));
    release(world->a, "x", &claims[2], permits(1));
    (void)must_hold(world->b, "x", permits(1));
}

static void test_more_permits_serve_those_who_wait(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_PERMIT);
    (void)set_permits(world->a, 1);
    (void)must_hold(world->a, "x", permits(1));
    snk_id first = must_queue(world->b, "x", permits(1));
    snk_id second = must_queue(world->c, "x", permits(1));
    (void)set_permits(world->d, 3);
    expect(test_renew_as(world->b, "x", &first, permits(1)), SNK_ANSWER_HELD);
    expect(test_renew_as(world->c, "x", &second, permits(1)), SNK_ANSWER_HELD);
}

static void test_a_drain_takes_what_is_left(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_PERMIT);
    (void)set_permits(world->a, 5);
    (void)must_hold(world->a, "x", permits(2));
    snk_id claim;
    snk_answer answer = ask(world->b, "x", permits(0), &claim);
    test_expect_kind(&answer, SNK_ANSWER_HELD);
    assert_int_equal(answer.units, 3);
    must_be_busy(world->c, "x", permits(0));
    release(world->b, "x", &claim, permits(0));
    assert_int_equal(used(world->c), 2);
}

static void test_tokens_of_permits_rise(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_PERMIT);
    (void)set_permits(world->a, 100);
    uint64_t last = 0;
    for (int i = 0; i < 10; i++) {
        snk_id claim;
        snk_answer answer = ask(world->a, "x", permits(1), &claim);
        assert_true(answer.token_first > last);
        last = answer.token_last;
    }
}

/* ---- Counts that are taken -------------------------------------------------------------------------------------- */

static void test_what_is_taken_is_gone_for_good(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_TAKE);
    (void)set_permits(world->a, 3);
    snk_id claim = must_hold(world->a, "x", takes(2));
    assert_int_equal(count(world->b, SNK_OBJECT_LOCK), 1);
    release(world->a, "x", &claim, takes(2));
    assert_int_equal(count(world->b, SNK_OBJECT_LOCK), 1);
    must_be_busy(world->b, "x", takes(2));
    snk_id waiter = must_queue(world->b, "x", takes(2));
    snk_tallied tallied = tally(world->c, SNK_OBJECT_LOCK, SNK_TALLY_ADD, 1);
    assert_int_equal(tallied.count, 0);
    expect(test_renew_as(world->b, "x", &waiter, takes(2)), SNK_ANSWER_HELD);
}

static void test_what_was_taken_and_not_used_comes_back(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_TAKE);
    (void)set_permits(world->a, 2);
    snk_id claim = must_hold(world->a, "x", takes(2));
    expect(test_release_as(world->a, "x", &claim, takes(2), false), SNK_ANSWER_DONE);
    assert_int_equal(count(world->b, SNK_OBJECT_LOCK), 2);
}

static void test_what_a_dead_one_took_goes_to_the_next(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_TAKE);
    (void)set_permits(world->a, 1);
    snk_id dies = test_id();
    expect(test_acquire(world->a, "x", &dies, (test_ask){ .lease_ms = 500, .tokens = 1, .grip = takes(1) }),
           SNK_ANSWER_HELD);
    snk_id next = must_queue(world->b, "x", takes(1));
    int64_t limit_ns = snk_now_ns() + 20 * SNK_NS_PER_S;
    snk_answer answer = test_renew_as(world->b, "x", &next, takes(1));
    while (answer.kind == SNK_ANSWER_QUEUED && snk_now_ns() < limit_ns)
        answer = test_renew_as(world->b, "x", &next, takes(1));
    test_expect_kind(&answer, SNK_ANSWER_HELD);
}

/* ---- Latches ---------------------------------------------------------------------------------------------------- */

static void test_a_latch_is_set_once_per_generation(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_PASS);
    assert_int_equal(count(world->a, SNK_OBJECT_LATCH), 0);
    assert_true(tally(world->a, SNK_OBJECT_LATCH, SNK_TALLY_SET_IF_ZERO, 1).done);
    assert_false(tally(world->b, SNK_OBJECT_LATCH, SNK_TALLY_SET_IF_ZERO, 5).done);
    assert_int_equal(count(world->b, SNK_OBJECT_LATCH), 1);
    assert_true(tally(world->b, SNK_OBJECT_LATCH, SNK_TALLY_DOWN, 1).done);
    assert_true(tally(world->b, SNK_OBJECT_LATCH, SNK_TALLY_SET_IF_ZERO, 5).done);
    assert_int_equal(count(world->a, SNK_OBJECT_LATCH), 5);
}

static void test_a_repeated_count_down_counts_once(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_PASS);
    (void)tally(world->a, SNK_OBJECT_LATCH, SNK_TALLY_SET_IF_ZERO, 3);
    snk_tally down = { .object = SNK_OBJECT_LATCH, .verb = SNK_TALLY_DOWN, .name = "x", .value = 1, .id = test_id() };
    snk_tallied tallied;
    sneck_error error;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(world->a->ops->tally(world->a, &down, &tallied, &error), SNECK_OK);
        assert_int_equal(tallied.count, 2);
        assert_int_equal(tallied.done, i == 0);
    }
}

static void test_a_latch_never_falls_below_zero(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_PASS);
    assert_false(tally(world->a, SNK_OBJECT_LATCH, SNK_TALLY_DOWN, 1).done);
    assert_int_equal(count(world->a, SNK_OBJECT_LATCH), 0);
}

static void test_all_go_on_when_the_latch_is_at_zero(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_PASS);
    (void)tally(world->a, SNK_OBJECT_LATCH, SNK_TALLY_SET_IF_ZERO, 2);
    snk_id first = must_queue(world->b, "x", on_latch);
    snk_id second = must_queue(world->c, "x", on_latch);
    (void)tally(world->a, SNK_OBJECT_LATCH, SNK_TALLY_DOWN, 1);
    expect(test_renew_as(world->b, "x", &first, on_latch), SNK_ANSWER_QUEUED);
    (void)tally(world->a, SNK_OBJECT_LATCH, SNK_TALLY_DOWN, 1);
    expect(test_renew_as(world->b, "x", &first, on_latch), SNK_ANSWER_HELD);
    expect(test_renew_as(world->c, "x", &second, on_latch), SNK_ANSWER_HELD);
    (void)must_hold(world->d, "x", on_latch);
}

static void test_latches_and_locks_have_names_of_their_own(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_PASS);
    (void)must_hold(world->a, "x", alone);
    (void)tally(world->a, SNK_OBJECT_LATCH, SNK_TALLY_SET_IF_ZERO, 1);
    (void)must_queue(world->b, "x", on_latch);
    (void)must_queue(world->b, "x", on_condition);
    snk_view *view = inspect(world->c, "x");
    assert_int_equal(view->info.waiter_count, 0);
    assert_int_equal(view->info.holder_count, 1);
    snk_view_free(view);
}

/* ---- Conditions ------------------------------------------------------------------------------------------------- */

static void test_a_signal_wakes_the_one_who_waited_longest(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_TAKE);
    snk_id first = must_queue(world->a, "x", on_condition);
    snk_id second = must_queue(world->b, "x", on_condition);
    assert_true(tally(world->c, SNK_OBJECT_CONDITION, SNK_TALLY_SIGNAL, 1).done);
    expect(test_renew_as(world->a, "x", &first, on_condition), SNK_ANSWER_HELD);
    expect(test_renew_as(world->b, "x", &second, on_condition), SNK_ANSWER_QUEUED);
}

static void test_a_broadcast_wakes_all(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_TAKE);
    snk_id first = must_queue(world->a, "x", on_condition);
    snk_id second = must_queue(world->b, "x", on_condition);
    (void)tally(world->c, SNK_OBJECT_CONDITION, SNK_TALLY_SIGNAL, INT32_MAX);
    expect(test_renew_as(world->a, "x", &first, on_condition), SNK_ANSWER_HELD);
    expect(test_renew_as(world->b, "x", &second, on_condition), SNK_ANSWER_HELD);
    (void)must_queue(world->d, "x", on_condition);
}

static void test_a_signal_without_a_waiter_is_not_kept(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_TAKE);
    assert_false(tally(world->a, SNK_OBJECT_CONDITION, SNK_TALLY_SIGNAL, 1).done);
    (void)must_queue(world->a, "x", on_condition);
}

static void test_a_signal_that_was_not_used_goes_to_the_next(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_TAKE);
    snk_id first = must_queue(world->a, "x", on_condition);
    snk_id second = must_queue(world->b, "x", on_condition);
    (void)tally(world->c, SNK_OBJECT_CONDITION, SNK_TALLY_SIGNAL, 1);
    expect(test_release_as(world->a, "x", &first, on_condition, false), SNK_ANSWER_DONE);
    expect(test_renew_as(world->b, "x", &second, on_condition), SNK_ANSWER_HELD);
    release(world->b, "x", &second, on_condition);
    (void)must_queue(world->d, "x", on_condition);
}

static void test_a_signal_that_nobody_is_left_for_is_over(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_TAKE);
    snk_id only = must_queue(world->a, "x", on_condition);
    (void)tally(world->c, SNK_OBJECT_CONDITION, SNK_TALLY_SIGNAL, 1);
    expect(test_release_as(world->a, "x", &only, on_condition, false), SNK_ANSWER_DONE);
    (void)must_queue(world->b, "x", on_condition);
}

static void test_a_signal_is_not_lost_to_a_waiter_that_died(void **state)
{
    clients *world = *state;
    store_bed_needs(world, SNK_MODE_TAKE);
    snk_id dies = test_id();
    expect(test_acquire(world->a, "x", &dies,
                        (test_ask){ .lease_ms = 500, .tokens = 1, .queue = true, .grip = on_condition }),
           SNK_ANSWER_QUEUED);
    snk_id lives = must_queue(world->b, "x", on_condition);
    (void)tally(world->c, SNK_OBJECT_CONDITION, SNK_TALLY_SIGNAL, 1);
    int64_t limit_ns = snk_now_ns() + 20 * SNK_NS_PER_S;
    snk_answer answer = test_renew_as(world->b, "x", &lives, on_condition);
    while (answer.kind == SNK_ANSWER_QUEUED && snk_now_ns() < limit_ns)
        answer = test_renew_as(world->b, "x", &lives, on_condition);
    test_expect_kind(&answer, SNK_ANSWER_HELD);
}

/* ---- Versions --------------------------------------------------------------------------------------------------- */

static void test_a_version_is_raised_by_who_expected_it(void **state)
{
    clients *world = *state;
    if (!world->a->traits.keeps_versions)
        test_skip("SNECK_UNSUPPORTED: this store keeps no versions");
    sneck_error error;
    uint64_t version = 7;
    assert_int_equal(world->a->ops->version(world->a, "x", NULL, &version, &error), SNECK_OK);
    assert_true(version == 0);
    uint64_t last = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t expected = last;
        assert_int_equal(world->b->ops->version(world->b, "x", &expected, &version, &error), SNECK_OK);
        assert_true(version > last);
        last = version;
        uint64_t stale = expected;
        assert_int_equal(world->a->ops->version(world->a, "x", &stale, &version, &error), SNECK_CONFLICT);
        assert_true(version == last);
    }
    assert_int_equal(world->c->ops->version(world->c, "x", NULL, &version, &error), SNECK_OK);
    assert_true(version == last);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_mutex_goes_from_one_to_the_next_in_order),
        cmocka_unit_test(test_a_mutex_of_the_dead_goes_to_the_next),
        cmocka_unit_test(test_readers_share_and_a_writer_waits_for_all_of_them),
        cmocka_unit_test(test_two_readers_of_one_client_hold_each_for_itself),
        cmocka_unit_test(test_a_writer_keeps_readers_out),
        cmocka_unit_test(test_a_waiting_writer_stops_new_readers),
        cmocka_unit_test(test_a_writer_that_gives_up_lets_the_readers_behind_it_in),
        cmocka_unit_test(test_a_writer_becomes_a_reader_without_a_gap),
        cmocka_unit_test(test_nobody_stands_beside_a_hold_that_is_not_there),
        cmocka_unit_test(test_each_reader_has_a_lease_of_its_own),
        cmocka_unit_test(test_whoever_comes_after_the_death_of_a_writer_stays_behind_the_readers),
        cmocka_unit_test(test_a_writer_that_is_due_keeps_permits_out_when_their_number_changes),
        cmocka_unit_test(test_a_readers_token_is_the_epoch_of_the_last_writer),
        cmocka_unit_test(test_a_reader_of_a_new_lock_has_a_token),
        cmocka_unit_test(test_inspect_shows_all_readers),
        cmocka_unit_test(test_a_break_ends_all_readers_of_the_epoch),
        cmocka_unit_test(test_a_reader_that_comes_after_its_release_is_refused),
        cmocka_unit_test(test_a_semaphore_without_permits_gives_none),
        cmocka_unit_test(test_permits_are_given_out_up_to_their_number),
        cmocka_unit_test(test_whoever_wants_many_is_not_overtaken),
        cmocka_unit_test(test_one_release_serves_as_many_as_fit),
        cmocka_unit_test(test_a_permit_is_given_back_at_most_once),
        cmocka_unit_test(test_permits_of_the_dead_come_back),
        cmocka_unit_test(test_fewer_permits_take_none_away),
        cmocka_unit_test(test_more_permits_serve_those_who_wait),
        cmocka_unit_test(test_a_drain_takes_what_is_left),
        cmocka_unit_test(test_tokens_of_permits_rise),
        cmocka_unit_test(test_what_is_taken_is_gone_for_good),
        cmocka_unit_test(test_what_was_taken_and_not_used_comes_back),
        cmocka_unit_test(test_what_a_dead_one_took_goes_to_the_next),
        cmocka_unit_test(test_a_latch_is_set_once_per_generation),
        cmocka_unit_test(test_a_repeated_count_down_counts_once),
        cmocka_unit_test(test_a_latch_never_falls_below_zero),
        cmocka_unit_test(test_all_go_on_when_the_latch_is_at_zero),
        cmocka_unit_test(test_latches_and_locks_have_names_of_their_own),
        cmocka_unit_test(test_a_signal_wakes_the_one_who_waited_longest),
        cmocka_unit_test(test_a_broadcast_wakes_all),
        cmocka_unit_test(test_a_signal_without_a_waiter_is_not_kept),
        cmocka_unit_test(test_a_signal_that_was_not_used_goes_to_the_next),
        cmocka_unit_test(test_a_signal_that_nobody_is_left_for_is_over),
        cmocka_unit_test(test_a_signal_is_not_lost_to_a_waiter_that_died),
        cmocka_unit_test(test_a_version_is_raised_by_who_expected_it),
    };
    return store_bed_run_fair_too("store kinds", tests, sizeof tests / sizeof tests[0]);
}
