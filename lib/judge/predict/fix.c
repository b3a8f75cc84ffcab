/*
 * What a fix of the verdict's cause removes besides the cause, and what it leaves. A replay without
 * a class of costs removes exactly that class. A program that no longer makes its copies also loses
 * the code and the memory that served them, a place disappears with the calls that it makes, and no
 * fix removes all of a cost.
 */
#include <math.h>
#include <string.h>

#include "judge/predict/predict.h"

/* ---- with the copies ---- */

/* Lines of the program that copy. */
struct copy_lines {
	struct tfh_model_line line[TFH_PREDICT_COPY_LINES];
	uint32_t n;
};

static bool has(const struct copy_lines *c, const struct tfh_model_line *line)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->line[i].line == line->line && tfh_same_function(&c->line[i], line))
			return true;
	return false;
}

static void add_line(struct copy_lines *c, const struct tfh_model_line *line)
{
	if (line && c->n < TFH_PREDICT_COPY_LINES && !has(c, line))
		c->line[c->n++] = *line;
}

/* The program's innermost line; NULL: there is none. */
static const struct tfh_model_line *own_line(const struct tfh_model_line *frame, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!frame[i].library)
			return &frame[i];
	return NULL;
}

static uint32_t frames_of_site(const struct tfh_facts *facts, const struct tfh_site_use *site,
			       struct tfh_model_line frame[TFH_VERDICT_FRAMES])
{
	const struct tfh_feed *f = facts->feed;

	return site->stack && f->lines
		       ? f->lines(f->arg, facts->process, site->stack, frame, TFH_VERDICT_FRAMES)
		       : 0;
}

static const struct tfh_model_line *line_of_site(const struct tfh_facts *facts,
						 const struct tfh_site_use *site,
						 struct tfh_model_line frame[TFH_VERDICT_FRAMES])
{
	return own_line(frame, frames_of_site(facts, site, frame));
}

static struct copy_lines find_lines(const struct tfh_accounts *accounts,
				    const struct tfh_seen_line *verdict)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	const struct tfh_model_line at = {verdict->file, verdict->function, verdict->line, false};
	struct copy_lines c = {.n = 0};

	add_line(&c, verdict->file ? &at : NULL);
	TFH_EACH (i, accounts->copy.n) {
		const struct tfh_copy_use *u = &accounts->copy.v[i];
		/* If copies only queue, the lines that wait for them count. */
		const struct tfh_site_use *site = u->blocking ? u->site : accounts->wait_site;
		for (int k = 0; k < TFH_ACCOUNT_SITES; k++)
			add_line(&c, line_of_site(accounts->facts, &site[k], frame));
	}
	return c;
}

/* Seconds per step outside of calls that the program itself spends at these lines and, if copies
 * are removed, at any line that then makes a copy. Time charged to the removed part is removed
 * already. *off: two standard errors. */
static double code_at(const struct tfh_accounts *accounts, const struct copy_lines *c,
		      enum tfh_part removed, double *off)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	double ns = 0, ns2 = 0, steps = (double)accounts->judged_steps * 1e9;
	struct tfh_judged_samples at = {0};
	struct tfh_seen_sample k;

	while (tfh_next_judged_sample(accounts, &at, &k)) {
		if (!tfh_sample_is_own(&k))
			continue;
		const struct tfh_model_line *line =
			own_line(frame, tfh_frames_at(accounts->facts, k.place, frame));
		if (!(removed == TFH_PART_TRANSFER && k.copies) && !(line && has(c, line)))
			continue;
		if (tfh_cause_part(tfh_seen_cause(accounts, &k)) == removed)
			continue;
		ns += k.ns;
		ns2 += k.ns * k.ns;
	}
	*off = steps > 0 ? TFH_PREDICT_ERRORS * sqrt(ns2) / steps : 0;
	return steps > 0 ? ns / steps : 0;
}

/* What a fix is about: a place of the program or, if it is NULL, these lines. */
struct fixed {
	const struct tfh_place_gain *place;
	const struct copy_lines *lines;
};

/* The part of the sites' time that is spent in calls made there. */
static double made_there(const struct tfh_accounts *accounts, const struct tfh_site_use *site,
			 const struct fixed *x, double *all)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	double there = 0;

	for (int k = 0; k < TFH_ACCOUNT_SITES; k++) {
		const struct tfh_model_line *line = line_of_site(accounts->facts, &site[k], frame);
		bool is =
			line && (x->place ? tfh_is_at_place(x->place, line) : has(x->lines, line));
		*all += (double)site[k].ns;
		there += is ? (double)site[k].ns : 0;
	}
	return there;
}

static double share_there(const struct tfh_accounts *accounts, const struct tfh_site_use *site,
			  const struct fixed *x)
{
	double all = 0, there = made_there(accounts, site, x, &all);

	return all > 0 ? there / all : 0;
}

