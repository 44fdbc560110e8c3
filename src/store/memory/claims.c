/* What can be done to claims in the table. Everything here runs under table.mutex. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "store/memory/table.h"

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
    lock->next = *bucket;
    *bucket = lock;
    return lock;
}

void snk_memory_incident_locked(snk_memory_lock *lock, const char *kind, const char *text)
{
    snk_memory_incident *incident = &lock->incidents[lock->incidents_seen++ % SNK_INCIDENTS_MAX];
    incident->time_ms = snk_wall_us() / 1000;
    incident->kind = kind;
    incident->token = lock->holder.tokens.first;
    (void)snk_copy_text(incident->owner, sizeof incident->owner, lock->holder.owner);
    (void)snk_copy_text(incident->text, sizeof incident->text, text);
}

static void grant(snk_memory_lock *lock, const snk_memory_claim *claim, int64_t now_ns, int64_t life_ns)
{
    lock->held = true;
    lock->holder = *claim;
    lock->holder.tokens = snk_tokens_next(lock->token, snk_wall_us(), claim->tokens_asked);
    lock->holder.since_ns = now_ns;
    lock->holder.expires_at_ns = snk_time_add(now_ns, life_ns);
    lock->token = lock->holder.tokens.last;
}

static void remove_queued(snk_memory_lock *lock, size_t index)
{
    lock->waiters--;
    memmove(&lock->queue[index], &lock->queue[index + 1], (lock->waiters - index) * sizeof lock->queue[0]);
}

void snk_memory_settle_locked(snk_memory_table *table, snk_memory_lock *lock, int64_t now_ns)
{
    if (lock->held && lock->holder.expires_at_ns <= now_ns) {
        snk_memory_incident_locked(lock, "expired", "");
        lock->held = false;
    }
    for (size_t i = lock->waiters; i > 0; i--) {
        if (lock->queue[i - 1].expires_at_ns <= now_ns)
            remove_queued(lock, i - 1);
    }
    if (!lock->held && lock->waiters > 0) {
        int64_t lease_ns = lock->queue[0].lease_ns;
        grant(lock, &lock->queue[0], now_ns, lease_ns < SNK_OFFER_NS ? lease_ns : SNK_OFFER_NS);
        remove_queued(lock, 0);
        tell(table, &lock->holder.id);
    }
}

/* Whether the claim has been given up; forgets tombstones whose time is over. */
static bool is_given_up(snk_memory_table *table, const snk_id *claim, int64_t now_ns)
{
    bool found = false;
    size_t kept = 0;
    for (size_t i = 0; i < table->tombstone_count; i++) {
        const snk_memory_tombstone tombstone = table->tombstones[i];
        if (tombstone.expires_at_ns <= now_ns)
            continue;
        found = found || snk_id_equal(&tombstone.claim, claim);
        table->tombstones[kept++] = tombstone;
    }
    table->tombstone_count = kept;
    return found;
}

/* Its index in the queue, or lock.waiters when it is not there. */
static size_t find_queued(const snk_memory_lock *lock, const snk_id *id)
{
    size_t index = 0;
    while (index < lock->waiters && !snk_id_equal(&lock->queue[index].id, id))
        index++;
    return index;
}

static bool is_holder(const snk_memory_lock *lock, const snk_id *id)
{
    return lock->held && snk_id_equal(&lock->holder.id, id);
}

static void answer_held(const snk_memory_lock *lock, snk_answer *answer)
{
    answer->kind = SNK_ANSWER_HELD;
    answer->token_first = lock->holder.tokens.first;
    answer->token_last = lock->holder.tokens.last;
}

static void answer_queued(snk_memory_table *table, const snk_memory_lock *lock, const snk_memory_claim *claim,
                          int64_t now_ns, snk_answer *answer)
{
    size_t index = snk_memory_word_of(&claim->id);
    answer->kind = SNK_ANSWER_QUEUED;
    answer->ticket = UINT64_C(1) << 63 | (uint64_t)index << 32 | atomic_load(&table->words[index]);
    /* Nobody but the lease ends a hold here without a word, so that is when to look at the latest. */
    int64_t remaining_ns = lock->holder.expires_at_ns - now_ns + SNK_NS_PER_MS;
    answer->look_after_ns = remaining_ns < claim->lease_ns / 3 ? remaining_ns : claim->lease_ns / 3;
}

