/*
 * The process that is being recorded: its identity and the state of its recording. Every folder of
 * record/ may read it.
 *
 * Who may change what:
 *	job threads	their own ring, slot allocation, the global handle table, requests
 *	the flusher	staging, trace files, live tables, loss accounts
 *	one starter	COLD -> ON, while start_state is TFH_START_BUSY
 */
#ifndef TFH_RECORD_PROCESS_RECORDER_H
#define TFH_RECORD_PROCESS_RECORDER_H

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/proc.h"
#include "format/tft_write.h"
#include "record/record.h"

#define TFH_PAGE 4096ul
#define TFH_NEVER UINT64_MAX

enum tfh_start_state {
	TFH_START_NOT = 0,
	TFH_START_BUSY = 1,
	TFH_START_DONE = 2,
	TFH_START_FAILED = 3,
};

/* Rank and world size from the launcher's variables; -1 = none. */
struct tfh_job_rank {
	int32_t rank, world, local_rank;
	char job[128];	  /* "" = set by no launcher */
	char restart[16]; /* restart count of an elastic launcher, "" = none */
	const char *source;
};

struct tfh_recorder {
	pid_t pid;
	uint32_t start_state; /* atomic, enum tfh_start_state */
	uint32_t generation;  /* value of tfh_generation() in this process */
	uint32_t next_thread; /* atomic: index of the next thread; 0 is the flusher's own series */
	uint64_t process_start;
	cpu_set_t processors;	       /* the process's CPU affinity when the library was loaded */
	struct tft_clock_triple first; /* when the first hooked call came */
	uint64_t priced; /* rows of base/priced.def that applied when recording began */
	struct tfh_options options;
	struct tfh_job_rank rank;
	char host[64];
	char exe[PATH_MAX];
	char command[4096];
	char boot_id[48];
	/* Atomic: calls that found no ring before there was a journal to count them in. */
	uint64_t beyond_early;
	uint32_t steps_off;    /* atomic: steps seen while recording was off */
	uint32_t window_off;   /* recording waits for its window */
	uint64_t window_first; /* first step of the window, 0 = none */
	uint32_t paused;       /* atomic: pauses by the job minus its resumes */
};

extern struct tfh_recorder tfh_recorder;

pid_t tfh_raw_getpid(void);

/* Whether this process is being recorded. */
bool tfh_recording(void);

/* Ticks per second; 0: not known yet. */
uint64_t tfh_tick_hz(void);
/* Computes it from two readings of the clocks. Returns false, without effect, if they are less than
 * 1 ms apart. */
bool tfh_tick_hz_set(const struct tft_clock_triple *a, const struct tft_clock_triple *b);

#endif
