/* The engine's requests: which operation each one is, and the answers. */
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/quorum/tries.h"
#include "store/quorum/questions.h"

/* One request on its way. */
typedef struct job {
    const snk_claim *claim;
    snk_answer *answer;
    snk_operation *operation; /* a reference; NULL: it is answered */
    int64_t pause_ns;         /* before its next round */
    bool waited;              /* a release of one that only waited */
    snk_quorum_claim known;   /* renewals */
} job;

static sneck_status check(const snk_quorum_store *store, const snk_claim *claim, sneck_error *error)
{
    const snk_send *send = &claim->send;
    bool asks = send->ask != SNK_ASK_RELEASE;
    if (claim->grip.mode != SNK_MODE_EXCLUSIVE || claim->grip.object != SNK_OBJECT_LOCK)
        return snk_fail(error, SNECK_UNSUPPORTED, 0, "a quorum of nodes (redlock:) has mutexes only");
    if (send->ask == SNK_ASK_ACQUIRE && send->fair)
        return snk_fail(error, SNECK_UNSUPPORTED, 0,
                        "a quorum of nodes (redlock:) knows no order of those who wait, so there is no fair lock");
    if (asks && send->lease_ns > store->quorum.lease_max_ns)
        return snk_fail(error, SNECK_INVALID, 0, "the lease of %lld ms is longer than lease_max=%sms of the store",
                        (long long)(send->lease_ns / SNK_NS_PER_MS), store->lease_max);
    return SNECK_OK;
}

/* ---- Beginning ---- */

static void begin_renew(snk_quorum_store *store, job *work)
{
    const snk_id *id = &work->claim->send.claim;
    if (!snk_quorum_claims_find(&store->claims, id, &work->known) || work->known.state == SNK_QUORUM_TRYING) {
        work->answer->kind = SNK_ANSWER_GONE; /* one that was never granted: nobody else can have done that */
        return;
    }
    if (work->known.state == SNK_QUORUM_HOLDS) {
        work->operation = snk_question_renew_begin(store, work->claim, &work->known, work->answer);
        return;
    }
    if (snk_quorum_claims_try(&store->claims, id, &work->known))
        work->operation = snk_try_begin(store, work->claim, &work->known, work->answer);
    else
        work->answer->kind = SNK_ANSWER_GONE;
}

static void begin_release(snk_quorum_store *store, job *work)
{
    const snk_send *send = &work->claim->send;
    /* Of one that another process has acquired nothing is known. */
    work->known = (snk_quorum_claim){ .state = SNK_QUORUM_HOLDS, .touched = UINT32_MAX };
    bool is_known = snk_quorum_claims_remove(&store->claims, &send->claim, work->claim->name, &work->known);
    if (is_known && work->known.listens)
        snk_quorum_unlisten(store, work->claim->name);
    work->waited = is_known && work->known.state == SNK_QUORUM_WAITS;
    if (work->waited && !send->unanswered) {
        work->answer->kind = SNK_ANSWER_DONE; /* its tries have been taken back */
        return;
    }
    snk_release_terms terms = {
        .name = work->claim->name,
        .claim = send->claim,
        .attempt = SNK_ALL_ATTEMPTS,
        .lease_ns = send->lease_ns,
        .unanswered = send->unanswered,
        .announce = true,
        /* Only a hold that was lost is released at a certain time. */
        .kind = send->not_before_ns > 0 ? "lost" : "",
        .reason = "",
    };
    uint32_t touched = is_known && work->known.state == SNK_QUORUM_HOLDS ? work->known.touched : UINT32_MAX;
    work->operation = snk_question_release_begin(store, &terms, touched, work->known.unanswered, &work->answer->error);
}

static void begin(snk_quorum_store *store, job *work)
{
    snk_answer *answer = work->answer;
    uint64_t ticket = snk_bell_ticket(&store->bell, &work->claim->send.claim);
    *answer = (snk_answer){ .kind = SNK_ANSWER_FAILED, .ticket = ticket };
    work->operation = NULL;
    work->pause_ns = 0;
    work->waited = false;
    if (check(store, work->claim, &answer->error) != SNECK_OK)
        return;
    switch (work->claim->send.ask) {
    case SNK_ASK_ACQUIRE:
        work->operation = snk_try_begin(store, work->claim, NULL, answer);
        break;
    case SNK_ASK_RENEW:
        begin_renew(store, work);
        break;
    case SNK_ASK_RELEASE:
        begin_release(store, work);
        break;
    }
}

/* ---- Going on ---- */

static void drop(job *work)
{
    snk_operation_unref(work->operation);
    work->operation = NULL;
}

