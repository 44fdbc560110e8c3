/* The watchdog's decisions, with a clock that the test moves. */
#include "test.h"

#include <string.h>

#include "base/limits.h"
#include "engine/watchdog.h"

#define MS SNK_NS_PER_MS
#define S SNK_NS_PER_S

static int set_up(void **state)
{
    snk_watchdog *watchdog = calloc(1, sizeof *watchdog);
    if (watchdog == NULL)
        return -1;
    snk_watchdog_init(watchdog);
    *state = watchdog;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

/* ---- Renewal ---- */

static snk_renewal_facts idle_renewer(void)
{
    return (snk_renewal_facts){
        .runs = true,
        .beat_at_ns = 100 * S,
        .pending_at_ns = SNK_NEVER_NS,
        .lease_ns = 30 * S,
        .patience_ns = 5 * S,
    };
}

static void test_a_renewal_thread_with_nothing_to_do_may_sleep(void **state)
{
    snk_renewal_facts facts = idle_renewer();
    assert_int_equal(snk_watchdog_judge_renewal(*state, &facts, 1000 * S), SNK_FINDING_NONE);
    facts.pending_at_ns = 1001 * S; /* that is later */
    assert_int_equal(snk_watchdog_judge_renewal(*state, &facts, 1000 * S), SNK_FINDING_NONE);
}

static void test_a_renewal_thread_that_does_not_move_is_stuck(void **state)
{
    snk_renewal_facts facts = idle_renewer();
    facts.pending_at_ns = 200 * S;
    assert_int_equal(snk_watchdog_judge_renewal(*state, &facts, 205 * S - 1), SNK_FINDING_NONE);
    assert_int_equal(snk_watchdog_judge_renewal(*state, &facts, 205 * S), SNK_FINDING_RENEWAL_STUCK);
    facts.beat_at_ns = 204 * S; /* behind, but it moves */
    assert_int_equal(snk_watchdog_judge_renewal(*state, &facts, 205 * S), SNK_FINDING_NONE);
    facts.runs = false;
    assert_int_equal(snk_watchdog_judge_renewal(*state, &facts, 300 * S), SNK_FINDING_NONE);
}

static void test_renewals_that_come_late_or_all_fail_are_found(void **state)
{
    snk_renewal_facts facts = idle_renewer();
    facts.late_ns = 30 * S / 4 - 1;
    assert_int_equal(snk_watchdog_judge_renewal(*state, &facts, 101 * S), SNK_FINDING_NONE);
    facts.late_ns = 30 * S / 4;
    assert_int_equal(snk_watchdog_judge_renewal(*state, &facts, 101 * S), SNK_FINDING_RENEWAL_LATE);
    facts.late_ns = 0;
    facts.failed = 2;
    facts.succeeded = 1;
    assert_int_equal(snk_watchdog_judge_renewal(*state, &facts, 101 * S), SNK_FINDING_NONE);
    facts.failed = 3;
    assert_int_equal(snk_watchdog_judge_renewal(*state, &facts, 102 * S), SNK_FINDING_RENEWAL_FAILING);
    assert_int_equal(snk_watchdog_judge_renewal(*state, &facts, 103 * S), SNK_FINDING_NONE);
}

/* ---- Connection ---- */

static void test_a_connection_is_dead_half_open_or_flapping(void **state)
{
    snk_connection_facts facts = { .has_one = true, .answers = true, .is_open = true, .connects = 1 };
    assert_int_equal(snk_watchdog_judge_connection(*state, &facts, 10 * S), SNK_FINDING_NONE);
    facts.answers = false;
    assert_int_equal(snk_watchdog_judge_connection(*state, &facts, 11 * S), SNK_FINDING_HALF_OPEN);
    facts.is_open = false;
    assert_int_equal(snk_watchdog_judge_connection(*state, &facts, 12 * S), SNK_FINDING_DISCONNECTED);
    facts.answers = facts.is_open = true;
    for (facts.connects = 2; facts.connects < 1 + SNK_FLAPPING_CONNECTS; facts.connects++)
        assert_int_equal(snk_watchdog_judge_connection(*state, &facts, 13 * S), SNK_FINDING_NONE);
    assert_int_equal(snk_watchdog_judge_connection(*state, &facts, 14 * S), SNK_FINDING_FLAPPING);
    assert_int_equal(snk_watchdog_judge_connection(*state, &facts, 13 * S + SNK_FLAPPING_NS), SNK_FINDING_FLAPPING);
    assert_int_equal(snk_watchdog_judge_connection(*state, &facts, 15 * S + SNK_FLAPPING_NS), SNK_FINDING_NONE);
    facts = (snk_connection_facts){ .has_one = false };
    assert_int_equal(snk_watchdog_judge_connection(*state, &facts, 16 * S), SNK_FINDING_NONE);
}

/* ---- Owners ---- */

static snk_hold held(void)
{
    return (snk_hold){ .owner = 1, .thread = 7, .since_ns = 100 * S, .terms.care = { .watchdog_ms = 5000 } };
}

static void test_an_owner_that_is_gone_is_dead(void **state)
{
    (void)state;
    snk_hold hold = held();
    snk_thread_facts gone = { .known = false };
    assert_int_equal(snk_watchdog_judge_owner(&hold, &gone, NULL, 101 * S), SNK_FINDING_OWNER_DIED);
    hold.owner = 0;
    assert_int_equal(snk_watchdog_judge_owner(&hold, &gone, NULL, 101 * S), SNK_FINDING_NONE);
}

static void test_an_owner_is_stuck_when_it_used_no_time_for_long_enough(void **state)
{
    (void)state;
    snk_hold hold = held();
    hold.terms.care.stuck_ms = 2000;
    snk_stillness stillness = { 0 };
    snk_thread_facts blocked = { .known = true, .cpu_ns = 5 };
    assert_int_equal(snk_watchdog_judge_owner(&hold, &blocked, &stillness, 110 * S), SNK_FINDING_NONE);
    assert_int_equal(snk_watchdog_judge_owner(&hold, &blocked, &stillness, 112 * S - 1), SNK_FINDING_NONE);
    assert_int_equal(snk_watchdog_judge_owner(&hold, &blocked, &stillness, 112 * S), SNK_FINDING_OWNER_STUCK);
    blocked.cpu_ns = 6; /* it has moved between two looks */
    assert_int_equal(snk_watchdog_judge_owner(&hold, &blocked, &stillness, 113 * S), SNK_FINDING_NONE);
    snk_thread_facts running = { .known = true, .runs = true, .cpu_ns = 6 };
    assert_int_equal(snk_watchdog_judge_owner(&hold, &running, &stillness, 120 * S), SNK_FINDING_NONE);
    assert_int_equal(snk_watchdog_judge_owner(&hold, &blocked, &stillness, 122 * S - 1), SNK_FINDING_NONE);
    hold.since_ns = 121 * S; /* it stood still before it had the lock */
    assert_int_equal(snk_watchdog_judge_owner(&hold, &blocked, &stillness, 122 * S), SNK_FINDING_NONE);
    hold.terms.care.stuck_ms = 0;
    assert_int_equal(snk_watchdog_judge_owner(&hold, &blocked, &stillness, 999 * S), SNK_FINDING_NONE);
}

static void test_a_hold_may_last_too_long(void **state)
{
    (void)state;
    snk_hold hold = held();
    hold.terms.care.max_hold_ms = 3000;
    assert_int_equal(snk_watchdog_judge_owner(&hold, NULL, NULL, 103 * S - 1), SNK_FINDING_NONE);
    assert_int_equal(snk_watchdog_judge_owner(&hold, NULL, NULL, 103 * S), SNK_FINDING_OWNER_OVERDUE);
}

/* ---- Holds ---- */

static void test_only_what_no_request_confirmed_lately_is_looked_up(void **state)
{
    (void)state;
    snk_hold hold = held();
    hold.renewal.confirmed_at_ns = 200 * S;
    assert_false(snk_watchdog_wants_check(&hold, 205 * S - 1));
    assert_true(snk_watchdog_wants_check(&hold, 205 * S));
    hold.terms.care.watchdog_ms = 0;
    assert_false(snk_watchdog_wants_check(&hold, 999 * S));
}

static void test_a_hold_near_its_end_is_at_risk_unless_it_is_to_end(void **state)
{
    (void)state;
    snk_hold hold = held();
    hold.terms.lease_ns = 30 * S;
    hold.terms.renew_ns = 10 * S;
    assert_false(snk_watchdog_is_at_risk(&hold, 300 * S, 292500 * MS));
    assert_true(snk_watchdog_is_at_risk(&hold, 300 * S, 292501 * MS));
    assert_false(snk_watchdog_is_at_risk(&hold, 300 * S, 300 * S)); /* that is loss */
    hold.terms.renew_ns = SNK_NEVER_NS;
    assert_false(snk_watchdog_is_at_risk(&hold, 300 * S, 299 * S));
}

static void test_an_offer_is_at_risk_near_its_own_end_only(void **state)
{
    (void)state;
    snk_hold hold = held();
    hold.terms.lease_ns = 30 * S;
    hold.terms.renew_ns = 10 * S;
    hold.renewal.is_offer = true;
    assert_false(snk_watchdog_is_at_risk(&hold, 300 * S, 300 * S - SNK_OFFER_NS));
    assert_false(snk_watchdog_is_at_risk(&hold, 300 * S, 300 * S - SNK_OFFER_NS / 4));
    assert_true(snk_watchdog_is_at_risk(&hold, 300 * S, 300 * S - SNK_OFFER_NS / 4 + 1));
}

/* ---- Notes and remedies ---- */

static void test_each_check_keeps_its_own_account_and_alerts_once_in_a_row(void **state)
{
    snk_watchdog *watchdog = *state;
    for (int i = 1; i <= 5; i++) {
        bool alert = snk_watchdog_note(watchdog, SNECK_CHECK_STATE, SNK_FINDING_CLAIM_LOST, 2, i * S);
        assert_int_equal(alert, i == SNK_ALERT_THRESHOLD);
    }
    const snk_check *check = &watchdog->checks[SNECK_CHECK_STATE];
    assert_int_equal(check->runs, 5);
    assert_int_equal(check->findings, 10);
    assert_int_equal(check->in_a_row, 5);
    assert_true(check->found_at_ns == 5 * S);
    assert_int_equal(watchdog->by_finding[SNK_FINDING_CLAIM_LOST], 10);
    assert_false(snk_watchdog_note(watchdog, SNECK_CHECK_STATE, SNK_FINDING_NONE, 0, 6 * S));
    assert_int_equal(check->in_a_row, 0);
    assert_true(check->run_at_ns == 6 * S && check->found_at_ns == 5 * S);
    assert_int_equal(watchdog->checks[SNECK_CHECK_OWNER].runs, 0);
    assert_int_equal(watchdog->alerts[SNECK_CHECK_STATE], 1);
}

static void test_the_remedy_is_what_the_lock_asks_for(void **state)
{
    (void)state;
    assert_int_equal(snk_watchdog_choose(SNK_FINDING_RENEWAL_STUCK, SNECK_RECOVER_NOTIFY), SNK_REMEDY_REPLACE_RENEWER);
    assert_int_equal(snk_watchdog_choose(SNK_FINDING_HALF_OPEN, SNECK_RECOVER_NOTIFY), SNK_REMEDY_RECONNECT);
    assert_int_equal(snk_watchdog_choose(SNK_FINDING_DISCONNECTED, SNECK_RECOVER_RELEASE), SNK_REMEDY_NOTIFY);
    const snk_finding about_locks[] = { SNK_FINDING_CLAIM_LOST, SNK_FINDING_OWNER_STUCK, SNK_FINDING_OWNER_OVERDUE };
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(snk_watchdog_choose(about_locks[i], SNECK_RECOVER_NOTIFY), SNK_REMEDY_NOTIFY);
        assert_int_equal(snk_watchdog_choose(about_locks[i], SNECK_RECOVER_RELEASE), SNK_REMEDY_RELEASE);
        assert_int_equal(snk_watchdog_choose(about_locks[i], SNECK_RECOVER_REACQUIRE), SNK_REMEDY_REACQUIRE);
    }
    /* Nobody is left who could take over what was acquired again. */
    assert_int_equal(snk_watchdog_choose(SNK_FINDING_OWNER_DIED, SNECK_RECOVER_REACQUIRE), SNK_REMEDY_RELEASE);
    assert_int_equal(snk_watchdog_choose(SNK_FINDING_OWNER_DIED, SNECK_RECOVER_NOTIFY), SNK_REMEDY_NOTIFY);
}

