/* Whether hooked calls are recorded now: the journal's control word, TFHOOK_WINDOW, and pauses by
 * the job itself. */
#include "record/ring/switch.h"

#include <signal.h>
#include <string.h>

#include "base/rules.h"
#include "record/ring/journal.h"

static struct tfh_rule_window window;
static uint64_t marks_on, consumers_on; /* recorded steps; marks count if there are any */
static uint64_t last_step;
static struct {
	uint64_t count;
	struct tfh_step_record record;
} awaited[TFH_AWAITED];

void tfh_mode_update(void)
{
	struct tft_journal *head = tfh_journal.head;
	uint32_t mode = __atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE), want;

	if ((mode != TFH_MODE_ON && mode != TFH_MODE_OFF) || !head || tfh_confined(&tfh_self))
		return; /* the flusher checks again */
	/* A child created without fork handlers has its parent's mode but not its journal. */
	if (tfh_raw_getpid() != tfh_recorder.pid)
		return;
	want = __atomic_load_n(&head->control, __ATOMIC_ACQUIRE) & TFT_CTL_STOP ||
			       __atomic_load_n(&tfh_recorder.paused, __ATOMIC_ACQUIRE) ||
			       __atomic_load_n(&tfh_recorder.window_off, __ATOMIC_ACQUIRE)
		       ? TFH_MODE_OFF
		       : TFH_MODE_ON;
	if (want != mode) /* never overwrite DEAD, which another thread may set */
		__atomic_compare_exchange_n(&tfh_mode, &mode, want, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED);
}

void tfh_pause(void)
{
	__atomic_fetch_add(&tfh_recorder.paused, 1, __ATOMIC_ACQ_REL);
	tfh_mode_update();
}

void tfh_resume(void)
{
	uint32_t n = __atomic_load_n(&tfh_recorder.paused, __ATOMIC_RELAXED);

	while (n && !__atomic_compare_exchange_n(&tfh_recorder.paused, &n, n - 1, true,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
	tfh_mode_update();
}

void tfh_window_begin(void)
{
	__atomic_store_n(&tfh_recorder.window_off, 0, __ATOMIC_RELEASE);
	tfh_mode_update();
}

static void window_end(void)
{
	__atomic_store_n(&tfh_recorder.window_off, 1, __ATOMIC_RELEASE);
	tfh_mode_update();
}

static void on_signal(int signal)
{
	(void)signal;
	__atomic_xor_fetch(&tfh_recorder.window_off, 1, __ATOMIC_ACQ_REL);
	tfh_mode_update();
}

void tfh_window_setup(void)
{
	struct tfh_rule_window *w = &window;

	tfh_window_parse(tfh_opt_str(&tfh_recorder.options, TFH_OPT_WINDOW), w);
	tfh_recorder.window_first = w->kind == TFH_WINDOW_STEPS ? w->first : 0;
	tfh_recorder.window_off = w->kind != TFH_WINDOW_ALL &&
				  !(w->kind == TFH_WINDOW_TIME && !w->first) &&
				  !(w->kind == TFH_WINDOW_STEPS && w->first <= 1);
	if (w->kind == TFH_WINDOW_SIGNAL) {
		struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

		sigaction(w->signal, &sa, NULL);
	}
}

bool tfh_window_counting(void)
{
	return window.kind == TFH_WINDOW_STEPS && !tfh_recorder.window_off;
}

uint64_t tfh_steps_seen(void)
{
	return (marks_on ? marks_on : consumers_on) +
	       __atomic_load_n(&tfh_recorder.steps_off, __ATOMIC_RELAXED);
}

void tfh_count_steps(const struct tfh_rec *records, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct tfh_rec *r = &records[i];

		if (r->kind == TFT_MARK && r->fn == TFH_FN_mark_step)
			marks_on++;
		else if (r->kind == TFT_CALL && r->depth == 0 && r->fn < TFH_FN_COUNT &&
			 tfh_fn_table[r->fn].family == TFH_FAM_CONSUMER)
			consumers_on++;
		else
			continue;
		last_step = r->t_end;
		for (int k = 0; k < TFH_AWAITED; k++)
			if (!awaited[k].record.end && tfh_steps_seen() >= awaited[k].count)
				awaited[k].record = (struct tfh_step_record){r->t_begin, r->t_end};
	}
}

void tfh_await_step(enum tfh_awaited which, uint64_t count)
{
	awaited[which].count = count;
	awaited[which].record = (struct tfh_step_record){0, 0};
}

struct tfh_step_record tfh_awaited_step(enum tfh_awaited which)
{
	return awaited[which].record;
}

uint64_t tfh_last_step(void)
{
	return last_step;
}

uint64_t tfh_count_after(uint64_t step)
{
	return step + !marks_on;
}

void tfh_window_poll(uint64_t now_ns)
{
	const struct tfh_rule_window *w = &window;
	uint64_t since = now_ns - tfh_recorder.first.monotonic_ns;

	if (w->kind == TFH_WINDOW_STEPS && !tfh_recorder.window_off &&
	    tfh_steps_seen() >= w->last) {
		tfh_recorder.window_first = 0;
		window_end();
	}
	if (w->kind != TFH_WINDOW_TIME)
		return;
	if (tfh_recorder.window_off && since >= w->first && since < w->last)
		tfh_window_begin();
	else if (!tfh_recorder.window_off && since >= w->last)
		window_end();
}

void tfh_steps_forget(void)
{
	marks_on = consumers_on = last_step = 0;
	memset(awaited, 0, sizeof(awaited));
}
