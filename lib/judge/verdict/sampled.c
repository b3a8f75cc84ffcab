/*
 * A run in which no call was recorded, by samples of its main thread from outside. Its steps are
 * the iterations of a loop of Python, if one is seen (sampled_steps.c). The thread's time divides
 * by what it did, with the same tables as the pauses between recorded calls. While it runs, Python's lock shows more: code that runs without it is native code
 * that computes (NumPy, BLAS, XLA, PyTorch); code that holds it is Python, or native code that is as
 * good as Python to all other threads. What other threads or processes did meanwhile is in
 * sampled_others.c. Start and end are left out, since a longer run has no more of them: imports,
 * what is before and after the loop over steps, compiling that is over in its first iterations (or
 * in the first half of the time), and the interpreter's end, when no frames are left.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "judge/account/account.h"
#include "judge/result_make.h"
#include "judge/verdict/line_tree.h"
#include "judge/verdict/sampled.h"
#include "judge/verdict/sampled_loops.h"

struct sampled_lead {
	struct tfh_model_line line;
	struct tfh_callee_votes votes;
	double ns, cause[TFH_CAUSE_COUNT], state[TFT_STATE_COUNT];
	uint64_t samples;
};

/* A function of the program, with all that it calls. */
struct own_function {
	struct tfh_model_line line;
	uint32_t first, last, depth;
	double ns, cause[TFH_CAUSE_COUNT];
};

struct sampled_run {
	const struct tfh_start *start;
	struct tfh_sampled *out;
	struct tfh_making_seen making;
	TFH_VEC(struct sampled_lead) lead;
	TFH_VEC(struct own_function) own;
	struct tfh_line_tree tree;
	double ns, start_ns, placed; /* placed: samples with a line */
	double loop_ns;		     /* of the loop over steps, without start_ns */
	int64_t end;		     /* of the last one */
	bool compiles_on;	     /* in the second half, too */
	bool fed;		     /* by a queue that another thread fills */
	bool starved;		     /* that thread is the bottleneck: it has hardly a pause */
	struct tfh_libraries libraries;
	struct tfh_sampled_steps steps;
	bool only_loop; /* what is outside of the loop over steps is start and end */
};

/* Time of a process's main thread at its lines, unless it only waits for a process that it has
 * started, as a launcher does. *square: the square of its standard error. */
static double own_time(const struct tfh_start *s, double *square)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	double ns = 0;

	*square = 0;
	for (uint32_t k = 0; k < s->n; k++) {
		uint32_t n = tfh_start_frames(s, s->sample[k].place, frame, TFH_VERDICT_FRAMES);
		if (!n || tfh_sampled_launches(s->sample[k].state, frame, n))
			continue;
		ns += s->sample[k].ns;
		*square += s->sample[k].ns * s->sample[k].ns;
	}
	return ns;
}

uint32_t tfh_sampled_process(const struct tfh_feed *feed)
{
	uint32_t best = UINT32_MAX;
	double most = 0, square = 0, of;

	/* Of two that may have taken equally long, the first one started the other. */
	for (uint32_t i = 0; feed->start && i < feed->n_processes; i++) {
		double ns = own_time(feed->start(feed->arg, i), &of);
		if (ns > most * (1 + TFH_BLOCKING_SHARE) && ns - most > 2 * sqrt(of + square)) {
			most = ns;
			square = of;
			best = i;
		}
	}
	return best;
}

/* Whether a thread that waits for another one waits for JAX, which computes on threads of its own:
 * in a function of JAX, or in a jitted one, which is in C and called by the program itself. */
static bool awaits_jax(const struct sampled_run *x, const struct tfh_start_sample *k,
		       const struct tfh_model_line *frame, uint32_t n)
{
	if (k->state != TFT_STATE_LOCK || !n)
		return false;
	return frame[0].library ? tfh_is_jax(&frame[0]) : x->out->jax;
}

