/* Behind PgBouncer, which gives each transaction another session. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bed.h"
#include "postgres_bed.h"
#include "servant.h"
#include "redis_server.h"
#include "waiter.h"

typedef struct scene {
    postgres_bed *bed;
    int port;
    pid_t pid;
    char folder[64];
} scene;

static const char *find_pgbouncer(void)
{
    static const char *const places[] = { "/usr/sbin/pgbouncer", "/usr/bin/pgbouncer" };
    for (size_t i = 0; i < 2; i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    return NULL;
}

static void write_configuration(const scene *made, const char *path, const char *extra)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "[databases]\nlocks = host=%s port=%d dbname=locks user=sneck\n"
            "[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\n"
            "pool_mode = transaction\ndefault_pool_size = 3\nmax_client_conn = 200\nlogfile = %s/log\n%s\n",
            made->bed->server.directory, made->bed->server.port, made->port, made->folder, extra);
    assert_int_equal(fclose(file), 0);
}

static bool accepts(int port)
{
    PGconn *connection = PQconnectdb(postgres_bed_url_at(port, NULL));
    bool connected = PQstatus(connection) == CONNECTION_OK;
    PQfinish(connection);
    return connected;
}

static int make_scene(void **state, const char *extra)
{
    void *bed = NULL;
    if (postgres_bed_set_up(&bed) != 0)
        return -1;
    scene *made = calloc(1, sizeof *made);
    assert_non_null(made);
    *state = made;
    made->bed = bed;
    if (find_pgbouncer() == NULL)
        return 0;
    char path[96];
    made->port = redis_server_free_port();
    (void)snprintf(made->folder, sizeof made->folder, "/tmp/sneck-bouncer-XXXXXX");
    assert_non_null(mkdtemp(made->folder));
    assert_int_equal(chmod(made->folder, 0777), 0);
    (void)snprintf(path, sizeof path, "%s/ini", made->folder);
    write_configuration(made, path, extra);
    const char *const words[] = { find_pgbouncer(), path, NULL };
    made->pid = servant_spawn(words, "/dev/null");
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (!accepts(made->port)) {
        assert_true(test_now_ms() < limit_ms);
        postgres_bed_pause(10);
    }
    return 0;
}

static int set_up(void **state)
{
    return make_scene(state, "");
}

/* It takes the settings of our sessions at the door, and drops them. */
static int set_up_silent(void **state)
{
    return make_scene(state, "ignore_startup_parameters = options");
}

