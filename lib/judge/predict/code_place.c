/*
 * The cost of single places of the program: functions or, in the function that contains the loop,
 * lines, with everything that they call. Each is removed by itself, since a fix changes one and
 * leaves the others. With device times, the pauses with samples at the place are replayed without
 * its share of them.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "judge/predict/predict.h"

/* A line of the program with samples, or several. */
struct seen_place {
	struct tfh_model_line line; /* with the most samples */
	uint32_t first, last;	    /* the stretch of lines around it */
	double ns, line_ns;	    /* line_ns: of that line alone */
	uint64_t samples;
	/* The kinds of pauses that samples are in (0: none), and their time. */
	struct {
		uint32_t kind;
		double ns;
	} pauses[TFH_PREDICT_PLACE_PAUSES];
	/* Its function also makes the next call, so removing all of it would remove the loop. */
	bool loops;
};

struct seen_places {
	TFH_VEC(struct seen_place) place;
};

static bool same(const struct tfh_model_line *a, const struct tfh_model_line *b, bool whole)
{
	return tfh_same_function(a, b) && (whole || a->line == b->line);
}

static bool within(uint32_t line, uint32_t first, uint32_t last)
{
	return first <= line && line <= last;
}

static bool is_own(const struct tfh_facts *facts, const struct tfh_seen_sample *k)
{
	return facts->thread[k->thread].drives && tfh_sample_is_own(k);
}

/* "f.<locals>.<listcomp>" is a part of the enclosing function, which is the next frame. */
static bool is_part(const char *function)
{
	const char *dot = strrchr(function, '.');

	return dot && dot[1] == '<' && strcmp(dot, ".<locals>") != 0;
}

static const struct tfh_model_line *lead_of(const struct tfh_model_line *frame, uint32_t n,
					    const struct tfh_seen_sample *k)
{
	uint32_t callee, at = n ? tfh_role_lead(frame, n, tfh_at_role(k->at), &callee) : 0;

	while (at + 1 < n && is_part(frame[at].function) && !frame[at + 1].library)
		at++;
	return n && !frame[at].library ? &frame[at] : NULL;
}

bool tfh_is_at_place(const struct tfh_place_gain *g, const struct tfh_model_line *line)
{
	size_t n = strlen(g->function);

	if (strcmp(g->file, line->file) != 0 || strncmp(g->function, line->function, n) != 0)
		return false;
	return line->function[n]
		       ? is_part(line->function) &&
				 tfh_starts_with(line->function + n, ".<locals>.<") &&
				 (g->whole || within(line->line, g->first_line, g->last_line))
		       : g->whole || within(line->line, g->first_line, g->last_line);
}

static int add_sample(struct seen_places *all, const struct tfh_model_line *line,
		      const struct tfh_seen_sample *k)
{
	struct seen_place *p = NULL;

	for (size_t i = 0; i < all->place.n && !p; i++)
		if (same(&all->place.v[i].line, line, false))
			p = &all->place.v[i];
	if (!p) {
		if (all->place.n == TFH_VERDICT_LINES)
			return 0;
		if (TFH_PUSH(all->place,
			     ((struct seen_place){
				     .line = *line, .first = line->line, .last = line->line})))
			return -ENOMEM;
		p = &all->place.v[all->place.n - 1];
	}
	p->ns += k->ns;
	p->line_ns += k->ns;
	p->samples++;
	p->loops |= k->loops;
	for (int i = 0; i < TFH_PREDICT_PLACE_PAUSES && k->pauses; i++) {
		if (p->pauses[i].kind && p->pauses[i].kind != k->pauses)
			continue;
		p->pauses[i].kind = k->pauses;
		p->pauses[i].ns += k->ns;
		break;
	}
	return 0;
}

static int see_all(const struct tfh_accounts *accounts, struct seen_places *all)
{
	const struct tfh_facts *facts = accounts->facts;
	const struct tfh_loops *loops = accounts->loops;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	size_t at = SIZE_MAX;
	int rc = 0;

	for (size_t i = 0; i < tfh_stack_samples_count(facts->samples) && !rc; i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		at = tfh_window_of(loops, k.t, at);
		if (at == SIZE_MAX || loops->window.v[at].segment != TFH_SEGMENT_TRAIN ||
		    !is_own(facts, &k))
			continue;
		const struct tfh_model_line *line =
			lead_of(frame, tfh_frames_at(facts, k.place, frame), &k);
		rc = line ? add_sample(all, line, &k) : 0;
	}
	return rc;
}

/* Joins the lines of each function to one place, except in a function that contains the loop. */
static void join_functions(struct seen_places *all)
{
	for (size_t i = 0; i < all->place.n; i++) {
		struct seen_place *p = &all->place.v[i];
		for (size_t k = 0; k < all->place.n; k++)
			p->loops |= all->place.v[k].loops &&
				    same(&all->place.v[k].line, &p->line, true);
		for (size_t k = 0; k < i && !p->loops; k++) {
			struct seen_place *q = &all->place.v[k];
			if (!q->samples || !same(&q->line, &p->line, true))
				continue;
			q->ns += p->ns;
			q->samples += p->samples;
			p->ns = 0;
			p->samples = 0;
		}
	}
}

