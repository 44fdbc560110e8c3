#include "http.h"

#include <stdio.h>

#ifdef SNK_HAVE_MICROHTTPD

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <microhttpd.h>

#define CONNECTIONS_MAX 16
#define SECONDS_MAX 10
#define CONNECTION_MEMORY 16384

struct snk_http {
    struct MHD_Daemon *daemon;
    snk_http_page_fn page;
    void *context;
    char where[80];
};

const char *snk_http_where(const snk_http *http)
{
    return http->where;
}

/* ---- Requests ---- */

static enum MHD_Result respond(struct MHD_Connection *connection, unsigned code, struct MHD_Response *response)
{
    if (response == NULL)
        return MHD_NO;
    (void)MHD_add_response_header(response, "Content-Type",
                                  code == MHD_HTTP_OK ? "text/plain; version=0.0.4; charset=utf-8" : "text/plain");
    enum MHD_Result result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned code, const char *text)
{
    /* The library copies nothing, and promises not to change it. */
    void *unchanged = (void *)(uintptr_t)text;
    return respond(connection, code, MHD_create_response_from_buffer(strlen(text), unchanged, MHD_RESPMEM_PERSISTENT));
}

/* NOLINTNEXTLINE(readability-function-size): what the library calls it with */
static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                              const char *version, const char *upload, size_t *upload_size, void **state)
{
    const snk_http *http = context;
    (void)version;
    (void)upload;
    (void)upload_size;
    (void)state;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
    snk_page_text page = { .data = NULL };
    if (!http->page(http->context, path, &page) || page.out_of_memory) {
        unsigned code = page.out_of_memory ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_NOT_FOUND;
        snk_page_text_deinit(&page);
        return refuse(connection, code, code == MHD_HTTP_NOT_FOUND ? "there is /metrics\n" : "out of memory\n");
    }
    return respond(connection, MHD_HTTP_OK,
                   MHD_create_response_from_buffer(page.length, page.data, MHD_RESPMEM_MUST_FREE));
}

/* ---- Addresses ---- */

/* Splits "HOST:PORT" and its shorter forms. */
static bool split(const char *address, char *host, size_t host_size, char *port, size_t port_size)
{
    const char *colon = strrchr(address, ':');
    const char *digits = colon == NULL ? address : colon + 1;
    size_t length = colon == NULL ? 0 : (size_t)(colon - address);
    if (length > 2 && address[0] == '[' && address[length - 1] == ']') {
        address++;
        length -= 2;
    }
    if (length >= host_size || strlen(digits) >= port_size || digits[0] == '\0' ||
        strspn(digits, "0123456789") != strlen(digits))
        return false;
    (void)snprintf(host, host_size, "%.*s", (int)length, address);
    (void)snprintf(port, port_size, "%s", digits);
    return true;
}

static struct addrinfo *resolve(const char *address, char *problem, size_t size)
{
    char host[64];
    char port[8];
    struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    if (!split(address, host, sizeof host, port, sizeof port) ||
        getaddrinfo(host[0] == '\0' ? "127.0.0.1" : host, port, &hints, &found) != 0) {
        (void)snprintf(problem, size, "--listen takes PORT, ADDRESS:PORT or [ADDRESS]:PORT");
        return NULL;
    }
    return found;
}

/* With port 0 the kernel has chosen one. */
static void name_place(snk_http *http, const struct addrinfo *place)
{
    char host[64] = "";
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT);
    bool is_v6 = place->ai_family == AF_INET6;
    (void)getnameinfo(place->ai_addr, place->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST);
    (void)snprintf(http->where, sizeof http->where, is_v6 ? "[%s]:%u" : "%s:%u", host,
                   info == NULL ? 0U : (unsigned)info->port);
}

static bool start(snk_http *http, const struct addrinfo *place)
{
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | (place->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0U);
    errno = 0;
    http->daemon = MHD_start_daemon(flags, 0, NULL, NULL, answer, http, MHD_OPTION_SOCK_ADDR, place->ai_addr,
                                    MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
                                    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SECONDS_MAX,
                                    MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_END);
    if (http->daemon != NULL)
        name_place(http, place);
    return http->daemon != NULL;
}

snk_http *snk_http_open(const char *address, snk_http_page_fn page, void *context, char *problem, size_t size)
{
    struct addrinfo *place = resolve(address, problem, size);
    if (place == NULL)
        return NULL;
    snk_http *http = calloc(1, sizeof *http);
    if (http != NULL) {
        http->page = page;
        http->context = context;
    }
    if (http == NULL || !start(http, place)) {
        (void)snprintf(problem, size, "cannot listen at %s: %s", address, errno == 0 ? "it failed" : strerror(errno));
        free(http);
        http = NULL;
    }
    freeaddrinfo(place);
    return http;
}

void snk_http_close(snk_http *http)
{
    if (http == NULL)
        return;
    MHD_stop_daemon(http->daemon);
    free(http);
}

#else

snk_http *snk_http_open(const char *address, snk_http_page_fn page, void *context, char *problem, size_t size)
{
    (void)address;
    (void)page;
    (void)context;
    (void)snprintf(problem, size, "--listen: this sneck was built without libmicrohttpd");
    return NULL;
}

void snk_http_close(snk_http *http)
{
    (void)http;
}

const char *snk_http_where(const snk_http *http)
{
    (void)http;
    return "";
}

#endif
