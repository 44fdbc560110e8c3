#include "test.h"

#include <string.h>

#include "engine/ballot.h"

#define S SNK_NS_PER_S
#define MS SNK_NS_PER_MS

static const snk_quorum five = { .nodes = 5, .lease_max_ns = 60 * S };

static snk_id id_of(uint8_t number)
{
    snk_id id = { { number } };
    return id;
}

/* Our claim is number 100; its first round asks for token 1000. */
static void begin(snk_ballot *ballot)
{
    snk_send send = { .ask = SNK_ASK_ACQUIRE, .claim = id_of(100), .lease_ns = 10 * S, .sent_at_ns = 100 * S };
    snk_ballot_init(ballot, &five, &send);
    snk_ballot_ask(ballot, 1000);
}

static snk_verdict tell(snk_ballot *ballot, uint32_t node, snk_vote vote)
{
    return snk_ballot_answer(ballot, ballot->round, node, &vote, 100 * S + MS);
}

/* The first `count` nodes answer, one after the other; only the last answer may decide. */
static snk_verdict tell_all(snk_ballot *ballot, uint32_t count, const snk_vote votes[])
{
    for (uint32_t i = 0; i + 1 < count; i++)
        assert_int_equal(tell(ballot, i, votes[i]), SNK_VERDICT_OPEN);
    return tell(ballot, count - 1, votes[count - 1]);
}

/* The same in each round, until there are no more. */
static snk_verdict tell_all_always(snk_ballot *ballot, uint32_t count, const snk_vote votes[])
{
    for (uint32_t round = 1; round < SNK_BALLOT_ROUNDS_MAX; round++) {
        assert_int_equal(tell_all(ballot, count, votes), SNK_VERDICT_AGAIN);
        snk_ballot_ask(ballot, 1000 + round); /* the clocks allow no more */
    }
    return tell_all(ballot, count, votes);
}

static snk_vote yes(void)
{
    return (snk_vote){ .kind = SNK_VOTE_YES, .counts = true };
}

static snk_vote unripe(int64_t for_ns)
{
    return (snk_vote){ .kind = SNK_VOTE_YES, .remaining_ns = for_ns };
}

static snk_vote of(snk_vote_kind kind)
{
    return (snk_vote){ .kind = kind };
}

static snk_vote low(uint64_t floor)
{
    return (snk_vote){ .kind = SNK_VOTE_LOW, .floor = floor };
}

static snk_vote taken(uint8_t by, uint64_t token, int64_t remaining_ns)
{
    return (snk_vote){
        .kind = SNK_VOTE_TAKEN, .holder = id_of(by), .token = token, .floor = token, .remaining_ns = remaining_ns
    };
}

/* ---- Majority ---- */

static void test_three_of_five_votes_are_a_grant(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    assert_int_equal(tell(&ballot, 0, yes()), SNK_VERDICT_OPEN);
    assert_int_equal(tell(&ballot, 3, taken(1, 500, S)), SNK_VERDICT_OPEN);
    assert_int_equal(tell(&ballot, 4, of(SNK_VOTE_SILENT)), SNK_VERDICT_OPEN);
    assert_int_equal(tell(&ballot, 1, yes()), SNK_VERDICT_OPEN);
    assert_int_equal(tell(&ballot, 2, yes()), SNK_VERDICT_GRANTED);
    assert_int_equal(ballot.token, 1000);
    assert_int_equal(snk_ballot_unanswered(&ballot), 1u << 4);
}

static void test_nodes_that_a_grant_came_too_late_for_are_known(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    (void)tell(&ballot, 0, low(5000));
    (void)tell(&ballot, 1, yes());
    (void)tell(&ballot, 2, yes());
    assert_int_equal(snk_ballot_missed(&ballot), 0); /* nothing is granted yet */
    assert_int_equal(tell(&ballot, 3, yes()), SNK_VERDICT_GRANTED);
    assert_int_equal(snk_ballot_missed(&ballot), 1u << 0);
    assert_int_equal(tell(&ballot, 4, low(5000)), SNK_VERDICT_GRANTED);
    assert_int_equal(snk_ballot_missed(&ballot), 1u << 0 | 1u << 4);
}

