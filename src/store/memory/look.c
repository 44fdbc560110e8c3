/* Looking at the table of a memory store, and breaking holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/glob.h"
#include "store/memory/table.h"

static sneck_party party_of(const snk_memory_claim *claim, int64_t now_ns)
{
    return (sneck_party){
        .owner = claim->owner,
        .host = claim->host,
        .why = claim->why,
        .pid = claim->pid,
        .age_ms = (now_ns - claim->since_ns) / SNK_NS_PER_MS,
        .remaining_ms = (claim->expires_at_ns - now_ns) / SNK_NS_PER_MS,
        .mode = snk_mode_word(claim->grip.mode),
        .units = claim->grip.units,
    };
}

static void show_incidents(const snk_memory_lock *lock, snk_view *view)
{
    uint64_t first = lock->incidents_seen > SNK_INCIDENTS_MAX ? lock->incidents_seen - SNK_INCIDENTS_MAX : 0;
    int64_t oldest_ms = snk_wall_us() / 1000 - (int64_t)SNK_INCIDENT_AGE_S * 1000;
    for (uint64_t number = first; number < lock->incidents_seen; number++) {
        const snk_memory_incident *incident = &lock->incidents[number % SNK_INCIDENTS_MAX];
        if (incident->time_ms < oldest_ms)
            continue;
        snk_view_incident(view, &(sneck_incident){ .time_ms = incident->time_ms,
                                                   .kind = incident->kind,
                                                   .owner = incident->owner,
                                                   .text = incident->text,
                                                   .token = incident->token });
    }
}

static void show_lock(const snk_memory_lock *lock, snk_view *view)
{
    int64_t now_ns = snk_now_ns();
    view->info.token = lock->token;
    view->info.permits = lock->count;
    for (size_t i = 0; i < lock->holders.count; i++) {
        const snk_memory_claim *claim = &lock->holders.at[i];
        sneck_party holder = party_of(claim, now_ns);
        if (claim->expires_at_ns > now_ns)
            snk_view_hold(view, &holder, claim->tokens.first, claim->fair);
    }
    for (size_t i = 0; i < lock->queue.count; i++) {
        sneck_party waiter = party_of(&lock->queue.at[i], now_ns);
        if (lock->queue.at[i].expires_at_ns > now_ns)
            snk_view_waiter(view, &waiter);
    }
    show_incidents(lock, view);
}

static sneck_status inspect_full(snk_memory *memory, const char *full_name, snk_view *view, sneck_error *error)
{
    snk_view_reset(view);
    snk_view_name(view, full_name + strlen(memory->prefix));
    pthread_mutex_lock(&memory->table->mutex);
    const snk_memory_lock *lock = snk_memory_find_locked(memory->table, full_name, false);
    if (lock != NULL)
        show_lock(lock, view);
    pthread_mutex_unlock(&memory->table->mutex);
    if (view->out_of_memory)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    return snk_ok(error);
}

sneck_status snk_memory_inspect(snk_store *store, const char *name, snk_view *view, sneck_error *error)
{
    snk_memory *memory = SNK_CONTAINER(store, snk_memory, base);
    char full_name[SNK_FULL_NAME_SIZE];
    snk_memory_name(memory, SNK_OBJECT_LOCK, name, full_name);
    return inspect_full(memory, full_name, view, error);
}

/* The first full name after `after` (NULL: from the start) that has the prefix and matches, copied; or NULL. */
static char *next_name_locked(const snk_memory *memory, const char *pattern, const char *after)
{
    const char *best = NULL;
    size_t prefix_length = strlen(memory->prefix);
    for (size_t i = 0; i < SNK_MEMORY_BUCKETS; i++) {
        for (const snk_memory_lock *lock = memory->table->buckets[i]; lock != NULL; lock = lock->next) {
            bool comes_later = after == NULL || strcmp(lock->name, after) > 0;
            bool is_sooner = best == NULL || strcmp(lock->name, best) < 0;
            if (lock->object == SNK_OBJECT_LOCK && comes_later && is_sooner &&
                strncmp(lock->name, memory->prefix, prefix_length) == 0 &&
                snk_glob_matches(pattern, lock->name + prefix_length))
                best = lock->name;
        }
    }
    return best == NULL ? NULL : strdup(best);
}

sneck_status snk_memory_list(snk_store *store, const char *pattern, snk_view_fn callback, void *context,
                             sneck_error *error)
{
    snk_memory *memory = SNK_CONTAINER(store, snk_memory, base);
    snk_view *view = snk_view_new();
    if (view == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    sneck_status status = snk_ok(error);
    char *after = NULL;
    bool goes_on = true;
    while (goes_on) {
        pthread_mutex_lock(&memory->table->mutex);
        char *name = next_name_locked(memory, pattern, after);
        pthread_mutex_unlock(&memory->table->mutex);
        free(after);
        after = name;
        if (name == NULL)
            break;
        status = inspect_full(memory, name, view, error);
        goes_on = status == SNECK_OK;
        if (goes_on && (view->info.held || view->info.waiter_count > 0))
            goes_on = callback(context, view); /* nothing is locked: it may call the store */
    }
    free(after);
    snk_view_free(view);
    return status;
}

/* Ends every hold with that token: one, or all readers of an epoch. */
static bool break_locked(snk_memory_lock *lock, uint64_t token, const char *text)
{
    bool broken = false;
    for (size_t i = lock->holders.count; i > 0; i--) {
        const snk_memory_claim *holder = &lock->holders.at[i - 1];
        if (holder->tokens.first != token)
            continue;
        snk_memory_incident_locked(lock, holder, "broken", text);
        snk_memory_end_locked(lock, i - 1, true);
        broken = true;
    }
    return broken;
}

sneck_status snk_memory_break(snk_store *store, const char *name, uint64_t token, const char *reason,
                              sneck_error *error)
{
    snk_memory *memory = SNK_CONTAINER(store, snk_memory, base);
    char full_name[SNK_FULL_NAME_SIZE];
    snk_memory_name(memory, SNK_OBJECT_LOCK, name, full_name);
    char text[SNK_WHY_LENGTH_MAX + 80];
    (void)snprintf(text, sizeof text, "%.200s (by pid %lld on %s)", reason, (long long)memory->identity.pid,
                   memory->identity.host);
    bool broken = false;
    pthread_mutex_lock(&memory->table->mutex);
    snk_memory_lock *lock = snk_memory_find_locked(memory->table, full_name, false);
    if (lock != NULL) {
        snk_memory_settle_locked(memory->table, lock, snk_now_ns());
        broken = break_locked(lock, token, text);
        snk_memory_settle_locked(memory->table, lock, snk_now_ns());
    }
    pthread_mutex_unlock(&memory->table->mutex);
    if (!broken)
        return snk_fail(error, SNECK_CONFLICT, 0, "%.120s is not held with token %llu", name,
                        (unsigned long long)token);
    return snk_ok(error);
}
