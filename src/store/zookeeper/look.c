/* Showing and breaking locks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/glob.h"
#include "store/zookeeper/scene.h"

static const char *mode_of(snk_zk_kind kind)
{
    static const snk_mode modes[] = {
        [SNK_ZK_LOCK] = SNK_MODE_EXCLUSIVE, [SNK_ZK_WRITE] = SNK_MODE_EXCLUSIVE, [SNK_ZK_READ] = SNK_MODE_SHARED,
        [SNK_ZK_PERMIT] = SNK_MODE_PERMIT,  [SNK_ZK_TAKE] = SNK_MODE_TAKE,
    };
    return snk_mode_word(modes[kind]);
}

/* Times are those of the server and of other clients: no more than a hint, and never out of bounds. */
static int64_t between(int64_t least, int64_t value, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static sneck_party party_of(const snk_zk_place *place, int64_t now_ms)
{
    const snk_zk_note *note = &place->note;
    int64_t since_ms = place->holds && note->held_ms != 0 ? note->held_ms : place->stat.ctime;
    int64_t life_ms = note->lease_ms;
    /* Let in and not heard of since: an offer. */
    if (place->holds && note->held_ms == 0 && life_ms > SNK_OFFER_NS / SNK_NS_PER_MS)
        life_ms = SNK_OFFER_NS / SNK_NS_PER_MS;
    int64_t from_ms = place->holds && note->held_ms == 0 ? now_ms : place->stat.mtime;
    return (sneck_party){
        .owner = note->owner,
        .host = note->host,
        .why = note->why,
        .mode = mode_of(place->node.kind),
        .pid = note->pid,
        .age_ms = between(0, now_ms - since_ms, INT64_MAX),
        .remaining_ms = between(0, life_ms - (now_ms - from_ms), life_ms),
        .units = note->units,
    };
}

static void show(const snk_zk_scene *scene, snk_view *view)
{
    int64_t now_ms = snk_wall_us() / 1000;
    /* Of a free lock: higher than all tokens that were given out, and lower than all that will be. */
    view->info.token = scene->exists ? (uint64_t)scene->folder.pzxid : 0;
    view->info.permits = scene->tally;
    for (size_t i = 0; i < scene->count; i++) {
        const snk_zk_place *place = &scene->places[i];
        sneck_party party = party_of(place, now_ms);
        if (place->holds)
            snk_view_hold(view, &party, snk_zk_place_token(scene, place), place->note.fair);
        else
            snk_view_waiter(view, &party);
    }
    if (scene->log != NULL)
        snk_zk_log_show(scene->log, view);
}

static sneck_status read_scene(snk_zk_store *store, const char *name, snk_zk_path folder, snk_zk_scene *scene,
                               sneck_error *error)
{
    int rc = ZOK;
    snk_zk_folder(store->root, store->prefix, "", name, folder);
    snk_zk_outcome outcome = snk_zk_scene_read(store, folder, false, snk_zk_limit_ns(store), scene, &rc);
    if (outcome != SNK_ZK_ANSWERED)
        return snk_zk_failure(store, outcome, false, error);
    return rc == ZOK ? SNECK_OK : snk_zk_refusal(store, rc, error);
}

sneck_status snk_zk_inspect(snk_store *base, const char *name, snk_view *view, sneck_error *error)
{
    snk_zk_path folder;
    snk_zk_scene scene;
    snk_view_reset(view);
    snk_view_name(view, name);
    sneck_status status = read_scene(snk_zk_store_of(base), name, folder, &scene, error);
    if (status == SNECK_OK)
        show(&scene, view);
    snk_zk_scene_end(&scene);
    if (status == SNECK_OK && view->out_of_memory)
        status = snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    return status == SNECK_OK ? snk_ok(error) : status;
}

/* ---- All of them ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Turns the folders of a list into names, sorted. False: out of memory. */
static bool take_names(const snk_zk_store *store, snk_zk_reply *list, const char *pattern)
{
    size_t kept = 0;
    bool done = true;
    for (size_t i = 0; i < list->count; i++) {
        char name[SNK_NAME_LENGTH_MAX + 1];
        bool wanted = snk_zk_unescape(store->prefix, list->names[i], name) && snk_glob_matches(pattern, name);
        free(list->names[i]);
        list->names[i] = NULL;
        if (!wanted)
            continue;
        list->names[kept] = strdup(name);
        done = done && list->names[kept] != NULL;
        kept += list->names[kept] != NULL;
    }
    list->count = kept;
    qsort(list->names, kept, sizeof *list->names, compare_names);
    return done;
}

static sneck_status show_each(snk_store *base, const snk_zk_reply *list, snk_view_fn callback, void *context,
                              sneck_error *error)
{
    snk_view *view = snk_view_new();
    if (view == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    sneck_status status = snk_ok(error);
    bool goes_on = true;
    for (size_t i = 0; i < list->count && goes_on && status == SNECK_OK; i++) {
        status = snk_zk_inspect(base, list->names[i], view, error);
        if (status == SNECK_OK && (view->info.held || view->info.waiter_count > 0))
            goes_on = callback(context, view);
    }
    snk_view_free(view);
    return status;
}

sneck_status snk_zk_list(snk_store *base, const char *pattern, snk_view_fn callback, void *context, sneck_error *error)
{
    snk_zk_store *store = snk_zk_store_of(base);
    snk_zk_trip trip = { .until_ns = snk_zk_limit_ns(store) };
    (void)snk_zk_ask(&trip, SNK_ZK_SYNC, store->root);
    (void)snk_zk_ask(&trip, SNK_ZK_LIST, store->root);
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_insist(store, &trip, &back);
    sneck_status status = SNECK_OK;
    if (outcome != SNK_ZK_ANSWERED)
        status = snk_zk_failure(store, outcome, false, error);
    else if (back.replies[1].rc != ZOK)
        status = snk_zk_refusal(store, back.replies[1].rc, error);
    else if (!take_names(store, &back.replies[1], pattern))
        status = snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    else
        status = show_each(base, &back.replies[1], callback, context, error);
    snk_zk_trip_end(&back);
    return status;
}

/* ---- Breaking ---- */

static sneck_status break_place(snk_zk_store *store, const char *folder, const snk_zk_place *place, uint64_t token,
                                const char *text, sneck_error *error)
{
    int rc = ZOK;
    snk_zk_path path;
    snk_zk_below(folder, place->node.name, path);
    sneck_incident incident = {
        .time_ms = snk_wall_us() / 1000,
        .kind = "broken",
        .token = token,
        .owner = place->note.owner[0] == '\0' ? "-" : place->note.owner,
        .text = text,
    };
    snk_zk_outcome outcome = snk_zk_remove_noted(store, folder, path, &incident, snk_zk_limit_ns(store), &rc);
    if (outcome != SNK_ZK_ANSWERED)
        return snk_zk_failure(store, outcome, true, error);
    return rc == ZOK || rc == ZNONODE ? SNECK_OK : snk_zk_refusal(store, rc, error);
}

sneck_status snk_zk_break(snk_store *base, const char *name, uint64_t token, const char *reason, sneck_error *error)
{
    snk_zk_store *store = snk_zk_store_of(base);
    snk_zk_path folder;
    snk_zk_scene scene;
    char text[SNK_WHY_LENGTH_MAX + 80];
    (void)snprintf(text, sizeof text, "%.200s (by pid %lld on %s)", reason, (long long)store->identity.pid,
                   store->identity.host);
    sneck_status status = read_scene(store, name, folder, &scene, error);
    bool found = false;
    bool all_readers = false;
    for (size_t i = 0; i < scene.count; i++)
        all_readers = all_readers || (scene.places[i].holds && scene.places[i].node.kind == SNK_ZK_READ &&
                                      snk_zk_place_token(&scene, &scene.places[i]) == token);
    for (size_t i = 0; i < scene.count && status == SNECK_OK; i++) {
        const snk_zk_place *place = &scene.places[i];
        bool is_meant = place->holds && (snk_zk_place_token(&scene, place) == token ||
                                         (all_readers && place->node.kind == SNK_ZK_READ));
        if (!is_meant)
            continue;
        found = true;
        status = break_place(store, folder, place, token, text, error);
    }
    snk_zk_scene_end(&scene);
    if (status == SNECK_OK && !found)
        return snk_fail(error, SNECK_CONFLICT, 0, "%.120s is not held with token %llu", name,
                        (unsigned long long)token);
    return status == SNECK_OK ? snk_ok(error) : status;
}
