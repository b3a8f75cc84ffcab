#include "model/host_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

/* Length of name[0..n) without its last part and the dot before it, if that part is a number;
 * otherwise n. */
static size_t without_number(const char *name, size_t n)
{
	size_t at = n;

	while (at && name[at - 1] >= '0' && name[at - 1] <= '9')
		at--;
	return at < n && at && name[at - 1] == '.' ? at - 1 : n;
}

bool tfh_host_of_file(const char *name, char host[TFH_HOST_NAME])
{
	const char *begin = strchr(name, '.');
	const char *suffix = tfh_ends_with(name, ".tft") ? ".tft" : ".journal";

	if (!begin++ || !tfh_ends_with(name, suffix) || (*name != 'p' && *name != 'r') ||
	    (*name == 'p' && name[1] != '.') ||
	    (*name == 'r' && strspn(name + 1, "0123456789") + 2 != (size_t)(begin - name)))
		return false;
	size_t n = strlen(begin), all = strlen(suffix);
	if (n <= all)
		return false;
	n -= all;
	size_t end = without_number(begin, n);
	if (!strcmp(suffix, ".tft") && end < n) {
		n = end;
		end = without_number(begin, n);
	}
	if (end == n || !end || end >= TFH_HOST_NAME)
		return false;
	memcpy(host, begin, end);
	host[end] = '\0';
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Files come sorted by their host. */
static int add(struct tfh_run_hosts *x, const char *host, uint64_t bytes)
{
	if (x->n && !strcmp(x->name[x->n - 1], host)) {
		x->bytes[x->n - 1] += bytes;
		return 0;
	}
	void *name = realloc(x->name, (x->n + 1) * sizeof(*x->name));
	if (name)
		x->name = name;
	uint64_t *grown = realloc(x->bytes, (x->n + 1) * sizeof(*grown));
	if (grown)
		x->bytes = grown;
	if (!name || !grown)
		return -ENOMEM;
	snprintf(x->name[x->n], TFH_HOST_NAME, "%s", host);
	x->bytes[x->n++] = bytes;
	return 0;
}

struct host_file {
	char host[TFH_HOST_NAME];
	uint64_t bytes;
};

int tfh_run_hosts_find(const char *dir, struct tfh_run_hosts *out)
{
	DIR *d = opendir(dir);
	struct host_file *v = NULL;
	struct dirent *e;
	struct stat st;
	size_t n = 0, cap = 0;
	int rc = d ? 0 : -errno;

	*out = (struct tfh_run_hosts){.n = 0};
	while (d && !rc && (e = readdir(d))) {
		struct host_file f = {.bytes = 0};
		if (!tfh_host_of_file(e->d_name, f.host))
			continue;
		if (tfh_ends_with(e->d_name, ".tft") && !fstatat(dirfd(d), e->d_name, &st, 0))
			f.bytes = (uint64_t)st.st_size;
		if (n == cap) {
			cap = cap ? cap * 2 : 64;
			struct host_file *grown = realloc(v, cap * sizeof(*grown));
			if (!grown) {
				rc = -ENOMEM;
				break;
			}
			v = grown;
		}
		v[n++] = f;
	}
	if (d)
		closedir(d);
	if (n)
		qsort(v, n, sizeof(*v), by_name);
	for (size_t i = 0; i < n && !rc; i++)
		rc = add(out, v[i].host, v[i].bytes);
	free(v);
	if (rc)
		tfh_run_hosts_free(out);
	return rc;
}

void tfh_run_hosts_free(struct tfh_run_hosts *x)
{
	free(x->name);
	free(x->bytes);
	*x = (struct tfh_run_hosts){.n = 0};
}
