#include "store/sql/answer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/limits.h"

/* A waiter's look at the end of a lease is later the further back it stands, so that not all of them ask at once. */
#define STAGGER_MS_MAX 100

bool snk_sql_numbers_read(snk_sql_numbers *numbers, const char *text)
{
    *numbers = (snk_sql_numbers){ .at = { 0 } };
    if (*text == '{')
        text++;
    for (size_t i = 0; i < SNK_SQL_NUMBERS_MAX; i++) {
        char *end = NULL;
        errno = 0;
        numbers->at[i] = strtoll(text, &end, 10);
        if (end == text || errno != 0)
            return false;
        if (*end == '\0' || *end == '}')
            return true;
        if (*end != ',')
            return false;
        text = end + 1;
    }
    return false;
}

static void answer_queued(const snk_sql_numbers *numbers, const snk_send *send, int64_t retry_ns, snk_answer *answer)
{
    int64_t before = numbers->at[2] > 0 ? numbers->at[2] : 0;
    int64_t stagger_ms = 1 + (before < STAGGER_MS_MAX ? before : STAGGER_MS_MAX);
    int64_t left_us = numbers->at[1] > 0 ? numbers->at[1] : 0;
    int64_t look_ns = send->lease_ns / 3;
    if (left_us < look_ns / SNK_NS_PER_US - stagger_ms * 1000)
        look_ns = left_us * SNK_NS_PER_US + stagger_ms * SNK_NS_PER_MS;
    /* Only the first one looks for a hold that ends without a word; it is the one who would get the lock. */
    if (numbers->at[3] == 1 && before == 0 && retry_ns < look_ns)
        look_ns = retry_ns;
    answer->kind = SNK_ANSWER_QUEUED;
    answer->look_after_ns = look_ns;
}

bool snk_sql_answer(const snk_sql_numbers *numbers, const snk_send *send, int64_t retry_ns, snk_answer *answer)
{
    switch (numbers->at[0]) {
    case SNK_SQL_HELD:
        answer->kind = SNK_ANSWER_HELD;
        answer->token_first = (uint64_t)numbers->at[1];
        answer->token_last = (uint64_t)numbers->at[2];
        answer->units = (uint32_t)numbers->at[3];
        return true;
    case SNK_SQL_QUEUED:
        answer_queued(numbers, send, retry_ns, answer);
        return true;
    case SNK_SQL_BUSY:
        answer->kind = SNK_ANSWER_BUSY;
        return true;
    case SNK_SQL_GONE:
        answer->kind = SNK_ANSWER_GONE;
        return true;
    case SNK_SQL_DONE:
        answer->kind = SNK_ANSWER_DONE;
        return true;
    default:
        return false;
    }
}

int64_t snk_sql_tombstone_us(const snk_send *send)
{
    int64_t life_ns = send->lease_ns > SNK_TOMBSTONE_NS ? send->lease_ns : SNK_TOMBSTONE_NS;
    return send->unanswered ? life_ns / SNK_NS_PER_US : 0;
}