/* The share of a place's time in kinds of pauses that the other place has part of, too. */
static double shared(const struct seen_place *p, const struct seen_place *q)
{
	double ns = 0;

	for (int i = 0; i < TFH_PREDICT_PLACE_PAUSES; i++)
		for (int k = 0; k < TFH_PREDICT_PLACE_PAUSES && p->pauses[i].kind; k++)
			if (p->pauses[i].kind == q->pauses[k].kind &&
			    q->pauses[k].ns >= TFH_BLOCKING_SHARE * q->ns)
				ns += p->pauses[i].ns;
	return ns / p->ns;
}

/* Whether most of the time of both is in the same kinds of pauses, so that no call is between them.
 * A function that a step calls several times has several kinds of pauses. */
static bool in_same_pauses(const struct seen_place *p, const struct seen_place *q)
{
	return shared(p, q) > TFH_VERDICT_MOST_SHARE && shared(q, p) > TFH_VERDICT_MOST_SHARE;
}

/* Whether q continues p: the same function, the same pauses, at most one line without samples
 * between them. */
static bool continues(const struct seen_place *p, const struct seen_place *q)
{
	return p->loops && q->loops && p->samples && q->samples && same(&p->line, &q->line, true) &&
	       within(q->first, p->last + 1, p->last + 2) && in_same_pauses(p, q);
}

static void add_pauses(struct seen_place *p, const struct seen_place *q)
{
	for (int i = 0; i < TFH_PREDICT_PLACE_PAUSES; i++)
		for (int k = 0; k < TFH_PREDICT_PLACE_PAUSES && q->pauses[i].kind; k++)
			if (!p->pauses[k].kind || p->pauses[k].kind == q->pauses[i].kind) {
				p->pauses[k].kind = q->pauses[i].kind;
				p->pauses[k].ns += q->pauses[i].ns;
				break;
			}
}

static void absorb(struct seen_place *p, struct seen_place *q)
{
	if (q->line_ns > p->line_ns) {
		p->line = q->line;
		p->line_ns = q->line_ns;
	}
	p->last = q->last;
	add_pauses(p, q);
	p->ns += q->ns;
	p->samples += q->samples;
	q->ns = 0;
	q->samples = 0;
}

/* In a function that contains the loop, joins lines that follow each other without a call between
 * them: a statement or an inner loop of several lines is one piece of work. */
static void join_lines(struct seen_places *all)
{
	for (size_t i = 0; i < all->place.n; i++)
		for (size_t k = 0; k < all->place.n; k++)
			if (continues(&all->place.v[i], &all->place.v[k])) {
				absorb(&all->place.v[i], &all->place.v[k]);
				k = SIZE_MAX; /* from the first one again */
			}
}

/* Whether a stack contains the place: the function or the line, with everything that it calls. */
static bool is_at(const struct tfh_code_place *p, const struct tfh_model_line *frame, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (same(&frame[i], &p->line, true) &&
		    (p->whole || within(frame[i].line, p->first, p->last)))
			return true;
	return false;
}

static int mark_samples(const struct tfh_facts *facts, struct tfh_code_place *p)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];

	p->part = tfh_sample_part_new(facts->samples);
	if (!p->part)
		return -ENOMEM;
	for (size_t i = 0; i < tfh_stack_samples_count(facts->samples); i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		if (is_own(facts, &k) && is_at(p, frame, tfh_frames_at(facts, k.place, frame)))
			tfh_sample_part_add(p->part, i);
	}
	return 0;
}

int tfh_find_places(const struct tfh_accounts *accounts, struct tfh_samples *all)
{
	struct seen_places seen = {0};
	int rc = accounts->facts->samples ? see_all(accounts, &seen) : 0;

	join_functions(&seen);
	join_lines(&seen);
	while (!rc && all->n_place < TFH_PREDICT_PLACES) {
		struct seen_place *best = NULL;
		for (size_t i = 0; i < seen.place.n; i++)
			if (seen.place.v[i].samples >= (uint64_t)TFH_VERDICT_LINE_SAMPLES &&
			    (!best || seen.place.v[i].ns > best->ns))
				best = &seen.place.v[i];
		if (!best)
			break;
		struct tfh_code_place *p = &all->place[all->n_place++];
		p->line = best->line;
		p->first = best->first;
		p->last = best->last;
		p->whole = !best->loops;
		rc = mark_samples(accounts->facts, p);
		best->samples = 0;
	}
	free(seen.place.v);
	return rc;
}

/* ---- what it gains ---- */

