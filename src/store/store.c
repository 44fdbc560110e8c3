#include "store/store.h"

#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "base/futex.h"
#include "base/limits.h"
#if SNK_WITH_MYSQL
#include "store/mysql/mysql_store.h"
#endif
#if SNK_WITH_POSTGRES
#include "store/postgres/options.h"
#include "store/postgres/statements.h"
#endif
#include "store/quorum/options.h"
#include "store/redis/options.h"

typedef struct scheme {
    const char *name;
    sneck_status (*open)(const snk_store_config *config, snk_store **store_out, sneck_error *error);
    const char *const *keys; /* of its own, beside those that every store has; ends with NULL */
    sneck_status (*setup)(const snk_store_config *config, sneck_error *error); /* NULL: it needs none */
    const char *setup_text;
} scheme;

#if !SNK_WITH_POSTGRES
static sneck_status refuse_postgres(const snk_store_config *config, snk_store **store_out, sneck_error *error)
{
    (void)config;
    *store_out = NULL;
    return snk_fail(error, SNECK_UNSUPPORTED, 0, "this sneck was built without PostgreSQL: it needs libpq when built");
}
#endif

#if !SNK_WITH_MYSQL
static sneck_status refuse_mysql(const snk_store_config *config, snk_store **store_out, sneck_error *error)
{
    (void)config;
    *store_out = NULL;
    return snk_fail(error, SNECK_UNSUPPORTED, 0,
                    "this sneck was built without MariaDB: it needs libmariadb when built");
}
#endif

static const char *const no_keys[] = { NULL };
static const char *const sqlite_keys[] = { "file_mode", NULL };
static const char *const zookeeper_keys[] = { "session", "timeout", NULL };

#if !SNK_HAS_ZOOKEEPER
sneck_status snk_zk_store_open(const snk_store_config *config, snk_store **store_out, sneck_error *error)
{
    (void)config;
    *store_out = NULL;
    return snk_fail(error, SNECK_UNSUPPORTED, 0, "zk: this sneck was built without libzookeeper");
}
#endif

static const scheme schemes[] = {
    { .name = "redis", .open = snk_redis_store_open, .keys = snk_redis_keys },
    { .name = "rediss", .open = snk_redis_store_open, .keys = snk_redis_keys },
    { .name = "redis+unix", .open = snk_redis_store_open, .keys = snk_redis_keys },
    { .name = "redis+sentinel", .open = snk_redis_store_open, .keys = snk_redis_sentinel_keys },
    { .name = "rediss+sentinel", .open = snk_redis_store_open, .keys = snk_redis_sentinel_keys },
    { .name = "redis-sentinel", .open = snk_redis_store_open, .keys = snk_redis_lettuce_keys },
    { .name = "rediss-sentinel", .open = snk_redis_store_open, .keys = snk_redis_lettuce_keys },
    { .name = "redis+replicated", .open = snk_redis_store_open, .keys = snk_redis_keys },
    { .name = "rediss+replicated", .open = snk_redis_store_open, .keys = snk_redis_keys },
    { .name = "redis+cluster", .open = snk_redis_store_open, .keys = snk_redis_keys },
    { .name = "rediss+cluster", .open = snk_redis_store_open, .keys = snk_redis_keys },
    { .name = "redlock", .open = snk_quorum_store_open, .keys = snk_quorum_keys },
    { .name = "redlocks", .open = snk_quorum_store_open, .keys = snk_quorum_keys },
#if SNK_WITH_POSTGRES
    { .name = "postgres",
      .open = snk_postgres_open,
      .keys = snk_pg_keys,
      .setup = snk_postgres_setup,
      .setup_text = snk_pg_schema_text },
    { .name = "postgresql",
      .open = snk_postgres_open,
      .keys = snk_pg_keys,
      .setup = snk_postgres_setup,
      .setup_text = snk_pg_schema_text },
#else
    { .name = "postgres", .open = refuse_postgres },
    { .name = "postgresql", .open = refuse_postgres },
#endif
#if SNK_WITH_MYSQL
    { .name = "mysql",
      .open = snk_mysql_open,
      .keys = snk_my_keys,
      .setup = snk_mysql_setup,
      .setup_text = snk_my_schema_text },
#else
    { .name = "mysql", .open = refuse_mysql },
#endif
    { .name = "sqlite", .open = snk_sqlite_open, .keys = sqlite_keys },
    { .name = "zk", .open = snk_zk_store_open, .keys = zookeeper_keys },
    { .name = "memory", .open = snk_memory_open, .keys = no_keys },
};

static const scheme *find_scheme(const char *name)
{
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (strcmp(schemes[i].name, name) == 0)
            return &schemes[i];
    }
    return NULL;
}

const char *const *snk_store_keys(const char *scheme_name)
{
    const scheme *found = find_scheme(scheme_name);
    return found == NULL ? NULL : found->keys;
}

static sneck_status refuse_scheme(const char *name, sneck_error *error)
{
    return snk_fail(
        error, SNECK_UNSUPPORTED, 0,
        "there is no store \"%.40s:\"; known are sqlite:, redis:, redlock:, postgres:, mysql:, zk: and memory:", name);
}

sneck_status snk_store_open(const snk_store_config *config, snk_store **store_out, sneck_error *error)
{
    *store_out = NULL;
    const scheme *found = find_scheme(config->url->scheme);
    return found == NULL ? refuse_scheme(config->url->scheme, error) : found->open(config, store_out, error);
}

sneck_status snk_store_setup(const snk_store_config *config, bool *needed_out, sneck_error *error)
{
    snk_store *store = NULL;
    const scheme *found = find_scheme(config->url->scheme);
    *needed_out = found != NULL && found->setup != NULL;
    if (found == NULL)
        return refuse_scheme(config->url->scheme, error);
    if (found->setup != NULL)
        return found->setup(config, error);
    sneck_status status = found->open(config, &store, error);
    if (status == SNECK_OK)
        store->ops->close(store);
    return status;
}

const char *snk_store_setup_text(const char *scheme_name)
{
    const scheme *found = find_scheme(scheme_name);
    return found == NULL ? NULL : found->setup_text;
}

void snk_store_submit(snk_store *store, snk_call *call)
{
    call->store = store;
    store->ops->submit(store, call);
}

/* What a thread in snk_store_ask waits for. */
enum {
    NOT_ANSWERED,
    ASLEEP, /* not answered, and the asker may sleep: wake it */
    ANSWERED
};

static void note_answered(snk_call *call)
{
    _Atomic uint32_t *progress = call->context;
    if (atomic_exchange(progress, ANSWERED) == ASLEEP)
        snk_futex_wake(progress, 1, false);
}

void snk_store_ask(snk_store *store, const snk_claim *claim, snk_answer *answer_out)
{
    _Atomic uint32_t progress = NOT_ANSWERED;
    snk_call call = { .claims = claim, .answers = answer_out, .count = 1, .done = note_answered, .context = &progress };
    /* The call borrows this stack frame, so the thread must not be cancelled away from under it. */
    int cancel_state = PTHREAD_CANCEL_ENABLE;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    snk_store_submit(store, &call);
    uint32_t before = NOT_ANSWERED;
    (void)atomic_compare_exchange_strong(&progress, &before, ASLEEP);
    while (atomic_load(&progress) == ASLEEP)
        (void)snk_futex_wait_any(&(snk_futex_word){ .word = &progress, .expected = ASLEEP }, 1, SNK_NEVER_NS);
    (void)pthread_setcancelstate(cancel_state, NULL);
}
