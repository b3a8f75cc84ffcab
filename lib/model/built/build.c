/* Builds a run from what an importer supplies; see build.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

#include "model/built/built.h"

/* ns since 1970; an uptime clock would need 31 years to reach this */
#define UNIX_2001 1000000000000000000ll

int tfh_build_new(enum tfh_source source, const char *path, struct tfh_builder **out)
{
	struct tfh_builder *b = calloc(1, sizeof(*b));
	struct tfh_run *run = calloc(1, sizeof(*run));

	*out = NULL;
	if (run)
		tfh_arena_init(&run->arena, 0);
	if (!b || !run || !(run->path = strdup(path)) ||
	    !(run->built = calloc(1, sizeof(*run->built)))) {
		tfh_run_close(run);
		free(b);
		return -ENOMEM;
	}
	run->source = source;
	run->host = "";
	b->run = run;
	*out = b;
	return 0;
}

void tfh_build_source(struct tfh_builder *b, enum tfh_source source)
{
	b->run->source = source;
}

uint32_t tfh_build_processes(const struct tfh_builder *b)
{
	return b->run->n_proc;
}

void tfh_build_undo(struct tfh_builder *b, uint32_t processes)
{
	struct tfh_run *run = b->run;

	while (run->n_proc > processes) {
		struct tfh_built_proc *p = &run->built->proc[--run->n_proc];
		run->n_thread -= run->proc[run->n_proc].n_thread;
		tfh_names_free(&run->proc[run->n_proc].names);
		tfh_built_clear(p);
	}
}

int tfh_build_leave_out(struct tfh_builder *b, const char *why)
{
	return tfh_run_leave_out(b->run, why);
}

static void free_tables(struct tfh_builder *b)
{
	free(b->texts.v);
	free(b->names.v);
	free(b->fns.v);
}

void tfh_build_free(struct tfh_builder *b)
{
	if (!b)
		return;
	free_tables(b);
	tfh_run_close(b->run);
	free(b);
}

int64_t tfh_build_process(struct tfh_builder *b, const char *host, const char *exe, uint32_t pid,
			  int32_t rank)
{
	struct tfh_run *run = b->run;
	uint32_t had = run->built->cap_proc;

	if (tfh_room_for((void **)&run->proc, &run->cap_proc, run->n_proc, sizeof(*run->proc)) ||
	    tfh_room_for((void **)&run->built->proc, &run->built->cap_proc, run->n_proc,
			 sizeof(*run->built->proc)))
		return -ENOMEM;
	if (run->built->cap_proc > had)
		memset(run->built->proc + had, 0,
		       (run->built->cap_proc - had) * sizeof(*run->built->proc));
	struct tfh_model_proc *p = &run->proc[run->n_proc];
	memset(p, 0, sizeof(*p));
	run->built->proc[run->n_proc].serial = ++b->serial;
	p->pub.host = tfh_arena_strdup(&run->arena, host);
	p->pub.exe = tfh_arena_strdup(&run->arena, exe);
	p->pub.pid = pid;
	p->pub.rank = rank;
	p->pub.world = p->pub.local = -1;
	p->pub.segments = 1;
	p->pub.clean_end = true;
	return p->pub.host && p->pub.exe ? (int64_t)run->n_proc++ : -ENOMEM;
}

int tfh_build_identity(struct tfh_builder *b, uint32_t process, const char *exe, uint32_t pid,
		       int32_t rank, int32_t world)
{
	struct tfh_process *p = &b->run->proc[process].pub;

	p->exe = tfh_arena_strdup(&b->run->arena, exe);
	p->rank = rank;
	p->world = world;
	p->pid = pid;
	return p->exe ? 0 : -ENOMEM;
}

int64_t tfh_build_thread(struct tfh_builder *b, uint32_t process, uint32_t tid, const char *name)
{
	struct tfh_run *run = b->run;
	struct tfh_thread_info *t;

	if (tfh_room_for((void **)&run->thread, &run->cap_thread, run->n_thread, sizeof(*t)))
		return -ENOMEM;
	t = &run->thread[run->n_thread];
	memset(t, 0, sizeof(*t));
	t->process = process;
	t->tid = tid;
	t->index = run->proc[process].n_thread++;
	t->name = *name ? tfh_arena_strdup(&run->arena, name) : NULL;
	return run->n_thread++;
}

void tfh_build_thread_name(struct tfh_builder *b, uint32_t thread, const char *name)
{
	b->run->thread[thread].name = tfh_arena_strdup(&b->run->arena, name);
}

