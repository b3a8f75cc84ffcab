/*
 * The parts of CUPTI's activity API that tfhook uses. CUPTI is found at run time in whatever
 * release the job has (11 to 13), so records are read at offsets that all releases share, never
 * through its headers.
 *
 * - find.c: finding the library and its functions
 * - state.c: shared state; devices.c: whether there is a context, and the devices
 * - cupti.c: turning CUPTI on and off, flushing, its clock
 * - buffers.c: buffers between CUPTI's callbacks and the flusher; callbacks take no lock of
 *   tfhook's
 * - records.c: converts activity records to rows
 * - footprint.c: device memory used by records of graph nodes
 * - profiler.c, share.c: sharing CUPTI with a profiler inside the job
 * - deferred.c: buffers kept for that profiler until a thread of the job can deliver them
 * - inject.c: loading by the driver (CUDA_INJECTION64_PATH) and by NVTX instead of a preload
 */
#ifndef TFH_HOOK_CUPTI_CUPTI_H
#define TFH_HOOK_CUPTI_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hook/driver/cuda_types.h"

typedef int CUptiResult;
enum {
	TFH_CUPTI_OK = 0,
	TFH_CUPTI_MAX_LIMIT_REACHED = 12,
	TFH_CUPTI_INSUFFICIENT_PRIVILEGES = 35,
	TFH_CUPTI_MULTIPLE_SUBSCRIBERS = 39,
};

typedef void (*tfh_cupti_requested)(uint8_t **buffer, size_t *size, size_t *most);
typedef void (*tfh_cupti_completed)(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size,
				    size_t valid);

/* X(id, needed, name, parameters). Functions that are not needed may be missing in older
 * releases. */
#define TFH_CUPTI_LIST(X)                                                                          \
	X(VERSION, true, cuptiGetVersion, (uint32_t *))                                            \
	X(REGISTER, true, cuptiActivityRegisterCallbacks,                                          \
	  (tfh_cupti_requested, tfh_cupti_completed))                                              \
	X(ENABLE, true, cuptiActivityEnable, (int))                                                \
	X(DISABLE, true, cuptiActivityDisable, (int))                                              \
	X(FLUSH_ALL, true, cuptiActivityFlushAll, (uint32_t))                                      \
	X(NEXT_RECORD, true, cuptiActivityGetNextRecord, (uint8_t *, size_t, uint8_t **))          \
	X(DROPPED, true, cuptiActivityGetNumDroppedRecords, (CUcontext, uint32_t, size_t *))       \
	X(TIMESTAMP, true, cuptiGetTimestamp, (uint64_t *))                                        \
	X(SET_ATTRIBUTE, false, cuptiActivitySetAttribute, (int, size_t *, void *))                \
	X(DRIVER_API, false, cuptiActivityEnableDriverApi, (uint32_t, uint8_t))                    \
	X(FINALIZE, false, cuptiFinalize, (void))                                                  \
	X(CLOCK_CALLBACK, false, cuptiActivityRegisterTimestampCallback, (uint64_t(*)(void)))

enum tfh_cupti_fn {
#define X(id, needed, name, parameters) TFH_CUPTI_##id,
	TFH_CUPTI_LIST(X)
#undef X
		TFH_CUPTI_FNS
};
#define X(id, needed, name, parameters) typedef CUptiResult(*tfh_cupti_##id) parameters;
TFH_CUPTI_LIST(X)
#undef X

#pragma GCC visibility push(hidden)
extern void *tfh_cupti_real[TFH_CUPTI_FNS];
#pragma GCC visibility pop
#define TFH_CUPTI(id) ((tfh_cupti_##id)tfh_cupti_real[TFH_CUPTI_##id])

/* Kinds of activity; the numbers are stable. */
enum {
	TFH_ACT_MEMCPY = 1,
	TFH_ACT_MEMSET = 2,
	TFH_ACT_KERNEL = 3,
	TFH_ACT_DRIVER = 4,
	TFH_ACT_CONCURRENT_KERNEL = 10,
	TFH_ACT_OVERHEAD = 17,
	TFH_ACT_MEMCPY2 = 22,
	TFH_ACT_GRAPH_TRACE = 51,
	TFH_ACT_KINDS = 64,
};

/* find.c */
/* Finds the job's CUPTI, loads it if needed, and fills the table. Returns 0 or a negative errno,
 * whose reason is recorded. */
int tfh_cupti_load(void);
/* CUPTI's release number. */
uint32_t tfh_cupti_version(void);
/* Finds the functions of a libcupti that the job has loaded; never loads one. */
bool tfh_cupti_known(void);
/* True for an address inside a library called libcupti. */
bool tfh_in_cupti(const void *address);

/* load.c */
/* Calls tfh_cupti_load() once per process, on its own thread. The calling thread of the job waits
 * for at most one second; the caller has blocked signals. Returns -EAGAIN while loading is still in
 * progress. */
int tfh_cupti_loaded(void);

