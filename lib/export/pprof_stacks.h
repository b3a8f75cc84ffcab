/*
 * A profile in pprof's format (profile.proto): stacks of frames, each with sums. Stacks are kept as
 * a tree, so memory grows with the number of different stacks. An id of 0 is none; it is also
 * returned when out of memory, which tfh_pprof_write() reports.
 */
#ifndef TFH_EXPORT_PPROF_STACKS_H
#define TFH_EXPORT_PPROF_STACKS_H

#include <stdint.h>
#include <stdio.h>

#include "base/key_table.h"
#include "export/proto.h"
#include "model/vec.h"

enum tfh_pprof_sum {
	TFH_PPROF_CALLS,
	TFH_PPROF_HOST, /* ns, without inner calls */
	TFH_PPROF_OPS,
	TFH_PPROF_DEVICE, /* ns */
	TFH_PPROF_PYTHON, /* ns per step */
	TFH_PPROF_SUMS
};

/* Where a stack was: its labels, as texts of tfh_pprof_text(). */
struct tfh_pprof_place {
	uint32_t rank, pid, thread, device, stream;
};

struct tfh_pprof_node {
	uint32_t parent, frame, place;
	int64_t sum[TFH_PPROF_SUMS];
};

struct tfh_pprof {
	struct tfh_proto out; /* texts, functions and frames, written when they are first used */
	struct tfh_map known; /* hash of what was written -> id */
	uint32_t texts, functions, frames;
	TFH_VEC(struct tfh_pprof_place) place;
	TFH_VEC(struct tfh_pprof_node) node;
};

/* What is said of the whole profile. */
struct tfh_pprof_head {
	int64_t start_ns, duration_ns; /* Unix time; 0: unknown */
	enum tfh_pprof_sum shown;      /* what pprof shows unless told otherwise */
	const char *comment;
};

uint32_t tfh_pprof_text(struct tfh_pprof *p, const char *text);
uint32_t tfh_pprof_frame(struct tfh_pprof *p, const char *function, const char *file,
			 uint32_t line);
uint32_t tfh_pprof_place(struct tfh_pprof *p, const struct tfh_pprof_place *place);
/* The stack of `parent` with one more frame. */
uint32_t tfh_pprof_stack(struct tfh_pprof *p, uint32_t parent, uint32_t frame, uint32_t place);
void tfh_pprof_add(struct tfh_pprof *p, uint32_t stack, enum tfh_pprof_sum sum, int64_t value);

/* Writes the profile, compressed by gzip. 0 or -errno. */
int tfh_pprof_write(struct tfh_pprof *p, const struct tfh_pprof_head *head, FILE *out);
void tfh_pprof_free(struct tfh_pprof *p);

#endif
