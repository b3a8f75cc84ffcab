/*
 * A rank of a job on the simulated NCCL: checks the results of every operation, type and reduction
 * against its own arithmetic. nccl.py starts the ranks and reads the truth logs.
 *
 *   nccl all FILE RANKS RANK       every operation
 *   nccl late FILE RANKS RANK MS   the last rank comes MS late to the second of three
 *   nccl abort FILE RANKS RANK     rank 0 launches alone and gives up
 *   nccl devices                   two devices of one process
 */
#include <math.h>
#include <stdbool.h>
#include <unistd.h>

#include "sim_test.h"

typedef struct {
	char bytes[128];
} id_t_;
typedef struct ncclComm *comm_t;

static void *nccl;
static comm_t comm;
static int rank, ranks;
static CUstream stream;

#define NC(name, types, ...) (((int(*) types)nccl_symbol(#name))(__VA_ARGS__))
#define NOK(name, types, ...)                                                                      \
	do {                                                                                       \
		int r_ = NC(name, types, __VA_ARGS__);                                             \
		if (r_) {                                                                          \
			fprintf(stderr, "%s:%d: %s: error %d: %s\n", __FILE__, __LINE__, #name,    \
				r_, last_error());                                                 \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static void *nccl_symbol(const char *name)
{
	void *f = dlsym(nccl, name);
	if (!f) {
		fprintf(stderr, "no %s\n", name);
		exit(1);
	}
	return f;
}

static const char *last_error(void)
{
	return ((const char *(*)(comm_t))nccl_symbol("ncclGetLastError"))(NULL);
}

static void meet(const char *file)
{
	id_t_ id;
	char tmp[4096];
	FILE *f;
	snprintf(tmp, sizeof(tmp), "%s.new", file);
	if (rank == 0) {
		NOK(ncclGetUniqueId, (id_t_ *), &id);
		f = fopen(tmp, "w");
		fwrite(&id, sizeof(id), 1, f);
		fclose(f);
		rename(tmp, file);
	}
	while (!(f = fopen(file, "r")))
		usleep(1000);
	CHECK(fread(&id, sizeof(id), 1, f) == 1);
	fclose(f);
	NOK(ncclCommInitRank, (comm_t *, int, id_t_, int), &comm, ranks, id, rank);
}

static void wait_stream(void)
{
	OK(cuStreamSynchronize, (CUstream), stream);
}

/* ---- values of each type ---- */
enum { I8, U8, I32, U32, I64, U64, F16, F32, F64, BF16, TYPES };
static const size_t sizes[TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

/* Halves of small numbers are exact; their bits by hand, apart from the library's own way. */
static uint16_t half_bits(double v, int mantissa, int bias)
{
	int e;
	double m = frexp(fabs(v), &e);
	if (v == 0)
		return 0;
	unsigned bits = (unsigned)lrint(ldexp(m, mantissa + 1)); /* 1.xxx with `mantissa` x */
	if (bits >> (mantissa + 1)) {
		bits >>= 1;
		e++;
	}
	return (uint16_t)((v < 0 ? 0x8000u : 0) | (unsigned)(e - 1 + bias) << mantissa |
			  (bits & ((1u << mantissa) - 1)));
}

static double half_value(uint16_t h, int mantissa, int bias)
{
	int e = (h & 0x7fff) >> mantissa;
	double m = h & ((1 << mantissa) - 1);
	double v =
		e ? ldexp(m + (1 << mantissa), e - bias - mantissa) : ldexp(m, 1 - bias - mantissa);
	return h & 0x8000 ? -v : v;
}

static void store(char *at, int type, double v)
{
	switch (type) {
	case I8:
		*(int8_t *)at = (int8_t)v;
		break;
	case U8:
		*(uint8_t *)at = (uint8_t)v;
		break;
	case I32:
		*(int32_t *)at = (int32_t)v;
		break;
	case U32:
		*(uint32_t *)at = (uint32_t)v;
		break;
	case I64:
		*(int64_t *)at = (int64_t)v;
		break;
	case U64:
		*(uint64_t *)at = (uint64_t)v;
		break;
	case F16:
		*(uint16_t *)at = half_bits(v, 10, 15);
		break;
	case BF16:
		*(uint16_t *)at = half_bits(v, 7, 127);
		break;
	case F32:
		*(float *)at = (float)v;
		break;
	default:
		*(double *)at = v;
	}
}

static double load(const char *at, int type)
{
	switch (type) {
	case I8:
		return *(const int8_t *)at;
	case U8:
		return *(const uint8_t *)at;
	case I32:
		return *(const int32_t *)at;
	case U32:
		return *(const uint32_t *)at;
	case I64:
		return (double)*(const int64_t *)at;
	case U64:
		return (double)*(const uint64_t *)at;
	case F16:
		return half_value(*(const uint16_t *)at, 10, 15);
	case BF16:
		return half_value(*(const uint16_t *)at, 7, 127);
	case F32:
		return *(const float *)at;
	default:
		return *(const double *)at;
	}
}

static bool is_signed(int type)
{
	return type != U8 && type != U32 && type != U64;
}

/* What rank r has at place i. */
static double value(int r, size_t i, int type)
{
	double v = (double)(i % 2) + r % 2 + 1;
	return is_signed(type) && i % 7 == 3 ? -v : v;
}

static double expected(size_t i, int type, int red)
{
	double a = value(0, i, type);
	for (int r = 1; r < ranks; r++) {
		double b = value(r, i, type);
		a = red == 1 ? a * b : red == 2 ? fmax(a, b) : red == 3 ? fmin(a, b) : a + b;
	}
	if (red == 4)
		a = type < F16 ? trunc(a / ranks) : a / ranks;
	return a;
}

enum { N = 1000 };

static char *buffer(size_t n)
{
	return (char *)(uintptr_t)device_memory(n);
}

static void fill(char *at, size_t n, int type, int of)
{
	for (size_t i = 0; i < n; i++)
		store(at + i * sizes[type], type, value(of, i, type));
}

#define REDUCE_TYPES (const void *, void *, size_t, int, int, comm_t, CUstream)

static void reductions(char *send, char *recv)
{
	for (int type = 0; type < TYPES; type++) {
		for (int red = 0; red < 5; red++) {
			int wrong = 0;
			fill(send, N, type, rank);
			NOK(ncclAllReduce, REDUCE_TYPES, send, recv, N, type, red, comm, stream);
			wait_stream();
			for (size_t i = 0; i < N; i++) {
				double got = load(recv + i * sizes[type], type);
				double want = expected(i, type, red);
				double slack = type == BF16 ? 0x1p-8 : type >= F16 ? 0x1p-11 : 0;
				wrong += fabs(got - want) > slack * fabs(want);
			}
			if (wrong) {
				fprintf(stderr, "type %d operation %d: %d wrong\n", type, red,
					wrong);
				failures++;
			}
		}
	}
}

static void in_place(char *p)
{
	fill(p, N, F32, rank);
	NOK(ncclAllReduce, REDUCE_TYPES, p, p, N, F32, 0, comm, stream);
	wait_stream();
	for (size_t i = 0; i < N; i++)
		CHECK(load(p + i * 4, F32) == expected(i, F32, 0));
}

static void others(char *send, char *recv)
{
	int root = ranks - 1;
	size_t part = N * 4;
	fill(send, N, I32, rank);
	memset(recv, 0, part);
	NOK(ncclBroadcast, (const void *, void *, size_t, int, int, comm_t, CUstream), send, recv,
	    N, I32, root, comm, stream);
	wait_stream();
	for (size_t i = 0; i < N; i++)
		CHECK(load(recv + i * 4, I32) == value(root, i, I32));

	memset(recv, 0, part);
	NOK(ncclReduce, (const void *, void *, size_t, int, int, int, comm_t, CUstream), send, recv,
	    N, I32, 0, root, comm, stream);
	wait_stream();
	for (size_t i = 0; i < N; i++)
		CHECK(load(recv + i * 4, I32) == (rank == root ? expected(i, I32, 0) : 0));

	NOK(ncclAllGather, (const void *, void *, size_t, int, comm_t, CUstream), send, recv, N,
	    I32, comm, stream);
	wait_stream();
	for (int r = 0; r < ranks; r++)
		for (size_t i = 0; i < N; i++)
			CHECK(load(recv + (size_t)r * part + i * 4, I32) == value(r, i, I32));

	for (int r = 0; r < ranks; r++)
		for (size_t i = 0; i < N; i++)
			store(send + (size_t)r * part + i * 4, I32, value(rank, i, I32) + r);
	NOK(ncclReduceScatter, REDUCE_TYPES, send, recv, N, I32, 0, comm, stream);
	wait_stream();
	for (size_t i = 0; i < N; i++)
		CHECK(load(recv + i * 4, I32) == expected(i, I32, 0) + rank * ranks);
}

#define MESSAGE_TYPES (void *, size_t, int, int, comm_t, CUstream)

static void messages(char *send, char *recv)
{
	int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
	for (int round = 0; round < 3; round++) {
		fill(send, N, F32, rank + round);
		NOK(ncclGroupStart, (void), );
		NOK(ncclSend, MESSAGE_TYPES, send, N, F32, next, comm, stream);
		NOK(ncclRecv, MESSAGE_TYPES, recv, N, F32, last, comm, stream);
		NOK(ncclRecv, MESSAGE_TYPES, recv + N * 4, N, F32, rank, comm, stream);
		NOK(ncclSend, MESSAGE_TYPES, send, N, F32, rank, comm, stream);
		NOK(ncclGroupEnd, (void), );
		wait_stream();
		for (size_t i = 0; i < N; i++) {
			CHECK(load(recv + i * 4, F32) == value(last + round, i, F32));
			CHECK(load(recv + (N + i) * 4, F32) == value(rank + round, i, F32));
		}
	}
	/* One way, then the other. */
	if (ranks > 1 && rank < 2) {
		fill(send, N, F32, 5);
		if (rank == 0)
			NOK(ncclSend, MESSAGE_TYPES, send, N, F32, 1, comm, stream);
		NOK(ncclRecv, MESSAGE_TYPES, recv, N, F32, !rank, comm, stream);
		if (rank == 1)
			NOK(ncclSend, MESSAGE_TYPES, recv, N, F32, 0, comm, stream);
		wait_stream();
		CHECK(!memcmp(send, recv, N * 4));
	}
}

static void split(char *send, char *recv)
{
	comm_t part = NULL, none = (comm_t)1;
	int n = 0, mine = -1, all = ranks, expect = 0;
	NOK(ncclCommSplit, (comm_t, int, int, comm_t *, void *), comm, rank % 2, -rank, &part,
	    NULL);
	NOK(ncclCommCount, (comm_t, int *), part, &n);
	NOK(ncclCommUserRank, (comm_t, int *), part, &mine);
	CHECK(n == (all - rank % 2 + 1) / 2 && mine == (all - 1 - rank) / 2);
	store(send, I32, rank + 1);
	NOK(ncclAllReduce, REDUCE_TYPES, send, recv, 1, I32, 0, part, stream);
	wait_stream();
	for (int r = rank % 2; r < all; r += 2)
		expect += r + 1;
	CHECK(load(recv, I32) == expect);
	NOK(ncclCommSplit, (comm_t, int, int, comm_t *, void *), comm, rank ? -1 : 3, 0, &none,
	    NULL);
	CHECK(rank ? !none : none != NULL);
	NOK(ncclCommDestroy, (comm_t), part);
}

static void captured(char *send, char *recv)
{
	CUgraph g;
	CUgraphExec e;
	OK(cuStreamBeginCapture_v2, (CUstream, int), stream, 0);
	NOK(ncclAllReduce, REDUCE_TYPES, send, recv, N, F32, 0, comm, stream);
	OK(cuStreamEndCapture, (CUstream, CUgraph *), stream, &g);
	OK(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long), &e, g, 0);
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < N; i++)
			store(send + i * 4, F32, value(rank, i, F32) + round);
		OK(cuGraphLaunch, (CUgraphExec, CUstream), e, stream);
		wait_stream();
		for (size_t i = 0; i < N; i++)
			CHECK(load(recv + i * 4, F32) == expected(i, F32, 0) + round * ranks);
	}
}