static enum tfh_cause seen_cause(const struct sampled_run *x, const struct tfh_start_sample *k,
				 const struct tfh_model_line *frame, uint32_t n)
{
	enum tfh_role role = tfh_sampled_role(k, frame, n);
	bool runs = k->state == TFT_STATE_RUNNING;

	/* What waits now for a queue, now for the GIL, waits for the thread that fills the queue. */
	if (k->state == TFT_STATE_GIL)
		return x->fed ? x->making.cause : TFH_CAUSE_HOST_GIL;
	if (runs && tfh_role_waits(role))
		role = TFH_ROLE_NONE;
	if (role == TFH_ROLE_QUEUE && !x->making.busy)
		return TFH_CAUSE_HOST_LOCK; /* nothing that would fill it was seen at work */
	if (role == TFH_ROLE_QUEUE)
		return x->making.cause;
	if (role != TFH_ROLE_NONE)
		return tfh_role_cause(role);
	if (runs && k->gil == TFT_GIL_RELEASED)
		return tfh_prepares_arrays(&x->libraries, frame, n) ? TFH_CAUSE_HOST_PYTHON
								    : TFH_CAUSE_COMPUTE_CPU;
	if (runs && !n)
		return TFH_CAUSE_HOST_UNKNOWN;
	if (awaits_jax(x, k, frame, n))
		return TFH_CAUSE_COMPUTE_CPU;
	return tfh_plain_cause(k->state);
}

static enum tfh_cause cause_of(const struct sampled_run *x, const struct tfh_start_sample *k,
			       const struct tfh_model_line *frame, uint32_t n)
{
	enum tfh_cause cause = seen_cause(x, k, frame, n);
	bool waits = cause == TFH_CAUSE_COMPUTE_CPU && k->state != TFT_STATE_RUNNING;

	/* Results that came sooner would only be followed by a longer wait at the queue. */
	return waits && x->starved ? x->making.cause : cause;
}

static int add_own(struct sampled_run *x, const struct tfh_model_line *frame, uint32_t n, double ns,
		   enum tfh_cause cause)
{
	for (uint32_t i = n; i-- > 0;) {
		struct own_function *o = NULL;
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
		if (!o && TFH_PUSH(x->own, ((struct own_function){.line = frame[i],
								  .first = frame[i].line,
								  .last = frame[i].line})))
			return -ENOMEM;
		o = o ? o : &x->own.v[x->own.n - 1];
		o->ns += ns;
		o->cause[cause] += ns;
		o->depth = n - i > o->depth ? n - i : o->depth;
		o->first = !o->first || (frame[i].line && frame[i].line < o->first) ? frame[i].line
										    : o->first;
		o->last = frame[i].line > o->last ? frame[i].line : o->last;
	}
	return 0;
}

static int add_lead(struct sampled_run *x, const struct tfh_start_sample *k,
		    const struct tfh_model_line *frame, uint32_t n, enum tfh_cause cause)
{
	uint32_t callee, at = tfh_role_lead(frame, n, TFH_ROLE_NONE, &callee);
	struct sampled_lead *l = NULL;

	for (size_t i = 0; i < x->lead.n && !l; i++)
		if (tfh_same_line(&x->lead.v[i].line, &frame[at]))
			l = &x->lead.v[i];
	if (!l && x->lead.n == TFH_VERDICT_LINES)
		return 0;
	if (!l && TFH_PUSH(x->lead, ((struct sampled_lead){.line = frame[at]})))
		return -ENOMEM;
	l = l ? l : &x->lead.v[x->lead.n - 1];
	l->ns += k->ns;
	l->samples++;
	l->cause[cause] += k->ns;
	l->state[k->state] += k->ns;
	tfh_callee_vote(&l->votes, callee < n ? &frame[callee] : NULL, k->ns);
	return 0;
}

/* Whether a sample is late enough for compiling to be more than a part of the start. */
static bool is_later(const struct sampled_run *x, uint32_t sample)
{
	const struct tfh_start *s = x->start;

	if (x->steps.steps > TFH_VERDICT_SAMPLED_FIRST)
		return x->steps.step[sample] > TFH_VERDICT_SAMPLED_FIRST;
	return s->sample[sample].t > s->sample[0].t / 2 + s->sample[s->n - 1].t / 2;
}

/* What decides how single samples count: whether it goes on compiling, and whether it waits at a
 * queue. */
