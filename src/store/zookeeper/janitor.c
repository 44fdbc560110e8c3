/*
 * A thread that ends claims whose lease is over, by deleting their nodes, and keeps the session known to the leader
 * while there are claims: a follower tells the leader of a client's life only now and then, and the C client is silent
 * for a third of the session.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/zookeeper/node.h"

#define BATCH 32
#define TOUCHES_PER_SESSION 12
#define TOUCH_NS_MIN (100 * SNK_NS_PER_MS)
#define RETRY_NS (200 * SNK_NS_PER_MS)
/* An end that is noticed later than this was slept over: what is at the path now may be another's. */
#define LATE_NS SNK_NS_PER_S

static bool is_over(void *context, snk_zk_claim *claim)
{
    return claim->expires_at_ns <= *(const int64_t *)context;
}

/* The path of its node, to be freed; NULL: it has none, or it cannot be found now (`is_known_out` false). */
static char *path_of(snk_zk_store *store, snk_zk_claim *claim, bool *is_known_out)
{
    char *path = NULL;
    (void)pthread_mutex_lock(&store->table.mutex);
    uint64_t session = claim->session;
    if (claim->path != NULL)
        path = strdup(claim->path);
    *is_known_out = claim->path == NULL || path != NULL;
    bool has_path = claim->path != NULL;
    (void)pthread_mutex_unlock(&store->table.mutex);
    /* While its node is being made, whoever makes it finds that the claim is over, and deletes it. */
    int64_t owner = session == 0 ? 0 : snk_zk_session_id(store->link, session);
    if (has_path || owner == 0)
        return path;
    snk_zk_found found;
    *is_known_out =
        snk_zk_locate(store, claim->folder, &claim->id, owner, snk_zk_limit_ns(store), &found) == SNK_ZK_ANSWERED;
    return found.path;
}

/* What is known of a claim that is over; another thread may still be making its node. */
typedef struct ended {
    snk_zk_spot at;
    int64_t over_since_ns;
    bool held;
    uint64_t token;
} ended;

static ended end_of(snk_zk_store *store, const snk_zk_claim *claim)
{
    (void)pthread_mutex_lock(&store->table.mutex);
    ended end = {
        .at = { .session = claim->session, .czxid = claim->czxid },
        .over_since_ns = claim->expires_at_ns,
        .held = claim->held,
        .token = claim->token,
    };
    (void)pthread_mutex_unlock(&store->table.mutex);
    return end;
}

static snk_zk_outcome delete_node(snk_zk_store *store, const snk_zk_claim *claim, const ended *end)
{
    int64_t until_ns = snk_zk_limit_ns(store);
    int rc = ZOK;
    if (!end->held)
        return snk_zk_node_delete(store, &end->at, until_ns, &rc);
    sneck_incident incident = {
        .time_ms = snk_wall_us() / 1000,
        .kind = "expired",
        .token = end->token,
        .owner = claim->note.owner,
        .text = "the lease ended without a release",
    };
    return snk_zk_remove_noted(store, claim->folder, end->at.path, &incident, until_ns, &rc);
}

/* False: it could not be done now. */
static bool end_claim(snk_zk_store *store, snk_zk_claim *claim)
{
    bool is_known = true;
    if (claim->grip.mode == SNK_MODE_PASS)
        return true;
    ended end = end_of(store, claim);
    if (end.at.session != 0 && snk_zk_session_id(store->link, end.at.session) == 0)
        return true; /* its session is over, and its node went with it */
    char *path = path_of(store, claim, &is_known);
    end.at.path = path;
    snk_zk_outcome outcome = SNK_ZK_ANSWERED;
    bool is_late = snk_now_ns() - end.over_since_ns > LATE_NS;
    if (path != NULL && !(is_late && snk_zk_node_is_another(store, &end.at, snk_zk_limit_ns(store))))
        outcome = delete_node(store, claim, &end);
    free(path);
    return is_known && (outcome == SNK_ZK_ANSWERED || outcome == SNK_ZK_OTHER_SESSION);
}

/* True: some are left. */
static bool end_orphans(snk_zk_store *store)
{
    snk_link *link = NULL;
    bool went = true;
    (void)pthread_mutex_lock(&store->janitor_mutex);
    while (went && !store->closing && (link = snk_list_first(&store->orphans)) != NULL) {
        snk_zk_claim *claim = SNK_CONTAINER(link, snk_zk_claim, orphan);
        snk_list_remove(link);
        (void)pthread_mutex_unlock(&store->janitor_mutex);
        went = end_claim(store, claim);
        (void)pthread_mutex_lock(&store->janitor_mutex);
        if (went)
            snk_zk_claim_unref(claim);
        else
            snk_list_append(&store->orphans, &claim->orphan);
    }
    (void)pthread_mutex_unlock(&store->janitor_mutex);
    return !went;
}

