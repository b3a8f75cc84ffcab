/*
 * What a job computes on a CPU, by its parts: backward passes and functions of TensorFlow, whose
 * calls are recorded; optimizers' steps, which have ranges; and, between these, calls of PyTorch's
 * modules (forward passes) and the rest, by samples.
 */
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/facts/exposed.h"
#include "judge/stats.h"
#include "judge/verdict/line_tree.h"

/* A line that calls modules. */
struct caller {
	struct tfh_line_sum sum;
	size_t steps, window; /* in which it was seen, and the last of them */
	size_t asks; /* backward passes before which it was the last such line that was seen */
};

struct computed {
	const struct tfh_accounts *accounts;
	TFH_VEC(struct caller) caller;
	size_t last, pass; /* the last caller that was seen, + 1, and the call that followed */
	/* Of these, what trains and what evaluates; layer: functions, without lines. */
	struct tfh_line_sums forward, evaluate, backward, layer;
	double ns[TFH_COMPUTES_COUNT];	    /* of calls and ranges */
	double seen_ns[TFH_COMPUTES_COUNT]; /* of samples elsewhere */
	uint64_t samples[TFH_COMPUTES_COUNT], all_samples;
	int64_t *function_ns; /* by tag */
	bool closures;	      /* an optimizer's step runs backward passes */
};

/* The line of the program that calls frame i, directly or through functions of PyTorch's that only
 * pass the call on; NULL: another library does. */
static const struct tfh_model_line *caller_of(const struct tfh_model_line *frame, uint32_t n,
					      uint32_t i)
{
	while (i < n && frame[i].library && tfh_is_in_package(frame[i].file, "/torch/"))
		i++;
	return i < n && !frame[i].library ? &frame[i] : NULL;
}

/* Time of call i without the calls inside it: a backward pass may compute parts of the forward pass
 * again, and run a backward pass of them. */
static int64_t own_ns(const struct computed *x, size_t i)
{
	const struct tfh_exec *all = x->accounts->facts->exec.v, *e = &all[i];
	int64_t ns = e->t1 - e->t0 - tfh_exposed_ns(x->accounts->exposed, e->t0, e->t1) -
		     tfh_compiles_in(x->accounts, e->thread, e->t0, e->t1),
		until = e->t1;

	for (size_t k = i; k-- > 0 && all[k].t1 > e->t0;) {
		if (all[k].thread != e->thread || all[k].t0 < e->t0 || all[k].t1 > until)
			continue;
		ns -= all[k].t1 - all[k].t0;
		until = all[k].t0;
	}
	return ns;
}

static int add_call(struct computed *x, size_t i)
{
	const struct tfh_facts *facts = x->accounts->facts;
	const struct tfh_exec *e = &facts->exec.v[i];
	const struct tfh_tag *tag = tfh_tag_of(facts, e->name);
	int64_t ns = own_ns(x, i);

	if (!tag || tag->save || tag->log || ns <= 0)
		return 0;
	if (!tag->backward) {
		x->ns[TFH_COMPUTES_FUNCTION] += (double)ns;
		x->function_ns[tag - facts->tag.v] += ns;
		return 0;
	}
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	const struct tfh_feed *f = facts->feed;
	uint32_t n = f->lines && e->stack
			     ? f->lines(f->arg, facts->process, e->stack, frame, TFH_VERDICT_FRAMES)
			     : 0;
	const struct tfh_model_line *line = n ? caller_of(frame, n, 0) : NULL;
	x->ns[TFH_COMPUTES_BACKWARD] += (double)ns;
	return line ? tfh_line_sums_add(&x->backward, line, (double)ns) : 0;
}

static int add_calls(struct computed *x)
{
	const struct tfh_facts *facts = x->accounts->facts;
	size_t window = 0;
	int rc = 0;

	TFH_EACH (i, facts->exec.n) {
		const struct tfh_exec *e = &facts->exec.v[i];
		if (!rc && facts->thread[e->thread].drives &&
		    tfh_judged_at(x->accounts, e->t1 - 1, &window))
			rc = add_call(x, i);
	}
	return rc;
}

