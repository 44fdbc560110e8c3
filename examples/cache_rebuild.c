/*
 * A cache that one process rebuilds while the others go on with what is there.
 *
 *     cache_rebuild FILE MAX_AGE_SECONDS
 *
 * Without a lock, every process that finds the cache stale starts the same expensive work at the same moment. Here one
 * of them does it; the others serve the stale copy, and only if there is none they wait for the new one.
 */
#include <sneck.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 30000

struct cache {
    const char *path;
    long max_age_s;
};

enum freshness {
    MISSING,
    STALE,
    FRESH
};

static enum freshness look(const struct cache *cache)
{
    struct stat status;
    if (stat(cache->path, &status) != 0)
        return MISSING;
    return time(NULL) - status.st_mtime <= cache->max_age_s ? FRESH : STALE;
}

static int serve(const struct cache *cache, const char *how)
{
    char text[256] = "";
    FILE *file = fopen(cache->path, "r");
    if (file == NULL || fgets(text, sizeof text, file) == NULL) {
        fprintf(stderr, "cache_rebuild: cannot read %s\n", cache->path);
        if (file != NULL)
            fclose(file);
        return 1;
    }
    fclose(file);
    printf("%s: %s", how, text);
    return 0;
}

/* The expensive work. The new copy replaces the old one in one step, so that nobody ever reads half of it. */
static sneck_status rebuild(void *context, sneck_lock *lock)
{
    const struct cache *cache = context;
    char path[4096];
    if (look(cache) == FRESH) /* somebody was faster, between our look and our lock */
        return serve(cache, "fresh") == 0 ? SNECK_OK : SNECK_UNAVAILABLE;
    int length = snprintf(path, sizeof path, "%s.%ld", cache->path, (long)getpid());
    FILE *file = length < (int)sizeof path ? fopen(path, "w") : NULL;
    if (file == NULL)
        return SNECK_UNAVAILABLE;
    nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL); /* a query that takes its time */
    fprintf(file, "built by process %ld\n", (long)getpid());
    if (fclose(file) != 0 || !sneck_is_held(lock) || rename(path, cache->path) != 0) {
        unlink(path);
        return SNECK_UNAVAILABLE;
    }
    return serve(cache, "rebuilt") == 0 ? SNECK_OK : SNECK_UNAVAILABLE;
}

/* Somebody else is at it. */
static sneck_status serve_stale(void *context, sneck_lock *lock)
{
    (void)lock;
    return serve(context, "stale") == 0 ? SNECK_OK : SNECK_UNAVAILABLE;
}

static int get(struct cache *cache)
{
    sneck_client *client = NULL;
    sneck_lock *lock = NULL;
    sneck_error error = { .status = SNECK_OK };
    enum freshness freshness = look(cache);
    if (freshness == FRESH)
        return serve(cache, "fresh");
    sneck_status status = sneck_open(NULL, NULL, &client, &error);
    if (status == SNECK_OK)
        status = sneck_mutex(client, cache->path, NULL, &lock, &error);
    if (status == SNECK_OK && freshness == STALE)
        status = sneck_with(lock, 0, rebuild, serve_stale, cache, &error);
    else if (status == SNECK_OK)
        status = sneck_with(lock, WAIT_MS, rebuild, NULL, cache, &error);
    if (status != SNECK_OK)
        fprintf(stderr, "cache_rebuild: %s %s\n", sneck_status_name(status), error.message);
    sneck_lock_free(lock);
    sneck_close(client);
    return status == SNECK_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: cache_rebuild FILE MAX_AGE_SECONDS\n");
        return 2;
    }
    return get(&(struct cache){ .path = argv[1], .max_age_s = strtol(argv[2], NULL, 10) });
}
