/*
 * Hand-off between two processes: from just before the release in one to the return of the acquire in the other, which
 * has been asleep in it. Against a bare program that does only that, with a futex and two SQLite transactions: one that
 * frees the lock, one that takes it.
 */
#include "bare.h"

#define HANDOFFS 2000
#define ROUNDS 5
/* Between asking and the release: long enough that the other one sleeps. */
#define SETTLE_NS (300 * SNK_NS_PER_US)

/* Two ways to have a lock, behind the same three calls. */
typedef struct player {
    void (*open)(struct player *player);
    void (*acquire)(struct player *player);
    void (*release)(struct player *player);
    void (*close)(struct player *player);
    const bench_place *place;
    sneck_client *client;
    sneck_lock *lock;
    sqlite3 *database;
    sqlite3_stmt *begin, *look, *take, *drop, *commit;
    _Atomic uint32_t *word; /* the bare program's futex */
    int self;
} player;

/* ---- sneck ---- */

static void sneck_player_open(player *p)
{
    p->lock = bench_lock(p->place->url, "handoff", &p->client);
}

static void sneck_player_acquire(player *p)
{
    sneck_error error;
    bench_expect(sneck_acquire(p->lock, SNECK_FOREVER, &error), &error);
}

static void sneck_player_release(player *p)
{
    sneck_error error;
    bench_expect(sneck_release(p->lock, &error), &error);
}

static void sneck_player_close(player *p)
{
    sneck_lock_free(p->lock);
    sneck_close(p->client);
}

/* ---- bare ---- */

static void bare_open(player *p)
{
    p->database = bare_connect(p->place->file);
    bare_run(p->database, "CREATE TABLE IF NOT EXISTS lock (name TEXT PRIMARY KEY, owner INTEGER, token INTEGER, "
                          "expires INTEGER) WITHOUT ROWID");
    bare_run(p->database, "INSERT OR IGNORE INTO lock VALUES ('handoff', NULL, 0, 0)");
    p->begin = bare_prepare(p->database, "BEGIN IMMEDIATE");
    p->look = bare_prepare(p->database, "SELECT owner FROM lock WHERE name = 'handoff'");
    p->take =
        bare_prepare(p->database, "UPDATE lock SET owner = ?, token = token + 1, expires = ? WHERE name = 'handoff'");
    p->drop = bare_prepare(p->database, "UPDATE lock SET owner = NULL WHERE name = 'handoff'");
    p->commit = bare_prepare(p->database, "COMMIT");
}

static bool bare_try(player *p)
{
    bare_step(p->begin);
    if (sqlite3_step(p->look) != SQLITE_ROW)
        bench_die("look", sqlite3_errmsg(p->database));
    bool is_free = sqlite3_column_type(p->look, 0) == SQLITE_NULL;
    (void)sqlite3_reset(p->look);
    if (is_free) {
        (void)sqlite3_bind_int(p->take, 1, p->self);
        (void)sqlite3_bind_int64(p->take, 2, snk_now_ns());
        bare_step(p->take);
    }
    bare_step(p->commit);
    return is_free;
}

static void bare_acquire(player *p)
{
    for (;;) {
        uint32_t seen = atomic_load(p->word);
        if (bare_try(p))
            return;
        snk_futex_word word = { .word = p->word, .expected = seen, .shared = true };
        (void)snk_futex_wait_any(&word, 1, SNK_NEVER_NS);
    }
}

static void bare_release(player *p)
{
    bare_step(p->begin);
    bare_step(p->drop);
    bare_step(p->commit);
    atomic_fetch_add(p->word, 1);
    snk_futex_wake(p->word, 1, true);
}

static void bare_close(player *p)
{
    (void)sqlite3_finalize(p->begin);
    (void)sqlite3_finalize(p->look);
    (void)sqlite3_finalize(p->take);
    (void)sqlite3_finalize(p->drop);
    (void)sqlite3_finalize(p->commit);
    (void)sqlite3_close(p->database);
}

