#include "store/redis/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"

#define TIMEOUT_MS_MAX 3600000L
#define REPLICAS_TIMEOUT_MS 1000
#define REPLICAS_MAX 1000

#define REDIS_KEYS                                                                                                     \
    "layout", "timeout", "holds", "wake", "announce", "history", "replicas", "replicas_timeout", "ca", "cert", "key",  \
        "verify"
#define SENTINEL_KEYS REDIS_KEYS, "sentinel_user", "sentinel_password_file"

const char *const snk_redis_keys[] = { REDIS_KEYS, NULL };
const char *const snk_redis_sentinel_keys[] = { SENTINEL_KEYS, NULL };
const char *const snk_redis_lettuce_keys[] = { SENTINEL_KEYS, "sentinelMasterId", NULL };
const char *const snk_redis_later_keys[] = { REDIS_KEYS, "lease_max", NULL };

/* The place of a key's value in `words` (ends with NULL); the first when the key is not given. */
static sneck_status choose(const snk_url *url, const char *key, const char *const words[], int *choice_out,
                           sneck_error *error)
{
    const char *value = snk_url_value(url, key);
    *choice_out = 0;
    if (value == NULL)
        return SNECK_OK;
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], value) == 0) {
            *choice_out = i;
            return SNECK_OK;
        }
    }
    return snk_fail(error, SNECK_INVALID, 0, "%s=%.40s in the store's URL: it is one of %s %s %s", key, value, words[0],
                    words[1], words[2] == NULL ? "" : words[2]);
}

sneck_status snk_redis_read_number(const char *text, const char *what, long least, long most, long *number_out,
                                   sneck_error *error)
{
    char *end = NULL;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || errno != 0 || number < least || number > most)
        return snk_fail(error, SNECK_INVALID, 0, "%s in the store's URL is a number from %ld to %ld", what, least,
                        most);
    *number_out = number;
    return SNECK_OK;
}

static sneck_status load_words(snk_redis_options *options, const snk_url *url, sneck_error *error)
{
    static const char *const layouts[] = { "hash", "string", "redisson", NULL };
    static const char *const holds[] = { "local", "store", NULL };
    static const char *const wakes[] = { "grant", "one", "all", NULL };
    static const char *const announces[] = { "on", "plain", "off", NULL };
    static const char *const switches[] = { "on", "off", NULL };
    int layout = 0;
    int hold = 0;
    int wake = 0;
    int announce = 0;
    int history = 0;
    sneck_status status = choose(url, "layout", layouts, &layout, error);
    if (status == SNECK_OK)
        status = choose(url, "holds", holds, &hold, error);
    if (status == SNECK_OK)
        status = choose(url, "wake", wakes, &wake, error);
    if (status == SNECK_OK)
        status = choose(url, "announce", announces, &announce, error);
    if (status == SNECK_OK)
        status = choose(url, "history", switches, &history, error);
    if (status != SNECK_OK)
        return status;
    if (layout == 2)
        return snk_fail(error, SNECK_UNSUPPORTED, 0, "layout=redisson is not there yet; use hash or string");
    if (hold == 1 && layout != 0)
        return snk_fail(error, SNECK_INVALID, 0, "holds=store needs layout=hash: a string has no place for a count");
    if (wake == 2 && announce == 2)
        return snk_fail(error, SNECK_INVALID, 0, "wake=all needs the public release message: leave announce=off out");
    options->layout = layout == 0 ? SNK_LAYOUT_HASH : SNK_LAYOUT_STRING;
    options->count_holds = hold == 1;
    options->wake = (snk_wake_mode)wake;
    options->announce = announce != 2;
    options->announce_plainly = announce == 1;
    options->history = history == 0;
    return SNECK_OK;
}

