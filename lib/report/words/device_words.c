/* Several devices of one process, and calls of a kernel that differ. */
#include <math.h>

#include "report/words/words.h"

/* Of at least one device, the one that computes longest, or for the shortest time. */
static const struct tfh_device_time *extreme(const struct tfh_result *r, bool most)
{
	const struct tfh_device_time *d = r->devices;

	for (uint32_t i = 1; i < r->n_devices; i++)
		if ((r->devices[i].compute_s > d->compute_s) == most)
			d = &r->devices[i];
	return d;
}

const char *tfh_devices_line(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	double step = tfh_step_s(r);

	if (r->n_devices < 2 || !(tfh_uneven_devices_s(r) >= TFH_BLOCKING_SHARE * step))
		return NULL;
	const struct tfh_device_time *most = extreme(r, true), *least = extreme(r, false);
	return tfh_phrase(
		w, "device %u computes for %s of a step of %s, device %u%s for %s", most->device,
		tfh_phrase_time(w, most->compute_s), tfh_phrase_time(w, step), least->device,
		r->n_devices > 2 ? tfh_phrase(w, ", of %u the least busy,", r->n_devices) : "",
		tfh_phrase_time(w, least->compute_s));
}

bool tfh_kernel_is_mixed(const struct tfh_kernel *k)
{
	return fabs(k->median_s * k->calls_per_step - k->s_per_step) >
	       TFH_REPORT_MIXED_SHARE * k->s_per_step;
}

double tfh_kernel_call_s(const struct tfh_kernel *k)
{
	return tfh_kernel_is_mixed(k) ? k->s_per_step / k->calls_per_step : k->median_s;
}
