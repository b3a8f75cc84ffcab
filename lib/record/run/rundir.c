/*
 * The run directory, where all processes of one launch put their files without communicating. It is
 * created by `tfhook run` (TFHOOK_RUN), or here under a name derived from the launch. Nothing is
 * ever overwritten.
 *
 * Long buffers are static: only one thread gets here, and without a flusher its stack may be 16
 * KiB.
 */
#include "record/run/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/runjson.h"
#include "record/process/log.h"
#include "record/run/runjson_write.h"

#define TRIES 100

struct tfh_rundir tfh_dir;

/* Set by tfh_rundir_plan(). */
static char launch[256];
static char base[PATH_MAX - 320]; /* where a directory of this process' own goes */
static struct tfh_runjson document;

/*
 * Creates the parent directories of the run directory. Symbolic links in its path must belong to
 * this user or root. In a world-writable directory, another user's link would redirect the
 * recording.
 */
static int make_above(const char *path)
{
	static char part[PATH_MAX];
	size_t len = strlen(path);
	struct stat st;

	if (len >= sizeof(part))
		return -ENAMETOOLONG;
	memcpy(part, path, len + 1);
	for (size_t i = 1; i < len; i++) {
		if (part[i] != '/')
			continue;
		part[i] = '\0';
		if (mkdir(part, 0777) && errno != EEXIST)
			return -errno;
		if (!lstat(part, &st) && S_ISLNK(st.st_mode) && st.st_uid != geteuid() &&
		    st.st_uid != 0)
			return -EPERM;
		part[i] = '/';
	}
	return 0;
}

static void base_dir(char *path, size_t size, const struct tfh_options *options, bool of_sagemaker)
{
	const char *dir = tfh_opt_str(options, TFH_OPT_DIR);

	if (!dir[0] && of_sagemaker)
		dir = "/opt/ml/output/data/tfhook";
	if (dir[0] == '/') {
		snprintf(path, size, "%s", dir);
		return;
	}
	if (!getcwd(path, size))
		snprintf(path, size, ".");
	if (dir[0]) {
		size_t n = strlen(path);

		snprintf(path + n, size - n, "/%s", dir);
	}
}

static bool given_dir(char path[PATH_MAX], const char *given)
{
	size_t n = 0;

	if (given[0] != '/') {
		if (!getcwd(path, PATH_MAX))
			return false;
		n = strlen(path);
		path[n++] = '/';
	}
	return n + strlen(given) < PATH_MAX && strcpy(path + n, given);
}

enum tfh_reach tfh_rundir_reach(const struct tfh_rundir *d, const struct tfh_options *options)
{
	static char path[PATH_MAX]; /* the starter's stack may be 16 KiB */
	const char *given = tfh_opt_str(options, TFH_OPT_RUN);
	enum tfh_reach reach = TFH_REACH_LOCAL, below;

	if (given[0])
		reach = given_dir(path, given) ? tfh_path_reach(path) : TFH_REACH_UNKNOWN;
	if (reach)
		return reach;
	base_dir(path, sizeof(path), options, d->of_sagemaker);
	below = tfh_path_reach(path);
	return given[0] && below ? TFH_REACH_UNKNOWN : below;
}

/* Properties that all processes of the launch, and no others, share; and a short name derived from
 * them. */
static void find_launch(struct tfh_rundir *d)
{
	const struct tfh_job_rank *r = &tfh_recorder.rank;

	if (r->job[0]) {
		snprintf(d->job, sizeof(d->job), "%s%s%s", r->job, r->restart[0] ? "." : "",
			 r->restart);
		snprintf(launch, sizeof(launch), "%s", d->job);
		return;
	}
	tfh_launch_id(launch, sizeof(launch));
	snprintf(d->job, sizeof(d->job), "%.*s", (int)strcspn(launch, "@"), launch);
}

/* 1: ours, 0: another launch's, -ENOENT: no run.json yet. */
static int whose(int dir, const char *of)
{
	static char text[16384];
	char key[320];
	int err = tfh_read_small_at(dir, "run.json", text, sizeof(text));

	if (err)
		return err == -ENOENT ? err : 0;
	snprintf(key, sizeof(key), "\"launch\": \"%s\"", of);
	return strstr(text, key) != NULL;
}

/* Claims a directory for this launch by writing run.json if it has none. Returns 1 if it is ours, 0
 * if not, or -errno. */
static int claim(const struct tfh_rundir *d, int dir)
{
	int ours = whose(dir, launch), err = 0;

	if (ours != -ENOENT)
		return ours;
	if (!document.text)
		err = tfh_runjson_make(&document, launch);
	if (!err)
		err = tfh_runjson_write(dir, &document, &d->access);
	return err && err != -EEXIST ? err : whose(dir, launch);
}

int tfh_rundir_fd(const struct tfh_rundir *d)
{
	return tfh_open_own_dir(d->path);
}

