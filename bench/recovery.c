/* How long the next one waits after the holder, or the first of a fair queue, was killed. */
#include "bench.h"

#define ROUNDS 300

typedef struct scene {
    char url[128];
    _Atomic uint32_t held; /* a holder has the lock */
    _Atomic uint32_t turn; /* whose turn it is to ask for the lock: processes are forked before the first client */
    _Atomic uint32_t got;
    _Atomic int64_t got_at_ns;
    bool fair;
} scene;

static void raise_word(_Atomic uint32_t *word)
{
    atomic_fetch_add(word, 1);
    snk_futex_wake(word, 1 << 30, true);
}

static void await_word(_Atomic uint32_t *word, uint32_t value)
{
    for (uint32_t seen = atomic_load(word); seen < value; seen = atomic_load(word)) {
        snk_futex_word wanted = { .word = word, .expected = seen, .shared = true };
        (void)snk_futex_wait_any(&wanted, 1, SNK_NEVER_NS);
    }
}

static sneck_lock *open_lock(scene *s, sneck_client **client_out)
{
    sneck_error error;
    sneck_lock *lock = NULL;
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.fair = s->fair;
    bench_expect(sneck_open(s->url, NULL, client_out, &error), &error);
    bench_expect(sneck_mutex(*client_out, "recovery", &options, &lock, &error), &error);
    return lock;
}

static void hold_until_killed(scene *s, uint32_t turn)
{
    sneck_client *client;
    sneck_error error;
    await_word(&s->turn, turn);
    sneck_lock *lock = open_lock(s, &client);
    bench_expect(sneck_acquire(lock, SNECK_FOREVER, &error), &error);
    raise_word(&s->held);
    for (;;)
        (void)pause();
}

static void hold_first(void *context)
{
    hold_until_killed(context, 0);
}

static void hold_second(void *context)
{
    hold_until_killed(context, 1);
}

static void wait_last(void *context)
{
    scene *s = context;
    sneck_client *client;
    sneck_error error;
    await_word(&s->turn, 2);
    sneck_lock *lock = open_lock(s, &client);
    bench_expect(sneck_acquire(lock, SNECK_FOREVER, &error), &error);
    atomic_store(&s->got_at_ns, snk_now_ns());
    raise_word(&s->got);
    (void)sneck_release(lock, &error);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void await_waiters(sneck_client *client, size_t count)
{
    size_t waiting = 0;
    while (waiting != count) {
        sneck_info *info = NULL;
        sneck_error error;
        bench_expect(sneck_inspect(client, "recovery", &info, &error), &error);
        waiting = info->waiter_count;
        sneck_info_free(info);
    }
}

static void kill_and_reap(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

/* A holder, perhaps a first waiter, and a last one; all but the last are killed at the same time. */
static int64_t one_round(scene *s, bool with_first_waiter)
{
    pid_t holder = bench_spawn(hold_first, s);
    pid_t first = with_first_waiter ? bench_spawn(hold_second, s) : -1;
    pid_t last = bench_spawn(wait_last, s);
    sneck_client *client;
    sneck_error error;
    bench_expect(sneck_open(s->url, NULL, &client, &error), &error);
    await_word(&s->held, 1);
    raise_word(&s->turn);
    await_waiters(client, with_first_waiter ? 1 : 0);
    raise_word(&s->turn);
    await_waiters(client, with_first_waiter ? 2 : 1);
    int64_t killed_at_ns = snk_now_ns();
    if (with_first_waiter)
        (void)kill(first, SIGKILL);
    (void)kill(holder, SIGKILL);
    await_word(&s->got, 1);
    bench_join(last);
    kill_and_reap(holder);
    if (with_first_waiter)
        kill_and_reap(first);
    sneck_close(client);
    return atomic_load(&s->got_at_ns) - killed_at_ns;
}

static void report(const char *what, const bench_place *place, bool fair)
{
    static int64_t times_ns[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        scene *s = bench_share(sizeof *s);
        (void)memcpy(s->url, place->url, sizeof s->url);
        s->fair = fair;
        times_ns[i] = one_round(s, fair);
        (void)munmap(s, sizeof *s);
    }
    double p50_ms = bench_percentile_us(times_ns, ROUNDS, 50) / 1e3;
    double p99_ms = bench_percentile_us(times_ns, ROUNDS, 99) / 1e3;
    printf("%-33s %8.2f ms p50, %.2f ms p99 of %d (goal: p99 at most 100 ms)", what, p50_ms, p99_ms, ROUNDS);
    bench_goal_at_most(p99_ms, 100);
}

int main(void)
{
    bench_place place;
    bench_place_make(&place);
    report("holder killed", &place, false);
    report("holder and first fair waiter", &place, true);
    bench_place_remove(&place);
    return 0;
}
