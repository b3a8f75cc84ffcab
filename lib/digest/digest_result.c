/* Stores a result and its run in a digest, and restores them as if the run had just been judged. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "digest/digest_out.h"
#include "digest/digest_restore.h"
#include "digest/kept.h"
#include "judge/result_make.h"
#include "model/big.h"
#include "model/built/built.h"
#include "model/opened.h"

#define FRAMES 64u	    /* of a place: no output shows more */
#define MEMORY (256u << 20) /* of a digest's texts and lists */

/* ---- into a digest ---- */

/* All memory belongs to the arena, which is freed after writing. */
struct keeping {
	struct tfh_arena arena;
	struct tfh_kept kept;
	bool full;
};

static void *copy(struct keeping *x, const void *from, uint32_t n, size_t size)
{
	void *to = tfh_arena_array(&x->arena, n + 1u, size);

	x->full |= !to;
	if (to && n)
		memcpy(to, from, n * size);
	return to;
}

static void keep_stack(struct keeping *x, uint32_t stack)
{
	struct tfh_model_line line[FRAMES];
	struct tfh_model_frame frame[FRAMES];
	struct tfh_known *known = &x->kept.known;
	struct tfh_run *run = x->kept.r.run;
	uint32_t process = x->kept.r.process;
	struct tfh_known_stack *s = &known->stack[known->n_stack];

	for (uint32_t i = 0; i < known->n_stack; i++)
		if (known->stack[i].stack == stack)
			return;
	*s = (struct tfh_known_stack){.process = process, .stack = stack};
	s->n_python = tfh_run_python(run, process, stack, line, FRAMES);
	s->python = copy(x, line, s->n_python, sizeof(*line));
	s->n_native = tfh_run_stack(run, process, stack, frame, FRAMES);
	s->native = copy(x, frame, s->n_native, sizeof(*frame));
	known->n_stack += s->n_python || s->n_native;
}

static void keep_stacks(struct keeping *x)
{
	const struct tfh_result *r = &x->kept.r;
	const struct tfh_call_site *site[] = {&r->found.wait, &r->found.alloc, &r->found.load,
					      &r->found.pause, &r->found.before};
	uint32_t sites = sizeof(site) / sizeof(*site);

	x->kept.known.stack = tfh_arena_array(&x->arena, sites + r->n_transfers + 1u,
					      sizeof(*x->kept.known.stack));
	x->full |= !x->kept.known.stack;
	for (uint32_t i = 0; i < sites && !x->full; i++)
		keep_stack(x, site[i]->stack);
	for (uint32_t i = 0; i < r->n_transfers && !x->full; i++)
		keep_stack(x, r->transfers[i].stack);
}

static void keep_places(struct keeping *x)
{
	struct tfh_kept *k = &x->kept;

	k->known.place = tfh_arena_array(&x->arena, k->n_flight + 1u, sizeof(*k->known.place));
	x->full |= !k->known.place;
	for (uint32_t i = 0; i < k->n_flight && !x->full; i++) {
		const struct tfh_in_flight *f = &k->flight[i];
		struct tfh_model_line line[FRAMES];
		uint32_t n = tfh_run_place(k->r.run, f->process, f->place, line, FRAMES);
		if (n)
			k->known.place[k->known.n_place++] = (struct tfh_known_place){
				f->process, f->place, copy(x, line, n, sizeof(*line)), n};
	}
}

static void keep_run(struct keeping *x)
{
	struct tfh_kept *k = &x->kept;
	struct tfh_run *run = k->r.run;

	k->source = tfh_run_source(run);
	k->built = tfh_run_is_built(run);
	k->path = tfh_run_path(run);
	k->host = tfh_run_host(run);
	k->argc = tfh_run_command(run, (const char *const **)&k->argv);
	k->start_realtime = tfh_run_start_realtime_ns(run);
	k->wall = tfh_run_wall_ns(run);
	k->end_ns = tfh_run_end_ns(run);
	k->n_process = tfh_run_processes(run, (const struct tfh_process **)&k->process);
	k->n_thread = tfh_run_threads(run, (const struct tfh_thread_info **)&k->thread);
	k->n_flight = tfh_run_in_flight(run, (const struct tfh_in_flight **)&k->flight);
	k->n_unreadable = tfh_run_unreadable(run, (const char *const **)&k->unreadable);
	k->n_meter = tfh_run_meters(run, k->r.process, (const struct tfh_meter_line **)&k->meter);
	keep_stacks(x);
	keep_places(x);
}

