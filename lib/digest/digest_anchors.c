/*
 * Anchors of collectives: when a rank entered and left every 2^k-th collective of a communicator. All ranks
 * number a communicator's collectives alike, so the digests of two hosts have anchors in common, even if k
 * differs. That is enough to align clocks, to find late ranks, and to see how far a hanging rank has come.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "digest/digest_out.h"

/* A rank may have one anchor per step, and this many if it has fewer steps. */
#define ANCHORS_LEAST 256u
#define ANCHORS_MOST (1u << 20)

struct anchor_list {
	struct tfh_digest_anchor *v;
	uint32_t n, most;
	uint32_t mask; /* numbers with none of these bits are kept */
};

static void thin_out(struct anchor_list *x)
{
	uint32_t kept = 0;

	x->mask = x->mask * 2 + 1;
	for (uint32_t i = 0; i < x->n; i++)
		if (!(x->v[i].number & x->mask))
			x->v[kept++] = x->v[i];
	x->n = kept;
}

/* Whether all ranks of a communicator make this call in the same order. Point-to-point messages do not count. */
static bool is_collective(const struct tfh_event *ev)
{
	return ev->fn->family == TFH_FAM_COMMUNICATION && ev->kind == TFT_CALL &&
	       ev->fn->args == TFH_ARGS_COLLECTIVE && strcmp(ev->fn->name, "ncclSend") &&
	       strcmp(ev->fn->name, "ncclRecv") && ev->w[1] && (uint32_t)ev->w[2];
}

static void add_anchor(struct anchor_list *x, const struct tfh_event *ev, uint32_t rank)
{
	uint32_t number = (uint32_t)ev->w[2];

	while (x->n == x->most && x->mask < UINT32_MAX)
		thin_out(x);
	if (number & x->mask || x->n == x->most)
		return;
	x->v[x->n++] = (struct tfh_digest_anchor){.enter_ns = (uint64_t)(ev->t0 > 0 ? ev->t0 : 0),
						  .leave_ns = (uint64_t)(ev->t1 > 0 ? ev->t1 : 0),
						  .key = ev->w[1],
						  .number = number,
						  .rank = rank};
}

static int put_list(struct tfh_digest_out *o, const struct anchor_list *x)
{
	int rc = 0;

	for (uint32_t at = 0; at < x->n && !rc; at += TFH_DIGEST_ROWS) {
		uint32_t n = x->n - at < TFH_DIGEST_ROWS ? x->n - at : TFH_DIGEST_ROWS;
		rc = tfh_digest_put(o, TFT_DCOL, &tfh_digest_anchors, x->v + at, n);
	}
	return rc;
}

int tfh_digest_put_anchors(struct tfh_digest_out *o, struct tfh_run *run, uint32_t process,
			   uint32_t rank, uint64_t steps)
{
	struct anchor_list x = {.most = steps < ANCHORS_LEAST  ? ANCHORS_LEAST
					: steps < ANCHORS_MOST ? (uint32_t)steps
							       : ANCHORS_MOST};
	const struct tfh_event *ev;
	struct tfh_merge *m;
	int rc = tfh_merge_open(run, process, &m, NULL);

	if (rc)
		return rc;
	x.v = malloc(x.most * sizeof(*x.v));
	rc = x.v ? 0 : -ENOMEM;
	while (!rc && (ev = tfh_merge_look(m)))
		if (is_collective(ev))
			add_anchor(&x, ev, rank);
	if (!rc)
		rc = tfh_merge_error(m, NULL);
	tfh_merge_close(m);
	if (!rc)
		rc = put_list(o, &x);
	free(x.v);
	return rc;
}
