/* Hand-overs on a MariaDB server that is slow, or has other things to do. */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "claims.h"
#include "mysql_bed.h"

#define LEASE_MS 20000

static void run(MYSQL *program, const char *sql)
{
    if (mysql_query(program, sql) != 0)
        fail_msg("%s: %s", sql, mysql_error(program));
    mysql_free_result(mysql_store_result(program));
}

static void pause_ms(int64_t ms)
{
    struct timespec pause = snk_timespec(ms * SNK_NS_PER_MS);
    (void)nanosleep(&pause, NULL);
}

/* ---- Being told ---- */

#define SLEEPERS 6

typedef struct sleepers {
    pthread_t threads[SLEEPERS];
    _Atomic bool stop;
} sleepers;

typedef struct sleeper {
    sleepers *all;
    MYSQL *session;
} sleeper;

static void *sleep_and_sleep(void *argument)
{
    sleeper *self = argument;
    while (!atomic_load(&self->all->stop))
        (void)mysql_query(self->session, "BEGIN NOT ATOMIC DECLARE i INT DEFAULT 0;"
                                         " WHILE i < 1000 DO DO SLEEP(0.00001); SET i = i + 1; END WHILE; END");
    return NULL;
}

/* One hand-over from a to b; how long it took until b had the lock. */
static int64_t hand_over_ms(snk_store *a, snk_store *b)
{
    _Atomic uint32_t nothing = 0;
    snk_answer answer;
    snk_id holder = test_must_hold(a, "x");
    snk_id waiter = test_must_queue(b, "x", &answer);
    int64_t before_ns = snk_now_ns();
    test_expect_answer(test_release(a, "x", &holder), SNK_ANSWER_DONE);
    assert_true(b->ops->wait(b, answer.ticket, &nothing, 0, snk_now_ns() + 30 * SNK_NS_PER_S));
    test_expect_answer(test_renew(b, "x", &waiter, LEASE_MS), SNK_ANSWER_HELD);
    int64_t took_ms = (snk_now_ns() - before_ns) / SNK_NS_PER_MS;
    test_expect_answer(test_release(b, "x", &waiter), SNK_ANSWER_DONE);
    return took_ms;
}

/* Sessions of other programs that sleep: whoever calls one that waits to be told is not held up by them. */
static void test_hand_overs_are_quick_while_other_sessions_sleep(void **state)
{
    mysql_bed *bed = *state;
    static sleepers all;
    static sleeper each[SLEEPERS];
    for (size_t i = 0; i < SLEEPERS; i++) {
        each[i] = (sleeper){ .all = &all, .session = mysql_bed_connect(bed, "root", "") };
        assert_int_equal(pthread_create(&all.threads[i], NULL, sleep_and_sleep, &each[i]), 0);
    }
    snk_store *a = test_store(mysql_bed_url(bed, NULL));
    snk_store *b = test_store(mysql_bed_url(bed, NULL));
    int64_t longest_ms = 0;
    for (unsigned i = 0; i < test_scaled(3000); i++) {
        int64_t took_ms = hand_over_ms(a, b);
        longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
    }
    print_message("# figure: the longest of %u hand-overs took %d ms\n", test_scaled(3000), (int)longest_ms);
    assert_true(longest_ms < 1900); /* the two seconds that a KILL QUERY waits in vain */
    atomic_store(&all.stop, true);
    for (size_t i = 0; i < SLEEPERS; i++) {
        assert_int_equal(pthread_join(all.threads[i], NULL), 0);
        mysql_close(each[i].session);
    }
    test_store_close(b);
    test_store_close(a);
}

/* ---- Offers ---- */

typedef struct releaser {
    snk_store *store;
    snk_id claim;
    snk_answer answer;
} releaser;

static void *release(void *argument)
{
    releaser *self = argument;
    self->answer = test_release(self->store, "x", &self->claim);
    return NULL;
}

/* An offer lasts two seconds: from when it was made, not from when somebody wanted to. */
static void test_a_release_that_was_held_up_makes_an_offer_that_lasts(void **state)
{
    mysql_bed *bed = *state;
    snk_store *a = test_store(mysql_bed_url(bed, "timeout=20s"));
    snk_store *b = test_store(mysql_bed_url(bed, "timeout=20s"));
    releaser self = { .store = a, .claim = test_must_hold(a, "x") };
    snk_id waiter = test_must_queue(b, "x", NULL);
    MYSQL *program = mysql_bed_connect(bed, "root", "");
    run(program, "BEGIN");
    run(program, "SELECT token FROM sneck_state FOR UPDATE");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, release, &self), 0);
    mysql_bed_await(bed,
                    "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS"
                    " WHERE VARIABLE_NAME = 'Innodb_row_lock_current_waits'",
                    1);
    pause_ms(2500);
    run(program, "COMMIT");
    assert_int_equal(pthread_join(thread, NULL), 0);
    test_expect_kind(&self.answer, SNK_ANSWER_DONE);
    test_expect_answer(test_renew(b, "x", &waiter, LEASE_MS), SNK_ANSWER_HELD);
    mysql_close(program);
    test_store_close(b);
    test_store_close(a);
}

