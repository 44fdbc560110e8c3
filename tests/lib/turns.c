#include "turns.h"

#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "sneck.h"
#include "test.h"

void turns_init(turns *work, const char *url, int64_t lease_ms)
{
    *work = (turns){ .lease_ms = lease_ms };
    (void)snprintf(work->url, sizeof work->url, "%s", url);
    work->board = mmap(NULL, sizeof *work->board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(work->board != MAP_FAILED);
}

void turns_deinit(turns *work)
{
    (void)munmap(work->board, sizeof *work->board);
}

/* ---- In each process ---- */

static void pause_ms(int64_t ms)
{
    struct timespec pause = snk_timespec(ms * SNK_NS_PER_MS);
    (void)nanosleep(&pause, NULL);
}

static void note_hold(turns_board *board, uint64_t token)
{
    if (token == 0)
        return; /* lost meanwhile: it has none to show */
    if (atomic_fetch_add(&board->inside, 1) != 0)
        (void)atomic_fetch_add(&board->overlaps, 1);
    if (atomic_exchange(&board->highest, token) >= token)
        (void)atomic_fetch_add(&board->lower, 1);
    (void)atomic_fetch_sub(&board->inside, 1);
    (void)atomic_fetch_add(&board->pairs, 1);
}

static void note_failure(turns_board *board, const char *call, const sneck_error *error)
{
    if (atomic_fetch_add(&board->failures, 1) == 0)
        (void)snprintf(board->trouble, sizeof board->trouble, "%s: %s %s", call, sneck_status_name(error->status),
                       error->message);
}

static bool goes_on(const turns *self, unsigned round)
{
    return !atomic_load(&self->board->stop) && (self->rounds == 0 || round < self->rounds) &&
           (self->pairs == 0 || atomic_load(&self->board->pairs) < self->pairs);
}

static int take_turns(void *context)
{
    const turns *self = context;
    turns_board *board = self->board;
    sneck_error error;
    sneck_client *client = NULL;
    sneck_lock *lock = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = self->lease_ms;
    CHECK(sneck_open(self->url, &options, &client, &error) == SNECK_OK);
    CHECK(sneck_mutex(client, "a", NULL, &lock, &error) == SNECK_OK);
    test_child_ready();
    while (!atomic_load(&board->go))
        pause_ms(1);
    for (unsigned round = 0; goes_on(self, round); round++) {
        if (sneck_acquire(lock, 60000, &error) != SNECK_OK) {
            note_failure(board, "acquire", &error);
            pause_ms(5);
            continue;
        }
        note_hold(board, sneck_token(lock));
        if (sneck_release(lock, &error) != SNECK_OK)
            note_failure(board, "release", &error);
    }
    sneck_lock_free(lock);
    sneck_close(client);
    return 0;
}

/* ---- For the test ---- */

void turns_start(turns *work, test_child children[], unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        children[i] = test_child_start(take_turns, work);
    for (unsigned i = 0; i < count; i++)
        test_child_await(&children[i]);
}

void turns_join(test_child children[], unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(test_child_join(&children[i]), 0);
}

void turns_expect_clean(const turns *work)
{
    if (atomic_load(&work->board->failures) > 0)
        fail_msg("%u failed: %s", atomic_load(&work->board->failures), work->board->trouble);
    assert_int_equal(atomic_load(&work->board->overlaps), 0);
    assert_int_equal(atomic_load(&work->board->lower), 0);
}
