/* The lock machine, event by event. */
#include "machine_world.h"

static void test_a_free_lock_is_had_by_one_round_trip(void **state)
{
    world *w = *state;
    snk_waiter waiter = acquired(w, 1);
    assert_int_equal(waiter.token, 101);
    assert_int_equal(snk_machine_levels(&w->machine, 1, w->now_ns), 1);
    assert_int_equal(snk_machine_levels(&w->machine, 2, w->now_ns), 0);
    assert_int_equal(w->machine.state, UINT32_C(1) << 24 | UINT32_C(1) << 16);
    release(w, 1);
    assert_true(w->actions.pending);
    reply(w, only_send(w, SNK_ASK_RELEASE), SNK_ANSWER_DONE);
    assert_int_equal(w->actions.release.status, SNECK_OK);
    assert_true(snk_machine_is_idle(&w->machine));
    assert_int_equal(w->machine.state, 0);
}

static void test_255_levels_and_not_one_more(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    for (int level = 2; level <= 255; level++) {
        snk_waiter again = asker(w, 1);
        ask(w, &again);
        assert_decided(&again, SNECK_OK);
        assert_int_equal(w->actions.send_count, 0);
    }
    snk_waiter last = asker(w, 1);
    ask(w, &last);
    assert_decided(&last, SNECK_LIMIT);
    assert_int_equal(w->machine.state, UINT32_C(1) << 24 | UINT32_C(255) << 16);
    for (int level = 255; level > 1; level--)
        assert_int_equal(release(w, 1), SNECK_OK);
    assert_false(w->actions.pending);
    release(w, 1);
    assert_true(w->actions.pending);
}

static void test_a_lock_that_is_not_reentrant_says_deadlock(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    snk_waiter again = asker(w, 1);
    again.reentrant = false;
    ask(w, &again);
    assert_decided(&again, SNECK_DEADLOCK);
}

static void test_only_the_owner_releases(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    assert_int_equal(release(w, 2), SNECK_NOT_OWNER);
    assert_int_equal(w->actions.send_count, 0);
    assert_int_equal(snk_machine_levels(&w->machine, 1, w->now_ns), 1);
}

static void test_a_try_does_not_queue(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    waiter.once = true;
    ask(w, &waiter);
    snk_send send = only_send(w, SNK_ASK_ACQUIRE);
    assert_false(send.queue);
    reply(w, send, SNK_ANSWER_BUSY);
    assert_decided(&waiter, SNECK_BUSY);
}

static void test_a_try_on_a_lock_of_this_client_asks_nobody(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    snk_waiter waiter = asker(w, 2);
    waiter.once = true;
    ask(w, &waiter);
    assert_decided(&waiter, SNECK_BUSY);
    assert_int_equal(w->actions.send_count, 0);
}

static void test_the_deadline_is_loss_and_stays_loss(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    snk_waiter again = asker(w, 1);
    ask(w, &again);
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    w->now_ns += LEASE_NS / 3;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    snk_send renewal = only_send(w, SNK_ASK_RENEW);
    w->now_ns += LEASE_NS;
    /* The process slept; the answer was in the socket all the time. The clock comes first. */
    reply(w, renewal, SNK_ANSWER_HELD);
    assert_int_equal(w->actions.notes[0].kind, SNECK_EVENT_LOST);
    assert_int_equal(snk_machine_levels(&w->machine, 1, w->now_ns), 0);
    ask(w, &again);
    assert_decided(&again, SNECK_LOST);
    assert_int_equal(release(w, 1), SNECK_LOST);
    ask(w, &again);
    assert_decided(&again, SNECK_LOST);
    assert_int_equal(release(w, 1), SNECK_LOST);
    assert_int_equal(release(w, 1), SNECK_NOT_OWNER);
    assert_true(snk_machine_is_idle(&w->machine));
}

static void test_a_lost_claim_is_forgotten_only_when_its_lease_is_over(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    int64_t sent_at_ns = w->now_ns;
    w->now_ns = snk_deadline_peek(&w->machine.deadline);
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    assert_int_equal(w->actions.send_count, 1);
    assert_true(w->actions.sends[0].chase);
    assert_false(w->actions.sends[0].unanswered);
    assert_true(w->actions.sends[0].not_before_ns >= sent_at_ns + LEASE_NS);
}

