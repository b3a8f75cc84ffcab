/*
 * The flusher thread and its own data. Everything here runs on that thread; without one, on the
 * thread that starts the recording, and at an exit on the one that exits.
 */
#ifndef TFH_RECORD_FLUSHER_H
#define TFH_RECORD_FLUSHER_H

#include "format/tft_write.h"
#include "base/rules.h"
#include "record/process/apart.h"
#include "record/internal.h"
#include "record/write/live.h"

#define TFH_SEGMENT_BYTES (256ull << 20)
#define TFH_CLOCKS_MAX 128

struct tfh_segments {
	struct tft_writer *writer; /* NULL: none open */
	uint32_t next;		   /* number of the next segment */
	uint32_t first, oldest_middle;
	bool any;
	uint64_t closed_bytes; /* of all closed segments still there */
	uint64_t opened_bytes; /* of the open one, before anything happened in it */
	char name[300];	       /* of the open one */
};

struct tfh_flusher {
	/* requests; atomic */
	uint64_t pthread;	  /* of the flusher, 0: not yet */
	sigset_t signals;	  /* those blocked in the thread that created it */
	uint32_t thread;	  /* 0 none, 1 being made, 2 running, 3 could not be made */
	uint32_t asleep;	  /* futex */
	uint32_t flush_asked;	  /* counts up */
	uint32_t flush_done;	  /* futex; counts up to flush_asked */
	uint32_t finish_asked;	  /* 0, 1 unclean, 2 clean */
	uint32_t finish_done;	  /* futex */
	uint32_t gave_up;	  /* a wait for that timed out: nobody waits again */
	uint64_t foreign_ns;	  /* inside CUPTI since then; 0: it is not */
	bool start_waited;	  /* atomic: a thread waited a whole second for the journal */
	uint32_t late_state;	  /* atomic: 0 none, 1 being filled in, 2 valid, 3 applied */
	struct tfh_job_rank late; /* a rank that became known after the start */
	/* the flusher's own */
	uint64_t *expected; /* [thread] number of the next record to stage */
	uint32_t expected_cap;
	uint64_t own_number; /* of the flusher's own series, thread 0 */
	uint64_t sealed_ns, second_ns, open_look_ns;
	uint64_t pause_until_ns, paused_since_ns;
	bool pause_told;
	uint64_t marks_on, consumers_on; /* recorded steps; marks count if there are any */
	uint64_t step_limit;		 /* steps_on at which a --steps countdown ends, 0 = none */
	uint64_t poll_ns, alone_ns;
	struct tft_clock_triple clocks[TFH_CLOCKS_MAX];
	uint32_t n_clocks;
	struct tft_clock_triple first;
	struct tfh_segments seg;
	struct tfh_rule_window window;
	uint32_t apart;		/* atomic, futex: enum in apart.c */
	uint64_t helper_thread; /* atomic: pthread_self() of the helper, 0: none */
	struct tfh_helper *helper;
};
extern struct tfh_flusher tfh_f;

/* Starts the thread, which begins with tfh_set_up() if that has not run. False on failure, reported
 * on stderr. */
bool tfh_flusher_start(const struct tfh_steady *steady);
/* Creates run directory and journal: recording starts, and threads waiting for it continue. False
 * on failure, reported on stderr. */
bool tfh_set_up(void);
/* Wakes it if it sleeps; a system call only then. Thread-safe. */
void tfh_flusher_wake(void);
/* In a forked child, or after a failed exec: a new recording may start. */
void tfh_flusher_forget(void);
/* Whether everything was written and closed. */
bool tfh_flusher_closed(void);
/* tfh_flush_now() and tfh_finish() with a deadline of CLOCK_MONOTONIC. `mode`: for later calls. */
int tfh_flush_by(uint64_t end);
void tfh_finish_by(bool clean, enum tfh_mode mode, uint64_t end);
/* Whether this process is being recorded. */
bool tfh_recording(void);
/* Writes OPEN records of calls that have been running for 100 ms. */
void tfh_look_open(uint64_t now_ns);
/* One round of work; `force` moves every record, not only from rings that fill up. Returns the
 * number of records moved. */
uint32_t tfh_drain(bool force);
/* Stages records of the flusher's own series, all or none; false if there is no space. */
bool tfh_stage_own(const struct tfh_rec *records, uint32_t n);
/* Writes what is staged. 0 or -errno (then it stays staged). */
int tfh_seal(void);
/* After a failed write: truncates the file to its last complete chunk and pauses writing. */
void tfh_write_failed(int err, uint64_t now_ns);
void tfh_take_clock(void);
/* Writes clock readings not yet in the file; needs an open segment. */
int tfh_clocks_put(void);

/* segments.c: 0 or -errno */
int tfh_segment_ready(void);
int tfh_segment_close(bool clean);
int tfh_segment_rotate_if_full(void);
/* Deletes middle segments beyond this process' share; returns whether there were any. */
bool tfh_segments_shrink(void);
/* HEAD has changed: further records go into another segment. */
void tfh_segment_renew(void);

/* budget.c */

/* Largest chunk: 65,536 records rarely compress to more than their raw size. */
#define TFH_CHUNK_BYTES (TFT_MAX_EVENTS * sizeof(struct tfh_rec))
/* Whether one more chunk may be written. -ENOSPC: the file system would have less free than the
 * larger of 2 GiB and 5 %; -EDQUOT: the same for this user's or group's quota; -EOVERFLOW: the run
 * directory has reached TFHOOK_RUN_SIZE. */
int tfh_disk_check(void);
/* Size limit of a segment, and of all of this process in `limit`. */
uint64_t tfh_budget_segment(uint64_t *limit);
void tfh_budget_forget(void);

/* control.c */
void tfh_control_poll(uint64_t now_ns);
void tfh_window_setup(void);
void tfh_window_begin(void);
uint64_t tfh_steps_seen(void);
/* Whether recording ends after a number of steps, so that records must be examined as soon as they
 * arrive. */
bool tfh_counting_steps(void);
void tfh_count_steps(const struct tfh_rec *rec, uint32_t n);

/* sample.c: once a second; written with the next chunk */
void tfh_sample(void);
int tfh_sample_write(void);
void tfh_sample_forget(void);

/* machine.c: readings of the machine's meters, at most TFH_METER_COUNT; 0 between two readings */
struct tft_sample_thread;
uint32_t tfh_machine_read(struct tft_sample_thread *out);

/* notes.c: facts about the recording itself, as NOTE chunks of "key=value" lines */
int tfh_notes_write(void);
/* Names of unhooked functions that have been looked up since. */
int tfh_notes_more(void);
int tfh_notes_last(void);

#endif
