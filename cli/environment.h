/* The environment of the command, and what it tells us about a `run` around this one. */
#ifndef SNK_CLI_ENVIRONMENT_H
#define SNK_CLI_ENVIRONMENT_H

#include <stddef.h>
#include <stdint.h>

typedef struct snk_environment_facts {
    const char *const *names; /* of the locks; the first one is SNECK_LOCK */
    size_t count;
    const char *store_url; /* may hold a password: the command gets it without */
    uint64_t token;
    int64_t deadline_ms; /* epoch */
} snk_environment_facts;

/* A new environment, to be freed by snk_environment_free; NULL: out of memory. */
char **snk_environment_new(const snk_environment_facts *facts);
void snk_environment_free(char **environment);

/* One of the names that a `run` which is still there, and in which we run, holds in that store; else NULL. */
const char *snk_environment_outer_lock(const char *store_url, const char *const names[], size_t count);

#endif