static int tear_down(void **state)
{
    scene *made = *state;
    if (made->pid > 0) {
        char path[96];
        static const char *const files[] = { "ini", "log" };
        (void)kill(made->pid, SIGKILL);
        while (waitpid(made->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        for (size_t i = 0; i < 2; i++) {
            (void)snprintf(path, sizeof path, "%s/%s", made->folder, files[i]);
            (void)unlink(path);
        }
        (void)rmdir(made->folder);
    }
    free(made);
    return 0;
}

static void need_pooler(const scene *made)
{
    if (made->pid == 0)
        test_skip("no pgbouncer here");
}

/* What the client says, in one text. */
typedef struct log_text {
    pthread_mutex_t mutex;
    char text[4096];
} log_text;

static void note(void *context, sneck_log_level level, const char *text)
{
    log_text *self = context;
    (void)level;
    if (strstr(text, "polling") == NULL)
        return;
    (void)pthread_mutex_lock(&self->mutex);
    test_append(self->text, sizeof self->text, text);
    test_append(self->text, sizeof self->text, "\n");
    (void)pthread_mutex_unlock(&self->mutex);
}

static sneck_client *open_client(const scene *made, const char *keys, log_text *log)
{
    sneck_error error;
    sneck_client *client = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.log = log == NULL ? NULL : note;
    options.log_context = log;
    EXPECT(SNECK_OK, sneck_open(postgres_bed_url_at(made->port, keys), &options, &client, &error));
    return client;
}

typedef struct counting {
    sneck_client *clients[2];
    unsigned rounds;
    unsigned long counter; /* plain: only the lock keeps it sound */
    uint64_t highest;
    _Atomic unsigned failures;
    _Atomic unsigned number;
} counting;

static void *count_up(void *argument)
{
    counting *self = argument;
    sneck_lock *lock = NULL;
    sneck_client *client = self->clients[atomic_fetch_add(&self->number, 1) % 2];
    if (sneck_mutex(client, "counter", NULL, &lock, NULL) != SNECK_OK)
        return NULL;
    for (unsigned i = 0; i < self->rounds; i++) {
        if (sneck_acquire(lock, 60000, NULL) != SNECK_OK) {
            atomic_fetch_add(&self->failures, 1);
            continue;
        }
        uint64_t token = sneck_token(lock);
        self->counter++;
        if (token <= self->highest)
            atomic_fetch_add(&self->failures, 1);
        self->highest = token;
        if (sneck_release(lock, NULL) != SNECK_OK)
            atomic_fetch_add(&self->failures, 1);
    }
    sneck_lock_free(lock);
    return NULL;
}

static void count_together(const scene *made, const char *keys)
{
    pthread_t threads[6];
    log_text log = { .mutex = PTHREAD_MUTEX_INITIALIZER };
    counting self = { .rounds = test_scaled(300) };
    self.clients[0] = open_client(made, keys, &log);
    self.clients[1] = open_client(made, keys, NULL);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, &self), 0);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(self.failures, 0);
    assert_int_equal(self.counter, 6UL * self.rounds);
    sneck_close(self.clients[0]);
    sneck_close(self.clients[1]);
    assert_non_null(strstr(log.text, "event=polling"));
    /* No session was left with something of ours in it. */
    assert_int_equal(
        postgres_bed_number(made->bed, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%%'"), 0);
}

static void test_clients_exclude_each_other_and_say_that_they_poll(void **state)
{
    scene *made = *state;
    need_pooler(made);
    count_together(made, "retry=10ms");
}

static void test_rows_are_held_through_it_too(void **state)
{
    scene *made = *state;
    need_pooler(made);
    sneck_error error;
    sneck_client *client = open_client(made, "mode=row&retry=10ms", NULL);
    sneck_client *other = open_client(made, "mode=row&retry=10ms", NULL);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    sneck_lock *rival = test_mutex(other, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_BUSY, sneck_acquire(rival, 0, &error));
    test_waiter self;
    test_waiter_start(&self, rival, TEST_PATIENCE_MS);
    postgres_bed_await(made->bed, "SELECT count(*) FROM sneck_queue", 1);
    EXPECT(SNECK_OK, sneck_extend(lock, 30000, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    test_waiter_join(&self);
    sneck_lock_free(lock);
    sneck_lock_free(rival);
    sneck_close(client);
    sneck_close(other);
}

static void test_time_limits_go_with_each_transaction(void **state)
{
    scene *made = *state;
    need_pooler(made);
    sneck_error error;
    sneck_client *client = open_client(made, "timeout=800", NULL);
    sneck_lock *lock = test_mutex(client, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    PGconn *program = postgres_bed_connect(made->bed, "postgres");
    PQclear(PQexec(program, "BEGIN"));
    PQclear(PQexec(program, "SELECT FROM sneck_state FOR UPDATE"));
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(lock, 0, &error)); /* the server gave it up, and said so */
    PQclear(PQexec(program, "COMMIT"));
    PQfinish(program);
    /* And no session that others use has kept them. */
    PGconn *next = PQconnectdb(postgres_bed_url_at(made->port, NULL));
    for (int i = 0; i < 5; i++) {
        PGresult *result = PQexec(next, "SHOW lock_timeout");
        assert_string_equal(PQgetvalue(result, 0, 0), "0");
        PQclear(result);
    }
    PQfinish(next);
    sneck_lock_free(lock);
    sneck_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_clients_exclude_each_other_and_say_that_they_poll, set_up, tear_down),
        { "one that drops our settings: test_clients_exclude_each_other_and_say_that_they_poll",
          test_clients_exclude_each_other_and_say_that_they_poll, set_up_silent, tear_down, NULL },
        cmocka_unit_test_setup_teardown(test_rows_are_held_through_it_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_time_limits_go_with_each_transaction, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, postgres_bed_end);
}