int tfh_digest_put_result(struct tfh_digest_out *o, const struct tfh_result *r)
{
	struct keeping x = {.kept = {.r = *r}};
	void *message = NULL;
	size_t n = 0;

	tfh_arena_init(&x.arena, 0);
	keep_run(&x);
	int rc = x.full ? -ENOMEM : tfh_kept_pack(&tfh_kept_type, &x.kept, &message, &n);
	if (!rc)
		rc = n < UINT32_MAX ? tft_write_chunk(o->w, TFT_DRES, message, (uint32_t)n)
				    : -E2BIG;
	free(message);
	tfh_arena_free(&x.arena);
	return rc;
}

/* ---- from a digest ---- */

/* A place has both a file and a function, or neither. */
static bool both(const char *file, const char *function)
{
	return !file == !function;
}

static bool nodes_are_sound(const struct tfh_seen_node *node, uint32_t n)
{
	bool ok = true;

	for (uint32_t i = 0; i < n; i++)
		ok &= node[i].parent <= i && both(node[i].file, node[i].function) &&
		      isfinite(node[i].s_per_step) && isfinite(node[i].own_s);
	return ok;
}

static bool line_is_sound(const struct tfh_seen_line *l)
{
	bool ok = both(l->file, l->function) && both(l->through.file, l->through.function) &&
		  both(l->callee, l->callee_file);

	for (uint32_t i = 0; i < l->n_caller; i++)
		ok &= l->caller[i].file && l->caller[i].function;
	return ok;
}

static bool places_are_sound(const struct tfh_findings *f)
{
	bool ok = line_is_sound(&f->line) && line_is_sound(&f->new_pool) &&
		  both(f->workers.line.file, f->workers.line.function) &&
		  nodes_are_sound(f->node, f->n_node) &&
		  nodes_are_sound(f->workers.node, f->workers.n_node);

	for (size_t i = 0; i < sizeof(f->start) / sizeof(*f->start); i++)
		for (uint32_t k = 0; k < f->start[i].n_line; k++)
			ok &= both(f->start[i].line[k].file, f->start[i].line[k].function);
	return ok;
}

/* Whether all references are to existing elements. */
static bool is_sound(const struct tfh_kept *k)
{
	const struct tfh_result *r = &k->r;
	bool ok = k->n_process && r->process < k->n_process && r->lead <= r->n_recurring &&
		  r->line_place <= r->n_place && places_are_sound(&r->found);

	for (uint32_t i = 0; i < r->n_whatif; i++)
		ok &= r->whatif[i].remove != TFH_REMOVE_NONE;
	for (uint32_t i = 0; i < TFH_HEAP_POINTS; i++)
		ok &= r->heap.line[i] <= r->heap.peak && r->heap.peak < 1ull << 60;
	for (uint32_t i = 0; i < k->n_thread; i++)
		ok &= k->thread[i].process < k->n_process;
	for (uint32_t i = 0; i < k->n_flight; i++)
		ok &= k->flight[i].process < k->n_process;
	for (uint32_t i = 0; i < r->n_rank; i++)
		ok &= r->rank[i].process < k->n_process;
	for (uint32_t i = 0; i < r->n_generation; i++) {
		const struct tfh_generation *g = &r->generation[i];
		ok &= g->process < k->n_process && both(g->file, g->function);
	}
	for (uint32_t i = 0; i < r->n_tree; i++)
		ok &= r->tree[i].parent < i || (!i && !r->tree[i].parent);
	return ok;
}

/* A copy that tfh_run_close() frees. */
static void *owned(const void *from, uint32_t n, size_t size, bool *full)
{
	void *to = malloc((n + 1u) * size);

	if (to && n)
		memcpy(to, from, n * size);
	*full |= !to;
	return to;
}

static int fill_meters(struct tfh_model_proc *p, const struct tfh_kept *k)
{
	bool full = false;

	p->meter = owned(k->meter, k->n_meter, sizeof(*p->meter), &full);
	for (uint32_t i = 0; i < k->n_meter && !full; i++) {
		p->meter[i].point = owned(k->meter[i].point, k->meter[i].n, sizeof(float), &full);
		p->n_meter++;
	}
	return full ? -ENOMEM : 0;
}