/* Limit on times on the run's axis (Unix time: the year 2096). The difference of any two fits in 64
 * bits. */
#define FARTHEST_NS 4000000000000000000ll

void tfh_build_shift(struct tfh_builder *b, uint32_t process, int64_t ns)
{
	if (ns > -FARTHEST_NS && ns < FARTHEST_NS)
		b->run->built->proc[process].shift += ns;
}

static void note_family(struct tfh_process *p, uint8_t family)
{
	p->has_gpu |= family > TFH_FAM_NONE && family < TFH_FAM_CONSUMER &&
		      family != TFH_FAM_LOOKUP && family != TFH_FAM_CONTEXT;
	p->has_tf |= family >= TFH_FAM_CONSUMER && family < TFH_FAM_MARK;
}

int tfh_build_event(struct tfh_builder *b, const struct tfh_event *ev, uint32_t correlation)
{
	struct tfh_built_proc *p = &b->run->built->proc[ev->process];

	if (tfh_room_for((void **)&p->ev, &p->cap_ev, p->n_ev, sizeof(*p->ev)) ||
	    tfh_room_for((void **)&p->correlation, &p->cap_correlation, p->n_ev,
			 sizeof(*p->correlation)))
		return -ENOMEM;
	p->ev[p->n_ev] = *ev;
	p->correlation[p->n_ev++] = correlation;
	note_family(&b->run->proc[ev->process].pub, ev->fn->family);
	return 0;
}

int tfh_build_op(struct tfh_builder *b, const struct tfh_op *op)
{
	struct tfh_built_proc *p = &b->run->built->proc[op->process];
	struct tfh_built_text *e;
	struct tfh_op *to;

	if (tfh_room_for((void **)&p->op, &p->cap_op, p->n_op, sizeof(*p->op)))
		return -ENOMEM;
	to = &p->op[p->n_op];
	*to = *op;
	if (!op->name || !*op->name) {
		to->name = "";
	} else {
		e = tfh_built_enter(&b->texts, tfh_hash_str(op->name));
		if (e && !e->what) {
			e->what = tfh_arena_strdup(&b->run->arena, op->name);
			if (!e->what)
				return -ENOMEM;
		}
		if (!e)
			return -ENOMEM;
		to->name = e->what;
	}
	b->run->proc[op->process].pub.has_gpu = true;
	p->n_op++;
	return 0;
}

/* Order of an index: by thread, then by begin, outer events first. */
static int by_begin(const void *x, const void *y, void *arg)
{
	const struct tfh_event *ev = arg;
	const struct tfh_event *p = &ev[*(const uint32_t *)x], *q = &ev[*(const uint32_t *)y];

	if (p->thread != q->thread)
		return p->thread < q->thread ? -1 : 1;
	if (p->t0 != q->t0)
		return p->t0 < q->t0 ? -1 : 1;
	return p->t1 > q->t1 ? -1 : p->t1 < q->t1;
}

int tfh_build_host_only(struct tfh_builder *b, uint32_t process)
{
	struct tfh_built_proc *p = &b->run->built->proc[process];
	uint32_t *at = malloc((p->n_ev + 1) * sizeof(*at)), n = 0;
	int64_t end = INT64_MIN;

	if (!at)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_ev; i++)
		if (p->ev[i].kind == TFT_RANGE && p->ev[i].w[1] == TFT_RANGE_OP)
			at[n++] = i;
	qsort_r(at, n, sizeof(*at), by_begin, p->ev);
	for (uint32_t i = 0; i < n; i++) {
		struct tfh_event *ev = &p->ev[at[i]];
		if (i && ev->thread == p->ev[at[i - 1]].thread && ev->t1 <= end)
			continue;
		end = ev->t1;
		const char *name = tfh_build_text(b, process, TFT_NAME_STRING, (uint32_t)ev->w[0]);
		if (tfh_names_compiling(name))
			continue; /* neither it nor the ops in it compute for the program */
		int64_t id = tfh_build_name(b, process, TFT_NAME_OP, name);
		ev->fn = tfh_build_fn(b, "op", &tfh_fn_table[TFH_FN_TFE_Execute]);
		if (id < 0 || !ev->fn) {
			free(at);
			return -ENOMEM;
		}
		ev->kind = TFT_CALL;
		ev->w[0] = (uint64_t)id;
		ev->w[1] = 0;
		note_family(&b->run->proc[process].pub, ev->fn->family);
	}
	free(at);
	return 0;
}

