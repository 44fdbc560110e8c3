#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/nearest.h"
#include "exit.h"
#include "help.h"
#include "output.h"
#include "secret.h"

#define PROBLEM_SIZE 120
#define NAME_SIZE 64

enum common {
    COMMON_STORE,
    COMMON_JSON,
    COMMON_QUIET,
    COMMON_VERBOSE,
    COMMON_HELP,
    COMMON_VERSION
};

/* --help and --version end the parsing, so they have no field: `max` tells which flag it is. */
const snk_flag snk_common_flags[] = {
    { 0, "store", "URL", "where the locks are (else $SNECK_STORE, else this machine)", SNK_FLAG_TEXT, 0, 0,
      COMMON_STORE, NULL },
    { 0, "json", NULL, "JSON for programs", SNK_FLAG_SWITCH, 0, 0, COMMON_JSON, NULL },
    { 'q', "quiet", NULL, "say nothing but errors", SNK_FLAG_SWITCH, 0, 0, COMMON_QUIET, NULL },
    { 'v', "verbose", NULL, "say more", SNK_FLAG_SWITCH, 0, 0, COMMON_VERBOSE, NULL },
    { 'h', "help", NULL, "show this", SNK_FLAG_SWITCH, 0, 0, COMMON_HELP, NULL },
    { 'V', "version", NULL, "show the version", SNK_FLAG_SWITCH, 0, 0, COMMON_VERSION, NULL },
    { 0 },
};

/* One parse. */
struct parser {
    const snk_usage *usage; /* NULL: before the subcommand */
    snk_arguments *arguments;
    void *options;
    char **next; /* what is not read yet; ends with NULL */
    int code;    /* SNK_PARSED until something ends it */
};

static const char *help_hint(const struct parser *parser, char *text, size_t size)
{
    bool inner = parser->usage != NULL;
    snprintf(text, size, "try: sneck %s%s--help", inner ? parser->usage->name : "", inner ? " " : "");
    return text;
}

static void fail(struct parser *parser, const char *what, const char *detail)
{
    char hint[NAME_SIZE];
    snk_complain(&parser->arguments->cli, "%s%s (%s)", what, detail, help_hint(parser, hint, sizeof hint));
    parser->code = SNK_EXIT_USAGE;
}

/* How a message calls a flag. */
static const char *flag_text(const snk_flag *flag, char *text, size_t size)
{
    if (flag->name != NULL)
        snprintf(text, size, "--%s", flag->name);
    else
        snprintf(text, size, "-%c", flag->letter);
    return text;
}

static const snk_flag *find_in(const snk_flag *flags, char letter, const char *name)
{
    for (const snk_flag *flag = flags; flag != NULL && snk_flag_is_set(flag); flag++) {
        if (name != NULL ? flag->name != NULL && strcmp(flag->name, name) == 0 : flag->letter == letter)
            return flag;
    }
    return NULL;
}

/* A subcommand's own flags win over the common ones. */
static const snk_flag *find(const struct parser *parser, char letter, const char *name)
{
    const snk_flag *own = parser->usage != NULL ? find_in(parser->usage->flags, letter, name) : NULL;
    return own != NULL ? own : find_in(snk_common_flags, letter, name);
}

static bool is_common(const snk_flag *flag)
{
    for (const snk_flag *common = snk_common_flags; snk_flag_is_set(common); common++) {
        if (flag == common)
            return true;
    }
    return false;
}

static void fail_unknown(struct parser *parser, const char *name)
{
    char detail[2 * NAME_SIZE + 32];
    snk_nearest nearest = snk_nearest_to(name);
    const snk_flag *tables[] = { parser->usage != NULL ? parser->usage->flags : NULL, snk_common_flags };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        for (const snk_flag *flag = tables[i]; flag != NULL && snk_flag_is_set(flag); flag++) {
            if (flag->name != NULL)
                snk_nearest_offer(&nearest, flag->name);
        }
    }
    if (nearest.best != NULL)
        snprintf(detail, sizeof detail, "%.*s; did you mean --%s?", NAME_SIZE, name, nearest.best);
    else
        snprintf(detail, sizeof detail, "%.*s", NAME_SIZE, name);
    fail(parser, "unknown flag --", detail);
}

