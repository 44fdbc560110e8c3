#include "postgres_server.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "redis_server.h"
#include "servant.h"

#define START_TRIES 3000 /* of 10 ms */
#define WORDS_MAX 64
#define PATH_SIZE 128

/* ---- Programs ---- */

const char *postgres_programs(void)
{
    static char path[256];
    glob_t found;
    if (path[0] != '\0')
        return path;
    if (glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) == 0)
        snprintf(path, sizeof path, "%.*s", (int)(strlen(found.gl_pathv[found.gl_pathc - 1]) - strlen("/initdb")),
                 found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return path;
}

/* ---- The cluster ---- */

static void data_path(const postgres_server *server, char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "%s/data", server->directory);
}

static bool make_cluster(const postgres_server *server)
{
    char program[300];
    char data[PATH_SIZE];
    snprintf(program, sizeof program, "%s/initdb", postgres_programs());
    data_path(server, data);
    const char *const words[] = { program,           "-D", data,   "-U",         "postgres",  "-A",
                                  "trust",           "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions",
                                  "--wal-segsize=1", NULL };
    return servant_run(words);
}

/* Over TCP with a password, which is asked for in the plain: a test of locks is no test of hashes. */
static bool write_access_rules(const postgres_server *server)
{
    char path[PATH_SIZE + 16];
    char data[PATH_SIZE];
    data_path(server, data);
    snprintf(path, sizeof path, "%s/pg_hba.conf", data);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return false;
    fprintf(file, "local all all trust\nlocal replication all trust\nhost all all 127.0.0.1/32 password\n");
    return fclose(file) == 0;
}

static bool accepts(const postgres_server *server)
{
    char port[16];
    snprintf(port, sizeof port, "%d", server->port);
    const char *const keywords[] = { "host", "port", "user", "dbname", NULL };
    const char *const values[] = { server->directory, port, "postgres", "postgres", NULL };
    return PQpingParams(keywords, values, 0) == PQPING_OK;
}

static bool await_server(postgres_server *server)
{
    for (int i = 0; i < START_TRIES; i++) {
        if (accepts(server))
            return true;
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid) {
            server->pid = 0;
            return false;
        }
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    }
    postgres_server_crash(server);
    return false;
}

static bool launch(postgres_server *server)
{
    char program[300];
    char data[PATH_SIZE];
    char log[PATH_SIZE];
    char port[32];
    char sockets[128];
    snprintf(program, sizeof program, "%s/postgres", postgres_programs());
    data_path(server, data);
    snprintf(log, sizeof log, "%s/log", server->directory);
    snprintf(port, sizeof port, "port=%d", server->port);
    snprintf(sockets, sizeof sockets, "unix_socket_directories=%s", server->directory);
    const char *words[WORDS_MAX] = { program,
                                     "-D",
                                     data,
                                     "-c",
                                     port,
                                     "-c",
                                     sockets,
                                     "-c",
                                     "listen_addresses=127.0.0.1",
                                     "-c",
                                     "fsync=off",
                                     "-c",
                                     "full_page_writes=off",
                                     "-c",
                                     "shared_buffers=16MB",
                                     "-c",
                                     "max_connections=200",
                                     "-c",
                                     "track_functions=all",
                                     "-c",
                                     "deadlock_timeout=100ms",
                                     "-c",
                                     "max_wal_size=64MB" };
    size_t count = 23;
    for (size_t i = 0; server->options[i] != NULL && count < WORDS_MAX - 1; i++)
        words[count++] = server->options[i];
    server->pid = servant_spawn(words, log);
    return server->pid > 0 && await_server(server);
}

bool postgres_server_start(postgres_server *server, const char *const options[])
{
    *server = (postgres_server){ .port = redis_server_free_port() };
    for (size_t i = 0; options != NULL && options[i] != NULL && i < 15; i++)
        server->options[i] = options[i];
    return postgres_programs()[0] != '\0' &&
           servant_make_directory("sneck-pg", server->directory, sizeof server->directory) && make_cluster(server) &&
           write_access_rules(server) && launch(server);
}

bool postgres_server_start_standby(postgres_server *server, const postgres_server *primary)
{
    *server = (postgres_server){ .port = redis_server_free_port() };
    char program[300];
    char data[PATH_SIZE];
    char port[16];
    if (!servant_make_directory("sneck-pg", server->directory, sizeof server->directory))
        return false;
    snprintf(program, sizeof program, "%s/pg_basebackup", postgres_programs());
    data_path(server, data);
    snprintf(port, sizeof port, "%d", primary->port);
    const char *const words[] = { program,    "-D", data, "-h",     primary->directory, "-p", port,   "-U",
                                  "postgres", "-R", "-X", "stream", "--no-sync",        "-c", "fast", NULL };
    return servant_run(words) && launch(server);
}

void postgres_server_crash(postgres_server *server)
{
    if (server->pid <= 0)
        return;
    postgres_server_thaw(server);
    kill(server->pid, SIGQUIT);
    (void)servant_wait(server->pid);
    server->pid = 0;
}

bool postgres_server_restart(postgres_server *server)
{
    postgres_server_crash(server);
    return launch(server);
}

/* Sends a signal to each child of the server. */
static void signal_children(pid_t parent, int number)
{
    glob_t found;
    if (glob("/proc/[0-9]*/stat", 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char line[256];
        FILE *file = fopen(found.gl_pathv[i], "r");
        if (file == NULL)
            continue;
        static const char name[] = " (postgres) ";
        char *rest = NULL;
        pid_t pid = fgets(line, sizeof line, file) == NULL ? 0 : (pid_t)strtol(line, &rest, 10);
        /* Behind the name come a letter for the state and the parent. */
        if (pid > 0 && strncmp(rest, name, sizeof name - 1) == 0 && strtol(rest + sizeof name, NULL, 10) == parent)
            kill(pid, number);
        fclose(file);
    }
    globfree(&found);
}

void postgres_server_freeze(const postgres_server *server)
{
    kill(server->pid, SIGSTOP); /* first, so that no further child comes */
    signal_children(server->pid, SIGSTOP);
}

void postgres_server_thaw(const postgres_server *server)
{
    signal_children(server->pid, SIGCONT);
    kill(server->pid, SIGCONT);
}

void postgres_server_stop(postgres_server *server)
{
    postgres_server_crash(server);
    servant_remove_directory(server->directory);
}
