/*
 * Whether a directory is on a local file system. A call on a network file system blocks for as long
 * as its server is unreachable, so no directory is touched before the kernel's list of mounts has
 * shown its type.
 */
#include "record/run/rundir.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"

#define MOUNTS_BYTES (256u << 10) /* a longer list is not read */
#define LINKS_MOST 16

static const char *const local_types[] = {
	"ext2", "ext3",	    "ext4",  "xfs",   "btrfs",	  "zfs",   "f2fs",   "jfs",    "bcachefs",
	"vfat", "squashfs", "erofs", "tmpfs", "devtmpfs", "ramfs", "rootfs", "overlay"};

/* How many bytes of `path` a mount point covers; 0: the path is not below it. The mount point ends
 * at a blank; blanks and similar characters in it are octal escapes. */
static size_t covers(const char *point, const char *path)
{
	size_t n = 0;

	while (*point != ' ') {
		char c = *point++;
		if (c == '\\') {
			c = (char)((point[0] - '0') << 6 | (point[1] - '0') << 3 |
				   (point[2] - '0'));
			point += 3;
		}
		if (path[n++] != c)
			return 0;
	}
	return n == 1 || !path[n] || path[n] == '/' ? n : 0; /* 1: the root */
}

/* The type of the file system that the path is on, ending at a blank; "" if unknown. Of several
 * mounts at one place, the last one is visible. */
static const char *type_of(const char *mounts, const char *path)
{
	const char *type = "";
	size_t most = 0;

	for (const char *line = mounts; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *point = line, *end = line + strcspn(line, "\n"), *dash;
		size_t n;

		for (int field = 0; field < 4; field++) {
			point += strcspn(point, " \n");
			point += *point == ' ';
		}
		dash = memmem(point, (size_t)(end - point), " - ", 3);
		n = dash ? covers(point, path) : 0;
		if (n >= most && n) {
			most = n;
			type = dash + 3;
		}
	}
	return type;
}

static enum tfh_reach reach_of(const char *mounts, const char *path)
{
	const char *type = type_of(mounts, path);

	for (size_t i = 0; i < sizeof(local_types) / sizeof(local_types[0]); i++) {
		size_t n = strlen(local_types[i]);
		if (!strncmp(type, local_types[i], n) && type[n] == ' ')
			return TFH_REACH_LOCAL;
	}
	return *type ? TFH_REACH_REMOTE : TFH_REACH_UNKNOWN;
}

/* Replaces the link path[0..end) by its target. */
static bool follow(char path[PATH_MAX], size_t end)
{
	static char target[PATH_MAX], rest[PATH_MAX]; /* on any stack */
	size_t begin = end;
	ssize_t n;

	memcpy(rest, path + end, strlen(path + end) + 1);
	path[end] = '\0';
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	while (*target != '/' && path[begin - 1] != '/')
		begin--;
	if (*target == '/')
		begin = 0;
	if (begin + (size_t)n + strlen(rest) >= PATH_MAX)
		return false;
	memcpy(path + begin, target, (size_t)n);
	memcpy(path + begin + n, rest, strlen(rest) + 1);
	return true;
}

/* Resolves one name at a time from the root on, so that each query goes to a file system of known
 * type. */
static enum tfh_reach walk(const char *mounts, char path[PATH_MAX])
{
	enum tfh_reach reach = reach_of(mounts, "/");
	size_t end = 0;
	struct stat st;

	for (int links = 0; links <= LINKS_MOST && !reach;) {
		char next;
		int gone;

		if (strstr(path, "/.."))
			return TFH_REACH_UNKNOWN;
		end += 1 + strcspn(path + end + 1, "/");
		next = path[end];
		path[end] = '\0';
		reach = reach_of(mounts, path);
		if (reach)
			return reach;
		gone = lstat(path, &st);
		path[end] = next;
		if (gone)
			return TFH_REACH_LOCAL; /* the file will be created here */
		if (S_ISLNK(st.st_mode)) {
			if (!follow(path, end))
				return TFH_REACH_UNKNOWN;
			end = 0;
			links++;
		} else if (!next) {
			return TFH_REACH_LOCAL;
		}
	}
	return reach ? reach : TFH_REACH_UNKNOWN;
}

enum tfh_reach tfh_path_reach(char path[PATH_MAX])
{
	char *mounts = tfh_map(MOUNTS_BYTES);
	enum tfh_reach reach = TFH_REACH_UNKNOWN;

	if (!mounts)
		return reach;
	tfh_read_small("/proc/self/mountinfo", mounts, MOUNTS_BYTES);
	if (path[0] == '/' && strlen(mounts) < MOUNTS_BYTES - 1)
		reach = walk(mounts, path);
	munmap(mounts, MOUNTS_BYTES);
	return reach;
}
