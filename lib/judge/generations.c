#include "judge/generations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "judge/result_make.h"
#include "model/symbols/last_seen.h"

/* ---- which process is of which generation ---- */

/* The generation that new processes join. Of each rank it has the first process: later ones may be
 * workers of a data loader, or the same rank started again alone. */
struct current {
	uint32_t *first; /* processes: [n] */
	uint32_t n;
	int32_t world;
};

struct by_time {
	int64_t start_ns;
	uint32_t process;
};

static int by_start(const void *a, const void *b)
{
	const struct by_time *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

static bool has_rank(const struct tfh_process *p)
{
	return p->rank >= 0 && (p->has_gpu || p->has_tf);
}

static bool is_in(const struct current *g, const struct tfh_process *p, int32_t rank)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (p[g->first[i]].rank == rank)
			return true;
	return false;
}

/* Whether a process, by its first record, begins another generation: most ranks of this one have
 * ended, and it has a rank of theirs, or belongs to another number of ranks. */
static bool begins_another(const struct current *g, const struct tfh_process *p, uint32_t process)
{
	const struct tfh_process *x = &p[process];
	bool in = is_in(g, p, x->rank),
	     other = g->world >= 0 && x->world >= 0 && x->world != g->world;
	uint32_t ended = 0;

	if (!in && !other)
		return false;
	for (uint32_t i = 0; i < g->n; i++)
		ended += p[g->first[i]].heard_ns <= x->start_ns;
	return ended * 2 > g->n;
}

static uint32_t in_order(const struct tfh_process *p, uint32_t n, struct by_time *out)
{
	uint32_t m = 0;

	for (uint32_t i = 0; i < n; i++)
		if (has_rank(&p[i]))
			out[m++] = (struct by_time){p[i].start_ns, i};
	if (m)
		qsort(out, m, sizeof(*out), by_start);
	return m;
}

/* Chooses the generation with the most events per process, that is, with the most steps; of equal
 * ones the last, which is what the job does now. */
static void choose(const struct tfh_process *p, uint32_t n, struct tfh_generations *g)
{
	double most = 0;

	for (uint32_t k = 0; k < g->n; k++) {
		double events = 0, processes = 0;
		for (uint32_t i = 0; i < n; i++) {
			events += g->of[i] == k ? (double)p[i].events : 0;
			processes += g->of[i] == k;
		}
		if (events < most * processes)
			continue;
		most = events / processes;
		g->judged = k;
	}
}

int tfh_generations_find(const struct tfh_process *p, uint32_t n, struct tfh_generations *out)
{
	struct by_time *order = malloc((n + 1u) * sizeof(*order));
	struct current now = {malloc((n + 1u) * sizeof(*now.first)), 0, -1};

	*out = (struct tfh_generations){.of = malloc((n + 1u) * sizeof(*out->of))};
	int rc = order && now.first && out->of ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < n && !rc; i++)
		out->of[i] = TFH_NO_GENERATION;
	uint32_t m = rc ? 0 : in_order(p, n, order);
	for (uint32_t i = 0; i < m; i++) {
		uint32_t process = order[i].process;
		if (!out->n || begins_another(&now, p, process)) {
			out->n++;
			now.n = 0;
			now.world = -1;
		}
		if (!is_in(&now, p, p[process].rank))
			now.first[now.n++] = process;
		now.world = p[process].world > now.world ? p[process].world : now.world;
		out->of[process] = out->n - 1;
	}
	if (!rc)
		choose(p, n, out);
	free(order);
	free(now.first);
	return rc;
}

void tfh_generations_free(struct tfh_generations *g)
{
	free(g->of);
	*g = (struct tfh_generations){.of = NULL};
}

bool tfh_generations_other(const struct tfh_generations *g, uint32_t process)
{
	return g && g->n > 1 && g->of[process] != TFH_NO_GENERATION && g->of[process] != g->judged;
}

/* ---- what is said of them ---- */

