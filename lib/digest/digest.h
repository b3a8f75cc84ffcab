/*
 * The digest of a run: everything that its outputs need without opening the recording again. It is
 * a `.tft` file of tables (FORMAT.md, section 2.9): seconds by cause per step and rank, the tree of
 * loops, Python lines, kernels, copies, machine meters, data quality, the verdict, and the files
 * and the judge that it was made from. It takes at most about 20 bytes per step and rank.
 */
#ifndef TFH_DIGEST_DIGEST_H
#define TFH_DIGEST_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "digest/digest_tables.h"
#include "judge/result.h"

/* ---- inputs.c: what a digest is made from ---- */

struct tfh_inputs {
	struct tfh_input {
		char *name; /* without directories */
		uint64_t bytes;
		uint32_t check; /* CRC-32C of its first and last 64 KiB */
	} * v;
	uint32_t n;
};
/* Lists the files of a recording: PATH itself, or the files of a run directory by name, without
 * digests, and without those of other hosts' processes (`host` NULL: of all). 0 or -errno. */
int tfh_inputs_find(const char *path, const char *host, struct tfh_inputs *out);
void tfh_inputs_free(struct tfh_inputs *in);
/* Name of a directory's digest. */
#define TFH_DIGEST_NAME "digest.tft"

/* ---- judge_id.c ---- */

/* Changes whenever the judge's sources change. */
const char *tfh_judge_id(void);

/* ---- digest_write.c ---- */

/* Judges a run and writes its digest to an empty file, rank by rank. Closes `fd`, also on failure.
 * 0 or -errno with `err`; -ENODATA: there is nothing to judge. */
int tfh_digest_write(struct tfh_run *run, const struct tfh_inputs *in, int fd, struct tfh_err *err);

/* ---- digest_read.c ---- */

struct tfh_run_digest;

/* -ENOMSG: not a digest; -EBADMSG: damaged or unfinished; -EPROTO: a newer form.
 * Files are not trusted. */
int tfh_digest_open(const char *path, struct tfh_run_digest **out, struct tfh_err *err);
void tfh_digest_close(struct tfh_run_digest *d);

/* A table in memory, `n` rows of its struct; texts are read by tfh_digest_text(). */
struct tfh_digest_part {
	const void *row;
	uint32_t n;
	const char *heap;
	uint32_t heap_bytes;
};
/* DKEY, DINP, DRNK, DNOD, DPLC, DKRN, DCPY, DMTR, DGON, DCOM or DOPN; no rows if the file lacks
 * it. */
const struct tfh_digest_part *tfh_digest_part_of(const struct tfh_run_digest *d, uint32_t type);
/* Never NULL. */
const char *tfh_digest_text(const struct tfh_digest_part *p, uint32_t offset);
/* The first row with that name in DKEY or DKRN; UINT32_MAX: none. */
uint32_t tfh_digest_named(const struct tfh_run_digest *d, uint32_t type, const char *name);
/* The payload of the only chunk of a type; valid until the next chunk is read. -ENOENT: there is
 * none; otherwise -errno with `err`. */
int tfh_digest_chunk(struct tfh_run_digest *d, uint32_t type, const void **data, size_t *n,
		     struct tfh_err *err);
/* Value of a fact (FORMAT.md lists them). If it is missing: NULL, or NAN as a number. */
const char *tfh_digest_fact(const struct tfh_run_digest *d, const char *name);
double tfh_digest_number(const struct tfh_run_digest *d, const char *name);
/* Whether it was made from these files by this judge. */
bool tfh_digest_is_fresh(const struct tfh_run_digest *d, const struct tfh_inputs *in);

/* One step, in seconds. Its length is the sum of all parts. */
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
/* Calls `fn` for every step, rank by rank in time order, chunk by chunk in bounded memory. A result
 * of `fn` other than 0 stops it and is returned. Else 0, or -errno with `err`. */
typedef int (*tfh_digest_step_fn)(void *arg, const struct tfh_digest_row *row);
int tfh_digest_each_step(struct tfh_run_digest *d, tfh_digest_step_fn fn, void *arg,
			 struct tfh_err *err);

/* The same chunk by chunk, as columns (FORMAT.md), which nothing has checked. `type`: DSTP or
 * DCOL. */
typedef int (*tfh_digest_view_fn)(void *arg, const struct tft_table_view *view);
int tfh_digest_each_view(struct tfh_run_digest *d, uint32_t type, tfh_digest_view_fn fn, void *arg,
			 struct tfh_err *err);

/* The same for anchors of collectives, rank by rank. */
typedef int (*tfh_digest_anchor_fn)(void *arg, const struct tfh_digest_anchor *row);
int tfh_digest_each_anchor(struct tfh_run_digest *d, tfh_digest_anchor_fn fn, void *arg,
			   struct tfh_err *err);

#endif
