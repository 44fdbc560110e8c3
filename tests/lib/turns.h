/* Many processes that take turns with one lock, and a page that they share: who overlapped, and whether tokens rose. */
#ifndef SNK_TEST_TURNS_H
#define SNK_TEST_TURNS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "children.h"

/* Shared between the processes. */
typedef struct turns_board {
    _Atomic bool go;
    _Atomic bool stop;
    _Atomic int inside;
    _Atomic unsigned overlaps;
    _Atomic unsigned failures; /* acquires and releases that said so */
    char trouble[256];         /* of the first of them */
    _Atomic unsigned pairs;
    _Atomic uint64_t highest;
    _Atomic unsigned lower; /* tokens that came too late */
} turns_board;

typedef struct turns {
    char url[256];
    turns_board *board;
    int64_t lease_ms;
    unsigned rounds; /* of each; 0: until it is stopped */
    unsigned pairs;  /* of all together; 0: as many as come */
} turns;

/* Makes the board. */
void turns_init(turns *work, const char *url, int64_t lease_ms);
void turns_deinit(turns *work);

/* Starts so many processes, which wait for `go`. */
void turns_start(turns *work, test_child children[], unsigned count);
void turns_join(test_child children[], unsigned count);

/* Fails the test if two overlapped, a token came too late, or anything failed. */
void turns_expect_clean(const turns *work);

#endif
