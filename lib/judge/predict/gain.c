/*
 * Predicts from the replays what removing a class of costs would gain: a point with its interval;
 * the floor that no overlap can beat (operational analysis: a step takes at least what its busiest
 * resource needs; Plumber, DS-Analyzer); and the ceiling. A point that the data does not support is
 * not given. Also fills the tables of kernels from device times.
 */
#include <math.h>
#include <stdlib.h>

#include "judge/predict/predict.h"

static double *times(const struct tfh_replays *s)
{
	double *v = malloc((s->of.n + 1) * sizeof(*v));

	for (size_t i = 0; v && i < s->of.n; i++)
		v[i] = s->of.v[i].s;
	return v;
}

/* Whether the steps beyond the edge have a constant distance: then they belong to the job. */
static bool regular(const struct tfh_replays *s, double edge, size_t over)
{
	double *gap = malloc((over + 1) * sizeof(*gap)), median;
	size_t n = 0, near = 0, last = 0;

	for (size_t i = 0; gap && i < s->of.n; i++) {
		if (s->of.v[i].s <= edge)
			continue;
		if (last)
			gap[n++] = (double)(i + 1 - last);
		last = i + 1;
	}
	median = gap ? tfh_quantile(gap, n, 0.5) : 0;
	for (size_t i = 0; gap && i < n; i++)
		near += fabs(gap[i] - median) <= TFH_REGULAR_OFF;
	free(gap);
	return n >= TFH_PREDICT_DISTANCES && (double)near >= TFH_REGULAR_SHARE * (double)n;
}

/* Longer steps are clipped to this duration. */
static double edge_of(const struct tfh_replays *s)
{
	double *v = times(s), median, edge;
	size_t n = s->of.n, over = 0;

	if (!v || !n) {
		free(v);
		return INFINITY;
	}
	median = tfh_quantile(v, n, 0.5);
	for (size_t i = 0; i < n; i++)
		v[i] = fabs(v[i] - median);
	edge = median + fmax(TFH_OUTLIER_MAD * TFH_MAD_SIGMA * tfh_quantile(v, n, 0.5),
			     TFH_OUTLIER_SHARE * median);
	for (size_t i = 0; i < n; i++)
		over += s->of.v[i].s > edge;
	free(v);
	bool rare = over * TFH_PREDICT_RARE_PART <= n || (over == 1 && n >= TFH_PREDICT_ONE_OF);
	return rare && !regular(s, edge, over) ? edge : INFINITY;
}

static double spread(double sum, double sum2, size_t n)
{
	double m = sum / (double)n, var = n > 1 ? sum2 / (double)n - m * m : 0;

	return var > 0 ? sqrt(var / (double)(n - 1)) : 0;
}

static void settle(struct tfh_replays *s)
{
	double sum = 0, sum2 = 0, raw = 0, was = 0, block = 0, blocks = 0, blocks2 = 0,
	       edge = edge_of(s);
	size_t n = s->of.n, full = 0;

	for (size_t i = 0; i < n; i++) {
		struct tfh_replayed *x = &s->of.v[i];
		raw += x->s;
		x->s = fmin(x->s, edge);
		sum += x->s;
		sum2 += x->s * x->s;
		was += x->was;
		s->steps += x->steps;
		block += x->s / TFH_PREDICT_BLOCK;
		if (i % TFH_PREDICT_BLOCK != TFH_PREDICT_BLOCK - 1)
			continue;
		blocks += block;
		blocks2 += block * block;
		full++;
		block = 0;
	}
	s->mean = n ? sum / (double)n : NAN;
	s->raw = n ? raw / (double)n : NAN;
	s->was = n ? was / (double)n : NAN;
	s->error = !n				       ? NAN
		   : full >= TFH_PREDICT_FEWEST_BLOCKS ? spread(blocks, blocks2, full)
						       : spread(sum, sum2, n);
}

/* The mean over all steps. The sample may hold more or fewer long steps than there are in the run;
 * corrected by the regression estimator of sampling theory, with the recorded time as the known
 * variate. */
static double for_all(const struct tfh_replays *s, double step)
{
	double var = 0, cov = 0, slope;

	for (size_t i = 0; i < s->of.n; i++) {
		double off = s->of.v[i].was - s->was;
		var += off * off;
		cov += off * (s->of.v[i].s - s->mean);
	}
	/* Equal steps in the sample do not show how much others vary. */
	double least = s->was * TFH_PREDICT_ALIKE * s->was * TFH_PREDICT_ALIKE * (double)s->of.n;
	slope = var > least ? fmin(fmax(cov / var, 0), 1) : 0;
	return s->mean + slope * (step - s->was);
}

/* Number of steps whose device ops were counted: training steps with device times, and stalls,
 * which are recognised only when a step's account is closed, after its ops. */
