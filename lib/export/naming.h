/* Names in exported files: of calls, ops, processes, threads. */
#ifndef TFH_EXPORT_NAMING_H
#define TFH_EXPORT_NAMING_H

#include "export/export.h"

/* Whether a call puts work on the device. */
bool tfh_export_issues(const struct tfh_event *ev);
/* The bytes that a call copies, sets or allocates, -1 if it does none of these. */
int64_t tfh_export_call_bytes(const struct tfh_event *ev);
/* "kernel", "copy", "memset", "sync", "graph"; NULL: unknown. */
const char *tfh_export_op_kind(const struct tfh_op *op);
/* The name of an op: its kernel, or the source and destination of a copy in CUPTI's style ("Memcpy
 * HtoD (Pageable -> Device)"). */
const char *tfh_export_op_name(const struct tfh_op *op);
/* The name of a get-next that tools for PyTorch's traces take for a wait for a batch. */
const char *tfh_export_batch_name(char room[256], const char *name);
/* The thread of a process (index in the run) that issued most work; `issued` counts by thread. */
uint32_t tfh_export_driving(const struct tfh_export *x, uint32_t process, const uint64_t *issued);
/* "r3", "p0": the part of a file name that identifies a process. */
void tfh_export_rank_name(const struct tfh_export *x, uint32_t process, char out[32]);
/* Ids of a process and of a thread (index in the run) for viewers, which take equal ids for the
 * same process. They are the system's own ids if these are unique in the run; across hosts or
 * containers they may not be. */
uint32_t tfh_export_pid(const struct tfh_export *x, uint32_t process);
uint32_t tfh_export_tid(const struct tfh_export *x, uint32_t thread);
/* What is shown of a process' host and program, and of a thread's name: NULL or "" if there is
 * none. */
const char *tfh_export_host(const struct tfh_export *x, uint32_t process);
const char *tfh_export_exe(const struct tfh_export *x, uint32_t process);
const char *tfh_export_thread(const struct tfh_export *x, uint32_t thread);
/* The start of the run in Unix time, 0 if it is unknown. */
int64_t tfh_export_start_ns(const struct tfh_export *x);

/* A kernel's name as in C++, if it is mangled. */
#define TFH_EXPORT_NAME 4096u
const char *tfh_export_full_name(char room[TFH_EXPORT_NAME], const char *name);
struct tfh_export_shape {
	uint32_t grid[3], block[3], shared;
};
struct tfh_export_shape tfh_export_shape_of(const struct tfh_op *op);

#endif
