#include "store/postgres/errors.h"

#include <ctype.h>
#include <string.h>

#include "base/error.h"

/* What a code means: the whole of it, or the class that its first two letters name. */
static sneck_status status_of(const char *state)
{
    static const struct {
        const char *begins;
        sneck_status status;
    } meanings[] = {
        { "28", SNECK_DENIED },     /* authentication */
        { "42501", SNECK_DENIED },  /* no such right */
        { "3F000", SNECK_DENIED },  /* no schema where this role could make tables */
        { "3D000", SNECK_INVALID }, /* no such database */
        { "22", SNECK_INVALID },    /* a name that the database's encoding cannot take */
    };
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strncmp(state, meanings[i].begins, strlen(meanings[i].begins)) == 0)
            return meanings[i].status;
    return SNECK_UNAVAILABLE;
}

/* A line without its end, and without the five letters of the code that a verbose message has. */
static void copy_line(char *to, size_t size, const char *from, size_t length)
{
    if (length >= size)
        length = size - 1;
    memcpy(to, from, length);
    to[length] = '\0';
}

/* Finds "SEVERITY:  28P01: text", as verbose messages begin, in whatever language the severity is. */
static const char *find_state(const char *message, char state[SNK_PG_STATE_SIZE])
{
    state[0] = '\0';
    for (const char *at = strstr(message, ":  "); at != NULL; at = strstr(at + 1, ":  ")) {
        const char *code = at + 3;
        size_t length = 0;
        while (length < 5 && (isdigit((unsigned char)code[length]) || isupper((unsigned char)code[length])))
            length++;
        if (length == 5 && code[5] == ':' && code[6] == ' ') {
            memcpy(state, code, 5);
            state[5] = '\0';
            return code + 7;
        }
    }
    return NULL;
}

sneck_status snk_pg_connect_error(const PGconn *connection, const char *where, sneck_error *error)
{
    const char *message = PQerrorMessage(connection);
    char state[SNK_PG_STATE_SIZE];
    const char *said = find_state(message, state);
    char line[160];
    if (said != NULL) {
        copy_line(line, sizeof line, said, strcspn(said, "\n"));
        return snk_fail(error, status_of(state), 0, "%s: %s (%s)", where, line, state);
    }
    /* Said by libpq itself: the reason is at the end of the first line. */
    copy_line(line, sizeof line, message, strcspn(message, "\n"));
    bool is_invalid = PQsocket(connection) < 0 && strncmp(message, "invalid ", 8) == 0;
    return snk_fail(error, is_invalid ? SNECK_INVALID : SNECK_UNAVAILABLE, 0, "%s: %s", where,
                    line[0] != '\0' ? line : "connecting takes too long");
}

bool snk_pg_refused_settings(const sneck_error *error)
{
    return strstr(error->message, "startup parameter") != NULL;
}

sneck_status snk_pg_result_error(const PGresult *result, const char *where, char state[SNK_PG_STATE_SIZE],
                                 sneck_error *error)
{
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    (void)snk_copy_text(state, SNK_PG_STATE_SIZE, code == NULL ? "" : code);
    if (code == NULL || message == NULL) {
        char line[160];
        const char *said = PQresultErrorMessage(result);
        copy_line(line, sizeof line, said, strcspn(said, "\n"));
        return snk_fail(error, SNECK_UNAVAILABLE, 0, "%s: %s", where, line);
    }
    if (strcmp(state, "42883") == 0 || strcmp(state, "42P01") == 0)
        return snk_fail(error, SNECK_UNAVAILABLE, 0, "%s: %.100s; sneck setup makes what is missing", where, message);
    return snk_fail(error, status_of(state), 0, "%s: %.150s (%s)", where, message, state);
}

static bool is_one_of(const char *state, const char *const states[])
{
    for (; *states != NULL; states++)
        if (strcmp(state, *states) == 0)
            return true;
    return false;
}

bool snk_pg_is_proof(const char *state)
{
    return state[0] != '\0' && strncmp(state, "08", 2) != 0;
}

bool snk_pg_is_transient(const char *state)
{
    static const char *const states[] = { "40001", "40P01", NULL };
    return is_one_of(state, states);
}

bool snk_pg_is_strange_session(const char *state)
{
    static const char *const states[] = { "26000", "42P05", NULL };
    return is_one_of(state, states);
}

bool snk_pg_is_read_only(const char *state)
{
    return strcmp(state, "25006") == 0;
}

bool snk_pg_is_locked(const char *state)
{
    return strcmp(state, "55P03") == 0;
}
