#include "store/postgres/dial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "store/postgres/errors.h"

/* Shared by the asker and the thread that connects; whoever lets go last frees it. */
typedef struct dialing {
    _Atomic int references;
    snk_pg_target *target; /* owned reference */
    size_t host;           /* which of several */
    bool is_bare;          /* without our settings */
    int64_t until_ns;
    int done_fd;        /* owned; readable when `connection` is decided */
    PGconn *connection; /* owned; written by the thread before it lets go of `is_done` */
    _Atomic bool is_done;
} dialing;

short snk_pg_poll(int fd, short events, int stop_fd, int64_t until_ns)
{
    for (;;) {
        struct pollfd fds[] = { { .fd = fd, .events = events }, { .fd = stop_fd, .events = POLLIN } };
        int64_t left_ns = until_ns - snk_now_ns();
        struct timespec timeout = snk_timespec(left_ns > 0 ? left_ns : 0);
        int ready = ppoll(fds, stop_fd >= 0 ? 2 : 1, &timeout, NULL);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0 || (stop_fd >= 0 && fds[1].revents != 0))
            return 0;
        return fds[0].revents;
    }
}

static void ignore_notice(void *context, const PGresult *result)
{
    (void)context;
    (void)result;
}

/* ---- The thread ---- */

enum {
    HOST_PARAMETERS = 3
};

static PGconn *begin(const dialing *self)
{
    const snk_pg_target *target = self->target;
    const char *keywords[SNK_PG_PARAMETERS_MAX + HOST_PARAMETERS + 1];
    const char *values[SNK_PG_PARAMETERS_MAX + HOST_PARAMETERS + 1];
    size_t count = 0;
    for (size_t i = 0; i < target->count; i++) {
        if (self->is_bare && i == target->settings)
            continue;
        keywords[count] = target->keywords[i];
        values[count++] = target->values[i];
    }
    if (target->host_count > 1) {
        /* The last one counts, and one that is NULL does not. */
        const snk_pg_host *host = &target->hosts[self->host];
        keywords[count] = "host";
        values[count++] = host->name;
        keywords[count] = "hostaddr";
        values[count++] = host->address;
        keywords[count] = "port";
        values[count++] = host->port;
    }
    keywords[count] = NULL;
    values[count] = NULL;
    PGconn *connection = PQconnectStartParams(keywords, values, 0);
    if (connection == NULL)
        return NULL;
    (void)PQsetNoticeReceiver(connection, ignore_notice, NULL);
    /* So that a refusal can be told from a server that is away, in whatever language it is said. */
    (void)PQsetErrorVerbosity(connection, PQERRORS_VERBOSE);
    return connection;
}

static void let_go(dialing *self)
{
    if (atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) != 1)
        return;
    PQfinish(self->connection);
    snk_pg_target_unref(self->target);
    if (self->done_fd >= 0)
        (void)close(self->done_fd);
    free(self);
}

static void *run(void *argument)
{
    dialing *self = argument;
    PGconn *connection = begin(self);
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    while (connection != NULL && PQstatus(connection) != CONNECTION_BAD && next != PGRES_POLLING_OK &&
           next != PGRES_POLLING_FAILED) {
        short events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        if (snk_pg_poll(PQsocket(connection), events, -1, self->until_ns) == 0)
            break;
        next = PQconnectPoll(connection);
    }
    self->connection = connection;
    atomic_store_explicit(&self->is_done, true, memory_order_release);
    (void)eventfd_write(self->done_fd, 1);
    let_go(self);
    return NULL;
}

static bool start_thread(dialing *self)
{
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool started = snk_thread_create(&thread, &attributes, run, self) == 0;
    (void)pthread_attr_destroy(&attributes);
    return started;
}

/* ---- The asker ---- */

static dialing *start(snk_pg_target *target, size_t host, bool is_bare, int64_t until_ns)
{
    dialing *self = calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    snk_pg_target_ref(target);
    *self = (dialing){ .references = 2, .target = target, .host = host, .is_bare = is_bare, .until_ns = until_ns };
    self->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->done_fd >= 0 && start_thread(self))
        return self;
    self->references = 1;
    let_go(self);
    return NULL;
}

