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
/* What changes all the time is no circle. */
#define LOOKS_MAX 8
/* On one store. */
#define CLIENTS_MAX 64

/* A thread that waits, and how the search came to it. */
typedef struct step {
    uint64_t owner;
    uint64_t number; /* of its wait */
    uint64_t asked;  /* of its request */
    uint64_t place;  /* of its client */
    int from;        /* the step whose thread waits for this one; -1: the first */
    snk_id claim;    /* of the hold of this thread that is in the way of that one */
    bool shares;     /* it waits to share */
    bool is_before;  /* it holds nothing that is in the way: it came before that one, and is waited for */
    char name[SNK_NAME_LENGTH_MAX + 1]; /* what it waits for */
} step;

typedef struct search {
    bool is_closed_by_queue; /* the last one waits for the first because that came before it */
    snk_id closing_claim;    /* otherwise: of the hold of the first that the last one waits for */
    int count;
    step steps[THREADS_MAX];
} search;

static void read_record(const snk_wait_record *record, step *found)
{
    found->owner = record->owner;
    found->number = record->number;
    found->asked = record->asked;
    found->place = record->place;
    found->shares = record->entry->key.mode == SNK_MODE_SHARED;
    found->is_before = false;
    (void)snk_copy_text(found->name, sizeof found->name, record->entry->name);
}

static bool read_if_its(void *context, const snk_wait_record *record)
{
    step *found = context;
    bool is_its = record->owner == found->owner;
    if (is_its)
        read_record(record, found);
    return is_its;
}

/* What a thread waits for; false when it does not wait. */
static bool find_wait(uint64_t owner, step *found)
{
    found->owner = owner;
    return snk_waits_visit(read_if_its, found);
}

/* ---- Who holds ---- */

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

/* A hold that is in the way of somebody who waits. */
typedef struct obstacle {
    uint64_t owner;
    snk_id claim;
} obstacle;

typedef bool visit_fn(void *context, const obstacle *found);

static bool visit_client(sneck_client *client, const step *waiting, visit_fn *visit, void *context)
{
    bool stops = false;
    snk_entry *entry = snk_registry_next_named(&client->registry, waiting->name, NULL);
    while (entry != NULL) {
        obstacle found;
        found.owner = stops ? 0 : holder_of(entry, waiting->shares, &found.claim);
        stops = stops || (found.owner != 0 && visit(context, &found));
        entry = snk_registry_next_named(&client->registry, waiting->name, entry);
    }
    return stops;
}

/* Calls `visit` for each hold of a thread that is in the way of this one, until it returns true; which is returned. */
static bool visit_obstacles(const step *waiting, visit_fn *visit, void *context)
{
    sneck_client *clients[CLIENTS_MAX];
    size_t count = snk_waits_clients(waiting->place, clients, CLIENTS_MAX);
    bool stops = false;
    for (size_t i = 0; i < count; i++) {
        stops = stops || visit_client(clients[i], waiting, visit, context);
        snk_client_unref(clients[i]);
    }
    return stops;
}

/* ---- The way round ---- */

static bool is_known(const search *all, uint64_t owner)
{
    for (int i = 0; i < all->count; i++)
        if (all->steps[i].owner == owner)
            return true;
    return false;
}

/* Of all who wait in a circle one gives up, the one that came last: whoever came later will find it. */
static bool began_later(const search *all, uint64_t number)
{
    return number > all->steps[0].number;
}

/* A visit from one of the steps. */
typedef struct visit_from {
    search *all;
    int from;
} visit_from;

/* The writer came before, and is waited for. True when it is the first. */
static bool follow_writer(void *context, const snk_wait_record *record)
{
    const visit_from *visit = context;
    search *all = visit->all;
    const step *waiting = &all->steps[visit->from];
    const snk_entry_key *key = &record->entry->key;
    if (began_later(all, record->number) || key->object != SNK_OBJECT_LOCK || key->mode != SNK_MODE_EXCLUSIVE ||
        record->asked > waiting->asked || record->place != waiting->place ||
        strcmp(record->entry->name, waiting->name) != 0)
        return false;
    if (record->owner == all->steps[0].owner && visit->from != 0)
        return true;
    if (is_known(all, record->owner) || all->count == THREADS_MAX)
        return false;
    step *next = &all->steps[all->count++];
    read_record(record, next);
    next->from = visit->from;
    next->is_before = true;
    return false;
}

/* The holder may wait itself. True when it is the first. */
static bool follow_holder(void *context, const obstacle *found)
{
    const visit_from *visit = context;
    search *all = visit->all;
    if (found->owner == all->steps[0].owner) {
        all->closing_claim = found->claim;
        return true;
    }
    step *next = &all->steps[all->count];
    if (all->count < THREADS_MAX && !is_known(all, found->owner) && find_wait(found->owner, next) &&
        !began_later(all, next->number)) {
        next->from = visit->from;
        next->claim = found->claim;
        all->count++;
    }
    return false;
}

/*
 * Adds the threads that step `from` waits for and that wait themselves. True when one of them is the first. A thread
 * that wants to read also waits for the writers that came before it and wait themselves: they stop new readers.
 */
static bool follow(search *all, int from)
{
    visit_from visit = { .all = all, .from = from };
    const step *waiting = &all->steps[from];
    if (visit_obstacles(waiting, follow_holder, &visit))
        return true;
    all->is_closed_by_queue = waiting->shares && snk_waits_visit(follow_writer, &visit);
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

static bool is_same(void *context, const obstacle *found)
{
    const obstacle *wanted = context;
    return found->owner == wanted->owner && snk_id_equal(&found->claim, &wanted->claim);
}

static bool still_holds(const step *waiting, uint64_t owner, const snk_id *claim)
{
    obstacle wanted = { .owner = owner, .claim = *claim };
    return visit_obstacles(waiting, is_same, &wanted);
}

/*
 * What was found bit by bit may never have been true at one moment. But if each wait is still the same one, and each
 * hold still the same one, then all of them were there between the two looks. Who came before somebody, and still waits,
 * is still before it.
 */
static bool is_still_true(const search *all, int last)
{
    uint64_t owner = all->steps[0].owner;
    const snk_id *claim = &all->closing_claim;
    bool by_hold = !all->is_closed_by_queue;
    for (int i = last; i >= 0; i = all->steps[i].from) {
        step now;
        if (!find_wait(all->steps[i].owner, &now) || now.number != all->steps[i].number ||
            (by_hold && !still_holds(&all->steps[i], owner, claim)))
            return false;
        owner = all->steps[i].owner;
        claim = &all->steps[i].claim;
        by_hold = !all->steps[i].is_before;
    }
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

/* True: the way round is as it was. Otherwise there may be another one, or none. */
static bool find_round(search *all, uint64_t owner, int *last_out)
{
    all->is_closed_by_queue = false;
    all->count = 0;
    *last_out = -1;
    if (!find_wait(owner, &all->steps[0]))
        return true;
    all->steps[0].from = -1;
    all->count = 1;
    *last_out = find_last(all);
    return *last_out < 0 || is_still_true(all, *last_out);
}

bool snk_deadlock_find(const snk_wait_record *record, sneck_error *error)
{
    search *all = malloc(sizeof *all);
    if (all == NULL)
        return false; /* the wait has its limit */
    int last = -1;
    bool is_sure = false;
    for (int i = 0; i < LOOKS_MAX && !is_sure; i++)
        is_sure = find_round(all, record->owner, &last);
    bool found = is_sure && last >= 0;
    if (found)
        describe(all, last, error);
    free(all);
    return found;
}
