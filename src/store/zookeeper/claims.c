/* What can be done to claims: acquire, renew, release. Each is a trip or two, on the thread that asks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/zookeeper/scene.h"
#include "store/zookeeper/standing.h"

/* How often a queue that changes under a claim is looked at before it is left to the next look. */
#define LOOKS_MAX 8

typedef struct request {
    snk_zk_store *store;
    const snk_claim *asked;
    snk_answer *answer;
    int64_t until_ns;
    uint64_t ticket;
} request;

static int64_t wall_ms(void)
{
    return snk_wall_us() / 1000;
}

/* ---- Answers ---- */

static void answer_failure(const request *asked, snk_zk_outcome outcome, bool changes)
{
    sneck_status status = snk_zk_failure(asked->store, outcome, changes, &asked->answer->error);
    asked->answer->kind = status == SNECK_UNKNOWN ? SNK_ANSWER_UNCERTAIN : SNK_ANSWER_FAILED;
}

static void answer_refusal(const request *asked, int rc)
{
    (void)snk_zk_refusal(asked->store, rc, &asked->answer->error);
    asked->answer->kind = SNK_ANSWER_FAILED;
}

static void answer_gone(const request *asked, snk_zk_claim *claim)
{
    if (claim != NULL)
        (void)snk_zk_claim_remove(&asked->store->table, claim);
    asked->answer->kind = SNK_ANSWER_GONE;
}

/* The claim holds, for a full lease from now on; unless its time was over before the answer came. */
static void answer_held(const request *asked, snk_zk_claim *claim)
{
    snk_zk_table *table = &asked->store->table;
    if (!snk_zk_claim_prolong(table, claim, asked->asked->send.lease_ns)) {
        asked->answer->kind = SNK_ANSWER_GONE;
        return;
    }
    (void)pthread_mutex_lock(&table->mutex);
    claim->held = true;
    if (claim->token == 0)
        claim->token = (uint64_t)claim->czxid;
    asked->answer->token_first = claim->token;
    (void)pthread_mutex_unlock(&table->mutex);
    asked->answer->kind = SNK_ANSWER_HELD;
    asked->answer->token_last = asked->answer->token_first;
    asked->answer->units = claim->note.units;
}

/* ---- Nodes ---- */

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

/* False when the claim is over already: then its node is the caller's to delete. */
static bool set_node(snk_zk_table *table, snk_zk_claim *claim, char *path, uint64_t session, int64_t czxid)
{
    (void)pthread_mutex_lock(&table->mutex);
    claim->path = path;
    claim->session = session;
    claim->czxid = czxid;
    bool is_in = !claim->gone;
    (void)pthread_mutex_unlock(&table->mutex);
    return is_in;
}

static void make_note(const snk_zk_store *store, const snk_claim *asked, snk_zk_note *note)
{
    bool counts = asked->grip.mode == SNK_MODE_PERMIT || asked->grip.mode == SNK_MODE_TAKE;
    *note = (snk_zk_note){
        .claim = asked->send.claim,
        .pid = store->identity.pid,
        .lease_ms = asked->send.lease_ns / SNK_NS_PER_MS,
        .units = asked->grip.units,
        .fair = asked->send.fair,
        /* Who comes to a free lock has it at once, and most do. */
        .held_ms = counts ? 0 : wall_ms(),
    };
    (void)snprintf(note->owner, sizeof note->owner, "%s:%lld", store->identity.uuid, (long long)asked->thread);
    (void)snk_copy_text(note->host, sizeof note->host, store->identity.host);
    (void)snk_copy_text(note->why, sizeof note->why, asked->why == NULL ? "" : asked->why);
}

/* What others are shown never shrinks, either. */
static int64_t lease_to_note(const request *asked, snk_zk_claim *claim)
{
    (void)pthread_mutex_lock(&asked->store->table.mutex);
    int64_t left_ns = claim->expires_at_ns - snk_now_ns();
    (void)pthread_mutex_unlock(&asked->store->table.mutex);
    int64_t lease_ns = asked->asked->send.lease_ns;
    return (left_ns > lease_ns ? left_ns : lease_ns) / SNK_NS_PER_MS;
}

