#include "base/access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

static bool is_member(gid_t group)
{
	int n = getgroups(0, NULL);
	gid_t *all = n > 0 ? malloc((size_t)n * sizeof(*all)) : NULL;
	bool member = geteuid() == 0 || getegid() == group;

	n = all ? getgroups(n, all) : 0;
	for (int i = 0; i < n && !member; i++)
		member = all[i] == group;
	free(all);
	return member;
}

/* The third field of the line that begins with `name`. Lines may be longer than any buffer. */
static bool look_up(const char *name, gid_t *group)
{
	char line[512], *end;
	size_t len = strlen(name);
	FILE *f = fopen("/etc/group", "re");
	bool begin = true, found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		const char *id = begin && !strncmp(line, name, len) && line[len] == ':'
					 ? strchr(line + len + 1, ':')
					 : NULL;

		begin = strchr(line, '\n') != NULL;
		if (!id)
			continue;
		*group = (gid_t)strtoul(id + 1, &end, 10);
		found = end != id + 1 && *end == ':';
	}
	if (f)
		fclose(f);
	return found;
}

int tfh_access_find(struct tfh_access *a, const char *group)
{
	gid_t id;

	*a = (struct tfh_access){.group = (gid_t)-1};
	if (!*group)
		return 0;
	id = (gid_t)strtoul(group, NULL, 10);
	if (group[strspn(group, "0123456789")] && !look_up(group, &id))
		return -ENOENT;
	if (!is_member(id))
		return -EPERM;
	*a = (struct tfh_access){.shared = true, .group = id};
	return 0;
}

struct tfh_access tfh_access_like(const struct stat *st)
{
	return (struct tfh_access){.shared = st->st_mode & S_IRGRP, .group = st->st_gid};
}

/* If the group cannot be set (in a user namespace), its permission bits would apply to another
 * group. */
static int hand_over(int fd, const struct tfh_access *a, mode_t alone, mode_t shared)
{
	struct stat st;
	mode_t mode = alone;

	if (a->shared && !fchown(fd, (uid_t)-1, a->group))
		mode = shared;
	if (tfh_fstat(fd, &st))
		return -errno;
	/* File systems without permissions refuse with EPERM. */
	if ((st.st_mode & 07777) != mode && fchmod(fd, mode) && errno != EPERM)
		return -errno;
	return 0;
}

/* Path for the calling thread, which may have its own descriptor table. */
static const char *path_of(int fd, char path[40])
{
	snprintf(path, 40, "/proc/thread-self/fd/%d", fd);
	return path;
}

/* The umask may remove even the owner's rights; then this descriptor is the only access left. */
static void allow_owner(const char *path)
{
	int fd = tfh_open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char name[40];
	struct stat st;

	if (fd >= 0 && !tfh_fstat(fd, &st) && st.st_uid == geteuid())
		chmod(path_of(fd, name), 0700);
	if (fd >= 0)
		tfh_close(fd);
}

int tfh_make_dir(const char *path, const struct tfh_access *a)
{
	int fd, err;

	if (mkdir(path, 0700))
		return -errno;
	fd = tfh_open_own_dir(path);
	if (fd == -EACCES) {
		allow_owner(path);
		fd = tfh_open_own_dir(path);
	}
	err = fd < 0 ? fd : hand_over(fd, a, 0700, 02750);
	if (fd >= 0)
		tfh_close(fd);
	if (err)
		rmdir(path);
	return err;
}

/* A job that has closed its standard descriptors may still write to their numbers, and must not
 * write into our files. So free numbers are held meanwhile by descriptors to which nothing can be
 * written. */
int tfh_open_above(int at, const char *name, int flags, mode_t mode)
{
	int held[STDERR_FILENO + 1], n = 0, fd, err;

	for (; n <= STDERR_FILENO; n++) {
		held[n] = tfh_open("/", O_PATH | O_CLOEXEC);
		if (held[n] > STDERR_FILENO)
			tfh_close(held[n]);
		if (held[n] < 0 || held[n] > STDERR_FILENO)
			break;
	}
	fd = tfh_openat(at, name, flags, mode);
	err = errno;
	while (n--)
		tfh_close(held[n]);
	errno = err;
	return fd;
}

int tfh_make_file(int at, const char *name, const struct tfh_access *a)
{
	int fd = tfh_open_above(at, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int err;

	if (fd < 0)
		return -errno;
	err = hand_over(fd, a, 0600, 0640);
	if (!err)
		return fd;
	tfh_close(fd);
	unlinkat(at, name, 0);
	return err;
}

int tfh_make_nameless(int at, const struct tfh_access *a)
{
	int fd = tfh_open_above(at, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600), err;
	char path[40];

	if (fd < 0)
		return -errno;
	err = faccessat(AT_FDCWD, path_of(fd, path), F_OK, 0) ? -errno
							      : hand_over(fd, a, 0600, 0640);
	if (!err)
		return fd;
	tfh_close(fd);
	return err;
}

int tfh_name_file(int fd, int at, const char *name)
{
	char path[40];

	return syscall(SYS_linkat, AT_FDCWD, path_of(fd, path), at, name, AT_SYMLINK_FOLLOW)
		       ? -errno
		       : 0;
}

static bool owner_is(int dir, uid_t owner)
{
	struct stat st;
	char name[64];
	bool same;
	int fd;

	snprintf(name, sizeof(name), ".tfhook-owner.%d", (int)getpid());
	fd = tfh_openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	same = !tfh_fstat(fd, &st) && st.st_uid == owner;
	tfh_close(fd);
	unlinkat(dir, name, 0);
	return same;
}

int tfh_open_own_dir(const char *path)
{
	int fd = tfh_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int err = 0;

	if (fd < 0)
		return errno == ELOOP ? -ENOTDIR : -errno;
	if (tfh_fstat(fd, &st))
		err = -errno;
	else if (st.st_uid != geteuid() && st.st_uid != 0 && !owner_is(fd, st.st_uid))
		err = -EPERM;
	if (!err)
		return fd;
	tfh_close(fd);
	return err;
}
