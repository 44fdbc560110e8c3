#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/zookeeper/claims.h"
#include "store/zookeeper/node.h"
#include "store/zookeeper/scene.h"

/* What was taken is used up: the count falls by it in the same transaction. */
static snk_zk_outcome use_up(snk_zk_store *store, const char *folder, const char *path, uint32_t units,
                             int64_t until_ns, int *rc_out)
{
    snk_zk_outcome outcome = SNK_ZK_ANSWERED;
    snk_zk_path count;
    snk_zk_below(folder, "count", count);
    *rc_out = ZBADVERSION;
    while (outcome == SNK_ZK_ANSWERED && *rc_out == ZBADVERSION) {
        snk_zk_scene scene;
        snk_zk_back back = { .flight = NULL };
        outcome = snk_zk_scene_read(store, folder, false, until_ns, &scene, rc_out);
        if (outcome == SNK_ZK_ANSWERED) {
            char text[32];
            (void)snprintf(text, sizeof text, "%lld\n", (long long)(scene.tally - units));
            snk_zk_trip trip = { .until_ns = until_ns };
            snk_zk_request *settle = &trip.requests[snk_zk_ask(&trip, SNK_ZK_SETTLE, count)];
            settle->data = text;
            settle->other = path;
            settle->version = scene.tally_stat.version;
            outcome = snk_zk_travel(store->link, &trip, &back);
            if (outcome == SNK_ZK_ANSWERED)
                *rc_out = back.replies[0].rc;
        }
        snk_zk_trip_end(&back);
        snk_zk_scene_end(&scene);
    }
    return outcome;
}

static snk_zk_outcome delete_node(const snk_zk_asked *asked, const char *folder, snk_zk_spot at, uint32_t units,
                                  int *rc_out)
{
    bool uses_up = asked->asked->grip.mode == SNK_MODE_TAKE && asked->asked->send.ends_hold && units > 0;
    if (uses_up)
        return use_up(asked->store, folder, at.path, units, asked->until_ns, rc_out);
    return snk_zk_node_delete(asked->store, &at, asked->until_ns, rc_out);
}

static void answer_released(const snk_zk_asked *asked, snk_zk_claim *claim, snk_zk_outcome outcome, int rc)
{
    bool is_gone = outcome == SNK_ZK_OTHER_SESSION || (outcome == SNK_ZK_ANSWERED && rc == ZNONODE);
    if (is_gone) {
        snk_zk_answer_gone(asked, claim);
    } else if (outcome != SNK_ZK_ANSWERED) {
        snk_zk_answer_failure(asked, outcome, true);
    } else if (rc != ZOK) {
        snk_zk_answer_refusal(asked, rc);
    } else {
        if (claim != NULL)
            (void)snk_zk_claim_remove(&asked->store->table, claim);
        asked->answer->kind = SNK_ANSWER_DONE;
    }
}

/* A claim of another client, or one that this one has forgotten. */
static void release_foreign(const snk_zk_asked *asked, const char *folder)
{
    snk_zk_found found;
    snk_zk_outcome outcome = snk_zk_locate(asked->store, folder, &asked->asked->send.claim, 0, asked->until_ns, &found);
    int rc = ZNONODE;
    if (outcome == SNK_ZK_ANSWERED && found.path != NULL)
        outcome = delete_node(asked, folder, (snk_zk_spot){ .path = found.path, .czxid = found.stat.czxid },
                              found.note.held_ms != 0 ? found.note.units : 0, &rc);
    answer_released(asked, NULL, outcome, rc);
    free(found.path);
}

static void release_own(const snk_zk_asked *asked, snk_zk_claim *claim)
{
    int rc = ZOK;
    if (claim->grip.mode == SNK_MODE_PASS) {
        bool was_in = snk_zk_claim_remove(&asked->store->table, claim);
        asked->answer->kind = was_in ? SNK_ANSWER_DONE : SNK_ANSWER_GONE;
        return;
    }
    if (!snk_zk_node_find(asked, claim))
        return;
    (void)pthread_mutex_lock(&asked->store->table.mutex);
    uint32_t units = claim->held ? claim->note.units : 0;
    (void)pthread_mutex_unlock(&asked->store->table.mutex);
    const snk_zk_spot at = { .path = claim->path, .session = claim->session, .czxid = claim->czxid };
    snk_zk_outcome outcome = delete_node(asked, claim->folder, at, units, &rc);
    answer_released(asked, claim, outcome, rc);
}

void snk_zk_release(const snk_zk_asked *asked)
{
    const snk_send *send = &asked->asked->send;
    snk_zk_store *store = asked->store;
    snk_zk_path folder;
    snk_zk_folder(store->root, store->prefix, snk_zk_mark(asked->asked->grip.object), asked->asked->name, folder);
    int64_t life_ns = send->lease_ns > SNK_TOMBSTONE_NS ? send->lease_ns : SNK_TOMBSTONE_NS;
    if (send->unanswered && !snk_zk_bury(&store->table, &send->claim, snk_time_add(snk_now_ns(), life_ns))) {
        snk_zk_answer_failure(asked, SNK_ZK_NO_MEMORY, true);
        return;
    }
    snk_zk_claim *claim = snk_zk_claim_find(&store->table, &send->claim);
    if (claim != NULL && strcmp(claim->folder, folder) == 0)
        release_own(asked, claim);
    else
        release_foreign(asked, folder);
    snk_zk_claim_unref(claim);
}
