#include "store/quorum/claims.h"

#include <stdlib.h>
#include <string.h>

/* As many as are rung in one go; the rest in the next. */
#define RINGS_MAX 16

typedef struct known {
    snk_link link; /* in its bucket */
    snk_id id;
    bool rung; /* under claims.mutex: in this round of snk_quorum_claims_hear */
    snk_quorum_claim claim;
    char name[];
} known;

static snk_list *bucket_of(snk_quorum_claims *claims, const snk_id *id)
{
    return &claims->buckets[id->bytes[0]];
}

static known *known_of(snk_link *link)
{
    return SNK_CONTAINER(link, known, link);
}

static known *find_locked(snk_quorum_claims *claims, const snk_id *id)
{
    const snk_list *bucket = bucket_of(claims, id);
    for (snk_link *link = snk_list_first(bucket); link != NULL; link = snk_list_next(bucket, link)) {
        if (snk_id_equal(&known_of(link)->id, id))
            return known_of(link);
    }
    return NULL;
}

bool snk_quorum_claims_init(snk_quorum_claims *claims)
{
    for (size_t i = 0; i < SNK_QUORUM_CLAIM_BUCKETS; i++)
        snk_list_init(&claims->buckets[i]);
    return pthread_mutex_init(&claims->mutex, NULL) == 0;
}

void snk_quorum_claims_deinit(snk_quorum_claims *claims)
{
    for (size_t i = 0; i < SNK_QUORUM_CLAIM_BUCKETS; i++) {
        snk_link *link = NULL;
        while ((link = snk_list_take_first(&claims->buckets[i])) != NULL) {
            free(known_of(link));
        }
    }
    (void)pthread_mutex_destroy(&claims->mutex);
}

bool snk_quorum_claims_add(snk_quorum_claims *claims, const snk_id *id, const char *name, const char *why,
                           int64_t thread)
{
    size_t size = strlen(name) + 1;
    known *added = malloc(sizeof *added + size);
    if (added == NULL)
        return false;
    added->id = *id;
    added->link = (snk_link){ NULL, NULL };
    added->rung = false;
    /* Field by field: most claims have no reason, and clearing room for one would cost more than all the rest. */
    added->claim.state = SNK_QUORUM_TRYING;
    added->claim.attempts = 1;
    added->claim.held_by = 0;
    added->claim.token = 0;
    added->claim.above = 0;
    added->claim.touched = 0;
    added->claim.unanswered = 0;
    added->claim.heard = 0;
    added->claim.free = 0;
    added->claim.listens = false;
    added->claim.thread = thread;
    size_t why_length = strnlen(why, SNK_WHY_LENGTH_MAX);
    memcpy(added->claim.why, why, why_length);
    added->claim.why[why_length] = '\0';
    memcpy(added->name, name, size);
    (void)pthread_mutex_lock(&claims->mutex);
    snk_list_append(bucket_of(claims, id), &added->link);
    (void)pthread_mutex_unlock(&claims->mutex);
    return true;
}

bool snk_quorum_claims_find(snk_quorum_claims *claims, const snk_id *id, snk_quorum_claim *claim_out)
{
    (void)pthread_mutex_lock(&claims->mutex);
    const known *found = find_locked(claims, id);
    if (found != NULL)
        *claim_out = found->claim;
    (void)pthread_mutex_unlock(&claims->mutex);
    return found != NULL;
}

bool snk_quorum_claims_try(snk_quorum_claims *claims, const snk_id *id, snk_quorum_claim *claim_out)
{
    (void)pthread_mutex_lock(&claims->mutex);
    known *found = find_locked(claims, id);
    bool seeks = found != NULL && found->claim.state != SNK_QUORUM_HOLDS;
    if (seeks) {
        *claim_out = found->claim;
        found->claim.attempts++;
        found->claim.heard = 0;
        found->claim.free = 0;
    }
    (void)pthread_mutex_unlock(&claims->mutex);
    return seeks;
}

bool snk_quorum_claims_hold(snk_quorum_claims *claims, const snk_id *id, const snk_quorum_claim *claim,
                            bool *listens_out)
{
    (void)pthread_mutex_lock(&claims->mutex);
    known *found = find_locked(claims, id);
    if (found != NULL) {
        found->claim.state = SNK_QUORUM_HOLDS;
        found->claim.held_by = claim->held_by;
        found->claim.token = claim->token;
        found->claim.touched = claim->touched;
        found->claim.unanswered = claim->unanswered;
        *listens_out = found->claim.listens;
        found->claim.listens = false;
    }
    (void)pthread_mutex_unlock(&claims->mutex);
    return found != NULL;
}

