/*
 * A function of the program that a library calls again and again (a callback) may do more than one
 * kind of work: it evaluates, and makes or traces what it needs for that. The windows then show
 * evaluations, and time between loops. But if one line of that function takes most of both, it is
 * one piece of work.
 */
#include <errno.h>
#include <stdlib.h>

#include "judge/verdict/line_tree.h"

enum { BETWEEN, EVALUATES, KINDS };

struct called_line {
	struct tfh_model_line line;
	double ns[KINDS];
	uint64_t samples[KINDS];
};

struct called {
	TFH_VEC(struct called_line) at;
	double ns[KINDS]; /* of all samples */
};

static int kind_of(const struct tfh_accounts *accounts, size_t window)
{
	uint8_t segment = window < accounts->loops->window.n ? accounts->use[window].segment
							     : TFH_SEGMENT_NONE;

	return segment == TFH_SEGMENT_BETWEEN ? BETWEEN
	       : segment == TFH_SEGMENT_EVAL  ? EVALUATES
					      : KINDS;
}

static int add(struct called *c, int kind, const struct tfh_model_line *frame, uint32_t n,
	       double ns)
{
	struct called_line *l = NULL;

	c->ns[kind] += ns;
	if (!tfh_place_called(frame, n))
		return 0;
	const struct tfh_model_line *line = &frame[tfh_place_lead(frame, n)];
	for (size_t i = 0; i < c->at.n && !l; i++)
		if (tfh_same_line(&c->at.v[i].line, line))
			l = &c->at.v[i];
	if (!l && c->at.n == TFH_VERDICT_LINES)
		return 0;
	if (!l && TFH_PUSH(c->at, ((struct called_line){.line = *line})))
		return -ENOMEM;
	l = l ? l : &c->at.v[c->at.n - 1];
	l->ns[kind] += ns;
	l->samples[kind]++;
	return 0;
}

static const struct called_line *most_of_both(const struct called *c)
{
	for (size_t i = 0; i < c->at.n; i++) {
		const struct called_line *l = &c->at.v[i];
		bool most = true;
		for (int k = 0; k < KINDS; k++)
			most &= l->samples[k] >= TFH_VERDICT_LINE_SAMPLES &&
				l->ns[k] > TFH_VERDICT_MOST_SHARE * c->ns[k];
		if (most)
			return l;
	}
	return NULL;
}

/* Both pieces become one, which leads the verdict. */
static void join(struct tfh_result *r, struct tfh_recurring *between, struct tfh_recurring *eval,
		 double share_between, double share_eval)
{
	double evaluates = share_eval * eval->total_s;

	eval->total_s -= evaluates;
	eval->blocked_s *= 1 - share_eval;
	between->evaluates_s = evaluates;
	between->total_s = between->blocked_s = share_between * between->total_s + evaluates;
	between->cls = TFH_CLASS_HOST_BOUND;
	between->cause = TFH_CAUSE_HOST_CALLBACK;
	r->lead = (uint32_t)(between - r->recurring) + 1;
	r->verdict.cls = between->cls;
	r->verdict.cause = between->cause;
	r->verdict.share = between->total_s / r->recurs_s;
}

int tfh_find_called_work(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	const struct tfh_facts *facts = accounts->facts;
	uint32_t between = tfh_recurring_of(r, TFH_SEGMENT_BETWEEN),
		 eval = tfh_recurring_of(r, TFH_SEGMENT_EVAL);
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	struct called c = {0};
	size_t window = 0;
	int rc = 0;

	if (!TFH_DETECT_CALLED_BACK || !between || !eval || (r->lead != between && r->lead != eval))
		return 0;
	for (size_t i = 0; i < tfh_stack_samples_count(facts->samples) && !rc; i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		if (!facts->thread[k.thread].drives)
			continue;
		window = tfh_window_of(accounts->loops, k.t, window == SIZE_MAX ? 0 : window);
		int kind = window == SIZE_MAX ? KINDS : kind_of(accounts, window);
		if (kind != KINDS)
			rc = add(&c, kind, frame, tfh_frames_at(facts, k.place, frame), k.ns);
	}
	const struct called_line *l = most_of_both(&c);
	if (l && !rc)
		join(r, &r->recurring[between - 1], &r->recurring[eval - 1],
		     l->ns[BETWEEN] / c.ns[BETWEEN], l->ns[EVALUATES] / c.ns[EVALUATES]);
	free(c.at.v);
	return rc;
}