static void errors(char *p)
{
	int v = 0;
	CHECK(NC(ncclAllReduce, REDUCE_TYPES, p, p, N, 10, 0, comm, stream) == 4);
	CHECK(NC(ncclAllReduce, REDUCE_TYPES, p, p, N, F32, 5, comm, stream) == 4);
	CHECK(NC(ncclSend, MESSAGE_TYPES, p, N, F32, ranks, comm, stream) == 4);
	CHECK(NC(ncclAllReduce, REDUCE_TYPES, p, p, N, F32, 0, NULL, stream) == 4);
	CHECK(NC(ncclGroupEnd, (void), ) == 5 && last_error()[0]);
	NOK(ncclGetVersion, (int *), &v);
	CHECK(v >= 22000);
	NOK(ncclCommCuDevice, (comm_t, int *), comm, &v);
	CHECK(v == 0);
	NOK(ncclCommGetAsyncError, (comm_t, int *), comm, &v);
	CHECK(v == 0);
}

static void all(const char *file)
{
	char *send = buffer(N * 8 * 8), *recv = buffer(N * 8 * 8);
	meet(file);
	reductions(send, recv);
	in_place(send);
	others(send, recv);
	messages(send, recv);
	if (ranks > 1)
		split(send, recv);
	captured(send, recv);
	errors(send);
	/* 4 MB: what the bandwidth makes of it is in the truth log. */
	char *big = buffer(4000000);
	NOK(ncclAllReduce, REDUCE_TYPES, big, big, 1000000, F32, 0, comm, stream);
	wait_stream();
	NOK(ncclCommFinalize, (comm_t), comm);
	NOK(ncclCommDestroy, (comm_t), comm);
}

