/*
 * Which host call issued an op, where CUPTI recorded no calls (CUDA 11, 12 before 12.6). Its
 * correlation numbers grow with every call, in the whole process: so of one kind (a kernel's name,
 * a copy's bytes) the op with the i-th smallest number is of the i-th call, whatever streams they
 * ran in and whichever threads made them. Ops come by their start, so as many are held back as may
 * overtake each other: a stream holds a thousand.
 *
 * In doubt are only calls that threads made at the same time: which of them the driver took first
 * is not on record. Where their streams differ, and the op's stream is known from others, that
 * tells; else they stay without their ops. A number between two whose calls are known has its call
 * between those: that shows calls that had no op, and ops whose call is missing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#include "model/ops/device_ops.h"

#define HELD 32768u /* ops */
#define KINDS 4096u /* more share: their numbers and calls are in order all the same */
#define ISSUES (1u << 18)
#define CALLS (1u << 17) /* of a kind, ahead of the device */
#define NEAR 64u	 /* how far neighbours are looked for */
#define TOLERANCE_NS 5000
/* A synchronous copy's call ends after the copy; another thread's call that waited for room in a
 * queue is on record that much later, mostly. */
#define BEHIND_NS 1000000
#define WAIT_NS 100000000

struct made {
	struct tfh_issue issue;
	uint32_t stream, owner; /* the thread */
};

struct kind {
	struct made *call; /* by begin, from `first` on */
	uint32_t first, n, cap;
	uint32_t *heap; /* of numbers: the smallest is on top */
	uint32_t n_heap, cap_heap;
	uint32_t owner;	 /* thread that made all calls so far, +1 */
	bool several;	 /* more than one did */
	bool broken;	 /* calls were lost: nothing is known until the next beginning */
	int64_t reached; /* latest end of the calls given away */
	uint32_t reached_by;
};

enum state { EMPTY, WAITING, KNOWN, NONE };
struct slot {
	uint32_t number;
	uint32_t state;
	struct tfh_issue issue;
};

struct tfh_by_order {
	struct tfh_op *op; /* ring */
	uint32_t *of;	   /* kind of each */
	uint32_t first, n;
	struct kind *kind;
	struct slot *slot;
	struct {
		uint32_t device, host; /* +1; 0: not known */
	} stream[256];
	int64_t begin; /* calls before are not known */
	bool silent;   /* nor is any until the next beginning */
};

int tfh_by_order_open(struct tfh_by_order **out)
{
	struct tfh_by_order *r = calloc(1, sizeof(*r));

	*out = NULL;
	if (!r)
		return -ENOMEM;
	r->begin = INT64_MIN;
	r->op = malloc(HELD * sizeof(*r->op));
	r->of = malloc(HELD * sizeof(*r->of));
	r->kind = calloc(KINDS, sizeof(*r->kind));
	r->slot = calloc(ISSUES, sizeof(*r->slot));
	if (!r->op || !r->of || !r->kind || !r->slot) {
		tfh_by_order_close(r);
		return -ENOMEM;
	}
	*out = r;
	return 0;
}

void tfh_by_order_close(struct tfh_by_order *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; r->kind && i < KINDS; i++) {
		free(r->kind[i].call);
		free(r->kind[i].heap);
	}
	free(r->op);
	free(r->of);
	free(r->kind);
	free(r->slot);
	free(r);
}

/* ---- calls ---- */

static struct made *call_at(const struct kind *k, uint32_t i)
{
	return &k->call[(k->first + i) & (k->cap - 1)];
}

static int room_for_call(struct kind *k)
{
	uint32_t cap = k->cap ? k->cap * 4 : 32;
	struct made *v;

	if (k->n < k->cap)
		return 0;
	v = malloc(cap * sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < k->n; i++)
		v[i] = *call_at(k, i);
	free(k->call);
	k->call = v;
	k->first = 0;
	k->cap = cap;
	return 0;
}

int tfh_by_order_call(struct tfh_by_order *r, uint32_t kind, const struct tfh_issue *issue,
		      uint32_t stream)
{
	struct kind *k = &r->kind[kind % KINDS];
	struct made c = {*issue, stream, issue->thread};
	uint32_t i;

	if (issue->t0 < r->begin || k->broken)
		return 0;
	if (k->n == CALLS) {
		k->broken = true;
		k->n = 0;
		return 0;
	}
	if (room_for_call(k))
		return -ENOMEM;
	k->several |= k->owner && k->owner != c.owner + 1;
	k->owner = c.owner + 1;
	/* They come by their end. */
	for (i = k->n++; i > 0 && call_at(k, i - 1)->issue.t0 > c.issue.t0; i--)
		*call_at(k, i) = *call_at(k, i - 1);
	*call_at(k, i) = c;
	return 0;
}

/* Takes call i of the first ones out. */
static struct made take_call(struct kind *k, uint32_t i)
{
	struct made c = *call_at(k, i);

	for (; i > 0; i--)
		*call_at(k, i) = *call_at(k, i - 1);
	k->first++;
	k->n--;
	if (c.issue.t1 > k->reached) {
		k->reached = c.issue.t1;
		k->reached_by = c.owner;
	}
	return c;
}

void tfh_by_order_silence(struct tfh_by_order *r)
{
	r->silent = true;
}

