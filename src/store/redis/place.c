#include "store/redis/place.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "store/redis/options.h"

#define PORT_REDIS 6379
#define PORT_SENTINEL 26379
#define DATABASE_MAX 65535

typedef struct form {
    const char *scheme;
    snk_topology_kind kind;
    bool tls;
    bool lettuce; /* the service is a query key, and the path is the database */
} form;

static const form forms[] = {
    { "redis", SNK_TOPOLOGY_SINGLE, false, false },
    { "rediss", SNK_TOPOLOGY_SINGLE, true, false },
    { "redis+unix", SNK_TOPOLOGY_SINGLE, false, false },
    { "redis+sentinel", SNK_TOPOLOGY_SENTINEL, false, false },
    { "rediss+sentinel", SNK_TOPOLOGY_SENTINEL, true, false },
    { "redis-sentinel", SNK_TOPOLOGY_SENTINEL, false, true },
    { "rediss-sentinel", SNK_TOPOLOGY_SENTINEL, true, true },
    { "redis+replicated", SNK_TOPOLOGY_REPLICATED, false, false },
    { "rediss+replicated", SNK_TOPOLOGY_REPLICATED, true, false },
    { "redis+cluster", SNK_TOPOLOGY_CLUSTER, false, false },
    { "rediss+cluster", SNK_TOPOLOGY_CLUSTER, true, false },
};

static const form *find_form(const char *scheme)
{
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (strcmp(forms[i].scheme, scheme) == 0)
            return &forms[i];
    }
    return NULL;
}

static sneck_status refuse(const form *found, sneck_error *error)
{
    static const char *const shapes[] = {
        [SNK_TOPOLOGY_SINGLE] = "[user:password@]host[:6379][/db]",
        [SNK_TOPOLOGY_REPLICATED] = "[user:password@]host1[:6379],host2[/db]",
        [SNK_TOPOLOGY_SENTINEL] = "[user:password@]host1[:26379],host2/service[/db]",
        [SNK_TOPOLOGY_CLUSTER] = "[user:password@]host1[:6379],host2",
    };
    return snk_fail(error, SNECK_INVALID, 0, "the store's URL is %s://%s", found->scheme,
                    found->lettuce ? "[user:password@]host1[:26379],host2[/db]?sentinelMasterId=service"
                                   : shapes[found->kind]);
}

/* ---- Hosts ---- */

static sneck_status load_hosts(snk_place *place, const form *found, const snk_url *url, sneck_error *error)
{
    bool one = found->kind == SNK_TOPOLOGY_SINGLE;
    int port = found->kind == SNK_TOPOLOGY_SENTINEL ? PORT_SENTINEL : PORT_REDIS;
    if (url->host_count == 0 || (one && url->host_count != 1))
        return refuse(found, error);
    for (size_t i = 0; i < url->host_count; i++) {
        const snk_url_host *host = &url->hosts[i];
        if (!snk_redis_address_set(&place->hosts[i], host->name, strlen(host->name),
                                   host->port > 0 ? host->port : port))
            return refuse(found, error);
    }
    place->host_count = url->host_count;
    return SNECK_OK;
}

/* ---- Path ---- */

static sneck_status load_database(snk_place *place, const form *found, const char *text, sneck_error *error)
{
    long number = 0;
    long most = found->kind == SNK_TOPOLOGY_CLUSTER ? 0 : DATABASE_MAX;
    if (*text == '\0')
        return SNECK_OK;
    if (snk_setting_number(text, "the database in the path", 0, most, &number, error) != SNECK_OK)
        return SNECK_INVALID;
    place->database = (int)number;
    return SNECK_OK;
}

static sneck_status load_service(snk_place *place, const form *found, const char *text, size_t length,
                                 sneck_error *error)
{
    if (length == 0 || length >= sizeof place->service)
        return refuse(found, error);
    memcpy(place->service, text, length);
    place->service[length] = '\0';
    return SNECK_OK;
}

static sneck_status load_path(snk_place *place, const form *found, const snk_url *url, sneck_error *error)
{
    const char *path = url->path[0] == '/' ? url->path + 1 : url->path;
    if (found->kind != SNK_TOPOLOGY_SENTINEL)
        return load_database(place, found, path, error);
    if (found->lettuce) {
        const char *service = snk_url_value(url, "sentinelMasterId");
        if (load_service(place, found, service == NULL ? "" : service, service == NULL ? 0 : strlen(service), error) !=
            SNECK_OK)
            return SNECK_INVALID;
        return load_database(place, found, path, error);
    }
    size_t length = strcspn(path, "/");
    if (load_service(place, found, path, length, error) != SNECK_OK)
        return SNECK_INVALID;
    return load_database(place, found, path[length] == '/' ? path + length + 1 : "", error);
}

/* ---- All of it ---- */

static void describe(snk_place *place)
{
    static const char *const words[] = {
        [SNK_TOPOLOGY_SINGLE] = "redis ",
        [SNK_TOPOLOGY_REPLICATED] = "redis of ",
        [SNK_TOPOLOGY_SENTINEL] = "redis by sentinel ",
        [SNK_TOPOLOGY_CLUSTER] = "redis cluster of ",
    };
    if (place->unix_path != NULL)
        (void)snprintf(place->text, sizeof place->text, "redis %.100s", place->unix_path);
    else
        (void)snprintf(place->text, sizeof place->text, "%s%.90s:%d%s", words[place->kind], place->hosts[0].host,
                       place->hosts[0].port, place->host_count > 1 ? ",…" : "");
}

sneck_status snk_place_load(snk_place *place, const snk_url *url, sneck_error *error)
{
    *place = (snk_place){ .unix_path = NULL };
    const form *found = find_form(url->scheme);
    if (found == NULL)
        return snk_fail(error, SNECK_UNSUPPORTED, 0, "there is no store \"%.40s:\"", url->scheme);
    place->kind = found->kind;
    place->tls = found->tls;
    sneck_status status = SNECK_OK;
    if (strcmp(url->scheme, "redis+unix") == 0) {
        if (url->path[0] != '/' || url->path[1] == '\0')
            return snk_fail(error, SNECK_INVALID, 0, "the store's URL is redis+unix:///path/to.sock");
        place->unix_path = url->path;
    } else {
        status = load_hosts(place, found, url, error);
        if (status == SNECK_OK)
            status = load_path(place, found, url, error);
    }
    if (status == SNECK_OK)
        describe(place);
    return status;
}
