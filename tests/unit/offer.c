/* Grants that the store announces: when a waiter starts with one, and when it asks first. */
#include "machine_world.h"

#define RUN UINT64_C(77)
#define LIFE_NS SNK_OFFER_NS
#define CONFIRM_NS (LIFE_NS / SNK_CONFIRM_DIVISOR)

static void reply_queued(world *w, snk_send send, uint64_t run)
{
    reply_with(w, send, (snk_answer){ .kind = SNK_ANSWER_QUEUED, .run = run });
}

/* Owner waits in the store's queue, as the server of RUN says. */
static void wait_in_queue(world *w, snk_waiter *waiter)
{
    ask(w, waiter);
    reply_queued(w, only_send(w, SNK_ASK_ACQUIRE), RUN);
}

static void hear(world *w, snk_grant grant)
{
    step(w, (snk_event){ .kind = SNK_EVENT_NEWS, .claim = grant.claim, .grant = &grant });
}

static snk_grant grant_to(const snk_waiter *waiter)
{
    return (snk_grant){ .claim = waiter->seek.claim, .token_first = 500, .token_last = 503, .run = RUN };
}

static void assert_started(world *w, const snk_waiter *waiter, int64_t since_ns)
{
    assert_decided(waiter, SNECK_OK);
    assert_int_equal(w->actions.send_count, 0);
    assert_true(was_woken(w, waiter));
    assert_true(snk_deadline_peek(&w->machine.deadline) == snk_deadline_of(since_ns, LIFE_NS));
}

static void assert_asks_first(const world *w, const snk_waiter *waiter)
{
    assert_false(waiter->decided);
    (void)only_send(w, SNK_ASK_RENEW);
}

static void test_a_waiter_starts_with_what_it_was_granted(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    wait_in_queue(w, &waiter);
    int64_t since_ns = w->now_ns;
    w->now_ns += 300 * MS;
    hear(w, grant_to(&waiter));
    assert_started(w, &waiter, since_ns);
    assert_int_equal(waiter.token, 500);
    assert_int_equal(w->machine.hold->token_last, 503);
    assert_true(w->machine.timer_at_ns == w->now_ns + CONFIRM_NS);
}

static void test_the_waiting_thread_may_bring_the_grant_itself(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    wait_in_queue(w, &waiter);
    snk_grant grant = grant_to(&waiter);
    step(w, (snk_event){ .kind = SNK_EVENT_RESUME, .waiter = &waiter, .news = true, .grant = &grant });
    assert_started(w, &waiter, w->now_ns);
}

static void test_an_offer_is_confirmed_and_then_held_for_the_lease(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    wait_in_queue(w, &waiter);
    hear(w, grant_to(&waiter));
    w->now_ns += CONFIRM_NS;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    snk_send renew = only_send(w, SNK_ASK_RENEW);
    assert_true(renew.lease_ns == LEASE_NS);
    reply_with(w, renew, (snk_answer){ .kind = SNK_ANSWER_HELD, .token_first = 500, .token_last = 503 });
    assert_true(snk_deadline_peek(&w->machine.deadline) == snk_deadline_of(w->now_ns, LEASE_NS));
    assert_true(w->machine.timer_at_ns == w->now_ns + LEASE_NS / 3);
    /* What was left of the offer says nothing about how late renewals are; the next one does. */
    assert_int_equal(w->actions.notes[0].kind, SNECK_EVENT_RENEWED);
    assert_true(w->actions.notes[0].of_offer && w->actions.notes[0].delay_ns == -1);
    w->now_ns = w->machine.timer_at_ns + 7 * MS;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_HELD);
    assert_true(!w->actions.notes[0].of_offer && w->actions.notes[0].delay_ns == 7 * MS);
}

static void test_a_fixed_lease_is_confirmed_however_often_it_takes_and_not_renewed(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    waiter.terms.renew_ns = SNK_NEVER_NS;
    wait_in_queue(w, &waiter);
    hear(w, grant_to(&waiter));
    for (int i = 0; i < 3; i++) {
        assert_true(w->machine.timer_at_ns != SNK_NEVER_NS);
        w->now_ns = w->machine.timer_at_ns;
        step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
        reply(w, only_send(w, SNK_ASK_RENEW), i < 2 ? SNK_ANSWER_UNCERTAIN : SNK_ANSWER_HELD);
    }
    assert_true(w->machine.timer_at_ns == SNK_NEVER_NS);
    assert_true(snk_deadline_peek(&w->machine.deadline) == snk_deadline_of(w->now_ns, LEASE_NS));
}

static void test_an_offer_that_is_not_confirmed_is_lost_with_its_life(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    wait_in_queue(w, &waiter);
    hear(w, grant_to(&waiter));
    w->now_ns = snk_deadline_peek(&w->machine.deadline);
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    assert_int_equal(w->actions.note_count, 1);
    assert_int_equal(w->actions.notes[0].kind, SNECK_EVENT_LOST);
    assert_int_equal(release(w, 1), SNECK_LOST);
}

