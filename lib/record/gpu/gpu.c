/*
 * The flusher's side of device times: when they are wanted (setting, control word, windows of
 * steps), the rows made from CUPTI's records, and the GPUS and DRVR chunks made from the rows.
 *
 * Memory is bounded: there are rows for one chunk of each table. When they are used up, the chunk
 * is written. While writing is paused, rows are counted as lost.
 */
#include "record/gpu/gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/proc.h"
#include "record/gpu/gpu_plan.h"
#include "record/process/lock.h"
#include "record/process/sanitizer.h"
#include "record/process/steady.h"
#include "record/ring/journal.h"
#include "record/ring/switch.h"
#include "record/write/write.h"

#define ROWS 8192u
#define HEAP_BYTES (256u << 10)
#define TEXTS 1024u /* hash of texts in the heap, by address */
#define PAIRS 128u
/* The calling thread's stack: finding libcupti takes 80 KiB, and CUPTI is foreign code. A job's
 * thread may have 16 KiB in all, or run on a stack of its own making. In that case the flusher,
 * which has enough, begins within 100 ms. */
#define LEAST_STACK (256u << 10)
#define GO_OFF_NS (3 * SECOND_NS)
#define SECOND_NS 1000000000ull

/* Windows of TFHOOK_CUPTI=window: steps 10 to 29 of every 1,000, so that the first one comes after
 * the warm-up. Without steps, seconds 3 and 4 of every 100. */
enum { WINDOW_EVERY = 1000, WINDOW_FIRST = 10, WINDOW_STEPS = 20 };
#define WINDOW_EVERY_NS (100 * SECOND_NS)
#define WINDOW_FIRST_NS (3 * SECOND_NS)
#define WINDOW_NS (2 * SECOND_NS)

uint32_t tfh_gpu_storing;

static const struct tfh_gpu_source *source;

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
	uint64_t end;	     /* device times are wanted up to here; 0: no end yet */
	uint64_t end_ns;     /* when `end` was set */
	uint64_t span_last;  /* every op up to here is written; the next span begins here */
	uint64_t exit_ticks; /* when the last flush ended; 0: not yet */
	uint64_t step_limit; /* steps at which `gpu on --steps` ends; 0: no end */
	uint32_t off_before; /* TFT_CTL_GPU_OFF if that is what it ends with */
	uint64_t ops_written, lost_written;
	bool ahead; /* CUPTI was started for a step that is still to come */
	bool no_nodes, dead, closed;
} g; /* owned by turn_on() until tfh_gpu_storing is set, then by the flusher */

static bool always;	   /* "auto" means on */
static uint32_t windowed;  /* atomic: "on" means window, since the records cost too much */
static uint64_t lost;	   /* atomic */
static uint32_t new_clock; /* atomic */
static uint64_t cut;	   /* atomic: ticks at which the provider was shut down; 0: it was not */

/* How far the exit has come. FLUSHING: CUPTI may be called for the last time; CLOSED: CUPTI must
 * not be called. */
enum { LIVE, FLUSHING, CLOSED };
static uint32_t exiting; /* atomic */

void tfh_gpu_attach(const struct tfh_gpu_source *s)
{
	source = s;
}

bool tfh_gpu_exiting(void)
{
	return __atomic_load_n(&exiting, __ATOMIC_ACQUIRE);
}

void tfh_gpu_lost(uint64_t n)
{
	__atomic_fetch_add(&lost, n, __ATOMIC_RELAXED);
}

void tfh_gpu_new_clock(void)
{
	__atomic_store_n(&new_clock, 1, __ATOMIC_RELEASE);
}

void tfh_gpu_cut(void)
{
	__atomic_store_n(&cut, tfh_ticks(), __ATOMIC_RELEASE);
}

void tfh_gpu_resumed(void)
{
	g.span_last = tfh_ticks();
	__atomic_store_n(&cut, 0, __ATOMIC_RELEASE);
}

/* ---- when ---- */

static bool storing(void)
{
	/* acquire: a thread that sees it on sees the rest of turn_on() */
	return __atomic_load_n(&tfh_gpu_storing, __ATOMIC_ACQUIRE) == TFH_GPU_ON;
}

