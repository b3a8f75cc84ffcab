/*
 * `tfhook digest --follow`: keeps digests up to date while runs record, for one run or for all in a
 * folder. It is a process of its own, one per host, at the lowest priority, so no job does any of
 * the work. Each digest is made in a child process: its memory is returned afterwards, and no
 * recording, however odd, can end the follower.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/ctl_request.h"
#include "cli/digests.h"
#include "cli/run.h"
#include "format/journal_view.h"
#include "model/host_files.h"

#define RUNS 65536u
/* Time between two scans of the runs. Scanning very many costs processor time, too, and is then
 * done less often. */
#define LOOK_S 2.0
#define LOOK_MOST_S 60.0
/* Share of a processor. The time until a run's next digest is the last one's cost divided by it, so
 * longer runs get digests less often. */
#define SHARE 0.01
/* A run without end.json has ended if none of its processes records here, and its files have not
 * changed for this long. */
#define QUIET_S 60.0
#define LONGEST_S 3600.0

struct followed_run {
	char *dir;
	uint64_t files;	 /* at the last attempt: shows whether something was recorded since */
	uint64_t listed; /* the directory's own time then, once the run has ended */
	double made_s;	 /* CLOCK_MONOTONIC of the last attempt, 0: none */
	double cost_s;	 /* its processor time */
	int status;	 /* its exit code */
	bool told, ended;
	/* The run began on another host. That host makes its digest; in a run of several hosts,
	 * each host makes the digest of its own processes. */
	bool elsewhere;
};

struct follower {
	double interval_s;
	struct followed_run *run; /* sorted by name */
	uint32_t n;
	bool folder; /* a folder of runs, followed without end */
	bool full;   /* there are more runs than RUNS, which was reported */
	char host[256];
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	stopped = number;
}

static double seconds_of(clockid_t clock)
{
	return (double)tfh_clock_ns(clock) * 1e-9;
}

