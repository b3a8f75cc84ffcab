/*
 * Internals of an opened run.
 *
 * - open/: files, processes, missing files, left-over journals, run.json, end.json and start.json
 * - getters.c: queries of a run; opened.c: shared helpers
 * - timeline/: the host calls of all threads in one order, with names and the kind of addresses
 * - ops/: device ops, each with the call that issued it (device_ops.h)
 * - symbols/: backtraces as functions, names of kernels
 * - built/: a run made from another tool's trace, entirely in memory
 * - ahead.c: blocks prepared by a thread; big.c: arrays as long as a run
 */
#ifndef TFH_MODEL_OPENED_H
#define TFH_MODEL_OPENED_H

#include "base/arena.h"
#include "format/tft_read.h"
#include "model/model.h"
#include "model/ops/ops.h"
#include "model/start.h"

#define TFH_MODEL_NAME_KINDS 16

struct tfh_name {
	const char *text;
	uint64_t handle, extra;
};

struct tfh_names {
	struct tfh_name *v[TFH_MODEL_NAME_KINDS];
	uint32_t n[TFH_MODEL_NAME_KINDS];
};

/* An incomplete text: its NAME record was read, and its EXT records follow on the same thread. */
struct tfh_name_part {
	char *text;
	uint32_t want, have;
};

/* One event chunk of a process. */
struct tfh_chunk {
	uint32_t file, chunk;
	uint64_t t_first, t_last;    /* ticks */
	int64_t first_ns;	     /* t_first on the axis of the run */
	bool damaged;		     /* and already noted */
	struct tft_events *unpacked; /* kept by an earlier pass (tfh_unpack_keep) */
	struct tfh_row_sum *row;     /* and its rows */
};

struct tfh_file {
	struct tft_reader *reader;
	char *path;
	/* By number in this file; the same row for a name in all files. */
	const struct tfh_fn_info **fn;
	uint32_t process;
	bool temporary; /* made from a left-over journal; removed at the end */
};

struct tfh_model_proc {
	struct tfh_process pub;
	uint64_t boot; /* hash of the boot id: MONOTONIC is comparable within it */
	uint64_t start_ticks, process_start;
	int64_t shift; /* run time = MONOTONIC ns + shift */
	struct tfh_chunk *chunk;
	uint32_t n_chunk, cap_chunk;
	struct tfh_chunk *digest; /* chunks whose records were discarded */
	uint32_t n_digest, cap_digest;
	struct tfh_names names;
	uint32_t name_count[TFH_MODEL_NAME_KINDS]; /* of a run built in memory: ids in use */
	/* Index of a thread in the run, +1, in pages by the thread's index in the process. NULL: no
	 * thread in that page. Even a file of 300 bytes may use an index of a million. */
	uint32_t **thread_page;
	uint32_t n_thread; /* one more than the greatest index */
	uint32_t next;	   /* next process with the same identity hash, +1 (add_file.c) */
	struct tfh_sample *sample;
	uint32_t n_sample, cap_sample;
	uint64_t sample_cpu, sample_flusher, sample_delay, sample_write, sample_faults,
		sample_io_bytes, sample_io_calls, sample_system;
	struct tfh_meter_line *meter;
	uint32_t n_meter, cap_meter;
	struct tfh_meter_before *meter_before; /* NULL until there is a reading */
	struct tfh_gpu *gpu;		       /* device times; NULL until requested */
	struct tfh_sites *sites;	       /* backtraces; NULL until requested */
	struct tfh_places *places;	       /* Python lines, likewise */
	struct tfh_start start;		       /* allocated in the arena */
};

struct tfh_built; /* built/built.c: events and ops of a run that was built in memory */

struct tfh_run {
	char *path;
	enum tfh_source source;
	struct tfh_built *built; /* NULL: read from .tft files */
	struct tfh_arena arena;
	struct tfh_file *file;
	uint32_t n_file, cap_file;
	struct tfh_model_proc *proc;
	struct tfh_process *process; /* the public view; filled when complete */
	uint32_t n_proc, cap_proc;
	uint32_t *bucket; /* hash table by process identity: the newest process of a bucket, +1 */
	uint32_t n_bucket;
	struct tfh_thread_info *thread;
	uint32_t n_thread, cap_thread;
	struct tfh_hole *hole;
	uint32_t n_hole, cap_hole;
	struct tfh_in_flight *flight;
	uint32_t n_flight, cap_flight;
	struct tfh_discarded_span *discarded;
	uint32_t n_discarded, cap_discarded;
	const char **unhooked;
	uint32_t n_unhooked, cap_unhooked;
	const char **unreadable;
	uint32_t n_unreadable, cap_unreadable;
	const char **argv;
	uint32_t argc;
	const char *host;
	int64_t start_realtime, wall, end_ns;
	enum tfh_end end;
	int end_number;
	const char *only_host; /* NULL: all; while it is opened */
	char *temp_dir;
	const struct tfh_known *known; /* places of a run without files (known.h), else NULL */
	uint32_t kept_of; /* the process whose decompressed chunks are kept, and their bytes */
	size_t kept_bytes;
	uint32_t decoders; /* threads that decode calls; 0: as many as there are processors */
	/* Calls decoded, over all passes, by any thread; copies of the run share the counter. */
	uint64_t *unpacked;
};