static void look_ahead(struct sampled_run *x, const struct tfh_seen_workers *workers)
{
	const struct tfh_start *s = x->start;
	double later = 0, compiles = 0, all = 0, queue = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		struct tfh_model_line frame[TFH_VERDICT_FRAMES];
		const struct tfh_start_sample *k = &s->sample[i];
		uint32_t n = tfh_start_frames(s, k->place, frame, TFH_VERDICT_FRAMES);
		enum tfh_role role = tfh_sampled_role(k, frame, n);
		bool is_late = is_later(x, i);
		x->end = n ? k->t : x->end;
		all += k->ns;
		later += is_late ? k->ns : 0;
		compiles += is_late && tfh_role_compiles(role) ? k->ns : 0;
		queue += role == TFH_ROLE_QUEUE && k->state != TFT_STATE_RUNNING ? k->ns : 0;
	}
	x->compiles_on = compiles >= TFH_BLOCKING_SHARE * later;
	x->fed = x->making.busy && workers->threads && queue >= TFH_BLOCKING_SHARE * all;
	x->starved = x->fed && workers->threads == 1 && workers->busy >= TFH_VERDICT_WORKERS_BUSY;
}

/* What samples count when loops are compared: nothing for imports; nor for compiling, which is in
 * loops of its own, as long as there is enough else. Returns the sum. */
static double weigh(const struct sampled_run *x, bool compiling, struct tfh_loop_weight *w,
		    uint32_t *samples)
{
	const struct tfh_start *s = x->start;
	double all = 0;

	*samples = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		struct tfh_model_line frame[TFH_VERDICT_FRAMES];
		const struct tfh_start_sample *k = &s->sample[i];
		uint32_t n = tfh_start_frames(s, k->place, frame, TFH_VERDICT_FRAMES);
		bool counts = n && !tfh_sampled_imports(frame, n) &&
			      (compiling || !tfh_role_compiles(tfh_sampled_role(k, frame, n)));
		w[i] = (struct tfh_loop_weight){.ns = counts ? k->ns : 0,
						.waits = k->state != TFT_STATE_RUNNING &&
							 cause_of(x, k, frame, n) ==
								 TFH_CAUSE_COMPUTE_CPU};
		all += w[i].ns;
		*samples += counts;
	}
	return all;
}

/* Finds the loop over steps. What is outside of it is start and end, unless that is most of the
 * time. */
static int find_steps(struct sampled_run *x, double end_ns)
{
	const struct tfh_start *s = x->start;
	struct tfh_loop_weight *w = calloc(s->n ? s->n : 1, sizeof(*w));
	double all = 0, inside = 0;
	uint32_t samples;
	int rc = w ? 0 : -ENOMEM;

	if (!rc) {
		all = weigh(x, false, w, &samples);
		if (samples < TFH_FACTS_SAMPLE_LEAST)
			all = weigh(x, true, w, &samples);
		rc = tfh_sampled_steps(s, w, end_ns, &x->steps);
	}
	for (uint32_t i = x->steps.first; x->steps.steps && i <= x->steps.last; i++)
		inside += w[i].ns;
	x->only_loop = inside >= TFH_VERDICT_MOST_SHARE * all;
	free(w);
	return rc;
}

/* Whether a sample is from before or after what the verdict is about. */
static bool is_outside(const struct sampled_run *x, uint32_t sample,
		       const struct tfh_model_line *frame, uint32_t n)
{
	if (tfh_sampled_imports(frame, n) ||
	    (!n && (!x->placed || x->start->sample[sample].t > x->end)))
		return true;
	return x->steps.steps && x->only_loop &&
	       (sample < x->steps.first || sample > x->steps.last);
}

