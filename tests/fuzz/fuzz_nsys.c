/*
 * Fuzzed input: a database as Nsight Systems exports it or as rocprofv3 writes it. Whatever its
 * bytes, importing it and the report of it must neither crash nor hang nor take memory beyond the
 * bounds.
 *
 * A fourth of the mutations change bytes of the file. The others are statements of SQL, after which SQLite can still read it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "import/nsys.h"
#include "sqlite/sqlite.h"

#define LOOK_EVERY 1000 /* instructions of SQLite's */
#define LOOKS 100

static uint32_t next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* Where the input lies while SQLite has it open. */
static const char *put(const char *name, const void *data, size_t size)
{
	static char path[128];

	tfh_fuzz_clear();
	tfh_fuzz_write(name, data, size);
	snprintf(path, sizeof(path), "%s/%s", tfh_fuzz_place(), name);
	return path;
}

/* ---- mutation ---- */

/* %1$s, %2$s: table and column; %3$s: another column; %4$u: number of a row; ?1: a value. */
#define ROW                                                                                        \
	"rowid = (SELECT rowid FROM \"%1$s\" LIMIT 1 OFFSET %4$u %% max(1, (SELECT count(*) FROM \"%1$s\")))"
static const char *const statements[] = {
	"UPDATE \"%1$s\" SET \"%2$s\" = ?1 WHERE " ROW,
	"UPDATE \"%1$s\" SET \"%2$s\" = \"%2$s\" + ?1 WHERE " ROW,
	"UPDATE \"%1$s\" SET \"%2$s\" = \"%3$s\" WHERE " ROW,
	"UPDATE \"%1$s\" SET \"%2$s\" = ?1",
	"UPDATE \"%1$s\" SET \"%2$s\" = \"%2$s\" + ?1",
	"UPDATE \"%1$s\" SET \"%2$s\" = \"%2$s\" * ?1",
	"INSERT INTO \"%1$s\" SELECT * FROM \"%1$s\" WHERE " ROW,
	"INSERT OR IGNORE INTO \"%1$s\" (\"%2$s\") VALUES (?1)",
	"DELETE FROM \"%1$s\" WHERE " ROW,
	"ALTER TABLE \"%1$s\" DROP COLUMN \"%2$s\"",
	"ALTER TABLE \"%1$s\" RENAME COLUMN \"%2$s\" TO \"%3$s\"",
	"DROP TABLE \"%1$s\"",
	"VACUUM",
};
#define STATEMENTS (sizeof(statements) / sizeof(*statements))
/* Those that take away come less often. */
#define CHANGING 8
#define NAME 64u /* of a table or a column; longer ones are cut and fit nothing */

/* One of the names that `sql` selects; `table` is its parameter, or NULL. False: there is none. */
static bool draw_name(const struct tfh_sqlite *api, struct tfh_db *db, const char *sql,
		      const char *table, uint32_t draw, char name[NAME])
{
	char drawn[256];
	struct tfh_sql *s = NULL;

	snprintf(
		drawn, sizeof(drawn),
		"SELECT name FROM (%1$s) LIMIT 1 OFFSET %2$u %% max(1, (SELECT count(*) FROM (%1$s)))",
		sql, draw);
	*name = 0;
	if (!api->prepare_v2(db, drawn, -1, &s, NULL)) {
		if (table)
			api->bind_text(s, 1, table, -1, NULL);
		if (api->step(s) == TFH_SQL_ROW && api->column_text(s, 0))
			snprintf(name, NAME, "%s", api->column_text(s, 0));
	}
	api->finalize(s);
	return *name && !strpbrk(name, "\"%");
}

static void bind(const struct tfh_sqlite *api, struct tfh_sql *s, uint32_t *seed)
{
	static const int64_t odd[] = {-1,	 0,	    1,	       2,
				      75,	 999,	    1 << 24,   UINT32_MAX,
				      1ll << 32, 1ll << 47, 1ll << 48, 7999999999999999999ll,
				      INT64_MAX, INT64_MIN};
	char text[256] = "";
	uint32_t kind = next(seed) % 8;

	if (kind < 3) {
		api->bind_int64(s, 1, odd[next(seed) % (sizeof(odd) / sizeof(*odd))]);
	} else if (kind < 5) {
		api->bind_int64(s, 1, (int64_t)next(seed) % 2000 - 1000);
	} else if (kind == 5) {
		api->bind_double(s, 1, next(seed) / 1e3);
	} else if (kind == 6) {
		size_t n = LLVMFuzzerMutate((uint8_t *)text, 0, sizeof(text) - 1);
		api->bind_text(s, 1, text, (int)n, (void (*)(void *)) - 1); /* copied */
	} else {
		api->bind_null(s, 1);
	}
}

static int look(void *looks)
{
	return ++*(int *)looks > LOOKS;
}

static void change(const struct tfh_sqlite *api, struct tfh_db *db, uint32_t *seed)
{
	static const char tables[] = "SELECT name FROM sqlite_master WHERE type = 'table'";
	static const char columns[] = "SELECT name FROM pragma_table_info(?1)";
	uint32_t statement = next(seed) % (STATEMENTS + 2 * CHANGING);
	char table[NAME], column[NAME], other[NAME], sql[1024];
	struct tfh_sql *s = NULL;

	if (!draw_name(api, db, tables, NULL, next(seed), table) ||
	    !draw_name(api, db, columns, table, next(seed), column) ||
	    !draw_name(api, db, columns, table, next(seed), other))
		return;
	snprintf(sql, sizeof(sql),
		 statements[statement < STATEMENTS ? statement : statement % CHANGING], table,
		 column, other, next(seed));
	if (!api->prepare_v2(db, sql, -1, &s, NULL)) {
		bind(api, s, seed);
		api->step(s);
	}
	api->finalize(s);
}

/* The new size; 0: SQLite cannot read it, or it became too large. */
static size_t mutate_rows(uint8_t *data, size_t size, size_t max, uint32_t *seed)
{
	const struct tfh_sqlite *api = tfh_sqlite_load(NULL);
	struct tfh_db *db = NULL;
	int looks = 0;

	if (!api)
		return 0;
	const char *path = put("mutated", data, size);
	if (!api->open_v2(path, &db, TFH_SQL_READWRITE, NULL) &&
	    !api->exec(
		    db,
		    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA trusted_schema = OFF",
		    NULL, NULL, NULL)) {
		api->progress_handler(db, LOOK_EVERY, look, &looks);
		for (uint32_t n = 1 + next(seed) % 3; n; n--)
			change(api, db, seed);
	}
	api->close(db);
	FILE *f = fopen(path, "rb");
	if (!f)
		return 0;
	uint8_t *changed = malloc(max + 1);
	size_t n = changed ? fread(changed, 1, max + 1, f) : 0;
	fclose(f);
	if (n > max || (n == size && !memcmp(changed, data, n)))
		n = 0;
	if (n)
		memcpy(data, changed, n);
	free(changed);
	return n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	uint32_t draw = seed;
	size_t n = next(&draw) % 4 ? mutate_rows(data, size, max, &draw) : 0;

	return n ? n : LLVMFuzzerMutate(data, size, max);
}

/* ---- import ---- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	double begin = tfh_fuzz_clock();
	struct tfh_builder *b;
	struct tfh_err err = {0};

	if (!tfh_fuzz_place() || tfh_build_new(TFH_SRC_NSYS, "fuzz", &b))
		return 0;
	int rc = tfh_import_nsys(b, put("export.sqlite", data, size), &err);
	tfh_fuzz_built(b, rc, &err, size);
	tfh_fuzz_bound(begin, size);
	return 0;
}
