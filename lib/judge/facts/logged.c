/*
 * What is executed op by op after a step's last function or update, up to an op that writes a
 * summary, makes what is written: a picture and its encoding, a histogram's buckets. It goes away
 * with the summary. A batch ends the search: a program that trains op by op has its whole step
 * before a summary.
 */
#include "base/bisect.h"
#include "judge/facts/facts.h"

int tfh_logged_event(struct tfh_facts *facts, const struct tfh_event *ev, const struct tfh_tag *tag)
{
	int64_t *since = &facts->thread[ev->thread].updated;
	struct tfh_logged *last = facts->logged.n ? &facts->logged.v[facts->logged.n - 1] : NULL;

	if (tag->getnext)
		*since = 0;
	else if (tag->function || tag->updates)
		*since = ev->t1;
	if (!TFH_DETECT_LOGGED_OPS || !tag->log || !*since)
		return 0;
	if (last && last->thread == ev->thread && last->t0 == *since) {
		last->t1 = ev->t1;
		return 0;
	}
	return TFH_PUSH_BIG(facts->logged, ((struct tfh_logged){*since, ev->t1, ev->thread}));
}

bool tfh_is_logged(const struct tfh_facts *facts, const struct tfh_piece *p)
{
	const struct tfh_logged *l = facts->logged.v;
	size_t n = p->eager ? facts->logged.n : 0, at = TFH_BISECT(i, 0, n, l[i].t1 < p->t1);

	return at < n && l[at].thread == p->thread && l[at].t0 <= p->t0;
}

void tfh_end_logged(struct tfh_facts *facts)
{
	for (size_t i = 0; i < facts->longs.n; i++)
		facts->longs.v[i].logs |= tfh_is_logged(facts, &facts->longs.v[i]);
}
