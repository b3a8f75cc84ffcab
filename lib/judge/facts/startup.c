/*
 * Start-up in phases: from the process' start over the driver, a context, the first kernels and the
 * first batch to the first step and the first steady one. None of it is part of what a step takes.
 */
#include <math.h>
#include <string.h>

#include "judge/internal.h"

static void first(struct tfh_job *job, enum tfh_phase phase, int64_t t)
{
	if (!job->phase[phase] || t < job->phase[phase])
		job->phase[phase] = t;
}

void tfh_startup_event(struct tfh_job *job, const struct tfh_event *ev)
{
	const char *name = ev->fn->name;

	if (ev->result)
		return;
	if (!strcmp(name, "cuInit"))
		first(job, TFH_PHASE_DRIVER, ev->t1);
	else if (!strncmp(name, "cuCtxCreate", 11) ||
		 !strncmp(name, "cuDevicePrimaryCtxRetain", 24))
		first(job, TFH_PHASE_CONTEXT, ev->t1);
	else if (ev->fn->family == TFH_FAM_MODULE && strstr(name, "Load"))
		first(job, TFH_PHASE_MODULE, ev->t1);
}

void tfh_fill_startup(struct tfh_job *job, struct tfh_result *r)
{
	TFH_EACH (i, job->tick.n)
		if (!job->tick.v[i].end)
			first(job, TFH_PHASE_BATCH, job->tick.v[i].t1);
	TFH_EACH (i, job->window.n) {
		const struct tfh_window *w = &job->window.v[i];
		if (w->segment == TFH_SEGMENT_EVAL)
			continue;
		first(job, TFH_PHASE_STEP, w->t1);
		if (tfh_window_counts(w)) {
			first(job, TFH_PHASE_STEADY, w->t0);
			break;
		}
	}
	for (int k = 0; k < TFH_PHASE_COUNT; k++)
		r->startup[k] = job->phase[k] ? (double)job->phase[k] / 1e9 : NAN;
}
