/* Rows of an SQLite database that is written once and then copied to a stream. */
#ifndef TFH_EXPORT_SQLITE_ROWS_H
#define TFH_EXPORT_SQLITE_ROWS_H

#include "base/key_table.h"
#include "sqlite/sqlite.h"

#define TFH_ROW_TABLES 16u

struct tfh_row_writer {
	const struct tfh_sqlite *api;
	struct tfh_db *db;
	struct tfh_sql *insert[TFH_ROW_TABLES]; /* prepared statements, by table */
	struct tfh_map strings;			/* text -> its number */
	char path[4096];			/* a temporary file */
	struct tfh_err *err;
};

/* Creates a database. All functions return 0, or -errno with `err`. */
int tfh_rows_create(struct tfh_row_writer *w, struct tfh_err *err);
int tfh_rows_run(struct tfh_row_writer *w, const char *sql);
/* Assigns a number to a table, for tfh_rows_put(); `columns`: number of columns. */
int tfh_rows_table(struct tfh_row_writer *w, uint32_t table, const char *name, uint32_t columns);
/* Adds a row, with one value for each character of `form`: i int64_t, u the same (below 0: null), f
 * double (NAN: null), t text (NULL: null). */
int tfh_rows_put(struct tfh_row_writer *w, uint32_t table, const char *form, ...);
/* The id of a text in the table `strings`, to which it is added if it is new. */
int tfh_rows_string(struct tfh_row_writer *w, uint32_t strings, const char *text, int64_t *id);
/* Finishes the database and copies it. */
int tfh_rows_copy(struct tfh_row_writer *w, FILE *out);
void tfh_rows_free(struct tfh_row_writer *w);

#endif
