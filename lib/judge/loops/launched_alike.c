/* What is launched after the batches of each iterator: the loops of a curriculum, whose stages have
 * data sets of their own, launch the same for each batch, while an evaluation launches no backward
 * pass and no update. */
#include <errno.h>
#include <math.h>

#include "judge/loops/step_clock.h"

enum { HALF = TFH_LOOPS_LAUNCHED_BUCKETS / 2 };

/* Functions whose names say that they train are in the upper half. */
static uint8_t bucket_of(const struct tfh_facts *facts, const struct tfh_token_kind *k)
{
	const struct tfh_feed *f = facts->feed;

	if (k->family != TFH_FAM_LAUNCH)
		return (uint8_t)(k->what % HALF);
	return (uint8_t)(k->bucket % HALF +
			 (tfh_name_trains(f->name(f->arg, facts->process, TFT_NAME_FUNCTION,
						  k->what, NULL, NULL))
				  ? HALF
				  : 0));
}

static void count(const struct tfh_facts *facts, const struct tfh_loops *loops,
		  const uint8_t *bucket, struct tfh_launched *v)
{
	size_t at = 0;

	TFH_EACH (i, facts->batch.n) {
		const struct tfh_boundary *t = &facts->batch.v[i];
		int64_t end = i + 1 < facts->batch.n ? t[1].t1 : t->t1;
		struct tfh_launched *x = &v[tfh_group_of(loops, t)];
		/* What follows an iterator's last batch may be anything. */
		bool counts = !t->end && facts->series.v[t->series].last != i;
		while (at < facts->token.n && facts->token.v[at].t0 < t->t1)
			at++;
		x->batches += counts && at < facts->token.n;
		for (; at < facts->token.n && facts->token.v[at].t0 < end; at++) {
			const struct tfh_token *k = &facts->token.v[at];
			if (!counts || !tfh_is_launch(tfh_kind_of(facts, k)))
				continue;
			x->n[bucket[k->kind]]++;
			x->all++;
		}
	}
}

int tfh_count_launched(const struct tfh_facts *facts, const struct tfh_loops *loops,
		       struct tfh_launched **out)
{
	uint8_t *bucket = tfh_big_array(facts->kind.n, sizeof(*bucket));
	bool room;

	*out = tfh_big_array(loops->group.n, sizeof(**out));
	room = *out && bucket;
	for (size_t i = 0; room && i < facts->kind.n; i++)
		if (tfh_is_launch(&facts->kind.v[i]))
			bucket[i] = bucket_of(facts, &facts->kind.v[i]);
	if (room)
		count(facts, loops, bucket, *out);
	tfh_big_free(bucket);
	return room ? 0 : -ENOMEM;
}

/* Launches per batch of the functions from `from` on, and how many of them both have. */
static double both(const struct tfh_launched *a, const struct tfh_launched *b, int from,
		   double *most)
{
	double n = 0, x = 0, y = 0;

	for (int i = from; i < TFH_LOOPS_LAUNCHED_BUCKETS; i++) {
		double p = (double)a->n[i] / (double)a->batches,
		       q = (double)b->n[i] / (double)b->batches;
		n += fmin(p, q);
		x += p;
		y += q;
	}
	*most = fmax(x, y);
	return n;
}

bool tfh_launched_alike(const struct tfh_launched *a, const struct tfh_launched *b)
{
	double most, n;

	if (!a->batches || !b->batches)
		return false;
	n = both(a, b, 0, &most);
	if (most >= TFH_LOOPS_STEP_LAUNCHES && n >= TFH_CYCLE_SURE_SHARE * most)
		return true;
	n = both(a, b, HALF, &most);
	return most >= 1 && n >= TFH_LOOPS_ALIKE_SHARE * most;
}
