/* The machine under the watchdog: looks, holds that are given up or revoked, and locks acquired again after loss. */
#include "machine_world.h"

static bool has_note(const world *w, sneck_event_kind kind)
{
    for (uint32_t i = 0; i < w->actions.note_count; i++)
        if (w->actions.notes[i].kind == kind)
            return true;
    return false;
}

static snk_note note_of(const world *w, sneck_event_kind kind)
{
    uint32_t index = 0;
    assert_true(has_note(w, kind));
    while (w->actions.notes[index].kind != kind)
        index++;
    return w->actions.notes[index];
}

static snk_waiter acquired_with(world *w, uint64_t owner, snk_care care)
{
    snk_waiter waiter = asker(w, owner);
    waiter.terms.care = care;
    ask(w, &waiter);
    reply(w, only_send(w, SNK_ASK_ACQUIRE), SNK_ANSWER_HELD);
    assert_decided(&waiter, SNECK_OK);
    return waiter;
}

static void fail_renewal(world *w)
{
    w->now_ns = w->machine.timer_at_ns;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_FAILED);
}

/* A look of the watchdog at the present hold, and what the store says to it. */
static void look(world *w, snk_answer answer)
{
    w->now_ns += MS;
    snk_send send = {
        .ask = SNK_ASK_RENEW,
        .claim = w->machine.hold->claim,
        .lease_ns = MS,
        .sent_at_ns = w->now_ns,
        .check = true,
    };
    reply_with(w, send, answer);
}

static void lose(world *w)
{
    look(w, (snk_answer){ .kind = SNK_ANSWER_GONE });
    assert_true(has_note(w, SNECK_EVENT_LOST));
}

/* ---- Loss and its causes ---- */

static void test_a_renewal_that_was_never_sent_is_a_pause(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    w->now_ns += LEASE_NS;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    assert_int_equal(note_of(w, SNECK_EVENT_LOST).cause, SNECK_CAUSE_PAUSED);
    assert_true(note_of(w, SNECK_EVENT_LOST).took_ns == LEASE_NS);
}

static void test_a_renewal_without_an_answer_is_an_end_of_the_lease(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    w->now_ns += LEASE_NS / 3;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    w->now_ns += LEASE_NS;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    assert_int_equal(note_of(w, SNECK_EVENT_LOST).cause, SNECK_CAUSE_EXPIRED);
}

static void test_failed_renewals_in_a_row_are_a_risk_once(void **state)
{
    world *w = *state;
    (void)acquired_with(w, 1, (snk_care){ .threshold = 3 });
    fail_renewal(w);
    assert_false(has_note(w, SNECK_EVENT_AT_RISK));
    fail_renewal(w);
    assert_false(has_note(w, SNECK_EVENT_AT_RISK));
    fail_renewal(w);
    assert_true(has_note(w, SNECK_EVENT_AT_RISK));
    fail_renewal(w);
    assert_false(has_note(w, SNECK_EVENT_AT_RISK));
    assert_int_equal(snk_machine_levels(&w->machine, 1, w->now_ns), 1);
}

static void test_the_first_failed_renewal_gives_the_hold_up_if_asked_to(void **state)
{
    world *w = *state;
    (void)acquired_with(w, 1, (snk_care){ .threshold = 1, .recovery = SNECK_RECOVER_RELEASE });
    int64_t sent_at_ns = w->now_ns;
    fail_renewal(w);
    assert_int_equal(note_of(w, SNECK_EVENT_LOST).cause, SNECK_CAUSE_GIVEN_UP);
    snk_send chase = only_send(w, SNK_ASK_RELEASE);
    assert_true(chase.chase);
    assert_true(chase.not_before_ns >= sent_at_ns + LEASE_NS);
    assert_int_equal(release(w, 1), SNECK_LOST);
}

static void test_without_release_a_threshold_of_one_only_warns(void **state)
{
    world *w = *state;
    (void)acquired_with(w, 1, (snk_care){ .threshold = 1, .recovery = SNECK_RECOVER_NOTIFY });
    fail_renewal(w);
    assert_true(has_note(w, SNECK_EVENT_AT_RISK));
    assert_int_equal(snk_machine_levels(&w->machine, 1, w->now_ns), 1);
}

