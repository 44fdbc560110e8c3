/*
 * Stock without overselling, for any number of processes on this machine.
 *
 *     stock FILE fill 100      puts a hundred items on the shelf
 *     stock FILE sell          sells one: prints its number, or says that nothing is left (exit code 3)
 *
 * The lock keeps sellers apart while they run. The token keeps out a seller that slept past its lease: the shelf
 * remembers the highest token it has seen, and refuses a lower one. A database does the same with a column:
 *
 *     UPDATE shelf SET left_count = :n, token = :t WHERE id = :id AND token <= :t      -- 0 rows: refused
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sneck.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define WAIT_MS 10000
#define EXIT_SOLD_OUT 3

struct shelf {
    long left;
    uint64_t token; /* the highest one seen */
};

static bool shelf_load(int fd, struct shelf *shelf)
{
    char text[64] = "";
    char *rest = NULL;
    if (pread(fd, text, sizeof text - 1, 0) <= 0)
        return false;
    shelf->left = strtol(text, &rest, 10);
    shelf->token = strtoull(rest, &rest, 10);
    return *rest == ' ' || *rest == '\n';
}

/*
 * One access to the shelf, with a token: false when it is refused. `*left` < 0 reads, otherwise it is written. The file
 * lock is held for this one access, so that comparing the token and writing are one step.
 */
static bool shelf_access(int fd, uint64_t token, long *left)
{
    char text[64];
    struct shelf shelf = { 0, 0 };
    bool accepted = false;
    if (flock(fd, LOCK_EX) != 0)
        return false;
    if (shelf_load(fd, &shelf) && token >= shelf.token) {
        if (*left >= 0)
            shelf.left = *left;
        int length = snprintf(text, sizeof text, "%-20ld %-20" PRIu64 "\n", shelf.left, token);
        accepted = pwrite(fd, text, (size_t)length, 0) == length;
        *left = shelf.left;
    }
    flock(fd, LOCK_UN);
    return accepted;
}

static int fill(const char *path, const char *count)
{
    FILE *file = fopen(path, "w");
    bool good = file != NULL && fprintf(file, "%-20ld %-20d\n", strtol(count, NULL, 10), 0) > 0;
    if (file != NULL && fclose(file) != 0)
        good = false;
    if (!good)
        perror(path);
    return good ? 0 : 1;
}

/* What happens under the lock. The token was taken when the lock was, and is shown with each access. */
static int sell_one(int fd, uint64_t token)
{
    long left = -1;
    if (!shelf_access(fd, token, &left)) {
        fprintf(stderr, "refused: somebody with a higher token was here\n");
        return 1;
    }
    if (left == 0) {
        printf("sold out\n");
        return EXIT_SOLD_OUT;
    }
    long item = left;
    left = item - 1;
    if (!shelf_access(fd, token, &left)) {
        fprintf(stderr, "refused: somebody with a higher token was here\n");
        return 1;
    }
    printf("sold item %ld\n", item);
    return 0;
}

static int sell(const char *path)
{
    sneck_client *client = NULL;
    sneck_lock *lock = NULL;
    sneck_error error;
    int code = 1;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        perror(path);
        return 1;
    }
    if (sneck_open(NULL, NULL, &client, &error) == SNECK_OK &&
        sneck_mutex(client, path, NULL, &lock, &error) == SNECK_OK &&
        sneck_acquire(lock, WAIT_MS, &error) == SNECK_OK) {
        code = sell_one(fd, sneck_token(lock));
        sneck_release(lock, NULL); /* lost or not: the shelf has decided */
    } else {
        fprintf(stderr, "stock: %s\n", error.message);
    }
    sneck_lock_free(lock);
    sneck_close(client);
    close(fd);
    return code;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[2], "fill") == 0)
        return fill(argv[1], argv[3]);
    if (argc == 3 && strcmp(argv[2], "sell") == 0)
        return sell(argv[1]);
    fprintf(stderr, "usage: stock FILE fill COUNT | stock FILE sell\n");
    return 2;
}
