#include "store/redis/together.h"

#include <stdlib.h>

#include "base/error.h"
#include "store/redis/claims.h"
#include "store/redis/run.h"
#include "store/redis/texts.h"

#define CLAIMS_MAX 64
/* What a script is told of all claims, and of each. */
#define COMMON 4
#define OF_EACH 5
#define WORDS_MAX (4 + COMMON + CLAIMS_MAX * (SNK_KEYS + OF_EACH))

/* Claims whose keys are in one slot, and the script that asks for them. With one server all are. */
typedef struct group {
    uint16_t slot;
    size_t count;
    size_t members[CLAIMS_MAX]; /* in the call */
    snk_redis_call asked;
    size_t word_count;
    const char *words[WORDS_MAX];
    char key_count[SNK_NUMBER_SIZE];
    char shard[SNK_SHARD_SIZE];
} group;

typedef struct request {
    const snk_call *call;
    size_t group_count;
    group *groups;               /* owned */
    snk_texts texts[CLAIMS_MAX]; /* of each claim */
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

/* ---- Asking ---- */

static void add_word(group *self, const char *word)
{
    self->words[self->word_count++] = word;
}

static void add_claim(group *self, const snk_claim *claim, snk_texts *text)
{
    const snk_send *send = &claim->send;
    uint32_t tokens = send->tokens < 1 ? 1 : send->tokens;
    snk_id_to_hex(&send->claim, text->claim);
    (void)snk_text_number(text->lease, snk_text_ms(send->lease_ns));
    (void)snk_text_number(text->tokens, tokens < SNK_TOKEN_BLOCK_MAX ? tokens : SNK_TOKEN_BLOCK_MAX);
    add_word(self, text->claim);
    add_word(self, text->lease);
    add_word(self, text->tokens);
    add_word(self, snk_text_flag(send->fair));
    add_word(self, claim->why == NULL ? "" : claim->why);
}

/* All words but the first two, which say what is run. */
static void fill(request *made, const snk_redis_store *store, group *self)
{
    snk_texts *first = &made->texts[self->members[0]];
    self->word_count = 2;
    (void)snk_text_number(self->key_count, (int64_t)(self->count * SNK_KEYS));
    add_word(self, self->key_count);
    for (size_t i = 0; i < self->count; i++)
        for (size_t j = 0; j < SNK_KEYS; j++)
            add_word(self, made->texts[self->members[i]].keys.text[j]);
    snk_texts_asker(first, store, made->call->claims[self->members[0]].thread);
    add_word(self, snk_text_flag(store->options.history));
    add_word(self, first->owner);
    add_word(self, first->pid);
    add_word(self, store->host);
    for (size_t i = 0; i < self->count; i++)
        add_claim(self, &made->call->claims[self->members[i]], &made->texts[self->members[i]]);
    snk_channel_shard(store, self->slot, self->shard);
    add_word(self, self->shard);
}

static group *group_of(request *made, uint16_t slot)
{
    for (size_t i = 0; i < made->group_count; i++)
        if (made->groups[i].slot == slot)
            return &made->groups[i];
    group *added = &made->groups[made->group_count++];
    added->slot = slot;
    snk_redis_call_init(&added->asked);
    added->asked.late = SNK_REDIS_LATE_DOUBTED; /* as of one claim */
    return added;
}

static bool divide(request *made, const snk_redis_store *store)
{
    for (size_t i = 0; i < made->call->count; i++) {
        snk_keys *keys = &made->texts[i].keys;
        if (snk_keys_make(keys, store->prefix, made->call->claims[i].name, NULL) != SNECK_OK)
            return false;
        group *self = group_of(made, snk_channel_slot(store, keys));
        self->members[self->count++] = i;
    }
    for (size_t i = 0; i < made->group_count; i++)
        fill(made, store, &made->groups[i]);
    return true;
}

/* Sends what was not sent yet, or was not known by its sum, to all servers at once. */
static void send(request *made, snk_redis_store *store, bool with_text)
{
    const snk_script *script = &snk_scripts[store->options.layout][SNK_SCRIPT_TOGETHER];
    snk_redis_call *calls[CLAIMS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < made->group_count; i++) {
        group *self = &made->groups[i];
        if (with_text && !snk_run_needs_text(&self->asked))
            continue;
        self->words[0] = with_text ? "EVAL" : "EVALSHA";
        self->words[1] = with_text ? script->text : script->sha;
        sneck_error error;
        if (snk_redis_call_format(&self->asked, self->word_count, self->words, NULL, &error) != SNECK_OK)
            continue; /* which the call says */
        self->asked.slot = self->slot;
        calls[count++] = &self->asked;
    }
    if (count > 0)
        snk_topology_drive(store->topology, calls, count);
}

/* ---- Answers ---- */

/* What came of it; false: each must be asked for by itself. */
static bool read_reply(snk_redis_store *store, const snk_redis_call *asked, snk_answer *all)
{
    bool uncertain = false;
    *all = (snk_answer){ .kind = SNK_ANSWER_FAILED, .run = asked->run };
    if (snk_run_result(store, asked, &uncertain, &all->error) != SNECK_OK) {
        all->kind = uncertain ? SNK_ANSWER_UNCERTAIN : SNK_ANSWER_FAILED;
        return true;
    }
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

static void answer_group(snk_redis_store *store, const request *made, const group *self, const snk_answer *all)
{
    for (size_t i = 0; i < self->count; i++) {
        const snk_id *claim = &made->call->claims[self->members[i]].send.claim;
        snk_answer *answer = &made->call->answers[self->members[i]];
        *answer = *all;
        answer->ticket = snk_bell_ticket(&store->bell, claim);
        if (answer->kind == SNK_ANSWER_HELD) {
            answer->token_first = (uint64_t)snk_reply_number(self->asked.reply, 2 * i + 1);
            answer->token_last = (uint64_t)snk_reply_number(self->asked.reply, 2 * i + 2);
            snk_wake_hold(store, claim);
        } else if (answer->kind != SNK_ANSWER_UNCERTAIN) {
            snk_wake_forget(store, claim);
        }
    }
}

static size_t answer_all(snk_redis_store *store, const request *made, size_t left[])
{
    size_t left_count = 0;
    for (size_t i = 0; i < made->group_count; i++) {
        const group *self = &made->groups[i];
        snk_answer all;
        if (read_reply(store, &self->asked, &all)) {
            answer_group(store, made, self, &all);
            continue;
        }
        for (size_t j = 0; j < self->count; j++)
            left[left_count++] = self->members[j];
    }
    return left_count;
}

/* ---- The call ---- */

static request *new_request(const snk_call *call)
{
    request *made = malloc(sizeof *made);
    if (made == NULL)
        return NULL;
    made->call = call;
    made->group_count = 0;
    made->groups = calloc(call->count, sizeof *made->groups);
    if (made->groups != NULL)
        return made;
    free(made);
    return NULL;
}

static void free_request(request *made)
{
    for (size_t i = 0; i < made->group_count; i++)
        snk_redis_call_deinit(&made->groups[i].asked);
    free(made->groups);
    free(made);
}

static bool keep_track(snk_redis_store *store, const request *made)
{
    for (size_t i = 0; i < made->group_count; i++) {
        const group *self = &made->groups[i];
        for (size_t j = 0; j < self->count; j++)
            if (!snk_claim_keep_track(store, &made->call->claims[self->members[j]], self->slot))
                return false;
    }
    return true;
}

static size_t leave_all(const snk_call *call, size_t left[])
{
    for (size_t i = 0; i < call->count; i++)
        left[i] = i;
    return call->count;
}

size_t snk_together_acquire(snk_redis_store *store, const snk_call *call, size_t left[])
{
    /* Where replicas are waited for, each is asked for by itself. */
    request *made = store->options.commits || !are_tries(call) ? NULL : new_request(call);
    if (made == NULL)
        return leave_all(call, left);
    size_t left_count = 0;
    if (divide(made, store) && keep_track(store, made)) {
        send(made, store, false);
        send(made, store, true);
        left_count = answer_all(store, made, left);
    } else {
        left_count = leave_all(call, left);
    }
    free_request(made);
    return left_count;
}
