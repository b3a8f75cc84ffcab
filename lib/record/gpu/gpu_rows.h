/*
 * Rows made from CUPTI's records, and the GPUS and DRVR chunks made from the rows. Called on the
 * flusher, or on the thread that starts device times until they are on.
 */
#ifndef TFH_RECORD_GPU_GPU_ROWS_H
#define TFH_RECORD_GPU_GPU_ROWS_H

#include "record/gpu/gpu.h"

/* Every op up to here is written; the next span begins here. */
extern uint64_t tfh_gpu_span_last __attribute__((visibility("hidden")));
/* Atomic: how far the exit has come. FLUSHING: CUPTI may be called for the last time; CLOSED: CUPTI
 * must not be called. */
enum { TFH_GPU_LIVE, TFH_GPU_FLUSHING, TFH_GPU_CLOSED };
extern uint32_t tfh_gpu_exit_phase __attribute__((visibility("hidden")));

/* Reads the rows' clock, which relates their times to ticks. */
void tfh_gpu_add_pair(const struct tfh_gpu_source *source);
/* The rows' clock is another one from now on. */
void tfh_gpu_forget_pairs(void);
/* Whether there are rows that are not written yet. */
bool tfh_gpu_rows_left(void);
/* `until`: the end of the chunk's span; 0 for none. */
void tfh_gpu_write_rows(uint64_t until);
void tfh_gpu_forget_rows(void);

#endif
