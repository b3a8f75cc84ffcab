/*
 * The cause of what a thread does in a sample. What it waits for may be what another thread makes
 * (sampled_others.c); code that runs without Python's lock computes, unless it only prepares
 * arrays, or is called by Python code that takes about as long.
 */
#include <string.h>

#include "judge/facts/served.h"
#include "judge/verdict/sampled.h"

/* Whether threads of native code, which have no frames, work while the thread waits for them
 * (OpenMP, Rayon, a library's own pool). Threads of Python would have been seen at work. */
static bool threads_compute(const struct tfh_sampled_causes *x, const struct tfh_start_sample *k)
{
	return TFH_DETECT_THREADS_RUN && !x->making.busy &&
	       k->others * TFH_FACTS_RUNNING_PART >= TFH_START_WHOLE_CPU;
}

static enum tfh_cause seen_cause(const struct tfh_sampled_causes *x,
				 const struct tfh_start_sample *k,
				 const struct tfh_model_line *frame, uint32_t n)
{
	enum tfh_role role = tfh_sampled_role(k, frame, n);
	bool runs = k->state == TFT_STATE_RUNNING, native = runs && k->gil == TFT_GIL_RELEASED;

	if (x->libraries.serves)
		role = tfh_served_role(role, frame, n);
	/* What waits now for a queue, now for the GIL, waits for the thread that fills the
	 * queue. */
	if (k->state == TFT_STATE_GIL)
		return x->fed ? x->making.cause : TFH_CAUSE_HOST_GIL;
	if (runs && tfh_role_waits(role))
		role = TFH_ROLE_NONE;
	if (role == TFH_ROLE_QUEUE && !x->making.busy)
		return TFH_CAUSE_HOST_LOCK; /* nothing was seen at work that fills it */
	if (role == TFH_ROLE_QUEUE)
		return x->making.cause;
	if (role != TFH_ROLE_NONE)
		return tfh_role_cause(role);
	if (runs && TFH_DETECT_JAX_OPS && tfh_launches_jax_ops(frame, n, native))
		return TFH_CAUSE_HOST_LAUNCH;
	if (native)
		return tfh_prepares_arrays(&x->libraries, frame, n) ||
				       tfh_calls_briefly(&x->libraries, frame, n)
			       ? TFH_CAUSE_HOST_PYTHON
			       : TFH_CAUSE_COMPUTE_CPU;
	if (runs && !n)
		return TFH_CAUSE_HOST_UNKNOWN;
	if (k->state == TFT_STATE_LOCK &&
	    (tfh_awaits_jax(&x->libraries, frame, n) || threads_compute(x, k)))
		return TFH_CAUSE_COMPUTE_CPU;
	return tfh_plain_cause(k->state);
}

enum tfh_cause tfh_sampled_cause(const struct tfh_sampled_causes *x,
				 const struct tfh_start_sample *k,
				 const struct tfh_model_line *frame, uint32_t n)
{
	enum tfh_cause cause = seen_cause(x, k, frame, n);
	bool waits = cause == TFH_CAUSE_COMPUTE_CPU && k->state != TFT_STATE_RUNNING;

	/* JAX computes with them (pure_callback). */
	if (waits && x->making.calls_back)
		return TFH_CAUSE_HOST_CALLBACK;
	/* Results that came sooner would only be followed by a longer wait at the queue. */
	return waits && x->starved ? x->making.cause : cause;
}

bool tfh_sampled_traces(const struct tfh_model_line *frame, uint32_t n)
{
	bool traces = false;

	for (uint32_t i = 0; i < n; i++) {
		const char *file = frame[i].file;
		if (strstr(file, "/jax/_src/compiler.py") ||
		    strstr(file, "/jax/_src/interpreters/mlir.py") ||
		    strstr(file, "/jax/_src/interpreters/pxla.py"))
			return false;
		traces |= strstr(file, "/jax/_src/interpreters/partial_eval.py") != NULL;
	}
	return traces;
}
