#include "diff/listed.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static double change_of(const struct tfh_diff_item *x)
{
	double a = isnan(x->a_s) ? 0 : x->a_s, b = isnan(x->b_s) ? 0 : x->b_s;

	return fabs(b - a);
}

/* Keeps the list sorted by change. A full list keeps the largest changes. */
static void keep(struct tfh_diff_item *list, uint32_t *n, const struct tfh_diff_item *x)
{
	uint32_t k = *n < TFH_DIFF_ITEMS ? (*n)++ : TFH_DIFF_ITEMS - 1;

	if (k == TFH_DIFF_ITEMS - 1 && *n == TFH_DIFF_ITEMS && list[k].name &&
	    change_of(&list[k]) >= change_of(x))
		return;
	for (; k && change_of(&list[k - 1]) < change_of(x); k--)
		list[k] = list[k - 1];
	list[k] = *x;
}

/* ---- lines ---- */

struct code_time {
	const char *file, *name;
	uint32_t line;
	double s[2], most;
	uint64_t samples[2];
};

static int by_function(const void *a, const void *b)
{
	const struct code_time *x = a, *y = b;
	int order = strcmp(x->file, y->file);

	return order ? order : strcmp(x->name, y->name);
}

/* Adds the own time of each line of a side, one entry per line. */
static uint32_t add_lines(const struct tfh_run_digest *d, int side, struct code_time *out)
{
	const struct tfh_digest_part *p = tfh_digest_part_of(d, TFT_DPLC);
	const struct tfh_digest_place *row = p->row;
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		if (row[i].where != TFH_DIGEST_STEP || !(row[i].own_s > 0) ||
		    !isfinite(row[i].own_s))
			continue;
		out[n] = (struct code_time){.file = tfh_digest_text(p, row[i].file),
					    .name = tfh_digest_text(p, row[i].function),
					    .line = row[i].line,
					    .most = row[i].own_s};
		out[n].s[side] = row[i].own_s;
		/* A line's samples include those of the code that it calls; its own are estimated
		 * by its share of the time. */
		out[n].samples[side] =
			row[i].s > 0
				? (uint64_t)fmin((double)row[i].samples * row[i].own_s / row[i].s,
						 1e18)
				: 0;
		n++;
	}
	return n;
}

static void join_lines(struct code_time *to, const struct code_time *x)
{
	for (int k = 0; k < 2; k++) {
		to->s[k] += x->s[k];
		to->samples[k] += x->samples[k];
	}
	if (x->most > to->most) {
		to->most = x->most;
		to->line = x->line;
	}
}

/* Two standard errors of a time estimated from that many samples (their number has a Poisson
 * distribution). */
static double off_of(double s, uint64_t samples)
{
	return samples ? 2 * s / sqrt((double)samples) : 0;
}

static void list_line(struct tfh_run_diff *d, const struct code_time *x)
{
	double off = hypot(off_of(x->s[0], x->samples[0]), off_of(x->s[1], x->samples[1]));
	double change = fabs(x->s[1] - x->s[0]);
	struct tfh_diff_item item = {.how = TFH_DIFF_CHANGED,
				     .name = x->name,
				     .file = x->file,
				     .line = x->line,
				     .a_s = x->s[0],
				     .b_s = x->s[1],
				     .off_s = off};

	/* Many lines are compared, so a change must exceed three standard errors. */
	if (change < TFH_DIFF_WORTH_SHARE * d->step.a_s || change < 1.5 * off)
		return;
	item.how = !(x->s[0] > 0) ? TFH_DIFF_CAME : !(x->s[1] > 0) ? TFH_DIFF_WENT : item.how;
	keep(d->line, &d->n_line, &item);
}

int tfh_diff_find_lines(struct tfh_run_diff *d, struct tfh_err *err)
{
	const struct tfh_run_digest *a = d->side[0].digest[0], *b = d->side[1].digest[0];
	uint32_t most = tfh_digest_part_of(a, TFT_DPLC)->n + tfh_digest_part_of(b, TFT_DPLC)->n;
	struct code_time *v = calloc(most + 1u, sizeof(*v));

	if (!v)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	uint32_t n = add_lines(a, 0, v);
	n += add_lines(b, 1, v + n);
	qsort(v, n, sizeof(*v), by_function);
	for (uint32_t i = 0, k; i < n; i = k) {
		for (k = i + 1; k < n && !by_function(&v[i], &v[k]); k++)
			join_lines(&v[i], &v[k]);
		list_line(d, &v[i]);
	}
	free(v);
	return 0;
}

/* ---- kernels ---- */

static bool differs(double a, double b)
{
	return fabs(b - a) > TFH_DIFF_CALLS_SHARE * fmax(fabs(a), fabs(b));
}

