/*
 * Caches of tf.data that keep nothing. A cache in memory is only kept once an iterator has read its
 * input to the end; with take() after it, every epoch makes all elements again. Then what is
 * before the cache is called as often as the cache itself, and not in the first epoch only.
 */
#include <string.h>

#include "judge/verdict/verdict.h"

/* The first epoch's part of the batches that were trained with; 1: there is only one epoch. */
static double first_part(const struct tfh_accounts *accounts)
{
	const struct tfh_facts *facts = accounts->facts;
	const struct tfh_loops *loops = accounts->loops;
	uint64_t first = 0, all = 0;

	for (size_t i = 0; i < facts->series.n && loops->train_group >= 0; i++) {
		uint64_t n = facts->series.v[i].count;
		if (loops->group_of[i] != (uint32_t)loops->train_group)
			continue;
		first = first ? first : n;
		all += n;
	}
	return all ? (double)first / (double)all : 1;
}

/* Time of the stages before a cache in training steps, ns; *calls: the most of any of them that the
 * cache calls itself. */
static int64_t time_before(const struct tfh_accounts *accounts, size_t cache, uint64_t *calls)
{
	const struct tfh_facts *facts = accounts->facts;
	int64_t ns = 0;

	*calls = 0;
	for (size_t i = 0; i < facts->stage.n; i++) {
		const struct tfh_stage_use *s = &facts->stage.v[i];
		int32_t up = s->parent;
		if (up == (int32_t)cache && s->time.calls > *calls)
			*calls = s->time.calls;
		while (up >= 0 && up != (int32_t)cache)
			up = facts->stage.v[up].parent;
		ns += up >= 0 ? accounts->stage[i].time.self : 0;
	}
	return ns;
}

double tfh_uncached_s(const struct tfh_accounts *accounts)
{
	const struct tfh_facts *facts = accounts->facts;
	double first = first_part(accounts), most = 0;
	uint64_t calls;

	if (first > TFH_VERDICT_MOST_SHARE || !accounts->judged_steps)
		return 0;
	for (size_t i = 0; i < facts->stage.n; i++) {
		const struct tfh_stage_use *s = &facts->stage.v[i];
		if (!strstr(s->type, "CacheImpl") ||
		    2 * accounts->stage[i].time.calls < s->time.calls)
			continue;
		double s_per_step = (double)time_before(accounts, i, &calls) / 1e9 /
				    (double)accounts->judged_steps;
		/* One that was filled would have called them in the first epoch. */
		if (2 * (double)calls > (1 + first) * (double)s->time.calls && s_per_step > most)
			most = s_per_step;
	}
	return most;
}
