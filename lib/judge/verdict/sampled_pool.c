/*
 * Of a run in which no call was recorded: whether its main thread only waits for threads or
 * processes that it has given all the work (a pool's map, joblib, concurrent.futures, threads that
 * it joins). What takes its time is then what they do. But a thread that takes batches from a queue
 * and works on them, however briefly, waits for its input.
 */
#include <errno.h>
#include <stdlib.h>

#include "judge/verdict/line_tree.h"
#include "judge/verdict/sampled.h"
#include "judge/verdict/sampled_loops.h"

static bool waits(int state)
{
	return state == TFT_STATE_LOCK || state == TFT_STATE_EVENT || state == TFT_STATE_SLEEP ||
	       state == TFT_STATE_POLL || state == TFT_STATE_PIPE || state == TFT_STATE_SOCKET ||
	       state == TFT_STATE_CHILD;
}

/* Time of the main thread without imports. */
struct main_time {
	double ns, waiting, queue; /* queue: waiting for something to take from one */
	struct tfh_line_sums at;   /* lines where it waits */
};

static int add(struct main_time *m, const struct tfh_start *s, const struct tfh_start_sample *k)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	uint32_t n = tfh_start_frames(s, k->place, frame, TFH_VERDICT_FRAMES);

	if (!n || tfh_sampled_imports(frame, n))
		return 0;
	m->ns += k->ns;
	if (!waits(k->state))
		return 0;
	m->waiting += k->ns;
	m->queue += tfh_role_waits(tfh_sampled_role(k, frame, n)) ? k->ns : 0;
	return tfh_line_sums_add(&m->at, &frame[tfh_place_lead(frame, n)], k->ns);
}

/* The work of all of them takes as long as the main thread waits. */
static void scale(const struct main_time *m, struct tfh_making_seen *others)
{
	for (uint32_t i = 0; i < others->n_work; i++)
		others->work[i].ns *= m->ns / others->ns;
	others->ns = m->ns;
}

static void choose(const struct main_time *m, struct tfh_making_seen *others,
		   struct tfh_pool_wait *out)
{
	const struct tfh_line_sum *most = NULL;
	bool takes = m->queue > TFH_VERDICT_MOST_SHARE * m->waiting;
	double least = takes ? 1 - TFH_BLOCKING_SHARE : TFH_VERDICT_POOL_SHARE;

	if (!others->busy || m->waiting < least * m->ns ||
	    others->ns < TFH_VERDICT_MOST_SHARE * m->waiting)
		return;
	for (size_t i = 0; i < m->at.of.n; i++)
		if (!most || m->at.of.v[i].ns > most->ns)
			most = &m->at.of.v[i];
	if (!most)
		return;
	scale(m, others);
	*out = (struct tfh_pool_wait){.file = most->line.file,
				      .function = most->line.function,
				      .line = most->line.line,
				      .share = m->waiting / m->ns};
}

int tfh_sampled_pool(const struct tfh_start *s, struct tfh_making_seen *others,
		     struct tfh_pool_wait *out)
{
	struct main_time m = {.ns = 0};
	int rc = 0;

	*out = (struct tfh_pool_wait){.file = NULL, .function = ""};
	for (uint32_t i = 0; TFH_DETECT_POOL && i < s->n && !rc; i++)
		rc = add(&m, s, &s->sample[i]);
	if (!rc)
		choose(&m, others, out);
	free(m.at.of.v);
	return rc;
}

int tfh_sampled_carry(const struct tfh_start *from, const struct tfh_start *to,
		      struct tfh_sampled_steps *steps)
{
	uint32_t *step = calloc(to->n ? to->n : 1, sizeof(*step)), at = 0;
	uint32_t first = to->n, last = 0;

	for (uint32_t i = 0; step && steps->steps && i < to->n; i++) {
		while (at + 1 < from->n && from->sample[at + 1].t <= to->sample[i].t)
			at++;
		step[i] = steps->step[at];
		first = step[i] && first > i ? i : first;
		last = step[i] ? i : last;
	}
	free(steps->step);
	steps->step = step;
	steps->first = first;
	steps->last = last;
	return step ? 0 : -ENOMEM;
}
