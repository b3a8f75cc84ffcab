/*
 * Lines of Python at which the driving threads were sampled between their calls: the one with most
 * of the verdict's cause, and all of them as a tree of calls.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "judge/facts/event_loop.h"
#include "judge/facts/pause_role.h"
#include "judge/stats.h"
#include "judge/verdict/callees.h"
#include "judge/verdict/line_tree.h"

struct lead {
	struct tfh_model_line line;
	struct tfh_callees calls;
	struct tfh_model_line place; /* the line that the thread itself was at */
	double ns;
	double own_ns; /* samples between calls that do not wait for Python's lock (code_place.c) */
	uint64_t samples;
};

struct lines {
	const struct tfh_accounts *accounts;
	struct tfh_result *r;
	TFH_VEC(struct lead) lead;
	struct tfh_line_tree tree;
	/* What is below lines through which all steps run, and one of these. */
	struct tfh_line_tree below;
	struct lead runs_all;
	enum tfh_segment kind; /* windows that the verdict is about; NONE: the judged steps */
	bool only_class;       /* of these, only samples of the verdict's class count */
	double cause_ns;       /* of all samples of the cause, with or without a line */
	uint64_t cause_samples;
	double by_cause[TFH_CAUSE_COUNT]; /* ns of these samples by what each shows by itself */
};

static void count(struct lead *l, const struct tfh_model_line *line,
		  const struct tfh_model_line *callee, const struct tfh_seen_sample *k)
{
	l->line = *line;
	l->ns += k->ns;
	l->own_ns += tfh_sample_is_own(k) ? k->ns : 0;
	l->samples++;
	tfh_callee_add(&l->calls, callee, k->ns);
}

/* Adds a stack under the line of interest to the user, with the function it called. own: the line
 * that the thread was at, if that is another one. */
static int add_lead(struct lines *x, const struct tfh_model_line *frame, uint32_t n,
		    const struct tfh_seen_sample *k, const struct tfh_model_line *own)
{
	uint32_t callee, at = tfh_role_lead(frame, n, tfh_at_role(k->at), &callee);
	struct lead *l = NULL;

	if (tfh_runs_through(x->accounts, &frame[at])) {
		uint32_t under = callee;
		callee = tfh_role_compiles(tfh_at_role(k->at)) ? callee : 0;
		tfh_tree_add(&x->below, frame + callee, at - callee, k->ns);
		count(&x->runs_all, &frame[at], under < n ? &frame[under] : NULL, k);
		return 0;
	}
	for (size_t i = 0; i < x->lead.n && !l; i++)
		if (tfh_same_line(&x->lead.v[i].line, &frame[at]))
			l = &x->lead.v[i];
	if (!l) {
		if (x->lead.n == TFH_VERDICT_LINES)
			return 0;
		if (TFH_PUSH(x->lead,
			     ((struct lead){.line = frame[at], .place = own ? *own : frame[at]})))
			return -ENOMEM;
		l = &x->lead.v[x->lead.n - 1];
	}
	count(l, &frame[at], callee < n ? &frame[callee] : NULL, k);
	return 0;
}

/* A thread that waits in an event loop: what goes on afterwards tells more than the line at which
 * the loop was started. Returns the number of frames. */
static uint32_t resumed(const struct tfh_facts *facts, const struct tfh_seen_sample *k,
			struct tfh_model_line frame[TFH_VERDICT_FRAMES], uint32_t n)
{
	const struct tfh_feed *f = facts->feed;
	struct tfh_model_line next[TFH_VERDICT_FRAMES];
	uint32_t m = k->resumes && f->lines ? f->lines(f->arg, facts->process, k->resumes, next,
						       TFH_VERDICT_FRAMES)
					    : 0;
	uint32_t at = tfh_coroutine_of(next, m);

	if (at == m)
		return n;
	frame[0] = frame[tfh_event_loop_of(frame, n)];
	frame[1] = next[at];
	return 2;
}

/* Whether a sample of this cause is one of what the verdict is about, if its time is. */
static bool is_about(const struct lines *x, enum tfh_cause of)
{
	enum tfh_cause cause = x->r->verdict.cause;

	if (x->kind != TFH_SEGMENT_NONE)
		return !x->only_class || tfh_cause_class(of) == x->r->verdict.cls;
	return cause == TFH_CAUSE_HOST_CALLBACK ||
	       (of == TFH_CAUSE_INPUT_UNKNOWN ? x->accounts->input_cause : of) == cause;
}