bool snk_quorum_claims_listen(snk_quorum_claims *claims, const snk_id *id)
{
    (void)pthread_mutex_lock(&claims->mutex);
    known *found = find_locked(claims, id);
    bool is_new = found != NULL && !found->claim.listens;
    if (is_new)
        found->claim.listens = true;
    (void)pthread_mutex_unlock(&claims->mutex);
    return is_new;
}

/*
 * Is another try worth it? What was free at the last one counts, because it says nothing when it stays so; alone it is
 * no news. Without it, a try that came too early would use up the messages of those nodes that had been released.
 */
static bool has_news(const snk_quorum_claim *claim, uint32_t majority)
{
    return claim->heard != 0 && (uint32_t)__builtin_popcount(claim->heard | claim->free) >= majority;
}

bool snk_quorum_claims_wait(snk_quorum_claims *claims, const snk_id *id, const snk_quorum_refusal *refusal,
                            uint32_t majority, bool *news_out)
{
    (void)pthread_mutex_lock(&claims->mutex);
    known *found = find_locked(claims, id);
    if (found != NULL) {
        found->claim.state = SNK_QUORUM_WAITS;
        if (refusal->above > found->claim.above)
            found->claim.above = refusal->above;
        found->claim.free = refusal->free;
        *news_out = has_news(&found->claim, majority);
    }
    (void)pthread_mutex_unlock(&claims->mutex);
    return found != NULL;
}

bool snk_quorum_claims_touch(snk_quorum_claims *claims, const snk_id *id, uint32_t attempt, uint32_t node,
                             bool unanswered)
{
    (void)pthread_mutex_lock(&claims->mutex);
    known *found = find_locked(claims, id);
    bool holds = found != NULL && found->claim.state == SNK_QUORUM_HOLDS && found->claim.held_by == attempt;
    if (holds) {
        found->claim.unanswered |= (uint32_t)unanswered << node;
        found->claim.touched |= UINT32_C(1) << node;
    }
    (void)pthread_mutex_unlock(&claims->mutex);
    return holds;
}

bool snk_quorum_claims_remove(snk_quorum_claims *claims, const snk_id *id, const char *name,
                              snk_quorum_claim *claim_out)
{
    (void)pthread_mutex_lock(&claims->mutex);
    known *found = find_locked(claims, id);
    if (found != NULL && strcmp(found->name, name) != 0)
        found = NULL;
    if (found != NULL)
        snk_list_remove(&found->link);
    (void)pthread_mutex_unlock(&claims->mutex);
    if (found == NULL)
        return false;
    *claim_out = found->claim;
    free(found);
    return true;
}

/* ---- Messages ---- */

/* Notes that the node was heard, in the first round; collects those that are to be rung. */
static size_t collect_locked(snk_quorum_claims *claims, const char *name, uint32_t node, uint32_t majority, bool first,
                             snk_id ids[RINGS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < SNK_QUORUM_CLAIM_BUCKETS; i++) {
        const snk_list *bucket = &claims->buckets[i];
        for (snk_link *link = snk_list_first(bucket); link != NULL; link = snk_list_next(bucket, link)) {
            known *one = known_of(link);
            if (one->claim.state == SNK_QUORUM_HOLDS || strcmp(one->name, name) != 0)
                continue;
            if (first) {
                bool knew = has_news(&one->claim, majority);
                one->claim.heard |= UINT32_C(1) << node;
                one->rung = !knew && one->claim.state == SNK_QUORUM_WAITS && has_news(&one->claim, majority);
            }
            if (one->rung && count < RINGS_MAX) {
                one->rung = false;
                ids[count++] = one->id;
            }
        }
    }
    return count;
}

void snk_quorum_claims_hear(snk_quorum_claims *claims, const char *name, uint32_t node, uint32_t majority,
                            void (*ring)(void *context, const char *name, const snk_id *id), void *context)
{
    snk_id ids[RINGS_MAX];
    size_t count = RINGS_MAX;
    for (bool first = true; count == RINGS_MAX; first = false) {
        (void)pthread_mutex_lock(&claims->mutex);
        count = collect_locked(claims, name, node, majority, first, ids);
        (void)pthread_mutex_unlock(&claims->mutex);
        for (size_t i = 0; i < count; i++)
            ring(context, name, &ids[i]);
    }
}
