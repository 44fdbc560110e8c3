/* Many processes share a lock or the permits of a semaphore, and some of them are killed at any moment. */
#include "test.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "process.h"
#include "redis_bed.h"

#define PROCESSES_MAX 16
#define READ_WRITE_PROCESSES 8
#define WRITERS 3
#define PERMITS 5
#define LIVES_MAX 4096
#define ZOMBIE_NS (100 * SNK_NS_PER_MS)
/* A loaded machine may be this late; a message that was lost comes later than that. */
#define STALL_NS (3 * SNK_NS_PER_S)

/* ---- On which store ---- */

/* Holders of the dead are free when the store hears of the death, or when their lease ends. */
typedef struct store_kind {
    const char *name;
    int64_t lease_ms;
    bool hears_of_deaths;
    unsigned kills; /* at full size */
    void (*open)(void);
} store_kind;

static redis_bed redis;

static void open_sqlite(void)
{
    (void)test_make_directory();
}

static void open_redis(void)
{
    redis_bed_start(&redis);
    test_use_url(redis_bed_url(&redis, NULL));
}

static void close_store(void)
{
    if (redis.server.pid != 0)
        redis_bed_stop(&redis);
    else
        test_remove_directory();
}

static const store_kind on_sqlite = {
    .name = "sqlite", .lease_ms = 30000, .hears_of_deaths = true, .kills = 1000, .open = open_sqlite
};
static const store_kind on_redis = { .name = "redis", .lease_ms = 2000, .kills = 30, .open = open_redis };

/* ---- Lives: a process that is killed is followed by another one in its place ---- */

typedef enum place {
    OUTSIDE,
    READING,
    WRITING
} place;

typedef struct life {
    _Atomic uint32_t place;
    _Atomic bool killed; /* set before the signal is sent: from then on nothing is expected of it */
} life;

/* What all processes share. A record is whole when both parts are the same. */
typedef struct arena {
    life lives[LIVES_MAX];
    _Atomic uint32_t first_part;
    _Atomic uint32_t second_part;
    _Atomic uint32_t author;   /* life that wrote the first part last */
    _Atomic uint32_t reads;    /* done under the lock */
    _Atomic uint32_t writes;   /* begun under the lock */
    _Atomic uint32_t permits;  /* had */
    _Atomic uint32_t mistakes; /* of any kind: the first says what it saw */
    _Atomic uint32_t crowded;  /* most that were inside together */
    _Atomic uint32_t stop;
    _Atomic int64_t written_at_ns; /* when the last write began */
} arena;

typedef struct member {
    arena *a;
    uint32_t number; /* of its life */
    uint32_t seat;
    int64_t lease_ms;
    pid_t pid;
} member;

typedef struct crew {
    const store_kind *store;
    arena *a;
    test_child_fn work;
    uint32_t count;
    uint32_t lives;
    member members[PROCESSES_MAX];
} crew;

static void mistake(arena *a, const char *what)
{
    if (atomic_fetch_add(&a->mistakes, 1) == 0)
        (void)fprintf(stderr, "# %s\n", what);
}

static bool is_inside(const life *l, place where)
{
    return atomic_load(&l->place) == where && !atomic_load(&l->killed);
}

static uint32_t count_inside(arena *a, place where)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < LIVES_MAX; i++)
        count += is_inside(&a->lives[i], where);
    return count;
}

static void begin_life(crew *c, uint32_t seat)
{
    assert_true(c->lives < LIVES_MAX);
    member *m = &c->members[seat];
    *m = (member){ .a = c->a, .number = c->lives++, .seat = seat, .lease_ms = c->store->lease_ms };
    m->pid = test_spawn(c->work, m);
}

static void start(crew *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        begin_life(c, i);
}

static void end_life(crew *c, uint32_t seat)
{
    member *m = &c->members[seat];
    atomic_store(&c->a->lives[m->number].killed, true);
    (void)kill(m->pid, SIGKILL);
}

static void stop(crew *c)
{
    atomic_store(&c->a->stop, 1);
    for (uint32_t i = 0; i < c->count; i++)
        assert_int_equal(test_join(c->members[i].pid), 0);
}

