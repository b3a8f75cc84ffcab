#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "export/slice_lanes.h"

static int end_until(struct tfh_row_lanes *row, uint32_t lane, int64_t t, tfh_lane_end end,
		     void *arg)
{
	struct tfh_open_slices *l = row->lane[lane];
	int rc = 0;

	while (!rc && l->open && l->end[l->open - 1] <= t)
		rc = end(arg, lane, l->end[--l->open]);
	return rc;
}

int tfh_lanes_take(struct tfh_row_lanes *row, int64_t t0, int64_t *t1, tfh_lane_end end, void *arg)
{
	for (uint32_t i = 0; i < TFH_LANES; i++) {
		if (!row->lane[i] && !(row->lane[i] = calloc(1, sizeof(*row->lane[i]))))
			return -ENOMEM;
		struct tfh_open_slices *l = row->lane[i];
		int rc = end_until(row, i, t0, end, arg);
		if (rc)
			return rc;
		bool last = i + 1 == TFH_LANES;
		int64_t outer = l->open ? l->end[l->open - 1] : INT64_MAX;
		if (outer < *t1 && !last)
			continue;
		if (l->open == TFH_LANE_DEPTH)
			return -1;
		*t1 = outer < *t1 ? outer : *t1;
		l->end[l->open++] = *t1;
		return (int)i;
	}
	return -1;
}

int tfh_lanes_close(struct tfh_row_lanes *row, tfh_lane_end end, void *arg)
{
	int rc = 0;

	for (uint32_t i = 0; i < TFH_LANES && !rc; i++)
		if (row->lane[i])
			rc = end_until(row, i, INT64_MAX, end, arg);
	return rc;
}

void tfh_lanes_free(struct tfh_row_lanes *row)
{
	for (uint32_t i = 0; i < TFH_LANES; i++)
		free(row->lane[i]);
}
