/*
 * What the devices that the job uses do, once a second: clocks, power, errors; and some times in a run which software it has
 * loaded. The calls are a stranger's, and directories may lie on a network: both may take tens of milliseconds, or never
 * return, so they have a thread of their own that nobody waits for. The flusher takes what is ready and asks for more.
 * The calls need locks and descriptors that the job may share (it may load the same library), so the thread is outside of
 * them while the job forks or exits, if that can be had within 20 ms.
 */
#ifndef TFH_RECORD_NVML_THREAD_H
#define TFH_RECORD_NVML_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "format/sample.h"

#define TFH_DEVICES_MOST 8u    /* of a process; those with higher numbers are not read */
#define TFH_DEVICE_ENTRIES 16u /* of one device, at most */

/* Reads the devices of a mask of ordinals: returns how many entries it has put to `out`, which has room for
 * TFH_DEVICES_MOST * TFH_DEVICE_ENTRIES. Called on the thread of its own, once a second at most. */
typedef uint32_t (*tfh_devices_reader)(uint32_t mask, struct tft_sample_thread *out);

/* Once, at load. */
void tfh_devices_attach(tfh_devices_reader reader);
/* The job has a context on the device of that ordinal. Any thread. */
void tfh_devices_used(int ordinal);

/* Around each call of the reader's. False: the process ends, and no call is to be made. Waits while the job forks. */
bool tfh_devices_enter(void);
void tfh_devices_leave(void);

/* Before a fork, and in the parent after it. */
void tfh_devices_hold(void);
void tfh_devices_go_on(void);
/* In the child. */
void tfh_devices_forked(void);

/* Flusher: what was read since it asked last, 0 entries if nothing is ready; asks for the next. */
uint32_t tfh_devices_take(struct tft_sample_thread *out);
/* 1 while there is such a thread. */
unsigned tfh_devices_threads(void);
/* Flusher: lines for a NOTE about the job's software, as last taken; "" while there are none. */
const char *tfh_devices_software(void);
/* On the process' last thread but that one: it ends as well. Where it cannot, inside a call, this ends the process, as
 * the C library does when the last thread has ended. */
void tfh_devices_last(void);

#endif
