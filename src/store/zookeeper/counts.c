/* Counts and versions: a node each, changed only by who has seen what it was. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/zookeeper/scene.h"

/* How many of those who counted a latch down are remembered, so that each counts once. */
#define DOWNS_MAX 256
#define COUNT_SIZE (32 + DOWNS_MAX * SNK_ID_TEXT_SIZE)

/* The count as users know it. */
static int64_t shown_count(const snk_zk_scene *scene, snk_object object)
{
    if (!scene->has_tally)
        return object == SNK_OBJECT_LOCK ? -1 : 0;
    return scene->tally - snk_zk_scene_taken(scene);
}

/* The ids in a count's text, the newest first; "" when there are none. */
static const char *downs_of(const snk_zk_scene *scene)
{
    const char *line = scene->tally_text == NULL ? NULL : strchr(scene->tally_text, '\n');
    return line == NULL ? "" : line + 1;
}

typedef struct change {
    bool done;
    int64_t tally; /* to be stored */
    char text[COUNT_SIZE];
} change;

static void change_to(change *changed, int64_t tally, const char *id, const char *downs)
{
    changed->done = true;
    changed->tally = tally;
    (void)snprintf(changed->text, sizeof changed->text, "%lld\n%s%s%.*s", (long long)tally, id, *id == '\0' ? "" : "\n",
                   (int)((DOWNS_MAX - 1) * SNK_ID_TEXT_SIZE), downs);
}

static void count_down(const snk_zk_scene *scene, const snk_tally *tally, change *changed)
{
    char id[SNK_ID_TEXT_SIZE];
    snk_id_to_hex(&tally->id, id);
    if (scene->tally <= 0 || strstr(downs_of(scene), id) != NULL)
        return;
    change_to(changed, scene->tally - 1, id, downs_of(scene));
}

static void decide(const snk_zk_scene *scene, const snk_tally *tally, change *changed)
{
    int64_t taken = snk_zk_scene_taken(scene);
    int64_t now = scene->has_tally ? scene->tally : 0;
    *changed = (change){ .done = false, .tally = scene->tally };
    switch (tally->verb) {
    case SNK_TALLY_READ:
        return;
    case SNK_TALLY_SET_IF_ZERO:
        if (now - taken <= 0)
            change_to(changed, tally->value + taken, "", downs_of(scene));
        return;
    case SNK_TALLY_SET:
        change_to(changed, tally->value + taken, "", "");
        return;
    case SNK_TALLY_ADD:
        change_to(changed, now + tally->value, "", "");
        return;
    case SNK_TALLY_DOWN:
        count_down(scene, tally, changed);
        return;
    case SNK_TALLY_SIGNAL: {
        int64_t takers = snk_zk_scene_takers(scene);
        int64_t signals = tally->value < takers ? tally->value : takers;
        if (signals > 0)
            change_to(changed, taken + signals, "", "");
        return;
    }
    }
}

/* Writes what was decided, if nothing has changed since. */
static snk_zk_outcome write_count(snk_zk_store *store, const char *folder, const snk_zk_scene *scene,
                                  const change *changed, int64_t until_ns, int *rc_out)
{
    snk_zk_path count;
    snk_zk_below(folder, "count", count);
    if (!scene->exists) {
        snk_zk_outcome outcome = snk_zk_make_folder(store, folder, until_ns, rc_out);
        if (outcome != SNK_ZK_ANSWERED || *rc_out != ZOK)
            return outcome == SNK_ZK_CUT ? SNK_ZK_NOT_SENT : outcome; /* the count has not changed */
    }
    snk_zk_trip trip = { .until_ns = until_ns };
    /* It is made empty first: so two that make it at once find each other. */
    if (!scene->has_tally)
        (void)snk_zk_ask(&trip, SNK_ZK_MAKE, count);
    snk_zk_request *request = &trip.requests[snk_zk_ask(&trip, SNK_ZK_SET, count)];
    request->data = changed->text;
    request->version = scene->has_tally ? scene->tally_stat.version : 0;
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_travel(store->link, &trip, &back);
    if (outcome == SNK_ZK_ANSWERED)
        *rc_out = back.replies[trip.count - 1].rc;
    snk_zk_trip_end(&back);
    return outcome;
}

typedef struct counting {
    const char *folder;
    const snk_tally *tally;
    int64_t until_ns;
} counting;

/* One try: *again_out says that somebody else came first. */
static sneck_status try_tally(snk_zk_store *store, const counting *asked, snk_tallied *tallied_out, bool *again_out,
                              sneck_error *error)
{
    int rc = ZOK;
    snk_zk_scene scene;
    *again_out = false;
    snk_zk_outcome outcome = snk_zk_scene_read(store, asked->folder, false, asked->until_ns, &scene, &rc);
    bool changes = false;
    change *changed = malloc(sizeof *changed);
    if (changed == NULL)
        outcome = SNK_ZK_NO_MEMORY;
    if (outcome == SNK_ZK_ANSWERED && rc == ZOK) {
        decide(&scene, asked->tally, changed);
        changes = changed->done;
        if (changes)
            outcome = write_count(store, asked->folder, &scene, changed, asked->until_ns, &rc);
    }
    *again_out = outcome == SNK_ZK_ANSWERED && (rc == ZBADVERSION || (changes && rc == ZNONODE));
    if (outcome == SNK_ZK_ANSWERED && rc == ZOK)
        *tallied_out = (snk_tallied){ .done = changes,
                                      .count = shown_count(&scene, asked->tally->object),
                                      .used = snk_zk_scene_used(&scene) };
    snk_zk_scene_end(&scene);
    free(changed);
    if (outcome != SNK_ZK_ANSWERED)
        return snk_zk_failure(store, outcome, changes, error);
    return rc == ZOK || *again_out ? SNECK_OK : snk_zk_refusal(store, rc, error);
}

