/* Which steps are the slowest, by those of one rank: a step in which ranks wait for each other
 * takes equally long for all of them. What each rank did in these is kept as the digests are
 * read. */
#include <math.h>
#include <stdlib.h>

#include "digest/slow_steps.h"
#include "ranks/ranks_parts.h"

#define USUAL_OF 1024u /* steps that show what is usual */
#define TRIED 8u       /* digests that may have no step */

struct choosing {
	struct tfh_slow_steps slow;
	double usual[USUAL_OF];
	uint32_t n, rank;
};

/* 1: the next rank begins. */
static int look(void *arg, const struct tfh_digest_row *row)
{
	struct choosing *x = arg;
	const struct tfh_slow_step step = {
		.index = row->index, .s = row->dur_s, .t0 = (int64_t)(row->start_s * 1e9)};

	if (row->segment == TFH_SEGMENT_STARTUP || row->segment == TFH_SEGMENT_WARMUP ||
	    row->segment == TFH_SEGMENT_COMPILE)
		return 0;
	if (x->n && row->rank != x->rank)
		return 1;
	x->rank = row->rank;
	if (x->n < USUAL_OF)
		x->usual[x->n++] = row->dur_s;
	tfh_slow_steps_add(&x->slow, TFH_RANKS_STEPS, &step);
	return 0;
}

void tfh_ranks_choose_steps(struct tfh_ranks *job, char *const *digest, uint32_t n,
			    const uint64_t *step)
{
	struct choosing *x = calloc(1, sizeof(*x));

	job->usual_s = NAN;
	for (uint32_t i = 0; x && !x->n && i < n && i < TRIED; i++) {
		struct tfh_run_digest *d;
		struct tfh_err err = {0};
		if (tfh_digest_open(digest[i], &d, &err))
			continue;
		/* Errors are ignored: what was read of a damaged digest will do here, and the full
		 * read reports the damage. */
		tfh_digest_each_step(d, look, x, &err);
		tfh_digest_close(d);
	}
	if (x && x->n)
		job->usual_s = tfh_ranks_median(x->usual, x->n);
	/* In order of time: tfh_ranks_keep_exchange() relies on it. */
	if (x)
		tfh_slow_steps_sort(&x->slow);
	for (uint32_t i = 0; x && !step && i < x->slow.n; i++)
		job->slowest[job->steps_kept++].index = x->slow.v[i].index;
	if (step) {
		job->slowest[job->steps_kept++].index = *step;
		job->asked = true;
	}
	free(x);
}

/* Of each communicator the first exchange and the last one. */
static void keep(struct tfh_ranks_in_step *in, const struct tfh_ranks_sample *s)
{
	struct tfh_ranks_sample *first = NULL, *last = NULL;

	for (uint32_t i = 0; i < in->samples; i++)
		if (in->sample[i].member == s->member) {
			last = first ? &in->sample[i] : NULL;
			first = first ? first : &in->sample[i];
		}
	if ((first && first->number == s->number) || (last && last->number == s->number))
		return;
	if (last) {
		if (s->number > last->number)
			*last = *s;
		else if (s->number < first->number)
			*first = *s;
	} else if (in->samples < TFH_RANKS_IN_STEP) {
		last = &in->sample[in->samples++];
		*last = *s;
		if (first && s->number < first->number) {
			*last = *first;
			*first = *s;
		}
	}
}

/* Exchanges mostly come in order of time, as the steps do. */
void tfh_ranks_keep_exchange(struct tfh_ranks_rank *r, uint32_t steps, uint32_t *at,
			     const struct tfh_ranks_sample *s)
{
	const struct tfh_ranks_in_step *in = r->in_step;
	uint32_t i = *at;

	while (i && (!(in[i - 1].wall_s > 0) || in[i - 1].end_ns > s->enter_ns))
		i--;
	while (i < steps && (!(in[i].wall_s > 0) || in[i].end_ns <= s->enter_ns))
		i++;
	for (*at = i; i < steps && in[i].begin_ns < s->leave_ns; i++)
		if (in[i].wall_s > 0 && in[i].end_ns > s->enter_ns)
			keep(&r->in_step[i], s);
}
