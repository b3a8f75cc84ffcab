/* Python lines: the verdict's own, those where threads and worker processes were seen, and those
 * that make calls. */

#include "base/print.h"
#include "model/symbols/backtraces.h"
#include "model/symbols/pylines.h"
#include "report/page/page_parts.h"
#include "report/seen_tree.h"
#include "report/words/words.h"

#define MOST_FRAMES 64u

/* "train.py:41", with its whole path as a tooltip. */
static void write_at(const struct tfh_html_page *s, const char *file, uint32_t line)
{
	tfh_html(s->out,
		 "<td class=\"t\"><code title=\"%s\">%s:<span data-v=\"%u\">%u</span></code></td>",
		 file, tfh_short_file(file), line, line);
}

static void write_blamed(const struct tfh_html_page *s)
{
	const struct tfh_seen_line *l = &s->r->found.line;

	if (!l->file)
		return;
	tfh_html_table(s->out, "The line to blame",
		       "<function|<at|a step|+-|samples|<mostly calls|<at");
	tfh_html_row(s->out, l->function);
	if (l->line)
		write_at(s, l->file, l->line);
	else
		tfh_html_text(s->out, l->file);
	tfh_html_time(s->out, l->s_per_step);
	tfh_html_time(s->out, l->off_s);
	tfh_html_count(s->out, l->samples);
	tfh_html_text(s->out, l->callee);
	if (l->callee)
		write_at(s, l->callee_file, l->callee_line);
	else
		tfh_html_text(s->out, NULL);
	tfh_html_row_end(s->out);
	tfh_html_table_end(s->out);
}

