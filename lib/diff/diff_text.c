/* Prints a difference on one screen. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/print.h"
#include "base/text.h"
#include "diff/diff.h"
#include "report/format.h"

struct screen {
	FILE *out;
	const struct tfh_run_diff *d;
	unsigned columns;
	bool all;
	uint32_t parts, rows; /* limits: parts of a step; rows of every other section */
};

/* "+1.30 ms", "-200 us" */
static const char *signed_time(char out[TFH_TEXT], double s)
{
	char text[TFH_TEXT];

	snprintf(out, TFH_TEXT, "%s%s", s < 0 ? "-" : "+", tfh_fmt_time(text, fabs(s)));
	return out;
}

/* Per cent of side A's step. */
static double per_cent(const struct tfh_run_diff *d, double s)
{
	return d->step.a_s > 0 ? 100 * s / d->step.a_s : NAN;
}

static void print_side(const struct screen *x, int k)
{
	const struct tfh_diff_side *s = &x->d->side[k];
	char name[256], step[TFH_TEXT], count[TFH_TEXT], runs[32] = "", when[TFH_RANGE] = "";
	char from[TFH_TEXT], to[TFH_TEXT];

	if (s->n > 1)
		snprintf(runs, sizeof(runs), "%u runs, ", s->n);
	if (s->from_s > 0 || isfinite(s->to_s))
		snprintf(when, sizeof(when), ", %s to %s",
			 s->from_s > 0 ? tfh_fmt_time(from, s->from_s) : "0",
			 isfinite(s->to_s) ? tfh_fmt_time(to, s->to_s) : "the end");
	tfh_print(x->out, "%c  %s   %s%s steps of %s%s\n", "AB"[k],
		  tfh_fmt_cut(name, sizeof(name), s->name, x->columns > 60 ? x->columns - 44 : 20),
		  runs, tfh_fmt_count(count, s->steps),
		  tfh_fmt_time(step, s->usual.mean_s[TFH_DIFF_STEP]), when);
}

/* An interval wider than 1 / WIDE_PART of a step shows that runs changed while they ran, or were
 * disturbed. */
#define WIDE_PART 4

static bool is_wide(const struct tfh_run_diff *d)
{
	return d->step.off_s * WIDE_PART > d->step.a_s;
}

static void print_step(const struct screen *x)
{
	const struct tfh_diff_part *s = &x->d->step;
	char a[TFH_TEXT], b[TFH_TEXT], change[TFH_TEXT], off[TFH_TEXT];

	tfh_fmt_time(a, s->a_s);
	tfh_fmt_time(b, s->b_s);
	signed_time(change, s->delta_s);
	if (!tfh_diff_is_measured(x->d))
		tfh_print(x->out,
			  "\nTOO FEW STEPS to say how sure a change is: step %s -> %s, %+.1f %%\n",
			  a, b, per_cent(x->d, s->delta_s));
	else if (!s->found && is_wide(x->d))
		tfh_print(x->out,
			  "\nTOO NOISY TO TELL   step %s -> %s: %+.1f %%\n  a change of less than "
			  "%.0f %% may be chance\n",
			  a, b, per_cent(x->d, s->delta_s), per_cent(x->d, s->off_s));
	else if (!s->found)
		tfh_print(x->out, "\nNO DIFFERENCE FOUND   step %s -> %s: %+.1f %%, +-%.1f %%\n", a,
			  b, per_cent(x->d, s->delta_s), per_cent(x->d, s->off_s));
	else
		tfh_print(x->out, "\n%s   step %s -> %s: %s, %+.1f %% (+-%.1f %%, +-%s)\n",
			  s->delta_s > 0 ? "SLOWER" : "FASTER", a, b, change,
			  per_cent(x->d, s->delta_s), per_cent(x->d, s->off_s),
			  tfh_fmt_time(off, s->off_s));
}

static void print_width(const struct screen *x)
{
	bool crowded = x->d->side[0].crowded || x->d->side[1].crowded;

	if (is_wide(x->d))
		tfh_print(
			x->out, "  %s\n",
			crowded ? "other work on the machine hides smaller changes: compare 3 runs "
				  "of each kind"
				: "steps within one run vary widely: --at compares intervals of "
				  "it");
}

/* What only some steps do shows in the mean of all steps, not in the usual step. */
static void print_mean(const struct screen *x)
{
	const struct tfh_run_diff *d = x->d;
	char a[TFH_TEXT], b[TFH_TEXT];
	double least = TFH_DIFF_WORTH_SHARE * d->mean.a_s;

	if (!tfh_diff_is_measured(d) ||
	    (!x->all && !(d->mean.found && fabs(d->mean.delta_s - d->step.delta_s) > least)))
		return;
	tfh_print(x->out, "  mean of all: %s -> %s, %+.1f %% +-%.1f %%, mostly %s\n",
		  tfh_fmt_time(a, d->mean.a_s), tfh_fmt_time(b, d->mean.b_s),
		  100 * d->mean.delta_s / d->mean.a_s, 100 * d->mean.off_s / d->mean.a_s,
		  tfh_diff_part_name(d->mean_part));
}

