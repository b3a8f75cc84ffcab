/* The steps of a run in which no call was recorded: their number and length, their time by cause,
 * and what they would take without the verdict's part of it, or without its line. Nothing is known
 * of what would remain of it after a fix, nor of what other threads do meanwhile. */
#include <errno.h>
#include <math.h>

#include "judge/result_make.h"
#include "judge/verdict/sampled_loops.h"

/* Two standard errors of a share, as a share. */
static double off_by(double share, double samples)
{
	return samples > 0 ? 2 * sqrt(share * (1 - share) / samples) : 1;
}

/* `most`: the share that may be gone at best. Even if all of `samples` were there, other work may
 * take as much as one sample. */
static struct tfh_whatif without(enum tfh_remove what, double share, double most, double step,
				 double samples, uint64_t steps)
{
	double all = 1 - 1 / (samples + 2), off = off_by(fmin(share, all), samples);
	share = fmin(share, all);
	most = fmin(most, all);
	double left = (1 - share) * step, least = (1 - most) * step;
	struct tfh_whatif w = {.remove = what,
			       .step_s = NAN,
			       .about_s = left,
			       .low_s = fmax(least - off * step, least / TFH_PREDICT_COOLED_PART),
			       .high_s = fmin(left + (off + TFH_PREDICT_LEFT_SHARE) * step, step),
			       .speedup = NAN,
			       .ceiling_speedup = NAN,
			       .saved_s = share * step * (double)steps};

	if (w.low_s > 0)
		w.ceiling_speedup = step / w.low_s;
	return w;
}

static void add_place(struct tfh_result *r, const struct tfh_sampled_place *place, double share,
		      double step, double samples)
{
	double off = off_by(share, samples), most = share;

	/* What is compiled once is still executed: at best, no more than compiling is gone. */
	if (r->verdict.cause != TFH_CAUSE_HOST_COMPILE)
		most = fmax(share, place->line_ns / place->ns * share);

	r->place[r->n_place++] = (struct tfh_place_gain){
		.file = place->line.file,
		.function = place->line.function,
		.line = place->line.line,
		.first_line = place->first,
		.last_line = place->last,
		.whole = place->whole,
		.s_per_step = share * step,
		.off_s = off * step,
		.gain = without(TFH_REMOVE_HOST, share, most, step, samples, r->steps.total)};
}

/* That of the verdict's line, and the next one. */
static void add_places(struct tfh_result *r, const struct tfh_sampled_place place[2], double all,
		       double step, double samples)
{
	struct tfh_seen_line *l = &r->found.line;

	r->n_place = 0;
	for (int i = 0; i < 2 && place[i].ns > 0; i++)
		add_place(r, &place[i], place[i].ns / all, step, samples);
	r->line_place = 1;
	l->off_s = off_by(l->s_per_step / step, samples) * step;
}

/* Steps without the verdict's part, and without each other one that would keep steps from being
 * compute-bound. */
static void add_whatifs(struct tfh_result *r, double step, double samples)
{
	const struct tfh_verdict *v = &r->verdict;
	enum tfh_part blamed =
		v->cause == TFH_CAUSE_NONE ? TFH_PART_NONE : tfh_cause_part(v->cause);

	for (int what = 0; what < TFH_REMOVE_COUNT; what++) {
		enum tfh_part part = tfh_remove_part(what);
		if (part >= TFH_PART_COUNT || v->cause == TFH_CAUSE_NONE)
			continue;
		double share = r->breakdown[part].share;
		if (part == blamed || share >= 1 - TFH_ACCOUNT_COMPUTE_SHARE)
			r->whatif[r->n_whatif++] =
				without(what, share, share, step, samples, r->steps.total);
	}
}

int tfh_sampled_tree(const struct tfh_start *s, const struct tfh_sampled_steps *steps, int64_t born,
		     struct tfh_result *r)
{
	double first = (double)(s->sample[steps->first].t - born) / 1e9,
	       last = (double)(s->sample[steps->until].t - born) / 1e9;
	struct tfh_part_of_run *tree = tfh_result_alloc(r, 5, sizeof(*tree));
	double between = steps->between_ns / 1e9;
	uint32_t n = 3;

	if (!tree)
		return -ENOMEM;
	first = fmin(fmax(first, 0), r->tree[0].wall_s);
	last = fmin(fmax(last, first), r->tree[0].wall_s);
	between = fmin(between, last - first);
	if (between * TFH_LOOPS_LEAST_PART < r->tree[0].wall_s)
		between = 0;
	tree[0] = r->tree[0];
	tree[1] = (struct tfh_part_of_run){
		.kind = TFH_BRANCH_STARTUP, .name = "", .count = 1, .runs = 1, .wall_s = first};
	tree[2] = (struct tfh_part_of_run){.kind = TFH_BRANCH_TRAIN,
					   .name = steps->line.function,
					   .count = steps->steps,
					   .runs = steps->times,
					   .begin_s = first,
					   .wall_s = last - first - between};
	if (between > 0)
		tree[n++] = (struct tfh_part_of_run){.kind = TFH_BRANCH_BETWEEN,
						     .name = "",
						     .count = steps->times,
						     .runs = steps->times,
						     .begin_s = first,
						     .wall_s = between};
	tree[n++] = (struct tfh_part_of_run){.kind = TFH_BRANCH_AFTER,
					     .name = "",
					     .count = 1,
					     .runs = 1,
					     .begin_s = last,
					     .wall_s = tree[0].wall_s - last};
	r->tree = tree;
	r->n_tree = n;
	return 0;
}

void tfh_sampled_gains(const struct tfh_sampled_steps *s, const double part[TFH_PART_COUNT],
		       const struct tfh_sampled_place place[2], double in_loop, double samples,
		       struct tfh_result *r)
{
	double all = 0, step;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		all += part[p];
	/* Compiling that recurs is in few steps, which are much longer than the others. */
	step = isnan(s->step_s) || r->verdict.cause == TFH_CAUSE_HOST_COMPILE
		       ? in_loop / 1e9 / (double)s->steps
		       : s->step_s;
	r->found.sampled.loop = (struct tfh_step_loop){.file = s->line.file,
						       .function = s->line.function,
						       .first = s->line.line,
						       .last = s->last_line,
						       .times = s->times,
						       .exact = s->exact,
						       .counter = s->counter};
	r->steps = (struct tfh_steps){.count = s->steps,
				      .total = s->steps,
				      .median_s = step,
				      .p95_s = NAN,
				      .total_s = all / 1e9,
				      .clock = TFH_STEP_CLOCK_LOOP,
				      .clock_name = s->line.function,
				      .per_execution = 1};
	if (!(all > 0))
		return;
	for (int p = 0; p < TFH_PART_COUNT; p++)
		r->breakdown[p] = (struct tfh_share){part[p] / all * step, part[p] / all};
	if (r->found.line.file && place->ns > 0) {
		/* A fix that makes batches elsewhere moves all of that work, not only one line. */
		bool moves = r->verdict.cls == TFH_CLASS_INPUT_BOUND &&
			     part[TFH_PART_INPUT] > (1 + TFH_BLOCKING_SHARE) * place->ns;
		r->found.line.s_per_step = place->line_ns / all * step;
		r->found.line.of_s = step;
		if (r->verdict.cls != TFH_CLASS_COMPUTE_BOUND || place->aside)
			add_places(r, place, all, step, samples);
		if (moves)
			r->line_place = 0;
	}
	add_whatifs(r, step, samples);
}
