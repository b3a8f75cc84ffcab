/*
 * The calls of one kind that may have issued ops, in order of their begin. CUPTI's correlation
 * numbers grow from call to call (issue_by_order.c); this finds the call that a number belongs to.
 */
#ifndef TFH_MODEL_OPS_CALLS_BY_ORDER_H
#define TFH_MODEL_OPS_CALLS_BY_ORDER_H

#include "model/ops/device_ops.h"

#define TFH_UNMATCHED_STREAMS 16u

/* Which stream handle of the host is which stream id of the device, as far as known. */
struct tfh_streams {
	struct {
		uint32_t device, host; /* device's and host's id, each +1; 0: unknown */
	} v[256];
};
void tfh_streams_set(struct tfh_streams *s, uint32_t device, uint32_t host);

struct tfh_made {
	struct tfh_issue issue;
	uint32_t stream;
};

struct tfh_calls {
	struct tfh_made *v; /* ring by begin; `first` is the oldest */
	uint32_t first, n, cap;
	uint32_t unmatched; /* number of these calls whose ops stay without a call */
	struct {
		uint32_t stream, n;
	} by_stream[TFH_UNMATCHED_STREAMS]; /* device streams of those ops, and how many ops each */
	uint32_t n_by_stream;
	bool others;	 /* there are such ops whose streams were not stored */
	bool several;	 /* several threads made calls */
	bool broken;	 /* the ring overflowed: no call is known until tfh_calls_begin */
	uint32_t thread; /* thread of the last call, +1 */
};

/* A number whose call is wanted. */
struct tfh_sought {
	const struct tfh_issue *below, *above; /* calls of neighbouring numbers, NULL: unknown */
	int64_t start;			       /* begin of the op */
	/* stream that the op ran in; NULL: says nothing about the call's. */
	const uint32_t *stream;
};

/* Adds a call. Calls come in order of their end. 0 or -ENOMEM. */
int tfh_calls_add(struct tfh_calls *k, const struct tfh_made *call);
/* Forgets calls that began before t, and all unmatched calls. */
void tfh_calls_begin(struct tfh_calls *k, int64_t t);
/* Finds the call of the smallest number that has not been looked up yet; false if it is ambiguous.
 * All calls that ended before the op must have been added. */
bool tfh_calls_find(struct tfh_calls *k, const struct tfh_streams *s, const struct tfh_sought *q,
		    struct tfh_made *out);
/* Adds an op whose call is not looked up, perhaps because it has not been read yet. `stream`: NULL
 * unknown. */
void tfh_calls_add_unmatched(struct tfh_calls *k, const uint32_t *stream);
void tfh_calls_free(struct tfh_calls *k);

#endif