/* The ranges of optimizers' steps tell their time, unless the program's closure computes in
 * them. */
static void add_updates(struct computed *x)
{
	const struct tfh_facts *facts = x->accounts->facts;
	size_t window = 0, at = 0;

	TFH_EACH (i, facts->update.n) {
		const struct tfh_update *u = &facts->update.v[i];
		while (at < facts->exec.n && facts->exec.v[at].t1 < u->t0)
			at++;
		x->closures |= at < facts->exec.n && facts->exec.v[at].t1 <= u->t1;
		if (tfh_judged_at(x->accounts, u->t1 - 1, &window))
			x->ns[TFH_COMPUTES_UPDATE] += (double)(u->t1 - u->t0);
	}
	if (x->closures)
		x->ns[TFH_COMPUTES_UPDATE] = 0;
}

/* The outermost call of a module on a stack; n: there is none. */
static uint32_t module_at(const struct tfh_model_line *frame, uint32_t n)
{
	uint32_t at = n;

	for (uint32_t i = 0; i < n; i++)
		if (frame[i].library && strstr(frame[i].file, "/torch/nn/modules/module.py") &&
		    !fnmatch("*_call*", frame[i].function, 0))
			at = i;
	return at;
}

/* A function that is known by its name: a layer, or one of PyTorch's. */
static bool is_layer(const struct tfh_model_line *frame)
{
	return frame->library ? strstr(frame->file, "/torch/nn/") != NULL
			      : strchr(frame->function, '.') != NULL;
}

/* Whether the innermost frame asks for a backward pass: before the engine starts, or while it
 * releases what the pass leaves behind. */
static bool asks_backward(const struct tfh_model_line *frame, uint32_t n)
{
	return n && frame->library &&
	       ((strstr(frame->file, "/torch/_tensor.py") &&
		 !fnmatch("*.backward", frame->function, 0)) ||
		(strstr(frame->file, "/torch/autograd/") &&
		 (!fnmatch("*backward", frame->function, 0) || !strcmp(frame->function, "grad"))));
}

/* The last line before a call. */
static void settle_caller(struct computed *x)
{
	if (x->last)
		x->caller.v[x->last - 1].asks++;
}

/* pass: number of the call that follows. */
static int add_caller(struct computed *x, const struct tfh_model_line *line, double ns,
		      size_t window, size_t pass)
{
	struct caller *c = NULL;

	for (size_t i = 0; i < x->caller.n && !c; i++)
		if (tfh_same_line(&x->caller.v[i].sum.line, line))
			c = &x->caller.v[i];
	if (!c) {
		if (x->caller.n == TFH_VERDICT_LINES)
			return 0;
		if (TFH_PUSH(x->caller, ((struct caller){.sum.line = *line, .window = SIZE_MAX})))
			return -ENOMEM;
		c = &x->caller.v[x->caller.n - 1];
	}
	c->sum.ns += ns;
	c->sum.samples++;
	c->steps += c->window != window;
	c->window = window;
	if (x->pass != pass)
		settle_caller(x);
	x->last = (size_t)(c - x->caller.v) + 1;
	x->pass = pass;
	return 0;
}

/* Whether a line calls modules in few steps, each of which has many of its samples: at random, they
 * would be in twice as many steps or more. If a backward pass mostly follows such a line, it
 * trains, and was only slow in these steps. */
static bool evaluates(const struct computed *x, const struct caller *c)
{
	double steps = (double)x->accounts->judged_steps, n = (double)c->sum.samples;
	double expected = steps * (1 - pow(1 - 1 / steps, n));

	return c->sum.samples >= TFH_VERDICT_LINE_SAMPLES && c->steps &&
	       (double)c->steps <= TFH_COMPUTED_EVALUATES * steps &&
	       2 * (double)c->steps <= expected && 2 * c->asks <= c->steps;
}

