#include "client/registry.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define BUCKETS_FIRST 16

/* ---- Entries ---- */

snk_hold *snk_entry_new_hold_locked(snk_entry *entry)
{
    if (entry->first_hold_is_used)
        return malloc(sizeof(snk_hold));
    entry->first_hold_is_used = true;
    return &entry->first_hold;
}

void snk_entry_free_hold_locked(snk_entry *entry, snk_hold *hold)
{
    if (hold == &entry->first_hold)
        entry->first_hold_is_used = false;
    else
        free(hold);
}

static snk_entry *new_entry(const snk_registry *registry, const char *name, const snk_entry_key *key, uint32_t hash)
{
    /* The name begins in what would be padding at the end; there are many entries. */
    size_t size = strlen(name) + 1;
    size_t whole = offsetof(snk_entry, name) + size;
    snk_entry *entry = malloc(whole > sizeof *entry ? whole : sizeof *entry);
    if (entry == NULL)
        return NULL;
    memset(entry, 0, sizeof *entry);
    (void)pthread_mutex_init(&entry->mutex, NULL);
    snk_machine_init(&entry->machine, registry->engine);
    snk_timer_init(&entry->renewal);
    snk_timer_init(&entry->deadline);
    entry->hash = hash;
    entry->kin = snk_metrics_class(registry->metrics, name);
    entry->key = *key;
    memcpy(entry->name, name, size);
    return entry;
}

static void free_entry(snk_entry *entry)
{
    const snk_list *lost = &entry->machine.lost;
    snk_link *next = NULL;
    for (snk_link *link = snk_list_first(lost); link != NULL; link = next) {
        next = snk_list_next(lost, link);
        snk_entry_free_hold_locked(entry, SNK_CONTAINER(link, snk_hold, link));
    }
    if (entry->machine.hold != NULL)
        snk_entry_free_hold_locked(entry, entry->machine.hold);
    (void)pthread_mutex_destroy(&entry->mutex);
    free(entry);
}

/* ---- The table ---- */

void snk_registry_init(snk_registry *registry)
{
    (void)pthread_mutex_init(&registry->mutex, NULL);
    snk_list_init(&registry->entries);
}

void snk_registry_deinit(snk_registry *registry)
{
    for (size_t i = 0; i < registry->bucket_count; i++) {
        while (registry->buckets[i] != NULL) {
            snk_entry *entry = registry->buckets[i];
            registry->buckets[i] = entry->next;
            free_entry(entry);
        }
    }
    free(registry->buckets);
    (void)pthread_mutex_destroy(&registry->mutex);
}

