#include "store/sqlite/database.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "store/sqlite/statements.h"

#define BOOT_ID_SIZE 37
/*
 * What is done when a file is opened may need a large journal, which is cut back to this. Later transactions do not, and
 * are spared the look at its size.
 */
#define JOURNAL_BYTES_MAX "1048576"

sneck_status snk_database_fail(const snk_database *database, const snk_place *place, int code, sneck_error *error)
{
    const char *path = place->database;
    switch (code & 0xFF) {
    case SQLITE_NOMEM:
        return snk_fail(error, SNECK_NO_MEMORY, code, "out of memory");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return snk_fail(error, SNECK_UNAVAILABLE, code,
                        "%.120s is busy: another process is stopped, or very slow, in the middle of a transaction",
                        path);
    case SQLITE_FULL:
        return snk_fail(error, SNECK_UNAVAILABLE, code, "%.150s: disk full", path);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return snk_fail(error, SNECK_DENIED, code, "%.120s cannot be written by user %u: check it and its folder", path,
                        (unsigned)geteuid());
    case SQLITE_CANTOPEN:
        return snk_fail(
            error, errno == EACCES ? SNECK_DENIED : SNECK_UNAVAILABLE, code,
            "%.120s or its journal cannot be opened: check that it is no symbolic link, and its permissions", path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
        return snk_fail(error, SNECK_UNAVAILABLE, code,
                        "%.120s is not a lock file or damaged: stop its users, then move it away", path);
    case SQLITE_IOERR:
        if (code == SQLITE_IOERR_NOMEM)
            return snk_fail(error, SNECK_NO_MEMORY, code, "out of memory");
        break;
    default:
        break;
    }
    const char *text = database->connection == NULL ? sqlite3_errstr(code) : sqlite3_errmsg(database->connection);
    return snk_fail(error, SNECK_UNAVAILABLE, code, "%.100s: %.100s", path, text);
}

sqlite3_stmt *snk_database_statement(snk_database *database, snk_statement which)
{
    sqlite3_stmt **statement = &database->statements[which];
    if (*statement == NULL)
        (void)sqlite3_prepare_v3(database->connection, snk_sql[which], -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
    return *statement;
}

int snk_database_run(snk_database *database, sqlite3_stmt *statement)
{
    if (statement == NULL)
        return sqlite3_errcode(database->connection);
    int code = SQLITE_ROW;
    while (code == SQLITE_ROW)
        code = sqlite3_step(statement);
    int reset = sqlite3_reset(statement);
    return code == SQLITE_DONE ? reset : code;
}

static int run_text(snk_database *database, const char *sql)
{
    return sqlite3_exec(database->connection, sql, NULL, NULL, NULL);
}

/* The number that a PRAGMA answers with. */
static int ask_number(snk_database *database, const char *sql, int64_t *number_out)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(database->connection, sql, -1, &statement, NULL);
    if (code != SQLITE_OK)
        return code;
    code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *number_out = sqlite3_column_int64(statement, 0);
    int finalized = sqlite3_finalize(statement);
    return code == SQLITE_ROW ? SQLITE_OK : finalized != SQLITE_OK ? finalized : SQLITE_ERROR;
}

/*
 * The path as a URI, so that SQLite gives a new database the mode of the sidecar, whatever the umask: nobody else may
 * make the file, because nobody else may open it. `uri` has room for each byte thrice.
 */
static void make_uri(char *uri, const snk_place *place)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *parts[] = { "file:", place->database, "?modeof=", place->sidecar };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        bool is_path = i % 2 == 1;
        for (const char *from = parts[i]; *from != '\0'; from++) {
            unsigned byte = (unsigned char)*from;
            if (is_path && strchr("%?#&= ", *from) != NULL) {
                *uri++ = '%';
                *uri++ = digits[byte >> 4];
                *uri++ = digits[byte & 15U];
            } else {
                *uri++ = *from;
            }
        }
    }
    *uri = '\0';
}

