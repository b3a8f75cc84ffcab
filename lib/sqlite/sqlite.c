#include "sqlite/sqlite.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

static struct tfh_sqlite api;

static const struct {
	const char *name;
	size_t at;
} functions[] = {
#define FUNCTION(name)                                                                             \
	{                                                                                          \
		"sqlite3_" #name, offsetof(struct tfh_sqlite, name)                                \
	}
	FUNCTION(open_v2),	    FUNCTION(close),	   FUNCTION(exec),
	FUNCTION(prepare_v2),	    FUNCTION(step),	   FUNCTION(reset),
	FUNCTION(finalize),	    FUNCTION(bind_int64),  FUNCTION(bind_double),
	FUNCTION(bind_null),	    FUNCTION(bind_text),   FUNCTION(column_type),
	FUNCTION(column_int64),	    FUNCTION(column_text), FUNCTION(limit),
	FUNCTION(progress_handler), FUNCTION(errmsg),	   FUNCTION(column_count),
	FUNCTION(column_name),
#undef FUNCTION
};

const struct tfh_sqlite *tfh_sqlite_load(struct tfh_err *err)
{
	void *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		tfh_err_set(err, -ENOPKG,
			    "SQLite is not installed, which this format needs: libsqlite3.so.0 "
			    "(Debian, Ubuntu: libsqlite3-0; Fedora: sqlite-libs)");
		return NULL;
	}
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *found = dlsym(library, functions[i].name);
		if (!found) {
			tfh_err_set(err, -ENOPKG, "libsqlite3.so.0 has no %s", functions[i].name);
			return NULL;
		}
		memcpy((char *)&api + functions[i].at, &found, sizeof(found));
	}
	return &api;
}
