/*
 * The scripts are made of the same tables as --help, so that they know every flag; names of locks are asked of the
 * store by `sneck ls -q` when somebody presses the key.
 */
#include "completion.h"

#include <stdio.h>
#include <string.h>

#include "command.h"
#include "exit.h"
#include "output.h"

const snk_usage snk_usage_completion = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "print a script that completes commands, flags and names of locks",
    .notes = "  bash  source <(sneck completion bash)          in ~/.bashrc\n"
             "  zsh   sneck completion zsh > _sneck            in a folder of $fpath\n"
             "  fish  sneck completion fish | source           in ~/.config/fish/config.fish",
};

/* What the first operand of a subcommand is. */
static bool takes_name(const snk_usage *usage)
{
    return strstr(usage->operands, "NAME") != NULL || strstr(usage->operands, "GLOB") != NULL;
}

/* The words that a value may be, or NULL: "kill|warn" lists them, "DUR" does not. */
static const char *choices(const snk_usage *usage, const snk_flag *flag)
{
    const char *text = flag != NULL ? flag->value : usage->operands;
    return text != NULL && strchr(text, '|') != NULL ? text : NULL;
}

static bool is_shown(const snk_flag *flag)
{
    return flag->help != NULL;
}

/* Prints `text` with a backslash before each character of `special`. */
static void put_text(const char *text, const char *special)
{
    for (; *text != '\0'; text++) {
        if (strchr(special, *text) != NULL)
            putchar('\\');
        putchar(*text);
    }
}

/* The words of "DUR|never" that can be typed as they are: what stands for something else is in capitals. */
static void put_words(const char *text)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "|");
        if (*text >= 'a' && *text <= 'z')
            printf("%.*s ", (int)length, text);
        text += length + (text[length] == '|' ? 1 : 0);
    }
}

/* Inside '…' of bash and zsh a quote ends the text, comes as \', and begins it again. */
static void put_quoted(const char *text, const char *special)
{
    char one[2] = "";
    for (; *text != '\0'; text++) {
        one[0] = *text;
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            put_text(one, special);
    }
}

/* ---- bash ---------------------------------------------------------------------------------------------------------- */

/* All spellings of the flags of a table, or only of those that need a value. */
static void bash_put_flags(const snk_flag *flags, bool only_valued, const char *separator)
{
    for (const snk_flag *flag = flags; flag != NULL && snk_flag_is_set(flag); flag++) {
        if (!is_shown(flag) || (only_valued && flag->value == NULL))
            continue;
        if (flag->letter != 0)
            printf("%s-%c", separator, flag->letter);
        if (flag->name != NULL)
            printf("%s--%s", separator, flag->name);
    }
}

static void bash_put_choices(const snk_usage *usage)
{
    for (const snk_flag *flag = usage->flags; flag != NULL && snk_flag_is_set(flag); flag++) {
        if (!is_shown(flag) || flag->name == NULL || choices(usage, flag) == NULL)
            continue;
        printf("    %s:--%s) words='", usage->name, flag->name);
        put_words(flag->value);
        fputs("' ;;\n", stdout);
    }
}

static const char BASH_HEAD[] =
    "# Completion of sneck for bash.\n"
    "_sneck_names() {\n"
    "    local name\n"
    "    while IFS= read -r name; do\n"
    "        [[ $name == \"$1\"* ]] && COMPREPLY+=(\"$(printf %q \"$name\")\")\n"
    "    done < <(\"${COMP_WORDS[0]}\" ls -q \"${store[@]}\" 2>/dev/null)\n"
    "}\n"
    "_sneck() {\n"
    "    local cur prev command='' words='' valued='' flags='' operands=0 skip='' i word store=()\n"
    "    local line=${COMP_LINE:0:COMP_POINT}\n"
    "    cur=${line##*[[:space:]]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    COMPREPLY=()\n";

static const char BASH_WALK[] = "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                                "        word=${COMP_WORDS[i]}\n"
                                "        if [[ $skip ]]; then\n"
                                "            [[ $skip == --store ]] && store=(--store \"$word\")\n"
                                "            skip=''\n"
                                "        elif [[ \" $valued \" == *\" $word \"* ]]; then\n"
                                "            skip=$word\n"
                                "        elif [[ $word == -- ]]; then\n"
                                "            flags='' valued=''\n"
                                "        elif [[ $word == -* ]]; then\n"
                                "            :\n"
                                "        elif [[ ! $command ]]; then\n"
                                "            command=$word\n"
                                "            _sneck_flags \"$command\"\n"
                                "        else\n"
                                "            operands=$((operands + 1))\n"
                                "        fi\n"
                                "    done\n";

