#include "store_identity.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/url.h"
#include "secret.h"

#define REDIS_PORT 6379

static void write_file(FILE *out, const char *path)
{
    char real[PATH_MAX];
    fputs(realpath(path, real) != NULL ? real : path, out);
}

/* What may be left out is written as what it then is; TLS and who we are make no difference. */
static void write_redis(FILE *out, const snk_url *url)
{
    bool is_socket = strcmp(url->scheme, "redis+unix") == 0;
    bool has_database = url->path[0] != '\0' && strcmp(url->path, "/") != 0;
    fputs("redis", out);
    for (size_t i = 0; i < url->host_count && !is_socket; i++) {
        fputc(' ', out);
        for (const char *c = url->hosts[i].name; *c != '\0'; c++)
            fputc(tolower((unsigned char)*c), out);
        fprintf(out, ":%d", url->hosts[i].port != 0 ? url->hosts[i].port : REDIS_PORT);
    }
    if (is_socket)
        write_file(out, url->path);
    else
        fputs(has_database ? url->path : "/0", out);
}

static void write_identity(FILE *out, const snk_url *url)
{
    const char *prefix = snk_url_value(url, "prefix");
    if (strcmp(url->scheme, "sqlite") == 0 && url->path[0] == '/')
        write_file(out, url->path);
    else if (strncmp(url->scheme, "redis", strlen("redis")) == 0)
        write_redis(out, url);
    else
        fputs(url->scheme, out);
    fprintf(out, "?%s", prefix != NULL ? prefix : SNK_PREFIX_DEFAULT);
}

char *snk_store_identity(const char *text)
{
    char *identity = NULL;
    size_t size = 0;
    snk_url url;
    if (snk_url_parse(&url, text, NULL) != SNECK_OK)
        return snk_secret_strip_url(text); /* it leads nowhere, which others say better */
    FILE *out = open_memstream(&identity, &size);
    if (out != NULL) {
        write_identity(out, &url);
        if (fclose(out) != 0) {
            free(identity);
            identity = NULL;
        }
    }
    snk_url_deinit(&url);
    for (char *c = identity; c != NULL && *c != '\0'; c++) {
        if (iscntrl((unsigned char)*c))
            *c = '?';
    }
    return identity;
}