static void verdict_words(const struct tfh_diff_side *s, char *out, size_t size)
{
	const char *cls = tfh_digest_fact(s->digest[0], "verdict.class"),
		   *cause = tfh_digest_fact(s->digest[0], "verdict.cause"),
		   *sure = tfh_digest_fact(s->digest[0], "verdict.confidence");

	snprintf(out, size, "%s%s%s%s%s%s", cls ? cls : "unknown", cause ? " " : "",
		 cause ? cause : "", sure ? " (" : "", sure ? sure : "", sure ? ")" : "");
}

static void print_verdicts(const struct screen *x)
{
	char a[128], b[128];

	verdict_words(&x->d->side[0], a, sizeof(a));
	verdict_words(&x->d->side[1], b, sizeof(b));
	if (!strcmp(a, b))
		tfh_print(x->out, "  verdict  %s, as before\n", a);
	else
		tfh_print(x->out, "  verdict  %s\n        -> %s\n", a, b);
}

#define PARTS_UNFOUND 3u

static void print_part(const struct screen *x, const struct tfh_diff_part *p)
{
	char a[TFH_TEXT], b[TFH_TEXT], change[TFH_TEXT], off[TFH_TEXT];

	tfh_print(x->out, "  %-23s %8s  %8s  %9s  %9s%s\n", tfh_diff_part_name(p->part),
		  tfh_fmt_time(a, p->a_s), tfh_fmt_time(b, p->b_s), signed_time(change, p->delta_s),
		  tfh_fmt_time(off, p->off_s), p->found ? "  *" : "");
}

/* Parts that changed by less than a tenth of the largest change are not shown. */
#define SMALL_PART 10

/* Prints the parts that changed, or the largest changes if none is significant. */
static void print_parts(const struct screen *x)
{
	uint32_t found = 0, shown = 0;
	double most = 0;

	for (uint32_t i = 0; i < x->d->n_part; i++) {
		const struct tfh_diff_part *p = &x->d->part[i];
		found += p->found;
		most = p->found ? fmax(most, fabs(p->delta_s)) : most;
	}
	tfh_print(x->out, "\n%-25s %8s  %8s  %9s  %9s\n", "WHERE A STEP GOES", "A", "B", "change",
		  "+- (95 %)");
	for (uint32_t i = 0; i < x->d->n_part; i++) {
		const struct tfh_diff_part *p = &x->d->part[i];
		if (!x->all && (shown >= (found ? x->parts : PARTS_UNFOUND) ||
				(found && !p->found) || fabs(p->delta_s) * SMALL_PART < most))
			continue;
		print_part(x, p);
		shown++;
	}
	tfh_print(x->out,
		  found ? "  * more than chance explains%s\n"
			: "  none of them more than chance explains%s\n",
		  shown < x->d->n_part ? "; all: --all" : "");
}

static const char *how_word(enum tfh_diff_how how)
{
	static const char *const words[] = {
		[TFH_DIFF_CAME] = "new", [TFH_DIFF_WENT] = "gone", [TFH_DIFF_CHANGED] = ""};

	return words[how];
}

static void print_line(const struct screen *x, const struct tfh_diff_item *i)
{
	char where[256], shown[256], a[TFH_TEXT], b[TFH_TEXT], off[TFH_TEXT];

	/* Built-in functions have no line. */
	snprintf(where, sizeof(where), i->line ? "%s (%s:%u)" : "%s()", i->name,
		 tfh_file_of(i->file), i->line);
	tfh_print(x->out, "  %-38s %8s -> %8s  +-%s%s%s\n",
		  tfh_fmt_cut(shown, sizeof(shown), where, 38), tfh_fmt_time(a, i->a_s),
		  tfh_fmt_time(b, i->b_s), tfh_fmt_time(off, i->off_s),
		  *how_word(i->how) ? "  " : "", how_word(i->how));
}

