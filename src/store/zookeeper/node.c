#include "store/zookeeper/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/zookeeper/scene.h"

snk_zk_outcome snk_zk_locate(snk_zk_store *store, const char *folder, const snk_id *id, int64_t owner, int64_t until_ns,
                             snk_zk_found *found_out)
{
    found_out->path = NULL;
    int rc = ZOK;
    snk_zk_scene scene;
    snk_zk_outcome outcome = snk_zk_scene_read(store, folder, false, until_ns, &scene, &rc);
    for (size_t i = 0; i < scene.count && outcome == SNK_ZK_ANSWERED; i++) {
        const snk_zk_place *place = &scene.places[i];
        if (!snk_id_equal(&place->note.claim, id) || (owner != 0 && place->stat.ephemeralOwner != owner))
            continue;
        snk_zk_path path;
        snk_zk_below(folder, place->node.name, path);
        *found_out = (snk_zk_found){ .path = strdup(path), .stat = place->stat, .note = place->note };
        if (found_out->path == NULL)
            outcome = SNK_ZK_NO_MEMORY;
        break;
    }
    snk_zk_scene_end(&scene);
    return outcome;
}

bool snk_zk_node_set(snk_zk_table *table, snk_zk_claim *claim, char *path, uint64_t session, int64_t czxid)
{
    (void)pthread_mutex_lock(&table->mutex);
    claim->path = path;
    claim->session = session;
    claim->czxid = czxid;
    bool is_in = !claim->gone;
    (void)pthread_mutex_unlock(&table->mutex);
    return is_in;
}

static _Atomic bool *expectation_of(snk_zk_store *store, const char *folder)
{
    uint32_t hash = UINT32_C(2166136261); /* FNV-1a */
    for (const char *byte = folder; *byte != '\0'; byte++)
        hash = (hash ^ (unsigned char)*byte) * UINT32_C(16777619);
    return &store->expects_wait[hash % SNK_ZK_EXPECTATIONS];
}

void snk_zk_expect_wait(snk_zk_store *store, const char *folder, bool waits)
{
    _Atomic bool *expectation = expectation_of(store, folder);
    if (atomic_load_explicit(expectation, memory_order_relaxed) != waits)
        atomic_store_explicit(expectation, waits, memory_order_relaxed);
}

bool snk_zk_expects_wait(snk_zk_store *store, const char *folder)
{
    return atomic_load_explicit(expectation_of(store, folder), memory_order_relaxed);
}

void snk_zk_node_describe(snk_zk_store *store, const snk_claim *asked, const char *folder, snk_zk_note *note)
{
    bool counts = asked->grip.mode == SNK_MODE_PERMIT || asked->grip.mode == SNK_MODE_TAKE;
    bool waits = asked->grip.mode == SNK_MODE_EXCLUSIVE && snk_zk_expects_wait(store, folder);
    *note = (snk_zk_note){
        .claim = asked->send.claim,
        .pid = store->identity.pid,
        .lease_ms = asked->send.lease_ns / SNK_NS_PER_MS,
        .units = asked->grip.units,
        .fair = asked->send.fair,
        /* Who comes to a free lock has it at once, and most do; but who waited the last time will most likely wait. */
        .held_ms = counts || waits ? 0 : snk_wall_us() / 1000,
    };
    (void)snprintf(note->owner, sizeof note->owner, "%s:%lld", store->identity.uuid, (long long)asked->thread);
    (void)snk_copy_text(note->host, sizeof note->host, store->identity.host);
    (void)snk_copy_text(note->why, sizeof note->why, asked->why == NULL ? "" : asked->why);
}

static int64_t lease_ms_locked(const snk_zk_asked *asked, const snk_zk_claim *claim)
{
    int64_t left_ns = claim->expires_at_ns - snk_now_ns();
    int64_t lease_ns = asked->asked->send.lease_ns;
    return (left_ns > lease_ns ? left_ns : lease_ns) / SNK_NS_PER_MS;
}

void snk_zk_node_holds(const snk_zk_asked *asked, snk_zk_claim *claim, uint32_t units)
{
    (void)pthread_mutex_lock(&asked->store->table.mutex);
    if (claim->note.held_ms == 0)
        claim->note.held_ms = snk_wall_us() / 1000;
    claim->note.lease_ms = lease_ms_locked(asked, claim);
    claim->note.token = claim->token;
    if (units > 0)
        claim->note.units = units;
    (void)pthread_mutex_unlock(&asked->store->table.mutex);
}

