#include "bench_measure.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sneck.h"

#define SAMPLES_MAX 200000
#define REENTRIES_PER_SAMPLE 1000
#define PROCESSES_MAX 64
#define THREADS_MAX 256
#define WAIT_MS 5000
/* What a measurement may take beyond its planned time before it is ended. */
#define PATIENCE_NS (10 * SNK_NS_PER_S)

/* Shared between the children and the parent. */
struct board {
    atomic_bool stop;
    atomic_int ready;
    atomic_int last;             /* who released last */
    _Atomic int64_t released_ns; /* when */
    _Atomic int64_t begun_ns;    /* the first sample counts from here */
    _Atomic int64_t ended_ns;
    _Atomic int64_t operations;
    atomic_int sample_count;
    atomic_bool failed;
    char error[240]; /* written by the first that fails */
    int64_t samples[SAMPLES_MAX];
};

/* One child, or one thread of it. */
struct runner {
    const snk_bench_plan *plan;
    struct board *board;
    int number;
    char name[64];
    sneck_client *client;
    sneck_lock *lock;
};

static void add_sample(struct board *board, int64_t ns)
{
    if (atomic_load_explicit(&board->sample_count, memory_order_relaxed) >= SAMPLES_MAX)
        return;
    int place = atomic_fetch_add(&board->sample_count, 1);
    if (place < SAMPLES_MAX)
        board->samples[place] = ns;
}

static void fail(struct board *board, const char *message)
{
    if (!atomic_exchange(&board->failed, true))
        snprintf(board->error, sizeof board->error, "%s", message);
    atomic_store(&board->stop, true);
}

/* Acquire that ends the measurement when it fails. */
static bool take(struct runner *runner)
{
    sneck_error error;
    if (sneck_acquire(runner->lock, WAIT_MS, &error) == SNECK_OK)
        return true;
    fail(runner->board, error.message);
    return false;
}

static bool give(struct runner *runner)
{
    sneck_error error;
    if (sneck_release(runner->lock, &error) == SNECK_OK)
        return true;
    fail(runner->board, error.message);
    return false;
}

static bool goes_on(const struct runner *runner, int64_t until_ns)
{
    return !atomic_load_explicit(&runner->board->stop, memory_order_relaxed) && snk_now_ns() < until_ns;
}

static int64_t end_of(const struct runner *runner)
{
    return snk_now_ns() + runner->plan->time_ms * SNK_NS_PER_MS;
}

static void finish(struct runner *runner, int64_t begun_ns, int64_t operations)
{
    atomic_store(&runner->board->begun_ns, begun_ns);
    atomic_store(&runner->board->ended_ns, snk_now_ns());
    atomic_fetch_add(&runner->board->operations, operations);
}

static void run_reentry(struct runner *runner)
{
    int64_t begun_ns = snk_now_ns();
    int64_t until_ns = end_of(runner);
    int64_t operations = 0;
    if (!take(runner))
        return;
    while (goes_on(runner, until_ns)) {
        int64_t from_ns = snk_now_ns();
        for (int i = 0; i < REENTRIES_PER_SAMPLE; i++) {
            if (!take(runner) || !give(runner))
                return;
        }
        add_sample(runner->board, (snk_now_ns() - from_ns) / REENTRIES_PER_SAMPLE);
        operations += REENTRIES_PER_SAMPLE;
    }
    finish(runner, begun_ns, operations);
    give(runner);
}

static void run_pairs(struct runner *runner)
{
    int64_t begun_ns = snk_now_ns();
    int64_t until_ns = end_of(runner);
    int64_t operations = 0;
    while (goes_on(runner, until_ns)) {
        int64_t from_ns = snk_now_ns();
        if (!take(runner) || !give(runner))
            return;
        add_sample(runner->board, snk_now_ns() - from_ns);
        operations++;
    }
    finish(runner, begun_ns, operations);
}

static void *run_thread(void *context)
{
    struct runner *runner = context;
    int64_t operations = 0;
    while (!atomic_load_explicit(&runner->board->stop, memory_order_relaxed)) {
        if (!take(runner) || !give(runner))
            return NULL;
        operations++;
    }
    atomic_fetch_add(&runner->board->operations, operations);
    return NULL;
}

static void run_threads(struct runner *runner)
{
    pthread_t threads[THREADS_MAX];
    int count = 0;
    int64_t begun_ns = snk_now_ns();
    while (count < runner->plan->threads && count < THREADS_MAX &&
           pthread_create(&threads[count], NULL, run_thread, runner) == 0)
        count++;
    if (count < runner->plan->threads)
        fail(runner->board, "cannot start so many threads");
    struct timespec time = snk_timespec(runner->plan->time_ms * SNK_NS_PER_MS);
    nanosleep(&time, NULL);
    atomic_store(&runner->board->stop, true);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    finish(runner, begun_ns, 0);
}

static void await_ready(const struct runner *runner, int count)
{
    while (atomic_load(&runner->board->ready) < count && !atomic_load(&runner->board->stop))
        poll(NULL, 0, 1);
}

