/* What happened to a lock that was no release: the node `log` in its folder, a line an incident, the newest last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "store/zookeeper/zookeeper.h"

#define LINE_SIZE (SNK_WHY_LENGTH_MAX + SNK_OWNER_LENGTH_MAX + 160)
#define LOG_SIZE (SNK_INCIDENTS_MAX * LINE_SIZE)

static void write_line(const sneck_incident *incident, char line[LINE_SIZE])
{
    (void)snprintf(line, LINE_SIZE, "%lld %s %llu %s %s", (long long)incident->time_ms, incident->kind,
                   (unsigned long long)incident->token, incident->owner, incident->text);
    line[strcspn(line, "\n")] = '\0';
}

/* The lines of a log that are kept when one more comes. */
static const char *kept_lines(const char *text)
{
    size_t lines = 0;
    for (const char *at = text; *at != '\0'; at++)
        lines += *at == '\n';
    for (; lines >= SNK_INCIDENTS_MAX; lines--)
        text = strchr(text, '\n') + 1;
    return text;
}

typedef struct removal {
    const char *log;
    const char *path; /* of what is removed */
    const char *line; /* what is noted of it */
    int64_t until_ns;
} removal;

static snk_zk_outcome settle(snk_zk_store *store, const removal *removed, const snk_zk_reply *old, int *rc_out)
{
    char *text = malloc(LOG_SIZE + LINE_SIZE + 2);
    if (text == NULL)
        return SNK_ZK_NO_MEMORY;
    (void)snprintf(text, LOG_SIZE + LINE_SIZE + 2, "%.*s%s\n", LOG_SIZE, kept_lines(old->text), removed->line);
    snk_zk_trip trip = { .until_ns = removed->until_ns };
    snk_zk_request *request = &trip.requests[snk_zk_ask(&trip, SNK_ZK_SETTLE, removed->log)];
    request->other = removed->path;
    request->data = text;
    request->version = old->stat.version;
    snk_zk_back back;
    snk_zk_outcome outcome = snk_zk_travel(store->link, &trip, &back);
    if (outcome == SNK_ZK_ANSWERED)
        *rc_out = back.replies[0].rc;
    snk_zk_trip_end(&back);
    free(text);
    return outcome;
}

snk_zk_outcome snk_zk_remove_noted(snk_zk_store *store, const char *folder, const char *path,
                                   const sneck_incident *incident, int64_t until_ns, int *rc_out)
{
    char line[LINE_SIZE];
    snk_zk_path log;
    write_line(incident, line);
    snk_zk_below(folder, "log", log);
    removal removed = { .log = log, .path = path, .line = line, .until_ns = until_ns };
    snk_zk_trip trip = { .until_ns = until_ns };
    (void)snk_zk_ask(&trip, SNK_ZK_MAKE, log);
    (void)snk_zk_ask(&trip, SNK_ZK_GET, log);
    *rc_out = ZBADVERSION;
    snk_zk_outcome outcome = SNK_ZK_ANSWERED;
    /* Somebody else may have written to the log in between. */
    while (outcome == SNK_ZK_ANSWERED && *rc_out == ZBADVERSION) {
        snk_zk_back back;
        outcome = snk_zk_insist(store, &trip, &back);
        if (outcome == SNK_ZK_ANSWERED && back.replies[1].rc != ZOK)
            *rc_out = back.replies[1].rc;
        else if (outcome == SNK_ZK_ANSWERED)
            outcome = settle(store, &removed, &back.replies[1], rc_out);
        snk_zk_trip_end(&back);
    }
    return outcome;
}

/* A line is cut into its fields; false when it is none of ours. */
static bool show_line(char *line, int64_t oldest_ms, snk_view *view)
{
    char *rest = NULL;
    const char *time = strtok_r(line, " ", &rest);
    const char *kind = strtok_r(NULL, " ", &rest);
    const char *token = strtok_r(NULL, " ", &rest);
    const char *owner = strtok_r(NULL, " ", &rest);
    if (owner == NULL)
        return false;
    sneck_incident incident = {
        .time_ms = strtoll(time, NULL, 10),
        .kind = kind,
        .owner = owner,
        .text = rest == NULL ? "" : rest,
        .token = strtoull(token, NULL, 10),
    };
    if (incident.time_ms >= oldest_ms)
        snk_view_incident(view, &incident);
    return true;
}

void snk_zk_log_show(const char *text, snk_view *view)
{
    int64_t oldest_ms = snk_wall_us() / 1000 - (int64_t)SNK_INCIDENT_AGE_S * 1000;
    char line[LINE_SIZE];
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        size_t copied = length < sizeof line ? length : sizeof line - 1;
        memcpy(line, text, copied);
        line[copied] = '\0';
        (void)show_line(line, oldest_ms, view);
        text += length + (text[length] == '\n');
    }
}