/* Adds a request that writes the claim's note. */
static size_t ask_note(snk_zk_trip *trip, const snk_zk_claim *claim, char text[SNK_ZK_NOTE_SIZE])
{
    snk_zk_note_write(&claim->note, text);
    size_t index = snk_zk_ask(trip, SNK_ZK_SET, claim->path);
    trip->requests[index].data = text;
    return index;
}

/* A claim that is of no use is deleted; if that fails, the janitor does it. */
static void withdraw(const request *asked, snk_zk_claim *claim)
{
    snk_zk_trip trip = { .until_ns = asked->until_ns, .session = claim->session };
    (void)snk_zk_ask(&trip, SNK_ZK_DELETE, claim->path);
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_insist(asked->store, &trip, &back);
    snk_zk_trip_end(&back);
    bool is_deleted = outcome == SNK_ZK_ANSWERED || outcome == SNK_ZK_OTHER_SESSION;
    (void)snk_zk_claim_remove(&asked->store->table, claim);
    if (is_deleted)
        return;
    (void)atomic_fetch_add(&claim->owners, 1);
    snk_zk_janitor_adopt(asked->store, claim);
}

/* ---- Standing in the queue ---- */

/* What came of writing that the claim holds. False: the list shows somebody before it. */
static bool after_entering(const request *asked, snk_zk_claim *claim, const snk_zk_back *back, bool has_list)
{
    const snk_zk_reply *noted = &back->replies[0];
    snk_zk_standing standing = { .is_let_in = true };
    if (noted->rc == ZNONODE || (noted->rc == ZOK && noted->stat.czxid != claim->czxid)) {
        answer_gone(asked, claim);
        return true;
    }
    if (noted->rc != ZOK) {
        answer_refusal(asked, noted->rc);
        return true;
    }
    if (has_list && (back->replies[1].rc != ZOK || !snk_zk_stand_in(claim, &back->replies[1], &standing)))
        return false;
    if (standing.is_let_in)
        answer_held(asked, claim);
    return standing.is_let_in;
}

/*
 * Lets the claim in: said by a write, so that a majority of servers knows of it. `must_check`: all that is known is that
 * the one before it has gone; who became a reader without a gap stands in its place. False: so it is.
 */
static bool enter_hold(const request *asked, snk_zk_claim *claim, uint32_t units, bool must_check)
{
    char text[SNK_ZK_NOTE_SIZE];
    if (claim->note.held_ms == 0)
        claim->note.held_ms = wall_ms();
    claim->note.lease_ms = lease_to_note(asked, claim);
    claim->note.token = claim->token;
    if (units > 0)
        claim->note.units = units;
    snk_zk_trip trip = { .until_ns = asked->until_ns, .session = claim->session };
    (void)ask_note(&trip, claim, text);
    if (must_check)
        (void)snk_zk_ask(&trip, SNK_ZK_LIST, claim->folder);
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_insist(asked->store, &trip, &back);
    bool decided = true;
    if (outcome == SNK_ZK_ANSWERED)
        decided = after_entering(asked, claim, &back, must_check);
    else if (outcome == SNK_ZK_OTHER_SESSION)
        answer_gone(asked, claim);
    else
        answer_failure(asked, outcome, true);
    snk_zk_trip_end(&back);
    return decided;
}

/* When to look at the latest: with the end of the first one's lease, unless that has been renewed by then. */
static int64_t look_after_ns(const request *asked, const snk_zk_reply *first)
{
    int64_t look_ns = asked->asked->send.lease_ns / 3;
    if (first->rc != ZOK)
        return look_ns;
    snk_zk_note note;
    snk_zk_note_read(first->text, &note);
    int64_t left_ms = note.lease_ms - (wall_ms() - first->stat.mtime);
    /* Of clocks that differ, or of a holder that is dead while its session is not. */
    if (left_ms <= 0 || left_ms > note.lease_ms)
        left_ms = note.lease_ms < 1000 ? note.lease_ms : 1000;
    int64_t left_ns = left_ms * SNK_NS_PER_MS + SNK_NS_PER_MS;
    return left_ns < look_ns ? left_ns : look_ns;
}