static snk_memory_claim make_claim(const snk_memory *memory, const snk_claim *from, int64_t now_ns)
{
    snk_memory_claim claim = {
        .id = from->send.claim,
        .lease_ns = from->send.lease_ns,
        .since_ns = now_ns,
        .expires_at_ns = snk_time_add(now_ns, from->send.lease_ns),
        .tokens_asked = from->send.tokens,
        .fair = from->send.fair,
        .pid = memory->identity.pid,
    };
    (void)snprintf(claim.owner, sizeof claim.owner, "%s:%lld", memory->identity.uuid, (long long)from->thread);
    (void)snk_copy_text(claim.host, sizeof claim.host, memory->identity.host);
    (void)snk_copy_text(claim.why, sizeof claim.why, from->why == NULL ? "" : from->why);
    return claim;
}

static void fail_without_memory(snk_answer *answer)
{
    answer->kind = SNK_ANSWER_FAILED;
    (void)snk_fail(&answer->error, SNECK_NO_MEMORY, 0, "out of memory");
}

static bool append(snk_memory_lock *lock, const snk_memory_claim *claim)
{
    snk_memory_claim *queue = snk_array_with_room(lock->queue, lock->waiters, &lock->room, sizeof *queue);
    if (queue == NULL)
        return false;
    lock->queue = queue;
    queue[lock->waiters++] = *claim;
    return true;
}

static void do_acquire(snk_memory *memory, snk_memory_lock *lock, const snk_claim *asked, snk_answer *answer)
{
    int64_t now_ns = snk_now_ns();
    if (is_given_up(memory->table, &asked->send.claim, now_ns)) {
        answer->kind = SNK_ANSWER_GONE;
        return;
    }
    snk_memory_settle_locked(memory->table, lock, now_ns);
    snk_memory_claim claim = make_claim(memory, asked, now_ns);
    if (!lock->held) {
        grant(lock, &claim, now_ns, claim.lease_ns);
        answer_held(lock, answer);
    } else if (!asked->send.queue) {
        answer->kind = SNK_ANSWER_BUSY;
    } else if (append(lock, &claim)) {
        answer_queued(memory->table, lock, &claim, now_ns, answer);
    } else {
        fail_without_memory(answer);
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
    size_t index = find_queued(lock, &send->claim);
    if (is_holder(lock, &send->claim)) {
        refresh(&lock->holder, now_ns, send->lease_ns);
        answer_held(lock, answer);
    } else if (index < lock->waiters) {
        refresh(&lock->queue[index], now_ns, send->lease_ns);
        answer_queued(memory->table, lock, &lock->queue[index], now_ns, answer);
    } else {
        answer->kind = SNK_ANSWER_GONE;
    }
}

static bool leave_tombstone(snk_memory_table *table, const snk_send *send)
{
    snk_memory_tombstone *tombstones =
        snk_array_with_room(table->tombstones, table->tombstone_count, &table->tombstone_room, sizeof *tombstones);
    if (tombstones == NULL)
        return false;
    table->tombstones = tombstones;
    int64_t life_ns = send->lease_ns > SNK_TOMBSTONE_NS ? send->lease_ns : SNK_TOMBSTONE_NS;
    tombstones[table->tombstone_count++] = (snk_memory_tombstone){
        .claim = send->claim,
        .expires_at_ns = snk_time_add(snk_now_ns(), life_ns),
    };
    return true;
}

static void do_release(snk_memory *memory, snk_memory_lock *lock, const snk_send *send, snk_answer *answer)
{
    if (send->unanswered && !leave_tombstone(memory->table, send)) {
        fail_without_memory(answer);
        return;
    }
    int64_t now_ns = snk_now_ns();
    snk_memory_settle_locked(memory->table, lock, now_ns);
    answer->kind = SNK_ANSWER_DONE;
    size_t index = find_queued(lock, &send->claim);
    if (is_holder(lock, &send->claim)) {
        lock->held = false;
        snk_memory_settle_locked(memory->table, lock, now_ns);
    } else if (index < lock->waiters) {
        remove_queued(lock, index);
    } else {
        answer->kind = SNK_ANSWER_GONE;
    }
}

void snk_memory_do_locked(snk_memory *memory, const snk_claim *claim, snk_answer *answer)
{
    *answer = (snk_answer){ .kind = SNK_ANSWER_FAILED };
    char full_name[SNK_FULL_NAME_SIZE];
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