static sneck_status check_found(snk_database *database, const snk_place *place, bool *exists_out, sneck_error *error)
{
    struct stat found;
    *exists_out = lstat(place->database, &found) == 0;
    if (!*exists_out && errno != ENOENT)
        return snk_fail(error, errno == EACCES ? SNECK_DENIED : SNECK_UNAVAILABLE, errno, "%.150s: %s", place->database,
                        snk_errno_text(errno));
    if (!*exists_out)
        return SNECK_OK;
    database->id = (snk_file_id){ .device = found.st_dev, .inode = found.st_ino };
    return snk_place_check_file(place, place->database, &found, error);
}

static sneck_status connect_to(snk_database *database, const snk_place *place, sneck_error *error)
{
    bool exists = false;
    sneck_status status = check_found(database, place, &exists, error);
    if (status != SNECK_OK)
        return status;
    char *uri = malloc(6 * sizeof place->database + sizeof "file:?modeof=");
    if (uri == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    make_uri(uri, place);
    /* Not with CREATE when it is there: see open_file in sidecar.c. */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
                SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE | (exists ? 0 : SQLITE_OPEN_CREATE);
    int code = sqlite3_open_v2(uri, &database->connection, flags, "unix");
    free(uri);
    if (code != SQLITE_OK)
        return snk_database_fail(database, place, code, error);
    if (sqlite3_db_readonly(database->connection, "main") == 1)
        return snk_database_fail(database, place, SQLITE_READONLY, error);
    return SNECK_OK;
}

static int configure(snk_database *database, const snk_place *place, int busy_ms)
{
    sqlite3 *connection = database->connection;
    (void)sqlite3_busy_timeout(connection, busy_ms);
    (void)sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    (void)sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    (void)sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    int code = run_text(database, place->durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=OFF");
    if (code == SQLITE_OK)
        code = run_text(database, "PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY; PRAGMA journal_mode=PERSIST;"
                                  "PRAGMA journal_size_limit=" JOURNAL_BYTES_MAX);
    return code;
}

static bool read_boot_id(char text[BOOT_ID_SIZE])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file == NULL)
        return false;
    bool done = fread(text, 1, BOOT_ID_SIZE - 1, file) == BOOT_ID_SIZE - 1;
    (void)fclose(file);
    text[done ? BOOT_ID_SIZE - 1 : 0] = '\0';
    return done;
}

/* Whether the claims in the file are of this boot. */
static int is_this_boot(snk_database *database, const char *boot, bool *same_out)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(database->connection, "SELECT 1 FROM sneck_meta WHERE key = 'boot' AND value = ?1",
                                  -1, &statement, NULL);
    if (code != SQLITE_OK)
        return code;
    (void)sqlite3_bind_text(statement, 1, boot, -1, SQLITE_STATIC);
    *same_out = sqlite3_step(statement) == SQLITE_ROW;
    return sqlite3_finalize(statement);
}

static int set_boot(snk_database *database, const char *boot)
{
    int code = run_text(database, snk_sql_forget_boot);
    if (code != SQLITE_OK)
        return code;
    sqlite3_stmt *statement = NULL;
    code = sqlite3_prepare_v2(database->connection, "INSERT OR REPLACE INTO sneck_meta VALUES('boot', ?1)", -1,
                              &statement, NULL);
    if (code != SQLITE_OK)
        return code;
    (void)sqlite3_bind_text(statement, 1, boot, -1, SQLITE_STATIC);
    (void)sqlite3_step(statement);
    return sqlite3_finalize(statement);
}

static int make_schema(snk_database *database)
{
    char sql[96];
    (void)snprintf(sql, sizeof sql, "PRAGMA application_id=%d; PRAGMA user_version=%d", SNK_APPLICATION_ID,
                   SNK_SCHEMA_VERSION);
    int code = run_text(database, snk_sql_schema);
    return code == SQLITE_OK ? run_text(database, sql) : code;
}

/* What the file is, as far as it matters for opening it. */
typedef struct contents {
    int64_t application;
    int64_t version;
    int64_t tables;
    bool this_boot;
} contents;

static bool is_ready(const contents *found)
{
    return found->application == SNK_APPLICATION_ID && found->version == SNK_SCHEMA_VERSION && found->this_boot;
}