static void test_a_majority_that_comes_too_late_is_none(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    snk_vote vote = yes();
    (void)tell(&ballot, 0, vote);
    (void)tell(&ballot, 1, vote);
    /* The lease counts from when the request left, at 100 s; a tenth of it is for the clocks. */
    assert_int_equal(snk_ballot_answer(&ballot, 1, 2, &vote, 109 * S), SNK_VERDICT_LATE);
}

static void test_votes_of_nodes_that_forgot_do_not_count(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    assert_int_equal(tell_all(&ballot, 3, (snk_vote[]){ yes(), yes(), unripe(30 * S) }), SNK_VERDICT_OPEN);
    assert_int_equal(tell(&ballot, 3, unripe(5 * S)), SNK_VERDICT_OPEN);
    assert_int_equal(tell(&ballot, 4, (snk_vote){ .kind = SNK_VOTE_YOUNG, .remaining_ns = 20 * S }), SNK_VERDICT_YOUNG);
    assert_int_equal(ballot.pause_ns, 5 * S); /* until one more counts */
    assert_int_equal(snk_ballot_touched(&ballot), 0xF);
}

static void test_too_few_nodes_that_could_be_asked_is_failure(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    assert_int_equal(
        tell_all(&ballot, 3, (snk_vote[]){ of(SNK_VOTE_FAILED), of(SNK_VOTE_FAILED), of(SNK_VOTE_FAILED) }),
        SNK_VERDICT_FAILED);
    /* The two that are still out must be taken back all the same. */
    assert_int_equal(snk_ballot_touched(&ballot), 1u << 3 | 1u << 4);
}

static void test_too_few_answers_are_uncertain_if_a_majority_may_have_voted(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    assert_int_equal(
        tell_all(&ballot, 4, (snk_vote[]){ yes(), of(SNK_VOTE_SILENT), of(SNK_VOTE_SILENT), of(SNK_VOTE_FAILED) }),
        SNK_VERDICT_UNCERTAIN);
    assert_int_equal(snk_ballot_touched(&ballot), 0x17);
    assert_int_equal(snk_ballot_unanswered(&ballot), 0x6);
    /* One is silent and two are still out: that could have been a majority. */
    begin(&ballot);
    assert_int_equal(
        tell_all(&ballot, 3, (snk_vote[]){ of(SNK_VOTE_SILENT), of(SNK_VOTE_FAILED), of(SNK_VOTE_FAILED) }),
        SNK_VERDICT_UNCERTAIN);
}

static void test_a_claim_that_was_given_up_gets_nothing(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    assert_int_equal(tell_all(&ballot, 2, (snk_vote[]){ yes(), of(SNK_VOTE_BURIED) }), SNK_VERDICT_BURIED);
}

/* ---- Rounds ---- */

static void test_a_token_that_is_too_low_is_raised_at_once(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    assert_int_equal(tell_all(&ballot, 4, (snk_vote[]){ yes(), low(4000), low(7000), low(5000) }), SNK_VERDICT_AGAIN);
    assert_int_equal(ballot.pause_ns, 0);
    assert_int_equal(ballot.above, 7000);
    snk_ballot_ask(&ballot, 7001);
    assert_int_equal(ballot.verdict, SNK_VERDICT_OPEN);
    /* Votes for the old token do not count, also if they come now. */
    snk_vote late = yes();
    assert_int_equal(snk_ballot_answer(&ballot, 1, 4, &late, 100 * S + MS), SNK_VERDICT_OPEN);
    assert_int_equal(tell_all(&ballot, 3, (snk_vote[]){ yes(), yes(), yes() }), SNK_VERDICT_GRANTED);
    assert_int_equal(ballot.token, 7001);
}

static void test_rounds_come_to_an_end(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    for (uint32_t round = 1; round <= SNK_BALLOT_ROUNDS_MAX; round++) {
        bool last = round == SNK_BALLOT_ROUNDS_MAX;
        assert_int_equal(tell_all(&ballot, 3, (snk_vote[]){ low(9000), low(9000), low(9000) }),
                         last ? SNK_VERDICT_SKEWED : SNK_VERDICT_AGAIN);
        assert_int_equal(ballot.passed, last ? round - 1 : round);
        if (!last)
            snk_ballot_ask(&ballot, 1000 + round);
    }
}

