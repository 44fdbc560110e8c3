#include "store/zookeeper/scene.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static int compare_nodes(const void *a, const void *b)
{
    return snk_zk_node_order(a, b);
}

snk_zk_node *snk_zk_queue_of(const snk_zk_reply *list, size_t *count_out)
{
    size_t count = 0;
    snk_zk_node *nodes = calloc(list->count + 1, sizeof *nodes);
    for (size_t i = 0; i < list->count && nodes != NULL; i++)
        count += snk_zk_node_parse(list->names[i], &nodes[count]);
    if (nodes != NULL)
        qsort(nodes, count, sizeof *nodes, compare_nodes);
    *count_out = count;
    return nodes;
}

/* ---- Who holds ---- */

typedef struct ahead {
    size_t all;
    size_t permits;
    size_t others; /* neither readers nor permits nor takers */
    size_t readers;
    int32_t others_number; /* of the last of them */
    int64_t permit_units;
    int64_t take_units;
} ahead;

/* Whether `units` (0: what is left) fit under a count in which so many are given out. */
static bool fits(int64_t out, uint32_t units, int64_t tally)
{
    return out + (units > 0 ? units : 1) <= tally;
}

static bool place_holds(const snk_zk_place *place, const ahead *before, int64_t tally)
{
    bool only_beside = before->others == 1 && before->others_number == place->node.number;
    switch (place->node.kind) {
    case SNK_ZK_LOCK:
    case SNK_ZK_WRITE:
        return before->all == 0;
    case SNK_ZK_READ:
        return (before->others == 0 || only_beside) && before->permits == 0;
    case SNK_ZK_PERMIT:
        return place->note.held_ms != 0 ||
               (before->others + before->readers == 0 && fits(before->permit_units, place->note.units, tally));
    case SNK_ZK_TAKE:
        return place->note.held_ms != 0 || fits(before->take_units, place->note.units, tally);
    }
    return false;
}

static void step_past(ahead *before, const snk_zk_place *place, int64_t tally)
{
    uint32_t units = place->note.units;
    before->all++;
    switch (place->node.kind) {
    case SNK_ZK_LOCK:
    case SNK_ZK_WRITE:
        before->others++;
        before->others_number = place->node.number;
        break;
    case SNK_ZK_READ:
        before->readers++;
        break;
    case SNK_ZK_PERMIT:
        before->permits++;
        /* Who wants all that is left leaves nothing. */
        before->permit_units += units > 0 ? units : tally + 1;
        break;
    case SNK_ZK_TAKE:
        before->take_units += units;
        break;
    }
}

static void decide(snk_zk_scene *scene)
{
    ahead before = { .all = 0 };
    for (size_t i = 0; i < scene->count; i++) {
        scene->places[i].holds = place_holds(&scene->places[i], &before, scene->tally);
        step_past(&before, &scene->places[i], scene->tally);
    }
}

static int64_t units_of(const snk_zk_scene *scene, snk_zk_kind kind)
{
    int64_t units = 0;
    for (size_t i = 0; i < scene->count; i++) {
        if (scene->places[i].holds && scene->places[i].node.kind == kind)
            units += scene->places[i].note.units;
    }
    return units;
}

int64_t snk_zk_scene_used(const snk_zk_scene *scene)
{
    return units_of(scene, SNK_ZK_PERMIT);
}

int64_t snk_zk_scene_taken(const snk_zk_scene *scene)
{
    return units_of(scene, SNK_ZK_TAKE);
}

int64_t snk_zk_scene_takers(const snk_zk_scene *scene)
{
    int64_t takers = 0;
    for (size_t i = 0; i < scene->count; i++)
        takers += scene->places[i].node.kind == SNK_ZK_TAKE && !scene->places[i].holds;
    return takers;
}

uint64_t snk_zk_place_token(const snk_zk_scene *scene, const snk_zk_place *place)
{
    if (place->note.token != 0)
        return place->note.token;
    /* A reader that has said nothing yet: the last writer that came before it, if none has come since. */
    if (place->node.kind == SNK_ZK_READ && scene->folder.mzxid < place->stat.czxid)
        return (uint64_t)scene->folder.mzxid;
    return (uint64_t)place->stat.czxid;
}

/* ---- Reading ---- */

static char *take_text(snk_zk_reply *reply)
{
    char *text = reply->rc == ZOK ? reply->text : NULL;
    if (text != NULL)
        reply->text = NULL;
    return text;
}

