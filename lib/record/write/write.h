/*
 * From staging to the segment files. All on the flusher; without one, on the thread that starts the recording, and at an
 * exit on the one that exits.
 */
#ifndef TFH_RECORD_WRITE_H
#define TFH_RECORD_WRITE_H

#include "format/live.h"
#include "format/tft_write.h"
#include "record/process/recorder.h"

/* ---- segments.c: trace files of this process, one after the other; 0 or -errno ---- */

struct tfh_segments {
	struct tft_writer *writer; /* NULL: none open */
	uint32_t
		opened; /* how many were; a change tells the writers of tables that the file is a new one */
	uint32_t next; /* number of the next segment */
	uint32_t first, oldest_middle;
	bool any;
	uint64_t closed_bytes; /* of all closed segments still there */
	uint64_t opened_bytes; /* of the open one, before anything happened in it */
	char name[300];	       /* of the open one */
};
extern struct tfh_segments tfh_seg;

int tfh_segment_ready(void);
int tfh_segment_close(bool clean);
int tfh_segment_rotate_if_full(void);
/* HEAD has changed: further records go into another segment. */
void tfh_segment_renew(void);
/* tfh_budget_check(); deletes middle segments where that makes room. */
int tfh_disk_check(void);
/* In a forked child (the file is the parent's), or for a new recording of the same process. */
void tfh_segments_forget(void);

/* ---- alive.c ---- */

extern struct tft_live tfh_live; /* what is alive in the job, by what has been written */

/* ---- clock_readings.c ---- */

void tfh_take_clock(void);
/* Whether a reading waits to be written. */
bool tfh_clocks_waiting(void);
/* Writes readings not yet in the file. 0 or -errno. */
int tfh_clocks_put(struct tft_writer *w);
void tfh_clocks_forget(void);

/* ---- describe.c: who recorded ---- */

/* HEAD payload of segment n; its strings are in tfh_p. */
void tfh_head_fill(struct tft_head *head, uint32_t segment);
/* Updates the journal's copy of HEAD, and its rank. */
void tfh_head_copy(void);
/* Everything that another process needs to make sense of the journal, before it says that it is one. */
void tfh_describe_journal(void);

/* ---- notes.c: facts about the recording itself, as NOTE chunks of "key=value" lines ---- */

int tfh_notes_write(struct tft_writer *w);
/* Names of unhooked functions that have been looked up since. */
int tfh_notes_more(struct tft_writer *w);
int tfh_notes_last(struct tft_writer *w);

/* ---- seal.c ---- */

/* Counts of calls that found no ring, from plain memory into the journal, once there is one. */
void tfh_take_early_losses(void);
/* Writes what is staged. 0 or -errno (then it stays staged). */
int tfh_seal(void);
/* Whether the last time is so long ago that it should be done; true once for each time. */
bool tfh_seal_due(uint64_t now_ns);
/* Writes new backtraces, with the modules of their addresses, if any wait. */
void tfh_seal_stacks(void);
/* After a failed write: truncates the file to its last complete chunk and pauses writing. */
void tfh_write_failed(int err, uint64_t now_ns);
/* Whether writing is paused; it is tried again after half a minute, or now. */
bool tfh_write_paused(uint64_t now_ns);
void tfh_write_retry(void);
void tfh_seal_forget(void);

#endif
