/* Which of the paths given are traces of other tools, and what kind each is. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/import.h"

#define MAX_FILES 4096

enum kind { OURS, KINETO, XPLANE };

struct list {
	char *path[MAX_FILES];
	bool asked[MAX_FILES]; /* named by the caller, not found in a directory */
	uint32_t n;
};

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

static bool is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Names tell most; a file without a telling name is told by its first bytes: JSON and gzip by their
 * own, an XSpace by beginning with a plane (field 1, a message). */
static enum kind kind_of(const char *path)
{
	uint8_t head[256];
	ssize_t n, i = 0;
	int fd;

	if (ends_with(path, ".tft"))
		return OURS;
	if (ends_with(path, ".xplane.pb") || ends_with(path, ".pb"))
		return XPLANE;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	n = fd >= 0 ? read(fd, head, sizeof(head)) : -1;
	if (fd >= 0)
		close(fd);
	if (n >= 2 && head[0] == 0x1f && head[1] == 0x8b)
		return KINETO;
	while (i < n && (head[i] == ' ' || head[i] == '\n' || head[i] == '\r' || head[i] == '\t'))
		i++;
	if (i < n && (head[i] == '{' || head[i] == '['))
		return KINETO;
	if (ends_with(path, ".json") || ends_with(path, ".json.gz"))
		return KINETO;
	return n > 2 && head[0] == 0x0a && head[1] & 0x80 ? XPLANE : OURS;
}

static int add(struct list *l, const char *path, bool asked)
{
	if (l->n == MAX_FILES)
		return -E2BIG;
	l->path[l->n] = strdup(path);
	if (!l->path[l->n])
		return -ENOMEM;
	l->asked[l->n++] = asked;
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Files of a directory by their names: a run directory of our own holds *.tft or journals. */
static bool foreign_name(const char *name)
{
	return ends_with(name, ".xplane.pb") || ends_with(name, ".json.gz") ||
	       (ends_with(name, ".json") && strcmp(name, "run.json") && strcmp(name, "end.json"));
}

/* Beside HOST.xplane.pb TensorFlow puts HOST.trace.json.gz, the same for a viewer. */
static void leave_out_views(struct list *l, uint32_t first)
{
	uint32_t kept = first;
	bool xplane = false;

	for (uint32_t i = first; i < l->n; i++)
		xplane |= ends_with(l->path[i], ".xplane.pb");
	for (uint32_t i = first; i < l->n; i++)
		if (xplane && ends_with(l->path[i], ".trace.json.gz") &&
		    !ends_with(l->path[i], ".pt.trace.json.gz"))
			free(l->path[i]);
		else
			l->path[kept++] = l->path[i];
	l->n = kept;
}

/* -EEXIST: it is one of ours. */
static int add_files(struct list *l, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[4096];
	uint32_t first = l->n;
	int rc = 0;

	while (d && !rc && (e = readdir(d))) {
		if (ends_with(e->d_name, ".tft") || !strcmp(e->d_name, "run.json"))
			rc = -EEXIST;
		if (!foreign_name(e->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		rc = rc ? rc : add(l, path, false);
	}
	if (d)
		closedir(d);
	leave_out_views(l, first);
	if (l->n > first)
		qsort(l->path + first, l->n - first, sizeof(*l->path), by_text);
	return rc;
}

/* TensorBoard's log directory: <dir>/plugins/profile/<session>/<host>.xplane.pb; sessions are named
 * by their time, the last is meant. */
static int add_session(struct list *l, const char *dir)
{
	char base[2048], newest[256] = "", path[4096];
	DIR *d;
	struct dirent *e;

	snprintf(base, sizeof(base), "%s/plugins/profile", dir);
	d = opendir(base);
	while (d && (e = readdir(d)))
		if (*e->d_name != '.' && strcmp(e->d_name, newest) > 0 &&
		    strlen(e->d_name) < sizeof(newest))
			strcpy(newest, e->d_name);
	if (d)
		closedir(d);
	if (!*newest)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", base, newest);
	return add_files(l, path);
}

/* A directory's foreign files, none if it is one of ours. */
static int add_directory(struct list *l, const char *dir)
{
	uint32_t before = l->n;
	int rc = add_files(l, dir);

	if (!rc && l->n == before)
		rc = add_session(l, dir);
	if (rc != -EEXIST)
		return rc;
	while (l->n > before)
		free(l->path[--l->n]);
	return 0;
}

static void forget(struct list *l)
{
	while (l && l->n)
		free(l->path[--l->n]);
	free(l);
}

bool tfh_import_is_foreign(const char *path)
{
	struct list *l;
	bool foreign;

	if (!is_directory(path))
		return kind_of(path) != OURS;
	l = calloc(1, sizeof(*l));
	foreign = l && !add_directory(l, path) && l->n;
	forget(l);
	return foreign;
}

static int read_file(struct tfh_builder *b, const char *path, struct tfh_err *err)
{
	return kind_of(path) == XPLANE ? tfh_import_xplane(b, path, err)
				       : tfh_import_kineto(b, path, err);
}

/* All files into one run. A file of a directory that is no trace is passed over, one that was asked
 * for is not. */
static int read_files(const struct list *l, const char *name, struct tfh_run **out,
		      struct tfh_err *err)
{
	struct tfh_builder *b;
	struct tfh_err why = {0};
	enum tfh_source source = kind_of(l->path[0]) == XPLANE ? TFH_SRC_XPLANE : TFH_SRC_KINETO;
	uint32_t good = 0;
	int rc = tfh_build_new(source, name, &b);

	if (rc)
		return tfh_err_set(err, rc, "out of memory");
	for (uint32_t i = 0; i < l->n && !rc; i++) {
		rc = read_file(b, l->path[i], &why);
		good += !rc;
		if ((rc == -ENOMSG || rc == -ENODATA) && !l->asked[i] && (good || i + 1 < l->n))
			rc = 0;
	}
	if (rc)
		tfh_err_set(err, rc, "%s", why.text);
	else
		rc = tfh_build_run(b, out, err);
	if (rc)
		tfh_build_free(b);
	return rc;
}

int tfh_import_open(const char *const *paths, uint32_t n, struct tfh_run **out, struct tfh_err *err)
{
	struct list *l = calloc(1, sizeof(*l));
	uint32_t ours = 0;
	int rc = 0;

	*out = NULL;
	if (!l)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < n && !rc; i++) {
		uint32_t before = l->n;
		if (is_directory(paths[i]))
			rc = add_directory(l, paths[i]);
		else if (kind_of(paths[i]) != OURS)
			rc = add(l, paths[i], true);
		ours += !rc && l->n == before;
	}
	if (rc)
		tfh_err_set(err, rc, "%s",
			    rc == -E2BIG ? "more than 4096 traces at once" : "out of memory");
	else if (!l->n)
		rc = tfh_run_open(paths, n, out, err);
	else if (ours)
		rc = tfh_err_set(err, -EINVAL,
				 "recordings of tfhook and traces of other tools cannot be read "
				 "together");
	else
		rc = read_files(l, paths[0], out, err);
	forget(l);
	return rc;
}
