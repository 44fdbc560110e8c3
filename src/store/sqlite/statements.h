/* The texts of the schema and of all statements. */
#ifndef SNK_STORE_SQLITE_STATEMENTS_H
#define SNK_STORE_SQLITE_STATEMENTS_H

#include "store/sqlite/database.h"

#define SNK_SCHEMA_VERSION 3
#define SNK_APPLICATION_ID 0x534E434B /* "SNCK" */

extern const char snk_sql_schema[];
extern const char snk_sql_forget_boot[];
extern const char *const snk_sql[SNK_SQL_COUNT];

#endif
