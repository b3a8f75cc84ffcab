/*
 * The lines of a sampled run: how long the program is at each of them and in each of its functions,
 * and which of them the verdict is about.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "judge/verdict/sampled_lines.h"

static int add_own(struct tfh_sampled_lines *x, const struct tfh_model_line *frame, uint32_t n,
		   double ns, enum tfh_cause cause)
{
	bool in_module = tfh_in_module(frame, n);

	for (uint32_t i = n; i-- > 0;) {
		struct tfh_own_function *o = NULL;
		bool again = frame[i].library;
		for (uint32_t k = i + 1; k < n && !again; k++)
			again = tfh_same_function(&frame[k], &frame[i]); /* recursion counts once */
		if (again)
			continue;
		for (size_t k = 0; k < x->own.n && !o; k++)
			if (tfh_same_function(&x->own.v[k].line, &frame[i]))
				o = &x->own.v[k];
		if (!o && x->own.n == TFH_VERDICT_LINES)
			continue;
		if (!o && TFH_PUSH(x->own, ((struct tfh_own_function){.line = frame[i],
								      .first = frame[i].line,
								      .last = frame[i].line})))
			return -ENOMEM;
		o = o ? o : &x->own.v[x->own.n - 1];
		o->caller = i + 1 < n ? frame[i + 1] : o->caller;
		o->module_ns += in_module ? ns : 0;
		o->is_main |= i + 1 < n && !strcmp(frame[i + 1].function, "<module>");
		o->ns += ns;
		o->cause[cause] += ns;
		o->depth = n - i > o->depth ? n - i : o->depth;
		o->first = !o->first || (frame[i].line && frame[i].line < o->first) ? frame[i].line
										    : o->first;
		o->last = frame[i].line > o->last ? frame[i].line : o->last;
	}
	return 0;
}

/* Whether the cause is that of a call as a whole, whatever it calls. */
static bool is_call(enum tfh_cause cause)
{
	return cause == TFH_CAUSE_HOST_COMPILE || cause == TFH_CAUSE_HOST_LAUNCH;
}

/* How many inner frames to leave out, so that the line is the one of the step at which a library is
 * called that calls functions of the program in turn, as flax does a model's layers: what traces
 * them op by op, or compiles them, is that call. 0: no library calls back, or the steps are in what
 * it calls. */
static uint32_t below_call(const struct tfh_sampled_steps *steps,
			   const struct tfh_model_line *frame, uint32_t n)
{
	while (n && frame[n - 1].library) /* what runs the program */
		n--;
	while (n && !frame[n - 1].library)
		n--;
	while (n && frame[n - 1].library)
		n--;
	for (uint32_t i = 0; i < n; i++)
		if (tfh_same_function(&frame[i], &steps->line))
			return 0;
	return n;
}

static int add_lead(struct tfh_sampled_lines *x, const struct tfh_start_sample *k,
		    const struct tfh_model_line *frame, uint32_t n, enum tfh_cause cause)
{
	uint32_t callee, at = tfh_role_lead(frame, n, TFH_ROLE_NONE, &callee);
	struct tfh_sampled_lead *l = NULL;

	for (size_t i = 0; i < x->lead.n && !l; i++)
		if (tfh_same_line(&x->lead.v[i].line, &frame[at]))
			l = &x->lead.v[i];
	if (!l && x->lead.n == TFH_VERDICT_LINES)
		return 0;
	if (!l && TFH_PUSH(x->lead, ((struct tfh_sampled_lead){.line = frame[at]})))
		return -ENOMEM;
	l = l ? l : &x->lead.v[x->lead.n - 1];
	l->ns += k->ns;
	l->samples++;
	l->cause[cause] += k->ns;
	l->module_ns += tfh_in_module(frame, n) ? k->ns : 0;
	l->state[k->state] += k->ns;
	tfh_callee_add(&l->calls, callee < n ? &frame[callee] : NULL, k->ns);
	return 0;
}

int tfh_sampled_lines_add(struct tfh_sampled_lines *x, const struct tfh_sampled_steps *steps,
			  const struct tfh_start_sample *k, const struct tfh_model_line *frame,
			  uint32_t n, enum tfh_cause cause)
{
	bool whole = cause == TFH_CAUSE_HOST_COMPILE || cause == TFH_CAUSE_HOST_LAUNCH;
	uint32_t out =
		TFH_DETECT_MODEL_CALL && whole && steps->steps ? below_call(steps, frame, n) : 0;
	int rc = add_own(x, frame, n, k->ns, cause);

	return rc ? rc : add_lead(x, k, frame + out, n - out, cause);
}

