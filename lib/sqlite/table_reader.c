#include "sqlite/table_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "sqlite/sqlite.h"

#define MAX_VALUE (64 << 20)  /* bytes of one text */
#define MAX_ROWS 40000000u    /* of all tables, about 5 GB */
#define EVERY 10000	      /* SQLite's instructions between two checks of the budget */
#define FREE_WORK 20000000ull /* instructions for any file: about a second */
#define WORK_PER_BYTE 20ull   /* a plain row takes less than one per byte, one of a view three */
#define MAX_SQL 4096

/* Memory that SQLite may take; its cache has 16 MiB of it. The rest is for views that sort. */
static const char settings[] =
	"PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA query_only = ON; "
	"PRAGMA mmap_size = 0; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; "
	"PRAGMA hard_heap_limit = 268435456";

struct tfh_tables {
	const struct tfh_sqlite *api;
	struct tfh_db *db;
	char *path;
	uint64_t work, budget; /* instructions in EVERY */
	uint64_t rows;
};

struct tfh_table_row {
	const struct tfh_sqlite *api;
	struct tfh_sql *sql;
	const int8_t *place; /* column of each value, -1 none */
};

static int spend(void *arg)
{
	struct tfh_tables *t = arg;

	return ++t->work > t->budget;
}

/* A URI of a file: without a lock, without a journal beside it. */
static char *uri_of(const char *path)
{
	static const char tail[] = "?mode=ro&immutable=1";
	char *full = realpath(path, NULL);
	size_t n = full ? strlen(full) : 0;
	char *uri = full ? malloc(5 + 3 * n + sizeof(tail)) : NULL, *p = uri;

	if (uri) {
		p += sprintf(p, "file:");
		for (const char *s = full; *s; s++)
			if (strchr("?#%", *s))
				p += sprintf(p, "%%%02X", (unsigned char)*s);
			else
				*p++ = *s;
		strcpy(p, tail);
	}
	free(full);
	return uri;
}

static int failed(struct tfh_tables *t, int code, const char *table, struct tfh_err *err)
{
	switch (code & 0xff) {
	case TFH_SQL_NOMEM:
		return tfh_err_set(err, -ENOMEM, "%s: %s: out of memory", t->path, table);
	case TFH_SQL_INTERRUPT:
		return tfh_err_set(
			err, -EBADMSG,
			"%s: %s: stopped reading: it takes more work than a table in a file of "
			"this size can",
			t->path, table);
	}
	return tfh_err_set(err, -EBADMSG, "%s: %s: %s", t->path, table, t->api->errmsg(t->db));
}

int tfh_tables_open(const char *path, struct tfh_tables **out, struct tfh_err *err)
{
	struct tfh_tables *t = calloc(1, sizeof(*t));
	char *uri = uri_of(path);
	struct stat st;
	int rc = 0;

	*out = NULL;
	if (t)
		t->path = strdup(path);
	if (!t || !t->path || !uri)
		rc = tfh_err_set(err, uri ? -ENOMEM : -errno, "%s: %s", path,
				 strerror(uri ? ENOMEM : errno));
	else if (stat(path, &st))
		rc = tfh_err_set(err, -errno, "%s: %s", path, strerror(errno));
	else if (!(t->api = tfh_sqlite_load(err)))
		rc = -ENOPKG;
	if (!rc) {
		t->budget = (FREE_WORK + WORK_PER_BYTE * (uint64_t)st.st_size) / EVERY;
		rc = t->api->open_v2(uri, &t->db, TFH_SQL_READONLY | TFH_SQL_URI, NULL);
		if (!rc)
			rc = t->api->exec(t->db, settings, NULL, NULL, NULL);
		if (rc) {
			rc = failed(t, rc, "SQLite", err);
		} else {
			t->api->limit(t->db, TFH_SQL_LIMIT_LENGTH, MAX_VALUE);
			t->api->progress_handler(t->db, EVERY, spend, t);
		}
	}
	free(uri);
	if (rc)
		tfh_tables_close(t);
	else
		*out = t;
	return rc;
}

