/*
 * Child processes that make batches, or other threads if there are none: how busy they are, and at
 * which line of Python.
 */
#include <math.h>
#include <stdlib.h>

#include "judge/verdict/classify.h"
#include "judge/verdict/line_tree.h"

struct worker_time {
	uint32_t id;
	int64_t first, last; /* times of its samples */
	double ns, busy_ns;
};

struct workers {
	const struct tfh_accounts *accounts;
	struct tfh_seen_workers *out;
	struct tfh_line_sums lead;
	TFH_VEC(struct worker_time) process;
	struct tfh_line_tree tree;
	double busy_ns, running_ns; /* running: a part of busy */
	double about_ns;	    /* of those busy where the verdict is about */
	uint64_t busy, about;
	enum tfh_segment kind; /* windows that the verdict is about; NONE: the judged steps */
	bool threads;	       /* threads of this process instead of child processes */
};

static struct worker_time *process_of(struct workers *w, const struct tfh_child_sample *k)
{
	for (size_t i = 0; i < w->process.n; i++)
		if (w->process.v[i].id == k->id)
			return &w->process.v[i];
	if (w->process.n == TFH_VERDICT_WORKERS ||
	    TFH_PUSH(w->process, ((struct worker_time){.id = k->id, .first = k->t})))
		return NULL;
	return &w->process.v[w->process.n - 1];
}

static int add_about(struct workers *w, const struct tfh_child_sample *k, const struct tfh_maker *m)
{
	w->about++;
	w->about_ns += k->ns;
	return tfh_line_sums_add(&w->lead, &m->frame[tfh_place_lead(m->frame, m->n)], k->ns);
}

/* judged: the sample is in a judged step; about: it is where the verdict's cause is searched. */
static int add_sample(struct workers *w, const struct tfh_child_sample *k, bool judged, bool about)
{
	struct tfh_maker m;
	struct worker_time *p = NULL;

	if (!tfh_maker_at(w->accounts->facts, k, &m))
		return 0;
	int rc = about && m.busy ? add_about(w, k, &m) : 0;
	if (rc || !judged || !(p = process_of(w, k)))
		return rc;
	p->ns += k->ns;
	p->last = k->t;
	w->out->samples++;
	if (!m.busy)
		return 0;
	p->busy_ns += k->ns;
	w->busy++;
	w->busy_ns += k->ns;
	w->running_ns += k->state == TFT_STATE_RUNNING ? k->ns : 0;
	tfh_tree_add(&w->tree, m.frame, m.n, k->ns);
	return 0;
}

/* All samples of the function that a line is in. */
static struct tfh_line_sum whole_function(const struct workers *w, const struct tfh_line_sum *of)
{
	struct tfh_line_sum all = {.line = of->line};

	for (size_t i = 0; i < w->lead.of.n; i++)
		if (tfh_same_function(&w->lead.of.v[i].line, &of->line)) {
			all.ns += w->lead.of.v[i].ns;
			all.samples += w->lead.of.v[i].samples;
		}
	return all;
}

/* The line of most samples. If it has few of them, as where the threads were seldom seen, the
 * function with most of them, by its own most frequent line. */
static struct tfh_line_sum best_line(const struct workers *w)
{
	struct tfh_line_sum best = {.ns = 0}, inside = {.ns = 0};
	double most = 0;

	for (size_t i = 0; i < w->lead.of.n; i++)
		if (w->lead.of.v[i].ns > best.ns)
			best = w->lead.of.v[i];
	if (best.samples >= TFH_VERDICT_LINE_SAMPLES)
		return best;
	for (size_t i = 0; i < w->lead.of.n; i++) {
		const struct tfh_line_sum *l = &w->lead.of.v[i];
		struct tfh_line_sum all = whole_function(w, l);
		if (all.ns > inside.ns || (all.ns == inside.ns && l->ns > most)) {
			inside = all;
			most = l->ns;
		}
	}
	return inside;
}

/* Workers may change with each epoch, or each step: this is the largest number that was seen at the
 * same time. */
static uint32_t at_once(const struct workers *w)
{
	uint32_t most = 0;

	for (size_t i = 0; i < w->process.n; i++) {
		uint32_t n = 0;
		for (size_t k = 0; k < w->process.n; k++)
			n += w->process.v[k].busy_ns > 0 &&
			     w->process.v[k].first <= w->process.v[i].first &&
			     w->process.v[k].last >= w->process.v[i].first;
		most = n > most ? n : most;
	}
	return most;
}

static void choose(struct workers *w)
{
	const struct tfh_line_sum best = best_line(w);
	double all = 0;

	for (size_t i = 0; i < w->process.n; i++) {
		w->out->threads += w->threads && w->process.v[i].busy_ns > 0;
		all += w->process.v[i].busy_ns > 0 ? w->process.v[i].ns : 0;
	}
	w->out->processes = w->threads ? 0 : at_once(w);
	w->out->busy = all > 0 ? w->busy_ns / all : 0;
	w->out->runs = all > 0 ? w->running_ns / all : 0;
	tfh_line_sum_keep(&best, w->about_ns, w->about, w->out);
}

