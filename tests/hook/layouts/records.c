/*
 * The reader of CUPTI's records finds every field where a release's own headers have it, in the
 * structures of this release and of those before it that the headers still describe (CUDA 11 on);
 * and those of CUDA 11 by the numbers, for when no header does. Built by layouts.sh once for each
 * generation of headers.
 */
#include "base/fn.h" /* before the names that cuda.h redefines */

#include <cuda.h>
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Named like the vendor's in our own header. */
#define CUptiResult tfh_result_of_cupti
#define TFH_HOOK_DRIVER_CUDA_TYPES_H
#include "hook/cupti/records.c"

void *tfh_cupti_real[TFH_CUPTI_FNS];
static uint32_t version;
static struct tft_drvr_row drvr;
static struct tft_gpu_row gpu;

uint32_t tfh_cupti_version(void)
{
	return version;
}
void *tfh_memory(void *place, size_t bytes, const char *what)
{
	(void)place;
	(void)bytes;
	(void)what;
	return NULL;
}
void tfh_gpu_lost(uint64_t n)
{
	(void)n;
}
uint64_t tfh_gpu_ticks(uint64_t ns)
{
	return ns;
}
struct tft_gpu_row *tfh_gpu_row(void)
{
	return &gpu;
}
struct tft_drvr_row *tfh_gpu_drvr(void)
{
	return &drvr;
}
uint32_t tfh_gpu_text(const char *text)
{
	return (uint32_t)strlen(text);
}

