/*
 * CUPTI's activity interface, as far as it is used: found at run time in whatever release the job
 * has (11 to 13), so records are read by offsets that all releases share, never by its headers.
 *
 * - find.c: which library; the functions in it
 * - state.c: state that all of these ask for; devices.c: whether there is a context, and the devices
 * - cupti.c: turning CUPTI on and off, flushing, its clock
 * - buffers.c: buffers between CUPTI's callbacks and the flusher; callbacks hold no lock of ours
 * - records.c: activity records to rows
 * - footprint.c: device memory that records of graph nodes cost
 * - profiler.c, share.c: sharing CUPTI with a profiler inside the job
 * - owed.c: buffers kept for that profiler until a thread of the job can deliver them
 * - inject.c: loading by the driver (CUDA_INJECTION64_PATH) and by NVTX instead of a preload
 */
#ifndef TFH_HOOK_CUPTI_H
#define TFH_HOOK_CUPTI_H

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

/* X(id, needed, name, parameters). Symbols not needed may be missing in older releases. */
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

/* Kinds of activity; the numbers never changed. */
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
/* Finds the job's CUPTI, loads it if needed, and fills the table. 0, or a negative errno; the reason
 * for it is recorded. */
int tfh_cupti_load(void);
/* CUPTI's own number for its release. */
uint32_t tfh_cupti_version(void);
/* A libcupti that the job itself has loaded, its functions known; never loads one. */
bool tfh_cupti_known(void);
/* True for an address inside a library called libcupti. */
bool tfh_in_cupti(const void *address);

/* load.c */
/* tfh_cupti_load() once in a process, and not on a thread of the job, which waits for it a second at
 * most, signals blocked by the caller. -EAGAIN: it is still under way. */
int tfh_cupti_loaded(void);

/* state.c */
/* False in a forked child of the process that turned CUPTI on: it must not be called there. */
bool tfh_cupti_here(void);
/* CUPTI is turned on by this process. */
void tfh_cupti_claim(void);
/* CUPTI has had our callbacks, from whomever. */
bool tfh_cupti_registered(void);
void tfh_cupti_has_ours(void);
/* Our kinds that are wanted just now, a bit for each; none while recording rests. */
void tfh_cupti_want(uint64_t kinds);
bool tfh_cupti_wants(int kind);
/* CUPTI was taken down by somebody else; it is turned on again when the flusher comes by. */
void tfh_cupti_gone(void);
bool tfh_cupti_is_gone(void);
bool tfh_cupti_was_gone(void); /* and is not any more from now on */
/* Started by the driver instead of a preload. */
void tfh_cupti_injected(void);
bool tfh_cupti_is_injected(void);
/* In one of CUPTI's callbacks: without a preload, recording begins with the first buffer. */
void tfh_cupti_first_buffer(void);

/* devices.c */
/* A context exists: device times may begin. Cheap. */
void tfh_cupti_context(void);
bool tfh_cupti_has_context(void);
/* Once; makes no context. */
void tfh_cupti_tell_devices(void);

/* profiler.c: a profiler of the job's own; all members are atomic */
struct tfh_profiler {
	tfh_cupti_requested requested;
	tfh_cupti_completed completed;
	uint32_t kinds[TFH_ACT_KINDS]; /* enabled by it */
	uint32_t count;		       /* how many are */
	uint32_t rounds;	       /* how often that went from none to some */
	size_t dropped;		       /* records told to us in its place */
};
#pragma GCC visibility push(hidden)
extern struct tfh_profiler tfh_profiler;
#pragma GCC visibility pop
/* It has kinds enabled and takes buffers, under any policy. */
bool tfh_profiler_works(void);
uint32_t tfh_profiler_round(void);
/* For a buffer of ours: equals no round while the profiler works, since its records go in, too. */
uint32_t tfh_profiler_round_given(void);
/* It has this kind enabled. */
bool tfh_profiler_has(int kind);
/* Dropped records that CUPTI told us and not the profiler. */
void tfh_profiler_dropped(size_t n);

/* cupti.c */
int tfh_cupti_start(void);

/* buffers.c */
void tfh_buffers_requested(uint8_t **buffer, size_t *size, size_t *most);
void tfh_buffers_completed(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size,
			   size_t valid);
/* A buffer that is not ours went to CUPTI, or came back: its records are copied. */
void tfh_buffers_foreign_out(uint8_t *buffer);
void tfh_buffers_foreign_back(uint8_t *buffer, size_t valid);
/* CUPTI holds some of them. */
bool tfh_buffers_foreign(void);
/* A buffer of ours that has come back, for somebody who may want its contents too; NULL: it is not
 * ours. `round`: of share.c when it was requested. */
const uint8_t *tfh_buffers_ours(const uint8_t *buffer, uint32_t *round);
/* Hands every buffer that came back to `take`, in order, and empties it. */
void tfh_buffers_collect(void (*take)(uint8_t *buffer, size_t valid));
/* Ticks when the oldest buffer that CUPTI holds was given to it; `now`: it holds none. */
uint64_t tfh_buffers_oldest(uint64_t now);
/* What CUPTI held is lost. */
void tfh_buffers_forget(void);

/* records.c */
void tfh_rows_of(uint8_t *buffer, size_t valid);
struct tft_gpu_row;
/* One record of a device op; false: it is none, or has no times. *name: of a kernel, else NULL. */
bool tfh_row_of_record(const uint8_t *record, struct tft_gpu_row *row, const char **name);
/* CUPTI was taken down: what has not come will not. */
void tfh_rows_forget(void);
/* Records are wanted from `now` on, by their own clock. Any thread. */
void tfh_rows_since(uint64_t now);
/* Graph nodes seen so far; of ops how many had no times. */
struct tfh_rows_count {
	uint64_t ops, nodes, untimed, overhead_ns;
};
const struct tfh_rows_count *tfh_rows_count(void);
/* Ticks when the oldest call was made whose op has not come yet; `now`: there is none. */
uint64_t tfh_rows_pending(uint64_t now);

/* footprint.c, on the flusher */
/* Bytes of device memory that went while nodes of graphs were recorded and that the job did not
 * take; asks for the next answer. Once a second. */
uint64_t tfh_memory_grown(void);
/* Nodes are not recorded just now. */
void tfh_memory_rest(void);

/* share.c */
/* Callbacks that are given to CUPTI; they know whose turn it is. */
void tfh_share_requested(uint8_t **buffer, size_t *size, size_t *most);
void tfh_share_completed(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size,
			 size_t valid);
/* The job's own profiler is at work and TFHOOK_CUPTI_SHARE=off: device times are its own. */
bool tfh_share_yields(void);
/* The hook of a name that the job has looked up in its libcupti and found at `found`; NULL if there
 * is none. */
void *tfh_share_hook(const char *name, void *found);

/* owed.c */
struct tfh_owed {
	CUcontext ctx;
	uint8_t *buffer; /* the profiler's own, or a copy of records */
	size_t size, valid;
	uint32_t stream;
	bool copied;
};
/* Keeps it for the profiler; `copied`: the records, and not the buffer. Any thread. False: there is
 * no room. */
bool tfh_owed_keep(const struct tfh_owed *what, bool copied);
/* Hands over all there is, the oldest first, unless this is the flusher. */
void tfh_owed_pay(void (*pay)(const struct tfh_owed *what));

#endif