/* Their line becomes the verdict's: it has its share of `s` seconds of a step. */
static void put_line(const struct workers *w, double s, double of_s, struct tfh_result *r)
{
	const struct tfh_seen_workers *k = &r->found.workers;
	struct tfh_seen_line *out = &r->found.line;

	out->file = k->line.file;
	out->function = k->line.function;
	out->line = k->line.line;
	out->samples = w->about;
	out->callee = NULL;
	out->of_s = of_s;
	out->s_per_step = k->line.share * s;
	out->off_s = k->line.off * s;
}

/* If only workers make batches, their slowest line decides when a batch arrives, and becomes the
 * verdict's place. So does the line of the threads that hold the GIL where the main thread waits
 * for it: any line of that one may be the next to wait. And so does that of the functions that a
 * library calls where it waits for them. */
static void place_of_verdict(const struct workers *w, struct tfh_result *r)
{
	const struct tfh_seen_workers *k = &r->found.workers;
	enum tfh_cause cause = r->verdict.cause;

	bool held = cause == TFH_CAUSE_HOST_GIL ||
		    (cause == TFH_CAUSE_HOST_CALLBACK && w->accounts->facts->calls_back);
	bool any = w->threads && (held || w->accounts->facts->lock_feeds);
	if ((r->found.line.file && !any) || !k->line.file || cause == TFH_CAUSE_NONE ||
	    (tfh_cause_part(cause) != TFH_PART_INPUT && !held))
		return;
	double of_s = w->kind == TFH_SEGMENT_NONE
			      ? r->found.cause_s[cause]
			      : r->verdict.share * r->recurs_s / (double)r->steps.total;
	put_line(w, of_s, of_s, r);
}

/* Seconds of a step in which Python functions of TensorFlow's graphs ran, but not in its pipeline,
 * whose stages count what theirs take; 0: it cannot be told. */
static double in_graph_s(const struct workers *w, const struct tfh_result *r)
{
	const struct tfh_seen_workers *k = &r->found.workers;
	double called = tfh_called_python_s(k), stages = 0;

	for (uint32_t i = 0; i < r->n_input; i++)
		stages += r->input[i].self_s_per_step;
	return w->accounts->facts->consumers && !r->n_input ? 0 : fmax(called - stages, 0);
}

/* TensorFlow runs the Python functions that a step's graph calls on threads of its own, and the
 * step waits for them as for its ops. If such Python takes much of the computing, its line is the
 * verdict's. */
static void place_in_graph(const struct workers *w, struct tfh_result *r)
{
	const struct tfh_seen_workers *k = &r->found.workers;
	double s = in_graph_s(w, r), computing = r->breakdown[TFH_PART_COMPUTE].s_per_step;

	if (r->verdict.cause != TFH_CAUSE_COMPUTE_CPU || r->lead || r->found.line.file ||
	    !k->line.file || s < (1 - TFH_ACCOUNT_COMPUTE_SHARE) * computing)
		return;
	put_line(w, fmin(s, computing), computing, r);
	tfh_not_high(&r->verdict);
	tfh_not_high(&r->steady);
}

/* If workers wait for work, there are enough of them. */
static struct tfh_making making(const struct workers *w, const struct tfh_result *r)
{
	struct tfh_making m = {.workers = at_once(w), .work_s = NAN};

	if (w->threads || !m.workers || w->out->busy < TFH_VERDICT_WORKERS_BUSY)
		return m;
	m.work_s = m.workers * w->out->busy * tfh_mean_step_s(r);
	m.running = w->running_ns / w->busy_ns;
	return m;
}

/* Adds samples of threads or of child processes. */
static int add_seen(struct workers *w)
{
	const struct tfh_facts *facts = w->accounts->facts;
	size_t window = 0;
	int rc = 0;

	for (size_t i = 0; i < facts->child.n && !rc; i++) {
		const struct tfh_child_sample *k = &facts->child.v[i];
		bool judged = tfh_judged_at(w->accounts, k->t, &window);
		bool about = w->kind == TFH_SEGMENT_NONE
				     ? judged
				     : window < w->accounts->step.n &&
					       w->accounts->use[window].segment == w->kind;
		if (k->thread == w->threads && (judged || about))
			rc = add_sample(w, k, judged, about);
	}
	return rc;
}

int tfh_find_workers(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct workers w = {.accounts = accounts,
			    .out = &r->found.workers,
			    .kind = r->lead ? r->recurring[r->lead - 1].kind : TFH_SEGMENT_NONE};
	int rc = add_seen(&w);

	if (!rc && !w.busy && !w.about) {
		w.threads = true;
		rc = add_seen(&w);
	}
	choose(&w);
	place_of_verdict(&w, r);
	struct tfh_making made = making(&w, r);
	tfh_more_workers(accounts, &made, r);
	if (!rc && accounts->judged_steps)
		rc = tfh_tree_keep(&w.tree, accounts, &w.out->node, &w.out->n_node);
	if (!rc && w.threads)
		place_in_graph(&w, r);
	free(w.lead.of.v);
	free(w.process.v);
	free(w.tree.node.v);
	return rc;
}
