/*
 * A run in which no call was recorded, by samples of its main thread from outside. Its steps are
 * the iterations of a loop of Python, if one is seen (sampled_steps.c). The thread's time divides
 * by what it did, with the same tables as the pauses between recorded calls. While it runs,
 * Python's lock shows more: code that runs without it is native code that computes (NumPy, BLAS,
 * XLA, PyTorch); code that holds it is Python, or native code that is as good as Python to all
 * other threads. What other threads or processes did meanwhile is in sampled_others.c. Start and
 * end are left out, since a longer run has no more of them: imports, what is before and after the
 * loop over steps, compiling in its first iterations (or in the first half of the time) and in few
 * of the others, and the interpreter's end, when no frames are left.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/account/account.h"
#include "judge/result_make.h"
#include "judge/verdict/classify.h"
#include "judge/verdict/line_tree.h"
#include "judge/verdict/new_pools.h"
#include "judge/verdict/sampled_lines.h"

struct sampled_run {
	const struct tfh_start *start;
	struct tfh_sampled *out;
	struct tfh_sampled_causes causes;
	struct tfh_sampled_lines lines;
	struct tfh_line_tree tree;
	struct tfh_new_pools pools;
	double ns, start_ns, placed;   /* placed: samples with a line */
	double loop_ns;		       /* of the loop over steps, without start_ns */
	double traced_ns, compiled_ns; /* compiling later in the run: tracing JAX, the rest */
	int64_t end;		       /* time of the last sample with frames */
	bool compiles_on;	       /* in the second half, too */
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

/* Whether a sample is late enough for compiling to be more than a part of the start. */
static bool is_later(const struct sampled_run *x, uint32_t sample)
{
	const struct tfh_start *s = x->start;

	if (x->steps.steps > TFH_VERDICT_SAMPLED_FIRST)
		return x->steps.step[sample] > TFH_VERDICT_SAMPLED_FIRST;
	return s->sample[sample].t > s->sample[0].t / 2 + s->sample[s->n - 1].t / 2;
}

/* Compiling of the later iterations, which follow each other. */
struct later_compiling {
	uint32_t step; /* of the last sample */
	double in_step, ns, squares;
};

static void add_compiling(struct later_compiling *c, uint32_t step, double ns)
{
	double before = step == c->step ? c->in_step : 0;

	c->step = step;
	c->in_step = before + ns;
	c->squares += c->in_step * c->in_step - before * before;
	c->ns += ns;
}

/* Whether a program compiles in many of its later iterations. What a few of them compile (the first
 * evaluation, a last batch that is smaller), the others use. Iterations count by their time. */
static bool compiles_often(const struct sampled_run *x, const struct later_compiling *c)
{
	double steps = (double)x->steps.steps - TFH_VERDICT_SAMPLED_FIRST;

	return steps <= 0 || c->ns * c->ns > fmin(TFH_VERDICT_LINE_SAMPLES, steps / 2) * c->squares;
}

/* What decides how single samples count: whether it goes on compiling, and whether it waits at a
 * queue. */
static void look_ahead(struct sampled_run *x, const struct tfh_seen_workers *workers)
{
	const struct tfh_start *s = x->start;
	struct later_compiling compiles = {0};
	double later = 0, all = 0, queue = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		struct tfh_model_line frame[TFH_VERDICT_FRAMES];
		const struct tfh_start_sample *k = &s->sample[i];
		uint32_t n = tfh_start_frames(s, k->place, frame, TFH_VERDICT_FRAMES);
		enum tfh_role role = tfh_sampled_role(k, frame, n);
		bool is_late = is_later(x, i);
		x->end = n ? k->t : x->end;
		all += k->ns;
		later += is_late ? k->ns : 0;
		if (is_late && tfh_role_compiles(role))
			add_compiling(&compiles, x->steps.step ? x->steps.step[i] : 0, k->ns);
		queue += role == TFH_ROLE_QUEUE && k->state != TFT_STATE_RUNNING ? k->ns : 0;
	}
	x->compiles_on = compiles.ns >= TFH_BLOCKING_SHARE * later && compiles_often(x, &compiles);
	x->causes.fed =
		x->causes.making.busy && workers->threads && queue >= TFH_BLOCKING_SHARE * all;
	x->causes.starved =
		x->causes.fed && workers->threads == 1 && workers->busy >= TFH_VERDICT_WORKERS_BUSY;
}

