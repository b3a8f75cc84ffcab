/*
 * Memory is bounded: there are rows for one chunk of each table. When they are used up, the chunk
 * is written. While writing is paused, rows are counted as lost.
 */
#include "record/gpu/gpu_rows.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "record/process/recorder.h"
#include "record/ring/journal.h"
#include "record/write/write.h"

#define ROWS 8192u
#define HEAP_BYTES (256u << 10)
#define TEXTS 1024u /* hash of texts in the heap, by address */
#define PAIRS 128u

uint64_t tfh_gpu_span_last;
uint32_t tfh_gpu_exit_phase;

/* In a separate mapping, created when the first row comes. */
struct rows {
	struct tft_gpu_row gpu[ROWS];
	struct tft_drvr_row drvr[ROWS];
	char heap[HEAP_BYTES];
	struct {
		const char *text;
		uint32_t at;
	} text[TEXTS];
};

static struct {
	struct rows *rows;
	uint8_t *payload;
	size_t payload_bytes;
	uint32_t gpus, drvrs, heap;
	struct tft_table_pair pair[PAIRS];
	uint32_t pairs;
	uint64_t lost_written;
	bool no_nodes;
} g;

static uint64_t lost; /* atomic */

void tfh_gpu_lost(uint64_t n)
{
	__atomic_fetch_add(&lost, n, __ATOMIC_RELAXED);
}

void tfh_gpu_add_pair(const struct tfh_gpu_source *source)
{
	struct tft_table_pair p;

	if (!tfh_foreign_clock(source, &p))
		return;
	if (g.pairs == PAIRS) /* no rows for two minutes, or none could be written */
		memmove(g.pair, g.pair + 1, --g.pairs * sizeof(*g.pair));
	g.pair[g.pairs++] = p;
}