/* ---- Looks ---- */

static void test_a_look_that_finds_the_claim_confirms_it_and_says_nothing(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    int64_t deadline_ns = snk_deadline_peek(&w->machine.deadline);
    w->now_ns += 5000 * MS;
    look(w, (snk_answer){ .kind = SNK_ANSWER_HELD, .token_first = 101, .token_last = 101 });
    assert_int_equal(w->actions.note_count, 0);
    assert_true(w->machine.hold->renewal.confirmed_at_ns == w->now_ns);
    assert_true(snk_deadline_peek(&w->machine.deadline) == deadline_ns);
    assert_true(w->machine.hold->renewal.renewed_at_ns == 0);
}

static void test_a_look_without_an_answer_means_nothing(void **state)
{
    world *w = *state;
    (void)acquired_with(w, 1, (snk_care){ .threshold = 1, .recovery = SNECK_RECOVER_RELEASE });
    look(w, (snk_answer){ .kind = SNK_ANSWER_FAILED, .error.status = SNECK_UNAVAILABLE });
    look(w, (snk_answer){ .kind = SNK_ANSWER_UNCERTAIN, .error.status = SNECK_UNKNOWN });
    assert_int_equal(w->actions.note_count, 0);
    assert_int_equal(w->machine.hold->renewal.failures, 0);
}

static void test_a_look_that_finds_it_gone_or_taken_is_loss_now(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    look(w, (snk_answer){ .kind = SNK_ANSWER_GONE });
    assert_int_equal(note_of(w, SNECK_EVENT_LOST).cause, SNECK_CAUSE_GONE);
    (void)acquired(w, 2);
    look(w, (snk_answer){ .kind = SNK_ANSWER_BUSY });
    assert_int_equal(note_of(w, SNECK_EVENT_LOST).cause, SNECK_CAUSE_TAKEN);
    (void)acquired(w, 3);
    look(w, (snk_answer){ .kind = SNK_ANSWER_HELD, .token_first = 7, .token_last = 7 });
    assert_true(only_send(w, SNK_ASK_RELEASE).chase);
    assert_true(has_note(w, SNECK_EVENT_LOST));
}

static void test_a_look_that_is_answered_after_the_release_changes_nothing(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    snk_send send = { .ask = SNK_ASK_RENEW, .claim = w->machine.hold->claim, .lease_ns = MS, .check = true };
    release(w, 1);
    snk_send sent = only_send(w, SNK_ASK_RELEASE);
    reply(w, send, SNK_ANSWER_GONE);
    assert_int_equal(w->actions.note_count, 0);
    reply(w, sent, SNK_ANSWER_DONE);
    assert_int_equal(w->actions.release.status, SNECK_OK);
}

/* ---- Ends by force ---- */

static void test_a_hold_that_is_revoked_is_lost_and_released_at_once(void **state)
{
    world *w = *state;
    snk_waiter waiter = acquired(w, 1);
    step(w, (snk_event){ .kind = SNK_EVENT_REVOKE, .owner = 1, .token = waiter.token + 1, .cause = SNECK_CAUSE_STUCK });
    assert_int_equal(w->actions.note_count, 0);
    step(w, (snk_event){ .kind = SNK_EVENT_REVOKE, .owner = 2, .token = waiter.token, .cause = SNECK_CAUSE_STUCK });
    assert_int_equal(w->actions.note_count, 0);
    step(w, (snk_event){ .kind = SNK_EVENT_REVOKE, .owner = 1, .token = waiter.token, .cause = SNECK_CAUSE_STUCK });
    assert_int_equal(note_of(w, SNECK_EVENT_LOST).cause, SNECK_CAUSE_STUCK);
    snk_send chase = only_send(w, SNK_ASK_RELEASE);
    assert_true(chase.chase);
    assert_true(chase.not_before_ns == 0);
    assert_int_equal(release(w, 1), SNECK_LOST);
}

