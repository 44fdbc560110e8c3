/* The embedded store when processes die, stop, or fork. */
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/futex.h"
#include "children.h"
#include "lockfile.h"
#include "store/sqlite/sqlite.h"
#include "store/view.h"

#define MS SNK_NS_PER_MS
/* Leases are long and looks seldom: what is quick here is quick because a death was noticed. */
#define SOON_NS (10 * SNK_NS_PER_S)

static size_t count_waiters(snk_store *store, const char *name)
{
    snk_view *view = snk_view_new();
    assert_int_equal(store->ops->inspect(store, name, view, NULL), SNECK_OK);
    size_t count = view->info.waiter_count;
    snk_view_free(view);
    return count;
}

static snk_store *open_adopted(const char *url)
{
    sneck_error error;
    snk_store *store = NULL;
    if (test_store_open(url, &store, &error) != SNECK_OK)
        _exit(3);
    store->ops->adopt_thread(store);
    return store;
}

/* A number in a file of the present folder. */
static bool write_number(const char *name, unsigned long number)
{
    FILE *file = fopen(name, "we");
    return file != NULL && fprintf(file, "%lu\n", number) > 0 && fclose(file) == 0;
}

static bool read_number(const char *name, unsigned long *number_out)
{
    char text[32] = "";
    FILE *file = fopen(name, "re");
    if (file == NULL || fgets(text, sizeof text, file) == NULL || fclose(file) != 0)
        return false;
    *number_out = strtoul(text, NULL, 10);
    return true;
}

static void wait_for_ever(void)
{
    for (;;)
        (void)pause();
}

/* Holds x and y until it is killed. */
static int hold(void *context)
{
    test_place *here = context;
    snk_store *store = open_adopted(here->url);
    snk_id claim = { { 1 } };
    CHECK(test_acquire(store, "x", &claim, TEST_TRY).kind == SNK_ANSWER_HELD);
    claim.bytes[0] = 2;
    CHECK(test_acquire(store, "y", &claim, TEST_TRY).kind == SNK_ANSWER_HELD);
    test_child_ready();
    wait_for_ever();
    return 0;
}

/* Waits for x until it is killed. */
static int queue(void *context)
{
    test_place *here = context;
    snk_store *store = open_adopted(here->url);
    snk_id claim = { { 3 } };
    CHECK(test_acquire(store, "x", &claim, TEST_QUEUE).kind == SNK_ANSWER_QUEUED);
    test_child_ready();
    wait_for_ever();
    return 0;
}

typedef struct taker {
    snk_store *store;
    const char *name;
    int64_t held_at_ns;
    _Atomic uint32_t waits; /* 1: has asked, and waits or will in an instant */
    unsigned looks;
    snk_answer last; /* what it was told in the end */
} taker;

static void *take(void *context)
{
    taker *taking = context;
    _Atomic uint32_t nothing = 0;
    snk_id claim = test_id();
    snk_answer answer = test_acquire(taking->store, taking->name, &claim, TEST_QUEUE);
    while (answer.kind == SNK_ANSWER_QUEUED) {
        atomic_store(&taking->waits, 1);
        snk_futex_wake(&taking->waits, 1, false);
        (void)taking->store->ops->wait(taking->store, answer.ticket, &nothing, 0, snk_now_ns() + 60 * SNK_NS_PER_S);
        answer = test_renew(taking->store, taking->name, &claim, TEST_LEASE_MS);
        taking->looks++;
    }
    taking->last = answer;
    taking->held_at_ns = answer.kind == SNK_ANSWER_HELD ? snk_now_ns() : 0;
    (void)test_release(taking->store, taking->name, &claim);
    return NULL;
}

static void await_waiting(taker *taking)
{
    while (atomic_load(&taking->waits) == 0)
        (void)snk_futex_wait_any(&(snk_futex_word){ .word = &taking->waits, .expected = 0 }, 1, SNK_NEVER_NS);
}