static sneck_status load_numbers(snk_redis_options *options, const snk_url *url, sneck_error *error)
{
    long number = 0;
    const char *timeout = snk_url_value(url, "timeout");
    if (timeout == NULL)
        return SNECK_OK;
    if (snk_redis_read_number(timeout, "timeout= (milliseconds)", 1, TIMEOUT_MS_MAX, &number, error) != SNECK_OK)
        return SNECK_INVALID;
    options->timeout_ns = number * SNK_NS_PER_MS;
    return SNECK_OK;
}

static sneck_status load_replicas(snk_redis_options *options, const snk_url *url, sneck_error *error)
{
    const char *replicas = snk_url_value(url, "replicas");
    const char *timeout = snk_url_value(url, "replicas_timeout");
    long number = REPLICAS_TIMEOUT_MS;
    if (timeout != NULL && snk_redis_read_number(timeout, "replicas_timeout= (milliseconds)", 1, TIMEOUT_MS_MAX,
                                                 &number, error) != SNECK_OK)
        return SNECK_INVALID;
    options->commitment.timeout_ns = number * SNK_NS_PER_MS;
    if (replicas == NULL)
        return timeout == NULL
                   ? SNECK_OK
                   : snk_fail(error, SNECK_INVALID, 0, "replicas_timeout= is for replicas=, which is not given");
    options->commits = true;
    if (strcmp(replicas, "majority") == 0) {
        options->commitment.rule = SNK_COMMIT_MAJORITY;
    } else if (strcmp(replicas, "all") == 0) {
        options->commitment.rule = SNK_COMMIT_ALL;
    } else if (snk_redis_read_number(replicas, "replicas= (or majority, or all)", 0, REPLICAS_MAX, &number, error) ==
               SNECK_OK) {
        options->commitment.count = (unsigned)number;
        options->commits = number > 0;
    } else {
        return SNECK_INVALID;
    }
    return SNECK_OK;
}

/* The first line of a file that `what` names. */
static sneck_status read_secret(const char *path, const char *what, char secret[SNK_PASSWORD_SIZE], sneck_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, secret, SNK_PASSWORD_SIZE - 1);
    int cause = errno;
    if (fd >= 0)
        (void)close(fd);
    if (length < 0)
        return snk_fail(error, SNECK_DENIED, cause, "the file that %s names cannot be read", what);
    secret[length] = '\0';
    secret[strcspn(secret, "\r\n")] = '\0';
    return SNECK_OK;
}

static sneck_status load_password(snk_redis_options *options, const snk_url *url, sneck_error *error)
{
    const char *file = secure_getenv("SNECK_PASSWORD_FILE");
    if (*url->password == '\0')
        return file == NULL || *file == '\0' ? SNECK_OK
                                             : read_secret(file, "SNECK_PASSWORD_FILE", options->password, error);
    if (strlen(url->password) >= sizeof options->password)
        return snk_fail(error, SNECK_INVALID, 0, "the password in the store's URL is too long");
    (void)snk_copy_text(options->password, sizeof options->password, url->password);
    return SNECK_OK;
}

static sneck_status load_sentinel_password(snk_redis_options *options, const snk_url *url, sneck_error *error)
{
    const char *file = snk_url_value(url, "sentinel_password_file");
    return file == NULL ? SNECK_OK : read_secret(file, "sentinel_password_file=", options->sentinel_password, error);
}

sneck_status snk_redis_options_load(snk_redis_options *options, const snk_url *url, sneck_error *error)
{
    *options = (snk_redis_options){ .layout = SNK_LAYOUT_HASH };
    static const char *const verifies[] = { "full", "none", NULL };
    int verify = 0;
    sneck_status status = choose(url, "verify", verifies, &verify, error);
    if (status == SNECK_OK)
        status = load_words(options, url, error);
    if (status == SNECK_OK)
        status = load_numbers(options, url, error);
    if (status == SNECK_OK)
        status = load_replicas(options, url, error);
    if (status == SNECK_OK)
        status = load_password(options, url, error);
    if (status == SNECK_OK)
        status = load_sentinel_password(options, url, error);
    return status;
}
