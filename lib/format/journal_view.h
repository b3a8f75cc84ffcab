/*
 * Journals of other processes: of a running one (`tfhook ctl`) or left by a dead one (salvage). The
 * owner's side is in record/. Any user may have created the file and may be changing it. So it is
 * opened once, without following a link, everything is read through that descriptor, and data is
 * copied before it is parsed. Only tft_view_set_control() and tft_view_set_gpu() write to a
 * journal.
 */
#ifndef TFH_FORMAT_JOURNAL_VIEW_H
#define TFH_FORMAT_JOURNAL_VIEW_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"
#include "format/journal_layout.h"

struct tft_view;

enum tft_life {
	TFT_ALIVE = 0,
	TFT_DEAD = 1,
	TFT_ELSEWHERE = 2, /* another host or boot: cannot be determined here */
};

/* Opens a journal and copies its header. Errors: -ENOMSG not a journal; -EPROTO another version;
 * -EAGAIN still being set up; -ELOOP a symbolic link. */
int tft_view_open(const char *path, struct tft_view **out, struct tfh_err *err);
void tft_view_close(struct tft_view *v);

/* The header as of opening; its strings are NUL-terminated. */
const struct tft_journal *tft_view_header(const struct tft_view *v);
const char *tft_view_path(const struct tft_view *v);
/* The file's status as of opening, with its owner. */
const struct stat *tft_view_stat(const struct tft_view *v);
/* Reads exactly `len` bytes. Returns 0, -EBADMSG if the file ends before, or -errno. */
int tft_view_read(const struct tft_view *v, void *to, size_t len, uint64_t offset);
/* The file's current size; its descriptor, owned by the view. */
uint64_t tft_view_size(const struct tft_view *v);
int tft_view_fd(const struct tft_view *v);

/* Whether the owner is still alive: decided by its lock, or by pid, start time and heartbeat where
 * locks do not work. */
enum tft_life tft_view_life(const struct tft_view *v);

/* Atomically clears and sets bits of the control word; `upper` replaces bits 32..63 if not 0.
 * Errors: -EACCES, -EBADMSG (truncated meanwhile), -EMLINK (the file has more than one name) and
 * others. */
int tft_view_set_control(const struct tft_view *v, uint32_t set, uint32_t clear, uint32_t upper,
			 struct tfh_err *err);
/* The same for device times: before the bits, sets the step at which they take effect (0: none,
 * which withdraws an earlier request) and the number of steps (0: no end). */
int tft_view_set_gpu(const struct tft_view *v, uint32_t set, uint32_t clear, uint32_t upper,
		     uint64_t at_step, uint64_t at_count, struct tfh_err *err);

/* Removes the journal's name if it still refers to this file. Returns 0 or -errno. */
int tft_view_remove(const struct tft_view *v);

/* ---- finding them ---- */

struct tft_found {
	struct tft_view *view; /* closed after the call */
	int code;	       /* 0, or -EAGAIN: set-up in progress, or interrupted */
	/* The journal was copied or moved here: it names another directory. */
	bool copy;
};
typedef void (*tft_found_fn)(void *arg, const struct tft_found *found);

/* Every journal in a directory, of any user. */
void tft_journals_in(const char *place, tft_found_fn fn, void *arg);

/* The journals of a run directory (absolute path): all in it, including copies, and those in
 * /dev/shm that name it and belong to this user, to root or to the directory's owner. */
void tft_journals_of(const char *dir, tft_found_fn fn, void *arg);

/* The journal that a process has mapped and that names this process. Returns 0, or the -errno of
 * inspecting the process. */
int tft_journals_of_process(pid_t pid, tft_found_fn fn, void *arg);

/* Removes this user's journal if its set-up was cut short by a kill: its first bytes show that
 * nothing was recorded in it. Returns whether it did. */
bool tft_view_sweep(const struct tft_view *v);

enum {
	/* Also of a running process: the current contents, with its calls still open. */
	TFT_SALVAGE_SNAPSHOT = 1,
	TFT_SALVAGE_UNLINK = 2, /* remove the journal after everything was written */
	/* The journal is a copy: its run directory is the directory it is in, and it has no
	 * process. */
	TFT_SALVAGE_BESIDE = 4,
};

struct tft_salvaged {
	uint64_t records; /* written to the new segment */
	uint64_t known;	  /* already in the process's segments */
	uint64_t torn;	  /* unreadable */
	uint32_t open;	  /* calls in progress */
	char path[4400];  /* of the new segment; "" if nothing was missing */
};

/*
 * Writes the records that a journal holds but the segments of its process lack, as one more segment
 * in `out_dir`. NULL: the run directory that the journal names, which is refused for a snapshot and
 * for another user's journal. Segments are searched in both. Only the user's own journal is
 * removed. The journal and existing segments are never modified. Returns 0, -EBUSY (the process
 * lives), -EALREADY (another process is salvaging it; all calls together wait 5 s for that),
 * -EPERM, or another -errno.
 */
int tft_salvage_view(struct tft_view *view, const char *out_dir, unsigned flags,
		     struct tft_salvaged *result, struct tfh_err *err);
/* Like tft_salvage_view(), by the journal's path. */
int tft_salvage(const char *journal, const char *out_dir, unsigned flags,
		struct tft_salvaged *result, struct tfh_err *err);

struct tft_repaired {
	uint32_t chunks; /* copied */
	uint64_t bad;	 /* left out */
	uint64_t tail;	 /* bytes cut off after the last complete chunk */
};

/* Copies every complete chunk of a trace file to a new file (O_EXCL, with the same access rights)
 * and adds an index. Returns 0 or -errno. */
int tft_repair(const char *path_in, const char *path_out, struct tft_repaired *result,
	       struct tfh_err *err);

#endif
