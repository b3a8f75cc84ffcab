/*
 * rocprof's (version 1 and 2) `results.json`: Chrome's format, in which entries have no category.
 * Their process shows what they are. Times are whole microseconds, with nanoseconds among the
 * arguments.
 */
#include <string.h>

#include "base/text.h"
#include "import/kineto.h"

bool tfh_rocprof_is(const struct tfh_kineto_entry *e)
{
	return e->category == TFH_KINETO_OTHER && e->begin_ns > 0 && e->end_ns >= e->begin_ns;
}

static uint8_t category_of(const char *label, bool hip)
{
	if (tfh_starts_with(label, "GPU"))
		return TFH_KINETO_KERNEL;
	if (!strcmp(label, "COPY"))
		return TFH_KINETO_COPY;
	if (!strcmp(label, "CPU HIP API") || (!hip && !strcmp(label, "CPU HSA API")))
		return TFH_KINETO_CALL;
	return !tfh_starts_with(label, "CPU ") && strcmp(label, "Markers and Ranges") != 0
		       ? TFH_KINETO_OTHER
		       : TFH_KINETO_HOST;
}

void tfh_rocprof_entry(struct tfh_kineto_entry *e, const char *label, bool hip)
{
	e->category = category_of(label, hip);
	e->ts = e->begin_ns;
	e->dur = e->end_ns - e->begin_ns;
	if (e->category == TFH_KINETO_KERNEL && e->device < 0)
		e->device = e->pid;
	if (e->group > 0 && e->group <= 1024 && e->threads > 0 && e->threads <= UINT32_MAX) {
		e->block[0] = (uint32_t)e->group;
		e->grid[0] = (uint32_t)(e->threads / e->group);
		e->block[1] = e->block[2] = e->grid[1] = e->grid[2] = 1;
	}
}
