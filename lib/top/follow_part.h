/* Shared by the files that follow a process. */
#ifndef TFH_TOP_FOLLOW_PART_H
#define TFH_TOP_FOLLOW_PART_H

#include "format/journal_copy.h"
#include "format/live.h"
#include "top/follow.h"

/* Consecutive records of one thread. Those before `from` are older than the window and no longer
 * count. */
struct tfh_follow_piece {
	struct tfh_follow_piece *next;
	uint64_t first; /* number of the first one in its thread */
	uint32_t thread, tid;
	uint32_t from, n;
	struct tfh_rec rec[];
};

/* A chunk without records, as it is stored. */
struct tfh_follow_chunk {
	struct tfh_follow_chunk *next;
	uint64_t t_last; /* 0: applies to any time */
	uint32_t segment;
	size_t bytes;
	uint8_t data[];
};

struct tfh_follow_thread {
	uint32_t thread;
	uint64_t next; /* number of the first record that has not been read */
};

struct tfh_follow {
	char dir[4096], prefix[256];
	struct tft_view *view; /* NULL: there is no journal, or its process has ended */
	struct tft_journal journal;
	struct tfh_arena arena; /* of `head` */
	struct tft_head head;
	bool has_head;
	/* what was read */
	struct tfh_follow_thread *thread;
	uint32_t n_thread, cap_thread;
	bool begun;		 /* a segment has been read */
	uint32_t segment, chunk; /* the next chunk to read */
	uint64_t bytes;		 /* of that segment when it was last read */
	/* what was kept */
	struct tft_live live; /* as of the window's beginning */
	struct tfh_follow_piece *piece, **piece_end;
	struct tfh_follow_chunk *kept, **kept_end;
	uint32_t records;
	uint64_t written; /* ticks: what the files held when they were found, without a journal */
	uint64_t cut;	  /* ticks: the window's beginning */
	uint64_t last;	  /* ticks: end of the newest record */
	size_t kept_bytes;
};

/* follow_clock.c: ns of CLOCK_MONOTONIC; ticks per second; the present time in ticks (without a
 * journal: the end of the newest record). */
uint64_t tfh_follow_ns(void);
double tfh_follow_hz(const struct tfh_follow *f);
uint64_t tfh_follow_now(const struct tfh_follow *f);

/* follow_window.c */
/* Takes records of a thread, without those already read. 0 or -ENOMEM. */
int tfh_follow_take(struct tfh_follow *f, uint32_t thread, uint32_t tid, uint64_t first,
		    const struct tfh_rec *rec, uint32_t n);
/* Takes the state repeated at the beginning of a segment. */
void tfh_follow_repeated(struct tfh_follow *f, const struct tfh_rec *rec, uint32_t n);
int tfh_follow_keep(struct tfh_follow *f, uint64_t t_last, const void *data, size_t bytes);
/* Drops what is older than a window of that many ticks. */
void tfh_follow_forget(struct tfh_follow *f, uint64_t ticks);
void tfh_follow_window_free(struct tfh_follow *f);

/* follow_files.c: reads what is new in the segments. 0 or -ENOMEM. `window`: see
 * tfh_follow_read(). */
int tfh_follow_files(struct tfh_follow *f, double window);
/* Reads HEAD from the newest segment, and when its newest chunk ends (ticks; 0: there is none). 0
 * or -ENOMEM. */
int tfh_follow_head(struct tfh_follow *f, uint64_t *written);

#endif
