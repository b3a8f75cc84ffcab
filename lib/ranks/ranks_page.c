/* The page of a job of many ranks: the sentences of the text, the heat map as a drawing, the hosts'
 * clocks, and the ranks for which others wait longest. It needs no script. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "base/text.h"
#include "ranks/ranks_parts.h"
#include "report/format.h"
#include "report/page/html.h"
#include "report/page/html_page.h"

#define ROWS 96u     /* of the map */
#define COLUMNS 100u /* at most */
#define LISTED 256u  /* ranks, hosts */
#define CELL_X 9u
#define CELL_Y 8u
#define LABEL_X 96u

/* ---- sentences ---- */

/* Headings have no indent, sentences one of two columns. */
static void write_line(FILE *out, const char *line, bool *in_list)
{
	bool heading = *line && *line != ' ';

	if (*in_list && heading)
		tfh_put("</ul></section>\n", out);
	if (heading)
		tfh_html(out, "<section><h2>%s</h2><ul>\n", line);
	else if (*line)
		tfh_html(out, "<li>%s</li>\n", line + strspn(line, " "));
	*in_list |= heading;
}

static int write_sentences(FILE *out, const struct tfh_ranks *job)
{
	const struct tfh_ranks_style style = {.all = true, .columns = 1u << 16};
	bool in_list = false;
	char *text = NULL, *next;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return -ENOMEM;
	tfh_ranks_sentences(f, job, &style);
	if (fclose(f) || !text) {
		free(text);
		return -ENOMEM;
	}
	next = strchr(text, '\n');
	if (next)
		*next++ = '\0';
	tfh_html(out, "<header><h1>%s</h1></header>\n<main>\n", text);
	for (char *line = next; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		write_line(out, line, &in_list);
	}
	if (in_list)
		tfh_put("</ul></section>\n", out);
	free(text);
	return 0;
}

/* ---- the map ---- */

static void row_name(char *out, size_t size, const struct tfh_ranks *job, uint32_t from,
		     uint32_t to)
{
	if (to - from == 1)
		snprintf(out, size, "%d", job->rank[from].rank);
	else
		snprintf(out, size, "%d to %d", job->rank[from].rank, job->rank[to - 1].rank);
}

static void write_cell(FILE *out, double share, unsigned shade, const unsigned cell[2], unsigned y)
{
	char text[TFH_TEXT];

	tfh_html(
		out,
		"<rect class=\"h%u\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\"><title>%s longer "
		"than peers</title></rect>",
		shade, LABEL_X + cell[0] * CELL_X, y, (cell[1] - cell[0]) * CELL_X, CELL_Y - 1,
		tfh_fmt_share(text, share));
}

/* Adjacent cells without any deviation become one cell. */
static void write_row(FILE *out, const struct tfh_ranks *job, uint32_t from, uint32_t to,
		      uint32_t columns, unsigned y)
{
	char name[64];

	row_name(name, sizeof(name), job, from, to);
	tfh_html(out, "<g><title>%s %s, %s</title><text x=\"%u\" y=\"%u\">%s</text>",
		 to - from == 1 ? "rank" : "ranks", name, job->host[job->rank[from].host].name,
		 LABEL_X - 6, y + CELL_Y - 1, name);
	for (uint32_t c = 0, end; c < columns; c = end) {
		double share = tfh_ranks_worst(job, from, to, c, columns), worst = share;
		unsigned shade = tfh_ranks_shade(share);
		for (end = c + 1; !shade && end < columns; end++) {
			share = tfh_ranks_worst(job, from, to, end, columns);
			if (isnan(share) || tfh_ranks_shade(share))
				break;
			worst = fmax(worst, share);
		}
		if (!isnan(worst))
			write_cell(out, worst, shade, (unsigned[]){c, end}, y);
	}
	tfh_put("</g>\n", out);
}

static void write_legend(FILE *out)
{
	tfh_put("<p class=\"note legend\">Longer than peers by, in parts of a step:", out);
	for (unsigned i = 0; i < TFH_RANKS_SHADES; i++)
		tfh_html(out,
			 " <svg viewBox=\"0 0 9 8\"><rect class=\"h%u\" width=\"9\" "
			 "height=\"8\"/></svg> %s",
			 i, tfh_ranks_shade_name(i));
	tfh_put(". A row of several ranks shows the worst of them. Time runs to the right.</p>\n",
		out);
}

