/*
 * Where the journal may lie. Its rings are written by the job's threads, so a store must never wait
 * for a network or raise SIGBUS; and it must outlive the process, where possible also the
 * container.
 *
 * In a container: beside the output (its /dev/shm may die with it), else in /dev/shm. Elsewhere
 * /dev/shm while the journal stays below 1/32 of what is free there (a store to a disk-backed page
 * can wait for the file system's commit during a checkpoint's fsync: 15 to 27 us at p99.99), else
 * beside the output. Never btrfs, zfs, FUSE or a network: then plain memory.
 */
#include "record/run/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "format/journal_layout.h"

#define SHM "/dev/shm"
#define SHM_SHARE 32

/* statfs types, from linux/magic.h */
#define MAGIC_EXT4 0xef53
#define MAGIC_XFS 0x58465342
#define MAGIC_OVERLAY 0x794c7630
#define MAGIC_TMPFS 0x01021994

static bool has_word(const char *text, size_t len)
{
	static const char *const words[] = {
		"docker", "kubepods", "containerd", "libpod", "containers/storage",
		"lxc",	  "enroot",   "pyxis_"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (memmem(text, len, words[i], strlen(words[i])))
			return true;
	return false;
}

/* What the root directory was mounted from names its maker, also where the control group tells
 * nothing (version 2 with a namespace). */
bool tfh_container_root(const char *mountinfo)
{
	for (const char *line = mountinfo; *line;) {
		size_t len = strcspn(line, "\n");
		const char *point = line;

		for (int field = 0; point && field < 4; field++) {
			point = memchr(point, ' ', len - (size_t)(point - line));
			point = point ? point + 1 : NULL;
		}
		if (point && !strncmp(point, "/ ", 2) && has_word(line, len))
			return true;
		line += len + (line[len] == '\n');
	}
	return false;
}

static bool ask_container(void)
{
	static const char *const files[] = {"/.dockerenv", "/run/.containerenv", "/.singularity.d",
					    "/run/systemd/container"};
	static const char *const names[] = {"KUBERNETES_SERVICE_HOST", "container",
					    "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"};
	static char text[16384]; /* only the starter comes here, on any stack */

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (!access(files[i], F_OK) || secure_getenv(names[i]))
			return true;
	tfh_read_small("/proc/self/cgroup", text, sizeof(text));
	if (has_word(text, strlen(text)))
		return true;
	tfh_read_small("/proc/self/mountinfo", text, sizeof(text));
	return tfh_container_root(text);
}

/* The first to ask is a thread of the job, which may read its environment. */
bool tfh_in_container(void)
{
	static enum { UNKNOWN, NO, YES } inside;

	if (inside == UNKNOWN)
		inside = ask_container() ? YES : NO;
	return inside == YES;
}

/* The first of the places that serves; what is known of them is `site`. */
enum tfh_place tfh_place_choose(const struct tfh_site *site, uint64_t bytes)
{
	bool shm = site->shm_type == MAGIC_TMPFS && site->shm_free / SHM_SHARE > bytes;

	/* Growing a file beyond the limit raises SIGXFSZ, which kills. */
	if (bytes >= site->file_limit)
		return TFH_PLACE_MEMORY;
	if (shm && !site->container)
		return TFH_PLACE_SHM;
	switch (site->dir_type) {
	case MAGIC_EXT4:
	case MAGIC_XFS:
	case MAGIC_OVERLAY:
	case MAGIC_TMPFS:
		return TFH_PLACE_BESIDE;
	}
	/* What dies with the container still outlives the process. */
	return shm ? TFH_PLACE_SHM : TFH_PLACE_MEMORY;
}

static void look_around(struct tfh_site *site, const char *dir)
{
	struct statfs fs;
	struct rlimit limit;

	*site = (struct tfh_site){.container = tfh_in_container(), .file_limit = UINT64_MAX};
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY)
		site->file_limit = limit.rlim_cur;
	if (!statfs(SHM, &fs)) {
		site->shm_type = (unsigned long)fs.f_type;
		site->shm_free = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
	}
	if (!statfs(dir, &fs))
		site->dir_type = (unsigned long)fs.f_type;
}

/* Below `at`, which is `dir`. */
static int create(char *path, size_t size, int at, const char *dir, const char *stem,
		  const struct tfh_access *access)
{
	/* A process may record again after a failed exec, and a process id comes back. */
	for (int i = 0; i < 100; i++) {
		int n = i ? snprintf(path, size, "%s/%s.%d.journal", dir, stem, i)
			  : snprintf(path, size, "%s/%s.journal", dir, stem);
		int fd;

		if (n < 0 || (size_t)n >= size)
			return -ENAMETOOLONG;
		fd = tfh_make_file(at, path + strlen(dir) + 1, access);
		if (fd != -EEXIST)
			return fd;
	}
	return -EEXIST;
}

static int in_shm(const char *prefix, char *path, size_t size)
{
	const struct tfh_access owner_alone = {0};
	char stem[320];
	int at = tfh_open(SHM, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	if (at < 0)
		return -errno;
	snprintf(stem, sizeof(stem), "tfhook.%u.%s", (unsigned)getuid(), prefix);
	fd = create(path, size, at, SHM, stem, &owner_alone);
	tfh_close(at);
	return fd;
}

static int in_rundir(const struct tfh_rundir *dir, char *path, size_t size)
{
	int at = tfh_rundir_fd(dir), fd;

	if (at < 0)
		return at;
	fd = create(path, size, at, dir->path, dir->prefix, &dir->access);
	tfh_close(at);
	return fd;
}

int tfh_journal_place(const struct tfh_rundir *dir, uint64_t bytes, char *path, size_t size,
		      uint32_t *flags)
{
	struct tfh_site site;
	enum tfh_place place;
	int fd;

	look_around(&site, dir->path);
	place = tfh_place_choose(&site, bytes);
	if (place == TFH_PLACE_SHM) {
		fd = in_shm(dir->prefix, path, size);
		if (fd >= 0) {
			*flags |= TFT_JF_IN_DEV_SHM;
			return fd;
		}
		site.shm_type = 0;
		place = tfh_place_choose(&site, bytes);
	}
	return place == TFH_PLACE_BESIDE ? in_rundir(dir, path, size) : -ENOTSUP;
}