static int add_sample(struct sampled_run *x, uint32_t sample)
{
	const struct tfh_start_sample *k = &x->start->sample[sample];
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	uint32_t n = tfh_start_frames(x->start, k->place, frame, TFH_VERDICT_FRAMES);
	enum tfh_cause cause;
	int rc;

	x->out->samples++;
	x->ns += k->ns;
	if (is_outside(x, sample, frame, n)) {
		x->start_ns += k->ns;
		return 0;
	}
	cause = cause_of(x, k, frame, n);
	if (cause == TFH_CAUSE_HOST_COMPILE && !x->compiles_on) {
		x->start_ns += k->ns;
		x->out->compiles_first = true;
		return 0;
	}
	x->loop_ns += x->steps.steps && x->steps.step[sample] ? k->ns : 0;
	x->out->state[k->state] += k->ns;
	x->out->cause[cause] += k->ns;
	x->out->released += k->state == TFT_STATE_RUNNING && k->gil == TFT_GIL_RELEASED ? k->ns : 0;
	if (!n)
		return 0;
	x->placed++;
	tfh_tree_add(&x->tree, frame, n, k->ns);
	rc = add_own(x, frame, n, k->ns, cause);
	return rc ? rc : add_lead(x, k, frame, n, cause);
}

static int by_time(const void *a, const void *b)
{
	const struct sampled_lead *x = a, *y = b;

	return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : 0;
}

static int largest(const double *v, int n)
{
	int most = 0;

	for (int i = 1; i < n; i++)
		most = v[i] > v[most] ? i : most;
	return most;
}

static struct tfh_sampled_line line_of(const struct sampled_lead *l, double all)
{
	bool calls = l->votes.callee.library;

	return (struct tfh_sampled_line){
		.file = l->line.file,
		.function = l->line.function,
		.line = l->line.line,
		.callee = calls ? l->votes.callee.function : NULL,
		.callee_file = calls ? l->votes.callee.file : "",
		.callee_line = calls ? l->votes.callee.line : 0,
		.share = l->ns / all,
		.samples = l->samples,
		.cause = (enum tfh_cause)largest(l->cause, TFH_CAUSE_COUNT),
		.state = largest(l->state, TFT_STATE_COUNT),
	};
}

/* The innermost function of the program that has nearly all of the time: it has the loop, or calls
 * it. */
static void find_loop(const struct sampled_run *x, double all)
{
	const struct own_function *best = NULL;

	for (size_t i = 0; i < x->own.n; i++) {
		const struct own_function *o = &x->own.v[i];
		if (o->ns >= TFH_VERDICT_LOOP_SHARE * all && (!best || o->depth > best->depth))
			best = o;
	}
	if (!best)
		return;
	x->out->file = best->line.file;
	x->out->function = best->line.function;
	x->out->first = best->first;
	x->out->last = best->last;
}

/* The time that goes with a function of the program; 0: no more than the line's. One that takes much longer
 * goes as a whole, one that mostly does what the verdict is about loses that. */
static double function_ns(const struct own_function *o, double line_ns, enum tfh_cause cause,
			  double loop_ns)
{
	bool more = o->cause[cause] > (1 + TFH_BLOCKING_SHARE) * line_ns,
	     mostly = o->cause[cause] >= TFH_VERDICT_LOOP_SHARE * o->ns;

	mostly &= o->ns < (1 - TFH_BLOCKING_SHARE) * loop_ns; /* else it is the loop's body */
	return o->ns >= TFH_VERDICT_FUNCTION_TIMES * line_ns ? o->ns
	       : more && mostly				     ? o->cause[cause]
							     : 0;
}

/* What to remove: the line, or its function. */
static struct tfh_sampled_place place_of(const struct sampled_run *x,
					 const struct sampled_lead *lead, enum tfh_cause cause)
{
	struct tfh_sampled_place place = {.line_ns = lead->ns,
					  .ns = lead->ns,
					  .first = lead->line.line,
					  .last = lead->line.line};

	for (size_t i = 0; i < x->own.n && x->steps.steps; i++) {
		const struct own_function *o = &x->own.v[i];
		double ns = function_ns(o, lead->ns, cause, x->loop_ns);
		if (!tfh_same_function(&o->line, &lead->line) ||
		    tfh_same_function(&o->line, &x->steps.line) || !(ns > 0))
			continue;
		place.ns = ns;
		place.first = o->first;
		place.last = o->last;
		place.whole = true;
	}
	return place;
}

/* The main thread's own line only waits, at a queue or for Python's lock, if one other thread works for
 * most of that time: that thread's line is the one to change. */
