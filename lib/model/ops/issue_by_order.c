/*
 * Matches ops with the host calls that issued them where CUPTI recorded no calls (CUDA 11, and 12
 * before 12.6). Correlation numbers grow with every call of the process. So among ops of one kind
 * (a kernel's name, a copy's size) the op with the i-th smallest number was issued by the i-th call
 * of that kind, whatever the stream and the thread. Ops arrive in order of their start; as many are
 * held back as can overtake each other (a stream queues a thousand).
 *
 * Only calls that several threads made at the same time are ambiguous: which of them took its
 * number first is not recorded (calls_by_order.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "model/ops/calls_by_order.h"

#define HELD 32768u /* ops held back */
/* more kinds share entries: a shared entry's numbers and calls are still in order */
#define KINDS 4096u
#define ISSUES (1u << 18)
#define NEAR 64u /* how many numbers away a neighbour is searched */
/* A call is recorded when it ends: a synchronous copy after the copy, a launch before or a little
 * after the kernel begins, later if its thread was descheduled. */
#define WAIT_NS 100000000

struct kind {
	struct tfh_calls calls;
	uint32_t *heap; /* heap of numbers, the smallest on top */
	uint32_t n_heap, cap_heap;
	int64_t unsure; /* until calls are read up to here, some unmatched calls may be missing */
};

enum order_state { EMPTY, WAITING, KNOWN, NONE };
struct order_slot {
	uint32_t number;
	uint8_t state;
	bool copy; /* or memset: the call may wait for the op's end */
	bool node; /* node of a graph: its stream is not that of the graph's launch */
	union {
		struct tfh_issue issue; /* valid if KNOWN */
		struct {		/* valid while WAITING */
			int64_t t0, t1;
			uint32_t stream;
		} op;
	};
};

struct tfh_by_order {
	struct tfh_op *op; /* ring */
	uint32_t *of;	   /* kind of each */
	uint32_t first, n;
	struct kind *kind;
	struct order_slot *slot;
	struct tfh_streams streams;
	int64_t begin; /* earlier calls are not known */
	bool silent;   /* no call is known until the next tfh_by_order_begin */
	bool alone;    /* one thread made all calls */
};

int tfh_by_order_open(bool alone, struct tfh_by_order **out)
{
	struct tfh_by_order *r = calloc(1, sizeof(*r));

	*out = NULL;
	if (!r)
		return -ENOMEM;
	r->begin = INT64_MIN;
	r->alone = alone;
	r->op = malloc(HELD * sizeof(*r->op));
	r->of = malloc(HELD * sizeof(*r->of));
	r->kind = calloc(KINDS, sizeof(*r->kind));
	r->slot = calloc(ISSUES, sizeof(*r->slot));
	if (!r->op || !r->of || !r->kind || !r->slot) {
		tfh_by_order_close(r);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < KINDS; i++)
		r->kind[i].unsure = INT64_MIN;
	*out = r;
	return 0;
}

void tfh_by_order_close(struct tfh_by_order *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; r->kind && i < KINDS; i++) {
		tfh_calls_free(&r->kind[i].calls);
		free(r->kind[i].heap);
	}
	free(r->op);
	free(r->of);
	free(r->kind);
	free(r->slot);
	free(r);
}

/* ---- calls ---- */

int tfh_by_order_call(struct tfh_by_order *r, uint32_t kind, const struct tfh_issue *issue,
		      uint32_t stream)
{
	struct tfh_made c = {*issue, stream};

	return issue->t0 < r->begin ? 0 : tfh_calls_add(&r->kind[kind % KINDS].calls, &c);
}

void tfh_by_order_silence(struct tfh_by_order *r)
{
	r->silent = true;
}

void tfh_by_order_begin(struct tfh_by_order *r, int64_t t)
{
	r->silent = false;
	for (uint32_t i = 0; i < KINDS; i++) {
		tfh_calls_begin(&r->kind[i].calls, t);
		r->kind[i].unsure = INT64_MIN;
	}
	r->begin = t;
}

/* ---- numbers of one kind ---- */

static int push(struct kind *k, uint32_t number)
{
	uint32_t i;

	if (k->n_heap == k->cap_heap) {
		uint32_t cap = k->cap_heap ? k->cap_heap * 2 : 32;
		uint32_t *v = realloc(k->heap, cap * sizeof(*v));
		if (!v)
			return -ENOMEM;
		k->heap = v;
		k->cap_heap = cap;
	}
	for (i = k->n_heap++; i && k->heap[(i - 1) / 2] > number; i = (i - 1) / 2)
		k->heap[i] = k->heap[(i - 1) / 2];
	k->heap[i] = number;
	return 0;
}

