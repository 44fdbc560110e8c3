#include "quorum_bed.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "test.h"

#define MARKER "{lock:}:quorum"

static bool runs(const quorum_bed *bed, uint32_t node)
{
    return bed->nodes[node].server.pid != 0 && bed->nodes[node].admin != NULL;
}

void quorum_bed_start(quorum_bed *bed, int64_t lease_max_ms)
{
    *bed = (quorum_bed){ .lease_max_ms = lease_max_ms };
    for (uint32_t i = 0; i < QUORUM_NODES; i++)
        redis_bed_start(&bed->nodes[i]);
}

void quorum_bed_start_proxies(quorum_bed *bed)
{
    for (uint32_t i = 0; i < QUORUM_NODES; i++)
        assert_true(proxy_start(&bed->proxies[i], bed->nodes[i].server.port));
    bed->has_proxies = true;
}

void quorum_bed_stop(quorum_bed *bed)
{
    for (uint32_t i = 0; i < QUORUM_NODES; i++) {
        if (bed->has_proxies)
            proxy_stop(&bed->proxies[i]);
        if (bed->nodes[i].server.pid != 0)
            (void)kill(bed->nodes[i].server.pid, SIGCONT);
        redis_bed_stop(&bed->nodes[i]);
    }
}

static quorum_bed *chosen;

void quorum_bed_choose(quorum_bed *bed, int64_t lease_max_ms, bool has_proxies)
{
    *bed = (quorum_bed){ .lease_max_ms = lease_max_ms, .has_proxies = has_proxies };
    chosen = bed;
}

int quorum_bed_set_up(void **state)
{
    (void)state;
    bool has_proxies = chosen->has_proxies;
    quorum_bed_start(chosen, chosen->lease_max_ms);
    if (has_proxies)
        quorum_bed_start_proxies(chosen);
    quorum_bed_await_ripe(chosen);
    return 0;
}

int quorum_bed_tear_down(void **state)
{
    (void)state;
    quorum_bed_stop(chosen);
    return 0;
}

/* The marker is made old by hand; how long a server has been running cannot be. */
static void await_ripe(quorum_bed *bed, uint32_t node)
{
    redis_bed *redis = &bed->nodes[node];
    long long wanted = (bed->lease_max_ms + 999) / 1000 + 1;
    char value[64];
    (void)snprintf(value, sizeof value, "%lld 1000", (long long)bed->lease_max_ms);
    redis_bed_do(redis, "SET " MARKER " %s PX 100000000", value);
    int64_t limit_ns = snk_now_ns() + 60 * SNK_NS_PER_S;
    for (;;) {
        const char *info = redis_bed_text(redis, "INFO server");
        const char *uptime = strstr(info, "uptime_in_seconds:");
        assert_non_null(uptime);
        if (strtoll(uptime + strlen("uptime_in_seconds:"), NULL, 10) >= wanted)
            return;
        assert_true(snk_now_ns() < limit_ns);
        redis_bed_pause(20);
    }
}

void quorum_bed_await_ripe(quorum_bed *bed)
{
    for (uint32_t i = 0; i < QUORUM_NODES; i++)
        if (runs(bed, i))
            await_ripe(bed, i);
}

const char *quorum_bed_url(const quorum_bed *bed, const char *keys)
{
    static char url[512];
    size_t length = (size_t)snprintf(url, sizeof url, "redlock://sneck:secret@");
    for (uint32_t i = 0; i < QUORUM_NODES; i++)
        length += (size_t)snprintf(url + length, sizeof url - length, "%s127.0.0.1:%d", i == 0 ? "" : ",",
                                   bed->has_proxies ? bed->proxies[i].port : bed->nodes[i].server.port);
    (void)snprintf(url + length, sizeof url - length, "?lease_max=%lldms%s%s", (long long)bed->lease_max_ms,
                   keys == NULL ? "" : "&", keys == NULL ? "" : keys);
    return url;
}

sneck_client *quorum_bed_open(const quorum_bed *bed, const char *keys)
{
    sneck_error error;
    sneck_client *client = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = bed->lease_max_ms;
    if (sneck_open(quorum_bed_url(bed, keys), &options, &client, &error) != SNECK_OK)
        fail_msg("open: %s", error.message);
    return client;
}

void quorum_bed_clear(quorum_bed *bed)
{
    for (uint32_t i = 0; i < QUORUM_NODES; i++)
        if (runs(bed, i))
            redis_bed_do(&bed->nodes[i], "EVAL %s 0",
                         "for _, key in ipairs(redis.call('KEYS', '*')) do "
                         "if key ~= '" MARKER "' then redis.call('DEL', key) end end return 1");
}

void quorum_bed_kill(quorum_bed *bed, uint32_t node)
{
    redis_bed_crash(&bed->nodes[node], false);
}

void quorum_bed_revive(quorum_bed *bed, uint32_t node)
{
    redis_bed_restart(&bed->nodes[node]);
}

void quorum_bed_freeze(quorum_bed *bed, uint32_t node)
{
    assert_int_equal(kill(bed->nodes[node].server.pid, SIGSTOP), 0);
    redisFree(bed->nodes[node].admin);
    bed->nodes[node].admin = NULL;
}

void quorum_bed_thaw(quorum_bed *bed, uint32_t node)
{
    assert_int_equal(kill(bed->nodes[node].server.pid, SIGCONT), 0);
    redis_bed_connect(&bed->nodes[node]);
}

uint32_t quorum_bed_votes(quorum_bed *bed, const char *name)
{
    uint32_t votes = 0;
    for (uint32_t i = 0; i < QUORUM_NODES; i++)
        if (runs(bed, i))
            votes += redis_bed_number(&bed->nodes[i], "EXISTS lock:%s", name) == 1;
    return votes;
}

void quorum_bed_await_votes(quorum_bed *bed, const char *name, uint32_t votes)
{
    int64_t limit_ns = snk_now_ns() + 30 * SNK_NS_PER_S;
    uint32_t found = 0;
    while ((found = quorum_bed_votes(bed, name)) != votes) {
        if (snk_now_ns() >= limit_ns)
            fail_msg("%s has %u votes, not %u", name, found, votes);
        redis_bed_pause(2);
    }
}
