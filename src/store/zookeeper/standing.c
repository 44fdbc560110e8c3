#include "store/zookeeper/standing.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/zookeeper/scene.h"

static const char *node_of(const snk_zk_claim *claim)
{
    return strrchr(claim->path, '/') + 1;
}

static bool stands_in_the_way(const snk_zk_node *other, const snk_zk_node *mine, snk_mode mode)
{
    if (mode != SNK_MODE_SHARED)
        return true;
    return other->kind != SNK_ZK_READ && other->number != mine->number;
}

static void stand_among(const snk_zk_node nodes[], size_t count, snk_mode mode, const char *node,
                        snk_zk_standing *standing)
{
    size_t me = 0;
    while (me < count && strcmp(nodes[me].name, node) != 0)
        me++;
    standing->is_there = me < count;
    size_t in_the_way = 0;
    for (size_t i = 0; i < me && me < count; i++) {
        if (!stands_in_the_way(&nodes[i], &nodes[me], mode))
            continue;
        in_the_way++;
        (void)snk_copy_text(standing->watch, sizeof standing->watch, nodes[i].name);
    }
    if (count > 0)
        (void)snk_copy_text(standing->first, sizeof standing->first, nodes[0].name);
    standing->is_let_in = standing->is_there && in_the_way == 0;
    standing->is_next = in_the_way == 1;
}

bool snk_zk_stand_in(const snk_zk_claim *claim, const snk_zk_reply *list, snk_zk_standing *standing)
{
    *standing = (snk_zk_standing){ .is_there = false };
    size_t count = 0;
    snk_zk_node *nodes = snk_zk_queue_of(list, &count);
    if (nodes == NULL)
        return false;
    stand_among(nodes, count, claim->grip.mode, node_of(claim), standing);
    free(nodes);
    return true;
}

static snk_zk_outcome stand_alone(snk_zk_store *store, const snk_zk_claim *claim, int64_t until_ns,
                                  snk_zk_standing *standing, int *rc_out)
{
    snk_zk_trip trip = { .until_ns = until_ns };
    (void)snk_zk_ask(&trip, SNK_ZK_LIST, claim->folder);
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_insist(store, &trip, &back);
    if (outcome == SNK_ZK_ANSWERED) {
        *rc_out = back.replies[0].rc;
        if (*rc_out == ZOK && !snk_zk_stand_in(claim, &back.replies[0], standing))
            outcome = SNK_ZK_NO_MEMORY;
        else if (*rc_out == ZNONODE)
            *rc_out = ZOK; /* the folder has gone, and so has the claim */
    }
    snk_zk_trip_end(&back);
    return outcome;
}

/* ---- Permits and what is taken ---- */

/*
 * Who waits behind somebody that waits watches that one, which says so when it is let in; the first of those who wait
 * watches the queue and the count. Whoever is no permit is waited for in any case.
 */
static void stand_counting(const snk_zk_scene *scene, size_t me, snk_zk_standing *standing)
{
    const snk_zk_place *mine = &scene->places[me];
    int64_t out = 0;
    for (size_t i = 0; i < me; i++) {
        const snk_zk_place *other = &scene->places[i];
        bool same = other->node.kind == mine->node.kind;
        out += same ? other->note.units : 0;
        if (same && other->holds)
            continue;
        if (!same && mine->node.kind == SNK_ZK_TAKE)
            continue;
        standing->watches_data = same;
        (void)snk_copy_text(standing->watch, sizeof standing->watch, other->node.name);
    }
    standing->is_let_in = mine->holds && standing->watch[0] == '\0';
    standing->units = mine->note.units > 0 ? mine->note.units : (uint32_t)(scene->tally - out);
    (void)snk_copy_text(standing->first, sizeof standing->first, scene->places[0].node.name);
}

static snk_zk_outcome stand_once(snk_zk_store *store, const snk_zk_claim *claim, bool watches, int64_t until_ns,
                                 snk_zk_standing *standing, int *rc_out)
{
    snk_zk_scene scene;
    snk_zk_outcome outcome = snk_zk_scene_read(store, claim->folder, watches, until_ns, &scene, rc_out);
    *standing = (snk_zk_standing){ .watches_all = watches };
    if (outcome == SNK_ZK_ANSWERED && *rc_out == ZOK) {
        size_t me = 0;
        while (me < scene.count && strcmp(scene.places[me].node.name, node_of(claim)) != 0)
            me++;
        standing->is_there = me < scene.count;
        if (standing->is_there)
            stand_counting(&scene, me, standing);
    }
    snk_zk_scene_end(&scene);
    return outcome;
}

snk_zk_outcome snk_zk_stand(snk_zk_store *store, const snk_zk_claim *claim, int64_t until_ns, snk_zk_standing *standing,
                            int *rc_out)
{
    *standing = (snk_zk_standing){ .is_there = false };
    *rc_out = ZOK;
    bool counts = claim->grip.mode == SNK_MODE_PERMIT || claim->grip.mode == SNK_MODE_TAKE;
    if (!counts)
        return stand_alone(store, claim, until_ns, standing, rc_out);
    snk_zk_outcome outcome = stand_once(store, claim, false, until_ns, standing, rc_out);
    bool is_first = outcome == SNK_ZK_ANSWERED && *rc_out == ZOK && standing->is_there && !standing->is_let_in &&
                    standing->watch[0] == '\0';
    return is_first ? stand_once(store, claim, true, until_ns, standing, rc_out) : outcome;
}
