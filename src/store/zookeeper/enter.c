#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/zookeeper/claims.h"
#include "store/zookeeper/node.h"

/* The writer that a claim stands beside, if it does. */
typedef struct neighbour {
    char *path; /* owned; NULL: none */
    uint64_t token;
    char text[SNK_ZK_NOTE_SIZE]; /* what its node says; it is written again, so that who waits behind it is told */
} neighbour;

/* Where the replies of an acquire's trip are. */
typedef struct entrance {
    snk_zk_trip trip;
    size_t before; /* readers: the folder before the node is made */
    size_t enter;
    size_t after; /* readers: the folder then */
    size_t list;
    snk_zk_path stem;
    char text[SNK_ZK_NOTE_SIZE];
} entrance;

static void prepare(entrance *way, const snk_zk_asked *asked, snk_zk_claim *claim, const neighbour *beside)
{
    snk_mode mode = claim->grip.mode;
    way->trip = (snk_zk_trip){ .until_ns = asked->until_ns };
    snk_zk_note_write(&claim->note, way->text);
    if (mode == SNK_MODE_SHARED)
        way->before = snk_zk_ask(&way->trip, SNK_ZK_STAT, claim->folder);
    snk_zk_verb verb = mode == SNK_MODE_EXCLUSIVE ? SNK_ZK_ENTER_MARKED : SNK_ZK_ENTER;
    snk_zk_below(claim->folder, snk_zk_stem(mode), way->stem);
    if (beside->path != NULL) {
        /* It stands where the writer stands, before all who wait. */
        (void)snk_copy_text(way->stem + strlen(way->stem), sizeof way->stem - strlen(way->stem),
                            strchr(strrchr(beside->path, '/'), '-') + 1);
        verb = SNK_ZK_ENTER_BESIDE;
    }
    way->enter = snk_zk_ask(&way->trip, verb, way->stem);
    way->trip.requests[way->enter].data = way->text;
    way->trip.requests[way->enter].other = beside->path != NULL ? beside->path : claim->folder;
    way->trip.requests[way->enter].other_data = beside->text;
    if (mode == SNK_MODE_SHARED)
        way->after = snk_zk_ask(&way->trip, SNK_ZK_STAT, claim->folder);
    way->list = snk_zk_ask(&way->trip, SNK_ZK_LIST, claim->folder);
}

/* The last writer that came before a reader who is let in at once: what the folder's mark said just before or after. */
static uint64_t epoch_of(const entrance *way, const snk_zk_back *back, int64_t czxid)
{
    const snk_zk_reply *before = &back->replies[way->before];
    const snk_zk_reply *after = &back->replies[way->after];
    if (after->rc == ZOK && after->stat.mzxid < czxid)
        return (uint64_t)after->stat.mzxid;
    return before->rc == ZOK ? (uint64_t)before->stat.mzxid : (uint64_t)czxid;
}

/* The node is there: what does its place mean? */
static void begin(const snk_zk_asked *asked, snk_zk_claim *claim, const entrance *way, const snk_zk_back *back)
{
    snk_zk_standing standing;
    snk_mode mode = claim->grip.mode;
    const snk_zk_reply *list = &back->replies[way->list];
    if (snk_zk_is_buried(&asked->store->table, &claim->id)) {
        snk_zk_node_withdraw(asked, claim);
        asked->answer->kind = SNK_ANSWER_GONE;
        return;
    }
    bool by_list = mode == SNK_MODE_EXCLUSIVE || mode == SNK_MODE_SHARED;
    if (by_list && list->rc == ZOK && snk_zk_stand_in(claim, list, &standing)) {
        if (mode == SNK_MODE_SHARED && standing.is_let_in && claim->token == 0)
            claim->token = epoch_of(way, back, claim->czxid);
        if (mode == SNK_MODE_EXCLUSIVE)
            snk_zk_expect_wait(asked->store, claim->folder, !standing.is_let_in);
        /* Its node was made just now, which is a write. */
        if (snk_zk_queue_act(asked, claim, &standing, true) == SNK_ZK_DECIDED)
            return;
    }
    snk_zk_queue_look(asked, claim);
}

/*
 * The connection was cut while the node was made: is it there? What was sent before this is not executed any more after
 * it. False: it was not made and will not be, so it may be tried again.
 */
