#include "page.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/deadline.h"

snk_page *snk_page_new(int *fd_out)
{
    int fd = memfd_create("sneck", MFD_CLOEXEC);
    if (fd < 0)
        return NULL;
    snk_page *page = ftruncate(fd, sizeof *page) == 0 ? snk_page_map(fd) : NULL;
    if (page == NULL) {
        close(fd);
        fd = -1;
    }
    *fd_out = fd;
    return page;
}

snk_page *snk_page_map(int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || status.st_size < (off_t)sizeof(snk_page))
        return NULL;
    void *memory = mmap(NULL, sizeof(snk_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void snk_page_unmap(snk_page *page)
{
    if (page != NULL)
        munmap(page, sizeof *page);
}

int64_t snk_page_deadline(snk_page *page)
{
    int64_t earliest = SNK_NEVER_NS;
    for (uint32_t i = 0; i < page->lock_count && i < SNK_RUN_LOCKS_MAX; i++) {
        int64_t deadline = atomic_load_explicit(&page->deadlines_ns[i], memory_order_acquire);
        if (deadline <= 0)
            return SNK_DEADLINE_LOST;
        if (deadline < earliest)
            earliest = deadline;
    }
    return earliest;
}

bool snk_page_begin_stop(snk_page *page, int64_t now_ns)
{
    int64_t none = 0;
    return atomic_compare_exchange_strong(&page->stop_begun_ns, &none, now_ns);
}