void tfh_tables_close(struct tfh_tables *t)
{
	if (!t)
		return;
	if (t->db)
		t->api->close(t->db);
	free(t->path);
	free(t);
}

bool tfh_tables_have(struct tfh_tables *t, const char *name)
{
	struct tfh_sql *s = NULL;
	bool found = false;

	/* A virtual table has no root page. */
	if (!t->api->prepare_v2(t->db,
				"SELECT 1 FROM sqlite_master WHERE name = ?1 COLLATE NOCASE AND "
				"(type = 'view' OR type = 'table' AND rootpage > 0)",
				-1, &s, NULL) &&
	    !t->api->bind_text(s, 1, name, -1, NULL))
		found = t->api->step(s) == TFH_SQL_ROW;
	t->api->finalize(s);
	return found;
}

static int prepare(struct tfh_tables *t, const char *name, const char *columns, const char *where,
		   struct tfh_sql **s, struct tfh_err *err)
{
	char sql[MAX_SQL];
	int n = snprintf(sql, sizeof(sql), "SELECT %s FROM \"%s\" WHERE %s", columns, name, where);
	int rc;

	if (n < 0 || (size_t)n >= sizeof(sql))
		return tfh_err_set(err, -EINVAL, "%s: a query is too long", name);
	rc = t->api->prepare_v2(t->db, sql, -1, s, NULL);
	return rc ? failed(t, rc, name, err) : 0;
}

/* Finds which of the wanted columns exist: their numbers among the selected ones, and the list for
 * SQL. Names are the caller's, so they need no quotes beyond those for keywords. */
static int choose(struct tfh_tables *t, const char *name, const char *const *column, uint32_t n,
		  int8_t *place, char *list, size_t cap, struct tfh_err *err)
{
	struct tfh_sql *s = NULL;
	size_t at = 0;
	int8_t used = 0;
	int rc = prepare(t, name, "*", "0", &s, err), columns = rc ? 0 : t->api->column_count(s);

	for (uint32_t i = 0; i < n && !rc; i++) {
		int k = 0;
		while (k < columns && strcasecmp(t->api->column_name(s, k), column[i]) != 0)
			k++;
		place[i] = k < columns ? used++ : -1;
		if (k < columns)
			at += (size_t)snprintf(list + at, cap - at, "%s\"%s\"", at ? ", " : "",
					       column[i]);
	}
	if (!rc && !at)
		snprintf(list, cap, "NULL");
	t->api->finalize(s);
	return rc;
}

int tfh_tables_each(struct tfh_tables *t, const char *name, const char *const *column, uint32_t n,
		    const char *where, int (*fn)(void *arg, const struct tfh_table_row *row),
		    void *arg, struct tfh_err *err)
{
	int8_t place[TFH_TABLE_COLUMNS];
	struct tfh_table_row row = {.api = t->api, .place = place};
	char list[MAX_SQL / 2];
	int rc;

	if (!tfh_tables_have(t, name))
		return 0;
	rc = choose(t, name, column, n, place, list, sizeof(list), err);
	if (!rc)
		rc = prepare(t, name, list, where ? where : "1", &row.sql, err);
	while (!rc) {
		int step = t->api->step(row.sql);
		if (step == TFH_SQL_DONE)
			break;
		if (step != TFH_SQL_ROW)
			rc = failed(t, step, name, err);
		else if (++t->rows > MAX_ROWS)
			rc = tfh_err_set(err, -E2BIG, "%s: more events than fit in memory",
					 t->path);
		else
			rc = fn(arg, &row);
	}
	t->api->finalize(row.sql);
	return rc;
}

int64_t tfh_row_int(const struct tfh_table_row *row, uint32_t at, int64_t otherwise)
{
	int place = row->place[at];

	return place >= 0 && row->api->column_type(row->sql, place) == TFH_SQL_INTEGER
		       ? row->api->column_int64(row->sql, place)
		       : otherwise;
}

const char *tfh_row_text(const struct tfh_table_row *row, uint32_t at)
{
	int place = row->place[at];

	return place >= 0 && row->api->column_type(row->sql, place) == TFH_SQL_TEXT
		       ? (const char *)row->api->column_text(row->sql, place)
		       : NULL;
}
