/* Switching: control word of the journal, window of TFHOOK_WINDOW, pause and resume by the job
 * itself. */
#include "record/flusher.h"

#include <signal.h>
#include <string.h>

#include "record/gpu/gpu.h"

/* ON unless somebody wants OFF. Any thread, also signal handlers. */
static void mode_update(void)
{
	struct tft_journal *head = tfh_p.journal.head;
	uint32_t mode = __atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE), want;

	if ((mode != TFH_MODE_ON && mode != TFH_MODE_OFF) || !head || tfh_confined(&tfh_self))
		return; /* the flusher looks again */
	/* A child that no fork handler saw made has its parent's mode and not its journal. */
	if (tfh_raw_getpid() != tfh_p.pid)
		return;
	want = __atomic_load_n(&head->control, __ATOMIC_ACQUIRE) & TFT_CTL_STOP ||
			       __atomic_load_n(&tfh_p.paused, __ATOMIC_ACQUIRE) ||
			       __atomic_load_n(&tfh_p.window_off, __ATOMIC_ACQUIRE)
		       ? TFH_MODE_OFF
		       : TFH_MODE_ON;
	if (want != mode) /* not over DEAD, which another thread may set */
		__atomic_compare_exchange_n(&tfh_mode, &mode, want, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED);
}

void tfh_pause(void)
{
	__atomic_fetch_add(&tfh_p.paused, 1, __ATOMIC_ACQ_REL);
	mode_update();
}

void tfh_resume(void)
{
	uint32_t n = __atomic_load_n(&tfh_p.paused, __ATOMIC_RELAXED);

	while (n && !__atomic_compare_exchange_n(&tfh_p.paused, &n, n - 1, true, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
		;
	mode_update();
}

void tfh_window_begin(void)
{
	__atomic_store_n(&tfh_p.window_off, 0, __ATOMIC_RELEASE);
	mode_update();
}

static void window_end(void)
{
	__atomic_store_n(&tfh_p.window_off, 1, __ATOMIC_RELEASE);
	mode_update();
}

static void on_signal(int signal)
{
	(void)signal;
	__atomic_xor_fetch(&tfh_p.window_off, 1, __ATOMIC_ACQ_REL);
	mode_update();
}

/* Before the mode is first set. */
void tfh_window_setup(void)
{
	struct tfh_rule_window *w = &tfh_f.window;

	tfh_window_parse(tfh_opt_str(&tfh_p.options, TFH_OPT_WINDOW), w);
	tfh_p.window_first = w->kind == TFH_WINDOW_STEPS ? w->first : 0;
	tfh_p.window_off = w->kind != TFH_WINDOW_ALL &&
			   !(w->kind == TFH_WINDOW_TIME && !w->first) &&
			   !(w->kind == TFH_WINDOW_STEPS && w->first <= 1);
	if (w->kind == TFH_WINDOW_SIGNAL) {
		struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

		sigaction(w->signal, &sa, NULL);
	}
}

uint64_t tfh_steps_seen(void)
{
	return (tfh_f.marks_on ? tfh_f.marks_on : tfh_f.consumers_on) +
	       __atomic_load_n(&tfh_p.steps_off, __ATOMIC_RELAXED);
}

void tfh_count_steps(const struct tfh_rec *records, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct tfh_rec *r = &records[i];

		if (r->kind == TFT_MARK && r->fn == TFH_FN_mark_step)
			tfh_f.marks_on++;
		else if (r->kind == TFT_CALL && r->depth == 0 && r->fn < TFH_FN_COUNT &&
			 tfh_fn_table[r->fn].family == TFH_FAM_CONSUMER)
			tfh_f.consumers_on++;
	}
}

bool tfh_counting_steps(void)
{
	return tfh_f.step_limit || tfh_gpu_counting() ||
	       (tfh_f.window.kind == TFH_WINDOW_STEPS && !tfh_p.window_off);
}

static void poll_window(uint64_t now_ns)
{
	const struct tfh_rule_window *w = &tfh_f.window;
	uint64_t since = now_ns - tfh_f.first.monotonic_ns;

	if (w->kind == TFH_WINDOW_STEPS && !tfh_p.window_off && tfh_steps_seen() >= w->last) {
		tfh_p.window_first = 0;
		window_end();
	}
	if (w->kind != TFH_WINDOW_TIME)
		return;
	if (tfh_p.window_off && since >= w->first && since < w->last)
		tfh_window_begin();
	else if (!tfh_p.window_off && since >= w->last)
		window_end();
}

/* The top half of the control word asks for an end after so many steps; it is taken over and
 * cleared. */
static void poll_steps(uint64_t *control)
{
	uint64_t steps = __atomic_load_n(control, __ATOMIC_ACQUIRE) >> 32;

	if (steps) {
		__atomic_and_fetch(control, 0xffffffffull, __ATOMIC_ACQ_REL);
		if (!tfh_gpu_take_steps(steps))
			tfh_f.step_limit = tfh_steps_seen() + steps;
	}
	if (tfh_f.step_limit && tfh_steps_seen() >= tfh_f.step_limit) {
		tfh_f.step_limit = 0;
		__atomic_or_fetch(control, TFT_CTL_STOP, __ATOMIC_ACQ_REL);
	}
}

void tfh_control_poll(uint64_t now_ns)
{
	uint64_t *control = &tfh_p.journal.head->control;

	poll_window(now_ns);
	poll_steps(control);
	if (__atomic_load_n(control, __ATOMIC_ACQUIRE) & TFT_CTL_FLUSH) {
		tfh_drain(true);
		tfh_seal();
		__atomic_and_fetch(control, ~(uint64_t)TFT_CTL_FLUSH, __ATOMIC_ACQ_REL);
	}
	mode_update();
}
