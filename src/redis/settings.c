#include "redis/settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/error.h"
#include "base/limits.h"
#include "redis/tls.h"

#define PORT_DEFAULT 6379
#define TEXT_LENGTH_MAX 1024
#define LOG_LINE_SIZE 512
#define DATABASE_MAX 65535

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static sneck_status check_text(const char *text, const char *what, sneck_error *error)
{
    if (strnlen(or_empty(text), TEXT_LENGTH_MAX + 1) <= TEXT_LENGTH_MAX)
        return SNECK_OK;
    return snk_fail(error, SNECK_INVALID, 0, "redis: the %s is longer than %d bytes", what, TEXT_LENGTH_MAX);
}

static sneck_status check_address(const snk_redis_config *config, sneck_error *error)
{
    bool is_unix = or_empty(config->unix_path)[0] != '\0';
    if (is_unix == (or_empty(config->host)[0] != '\0'))
        return snk_fail(error, SNECK_INVALID, 0, "redis: give either a host or the path of a socket");
    if (is_unix && strlen(config->unix_path) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
        return snk_fail(error, SNECK_INVALID, 0, "redis: the path of the socket is too long: %.100s",
                        config->unix_path);
    if (is_unix && config->tls.on)
        return snk_fail(error, SNECK_INVALID, 0, "redis: TLS is for hosts, not for the socket %.100s",
                        config->unix_path);
    if (config->port < 0 || config->port > UINT16_MAX)
        return snk_fail(error, SNECK_INVALID, 0, "redis: %d is no port; 1 to 65535 are", config->port);
    return SNECK_OK;
}

static sneck_status check(const snk_redis_config *config, sneck_error *error)
{
    if (check_text(config->host, "host", error) != SNECK_OK || check_text(config->user, "user", error) != SNECK_OK ||
        check_text(config->password, "password", error) != SNECK_OK ||
        check_text(config->client_name, "client name", error) != SNECK_OK || check_address(config, error) != SNECK_OK)
        return SNECK_INVALID;
    if (strpbrk(or_empty(config->client_name), " \n\r\t") != NULL)
        return snk_fail(error, SNECK_INVALID, 0, "redis: a client name has no spaces: '%.60s'", config->client_name);
    if (config->database < 0 || config->database > DATABASE_MAX)
        return snk_fail(error, SNECK_INVALID, 0, "redis: %d is no database number; 0 to %d are", config->database,
                        DATABASE_MAX);
    if (or_empty(config->user)[0] != '\0' && or_empty(config->password)[0] == '\0')
        return snk_fail(
            error, SNECK_DENIED, 0,
            "redis: user '%.60s' needs a password, in the URL or in the file that SNECK_PASSWORD_FILE names",
            config->user);
    if (config->connect_timeout_ns < 0 || config->command_timeout_ns < 0)
        return snk_fail(error, SNECK_INVALID, 0, "redis: a timeout cannot be negative");
    if ((or_empty(config->tls.cert)[0] != '\0') != (or_empty(config->tls.key)[0] != '\0'))
        return snk_fail(error, SNECK_INVALID, 0, "redis: cert= and key= belong together");
    return SNECK_OK;
}

static void describe(snk_redis_settings *settings)
{
    bool brackets = strchr(settings->host, ':') != NULL;
    if (settings->unix_path[0] != '\0')
        snprintf(settings->where, sizeof settings->where, "redis %s", settings->unix_path);
    else
        snprintf(settings->where, sizeof settings->where, "redis %s%.100s%s:%s", brackets ? "[" : "", settings->host,
                 brackets ? "]" : "", settings->port);
}

sneck_status snk_redis_settings_init(snk_redis_settings *settings, const snk_redis_config *config, sneck_error *error)
{
    *settings = (snk_redis_settings){ 0 };
    sneck_status status = check(config, error);
    if (status != SNECK_OK)
        return status;
    settings->host = strdup(or_empty(config->host));
    settings->unix_path = strdup(or_empty(config->unix_path));
    settings->user = strdup(or_empty(config->user));
    settings->password = strdup(or_empty(config->password));
    settings->client_name = strdup(or_empty(config->client_name));
    if (settings->host == NULL || settings->unix_path == NULL || settings->user == NULL || settings->password == NULL ||
        settings->client_name == NULL) {
        status = snk_fail(error, SNECK_NO_MEMORY, 0, "redis: no memory for a client");
        goto fail;
    }
    snprintf(settings->port, sizeof settings->port, "%d", config->port != 0 ? config->port : PORT_DEFAULT);
    settings->database = config->database;
    settings->connect_timeout_ns = config->connect_timeout_ns != 0 ? config->connect_timeout_ns : SNK_REDIS_CONNECT_NS;
    settings->command_timeout_ns = config->command_timeout_ns != 0 ? config->command_timeout_ns : SNK_REDIS_COMMAND_NS;
    settings->listener = config->listener;
    describe(settings);
    if (config->tls.on) {
        settings->tls_verify = !config->tls.verify_none;
        status = snk_redis_tls_context(&config->tls, &settings->tls, error);
        if (status != SNECK_OK)
            goto fail;
    }
    return SNECK_OK;
fail:
    snk_redis_settings_deinit(settings);
    return status;
}

void snk_redis_settings_deinit(snk_redis_settings *settings)
{
    snk_redis_tls_context_free(settings->tls);
    if (settings->password != NULL)
        explicit_bzero(settings->password, strlen(settings->password));
    free(settings->host);
    free(settings->unix_path);
    free(settings->user);
    free(settings->password);
    free(settings->client_name);
    *settings = (snk_redis_settings){ 0 };
}

void snk_redis_log(const snk_redis_settings *settings, sneck_log_level level, const char *format, ...)
{
    if (settings->listener.log == NULL)
        return;
    char line[LOG_LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length >= 0)
        settings->listener.log(settings->listener.context, level, line);
}
