#include "top/watch.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "judge/judge.h"
#include "model/open/opening.h"
#include "model/symbols/pylines.h"
#include "report/report.h"

/* A process on another machine writes its records at least this often. */
#define REMOTE_S 90
/* A job without a known end may continue with another process for this long. */
#define GRACE_S 5

static double clock_s(clockid_t clock)
{
	return (double)tfh_clock_ns(clock) / 1e9;
}

double tfh_watch_now(void)
{
	return clock_s(CLOCK_MONOTONIC);
}

/* ---- processes ---- */

static struct tfh_watched *watched(struct tfh_watch *w, const char *prefix)
{
	for (uint32_t i = 0; i < w->n_of; i++)
		if (!strcmp(tfh_follow_prefix(w->of[i].follow), prefix))
			return &w->of[i];
	return NULL;
}

static void add(struct tfh_watch *w, const char *prefix, uint32_t newest, const char *journal)
{
	struct tfh_watched of = {.process = UINT32_MAX};

	if (w->n_of == TFH_WATCH_PROCESSES || watched(w, prefix) ||
	    tfh_room_for((void **)&w->of, &w->cap_of, w->n_of, sizeof(*w->of)) ||
	    tfh_follow_new(w->dir, prefix, newest, journal, &of.follow))
		return;
	if (tfh_follow_silent(of.follow) < REMOTE_S)
		w->of[w->n_of++] = of;
	else /* a copy, or an old recording */
		tfh_follow_free(of.follow);
}

static void add_journal(void *arg, const struct tft_found *found)
{
	const struct tft_journal *j = found->code ? NULL : tft_view_header(found->view);

	if (j && !found->copy && tft_view_life(found->view) == TFT_ALIVE)
		add(arg, j->prefix, j->segment, tft_view_path(found->view));
}

/* Splits PREFIX.n.tft. */
static bool segment_name(const char *name, char prefix[256], uint32_t *number)
{
	size_t n = strlen(name);
	char *end;

	if (n < 7 || n > 255 || strcmp(name + n - 4, ".tft"))
		return false;
	memcpy(prefix, name, n - 4);
	prefix[n - 4] = '\0';
	char *dot = strrchr(prefix, '.');
	if (!dot || dot == prefix || dot[1] < '0' || dot[1] > '9')
		return false;
	*number = (uint32_t)strtoul(dot + 1, &end, 10);
	*dot = '\0';
	return !*end;
}

static bool of_this_host(const char *prefix)
{
	char host[256] = "";
	const char *dot = strchr(prefix, '.');

	gethostname(host, sizeof(host) - 1);
	return dot && tfh_starts_with(dot + 1, host) && dot[1 + strlen(host)] == '.';
}

/* Processes on other machines have no journal here. Their files show them, somewhat later. */
static void add_remote(struct tfh_watch *w)
{
	DIR *d = opendir(w->dir);
	struct dirent *e;

	w->gone = !d && errno == ENOENT;
	while (d && (e = readdir(d))) {
		char prefix[256];
		uint32_t number;
		struct stat st;
		bool segment = segment_name(e->d_name, prefix, &number);
		w->has_files |= segment;
		if (segment && !of_this_host(prefix) && !watched(w, prefix) &&
		    !fstatat(dirfd(d), e->d_name, &st, 0) &&
		    difftime(time(NULL), st.st_mtime) < REMOTE_S)
			add(w, prefix, number, NULL);
	}
	if (d)
		closedir(d);
}

/* ---- opening ---- */

static void read_facts(struct tfh_watch *w)
{
	struct tfh_arena arena;
	struct tfh_meta meta;

	tfh_arena_init(&arena, 0);
	tfh_meta_read(&arena, w->dir, &meta);
	if (meta.argc && !*w->name)
		snprintf(w->name, sizeof(w->name), "%s", tfh_report_job(meta.argv, meta.argc));
	if (meta.has_end) {
		w->end = meta.end;
		w->end_number = meta.number;
		w->wall_s = meta.wall_s;
	}
	tfh_arena_free(&arena);
}

int tfh_watch_open(const char *dir, double window_s, struct tfh_watch **out, struct tfh_err *err)
{
	struct tfh_watch *w = calloc(1, sizeof(*w));

	*out = NULL;
	if (!w)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	snprintf(w->dir, sizeof(w->dir), "%s", dir);
	w->window_s = window_s;
	w->end = TFH_END_NONE;
	w->begun_s = tfh_watch_now();
	DIR *d = opendir(dir);
	if (!d) {
		int rc = -errno;
		free(w);
		return tfh_err_set(err, rc, "%s: %s", dir, strerror(-rc));
	}
	closedir(d);
	read_facts(w);
	tfh_watch_poll(w);
	*out = w;
	return 0;
}

/* ---- judging ---- */

static void forget_judgement(struct tfh_watch *w)
{
	if (w->result)
		tfh_wording_free(&w->words);
	tfh_result_free(w->result);
	tfh_run_close(w->run);
	w->result = NULL;
	w->run = NULL;
	for (uint32_t i = 0; i < w->n_fd; i++)
		close(w->fd[i]);
	free(w->fd);
	w->fd = NULL;
	w->n_fd = 0;
}

void tfh_watch_close(struct tfh_watch *w)
{
	if (!w)
		return;
	forget_judgement(w);
	for (uint32_t i = 0; i < w->n_of; i++)
		tfh_follow_free(w->of[i].follow);
	free(w->of);
	free(w);
}

bool tfh_watch_due(const struct tfh_watch *w, double least_s)
{
	double age = tfh_watch_now() - w->judged_at_s, most = w->judge_cost_s / TFH_WATCH_SHARE;

	return !w->judged_at_s || age >= (least_s > most ? least_s : most);
}

