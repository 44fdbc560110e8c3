/* What can be done to claims in the table. Everything here runs under table.mutex. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "store/memory/table.h"

#define FULL_NAME_SIZE (SNK_PREFIX_LENGTH_MAX + SNK_NAME_LENGTH_MAX + 1)

static snk_memory_claim *claim_of(snk_link *link)
{
    return SNK_CONTAINER(link, snk_memory_claim, link);
}

size_t snk_memory_word_of(const snk_id *claim)
{
    return claim->bytes[0] % SNK_MEMORY_WORDS;
}

static void tell(snk_memory_table *table, const snk_id *claim)
{
    _Atomic uint32_t *word = &table->words[snk_memory_word_of(claim)];
    (void)atomic_fetch_add(word, 1);
    (void)atomic_fetch_add(&table->any, 1);
    snk_futex_wake(word, INT_MAX, false);
    snk_futex_wake(&table->any, INT_MAX, false);
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
    snk_list_init(&lock->queue);
    lock->next = *bucket;
    *bucket = lock;
    return lock;
}

void snk_memory_incident_locked(snk_memory_lock *lock, const char *kind, const char *text)
{
    snk_memory_incident *incident = &lock->incidents[lock->incidents_seen++ % SNK_INCIDENTS_MAX];
    incident->time_ms = snk_wall_us() / 1000;
    incident->kind = kind;
    incident->token = lock->holder->tokens.first;
    (void)snk_copy_text(incident->owner, sizeof incident->owner, lock->holder->owner);
    (void)snk_copy_text(incident->text, sizeof incident->text, text);
}

void snk_memory_free_hold_locked(snk_memory_lock *lock)
{
    free(lock->holder);
    lock->holder = NULL;
}

static void grant(snk_memory_lock *lock, snk_memory_claim *claim, int64_t now_ns, int64_t life_ns)
{
    claim->tokens = snk_tokens_next(lock->token, snk_wall_us(), claim->tokens_asked);
    claim->since_ns = now_ns;
    claim->expires_at_ns = snk_time_add(now_ns, life_ns);
    lock->token = claim->tokens.last;
    lock->holder = claim;
}

void snk_memory_settle_locked(snk_memory_table *table, snk_memory_lock *lock, int64_t now_ns)
{
    if (lock->holder != NULL && lock->holder->expires_at_ns <= now_ns) {
        snk_memory_incident_locked(lock, "expired", "");
        snk_memory_free_hold_locked(lock);
    }
    snk_link *next = NULL;
    for (snk_link *link = snk_list_first(&lock->queue); link != NULL; link = next) {
        snk_memory_claim *claim = claim_of(link);
        next = snk_list_next(&lock->queue, link);
        if (claim->expires_at_ns <= now_ns) {
            snk_list_remove(link);
            free(claim);
        } else if (lock->holder == NULL) {
            snk_list_remove(link);
            grant(lock, claim, now_ns, claim->lease_ns < SNK_OFFER_NS ? claim->lease_ns : SNK_OFFER_NS);
            tell(table, &claim->id);
        }
    }
}

/* Whether the claim has been given up; forgets tombstones whose time is over. */
static bool is_given_up(snk_memory_table *table, const snk_id *claim, int64_t now_ns)
{
    bool found = false;
    snk_memory_tombstone **place = &table->tombstones;
    while (*place != NULL) {
        snk_memory_tombstone *tombstone = *place;
        if (tombstone->expires_at_ns <= now_ns) {
            *place = tombstone->next;
            free(tombstone);
            continue;
        }
        found = found || snk_id_equal(&tombstone->claim, claim);
        place = &tombstone->next;
    }
    return found;
}

static snk_memory_claim *find_queued(snk_memory_lock *lock, const snk_id *id)
{
    for (snk_link *link = snk_list_first(&lock->queue); link != NULL; link = snk_list_next(&lock->queue, link)) {
        if (snk_id_equal(&claim_of(link)->id, id))
            return claim_of(link);
    }
    return NULL;
}

static void answer_held(const snk_memory_lock *lock, snk_answer *answer)
{
    answer->kind = SNK_ANSWER_HELD;
    answer->token_first = lock->holder->tokens.first;
    answer->token_last = lock->holder->tokens.last;
}

static void answer_queued(snk_memory_table *table, const snk_memory_lock *lock, const snk_memory_claim *claim,
                          int64_t now_ns, snk_answer *answer)
{
    size_t index = snk_memory_word_of(&claim->id);
    answer->kind = SNK_ANSWER_QUEUED;
    answer->ticket = UINT64_C(1) << 63 | (uint64_t)index << 32 | atomic_load(&table->words[index]);
    /* Nobody but the lease ends a hold here without a word, so that is when to look at the latest. */
    int64_t remaining_ns = lock->holder->expires_at_ns - now_ns + SNK_NS_PER_MS;
    answer->look_after_ns = remaining_ns < claim->lease_ns / 3 ? remaining_ns : claim->lease_ns / 3;
}

