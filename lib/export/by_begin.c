#include "export/by_begin.h"

#include <errno.h>
#include <stdlib.h>

#include "model/big.h"

#define AT_HAND 16384u /* calls held for sorting: 2 MB */

struct tfh_by_begin {
	struct tfh_merge *merge;
	int64_t t0, t1;
	struct tfh_event *held; /* [AT_HAND + 1] */
	uint32_t *heap;		/* indices into `held`, the earliest at [0] */
	uint32_t *unused;	/* indices into `held` */
	uint32_t n;
	bool ended, taken; /* taken: at least one was; `last` has the order of the last one */
	struct tfh_event last;
	/* Calls that arrive too late to be sorted, found in the first pass, in their order. */
	struct tfh_event *late;
	size_t n_late, cap_late, next_late;
	uint64_t *base; /* by thread: its first id */
	uint32_t n_base;
};

static bool before(const struct tfh_event *a, const struct tfh_event *b)
{
	if (a->t0 != b->t0)
		return a->t0 < b->t0;
	if (a->t1 != b->t1)
		return a->t1 > b->t1;
	if (a->depth != b->depth)
		return a->depth < b->depth;
	/* Of two equal calls, the one recorded later encloses the other. */
	return a->thread != b->thread ? a->thread < b->thread : a->number > b->number;
}

static int compare(const void *a, const void *b)
{
	return before(a, b) ? -1 : before(b, a);
}

/* ---- the heap ---- */

static void heap_push(struct tfh_by_begin *b, const struct tfh_event *ev)
{
	uint32_t slot = b->unused[b->n], at = b->n++;

	b->held[slot] = *ev;
	while (at && before(ev, &b->held[b->heap[(at - 1) / 2]])) {
		b->heap[at] = b->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	b->heap[at] = slot;
}

static void heap_pop(struct tfh_by_begin *b)
{
	uint32_t first = b->heap[0], slot = b->heap[--b->n], at = 0;

	for (uint32_t child; (child = 2 * at + 1) < b->n; at = child) {
		if (child + 1 < b->n &&
		    before(&b->held[b->heap[child + 1]], &b->held[b->heap[child]]))
			child++;
		if (!before(&b->held[b->heap[child]], &b->held[slot]))
			break;
		b->heap[at] = b->heap[child];
	}
	b->heap[at] = slot;
	b->unused[b->n] = first;
}

/* ---- from the time line ---- */

static bool wanted(const struct tfh_by_begin *b, const struct tfh_event *ev)
{
	switch (ev->kind) {
	case TFT_CALL:
	case TFT_ALLOC:
	case TFT_RANGE:
	case TFT_MARK:
	case TFT_AGG:
		return ev->t1 >= b->t0 && ev->t0 < b->t1;
	default:
		return false;
	}
}

static int add_late(struct tfh_by_begin *b, const struct tfh_event *ev)
{
	int rc = tfh_big_grow((void **)&b->late, &b->cap_late, b->n_late, sizeof(*b->late));

	if (!rc)
		b->late[b->n_late++] = *ev;
	return rc;
}

static void count(struct tfh_by_begin *b, const struct tfh_event *ev)
{
	if (ev->thread < b->n_base && ev->number >= b->base[ev->thread])
		b->base[ev->thread] = ev->number + 1;
}

/* Holds calls until there is no room. The first pass counts the calls and keeps those that arrive
 * too late; the second omits these. 0 or -ENOMEM. */
static int fill(struct tfh_by_begin *b, bool first)
{
	while (!b->ended && b->n < AT_HAND) {
		const struct tfh_event *ev = tfh_merge_borrow(b->merge);
		b->ended = !ev;
		if (ev && first)
			count(b, ev);
		if (!ev || !wanted(b, ev))
			continue;
		if (!b->taken || !before(ev, &b->last))
			heap_push(b, ev);
		else if (first && add_late(b, ev))
			return -ENOMEM;
	}
	return 0;
}

/* The next held call; NULL: none is left. */
static const struct tfh_event *take(struct tfh_by_begin *b)
{
	if (!b->n)
		return NULL;
	b->last = b->held[b->heap[0]];
	b->taken = true;
	heap_pop(b);
	return &b->last;
}

/* ---- the first pass ---- */

static int first_pass(struct tfh_by_begin *b, struct tfh_run *run, uint32_t process,
		      struct tfh_err *err)
{
	const struct tfh_event *ev;
	uint64_t sum = 1;
	int rc = tfh_merge_open(run, process, &b->merge, err);

	if (rc)
		return rc;
	do {
		rc = fill(b, true);
		ev = rc ? NULL : take(b);
	} while (ev);
	if (!rc)
		rc = tfh_merge_error(b->merge, err);
	tfh_merge_close(b->merge);
	b->merge = NULL;
	for (uint32_t i = 0; i < b->n_base; i++) {
		uint64_t n = b->base[i];
		b->base[i] = sum;
		sum += n;
	}
	if (b->n_late)
		qsort(b->late, b->n_late, sizeof(*b->late), compare);
	return rc;
}

/* ---- the second pass ---- */

int tfh_by_begin_open(struct tfh_run *run, uint32_t process, int64_t t0, int64_t t1,
		      struct tfh_by_begin **out, struct tfh_err *err)
{
	const struct tfh_thread_info *thread;
	struct tfh_by_begin *b = calloc(1, sizeof(*b));
	int rc = -ENOMEM;

	*out = NULL;
	if (!b)
		return tfh_err_set(err, rc, "out of memory");
	b->t0 = t0;
	b->t1 = t1;
	b->n_base = tfh_run_threads(run, &thread);
	b->base = calloc(b->n_base + 1, sizeof(*b->base));
	b->held = malloc((AT_HAND + 1) * sizeof(*b->held));
	b->heap = malloc((AT_HAND + 1) * sizeof(*b->heap));
	b->unused = malloc((AT_HAND + 1) * sizeof(*b->unused));
	for (uint32_t i = 0; b->unused && i <= AT_HAND; i++)
		b->unused[i] = i;
	if (b->base && b->held && b->heap && b->unused)
		rc = first_pass(b, run, process, err);
	b->ended = b->taken = false;
	if (!rc)
		rc = tfh_merge_open(run, process, &b->merge, err);
	if (rc)
		tfh_by_begin_close(b);
	else
		*out = b;
	return rc == -ENOMEM ? tfh_err_set(err, rc, "out of memory") : rc;
}

const struct tfh_event *tfh_by_begin_next(struct tfh_by_begin *b)
{
	const struct tfh_event *late = b->next_late < b->n_late ? &b->late[b->next_late] : NULL;

	fill(b, false);
	if (!late || (b->n && before(&b->held[b->heap[0]], late)))
		return take(b);
	b->next_late++;
	tfh_big_pass(b->next_late);
	return late;
}

int tfh_by_begin_error(const struct tfh_by_begin *b, struct tfh_err *err)
{
	return tfh_merge_error(b->merge, err);
}

uint64_t tfh_by_begin_id(const struct tfh_by_begin *b, uint32_t thread, uint64_t number)
{
	return thread < b->n_base ? b->base[thread] + number : 0;
}

void tfh_by_begin_close(struct tfh_by_begin *b)
{
	if (!b)
		return;
	tfh_merge_close(b->merge);
	tfh_big_free(b->late);
	free(b->base);
	free(b->held);
	free(b->heap);
	free(b->unused);
	free(b);
}
