/* Which parts of the run were recorded, if records were discarded to limit the recording's size. */
#include "judge/facts/facts.h"

int64_t tfh_recorded_ns(const struct tfh_facts *facts, int64_t t0, int64_t t1)
{
	const struct tfh_feed *f = facts->feed;
	int64_t ns = t1 - t0;

	for (uint32_t i = 0; i < f->n_discarded; i++) {
		const struct tfh_discarded_span *s = &f->discarded[i];
		int64_t a = s->t0 > t0 ? s->t0 : t0, b = s->t1 < t1 ? s->t1 : t1;
		if (s->process == facts->process && b > a)
			ns -= b - a;
	}
	/* Spans of a damaged file may overlap. */
	return ns > 0 || t1 < t0 ? ns : 0;
}

int64_t tfh_discarded_from(const struct tfh_facts *facts, int64_t t0, int64_t t1)
{
	const struct tfh_feed *f = facts->feed;

	for (uint32_t i = 0; i < f->n_discarded; i++) {
		const struct tfh_discarded_span *s = &f->discarded[i];
		if (s->process == facts->process && s->t0 < t1 && s->t1 > t0)
			return s->t0;
	}
	return INT64_MAX;
}
