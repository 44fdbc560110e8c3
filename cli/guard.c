#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "client/supervise.h"

#define READY_TIMEOUT_MS 10000
#define RESTART_PAUSE_NS (100 * SNK_NS_PER_MS) /* between starts, so that guards that cannot live keep nobody busy */
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

/*
 * Sockets between us and a guard, with the letter in them already: whatever happens to us once the guard is there, it
 * waits for nobody.
 */
static bool open_sockets(const snk_guard_letter *letter, int sockets[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        return false;
    if (send(sockets[0], letter, sizeof *letter, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof *letter)
        return true;
    int send_errno = errno;
    close(sockets[0]);
    close(sockets[1]);
    errno = send_errno;
    return false;
}

/* In a session of its own and with every signal blocked, from its first moment on. Returns 0 or an errno. */
static int prepare(posix_spawnattr_t *attributes)
{
    sigset_t all;
    sigfillset(&all);
    (void)posix_spawnattr_setsigmask(attributes, &all);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
}

/* Where it expects its descriptors. `from` must be out of the way of where they go. Returns 0 or an errno. */
static int place(posix_spawn_file_actions_t *actions, const int from[SNK_GUARD_FD_COUNT])
{
    int failure = 0;
    for (int i = 0; i < SNK_GUARD_FD_COUNT && failure == 0; i++) {
        int to = SNK_GUARD_PAGE_FD + i;
        failure = from[i] >= 0 ? posix_spawn_file_actions_adddup2(actions, from[i], to)
                               : posix_spawn_file_actions_addclose(actions, to);
    }
    return failure;
}

/*
 * Not by fork: that waits for what other threads do in the store just now (see store/sqlite/forkgate.h), and we are the
 * only ones who watch over the command until the guard does. Returns 0 or an errno.
 */
static int spawn(pid_t *pid_out, const int from[SNK_GUARD_FD_COUNT])
{
    char name[] = "sneck";
    char command[] = SNK_GUARD_COMMAND;
    char *argv[] = { name, command, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure != 0)
        return failure;
    failure = posix_spawnattr_init(&attributes);
    if (failure == 0) {
        failure = prepare(&attributes);
        if (failure == 0)
            failure = place(&actions, from);
        if (failure == 0)
            failure = posix_spawn(pid_out, "/proc/self/exe", &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failure;
}

static int spawn_with(const snk_guard *guard, int socket, pid_t *pid_out)
{
    int own[SNK_GUARD_FD_COUNT] = { guard->page_fd, socket, guard->liveness_fd };
    int away[SNK_GUARD_FD_COUNT];
    int failure = 0;
    for (int i = 0; i < SNK_GUARD_FD_COUNT; i++) {
        away[i] = own[i] >= 0 ? fcntl(own[i], F_DUPFD_CLOEXEC, FIRST_FREE_FD) : -1;
        if (own[i] >= 0 && away[i] < 0)
            failure = errno;
    }
    if (failure == 0)
        failure = spawn(pid_out, away);
    for (int i = 0; i < SNK_GUARD_FD_COUNT; i++) {
        if (away[i] >= 0)
            close(away[i]);
    }
    return failure;
}

bool snk_guard_start(snk_guard *guard)
{
    int sockets[2];
    if (!open_sockets(&guard->letter, sockets))
        return false;
    int failure = spawn_with(guard, sockets[1], &guard->pid);
    close(sockets[1]);
    if (failure != 0) {
        close(sockets[0]);
        guard->pid = 0;
        errno = failure;
        return false;
    }
    guard->socket = sockets[0];
    guard->started_at_ns = snk_now_ns();
    guard->start_at_ns = SNK_NEVER_NS;
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
    guard->start_at_ns = snk_time_add(guard->started_at_ns, RESTART_PAUSE_NS);
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
