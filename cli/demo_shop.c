#include "demo_shop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "sneck.h"

/*
 * The time between two customers of one seller, and the time of a sale. Together they keep the lock a bit more than
 * half busy: then a frozen seller's late write meets now a sale in progress, now a quiet moment.
 */
#define PAUSE_US_MIN 40000
#define PAUSE_US_MAX 240000
#define THINK_US_MIN 6000
#define THINK_US_MAX 18000
/* The first freeze comes when a quarter is sold, the next ones a quarter apart. */
#define ITEMS_PER_FREEZE (SNK_DEMO_ITEMS / (SNK_DEMO_FREEZES + 1))
#define WAIT_MS 500
#define STOCK_TEXT_SIZE 64

/* ---- The stock: what the lock protects ---------------------------------------------------------------------------- */

struct stock {
    int fd;
    bool checked;
};

struct stock_state {
    int left;
    uint64_t token; /* the highest one that was seen */
};

static bool state_load(int fd, struct stock_state *state)
{
    char text[STOCK_TEXT_SIZE] = "";
    char *rest = NULL;
    if (pread(fd, text, sizeof text - 1, 0) <= 0)
        return false;
    state->left = (int)strtol(text, &rest, 10);
    state->token = strtoull(rest, &rest, 10);
    return *rest == ' ' || *rest == '\n';
}

static bool state_save(int fd, const struct stock_state *state)
{
    char text[STOCK_TEXT_SIZE];
    int length = snprintf(text, sizeof text, "%-10d %-20" PRIu64 "\n", state->left, state->token);
    return pwrite(fd, text, (size_t)length, 0) == length;
}

/*
 * One access to the stock. The file lock lives for this one access only: any database does as much for one statement,
 * and it is what lets the resource compare a token and write in one step. `*left` < 0 only reads.
 *
 * A read shows its token too, not only a write: otherwise a late write could slip in between the read and the write of
 * the present holder, who had not shown the stock a higher token yet.
 */
static bool stock_access(const struct stock *stock, uint64_t token, int *left, bool *refused_out)
{
    struct stock_state state;
    if (flock(stock->fd, LOCK_EX) != 0)
        return false;
    bool good = state_load(stock->fd, &state);
    *refused_out = good && stock->checked && token < state.token;
    if (good && !*refused_out) {
        if (stock->checked)
            state.token = token;
        if (*left >= 0)
            state.left = *left;
        *left = state.left;
        good = state_save(stock->fd, &state);
    }
    flock(stock->fd, LOCK_UN);
    return good;
}

static bool stock_read(const struct stock *stock, uint64_t token, int *left_out, bool *refused_out)
{
    *left_out = -1;
    return stock_access(stock, token, left_out, refused_out);
}

static bool stock_write(const struct stock *stock, uint64_t token, int left, bool *refused_out)
{
    return stock_access(stock, token, &left, refused_out);
}