static int64_t within(int64_t t, int64_t from, int64_t to)
{
	return t < from ? from : t > to ? to : t;
}

void tfh_build_cut_ranges(struct tfh_builder *b, uint32_t process, int64_t from, int64_t to)
{
	struct tfh_built_proc *p = &b->run->built->proc[process];

	for (uint32_t i = 0; i < p->n_ev; i++) {
		struct tfh_event *ev = &p->ev[i];
		if (ev->kind != TFT_RANGE)
			continue;
		ev->t0 = within(ev->t0, from, to);
		ev->t1 = within(ev->t1, from, to);
	}
}

static int add_span(struct tfh_built_proc *p, int64_t t0, int64_t t1, bool nodes)
{
	if (tfh_room_for((void **)&p->span, &p->cap_span, p->n_span, sizeof(*p->span)))
		return -ENOMEM;
	p->span[p->n_span++] = (struct tfh_gpu_span){.t0 = t0, .t1 = t1, .nodes = nodes};
	return 0;
}

void tfh_build_ready(struct tfh_builder *b, uint32_t process, int64_t t)
{
	b->run->built->proc[process].ready = t;
	b->run->built->proc[process].is_ready = true;
}

void tfh_build_processors(struct tfh_builder *b, uint32_t process, uint32_t n)
{
	struct tfh_built_proc *p = &b->run->built->proc[process];

	if (n > p->processors)
		p->processors = n;
}

/* ---- completing the run ---- */

static int64_t shifted(const struct tfh_built_proc *p, int64_t t)
{
	int64_t v;

	if (__builtin_add_overflow(t, p->shift, &v))
		v = t > 0 ? INT64_MAX : INT64_MIN;
	return v < -FARTHEST_NS ? -FARTHEST_NS : v > FARTHEST_NS ? FARTHEST_NS : v;
}

static int64_t earliest(const struct tfh_run *run)
{
	int64_t start = INT64_MAX;

	for (uint32_t i = 0; i < run->n_proc; i++) {
		const struct tfh_built_proc *p = &run->built->proc[i];
		for (uint32_t k = 0; k < p->n_ev; k++)
			if (shifted(p, p->ev[k].t0) < start)
				start = shifted(p, p->ev[k].t0);
		for (uint32_t k = 0; k < p->n_op; k++)
			if (shifted(p, p->op[k].t0) < start)
				start = shifted(p, p->op[k].t0);
	}
	return start == INT64_MAX ? 0 : start;
}

static void move_times(struct tfh_built_proc *p, struct tfh_process *pub, int64_t start)
{
	pub->start_ns = INT64_MAX;
	for (uint32_t k = 0; k < p->n_ev; k++) {
		p->ev[k].t0 = shifted(p, p->ev[k].t0) - start;
		p->ev[k].t1 = shifted(p, p->ev[k].t1) - start;
		if (p->ev[k].t0 < pub->start_ns)
			pub->start_ns = p->ev[k].t0;
		if (p->ev[k].t1 > pub->last_ns)
			pub->last_ns = p->ev[k].t1;
	}
	for (uint32_t k = 0; k < p->n_op; k++) {
		p->op[k].t0 = shifted(p, p->op[k].t0) - start;
		p->op[k].t1 = shifted(p, p->op[k].t1) - start;
		if (p->op[k].t0 < pub->start_ns)
			pub->start_ns = p->op[k].t0;
		if (p->op[k].t1 > pub->last_ns)
			pub->last_ns = p->op[k].t1;
	}
	p->ready = shifted(p, p->ready) - start;
	if (pub->start_ns == INT64_MAX)
		pub->start_ns = 0;
}

/* Host and device were recorded for the same time. */
static int add_whole_span(struct tfh_builder *b, uint32_t process)
{
	struct tfh_built_proc *p = &b->run->built->proc[process];
	const struct tfh_process *pub = &b->run->proc[process].pub;
	bool nodes = true;

	for (uint32_t k = 0; k < p->n_op && nodes; k++)
		nodes = p->op[k].kind != TFH_OP_GRAPH;
	return p->n_op ? add_span(p, p->is_ready ? p->ready : pub->start_ns, pub->last_ns, nodes)
		       : 0;
}

static bool captures(const struct tfh_built_proc *p)
{
	for (uint32_t k = 0; k < p->n_ev; k++)
		if (p->ev[k].fn->family == TFH_FAM_CAPTURE)
			return true;
	return false;
}

