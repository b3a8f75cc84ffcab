/* Where a step's time goes: parts, stages, classes, kinds; what recurs besides the steps; when they
 * changed. */
#include <string.h>

#include "base/print.h"
#include "report/page/page_parts.h"

static const double quantiles[] = {0, 0.05, 0.5, 0.95, 0.99, 1};

static void write_parts(const struct tfh_html_page *s)
{
	const struct tfh_result *r = s->r;
	char caption[96], mean[TFH_TEXT];

	snprintf(caption, sizeof(caption), "A step on average: %s",
		 tfh_fmt_time(mean, tfh_step_s(r)));
	tfh_html_table(s->out, caption, "<part|a step|share|<");
	for (int p = 0; p < TFH_PART_COUNT; p++) {
		tfh_html_row(s->out, tfh_part_words((enum tfh_part)p));
		tfh_html_time(s->out, r->breakdown[p].s_per_step);
		tfh_html_share(s->out, r->breakdown[p].share);
		tfh_html_bar(s->out, r->breakdown[p].share, tfh_part_name((enum tfh_part)p));
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
}

static void write_causes(const struct tfh_html_page *s)
{
	const struct tfh_result *r = s->r;

	tfh_html_table(s->out, "What a step waits for, by cause", "<cause|<part|a step");
	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		if (!(r->found.cause_s[c] > 0))
			continue;
		tfh_html_row(s->out, tfh_cause_name((enum tfh_cause)c));
		tfh_html_text(s->out, tfh_part_words(tfh_cause_part((enum tfh_cause)c)));
		tfh_html_time(s->out, r->found.cause_s[c]);
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
}

static void write_stages(const struct tfh_html_page *s)
{
	tfh_html_table(
		s->out,
		"The stages of training: what of each stands in the way of a step, and what of it "
		"nobody waits for",
		"<stage|exposed|hidden");
	for (int k = 0; k < TFH_STAGE_COUNT; k++) {
		tfh_html_row(s->out, tfh_stage_name((enum tfh_stage)k));
		tfh_html_time(s->out, s->r->stages[k].exposed_s);
		tfh_html_time(s->out, s->r->stages[k].hidden_s);
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
}

static void write_counts(const struct tfh_html_page *s)
{
	const struct tfh_steps *k = &s->r->steps;
	const struct tfh_pattern *p = &s->r->pattern;
	const char *clock =
		tfh_step_clock_name(k->clock) ? tfh_step_clock_name(k->clock) : "nothing";
	bool named = k->clock_name && strstr(k->clock_name, clock); /* the name already says it */

	tfh_html_table(s->out, "Steps", "<|");
	tfh_html_row(s->out, "judged");
	tfh_html_count(s->out, k->count);
	tfh_html_row(s->out, "in all");
	tfh_html_count(s->out, k->total);
	tfh_html_row(s->out, "warm-up");
	tfh_html_count(s->out, k->warmup);
	tfh_html_row(s->out, "unclassified");
	tfh_html_count(s->out, k->unclassified);
	tfh_html_row(s->out, "median");
	tfh_html_time(s->out, k->median_s);
	tfh_html_row(s->out, "95 % are shorter than");
	tfh_html_time(s->out, k->p95_s);
	tfh_html_row(s->out, "together");
	tfh_html_time(s->out, k->total_s);
	tfh_html_row(s->out, "steps per executed call");
	tfh_html_mean(s->out, k->per_execution);
	tfh_html_row(s->out, "batches per update");
	tfh_html_count(s->out, p->per_update);
	tfh_html_row(s->out, "micro-steps in each");
	tfh_html_count(s->out, p->inner);
	tfh_html_row(s->out, "distinguished by");
	tfh_html(s->out, "<td class=\"t\">%s %s</td>", named ? "" : clock,
		 k->clock_name ? k->clock_name : "");
	tfh_html_row_end(s->out);
	tfh_html_table_end(s->out);
}

static void write_classes(const struct tfh_html_page *s)
{
	tfh_html_table(s->out, "By class", "<class|steps|of training time|median|p95");
	for (int c = 0; c < TFH_CLASS_COUNT; c++) {
		const struct tfh_class_count *k = &s->r->steps.classes[c];
		if (!k->count)
			continue;
		tfh_html_row(s->out, tfh_class_name((enum tfh_class)c));
		tfh_html_count(s->out, k->count);
		tfh_html_share(s->out, k->time_share);
		tfh_html_time(s->out, k->median_s);
		tfh_html_time(s->out, k->p95_s);
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
	if (!s->r->pattern.n_kind)
		return;
	tfh_html_table(s->out, "By the number of launches in a step",
		       "launches|steps|median|of training time");
	for (uint32_t i = 0; i < s->r->pattern.n_kind; i++) {
		const struct tfh_kind *k = &s->r->pattern.kind[i];
		tfh_put("<tr>", s->out);
		tfh_html_count(s->out, k->launches);
		tfh_html_count(s->out, k->count);
		tfh_html_time(s->out, k->median_s);
		tfh_html_share(s->out, k->time_share);
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
}

static void write_recurring(const struct tfh_html_page *s)
{
	const struct tfh_result *r = s->r;

	if (r->n_recurring) {
		tfh_html_table(s->out, "All that recurs",
			       "<|times|in all|share|blocked|<class|<cause");
		for (uint32_t i = 0; i < r->n_recurring; i++) {
			const struct tfh_recurring *x = &r->recurring[i];
			tfh_html_row(s->out, tfh_segment_name(x->kind));
			tfh_html_count(s->out, x->count);
			tfh_html_time(s->out, x->total_s);
			tfh_html_share(s->out, x->total_s / r->recurs_s);
			tfh_html_time(s->out, x->blocked_s);
			tfh_html_text(s->out, tfh_class_name(x->cls));
			tfh_html_text(s->out, tfh_cause_name(x->cause));
			tfh_html_row_end(s->out);
		}
		tfh_html_table_end(s->out);
	}
	if (!r->n_change)
		return;
	tfh_html_table(s->out, "When steps became slower or faster",
		       "from step|steadily up to|after the start|before|since|<what changed most");
	for (uint32_t i = 0; i < r->n_change; i++) {
		const struct tfh_change *x = &r->change[i];
		tfh_put("<tr>", s->out);
		tfh_html_count(s->out, x->step);
		if (x->until)
			tfh_html_count(s->out, x->until);
		else
			tfh_html_text(s->out, "");
		tfh_html_time(s->out, x->at_s);
		tfh_html_time(s->out, x->from_s);
		tfh_html_time(s->out, x->to_s);
		tfh_html_text(s->out, tfh_part_words(x->part));
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
}

/* The script's charts, with captions. Without the script, the tables hold the same. */
static void write_charts(const struct tfh_html_page *s)
{
	const struct tfh_along *k = s->along;
	char n[TFH_TEXT], each[TFH_TEXT];

	if (!k->n)
		return;
	tfh_html(s->out,
		 "<p class=\"note\">%s training steps along the run, by what their time went into",
		 tfh_fmt_count(n, k->n));
	if (k->together > 1)
		tfh_html(s->out,
			 "; every point is %s steps one after the other: their mean by part, and "
			 "the shortest, median and longest of them",
			 tfh_fmt_count(each, k->together));
	tfh_put(".</p>\n<div class=\"chart\" id=\"chart-steps\"></div>\n"
		"<div class=\"chart\" id=\"chart-lengths\"></div>\n",
		s->out);
	tfh_html_table(s->out, "How long training steps are",
		       "shortest|5 %|median|95 %|99 %|longest");
	tfh_put("<tr>", s->out);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		tfh_html_time(s->out, tfh_along_quantile(k, quantiles[i]));
	tfh_html_row_end(s->out);
	tfh_html_table_end(s->out);
}

void tfh_page_steps(const struct tfh_html_page *s)
{
	write_charts(s);
	tfh_put("<div class=\"tables\">\n", s->out);
	write_parts(s);
	write_causes(s);
	write_counts(s);
	write_classes(s);
	write_recurring(s);
	write_stages(s);
	tfh_put("</div>\n", s->out);
}
