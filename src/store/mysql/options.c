#include "store/mysql/options.h"

#include <stdio.h>

#include "base/error.h"

#define TIMEOUT_MS_MAX 3600000

const char *const snk_my_keys[] = { "mode", "timeout", "connections", "ca", "cert", "key", "verify", NULL };

static sneck_status load_keys(snk_my_options *options, const snk_url *url, sneck_error *error)
{
    static const char *const modes[] = { "lease", "row", NULL };
    static const char *const checks[] = { "full", "none", NULL };
    int mode = 0;
    int verify = 0;
    int64_t timeout_ms = SNK_MY_TIMEOUT_NS / SNK_NS_PER_MS;
    long connections = SNK_MY_CONNECTIONS_DEFAULT;
    sneck_status status = snk_setting_choose(url, "mode", modes, &mode, error);
    if (status == SNECK_OK)
        status = snk_setting_choose(url, "verify", checks, &verify, error);
    if (status == SNECK_OK)
        status = snk_setting_time(url, "timeout", TIMEOUT_MS_MAX, &timeout_ms, error);
    const char *text = snk_url_value(url, "connections");
    if (status == SNECK_OK && text != NULL)
        status = snk_setting_number(text, "connections=", 1, SNK_MY_CONNECTIONS_MAX, &connections, error);
    options->locks_rows = mode == 1;
    options->verifies = verify == 0;
    options->timeout_ns = timeout_ms * SNK_NS_PER_MS;
    options->connections = (unsigned)connections;
    return status;
}

static void copy_key(char *to, size_t size, const snk_url *url, const char *key)
{
    const char *value = snk_url_value(url, key);
    (void)snk_copy_text(to, size, value == NULL ? "" : value);
}

static void copy_hosts(snk_my_options *options, const snk_url *url)
{
    options->host_count = url->host_count > 0 ? url->host_count : 1;
    for (size_t i = 0; i < url->host_count; i++) {
        (void)snk_copy_text(options->hosts[i].name, sizeof options->hosts[i].name, url->hosts[i].name);
        options->hosts[i].port = (unsigned)url->hosts[i].port;
    }
    char port[16] = "";
    if (options->hosts[0].port != 0)
        (void)snprintf(port, sizeof port, ":%u", options->hosts[0].port);
    (void)snprintf(options->where, sizeof options->where, "mysql %.80s%s%s", options->hosts[0].name, port,
                   options->host_count > 1 ? ",…" : "");
}

sneck_status snk_my_options_load(snk_my_options *options, const snk_url *url, sneck_error *error)
{
    *options = (snk_my_options){ .host_count = 0 };
    sneck_status status = load_keys(options, url, error);
    if (status == SNECK_OK && (url->path[0] != '/' || url->path[1] == '\0'))
        status = snk_fail(error, SNECK_INVALID, 0, "the URL names no database: mysql://user:password@host/database");
    if (status == SNECK_OK)
        status = snk_setting_password(url, options->password, error);
    if (status != SNECK_OK)
        return status;
    (void)snk_copy_text(options->user, sizeof options->user, url->user);
    (void)snk_copy_text(options->database, sizeof options->database, url->path + 1);
    copy_key(options->ca, sizeof options->ca, url, "ca");
    copy_key(options->certificate, sizeof options->certificate, url, "cert");
    copy_key(options->key, sizeof options->key, url, "key");
    options->wants_tls =
        options->ca[0] != '\0' || options->certificate[0] != '\0' || snk_url_value(url, "verify") != NULL;
    copy_hosts(options, url);
    return SNECK_OK;
}