static bool ended_badly(const struct tfh_process *p)
{
	if (p->end_known)
		return p->end == TFH_END_SIGNAL || p->end_code;
	return !p->clean_end && !p->live;
}

static void note_process(struct tfh_generation *g, const struct tfh_process *p, uint32_t process,
			 const struct tfh_process *all)
{
	double begin_s = (double)p->start_ns * 1e-9, end_s = (double)p->heard_ns * 1e-9;

	if (!g->seen || begin_s < g->begin_s)
		g->begin_s = begin_s;
	g->end_s = end_s > g->end_s ? end_s : g->end_s;
	g->seen++;
	if (p->world > (int32_t)g->ranks)
		g->ranks = (uint32_t)p->world;
	if (ended_badly(p) && (!g->failed || p->heard_ns < all[g->process].heard_ns)) {
		g->failed = true;
		g->process = process;
	}
}

static const char *kept(struct tfh_result *r, const char *text)
{
	char *copy = tfh_result_alloc(r, strlen(text) + 1, 1);

	return copy ? strcpy(copy, text) : NULL;
}

static int find_place(struct tfh_run *run, struct tfh_result *r, struct tfh_generation *g,
		      struct tfh_err *err)
{
	struct tfh_last_seen seen = {0};
	struct tfh_model_line line;
	const struct tfh_event *ev;
	struct tfh_merge *m;
	int64_t at_ns;
	int rc = tfh_merge_open(run, g->process, &m, err);

	if (rc)
		return rc;
	while ((ev = tfh_merge_borrow(m)))
		tfh_last_seen_note(&seen, ev);
	rc = tfh_merge_error(m, err);
	tfh_merge_close(m);
	if (rc || !tfh_last_seen_line(run, g->process, &seen, &line, &at_ns))
		return rc;
	g->file = kept(r, line.file);
	g->function = kept(r, line.function);
	g->line = line.line;
	g->seen_s = g->died_s - (double)at_ns * 1e-9;
	return g->file && g->function ? 0 : tfh_err_set(err, -ENOMEM, "out of memory");
}

static int finish(const struct tfh_feed *f, struct tfh_run *run, struct tfh_result *r,
		  struct tfh_generation *g, struct tfh_err *err)
{
	const struct tfh_process *p = &f->processes[g->process];

	g->ranks = g->ranks ? g->ranks : g->seen;
	g->rank = -1;
	g->host = "";
	if (!g->failed)
		return 0;
	g->rank = p->rank;
	g->host = p->host;
	g->died_s = (double)p->heard_ns * 1e-9;
	return find_place(run, r, g, err);
}

/* The process of each rank that counts: the first one. */
static bool is_first(const struct tfh_feed *f, const struct tfh_generations *g, uint32_t process)
{
	const struct tfh_process *p = f->processes;

	for (uint32_t i = 0; i < f->n_processes; i++)
		if (i != process && g->of[i] == g->of[process] && p[i].rank == p[process].rank &&
		    (p[i].start_ns < p[process].start_ns ||
		     (p[i].start_ns == p[process].start_ns && i < process)))
			return false;
	return true;
}

int tfh_generations_fill(const struct tfh_feed *f, struct tfh_run *run, struct tfh_result *r,
			 struct tfh_err *err)
{
	const struct tfh_generations *g = f->generations;
	int rc = 0;

	if (!g || g->n < 2)
		return 0;
	r->generation = tfh_result_alloc(r, g->n, sizeof(*r->generation));
	if (!r->generation)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < f->n_processes; i++)
		if (g->of[i] != TFH_NO_GENERATION && is_first(f, g, i))
			note_process(&r->generation[g->of[i]], &f->processes[i], i, f->processes);
	r->n_generation = g->n;
	r->generation[g->judged].judged = true;
	for (uint32_t i = 0; i < g->n && !rc; i++)
		rc = finish(f, run, r, &r->generation[i], err);
	return rc;
}
