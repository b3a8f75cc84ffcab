/*
 * From staging to the segment files. All on the flusher. Without a flusher, on the thread that
 * starts the recording, and at an exit on the exiting thread.
 */
#ifndef TFH_RECORD_WRITE_WRITE_H
#define TFH_RECORD_WRITE_WRITE_H

#include "format/live.h"
#include "format/tft_write.h"
#include "record/process/recorder.h"

/* ---- segments.c: this process's trace files, one after the other; functions return 0 or -errno
 * ---- */

struct tfh_segments {
	struct tft_writer *writer; /* NULL: none open */
	/* Number of files opened; a change shows the writers of tables that the file is new. */
	uint32_t opened;
	uint32_t next; /* number of the next segment */
	uint32_t first, oldest_middle;
	bool any;
	uint64_t closed_bytes; /* of all closed segments that still exist */
	uint64_t opened_bytes; /* size of the open file when it was created */
	char name[300];	       /* of the open one */
};
extern struct tfh_segments tfh_segments;

int tfh_segment_ready(void);
int tfh_segment_close(bool clean);
int tfh_segment_rotate_if_full(void);
/* HEAD has changed: further records go into a new segment. */
void tfh_segment_renew(void);
/* Calls tfh_budget_check() and deletes middle segments if that makes room. */
int tfh_disk_check(void);
/* In a forked child (the file is the parent's), or for a new recording of the same process. */
void tfh_segments_forget(void);

/* ---- alive.c ---- */

extern struct tft_live tfh_live; /* live objects of the job, according to the written records */

/* ---- clock_readings.c ---- */

void tfh_take_clock(void);
/* Whether readings wait to be written. */
bool tfh_clocks_waiting(void);
/* Writes readings that are not in the file yet. Returns 0 or -errno. */
int tfh_clocks_put(struct tft_writer *w);
void tfh_clocks_forget(void);

/* ---- describe.c: who recorded ---- */

/* HEAD payload of segment n; its strings are in tfh_recorder. */
void tfh_head_fill(struct tft_head *head, uint32_t segment);
/* Updates the journal's copy of HEAD, and its rank. */
void tfh_head_copy(void);
/* Writes everything that another process needs to interpret the journal. The journal is marked as
 * one only after that. */
void tfh_describe_journal(void);
/* Writes the run directory's path to the journal: empty while it may still become another. */
void tfh_describe_directory(void);

/* ---- notes.c: facts about the recording itself, as NOTE chunks of "key=value" lines ---- */

int tfh_notes_write(struct tft_writer *w);
/* Writes the names of unhooked functions that have been looked up since. */
int tfh_notes_more(struct tft_writer *w);
int tfh_notes_last(struct tft_writer *w);

/* ---- seal.c ---- */

/* Moves the counts of calls that found no ring from plain memory into the journal, once there is
 * one. */
void tfh_take_early_losses(void);
/* Writes the staged records. Returns 0 or -errno (then they stay staged). */
int tfh_seal(void);
/* Whether sealing is due; true once for each time. */
bool tfh_seal_due(uint64_t now_ns);
/* Writes what a killed process would take along, and what does not wait for records to be sealed:
 * new backtraces with the modules of their addresses, and samples from time to time. */
void tfh_seal_early(void);
/* After a failed write: truncates the file to its last complete chunk and pauses writing. */
void tfh_write_failed(int err, uint64_t now_ns);
/* Whether writing is paused. It is tried again after half a minute, or now. */
bool tfh_write_paused(uint64_t now_ns);
void tfh_write_retry(void);
/* Nothing is written before tfh_write_retry(): there is no run directory yet. */
void tfh_write_hold(void);
void tfh_seal_forget(void);

#endif