static void test_what_a_dead_owner_has_is_given_back(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    snk_waiter again = asker(w, 1);
    ask(w, &again);
    step(w, (snk_event){ .kind = SNK_EVENT_OWNER_GONE, .owner = 1 });
    assert_true(w->actions.pending); /* the watchdog wants to know what comes of it */
    assert_int_equal(note_of(w, SNECK_EVENT_RELEASED).cause, SNECK_CAUSE_OWNER_DIED);
    reply(w, only_send(w, SNK_ASK_RELEASE), SNK_ANSWER_DONE);
    assert_true(snk_machine_is_idle(&w->machine));
}

static void test_what_a_dead_owner_has_lost_is_forgotten(void **state)
{
    world *w = *state;
    (void)acquired(w, 1);
    lose(w);
    assert_false(snk_machine_is_idle(&w->machine));
    step(w, (snk_event){ .kind = SNK_EVENT_OWNER_GONE, .owner = 1 });
    assert_true(snk_machine_is_idle(&w->machine));
    assert_ptr_equal(w->actions.freed, &w->holds[1]);
}

static void test_a_lock_of_a_dead_owner_passes_to_who_waits_here(void **state)
{
    world *w = *state;
    snk_waiter first = asker(w, 1);
    snk_waiter second = asker(w, 2);
    ask(w, &first);
    snk_send send = only_send(w, SNK_ASK_ACQUIRE);
    send.tokens = 4;
    ask(w, &second);
    reply(w, send, SNK_ANSWER_HELD);
    step(w, (snk_event){ .kind = SNK_EVENT_OWNER_GONE, .owner = 1 });
    assert_true(was_woken(w, &second));
    resume(w, &second, false);
    assert_decided(&second, SNECK_OK);
    assert_true(second.token > first.token);
}

/* ---- Acquired again ---- */

static const snk_care reacquires = { .recovery = SNECK_RECOVER_REACQUIRE };

/* Asks on behalf of an owner that lost the lock. */
static snk_waiter rescuer(world *w, uint64_t owner)
{
    snk_waiter waiter = asker(w, owner);
    waiter.reserves = true;
    waiter.terms.care = reacquires;
    waiter.hold = &w->holds[7];
    return waiter;
}

/* Owner 1 has lost the lock, with so many levels, and it is reserved for it. */
static uint64_t reserve(world *w, unsigned levels)
{
    (void)acquired_with(w, 1, reacquires);
    for (unsigned i = 1; i < levels; i++) {
        snk_waiter again = asker(w, 1);
        ask(w, &again);
    }
    lose(w);
    snk_waiter waiter = rescuer(w, 1);
    ask(w, &waiter);
    reply(w, only_send(w, SNK_ASK_ACQUIRE), SNK_ANSWER_HELD);
    assert_decided(&waiter, SNECK_OK);
    assert_true(note_of(w, SNECK_EVENT_RECOVERED).token == waiter.token);
    return waiter.token;
}

static void test_a_release_that_finds_the_claim_gone_is_told_as_loss(void **state)
{
    world *w = *state;
    snk_waiter waiter = acquired_with(w, 1, (snk_care){ .watchdog_ms = 5000 });
    release(w, 1);
    assert_true(has_note(w, SNECK_EVENT_RELEASED));
    reply(w, only_send(w, SNK_ASK_RELEASE), SNK_ANSWER_GONE);
    assert_int_equal(w->actions.release.status, SNECK_LOST);
    snk_note lost = note_of(w, SNECK_EVENT_LOST);
    assert_int_equal(lost.cause, SNECK_CAUSE_GONE);
    assert_true(lost.token == waiter.token && lost.token_first == waiter.token && lost.is_watched);
    assert_null(lost.hold);
    assert_true(snk_machine_is_idle(&w->machine));
    /* Not what nobody had: it was kept for somebody who has left. */
    (void)reserve(w, 1);
    assert_int_equal(release(w, 1), SNECK_LOST);
    assert_int_equal(release(w, 1), SNECK_NOT_OWNER);
    reply(w, only_send(w, SNK_ASK_RELEASE), SNK_ANSWER_GONE);
    assert_int_equal(w->actions.note_count, 0);
}

