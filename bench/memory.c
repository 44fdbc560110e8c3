/* Memory per held lock: what this process gained by 100,000 of them. */
#include "bench.h"

#define LOCKS 100000

static long anonymous_kib(void)
{
    char line[128];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "re");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "RssAnon:", 8) == 0)
            kib = strtol(line + 8, NULL, 10);
    if (status != NULL)
        (void)fclose(status);
    return kib;
}

int main(void)
{
    bench_place place;
    bench_place_make(&place);
    sneck_client *client;
    sneck_error error;
    sneck_lock *first = bench_lock(place.url, "memory/first", &client);
    bench_expect(sneck_acquire(first, 0, &error), &error);
    sneck_lock **locks = calloc(LOCKS, sizeof(sneck_lock *));
    memset(locks, 1, LOCKS * sizeof(sneck_lock *)); /* touched, so that it does not count */
    long before_kib = anonymous_kib();
    for (int i = 0; i < LOCKS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "memory/%06d", i);
        bench_expect(sneck_mutex(client, name, NULL, &locks[i], &error), &error);
        bench_expect(sneck_acquire(locks[i], 0, &error), &error);
    }
    double bytes = (double)(anonymous_kib() - before_kib) * 1024 / LOCKS;
    printf("memory per held lock              %8.0f bytes (goal: at most 600, at %d held locks)", bytes, LOCKS);
    bench_goal_at_most(bytes, 600);
    sneck_close(client);
    for (int i = 0; i < LOCKS; i++)
        sneck_lock_free(locks[i]);
    sneck_lock_free(first);
    free(locks);
    bench_place_remove(&place);
    return 0;
}