/* Divides the lines that call modules between training and evaluation, if any trains. */
static int divide_callers(struct computed *x)
{
	bool trains = false;
	int rc = 0;

	TFH_EACH (i, x->caller.n)
		trains |= !evaluates(x, &x->caller.v[i]);
	TFH_EACH (i, x->caller.n) {
		struct caller *c = &x->caller.v[i];
		bool e = trains && evaluates(x, c);
		struct tfh_line_sums *to = e ? &x->evaluate : &x->forward;
		if (!rc)
			rc = TFH_PUSH(to->of, c->sum) ? -ENOMEM : 0;
		if (!e)
			continue;
		x->seen_ns[TFH_COMPUTES_FORWARD] -= c->sum.ns;
		x->samples[TFH_COMPUTES_FORWARD] -= c->sum.samples;
		x->seen_ns[TFH_COMPUTES_EVALUATION] += c->sum.ns;
		x->samples[TFH_COMPUTES_EVALUATION] += c->sum.samples;
	}
	return rc;
}

static int add_sample(struct computed *x, const struct tfh_seen_sample *k, size_t window,
		      size_t pass)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	uint32_t n = tfh_frames_at(x->accounts->facts, k->place, frame), at = module_at(frame, n);
	int of = tfh_at_role(k->at) == TFH_ROLE_UPDATE ? TFH_COMPUTES_UPDATE
		 : asks_backward(frame, n)	       ? TFH_COMPUTES_BACKWARD
		 : at < n			       ? TFH_COMPUTES_FORWARD
						       : TFH_COMPUTES_OTHER;
	int rc = 0;

	x->seen_ns[of] += k->ns;
	x->samples[of]++;
	if (of != TFH_COMPUTES_FORWARD)
		return 0;
	const struct tfh_model_line *line = caller_of(frame, n, at);
	if (line)
		rc = add_caller(x, line, k->ns, window, pass);
	if (!rc && is_layer(&frame[0])) {
		struct tfh_model_line layer = frame[0];
		layer.line = 0;
		rc = tfh_line_sums_add(&x->layer, &layer, k->ns);
	}
	return rc;
}

static int add_samples(struct computed *x)
{
	const struct tfh_facts *facts = x->accounts->facts;
	struct tfh_judged_samples at = {0};
	struct tfh_seen_sample k;
	size_t up = 0, pass = 0;
	int rc = 0;

	while (!rc && tfh_next_judged_sample(x->accounts, &at, &k)) {
		while (pass < facts->exec.n && facts->exec.v[pass].t1 <= k.t)
			pass++;
		while (up < facts->update.n && facts->update.v[up].t1 <= k.t)
			up++;
		bool told = !x->closures && up < facts->update.n && facts->update.v[up].t0 <= k.t;
		if (told || tfh_seen_cause(x->accounts, &k) != TFH_CAUSE_COMPUTE_CPU)
			continue;
		x->all_samples++;
		rc = add_sample(x, &k, at.window, pass);
	}
	settle_caller(x);
	return rc;
}

/* Keeps the lines with the most time. s_per_ns: what a nanosecond of a sum is in a step. */
static void keep_lines(struct tfh_line_sums *sums, double s_per_ns, bool sampled,
		       struct tfh_computed_line *out)
{
	size_t n = 0;

	tfh_line_sums_sort(sums);
	for (size_t i = 0; i < sums->of.n && n < TFH_COMPUTED_LINES; i++) {
		const struct tfh_line_sum *s = &sums->of.v[i];
		if (sampled && s->samples < TFH_VERDICT_LINE_SAMPLES)
			continue;
		out[n++] = (struct tfh_computed_line){.file = s->line.file,
						      .function = s->line.function,
						      .line = s->line.line,
						      .s_per_step = s->ns * s_per_ns,
						      .samples = sampled ? s->samples : 0};
	}
}

static void count_steps(const struct computed *x, struct tfh_computed_line *out)
{
	TFH_EACH (i, x->caller.n) {
		const struct tfh_model_line *l = &x->caller.v[i].sum.line;
		for (int k = 0; k < TFH_COMPUTED_LINES && out[k].file; k++)
			if (out[k].line == l->line && !strcmp(out[k].file, l->file) &&
			    !strcmp(out[k].function, l->function))
				out[k].steps = x->caller.v[i].steps;
	}
}

