/* Finds out which of the given paths are traces of other tools, and of which kind. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "import/bytes.h"
#include "import/import.h"

#define MAX_FILES 4096
#define MAX_PIPED (4ull << 30) /* of an XPlane trace from a pipe */

enum trace_kind { OURS, KINETO, XPLANE, NSYS, STREAM };

struct trace_list {
	char *path[MAX_FILES];
	bool asked[MAX_FILES]; /* named by the caller, not found in a directory */
	uint32_t n;
};

static bool is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static bool is_empty(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !st.st_size;
}

/* A file that can be read only once: a pipe, a terminal, "-". */
static bool is_stream(const char *path)
{
	struct stat st;

	return !strcmp(path, "-") ||
	       (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

static size_t read_head(int fd, uint8_t *head, size_t cap)
{
	size_t n = 0;
	ssize_t got = 1;

	while (n < cap && (got > 0 || (got < 0 && errno == EINTR))) {
		got = read(fd, head + n, cap - n);
		n += got > 0 ? (size_t)got : 0;
	}
	return n;
}

/* Kind of a trace by its first bytes. JSON, gzip and SQLite are unambiguous; an XSpace starts with
 * a plane (field 1, a message). */
static enum trace_kind kind_of_bytes(const uint8_t *head, size_t n)
{
	static const char database[] = "SQLite format 3";
	size_t i = n >= 3 && !memcmp(head, "\xef\xbb\xbf", 3) ? 3 : 0;

	if (n >= sizeof(database) && !memcmp(head, database, sizeof(database)))
		return NSYS;
	if (n >= 2 && head[0] == 0x1f && head[1] == 0x8b)
		return KINETO;
	while (i < n && (head[i] == ' ' || head[i] == '\n' || head[i] == '\r' || head[i] == '\t'))
		i++;
	if (i < n && (head[i] == '{' || head[i] == '['))
		return KINETO;
	return n > 2 && head[0] == 0x0a && head[1] & 0x80 ? XPLANE : OURS;
}

static size_t head_of(const char *path, uint8_t *head, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t n = fd >= 0 ? read_head(fd, head, cap) : 0;

	if (fd >= 0)
		close(fd);
	return n;
}

/* Kind of a file: by its name, or else by its first bytes. */
static enum trace_kind kind_of(const char *path)
{
	uint8_t head[256];
	enum trace_kind kind;

	if (is_stream(path))
		return STREAM;
	if (tfh_ends_with(path, ".tft"))
		return OURS;
	if (tfh_ends_with(path, ".xplane.pb") || tfh_ends_with(path, ".pb"))
		return XPLANE;
	kind = kind_of_bytes(head, head_of(path, head, sizeof(head)));
	return kind == OURS && (tfh_ends_with(path, ".json") || tfh_ends_with(path, ".json.gz"))
		       ? KINETO
		       : kind;
}

/* Describes a file that is no trace, whatever its name says, by its first bytes; NULL if
 * unknown. */
static const char *other_bytes(const uint8_t *head, size_t n)
{
	static const struct {
		const char *bytes, *what;
	} all[] = {
		{"PK\3\4", "a zip archive: unpack it first"},
		{"\x28\xb5\x2f\xfd", "compressed with zstd: zstd -dc FILE | tfhook report -"},
		{"BZh", "compressed with bzip2: bzip2 -dc FILE | tfhook report -"},
		{"\xfd"
		 "7zXZ",
		 "compressed with xz: xz -dc FILE | tfhook report -"},
		{"\x80\4\x95",
		 "a Python pickle, such as PyTorch's memory snapshot: it holds no times; use the "
		 "profiler's trace"},
		{"version https://git-lfs.",
		 "a pointer of Git LFS to the file: `git lfs pull` brings it"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (n >= strlen(all[i].bytes) && !memcmp(head, all[i].bytes, strlen(all[i].bytes)))
			return all[i].what;
	return NULL;
}

/* The same for a file that is neither a readable trace nor tfhook's own. */
static const char *other_format(const char *path, const uint8_t *head, size_t n)
{
	const char *what = other_bytes(head, n);

	if (what)
		return what;
	if (tfh_ends_with(path, ".nsys-rep") || tfh_ends_with(path, ".qdrep"))
		return "a report of Nsight Systems: export it with `nsys export --type sqlite "
		       "FILE`, and give tfhook the .sqlite file";
	if (tfh_ends_with(path, ".ncu-rep"))
		return "a report of Nsight Compute, about single kernels: record the job with "
		       "`tfhook run` or `nsys profile`";
	if (tfh_ends_with(path, ".et"))
		return "an execution trace of Chakra, which holds no times of a run: use the "
		       "profiler's trace that it was made from";
	if (tfh_ends_with(path, ".pftrace") || tfh_ends_with(path, ".perfetto-trace"))
		return "a Perfetto trace: not supported; use the profiler's own JSON or .xplane.pb";
	return NULL;
}

const char *tfh_import_other(const char *path)
{
	uint8_t head[256];

	return is_stream(path) || is_directory(path) || kind_of(path) != OURS
		       ? NULL
		       : other_format(path, head, head_of(path, head, sizeof(head)));
}

static int add(struct trace_list *l, const char *path, bool asked)
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

/* Recognises a directory's files by name: a run directory has *.tft files or journals. */
static bool foreign_name(const char *name)
{
	return tfh_ends_with(name, ".xplane.pb") || tfh_ends_with(name, ".json.gz") ||
	       tfh_ends_with(name, ".sqlite") ||
	       (tfh_ends_with(name, ".json") && strcmp(name, "run.json") &&
		strcmp(name, "end.json") && strcmp(name, "start.json"));
}

/* Whether a file's data are in an XPlane file beside it: TensorFlow and JAX write
 * HOST.trace.json.gz, and JAX perfetto_trace.json.gz if asked for it. */
static bool is_view(const char *path)
{
	return (tfh_ends_with(path, ".trace.json.gz") &&
		!tfh_ends_with(path, ".pt.trace.json.gz")) ||
	       tfh_ends_with(path, "/perfetto_trace.json.gz");
}

/* Removes files from the list that are views of others. */
static void leave_out_views(struct trace_list *l, uint32_t first)
{
	uint32_t kept = first;
	bool xplane = false;

	for (uint32_t i = first; i < l->n; i++)
		xplane |= tfh_ends_with(l->path[i], ".xplane.pb");
	for (uint32_t i = first; i < l->n; i++)
		if (xplane && is_view(l->path[i]))
			free(l->path[i]);
		else
			l->path[kept++] = l->path[i];
	l->n = kept;
}

/* Adds the traces in a directory. -EEXIST: it is a run directory. */
static int add_files(struct trace_list *l, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[4096];
	uint32_t first = l->n;
	int rc = 0;

	while (d && !rc && (e = readdir(d))) {
		if (tfh_ends_with(e->d_name, ".tft") || !strcmp(e->d_name, "run.json"))
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

/* TensorBoard's log directory: <dir>/plugins/profile/<session>/<host>.xplane.pb. Sessions are named
 * by time; the last one is used. */
static int add_session(struct trace_list *l, const char *dir)
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

/* Ascend's profiler puts its trace into a directory below, beside files without any. Returns
 * whether there is one. */
static bool ascend_directory(const char *dir, char *below, size_t cap)
{
	return snprintf(below, cap, "%s/ASCEND_PROFILER_OUTPUT", dir) < (int)cap &&
	       is_directory(below);
}

/* The directory that holds those of its ranks. */
static int add_ascend_ranks(struct trace_list *l, const char *dir)
{
	char rank[2048], below[4096];
	uint32_t first = l->n;
	DIR *d = opendir(dir);
	struct dirent *e;
	int rc = 0;

	while (d && !rc && (e = readdir(d)))
		if (tfh_ends_with(e->d_name, "_ascend_pt") &&
		    snprintf(rank, sizeof(rank), "%s/%s", dir, e->d_name) < (int)sizeof(rank) &&
		    ascend_directory(rank, below, sizeof(below)))
			rc = add_files(l, below);
	if (d)
		closedir(d);
	if (l->n > first)
		qsort(l->path + first, l->n - first, sizeof(*l->path), by_text);
	return rc;
}

/* Adds the traces of a directory; none if it is a run directory. */
static int add_directory(struct trace_list *l, const char *dir)
{
	char below[4096];
	uint32_t before = l->n;
	int rc = add_files(l, ascend_directory(dir, below, sizeof(below)) ? below : dir);

	if (!rc && l->n == before)
		rc = add_session(l, dir);
	if (!rc && l->n == before)
		rc = add_ascend_ranks(l, dir);
	if (rc != -EEXIST)
		return rc;
	while (l->n > before)
		free(l->path[--l->n]);
	return 0;
}

static void forget(struct trace_list *l)
{
	while (l && l->n)
		free(l->path[--l->n]);
	free(l);
}

bool tfh_import_is_foreign(const char *path)
{
	struct trace_list *l;
	bool foreign;

	if (!is_directory(path))
		return kind_of(path) != OURS;
	l = calloc(1, sizeof(*l));
	foreign = l && !add_directory(l, path) && l->n;
	forget(l);
	return foreign;
}

/* Reads the rest of a pipe, after the bytes already read. */
static int slurp(int fd, const uint8_t *head, size_t n, uint8_t **data, size_t *size)
{
	size_t cap = 1u << 20;
	ssize_t got = 1;

	*data = malloc(cap);
	if (*data)
		memcpy(*data, head, n);
	while (*data && got) {
		if (n == cap) {
			uint8_t *more = cap < MAX_PIPED ? realloc(*data, cap * 2) : NULL;
			if (!more)
				break;
			*data = more;
			cap *= 2;
		}
		got = read(fd, *data + n, cap - n);
		if (got < 0 && errno != EINTR)
			return -errno;
		n += got > 0 ? (size_t)got : 0;
	}
	*size = n;
	return got ? -ENOMEM : 0;
}

static int read_stream(struct tfh_builder *b, const char *path, struct tfh_err *err)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC)
				   : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	uint8_t *head = malloc(TFH_BYTES_HEAD), *data = NULL;
	size_t n = fd >= 0 && head ? read_head(fd, head, TFH_BYTES_HEAD) : 0;
	const char *name = strcmp(path, "-") ? path : "standard input";
	enum trace_kind kind = kind_of_bytes(head, n);
	int rc = fd < 0 ? -errno : head ? 0 : -ENOMEM;

	if (rc) {
		tfh_err_set(err, rc, "%s: %s", name, strerror(-rc));
	} else if (kind == KINETO) {
		rc = tfh_import_kineto_stream(b, fd, head, n, name, err);
		fd = -1;
	} else if (kind == XPLANE && !(rc = slurp(fd, head, n, &data, &n))) {
		tfh_build_source(b, TFH_SRC_XPLANE);
		rc = tfh_import_xplane_bytes(b, data, n, name, err);
	} else if (rc) {
		tfh_err_set(err, rc, "%s: %s", name, strerror(-rc));
	} else if (kind == NSYS) {
		rc = tfh_err_set(
			err, -ENOMSG,
			"%s: an SQLite database, which cannot be read from a pipe: save it "
			"to a file first",
			name);
	} else {
		const char *other = other_format(path, head, n);
		rc = tfh_err_set(err, -ENOMSG, "%s: %s", name,
				 other ? other
				 : n   ? "neither JSON nor an XPlane trace"
				       : "empty");
	}
	if (fd >= 0)
		close(fd);
	free(head);
	free(data);
	return rc;
}

/* A pipe is read only if the user named it; one found in a directory may never have a writer. */
static int read_file(struct tfh_builder *b, const char *path, bool asked, struct tfh_err *err)
{
	enum trace_kind kind = kind_of(path);
	uint8_t head[256];
	size_t n = kind == STREAM ? 0 : head_of(path, head, sizeof(head));
	const char *other = other_bytes(head, n);

	if (!other && kind == KINETO && kind_of_bytes(head, n) != KINETO) /* but for its name */
		other = n ? "no JSON" : is_empty(path) ? "empty" : NULL;
	if (other)
		return tfh_err_set(err, -ENOMSG, "%s: %s", path, other);
	switch (kind) {
	case STREAM:
		return asked ? read_stream(b, path, err)
			     : tfh_err_set(err, -ENOMSG, "%s: not a regular file", path);
	case XPLANE:
		return tfh_import_xplane(b, path, err);
	case NSYS:
		return tfh_import_nsys(b, path, err);
	default:
		return tfh_import_kineto(b, path, err);
	}
}

/* Handles a file found in a directory that could not be read: an error is noted, and nothing of the
 * file is used. A file that is no trace is ignored. */
static int leave_out(struct tfh_builder *b, uint32_t before, int rc, const struct tfh_err *why)
{
	if (rc == -ENOMEM || rc == -E2BIG)
		return rc;
	tfh_build_undo(b, before);
	return rc == -ENOMSG || rc == -ENODATA ? 0 : tfh_build_leave_out(b, why->text);
}

/* All files into one run. A file that the user named must be valid; of those found in a directory,
 * at least one. */
static int read_files(const struct trace_list *l, const char *name, struct tfh_run **out,
		      struct tfh_err *err)
{
	struct tfh_builder *b;
	struct tfh_err why = {0}, first = {0};
	enum trace_kind kind = kind_of(l->path[0]);
	enum tfh_source source = kind == XPLANE ? TFH_SRC_XPLANE
				 : kind == NSYS ? TFH_SRC_NSYS
						: TFH_SRC_KINETO;
	uint32_t good = 0;
	int rc = tfh_build_new(source, name, &b);

	if (rc)
		return tfh_err_set(err, rc, "out of memory");
	for (uint32_t i = 0; i < l->n && !rc; i++) {
		uint32_t before = tfh_build_processes(b);
		rc = read_file(b, l->path[i], l->asked[i], &why);
		good += !rc;
		if (!rc || l->asked[i])
			continue;
		/* A damaged trace is a better message than a file of another kind. */
		if (!first.code || first.code == -ENOMSG || first.code == -ENODATA)
			first = why;
		rc = leave_out(b, before, rc, &why);
	}
	if (!rc && !good) {
		why = first;
		rc = first.code;
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
	struct trace_list *l = calloc(1, sizeof(*l));
	uint32_t ours = 0;
	int rc = 0;

	*out = NULL;
	if (!l)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < n && !rc; i++) {
		uint32_t before = l->n;
		const char *other = NULL;
		if (is_directory(paths[i]))
			rc = add_directory(l, paths[i]);
		else if (kind_of(paths[i]) != OURS)
			rc = add(l, paths[i], true);
		else if ((other = tfh_import_other(paths[i])))
			rc = tfh_err_set(err, -ENOMSG, "%s: %s", paths[i], other);
		ours += !rc && l->n == before;
	}
	if (rc == -ENOMSG)
		; /* already reported */
	else if (rc)
		tfh_err_set(err, rc, "%s",
			    rc == -E2BIG ? "more than 4096 traces at once" : "out of memory");
	else if (!l->n)
		rc = tfh_run_open(paths, n, out, err);
	else if (ours)
		rc = tfh_err_set(err, -EINVAL,
				 "recordings of tfhook and traces of other tools cannot be read "
				 "together");
	else
		rc = read_files(l, strcmp(paths[0], "-") ? paths[0] : "standard input", out, err);
	forget(l);
	return rc;
}