/* What samples count when loops are compared: nothing for imports; nor for compiling, which is in
 * loops of its own, unless there is not enough else to find the one over steps. Returns the sum. */
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
		w[i] = (struct tfh_loop_weight){
			.ns = counts ? k->ns : 0,
			.waits = k->state != TFT_STATE_RUNNING &&
				 tfh_sampled_cause(&x->causes, k, frame, n) ==
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

	for (int compiling = 0; compiling < 2 && !rc && !x->steps.steps; compiling++) {
		all = weigh(x, compiling, w, &samples);
		if (compiling || samples >= TFH_FACTS_SAMPLE_LEAST)
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

	x->out->samples++;
	x->ns += k->ns;
	if (is_outside(x, sample, frame, n)) {
		x->start_ns += k->ns;
		return 0;
	}
	cause = tfh_sampled_cause(&x->causes, k, frame, n);
	if (cause == TFH_CAUSE_HOST_COMPILE && !x->compiles_on) {
		x->start_ns += k->ns;
		x->out->compiles_first = true;
		return 0;
	}
	x->loop_ns += x->steps.steps && x->steps.step[sample] ? k->ns : 0;
	x->out->state[k->state] += k->ns;
	x->out->cause[cause] += k->ns;
	if (cause == TFH_CAUSE_HOST_COMPILE && is_later(x, sample))
		*(tfh_sampled_traces(frame, n) ? &x->traced_ns : &x->compiled_ns) += k->ns;
	x->out->released += k->state == TFT_STATE_RUNNING && k->gil == TFT_GIL_RELEASED ? k->ns : 0;
	if (!n)
		return 0;
	x->placed++;
	tfh_tree_add(&x->tree, frame, n, k->ns);
	if (x->steps.steps && x->steps.step[sample] && !x->out->pool.file &&
	    tfh_new_pools_add(&x->pools, frame, n, k->ns, x->steps.step[sample]))
		return -ENOMEM;
	return tfh_sampled_lines_add(&x->lines, &x->steps, k, frame, n, cause);
}

/* The main thread's own line only waits, at a queue or for Python's lock, if one other thread works
 * for most of that time, or for functions that a library calls in threads of its own: their line is
 * the one to change. */
static bool names_maker(const struct sampled_run *x, struct tfh_result *r)
{
	const struct tfh_seen_workers *k = &r->found.workers;
	bool feeds = x->causes.fed && k->threads == 1 && r->verdict.cause == x->causes.making.cause,
	     called = r->verdict.cause == TFH_CAUSE_HOST_CALLBACK;

	if (!(feeds || called) || k->busy < TFH_VERDICT_MOST_SHARE || !k->line.file)
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

/* Whether samples show which class has most of the time. */
static bool leads(const double of_class[TFH_CLASS_COUNT], double all, double n)
{
	int most = TFH_CLASS_COMPUTE_BOUND;
	double next = 0;

	for (int c = 0; c < TFH_CLASS_COUNT; c++)
		if (tfh_class_blocks(c) && of_class[c] > of_class[most])
			most = c;
	for (int c = 0; c < TFH_CLASS_COUNT; c++)
		if ((tfh_class_blocks(c) || c == TFH_CLASS_COMPUTE_BOUND) && c != most)
			next = fmax(next, of_class[c]);
	return n >= TFH_VERDICT_SAMPLED_LEAST ||
	       of_class[most] - next >= all * tfh_lead_error(of_class[most] / all, next / all, n);
}

/* Whether samples show that the time of a class, with this largest cause, keeps steps that mostly
 * compute from being compute-bound. */
static bool keeps_from(double cls, double cause, double all, double n)
{
	double share = cls / all;

	return share - tfh_share_error(share, n) >= 1 - TFH_ACCOUNT_COMPUTE_SHARE &&
	       !tfh_is_spread(cause, all, share);
}

/* As of a step with recorded calls. */
static enum tfh_class class_of(const double part[TFH_PART_COUNT],
			       const double of_class[TFH_CLASS_COUNT],
			       const int64_t cause[TFH_CAUSE_COUNT], double all, double n)
{
	if (all <= 0 || n < TFH_FACTS_SAMPLE_LEAST ||
	    part[TFH_PART_UNATTRIBUTED] > TFH_UNATTRIBUTED_SHARE * all || !leads(of_class, all, n))
		return TFH_CLASS_UNCLASSIFIED;
	enum tfh_class cls = tfh_class_of(part, all);
	enum tfh_cause largest = tfh_largest_cause(cause, cls);

	return tfh_class_blocks(cls) && of_class[TFH_CLASS_COMPUTE_BOUND] > of_class[cls] &&
			       !(largest != TFH_CAUSE_NONE &&
				 keeps_from(of_class[cls], (double)cause[largest], all, n))
		       ? TFH_CLASS_COMPUTE_BOUND
		       : cls;
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
	v->cls = class_of(part, of_class, cause, all, x->placed);
	v->cause = tfh_largest_cause(cause, v->cls);
	if (v->cause != TFH_CAUSE_NONE) {
		/* What only computes is no other reason to wait. */
		double others = all - (tfh_class_blocks(v->cls) ? part[TFH_PART_COMPUTE] : 0);
		v->share = of_class[v->cls] / all;
		if (of_class[v->cls] >= TFH_VERDICT_MOST_SHARE * others)
			v->confidence = TFH_CONFIDENCE_MEDIUM;
	}
	r->steady = *v;
}

/* Turns sums into seconds and shares. */
static int finish(struct sampled_run *x, const struct tfh_feed *feed, struct tfh_result *r)
{
	struct tfh_sampled *out = x->out;
	double all = x->ns - x->start_ns, part[TFH_PART_COUNT] = {0};
	struct tfh_sampled_place place[2];
	int64_t born = feed->processes[r->process].born_ns;

	out->wall_s = (double)(x->start->sample[x->start->n - 1].t - born) / 1e9;
	out->start_s = x->ns > 0 ? out->wall_s * x->start_ns / x->ns : 0;
	decide(x, r, part);
	tfh_sampled_lines_list(&x->lines, x->start, all, out);
	place[0] = tfh_sampled_place(&x->lines, &x->steps, x->loop_ns, r);
	place[1] = tfh_sampled_next(&x->lines, &x->steps, x->loop_ns, r);
	if (place[0].ns > 0 && names_maker(x, r))
		place[0].ns = 0;
	if (x->steps.steps) {
		double steps = (double)x->steps.steps * (x->ns / 1e9 / out->wall_s);
		tfh_new_pools_keep(&x->pools, steps, x->loop_ns / 1e9 / steps, &r->found.new_pool);
		tfh_sampled_gains(&x->steps, part, place, x->loop_ns, x->placed, r);
	}
	for (int i = 0; i < TFT_STATE_COUNT && all > 0; i++)
		out->state[i] /= all;
	for (int c = 0; c < TFH_CAUSE_COUNT && all > 0; c++)
		out->cause[c] /= all;
	out->released /= all > 0 ? all : 1;
	out->traced = x->traced_ns / fmax(x->traced_ns + x->compiled_ns, 1);
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

/* Replaces the main thread's samples by those of the threads or processes that do its work. Steps
 * are still the iterations of the main thread's loop: those samples are of several threads. */
static int judge_pool(struct sampled_run *x, struct tfh_start *pool)
{
	const struct tfh_start *main_thread = x->start;

	*pool = *main_thread;
	pool->sample = x->causes.making.work;
	pool->n = x->causes.making.n_work;
	pool->n_loop = pool->n_other = 0;
	x->start = pool;
	x->causes.making.busy = false;
	return tfh_sampled_carry(main_thread, pool, &x->steps);
}

int tfh_find_sampled(const struct tfh_feed *feed, struct tfh_result *r)
{
	struct tfh_start pool;
	struct sampled_run x = {.start = feed->start(feed->arg, r->process),
				.out = &r->found.sampled};
	int rc = tfh_sampled_others(feed, r, &x.causes.making);

	x.out->pid = feed->processes[r->process].pid;
	x.out->why = x.start->why;
	x.out->function = "";
	r->found.pid = x.out->pid;
	r->n_tree = r->n_tree ? 1 : 0; /* the run, in which no part is known */
	rc = rc ? rc : tfh_find_libraries(x.start, &x.causes.libraries);
	x.out->jax = x.causes.libraries.jax;
	rc = rc ? rc : find_steps(&x, end_of(&x, feed, r));
	if (!rc && x.steps.steps && r->n_tree)
		rc = tfh_sampled_tree(x.start, &x.steps, feed->processes[r->process].born_ns, r);
	rc = rc ? rc : tfh_sampled_pool(x.start, &x.causes.making, &x.out->pool);
	if (!rc && x.out->pool.file)
		rc = judge_pool(&x, &pool);
	if (!rc)
		look_ahead(&x, &r->found.workers);
	for (uint32_t i = 0; i < x.start->n && !rc; i++)
		rc = add_sample(&x, i);
	if (!rc)
		rc = finish(&x, feed, r);
	if (!rc && !x.out->pool.file && x.ns > 0)
		rc = tfh_sampled_compiling(x.start, &x.steps, x.compiles_on,
					   1e9 * x.out->wall_s / x.ns, r);
	if (!rc && r->n_tree > 1)
		rc = tfh_sampled_start(feed->start(feed->arg, r->process),
				       feed->processes[r->process].born_ns, r);
	free(x.causes.making.work);
	free(x.steps.step);
	free(x.causes.libraries.use.v);
	free(x.lines.lead.v);
	free(x.lines.own.v);
	free(x.tree.node.v);
	free(x.pools.of.v);
	return rc;
}
