/* Whether hooked calls are recorded now, and the count of steps that this may depend on. */
#ifndef TFH_RECORD_RING_SWITCH_H
#define TFH_RECORD_RING_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

struct tfh_rec;

/* Sets the mode: ON unless anyone wants OFF. Any thread may call it, also in a signal handler. */
void tfh_mode_update(void);

/* Reads TFHOOK_WINDOW, before the mode is first set. */
void tfh_window_setup(void);
void tfh_window_begin(void);
/* Called on the flusher: begins and ends a window of time, and ends a window of steps. */
void tfh_window_poll(uint64_t now_ns);
/* Whether a window of steps is open, so that records must be examined as soon as they arrive. */
bool tfh_window_counting(void);

/* Steps so far, recorded or not. */
uint64_t tfh_steps_seen(void);
/* Called on the flusher, for all records. */
void tfh_count_steps(const struct tfh_rec *records, uint32_t n);
/* The records with which the count of steps reaches requested numbers. */
enum tfh_awaited { TFH_AWAITED_BEGIN, TFH_AWAITED_END, TFH_AWAITED };
void tfh_await_step(enum tfh_awaited which, uint64_t count);
/* The record's begin and end in ticks, 0 until it arrives. */
struct tfh_step_record {
	uint64_t begin, end;
};
struct tfh_step_record tfh_awaited_step(enum tfh_awaited which);
/* The end of the last counted record; 0: none. */
uint64_t tfh_last_step(void);
/* The count at which a step has ended: a get-next call begins a step, a mark ends one. */
uint64_t tfh_count_after(uint64_t step);
void tfh_steps_forget(void);

#endif
