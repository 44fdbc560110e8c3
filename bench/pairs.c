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
    sqlite3_stmt *begin, *read, *add, *remove, *free, *commit;
} bare;

static sqlite3_stmt *prepare_for_lock(const bare *b, snk_statement which)
{
    sqlite3_stmt *statement = bare_prepare(b->database, snk_sql[which]);
    (void)sqlite3_bind_text(statement, 1, "lock:pairs", -1, SQLITE_STATIC);
    return statement;
}

static void bare_open(bare *b, const char *file)
{
    b->database = bare_connect(file);
    bare_run(b->database, snk_sql_schema);
    bare_run(b->database, "INSERT INTO sneck_lock(resource_name, place) VALUES('lock:pairs', 0)");
    b->begin = bare_prepare(b->database, snk_sql[SNK_SQL_BEGIN_WRITE]);
    b->read = prepare_for_lock(b, SNK_SQL_READ_FROM);
    b->add = prepare_for_lock(b, SNK_SQL_CLAIM_ADD);
    b->remove = prepare_for_lock(b, SNK_SQL_CLAIM_REMOVE);
    b->free = prepare_for_lock(b, SNK_SQL_LOCK_FREE);
    b->commit = bare_prepare(b->database, snk_sql[SNK_SQL_COMMIT]);
}

/* Reads the lock, if wanted, and its claim. */
static void bare_read(bare *b, int from_place)
{
    (void)sqlite3_bind_int(b->read, 2, from_place);
    while (sqlite3_step(b->read) == SQLITE_ROW)
        continue;
    (void)sqlite3_reset(b->read);
}

static void bare_acquire(bare *b, int64_t token)
{
    static const char record[64] = "0123456789abcdef";
    sqlite3_stmt *add = b->add;
    bare_step(b->begin);
    bare_read(b, 0);
    (void)sqlite3_bind_int(add, 2, 1);
    (void)sqlite3_bind_int64(add, 3, token);
    (void)sqlite3_bind_int64(add, 4, token);
    (void)sqlite3_bind_int(add, 5, 2);
    (void)sqlite3_bind_int64(add, 6, token + 30 * SNK_NS_PER_S);
    (void)sqlite3_bind_blob(add, 7, record, sizeof record, SQLITE_STATIC);
    (void)sqlite3_bind_int64(add, 8, token);
    (void)sqlite3_bind_int(add, 9, 0);
    (void)sqlite3_bind_int64(add, 10, getpid());
    (void)sqlite3_bind_text(add, 11, "00000000-0000-4000-8000-000000000000:12345", -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(add, 12, "hostname", -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(add, 13, "", -1, SQLITE_STATIC);
    bare_step(add);
    bare_step(b->commit);
}

static void bare_release(bare *b, int64_t token)
{
    bare_step(b->begin);
    bare_read(b, 1);
    (void)sqlite3_bind_int(b->remove, 2, 1);
    bare_step(b->remove);
    (void)sqlite3_bind_int64(b->free, 2, token);
    (void)sqlite3_bind_int64(b->free, 3, token);
    bare_step(b->free);
    bare_step(b->commit);
}

static void bare_close(bare *b)
{
    (void)sqlite3_finalize(b->begin);
    (void)sqlite3_finalize(b->read);
    (void)sqlite3_finalize(b->add);
    (void)sqlite3_finalize(b->remove);
    (void)sqlite3_finalize(b->free);
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