static void fail_value(struct parser *parser, const snk_flag *flag, const char *value, const char *problem)
{
    char what[2 * NAME_SIZE + 4];
    char name[NAME_SIZE];
    snprintf(what, sizeof what, "%s %.*s: ", flag_text(flag, name, sizeof name), NAME_SIZE, value);
    fail(parser, what, problem);
}

/* From min to max, where a max of 0 is no limit. */
static bool in_range(const snk_flag *flag, int64_t number)
{
    return number >= flag->min && (flag->max == 0 || number <= flag->max);
}

static bool parse_number(const char *text, int64_t *number_out)
{
    char *end = NULL;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    *number_out = number;
    return errno == 0 && end != text && *end == '\0';
}

static bool parse_token(const char *text, uint64_t *token_out)
{
    char *end = NULL;
    errno = 0;
    unsigned long long token = strtoull(text, &end, 10);
    *token_out = token;
    return errno == 0 && *text >= '0' && *text <= '9' && *end == '\0' && token > 0;
}

static void describe_range(const snk_flag *flag, const char *what, char *problem, size_t size)
{
    const char *unit = flag->kind == SNK_FLAG_DURATION ? " ms" : "";
    if (flag->max != 0)
        snprintf(problem, size, "must be %s from %" PRId64 "%s to %" PRId64 "%s", what, flag->min, unit, flag->max,
                 unit);
    else if (flag->min != 0)
        snprintf(problem, size, "must be %s of at least %" PRId64 "%s", what, flag->min, unit);
    else
        snprintf(problem, size, "must be %s", what);
}

static void set_own(struct parser *parser, const snk_flag *flag, const char *given)
{
    static const char duration[] = "a duration such as 250ms, 1.5, 30s, 5m or 1h";
    const char *value = given != NULL ? given : "";
    if (parser->options == NULL)
        return; /* a subcommand without flags of its own */
    void *field = (char *)parser->options + flag->offset;
    char problem[PROBLEM_SIZE] = "";
    int64_t number = 0;
    uint64_t token = 0;
    switch (flag->kind) {
    case SNK_FLAG_SWITCH:
    case SNK_FLAG_OFF:
        *(bool *)field = flag->kind == SNK_FLAG_SWITCH;
        break;
    case SNK_FLAG_TEXT:
        *(const char **)field = value;
        break;
    case SNK_FLAG_DURATION:
        if (snk_duration_parse_ms(value, &number) && in_range(flag, number))
            *(int64_t *)field = number;
        else
            describe_range(flag, duration, problem, sizeof problem);
        break;
    case SNK_FLAG_NUMBER:
        if (parse_number(value, &number) && in_range(flag, number))
            *(int64_t *)field = number;
        else
            describe_range(flag, "a number", problem, sizeof problem);
        break;
    case SNK_FLAG_TOKEN:
        if (parse_token(value, &token))
            *(uint64_t *)field = token;
        else
            snprintf(problem, sizeof problem, "must be a token, as `sneck show` prints it");
        break;
    case SNK_FLAG_CALL:
        if (!flag->parse(parser->options, value, problem, sizeof problem) && problem[0] == '\0')
            snprintf(problem, sizeof problem, "is not allowed");
        break;
    case SNK_FLAG_IGNORED:
        break;
    }
    if (problem[0] != '\0')
        fail_value(parser, flag, value, problem);
}

static void set_common(struct parser *parser, const snk_flag *flag, char *value)
{
    snk_cli *cli = &parser->arguments->cli;
    switch ((enum common)flag->max) {
    case COMMON_STORE:
        if (!snk_secret_take_url(value, cli->store, sizeof cli->store)) {
            fail(parser, "--store: ", "the URL is empty or too long");
            parser->code = SNK_EXIT_CONFIG;
        }
        break;
    case COMMON_JSON:
        cli->json = true;
        break;
    case COMMON_QUIET:
        cli->quiet = true;
        break;
    case COMMON_VERBOSE:
        cli->verbose = true;
        break;
    case COMMON_HELP:
        snk_help_print(parser->usage);
        parser->code = SNK_EXIT_OK;
        break;
    case COMMON_VERSION:
        snk_version_print(cli);
        parser->code = SNK_EXIT_OK;
        break;
    }
}