/* Others go on, for more or less long, so that the next victim is caught at any moment. */
static void await_some(_Atomic uint32_t *done)
{
    static uint32_t state = 1;
    state = state * 1103515245U + 12345U;
    assert_true(test_await(done, atomic_load(done) + 1 + (state >> 16) % PROCESSES_MAX));
}

static sneck_client *open_client(const member *m)
{
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = m->lease_ms;
    return test_child_open(&options);
}

/* A few microseconds in which others could do harm. */
static void linger(void)
{
    struct timespec pause = snk_timespec(200 * SNK_NS_PER_US);
    (void)nanosleep(&pause, NULL);
}

/* ---- Readers and writers ---- */

static void write_record(arena *a, uint32_t number)
{
    uint32_t version = atomic_load(&a->first_part) + 1;
    atomic_store(&a->author, number);
    atomic_store(&a->first_part, version);
    linger();
    if (atomic_load(&a->first_part) != version)
        mistake(a, "another one wrote at the same time");
    atomic_store(&a->second_part, version);
}

/* Half of a record is the work of somebody who was killed, or a mistake. */
static void read_record(arena *a)
{
    uint32_t first = atomic_load(&a->first_part);
    uint32_t second = atomic_load(&a->second_part);
    if (first != second && !atomic_load(&a->lives[atomic_load(&a->author)].killed))
        mistake(a, "a reader saw half of a record");
    linger();
    if (atomic_load(&a->first_part) != first || atomic_load(&a->second_part) != second)
        mistake(a, "the record changed under a reader");
    atomic_fetch_add(&a->reads, 1);
}

static void write_once(const member *m)
{
    arena *a = m->a;
    atomic_store(&a->lives[m->number].place, WRITING);
    if (count_inside(a, WRITING) > 1 || count_inside(a, READING) > 0)
        mistake(a, "a writer was not alone");
    atomic_store(&a->written_at_ns, snk_now_ns());
    test_signal(&a->writes);
    write_record(a, m->number);
    atomic_store(&a->lives[m->number].place, OUTSIDE);
}

static void read_once(const member *m)
{
    arena *a = m->a;
    atomic_store(&a->lives[m->number].place, READING);
    if (count_inside(a, WRITING) > 0)
        mistake(a, "a reader was inside with a writer");
    uint32_t readers = count_inside(a, READING);
    if (readers > atomic_load(&a->crowded))
        atomic_store(&a->crowded, readers);
    read_record(a);
    atomic_store(&a->lives[m->number].place, OUTSIDE);
}

static int read_or_write(void *context)
{
    const member *m = context;
    bool writes = m->seat < WRITERS;
    sneck_error error;
    sneck_client *client = open_client(m);
    sneck_lock *lock = NULL;
    sneck_status status = writes ? sneck_write_lock(client, "record", NULL, &lock, &error)
                                 : sneck_read_lock(client, "record", NULL, &lock, &error);
    test_child_expect(status, SNECK_OK, &error, "open");
    while (atomic_load(&m->a->stop) == 0) {
        test_child_expect(sneck_acquire(lock, SNECK_FOREVER, &error), SNECK_OK, &error, "acquire");
        if (writes)
            write_once(m);
        else
            read_once(m);
        test_child_expect(sneck_release(lock, &error), SNECK_OK, &error, "release");
    }
    sneck_lock_free(lock);
    sneck_close(client);
    return 0;
}

/* Kills a reader that is inside, and returns how long it took until somebody writes again. */
static int64_t kill_a_reader(crew *c)
{
    await_some(&c->a->writes);
    int64_t until_ns = snk_now_ns() + test_patience_ns();
    uint32_t seat = WRITERS;
    while (!is_inside(&c->a->lives[c->members[seat].number], READING)) {
        seat = seat + 1 < c->count ? seat + 1 : WRITERS;
        assert_true(snk_now_ns() < until_ns);
    }
    int64_t killed_at_ns = snk_now_ns();
    end_life(c, seat);
    uint32_t seen = atomic_load(&c->a->writes);
    assert_true(test_await(&c->a->writes, seen + 1));
    int64_t took_ns = atomic_load(&c->a->written_at_ns) - killed_at_ns;
    test_kill(c->members[seat].pid);
    begin_life(c, seat);
    return took_ns > 0 ? took_ns : 0;
}

