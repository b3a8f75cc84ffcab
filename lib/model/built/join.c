/*
 * Sorts what an importer supplied in any order: events by their end, ops by their start. Finds the
 * call that issued each op.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

#include "model/built/built.h"

struct key {
	int64_t a, b;
	uint32_t i;
};

static int by_key(const void *x, const void *y)
{
	const struct key *p = x, *q = y;

	if (p->a != q->a)
		return p->a < q->a ? -1 : 1;
	if (p->b != q->b)
		return p->b < q->b ? -1 : 1;
	return p->i < q->i ? -1 : p->i > q->i;
}

/* ---- events ---- */

/* The inner of two calls that end in the same nanosecond comes first. */
static int sort_events(struct tfh_built_proc *p)
{
	struct key *key = malloc((p->n_ev + 1) * sizeof(*key));
	struct tfh_event *ev = malloc((p->n_ev + 1) * sizeof(*ev));
	uint32_t *correlation = malloc((p->n_ev + 1) * sizeof(*correlation));
	int rc = key && ev && correlation ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < p->n_ev && !rc; i++)
		key[i] = (struct key){.a = p->ev[i].t1, .b = -p->ev[i].t0, .i = i};
	if (!rc) {
		qsort(key, p->n_ev, sizeof(*key), by_key);
		for (uint32_t i = 0; i < p->n_ev; i++) {
			ev[i] = p->ev[key[i].i];
			correlation[i] = p->correlation[key[i].i];
		}
		free(p->ev);
		free(p->correlation);
		p->ev = ev;
		p->correlation = correlation;
		p->cap_ev = p->cap_correlation = p->n_ev + 1;
	} else {
		free(ev);
		free(correlation);
	}
	free(key);
	return rc;
}

/* Finds the event that encloses each event. Events pass through it in order of their end, the last
 * first, each in a lane (for example one per thread). Only events of one lane can enclose each
 * other. An event is inside all events that end later and begin before its end; the one added last
 * is the innermost. */
struct nesting {
	uint32_t *top;	 /* by lane: event + 1 */
	uint32_t *above; /* by event: the enclosing one, + 1 */
};

static int begin_nesting(struct nesting *n, const struct tfh_built_proc *p, size_t lanes)
{
	n->top = calloc(lanes + 1, sizeof(*n->top));
	n->above = malloc((p->n_ev + 1) * sizeof(*n->above));
	return n->top && n->above ? 0 : -ENOMEM;
}

static void end_nesting(struct nesting *n)
{
	free(n->top);
	free(n->above);
}

/* The event that encloses event i, NULL if none. Makes i the innermost event of its lane. */
static struct tfh_event *nest(struct nesting *n, struct tfh_built_proc *p, uint32_t i, size_t lane)
{
	uint32_t *top = &n->top[lane];

	while (*top && p->ev[*top - 1].t0 >= p->ev[i].t1)
		*top = n->above[*top - 1];
	n->above[i] = *top;
	*top = i + 1;
	return n->above[i] ? &p->ev[n->above[i] - 1] : NULL;
}

/* Depth among the calls of a thread, and among its ranges. */
static int set_depths(struct tfh_built_proc *p, uint32_t n_threads)
{
	struct nesting n;
	int rc = begin_nesting(&n, p, (size_t)n_threads * 2);

	for (uint32_t i = p->n_ev; !rc && i-- > 0;) {
		struct tfh_event *ev = &p->ev[i];
		if (ev->kind == TFT_MARK || ev->t1 == ev->t0)
			continue;
		const struct tfh_event *outer =
			nest(&n, p, i, (size_t)ev->thread * 2 + (ev->kind == TFT_RANGE));
		ev->depth = (uint8_t)(!outer			 ? 0
				      : outer->depth < UINT8_MAX ? outer->depth + 1
								 : UINT8_MAX);
	}
	end_nesting(&n);
	return rc;
}

/* Self time of pipeline stages: a stage's time without that of the stages it called on the same
 * thread. */
static int set_self_times(struct tfh_built_proc *p, uint32_t n_threads)
{
	struct nesting n;
	int rc = begin_nesting(&n, p, n_threads);

	for (uint32_t i = p->n_ev; !rc && i-- > 0;) {
		struct tfh_event *ev = &p->ev[i];
		if (ev->fn->family != TFH_FAM_STAGE || ev->kind != TFT_CALL)
			continue;
		struct tfh_event *outer = nest(&n, p, i, ev->thread);
		ev->w[2] = (uint64_t)(ev->t1 - ev->t0);
		if (outer)
			outer->w[2] -= outer->w[2] < ev->w[2] ? outer->w[2] : ev->w[2];
	}
	end_nesting(&n);
	return rc;
}