static void test_a_failed_renewal_is_not_loss(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    w->now_ns += LEASE_NS / 3;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_UNCERTAIN);
    assert_int_equal(w->actions.notes[0].kind, SNECK_EVENT_RENEWAL_FAILED);
    assert_int_equal(snk_machine_levels(&w->machine, 1, w->now_ns), 1);
    assert_true(w->machine.timer_at_ns == w->now_ns + SNK_BACKOFF_NS_MIN);
}

static void test_what_the_renewal_thread_never_brought_back_is_sent_again(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    step(w, (snk_event){ .kind = SNK_EVENT_ABANDONED });
    assert_int_equal(w->actions.note_count, 0); /* nothing was in flight */
    w->now_ns += LEASE_NS / 3;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    snk_send abandoned = only_send(w, SNK_ASK_RENEW);
    assert_true(w->machine.timer_at_ns == SNK_NEVER_NS);
    step(w, (snk_event){ .kind = SNK_EVENT_ABANDONED });
    assert_int_equal(w->actions.notes[0].kind, SNECK_EVENT_RENEWAL_FAILED);
    assert_true(w->machine.timer_at_ns == w->now_ns + SNK_BACKOFF_NS_MIN);
    w->now_ns = w->machine.timer_at_ns;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_HELD);
    assert_int_equal(snk_machine_levels(&w->machine, 1, w->now_ns), 1);
    reply(w, abandoned, SNK_ANSWER_UNCERTAIN); /* it comes after all */
    assert_int_equal(snk_machine_levels(&w->machine, 1, w->now_ns), 1);
}

static void test_a_look_that_was_never_brought_back_is_made_again(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    ask(w, &waiter);
    reply(w, only_send(w, SNK_ASK_ACQUIRE), SNK_ANSWER_QUEUED);
    w->now_ns = w->machine.timer_at_ns;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    snk_send abandoned = only_send(w, SNK_ASK_RENEW);
    assert_true(w->machine.timer_at_ns == SNK_NEVER_NS);
    step(w, (snk_event){ .kind = SNK_EVENT_ABANDONED });
    assert_true(w->machine.timer_at_ns == w->now_ns + SNK_BACKOFF_NS_MIN);
    w->now_ns = w->machine.timer_at_ns;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    snk_send again = only_send(w, SNK_ASK_RENEW);
    assert_true(snk_id_equal(&again.claim, &abandoned.claim));
    reply(w, again, SNK_ANSWER_HELD);
    assert_true(waiter.decided);
}

static void test_a_clear_answer_is_loss_at_once(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    w->now_ns += LEASE_NS / 3;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_GONE);
    assert_int_equal(w->actions.notes[0].kind, SNECK_EVENT_LOST);
    assert_int_equal(release(w, 1), SNECK_LOST);
}

static void test_a_grant_that_comes_too_late_is_given_back(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    ask(w, &waiter);
    snk_send send = only_send(w, SNK_ASK_ACQUIRE);
    w->now_ns += LEASE_NS;
    reply(w, send, SNK_ANSWER_HELD);
    assert_false(waiter.decided);
    snk_send chase = only_send(w, SNK_ASK_RELEASE);
    assert_true(snk_id_equal(&chase.claim, &send.claim));
    w->now_ns = w->machine.timer_at_ns;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    snk_send again = only_send(w, SNK_ASK_ACQUIRE);
    assert_false(snk_id_equal(&again.claim, &send.claim));
}

static void test_the_next_thread_gets_the_lock_without_the_store(void **state)
{
    world *w = *state;
    snk_waiter first = asker(w, 1);
    snk_waiter second = asker(w, 2);
    ask(w, &first);
    snk_send send = only_send(w, SNK_ASK_ACQUIRE);
    ask(w, &second);
    assert_int_equal(w->actions.send_count, 0);
    send.tokens = 8;
    reply(w, send, SNK_ANSWER_HELD);
    assert_int_equal(release(w, 1), SNECK_OK);
    assert_int_equal(w->actions.send_count, 0);
    assert_true(was_woken(w, &second));
    resume(w, &second, false);
    assert_decided(&second, SNECK_OK);
    assert_true(second.token > first.token);
    assert_int_equal(w->machine.state & SNK_STATE_HANDOFFS_MASK, 1);
}

