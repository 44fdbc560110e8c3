#include "zookeeper_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "claims.h"
#include "redis_server.h"

#define JAR "/usr/share/java/zookeeper.jar"
#define START_TRIES 6000 /* of 10 ms */

bool zookeeper_server_exists(void)
{
    return access(JAR, R_OK) == 0 && access("/usr/bin/java", X_OK) == 0;
}

static void pause_10ms(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
}

static bool write_file(const zookeeper_server *server, const char *name, const char *text)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", server->directory, name);
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return false;
    bool done = fputs(text, file) >= 0;
    return fclose(file) == 0 && done;
}

static bool configure(const zookeeper_server *server)
{
    char text[2048];
    (void)snprintf(text, sizeof text,
                   "tickTime=200\ninitLimit=50\nsyncLimit=10\ndataDir=%s\nclientPort=%d\n"
                   "clientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n"
                   "minSessionTimeout=200\nmaxSessionTimeout=8000000\n4lw.commands.whitelist=*\n%s%s",
                   server->directory, server->port, server->peers, server->extra == NULL ? "" : server->extra);
    char number[16];
    (void)snprintf(number, sizeof number, "%d\n", server->number);
    return write_file(server, "zoo.cfg", text) && write_file(server, "myid", number);
}

static void run_server(const zookeeper_server *server, pid_t parent)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/zoo.cfg", server->directory);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    /* Small and quick to start: there may be three of them on two processors. */
    execl("/usr/bin/java", "java", "-Xmx96m", "-Xms32m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
          "-Dzookeeper.forceSync=no", "-Dznode.container.checkIntervalMs=500", "-cp", JAR,
          "org.apache.zookeeper.server.quorum.QuorumPeerMain", path, (char *)NULL);
    _exit(127);
}

static int connect_to(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                   .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

const char *zookeeper_server_ask(const zookeeper_server *server, const char *word)
{
    static char answer[65536];
    size_t length = 0;
    ssize_t got = 0;
    int fd = connect_to(server->port);
    answer[0] = '\0';
    if (fd < 0)
        return answer;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = 5 }, sizeof(struct timeval));
    if (send(fd, word, strlen(word), MSG_NOSIGNAL) == (ssize_t)strlen(word)) {
        while (length < sizeof answer - 1 && (got = read(fd, answer + length, sizeof answer - 1 - length)) > 0)
            length += (size_t)got;
    }
    close(fd);
    answer[length] = '\0';
    return answer;
}

/* Accepts connections, and is past its election. */
static bool is_ready(const zookeeper_server *server)
{
    return strstr(zookeeper_server_ask(server, "srvr"), "Mode: ") != NULL;
}

static bool launch(zookeeper_server *server)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        run_server(server, parent);
    if (pid < 0)
        return false;
    server->pid = pid;
    return true;
}

static bool await_ready(zookeeper_server *server)
{
    for (int i = 0; i < START_TRIES && server->pid != 0; i++) {
        if (is_ready(server))
            return true;
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid) {
            server->pid = 0;
            return false;
        }
        pause_10ms();
    }
    zookeeper_server_kill(server);
    return false;
}

static bool prepare(zookeeper_server *server, int number, const char *extra)
{
    *server = (zookeeper_server){ .port = redis_server_free_port(), .number = number, .extra = extra };
    test_make_folder(server->directory, sizeof server->directory);
    return true;
}

bool zookeeper_server_start(zookeeper_server *server, const char *extra)
{
    return prepare(server, 1, extra) && configure(server) && launch(server) && await_ready(server);
}

bool zookeeper_ensemble_start(zookeeper_server servers[ZOOKEEPER_ENSEMBLE], const char *extra)
{
    char peers[256] = "";
    for (int i = 0; i < ZOOKEEPER_ENSEMBLE; i++) {
        (void)prepare(&servers[i], i + 1, extra);
        servers[i].peer_port = redis_server_free_port();
        servers[i].election_port = redis_server_free_port();
        size_t length = strlen(peers);
        (void)snprintf(peers + length, sizeof peers - length, "server.%d=127.0.0.1:%d:%d\n", i + 1,
                       servers[i].peer_port, servers[i].election_port);
    }
    bool done = true;
    for (int i = 0; i < ZOOKEEPER_ENSEMBLE; i++) {
        (void)snprintf(servers[i].peers, sizeof servers[i].peers, "%s", peers);
        done = configure(&servers[i]) && launch(&servers[i]) && done;
    }
    for (int i = 0; i < ZOOKEEPER_ENSEMBLE; i++)
        done = await_ready(&servers[i]) && done;
    return done;
}

void zookeeper_server_kill(zookeeper_server *server)
{
    if (server->pid <= 0)
        return;
    kill(server->pid, SIGKILL);
    while (waitpid(server->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    server->pid = 0;
}

bool zookeeper_server_restart(zookeeper_server *server)
{
    zookeeper_server_kill(server);
    return launch(server) && await_ready(server);
}

void zookeeper_server_stop(zookeeper_server *server)
{
    zookeeper_server_kill(server);
    if (server->directory[0] != '\0')
        test_remove_folder(server->directory);
    server->directory[0] = '\0';
}
