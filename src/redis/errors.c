#include "redis/errors.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"

typedef struct error_row {
    const char *prefix; /* how the reply begins, up to a word's end */
    snk_redis_error_kind kind;
    bool harmless; /* the command changed nothing */
    sneck_status status;
    const char *advice; /* what happened, and what to do about it */
} error_row;

static const char access_advice[] = "the access rules of this user forbid it; see ACL SETUSER";

static const error_row rows[] = {
    { "NOSCRIPT", SNK_REDIS_NOSCRIPT, true, SNECK_UNAVAILABLE, "the script is not loaded" },
    { "READONLY", SNK_REDIS_READONLY, true, SNECK_UNAVAILABLE, "this is a replica; connect to the master" },
    { "LOADING", SNK_REDIS_LOADING, true, SNECK_UNAVAILABLE, "the server is reading its data; try again" },
    { "BUSY", SNK_REDIS_BUSY_SCRIPT, true, SNECK_UNAVAILABLE,
      "somebody's script runs too long; end it by SCRIPT KILL" },
    { "OOM", SNK_REDIS_OOM, true, SNECK_UNAVAILABLE, "the server is out of memory; raise maxmemory" },
    { "NOAUTH", SNK_REDIS_NOAUTH, true, SNECK_DENIED, "a password is needed" },
    { "WRONGPASS", SNK_REDIS_WRONGPASS, true, SNECK_DENIED, "wrong user or password, or the user is disabled" },
    { "ERR invalid password", SNK_REDIS_WRONGPASS, true, SNECK_DENIED, "wrong password" },
    { "ERR Client sent AUTH, but no password is set", SNK_REDIS_WRONGPASS, true, SNECK_DENIED,
      "the server has no password; take it out of the URL" },
    { "ERR AUTH <password> called without any password configured", SNK_REDIS_WRONGPASS, true, SNECK_DENIED,
      "the server has no password; take it out of the URL" },
    { "NOPERM", SNK_REDIS_NOPERM, true, SNECK_DENIED, access_advice },
    /* Redis 7.2 and Valkey; Redis 7.0; Redis 6. */
    { "ERR ACL failure in script", SNK_REDIS_SCRIPT_DENIED, false, SNECK_DENIED, access_advice },
    { "ERR The user executing the script can't", SNK_REDIS_SCRIPT_DENIED, false, SNECK_DENIED, access_advice },
    { "The user executing the script can't", SNK_REDIS_SCRIPT_DENIED, false, SNECK_DENIED, access_advice },
    { "DENIED", SNK_REDIS_PROTECTED, true, SNECK_DENIED,
      "the server is in protected mode; give it a password, or connect from its own machine" },
    { "ERR DB index is out of range", SNK_REDIS_BAD_DATABASE, true, SNECK_INVALID,
      "the server has no database of that number" },
    { "MISCONF", SNK_REDIS_MISCONF, true, SNECK_UNAVAILABLE,
      "the server cannot save and refuses writes; look at its log and disk" },
    { "MASTERDOWN", SNK_REDIS_MASTERDOWN, true, SNECK_UNAVAILABLE, "a replica that lost its master" },
    { "NOREPLICAS", SNK_REDIS_NOREPLICAS, true, SNECK_UNAVAILABLE, "too few replicas are connected to the server" },
    { "ERR max number of clients reached", SNK_REDIS_MAXCLIENTS, true, SNECK_UNAVAILABLE,
      "the server has no room for another client; raise maxclients" },
    { "WRONGTYPE", SNK_REDIS_WRONGTYPE, true, SNECK_INVALID,
      "other data is stored under this key; choose another name or prefix" },
    { "MOVED", SNK_REDIS_MOVED, true, SNECK_UNAVAILABLE, "this is a cluster; use redis+cluster://" },
    { "ASK", SNK_REDIS_ASK, true, SNECK_UNAVAILABLE, "this is a cluster; use redis+cluster://" },
    { "TRYAGAIN", SNK_REDIS_TRYAGAIN, true, SNECK_UNAVAILABLE, "the cluster is moving these keys; try again" },
    { "CLUSTERDOWN", SNK_REDIS_CLUSTERDOWN, true, SNECK_UNAVAILABLE, "the cluster is down" },
    { "CROSSSLOT", SNK_REDIS_CROSSSLOT, true, SNECK_INVALID, "the keys are in several slots of the cluster" },
    { "UNBLOCKED", SNK_REDIS_UNBLOCKED, false, SNECK_UNKNOWN, "the command was ended by the server" },
};

static const char *const killed_texts[] = { "Script killed by user with SCRIPT KILL", "Function killed by user" };

static bool begins_with(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);
    if (strncmp(text, prefix, length) != 0)
        return false;
    return text[length] == '\0' || text[length] == ' ' || text[length] == '.' || text[length] == ':';
}

static const error_row killed_row = { "", SNK_REDIS_KILLED, true, SNECK_UNAVAILABLE,
                                      "somebody killed the script before it wrote anything" };
static const error_row other_row = { "", SNK_REDIS_OTHER_ERROR, false, SNECK_UNKNOWN, "" };

/*
 * Servers before 7.0 report the error of a command in a script as "ERR Error running script (call to f_…):
 * @user_script:12: -OOM command not allowed …", or without the minus sign.
 */
static const char *unwrap(const char *text)
{
    if (strncmp(text, "ERR Error ", strlen("ERR Error ")) != 0)
        return text;
    const char *inner = strstr(text, "@user_script:");
    if (inner != NULL)
        inner = strstr(inner, ": ");
    if (inner == NULL)
        return text;
    inner += 2;
    if (strncmp(inner, "@user_script: ", strlen("@user_script: ")) == 0)
        inner += strlen("@user_script: ");
    while (*inner >= '0' && *inner <= '9')
        inner++;
    inner += strspn(inner, ": ");
    return *inner == '-' ? inner + 1 : inner;
}

static const error_row *row_of(const char *text)
{
    for (size_t i = 0; i < sizeof killed_texts / sizeof killed_texts[0]; i++)
        if (strstr(text, killed_texts[i]) != NULL)
            return &killed_row;
    text = unwrap(text);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (begins_with(text, rows[i].prefix))
            return &rows[i];
    return &other_row;
}

snk_redis_error_kind snk_redis_error_of(const redisReply *reply)
{
    if (reply == NULL || reply->type != REDIS_REPLY_ERROR)
        return SNK_REDIS_NO_ERROR;
    return row_of(reply->str)->kind;
}

bool snk_redis_error_is_harmless(snk_redis_error_kind kind)
{
    if (kind == SNK_REDIS_NO_ERROR)
        return false;
    if (kind == SNK_REDIS_KILLED)
        return true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].kind == kind)
            return rows[i].harmless;
    return false;
}

sneck_status snk_redis_error_explain(const redisReply *reply, const char *where, sneck_error *error)
{
    if (reply == NULL || reply->type != REDIS_REPLY_ERROR)
        return snk_ok(error);
    const error_row *row = row_of(reply->str);
    const char *between = row->advice[0] != '\0' ? "; the server said: " : "";
    return snk_fail(error, row->status, 0, "%s: %s%s%.120s", where, row->advice, between, reply->str);
}