sneck_status snk_zk_tally(snk_store *base, const snk_tally *tally, snk_tallied *tallied_out, sneck_error *error)
{
    snk_zk_store *store = snk_zk_store_of(base);
    snk_zk_path folder;
    snk_zk_folder(store->root, store->prefix, snk_zk_mark(tally->object), tally->name, folder);
    counting asked = { .folder = folder, .tally = tally, .until_ns = snk_zk_limit_ns(store) };
    bool again = true;
    sneck_status status = SNECK_OK;
    while (again && status == SNECK_OK)
        status = try_tally(store, &asked, tallied_out, &again, error);
    if (status != SNECK_OK || !tallied_out->done)
        return status == SNECK_OK ? snk_ok(error) : status;
    /* What it is now: those whom it let in have taken their part. */
    snk_tally reading = { .object = tally->object, .verb = SNK_TALLY_READ, .name = tally->name };
    snk_tallied after = *tallied_out;
    asked = (counting){ .folder = folder, .tally = &reading, .until_ns = snk_zk_limit_ns(store) };
    status = try_tally(store, &asked, &after, &again, error);
    if (status == SNECK_OK)
        *tallied_out = (snk_tallied){ .done = true, .count = after.count, .used = after.used };
    return snk_ok(error);
}

/* ---- Versions ---- */

static snk_zk_outcome raise_version(snk_zk_store *store, const char *path, uint64_t next, int version, int64_t until_ns,
                                    int *rc_out)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)next);
    snk_zk_trip trip = { .until_ns = until_ns };
    if (version < 0)
        (void)snk_zk_ask(&trip, SNK_ZK_MAKE, path);
    snk_zk_request *request = &trip.requests[snk_zk_ask(&trip, SNK_ZK_SET, path)];
    request->data = text;
    request->version = version < 0 ? 0 : version;
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_travel(store->link, &trip, &back);
    if (outcome == SNK_ZK_ANSWERED)
        *rc_out = back.replies[trip.count - 1].rc;
    snk_zk_trip_end(&back);
    return outcome;
}

/* What the version is; `*version` is the node's own, or -1 when there is none. */
static sneck_status read_version(snk_zk_store *store, const char *path, int64_t until_ns, uint64_t *value_out,
                                 int *version_out, sneck_error *error)
{
    snk_zk_trip trip = { .until_ns = until_ns };
    (void)snk_zk_ask(&trip, SNK_ZK_SYNC, store->root);
    (void)snk_zk_ask(&trip, SNK_ZK_GET, path);
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_insist(store, &trip, &back);
    sneck_status status = SNECK_OK;
    *value_out = 0;
    *version_out = -1;
    if (outcome != SNK_ZK_ANSWERED) {
        status = snk_zk_failure(store, outcome, false, error);
    } else if (back.replies[1].rc == ZOK) {
        *value_out = strtoull(back.replies[1].text, NULL, 10);
        *version_out = back.replies[1].stat.version;
    } else if (back.replies[1].rc != ZNONODE) {
        status = snk_zk_refusal(store, back.replies[1].rc, error);
    }
    snk_zk_trip_end(&back);
    return status;
}

sneck_status snk_zk_version(snk_store *base, const char *name, const uint64_t *expected, uint64_t *version_out,
                            sneck_error *error)
{
    snk_zk_store *store = snk_zk_store_of(base);
    int64_t until_ns = snk_zk_limit_ns(store);
    snk_zk_path path;
    snk_zk_folder(store->root, store->prefix, SNK_ZK_VERSION_MARK, name, path);
    for (;;) {
        int node_version = -1;
        int rc = ZOK;
        sneck_status status = read_version(store, path, until_ns, version_out, &node_version, error);
        if (status != SNECK_OK)
            return status;
        if (expected == NULL)
            return snk_ok(error);
        if (*version_out != *expected)
            return snk_fail(error, SNECK_CONFLICT, 0, "%.120s is at version %llu", name,
                            (unsigned long long)*version_out);
        snk_zk_outcome outcome = raise_version(store, path, *expected + 1, node_version, until_ns, &rc);
        if (outcome != SNK_ZK_ANSWERED)
            return snk_zk_failure(store, outcome, true, error);
        if (rc == ZOK) {
            *version_out = *expected + 1;
            return snk_ok(error);
        }
        if (rc != ZBADVERSION)
            return snk_zk_refusal(store, rc, error);
    }
}
