/*
 * What the files of record/ share and nobody else sees: the process' recording state, the journal,
 * the flusher.
 *
 * Who may do what:
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
#include "record/steady.h"

#define TFH_PAGE 4096ul
#define TFH_COLD_THREADS 64
#define TFH_COLD_RECORDS                                                                           \
	4096u /* per thread: what happens before the first launch, module loads included */
#define TFH_NEVER UINT64_MAX
#define TFH_KEPT_NS 10000000000ull /* the memory of a recording that is over is kept so long */

enum tfh_start_state {
	TFH_START_NOT = 0,
	TFH_START_BUSY = 1,
	TFH_START_DONE = 2,
	TFH_START_FAILED = 3,
};

/* Our mapping of the journal. Slots are appended by job threads, without a lock. */
struct tfh_journal {
	struct tft_journal *head;
	struct tft_slot *slots;
	struct tft_staging *staging;
	struct tfh_rec *staged;
	uint8_t *base;
	size_t size;	   /* mapped */
	uint64_t next;	   /* atomic: pages used << 16 | slots reserved */
	uint8_t *slot_use; /* [TFT_JOURNAL_SLOTS] atomic, enum in journal.c */
	int fd;		   /* in the table of the flusher, if it has one (apart.h) */
	uint32_t in_table; /* atomic: the job's table has it */
	dev_t dev;
	ino_t ino;
	bool populates; /* room for rings is made through the mapping */
	bool anonymous;
	bool beside;	     /* in the run directory */
	char path[PATH_MAX]; /* "" when anonymous */
};

/* Rank and world as the launcher's variables tell; -1 = none. */
struct tfh_job_rank {
	int32_t rank, world, local_rank;
	char job[128];	  /* "" = no launcher told one */
	char restart[16]; /* restart count of an elastic launcher, "" = none */
	const char *source;
};

struct tfh_rundir {
	char path[PATH_MAX];
	char prefix[256]; /* r<rank>.<host>.<pid> */
	char job[160];	  /* identity of the launch */
	struct tfh_access access;
	bool of_sagemaker; /* which keeps only one directory of a job */
	const char *why; /* tfh_rundir_open failed for another reason than its errno's; else NULL */
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
	uint64_t window_first, window_last; /* steps window, 0 = none */
	uint32_t paused;		    /* atomic: pauses by the job itself less its resumes */
};

extern struct tfh_record_proc tfh_p;

pid_t tfh_raw_getpid(void);

/* ---- early_calls.c: before the first trigger ---- */

/* The calling thread's ring in plain memory, or NULL when the bound is reached. */
struct tft_ring *tfh_cold_ring(struct tfh_rec **records);
uint32_t tfh_cold_count(void);
struct tft_ring *tfh_cold_at(uint32_t i, struct tfh_rec **records);
bool tfh_ring_is_cold(const struct tft_ring *ring);
/* Who claims a cold ring may move its records: its thread into the journal's ring, or the flusher
 * into staging. `wait`: 10 ms at most for the other one. */
bool tfh_cold_claim(const struct tft_ring *ring, bool wait);
void tfh_cold_release(const struct tft_ring *ring);
/* In a forked child: the parent's calls are not the child's. */
void tfh_cold_forget(void);
/* After an exec that failed: what was used is used no more, and stays mapped. */
void tfh_cold_renew(void);

/* ---- journal.c / place.c ---- */

/* A limit of address space or data under which the recorder takes none: what it maps would fail the
 * job's own requests. Bytes; 0 = there is none such. */
uint64_t tfh_tight_space(void);
/* Creates and maps the journal in the first place that the rules allow; falls back to anonymous
 * memory. 0 or -errno. */
int tfh_journal_open(struct tfh_journal *j, const struct tfh_rundir *dir, uint64_t ring_total);
/* What decides where a journal may lie; types as statfs tells them, 0 = there is none. */
struct tfh_site {
	bool container;
	uint64_t file_limit; /* largest file this process may write */
	uint64_t shm_type, shm_free;
	uint64_t dir_type;
};
enum tfh_place { TFH_PLACE_MEMORY, TFH_PLACE_SHM, TFH_PLACE_BESIDE };
enum tfh_place tfh_place_choose(const struct tfh_site *site, uint64_t bytes);
/* Of Docker, Kubernetes, podman, LXC, Apptainer, enroot and their like; the second by the text of
 * /proc/self/mountinfo. */
bool tfh_in_container(void);
bool tfh_container_root(const char *mountinfo);
/* Opens a file for the journal; fills path and place flags. fd or -errno (then anonymous memory
 * serves). */
int tfh_journal_place(const struct tfh_rundir *dir, uint64_t bytes, char *path, size_t size,
		      uint32_t *flags);
/* A zeroed ring of small or large size whose header page is in state FREE, or NULL at the cap. */
struct tft_ring *tfh_slot_alloc(struct tfh_journal *j, bool large);
/* Flusher: a drained ring may serve another thread. */
void tfh_slot_free(struct tfh_journal *j, uint32_t slot);
void tfh_journal_unlink(struct tfh_journal *j);
/* The flusher has the descriptor in a table of its own: it goes from the job's. */
void tfh_journal_handed_over(struct tfh_journal *j);
/* After the end of a recording that did not end the process: forgets the mapping, which is journal_maps.c's. */
void tfh_journal_release(struct tfh_journal *j);
/* Forked child: puts private zero pages where the parent's journal was, so that calls open across
 * the fork may end. */
