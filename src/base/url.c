#include "base/url.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/nearest.h"

/*
 * No message here quotes the text of a URL beyond its scheme and the names of its keys: any other part may be, or may
 * by a slip of the pen contain, a password.
 */

#define KEY_LENGTH_MAX 32

static sneck_status refuse(sneck_error *error, const char *what)
{
    return snk_fail(error, SNECK_INVALID, 0, "the store's URL is wrong: %s", what);
}

/* ---- Pieces ---- */

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

/* Decodes in place. False when a % is not followed by two hex digits, or they are a NUL. */
static bool decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++, to++) {
        *to = *from;
        if (*from != '%')
            continue;
        int high = hex_value(from[1]);
        int low = high < 0 ? -1 : hex_value(from[2]);
        if (low < 0 || high + low == 0)
            return false;
        *to = (char)(high * 16 + low);
        from += 2;
    }
    *to = '\0';
    return true;
}

static sneck_status decode_piece(char *text, sneck_error *error)
{
    return decode(text) ? SNECK_OK
                        : refuse(error, "% must be followed by two hex digits, not 00; write % itself as %25");
}

/* Ends `text` at the first `separator` and returns what follows; NULL when there is none. */
static char *cut(char *text, char separator)
{
    char *at = strchr(text, separator);
    if (at == NULL)
        return NULL;
    *at = '\0';
    return at + 1;
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_scheme(char *text)
{
    for (char *at = text; *at != '\0'; at++) {
        if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at - 'A' + 'a');
        bool inner = at > text && ((*at >= '0' && *at <= '9') || *at == '+' || *at == '-' || *at == '.');
        if (!is_lower(*at) && !inner)
            return false;
    }
    return *text != '\0';
}

/* ---- Hosts ---- */

static bool parse_port(const char *text, int *port_out)
{
    int port = 0;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at < '0' || *at > '9' || port > 65535)
            return false;
        port = port * 10 + (*at - '0');
    }
    *port_out = port;
    return port >= 1 && port <= 65535;
}

static sneck_status parse_host(snk_url *url, char *text, sneck_error *error)
{
    if (url->host_count == SNK_URL_HOSTS_MAX)
        return refuse(error, "it has more than 32 hosts");
    if (*text == '\0')
        return refuse(error, "a host is empty; write them as host1:port,host2:port");
    char *name = text;
    char *port = NULL;
    if (*text == '[') {
        name = text + 1;
        char *after = cut(name, ']');
        if (after == NULL || (*after != '\0' && *after != ':'))
            return refuse(error, "an IPv6 address must be in brackets, as in [::1]:6379");
        port = *after == ':' ? after + 1 : NULL;
    } else {
        port = cut(text, ':');
        if (port != NULL && strchr(port, ':') != NULL)
            return refuse(error, "an IPv6 address must be in brackets, as in [::1]:6379");
    }
    snk_url_host *host = &url->hosts[url->host_count++];
    host->name = name;
    if (port != NULL && !parse_port(port, &host->port))
        return refuse(error, "a port must be a number from 1 to 65535");
    return decode_piece(name, error);
}

static sneck_status parse_hosts(snk_url *url, char *text, sneck_error *error)
{
    sneck_status status = SNECK_OK;
    while (text != NULL && status == SNECK_OK) {
        char *next = cut(text, ',');
        status = parse_host(url, text, error);
        text = next;
    }
    return status;
}

static sneck_status parse_authority(snk_url *url, char *text, sneck_error *error)
{
    char *at = strrchr(text, '@');
    char *hosts = text;
    if (at != NULL) {
        *at = '\0';
        hosts = at + 1;
        char *password = cut(text, ':');
        url->user = text;
        if (password != NULL)
            url->password = password;
        if (decode_piece(text, error) != SNECK_OK || (password != NULL && decode_piece(password, error) != SNECK_OK))
            return SNECK_INVALID;
        if (*hosts == '\0')
            return refuse(error, "there is no host after the @");
    }
    return *hosts == '\0' ? SNECK_OK : parse_hosts(url, hosts, error);
}

/* ---- Query ---- */

static bool is_key(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return length > 0 && length <= KEY_LENGTH_MAX && text[length] == '\0';
}

static sneck_status parse_query(snk_url *url, char *text, sneck_error *error)
{
    while (text != NULL) {
        char *next = cut(text, '&');
        char *value = cut(text, '=');
        if (url->key_count == SNK_URL_KEYS_MAX)
            return refuse(error, "it has more than 32 keys after the ?");
        if (!is_key(text))
            return refuse(error, "what follows the ? must be key=value&key=value, keys of up to 32 letters and digits");
        if (value == NULL)
            return snk_fail(error, SNECK_INVALID, 0,
                            "the store's URL is wrong: the key \"%s\" has no value; write %s=…", text, text);
        if (decode_piece(value, error) != SNECK_OK)
            return SNECK_INVALID;
        url->keys[url->key_count++] = (snk_url_key){ .key = text, .value = value };
        text = next;
    }
    return SNECK_OK;
}

