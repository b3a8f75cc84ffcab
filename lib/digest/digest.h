/*
 * The digest of a run: what its outputs need without opening the recording again. A `.tft` file of tables (FORMAT.md,
 * section 2.9): per step and rank seconds by cause, the tree of loops, lines of Python, kernels, copies, machine, quality,
 * verdict, and which files and which judge it was made of. At most some 20 bytes a step and rank.
 */
#ifndef TFH_DIGEST_H
#define TFH_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "digest/digest_tables.h"
#include "judge/result.h"

/* ---- inputs.c: what a digest is made of ---- */

struct tfh_inputs {
	struct tfh_input {
		char *name; /* without directories */
		uint64_t bytes;
		uint32_t check; /* CRC-32C of its first and last 64 KiB */
	} * v;
	uint32_t n;
};
/* The files of a recording: PATH itself, or the files of a run directory by name, digests left out. 0 or -errno. */
int tfh_inputs_find(const char *path, struct tfh_inputs *out);
void tfh_inputs_free(struct tfh_inputs *in);
/* Name of a directory's digest. */
#define TFH_DIGEST_NAME "digest.tft"

/* ---- judge_id.c ---- */

/* Changes whenever the sources of what judges change. */
const char *tfh_judge_id(void);

/* ---- digest_write.c ---- */

/* Judges a run and writes its digest to an empty file, which is closed, also on failure. Steps are written rank by rank. 0 or
 * -errno with `err`; -ENODATA: there is nothing to judge. */
int tfh_digest_write(struct tfh_run *run, const struct tfh_inputs *in, int fd, struct tfh_err *err);

/* ---- digest_read.c ---- */

struct tfh_run_digest;

/* -ENOMSG: no digest; -EBADMSG: damaged, or one that was not finished; -EPROTO: of a newer form. Files are not trusted. */
int tfh_digest_open(const char *path, struct tfh_run_digest **out, struct tfh_err *err);
void tfh_digest_close(struct tfh_run_digest *d);

/* A table in memory, `n` rows of its struct; texts are read by tfh_digest_text(). */
struct tfh_digest_part {
	const void *row;
	uint32_t n;
	const char *heap;
	uint32_t heap_bytes;
};
/* DKEY, DINP, DRNK, DNOD, DPLC, DKRN, DCPY, DMTR or DGON; no rows if the file lacks it. */
const struct tfh_digest_part *tfh_digest_part_of(const struct tfh_run_digest *d, uint32_t type);
/* Never NULL. */
const char *tfh_digest_text(const struct tfh_digest_part *p, uint32_t offset);
/* The first row of that name of DKEY or DKRN, UINT32_MAX: none. */
uint32_t tfh_digest_named(const struct tfh_run_digest *d, uint32_t type, const char *name);
/* The payload of the only chunk of a type; valid until the next chunk is read. -ENOENT: there is none; -errno with `err`. */
int tfh_digest_chunk(struct tfh_run_digest *d, uint32_t type, const void **data, size_t *n,
		     struct tfh_err *err);
/* Value of a fact (FORMAT.md lists them), NULL if it is not there; as a number NAN. */
const char *tfh_digest_fact(const struct tfh_run_digest *d, const char *name);
double tfh_digest_number(const struct tfh_run_digest *d, const char *name);
/* Whether it was made of these files by this judge. */
bool tfh_digest_is_fresh(const struct tfh_run_digest *d, const struct tfh_inputs *in);

/* One step. Seconds; all parts together are its length. */
struct tfh_digest_row {
	double start_s, dur_s, compute_s, rest_s; /* rest: unattributed */
	double cause_s[TFH_CAUSE_COUNT];
	uint64_t index;
	uint32_t rank; /* row of DRNK */
	enum tfh_segment segment;
	enum tfh_class cls;
	enum tfh_cause cause;
	char tier;
};
/* Calls `fn` for every step, rank by rank in order of time, chunk by chunk in bounded memory. 0, -errno with `err`, or what
 * `fn` returned other than 0, which ends it. */
typedef int (*tfh_digest_step_fn)(void *arg, const struct tfh_digest_row *row);
int tfh_digest_each_step(struct tfh_run_digest *d, tfh_digest_step_fn fn, void *arg,
			 struct tfh_err *err);

/* The same for anchors of collectives, all of one rank after the other. */
typedef int (*tfh_digest_anchor_fn)(void *arg, const struct tfh_digest_anchor *row);
int tfh_digest_each_anchor(struct tfh_run_digest *d, tfh_digest_anchor_fn fn, void *arg,
			   struct tfh_err *err);

#endif