static int compare_times(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static void test_a_killed_holder_is_replaced_at_once(void **state)
{
    test_place *here = *state;
    unsigned rounds = test_scaled(1000);
    int64_t *times = calloc(rounds, sizeof *times);
    for (unsigned i = 0; i < rounds; i++) {
        test_child child = test_child_start(hold, here);
        test_child_await(&child);
        snk_store *store = test_store(here->url);
        taker taking = { .store = store, .name = "x" };
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, take, &taking), 0);
        await_waiting(&taking);
        int64_t killed_at_ns = snk_now_ns();
        test_child_kill(&child);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(taking.held_at_ns != 0);
        times[i] = taking.held_at_ns - killed_at_ns;
        assert_true(times[i] < SOON_NS);
        assert_true(taking.looks < 20);
        test_store_close(store);
    }
    qsort(times, rounds, sizeof *times, compare_times);
    int64_t median_ns = times[rounds / 2];
    int64_t p99_ns = times[rounds * 99 / 100];
    printf("# figure: killed holder replaced: p50 %.2f ms, p99 %.2f ms\n", (double)median_ns / 1e6,
           (double)p99_ns / 1e6);
    free(times);
}

static void test_everybody_who_waits_for_a_killed_holder_is_woken(void **state)
{
    test_place *here = *state;
    enum {
        TAKERS = 6
    };
    for (unsigned round = 0; round < test_scaled(200); round++) {
        test_child child = test_child_start(hold, here);
        test_child_await(&child);
        taker takers[TAKERS];
        pthread_t threads[TAKERS];
        for (size_t i = 0; i < TAKERS; i++) {
            takers[i] = (taker){ .store = test_store(here->url), .name = i % 2 == 0 ? "x" : "y" };
            assert_int_equal(pthread_create(&threads[i], NULL, take, &takers[i]), 0);
            await_waiting(&takers[i]);
        }
        int64_t killed_at_ns = snk_now_ns();
        test_child_kill(&child);
        for (size_t i = 0; i < TAKERS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_true(takers[i].held_at_ns != 0 && takers[i].held_at_ns - killed_at_ns < SOON_NS);
            test_store_close(takers[i].store);
        }
    }
}

static void test_the_death_of_a_holder_is_an_incident(void **state)
{
    test_place *here = *state;
    test_child child = test_child_start(hold, here);
    test_child_await(&child);
    test_child_kill(&child);
    snk_store *store = test_store(here->url);
    (void)test_must_hold(store, "x");
    snk_view *view = snk_view_new();
    assert_int_equal(store->ops->inspect(store, "x", view, NULL), SNECK_OK);
    assert_int_equal(view->info.incident_count, 1);
    assert_string_equal(view->info.incidents[0].kind, "died");
    snk_view_free(view);
    test_store_close(store);
}

static void test_a_killed_waiter_is_passed_over(void **state)
{
    test_place *here = *state;
    for (unsigned round = 0; round < test_scaled(500); round++) {
        snk_store *holder = test_store(here->url);
        snk_store *next = test_store(here->url);
        snk_id held = test_must_hold(holder, "x");
        test_child child = test_child_start(queue, here);
        test_child_await(&child);
        snk_id waiting = test_must_queue(next, "x", NULL);
        test_child_kill(&child);
        test_expect_answer(test_release(holder, "x", &held), SNK_ANSWER_DONE);
        test_expect_answer(test_renew(next, "x", &waiting, TEST_LEASE_MS), SNK_ANSWER_HELD);
        test_expect_answer(test_release(next, "x", &waiting), SNK_ANSWER_DONE);
        test_store_close(next);
        test_store_close(holder);
    }
}

static void test_a_waiter_behind_a_killed_one_takes_a_new_aim(void **state)
{
    test_place *here = *state;
    snk_store *holder = test_store(here->url);
    snk_store *next = test_store(here->url);
    holder->ops->adopt_thread(holder);
    (void)test_must_hold(holder, "x");
    test_child child = test_child_start(queue, here);
    test_child_await(&child);
    snk_answer answer;
    snk_id waiting = test_must_queue(next, "x", &answer);
    assert_int_equal(count_waiters(holder, "x"), 2);
    test_child_kill(&child);
    _Atomic uint32_t nothing = 0;
    assert_true(next->ops->wait(next, answer.ticket, &nothing, 0, snk_now_ns() + SOON_NS));
    answer = test_renew(next, "x", &waiting, TEST_LEASE_MS);
    test_expect_kind(&answer, SNK_ANSWER_QUEUED);
    assert_int_equal(count_waiters(holder, "x"), 1);
    /* The new ticket watches the holder, who lives. */
    assert_false(next->ops->wait(next, answer.ticket, &nothing, 0, snk_now_ns() + 50 * MS));
    holder->ops->disown_thread(holder);
    test_store_close(next);
    test_store_close(holder);
}

