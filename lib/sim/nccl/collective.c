/* The operations: argument checks, duration, launch. */
#include "sim/nccl/sim_nccl.h"

/* Bytes that cross the slowest link of a ring, for `bytes` of the caller's count. */
static double traffic(const struct sim_task *t, double bytes)
{
	double n = t->comm->ranks;
	switch (t->coll) {
	case C_ALLREDUCE:
		return 2 * (n - 1) / n * bytes;
	case C_ALLGATHER:
	case C_REDUCESCATTER:
		return (n - 1) * bytes;
	default:
		return n > 1 ? bytes : 0;
	}
}

static ncclResult_t reserve(const struct sim_task *t)
{
	struct ncclComm *c = t->comm;
	size_t bytes = t->count * sim_type_size[t->type];
	if (t->coll == C_RECV || (t->coll == C_BROADCAST && t->peer != c->rank))
		return ncclSuccess;
	if (t->coll == C_REDUCESCATTER)
		bytes *= (size_t)c->ranks;
	return sim_region_reserve(c,
				  t->coll == C_SEND ? sim_region_between(c, c->rank, t->peer, false)
						    : sim_region_of(c, c->rank, false),
				  bytes);
}

static void place(const struct sim_task *t, struct sim_args *a)
{
	struct ncclComm *c = t->comm;
	if (t->coll < C_SEND) {
		a->group = (uintptr_t)sim_group_all(c);
		a->rank = (uint32_t)c->rank;
		a->ranks = (uint32_t)c->ranks;
		return;
	}
	bool sends = t->coll == C_SEND;
	a->group = (uintptr_t)sim_group_between(c, sends ? c->rank : t->peer,
						sends ? t->peer : c->rank);
	/* A message to oneself waits for nobody. */
	a->ranks = t->peer == c->rank ? 1 : 2;
	a->rank = a->ranks == 2 && !sends;
}

ncclResult_t sim_task_launch(const struct sim_task *t)
{
	const struct sim_nccl_driver *d = sim_nccl_driver();
	struct ncclComm *c = t->comm;
	double bytes = (double)t->count * (double)sim_type_size[t->type];
	struct sim_args a = {.comm = (uintptr_t)c,
			     .send = (uintptr_t)t->send,
			     .recv = (uintptr_t)t->recv,
			     .count = t->count,
			     .what = t->coll | t->type << 8 | t->red << 16,
			     .peer = (uint32_t)t->peer};
	void *params[] = {&a.group, &a.rank, &a.ranks, &a.ns,	&a.comm,
			  &a.send,  &a.recv, &a.count, &a.what, &a.peer};
	CUlaunchConfig config = {.gridDimX = bytes > 65536 ? 16 : 2,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = 512,
				 .blockDimY = 1,
				 .blockDimZ = 1,
				 .hStream = t->stream};
	CUfunction f;
	CUcontext before = NULL;
	place(t, &a);
	a.ns = d->native->config->latency_ns +
	       (uint64_t)(traffic(t, bytes) / d->native->config->gbps);
	ncclResult_t r = reserve(t);
	if (r)
		return r;
	d->get_current(&before);
	if (before != c->ctx)
		d->set_current(c->ctx);
	r = sim_kernel_get(c, t, &f);
	if (!r && d->launch(&config, f, params, NULL))
		r = sim_nccl_error(c, ncclUnhandledCudaError, "cuLaunchKernelEx");
	if (before != c->ctx)
		d->set_current(before);
	return r;
}

static ncclResult_t run(struct sim_task t)
{
	if (!sim_comm_valid(t.comm))
		return sim_nccl_error(NULL, ncclInvalidArgument, "not a communicator");
	if ((unsigned)t.type >= T_COUNT || (unsigned)t.red >= R_COUNT)
		return sim_nccl_error(t.comm, ncclInvalidArgument, "type %d, operation %d", t.type,
				      t.red);
	if (t.peer < 0 || t.peer >= t.comm->ranks)
		return sim_nccl_error(t.comm, ncclInvalidArgument, "rank %d of %d", t.peer,
				      t.comm->ranks);
	if (!t.send && !t.recv && t.count)
		return sim_nccl_error(t.comm, ncclInvalidArgument, "no buffer");
	return sim_task_add(&t);
}

NCCL_API(ncclAllReduce,
	 (const void *send, void *recv, size_t n, enum sim_type type, enum sim_red red,
	  ncclComm_t c, CUstream s),
	 (send, recv, n, type, red, c, s))
{
	return run((struct sim_task){c, C_ALLREDUCE, type, red, send, recv, n, 0, s, NULL});
}

NCCL_API(ncclReduce,
	 (const void *send, void *recv, size_t n, enum sim_type type, enum sim_red red, int root,
	  ncclComm_t c, CUstream s),
	 (send, recv, n, type, red, root, c, s))
{
	return run((struct sim_task){c, C_REDUCE, type, red, send, recv, n, root, s, NULL});
}

NCCL_API(ncclReduceScatter,
	 (const void *send, void *recv, size_t n, enum sim_type type, enum sim_red red,
	  ncclComm_t c, CUstream s),
	 (send, recv, n, type, red, c, s))
{
	return run((struct sim_task){c, C_REDUCESCATTER, type, red, send, recv, n, 0, s, NULL});
}

NCCL_API(ncclAllGather,
	 (const void *send, void *recv, size_t n, enum sim_type type, ncclComm_t c, CUstream s),
	 (send, recv, n, type, c, s))
{
	return run((struct sim_task){c, C_ALLGATHER, type, R_SUM, send, recv, n, 0, s, NULL});
}

NCCL_API(ncclBroadcast,
	 (const void *send, void *recv, size_t n, enum sim_type type, int root, ncclComm_t c,
	  CUstream s),
	 (send, recv, n, type, root, c, s))
{
	return run((struct sim_task){c, C_BROADCAST, type, R_SUM, send, recv, n, root, s, NULL});
}

NCCL_API(ncclBcast,
	 (void *buffer, size_t n, enum sim_type type, int root, ncclComm_t c, CUstream s),
	 (buffer, n, type, root, c, s))
{
	return do_ncclBroadcast(buffer, buffer, n, type, root, c, s);
}

NCCL_API(ncclSend,
	 (const void *send, size_t n, enum sim_type type, int peer, ncclComm_t c, CUstream s),
	 (send, n, type, peer, c, s))
{
	return run((struct sim_task){c, C_SEND, type, R_SUM, send, NULL, n, peer, s, NULL});
}

NCCL_API(ncclRecv, (void *recv, size_t n, enum sim_type type, int peer, ncclComm_t c, CUstream s),
	 (recv, n, type, peer, c, s))
{
	return run((struct sim_task){c, C_RECV, type, R_SUM, NULL, recv, n, peer, s, NULL});
}