/* ---- Rows; these tests change a function of the server, and are the last ---- */

#define ROW_LOCK                                                                                                       \
    "CREATE OR REPLACE FUNCTION sneck_row_lock(a_name VARBINARY(700), a_claim CHAR(32) CHARACTER SET ascii)"           \
    " RETURNS INT MODIFIES SQL DATA "

/* The documented user loses its right with the function that was there. */
static void replace_row_lock(mysql_bed *bed, const char *definition)
{
    mysql_bed_do(bed, "%s", definition);
    mysql_bed_do(bed, "GRANT EXECUTE ON FUNCTION locks.sneck_row_lock TO sneck");
}

/* Whoever is next waits 20 ms for a row that somebody has; that a server takes longer to lock a free one is another thing. */
static void test_a_slow_server_gives_a_row_that_is_free(void **state)
{
    mysql_bed *bed = *state;
    snk_store *a = test_store(mysql_bed_url(bed, "mode=row"));
    snk_store *b = test_store(mysql_bed_url(bed, "mode=row"));
    replace_row_lock(bed, ROW_LOCK
                     "BEGIN"
                     "    DECLARE v_version BIGINT;"
                     "    DO SLEEP(0.1);"
                     "    SELECT version INTO v_version FROM sneck_lock WHERE resource_name = a_name FOR UPDATE;"
                     "    RETURN IF(v_version IS NULL, 0, GET_LOCK(CONCAT('sneck.r.', a_claim), 0)); "
                     "END");
    snk_id holder = test_must_hold(a, "x");
    snk_id waiter = test_must_queue(b, "x", NULL);
    test_expect_answer(test_release(a, "x", &holder), SNK_ANSWER_DONE);
    test_expect_answer(test_renew(b, "x", &waiter, LEASE_MS), SNK_ANSWER_HELD);
    test_expect_answer(test_release(b, "x", &waiter), SNK_ANSWER_DONE);
    test_store_close(b);
    test_store_close(a);
}

/* It was not there when it was looked for; when it is to be made, another has made it, and has it for long. */
static void test_a_row_that_another_makes_and_keeps_is_busy(void **state)
{
    mysql_bed *bed = *state;
    snk_store *store = test_store(mysql_bed_url(bed, "mode=row"));
    replace_row_lock(bed, ROW_LOCK "RETURN 0");
    MYSQL *program = mysql_bed_connect(bed, "root", "");
    run(program, "BEGIN");
    run(program, "INSERT INTO sneck_lock VALUES ('lock:x', 0)");
    snk_id claim = test_id();
    int64_t before_ns = snk_now_ns();
    test_expect_answer(test_acquire(store, "x", &claim, TEST_TRY), SNK_ANSWER_BUSY);
    assert_true(snk_now_ns() - before_ns < 1900 * SNK_NS_PER_MS); /* a lock wait ends after two seconds */
    run(program, "ROLLBACK");
    mysql_close(program);
    test_store_close(store);
}

/* Somebody else had the row when it was tried, and nobody has the lock: that was one that tried as well. */
static void test_a_row_that_was_locked_for_a_moment_is_no_hold(void **state)
{
    mysql_bed *bed = *state;
    snk_store *store = test_store(mysql_bed_url(bed, "mode=row"));
    replace_row_lock(bed, ROW_LOCK
                     "BEGIN"
                     "    DECLARE v_version BIGINT;"
                     "    SET @looks = COALESCE(@looks, 0) + 1;"
                     "    IF @looks = 2 THEN" /* the first one made the row */
                     "        SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205;"
                     "    END IF;"
                     "    SELECT version INTO v_version FROM sneck_lock WHERE resource_name = a_name FOR UPDATE;"
                     "    RETURN IF(v_version IS NULL, 0, GET_LOCK(CONCAT('sneck.r.', a_claim), 0)); "
                     "END");
    snk_id claim = test_must_hold(store, "x");
    test_expect_answer(test_renew(store, "x", &claim, LEASE_MS), SNK_ANSWER_HELD);
    test_expect_answer(test_release(store, "x", &claim), SNK_ANSWER_DONE);
    assert_int_equal(mysql_bed_number(bed, "SELECT COUNT(*) FROM sneck_hold"), 0);
    test_store_close(store);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, mysql_bed_set_up, mysql_bed_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_hand_overs_are_quick_while_other_sessions_sleep),
        TEST(test_a_release_that_was_held_up_makes_an_offer_that_lasts),
        TEST(test_a_slow_server_gives_a_row_that_is_free),
        TEST(test_a_row_that_another_makes_and_keeps_is_busy),
        TEST(test_a_row_that_was_locked_for_a_moment_is_no_hold),
    };
    return cmocka_run_group_tests(tests, NULL, mysql_bed_end);
}
