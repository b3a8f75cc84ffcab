/*
 * Where the journal may lie. Its rings are written by the job's threads, so a store must never wait
 * for a network or raise SIGBUS; and it must outlive the process, where possible also the
 * container.
 *
 * In a container: beside the output (its /dev/shm dies with it). Elsewhere /dev/shm while the
 * journal stays below 1/32 of what is free there (a store to a disk-backed page can wait for the
 * file system's commit during a checkpoint's fsync: 15 to 27 us at p99.99), else beside the output.
 * Never btrfs, zfs, FUSE or a network: then plain memory.
 */
#include "record/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SHM "/dev/shm"
#define SHM_SHARE 32

/* statfs types, from linux/magic.h */
#define MAGIC_EXT4 0xef53
#define MAGIC_XFS 0x58465342
#define MAGIC_OVERLAY 0x794c7630
#define MAGIC_TMPFS 0x01021994

static bool in_container(void)
{
	static const char *const words[] = {"docker", "kubepods", "containerd", "libpod", "lxc"};
	static char text[4096]; /* only the starter comes here, on any stack */

	if (!access("/.dockerenv", F_OK) || !access("/run/.containerenv", F_OK) ||
	    secure_getenv("KUBERNETES_SERVICE_HOST") || secure_getenv("container"))
		return true;
	tfh_read_small("/proc/self/cgroup", text, sizeof(text));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

static bool good_file_system(const char *dir)
{
	struct statfs fs;

	if (statfs(dir, &fs))
		return false;
	switch ((unsigned long)fs.f_type) {
	case MAGIC_EXT4:
	case MAGIC_XFS:
	case MAGIC_OVERLAY:
	case MAGIC_TMPFS:
		return true;
	}
	return false;
}

static bool shm_has_room(uint64_t bytes)
{
	struct statvfs fs;
	struct statfs type;

	return !statfs(SHM, &type) && (unsigned long)type.f_type == MAGIC_TMPFS &&
	       !statvfs(SHM, &fs) && (uint64_t)fs.f_bavail * fs.f_frsize / SHM_SHARE > bytes;
}

static int create(char *path, size_t size, const char *dir, const char *stem)
{
	/* A process may record again after a failed exec, and a process id comes back. */
	for (int i = 0; i < 100; i++) {
		int n = i ? snprintf(path, size, "%s/%s.%d.journal", dir, stem, i)
			  : snprintf(path, size, "%s/%s.journal", dir, stem);
		int fd;

		if (n < 0 || (size_t)n >= size)
			return -ENAMETOOLONG;
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}

static int in_shm(const char *prefix, uint64_t bytes, char *path, size_t size, uint32_t *flags)
{
	char stem[320];
	int fd;

	if (!shm_has_room(bytes))
		return -ENOSPC;
	snprintf(stem, sizeof(stem), "tfhook.%u.%s", (unsigned)getuid(), prefix);
	fd = create(path, size, SHM, stem);
	if (fd >= 0)
		*flags |= TFT_JF_IN_DEV_SHM;
	return fd;
}

static int beside_output(const char *dir, const char *prefix, char *path, size_t size)
{
	return good_file_system(dir) ? create(path, size, dir, prefix) : -ENOTSUP;
}

/* Growing a file beyond the limit raises SIGXFSZ, which kills. */
static bool size_allowed(uint64_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	       limit.rlim_cur > bytes;
}

int tfh_journal_place(const char *dir, const char *prefix, uint64_t bytes, char *path, size_t size,
		      uint32_t *flags)
{
	int fd;

	if (!size_allowed(bytes))
		return -EFBIG;
	fd = in_container() ? -ENOENT : in_shm(prefix, bytes, path, size, flags);

	return fd >= 0 ? fd : beside_output(dir, prefix, path, size);
}
