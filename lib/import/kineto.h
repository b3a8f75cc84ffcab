/* Internal interface between the parts of the Kineto importer: the contents of one
 * `traceEvents` entry, and of the rest of the file. */
#ifndef TFH_IMPORT_KINETO_H
#define TFH_IMPORT_KINETO_H

#include "import/import.h"
#include "import/scan.h"

#define TFH_KINETO_NAME 8192

/* One entry; missing numbers are -1. */
struct tfh_kineto_entry {
	/* X: complete; B and E: begin and end; M: metadata; s and f: start and end of an arrow. */
	char phase;
	uint8_t category; /* enum tfh_kineto_category */
	bool task;	  /* Ascend's: it says of which type its task is */
	bool named_pid;	  /* `pid` was a text without a number */
	uint8_t home;	  /* enum tfh_kineto_category of this pid's text, before Kineto */
	int64_t ts, dur;  /* ns */
	int64_t arrow_ts; /* the time by which arrows refer to it */
	int64_t pid, tid, id;
	int64_t correlation, stream, device, context, bytes, graph, node, wait_record, wait_stream;
	int64_t begin_ns, end_ns, threads,
		group; /* rocprof's: times; size of grid and block in threads */
	uint32_t grid[3], block[3], shared;
	char name[TFH_KINETO_NAME + 1];
	char label[256]; /* args.name */
};

enum tfh_kineto_category {
	TFH_KINETO_OTHER,
	TFH_KINETO_HOST, /* an annotation, or (until 2022) an op */
	TFH_KINETO_OP,
	TFH_KINETO_PYTHON,
	TFH_KINETO_UNIT, /* a kernel or a copy, depending on the name */
	TFH_KINETO_CALL, /* CUDA's runtime or driver */
	TFH_KINETO_KERNEL,
	TFH_KINETO_COPY,
	TFH_KINETO_MEMSET,
	TFH_KINETO_SYNC,      /* a wait in a stream, recorded on the device */
	TFH_KINETO_ARROW,     /* an arrow from a call to its op */
	TFH_KINETO_NPU_ARROW, /* the same of an NPU: its begin is all that is recorded of the call */
	TFH_KINETO_NOTE, /* an annotation, from the first to the last op that was launched in it */
};

/* rocprof_entry.c: completes an entry of rocprof's `results.json`, in the dialect that
 * kineto_entry.c reads. `label` is the name of its process, which shows the entry's kind; `hip`:
 * calls of HIP were recorded, so those of HSA below them are only ranges. */
bool tfh_rocprof_is(const struct tfh_kineto_entry *e);
void tfh_rocprof_entry(struct tfh_kineto_entry *e, const char *label, bool hip);

/* ascend_entry.c: the same for a process of Ascend's profiler, which are the rows of the NPU and
 * of its runtime. False: `label` is none of these. */
bool tfh_ascend_entry(struct tfh_kineto_entry *e, const char *label);

/* kineto_open.c: entries that mark a begin and an end */
struct tfh_kineto_open;
struct tfh_kineto_open *tfh_kineto_open_new(void); /* NULL: out of memory */
void tfh_kineto_open_free(struct tfh_kineto_open *o);
/* Adds a begin or an end, whose time was already clamped. Returns 1 with *e completed, 0 if it is
 * still open, or -ENOMEM. */
int tfh_kineto_pair(struct tfh_kineto_open *o, struct tfh_kineto_entry *e);

struct tfh_kineto;

/* kineto_entry.c: one process */
struct tfh_kineto *tfh_kineto_new(struct tfh_builder *b);
/* Adds an entry and clamps its times. Returns 0, -ENOMEM, or -E2BIG if there are too many entries
 * for memory. */
int tfh_kineto_add(struct tfh_kineto *k, struct tfh_kineto_entry *e);
uint64_t tfh_kineto_count(const struct tfh_kineto *k); /* entries used so far */
/* Who reads the file if its processes are those of TensorFlow's or JAX's profilers, and nothing in
 * it is PyTorch's; else NULL. */
typedef int tfh_reads_json(struct tfh_builder *b, struct tfh_bytes *bytes, const char *path,
			   struct tfh_err *err);
tfh_reads_json *tfh_kineto_other(const struct tfh_kineto *k);
/* If there were none: a text that says what the file may be. */
const char *tfh_kineto_nothing(const struct tfh_kineto *k);
/* Contents of the file besides traceEvents. */
struct tfh_kineto_facts {
	int64_t rank, world;	 /* -1 none */
	int64_t base_ns;	 /* added to all times */
	const char *other;	 /* what the file may be instead */
	bool json;		 /* it is, so far */
	uint32_t processors[64]; /* multiprocessors by device, 0 = unknown */
};
int tfh_kineto_end(struct tfh_kineto *k, const struct tfh_kineto_facts *facts); /* kineto_end.c */
void tfh_kineto_free(struct tfh_kineto *k);

/* kineto_ranks.c: the same for a file, which may hold several ranks */
struct tfh_kineto_ranks;
struct tfh_kineto_ranks *tfh_kineto_ranks_new(struct tfh_builder *b);
int tfh_kineto_ranks_add(struct tfh_kineto_ranks *r, struct tfh_kineto_entry *e);
uint64_t tfh_kineto_ranks_count(const struct tfh_kineto_ranks *r);
const struct tfh_kineto *tfh_kineto_ranks_first(const struct tfh_kineto_ranks *r);
int tfh_kineto_ranks_end(struct tfh_kineto_ranks *r, const struct tfh_kineto_facts *facts);
void tfh_kineto_ranks_free(struct tfh_kineto_ranks *r);

#endif