static bool recover(const snk_zk_asked *asked, snk_zk_claim *claim, uint64_t session)
{
    snk_zk_found found = { .path = NULL };
    snk_zk_outcome outcome = SNK_ZK_CUT;
    /* The library says that a connection is there only when the session goes on, so this is asked behind the request. */
    int64_t owner = snk_zk_session_id(asked->store->link, session);
    (void)snk_zk_node_set(&asked->store->table, claim, NULL, session, 0);
    if (owner != 0)
        outcome = snk_zk_locate(asked->store, claim->folder, &claim->id, owner, asked->until_ns, &found);
    bool is_over = owner == 0 || snk_zk_session_id(asked->store->link, session) != owner;
    if (outcome != SNK_ZK_ANSWERED && !is_over) {
        free(found.path);
        snk_zk_answer_failure(asked, SNK_ZK_CUT, true); /* the claim stays, for the chase that follows */
        return true;
    }
    if (found.path == NULL || is_over) {
        free(found.path);
        return false;
    }
    if (!snk_zk_node_set(&asked->store->table, claim, found.path, session, found.stat.czxid)) {
        snk_zk_node_withdraw(asked, claim);
        asked->answer->kind = SNK_ANSWER_GONE;
        return true;
    }
    snk_zk_queue_look(asked, claim);
    return true;
}

/* One try to make the node. True: decided; false: it was not made, perhaps because the folder is not there. */
static bool try_to_enter(const snk_zk_asked *asked, snk_zk_claim *claim, const neighbour *beside)
{
    entrance way;
    snk_zk_back back;
    prepare(&way, asked, claim, beside);
    snk_zk_outcome outcome = snk_zk_travel(asked->store->link, &way.trip, &back);
    bool has_entered = back.replies != NULL && back.replies[way.enter].rc == ZOK;
    int rc = back.replies == NULL ? ZOK : back.replies[way.enter].rc;
    bool decided = true;
    if (has_entered) {
        snk_zk_reply *entered = &back.replies[way.enter];
        char *path = entered->text;
        entered->text = NULL;
        if (snk_zk_node_set(&asked->store->table, claim, path, back.session, entered->stat.czxid))
            begin(asked, claim, &way, &back);
        else {
            snk_zk_node_withdraw(asked, claim);
            asked->answer->kind = SNK_ANSWER_GONE;
        }
    } else if (outcome == SNK_ZK_CUT) {
        decided = recover(asked, claim, back.session);
    } else if (outcome != SNK_ZK_ANSWERED) {
        (void)snk_zk_claim_remove(&asked->store->table, claim);
        snk_zk_answer_failure(asked, outcome, true);
    } else if (rc == ZNONODE && beside->path == NULL) {
        decided = false;
    } else {
        (void)snk_zk_claim_remove(&asked->store->table, claim);
        bool is_busy = beside->path != NULL && (rc == ZNONODE || rc == ZNODEEXISTS);
        if (is_busy)
            asked->answer->kind = SNK_ANSWER_BUSY;
        else
            snk_zk_answer_refusal(asked, rc);
    }
    snk_zk_trip_end(&back);
    return decided;
}

/* Of a writer that holds here. */
static void find_neighbour(const snk_zk_asked *asked, neighbour *found)
{
    *found = (neighbour){ .path = NULL };
    if (asked->asked->grip.mode != SNK_MODE_SHARED || snk_id_is_none(&asked->asked->grip.beside))
        return;
    snk_zk_claim *writer = snk_zk_claim_find(&asked->store->table, &asked->asked->grip.beside);
    if (writer == NULL)
        return;
    (void)pthread_mutex_lock(&asked->store->table.mutex);
    bool holds = writer->held && !writer->gone && writer->path != NULL && writer->grip.mode == SNK_MODE_EXCLUSIVE;
    if (holds)
        found->path = strdup(writer->path);
    found->token = writer->token;
    snk_zk_note_write(&writer->note, found->text);
    (void)pthread_mutex_unlock(&asked->store->table.mutex);
    snk_zk_claim_unref(writer);
}

void snk_zk_enter(const snk_zk_asked *asked, snk_zk_claim *claim)
{
    neighbour beside;
    find_neighbour(asked, &beside);
    claim->token = beside.token;
    for (int i = 0; i < SNK_ZK_LOOKS_MAX; i++) {
        if (try_to_enter(asked, claim, &beside)) {
            free(beside.path);
            return;
        }
        int rc = ZOK;
        snk_zk_outcome outcome = snk_zk_make_folder(asked->store, claim->folder, asked->until_ns, &rc);
        if (outcome == SNK_ZK_ANSWERED && rc == ZOK)
            continue;
        (void)snk_zk_claim_remove(&asked->store->table, claim);
        if (outcome == SNK_ZK_ANSWERED)
            snk_zk_answer_refusal(asked, rc);
        else
            snk_zk_answer_failure(asked, outcome, false);
        free(beside.path);
        return;
    }
    free(beside.path);
    (void)snk_zk_claim_remove(&asked->store->table, claim);
    snk_zk_answer_refusal(asked, ZNONODE);
}