typedef enum progress {
    DECIDED,
    LOOK_AGAIN
} progress;

/* What came of writing that the claim waits, and of watching. */
static progress after_watching(const request *asked, snk_zk_claim *claim, const snk_zk_standing *standing,
                               const snk_zk_back *back)
{
    const snk_zk_reply *noted = &back->replies[0];
    const snk_zk_reply *first = &back->replies[1];
    if (noted->rc == ZNONODE || (noted->rc == ZOK && noted->stat.czxid != claim->czxid)) {
        answer_gone(asked, claim);
        return DECIDED;
    }
    if (noted->rc != ZOK) {
        answer_refusal(asked, noted->rc);
        return DECIDED;
    }
    if (!standing->watches_all) {
        const snk_zk_reply *watched = &back->replies[2];
        snk_zk_note note = { .held_ms = 0 };
        if (watched->rc == ZOK && standing->watches_data)
            snk_zk_note_read(watched->text, &note);
        if (watched->rc != ZOK || note.held_ms != 0)
            return LOOK_AGAIN; /* it went, or was let in, before it was watched */
        /* A reader's token is that of the writer before it. */
        if (claim->grip.mode == SNK_MODE_SHARED && back->replies[3].rc == ZOK)
            claim->token = (uint64_t)back->replies[3].stat.czxid;
    }
    if (!snk_zk_claim_prolong(&asked->store->table, claim, asked->asked->send.lease_ns)) {
        asked->answer->kind = SNK_ANSWER_GONE;
        return DECIDED;
    }
    asked->answer->kind = SNK_ANSWER_QUEUED;
    asked->answer->ticket = asked->ticket;
    asked->answer->look_after_ns = look_after_ns(asked, first);
    return DECIDED;
}

static progress wait_in_queue(const request *asked, snk_zk_claim *claim, const snk_zk_standing *standing)
{
    char text[SNK_ZK_NOTE_SIZE];
    snk_zk_path watch;
    snk_zk_path first;
    snk_zk_below(claim->folder, standing->watch, watch);
    snk_zk_below(claim->folder, standing->first, first);
    claim->note.held_ms = 0;
    claim->note.lease_ms = lease_to_note(asked, claim);
    snk_zk_trip trip = { .until_ns = asked->until_ns, .session = claim->session };
    (void)ask_note(&trip, claim, text);
    (void)snk_zk_ask(&trip, SNK_ZK_GET, first);
    if (!standing->watches_all) { /* else the queue is watched since before it was looked at */
        (void)snk_zk_ask(&trip, standing->watches_data ? SNK_ZK_GET_WATCH : SNK_ZK_LIST_WATCH, watch);
        (void)snk_zk_ask(&trip, SNK_ZK_STAT, watch);
        /* Before it leaves, because what is watched may go before the answer is here. */
        snk_zk_claim_watch(&asked->store->table, claim, watch, NULL, standing->is_next);
    }
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_insist(asked->store, &trip, &back);
    progress done = DECIDED;
    if (outcome == SNK_ZK_ANSWERED)
        done = after_watching(asked, claim, standing, &back);
    else if (outcome == SNK_ZK_OTHER_SESSION)
        answer_gone(asked, claim);
    else
        answer_failure(asked, outcome, true);
    snk_zk_trip_end(&back);
    return done;
}

