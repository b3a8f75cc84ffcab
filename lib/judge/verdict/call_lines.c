/*
 * The line of the program that makes the calls a verdict is about: copies, waits, allocations,
 * module loads, backward passes, and the launches that pauses precede. Samples are taken between
 * calls; where the time is spent in calls, the stacks of the calls give the line.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/copy_causes.h"
#include "judge/verdict/line_tree.h"

struct made {
	struct tfh_model_line line, callee; /* callee: the library function that the line calls */
	int64_t ns;
	bool native; /* of a function of machine code */
};

struct call_lines {
	const struct tfh_accounts *accounts;
	enum tfh_cause cause;
	TFH_VEC(struct made) made;
	int64_t ns; /* of all calls of the cause with known stacks */
};

/* Lines of Python or, in a program without it, functions. */
static uint32_t frames_of(const struct tfh_accounts *accounts, uint32_t stack,
			  struct tfh_model_line frame[TFH_VERDICT_FRAMES], bool *native)
{
	const struct tfh_feed *f = accounts->facts->feed;
	uint32_t process = accounts->facts->process, n = 0;

	if (f->lines && stack)
		n = f->lines(f->arg, process, stack, frame, TFH_VERDICT_FRAMES);
	*native = !n;
	return n || !f->functions || !stack
		       ? n
		       : f->functions(f->arg, process, stack, frame, TFH_VERDICT_FRAMES);
}

/* A wrapper of C is a function with a line for each call. */
static bool same_caller(const struct tfh_model_line *a, const struct tfh_model_line *b, bool native)
{
	return native ? tfh_same_function(a, b) : tfh_same_line(a, b);
}

/* Whether a line, called from another line than here, itself calls a function other than fn.
 * Without Python: a function, called from another function. */
static bool calls_another(const struct tfh_accounts *accounts, const struct tfh_site_use *site,
			  const struct tfh_model_line line[2], const struct tfh_fn_info *fn)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	bool native;

	for (int i = 0; i < TFH_ACCOUNT_SITES; i++)
		if (site[i].stack && site[i].fn != fn &&
		    frames_of(accounts, site[i].stack, frame, &native) > 1 &&
		    same_caller(&frame[0], &line[0], native) &&
		    !same_caller(&frame[1], &line[1], native))
			return true;
	return false;
}

/* Whether the innermost line only forwards calls, like a wrapper around ctypes: it calls several
 * functions of the driver for several callers. With one caller, the line itself is what makes the
 * calls: x.to("cuda") copies and waits for the copy. */
static bool passes_on(const struct tfh_accounts *accounts, const struct tfh_model_line line[2],
		      const struct tfh_fn_info *fn)
{
	const struct tfh_site_use *site[] = {accounts->wait_site, accounts->alloc_site,
					     accounts->load_site};

	for (size_t i = 0; i < accounts->copy.n; i++)
		if (calls_another(accounts, accounts->copy.v[i].site, line, fn))
			return true;
	for (size_t i = 0; i < sizeof(site) / sizeof(*site); i++)
		if (calls_another(accounts, site[i], line, fn))
			return true;
	return false;
}

static int add_site(struct call_lines *x, const struct tfh_site_use *s)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	bool native;
	uint32_t n = frames_of(x->accounts, s->stack, frame, &native), at, callee;

	if (!n)
		return 0;
	at = tfh_role_lead(frame, n, TFH_ROLE_NONE, &callee);
	/* the sites of pauses (HOST_LAUNCH) have no function to compare */
	if (!at && n > 1 && !frame[1].library && x->cause != TFH_CAUSE_HOST_LAUNCH &&
	    passes_on(x->accounts, frame, s->fn))
		at = 1;
	x->ns += s->ns;
	if (frame[at].library)
		return 0;
	TFH_EACH (i, x->made.n) {
		if (tfh_same_line(&x->made.v[i].line, &frame[at])) {
			x->made.v[i].ns += s->ns;
			return 0;
		}
	}
	struct made m = {.line = frame[at], .ns = s->ns, .native = native};
	if (callee < n && frame[callee].library)
		m.callee = frame[callee];
	return TFH_PUSH(x->made, m) ? -ENOMEM : 0;
}