static void test_a_lock_acquired_again_is_had_only_after_the_outermost_release(void **state)
{
    world *w = *state;
    uint64_t token = reserve(w, 2);
    snk_waiter again = asker(w, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(snk_machine_levels(&w->machine, 1, w->now_ns), 0);
        ask(w, &again);
        assert_decided(&again, SNECK_LOST);
        assert_int_equal(release(w, 1), SNECK_LOST);
    }
    assert_int_equal(snk_machine_levels(&w->machine, 1, w->now_ns), 0);
    ask(w, &again);
    assert_decided(&again, SNECK_OK);
    assert_int_equal(w->actions.send_count, 0);
    assert_true(again.token == token);
    assert_int_equal(snk_machine_levels(&w->machine, 1, w->now_ns), 1);
    release(w, 1);
    assert_true(w->actions.pending);
}

static void test_a_lock_acquired_again_is_nobody_elses(void **state)
{
    world *w = *state;
    (void)reserve(w, 1);
    snk_waiter other = asker(w, 2);
    other.once = true;
    ask(w, &other);
    assert_decided(&other, SNECK_BUSY);
    snk_waiter patient = asker(w, 3);
    ask(w, &patient);
    assert_false(patient.decided);
    assert_int_equal(w->actions.send_count, 0);
    assert_int_equal(release(w, 2), SNECK_NOT_OWNER);
    assert_int_equal(w->actions.send_count, 0);
}

static void test_a_lock_acquired_again_is_renewed_and_can_be_lost_again(void **state)
{
    world *w = *state;
    uint64_t token = reserve(w, 1);
    w->now_ns = w->machine.timer_at_ns;
    step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
    reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_HELD);
    assert_int_equal(w->actions.note_count, 0);
    lose(w);
    assert_true(note_of(w, SNECK_EVENT_LOST).token == token);
    assert_true(note_of(w, SNECK_EVENT_LOST).owner == 1);
    assert_int_equal(release(w, 1), SNECK_LOST);
    assert_true(snk_machine_is_idle(&w->machine));
}

static void test_a_lock_acquired_again_that_nobody_comes_for_is_given_back(void **state)
{
    world *w = *state;
    (void)reserve(w, 1);
    assert_int_equal(release(w, 1), SNECK_LOST);
    int64_t kept_until_ns = w->now_ns + LEASE_NS;
    while (w->machine.hold != NULL && w->now_ns < 4 * LEASE_NS) {
        w->now_ns = w->machine.timer_at_ns;
        step(w, (snk_event){ .kind = SNK_EVENT_TIMER });
        if (w->machine.hold != NULL)
            reply(w, only_send(w, SNK_ASK_RENEW), SNK_ANSWER_HELD);
    }
    assert_true(w->now_ns == kept_until_ns);
    reply(w, only_send(w, SNK_ASK_RELEASE), SNK_ANSWER_DONE);
    assert_true(snk_machine_is_idle(&w->machine));
}

static void test_a_release_too_many_gives_a_lock_acquired_again_back(void **state)
{
    world *w = *state;
    (void)reserve(w, 1);
    assert_int_equal(release(w, 1), SNECK_LOST);
    assert_int_equal(release(w, 1), SNECK_NOT_OWNER);
    (void)only_send(w, SNK_ASK_RELEASE);
}

static void test_other_terms_do_not_take_over_what_was_acquired_again(void **state)
{
    world *w = *state;
    (void)reserve(w, 1);
    assert_int_equal(release(w, 1), SNECK_LOST);
    snk_waiter other = asker(w, 1);
    other.terms.lease_ns = LEASE_NS / 2;
    ask(w, &other);
    assert_false(other.decided);
    reply(w, only_send(w, SNK_ASK_RELEASE), SNK_ANSWER_DONE);
    assert_true(was_woken(w, &other));
    resume(w, &other, false);
    reply(w, only_send(w, SNK_ASK_ACQUIRE), SNK_ANSWER_HELD);
    assert_decided(&other, SNECK_OK);
}

static void test_a_dead_owner_needs_no_lock_acquired_again(void **state)
{
    world *w = *state;
    (void)reserve(w, 1);
    step(w, (snk_event){ .kind = SNK_EVENT_OWNER_GONE, .owner = 1 });
    reply(w, only_send(w, SNK_ASK_RELEASE), SNK_ANSWER_DONE);
    assert_true(snk_machine_is_idle(&w->machine));
}