/* Creates d->path or opens the existing one. Returns its descriptor or -errno. */
static int enter(struct tfh_rundir *d)
{
	int err = make_above(d->path), fd;

	if (err == -EPERM)
		d->why = "a symbolic link in its path belongs to another user";
	if (!err)
		err = tfh_make_dir(d->path, &d->access);
	if (err && err != -EEXIST)
		return err;
	fd = tfh_rundir_fd(d);
	if (fd == -EPERM)
		d->why = "it is another user's";
	if (fd >= 0 && faccessat(fd, ".", W_OK | X_OK, 0)) {
		err = -errno;
		tfh_close(fd);
		return err;
	}
	return fd;
}

/* Returns 0, or -EEXIST if it is another launch's or another user put something there. */
static int join(struct tfh_rundir *d)
{
	int fd = enter(d), ours;
	struct stat st;

	if ((fd == -EPERM || fd == -EACCES || fd == -ENOTDIR) && !lstat(d->path, &st))
		return -EEXIST;
	if (fd < 0)
		return fd;
	ours = claim(d, fd);
	tfh_close(fd);
	return ours == 0 ? -EEXIST : ours < 0 ? ours : 0;
}

static void name(struct tfh_rundir *d, int number)
{
	if (number == 1)
		snprintf(d->path, sizeof(d->path), "%s/tfhook-%s", base, d->job);
	else
		snprintf(d->path, sizeof(d->path), "%s/tfhook-%s.%d", base, d->job, number);
}

static int open_named(struct tfh_rundir *d)
{
	int err = -EEXIST;

	for (int i = 1; i <= TRIES && err == -EEXIST; i++) {
		name(d, i);
		err = join(d);
	}
	return err;
}

/* Whether the launch that the directory was made for is over. A late process of the launch's
 * process group still belongs to it. */
static bool is_over(int dir)
{
	char group[128];
	struct stat st;

	tfh_launch_id(group, sizeof(group));
	return !fstatat(dir, "end.json", &st, AT_SYMLINK_NOFOLLOW) && whose(dir, group) != 1;
}

/* Opens the directory of `tfhook run`, which is joined without further checks because it was given
 * to us. Returns 1 if that launch ended long ago; a process that still names it (a shell, a daemon)
 * is not part of it. */
static int open_given(struct tfh_rundir *d)
{
	int err, fd = enter(d);
	bool over;

	if (fd < 0)
		return fd;
	over = is_over(fd);
	err = over ? 0 : claim(d, fd);
	tfh_close(fd);
	return err < 0 ? err : over;
}

static void make_prefix(struct tfh_rundir *d)
{
	if (tfh_recorder.rank.rank >= 0)
		snprintf(d->prefix, sizeof(d->prefix), "r%d.%s.%d", tfh_recorder.rank.rank,
			 tfh_recorder.host, (int)tfh_recorder.pid);
	else
		snprintf(d->prefix, sizeof(d->prefix), "p.%s.%d", tfh_recorder.host,
			 (int)tfh_recorder.pid);
}

static void find_access(struct tfh_rundir *d, const struct tfh_options *options)
{
	static char what[256];
	const char *group = tfh_opt_str(options, TFH_OPT_GROUP);
	int err = tfh_access_find(&d->access, group);

	if (!err)
		return;
	snprintf(what, sizeof(what), "TFHOOK_GROUP=%.64s: %s", group,
		 err == -ENOENT ? "there is no such group in /etc/group"
				: "this user is not in that group");
	tfh_log_failure(what, err == -ENOENT
				      ? "give its number; only the owner can read the recording"
				      : "name another; only the owner can read the recording");
}

int tfh_rundir_plan(struct tfh_rundir *d, const struct tfh_recorder *p, bool ahead)
{
	const char *given = tfh_opt_str(&p->options, TFH_OPT_RUN);

	d->opened = false;
	/* A parent's may be in use there, so it is not freed. */
	document = (struct tfh_runjson){0};
	find_access(d, &p->options);
	find_launch(d);
	make_prefix(d);
	base_dir(base, sizeof(base), &p->options, d->of_sagemaker);
	name(d, 1);
	if (given[0] && !given_dir(d->path, given))
		return errno ? -errno : -ENAMETOOLONG;
	return ahead ? tfh_runjson_make(&document, launch) : 0;
}

/* Whether the file system does not work now, but may again. */
static bool is_gone(int err)
{
	return err == -ENOTCONN || err == -ESTALE || err == -ETIMEDOUT || err == -EHOSTDOWN ||
	       err == -EHOSTUNREACH;
}

int tfh_rundir_open(struct tfh_rundir *d, const struct tfh_recorder *p)
{
	const char *given = tfh_opt_str(&p->options, TFH_OPT_RUN);
	int err = given[0] ? open_given(d) : 1;

	if (given[0] && is_gone(err))
		err = 0; /* it existed when it was given, so writing is tried again */
	if (err == 1) {
		if (given[0])
			tfh_log(1,
				"TFHOOK_RUN=%s belongs to a run that has ended: this run gets "
				"a directory of its own",
				given);
		err = open_named(d);
	}
	tfh_runjson_free(&document);
	d->opened = !err;
	return err;
}
