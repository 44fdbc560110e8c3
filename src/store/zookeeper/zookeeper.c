#include "store/zookeeper/zookeeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/settings.h"
#include "store/zookeeper/options.h"
#include "store/zookeeper/standing.h"

/* ---- What trips mean ---- */

sneck_status snk_zk_failure(snk_zk_store *store, snk_zk_outcome outcome, bool changes, sneck_error *error)
{
    switch (outcome) {
    case SNK_ZK_NO_MEMORY:
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    case SNK_ZK_CUT:
        if (changes)
            return snk_fail(error, SNECK_UNKNOWN, 0, "%s did not answer: it may have happened", store->where);
        break;
    case SNK_ZK_ANSWERED:
    case SNK_ZK_NOT_SENT:
    case SNK_ZK_OTHER_SESSION:
        break;
    }
    return snk_fail(error, SNECK_UNAVAILABLE, 0, "%s %s", store->where, snk_zk_trouble(store->link));
}

sneck_status snk_zk_refusal(snk_zk_store *store, int rc, sneck_error *error)
{
    sneck_status status = SNECK_UNAVAILABLE;
    if (rc == ZNOAUTH || rc == ZAUTHFAILED || rc == ZINVALIDACL)
        status = SNECK_DENIED;
    else if (rc == ZBADARGUMENTS)
        status = SNECK_INVALID;
    else if (rc == ZSYSTEMERROR)
        status = SNECK_NO_MEMORY;
    return snk_fail(error, status, rc, "%s: %s", store->where, zerror(rc));
}

int64_t snk_zk_limit_ns(const snk_zk_store *store)
{
    return snk_time_add(snk_now_ns(), store->timeout_ns);
}

snk_zk_outcome snk_zk_insist(snk_zk_store *store, const snk_zk_trip *trip, snk_zk_back *back)
{
    snk_zk_outcome outcome = snk_zk_travel(store->link, trip, back);
    bool was_cut = false;
    while (outcome == SNK_ZK_CUT && snk_now_ns() < trip->until_ns) {
        was_cut = true;
        snk_zk_trip_end(back);
        outcome = snk_zk_travel(store->link, trip, back);
    }
    return outcome == SNK_ZK_NOT_SENT && was_cut ? SNK_ZK_CUT : outcome;
}

int64_t snk_zk_lease_max_ns(snk_zk_store *store)
{
    int64_t session_ns = snk_zk_session_ns(store->link);
    if (session_ns == 0)
        return 0;
    int64_t left_ns = session_ns - SNK_ZK_SESSION_MARGIN_NS;
    return left_ns <= 0 ? 1 : left_ns / 11 * 10;
}

/* ---- Folders ---- */

/* Makes the root, a node for each part of it. */
static snk_zk_outcome make_root(snk_zk_store *store, int64_t until_ns, int *rc_out)
{
    snk_zk_outcome outcome = SNK_ZK_ANSWERED;
    *rc_out = ZOK;
    for (size_t length = 1; outcome == SNK_ZK_ANSWERED && *rc_out == ZOK; length++) {
        char part[SNK_ZK_ROOT_LENGTH_MAX + 1];
        if (store->root[length] != '/' && store->root[length] != '\0')
            continue;
        memcpy(part, store->root, length);
        part[length] = '\0';
        snk_zk_trip trip = { .until_ns = until_ns };
        (void)snk_zk_ask(&trip, SNK_ZK_MAKE, part);
        snk_zk_back back;
        outcome = snk_zk_insist(store, &trip, &back);
        if (outcome == SNK_ZK_ANSWERED)
            *rc_out = back.replies[0].rc;
        snk_zk_trip_end(&back);
        if (store->root[length] == '\0')
            break;
    }
    return outcome;
}

static snk_zk_outcome make(snk_zk_store *store, snk_zk_verb verb, const char *folder, int64_t until_ns, int *rc_out)
{
    snk_zk_trip trip = { .until_ns = until_ns };
    (void)snk_zk_ask(&trip, verb, folder);
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_insist(store, &trip, &back);
    if (outcome == SNK_ZK_ANSWERED)
        *rc_out = back.replies[0].rc;
    snk_zk_trip_end(&back);
    return outcome;
}

