/* The journal's control word, which another process sets to stop, resume or flush a recording. */
#include "record/flush/flusher.h"
#include "record/gpu/gpu.h"
#include "record/gpu/gpu_plan.h"
#include "record/ring/journal.h"
#include "record/ring/switch.h"
#include "record/write/write.h"

static uint64_t step_limit; /* steps at which a --steps countdown ends, 0 = none */

bool tfh_counting_steps(void)
{
	return step_limit || tfh_gpu_counting() || tfh_window_counting();
}

/* The top half of the control word requests an end after that many steps. Reads and clears it. */
static void poll_steps(uint64_t *control)
{
	uint64_t steps = __atomic_load_n(control, __ATOMIC_ACQUIRE) >> 32;

	if (steps) {
		__atomic_and_fetch(control, 0xffffffffull, __ATOMIC_ACQ_REL);
		if (!tfh_gpu_take_steps(steps))
			step_limit = tfh_steps_seen() + steps;
	}
	if (step_limit && tfh_steps_seen() >= step_limit) {
		step_limit = 0;
		__atomic_or_fetch(control, TFT_CTL_STOP, __ATOMIC_ACQ_REL);
	}
}

/* Counts the steps so far first: a request for a later step must not wait until a ring fills up. */
static void poll_plan(const uint64_t *control)
{
	bool ordered = __atomic_load_n(control, __ATOMIC_ACQUIRE) &
		       (TFT_CTL_GPU_ON_AT | TFT_CTL_GPU_OFF_AT);

	if (ordered || tfh_gpu_plan_waits())
		tfh_drain(true);
	if (ordered)
		tfh_gpu_plan_take();
}

void tfh_control_poll(uint64_t now_ns)
{
	uint64_t *control = &tfh_journal.head->control;

	tfh_window_poll(now_ns);
	poll_steps(control);
	poll_plan(control);
	if (__atomic_load_n(control, __ATOMIC_ACQUIRE) & TFT_CTL_FLUSH) {
		tfh_drain(true);
		tfh_seal();
		__atomic_and_fetch(control, ~(uint64_t)TFT_CTL_FLUSH, __ATOMIC_ACQ_REL);
	}
	tfh_mode_update();
}

void tfh_control_forget(void)
{
	step_limit = 0;
}