/* FNV-1a, from a start that differs from client to client. */
static uint32_t hash_of(const snk_registry *registry, const char *name)
{
    uint32_t hash = UINT32_C(2166136261) ^ registry->seed;
    for (const char *at = name; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT32_C(16777619);
    return hash ^ hash >> 15;
}

static snk_entry **bucket_locked(const snk_registry *registry, uint32_t hash)
{
    return &registry->buckets[hash & (registry->bucket_count - 1)];
}

/* From `entry` on in its bucket, the first one with that name. */
static snk_entry *named_from(snk_entry *entry, const char *name, uint32_t hash)
{
    while (entry != NULL && (entry->hash != hash || strcmp(entry->name, name) != 0))
        entry = entry->next;
    return entry;
}

static bool key_equals(const snk_entry_key *a, const snk_entry_key *b)
{
    return a->object == b->object && a->mode == b->mode && a->units == b->units && a->owner == b->owner;
}

static snk_entry *find_locked(const snk_registry *registry, const char *name, const snk_entry_key *key, uint32_t hash)
{
    if (registry->bucket_count == 0)
        return NULL;
    snk_entry *entry = named_from(*bucket_locked(registry, hash), name, hash);
    while (entry != NULL && !key_equals(&entry->key, key))
        entry = named_from(entry->next, name, hash);
    return entry;
}

static bool grow_locked(snk_registry *registry)
{
    if (registry->count < registry->bucket_count)
        return true;
    size_t bucket_count = registry->bucket_count == 0 ? BUCKETS_FIRST : 2 * registry->bucket_count;
    snk_entry **buckets = calloc(bucket_count, sizeof(snk_entry *));
    if (buckets == NULL)
        return registry->bucket_count != 0; /* longer chains are no failure */
    free(registry->buckets);
    registry->buckets = buckets;
    registry->bucket_count = bucket_count;
    for (snk_link *link = snk_list_first(&registry->entries); link != NULL;
         link = snk_list_next(&registry->entries, link)) {
        snk_entry *entry = SNK_CONTAINER(link, snk_entry, link);
        snk_entry **bucket = bucket_locked(registry, entry->hash);
        entry->next = *bucket;
        *bucket = entry;
    }
    return true;
}

static snk_entry *add_locked(snk_registry *registry, const char *name, const snk_entry_key *key, uint32_t hash)
{
    size_t count = registry->count + 1;
    if (!grow_locked(registry) || !snk_timers_reserve(registry->renewals, count) ||
        !snk_timers_reserve(registry->deadlines, count))
        return NULL;
    snk_entry *entry = new_entry(registry, name, key, hash);
    if (entry == NULL)
        return NULL;
    snk_entry **bucket = bucket_locked(registry, hash);
    entry->next = *bucket;
    *bucket = entry;
    snk_list_append(&registry->entries, &entry->link);
    registry->count = count;
    return entry;
}

static void take_out_locked(snk_registry *registry, snk_entry *entry)
{
    snk_entry **at = bucket_locked(registry, entry->hash);
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    snk_list_remove(&entry->link);
    registry->count--;
}

/* ---- Life and death of entries ---- */

static bool renewal_is_pinned(snk_timer *timer)
{
    const snk_entry *entry = SNK_CONTAINER(timer, snk_entry, renewal);
    return atomic_load_explicit(&entry->pins, memory_order_acquire) > 0;
}

static bool deadline_is_pinned(snk_timer *timer)
{
    const snk_entry *entry = SNK_CONTAINER(timer, snk_entry, deadline);
    return atomic_load_explicit(&entry->pins, memory_order_acquire) > 0;
}

/* Whoever still has a pin comes here again when it lets go. */
static void free_if_unused_locked(snk_registry *registry, snk_entry *entry)
{
    if (entry->handles > 0)
        return;
    (void)pthread_mutex_lock(&entry->mutex);
    bool unused = snk_machine_is_idle(&entry->machine) &&
                  snk_timers_remove(registry->renewals, &entry->renewal, renewal_is_pinned) &&
                  snk_timers_remove(registry->deadlines, &entry->deadline, deadline_is_pinned);
    (void)pthread_mutex_unlock(&entry->mutex);
    if (!unused)
        return;
    take_out_locked(registry, entry);
    free_entry(entry);
}

static sneck_status open_locked(snk_registry *registry, const char *name, const snk_entry_key *key,
                                snk_entry **entry_out, sneck_error *error)
{
    if (registry->closing)
        return snk_fail(error, SNECK_INVALID, 0, "the client is closed; open another one");
    uint32_t hash = hash_of(registry, name);
    snk_entry *entry = find_locked(registry, name, key, hash);
    if (entry == NULL && registry->count >= registry->count_max)
        return snk_fail(error, SNECK_LIMIT, 0,
                        "the client has %zu lock names alive, its max_locks; free handles, or raise max_locks",
                        registry->count);
    if (entry == NULL)
        entry = add_locked(registry, name, key, hash);
    if (entry == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for another lock");
    entry->handles++;
    *entry_out = entry;
    return SNECK_OK;
}

sneck_status snk_registry_open(snk_registry *registry, const char *name, const snk_entry_key *key,
                               snk_entry **entry_out, sneck_error *error)
{
    (void)pthread_mutex_lock(&registry->mutex);
    sneck_status status = open_locked(registry, name, key, entry_out, error);
    (void)pthread_mutex_unlock(&registry->mutex);
    return status;
}

void snk_registry_drop(snk_registry *registry, snk_entry *entry)
{
    (void)pthread_mutex_lock(&registry->mutex);
    entry->handles--;
    free_if_unused_locked(registry, entry);
    (void)pthread_mutex_unlock(&registry->mutex);
}

bool snk_registry_is_last_handle(snk_registry *registry, const snk_entry *entry)
{
    (void)pthread_mutex_lock(&registry->mutex);
    bool last = entry->handles == 1;
    (void)pthread_mutex_unlock(&registry->mutex);
    return last;
}

snk_entry *snk_registry_find(snk_registry *registry, const char *name, const snk_entry_key *key)
{
    (void)pthread_mutex_lock(&registry->mutex);
    snk_entry *entry = find_locked(registry, name, key, hash_of(registry, name));
    if (entry != NULL)
        snk_entry_pin(entry);
    (void)pthread_mutex_unlock(&registry->mutex);
    return entry;
}

static void unpin_locked(snk_registry *registry, snk_entry *entry)
{
    if (atomic_fetch_sub_explicit(&entry->pins, 1, memory_order_acq_rel) == 1)
        free_if_unused_locked(registry, entry);
}

void snk_registry_unpin(snk_registry *registry, snk_entry *entry)
{
    (void)pthread_mutex_lock(&registry->mutex);
    unpin_locked(registry, entry);
    (void)pthread_mutex_unlock(&registry->mutex);
}

snk_entry *snk_registry_next_named(snk_registry *registry, const char *name, snk_entry *entry)
{
    (void)pthread_mutex_lock(&registry->mutex);
    uint32_t hash = hash_of(registry, name);
    snk_entry *from = registry->bucket_count == 0 ? NULL : *bucket_locked(registry, hash);
    snk_entry *next = named_from(entry == NULL ? from : entry->next, name, hash);
    if (next != NULL)
        snk_entry_pin(next);
    if (entry != NULL)
        unpin_locked(registry, entry);
    (void)pthread_mutex_unlock(&registry->mutex);
    return next;
}

void snk_registry_begin_close(snk_registry *registry)
{
    (void)pthread_mutex_lock(&registry->mutex);
    registry->closing = true;
    (void)pthread_mutex_unlock(&registry->mutex);
}

static snk_entry *pinned(snk_link *link)
{
    if (link == NULL)
        return NULL;
    snk_entry *entry = SNK_CONTAINER(link, snk_entry, link);
    snk_entry_pin(entry);
    return entry;
}

snk_entry *snk_registry_first(snk_registry *registry)
{
    (void)pthread_mutex_lock(&registry->mutex);
    snk_entry *entry = pinned(snk_list_first(&registry->entries));
    (void)pthread_mutex_unlock(&registry->mutex);
    return entry;
}

snk_entry *snk_registry_next(snk_registry *registry, snk_entry *entry)
{
    (void)pthread_mutex_lock(&registry->mutex);
    snk_entry *next = pinned(snk_list_next(&registry->entries, &entry->link));
    unpin_locked(registry, entry);
    (void)pthread_mutex_unlock(&registry->mutex);
    return next;
}