/* What the claim's place means: it is let in, or waits, or gives up. `is_noted`: its node says already that it holds. */
static progress act_on(const request *asked, snk_zk_claim *claim, const snk_zk_standing *standing, bool is_noted)
{
    bool queues = asked->asked->send.ask == SNK_ASK_RENEW || asked->asked->send.queue;
    if (!standing->is_there) {
        answer_gone(asked, claim);
        return DECIDED;
    }
    if (standing->is_let_in && is_noted) {
        answer_held(asked, claim);
        return DECIDED;
    }
    if (standing->is_let_in) {
        (void)enter_hold(asked, claim, standing->units, false);
        return DECIDED;
    }
    if (queues)
        return wait_in_queue(asked, claim, standing);
    withdraw(asked, claim);
    asked->answer->kind = SNK_ANSWER_BUSY;
    return DECIDED;
}

/* Looks where the claim stands until something comes of it. */
static void look(const request *asked, snk_zk_claim *claim)
{
    snk_zk_path count;
    snk_zk_below(claim->folder, "count", count);
    for (int i = 0; i < LOOKS_MAX; i++) {
        snk_zk_standing standing;
        int rc = ZOK;
        bool counts = claim->grip.mode == SNK_MODE_PERMIT || claim->grip.mode == SNK_MODE_TAKE;
        if (counts)
            snk_zk_claim_watch(&asked->store->table, claim, claim->folder, count, false);
        snk_zk_outcome outcome = snk_zk_stand(asked->store, claim, asked->until_ns, &standing, &rc);
        if (outcome != SNK_ZK_ANSWERED) {
            answer_failure(asked, outcome, true);
            return;
        }
        if (rc != ZOK) {
            answer_refusal(asked, rc);
            return;
        }
        if (act_on(asked, claim, &standing, false) == DECIDED)
            return;
    }
    asked->answer->kind = SNK_ANSWER_QUEUED;
    asked->answer->ticket = asked->ticket;
    asked->answer->look_after_ns = SNK_NS_PER_MS;
}

/* ---- Acquire ---- */

/* Where the replies of an acquire's trip are. */
typedef struct entrance {
    snk_zk_trip trip;
    size_t before; /* readers: the folder before the node is made */
    size_t enter;
    size_t after; /* readers: the folder then */
    size_t list;
    size_t mine; /* beside: the node itself */
    snk_zk_path stem;
    char text[SNK_ZK_NOTE_SIZE];
} entrance;

