#include "redis/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "base/error.h"
#include "redis/wire.h"

/* OpenSSL's queue of errors belongs to the thread: it is emptied here, so that nobody else finds ours in it. */
static void last_reason(char *text, size_t size)
{
    unsigned long code = ERR_peek_last_error();
    if (code != 0)
        ERR_error_string_n(code, text, size);
    else
        snk_copy_text(text, size, errno != 0 ? snk_errno_text(errno) : "the server ended the connection");
    ERR_clear_error();
}

/* A key with a password is refused: a library must not ask the terminal for it. */
static int no_password(char *text, int size, int writing, void *context)
{
    (void)text;
    (void)size;
    (void)writing;
    (void)context;
    return -1;
}

/* ---- The socket under TLS ---- */

static int socket_write(BIO *bio, const char *data, int length)
{
    ssize_t count = send((int)(intptr_t)BIO_get_data(bio), data, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT);
    BIO_clear_retry_flags(bio);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)count;
}

static int socket_read(BIO *bio, char *data, int size)
{
    ssize_t count = recv((int)(intptr_t)BIO_get_data(bio), data, (size_t)size, MSG_DONTWAIT);
    BIO_clear_retry_flags(bio);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    return (int)count;
}

static long socket_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

/* A method of our own, because that of OpenSSL writes without MSG_NOSIGNAL. */
static BIO_METHOD *make_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "sneck socket");
    if (method == NULL)
        return NULL;
    BIO_meth_set_write(method, socket_write);
    BIO_meth_set_read(method, socket_read);
    BIO_meth_set_ctrl(method, socket_control);
    return method;
}

/* ---- The context ---- */

