#include "store/zookeeper/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"

bool snk_zk_table_init(snk_zk_table *table)
{
    for (size_t i = 0; i < SNK_ZK_BUCKETS; i++)
        snk_list_init(&table->buckets[i]);
    return pthread_mutex_init(&table->mutex, NULL) == 0;
}

static snk_zk_claim *claim_of(snk_link *link)
{
    return SNK_CONTAINER(link, snk_zk_claim, link);
}

static snk_list *bucket_of(snk_zk_table *table, const snk_id *id)
{
    return &table->buckets[id->bytes[1] % SNK_ZK_BUCKETS];
}

void snk_zk_claim_unref(snk_zk_claim *claim)
{
    if (claim == NULL || atomic_fetch_sub(&claim->owners, 1) != 1)
        return;
    free(claim->name);
    free(claim->folder);
    free(claim->path);
    free(claim->watched);
    free(claim->watched_too);
    free(claim);
}

void snk_zk_table_deinit(snk_zk_table *table)
{
    for (size_t i = 0; i < SNK_ZK_BUCKETS; i++) {
        snk_link *link = NULL;
        while ((link = snk_list_take_first(&table->buckets[i])) != NULL) {
            snk_zk_claim_unref(claim_of(link));
        }
    }
    free(table->tombstones);
    (void)pthread_mutex_destroy(&table->mutex);
}

snk_zk_claim *snk_zk_claim_new(snk_zk_table *table, const snk_claim *from, const char *folder)
{
    snk_zk_claim *claim = calloc(1, sizeof *claim);
    if (claim == NULL)
        return NULL;
    claim->id = from->send.claim;
    claim->grip = from->grip;
    claim->name = strdup(from->name);
    claim->folder = strdup(folder);
    claim->expires_at_ns = snk_time_add(snk_now_ns(), from->send.lease_ns);
    atomic_store(&claim->owners, 2);
    if (claim->name == NULL || claim->folder == NULL) {
        atomic_store(&claim->owners, 1);
        snk_zk_claim_unref(claim);
        return NULL;
    }
    (void)pthread_mutex_lock(&table->mutex);
    snk_list_append(bucket_of(table, &claim->id), &claim->link);
    table->count++;
    (void)pthread_mutex_unlock(&table->mutex);
    return claim;
}

snk_zk_claim *snk_zk_claim_find(snk_zk_table *table, const snk_id *id)
{
    snk_zk_claim *found = NULL;
    (void)pthread_mutex_lock(&table->mutex);
    const snk_list *bucket = bucket_of(table, id);
    for (snk_link *link = snk_list_first(bucket); link != NULL && found == NULL; link = snk_list_next(bucket, link)) {
        if (snk_id_equal(&claim_of(link)->id, id))
            found = claim_of(link);
    }
    if (found != NULL)
        (void)atomic_fetch_add(&found->owners, 1);
    (void)pthread_mutex_unlock(&table->mutex);
    return found;
}

static void set_waits_locked(snk_zk_table *table, snk_zk_claim *claim, bool waits)
{
    if (waits && !claim->waits)
        (void)atomic_fetch_add(&table->waiting, 1);
    else if (!waits && claim->waits)
        (void)atomic_fetch_sub(&table->waiting, 1);
    claim->waits = waits;
}

uint64_t snk_zk_claim_hold(snk_zk_table *table, snk_zk_claim *claim)
{
    (void)pthread_mutex_lock(&table->mutex);
    claim->held = true;
    set_waits_locked(table, claim, false);
    if (claim->token == 0)
        claim->token = (uint64_t)claim->czxid;
    uint64_t token = claim->token;
    (void)pthread_mutex_unlock(&table->mutex);
    return token;
}

static void remove_locked(snk_zk_table *table, snk_zk_claim *claim)
{
    claim->gone = true;
    set_waits_locked(table, claim, false);
    snk_list_remove(&claim->link);
    table->count--;
}

bool snk_zk_claim_remove(snk_zk_table *table, snk_zk_claim *claim)
{
    (void)pthread_mutex_lock(&table->mutex);
    bool was_in = !claim->gone;
    if (was_in)
        remove_locked(table, claim);
    (void)pthread_mutex_unlock(&table->mutex);
    if (was_in)
        snk_zk_claim_unref(claim);
    return was_in;
}

bool snk_zk_claim_prolong(snk_zk_table *table, snk_zk_claim *claim, int64_t lease_ns)
{
    int64_t until_ns = snk_time_add(snk_now_ns(), lease_ns);
    (void)pthread_mutex_lock(&table->mutex);
    bool is_in = !claim->gone;
    if (until_ns > claim->expires_at_ns)
        claim->expires_at_ns = until_ns;
    (void)pthread_mutex_unlock(&table->mutex);
    return is_in;
}

