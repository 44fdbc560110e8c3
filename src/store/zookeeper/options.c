#include "store/zookeeper/options.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

#define TIMEOUT_MS_DEFAULT 3000
#define TIMEOUT_MS_MAX 3600000
#define SESSION_MS_MAX (INT64_C(30) * 24 * 3600 * 1000 / 2)
#define PORT_DEFAULT 2181

static sneck_status load_hosts(snk_zk_options *options, const snk_url *url, sneck_error *error)
{
    size_t length = 0;
    for (size_t i = 0; i < url->host_count; i++) {
        const snk_url_host *host = &url->hosts[i];
        bool is_v6 = strchr(host->name, ':') != NULL;
        if (host->name[0] == '\0')
            break;
        length += (size_t)snprintf(options->hosts + length, sizeof options->hosts - length, "%s%s%s%s:%d",
                                   i > 0 ? "," : "", is_v6 ? "[" : "", host->name, is_v6 ? "]" : "",
                                   host->port == 0 ? PORT_DEFAULT : host->port);
        if (length >= sizeof options->hosts)
            break;
    }
    if (length == 0 || length >= sizeof options->hosts)
        return snk_fail(error, SNECK_INVALID, 0,
                        "the store's URL is zk://[user:password@]host[:2181][,host...][/path]");
    return SNECK_OK;
}

static sneck_status load_root(snk_zk_options *options, const snk_url *url, sneck_error *error)
{
    const char *path = url->path[0] == '\0' || strcmp(url->path, "/") == 0 ? SNK_ZK_ROOT_DEFAULT : url->path;
    size_t length = strlen(path);
    if (length > 1 && path[length - 1] == '/')
        length--;
    if (length > SNK_ZK_ROOT_LENGTH_MAX || strstr(path, "//") != NULL || strstr(path, "/./") != NULL ||
        strstr(path, "/../") != NULL || strncmp(path, "/zookeeper/", 11) == 0)
        return snk_fail(error, SNECK_INVALID, 0, "the path in the store's URL is none that ZooKeeper takes");
    memcpy(options->root, path, length);
    options->root[length] = '\0';
    return SNECK_OK;
}

static sneck_status load_login(snk_zk_options *options, const snk_url *url, sneck_error *error)
{
    char password[SNK_PASSWORD_SIZE];
    options->login[0] = '\0';
    if (url->user[0] == '\0')
        return url->password[0] == '\0'
                   ? SNECK_OK
                   : snk_fail(error, SNECK_INVALID, 0, "the store's URL has a password and no user");
    sneck_status status = snk_setting_password(url, password, error);
    if (status == SNECK_OK)
        (void)snprintf(options->login, sizeof options->login, "%s:%s", url->user, password);
    explicit_bzero(password, sizeof password);
    return status;
}

static sneck_status load_times(snk_zk_options *options, const snk_store_config *config, sneck_error *error)
{
    int64_t lease_ns = config->lease_ns > 0 ? config->lease_ns : SNK_LEASE_MS_DEFAULT * SNK_NS_PER_MS;
    int64_t session_ms = (lease_ns + lease_ns / 10 + SNK_ZK_SESSION_MARGIN_NS) / SNK_NS_PER_MS + 1;
    int64_t timeout_ms = TIMEOUT_MS_DEFAULT;
    if (session_ms > SESSION_MS_MAX)
        session_ms = SESSION_MS_MAX;
    sneck_status status = snk_setting_time(config->url, "session", SESSION_MS_MAX, &session_ms, error);
    if (status == SNECK_OK)
        status = snk_setting_time(config->url, "timeout", TIMEOUT_MS_MAX, &timeout_ms, error);
    options->session_ms = (int)session_ms;
    options->timeout_ns = timeout_ms * SNK_NS_PER_MS;
    return status;
}

sneck_status snk_zk_options_load(snk_zk_options *options, const snk_store_config *config, sneck_error *error)
{
    sneck_status status = load_hosts(options, config->url, error);
    if (status == SNECK_OK)
        status = load_root(options, config->url, error);
    if (status == SNECK_OK)
        status = load_login(options, config->url, error);
    if (status == SNECK_OK)
        status = load_times(options, config, error);
    return status;
}