static void test_a_hold_may_end_before_it_is_confirmed(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    wait_in_queue(w, &waiter);
    snk_id claim = waiter.seek.claim;
    hear(w, grant_to(&waiter));
    w->now_ns += CONFIRM_NS;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    snk_send renew = only_send(w, SNK_ASK_RENEW);
    release(w, 1);
    snk_send end = only_send(w, SNK_ASK_RELEASE);
    assert_true(snk_id_equal(&end.claim, &claim));
    assert_false(end.unanswered);
    reply(w, renew, SNK_ANSWER_HELD);
    assert_null(w->machine.hold);
    reply(w, end, SNK_ANSWER_DONE);
    assert_int_equal(w->actions.release.status, SNECK_OK);
    assert_true(snk_machine_is_idle(&w->machine));
}

static void test_time_counts_from_the_last_request_that_was_answered(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    wait_in_queue(w, &waiter);
    w->now_ns += 400 * MS;
    resume(w, &waiter, true);
    snk_send look = only_send(w, SNK_ASK_RENEW);
    w->now_ns += 10 * MS;
    reply_queued(w, look, RUN);
    w->now_ns += 400 * MS;
    resume(w, &waiter, true); /* and is not answered */
    (void)only_send(w, SNK_ASK_RENEW);
    w->now_ns += 10 * MS;
    hear(w, grant_to(&waiter));
    assert_started(w, &waiter, look.sent_at_ns);
}

static void test_the_first_acquire_counts_unanswered(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    ask(w, &waiter);
    snk_send acquire = only_send(w, SNK_ASK_ACQUIRE);
    w->now_ns += 10 * MS;
    hear(w, grant_to(&waiter));
    assert_started(w, &waiter, acquire.sent_at_ns);
    reply_queued(w, acquire, RUN);
    assert_int_equal(snk_machine_levels(&w->machine, 1, w->now_ns), 1);
}

static void test_an_acquire_that_failed_unanswered_does_not_count(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    wait_in_queue(w, &waiter);
    resume(w, &waiter, true);
    reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_GONE);
    reply(w, only_send(w, SNK_ASK_ACQUIRE), SNK_ANSWER_UNCERTAIN);
    assert_int_equal(waiter.seek.state, SNK_SEEK_UNSURE);
    hear(w, grant_to(&waiter));
    assert_asks_first(w, &waiter);
}

static void test_a_grant_of_another_run_of_the_server_is_asked_about(void **state)
{
    world *w = *state;
    static const uint64_t runs[] = { RUN + 1, 0 };
    for (size_t i = 0; i < 2; i++) {
        snk_waiter waiter = asker(w, 1);
        wait_in_queue(w, &waiter);
        snk_grant grant = grant_to(&waiter);
        grant.run = runs[i];
        hear(w, grant);
        assert_asks_first(w, &waiter);
        give_up(w, &waiter, SNECK_TIMEOUT);
    }
    snk_waiter waiter = asker(w, 1);
    ask(w, &waiter);
    reply_queued(w, only_send(w, SNK_ASK_ACQUIRE), 0); /* a server that does not say who it is */
    snk_grant grant = grant_to(&waiter);
    grant.run = 0;
    hear(w, grant);
    assert_asks_first(w, &waiter);
}

static void test_a_grant_that_may_be_old_is_asked_about(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    wait_in_queue(w, &waiter);
    w->now_ns += snk_deadline_of(0, LIFE_NS) / 2 + 1;
    hear(w, grant_to(&waiter));
    assert_asks_first(w, &waiter);
}

static void test_a_short_lease_makes_a_short_offer(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    waiter.terms.lease_ns = 300 * MS;
    wait_in_queue(w, &waiter);
    int64_t since_ns = w->now_ns;
    w->now_ns += 100 * MS;
    hear(w, grant_to(&waiter));
    assert_decided(&waiter, SNECK_OK);
    assert_true(snk_deadline_peek(&w->machine.deadline) == snk_deadline_of(since_ns, 300 * MS));
}

static void test_a_grant_to_another_claim_is_nothing(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    wait_in_queue(w, &waiter);
    snk_grant grant = grant_to(&waiter);
    grant.claim.bytes[5] ^= 1;
    hear(w, grant);
    assert_false(waiter.decided);
    assert_int_equal(w->actions.send_count, 0);
    step(w, (snk_event){ .kind = SNK_EVENT_RESUME, .waiter = &waiter, .news = true, .grant = &grant });
    assert_asks_first(w, &waiter);
}

static void test_a_grant_ends_no_hold_of_this_client(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    snk_waiter waiter = asker(w, 2);
    waiter.terms.fair = true;
    wait_in_queue(w, &waiter);
    hear(w, grant_to(&waiter));
    assert_asks_first(w, &waiter);
    assert_int_equal(snk_machine_levels(&w->machine, 1, w->now_ns), 1);
}

static void test_nobody_starts_who_is_about_to_leave(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    wait_in_queue(w, &waiter);
    step(w, (snk_event){ .kind = SNK_EVENT_INTERRUPT, .tag = NULL });
    hear(w, grant_to(&waiter));
    assert_false(waiter.decided);
    assert_null(w->machine.hold);
    give_up(w, &waiter, SNECK_CANCELED);
    snk_waiter last = asker(w, 2);
    wait_in_queue(w, &last);
    w->machine.closing = true;
    hear(w, grant_to(&last));
    assert_asks_first(w, &last);
}

