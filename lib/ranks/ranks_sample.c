/* The anchors of a digest: a sample of each rank's exchanges, and the last one of each
 * communicator. */
#include <errno.h>
#include <stdlib.h>

#include "ranks/ranks_parts.h"

struct sampling {
	struct tfh_ranks_rank *rank; /* by number of DRNK */
	uint32_t ranks, steps;
	uint32_t of, at; /* the rank of the last anchor, and its next chosen step */
};

static struct tfh_ranks_member *member_of(struct tfh_ranks_rank *r, uint64_t key)
{
	for (uint32_t i = 0; i < r->members; i++)
		if (r->member[i].key == key)
			return &r->member[i];
	if (r->members == TFH_RANKS_COMMS)
		return NULL;
	r->member[r->members] = (struct tfh_ranks_member){.key = key};
	return &r->member[r->members++];
}

/* As in lib/digest/digest_anchors.c: numbers that are kept are multiples of 2^k, so ranks have
 * samples in common, whatever their k. */
static void thin_out(struct tfh_ranks_rank *r)
{
	uint32_t most = 0, n = 0;

	for (uint32_t i = 1; i < r->members; i++)
		if (r->member[i].kept > r->member[most].kept)
			most = i;
	struct tfh_ranks_member *m = &r->member[most];
	m->mask = m->mask * 2 + 1;
	m->kept = 0;
	for (uint32_t i = 0; i < r->samples; i++) {
		bool own = r->sample[i].member == most;
		if (own && r->sample[i].number & m->mask)
			continue;
		m->kept += own;
		r->sample[n++] = r->sample[i];
	}
	r->samples = n;
}

static int take(void *arg, const struct tfh_digest_anchor *a)
{
	struct sampling *x = arg;
	struct tfh_ranks_rank *r = &x->rank[a->rank];
	struct tfh_ranks_member *m = member_of(r, a->key);

	if (!m || a->enter_ns > INT64_MAX / 4 || a->leave_ns > INT64_MAX / 4)
		return 0;
	if (a->number > m->last) {
		m->last = a->number;
		m->last_ns = (int64_t)a->enter_ns;
	}
	const struct tfh_ranks_sample sample = {(int64_t)a->enter_ns, (int64_t)a->leave_ns,
						a->number, (uint8_t)(m - r->member)};
	x->at = x->of == a->rank ? x->at : 0;
	x->of = a->rank;
	tfh_ranks_keep_exchange(r, x->steps, &x->at, &sample);
	if (!r->sample)
		r->sample = malloc(TFH_RANKS_SAMPLES * sizeof(*r->sample));
	if (!r->sample)
		return -ENOMEM;
	while (!(a->number & m->mask) && r->samples == TFH_RANKS_SAMPLES && m->mask != UINT32_MAX)
		thin_out(r);
	if (a->number & m->mask || r->samples == TFH_RANKS_SAMPLES)
		return 0;
	r->sample[r->samples++] = sample;
	m->kept++;
	return 0;
}

int tfh_ranks_take_anchors(struct tfh_run_digest *d, uint32_t steps, struct tfh_ranks_rank *rank,
			   struct tfh_err *err)
{
	const struct tfh_digest_part *p = tfh_digest_part_of(d, TFT_DCOM);
	struct sampling x = {
		.rank = rank, .ranks = tfh_digest_part_of(d, TFT_DRNK)->n, .steps = steps};
	const struct tfh_digest_comm *row = p->row;

	for (uint32_t i = 0; i < p->n; i++) {
		struct tfh_ranks_member *m =
			row[i].rank < x.ranks ? member_of(&rank[row[i].rank], row[i].key) : NULL;
		if (!m)
			continue;
		m->ranks = row[i].ranks;
		m->collectives = row[i].collectives;
		m->messages = row[i].messages;
	}
	return tfh_digest_each_anchor(d, take, &x, err);
}