static const char BASH_TAIL[] = "    if [[ $words ]]; then\n"
                                "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                                "    elif [[ $skip || ! $command && $cur == '' && $operands -gt 0 ]]; then\n"
                                "        :\n"
                                "    elif [[ $cur == -* && $flags ]]; then\n"
                                "        COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"))\n"
                                "    elif [[ ! $command ]]; then\n"
                                "        COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))\n"
                                "    elif [[ $operands -eq 0 && \" $named \" == *\" $command \"* ]]; then\n"
                                "        _sneck_names \"$cur\"\n"
                                "        # bash takes a word with colons for several: only the last piece is replaced\n"
                                "        local before=${cur%\"${cur##*:}\"}\n"
                                "        [[ $COMP_WORDBREAKS == *:* ]] && COMPREPLY=(\"${COMPREPLY[@]#\"$before\"}\")\n"
                                "    elif [[ $operands -eq 1 && $command == run ]]; then\n"
                                "        COMPREPLY=($(compgen -c -- \"$cur\"))\n"
                                "    fi\n"
                                "}\n"
                                "complete -o default -F _sneck sneck\n";

static void bash_put_tables(void)
{
    fputs("    local commands='", stdout);
    for (const snk_command *command = snk_commands; command->usage != NULL; command++)
        printf("%s ", command->usage->name);
    fputs("' named='", stdout);
    for (const snk_command *command = snk_commands; command->usage != NULL; command++) {
        if (takes_name(command->usage))
            printf("%s ", command->usage->name);
    }
    fputs("'\n    valued='", stdout);
    bash_put_flags(snk_common_flags, true, " ");
    fputs("' flags='", stdout);
    bash_put_flags(snk_common_flags, false, " ");
    fputs("'\n", stdout);
}

/* Adds the flags of one subcommand to those of all. */
static void bash_put_command_flags(void)
{
    fputs("_sneck_flags() {\n    case $1 in\n", stdout);
    for (const snk_command *command = snk_commands; command->usage != NULL; command++) {
        printf("    %s) flags+='", command->usage->name);
        bash_put_flags(command->usage->flags, false, " ");
        fputs("' valued+='", stdout);
        bash_put_flags(command->usage->flags, true, " ");
        fputs("' ;;\n", stdout);
    }
    fputs("    esac\n}\n", stdout);
}

static void print_bash(void)
{
    bash_put_command_flags();
    fputs(BASH_HEAD, stdout);
    bash_put_tables();
    fputs(BASH_WALK, stdout);
    fputs("    case $command:$prev in\n", stdout);
    for (const snk_command *command = snk_commands; command->usage != NULL; command++) {
        bash_put_choices(command->usage);
        if (choices(command->usage, NULL) != NULL && command->usage->flags == NULL) {
            printf("    %s:%s) words='", command->usage->name, command->usage->name);
            put_words(command->usage->operands);
            fputs("' ;;\n", stdout);
        }
    }
    fputs("    esac\n", stdout);
    fputs(BASH_TAIL, stdout);
}

/* ---- zsh ----------------------------------------------------------------------------------------------------------- */

static void zsh_put_flag(const snk_usage *usage, const snk_flag *flag)
{
    fputs("            ", stdout);
    if (flag->letter != 0 && flag->name != NULL)
        printf("'(-%c --%s)'{-%c,--%s}", flag->letter, flag->name, flag->letter, flag->name);
    else if (flag->name != NULL)
        printf("--%s", flag->name);
    else
        printf("-%c", flag->letter);
    fputs("'[", stdout);
    put_quoted(flag->help, "[]:\\");
    putchar(']');
    if (flag->value != NULL) {
        fputs(":", stdout);
        put_quoted(flag->value, ":\\");
        putchar(':');
        if (choices(usage, flag) != NULL) {
            putchar('(');
            put_words(flag->value);
            putchar(')');
        } else if (strcmp(flag->value, "FILE") == 0) {
            fputs("_files", stdout);
        }
    }
    fputs("' \\\n", stdout);
}

static void zsh_put_flags(const snk_usage *usage, const snk_flag *flags)
{
    for (const snk_flag *flag = flags; flag != NULL && snk_flag_is_set(flag); flag++) {
        if (is_shown(flag))
            zsh_put_flag(usage, flag);
    }
}

static void zsh_put_command(const snk_usage *usage)
{
    printf("        %s)\n            _arguments -s -S \\\n", usage->name);
    zsh_put_flags(usage, usage->flags);
    zsh_put_flags(usage, snk_common_flags);
    if (usage->has_command)
        fputs("            '1:lock:_sneck_names' '*::command:_normal'\n", stdout);
    else if (takes_name(usage))
        fputs("            '1:lock:_sneck_names'\n", stdout);
    else if (choices(usage, NULL) != NULL && usage->flags == NULL) {
        fputs("            '1:shell:(", stdout);
        put_words(usage->operands);
        fputs(")'\n", stdout);
    } else {
        fputs("            && return\n", stdout);
    }
    fputs("            ;;\n", stdout);
}

