/* Who is stuck, from what a store says: sneck show --deadlocks. */
#include "test.h"

#include <string.h>

#include "circle.h"

#define AGE_MS 1000

static sneck_party party(const char *owner, const char *mode)
{
    return (sneck_party){ .owner = owner, .host = "elsewhere", .why = "", .mode = mode, .age_ms = AGE_MS };
}

/* Owners in one text, separated by blanks; those who wait after a '|'. An owner in capitals is alone, others share. */
static void add_lock(snk_stakes *stakes, const char *name, const char *line, const char *small_mode)
{
    sneck_party parties[16];
    char owners[16][2];
    size_t count = 0;
    size_t holders = 0;
    for (const char *letter = line; *letter != '\0'; letter++) {
        if (*letter == '|')
            holders = count;
        if (*letter == '|' || *letter == ' ')
            continue;
        bool alone = *letter >= 'A' && *letter <= 'Z';
        owners[count][0] = (char)(alone ? *letter : *letter - 'a' + 'A');
        owners[count][1] = '\0';
        parties[count] = party(owners[count], alone ? "exclusive" : small_mode);
        count++;
    }
    sneck_info info = {
        .name = name,
        .held = holders > 0,
        .holder_count = holders,
        .holders = parties,
        .waiter_count = count - holders,
        .waiters = parties + holders,
    };
    snk_stakes_add(stakes, &info, AGE_MS);
}

/* The owners of the next circle, in order, as text. */
static const char *next_circle(snk_stakes *stakes)
{
    static char text[32];
    size_t length = 0;
    size_t first = snk_stakes_next_circle(stakes);
    if (first == stakes->count)
        return "";
    size_t at = first;
    do {
        text[length++] = stakes->at[at].owner[0];
        at = stakes->at[at].next;
    } while (at != first && length < sizeof text - 1);
    text[length] = '\0';
    return text;
}

typedef struct lock_line {
    const char *name;
    const char *line;
    const char *small_mode;
} lock_line;

/* Insists on the one circle that there is; "": on none. */
static void expect(const lock_line locks[], size_t count, const char *circle)
{
    snk_stakes stakes = { 0 };
    for (size_t i = 0; i < count; i++)
        add_lock(&stakes, locks[i].name, locks[i].line, locks[i].small_mode);
    assert_false(stakes.out_of_memory);
    snk_stakes_find_stuck(&stakes);
    const char *found = next_circle(&stakes);
    assert_int_equal(strlen(found), strlen(circle));
    for (const char *letter = circle; *letter != '\0'; letter++)
        assert_non_null(strchr(found, *letter));
    assert_string_equal(next_circle(&stakes), "");
    snk_stakes_deinit(&stakes);
}

#define EXPECT(circle, ...)                                                                                            \
    do {                                                                                                               \
        const lock_line locks[] = { __VA_ARGS__ };                                                                     \
        expect(locks, sizeof locks / sizeof locks[0], circle);                                                         \
    } while (0)

static void test_two_in_a_circle(void **state)
{
    (void)state;
    EXPECT("AB", { "x", "A|B", "shared" }, { "y", "B|A", "shared" });
}

static void test_a_chain_is_no_circle(void **state)
{
    (void)state;
    EXPECT("", { "x", "A|B", "shared" }, { "y", "B|C", "shared" }, { "z", "C|D", "shared" });
}

static void test_those_who_wait_behind_a_circle_are_not_in_it(void **state)
{
    (void)state;
    EXPECT("ABC", { "w", "D|E", "shared" }, { "x", "A|BD", "shared" }, { "y", "B|C", "shared" },
           { "z", "C|A", "shared" });
}

static void test_a_writer_waits_for_each_reader(void **state)
{
    (void)state;
    EXPECT("AB", { "x", "a c d|B", "shared" }, { "y", "B|A", "shared" });
}

static void test_readers_do_not_wait_for_readers(void **state)
{
    (void)state;
    EXPECT("", { "x", "a|b", "shared" }, { "y", "b|a", "shared" });
}

static void test_a_reader_waits_for_a_writer_that_came_before(void **state)
{
    (void)state;
    EXPECT("ABC", { "x", "a|B c", "shared" }, { "y", "C|A", "shared" });
}

static void test_a_permit_can_come_from_anybody(void **state)
{
    (void)state;
    EXPECT("", { "x", "a c|b", "permit" }, { "y", "B|A", "shared" });
    EXPECT("AB", { "x", "a c|b", "permit" }, { "y", "B|A C", "shared" });
}

static void test_whoever_came_during_the_look_does_not_count(void **state)
{
    (void)state;
    snk_stakes stakes = { 0 };
    sneck_party holder = party("A", "exclusive");
    sneck_party waiter = party("A", "exclusive");
    waiter.age_ms = AGE_MS - 1;
    sneck_info info = { .name = "x", .holder_count = 1, .holders = &holder, .waiter_count = 1, .waiters = &waiter };
    snk_stakes_add(&stakes, &info, AGE_MS);
    assert_int_equal(stakes.count, 1);
    snk_stakes_deinit(&stakes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_in_a_circle),
        cmocka_unit_test(test_a_chain_is_no_circle),
        cmocka_unit_test(test_those_who_wait_behind_a_circle_are_not_in_it),
        cmocka_unit_test(test_a_writer_waits_for_each_reader),
        cmocka_unit_test(test_readers_do_not_wait_for_readers),
        cmocka_unit_test(test_a_reader_waits_for_a_writer_that_came_before),
        cmocka_unit_test(test_a_permit_can_come_from_anybody),
        cmocka_unit_test(test_whoever_came_during_the_look_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