/* judged: the sample is in a judged step; about: it is where the verdict's cause is searched. */
static int add_sample(struct lines *x, const struct tfh_seen_sample *k, bool judged, bool about)
{
	const struct tfh_facts *facts = x->accounts->facts;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	enum tfh_cause of = tfh_seen_cause(x->accounts, k);
	bool counts = is_about(x, of);
	uint32_t n = tfh_frames_at(facts, k->place, frame);

	x->cause_ns += counts && about ? k->ns : 0;
	x->cause_samples += counts && about;
	if (counts && about && of != TFH_CAUSE_NONE)
		x->by_cause[of] += k->ns;
	if (!n)
		return 0;
	if (judged)
		tfh_tree_add(&x->tree, frame, n, k->ns);
	if (!counts || !about)
		return 0;
	const struct tfh_model_line own = frame[tfh_place_lead(frame, n)];
	uint32_t m = resumed(facts, k, frame, n);
	return add_lead(x, frame, m, k, k->resumes && m == 2 ? &own : NULL);
}

/* The time of all lines of a line's function; *samples: their samples. */
static double function_ns(const struct lines *x, const struct lead *of, uint64_t *samples)
{
	double ns = 0;

	*samples = 0;
	for (size_t i = 0; i < x->lead.n; i++) {
		const struct lead *l = &x->lead.v[i];
		bool same = tfh_same_function(&l->line, &of->line);
		ns += same ? l->ns : 0;
		*samples += same ? l->samples : 0;
	}
	return ns;
}

/* The line of most samples. A function of many lines, none of which has more, comes before a single
 * line elsewhere if it has most of the cause's time, and at least twice that line's. */
static const struct lead *best_line(const struct lines *x)
{
	const struct lead *best = NULL, *inside = NULL;

	for (size_t i = 0; i < x->lead.n; i++)
		if (!best || x->lead.v[i].ns > best->ns)
			best = &x->lead.v[i];
	for (size_t i = 0; best && i < x->lead.n; i++) {
		const struct lead *l = &x->lead.v[i];
		uint64_t samples;
		double ns = function_ns(x, l, &samples);
		if (ns > TFH_VERDICT_MOST_SHARE * x->cause_ns &&
		    ns >= TFH_VERDICT_FUNCTION_TIMES * best->ns && (!inside || l->ns > inside->ns))
			inside = l;
	}
	return inside ? inside : best;
}

/* The heaviest call of a node, or of none (parent: UINT32_MAX); UINT32_MAX: it calls nothing. */
static uint32_t heaviest(const struct tfh_line_tree *tree, uint32_t parent)
{
	const struct tfh_seen_node *v = tree->node.v;
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < tree->node.n; i++) {
		bool top = v[i].parent == i;
		if ((parent == UINT32_MAX ? top : !top && v[i].parent == parent) &&
		    (best == UINT32_MAX || v[i].s_per_step > v[best].s_per_step))
			best = i;
	}
	return best;
}

static struct tfh_model_line line_at(const struct tfh_seen_node *n)
{
	return (struct tfh_model_line){n->file, n->function, n->line, true};
}

/* Whether the search for what runs below a library's loop ends above this function, because its
 * caller tells more: it is of the standard library or the framework, or makes batches, or is named
 * for what it does (saves, logs) and is not called by the library's loop itself, in the file
 * `engine`. */
static bool ends_above(const struct tfh_seen_node *n, const struct tfh_seen_node *caller,
		       const char *engine)
{
	const struct tfh_model_line line = line_at(n);
	enum tfh_role role = tfh_place_role(&line, 1, TFH_ORDER_UNKNOWN);
	char package[TFH_FACTS_PACKAGE];

	tfh_package_of(&line, package);
	return !*package || tfh_is_in_package(n->file, "/torch/") ||
	       tfh_is_in_package(n->file, "/tensorflow/python/") ||
	       (role != TFH_ROLE_NONE &&
		(tfh_cause_class(tfh_role_cause(role)) == TFH_CLASS_INPUT_BOUND ||
		 strcmp(caller->file, engine) != 0));
}

/* Whether a library's function says what it does. */
static bool tells(const struct tfh_seen_node *n)
{
	const struct tfh_model_line line = line_at(n);

	return tfh_place_role(&line, 1, TFH_ORDER_UNKNOWN) != TFH_ROLE_NONE;
}

static bool passes(const struct tfh_seen_node *n)
{
	const struct tfh_model_line line = line_at(n);

	return tfh_passes_on(&line);
}

/* Where all steps run through a library, the innermost of its functions that has most of the
 * cause's time and does not run all steps itself: one of its callbacks, or what it prepares. */
