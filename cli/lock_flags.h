/* The flags of `run` and `hold` that say how a lock is taken and kept. */
#ifndef SNK_CLI_LOCK_FLAGS_H
#define SNK_CLI_LOCK_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "exit.h"
#include "lockset.h"
#include "options.h"
#include "sneck.h"

typedef struct snk_lock_flags {
    bool nonblock;
    bool fair;
    bool shared;
    bool keeps_quiet;    /* being busy is nothing to talk about: -E 0 */
    int64_t slots;       /* 0: not a semaphore */
    int64_t wait_ms;     /* SNECK_FOREVER: no limit */
    int64_t busy_code;   /* exit code when it cannot be had */
    int64_t lease_ms;    /* 0: as the store's URL or the environment says */
    int64_t renew_ms;    /* 0: a third of the lease; SNECK_NEVER */
    int64_t watchdog_ms; /* 0: not given; SNECK_NEVER */
    int64_t max_hold_ms; /* 0: no limit */
    sneck_recovery recovery;
    const char *why;
} snk_lock_flags;

#define SNK_LOCK_FLAGS_INIT                                                                                            \
    {                                                                                                                  \
        .wait_ms = SNECK_FOREVER, .busy_code = SNK_EXIT_BUSY                                                           \
    }

bool snk_lock_flags_parse_busy_code(void *options, const char *value, char *problem, size_t size);
bool snk_lock_flags_parse_renew(void *options, const char *value, char *problem, size_t size);
bool snk_lock_flags_parse_watchdog(void *options, const char *value, char *problem, size_t size);
bool snk_lock_flags_parse_recovery(void *options, const char *value, char *problem, size_t size);

/* Rows for a table of flags. The subcommand's options must begin with a snk_lock_flags. */
#define SNK_LOCK_FLAG_ROWS                                                                                                \
    { 'x', "exclusive", NULL, "take it for ourselves alone (the default)", SNK_FLAG_IGNORED, 0, 0, 0, NULL },             \
        { 'e', NULL, NULL, NULL, SNK_FLAG_IGNORED, 0, 0, 0, NULL }, { 's',                                                \
                                                                      "shared",                                           \
                                                                      NULL,                                               \
                                                                      "share it with others that share it",               \
                                                                      SNK_FLAG_SWITCH,                                    \
                                                                      offsetof(snk_lock_flags, shared),                   \
                                                                      0,                                                  \
                                                                      0,                                                  \
                                                                      NULL },                                             \
        { 0, "slots",   "N", "be one of at most N at once", SNK_FLAG_NUMBER, offsetof(snk_lock_flags, slots),             \
          1, INT32_MAX, NULL },                                                                                           \
        { 'n', "nonblock", NULL, "do not wait", SNK_FLAG_SWITCH, offsetof(snk_lock_flags, nonblock), 0, 0, NULL },        \
        { 0, "nb", NULL, NULL, SNK_FLAG_SWITCH, offsetof(snk_lock_flags, nonblock), 0, 0, NULL },                         \
        { 0, "nonblocking", NULL, NULL, SNK_FLAG_SWITCH, offsetof(snk_lock_flags, nonblock), 0, 0, NULL },                \
        { 'w', "wait", "DUR", "wait at most so long", SNK_FLAG_DURATION, offsetof(snk_lock_flags, wait_ms), 0, 0, NULL }, \
        { 0, "timeout", "DUR", NULL, SNK_FLAG_DURATION, offsetof(snk_lock_flags, wait_ms), 0, 0, NULL },                  \
        { 'E',                                                                                                            \
          "conflict-exit-code",                                                                                           \
          "N",                                                                                                            \
          "exit code when it cannot be had (75; 0 also says nothing)",                                                    \
          SNK_FLAG_CALL,                                                                                                  \
          0,                                                                                                              \
          0,                                                                                                              \
          0,                                                                                                              \
          snk_lock_flags_parse_busy_code },                                                                               \
        { 0, "fair", NULL, "first come, first served", SNK_FLAG_SWITCH, offsetof(snk_lock_flags, fair), 0, 0, NULL },     \
        { 0,                                                                                                              \
          "lease",                                                                                                        \
          "DUR",                                                                                                          \
          "how long it stays ours without a sign of life (30s)",                                                          \
          SNK_FLAG_DURATION,                                                                                              \
          offsetof(snk_lock_flags, lease_ms),                                                                             \
          SNK_LEASE_MS_MIN,                                                                                               \
          SNK_LEASE_MS_MAX,                                                                                               \
          NULL },                                                                                                         \
        { 0,                                                                                                              \
          "renew",                                                                                                        \
          "DUR|never",                                                                                                    \
          "how often the lease is renewed (a third of it)",                                                               \
          SNK_FLAG_CALL,                                                                                                  \
          0,                                                                                                              \
          0,                                                                                                              \
          0,                                                                                                              \
          snk_lock_flags_parse_renew },                                                                                   \
        { 0, "watchdog", "DUR|off", "how often the watchdog looks (5s)", SNK_FLAG_CALL,                                   \
          0, 0,          0,         snk_lock_flags_parse_watchdog },                                                      \
        { 0,                                                                                                              \
          "recovery",                                                                                                     \
          "HOW",                                                                                                          \
          "what happens to a lost lock: release, notify or reacquire",                                                    \
          SNK_FLAG_CALL,                                                                                                  \
          0,                                                                                                              \
          0,                                                                                                              \
          0,                                                                                                              \
          snk_lock_flags_parse_recovery },                                                                                \
        { 0,                                                                                                              \
          "max-hold",                                                                                                     \
          "DUR",                                                                                                          \
          "never hold it longer than this",                                                                               \
          SNK_FLAG_DURATION,                                                                                              \
          offsetof(snk_lock_flags, max_hold_ms),                                                                          \
          1,                                                                                                              \
          0,                                                                                                              \
          NULL },                                                                                                         \
    {                                                                                                                     \
        0, "why", "TEXT", "a reason, shown to others", SNK_FLAG_TEXT, offsetof(snk_lock_flags, why), 0, 0, NULL           \
    }

/*
 * Everything about the flags and names that can be known before any I/O. SNK_EXIT_OK, or the exit code after a
 * complaint.
 */
int snk_lock_flags_check(const snk_cli *cli, const snk_lock_flags *flags, const char *const names[], size_t count);

/* How long to wait for the lock: 0, a limit, or SNECK_FOREVER. */
int64_t snk_lock_flags_wait_ms(const snk_lock_flags *flags);

/* The lease that will apply, and the interval of its renewal (SNECK_NEVER: none). */
int64_t snk_lock_flags_lease_ms(const snk_cli *cli, const snk_lock_flags *flags);
int64_t snk_lock_flags_renew_ms(const snk_lock_flags *flags, int64_t lease_ms);

/* How the locks are to be taken. */
snk_lockset_way snk_lock_flags_way(const snk_lock_flags *flags);

/* Opens the store with what the flags say about the client. SNK_EXIT_OK, or the exit code after a complaint. */
int snk_lock_flags_open(const snk_cli *cli, const snk_lock_flags *flags, sneck_client **client_out);

#endif
