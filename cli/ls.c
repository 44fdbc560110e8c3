#include "ls.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/name.h"
#include "escape.h"
#include "exit.h"
#include "json.h"
#include "lock_info.h"
#include "output.h"
#include "open_store.h"
#include "table.h"

const snk_usage snk_usage_ls = {
    .name = "ls",
    .operands = "[GLOB]",
    .summary = "list the locks that are held or waited for",
    .notes = "In GLOB, * and ? match any character, also '/'; quote it for your shell.\n"
             "With -q it prints the names alone, one a line, as they are.",
};

enum form {
    FORM_TABLE,
    FORM_NAMES,
    FORM_JSON
};

struct listing {
    enum form form;
    snk_table table;
    snk_json json;
};

static void add_row(snk_table *table, const sneck_info *info)
{
    char text[SNK_PARTY_TEXT_SIZE];
    char time[SNK_TIME_TEXT_SIZE];
    char number[24];
    snk_table_add(table, info->name);
    snk_table_add(table, info->held ? snk_party_text(text, &info->holder) : "-");
    snk_table_add(table, info->held ? snk_format_duration(time, info->holder.age_ms) : "-");
    snk_table_add(table, info->held ? snk_format_duration(time, info->holder.remaining_ms) : "-");
    snprintf(number, sizeof number, "%" PRIu64, info->token);
    snk_table_add(table, number);
    snprintf(number, sizeof number, "%zu", info->waiter_count);
    snk_table_add(table, number);
    snk_table_add(table, info->held ? info->holder.why : "");
}

/* As it is, for scripts; but what is no name and yet in the store may be made to hurt a terminal. */
static void print_name(const char *name)
{
    if (snk_name_check(name, NULL) == SNECK_OK)
        fputs(name, stdout);
    else
        snk_escape_write(stdout, name);
    putchar('\n');
}

static bool add(void *context, const sneck_info *info)
{
    struct listing *listing = context;
    switch (listing->form) {
    case FORM_TABLE:
        add_row(&listing->table, info);
        break;
    case FORM_NAMES:
        print_name(info->name);
        break;
    case FORM_JSON:
        snk_lock_info_json(&listing->json, info, false);
        break;
    }
    return ferror(stdout) == 0 && !listing->table.out_of_memory;
}

static void begin(struct listing *listing)
{
    static const char *const heads[] = { "NAME", "HOLDER", "AGE", "LEFT", "TOKEN", "WAITERS", "WHY" };
    listing->table.columns = sizeof heads / sizeof heads[0];
    listing->json = snk_json_on(stdout);
    if (listing->form == FORM_JSON) {
        snk_json_open(&listing->json, NULL, '{');
        snk_json_open(&listing->json, "locks", '[');
    }
    for (size_t i = 0; i < listing->table.columns && listing->form == FORM_TABLE; i++)
        snk_table_add(&listing->table, heads[i]);
}

static void end(struct listing *listing)
{
    if (listing->form == FORM_TABLE)
        snk_table_print(&listing->table);
    if (listing->form == FORM_JSON) {
        snk_json_close(&listing->json, ']');
        snk_json_close(&listing->json, '}');
        snk_json_end(&listing->json);
    }
}

static int list(const snk_cli *cli, sneck_client *client, const char *pattern)
{
    struct listing listing = { .form = cli->json ? FORM_JSON : cli->quiet ? FORM_NAMES : FORM_TABLE };
    sneck_error error;
    begin(&listing);
    sneck_status status = sneck_list(client, pattern, add, &listing, &error);
    int code = snk_exit_of(status);
    if (status != SNECK_OK) {
        snk_report(cli, &error);
    } else if (listing.table.out_of_memory) {
        snk_complain(cli, "out of memory");
        code = SNK_EXIT_INTERNAL;
    } else {
        end(&listing);
    }
    snk_table_deinit(&listing.table);
    return code;
}

int snk_cmd_ls(const snk_cli *given, int argc, char **argv)
{
    snk_arguments arguments;
    sneck_client *client = NULL;
    int code = snk_options_parse(&snk_usage_ls, given, argc, argv, NULL, &arguments);
    if (code != SNK_PARSED)
        return code;
    if (arguments.count > 1)
        return snk_operands_wrong(&snk_usage_ls, &arguments);
    code = snk_cli_open_store(&arguments.cli, NULL, &client);
    if (code != SNK_EXIT_OK)
        return code;
    code = list(&arguments.cli, client, arguments.operands[0]);
    sneck_close(client);
    return code;
}