static bool is_op(const struct tfh_event *ev)
{
	return ev->kind == TFT_RANGE && ev->w[1] == TFT_RANGE_OP;
}

int tfh_innermost_ops(struct tfh_built_proc *p, uint32_t n_threads, uint32_t *op)
{
	struct nesting n;
	int rc = begin_nesting(&n, p, n_threads);

	for (uint32_t i = p->n_ev; !rc && i-- > 0;) {
		if (!is_op(&p->ev[i]) && p->ev[i].kind != TFT_CALL)
			continue;
		nest(&n, p, i, p->ev[i].thread);
		uint32_t outer = n.above[i];
		while (outer && !is_op(&p->ev[outer - 1]))
			outer = n.above[outer - 1];
		op[i] = outer;
	}
	end_nesting(&n);
	return rc;
}

int tfh_order_events(struct tfh_built_proc *p, uint32_t n_threads)
{
	uint64_t *number = calloc(n_threads + 1, sizeof(*number));
	int rc = number ? sort_events(p) : -ENOMEM;

	for (uint32_t i = 0; i < p->n_ev && !rc; i++)
		p->ev[i].number = number[p->ev[i].thread]++;
	free(number);
	if (!rc)
		rc = set_depths(p, n_threads);
	return rc ? rc : set_self_times(p, n_threads);
}

/* ---- ops ---- */

static int sort_ops(struct tfh_built_proc *p)
{
	struct key *key = malloc((p->n_op + 1) * sizeof(*key));
	struct tfh_op *op = malloc((p->n_op + 1) * sizeof(*op));

	if (!key || !op) {
		free(key);
		free(op);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < p->n_op; i++)
		key[i] = (struct key){.a = p->op[i].t0, .b = p->op[i].t1, .i = i};
	qsort(key, p->n_op, sizeof(*key), by_key);
	for (uint32_t i = 0; i < p->n_op; i++) {
		op[i] = p->op[key[i].i];
		op[i].number = i;
	}
	free(p->op);
	free(key);
	p->op = op;
	p->cap_op = p->n_op + 1;
	return 0;
}

/* Whether a call of this family can have issued an op of this kind. */
static bool issues(uint8_t family, uint8_t kind)
{
	switch (family) {
	case TFH_FAM_LAUNCH: /* a runtime may copy or set memory with a kernel */
	case TFH_FAM_GRAPH_LAUNCH:
		return true;
	case TFH_FAM_COPY:
		return kind == TFH_OP_COPY || kind == TFH_OP_KERNEL;
	case TFH_FAM_MEMSET:
		return kind == TFH_OP_MEMSET || kind == TFH_OP_KERNEL;
	case TFH_FAM_MANAGED:
		return kind == TFH_OP_COPY;
	case TFH_FAM_SYNC:
	case TFH_FAM_STREAM_WAIT:
	case TFH_FAM_EVENT:
		return kind == TFH_OP_SYNC;
	}
	return false;
}

/* Copies to the call what only the device's record says about it. */
static void complete_call(struct tfh_event *ev, const struct tfh_op *op)
{
	if (!ev->stream)
		ev->stream = op->stream;
	if (!ev->ctx)
		ev->ctx = op->ctx;
	if (ev->fn->family == TFH_FAM_COPY && op->kind == TFH_OP_COPY) {
		if (!ev->w[0])
			ev->w[0] = op->bytes;
		ev->dir = op->dir;
		ev->pageable = op->pageable;
	} else if (ev->fn->family == TFH_FAM_MEMSET && !ev->w[0]) {
		ev->w[0] = op->bytes;
	} else if (ev->fn->family == TFH_FAM_LAUNCH && op->kind == TFH_OP_KERNEL && !ev->w[1]) {
		ev->w[1] = op->grid;
		ev->w[2] = op->block;
	}
}

static void join(struct tfh_op *op, struct tfh_event *ev)
{
	op->issue0 = ev->t0;
	op->issue1 = ev->t1;
	op->thread = ev->thread;
	op->call = ev->number;
	complete_call(ev, op);
}

/* Index of events by correlation id. If several have the same id (a runtime call and the driver
 * call inside it), takes the one that launches; of several such, the outermost, which ends last. */
