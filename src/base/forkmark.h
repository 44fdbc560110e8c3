/*
 * Tells a child of fork() from the process that made the mark, without a system call: one page that the kernel wipes in
 * the child. Where the kernel cannot do that, process ids are compared (which costs a system call).
 */
#ifndef SNK_BASE_FORKMARK_H
#define SNK_BASE_FORKMARK_H

#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

typedef struct snk_forkmark {
    const volatile char *page; /* owned; its first byte is 1, and 0 in a child; NULL: compare process ids */
    pid_t pid;
} snk_forkmark;

/* Never fails: without the page it is only slower. */
void snk_forkmark_init(snk_forkmark *mark);
void snk_forkmark_deinit(snk_forkmark *mark);

/*
 * True in a child of the process that made the mark. The byte changes only by fork(), which no thread can see happen:
 * a plain read is enough, and volatile only keeps the compiler from remembering it across a call that forks.
 */
static inline bool snk_forkmark_is_child(const snk_forkmark *mark)
{
    return mark->page != NULL ? *mark->page == 0 : mark->pid != getpid();
}

#endif
