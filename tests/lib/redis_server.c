#include "redis_server.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_TRIES 2000 /* of 5 ms */
#define WORDS_MAX 64
#define PORT_FIRST 12000
#define PORTS 20000
#define PORT_TRIES 100

/*
 * Below those that the kernel gives to outgoing connections: while a server is dead, and somebody tries to reach it, such
 * a connection could get the very port, and the server could not be started again.
 */
int redis_server_free_port(void)
{
    int port = 0;
    for (int i = 0; i < PORT_TRIES && port == 0; i++) {
        uint16_t random = 0;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (getrandom(&random, sizeof random, 0) != sizeof random)
            random = (uint16_t)i;
        int wanted = PORT_FIRST + random % PORTS;
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_port = htons((uint16_t)wanted),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0)
            port = wanted;
        if (fd >= 0)
            close(fd);
    }
    return port;
}

static void run_server(const redis_server *server, pid_t parent)
{
    char port[16];
    char config[REDIS_SERVER_PATH_SIZE];
    snprintf(port, sizeof port, "%d", server->port);
    snprintf(config, sizeof config, "%s/sentinel.conf", server->directory);
    const char *words[WORDS_MAX] = {
        "redis-server",           "--port",       port,         "--bind",          "127.0.0.1", "::1",
        "--unixsocket",           server->socket, "--dir",      server->directory, "--save",    "",
        "--appendonly",           "no",           "--loglevel", "warning",         "--logfile", "server.log",
        "--enable-debug-command", "yes"
    };
    size_t count = 20;
    if (server->is_sentinel) {
        words[1] = config;
        words[2] = "--sentinel";
        words[3] = NULL;
    }
    for (size_t i = 0; server->options[i] != NULL && count < WORDS_MAX - 1; i++)
        words[count++] = server->options[i];
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
    union {
        const char **in;
        char **out;
    } arguments = { .in = words };
    const char *program = getenv("SNECK_TEST_REDIS_SERVER");
    execvp(program != NULL ? program : "redis-server", arguments.out);
    _exit(127);
}

static bool accepts(const redis_server *server)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", server->socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool connected = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return connected;
}

static bool launch(redis_server *server)
{
    unlink(server->socket);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        run_server(server, parent);
    if (pid < 0)
        return false;
    server->pid = pid;
    for (int i = 0; i < START_TRIES; i++) {
        if (accepts(server))
            return true;
        if (waitpid(pid, NULL, WNOHANG) == pid) {
            server->pid = 0;
            return false;
        }
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    }
    redis_server_kill(server);
    return false;
}

static bool make_place(redis_server *server)
{
    server->port = redis_server_free_port();
    snprintf(server->directory, sizeof server->directory, "/tmp/sneck-redis-XXXXXX");
    if (mkdtemp(server->directory) == NULL)
        return false;
    snprintf(server->socket, sizeof server->socket, "%s/s", server->directory);
    return true;
}

bool redis_server_start(redis_server *server, const char *const options[])
{
    int tls_port = server->tls_port;
    *server = (redis_server){ .tls_port = tls_port };
    for (size_t i = 0; options != NULL && options[i] != NULL && i < REDIS_SERVER_OPTIONS_MAX - 1; i++)
        server->options[i] = options[i];
    return make_place(server) && launch(server);
}

bool redis_server_start_sentinel(redis_server *server, const char *lines)
{
    *server = (redis_server){ .is_sentinel = true };
    if (!make_place(server))
        return false;
    char path[REDIS_SERVER_PATH_SIZE];
    snprintf(path, sizeof path, "%s/sentinel.conf", server->directory);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return false;
    fprintf(file, "port %d\nbind 127.0.0.1\nunixsocket %s\ndir %s\nlogfile server.log\n%s", server->port,
            server->socket, server->directory, lines);
    return fclose(file) == 0 && launch(server);
}

bool redis_server_start_tls(redis_server *server, const char *certificates, bool clients_need_one)
{
    static char files[3][REDIS_SERVER_PATH_SIZE]; /* a test has one such server at a time */
    static char port[16];
    server->tls_port = redis_server_free_port();
    snprintf(port, sizeof port, "%d", server->tls_port);
    snprintf(files[0], sizeof files[0], "%s/server.crt", certificates);
    snprintf(files[1], sizeof files[1], "%s/server.key", certificates);
    snprintf(files[2], sizeof files[2], "%s/ca.crt", certificates);
    const char *options[] = { "--tls-port",
                              port,
                              "--tls-cert-file",
                              files[0],
                              "--tls-key-file",
                              files[1],
                              "--tls-ca-cert-file",
                              files[2],
                              "--tls-auth-clients",
                              clients_need_one ? "yes" : "no",
                              NULL };
    return redis_server_start(server, options);
}

void redis_server_kill(redis_server *server)
{
    if (server->pid <= 0)
        return;
    kill(server->pid, SIGKILL);
    while (waitpid(server->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    server->pid = 0;
}

bool redis_server_restart(redis_server *server)
{
    redis_server_kill(server);
    return launch(server);
}

void redis_server_stop(redis_server *server)
{
    redis_server_kill(server);
    DIR *directory = opendir(server->directory);
    if (directory == NULL)
        return;
    struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(directory), entry->d_name, entry->d_type == DT_DIR ? AT_REMOVEDIR : 0);
    }
    closedir(directory);
    rmdir(server->directory);
}
