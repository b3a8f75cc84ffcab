/*
 * A run as the analysis sees it, whatever the source: processes, threads, names, and one merged
 * time line of host calls (and device ops, if any). Times are nanoseconds since the run's start
 * unless noted.
 */
#ifndef TFH_MODEL_MODEL_H
#define TFH_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/fn.h"
#include "base/meters.h"
#include "base/vocabulary.h"
#include "format/layout.h"
#include "format/sketch.h"

struct tfh_run; /* opened run directory, file list or foreign trace */

struct tfh_in_flight {
	const char *fn;
	uint32_t thread; /* index among the run's threads (tfh_run_threads) */
	double open_s;
	const char *detail; /* of the event: "stream 7", bytes, a stage's name, or "" */
	uint64_t handle;    /* of a wait: the stream or event waited for, 0: all */
	uint32_t process;
	int64_t begin_ns;
	/* The last sample of its thread during this call; look_ns 0: none. */
	int64_t look_ns;
	uint32_t place; /* in Python code (tfh_run_place), 0: unknown */
	uint16_t state; /* enum tft_state */
};

/* A library that a process had loaded. */
struct tfh_software {
	const char *name, *version, *path; /* version: "?" if unknown */
};

#define TFH_SOFTWARE_MOST 64u /* per process; no recorder writes more */

/* Where a device of a process is. Texts: "" not known or none; numbers: -1 not known. */
struct tfh_device_at {
	int ordinal, node, links; /* memory node; NVLinks that are up */
	const char *bus;	  /* its address */
	const char *pcie;	  /* of the nearest PCIe switch above it */
	const char *nic;	  /* network adapter below the same switch */
	const char *fabric;	  /* NVLink domain */
};
#define TFH_DEVICES_AT_MOST 8u

/* A framework's setting, as the program had it when it was last read. */
struct tfh_setting_now {
	const char *name, *value;
};
#define TFH_SETTINGS_MOST 16u

struct tfh_process {
	const char *host, *exe;
	uint32_t pid, ppid;
	int32_t rank;		   /* -1: unknown */
	int32_t world;		   /* ranks of the job, -1: unknown */
	int32_t local;		   /* rank on its host, -1: unknown */
	int64_t start_ns, last_ns; /* first and last event */
	int64_t born_ns;	   /* start of the process; start_ns if unknown */
	int64_t heard_ns;	   /* last sign of life: not before last_ns */
	uint64_t events, dropped, bad_chunks, tail_bytes;
	uint64_t unnamed;      /* uses of names that got no id */
	const char *no_python; /* why its Python stacks were not read, else NULL */
	const char *torch;     /* state of PyTorch's ranges; NULL: it was not loaded */
	const struct tfh_software *software; /* [n_software] */
	uint32_t n_software;
	const struct tfh_device_at *device; /* [n_device] */
	uint32_t n_device;
	uint64_t priced; /* rows of base/priced.def that applied to it, as bits */
	const struct tfh_setting_now *setting; /* [n_setting] */
	uint32_t n_setting;
	/* The CPUs and memory nodes that it was allowed to use when recording began, as the kernel
	 * lists them ("0-3,8"), and its memory policy ("default", "bind:0"). NULL: unknown. */
	const char *bound_cpus, *bound_nodes, *bound_policy;
	bool clean_end, live;
	bool end_known; /* how the process ended: end is TFH_END_EXIT or _SIGNAL */
	enum tfh_end end;
	int end_code;
	/* Times are CLOCK_MONOTONIC: the CPU's time stamp counter was not reliable. */
	bool by_monotonic;
	bool has_gpu, has_tf;	   /* any driver call, any TensorFlow call */
	bool has_marks;		   /* any mark of a step */
	uint32_t segments;	   /* files */
	uint32_t segments_missing; /* lower bound of missing files, by their numbers */
	uint64_t clock_residual_ns;
};

/* A library that the process had loaded; NULL: it had not. */
const struct tfh_software *tfh_find_software(const struct tfh_process *p, const char *name);

