/* The flags of `sneck run`. */
#ifndef SNK_CLI_RUN_OPTIONS_H
#define SNK_CLI_RUN_OPTIONS_H

#include "lock_flags.h"
#include "page.h"

typedef struct snk_run_options {
    snk_lock_flags lock;                  /* first: the rows of SNK_LOCK_FLAG_ROWS count on it */
    const char *names[SNK_RUN_LOCKS_MAX]; /* NAME, then each --also */
    size_t name_count;
    const char *shell_command; /* -c; NULL: a command with arguments */
    int64_t min_hold_ms;
    int64_t kill_after_ms;
    bool warns_only; /* --on-lost warn */
    int stop_signal;
} snk_run_options;

extern const snk_flag snk_run_flags[];

snk_run_options snk_run_options_default(void);

/* Everything that can be known before any I/O. SNK_EXIT_OK, or the exit code after a complaint. */
int snk_run_options_check(const snk_cli *cli, const snk_run_options *options);

#endif