static int failures;
#define IS(what, a, b)                                                                             \
	do {                                                                                       \
		if ((uint64_t)(a) != (uint64_t)(b)) {                                              \
			printf("%s: %s is %llu, not %llu\n", what, #a, (unsigned long long)(a),    \
			       (unsigned long long)(b));                                           \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

static struct tft_gpu_row row;
static const char *name;

static void read_it(const char *what, const void *r, uint32_t v)
{
	version = v;
	memset(&row, 0xff, sizeof(row));
	row = (struct tft_gpu_row){0};
	IS(what, tfh_row_of_record(r, &row, &name), 1);
	IS(what, row.start, 0x1111111111);
	IS(what, row.end, 0x2222222222);
	IS(what, row.device, 3);
	IS(what, row.ctx, 44);
	IS(what, row.stream, 55);
	IS(what, row.correlation, 66);
}

/* Garbage around, so that a field read elsewhere shows. */
#define RECORD(type, number)                                                                       \
	CUpti_Activity##type r;                                                                    \
	memset(&r, 0xa5, sizeof(r));                                                               \
	r.kind = (CUpti_ActivityKind)(number);                                                     \
	r.start = 0x1111111111;                                                                    \
	r.end = 0x2222222222;                                                                      \
	r.correlationId = 66

#define PLACE(r)                                                                                   \
	(r).deviceId = 3;                                                                          \
	(r).contextId = 44;                                                                        \
	(r).streamId = 55

#define KERNEL(type, v, more, check)                                                               \
	do {                                                                                       \
		RECORD(type, TFH_ACT_CONCURRENT_KERNEL);                                           \
		PLACE(r);                                                                          \
		r.gridX = 7, r.gridY = 8, r.gridZ = 9;                                             \
		r.blockX = 10, r.blockY = 11, r.blockZ = 12;                                       \
		r.staticSharedMemory = 1300, r.dynamicSharedMemory = 1400;                         \
		r.registersPerThread = 15, r.name = "gemm", r.graphNodeId = 1616;                  \
		more;                                                                              \
		read_it(#type, &r, v);                                                             \
		IS(#type, row.grid, tft_launch_w1(7, 8, 9));                                       \
		IS(#type, row.block, tft_launch_w2(10, 11, 12, 1400));                             \
		IS(#type, row.registers, 15);                                                      \
		IS(#type, row.static_shared, 1300);                                                \
		IS(#type, name && !strcmp(name, "gemm"), 1);                                       \
		IS(#type, row.node, 1616);                                                         \
		check;                                                                             \
	} while (0)

#define COPY(type, number, v, more, wanted)                                                        \
	do {                                                                                       \
		RECORD(type, number);                                                              \
		PLACE(r);                                                                          \
		r.bytes = 1717, r.copyKind = 8, r.srcKind = 3, r.dstKind = 2;                      \
		r.graphNodeId = 1616;                                                              \
		more;                                                                              \
		read_it(#type, &r, v);                                                             \
		IS(#type, row.bytes, 1717);                                                        \
		IS(#type, row.flags, 8);                                                           \
		IS(#type, row.src, 3);                                                             \
		IS(#type, row.dst, 2);                                                             \
		IS(#type, row.node, 1616);                                                         \
		IS(#type, row.graph, wanted);                                                      \
	} while (0)

#define SET(type, v, more, wanted)                                                                 \
	do {                                                                                       \
		RECORD(type, TFH_ACT_MEMSET);                                                      \
		PLACE(r);                                                                          \
		r.bytes = 1717, r.memoryKind = 3, r.graphNodeId = 1616;                            \
		more;                                                                              \
		read_it(#type, &r, v);                                                             \
		IS(#type, row.bytes, 1717);                                                        \
		IS(#type, row.dst, 3);                                                             \
		IS(#type, row.node, 1616);                                                         \
		IS(#type, row.graph, wanted);                                                      \
	} while (0)

#define GRAPH r.graphId = 18
#define CHANNEL GRAPH, r.channelID = 19

static void kernels(void)
{
	KERNEL(Kernel5, 13, GRAPH, IS("Kernel5", row.graph, 18));
	KERNEL(Kernel6, 15, GRAPH, IS("Kernel6", row.graph, 18));
	KERNEL(Kernel7, 17, CHANNEL, IS("Kernel7", row.channel, 19));
	KERNEL(Kernel8, 18, CHANNEL, IS("Kernel8", row.channel, 19));
	KERNEL(Kernel9, 28, CHANNEL, IS("Kernel9", row.channel, 19));
#if CUDA_VERSION >= 13000
	KERNEL(Kernel10, 130001, CHANNEL, IS("Kernel10", row.channel, 19));
#endif
}

static void copies(void)
{
	COPY(Memcpy3, TFH_ACT_MEMCPY, 13, (void)0, 0);
	COPY(Memcpy4, TFH_ACT_MEMCPY, 14, GRAPH, 18);
	COPY(Memcpy5, TFH_ACT_MEMCPY, 17, GRAPH, 18);
	COPY(Memcpy6, TFH_ACT_MEMCPY, 28, GRAPH, 18);
	COPY(MemcpyPtoP2, TFH_ACT_MEMCPY2, 13, (void)0, 0);
	COPY(MemcpyPtoP3, TFH_ACT_MEMCPY2, 14, GRAPH, 18);
	COPY(MemcpyPtoP4, TFH_ACT_MEMCPY2, 28, GRAPH, 18);
	SET(Memset2, 13, (void)0, 0);
	SET(Memset3, 14, GRAPH, 18);
	SET(Memset4, 28, GRAPH, 18);
}

static void others(void)
{
	do {
		RECORD(GraphTrace, TFH_ACT_GRAPH_TRACE);
		PLACE(r);
		GRAPH;
		read_it("GraphTrace", &r, 22);
		IS("GraphTrace", row.graph, 18);
	} while (0);
	do {
		RECORD(GraphTrace2, TFH_ACT_GRAPH_TRACE);
		PLACE(r);
		GRAPH;
		read_it("GraphTrace2", &r, 28);
		IS("GraphTrace2", row.graph, 18);
	} while (0);
	do {
		RECORD(API, TFH_ACT_DRIVER);
		r.cbid = 307, r.threadId = 88, r.returnValue = 2;
		one((const uint8_t *)&r);
		IS("API", drvr.start, 0x1111111100); /* kept to 256 ns, like the length */
		IS("API", drvr.end, 0x2222222200);
		IS("API", drvr.correlation, 66);
		IS("API", drvr.callback, 307);
		IS("API", drvr.tid, 88);
		IS("API", drvr.result, 2);
	} while (0);
#define OVERHEAD(type)                                                                             \
	do {                                                                                       \
		CUpti_Activity##type r;                                                            \
		memset(&r, 0xa5, sizeof(r));                                                       \
		r.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;                                             \
		r.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION;                    \
		r.start = 1000, r.end = 1700;                                                      \
		counts.overhead_ns = 0;                                                            \
		one((const uint8_t *)&r);                                                          \
		IS(#type, counts.overhead_ns, 700);                                                \
		/* what also occurs without CUPTI is no cost of recording: COMMAND_BUFFER_FULL */  \
		r.overheadKind = (CUpti_ActivityOverheadKind)(6 << 16);                            \
		one((const uint8_t *)&r);                                                          \
		IS(#type, counts.overhead_ns, 700);                                                \
	} while (0)
	OVERHEAD(Overhead);
	OVERHEAD(Overhead2);
	OVERHEAD(Overhead3);
}

static unsigned char raw[176];

static void put(unsigned at, uint64_t v, unsigned bytes)
{
	memcpy(raw + at, &v, bytes);
}

/* CUDA 11's Kernel5 to 7 and Memcpy3 to 5, by the numbers. */
static void numbers(void)
{
	const char *text = "gemm";

	memset(raw, 0xa5, sizeof(raw));
	put(0, 10, 4), put(6, 15, 2), put(16, 0x1111111111, 8), put(24, 0x2222222222, 8);
	put(40, 3, 4), put(44, 44, 4), put(48, 55, 4), put(92, 66, 4), put(144, 1616, 8);
	put(52, 7, 4), put(56, 8, 4), put(60, 9, 4), put(156, 18, 4), put(168, 19, 4);
	memcpy(raw + 104, &text, sizeof(text));
	read_it("kernel of 11", raw, 17);
	IS("kernel of 11", row.grid, tft_launch_w1(7, 8, 9));
	IS("kernel of 11", row.node, 1616);
	IS("kernel of 11", row.graph, 18);
	IS("kernel of 11", row.channel, 19);
	memset(raw, 0xa5, sizeof(raw));
	put(0, 1, 4), put(4, 8, 1), put(5, 3, 1), put(6, 2, 1), put(8, 1717, 8);
	put(16, 0x1111111111, 8), put(24, 0x2222222222, 8), put(32, 3, 4), put(36, 44, 4);
	put(40, 55, 4), put(44, 66, 4), put(64, 1616, 8), put(72, 18, 4);
	read_it("copy of 11.0", raw, 13);
	IS("copy of 11.0", row.graph, 0);
	read_it("copy of 11.4", raw, 15);
	IS("copy of 11.4", row.bytes, 1717);
	IS("copy of 11.4", row.graph, 18);
}

int main(void)
{
	kernels();
	copies();
	others();
	numbers();
	printf("headers of CUDA %d: %d wrong\n", CUDA_VERSION, failures);
	return failures != 0;
}
