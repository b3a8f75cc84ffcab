/* Computes the difference of two sides. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diff/estimate.h"
#include "diff/listed.h"

#define CHANCE 0.05

const char *tfh_diff_part_name(int part)
{
	static const char *const others[] = {"compute", "unattributed", "step"};

	return part < TFH_CAUSE_COUNT ? tfh_cause_name((enum tfh_cause)part)
				      : others[part - TFH_CAUSE_COUNT];
}

/* ---- a side ---- */

/* With three or more runs, their spread gives the error of the mean. With fewer runs, the error
 * comes from their steps and from how much runs usually differ: `apart`, a standard deviation in
 * seconds, for each run. */
static void join_runs(const struct tfh_diff_means *run, const double *apart, uint32_t n,
		      struct tfh_diff_means *out)
{
	out->df = 0;
	for (uint32_t i = 0; i < n; i++)
		out->df += run[i].df;
	if (n >= TFH_DIFF_SPREAD_RUNS)
		out->df = n - 1;
	for (int p = 0; p < TFH_DIFF_PARTS; p++) {
		double within = 0, between = 0;
		out->mean_s[p] = 0;
		for (uint32_t i = 0; i < n; i++)
			out->mean_s[p] += run[i].mean_s[p] / n;
		for (uint32_t i = 0; i < n; i++) {
			double off = run[i].mean_s[p] - out->mean_s[p];
			between += n > 1 ? off * off / (n - 1) : 0;
			within += (run[i].var[p] + apart[i] * apart[i]) / n;
		}
		/* A run with too few steps has NAN, which fmax() would drop. */
		bool spread = n >= TFH_DIFF_SPREAD_RUNS || between > within;
		out->var[p] = (spread ? between : within) / n;
	}
}

/* Means of each run of a side, and how much runs usually differ: in usual steps, and in all
 * steps. */
struct side_means {
	struct tfh_diff_means *usual, *all;
	double *apart, *apart_all;
};

static void add_run(struct side_means *m, uint32_t i, const struct tfh_step_blocks *b,
		    const struct tfh_run_digest *d, bool same_run)
{
	double waited = tfh_digest_number(d, "quality.run_delay");

	tfh_means_of(b->usual_s, b->n, &m->usual[i]);
	tfh_means_of(b->mean_s, b->n, &m->all[i]);
	double step = m->usual[i].mean_s[TFH_DIFF_STEP], all = m->all[i].mean_s[TFH_DIFF_STEP];
	/* The effect of waiting for processors. It is not measured in short runs; there, the time
	 * that long steps take beyond usual ones is as good an estimate. */
	double disturbed = isnan(waited) ? all - step : waited * all;
	/* Usual steps are the middle half of all steps. */
	m->apart[i] = same_run ? 0 : fmax(TFH_DIFF_RUN_SHARE * step, disturbed / 2);
	m->apart_all[i] = same_run ? 0 : fmax(m->apart[i], disturbed);
}

static int read_runs(struct tfh_diff_side *s, struct side_means *m, bool same_run,
		     struct tfh_step_blocks *blocks, struct tfh_err *err)
{
	s->steps = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		int rc = tfh_blocks_read(s->digest[i], s->from_s, s->to_s, blocks, err);
		if (rc)
			return rc;
		if (!blocks->steps)
			return tfh_err_set(
				err, -ENODATA, "%s: no judged step%s; `tfhook report` says why",
				s->name,
				s->from_s > 0 || isfinite(s->to_s) ? " between these times" : "");
		s->steps += blocks->steps;
		s->crowded |=
			!same_run && s->n < TFH_DIFF_SPREAD_RUNS &&
			tfh_digest_number(s->digest[i], "quality.run_delay") > TFH_CROWDED_SHARE;
		add_run(m, i, blocks, s->digest[i], same_run);
	}
	return 0;
}

static int read_side(struct tfh_diff_side *s, bool same_run, struct tfh_err *err)
{
	struct tfh_step_blocks *blocks = malloc(sizeof(*blocks));
	struct side_means m = {calloc(s->n, sizeof(*m.usual)), calloc(s->n, sizeof(*m.all)),
			       calloc(s->n, sizeof(*m.apart)), calloc(s->n, sizeof(*m.apart_all))};
	int rc = -ENOMEM;

	if (blocks && m.usual && m.all && m.apart && m.apart_all)
		rc = read_runs(s, &m, same_run, blocks, err);
	else
		tfh_err_set(err, rc, "out of memory");
	if (!rc) {
		join_runs(m.usual, m.apart, s->n, &s->usual);
		join_runs(m.all, m.apart_all, s->n, &s->all);
	}
	free(blocks);
	free(m.usual);
	free(m.all);
	free(m.apart);
	free(m.apart_all);
	return rc;
}