static void write_map(FILE *out, const struct tfh_ranks *job)
{
	uint32_t columns = tfh_ranks_columns(job, COLUMNS), rows = job->n < ROWS ? job->n : ROWS;

	if (!columns || !rows)
		return;
	tfh_html(
		out,
		"<section id=\"map\"><h2>Ranks over time</h2>\n<svg class=\"map\" viewBox=\"0 0 %u "
		"%u\" role=\"img\" aria-label=\"By how much ranks take longer than their peers, "
		"over time\">\n",
		LABEL_X + columns * CELL_X, rows * CELL_Y);
	for (uint32_t i = 0; i < rows; i++)
		write_row(out, job, (uint32_t)((uint64_t)job->n * i / rows),
			  (uint32_t)((uint64_t)job->n * (i + 1) / rows), columns, i * CELL_Y);
	tfh_put("</svg>\n", out);
	write_legend(out);
	tfh_put("</section>\n", out);
}

/* ---- tables ---- */

static void note_more(FILE *out, uint32_t n, const char *of)
{
	if (n > LISTED)
		tfh_html(out,
			 "<p class=\"note\">The first %u of %u; <code>tfhook report --ranks "
			 "%s</code> has all.</p>\n",
			 LISTED, n, of);
}

static void write_clocks(FILE *out, const struct tfh_ranks *job)
{
	if (job->hosts < 2)
		return;
	tfh_put("<section id=\"hosts\"><h2>Clocks of hosts</h2>\n", out);
	tfh_html_table(out, NULL, "<Host|Ahead|Gaining a second|Residual");
	for (uint32_t h = 0; h < job->hosts && h < LISTED; h++) {
		const struct tfh_ranks_host *x = &job->host[h];
		tfh_html_row(out, x->name);
		tfh_html_time(out, x->aligned ? x->offset_s : NAN);
		tfh_html_time(out, x->aligned ? x->drift : NAN);
		tfh_html_time(out, x->aligned ? x->residual_s : NAN);
		tfh_html_row_end(out);
	}
	tfh_html_table_end(out);
	note_more(out, job->hosts, "--json");
	tfh_put("</section>\n", out);
}

/* Those for which the others waited longest come first. */
static int by_held(const void *a, const void *b)
{
	const struct tfh_ranks_rank *x = *(struct tfh_ranks_rank *const *)a,
				    *y = *(struct tfh_ranks_rank *const *)b;
	double p = isnan(x->held_s) ? -1 : x->held_s, q = isnan(y->held_s) ? -1 : y->held_s;

	return p != q ? (p < q) - (p > q) : (x->rank > y->rank) - (x->rank < y->rank);
}

static int write_ranks(FILE *out, const struct tfh_ranks *job)
{
	struct tfh_ranks_rank **by = malloc(job->n * sizeof(*by) + 1);

	if (!by)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->n; i++)
		by[i] = &job->rank[i];
	qsort(by, job->n, sizeof(*by), by_held);
	tfh_put("<section id=\"ranks\"><h2>Ranks, by how long others wait for them</h2>\n", out);
	tfh_html_table(out, NULL, "Rank|<Host|Local|Steps|Step|Of its own|Late|Others waited|Last");
	for (uint32_t i = 0; i < job->n && i < LISTED; i++) {
		double n = by[i]->steps ? (double)by[i]->steps : NAN;
		char name[16];
		snprintf(name, sizeof(name), "%d", by[i]->rank);
		tfh_html_row(out, name);
		tfh_html_text(out, job->host[by[i]->host].name);
		tfh_html_number(out, by[i]->local);
		tfh_html_count(out, by[i]->steps);
		tfh_html_time(out, by[i]->wall_s / n);
		tfh_html_time(out, by[i]->own_s / n);
		tfh_html_time(out, by[i]->late_s);
		tfh_html_time(out, by[i]->held_s);
		tfh_html_share(out, by[i]->last);
		tfh_html_row_end(out);
	}
	tfh_html_table_end(out);
	note_more(out, job->n, "");
	tfh_put("</section>\n", out);
	free(by);
	return 0;
}

int tfh_ranks_page(FILE *out, const struct tfh_ranks *job)
{
	char title[256];

	snprintf(title, sizeof(title), "%s: %u ranks",
		 tfh_file_of(job->command ? job->command : ""), job->n);
	tfh_page_top(out, title);
	int rc = write_sentences(out, job);
	if (!rc) {
		write_map(out, job);
		write_clocks(out, job);
		rc = write_ranks(out, job);
	}
	tfh_put("</main>\n</body>\n</html>\n", out);
	return rc;
}