snk_zk_outcome snk_zk_make_folder(snk_zk_store *store, const char *folder, int64_t until_ns, int *rc_out)
{
    snk_zk_verb verb = SNK_ZK_MAKE_CONTAINER;
    snk_zk_outcome outcome = make(store, verb, folder, until_ns, rc_out);
    /* A server before 3.5 has no containers; there, folders stay. */
    if (outcome == SNK_ZK_ANSWERED && *rc_out == ZUNIMPLEMENTED) {
        verb = SNK_ZK_MAKE;
        outcome = make(store, verb, folder, until_ns, rc_out);
    }
    if (outcome != SNK_ZK_ANSWERED || *rc_out != ZNONODE)
        return outcome;
    outcome = make_root(store, until_ns, rc_out);
    if (outcome != SNK_ZK_ANSWERED || *rc_out != ZOK)
        return outcome;
    return make(store, verb, folder, until_ns, rc_out);
}

/* ---- News ---- */

#define NEWS_BATCH 32
/* How long the question may take that makes a grant of news; without an answer by then, who waits asks itself. */
#define GRANT_NS (100 * SNK_NS_PER_MS)

static bool is_watching(void *context, snk_zk_claim *claim)
{
    const snk_zk_fired *fired = context;
    bool is_its_own = claim->watched != NULL && strcmp(claim->watched, fired->path) == 0;
    bool is_other = claim->watched_too != NULL && strcmp(claim->watched_too, fired->path) == 0;
    if (claim->held || !(is_its_own || is_other))
        return false;
    claim->gone_on = fired->has_gone ? fired->connection : 0;
    /* After a reconnect nothing is told but that it has gone, not what stood in its place before it went. */
    if (claim->is_next && fired->has_gone && (claim->next_on == 0 || claim->next_on == fired->connection))
        snk_zk_claim_let_in_locked(claim);
    /* A watch fires once. */
    free(claim->watched);
    free(claim->watched_too);
    claim->watched = NULL;
    claim->watched_too = NULL;
    return true;
}

static void tell(snk_zk_store *store, snk_zk_claim *claims[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        snk_bell_ring(&store->bell, claims[i]->name, &claims[i]->id);
        snk_zk_claim_unref(claims[i]);
    }
}

/* Whether the list shows that the claim stands first; asked for those that did not know who else was before them. */
static bool stands_first(snk_zk_store *store, snk_zk_claim *claim)
{
    snk_zk_standing standing = { .is_let_in = false };
    snk_zk_trip trip = { .until_ns = snk_time_add(snk_now_ns(), GRANT_NS), .session = claim->session };
    (void)snk_zk_ask(&trip, SNK_ZK_LIST, claim->folder);
    snk_zk_back back;
    bool is_first = snk_zk_travel(store->link, &trip, &back) == SNK_ZK_ANSWERED && back.replies[0].rc == ZOK &&
                    snk_zk_stand_in(claim, &back.replies[0], &standing) && standing.is_let_in;
    snk_zk_trip_end(&back);
    (void)pthread_mutex_lock(&store->table.mutex);
    if (is_first)
        snk_zk_claim_let_in_locked(claim);
    (void)pthread_mutex_unlock(&store->table.mutex);
    return is_first;
}

/*
 * Whether the claim has the lock now, as an offer. That nobody stands before it stays true as long as its node is there,
 * whatever the server that says so has missed; and the node is there for longer than an offer lives after the write by
 * which the claim was entered or renewed, from which the client counts.
 */
static bool is_granted(snk_zk_store *store, snk_zk_claim *claim, bool has_gone, snk_grant *grant_out)
{
    (void)pthread_mutex_lock(&store->table.mutex);
    bool is_let_in = claim->is_let_in;
    (void)pthread_mutex_unlock(&store->table.mutex);
    *grant_out = (snk_grant){
        .claim = claim->id,
        .token_first = (uint64_t)claim->czxid,
        .token_last = (uint64_t)claim->czxid,
        .run = claim->session,
    };
    return has_gone && claim->grip.mode == SNK_MODE_EXCLUSIVE && (is_let_in || stands_first(store, claim));
}

