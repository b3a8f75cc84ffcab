/*
 * Opens a run: groups the files of a directory (or files given one by one) by process, reads
 * left-over journals through a temporary file, and adds what run.json and end.json say.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/sort.h"
#include "base/text.h"

#include "model/host_files.h"
#include "model/symbols/pylines.h"
#include "model/open/opening.h"

/* ---- chunk headers ---- */

static int thread_of(struct tfh_run *run, uint32_t process, uint32_t thread, uint32_t tid)
{
	struct tfh_model_proc *p = &run->proc[process];

	if (thread >= 1u << 20)
		return 0; /* a series written by salvage */
	if (tfh_thread_at(p, thread) != UINT32_MAX)
		return 0;
	if (tfh_room_for((void **)&run->thread, &run->cap_thread, run->n_thread,
			 sizeof(*run->thread)) ||
	    tfh_thread_put(p, thread, run->n_thread))
		return -ENOMEM;
	struct tfh_thread_info *t = &run->thread[run->n_thread++];
	memset(t, 0, sizeof(*t));
	t->process = process;
	t->tid = tid;
	t->index = thread;
	return 0;
}

static void use_sketch(struct tfh_model_proc *p, const struct tft_sketch *s,
		       const struct tft_head *h)
{
	for (uint32_t i = 0; i < s->n_fn && i < TFT_SKETCH_FNS; i++) {
		if (s->fn[i].fn >= h->fn_count || !s->fn[i].count)
			continue;
		const struct tfh_fn_info *fn = &h->fn[s->fn[i].fn];
		uint8_t family = fn->family;
		p->pub.has_gpu |= family > TFH_FAM_NONE && family < TFH_FAM_CONSUMER &&
				  family != TFH_FAM_LOOKUP && family != TFH_FAM_CONTEXT;
		p->pub.has_tf |= family >= TFH_FAM_CONSUMER && family < TFH_FAM_MARK;
		p->pub.has_marks |= !strcmp(fn->name, tfh_fn_table[TFH_FN_mark_step].name);
	}
}

static int event_chunk(struct tfh_run *run, uint32_t file, uint32_t chunk,
		       const struct tft_chunk_info *c)
{
	struct tft_reader *r = run->file[file].reader;
	struct tfh_model_proc *p = &run->proc[run->file[file].process];
	const struct tft_sketch *s;
	const struct tft_run *runs;
	struct tfh_err err;
	uint32_t n;
	int rc = 0;

	if (!tft_chunk_sketch(r, chunk, &s, &err))
		use_sketch(p, s, tft_head(r));
	if (tft_chunk_runs(r, chunk, &runs, &n, &err))
		return 0; /* damaged: the reader has counted it */
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = thread_of(run, run->file[file].process, runs[i].thread, runs[i].tid);
	if (rc)
		return rc;
	struct tfh_chunk found = {
		.file = file, .chunk = chunk, .t_first = c->t_first, .t_last = c->t_last};
	if (c->type == TFT_DGST) {
		/* false: the chunk only repeats state, which keeps its original times. */
		bool calls = false;
		for (uint32_t i = 0; i < n; i++)
			calls |= runs[i].thread != 0;
		if (!calls)
			return 0;
		if (tfh_room_for((void **)&p->digest, &p->cap_digest, p->n_digest,
				 sizeof(*p->digest)))
			return -ENOMEM;
		p->digest[p->n_digest++] = found;
		return 0;
	}
	p->pub.events += c->events;
	if (tfh_room_for((void **)&p->chunk, &p->cap_chunk, p->n_chunk, sizeof(*p->chunk)))
		return -ENOMEM;
	p->chunk[p->n_chunk++] = found;
	return 0;
}

