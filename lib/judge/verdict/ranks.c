/*
 * Several ranks on one host. Each is judged by itself, the one that the others wait for comes
 * first, and the gain of removing a cost is limited by what every rank needs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/verdict/verdict.h"
#include "judge/generations.h"
#include "judge/result_make.h"

/* Finds the process of each rank with the most calls (workers of data loaders have the same
 * rank). */
uint32_t tfh_ranks_of(const struct tfh_feed *f, uint32_t process[TFH_VERDICT_RANKS])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n_processes; i++) {
		const struct tfh_process *p = &f->processes[i];
		uint32_t k = 0;
		if (p->rank < 0 || (!p->has_gpu && !p->has_tf) ||
		    tfh_generations_other(f->generations, i))
			continue;
		while (k < n && f->processes[process[k]].rank != p->rank)
			k++;
		if (k == TFH_VERDICT_RANKS)
			continue;
		if (k == n)
			process[n++] = i;
		else if (p->events > f->processes[process[k]].events)
			process[k] = i;
	}
	return n;
}

static int by_rank(const void *a, const void *b)
{
	const struct tfh_rank *x = a, *y = b;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* For a rank that was not replayed: its step without waits for other ranks and without that
 * part. */
static double without(const struct tfh_rank *k, enum tfh_remove what)
{
	enum tfh_part part = tfh_remove_part(what);

	if (part == TFH_PART_COUNT)
		return k->breakdown[TFH_PART_COMPUTE] + k->breakdown[TFH_PART_UNATTRIBUTED];
	if (part == TFH_PART_COMMUNICATION)
		return k->step_s - k->breakdown[part];
	return k->step_s - k->jitter_s - k->breakdown[part];
}

static void sum_up(struct tfh_rank *k, const struct tfh_feed *f, const struct tfh_matches *matches,
		   const struct tfh_result *r, uint32_t number)
{
	const struct tfh_process *p = &f->processes[r->process];

	*k = (struct tfh_rank){.rank = p->rank < 0 ? (int32_t)number : p->rank,
			       .process = r->process,
			       .host = p->host,
			       .cls = r->verdict.cls,
			       .cause = r->verdict.cause,
			       .tier = r->verdict.tier,
			       .share = r->verdict.share,
			       .steps = r->steps.count,
			       .all_steps = r->steps.total,
			       .exchanges = r->exchanges,
			       .jitter_s = r->jitter_s,
			       .late_s = tfh_matches_late(matches, r->process) / 1e9,
			       .held_s = tfh_matches_held(matches, r->process) / 1e9};
	for (int i = 0; i < TFH_PART_COUNT; i++) {
		k->breakdown[i] = r->breakdown[i].s_per_step;
		k->step_s += k->breakdown[i];
	}
}

/* Whether exchanges of several ranks were matched, or at least called for. */
static bool matched(const struct tfh_rank *k, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (k[i].exchanges || k[i].jitter_s > 0 || k[i].late_s > 0 || k[i].held_s > 0)
			return true;
	return false;
}

/* Time that a rank spends on its own work. Of ranks that wait for each other, the one that waits
 * least is to blame; if no exchange was matched, the one whose exchanges take least. */
static double own_time(const struct tfh_rank *k, bool matched)
{
	return k->step_s - (matched ? k->jitter_s : k->breakdown[TFH_PART_COMMUNICATION]);
}

/* Finds stragglers: among three or more ranks, one that arrives far later than usual; or one that
 * alone makes all others wait, longer than any other does. A median of few ranks is unreliable, and
 * one of two says nothing. */
static void find_stragglers(struct tfh_rank *k, uint32_t n)
{
	double v[TFH_VERDICT_RANKS];

	for (uint32_t i = 0; i < n; i++)
		v[i] = k[i].late_s;
	double median = tfh_quantile(v, n, 0.5);
	for (uint32_t i = 0; i < n; i++)
		v[i] = fabs(k[i].late_s - median);
	double mad = tfh_quantile(v, n, 0.5);
	for (uint32_t i = 0; i < n; i++) {
		double over = k[i].late_s - median,
		       least = TFH_VERDICT_STRAGGLER_SHARE * k[i].step_s, next = 0;
		for (uint32_t j = 0; j < n; j++)
			next = j != i ? fmax(next, k[j].held_s) : next;
		k[i].straggler = k[i].held_s - next > least ||
				 (n >= TFH_VERDICT_STRAGGLER_RANKS && over > least &&
				  TFH_MAD_Z * over > TFH_VERDICT_STRAGGLER_Z * mad);
	}
}

/* Limits a gain: the step takes as long as the slowest rank needs after the removal. */
static void limit(struct tfh_result *r, const struct tfh_rank *k, struct tfh_result *const *of,
		  uint32_t n)
{
	for (uint32_t i = 0; i < r->n_whatif; i++) {
		struct tfh_whatif *w = &r->whatif[i];
		double need = 0, was = w->high_s;
		for (uint32_t j = 0; j < n; j++) {
			double own = of[j]->need_s[w->remove];
			if (of[j] != r)
				need = fmax(need, isnan(own) ? without(&k[j], w->remove) : own);
		}
		if (!(need > 0) || isnan(w->step_s))
			continue;
		double step = w->step_s * w->speedup;
		if (need > w->step_s) {
			double more = need / w->step_s;
			w->step_s = fmin(need, step);
			w->low_s = fmin(w->low_s * more, step);
			w->high_s = fmin(was * more, step);
			w->speedup = step / w->step_s;
		}
	}
}

/* Without device times the needs of the others are unknown: the time that one rank saves may become
 * a wait for them. */
static void widen(struct tfh_whatif *w, double step)
{
	w->step_s = w->speedup = NAN;
	w->high_s = step;
}

const struct tfh_rank *tfh_rank_waited_for(const struct tfh_result *r)
{
	const struct tfh_rank *late = NULL;

	for (uint32_t i = 0; i < r->n_rank && r->steady.cause == TFH_CAUSE_COMMUNICATION_JITTER;
	     i++)
		if (r->rank[i].straggler && (!late || r->rank[i].held_s > late->held_s))
			late = &r->rank[i];
	return late && late->process != r->process ? late : NULL;
}

/* Without the wait for a late rank, a step takes its remaining time, but no less than that rank's
 * own steps take; a fix may leave a part. */
static void without_late(struct tfh_result *r, const struct tfh_rank *late)
{
	double step = tfh_mean_step_s(r), own = late->step_s < step ? late->step_s : 0;

	for (uint32_t i = 0; i < r->n_whatif; i++) {
		struct tfh_whatif *w = &r->whatif[i];
		if (w->remove != TFH_REMOVE_COMMUNICATION || w->no_bound)
			continue;
		w->about_s = fmin(fmax(step - r->jitter_s, own), step);
		w->high_s = fmin(w->about_s + TFH_PREDICT_LEFT_SHARE * step, step);
		w->saved_s = (step - w->about_s) * (double)r->steps.total;
	}
}

static void limit_host_only(struct tfh_result *r)
{
	double step = tfh_mean_step_s(r);

	for (uint32_t i = 0; i < r->n_whatif; i++)
		widen(&r->whatif[i], step);
	widen(&r->uncrowded, step);
	for (uint32_t i = 0; i < r->n_place; i++)
		widen(&r->place[i].gain, step);
}

/* What the other ranks compute, in seconds per step. */
static double others_compute(const struct tfh_rank *k, uint32_t n, uint32_t but)
{
	double v[TFH_VERDICT_RANKS];
	uint32_t m = 0;

	for (uint32_t i = 0; i < n; i++)
		if (i != but)
			v[m++] = k[i].breakdown[TFH_PART_COMPUTE];
	return tfh_quantile(v, m, 0.5);
}

/* If the judged rank waits for a late one, its own steps do not show the reason: the verdict's line
 * is the line at which the late rank is late. */
static void name_late(struct tfh_result *out, struct tfh_result *const *r, uint32_t n)
{
	const struct tfh_rank *late = out->verdict.cause == TFH_CAUSE_COMMUNICATION_JITTER
					      ? tfh_rank_waited_for(out)
					      : NULL;

	for (uint32_t i = 0; i < n && late; i++)
		if (r[i]->process == late->process && r[i]->late.file)
			out->found.line = r[i]->late;
	if (late && out->steady.tier == 'C')
		without_late(out, late);
}

int tfh_join_ranks(const struct tfh_feed *f, const struct tfh_matches *matches,
		   struct tfh_result **r, uint32_t n, struct tfh_result **out)
{
	uint32_t best = 0;
	struct tfh_rank *k = calloc(n, sizeof(*k));

	if (!k)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		sum_up(&k[i], f, matches, r[i], i);
	bool known = matched(k, n);
	for (uint32_t i = 1; i < n; i++)
		if (own_time(&k[i], known) > own_time(&k[best], known))
			best = i;
	*out = r[best];
	if (n > 1) {
		find_stragglers(k, n);
		(*out)->found.unnumbered = f->processes[r[0]->process].rank < 0 ? n : 0;
		if ((*out)->steady.tier == 'C')
			limit_host_only(*out);
		else
			limit(*out, k, r, n);
		(*out)->found.others_compute_s = others_compute(k, n, best);
		qsort(k, n, sizeof(*k), by_rank);
		(*out)->rank = tfh_result_alloc(*out, n, sizeof(*k));
		if ((*out)->rank) {
			memcpy((*out)->rank, k, n * sizeof(*k));
			(*out)->n_rank = n;
		}
		name_late(*out, r, n);
	}
	free(k);
	return 0;
}