/* ---- The game ---- */

typedef struct table {
    player players[2];
    _Atomic uint32_t word;
    _Atomic uint32_t asked[2];    /* how often each has asked for the lock */
    _Atomic uint32_t acquired[2]; /* how often each has had it */
    _Atomic int64_t released_at_ns;
    int64_t times_ns[2][HANDOFFS];
} table;

static void await_count(_Atomic uint32_t *count, uint32_t value)
{
    for (uint32_t seen = atomic_load(count); seen < value; seen = atomic_load(count)) {
        snk_futex_word word = { .word = count, .expected = seen, .shared = true };
        (void)snk_futex_wait_any(&word, 1, SNK_NEVER_NS);
    }
}

static void count_up(_Atomic uint32_t *count)
{
    atomic_fetch_add(count, 1);
    snk_futex_wake(count, 1, true);
}

/*
 * Player 0 begins with the lock; then each waits for the other's release in turn. Nobody asks again before the other
 * one has had it: the bare program would let the one that runs take the lock from the one that wakes up.
 */
static void play(table *t, int self)
{
    player *p = &t->players[self];
    int other = 1 - self;
    p->open(p);
    await_count(&t->acquired[0], (uint32_t)self);
    for (uint32_t i = 0; i < HANDOFFS; i++) {
        count_up(&t->asked[self]);
        p->acquire(p);
        t->times_ns[self][i] = snk_now_ns() - atomic_load(&t->released_at_ns);
        count_up(&t->acquired[self]);
        uint32_t turn = i + 1 + (uint32_t)self;
        bool has_next = self == 0 || i + 1 < HANDOFFS;
        if (has_next) {
            await_count(&t->asked[other], turn);
            struct timespec pause = snk_timespec(SETTLE_NS);
            (void)nanosleep(&pause, NULL);
        }
        atomic_store(&t->released_at_ns, snk_now_ns());
        p->release(p);
        if (has_next)
            await_count(&t->acquired[other], turn);
    }
    p->close(p);
}

static void play_first(void *context)
{
    play(context, 0);
}

static void play_second(void *context)
{
    play(context, 1);
}

static double median_us(const player *kind, double *p99_us)
{
    bench_place place;
    bench_place_make(&place);
    table *t = bench_share(sizeof *t);
    for (int i = 0; i < 2; i++) {
        t->players[i] = *kind;
        t->players[i].place = &place;
        t->players[i].word = &t->word;
        t->players[i].self = i;
    }
    pid_t first = bench_spawn(play_first, t);
    pid_t second = bench_spawn(play_second, t);
    bench_join(first);
    bench_join(second);
    double p50_us = bench_percentile_us(t->times_ns[1], HANDOFFS, 50);
    *p99_us = bench_percentile_us(t->times_ns[1], HANDOFFS, 99);
    (void)munmap(t, sizeof *t);
    bench_place_remove(&place);
    return p50_us;
}

int main(void)
{
    const player ours = { .open = sneck_player_open,
                          .acquire = sneck_player_acquire,
                          .release = sneck_player_release,
                          .close = sneck_player_close };
    const player bare = { .open = bare_open, .acquire = bare_acquire, .release = bare_release, .close = bare_close };
    double ratios[ROUNDS];
    double ours_us = 0;
    double bare_us = 0;
    double ours_p99_us = 0;
    double bare_p99_us = 0;
    for (int i = 0; i < ROUNDS; i++) {
        bare_us = median_us(&bare, &bare_p99_us);
        ours_us = median_us(&ours, &ours_p99_us);
        ratios[i] = ours_us / bare_us;
    }
    double ratio = bench_median(ratios, ROUNDS);
    printf("hand-off between two processes    %8.2f of a bare program (goal: at most 1.3; p50 %.0f us against %.0f us, "
           "p99 %.0f against %.0f)",
           ratio, ours_us, bare_us, ours_p99_us, bare_p99_us);
    bench_goal_at_most(ratio, 1.3);
    return 0;
}
