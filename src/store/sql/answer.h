/*
 * What stores on SQL servers share: the numbers that the stored routines answer with, and what may be believed about a
 * statement that was sent.
 */
#ifndef SNK_STORE_SQL_ANSWER_H
#define SNK_STORE_SQL_ANSWER_H

#include "engine/claim.h"

/*
 * A statement that changes something is decided when the server has said that its transaction is over. Rows, or a "done"
 * for the statement, may come before the commit and prove nothing.
 */
typedef enum snk_sql_outcome {
    SNK_SQL_ANSWERED, /* committed */
    SNK_SQL_FAILED,   /* it did not happen: it never left, or the server has rolled it back and said so */
    SNK_SQL_UNCERTAIN /* it left, and the end was not heard: it may have been committed, or may be yet */
} snk_sql_outcome;

/* The first number of an answer. */
enum {
    SNK_SQL_HELD = 1,   /* first token, last token, units */
    SNK_SQL_QUEUED = 2, /* time left of the hold in us, places before this one, 1: the hold may end without a word,
                           how long it has waited in us (where nobody is told anything) */
    SNK_SQL_BUSY = 3,
    SNK_SQL_GONE = 4,
    SNK_SQL_DONE = 5 /* of a break: perhaps the transaction that had the row */
};

#define SNK_SQL_NUMBERS_MAX 5

typedef struct snk_sql_numbers {
    int64_t at[SNK_SQL_NUMBERS_MAX]; /* those that were not there are 0 */
} snk_sql_numbers;

/* Reads "{1,2,3}", with or without braces. False when it makes no sense. */
bool snk_sql_numbers_read(snk_sql_numbers *numbers, const char *text);

/*
 * Fills kind, tokens and time to look of `answer`. `retry_ns` is the pause between looks where nobody would say that the
 * hold has ended. False when the numbers make no sense.
 */
bool snk_sql_answer(const snk_sql_numbers *numbers, const snk_send *send, int64_t retry_ns, snk_answer *answer);

/* How long the store remembers that this claim was given up, in us; 0: not at all. */
int64_t snk_sql_tombstone_us(const snk_send *send);

#endif
