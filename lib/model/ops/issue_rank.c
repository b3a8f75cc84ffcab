/* Matches ops with calls by their order (issue_by_order.c) where CUPTI recorded no calls, and
 * starts again after losses. */
#include "model/ops/issue.h"

/* A device that was idle for this long had no work queued, since a launch takes some microseconds.
 * The same holds if it was idle when a wait for it ended. */
#define IDLE_NS 1000000

static uint32_t kind_of(const struct tfh_op *op)
{
	static const uint8_t family[] = {[TFH_OP_KERNEL] = TFH_FAM_LAUNCH,
					 [TFH_OP_COPY] = TFH_FAM_COPY,
					 [TFH_OP_MEMSET] = TFH_FAM_MEMSET,
					 [TFH_OP_SYNC] = 0,
					 [TFH_OP_GRAPH] = TFH_FAM_GRAPH_LAUNCH};
	bool node = op->graph || op->node, known = op->kind < sizeof(family);

	return tfh_join_key(node    ? TFH_FAM_GRAPH_LAUNCH
			    : known ? family[op->kind]
				    : 0,
			    op->name, op->bytes);
}

static void pass_hole(struct tfh_join *j, int64_t end)
{
	tfh_by_order_silence(j->rank);
	j->resync = end > j->resync ? end : j->resync;
	j->last = end > j->last ? end : j->last;
}

/* Whether all work submitted before the device's idle time, which ended at t, had completed. */
static bool was_idle(const struct tfh_join *j, int64_t t)
{
	if (t - j->last > IDLE_NS)
		return true;
	for (uint32_t i = 0; i < j->n_wait && i < TFH_JOIN_WAITS; i++)
		if (j->wait[i] >= j->last && j->wait[i] < t)
			return true;
	return false;
}

/* After a time in which ops were lost or not recorded, later ops cannot be distinguished from lost
 * ones. Matching starts again once the device has completed all queued work. */
static void pass_holes(struct tfh_join *j, const struct tfh_op *op)
{
	const struct tfh_run *run = j->run;
	const struct tfh_gpu *g = run->proc[j->process].gpu;

	if (j->early && j->last == INT64_MIN)
		pass_hole(j, tfh_join_begin(j));
	for (; j->hole < run->n_hole; j->hole++) {
		const struct tfh_hole *h = &run->hole[j->hole];
		if (h->process != j->process)
			continue;
		if (h->t0 > op->t0)
			break;
		pass_hole(j, h->t1);
	}
	for (; g && j->span + 1 < g->n_span && g->span[j->span].t1 <= op->t0; j->span++)
		if (g->span[j->span + 1].t0 - g->span[j->span].t1 > IDLE_NS)
			pass_hole(j, g->span[j->span + 1].t0);
	if (j->resync != INT64_MIN && op->t0 > j->resync && was_idle(j, op->t0)) {
		tfh_by_order_begin(j->rank, j->last);
		j->resync = INT64_MIN;
	}
	if (op->t1 > j->last)
		j->last = op->t1;
}

bool tfh_join_takes(const struct tfh_join *j)
{
	return j->rank && !tfh_by_order_full(j->rank);
}

int tfh_join_add(struct tfh_join *j, const struct tfh_op *op)
{
	return tfh_by_order_add(j->rank, kind_of(op), op);
}

bool tfh_join_next(struct tfh_join *j, struct tfh_op *op, struct tfh_issue *out, bool *known)
{
	const struct tfh_op *first = j->err ? NULL : tfh_by_order_first(j->rank);
	int64_t until;

	if (!first)
		return false;
	while (j->now <= first->t1 + TFH_JOIN_WAIT_NS && tfh_join_read_on(j))
		;
	if (!j->waits && !j->passed)
		pass_holes(j, first);
	j->passed |= !j->waits;
	while (!j->waits && !j->err && tfh_by_order_needs(j->rank, &until)) {
		while (j->now <= until && tfh_join_read_on(j))
			;
		if (!j->waits)
			tfh_by_order_settle(j->rank, j->now);
	}
	if (j->waits)
		return false;
	j->passed = false;
	*known = tfh_by_order_take(j->rank, op, out);
	return true;
}
