/*
 * Groups of calls: collectives are launched in call order, then messages in an order common to all
 * ranks, (sender, receiver), so that kernels of one stream never wait for each other in a cycle.
 */
#include "sim/nccl/sim_nccl.h"

#include <stdlib.h>

static __thread int depth;
static __thread struct sim_task *tasks;
static __thread ncclResult_t failed;

bool sim_group_open(void)
{
	return depth > 0;
}

/* Before b: true when a is launched first. */
static bool before(const struct sim_task *a, const struct sim_task *b)
{
	int sa = a->coll == C_SEND ? a->comm->rank : a->peer, sb;
	int da = a->coll == C_SEND ? a->peer : a->comm->rank, db;
	if (a->coll < C_SEND || b->coll < C_SEND)
		return a->coll < C_SEND && b->coll >= C_SEND;
	sb = b->coll == C_SEND ? b->comm->rank : b->peer;
	db = b->coll == C_SEND ? b->peer : b->comm->rank;
	if (sa != sb || da != db)
		return sa != sb ? sa < sb : da < db;
	return a->coll == C_SEND && b->coll == C_RECV;
}

ncclResult_t sim_task_add(const struct sim_task *t)
{
	if (!depth)
		return sim_task_launch(t);
	struct sim_task *copy = malloc(sizeof(*copy)), **at = &tasks;
	*copy = *t;
	while (*at && !before(t, *at))
		at = &(*at)->next;
	copy->next = *at;
	*at = copy;
	return ncclSuccess;
}

NCCL_API(ncclGroupStart, (void), ())
{
	depth++;
	return ncclSuccess;
}

NCCL_API(ncclGroupEnd, (void), ())
{
	if (!depth)
		return sim_nccl_error(NULL, ncclInvalidUsage, "ncclGroupEnd without a start");
	if (--depth)
		return ncclSuccess;
	failed = sim_inits_finish();
	while (tasks) {
		struct sim_task *t = tasks;
		tasks = t->next;
		if (!failed)
			failed = sim_task_launch(t);
		free(t);
	}
	return failed;
}