static void set(struct parser *parser, const snk_flag *flag, char *value)
{
    if (is_common(flag))
        set_common(parser, flag, value);
    else
        set_own(parser, flag, value);
}

/* The value of a flag: the rest of its own word, or the next word. */
static char *take_value(struct parser *parser, const snk_flag *flag, char *rest)
{
    char name[NAME_SIZE];
    if (rest != NULL)
        return rest;
    if (*parser->next != NULL)
        return *parser->next++;
    fail(parser, flag_text(flag, name, sizeof name), " needs a value");
    return NULL;
}

static void read_long(struct parser *parser, char *word)
{
    char name[NAME_SIZE];
    char *rest = strchr(word, '=');
    if (rest != NULL)
        *rest++ = '\0';
    const snk_flag *flag = find(parser, 0, word);
    if (flag == NULL) {
        fail_unknown(parser, word);
    } else if (flag->value != NULL) {
        char *value = take_value(parser, flag, rest);
        if (value != NULL)
            set(parser, flag, value);
    } else if (rest != NULL) {
        fail(parser, flag_text(flag, name, sizeof name), " takes no value");
    } else {
        set(parser, flag, NULL);
    }
}

/* "-nE0": switches may share a word, and a value may follow at once. */
static void read_letters(struct parser *parser, char *letters)
{
    while (*letters != '\0' && parser->code == SNK_PARSED) {
        char letter[] = { *letters++, '\0' };
        const snk_flag *flag = find(parser, letter[0], NULL);
        if (flag == NULL) {
            fail(parser, "unknown flag -", letter);
        } else if (flag->value == NULL) {
            set(parser, flag, NULL);
        } else {
            char *value = take_value(parser, flag, *letters != '\0' ? letters : NULL);
            if (value != NULL)
                set(parser, flag, value);
            return;
        }
    }
}

/* True when the words from here on are operands, whatever they look like. */
static bool flags_end_here(const struct parser *parser)
{
    int count = parser->arguments->count;
    return parser->usage == NULL ? count == 1 : parser->usage->has_command && count == 2;
}

static int parse(struct parser *parser)
{
    snk_arguments *arguments = parser->arguments;
    char **end = parser->next; /* of the operands: they move to the front of argv */
    bool only_operands = false;
    arguments->operands = parser->next;
    arguments->count = 0;
    while (*parser->next != NULL && parser->code == SNK_PARSED) {
        char *word = *parser->next++;
        if (only_operands || word[0] != '-' || word[1] == '\0') {
            *end++ = word;
            arguments->count++;
            only_operands = only_operands || flags_end_here(parser);
        } else if (strcmp(word, "--") == 0) {
            only_operands = true;
        } else if (word[1] == '-') {
            read_long(parser, word + 2);
        } else {
            read_letters(parser, word + 1);
        }
    }
    *end = NULL;
    return parser->code;
}

int snk_options_parse(const snk_usage *usage, const snk_cli *given, int argc, char **argv, void *options,
                      snk_arguments *arguments_out)
{
    (void)argc; /* argv ends with NULL */
    *arguments_out = (snk_arguments){ .cli = *given };
    struct parser parser = {
        .usage = usage, .arguments = arguments_out, .options = options, .next = argv + 1, .code = SNK_PARSED
    };
    return parse(&parser);
}

int snk_options_parse_common(int argc, char **argv, snk_arguments *arguments_out)
{
    (void)argc;
    *arguments_out = (snk_arguments){ .count = 0 };
    struct parser parser = { .arguments = arguments_out, .next = argv + 1, .code = SNK_PARSED };
    return parse(&parser);
}

int snk_operands_wrong(const snk_usage *usage, const snk_arguments *arguments)
{
    snk_complain(&arguments->cli, "usage: sneck %s %s (try: sneck %s --help)", usage->name, usage->operands,
                 usage->name);
    return SNK_EXIT_USAGE;
}