static int by_time(const void *a, const void *b)
{
	const struct tfh_sampled_lead *x = a, *y = b;

	return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : 0;
}

static int largest(const double *v, int n)
{
	int most = 0;

	for (int i = 1; i < n; i++)
		most = v[i] > v[most] ? i : most;
	return most;
}

static struct tfh_sampled_line line_of(const struct tfh_sampled_lead *l, double all)
{
	const struct tfh_model_line *most = tfh_callee_most(&l->calls);
	bool calls = most && most->library;

	return (struct tfh_sampled_line){
		.file = l->line.file,
		.function = l->line.function,
		.line = l->line.line,
		.callee = calls ? most->function : NULL,
		.callee_file = calls ? most->file : "",
		.callee_line = calls ? most->line : 0,
		.share = l->ns / all,
		.samples = l->samples,
		.cause = (enum tfh_cause)largest(l->cause, TFH_CAUSE_COUNT),
		.state = largest(l->state, TFT_STATE_COUNT),
	};
}

/* Whether a loop of the function was seen. */
static bool loops_in(const struct tfh_start *s, const struct tfh_own_function *o)
{
	bool found = false;

	for (uint32_t i = 0; i < s->n_loop && !found; i++) {
		struct tfh_model_line frame[TFH_VERDICT_FRAMES];
		const struct tfh_start_loop *l = &s->loop[i];
		uint32_t n =
			tfh_start_frames(s, s->sample[l->sample].place, frame, TFH_VERDICT_FRAMES);
		found = l->depth && l->depth <= n &&
			tfh_same_function(&frame[n - l->depth], &o->line);
	}
	return found;
}

/* The innermost function of the program that has nearly all of the time: it has the loop, or calls
 * it, or is called by it. */
static void find_loop(const struct tfh_sampled_lines *x, const struct tfh_start *s, double all,
		      struct tfh_sampled *out)
{
	const struct tfh_own_function *best = NULL;

	for (size_t i = 0; i < x->own.n; i++) {
		const struct tfh_own_function *o = &x->own.v[i];
		if (o->ns >= TFH_VERDICT_LOOP_SHARE * all && (!best || o->depth > best->depth))
			best = o;
	}
	if (!best)
		return;
	out->file = best->line.file;
	out->function = best->line.function;
	out->first = best->first;
	out->last = loops_in(s, best) ? best->last : best->first;
}

void tfh_sampled_lines_list(struct tfh_sampled_lines *x, const struct tfh_start *s, double all,
			    struct tfh_sampled *out)
{
	if (x->lead.n)
		qsort(x->lead.v, x->lead.n, sizeof(*x->lead.v), by_time);
	for (size_t i = 0; i < x->lead.n && i < TFH_VERDICT_START_LINES; i++)
		out->line[out->n_line++] = line_of(&x->lead.v[i], all);
	find_loop(x, s, all, out);
}

/* The time that goes with a function of the program; 0: no more than the line's. One that takes
 * much longer goes as a whole, one that mostly does what the verdict is about loses that. */
static double function_ns(const struct tfh_own_function *o, double line_ns, enum tfh_cause cause,
			  double loop_ns)
{
	bool more = o->cause[cause] > (1 + TFH_BLOCKING_SHARE) * line_ns,
	     mostly = o->cause[cause] >= TFH_VERDICT_LOOP_SHARE * o->ns;

	mostly &= o->ns < (1 - TFH_BLOCKING_SHARE) * loop_ns; /* else it is the loop's body */
	/* All that a call of a model does op by op, in whatever it calls, is one call once it is
	 * jitted. */
	if (TFH_DETECT_MODEL_CALL && is_call(cause) && o->first == o->last)
		return o->ns > line_ns ? o->ns : 0;
	return o->ns >= TFH_VERDICT_FUNCTION_TIMES * line_ns ? o->ns
	       : more && mostly				     ? o->cause[cause]
							     : 0;
}

/* What the verdict's line is chosen by. */
struct line_choice {
	const struct tfh_sampled_lines *x;
	const struct tfh_sampled_steps *steps;
	enum tfh_cause cause;
	double loop_ns;
	bool beside; /* only lines beside PyTorch's modules count: they compute more than these */
	const struct tfh_sampled_lead *lead;
	const struct tfh_own_function *whole; /* chosen for all its lines together */
};

/* The function of a line, if it is a part of the steps: not their loop, nor all of what that
 * does. */
