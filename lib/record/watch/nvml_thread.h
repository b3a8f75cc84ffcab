/*
 * Once a second, what the job's devices do: clocks, power, errors. Now and then, which software the
 * job has loaded. The calls are foreign code, and directories may be on a network file system: both
 * may take tens of milliseconds or never return. So they have their own thread, for which nobody
 * waits; the flusher takes finished readings and requests more. The calls need locks and
 * descriptors that the job may share (it may load the same library). So while the job forks or
 * exits, the thread stays out of them, if it can leave them within 20 ms.
 */
#ifndef TFH_RECORD_WATCH_NVML_THREAD_H
#define TFH_RECORD_WATCH_NVML_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "format/sample.h"

#define TFH_DEVICES_MOST 8u    /* per process; devices with higher numbers are not read */
#define TFH_DEVICE_ENTRIES 16u /* per device, at most */

/* Reads the devices of a mask of ordinals. Returns the number of entries put into `out`, which has
 * room for TFH_DEVICES_MOST * TFH_DEVICE_ENTRIES. Called on its own thread, at most once a
 * second. */
typedef uint32_t (*tfh_devices_reader)(uint32_t mask, struct tft_sample_thread *out);

/* Called once, at load. */
void tfh_devices_attach(tfh_devices_reader reader);
/* Called by the reader, once for each device: where it is, a line for a NOTE, and its memory node
 * (-1: unknown). */
void tfh_devices_told(const char *line, int node);
/* The memory nodes of the devices so far, a bit for each. Thread-safe. */
uint64_t tfh_devices_nodes(void);
/* The job has a context on the device with that ordinal. Thread-safe. */
void tfh_devices_used(int ordinal);

/* Enclose each of the reader's calls. If the first returns false, the process is ending and no call
 * may be made. Waits while the job forks. */
bool tfh_devices_enter(void);
void tfh_devices_leave(void);

/* Called before a fork, and after it in the parent. */
void tfh_devices_hold(void);
void tfh_devices_go_on(void);
/* Called in the child. */
void tfh_devices_forked(void);

/* Called on the flusher: takes the reading made since the last request, 0 entries if none is ready,
 * and requests the next. */
uint32_t tfh_devices_take(struct tft_sample_thread *out);
/* Returns 1 while this thread exists. */
unsigned tfh_devices_threads(void);
/* Called on the flusher: lines for a NOTE about the job's software and where its devices are, as of
 * the last reading; "" if there are none. */
const char *tfh_devices_notes(void);
/* Called when this thread and the caller are the process's last threads: this thread ends as well.
 * If it cannot because it is inside a call, this function ends the process, as the C library does
 * when the last thread has ended. */
void tfh_devices_last(void);

#endif
