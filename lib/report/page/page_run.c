/* Where the run's time went: its tree, segments, start-up, and intervals of which only sketches
 * remain. */

#include "base/print.h"
#include "report/page/page_parts.h"
#include "report/words/words.h"

static void write_tree(const struct tfh_html_page *s)
{
	const struct tfh_result *r = s->r;
	double all = r->n_tree ? r->tree[0].wall_s : 0;

	if (!(all > 0))
		return;
	tfh_html_table(s->out, "The run as a tree: the parts below a part add up to it",
		       "<|<executes|times|entered|begins|takes|of the run|<");
	for (uint32_t i = 0; i < r->n_tree; i++) {
		const struct tfh_part_of_run *p = &r->tree[i];
		const char *words = tfh_branch_words(tfh_branch_shown(r, i));
		uint32_t depth = tfh_branch_depth(r, i);
		if (tfh_branch_hidden(r, i))
			continue;
		tfh_html(s->out, "<tr><th scope=\"row\" class=\"d%u\">%s</th>",
			 depth < 8 ? depth : 8, *words ? words : "the run");
		tfh_html_text(s->out, tfh_branch_does(p));
		tfh_html_count(s->out, p->count);
		tfh_html_count(s->out, p->runs);
		tfh_html_time(s->out, p->begin_s);
		tfh_html_time(s->out, p->wall_s);
		tfh_html_share(s->out, p->wall_s / all);
		tfh_html_bar(s->out, p->wall_s / all, "run");
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
}

static void write_segments(const struct tfh_html_page *s)
{
	if (!s->r->n_segments)
		return;
	tfh_html_table(s->out, "Phases", "<phase|times|in all|every so many steps");
	for (uint32_t i = 0; i < s->r->n_segments; i++) {
		const struct tfh_segment_sum *k = &s->r->segments[i];
		tfh_html_row(s->out, tfh_segment_name(k->kind));
		tfh_html_count(s->out, k->count);
		tfh_html_time(s->out, k->total_s);
		tfh_html_mean(s->out, k->every_steps);
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
}

static void write_startup(const struct tfh_html_page *s)
{
	static const char *const name[TFH_PHASE_COUNT] = {
		[TFH_PHASE_DRIVER] = "the driver was initialised",
		[TFH_PHASE_CONTEXT] = "a context existed",
		[TFH_PHASE_MODULE] = "a module of kernels was loaded",
		[TFH_PHASE_BATCH] = "a batch was delivered",
		[TFH_PHASE_STEP] = "a step was completed",
		[TFH_PHASE_STEADY] = "steps were as long as usual"};

	tfh_html_table(s->out, "From the first record until", "<|after");
	for (int k = 0; k < TFH_PHASE_COUNT; k++) {
		tfh_html_row(s->out, name[k]);
		tfh_html_time(s->out, s->r->startup[k]);
		tfh_html_row_end(s->out);
	}
	tfh_html_row(s->out, "modules loaded by training steps");
	tfh_html_count(s->out, s->r->pattern.recompiles);
	tfh_html_row(s->out, "... which took");
	tfh_html_time(s->out, s->r->pattern.recompile_s);
	tfh_html_row_end(s->out);
	tfh_html_table_end(s->out);
}

static void write_seen(const struct tfh_html_page *s, const struct tfh_seen_start *p)
{
	char caption[256], time[TFH_TEXT], samples[TFH_TEXT];

	snprintf(caption, sizeof(caption), "Besides the steps: %s%s, %s, in %s samples",
		 p->kind == TFH_BRANCH_BETWEEN ? "the longest time " : "",
		 tfh_branch_words(p->kind), tfh_fmt_time(time, p->wall_s),
		 tfh_fmt_count(samples, p->samples));
	tfh_html_table(s->out, caption, "<the main thread was|share|samples");
	tfh_html_row(s->out, "there in all");
	tfh_html_time(s->out, p->wall_s);
	tfh_html_count(s->out, p->samples);
	tfh_html_row_end(s->out);
	for (int i = 0; i < TFT_STATE_COUNT; i++) {
		if (!(p->state[i] > 0) || !*tfh_state_words(i))
			continue;
		tfh_html_row(s->out, tfh_state_words(i));
		tfh_html_share(s->out, p->state[i]);
		tfh_put("<td></td>", s->out);
		tfh_html_row_end(s->out);
	}
	for (uint32_t i = 0; i < p->n_line; i++) {
		const struct tfh_start_line *l = &p->line[i];
		tfh_html(s->out,
			 "<tr><th scope=\"row\">%s, %s:<span data-v=\"%u\">%u</span>%s%s</th>",
			 l->function, l->file, l->line, l->line,
			 l->imports && *l->imports ? ", imports " : "",
			 l->imports ? l->imports : "");
		tfh_html_share(s->out, l->share);
		tfh_html_count(s->out, l->samples);
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
	if (p->why)
		tfh_html_note(s->out, p->why);
}

static void write_discarded(const struct tfh_html_page *s)
{
	if (!s->r->n_discarded)
		return;
	tfh_html_table(
		s->out,
		"Intervals whose records were discarded to save disk space; their steps are not "
		"judged; seconds since the first record",
		"from|to|events|launches|steps|<steps are|mean step|median step");
	for (uint32_t i = 0; i < s->r->n_discarded; i++) {
		const struct tfh_discarded *g = &s->r->discarded[i];
		tfh_put("<tr>", s->out);
		tfh_html_time(s->out, g->start_s);
		tfh_html_time(s->out, g->end_s);
		tfh_html_count(s->out, g->events);
		tfh_html_count(s->out, g->launches);
		tfh_html_count(s->out, g->steps);
		tfh_html_text(s->out, g->estimated ? "estimated" : "counted");
		tfh_html_time(s->out, g->mean_s);
		tfh_html_time(s->out, g->median_s);
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
	tfh_html_table(s->out, "What was called in them", "<function|from|calls|in all");
	for (uint32_t i = 0; i < s->r->n_discarded; i++)
		for (uint32_t k = 0; k < s->r->discarded[i].n_call; k++) {
			const struct tfh_discarded_call *c = &s->r->discarded[i].call[k];
			tfh_html_row(s->out, c->fn);
			tfh_html_time(s->out, s->r->discarded[i].start_s);
			tfh_html_count(s->out, c->count);
			tfh_html_time(s->out, c->total_s);
			tfh_html_row_end(s->out);
		}
	tfh_html_table_end(s->out);
}

void tfh_page_run(const struct tfh_html_page *s)
{
	write_tree(s);
	tfh_put("<div class=\"tables\">\n", s->out);
	write_segments(s);
	write_startup(s);
	for (int i = 0; i < TFH_SEEN_STARTS; i++)
		if (s->r->found.start[i].kind > TFH_BRANCH_RUN)
			write_seen(s, &s->r->found.start[i]);
	tfh_put("</div>\n", s->out);
	write_discarded(s);
}