static void end_those_that_are_over(snk_zk_store *store)
{
    snk_zk_claim *claims[BATCH];
    int64_t now_ns = snk_now_ns();
    size_t count = BATCH;
    while (count == BATCH) {
        count = snk_zk_table_choose(&store->table, is_over, &now_ns, true, claims, BATCH);
        for (size_t i = 0; i < count; i++)
            snk_zk_janitor_adopt(store, claims[i]);
    }
}

static int64_t touch_pause_ns(snk_zk_store *store)
{
    int64_t pause_ns = snk_zk_session_ns(store->link) / TOUCHES_PER_SESSION;
    return pause_ns > TOUCH_NS_MIN ? pause_ns : TOUCH_NS_MIN;
}

/* Sleeps until `until_ns`, or until it is called. False: the store is being closed. */
static bool sleep_until(snk_zk_store *store, int64_t until_ns)
{
    (void)pthread_mutex_lock(&store->janitor_mutex);
    while (!store->closing && !store->janitor_wanted) {
        int64_t left_ns = until_ns - snk_now_ns();
        if (left_ns <= 0)
            break;
        struct timespec until = snk_timespec(snk_clock_read_ns(CLOCK_MONOTONIC) + left_ns);
        (void)pthread_cond_timedwait(&store->janitor_called, &store->janitor_mutex, &until);
    }
    store->janitor_wanted = false;
    bool goes_on = !store->closing;
    (void)pthread_mutex_unlock(&store->janitor_mutex);
    return goes_on;
}

static void *run(void *context)
{
    snk_zk_store *store = context;
    int64_t touch_at_ns = 0;
    int64_t until_ns = 0;
    while (sleep_until(store, until_ns)) {
        /* Whoever has something for it while it looks around wakes it. */
        atomic_store(&store->janitor_until_ns, SNK_NEVER_NS);
        end_those_that_are_over(store);
        bool left = end_orphans(store);
        int64_t now_ns = snk_now_ns();
        if (now_ns >= touch_at_ns && !snk_zk_table_is_empty(&store->table)) {
            snk_zk_touch(store->link);
            touch_at_ns = now_ns + touch_pause_ns(store);
        }
        until_ns = snk_zk_table_next_end(&store->table);
        int64_t at_most_ns = now_ns + (left ? RETRY_NS : touch_pause_ns(store));
        if (until_ns > at_most_ns)
            until_ns = at_most_ns;
        atomic_store(&store->janitor_until_ns, until_ns);
    }
    return NULL;
}

void snk_zk_janitor_adopt(snk_zk_store *store, snk_zk_claim *claim)
{
    (void)pthread_mutex_lock(&store->janitor_mutex);
    snk_list_append(&store->orphans, &claim->orphan);
    store->janitor_wanted = true;
    (void)pthread_cond_signal(&store->janitor_called);
    (void)pthread_mutex_unlock(&store->janitor_mutex);
}

void snk_zk_janitor_expect(snk_zk_store *store, int64_t at_ns)
{
    if (at_ns >= atomic_load(&store->janitor_until_ns))
        return;
    (void)pthread_mutex_lock(&store->janitor_mutex);
    store->janitor_wanted = true;
    (void)pthread_cond_signal(&store->janitor_called);
    (void)pthread_mutex_unlock(&store->janitor_mutex);
}

bool snk_zk_janitor_start(snk_zk_store *store)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    store->janitor_started = pthread_create(&store->janitor, NULL, run, store) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return store->janitor_started;
}

void snk_zk_janitor_stop(snk_zk_store *store)
{
    if (store->janitor_started) {
        (void)pthread_mutex_lock(&store->janitor_mutex);
        store->closing = true;
        (void)pthread_cond_signal(&store->janitor_called);
        (void)pthread_mutex_unlock(&store->janitor_mutex);
        (void)pthread_join(store->janitor, NULL);
    }
    /* What is left goes with the session. */
    snk_link *link = NULL;
    while ((link = snk_list_take_first(&store->orphans)) != NULL) {
        snk_zk_claim_unref(SNK_CONTAINER(link, snk_zk_claim, orphan));
    }
}