/* The executed function with most time. */
static const char *keep_function(const struct computed *x)
{
	const struct tfh_facts *facts = x->accounts->facts;
	size_t best = 0;

	TFH_EACH (i, facts->tag.n)
		best = x->function_ns[i] > x->function_ns[best] ? i : best;
	if (!facts->tag.n || !x->function_ns[best])
		return NULL;
	return tfh_graph_base(facts, facts->tag.v[best].name);
}

/* A part that only samples show, and whose share has an error that includes 0, counts with the
 * others: samples tell that there is one, but not how long it takes. */
static void join_unsure(struct computed *x)
{
	double seen = 0, n = (double)x->all_samples;

	for (int k = 0; k < TFH_COMPUTES_COUNT; k++)
		seen += x->seen_ns[k];
	for (int k = 0; k < TFH_COMPUTES_OTHER; k++) {
		double share = seen > 0 ? x->seen_ns[k] / seen : 0;
		if (x->ns[k] > 0 || !x->samples[k] || share > tfh_share_error(share, n))
			continue;
		x->seen_ns[TFH_COMPUTES_OTHER] += x->seen_ns[k];
		x->samples[TFH_COMPUTES_OTHER] += x->samples[k];
		x->seen_ns[k] = 0;
		x->samples[k] = 0;
	}
}

/* Samples divide what neither calls nor ranges took of the steps' computing. */
static void divide(struct computed *x, struct tfh_result *r)
{
	struct tfh_computed *out = &r->found.computed;
	double all_s = r->breakdown[TFH_PART_COMPUTE].s_per_step,
	       per_ns = 1 / (1e9 * (double)x->accounts->judged_steps), known_s = 0, seen = 0;

	for (int k = 0; k < TFH_COMPUTES_COUNT; k++) {
		known_s += x->ns[k] * per_ns;
		seen += x->seen_ns[k];
	}
	if (!(all_s > 0) || known_s > (1 + TFH_BLOCKING_SHARE) * all_s)
		return;
	double rest_s = all_s > known_s ? all_s - known_s : 0;
	per_ns *= all_s < known_s ? all_s / known_s : 1;
	for (int k = 0; k < TFH_COMPUTES_COUNT; k++) {
		double share = seen > 0 ? x->seen_ns[k] / seen : k == TFH_COMPUTES_OTHER;
		out->part[k].s_per_step = x->ns[k] * per_ns + share * rest_s;
		out->part[k].samples = x->samples[k];
		out->part[k].off_s =
			x->samples[k] ? rest_s * tfh_share_error(share, (double)x->all_samples) : 0;
	}
	double per_seen = seen > 0 ? rest_s / seen : 0;
	keep_lines(&x->forward, per_seen, true, out->forward);
	keep_lines(&x->evaluate, per_seen, true, out->evaluate);
	count_steps(x, out->evaluate);
	keep_lines(&x->backward, per_ns, false, out->backward);
	keep_lines(&x->layer, per_seen, true, out->layer);
	out->function = keep_function(x);
}

int tfh_find_computed(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	const struct tfh_facts *facts = accounts->facts;
	struct computed x = {.accounts = accounts};
	int rc = 0;

	if (!facts->cpu_only || facts->feed->imported || !accounts->judged_steps)
		return 0;
	x.function_ns = calloc(facts->tag.n + 1, sizeof(*x.function_ns));
	rc = x.function_ns ? add_calls(&x) : -ENOMEM;
	if (!rc) {
		add_updates(&x);
		rc = add_samples(&x);
	}
	if (!rc)
		rc = divide_callers(&x);
	join_unsure(&x);
	if (!rc)
		divide(&x, r);
	free(x.caller.v);
	free(x.forward.of.v);
	free(x.evaluate.of.v);
	free(x.backward.of.v);
	free(x.layer.of.v);
	free(x.function_ns);
	return rc;
}
