/*
 * Converts records to rows. The offsets are those that the record types of CUPTI 11 to 13 share;
 * only CUPTI knows a record's length.
 */
#include "hook/cupti/cupti.h"

#include <string.h>
#include <sys/mman.h>

#include "format/layout.h"
#include "record/gpu/gpu.h"
#include "record/record.h"

/* CUPTI's version numbers; earlier releases have other fields there. */
#define COPY_GRAPH_SINCE 14u /* 11.1: Memcpy4, MemcpyPtoP3, Memset3 */
#define CHANNEL_SINCE 17u    /* 11.6: Kernel7 */

static struct tfh_rows_count counts;

const struct tfh_rows_count *tfh_rows_count(void)
{
	return &counts;
}

static uint64_t u64(const uint8_t *p, unsigned at)
{
	uint64_t v;
	memcpy(&v, p + at, sizeof(v));
	return v;
}

static uint32_t u32(const uint8_t *p, unsigned at)
{
	uint32_t v;
	memcpy(&v, p + at, sizeof(v));
	return v;
}

static uint16_t u16(const uint8_t *p, unsigned at)
{
	uint16_t v;
	memcpy(&v, p + at, sizeof(v));
	return v;
}

/* Offsets of the fields of all device ops. */
struct column_places {
	uint8_t start, device, ctx, stream, correlation, node, graph;
};

static void common(const uint8_t *r, const struct column_places *p, struct tft_gpu_row *row)
{
	row->start = u64(r, p->start);
	row->end = u64(r, p->start + 8u);
	row->device = (uint8_t)u32(r, p->device);
	row->ctx = u32(r, p->ctx);
	row->stream = u32(r, p->stream);
	row->correlation = u32(r, p->correlation);
	row->node = p->node ? u64(r, p->node) : 0;
	row->graph = p->graph ? u32(r, p->graph) : 0;
}

static void kernel(const uint8_t *r, struct tft_gpu_row *row)
{
	static const struct column_places places = {16, 40, 44, 48, 92, 144, 156};

	common(r, &places, row);
	row->kind = 1;
	row->grid = tft_launch_w1(u32(r, 52), u32(r, 56), u32(r, 60));
	row->block = tft_launch_w2(u32(r, 64), u32(r, 68), u32(r, 72), u32(r, 80));
	row->registers = u16(r, 6);
	row->static_shared = u32(r, 76);
	if (tfh_cupti_version() >= CHANNEL_SINCE)
		row->channel = u32(r, 168);
}

static void copy(const uint8_t *r, struct tft_gpu_row *row, bool peer)
{
	static const struct column_places here = {16, 32, 36, 40, 44, 64, 72},
					  between = {16, 32, 36, 40, 60, 72, 80};

	common(r, peer ? &between : &here, row);
	if (tfh_cupti_version() < COPY_GRAPH_SINCE)
		row->graph = 0;
	row->kind = 2;
	row->bytes = u64(r, 8);
	row->src = r[5];
	row->dst = r[6];
	row->flags = r[4];
}

static void set(const uint8_t *r, struct tft_gpu_row *row)
{
	static const struct column_places places = {16, 32, 36, 40, 44, 64, 72};

	common(r, &places, row);
	if (tfh_cupti_version() < COPY_GRAPH_SINCE)
		row->graph = 0;
	row->kind = 3;
	row->bytes = u64(r, 8);
	row->dst = (uint8_t)u16(r, 50);
}

static void graph(const uint8_t *r, struct tft_gpu_row *row)
{
	static const struct column_places places = {8, 24, 32, 36, 4, 0, 28};

	common(r, &places, row);
	row->kind = 5;
}

bool tfh_row_of_record(const uint8_t *r, struct tft_gpu_row *row, const char **name)
{
	*name = NULL;
	switch (u32(r, 0)) {
	case TFH_ACT_KERNEL:
	case TFH_ACT_CONCURRENT_KERNEL:
		kernel(r, row);
		memcpy(name, r + 104, sizeof(*name));
		return true;
	case TFH_ACT_MEMCPY:
		copy(r, row, false);
		return true;
	case TFH_ACT_MEMCPY2:
		copy(r, row, true);
		return true;
	case TFH_ACT_MEMSET:
		set(r, row);
		return true;
	case TFH_ACT_GRAPH_TRACE:
		graph(r, row);
		return true;
	default:
		return false;
	}
}

/* Calls whose op has not arrived, and ops whose call has not, by correlation number: CUPTI delivers
 * both in any order. A call without an op (a copy of 0 bytes) is forgotten after a while, or when
 * its slot is needed. */
#define PENDING 65536u
#define FORGET_NS 30000000000ull
#define FORGET_NODES_NS 1000000000ull /* for a graph launch: since its last node */
static struct pending_call {
	uint32_t correlation;
	bool op; /* its op has arrived */
	bool graph;
	uint64_t start;
} * pending; /* [PENDING], allocated for the first buffer */
static uint32_t n_pending;
/* Time from which records are wanted, by the records' clock: a call in progress then may have a
 * record but no op. Atomic. */