/* state.c */
/* False in a forked child of the process that turned CUPTI on, where CUPTI must not be called. */
bool tfh_cupti_here(void);
/* This process has turned CUPTI on. */
void tfh_cupti_claim(void);
/* CUPTI has our callbacks, whoever registered them. */
bool tfh_cupti_registered(void);
void tfh_cupti_has_ours(void);
/* The kinds wanted now, one bit each; none while recording is paused. */
void tfh_cupti_want(uint64_t kinds);
bool tfh_cupti_wants(int kind);
/* CUPTI was finalized by the job; the flusher will turn it on again. */
void tfh_cupti_gone(void);
bool tfh_cupti_is_gone(void);
bool tfh_cupti_was_gone(void); /* the same, and resets it */
/* Loaded by the driver instead of a preload. */
void tfh_cupti_injected(void);
bool tfh_cupti_is_injected(void);
/* Called in a CUPTI callback: without a preload, recording starts with the first buffer. */
void tfh_cupti_first_buffer(void);

/* devices.c */
/* A context exists, so device times may begin. Cheap. */
void tfh_cupti_context(void);
bool tfh_cupti_has_context(void);
/* Records the devices, once; creates no context. */
void tfh_cupti_tell_devices(void);

/* profiler.c: the job's own profiler; all members are atomic */
struct tfh_profiler {
	tfh_cupti_requested requested;
	tfh_cupti_completed completed;
	uint32_t kinds[TFH_ACT_KINDS]; /* enabled by it */
	uint32_t count;		       /* number of enabled kinds */
	uint32_t rounds;	       /* how often that rose from zero */
	size_t dropped;		       /* losses reported to us instead of the profiler */
};
#pragma GCC visibility push(hidden)
extern struct tfh_profiler tfh_profiler;
#pragma GCC visibility pop
/* The profiler has enabled kinds and takes buffers, under any policy. */
bool tfh_profiler_works(void);
uint32_t tfh_profiler_round(void);
/* The round to store for a buffer of ours. While the profiler is active, its records go into the
 * buffer, too, so the value then equals no round. */
uint32_t tfh_profiler_round_given(void);
/* The profiler has enabled this kind. */
bool tfh_profiler_has(int kind);
/* Lost records that CUPTI reported to us and not to the profiler. */
void tfh_profiler_dropped(size_t n);

/* cupti.c */
int tfh_cupti_start(void);

/* buffers.c */
void tfh_buffers_requested(uint8_t **buffer, size_t *size, size_t *most);
void tfh_buffers_completed(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size,
			   size_t valid);
/* A foreign buffer went to CUPTI, or came back and its records have been copied. */
void tfh_buffers_foreign_out(uint8_t *buffer);
void tfh_buffers_foreign_back(uint8_t *buffer, size_t valid);
/* Whether CUPTI holds foreign buffers. */
bool tfh_buffers_foreign(void);
/* A returned buffer of ours, for a caller that may want its contents, too; NULL if it is not ours.
 * `round`: the round of share.c when the buffer was requested. */
const uint8_t *tfh_buffers_ours(const uint8_t *buffer, uint32_t *round);
/* Passes every returned buffer to `take`, in order, and empties it. */
void tfh_buffers_collect(void (*take)(uint8_t *buffer, size_t valid));
/* Ticks when the oldest buffer that CUPTI holds was given to it; `now` if it holds none. */
uint64_t tfh_buffers_oldest(uint64_t now);
/* Everything CUPTI held is lost. */
void tfh_buffers_forget(void);

/* records.c */
void tfh_rows_of(uint8_t *buffer, size_t valid);
struct tft_gpu_row;
/* Converts one record. Returns false if it is not a device op or has no times. *name: a kernel's
 * name, else NULL. */
bool tfh_row_of_record(const uint8_t *record, struct tft_gpu_row *row, const char **name);
/* CUPTI was finalized: pending ops will not arrive. */
void tfh_rows_forget(void);
/* Records are wanted from `now` on, by the records' clock. Thread-safe. */
void tfh_rows_since(uint64_t now);
/* Counts of ops and graph nodes, and CUPTI's overhead. */
struct tfh_rows_count {
	uint64_t ops, nodes, overhead_ns;
};
const struct tfh_rows_count *tfh_rows_count(void);
/* Ticks of the oldest call whose op has not arrived; `now` if there is none. */
uint64_t tfh_rows_pending(uint64_t now);

/* footprint.c, called on the flusher */
/* Bytes of device memory that disappeared while graph nodes were recorded, less what the job
 * allocated. Requests the next reading. Called once a second. */
uint64_t tfh_memory_grown(void);
/* Graph nodes are not being recorded now. */
void tfh_memory_rest(void);

/* share.c */
/* The callbacks registered with CUPTI; they dispatch to whoever owns the buffer. */
void tfh_share_requested(uint8_t **buffer, size_t *size, size_t *most);
void tfh_share_completed(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size,
			 size_t valid);
/* True if the job's own profiler is active and TFHOOK_CUPTI_SHARE=off, so device times are left to
 * it. */
bool tfh_share_yields(void);
/* The hook of a name that the job looked up in its libcupti and found at `found`; NULL if there is
 * none. */
void *tfh_share_hook(const char *name, void *found);

/* deferred.c */
struct tfh_deferred {
	CUcontext ctx;
	uint8_t *buffer; /* the profiler's own, or a copy of records */
	size_t size, valid;
	uint32_t stream;
	bool copied;
};
/* Keeps a buffer for the profiler; `copied`: copies the records instead. Thread-safe. False if
 * there is no room. */
bool tfh_deferred_add(const struct tfh_deferred *what, bool copied);
/* Delivers everything, oldest first, unless this is the flusher. */
void tfh_deferred_deliver(void (*deliver)(const struct tfh_deferred *what));

#endif
