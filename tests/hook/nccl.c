/*
 * A rank of a job that trains data-parallel: what tests/hook/nccl.py looks for in its trace.
 *
 * usage: nccl FILE RANKS RANK bound|dlsym [LATE_MS]
 *   bound: by the names that a program linked with NCCL has; dlsym: looked up on the library
 *   LATE_MS: this rank comes that late to the third all-reduce
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tfhook/tfhook.h"

#define COUNT 1000u
enum { F32 = 7, SUM = 0 };

typedef struct {
	char bytes[128];
} id_t_;
typedef struct ncclComm *comm_t;
typedef void *stream_t;
typedef unsigned long long address;

#define NCCL(X)                                                                                    \
	X(ncclAllReduce, (const void *, void *, size_t, int, int, comm_t, stream_t))               \
	X(ncclBroadcast, (const void *, void *, size_t, int, int, comm_t, stream_t))               \
	X(ncclAllGather, (const void *, void *, size_t, int, comm_t, stream_t))                    \
	X(ncclReduceScatter, (const void *, void *, size_t, int, int, comm_t, stream_t))           \
	X(ncclSend, (const void *, size_t, int, int, comm_t, stream_t))                            \
	X(ncclRecv, (void *, size_t, int, int, comm_t, stream_t))                                  \
	X(ncclGroupStart, (void))                                                                  \
	X(ncclGroupEnd, (void))                                                                    \
	X(ncclCommInitRank, (comm_t *, int, id_t_, int))                                           \
	X(ncclCommSplit, (comm_t, int, int, comm_t *, void *))                                     \
	X(ncclCommDestroy, (comm_t))

/* Weak: without a library that has them bound to these names they are NULL. */
#define X(name, parameters) __attribute__((weak)) int name parameters;
NCCL(X)
#undef X
static struct {
#define X(name, parameters) int(*name) parameters;
	NCCL(X)
#undef X
} nc;

static void *cuda, *nccl;

static void *need(void *library, const char *name)
{
	void *f = library ? dlsym(library, name) : NULL;

	if (!f) {
		fprintf(stderr, "no %s: %s\n", name, dlerror());
		exit(1);
	}
	return f;
}

#define CU(name, parameters) ((int(*) parameters)need(cuda, #name))

static void ok(int result, const char *what)
{
	if (result) {
		fprintf(stderr, "%s: error %d\n", what, result);
		exit(1);
	}
}
#define OK(call) ok(call, #call)

static void find(bool bound)
{
	cuda = dlopen("libcuda.so.1", RTLD_NOW);
	nccl = dlopen("libnccl.so.2", RTLD_NOW);
#define X(name, parameters) nc.name = bound && name ? name : (int(*) parameters)need(nccl, #name);
	NCCL(X)
#undef X
}

static id_t_ meet(const char *file, int rank)
{
	char tmp[4096];
	id_t_ id;
	FILE *f;

	snprintf(tmp, sizeof(tmp), "%s.new", file);
	if (!rank) {
		OK(((int (*)(id_t_ *))need(nccl, "ncclGetUniqueId"))(&id));
		f = fopen(tmp, "w");
		if (!f || fwrite(&id, sizeof(id), 1, f) != 1 || fclose(f) || rename(tmp, file))
			exit(1);
	}
	while (!(f = fopen(file, "r")))
		usleep(1000);
	if (fread(&id, sizeof(id), 1, f) != 1)
		exit(1);
	fclose(f);
	return id;
}

static void step(comm_t comm, char *memory, stream_t stream)
{
	tfhook_step_begin("step");
	OK(nc.ncclAllReduce(memory, memory, COUNT, F32, SUM, comm, stream));
	OK(CU(cuStreamSynchronize, (stream_t))(stream));
	tfhook_step_end();
}

int main(int argc, char **argv)
{
	int ranks = atoi(argv[2]), rank = atoi(argv[3]);
	unsigned late = argc > 5 ? (unsigned)atoi(argv[5]) : 0;
	comm_t comm, half;
	stream_t stream;
	address device;
	void *ctx;

	find(!strcmp(argv[4], "bound"));
	OK(CU(cuInit, (unsigned))(0));
	OK(CU(cuDevicePrimaryCtxRetain, (void **, int))(&ctx, 0));
	OK(CU(cuCtxSetCurrent, (void *))(ctx));
	OK(CU(cuMemAlloc_v2, (address *, size_t))(&device, 1 << 20));
	OK(CU(cuStreamCreate, (stream_t *, unsigned))(&stream, 1));
	char *memory = (char *)(uintptr_t)device;
	OK(nc.ncclCommInitRank(&comm, ranks, meet(argv[1], rank), rank));
	for (int i = 0; i < 5; i++) {
		usleep(1000 + (i == 2 ? late * 1000 : 0));
		step(comm, memory, stream);
	}
	OK(nc.ncclBroadcast(memory, memory, 10, F32, 1, comm, stream));
	OK(nc.ncclAllGather(memory, memory + 65536, 20, F32, comm, stream));
	OK(nc.ncclReduceScatter(memory, memory + 65536, 30, F32, SUM, comm, stream));
	OK(nc.ncclGroupStart());
	OK(nc.ncclSend(memory, 40, F32, (rank + 1) % ranks, comm, stream));
	OK(nc.ncclRecv(memory + 65536, 40, F32, (rank + ranks - 1) % ranks, comm, stream));
	OK(nc.ncclGroupEnd());
	OK(nc.ncclCommSplit(comm, rank % 2, rank, &half, NULL));
	OK(nc.ncclAllReduce(memory, memory, 50, F32, SUM, half, stream));
	OK(CU(cuStreamSynchronize, (stream_t))(stream));
	OK(nc.ncclCommDestroy(half));
	OK(nc.ncclCommDestroy(comm));
	return 0;
}
