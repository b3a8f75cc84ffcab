/*
 * How steps differ: by the number of launches, as shapes of batches differ; in turn, when gradients
 * of several batches are gathered before the weights are updated; and whether the launches of one
 * step repeat inside it, as those of micro-steps do. (Periods of the launch sequence: the repeated
 * kernel signatures of peers' step detection, found here by comparing the sequence with itself.)
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/internal.h"

/* A kind of steps has at least this part of them. */
#define KIND_SHARE 0.05
#define MOST_TURN 64
/* Of the steps, those that are as the period says. */
#define REGULAR 0.95
#define FEWEST_TURNS 4
/* Inside a step: launches of a micro-step, and how much of the step the repetition covers. Layers
 * of a model repeat, too, but its way there and its way back are each less than that. */
#define INNER_LAUNCHES 4
#define INNER_SHARE 0.8
#define INNER_TOKENS 20000

struct entry {
	uint32_t launches;
	double s;
};

static int by_launches(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->launches != y->launches)
		return x->launches < y->launches ? -1 : 1;
	return x->s < y->s ? -1 : x->s > y->s;
}

static int by_count(const void *a, const void *b)
{
	const struct tfh_kind *x = a, *y = b;
	return x->count > y->count ? -1 : x->count < y->count;
}

/* Training windows in order of time. */
static size_t gather(const struct tfh_job *job, struct entry *v)
{
	size_t n = 0;

	for (size_t i = 0; i < job->window.n && i < job->step.n; i++)
		if (tfh_window_counts(&job->window.v[i]))
			v[n++] = (struct entry){job->window.v[i].launches, job->step.v[i].dur_s};
	return n;
}

static void find_kinds(struct tfh_pattern *p, struct entry *v, size_t n)
{
	double total = 0;

	for (size_t i = 0; i < n; i++)
		total += v[i].s;
	qsort(v, n, sizeof(*v), by_launches);
	for (size_t i = 0, j; i < n; i = j) {
		struct tfh_kind k = {.launches = v[i].launches};
		double s = 0;
		for (j = i; j < n && v[j].launches == v[i].launches; j++)
			s += v[j].s;
		k.count = j - i;
		k.median_s = v[i + (j - i) / 2].s;
		k.time_share = total > 0 ? fmin(1, s / total) : NAN;
		if ((double)k.count < KIND_SHARE * (double)n)
			continue;
		if (p->n_kind == TFH_KINDS) { /* too many to be kinds */
			p->n_kind = 0;
			return;
		}
		p->kind[p->n_kind++] = k;
	}
	qsort(p->kind, p->n_kind, sizeof(*p->kind), by_count);
}

/* The least number of steps after which the numbers of launches come again; 1: they do not. */
static uint32_t turn_of(const struct entry *v, size_t n)
{
	for (size_t m = 2; m <= MOST_TURN && m * FEWEST_TURNS <= n; m++) {
		size_t same = 0, once = 0;
		for (size_t i = 0; i + m < n; i++) {
			same += v[i].launches == v[i + m].launches;
			once += v[i].launches == v[i + 1].launches;
		}
		if ((double)once >= REGULAR * (double)(n - m) && m == 2 && once == n - m)
			return 1;
		if ((double)same >= REGULAR * (double)(n - m))
			return (uint32_t)m;
	}
	return 1;
}

/* The longest stretch of v that repeats after p, and how many times p it covers. */
static size_t repeats(const uint64_t *v, size_t n, size_t p)
{
	size_t run = 0, best = 0;

	for (size_t i = 0; i + p < n; i++) {
		run = v[i] == v[i + p] ? run + 1 : 0;
		if (run > best)
			best = run;
	}
	best = best ? best + p : 0;
	return (double)best >= INNER_SHARE * (double)n ? best / p : 0;
}

/* Of a step in the middle of those whose launches are known one by one. */
static uint32_t inner_of(const struct tfh_job *job)
{
	size_t known = 0, at = 0, n = 0, from;
	uint64_t *v;
	uint32_t best = 1;

	if (!job->token.n)
		return 1;
	while (known < job->window.n &&
	       job->window.v[known].t1 <= job->token.v[job->token.n - 1].t1)
		known++;
	for (at = known / 2; at < known && !tfh_window_counts(&job->window.v[at]);)
		at++;
	if (at >= known)
		return 1;
	for (from = 0; from < job->token.n && job->token.v[from].t1 <= job->window.v[at].t0;)
		from++;
	v = malloc(INNER_TOKENS * sizeof(*v));
	for (size_t i = from; v && i < job->token.n && n < INNER_TOKENS &&
			      job->token.v[i].t1 <= job->window.v[at].t1;
	     i++)
		if (job->token.v[i].family == TFH_FAM_LAUNCH ||
		    job->token.v[i].family == TFH_FAM_GRAPH_LAUNCH)
			v[n++] = job->token.v[i].hash;
	for (size_t p = INNER_LAUNCHES; v && p * 2 <= n && best == 1 && n < INNER_TOKENS; p++) {
		size_t k = repeats(v, n, p);
		bool alike = true;
		for (size_t i = 1; i < p; i++)
			alike &= v[n / 4 + i] == v[n / 4];
		if (k >= 2 && !alike)
			best = (uint32_t)k;
	}
	free(v);
	return best;
}

static void remark(struct tfh_result *r, const char *text)
{
	if (r->n_remark < sizeof(r->remark) / sizeof(r->remark[0]))
		r->remark[r->n_remark++] = text;
}

static void tell(struct tfh_job *job, struct tfh_result *r)
{
	const struct tfh_pattern *p = &r->pattern;

	if (p->per_update > 1)
		remark(r, tfh_text(job,
				   "every %u batches the launches come again: gradients of several "
				   "batches are gathered for one update, or steps take turns",
				   p->per_update));
	else if (p->n_kind > 1)
		remark(r, tfh_text(job,
				   "steps are of %u kinds: %" PRIu64 " with %u launches (%.2f ms), "
				   "%" PRIu64 " with %u (%.2f ms)%s",
				   p->n_kind, p->kind[0].count, p->kind[0].launches,
				   1e3 * p->kind[0].median_s, p->kind[1].count, p->kind[1].launches,
				   1e3 * p->kind[1].median_s, p->n_kind > 2 ? ", ..." : ""));
	if (p->inner > 1)
		remark(r, tfh_text(job,
				   "the launches of a step repeat %u times inside it: micro-steps",
				   p->inner));
	if (p->recompiles)
		remark(r, tfh_text(job,
				   "%" PRIu64 " module(s) were loaded or compiled after start-up, "
				   "%.1f ms in all: new shapes or functions traced anew",
				   p->recompiles, 1e3 * p->recompile_s));
}

void tfh_find_patterns(struct tfh_job *job, struct tfh_result *r)
{
	struct tfh_pattern *p = &r->pattern;
	struct entry *v = malloc((job->window.n + 1) * sizeof(*v));
	size_t n = v ? gather(job, v) : 0;

	p->per_update = p->inner = 1;
	p->recompiles = job->recompiles;
	p->recompile_s = (double)job->recompile_ns / 1e9;
	if (job->launches) {
		p->per_update = turn_of(v, n);
		find_kinds(p, v, n);
		p->inner = inner_of(job);
	}
	free(v);
	tell(job, r);
}
