/*
 * Shared by the files of record/ and private to them: the process' recording state, the journal, the flusher.
 *
 * Who may change what:
 *	job threads	their own ring, slot allocation, the global handle table, requests
 *	the flusher	staging, trace files, live tables, loss accounts: all of flusher.h
 *	one starter	COLD -> ON, while start_state is TFH_START_BUSY
 */
#ifndef TFH_RECORD_INTERNAL_H
#define TFH_RECORD_INTERNAL_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/access.h"
#include "base/clock.h"
#include "base/options.h"
#include "base/proc.h"
#include "format/journal_layout.h"
#include "format/tft_read.h"
#include "record/record.h"
#include "record/process/steady.h"

#define TFH_PAGE 4096ul
#define TFH_COLD_THREADS 64
#define TFH_COLD_RECORDS                                                                           \
	4096u /* per thread: what happens before the first launch, module loads included */
#define TFH_NEVER UINT64_MAX
#define TFH_KEPT_NS 10000000000ull /* a finished recording's memory is kept this long */

enum tfh_start_state {
	TFH_START_NOT = 0,
	TFH_START_BUSY = 1,
	TFH_START_DONE = 2,
	TFH_START_FAILED = 3,
};

/* The mapping of the journal. Job threads append slots without a lock. */
struct tfh_journal {
	struct tft_journal *head;
	struct tft_slot *slots;
	struct tft_staging *staging;
	struct tfh_rec *staged;
	uint8_t *base;
	size_t size;	   /* mapped */
	uint64_t next;	   /* atomic: used pages << 16 | reserved slots */
	uint8_t *slot_use; /* [TFT_JOURNAL_SLOTS] atomic, enum in journal.c */
	int fd;		   /* in the flusher's table, if it has one (apart.h) */
	uint32_t in_table; /* atomic: also in the job's table */
	dev_t dev;
	ino_t ino;
	bool populates; /* space for rings is allocated through the mapping */
	bool anonymous;
	bool beside;	     /* in the run directory */
	char path[PATH_MAX]; /* "" when anonymous */
};

/* Rank and world size from the launcher's variables; -1 = none. */
struct tfh_job_rank {
	int32_t rank, world, local_rank;
	char job[128];	  /* "" = set by no launcher */
	char restart[16]; /* restart count of an elastic launcher, "" = none */
	const char *source;
};

struct tfh_rundir {
	char path[PATH_MAX];
	char prefix[256]; /* r<rank>.<host>.<pid> */
	char job[160];	  /* identity of the launch */
	struct tfh_access access;
	bool of_sagemaker; /* it keeps only one directory of a job */
	const char *why;   /* reason why tfh_rundir_open failed if not its errno; else NULL */
	struct tfh_job_rank rank;
};

struct tfh_record_proc {
	pid_t pid;
	uint32_t start_state; /* atomic, enum tfh_start_state */
	uint32_t generation;  /* value of *tfh_generation in this process */
	uint32_t next_thread; /* atomic: index of the next thread; 0 is the flusher's own series */
	uint64_t process_start;
	struct tfh_clock_pair first_pair; /* taken when the first hooked call came */
	uint64_t priced; /* rows of base/priced.def that applied when recording began */
	struct tfh_options options;
	struct tfh_rundir dir;
	struct tfh_journal journal;
	char host[64];
	char exe[PATH_MAX];
	char command[4096];
	uint64_t beyond_early; /* atomic: calls that found no ring before there was a journal to
				  count them */
	uint32_t steps_off;    /* atomic: steps seen while recording was off */
	uint32_t window_off;   /* recording waits for its window */
	uint64_t window_first, window_last; /* window of steps, 0 = none */
	uint32_t paused;		    /* atomic: pauses by the job less its resumes */
};

extern struct tfh_record_proc tfh_p;

pid_t tfh_raw_getpid(void);

/* ---- early_calls.c: before the first trigger ---- */

