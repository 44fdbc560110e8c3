#include "store/mysql/conn.h"

#include <errmsg.h>
#include <errno.h>
#include <mysqld_error.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/error.h"

/* ---- What errors mean ---- */

bool snk_my_is_transient(unsigned code)
{
    return code == ER_LOCK_DEADLOCK || code == ER_CHECKREAD;
}

/* The library's own errors, and those with which a session ends: what was asked may have happened. */
static bool is_end_of_session(unsigned code)
{
    return (code >= CR_MIN_ERROR && code <= CR_MAX_ERROR) || (code >= CER_MIN_ERROR && code <= CER_MAX_ERROR) ||
           code == ER_SERVER_SHUTDOWN || code == ER_CONNECTION_KILLED || code == ER_NEW_ABORTING_CONNECTION ||
           code == ER_ABORTING_CONNECTION;
}

static sneck_status status_of(unsigned code)
{
    switch (code) {
    case ER_ACCESS_DENIED_ERROR:
    case ER_ACCESS_DENIED_NO_PASSWORD_ERROR:
    case ER_DBACCESS_DENIED_ERROR:
    case ER_TABLEACCESS_DENIED_ERROR:
    case ER_COLUMNACCESS_DENIED_ERROR:
    case ER_PROCACCESS_DENIED_ERROR:
    case ER_SPECIFIC_ACCESS_DENIED_ERROR:
    case ER_HOST_NOT_PRIVILEGED:
    case ER_BINLOG_CREATE_ROUTINE_NEED_SUPER:
        return SNECK_DENIED;
    case ER_BAD_DB_ERROR:
        return SNECK_INVALID;
    case CR_OUT_OF_MEMORY:
        return SNECK_NO_MEMORY;
    default:
        return SNECK_UNAVAILABLE;
    }
}

static void note_error(snk_my_conn *conn, const char *where, snk_my_reply *reply)
{
    reply->code = mysql_errno(conn->my);
    bool ended = is_end_of_session(reply->code);
    reply->is_broken = ended || reply->code == ER_OPTION_PREVENTS_STATEMENT || reply->code == ER_READ_ONLY_MODE;
    reply->outcome = ended ? SNK_SQL_UNCERTAIN : SNK_SQL_FAILED;
    (void)snk_fail(&reply->error, ended ? SNECK_UNKNOWN : status_of(reply->code), 0, "%s: %.150s (%u)", where,
                   mysql_error(conn->my), reply->code);
}

/* ---- Dialing ---- */

static unsigned seconds_of(int64_t ns)
{
    return (unsigned)((ns + SNK_NS_PER_S - 1) / SNK_NS_PER_S);
}

/* The server gives a statement up before we do: then its answer is clear. */
static void set_up_session(MYSQL *my, const snk_my_options *options)
{
    char text[256];
    int64_t server_ms = options->timeout_ns / SNK_NS_PER_MS * 3 / 4;
    (void)snprintf(text, sizeof text,
                   "SET SESSION autocommit = 1, tx_isolation = 'READ-COMMITTED', max_statement_time = %lld.%03lld,"
                   " innodb_lock_wait_timeout = %lld",
                   (long long)(server_ms / 1000), (long long)(server_ms % 1000),
                   (long long)(server_ms < 1000 ? 1 : server_ms / 1000));
    (void)mysql_options(my, MYSQL_INIT_COMMAND, text);
    (void)mysql_options(my, MYSQL_SET_CHARSET_NAME, "utf8mb4");
}