static void test_a_waiter_that_leaves_tells_the_one_behind(void **state)
{
    test_place *here = *state;
    snk_store *a = test_store(here->url);
    snk_store *b = test_store(here->url);
    snk_store *c = test_store(here->url);
    (void)test_must_hold(a, "x");
    snk_id leaving = test_must_queue(b, "x", NULL);
    snk_answer answer;
    (void)test_must_queue(c, "x", &answer);
    test_expect_answer(test_release(b, "x", &leaving), SNK_ANSWER_DONE);
    _Atomic uint32_t nothing = 0;
    assert_true(c->ops->wait(c, answer.ticket, &nothing, 0, snk_now_ns() + SOON_NS));
    test_store_close(c);
    test_store_close(b);
    test_store_close(a);
}

/* However many claims of this client watch somebody else since then, and whatever words they share. */
static void test_a_wait_without_a_ticket_hears_of_every_death(void **state)
{
    test_place *here = *state;
    test_child child = test_child_start(hold, here);
    test_child_await(&child);
    snk_store *other = test_store(here->url);
    snk_store *store = test_store(here->url);
    snk_id waiting = test_must_queue(store, "x", NULL);
    for (unsigned i = 0; i < 100; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "other/%u", i);
        (void)test_must_hold(other, name);
        (void)test_must_queue(store, name, NULL);
    }
    _Atomic uint32_t nothing = 0;
    test_child_kill(&child);
    assert_true(store->ops->wait(store, 0, &nothing, 0, snk_now_ns() + SOON_NS));
    test_expect_answer(test_renew(store, "x", &waiting, TEST_LEASE_MS), SNK_ANSWER_HELD);
    test_store_close(store);
    test_store_close(other);
}

static void test_a_wait_without_a_ticket_hears_of_deaths_too(void **state)
{
    test_place *here = *state;
    for (unsigned round = 0; round < test_scaled(200); round++) {
        test_child child = test_child_start(hold, here);
        test_child_await(&child);
        snk_store *store = test_store(here->url);
        snk_id waiting = test_must_queue(store, "x", NULL);
        snk_id other = test_must_queue(store, "y", NULL);
        _Atomic uint32_t nothing = 0;
        assert_false(store->ops->wait(store, 0, &nothing, 0, snk_now_ns() + MS));
        test_child_kill(&child);
        assert_true(store->ops->wait(store, 0, &nothing, 0, snk_now_ns() + SOON_NS));
        test_expect_answer(test_renew(store, "x", &waiting, TEST_LEASE_MS), SNK_ANSWER_HELD);
        test_expect_answer(test_renew(store, "y", &other, TEST_LEASE_MS), SNK_ANSWER_HELD);
        /* Told once, and not for ever. */
        (void)store->ops->wait(store, 0, &nothing, 0, snk_now_ns() + MS);
        (void)store->ops->wait(store, 0, &nothing, 0, snk_now_ns() + MS);
        assert_false(store->ops->wait(store, 0, &nothing, 0, snk_now_ns() + MS));
        test_store_close(store);
    }
}

static void test_a_closed_client_is_as_good_as_dead(void **state)
{
    test_place *here = *state;
    snk_store *holder = test_store(here->url);
    holder->ops->adopt_thread(holder);
    (void)test_must_hold(holder, "x");
    snk_store *store = test_store(here->url);
    taker taking = { .store = store, .name = "x" };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take, &taking), 0);
    await_waiting(&taking);
    int64_t closed_at_ns = snk_now_ns();
    holder->ops->disown_thread(holder);
    test_store_close(holder);
    assert_int_equal(pthread_join(thread, NULL), 0);
    test_expect_answer(taking.last, SNK_ANSWER_HELD);
    assert_in_range(taking.held_at_ns - closed_at_ns, 0, SOON_NS);
    test_store_close(store);
}