static bool names_maker(const struct sampled_run *x, struct tfh_result *r)
{
	const struct tfh_seen_workers *k = &r->found.workers;

	if (!x->fed || k->threads != 1 || k->busy < TFH_VERDICT_MOST_SHARE || !k->line.file ||
	    r->verdict.cause != x->making.cause)
		return false;
	r->found.line = (struct tfh_seen_line){
		.file = k->line.file,
		.function = k->line.function,
		.line = k->line.line,
		.s_per_step = NAN,
		.off_s = NAN,
		.of_s = NAN,
		.samples = (uint64_t)(k->line.share * k->busy * (double)k->samples)};
	return true;
}

/* The line with most of the verdict's cause, and what to remove. */
static struct tfh_sampled_place find_place(const struct sampled_run *x, struct tfh_result *r)
{
	const struct tfh_sampled_line *best;
	const struct sampled_lead *lead = NULL;
	struct tfh_seen_line *out = &r->found.line;

	for (size_t i = 0; i < x->lead.n && r->verdict.cause != TFH_CAUSE_NONE; i++) {
		const struct sampled_lead *l = &x->lead.v[i];
		if (i >= x->out->n_line || l->samples < TFH_VERDICT_LINE_SAMPLES ||
		    l->cause[r->verdict.cause] <= (lead ? lead->cause[r->verdict.cause] : 0))
			continue;
		lead = l;
	}
	if (!lead || names_maker(x, r))
		return (struct tfh_sampled_place){.ns = 0};
	best = &x->out->line[lead - x->lead.v];
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
	return place_of(x, lead, r->verdict.cause);
}

/* Unlike in steps with a device, nothing waits while the thread computes, so the class with most of
 * the time decides. Few samples must show clearly that it has most. */
static enum tfh_class class_of(const double part[TFH_PART_COUNT],
			       const double of_class[TFH_CLASS_COUNT], double all, double n)
{
	int most = TFH_CLASS_COMPUTE_BOUND;
	double next = 0;

	if (all <= 0 || n < TFH_FACTS_SAMPLE_LEAST ||
	    part[TFH_PART_UNATTRIBUTED] > TFH_UNATTRIBUTED_SHARE * all)
		return TFH_CLASS_UNCLASSIFIED;
	for (int c = 0; c < TFH_CLASS_COUNT; c++)
		if (tfh_class_blocks(c) && of_class[c] > of_class[most])
			most = c;
	for (int c = 0; c < TFH_CLASS_COUNT; c++)
		if ((tfh_class_blocks(c) || c == TFH_CLASS_COMPUTE_BOUND) && c != most)
			next = fmax(next, of_class[c]);
	if (n < TFH_VERDICT_SAMPLED_LEAST &&
	    of_class[most] - next < all * tfh_lead_error(of_class[most] / all, next / all, n))
		return TFH_CLASS_UNCLASSIFIED;
	return (enum tfh_class)most;
}

/* Sums up the time by part of a step, too. */
static void decide(const struct sampled_run *x, struct tfh_result *r, double part[TFH_PART_COUNT])
{
	struct tfh_verdict *v = &r->verdict;
	int64_t cause[TFH_CAUSE_COUNT];
	double of_class[TFH_CLASS_COUNT], all = 0;

	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		bool known = c != TFH_CAUSE_HOST_UNKNOWN;
		cause[c] = known ? (int64_t)x->out->cause[c] : 0;
		part[known ? tfh_cause_part(c) : TFH_PART_UNATTRIBUTED] += x->out->cause[c];
		all += x->out->cause[c];
	}
	*v = (struct tfh_verdict){.cls = TFH_CLASS_UNCLASSIFIED,
				  .cause = TFH_CAUSE_NONE,
				  .share = NAN,
				  .confidence = TFH_CONFIDENCE_LOW,
				  .tier = 'C'};
	tfh_blocking_of(part, of_class);
	v->cls = class_of(part, of_class, all, x->placed);
	v->cause = tfh_largest_cause(cause, v->cls);
	if (v->cause != TFH_CAUSE_NONE) {
		v->share = of_class[v->cls] / all;
		if (v->share >= TFH_VERDICT_MOST_SHARE)
			v->confidence = TFH_CONFIDENCE_MEDIUM;
	}
	r->steady = *v;
}