void tfh_by_order_begin(struct tfh_by_order *r, int64_t t)
{
	r->silent = false;
	for (uint32_t i = 0; i < KINDS; i++) {
		struct kind *k = &r->kind[i];
		while (k->n && call_at(k, 0)->issue.t0 < t)
			take_call(k, 0);
		k->broken = false;
	}
	r->begin = t;
}

/* ---- numbers of a kind ---- */

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
	struct slot *s = &r->slot[op->correlation % ISSUES];

	r->op[at] = *op;
	r->of[at] = kind % KINDS;
	if (s->state != EMPTY && s->number == op->correlation)
		return 0; /* another node of the same launch */
	*s = (struct slot){.number = op->correlation, .state = WAITING};
	/* The begin of the op, until its call is found. */
	s->issue.t0 = op->t0;
	s->issue.t1 = op->t1;
	s->issue.call = op->stream;
	return push(&r->kind[kind % KINDS], op->correlation);
}

const struct tfh_op *tfh_by_order_first(const struct tfh_by_order *r)
{
	return r->n ? &r->op[r->first] : NULL;
}

/* The nearest number in one direction whose call is known. */
static const struct tfh_issue *neighbour(const struct tfh_by_order *r, uint32_t number,
					 uint32_t step)
{
	for (uint32_t i = 1; i <= NEAR; i++) {
		const struct slot *s = &r->slot[(number + i * step) % ISSUES];
		if (s->state == KNOWN && s->number == number + i * step)
			return &s->issue;
	}
	return NULL;
}

static uint32_t *host_stream(struct tfh_by_order *r, uint32_t device)
{
	uint32_t at = (uint32_t)tfh_hash_u64(device) % 256;

	if (r->stream[at].device != device + 1) {
		r->stream[at].device = device + 1;
		r->stream[at].host = 0;
	}
	return &r->stream[at].host;
}

/* How many of the first calls were made by several threads at the same time; 1: none were. */
static uint32_t together(const struct kind *k)
{
	int64_t end = call_at(k, 0)->issue.t1;
	uint32_t n = 1;

	if (!k->several)
		return 1;
	for (; n < k->n && call_at(k, n)->issue.t0 <= end; n++)
		if (call_at(k, n)->issue.t1 > end)
			end = call_at(k, n)->issue.t1;
	return n;
}

/* Of calls made at the same time the one that a stream's op is of; n: it cannot be told. */
static uint32_t choose(const struct kind *k, uint32_t n, uint32_t host)
{
	uint32_t found = n;

	for (uint32_t i = 0; i < n && host; i++) {
		if (call_at(k, i)->stream + 1 != host)
			continue;
		if (found == n)
			found = i;
		else if (call_at(k, i)->owner != call_at(k, found)->owner)
			return n;
	}
	return found;
}

/* The next number of a kind and its call. */
static void settle(struct tfh_by_order *r, struct kind *k)
{
	uint32_t number = pop(k), n, i = 0;
	struct slot *s = &r->slot[number % ISSUES];
	const struct tfh_issue *below = neighbour(r, number, UINT32_MAX),
			       *above = neighbour(r, number, 1);
	uint32_t *host;
	int64_t start;

	if (s->number != number || s->state != WAITING)
		return; /* its place was needed */
	start = s->issue.t0;
	host = host_stream(r, (uint32_t)s->issue.call);
	s->state = NONE;
	if (r->silent)
		return;
	/* A call that had no op. */
	while (k->n > 1 && below && call_at(k, 0)->issue.t1 < below->t0 &&
	       call_at(k, 1)->issue.t0 <= start + TOLERANCE_NS)
		take_call(k, 0);
	if (start < r->begin || !k->n || k->broken ||
	    call_at(k, 0)->issue.t0 > start + TOLERANCE_NS ||
	    (above && call_at(k, 0)->issue.t0 > above->t1))
		return;
	n = together(k);
	if (n > 1)
		i = choose(k, n, *host);
	/* One that was made together with calls given away before. */
	if (i == 0 && n == 1 && k->several && call_at(k, 0)->issue.t0 <= k->reached &&
	    call_at(k, 0)->owner != k->reached_by && call_at(k, 0)->stream + 1 != *host)
		i = n;
	if (i == n) {
		take_call(k, 0);
		return;
	}
	struct made c = take_call(k, i);
	if (n == 1)
		*host = c.stream + 1;
	s->issue = c.issue;
	s->state = KNOWN;
}

int64_t tfh_by_order_needs(const struct tfh_by_order *r)
{
	const struct kind *k = &r->kind[r->of[r->first]];

	return r->op[r->first].t1 + (k->several || !k->n ? WAIT_NS : BEHIND_NS);
}

bool tfh_by_order_take(struct tfh_by_order *r, struct tfh_op *op, struct tfh_issue *issue)
{
	struct kind *k = &r->kind[r->of[r->first]];
	struct slot *s;

	*op = r->op[r->first];
	r->first = (r->first + 1) % HELD;
	r->n--;
	s = &r->slot[op->correlation % ISSUES];
	while (s->number == op->correlation && s->state == WAITING && k->n_heap)
		settle(r, k);
	if (s->number != op->correlation || s->state != KNOWN)
		return false;
	*issue = s->issue;
	return true;
}
