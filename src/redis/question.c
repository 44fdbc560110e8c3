#include "redis/question.h"

#include "base/error.h"
#include "redis/errors.h"
#include "redis/latch.h"

/* In a look a server that does not answer is given up sooner than a command. */
#define TIMEOUT_NS_MAX (1 * SNK_NS_PER_S)

int64_t snk_question_timeout_ns(const snk_topology *topology)
{
    int64_t timeout_ns = topology->plan.server.command_timeout_ns;
    return timeout_ns == 0 || timeout_ns > TIMEOUT_NS_MAX ? TIMEOUT_NS_MAX : timeout_ns;
}

void snk_question_ask(snk_question questions[], size_t count, size_t word_count, const char *const words[],
                      int64_t timeout_ns)
{
    snk_latch latch = { .left = (uint32_t)count };
    for (size_t i = 0; i < count; i++) {
        snk_redis_call *call = &questions[i].call;
        snk_redis_call_init(call);
        call->timeout_ns = timeout_ns;
        call->done = snk_latch_note;
        call->context = &latch;
        call->outcome = SNK_REDIS_NOT_SENT;
        if (questions[i].node == NULL)
            snk_fail(&call->error, SNECK_UNAVAILABLE, 0, "redis: nobody to ask");
        if (questions[i].node == NULL || snk_node_is_down(questions[i].node, &call->error) ||
            snk_redis_call_format(call, word_count, words, NULL, &call->error) != SNECK_OK)
            snk_latch_note(call);
        else
            snk_redis_submit(questions[i].node->redis, &(snk_redis_call *){ call }, 1);
    }
    snk_latch_wait(&latch);
}

const redisReply *snk_question_answer(const snk_question *question, sneck_error *error)
{
    const snk_redis_call *call = &question->call;
    if (call->outcome == SNK_REDIS_REPLY) {
        if (snk_redis_error_explain(call->reply, snk_redis_where(question->node->redis), error) == SNECK_OK)
            return call->reply;
        return NULL;
    }
    snk_fail_as(error, &call->error);
    /* A question that may have been heard has changed nothing. */
    if (error != NULL && error->status == SNECK_UNKNOWN)
        error->status = SNECK_UNAVAILABLE;
    return NULL;
}

void snk_question_clear(snk_question questions[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        snk_redis_call_deinit(&questions[i].call);
}
