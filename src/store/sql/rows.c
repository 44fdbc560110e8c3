#include "store/sql/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* ---- The table ---- */

static snk_list *bucket_of(snk_sql_rows *rows, const snk_id *claim)
{
    return &rows->buckets[claim->bytes[0] % SNK_SQL_ROW_BUCKETS];
}

static snk_sql_row *row_of(snk_link *link)
{
    return SNK_CONTAINER(link, snk_sql_row, link);
}

static void write_resource(const snk_sql_rows *rows, const snk_claim *claim, char resource[SNK_SQL_RESOURCE_SIZE])
{
    (void)snprintf(resource, SNK_SQL_RESOURCE_SIZE, "%s%s%s", snk_object_mark(claim->grip.object), rows->prefix,
                   claim->name);
}

bool snk_sql_rows_init(snk_sql_rows *rows, const snk_sql_row_ops *ops, snk_store *store, const char *prefix,
                       int64_t retry_ns)
{
    rows->ops = ops;
    rows->store = store;
    rows->prefix = prefix;
    rows->retry_ns = retry_ns;
    snk_sql_vigil_init(&rows->vigil);
    for (size_t i = 0; i < SNK_SQL_ROW_BUCKETS; i++)
        snk_list_init(&rows->buckets[i]);
    return pthread_mutex_init(&rows->mutex, NULL) == 0 && pthread_cond_init(&rows->changed, NULL) == 0;
}

void snk_sql_rows_deinit(snk_sql_rows *rows)
{
    if (rows->ops == NULL)
        return;
    snk_sql_vigil_end(&rows->vigil);
    for (size_t i = 0; i < SNK_SQL_ROW_BUCKETS; i++) {
        snk_link *link = NULL;
        while ((link = snk_list_take_first(&rows->buckets[i])) != NULL) {
            row_of(link)->is_late = true; /* nothing is waited for any more */
            rows->ops->give(rows->store, row_of(link), false);
            free(row_of(link));
        }
    }
    (void)pthread_cond_destroy(&rows->changed);
    (void)pthread_mutex_destroy(&rows->mutex);
}

static snk_sql_row *find_locked(snk_sql_rows *rows, const snk_id *claim, const char *resource)
{
    const snk_list *bucket = bucket_of(rows, claim);
    for (snk_link *link = snk_list_first(bucket); link != NULL; link = snk_list_next(bucket, link))
        if (snk_id_equal(&row_of(link)->claim, claim) && strcmp(row_of(link)->resource, resource) == 0)
            return row_of(link);
    return NULL;
}

/* The row of a claim, for this thread alone until it is given back or dropped; NULL: it has none. */
static snk_sql_row *use(snk_sql_rows *rows, const snk_claim *claim)
{
    char resource[SNK_SQL_RESOURCE_SIZE];
    write_resource(rows, claim, resource);
    (void)pthread_mutex_lock(&rows->mutex);
    snk_sql_row *found = find_locked(rows, &claim->send.claim, resource);
    while (found != NULL && found->is_used) {
        (void)pthread_cond_wait(&rows->changed, &rows->mutex);
        found = find_locked(rows, &claim->send.claim, resource);
    }
    if (found != NULL) {
        found->is_used = true;
        snk_sql_vigil_stop_locked(rows, found);
    }
    (void)pthread_mutex_unlock(&rows->mutex);
    return found;
}

/* A new row in the table, in use by this thread; NULL: out of memory. */
static snk_sql_row *add(snk_sql_rows *rows, const snk_claim *claim)
{
    snk_sql_row *row = calloc(1, sizeof *row);
    if (row == NULL)
        return NULL;
    row->claim = claim->send.claim;
    write_resource(rows, claim, row->resource);
    (void)snk_copy_text(row->name, sizeof row->name, claim->name);
    row->is_used = true;
    (void)pthread_mutex_lock(&rows->mutex);
    snk_list_append(bucket_of(rows, &row->claim), &row->link);
    (void)pthread_mutex_unlock(&rows->mutex);
    return row;
}

/* Others may use it. */
static void put_back(snk_sql_rows *rows, snk_sql_row *row)
{
    (void)pthread_mutex_lock(&rows->mutex);
    row->is_used = false;
    snk_sql_vigil_begin_locked(rows, row);
    (void)pthread_cond_broadcast(&rows->changed);
    (void)pthread_mutex_unlock(&rows->mutex);
}

