/* The line of the program that has the additional time of slow steps, by samples: of single ones
 * (periodic.c) a timer's handler, a check, a log; of those before or after a change (changes.c)
 * what goes through something that grows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/verdict/line_tree.h"

struct line_share {
	struct tfh_model_line line;
	double long_ns, other_ns;
	uint32_t depth;		  /* of its frame, from 1 at the outermost one */
	uint64_t samples, others; /* in long steps, in others */
};

struct slow_lines {
	TFH_VEC(struct line_share) line;
	double long_ns, other_ns;
};

static void count(struct slow_lines *x, const struct tfh_model_line *at, uint32_t depth, double ns,
		  bool is_long)
{
	struct line_share *l = NULL;

	/* A generator in a line is a function of its own. */
	for (size_t i = 0; i < x->line.n && !l; i++)
		if (x->line.v[i].line.line == at->line && !strcmp(x->line.v[i].line.file, at->file))
			l = &x->line.v[i];
	if (!l) {
		if (x->line.n == TFH_VERDICT_LINES ||
		    TFH_PUSH(x->line, ((struct line_share){.line = *at})))
			return;
		l = &x->line.v[x->line.n - 1];
	}
	if (strlen(at->function) < strlen(l->line.function))
		l->line.function = at->function;
	l->depth = depth > l->depth ? depth : l->depth;
	*(is_long ? &l->long_ns : &l->other_ns) += ns;
	*(is_long ? &l->samples : &l->others) += 1;
}

/* Adds a sample under the line of the program and, if asked for, those that call it. */
static void add(struct slow_lines *x, const struct tfh_facts *facts,
		const struct tfh_seen_sample *k, bool is_long, bool callers)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	uint32_t n = tfh_frames_at(facts, k->place, frame), at = n ? tfh_place_lead(frame, n) : 0;

	*(is_long ? &x->long_ns : &x->other_ns) += k->ns;
	for (uint32_t i = at; i < n && (i == at || callers); i++) {
		bool again = i > at && frame[i].library;
		for (uint32_t j = at; j < i && !again; j++)
			again = tfh_same_line(&frame[j], &frame[i]); /* recursion */
		if (!again)
			count(x, &frame[i], n - i, k->ns, is_long);
	}
}

/* The innermost line that has most of the long steps' time, and at most half of that share in
 * others: additional work of long steps (an evaluation) may go through lines that all steps run. */
static void choose(const struct slow_lines *x, struct tfh_slow_found *out)
{
	const struct line_share *best = NULL;

	for (size_t i = 0; i < x->line.n; i++) {
		const struct line_share *l = &x->line.v[i];
		double in_long = l->long_ns / x->long_ns,
		       elsewhere = x->other_ns > 0 ? l->other_ns / x->other_ns : 0;
		if (l->samples >= TFH_VERDICT_LINE_SAMPLES && in_long > TFH_VERDICT_MOST_SHARE &&
		    2 * elsewhere <= in_long && (!best || l->depth > best->depth))
			best = l;
	}
	if (!best)
		return;
	out->file = best->line.file;
	out->function = best->line.function;
	out->line = best->line.line;
}

void tfh_find_slow_line(const struct tfh_accounts *accounts, const struct tfh_slow_step_at *slow,
			size_t n, struct tfh_result *r)
{
	struct slow_lines x = {0};
	struct tfh_judged_samples at = {0};
	struct tfh_seen_sample k;
	size_t s = 0;

	while (tfh_next_judged_sample(accounts, &at, &k)) {
		double t = (double)k.t / 1e9;
		while (s < n && r->step[slow[s].index].start_s + r->step[slow[s].index].dur_s <= t)
			s++;
		bool is_long = s < n && r->step[slow[s].index].start_s <= t;
		add(&x, accounts->facts, &k, is_long, true);
	}
	if (x.long_ns > 0)
		choose(&x, &r->found.slow);
	free(x.line.v);
}

static bool is_in(const struct tfh_result *r, const struct tfh_steps_at *x, int64_t t)
{
	const struct tfh_step *last = &r->step[x->end - 1];
	double s = (double)t / 1e9;

	return s >= r->step[x->begin].start_s && s < last->start_s + last->dur_s;
}

/* By how much a line takes longer in a long step, if these ranges have so many steps. */
static double longer(const struct line_share *l, double long_steps, double other_steps)
{
	return l->long_ns / long_steps - l->other_ns / other_steps;
}

/* Two standard errors of it, as each sample stands for about the same time. */
static double longer_off(const struct line_share *l, double long_steps, double other_steps)
{
	double a = l->long_ns / long_steps, b = l->other_ns / other_steps;

	return 2 * sqrt(a * a / fmax((double)l->samples, 1) + b * b / fmax((double)l->others, 1));
}

void tfh_find_changed_line(const struct tfh_accounts *accounts, const struct tfh_result *r,
			   const struct tfh_steps_at *before, const struct tfh_steps_at *after,
			   struct tfh_change *out)
{
	bool grow = after->mean_s > before->mean_s;
	const struct tfh_steps_at *slower = grow ? after : before, *other = grow ? before : after;
	const struct line_share *best = NULL;
	struct slow_lines x = {0};
	double n = (double)slower->n, m = (double)other->n;
	struct tfh_judged_samples at = {0};
	struct tfh_seen_sample k;

	while (tfh_next_judged_sample(accounts, &at, &k)) {
		bool is_long = is_in(r, slower, k.t);
		if (is_long || is_in(r, other, k.t))
			add(&x, accounts->facts, &k, is_long, false);
	}
	for (size_t i = 0; i < x.line.n; i++)
		if (!best || longer(&x.line.v[i], n, m) > longer(best, n, m))
			best = &x.line.v[i];
	if (best && best->samples >= TFH_VERDICT_LINE_SAMPLES &&
	    longer(best, n, m) > longer_off(best, n, m) &&
	    longer(best, n, m) / 1e9 > TFH_VERDICT_MOST_SHARE * (slower->mean_s - other->mean_s)) {
		out->file = best->line.file;
		out->function = best->line.function;
		out->line = best->line.line;
	}
	free(x.line.v);
}
