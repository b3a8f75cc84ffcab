#include "export/sqlite_rows.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

static int failed(struct tfh_row_writer *w, int code)
{
	return tfh_err_set(w->err, code == TFH_SQL_FULL ? -ENOSPC : -EIO,
			   "cannot write the database (its temporary file is in %s): %s",
			   getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", w->api->errmsg(w->db));
}

int tfh_rows_create(struct tfh_row_writer *w, struct tfh_err *err)
{
	const char *folder = getenv("TMPDIR");

	w->err = err;
	w->api = tfh_sqlite_load(err);
	if (!w->api)
		return -ENOPKG;
	snprintf(w->path, sizeof(w->path), "%s/tfhook-export-XXXXXX",
		 folder && *folder ? folder : "/tmp");
	int fd = mkstemp(w->path);
	if (fd < 0) {
		int code = -errno;
		tfh_err_set(err, code, "%s: %s", w->path, strerror(-code));
		w->path[0] = '\0';
		return code;
	}
	close(fd);
	int rc = w->api->open_v2(w->path, &w->db, TFH_SQL_READWRITE | TFH_SQL_CREATE, NULL);
	if (rc)
		return failed(w, rc);
	return tfh_rows_run(w, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
			       "PRAGMA locking_mode = EXCLUSIVE; BEGIN");
}

int tfh_rows_run(struct tfh_row_writer *w, const char *sql)
{
	int rc = w->api->exec(w->db, sql, NULL, NULL, NULL);

	return rc ? failed(w, rc) : 0;
}

int tfh_rows_table(struct tfh_row_writer *w, uint32_t table, const char *name, uint32_t columns)
{
	char sql[512];
	int n = snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES (?", name);

	for (uint32_t i = 1; i < columns && n < 500; i++)
		n += snprintf(sql + n, sizeof(sql) - (size_t)n, ",?");
	snprintf(sql + n, sizeof(sql) - (size_t)n, ")");
	int rc = w->api->prepare_v2(w->db, sql, -1, &w->insert[table], NULL);
	return rc ? failed(w, rc) : 0;
}

static int bind_int(struct tfh_row_writer *w, struct tfh_sql *s, int at, char form, int64_t value)
{
	return form == 'u' && value < 0 ? w->api->bind_null(s, at)
					: w->api->bind_int64(s, at, value);
}

static int bind_double(struct tfh_row_writer *w, struct tfh_sql *s, int at, double value)
{
	return isnan(value) ? w->api->bind_null(s, at) : w->api->bind_double(s, at, value);
}

static int bind_text(struct tfh_row_writer *w, struct tfh_sql *s, int at, const char *text)
{
	return text ? w->api->bind_text(s, at, text, -1, NULL) : w->api->bind_null(s, at);
}

int tfh_rows_put(struct tfh_row_writer *w, uint32_t table, const char *form, ...)
{
	struct tfh_sql *s = w->insert[table];
	va_list args;
	int at = 0, rc = 0;

	va_start(args, form);
	for (; *form && !rc; form++) {
		at++;
		if (*form == 'i' || *form == 'u')
			rc = bind_int(w, s, at, *form, va_arg(args, int64_t));
		else if (*form == 'f')
			rc = bind_double(w, s, at, va_arg(args, double));
		else
			rc = bind_text(w, s, at, va_arg(args, const char *));
	}
	va_end(args);
	if (!rc && (rc = w->api->step(s)) == TFH_SQL_DONE)
		rc = w->api->reset(s);
	return rc ? failed(w, rc) : 0;
}

int tfh_rows_string(struct tfh_row_writer *w, uint32_t strings, const char *text, int64_t *id)
{
	bool fresh;
	uint64_t *known = tfh_map_put(&w->strings, tfh_hash_str(text), &fresh);

	if (!known)
		return tfh_err_set(w->err, -ENOMEM, "out of memory");
	if (fresh)
		*known = w->strings.n;
	*id = (int64_t)*known;
	return fresh ? tfh_rows_put(w, strings, "it", *id, text) : 0;
}

int tfh_rows_copy(struct tfh_row_writer *w, FILE *out)
{
	static char block[1 << 16];
	int rc = tfh_rows_run(w, "COMMIT");
	size_t n;

	if (rc)
		return rc;
	FILE *in = fopen(w->path, "re");
	if (!in)
		return -errno;
	while ((n = fread(block, 1, sizeof(block), in)) && !rc)
		rc = fwrite(block, 1, n, out) == n ? 0 : -EIO;
	if (ferror(in))
		rc = -EIO;
	fclose(in);
	return rc;
}

void tfh_rows_free(struct tfh_row_writer *w)
{
	for (uint32_t i = 0; i < TFH_ROW_TABLES && w->api; i++)
		w->api->finalize(w->insert[i]);
	if (w->db)
		w->api->close(w->db);
	if (w->path[0])
		unlink(w->path);
	tfh_map_free(&w->strings);
}
