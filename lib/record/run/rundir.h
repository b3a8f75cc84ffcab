/* The run directory, which rank of which job writes to it, and how much. */
#ifndef TFH_RECORD_RUN_RUNDIR_H
#define TFH_RECORD_RUN_RUNDIR_H

#include "base/access.h"
#include "record/process/recorder.h"

enum tfh_reach {
	TFH_REACH_LOCAL,
	TFH_REACH_REMOTE, /* its file system may never answer */
	TFH_REACH_UNKNOWN,
};

struct tfh_rundir {
	char path[PATH_MAX];
	char prefix[256]; /* r<rank>.<host>.<pid> */
	char job[160];	  /* identity of the launch */
	struct tfh_access access;
	bool of_sagemaker; /* SageMaker keeps only one directory of a job */
	bool opened;	   /* it is there, and `path` is final */
	const char *why;   /* why tfh_rundir_open failed, if errno does not say it; else NULL */
};
extern struct tfh_rundir tfh_dir;

/* Finds out whatever the job's environment decides, path and prefix among it, without touching the
 * directory's file system. `ahead`: the job's threads will not wait for tfh_rundir_open(), which
 * then must not read the environment. Returns 0 or -errno. */
int tfh_rundir_plan(struct tfh_rundir *dir, const struct tfh_recorder *p, bool ahead);
/* Creates or joins the planned directory, or one like it if that belongs to another launch. Returns
 * 0 or -errno, with the failing path in dir->path. */
int tfh_rundir_open(struct tfh_rundir *dir, const struct tfh_recorder *p);
/* Opens a temporary descriptor of the directory, which the caller closes; the job could close or
 * use a permanent one. Checks the directory's owner again. Returns -errno on failure. */
int tfh_rundir_fd(const struct tfh_rundir *dir);
/* Where the files that recording opens are, as far as this can be known without touching them. */
enum tfh_reach tfh_rundir_reach(const struct tfh_rundir *dir, const struct tfh_options *options);

/* ---- rank.c ---- */

/* From these variables; NULL: tfh_env()'s. */
struct tfh_env;
void tfh_rank_detect(struct tfh_job_rank *rank, const struct tfh_options *options,
		     const struct tfh_env *env);

/* ---- local.c ---- */

/* Whether the directory `path` (absolute, may not exist) is on a local file system. Resolves its
 * links. */
enum tfh_reach tfh_path_reach(char path[PATH_MAX]);

/* ---- filter.c ---- */

/* Whether TFHOOK_ONLY and TFHOOK_SKIP allow this program to be recorded. */
bool tfh_filter_program(const struct tfh_recorder *p);

/* ---- budget.c; `own`: bytes that this process has written so far ---- */

/* The largest chunk: 65,536 records rarely compress to more than their raw size. */
#define TFH_CHUNK_BYTES (TFT_MAX_EVENTS * sizeof(struct tfh_rec))
/* Whether another chunk may be written. -ENOSPC: the file system would have less free space than
 * the larger of 2 GiB and 5 %. -EDQUOT: the same for this user's or group's quota. -EOVERFLOW: the
 * run directory has reached TFHOOK_RUN_SIZE. */
int tfh_budget_check(uint64_t own);
/* Called after files were deleted: counts again before the next answer. */
void tfh_budget_freed(void);
/* Returns the size limit of a segment, and in `limit` that of all segments of this process. */
uint64_t tfh_budget_segment(uint64_t own, uint64_t *limit);
void tfh_budget_forget(void);

#endif
