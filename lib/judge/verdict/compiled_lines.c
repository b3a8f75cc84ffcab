/*
 * How long the run compiles: samples of the main thread below a compiler's function (places.def),
 * wherever they fall. First steps, evaluations and the steps after a loop began again compile as
 * much as start-up does, and no part of the run shows that by itself.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "judge/verdict/compiled_lines.h"

struct compiles {
	const struct tfh_accounts *accounts;
	struct tfh_compiling *out;
	bool in_steps;		     /* count those in judged steps, too */
	int64_t begin, started, end; /* first sample; end of start-up in the tree; last sample */
	double all_ns[TFH_SEGMENT_COUNT]; /* of all samples, whatever they show */
	struct tfh_compiled_lines lines;
	size_t window; /* of the last sample */
	size_t seen;   /* window of the last sample that compiles; SIZE_MAX: none */
	bool any;
	size_t first;	 /* window of the first step that compiles; SIZE_MAX: none */
	double again_ns; /* of the first steps after that one: another shape, or another value */
};

int tfh_compiled_lines_add(struct tfh_compiled_lines *lines, const struct tfh_model_line *frame,
			   uint32_t n, enum tfh_role role, double ns)
{
	uint32_t callee, lead = tfh_role_lead(frame, n, role, &callee);

	for (size_t i = 0; i < lines->at.n; i++)
		if (tfh_same_line(&lines->at.v[i].line, &frame[lead])) {
			lines->at.v[i].ns += ns;
			return 0;
		}
	if (lines->at.n == TFH_VERDICT_LINES)
		return 0;
	return TFH_PUSH(lines->at, ((struct tfh_compiled_at){
					   .line = frame[lead],
					   .callee_file = callee < n ? frame[callee].file : NULL,
					   .ns = ns}))
		       ? -ENOMEM
		       : 0;
}

void tfh_compiled_lines_keep(const struct tfh_compiled_lines *lines, struct tfh_compiling *out)
{
	const struct tfh_compiled_at *most = NULL;

	for (size_t i = 0; i < lines->at.n; i++)
		if (!most || lines->at.v[i].ns > most->ns)
			most = &lines->at.v[i];
	if (!most)
		return;
	out->file = most->line.file;
	out->function = most->line.function;
	out->line = most->line.line;
	out->callee_file = most->callee_file;
}

/* The end of what the tree calls start-up: the first window may begin long before it. */
static int64_t start_end(const struct tfh_result *r)
{
	double end = -INFINITY;

	for (uint32_t i = 1; i < r->n_tree; i++) {
		const struct tfh_part_of_run *p = &r->tree[i];
		if (!p->parent && (p->kind == TFH_BRANCH_BEFORE || p->kind == TFH_BRANCH_STARTUP))
			end = fmax(end, p->begin_s + p->wall_s);
	}
	return end > -INFINITY ? (int64_t)(end * 1e9) : INT64_MIN;
}

/* Windows tile the judged time; what lies before the first one is start-up, what lies after the
 * last is not between steps either. */
static enum tfh_segment segment_at(struct compiles *c, int64_t t)
{
	const struct tfh_loops *loops = c->accounts->loops;
	size_t hint = c->window == SIZE_MAX ? 0 : c->window;

	c->window = tfh_window_of(loops, t, hint);
	if (t < c->started)
		return TFH_SEGMENT_STARTUP;
	if (c->window != SIZE_MAX)
		return c->accounts->use[c->window].segment;
	return loops->window.n && t < loops->window.v[0].t0 ? TFH_SEGMENT_STARTUP
							    : TFH_SEGMENT_BETWEEN;
}