static void prepare(entrance *way, const request *asked, snk_zk_claim *claim, const char *beside)
{
    snk_mode mode = claim->grip.mode;
    way->trip = (snk_zk_trip){ .until_ns = asked->until_ns };
    snk_zk_note_write(&claim->note, way->text);
    if (mode == SNK_MODE_SHARED)
        way->before = snk_zk_ask(&way->trip, SNK_ZK_STAT, claim->folder);
    snk_zk_verb verb = mode == SNK_MODE_EXCLUSIVE ? SNK_ZK_ENTER_MARKED : SNK_ZK_ENTER;
    snk_zk_below(claim->folder, snk_zk_stem(mode), way->stem);
    if (beside != NULL) {
        /* It stands where the writer stands, before all who wait. */
        (void)snk_copy_text(way->stem + strlen(way->stem), sizeof way->stem - strlen(way->stem),
                            strchr(strrchr(beside, '/'), '-') + 1);
        verb = SNK_ZK_ENTER_BESIDE;
    }
    way->enter = snk_zk_ask(&way->trip, verb, way->stem);
    way->trip.requests[way->enter].data = way->text;
    way->trip.requests[way->enter].other = beside != NULL ? beside : claim->folder;
    if (mode == SNK_MODE_SHARED)
        way->after = snk_zk_ask(&way->trip, SNK_ZK_STAT, claim->folder);
    way->list = snk_zk_ask(&way->trip, SNK_ZK_LIST, claim->folder);
    way->mine = way->enter;
    if (beside != NULL)
        way->mine = snk_zk_ask(&way->trip, SNK_ZK_STAT, way->stem);
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
static void begin(const request *asked, snk_zk_claim *claim, const entrance *way, const snk_zk_back *back)
{
    snk_zk_standing standing;
    snk_mode mode = claim->grip.mode;
    const snk_zk_reply *list = &back->replies[way->list];
    if (snk_zk_is_buried(&asked->store->table, &claim->id)) {
        withdraw(asked, claim);
        asked->answer->kind = SNK_ANSWER_GONE;
        return;
    }
    bool by_list = mode == SNK_MODE_EXCLUSIVE || mode == SNK_MODE_SHARED;
    if (by_list && list->rc == ZOK && snk_zk_stand_in(claim, list, &standing)) {
        if (mode == SNK_MODE_SHARED && standing.is_let_in && claim->token == 0)
            claim->token = epoch_of(way, back, claim->czxid);
        if (act_on(asked, claim, &standing, true) == DECIDED)
            return;
    }
    look(asked, claim);
}

/*
 * The connection was cut while the node was made: is it there? What was sent before this is not executed any more after
 * it. False: it was not made and will not be, so it may be tried again.
 */
static bool recover(const request *asked, snk_zk_claim *claim, uint64_t session)
{
    snk_zk_found found = { .path = NULL };
    snk_zk_outcome outcome = SNK_ZK_CUT;
    /* The library says that a connection is there only when the session goes on, so this is asked behind the request. */
    int64_t owner = snk_zk_session_id(asked->store->link, session);
    (void)set_node(&asked->store->table, claim, NULL, session, 0);
    if (owner != 0)
        outcome = snk_zk_locate(asked->store, claim->folder, &claim->id, owner, asked->until_ns, &found);
    bool is_over = owner == 0 || snk_zk_session_id(asked->store->link, session) != owner;
    if (outcome != SNK_ZK_ANSWERED && !is_over) {
        free(found.path);
        answer_failure(asked, SNK_ZK_CUT, true); /* the claim stays, for the chase that follows */
        return true;
    }
    if (found.path == NULL || is_over) {
        free(found.path);
        return false;
    }
    if (!set_node(&asked->store->table, claim, found.path, session, found.stat.czxid)) {
        withdraw(asked, claim);
        asked->answer->kind = SNK_ANSWER_GONE;
        return true;
    }
    look(asked, claim);
    return true;
}

/* One try to make the node. True: decided; false: it was not made, perhaps because the folder is not there. */
static bool try_to_enter(const request *asked, snk_zk_claim *claim, const char *beside)
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
        if (set_node(&asked->store->table, claim, path, back.session, back.replies[way.mine].stat.czxid))
            begin(asked, claim, &way, &back);
        else {
            withdraw(asked, claim);
            asked->answer->kind = SNK_ANSWER_GONE;
        }
    } else if (outcome == SNK_ZK_CUT) {
        decided = recover(asked, claim, back.session);
    } else if (outcome != SNK_ZK_ANSWERED) {
        (void)snk_zk_claim_remove(&asked->store->table, claim);
        answer_failure(asked, outcome, true);
    } else if (rc == ZNONODE && beside == NULL) {
        decided = false;
    } else {
        (void)snk_zk_claim_remove(&asked->store->table, claim);
        bool is_busy = beside != NULL && (rc == ZNONODE || rc == ZNODEEXISTS);
        if (is_busy)
            asked->answer->kind = SNK_ANSWER_BUSY;
        else
            answer_refusal(asked, rc);
    }
    snk_zk_trip_end(&back);
    return decided;
}

/* The node of the writer that a claim stands beside (to be freed) and its token; NULL: none that holds here. */
static char *beside_of(const request *asked, uint64_t *token_out)
{
    char *path = NULL;
    if (asked->asked->grip.mode != SNK_MODE_SHARED || snk_id_is_none(&asked->asked->grip.beside))
        return NULL;
    snk_zk_claim *writer = snk_zk_claim_find(&asked->store->table, &asked->asked->grip.beside);
    if (writer == NULL)
        return NULL;
    (void)pthread_mutex_lock(&asked->store->table.mutex);
    bool holds = writer->held && !writer->gone && writer->path != NULL && writer->grip.mode == SNK_MODE_EXCLUSIVE;
    if (holds)
        path = strdup(writer->path);
    *token_out = writer->token;
    (void)pthread_mutex_unlock(&asked->store->table.mutex);
    snk_zk_claim_unref(writer);
    return path;
}