/* The lock held by owner 1 with a block of 8 tokens, owner 2 waiting. */
static void contend(world *w, snk_waiter *first, snk_waiter *second)
{
    *first = asker(w, 1);
    *second = asker(w, 2);
    ask(w, first);
    snk_send send = only_send(w, SNK_ASK_ACQUIRE);
    ask(w, second);
    send.tokens = 8;
    reply(w, send, SNK_ANSWER_HELD);
}

static void test_newcomers_barge_only_for_a_while(void **state)
{
    world *w = *state;
    snk_waiter first, second;
    contend(w, &first, &second);
    (void)release(w, 1);
    ask(w, &first);
    assert_decided(&first, SNECK_OK);
    resume(w, &second, false);
    assert_false(second.decided);
    w->now_ns += SNK_BARGE_TIME_NS;
    (void)release(w, 1);
    assert_decided(&second, SNECK_OK);
}

static void test_hand_off_ends_with_its_budget(void **state)
{
    world *w = *state;
    snk_waiter first, second;
    contend(w, &first, &second);
    w->now_ns += SNK_HANDOFF_TIME_NS;
    (void)release(w, 1);
    assert_true(w->actions.pending);
    reply(w, only_send(w, SNK_ASK_RELEASE), SNK_ANSWER_DONE);
    assert_true(was_woken(w, &second));
    resume(w, &second, false);
    (void)only_send(w, SNK_ASK_ACQUIRE);
}

static void test_hand_off_ends_with_its_tokens(void **state)
{
    world *w = *state;
    snk_waiter first, second;
    contend(w, &first, &second);
    for (int pass = 0; pass < 7; pass++) {
        (void)release(w, 1);
        assert_false(w->actions.pending);
        ask(w, &first);
        assert_decided(&first, SNECK_OK);
    }
    (void)release(w, 1);
    assert_true(w->actions.pending);
}

static void test_an_heir_that_leaves_gives_the_lock_back(void **state)
{
    world *w = *state;
    snk_waiter first, second;
    contend(w, &first, &second);
    (void)release(w, 1);
    give_up(w, &second, SNECK_TIMEOUT);
    assert_decided(&second, SNECK_TIMEOUT);
    snk_send send = only_send(w, SNK_ASK_RELEASE);
    assert_true(send.ends_hold);
    reply(w, send, SNK_ANSWER_DONE);
    assert_true(snk_machine_is_idle(&w->machine));
}

static void test_a_waiter_that_leaves_passes_its_place_on(void **state)
{
    world *w = *state;
    snk_waiter first = asker(w, 1);
    snk_waiter second = asker(w, 2);
    queue_up(w, &first);
    snk_id claim = first.seek.claim;
    ask(w, &second);
    give_up(w, &first, SNECK_TIMEOUT);
    assert_decided(&first, SNECK_TIMEOUT);
    assert_true(was_woken(w, &second));
    assert_true(snk_id_equal(&second.seek.claim, &claim));
    /* The first may have been woken for the claim in the very moment, so the second asks at once. */
    snk_send send = only_send(w, SNK_ASK_RENEW);
    assert_true(snk_id_equal(&send.claim, &claim));
    assert_int_equal(second.seek.state, SNK_SEEK_ASKING);
}

static void test_a_fair_waiter_that_leaves_leaves_the_queue(void **state)
{
    world *w = *state;
    snk_waiter first = asker(w, 1);
    snk_waiter second = asker(w, 2);
    first.terms.fair = second.terms.fair = true;
    queue_up(w, &first);
    queue_up(w, &second);
    give_up(w, &first, SNECK_CANCELED);
    assert_decided(&first, SNECK_CANCELED);
    snk_send send = only_send(w, SNK_ASK_RELEASE);
    assert_false(send.chase);
    assert_false(send.unanswered);
    /* If that fails, it is repeated until it is answered. */
    reply(w, send, SNK_ANSWER_UNCERTAIN);
    assert_true(only_send(w, SNK_ASK_RELEASE).chase);
}

