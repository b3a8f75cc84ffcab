/* The heat map: by how much a rank's own time exceeds its peers', ranks by time. A row of several
 * ranks shows the worst of them. */
#include <math.h>

#include "base/print.h"
#include "ranks/ranks_parts.h"

#define LABEL 17

static const struct {
	double below; /* share of a step */
	char shown;
	const char *name;
} shades[TFH_RANKS_SHADES] = {{0.02, '.', "<2 %"}, {0.05, ':', "<5 %"}, {0.1, '+', "<10 %"},
			      {0.2, 'x', "<20 %"}, {0.5, '%', "<50 %"}, {INFINITY, '#', "more"}};

unsigned tfh_ranks_shade(double share)
{
	unsigned i = 0;

	while (i + 1 < TFH_RANKS_SHADES && share >= shades[i].below)
		i++;
	return i;
}

const char *tfh_ranks_shade_name(unsigned shade)
{
	return shades[shade].name;
}

double tfh_ranks_worst(const struct tfh_ranks *job, uint32_t from, uint32_t to, uint32_t column,
		       uint32_t columns)
{
	uint32_t t0 = job->times * column / columns, t1 = job->times * (column + 1) / columns;
	double most = NAN;

	for (uint32_t i = from; i < to; i++)
		for (uint32_t t = t0; t < t1; t++)
			if (job->rank[i].time[t].steps)
				most = fmax(most, (double)job->rank[i].time[t].own_s);
	return most / job->step_s;
}

/* Every column covers at least a few steps. */
uint32_t tfh_ranks_columns(const struct tfh_ranks *job, uint32_t most)
{
	uint32_t n = most < job->times ? most : job->times;

	if (job->n && job->steps / job->n < 4 * n)
		n = (uint32_t)(job->steps / job->n / 4) + 1;
	return job->n ? n : 0;
}

static void print_row(FILE *out, const struct tfh_ranks *job, uint32_t from, uint32_t to,
		      uint32_t columns)
{
	char cells[TFH_RANKS_TIMES + 1], label[48];

	for (uint32_t c = 0; c < columns; c++) {
		double share = tfh_ranks_worst(job, from, to, c, columns);
		cells[c] = isnan(share) ? ' ' : shades[tfh_ranks_shade(share)].shown;
	}
	cells[columns] = '\0';
	if (to - from == 1)
		snprintf(label, sizeof(label), "%d", job->rank[from].rank);
	else
		snprintf(label, sizeof(label), "%d-%d", job->rank[from].rank,
			 job->rank[to - 1].rank);
	tfh_print(out, "  %-*s%s\n", LABEL, label, cells);
}

void tfh_ranks_map(FILE *out, const struct tfh_ranks *job, unsigned rows, unsigned columns)
{
	unsigned width = columns > LABEL + 12 ? columns - LABEL - 2 : 10;

	if (!job->times || !job->n)
		return;
	width = tfh_ranks_columns(job, width);
	rows = rows < job->n ? rows : job->n;
	for (unsigned i = 0; i < rows; i++)
		print_row(out, job, (uint32_t)((uint64_t)job->n * i / rows),
			  (uint32_t)((uint64_t)job->n * (i + 1) / rows), width);
	tfh_put("  longer than peers by", out);
	for (unsigned i = 0; i < TFH_RANKS_SHADES; i++)
		tfh_print(out, " %c %s", shades[i].shown, shades[i].name);
	tfh_put(" of a step\n", out);
}
