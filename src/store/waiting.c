#include "store/waiting.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define PRUNE_AT_MIN 4096

static snk_list *bucket_of(snk_waiting *waiting, const snk_id *id)
{
    /* Ids are random already. */
    return &waiting->buckets[(id->bytes[0] | (size_t)id->bytes[1] << 8) % SNK_WAITING_BUCKETS];
}

static snk_waiting_claim *claim_of(snk_link *link)
{
    return SNK_CONTAINER(link, snk_waiting_claim, link);
}

static snk_waiting_claim *find_locked(snk_waiting *waiting, const snk_id *id)
{
    const snk_list *bucket = bucket_of(waiting, id);
    for (snk_link *link = snk_list_first(bucket); link != NULL; link = snk_list_next(bucket, link)) {
        if (snk_id_equal(&claim_of(link)->id, id))
            return claim_of(link);
    }
    return NULL;
}

static void copy_name(char to[SNK_NAME_LENGTH_MAX + 1], const char *name)
{
    memcpy(to, name, strnlen(name, SNK_NAME_LENGTH_MAX) + 1);
    to[SNK_NAME_LENGTH_MAX] = '\0';
}

bool snk_waiting_init(snk_waiting *waiting)
{
    for (size_t i = 0; i < SNK_WAITING_BUCKETS; i++)
        snk_list_init(&waiting->buckets[i]);
    waiting->prune_at = PRUNE_AT_MIN;
    return pthread_mutex_init(&waiting->mutex, NULL) == 0;
}

void snk_waiting_deinit(snk_waiting *waiting)
{
    for (size_t i = 0; i < SNK_WAITING_BUCKETS; i++) {
        snk_link *next = NULL;
        for (snk_link *link = snk_list_first(&waiting->buckets[i]); link != NULL; link = next) {
            next = snk_list_next(&waiting->buckets[i], link);
            free(claim_of(link));
        }
    }
    (void)pthread_mutex_destroy(&waiting->mutex);
}

/* A hold that was lost, and is not to be forgotten by the store, is never spoken of again. */
static void prune_locked(snk_waiting *waiting)
{
    int64_t over_ns = snk_now_ns() - 2 * SNK_LEASE_MS_MAX * SNK_NS_PER_MS;
    for (size_t i = 0; i < SNK_WAITING_BUCKETS; i++) {
        snk_link *next = NULL;
        for (snk_link *link = snk_list_first(&waiting->buckets[i]); link != NULL; link = next) {
            next = snk_list_next(&waiting->buckets[i], link);
            snk_waiting_claim *claim = claim_of(link);
            if (!claim->holds || claim->held_at_ns > over_ns)
                continue;
            snk_list_remove(link);
            waiting->count--;
            free(claim);
        }
    }
    waiting->prune_at = waiting->count < PRUNE_AT_MIN ? PRUNE_AT_MIN : 2 * waiting->count;
}

bool snk_waiting_add_in(snk_waiting *waiting, const snk_id *id, const char *name, uint16_t part)
{
    size_t size = strlen(name) + 1;
    snk_waiting_claim *claim = malloc(sizeof *claim + size);
    if (claim == NULL)
        return false;
    *claim = (snk_waiting_claim){ .id = *id, .part = part };
    memcpy(claim->name, name, size);
    (void)pthread_mutex_lock(&waiting->mutex);
    snk_list_append(bucket_of(waiting, id), &claim->link);
    waiting->count++;
    if (waiting->count >= waiting->prune_at)
        prune_locked(waiting);
    (void)pthread_mutex_unlock(&waiting->mutex);
    return true;
}

bool snk_waiting_hold(snk_waiting *waiting, const snk_id *id, char name[SNK_NAME_LENGTH_MAX + 1])
{
    (void)pthread_mutex_lock(&waiting->mutex);
    snk_waiting_claim *claim = find_locked(waiting, id);
    bool hears_public = claim != NULL && claim->hears_public;
    if (hears_public)
        copy_name(name, claim->name);
    if (claim != NULL) {
        claim->holds = true;
        claim->hears_public = false;
        claim->held_at_ns = snk_now_ns();
    }
    (void)pthread_mutex_unlock(&waiting->mutex);
    return hears_public;
}

bool snk_waiting_condemn(snk_waiting *waiting, const snk_id *id, const char *name, uint16_t part)
{
    if (!snk_waiting_has(waiting, id) && !snk_waiting_add_in(waiting, id, name, part))
        return false;
    (void)pthread_mutex_lock(&waiting->mutex);
    snk_waiting_claim *claim = find_locked(waiting, id);
    if (claim != NULL) {
        claim->holds = true;
        claim->condemned = true;
        claim->held_at_ns = snk_now_ns();
    }
    (void)pthread_mutex_unlock(&waiting->mutex);
    return claim != NULL;
}

