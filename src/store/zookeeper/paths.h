/*
 * Where things are in ZooKeeper: `<root>/<escaped name>/<kind>-<10 digits>`, in which all nodes of one name are numbered
 * together, and beside them `count` (permits, signals) and `log` (incidents).
 *
 * A name is escaped as URLs are: '%', '/', a '.' at the beginning and characters that ZooKeeper does not take become
 * %XX for each byte. The path does what the prefix does elsewhere: the default prefix is not written, any other is part
 * of the name. Latches, conditions and versions have a mark before the name that no escaped name begins with.
 */
#ifndef SNK_STORE_ZOOKEEPER_PATHS_H
#define SNK_STORE_ZOOKEEPER_PATHS_H

#include "base/limits.h"
#include "store/grip.h"
#include "store/zookeeper/flight.h"

#define SNK_ZK_ROOT_DEFAULT "/locks"
#define SNK_ZK_ROOT_LENGTH_MAX 512
#define SNK_ZK_VERSION_MARK "%version:"
#define SNK_ZK_NODE_SIZE 32

typedef char snk_zk_path[SNK_ZK_PATH_SIZE];

/* The kinds of nodes that stand in a queue. */
typedef enum snk_zk_kind {
    SNK_ZK_LOCK,
    SNK_ZK_WRITE, /* made by others; the same as LOCK */
    SNK_ZK_READ,
    SNK_ZK_PERMIT,
    SNK_ZK_TAKE
} snk_zk_kind;

typedef struct snk_zk_node {
    snk_zk_kind kind;
    int32_t number;
    char name[SNK_ZK_NODE_SIZE];
} snk_zk_node;

/* The folder of a thing. `mark` "" for locks. */
void snk_zk_folder(const char *root, const char *prefix, const char *mark, const char *name, snk_zk_path path);
const char *snk_zk_mark(snk_object object);
/* A path below another. */
void snk_zk_below(const char *folder, const char *name, snk_zk_path path);

/* The name of a lock whose folder is called that, without prefix; false when it is none of this prefix. */
bool snk_zk_unescape(const char *prefix, const char *folder, char name[SNK_NAME_LENGTH_MAX + 1]);

/* What the name of a node in the queue of a claim with this mode begins with. */
const char *snk_zk_stem(snk_mode mode);

/* False when it is no node of a queue. */
bool snk_zk_node_parse(const char *name, snk_zk_node *node_out);
/* Negative, 0 or positive, also where the numbers have run over. Of one number a lock comes before a reader. */
int snk_zk_node_order(const snk_zk_node *a, const snk_zk_node *b);

#endif