/* What is the same for all that are asked. */
typedef struct asking {
    snk_pg_target *target;
    const char *where;
    int stop_fd;
} asking;

static PGconn *dial_once(const asking *how, size_t host, bool is_bare, int64_t until_ns, sneck_error *error)
{
    dialing *self = start(how->target, host, is_bare, until_ns);
    if (self == NULL) {
        (void)snk_fail(error, SNECK_NO_MEMORY, 0, "%s: cannot start to connect: no memory, or too many threads",
                       how->where);
        return NULL;
    }
    (void)snk_pg_poll(self->done_fd, POLLIN, how->stop_fd, until_ns);
    PGconn *connection = NULL;
    bool is_done = atomic_load_explicit(&self->is_done, memory_order_acquire);
    ConnStatusType status = is_done ? PQstatus(self->connection) : CONNECTION_STARTED;
    if (!is_done || (status != CONNECTION_OK && status != CONNECTION_BAD)) {
        (void)snk_fail(error, SNECK_UNAVAILABLE, ETIMEDOUT, "%s: connecting takes too long", how->where);
    } else if (self->connection == NULL) {
        (void)snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    } else if (status == CONNECTION_OK && PQsetnonblocking(self->connection, 1) == 0) {
        connection = self->connection;
        self->connection = NULL;
    } else {
        (void)snk_pg_connect_error(self->connection, how->where, error);
    }
    let_go(self);
    return connection;
}

static PGconn *dial_host(const asking *how, size_t host, int64_t until_ns, sneck_error *error)
{
    bool is_bare = atomic_load(&how->target->is_pooled);
    PGconn *connection = dial_once(how, host, is_bare, until_ns, error);
    if (connection == NULL && !is_bare && snk_pg_refused_settings(error)) {
        atomic_store(&how->target->is_pooled, true);
        connection = dial_once(how, host, true, until_ns, error);
    }
    return connection;
}

/* Until when one of `left` servers is waited for: it has its share of what is left, so that each is asked. */
static int64_t limit_of(const snk_pg_target *target, size_t left, int64_t until_ns)
{
    int64_t now_ns = snk_now_ns();
    int64_t share_ns = (until_ns - now_ns) / (int64_t)left;
    if (target->host_limit_ns > 0 && target->host_limit_ns < until_ns - now_ns)
        share_ns = target->host_limit_ns;
    return snk_time_add(now_ns, share_ns > 0 ? share_ns : 0);
}

PGconn *snk_pg_dial(snk_pg_target *target, const char *where, int stop_fd, int64_t until_ns, sneck_error *error)
{
    const asking how = { .target = target, .where = where, .stop_fd = stop_fd };
    size_t first = atomic_load(&target->favourite);
    sneck_error problem = { .status = SNECK_OK };
    for (size_t i = 0; i < target->host_count; i++) {
        size_t host = (first + i) % target->host_count;
        sneck_error here = { .status = SNECK_OK };
        PGconn *connection = dial_host(&how, host, limit_of(target, target->host_count - i, until_ns), &here);
        if (connection != NULL) {
            atomic_store(&target->favourite, host);
            return connection;
        }
        /* What one of them said is worth more than that another was not to be reached. */
        if (problem.status == SNECK_OK || problem.status == SNECK_UNAVAILABLE)
            problem = here;
        if (stop_fd >= 0 && snk_pg_poll(stop_fd, POLLIN, -1, 0) != 0)
            break;
    }
    (void)snk_fail_as(error, &problem);
    return NULL;
}

/*
 * PQfinish says good-bye, and would send what is left in its buffer before. So it gets a descriptor that leads nowhere,
 * and the real one is reset: its last reference goes with linger 0.
 */
void snk_pg_hang_up(PGconn *connection)
{
    if (connection == NULL)
        return;
    int fd = PQsocket(connection);
    int nowhere = fd >= 0 ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (nowhere >= 0) {
        const struct linger at_once = { .l_onoff = 1, .l_linger = 0 };
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        (void)dup3(nowhere, fd, O_CLOEXEC);
        (void)close(nowhere);
    }
    PQfinish(connection);
}