/* Nothing else of a client keeps its liveness lock: else those who are woken when it closes find it alive still. */
static void test_the_liveness_lock_goes_with_its_descriptor(void **state)
{
    test_place *here = *state;
    snk_store *holder = test_store(here->url);
    (void)test_must_hold(holder, "x");
    snk_store *store = test_store(here->url);
    snk_id waiting = test_must_queue(store, "x", NULL);
    int elsewhere = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(elsewhere >= 0);
    assert_true(dup2(elsewhere, holder->ops->liveness_fd(holder)) >= 0);
    test_expect_answer(test_renew(store, "x", &waiting, TEST_LEASE_MS), SNK_ANSWER_HELD);
    assert_int_equal(close(elsewhere), 0);
    test_store_close(holder);
    test_store_close(store);
}

/* Holds x, and forks a child that has the liveness descriptor too. */
static int hold_and_fork(void *context)
{
    test_place *here = context;
    snk_store *store = open_adopted(here->url);
    snk_id claim = { { 1 } };
    CHECK(test_acquire(store, "x", &claim, TEST_TRY).kind == SNK_ANSWER_HELD);
    CHECK(store->ops->liveness_fd(store) >= 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        wait_for_ever();
    CHECK(write_number("guard.pid", (unsigned long)pid));
    test_child_ready();
    wait_for_ever();
    return 0;
}

static void test_a_process_that_shares_the_descriptor_keeps_the_claims_alive(void **state)
{
    test_place *here = *state;
    assert_int_equal(chdir(here->folder), 0);
    test_child child = test_child_start(hold_and_fork, here);
    test_child_await(&child);
    snk_store *store = test_store(here->url);
    snk_id waiting = test_must_queue(store, "x", NULL);
    test_child_kill(&child);
    test_expect_answer(test_renew(store, "x", &waiting, TEST_LEASE_MS), SNK_ANSWER_QUEUED);
    unsigned long guard = 0;
    assert_true(read_number("guard.pid", &guard));
    assert_int_equal(kill((pid_t)guard, SIGKILL), 0);
    int64_t limit_ns = snk_now_ns() + SOON_NS;
    snk_answer answer = test_renew(store, "x", &waiting, TEST_LEASE_MS);
    while (answer.kind == SNK_ANSWER_QUEUED && snk_now_ns() < limit_ns)
        answer = test_renew(store, "x", &waiting, TEST_LEASE_MS);
    test_expect_kind(&answer, SNK_ANSWER_HELD);
    test_store_close(store);
    assert_int_equal(chdir("/"), 0);
}

static void test_a_child_that_abandons_the_store_leaves_the_parents_claims_alone(void **state)
{
    test_place *here = *state;
    snk_store *holder = test_store(here->url);
    snk_store *other = test_store(here->url);
    snk_id claim = test_must_hold(holder, "x");
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        holder->ops->abandon(holder);
        other->ops->abandon(other);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    snk_id newcomer = test_id();
    test_expect_answer(test_acquire(other, "x", &newcomer, TEST_TRY), SNK_ANSWER_BUSY);
    test_expect_answer(test_renew(holder, "x", &claim, TEST_LEASE_MS), SNK_ANSWER_HELD);
    test_store_close(other);
    test_store_close(holder);
}

/* Acquires x in a transaction that does not end. */
static int stay_in_transaction(void *context)
{
    test_place *here = context;
    snk_store *store = open_adopted(here->url);
    snk_sqlite *embedded = snk_sqlite_of(store);
    CHECK(snk_begin(embedded, true, NULL) == SNECK_OK);
    snk_claim claim = { .name = "x", .why = "", .send = { .ask = SNK_ASK_ACQUIRE, .lease_ns = 60 * SNK_NS_PER_S } };
    snk_answer answer;
    snk_do_claim(embedded, &claim, &answer);
    CHECK(embedded->code == SQLITE_OK && answer.kind == SNK_ANSWER_HELD);
    test_child_ready();
    wait_for_ever();
    return 0;
}

static void test_a_process_killed_in_a_transaction_stops_nobody(void **state)
{
    test_place *here = *state;
    for (unsigned round = 0; round < test_scaled(500); round++) {
        test_child child = test_child_start(stay_in_transaction, here);
        test_child_await(&child);
        snk_store *store = test_store(here->url);
        test_child_kill(&child);
        int64_t before_ns = snk_now_ns();
        snk_id claim = test_must_hold(store, "x");
        assert_true(snk_now_ns() - before_ns < SOON_NS);
        test_expect_answer(test_release(store, "x", &claim), SNK_ANSWER_DONE);
        test_store_close(store);
    }
}

static void *acquire_once(void *context)
{
    snk_store *store = context;
    snk_id claim = test_id();
    snk_answer *answer = malloc(sizeof *answer);
    if (answer != NULL)
        *answer = test_acquire(store, "y", &claim, TEST_TRY);
    return answer;
}

static void test_a_process_stopped_in_a_transaction_makes_others_fail_in_bounded_time(void **state)
{
    test_place *here = *state;
    enum {
        THREADS = 4
    };
    snk_store *store = test_store(here->url);
    test_child child = test_child_start(stay_in_transaction, here);
    test_child_await(&child);
    assert_int_equal(kill(child.pid, SIGSTOP), 0);
    pthread_t threads[THREADS];
    int64_t before_ns = snk_now_ns();
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, acquire_once, store), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_non_null(result);
        snk_answer *answer = result;
        assert_int_equal(answer->kind, SNK_ANSWER_FAILED);
        assert_int_equal(answer->error.status, SNECK_UNAVAILABLE);
        free(answer);
    }
    assert_true(snk_now_ns() - before_ns < 20 * SNK_NS_PER_S);
    test_child_kill(&child);
    (void)test_must_hold(store, "y");
    test_store_close(store);
}