/* The judged steps' samples of the host's own time, and those at the place. */
struct sampled {
	double all, mine, all2, mine2; /* sums of the samples' times, and of the squares */
	uint64_t n;
};

static bool counts(const struct tfh_accounts *accounts, const struct tfh_seen_sample *k)
{
	enum tfh_part part = tfh_cause_part(tfh_seen_cause(accounts, k));

	return !k->inside &&
	       (part == TFH_PART_HOST || (part == TFH_PART_INPUT && !accounts->facts->consumers));
}

static struct sampled count_samples(const struct tfh_accounts *accounts,
				    const struct tfh_code_place *p)
{
	const struct tfh_facts *facts = accounts->facts;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	struct sampled l = {0};
	struct tfh_judged_samples at = {0};
	struct tfh_seen_sample k;

	while (tfh_next_judged_sample(accounts, &at, &k)) {
		if (!counts(accounts, &k))
			continue;
		l.all += k.ns;
		l.all2 += k.ns * k.ns;
		l.n++;
		if (!is_own(facts, &k) || !is_at(p, frame, tfh_frames_at(facts, k.place, frame)))
			continue;
		l.mine += k.ns;
		l.mine2 += k.ns * k.ns;
	}
	return l;
}

/* Standard error of the place's share of the samples, which represent different times; at least
 * that of a single sample. */
static double error_of(const struct sampled *l, double part)
{
	double off2 = (1 - part) * (1 - part) * l->mine2 + part * part * (l->all2 - l->mine2);
	double n = (double)l->n;

	return l->all > 0 ? sqrt(off2 / (l->all * l->all) + 1 / (n * n)) : NAN;
}

static double host_s(const struct tfh_accounts *accounts, const struct tfh_result *r)
{
	return r->breakdown[TFH_PART_HOST].s_per_step +
	       (accounts->facts->consumers ? 0 : r->breakdown[TFH_PART_INPUT].s_per_step);
}

/* From the accounts alone: the step without the place's share, but not below the time of
 * computing. */
static void bound(const struct tfh_accounts *accounts, struct tfh_place_gain *g, double step,
		  double compute)
{
	double left = step - g->s_per_step, faster = tfh_faster_s(accounts, TFH_REMOVE_HOST);
	double cooled = accounts->facts->cpu_only ? tfh_cooled_s(accounts, g->s_per_step, left) : 0;

	g->gain.low_s = fmax(left - g->off_s - fmax(TFH_PREDICT_MEASURED * left, faster),
			     fmin(compute - faster, left));
	g->gain.low_s = fmax(g->gain.low_s - cooled, left / TFH_PREDICT_MOST_OFF_PART);
	g->gain.high_s = step;
	tfh_serial_gain(accounts, TFH_REMOVE_HOST, step, left, g->off_s, &g->gain);
	g->gain.ceiling_speedup = g->gain.low_s > 0 ? step / g->gain.low_s : NAN;
}

static void fill(const struct tfh_accounts *accounts, struct tfh_samples *all, uint32_t i,
		 struct tfh_result *r, double step)
{
	const struct tfh_code_place *p = &all->place[i];
	struct sampled l = count_samples(accounts, p);
	double part = l.all > 0 ? l.mine / l.all : 0;
	struct tfh_place_gain *g = &r->place[r->n_place];

	*g = (struct tfh_place_gain){.file = p->line.file,
				     .function = p->line.function,
				     .line = p->line.line,
				     .first_line = p->first,
				     .last_line = p->last,
				     .whole = p->whole};
	g->s_per_step = part * host_s(accounts, r);
	g->off_s = TFH_PREDICT_ERRORS * error_of(&l, part) * host_s(accounts, r);
	g->gain = (struct tfh_whatif){.remove = TFH_REMOVE_NONE, .step_s = NAN, .speedup = NAN};
	if (!(g->s_per_step >= TFH_BLOCKING_SHARE * step))
		return;
	bound(accounts, g, step, r->breakdown[TFH_PART_COMPUTE].s_per_step);
	g->gain.no_bound =
		tfh_tier(accounts) == 'C' ? tfh_no_bound(accounts, TFH_REMOVE_HOST) : NULL;
	tfh_at_most(&g->gain, fmin(step - g->s_per_step + g->off_s, step));
	if (g->gain.no_bound)
		g->gain.step_s = g->gain.speedup = g->gain.ceiling_speedup = NAN;
	else if (tfh_tier(accounts) != 'C')
		tfh_place_point(accounts->device, all, i, r, g);
	r->n_place++;
}

void tfh_place_gains(const struct tfh_accounts *accounts, struct tfh_samples *all,
		     struct tfh_result *r)
{
	double step = 0;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		step += r->breakdown[p].s_per_step;
	for (uint32_t i = 0; i < all->n_place && step > 0; i++)
		if (!tfh_runs_through(accounts, &all->place[i].line))
			fill(accounts, all, i, r, step);
}
