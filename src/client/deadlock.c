#include "client/deadlock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/client.h"
#include "client/lock.h"

/* Longer cycles are left to the limits of the waits. */
#define THREADS_MAX 32

/* A thread that waits, and how the search came to it. */
typedef struct step {
    uint64_t owner;
    uint64_t number; /* of its wait */
    uint64_t asked;  /* of its request */
    int from;        /* the step whose thread waits for this one; -1: the first */
    snk_id claim;    /* of the hold of this thread that is in the way of that one */
    bool shares;     /* it waits to share */
    bool is_before;  /* it holds nothing that is in the way: it came before that one, and is waited for */
    char name[SNK_NAME_LENGTH_MAX + 1]; /* what it waits for */
} step;

typedef struct search {
    sneck_client *client;
    bool is_closed_by_queue; /* the last one waits for the first because that came before it */
    snk_id closing_claim;    /* otherwise: of the hold of the first that the last one waits for */
    int count;
    step steps[THREADS_MAX];
} search;

void snk_waits_init(snk_waits *waits)
{
    (void)pthread_mutex_init(&waits->mutex, NULL);
    snk_list_init(&waits->list);
    atomic_init(&waits->asks, 0);
}

void snk_waits_deinit(snk_waits *waits)
{
    (void)pthread_mutex_destroy(&waits->mutex);
}

uint64_t snk_waits_ask(snk_waits *waits)
{
    /* Relaxed: whoever knows that somebody's request has arrived has a higher number anyway. */
    return atomic_fetch_add_explicit(&waits->asks, 1, memory_order_relaxed) + 1;
}

void snk_waits_begin(snk_waits *waits, snk_wait_record *record, uint64_t owner, snk_entry *entry, uint64_t asked)
{
    *record = (snk_wait_record){ .owner = owner, .entry = entry, .asked = asked };
    (void)pthread_mutex_lock(&waits->mutex);
    record->number = ++waits->count;
    snk_list_append(&waits->list, &record->link);
    (void)pthread_mutex_unlock(&waits->mutex);
}

void snk_waits_end(snk_waits *waits, snk_wait_record *record)
{
    (void)pthread_mutex_lock(&waits->mutex);
    snk_list_remove(&record->link);
    (void)pthread_mutex_unlock(&waits->mutex);
}

static void read_record(const snk_wait_record *record, step *found)
{
    found->owner = record->owner;
    found->number = record->number;
    found->asked = record->asked;
    found->shares = record->entry->key.mode == SNK_MODE_SHARED;
    found->is_before = false;
    (void)snk_copy_text(found->name, sizeof found->name, record->entry->name);
}

/* What a thread waits for; false when it does not wait. */
static bool find_wait(snk_waits *waits, uint64_t owner, step *found)
{
    bool waiting = false;
    (void)pthread_mutex_lock(&waits->mutex);
    for (snk_link *link = snk_list_first(&waits->list); link != NULL && !waiting;
         link = snk_list_next(&waits->list, link)) {
        const snk_wait_record *record = SNK_CONTAINER(link, snk_wait_record, link);
        if (record->owner != owner)
            continue;
        waiting = true;
        read_record(record, found);
    }
    (void)pthread_mutex_unlock(&waits->mutex);
    return waiting;
}

/* The thread whose hold of this entry is in the way of somebody who wants the name; 0: none. */
static uint64_t holder_of(snk_entry *entry, bool shares, snk_id *claim_out)
{
    if (entry->key.object != SNK_OBJECT_LOCK || (shares && entry->key.mode == SNK_MODE_SHARED))
        return 0;
    uint64_t owner = 0;
    (void)pthread_mutex_lock(&entry->mutex);
    const snk_hold *hold = entry->machine.hold;
    if (hold != NULL && snk_machine_levels(&entry->machine, hold->owner, snk_now_ns()) > 0) {
        owner = hold->owner;
        *claim_out = hold->claim;
    }
    (void)pthread_mutex_unlock(&entry->mutex);
    return (owner & SNK_OWNER_IS_HANDLE) != 0 ? 0 : owner;
}

static bool is_known(const search *all, uint64_t owner)
{
    for (int i = 0; i < all->count; i++)
        if (all->steps[i].owner == owner)
            return true;
    return false;
}

/*
 * A thread that wants to read waits for the writers that came before it and wait themselves: they stop new readers. True
 * when one of them is the first.
 */