static void take_tally(snk_zk_scene *scene, snk_zk_reply *reply)
{
    scene->tally = -1;
    scene->tally_text = take_text(reply);
    scene->has_tally = scene->tally_text != NULL;
    if (!scene->has_tally)
        return;
    scene->tally = strtoll(scene->tally_text, NULL, 10);
    scene->tally_stat = reply->stat;
}

/* Up to a trip's worth of notes, from `first` on. Those that went meanwhile are marked by a czxid of 0. */
static snk_zk_outcome read_notes(snk_zk_store *store, const char *folder, const snk_zk_trip *like, size_t first,
                                 snk_zk_scene *scene)
{
    snk_zk_trip trip = { .until_ns = like->until_ns };
    size_t count = scene->count - first < SNK_ZK_TRIP_MAX ? scene->count - first : SNK_ZK_TRIP_MAX;
    snk_zk_path *paths = calloc(count, sizeof *paths);
    if (paths == NULL)
        return SNK_ZK_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        snk_zk_below(folder, scene->places[first + i].node.name, paths[i]);
        (void)snk_zk_ask(&trip, SNK_ZK_GET, paths[i]);
    }
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_insist(store, &trip, &back);
    for (size_t i = 0; i < count && outcome == SNK_ZK_ANSWERED; i++) {
        snk_zk_place *place = &scene->places[first + i];
        if (back.replies[i].rc != ZOK)
            continue;
        snk_zk_note_read(back.replies[i].text, &place->note);
        place->stat = back.replies[i].stat;
    }
    snk_zk_trip_end(&back);
    free(paths);
    return outcome;
}

static bool take_places(snk_zk_scene *scene, const snk_zk_reply *list)
{
    size_t count = 0;
    snk_zk_node *nodes = snk_zk_queue_of(list, &count);
    scene->places = calloc(count + 1, sizeof *scene->places);
    bool done = nodes != NULL && scene->places != NULL;
    for (size_t i = 0; i < count && done; i++)
        scene->places[i].node = nodes[i];
    scene->count = done ? count : 0;
    free(nodes);
    return done;
}

static void drop_those_that_went(snk_zk_scene *scene)
{
    size_t kept = 0;
    for (size_t i = 0; i < scene->count; i++) {
        if (scene->places[i].stat.czxid != 0)
            scene->places[kept++] = scene->places[i];
    }
    scene->count = kept;
}

static snk_zk_outcome read_folder(snk_zk_store *store, snk_zk_trip *trip, snk_zk_scene *scene, int *rc_out)
{
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_insist(store, trip, &back);
    if (outcome == SNK_ZK_ANSWERED) {
        snk_zk_reply *list = &back.replies[1];
        scene->exists = list->rc == ZOK;
        scene->folder = list->stat;
        *rc_out = list->rc == ZNONODE ? ZOK : list->rc;
        take_tally(scene, &back.replies[2]);
        scene->log = take_text(&back.replies[3]);
        if (scene->exists && !take_places(scene, list))
            outcome = SNK_ZK_NO_MEMORY;
    }
    snk_zk_trip_end(&back);
    return outcome;
}

snk_zk_outcome snk_zk_scene_read(snk_zk_store *store, const char *folder, bool watches, int64_t until_ns,
                                 snk_zk_scene *scene, int *rc_out)
{
    *scene = (snk_zk_scene){ .tally = -1 };
    *rc_out = ZOK;
    snk_zk_path count;
    snk_zk_path log;
    snk_zk_below(folder, "count", count);
    snk_zk_below(folder, "log", log);
    snk_zk_trip trip = { .until_ns = until_ns };
    (void)snk_zk_ask(&trip, SNK_ZK_SYNC, store->root);
    (void)snk_zk_ask(&trip, watches ? SNK_ZK_LIST_WATCH : SNK_ZK_LIST, folder);
    (void)snk_zk_ask(&trip, watches ? SNK_ZK_GET_WATCH : SNK_ZK_GET, count);
    (void)snk_zk_ask(&trip, SNK_ZK_GET, log);
    snk_zk_outcome outcome = read_folder(store, &trip, scene, rc_out);
    for (size_t i = 0; i < scene->count && outcome == SNK_ZK_ANSWERED; i += SNK_ZK_TRIP_MAX)
        outcome = read_notes(store, folder, &trip, i, scene);
    drop_those_that_went(scene);
    decide(scene);
    return outcome;
}

void snk_zk_scene_end(snk_zk_scene *scene)
{
    free(scene->places);
    free(scene->tally_text);
    free(scene->log);
    *scene = (snk_zk_scene){ .tally = -1 };
}
