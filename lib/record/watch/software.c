#include "record/watch/software.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/packages.h"
#include "base/text.h"
#include "record/process/forks.h"

#define VERSION_BYTES 64

static const struct {
	const char *name, *file, *package;
} rows[] = {
#define SOFTWARE(name, file, package) {name, file, package},
#include "base/software.def"
#undef SOFTWARE
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static struct loaded_file {
	char path[PATH_MAX], version[VERSION_BYTES];
} * found;			 /* [ROWS + 1] */
static bool found_more;		 /* set by the last check */
static unsigned long long added; /* libraries that the loader had added by then */

static int count(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	*(unsigned long long *)data = info->dlpi_adds;
	return 1;
}

static int sample(struct dl_phdr_info *info, size_t size, void *data)
{
	const char *path = info->dlpi_name ? info->dlpi_name : "";

	(void)size;
	(void)data;
	for (size_t i = 0; i < ROWS; i++)
		if (!found[i].path[0] &&
		    !strncmp(tfh_file_of(path), rows[i].file, strlen(rows[i].file))) {
			snprintf(found[i].path, sizeof(found[i].path), "%s", path);
			found_more = true;
		}
	return 0;
}

/* "libcudnn.so.9.1.0": 9.1.0; "libpython3.11.so.1.0": 3.11. */
static void by_file(struct loaded_file *f, const char *prefix)
{
	char *real = found[ROWS].path; /* the entry after the last one */
	const char *name = tfh_file_of(realpath(f->path, real) ? real : f->path);
	const char *at = strstr(name, ".so.");

	at = !strncmp(prefix, "libpython", 9) ? name + strlen("libpython") : at ? at + 4 : "";
	snprintf(f->version, sizeof(f->version), "%.*s", (int)strspn(at, "0123456789."), at);
	for (size_t n = strlen(f->version); n && f->version[n - 1] == '.'; n--)
		f->version[n - 1] = '\0';
}

/* The version in "nvidia_cudnn_cu12-9.1.0.70.dist-info"; NULL if it belongs to another package. */
static const char *version_of(const char *entry, const char *package)
{
	static const char *const kinds[] = {"_cu", "_cpu", "_gpu", "_rocm", "_intel"};
	size_t n = strlen(package), end = strlen(entry);
	bool kind = false;

	if (strncmp(entry, package, n) || end < 10 || strcmp(entry + end - 10, ".dist-info"))
		return NULL;
	entry += n;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		kind |= !strncmp(entry, kinds[i], strlen(kinds[i]));
	entry += kind ? strcspn(entry, "-") : 0;
	return *entry == '-' && isdigit((unsigned char)entry[1]) ? entry + 1 : NULL;
}

static bool same_folder(const struct loaded_file *f, const char *folder, size_t n)
{
	return !strncmp(f->path, folder, n);
}

/* Reads all packages of a site-packages folder at once. */
static void by_packages(const char *folder, size_t n)
{
	char path[PATH_MAX];
	DIR *dir;
	struct dirent *e;

	snprintf(path, sizeof(path), "%.*s", (int)n, folder);
	dir = opendir(path);
	while (dir && (e = readdir(dir)))
		for (size_t i = 0; i < ROWS; i++) {
			const char *v = *rows[i].package && same_folder(&found[i], folder, n)
						? version_of(e->d_name, rows[i].package)
						: NULL;
			if (v)
				snprintf(found[i].version, sizeof(found[i].version), "%.*s",
					 (int)(strlen(v) - strlen(".dist-info")), v);
		}
	if (dir)
		closedir(dir);
}

static size_t site_of(const char *path)
{
	const char *below = tfh_in_packages(path);

	return below ? (size_t)(below - path) : 0;
}

static void find_versions(void)
{
	for (size_t i = 0; i < ROWS; i++)
		if (found[i].path[0])
			by_file(&found[i], rows[i].file);
	for (size_t i = 0; i < ROWS; i++) {
		size_t n = *rows[i].package ? site_of(found[i].path) : 0, k = 0;
		while (n && k < i &&
		       !(*rows[k].package && same_folder(&found[k], found[i].path, n)))
			k++;
		if (n && k == i) /* the first match in this folder */
			by_packages(found[i].path, n);
	}
}

void tfh_software_read(char *out, size_t size)
{
	unsigned long long now = 0;
	size_t n = 0;

	if (!tfh_map_once(&found, (ROWS + 1) * sizeof(*found)))
		return;
	tfh_unforked_begin();
	dl_iterate_phdr(count, &now);
	tfh_unforked_end();
	if (*out && now == added)
		return;
	for (size_t i = 0; i < ROWS && !*out;
	     i++) /* the first time, and the first time in a forked child */
		found[i].path[0] = '\0';
	added = now;
	found_more = false;
	tfh_unforked_begin();
	dl_iterate_phdr(sample, NULL);
	tfh_unforked_end();
	if (!found_more)
		return;
	*out = '\0';
	find_versions();
	for (size_t i = 0; i < ROWS && n < size; i++) {
		found[i].path[strcspn(found[i].path, "\n")] = '\0';
		if (found[i].path[0])
			n += (size_t)snprintf(
				out + n, size - n, "software=%s\t%s\t%s\n", rows[i].name,
				found[i].version[0] ? found[i].version : "?", found[i].path);
	}
	if (n >= size) /* no partial line */
		out[strrchr(out, '\n') ? strrchr(out, '\n') - out + 1 : 0] = '\0';
}