static void on_watched(void *context, const snk_zk_fired *fired)
{
    snk_zk_store *store = context;
    snk_zk_fired copy = *fired;
    snk_zk_claim *claims[NEWS_BATCH];
    size_t count = NEWS_BATCH;
    while (count == NEWS_BATCH) {
        count = snk_zk_table_choose(&store->table, is_watching, &copy, false, claims, NEWS_BATCH);
        for (size_t i = 0; i < count; i++) {
            snk_grant grant;
            bool granted = is_granted(store, claims[i], fired->has_gone, &grant);
            snk_bell_ring_grant(&store->bell, claims[i]->name, &claims[i]->id, granted ? &grant : NULL);
            snk_zk_claim_unref(claims[i]);
        }
        if (count > 0)
            snk_zk_janitor_expect(store, snk_now_ns() + SNK_OFFER_NS);
    }
}

static bool waits(void *context, snk_zk_claim *claim)
{
    (void)context;
    return !claim->held && !claim->gone;
}

static void tell_link(snk_zk_store *store, bool is_up, const char *why)
{
    store->is_lost = !is_up;
    if (store->tell_link != NULL)
        store->tell_link(store->tell_link_context, is_up, why);
}

static void on_lost(void *context)
{
    tell_link(context, false, "the connection to ZooKeeper was lost");
}

/* Whatever was said while there was no connection may have been missed. */
static void on_connected(void *context)
{
    snk_zk_store *store = context;
    if (store->is_lost)
        tell_link(store, true, "");
    (void)pthread_mutex_lock(&store->table.mutex);
    size_t room = store->table.count;
    (void)pthread_mutex_unlock(&store->table.mutex);
    snk_zk_claim **claims = calloc(room + 1, sizeof(void *));
    if (claims == NULL)
        return; /* each of them looks on its own before long */
    tell(store, claims, snk_zk_table_choose(&store->table, waits, NULL, false, claims, room));
    free(claims);
}

static bool is_of_session(void *context, snk_zk_claim *claim)
{
    return claim->session == *(const uint64_t *)context && claim->session != 0;
}

/* The server said so: the nodes of that session are gone. */
static void on_expired(void *context, uint64_t session)
{
    snk_zk_store *store = context;
    snk_zk_claim *claims[NEWS_BATCH];
    size_t count = NEWS_BATCH;
    if (store->log != NULL)
        store->log(store->log_context, SNECK_LOG_WARNING, "event=zookeeper-session-expired");
    while (count == NEWS_BATCH) {
        count = snk_zk_table_choose(&store->table, is_of_session, &session, true, claims, NEWS_BATCH);
        tell(store, claims, count);
    }
}

/* Whoever waits is to hear of it at once. */
static bool is_waiting(void *context)
{
    snk_zk_store *store = context;
    return atomic_load(&store->table.waiting) > 0;
}

/* ---- The store ---- */

static bool wait_for_news(snk_store *base, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns)
{
    return snk_bell_wait(&snk_zk_store_of(base)->bell, ticket, word, expected, until_ns);
}

static void close_store(snk_store *base)
{
    snk_zk_store *store = snk_zk_store_of(base);
    snk_zk_janitor_stop(store);
    snk_zk_link_close(store->link);
    snk_zk_table_deinit(&store->table);
    (void)pthread_cond_destroy(&store->janitor_called);
    (void)pthread_mutex_destroy(&store->janitor_mutex);
    free(store);
}

static void abandon(snk_store *base)
{
    snk_zk_store *store = snk_zk_store_of(base);
    snk_zk_link_abandon(store->link);
    free(store);
}

