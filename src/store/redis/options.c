#include "store/redis/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"

#define TIMEOUT_MS_MAX 3600000L
#define DATABASE_MAX 65535

const char *const snk_redis_keys[] = { "layout",   "timeout",          "holds", "wake", "announce", "history",
                                       "replicas", "replicas_timeout", "ca",    "cert", "key",      "verify",
                                       NULL };

const char *const snk_redis_later_keys[] = { "layout",
                                             "timeout",
                                             "holds",
                                             "wake",
                                             "announce",
                                             "history",
                                             "replicas",
                                             "ca",
                                             "cert",
                                             "key",
                                             "verify",
                                             "replicas_timeout",
                                             "lease_max",
                                             "sentinel_user",
                                             "sentinel_password_file",
                                             "sentinelMasterId",
                                             NULL };

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

static sneck_status read_number(const char *text, const char *what, long least, long most, long *number_out,
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
    if (snk_url_value(url, "replicas") != NULL || snk_url_value(url, "replicas_timeout") != NULL)
        return snk_fail(error, SNECK_UNSUPPORTED, 0, "replicas= is not there yet");
    if (wake == 2 && announce == 2)
        return snk_fail(error, SNECK_INVALID, 0, "wake=all needs the public release message: leave announce=off out");
    options->layout = layout == 0 ? SNK_LAYOUT_HASH : SNK_LAYOUT_STRING;
    options->count_holds = hold == 1;
    options->wake = (snk_wake_mode)wake;
    options->announce = announce != 2;
    options->history = history == 0;
    return SNECK_OK;
}

static sneck_status load_numbers(snk_redis_options *options, const snk_url *url, sneck_error *error)
{
    long number = 0;
    const char *timeout = snk_url_value(url, "timeout");
    if (timeout != NULL) {
        if (read_number(timeout, "timeout= (milliseconds)", 1, TIMEOUT_MS_MAX, &number, error) != SNECK_OK)
            return SNECK_INVALID;
        options->timeout_ns = number * SNK_NS_PER_MS;
    }
    bool is_unix = strcmp(url->scheme, "redis+unix") == 0;
    if (is_unix || url->path[0] == '\0' || strcmp(url->path, "/") == 0)
        return SNECK_OK;
    if (read_number(url->path + 1, "the database after the host", 0, DATABASE_MAX, &number, error) != SNECK_OK)
        return SNECK_INVALID;
    options->database = (int)number;
    return SNECK_OK;
}

/* The first line of the file that SNECK_PASSWORD_FILE names, if it does. */
static sneck_status read_password_file(snk_redis_options *options, sneck_error *error)
{
    const char *path = secure_getenv("SNECK_PASSWORD_FILE");
    if (path == NULL || *path == '\0')
        return SNECK_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, options->password, sizeof options->password - 1);
    int cause = errno;
    if (fd >= 0)
        (void)close(fd);
    if (length < 0)
        return snk_fail(error, SNECK_DENIED, cause, "the file that SNECK_PASSWORD_FILE names cannot be read");
    options->password[length] = '\0';
    options->password[strcspn(options->password, "\r\n")] = '\0';
    return SNECK_OK;
}

static sneck_status load_password(snk_redis_options *options, const snk_url *url, sneck_error *error)
{
    if (*url->password == '\0')
        return read_password_file(options, error);
    if (strlen(url->password) >= sizeof options->password)
        return snk_fail(error, SNECK_INVALID, 0, "the password in the store's URL is too long");
    (void)snk_copy_text(options->password, sizeof options->password, url->password);
    return SNECK_OK;
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
        status = load_password(options, url, error);
    return status;
}
