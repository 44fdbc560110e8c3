/*
 * mode=row on PostgreSQL (store/sql/rows.h): the tables know a transaction by its number, and the server can say whether it
 * is in progress.
 */
#ifndef SNK_STORE_POSTGRES_ROWS_H
#define SNK_STORE_POSTGRES_ROWS_H

#include "store/sql/rows.h"

extern const snk_sql_row_ops snk_pg_row_ops;

#endif
