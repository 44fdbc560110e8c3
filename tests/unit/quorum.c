#include "test.h"

#include "engine/quorum.h"

#define S SNK_NS_PER_S
#define MS SNK_NS_PER_MS
#define MINUTE_US INT64_C(60000000)

static const snk_quorum five = { .nodes = 5, .lease_max_ns = 60 * S };
static const snk_quorum four = { .nodes = 4, .lease_max_ns = 60 * S };

/* Five nodes that have shown these times at 100 s of ours. */
static void hear(snk_node_clock clocks[5], int64_t a, int64_t b, int64_t c, int64_t d, int64_t e)
{
    const int64_t times[] = { a, b, c, d, e };
    for (int i = 0; i < 5; i++) {
        snk_node_clock_init(&clocks[i]);
        if (times[i] != 0)
            snk_node_clock_heard(&clocks[i], times[i], 100 * S - 200 * SNK_NS_PER_US, 100 * S);
    }
}

/* ---- Clocks ---- */

static void test_a_clock_is_carried_on_by_ours(void **state)
{
    (void)state;
    snk_node_clock clock;
    snk_node_clock_init(&clock);
    assert_false(clock.known);
    snk_node_clock_heard(&clock, 5000, 9 * S, 10 * S);
    assert_int_equal(snk_node_clock_us(&clock, 13 * S), 5000 + 3000000);
}

static void test_a_round_trip_is_smoothed(void **state)
{
    (void)state;
    snk_node_clock clock;
    snk_node_clock_init(&clock);
    snk_node_clock_heard(&clock, 1, 0, 8 * MS);
    assert_int_equal(clock.round_trip_ns, 8 * MS);
    snk_node_clock_heard(&clock, 2, 10 * MS, 26 * MS);
    assert_int_equal(clock.round_trip_ns, 9 * MS);
}

static void test_a_node_counts_when_it_has_run_longer_than_any_lease(void **state)
{
    (void)state;
    snk_node_clock clock;
    snk_node_clock_init(&clock);
    assert_false(snk_node_clock_counts(&clock, 1000 * S)); /* nobody knows since when it runs */
    snk_node_clock_started(&clock, &five, 60 * S, 0, 100 * S);
    assert_false(snk_node_clock_counts(&clock, 101 * S - 1));
    assert_true(snk_node_clock_counts(&clock, 101 * S));
    snk_node_clock_started(&clock, &five, 0, 0, 200 * S); /* it was restarted */
    assert_false(snk_node_clock_counts(&clock, 261 * S - 1));
    assert_true(snk_node_clock_counts(&clock, 261 * S));
}

/* A server says for how long it has been running by a clock that can be set. */
static void test_a_run_cannot_have_begun_before_its_predecessor_was_heard(void **state)
{
    (void)state;
    snk_node_clock clock;
    snk_node_clock_init(&clock);
    snk_node_clock_started(&clock, &five, 3600 * S, 150 * S, 200 * S);
    assert_false(snk_node_clock_counts(&clock, 211 * S - 1));
    assert_true(snk_node_clock_counts(&clock, 211 * S));
    snk_node_clock_started(&clock, &five, 20 * S, 150 * S, 200 * S); /* that may well be */
    assert_false(snk_node_clock_counts(&clock, 241 * S - 1));
    assert_true(snk_node_clock_counts(&clock, 241 * S));
}

/* ---- Tokens ---- */

static void test_a_token_lies_above_the_highest_clock(void **state)
{
    (void)state;
    snk_node_clock clocks[5];
    hear(clocks, 1000000, 1000900, 1000300, 0, 1000100);
    assert_int_equal(snk_quorum_propose(&five, clocks, 100 * S, 0, 0), 1000900 + SNK_QUORUM_LEAD_US);
    assert_int_equal(snk_quorum_propose(&five, clocks, 101 * S, 0, 0), 2000900 + SNK_QUORUM_LEAD_US);
}