static bool have_rows(void)
{
	void *map;

	if (g.rows)
		return true;
	g.payload_bytes = ROWS * 128u + HEAP_BYTES + (64u << 10);
	map = mmap(NULL, sizeof(*g.rows) + g.payload_bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return false;
	g.rows = map;
	g.payload = (uint8_t *)(g.rows + 1);
	return true;
}

struct tft_gpu_row *tfh_gpu_row(void)
{
	/* 4 KiB is the longest name accepted. */
	if (g.rows && (g.gpus == ROWS || g.heap + 4096 > HEAP_BYTES))
		tfh_gpu_write_rows(0);
	if (!have_rows() || g.gpus == ROWS || g.heap + 4096 > HEAP_BYTES) {
		tfh_gpu_lost(1);
		return NULL;
	}
	memset(&g.rows->gpu[g.gpus], 0, sizeof(*g.rows->gpu));
	return &g.rows->gpu[g.gpus++];
}

struct tft_drvr_row *tfh_gpu_drvr(void)
{
	if (g.rows && g.drvrs == ROWS)
		tfh_gpu_write_rows(0);
	if (!have_rows() || g.drvrs == ROWS)
		return NULL; /* an op without its call is not a lost op */
	memset(&g.rows->drvr[g.drvrs], 0, sizeof(*g.rows->drvr));
	return &g.rows->drvr[g.drvrs++];
}

uint32_t tfh_gpu_text(const char *text)
{
	size_t len = strnlen(text, 4000);
	uint32_t slot = (uint32_t)(((uintptr_t)text >> 3) * 0x9e3779b1u) % TEXTS;

	/* CUPTI hands out one address per name, but another name may occupy that address later. */
	if (g.rows->text[slot].text == text && g.heap &&
	    !strncmp(g.rows->heap + g.rows->text[slot].at, text, len) &&
	    !g.rows->heap[g.rows->text[slot].at + len])
		return g.rows->text[slot].at;
	if (!g.heap)
		g.heap = 1; /* offset 0 is the empty text */
	g.rows->text[slot].text = text;
	g.rows->text[slot].at = g.heap;
	memcpy(g.rows->heap + g.heap, text, len);
	g.rows->heap[g.heap + len] = '\0';
	g.heap += (uint32_t)len + 1;
	return g.rows->text[slot].at;
}

/* ---- writing ---- */

uint64_t tfh_gpu_ticks(uint64_t ns)
{
	const struct tft_table_pair *p = g.pairs ? &g.pair[g.pairs - 1] : NULL;
	double hz = (double)tfh_tick_hz();

	if (!p || hz <= 0)
		return 0;
	return p->ticks + (uint64_t)(int64_t)((double)(int64_t)(ns - p->ns) * hz * 1e-9);
}

static int put(uint32_t type, const struct tft_table *t, const void *rows, uint32_t n,
	       const struct tft_table_extra *extra, uint64_t first, uint64_t last)
{
	int err = tft_table_bound(t, n, extra) <= g.payload_bytes ? 0 : -E2BIG;
	size_t len;

	if (err)
		return err;
	len = tft_table_pack(t, rows, n, extra, g.payload);
	return tft_write_chunk_at(tfh_segments.writer, type, g.payload, (uint32_t)len, first, last);
}

static int put_gpus(const struct tft_gpu_span *span)
{
	uint64_t first = UINT64_MAX, last = 0;
	struct tft_table_extra extra = {.heap = g.rows->heap,
					.heap_bytes = g.heap,
					.pair = g.pair,
					.pairs = g.pairs,
					.span = span,
					.spans = span->last > span->first};

	for (uint32_t i = 0; i < g.gpus; i++) {
		const struct tft_gpu_row *r = &g.rows->gpu[i];
		first = r->start < first ? r->start : first;
		last = r->end > last ? r->end : last;
	}
	return put(TFT_GPUS, &tft_gpus, g.rows->gpu, g.gpus, &extra,
		   g.gpus ? tfh_gpu_ticks(first) : span->first,
		   g.gpus ? tfh_gpu_ticks(last) : span->last);
}

static int put_drvr(void)
{
	uint64_t first = UINT64_MAX, last = 0;
	struct tft_table_extra extra = {.pair = g.pair, .pairs = g.pairs};

	for (uint32_t i = 0; i < g.drvrs; i++) {
		const struct tft_drvr_row *r = &g.rows->drvr[i];
		first = r->start < first ? r->start : first;
		last = r->end > last ? r->end : last;
	}
	return g.drvrs ? put(TFT_DRVR, &tft_drvr, g.rows->drvr, g.drvrs, &extra,
			     tfh_gpu_ticks(first), tfh_gpu_ticks(last))
		       : 0;
}

static int put_lost(uint64_t first)
{
	uint64_t n = __atomic_load_n(&lost, __ATOMIC_RELAXED) - g.lost_written;
	struct tft_loss loss = {.thread = UINT32_MAX,
				.cause = TFT_LOSS_CUPTI,
				.count = n,
				.t_first = first,
				.t_last = tfh_ticks()};
	int err = n ? tft_write_loss(tfh_segments.writer, &loss, 1, tfh_journal.head->dropped) : 0;

	if (!err)
		g.lost_written += n;
	return err;
}

/* Writes all rows of one round to one place in the file. After a failure the rows are kept for the
 * next try. */
static int put_all(uint64_t until)
{
	struct tft_gpu_span span = {tfh_gpu_span_last, until, g.no_nodes ? 0 : TFT_GPU_SPAN_NODES};
	uint64_t before = tfh_gpu_span_last;
	int err = tfh_segment_ready();

	/* Chunks of events may follow half a minute later, or never: a killed process leaves them
	 * to another file. Without a clock reading in this file, its ticks could not be related to
	 * that one's. */
	if (!err)
		err = tfh_clocks_put(tfh_segments.writer);
	if (!err)
		err = tfh_gpu_put_notes(tfh_segments.writer, tfh_segments.opened,
					__atomic_load_n(&tfh_gpu_exit_phase, __ATOMIC_ACQUIRE));
	/* DRVR comes first, so a reader that meets an op already has its call. */
	if (!err && g.drvrs && !(err = put_drvr()))
		g.drvrs = 0;
	if (!err && (g.gpus || span.last > span.first) && have_rows()) {
		err = put_gpus(&span);
		if (!err) {
			g.gpus = g.heap = 0;
			memset(g.rows->text, 0, sizeof(g.rows->text));
			if (span.last > span.first)
				tfh_gpu_span_last = span.last;
		}
	}
	if (!err)
		err = put_lost(before);
	return err;
}

/* Ops that are still to come were issued after the complete ones. */
static void forget_old_pairs(void)
{
	uint32_t n = 0;

	while (n + 2 < g.pairs && g.pair[n + 1].ticks <= tfh_gpu_span_last)
		n++;
	g.pairs -= n;
	memmove(g.pair, g.pair + n, g.pairs * sizeof(*g.pair));
}

void tfh_gpu_write_rows(uint64_t until)
{
	uint64_t now_ns = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
	int err;

	if (tfh_write_paused(now_ns))
		return;
	err = tfh_disk_check();
	if (!err)
		err = put_all(until);
	if (err)
		tfh_write_failed(err, now_ns);
	if (err)
		return;
	forget_old_pairs();
	tfh_segment_rotate_if_full();
}

void tfh_gpu_no_nodes(void)
{
	g.no_nodes = true;
}

void tfh_gpu_forget_pairs(void)
{
	g.pairs = 0;
}

bool tfh_gpu_rows_left(void)
{
	return g.gpus || g.drvrs;
}

void tfh_gpu_forget_rows(void)
{
	if (g.rows)
		munmap(g.rows, sizeof(*g.rows) + g.payload_bytes);
	memset(&g, 0, sizeof(g));
	tfh_gpu_span_last = lost = 0;
}