static void print_kernel(const struct screen *x, const struct tfh_diff_item *i)
{
	char shown[256], a[TFH_TEXT], b[TFH_TEXT], n[TFH_TEXT], m[TFH_TEXT];
	bool times = isfinite(i->a_s) || isfinite(i->b_s);

	tfh_fmt_cut(shown, sizeof(shown), i->name, 32);
	tfh_fmt_mean(n, i->a_calls);
	tfh_fmt_mean(m, i->b_calls);
	if (times)
		tfh_print(x->out, "  %-32s %8s -> %8s", shown,
			  i->how == TFH_DIFF_CAME ? "0" : tfh_fmt_time(a, i->a_s),
			  i->how == TFH_DIFF_WENT ? "0" : tfh_fmt_time(b, i->b_s));
	else
		tfh_print(x->out, "  %-32s", shown);
	if (!times || strcmp(n, m))
		tfh_print(x->out, "  %s -> %s calls", n, m);
	tfh_print(x->out, "%s%s\n", *how_word(i->how) ? "  " : "", how_word(i->how));
}

/* Prints a section's title. Returns how many of its rows are shown. */
static uint32_t print_title(const struct screen *x, const char *title, uint32_t n)
{
	uint32_t shown = x->all || n < x->rows ? n : x->rows;

	if (shown < n)
		tfh_print(x->out, "%s (%u of %u; all: --all)\n", title, shown, n);
	else if (n)
		tfh_print(x->out, "%s\n", title);
	return shown;
}

#define VALUE_SHOWN 26u

/* A fact's name for display: "argument 3", "OMP_NUM_THREADS", "cuDNN". */
static const char *fact_words(const char *name, char *out, size_t size)
{
	static const struct {
		const char *begin, *words;
	} row[] = {{"command.", "argument "}, {"env.", ""},
		   {"software.", ""},	      {"priced.", ""},
		   {"run.cwd", "directory"},  {"run.kernel", "Linux"},
		   {"run.cpus", "CPUs"},      {"run.", ""},
		   {"verdict.", ""}};
	size_t i = 0;

	while (i < sizeof(row) / sizeof(row[0]) && !tfh_starts_with(name, row[i].begin))
		i++;
	bool found = i < sizeof(row) / sizeof(row[0]);
	snprintf(out, size, "%s%s", found ? row[i].words : "",
		 name + (found ? strlen(row[i].begin) : 0));
	return out;
}

static void print_facts(const struct screen *x)
{
	uint32_t n = print_title(x, "SETTINGS AND VERSIONS", x->d->n_fact);

	for (uint32_t i = 0; i < n; i++) {
		const struct tfh_diff_fact *f = &x->d->fact[i];
		char words[256], name[256], a[4096], b[4096];
		size_t wide = x->all ? 4000 : VALUE_SHOWN;
		tfh_print(x->out, "  %-20s %s -> %s\n",
			  tfh_fmt_cut(name, sizeof(name), fact_words(f->name, words, sizeof(words)),
				      x->all ? 200 : 20),
			  f->a ? tfh_fmt_cut(a, sizeof(a), f->a, wide) : "(not set)",
			  f->b ? tfh_fmt_cut(b, sizeof(b), f->b, wide) : "(not set)");
	}
}

static void print_run(const struct screen *x)
{
	const struct tfh_run_diff *d = x->d;
	char a[TFH_TEXT], b[TFH_TEXT], c[TFH_TEXT], e[TFH_TEXT];

	if (isfinite(d->run_s[0]) && isfinite(d->run_s[1]))
		tfh_print(x->out, "RUN  %s -> %s, of that before the usual steps %s -> %s\n",
			  tfh_fmt_time(a, d->run_s[0]), tfh_fmt_time(b, d->run_s[1]),
			  tfh_fmt_time(c, d->before_s[0]), tfh_fmt_time(e, d->before_s[1]));
	if (d->other_judge)
		tfh_put("The digests were made by different versions of tfhook; make the older one "
			"again.\n",
			x->out);
}

void tfh_diff_text(FILE *out, const struct tfh_run_diff *d, unsigned columns, bool all)
{
	/* Rows per section, by the number of sections: everything fits on a screen of 24 lines. */
	static const uint32_t rows[] = {0, 4, 2, 1};
	int sections = !!d->n_line + !!d->n_kernel + !!d->n_fact;
	const struct screen x = {.out = out,
				 .d = d,
				 .columns = columns ? columns : 80,
				 .all = all,
				 .parts = sections ? 4 : 6,
				 .rows = rows[sections]};

	print_side(&x, 0);
	print_side(&x, 1);
	print_step(&x);
	print_width(&x);
	print_mean(&x);
	if (!d->same_run)
		print_verdicts(&x);
	print_parts(&x);
	uint32_t n = print_title(&x, "LINES (a step)", d->n_line);
	for (uint32_t i = 0; i < n; i++)
		print_line(&x, &d->line[i]);
	n = print_title(&x, "KERNELS (a step)", d->n_kernel);
	for (uint32_t i = 0; i < n; i++)
		print_kernel(&x, &d->kernel[i]);
	print_facts(&x);
	print_run(&x);
}