static void test_a_request_given_up_in_flight_is_chased(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    ask(w, &waiter);
    snk_send acquire = only_send(w, SNK_ASK_ACQUIRE);
    give_up(w, &waiter, SNECK_TIMEOUT);
    assert_decided(&waiter, SNECK_UNKNOWN);
    snk_send chase = only_send(w, SNK_ASK_RELEASE);
    assert_true(chase.chase && chase.unanswered);
    assert_true(snk_id_equal(&chase.claim, &acquire.claim));
    reply(w, acquire, SNK_ANSWER_HELD);
    assert_null(w->machine.hold);
}

static void test_an_unanswered_acquire_is_asked_about_never_repeated(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    queue_up(w, &waiter);
    resume(w, &waiter, true);
    reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_GONE);
    snk_send second = only_send(w, SNK_ASK_ACQUIRE);
    reply(w, second, SNK_ANSWER_UNCERTAIN);
    assert_int_equal(w->actions.send_count, 0);
    w->now_ns = w->machine.timer_at_ns;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    snk_send question = only_send(w, SNK_ASK_RENEW);
    assert_true(snk_id_equal(&question.claim, &second.claim));
    reply(w, question, SNK_ANSWER_GONE);
    assert_int_equal(w->actions.send_count, 2);
    assert_true(w->actions.sends[0].chase && w->actions.sends[0].unanswered);
    assert_int_equal(w->actions.sends[1].ask, SNK_ASK_ACQUIRE);
    assert_false(snk_id_equal(&w->actions.sends[1].claim, &second.claim));
}

static void test_a_first_contact_that_fails_is_said_at_once(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    ask(w, &waiter);
    reply(w, only_send(w, SNK_ASK_ACQUIRE), SNK_ANSWER_FAILED);
    assert_decided(&waiter, SNECK_UNAVAILABLE);
    ask(w, &waiter);
    reply(w, only_send(w, SNK_ASK_ACQUIRE), SNK_ANSWER_UNCERTAIN);
    assert_decided(&waiter, SNECK_UNKNOWN);
    assert_true(only_send(w, SNK_ASK_RELEASE).unanswered);
}

static void test_an_outage_is_waited_out_by_who_waits(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    queue_up(w, &waiter);
    resume(w, &waiter, true);
    reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_FAILED);
    assert_false(waiter.decided);
    w->now_ns = w->machine.timer_at_ns;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_HELD);
    assert_decided(&waiter, SNECK_OK);
}

static void test_running_out_of_time_in_an_outage_says_so(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    queue_up(w, &waiter);
    resume(w, &waiter, true);
    reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_FAILED);
    give_up(w, &waiter, SNECK_TIMEOUT);
    assert_decided(&waiter, SNECK_UNAVAILABLE);
}

static void test_news_during_a_request_asks_again(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    ask(w, &waiter);
    snk_send acquire = only_send(w, SNK_ASK_ACQUIRE);
    step(w, (snk_event){ .kind = SNK_EVENT_NEWS, .claim = acquire.claim });
    assert_int_equal(w->actions.send_count, 0);
    reply(w, acquire, SNK_ANSWER_QUEUED);
    (void)only_send(w, SNK_ASK_RENEW);
}

static void test_a_sleeper_is_woken_when_its_ticket_changes(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    ask(w, &waiter);
    reply_with(w, only_send(w, SNK_ASK_ACQUIRE), (snk_answer){ .kind = SNK_ANSWER_QUEUED, .ticket = 5 });
    assert_false(was_woken(w, &waiter));
    w->now_ns = w->machine.timer_at_ns;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    reply_with(w, only_send(w, SNK_ASK_RENEW), (snk_answer){ .kind = SNK_ANSWER_QUEUED, .ticket = 5 });
    assert_false(was_woken(w, &waiter));
    w->now_ns = w->machine.timer_at_ns;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_GONE);
    reply_with(w, only_send(w, SNK_ASK_ACQUIRE), (snk_answer){ .kind = SNK_ANSWER_QUEUED, .ticket = 6 });
    assert_true(was_woken(w, &waiter));
}