typedef struct stranger {
    const test_place *here;
    int go[2]; /* a pipe: a byte lets it go */
} stranger;

/*
 * Tries to write with a connection of its own, as any program might, once it is told to. 0: it was refused. Forked
 * before the store is opened: a child would inherit what SQLite knows about the locks of its parent.
 */
static int write_as_stranger(void *context)
{
    stranger *self = context;
    char path[128];
    char byte = 0;
    sqlite3 *connection = NULL;
    (void)snprintf(path, sizeof path, "%s/locks.db", self->here->folder);
    CHECK(read(self->go[0], &byte, 1) == 1);
    CHECK(sqlite3_open_v2(path, &connection, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
    CHECK(sqlite3_exec(connection, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_BUSY);
    return 0;
}

static void expect_refused(stranger *self, test_child *child)
{
    assert_int_equal(write(self->go[1], "1", 1), 1);
    assert_int_equal(test_child_join(child), 0);
}

/* S10: no descriptor of the database file is closed but SQLite's own, or its locks of the whole process would go. */
static void test_opening_and_closing_a_second_store_keeps_the_locks_of_the_first(void **state)
{
    test_place *here = *state;
    stranger strangers[2] = { { .here = here }, { .here = here } };
    test_child children[2];
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pipe(strangers[i].go), 0);
        children[i] = test_child_start(write_as_stranger, &strangers[i]);
    }
    snk_store *store = test_store(here->url);
    assert_int_equal(snk_begin(snk_sqlite_of(store), true, NULL), SNECK_OK);
    expect_refused(&strangers[0], &children[0]);
    test_store_close(test_store(here->url));
    expect_refused(&strangers[1], &children[1]);
    assert_int_equal(snk_end(snk_sqlite_of(store), NULL, NULL), SNECK_OK);
    test_store_close(store);
}

typedef struct busybody {
    snk_store *store;
    _Atomic uint32_t started; /* threads that have been through a transaction */
    _Atomic bool stop;
} busybody;

static void *keep_busy(void *context)
{
    busybody *busy = context;
    for (bool first = true; !atomic_load(&busy->stop); first = false) {
        snk_id claim = test_id();
        (void)test_acquire(busy->store, "busy", &claim, TEST_TRY);
        (void)test_release(busy->store, "busy", &claim);
        if (first) {
            (void)atomic_fetch_add(&busy->started, 1);
            snk_futex_wake(&busy->started, 1, false);
        }
    }
    return NULL;
}

static int use_store(void *context)
{
    test_place *here = context;
    snk_store *store = NULL;
    CHECK(test_store_open(here->url, &store, NULL) == SNECK_OK);
    for (int i = 0; i < 10; i++) {
        snk_id claim = test_id();
        CHECK(test_acquire(store, "mine", &claim, TEST_TRY).kind == SNK_ANSWER_HELD);
        CHECK(test_release(store, "mine", &claim).kind == SNK_ANSWER_DONE);
    }
    test_store_close(store);
    return 0;
}

static void test_a_child_forked_in_the_middle_of_transactions_can_open_the_file(void **state)
{
    test_place *here = *state;
    busybody busy = { .store = test_store(here->url) };
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, &busy), 0);
    /* A thread that starts uses the allocator, which the address sanitizer does not unlock in a child. */
    for (uint32_t started = 0; started < 2; started = atomic_load(&busy.started))
        (void)snk_futex_wait_any(&(snk_futex_word){ .word = &busy.started, .expected = started }, 1, SNK_NEVER_NS);
    for (unsigned round = 0; round < test_scaled(500); round++)
        test_in_child(use_store, here);
    atomic_store(&busy.stop, true);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    test_store_close(busy.store);
}

