/* The trace files that operands select. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/files.h"
#include "format/tft_read.h"
#include "model/model.h"

static int add(struct tfh_files *files, const char *path)
{
	char **grown = realloc(files->path, (files->n + 1) * sizeof(char *));

	if (!grown)
		return -ENOMEM;
	files->path = grown;
	files->path[files->n] = strdup(path);
	return files->path[files->n++] ? 0 : -ENOMEM;
}

static int is_trace(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return n > 4 && !strcmp(e->d_name + n - 4, ".tft");
}

static int add_directory(struct tfh_files *files, const char *dir)
{
	struct dirent **list;
	int n = scandir(dir, &list, is_trace, alphasort), err = 0;

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		char path[8192];
		snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
		if (!err)
			err = add(files, path);
		free(list[i]);
	}
	free(list);
	return err;
}

int tfh_files_find(struct tfh_files *files, const struct tfh_command_line *args,
		   struct tfh_err *err)
{
	char here[4096];
	char *own[] = {here, NULL};
	char **operand = args->operand;

	memset(files, 0, sizeof(*files));
	if (!args->operands) {
		if (!tfh_run_newest(here, sizeof(here)))
			return tfh_err_set(
				err, -ENODATA,
				"no run directory (tfhook-*) of yours here; name one, or record "
				"one: tfhook run CMD");
		operand = own;
	}
	snprintf(files->dir, sizeof(files->dir), "%s", operand[0]);
	for (; *operand; operand++) {
		struct stat st;
		if (stat(*operand, &st))
			return tfh_err_set(err, -errno, "%s: %s", *operand, strerror(errno));
		size_t before = files->n;
		int code =
			S_ISDIR(st.st_mode) ? add_directory(files, *operand) : add(files, *operand);
		if (code)
			return tfh_err_set(err, code, "%s: %s", *operand, strerror(-code));
		if (files->n == before)
			return tfh_err_set(
				err, -ENODATA,
				"no trace files (*.tft) in %s: no process of that job copied to a "
				"GPU, computed on one or "
				"took a batch from tf.data, or this is not a run directory",
				*operand);
	}
	return 0;
}

void tfh_say_left_out(const struct tfh_run *run)
{
	const char *const *why;
	uint32_t n = tfh_run_unreadable(run, &why);

	for (uint32_t i = 0; i < n && i < 4; i++)
		tfh_say("skipped: %s", why[i]);
	if (n > 4)
		tfh_say("skipped: %u more files", n - 4);
}

void tfh_files_free(struct tfh_files *files)
{
	for (size_t i = 0; i < files->n; i++)
		free(files->path[i]);
	free(files->path);
	memset(files, 0, sizeof(*files));
}

bool tfh_file_empty(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !st.st_size;
}

/* ---- files of one process ---- */

bool tfh_is_salvaged(struct tft_reader *r, uint64_t *torn)
{
	static const char begin[] = "salvaged.journal=", lost[] = "\nsalvaged.torn=";

	*torn = 0;
	for (uint32_t i = 0; i < tft_chunk_count(r); i++) {
		const void *data;
		size_t len;
		if (tft_chunk(r, i)->type != TFT_NOTE || tft_chunk_payload(r, i, &data, &len, NULL))
			continue;
		if (len < sizeof(begin) || memcmp(data, begin, sizeof(begin) - 1))
			continue;
		const char *p = memmem(data, len, lost, sizeof(lost) - 1);
		const char *end = (const char *)data + len;
		for (p = p ? p + sizeof(lost) - 1 : end; p < end && *p >= '0' && *p <= '9'; p++)
			*torn = *torn * 10 + (uint64_t)(*p - '0');
		return true;
	}
	return false;
}

/* "dir/p.host.4711.0.tft" is file 0 of the process identified by the preceding part; -1 for another
 * form of name. */
static long number_of(const char *path, size_t *prefix)
{
	size_t len = strlen(path);

	if (len < 6 || strcmp(path + len - 4, ".tft"))
		return -1;
	for (len -= 4; len && path[len - 1] >= '0' && path[len - 1] <= '9';)
		len--;
	*prefix = len;
	return len && path[len - 1] == '.' ? strtol(path + len, NULL, 10) : -1;
}

enum tfh_rest tfh_files_rest(const struct tfh_files *files, const char *path)
{
	enum tfh_rest rest = TFH_REST_NONE;
	size_t prefix = 0, other = 0;
	long number = number_of(path, &prefix);

	for (size_t i = 0; i < files->n && number >= 0; i++) {
		struct tft_reader *r;
		uint64_t torn;
		long n = number_of(files->path[i], &other);
		if (n < number || other != prefix || strncmp(files->path[i], path, prefix) ||
		    tft_open(files->path[i], &r, NULL))
			continue;
		enum tfh_rest found = n > number ? TFH_REST_NEXT : TFH_REST_NONE;
		if (n <= number + 1 && tfh_is_salvaged(r, &torn))
			found = torn ? TFH_REST_TORN : TFH_REST_SALVAGED;
		rest = found > rest ? found : rest;
		tft_close(r);
	}
	return rest;
}

DIR *tfh_list_names(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d && fd >= 0) {
		int error = errno;
		close(fd);
		errno = error;
	}
	return d;
}