static bool follow_queue(search *all, int from)
{
    snk_waits *waits = &all->client->waits;
    const step *waiting = &all->steps[from];
    bool is_closed = false;
    (void)pthread_mutex_lock(&waits->mutex);
    for (snk_link *link = snk_list_first(&waits->list); link != NULL && !is_closed;
         link = snk_list_next(&waits->list, link)) {
        const snk_wait_record *record = SNK_CONTAINER(link, snk_wait_record, link);
        const snk_entry_key *key = &record->entry->key;
        if (key->object != SNK_OBJECT_LOCK || key->mode != SNK_MODE_EXCLUSIVE || record->asked > waiting->asked ||
            strcmp(record->entry->name, waiting->name) != 0)
            continue;
        is_closed = record->owner == all->steps[0].owner && from != 0;
        if (is_closed || is_known(all, record->owner) || all->count == THREADS_MAX)
            continue;
        step *next = &all->steps[all->count++];
        read_record(record, next);
        next->from = from;
        next->is_before = true;
    }
    (void)pthread_mutex_unlock(&waits->mutex);
    return is_closed;
}

/* Adds the threads that step `from` waits for and that wait themselves. True when one of them is the first. */
static bool follow(search *all, int from)
{
    snk_registry *registry = &all->client->registry;
    const step *waiting = &all->steps[from];
    for (snk_entry *entry = snk_registry_next_named(registry, waiting->name, NULL); entry != NULL;
         entry = snk_registry_next_named(registry, waiting->name, entry)) {
        snk_id claim;
        uint64_t owner = holder_of(entry, waiting->shares, &claim);
        if (owner == 0)
            continue;
        if (owner == all->steps[0].owner) {
            all->closing_claim = claim;
            snk_registry_unpin(registry, entry);
            return true;
        }
        step *next = &all->steps[all->count];
        if (all->count < THREADS_MAX && !is_known(all, owner) && find_wait(&all->client->waits, owner, next)) {
            next->from = from;
            next->claim = claim;
            all->count++;
        }
    }
    all->is_closed_by_queue = waiting->shares && follow_queue(all, from);
    return all->is_closed_by_queue;
}

/* The last step of the way round; -1 when there is none. */
static int find_last(search *all)
{
    for (int i = 0; i < all->count; i++)
        if (follow(all, i))
            return i;
    return -1;
}

static bool still_holds(search *all, const step *waiting, uint64_t owner, const snk_id *claim)
{
    snk_registry *registry = &all->client->registry;
    bool holds = false;
    snk_entry *entry = snk_registry_next_named(registry, waiting->name, NULL);
    while (entry != NULL) {
        snk_id now;
        holds = holds || (holder_of(entry, waiting->shares, &now) == owner && snk_id_equal(&now, claim));
        entry = snk_registry_next_named(registry, waiting->name, entry);
    }
    return holds;
}

/*
 * What was found bit by bit may never have been true at one moment. But if each wait is still the same one, and each
 * hold still the same one, then all of them were there between the two looks. Who came before somebody, and still waits,
 * is still before it.
 */
static bool is_still_true(search *all, int last)
{
    uint64_t owner = all->steps[0].owner;
    const snk_id *claim = &all->closing_claim;
    bool by_hold = !all->is_closed_by_queue;
    for (int i = last; i >= 0; i = all->steps[i].from) {
        step now;
        if (!find_wait(&all->client->waits, all->steps[i].owner, &now) || now.number != all->steps[i].number ||
            (by_hold && !still_holds(all, &all->steps[i], owner, claim)))
            return false;
        owner = all->steps[i].owner;
        claim = &all->steps[i].claim;
        by_hold = !all->steps[i].is_before;
    }
    return true;
}

/* Of all who wait in the cycle, one gives up: the one that came last. */
static bool first_came_last(const search *all, int last)
{
    for (int i = last; i > 0; i = all->steps[i].from)
        if (all->steps[i].number > all->steps[0].number)
            return false;
    return true;
}

static void describe(const search *all, int last, sneck_error *error)
{
    char text[sizeof error->message];
    size_t length = (size_t)snprintf(text, sizeof text, "the caller %s %.40s, which thread %llu waits for",
                                     all->is_closed_by_queue ? "waits first for" : "holds", all->steps[last].name,
                                     (unsigned long long)all->steps[last].owner);
    for (int i = last; i > 0 && length < sizeof text; i = all->steps[i].from) {
        const step *waiting = &all->steps[all->steps[i].from];
        const char *has = all->steps[i].is_before ? "waits first for" : "holds";
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "; that one %s %.40s, which %s", has, waiting->name,
                             all->steps[i].from == 0 ? "the caller wants" : "another thread waits for");
    }
    (void)snk_fail(error, SNECK_DEADLOCK, 0, "%s", text);
}

bool snk_deadlock_find(sneck_client *client, const snk_wait_record *record, sneck_error *error)
{
    search *all = malloc(sizeof *all);
    if (all == NULL)
        return false; /* the wait has its limit */
    all->client = client;
    all->is_closed_by_queue = false;
    all->count = 0;
    bool found = find_wait(&client->waits, record->owner, &all->steps[0]);
    if (found) {
        all->steps[0].from = -1;
        all->count = 1;
        int last = find_last(all);
        found = last >= 0 && first_came_last(all, last) && is_still_true(all, last);
        if (found)
            describe(all, last, error);
    }
    free(all);
    return found;
}