static void enter(const request *asked, snk_zk_claim *claim)
{
    char *beside = beside_of(asked, &claim->token);
    for (int i = 0; i < LOOKS_MAX; i++) {
        if (try_to_enter(asked, claim, beside)) {
            free(beside);
            return;
        }
        int rc = ZOK;
        snk_zk_outcome outcome = snk_zk_make_folder(asked->store, claim->folder, asked->until_ns, &rc);
        if (outcome == SNK_ZK_ANSWERED && rc == ZOK)
            continue;
        (void)snk_zk_claim_remove(&asked->store->table, claim);
        if (outcome == SNK_ZK_ANSWERED)
            answer_refusal(asked, rc);
        else
            answer_failure(asked, outcome, false);
        free(beside);
        return;
    }
    free(beside);
    (void)snk_zk_claim_remove(&asked->store->table, claim);
    answer_refusal(asked, ZNONODE);
}

/* ---- Latches: those who wait need no node, as nobody waits for them ---- */

static void answer_pass(const request *asked, snk_zk_claim *claim, const snk_zk_reply *reply)
{
    if (reply->rc == ZNONODE || (reply->rc == ZOK && strtoll(reply->text, NULL, 10) == 0)) {
        claim->czxid = reply->rc == ZOK ? reply->stat.mzxid : 1;
        answer_held(asked, claim);
    } else if (reply->rc != ZOK) {
        answer_refusal(asked, reply->rc);
    } else if (asked->asked->send.ask == SNK_ASK_ACQUIRE && !asked->asked->send.queue) {
        asked->answer->kind = SNK_ANSWER_BUSY;
    } else if (!snk_zk_claim_prolong(&asked->store->table, claim, asked->asked->send.lease_ns)) {
        asked->answer->kind = SNK_ANSWER_GONE;
    } else {
        asked->answer->kind = SNK_ANSWER_QUEUED;
        asked->answer->ticket = asked->ticket;
        asked->answer->look_after_ns = asked->asked->send.lease_ns / 3;
    }
}

static void pass(const request *asked, snk_zk_claim *claim)
{
    snk_zk_path count;
    snk_zk_below(claim->folder, "count", count);
    snk_zk_trip trip = { .until_ns = asked->until_ns };
    (void)snk_zk_ask(&trip, SNK_ZK_SYNC, asked->store->root);
    (void)snk_zk_ask(&trip, SNK_ZK_GET_WATCH, count);
    snk_zk_claim_watch(&asked->store->table, claim, count, NULL, false);
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_insist(asked->store, &trip, &back);
    if (outcome == SNK_ZK_ANSWERED)
        answer_pass(asked, claim, &back.replies[1]);
    else
        answer_failure(asked, outcome, false);
    if (asked->asked->send.ask == SNK_ASK_ACQUIRE && asked->answer->kind != SNK_ANSWER_HELD &&
        asked->answer->kind != SNK_ANSWER_QUEUED)
        (void)snk_zk_claim_remove(&asked->store->table, claim);
    snk_zk_trip_end(&back);
}

static bool lease_is_too_long(const request *asked)
{
    int64_t longest_ns = snk_zk_lease_max_ns(asked->store);
    if (asked->asked->send.lease_ns <= longest_ns || longest_ns == 0)
        return false;
    (void)snk_fail(&asked->answer->error, SNECK_INVALID, 0,
                   "%s: a lease of %lld ms is longer than the session allows (%lld ms); session= in the store's URL "
                   "asks for more, up to the server's maxSessionTimeout",
                   asked->store->where, (long long)(asked->asked->send.lease_ns / SNK_NS_PER_MS),
                   (long long)(longest_ns / SNK_NS_PER_MS));
    asked->answer->kind = SNK_ANSWER_FAILED;
    return true;
}

