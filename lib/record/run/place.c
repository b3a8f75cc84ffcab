/*
 * Where the journal may be. The job's threads write its rings, so a store must never wait for a
 * network or raise SIGBUS. The journal must outlive the process, and if possible the container.
 *
 * In a container, the journal is beside the output (the container's /dev/shm may die with it), else
 * in /dev/shm. Elsewhere, it is in /dev/shm as long as it takes less than 1/32 of the free space
 * there, else beside the output. (A store to a disk-backed page can wait for the file system's
 * commit during a checkpoint's fsync: 15 to 27 us at p99.99.) It is never on btrfs, zfs, FUSE or a
 * network file system; plain memory is used instead.
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

#include "base/environ.h"
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

/* The source of the root mount names the container's runtime, even if the control group does not
 * (version 2 with a namespace). */
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
	static char text[16384]; /* only the starter gets here, on any stack */

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (!access(files[i], F_OK) || tfh_env(names[i]))
			return true;
	tfh_read_small("/proc/self/cgroup", text, sizeof(text));
	if (has_word(text, strlen(text)))
		return true;
	tfh_read_small("/proc/self/mountinfo", text, sizeof(text));
	return tfh_container_root(text);
}

bool tfh_in_container(void)
{
	static enum { UNKNOWN, NO, YES } inside;

	if (inside == UNKNOWN)
		inside = ask_container() ? YES : NO;
	return inside == YES;
}

/* Returns the first suitable place. `site` holds the known facts. */
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
	/* A file that dies with the container still outlives the process. */
	return shm ? TFH_PLACE_SHM : TFH_PLACE_MEMORY;
}

/* `dir`: NULL if its file system may not answer,
 * and then is none of those on which a journal may be. */
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
	if (dir && !statfs(dir, &fs))
		site->dir_type = (unsigned long)fs.f_type;
}

/* A directory for journals, and their names in it. */
struct spot {
	const char *dir;
	int at;
	char stem[320];
	struct tfh_access access;
};

static int spot_open(struct spot *s, const struct tfh_rundir *dir, bool shm)
{
	if (shm) {
		*s = (struct spot){.dir = SHM,
				   .at = tfh_open(SHM, O_PATH | O_DIRECTORY | O_CLOEXEC)};
		snprintf(s->stem, sizeof(s->stem), "tfhook.%u.%s", (unsigned)getuid(), dir->prefix);
		return s->at < 0 ? -errno : 0;
	}
	*s = (struct spot){.dir = dir->path, .at = tfh_rundir_fd(dir), .access = dir->access};
	snprintf(s->stem, sizeof(s->stem), "%s", dir->prefix);
	return s->at < 0 ? s->at : 0;
}

/* Creates a file, or gives `fd` a name if it is a descriptor. Returns the descriptor or -errno. */
static int name_at(const struct spot *s, int fd, char *path, size_t size)
{
	/* A process may record again after a failed exec, and process ids are reused. */
	for (int i = 0; i < 100; i++) {
		int n = i ? snprintf(path, size, "%s/%s.%d.journal", s->dir, s->stem, i)
			  : snprintf(path, size, "%s/%s.journal", s->dir, s->stem);
		const char *name = path + strlen(s->dir) + 1;
		int rc;

		if (n < 0 || (size_t)n >= size)
			return -ENAMETOOLONG;
		rc = fd < 0 ? tfh_make_file(s->at, name, &s->access)
			    : tfh_name_file(fd, s->at, name);
		if (rc != -EEXIST)
			return fd < 0 || rc ? rc : fd;
	}
	return -EEXIST;
}

static int make_at(const struct tfh_rundir *dir, bool shm, bool nameless, char *path, size_t size)
{
	struct spot s;
	int fd = spot_open(&s, dir, shm);

	if (fd < 0)
		return fd;
	path[0] = '\0';
	fd = nameless ? tfh_make_nameless(s.at, &s.access) : -ENOTSUP;
	if (fd < 0)
		fd = name_at(&s, -1, path, size);
	tfh_close(s.at);
	return fd;
}

int tfh_journal_place(const struct tfh_rundir *dir, uint64_t bytes, struct tfh_journal_way way,
		      char *path, size_t size, uint32_t *flags)
{
	struct tfh_site site;
	enum tfh_place place;
	int fd;

	look_around(&site, dir->opened ? dir->path : NULL);
	if (way.beside)
		site.shm_type = 0;
	place = tfh_place_choose(&site, bytes);
	if (place == TFH_PLACE_SHM) {
		fd = make_at(dir, true, way.nameless, path, size);
		if (fd >= 0) {
			*flags |= TFT_JF_IN_DEV_SHM;
			return fd;
		}
		site.shm_type = 0;
		place = tfh_place_choose(&site, bytes);
	}
	return place == TFH_PLACE_BESIDE ? make_at(dir, false, way.nameless, path, size) : -ENOTSUP;
}

int tfh_journal_name(const struct tfh_rundir *dir, int fd, uint32_t flags, char *path, size_t size)
{
	struct spot s;
	int rc = spot_open(&s, dir, flags & TFT_JF_IN_DEV_SHM);

	if (!rc) {
		rc = name_at(&s, fd, path, size);
		tfh_close(s.at);
	}
	if (rc < 0)
		path[0] = '\0';
	return rc < 0 ? rc : 0;
}
