/*
 * Phases of start-up: from the process' start to the driver, a context, the first kernels, the
 * first batch, the first step and the first steady step. Start-up is not part of any step's time.
 */
#include <string.h>

#include "base/text.h"
#include "judge/facts/survey.h"

static void first(struct tfh_facts *facts, enum tfh_phase phase, int64_t t)
{
	if (!facts->phase[phase] || t < facts->phase[phase])
		facts->phase[phase] = t;
}

void tfh_startup_event(struct tfh_facts *facts, const struct tfh_event *ev)
{
	const char *name = ev->fn->name;

	if (ev->result)
		return;
	if (!strcmp(name, "cuInit"))
		first(facts, TFH_PHASE_DRIVER, ev->t1);
	else if (tfh_starts_with(name, "cuCtxCreate") ||
		 tfh_starts_with(name, "cuDevicePrimaryCtxRetain") ||
		 strstr(name, "(creates the context)")) /* nsys_rows.c */
		first(facts, TFH_PHASE_CONTEXT, ev->t1);
	else if (ev->fn->family == TFH_FAM_MODULE && strstr(name, "Load")) {
		first(facts, TFH_PHASE_MODULE, ev->t1);
		facts->launches_loaded = facts->launches;
	}
}
