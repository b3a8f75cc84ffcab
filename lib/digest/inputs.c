/* Identifies the files that a digest is made from. A recording is only appended to, and ends with a
 * footer that has a checksum. So length, beginning and end distinguish two recordings without
 * reading all of them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/crc32c.h"
#include "digest/digest.h"
#include "model/host_files.h"

#define ENDS 65536u
#define MOST 65536u /* files */

static bool is_input(const char *name)
{
	static const char *const kinds[] = {".tft", ".journal", ".json", ".json.gz", ".pb"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (tfh_ends_with(name, kinds[i]))
			return !tfh_ends_with(name, TFH_DIGEST_NAME);
	return false;
}

static int check_part(int fd, uint64_t at, uint64_t end, uint32_t *crc)
{
	char part[4096];

	while (at < end) {
		size_t want = end - at < sizeof(part) ? (size_t)(end - at) : sizeof(part);
		ssize_t got = pread(fd, part, want, (off_t)at);
		if (got < 0)
			return -errno;
		if (!got) /* it was truncated meanwhile */
			break;
		*crc = tfh_crc32c(*crc, part, (size_t)got);
		at += (uint64_t)got;
	}
	return 0;
}

/* Adds a regular file. Skips other files, and a file that no longer exists. */
static int add_input(struct tfh_inputs *in, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct tfh_input x = {.check = 0};
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return 0;
	}
	uint64_t size = (uint64_t)st.st_size, first = size < ENDS ? size : ENDS;
	int rc = check_part(fd, 0, first, &x.check);
	if (!rc)
		rc = check_part(fd, size - first > ENDS ? size - ENDS : first, size, &x.check);
	close(fd);
	struct tfh_input *grown = rc ? NULL : realloc(in->v, (in->n + 1) * sizeof(*grown));
	if (!grown)
		return rc ? rc : -ENOMEM;
	in->v = grown;
	x.bytes = size;
	x.name = strdup(tfh_file_of(path));
	if (!x.name)
		return -ENOMEM;
	in->v[in->n++] = x;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct tfh_input *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static bool is_of_another(const char *name, const char *host)
{
	char of[TFH_HOST_NAME];

	return host && tfh_host_of_file(name, of) && strcmp(of, host);
}

static int add_directory(struct tfh_inputs *in, const char *dir, const char *host)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int rc = 0;

	if (!d)
		return -errno;
	while (!rc && (e = readdir(d))) {
		char path[8192];
		if (!is_input(e->d_name) || is_of_another(e->d_name, host))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		rc = in->n < MOST ? add_input(in, path) : -E2BIG;
	}
	closedir(d);
	if (in->n)
		qsort(in->v, in->n, sizeof(*in->v), by_name);
	return rc;
}

int tfh_inputs_find(const char *path, const char *host, struct tfh_inputs *out)
{
	struct stat st;

	memset(out, 0, sizeof(*out));
	int rc = stat(path, &st) ? -errno : 0;
	if (!rc)
		rc = S_ISDIR(st.st_mode) ? add_directory(out, path, host) : add_input(out, path);
	if (rc)
		tfh_inputs_free(out);
	return rc;
}

void tfh_inputs_free(struct tfh_inputs *in)
{
	for (uint32_t i = 0; i < in->n; i++)
		free(in->v[i].name);
	free(in->v);
	memset(in, 0, sizeof(*in));
}