/* within: it is inside a call, of a step that compiles outside of calls, too. */
static int add_sample(struct compiles *c, int64_t t, uint32_t n, const struct tfh_model_line *frame,
		      double ns, bool within)
{
	enum tfh_role role = tfh_place_role(frame, n, TFH_ORDER_UNKNOWN);
	enum tfh_segment kind = segment_at(c, t);
	/* what first steps prepare, they also compile */
	bool first = kind == TFH_SEGMENT_STARTUP || kind == TFH_SEGMENT_WARMUP;
	bool compiles = first ? tfh_role_compiles(role)
			      : tfh_sample_compiles(c->accounts->facts, TFH_AT(role, 0));

	c->begin = t < c->begin ? t : c->begin;
	c->end = t > c->end ? t : c->end;
	c->all_ns[kind] += ns;
	if (!n || !compiles || (kind == TFH_SEGMENT_TRAIN && !c->in_steps))
		return 0;
	c->out->s[kind] += ns / 1e9;
	if (kind == TFH_SEGMENT_WARMUP && c->first == SIZE_MAX)
		c->first = c->window;
	else if (kind == TFH_SEGMENT_WARMUP && c->window > c->first)
		c->again_ns += ns;
	c->out->samples++;
	c->out->times += !within && (!c->any || c->seen != c->window);
	c->seen = c->window;
	c->any = true;
	return tfh_compiled_lines_add(&c->lines, frame, n, role, ns);
}

/* Samples that `tfhook run` took before the process recorded. */
static int add_outside(struct compiles *c, const struct tfh_start *s)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	int rc = 0;

	for (uint32_t i = 0; i < s->n && !rc; i++) {
		const struct tfh_start_sample *k = &s->sample[i];
		uint32_t n = tfh_start_frames(s, k->place, frame, TFH_VERDICT_FRAMES);
		rc = add_sample(c, k->t, n, frame, k->ns, false);
	}
	return rc;
}

static int add_own(struct compiles *c, int64_t from)
{
	const struct tfh_facts *facts = c->accounts->facts;
	const struct tfh_feed *feed = facts->feed;
	uint32_t main = feed->processes[facts->process].pid;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	int rc = 0;

	for (size_t i = 0; i < tfh_stack_samples_count(facts->samples) && !rc; i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		/* What predict() compiles in a callback is a part of evaluating. */
		if (k.t > from && feed->threads[k.thread].tid == main &&
		    tfh_at_role(k.at) != TFH_ROLE_EVALUATE)
			rc = add_sample(c, k.t, tfh_frames_at(facts, k.place, frame), frame, k.ns,
					false);
	}
	/* A backward pass compiles its own graph. */
	c->window = SIZE_MAX;
	for (size_t i = 0; i < tfh_samples_within_count(facts->samples) && !rc; i++) {
		struct tfh_seen_sample k = tfh_samples_within_at(facts->samples, i);
		uint32_t n = tfh_frames_at(facts, k.place, frame);
		if (k.t > from && feed->threads[k.thread].tid == main &&
		    tfh_role_compiles(tfh_place_role(frame, n, TFH_ORDER_UNKNOWN)))
			rc = add_sample(c, k.t, n, frame, k.ns, true);
	}
	return rc;
}

/* What the main thread was sampled over, by segment. */
static void add_walls(const struct compiles *c, double wall_ns[TFH_SEGMENT_COUNT])
{
	const struct tfh_loops *loops = c->accounts->loops;
	int64_t at = c->started > c->begin ? c->started : c->begin;

	wall_ns[TFH_SEGMENT_STARTUP] = (double)(at - c->begin);
	TFH_EACH (i, loops->window.n) {
		const struct tfh_window *w = &loops->window.v[i];
		enum tfh_segment gap = i ? TFH_SEGMENT_BETWEEN : TFH_SEGMENT_STARTUP;
		if (w->t1 <= at)
			continue;
		wall_ns[gap] += w->t0 > at ? (double)(w->t0 - at) : 0;
		at = w->t0 > at ? w->t0 : at;
		wall_ns[c->accounts->use[i].segment] += (double)(w->t1 - at);
		at = w->t1;
	}
	wall_ns[loops->window.n ? TFH_SEGMENT_BETWEEN : TFH_SEGMENT_STARTUP] +=
		c->end > at ? (double)(c->end - at) : 0;
}

/* Each sample stands for the mean interval at that time. A few long intervals can make their sum
 * exceed the time in which the samples were taken: limits it to that time. */
