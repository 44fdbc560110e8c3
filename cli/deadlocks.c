#include "deadlocks.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "circle.h"
#include "escape.h"
#include "exit.h"
#include "json.h"
#include "output.h"

#define TEXT_SIZE 900

typedef struct survey {
    snk_stakes stakes;
    int64_t begun_ns;
} survey;

/*
 * Locks are looked at one after the other. Who was there before the first look was there all the time until the look
 * at his own lock: so what counts was all true at one moment.
 */
static bool take(void *context, const sneck_info *info)
{
    survey *self = context;
    int64_t passed_ms = (snk_now_ns() - self->begun_ns) / SNK_NS_PER_MS + 1;
    snk_stakes_add(&self->stakes, info, passed_ms);
    return !self->stakes.out_of_memory;
}

static void print_member(const snk_stakes *stakes, const snk_stake *member)
{
    char text[TEXT_SIZE];
    const snk_stake *blocker = &stakes->at[member->blocker];
    printf("  %s:%" PRId64, snk_escape(text, sizeof text, member->host), member->pid);
    printf(" waits for %s", snk_escape(text, sizeof text, member->lock));
    printf(", %s by %s", blocker->waits ? "wanted first" : "held", snk_escape(text, sizeof text, blocker->host));
    printf(":%" PRId64 "\n", blocker->pid);
}

static void put_member(snk_json *json, const snk_stakes *stakes, const snk_stake *member)
{
    const snk_stake *blocker = &stakes->at[member->blocker];
    snk_json_open(json, NULL, '{');
    snk_json_text(json, "waits_for", member->lock);
    snk_json_text(json, "mode", member->mode);
    snk_json_text(json, "owner", member->owner);
    snk_json_text(json, "host", member->host);
    snk_json_int(json, "pid", member->pid);
    snk_json_open(json, "blocker", '{');
    snk_json_bool(json, "holds", !blocker->waits);
    snk_json_text(json, "owner", blocker->owner);
    snk_json_text(json, "host", blocker->host);
    snk_json_int(json, "pid", blocker->pid);
    snk_json_close(json, '}');
    snk_json_close(json, '}');
}

static size_t length_of(const snk_stakes *stakes, size_t first)
{
    size_t length = 1;
    for (size_t i = stakes->at[first].next; i != first; i = stakes->at[i].next)
        length++;
    return length;
}

static void tell_circle(const snk_stakes *stakes, size_t first, snk_json *json)
{
    if (json != NULL)
        snk_json_open(json, NULL, '[');
    else
        printf("deadlock of %zu\n", length_of(stakes, first));
    size_t i = first;
    do {
        if (json != NULL)
            put_member(json, stakes, &stakes->at[i]);
        else
            print_member(stakes, &stakes->at[i]);
        i = stakes->at[i].next;
    } while (i != first);
    if (json != NULL)
        snk_json_close(json, ']');
}

static bool tell(const snk_cli *cli, snk_stakes *stakes)
{
    snk_json json = snk_json_on(stdout);
    bool found = false;
    if (cli->json) {
        snk_json_open(&json, NULL, '{');
        snk_json_open(&json, "deadlocks", '[');
    }
    for (size_t first = snk_stakes_next_circle(stakes); first < stakes->count; first = snk_stakes_next_circle(stakes)) {
        tell_circle(stakes, first, cli->json ? &json : NULL);
        found = true;
    }
    if (cli->json) {
        snk_json_close(&json, ']');
        snk_json_close(&json, '}');
        snk_json_end(&json);
    } else if (!found && !cli->quiet) {
        puts("no deadlocks");
    }
    return found;
}

int snk_show_deadlocks(const snk_cli *cli, sneck_client *client)
{
    survey self = { .begun_ns = snk_now_ns() };
    sneck_error error;
    sneck_status status = sneck_list(client, NULL, take, &self, &error);
    int code = snk_exit_of(status);
    if (status != SNECK_OK) {
        snk_report(cli, &error);
    } else if (self.stakes.out_of_memory) {
        snk_complain(cli, "out of memory");
        code = SNK_EXIT_INTERNAL;
    } else {
        snk_stakes_find_stuck(&self.stakes);
        code = tell(cli, &self.stakes) ? SNK_EXIT_CONFLICT : SNK_EXIT_OK;
    }
    snk_stakes_deinit(&self.stakes);
    return code;
}