void tfh_journal_disown(struct tfh_journal *j);

static inline struct tft_ring *tfh_journal_ring(const struct tfh_journal *j, uint32_t slot)
{
	/* acquire: pairs with the release store of an allocating thread */
	uint64_t off = __atomic_load_n(&j->slots[slot].ring_off, __ATOMIC_ACQUIRE);

	return off ? (struct tft_ring *)(j->base + off) : NULL;
}

/* ---- journal_maps.c: the address space of journals ---- */

/* A journal was mapped; the starter. */
void tfh_kept_add(void *base, size_t size);
/* The calling thread takes its first ring there; has left its last one, or one of another recording
 * (NULL: had none). */
void tfh_kept_enter(const struct tft_ring *ring);
void tfh_kept_leave(const struct tft_ring *ring);
/* Its recording is over, and no thread is taking a ring: its pages go, and when its threads have
 * left, its addresses. */
void tfh_kept_over(void *base, size_t size);
/* Forked child: what the parent mapped is not there. */
void tfh_kept_forget(void);

/* ---- abandoned.c ---- */

/* As tfh_self_settle, seen from the place `at` on the stack. */
void tfh_settle_at(struct tfh_self *self, uint64_t at);

/* ---- self.c ---- */

/* Forked child: what the surviving thread still points at belongs to the parent. */
void tfh_self_forked(struct tfh_self *self);

/* After mode DEAD: no thread is taking a ring, or will before the mode is another one, so the
 * journal may be forgotten. */
bool tfh_rings_quiet(void);
/* Forked child: nobody is. */
void tfh_rings_forked(void);

/* ---- confined.c ---- */

/* Counts a call of a thread that may read no clock. */
void tfh_confined_call(struct tfh_self *self);
/* Has the calling thread lost the clock in a way that was not seen, as by its parent? */
bool tfh_counter_refused(void);

/* ---- init.c / start.c ---- */

/* Begins COLD -> ON, OFF or DEAD, which is the end of it or comes within a second, mostly; in a
 * steady stretch of the caller's. */
void tfh_start(const struct tfh_steady *steady);
/* At an end of the process: waits `ms` at most, and only once, for a recording that another thread
 * is just beginning. Without that its journal would be left with nobody to close it. */
void tfh_start_wait(unsigned ms);
/* The process is about to be gone: nothing begins any more. */
void tfh_start_never(void);
/* 0: this process may record (a forked child has its own state now). -EAGAIN: another thread is
 * just preparing it. -ECHILD: a vfork child, which must not touch anything. */
int tfh_process_check(void);
/* HEAD payload for segment n; strings live in tfh_p. */
void tfh_head_fill(struct tft_head *head, uint32_t segment);
/* The journal's copy of it, and its rank. */
void tfh_head_copy(void);
/* Ticks per second as far as known, 0 = not yet. */
uint64_t tfh_tick_hz(void);
void tfh_set_tick_hz(const struct tft_clock_triple *a, const struct tft_clock_triple *b);

/* ---- rundir.c, rank.c ---- */

void tfh_rank_detect(struct tfh_job_rank *rank, const struct tfh_options *options);
/* Makes or joins the run directory. 0 or -errno with dir->path naming the culprit. */
int tfh_rundir_open(struct tfh_rundir *dir, const struct tfh_record_proc *p);
/* A descriptor of it for the moment, to be closed: a kept one the job may close and use itself.
 * Anew it is checked whose the directory is. -errno. */
int tfh_rundir_fd(const struct tfh_rundir *dir);

/* Will what the recording opens answer, as far as can be told without asking it? */
bool tfh_rundir_answers(const struct tfh_rundir *dir, const struct tfh_options *options);

/* ---- local.c ---- */

/* Absolute, of a directory that need not be there: is it on a file system of this machine? Links in
 * it are resolved on the way. */
bool tfh_path_local(char path[PATH_MAX]);

/* ---- filter.c ---- */

/* TFHOOK_ONLY, TFHOOK_SKIP: is this program to be recorded? */
bool tfh_filter_program(const struct tfh_record_proc *p);

/* ---- intern.c ---- */

void tfh_intern_forget(void);
/* Id of a text whose NAME the caller records, and its hash; 0: none is left. */
uint32_t tfh_text_number(enum tft_name kind, const char *text, size_t len, uint64_t *hash);
/* Uses of names that found no id of their own. */
uint64_t tfh_names_left_out(void);
void tfh_self_names_free(struct tfh_self *self);

/* ---- log.c ---- */

/* To TFHOOK_LOG (or stderr when TFHOOK_VERBOSE is set and no log is); nothing otherwise. */
__attribute__((format(printf, 2, 3))) void tfh_log(int level, const char *fmt, ...);

/*
 * Between these two a write beyond RLIMIT_FSIZE on a thread of the job is an error alone: the
 * SIGXFSZ that comes with it, to the thread that writes, would be the job's end. One that was
 * pending before stays so.
 */
struct tfh_xfsz {
	sigset_t old;
	bool blocked, waiting;
};
void tfh_xfsz_block(struct tfh_xfsz *x);
void tfh_xfsz_restore(const struct tfh_xfsz *x);

#endif