static void test_the_lead_lies_above_the_round_trip(void **state)
{
    (void)state;
    snk_node_clock clocks[5];
    hear(clocks, 1000000, 1000000, 1000000, 1000000, 1000000);
    snk_node_clock_heard(&clocks[2], 1000000, 99 * S, 100 * S); /* an eighth of it is believed */
    int64_t lead_us = (int64_t)snk_quorum_propose(&five, clocks, 100 * S, 0, 0) - 1000000;
    assert_true(lead_us > 2 * clocks[2].round_trip_ns / 1000);
    /* But never so much that a node would refuse it. */
    snk_node_clock_heard(&clocks[2], 1000000, 0, 100 * S);
    lead_us = (int64_t)snk_quorum_propose(&five, clocks, 100 * S, 0, 7) - 1000000;
    assert_true(lead_us <= MINUTE_US / 2);
}

static void test_a_token_lies_above_those_that_are_taken(void **state)
{
    (void)state;
    snk_node_clock clocks[5];
    hear(clocks, 1000000, 1000000, 1000000, 1000000, 1000000);
    assert_int_equal(snk_quorum_propose(&five, clocks, 100 * S, 5000000, 0), 5000001);
    /* Unless no majority could vote for that. */
    assert_int_equal(snk_quorum_propose(&five, clocks, 100 * S, 1000000 + MINUTE_US, 0), 1000000 + SNK_QUORUM_LEAD_US);
}

static void test_a_clock_that_is_quite_wrong_is_left_out(void **state)
{
    (void)state;
    snk_node_clock clocks[5];
    hear(clocks, 1000000, 1000000 + 10 * MINUTE_US, 1000000, 1000100, 1000000 + 10 * MINUTE_US);
    assert_int_equal(snk_quorum_propose(&five, clocks, 100 * S, 0, 0), 1000100 + SNK_QUORUM_LEAD_US);
}

static void test_a_proposal_that_clocks_have_passed_reaches_further(void **state)
{
    (void)state;
    snk_node_clock clocks[5];
    hear(clocks, 1000000, 1000000, 1000000, 1000000, 1000000);
    assert_int_equal(snk_quorum_propose(&five, clocks, 100 * S, 0, 1), 1000000 + 4 * SNK_QUORUM_LEAD_US);
    assert_int_equal(snk_quorum_propose(&five, clocks, 100 * S, 0, 2), 1000000 + 16 * SNK_QUORUM_LEAD_US);
}

static void test_without_any_clock_there_is_no_token(void **state)
{
    (void)state;
    snk_node_clock clocks[5];
    hear(clocks, 0, 0, 0, 0, 0);
    assert_int_equal(snk_quorum_propose(&five, clocks, 100 * S, 0, 0), 0);
}

/* ---- Tallies ---- */

/* y yes, n no, f failed, s silent, - open */
static void say(snk_node_says says[], const char *words)
{
    for (int i = 0; words[i] != '\0'; i++)
        says[i] = words[i] == 'y'   ? SNK_NODE_YES
                  : words[i] == 'n' ? SNK_NODE_NO
                  : words[i] == 'f' ? SNK_NODE_FAILED
                  : words[i] == 's' ? SNK_NODE_SILENT
                                    : SNK_NODE_OPEN;
}

typedef struct tally_row {
    const char *words;
    snk_quorum_says renewal;
    snk_quorum_says release;
} tally_row;

static void check_rows(const snk_quorum *quorum, const tally_row rows[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        snk_node_says says[SNK_QUORUM_NODES_MAX];
        say(says, rows[i].words);
        if (snk_quorum_renewal(quorum, says) != rows[i].renewal)
            fail_msg("renewal %s: %d", rows[i].words, (int)snk_quorum_renewal(quorum, says));
        if (snk_quorum_release(quorum, says) != rows[i].release)
            fail_msg("release %s: %d", rows[i].words, (int)snk_quorum_release(quorum, says));
    }
}