static void keep_within(struct compiles *c)
{
	double wall_ns[TFH_SEGMENT_COUNT] = {0};

	add_walls(c, wall_ns);
	for (int i = 0; i < TFH_SEGMENT_COUNT; i++)
		if (c->all_ns[i] > wall_ns[i]) {
			c->out->s[i] *= wall_ns[i] / c->all_ns[i];
			c->again_ns *= i == TFH_SEGMENT_WARMUP ? wall_ns[i] / c->all_ns[i] : 1;
		}
}

/* What first steps after the first one that compiles take beyond a usual step: they compile no
 * longer than that. */
static double longer_s(const struct compiles *c, double step_s)
{
	const struct tfh_loops *loops = c->accounts->loops;
	double s = 0;

	TFH_EACH (i, loops->window.n) {
		const struct tfh_window *w = &loops->window.v[i];
		if (i > c->first && c->accounts->use[i].segment == TFH_SEGMENT_WARMUP)
			s += fmax((double)(w->t1 - w->t0) / 1e9 - step_s * w->steps, 0);
	}
	return s;
}

/* Whether each step has a pipeline of its own, as in a loop that calls predict(): then the waits
 * for its batch, and the ops that make it, go with what compiles it. */
static bool has_pipelines(const struct tfh_accounts *accounts)
{
	const struct tfh_loops *loops = accounts->loops;
	uint64_t own = 0;

	for (size_t i = 0; i < accounts->facts->series.n && loops->group_of; i++)
		own += (int32_t)loops->group_of[i] == loops->train_group;
	return TFH_DETECT_PIPELINES && loops->train_group >= 0 &&
	       (double)own >=
		       TFH_CYCLE_SURE_SHARE * (double)loops->group.v[loops->train_group].count;
}

/* Where steps compile, a fix also saves what first steps compile again, for other shapes. Where
 * nothing shows how fast the rest will run, the estimate is the step without the compiling, at
 * whichever line. */
static void save_compiling(const struct compiles *c, struct tfh_result *r)
{
	double again = fmin(c->again_ns / 1e9, longer_s(c, r->steps.median_s));
	double step = tfh_mean_step_s(r);
	double goes = r->found.cause_s[TFH_CAUSE_HOST_COMPILE];
	struct tfh_whatif *of[] = {NULL, r->line_place ? &r->place[r->line_place - 1].gain : NULL};

	if (r->steady.cause != TFH_CAUSE_HOST_COMPILE)
		return;
	if (has_pipelines(c->accounts))
		goes = fmax(goes, step - r->breakdown[TFH_PART_COMPUTE].s_per_step);
	for (uint32_t i = 0; i < r->n_whatif; i++)
		of[0] = r->whatif[i].remove == TFH_REMOVE_HOST ? &r->whatif[i] : of[0];
	for (size_t i = 0; i < 2; i++) {
		double saved = of[i] ? of[i]->saved_s : NAN, rest = step - goes;
		if (!(saved >= 0))
			continue;
		if (of[i]->no_bound && of[i]->about_s > rest && rest > 0) {
			of[i]->saved_s *= (step - rest) / fmax(step - of[i]->about_s, 1e-9);
			of[i]->about_s = rest;
		}
		of[i]->saved_s += again;
	}
}

int tfh_find_compiling(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	const struct tfh_feed *feed = accounts->facts->feed;
	const struct tfh_start *s =
		feed->start ? feed->start(feed->arg, accounts->facts->process) : NULL;
	struct compiles c = {.accounts = accounts,
			     .out = &r->found.compiling,
			     .in_steps = r->verdict.cause != TFH_CAUSE_HOST_COMPILE,
			     .begin = INT64_MAX,
			     .started = start_end(r),
			     .end = INT64_MIN,
			     .window = SIZE_MAX,
			     .first = SIZE_MAX};
	int rc = s ? add_outside(&c, s) : 0;

	if (!rc)
		rc = add_own(&c, s && s->n ? s->sample[s->n - 1].t : INT64_MIN);
	if (c.begin <= c.end)
		keep_within(&c);
	tfh_compiled_lines_keep(&c.lines, c.out);
	save_compiling(&c, r);
	free(c.lines.at.v);
	return rc;
}
