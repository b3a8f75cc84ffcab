/*
 * How many worker processes would keep up with the steps, and how long a step takes then. Three
 * bounds apply: the rest of a step without the wait for its batch; the work for one batch divided
 * by the number of workers, which make batches in parallel; and the processor demand of the job's
 * processes divided by the processors they may use (operational analysis: the bottleneck's demand;
 * Denning and Buzen, 1978). Workers that sleep or read need no processor. How well the rest of the
 * step and the work overlap is not known: at best the shorter one is hidden completely, at worst
 * not at all.
 */
#include <math.h>
#include <string.h>

#include "judge/verdict/verdict.h"

static bool runs(const struct tfh_facts *facts, const struct tfh_seen_sample *k)
{
	(void)facts;
	return k->state == TFT_STATE_RUNNING;
}

/* Whether a sampler, PyTorch's or the program's, chooses the next items there: it runs in the
 * training process, whatever num_workers is. */
static bool samples_items(const struct tfh_facts *facts, const struct tfh_seen_sample *k)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	uint32_t n = tfh_frames_at(facts, k->place, frame);

	for (uint32_t i = 0; i < n; i++)
		if (frame[i].library &&
		    (strstr(frame[i].file, "/torch/utils/data/sampler.py") ||
		     (strstr(frame[i].file, "/torch/utils/data/dataloader.py") &&
		      strstr(frame[i].function, "_next_index"))))
			return true;
	return false;
}

/* Whether PyTorch's loader takes items from an IterableDataset. Before CPython 3.11 both fetchers
 * have the same name there. */
static bool iterates(const struct tfh_facts *facts, const struct tfh_seen_sample *k)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	uint32_t n = tfh_frames_at(facts, k->place, frame);

	for (uint32_t i = 0; i < n; i++)
		if (strstr(frame[i].file, "/torch/utils/data/_utils/fetch.py") &&
		    (!strcmp(frame[i].function, "_IterableDatasetFetcher.fetch") ||
		     !strcmp(frame[i].function, "fetch")))
			return true;
	return false;
}

/* Share of the wait for batches, by samples of all threads or of the driving ones, for which a
 * condition holds; NAN: no samples. */
static double share_of_wait(const struct tfh_accounts *accounts, bool driving,
			    bool (*holds)(const struct tfh_facts *, const struct tfh_seen_sample *))
{
	const struct tfh_facts *facts = accounts->facts;
	double part = 0, all = 0;
	size_t window = 0;

	for (size_t i = 0; i < tfh_stack_samples_count(facts->samples); i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		if (!tfh_judged_at(accounts, k.t, &window) ||
		    (driving && !facts->thread[k.thread].drives) ||
		    tfh_cause_class(tfh_sample_cause(facts, k.at, k.feeds)) !=
			    TFH_CLASS_INPUT_BOUND)
			continue;
		all += k.ns;
		part += holds(facts, &k) ? k.ns : 0;
	}
	return all > 0 ? part / all : NAN;
}

static double input_s(const struct tfh_result *r)
{
	return r->breakdown[TFH_PART_INPUT].s_per_step;
}

double tfh_mean_step_s(const struct tfh_result *r)
{
	double s = 0;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		s += r->breakdown[p].s_per_step;
	return s;
}

/* Minimum seconds of a step with any number of workers. Processor time that the training thread
 * used during its wait is spent on receiving a batch, and remains. */
static double least(const struct tfh_accounts *accounts, const struct tfh_result *r,
		    const struct tfh_making *m)
{
	double step = tfh_mean_step_s(r), input = input_s(r), used, allowed;
	double handing = m->workers ? share_of_wait(accounts, false, runs) * input : 0;
	/* fmax() ignores what is not known. */
	double stays = fmax(fmax(handing, share_of_wait(accounts, true, samples_items) * input), 0);
	double rest = step - input + stays;

	if (!tfh_processors(accounts, &used, &allowed))
		return rest;
	/* Without samples in the steps, assume that one thread runs the rest of a step. */
	double own = isnan(used) ? rest : used * step;
	if (!m->workers) /* the work moves from the training thread to workers */
		own = fmax(own - m->running * m->work_s, 0);
	return fmax(rest, (own + m->running * m->work_s) / allowed);
}

static void predict(const struct tfh_accounts *accounts, const struct tfh_making *m,
		    struct tfh_result *r)
{
	struct tfh_more_workers *more = &r->found.workers.more;
	double step = tfh_mean_step_s(r), bound = least(accounts, r, m);

	if (!(bound < (1 - TFH_BLOCKING_SHARE) * step))
		return;
	double workers = ceil((1 + TFH_VERDICT_WORKERS_SPARE) * m->work_s / bound), used, allowed;
	bool known = tfh_processors(accounts, &used, &allowed);
	if (m->workers && m->running > 0 && !known) /* they may have the processors already */
		return;
	if (m->running > 0 && known)
		workers = fmin(workers, floor(allowed / m->running));
	if (!(workers > m->workers && workers <= TFH_VERDICT_WORKERS_MOST))
		return;
	more->from = m->workers;
	more->to = (uint32_t)workers;
	more->splits = share_of_wait(accounts, false, iterates) > 0;
	more->low_s = fmax(bound, m->work_s / workers) * (1 - TFH_PREDICT_WARMER);
	if (m->workers) /* otherwise the cost of handing over a batch was not seen */
		more->high_s = fmin(step, bound + m->work_s / workers);
}

void tfh_more_workers(const struct tfh_accounts *accounts, const struct tfh_making *seen,
		      struct tfh_result *r)
{
	const char *loader = accounts->facts->loader;
	struct tfh_making m = *seen;

	r->found.workers.more = (struct tfh_more_workers){0, 0, NAN, NAN, false};
	if (!r->steps.count || accounts->facts->told || r->verdict.cls != TFH_CLASS_INPUT_BOUND ||
	    r->verdict.cause == TFH_CAUSE_INPUT_REMOTE) /* its other end makes nothing ahead */
		return;
	if (!m.workers && loader && strstr(loader, "SingleProcess")) {
		r->found.asker_works =
			share_of_wait(accounts, true, samples_items) > TFH_VERDICT_MOST_SHARE;
		if (r->found.asker_works)
			return;
		m.work_s = input_s(r);
		m.running = share_of_wait(accounts, false, runs);
	}
	if (m.work_s > 0 && m.running >= 0)
		predict(accounts, &m, r);
}