static double share_of_copies(const struct tfh_accounts *accounts, const struct fixed *x)
{
	double all = 0, there = 0;

	TFH_EACH (i, accounts->copy.n)
		if (accounts->copy.v[i].blocking)
			there += made_there(accounts, accounts->copy.v[i].site, x, &all);
	return all > 0 ? there / all : 0;
}

/* The time of the copies, of the waits, and of allocating memory there, s per step. */
static double calls_there(const struct tfh_accounts *accounts, const struct tfh_result *r,
			  const struct fixed *x)
{
	return share_of_copies(accounts, x) * r->breakdown[TFH_PART_TRANSFER].s_per_step +
	       share_there(accounts, accounts->wait_site, x) *
		       r->found.cause_s[TFH_CAUSE_HOST_SYNC] +
	       share_there(accounts, accounts->alloc_site, x) *
		       r->found.cause_s[TFH_CAUSE_HOST_ALLOC];
}

/* The largest place at one of these lines, s per step, with two standard errors. */
static double place_at_copies(const struct tfh_result *r, const struct copy_lines *c)
{
	double s = 0;

	for (uint32_t k = 0; k < r->n_place; k++)
		for (uint32_t i = 0; i < c->n && !r->place[k].whole; i++)
			if (tfh_is_at_place(&r->place[k], &c->line[i]))
				s = fmax(s, r->place[k].s_per_step + r->place[k].off_s);
	return s;
}

/* Each of many small fetches is waited for. */
static double waits_for_copies(const struct tfh_result *r)
{
	return r->verdict.cause == TFH_CAUSE_TRANSFER_SMALL_COPIES
		       ? r->found.cause_s[TFH_CAUSE_HOST_SYNC]
		       : 0;
}

static void may_go_too(struct tfh_whatif *w, double s, double step)
{
	bool was_point = tfh_gain_of(w) == TFH_GAIN_PREDICTED;

	w->low_s = fmax(w->low_s - s, w->floor_s);
	w->ceiling_speedup = w->low_s > 0 ? step / w->low_s : NAN;
	w->step_s = w->speedup = NAN;
	if (was_point) /* a range covers what a fix may leave already */
		tfh_may_leave(w, step);
}

/* What the program does at a line that copies may disappear with the copies, or stay. */
static void with_copies(const struct tfh_accounts *accounts, struct tfh_result *r, double step)
{
	const struct copy_lines c = find_lines(accounts, &r->found.line);
	const struct fixed x = {.lines = &c};
	double off, code = code_at(accounts, &c, TFH_PART_TRANSFER,
				   &off); /* conversions, work on results */
	double s = fmax(code + off, place_at_copies(r, &c)) +
		   share_there(accounts, accounts->alloc_site, &x) *
			   r->found.cause_s[TFH_CAUSE_HOST_ALLOC] +
		   waits_for_copies(r);

	if (!TFH_DETECT_COPY_LINE || s - off < TFH_BLOCKING_SHARE * step)
		return;
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (r->whatif[i].remove == TFH_REMOVE_TRANSFER && !r->whatif[i].no_bound)
			may_go_too(&r->whatif[i], s, step);
}

/* ---- with the launches ---- */

/* Whether that library makes the call, for the program's line. */
static bool makes(const char *library, const struct tfh_model_line *frame, uint32_t n)
{
	for (uint32_t i = 0; i < n && frame[i].library; i++)
		if (!strcmp(frame[i].file, library))
			return true;
	return false;
}

/* Lines of the program at which the library copies in that direction; among: NULL, or of these. */
static struct copy_lines lines_of(const struct tfh_accounts *accounts, const char *library,
				  enum tfh_dir dir, const struct copy_lines *among)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	struct copy_lines c = {.n = 0};

	TFH_EACH (i, accounts->copy.n) {
		const struct tfh_copy_use *u = &accounts->copy.v[i];
		for (int k = 0; k < TFH_ACCOUNT_SITES && u->dir == dir; k++) {
			uint32_t n = frames_of_site(accounts->facts, &u->site[k], frame);
			const struct tfh_model_line *line = own_line(frame, n);
			if (makes(library, frame, n) && line && (!among || has(among, line)))
				add_line(&c, line);
		}
	}
	return c;
}

/* If the calls that launch (of numba, of PyCUDA) also copy their arguments there and back, arrays
 * on the device spare the copies, the memory for them, and the code that handles both. */
static void with_arguments(const struct tfh_accounts *accounts, struct tfh_result *r, double step)
{
	const char *launcher = r->found.line.callee_file;
	struct copy_lines c = {.n = 0};
	const struct fixed x = {.lines = &c};
	double off;

	if (launcher && TFH_DETECT_COPY_LINE) {
		c = lines_of(accounts, launcher, TFH_DIR_H2D, NULL);
		c = lines_of(accounts, launcher, TFH_DIR_D2H, &c);
	}
	double s = c.n ? code_at(accounts, &c, TFH_PART_LAUNCH, &off) + calls_there(accounts, r, &x)
		       : 0;
	for (uint32_t i = 0; i < r->n_whatif && s >= TFH_BLOCKING_SHARE * step; i++) {
		struct tfh_whatif *w = &r->whatif[i];
		if (w->remove != TFH_REMOVE_LAUNCH || w->no_bound)
			continue;
		may_go_too(w, s, step);
		w->about_s = w->about_s > 0 ? fmax(w->about_s - s, w->low_s) : 0;
	}
}

