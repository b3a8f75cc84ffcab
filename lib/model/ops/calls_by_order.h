/*
 * The calls of one kind that may have issued ops, in the order in which they began, and which of
 * them a number is of: CUPTI's numbers grow from call to call (issue_by_order.c).
 */
#ifndef TFH_MODEL_CALLS_BY_ORDER_H
#define TFH_MODEL_CALLS_BY_ORDER_H

#include "model/ops/device_ops.h"

#define TFH_DEBTORS 16u

/* Which stream of the calls is which of the device, as far as it is known. */
struct tfh_streams {
	struct {
		uint32_t device, host; /* +1; 0: not known */
	} v[256];
};
/* Of a device's stream; +1, 0 when it is not known. */
uint32_t tfh_streams_get(const struct tfh_streams *s, uint32_t device);
void tfh_streams_set(struct tfh_streams *s, uint32_t device, uint32_t host);

struct tfh_made {
	struct tfh_issue issue;
	uint32_t stream;
};

struct tfh_calls {
	struct tfh_made *v; /* ring, by begin, from `first` on */
	uint32_t first, n, cap;
	uint32_t owed; /* so many of them were issued by ops that stay without a call */
	struct {
		uint32_t stream, n;
	} debtor[TFH_DEBTORS]; /* the device's streams of those ops, and perhaps of more */
	uint32_t n_debtor;
	bool others;	 /* and of ops whose streams are not kept */
	bool several;	 /* threads have made them */
	bool broken;	 /* too many came: nothing is known until tfh_calls_begin */
	uint32_t thread; /* of the last one, +1 */
};

/* A number of which the call is sought. */
struct tfh_sought {
	const struct tfh_issue *below, *above; /* neighbours' calls, NULL not known */
	int64_t start;			       /* of the op */
	const uint32_t *stream;		       /* it ran in, NULL: no stream of calls */
};

/* They come by their end. 0 or -ENOMEM. */
int tfh_calls_add(struct tfh_calls *k, const struct tfh_made *call);
/* Calls that began before t are forgotten; no op is without its call any more. */
void tfh_calls_begin(struct tfh_calls *k, int64_t t);
/* The call of the smallest number that has not been sought yet; false: it cannot be told. All that
 * ended before the op did must be there, but those that are owed. */
bool tfh_calls_find(struct tfh_calls *k, const struct tfh_streams *s, const struct tfh_sought *q,
		    struct tfh_made *out);
/* It is not even sought: perhaps its call has not come yet. `stream`: NULL not known. */
void tfh_calls_owe(struct tfh_calls *k, const uint32_t *stream);
void tfh_calls_free(struct tfh_calls *k);

#endif