static enum tfh_option_cupti setting(void)
{
	int64_t value = tfh_opt_int(&tfh_p.options, TFH_OPT_CUPTI);
	bool run = always || *tfh_opt_str(&tfh_p.options, TFH_OPT_RUN);

	if (value == TFH_CUPTI_AUTO)
		value = run ? TFH_CUPTI_ON : TFH_CUPTI_WINDOW;
	if (value == TFH_CUPTI_ON && tfh_gpu_windowed())
		value = TFH_CUPTI_WINDOW;
	return (enum tfh_option_cupti)value;
}

static bool in_window(uint64_t now_ns)
{
	uint64_t steps = tfh_steps_seen();
	uint64_t since = now_ns - tfh_p.first.monotonic_ns;

	if (steps)
		return steps % WINDOW_EVERY - WINDOW_FIRST < WINDOW_STEPS;
	return since % WINDOW_EVERY_NS - WINDOW_FIRST_NS < WINDOW_NS;
}

static bool wanted(uint64_t now_ns)
{
	uint64_t control = __atomic_load_n(&tfh_j.head->control, __ATOMIC_ACQUIRE);
	enum tfh_option_cupti how = setting();

	if (__atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE) != TFH_MODE_ON || source->yields())
		return false;
	if (tfh_gpu_plan_wants() || control & TFT_CTL_GPU_OFF)
		return tfh_gpu_plan_wants();
	return control & TFT_CTL_GPU_ON || how == TFH_CUPTI_ON ||
	       (how == TFH_CUPTI_WINDOW && in_window(now_ns));
}

bool tfh_gpu_take_steps(uint64_t steps)
{
	if (!(__atomic_load_n(&tfh_j.head->control, __ATOMIC_ACQUIRE) & TFT_CTL_GPU_ON))
		return false;
	g.step_limit = tfh_steps_seen() + steps;
	return true;
}

bool tfh_gpu_counting(void)
{
	return g.step_limit || tfh_gpu_plan_counting() ||
	       (setting() == TFH_CUPTI_WINDOW && source && !g.dead &&
		(storing() || tfh_steps_seen() < WINDOW_FIRST + WINDOW_STEPS));
}

static void add_pair(void)
{
	struct tft_table_pair p;

	if (!tfh_foreign_clock(source, &p))
		return;
	if (g.pairs == PAIRS) /* no rows for two minutes, or none could be written */
		memmove(g.pair, g.pair + 1, --g.pairs * sizeof(*g.pair));
	g.pair[g.pairs++] = p;
}

/* Called on the flusher or on a thread of the job, whichever comes first. */
static void turn_on(void)
{
	int err;

	tfh_guard_begin(&tfh_self); /* calls that CUPTI makes are not the job's */
	err = tfh_foreign_start(source);
	tfh_guard_end(&tfh_self);
	if (err) {
		g.dead |= err != -EAGAIN;
		return;
	}
	g.pairs = 0;
	add_pair();
	/* Buffers are kept before the span begins: an op that runs in the span may come back at
	 * once. */
	__atomic_store_n(&tfh_gpu_storing, TFH_GPU_KEEPING, __ATOMIC_SEQ_CST);
	g.span_last = tfh_ticks();
	__atomic_store_n(&tfh_gpu_storing, TFH_GPU_ON, __ATOMIC_RELEASE);
}

void tfh_gpu_begin(void)
{
	static uint32_t lock TFH_LOCK_WORD;
	struct tfh_steady steady;
	uint64_t now_ns = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);

	if (!source || g.dead || tfh_gpu_exiting() || !tfh_j.head || storing() ||
	    __atomic_load_n(&tfh_p.start_state, __ATOMIC_ACQUIRE) != TFH_START_DONE)
		return;
	tfh_steady_begin(&steady);
	tfh_steady_long(&steady);
	if (tfh_lock_try(&lock)) { /* otherwise the other thread, flusher or job, does it */
		tfh_sanitizer_ignore_begin();
		if (!storing() && wanted(now_ns) && tfh_stack_left() >= LEAST_STACK)
			turn_on();
		tfh_sanitizer_ignore_end();
		tfh_unlock(&lock);
	}
	tfh_steady_end(&steady);
}