static const struct lead *find_below(struct lines *x, struct lead *out)
{
	const struct tfh_seen_node *v = x->below.node.v;
	uint32_t at = UINT32_MAX, next;
	const char *engine = "";
	bool runs_all = true;

	while ((next = heaviest(&x->below, at)) != UINT32_MAX &&
	       v[next].s_per_step > TFH_VERDICT_MOST_SHARE * x->cause_ns) {
		const struct tfh_model_line line = line_at(&v[next]);
		runs_all = runs_all && tfh_in_all_steps(x->accounts, &line);
		engine = runs_all ? line.file : engine;
		if (!runs_all && at != UINT32_MAX &&
		    (tells(&v[at]) || ends_above(&v[next], &v[at], engine)))
			break;
		at = next;
	}
	if (at == UINT32_MAX || runs_all)
		return NULL;
	if (next != UINT32_MAX && passes(&v[at])) {
		at = next;
		next = heaviest(&x->below, at);
	}
	*out = (struct lead){
		.line = line_at(&v[at]), .ns = v[at].s_per_step, .samples = v[at].samples};
	out->place = out->line;
	if (next != UINT32_MAX) {
		struct tfh_model_line callee = line_at(&v[next]);
		tfh_callee_add(&out->calls, &callee, v[next].s_per_step);
	}
	return out;
}

/* Whether the verdict is about what places take: the host's own code, and the making of batches
 * that the loop does itself. Data from the network is not: a fix requests all of it ahead, and also
 * moves what an event loop does for it outside of the line. */
static bool is_of_places(const struct lines *x)
{
	enum tfh_class cls = x->r->verdict.cls;

	return cls == TFH_CLASS_HOST_BOUND ||
	       (cls == TFH_CLASS_INPUT_BOUND && !x->accounts->facts->consumers &&
		x->r->verdict.cause != TFH_CAUSE_INPUT_REMOTE);
}

/* Whether there are enough samples of a line, or of its function if that has most of the cause's
 * time: it may have many lines. */
static bool has_samples(const struct lines *x, const struct lead *l)
{
	uint64_t samples;

	if (!l->samples)
		return false;
	bool most = function_ns(x, l, &samples) > TFH_VERDICT_MOST_SHARE * x->cause_ns;
	return l->samples >= TFH_VERDICT_LINE_SAMPLES ||
	       (most && samples >= TFH_VERDICT_LINE_SAMPLES);
}

/* Keeps a line with its share of the cause, if it has enough samples. */
static void keep(const struct lines *x, const struct lead *l, struct tfh_seen_line *out)
{
	const struct tfh_model_line *calls = tfh_callee_most(&l->calls);
	double share = l->ns / x->cause_ns;

	if (!has_samples(x, l))
		return;
	out->file = l->line.file;
	out->function = l->line.function;
	out->line = l->line.line;
	out->samples = l->samples;
	if (calls && calls->library) {
		out->callee = calls->function;
		out->callee_file = calls->file;
		out->callee_line = calls->line;
	}
	out->of_s = x->kind == TFH_SEGMENT_NONE
			    ? x->r->found.cause_s[x->r->verdict.cause]
			    : x->r->verdict.share * x->r->recurs_s / (double)x->r->steps.total;
	out->s_per_step = share * out->of_s;
	out->off_s = tfh_share_error(share, (double)x->cause_samples) * out->of_s;
}

/* What a library does below a line through which all steps run is what that line calls: the line
 * is the program's own, and tells where the library is used. */
static void keep_below(const struct lines *x, const struct lead *below, struct tfh_seen_line *out)
{
	keep(x, below, out);
	out->not_own = true;
	if (!out->file || !below->line.library)
		return;
	out->callee = below->line.function;
	out->callee_file = below->line.file;
	out->callee_line = below->line.line;
	out->file = x->runs_all.line.file;
	out->function = x->runs_all.line.function;
	out->line = x->runs_all.line.line;
}

static void choose(struct lines *x, struct tfh_seen_line *all_steps)
{
	struct tfh_seen_line *out = &x->r->found.line;
	const struct lead *best = best_line(x), *below;
	struct lead found;

	below = find_below(x, &found);
	if (below && (!best || below->ns > best->ns)) {
		keep_below(x, below, out);
		return;
	}
	if (!best || !has_samples(x, best)) {
		keep(x, &x->runs_all, all_steps);
		all_steps->not_own = true;
		return;
	}
	keep(x, best, out);
	/* Otherwise most of the verdict's time would remain without the place. */
	bool removes = is_of_places(x) && best->own_ns * 2 > best->ns;
	for (uint32_t i = x->r->n_place; i-- > 0 && removes;)
		if (tfh_is_at_place(&x->r->place[i], &best->place))
			x->r->line_place = i + 1;
}

