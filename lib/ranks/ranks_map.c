/* The heat map: by how much a rank's own time exceeds its peers', ranks by time. A row of several ranks
 * shows the worst of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "ranks/ranks.h"

#define LABEL 17

/* From 2, 5, 10, 20 and 50 % of a step on. */
static char shade_of(double share)
{
	return isnan(share)   ? ' '
	       : share < 0.02 ? '.'
	       : share < 0.05 ? ':'
	       : share < 0.1  ? '+'
	       : share < 0.2  ? 'x'
	       : share < 0.5  ? '%'
			      : '#';
}

static double worst_of(const struct tfh_ranks *job, uint32_t from, uint32_t to, uint32_t t0,
		       uint32_t t1)
{
	double most = NAN;

	for (uint32_t i = from; i < to; i++)
		for (uint32_t t = t0; t < t1; t++)
			if (job->rank[i].time[t].steps)
				most = fmax(most, (double)job->rank[i].time[t].own_s);
	return most / job->step_s;
}

static void print_row(FILE *out, const struct tfh_ranks *job, uint32_t from, uint32_t to,
		      uint32_t columns)
{
	char cells[TFH_RANKS_TIMES + 1], label[48];

	for (uint32_t c = 0; c < columns; c++)
		cells[c] = shade_of(worst_of(job, from, to, job->times * c / columns,
					     job->times * (c + 1) / columns));
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
	width = width < job->times ? width : job->times;
	/* A column has a few steps. */
	if (job->steps / job->n < 4 * width)
		width = (unsigned)(job->steps / job->n / 4) + 1;
	rows = rows < job->n ? rows : job->n;
	for (unsigned i = 0; i < rows; i++)
		print_row(out, job, (uint32_t)((uint64_t)job->n * i / rows),
			  (uint32_t)((uint64_t)job->n * (i + 1) / rows), width);
	tfh_put("  longer than peers by . <2 % : <5 % + <10 % x <20 % % <50 % # more of a step\n",
		out);
}