void tfh_gpu_always(void)
{
	always = true;
}

bool tfh_gpu_exit(void)
{
	uint32_t live = LIVE;

	return source && storing() &&
	       __atomic_compare_exchange_n(&exiting, &live, FLUSHING, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

void tfh_gpu_close(void)
{
	__atomic_store_n(&exiting, CLOSED, __ATOMIC_RELEASE);
}

/* ---- rows ---- */

static void write_gpus(uint64_t until);

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
		write_gpus(0);
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
		write_gpus(0);
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
	return tft_write_chunk_at(tfh_seg.writer, type, g.payload, (uint32_t)len, first, last);
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
	int err = n ? tft_write_loss(tfh_seg.writer, &loss, 1, tfh_j.head->dropped) : 0;

	if (!err)
		g.lost_written += n;
	return err;
}

/* Writes all rows of one round to one place in the file. After a failure the rows are kept for the
 * next try. */
static int put_all(uint64_t until)
{
	struct tft_gpu_span span = {g.span_last, until, g.no_nodes ? 0 : TFT_GPU_SPAN_NODES};
	uint64_t before = g.span_last;
	int err = tfh_segment_ready();

	/* Chunks of events may follow half a minute later, or never: a killed process leaves them
	 * to another file. Without a clock reading in this file, its ticks could not be related to
	 * that one's. */
	if (!err)
		err = tfh_clocks_put(tfh_seg.writer);
	if (!err)
		err = tfh_gpu_put_notes(tfh_seg.writer, tfh_seg.opened, tfh_gpu_exiting());
	/* DRVR comes first, so a reader that meets an op already has its call. */
	if (!err && g.drvrs && !(err = put_drvr()))
		g.drvrs = 0;
	if (!err && (g.gpus || span.last > span.first) && have_rows()) {
		err = put_gpus(&span);
		if (!err) {
			g.ops_written += g.gpus;
			g.gpus = g.heap = 0;
			memset(g.rows->text, 0, sizeof(g.rows->text));
			if (span.last > span.first)
				g.span_last = span.last;
		}
	}
	if (!err)
		err = put_lost(before);
	return err;
}

/* Ops that are still to come were issued after the complete ones. */
static void forget_pairs(void)
{
	uint32_t n = 0;

	while (n + 2 < g.pairs && g.pair[n + 1].ticks <= g.span_last)
		n++;
	g.pairs -= n;
	memmove(g.pair, g.pair + n, g.pairs * sizeof(*g.pair));
}

/* `until`: the end of the chunk's span; 0 for none. */
static void write_gpus(uint64_t until)
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
	forget_pairs();
	tfh_segment_rotate_if_full();
}

/* ---- the flusher's rounds ---- */

static void turn_off(void)
{
	__atomic_store_n(&tfh_gpu_storing, TFH_GPU_OFF, __ATOMIC_RELEASE);
	tfh_foreign_rest(source);
	g.pairs = 0;
}

/* Takes all rows that are available, and the time up to which they are complete. */
static void take(void)
{
	uint64_t now = tfh_ticks(), until, gap;
	uint32_t phase = __atomic_load_n(&exiting, __ATOMIC_ACQUIRE);

	if (phase == LIVE)
		tfh_foreign_flush(source, false);
	else if (phase == FLUSHING && !g.exit_ticks && tfh_foreign_flush(source, true))
		g.exit_ticks = tfh_ticks();
	if (phase != CLOSED)
		add_pair();
	source->collect();
	until = g.exit_ticks ? g.exit_ticks : source->complete_until(now);
	if (g.end && (int64_t)(until - g.end) > 0)
		until = g.end;
	gap = __atomic_load_n(&cut, __ATOMIC_ACQUIRE);
	if (gap && (int64_t)(until - gap) > 0)
		until = gap;
	until = tfh_gpu_plan_until(until);
	if (g.ahead && tfh_gpu_plan_leads())
		until = g.span_last;
	write_gpus((int64_t)(until - g.span_last) > 0 ? until : 0);
}