static void test_nobody_waits_on_behalf_of_a_dead_owner(void **state)
{
    world *w = *state;
    (void)acquired_with(w, 1, reacquires);
    lose(w);
    snk_waiter rescue = rescuer(w, 1);
    ask(w, &rescue);
    reply(w, only_send(w, SNK_ASK_ACQUIRE), SNK_ANSWER_QUEUED);
    step(w, (snk_event){ .kind = SNK_EVENT_OWNER_GONE, .owner = 2 });
    assert_false(rescue.decided);
    step(w, (snk_event){ .kind = SNK_EVENT_OWNER_GONE, .owner = 1 });
    assert_decided(&rescue, SNECK_CANCELED);
    assert_true(was_woken(w, &rescue));
    reply(w, only_send(w, SNK_ASK_RELEASE), SNK_ANSWER_DONE);
    assert_true(snk_machine_is_idle(&w->machine));
}

static void test_an_owner_that_helped_itself_needs_no_rescue(void **state)
{
    world *w = *state;
    (void)acquired_with(w, 1, reacquires);
    lose(w);
    snk_waiter waiter = rescuer(w, 1);
    waiter.terms.fair = true;
    ask(w, &waiter);
    snk_send rescue = only_send(w, SNK_ASK_ACQUIRE);
    assert_int_equal(release(w, 1), SNECK_LOST);
    snk_waiter self = asker(w, 1);
    self.terms.fair = true;
    self.hold = &w->holds[6];
    ask(w, &self);
    snk_send own = only_send(w, SNK_ASK_ACQUIRE);
    reply(w, rescue, SNK_ANSWER_QUEUED);
    reply(w, own, SNK_ANSWER_HELD);
    assert_decided(&self, SNECK_OK);
    assert_true(was_woken(w, &waiter));
    resume(w, &waiter, false);
    assert_decided(&waiter, SNECK_CANCELED);
    (void)only_send(w, SNK_ASK_RELEASE);
}

#define MACHINE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MACHINE_TEST(test_a_renewal_that_was_never_sent_is_a_pause),
        MACHINE_TEST(test_a_renewal_without_an_answer_is_an_end_of_the_lease),
        MACHINE_TEST(test_failed_renewals_in_a_row_are_a_risk_once),
        MACHINE_TEST(test_the_first_failed_renewal_gives_the_hold_up_if_asked_to),
        MACHINE_TEST(test_without_release_a_threshold_of_one_only_warns),
        MACHINE_TEST(test_a_look_that_finds_the_claim_confirms_it_and_says_nothing),
        MACHINE_TEST(test_a_look_without_an_answer_means_nothing),
        MACHINE_TEST(test_a_look_that_finds_it_gone_or_taken_is_loss_now),
        MACHINE_TEST(test_a_look_that_is_answered_after_the_release_changes_nothing),
        MACHINE_TEST(test_a_release_that_finds_the_claim_gone_is_told_as_loss),
        MACHINE_TEST(test_a_hold_that_is_revoked_is_lost_and_released_at_once),
        MACHINE_TEST(test_what_a_dead_owner_has_is_given_back),
        MACHINE_TEST(test_what_a_dead_owner_has_lost_is_forgotten),
        MACHINE_TEST(test_a_lock_of_a_dead_owner_passes_to_who_waits_here),
        MACHINE_TEST(test_a_lock_acquired_again_is_had_only_after_the_outermost_release),
        MACHINE_TEST(test_a_lock_acquired_again_is_nobody_elses),
        MACHINE_TEST(test_a_lock_acquired_again_is_renewed_and_can_be_lost_again),
        MACHINE_TEST(test_a_lock_acquired_again_that_nobody_comes_for_is_given_back),
        MACHINE_TEST(test_a_release_too_many_gives_a_lock_acquired_again_back),
        MACHINE_TEST(test_other_terms_do_not_take_over_what_was_acquired_again),
        MACHINE_TEST(test_a_dead_owner_needs_no_lock_acquired_again),
        MACHINE_TEST(test_nobody_waits_on_behalf_of_a_dead_owner),
        MACHINE_TEST(test_an_owner_that_helped_itself_needs_no_rescue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