static int scan_file(struct tfh_run *run, uint32_t file)
{
	struct tft_reader *r = run->file[file].reader;
	struct tfh_model_proc *p = &run->proc[run->file[file].process];
	int rc = 0;

	p->pub.segments++;
	p->pub.clean_end |= tft_clean_end(r);
	p->pub.tail_bytes += tft_tail_bytes(r);
	for (uint32_t i = 0; i < tft_chunk_count(r) && !rc; i++) {
		const struct tft_chunk_info *c = tft_chunk(r, i);
		if (c->dropped > p->pub.dropped)
			p->pub.dropped = c->dropped;
		if (c->type == TFT_EVNT || c->type == TFT_DGST)
			rc = event_chunk(run, file, i, c);
	}
	p->pub.bad_chunks += tft_bad_chunks(r);
	uint64_t residual = tft_clock_residual_ns(r);
	if (residual > p->pub.clock_residual_ns)
		p->pub.clock_residual_ns = residual;
	return rc;
}

/* ---- clocks: all processes on one axis ---- */

/* Combines the clock readings of a process' segments. A segment alone would extrapolate times far
 * from its own readings, or all of them at an estimated rate if it has none, and so disagree with
 * the others. */
static int join_clocks(struct tfh_run *run)
{
	struct tft_reader **r = malloc((run->n_file + 1) * sizeof(struct tft_reader *));
	uint32_t *file = tfh_files_by_process(run), at = 0;
	int rc = r && file ? 0 : -ENOMEM;

	while (!rc && at < run->n_file) {
		uint32_t p = run->file[file[at]].process, n = 0;
		for (; at < run->n_file && run->file[file[at]].process == p; at++)
			r[n++] = run->file[file[at]].reader;
		rc = tft_clocks_join(r, n);
	}
	free(r);
	free(file);
	return rc;
}

struct booted {
	uint64_t boot;
	uint32_t file;
};

static int by_boot(const void *a, const void *b)
{
	const struct booted *x = a, *y = b;

	if (x->boot != y->boot)
		return x->boot < y->boot ? -1 : 1;
	return x->file < y->file ? -1 : x->file > y->file;
}

/* Puts all processes on one axis: by CLOCK_MONOTONIC within one boot of a machine, by
 * CLOCK_REALTIME across machines. */
static int set_clocks(struct tfh_run *run)
{
	struct booted *v = malloc((run->n_file + 1) * sizeof(*v));
	int64_t start = INT64_MAX, shift = 0;

	if (!v)
		return -ENOMEM;

	for (uint32_t f = 0; f < run->n_file; f++) {
		const struct tft_head *h = tft_head(run->file[f].reader);
		if ((int64_t)h->start_realtime_ns < start && h->start_realtime_ns)
			start = (int64_t)h->start_realtime_ns;
		v[f] = (struct booted){run->proc[run->file[f].process].boot, f};
	}
	run->start_realtime = start == INT64_MAX ? 0 : start;
	qsort(v, run->n_file, sizeof(*v), by_boot);
	/* The offset of a boot's first file is used for all files of that boot. */
	for (uint32_t i = 0; i < run->n_file; i++) {
		const struct tfh_file *f = &run->file[v[i].file];
		const struct tft_head *h = tft_head(f->reader);
		if (!i || v[i].boot != v[i - 1].boot || v[i].boot == tfh_hash_str(""))
			shift = (int64_t)h->start_realtime_ns - run->start_realtime -
				(int64_t)tft_monotonic_ns(f->reader, h->start_ticks);
		run->proc[f->process].shift = shift;
	}
	free(v);
	return 0;
}

static int by_first(const void *a, const void *b)
{
	const struct tfh_chunk *x = a, *y = b;

	if (x->first_ns != y->first_ns)
		return x->first_ns < y->first_ns ? -1 : 1;
	return x->chunk < y->chunk ? -1 : x->chunk > y->chunk;
}

/* When the process started, run ns. From its start time in /proc: hundredths of a second since
 * boot. Converted traces have none. That count continues while a machine sleeps, and
 * CLOCK_MONOTONIC does not; so a start after the first event is ignored. */
static int64_t born(const struct tfh_model_proc *p)
{
	bool known = p->process_start && p->process_start < INT64_MAX / TFH_PROCESS_TICK_NS &&
		     p->boot != tfh_hash_str("");
	int64_t born =
		known ? (int64_t)p->process_start * TFH_PROCESS_TICK_NS + p->shift : INT64_MAX;

	return born < p->pub.start_ns ? born : p->pub.start_ns;
}

