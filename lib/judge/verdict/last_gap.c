/*
 * The gap after the last loop. What a program does at the end of each epoch, such as an evaluation,
 * it does after the last one, too, but no batch follows that would end this gap. What follows the
 * last step is one more gap for as long as the same lines of the program have most of the time:
 * lines that samples show between loops, and never in steps.
 */
#include <stdlib.h>

#include "judge/verdict/line_tree.h"

struct last_gap {
	struct tfh_line_sums gaps, steps;
	double all_ns, same_ns; /* after the last step, until `until` */
	int64_t from, until;
	uint64_t samples;
};

static bool has(const struct tfh_line_sums *sums, const struct tfh_model_line *line, uint64_t least)
{
	for (size_t i = 0; i < sums->of.n; i++)
		if (tfh_same_line(&sums->of.v[i].line, line))
			return sums->of.v[i].samples >= least;
	return false;
}

static void add(struct tfh_line_sums *sums, const struct tfh_model_line *frame, uint32_t n,
		double ns)
{
	for (uint32_t i = 0; i < n; i++)
		if (!frame[i].library && tfh_line_sums_add(sums, &frame[i], ns))
			return;
}

static void add_last(struct last_gap *g, const struct tfh_model_line *frame, uint32_t n,
		     const struct tfh_seen_sample *k)
{
	bool same = false;

	for (uint32_t i = 0; i < n; i++)
		same |= has(&g->gaps, &frame[i], TFH_VERDICT_LINE_SAMPLES) &&
			!has(&g->steps, &frame[i], 1);
	g->all_ns += n ? k->ns : 0;
	if (!same)
		return;
	g->same_ns += k->ns;
	g->samples++;
	/* once other work has more of the time, the gap is over */
	if (2 * g->same_ns > g->all_ns)
		g->until = k->t;
}

double tfh_last_gap_s(const struct tfh_accounts *accounts)
{
	const struct tfh_facts *facts = accounts->facts;
	const struct tfh_loops *loops = accounts->loops;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	struct last_gap g = {0};
	size_t window = 0, n = loops->window.n;

	if (!TFH_DETECT_LAST_GAP || !n || !accounts->other[TFH_SEGMENT_BETWEEN].n)
		return 0;
	g.from = g.until = loops->window.v[n - 1].t1;
	for (size_t i = 0; i < tfh_stack_samples_count(facts->samples); i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		bool judged = tfh_judged_at(accounts, k.t, &window);
		if (!facts->thread[k.thread].drives)
			continue;
		uint32_t frames = tfh_frames_at(facts, k.place, frame);
		if (k.t > g.from)
			add_last(&g, frame, frames, &k);
		else if (judged)
			add(&g.steps, frame, frames, k.ns);
		else if (window < accounts->step.n &&
			 accounts->use[window].segment == TFH_SEGMENT_BETWEEN)
			add(&g.gaps, frame, frames, k.ns);
	}
	free(g.gaps.of.v);
	free(g.steps.of.v);
	return g.samples >= TFH_VERDICT_LINE_SAMPLES ? (double)(g.until - g.from) / 1e9 : 0;
}
