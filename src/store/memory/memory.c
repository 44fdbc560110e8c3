#include "store/memory/memory.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "store/memory/table.h"

static void submit(snk_store *store, snk_call *call)
{
    snk_memory *memory = SNK_CONTAINER(store, snk_memory, base);
    pthread_mutex_lock(&memory->table->mutex);
    for (size_t i = 0; i < call->count; i++)
        snk_memory_do_locked(memory, &call->claims[i], &call->answers[i]);
    pthread_mutex_unlock(&memory->table->mutex);
    call->done(call);
}

/* True when the value of table.any was not reported yet; it is from now on. */
static bool take_any(snk_memory *memory, uint32_t value)
{
    return atomic_exchange(&memory->any_seen, value) != value;
}

static bool wait_for_news(snk_store *store, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected,
                          int64_t until_ns)
{
    snk_memory *memory = SNK_CONTAINER(store, snk_memory, base);
    snk_memory_table *table = memory->table;
    bool any = ticket == 0;
    _Atomic uint32_t *news = any ? &table->any : &table->words[(ticket >> 32) % SNK_MEMORY_WORDS];
    uint32_t known = any ? atomic_load(&memory->any_seen) : (uint32_t)ticket;
    int64_t now_ns = snk_now_ns();
    if (atomic_load(news) == known && atomic_load(word) == expected && now_ns < until_ns) {
        const snk_futex_word words[] = { { .word = word, .expected = expected }, { .word = news, .expected = known } };
        int64_t limit_ns = until_ns == SNK_NEVER_NS ? SNK_NEVER_NS : until_ns - now_ns;
        if (!snk_futex_wait_any(words, 2, limit_ns))
            (void)snk_futex_wait_any(words, 1, limit_ns < SNK_NS_PER_MS ? limit_ns : SNK_NS_PER_MS);
    }
    uint32_t value = atomic_load(news);
    return any ? take_any(memory, value) : value != known;
}

static void free_table(snk_memory_table *table)
{
    for (size_t i = 0; i < SNK_MEMORY_BUCKETS; i++) {
        while (table->buckets[i] != NULL) {
            snk_memory_lock *lock = table->buckets[i];
            table->buckets[i] = lock->next;
            free(lock->holders.at);
            free(lock->queue.at);
            free(lock);
        }
    }
    free(table->tombstones);
    (void)pthread_mutex_destroy(&table->mutex);
    free(table);
}

static void close_view(snk_store *store)
{
    snk_memory *memory = SNK_CONTAINER(store, snk_memory, base);
    snk_memory_table *table = memory->table;
    pthread_mutex_lock(&table->mutex);
    bool last = --table->views == 0;
    pthread_mutex_unlock(&table->mutex);
    if (last)
        free_table(table);
    free(memory);
}

static void abandon(snk_store *store)
{
    /* A mutex that some thread of the parent had locked stays locked here: the table is left as it is. */
    free(SNK_CONTAINER(store, snk_memory, base));
}

static const snk_store_ops memory_ops = {
    .scheme = "memory",
    .submit = submit,
    .wait = wait_for_news,
    .inspect = snk_memory_inspect,
    .list = snk_memory_list,
    .break_hold = snk_memory_break,
    .tally = snk_memory_tally,
    .version = snk_memory_version,
    .close = close_view,
    .abandon = abandon,
};

static snk_memory *new_view(snk_memory_table *table, const snk_identity *identity, const char *prefix)
{
    snk_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL)
        return NULL;
    memory->base.ops = &memory_ops;
    memory->base.traits = (snk_store_traits){
        .tokens = SNK_TOKEN_TIME_FLOORED,
        .token_blocks = true,
        .pushes_wakeups = true,
        .modes = SNK_MODES_ALL,
        .keeps_versions = true,
    };
    memory->table = table;
    memory->identity = *identity;
    atomic_store(&memory->any_seen, atomic_load(&table->any));
    (void)snk_copy_text(memory->prefix, sizeof memory->prefix, prefix);
    return memory;
}

sneck_status snk_memory_open(const snk_store_config *config, snk_store **store_out, sneck_error *error)
{
    *store_out = NULL;
    snk_memory_table *table = calloc(1, sizeof *table);
    snk_memory *memory = table == NULL ? NULL : new_view(table, &config->identity, config->prefix);
    if (memory == NULL || pthread_mutex_init(&table->mutex, NULL) != 0) {
        free(memory);
        free(table);
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    }
    table->views = 1;
    *store_out = &memory->base;
    return snk_ok(error);
}

sneck_status snk_memory_share(snk_store *store, const snk_identity *identity, snk_store **store_out, sneck_error *error)
{
    *store_out = NULL;
    snk_memory *original = SNK_CONTAINER(store, snk_memory, base);
    snk_memory *memory = new_view(original->table, identity, original->prefix);
    if (memory == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    pthread_mutex_lock(&original->table->mutex);
    original->table->views++;
    pthread_mutex_unlock(&original->table->mutex);
    *store_out = &memory->base;
    return snk_ok(error);
}