static double now_s(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

static uint64_t time_of(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;
}

/* ---- the state of a run ---- */

struct run_files {
	uint64_t hash; /* of sizes and times of all files except digests */
	double age_s;  /* of the newest file */
	bool has_end;
	bool has_traces;  /* or other files that may be traces */
	bool has_own;	  /* traces of this host */
	bool has_request; /* of `tfhook ctl`, or an answer */
};

static bool is_about(const char *name)
{
	return !strcmp(name, "run.json") || !strcmp(name, "start.json") ||
	       !strcmp(name, "end.json");
}

static struct run_files look_at(const char *dir, const char *here)
{
	char host[TFH_HOST_NAME];
	struct run_files f = {.age_s = 1e9};
	DIR *d = opendir(dir);
	struct dirent *e;
	struct timespec now;
	struct stat st;

	clock_gettime(CLOCK_REALTIME, &now);
	while (d && (e = readdir(d))) {
		if (tfh_ctl_is_name(e->d_name)) {
			f.has_request = true;
			continue;
		}
		if (tfh_starts_with(e->d_name, TFH_DIGEST_NAME) ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		double age = (double)(now.tv_sec - st.st_mtim.tv_sec);
		f.age_s = age < f.age_s ? age : f.age_s;
		f.has_end |= !strcmp(e->d_name, "end.json");
		f.has_traces |= !is_about(e->d_name);
		f.has_own |= tfh_host_of_file(e->d_name, host) && !strcmp(host, here);
		/* The sum does not depend on the order in which files are listed. */
		f.hash += tfh_hash_u64(st.st_ino ^ tfh_hash_u64((uint64_t)st.st_size) ^
				       tfh_hash_u64(time_of(&st) + 1));
	}
	if (d)
		closedir(d);
	return f;
}

static void note_life(void *arg, const struct tft_found *found)
{
	if (!found->code && tft_view_life(found->view) == TFT_ALIVE)
		*(bool *)arg = true;
}

static bool records(const char *dir)
{
	char real[4096];
	bool alive = false;

	if (realpath(dir, real))
		tft_journals_of(real, note_life, &alive);
	return alive;
}

/* ---- a digest ---- */

/* In the child: returns the exit code. */
static int update(const struct follower *f, const struct followed_run *r)
{
	struct tfh_err err = {0};
	struct stat st;
	int rc = stat(r->dir, &st) ? tfh_err_set(&err, -errno, "%s: %s", r->dir, strerror(errno))
				   : tfh_digest_update(r->dir, NULL, f->host, &st, &err);

	fflush(stdout);
	/* A run that has just begun has no steps yet. */
	if (rc && rc != -ENODATA && !r->told)
		tfh_say_why(&err, rc);
	return rc ? tfh_exit_code(rc) : 0;
}

static void remove_part(const char *dir, pid_t pid)
{
	char path[4600];

	snprintf(path, sizeof(path), "%s/%s.%d.new", dir, TFH_DIGEST_NAME, (int)pid);
	unlink(path);
}

/* Of a run that records on another host alone, no digest is made. */
static void obey_all(const struct follower *f, const struct followed_run *present)
{
	for (uint32_t i = 0; i < f->n && !stopped; i++) {
		const struct followed_run *r = &f->run[i];
		if (r == present || (r->made_s && !r->ended))
			tfh_ctl_obey(r->dir, f->host);
	}
}

/* Waits for the child. Ends it if this process is asked to end, or if the child takes too long.
 * Returns its exit code. */
static int wait_for(const struct follower *f, pid_t pid, const struct followed_run *r,
		    double *cost_s)
{
	const struct timespec nap = {0, 50000000};
	double until = now_s() + LONGEST_S, looked_s = now_s();
	struct rusage used = {0};
	int status = 0;
	bool ended = false;

	while (wait4(pid, &status, WNOHANG, &used) == 0) {
		if ((stopped || now_s() > until) && !ended) {
			kill(pid, SIGKILL);
			ended = true;
		}
		/* Requests do not wait for a digest that takes long. */
		if (now_s() - looked_s > LOOK_S && !stopped) {
			obey_all(f, r);
			looked_s = now_s();
		}
		nanosleep(&nap, NULL);
	}
	*cost_s = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
		  (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	remove_part(r->dir, pid);
	if (!stopped && !r->told)
		tfh_say("%s: judging it ended with signal %d", r->dir, WTERMSIG(status));
	return TFH_EXIT_UNREADABLE;
}

static void make_digest(const struct follower *f, struct followed_run *r)
{
	fflush(NULL);
	pid_t pid = fork();

	if (!pid) {
		signal(SIGINT, SIG_IGN); /* a terminal sends it here, too; the parent decides */
		signal(SIGTERM, SIG_DFL);
		_exit(update(f, r));
	}
	r->status = pid < 0 ? TFH_EXIT_UNREADABLE : wait_for(f, pid, r, &r->cost_s);
	r->told |= r->status && r->status != TFH_EXIT_NOTHING;
	r->made_s = now_s();
}

/* ---- runs ---- */

static void look_at_run(struct follower *f, struct followed_run *r)
{
	struct stat st;

	if (stat(r->dir, &st) || (r->ended && time_of(&st) == r->listed))
		return;
	struct run_files files = look_at(r->dir, f->host);
	if (files.has_request)
		tfh_ctl_obey(r->dir, f->host);
	bool over = files.has_end || files.age_s > QUIET_S;
	bool ended = over && !records(r->dir);
	double since = now_s() - r->made_s, least = r->cost_s / SHARE;

	least = least > f->interval_s ? least : f->interval_s;
	if (r->elsewhere && !files.has_own)
		r->files = files.hash; /* nothing of it is of this host so far */
	else if (f->folder && ended && !files.has_traces)
		r->files = files.hash; /* there is nothing to judge, and never will be */
	else if ((files.hash != r->files || !r->made_s) &&
		 (ended || !r->made_s || since >= least)) {
		make_digest(f, r);
		r->files = files.hash;
	}
	r->ended = ended && files.hash == r->files && !(f->folder && files.has_request);
	if (!stat(r->dir, &st))
		r->listed = time_of(&st);
}

static bool is_run(const char *dir)
{
	char path[4600];

	snprintf(path, sizeof(path), "%s/run.json", dir);
	return !access(path, F_OK) || tfh_place_traces(dir);
}

static int add_run(struct follower *f, const char *dir)
{
	struct followed_run *grown = realloc(f->run, (f->n + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	f->run = grown;
	f->run[f->n] = (struct followed_run){
		.dir = strdup(dir), .elsewhere = f->folder && !tfh_run_began_at(dir, f->host)};
	if (!f->run[f->n].dir)
		return -ENOMEM;
	f->n++;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct followed_run *x = a, *y = b;

	return strcmp(x->dir, y->dir);
}

/* Whether the run is among the first n, which are sorted. */
static bool is_known(const struct follower *f, uint32_t n, char *dir)
{
	const struct followed_run key = {.dir = dir};

	return n && bsearch(&key, f->run, n, sizeof(key), by_name);
}

static void say_full(struct follower *f, const char *folder)
{
	if (!f->full)
		tfh_say("digest: %s holds more than %u runs; the others are not followed", folder,
			RUNS);
	f->full = true;
}

/* Finds this user's runs in a folder. Those of others are left out, so digests are written with no
 * more rights than the runs have. */
static void find_runs(struct follower *f, const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	struct stat st;
	uint32_t known = f->n;

	while (d && (e = readdir(d))) {
		char dir[4500];
		snprintf(dir, sizeof(dir), "%s/%s", folder, e->d_name);
		if (*e->d_name == '.' || is_known(f, known, dir) ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || !is_run(dir))
			continue;
		if (f->n == RUNS)
			say_full(f, folder);
		else
			add_run(f, dir);
	}
	if (d)
		closedir(d);
	if (f->n > known)
		qsort(f->run, f->n, sizeof(*f->run), by_name);
}

/* Drops runs whose directory no longer exists. */
static void drop_gone(struct follower *f)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < f->n; i++) {
		if (access(f->run[i].dir, F_OK))
			free(f->run[i].dir);
		else
			f->run[kept++] = f->run[i];
	}
	f->n = kept;
}

/* Allows one follower of a directory per user and host, by a socket name that vanishes with the
 * process and leaves no file. */
static int take_turn(const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || stat(path, &st))
		return -errno;
	int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "tfhook.digest.%u.%llx.%llx",
			 (unsigned)geteuid(), (unsigned long long)st.st_dev,
			 (unsigned long long)st.st_ino);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	/* Held until the process ends. */
	return bind(fd, (struct sockaddr *)&name, len) ? -errno : 0;
}

/* Sleeps until the next scan. `cost_s`: processor time of the last one. */
static void rest(double cost_s)
{
	double s = cost_s / SHARE;

	s = s < LOOK_S ? LOOK_S : s > LOOK_MOST_S ? LOOK_MOST_S : s;
	nanosleep(&(struct timespec){(time_t)s, (long)((s - (double)(time_t)s) * 1e9)}, NULL);
}

static void follow(struct follower *f, const char *path)
{
	while (!stopped) {
		double began_s = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
		if (f->folder) {
			find_runs(f, path);
			drop_gone(f);
		}
		for (uint32_t i = 0; i < f->n && !stopped; i++)
			look_at_run(f, &f->run[i]);
		if (stopped || (!f->folder && f->run[0].ended))
			return;
		rest(seconds_of(CLOCK_PROCESS_CPUTIME_ID) - began_s);
	}
}

int tfh_follow_digests(const char *path, double interval_s)
{
	const struct sigaction action = {.sa_handler = on_signal};
	struct follower f = {.interval_s = interval_s, .folder = !is_run(path)};
	int rc = take_turn(path), status = TFH_EXIT_OK;

	if (rc == -EADDRINUSE) {
		tfh_say("digest: another `tfhook digest --follow` follows %s here", path);
		return TFH_EXIT_USAGE;
	}
	if (rc) {
		tfh_say("digest: %s: %s", path, strerror(-rc));
		return tfh_exit_code(rc);
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	setpriority(PRIO_PROCESS, 0, 19);
	gethostname(f.host, sizeof(f.host) - 1);
	if (!f.folder && add_run(&f, path)) {
		tfh_say("out of memory");
		free(f.run);
		return TFH_EXIT_UNREADABLE;
	}
	follow(&f, path);
	if (!f.folder)
		status = f.run[0].status;
	for (uint32_t i = 0; i < f.n; i++)
		free(f.run[i].dir);
	free(f.run);
	return status;
}
