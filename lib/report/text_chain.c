/* What one step waited for, as a chain with times. It covers the whole step; short links are
 * merged. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "judge/chain.h"
#include "model/symbols/kernel_name.h"
#include "model/symbols/pylines.h"
#include "report/text_parts.h"

#define MOST_ROWS 16
#define NARROW 60 /* columns; on narrower pages, a row's text goes below its times */
#define FIRST_SHARE                                                                                \
	0.002 /* of the step: shorter links are merged; doubled until few enough rows remain */

static void add_link(struct tfh_chain_row *row, const struct tfh_link *l)
{
	row->first = row->links++ ? row->first : l;
	row->t1 = l->t1;
	*(l->cause == TFH_CAUSE_NONE ? &row->compute : &row->cause[l->cause]) += l->t1 - l->t0;
}

/* Fills `rows`; NULL: only counts them. */
static size_t put_together(const struct tfh_chain *c, int64_t shortest, struct tfh_chain_row *rows)
{
	struct tfh_chain_row row = {.links = 0};
	bool gathering = false;
	size_t n = 0;

	for (size_t i = 0; i < c->link.n; i++) {
		const struct tfh_link *l = &c->link.v[i];
		bool brief = l->t1 - l->t0 < shortest;
		if (!gathering || !brief) {
			n += row.links > 0;
			if (rows && row.links)
				rows[n - 1] = row;
			row = (struct tfh_chain_row){.t0 = l->t0};
		}
		gathering = brief;
		add_link(&row, l);
	}
	n += row.links > 0;
	if (rows && row.links)
		rows[n - 1] = row;
	return n;
}

/* "launches 61 %, compute 39 %": the contents of a row of several links. */
static void mixture(const struct tfh_chain_row *row, char *out, size_t size)
{
	double sum = (double)(row->t1 - row->t0), left = 1;
	bool told[TFH_PART_COUNT] = {false};
	size_t n = 0;

	for (int k = 0; k < 3 && left > 0.01; k++) {
		double part[TFH_PART_COUNT] = {[TFH_PART_COMPUTE] = (double)row->compute};
		int most = -1;
		for (int c = 0; c < TFH_CAUSE_COUNT; c++)
			part[tfh_cause_part(c)] += (double)row->cause[c];
		for (int p = 0; p < TFH_PART_COUNT; p++)
			if (!told[p] && part[p] > 0 && (most < 0 || part[p] > part[most]))
				most = p;
		if (most < 0 || n >= size)
			break;
		told[most] = true;
		left -= part[most] / sum;
		n += (size_t)snprintf(out + n, size - n, "%s%s %.0f %%", n ? ", " : "",
				      tfh_part_words((enum tfh_part)most), 100 * part[most] / sum);
	}
}

/* The cause to blame: for input, the slow stage's, not that of the waiting call. */
static enum tfh_cause blamed(const struct tfh_link *l, const struct tfh_step *s)
{
	enum tfh_class cls =
		l->cause == TFH_CAUSE_INPUT_UNKNOWN ? TFH_CLASS_INPUT_BOUND : TFH_CLASS_NONE;
	enum tfh_cause cause = (enum tfh_cause)(int8_t)s->cause;

	return cls != TFH_CLASS_NONE && cause != TFH_CAUSE_NONE && tfh_cause_class(cause) == cls
		       ? cause
		       : l->cause;
}

/* Time between calls has no name of its own. It gets the line where other steps of the run were
 * seen at that point. */
static bool seen_at(struct tfh_wording *w, const struct tfh_link *l, char *out, size_t size)
{
	const struct tfh_seen_line *seen = &w->r->found.line;

	if (*l->what || !seen->file || l->cause == TFH_CAUSE_NONE ||
	    l->cause != w->r->verdict.cause)
		return false;
	if (seen->line)
		snprintf(out, size, "%s: mostly %s, %s:%u", tfh_cause_name(l->cause),
			 tfh_function_of(w, seen->function), tfh_short_file(seen->file),
			 seen->line);
	else
		snprintf(out, size, "%s: mostly %s", tfh_cause_name(l->cause),
			 tfh_at_words(w, seen->function, seen->file, 0));
	return true;
}