static snk_memory_claim *make_claim(const snk_memory *memory, const snk_claim *from, int64_t now_ns)
{
    snk_memory_claim *claim = calloc(1, sizeof *claim);
    if (claim == NULL)
        return NULL;
    claim->id = from->send.claim;
    claim->lease_ns = from->send.lease_ns;
    claim->since_ns = now_ns;
    claim->expires_at_ns = snk_time_add(now_ns, from->send.lease_ns);
    claim->tokens_asked = from->send.tokens;
    claim->fair = from->send.fair;
    claim->pid = memory->identity.pid;
    (void)snprintf(claim->owner, sizeof claim->owner, "%s:%lld", memory->identity.uuid, (long long)from->thread);
    (void)snk_copy_text(claim->host, sizeof claim->host, memory->identity.host);
    (void)snk_copy_text(claim->why, sizeof claim->why, from->why == NULL ? "" : from->why);
    return claim;
}

static void do_acquire(snk_memory *memory, snk_memory_lock *lock, const snk_claim *asked, snk_answer *answer)
{
    int64_t now_ns = snk_now_ns();
    if (is_given_up(memory->table, &asked->send.claim, now_ns)) {
        answer->kind = SNK_ANSWER_GONE;
        return;
    }
    snk_memory_settle_locked(memory->table, lock, now_ns);
    if (lock->holder != NULL && !asked->send.queue) {
        answer->kind = SNK_ANSWER_BUSY;
        return;
    }
    snk_memory_claim *claim = make_claim(memory, asked, now_ns);
    if (claim == NULL) {
        answer->kind = SNK_ANSWER_FAILED;
        (void)snk_fail(&answer->error, SNECK_NO_MEMORY, 0, "out of memory");
        return;
    }
    if (lock->holder == NULL) {
        grant(lock, claim, now_ns, claim->lease_ns);
        answer_held(lock, answer);
    } else {
        snk_list_append(&lock->queue, &claim->link);
        answer_queued(memory->table, lock, claim, now_ns, answer);
    }
}

static void refresh(snk_memory_claim *claim, int64_t now_ns, int64_t lease_ns)
{
    int64_t until_ns = snk_time_add(now_ns, lease_ns);
    if (until_ns > claim->expires_at_ns)
        claim->expires_at_ns = until_ns;
}

static void do_renew(snk_memory *memory, snk_memory_lock *lock, const snk_send *send, snk_answer *answer)
{
    int64_t now_ns = snk_now_ns();
    snk_memory_settle_locked(memory->table, lock, now_ns);
    if (lock->holder != NULL && snk_id_equal(&lock->holder->id, &send->claim)) {
        refresh(lock->holder, now_ns, send->lease_ns);
        answer_held(lock, answer);
        return;
    }
    snk_memory_claim *queued = find_queued(lock, &send->claim);
    if (queued == NULL) {
        answer->kind = SNK_ANSWER_GONE;
        return;
    }
    refresh(queued, now_ns, send->lease_ns);
    answer_queued(memory->table, lock, queued, now_ns, answer);
}

static bool leave_tombstone(snk_memory_table *table, const snk_send *send)
{
    snk_memory_tombstone *tombstone = malloc(sizeof *tombstone);
    if (tombstone == NULL)
        return false;
    int64_t life_ns = send->lease_ns > SNK_TOMBSTONE_NS ? send->lease_ns : SNK_TOMBSTONE_NS;
    tombstone->claim = send->claim;
    tombstone->expires_at_ns = snk_time_add(snk_now_ns(), life_ns);
    tombstone->next = table->tombstones;
    table->tombstones = tombstone;
    return true;
}

static void do_release(snk_memory *memory, snk_memory_lock *lock, const snk_send *send, snk_answer *answer)
{
    if (send->unanswered && !leave_tombstone(memory->table, send)) {
        answer->kind = SNK_ANSWER_FAILED;
        (void)snk_fail(&answer->error, SNECK_NO_MEMORY, 0, "out of memory");
        return;
    }
    int64_t now_ns = snk_now_ns();
    snk_memory_settle_locked(memory->table, lock, now_ns);
    answer->kind = SNK_ANSWER_DONE;
    snk_memory_claim *queued = find_queued(lock, &send->claim);
    if (lock->holder != NULL && snk_id_equal(&lock->holder->id, &send->claim)) {
        snk_memory_free_hold_locked(lock);
        snk_memory_settle_locked(memory->table, lock, now_ns);
    } else if (queued != NULL) {
        snk_list_remove(&queued->link);
        free(queued);
    } else {
        answer->kind = SNK_ANSWER_GONE;
    }
}

void snk_memory_do_locked(snk_memory *memory, const snk_claim *claim, snk_answer *answer)
{
    *answer = (snk_answer){ .kind = SNK_ANSWER_FAILED };
    char full_name[FULL_NAME_SIZE];
    (void)snprintf(full_name, sizeof full_name, "%s%s", memory->prefix, claim->name);
    snk_memory_lock *lock = snk_memory_find_locked(memory->table, full_name, true);
    if (lock == NULL) {
        (void)snk_fail(&answer->error, SNECK_NO_MEMORY, 0, "out of memory");
        return;
    }
    switch (claim->send.ask) {
    case SNK_ASK_ACQUIRE:
        do_acquire(memory, lock, claim, answer);
        return;
    case SNK_ASK_RENEW:
        do_renew(memory, lock, &claim->send, answer);
        return;
    case SNK_ASK_RELEASE:
        do_release(memory, lock, &claim->send, answer);
        return;
    }
}
