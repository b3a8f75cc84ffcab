/*
 * The flusher's side of device times: when they are wanted (setting, control word, windows of
 * steps), and its rounds. gpu_rows.c has the rows.
 */
#include "record/gpu/gpu.h"

#include <errno.h>
#include <string.h>

#include "base/proc.h"
#include "record/gpu/gpu_plan.h"
#include "record/gpu/gpu_rows.h"
#include "record/process/lock.h"
#include "record/process/sanitizer.h"
#include "record/process/steady.h"
#include "record/ring/journal.h"
#include "record/ring/switch.h"
#include "record/write/write.h"

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

static struct {
	uint64_t end;	     /* device times are wanted up to here; 0: no end yet */
	uint64_t end_ns;     /* when `end` was set */
	uint64_t exit_ticks; /* when the last flush ended; 0: not yet */
	uint64_t step_limit; /* steps at which `gpu on --steps` ends; 0: no end */
	uint32_t off_before; /* TFT_CTL_GPU_OFF if that is what it ends with */
	bool ahead;	     /* CUPTI was started for a step that is still to come */
	bool dead, closed;
} g; /* owned by turn_on() until tfh_gpu_storing is set, then by the flusher */

static bool always;	   /* "auto" means on */
static uint32_t windowed;  /* atomic: "on" means window, since the records cost too much */
static uint32_t new_clock; /* atomic */
static uint64_t cut;	   /* atomic: ticks at which the provider was shut down; 0: it was not */

void tfh_gpu_attach(const struct tfh_gpu_source *s)
{
	source = s;
}

static bool exiting(void)
{
	return __atomic_load_n(&tfh_gpu_exit_phase, __ATOMIC_ACQUIRE);
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
	tfh_gpu_span_last = tfh_ticks();
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
	int64_t value = tfh_opt_int(&tfh_recorder.options, TFH_OPT_CUPTI);
	bool run = always || *tfh_opt_str(&tfh_recorder.options, TFH_OPT_RUN);

	if (value == TFH_CUPTI_AUTO)
		value = run ? TFH_CUPTI_ON : TFH_CUPTI_WINDOW;
	if (value == TFH_CUPTI_ON && tfh_gpu_windowed())
		value = TFH_CUPTI_WINDOW;
	return (enum tfh_option_cupti)value;
}

static bool in_window(uint64_t now_ns)
{
	uint64_t steps = tfh_steps_seen();
	uint64_t since = now_ns - tfh_recorder.first.monotonic_ns;

	if (steps)
		return steps % WINDOW_EVERY - WINDOW_FIRST < WINDOW_STEPS;
	return since % WINDOW_EVERY_NS - WINDOW_FIRST_NS < WINDOW_NS;
}

static bool wanted(uint64_t now_ns)
{
	uint64_t control = __atomic_load_n(&tfh_journal.head->control, __ATOMIC_ACQUIRE);
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
	if (!(__atomic_load_n(&tfh_journal.head->control, __ATOMIC_ACQUIRE) & TFT_CTL_GPU_ON))
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
	tfh_gpu_forget_pairs();
	tfh_gpu_add_pair(source);
	/* Buffers are kept before the span begins: an op that runs in the span may come back at
	 * once. */
	__atomic_store_n(&tfh_gpu_storing, TFH_GPU_KEEPING, __ATOMIC_SEQ_CST);
	tfh_gpu_span_last = tfh_ticks();
	__atomic_store_n(&tfh_gpu_storing, TFH_GPU_ON, __ATOMIC_RELEASE);
}