static void test_news_about_an_unknown_claim_is_nothing(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    queue_up(w, &waiter);
    snk_id forged = { .bytes = { 99 } };
    step(w, (snk_event){ .kind = SNK_EVENT_NEWS, .claim = forged });
    assert_int_equal(w->actions.send_count, 0);
    assert_false(waiter.decided);
}

static void test_a_grant_ends_a_hold_that_was_broken(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    snk_waiter fair = asker(w, 2);
    fair.terms.fair = true;
    queue_up(w, &fair);
    resume(w, &fair, true);
    reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_HELD);
    assert_decided(&fair, SNECK_OK);
    assert_int_equal(snk_machine_levels(&w->machine, 1, w->now_ns), 0);
    assert_int_equal(release(w, 1), SNECK_LOST);
    assert_int_equal(snk_machine_levels(&w->machine, 2, w->now_ns), 1);
}

static void test_two_calls_of_one_owner_both_get_it(void **state)
{
    world *w = *state;
    snk_waiter first = asker(w, 1);
    snk_waiter second = asker(w, 1);
    second.hold = &w->holds[7];
    ask(w, &first);
    snk_send send = only_send(w, SNK_ASK_ACQUIRE);
    ask(w, &second);
    reply(w, send, SNK_ANSWER_HELD);
    assert_true(was_woken(w, &second));
    resume(w, &second, false);
    assert_decided(&second, SNECK_OK);
    assert_int_equal(snk_machine_levels(&w->machine, 1, w->now_ns), 2);
}

static void test_extend_raises_the_deadline_and_never_lowers_it(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    int64_t before_ns = snk_deadline_peek(&w->machine.deadline);
    step(w, (snk_event){ .kind = SNK_EVENT_EXTEND, .owner = 1, .lease_ns = 2 * LEASE_NS });
    assert_true(w->actions.pending);
    reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_HELD);
    assert_int_equal(w->actions.release.status, SNECK_OK);
    int64_t after_ns = snk_deadline_peek(&w->machine.deadline);
    assert_true(after_ns > before_ns);
    step(w, (snk_event){ .kind = SNK_EVENT_EXTEND, .owner = 1, .lease_ns = 100 * MS });
    reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_HELD);
    assert_true(snk_deadline_peek(&w->machine.deadline) == after_ns);
}

static void test_a_short_extend_does_not_put_the_renewal_off(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    int64_t due_at_ns = w->machine.timer_at_ns;
    w->now_ns = due_at_ns - 1;
    step(w, (snk_event){ .kind = SNK_EVENT_EXTEND, .owner = 1, .lease_ns = 100 * MS });
    reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_HELD);
    assert_int_equal(w->actions.release.status, SNECK_OK);
    assert_true(w->machine.timer_at_ns == due_at_ns);
}

static void test_interrupt_wakes_who_is_named_and_nobody_else(void **state)
{
    world *w = *state;
    int handles[2];
    snk_waiter first = asker(w, 1);
    snk_waiter second = asker(w, 2);
    first.tag = &handles[0];
    second.tag = &handles[1];
    queue_up(w, &first);
    ask(w, &second);
    step(w, (snk_event){ .kind = SNK_EVENT_INTERRUPT, .tag = &handles[0] });
    assert_true(first.interrupted && was_woken(w, &first));
    assert_false(second.interrupted || was_woken(w, &second));
    give_up(w, &first, SNECK_CANCELED);
    assert_decided(&first, SNECK_CANCELED);
    assert_int_equal(second.seek.state, SNK_SEEK_ASKING);
}

static void test_close_cancels_waiters_and_gives_the_hold_back(void **state)
{
    world *w = *state;
    snk_waiter first, second;
    contend(w, &first, &second);
    step(w, (snk_event){ .kind = SNK_EVENT_CLOSE });
    snk_send send = only_send(w, SNK_ASK_RELEASE);
    assert_true(second.interrupted);
    give_up(w, &second, SNECK_CANCELED);
    reply(w, send, SNK_ANSWER_DONE);
    assert_true(snk_machine_is_idle(&w->machine));
    ask(w, &first);
    assert_decided(&first, SNECK_CANCELED);
}