struct tfh_thread_info {
	uint32_t process, tid, index;
	const char *name; /* NULL: none is known */
	/* As last sampled, since the thread began. */
	bool timed, faults_known, switches_known;
	double run_s, delay_s; /* on a processor; ready to run without one */
	uint64_t minor_faults, major_faults, voluntary_switches, forced_switches;
};

/* Whether any of a thread's counts was read: never in another profiler's trace. */
static inline bool tfh_thread_sampled(const struct tfh_thread_info *t)
{
	return t->timed || t->faults_known || t->switches_known;
}

/* One entry of the merged time line. `fn` is a row of the file's own table, never NULL. */
struct tfh_event {
	int64_t t0, t1;
	const struct tfh_fn_info *fn;
	uint32_t process, thread; /* indexes */
	uint8_t kind;		  /* enum tft_kind */
	uint8_t flags, depth;
	uint16_t result;
	uint32_t stream, ctx, stack;
	uint64_t w[3];
	uint8_t dir;	 /* copies: direction, TFH_DIR_ANY resolved by address */
	bool pageable;	 /* copies: a host side is not pinned */
	uint64_t number; /* record number in its thread */
	/* Of a sample: how far loops had come, as in its EXT record (format/sample_loops.h), valid
	 * as long as the event; NULL: not known. */
	const struct tfh_packed_loops *loops;
};

struct tfh_packed_loops {
	uint8_t bytes, byte[TFT_EXT_BYTES];
};

/* An event as a pass stores it: its own fields, and a pointer to those that it shares with
 * others. */
struct tfh_entry {
	int64_t t0, t1;
	uint64_t number;
	struct tfh_event *ev; /* the other fields; NULL: this is a name, not an event */
	uint32_t thread;      /* index in the run; for a name: in the process */
	bool launch;	      /* tfh_is_plain_launch() */
};

/* Whether this is an outermost kernel launch outside of a capture, by far the most frequent
 * call. */
static inline bool tfh_is_plain_launch(const struct tfh_event *ev)
{
	return ev->fn->family == TFH_FAM_LAUNCH && ev->kind == TFT_CALL && !ev->depth &&
	       !(ev->flags & TFT_F_CAPTURED);
}

/* The newest run directory (tfhook-*) of this user below "."; those of others are read only if
 * named. False if there is none. */
bool tfh_run_newest(char *out, size_t cap);

/* Opens run directories, .tft files, or foreign traces; without paths, the newest run directory
 * below ".". Left-over journals of ended processes on this host are read too (never modified). */
int tfh_run_open(const char *const *paths, uint32_t n, struct tfh_run **out, struct tfh_err *err);
/* The same of a run directory, but only the processes of one host. */
int tfh_run_open_host(const char *dir, const char *host, struct tfh_run **out, struct tfh_err *err);
void tfh_run_close(struct tfh_run *run);

enum tfh_source tfh_run_source(const struct tfh_run *run);
/* Whether the run was built in memory (model/built/build.h), without .tft files. */
bool tfh_run_is_built(const struct tfh_run *run);
const char *tfh_run_path(const struct tfh_run *run);
/* Opens run.json or end.json of a run directory for reading; NULL if there is no such regular file.
 * The caller closes it. */
