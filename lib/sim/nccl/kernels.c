/*
 * NCCL's kernels: their names, as in NCCL 2.19 and newer, and their work. A kernel copies its
 * rank's data into the shared file when it starts, and reads what it needs when all ranks have
 * started. Each region exists twice, and its k-th use takes the copy selected by k's lowest bit:
 * data number k+2 is written only when all ranks have finished k (see rendezvous.c).
 */
#include "sim/nccl/sim_nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const coll_names[C_COUNT] = {
	"AllReduce", "Reduce", "ReduceScatter", "AllGather", "Broadcast", "SendRecv", "SendRecv"};
/* Sums do not depend on signedness, and NCCL has no separate kernels for it. */
static const char *const type_names[T_COUNT] = {"u8",  "u8",  "u32", "u32", "u64",
						"u64", "f16", "f32", "f64", "bf16"};

static const char *red_name(enum sim_red red, enum sim_type type)
{
	static const char *const names[] = {"Sum", "Prod", "MinMax", "MinMax"};
	if (red == R_AVG)
		return type >= T_F16 ? "PreMulSum" : "SumPostDiv";
	return names[red];
}

static void name_of(char *out, size_t n, enum sim_coll coll, enum sim_red red, enum sim_type type)
{
	char plain[80];
	if (coll <= C_REDUCESCATTER)
		snprintf(plain, sizeof(plain), "ncclDevKernel_%s_%s_%s_RING_LL", coll_names[coll],
			 red_name(red, type), type_names[type]);
	else
		snprintf(plain, sizeof(plain), "ncclDevKernel_%s%s", coll_names[coll],
			 coll < C_SEND ? "_RING_LL" : "");
	snprintf(out, n, "_Z%zu%s24ncclDevKernelArgsStorageILm4096EE", strlen(plain), plain);
}

static void entry(FILE *f, enum sim_coll coll, enum sim_red red, enum sim_type type)
{
	char name[160];
	name_of(name, sizeof(name), coll, red, type);
	fprintf(f,
		".visible .entry %s(.param .u64 a, .param .u32 b, .param .u32 c, .param .u64 d,\n"
		".param .u64 e, .param .u64 f, .param .u64 g, .param .u64 h, .param .u32 i,\n"
		".param .u32 j)\n{\n\tret;\n}\n",
		name);
}

/* One module with all kernels. */
static CUresult load(CUmodule *m)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	fprintf(f, ".version 7.0\n.target sm_50\n.address_size 64\n");
	for (enum sim_coll c = C_ALLREDUCE; c <= C_REDUCESCATTER; c++)
		for (enum sim_red r = R_SUM; r < R_COUNT; r++)
			for (enum sim_type t = T_U8; r != R_MIN && t < T_COUNT; t++)
				if (t != T_I32 && t != T_I64)
					entry(f, c, r, t);
	for (enum sim_coll c = C_ALLGATHER; c <= C_SEND; c++)
		entry(f, c, R_SUM, T_U8);
	fclose(f);
	CUresult r = sim_nccl_driver()->load(m, text);
	free(text);
	return r;
}

ncclResult_t sim_kernel_get(struct ncclComm *c, const struct sim_task *t, CUfunction *f)
{
	const struct sim_nccl_driver *d = sim_nccl_driver();
	CUfunction *place = &c->kernels[t->coll][t->red][t->type];
	char name[160];
	if (!c->module && load(&c->module))
		return sim_nccl_error(c, ncclUnhandledCudaError, "cuModuleLoadData");
	if (!*place) {
		name_of(name, sizeof(name), t->coll, t->red, t->type);
		if (d->get_function(place, c->module, name))
			return sim_nccl_error(c, ncclUnhandledCudaError, "no kernel %s", name);
		d->native->set_body(*place, sim_kernel_body);
	}
	*f = *place;
	return ncclSuccess;
}

/* With the communicator's lock: copies `bytes` at p into region i, or from it. */
static void copy(struct ncclComm *c, size_t i, void *p, size_t bytes, bool in)
{
	char *m = bytes ? sim_region_map(c, i, bytes) : NULL;
	if (m)
		memmove(in ? m : p, in ? p : m, bytes);
	else if (bytes)
		c->async = ncclSystemError;
}

static void reduce(struct ncclComm *c, const struct sim_args *a, bool odd, size_t from)
{
	enum sim_type type = a->what >> 8 & 255;
	size_t size = sim_type_size[type];
	const void *in[MAX_RANKS];
	for (int r = 0; r < c->ranks; r++) {
		char *m = sim_region_map(c, sim_region_of(c, r, odd), (from + a->count) * size);
		if (!m) {
			c->async = ncclSystemError;
			return;
		}
		in[r] = m + from * size;
	}
	sim_reduce((void *)(uintptr_t)a->recv, in, c->ranks, a->count, type, a->what >> 16);
}

static void message(struct ncclComm *c, const struct sim_args *a, bool sends, bool over)
{
	size_t bytes = a->count * sim_type_size[a->what >> 8 & 255];
	int src = sends ? c->rank : (int)a->peer, dst = sends ? (int)a->peer : c->rank;
	/* Both ends may be in this process, each with a communicator of its own. */
	uint64_t *n = &c->messages[(src * c->ranks + dst) * 2 + sends];
	if (!over)
		++*n;
	if (sends && !over)
		copy(c, sim_region_between(c, src, dst, *n & 1), (void *)(uintptr_t)a->send, bytes,
		     true);
	if (!sends && over)
		copy(c, sim_region_between(c, src, dst, *n & 1), (void *)(uintptr_t)a->recv, bytes,
		     false);
}

static void give(struct ncclComm *c, const struct sim_args *a, enum sim_coll coll, bool odd)
{
	size_t bytes = a->count * sim_type_size[a->what >> 8 & 255];
	if (coll == C_BROADCAST && (int)a->peer != c->rank)
		return;
	if (coll == C_REDUCESCATTER)
		bytes *= (size_t)c->ranks;
	copy(c, sim_region_of(c, c->rank, odd), (void *)(uintptr_t)a->send, bytes, true);
}

static void take(struct ncclComm *c, const struct sim_args *a, enum sim_coll coll, bool odd)
{
	size_t bytes = a->count * sim_type_size[a->what >> 8 & 255];
	switch (coll) {
	case C_REDUCE:
		if ((int)a->peer != c->rank)
			break;
		/* fall through */
	case C_ALLREDUCE:
		reduce(c, a, odd, 0);
		break;
	case C_REDUCESCATTER:
		reduce(c, a, odd, (size_t)c->rank * a->count);
		break;
	case C_ALLGATHER:
		for (int r = 0; r < c->ranks; r++)
			copy(c, sim_region_of(c, r, odd),
			     (char *)(uintptr_t)a->recv + (size_t)r * bytes, bytes, false);
		break;
	default:
		copy(c, sim_region_of(c, (int)a->peer, odd), (void *)(uintptr_t)a->recv, bytes,
		     false);
	}
}

void sim_kernel_body(const void *args, bool over)
{
	struct sim_args a;
	memcpy(&a, args, sizeof(a));
	struct ncclComm *c = (struct ncclComm *)(uintptr_t)a.comm;
	enum sim_coll coll = a.what & 255;
	pthread_mutex_lock(&c->mu);
	if (coll >= C_SEND) {
		message(c, &a, coll == C_SEND, over);
	} else {
		if (!over)
			c->collectives++;
		(over ? take : give)(c, &a, coll, c->collectives & 1);
	}
	pthread_mutex_unlock(&c->mu);
}
