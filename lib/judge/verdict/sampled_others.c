/*
 * Of a run in which no call was recorded: the other threads of the sampled process while its main
 * thread waited, or the other processes of the job, such as the workers of a pool.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "judge/facts/makers.h"
#include "judge/result_make.h"
#include "judge/verdict/line_tree.h"
#include "judge/verdict/sampled.h"

struct others {
	struct tfh_line_sums line;
	TFH_VEC(struct tfh_start_sample) work; /* those at work */
	TFH_VEC(uint32_t) id;		       /* of those seen at work */
	struct tfh_line_tree tree;
	double ns, busy_ns, running_ns, called_ns, cause[TFH_CAUSE_COUNT];
	uint64_t samples, busy;
};

bool tfh_sampled_launches(int state, const struct tfh_model_line *frame, uint32_t n)
{
	bool starts = state == TFT_STATE_CHILD;

	for (uint32_t i = 0; i < n && !starts && state != TFT_STATE_RUNNING; i++)
		starts = strstr(frame[i].file, "/subprocess.py") ||
			 strstr(frame[i].file, "/torch/distributed/elastic/") ||
			 strstr(frame[i].file, "/torch/distributed/run.py");
	return starts;
}

static int add_id(struct others *o, uint32_t id)
{
	for (size_t i = 0; i < o->id.n; i++)
		if (o->id.v[i] == id)
			return 0;
	return o->id.n < TFH_VERDICT_WORKERS ? TFH_PUSH(o->id, id) : 0;
}

static int add_sample(struct others *o, const struct tfh_start *s, const struct tfh_start_sample *k,
		      uint32_t id, bool thread)
{
	struct tfh_child_sample child = {
		.ns = k->ns, .id = id, .state = k->state, .thread = thread};
	struct tfh_maker m;
	uint32_t n = tfh_start_frames(s, k->place, m.frame, TFH_VERDICT_FRAMES);
	int rc;

	o->samples++;
	o->ns += k->ns;
	if (!tfh_maker_of(&child, n, &m) || !m.busy || k->state == TFT_STATE_SLEEP ||
	    k->state == TFT_STATE_POLL || tfh_sampled_launches(k->state, m.frame, m.n))
		return 0;
	o->busy++;
	o->busy_ns += k->ns;
	o->called_ns += thread && m.outside ? k->ns : 0;
	o->running_ns += k->state == TFT_STATE_RUNNING ? k->ns : 0;
	o->cause[m.cause] += k->ns;
	tfh_tree_add(&o->tree, m.frame, m.n, k->ns);
	rc = TFH_PUSH(o->work, *k);
	rc = rc ? rc : add_id(o, id);
	return rc ? rc : tfh_line_sums_add(&o->line, &m.frame[tfh_place_lead(m.frame, m.n)], k->ns);
}

static int add_threads(struct others *o, const struct tfh_start *s)
{
	int rc = 0;

	for (uint32_t i = 0; i < s->n_other && !rc; i++)
		rc = add_sample(o, s, &s->other[i].at, s->other[i].tid, true);
	return rc;
}

/* Those that were never seen at work do not count: trackers and managers only wait. */
static int add_processes(struct others *o, const struct tfh_feed *feed, uint32_t but)
{
	int rc = 0;

	for (uint32_t p = 0; p < feed->n_processes; p++) {
		const struct tfh_start *s = feed->start(feed->arg, p);
		uint64_t samples = o->samples, busy = o->busy;
		double ns = o->ns;
		for (uint32_t i = 0; p != but && i < s->n && !rc; i++)
			rc = add_sample(o, s, &s->sample[i], feed->processes[p].pid, false);
		if (o->busy == busy) {
			o->samples = samples;
			o->ns = ns;
		}
	}
	return rc;
}

static void keep_line(const struct others *o, struct tfh_seen_workers *out)
{
	const struct tfh_line_sum *best = NULL;

	for (size_t i = 0; i < o->line.of.n; i++)
		if (!best || o->line.of.v[i].ns > best->ns)
			best = &o->line.of.v[i];
	if (best)
		tfh_line_sum_keep(best, o->busy_ns, o->busy, out);
}

static int by_start(const void *a, const void *b)
{
	const struct tfh_start_sample *x = a, *y = b;

	return x->t < y->t ? -1 : x->t > y->t;
}

/* out->work takes the samples over. */
static int keep(struct others *o, bool threads, struct tfh_result *r, struct tfh_making_seen *out)
{
	struct tfh_seen_workers *w = &r->found.workers;
	int most = TFH_CAUSE_INPUT_UNKNOWN;

	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		if (o->cause[c] > o->cause[most])
			most = c;
	*out = (struct tfh_making_seen){.busy = true,
					.calls_back = TFH_DETECT_LOCK_CALLS_BACK &&
						      2 * o->called_ns > o->busy_ns,
					.cause = (enum tfh_cause)most,
					.ns = o->busy_ns,
					.work = o->work.v,
					.n_work = (uint32_t)o->work.n};
	qsort(out->work, out->n_work, sizeof(*out->work), by_start);
	o->work.v = NULL;
	*(threads ? &w->threads : &w->processes) = (uint32_t)o->id.n;
	w->samples = o->samples;
	w->busy = o->busy_ns / o->ns;
	w->runs = o->running_ns / o->busy_ns;
	keep_line(o, w);
	w->node = tfh_result_alloc(r, o->tree.node.n, sizeof(*w->node));
	if (!w->node)
		return -ENOMEM;
	tfh_tree_copy(&o->tree, 1, w->node);
	w->n_node = (uint32_t)o->tree.node.n;
	return 0;
}

static void release(struct others *o)
{
	free(o->line.of.v);
	free(o->id.v);
	free(o->work.v);
	free(o->tree.node.v);
	*o = (struct others){.ns = 0};
}

int tfh_sampled_others(const struct tfh_feed *feed, struct tfh_result *r,
		       struct tfh_making_seen *out)
{
	struct others o = {.ns = 0};
	int rc = add_threads(&o, feed->start(feed->arg, r->process));
	bool threads = o.busy >= TFH_VERDICT_LINE_SAMPLES;

	*out = (struct tfh_making_seen){.busy = false, .cause = TFH_CAUSE_INPUT_UNKNOWN};
	if (!rc && !threads) {
		release(&o);
		rc = add_processes(&o, feed, r->process);
	}
	if (!rc && o.busy >= TFH_VERDICT_LINE_SAMPLES)
		rc = keep(&o, threads, r, out);
	release(&o);
	return rc;
}
