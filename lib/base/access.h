/*
 * Who may read a recording, and how its files and directories are made: the owner's alone, or a
 * group's, too, whatever the umask is. All below descriptors, so that what was checked is what is
 * used afterwards, also where others may write to the directory above.
 */
#ifndef TFH_BASE_ACCESS_H
#define TFH_BASE_ACCESS_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

struct tfh_access {
	bool shared; /* with `group`: directories 2750 and files 0640, else 0700 and 0600 */
	gid_t group;
};

/*
 * `group` is a number, or a name of /etc/group: asking other sources may wait for a network. "" is
 * the owner alone. -ENOENT: there is no such group, -EPERM: the process is not in it; then the
 * owner's alone, too.
 */
int tfh_access_find(struct tfh_access *a, const char *group);

/* As those of a file or directory that is there already, and no wider. */
struct tfh_access tfh_access_like(const struct stat *st);

/* A new directory or file, never one that is there (-EEXIST). Returns 0 or the file's descriptor
 * (close-on-exec, to be written), or -errno. */
int tfh_make_dir(const char *path, const struct tfh_access *a);
int tfh_make_file(int at, const char *name, const struct tfh_access *a);

/*
 * Opens a directory that nobody else can have put there: no link, and owned by this user, by root,
 * or by whom files belong to that this user makes in it (network file systems change owners).
 * Descriptor, or -errno: -ENOTDIR also for a link, -EPERM for a directory of another user's.
 */
int tfh_open_own_dir(const char *path);

#endif