FILE *tfh_open_facts(const char *dir, const char *name);
uint32_t tfh_run_command(const struct tfh_run *run, const char *const **argv);
const char *tfh_run_host(const struct tfh_run *run);
int64_t tfh_run_start_realtime_ns(const struct tfh_run *run);
int64_t tfh_run_wall_ns(const struct tfh_run *run);
/* The end of the run on its events' axis: not before its last event. */
int64_t tfh_run_end_ns(const struct tfh_run *run);
/* How many threads may decode calls. 0 (the default): one per processor. */
void tfh_run_decoders(struct tfh_run *run, uint32_t n);
/* Calls decoded so far, over all passes; may be read by another thread. 0 for an imported trace. */
uint64_t tfh_run_unpacked(const struct tfh_run *run);
/* How the run ended, TFH_END_NONE if unknown. */
enum tfh_end tfh_run_end(const struct tfh_run *run, int *code_or_signal);
uint32_t tfh_run_in_flight(const struct tfh_run *run, const struct tfh_in_flight **out);
uint32_t tfh_run_processes(const struct tfh_run *run, const struct tfh_process **out);
uint32_t tfh_run_threads(const struct tfh_run *run, const struct tfh_thread_info **out);
uint32_t tfh_run_unhooked(const struct tfh_run *run, const char *const **names);
/* Files in a directory that could not be read, each with its reason in one line; the others were
 * read. */
uint32_t tfh_run_unreadable(const struct tfh_run *run, const char *const **why);

/* Text of a NAME by (process, kind, id); "" if unknown. `extra` may be NULL. */
const char *tfh_run_name(const struct tfh_run *run, uint32_t process, enum tft_name kind,
			 uint32_t id, uint64_t *handle, uint64_t *extra);

/* Every event of the selected process (or all: UINT32_MAX), in order of end time. NAME, EXT and
 * REPEAT records are consumed by the model (tfh_run_name) and not delivered. */
struct tfh_merge;
int tfh_merge_open(struct tfh_run *run, uint32_t process, struct tfh_merge **out,
		   struct tfh_err *err);
bool tfh_merge_next(struct tfh_merge *m, struct tfh_event *ev);
/* The same without a copy: valid until the call after the next; NULL at the end or on error. */
const struct tfh_event *tfh_merge_borrow(struct tfh_merge *m);
/* The next entries that are already decoded: fewer than a thousand, and none for a run built in
 * memory. The caller may take the first `n` that have an event without tfh_merge_borrow(). */
const struct tfh_entry *tfh_merge_peek(const struct tfh_merge *m, uint32_t *n);
void tfh_merge_advance(struct tfh_merge *m, uint32_t n);
/*
 * A summary of consecutive launches on one thread and stream. A pass that only counts launches
 * needs no event for each of them.
 */
#define TFH_LAUNCH_ROW 64u
struct tfh_launch_row {
	int64_t t0, t1; /* start of the first, end of the last, ns */
	int64_t first;	/* end of the first */
	int64_t ns;	/* sum of their durations */
	int64_t apart;	/* longest time from the end of one launch to the end of the next */
	int64_t longest;
	uint32_t thread, n, parts;
	/* Consecutive launches that differ only in their times and numbers. */
	struct {
		const struct tfh_event *ev; /* without the times and numbers */
		uint32_t n;
	} part[TFH_LAUNCH_ROW];
};
/* The next row; NULL: the next events are no row, or single events of a row are left.
 * tfh_merge_take_row() takes the row; otherwise tfh_merge_borrow() returns its launches one by one.
 * Valid until then. */
const struct tfh_launch_row *tfh_merge_row(struct tfh_merge *m);
void tfh_merge_take_row(struct tfh_merge *m);
/* Begins and ends of the launches of the row returned last, ns. */
void tfh_merge_row_times(const struct tfh_merge *m, int64_t t0[TFH_LAUNCH_ROW],
			 int64_t t1[TFH_LAUNCH_ROW]);
/* Calls `fn` with each block of events before any of its events is returned, and with NULL after
 * the last block. */
struct tfh_block;
void tfh_merge_tap(struct tfh_merge *m, void (*fn)(void *arg, const struct tfh_block *b),
		   void *arg);
int tfh_merge_error(const struct tfh_merge *m, struct tfh_err *err);
void tfh_merge_close(struct tfh_merge *m);

/* Holes: intervals in which records of a process are missing. Damaged chunks are found during a
 * pass, and are included when it ends. */
struct tfh_hole {
	uint32_t process;
	int64_t t0, t1;
	uint64_t count;
};
uint32_t tfh_run_holes(const struct tfh_run *run, const struct tfh_hole **out);

