/*
 * Lock and unlock without contention, against a bare SQLite program that runs the same statements of the embedded store
 * in the same two transactions, in the same kind of file.
 */
#include "bare.h"
#include "store/sqlite/statements.h"

#define PAIRS 5000
#define ROUNDS 9

static double rate_of_sneck(void)
{
    bench_place place;
    bench_place_make(&place);
    sneck_client *client;
    sneck_error error;
    sneck_lock *lock = bench_lock(place.url, "pairs", &client);
    bench_expect(sneck_acquire(lock, 0, &error), &error);
    bench_expect(sneck_release(lock, &error), &error);
    int64_t start_ns = snk_now_ns();
    for (int i = 0; i < PAIRS; i++) {
        bench_expect(sneck_acquire(lock, 0, &error), &error);
        bench_expect(sneck_release(lock, &error), &error);
    }
    double seconds = (double)(snk_now_ns() - start_ns) / 1e9;
    sneck_lock_free(lock);
    sneck_close(client);
    bench_place_remove(&place);
    return PAIRS / seconds;
}

typedef struct bare {
    sqlite3 *database;
    sqlite3_stmt *begin, *find, *grant, *drop, *commit;
} bare;

static void bare_open(bare *b, const char *file)
{
    b->database = bare_connect(file);
    bare_run(b->database, snk_sql_schema);
    bare_run(b->database, "INSERT INTO sneck_lock(resource_name) VALUES('lock:pairs')");
    b->begin = bare_prepare(b->database, snk_sql[SNK_SQL_BEGIN_WRITE]);
    b->find = bare_prepare(b->database, snk_sql[SNK_SQL_LOCK_FIND]);
    b->grant = bare_prepare(b->database, snk_sql[SNK_SQL_LOCK_GRANT]);
    b->drop = bare_prepare(b->database, snk_sql[SNK_SQL_LOCK_FREE]);
    b->commit = bare_prepare(b->database, snk_sql[SNK_SQL_COMMIT]);
}

static void bare_acquire(bare *b, int64_t token)
{
    static const char id[16] = "0123456789abcde";
    sqlite3_stmt *grant = b->grant;
    bare_step(b->begin);
    (void)sqlite3_bind_text(b->find, 1, "lock:pairs", -1, SQLITE_STATIC);
    bare_step(b->find);
    (void)sqlite3_bind_text(grant, 1, "lock:pairs", -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(grant, 2, token);
    (void)sqlite3_bind_blob(grant, 3, id, sizeof id, SQLITE_STATIC);
    (void)sqlite3_bind_int64(grant, 4, token);
    (void)sqlite3_bind_int64(grant, 5, token + 30000000);
    (void)sqlite3_bind_int64(grant, 6, token);
    (void)sqlite3_bind_int(grant, 7, 0);
    (void)sqlite3_bind_blob(grant, 8, id, sizeof id, SQLITE_STATIC);
    (void)sqlite3_bind_int64(grant, 9, 1);
    (void)sqlite3_bind_int64(grant, 10, INT64_MAX / 3);
    (void)sqlite3_bind_int64(grant, 11, getpid());
    (void)sqlite3_bind_text(grant, 12, "00000000-0000-4000-8000-000000000000:12345", -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(grant, 13, "hostname", -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(grant, 14, "", -1, SQLITE_STATIC);
    bare_step(grant);
    bare_step(b->commit);
}

static void bare_release(bare *b, int64_t now)
{
    bare_step(b->begin);
    (void)sqlite3_bind_text(b->find, 1, "lock:pairs", -1, SQLITE_STATIC);
    bare_step(b->find);
    (void)sqlite3_bind_text(b->drop, 1, "lock:pairs", -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(b->drop, 2, now);
    bare_step(b->drop);
    bare_step(b->commit);
}

static void bare_close(bare *b)
{
    (void)sqlite3_finalize(b->begin);
    (void)sqlite3_finalize(b->find);
    (void)sqlite3_finalize(b->grant);
    (void)sqlite3_finalize(b->drop);
    (void)sqlite3_finalize(b->commit);
    (void)sqlite3_close(b->database);
}

static double rate_of_bare(void)
{
    bench_place place;
    bench_place_make(&place);
    bare b;
    bare_open(&b, place.file);
    int64_t start_ns = snk_now_ns();
    for (int64_t i = 0; i < PAIRS; i++) {
        bare_acquire(&b, start_ns + i);
        bare_release(&b, start_ns + i);
    }
    double seconds = (double)(snk_now_ns() - start_ns) / 1e9;
    bare_close(&b);
    bench_place_remove(&place);
    return PAIRS / seconds;
}

int main(void)
{
    double ratios[ROUNDS];
    double ours = 0;
    double theirs = 0;
    for (int i = 0; i < ROUNDS; i++) {
        theirs = rate_of_bare();
        ours = rate_of_sneck();
        ratios[i] = ours / theirs;
    }
    double ratio = bench_median(ratios, ROUNDS);
    printf(
        "uncontended lock+unlock, sqlite:  %8.2f of a bare SQLite program (goal: at least 0.8; %.0f/s against %.0f/s)",
        ratio, ours, theirs);
    bench_goal_at_least(ratio, 0.8);
    return 0;
}