void tfh_gpu_begin(void)
{
	static uint32_t lock TFH_LOCK_WORD;
	struct tfh_steady steady;
	uint64_t now_ns = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);

	if (!source || g.dead || exiting() || !tfh_journal.head || storing() ||
	    __atomic_load_n(&tfh_recorder.start_state, __ATOMIC_ACQUIRE) != TFH_START_DONE)
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
	uint32_t live = TFH_GPU_LIVE;

	return source && storing() &&
	       __atomic_compare_exchange_n(&tfh_gpu_exit_phase, &live, TFH_GPU_FLUSHING, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void tfh_gpu_close(void)
{
	__atomic_store_n(&tfh_gpu_exit_phase, TFH_GPU_CLOSED, __ATOMIC_RELEASE);
}

/* ---- the flusher's rounds ---- */

static void turn_off(void)
{
	__atomic_store_n(&tfh_gpu_storing, TFH_GPU_OFF, __ATOMIC_RELEASE);
	tfh_foreign_rest(source);
	tfh_gpu_forget_pairs();
}

/* Takes all rows that are available, and the time up to which they are complete. */
static void take(void)
{
	uint64_t now = tfh_ticks(), until, gap;
	uint32_t phase = __atomic_load_n(&tfh_gpu_exit_phase, __ATOMIC_ACQUIRE);

	if (phase == TFH_GPU_LIVE)
		tfh_foreign_flush(source, false);
	else if (phase == TFH_GPU_FLUSHING && !g.exit_ticks && tfh_foreign_flush(source, true))
		g.exit_ticks = tfh_ticks();
	if (phase != TFH_GPU_CLOSED)
		tfh_gpu_add_pair(source);
	source->collect();
	until = g.exit_ticks ? g.exit_ticks : source->complete_until(now);
	if (g.end && (int64_t)(until - g.end) > 0)
		until = g.end;
	gap = __atomic_load_n(&cut, __ATOMIC_ACQUIRE);
	if (gap && (int64_t)(until - gap) > 0)
		until = gap;
	until = tfh_gpu_plan_until(until);
	if (g.ahead && tfh_gpu_plan_leads())
		until = tfh_gpu_span_last;
	tfh_gpu_write_rows((int64_t)(until - tfh_gpu_span_last) > 0 ? until : 0);
}

/* Waits a while for ops that were under way at the end. */
static void go_off(uint64_t now_ns)
{
	if (!g.end) {
		g.end = tfh_ticks();
		g.end_ns = now_ns;
	}
	take();
	if (tfh_gpu_span_last == g.end || now_ns - g.end_ns > GO_OFF_NS) {
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
	if (event == TFH_GPU_EVENT_BEGINS && g.ahead && (int64_t)(tick - tfh_gpu_span_last) > 0)
		tfh_gpu_span_last = tick;
	if (event == TFH_GPU_EVENT_ENDS && storing() && !wanted(now_ns))
		g.end = (int64_t)(tick - tfh_gpu_span_last) > 0 ? tick : tfh_gpu_span_last;
}

/* At the end of `gpu on --steps N`, an earlier `gpu off` applies again. */
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
	end_steps(&tfh_journal.head->control);
	obey_plan(now_ns);
	if (!storing()) {
		if (wanted(now_ns) && source->possible())
			tfh_gpu_begin();
	} else if (g.end && tfh_gpu_plan_trails()) {
		g.end_ns = now_ns;
		source->collect();
	} else if (wanted(now_ns) || exiting()) {
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
		tfh_gpu_write_rows(0);
		tfh_gpu_forget_pairs();
		tfh_gpu_span_last = tfh_ticks(); /* ops that were under way have no clock */
	}
	take();
	if (exiting())
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
	else if (tfh_gpu_rows_left() || !tfh_gpu_said(tfh_segments.opened))
		tfh_gpu_write_rows(0);
	g.closed = last;
	if (last)
		__atomic_store_n(&tfh_gpu_storing, TFH_GPU_OFF, __ATOMIC_RELEASE);
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
	tfh_gpu_forget_rows();
	memset(&g, 0, sizeof(g));
	tfh_gpu_storing = TFH_GPU_OFF;
	cut = 0;
	new_clock = tfh_gpu_exit_phase = windowed = 0;
	tfh_gpu_forget_notes();
	tfh_gpu_plan_forget();
}
