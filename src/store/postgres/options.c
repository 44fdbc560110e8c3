#include "store/postgres/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

#define TIMEOUT_MS_MAX 3600000L
#define MEMORY_SIZE 8192

/*
 * Ours first. The rest are libpq's, without those that have a place of their own in the URL, that would put a secret
 * where command lines show it, or that the store sets itself.
 */
const char *const snk_pg_keys[] = { "mode",
                                    "timeout",
                                    "connections",
                                    "host",
                                    "hostaddr",
                                    "port",
                                    "passfile",
                                    "service",
                                    "options",
                                    "application_name",
                                    "connect_timeout",
                                    "keepalives",
                                    "keepalives_idle",
                                    "keepalives_interval",
                                    "keepalives_count",
                                    "tcp_user_timeout",
                                    "target_session_attrs",
                                    "load_balance_hosts",
                                    "sslmode",
                                    "sslcert",
                                    "sslkey",
                                    "sslrootcert",
                                    "sslcrl",
                                    "sslcrldir",
                                    "sslsni",
                                    "ssl_min_protocol_version",
                                    "ssl_max_protocol_version",
                                    "channel_binding",
                                    "require_auth",
                                    "requirepeer",
                                    "gssencmode",
                                    "krbsrvname",
                                    NULL };

enum {
    OUR_KEYS = 3
};

/* ---- Parameters of libpq ---- */

/* Copies text into the target's memory; "" when there is no room, which cannot be: a URL is shorter. */
static char *keep(snk_pg_target *target, const char *format, ...) __attribute__((format(printf, 2, 3)));

static char *keep(snk_pg_target *target, const char *format, ...)
{
    char *text = target->memory + target->memory_size;
    size_t room = MEMORY_SIZE - target->memory_size;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, room, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= room)
        text[0] = '\0';
    target->memory_size += strlen(text) + 1;
    return text;
}

static void add(snk_pg_target *target, const char *keyword, const char *value)
{
    if (target->count == SNK_PG_PARAMETERS_MAX)
        return;
    target->keywords[target->count] = keyword;
    target->values[target->count++] = value;
}

static void add_default(snk_pg_target *target, const snk_url *url, const char *keyword, const char *value)
{
    if (snk_url_value(url, keyword) == NULL)
        add(target, keyword, value);
}

/* Names and ports as libpq wants them: two lists, with an empty entry where there is no port. */
static void add_hosts(snk_pg_target *target, const snk_url *url)
{
    if (url->host_count == 0)
        return;
    char hosts[SNK_URL_LENGTH_MAX + 1] = "";
    char ports[8 * SNK_URL_HOSTS_MAX] = "";
    size_t host_length = 0;
    size_t port_length = 0;
    for (size_t i = 0; i < url->host_count; i++) {
        const char *comma = i == 0 ? "" : ",";
        host_length +=
            (size_t)snprintf(hosts + host_length, sizeof hosts - host_length, "%s%s", comma, url->hosts[i].name);
        port_length += (size_t)snprintf(ports + port_length, sizeof ports - port_length, "%s", comma);
        if (url->hosts[i].port != 0)
            port_length += (size_t)snprintf(ports + port_length, sizeof ports - port_length, "%d", url->hosts[i].port);
    }
    add(target, "host", keep(target, "%s", hosts));
    add(target, "port", keep(target, "%s", ports));
}

static bool is_ours(const char *key)
{
    static const char *const of_every_store[] = { "prefix", "lease", "watchdog", "retry" };
    for (size_t i = 0; i < OUR_KEYS; i++)
        if (strcmp(snk_pg_keys[i], key) == 0)
            return true;
    for (size_t i = 0; i < sizeof of_every_store / sizeof of_every_store[0]; i++)
        if (strcmp(of_every_store[i], key) == 0)
            return true;
    return strcmp(key, "options") == 0; /* goes with our settings */
}

/* The settings of our own sessions, and the user's. */
static void add_settings(snk_pg_target *target, const snk_pg_options *options, const snk_url *url, const char *client)
{
    const char *given = snk_url_value(url, "options");
    if (given == NULL)
        given = secure_getenv("PGOPTIONS");
    target->settings = target->count;
    add(target, "options",
        keep(target,
             "%.1024s -c statement_timeout=%d -c lock_timeout=%d -c default_transaction_isolation=read\\ committed"
             " -c sneck.client=%s",
             given == NULL ? "" : given, options->server_ms, options->server_ms, client));
}

/* ---- Several servers ---- */

/* What libpq would take: the last one given. NULL: none. */
static const char *value_of(const snk_pg_target *target, const char *keyword)
{
    for (size_t i = target->count; i > 0; i--)
        if (strcmp(target->keywords[i - 1], keyword) == 0)
            return target->values[i - 1];
    return NULL;
}

static size_t count_parts(const char *list)
{
    size_t count = list == NULL ? 0 : 1;
    for (; list != NULL && *list != '\0'; list++)
        count += *list == ',';
    return count;
}

/* Part `index` of a list with commas; the only one, if it is one for all; NULL: there is no list. */
static const char *part_of(snk_pg_target *target, const char *list, size_t index)
{
    if (count_parts(list) < 2)
        return list;
    for (; index > 0; index--)
        list = strchr(list, ',') + 1;
    return keep(target, "%.*s", (int)strcspn(list, ","), list);
}

/*
 * libpq, when it does not block, goes on to the next server only when one refuses: one that is silent would keep it for
 * good. So each is asked on its own. Lists that make no sense are for libpq to refuse, and who would rather have a standby
 * than the first wants all of them looked at together.
 */
