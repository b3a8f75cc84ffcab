/* How far the loops of sampled main threads had come, for start.json (format/FORMAT.md, 5). */
#ifndef TFH_CLI_START_LOOPS_H
#define TFH_CLI_START_LOOPS_H

#include "base/json.h"
#include "sampling/iterators.h"

#define TFH_START_LOOPS 65536u

struct tfh_start_loops {
	struct {
		uint64_t done, left;
		uint32_t depth;
		uint8_t count; /* enum tfh_py_count */
	} loop[TFH_START_LOOPS];
	uint32_t n; /* no further ones are taken if it is full */
};

/* Of one sample: the number of its first loop, and how many it has. */
struct tfh_sample_loops {
	uint32_t first, n;
};

/* Reads the loops of these frames (innermost first), whose code objects were fetched. */
struct tfh_sample_loops tfh_start_loops_take(struct tfh_start_loops *l, const struct tfh_py *py,
					     struct tfh_py_types *types,
					     struct tfh_py_copies *copies,
					     const struct tfh_py_frame *frame, uint32_t n);
/* Writes the elements of the member `loops` for the sample with this number. */
void tfh_start_loops_write(const struct tfh_start_loops *l, struct tfh_sample_loops of,
			   uint32_t sample, struct tfh_json *j);
/* Puts what counted each of the sample's loops into `text`, a digit each. Returns their number. */
uint32_t tfh_start_loops_counts(const struct tfh_start_loops *l, struct tfh_sample_loops of,
				char *text);

#endif
