/* The live objects of the job, which every new segment names at its begin. */
#include "record/write/write.h"

struct tft_live tfh_live = {.fn = tfh_fn_table, .n_fn = TFH_FN_COUNT};
