#include "model/symbols/last_seen.h"

#include "model/symbols/backtraces.h"

#define FRAMES 256u

void tfh_last_seen_note(struct tfh_last_seen *x, const struct tfh_event *ev)
{
	if (!x->begun && ev->kind == TFT_CALL) {
		x->begun = true;
		x->thread = ev->thread;
	}
	if (!x->begun || !ev->stack || ev->thread != x->thread)
		return;
	if (ev->kind == TFT_CALL) {
		x->stack = ev->stack;
		x->stack_ns = ev->t1;
	} else if (ev->kind == TFT_STATE) {
		x->place = ev->stack;
		x->place_ns = ev->t1;
	}
}

static bool lead_of(const struct tfh_model_line *frame, uint32_t n, struct tfh_model_line *out)
{
	if (n)
		*out = frame[tfh_place_lead(frame, n)];
	return n;
}

bool tfh_last_seen_line(struct tfh_run *run, uint32_t process, const struct tfh_last_seen *x,
			struct tfh_model_line *out, int64_t *at_ns)
{
	struct tfh_model_line frame[FRAMES], sample, call;
	bool sampled =
		     x->place &&
		     lead_of(frame, tfh_run_place(run, process, x->place, frame, FRAMES), &sample),
	     called = x->stack &&
		      lead_of(frame, tfh_run_python(run, process, x->stack, frame, FRAMES), &call);

	if (!sampled && !called)
		return false;
	bool first = sampled && called && sample.library != call.library
			     ? !sample.library
			     : sampled && (!called || x->place_ns >= x->stack_ns);
	*out = first ? sample : call;
	*at_ns = first ? x->place_ns : x->stack_ns;
	return true;
}
