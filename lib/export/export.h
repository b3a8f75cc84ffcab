/*
 * A run in the formats of other tools. formats.def is the table of formats. walk.c passes steps,
 * calls and ops to a format's writer, one process after the other, in bounded memory. Each writer
 * is one file.
 */
#ifndef TFH_EXPORT_EXPORT_H
#define TFH_EXPORT_EXPORT_H

#include "base/err.h"
#include "export/pseudonyms.h"
#include "judge/judge.h"
#include "model/ops/ops.h"

/* The steps of one judged process. */
struct tfh_export_rank {
	uint32_t process;
	struct tfh_step *step; /* tfh_big_array() */
	size_t n;
	enum tfh_step_clock clock;
};

/* Writes to `out` what a module of the Python package makes of what `fill` writes to its stream.
 * `needs`: modules that it imports; `remedy`: what pip installs for them. 0, or -errno with
 * `err`. */
typedef int tfh_export_through(const char *module, const char *needs, const char *remedy, FILE *out,
			       int (*fill)(void *arg, FILE *in, struct tfh_err *err), void *arg,
			       struct tfh_err *err);

/* What is exported. */
struct tfh_export {
	tfh_export_through *through; /* starts Python: the command's */
	struct tfh_run *run;
	struct tfh_result *result; /* the judge's result */
	struct tfh_export_rank *rank;
	uint32_t n_rank;
	bool part; /* export only the steps `first` to `last` */
	uint64_t first, last;
	uint32_t only;		       /* only this process, UINT32_MAX: all */
	struct tfh_pseudonyms *hidden; /* NULL: names are shown */
};

/* Judges the run, which remains the caller's, and keeps every rank's steps. Returns 0, or an error
 * of tfh_analyze(). */
int tfh_export_open(struct tfh_run *run, struct tfh_export *x, struct tfh_err *err);
/* Limits the export to some steps. -ENODATA with `err` if no step has one of these numbers. */
int tfh_export_limit(struct tfh_export *x, uint64_t first, uint64_t last, struct tfh_err *err);
/* Shows no names that the program or its machine gave. 0 or -ENOMEM with `err`. */
int tfh_export_hide_names(struct tfh_export *x, struct tfh_err *err);
void tfh_export_close(struct tfh_export *x);

/* The steps of a process; NULL: it was not judged. */
const struct tfh_export_rank *tfh_export_rank_of(const struct tfh_export *x, uint32_t process);
/* Whether a step is exported. */
bool tfh_export_has(const struct tfh_export *x, const struct tfh_step *s);
/* The step that contains a moment, NULL if none does or `rank` is NULL. */
const struct tfh_step *tfh_export_step_at(const struct tfh_export_rank *rank, int64_t t);
/* The exported time of a process, ns since the run's start. */
void tfh_export_span(const struct tfh_export *x, uint32_t process, int64_t *t0, int64_t *t1);

static inline int64_t tfh_step_begin_ns(const struct tfh_step *s)
{
	return (int64_t)(s->start_s * 1e9 + 0.5);
}
static inline int64_t tfh_step_end_ns(const struct tfh_step *s)
{
	return (int64_t)((s->start_s + s->dur_s) * 1e9 + 0.5);
}

/* A row of formats.def. */
struct tfh_format {
	const char *name;   /* argument of --to */
	const char *suffix; /* of the file if the user names none */
	bool by_rank;	    /* one file per process; several processes become a directory */
	/* Writes to a stream that need not be seekable. 0, or -errno; `err` is set unless the
	 * stream failed. */
	int (*write)(const struct tfh_export *x, FILE *out, struct tfh_err *err);
};
/* NULL if there is no format of that name. */
const struct tfh_format *tfh_format_find(const char *name);

#endif
