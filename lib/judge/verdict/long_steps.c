/* The line of the program that has the additional time of slow steps (periodic.c), by samples: a
 * timer's handler, a check, a log. */
#include <stdlib.h>
#include <string.h>

#include "judge/verdict/line_tree.h"

struct line_share {
	struct tfh_model_line line;
	double long_ns, other_ns;
	uint64_t samples; /* in long steps */
};

struct slow_lines {
	TFH_VEC(struct line_share) line;
	double long_ns, other_ns;
};

static void add(struct slow_lines *x, const struct tfh_model_line *at, bool is_long, double ns)
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
	*(is_long ? &l->long_ns : &l->other_ns) += ns;
	l->samples += is_long;
}

/* The line that has most of the long steps' time, and less than half of that share in others. */
static void choose(const struct slow_lines *x, struct tfh_slow_found *out)
{
	const struct line_share *best = NULL;

	for (size_t i = 0; i < x->line.n; i++)
		if (!best || x->line.v[i].long_ns > best->long_ns)
			best = &x->line.v[i];
	if (!best || best->samples < TFH_VERDICT_LINE_SAMPLES)
		return;
	double in_long = best->long_ns / x->long_ns,
	       elsewhere = x->other_ns > 0 ? best->other_ns / x->other_ns : 0;
	if (in_long <= TFH_VERDICT_MOST_SHARE || 2 * elsewhere > in_long)
		return;
	out->file = best->line.file;
	out->function = best->line.function;
	out->line = best->line.line;
}

void tfh_find_slow_line(const struct tfh_accounts *accounts, const struct tfh_slow_step_at *slow,
			size_t n, struct tfh_result *r)
{
	const struct tfh_facts *facts = accounts->facts;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	struct slow_lines x = {0};
	size_t window = 0, at = 0;

	for (size_t i = 0; i < tfh_stack_samples_count(facts->samples); i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		double t = (double)k.t / 1e9;
		if (!tfh_judged_at(accounts, k.t, &window) || !facts->thread[k.thread].drives)
			continue;
		while (at < n &&
		       r->step[slow[at].index].start_s + r->step[slow[at].index].dur_s <= t)
			at++;
		bool is_long = at < n && r->step[slow[at].index].start_s <= t;
		*(is_long ? &x.long_ns : &x.other_ns) += k.ns;
		uint32_t m = tfh_frames_at(facts, k.place, frame);
		if (m)
			add(&x, &frame[tfh_place_lead(frame, m)], is_long, k.ns);
	}
	if (x.long_ns > 0)
		choose(&x, &r->found.slow);
	free(x.line.v);
}
