/*
 * Device times: from whoever has them (hook/cupti/cupti.c) to the trace file. Rows are collected
 * and written by the flusher; job threads only fill buffers of CUPTI's.
 */
#ifndef TFH_RECORD_GPU_H
#define TFH_RECORD_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "format/table.h"

/* What brings the rows. `start` may come from a thread of the job, the rest from the
 * flusher. */
struct tfh_gpu_source {
	/* Sees to it that records come; cheap when they do. 0, -EAGAIN: not yet possible (no
	 * context), else never in this process, and tfh_gpu_why() says why. */
	int (*start)(void);
	/* Records are not wanted for a while. */
	void (*rest)(void);
	/* Hands over what is complete; `last`: the process ends, what is not will never be. False:
	 * that is not all. */
	bool (*flush)(bool last);
	/* Once a second, after a flush: looks whether what it does is still the right thing. */
	void (*second)(uint64_t now_ns);
	/* Adds rows of all buffers handed over. */
	void (*collect)(void);
	/* Somebody else has what brings the records, and is given way to. */
	bool (*yields)(void);
	/* Ticks up to which every op has been handed over; `now` when there is nothing left. */
	uint64_t (*complete_until)(uint64_t now);
	/* The clock of the rows; false: it cannot be read. */
	bool (*clock)(uint64_t *ns);
};

/* Once, at load. */
void tfh_gpu_attach(const struct tfh_gpu_source *source);

/* Are device times to be kept just now? Read by CUPTI's callbacks, to whom ON and KEEPING are the
 * same: a part is about to begin. */
enum { TFH_GPU_OFF, TFH_GPU_KEEPING, TFH_GPU_ON };
extern uint32_t tfh_gpu_storing __attribute__((visibility("hidden")));

/* The process has made its first context, or recording has just begun, on this thread: device times
 * begin here if they are wanted. */
void tfh_gpu_begin(void);
/* Injected by the driver: there are no calls that begin a recording, and no steps. */
void tfh_gpu_always(void);
/* CUPTI has its first record, and nothing is being recorded yet. Not in a callback of CUPTI's. */
void tfh_gpu_first_record(void);
/* The exit handler that runs before the driver's: the next flush (tfh_flush_by) may call CUPTI, and
 * is the last that does. False: there is no need for one. */
bool tfh_gpu_exit(void);
/* CUPTI is not called any more. */
void tfh_gpu_close(void);
bool tfh_gpu_exiting(void);

/* Is the calling thread the one that writes the recording? The job's functions are not called
 * there. */
bool tfh_on_flusher(void);

/* For collect: the next row to be filled in, NULL when there is no room (then it is counted). */
struct tft_gpu_row *tfh_gpu_row(void);
struct tft_drvr_row *tfh_gpu_drvr(void);
/* Place of a text in the heap of the chunk; call it after tfh_gpu_row(). */
uint32_t tfh_gpu_text(const char *text);
/* A time of the rows' clock in ticks, good to some microseconds. */
uint64_t tfh_gpu_ticks(uint64_t ns);
/* Ops that were lost since the last call, any thread. */
void tfh_gpu_lost(uint64_t n);
/* The rows' clock is another one from now on. */
void tfh_gpu_new_clock(void);
/* From now on nothing is recorded, up to tfh_gpu_resumed(): the one that brings records was taken
 * down. Any thread. */
void tfh_gpu_cut(void);
/* Flusher. */
void tfh_gpu_resumed(void);
/* What bringing the records has cost the job so far, as told by who brings them. Flusher. */
void tfh_gpu_overhead(uint64_t ns);
/* Whole graph launches take the place of their nodes from now on. */
void tfh_gpu_no_nodes(void);
/* The reason why there are no device times: a sentence. Kept when it is the first. Any thread. */
void tfh_gpu_why(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A fact for the NOTE chunk: "key=value". Flusher, or before there is one. */
void tfh_gpu_fact(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- gpu_foreign.c: what calls CUPTI. On the flusher another thread makes the call ---- */

int tfh_foreign_start(const struct tfh_gpu_source *source);
void tfh_foreign_rest(const struct tfh_gpu_source *source);
bool tfh_foreign_flush(const struct tfh_gpu_source *source, bool last);
void tfh_foreign_second(const struct tfh_gpu_source *source, uint64_t now_ns);
/* The narrowest of some bracketed readings of the rows' clock; false: it cannot be read. */
bool tfh_foreign_clock(const struct tfh_gpu_source *source, struct tft_table_pair *best);

/* ---- for flush.c and its neighbours, on the flusher ---- */

void tfh_gpu_poll(uint64_t now_ns);
void tfh_gpu_second(uint64_t now_ns);
/* Collects and writes all there is. `last`: the recording ends. */
void tfh_gpu_write(bool last);
/* Steps are being counted for the end of a window. */
bool tfh_gpu_counting(void);
/* Forked child, or a new recording of the same process. */
void tfh_gpu_forget(void);
/* gpu_notes.c: writes what is not said yet; all of it is. */
int tfh_gpu_put_notes(void);
bool tfh_gpu_said(void);
void tfh_gpu_forget_notes(void);
/* A new segment: what was said once is said again. */
void tfh_gpu_new_segment(void);
/* Takes --steps of the control word if it belongs to device times. */
bool tfh_gpu_take_steps(uint64_t steps);

#endif