static const struct tfh_own_function *part_of(const struct line_choice *c,
					      const struct tfh_model_line *line)
{
	for (size_t i = 0; i < c->x->own.n && c->steps->steps; i++) {
		const struct tfh_own_function *o = &c->x->own.v[i];
		if (tfh_same_function(&o->line, line))
			return o->is_main || o->ns >= TFH_VERDICT_LOOP_SHARE * c->loop_ns ||
					       tfh_same_function(line, &c->steps->line)
				       ? NULL
				       : o;
	}
	return NULL;
}

static bool is_beside(const struct tfh_sampled_lead *l)
{
	return l->module_ns <= TFH_BLOCKING_SHARE * l->ns;
}

/* Whether most of what is computed is beside the modules, although these compute, too: the model
 * itself is needed, such work around it perhaps not. */
static bool computes_beside(const struct line_choice *c)
{
	double all = 0, beside = 0, modules = 0;

	for (size_t i = 0; i < c->x->lead.n; i++) {
		const struct tfh_sampled_lead *l = &c->x->lead.v[i];
		double ns = l->cause[TFH_CAUSE_COMPUTE_CPU];
		all += ns;
		modules += l->module_ns;
		beside += is_beside(l) && part_of(c, &l->line) ? ns : 0;
	}
	return TFH_DETECT_BESIDE_MODULES && c->cause == TFH_CAUSE_COMPUTE_CPU &&
	       modules >= TFH_BLOCKING_SHARE * all && beside > TFH_VERDICT_MOST_SHARE * all;
}

static bool counts(const struct line_choice *c, const struct tfh_sampled_lead *l, uint32_t listed)
{
	return (size_t)(l - c->x->lead.v) < listed && l->samples >= TFH_VERDICT_LINE_SAMPLES &&
	       l->cause[c->cause] > 0 && (!c->beside || (is_beside(l) && part_of(c, &l->line)));
}

/* Time of the cause at a line, or at all lines of a function that is a part of the steps. A list
 * comprehension or a lambda is a part of a line, and several of them have one name. */
static double cause_ns(const struct line_choice *c, const struct tfh_sampled_lead *of)
{
	double ns = 0;

	if (!part_of(c, &of->line) || tfh_ends_with(of->line.function, ">"))
		return of->cause[c->cause];
	for (size_t i = 0; i < c->x->lead.n; i++)
		if (tfh_same_function(&c->x->lead.v[i].line, &of->line))
			ns += c->x->lead.v[i].cause[c->cause];
	return ns;
}

/* The line with most of the cause, and the function's with most: if that is another one, its
 * largest line, with the whole function. Lines are in order of their time. */
static void choose(struct line_choice *c, uint32_t listed)
{
	const struct tfh_sampled_lead *line = NULL, *inside = NULL;

	for (size_t i = 0; i < c->x->lead.n && i < listed; i++) {
		const struct tfh_sampled_lead *l = &c->x->lead.v[i];
		if (!counts(c, l, listed))
			continue;
		if (!line || l->cause[c->cause] > line->cause[c->cause])
			line = l;
		if (!inside || cause_ns(c, l) > cause_ns(c, inside))
			inside = l;
	}
	c->lead = inside;
	c->whole = inside != line ? part_of(c, &inside->line) : NULL;
}

/* Two functions that one function calls beside the modules belong together (one puts weights in,
 * the other takes them out): the place becomes the part of the file that contains both. */
static void add_siblings(const struct line_choice *c, struct tfh_sampled_place *place)
{
	const struct tfh_own_function *of = part_of(c, &c->lead->line);

	for (size_t i = 0; i < c->x->own.n && of; i++) {
		const struct tfh_own_function *o = &c->x->own.v[i];
		uint32_t first = o->first < place->first ? o->first : place->first,
			 last = o->last > place->last ? o->last : place->last;
		bool other = false;
		for (size_t k = 0; k < c->x->own.n; k++) {
			const struct tfh_own_function *between = &c->x->own.v[k];
			other |= between != o && between != of && between->first <= last &&
				 between->last >= first &&
				 !strcmp(between->line.file, of->line.file);
		}
		if (o == of || other || strcmp(o->line.file, of->line.file) != 0 ||
		    !tfh_same_function(&o->caller, &of->caller) || !part_of(c, &o->line) ||
		    o->module_ns > TFH_BLOCKING_SHARE * o->ns ||
		    o->cause[c->cause] < TFH_VERDICT_MOST_SHARE * of->cause[c->cause])
			continue;
		place->ns += o->ns;
		place->first = first;
		place->last = last;
		place->whole = false;
	}
}

/* What to remove: the line, or its function. */
static struct tfh_sampled_place place_of(const struct line_choice *c)
{
	const struct tfh_sampled_lead *lead = c->lead;
	struct tfh_sampled_place place = {.line = lead->line,
					  .line_ns = lead->ns,
					  .ns = lead->ns,
					  .first = lead->line.line,
					  .last = lead->line.line};