static void set_up_tls(MYSQL *my, const snk_my_options *options)
{
    if (!options->wants_tls)
        return;
    my_bool verify = options->verifies ? 1 : 0;
    my_bool enforce = 1;
    /* Where there is somebody to trust, the library asks for the chain, whatever else it is told. */
    bool trusts = options->verifies && options->ca[0] != '\0';
    (void)mysql_ssl_set(my, options->key[0] == '\0' ? NULL : options->key,
                        options->certificate[0] == '\0' ? NULL : options->certificate, trusts ? options->ca : NULL,
                        NULL, NULL);
    (void)mysql_options(my, MYSQL_OPT_SSL_ENFORCE, &enforce);
    (void)mysql_options(my, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
}

static MYSQL *dial_host(const snk_my_options *options, const snk_my_host *host, sneck_error *error)
{
    MYSQL *my = mysql_init(NULL);
    if (my == NULL) {
        (void)snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
        return NULL;
    }
    unsigned seconds = seconds_of(options->timeout_ns);
    (void)mysql_options(my, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    (void)mysql_options(my, MYSQL_OPT_READ_TIMEOUT, &seconds);
    (void)mysql_options(my, MYSQL_OPT_WRITE_TIMEOUT, &seconds);
    /* Otherwise any server could ask for any file of this process, in place of an answer. */
    unsigned no_files = 0;
    (void)mysql_options(my, MYSQL_OPT_LOCAL_INFILE, &no_files);
    set_up_session(my, options);
    set_up_tls(my, options);
    bool is_path = host->name[0] == '/';
    const char *name = is_path ? "localhost" : host->name[0] == '\0' ? NULL : host->name;
    if (mysql_real_connect(my, name, options->user, options->password, options->database, host->port,
                           is_path ? host->name : NULL, CLIENT_MULTI_STATEMENTS) != NULL)
        return my;
    (void)snk_fail(error, status_of(mysql_errno(my)), 0, "%s: %.150s (%u)", options->where, mysql_error(my),
                   mysql_errno(my));
    mysql_close(my);
    return NULL;
}

static bool takes_writes(MYSQL *my)
{
    static const char text[] = "SELECT @@global.read_only";
    if (mysql_real_query(my, text, sizeof text - 1) != 0)
        return false;
    MYSQL_RES *result = mysql_store_result(my);
    MYSQL_ROW row = result == NULL ? NULL : mysql_fetch_row(result);
    bool takes = row != NULL && row[0] != NULL && row[0][0] == '0';
    mysql_free_result(result);
    return takes;
}

MYSQL *snk_my_dial(const snk_my_options *options, sneck_error *error)
{
    MYSQL *spare = NULL; /* takes no writes; better than none, to look at locks */
    for (size_t i = 0; i < options->host_count; i++) {
        MYSQL *my = dial_host(options, &options->hosts[i], error);
        if (my == NULL)
            continue;
        if (options->host_count == 1 || takes_writes(my)) {
            mysql_close(spare);
            return my;
        }
        if (spare == NULL)
            spare = my;
        else
            mysql_close(my);
    }
    return spare;
}

void snk_my_hang_up(MYSQL *my)
{
    /* Reset, or the kernel might deliver what is still on its way seconds later. */
    struct linger now = { .l_onoff = 1 };
    int fd = (int)mysql_get_socket(my);
    if (fd >= 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        (void)shutdown(fd, SHUT_RD); /* the library's good-bye still leaves, and nothing is waited for */
    }
    mysql_close(my);
}

bool snk_my_conn_is_alive(const snk_my_conn *conn)
{
    /* Whatever a server says of its own accord is a good-bye. */
    struct pollfd polled = { .fd = (int)mysql_get_socket(conn->my), .events = POLLIN };
    return poll(&polled, 1, 0) == 0;
}

/* ---- Statements ---- */

static void take_result(snk_my_conn *conn, const char *where, snk_my_reply *reply)
{
    reply->result = mysql_store_result(conn->my);
    if (reply->result == NULL && mysql_errno(conn->my) != 0)
        note_error(conn, where, reply);
    else
        reply->outcome = SNK_SQL_ANSWERED;
}

bool snk_my_conn_send(snk_my_conn *conn, const char *where, const char *text, size_t length, snk_my_reply *reply)
{
    *reply = (snk_my_reply){ .outcome = SNK_SQL_FAILED };
    if (mysql_send_query(conn->my, text, length) == 0)
        return true;
    note_error(conn, where, reply);
    return false;
}

void snk_my_conn_await(snk_my_conn *conn, const char *where, int stop_fd, int64_t until_ns, snk_my_reply *reply)
{
    *reply = (snk_my_reply){ .outcome = SNK_SQL_UNCERTAIN };
    struct pollfd polled[] = { { .fd = (int)mysql_get_socket(conn->my), .events = POLLIN },
                               { .fd = stop_fd, .events = POLLIN } };
    int ready = 0;
    do {
        int64_t left_ns = until_ns - snk_now_ns();
        ready = poll(polled, 2, left_ns <= 0 ? 0 : (int)(left_ns / SNK_NS_PER_MS + 1));
    } while (ready < 0 && errno == EINTR);
    if (polled[0].revents == 0) {
        reply->is_late = true;
        (void)snk_fail(&reply->error, SNECK_UNKNOWN, ETIMEDOUT, "%s: no answer in time", where);
    } else if (mysql_read_query_result(conn->my) != 0) {
        note_error(conn, where, reply);
    } else {
        take_result(conn, where, reply);
    }
}

void snk_my_conn_query(snk_my_conn *conn, const char *where, const char *text, size_t length, snk_my_reply *reply)
{
    if (!snk_my_conn_send(conn, where, text, length, reply))
        return;
    /* The library counts in whole seconds. */
    snk_my_conn_await(conn, where, -1, snk_time_add(snk_now_ns(), conn->timeout_ns), reply);
    reply->is_broken = reply->is_broken || reply->is_late;
}

void snk_my_conn_next(snk_my_conn *conn, const char *where, snk_my_reply *reply)
{
    if (reply->outcome != SNK_SQL_ANSWERED)
        return;
    snk_my_reply_clear(reply);
    int more = mysql_next_result(conn->my);
    if (more == 0) {
        take_result(conn, where, reply);
    } else if (more > 0) {
        note_error(conn, where, reply);
    } else {
        reply->outcome = SNK_SQL_UNCERTAIN;
        reply->is_broken = true;
        (void)snk_fail(&reply->error, SNECK_UNKNOWN, 0, "%s: an answer is missing", where);
    }
}

void snk_my_conn_drain(snk_my_conn *conn, snk_my_reply *reply)
{
    while (!reply->is_broken && mysql_more_results(conn->my)) {
        int more = mysql_next_result(conn->my);
        if (more == 0)
            mysql_free_result(mysql_store_result(conn->my));
        else if (more > 0)
            reply->is_broken = is_end_of_session(mysql_errno(conn->my));
    }
}

void snk_my_reply_clear(snk_my_reply *reply)
{
    mysql_free_result(reply->result);
    reply->result = NULL;
}

const char *snk_my_reply_text(snk_my_reply *reply)
{
    if (reply->result == NULL)
        return "";
    mysql_data_seek(reply->result, 0);
    MYSQL_ROW row = mysql_fetch_row(reply->result);
    return row == NULL || row[0] == NULL ? "" : row[0];
}