void tfh_chain_row_words(struct tfh_wording *w, const struct tfh_chain_row *row,
			 const struct tfh_step *s, char *out, size_t size)
{
	const struct tfh_link *l = row->first;
	char mixed[128] = "", what[96], brief[TFH_KERNEL_NAME], count[TFH_TEXT];

	if (row->links > 1) {
		mixture(row, mixed, sizeof(mixed));
		snprintf(out, size, "%s short ones, %s", tfh_fmt_count(count, row->links), mixed);
		return;
	}
	if (seen_at(w, l, out, size))
		return;
	tfh_fmt_cut(what, sizeof(what),
		    l->cause == TFH_CAUSE_NONE ? tfh_kernel_short(brief, l->what, 48) : l->what,
		    48);
	snprintf(out, size, "%s%s%s%s%s",
		 l->cause == TFH_CAUSE_NONE ? "compute" : tfh_cause_name(blamed(l, s)),
		 *what ? ": " : "", what, *l->where ? " at " : "", l->where);
}

static void print_chain_row(const struct tfh_page *page, struct tfh_wording *w,
			    const struct tfh_chain_row *row, const struct tfh_step *s)
{
	char at[TFH_TEXT], time[TFH_TEXT], first[80], line[512];
	double from = (double)row->t0 * 1e-9 - s->start_s,
	       took = (double)(row->t1 - row->t0) * 1e-9;

	tfh_chain_row_words(w, row, s, line, sizeof(line));
	snprintf(first, sizeof(first), "  %8s %9s %3.0f %%  ",
		 tfh_fmt_time(at, from > 1e-9 ? from : 0), tfh_fmt_time(time, took),
		 100 * took / s->dur_s);
	tfh_wrap(page, first,
		 tfh_page_columns(page) < NARROW ? "      " : "                           ", line);
}

int64_t tfh_chain_left(const struct tfh_chain *c, const struct tfh_step *s)
{
	int64_t left = (int64_t)(s->dur_s * 1e9);

	for (size_t i = 0; i < c->link.n; i++)
		left -= c->link.v[i].t1 - c->link.v[i].t0;
	return left;
}

static void print_title(const struct tfh_page *page, const struct tfh_step *s)
{
	const char *cause = tfh_cause_name((enum tfh_cause)(int8_t)s->cause);
	char dur[TFH_TEXT], median[TFH_TEXT], start[TFH_TEXT], n[TFH_TEXT], field[96];
	size_t column;

	snprintf(field, sizeof(field), "step %llu of %s", (unsigned long long)s->index,
		 tfh_fmt_count(n, page->r->steps.total));
	tfh_tinted(page, TFH_BOLD, "%s", field);
	column = strlen(field);
	snprintf(field, sizeof(field), "%s (median %s)", tfh_fmt_time(dur, s->dur_s),
		 tfh_fmt_time(median, page->r->steps.median_s));
	tfh_field(page, &column, field);
	snprintf(field, sizeof(field), "%s after the start",
		 tfh_fmt_time(start, tfh_into_run(page->r, s->start_s)));
	tfh_field(page, &column, field);
	snprintf(field, sizeof(field), "%s%s%s",
		 s->cls == (int8_t)TFH_CLASS_NONE ? "not judged"
						  : tfh_class_name((enum tfh_class)(int8_t)s->cls),
		 cause ? ", " : "", cause ? cause : "");
	tfh_field(page, &column, field);
	tfh_put("\n", page->out);
}

int tfh_chain_rows(const struct tfh_chain *chain, const struct tfh_step *step, bool every,
		   struct tfh_chain_row **rows, size_t *n)
{
	int64_t shortest = every ? 0 : (int64_t)(FIRST_SHARE * step->dur_s * 1e9);

	while ((*n = put_together(chain, shortest, NULL)) > MOST_ROWS && !every)
		shortest = shortest * 2 + 1;
	*rows = calloc(*n + 1, sizeof(**rows));
	if (!*rows)
		return -ENOMEM;
	put_together(chain, shortest, *rows);
	return 0;
}

int tfh_report_chain(FILE *out, struct tfh_wording *words, const struct tfh_style *style,
		     const struct tfh_step *step, const struct tfh_chain *chain)
{
	struct tfh_page page = {.out = out, .words = words, .r = words->r, .style = *style};
	struct tfh_chain_row *rows;
	char time[TFH_TEXT];
	size_t n;
	int rc = tfh_chain_rows(chain, step, style->every, &rows, &n);

	if (rc)
		return rc;
	print_title(&page, step);
	tfh_heading(&page, "  %8s %9s         %s", "at", "for", "what the step waited for");
	for (size_t i = 0; i < n; i++)
		print_chain_row(&page, words, &rows[i], step);
	free(rows);
	int64_t left = tfh_chain_left(chain, step);
	if ((double)left >= 0.005 * step->dur_s * 1e9)
		tfh_print(out, "           %9s %3.0f %%  unattributed\n",
			  tfh_fmt_time(time, (double)left * 1e-9),
			  100 * (double)left * 1e-9 / step->dur_s);
	return 0;
}