static int look_inside(snk_database *database, const char *boot, contents *found)
{
    *found = (contents){ .tables = 0 };
    int code = ask_number(database, "PRAGMA application_id", &found->application);
    if (code == SQLITE_OK)
        code = ask_number(database, "PRAGMA user_version", &found->version);
    if (code == SQLITE_OK)
        code = ask_number(database, "SELECT count(*) FROM sqlite_schema", &found->tables);
    bool ours = found->application == SNK_APPLICATION_ID && found->version == SNK_SCHEMA_VERSION;
    return code == SQLITE_OK && ours ? is_this_boot(database, boot, &found->this_boot) : code;
}

/* Inside a transaction: makes the tables in an empty file, refuses a file that is not ours, forgets another boot. */
static sneck_status settle_contents(snk_database *database, const snk_place *place, const char *boot,
                                    sneck_error *error)
{
    contents found;
    int code = look_inside(database, boot, &found);
    if (code != SQLITE_OK)
        return snk_database_fail(database, place, code, error);
    if (found.application == 0 && found.tables == 0)
        code = make_schema(database);
    else if (found.application != SNK_APPLICATION_ID)
        return snk_fail(error, SNECK_INVALID, 0, "%.150s is another program's database", place->database);
    else if (found.version != SNK_SCHEMA_VERSION)
        return snk_fail(error, SNECK_UNAVAILABLE, 0, "%.120s has schema %lld and this sneck knows %d: %s",
                        place->database, (long long)found.version, SNK_SCHEMA_VERSION,
                        found.version > SNK_SCHEMA_VERSION ? "update sneck" : "stop its users, then move it away");
    if (code == SQLITE_OK && !found.this_boot)
        code = set_boot(database, boot);
    return code == SQLITE_OK ? SNECK_OK : snk_database_fail(database, place, code, error);
}

static sneck_status set_up(snk_database *database, const snk_place *place, int busy_ms, sneck_error *error)
{
    char boot[BOOT_ID_SIZE];
    if (!read_boot_id(boot))
        return snk_fail(error, SNECK_UNAVAILABLE, errno, "/proc/sys/kernel/random/boot_id cannot be read: mount /proc");
    contents found = { .tables = 0 };
    int code = configure(database, place, busy_ms);
    if (code == SQLITE_OK)
        code = look_inside(database, boot, &found);
    if (code == SQLITE_OK && is_ready(&found))
        return SNECK_OK; /* the usual case, without waiting for writers */
    if (code == SQLITE_OK)
        code = run_text(database, "BEGIN IMMEDIATE");
    if (code != SQLITE_OK)
        return snk_database_fail(database, place, code, error);
    sneck_status status = settle_contents(database, place, boot, error);
    if (status == SNECK_OK) {
        code = run_text(database, "COMMIT");
        if (code != SQLITE_OK)
            status = snk_database_fail(database, place, code, error);
    }
    if (sqlite3_get_autocommit(database->connection) == 0)
        (void)run_text(database, "ROLLBACK");
    return status;
}

sneck_status snk_database_open(snk_database *database, const snk_place *place, int busy_ms, sneck_error *error)
{
    *database = (snk_database){ .connection = NULL };
    sneck_status status = connect_to(database, place, error);
    if (status == SNECK_OK)
        status = set_up(database, place, busy_ms, error);
    bool exists = false;
    if (status == SNECK_OK)
        status = check_found(database, place, &exists, error);
    /* The id must be that of the file that SQLite has open, not of one that has just replaced it. */
    int moved = 0;
    if (status == SNECK_OK)
        (void)sqlite3_file_control(database->connection, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    if (status == SNECK_OK && (!exists || moved != 0))
        status =
            snk_fail(error, SNECK_UNAVAILABLE, 0, "%.150s was replaced while we opened it; try again", place->database);
    if (status != SNECK_OK) {
        snk_database_close(database);
        return status;
    }
    (void)run_text(database, "PRAGMA journal_size_limit=-1");
    (void)sqlite3_busy_timeout(database->connection, SNK_BUSY_MS);
    return SNECK_OK;
}

void snk_database_close(snk_database *database)
{
    for (size_t i = 0; i < SNK_SQL_COUNT; i++)
        (void)sqlite3_finalize(database->statements[i]);
    (void)sqlite3_close(database->connection);
    *database = (snk_database){ .connection = NULL };
}
