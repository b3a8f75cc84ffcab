/*
 * What a rank on the CPU does while all others wait for it alone: the line of the program at which
 * its samples of that time differ most from its other samples. A line that leads to all work of the
 * loop has as large a share of both, and one within the work that makes it late has less of the
 * former than the line that calls it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/stats.h"
#include "judge/verdict/callees.h"
#include "judge/verdict/line_tree.h"

struct late_sum {
	struct tfh_model_line line;
	struct tfh_callees calls;
	double late_ns, other_ns;
	uint64_t samples; /* of the former */
};

struct late_lines {
	TFH_VEC(struct late_sum) of;
	double late_ns, other_ns;
	uint64_t late; /* samples */
};

static struct late_sum *sum_of(struct late_lines *x, const struct tfh_model_line *line)
{
	for (size_t i = 0; i < x->of.n; i++)
		if (tfh_same_line(&x->of.v[i].line, line))
			return &x->of.v[i];
	if (x->of.n == TFH_VERDICT_LINES || TFH_PUSH(x->of, (struct late_sum){.line = *line}))
		return NULL;
	return &x->of.v[x->of.n - 1];
}

static bool is_again(const struct tfh_model_line *frame, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++)
		if (tfh_same_line(&frame[k], &frame[i]))
			return true;
	return false;
}

/* What the line of frame i calls: the program's next function, which a library may call for it, or
 * else the library's. NULL: nothing. */
static const struct tfh_model_line *called(const struct tfh_model_line *frame, uint32_t i)
{
	for (uint32_t k = i; k-- > 0;)
		if (!frame[k].library)
			return &frame[k];
	return i ? &frame[i - 1] : NULL;
}

/* Adds a sample to all lines of the program that led to it. */
static void add(struct late_lines *x, const struct tfh_facts *facts,
		const struct tfh_seen_sample *k, bool late)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	uint32_t n = tfh_frames_at(facts, k->place, frame);

	*(late ? &x->late_ns : &x->other_ns) += k->ns;
	x->late += late;
	for (uint32_t i = 0; i < n; i++) {
		struct late_sum *s =
			frame[i].library || is_again(frame, i) ? NULL : sum_of(x, &frame[i]);
		if (!s)
			continue;
		*(late ? &s->late_ns : &s->other_ns) += k->ns;
		s->samples += late;
		if (late)
			tfh_callee_add(&s->calls, called(frame, i), k->ns);
	}
}

/* By how much its share is larger while the others wait. */
static double excess(const struct late_lines *x, const struct late_sum *s)
{
	return s->late_ns / x->late_ns - (x->other_ns > 0 ? s->other_ns / x->other_ns : 0);
}

/* The line with the largest excess; of about equal ones, the one that leads to the others. */
static const struct late_sum *choose(const struct late_lines *x)
{
	const struct late_sum *best = NULL;
	double most = 0;

	for (size_t i = 0; i < x->of.n; i++)
		most = fmax(most, excess(x, &x->of.v[i]));
	for (size_t i = 0; i < x->of.n; i++)
		/* of a stack's lines, the one that calls the others was added last */
		if (excess(x, &x->of.v[i]) >= most - TFH_BLOCKING_SHARE &&
		    (!best || x->of.v[i].late_ns >= best->late_ns))
			best = &x->of.v[i];
	return most > TFH_VERDICT_MOST_SHARE && best->samples >= TFH_VERDICT_LINE_SAMPLES ? best
											  : NULL;
}

static void keep(const struct late_lines *x, const struct late_sum *s, double waited_s,
		 struct tfh_seen_line *out)
{
	double share = s->late_ns / x->late_ns;
	const struct tfh_model_line *calls = tfh_callee_most(&s->calls);

	*out = (struct tfh_seen_line){
		.file = s->line.file,
		.function = s->line.function,
		.line = s->line.line,
		.callee = calls ? calls->function : NULL,
		.callee_file = calls ? calls->file : NULL,
		.callee_line = calls ? calls->line : 0,
		.s_per_step = share * waited_s,
		.off_s = tfh_share_error(share, (double)x->late) * waited_s,
		.of_s = waited_s,
		.samples = s->samples,
	};
}

void tfh_find_late_line(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	const struct tfh_facts *facts = accounts->facts;
	struct late_lines x = {0};
	double waited = 0;
	size_t n, at = 0;
	const struct tfh_collective *c =
		tfh_matches_exchanges(accounts->matches, facts->process, &n);

	for (size_t i = 0; i < n; i++)
		waited += (double)c[i].alone;
	if (!(waited > 0) || !r->steps.total)
		return;
	for (size_t i = 0; i < tfh_stack_samples_count(facts->samples); i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		if (!facts->thread[k.thread].drives || k.t < c[0].t0)
			continue;
		while (at < n && c[at].t0 <= k.t)
			at++;
		add(&x, facts, &k, at < n && k.t >= c[at].t0 - c[at].alone);
	}
	const struct late_sum *best = x.late_ns > 0 ? choose(&x) : NULL;
	if (best)
		keep(&x, best, waited / 1e9 / (double)r->steps.total, &r->late);
	free(x.of.v);
}