static uint32_t *index_calls(const struct tfh_built_proc *p, uint32_t *mask)
{
	uint32_t size = 1024;
	uint32_t *v;

	while (size < p->n_ev * 2 && size < 1u << 31)
		size *= 2;
	*mask = size - 1;
	v = calloc(size, sizeof(*v));
	for (uint32_t i = 0; v && i < p->n_ev; i++) {
		if (!p->correlation[i] || p->ev[i].kind != TFT_CALL)
			continue;
		uint32_t at = (uint32_t)tfh_hash_u64(p->correlation[i]) & *mask;
		while (v[at] && p->correlation[v[at] - 1] != p->correlation[i])
			at = (at + 1) & *mask;
		if (!v[at] || tfh_family_issues(p->ev[i].fn->family) ||
		    !tfh_family_issues(p->ev[v[at] - 1].fn->family))
			v[at] = i + 1;
	}
	return v;
}

static int join_by_correlation(struct tfh_built_proc *p)
{
	uint32_t mask;
	uint32_t *v = index_calls(p, &mask);

	if (!v)
		return -ENOMEM;
	for (uint32_t k = 0; k < p->n_op; k++) {
		struct tfh_op *op = &p->op[k];
		op->issue0 = op->issue1 = INT64_MIN;
		op->thread = UINT32_MAX;
		op->call = UINT64_MAX;
		if (!op->correlation)
			continue;
		uint32_t at = (uint32_t)tfh_hash_u64(op->correlation) & mask;
		while (v[at] && p->correlation[v[at] - 1] != op->correlation)
			at = (at + 1) & mask;
		if (v[at] && issues(p->ev[v[at] - 1].fn->family, op->kind))
			join(op, &p->ev[v[at] - 1]);
	}
	free(v);
	return 0;
}

/* Whether all ops of a kind without a correlation id ran in one stream, where ops run in the order
 * of their calls. */
static uint32_t in_one_stream(const struct tfh_built_proc *p, uint8_t kind)
{
	const struct tfh_op *first = NULL;
	uint32_t n = 0;

	for (uint32_t k = 0; k < p->n_op; k++) {
		const struct tfh_op *op = &p->op[k];
		if (op->kind != kind || op->correlation)
			continue;
		if (first && (first->stream != op->stream || first->device != op->device))
			return 0;
		first = op;
		n++;
	}
	return n;
}

/* Joins ops without correlation ids by order, if there are as many calls as ops and only one
 * stream. Otherwise their calls stay unknown. */
static int join_by_order(struct tfh_built_proc *p, uint8_t kind, uint8_t family)
{
	uint32_t n = in_one_stream(p, kind), calls = 0, at = 0;
	struct key *key = n ? malloc((p->n_ev + 1) * sizeof(*key)) : NULL;

	if (!n)
		return 0;
	if (!key)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_ev; i++)
		if (!p->correlation[i] && p->ev[i].kind == TFT_CALL &&
		    p->ev[i].fn->family == family && !p->ev[i].result)
			key[calls++] = (struct key){.a = p->ev[i].t0, .i = i};
	qsort(key, calls, sizeof(*key), by_key);
	for (uint32_t k = 0; k < p->n_op && calls == n; k++)
		if (p->op[k].kind == kind && !p->op[k].correlation)
			join(&p->op[k], &p->ev[key[at++].i]);
	free(key);
	return 0;
}

/* Correlation ids grow with each call: an op with a smaller id than any recorded call's was queued
 * before the recording began. Managed memory also moves without a call, when it is accessed. */
static void count_unissued(struct tfh_built_proc *p)
{
	uint32_t first = UINT32_MAX;

	for (uint32_t k = 0; k < p->n_op; k++)
		if (p->op[k].thread != UINT32_MAX && p->op[k].correlation &&
		    p->op[k].correlation < first)
			first = p->op[k].correlation;
	for (uint32_t k = 0; k < p->n_op; k++) {
		const struct tfh_op *op = &p->op[k];
		bool unknown = op->thread == UINT32_MAX && op->kind != TFH_OP_SYNC && !op->managed;
		bool early = first != UINT32_MAX && op->correlation && op->correlation < first;
		p->unissued += unknown;
		p->early += unknown && early;
	}
}

int tfh_join_ops(struct tfh_built_proc *p)
{
	int rc = sort_ops(p);

	if (!rc)
		rc = join_by_correlation(p);
	if (!rc)
		rc = join_by_order(p, TFH_OP_KERNEL, TFH_FAM_LAUNCH);
	if (!rc)
		rc = join_by_order(p, TFH_OP_COPY, TFH_FAM_COPY);
	if (!rc)
		rc = join_by_order(p, TFH_OP_MEMSET, TFH_FAM_MEMSET);
	count_unissued(p);
	free(p->correlation);
	p->correlation = NULL;
	return rc;
}