/* Adds one to a plain file under the lock, many times. */
static int increment(void *context)
{
    test_place *here = context;
    snk_store *store = open_adopted(here->url);
    for (unsigned i = test_scaled(2000); i > 0; i--) {
        snk_id claim = test_id();
        snk_answer answer = test_take(store, "counter", &claim, TEST_LEASE_MS);
        unsigned long value = 0;
        CHECK(read_number("counter", &value) && write_number("counter", value + 1));
        CHECK(answer.kind == SNK_ANSWER_HELD);
        CHECK(test_release(store, "counter", &claim).kind == SNK_ANSWER_DONE);
    }
    store->ops->disown_thread(store);
    test_store_close(store);
    return 0;
}

static void test_processes_exclude_each_other(void **state)
{
    test_place *here = *state;
    enum {
        CHILDREN = 6
    };
    assert_int_equal(chdir(here->folder), 0);
    assert_true(write_number("counter", 0));
    test_child children[CHILDREN];
    int64_t before_ns = snk_now_ns();
    for (size_t i = 0; i < CHILDREN; i++)
        children[i] = test_child_start(increment, here);
    for (size_t i = 0; i < CHILDREN; i++)
        assert_int_equal(test_child_join(&children[i]), 0);
    unsigned long value = 0;
    assert_true(read_number("counter", &value));
    assert_int_equal(value, (unsigned long)CHILDREN * test_scaled(2000));
    printf("# figure: %d processes, hand-off %.0f us\n", (int)CHILDREN,
           (double)(snk_now_ns() - before_ns) / 1e3 / (double)value);
    assert_int_equal(chdir("/"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_AT_PLACE(test_a_killed_holder_is_replaced_at_once),
        TEST_AT_PLACE(test_everybody_who_waits_for_a_killed_holder_is_woken),
        TEST_AT_PLACE(test_the_death_of_a_holder_is_an_incident),
        TEST_AT_PLACE(test_a_killed_waiter_is_passed_over),
        TEST_AT_PLACE(test_a_waiter_behind_a_killed_one_takes_a_new_aim),
        TEST_AT_PLACE(test_a_waiter_that_leaves_tells_the_one_behind),
        TEST_AT_PLACE(test_a_wait_without_a_ticket_hears_of_deaths_too),
        TEST_AT_PLACE(test_a_wait_without_a_ticket_hears_of_every_death),
        TEST_AT_PLACE(test_a_closed_client_is_as_good_as_dead),
        TEST_AT_PLACE(test_the_liveness_lock_goes_with_its_descriptor),
        TEST_AT_PLACE(test_a_process_that_shares_the_descriptor_keeps_the_claims_alive),
        TEST_AT_PLACE(test_a_child_that_abandons_the_store_leaves_the_parents_claims_alone),
        TEST_AT_PLACE(test_a_process_killed_in_a_transaction_stops_nobody),
        TEST_AT_PLACE(test_a_process_stopped_in_a_transaction_makes_others_fail_in_bounded_time),
        TEST_AT_PLACE(test_opening_and_closing_a_second_store_keeps_the_locks_of_the_first),
        TEST_AT_PLACE(test_a_child_forked_in_the_middle_of_transactions_can_open_the_file),
        TEST_AT_PLACE(test_processes_exclude_each_other),
    };
    return cmocka_run_group_tests_name("embedded store and death", tests, NULL, NULL);
}