/* True when it is to be asked now. */
static bool prepare(job *work)
{
    if (work->operation == NULL)
        return false;
    if (work->operation->kind != SNK_OPERATION_BALLOT || snk_try_next(work->operation, work->claim, work->answer))
        return true;
    snk_try_abort(work->operation);
    drop(work);
    return false;
}

/* The channel of the lock is subscribed to since just now: what was said before is found out by another try. */
static void try_listening(snk_quorum_store *store, job *work)
{
    snk_quorum_await_hearing(store, work->claim->name);
    if (snk_quorum_claims_try(&store->claims, &work->claim->send.claim, &work->known))
        work->operation = snk_try_begin(store, work->claim, &work->known, work->answer);
    else
        work->answer->kind = SNK_ANSWER_GONE;
}

static void end_release(job *work)
{
    static const snk_answer_kind kinds[] = {
        [SNK_QUORUM_OPEN] = SNK_ANSWER_FAILED,
        [SNK_QUORUM_YES] = SNK_ANSWER_DONE,
        [SNK_QUORUM_NO] = SNK_ANSWER_GONE,
        [SNK_QUORUM_FAILED] = SNK_ANSWER_FAILED,
        [SNK_QUORUM_UNCERTAIN] = SNK_ANSWER_UNCERTAIN,
    };
    snk_answer *answer = work->answer;
    answer->kind = kinds[snk_question_release_end(work->operation, &answer->error)];
    if (work->waited && answer->kind == SNK_ANSWER_GONE)
        answer->kind = SNK_ANSWER_DONE;
}

/* It is decided: answered, or there is more to ask. */
static void end(snk_quorum_store *store, job *work)
{
    snk_try_sequel sequel = SNK_TRY_OVER;
    if (work->operation->kind == SNK_OPERATION_BALLOT)
        sequel = snk_try_end(work->operation, work->answer, &work->pause_ns);
    else if (work->operation->kind == SNK_OPERATION_RENEWAL)
        snk_question_renew_end(work->operation, &work->known, work->answer);
    else
        end_release(work);
    if (sequel == SNK_TRY_AGAIN)
        return;
    drop(work);
    work->pause_ns = 0;
    if (sequel == SNK_TRY_LISTENS)
        try_listening(store, work);
}

/* Those who are behind make room meanwhile; a bit by chance, so that two who think they are ahead do not meet again. */
static void pause_before_round(snk_quorum_store *store, const job jobs[], size_t count)
{
    int64_t pause_ns = 0;
    for (size_t i = 0; i < count; i++)
        if (jobs[i].operation != NULL && jobs[i].pause_ns > pause_ns)
            pause_ns = jobs[i].pause_ns;
    if (pause_ns == 0)
        return;
    struct timespec pause = snk_timespec(pause_ns + snk_quorum_jitter(store, pause_ns));
    (void)nanosleep(&pause, NULL);
}

static void run(snk_quorum_store *store, job jobs[], snk_operation *asked[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        begin(store, &jobs[i]);
    for (;;) {
        size_t asked_count = 0;
        for (size_t i = 0; i < count; i++)
            if (prepare(&jobs[i]))
                asked[asked_count++] = jobs[i].operation;
        if (asked_count == 0)
            return;
        snk_operations_ask(store, asked, asked_count);
        for (size_t i = 0; i < count; i++)
            if (jobs[i].operation != NULL)
                end(store, &jobs[i]);
        pause_before_round(store, jobs, count);
    }
}

static void run_many(snk_quorum_store *store, const snk_call *call, size_t from, size_t count)
{
    job *jobs = calloc(count, sizeof *jobs);
    snk_operation **asked = calloc(count, sizeof(void *));
    for (size_t i = 0; i < count; i++) {
        snk_answer *answer = &call->answers[from + i];
        *answer = (snk_answer){ .kind = SNK_ANSWER_FAILED };
        (void)snk_fail(&answer->error, SNECK_NO_MEMORY, 0, "out of memory for a request");
        if (jobs != NULL)
            jobs[i] = (job){ .claim = &call->claims[from + i], .answer = answer };
    }
    if (jobs != NULL && asked != NULL)
        run(store, jobs, asked, count);
    free(asked);
    free(jobs);
}

void snk_quorum_submit(snk_store *base, snk_call *call)
{
    snk_quorum_store *store = snk_quorum_store_of(base);
    if (call->count == 1) {
        job one = { .claim = call->claims, .answer = call->answers };
        snk_operation *asked[1] = { NULL };
        run(store, &one, asked, 1);
    }
    for (size_t i = 0; i < call->count && call->count > 1; i += SNK_RENEW_BATCH_MAX)
        run_many(store, call, i, call->count - i < SNK_RENEW_BATCH_MAX ? call->count - i : SNK_RENEW_BATCH_MAX);
    call->done(call);
}
