/*
 * A profile for pprof: for each stack of calls and ranges of a thread their number and the time
 * outside of inner ones, for each device op its time below the call that issued it, and lines of
 * Python with their time per step.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "export/naming.h"
#include "export/pprof_stacks.h"
#include "export/walk.h"
#include "export/writers.h"
#include "tfhook/version.h"

#define DEPTH 256u /* calls inside one another; deeper ones count as the innermost of these */

struct open_call {
	int64_t t1, inner; /* inner: end of the inner calls so far */
	uint32_t stack;
};

struct pprof_thread {
	TFH_VEC(struct open_call) open; /* each inside the one before it */
	uint32_t place;
};

struct pprof_out {
	const struct tfh_export *x;
	struct tfh_pprof p;
	const struct tfh_thread_info *info;
	struct pprof_thread *thread;
	uint32_t n_thread;
	struct tfh_pprof_place process; /* its labels */
	bool ops;
	/* By the id of a call of the process: its stack, if it issues work. */
	TFH_VEC(uint32_t) issued;
};

static uint32_t number_text(struct pprof_out *o, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	return tfh_pprof_text(&o->p, text);
}

static int put_process(void *arg, uint32_t process, const struct tfh_process *p)
{
	struct pprof_out *o = arg;

	o->issued.n = 0;
	o->process = (struct tfh_pprof_place){
		.rank = p->rank >= 0 ? number_text(o, p->rank) : 0,
		.pid = number_text(o, tfh_export_pid(o->x, process)),
	};
	return 0;
}

/* ---- calls ---- */

static uint32_t place_of(struct pprof_out *o, uint32_t thread)
{
	struct tfh_pprof_place place = o->process;
	const char *name = tfh_export_thread(o->x, thread);
	char text[256];

	if (o->thread[thread].place)
		return o->thread[thread].place;
	snprintf(text, sizeof(text), "%s%s%u", name ? name : "", name && *name ? " " : "",
		 tfh_export_tid(o->x, thread));
	place.thread = tfh_pprof_text(&o->p, text);
	o->thread[thread].place = tfh_pprof_place(&o->p, &place);
	return o->thread[thread].place;
}

/* The innermost open call that encloses one which ends at t1. Calls come in order of their begin,
 * so one that ends earlier has no further inner calls. */
static struct open_call *around(struct pprof_thread *t, int64_t t1)
{
	while (t->open.n && t->open.v[t->open.n - 1].t1 < t1)
		t->open.n--;
	return t->open.n ? &t->open.v[t->open.n - 1] : NULL;
}

/* Keeps the stack of a call that issues work for its ops. */
static int keep(struct pprof_out *o, uint64_t call, uint32_t stack)
{
	while (o->issued.n <= call) {
		if (TFH_PUSH_BIG(o->issued, 0))
			return -ENOMEM;
		tfh_big_pass(o->issued.n);
	}
	o->issued.v[call] = stack;
	return 0;
}

static int put_call(void *arg, const struct tfh_walk_call *call)
{
	struct pprof_out *o = arg;
	const struct tfh_event *ev = call->ev;
	struct pprof_thread *t = &o->thread[ev->thread];
	int64_t t1 = ev->t1 > ev->t0 ? ev->t1 : ev->t0;

	if (ev->kind == TFT_MARK || ev->kind == TFT_AGG)
		return 0;
	struct open_call *outer = around(t, t1);
	if (t->open.n == DEPTH)
		return tfh_export_issues(ev) ? keep(o, call->id, outer->stack) : 0;
	uint32_t stack =
		tfh_pprof_stack(&o->p, outer ? outer->stack : 0,
				tfh_pprof_frame(&o->p, call->name, "", 0), place_of(o, ev->thread));
	tfh_pprof_add(&o->p, stack, TFH_PPROF_CALLS, 1);
	tfh_pprof_add(&o->p, stack, TFH_PPROF_HOST, t1 - ev->t0);
	if (outer && outer->inner < t1) {
		int64_t from = outer->inner > ev->t0 ? outer->inner : ev->t0;
		tfh_pprof_add(&o->p, outer->stack, TFH_PPROF_HOST, from - t1);
		outer->inner = t1;
	}
	struct open_call open = {.t1 = t1, .inner = ev->t0, .stack = stack};
	int rc = TFH_PUSH(t->open, open);
	return rc || !tfh_export_issues(ev) ? rc : keep(o, call->id, stack);
}

/* ---- ops ---- */