/* Of a run in which no call was recorded. */
static void write_sampled(const struct tfh_html_page *s)
{
	const struct tfh_sampled *of = &s->r->found.sampled;
	double all_s = of->wall_s - of->start_s;

	if (!of->n_line)
		return;
	tfh_html_table(s->out,
		       of->pool.file ? "Where the workers' time went"
				     : "Where the main thread's time went",
		       "<line|<doing|in all|of the time|samples|<");
	for (uint32_t i = 0; i < of->n_line; i++) {
		const struct tfh_sampled_line *l = &of->line[i];
		tfh_html_row(s->out, tfh_sampled_at(s->words, l));
		tfh_html_text(s->out, tfh_sampled_does(s->r, l));
		tfh_html_time(s->out, l->share * all_s);
		tfh_html_share(s->out, l->share);
		tfh_html_count(s->out, l->samples);
		tfh_html_bar(s->out, l->share, "host");
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
}

static void write_workers(const struct tfh_html_page *s)
{
	const struct tfh_seen_workers *w = &s->r->found.workers;

	if (!w->processes)
		return;
	tfh_html_table(s->out, "Worker processes that make batches",
		       "processes|busy|samples|<mostly in|<at|of that time|+-");
	tfh_put("<tr>", s->out);
	tfh_html_count(s->out, w->processes);
	tfh_html_share(s->out, w->busy);
	tfh_html_count(s->out, w->samples);
	if (w->line.file) {
		tfh_html_text(s->out, w->line.function);
		write_at(s, w->line.file, w->line.line);
		tfh_html_share(s->out, w->line.share);
		tfh_html_share(s->out, w->line.off);
	}
	tfh_html_row_end(s->out);
	tfh_html_table_end(s->out);
}

static void write_more_workers(const struct tfh_html_page *s)
{
	const struct tfh_more_workers *m = &s->r->found.workers.more;

	if (!m->to)
		return;
	tfh_html_table(s->out, "Workers needed to keep up with the steps",
		       "now|needed|a step then takes, from|to");
	tfh_put("<tr>", s->out);
	tfh_html_count(s->out, m->from);
	tfh_html_count(s->out, m->to);
	tfh_html_time(s->out, m->low_s);
	tfh_html_time(s->out, m->high_s);
	tfh_html_row_end(s->out);
	tfh_html_table_end(s->out);
}

/* ---- the tree of calls ---- */

static unsigned depth_of(const struct tfh_seen_node *node, uint32_t i)
{
	unsigned depth = 0;

	for (; node[i].parent != i; i = node[i].parent)
		depth++;
	return depth;
}

static void write_below(const struct tfh_html_page *s, const struct tfh_seen_tree *t,
			uint32_t parent)
{
	const struct tfh_seen_node *node = t->node;
	struct tfh_seen_rest rest = tfh_seen_tree_rest(t, parent);
	unsigned depth = parent == UINT32_MAX ? 0 : depth_of(node, parent) + 1;

	depth = depth < 16 ? depth : 16;
	for (uint32_t i = tfh_seen_tree_next(t, parent, UINT32_MAX); i != UINT32_MAX;
	     i = tfh_seen_tree_next(t, parent, i)) {
		tfh_html(s->out, "<tr><th scope=\"row\" class=\"d%u\">%s</th>", depth,
			 node[i].function);
		write_at(s, node[i].file, node[i].line);
		tfh_html_time(s->out, node[i].s_per_step);
		tfh_html_time(s->out, node[i].own_s);
		tfh_html_count(s->out, node[i].samples);
		tfh_html_bar(s->out, node[i].s_per_step / t->all_s, "host");
		tfh_html_row_end(s->out);
		write_below(s, t, i);
	}
	if (!rest.n)
		return;
	tfh_html(s->out, "<tr><th scope=\"row\" class=\"d%u\">(%u other line%s)</th><td></td>",
		 depth, rest.n, rest.n == 1 ? "" : "s");
	tfh_html_time(s->out, rest.s_per_step);
	tfh_html_time(s->out, rest.s_per_step);
	tfh_html_count(s->out, rest.samples);
	tfh_html_bar(s->out, rest.s_per_step / t->all_s, "host");
	tfh_html_row_end(s->out);
}

static void write_tree(const struct tfh_html_page *s, const struct tfh_seen_node *node, uint32_t n,
		       const char *caption)
{
	struct tfh_seen_tree t = tfh_seen_tree_of(node, n);

	if (!(t.all_s > 0))
		return;
	tfh_html_table(s->out, caption,
		       s->r->found.sampled.samples ? "<function|<at|in all|its own|samples|<"
						   : "<function|<at|a step|its own|samples|<");
	write_below(s, &t, UINT32_MAX);
	tfh_html_table_end(s->out);
}

/* ---- where calls are made ---- */

static void write_native(const struct tfh_html_page *s, const struct tfh_model_frame *f)
{
	tfh_html(s->out, "<li>%s, <code>", f->function);
	if (f->line)
		tfh_html(s->out, "%s:<span data-v=\"%u\">%u</span></code>, <code>", f->file,
			 f->line, f->line);
	tfh_html(s->out, "%s+<span data-v=\"%llu\">%llu</span></code></li>\n", f->module,
		 (unsigned long long)f->offset, (unsigned long long)f->offset);
}

void tfh_page_frames(const struct tfh_html_page *s, uint32_t stack)
{
	struct tfh_model_line python[MOST_FRAMES];
	struct tfh_model_frame native[MOST_FRAMES];
	uint32_t n = tfh_run_python(s->r->run, s->r->process, stack, python, MOST_FRAMES);
	uint32_t m = tfh_run_stack(s->r->run, s->r->process, stack, native, MOST_FRAMES);

	if (!n && !m)
		return;
	tfh_html(s->out, "<details><summary>%u frame%s</summary><ol class=\"frames\">\n", n + m,
		 n + m == 1 ? "" : "s");
	for (uint32_t i = 0; i < n; i++)
		tfh_html(s->out, "<li>%s, <code>%s:<span data-v=\"%u\">%u</span></code></li>\n",
			 python[i].function, python[i].file, python[i].line, python[i].line);
	for (uint32_t i = 0; i < m; i++)
		write_native(s, &native[i]);
	tfh_put("</ol></details>", s->out);
}

static void write_places(const struct tfh_html_page *s)
{
	struct tfh_call_place place[TFH_CALL_PLACES];
	uint32_t n = tfh_call_places(s->r, place);

	if (!n)
		return;
	tfh_html_table(s->out, "Where most calls of a kind are made", "<|<function|<at|<");
	for (uint32_t i = 0; i < n; i++) {
		const struct tfh_call_site *site = place[i].site;
		tfh_html_row(s->out, place[i].words);
		tfh_html_text(s->out, site->fn);
		tfh_html_text(s->out, site->where);
		tfh_put("<td class=\"t\">", s->out);
		tfh_page_frames(s, site->stack);
		tfh_put("</td>", s->out);
		tfh_html_row_end(s->out);
	}
	tfh_html_table_end(s->out);
}

void tfh_page_lines(const struct tfh_html_page *s)
{
	const struct tfh_findings *f = &s->r->found;
	bool sampled = f->sampled.samples, threads = f->workers.threads;

	write_sampled(s);
	write_blamed(s);
	write_workers(s);
	write_more_workers(s);
	if (f->n_node)
		write_tree(
			s, f->node, f->n_node,
			f->sampled.pool.file ? "Lines at which the workers were"
			: sampled
				? "Lines at which the main thread was"
				: "Lines at which the job's threads were sampled between their calls");
	else
		tfh_html_note(s->out,
			      s->words->no_line
				      ? s->words->no_line
				      : "No line of the program was seen between the job's calls.");
	write_tree(s, f->workers.node, f->workers.n_node,
		   !sampled  ? "Lines at which its worker processes were busy, all added up"
		   : threads ? "Lines at which other threads were busy meanwhile"
			     : "Lines at which other processes were busy meanwhile");
	write_places(s);
}