static void do_acquire(const request *asked)
{
    snk_zk_store *store = asked->store;
    snk_zk_path folder;
    if (snk_zk_is_buried(&store->table, &asked->asked->send.claim)) {
        asked->answer->kind = SNK_ANSWER_GONE;
        return;
    }
    if (lease_is_too_long(asked))
        return;
    snk_zk_folder(store->root, store->prefix, snk_zk_mark(asked->asked->grip.object), asked->asked->name, folder);
    snk_zk_claim *claim = snk_zk_claim_new(&store->table, asked->asked, folder);
    if (claim == NULL) {
        answer_failure(asked, SNK_ZK_NO_MEMORY, true);
        return;
    }
    make_note(store, asked->asked, &claim->note);
    snk_zk_janitor_expect(store, snk_time_add(snk_now_ns(), asked->asked->send.lease_ns));
    if (claim->grip.mode == SNK_MODE_PASS)
        pass(asked, claim);
    else
        enter(asked, claim);
    snk_zk_claim_unref(claim);
}

/* ---- Renew ---- */

/* Finds the node of a claim whose acquire was never answered. False: there is none, or it is not known. */
static bool has_node(const request *asked, snk_zk_claim *claim)
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
        answer_failure(asked, outcome, false);
        return false;
    }
    if (found.path == NULL) {
        answer_gone(asked, claim);
        return false;
    }
    (void)set_node(&asked->store->table, claim, found.path, session, found.stat.czxid);
    return true;
}

static void do_renew(const request *asked)
{
    snk_zk_table *table = &asked->store->table;
    snk_zk_claim *claim = snk_zk_claim_find(table, &asked->asked->send.claim);
    if (claim == NULL || lease_is_too_long(asked)) {
        if (claim == NULL)
            asked->answer->kind = SNK_ANSWER_GONE;
        snk_zk_claim_unref(claim);
        return;
    }
    (void)pthread_mutex_lock(&table->mutex);
    bool holds = claim->held;
    bool is_let_in = claim->is_let_in;
    (void)pthread_mutex_unlock(&table->mutex);
    if (claim->grip.mode == SNK_MODE_PASS) {
        if (holds)
            answer_held(asked, claim);
        else
            pass(asked, claim);
    } else if (has_node(asked, claim)) {
        bool decided = (holds || is_let_in) && enter_hold(asked, claim, 0, !holds);
        if (!decided)
            look(asked, claim);
    }
    snk_zk_claim_unref(claim);
}

/* ---- Release ---- */

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

static snk_zk_outcome delete_node(const request *asked, const char *folder, const char *path, uint64_t session,
                                  uint32_t units, int *rc_out)
{
    bool uses_up = asked->asked->grip.mode == SNK_MODE_TAKE && asked->asked->send.ends_hold && units > 0;
    if (uses_up)
        return use_up(asked->store, folder, path, units, asked->until_ns, rc_out);
    bool was_cut = false;
    for (;;) {
        snk_zk_trip trip = { .until_ns = asked->until_ns, .session = session };
        (void)snk_zk_ask(&trip, SNK_ZK_DELETE, path);
        snk_zk_back back;
        snk_zk_outcome outcome = snk_zk_travel(asked->store->link, &trip, &back);
        if (outcome == SNK_ZK_ANSWERED)
            *rc_out = back.replies[0].rc;
        snk_zk_trip_end(&back);
        /* Gone after a try that was not answered: it was that try. */
        if (outcome == SNK_ZK_ANSWERED && *rc_out == ZNONODE && was_cut)
            *rc_out = ZOK;
        if (outcome == SNK_ZK_NOT_SENT && was_cut)
            return SNK_ZK_CUT;
        if (outcome != SNK_ZK_CUT || snk_now_ns() >= asked->until_ns)
            return outcome;
        was_cut = true;
    }
}

