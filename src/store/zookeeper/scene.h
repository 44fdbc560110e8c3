/* Everything about one name, read together: its queue in order, what each node says, and its count. */
#ifndef SNK_STORE_ZOOKEEPER_SCENE_H
#define SNK_STORE_ZOOKEEPER_SCENE_H

#include "store/zookeeper/zookeeper.h"

typedef struct snk_zk_place {
    snk_zk_node node;
    snk_zk_note note;
    struct Stat stat;
    bool holds; /* by its place, or because it said so */
} snk_zk_place;

typedef struct snk_zk_scene {
    bool exists;
    struct Stat folder;
    snk_zk_place *places; /* owned; in order */
    size_t count;
    bool has_tally;
    int64_t tally; /* as it is stored; -1: none */
    struct Stat tally_stat;
    char *tally_text; /* owned; NULL: none */
    char *log;        /* owned; NULL: none */
} snk_zk_scene;

/* `watches`: from now on the client is told when the queue or the count changes. Give it back with snk_zk_scene_end. */
snk_zk_outcome snk_zk_scene_read(snk_zk_store *store, const char *folder, bool watches, int64_t until_ns,
                                 snk_zk_scene *scene, int *rc_out);
void snk_zk_scene_end(snk_zk_scene *scene);

/* The nodes of a folder's queue among its children, in order: an array to be freed; NULL: none, or no memory. */
snk_zk_node *snk_zk_queue_of(const snk_zk_reply *list, size_t *count_out);

/* Units of the permits that are out; of what was taken and not used up yet; and how many wait to take. */
int64_t snk_zk_scene_used(const snk_zk_scene *scene);
int64_t snk_zk_scene_taken(const snk_zk_scene *scene);
int64_t snk_zk_scene_takers(const snk_zk_scene *scene);

/* The token of a place that holds. */
uint64_t snk_zk_place_token(const snk_zk_scene *scene, const snk_zk_place *place);

#endif
