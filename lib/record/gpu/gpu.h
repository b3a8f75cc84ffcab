/*
 * Writes device times to the trace file, whoever provides them (hook/cupti/cupti.h). The flusher
 * collects and writes the rows; job threads only fill CUPTI's buffers.
 */
#ifndef TFH_RECORD_GPU_GPU_H
#define TFH_RECORD_GPU_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "format/table.h"

/* The provider of rows. `start` may be called on a thread of the job, the other functions on the
 * flusher. */
struct tfh_gpu_source {
	/* Makes sure that records arrive; cheap once they do. Returns 0, -EAGAIN if it is not
	 * possible yet (no context), or another error if it never will be in this process, with the
	 * reason in tfh_gpu_why(). */
	int (*start)(void);
	/* Whether it is possible, as far as calls of the job have shown. Cheap. */
	bool (*possible)(void);
	/* Records are not wanted for a while. */
	void (*rest)(void);
	/* Delivers what is complete. `last`: the process is ending, so nothing more will come.
	 * Returns false if something is left. */
	bool (*flush)(bool last);
	/* Called once a second, after a flush: checks whether its settings are still right. */
	void (*second)(uint64_t now_ns);
	/* Adds the rows of all delivered buffers. */
	void (*collect)(void);
	/* Whether the job uses the provider itself, and so has precedence. */
	bool (*yields)(void);
	/* Ticks up to which every op has been delivered; `now` if none is pending. */
	uint64_t (*complete_until)(uint64_t now);
	/* Reads the rows' clock; false on failure. */
	bool (*clock)(uint64_t *ns);
};

/* Called once, at load. */
void tfh_gpu_attach(const struct tfh_gpu_source *source);

/* Whether device times are wanted now. CUPTI's callbacks treat KEEPING like ON: a window is about
 * to start. */
enum { TFH_GPU_OFF, TFH_GPU_KEEPING, TFH_GPU_ON };
extern uint32_t tfh_gpu_storing __attribute__((visibility("hidden")));

/* Called when the process has created its first context, or when recording has just started, on
 * that thread. Starts device times if they are wanted. */
void tfh_gpu_begin(void);
/* The driver injected the library: there are no calls that start a recording, and no steps. */
void tfh_gpu_always(void);
/* Called when CUPTI has its first record and recording has not started. A thread of ours starts it,
 * since no files may be opened in a CUPTI callback. Once per process; the exit waits for it. */
void tfh_start_aside(void);
/* Called in the exit handler that runs before the driver's. The next flush (tfh_flush_by) may call
 * CUPTI for the last time. Returns false if there is no need. */
bool tfh_gpu_exit(void);
/* CUPTI must not be called any more. */
void tfh_gpu_close(void);

/* For collect: returns the next row to fill, or NULL (counted) if there is no space. */
struct tft_gpu_row *tfh_gpu_row(void);
struct tft_drvr_row *tfh_gpu_drvr(void);
/* Offset of a text in the chunk's heap; call after tfh_gpu_row(). */
uint32_t tfh_gpu_text(const char *text);
/* Converts a time of the rows' clock to ticks, accurate to some microseconds. */
uint64_t tfh_gpu_ticks(uint64_t ns);
/* Counts lost ops. Thread-safe. */
void tfh_gpu_lost(uint64_t n);
/* The rows' clock changes now. */
void tfh_gpu_new_clock(void);
/* The provider was shut down: nothing is recorded until tfh_gpu_resumed(). Thread-safe. */
void tfh_gpu_cut(void);
/* Called on the flusher. */
void tfh_gpu_resumed(void);
/* Overhead of the provider so far, as it reports it. Called on the flusher. */
void tfh_gpu_overhead(uint64_t ns);
/* More processor time that the flusher spent on device times. */
void tfh_gpu_own_cost(uint64_t ns);
/* Whole graph launches are recorded instead of their nodes. Called before the first record. */
void tfh_gpu_no_nodes(void);
/* From now on device times are taken in windows, as with TFHOOK_CUPTI=window. */
void tfh_gpu_windows(void);
bool tfh_gpu_windowed(void);
/* Sets the reason for missing device times, a sentence. The first one is kept. Thread-safe. */
void tfh_gpu_why(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Adds a fact, "key=value", to the NOTE chunk. Called on the flusher, or before it exists. */
void tfh_gpu_fact(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- gpu_foreign.c: CUPTI calls that another thread makes for the flusher ---- */

int tfh_foreign_start(const struct tfh_gpu_source *source);
void tfh_foreign_rest(const struct tfh_gpu_source *source);
bool tfh_foreign_flush(const struct tfh_gpu_source *source, bool last);
void tfh_foreign_second(const struct tfh_gpu_source *source, uint64_t now_ns);
/* Takes the narrowest of several bracketed readings of the rows' clock. Returns false on
 * failure. */
bool tfh_foreign_clock(const struct tfh_gpu_source *source, struct tft_table_pair *best);

/* ---- called on the flusher; a segment is identified by the number of segments opened before it
 * ---- */

struct tft_writer;

void tfh_gpu_poll(uint64_t now_ns);
void tfh_gpu_second(uint64_t now_ns);
/* Collects and writes everything. `last`: the recording is ending. */
void tfh_gpu_write(bool last);
/* Whether steps are being counted for the end of a window. */
bool tfh_gpu_counting(void);
/* In a forked child, or for a new recording of the same process. */
void tfh_gpu_forget(void);
/* gpu_notes.c: writes new facts, or all of them to a new segment. Returns 0 once all are written.
 * `last`: no more will come. */
int tfh_gpu_put_notes(struct tft_writer *w, uint32_t segment, bool last);
bool tfh_gpu_said(uint32_t segment);
void tfh_gpu_forget_notes(void);
/* Takes --steps of the control word if it is meant for device times. */
bool tfh_gpu_take_steps(uint64_t steps);

#endif
