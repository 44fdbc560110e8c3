#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/supervise.h"

#define READY_TIMEOUT_MS 10000
#define RESTART_PAUSE_NS (100 * SNK_NS_PER_MS) /* so that one that cannot live does not keep the machine busy */
#define FIRST_FREE_FD 16                       /* above the descriptors that the guard finds */

bool snk_guard_init(snk_guard *guard, const snk_lockset *set, const char *store_url, int page_fd)
{
    *guard = (snk_guard){
        .socket = -1,
        .page_fd = page_fd,
        .liveness_fd = snk_client_liveness_fd(set->client),
        .start_at_ns = 0,
    };
    snk_guard_letter *letter = &guard->letter;
    snk_copy_text(letter->url, sizeof letter->url, store_url);
    for (size_t i = 0; i < set->count; i++) {
        struct snk_guard_claim *claim = &letter->claims[letter->count++];
        snk_copy_text(claim->name, sizeof claim->name, set->members[i].name);
        if (!snk_lock_claim(set->members[i].lock, &claim->id))
            return false;
    }
    return true;
}

/* Runs in the child, after fork in a process with threads: only calls that are safe there. */
static _Noreturn void become(int page_fd, int socket, int liveness_fd)
{
    char name[] = "sneck";
    char command[] = SNK_GUARD_COMMAND;
    char *argv[] = { name, command, NULL };
    /* First out of the way of each other, then to where they are expected, where they survive the exec. */
    page_fd = fcntl(page_fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    socket = fcntl(socket, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    liveness_fd = liveness_fd >= 0 ? fcntl(liveness_fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD) : -1;
    bool moved = dup2(page_fd, SNK_GUARD_PAGE_FD) >= 0 && dup2(socket, SNK_GUARD_SOCKET_FD) >= 0;
    if (liveness_fd >= 0)
        moved = dup2(liveness_fd, SNK_GUARD_LIVENESS_FD) >= 0 && moved;
    else
        close(SNK_GUARD_LIVENESS_FD);
    if (moved)
        execv("/proc/self/exe", argv);
    _exit(1);
}

bool snk_guard_start(snk_guard *guard)
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        return false;
    guard->pid = fork();
    if (guard->pid == 0)
        become(guard->page_fd, sockets[1], guard->liveness_fd);
    int fork_errno = errno;
    close(sockets[1]);
    if (guard->pid < 0) {
        close(sockets[0]);
        guard->pid = 0;
        errno = fork_errno;
        return false;
    }
    guard->socket = sockets[0];
    guard->start_at_ns = SNK_NEVER_NS;
    /* It fits into the socket's buffer; if the guard is dead by now, the end of the socket will tell. */
    (void)send(guard->socket, &guard->letter, sizeof guard->letter, MSG_NOSIGNAL);
    return true;
}

bool snk_guard_wait_ready(const snk_guard *guard)
{
    char byte = 0;
    struct pollfd fd = { .fd = guard->socket, .events = POLLIN };
    int ready = 0;
    do
        ready = poll(&fd, 1, READY_TIMEOUT_MS);
    while (ready < 0 && errno == EINTR);
    return ready == 1 && recv(guard->socket, &byte, 1, MSG_DONTWAIT) == 1 && byte == SNK_GUARD_READY;
}

bool snk_guard_is_gone(snk_guard *guard)
{
    char byte = 0;
    ssize_t length = recv(guard->socket, &byte, 1, MSG_DONTWAIT);
    if (length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR)))
        return false; /* another one that reports to be ready */
    close(guard->socket);
    guard->socket = -1;
    guard->pid = 0;
    guard->start_at_ns = snk_time_add(snk_now_ns(), RESTART_PAUSE_NS);
    return true;
}

void snk_guard_deinit(snk_guard *guard)
{
    char byte = SNK_GUARD_DONE;
    if (guard->socket >= 0) {
        (void)send(guard->socket, &byte, 1, MSG_NOSIGNAL);
        close(guard->socket);
    }
    guard->socket = -1;
    explicit_bzero(&guard->letter, sizeof guard->letter);
}
