/*
 * Anchors of collectives: when a rank entered and left every 2^k-th collective of a communicator,
 * and its last one. All ranks number a communicator's collectives alike, so the digests of two
 * hosts have anchors in common, even if k differs. That is enough to align clocks, to find late
 * ranks, and to see how far a hanging rank has come. In its slowest steps, a rank keeps more: they
 * show which rank made a single step slow. Times are those of the collective's kernel if device
 * times are known: a call of NCCL only queues it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "digest/digest_out.h"
#include "model/ops/collectives.h"

/* A rank may have one anchor per step, and this many if it has fewer steps. */
#define ANCHORS_LEAST 256u
#define ANCHORS_MOST (1u << 20)
#define COMMUNICATORS 256u
#define SLOW_MOST 1024u /* of the slowest steps */

struct communicator {
	struct tfh_digest_comm row;
	struct tfh_digest_anchor last; /* number 0: none */
	uint32_t kept;
	uint32_t mask; /* numbers with none of these bits are kept */
	uint32_t step; /* the slow step of its last collective, UINT32_MAX: none */
	bool more;     /* `last` is not the first one in that step */
};

struct anchor_list {
	struct tfh_digest_anchor *v;
	struct communicator comm[COMMUNICATORS];
	uint32_t n, most, comms;
	uint32_t rank; /* number of DRNK */
	const struct tfh_slow_steps *slow;
	struct tfh_digest_anchor of_slow[SLOW_MOST];
	uint32_t n_slow;
};

static struct communicator *communicator_of(struct anchor_list *x, uint64_t key)
{
	for (uint32_t i = 0; i < x->comms; i++)
		if (x->comm[i].row.key == key)
			return &x->comm[i];
	if (x->comms == COMMUNICATORS)
		return NULL;
	x->comm[x->comms] =
		(struct communicator){.row = {.key = key, .rank = x->rank}, .step = UINT32_MAX};
	return &x->comm[x->comms++];
}

/* Thins out the communicator that has the most anchors, so that those with few collectives keep
 * theirs. */
static bool thin_out(struct anchor_list *x)
{
	struct communicator *c = &x->comm[0];
	uint32_t n = 0;

	for (uint32_t i = 1; i < x->comms; i++)
		if (x->comm[i].kept > c->kept)
			c = &x->comm[i];
	if (c->mask == UINT32_MAX)
		return false;
	c->mask = c->mask * 2 + 1;
	c->kept = 0;
	for (uint32_t i = 0; i < x->n; i++) {
		bool own = x->v[i].key == c->row.key;
		if (own && x->v[i].number & c->mask)
			continue;
		c->kept += own;
		x->v[n++] = x->v[i];
	}
	x->n = n;
	return true;
}

/* Messages between two ranks do not have the same order in all ranks. */
static bool is_message(const struct tfh_event *ev)
{
	return !strcmp(ev->fn->name, "ncclSend") || !strcmp(ev->fn->name, "ncclRecv");
}

static uint64_t after_start(int64_t t)
{
	return t > 0 ? (uint64_t)t : 0;
}

static void keep_slow(struct anchor_list *x, const struct tfh_digest_anchor *a)
{
	if (x->n_slow < SLOW_MOST)
		x->of_slow[x->n_slow++] = *a;
}

/* Which collective is the last of a slow step is known when the next one is not in that step. */
static void end_slow_step(struct anchor_list *x, struct communicator *c)
{
	if (c->step != UINT32_MAX && c->more)
		keep_slow(x, &c->last);
	c->more = false;
}

static void note_slow_step(struct anchor_list *x, struct communicator *c, uint32_t step,
			   const struct tfh_digest_anchor *a)
{
	if (step != c->step)
		end_slow_step(x, c);
	if (step != UINT32_MAX && step != c->step)
		keep_slow(x, a);
	else
		c->more = step != UINT32_MAX;
	c->step = step;
}

