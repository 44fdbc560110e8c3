#include "store/redis/together.h"

#include <stdlib.h>

#include "base/error.h"
#include "store/redis/run.h"
#include "store/redis/texts.h"

#define CLAIMS_MAX 64
/* What a script is told of all claims, and of each. */
#define COMMON 4
#define OF_EACH 5
#define WORDS_MAX (4 + COMMON + CLAIMS_MAX * (SNK_KEYS + OF_EACH))

typedef struct request {
    size_t count; /* of words */
    const char *words[WORDS_MAX];
    char key_count[SNK_NUMBER_SIZE];
    snk_texts texts[]; /* of each claim */
} request;

static bool is_try(const snk_claim *claim)
{
    return claim->send.ask == SNK_ASK_ACQUIRE && !claim->send.queue && claim->grip.mode == SNK_MODE_EXCLUSIVE &&
           claim->grip.object == SNK_OBJECT_LOCK;
}

static bool are_tries(const snk_call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        if (!is_try(&call->claims[i]))
            return false;
    }
    return call->count > 1 && call->count <= CLAIMS_MAX;
}

static void add_word(request *made, const char *word)
{
    made->words[made->count++] = word;
}

static void add_claim(request *made, const snk_claim *claim, snk_texts *text)
{
    const snk_send *send = &claim->send;
    uint32_t tokens = send->tokens < 1 ? 1 : send->tokens;
    snk_id_to_hex(&send->claim, text->claim);
    (void)snk_text_number(text->lease, snk_text_ms(send->lease_ns));
    (void)snk_text_number(text->tokens, tokens < SNK_TOKEN_BLOCK_MAX ? tokens : SNK_TOKEN_BLOCK_MAX);
    add_word(made, text->claim);
    add_word(made, text->lease);
    add_word(made, text->tokens);
    add_word(made, snk_text_flag(send->fair));
    add_word(made, claim->why == NULL ? "" : claim->why);
}

/* All words but the first two, which say what is run. */
static sneck_status fill(request *made, const snk_redis_store *store, const snk_call *call, sneck_error *error)
{
    made->count = 2;
    (void)snk_text_number(made->key_count, (int64_t)(call->count * SNK_KEYS));
    add_word(made, made->key_count);
    for (size_t i = 0; i < call->count; i++) {
        snk_keys *keys = &made->texts[i].keys;
        sneck_status status = snk_keys_make(keys, store->prefix, call->claims[i].name, error);
        if (status != SNECK_OK)
            return status;
        for (size_t j = 0; j < SNK_KEYS; j++)
            add_word(made, keys->text[j]);
    }
    snk_texts_asker(&made->texts[0], store, call->claims[0].thread);
    add_word(made, snk_text_flag(store->options.history));
    add_word(made, made->texts[0].owner);
    add_word(made, made->texts[0].pid);
    add_word(made, store->host);
    for (size_t i = 0; i < call->count; i++)
        add_claim(made, &call->claims[i], &made->texts[i]);
    add_word(made, ""); /* the shard of a cluster */
    return SNECK_OK;
}

static sneck_status run(snk_redis_store *store, request *made, snk_redis_call *call, bool *uncertain_out,
                        sneck_error *error)
{
    const snk_script *script = &snk_scripts[store->options.layout][SNK_SCRIPT_TOGETHER];
    for (int with_text = 0; with_text < 2; with_text++) {
        made->words[0] = with_text ? "EVAL" : "EVALSHA";
        made->words[1] = with_text ? script->text : script->sha;
        sneck_status status = snk_redis_call_format(call, made->count, made->words, NULL, error);
        if (status != SNECK_OK)
            return status;
        snk_redis_call *const calls[] = { call };
        snk_topology_drive(store->topology, calls, 1);
        if (!snk_run_needs_text(call))
            break;
    }
    return snk_run_result(store, call, uncertain_out, error);
}

static void answer_all(snk_redis_store *store, const snk_call *call, const redisReply *reply, const snk_answer *all)
{
    for (size_t i = 0; i < call->count; i++) {
        snk_answer *answer = &call->answers[i];
        *answer = *all;
        answer->ticket = snk_bell_ticket(&store->bell, &call->claims[i].send.claim);
        if (answer->kind == SNK_ANSWER_HELD) {
            answer->token_first = (uint64_t)snk_reply_number(reply, 2 * i + 1);
            answer->token_last = (uint64_t)snk_reply_number(reply, 2 * i + 2);
        }
    }
}

/* What came of it; false: each must be asked for by itself. */
static bool read_answer(snk_redis_store *store, const snk_redis_call *asked, snk_answer *all)
{
    switch (snk_reply_number(asked->reply, 0)) {
    case SNK_REPLY_HELD:
        all->kind = SNK_ANSWER_HELD;
        return true;
    case SNK_REPLY_BUSY:
        all->kind = SNK_ANSWER_BUSY;
        return true;
    case SNK_REPLY_ONE_BY_ONE:
        return false;
    default:
        all->kind = SNK_ANSWER_UNCERTAIN;
        (void)snk_fail(&all->error, SNECK_UNKNOWN, 0, "%s: the answer to a script makes no sense", store->where);
        return true;
    }
}

bool snk_together_acquire(snk_redis_store *store, const snk_call *call)
{
    /* Where claims are kept track of, or replicas are waited for, each is asked for by itself. */
    if (store->tracks || store->options.commits || !are_tries(call))
        return false;
    request *made = malloc(sizeof *made + call->count * sizeof made->texts[0]);
    sneck_error error;
    if (made == NULL || fill(made, store, call, &error) != SNECK_OK) {
        free(made);
        return false;
    }
    snk_redis_call asked;
    snk_redis_call_init(&asked);
    snk_answer all = { .kind = SNK_ANSWER_FAILED };
    bool uncertain = false;
    bool done = true;
    sneck_status status = run(store, made, &asked, &uncertain, &all.error);
    if (status == SNECK_OK)
        done = read_answer(store, &asked, &all);
    else if (uncertain)
        all.kind = SNK_ANSWER_UNCERTAIN;
    all.run = asked.run;
    if (done)
        answer_all(store, call, asked.reply, &all);
    snk_redis_call_deinit(&asked);
    free(made);
    return done;
}
