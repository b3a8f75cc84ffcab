/* The time that a step takes at least, however well its parts overlap: what its busiest resource
 * needs (operational analysis; Plumber, DS-Analyzer). */
#include <math.h>

#include "judge/predict/predict.h"

/* The largest number of kernels that the device was seen to run at once. */
static unsigned side_by_side(const struct tfh_device *d, uint32_t device)
{
	const struct tfh_side *s = &d->side[device];
	double least = TFH_PREDICT_SIDE_SHARE * (double)d->busy[device][TFH_W_COMPUTE], ns = 0;

	for (unsigned n = TFH_ACCOUNT_SIDE; n > 1; n--) {
		ns += (double)s->ns[n];
		if (ns > least)
			return n;
	}
	return 1;
}

/* How many threads launch computing on a device, if no two of them in the same stream. */
static unsigned launch_apart(const struct tfh_device *d, uint32_t device)
{
	unsigned n = 0;

	for (size_t i = 0; i < d->lane.n; i++) {
		const struct tfh_lane *l = &d->lane.v[i];
		bool new = l->device == device && l->computed;
		if (new && l->mixed)
			return 1;
		for (size_t k = 0; k < i && new; k++)
			new = d->lane.v[k].device != device || !d->lane.v[k].computed ||
			      d->lane.v[k].thread != l->thread;
		n += new;
	}
	return n;
}

/*
 * Lower bound of computing, ns of the whole run. With one kernel at a time: the time during which
 * anything computed. But if several threads launch, each in streams of its own, their kernels may
 * run at once even if they never did, since the threads may have waited for each other (`hard`: as
 * many at once as there are threads). With several streams in parallel: the longest stream
 * (`hard`), or all kernels divided by the largest number seen at once.
 */
static double compute_floor(const struct tfh_device *d, uint32_t device, bool hard)
{
	unsigned many = side_by_side(d, device);
	double all = 0, longest = 0;

	if (many == 1)
		return (double)d->busy[device][TFH_W_COMPUTE] /
		       (hard ? fmax(launch_apart(d, device), 1) : 1);
	for (size_t i = 0; i < d->lane.n; i++) {
		if (d->lane.v[i].device != device)
			continue;
		all += (double)d->lane.v[i].computed;
		longest = fmax(longest, (double)d->lane.v[i].computed);
	}
	return hard ? longest : fmax(longest, all / many);
}

uint32_t tfh_threads_in_turn(const struct tfh_device *d)
{
	unsigned n = side_by_side(d, d->critical) == 1 ? launch_apart(d, d->critical) : 0;

	return n > 1 ? n : 0;
}

double tfh_resource_floor(const struct tfh_device *d, enum tfh_remove what, bool hard)
{
	double most = 0, steps = tfh_timed_steps(d);
	bool all = what == TFH_REMOVE_EVERYTHING_BUT_COMPUTE;

	for (uint32_t i = 0; i < d->n_device; i++) {
		for (int w = 0; w < TFH_W_COUNT; w++) {
			bool gone = w == TFH_W_COMM	 ? all || what == TFH_REMOVE_COMMUNICATION
				    : w != TFH_W_COMPUTE ? all || what == TFH_REMOVE_TRANSFER
							 : false;
			double ns = w == TFH_W_COMPUTE ? compute_floor(d, i, hard)
						       : (double)d->busy[i][w];
			double s = ns / 1e9 / steps;
			if (!gone && s > most)
				most = s;
		}
	}
	return most;
}