/* ---- opened.c ---- */

/* Ensures capacity for one more element. 0 or -ENOMEM. */
int tfh_room_for(void **v, uint32_t *cap, uint32_t n, size_t size);
/* Converts a file's ticks to run time. */
int64_t tfh_run_ns(const struct tfh_run *run, uint32_t file, uint64_t ticks);

/* Index in the run of a process' thread, by its index in the process; UINT32_MAX if unknown. */
uint32_t tfh_thread_at(const struct tfh_model_proc *p, uint32_t index);
/* Sets the index in the run of a process' thread. 0 or -ENOMEM. */
int tfh_thread_put(struct tfh_model_proc *p, uint32_t index, uint32_t in_run);
void tfh_threads_free(struct tfh_model_proc *p);

/* Contents of a chunk that cannot be decoded, from its intact header. */
struct tfh_lost {
	uint64_t records; /* records of the job's own threads */
	bool repeats;	  /* has records of other series, which may be as old as the process */
};
void tfh_chunk_lost(const struct tfh_run *run, const struct tfh_chunk *c, struct tfh_lost *lost);
/* Records the lost chunk as a hole. 0 or -ENOMEM. */
int tfh_run_note_damage(struct tfh_run *run, uint32_t process, struct tfh_chunk *c,
			const struct tfh_lost *lost);
/* Notes a file that is left out. 0 or -ENOMEM. */
int tfh_run_leave_out(struct tfh_run *run, const char *why);
/* timeline/series.c: frees the chunks that passes have kept */
void tfh_unpacked_free(struct tfh_run *run);
/* timeline/id_names.c */
/* Stores a NAME record, and prepares `part` for the EXT records that follow. */
int tfh_names_add(struct tfh_arena *arena, struct tfh_names *names, const struct tfh_rec *rec,
		  struct tfh_name_part *part);
void tfh_names_part(struct tfh_name_part *part, const struct tfh_rec *ext);
void tfh_names_free(struct tfh_names *names);

/* ops/device_times.c */
void tfh_gpu_free(struct tfh_gpu *gpu);

/* symbols/backtraces.c */
void tfh_sites_free(struct tfh_sites *sites);

/* built/built.c: data for merge.c and ops.c of a run that has `built`; NULL at the end. */
const struct tfh_event *tfh_built_event(const struct tfh_run *run, uint32_t process, uint64_t i);
const struct tfh_op *tfh_built_op(const struct tfh_run *run, uint32_t process, uint64_t i);
void tfh_built_gpu(const struct tfh_run *run, uint32_t process, struct tfh_gpu_info *out);
void tfh_built_free(struct tfh_built *built);

/* timeline/addresses.c: intervals of addresses in use */
enum tfh_place_kind { TFH_PLACE_UNKNOWN, TFH_PLACE_DEVICE, TFH_PLACE_PINNED, TFH_PLACE_MANAGED };
struct tfh_memory {
	struct tfh_span *v; /* by address */
	uint32_t n, cap;
};
/* Takes in a call that allocates or frees; calls come in order of their ends. 0 or -ENOMEM. */
int tfh_memory_event(struct tfh_memory *m, const struct tfh_fn_info *fn, const struct tfh_rec *rec);
/* Direction and pageability of a copy; ext may be NULL. */
void tfh_memory_copy(const struct tfh_memory *m, const struct tfh_fn_info *fn,
		     const struct tfh_rec *rec, const struct tft_ext_copy *ext, uint8_t *dir,
		     bool *pageable);
/* For a batch: the direction of most of its listed bytes, and whether most of those are pageable.
 */
void tfh_memory_batch(const struct tfh_memory *m, const struct tft_ext_pair *pair, uint32_t n,
		      uint8_t *dir, bool *pageable);
void tfh_memory_free(struct tfh_memory *m);

#endif