static void late(const char *file, int ms)
{
	char *p = buffer(4096);
	meet(file);
	for (int i = 0; i < 3; i++) {
		if (i == 1 && rank == ranks - 1)
			usleep((unsigned)ms * 1000);
		NOK(ncclAllReduce, REDUCE_TYPES, p, p, 1024, F32, 0, comm, stream);
		wait_stream();
	}
}

static void give_up(const char *file)
{
	char *p = buffer(4096);
	int error = 0;
	meet(file);
	if (rank)
		return;
	NOK(ncclAllReduce, REDUCE_TYPES, p, p, 1024, F32, 0, comm, stream);
	usleep(20000);
	CHECK(query(stream) == CUDA_ERROR_NOT_READY);
	comm_t gone = comm;
	NOK(ncclCommAbort, (comm_t), comm);
	wait_stream();
	CHECK(NC(ncclCommGetAsyncError, (comm_t, int *), gone, &error) == 4);
}

static void devices(void)
{
	comm_t comms[2];
	char *send[2], *recv[2];
	CUstream streams[2];
	CUcontext ctx[2];
	ranks = 2;
	NOK(ncclCommInitAll, (comm_t *, int, const int *), comms, 2, NULL);
	for (int d = 0; d < 2; d++) {
		OK(cuDevicePrimaryCtxRetain, (CUcontext *, int), &ctx[d], d);
		OK(cuCtxSetCurrent, (CUcontext), ctx[d]);
		send[d] = buffer(N * 4);
		recv[d] = buffer(N * 4);
		streams[d] = new_stream(1);
		fill(send[d], N, F32, d);
	}
	OK(cuCtxSetCurrent, (CUcontext), ctx[0]);
	for (int round = 0; round < 5; round++) {
		NOK(ncclGroupStart, (void), );
		for (int d = 0; d < 2; d++)
			NOK(ncclAllReduce, REDUCE_TYPES, send[d], recv[d], N, F32, 0, comms[d],
			    streams[d]);
		NOK(ncclGroupEnd, (void), );
	}
	for (int d = 0; d < 2; d++) {
		OK(cuStreamSynchronize, (CUstream), streams[d]);
		for (size_t i = 0; i < N; i++)
			CHECK(load(recv[d] + i * 4, F32) == expected(i, F32, 0));
		NOK(ncclCommDestroy, (comm_t), comms[d]);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	open_context();
	nccl = dlopen("libnccl.so.2", RTLD_NOW);
	if (!nccl) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	stream = new_stream(0);
	if (argc > 4) {
		ranks = atoi(argv[3]);
		rank = atoi(argv[4]);
	}
	if (!strcmp(mode, "all"))
		all(argv[2]);
	else if (!strcmp(mode, "late"))
		late(argv[2], atoi(argv[5]));
	else if (!strcmp(mode, "abort"))
		give_up(argv[2]);
	else if (!strcmp(mode, "devices"))
		devices();
	else
		return 2;
	return failures != 0;
}
