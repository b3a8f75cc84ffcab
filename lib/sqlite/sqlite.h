/*
 * The functions of SQLite that tfhook uses, looked up when they are needed. The command is not
 * linked with SQLite, so it runs where SQLite is missing.
 */
#ifndef TFH_SQLITE_SQLITE_H
#define TFH_SQLITE_SQLITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct tfh_db;	/* sqlite3 */
struct tfh_sql; /* sqlite3_stmt */

/* As in sqlite3.h, without the prefix. */
struct tfh_sqlite {
	int (*open_v2)(const char *path, struct tfh_db **db, int flags, const char *vfs);
	int (*close)(struct tfh_db *db);
	int (*exec)(struct tfh_db *db, const char *sql, void *, void *, char **);
	int (*prepare_v2)(struct tfh_db *db, const char *sql, int n, struct tfh_sql **,
			  const char **tail);
	int (*step)(struct tfh_sql *s);
	int (*reset)(struct tfh_sql *s);
	int (*finalize)(struct tfh_sql *s);
	int (*bind_int64)(struct tfh_sql *s, int at, int64_t value);
	int (*bind_double)(struct tfh_sql *s, int at, double value);
	int (*bind_null)(struct tfh_sql *s, int at);
	int (*bind_text)(struct tfh_sql *s, int at, const char *text, int n, void (*)(void *));
	int (*column_type)(struct tfh_sql *s, int at);
	int64_t (*column_int64)(struct tfh_sql *s, int at);
	const unsigned char *(*column_text)(struct tfh_sql *s, int at);
	int (*column_count)(struct tfh_sql *s);
	const char *(*column_name)(struct tfh_sql *s, int at);
	int (*limit)(struct tfh_db *db, int id, int value);
	void (*progress_handler)(struct tfh_db *db, int every, int (*)(void *), void *arg);
	const char *(*errmsg)(struct tfh_db *db);
};

enum {
	TFH_SQL_OK = 0,
	TFH_SQL_NOMEM = 7,
	TFH_SQL_INTERRUPT = 9,
	TFH_SQL_FULL = 13,
	TFH_SQL_ROW = 100,
	TFH_SQL_DONE = 101
};
enum { TFH_SQL_READONLY = 1, TFH_SQL_READWRITE = 2, TFH_SQL_CREATE = 4, TFH_SQL_URI = 64 };
enum { TFH_SQL_INTEGER = 1, TFH_SQL_TEXT = 3, TFH_SQL_NULL = 5 };
enum { TFH_SQL_LIMIT_LENGTH = 0 };

/* NULL with `err` (-ENOPKG): it is not installed; the message names the packages. Never
 * unloaded. */
const struct tfh_sqlite *tfh_sqlite_load(struct tfh_err *err);

#endif
