#include "store/redis/options.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"

#define TIMEOUT_MS_MAX 3600000
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
    sneck_status status = snk_setting_choose(url, "layout", layouts, &layout, error);
    if (status == SNECK_OK)
        status = snk_setting_choose(url, "holds", holds, &hold, error);
    if (status == SNECK_OK)
        status = snk_setting_choose(url, "wake", wakes, &wake, error);
    if (status == SNECK_OK)
        status = snk_setting_choose(url, "announce", announces, &announce, error);
    if (status == SNECK_OK)
        status = snk_setting_choose(url, "history", switches, &history, error);
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
    int64_t timeout_ms = 0;
    if (snk_setting_time(url, "timeout", TIMEOUT_MS_MAX, &timeout_ms, error) != SNECK_OK)
        return SNECK_INVALID;
    options->timeout_ns = timeout_ms * SNK_NS_PER_MS;
    bool is_unix = strcmp(url->scheme, "redis+unix") == 0;
    if (is_unix || url->path[0] == '\0' || strcmp(url->path, "/") == 0)
        return SNECK_OK;
    if (snk_setting_number(url->path + 1, "the database after the host", 0, DATABASE_MAX, &number, error) != SNECK_OK)
        return SNECK_INVALID;
    options->database = (int)number;
    return SNECK_OK;
}

sneck_status snk_redis_options_load(snk_redis_options *options, const snk_url *url, sneck_error *error)
{
    *options = (snk_redis_options){ .layout = SNK_LAYOUT_HASH };
    static const char *const verifies[] = { "full", "none", NULL };
    int verify = 0;
    sneck_status status = snk_setting_choose(url, "verify", verifies, &verify, error);
    if (status == SNECK_OK)
        status = load_words(options, url, error);
    if (status == SNECK_OK)
        status = load_numbers(options, url, error);
    if (status == SNECK_OK)
        status = snk_setting_password(url, options->password, error);
    return status;
}
