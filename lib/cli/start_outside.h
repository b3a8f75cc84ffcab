/*
 * What `tfhook run` knows of the processes that it samples from outside. start_samples.c takes the
 * samples, start_processes.c finds the processes, start_json.c writes what is known.
 */
#ifndef TFH_CLI_START_OUTSIDE_H
#define TFH_CLI_START_OUTSIDE_H

#include <sys/stat.h>

#include "cli/ends.h"
#include "cli/run.h"
#include "cli/start_loops.h"
#include "cli/start_others.h"
#include "cli/start_places.h"
#include "cli/start_samples.h"
#include "sampling/outside.h"
#include "sampling/waiting.h"

#define TFH_OUTSIDE_SAMPLES 16384u
#define TFH_OUTSIDE_PROCESSES 64u
/* First time between two searches for an interpreter, which a program does not have yet when it
 * starts. */
#define TFH_OUTSIDE_SEARCH_NS 20000000ll

struct tfh_outside_process {
	int32_t pid;
	int fd; /* shows what the main thread waits for; -1: not sampled (any more) */
	struct tfh_others_cpu others;
	uint64_t start; /* field 22 of /proc/PID/stat */
	dev_t device;	/* of the program, to detect an exec */
	ino_t inode;
	bool python, refused; /* its interpreter is known; it has none that can be read */
	bool records, ended;
	uint32_t idle;	 /* last samples in a row in which it did not run */
	uint32_t placed; /* samples with a line */
	uint64_t placed_us;
	int64_t search_ns, wait_ns; /* time of the next search, and the wait after it */
	struct tfh_py_outside outside;
	struct tfh_py_types types;
	struct tfh_py_counters counters;
	uint64_t state;
	char why[160];
};

struct tfh_outside_sample {
	uint64_t us;
	uint32_t process, place, weight_us;
	uint8_t state, gil; /* enum tft_state, enum tft_gil */
	uint8_t others;	    /* tfh_others_ran() */
	struct tfh_sample_loops loops;
};

struct tfh_start_samples {
	const struct tfh_place *to;
	struct tfh_start_places *places;
	bool lines, done, kept;
	int64_t next_ns, choose_ns;
	uint64_t mean_ns, cost_ns, spent_ns, random;
	uint64_t late_ns; /* delay of this sample: a busy job delays it, an idle one does not */
	struct tfh_outside_process process[TFH_OUTSIDE_PROCESSES];
	uint32_t n_process, searches;
	struct tfh_ends ends; /* of the children, in the end of those that record */
	uint32_t n;
	struct tfh_outside_sample sample[TFH_OUTSIDE_SAMPLES];
	struct tfh_start_loops loops;
	struct tfh_start_others others;
};

/* ---- start_processes.c ---- */

/* Notes why a process cannot be sampled, unless it has just ended. */
void tfh_outside_why(struct tfh_outside_process *p, const char *what, int err);
/* Samples it no longer. */
void tfh_outside_leave(struct tfh_outside_process *p);
/* Finds processes with a segment, "p.HOST.PID.N.tft". From then on, their recorder samples them. */
void tfh_outside_find_recording(struct tfh_start_samples *s);
/* Whether the samples of a process may be written. */
bool tfh_outside_is_worth(const struct tfh_outside_process *p);
/* Looks for new processes, for those that record, and for those that execute another program. */
void tfh_outside_choose(struct tfh_start_samples *s);

/* ---- start_json.c ---- */

/* Ends the sampling. Nothing is written if no process is worth it. */
void tfh_outside_write(struct tfh_start_samples *s);

#endif
