/* Restores a result from a digest for the outputs, without the recording. */
#ifndef TFH_DIGEST_DIGEST_RESTORE_H
#define TFH_DIGEST_DIGEST_RESTORE_H

#include "digest/digest.h"

/* The run has no calls and no ops, so nothing can be analysed again. Step times have the digest's
 * resolution, 1/8,192 of the median step. The caller frees the result, then closes the run. 0 or
 * -errno with `err`. */
int tfh_digest_restore(struct tfh_run_digest *d, struct tfh_run **run, struct tfh_result **out,
		       struct tfh_err *err);

/* Appends the steps of one rank (row of DRNK) to those of a result. 0 or -errno with `err`. */
int tfh_digest_steps_of(struct tfh_run_digest *d, uint32_t rank, struct tfh_result *r,
			struct tfh_err *err);

#endif
