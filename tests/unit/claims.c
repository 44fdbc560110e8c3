/*
 * What a client of a quorum knows about its claims, above all when it is worth trying again.
 */
#include "test.h"

#include "store/quorum/claims.h"

#define MAJORITY 3 /* of five nodes, 0 to 4 */

static const snk_id claim = { { 7 } };

typedef struct world {
    snk_quorum_claims claims;
    unsigned rings;
} world;

static int set_up(void **state)
{
    static world made;
    made.rings = 0;
    assert_true(snk_quorum_claims_init(&made.claims));
    assert_true(snk_quorum_claims_add(&made.claims, &claim, "x", "", 1));
    *state = &made;
    return 0;
}

static int tear_down(void **state)
{
    world *made = *state;
    snk_quorum_claims_deinit(&made->claims);
    return 0;
}

static void ring(void *context, const char *name, const snk_id *id)
{
    world *made = context;
    assert_string_equal(name, "x");
    assert_memory_equal(id, &claim, sizeof claim);
    made->rings++;
}

static void hear(world *made, uint32_t node)
{
    snk_quorum_claims_hear(&made->claims, "x", node, MAJORITY, ring, made);
}

/* Says whether there was news already. */
static bool wait(world *made, uint32_t free_nodes)
{
    bool news = false;
    const snk_quorum_refusal refusal = { .free = free_nodes };
    assert_true(snk_quorum_claims_wait(&made->claims, &claim, &refusal, MAJORITY, &news));
    return news;
}

static void try_again(world *made)
{
    snk_quorum_claim before;
    assert_true(snk_quorum_claims_try(&made->claims, &claim, &before));
}

static void test_one_that_waits_is_rung_once_when_a_majority_was_released(void **state)
{
    world *made = *state;
    assert_false(wait(made, 0));
    for (uint32_t node = 0; node < 5; node++) {
        hear(made, node);
        hear(made, node);
        assert_int_equal(made->rings, node + 1 >= MAJORITY);
    }
}

static void test_what_is_heard_during_a_try_is_news_at_its_end(void **state)
{
    world *made = *state;
    for (uint32_t node = 0; node < MAJORITY; node++)
        hear(made, node);
    assert_int_equal(made->rings, 0);
    assert_true(wait(made, 0));
    try_again(made);
    assert_false(wait(made, 0));
}

static void test_a_try_that_came_too_early_does_not_use_up_what_was_heard(void **state)
{
    world *made = *state;
    assert_false(wait(made, 0));
    hear(made, 0);
    try_again(made);
    assert_false(wait(made, 1U << 0)); /* it found that node free, and two are to come */
    hear(made, 1);
    assert_int_equal(made->rings, 0);
    hear(made, 2);
    assert_int_equal(made->rings, 1);
}

static void test_free_nodes_alone_are_no_news(void **state)
{
    world *made = *state;
    assert_false(wait(made, 1U << 0 | 1U << 1 | 1U << 2));
    hear(made, 4);
    assert_int_equal(made->rings, 1);
    try_again(made);
    assert_false(wait(made, 0));
    hear(made, 4);
    assert_int_equal(made->rings, 1);
}

static void test_one_that_holds_is_not_rung(void **state)
{
    world *made = *state;
    bool listens = true;
    assert_true(snk_quorum_claims_hold(&made->claims, &claim, &(snk_quorum_claim){ .held_by = 1 }, &listens));
    assert_false(listens);
    for (uint32_t node = 0; node < 5; node++)
        hear(made, node);
    assert_int_equal(made->rings, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_that_waits_is_rung_once_when_a_majority_was_released),
        TEST(test_what_is_heard_during_a_try_is_news_at_its_end),
        TEST(test_a_try_that_came_too_early_does_not_use_up_what_was_heard),
        TEST(test_free_nodes_alone_are_no_news),
        TEST(test_one_that_holds_is_not_rung),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