	/* What is compiled once is still executed each time. */
	if (c->cause == TFH_CAUSE_HOST_COMPILE)
		place.ns = lead->cause[TFH_CAUSE_HOST_COMPILE];
	/* What JAX computes meanwhile on threads of its own remains to be waited for. */
	if (c->cause == TFH_CAUSE_HOST_LAUNCH)
		place.ns -= lead->cause[TFH_CAUSE_COMPUTE_CPU];
	for (size_t i = 0; i < c->x->own.n && c->steps->steps; i++) {
		const struct tfh_own_function *o = &c->x->own.v[i];
		double ns = o == c->whole ? o->ns : function_ns(o, lead->ns, c->cause, c->loop_ns);
		/* The loop, all of its body, or what calls it, is no part of a step. */
		bool all = tfh_same_function(&o->line, &c->steps->line) ||
			   (o->ns >= (1 - TFH_BLOCKING_SHARE) * c->loop_ns && !is_call(c->cause));
		if (!tfh_same_function(&o->line, &lead->line) || all || !(ns > 0))
			continue;
		place.ns = ns;
		place.first = o->first;
		place.last = o->last;
		place.whole = true;
	}
	if (c->beside)
		add_siblings(c, &place);
	return place;
}

/* Whether a line that computes does so in a library, for a step that has to compute other things:
 * it may be done less often, or be left out. */
static bool is_aside(const struct tfh_sampled_lead *lead, const struct tfh_result *r)
{
	const struct tfh_model_line *calls = tfh_callee_most(&lead->calls);
	double all = r->found.sampled.cause[TFH_CAUSE_COMPUTE_CPU],
	       here = lead->cause[TFH_CAUSE_COMPUTE_CPU];

	return TFH_DETECT_ASIDE && calls && r->verdict.cause == TFH_CAUSE_COMPUTE_CPU &&
	       all - here >= TFH_VERDICT_ASIDE_REST * all && tfh_may_leave_out(calls);
}

struct tfh_sampled_place tfh_sampled_place(const struct tfh_sampled_lines *x,
					   const struct tfh_sampled_steps *steps, double loop_ns,
					   struct tfh_result *r)
{
	struct line_choice c = {
		.x = x, .steps = steps, .cause = r->verdict.cause, .loop_ns = loop_ns};
	struct tfh_seen_line *out = &r->found.line;
	const struct tfh_sampled_line *best;

	if (c.cause == TFH_CAUSE_NONE)
		return (struct tfh_sampled_place){.ns = 0};
	c.beside = computes_beside(&c);
	choose(&c, r->found.sampled.n_line);
	if (!c.lead)
		return (struct tfh_sampled_place){.ns = 0};
	best = &r->found.sampled.line[c.lead - x->lead.v];
	*out = (struct tfh_seen_line){.file = best->file,
				      .function = best->function,
				      .line = best->line,
				      .callee = best->callee,
				      .callee_file = best->callee ? best->callee_file : NULL,
				      .callee_line = best->callee_line,
				      .s_per_step = NAN,
				      .off_s = NAN,
				      .of_s = NAN,
				      .samples = best->samples};
	struct tfh_sampled_place place = place_of(&c);
	place.aside = c.beside || (best->callee && is_aside(c.lead, r));
	return place;
}

struct tfh_sampled_place tfh_sampled_next(const struct tfh_sampled_lines *x,
					  const struct tfh_sampled_steps *steps, double loop_ns,
					  const struct tfh_result *r)
{
	struct line_choice c = {
		.x = x, .steps = steps, .cause = r->verdict.cause, .loop_ns = loop_ns};
	const struct tfh_seen_line *first = &r->found.line;
	const struct tfh_model_line told = {first->file, first->function, first->line, false};
	double all = 0, most = 0;

	for (size_t i = 0; i < x->lead.n && first->file && steps->steps; i++) {
		const struct tfh_sampled_lead *l = &x->lead.v[i];
		all += l->cause[c.cause];
		if (!counts(&c, l, r->found.sampled.n_line) || tfh_same_function(&l->line, &told) ||
		    cause_ns(&c, l) <= most)
			continue;
		most = cause_ns(&c, l);
		c.lead = l;
	}
	if (!c.lead || most < TFH_REPORT_NAMED_SHARE * all)
		return (struct tfh_sampled_place){.ns = 0};
	c.whole = most > c.lead->cause[c.cause] ? part_of(&c, &c.lead->line) : NULL;
	return place_of(&c);
}