static void test_remedies_are_tried_at_a_limited_rate(void **state)
{
    snk_watchdog *watchdog = *state;
    for (int i = 0; i < 3; i++)
        assert_true(snk_watchdog_may_try(watchdog, SNK_REMEDY_REPLACE_RENEWER, (100 + i) * S));
    assert_false(snk_watchdog_may_try(watchdog, SNK_REMEDY_REPLACE_RENEWER, 159 * S));
    assert_true(snk_watchdog_may_try(watchdog, SNK_REMEDY_REPLACE_RENEWER, 160 * S));
    assert_int_equal(watchdog->remedies[SNK_REMEDY_REPLACE_RENEWER].tried, 4);
    assert_int_equal(watchdog->remedies[SNK_REMEDY_REPLACE_RENEWER].put_off, 1);
}

static void test_a_remedy_worked_if_the_finding_is_gone_at_the_next_look(void **state)
{
    snk_watchdog *watchdog = *state;
    const snk_remedy_state *account = &watchdog->remedies[SNK_REMEDY_RECONNECT];
    assert_false(snk_watchdog_settle(watchdog, SNK_REMEDY_RECONNECT, true)); /* nothing was tried */
    assert_true(snk_watchdog_may_try(watchdog, SNK_REMEDY_RECONNECT, S));
    assert_false(snk_watchdog_settle(watchdog, SNK_REMEDY_RECONNECT, false));
    assert_true(snk_watchdog_may_try(watchdog, SNK_REMEDY_RECONNECT, 2 * S));
    assert_true(snk_watchdog_settle(watchdog, SNK_REMEDY_RECONNECT, true));
    assert_false(snk_watchdog_settle(watchdog, SNK_REMEDY_RECONNECT, true)); /* counted once */
    assert_int_equal(account->worked, 1);
    assert_int_equal(account->failed, 1);
}

