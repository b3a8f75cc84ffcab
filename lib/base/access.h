/*
 * Access rights of a recording: readable by its owner alone, or also by one group, whatever the
 * umask is. Everything works relative to descriptors, so that the file checked is the file used,
 * even where other users may write to the parent directory.
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
 * `group` is a number or a name from /etc/group (other sources could wait for a network); "" means
 * the owner alone. Returns -ENOENT if there is no such group and -EPERM if the process is not a
 * member; *a is then the owner alone.
 */
int tfh_access_find(struct tfh_access *a, const char *group);

/* The same rights as an existing file or directory, and no wider. */
struct tfh_access tfh_access_like(const struct stat *st);

/* openat() for writing, at a number above standard error's. Returns -1 and errno on failure. */
int tfh_open_above(int at, const char *name, int flags, mode_t mode);
/* Create a directory or file; one that exists is an error (-EEXIST). Return 0 or the file's
 * descriptor (close-on-exec, writable), or -errno. */
int tfh_make_dir(const char *path, const struct tfh_access *a);
int tfh_make_file(int at, const char *name, const struct tfh_access *a);
/* A file without a name in the directory `at`, for tfh_name_file(); gone with its last descriptor
 * until then. -errno where the file system has no such files, or they could not be named later. */
int tfh_make_nameless(int at, const struct tfh_access *a);
/* Gives it a name below `at`; 0 or -errno, -EEXIST if there is one. */
int tfh_name_file(int fd, int at, const char *name);

/*
 * Opens a directory that no other user can have placed there: not a symbolic link, and owned by
 * this user, by root, or by the owner that files created in it get (network file systems map
 * owners). Returns a descriptor or -errno: -ENOTDIR also for a link, -EPERM for another user's
 * directory.
 */
int tfh_open_own_dir(const char *path);

#endif
