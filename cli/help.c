#include "help.h"

#include <stdio.h>
#include <string.h>

#include "command.h"
#include "json.h"
#include "sneck.h"

#define FLAG_COLUMN 30

static void print_flag(const snk_flag *flag)
{
    char text[80] = "";
    if (flag->help == NULL)
        return;
    int used = snprintf(text, sizeof text, flag->letter != 0 ? "  -%c" : "    ", flag->letter);
    if (flag->name != NULL)
        used +=
            snprintf(text + used, sizeof text - (size_t)used, "%s--%s", flag->letter != 0 ? ", " : "  ", flag->name);
    if (flag->value != NULL)
        snprintf(text + used, sizeof text - (size_t)used, " %s", flag->value);
    if (strlen(text) < FLAG_COLUMN)
        printf("%-*s %s\n", FLAG_COLUMN, text, flag->help);
    else
        printf("%s\n%*s %s\n", text, FLAG_COLUMN, "", flag->help);
}

static void print_flags(const snk_flag *flags)
{
    for (const snk_flag *flag = flags; flag != NULL && snk_flag_is_set(flag); flag++)
        print_flag(flag);
}

static void print_overview(void)
{
    puts("usage: sneck COMMAND [flags]\n\nLocks for commands and programs.\n");
    for (const snk_command *command = snk_commands; command->usage != NULL; command++)
        printf("  %-12s %s\n", command->usage->name, command->usage->summary);
    puts("\nFlags of every command:");
    print_flags(snk_common_flags);
    puts("\nsneck COMMAND --help tells more. Durations: 250ms 1.5 30s 5m 1h; a bare number is seconds.");
}

void snk_help_print(const snk_usage *usage)
{
    if (usage == NULL) {
        print_overview();
        return;
    }
    printf("usage: sneck %s %s\n\n%s\n\n", usage->name, usage->operands, usage->summary);
    if (usage->flags != NULL && snk_flag_is_set(usage->flags)) {
        print_flags(usage->flags);
        putchar('\n');
    }
    puts("Flags of every command:");
    print_flags(snk_common_flags);
    if (usage->notes != NULL)
        printf("\n%s\n", usage->notes);
}

void snk_version_print(const snk_cli *cli)
{
    if (!cli->json) {
        printf("sneck %s\n", sneck_version_string());
        return;
    }
    snk_json json = snk_json_on(stdout);
    snk_json_open(&json, NULL, '{');
    snk_json_text(&json, "version", sneck_version_string());
    snk_json_close(&json, '}');
    snk_json_end(&json);
}
