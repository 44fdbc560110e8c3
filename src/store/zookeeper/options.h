/* What the URL says: zk://[user:password@]h1:2181,h2/path?session=…&timeout=… */
#ifndef SNK_STORE_ZOOKEEPER_OPTIONS_H
#define SNK_STORE_ZOOKEEPER_OPTIONS_H

#include "store/settings.h"
#include "store/store.h"
#include "store/zookeeper/paths.h"

/*
 * A session must outlast every lease in it: by a tenth for the pauses between signs of life, and by this for a follower
 * that passes them on to the leader only at the leader's next ping (half a tick, 1 s by default) and may be slow.
 */
#define SNK_ZK_SESSION_MARGIN_NS (2500 * SNK_NS_PER_MS)

typedef struct snk_zk_options {
    char hosts[SNK_URL_LENGTH_MAX];
    char login[SNK_URL_LENGTH_MAX + SNK_PASSWORD_SIZE]; /* "user:password", or "" */
    char root[SNK_ZK_ROOT_LENGTH_MAX + 1];
    int session_ms;
    int64_t timeout_ns;
} snk_zk_options;

sneck_status snk_zk_options_load(snk_zk_options *options, const snk_store_config *config, sneck_error *error);

#endif