/* The calling thread's ring in plain memory, or NULL at the limit. */
struct tft_ring *tfh_early_ring(struct tfh_rec **records);
uint32_t tfh_early_count(void);
struct tft_ring *tfh_early_at(uint32_t i, struct tfh_rec **records);
bool tfh_ring_is_cold(const struct tft_ring *ring);
/* The claimant of an early ring may move its records: its thread into the journal's ring, or the
 * flusher into staging. `wait`: at most 10 ms for the other one. */
bool tfh_early_claim(const struct tft_ring *ring, bool wait);
void tfh_early_release(const struct tft_ring *ring);
/* In a forked child: the parent's calls do not belong to it. */
void tfh_early_forget(void);
/* After a failed exec: used memory is not used again, and stays mapped. */
void tfh_early_renew(void);

/* ---- journal.c / place.c ---- */

/* A limit of address space or data so low that the recorder must not map memory, which would make
 * the job's own requests fail. Bytes; 0 = none. */
uint64_t tfh_tight_space(void);
/* Creates and maps the journal at the first suitable place; falls back to anonymous memory. Returns
 * 0 or -errno. */
int tfh_journal_open(struct tfh_journal *j, const struct tfh_rundir *dir, uint64_t ring_total);
/* Facts that decide where a journal may be; types as from statfs, 0 = none. */
struct tfh_site {
	bool container;
	uint64_t file_limit; /* largest file this process may write */
	uint64_t shm_type, shm_free;
	uint64_t dir_type;
};
enum tfh_place { TFH_PLACE_MEMORY, TFH_PLACE_SHM, TFH_PLACE_BESIDE };
enum tfh_place tfh_place_choose(const struct tfh_site *site, uint64_t bytes);
/* In Docker, Kubernetes, podman, LXC, Apptainer, enroot and the like; the second one uses the text
 * of /proc/self/mountinfo. */
bool tfh_in_container(void);
bool tfh_container_root(const char *mountinfo);
/* Opens a file for the journal; fills path and place flags. Returns a descriptor or -errno (then
 * anonymous memory is used). */
int tfh_journal_place(const struct tfh_rundir *dir, uint64_t bytes, char *path, size_t size,
		      uint32_t *flags);
/* A zeroed ring of small or large size in state FREE, or NULL at the limit. */
struct tft_ring *tfh_slot_alloc(struct tfh_journal *j, bool large);
/* Called on the flusher: a drained ring may be reused by another thread. */
void tfh_slot_free(struct tfh_journal *j, uint32_t slot);
void tfh_journal_unlink(struct tfh_journal *j);
/* The flusher has the descriptor in its own table, so it is closed in the job's. */
void tfh_journal_handed_over(struct tfh_journal *j);
/* After the end of a recording that did not end the process: drops the mapping, which then belongs
 * to journal_maps.c. */
void tfh_journal_release(struct tfh_journal *j);
/* In a forked child: maps private zero pages over the parent's journal, so that calls open across
 * the fork can end. */
void tfh_journal_disown(struct tfh_journal *j);

static inline struct tft_ring *tfh_journal_ring(const struct tfh_journal *j, uint32_t slot)
{
	/* acquire: pairs with the release store of an allocating thread */
	uint64_t off = __atomic_load_n(&j->slots[slot].ring_off, __ATOMIC_ACQUIRE);

	return off ? (struct tft_ring *)(j->base + off) : NULL;
}

/* ---- journal_maps.c: the address space of journals ---- */

/* A journal was mapped. Called by the starter. */
void tfh_journal_map_add(void *base, size_t size);
/* The calling thread takes its first ring in a journal, or has left its last one or one of another
 * recording (NULL: had none). */
void tfh_journal_map_enter(const struct tft_ring *ring);
void tfh_journal_map_leave(const struct tft_ring *ring);
/* The recording is over and no thread is taking a ring: frees the pages, and the addresses once all
 * threads have left. */
void tfh_journal_map_over(void *base, size_t size);
/* In a forked child: the parent's mappings do not exist. */
void tfh_journal_map_forget(void);

/* ---- abandoned.c ---- */

