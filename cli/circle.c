#include "circle.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"

/* ---- Stakes ---- */

/* The parent of a process, and whether it is a `sneck`; 0 when it is not known. */
static int64_t parent_of(int64_t pid, bool *is_sneck)
{
    char path[48];
    char text[256];
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        (void)close(fd);
    text[length > 0 ? length : 0] = '\0';
    /* "pid (name) state parent ...", and the name may have brackets. */
    const char *name = strchr(text, '(');
    char *end = strrchr(text, ')');
    if (name == NULL || end == NULL || strlen(end) < 4)
        return 0;
    *end = '\0';
    *is_sneck = strcmp(name + 1, "sneck") == 0;
    return strtoll(end + 4, NULL, 10);
}

/* With itself: a `sneck` asks for several locks on several threads, and goes on when it has them all. */
static void find_ancestors(snk_stake *stake)
{
    char host[256] = "";
    bool is_sneck = false;
    size_t count = 0;
    if (gethostname(host, sizeof host - 1) != 0 || strcmp(host, stake->host) != 0)
        return;
    int64_t pid = stake->pid;
    for (int depth = 0; pid > 1 && depth < 1000 && count < SNK_ANCESTORS_MAX; depth++) {
        int64_t parent = parent_of(pid, &is_sneck);
        if (is_sneck)
            stake->ancestors[count++] = pid;
        pid = parent;
    }
}

static char *join_texts(const char *lock, const sneck_party *party)
{
    char *text = NULL;
    int length = asprintf(&text, "%s%c%s%c%s%c%s", lock, 0, party->owner, 0, party->host, 0, party->mode);
    return length < 0 ? NULL : text;
}

static void add(snk_stakes *stakes, const char *lock, const sneck_party *party, bool waits)
{
    snk_stake *at = snk_array_with_room(stakes->at, stakes->count, &stakes->room, sizeof *at);
    char *text = at == NULL ? NULL : join_texts(lock, party);
    if (at != NULL)
        stakes->at = at;
    if (text == NULL) {
        stakes->out_of_memory = true;
        return;
    }
    snk_stake *stake = &at[stakes->count++];
    *stake = (snk_stake){ .text = text, .lock = text, .pid = party->pid, .waits = waits };
    stake->owner = stake->lock + strlen(stake->lock) + 1;
    stake->host = stake->owner + strlen(stake->owner) + 1;
    stake->mode = stake->host + strlen(stake->host) + 1;
    if (waits)
        find_ancestors(stake);
}

void snk_stakes_add(snk_stakes *stakes, const sneck_info *info, int64_t age_ms)
{
    for (size_t i = 0; i < info->holder_count && info->waiter_count > 0; i++)
        if (info->holders[i].age_ms >= age_ms)
            add(stakes, info->name, &info->holders[i], false);
    for (size_t i = 0; i < info->waiter_count; i++)
        if (info->waiters[i].age_ms >= age_ms)
            add(stakes, info->name, &info->waiters[i], true);
}

void snk_stakes_deinit(snk_stakes *stakes)
{
    for (size_t i = 0; i < stakes->count; i++)
        free(stakes->at[i].text);
    free(stakes->at);
    *stakes = (snk_stakes){ 0 };
}

/* ---- Who is stuck ---- */

static bool is_mode(const snk_stake *stake, const char *mode)
{
    return strcmp(stake->mode, mode) == 0;
}

/* Whether who waits needs this other one on the same lock to go first. */
static bool is_in_the_way(const snk_stake *waiter, const snk_stake *other)
{
    bool shares = is_mode(waiter, "shared");
    if (other->waits)
        return shares && !is_mode(other, "shared") && other < waiter;
    return !(shares && is_mode(other, "shared"));
}

static bool is_the_same(const snk_stake *waiter, const snk_stake *other)
{
    if (strcmp(waiter->owner, other->owner) == 0)
        return true;
    for (size_t i = 0; i < SNK_ANCESTORS_MAX && waiter->ancestors[i] != 0; i++)
        if (waiter->ancestors[i] == other->pid && strcmp(waiter->host, other->host) == 0)
            return true;
    return false;
}

/* Somebody stuck as whom this one waits; the count: it can go on. */
static size_t find_wait_of(const snk_stakes *stakes, const snk_stake *stake)
{
    size_t index = 0;
    while (index < stakes->count && !(stakes->at[index].stuck && is_the_same(&stakes->at[index], stake)))
        index++;
    return index;
}

/* A permit can be had from any of those who have some; everything else takes all who are in the way. */
static bool is_stuck(snk_stakes *stakes, size_t index)
{
    snk_stake *waiter = &stakes->at[index];
    bool any = is_mode(waiter, "permit") || is_mode(waiter, "take");
    size_t first = index;
    while (first > 0 && strcmp(stakes->at[first - 1].lock, waiter->lock) == 0)
        first--;
    bool stuck = false;
    for (size_t i = first; i < stakes->count && strcmp(stakes->at[i].lock, waiter->lock) == 0; i++) {
        if (i == index || !is_in_the_way(waiter, &stakes->at[i]))
            continue;
        size_t next = find_wait_of(stakes, &stakes->at[i]);
        if (next == stakes->count && any)
            return false;
        if (next == stakes->count || stuck)
            continue;
        stuck = true;
        waiter->blocker = i;
        waiter->next = next;
    }
    return stuck;
}

/* Everybody who waits is taken for stuck until it is seen that he is not. */
void snk_stakes_find_stuck(snk_stakes *stakes)
{
    for (size_t i = 0; i < stakes->count; i++)
        stakes->at[i].stuck = stakes->at[i].waits;
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < stakes->count; i++) {
            if (stakes->at[i].stuck && !is_stuck(stakes, i)) {
                stakes->at[i].stuck = false;
                changed = true;
            }
        }
    }
}

size_t snk_stakes_next_circle(snk_stakes *stakes)
{
    for (size_t i = 0; i < stakes->count; i++) {
        if (!stakes->at[i].stuck)
            continue;
        /* Whoever is stuck leads to a circle, and after as many steps as there are stakes it is reached. */
        size_t first = i;
        for (size_t steps = 0; steps < stakes->count; steps++)
            first = stakes->at[first].next;
        if (stakes->at[first].told)
            continue;
        for (size_t at = first; !stakes->at[at].told; at = stakes->at[at].next)
            stakes->at[at].told = true;
        return first;
    }
    return stakes->count;
}