static void order_chunks(struct tfh_run *run)
{
	for (uint32_t i = 0; i < run->n_proc; i++) {
		struct tfh_model_proc *p = &run->proc[i];
		for (uint32_t c = 0; c < p->n_chunk; c++) {
			int64_t last = tfh_run_ns(run, p->chunk[c].file, p->chunk[c].t_last);
			p->chunk[c].first_ns =
				tfh_run_ns(run, p->chunk[c].file, p->chunk[c].t_first);
			if (p->chunk[c].first_ns < p->pub.start_ns)
				p->pub.start_ns = p->chunk[c].first_ns;
			if (last > p->pub.last_ns)
				p->pub.last_ns = last;
		}
		if (p->pub.heard_ns < p->pub.last_ns)
			p->pub.heard_ns = p->pub.last_ns;
		if (p->pub.start_ns == INT64_MAX)
			p->pub.start_ns = 0;
		p->pub.born_ns = born(p);
		if (p->n_chunk)
			qsort(p->chunk, p->n_chunk, sizeof(*p->chunk), by_first);
	}
}

/* ---- paths ---- */

static bool is_wanted(const struct tfh_run *run, const char *name)
{
	char host[TFH_HOST_NAME];

	return tfh_ends_with(name, ".tft") &&
	       (!run->only_host || (tfh_host_of_file(name, host) && !strcmp(host, run->only_host)));
}

static int names_in(const struct tfh_run *run, const char *dir, char ***out, uint32_t *n)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	uint32_t cap = 0;
	int rc = 0;

	*out = NULL;
	*n = 0;
	if (!d)
		return -errno;
	while (!rc && (e = readdir(d))) {
		if (!is_wanted(run, e->d_name))
			continue;
		rc = tfh_room_for((void **)out, &cap, *n, sizeof(**out));
		if (!rc && !((*out)[*n] = strdup(e->d_name)))
			rc = -ENOMEM;
		*n += !rc;
	}
	closedir(d);
	if (!rc && *n)
		qsort(*out, *n, sizeof(**out), tfh_by_version);
	while (rc && *n)
		free((*out)[--*n]);
	if (rc)
		free(*out);
	return rc;
}

static int add_directory(struct tfh_run *run, const char *dir, struct tfh_err *err)
{
	char **name;
	uint32_t n;
	int rc = names_in(run, dir, &name, &n), first = 0;

	if (rc)
		return tfh_err_set(err, rc, "%s: %s", dir, strerror(-rc));
	for (uint32_t i = 0; i < n; i++) {
		char path[8192];
		struct tfh_err why = {0};
		snprintf(path, sizeof(path), "%s/%s", dir, name[i]);
		rc = tfh_run_add_file(run, path, false, &why);
		free(name[i]);
		if (rc == -EMEDIUMTYPE) /* a digest */
			continue;
		/* An unreadable file must not prevent reading the others. */
		if (rc && rc != -ENOMEM)
			tfh_run_leave_out(run, why.text);
		if (rc && !first) {
			first = rc;
			if (err)
				*err = why;
		}
	}
	free(name);
	tfh_run_add_journals(run, dir);
	return run->n_file || !first ? 0 : first;
}

