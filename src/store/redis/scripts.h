/* The scripts that run on the server, as embed.py makes them of scripts/: one set a layout. */
#ifndef SNK_STORE_REDIS_SCRIPTS_H
#define SNK_STORE_REDIS_SCRIPTS_H

#include <stddef.h>

typedef enum snk_layout {
    SNK_LAYOUT_HASH,
    SNK_LAYOUT_STRING,
    SNK_LAYOUTS
} snk_layout;

typedef enum snk_script_kind {
    SNK_SCRIPT_ACQUIRE,
    SNK_SCRIPT_RENEW,
    SNK_SCRIPT_RELEASE,
    SNK_SCRIPT_BREAK,
    SNK_SCRIPT_INSPECT,
    SNK_SCRIPT_CROWD_ACQUIRE,
    SNK_SCRIPT_CROWD_RENEW,
    SNK_SCRIPT_CROWD_RELEASE,
    SNK_SCRIPT_TALLY,
    SNK_SCRIPT_VERSION,
    SNK_SCRIPT_TOGETHER,
    SNK_SCRIPT_GHOSTS,
    SNK_SCRIPT_KEEP,
    SNK_SCRIPTS
} snk_script_kind;

typedef struct snk_script {
    const char *name;
    const char *sha; /* 40 hex digits: what EVALSHA wants */
    const char *text;
    size_t length;
} snk_script;

extern const snk_script snk_scripts[SNK_LAYOUTS][SNK_SCRIPTS];

#endif