static void print_zsh(void)
{
    fputs("#compdef sneck\n"
          "# Completion of sneck for zsh.\n"
          "_sneck_names() {\n"
          "    local -a names store\n"
          "    [[ -n ${opt_args[--store]} ]] && store=(--store \"${(Q)opt_args[--store]}\")\n"
          "    names=(\"${(@f)$(command sneck ls -q $store 2>/dev/null)}\")\n"
          "    names=(${names:#})\n"
          "    compadd -a names\n"
          "}\n"
          "_sneck() {\n"
          "    local context state line\n"
          "    local -a commands\n"
          "    local -A opt_args\n"
          "    commands=(\n",
          stdout);
    for (const snk_command *command = snk_commands; command->usage != NULL; command++) {
        printf("        '%s:", command->usage->name);
        put_quoted(command->usage->summary, ":\\");
        fputs("'\n", stdout);
    }
    fputs("    )\n    _arguments -C -s \\\n", stdout);
    zsh_put_flags(NULL, snk_common_flags);
    fputs("            '1:command:->command' '*::argument:->argument' && return\n"
          "    case $state in\n"
          "    command) _describe command commands ;;\n"
          "    argument)\n"
          "        case $words[1] in\n",
          stdout);
    for (const snk_command *command = snk_commands; command->usage != NULL; command++)
        zsh_put_command(command->usage);
    fputs("        esac\n        ;;\n    esac\n}\n"
          "if [[ $funcstack[1] = _sneck ]]; then _sneck \"$@\"; else compdef _sneck sneck; fi\n",
          stdout);
}

/* ---- fish ---------------------------------------------------------------------------------------------------------- */

static void fish_put_flags(const snk_usage *usage, const snk_flag *flags)
{
    for (const snk_flag *flag = flags; flag != NULL && snk_flag_is_set(flag); flag++) {
        if (!is_shown(flag))
            continue;
        fputs("complete -c sneck", stdout);
        if (usage != NULL)
            printf(" -n '__fish_seen_subcommand_from %s'", usage->name);
        if (flag->letter != 0)
            printf(" -s %c", flag->letter);
        if (flag->name != NULL)
            printf(" -l %s", flag->name);
        if (flag->value != NULL)
            fputs(strcmp(flag->value, "FILE") == 0 ? " -r" : " -x", stdout);
        if (choices(usage, flag) != NULL) {
            fputs(" -a '", stdout);
            put_words(flag->value);
            putchar('\'');
        }
        fputs(" -d '", stdout);
        put_text(flag->help, "'\\");
        fputs("'\n", stdout);
    }
}

static void print_fish(void)
{
    fputs("# Completion of sneck for fish.\n", stdout);
    fish_put_flags(NULL, snk_common_flags);
    for (const snk_command *command = snk_commands; command->usage != NULL; command++) {
        const snk_usage *usage = command->usage;
        printf("complete -c sneck -f -n __fish_use_subcommand -a %s -d '", usage->name);
        put_text(usage->summary, "'\\");
        fputs("'\n", stdout);
        fish_put_flags(usage, usage->flags);
        if (takes_name(usage)) {
            printf("complete -c sneck%s -n '__fish_seen_subcommand_from %s' -a '(command sneck ls -q 2>/dev/null)' "
                   "-d lock\n",
                   usage->has_command ? "" : " -f", usage->name);
        } else if (choices(usage, NULL) != NULL && usage->flags == NULL) {
            printf("complete -c sneck -f -n '__fish_seen_subcommand_from %s' -a '", usage->name);
            put_words(usage->operands);
            fputs("'\n", stdout);
        }
    }
}

int snk_cmd_completion(const snk_cli *given, int argc, char **argv)
{
    snk_arguments arguments;
    int code = snk_options_parse(&snk_usage_completion, given, argc, argv, NULL, &arguments);
    if (code != SNK_PARSED)
        return code;
    if (arguments.count != 1)
        return snk_operands_wrong(&snk_usage_completion, &arguments);
    const char *shell = arguments.operands[0];
    if (strcmp(shell, "bash") == 0) {
        print_bash();
    } else if (strcmp(shell, "zsh") == 0) {
        print_zsh();
    } else if (strcmp(shell, "fish") == 0) {
        print_fish();
    } else {
        snk_complain(&arguments.cli, "no completion for %s: it must be bash, zsh or fish", shell);
        return SNK_EXIT_USAGE;
    }
    return SNK_EXIT_OK;
}
