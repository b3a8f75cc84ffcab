/*
 * Nested slices as begins and ends in order of time, for viewers that keep a stack per track. A
 * slice that begins inside another one and ends after it goes to another lane of the row.
 */
#ifndef TFH_EXPORT_SLICE_LANES_H
#define TFH_EXPORT_SLICE_LANES_H

#include <stdint.h>

#define TFH_LANES 8u	    /* per row; slices that fit in none are cut short */
#define TFH_LANE_DEPTH 256u /* nested slices; deeper ones are left out */

struct tfh_open_slices {
	uint32_t open;
	int64_t end[TFH_LANE_DEPTH]; /* of the open slices, the innermost last */
};

struct tfh_row_lanes {
	struct tfh_open_slices *lane[TFH_LANES];
};

/* Called for each slice that ends; 0 or an errno. */
typedef int (*tfh_lane_end)(void *arg, uint32_t lane, int64_t t);

/* Ends the slices that are over and finds the lane of a new one. Slices of a row come in order of
 * their begin, the longer one first. Returns the lane, after shortening *t1 if necessary; -1: left
 * out; below -1: -ENOMEM or an error of `end`. */
int tfh_lanes_take(struct tfh_row_lanes *row, int64_t t0, int64_t *t1, tfh_lane_end end, void *arg);
/* Ends all slices. */
int tfh_lanes_close(struct tfh_row_lanes *row, tfh_lane_end end, void *arg);
void tfh_lanes_free(struct tfh_row_lanes *row);

#endif