static sneck_status load_files(const snk_redis_tls *tls, SSL_CTX *context, sneck_error *error)
{
    char reason[120];
    bool has_ca = tls->ca != NULL && tls->ca[0] != '\0';
    errno = 0;
    if (has_ca && SSL_CTX_load_verify_file(context, tls->ca) != 1) {
        last_reason(reason, sizeof reason);
        return snk_fail(error, SNECK_DENIED, errno, "redis: ca=%.80s cannot be used: %s", tls->ca, reason);
    }
    if (!has_ca && !tls->verify_none) /* some hundred certificates, for nothing */
        SSL_CTX_set_default_verify_paths(context);
    if (tls->cert == NULL || tls->cert[0] == '\0')
        return SNECK_OK;
    if (SSL_CTX_use_certificate_chain_file(context, tls->cert) != 1) {
        last_reason(reason, sizeof reason);
        return snk_fail(error, SNECK_DENIED, errno, "redis: cert=%.80s cannot be used: %s", tls->cert, reason);
    }
    if (SSL_CTX_use_PrivateKey_file(context, tls->key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1) {
        last_reason(reason, sizeof reason);
        return snk_fail(error, SNECK_DENIED, errno, "redis: key=%.80s cannot be used: %s", tls->key, reason);
    }
    return SNECK_OK;
}

sneck_status snk_redis_tls_context(const snk_redis_tls *tls, SSL_CTX **context_out, sneck_error *error)
{
    *context_out = NULL;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    BIO_METHOD *method = make_method();
    if (context == NULL || method == NULL) {
        SSL_CTX_free(context);
        BIO_meth_free(method);
        ERR_clear_error();
        return snk_fail(error, SNECK_NO_MEMORY, 0, "redis: no memory for TLS");
    }
    SSL_CTX_set_app_data(context, method);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(context, tls->verify_none ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_default_passwd_cb(context, no_password);
    sneck_status status = load_files(tls, context, error);
    if (status != SNECK_OK) {
        snk_redis_tls_context_free(context);
        return status;
    }
    *context_out = context;
    return SNECK_OK;
}

void snk_redis_tls_context_free(SSL_CTX *context)
{
    if (context == NULL)
        return;
    BIO_METHOD *method = SSL_CTX_get_app_data(context);
    SSL_CTX_free(context);
    BIO_meth_free(method);
}

/* ---- A session ---- */

static bool is_address(const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

/* Says whose certificate it must be. */
static bool set_identity(SSL *session, const snk_redis_tls_peer *peer)
{
    bool address = is_address(peer->host);
    /* What SSL_set_tlsext_host_name does, without its cast that drops const. */
    union {
        const char *in;
        void *out;
    } name = { .in = peer->host };
    if (!address && SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.out) != 1)
        return false;
    if (!peer->verify)
        return true;
    if (address)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), peer->host) == 1;
    SSL_set_hostflags(session, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(session, peer->host) == 1;
}

static SSL *make_session(const snk_redis_tls_peer *peer)
{
    SSL *session = SSL_new(peer->context);
    BIO *bio = BIO_new(SSL_CTX_get_app_data(peer->context));
    if (session == NULL || bio == NULL || !set_identity(session, peer)) {
        SSL_free(session);
        BIO_free(bio);
        return NULL;
    }
    BIO_set_data(bio, (void *)(intptr_t)peer->fd);
    BIO_set_init(bio, 1);
    SSL_set_bio(session, bio, bio);
    SSL_set_app_data(session, (void *)(uintptr_t)peer->where);
    SSL_set_connect_state(session);
    SSL_set_quiet_shutdown(session, 1);
    return session;
}

static const char *where_of(const SSL *session)
{
    return SSL_get_app_data(session);
}

static sneck_status explain(SSL *session, sneck_error *error)
{
    char reason[150];
    int saved = errno;
    long verdict = SSL_get_verify_result(session);
    if (verdict != X509_V_OK && SSL_get_verify_mode(session) != SSL_VERIFY_NONE) {
        ERR_clear_error();
        return snk_fail(error, SNECK_DENIED, 0, "%s: the certificate of the server is refused: %s", where_of(session),
                        X509_verify_cert_error_string(verdict));
    }
    last_reason(reason, sizeof reason);
    return snk_fail(error, SNECK_UNAVAILABLE, saved, "%s: TLS failed: %s", where_of(session), reason);
}

sneck_status snk_redis_tls_connect(const snk_redis_tls_peer *peer, SSL **session_out, sneck_error *error)
{
    *session_out = NULL;
    SSL *session = make_session(peer);
    if (session == NULL) {
        ERR_clear_error();
        return snk_fail(error, SNECK_NO_MEMORY, 0, "%s: no TLS session", peer->where);
    }
    for (;;) {
        errno = 0;
        int result = SSL_connect(session);
        if (result == 1)
            break;
        int want = SSL_get_error(session, result);
        if (want != SSL_ERROR_WANT_READ && want != SSL_ERROR_WANT_WRITE) {
            sneck_status status = explain(session, error);
            SSL_free(session);
            return status;
        }
        short events = want == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        if (!snk_redis_poll(peer->fd, events, peer->stop_fd, peer->until_ns)) {
            SSL_free(session);
            return snk_fail(error, SNECK_UNAVAILABLE, ETIMEDOUT, "%s: the server does not answer the TLS greeting",
                            peer->where);
        }
    }
    *session_out = session;
    return SNECK_OK;
}

void snk_redis_tls_free(SSL *session)
{
    SSL_free(session);
}

/* What a result of SSL_read or SSL_write that is not positive means. */
static ssize_t judge(SSL *session, int result, sneck_error *error)
{
    int want = SSL_get_error(session, result);
    if (want == SSL_ERROR_WANT_READ || want == SSL_ERROR_WANT_WRITE)
        return 0;
    if (want == SSL_ERROR_ZERO_RETURN) {
        ERR_clear_error();
        snk_fail(error, SNECK_UNAVAILABLE, 0, "%s: the server closed the connection", where_of(session));
        return -1;
    }
    explain(session, error);
    return -1;
}

ssize_t snk_redis_tls_send(SSL *session, const char *data, size_t length, sneck_error *error)
{
    errno = 0;
    int count = SSL_write(session, data, length > INT_MAX ? INT_MAX : (int)length);
    return count > 0 ? count : judge(session, count, error);
}

ssize_t snk_redis_tls_receive(SSL *session, char *data, size_t size, sneck_error *error)
{
    errno = 0;
    int count = SSL_read(session, data, size > INT_MAX ? INT_MAX : (int)size);
    return count > 0 ? count : judge(session, count, error);
}

bool snk_redis_tls_has_pending(const SSL *session)
{
    return SSL_pending(session) > 0;
}

bool snk_redis_tls_is_over(SSL *session)
{
    char byte;
    errno = 0;
    int count = SSL_peek(session, &byte, 1);
    return count <= 0 && judge(session, count, NULL) < 0;
}
