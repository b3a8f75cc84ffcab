/*
 * Reads trace files and left-over journals. Files are untrusted: every length is checked against
 * the bytes left and the limits in layout.h before anything is allocated. All functions return 0 or
 * -errno (-EBADMSG corrupt, -EPROTO newer major version, -ENOMSG not a trace file) and fill `err`
 * with one line that names the remedy.
 */
#ifndef TFH_FORMAT_TFT_READ_H
#define TFH_FORMAT_TFT_READ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/fn.h"
#include "format/layout.h"
#include "format/sketch.h"

struct tft_reader;

/* Contents of HEAD; strings belong to the reader. Unknown numbers are -1, unknown strings "". */
struct tft_head {
	uint32_t version;
	uint32_t pid, ppid;
	int32_t rank, world, local_rank;
	uint32_t segment; /* 0.. within the process */
	const char *host, *exe, *command, *boot_id, *tfhook_version, *job;
	uint64_t start_realtime_ns; /* start of the process's recording */
	uint64_t start_ticks;
	uint64_t tick_hz;  /* estimate; CLKS is exact */
	bool ticks_are_ns; /* clock_gettime fallback */
	uint32_t fn_count;
	const struct tfh_fn_info *fn; /* by fn number of this file */
	const char *journal_path;     /* the journal's path, while the process runs */
	/* Start time of the process, which distinguishes a reused pid. */
	uint64_t journal_start;
};

struct tft_chunk_info {
	uint64_t offset; /* of the skippable frame */
	uint32_t type;
	uint32_t events;
	uint64_t raw_bytes, packed_bytes;
	uint64_t t_first, t_last; /* ticks; smallest and largest t_end in the chunk */
	uint64_t dropped;	  /* cumulative in this process */
	bool crc_ok; /* false once reading the chunk found damage; tft_verify reads all */
};

int tft_open(const char *path, struct tft_reader **out, struct tfh_err *err);
/* A second reader of the same file, even if it was renamed or removed since. */
int tft_open_again(struct tft_reader *of, struct tft_reader **out, struct tfh_err *err);
void tft_close(struct tft_reader *r);
const struct tft_head *tft_head(const struct tft_reader *r);
uid_t tft_owner(const struct tft_reader *r); /* owner (user id) of the file */
uint32_t tft_chunk_count(const struct tft_reader *r);
const struct tft_chunk_info *tft_chunk(const struct tft_reader *r, uint32_t i);
/* Footer present, and the process ended normally with this segment. */
bool tft_clean_end(const struct tft_reader *r);
bool tft_closed(const struct tft_reader *r); /* footer present: the segment was finished */
/* Whether the file is a digest (FORMAT.md, 2.9) or the beginning of one. A digest is made from a
 * recording and is not part of it. */
bool tft_is_digest(const struct tft_reader *r);
uint64_t tft_bad_chunks(const struct tft_reader *r); /* skipped as damaged */
uint64_t tft_tail_bytes(const struct tft_reader *r); /* bytes after the last complete chunk */

/* Reads every chunk and checks its checksum. Returns the number of damaged chunks or -errno. */
long tft_verify(struct tft_reader *r, struct tfh_err *err);

/* Sketch of an EVNT chunk (from its header, without decoding) or of a DGST chunk, which replaces
 * one discarded EVNT chunk: same events, times and run table. Owned by the reader until the next
 * call. */
int tft_chunk_sketch(struct tft_reader *r, uint32_t i, const struct tft_sketch **out,
		     struct tfh_err *err);

/* Raw payload of a non-event chunk; owned by the reader until the next call. */
int tft_chunk_payload(struct tft_reader *r, uint32_t i, const void **data, size_t *len,
		      struct tfh_err *err);

/* Converts ticks to ns of CLOCK_MONOTONIC or CLOCK_REALTIME, piecewise linear between CLKS triples.
 */
uint64_t tft_monotonic_ns(const struct tft_reader *r, uint64_t ticks);
uint64_t tft_realtime_ns(const struct tft_reader *r, uint64_t ticks);
/* Makes the segments of one process, whose ticks come from one counter, use the clock triples of
 * all of them. They are closed together. Returns 0 or -ENOMEM. */
int tft_clocks_join(struct tft_reader *const *r, uint32_t n);

/* How much later or earlier the clock triple that is farthest off is than its neighbours imply:
 * many microseconds indicate a suspended machine or a bad counter. */
uint64_t tft_clock_residual_ns(const struct tft_reader *r);

/* Consecutive records of one thread. */
struct tft_run {
	uint32_t thread; /* index, unique in the process */
	uint32_t tid;
	uint64_t first; /* number of the run's first record in its thread */
	uint32_t count;
	uint32_t start; /* index of its first record in the chunk */
};

/* Run table of an EVNT or DGST chunk, from its header alone; owned by the reader until the next
 * call. */
int tft_chunk_runs(struct tft_reader *r, uint32_t i, const struct tft_run **runs, uint32_t *n,
		   struct tfh_err *err);

/* Events of one chunk: runs of consecutive records of one thread, each ordered by t_end. */
struct tft_events;
int tft_events_open(struct tft_reader *r, uint32_t chunk, struct tft_events **out,
		    struct tfh_err *err);
void tft_events_close(struct tft_events *ev);
/* Order-0 entropy in bytes, summed over all stored byte planes of the chunk: the limit of any
 * context-free coding. */
double tft_entropy_bytes(const struct tft_events *ev);
uint32_t tft_run_count(const struct tft_events *ev);
const struct tft_run *tft_run(const struct tft_events *ev, uint32_t i);

#define TFT_MAX_COLUMNS 64u

/* Sequential cursor over one run. tft_next() fills one record and returns true, or returns false at
 * the end of the run. */
struct tft_cursor {
	const struct tft_events *ev;
	uint32_t pos, end;
	uint64_t t;	 /* end time of the previous record, for delta decoding */
	uint64_t number; /* of the record at pos, in its thread */
	/* Position in the text section; `column` and `previous`: position and last value in each
	 * column. */
	uint32_t text;
	uint32_t column[TFT_MAX_COLUMNS];
	uint64_t previous[TFT_MAX_COLUMNS];
};
void tft_cursor_init(struct tft_cursor *c, const struct tft_events *ev, uint32_t run);
bool tft_next(struct tft_cursor *c, struct tfh_rec *rec);

#endif
