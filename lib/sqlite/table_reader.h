/*
 * Reads tables of a database that another program wrote. Nothing in it is trusted: it is opened
 * without being changed or locked, and neither damage nor a view that never ends can take more
 * memory or time than a file of its size may need.
 */
#ifndef TFH_SQLITE_TABLE_READER_H
#define TFH_SQLITE_TABLE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define TFH_TABLE_COLUMNS 32u

struct tfh_tables;

/* `path` must be a regular file. -ENOPKG: SQLite is not installed; -EBADMSG: damaged,
 * or no database. */
int tfh_tables_open(const char *path, struct tfh_tables **out, struct tfh_err *err);
void tfh_tables_close(struct tfh_tables *t);

/* Whether there is a table or view of this name. */
bool tfh_tables_have(struct tfh_tables *t, const char *name);

/* Calls `fn` for each row of a table, with the values of `column` (n names) in that order. Columns
 * that the table does not have are NULL in all rows, and a table that does not exist has no rows.
 * `where` (NULL: all rows) may use only columns that the table surely has. A negative errno from
 * `fn` ends it and is returned; otherwise 0, or -EBADMSG, -ENOMEM or -E2BIG with err. */
struct tfh_table_row;
int tfh_tables_each(struct tfh_tables *t, const char *name, const char *const *column, uint32_t n,
		    const char *where, int (*fn)(void *arg, const struct tfh_table_row *row),
		    void *arg, struct tfh_err *err);

/* An integer; `otherwise` for anything else. */
int64_t tfh_row_int(const struct tfh_table_row *row, uint32_t at, int64_t otherwise);
/* A text, NULL for anything else; valid until the next row. */
const char *tfh_row_text(const struct tfh_table_row *row, uint32_t at);

#endif