/* Intervals whose records were discarded for TFHOOK_MAX_SIZE, in time order per process. They must
 * not be treated as idle time. */
struct tfh_discarded_span {
	uint32_t process;
	int64_t t0, t1;
	uint64_t events;
};
uint32_t tfh_run_discarded_spans(const struct tfh_run *run, const struct tfh_discarded_span **out);

/* The sketch of one chunk in such an interval, in run times. */
struct tfh_digest_fn {
	const struct tfh_fn_info *fn;
	uint64_t count;
	int64_t ns; /* sum */
};
struct tfh_digest_clock { /* calls of one kind that could be the step clock; key as in FORMAT.md */
	const struct tfh_fn_info *fn;
	uint32_t key;
	uint64_t count;
	int64_t t0, t1; /* ends of the first and the last */
};
struct tfh_sketched { /* copies in one direction, or waits */
	uint64_t count, bytes;
	int64_t ns; /* sum */
};
struct tfh_digest {
	int64_t t0, t1;
	uint64_t launches;
	uint32_t n_fn, n_clock;
	struct tfh_digest_fn fn[TFT_SKETCH_FNS];
	struct tfh_digest_clock clock[TFT_SKETCH_CLOCKS];
	struct tfh_sketched anchor[TFT_SKETCH_ANCHORS];
	bool knows_anchors;
};
/* Calls `cb` for all sketches of a process, in time order, without decoding a chunk. A negative
 * errno from the callback stops it and is returned. */
typedef int (*tfh_digest_cb)(void *arg, const struct tfh_digest *d);
int tfh_run_digests(struct tfh_run *run, uint32_t process, tfh_digest_cb cb, void *arg);

/* CPU times of a thread with recorded calls, since it began; thread: its index in the process. */
#define TFH_SAMPLE_THREADS 8u
struct tfh_thread_times {
	uint32_t thread;
	double run_s, delay_s; /* on a CPU; ready to run without one */
};

/* One machine sample per second (SAMP). */
struct tfh_sample {
	int64_t t;
	double cpu_s; /* process CPU seconds since the last sample */
	/* Part of cpu_s used by the recorder's own thread (sampling, writing the file). */
	double flusher_s;
	double run_delay_s; /* scheduling delay: sum over recorded threads since the last sample */
	struct tfh_thread_times thread[TFH_SAMPLE_THREADS]; /* the lowest indexes */
	uint32_t threads;
	uint32_t cpus; /* CPUs the process may use */
	uint64_t write_bytes;
	/* These three are 0 if they were not recorded. */
	uint64_t faults; /* page faults without reading from disk, since the last sample */
	double fault_s;	 /* shortest duration of one page fault on this machine */
	double system_s; /* part of cpu_s spent in the kernel */
	uint64_t resident_bytes, page_bytes;
	/* Reading and writing by system calls since the last sample; both 0 if not recorded. */
	uint64_t io_bytes, io_calls;
};
/*
 * One value of a machine meter (base/meters.def) over a recording: time-weighted mean, smallest and
 * largest reading, and the means of equal intervals from t0 on (NAN: no reading). In the table's
 * unit; rates are per second.
 */
#define TFH_METER_POINTS 256u
struct tfh_meter_line {
	enum tfh_meter meter;
	uint32_t value; /* 0 or 1: the first or second of the row */
	int device;	/* ordinal in the process, -1: the machine's */
	double mean, least, most, time_s;
	int64_t t0, width_ns;
	float *point; /* [n], n at most TFH_METER_POINTS */
	uint32_t n, cap;
};
/* Meters of a process in table order, without those that were not read. Owned by the run. */
uint32_t tfh_run_meters(const struct tfh_run *run, uint32_t process,
			const struct tfh_meter_line **out);

uint32_t tfh_run_samples(const struct tfh_run *run, uint32_t process,
			 const struct tfh_sample **out);

#endif
