#include "demo_round.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define FRAME_MS 50
/* A frozen seller is thawed when the others have sold so many meanwhile, or at the latest after so long. */
#define THAW_AFTER_SALES 12
#define THAW_AFTER_NS (1500 * SNK_NS_PER_MS)
/* The sellers open their clients, and later end, in so much time; then they are killed. */
#define START_NS (5 * SNK_NS_PER_S)
#define END_NS (1500 * SNK_NS_PER_MS)

/* The one thing a signal handler may write to. */
static volatile sig_atomic_t caught_signal;

static void catch_signal(int signal)
{
    caught_signal = signal;
}

void snk_demo_catch_signals(void)
{
    struct sigaction action = { .sa_handler = catch_signal };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

int snk_demo_signal(void)
{
    return (int)caught_signal;
}

struct round {
    const snk_demo_shop *shop;
    const snk_demo_rule *rule;
    snk_demo_board *board;
    pid_t pids[SNK_DEMO_SELLERS]; /* 0: none, or gone */
    int ready[2];                 /* sellers write when they are ready */
    int go[2];                    /* closed by the parent to start them all at once */
    int failures;                 /* sellers that ended with an error */
    int frozen;                   /* the seller that is stopped; -1: none */
    int64_t thaw_ns;
    int thaw_sold;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void become_seller(struct round *round, int seller)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close_fd(&round->ready[0]);
    close_fd(&round->go[1]);
    _exit(snk_demo_seller_run(round->shop, round->rule, round->board, seller,
                              (const int[2]){ round->ready[1], round->go[0] }));
}

static bool start_sellers(struct round *round)
{
    if (pipe(round->ready) != 0 || pipe(round->go) != 0) {
        fprintf(stderr, "sneck: cannot make a pipe: %s\n", strerror(errno));
        return false;
    }
    fflush(NULL);
    for (int i = 0; i < SNK_DEMO_SELLERS; i++) {
        round->pids[i] = fork();
        if (round->pids[i] == 0)
            become_seller(round, i);
        if (round->pids[i] < 0) {
            round->pids[i] = 0;
            fprintf(stderr, "sneck: cannot start a process: %s\n", strerror(errno));
            return false;
        }
    }
    close_fd(&round->ready[1]);
    close_fd(&round->go[0]);
    return true;
}

/* All sellers have opened what they need, so that the round is about selling and not about who came first. */
static bool await_ready(const struct round *round)
{
    int64_t until_ns = snk_now_ns() + START_NS;
    for (int ready = 0; ready < SNK_DEMO_SELLERS;) {
        struct pollfd fd = { .fd = round->ready[0], .events = POLLIN };
        int64_t left_ns = until_ns - snk_now_ns();
        char bytes[SNK_DEMO_SELLERS];
        if (left_ns <= 0 || caught_signal != 0)
            return false;
        if (poll(&fd, 1, (int)(left_ns / SNK_NS_PER_MS) + 1) <= 0)
            continue;
        ssize_t got = read(fd.fd, bytes, sizeof bytes);
        if (got == 0)
            return false; /* everybody is ready or gone, and some are gone */
        ready += got > 0 ? (int)got : 0;
    }
    return true;
}

static int living_count(const struct round *round)
{
    int count = 0;
    for (int i = 0; i < SNK_DEMO_SELLERS; i++)
        count += round->pids[i] != 0 ? 1 : 0;
    return count;
}

static void thaw(struct round *round)
{
    int frozen = round->frozen;
    round->frozen = -1;
    atomic_store(&round->board->frozen, -1);
    if (frozen >= 0 && round->pids[frozen] != 0)
        kill(round->pids[frozen], SIGCONT);
}

/* Takes note of sellers that ended or were stopped. */
static void reap(struct round *round)
{
    for (int i = 0; i < SNK_DEMO_SELLERS; i++) {
        int status = 0;
        if (round->pids[i] == 0 || waitpid(round->pids[i], &status, WNOHANG | WUNTRACED) != round->pids[i])
            continue;
        if (WIFSTOPPED(status)) {
            round->frozen = i;
            round->thaw_ns = snk_now_ns() + THAW_AFTER_NS;
            round->thaw_sold = snk_demo_count(round->board).sold + THAW_AFTER_SALES;
            continue;
        }
        round->failures += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
        round->pids[i] = 0;
    }
}

/* Only the others are left to sell, and they are done: nothing more will happen before the thaw. */
static bool is_quiet(const struct round *round)
{
    return living_count(round) <= 1;
}

static void watch_sellers(struct round *round, int64_t limit_ns, snk_demo_watch_fn watch, void *context)
{
    while (living_count(round) > 0 && snk_now_ns() < limit_ns && caught_signal == 0) {
        poll(NULL, 0, FRAME_MS);
        reap(round);
        snk_demo_score score = snk_demo_count(round->board);
        if (round->frozen >= 0 && (score.sold >= round->thaw_sold || snk_now_ns() >= round->thaw_ns || is_quiet(round)))
            thaw(round);
        watch(context, &score, round->frozen);
    }
}

/* The shop closes: whoever does not go home is killed. */
static void end_sellers(struct round *round)
{
    atomic_store(&round->board->closed, true);
    thaw(round);
    close_fd(&round->go[1]);
    int64_t until_ns = snk_now_ns() + END_NS;
    while (living_count(round) > 0 && snk_now_ns() < until_ns) {
        poll(NULL, 0, 10);
        reap(round);
        if (round->frozen >= 0)
            thaw(round);
    }
    for (int i = 0; i < SNK_DEMO_SELLERS; i++) {
        if (round->pids[i] == 0)
            continue;
        kill(round->pids[i], SIGKILL);
        waitpid(round->pids[i], NULL, 0);
        round->pids[i] = 0;
    }
}

snk_demo_ending snk_demo_round_play(const snk_demo_shop *shop, const snk_demo_rule *rule, snk_demo_board *board,
                                    int64_t limit_ns, snk_demo_watch_fn watch, void *context)
{
    struct round round = {
        .shop = shop, .rule = rule, .board = board, .ready = { -1, -1 }, .go = { -1, -1 }, .frozen = -1
    };
    atomic_store(&board->frozen, -1);
    bool good = snk_demo_stock_fill(shop) && start_sellers(&round) && await_ready(&round);
    board->begun_ns = snk_now_ns();
    if (good) {
        close_fd(&round.go[1]);
        watch_sellers(&round, limit_ns, watch, context);
    }
    end_sellers(&round);
    board->ended_ns = snk_now_ns();
    for (int i = 0; i < 2; i++) {
        close_fd(&round.ready[i]);
        close_fd(&round.go[i]);
    }
    if (caught_signal != 0)
        return SNK_DEMO_INTERRUPTED;
    if (!good || round.failures > 0) {
        fprintf(stderr, "sneck: the sellers could not work\n");
        return SNK_DEMO_FAILED;
    }
    snk_demo_score score = snk_demo_count(board);
    watch(context, &score, -1);
    return SNK_DEMO_PLAYED;
}
