/* Divides pauses by the samples of their group, within the limits set by the thread's CPU clock. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "judge/facts/sample_groups.h"
#include "judge/stats.h"

/* Shares of a group by its samples, smoothed as if a few more samples with the shares of the less
 * specific group had been taken. */
static void shares(const struct tfh_stack_samples *l, uint32_t at, double part[TFH_AT_COUNT])
{
	const struct tfh_sample_group *g = &l->group[at];
	double all = 0, more;

	memset(part, 0, TFH_AT_COUNT * sizeof(*part));
	if (g->parent != TFH_NO_GROUP)
		shares(l, g->parent, part);
	for (int i = 0; i < TFH_AT_COUNT; i++)
		all += g->seen[i];
	if (all <= 0)
		return;
	more = g->parent == TFH_NO_GROUP ? 0 : TFH_FACTS_SAMPLE_PRIOR * all / g->samples;
	for (int i = 0; i < TFH_AT_COUNT; i++)
		part[i] = (g->seen[i] + more * part[i]) / (all + more);
}

/* Share of a group's pauses in which the thread was asleep, by its CPU clock. A thread that is
 * ready to run but has no CPU is not asleep: on a crowded machine, each second of running took
 * longer by that delay. */
static double clock_share(const struct tfh_stack_samples *l, const struct tfh_sample_group *g)
{
	double ran = (1 - g->asleep / g->wall) * (1 + l->delay_per_run);

	return fmax(0, fmin(1 - ran, 1));
}

/* The clock's share for a group. A group without clock readings has that of the least general group
 * that has some, which weighs as much as a few samples: what other pauses were like says little
 * about those of which many samples are known. Negative: no group has readings. */
static double clock_of(const struct tfh_stack_samples *l, uint32_t at, double seen)
{
	uint32_t n = !TFH_DETECT_OTHER_PAUSES || l->group[at].wall > 0 ? 0 : l->group[at].samples;

	while (at != TFH_NO_GROUP && l->group[at].wall <= 0)
		at = l->group[at].parent;
	if (at == TFH_NO_GROUP)
		return -1;
	return (TFH_FACTS_SAMPLE_PRIOR * clock_share(l, &l->group[at]) + n * seen) /
	       (TFH_FACTS_SAMPLE_PRIOR + n);
}

/* Share of such pauses in which the thread was asleep. Samples give an upper bound, since the clock
 * does not show every wait for a CPU. But a thread that waits for the GIL wakes up whenever another
 * one releases it, which mostly takes it again at once, and a sample that meets a thread on its way
 * to sleep finds it running. */
static double asleep_share(const struct tfh_stack_samples *l, uint32_t at, const double *part)
{
	const struct tfh_sample_group *g = &l->group[at];
	double seen = 0, n = g->samples + TFH_FACTS_SAMPLE_PRIOR, most, clock;

	for (int i = 0; i < TFH_AT_COUNT; i++)
		seen += tfh_is_asleep(i) ? part[i] : 0;
	most = seen + tfh_share_error(seen, n);
	clock = g->brief ? -1 : clock_of(l, at, seen);
	if (clock < 0)
		return seen;
	return clock < most || part[TFT_STATE_GIL] * 2 > seen ? clock : most < 1 ? most : 1;
}

/* Divides a pause: the CPU clock shows how long the thread was asleep in it, and samples divide
 * both parts further. */
static void divide(const struct tfh_stack_samples *l, uint32_t at, double part[TFH_AT_COUNT])
{
	double seen[2] = {0}, share[2];

	shares(l, at, part);
	share[1] = asleep_share(l, at, part);
	share[0] = 1 - share[1];
	for (int i = 1; i < TFH_AT_COUNT; i++)
		seen[tfh_is_asleep(i)] += part[i];
	part[0] = seen[1] > 0 ? 0 : share[1];
	for (int i = 1; i < TFH_AT_COUNT; i++)
		part[i] = seen[tfh_is_asleep(i)] > 0
				  ? part[i] / seen[tfh_is_asleep(i)] * share[tfh_is_asleep(i)]
				  : 0;
	part[TFT_STATE_RUNNING] += seen[0] > 0 ? 0 : share[0];
}

/* With too few samples: only whether the thread ran, by its CPU clock in such pauses. */
static bool by_clock(const struct tfh_stack_samples *l, uint32_t at, double part[TFH_AT_COUNT])
{
	const struct tfh_sample_group *g = &l->group[at];

	if (!TFH_DETECT_CLOCK_ONLY || g->brief || g->parent == TFH_NO_GROUP || g->wall <= 0)
		return false;
	part[0] = clock_share(l, g);
	part[TFT_STATE_RUNNING] = 1 - part[0];
	return true;
}

/* The pause of a thread that contains [t0, t1); NULL if that was a short one. */
static const struct tfh_sample_pause *pause_at(const struct tfh_sample_line *s, int64_t t0,
					       int64_t t1)
{
	size_t lo = TFH_BISECT(i, 0, s->pause.n, s->pause.v[i].t1 <= t0);

	return lo < s->pause.n && s->pause.v[lo].t0 < t1 ? &s->pause.v[lo] : NULL;
}

