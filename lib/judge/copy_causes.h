/* Which causes copies have, and which copies a cause is about. */
#ifndef TFH_JUDGE_COPY_CAUSES_H
#define TFH_JUDGE_COPY_CAUSES_H

#include "judge/result.h"

/* The cause of a copy's time. `dir`: enum tfh_dir. */
enum tfh_cause tfh_copy_cause(unsigned dir, bool pageable);
/* The copies that a cause is about: of that kind, those that move most; for small copies, the most
 * frequent ones. NULL: none. */
const struct tfh_transfer *tfh_copies_of(const struct tfh_result *r, enum tfh_cause cause);

#endif