static void add_anchor(struct anchor_list *x, struct communicator *c, const struct tfh_event *ev)
{
	uint32_t number = (uint32_t)ev->w[2];
	const struct tfh_digest_anchor a = {.enter_ns = after_start(ev->t0),
					    .leave_ns = after_start(ev->t1),
					    .key = ev->w[1],
					    .number = number,
					    .rank = x->rank};

	note_slow_step(x, c, tfh_slow_steps_at(x->slow, ev->t0), &a);
	c->last = a;
	while (!(number & c->mask) && x->n == x->most)
		if (!thin_out(x))
			return;
	if (number & c->mask)
		return;
	x->v[x->n++] = c->last;
	c->kept++;
}

static void add_call(struct anchor_list *x, const struct tfh_event *ev)
{
	bool begins = tfh_starts_with(ev->fn->name, "ncclCommInit");
	struct communicator *c;

	if (ev->fn->family != TFH_FAM_COMMUNICATION || ev->kind != TFT_CALL || !ev->w[1])
		return;
	if (!begins && (ev->fn->args != TFH_ARGS_COLLECTIVE || !(uint32_t)ev->w[2]))
		return;
	c = communicator_of(x, ev->w[1]);
	if (!c)
		return;
	if (begins) {
		c->row.own = (uint32_t)ev->w[2] + 1;
		c->row.ranks = (uint32_t)(ev->w[2] >> 32);
	} else if (is_message(ev)) {
		c->row.messages++;
	} else {
		c->row.collectives++;
		add_anchor(x, c, ev);
	}
}

static void note_idle(struct tfh_digest_idle *idle, const struct tfh_event *ev)
{
	if (ev->kind == TFT_CALL && !ev->depth && ev->t1 >= idle->begin) {
		idle->begin = ev->t1;
		idle->thread = ev->thread;
		idle->sample = 0;
		idle->place = idle->state = 0;
	} else if (ev->kind == TFT_STATE && ev->thread == idle->thread && ev->t1 > idle->begin) {
		idle->sample = ev->t1;
		idle->state = ev->result;
		idle->place = ev->stack ? ev->stack : idle->place;
	}
	tfh_last_seen_note(&idle->seen, ev);
}

static bool is_kept(const struct anchor_list *x, const struct tfh_digest_anchor *a)
{
	for (uint32_t i = 0; i < x->comms; i++)
		if (x->comm[i].row.key == a->key)
			return !(a->number & x->comm[i].mask) ||
			       a->number == x->comm[i].last.number;
	return false;
}

/* There is room for them beyond `most`. */
static void add_slow_ones(struct anchor_list *x)
{
	for (uint32_t i = 0; i < x->comms; i++)
		end_slow_step(x, &x->comm[i]);
	for (uint32_t i = 0; i < x->n_slow; i++)
		if (!is_kept(x, &x->of_slow[i]))
			x->v[x->n++] = x->of_slow[i];
}

static void add_last_ones(struct anchor_list *x)
{
	for (uint32_t i = 0; i < x->comms; i++)
		if (x->comm[i].last.number & x->comm[i].mask)
			x->v[x->n++] = x->comm[i].last;
}

/* ---- device times ---- */

struct named_anchor {
	uint64_t id; /* as of tfh_collective_at() */
	uint32_t at;
};

static int by_id(const void *a, const void *b)
{
	const struct named_anchor *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static struct tfh_digest_anchor *anchor_of(const struct anchor_list *x,
					   const struct named_anchor *name, uint64_t id)
{
	uint32_t from = 0, to = x->n;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;
		if (name[middle].id < id)
			from = middle + 1;
		else
			to = middle;
	}
	return from < x->n && name[from].id == id ? &x->v[name[from].at] : NULL;
}

/* A collective may take several kernels: from the first one's begin to the last one's end. */
static void use_kernel(struct tfh_digest_anchor *a, const struct tfh_op *op)
{
	uint64_t enter = after_start(op->t0), leave = after_start(op->t1);

	if (!a->device || enter < a->enter_ns)
		a->enter_ns = enter;
	if (!a->device || leave > a->leave_ns)
		a->leave_ns = leave;
	a->device = 1;
}

