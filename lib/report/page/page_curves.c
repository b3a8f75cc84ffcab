/* A heat map of ranks over time that needs no script: a row for each rank; each cell shows the mean
 * own time of its steps. */
#include <math.h>
#include <stdlib.h>

#include "base/print.h"
#include "base/sort.h"
#include "report/page/page_parts.h"

#define CELLS 8192u
#define COLUMNS 120u
#define LEAST_COLUMNS 8u
#define ROW_PX 16u
#define MAP_PX 640u
/* The colour scale runs from a low quantile of the cells' values to a high one, and covers at least
 * 20 %: smaller differences do not matter. */
#define FEW 0.05
#define LEAST_SPAN 1.2

struct heat {
	const struct tfh_curves *curves;
	uint32_t from, to, each, columns; /* points, and points per cell */
	double low_s, high_s;		  /* the scale */
};

/* Mean own time per step; NAN: no step began in this cell. */
static double cell_of(const struct heat *h, const struct tfh_curve *c, uint32_t column)
{
	uint32_t first = h->from + column * h->each, last = first + h->each, n = 0;
	double sum = 0;

	for (uint32_t k = first; k < last && k < h->to; k++) {
		sum += c->own_s[k];
		n += c->steps[k];
	}
	return n ? sum / n : NAN;
}

/* Finds the points in which any rank has steps. */
static void find_range(struct heat *h)
{
	h->from = TFH_CURVE_POINTS;
	for (uint32_t i = 0; i < h->curves->n; i++)
		for (uint32_t k = 0; k < TFH_CURVE_POINTS; k++) {
			if (!h->curves->of[i].steps[k])
				continue;
			h->from = k < h->from ? k : h->from;
			h->to = k + 1 > h->to ? k + 1 : h->to;
		}
}

/* False: there is nothing to compare, or no memory. */
static bool find_scale(struct heat *h)
{
	uint32_t n = 0, all = h->curves->n * h->columns;
	double *v = calloc(all + 1, sizeof(*v));

	for (uint32_t i = 0; v && i < h->curves->n; i++)
		for (uint32_t c = 0; c < h->columns; c++) {
			double x = cell_of(h, &h->curves->of[i], c);
			if (!isnan(x))
				v[n++] = x;
		}
	if (n > 1) {
		qsort(v, n, sizeof(*v), tfh_by_value);
		h->low_s = v[(uint32_t)(FEW * (n - 1))];
		h->high_s = fmax(v[(uint32_t)((1 - FEW) * (n - 1))], LEAST_SPAN * h->low_s);
	}
	free(v);
	return n > 1 && h->high_s > 0;
}

static void write_row(const struct tfh_html_page *s, const struct heat *h, uint32_t row,
		      int32_t rank, const struct tfh_curve *course)
{
	double width_s = h->curves->wall_s * h->each / TFH_CURVE_POINTS;
	double from_s = h->curves->wall_s * h->from / TFH_CURVE_POINTS;
	char own[TFH_TEXT], at[TFH_TEXT];

	for (uint32_t c = 0; c < h->columns; c++) {
		double x = cell_of(h, course, c);
		if (isnan(x))
			continue;
		double share = fmin(fmax((x - h->low_s) / (h->high_s - h->low_s), 0), 1);
		tfh_print(s->out,
			  "<rect x=\"%u\" y=\"%u\" width=\"1\" height=\"1\" fill-opacity=\"%.2f\">",
			  c, row, 0.06 + 0.94 * share);
		tfh_html(s->out, "<title>rank %d, %s after the start: %s</title></rect>\n", rank,
			 tfh_fmt_time(at, from_s + c * width_s), tfh_fmt_time(own, x));
	}
}

static const struct tfh_curve *curve_of(const struct tfh_curves *c, uint32_t process)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->of[i].process == process)
			return &c->of[i];
	return NULL;
}

void tfh_page_curves(const struct tfh_html_page *s)
{
	struct heat h = {.curves = s->curves};
	char low[TFH_TEXT], high[TFH_TEXT], from[TFH_TEXT], to[TFH_TEXT];
	uint32_t ranks = s->r->n_rank;

	if (!h.curves || h.curves->n < 2 || ranks < 2)
		return;
	find_range(&h);
	uint32_t columns = CELLS / ranks < COLUMNS ? CELLS / ranks : COLUMNS;
	columns = columns > LEAST_COLUMNS ? columns : LEAST_COLUMNS;
	h.each = h.to > h.from ? (h.to - h.from + columns - 1) / columns : 1;
	h.columns = h.to > h.from ? (h.to - h.from + h.each - 1) / h.each : 0;
	if (!find_scale(&h))
		return;
	double point = h.curves->wall_s / TFH_CURVE_POINTS;
	tfh_html(
		s->out,
		"<h3>Ranks along the run</h3>\n<p class=\"note\">What a step takes without waiting "
		"for other ranks, from %s to %s after the start; one row for each rank, rank %d at "
		"the top. Pale: %s or less, dark: %s or more.</p>\n",
		tfh_fmt_time(from, h.from * point), tfh_fmt_time(to, h.to * point),
		s->r->rank[0].rank, tfh_fmt_time(low, h.low_s), tfh_fmt_time(high, h.high_s));
	tfh_print(s->out,
		  "<svg id=\"heat-ranks\" class=\"heatmap\" viewBox=\"0 0 %u %u\" height=\"%u\" "
		  "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Own time of each rank's "
		  "steps along the run; the table below has the means\">\n",
		  h.columns, ranks, ranks * ROW_PX < MAP_PX ? ranks * ROW_PX : MAP_PX);
	for (uint32_t i = 0; i < ranks; i++) {
		const struct tfh_curve *course = curve_of(h.curves, s->r->rank[i].process);
		if (course)
			write_row(s, &h, i, s->r->rank[i].rank, course);
	}
	tfh_put("</svg>\n", s->out);
}