/* A kernel without times changed if its launches did. */
static void list_kernel(struct tfh_run_diff *d, const struct tfh_diff_item *x)
{
	bool times = isfinite(x->a_s) || isfinite(x->b_s);
	double least = fmax(TFH_DIFF_WORTH_SHARE * d->step.a_s, 0);

	if (x->how == TFH_DIFF_CHANGED && times && change_of(x) < least &&
	    !differs(x->a_calls, x->b_calls))
		return;
	if (x->how == TFH_DIFF_CHANGED && !times && !differs(x->a_calls, x->b_calls))
		return;
	keep(d->kernel, &d->n_kernel, x);
}

void tfh_diff_find_kernels(struct tfh_run_diff *d)
{
	for (int k = 0; k < 2; k++) {
		const struct tfh_run_digest *digest = d->side[k].digest[0],
					    *other = d->side[!k].digest[0];
		const struct tfh_digest_part *p = tfh_digest_part_of(digest, TFT_DKRN);
		const struct tfh_digest_kernel *row = p->row,
					       *others = tfh_digest_part_of(other, TFT_DKRN)->row;
		for (uint32_t i = 0; i < p->n; i++) {
			const char *name = tfh_digest_text(p, row[i].name);
			uint32_t at = tfh_digest_named(other, TFT_DKRN, name);
			const struct tfh_digest_kernel *same =
				at == UINT32_MAX ? NULL : &others[at];
			struct tfh_diff_item x = {.name = name, .off_s = NAN};
			if (same && k)
				continue; /* listed from the first side */
			x.how = same ? TFH_DIFF_CHANGED : k ? TFH_DIFF_CAME : TFH_DIFF_WENT;
			x.a_s = k ? NAN : row[i].s;
			x.a_calls = k ? 0 : row[i].calls;
			x.b_s = k ? row[i].s : same ? same->s : NAN;
			x.b_calls = k ? row[i].calls : same ? same->calls : 0;
			list_kernel(d, &x);
		}
	}
}

/* ---- facts ---- */

/* Whether a fact is a setting of the run, by the beginning of its name. Facts that only identify a
 * run are no difference: where and when it was recorded, and as which process. */
static bool is_setting(const char *name)
{
	static const char *const yes[] = {"command.",	"env.",		"software.", "priced.",
					  "run.host",	"run.kernel",	"run.cpus",  "run.cwd",
					  "run.tfhook", "verdict.tier", "ranks",     "hosts"};
	static const char *const no[] = {"env.TFHOOK_", "env.PWD",	    "env.OLDPWD",
					 "env.SHLVL",	"env.SLURM_JOB_ID", "env.SLURM_JOBID"};

	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
		if (tfh_starts_with(name, no[i]))
			return false;
	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
		if (tfh_starts_with(name, yes[i]))
			return true;
	return false;
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* The value that all runs of a side share; false: they differ. */
static bool value_of(const struct tfh_diff_side *s, const char *name, const char **value)
{
	*value = tfh_digest_fact(s->digest[0], name);
	for (uint32_t i = 1; i < s->n; i++)
		if (!same(*value, tfh_digest_fact(s->digest[i], name)))
			return false;
	return true;
}

/* A recording that ended within its first second has no versions. */
static bool has_versions(const struct tfh_diff_side *s)
{
	const struct tfh_digest_part *p = tfh_digest_part_of(s->digest[0], TFT_DKEY);
	const struct tfh_digest_key *key = p->row;

	for (uint32_t i = 0; i < p->n; i++)
		if (tfh_starts_with(tfh_digest_text(p, key[i].name), "software."))
			return true;
	return false;
}

static void list_fact(struct tfh_run_diff *d, const char *name)
{
	struct tfh_diff_fact x = {.name = name};

	for (uint32_t i = 0; i < d->n_fact; i++)
		if (!strcmp(d->fact[i].name, name))
			return;
	if (d->n_fact < TFH_DIFF_FACTS && value_of(&d->side[0], name, &x.a) &&
	    value_of(&d->side[1], name, &x.b) && !same(x.a, x.b))
		d->fact[d->n_fact++] = x;
}

void tfh_diff_find_facts(struct tfh_run_diff *d)
{
	bool versions = has_versions(&d->side[0]) && has_versions(&d->side[1]);
	const char *judge[2] = {NULL, NULL};

	for (int k = 0; k < 2; k++) {
		const struct tfh_digest_part *p =
			tfh_digest_part_of(d->side[k].digest[0], TFT_DKEY);
		const struct tfh_digest_key *key = p->row;
		for (uint32_t i = 0; i < p->n; i++) {
			const char *name = tfh_digest_text(p, key[i].name);
			if (is_setting(name) && (versions || !tfh_starts_with(name, "software.")))
				list_fact(d, name);
		}
		judge[k] = tfh_digest_fact(d->side[k].digest[0], "judge");
	}
	d->other_judge = !same(judge[0], judge[1]);
}
