#include "show.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "deadlocks.h"
#include "escape.h"
#include "exit.h"
#include "json.h"
#include "lock_info.h"
#include "output.h"
#include "open_store.h"
#include "table.h"

#define TEXT_SIZE 900

struct show_options {
    bool deadlocks;
};

static const snk_flag flags[] = {
    { 0, "deadlocks", NULL, "instead: who waits for whom in a circle", SNK_FLAG_SWITCH,
      offsetof(struct show_options, deadlocks), 0, 0, NULL },
    { 0 },
};

const snk_usage snk_usage_show = {
    .name = "show",
    .operands = "NAME | --deadlocks",
    .summary = "tell all about one lock: holder, queue, incidents, nodes",
    .notes = "The token it shows is the one that sneck break wants.",
    .flags = flags,
};

static void print_head(const sneck_info *info)
{
    snk_escape_write(stdout, info->name);
    if (info->held)
        printf(": held, token %" PRIu64 "%s\n", info->token, info->fair ? ", fair" : "");
    else if (info->token != 0)
        printf(": free, last token %" PRIu64 "\n", info->token);
    else
        puts(": free");
}

static void print_way(const sneck_party *party)
{
    if (party->units > 0)
        printf("  %s of %" PRIu32 "\n", party->mode, party->units);
    else
        printf("  %s\n", party->mode);
}

static void print_holder(const sneck_party *holder)
{
    char party[SNK_PARTY_TEXT_SIZE];
    char text[TEXT_SIZE];
    char age[SNK_TIME_TEXT_SIZE];
    char left[SNK_TIME_TEXT_SIZE];
    printf("\nholder\n  %s  for %s, %s left\n", snk_escape(text, sizeof text, snk_party_text(party, holder)),
           snk_format_duration(age, holder->age_ms), snk_format_duration(left, holder->remaining_ms));
    printf("  owner %s\n", snk_escape(text, sizeof text, holder->owner));
    print_way(holder);
    if (holder->why[0] != '\0')
        printf("  why   %s\n", snk_escape(text, sizeof text, holder->why));
}

static void print_queue(const sneck_info *info)
{
    snk_table table = { .columns = 5 };
    printf("\nqueue, %zu waiting\n", info->waiter_count);
    for (size_t i = 0; i < info->waiter_count; i++) {
        char text[SNK_PARTY_TEXT_SIZE];
        const sneck_party *waiter = &info->waiters[i];
        snprintf(text, sizeof text, "  %zu", i + 1);
        snk_table_add(&table, text);
        snk_table_add(&table, snk_party_text(text, waiter));
        snk_table_add(&table, snk_format_duration(text, waiter->age_ms));
        snk_table_add(&table, waiter->owner);
        snk_table_add(&table, waiter->why);
    }
    snk_table_print(&table);
    snk_table_deinit(&table);
}

static void print_incidents(const sneck_info *info)
{
    snk_table table = { .columns = 5 };
    puts("\nincidents");
    for (size_t i = 0; i < info->incident_count; i++) {
        char text[SNK_PARTY_TEXT_SIZE];
        char time[SNK_TIME_TEXT_SIZE];
        const sneck_incident *incident = &info->incidents[i];
        snprintf(text, sizeof text, "  %s", snk_format_time(time, incident->time_ms));
        snk_table_add(&table, text);
        snk_table_add(&table, incident->kind);
        snprintf(text, sizeof text, "token %" PRIu64, incident->token);
        snk_table_add(&table, text);
        snk_table_add(&table, incident->owner);
        snk_table_add(&table, incident->text);
    }
    snk_table_print(&table);
    snk_table_deinit(&table);
}

/* "counts"; "young, counts in 12 s"; "away: why" */
static void describe_node(const sneck_node *node, char *text, size_t size)
{
    char left[SNK_TIME_TEXT_SIZE];
    if (node->counts_in_ms > 0)
        snprintf(text, size, "%s, counts in %s", node->state, snk_format_duration(left, node->counts_in_ms));
    else
        snprintf(text, size, "%s%s%s", node->state, node->trouble[0] == '\0' ? "" : ": ", node->trouble);
}

static void print_nodes(const sneck_info *info)
{
    snk_table table = { .columns = 5 };
    puts("\nnodes");
    for (size_t i = 0; i < info->node_count; i++) {
        char text[TEXT_SIZE];
        const sneck_node *node = &info->nodes[i];
        snprintf(text, sizeof text, "  %s", node->name);
        snk_table_add(&table, text);
        snk_table_add(&table, !info->held ? "" : node->holds ? "has it" : "has it not");
        snprintf(text, sizeof text, "latency %.2f ms", (double)node->latency_us / 1000);
        snk_table_add(&table, node->latency_us < 0 ? "" : text);
        snprintf(text, sizeof text, "clock %+.2f ms", (double)node->clock_offset_us / 1000);
        snk_table_add(&table, node->latency_us < 0 ? "" : text);
        describe_node(node, text, sizeof text);
        snk_table_add(&table, text);
    }
    snk_table_print(&table);
    snk_table_deinit(&table);
}

static void print(const snk_cli *cli, const sneck_info *info)
{
    if (cli->json) {
        snk_json json = snk_json_on(stdout);
        snk_lock_info_json(&json, info, true);
        snk_json_end(&json);
        return;
    }
    print_head(info);
    for (size_t i = 0; i < info->holder_count; i++)
        print_holder(&info->holders[i]);
    if (info->waiter_count > 0)
        print_queue(info);
    if (info->incident_count > 0)
        print_incidents(info);
    if (info->node_count > 0)
        print_nodes(info);
}

static int show_one(const snk_cli *cli, sneck_client *client, const char *name)
{
    sneck_info *info = NULL;
    sneck_error error;
    sneck_status status = sneck_inspect(client, name, &info, &error);
    if (status == SNECK_OK)
        print(cli, info);
    else
        snk_report(cli, &error);
    sneck_info_free(info);
    return snk_exit_of(status);
}

int snk_cmd_show(const snk_cli *given, int argc, char **argv)
{
    struct show_options options = { .deadlocks = false };
    snk_arguments arguments;
    sneck_client *client = NULL;
    int code = snk_options_parse(&snk_usage_show, given, argc, argv, &options, &arguments);
    if (code != SNK_PARSED)
        return code;
    if (arguments.count != (options.deadlocks ? 0 : 1))
        return snk_operands_wrong(&snk_usage_show, &arguments);
    code = options.deadlocks ? SNK_EXIT_OK : snk_lock_name_check(&arguments.cli, arguments.operands[0]);
    if (code == SNK_EXIT_OK)
        code = snk_cli_open_store(&arguments.cli, NULL, &client);
    if (code != SNK_EXIT_OK)
        return code;
    code = options.deadlocks ? snk_show_deadlocks(&arguments.cli, client)
                             : show_one(&arguments.cli, client, arguments.operands[0]);
    sneck_close(client);
    return code;
}
