/*
 * The run directory: where all processes of one launch put their files without talking to each
 * other. Made by `tfhook run` (TFHOOK_RUN), or here under a name that follows from the launch.
 * Nothing is ever overwritten.
 *
 * Long buffers are static: only the starter comes here, and its stack may be 16 KiB.
 */
#include "record/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "record/runjson.h"

#define TRIES 100

/* Makes all missing directories of a path. */
static int make_dirs(const char *path)
{
	static char part[PATH_MAX];
	size_t len = strlen(path);

	if (len >= sizeof(part))
		return -ENAMETOOLONG;
	memcpy(part, path, len + 1);
	for (size_t i = 1; i <= len; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		part[i] = '\0';
		if (mkdir(part, 0777) && errno != EEXIST)
			return -errno;
		part[i] = path[i];
	}
	return 0;
}

static void base_dir(char *path, size_t size, const struct tfh_options *options)
{
	const char *dir = tfh_opt_str(options, TFH_OPT_DIR);

	/* SageMaker keeps only this directory of a job. */
	if (!dir[0] && secure_getenv("SM_CURRENT_HOST"))
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

/* What all processes of the launch, and no others, have in common; and a short name from it. */
static void launch_of(struct tfh_rundir *d, char *launch, size_t size)
{
	const struct tfh_rank *r = &d->rank;
	char boot[48];
	pid_t leader = getpgrp();
	uint64_t start = tfh_process_start(leader);

	if (r->job[0]) {
		snprintf(d->job, sizeof(d->job), "%s%s%s", r->job, r->restart[0] ? "." : "",
			 r->restart);
		snprintf(launch, size, "%s", d->job);
		return;
	}
	if (!start) {
		leader = tfh_p.pid;
		start = tfh_p.process_start;
	}
	tfh_read_small("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	boot[strcspn(boot, "\n")] = '\0';
	snprintf(d->job, sizeof(d->job), "%d-%llu", (int)leader, (unsigned long long)start);
	snprintf(launch, size, "%s@%s", d->job, boot);
}

/* 1: ours, 0: of another launch, -ENOENT: no run.json yet. */
static int whose(const char *dir, const char *launch)
{
	static char path[PATH_MAX + 16], text[16384];
	char key[320];
	struct stat st;

	snprintf(path, sizeof(path), "%s/run.json", dir);
	if (stat(path, &st))
		return -ENOENT;
	tfh_read_small(path, text, sizeof(text));
	snprintf(key, sizeof(key), "\"launch\": \"%s\"", launch);
	return strstr(text, key) != NULL;
}

static int join(const char *dir, const char *launch)
{
	int err = make_dirs(dir), ours;

	if (err)
		return err;
	if (access(dir, W_OK | X_OK))
		return -errno;
	ours = whose(dir, launch);
	if (ours == -ENOENT) {
		err = tfh_runjson_write(dir, launch);
		if (err && err != -EEXIST)
			return err;
		ours = whose(dir, launch);
	}
	return ours == 1 ? 0 : -EEXIST;
}

static int open_named(struct tfh_rundir *d, const struct tfh_options *options)
{
	static char base[PATH_MAX - 320];
	char launch[256];
	int err = -EEXIST;

	base_dir(base, sizeof(base), options);
	launch_of(d, launch, sizeof(launch));
	for (int i = 1; i <= TRIES && err == -EEXIST; i++) {
		if (i == 1)
			snprintf(d->path, sizeof(d->path), "%s/tfhook-%s", base, d->job);
		else
			snprintf(d->path, sizeof(d->path), "%s/tfhook-%s.%d", base, d->job, i);
		err = join(d->path, launch);
	}
	return err;
}

/* The directory of `tfhook run`: joined without asking, it was given to us. */
static int open_given(struct tfh_rundir *d, const char *given)
{
	char launch[256];
	int err;

	if (given[0] == '/') {
		snprintf(d->path, sizeof(d->path), "%s", given);
	} else {
		size_t n;

		if (!getcwd(d->path, sizeof(d->path)))
			return -errno;
		n = strlen(d->path);
		snprintf(d->path + n, sizeof(d->path) - n, "/%s", given);
	}
	launch_of(d, launch, sizeof(launch));
	err = make_dirs(d->path);
	if (err)
		return err;
	if (access(d->path, W_OK | X_OK))
		return -errno;
	if (whose(d->path, launch) == -ENOENT) {
		err = tfh_runjson_write(d->path, launch);
		if (err && err != -EEXIST)
			return err;
	}
	return 0;
}

static void make_prefix(struct tfh_rundir *d)
{
	if (d->rank.rank >= 0)
		snprintf(d->prefix, sizeof(d->prefix), "r%d.%s.%d", d->rank.rank, tfh_p.host,
			 (int)tfh_p.pid);
	else
		snprintf(d->prefix, sizeof(d->prefix), "p.%s.%d", tfh_p.host, (int)tfh_p.pid);
}

int tfh_rundir_open(struct tfh_rundir *d, const struct tfh_proc *p)
{
	const char *given = tfh_opt_str(&p->options, TFH_OPT_RUN);
	int err = given[0] ? open_given(d, given) : open_named(d, &p->options);

	make_prefix(d);
	return err;
}
