/*
 * Journals seen from outside: of a running process (`tfhook ctl`) or left over by a dead one
 * (salvage). The owner's side is in record/. Anybody may have made the file and may be changing it:
 * it is opened once, without following a link, and everything is asked of that descriptor; what is
 * parsed was copied first. Nothing here writes to a journal but tft_view_steer.
 */
#ifndef TFT_JOURNAL_VIEW_H
#define TFT_JOURNAL_VIEW_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"
#include "format/journal_layout.h"

struct tft_view;

enum tft_life {
	TFT_ALIVE = 0,
	TFT_DEAD = 1,
	TFT_ELSEWHERE = 2, /* another host or boot: nobody here can tell */
};

/* Opens a journal and copies its header. -ENOMSG: not a journal; -EPROTO: of another version;
 * -EAGAIN: still being set up; -ELOOP: a symbolic link. */
int tft_view_open(const char *path, struct tft_view **out, struct tfh_err *err);
void tft_view_close(struct tft_view *v);

/* The header as it was when the view was opened; its texts end with NUL. */
const struct tft_journal *tft_view_header(const struct tft_view *v);
const char *tft_view_path(const struct tft_view *v);
/* The file as it was when the view was opened: whose it is. */
const struct stat *tft_view_stat(const struct tft_view *v);
/* Reads exactly `len` bytes. 0, -EBADMSG when the file ends before, or -errno. */
int tft_view_read(const struct tft_view *v, void *to, size_t len, uint64_t offset);
/* Size of the file now; its descriptor, which stays the view's. */
uint64_t tft_view_size(const struct tft_view *v);
int tft_view_fd(const struct tft_view *v);

/* Whether the owner still lives: by its lock, or by pid, start time and heartbeat where locks do
 * not work. */
enum tft_life tft_view_life(const struct tft_view *v);

/* Clears and sets bits of the control word, atomically; `upper` replaces bits 32..63 when not 0.
 * -EACCES, -EBADMSG (cut off meanwhile), -EMLINK (the file has more than one name), ... */
int tft_view_steer(const struct tft_view *v, uint32_t set, uint32_t clear, uint32_t upper,
		   struct tfh_err *err);

/* Removes the journal's name, if that still means this file. 0 or -errno. */
int tft_view_remove(const struct tft_view *v);

/* ---- finding them ---- */

struct tft_found {
	struct tft_view *view; /* closed after the call */
	int code;	       /* 0, or -EAGAIN: still being set up, or left so */
	bool copy;	       /* it lies in the directory and names another: copied or moved */
};
typedef void (*tft_found_fn)(void *arg, const struct tft_found *found);

/* Every journal in a directory, whoever's it is. */
void tft_journals_in(const char *place, tft_found_fn fn, void *arg);

/* The journals of a run directory (absolute path): all that lie in it, copies among them, and those
 * in /dev/shm that name it and belong to this user, to root or to the directory's owner. */
void tft_journals_of(const char *dir, tft_found_fn fn, void *arg);

/* The journal that a process has mapped and that says so of itself. 0, or -errno of looking into
 * the process. */
int tft_journals_of_process(pid_t pid, tft_found_fn fn, void *arg);

/* Removes a journal of this user's whose set-up was cut short by a kill: its first bytes say so,
 * and nothing was recorded in it yet. True if it did. */
bool tft_view_sweep(const struct tft_view *v);

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
 * `out_dir` (NULL: the run directory that the journal names, refused for a snapshot and for another
 * user's journal; segments are looked for in both). Only one's own journal is removed. The journal
 * and existing segments are never changed. 0, -EBUSY (the process lives), -EALREADY (another
 * process salvages it; all calls together wait 5 s for that), -EPERM, or another -errno.
 */
int tft_salvage_view(struct tft_view *view, const char *out_dir, unsigned flags,
		     struct tft_salvaged *result, struct tfh_err *err);
/* The same by its path. */
int tft_salvage(const char *journal, const char *out_dir, unsigned flags,
		struct tft_salvaged *result, struct tfh_err *err);

struct tft_repaired {
	uint32_t chunks; /* copied */
	uint64_t bad;	 /* left out */
	uint64_t tail;	 /* bytes cut off behind the last whole chunk */
};

/* Copies every whole chunk of a trace file to a new file (O_EXCL, as widely readable as the other)
 * and gives it an index. 0 or -errno. */
int tft_repair(const char *path_in, const char *path_out, struct tft_repaired *result,
	       struct tfh_err *err);

#endif