/* ---- with the place ---- */

/* Seconds per step in which modules are loaded by calls at the place. */
static double loads_there(const struct tfh_accounts *accounts, const struct fixed *x)
{
	double steps = (double)(accounts->train_steps + accounts->other[TFH_SEGMENT_COMPILE].steps);

	return share_there(accounts, accounts->load_site, x) * (double)accounts->recompile_ns /
	       1e9 / steps;
}

/* The calls that the verdict's place makes may disappear with it: its copies, its waits, the memory
 * that it allocates. If it compiles, the loading of what it compiled disappears for certain. */
static void with_place(const struct tfh_accounts *accounts, struct tfh_result *r, double step)
{
	struct tfh_place_gain *g = &r->place[r->line_place - 1];
	struct tfh_whatif *w = &g->gain;
	const struct fixed x = {.place = g};
	double loads = loads_there(accounts, &x), s = loads + calls_there(accounts, r, &x);

	if (!TFH_DETECT_PLACE_CALLS || w->no_bound || s < TFH_BLOCKING_SHARE * step)
		return;
	if (r->verdict.cause == TFH_CAUSE_HOST_COMPILE)
		w->high_s = fmax(w->high_s - loads, w->low_s);
	may_go_too(w, s, step);
}

/* A line that waits for another process may also write and read what they exchange. If the program
 * sends its request a step earlier, it no longer waits, but that work stays. */
static void beside_wait(struct tfh_result *r, double step)
{
	struct tfh_place_gain *g = &r->place[r->line_place - 1];
	struct tfh_whatif *w = &g->gain;
	double waits = r->found.cause_s[TFH_CAUSE_HOST_WAIT];

	if (r->verdict.cause != TFH_CAUSE_HOST_WAIT || w->no_bound ||
	    g->s_per_step - waits < TFH_BLOCKING_SHARE * step)
		return;
	w->about_s = step - waits;
	w->high_s = fmax(w->high_s, fmin(w->about_s + g->off_s, step));
	w->step_s = w->speedup = NAN;
}

/* ---- with the iterators ---- */

/* A step that starts the pipeline anew also ends it: the program's own code at the line that asks
 * for batches makes and deletes an iterator each time. */
static void with_iterators(const struct tfh_accounts *accounts, struct tfh_result *r, double step)
{
	const struct tfh_seen_line *asks = &r->found.line;
	const struct copy_lines c = {.line = {{asks->file, asks->function, asks->line, false}},
				     .n = asks->file ? 1 : 0};
	double off, s = code_at(accounts, &c, TFH_PART_INPUT, &off);

	for (uint32_t i = 0; i < r->n_whatif; i++) {
		struct tfh_whatif *w = &r->whatif[i];
		if (w->remove != TFH_REMOVE_INPUT)
			continue;
		w->about_s = w->about_s > 0 ? fmax(w->about_s - s, w->floor_s) : 0;
		if (!w->no_bound && s >= TFH_BLOCKING_SHARE * step)
			may_go_too(w, s, step);
	}
}

/* ---- what is left ---- */

/* A cost below 5 % of the step would not be reported, so a fix may leave that much. Extends the
 * interval by it, up to the greatest width at which a point is given. */
static void leaves(struct tfh_whatif *w, double step)
{
	double widest = w->low_s + 2 * (TFH_PREDICT_WIDEST - TFH_PREDICT_MEASURED) * w->step_s;

	w->high_s =
		fmax(w->high_s, fmin(w->high_s + TFH_BLOCKING_SHARE * step, fmin(widest, step)));
}

void tfh_fix_gains(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	double step = 0;

	if (r->verdict.cause == TFH_CAUSE_NONE)
		return;
	for (int p = 0; p < TFH_PART_COUNT; p++)
		step += r->breakdown[p].s_per_step;
	if (r->verdict.cls == TFH_CLASS_TRANSFER_BOUND)
		with_copies(accounts, r, step);
	if (r->verdict.cause == TFH_CAUSE_HOST_LAUNCH && !r->lead)
		with_arguments(accounts, r, step);
	if (r->verdict.cls == TFH_CLASS_HOST_BOUND && !r->lead && r->line_place) {
		with_place(accounts, r, step);
		beside_wait(r, step);
		tfh_both_ends(accounts, r, step);
	}
	enum tfh_part part = tfh_cause_part(r->verdict.cause);
	if (accounts->facts->restarts && part == TFH_PART_INPUT && !r->lead)
		with_iterators(accounts, r, step);
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (tfh_remove_part(r->whatif[i].remove) == part && !isnan(r->whatif[i].step_s))
			leaves(&r->whatif[i], step);
}
