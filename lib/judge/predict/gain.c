/*
 * Predicts from the replays what removing a class of costs would gain: a point with its interval,
 * the floor that no overlap can beat, and the ceiling. A point that the data does not support is
 * not given.
 */
#include <math.h>

#include "judge/predict/predict.h"

/* The factor between a recorded step and its replay with nothing removed: the model's error. */
static double model_error(const struct tfh_samples *all)
{
	const struct tfh_replays *s = &all->replay[TFH_REPLAY_SAME];

	return s->was > 0 ? fabs(s->raw - s->was) / s->was : NAN;
}

/* Seconds per step that this rank needs by itself, without waiting for others. NAN: unknown. */
static double device_need(const struct tfh_samples *all, enum tfh_remove what, double step)
{
	return all->replay[what].of.n ? tfh_for_all_steps(&all->replay[what], step) : NAN;
}

/* Whether the data supports a point, and not only a range. */
static bool is_narrow(const struct tfh_samples *all, const struct tfh_result *r, double got,
		      double half, double step)
{
	return model_error(all) <= TFH_PREDICT_REPLAY_ERROR &&
	       r->breakdown[TFH_PART_UNATTRIBUTED].share <= TFH_UNATTRIBUTED_SHARE &&
	       half <= TFH_PREDICT_WIDEST * fmax(got, step - got) &&
	       half <= TFH_PREDICT_WIDEST_EVER * got;
}

/* Bytes that a step copies through the processor's caches: those of pageable memory. */
static double cached_bytes(const struct tfh_result *r)
{
	double bytes = 0;

	for (uint32_t i = 0; i < r->n_transfers; i++)
		bytes += r->transfers[i].pageable == 1 ? r->transfers[i].bytes_per_step : 0;
	return bytes;
}

/* Copies of pageable memory evict the program's data from the caches, so the host's own code ran
 * slower after them than it will without them: at most by the time to refill a cache, and at most
 * by all of its time. */
static double cold_s(const struct tfh_samples *all, const struct tfh_result *r,
		     enum tfh_remove what, double got, double step)
{
	const struct tfh_replays *s = &all->replay[TFH_REMOVE_EVERYTHING_BUT_COMPUTE];

	if (what != TFH_REMOVE_TRANSFER || !s->of.n || cached_bytes(r) < TFH_PREDICT_COLD_BYTES)
		return 0;
	return fmin(TFH_PREDICT_COLD_S, fmax(got - tfh_for_all_steps(s, step), 0));
}

/* Code that follows removed host code may have been slower because of it, as far as the host limits
 * the step then. */
static double cooled_s(const struct tfh_accounts *accounts, const struct tfh_samples *all,
		       double got, double step)
{
	const struct tfh_replays *s = &all->replay[TFH_REMOVE_EVERYTHING_BUT_COMPUTE];

	return s->of.n ? fmin(tfh_cooled_s(accounts, fmax(step - got, 0), got),
			      fmax(got - tfh_for_all_steps(s, step), 0))
		       : 0;
}

/* The time per step during which what remains waited for a CPU that others used. In another run
 * those may use less, so the lower end of the interval leaves this time out, up to half of the
 * remaining step. */
static double crowded_s(const struct tfh_accounts *accounts, enum tfh_remove what, double got)
{
	double s = what == TFH_REMOVE_EVERYTHING_BUT_COMPUTE
			   ? 0
			   : tfh_contended_s(accounts, tfh_remove_part(what));

	return fmin(s, got / TFH_PREDICT_MOST_OFF_PART);
}

/* Whether the replay gains next to nothing from removing the waits for batches, which block a good
 * part of a step. Something in it starts when it did in the recording, because it is not known that
 * it waited for the batch; so the gain is not known either, up to all that is blocked. */
static bool is_blind(const struct tfh_result *r, const struct tfh_whatif *w, double got,
		     double step)
{
	double blocked = r->breakdown[TFH_PART_INPUT].s_per_step;

	return w->remove == TFH_REMOVE_INPUT && blocked >= TFH_BLOCKING_SHARE * step &&
	       step - got < TFH_PREDICT_BLIND_SHARE * blocked;
}

/* How much later waits that sleep only in the replay may return, per step. */
static double woken_s(const struct tfh_replays *s)
{
	return s->windows ? TFH_PREDICT_WAKE_S * (double)s->woken / (double)s->windows : 0;
}

/* The step if the waits that fetch a result stay, since the program needs it; NAN: the gain is
 * mostly that of these waits. */