/* The first process takes the lock; if another can have it too, there is nothing to hand over. */
static bool meet(struct runner *runner)
{
    bool is_first = runner->number == 1;
    if (is_first && !take(runner))
        return false;
    if (!is_first)
        await_ready(runner, 1);
    if (!is_first && sneck_acquire(runner->lock, 0, NULL) == SNECK_OK)
        fail(runner->board, "two processes had the lock at once: this store does not reach across processes");
    atomic_fetch_add(&runner->board->ready, 1);
    await_ready(runner, runner->plan->processes);
    return !is_first || give(runner);
}

/* Every process wants the lock all the time; what counts is the time between one's release and the next one's start. */
static void run_process(struct runner *runner)
{
    struct board *board = runner->board;
    if (!meet(runner))
        return;
    int64_t begun_ns = snk_now_ns();
    int64_t until_ns = end_of(runner);
    int64_t operations = 0;
    while (goes_on(runner, until_ns)) {
        if (!take(runner))
            return;
        int64_t now_ns = snk_now_ns();
        if (atomic_load(&board->last) != runner->number && atomic_load(&board->released_ns) != 0) {
            add_sample(board, now_ns - atomic_load(&board->released_ns));
            operations++;
        }
        atomic_store(&board->last, runner->number);
        atomic_store(&board->released_ns, snk_now_ns());
        if (!give(runner))
            return;
    }
    finish(runner, begun_ns, operations);
}

static int run_child(struct runner *runner, void (*run)(struct runner *runner))
{
    sneck_error error;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (sneck_open(runner->plan->store, NULL, &runner->client, &error) != SNECK_OK ||
        sneck_mutex(runner->client, runner->name, NULL, &runner->lock, &error) != SNECK_OK)
        fail(runner->board, error.message);
    else
        run(runner);
    sneck_lock_free(runner->lock);
    sneck_close(runner->client);
    return 0;
}

/* Waits for the children; those that take far too long are killed. */
static void await_children(struct board *board, const pid_t pids[], int count, int64_t until_ns)
{
    for (int i = 0; i < count; i++) {
        while (waitpid(pids[i], NULL, WNOHANG) == 0) {
            if (snk_now_ns() < until_ns) {
                poll(NULL, 0, 5);
                continue;
            }
            fail(board, "took far too long");
            kill(pids[i], SIGKILL);
            waitpid(pids[i], NULL, 0);
            break;
        }
    }
}

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

static void evaluate(struct board *board, snk_bench_figure *figure)
{
    int count = atomic_load(&board->sample_count);
    count = count < SAMPLES_MAX ? count : SAMPLES_MAX;
    int64_t time_ns = atomic_load(&board->ended_ns) - atomic_load(&board->begun_ns);
    if (atomic_load(&board->failed)) {
        snprintf(figure->error, sizeof figure->error, "%s", board->error);
        return;
    }
    if (count > 0) {
        qsort(board->samples, (size_t)count, sizeof board->samples[0], compare);
        figure->p50_ns = board->samples[count / 2];
        figure->p99_ns = board->samples[(int64_t)count * 99 / 100];
    }
    if (time_ns > 0)
        figure->per_second = (double)atomic_load(&board->operations) * 1e9 / (double)time_ns;
}

static void (*runner_of(snk_bench_kind kind))(struct runner *)
{
    switch (kind) {
    case SNK_BENCH_REENTRY:
        return run_reentry;
    case SNK_BENCH_PAIR:
        return run_pairs;
    case SNK_BENCH_THREADS:
        return run_threads;
    case SNK_BENCH_PROCESSES:
        return run_process;
    }
    return run_pairs;
}

static void start_and_await(snk_bench_kind kind, const snk_bench_plan *plan, struct board *board)
{
    pid_t pids[PROCESSES_MAX];
    int count = kind == SNK_BENCH_PROCESSES ? plan->processes : 1;
    struct runner runner = { .plan = plan, .board = board };
    snprintf(runner.name, sizeof runner.name, "sneck-bench/%ld", (long)getpid());
    fflush(NULL);
    for (int i = 0; i < count && i < PROCESSES_MAX; i++) {
        runner.number = i + 1;
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(run_child(&runner, runner_of(kind)));
        if (pids[i] < 0) {
            fail(board, "cannot start so many processes");
            count = i;
        }
    }
    await_children(board, pids, count, snk_now_ns() + plan->time_ms * SNK_NS_PER_MS + PATIENCE_NS);
}

void snk_bench_measure(snk_bench_kind kind, const snk_bench_plan *plan, snk_bench_figure *figure_out)
{
    *figure_out = (snk_bench_figure){ .p50_ns = 0 };
    struct board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) {
        snprintf(figure_out->error, sizeof figure_out->error, "out of memory");
        return;
    }
    start_and_await(kind, plan, board);
    evaluate(board, figure_out);
    munmap(board, sizeof *board);
}
