#include "mysql_server.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#include <mysql.h>

#include "redis_server.h"
#include "servant.h"

#define WORDS_MAX 32
#define START_TRIES 6000 /* of 10 ms */

static bool make_data(const mysql_server *server)
{
    char data[96];
    snprintf(data, sizeof data, "--datadir=%s/data", server->directory);
    const char *const words[] = { "mariadb-install-db",
                                  "--no-defaults",
                                  data,
                                  "--auth-root-authentication-method=normal",
                                  "--skip-test-db",
                                  "--innodb-use-native-aio=0",
                                  "--innodb-flush-method=nosync",
                                  NULL };
    return servant_run(words);
}

static bool accepts(const mysql_server *server)
{
    MYSQL *my = mysql_init(NULL);
    bool connected = my != NULL && mysql_real_connect(my, "localhost", "root", "", NULL, 0, server->socket, 0) != NULL;
    if (my != NULL)
        mysql_close(my);
    return connected;
}

static bool await_server(mysql_server *server)
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
    mysql_server_crash(server);
    return false;
}

static bool launch(mysql_server *server)
{
    char data[96];
    char socket_word[128];
    char port[32];
    char log[96];
    snprintf(data, sizeof data, "--datadir=%s/data", server->directory);
    snprintf(socket_word, sizeof socket_word, "--socket=%s", server->socket);
    snprintf(port, sizeof port, "--port=%d", server->port);
    snprintf(log, sizeof log, "%s/log", server->directory);
    const char *words[WORDS_MAX] = {
        "/usr/sbin/mariadbd",
        "--no-defaults",
        data,
        socket_word,
        port,
        "--bind-address=127.0.0.1",
        "--skip-name-resolve",
        "--innodb-flush-method=nosync",
        "--innodb-buffer-pool-size=32M",
        "--innodb-use-native-aio=0", /* or a few servers at once use up what the kernel has */
        "--max-connections=300",
        "--pid-file=pid",
        NULL
    };
    size_t count = 0;
    while (words[count] != NULL)
        count++;
    for (size_t i = 0; server->options != NULL && server->options[i] != NULL && count + 1 < WORDS_MAX; i++)
        words[count++] = server->options[i];
    server->pid = servant_spawn(words, log);
    return server->pid > 0 && await_server(server);
}

bool mysql_server_start(mysql_server *server)
{
    return mysql_server_start_with(server, NULL);
}

bool mysql_server_start_with(mysql_server *server, const char *const options[])
{
    *server = (mysql_server){ .port = redis_server_free_port(), .options = options };
    if (!servant_make_directory("sneck-my", server->directory, sizeof server->directory))
        return false;
    snprintf(server->socket, sizeof server->socket, "%s/socket", server->directory);
    return make_data(server) && launch(server);
}

void mysql_server_crash(mysql_server *server)
{
    if (server->pid <= 0)
        return;
    kill(server->pid, SIGKILL);
    (void)servant_wait(server->pid);
    server->pid = 0;
}

bool mysql_server_restart(mysql_server *server)
{
    mysql_server_crash(server);
    return launch(server);
}

void mysql_server_stop(mysql_server *server)
{
    mysql_server_crash(server);
    servant_remove_directory(server->directory);
}
