/*
 * The guard: a small process of its own that stops the command by the end of the lease even if sneck is dead, stopped
 * or hangs. This is sneck's side of it; the guard's own is in guard_process.h. The two share a page (page.h) and a
 * socket, whose end tells each of them at once when the other one is gone.
 */
#ifndef SNK_CLI_GUARD_H
#define SNK_CLI_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/ids.h"
#include "base/limits.h"
#include "lockset.h"

/* The hidden subcommand, and the descriptors that it finds open. */
#define SNK_GUARD_COMMAND "__guard"
#define SNK_GUARD_PAGE_FD 3
#define SNK_GUARD_SOCKET_FD 4
#define SNK_GUARD_LIVENESS_FD 5 /* missing where the store has none */
#define SNK_GUARD_FD_COUNT 3

/* What is said on the socket: a letter to the guard, which is there before the guard is, then a byte each way. */
#define SNK_GUARD_READY 'r'
#define SNK_GUARD_DONE 'd' /* everything is released: go away */

/* What is to be released, and where. It goes through the socket, because the URL may hold a password. */
typedef struct snk_guard_letter {
    char url[SNK_URL_LENGTH_MAX + 1];
    uint32_t count;
    struct snk_guard_claim {
        snk_id id;
        char name[SNK_NAME_LENGTH_MAX + 1];
    } claims[SNK_RUN_LOCKS_MAX];
} snk_guard_letter;

typedef struct snk_guard {
    pid_t pid;       /* 0: there is none */
    int socket;      /* -1: there is none */
    int page_fd;     /* borrowed */
    int liveness_fd; /* borrowed from the client; -1: the store has none */
    int64_t started_at_ns;
    int64_t start_at_ns; /* when another one is to be started; SNK_NEVER_NS while there is one */
    snk_guard_letter letter;
} snk_guard;

/* False when a lock is not held any more. */
bool snk_guard_init(snk_guard *guard, const snk_lockset *set, const char *store_url, int page_fd);

/* Starts it; false with errno. It is not on guard yet. */
bool snk_guard_start(snk_guard *guard);

/* Waits until it is on guard; false when it ended instead, or took too long. */
bool snk_guard_wait_ready(const snk_guard *guard);

/* Its socket is readable. True when it has died: another one is due at start_at_ns. */
bool snk_guard_is_gone(snk_guard *guard);

/* Sends it away, because nothing is left to guard. */
void snk_guard_deinit(snk_guard *guard);

#endif