/* Waits a while for ops that were under way at the end. */
static void go_off(uint64_t now_ns)
{
	if (!g.end) {
		g.end = tfh_ticks();
		g.end_ns = now_ns;
	}
	take();
	if (g.span_last == g.end || now_ns - g.end_ns > GO_OFF_NS) {
		turn_off();
		g.end = 0;
	}
}

/* Begins or ends a span at the time of a step, if that was requested. */
static void obey_plan(uint64_t now_ns)
{
	uint64_t tick;
	enum tfh_gpu_event event = tfh_gpu_plan_poll(now_ns, &tick);

	if (event == TFH_GPU_EVENT_LEADS)
		g.ahead = !storing();
	if (event == TFH_GPU_EVENT_BEGINS && g.ahead && (int64_t)(tick - g.span_last) > 0)
		g.span_last = tick;
	if (event == TFH_GPU_EVENT_ENDS && storing() && !wanted(now_ns))
		g.end = (int64_t)(tick - g.span_last) > 0 ? tick : g.span_last;
}

/* After `gpu on --steps`, an earlier `gpu off` is true again. */
static void end_steps(uint64_t *control)
{
	uint64_t word = __atomic_load_n(control, __ATOMIC_ACQUIRE);

	if (g.step_limit && tfh_steps_seen() >= g.step_limit) {
		g.step_limit = 0;
		__atomic_or_fetch(control, g.off_before, __ATOMIC_ACQ_REL);
		__atomic_and_fetch(control, ~(uint64_t)TFT_CTL_GPU_ON, __ATOMIC_ACQ_REL);
	} else if (!g.step_limit && !(word >> 32)) {
		g.off_before = (uint32_t)word & TFT_CTL_GPU_OFF;
	}
}

void tfh_gpu_poll(uint64_t now_ns)
{
	if (!source)
		return;
	end_steps(&tfh_j.head->control);
	obey_plan(now_ns);
	if (!storing()) {
		if (wanted(now_ns) && source->possible())
			tfh_gpu_begin();
	} else if (g.end && tfh_gpu_plan_trails()) {
		g.end_ns = now_ns;
		source->collect();
	} else if (wanted(now_ns) || tfh_gpu_exiting()) {
		g.end = 0;
		source->collect();
	} else {
		go_off(now_ns);
	}
}

void tfh_gpu_second(uint64_t now_ns)
{
	if (!source || !storing() || g.closed)
		return;
	if (__atomic_exchange_n(&new_clock, 0, __ATOMIC_ACQ_REL)) {
		source->collect();
		write_gpus(0);
		g.pairs = 0;
		g.span_last = tfh_ticks(); /* ops that were under way have no clock */
	}
	take();
	if (tfh_gpu_exiting())
		return;
	tfh_foreign_second(source, now_ns);
}

void tfh_gpu_write(bool last)
{
	if (!source || g.closed)
		return;
	if (setting() == TFH_CUPTI_OFF)
		tfh_gpu_why("switched off by TFHOOK_CUPTI=off");
	if (storing())
		take();
	else if (g.gpus || g.drvrs || !tfh_gpu_said(tfh_seg.opened))
		write_gpus(0);
	g.closed = last;
	if (last)
		__atomic_store_n(&tfh_gpu_storing, TFH_GPU_OFF, __ATOMIC_RELEASE);
}

void tfh_gpu_no_nodes(void)
{
	g.no_nodes = true;
}

void tfh_gpu_windows(void)
{
	__atomic_store_n(&windowed, 1, __ATOMIC_RELEASE);
}

bool tfh_gpu_windowed(void)
{
	return __atomic_load_n(&windowed, __ATOMIC_ACQUIRE);
}

void tfh_gpu_forget(void)
{
	if (g.rows)
		munmap(g.rows, sizeof(*g.rows) + g.payload_bytes);
	memset(&g, 0, sizeof(g));
	tfh_gpu_storing = TFH_GPU_OFF;
	lost = cut = 0;
	new_clock = exiting = windowed = 0;
	tfh_gpu_forget_notes();
	tfh_gpu_plan_forget();
}
