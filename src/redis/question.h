/* Questions of the scout: the same one to several servers at once. */
#ifndef SNK_REDIS_QUESTION_H
#define SNK_REDIS_QUESTION_H

#include "redis/topology_parts.h"

#define SNK_QUESTION_WORDS_MAX 4

typedef struct snk_question {
    snk_node *node; /* a reference; NULL: nobody is asked */
    snk_redis_call call;
} snk_question;

/* Asks `count` (at most SNK_REDIS_DRIVE_MAX) servers and waits for all answers, `timeout_ns` at most. */
void snk_question_ask(snk_question questions[], size_t count, size_t word_count, const char *const words[],
                      int64_t timeout_ns);

/* The answer, if there is one and it is no error; else NULL, and `error` (may be NULL) says why. */
const redisReply *snk_question_answer(const snk_question *question, sneck_error *error);

/* Forgets the answers; the references stay. */
void snk_question_clear(snk_question questions[], size_t count);

/* The time limit for a question: less than what callers get, so that there is time for another one. */
int64_t snk_question_timeout_ns(const snk_topology *topology);

#endif