static int use_device_times(struct anchor_list *x, struct tfh_collectives *calls,
			    struct tfh_run *run, uint32_t process)
{
	struct tfh_gpu_info gpu;
	const struct tfh_op *op;
	struct tfh_ops *ops;

	tfh_run_gpu(run, process, &gpu);
	if (gpu.source == TFH_GPU_NONE || !x->n)
		return 0;
	struct named_anchor *name = malloc(x->n * sizeof(*name));
	if (!name)
		return -ENOMEM;
	for (uint32_t i = 0; i < x->n; i++)
		name[i] = (struct named_anchor){tfh_hash_add(x->v[i].key, x->v[i].number) | 1, i};
	qsort(name, x->n, sizeof(*name), by_id);
	int rc = tfh_ops_open(run, process, &ops, NULL);
	while (!rc && (op = tfh_ops_borrow(ops))) {
		uint64_t id =
			op->communication ? tfh_collective_at(calls, op->thread, op->issue0) : 0;
		struct tfh_digest_anchor *a = id ? anchor_of(x, name, id) : NULL;
		if (a)
			use_kernel(a, op);
	}
	if (!rc) {
		rc = tfh_ops_error(ops, NULL);
		tfh_ops_close(ops);
	}
	free(name);
	return rc;
}

/* ---- one rank ---- */

static int keep_communicators(struct tfh_digest_out *o, const struct anchor_list *x)
{
	struct tfh_digest_comm *grown =
		realloc(o->comm, (o->comms + x->comms + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	o->comm = grown;
	for (uint32_t i = 0; i < x->comms && o->comms < TFH_DIGEST_ROWS; i++)
		o->comm[o->comms++] = x->comm[i].row;
	return 0;
}

static int put_list(struct tfh_digest_out *o, const struct anchor_list *x)
{
	int rc = keep_communicators(o, x);

	for (uint32_t at = 0; at < x->n && !rc; at += TFH_DIGEST_ROWS) {
		uint32_t n = x->n - at < TFH_DIGEST_ROWS ? x->n - at : TFH_DIGEST_ROWS;
		rc = tfh_digest_put(o, TFT_DCOL, &tfh_digest_anchors, x->v + at, n);
	}
	return rc;
}

static int read_anchors(struct anchor_list *x, struct tfh_collectives *calls, struct tfh_run *run,
			uint32_t process, struct tfh_digest_idle *idle)
{
	const struct tfh_event *ev;
	struct tfh_merge *m;
	int rc = tfh_merge_open(run, process, &m, NULL);

	if (rc)
		return rc;
	while (!rc && (ev = tfh_merge_borrow(m))) {
		rc = tfh_collectives_add(calls, ev);
		add_call(x, ev);
		note_idle(idle, ev);
	}
	if (!rc)
		rc = tfh_merge_error(m, NULL);
	tfh_merge_close(m);
	add_slow_ones(x);
	add_last_ones(x);
	return rc;
}

int tfh_digest_put_anchors(struct tfh_digest_out *o, struct tfh_run *run, uint32_t process,
			   uint32_t rank, uint64_t steps, const struct tfh_slow_steps *slow,
			   struct tfh_digest_idle *idle)
{
	struct anchor_list *x = calloc(1, sizeof(*x));
	struct tfh_collectives *calls = tfh_collectives_new();
	int rc = x && calls ? 0 : -ENOMEM;

	if (!rc) {
		x->rank = rank;
		x->slow = slow;
		x->most = steps < ANCHORS_LEAST	 ? ANCHORS_LEAST
			  : steps < ANCHORS_MOST ? (uint32_t)steps
						 : ANCHORS_MOST;
		x->v = malloc((x->most + SLOW_MOST + COMMUNICATORS) * sizeof(*x->v));
		rc = x->v ? read_anchors(x, calls, run, process, idle) : -ENOMEM;
		if (!rc)
			rc = use_device_times(x, calls, run, process);
		if (!rc)
			rc = put_list(o, x);
		free(x->v);
	}
	tfh_collectives_free(calls);
	free(x);
	return rc;
}
