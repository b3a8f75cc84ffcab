/*
 * Device times from a step on, or up to one, by `tfhook ctl gpu on|off --at-step N`. Called on the
 * flusher, except tfh_gpu_plan_wants().
 *
 * All ranks of a job get the same N, so each obeys by its own count, and nothing is sent at step N.
 * CUPTI takes a while to start and the flusher learns of a step some milliseconds late. So CUPTI is
 * started some steps ahead, and the span of the device times is cut at the steps' own times.
 */
#ifndef TFH_RECORD_GPU_GPU_PLAN_H
#define TFH_RECORD_GPU_GPU_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum tfh_gpu_event {
	TFH_GPU_EVENT_NONE,
	TFH_GPU_EVENT_LEADS,  /* step N is near: CUPTI should start */
	TFH_GPU_EVENT_BEGINS, /* the span begins, at *tick */
	TFH_GPU_EVENT_ENDS,   /* it ended, at *tick */
};

/* Reads the request in the journal. The count of steps must be up to date. */
void tfh_gpu_plan_take(void);
/* Advances by one state if that is due. */
enum tfh_gpu_event tfh_gpu_plan_poll(uint64_t now_ns, uint64_t *tick);
/* Whether device times are wanted because of it, whatever the settings say. Thread-safe. */
bool tfh_gpu_plan_wants(void);
/* Whether step N is still far away. */
bool tfh_gpu_plan_waits(void);
/* Whether CUPTI has been started ahead of step N. */
bool tfh_gpu_plan_leads(void);
/* The span has ended; ops are still stored, since a step counts only if its neighbours' are
 * known. */
bool tfh_gpu_plan_trails(void);
/* The span may be written up to `until`, or only to the last step: the next one may be the end. */
uint64_t tfh_gpu_plan_until(uint64_t until);
/* Whether records must be examined as soon as they arrive. */
bool tfh_gpu_plan_counting(void);
void tfh_gpu_plan_forget(void);

#endif