static uint64_t since;
#define UNDER_WAY_NS 60000000000ull

/* Further nodes of a graph may follow. */
static void op_came(uint32_t correlation, uint64_t end, bool graph)
{
	uint32_t at = correlation % PENDING;

	n_pending -= pending[at].start != 0;
	pending[at].correlation = correlation;
	pending[at].op = true;
	pending[at].graph = graph;
	pending[at].start = graph ? end : 0;
	n_pending += pending[at].start != 0;
}

static void call_came(uint32_t correlation, uint64_t start)
{
	uint32_t at = correlation % PENDING;

	if (pending[at].op && pending[at].correlation == correlation)
		return;
	uint64_t begin = __atomic_load_n(&since, __ATOMIC_RELAXED);
	if (start < begin && begin - start < UNDER_WAY_NS)
		return;
	n_pending += !pending[at].start;
	pending[at].correlation = correlation;
	pending[at].op = pending[at].graph = false;
	pending[at].start = start;
}

uint64_t tfh_rows_pending(uint64_t now)
{
	uint64_t oldest = UINT64_MAX, newest = 0, ticks;

	for (uint32_t i = 0; n_pending && i < PENDING; i++)
		newest = pending[i].start > newest ? pending[i].start : newest;
	for (uint32_t i = 0; n_pending && i < PENDING; i++) {
		if (!pending[i].start)
			continue;
		if (pending[i].start + (pending[i].graph ? FORGET_NODES_NS : FORGET_NS) < newest) {
			pending[i].start = 0;
			n_pending--;
		} else if (pending[i].start < oldest) {
			oldest = pending[i].start;
		}
	}
	ticks = n_pending ? tfh_gpu_ticks(oldest) : 0;
	return ticks && ticks < now ? ticks : now;
}

void tfh_rows_since(uint64_t now)
{
	__atomic_store_n(&since, now, __ATOMIC_RELAXED);
}

void tfh_rows_forget(void)
{
	if (pending) /* zeroes them */
		madvise(pending, PENDING * sizeof(*pending), MADV_DONTNEED);
	n_pending = 0;
}

/* The times of a call, rounded to a power of two that is at most an eighth of its duration. They
 * only have to identify the call, since our own record has its times; for this it is enough that
 * the largest error, 3/16 of the duration, is less than half of it. The last bits are noise that
 * would cost a byte per call in the file. */
#define FINEST_NS 16u
#define COARSEST_NS 256u /* clocks and calls are compared with a tolerance of 5 us */
static void call_times(struct tft_drvr_row *row, uint64_t start, uint64_t end)
{
	uint64_t ns = end > start ? end - start : 0, step = FINEST_NS;

	while (step < COARSEST_NS && 16 * step <= ns)
		step *= 2;
	row->start = (start + step / 2) & ~(step - 1);
	row->end = row->start + ((ns + step / 2) & ~(step - 1));
}

static void call(const uint8_t *r)
{
	struct tft_drvr_row *row;

	if (!u32(r, 36))
		call_came(u32(r, 32), u64(r, 8));
	row = tfh_gpu_drvr();

	if (!row)
		return;
	row->callback = u32(r, 4);
	call_times(row, u64(r, 8), u64(r, 16));
	row->tid = u32(r, 28);
	row->correlation = u32(r, 32);
	row->result = u32(r, 36);
}

/* Whether CUPTI itself caused an overhead that it reports: flushing buffers, instrumentation,
 * resources, requests for buffers. The others (compiling, loading modules, a launch that waits for
 * room in the queue) occur without it, too. */
static bool is_own_work(uint32_t kind)
{
	kind >>= 16;
	return (kind >= 1 && kind <= 3) || kind == 7;
}

static void one(const uint8_t *r)
{
	struct tft_gpu_row row = {0}, *place;
	const char *name;

	if (u32(r, 0) == TFH_ACT_DRIVER) {
		call(r);
		return;
	}
	if (u32(r, 0) == TFH_ACT_OVERHEAD) {
		if (is_own_work(u32(r, 4)) && u64(r, 32) > u64(r, 24))
			counts.overhead_ns += u64(r, 32) - u64(r, 24);
		return;
	}
	if (!tfh_row_of_record(r, &row, &name))
		return; /* a kind that the job's profiler enabled */
	op_came(row.correlation, row.end, row.node != 0);
	counts.ops++;
	counts.nodes += row.node != 0;
	/* An op cut off by the forced flush has no end. An op without device memory has no times;
	 * nor has one that got another op's clock by a bug of some releases. */
	if (!row.start || row.end < row.start) {
		tfh_gpu_lost(1);
		return;
	}
	place = tfh_gpu_row();
	if (!place)
		return;
	*place = row;
	if (name)
		place->name = tfh_gpu_text(name);
}

void tfh_rows_of(uint8_t *buffer, size_t valid)
{
	uint8_t *record = NULL;

	if (!tfh_memory(&pending, PENDING * sizeof(*pending), "device times"))
		return;
	while (!TFH_CUPTI(NEXT_RECORD)(buffer, valid, &record))
		one(record);
}