static int add_sites(struct call_lines *x, const struct tfh_site_use *site)
{
	int rc = 0;

	for (int i = 0; i < TFH_ACCOUNT_SITES && !rc; i++)
		rc = site[i].stack ? add_site(x, &site[i]) : 0;
	return rc;
}

/* Only the copies that the verdict names: where the others are made is another line. */
static int add_copies(struct call_lines *x, const struct tfh_transfer *t)
{
	int rc = 0;

	for (size_t i = 0; i < x->accounts->copy.n && !rc; i++) {
		const struct tfh_copy_use *u = &x->accounts->copy.v[i];
		if (t && u->fn->name == t->fn && u->dir == t->dir &&
		    (t->pageable < 0 || u->pageable == t->pageable))
			rc = add_sites(x, u->site);
	}
	return rc;
}

static int add_waits(struct call_lines *x)
{
	const struct tfh_site_use *s;
	int rc = 0;

	for (size_t at = 0; !rc && (s = tfh_wait_sites(x->accounts, &at));)
		rc = add_sites(x, s);
	return rc;
}

/* Where graphs are instantiated. The launches that are captured for them may be a wrapper's. */
static int add_graphs(struct call_lines *x)
{
	const struct tfh_site_use *site = x->accounts->graph_site;
	int rc = 0;

	for (int i = 0; i < TFH_ACCOUNT_SITES && !rc; i++)
		if (site[i].stack && site[i].fn && strstr(site[i].fn->name, "GraphInstantiate"))
			rc = add_site(x, &site[i]);
	return rc || x->made.n ? rc : add_sites(x, site);
}

/* Launches end pauses. Where steps make graphs, these calls are what the verdict is about. */
static int add_launches(struct call_lines *x, const struct tfh_result *r)
{
	const struct tfh_accounts *accounts = x->accounts;
	int rc = tfh_makes_graphs(r) ? add_graphs(x) : 0;

	if (!rc && !x->made.n)
		rc = add_sites(x, accounts->pause_site);
	return rc || x->made.n ? rc : add_sites(x, accounts->launch_site);
}

/* Functions that the driver ran in streams. */
static int add_queued(struct call_lines *x)
{
	const struct tfh_feed *f = x->accounts->facts->feed;
	int rc = 0;

	for (int i = 0; f->function_at && i < TFH_ACCOUNT_SITES && !rc; i++) {
		const struct tfh_queued_use *use = &x->accounts->queued[i];
		struct made m = {.ns = use->ns};
		x->ns += use->ns;
		if (use->address &&
		    f->function_at(f->arg, x->accounts->facts->process, use->address, &m.line))
			rc = TFH_PUSH(x->made, m) ? -ENOMEM : 0;
	}
	return rc;
}

static int add_calls(struct call_lines *x, const struct tfh_result *r)
{
	switch (x->cause) {
	case TFH_CAUSE_HOST_SYNC:
	case TFH_CAUSE_COMPUTE_IMBALANCE:
		return add_waits(x);
	case TFH_CAUSE_HOST_ALLOC:
		return add_sites(x, x->accounts->alloc_site);
	case TFH_CAUSE_HOST_COMPILE:
		return add_sites(x, x->accounts->load_site);
	case TFH_CAUSE_TRANSFER_MANAGED:
		return add_sites(x, x->accounts->managed_site);
	case TFH_CAUSE_HOST_LAUNCH:
		return add_launches(x, r);
	case TFH_CAUSE_HOST_CALLBACK:
		return r->found.queued_functions ? add_queued(x) : 0;
	case TFH_CAUSE_COMPUTE_CPU:
		return add_sites(x, x->accounts->executed_site);
	case TFH_CAUSE_COMMUNICATION_TRANSFER:
	case TFH_CAUSE_COMMUNICATION_JITTER:
		return add_sites(x, x->accounts->exchange_site);
	default:
		return tfh_cause_part(x->cause) == TFH_PART_TRANSFER
			       ? add_copies(x, tfh_copies_of(r, x->cause))
			       : 0;
	}
}