/* Whether a call submits work to the device. */
static bool issues(const struct tfh_event *ev)
{
	return ev->kind == TFT_CALL && tfh_family_issues(ev->fn->family);
}

/* Launches and copies that a thread makes while it captures a graph submit nothing. Marks those
 * that have no op, provided that others in the trace do have one. */
static int mark_captured(struct tfh_builder *b, uint32_t process)
{
	struct tfh_built_proc *p = &b->run->built->proc[process];
	uint32_t threads = b->run->n_thread;
	bool *open = calloc(threads + 1, sizeof(*open)), *has = calloc(p->n_ev + 1, sizeof(*has));
	uint64_t *first = calloc(threads + 1, sizeof(*first));
	int rc = open && has && first ? 0 : -ENOMEM;

	for (uint32_t k = 0; k < p->n_ev && !rc; k++)
		first[p->ev[k].thread + 1]++;
	for (uint32_t t = 0; t < threads && !rc; t++)
		first[t + 1] += first[t];
	for (uint32_t k = 0; k < p->n_op && !rc; k++)
		if (p->op[k].thread != UINT32_MAX)
			has[first[p->op[k].thread] + p->op[k].call] = true;
	for (uint32_t k = 0; k < p->n_ev && p->n_op && !rc; k++) {
		struct tfh_event *ev = &p->ev[k];
		if (ev->fn->family == TFH_FAM_CAPTURE)
			open[ev->thread] = !strstr(ev->fn->name, "End") &&
					   (open[ev->thread] || strstr(ev->fn->name, "Begin"));
		else if (open[ev->thread] && issues(ev) && !has[first[ev->thread] + ev->number])
			ev->flags |= TFT_F_CAPTURED;
	}
	free(open);
	free(has);
	free(first);
	return rc;
}

static int finish_process(struct tfh_builder *b, uint32_t i, int64_t start)
{
	struct tfh_run *run = b->run;
	struct tfh_built_proc *p = &run->built->proc[i];
	int rc;

	move_times(p, &run->proc[i].pub, start);
	rc = tfh_order_events(p, run->n_thread);
	if (!rc)
		rc = tfh_join_ops(p);
	if (!rc)
		rc = tfh_name_calls(b, i, p, run->n_thread);
	if (!rc && captures(p))
		rc = mark_captured(b, i);
	if (!rc)
		rc = add_whole_span(b, i);
	run->proc[i].pub.events = p->n_ev;
	if (run->proc[i].pub.last_ns > run->wall)
		run->wall = run->proc[i].pub.last_ns;
	run->end_ns = run->wall;
	return rc;
}

static bool communicates(const struct tfh_built_proc *p)
{
	for (uint32_t k = 0; k < p->n_op; k++)
		if (p->op[k].communication)
			return true;
	return false;
}

/* Processes without numbers that were recorded at one time, and all of which exchange data, are the
 * ranks of one job. (nsys' export tells which devices they use, and has a rule of its own.) */
static void number_ranks(struct tfh_run *run)
{
	int64_t began = INT64_MIN, ended = INT64_MAX;

	if (run->source == TFH_SRC_NSYS)
		return;
	for (uint32_t i = 0; i < run->n_proc; i++) {
		const struct tfh_process *p = &run->proc[i].pub;
		if (p->rank >= 0 || !communicates(&run->built->proc[i]))
			return;
		began = p->start_ns > began ? p->start_ns : began;
		ended = p->last_ns < ended ? p->last_ns : ended;
	}
	for (uint32_t i = 0; i < run->n_proc && run->n_proc > 1 && began < ended; i++) {
		run->proc[i].pub.rank = (int32_t)i;
		run->proc[i].pub.world = (int32_t)run->n_proc;
	}
}

int tfh_build_run(struct tfh_builder *b, struct tfh_run **out, struct tfh_err *err)
{
	struct tfh_run *run = b->run;
	int64_t start = earliest(run);
	int rc = 0;

	*out = NULL;
	if (!run->start_realtime && start > UNIX_2001)
		run->start_realtime = start;
	for (uint32_t i = 0; i < run->n_proc && !rc; i++)
		rc = finish_process(b, i, start);
	number_ranks(run);
	run->process = calloc(run->n_proc + 1, sizeof(*run->process));
	if (rc || !run->process)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < run->n_proc; i++)
		run->process[i] = run->proc[i].pub;
	if (run->n_proc)
		run->host = run->proc[0].pub.host;
	run->end = TFH_END_NONE;
	free_tables(b);
	free(b);
	*out = run;
	return 0;
}
