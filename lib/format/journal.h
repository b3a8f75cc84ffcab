/*
 * Journals seen from outside: of a running process (`tfhook top`, `tfhook ctl`) or left over by a
 * dead one (salvage). The owner's side is in record/. Nothing here writes to a journal but
 * tft_journal_control.
 */
#ifndef TFT_JOURNAL_H
#define TFT_JOURNAL_H

#include <stdbool.h>

#include "base/err.h"
#include "format/journal_layout.h"

struct tft_view;

enum tft_life {
	TFT_ALIVE = 0,
	TFT_DEAD = 1,
	TFT_ELSEWHERE = 2, /* another host or boot: nobody here can tell */
};

/* Maps a journal read-only. Never of the calling process itself: closing the file would drop its
 * lock. -ENOMSG: not a journal; -EPROTO: of another version; -EAGAIN: still being set up. */
int tft_view_open(const char *path, struct tft_view **out, struct tfh_err *err);
void tft_view_close(struct tft_view *v);

/* Whether the owner still lives: by its lock, or by pid, start time and heartbeat where locks do
 * not work. */
enum tft_life tft_view_life(const struct tft_view *v);

/* Removes a journal of this user's whose set-up was cut short by a kill: nothing was recorded in it
 * yet. True if it did. */
bool tft_journal_sweep(const char *path);

/* The header; fields of a live journal change under the reader. */
const struct tft_journal *tft_view_header(const struct tft_view *v);

/* Rings in use or retired; NULL for slots that are free or damaged. The index is stable. */
uint32_t tft_view_rings(const struct tft_view *v);
const struct tft_ring *tft_view_ring(const struct tft_view *v, uint32_t i);

/* Records of a ring, and its capacity in records; bounds were checked when the view was made. */
const struct tfh_rec *tft_view_records(const struct tft_view *v, const struct tft_ring *ring,
				       uint32_t *capacity);

/* Staging area and its records (capacity of them); NULL when damaged. */
const struct tft_staging *tft_view_staging(const struct tft_view *v,
					   const struct tfh_rec **records);

/* The copy of the HEAD payload; NULL when there is none. */
const void *tft_view_head(const struct tft_view *v, size_t *len);

/* The newest whole clock triple. */
struct tft_clock_triple tft_view_clock(const struct tft_view *v);

/* Every journal in a directory: `view` is the callee's to close, or NULL with the reason why the
 * file could not be opened as one. */
typedef void (*tft_journal_fn)(void *arg, const char *path, const char *name, struct tft_view *view,
			       int code);
void tft_journals_in(const char *place, tft_journal_fn fn, void *arg);

/* Clears and sets bits of the control word of the journal at `path`, atomically; `upper` replaces
 * bits 32..63 when not 0. -EACCES, -ENOMSG, ... */
int tft_journal_control(const char *path, uint32_t set, uint32_t clear, uint32_t upper,
			struct tfh_err *err);

enum {
	TFT_SALVAGE_SNAPSHOT =
		1, /* also of a living process: what is there now, without its open calls' end */
	TFT_SALVAGE_UNLINK = 2, /* remove the journal after everything was written */
	TFT_SALVAGE_BESIDE =
		4, /* a copy: the run directory is where it lies, and no process is its own */
};

struct tft_salvaged {
	uint64_t records; /* written to the new segment */
	uint64_t known;	  /* were in the process' segments already */
	uint64_t torn;	  /* unreadable */
	uint32_t open;	  /* calls that were in flight */
	char path[4400];  /* of the new segment; "" when nothing was missing */
};

/*
 * Writes what a journal holds and the segments of its process do not as one more segment in
 * `out_dir` (NULL: the run directory that the journal names, refused for a snapshot; segments are
 * looked for in both). The journal and existing segments are never changed. 0, -EBUSY (the process
 * lives), -EALREADY (another process salvages it for longer than 5 s), or another -errno.
 */
int tft_salvage(const char *journal, const char *out_dir, unsigned flags,
		struct tft_salvaged *result, struct tfh_err *err);

struct tft_repaired {
	uint32_t chunks; /* copied */
	uint64_t bad;	 /* left out */
	uint64_t tail;	 /* bytes cut off behind the last whole chunk */
};

/* Copies every whole chunk of a trace file to a new file (O_EXCL) and gives it an index. 0 or
 * -errno. */
int tft_repair(const char *path_in, const char *path_out, struct tft_repaired *result,
	       struct tfh_err *err);

#endif