static int fill_run(struct tfh_run *run, const struct tfh_kept *k)
{
	bool full = false;

	run->source = k->source;
	run->built = k->built ? calloc(1, sizeof(*run->built)) : NULL;
	run->path = strdup(k->path);
	run->host = k->host;
	run->argv = k->argv;
	run->argc = k->argc;
	run->start_realtime = k->start_realtime;
	run->wall = k->wall;
	run->end_ns = k->end_ns;
	run->end = k->r.end;
	run->end_number = k->r.end_code;
	run->process = owned(k->process, k->n_process, sizeof(*run->process), &full);
	run->thread = owned(k->thread, k->n_thread, sizeof(*run->thread), &full);
	run->flight = owned(k->flight, k->n_flight, sizeof(*run->flight), &full);
	run->unreadable = owned(k->unreadable, k->n_unreadable, sizeof(*run->unreadable), &full);
	run->known = &k->known;
	if (full || !run->path || (k->built && !run->built))
		return -ENOMEM;
	run->n_thread = k->n_thread;
	run->n_flight = k->n_flight;
	run->n_unreadable = k->n_unreadable;
	run->proc = calloc(k->n_process, sizeof(*run->proc));
	if (!run->proc)
		return -ENOMEM;
	run->n_proc = k->n_process;
	for (uint32_t i = 0; i < k->n_process; i++)
		run->proc[i].pub = k->process[i];
	return fill_meters(&run->proc[k->r.process], k);
}

/* ---- steps ---- */

struct step_filling {
	struct tfh_result *r;
	uint32_t rank; /* row of DRNK */
	size_t cap;
};

static int take_step(void *arg, const struct tfh_digest_row *row)
{
	struct step_filling *x = arg;
	struct tfh_result *r = x->r;
	void *v = r->step;

	if (row->rank != x->rank)
		return 0;
	int rc = tfh_big_grow(&v, &x->cap, r->n_step, sizeof(*r->step));
	r->step = v;
	if (rc)
		return rc;
	struct tfh_step *s = &r->step[r->n_step++];
	*s = (struct tfh_step){.index = row->index,
			       .start_s = row->start_s,
			       .dur_s = row->dur_s,
			       .segment = (int8_t)row->segment,
			       .cls = (int8_t)row->cls,
			       .cause = (int8_t)row->cause,
			       .tier = row->tier};
	s->breakdown[TFH_PART_COMPUTE] = (float)row->compute_s;
	s->breakdown[TFH_PART_UNATTRIBUTED] = (float)row->rest_s;
	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		s->breakdown[tfh_cause_part((enum tfh_cause)c)] += (float)row->cause_s[c];
	return 0;
}

int tfh_digest_steps_of(struct tfh_run_digest *d, uint32_t rank, struct tfh_result *r,
			struct tfh_err *err)
{
	struct step_filling x = {.r = r, .rank = rank};

	return tfh_digest_each_step(d, take_step, &x, err);
}

static int read_kept(struct tfh_run_digest *d, struct tfh_kept *k, struct tfh_arena *arena,
		     struct tfh_err *err)
{
	const void *message;
	size_t n;
	int rc = tfh_digest_chunk(d, TFT_DRES, &message, &n, err);

	if (rc == -ENOENT)
		return tfh_err_set(
			err, -ENODATA,
			"the digest is of an earlier version, which kept no report, and the "
			"recording is gone");
	if (rc)
		return rc;
	rc = tfh_kept_unpack(&tfh_kept_type, message, n, k, arena);
	if (!rc && !is_sound(k))
		rc = -EBADMSG;
	if (rc == -ENOMEM)
		return tfh_err_set(err, rc, "out of memory");
	return rc ? tfh_err_set(err, rc, "damaged digest; make it again: tfhook digest DIR") : 0;
}

int tfh_digest_restore(struct tfh_run_digest *d, struct tfh_run **run, struct tfh_result **out,
		       struct tfh_err *err)
{
	double critical = tfh_digest_number(d, "critical");
	struct tfh_arena *unused;
	struct tfh_run *x = calloc(1, sizeof(*x));
	struct tfh_result *r = tfh_result_new(0, &unused);
	struct tfh_kept *k = NULL;
	int rc = -ENOMEM;

	*run = NULL;
	*out = NULL;
	if (x && r) {
		tfh_arena_init(&x->arena, MEMORY);
		k = tfh_arena_alloc(&x->arena, sizeof(*k));
	}
	if (k)
		rc = read_kept(d, k, &x->arena, err);
	if (!rc) {
		rc = fill_run(x, k);
		*r = k->r;
		r->run = x;
	}
	if (!rc)
		rc = tfh_digest_steps_of(
			d, critical >= 0 && critical < 4096 ? (uint32_t)critical : 0, r, err);
	if (rc == -ENOMEM)
		tfh_err_set(err, rc, "out of memory");
	if (rc) {
		tfh_result_free(r);
		tfh_run_close(x);
		return rc;
	}
	*run = x;
	*out = r;
	return 0;
}