/* Names a line, which takes s_per_step of of_s. */
static void name(const struct made *m, double s_per_step, double of_s, struct tfh_seen_line *out)
{
	*out = (struct tfh_seen_line){.file = m->line.file,
				      .function = m->line.function,
				      .line = m->line.line,
				      .s_per_step = s_per_step,
				      .of_s = of_s};
	if (m->callee.library) {
		out->callee = m->callee.function;
		out->callee_file = m->callee.file;
		out->callee_line = m->callee.line;
	}
}

/* All calls of the function that a line is in. */
static struct made whole_function(const struct call_lines *x, size_t of)
{
	struct made all = {.line = x->made.v[of].line};

	all.line.line = 0;
	TFH_EACH (i, x->made.n)
		if (x->made.v[i].native && tfh_same_function(&x->made.v[i].line, &all.line))
			all.ns += x->made.v[i].ns;
	return all;
}

/* The line with over half of the calls' time; without Python, if there is none, the function. */
static void choose(const struct call_lines *x, struct tfh_result *r)
{
	double of_s = r->found.cause_s[x->cause];

	TFH_EACH (i, x->made.n) {
		const struct made *m = &x->made.v[i];
		if (m->ns * 2 > x->ns)
			name(m, of_s * (double)m->ns / (double)x->ns, of_s, &r->found.line);
	}
	for (size_t i = 0; i < x->made.n && !r->found.line.file; i++) {
		const struct made all = whole_function(x, i);
		if (x->made.v[i].native && all.ns * 2 > x->ns)
			name(&all, of_s * (double)all.ns / (double)x->ns, of_s, &r->found.line);
	}
}

/* Seconds of a step that samples saw in an optimizer: its step, and clearing its gradients. */
static double updating_s(const struct tfh_accounts *accounts)
{
	double ns = 0;
	struct tfh_judged_samples at = {0};
	struct tfh_seen_sample k;

	while (tfh_next_judged_sample(accounts, &at, &k))
		ns += tfh_at_role(k.at) == TFH_ROLE_UPDATE ? k.ns : 0;
	return ns / 1e9 / (double)accounts->judged_steps;
}

/*
 * Computing on a CPU: the line of the ops that samples saw between the recorded calls. But if the
 * executed calls of one line (a backward pass, a function of TensorFlow) take longer than that,
 * and much longer than the rest without the optimizer, by more than a backward pass usually exceeds
 * its forward pass, the slow op is in those calls.
 */
static void choose_computing(const struct call_lines *x, struct tfh_result *r)
{
	double of_s = r->breakdown[TFH_PART_COMPUTE].s_per_step,
	       steps = (double)x->accounts->train_steps;
	double rest_s = of_s - (r->found.line.file ? updating_s(x->accounts) : 0);
	double times = r->found.line.file ? TFH_VERDICT_BACKWARD_TIMES : 1;
	double seen_s = r->found.line.file ? r->found.line.s_per_step : 0;

	r->found.line.of_s = of_s;
	TFH_EACH (i, x->made.n) {
		double s = (double)x->made.v[i].ns / 1e9 / steps;
		if (s > seen_s && s > times * (rest_s - s))
			name(&x->made.v[i], fmin(s, of_s), of_s, &r->found.line);
	}
}

int tfh_find_asked_line(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct call_lines x = {.accounts = accounts, .cause = r->verdict.cause};

	if (r->found.line.file || r->lead || x.cause == TFH_CAUSE_NONE ||
	    tfh_cause_part(x.cause) != TFH_PART_INPUT)
		return 0;
	int rc = add_sites(&x, accounts->input_site);
	if (!rc)
		choose(&x, r);
	r->found.line.kind = r->found.line.file ? TFH_LINE_ASKS : TFH_LINE_IS;
	free(x.made.v);
	return rc;
}

int tfh_find_call_lines(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct call_lines x = {.accounts = accounts, .cause = r->verdict.cause};
	bool computes = x.cause == TFH_CAUSE_COMPUTE_CPU;

	if ((r->found.line.file && !computes) || r->lead || x.cause == TFH_CAUSE_NONE)
		return 0;
	int rc = add_calls(&x, r);
	if (!rc && computes)
		choose_computing(&x, r);
	else if (!rc)
		choose(&x, r);
	if (x.cause == TFH_CAUSE_COMPUTE_IMBALANCE && r->found.line.file)
		r->found.line.kind = TFH_LINE_AWAITS;
	free(x.made.v);
	return rc;
}
