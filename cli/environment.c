/*
 * SNECK_HELD is for sneck itself: a line a lock, "<pid>.<start time>\t<store>\t<name>", of every `run` around the
 * command. Names and stores have no control characters. The start time makes sure that the process with that number is
 * still the same: a program that was left behind by a `run` of last week is not inside of it.
 */
#include "environment.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process.h"
#include "secret.h"
#include "store_identity.h"

#define HELD "SNECK_HELD"

static const char *const ours[] = { "SNECK_LOCK", "SNECK_TOKEN", "SNECK_DEADLINE_MS", "SNECK_STORE", HELD };
#define OURS_COUNT (sizeof ours / sizeof ours[0])

/* Cuts a text at `separator`; returns what follows, or NULL. */
static char *cut_at(char *text, char separator)
{
    char *end = strchr(text, separator);
    if (end == NULL)
        return NULL;
    *end = '\0';
    return end + 1;
}

static bool is_alive(char *process)
{
    char *time = cut_at(process, '.');
    snk_process now;
    return time != NULL && snk_process_read(&now, (pid_t)strtol(process, NULL, 10)) &&
           now.started_at == strtoull(time, NULL, 10);
}

/* The name of the lock in a line of SNECK_HELD, if it is about this store and its `run` is still there. */
static const char *held_name(char *line, const char *identity)
{
    char *store = cut_at(line, '\t');
    char *name = store != NULL ? cut_at(store, '\t') : NULL;
    return name != NULL && strcmp(store, identity) == 0 && is_alive(line) ? name : NULL;
}

static const char *find_held(char *lines, const char *identity, const char *const names[], size_t count)
{
    while (lines != NULL) {
        char *next = cut_at(lines, '\n');
        const char *name = held_name(lines, identity);
        for (size_t i = 0; i < count && name != NULL; i++) {
            if (strcmp(name, names[i]) == 0)
                return names[i];
        }
        lines = next;
    }
    return NULL;
}

const char *snk_environment_outer_lock(const char *store_url, const char *const names[], size_t count)
{
    const char *held = getenv(HELD);
    char *lines = held != NULL ? strdup(held) : NULL;
    char *identity = snk_store_identity(store_url);
    const char *found = lines != NULL && identity != NULL ? find_held(lines, identity, names, count) : NULL;
    free(identity);
    free(lines);
    return found;
}

/* "SNECK_HELD=" with what it was and a line for each of our locks. */
static char *held_entry(const snk_environment_facts *facts)
{
    char *entry = NULL;
    const char *before = getenv(HELD);
    char *identity = snk_store_identity(facts->store_url);
    snk_process self = { 0 };
    (void)snk_process_read(&self, getpid()); /* without /proc nobody inside can tell that we are there */
    if (identity == NULL || asprintf(&entry, HELD "=%s", before != NULL ? before : "") < 0)
        entry = NULL;
    for (size_t i = 0; i < facts->count && entry != NULL; i++) {
        char *longer = NULL;
        bool is_first = entry[strlen(HELD "=")] == '\0';
        if (asprintf(&longer, "%s%s%ld.%llu\t%s\t%s", entry, is_first ? "" : "\n", (long)getpid(), self.started_at,
                     identity, facts->names[i]) < 0)
            longer = NULL;
        free(entry);
        entry = longer;
    }
    free(identity);
    return entry;
}

static char *entry_of(const snk_environment_facts *facts, size_t index)
{
    char *entry = NULL;
    char *url = NULL;
    int length = -1;
    switch (index) {
    case 0:
        length = asprintf(&entry, "SNECK_LOCK=%s", facts->names[0]);
        break;
    case 1:
        length = asprintf(&entry, "SNECK_TOKEN=%" PRIu64, facts->token);
        break;
    case 2:
        length = asprintf(&entry, "SNECK_DEADLINE_MS=%" PRId64, facts->deadline_ms);
        break;
    case 3:
        url = snk_secret_strip_url(facts->store_url);
        length = url != NULL ? asprintf(&entry, "SNECK_STORE=%s", url) : -1;
        free(url);
        break;
    default:
        return held_entry(facts);
    }
    return length < 0 ? NULL : entry;
}

static bool is_ours(const char *entry)
{
    for (size_t i = 0; i < OURS_COUNT; i++) {
        size_t length = strlen(ours[i]);
        if (strncmp(entry, ours[i], length) == 0 && entry[length] == '=')
            return true;
    }
    return false;
}

char **snk_environment_new(const snk_environment_facts *facts)
{
    size_t count = 0;
    while (environ[count] != NULL)
        count++;
    char **environment = calloc(count + OURS_COUNT + 1, sizeof *environment);
    if (environment == NULL)
        return NULL;
    size_t used = 0;
    for (size_t i = 0; i < count + OURS_COUNT; i++) {
        if (i < count && is_ours(environ[i]))
            continue;
        environment[used] = i < count ? strdup(environ[i]) : entry_of(facts, i - count);
        if (environment[used++] == NULL) {
            snk_environment_free(environment);
            return NULL;
        }
    }
    return environment;
}

void snk_environment_free(char **environment)
{
    if (environment == NULL)
        return;
    for (char **entry = environment; *entry != NULL; entry++)
        free(*entry);
    free(environment);
}