static void test_who_is_beaten_in_each_round_finds_it_busy(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    for (uint32_t round = 1; round <= SNK_BALLOT_ROUNDS_MAX; round++) {
        bool last = round == SNK_BALLOT_ROUNDS_MAX;
        snk_vote beaten = low(9000 + round);
        beaten.beaten = true;
        assert_int_equal(tell_all(&ballot, 5, (snk_vote[]){ beaten, yes(), yes(), beaten, beaten }),
                         last ? SNK_VERDICT_BUSY : SNK_VERDICT_AGAIN);
        assert_int_equal(ballot.passed, 0); /* no reason to reach further */
        if (!last)
            snk_ballot_ask(&ballot, 1000 + round);
    }
    assert_true(ballot.pause_ns > 0);
}

static void test_a_token_that_stays_out_of_reach_is_not_somebody_else(void **state)
{
    (void)state;
    snk_ballot ballot;
    snk_vote beaten = low(9000);
    beaten.beaten = true;
    begin(&ballot);
    assert_int_equal(tell_all_always(&ballot, 3, (snk_vote[]){ beaten, beaten, beaten }), SNK_VERDICT_SKEWED);
}

static void test_too_low_for_the_last_time_beside_somebody_else_is_busy(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    assert_int_equal(
        tell_all_always(&ballot, 5, (snk_vote[]){ yes(), yes(), taken(1, 5000, S), taken(1, 5000, S), low(9000) }),
        SNK_VERDICT_BUSY);
}

static void test_a_token_too_far_ahead_is_no_use(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    assert_int_equal(tell_all(&ballot, 3, (snk_vote[]){ of(SNK_VOTE_HIGH), of(SNK_VOTE_HIGH), of(SNK_VOTE_HIGH) }),
                     SNK_VERDICT_SKEWED);
}

/* ---- Others ---- */

static void test_a_lock_that_another_has_is_busy_until_its_majority_ends(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    assert_int_equal(
        tell_all(&ballot, 3, (snk_vote[]){ taken(1, 900, 3 * S), taken(1, 900, 9 * S), taken(1, 900, 5 * S) }),
        SNK_VERDICT_BUSY);
    assert_int_equal(ballot.pause_ns, 3 * S); /* then it has only two */
    assert_int_equal(snk_ballot_touched(&ballot), 1u << 3 | 1u << 4);
}

static void test_of_several_at_once_the_one_ahead_stays(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    assert_int_equal(
        tell_all(&ballot, 5,
                 (snk_vote[]){ yes(), yes(), taken(1, 2000, 10 * S), taken(2, 3000, 10 * S), taken(1, 2000, 10 * S) }),
        SNK_VERDICT_BUSY); /* as many votes, lower token */
    assert_true(ballot.pause_ns > 0 && ballot.pause_ns < S);
    begin(&ballot);
    assert_int_equal(
        tell_all(&ballot, 5,
                 (snk_vote[]){ yes(), yes(), taken(1, 2000, 10 * S), taken(2, 3000, 10 * S), taken(3, 4000, 10 * S) }),
        SNK_VERDICT_AGAIN); /* most votes */
    assert_true(ballot.pause_ns > 0);
}

static void test_with_equal_votes_the_higher_token_stays_and_then_the_higher_id(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    assert_int_equal(
        tell_all(&ballot, 5,
                 (snk_vote[]){ yes(), yes(), taken(1, 999, 10 * S), taken(1, 999, 10 * S), of(SNK_VOTE_FAILED) }),
        SNK_VERDICT_AGAIN);
    for (int higher = 0; higher < 2; higher++) {
        begin(&ballot);
        assert_int_equal(tell_all(&ballot, 5,
                                  (snk_vote[]){ yes(), yes(), taken(higher ? 101 : 99, 1000, 10 * S),
                                                taken(higher ? 101 : 99, 1000, 10 * S), of(SNK_VOTE_FAILED) }),
                         higher ? SNK_VERDICT_BUSY : SNK_VERDICT_AGAIN);
    }
}

