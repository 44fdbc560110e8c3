/* The table itself: things by name, claims in order, tombstones, incidents. Everything here runs under table.mutex. */
#include "store/memory/table.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"

size_t snk_memory_word_of(const snk_id *claim)
{
    return claim->bytes[0] % SNK_MEMORY_WORDS;
}

void snk_memory_tell(snk_memory_table *table, const snk_id *claim)
{
    _Atomic uint32_t *word = &table->words[snk_memory_word_of(claim)];
    (void)atomic_fetch_add(word, 1);
    (void)atomic_fetch_add(&table->any, 1);
    snk_futex_wake(word, INT_MAX, false);
    snk_futex_wake(&table->any, INT_MAX, false);
}

/* ---- Things ---- */

void snk_memory_name(const snk_memory *memory, snk_object object, const char *name, char full_name[SNK_FULL_NAME_SIZE])
{
    (void)snprintf(full_name, SNK_FULL_NAME_SIZE, "%s%s%s", snk_object_mark(object), memory->prefix, name);
}

static size_t bucket_of(const char *name)
{
    uint32_t hash = 2166136261U;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619U;
    return hash % SNK_MEMORY_BUCKETS;
}

snk_memory_lock *snk_memory_find_locked(snk_memory_table *table, const char *full_name, bool create)
{
    snk_memory_lock **bucket = &table->buckets[bucket_of(full_name)];
    for (snk_memory_lock *lock = *bucket; lock != NULL; lock = lock->next) {
        if (strcmp(lock->name, full_name) == 0)
            return lock;
    }
    if (!create)
        return NULL;
    size_t size = strlen(full_name) + 1;
    snk_memory_lock *lock = calloc(1, sizeof *lock + size);
    if (lock == NULL)
        return NULL;
    memcpy(lock->name, full_name, size);
    lock->object = snk_object_of_mark(full_name[0]);
    lock->count = lock->object == SNK_OBJECT_LOCK ? -1 : 0;
    lock->next = *bucket;
    *bucket = lock;
    return lock;
}

void snk_memory_incident_locked(snk_memory_lock *lock, const snk_memory_claim *holder, const char *kind,
                                const char *text)
{
    snk_memory_incident *incident = &lock->incidents[lock->incidents_seen++ % SNK_INCIDENTS_MAX];
    incident->time_ms = snk_wall_us() / 1000;
    incident->kind = kind;
    incident->token = holder->tokens.first;
    (void)snk_copy_text(incident->owner, sizeof incident->owner, holder->owner);
    (void)snk_copy_text(incident->text, sizeof incident->text, text);
}

/* ---- Claims ---- */

size_t snk_memory_index(const snk_memory_claims *claims, const snk_id *id)
{
    size_t index = 0;
    while (index < claims->count && !snk_id_equal(&claims->at[index].id, id))
        index++;
    return index;
}

void snk_memory_remove(snk_memory_claims *claims, size_t index)
{
    claims->count--;
    memmove(&claims->at[index], &claims->at[index + 1], (claims->count - index) * sizeof claims->at[0]);
}

bool snk_memory_append(snk_memory_claims *claims, const snk_memory_claim *claim)
{
    snk_memory_claim copy = *claim; /* it may be in the array that moves */
    snk_memory_claim *at = snk_array_with_room(claims->at, claims->count, &claims->room, sizeof *at);
    if (at == NULL)
        return false;
    claims->at = at;
    at[claims->count++] = copy;
    return true;
}

/* ---- Tombstones ---- */

bool snk_memory_is_buried_locked(snk_memory_table *table, const snk_id *id, int64_t now_ns)
{
    bool found = false;
    size_t kept = 0;
    for (size_t i = 0; i < table->tombstone_count; i++) {
        const snk_memory_tombstone tombstone = table->tombstones[i];
        if (tombstone.expires_at_ns <= now_ns)
            continue;
        found = found || snk_id_equal(&tombstone.claim, id);
        table->tombstones[kept++] = tombstone;
    }
    table->tombstone_count = kept;
    return found;
}

bool snk_memory_bury_locked(snk_memory_table *table, const snk_id *id, int64_t until_ns)
{
    snk_memory_tombstone *tombstones =
        snk_array_with_room(table->tombstones, table->tombstone_count, &table->tombstone_room, sizeof *tombstones);
    if (tombstones == NULL)
        return false;
    table->tombstones = tombstones;
    tombstones[table->tombstone_count++] = (snk_memory_tombstone){ .claim = *id, .expires_at_ns = until_ns };
    return true;
}