static void answer_released(const request *asked, snk_zk_claim *claim, snk_zk_outcome outcome, int rc)
{
    bool is_gone = outcome == SNK_ZK_OTHER_SESSION || (outcome == SNK_ZK_ANSWERED && rc == ZNONODE);
    if (is_gone) {
        answer_gone(asked, claim);
    } else if (outcome != SNK_ZK_ANSWERED) {
        answer_failure(asked, outcome, true);
    } else if (rc != ZOK) {
        answer_refusal(asked, rc);
    } else {
        if (claim != NULL)
            (void)snk_zk_claim_remove(&asked->store->table, claim);
        asked->answer->kind = SNK_ANSWER_DONE;
    }
}

/* A claim of another client, or one that this one has forgotten. */
static void release_foreign(const request *asked, const char *folder)
{
    snk_zk_found found;
    snk_zk_outcome outcome = snk_zk_locate(asked->store, folder, &asked->asked->send.claim, 0, asked->until_ns, &found);
    int rc = ZNONODE;
    if (outcome == SNK_ZK_ANSWERED && found.path != NULL)
        outcome = delete_node(asked, folder, found.path, 0, found.note.held_ms != 0 ? found.note.units : 0, &rc);
    answer_released(asked, NULL, outcome, rc);
    free(found.path);
}

static void release_own(const request *asked, snk_zk_claim *claim)
{
    int rc = ZOK;
    if (claim->grip.mode == SNK_MODE_PASS) {
        bool was_in = snk_zk_claim_remove(&asked->store->table, claim);
        asked->answer->kind = was_in ? SNK_ANSWER_DONE : SNK_ANSWER_GONE;
        return;
    }
    if (!has_node(asked, claim))
        return;
    (void)pthread_mutex_lock(&asked->store->table.mutex);
    uint32_t units = claim->held ? claim->note.units : 0;
    (void)pthread_mutex_unlock(&asked->store->table.mutex);
    snk_zk_outcome outcome = delete_node(asked, claim->folder, claim->path, claim->session, units, &rc);
    answer_released(asked, claim, outcome, rc);
}

static void do_release(const request *asked)
{
    const snk_send *send = &asked->asked->send;
    snk_zk_store *store = asked->store;
    snk_zk_path folder;
    snk_zk_folder(store->root, store->prefix, snk_zk_mark(asked->asked->grip.object), asked->asked->name, folder);
    int64_t life_ns = send->lease_ns > SNK_TOMBSTONE_NS ? send->lease_ns : SNK_TOMBSTONE_NS;
    if (send->unanswered && !snk_zk_bury(&store->table, &send->claim, snk_time_add(snk_now_ns(), life_ns))) {
        answer_failure(asked, SNK_ZK_NO_MEMORY, true);
        return;
    }
    snk_zk_claim *claim = snk_zk_claim_find(&store->table, &send->claim);
    if (claim != NULL && strcmp(claim->folder, folder) == 0)
        release_own(asked, claim);
    else
        release_foreign(asked, folder);
    snk_zk_claim_unref(claim);
}

/* ---- All of them ---- */

void snk_zk_submit(snk_store *base, snk_call *call)
{
    snk_zk_store *store = snk_zk_store_of(base);
    for (size_t i = 0; i < call->count; i++) {
        call->answers[i] = (snk_answer){ .kind = SNK_ANSWER_FAILED };
        request asked = {
            .store = store,
            .asked = &call->claims[i],
            .answer = &call->answers[i],
            .until_ns = snk_zk_limit_ns(store),
            /* Before anything leaves, so that news before the answer is not slept over. */
            .ticket = snk_bell_ticket(&store->bell, &call->claims[i].send.claim),
        };
        switch (call->claims[i].send.ask) {
        case SNK_ASK_ACQUIRE:
            do_acquire(&asked);
            break;
        case SNK_ASK_RENEW:
            do_renew(&asked);
            break;
        case SNK_ASK_RELEASE:
            do_release(&asked);
            break;
        }
    }
    call->done(call);
}