static void test_a_grant_that_comes_while_closing_is_given_back(void **state)
{
    world *w = *state;
    snk_waiter waiter = asker(w, 1);
    ask(w, &waiter);
    snk_send send = only_send(w, SNK_ASK_ACQUIRE);
    step(w, (snk_event){ .kind = SNK_EVENT_CLOSE });
    reply(w, send, SNK_ANSWER_HELD);
    assert_decided(&waiter, SNECK_CANCELED);
    assert_true(only_send(w, SNK_ASK_RELEASE).chase);
    assert_true(snk_machine_is_idle(&w->machine));
}

static void test_a_release_nobody_answered_is_repeated(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    (void)release(w, 1);
    reply(w, only_send(w, SNK_ASK_RELEASE), SNK_ANSWER_UNCERTAIN);
    assert_int_equal(w->actions.release.status, SNECK_UNKNOWN);
    assert_true(only_send(w, SNK_ASK_RELEASE).chase);
    assert_int_equal(release(w, 1), SNECK_NOT_OWNER);
}

int main(void)
{
#define MACHINE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        MACHINE_TEST(test_a_free_lock_is_had_by_one_round_trip),
        MACHINE_TEST(test_255_levels_and_not_one_more),
        MACHINE_TEST(test_a_lock_that_is_not_reentrant_says_deadlock),
        MACHINE_TEST(test_only_the_owner_releases),
        MACHINE_TEST(test_a_try_does_not_queue),
        MACHINE_TEST(test_a_try_on_a_lock_of_this_client_asks_nobody),
        MACHINE_TEST(test_the_deadline_is_loss_and_stays_loss),
        MACHINE_TEST(test_a_lost_claim_is_forgotten_only_when_its_lease_is_over),
        MACHINE_TEST(test_a_failed_renewal_is_not_loss),
        MACHINE_TEST(test_what_the_renewal_thread_never_brought_back_is_sent_again),
        MACHINE_TEST(test_a_look_that_was_never_brought_back_is_made_again),
        MACHINE_TEST(test_a_clear_answer_is_loss_at_once),
        MACHINE_TEST(test_a_grant_that_comes_too_late_is_given_back),
        MACHINE_TEST(test_the_next_thread_gets_the_lock_without_the_store),
        MACHINE_TEST(test_newcomers_barge_only_for_a_while),
        MACHINE_TEST(test_hand_off_ends_with_its_budget),
        MACHINE_TEST(test_hand_off_ends_with_its_tokens),
        MACHINE_TEST(test_an_heir_that_leaves_gives_the_lock_back),
        MACHINE_TEST(test_a_waiter_that_leaves_passes_its_place_on),
        MACHINE_TEST(test_a_fair_waiter_that_leaves_leaves_the_queue),
        MACHINE_TEST(test_a_request_given_up_in_flight_is_chased),
        MACHINE_TEST(test_an_unanswered_acquire_is_asked_about_never_repeated),
        MACHINE_TEST(test_a_first_contact_that_fails_is_said_at_once),
        MACHINE_TEST(test_an_outage_is_waited_out_by_who_waits),
        MACHINE_TEST(test_running_out_of_time_in_an_outage_says_so),
        MACHINE_TEST(test_news_during_a_request_asks_again),
        MACHINE_TEST(test_a_sleeper_is_woken_when_its_ticket_changes),
        MACHINE_TEST(test_news_about_an_unknown_claim_is_nothing),
        MACHINE_TEST(test_a_grant_ends_a_hold_that_was_broken),
        MACHINE_TEST(test_two_calls_of_one_owner_both_get_it),
        MACHINE_TEST(test_extend_raises_the_deadline_and_never_lowers_it),
        MACHINE_TEST(test_a_short_extend_does_not_put_the_renewal_off),
        MACHINE_TEST(test_interrupt_wakes_who_is_named_and_nobody_else),
        MACHINE_TEST(test_close_cancels_waiters_and_gives_the_hold_back),
        MACHINE_TEST(test_a_grant_that_comes_while_closing_is_given_back),
        MACHINE_TEST(test_a_release_nobody_answered_is_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