static void replace(char **text, const char *with)
{
    free(*text);
    *text = with == NULL ? NULL : strdup(with);
}

void snk_zk_claim_watch(snk_zk_table *table, snk_zk_claim *claim, const char *path, const char *too, bool is_next)
{
    (void)pthread_mutex_lock(&table->mutex);
    replace(&claim->watched, path);
    replace(&claim->watched_too, too);
    claim->is_next = is_next;
    set_waits_locked(table, claim, !claim->gone);
    claim->next_on = 0;
    claim->gone_on = 0;
    claim->is_let_in = false;
    (void)pthread_mutex_unlock(&table->mutex);
}

bool snk_zk_claim_is_next(snk_zk_table *table, snk_zk_claim *claim, uint64_t connection)
{
    (void)pthread_mutex_lock(&table->mutex);
    claim->is_next = true;
    claim->next_on = connection;
    bool has_gone = claim->gone_on == connection;
    (void)pthread_mutex_unlock(&table->mutex);
    return has_gone;
}

void snk_zk_claim_let_in_locked(snk_zk_claim *claim)
{
    int64_t lease_ns = claim->note.lease_ms * SNK_NS_PER_MS;
    int64_t until_ns = snk_time_add(snk_now_ns(), lease_ns < SNK_OFFER_NS ? lease_ns : SNK_OFFER_NS);
    claim->is_let_in = true;
    if (until_ns < claim->expires_at_ns)
        claim->expires_at_ns = until_ns;
}

size_t snk_zk_table_choose(snk_zk_table *table, bool (*chosen)(void *context, snk_zk_claim *claim), void *context,
                           bool removes, snk_zk_claim **claims_out, size_t count)
{
    size_t found = 0;
    (void)pthread_mutex_lock(&table->mutex);
    for (size_t i = 0; i < SNK_ZK_BUCKETS; i++) {
        snk_link *next = NULL;
        for (snk_link *link = snk_list_first(&table->buckets[i]); link != NULL && found < count; link = next) {
            snk_zk_claim *claim = claim_of(link);
            next = snk_list_next(&table->buckets[i], link);
            if (!chosen(context, claim))
                continue;
            if (removes)
                remove_locked(table, claim); /* what the table owned is the caller's now */
            else
                (void)atomic_fetch_add(&claim->owners, 1);
            claims_out[found++] = claim;
        }
    }
    (void)pthread_mutex_unlock(&table->mutex);
    return found;
}

int64_t snk_zk_table_next_end(snk_zk_table *table)
{
    int64_t end_ns = SNK_NEVER_NS;
    (void)pthread_mutex_lock(&table->mutex);
    for (size_t i = 0; i < SNK_ZK_BUCKETS; i++) {
        const snk_list *bucket = &table->buckets[i];
        for (snk_link *link = snk_list_first(bucket); link != NULL; link = snk_list_next(bucket, link)) {
            if (claim_of(link)->expires_at_ns < end_ns)
                end_ns = claim_of(link)->expires_at_ns;
        }
    }
    (void)pthread_mutex_unlock(&table->mutex);
    return end_ns;
}

bool snk_zk_table_is_empty(snk_zk_table *table)
{
    (void)pthread_mutex_lock(&table->mutex);
    bool is_empty = table->count == 0;
    (void)pthread_mutex_unlock(&table->mutex);
    return is_empty;
}

/* ---- Tombstones ---- */

bool snk_zk_bury(snk_zk_table *table, const snk_id *id, int64_t until_ns)
{
    (void)pthread_mutex_lock(&table->mutex);
    snk_zk_tombstone *tombstones =
        snk_array_with_room(table->tombstones, table->tombstone_count, &table->tombstone_room, sizeof *tombstones);
    if (tombstones != NULL) {
        table->tombstones = tombstones;
        tombstones[table->tombstone_count++] = (snk_zk_tombstone){ .id = *id, .until_ns = until_ns };
    }
    (void)pthread_mutex_unlock(&table->mutex);
    return tombstones != NULL;
}

bool snk_zk_is_buried(snk_zk_table *table, const snk_id *id)
{
    int64_t now_ns = snk_now_ns();
    bool found = false;
    size_t kept = 0;
    (void)pthread_mutex_lock(&table->mutex);
    for (size_t i = 0; i < table->tombstone_count; i++) {
        const snk_zk_tombstone tombstone = table->tombstones[i];
        if (tombstone.until_ns <= now_ns)
            continue;
        found = found || snk_id_equal(&tombstone.id, id);
        table->tombstones[kept++] = tombstone;
    }
    table->tombstone_count = kept;
    (void)pthread_mutex_unlock(&table->mutex);
    return found;
}