/* Kills a writer, wherever it is. */
static void kill_a_writer(crew *c, uint32_t seat)
{
    end_life(c, seat);
    test_kill(c->members[seat].pid);
    begin_life(c, seat);
}

/* How long the dead are in the way, at most: but for a few times when the machine was busy with something else. */
static void expect_no_zombies(const store_kind *store, int64_t times_ns[], unsigned count)
{
    int64_t limit_ns = store->hears_of_deaths ? ZOMBIE_NS : store->lease_ms * SNK_NS_PER_MS + ZOMBIE_NS;
    int64_t p95_ns = test_percentile(times_ns, count, 95);
    printf("# figure: %s: %u readers killed inside: until the next write p50 %.1f ms, p95 %.1f ms, longest %.1f ms\n",
           store->name, count, (double)test_percentile(times_ns, count, 50) / 1e6, (double)p95_ns / 1e6,
           (double)times_ns[count - 1] / 1e6);
    assert_true(p95_ns <= limit_ns * test_patience_factor());
    assert_true(times_ns[count - 1] <= (limit_ns + STALL_NS) * test_patience_factor());
}

static void run_readers_and_writers(const store_kind *store)
{
    static crew c;
    c = (crew){ .store = store, .a = test_share(sizeof(arena)), .work = read_or_write, .count = READ_WRITE_PROCESSES };
    start(&c);
    unsigned kills = test_scaled(store->kills);
    int64_t *times_ns = calloc(kills, sizeof *times_ns);
    assert_non_null(times_ns);
    for (unsigned i = 0; i < kills; i++) {
        times_ns[i] = kill_a_reader(&c);
        if (i % 3 == 0)
            kill_a_writer(&c, i / 3 % WRITERS);
    }
    stop(&c);
    printf("# figure: %s: %u reads, %u writes, %u readers at once, %u mistakes\n", store->name, c.a->reads, c.a->writes,
           c.a->crowded, c.a->mistakes);
    assert_int_equal(c.a->mistakes, 0);
    assert_true(c.a->crowded > 1 && c.a->reads > 0);
    expect_no_zombies(store, times_ns, kills);
    free(times_ns);
    (void)munmap(c.a, sizeof(arena));
}

/* ---- Permits ---- */

static sneck_semaphore *open_semaphore(sneck_client *client)
{
    sneck_error error;
    sneck_semaphore *semaphore = NULL;
    test_child_expect(sneck_semaphore_open(client, "slots", NULL, &semaphore, &error), SNECK_OK, &error, "open");
    return semaphore;
}

static int set_permits(void *context)
{
    sneck_error error;
    sneck_client *client = open_client(context);
    sneck_semaphore *semaphore = open_semaphore(client);
    test_child_expect(sneck_semaphore_set_permits(semaphore, PERMITS, &error), SNECK_OK, &error, "set_permits");
    sneck_semaphore_free(semaphore);
    sneck_close(client);
    return 0;
}

static int use_permits(void *context)
{
    const member *m = context;
    arena *a = m->a;
    life *own = &a->lives[m->number];
    sneck_error error;
    sneck_client *client = open_client(m);
    sneck_semaphore *semaphore = open_semaphore(client);
    while (atomic_load(&a->stop) == 0) {
        sneck_permit *permit = NULL;
        test_child_expect(sneck_semaphore_acquire(semaphore, 1, SNECK_FOREVER, &permit, &error), SNECK_OK, &error,
                          "acquire");
        atomic_store(&own->place, WRITING);
        uint32_t inside = count_inside(a, WRITING);
        if (inside > PERMITS)
            mistake(a, "more were inside than there are permits");
        if (inside > atomic_load(&a->crowded))
            atomic_store(&a->crowded, inside);
        test_signal(&a->permits);
        linger();
        atomic_store(&own->place, OUTSIDE);
        test_child_expect(sneck_permit_release(permit, &error), SNECK_OK, &error, "release");
    }
    sneck_semaphore_free(semaphore);
    sneck_close(client);
    return 0;
}

