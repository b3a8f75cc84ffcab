/* Rows of an SQLite database that is written once, and copied to a stream. */
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

/* A new database. All return 0 or -errno with `err`. */
int tfh_rows_create(struct tfh_row_writer *w, struct tfh_err *err);
int tfh_rows_run(struct tfh_row_writer *w, const char *sql);
/* Names a table by a number for tfh_rows_put(); `columns` is how many it has. */
int tfh_rows_table(struct tfh_row_writer *w, uint32_t table, const char *name, uint32_t columns);
/* A row: for each character of `form` a value: i int64_t, u the same (less than 0: null), f double (NAN: null), t text (NULL:
 * null). */
int tfh_rows_put(struct tfh_row_writer *w, uint32_t table, const char *form, ...);
/* The number of a text in the table `strings`, into which a new one is put. */
int tfh_rows_string(struct tfh_row_writer *w, uint32_t strings, const char *text, int64_t *id);
/* Ends the database and copies it. */
int tfh_rows_copy(struct tfh_row_writer *w, FILE *out);
void tfh_rows_free(struct tfh_row_writer *w);

#endif