bool snk_demo_stock_fill(const snk_demo_shop *shop)
{
    int fd = open(shop->stock, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0 && state_save(fd, &(struct stock_state){ .left = SNK_DEMO_ITEMS });
    if (!good)
        fprintf(stderr, "sneck: cannot write %s: %s\n", shop->stock, strerror(errno));
    if (fd >= 0)
        close(fd);
    return good;
}

/* ---- A seller ------------------------------------------------------------------------------------------------------ */

struct seller {
    const snk_demo_rule *rule;
    snk_demo_board *board;
    int number;
    unsigned random;
    struct stock stock;
    sneck_client *client;
    sneck_lock *lock; /* NULL: sells without a lock */
};

static void sleep_between(struct seller *seller, int us_min, int us_max)
{
    seller->random = seller->random * 1103515245u + 12345u;
    unsigned span = (unsigned)(us_max - us_min);
    struct timespec time = snk_timespec((us_min + (int64_t)((seller->random >> 8) % span)) * SNK_NS_PER_US);
    nanosleep(&time, NULL);
}

static bool is_my_turn_to_freeze(const struct seller *seller, int item)
{
    if (!seller->rule->freezes)
        return false;
    int freezes = atomic_load(&seller->board->freezes);
    if (freezes >= SNK_DEMO_FREEZES || item > SNK_DEMO_ITEMS - (freezes + 1) * ITEMS_PER_FREEZE)
        return false;
    int none = -1;
    return atomic_compare_exchange_strong(&seller->board->frozen, &none, seller->number);
}

/* The whole process stops here, its renewals too; the parent continues it when others have gone on selling. */
static void freeze(struct seller *seller, snk_demo_sale *sale)
{
    atomic_fetch_add(&seller->board->freezes, 1);
    sale->frozen_ns = snk_now_ns();
    kill(getpid(), SIGSTOP);
}

static void note(struct seller *seller, const snk_demo_sale *sale)
{
    int place = atomic_fetch_add(&seller->board->sale_count, 1);
    if (place >= SNK_DEMO_SALES_MAX) {
        atomic_fetch_add(&seller->board->errors, 1);
        return;
    }
    snk_demo_sale *to = &seller->board->sales[place];
    to->read_ns = sale->read_ns;
    to->frozen_ns = sale->frozen_ns;
    to->written_ns = sale->written_ns;
    to->seller = seller->number;
    to->item = sale->item;
    to->refused = sale->refused;
    atomic_store(&to->done, true);
}

/* Read, think, write. False when there is nothing left to sell. */
static bool sell_under(struct seller *seller, uint64_t token)
{
    snk_demo_sale sale = { .read_ns = snk_now_ns() };
    bool refused = false;
    if (!stock_read(&seller->stock, token, &sale.item, &refused)) {
        atomic_fetch_add(&seller->board->errors, 1);
        return false;
    }
    if (refused)
        return true; /* lost it before the read: the next customer, then */
    if (sale.item == 0)
        return false;
    sleep_between(seller, THINK_US_MIN, THINK_US_MAX);
    if (is_my_turn_to_freeze(seller, sale.item))
        freeze(seller, &sale);
    if (!stock_write(&seller->stock, token, sale.item - 1, &sale.refused))
        atomic_fetch_add(&seller->board->errors, 1);
    sale.written_ns = snk_now_ns();
    note(seller, &sale);
    return true;
}

/* One customer. False when the seller can go home. */
static bool serve(struct seller *seller)
{
    if (seller->lock == NULL)
        return sell_under(seller, 0);
    sneck_status status = sneck_acquire(seller->lock, WAIT_MS, NULL);
    if (status == SNECK_TIMEOUT)
        return true; /* so that a closed shop is seen */
    if (status != SNECK_OK) {
        atomic_fetch_add(&seller->board->errors, 1);
        return true;
    }
    /*
     * The token is taken once, at the beginning, and shown with every access: it stands for the moment since which
     * nobody else may have written. Asking again before the write would not help, since the pause can come after that.
     */
    uint64_t token = sneck_token(seller->lock);
    bool more = token == 0 || sell_under(seller, token);
    status = sneck_release(seller->lock, NULL);
    if (status == SNECK_LOST)
        atomic_fetch_add(&seller->board->lost, 1);
    else if (status != SNECK_OK)
        atomic_fetch_add(&seller->board->errors, 1);
    return more;
}

static bool seller_open(struct seller *seller, const snk_demo_shop *shop)
{
    sneck_error error = { .status = SNECK_OK };
    seller->stock.fd = open(shop->stock, O_RDWR | O_CLOEXEC);
    if (seller->stock.fd < 0) {
        fprintf(stderr, "sneck: cannot open %s: %s\n", shop->stock, strerror(errno));
        return false;
    }
    if (!seller->rule->locked)
        return true;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = seller->rule->lease_ms;
    if (sneck_open(shop->store, &options, &seller->client, &error) != SNECK_OK ||
        sneck_mutex(seller->client, "stock", NULL, &seller->lock, &error) != SNECK_OK) {
        fprintf(stderr, "sneck: %s\n", error.message);
        return false;
    }
    return true;
}

static void seller_close(struct seller *seller)
{
    sneck_lock_free(seller->lock);
    sneck_close(seller->client);
    if (seller->stock.fd >= 0)
        close(seller->stock.fd);
}

int snk_demo_seller_run(const snk_demo_shop *shop, const snk_demo_rule *rule, snk_demo_board *board, int number,
                        const int ready_and_go_fds[2])
{
    struct seller seller = {
        .rule = rule,
        .board = board,
        .number = number,
        .random = (unsigned)number * 2654435761u + 1,
        .stock = { .fd = -1, .checked = rule->checked },
    };
    char byte = 0;
    bool good = seller_open(&seller, shop) && write(ready_and_go_fds[0], &byte, 1) == 1;
    close(ready_and_go_fds[0]); /* when all have done so, the parent knows that nobody is still to come */
    if (good) {
        while (read(ready_and_go_fds[1], &byte, 1) < 0 && errno == EINTR) {
        }
        /* Customers do not all come in at the same instant. */
        sleep_between(&seller, 0, PAUSE_US_MAX);
        while (!atomic_load(&board->closed) && serve(&seller))
            sleep_between(&seller, PAUSE_US_MIN, PAUSE_US_MAX);
    }
    seller_close(&seller);
    return good ? 0 : 1;
}

/* ---- Counting ------------------------------------------------------------------------------------------------------ */

/*
 * An item that is sold a second time is oversold. (When the stock has come down to 0, that is the same as everything
 * beyond a hundred: each number between was read by somebody, or it could not have gone further down.)
 */
snk_demo_score snk_demo_count(snk_demo_board *board)
{
    snk_demo_score score = { .lost = atomic_load(&board->lost), .errors = atomic_load(&board->errors) };
    bool sold[SNK_DEMO_ITEMS + 1] = { false };
    int count = atomic_load(&board->sale_count);
    for (int i = 0; i < count && i < SNK_DEMO_SALES_MAX; i++) {
        snk_demo_sale *sale = &board->sales[i];
        if (!atomic_load(&sale->done) || sale->item < 1 || sale->item > SNK_DEMO_ITEMS)
            continue;
        if (sale->refused) {
            score.refused++;
            continue;
        }
        sale->again = sold[sale->item];
        sold[sale->item] = true;
        score.sold++;
        score.oversold += sale->again ? 1 : 0;
    }
    return score;
}

/* ---- The shop ------------------------------------------------------------------------------------------------------ */

/* The path as part of a URL: whatever is not plain is percent-encoded. */
static void path_to_url(const char *path, char *url, size_t size)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    size_t length = 0;
    for (const char *c = path; *c != '\0' && length + 4 < size; c++) {
        if (strchr(plain, *c) != NULL)
            url[length++] = *c;
        else
            length += (size_t)snprintf(url + length, size - length, "%%%02X", (unsigned)(unsigned char)*c);
    }
    url[length] = '\0';
}