/* All permits are there again: at once where deaths are heard of, else when the leases of the dead have ended. */
static void expect_all_permits(const store_kind *store)
{
    sneck_client *client = test_child_open(NULL);
    sneck_semaphore *semaphore = open_semaphore(client);
    int64_t available = 0;
    int64_t until_ns = snk_now_ns() + (store->hears_of_deaths ? 0 : test_patience_ns());
    do
        assert_int_equal(sneck_semaphore_available(semaphore, &available, NULL), SNECK_OK);
    while (available < PERMITS && snk_now_ns() < until_ns);
    assert_int_equal(available, PERMITS);
    sneck_semaphore_free(semaphore);
    sneck_close(client);
}

static void run_permits(const store_kind *store)
{
    static crew c;
    c = (crew){ .store = store, .a = test_share(sizeof(arena)), .work = use_permits, .count = PROCESSES_MAX };
    member setter = { .lease_ms = store->lease_ms };
    assert_int_equal(test_join(test_spawn(set_permits, &setter)), 0);
    start(&c);
    unsigned kills = test_scaled(store->kills);
    for (unsigned i = 0; i < kills; i++) {
        uint32_t seat = i * 7 % c.count;
        await_some(&c.a->permits);
        end_life(&c, seat);
        test_kill(c.members[seat].pid);
        begin_life(&c, seat);
    }
    int64_t until_ns = snk_now_ns() + test_patience_ns();
    while (atomic_load(&c.a->crowded) < PERMITS && snk_now_ns() < until_ns)
        await_some(&c.a->permits);
    stop(&c);
    expect_all_permits(store);
    printf("# figure: %s: %u of %d processes killed, %u permits had, at most %u of %d inside, %u mistakes\n",
           store->name, kills, PROCESSES_MAX, c.a->permits, c.a->crowded, PERMITS, c.a->mistakes);
    assert_int_equal(c.a->mistakes, 0);
    assert_int_equal(c.a->crowded, PERMITS);
    (void)munmap(c.a, sizeof(arena));
}

/* ---- Permits of the dead, for those who are not first ---- */

#define LINE 4
#define LINE_PERMITS 2

/* The first two have permits, the others wait in this order; each does the next thing when it is told. */
typedef struct line {
    _Atomic uint32_t may_start[LINE];
    _Atomic uint32_t inside[LINE];
    _Atomic uint32_t may_leave[LINE];
    _Atomic int64_t inside_at_ns[LINE];
} line;

typedef struct standing {
    line *l;
    member m;
    uint32_t number;
} standing;

static int stand_in_line(void *context)
{
    const standing *self = context;
    line *l = self->l;
    sneck_error error;
    if (!test_await(&l->may_start[self->number], 1))
        return 2;
    sneck_client *client = open_client(&self->m);
    sneck_semaphore *semaphore = open_semaphore(client);
    if (self->number == 0)
        test_child_expect(sneck_semaphore_set_permits(semaphore, LINE_PERMITS, &error), SNECK_OK, &error, "set");
    sneck_permit *permit = NULL;
    test_child_expect(sneck_semaphore_acquire(semaphore, 1, SNECK_FOREVER, &permit, &error), SNECK_OK, &error,
                      "acquire");
    atomic_store(&l->inside_at_ns[self->number], snk_now_ns());
    test_signal(&l->inside[self->number]);
    if (!test_await(&l->may_leave[self->number], 1))
        return 2;
    test_child_expect(sneck_permit_release(permit, &error), SNECK_OK, &error, "release");
    sneck_semaphore_free(semaphore);
    sneck_close(client);
    return 0;
}

static void await_line(sneck_client *client, size_t waiting)
{
    int64_t until_ns = snk_now_ns() + test_patience_ns();
    for (size_t found = SIZE_MAX; found != waiting;) {
        sneck_info *info = NULL;
        assert_int_equal(sneck_inspect(client, "slots", &info, NULL), SNECK_OK);
        found = info->waiter_count;
        sneck_info_free(info);
        assert_true(snk_now_ns() < until_ns);
    }
}

/*
 * The third gets the permit of the first; then the second is killed, and its permit is for the fourth, which came when
 * both were far before it.
 */