/* The group of the pause that contains [t0, t1); TFH_NO_GROUP: none. */
static uint32_t group_at(const struct tfh_stack_samples *l, uint32_t thread, int64_t t0, int64_t t1)
{
	const struct tfh_sample_pause *p;

	if (!l || !l->any || thread >= l->feed->n_threads)
		return TFH_NO_GROUP;
	p = pause_at(&l->line[thread], t0, t1);
	return p ? p->group : tfh_group_of_brief(l, thread);
}

bool tfh_stack_samples_divide(const struct tfh_stack_samples *l, uint32_t thread, int64_t t0,
			      int64_t t1, struct tfh_seen *out)
{
	uint32_t at = group_at(l, thread, t0, t1), top;

	memset(out, 0, sizeof(*out));
	if (at == TFH_NO_GROUP)
		return false;
	for (top = at; l->group[top].parent != TFH_NO_GROUP;)
		top = l->group[top].parent;
	out->feeds = l->group[at].feeds;
	if (l->group[top].samples < TFH_FACTS_SAMPLE_LEAST)
		return by_clock(l, at, out->part);
	divide(l, at, out->part);
	return true;
}

size_t tfh_stack_samples_count(const struct tfh_stack_samples *l)
{
	return l ? l->sample.n : 0;
}

struct tfh_seen_sample tfh_stack_samples_at(const struct tfh_stack_samples *l, size_t i)
{
	const struct tfh_stack_sample *k = &l->sample.v[i];
	uint8_t feeds = k->group < TFH_IN_CALL ? (uint8_t)l->group[k->group].feeds : TFH_FEEDS_NOT;

	return (struct tfh_seen_sample){.t = k->t,
					.ns = (double)k->ns,
					.place = k->place,
					.resumes = k->resumes,
					.thread = k->thread,
					.state = k->state,
					.at = k->at,
					.loops = k->loops,
					.copies = k->line && (k->copy || feeds),
					.inside = k->group == TFH_IN_CALL,
					.pauses = k->group < TFH_IN_CALL ? k->group + 1 : 0,
					.feeds = feeds,
					.op = k->released && l->torch && !l->driver};
}

size_t tfh_samples_within_count(const struct tfh_stack_samples *l)
{
	return l ? l->within.n : 0;
}

struct tfh_seen_sample tfh_samples_within_at(const struct tfh_stack_samples *l, size_t i)
{
	const struct tfh_stack_sample *k = &l->within.v[i];

	return (struct tfh_seen_sample){.t = k->t,
					.ns = (double)k->ns,
					.place = k->place,
					.thread = k->thread,
					.state = k->state,
					.at = k->state,
					.inside = true};
}

/* ---- the part of some samples ---- */

struct tfh_sample_part {
	const struct tfh_stack_samples *of;
	double seen[TFH_FACTS_SAMPLE_GROUPS][TFH_AT_COUNT]; /* as struct tfh_sample_group's */
};

struct tfh_sample_part *tfh_sample_part_new(const struct tfh_stack_samples *l)
{
	struct tfh_sample_part *p = calloc(1, sizeof(*p));

	if (p)
		p->of = l;
	return p;
}

void tfh_sample_part_add(struct tfh_sample_part *p, size_t i)
{
	const struct tfh_stack_sample *k = &p->of->sample.v[i];
	uint32_t at = k->group == TFH_NO_GROUP ? tfh_group_of_brief(p->of, k->thread) : k->group;

	for (; at < TFH_IN_CALL; at = p->of->group[at].parent)
		p->seen[at][k->at] += (double)k->ns;
}

/* Share of a group's samples in a state that belong to the part, smoothed like the shares. */
static double part_of_state(const struct tfh_sample_part *p, uint32_t at, int state)
{
	const struct tfh_sample_group *g = &p->of->group[at];
	double wider, more = 0, all = 0;

	if (g->parent == TFH_NO_GROUP)
		return g->seen[state] > 0 ? fmin(1, p->seen[at][state] / g->seen[state]) : 0;
	wider = part_of_state(p, g->parent, state);
	for (int i = 0; i < TFH_AT_COUNT; i++)
		all += g->seen[i];
	if (g->samples)
		more = TFH_FACTS_SAMPLE_PRIOR * all / g->samples;
	return g->seen[state] + more > 0
		       ? fmin(1, (p->seen[at][state] + more * wider) / (g->seen[state] + more))
		       : wider;
}

double tfh_sample_part_of(const struct tfh_sample_part *p, uint32_t thread, int64_t t0, int64_t t1)
{
	struct tfh_seen seen;
	double part = 0;
	uint32_t at = group_at(p->of, thread, t0, t1);

	if (at == TFH_NO_GROUP || !tfh_stack_samples_divide(p->of, thread, t0, t1, &seen))
		return 0;
	for (int i = 0; i < TFH_AT_COUNT; i++)
		if (seen.part[i] > 0)
			part += seen.part[i] * part_of_state(p, at, i);
	return part;
}