/* Like tfh_self_settle(), as seen from stack address `at`. */
void tfh_settle_at(struct tfh_self *self, uint64_t at);

/* ---- self.c ---- */

/* In a forked child: what the surviving thread points at belongs to the parent. */
void tfh_self_forked(struct tfh_self *self);

/* In mode DEAD: waits until no thread is taking a ring, nor will while the mode lasts, so that the
 * journal may be dropped. */
bool tfh_rings_quiet(void);
/* In a forked child: no thread is. */
void tfh_rings_forked(void);

/* ---- confined.c ---- */

/* Counts a call of a thread that may read no clock. */
void tfh_confined_call(struct tfh_self *self);
/* Whether the calling thread lost the clock unobserved, for example in its parent. */
bool tfh_counter_refused(void);

/* ---- init.c / start.c ---- */

/* Changes COLD to ON, OFF or DEAD, mostly within a second. The caller has called
 * tfh_steady_begin(). */
void tfh_start(const struct tfh_steady *steady);
/* At the end of the process: waits once, at most `ms`, for a recording that another thread is just
 * starting, whose journal would otherwise be left open. */
void tfh_start_wait(unsigned ms);
/* The process is about to end: no recording may start. */
void tfh_start_never(void);
/* Returns 0 if this process may record (a forked child has its own state now). -EAGAIN: another
 * thread is preparing it. -ECHILD: a vfork child, which must not touch anything. */
int tfh_process_check(void);
/* HEAD payload of segment n; its strings are in tfh_p. */
void tfh_head_fill(struct tft_head *head, uint32_t segment);
/* Updates the journal's copy of HEAD, and its rank. */
void tfh_head_copy(void);
/* Ticks per second, 0 = not yet known. */
uint64_t tfh_tick_hz(void);
void tfh_set_tick_hz(const struct tft_clock_triple *a, const struct tft_clock_triple *b);

/* ---- rundir.c, rank.c ---- */

void tfh_rank_detect(struct tfh_job_rank *rank, const struct tfh_options *options);
/* Creates or joins the run directory. Returns 0 or -errno, with the failing path in dir->path. */
int tfh_rundir_open(struct tfh_rundir *dir, const struct tfh_record_proc *p);
/* A temporary descriptor of it, to be closed: the job could close or use a permanent one. Checks
 * the directory's owner again. -errno on failure. */
int tfh_rundir_fd(const struct tfh_rundir *dir);

/* Whether the files that recording opens will respond, as far as can be known without touching
 * them. */
bool tfh_rundir_answers(const struct tfh_rundir *dir, const struct tfh_options *options);

/* ---- local.c ---- */

/* Whether the directory `path` (absolute, may not exist) is on a local file system. Resolves its
 * links. */
bool tfh_path_local(char path[PATH_MAX]);

/* ---- filter.c ---- */

/* TFHOOK_ONLY, TFHOOK_SKIP: whether this program is to be recorded. */
bool tfh_filter_program(const struct tfh_record_proc *p);

/* ---- intern.c ---- */

void tfh_intern_forget(void);
/* Id and hash of a text whose NAME the caller records; 0 if ids have run out. */
uint32_t tfh_text_number(enum tft_name kind, const char *text, size_t len, uint64_t *hash);
/* Uses of names that got no id. */
uint64_t tfh_names_left_out(void);
void tfh_self_names_free(struct tfh_self *self);

/* ---- log.c ---- */

/* Writes to TFHOOK_LOG, else to stderr if TFHOOK_VERBOSE is set; otherwise nothing. */
__attribute__((format(printf, 2, 3))) void tfh_log(int level, const char *fmt, ...);

/*
 * Between these two, a write beyond RLIMIT_FSIZE on a thread of the job only fails: the SIGXFSZ
 * that the writing thread also gets would end the job. One that was pending before stays pending.
 */
struct tfh_xfsz {
	sigset_t old;
	bool blocked, waiting;
};
void tfh_xfsz_block(struct tfh_xfsz *x);
void tfh_xfsz_restore(const struct tfh_xfsz *x);

#endif