/* ---- The whole ---- */

static sneck_status check_text(const char *text, sneck_error *error)
{
    if (text == NULL || *text == '\0')
        return refuse(error, "it is empty; write for example sqlite: or sqlite:///absolute/file");
    if (strnlen(text, SNK_URL_LENGTH_MAX + 1) > SNK_URL_LENGTH_MAX)
        return refuse(error, "it is longer than 2048 bytes");
    for (const char *at = text; *at != '\0'; at++)
        if ((unsigned char)*at <= ' ' || *at == 0x7F)
            return refuse(error, "it has a space or a control character; write a space as %20");
    if (strchr(text, '#') != NULL)
        return refuse(error, "it has a #; write it as %23");
    return SNECK_OK;
}

/* What follows the scheme, without the query: [//authority][path]. */
static sneck_status parse_place(snk_url *url, char *text, sneck_error *error)
{
    if (strncmp(text, "//", 2) != 0) {
        if (*text != '\0' && *text != '/')
            return refuse(error, "the scheme is followed by // and hosts, by ///absolute/file, or by nothing");
        url->path = text;
        return decode_piece(text, error);
    }
    char *authority = text + 2;
    char *path = strchr(authority, '/');
    if (path != NULL) {
        /* The path keeps its slash, so the authority moves one byte down to make room for its NUL. */
        size_t length = (size_t)(path - authority);
        memmove(authority - 1, authority, length);
        authority--;
        authority[length] = '\0';
        url->path = path;
        if (decode_piece(path, error) != SNECK_OK)
            return SNECK_INVALID;
    }
    return parse_authority(url, authority, error);
}

static sneck_status parse(snk_url *url, sneck_error *error)
{
    char *rest = cut(url->memory, ':');
    if (rest == NULL || !is_scheme(url->memory))
        return refuse(error, "it must begin with a scheme and a colon, such as sqlite: or memory:");
    url->scheme = url->memory;
    char *query = cut(rest, '?');
    sneck_status status = parse_place(url, rest, error);
    if (status == SNECK_OK && query != NULL && *query != '\0')
        status = parse_query(url, query, error);
    return status;
}

sneck_status snk_url_parse(snk_url *url, const char *text, sneck_error *error)
{
    *url = (snk_url){ .scheme = "", .user = "", .password = "", .path = "" };
    sneck_status status = check_text(text, error);
    if (status != SNECK_OK)
        return status;
    url->memory = calloc(1, SNK_URL_LENGTH_MAX + 1);
    if (url->memory == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory for the store's URL");
    memcpy(url->memory, text, strlen(text));
    status = parse(url, error);
    if (status != SNECK_OK) {
        snk_url_deinit(url);
        return status;
    }
    return snk_ok(error);
}

void snk_url_deinit(snk_url *url)
{
    if (url->memory != NULL) /* no password stays behind in freed memory */
        explicit_bzero(url->memory, SNK_URL_LENGTH_MAX);
    free(url->memory);
    *url = (snk_url){ .scheme = "", .user = "", .password = "", .path = "" };
}

const char *snk_url_value(const snk_url *url, const char *key)
{
    for (size_t i = 0; i < url->key_count; i++)
        if (strcmp(url->keys[i].key, key) == 0)
            return url->keys[i].value;
    return NULL;
}

/* ---- Known keys ---- */

static bool contains(const char *const known[], const char *key)
{
    for (size_t i = 0; known[i] != NULL; i++)
        if (strcmp(known[i], key) == 0)
            return true;
    return false;
}

static sneck_status refuse_key(sneck_error *error, const char *key, const char *const known[])
{
    snk_nearest nearest = { .typed = key, .distance = SIZE_MAX }; /* however far: it says what keys look like */
    for (size_t i = 0; known[i] != NULL; i++)
        snk_nearest_offer(&nearest, known[i]);
    return snk_fail(error, SNECK_INVALID, 0, "the store's URL has an unknown key \"%s\"; did you mean \"%s\"?", key,
                    nearest.best != NULL ? nearest.best : "");
}

sneck_status snk_url_check_keys(const snk_url *url, const char *const known[], sneck_error *error)
{
    for (size_t i = 0; i < url->key_count; i++) {
        const char *key = url->keys[i].key;
        if (!contains(known, key))
            return refuse_key(error, key, known);
        for (size_t j = 0; j < i; j++)
            if (strcmp(url->keys[j].key, key) == 0)
                return snk_fail(error, SNECK_INVALID, 0, "the store's URL has the key \"%s\" twice; leave one out",
                                key);
    }
    return snk_ok(error);
}
