/* What exported files call things: calls, ops, processes, threads. */
#ifndef TFH_EXPORT_NAMING_H
#define TFH_EXPORT_NAMING_H

#include "export/export.h"

/* Whether a call puts work on the device. */
bool tfh_export_issues(const struct tfh_event *ev);
/* What an op is called: its kernel, or what a copy goes from and to, as CUPTI's users know it
 * ("Memcpy HtoD (Pageable -> Device)"). */
const char *tfh_export_op_name(const struct tfh_op *op);
/* "r3", "p0": a process' part of a file name. */
void tfh_export_rank_name(const struct tfh_export *x, uint32_t process, char out[32]);
/* Numbers of a process and of a thread (index in the run) for viewers, which take equal ones for the same
 * process: the system's own where they are unique in the run, as they are not across hosts or containers. */
uint32_t tfh_export_pid(const struct tfh_export *x, uint32_t process);
uint32_t tfh_export_tid(const struct tfh_export *x, uint32_t thread);
/* The start of the run in Unix time, 0 if it is unknown. */
int64_t tfh_export_start_ns(const struct tfh_export *x);

/* A kernel's name as C++ has it, where it is mangled. */
#define TFH_EXPORT_NAME 4096u
const char *tfh_export_full_name(char room[TFH_EXPORT_NAME], const char *name);
struct tfh_export_shape {
	uint32_t grid[3], block[3], shared;
};
struct tfh_export_shape tfh_export_shape_of(const struct tfh_op *op);

#endif