static void run_line(const store_kind *store)
{
    line *l = test_share(sizeof *l);
    standing all[LINE];
    pid_t pids[LINE];
    for (uint32_t i = 0; i < LINE; i++) {
        all[i] = (standing){ .l = l, .m = { .lease_ms = store->lease_ms }, .number = i };
        pids[i] = test_spawn(stand_in_line, &all[i]);
    }
    sneck_client *client = test_child_open(NULL);
    for (uint32_t i = 0; i < LINE; i++) {
        test_signal(&l->may_start[i]);
        if (i < LINE_PERMITS)
            assert_true(test_await(&l->inside[i], 1));
        else
            await_line(client, i + 1 - LINE_PERMITS);
    }
    test_signal(&l->may_leave[0]);
    assert_true(test_await(&l->inside[2], 1));
    int64_t killed_at_ns = snk_now_ns();
    (void)kill(pids[1], SIGKILL);
    assert_true(test_await(&l->inside[3], 1));
    int64_t took_ns = l->inside_at_ns[3] - killed_at_ns;
    int64_t limit_ns = store->hears_of_deaths ? 0 : store->lease_ms * SNK_NS_PER_MS;
    printf("# figure: %s: a permit of the dead went on after %.1f ms\n", store->name, (double)took_ns / 1e6);
    assert_true(took_ns <= (limit_ns + STALL_NS) * test_patience_factor());
    test_signal(&l->may_leave[2]);
    test_signal(&l->may_leave[3]);
    for (uint32_t i = 0; i < LINE; i++)
        assert_int_equal(test_join(pids[i]), i == 1 ? 128 + SIGKILL : 0);
    sneck_close(client);
}

/* ---- On each store ---- */

/* The exit code is 0 when the store keeps readers and permits; in a child, since a test forks before it opens. */
static int try_kinds(void *context)
{
    sneck_client *client = open_client(context);
    sneck_lock *lock = NULL;
    sneck_semaphore *semaphore = NULL;
    sneck_status reads = sneck_read_lock(client, "record", NULL, &lock, NULL);
    sneck_status counts = sneck_semaphore_open(client, "slots", NULL, &semaphore, NULL);
    sneck_lock_free(lock);
    sneck_semaphore_free(semaphore);
    sneck_close(client);
    return reads == SNECK_UNSUPPORTED || counts == SNECK_UNSUPPORTED;
}

static void on_store(const store_kind *store, void (*run)(const store_kind *store))
{
    store->open();
    member probe = { .lease_ms = store->lease_ms };
    bool can = test_join(test_spawn(try_kinds, &probe)) == 0;
    if (can)
        run(store);
    close_store();
    if (!can)
        test_skip("SNECK_UNSUPPORTED: this store keeps neither readers nor permits");
}

static void test_sqlite_no_reader_sees_half_a_record_and_the_dead_do_not_read_on(void **state)
{
    (void)state;
    on_store(&on_sqlite, run_readers_and_writers);
}

static void test_redis_no_reader_sees_half_a_record_and_the_dead_do_not_read_on(void **state)
{
    (void)state;
    on_store(&on_redis, run_readers_and_writers);
}

static void test_sqlite_permits_are_never_more_and_come_back_from_the_dead(void **state)
{
    (void)state;
    on_store(&on_sqlite, run_permits);
}

static void test_redis_permits_are_never_more_and_come_back_from_the_dead(void **state)
{
    (void)state;
    on_store(&on_redis, run_permits);
}

static void test_sqlite_a_permit_of_the_dead_goes_to_whoever_waits(void **state)
{
    (void)state;
    on_store(&on_sqlite, run_line);
}

static void test_redis_a_permit_of_the_dead_goes_to_whoever_waits(void **state)
{
    (void)state;
    on_store(&on_redis, run_line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sqlite_no_reader_sees_half_a_record_and_the_dead_do_not_read_on),
        cmocka_unit_test(test_sqlite_permits_are_never_more_and_come_back_from_the_dead),
        cmocka_unit_test(test_sqlite_a_permit_of_the_dead_goes_to_whoever_waits),
        cmocka_unit_test(test_redis_no_reader_sees_half_a_record_and_the_dead_do_not_read_on),
        cmocka_unit_test(test_redis_permits_are_never_more_and_come_back_from_the_dead),
        cmocka_unit_test(test_redis_a_permit_of_the_dead_goes_to_whoever_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
