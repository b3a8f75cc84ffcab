/*
 * Nested slices as begins and ends in order of time, for viewers that keep a stack per track. What
 * begins inside another slice and ends after it goes to a further lane of the row.
 */
#ifndef TFH_EXPORT_SLICE_LANES_H
#define TFH_EXPORT_SLICE_LANES_H

#include <stdint.h>

#define TFH_LANES 8u	    /* of a row; what fits none of them is cut short */
#define TFH_LANE_DEPTH 256u /* slices inside each other; deeper ones are left out */

struct tfh_open_slices {
	uint32_t open;
	int64_t end[TFH_LANE_DEPTH]; /* of the open slices, the innermost last */
};

struct tfh_row_lanes {
	struct tfh_open_slices *lane[TFH_LANES];
};

/* Called for each slice that ends; 0 or an errno. */
typedef int (*tfh_lane_end)(void *arg, uint32_t lane, int64_t t);

/* Finds the lane of a slice, after ending what has ended by then. Slices of a row come in order of
 * their begin, the longer one first. Returns the lane, *t1 being cut if need be; -1: left out;
 * -ENOMEM and what `end` returned: below -1. */
int tfh_lanes_take(struct tfh_row_lanes *row, int64_t t0, int64_t *t1, tfh_lane_end end, void *arg);
/* Ends all. */
int tfh_lanes_close(struct tfh_row_lanes *row, tfh_lane_end end, void *arg);
void tfh_lanes_free(struct tfh_row_lanes *row);

#endif