/* Writes each process' last records to a file in memory. Returns the number of files or -ENOMEM. */
static int write_files(struct tfh_watch *w, int *fd)
{
	int n = 0, rc = 0;

	for (uint32_t i = 0; i < w->n_of && !rc; i++) {
		rc = tfh_follow_read(w->of[i].follow, w->window_s);
		int got = rc ? rc : tfh_follow_write(w->of[i].follow);
		if (got >= 0)
			fd[n++] = got;
		else if (got == -ENOMEM)
			rc = got;
	}
	for (int i = 0; rc && i < n; i++)
		close(fd[i]);
	return rc ? rc : n;
}

static void find_processes(struct tfh_watch *w)
{
	const struct tfh_process *p;
	uint32_t n = tfh_run_processes(w->run, &p);

	for (uint32_t i = 0; i < w->n_of; i++) {
		w->of[i].process = UINT32_MAX;
		for (uint32_t k = 0; k < n; k++)
			if (p[k].pid == w->of[i].state.pid &&
			    !strcmp(p[k].host, w->of[i].state.host))
				w->of[i].process = k;
	}
}

static int judge(struct tfh_watch *w, int *fd, uint32_t n)
{
	char(*path)[32] = calloc(n, sizeof(*path));
	const char **name = calloc(n, sizeof(*name));
	struct tfh_err err = {0};
	int rc = path && name ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < n && !rc; i++) {
		snprintf(path[i], sizeof(path[i]), "/proc/self/fd/%d", fd[i]);
		name[i] = path[i];
	}
	if (!rc)
		rc = tfh_run_open(name, n, &w->run, &err);
	if (!rc)
		rc = tfh_analyze(w->run, &w->result, &err);
	if (!rc) {
		w->result->end = TFH_END_NONE; /* part of a run has no end */
		tfh_wording_make(&w->words, w->result);
		find_processes(w);
	}
	if (rc && rc != -ENOMEM)
		snprintf(w->why, sizeof(w->why), "%s",
			 rc == -ENODATA
				 ? "no call of the GPU driver, TensorFlow or PyTorch in this time"
				 : err.text);
	free(path);
	free(name);
	return rc;
}

int tfh_watch_judge(struct tfh_watch *w)
{
	double cost = clock_s(CLOCK_PROCESS_CPUTIME_ID);
	int *fd = calloc(w->n_of + 1, sizeof(*fd));
	int n = fd ? write_files(w, fd) : -ENOMEM, rc = n < 0 ? n : 0;

	/* A job that has ended keeps the verdict of its last seconds. */
	if (n > 0) {
		forget_judgement(w);
		w->fd = fd;
		w->n_fd = (uint32_t)n;
		*w->why = '\0';
		rc = judge(w, fd, (uint32_t)n);
		if (rc)
			forget_judgement(w);
	} else {
		free(fd);
		if (!w->result)
			snprintf(w->why, sizeof(w->why), "nothing has been recorded in this time");
	}
	w->judged_at_s = tfh_watch_now();
	w->judge_cost_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - cost;
	return rc == -ENOMEM ? rc : 0;
}

/* ---- updating the view ---- */

void tfh_watch_poll(struct tfh_watch *w)
{
	tft_journals_of(w->dir, add_journal, w);
	add_remote(w);
	read_facts(w);
	for (uint32_t i = 0; i < w->n_of; i++) {
		tfh_follow_poll(w->of[i].follow, &w->of[i].state);
		w->of[i].was_alive |= w->of[i].state.alive;
	}
	double now = tfh_watch_now();
	bool told = w->end != TFH_END_NONE, before = !w->n_of && w->has_files;
	if (tfh_watch_alive(w)) {
		w->alive_s = now;
		w->phase = TFH_WATCH_RUNNING;
	} else if (told || before || w->gone || (w->n_of && now - w->alive_s > GRACE_S)) {
		w->phase = TFH_WATCH_ENDED;
	}
}

uint32_t tfh_watch_alive(const struct tfh_watch *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n_of; i++)
		n += w->of[i].state.alive || (!w->of[i].was_alive && w->end == TFH_END_NONE);
	return n;
}

uint64_t tfh_watch_lost(const struct tfh_watch *w)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < w->n_of; i++)
		n += w->of[i].state.dropped;
	return n;
}

double tfh_watch_silent(const struct tfh_watch *w)
{
	const struct tfh_result *r = w->result;

	if (!r || !r->n_step)
		return NAN;
	const struct tfh_step *last = &r->step[r->n_step - 1];
	double now = clock_s(CLOCK_REALTIME) - (double)tfh_run_start_realtime_ns(w->run) / 1e9;
	return fmax(now - last->start_s - last->dur_s, 0);
}

double tfh_watch_cost(const struct tfh_watch *w)
{
	double since = tfh_watch_now() - w->begun_s;

	return since > 0 ? clock_s(CLOCK_PROCESS_CPUTIME_ID) / since : 0;
}

#define FRAMES 256

void tfh_watch_place(const struct tfh_watch *w, const struct tfh_watched *of,
		     const struct tfh_follow_call *call, char *out, size_t size)
{
	struct tfh_model_line frame[FRAMES];
	const struct tfh_in_flight *open;
	const struct tfh_thread_info *thread;
	uint32_t n = w->run ? tfh_run_in_flight(w->run, &open) : 0;
	uint32_t threads = w->run ? tfh_run_threads(w->run, &thread) : 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < n; i++)
		if (open[i].process == of->process && open[i].thread < threads &&
		    thread[open[i].thread].tid == call->tid && !strcmp(open[i].fn, call->fn)) {
			tfh_place_text(
				frame,
				tfh_run_place(w->run, of->process, open[i].place, frame, FRAMES),
				out, size);
			return;
		}
}