void snk_zk_node_waits(const snk_zk_asked *asked, snk_zk_claim *claim)
{
    (void)pthread_mutex_lock(&asked->store->table.mutex);
    claim->note.held_ms = 0;
    claim->note.lease_ms = lease_ms_locked(asked, claim);
    (void)pthread_mutex_unlock(&asked->store->table.mutex);
}

size_t snk_zk_node_ask(snk_zk_trip *trip, const snk_zk_claim *claim, char text[SNK_ZK_NOTE_SIZE])
{
    snk_zk_note_write(&claim->note, text);
    size_t index = snk_zk_ask(trip, SNK_ZK_SET, claim->path);
    trip->requests[index].data = text;
    return index;
}

bool snk_zk_node_is_another(snk_zk_store *store, const snk_zk_spot *at, int64_t until_ns)
{
    snk_zk_trip trip = { .until_ns = until_ns, .session = at->session };
    (void)snk_zk_ask(&trip, SNK_ZK_STAT, at->path);
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_insist(store, &trip, &back);
    bool is_another = outcome == SNK_ZK_ANSWERED && back.replies[0].rc == ZOK && at->czxid != 0 &&
                      back.replies[0].stat.czxid != at->czxid;
    snk_zk_trip_end(&back);
    return is_another;
}

snk_zk_outcome snk_zk_node_delete(snk_zk_store *store, const snk_zk_spot *at, int64_t until_ns, int *rc_out)
{
    bool was_cut = false;
    for (;;) {
        snk_zk_trip trip = { .until_ns = until_ns, .session = at->session };
        (void)snk_zk_ask(&trip, SNK_ZK_DELETE, at->path);
        snk_zk_back back;
        snk_zk_outcome outcome = snk_zk_travel(store->link, &trip, &back);
        if (outcome == SNK_ZK_ANSWERED)
            *rc_out = back.replies[0].rc;
        snk_zk_trip_end(&back);
        if (outcome == SNK_ZK_ANSWERED && *rc_out == ZNONODE && was_cut)
            *rc_out = ZOK;
        if (outcome == SNK_ZK_NOT_SENT && was_cut)
            return SNK_ZK_CUT;
        if (outcome != SNK_ZK_CUT || snk_now_ns() >= until_ns)
            return outcome;
        was_cut = true;
        if (snk_zk_node_is_another(store, at, until_ns)) {
            *rc_out = ZOK;
            return SNK_ZK_ANSWERED;
        }
    }
}

void snk_zk_node_withdraw(const snk_zk_asked *asked, snk_zk_claim *claim)
{
    int rc = ZOK;
    const snk_zk_spot at = { .path = claim->path, .session = claim->session, .czxid = claim->czxid };
    snk_zk_outcome outcome = snk_zk_node_delete(asked->store, &at, asked->until_ns, &rc);
    bool is_deleted = outcome == SNK_ZK_ANSWERED || outcome == SNK_ZK_OTHER_SESSION;
    (void)snk_zk_claim_remove(&asked->store->table, claim);
    if (is_deleted)
        return;
    (void)atomic_fetch_add(&claim->owners, 1);
    snk_zk_janitor_adopt(asked->store, claim);
}

bool snk_zk_node_find(const snk_zk_asked *asked, snk_zk_claim *claim)
{
    if (claim->path != NULL)
        return true;
    snk_zk_found found = { .path = NULL };
    uint64_t session = claim->session;
    int64_t owner = snk_zk_session_id(asked->store->link, session);
    snk_zk_outcome outcome = SNK_ZK_ANSWERED;
    /* Of a session that is over there is no node. */
    if (owner != 0)
        outcome = snk_zk_locate(asked->store, claim->folder, &claim->id, owner, asked->until_ns, &found);
    if (outcome != SNK_ZK_ANSWERED) {
        snk_zk_answer_failure(asked, outcome, false);
        return false;
    }
    if (found.path == NULL) {
        snk_zk_answer_gone(asked, claim);
        return false;
    }
    (void)snk_zk_node_set(&asked->store->table, claim, found.path, session, found.stat.czxid);
    return true;
}
