#include "store/quorum/options.h"

#include <string.h>

#include "base/duration.h"
#include "base/error.h"
#include "base/limits.h"

#define TIMEOUT_MS_MAX 3600000
#define DATABASE_MAX 65535

const char *const snk_quorum_keys[] = { "layout", "timeout", "holds", "wake",   "announce",  "history",
                                        "ca",     "cert",    "key",   "verify", "lease_max", NULL };

static sneck_status check_hosts(const snk_url *url, sneck_error *error)
{
    if (url->host_count == 0 || url->host_count > SNK_QUORUM_NODES_MAX)
        return snk_fail(error, SNECK_INVALID, 0, "the store's URL is %s://[user:password@]host:port,host:port,…[/db]",
                        url->scheme);
    for (size_t i = 0; i < url->host_count; i++) {
        if (url->hosts[i].name[0] == '\0')
            return snk_fail(error, SNECK_INVALID, 0, "a node in the store's URL has no name");
        for (size_t j = 0; j < i; j++)
            if (strcmp(url->hosts[i].name, url->hosts[j].name) == 0 && url->hosts[i].port == url->hosts[j].port)
                return snk_fail(error, SNECK_INVALID, 0, "%.80s:%d is twice in the store's URL: its vote counts once",
                                url->hosts[i].name, url->hosts[i].port);
    }
    return SNECK_OK;
}

/* Words that other forms of Redis have a choice of, and a quorum has not. */
static sneck_status check_words(const snk_url *url, sneck_error *error)
{
    static const char *const layouts[] = { "hash", "string", "redisson", NULL };
    static const char *const wakes[] = { "all", "one", "grant", NULL };
    int layout = 0;
    int wake = 0;
    sneck_status status = snk_setting_choose(url, "layout", layouts, &layout, error);
    if (status == SNECK_OK)
        status = snk_setting_choose(url, "wake", wakes, &wake, error);
    if (status == SNECK_OK && layout != 0)
        status = snk_fail(error, SNECK_UNSUPPORTED, 0, "a quorum of nodes (redlock:) keeps locks as hashes only");
    if (status == SNECK_OK && wake != 0)
        status = snk_fail(error, SNECK_UNSUPPORTED, 0,
                          "the nodes of a quorum (redlock:) know no queue: wake=all is the only way there is");
    return status;
}

static sneck_status load_words(snk_quorum_options *options, const snk_url *url, sneck_error *error)
{
    static const char *const holds[] = { "local", "store", NULL };
    static const char *const announces[] = { "on", "plain", "off", NULL };
    static const char *const switches[] = { "on", "off", NULL };
    static const char *const verifies[] = { "full", "none", NULL };
    int hold = 0;
    int announce = 0;
    int history = 0;
    int verify = 0;
    sneck_status status = snk_setting_choose(url, "holds", holds, &hold, error);
    if (status == SNECK_OK)
        status = snk_setting_choose(url, "announce", announces, &announce, error);
    if (status == SNECK_OK)
        status = snk_setting_choose(url, "history", switches, &history, error);
    if (status == SNECK_OK)
        status = snk_setting_choose(url, "verify", verifies, &verify, error);
    options->count_holds = hold == 1;
    options->announce = announce != 2;
    options->history = history == 0;
    return status;
}

static sneck_status load_numbers(snk_quorum_options *options, const snk_url *url, sneck_error *error)
{
    long number = 0;
    int64_t timeout_ms = SNK_QUORUM_TIMEOUT_NS / SNK_NS_PER_MS;
    const char *lease_max = snk_url_value(url, "lease_max");
    options->lease_max_ms = SNK_QUORUM_LEASE_MAX_MS;
    if (snk_setting_time(url, "timeout", TIMEOUT_MS_MAX, &timeout_ms, error) != SNECK_OK)
        return SNECK_INVALID;
    options->timeout_ns = timeout_ms * SNK_NS_PER_MS;
    if (lease_max != NULL && (!snk_duration_parse_ms(lease_max, &options->lease_max_ms) ||
                              options->lease_max_ms < SNK_LEASE_MS_MIN || options->lease_max_ms > SNK_LEASE_MS_MAX))
        return snk_fail(error, SNECK_INVALID, 0, "lease_max= in the store's URL is a duration of at least %lld ms",
                        (long long)SNK_LEASE_MS_MIN);
    if (url->path[0] == '\0' || strcmp(url->path, "/") == 0)
        return SNECK_OK;
    if (snk_setting_number(url->path + 1, "the database after the hosts", 0, DATABASE_MAX, &number, error) != SNECK_OK)
        return SNECK_INVALID;
    options->database = (int)number;
    return SNECK_OK;
}

sneck_status snk_quorum_options_load(snk_quorum_options *options, const snk_url *url, sneck_error *error)
{
    *options = (snk_quorum_options){ .database = 0 };
    sneck_status status = check_hosts(url, error);
    if (status == SNECK_OK)
        status = check_words(url, error);
    if (status == SNECK_OK)
        status = load_words(options, url, error);
    if (status == SNECK_OK)
        status = load_numbers(options, url, error);
    if (status == SNECK_OK)
        status = snk_setting_password(url, options->password, error);
    return status;
}