static void forget(snk_sql_rows *rows, snk_sql_row *row)
{
    (void)pthread_mutex_lock(&rows->mutex);
    snk_list_remove(&row->link);
    (void)pthread_cond_broadcast(&rows->changed);
    (void)pthread_mutex_unlock(&rows->mutex);
    free(row);
}

static void drop(snk_sql_rows *rows, snk_sql_row *row)
{
    rows->ops->give(rows->store, row, false);
    forget(rows, row);
}

/* ---- Requests ---- */

static int64_t silence_ms(int64_t lease_ns)
{
    return (lease_ns + SNK_NS_PER_MS - 1) / SNK_NS_PER_MS;
}

/*
 * Locks the row of a lock for a claim. SNK_SQL_ROW_LOCKED: `*row_out` has it, in use by this thread. It is in the table
 * from the beginning, so that a release of this claim by another thread waits for what comes of it.
 */
static snk_sql_taken take(snk_sql_rows *rows, const snk_claim *claim, bool waits, snk_sql_row **row_out,
                          sneck_error *error)
{
    *row_out = NULL;
    snk_sql_row *row = add(rows, claim);
    if (row == NULL) {
        (void)snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
        return SNK_SQL_ROW_FAILED;
    }
    row->silence_ms = silence_ms(claim->send.lease_ns);
    snk_sql_taken result = rows->ops->lock(rows->store, row, waits, error);
    if (result == SNK_SQL_ROW_LOCKED)
        *row_out = row;
    else
        forget(rows, row);
    return result;
}

static void fail(snk_answer *answer, const sneck_error *error)
{
    *answer = (snk_answer){ .kind = SNK_ANSWER_FAILED };
    answer->error = *error;
}

static void ask_without_row(snk_sql_rows *rows, const snk_claim *claim, snk_answer *answer)
{
    rows->ops->ask(rows->store, claim, NULL, answer);
}

/* The claim has the lock in the tables, but a program of somebody has the row: it is next, and must look. */
static void be_next(const snk_sql_rows *rows, snk_answer *answer)
{
    *answer = (snk_answer){ .kind = SNK_ANSWER_QUEUED, .look_after_ns = rows->retry_ns };
}

/* As above for one that does not want to wait: gives back what it has in the tables. */
static void be_busy(snk_sql_rows *rows, const snk_claim *claim, snk_answer *answer)
{
    snk_claim release = *claim;
    release.send.ask = SNK_ASK_RELEASE;
    ask_without_row(rows, &release, answer);
    if (answer->kind == SNK_ANSWER_DONE || answer->kind == SNK_ANSWER_GONE)
        *answer = (snk_answer){ .kind = SNK_ANSWER_BUSY };
    else
        answer->kind = SNK_ANSWER_UNCERTAIN; /* it may still be there: whoever asked must chase it */
}

/* The claim has the row; it keeps it if it has the lock in the tables as well. */
static void ask_with_row(snk_sql_rows *rows, const snk_claim *claim, snk_sql_row *row, snk_answer *answer)
{
    rows->ops->ask(rows->store, claim, row, answer);
    if (answer->kind == SNK_ANSWER_HELD)
        put_back(rows, row);
    else
        drop(rows, row);
}

/* The claim has the lock in the tables: a renewal follows, with the row. Busy: it is next. */
static snk_sql_taken follow_with_row(snk_sql_rows *rows, const snk_claim *claim, snk_answer *answer)
{
    snk_sql_row *row = NULL;
    sneck_error error;
    snk_claim renewal = *claim;
    renewal.send.ask = SNK_ASK_RENEW;
    snk_sql_taken result = take(rows, &renewal, true, &row, &error);
    switch (result) {
    case SNK_SQL_ROW_LOCKED:
        ask_with_row(rows, &renewal, row, answer);
        break;
    case SNK_SQL_ROW_BUSY:
        be_next(rows, answer);
        break;
    case SNK_SQL_ROW_FAILED:
        fail(answer, &error);
        break;
    }
    return result;
}

/*
 * The row was locked when it was tried, and yet nobody has the lock in the tables: mostly one that tries as well, and is
 * about to give the row back. That is waited for, because a lock that is free must be given.
 */
static void acquire_without_row(snk_sql_rows *rows, const snk_claim *claim, snk_answer *answer)
{
    ask_without_row(rows, claim, answer);
    if (answer->kind != SNK_ANSWER_HELD)
        return;
    snk_sql_taken result = follow_with_row(rows, claim, answer);
    if (result == SNK_SQL_ROW_BUSY && !claim->send.queue)
        be_busy(rows, claim, answer);
    else if (answer->kind == SNK_ANSWER_FAILED)
        answer->kind = SNK_ANSWER_UNCERTAIN; /* it has the lock in the tables */
}