/* With few samples only the thread's clock divides a pause: it ran. If the samples of what recurs
 * outside the steps mostly show the same known work, that is the cause. */
static void name_work(const struct lines *x)
{
	struct tfh_result *r = x->r;

	if (x->kind == TFH_SEGMENT_NONE || r->verdict.cause != TFH_CAUSE_HOST_PYTHON ||
	    x->cause_samples < TFH_VERDICT_LINE_SAMPLES)
		return;
	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		if (tfh_cause_class(c) == r->verdict.cls && c != TFH_CAUSE_HOST_UNKNOWN &&
		    x->by_cause[c] > TFH_VERDICT_MOST_SHARE * x->cause_ns)
			r->verdict.cause = r->recurring[r->lead - 1].cause = c;
}

/* Whether a sample is where the verdict's cause is searched. */
static bool is_where(const struct lines *x, bool judged, size_t window)
{
	const struct tfh_accounts *a = x->accounts;

	return x->kind == TFH_SEGMENT_NONE
		       ? judged
		       : window < a->step.n && a->use[window].segment == x->kind;
}

/* Of what recurs outside the steps, the samples of the verdict's class count, if there are
 * enough. */
static void find_class(struct lines *x)
{
	const struct tfh_facts *facts = x->accounts->facts;
	size_t window = 0, n = 0;

	for (size_t i = 0; i < tfh_stack_samples_count(facts->samples); i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		bool judged = tfh_judged_at(x->accounts, k.t, &window);
		n += facts->thread[k.thread].drives && is_where(x, judged, window) &&
		     tfh_cause_class(tfh_seen_cause(x->accounts, &k)) == x->r->verdict.cls;
	}
	x->only_class = x->kind != TFH_SEGMENT_NONE && n >= (size_t)TFH_FACTS_SAMPLE_LEAST;
}

/* A verdict about compiling is also about what backward passes compile, inside of their calls. */
static int add_within(struct lines *x)
{
	const struct tfh_facts *facts = x->accounts->facts;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	size_t window = 0;
	int rc = 0;

	if (x->kind != TFH_SEGMENT_NONE || x->r->verdict.cause != TFH_CAUSE_HOST_COMPILE)
		return 0;
	for (size_t i = 0; i < tfh_samples_within_count(facts->samples) && !rc; i++) {
		struct tfh_seen_sample k = tfh_samples_within_at(facts->samples, i);
		uint32_t n = tfh_frames_at(facts, k.place, frame);
		enum tfh_role role = tfh_place_role(frame, n, TFH_ORDER_UNKNOWN);
		if (!n || !tfh_role_compiles(role) || !facts->thread[k.thread].drives ||
		    !tfh_judged_at(x->accounts, k.t, &window))
			continue;
		k.at = TFH_AT(role, 0);
		x->cause_ns += k.ns;
		x->cause_samples++;
		rc = add_lead(x, frame, n, &k, NULL);
	}
	return rc;
}

int tfh_find_lines(const struct tfh_accounts *accounts, struct tfh_result *r,
		   struct tfh_seen_line *all_steps)
{
	const struct tfh_stack_samples *samples = accounts->facts->samples;
	struct lines x = {.accounts = accounts,
			  .r = r,
			  .kind = r->lead ? r->recurring[r->lead - 1].kind : TFH_SEGMENT_NONE};
	size_t window = 0;
	int rc = 0;

	find_class(&x);
	for (size_t i = 0; i < tfh_stack_samples_count(samples) && !rc; i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(samples, i);
		bool judged = tfh_judged_at(accounts, k.t, &window);
		bool about = is_where(&x, judged, window);
		if ((judged || about) && accounts->facts->thread[k.thread].drives)
			rc = add_sample(&x, &k, judged, about);
	}
	if (!rc)
		rc = add_within(&x);
	if (!rc && r->verdict.cause != TFH_CAUSE_NONE && x.cause_ns > 0)
		choose(&x, all_steps);
	name_work(&x);
	if (!rc && accounts->judged_steps)
		rc = tfh_tree_keep(&x.tree, accounts, &r->found.node, &r->found.n_node);
	free(x.lead.v);
	free(x.tree.node.v);
	free(x.below.node.v);
	return rc;
}