static void test_who_stays_does_not_stay_for_ever(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    assert_int_equal(
        tell_all_always(&ballot, 5,
                        (snk_vote[]){ yes(), yes(), taken(1, 500, 8 * S), of(SNK_VOTE_FAILED), of(SNK_VOTE_FAILED) }),
        SNK_VERDICT_BUSY);
    assert_int_equal(ballot.pause_ns, 2 * S);
    assert_int_equal(snk_ballot_touched(&ballot), 0x3);
}

/* ---- What is to be taken back ---- */

static void test_what_a_round_left_unanswered_is_remembered(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    assert_int_equal(tell_all(&ballot, 3, (snk_vote[]){ low(2000), low(2000), of(SNK_VOTE_SILENT) }),
                     SNK_VERDICT_AGAIN);
    assert_int_equal(tell(&ballot, 3, low(2000)), SNK_VERDICT_AGAIN); /* node 4 is still out */
    snk_ballot_ask(&ballot, 2001);
    assert_int_equal(snk_ballot_touched(&ballot), 0x1F);
    for (uint32_t i = 0; i < 4; i++)
        (void)tell(&ballot, i, taken(1, 3000, S));
    assert_int_equal(ballot.verdict, SNK_VERDICT_BUSY);
    assert_int_equal(snk_ballot_touched(&ballot), 1u << 2 | 1u << 4);
    assert_int_equal(snk_ballot_unanswered(&ballot), 1u << 2);
    /* Both requests to node 4 end after the verdict, one of them without an answer. */
    snk_vote silent = of(SNK_VOTE_SILENT);
    snk_vote refused = taken(1, 3000, S);
    (void)snk_ballot_answer(&ballot, 1, 4, &silent, 101 * S);
    (void)snk_ballot_answer(&ballot, 2, 4, &refused, 101 * S);
    assert_int_equal(ballot.verdict, SNK_VERDICT_BUSY);
    assert_int_equal(snk_ballot_unanswered(&ballot), 1u << 2 | 1u << 4);
}

static void test_a_vote_of_an_earlier_round_is_taken_back_too(void **state)
{
    (void)state;
    snk_ballot ballot;
    begin(&ballot);
    (void)tell(&ballot, 0, yes());
    (void)tell(&ballot, 1, low(2000));
    (void)tell(&ballot, 2, low(2000));
    (void)tell(&ballot, 3, low(2000));
    snk_ballot_ask(&ballot, 2001);
    for (uint32_t i = 1; i < 4; i++)
        (void)tell(&ballot, i, taken(1, 3000, S));
    assert_int_equal(ballot.verdict, SNK_VERDICT_BUSY);
    assert_true((snk_ballot_touched(&ballot) & 1) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_of_five_votes_are_a_grant),
        cmocka_unit_test(test_nodes_that_a_grant_came_too_late_for_are_known),
        cmocka_unit_test(test_a_majority_that_comes_too_late_is_none),
        cmocka_unit_test(test_votes_of_nodes_that_forgot_do_not_count),
        cmocka_unit_test(test_too_few_nodes_that_could_be_asked_is_failure),
        cmocka_unit_test(test_too_few_answers_are_uncertain_if_a_majority_may_have_voted),
        cmocka_unit_test(test_a_claim_that_was_given_up_gets_nothing),
        cmocka_unit_test(test_a_token_that_is_too_low_is_raised_at_once),
        cmocka_unit_test(test_rounds_come_to_an_end),
        cmocka_unit_test(test_who_is_beaten_in_each_round_finds_it_busy),
        cmocka_unit_test(test_a_token_that_stays_out_of_reach_is_not_somebody_else),
        cmocka_unit_test(test_too_low_for_the_last_time_beside_somebody_else_is_busy),
        cmocka_unit_test(test_a_token_too_far_ahead_is_no_use),
        cmocka_unit_test(test_a_lock_that_another_has_is_busy_until_its_majority_ends),
        cmocka_unit_test(test_of_several_at_once_the_one_ahead_stays),
        cmocka_unit_test(test_with_equal_votes_the_higher_token_stays_and_then_the_higher_id),
        cmocka_unit_test(test_who_stays_does_not_stay_for_ever),
        cmocka_unit_test(test_what_a_round_left_unanswered_is_remembered),
        cmocka_unit_test(test_a_vote_of_an_earlier_round_is_taken_back_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
