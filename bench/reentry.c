/* What acquiring again costs the owner of a lock, without and with the release of that level. */
#include "bench.h"

#define LEVELS 200
#define ROUNDS 5000

int main(void)
{
    bench_place place;
    bench_place_make(&place);
    sneck_client *client;
    sneck_error error;
    sneck_lock *lock = bench_lock(place.url, "reentry", &client);
    bench_expect(sneck_acquire(lock, 0, &error), &error);
    int64_t up_ns = 0;
    int64_t down_ns = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_ns = snk_now_ns();
        for (int i = 0; i < LEVELS; i++)
            (void)!sneck_acquire(lock, 0, &error);
        int64_t middle_ns = snk_now_ns();
        for (int i = 0; i < LEVELS; i++)
            (void)sneck_release(lock, &error);
        up_ns += middle_ns - start_ns;
        down_ns += snk_now_ns() - middle_ns;
    }
    double up = (double)up_ns / LEVELS / ROUNDS;
    printf("re-entry                          %8.1f ns (goal: at most 100)", up);
    bench_goal_at_most(up, 100);
    printf("release of an inner level         %8.1f ns\n", (double)down_ns / LEVELS / ROUNDS);
    bench_expect(sneck_release(lock, &error), &error);
    sneck_lock_free(lock);
    sneck_close(client);
    bench_place_remove(&place);
    return 0;
}
