#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"

static char directory[64];
static char url[128];

static _Noreturn void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", what, why);
    _exit(1);
}

int64_t test_patience_factor(void)
{
    const char *text = getenv("SNECK_TEST_PATIENCE");
    double factor = text != NULL ? strtod(text, NULL) : 1;
    return factor < 1 ? 1 : (int64_t)factor;
}

int64_t test_patience_ns(void)
{
    return test_patience_factor() * 30 * SNK_NS_PER_S;
}

const char *test_make_directory(void)
{
    /* In a tmpfs, where there is one: it is the locks that are tested here, not the disk. */
    bool has_tmpfs = access("/dev/shm", W_OK) == 0;
    (void)snprintf(directory, sizeof directory, "%s/sneck-test-XXXXXX", has_tmpfs ? "/dev/shm" : "/tmp");
    if (mkdtemp(directory) == NULL)
        die("mkdtemp", strerror(errno));
    (void)snprintf(url, sizeof url, "sqlite://%s/locks.db", directory);
    return directory;
}

void test_remove_directory(void)
{
    DIR *files = opendir(directory);
    if (files == NULL)
        return;
    for (struct dirent *file = readdir(files); file != NULL; file = readdir(files)) {
        if (unlinkat(dirfd(files), file->d_name, 0) != 0 && file->d_name[0] != '.')
            (void)fprintf(stderr, "cannot remove %s\n", file->d_name);
    }
    (void)closedir(files);
    (void)rmdir(directory);
}

void test_use_url(const char *other)
{
    (void)snprintf(url, sizeof url, "%s", other);
}

const char *test_sqlite_url(void)
{
    return url;
}

void *test_share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        die("mmap", strerror(errno));
    return memory;
}

pid_t test_spawn(test_child_fn child, void *context)
{
    (void)fflush(NULL);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0)
        die("fork", strerror(errno));
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        _exit(child(context));
    }
    return pid;
}

static bool has_ended(pid_t pid, int *status_out)
{
    pid_t ended = waitpid(pid, status_out, WNOHANG);
    return ended == pid || (ended < 0 && errno != EINTR);
}

int test_join(pid_t pid)
{
    int status = 0;
    int64_t until_ns = snk_now_ns() + test_patience_ns();
    sigset_t child_signal;
    sigemptyset(&child_signal);
    sigaddset(&child_signal, SIGCHLD);
    sigset_t before;
    (void)sigprocmask(SIG_BLOCK, &child_signal, &before);
    while (!has_ended(pid, &status)) {
        if (snk_now_ns() >= until_ns) {
            test_kill(pid);
            (void)sigprocmask(SIG_SETMASK, &before, NULL);
            return -1;
        }
        struct timespec pause = snk_timespec(100 * SNK_NS_PER_MS);
        (void)sigtimedwait(&child_signal, NULL, &pause);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void test_kill(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

void test_signal(_Atomic uint32_t *word)
{
    atomic_fetch_add(word, 1);
    snk_futex_wake(word, 1 << 30, true);
}

bool test_await(_Atomic uint32_t *word, uint32_t value)
{
    int64_t until_ns = snk_now_ns() + test_patience_ns();
    uint32_t seen = atomic_load(word);
    while (seen < value) {
        int64_t left_ns = until_ns - snk_now_ns();
        if (left_ns <= 0)
            return false;
        snk_futex_word wanted = { .word = word, .expected = seen, .shared = true };
        (void)snk_futex_wait_any(&wanted, 1, left_ns);
        seen = atomic_load(word);
    }
    return true;
}

void test_child_expect(sneck_status status, sneck_status expected, const sneck_error *error, const char *what)
{
    if (status == expected)
        return;
    (void)fprintf(stderr, "%s: got %s, expected %s: %s\n", what, sneck_status_name(status), sneck_status_name(expected),
                  error != NULL ? error->message : "");
    _exit(1);
}

sneck_client *test_child_open(const sneck_client_options *options)
{
    sneck_error error;
    sneck_client *client = NULL;
    test_child_expect(sneck_open(url, options, &client, &error), SNECK_OK, &error, "open");
    return client;
}

sneck_lock *test_child_mutex(sneck_client *client, const char *name, const sneck_lock_options *options)
{
    sneck_error error;
    sneck_lock *lock = NULL;
    test_child_expect(sneck_mutex(client, name, options, &lock, &error), SNECK_OK, &error, "mutex");
    return lock;
}

static int compare(const void *a, const void *b)
{
    const int64_t *left = a;
    const int64_t *right = b;
    return (*left > *right) - (*left < *right);
}

int64_t test_percentile(int64_t values[], size_t count, double percent)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof values[0], compare);
    size_t index = (size_t)((double)(count - 1) * percent / 100.0 + 0.5);
    return values[index];
}