static double fetching(const struct tfh_samples *all, double got, double step)
{
	double s = tfh_for_all_steps(&all->replay[TFH_REPLAY_FETCHING], step);

	return (step - s) * TFH_PREDICT_FETCHING_PART >= step - got ? s : NAN;
}

/* Predicts a step that still waits for what it fetches, if the waits are mostly for that. */
static void keep_fetching(const struct tfh_samples *all, struct tfh_whatif *w, double error,
			  double step)
{
	double fetched = fetching(all, w->step_s, step);

	if (!(fetched > w->step_s))
		return;
	w->high_s = fmax(w->high_s, fetched * (1 + error + TFH_PREDICT_MEASURED) +
					    TFH_PREDICT_ERRORS * all->replay[w->remove].error +
					    woken_s(&all->replay[TFH_REPLAY_FETCHING]));
	w->step_s = fetched;
}

static void point(const struct tfh_device *d, const struct tfh_samples *all,
		  const struct tfh_result *r, struct tfh_whatif *w, double step)
{
	const struct tfh_replays *s = &all->replay[w->remove];
	double error = model_error(all), got = tfh_for_all_steps(s, step);
	double half = got * (error + TFH_PREDICT_MEASURED) + TFH_PREDICT_ERRORS * s->error;
	double high = got + half, cold = cold_s(all, r, w->remove, got, step) / 2;

	got -= cold;
	half += cold;

	/* Input that another thread or process prepares competes with the step for the machine. */
	if (w->remove == TFH_REMOVE_INPUT) {
		double slower = tfh_for_all_steps(&all->replay[TFH_REPLAY_CROWDED], step);
		if (slower + half > high)
			high = slower + half;
	}
	high += woken_s(s);
	/* Whether the device can run more kernels at once than were ever seen is unknown. */
	double seen = tfh_resource_floor(d, w->remove, false);
	bool crowded = got < seen * (1 - TFH_PREDICT_MEASURED) && w->floor_s < seen;
	double below = half +
		       (w->remove == TFH_REMOVE_HOST ? cooled_s(d->accounts, all, got, step) : 0) +
		       crowded_s(d->accounts, w->remove, got);

	w->low_s = got - below;
	w->high_s = crowded ? fmax(high, seen) : high;
	if (is_blind(r, w, got, step)) {
		w->low_s = fmin(w->low_s, step - r->breakdown[TFH_PART_INPUT].s_per_step);
		w->high_s = step;
		return;
	}
	double all_work = w->remove == TFH_REMOVE_INPUT ? tfh_all_work_s(d->accounts, step) : 0;
	high = w->high_s = fmax(w->high_s, all_work);
	/* Wider than any interval printed with a point. */
	if (all_work - got > TFH_PREDICT_WIDEST * fmax(got, step - got))
		return;
	w->about_s = got;
	if (crowded || s->steps < TFH_PREDICT_FEWEST_STEPS || !is_narrow(all, r, got, half, step) ||
	    below > TFH_PREDICT_WIDEST_EVER * got) {
		tfh_may_leave(w, step);
		return;
	}
	w->high_s = fmin(high, got * (1 + TFH_PREDICT_WIDEST_EVER));
	w->step_s = got;
	if (w->remove == TFH_REMOVE_SYNC)
		keep_fetching(all, w, error, step);
}

/* Makes a prediction consistent: floor, interval and point in order, and none above the present
 * step. (Engines are counted over all training steps, the step over judged ones.) */
static void tidy(struct tfh_whatif *w, double step)
{
	w->floor_s = fmin(w->floor_s, step);
	w->low_s = fmin(fmax(w->low_s, w->floor_s), step);
	w->high_s = fmin(fmax(w->high_s, w->low_s), step);
	if (w->about_s > 0)
		w->about_s = fmin(fmax(w->about_s, w->low_s), w->high_s);
	/* Takes the better of both bounds, since gains can exceed the blocking time; but not below
	 * the floor. */
	if (w->floor_s > 0)
		w->ceiling_speedup = fmin(w->ceiling_speedup, step / w->floor_s);
	if (w->low_s > 0)
		w->ceiling_speedup = fmax(w->ceiling_speedup, step / w->low_s);
	if (isnan(w->step_s))
		return;
	w->step_s = fmin(fmax(w->step_s, w->low_s), w->high_s);
	w->speedup = step / w->step_s;
}