bool snk_waiting_is_condemned(snk_waiting *waiting, const snk_id *id)
{
    (void)pthread_mutex_lock(&waiting->mutex);
    const snk_waiting_claim *claim = find_locked(waiting, id);
    bool condemned = claim != NULL && claim->condemned;
    (void)pthread_mutex_unlock(&waiting->mutex);
    return condemned;
}

bool snk_waiting_has(snk_waiting *waiting, const snk_id *id)
{
    (void)pthread_mutex_lock(&waiting->mutex);
    bool found = find_locked(waiting, id) != NULL;
    (void)pthread_mutex_unlock(&waiting->mutex);
    return found;
}

bool snk_waiting_remove(snk_waiting *waiting, const snk_id *id, char name[SNK_NAME_LENGTH_MAX + 1])
{
    (void)pthread_mutex_lock(&waiting->mutex);
    snk_waiting_claim *claim = find_locked(waiting, id);
    if (claim != NULL) {
        snk_list_remove(&claim->link);
        waiting->count--;
    }
    (void)pthread_mutex_unlock(&waiting->mutex);
    bool hears_public = claim != NULL && claim->hears_public;
    if (hears_public)
        copy_name(name, claim->name);
    free(claim);
    return hears_public;
}

bool snk_waiting_find(snk_waiting *waiting, const snk_id *id, char name[SNK_NAME_LENGTH_MAX + 1])
{
    (void)pthread_mutex_lock(&waiting->mutex);
    const snk_waiting_claim *claim = find_locked(waiting, id);
    bool waits = claim != NULL && !claim->holds;
    if (waits)
        copy_name(name, claim->name);
    (void)pthread_mutex_unlock(&waiting->mutex);
    return waits;
}

snk_waiting_wants snk_waiting_mark(snk_waiting *waiting, const snk_id *id, uint16_t part, bool wants_public)
{
    snk_waiting_wants wants = { .private_channel = false };
    (void)pthread_mutex_lock(&waiting->mutex);
    uint8_t bit = (uint8_t)(1 << part % 8);
    wants.private_channel = (waiting->hears_private[part / 8] & bit) == 0;
    waiting->hears_private[part / 8] |= bit;
    snk_waiting_claim *claim = find_locked(waiting, id);
    if (claim != NULL && wants_public && !claim->hears_public) {
        claim->hears_public = true;
        wants.public_channel = true;
        copy_name(wants.name, claim->name);
    }
    (void)pthread_mutex_unlock(&waiting->mutex);
    return wants;
}

/* ---- Telling ---- */

typedef struct told {
    snk_id id;
    char name[SNK_NAME_LENGTH_MAX + 1];
} told;

static bool is_meant(const snk_waiting_claim *claim, const char *name, uint16_t part)
{
    return !claim->holds && (name == NULL || strcmp(claim->name, name) == 0) &&
           (part == SNK_WAITING_PART_ANY || claim->part == part);
}

/* Those of one bucket, copied: an array of `*count_out` to be freed; NULL when there are none, or no memory. */
static told *copy_bucket(snk_waiting *waiting, const snk_list *bucket, const char *name, uint16_t part,
                         size_t *count_out)
{
    size_t count = 0;
    told *copies = NULL;
    (void)pthread_mutex_lock(&waiting->mutex);
    for (snk_link *link = snk_list_first(bucket); link != NULL; link = snk_list_next(bucket, link))
        count += is_meant(claim_of(link), name, part);
    if (count > 0)
        copies = calloc(count, sizeof *copies);
    size_t copied = 0;
    for (snk_link *link = snk_list_first(bucket); copies != NULL && link != NULL; link = snk_list_next(bucket, link)) {
        const snk_waiting_claim *claim = claim_of(link);
        if (is_meant(claim, name, part)) {
            copies[copied].id = claim->id;
            copy_name(copies[copied++].name, claim->name);
        }
    }
    (void)pthread_mutex_unlock(&waiting->mutex);
    *count_out = copied;
    return copies;
}

static void tell_all(snk_waiting *waiting, const char *name, uint16_t part, snk_waiting_fn tell, void *context)
{
    for (size_t i = 0; i < SNK_WAITING_BUCKETS; i++) {
        size_t count = 0;
        told *copies = copy_bucket(waiting, &waiting->buckets[i], name, part, &count);
        for (size_t j = 0; j < count; j++)
            tell(context, copies[j].name, &copies[j].id);
        free(copies);
    }
}

void snk_waiting_tell(snk_waiting *waiting, const char *name, snk_waiting_fn tell, void *context)
{
    tell_all(waiting, name, SNK_WAITING_PART_ANY, tell, context);
}

void snk_waiting_tell_part(snk_waiting *waiting, uint16_t part, snk_waiting_fn tell, void *context)
{
    tell_all(waiting, NULL, part, tell, context);
}
