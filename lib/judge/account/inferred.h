/*
 * The state of the device, inferred from the calls that wait for it. The host line keeps one such
 * state while it reads the calls of a run without device times.
 */
#ifndef TFH_JUDGE_ACCOUNT_INFERRED_H
#define TFH_JUDGE_ACCOUNT_INFERRED_H

#include "judge/account/account.h"

struct tfh_inferred {
	const struct tfh_facts *facts;
	/* Launches are numbered; the program has waited for those up to `done`. */
	uint64_t launches, done;
	struct {
		uint32_t stream;
		uint64_t last;
	} stream[TFH_ACCOUNT_STREAMS];
	struct {
		uint64_t handle, at;
	} event[TFH_ACCOUNT_EVENTS];
	/* One bit for each of the last 64 launches: it took longer than TFH_GAP_NS. */
	uint64_t slow_launches;
	int64_t since; /* begin of the first call whose work is outstanding, 0: none */
	uint64_t copy_bytes;
	int64_t copy_ns;       /* queued copies: their duration at the best bandwidth seen */
	enum tfh_cause copied; /* cause of most of the queued copies */
	/* What earlier waits for the same number of launches found. */
	struct {
		uint64_t launches;
		uint8_t busy, seen; /* one bit for each wait, the newest in bit 0 */
	} kind[TFH_ACCOUNT_WAIT_KINDS];
};

/* What a wait for the device shows. */
struct tfh_waited {
	bool kernels, copies; /* what it waited for; neither: the device had nothing to do */
	bool busy;	      /* the device worked all the time since its first outstanding work */
	bool direct; /* the wait alone shows it: it is most of that time, and only for kernels */
	int64_t copy_ns; /* of the wait: copying */
};

void tfh_inferred_init(struct tfh_inferred *d, const struct tfh_facts *facts);
/* How long a copy takes at the best bandwidth that the run showed for its size, ns. */
int64_t tfh_inferred_copy_ns(const struct tfh_inferred *d, const struct tfh_piece *p);
/* A copy that does not block its caller was queued. */
void tfh_inferred_queued(struct tfh_inferred *d, const struct tfh_piece *p);
/* An event was recorded after all launches so far. */
void tfh_inferred_recorded(struct tfh_inferred *d, uint64_t event);
/* Number of the last launch that a call waits for or polls. */
uint64_t tfh_inferred_covered(struct tfh_inferred *d, const struct tfh_piece *p);
/* The program waited during [t0, t1) for launches up to `upto`; counts it, and changes nothing
 * else. */
struct tfh_waited tfh_inferred_wait(struct tfh_inferred *d, int64_t t0, int64_t t1, uint64_t upto);
/* All launches up to `upto` are complete. */
void tfh_inferred_complete(struct tfh_inferred *d, uint64_t upto);
/* Whether every launch waits for a kernel to end because the driver's queue is full. A single slow
 * launch was only interrupted. */
bool tfh_inferred_queue_full(const struct tfh_inferred *d);

static inline bool tfh_inferred_outstanding(const struct tfh_inferred *d)
{
	return d->launches > d->done;
}

/* Number of the last launch on a stream. */
static inline uint64_t *tfh_inferred_last(struct tfh_inferred *d, uint32_t stream)
{
	uint32_t i = stream % TFH_ACCOUNT_STREAMS;

	if (d->stream[i].stream != stream) {
		d->stream[i].stream = stream;
		d->stream[i].last = 0;
	}
	return &d->stream[i].last;
}

#endif