static void acquire(snk_sql_rows *rows, const snk_claim *claim, snk_answer *answer)
{
    snk_sql_row *row = NULL;
    sneck_error error;
    switch (take(rows, claim, false, &row, &error)) {
    case SNK_SQL_ROW_LOCKED:
        ask_with_row(rows, claim, row, answer);
        return;
    case SNK_SQL_ROW_BUSY:
        acquire_without_row(rows, claim, answer);
        return;
    case SNK_SQL_ROW_FAILED:
        fail(answer, &error);
        return;
    }
}

static void renew_held(snk_sql_rows *rows, const snk_claim *claim, snk_sql_row *row, snk_answer *answer)
{
    sneck_error error;
    bool was_late = row->is_late;
    if (silence_ms(claim->send.lease_ns) > row->silence_ms)
        row->silence_ms = silence_ms(claim->send.lease_ns);
    snk_sql_beat heard = rows->ops->beat(rows->store, row, &error);
    /* The answer to an old one says nothing about this one, which is what the lease counts from. */
    if (heard == SNK_SQL_BEAT_HEARD && was_late)
        heard = rows->ops->beat(rows->store, row, &error);
    switch (heard) {
    case SNK_SQL_BEAT_HEARD:
        rows->ops->ask(rows->store, claim, row, answer);
        if (answer->kind == SNK_ANSWER_GONE)
            drop(rows, row);
        else
            put_back(rows, row);
        return;
    case SNK_SQL_BEAT_MISSED:
        fail(answer, &error);
        put_back(rows, row);
        return;
    case SNK_SQL_BEAT_DEAD:
        /* The server frees the row when a connection is gone, so there is nothing left to hold. */
        row->is_late = true;
        drop(rows, row);
        *answer = (snk_answer){ .kind = SNK_ANSWER_GONE };
        return;
    }
}

static void renew(snk_sql_rows *rows, const snk_claim *claim, snk_answer *answer)
{
    snk_sql_row *row = use(rows, claim);
    if (row != NULL) {
        renew_held(rows, claim, row, answer);
        return;
    }
    ask_without_row(rows, claim, answer);
    if (answer->kind == SNK_ANSWER_HELD)
        (void)follow_with_row(rows, claim, answer);
}

/* Releases a claim that has no row, as far as this thread knows. */
static void release_without_row(snk_sql_rows *rows, const snk_claim *claim, snk_answer *answer)
{
    ask_without_row(rows, claim, answer);
    /* A renewal on another thread may have taken the row before this was done, and seen the claim hold the lock. */
    snk_sql_row *row = use(rows, claim);
    if (row != NULL)
        drop(rows, row);
}

static void release(snk_sql_rows *rows, const snk_claim *claim, snk_answer *answer)
{
    snk_sql_row *row = use(rows, claim);
    snk_sql_numbers numbers = { .at = { 0 } };
    snk_sql_outcome outcome = SNK_SQL_FAILED;
    sneck_error error;
    if (row != NULL && !row->is_late)
        outcome = rows->ops->release(rows->store, claim, row, &numbers, &error);
    *answer = (snk_answer){ .kind = SNK_ANSWER_FAILED };
    bool done = outcome == SNK_SQL_ANSWERED && snk_sql_answer(&numbers, &claim->send, rows->retry_ns, answer);
    if (done) {
        rows->ops->give(rows->store, row, true);
        forget(rows, row);
    } else if (row != NULL) {
        row->is_late = true; /* whatever is the matter with it, it ends */
        drop(rows, row);
    }
    if (outcome == SNK_SQL_UNCERTAIN) {
        answer->kind = SNK_ANSWER_UNCERTAIN;
        answer->error = error;
    } else if (!done) {
        release_without_row(rows, claim, answer);
    }
}

void snk_sql_row_ask(snk_sql_rows *rows, const snk_claim *claim, snk_answer *answer)
{
    switch (claim->send.ask) {
    case SNK_ASK_ACQUIRE:
        acquire(rows, claim, answer);
        return;
    case SNK_ASK_RENEW:
        renew(rows, claim, answer);
        return;
    case SNK_ASK_RELEASE:
        release(rows, claim, answer);
        return;
    }
}
