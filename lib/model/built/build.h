/*
 * Builds a run from another tool's trace: import/ hands over processes, threads, names, host calls
 * and device ops; the result is a tfh_run like one that was read from .tft files. All of it is kept
 * in memory (about 100 bytes per event).
 */
#ifndef TFH_MODEL_BUILT_BUILD_H
#define TFH_MODEL_BUILT_BUILD_H

#include "model/ops/ops.h"

struct tfh_builder;

/* 0 or -ENOMEM. `path` is the later result of tfh_run_path(). */
int tfh_build_new(enum tfh_source source, const char *path, struct tfh_builder **out);
void tfh_build_free(struct tfh_builder *b); /* discards what was built */

/* Changes the source's kind once it is known. */
void tfh_build_source(struct tfh_builder *b, enum tfh_source source);
/* Processes so far; tfh_build_undo() drops the later ones with their data. */
uint32_t tfh_build_processes(const struct tfh_builder *b);
void tfh_build_undo(struct tfh_builder *b, uint32_t processes);
/* Like tfh_run_leave_out(). */
int tfh_build_leave_out(struct tfh_builder *b, const char *why);

/* Each returns the index, or -ENOMEM. Text is copied. */
int64_t tfh_build_process(struct tfh_builder *b, const char *host, const char *exe, uint32_t pid,
			  int32_t rank);
int64_t tfh_build_thread(struct tfh_builder *b, uint32_t process, uint32_t tid, const char *name);
void tfh_build_thread_name(struct tfh_builder *b, uint32_t thread, const char *name);
/* The id of a text among names of its kind; equal texts have equal ids. */
int64_t tfh_build_name(struct tfh_builder *b, uint32_t process, enum tft_name kind,
		       const char *text);
/* Its text, "" if there is none; valid as long as the run. */
const char *tfh_build_text(struct tfh_builder *b, uint32_t process, enum tft_name kind,
			   uint32_t id);
/* The row of a function of this name, owned by the run and otherwise a copy of `like` (a row of
 * base/fn.h's table or another one). NULL when out of memory. */
const struct tfh_fn_info *tfh_build_fn(struct tfh_builder *b, const char *name,
				       const struct tfh_fn_info *like);

/* Shifts all times of a process whose clock differed; no shift that leads beyond the run's axis. */
void tfh_build_shift(struct tfh_builder *b, uint32_t process, int64_t ns);
/* For an identity that becomes known late. 0 or -ENOMEM. */
int tfh_build_identity(struct tfh_builder *b, uint32_t process, const char *exe, uint32_t pid,
		       int32_t rank, int32_t world);

/* Events may come in any order. Times are ns on the source's own axis; the run begins at the
 * earliest. Times that are after 2001 in Unix time are taken as Unix time. The op's `name` is
 * copied once per text. Thread and call of an op may be unknown if `correlation` is that of an
 * event. 0 or -ENOMEM. */
int tfh_build_event(struct tfh_builder *b, const struct tfh_event *ev, uint32_t correlation);
int tfh_build_op(struct tfh_builder *b, const struct tfh_op *op);
/* For a process without a device: turns its outermost op ranges (w[1]), except those of compiling,
 * into calls that execute a step, like TensorFlow's. 0 or -ENOMEM. */
int tfh_build_host_only(struct tfh_builder *b, uint32_t process);
/* Cuts all ranges to this time: what the source recorded around it is the profiler's own work. */
void tfh_build_cut_ranges(struct tfh_builder *b, uint32_t process, int64_t from, int64_t to);
/* The device could do nothing before `t`: its context did not exist yet. */
void tfh_build_ready(struct tfh_builder *b, uint32_t process, int64_t t);
/* Multiprocessors of the largest device. */
void tfh_build_processors(struct tfh_builder *b, uint32_t process, uint32_t n);

/* Sorts, joins ops with their calls by correlation, and numbers. Takes ownership of the builder on
 * success. */
int tfh_build_run(struct tfh_builder *b, struct tfh_run **out, struct tfh_err *err);

#endif
