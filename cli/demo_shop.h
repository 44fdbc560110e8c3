/*
 * The shop of `sneck demo`: a hundred numbered items, a stock file that says how many are left, and sellers, each a
 * process of its own, who read the file, think, and write one less. What happens is noted on a board in shared memory;
 * every figure of the demo is counted from it.
 */
#ifndef SNK_CLI_DEMO_SHOP_H
#define SNK_CLI_DEMO_SHOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SNK_DEMO_SELLERS 8
#define SNK_DEMO_ITEMS 100
#define SNK_DEMO_ROUNDS 4
#define SNK_DEMO_FREEZES 3
#define SNK_DEMO_SALES_MAX 2048
#define SNK_DEMO_PATH_MAX 512

/* How a round is played. */
typedef struct snk_demo_rule {
    const char *title;
    bool locked;  /* sellers take the lock around read, think and write */
    bool freezes; /* now and then the holder is stopped (SIGSTOP) between read and write, past its lease */
    bool checked; /* the stock refuses a token that is lower than the highest it has seen */
    int64_t lease_ms;
} snk_demo_rule;

/* One read, think and write that came to its end. Written by the seller, then `done` is set. */
typedef struct snk_demo_sale {
    int64_t read_ns;
    int64_t frozen_ns; /* when it was stopped; 0: it was not */
    int64_t written_ns;
    int seller;
    int item;
    bool refused; /* by the token check: not sold */
    bool again;   /* this item had been sold before; set by snk_demo_count */
    atomic_bool done;
} snk_demo_sale;

/* One round, in memory that parent and sellers share. */
typedef struct snk_demo_board {
    int64_t begun_ns; /* CLOCK_BOOTTIME, as all times here; set before the sellers start */
    int64_t ended_ns;
    atomic_bool closed; /* the shop closes: the time is over */
    atomic_int freezes;
    atomic_int frozen; /* the seller that stops, or is stopped, now; -1: none */
    atomic_int lost;   /* holds that ended before their release */
    atomic_int errors; /* calls that failed for another reason */
    atomic_int sale_count;
    snk_demo_sale sales[SNK_DEMO_SALES_MAX];
} snk_demo_board;

/* What the board says. */
typedef struct snk_demo_score {
    int sold;
    int oversold; /* sales of an item that had been sold before */
    int refused;
    int lost;
    int errors;
} snk_demo_score;

typedef struct snk_demo_shop {
    char folder[SNK_DEMO_PATH_MAX]; /* private; the store and the stock are in it */
    char stock[SNK_DEMO_PATH_MAX + 16];
    char store[3 * SNK_DEMO_PATH_MAX + 32]; /* a URL */
    snk_demo_board *boards;                 /* SNK_DEMO_ROUNDS of them, shared with the sellers */
} snk_demo_shop;

/* Makes the private folder and the boards. False: it printed why. */
bool snk_demo_shop_open(snk_demo_shop *shop);

/* Removes everything again. */
void snk_demo_shop_close(snk_demo_shop *shop);

/* Writes a full stock. False: it printed why. */
bool snk_demo_stock_fill(const snk_demo_shop *shop);

/*
 * The life of one seller, in its own process: writes a byte to `ready_fd` when it could begin, begins when `go_fd` ends,
 * sells until nothing is left or the shop closes. Returns the exit code of the process.
 */
int snk_demo_seller_run(const snk_demo_shop *shop, const snk_demo_rule *rule, snk_demo_board *board, int seller,
                        const int ready_and_go_fds[2]);

/* Counts what is on the board so far. To be called by the parent only. */
snk_demo_score snk_demo_count(snk_demo_board *board);

#endif