static void split_hosts(snk_pg_target *target)
{
    const char *names = value_of(target, "host");
    const char *addresses = value_of(target, "hostaddr");
    const char *ports = value_of(target, "port");
    const char *attributes = value_of(target, "target_session_attrs");
    size_t count = count_parts(addresses != NULL ? addresses : names);
    bool fits = count >= 2 && count <= SNK_URL_HOSTS_MAX && (names == NULL || count_parts(names) == count) &&
                (count_parts(ports) < 2 || count_parts(ports) == count) &&
                (attributes == NULL || strcmp(attributes, "prefer-standby") != 0);
    target->host_count = fits ? count : 1;
    for (size_t i = 0; fits && i < count; i++)
        target->hosts[i] = (snk_pg_host){ .name = part_of(target, names, i),
                                          .address = part_of(target, addresses, i),
                                          .port = part_of(target, ports, i) };
}

static void fill_target(snk_pg_target *target, const snk_url *url, const char *password)
{
    add_hosts(target, url);
    if (url->path[0] == '/' && url->path[1] != '\0')
        add(target, "dbname", keep(target, "%s", url->path + 1));
    if (url->user[0] != '\0')
        add(target, "user", keep(target, "%s", url->user));
    if (password[0] != '\0')
        add(target, "password", keep(target, "%s", password));
    for (size_t i = 0; i < url->key_count; i++) {
        if (!is_ours(url->keys[i].key))
            add(target, keep(target, "%s", url->keys[i].key), keep(target, "%s", url->keys[i].value));
    }
    /* Of several servers only one that can be written to is of any use. */
    if (url->host_count > 1)
        add_default(target, url, "target_session_attrs", "read-write");
    add_default(target, url, "keepalives_idle", "10");
    add_default(target, url, "keepalives_interval", "5");
    add_default(target, url, "keepalives_count", "3");
    add(target, "fallback_application_name", "sneck");
    add(target, "client_encoding", "UTF8");
    split_hosts(target);
    const char *limit = value_of(target, "connect_timeout");
    target->host_limit_ns = limit == NULL ? 0 : strtol(limit, NULL, 10) * SNK_NS_PER_S;
}

/* ---- Our own keys ---- */

static sneck_status load_keys(snk_pg_options *options, const snk_url *url, sneck_error *error)
{
    static const char *const modes[] = { "lease", "row", NULL };
    int mode = 0;
    long timeout_ms = SNK_PG_TIMEOUT_NS / SNK_NS_PER_MS;
    long connections = SNK_PG_CONNECTIONS_DEFAULT;
    sneck_status status = snk_setting_choose(url, "mode", modes, &mode, error);
    const char *text = snk_url_value(url, "timeout");
    if (status == SNECK_OK && text != NULL)
        status = snk_setting_number(text, "timeout= (milliseconds)", 1, TIMEOUT_MS_MAX, &timeout_ms, error);
    text = snk_url_value(url, "connections");
    if (status == SNECK_OK && text != NULL)
        status = snk_setting_number(text, "connections=", 1, SNK_PG_CONNECTIONS_MAX, &connections, error);
    options->locks_rows = mode == 1;
    options->timeout_ns = timeout_ms * SNK_NS_PER_MS;
    options->server_ms = (int)(timeout_ms - timeout_ms / 4);
    options->connections = (unsigned)connections;
    return status;
}

static void name_server(snk_pg_options *options, const snk_url *url)
{
    const char *in_key = snk_url_value(url, "host");
    const char *host = url->host_count > 0 ? url->hosts[0].name : in_key != NULL ? in_key : "";
    int port = url->host_count > 0 ? url->hosts[0].port : 0;
    char port_text[16] = "";
    if (port != 0)
        (void)snprintf(port_text, sizeof port_text, ":%d", port);
    (void)snprintf(options->where, sizeof options->where, "postgres %.80s%s%s", host, port_text,
                   url->host_count > 1 ? ",…" : "");
}

sneck_status snk_pg_options_load(snk_pg_options *options, const snk_url *url, const char client[SNK_UUID_TEXT_SIZE],
                                 snk_pg_target **target_out, sneck_error *error)
{
    *target_out = NULL;
    *options = (snk_pg_options){ .locks_rows = false };
    char password[SNK_PASSWORD_SIZE];
    sneck_status status = load_keys(options, url, error);
    if (status == SNECK_OK)
        status = snk_setting_password(url, password, error);
    if (status != SNECK_OK)
        return status;
    name_server(options, url);
    snk_pg_target *target = calloc(1, sizeof *target);
    char *memory = calloc(1, MEMORY_SIZE);
    if (target == NULL || memory == NULL) {
        free(memory);
        free(target);
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    }
    target->memory = memory;
    atomic_init(&target->references, 1);
    fill_target(target, url, password);
    add_settings(target, options, url, client);
    explicit_bzero(password, sizeof password);
    *target_out = target;
    return SNECK_OK;
}

void snk_pg_target_ref(snk_pg_target *target)
{
    (void)atomic_fetch_add_explicit(&target->references, 1, memory_order_relaxed);
}

void snk_pg_target_unref(snk_pg_target *target)
{
    if (target == NULL || atomic_fetch_sub_explicit(&target->references, 1, memory_order_acq_rel) != 1)
        return;
    explicit_bzero(target->memory, MEMORY_SIZE); /* the password is in it */
    free(target->memory);
    free(target);
}