static void test_five_nodes_are_tallied(void **state)
{
    (void)state;
    static const tally_row rows[] = {
        { "-----", SNK_QUORUM_OPEN, SNK_QUORUM_OPEN },
        { "yy---", SNK_QUORUM_OPEN, SNK_QUORUM_OPEN },
        { "yyy--", SNK_QUORUM_YES, SNK_QUORUM_YES },
        { "nnn--", SNK_QUORUM_NO, SNK_QUORUM_NO },
        { "ynynn", SNK_QUORUM_NO, SNK_QUORUM_NO },
        { "yynn-", SNK_QUORUM_OPEN, SNK_QUORUM_OPEN },
        { "yynnf", SNK_QUORUM_FAILED, SNK_QUORUM_YES }, /* it cannot be excluded that the fifth had it */
        { "yynns", SNK_QUORUM_UNCERTAIN, SNK_QUORUM_YES },
        { "yffff", SNK_QUORUM_FAILED, SNK_QUORUM_FAILED },
        { "ffff-", SNK_QUORUM_UNCERTAIN, SNK_QUORUM_UNCERTAIN },
        { "yfff-", SNK_QUORUM_UNCERTAIN, SNK_QUORUM_UNCERTAIN },
        { "ssssy", SNK_QUORUM_UNCERTAIN, SNK_QUORUM_UNCERTAIN },
        { "fffff", SNK_QUORUM_FAILED, SNK_QUORUM_FAILED },
        { "yysss", SNK_QUORUM_UNCERTAIN, SNK_QUORUM_UNCERTAIN },
        { "yysn-", SNK_QUORUM_OPEN, SNK_QUORUM_YES }, /* the last one changes nothing */
        { "nnsy-", SNK_QUORUM_OPEN, SNK_QUORUM_OPEN },
    };
    check_rows(&five, rows, sizeof rows / sizeof rows[0]);
}

static void test_of_four_nodes_three_are_a_majority(void **state)
{
    (void)state;
    static const tally_row rows[] = {
        { "yy--", SNK_QUORUM_OPEN, SNK_QUORUM_OPEN },
        { "yyy-", SNK_QUORUM_YES, SNK_QUORUM_YES },
        { "yynn", SNK_QUORUM_NO, SNK_QUORUM_NO },
        { "yynf", SNK_QUORUM_FAILED, SNK_QUORUM_YES },
        { "yyss", SNK_QUORUM_UNCERTAIN, SNK_QUORUM_UNCERTAIN },
    };
    check_rows(&four, rows, sizeof rows / sizeof rows[0]);
}

static void test_only_a_claim_that_a_majority_has_is_spread(void **state)
{
    (void)state;
    snk_node_says says[5];
    say(says, "ynysy");
    assert_int_equal(snk_quorum_adopters(&five, says), 1u << 1);
    say(says, "yyynn");
    assert_int_equal(snk_quorum_adopters(&five, says), 1u << 3 | 1u << 4);
    say(says, "ynysn");
    assert_int_equal(snk_quorum_adopters(&five, says), 0);
    say(says, "yyyyf");
    assert_int_equal(snk_quorum_adopters(&five, says), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_clock_is_carried_on_by_ours),
        cmocka_unit_test(test_a_round_trip_is_smoothed),
        cmocka_unit_test(test_a_node_counts_when_it_has_run_longer_than_any_lease),
        cmocka_unit_test(test_a_run_cannot_have_begun_before_its_predecessor_was_heard),
        cmocka_unit_test(test_a_token_lies_above_the_highest_clock),
        cmocka_unit_test(test_the_lead_lies_above_the_round_trip),
        cmocka_unit_test(test_a_token_lies_above_those_that_are_taken),
        cmocka_unit_test(test_a_clock_that_is_quite_wrong_is_left_out),
        cmocka_unit_test(test_a_proposal_that_clocks_have_passed_reaches_further),
        cmocka_unit_test(test_without_any_clock_there_is_no_token),
        cmocka_unit_test(test_five_nodes_are_tallied),
        cmocka_unit_test(test_of_four_nodes_three_are_a_majority),
        cmocka_unit_test(test_only_a_claim_that_a_majority_has_is_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