static double timed_steps(const struct tfh_device *d)
{
	uint64_t n = 0;

	TFH_EACH (i, d->win.n) {
		uint8_t segment = d->accounts->use[i].segment;
		if ((segment == TFH_SEGMENT_TRAIN || segment == TFH_SEGMENT_STALL) &&
		    d->win.v[i].ops)
			n += d->accounts->loops->window.v[i].steps;
	}
	return n ? (double)n : NAN;
}

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

/* Time per step of the busiest engine, without the removed ones. */
static double resource_floor(const struct tfh_device *d, enum tfh_remove what, bool hard)
{
	double most = 0, steps = timed_steps(d);
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

/* The factor between a recorded step and its replay with nothing removed: the model's error. */
static double model_error(const struct tfh_samples *all)
{
	const struct tfh_replays *s = &all->replay[TFH_REPLAY_SAME];

	return s->was > 0 ? fabs(s->raw - s->was) / s->was : NAN;
}

/* Seconds per step that this rank needs by itself, without waiting for others. NAN: unknown. */
static double device_need(const struct tfh_samples *all, enum tfh_remove what, double step)
{
	return all->replay[what].of.n ? for_all(&all->replay[what], step) : NAN;
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
	return fmin(TFH_PREDICT_COLD_S, fmax(got - for_all(s, step), 0));
}

/* Code that follows removed host code may have been slower because of it, as far as the host limits
 * the step then. */
static double cooled_s(const struct tfh_accounts *accounts, const struct tfh_samples *all,
		       double got, double step)
{
	const struct tfh_replays *s = &all->replay[TFH_REMOVE_EVERYTHING_BUT_COMPUTE];

	return s->of.n ? fmin(tfh_cooled_s(accounts, fmax(step - got, 0), got),
			      fmax(got - for_all(s, step), 0))
		       : 0;
}

/* The time per step during which what remains waited for a CPU that others used. They may use less
 * another time, so the lower end does not contain it, up to half of the remaining step. */
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
	double s = for_all(&all->replay[TFH_REPLAY_FETCHING], step);

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
	double error = model_error(all), got = for_all(s, step);
	double half = got * (error + TFH_PREDICT_MEASURED) + TFH_PREDICT_ERRORS * s->error;
	double high = got + half, cold = cold_s(all, r, w->remove, got, step) / 2;

	got -= cold;
	half += cold;

	/* Input that another thread or process prepares competes with the step for the machine. */
	if (w->remove == TFH_REMOVE_INPUT) {
		double slower = for_all(&all->replay[TFH_REPLAY_CROWDED], step);
		if (slower + half > high)
			high = slower + half;
	}
	high += woken_s(s);
	/* Whether the device can run more kernels at once than were ever seen is unknown. */
	double seen = resource_floor(d, w->remove, false);
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
 * The step on a machine with CPUs for all: waiting threads continue as soon as others did that
 * found a CPU. Their waits stay, as does the device's idle time until the next launch. Of other
 * work, the time in which it was interrupted goes, which is known as a sum over some steps only.
 */
static void uncrowded(const struct tfh_device *d, struct tfh_samples *all, struct tfh_result *r,
		      double step)
{
	const struct tfh_replays *s = &all->replay[TFH_REPLAY_UNCROWDED];
	struct tfh_whatif *w = &r->uncrowded;

	if (!s->of.n || isnan(model_error(all)))
		return;
	/* A sample without the steps that do more shows a gain of more than the waits. */
	double most = TFH_PREDICT_MOST_OFF_PART * tfh_contended_s(d->accounts, TFH_PART_NONE);
	double left = fmax(for_all(s, step), step - most),
	       half = left * (model_error(all) + TFH_PREDICT_MEASURED) +
		      TFH_PREDICT_ERRORS * s->error;
	tfh_set_uncrowded(d->accounts, step, left, tfh_contended_s(d->accounts, TFH_PART_SYNC),
			  half, w);
	half = fmax(w->about_s - w->low_s, w->high_s - w->about_s);
	w->floor_s = fmin(resource_floor(d, TFH_REMOVE_NONE, true), w->about_s);
	w->step_s = is_narrow(all, r, w->about_s, half, step) ? w->about_s : NAN;
	tidy(w, step);
}

void tfh_device_whatif(const struct tfh_device *d, struct tfh_samples *all, struct tfh_result *r)
{
	double step = 0;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		step += r->breakdown[p].s_per_step;
	for (int k = 0; k < TFH_REPLAY_COUNT; k++)
		settle(&all->replay[k]);
	for (int k = 0; k < TFH_REMOVE_COUNT; k++)
		r->need_s[k] = device_need(all, k, step);
	for (uint32_t i = 0; i < r->n_whatif; i++) {
		struct tfh_whatif *w = &r->whatif[i];
		w->floor_s = resource_floor(d, w->remove, true);
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
	settle(s);
	if (!s->of.n || isnan(error))
		return;
	got = for_all(s, step);
	/* A fix may leave as much of the place as the samples cannot distinguish. */
	half = got * (error + TFH_PREDICT_MEASURED) + TFH_PREDICT_ERRORS * s->error + g->off_s;
	g->gain.floor_s = resource_floor(d, TFH_REMOVE_HOST, true);
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

/* Hidden time of copies and collectives: the busy time of their engines minus their blocking
 * time. */
void tfh_device_stages(const struct tfh_device *d, struct tfh_result *r)
{
	static const struct {
		enum tfh_stage stage;
		enum tfh_work work;
	} map[] = {{TFH_STAGE_H2D, TFH_W_H2D},
		   {TFH_STAGE_D2H, TFH_W_D2H},
		   {TFH_STAGE_COMMUNICATION, TFH_W_COMM}};
	double steps = timed_steps(d);

	r->stages[TFH_STAGE_COMMUNICATION].exposed_s =
		r->breakdown[TFH_PART_COMMUNICATION].s_per_step;
	r->stages[TFH_STAGE_COMPUTE].hidden_s = 0;
	for (size_t i = 0; i < sizeof(map) / sizeof(*map); i++) {
		struct tfh_job_stage *s = &r->stages[map[i].stage];
		double busy = (double)d->busy[d->critical][map[i].work] / 1e9 / steps;
		s->hidden_s = busy > s->exposed_s ? busy - s->exposed_s : 0;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct tfh_kernel *x = a, *y = b;
	return x->s_per_step > y->s_per_step ? -1 : x->s_per_step < y->s_per_step;
}

static int by_family_time(const void *a, const void *b)
{
	const struct tfh_family_time *x = a, *y = b;

	return x->s_per_step > y->s_per_step ? -1 : x->s_per_step < y->s_per_step;
}

/* Kernels without a name of their own belong to no family. */
static void fill_families(struct tfh_result *r)
{
	struct tfh_family_time all[TFH_FAMILY_COUNT] = {0};

	for (uint32_t i = 0; i < r->n_kernels; i++) {
		struct tfh_family_time *f = &all[tfh_kernel_family(r->kernels[i].name)];
		f->kernels++;
		f->s_per_step += r->kernels[i].s_per_step;
		f->share_of_busy += r->kernels[i].share_of_busy;
	}
	r->n_families = 0;
	for (int i = 0; i < TFH_FAMILY_COUNT; i++) {
		all[i].family = (enum tfh_kernel_family)i;
		if (all[i].kernels)
			r->families[r->n_families++] = all[i];
	}
	qsort(r->families, r->n_families, sizeof(*r->families), by_family_time);
}

static int by_number(const void *a, const void *b)
{
	const struct tfh_device_time *x = a, *y = b;

	return x->device < y->device ? -1 : x->device > y->device;
}

/* How long each device computes. */
static int fill_devices(const struct tfh_device *d, struct tfh_result *r, double steps)
{
	r->devices =
		tfh_arena_array(d->accounts->facts->arena, d->n_device + 1, sizeof(*r->devices));
	if (!r->devices)
		return -ENOMEM;
	r->n_devices = 0;
	for (uint32_t i = 0; i < d->n_device; i++)
		if (d->busy[i][TFH_W_COMPUTE])
			r->devices[r->n_devices++] = (struct tfh_device_time){
				d->id[i], (double)d->busy[i][TFH_W_COMPUTE] / 1e9 / steps};
	qsort(r->devices, r->n_devices, sizeof(*r->devices), by_number);
	return 0;
}

int tfh_device_tables(const struct tfh_device *d, struct tfh_result *r)
{
	const struct tfh_accounts *accounts = d->accounts;
	double steps = timed_steps(d);

	for (uint32_t i = 0; i < r->n_transfers; i++) {
		struct tfh_transfer *t = &r->transfers[i];
		if ((unsigned)t->dir < TFH_ACCOUNT_DIRS &&
		    d->copied[t->dir][t->pageable == 1].ns > 0)
			t->bytes_per_s = (double)d->copied[t->dir][t->pageable == 1].bytes * 1e9 /
					 (double)d->copied[t->dir][t->pageable == 1].ns;
	}
	if (fill_devices(d, r, steps))
		return -ENOMEM;
	if (!d->kernel.n)
		return 0;
	r->kernels = tfh_arena_array(accounts->facts->arena, d->kernel.n, sizeof(*r->kernels));
	if (!r->kernels)
		return -ENOMEM;
	r->n_kernels = 0;
	for (size_t i = 0; i < d->kernel.n; i++) {
		const struct tfh_kernel_time *k = &d->kernel.v[i];
		r->kernels[r->n_kernels++] = (struct tfh_kernel){
			.name = *k->name ? k->name : "graph",
			.calls_per_step = (double)k->calls / steps,
			.median_s = tfh_hist_median(&k->hist, k->ns) / 1e9,
			.s_per_step = (double)k->ns / 1e9 / steps,
			.share_of_busy = (double)k->ns / (double)d->compute_ns,
		};
	}
	qsort(r->kernels, r->n_kernels, sizeof(*r->kernels), by_time);
	fill_families(r);
	return 0;
}
