/* The run directory, which rank of which job writes to it, and how much. */
#ifndef TFH_RECORD_RUNDIR_H
#define TFH_RECORD_RUNDIR_H

#include "base/access.h"
#include "record/process/recorder.h"

struct tfh_rundir {
	char path[PATH_MAX];
	char prefix[256]; /* r<rank>.<host>.<pid> */
	char job[160];	  /* identity of the launch */
	struct tfh_access access;
	bool of_sagemaker; /* it keeps only one directory of a job */
	const char *why;   /* reason why tfh_rundir_open failed if not its errno; else NULL */
};
extern struct tfh_rundir tfh_dir;

/* Creates or joins the run directory. Returns 0 or -errno, with the failing path in dir->path. */
int tfh_rundir_open(struct tfh_rundir *dir, const struct tfh_record_proc *p);
/* A temporary descriptor of it, to be closed: the job could close or use a permanent one. Checks
 * the directory's owner again. -errno on failure. */
int tfh_rundir_fd(const struct tfh_rundir *dir);
/* Whether the files that recording opens will respond, as far as can be known without touching
 * them. */
bool tfh_rundir_answers(const struct tfh_rundir *dir, const struct tfh_options *options);

/* ---- rank.c ---- */

void tfh_rank_detect(struct tfh_job_rank *rank, const struct tfh_options *options);

/* ---- local.c ---- */

/* Whether the directory `path` (absolute, may not exist) is on a local file system. Resolves its
 * links. */
bool tfh_path_local(char path[PATH_MAX]);

/* ---- filter.c ---- */

/* TFHOOK_ONLY, TFHOOK_SKIP: whether this program is to be recorded. */
bool tfh_filter_program(const struct tfh_record_proc *p);

/* ---- budget.c; `own`: bytes that this process has written so far ---- */

/* Largest chunk: 65,536 records rarely compress to more than their raw size. */
#define TFH_CHUNK_BYTES (TFT_MAX_EVENTS * sizeof(struct tfh_rec))
/* Whether one more chunk may be written. -ENOSPC: the file system would have less free than the
 * larger of 2 GiB and 5 %; -EDQUOT: the same for this user's or group's quota; -EOVERFLOW: the run
 * directory has reached TFHOOK_RUN_SIZE. */
int tfh_budget_check(uint64_t own);
/* Files were deleted: counts again before the next answer. */
void tfh_budget_freed(void);
/* Size limit of a segment, and of all of this process in `limit`. */
uint64_t tfh_budget_segment(uint64_t own, uint64_t *limit);
void tfh_budget_forget(void);

#endif
