#include "base/forkmark.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

static size_t page_size(void)
{
    long size = sysconf(_SC_PAGESIZE);
    return size > 0 ? (size_t)size : 4096;
}

void snk_forkmark_init(snk_forkmark *mark)
{
    *mark = (snk_forkmark){ .pid = getpid() };
    size_t size = page_size();
    char *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, size, MADV_WIPEONFORK) != 0) {
        (void)munmap(page, size);
        return;
    }
    *page = 1;
    mark->page = page;
}

void snk_forkmark_deinit(snk_forkmark *mark)
{
    if (mark->page != NULL)
        (void)munmap((void *)(uintptr_t)mark->page, page_size());
    mark->page = NULL;
}
