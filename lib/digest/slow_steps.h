/* The slowest steps of a rank, with their times. */
#ifndef TFH_DIGEST_SLOW_STEPS_H
#define TFH_DIGEST_SLOW_STEPS_H

#include <stdint.h>

#define TFH_SLOW_STEPS 32u

struct tfh_slow_step {
	uint64_t index;
	double s;
	int64_t t0, t1;
};

/* Zeroed at first. */
struct tfh_slow_steps {
	struct tfh_slow_step v[TFH_SLOW_STEPS]; /* the slowest first, until they are sorted */
	uint32_t n;
};

/* Keeps the slowest ones, at most `most`; of equal ones the first. */
void tfh_slow_steps_add(struct tfh_slow_steps *x, uint32_t most, const struct tfh_slow_step *step);
/* By time. */
void tfh_slow_steps_sort(struct tfh_slow_steps *x);
/* The one at a time, after they were sorted; UINT32_MAX: none. */
uint32_t tfh_slow_steps_at(const struct tfh_slow_steps *x, int64_t t);

#endif