bool tfh_run_newest(char *out, size_t cap)
{
	DIR *d = opendir(".");
	struct dirent *e;
	struct timespec best = {0};
	bool found = false;

	while (d && (e = readdir(d))) {
		struct stat st;
		if (!tfh_starts_with(e->d_name, "tfhook-") ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
			continue;
		if (found &&
		    (st.st_mtim.tv_sec < best.tv_sec ||
		     (st.st_mtim.tv_sec == best.tv_sec && st.st_mtim.tv_nsec <= best.tv_nsec)))
			continue;
		best = st.st_mtim;
		found = true;
		snprintf(out, cap, "%s", e->d_name);
	}
	if (d)
		closedir(d);
	return found;
}

/* The run directory that a path names, or that a file is in. */
static void directory_of(const char *path, char out[4096])
{
	const char *slash = strrchr(path, '/');
	struct stat st;

	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		snprintf(out, 4096, "%s", path);
	else
		snprintf(out, 4096, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
}

static int add_path(struct tfh_run *run, const char *path, struct tfh_meta *meta,
		    struct tfh_err *err)
{
	struct stat st;

	if (stat(path, &st))
		return tfh_err_set(err, -errno, "%s: %s", path, strerror(errno));
	char dir[4096];
	directory_of(path, dir);
	tfh_meta_read(&run->arena, dir, meta);
	return S_ISDIR(st.st_mode) ? add_directory(run, path, err)
				   : tfh_run_add_file(run, path, false, err);
}

/* ---- opening ---- */

static int split_command(struct tfh_run *run)
{
	const char *text = run->n_file ? tft_head(run->file[0].reader)->command : "";

	run->argv = tfh_arena_array(&run->arena, 2, sizeof(*run->argv));
	if (!run->argv)
		return -ENOMEM;
	run->argv[0] = text;
	run->argc = *text ? 1 : 0;
	return 0;
}

static int use_meta(struct tfh_run *run, const struct tfh_meta *meta)
{
	int64_t last = 0;
	bool clean = run->n_proc > 0, live = false;

	for (uint32_t i = 0; i < run->n_proc; i++) {
		const struct tfh_process *p = &run->proc[i].pub;
		if (p->last_ns > last)
			last = p->last_ns;
		clean &= p->clean_end;
		live |= p->live;
	}
	run->wall = meta->wall_s > 0 ? (int64_t)(meta->wall_s * 1e9) : last;
	if (run->wall < last)
		run->wall = last;
	run->end_ns = run->wall;
	if (meta->wall_s > 0 && meta->start_ns && run->start_realtime)
		run->end_ns -= run->start_realtime - meta->start_ns;
	if (run->end_ns < last)
		run->end_ns = last;
	run->host = meta->host ? meta->host : run->n_proc ? run->proc[0].pub.host : "";
	run->end = meta->has_end ? meta->end
		   /* the other profiler does not say how the job ended */
		   : run->source != TFH_SRC_TFT ? TFH_END_NONE
		   : live			? TFH_END_RUNNING
		   : clean			? TFH_END_EXIT
						: TFH_END_KILLED;
	run->end_number = meta->number;
	if (!meta->argc)
		return split_command(run);
	run->argv = meta->argv;
	run->argc = meta->argc;
	return 0;
}

static int finish_open(struct tfh_run *run, const struct tfh_meta *meta)
{
	int rc = 0;

	for (uint32_t f = 0; f < run->n_file && !rc; f++)
		rc = scan_file(run, f);
	if (rc)
		return rc;
	rc = join_clocks(run);
	if (!rc)
		rc = set_clocks(run);
	if (rc)
		return rc;
	if (!run->n_file) /* samples of `tfhook run` alone */
		run->start_realtime = meta->start_ns;
	order_chunks(run);
	rc = tfh_run_find_discarded_spans(run);
	for (uint32_t f = 0; f < run->n_file && !rc; f++)
		rc = tfh_run_read_notes(run, f);
	if (!rc)
		rc = tfh_run_look_at_flight(run);
	if (!rc)
		rc = tfh_run_find_missing(run);
	if (!rc)
		rc = use_meta(run, meta);
	run->process = calloc(run->n_proc + 1, sizeof(*run->process));
	if (!run->process)
		return -ENOMEM;
	for (uint32_t i = 0; i < run->n_proc; i++) {
		tfh_run_sort_meters(&run->proc[i]);
		run->process[i] = run->proc[i].pub;
	}
	return rc;
}

static struct tfh_run *new_run(const char *host)
{
	struct tfh_run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	tfh_arena_init(&run->arena, 0);
	run->only_host = host;
	run->unpacked = tfh_arena_alloc(&run->arena, sizeof(*run->unpacked));
	if (run->unpacked)
		return run;
	tfh_run_close(run);
	return NULL;
}

/* Adds the files of all paths; *meta: the contents of the first one's run.json. */
static int add_paths(struct tfh_run *run, const char *const *paths, uint32_t n,
		     struct tfh_meta *meta, struct tfh_err *err)
{
	int rc = 0;

	run->path = strdup(paths[0]);
	for (uint32_t i = 0; i < n && !rc; i++) {
		struct tfh_meta m = {.end = TFH_END_NONE};
		rc = add_path(run, paths[i], &m, err);
		if (!i)
			*meta = m;
	}
	if (!rc && !run->n_file && n == 1)
		rc = tfh_run_add_sampled(run, paths[0], meta->host);
	return rc || run->n_proc ? rc
				 : tfh_err_set(err, -ENODATA, "%s: no trace files (*.tft) in it",
					       run->path ? run->path : "");
}

/* Once all files have been added. */
static int complete(struct tfh_run *run, const char *const *paths, uint32_t n,
		    const struct tfh_meta *meta, struct tfh_err *err)
{
	int rc = finish_open(run, meta);

	for (uint32_t i = 0; i < n && !rc; i++) {
		char dir[4096];
		directory_of(paths[i], dir);
		rc = tfh_run_read_start(run, dir);
		tfh_run_read_ends(run, dir);
	}
	run->only_host = NULL;
	return rc ? tfh_err_set(err, rc, "%s: %s", paths[0], strerror(-rc)) : 0;
}

static int open_paths(const char *const *paths, uint32_t n, const char *host, struct tfh_run **out,
		      struct tfh_err *err)
{
	struct tfh_meta meta = {.end = TFH_END_NONE};
	char newest[4096];
	const char *found = newest;

	*out = NULL;
	if (!n && !tfh_run_newest(newest, sizeof(newest)))
		return tfh_err_set(
			err, -ENODATA,
			"no run directory of yours here; name one, or record one: tfhook run "
			"CMD...");
	paths = n ? paths : &found;
	n = n ? n : 1;
	struct tfh_run *run = new_run(host);
	if (!run)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	int rc = add_paths(run, paths, n, &meta, err);
	if (!rc)
		rc = complete(run, paths, n, &meta, err);
	if (!rc)
		*out = run;
	else
		tfh_run_close(run);
	return rc;
}

int tfh_run_open(const char *const *paths, uint32_t n, struct tfh_run **out, struct tfh_err *err)
{
	return open_paths(paths, n, NULL, out, err);
}

int tfh_run_open_host(const char *dir, const char *host, struct tfh_run **out, struct tfh_err *err)
{
	return open_paths(&dir, 1, host, out, err);
}

void tfh_run_close(struct tfh_run *run)
{
	if (!run)
		return;
	tfh_unpacked_free(run);
	for (uint32_t i = 0; i < run->n_file; i++) {
		tft_close(run->file[i].reader);
		if (run->file[i].temporary)
			unlink(run->file[i].path);
		free(run->file[i].path);
		free(run->file[i].fn);
	}
	for (uint32_t i = 0; i < run->n_proc; i++) {
		tfh_names_free(&run->proc[i].names);
		free(run->proc[i].chunk);
		free(run->proc[i].digest);
		tfh_threads_free(&run->proc[i]);
		free(run->proc[i].sample);
		tfh_run_free_meters(&run->proc[i]);
		tfh_gpu_free(run->proc[i].gpu);
		tfh_sites_free(run->proc[i].sites);
		tfh_places_free(run->proc[i].places);
	}
	tfh_built_free(run->built);
	if (run->temp_dir)
		rmdir(run->temp_dir);
	free(run->temp_dir);
	free(run->file);
	free(run->proc);
	free(run->bucket);
	free(run->process);
	free(run->thread);
	free(run->hole);
	free(run->flight);
	free(run->discarded);
	free(run->unhooked);
	free(run->unreadable);
	free(run->path);
	tfh_arena_free(&run->arena);
	free(run);
}
