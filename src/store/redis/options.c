#include "store/redis/options.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"

#define TIMEOUT_MS_MAX 3600000
#define REPLICAS_TIMEOUT_MS 1000
#define REPLICAS_MAX 1000

#define REDIS_KEYS                                                                                                     \
    "layout", "timeout", "holds", "wake", "announce", "history", "replicas", "replicas_timeout", "ca", "cert", "key",  \
        "verify"
#define SENTINEL_KEYS REDIS_KEYS, "sentinel_user", "sentinel_password_file"

const char *const snk_redis_keys[] = { REDIS_KEYS, NULL };
const char *const snk_redis_sentinel_keys[] = { SENTINEL_KEYS, NULL };
const char *const snk_redis_lettuce_keys[] = { SENTINEL_KEYS, "sentinelMasterId", NULL };

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

static sneck_status load_timeout(snk_redis_options *options, const snk_url *url, sneck_error *error)
{
    int64_t timeout_ms = 0;
    sneck_status status = snk_setting_time(url, "timeout", TIMEOUT_MS_MAX, &timeout_ms, error);
    options->timeout_ns = timeout_ms * SNK_NS_PER_MS;
    return status;
}

static sneck_status load_replicas(snk_redis_options *options, const snk_url *url, sneck_error *error)
{
    const char *replicas = snk_url_value(url, "replicas");
    int64_t timeout_ms = 0;
    long number = 0;
    if (snk_setting_time(url, "replicas_timeout", TIMEOUT_MS_MAX, &timeout_ms, error) != SNECK_OK)
        return SNECK_INVALID;
    if (replicas == NULL && timeout_ms > 0)
        return snk_fail(error, SNECK_INVALID, 0, "replicas_timeout= is for replicas=, which is not given");
    options->commitment.timeout_ns = (timeout_ms > 0 ? timeout_ms : REPLICAS_TIMEOUT_MS) * SNK_NS_PER_MS;
    if (replicas == NULL)
        return SNECK_OK;
    options->commits = true;
    if (strcmp(replicas, "majority") == 0) {
        options->commitment.rule = SNK_COMMIT_MAJORITY;
    } else if (strcmp(replicas, "all") == 0) {
        options->commitment.rule = SNK_COMMIT_ALL;
    } else if (snk_setting_number(replicas, "replicas= (or majority, or all)", 0, REPLICAS_MAX, &number, error) ==
               SNECK_OK) {
        options->commitment.count = (unsigned)number;
        options->commits = number > 0;
    } else {
        return SNECK_INVALID;
    }
    return SNECK_OK;
}

static sneck_status load_sentinel_password(snk_redis_options *options, const snk_url *url, sneck_error *error)
{
    return snk_setting_secret(snk_url_value(url, "sentinel_password_file"),
                              "sentinel_password_file=", options->sentinel_password, error);
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
        status = load_timeout(options, url, error);
    if (status == SNECK_OK)
        status = load_replicas(options, url, error);
    if (status == SNECK_OK)
        status = snk_setting_password(url, options->password, error);
    if (status == SNECK_OK)
        status = load_sentinel_password(options, url, error);
    return status;
}