/* Turns sums into seconds and shares. */
static int finish(struct sampled_run *x, const struct tfh_feed *feed, struct tfh_result *r)
{
	struct tfh_sampled *out = x->out;
	double all = x->ns - x->start_ns, part[TFH_PART_COUNT] = {0};
	struct tfh_sampled_place place;
	int64_t born = feed->processes[r->process].born_ns;

	out->wall_s = (double)(x->start->sample[x->start->n - 1].t - born) / 1e9;
	out->start_s = x->ns > 0 ? out->wall_s * x->start_ns / x->ns : 0;
	decide(x, r, part);
	if (x->lead.n)
		qsort(x->lead.v, x->lead.n, sizeof(*x->lead.v), by_time);
	for (size_t i = 0; i < x->lead.n && i < TFH_VERDICT_START_LINES; i++)
		out->line[out->n_line++] = line_of(&x->lead.v[i], all);
	find_loop(x, all);
	place = find_place(x, r);
	if (x->steps.steps)
		tfh_sampled_gains(&x->steps, part, &place, x->loop_ns, x->placed, r);
	for (int i = 0; i < TFT_STATE_COUNT && all > 0; i++)
		out->state[i] /= all;
	for (int c = 0; c < TFH_CAUSE_COUNT && all > 0; c++)
		out->cause[c] /= all;
	out->released /= all > 0 ? all : 1;
	if (!x->tree.node.n)
		return 0;
	r->found.node = tfh_result_alloc(r, x->tree.node.n, sizeof(*r->found.node));
	if (!r->found.node)
		return -ENOMEM;
	tfh_tree_copy(&x->tree, x->ns / 1e9 / out->wall_s, r->found.node);
	r->found.n_node = (uint32_t)x->tree.node.n;
	return 0;
}

/* When the process ended, run time: it may have gone on after its last sample. */
static double end_of(const struct sampled_run *x, const struct tfh_feed *feed,
		     const struct tfh_result *r)
{
	double run = (double)feed->processes[r->process].born_ns +
		     (r->n_tree ? r->tree[0].wall_s * 1e9 : 0);

	return x->start->n ? fmax(run, (double)x->start->sample[x->start->n - 1].t) : run;
}

/* Goes on with the time of those that do the work. Steps are still those of the main thread's loop:
 * others' samples are of several threads. */
static int be_pool(struct sampled_run *x, struct tfh_start *pool)
{
	const struct tfh_start *main_thread = x->start;

	*pool = *main_thread;
	pool->sample = x->making.work;
	pool->n = x->making.n_work;
	pool->n_loop = pool->n_other = 0;
	x->start = pool;
	x->making.busy = false;
	return tfh_sampled_carry(main_thread, pool, &x->steps);
}

int tfh_find_sampled(const struct tfh_feed *feed, struct tfh_result *r)
{
	struct tfh_start pool;
	struct sampled_run x = {.start = feed->start(feed->arg, r->process),
				.out = &r->found.sampled};
	int rc = tfh_sampled_others(feed, r, &x.making);

	x.out->pid = feed->processes[r->process].pid;
	x.out->why = x.start->why;
	x.out->function = "";
	r->found.pid = x.out->pid;
	r->n_tree = r->n_tree ? 1 : 0; /* the run, in which no part is known */
	rc = rc ? rc : tfh_find_libraries(x.start, &x.libraries);
	x.out->jax = x.libraries.jax;
	rc = rc ? rc : find_steps(&x, end_of(&x, feed, r));
	if (!rc && x.steps.steps && r->n_tree)
		rc = tfh_sampled_tree(x.start, &x.steps, feed->processes[r->process].born_ns, r);
	rc = rc ? rc : tfh_sampled_pool(x.start, &x.making, &x.out->pool);
	if (!rc && x.out->pool.file)
		rc = be_pool(&x, &pool);
	if (!rc)
		look_ahead(&x, &r->found.workers);
	for (uint32_t i = 0; i < x.start->n && !rc; i++)
		rc = add_sample(&x, i);
	if (!rc)
		rc = finish(&x, feed, r);
	free(x.making.work);
	free(x.steps.step);
	free(x.libraries.use.v);
	free(x.lead.v);
	free(x.own.v);
	free(x.tree.node.v);
	return rc;
}
