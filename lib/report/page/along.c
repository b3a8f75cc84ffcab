#include "base/bisect.h"
#include "report/page/along.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "model/big.h"

#define BIN_TO 0.99 /* the longest steps, beyond this quantile, share one bin */

double tfh_along_quantile(const struct tfh_along *s, double share)
{
	if (!s->n)
		return NAN;
	double at = share * (double)(s->n - 1);
	uint64_t i = (uint64_t)at, next = i + 1 < s->n ? i + 1 : i;
	return s->sorted[i] + (at - (double)i) * (s->sorted[next] - s->sorted[i]);
}

uint64_t tfh_along_below(const struct tfh_along *s, double length)
{
	return TFH_BISECT(i, 0, s->n, s->sorted[i] < length);
}

static int sort_steps(struct tfh_along *s, const struct tfh_result *r)
{
	s->sorted = calloc(r->n_step + 1, sizeof(*s->sorted));
	if (!s->sorted)
		return -ENOMEM;
	TFH_EACH (i, r->n_step)
		if (tfh_along_has(&r->step[i]))
			s->sorted[s->n++] = r->step[i].dur_s;
	qsort(s->sorted, s->n, sizeof(*s->sorted), tfh_by_value);
	return 0;
}

static void fill_bins(struct tfh_along *s)
{
	double high;

	if (!s->n)
		return;
	s->low_s = s->sorted[0];
	high = tfh_along_quantile(s, BIN_TO);
	s->width_s = high > s->low_s ? (high - s->low_s) / TFH_ALONG_BINS : s->low_s / 100;
	for (uint64_t i = 0; i < s->n; i++) {
		double at = s->width_s > 0 ? (s->sorted[i] - s->low_s) / s->width_s : 0;
		/* the step at the quantile itself lies on the edge */
		if (s->sorted[i] <= high || at < TFH_ALONG_BINS)
			s->bin[at < TFH_ALONG_BINS ? (uint32_t)at : TFH_ALONG_BINS - 1]++;
		else
			s->longer++;
	}
}

static void end_point(struct tfh_along_point *t, double *length)
{
	qsort(length, t->steps, sizeof(*length), tfh_by_value);
	t->least_s = length[0];
	t->median_s = length[t->steps / 2];
	t->most_s = length[t->steps - 1];
	for (int p = 0; p < TFH_PART_COUNT; p++)
		t->part_s[p] /= (double)t->steps;
}

static int cut_points(struct tfh_along *s, const struct tfh_result *r)
{
	s->together = (s->n + TFH_ALONG_POINTS - 1) / TFH_ALONG_POINTS;
	s->point = calloc(TFH_ALONG_POINTS, sizeof(*s->point));
	double *length = calloc(s->together + 1, sizeof(*length));
	struct tfh_along_point *t = s->point;

	if (!s->point || !length) {
		free(length);
		return -ENOMEM;
	}
	TFH_EACH (i, r->n_step) {
		const struct tfh_step *step = &r->step[i];
		if (!tfh_along_has(step))
			continue;
		if (!t->steps) {
			t->start_s = tfh_into_run(r, step->start_s);
			t->first = step->index;
			s->n_point++;
		}
		length[t->steps++] = step->dur_s;
		for (int p = 0; p < TFH_PART_COUNT; p++)
			t->part_s[p] += (double)step->breakdown[p];
		if (t->steps == s->together)
			end_point(t++, length);
	}
	if (s->n_point && t < s->point + s->n_point)
		end_point(t, length);
	free(length);
	return 0;
}

int tfh_along_make(struct tfh_along *s, const struct tfh_result *r)
{
	memset(s, 0, sizeof(*s));
	int rc = sort_steps(s, r);

	if (rc)
		return rc;
	fill_bins(s);
	return s->n ? cut_points(s, r) : 0;
}

void tfh_along_free(struct tfh_along *s)
{
	free(s->sorted);
	free(s->point);
}