static void test_nobody_starts_who_has_levels_of_a_lost_hold(void **state)
{
    world *w = *state;
    snk_waiter first = asker(w, 1);
    snk_waiter second = asker(w, 1);
    second.hold = &w->holds[2];
    first.terms.fair = second.terms.fair = true;
    wait_in_queue(w, &first);
    wait_in_queue(w, &second);
    snk_grant grant = grant_to(&second);
    hear(w, grant_to(&first));
    assert_decided(&first, SNECK_OK);
    w->now_ns += CONFIRM_NS;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_GONE);
    hear(w, grant);
    assert_asks_first(w, &second);
}

static void test_an_answer_that_the_grant_overtook_changes_nothing(void **state)
{
    world *w = *state;
    static const snk_answer_kind kinds[] = { SNK_ANSWER_QUEUED, SNK_ANSWER_UNCERTAIN, SNK_ANSWER_FAILED };
    for (size_t i = 0; i < 3; i++) {
        snk_waiter waiter = asker(w, 1);
        wait_in_queue(w, &waiter);
        resume(w, &waiter, true);
        snk_send look = only_send(w, SNK_ASK_RENEW);
        w->now_ns += MS;
        hear(w, grant_to(&waiter));
        int64_t deadline_ns = snk_deadline_peek(&w->machine.deadline);
        int64_t timer_at_ns = w->machine.timer_at_ns;
        w->now_ns += MS;
        reply(w, look, kinds[i]);
        assert_int_equal(w->actions.note_count, 0);
        assert_true(snk_deadline_peek(&w->machine.deadline) == deadline_ns);
        assert_true(w->machine.timer_at_ns == timer_at_ns);
        release(w, 1);
        reply(w, only_send(w, SNK_ASK_RELEASE), SNK_ANSWER_DONE);
    }
}

static void test_an_answer_that_was_given_after_the_grant_counts(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    wait_in_queue(w, &waiter);
    resume(w, &waiter, true);
    snk_send look = only_send(w, SNK_ASK_RENEW);
    w->now_ns += MS;
    hear(w, grant_to(&waiter));
    reply(w, look, SNK_ANSWER_HELD);
    assert_true(snk_deadline_peek(&w->machine.deadline) == snk_deadline_of(look.sent_at_ns, LEASE_NS));
    /* And a server that has forgotten the grant says so. */
    step(w, (snk_event){ .kind = SNK_EVENT_EXTEND, .owner = 1, .lease_ns = LEASE_NS });
    snk_send extend = only_send(w, SNK_ASK_RENEW);
    extend.sent_at_ns++;
    reply_queued(w, extend, RUN + 1);
    assert_int_equal(w->actions.release.status, SNECK_LOST);
    assert_null(w->machine.hold);
}

static void test_threads_of_this_client_get_it_by_hand_off_before_it_is_confirmed(void **state)
{
    world *w = *state;
    snk_waiter first = asker(w, 1);
    snk_waiter second = asker(w, 2);
    wait_in_queue(w, &first);
    ask(w, &second);
    hear(w, grant_to(&first));
    assert_int_equal(release(w, 1), SNECK_OK);
    assert_false(w->actions.pending);
    resume(w, &second, false);
    assert_decided(&second, SNECK_OK);
    assert_int_equal(second.token, 501);
}

#define OFFER_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OFFER_TEST(test_a_waiter_starts_with_what_it_was_granted),
        OFFER_TEST(test_the_waiting_thread_may_bring_the_grant_itself),
        OFFER_TEST(test_an_offer_is_confirmed_and_then_held_for_the_lease),
        OFFER_TEST(test_a_fixed_lease_is_confirmed_however_often_it_takes_and_not_renewed),
        OFFER_TEST(test_an_offer_that_is_not_confirmed_is_lost_with_its_life),
        OFFER_TEST(test_a_hold_may_end_before_it_is_confirmed),
        OFFER_TEST(test_time_counts_from_the_last_request_that_was_answered),
        OFFER_TEST(test_the_first_acquire_counts_unanswered),
        OFFER_TEST(test_an_acquire_that_failed_unanswered_does_not_count),
        OFFER_TEST(test_a_grant_of_another_run_of_the_server_is_asked_about),
        OFFER_TEST(test_a_grant_that_may_be_old_is_asked_about),
        OFFER_TEST(test_a_short_lease_makes_a_short_offer),
        OFFER_TEST(test_a_grant_to_another_claim_is_nothing),
        OFFER_TEST(test_a_grant_ends_no_hold_of_this_client),
        OFFER_TEST(test_nobody_starts_who_is_about_to_leave),
        OFFER_TEST(test_nobody_starts_who_has_levels_of_a_lost_hold),
        OFFER_TEST(test_an_answer_that_the_grant_overtook_changes_nothing),
        OFFER_TEST(test_an_answer_that_was_given_after_the_grant_counts),
        OFFER_TEST(test_threads_of_this_client_get_it_by_hand_off_before_it_is_confirmed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
