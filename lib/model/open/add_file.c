/* Adds a file to a run: finds or creates its process, and maps its functions to the run's rows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#include "model/open/opening.h"

static uint64_t identity(uint32_t pid, uint64_t journal_start, uint64_t start_ticks)
{
	return tfh_hash_add(tfh_hash_add(pid, journal_start), start_ticks);
}

static void chain(struct tfh_run *run, uint32_t process)
{
	struct tfh_model_proc *p = &run->proc[process];
	uint64_t h = identity(p->pub.pid, p->process_start, p->start_ticks);
	uint32_t *bucket = &run->bucket[h % run->n_bucket];

	p->next = *bucket;
	*bucket = process + 1;
}

/* Keeps as many hash buckets as there is room for processes. */
static int room_for_process(struct tfh_run *run)
{
	if (tfh_room_for((void **)&run->proc, &run->cap_proc, run->n_proc, sizeof(*run->proc)))
		return -ENOMEM;
	if (run->n_bucket == run->cap_proc)
		return 0;
	uint32_t *bucket = calloc(run->cap_proc, sizeof(*bucket));
	if (!bucket)
		return -ENOMEM;
	free(run->bucket);
	run->bucket = bucket;
	run->n_bucket = run->cap_proc;
	for (uint32_t i = 0; i < run->n_proc; i++)
		chain(run, i);
	return 0;
}

static int process_of(struct tfh_run *run, const struct tft_head *h, uint32_t *out)
{
	uint64_t hash = identity(h->pid, h->journal_start, h->start_ticks);
	uint32_t i = run->n_bucket ? run->bucket[hash % run->n_bucket] : 0;

	for (; i; i = run->proc[i - 1].next) {
		struct tfh_model_proc *p = &run->proc[i - 1];
		if (p->pub.pid == h->pid && p->process_start == h->journal_start &&
		    p->start_ticks == h->start_ticks && !strcmp(p->pub.host, h->host)) {
			if (p->pub.rank < 0) /* the rank was set while the process ran */
				p->pub.rank = h->rank;
			if (p->pub.world < 0)
				p->pub.world = h->world;
			p->pub.local = h->local_rank;
			if (p->pub.local < 0)
				p->pub.local = h->local_rank;
			*out = i - 1;
			return 0;
		}
	}
	if (room_for_process(run))
		return -ENOMEM;
	struct tfh_model_proc *p = &run->proc[run->n_proc];
	memset(p, 0, sizeof(*p));
	p->pub.host = tfh_arena_strdup(&run->arena, h->host);
	p->pub.exe = tfh_arena_strdup(&run->arena, h->exe);
	p->pub.pid = h->pid;
	p->pub.ppid = h->ppid;
	p->pub.rank = h->rank;
	p->pub.world = h->world;
	p->pub.local = h->local_rank;
	p->pub.by_monotonic = h->ticks_are_ns;
	p->start_ticks = h->start_ticks;
	p->process_start = h->journal_start;
	p->boot = tfh_hash_str(h->boot_id);
	p->pub.start_ns = INT64_MAX;
	chain(run, run->n_proc);
	*out = run->n_proc++;
	return p->pub.host && p->pub.exe ? 0 : -ENOMEM;
}

uint32_t *tfh_files_by_process(const struct tfh_run *run)
{
	uint32_t *v = malloc((run->n_file + 1) * sizeof(*v)), next = 0;
	uint32_t *at = calloc(run->n_proc + 1, sizeof(*at));

	for (uint32_t f = 0; at && f < run->n_file; f++)
		at[run->file[f].process]++;
	for (uint32_t p = 0; at && p < run->n_proc; p++) {
		uint32_t n = at[p];
		at[p] = next;
		next += n;
	}
	for (uint32_t f = 0; at && v && f < run->n_file; f++)
		v[at[run->file[f].process]++] = f;
	if (!at) {
		free(v);
		v = NULL;
	}
	free(at);
	return v;
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const struct tfh_fn_info *const *)a)->name,
		      (*(const struct tfh_fn_info *const *)b)->name);
}

/* A file's function rows, sorted by name. NULL when out of memory. */
static const struct tfh_fn_info **rows_by_name(const struct tfh_file *f, uint32_t n)
{
	const struct tfh_fn_info **rows = malloc(n * sizeof(*rows));

	if (rows) {
		memcpy(rows, f->fn, n * sizeof(*rows));
		qsort(rows, n, sizeof(*rows), by_name);
	}
	return rows;
}

/* A function has a different number in every file, but only one row in the run, so that rows can be
 * compared by address. */
static int common_rows(struct tfh_run *run, struct tfh_file *f)
{
	const struct tft_head *h = tft_head(f->reader);
	const struct tfh_file *first = run->n_file ? &run->file[0] : NULL;
	const struct tfh_fn_info **sorted = NULL, **same;
	uint32_t n = first ? tft_head(first->reader)->fn_count : 0;

	f->fn = calloc(h->fn_count + 1, sizeof(*f->fn));
	if (!f->fn)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->fn_count; i++) {
		const struct tfh_fn_info *row = &h->fn[i];
		f->fn[i] = row;
		if (i < n && !strcmp(row->name, first->fn[i]->name)) {
			f->fn[i] = first->fn[i];
			continue;
		}
		if (n && !sorted && !(sorted = rows_by_name(first, n)))
			return -ENOMEM;
		same = n ? bsearch(&row, sorted, n, sizeof(*sorted), by_name) : NULL;
		if (same)
			f->fn[i] = *same;
	}
	free(sorted);
	return 0;
}

int tfh_run_add_file(struct tfh_run *run, const char *path, bool temporary, struct tfh_err *err)
{
	struct tfh_file f = {.temporary = temporary};
	int rc = tft_open(path, &f.reader, err);

	if (rc)
		return rc;
	if (tft_is_digest(f.reader)) {
		tft_close(f.reader);
		return tfh_err_set(
			err, -EMEDIUMTYPE,
			"%s: a digest, which `tfhook diff` and `report` read; this needs the "
			"recording",
			path);
	}
	f.path = strdup(path);
	if (!f.path ||
	    tfh_room_for((void **)&run->file, &run->cap_file, run->n_file, sizeof(*run->file)) ||
	    common_rows(run, &f) || process_of(run, tft_head(f.reader), &f.process)) {
		tft_close(f.reader);
		free(f.fn);
		free(f.path);
		return tfh_err_set(err, -ENOMEM, "out of memory");
	}
	run->file[run->n_file++] = f;
	return 0;
}
