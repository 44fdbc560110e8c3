/* A small HTTP server for pages that are made anew for each request. */
#ifndef SNK_CLI_HTTP_H
#define SNK_CLI_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "page_text.h"

typedef struct snk_http snk_http;

/* Makes the page at `path` (such as "/metrics"); false: there is none. Called by one thread at a time. */
typedef bool (*snk_http_page_fn)(void *context, const char *path, snk_page_text *page);

/*
 * Listens at "PORT", ":PORT", "HOST:PORT" or "[HOST]:PORT"; without HOST on this machine alone. HOST is an address, not
 * a name. NULL with what is wrong in `problem`.
 */
snk_http *snk_http_open(const char *address, snk_http_page_fn page, void *context, char *problem, size_t size);
void snk_http_close(snk_http *http);

/* Where it listens: "127.0.0.1:9469". */
const char *snk_http_where(const snk_http *http);

#endif
