/* Steps that show the verdict: which they are, and what each waited for, as a table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "model/big.h"
#include "report/page/along.h"
#include "report/page/html_page.h"
#include "report/page/page_parts.h"

/* Also drawn around a step, as a fraction of it: the host works ahead of the device. */
#define BEFORE 0.25
#define BEHIND 0.05

static const struct tfh_step *nearest(const struct tfh_result *r, double length)
{
	const struct tfh_step *best = NULL;

	TFH_EACH (i, r->n_step) {
		const struct tfh_step *s = &r->step[i];
		if (tfh_along_has(s) &&
		    (!best || fabs(s->dur_s - length) < fabs(best->dur_s - length)))
			best = s;
	}
	return best;
}

static void add(struct tfh_shown *shown, const struct tfh_result *r, const char *kind,
		const struct tfh_step *step)
{
	struct tfh_shown_step *s = &shown->step[shown->n];

	for (uint32_t i = 0; i < shown->n; i++)
		if (shown->step[i].step == step)
			return;
	if (!step || !(step->dur_s > 0))
		return;
	s->kind = kind;
	s->step = step;
	tfh_chain_init_step(&s->chain, r->process, step);
	tfh_drawn_init(&s->drawn, (int64_t)((step->start_s - BEFORE * step->dur_s) * 1e9),
		       (int64_t)((step->start_s + (1 + BEHIND) * step->dur_s) * 1e9));
	s->chain.drawn = &s->drawn;
	if (shown->n++)
		s[-1].chain.next = &s->chain;
}

struct tfh_chain *tfh_shown_choose(void *arg, const struct tfh_result *r)
{
	struct tfh_shown *shown = arg;
	struct tfh_along along;

	shown->n = 0;
	if (!tfh_along_make(&along, r) && along.n) {
		/* The same step as for `tfhook why`. */
		const struct tfh_step *median = tfh_report_median_step(r);
		const struct tfh_step *slow =
			nearest(r, tfh_along_quantile(&along, TFH_CHAIN_SLOW));
		const struct tfh_step *fast =
			nearest(r, tfh_along_quantile(&along, TFH_CHAIN_FAST));
		if (slow != median)
			add(shown, r, "slow", slow);
		add(shown, r, "median", median);
		add(shown, r, "fast", fast);
	}
	tfh_along_free(&along);
	return shown->n ? &shown->step[0].chain : NULL;
}

void tfh_shown_free(struct tfh_shown *shown)
{
	for (uint32_t i = 0; i < shown->n; i++) {
		tfh_chain_free(&shown->step[i].chain);
		tfh_drawn_free(&shown->step[i].drawn);
	}
	shown->n = 0;
}

static void write_row(const struct tfh_html_page *s, const struct tfh_step *step,
		      const struct tfh_chain_row *row)
{
	double from = (double)row->t0 * 1e-9 - step->start_s;
	double took = (double)(row->t1 - row->t0) * 1e-9;
	char line[512];

	tfh_chain_row_words(s->words, row, step, line, sizeof(line));
	tfh_put("<tr>", s->out);
	tfh_html_time(s->out, from > 1e-9 ? from : 0);
	tfh_html_time(s->out, took);
	tfh_html_share(s->out, took / step->dur_s);
	tfh_html_text(s->out, line);
	tfh_html_row_end(s->out);
}

static void write_chain(const struct tfh_html_page *s, const struct tfh_shown_step *k)
{
	struct tfh_chain_row *rows;
	double left = (double)tfh_chain_left(&k->chain, k->step) * 1e-9;
	size_t n;

	tfh_html(s->out, "<details><summary>What step %llu waited for, as a table</summary>\n",
		 (unsigned long long)k->step->index);
	tfh_html_table(s->out, NULL, "at|for|of the step|<what the step waited for");
	if (!tfh_chain_rows(&k->chain, k->step, false, &rows, &n)) {
		for (size_t i = 0; i < n; i++)
			write_row(s, k->step, &rows[i]);
		free(rows);
	}
	if (left >= 0.005 * k->step->dur_s) {
		tfh_put("<tr><td class=\"na\">-</td>", s->out);
		tfh_html_time(s->out, left);
		tfh_html_share(s->out, left / k->step->dur_s);
		tfh_html_text(s->out, "unattributed");
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
	tfh_put("</details>\n", s->out);
}

void tfh_page_timeline(const struct tfh_html_page *s)
{
	static const struct {
		const char *kind, *words;
	} words[] = {{"slow", "A slow step"}, {"median", "A median step"}, {"fast", "A fast step"}};
	char time[TFH_TEXT], at[TFH_TEXT], shorter[TFH_TEXT], all[TFH_TEXT];

	if (!s->shown->n) {
		tfh_html_note(s->out,
			      "The timeline is drawn from the recording, but only its digest was "
			      "available.");
		return;
	}
	tfh_put("<div id=\"legend\"></div>\n", s->out);
	for (uint32_t i = 0; i < s->shown->n; i++) {
		const struct tfh_shown_step *k = &s->shown->step[i];
		const char *cause = tfh_cause_name((enum tfh_cause)k->step->cause), *title = "";
		for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++)
			title = strcmp(words[w].kind, k->kind) ? title : words[w].words;
		tfh_html(s->out,
			 "<h3>%s</h3>\n<p class=\"note\">Step %llu, %s, longer than %s of %s; %s "
			 "after the start%s%s.",
			 title, (unsigned long long)k->step->index,
			 tfh_fmt_time(time, k->step->dur_s),
			 tfh_fmt_count(shorter, tfh_along_below(s->along, k->step->dur_s)),
			 tfh_fmt_count(all, s->along->n),
			 tfh_fmt_time(at, tfh_into_run(s->r, k->step->start_s)), cause ? "; " : "",
			 cause ? cause : "");
		if (k->drawn.left_out)
			tfh_html(s->out,
				 " %s calls and ops of further threads and streams are not drawn.",
				 tfh_fmt_count(at, k->drawn.left_out));
		tfh_html(s->out, "</p>\n<div class=\"timeline\" data-step=\"%u\"></div>\n", i);
		write_chain(s, k);
	}
	tfh_html_note(
		s->out,
		"Top row: what the step waited for at each moment. Below: the calls of each "
		"thread, stages of the input pipeline, streams of each device, and the waiting "
		"chain drawn through them. Neighbours that are too short to be seen apart are "
		"drawn as one.");
}