/* Removing everything is never slower than removing one class. */
static void no_more(struct tfh_whatif *all, const struct tfh_whatif *one)
{
	if (isnan(all->step_s) || isnan(one->step_s) || all->step_s <= one->step_s)
		return;
	all->step_s = one->step_s;
	all->low_s = fmin(all->low_s, one->low_s);
}

/*
 * The step on a machine with a CPU for every thread: threads continue after a wait as promptly as
 * those did that found a free CPU. The waits themselves stay, as does the device's idle time until
 * the next launch. Time in which other work was interrupted is removed, too; it is known only as a
 * sum over several steps.
 */
static void uncrowded(const struct tfh_device *d, struct tfh_samples *all, struct tfh_result *r,
		      double step)
{
	const struct tfh_replays *s = &all->replay[TFH_REPLAY_UNCROWDED];
	struct tfh_whatif *w = &r->uncrowded;

	if (!s->of.n || isnan(model_error(all)))
		return;
	/* If the sample lacks the steps that do more, its gain may exceed the waits for a CPU. */
	double most = TFH_PREDICT_MOST_OFF_PART * tfh_contended_s(d->accounts, TFH_PART_NONE);
	double left = fmax(tfh_for_all_steps(s, step), step - most),
	       half = left * (model_error(all) + TFH_PREDICT_MEASURED) +
		      TFH_PREDICT_ERRORS * s->error;
	tfh_set_uncrowded(d->accounts, step, left, tfh_contended_s(d->accounts, TFH_PART_SYNC),
			  half, w);
	half = fmax(w->about_s - w->low_s, w->high_s - w->about_s);
	w->floor_s = fmin(tfh_resource_floor(d, TFH_REMOVE_NONE, true), w->about_s);
	w->step_s = is_narrow(all, r, w->about_s, half, step) ? w->about_s : NAN;
	tidy(w, step);
}

void tfh_device_whatif(const struct tfh_device *d, struct tfh_samples *all, struct tfh_result *r)
{
	double step = 0;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		step += r->breakdown[p].s_per_step;
	for (int k = 0; k < TFH_REPLAY_COUNT; k++)
		tfh_settle_replays(&all->replay[k]);
	for (int k = 0; k < TFH_REMOVE_COUNT; k++)
		r->need_s[k] = device_need(all, k, step);
	for (uint32_t i = 0; i < r->n_whatif; i++) {
		struct tfh_whatif *w = &r->whatif[i];
		w->floor_s = tfh_resource_floor(d, w->remove, true);
		bool input = w->remove == TFH_REMOVE_INPUT ||
			     w->remove == TFH_REMOVE_EVERYTHING_BUT_COMPUTE;
		if (!input && r->supply.basis == TFH_SUPPLY_WAITED)
			w->floor_s =
				fmax(w->floor_s,
				     fmin(step, r->supply.period_s * (1 - TFH_PREDICT_MEASURED)));
		if (all->replay[w->remove].of.n)
			point(d, all, r, w, step);
		for (uint32_t k = 0; w->remove == TFH_REMOVE_EVERYTHING_BUT_COMPUTE && k < i; k++)
			no_more(w, &r->whatif[k]);
		tidy(w, step);
	}
	uncrowded(d, all, r, step);
}

void tfh_place_point(const struct tfh_device *d, struct tfh_samples *all, uint32_t place,
		     const struct tfh_result *r, struct tfh_place_gain *g)
{
	struct tfh_replays *s = &all->without[place];
	double step = 0, error = model_error(all), got, half;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		step += r->breakdown[p].s_per_step;
	tfh_settle_replays(s);
	if (!s->of.n || isnan(error))
		return;
	got = tfh_for_all_steps(s, step);
	/* A fix may leave as much of the place as the samples cannot distinguish. */
	half = got * (error + TFH_PREDICT_MEASURED) + TFH_PREDICT_ERRORS * s->error + g->off_s;
	g->gain.floor_s = tfh_resource_floor(d, TFH_REMOVE_HOST, true);
	double below = half + cooled_s(d->accounts, all, got, step) +
		       crowded_s(d->accounts, TFH_REMOVE_HOST, got);
	g->gain.about_s = got;
	g->gain.low_s = got - below;
	g->gain.high_s = got + half;
	if (is_narrow(all, r, got, half, step) && below <= TFH_PREDICT_WIDEST_EVER * got)
		g->gain.step_s = got;
	tfh_may_leave(&g->gain, step);
	tidy(&g->gain, step);
}