static int put_op(void *arg, const struct tfh_op *op, uint64_t call)
{
	struct pprof_out *o = arg;
	char room[TFH_EXPORT_NAME];
	uint32_t parent = call < o->issued.n ? o->issued.v[call] : 0;

	if (op->kind == TFH_OP_SYNC)
		return 0;
	struct tfh_pprof_place place = o->process;
	uint32_t thread = parent ? o->p.node.v[parent - 1].place : 0;
	if (thread)
		place = o->p.place.v[thread - 1];
	place.device = number_text(o, op->device);
	place.stream = number_text(o, op->stream);
	const char *name = tfh_export_full_name(room, tfh_export_op_name(op));
	uint32_t stack = tfh_pprof_stack(&o->p, parent, tfh_pprof_frame(&o->p, name, "", 0),
					 tfh_pprof_place(&o->p, &place));
	tfh_pprof_add(&o->p, stack, TFH_PPROF_OPS, 1);
	tfh_pprof_add(&o->p, stack, TFH_PPROF_DEVICE, op->t1 > op->t0 ? op->t1 - op->t0 : 0);
	o->ops = true;
	tfh_big_pass(op->number);
	return 0;
}

/* ---- lines of Python ---- */

/* Those of all judged steps; nodes come after their parents. */
static int put_lines(struct pprof_out *o, const struct tfh_seen_node *node, uint32_t n,
		     const char *thread)
{
	struct tfh_pprof_place place = {.thread = tfh_pprof_text(&o->p, thread)};
	uint32_t *stack = calloc(n + 1, sizeof(*stack));

	if (!stack)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t frame =
			tfh_pprof_frame(&o->p, node[i].function, node[i].file, node[i].line);
		stack[i] = tfh_pprof_stack(&o->p, node[i].parent != i ? stack[node[i].parent] : 0,
					   frame, tfh_pprof_place(&o->p, &place));
		tfh_pprof_add(&o->p, stack[i], TFH_PPROF_PYTHON,
			      (int64_t)(node[i].own_s * 1e9 + 0.5));
	}
	free(stack);
	return 0;
}

static int put_python(struct pprof_out *o)
{
	const struct tfh_findings *found = &o->x->result->found;
	int rc = 0;

	if (!o->x->part && !o->x->hidden) {
		rc = put_lines(o, found->node, found->n_node, "");
		if (!rc)
			rc = put_lines(o, found->workers.node, found->workers.n_node, "(workers)");
	}
	return rc;
}

/* ---- the file ---- */

static int finish(struct pprof_out *o, FILE *out)
{
	const struct tfh_result *r = o->x->result;
	const char *cls = tfh_class_name(r->verdict.cls), *cause = tfh_cause_name(r->verdict.cause);
	char comment[256];
	int64_t t0, t1;
	struct tfh_pprof_head head = {.shown = o->ops ? TFH_PPROF_DEVICE : TFH_PPROF_HOST,
				      .comment = comment};

	tfh_export_span(o->x, r->process, &t0, &t1);
	t0 = t0 > 0 ? t0 : 0;
	if (t1 > tfh_run_end_ns(o->x->run))
		t1 = tfh_run_end_ns(o->x->run);
	head.start_ns = tfh_export_start_ns(o->x) ? tfh_export_start_ns(o->x) + t0 : 0;
	head.duration_ns = t1 > t0 ? t1 - t0 : 0;
	snprintf(comment, sizeof(comment), "tfhook " TFHOOK_VERSION ": %s%s%s, %llu steps",
		 cls ? cls : "no verdict", cause ? ", " : "", cause ? cause : "",
		 (unsigned long long)r->steps.count);
	return tfh_pprof_write(&o->p, &head, out);
}

int tfh_write_pprof(const struct tfh_export *x, FILE *out, struct tfh_err *err)
{
	static const struct tfh_walker walker = {
		.process = put_process, .call = put_call, .op = put_op};
	struct pprof_out o = {.x = x};
	int rc;

	o.n_thread = tfh_run_threads(x->run, &o.info);
	o.thread = calloc(o.n_thread + 1, sizeof(*o.thread));
	rc = o.thread ? tfh_walk(x, &walker, &o, err) : -ENOMEM;
	if (!rc)
		rc = put_python(&o);
	if (!rc)
		rc = finish(&o, out);
	for (uint32_t i = 0; o.thread && i < o.n_thread; i++)
		free(o.thread[i].open.v);
	free(o.thread);
	tfh_big_free(o.issued.v);
	tfh_pprof_free(&o.p);
	return rc == -ENOMEM ? tfh_err_set(err, rc, "out of memory") : rc;
}
