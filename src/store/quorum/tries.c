#include "store/quorum/tries.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "store/quorum/adopt.h"
#include "store/quorum/fields.h"
#include "store/quorum/undo.h"

/* What the vote script answers first. */
enum {
    REPLY_VOTED = 1,
    REPLY_LOW = 2,
    REPLY_TAKEN = 3,
    REPLY_HIGH = 4,
    REPLY_BURIED = 5,
    REPLY_YOUNG = 6,
    REPLY_OTHER_LEASE = 7
};

/* Those who wait do not all look in the same moment. */
#define JITTER_NS_MAX (8 * SNK_NS_PER_MS)

/* ---- Answers of nodes ---- */

static void read_holder(const redisReply *reply, snk_vote *vote)
{
    char text[SNK_ID_TEXT_SIZE];
    const redisReply *holder = reply->elements > 4 ? reply->element[4] : NULL;
    if (holder == NULL || holder->type != REDIS_REPLY_STRING || (size_t)holder->len < sizeof text - 1)
        return; /* a client of another kind */
    memcpy(text, holder->str, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    if (!snk_id_from_hex(&vote->holder, text))
        vote->holder = (snk_id){ { 0 } };
}

static snk_vote read_reply(snk_operation *operation, const snk_redis_call *call, snk_quorum_node *node)
{
    const redisReply *reply = call->reply;
    snk_vote vote = { .kind = SNK_VOTE_SILENT };
    int64_t code = snk_node_number(reply, 0);
    snk_quorum_node_heard(node, call, snk_node_number(reply, 1));
    switch (code) {
    case REPLY_VOTED:
        vote.kind = SNK_VOTE_YES;
        (void)snk_quorum_node_agrees(node, operation->store->options.lease_max_ms);
        vote.counts = snk_quorum_node_counts(node, call, &vote.remaining_ns);
        break;
    case REPLY_LOW:
    case REPLY_HIGH:
        vote.kind = code == REPLY_LOW ? SNK_VOTE_LOW : SNK_VOTE_HIGH;
        vote.floor = (uint64_t)snk_node_number(reply, 2);
        vote.beaten = snk_node_number(reply, 2) > snk_node_number(reply, 1);
        break;
    case REPLY_TAKEN:
        vote.kind = SNK_VOTE_TAKEN;
        vote.floor = (uint64_t)snk_node_number(reply, 2);
        vote.remaining_ns = snk_node_number(reply, 3) * SNK_NS_PER_MS;
        vote.token = (uint64_t)snk_node_number(reply, 5);
        read_holder(reply, &vote);
        break;
    case REPLY_BURIED:
        vote.kind = SNK_VOTE_BURIED;
        break;
    case REPLY_YOUNG:
        vote.kind = SNK_VOTE_YOUNG;
        vote.remaining_ns = snk_node_number(reply, 2) * SNK_NS_PER_MS;
        snk_quorum_node_is_young(node, vote.remaining_ns);
        break;
    case REPLY_OTHER_LEASE:
        vote.kind = SNK_VOTE_FAILED;
        (void)snk_quorum_node_agrees(node, snk_node_number(reply, 2));
        /* Once it is over, whoever asked may be reading this to say why. */
        if (!operation->is_over)
            operation->other_lease_max_ms = snk_node_number(reply, 2);
        break;
    default:
        break;
    }
    return vote;
}

bool snk_try_settle_locked(snk_operation *operation, snk_request *request)
{
    snk_quorum_node *node = request->errand.node;
    const snk_redis_call *call = &request->errand.call;
    snk_vote vote = { .kind = SNK_VOTE_FAILED };
    bool uncertain = false;
    sneck_error error;
    if (snk_node_result(call, node->where, &uncertain, &error) == SNECK_OK) {
        vote = read_reply(operation, call, node);
    } else {
        vote.kind = uncertain ? SNK_VOTE_SILENT : SNK_VOTE_FAILED;
        snk_operation_trouble_locked(operation, &error);
    }
    request->vote = vote.kind;
    return snk_ballot_answer(&operation->ballot, request->round, node->index, &vote, snk_now_ns()) != SNK_VERDICT_OPEN;
}

static snk_release_terms undo_terms(const snk_operation *operation)
{
    return (snk_release_terms){
        .name = operation->name,
        .claim = operation->send.claim,
        .attempt = operation->attempt,
        .lease_ns = operation->send.lease_ns,
        .kind = "",
        .reason = "",
    };
}

void snk_try_settled(snk_operation *operation, const snk_request *request, bool was_over)
{
    uint32_t node = request->errand.node->index;
    if (!was_over)
        return;
    snk_afterword after = snk_ballot_afterword(request->vote, request->errand.is_sent_again);
    bool is_unknown = after == SNK_AFTER_UNKNOWN;
    if (after == SNK_AFTER_ADOPT)
        snk_adopt(operation, UINT32_C(1) << node);
    if (after != SNK_AFTER_VOTED && !is_unknown)
        return;
    if (snk_quorum_claims_touch(&operation->store->claims, &operation->send.claim, operation->attempt, node,
                                is_unknown))
        return; /* it holds; its release will see to that */
    snk_release_terms terms = undo_terms(operation);
    terms.unanswered = is_unknown;
    snk_undo_start(operation->store, node, &terms);
}

/* ---- Rounds ---- */

snk_operation *snk_try_begin(snk_quorum_store *store, const snk_claim *claim, const snk_quorum_claim *known,
                             snk_answer *answer)
{
    const snk_send *send = &claim->send;
    snk_operation *operation = snk_operation_new(store, SNK_OPERATION_BALLOT, claim->name, send);
    bool entered = known != NULL;
    if (operation != NULL && !entered)
        entered = snk_quorum_claims_add(&store->claims, &send->claim, claim->name, claim->why, claim->thread);
    if (operation == NULL || !entered) {
        (void)snk_fail(&answer->error, SNECK_NO_MEMORY, 0, "out of memory for a request");
        if (operation != NULL)
            snk_operation_unref(operation);
        return NULL;
    }
    operation->script = SNK_NODE_VOTE;
    operation->attempt = known == NULL ? 0 : known->attempts;
    snk_ballot_init(&operation->ballot, &store->quorum, send);
    operation->ballot.above = known == NULL ? 0 : known->above;
    return operation;
}

static uint64_t propose(snk_quorum_store *store, const snk_ballot *ballot)
{
    snk_node_clock clocks[SNK_QUORUM_NODES_MAX];
    uint64_t above = atomic_load_explicit(&store->last_token, memory_order_relaxed);
    if (ballot->above > above)
        above = ballot->above;
    (void)pthread_mutex_lock(&store->mutex);
    for (uint32_t i = 0; i < store->quorum.nodes; i++)
        clocks[i] = store->nodes[i].clock;
    (void)pthread_mutex_unlock(&store->mutex);
    uint64_t token = snk_quorum_propose(&store->quorum, clocks, snk_now_ns(), above, ballot->passed);
    /* Only to save rounds: two threads may propose the same, and the nodes tell them apart. */
    uint64_t last = atomic_load_explicit(&store->last_token, memory_order_relaxed);
    while (last < token && !atomic_compare_exchange_weak_explicit(&store->last_token, &last, token,
                                                                  memory_order_relaxed, memory_order_relaxed))
        continue;
    return token;
}

static sneck_status format_round(snk_operation *operation, const snk_quorum_fields *fields, uint64_t token,
                                 sneck_error *error)
{
    snk_quorum_store *store = operation->store;
    snk_keys keys;
    snk_node_words words;
    char lease[SNK_NUMBER_SIZE];
    sneck_status status = snk_keys_make(&keys, store->prefix, operation->name, error);
    if (status != SNECK_OK)
        return status;
    snk_quorum_texts texts;
    snk_quorum_texts_make(store, fields, token, &texts);
    (void)snk_text_number(lease, snk_quorum_ms(operation->send.lease_ns));
    snk_node_words_begin(&words, SNK_NODE_VOTE, 4);
    snk_node_words_add_key(&words, &keys, SNK_KEY_LOCK);
    snk_node_words_add_key(&words, &keys, SNK_KEY_TOKEN);
    snk_node_words_add_key(&words, &keys, SNK_KEY_GONE);
    snk_node_words_add(&words, store->marker);
    snk_node_words_add(&words, texts.claim);
    snk_node_words_add(&words, lease);
    snk_node_words_add(&words, texts.token);
    snk_node_words_add(&words, store->lease_max);
    snk_quorum_texts_add(store, &texts, &words);
    return snk_operation_prepare(operation, &words, error);
}

bool snk_try_next(snk_operation *operation, const snk_claim *claim, snk_answer *answer)
{
    snk_quorum_claim known;
    snk_quorum_fields fields = { .claim = claim->send.claim, .attempt = operation->attempt };
    /* A renew says nothing about the asker: the table knows since the acquire. */
    if (!snk_quorum_claims_find(&operation->store->claims, &claim->send.claim, &known)) {
        answer->kind = SNK_ANSWER_GONE;
        return false;
    }
    fields.thread = known.thread;
    fields.why = known.why;
    (void)pthread_mutex_lock(&operation->mutex);
    uint64_t token = propose(operation->store, &operation->ballot);
    if (token > 0)
        snk_ballot_ask(&operation->ballot, token);
    (void)pthread_mutex_unlock(&operation->mutex);
    if (token == 0) {
        answer->kind = SNK_ANSWER_FAILED;
        (void)snk_fail(&answer->error, SNECK_UNAVAILABLE, 0, "no node has ever answered");
        return false;
    }
    answer->kind = SNK_ANSWER_FAILED;
    return format_round(operation, &fields, token, &answer->error) == SNECK_OK;
}

/* ---- The end ---- */

static void explain(const snk_operation *operation, sneck_status status, const char *what, snk_answer *answer)
{
    const sneck_error *trouble = &operation->trouble;
    const snk_quorum_store *store = operation->store;
    bool away = trouble->status == SNECK_UNAVAILABLE || trouble->status == SNECK_UNKNOWN;
    if (trouble->status != SNECK_OK && !away && status == SNECK_UNAVAILABLE)
        status = trouble->status;
    (void)snk_fail(&answer->error, status, trouble->cause, "%s; a majority of the %u nodes is needed%s%.140s", what,
                   store->quorum.nodes, trouble->status == SNECK_OK ? "" : ": ",
                   trouble->status == SNECK_OK ? "" : trouble->message);
}

static void explain_young(const snk_operation *operation, snk_answer *answer)
{
    (void)snk_fail(&answer->error, SNECK_UNAVAILABLE, 0,
                   "too many nodes were started, or emptied, less than lease_max and a second ago (they may have "
                   "forgotten votes); enough of them count in %.1f s",
                   (double)operation->ballot.pause_ns / 1e9);
}

/* What the caller is told of a verdict that is no grant; FAILED or UNCERTAIN, with why. */
static void refuse(const snk_operation *operation, snk_answer *answer)
{
    answer->kind = SNK_ANSWER_FAILED;
    switch (operation->ballot.verdict) {
    case SNK_VERDICT_YOUNG:
        explain_young(operation, answer);
        break;
    case SNK_VERDICT_LATE:
        explain(operation, SNECK_UNAVAILABLE, "the nodes took longer to answer than the lease lasts", answer);
        break;
    case SNK_VERDICT_SKEWED:
        explain(operation, SNECK_UNAVAILABLE,
                "no token suits the nodes: their clocks are too far apart, or they are too slow", answer);
        break;
    case SNK_VERDICT_UNCERTAIN:
        answer->kind = SNK_ANSWER_UNCERTAIN;
        explain(operation, SNECK_UNKNOWN, "too few nodes answered in time", answer);
        break;
    case SNK_VERDICT_FAILED:
        if (operation->other_lease_max_ms != 0)
            (void)snk_fail(
                &answer->error, SNECK_INVALID, 0,
                "the nodes are used with lease_max=%lldms, and this client says %sms: all clients must agree",
                (long long)operation->other_lease_max_ms, operation->store->lease_max);
        else
            explain(operation, SNECK_UNAVAILABLE, "too few nodes can be reached", answer);
        break;
    case SNK_VERDICT_OPEN:
    case SNK_VERDICT_GRANTED:
    case SNK_VERDICT_AGAIN:
    case SNK_VERDICT_BUSY:
    case SNK_VERDICT_BURIED:
        explain(operation, SNECK_UNAVAILABLE, "the claim was not granted", answer);
        break;
    }
}

/*
 * May it wait? Nodes that answer, but cannot grant it yet, are worth waiting for too; the next look says what the
 * trouble is.
 */
static bool may_wait(const snk_operation *operation)
{
    snk_verdict verdict = operation->ballot.verdict;
    return operation->send.ask == SNK_ASK_RENEW ||
           (operation->send.queue && (verdict == SNK_VERDICT_BUSY || verdict == SNK_VERDICT_YOUNG ||
                                      verdict == SNK_VERDICT_SKEWED || verdict == SNK_VERDICT_LATE));
}

/* It waits: true. The next look is another try. */
static bool wait_for_it(snk_operation *operation, snk_answer *answer)
{
    snk_quorum_store *store = operation->store;
    const snk_ballot *ballot = &operation->ballot;
    bool news = false;
    bool busy = ballot->verdict == SNK_VERDICT_BUSY;
    (void)pthread_mutex_lock(&operation->mutex); /* answers may still come */
    const snk_quorum_refusal refusal = { .above = ballot->above, .free = snk_ballot_free(ballot) };
    (void)pthread_mutex_unlock(&operation->mutex);
    if (!snk_quorum_claims_wait(&store->claims, &operation->send.claim, &refusal, snk_quorum_majority(&store->quorum),
                                &news))
        return false;
    if (operation->send.ask == SNK_ASK_RENEW && !busy) {
        refuse(operation, answer);
        answer->kind = SNK_ANSWER_FAILED; /* its votes are taken back: it did not happen, and it waits on */
        if (answer->error.status == SNECK_UNKNOWN)
            answer->error.status = SNECK_UNAVAILABLE;
        return true;
    }
    int64_t look_ns = busy ? ballot->pause_ns : 1;
    look_ns += snk_quorum_jitter(store, look_ns < JITTER_NS_MAX ? look_ns : JITTER_NS_MAX);
    if (busy && store->retry_ns < look_ns && (!store->options.announce || !snk_quorum_hears(store, operation->name)))
        look_ns = store->retry_ns;
    /* It came before anybody could be rung. */
    if (news)
        snk_bell_ring(&store->bell, operation->name, &operation->send.claim);
    if (look_ns < 1)
        look_ns = 1;
    answer->kind = SNK_ANSWER_QUEUED;
    answer->look_after_ns = look_ns < operation->send.lease_ns / 3 ? look_ns : operation->send.lease_ns / 3;
    return true;
}

static void forget_claim(snk_operation *operation)
{
    snk_quorum_claim known;
    if (snk_quorum_claims_remove(&operation->store->claims, &operation->send.claim, operation->name, &known) &&
        known.listens)
        snk_quorum_unlisten(operation->store, operation->name);
}

/*
 * It is to hear of the release from now on: true. The channel is subscribed to before the claim says so, since whoever
 * gives the claim up (on another thread, perhaps) unsubscribes when it says so.
 */
static bool listen_for_it(snk_operation *operation)
{
    snk_quorum_store *store = operation->store;
    snk_quorum_claim known;
    if (operation->ballot.verdict != SNK_VERDICT_BUSY || !store->options.announce ||
        !snk_quorum_claims_find(&store->claims, &operation->send.claim, &known) || known.listens)
        return false;
    snk_quorum_listen(store, operation->name);
    if (snk_quorum_claims_listen(&store->claims, &operation->send.claim))
        return true;
    snk_quorum_unlisten(store, operation->name);
    return false;
}

/* With the operation's mutex: from now on what comes late is dealt with by itself, and finds the table as it is. */
static bool hold_locked(snk_operation *operation, bool *listens_out)
{
    const snk_ballot *ballot = &operation->ballot;
    snk_quorum_claim known = {
        .held_by = operation->attempt,
        .token = ballot->token,
        .touched = snk_ballot_touched(ballot),
        .unanswered = snk_ballot_unanswered(ballot),
    };
    return snk_quorum_claims_hold(&operation->store->claims, &operation->send.claim, &known, listens_out);
}

void snk_try_abort(snk_operation *operation)
{
    (void)pthread_mutex_lock(&operation->mutex);
    operation->is_over = true;
    uint32_t touched = snk_ballot_touched(&operation->ballot);
    uint32_t unanswered = snk_ballot_unanswered(&operation->ballot);
    (void)pthread_mutex_unlock(&operation->mutex);
    snk_release_terms terms = undo_terms(operation);
    snk_undo_start_all(operation->store, touched, unanswered, &terms);
    forget_claim(operation);
}

/* Granted: HELD, unless it was given up while the votes were counted. */
static bool end_granted(snk_operation *operation, snk_answer *answer, bool held, bool listens)
{
    if (!held)
        return false;
    if (listens)
        snk_quorum_unlisten(operation->store, operation->name);
    (void)pthread_mutex_lock(&operation->mutex);
    uint32_t missed = snk_ballot_missed(&operation->ballot);
    (void)pthread_mutex_unlock(&operation->mutex);
    snk_adopt(operation, missed);
    answer->kind = SNK_ANSWER_HELD;
    answer->token_first = operation->ballot.token;
    answer->token_last = operation->ballot.token;
    return true;
}

snk_try_sequel snk_try_end(snk_operation *operation, snk_answer *answer, int64_t *pause_ns_out)
{
    snk_quorum_store *store = operation->store;
    const snk_ballot *ballot = &operation->ballot;
    bool listens = false;
    (void)pthread_mutex_lock(&operation->mutex);
    snk_verdict verdict = ballot->verdict;
    bool held = verdict == SNK_VERDICT_GRANTED && hold_locked(operation, &listens);
    operation->is_over = verdict != SNK_VERDICT_AGAIN;
    uint32_t touched = snk_ballot_touched(ballot);
    uint32_t unanswered = snk_ballot_unanswered(ballot);
    *pause_ns_out = ballot->pause_ns;
    (void)pthread_mutex_unlock(&operation->mutex);
    if (verdict == SNK_VERDICT_AGAIN)
        return SNK_TRY_AGAIN;
    if (end_granted(operation, answer, held, listens))
        return SNK_TRY_OVER;
    snk_release_terms terms = undo_terms(operation);
    snk_undo_start_all(store, touched, unanswered, &terms);
    bool gone = verdict == SNK_VERDICT_GRANTED || verdict == SNK_VERDICT_BURIED;
    if (!gone && may_wait(operation)) {
        if (listen_for_it(operation))
            return SNK_TRY_LISTENS;
        if (wait_for_it(operation, answer))
            return SNK_TRY_OVER;
        gone = true;
    }
    if (gone)
        answer->kind = SNK_ANSWER_GONE;
    else if (verdict == SNK_VERDICT_BUSY)
        answer->kind = SNK_ANSWER_BUSY;
    else
        refuse(operation, answer);
    forget_claim(operation);
    return SNK_TRY_OVER;
}
