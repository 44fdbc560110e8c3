/*
 * The page that `sneck run` shares with its guard. Every answered renewal leaves the new deadline in it, without a
 * system call and without the two talking to each other.
 */
#ifndef SNK_CLI_PAGE_H
#define SNK_CLI_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Locks that one `run` can take together. */
#define SNK_RUN_LOCKS_MAX 16

typedef struct snk_page {
    int64_t kill_after_ns;
    uint32_t lock_count;
    int32_t stop_signal;
    int32_t stops_on_loss; /* 0 with --on-lost warn: then a deadline means nothing to the guard */
    int32_t group;
    _Atomic int64_t deadlines_ns[SNK_RUN_LOCKS_MAX]; /* as snk_lock_mirror_deadline keeps them */
    _Atomic int64_t stop_begun_ns; /* when the group was told to stop, set by whoever tells it; 0: not */
    _Atomic int32_t group_is_gone; /* set by sneck: nothing is left to stop, its number may be another's */
} snk_page;

/* A new page, all zero, and the descriptor to pass on; NULL with errno. */
snk_page *snk_page_new(int *fd_out);

/* The page behind a descriptor; NULL with errno. */
snk_page *snk_page_map(int fd);
void snk_page_unmap(snk_page *page);

/* The earliest of the deadlines; SNK_DEADLINE_LOST when one of them is lost or not there. */
int64_t snk_page_deadline(snk_page *page);

/* True for the one who is to tell the group: the first who asks. */
bool snk_page_begin_stop(snk_page *page, int64_t now_ns);

#endif