/* In memory where that is possible: a lock file on a disk is synced with each step, and the demo would show the disk. */
static const char *find_parent(void)
{
    const char *parent = getenv("TMPDIR");
    if (parent != NULL && parent[0] == '/' && strlen(parent) <= SNK_DEMO_PATH_MAX / 2)
        return parent;
    return access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
}

bool snk_demo_shop_open(snk_demo_shop *shop)
{
    *shop = (snk_demo_shop){ .folder = "" };
    const char *parent = find_parent();
    snprintf(shop->folder, sizeof shop->folder, "%s/sneck-demo-XXXXXX", parent);
    if (mkdtemp(shop->folder) == NULL) {
        fprintf(stderr, "sneck: cannot make a folder in %s: %s\n", parent, strerror(errno));
        shop->folder[0] = '\0';
        return false;
    }
    char encoded[3 * SNK_DEMO_PATH_MAX];
    path_to_url(shop->folder, encoded, sizeof encoded);
    snprintf(shop->store, sizeof shop->store, "sqlite://%s/locks.db", encoded);
    snprintf(shop->stock, sizeof shop->stock, "%s/stock", shop->folder);
    void *memory =
        mmap(NULL, SNK_DEMO_ROUNDS * sizeof *shop->boards, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "sneck: out of memory\n");
        snk_demo_shop_close(shop);
        return false;
    }
    shop->boards = memory;
    return true;
}

/* The folder is ours alone and flat; what cannot be removed stays for the system's own cleaning. */
static void remove_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return;
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(entries), entry->d_name, 0);
    }
    closedir(entries);
    rmdir(folder);
}

void snk_demo_shop_close(snk_demo_shop *shop)
{
    if (shop->boards != NULL)
        munmap(shop->boards, SNK_DEMO_ROUNDS * sizeof *shop->boards);
    if (shop->folder[0] != '\0')
        remove_folder(shop->folder);
    *shop = (snk_demo_shop){ .folder = "" };
}