/* ---- the difference ---- */

/* Welch's degrees of freedom. */
static double joint_df(const struct tfh_diff_means *a, const struct tfh_diff_means *b, int part)
{
	double x = a->var[part], y = b->var[part], all = x * x / a->df + y * y / b->df;

	return all > 0 ? (x + y) * (x + y) / all : fmin(a->df, b->df);
}

/* `looked`: how many parts are compared together.
 * The chance of an error is for any of them (Bonferroni). */
static struct tfh_diff_part weigh(const struct tfh_diff_means *a, const struct tfh_diff_means *b,
				  int part, uint32_t looked)
{
	struct tfh_diff_part x = {.part = part,
				  .a_s = a->mean_s[part],
				  .b_s = b->mean_s[part],
				  .delta_s = b->mean_s[part] - a->mean_s[part]};
	double df = joint_df(a, b, part), error = sqrt(a->var[part] + b->var[part]);

	x.off_s = tfh_student(CHANCE, df) * error;
	x.found = fabs(x.delta_s) > tfh_student(CHANCE / looked, df) * error;
	return x;
}

static int by_change(const void *a, const void *b)
{
	const struct tfh_diff_part *x = a, *y = b;
	double p = fabs(x->delta_s), q = fabs(y->delta_s);

	return p > q ? -1 : p < q ? 1 : x->part - y->part;
}

static void find_parts(struct tfh_run_diff *d)
{
	const struct tfh_diff_means *a = &d->side[0].usual, *b = &d->side[1].usual;
	uint32_t looked = 0;

	for (int p = 0; p < TFH_DIFF_STEP; p++)
		looked += a->mean_s[p] != 0 || b->mean_s[p] != 0;
	d->step = weigh(a, b, TFH_DIFF_STEP, 1);
	d->n_part = 0;
	for (int p = 0; p < TFH_DIFF_STEP; p++)
		if (a->mean_s[p] != 0 || b->mean_s[p] != 0)
			d->part[d->n_part++] = weigh(a, b, p, looked);
	qsort(d->part, d->n_part, sizeof(*d->part), by_change);
}

static void find_mean(struct tfh_run_diff *d)
{
	const struct tfh_diff_means *a = &d->side[0].all, *b = &d->side[1].all;

	d->mean = weigh(a, b, TFH_DIFF_STEP, 1);
	d->mean_part = 0;
	for (int p = 0; p < TFH_DIFF_STEP; p++) {
		double change = (b->mean_s[p] - a->mean_s[p]) * d->mean.delta_s;
		double most = (b->mean_s[d->mean_part] - a->mean_s[d->mean_part]) * d->mean.delta_s;
		d->mean_part = change > most ? p : d->mean_part;
	}
}

/* Time before the usual steps: before the first call, start-up, and the extra time of the first
 * steps. */
static double before_steps(const struct tfh_run_digest *d)
{
	const struct tfh_digest_part *p = tfh_digest_part_of(d, TFT_DNOD);
	const struct tfh_digest_node *node = p->row;
	double s = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		int kind = node[i].kind - 1;
		if (kind == TFH_BRANCH_BEFORE || kind == TFH_BRANCH_STARTUP ||
		    kind == TFH_BRANCH_SKIP || kind == TFH_BRANCH_FIRST)
			s += (double)node[i].wall_ns * 1e-9;
	}
	return p->n ? s : NAN;
}

static void find_times(struct tfh_run_diff *d)
{
	for (int k = 0; k < 2; k++) {
		const struct tfh_diff_side *s = &d->side[k];
		d->before_s[k] = d->run_s[k] = 0;
		for (uint32_t i = 0; i < s->n; i++) {
			d->before_s[k] += before_steps(s->digest[i]) / s->n;
			d->run_s[k] += tfh_digest_number(s->digest[i], "wall_s") / s->n;
		}
	}
}

int tfh_diff_make(struct tfh_run_diff *d, struct tfh_err *err)
{
	for (int k = 0; k < 2; k++) {
		int rc = read_side(&d->side[k], d->same_run, err);
		if (rc)
			return rc;
	}
	find_parts(d);
	find_mean(d);
	for (int k = 0; k < 2; k++)
		d->before_s[k] = d->run_s[k] = NAN;
	if (d->same_run)
		return 0;
	find_times(d);
	tfh_diff_find_facts(d);
	tfh_diff_find_kernels(d);
	return tfh_diff_find_lines(d, err);
}

bool tfh_diff_is_measured(const struct tfh_run_diff *d)
{
	return isfinite(d->step.off_s);
}