static const snk_store_ops zookeeper_ops = {
    .scheme = "zk",
    .submit = snk_zk_submit,
    .wait = wait_for_news,
    .inspect = snk_zk_inspect,
    .list = snk_zk_list,
    .break_hold = snk_zk_break,
    .tally = snk_zk_tally,
    .version = snk_zk_version,
    .probe = snk_zk_probe,
    .describe = snk_zk_describe,
    .reconnect = snk_zk_reconnect,
    .close = close_store,
    .abandon = abandon,
};

static bool init_parts(snk_zk_store *store)
{
    pthread_condattr_t attributes;
    snk_list_init(&store->orphans);
    bool done = snk_zk_table_init(&store->table) && pthread_mutex_init(&store->janitor_mutex, NULL) == 0 &&
                pthread_condattr_init(&attributes) == 0;
    if (!done)
        return false;
    done = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
           pthread_cond_init(&store->janitor_called, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    return done;
}

static snk_zk_store *new_store(const snk_store_config *config, const snk_zk_options *options)
{
    snk_zk_store *store = calloc(1, sizeof *store);
    if (store == NULL || !init_parts(store)) {
        free(store);
        return NULL;
    }
    store->base.ops = &zookeeper_ops;
    store->base.traits = (snk_store_traits){
        .tokens = SNK_TOKEN_DURABLE,
        .modes = SNK_MODES_ALL,
        .lanes = SNK_TOGETHER_THREADS_MAX,
        .pushes_wakeups = true,
        .keeps_versions = true,
    };
    store->identity = config->identity;
    (void)snk_copy_text(store->prefix, sizeof store->prefix, config->prefix);
    (void)snk_copy_text(store->root, sizeof store->root, options->root);
    (void)snprintf(store->where, sizeof store->where, "zookeeper %.100s", options->hosts);
    store->timeout_ns = options->timeout_ns;
    store->bell.news = config->news;
    store->bell.news_context = config->news_context;
    store->log = config->log;
    store->log_context = config->log_context;
    store->tell_link = config->link;
    store->tell_link_context = config->link_context;
    return store;
}

/* So that a wrong address or password is said when the store is opened, not at the first lock. */
static sneck_status greet(snk_zk_store *store, sneck_error *error)
{
    int rc = ZOK;
    snk_zk_outcome outcome = make_root(store, snk_zk_limit_ns(store), &rc);
    if (outcome != SNK_ZK_ANSWERED)
        return snk_zk_failure(store, outcome, false, error);
    return rc == ZOK ? SNECK_OK : snk_zk_refusal(store, rc, error);
}

static sneck_status start(snk_zk_store *store, const snk_zk_options *options, sneck_error *error)
{
    snk_zk_config link = {
        .hosts = options->hosts,
        .login = options->login[0] == '\0' ? NULL : options->login,
        .session_ms = options->session_ms,
        .timeout_ns = options->timeout_ns,
        .listener = { .watched = on_watched,
                      .lost = on_lost,
                      .connected = on_connected,
                      .expired = on_expired,
                      .is_waiting = is_waiting,
                      .context = store },
    };
    sneck_status status = snk_zk_link_open(&link, &store->link, error);
    if (status == SNECK_OK)
        status = greet(store, error);
    if (status == SNECK_OK && !snk_zk_janitor_start(store))
        status = snk_fail(error, SNECK_NO_MEMORY, 0, "no thread for the ZooKeeper store");
    return status;
}

sneck_status snk_zk_store_open(const snk_store_config *config, snk_store **store_out, sneck_error *error)
{
    *store_out = NULL;
    snk_zk_options options;
    sneck_status status = snk_zk_options_load(&options, config, error);
    snk_zk_store *store = NULL;
    if (status == SNECK_OK) {
        store = new_store(config, &options);
        status = store == NULL ? snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory") : start(store, &options, error);
    }
    /* The password is the link's now, which needs it for the next session. */
    explicit_bzero(&options, sizeof options);
    if (status != SNECK_OK && store != NULL)
        close_store(&store->base);
    if (status != SNECK_OK)
        return status;
    *store_out = &store->base;
    return snk_ok(error);
}