static uint32_t pop(struct kind *k)
{
	uint32_t top = k->heap[0], last = k->heap[--k->n_heap], i = 0;

	for (uint32_t child; (child = 2 * i + 1) < k->n_heap; i = child) {
		child += child + 1 < k->n_heap && k->heap[child + 1] < k->heap[child];
		if (k->heap[child] >= last)
			break;
		k->heap[i] = k->heap[child];
	}
	k->heap[i] = last;
	return top;
}

/* ---- ops ---- */

bool tfh_by_order_full(const struct tfh_by_order *r)
{
	return r->n == HELD;
}

int tfh_by_order_add(struct tfh_by_order *r, uint32_t kind, const struct tfh_op *op)
{
	uint32_t at = (r->first + r->n++) % HELD;
	struct order_slot *s = &r->slot[op->correlation % ISSUES];

	r->op[at] = *op;
	r->of[at] = kind % KINDS;
	if (s->state != EMPTY && s->number == op->correlation)
		return 0; /* another node of the same graph launch */
	*s = (struct order_slot){.number = op->correlation,
				 .state = WAITING,
				 .copy = op->kind == TFH_OP_COPY || op->kind == TFH_OP_MEMSET,
				 .node = op->graph || op->node,
				 .op = {op->t0, op->t1, op->stream}};
	return push(&r->kind[kind % KINDS], op->correlation);
}

const struct tfh_op *tfh_by_order_first(const struct tfh_by_order *r)
{
	return r->n ? &r->op[r->first] : NULL;
}

/* The call of the nearest number in one direction whose call is known. */
static const struct tfh_issue *neighbour(const struct tfh_by_order *r, uint32_t number,
					 uint32_t step)
{
	for (uint32_t i = 1; i <= NEAR; i++) {
		const struct order_slot *s = &r->slot[(number + i * step) % ISSUES];
		if (s->state == KNOWN && s->number == number + i * step)
			return &s->issue;
	}
	return NULL;
}

/* ---- joining numbers and calls ---- */

/* All calls up to this time must have been read for the call of a number to be among them. */
static int64_t known_by(const struct order_slot *s)
{
	return (s->copy ? s->op.t1 : s->op.t0) + WAIT_NS;
}

static bool is_known(const struct tfh_by_order *r, const struct kind *k, const struct order_slot *s,
		     int64_t now)
{
	/* Or else another thread's first launch of this kind would have to take that long. */
	return now > known_by(s) || r->alone || (!s->copy && !k->calls.several && k->calls.n);
}

/* Finds the call of a kind's next number. */
static void settle(struct tfh_by_order *r, struct kind *k, int64_t now)
{
	uint32_t number = pop(k), stream;
	struct order_slot *s = &r->slot[number % ISSUES];
	struct tfh_sought q;
	struct tfh_made c;

	if (s->number != number || s->state != WAITING) {
		tfh_calls_add_unmatched(&k->calls, NULL); /* the slot was reused */
		return;
	}
	s->state = NONE;
	stream = s->op.stream;
	q = (struct tfh_sought){.below = neighbour(r, number, UINT32_MAX),
				.above = neighbour(r, number, 1),
				.start = s->op.t0,
				.stream = s->node ? NULL : &stream};
	if (r->silent || q.start < r->begin)
		return;
	if (!is_known(r, k, s, now) && known_by(s) > k->unsure)
		k->unsure = known_by(s);
	if (now <= k->unsure) {
		tfh_calls_add_unmatched(&k->calls, q.stream);
		return;
	}
	if (!tfh_calls_find(&k->calls, &r->streams, &q, &c))
		return;
	if (q.stream)
		tfh_streams_set(&r->streams, stream, c.stream);
	s->issue = c.issue;
	s->state = KNOWN;
}

static struct kind *kind_of_first(const struct tfh_by_order *r)
{
	return &r->kind[r->of[r->first]];
}

bool tfh_by_order_needs(const struct tfh_by_order *r, int64_t *now)
{
	const struct tfh_op *op = &r->op[r->first];
	const struct kind *k = kind_of_first(r);
	const struct order_slot *s = &r->slot[op->correlation % ISSUES];

	if (s->number != op->correlation || s->state != WAITING || !k->n_heap)
		return false;
	/* Smaller numbers come first; but a number whose op starts much later does not hold up this
	 * one. */
	*now = op->t1 + 2 * WAIT_NS;
	s = &r->slot[k->heap[0] % ISSUES];
	if (s->number == k->heap[0] && s->state == WAITING && known_by(s) < *now)
		*now = known_by(s);
	return true;
}

void tfh_by_order_settle(struct tfh_by_order *r, int64_t now)
{
	settle(r, kind_of_first(r), now);
}

bool tfh_by_order_take(struct tfh_by_order *r, struct tfh_op *op, struct tfh_issue *issue)
{
	const struct order_slot *s;

	*op = r->op[r->first];
	r->first = (r->first + 1) % HELD;
	r->n--;
	s = &r->slot[op->correlation % ISSUES];
	if (s->number != op->correlation || s->state != KNOWN)
		return false;
	*issue = s->issue;
	return true;
}