static void test_everything_has_a_name_and_findings_their_check(void **state)
{
    (void)state;
    for (int i = 0; i < SNK_FINDING_COUNT; i++)
        assert_true(strlen(snk_finding_name((snk_finding)i)) > 3);
    for (int i = 0; i < SNK_REMEDY_COUNT; i++)
        assert_true(strlen(snk_remedy_name((snk_remedy)i)) > 3);
    assert_int_equal(snk_finding_check(SNK_FINDING_RENEWAL_LATE), SNECK_CHECK_RENEWAL);
    assert_int_equal(snk_finding_check(SNK_FINDING_CLAIM_LOST), SNECK_CHECK_STATE);
    assert_int_equal(snk_finding_check(SNK_FINDING_OWNER_STUCK), SNECK_CHECK_OWNER);
    assert_int_equal(snk_finding_check(SNK_FINDING_FLAPPING), SNECK_CHECK_CONNECTION);
    assert_int_equal(snk_finding_check(SNK_FINDING_RECOVERY_FAILED), SNECK_CHECK_RECOVERY);
}

#define WATCHDOG_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCHDOG_TEST(test_a_renewal_thread_with_nothing_to_do_may_sleep),
        WATCHDOG_TEST(test_a_renewal_thread_that_does_not_move_is_stuck),
        WATCHDOG_TEST(test_renewals_that_come_late_or_all_fail_are_found),
        WATCHDOG_TEST(test_a_connection_is_dead_half_open_or_flapping),
        WATCHDOG_TEST(test_an_owner_that_is_gone_is_dead),
        WATCHDOG_TEST(test_an_owner_is_stuck_when_it_used_no_time_for_long_enough),
        WATCHDOG_TEST(test_a_hold_may_last_too_long),
        WATCHDOG_TEST(test_only_what_no_request_confirmed_lately_is_looked_up),
        WATCHDOG_TEST(test_a_hold_near_its_end_is_at_risk_unless_it_is_to_end),
        WATCHDOG_TEST(test_an_offer_is_at_risk_near_its_own_end_only),
        WATCHDOG_TEST(test_each_check_keeps_its_own_account_and_alerts_once_in_a_row),
        WATCHDOG_TEST(test_the_remedy_is_what_the_lock_asks_for),
        WATCHDOG_TEST(test_remedies_are_tried_at_a_limited_rate),
        WATCHDOG_TEST(test_a_remedy_worked_if_the_finding_is_gone_at_the_next_look),
        WATCHDOG_TEST(test_everything_has_a_name_and_findings_their_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
