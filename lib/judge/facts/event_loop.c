#include "judge/facts/event_loop.h"

#include <string.h>

static bool is_loop(const struct tfh_model_line *f)
{
	return f->library &&
	       (tfh_is_in_package(f->file, "/asyncio/") || tfh_is_in_package(f->file, "/uvloop/") ||
		tfh_is_in_package(f->file, "/trio/"));
}

uint32_t tfh_event_loop_of(const struct tfh_model_line *frame, uint32_t n)
{
	for (uint32_t i = 0; i < n && frame[i].library; i++)
		if (is_loop(&frame[i]))
			return i;
	return n;
}

uint32_t tfh_coroutine_of(const struct tfh_model_line *frame, uint32_t n)
{
	uint32_t at = n;

	for (uint32_t i = 0; i < n; i++) {
		if (is_loop(&frame[i]))
			return at;
		if (!frame[i].library)
			at = i;
	}
	return n;
}

int64_t tfh_poll_timeout(uint64_t word)
{
	return word && word <= INT32_MAX ? (int64_t)(word - 1) * TFH_MS : 0;
}

/* A loop waits at most until its next timer. If the pause is as long as that time or longer, but
 * ends before it would have passed twice, the timer ended the wait. Data that comes first mostly
 * ends it sooner; timers that tick while the thread waits for data pass many times. epoll_wait()
 * counts in ms, and callers round up. */
static bool waits_for_timer(const struct tfh_stack_sample *k, const struct tfh_pause_end *to)
{
	return TFH_DETECT_TIMERS && k->state == TFT_STATE_POLL && k->timeout && to->t1 &&
	       k->timeout <= to->t1 - to->t0 + TFH_MS && k->t + 2 * k->timeout >= to->t1;
}

void tfh_place_in_loop(struct tfh_stack_sample *k, const struct tfh_model_line *frame, uint32_t n,
		       const struct tfh_pause_end *to)
{
	if (!tfh_is_asleep(k->state) || tfh_event_loop_of(frame, n) == n)
		return;
	k->resumes = to->stack;
	k->state = waits_for_timer(k, to) ? TFH_SEEN_TIMER : k->state;
}
