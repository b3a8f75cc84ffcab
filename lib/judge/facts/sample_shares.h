/*
 * What samples say about pauses, the time of a thread between two of its calls. A sample shows a
 * thread at a random moment, and most pauses are shorter than the sampling interval. So pauses are
 * grouped by thread, kind of the call before and of the call after, and approximate duration. The
 * calls give the duration of a pause, the thread's CPU clock the time it ran, and samples divide
 * the rest.
 */
#ifndef TFH_JUDGE_FACTS_SAMPLE_SHARES_H
#define TFH_JUDGE_FACTS_SAMPLE_SHARES_H

#include "judge/facts/place_role.h"

/* What a thread was doing: a state; or, if its place in the program says more, a role, each running
 * or asleep. */
#define TFH_AT_COUNT (TFH_SEEN_COUNT + 2 * TFH_ROLE_COUNT)
#define TFH_AT(role, asleep) (TFH_SEEN_COUNT + 2 * (role) + (asleep))
static inline enum tfh_role tfh_at_role(int at)
{
	return at < TFH_SEEN_COUNT ? TFH_ROLE_NONE : (enum tfh_role)((at - TFH_SEEN_COUNT) / 2);
}

/* Whether the first work after a pause is a copy to the device, which usually is a batch. */
enum tfh_feeds {
	TFH_FEEDS_NOT,
	TFH_FEEDS,
	/* and results were fetched since the copy before it, which it may be an answer to */
	TFH_FEEDS_BACK,
};

/* Whether such a thread waits until another one has done something. */
static inline bool tfh_awaits_work(int at)
{
	return at == TFH_SEEN_SIGNAL || at == TFH_SEEN_END;
}

/* Whether it waits for what another process or machine sends. */
static inline bool tfh_awaits_sender(int at)
{
	return at == TFT_STATE_PIPE || at == TFT_STATE_SOCKET || at == TFT_STATE_POLL;
}

/* Whether it waits for another thread of the process. */
static inline bool tfh_awaits_thread(int at)
{
	return at == TFT_STATE_LOCK || at == TFT_STATE_EVENT || at == TFH_SEEN_MUTEX ||
	       tfh_awaits_work(at);
}

/* How the time of a pause divides. */
struct tfh_seen {
	double part[TFH_AT_COUNT]; /* shares by what the thread was doing, sum 1; 0: not seen */
	enum tfh_feeds feeds;
};

struct tfh_stack_samples;
/* NULL when out of memory. */
struct tfh_stack_samples *tfh_stack_samples_new(const struct tfh_feed *feed, uint32_t process);
void tfh_stack_samples_free(struct tfh_stack_samples *l);
/* Adds an event, in order of end time. 0 or -ENOMEM. */
int tfh_stack_samples_add(struct tfh_stack_samples *l, const struct tfh_event *ev);
/* In place of tfh_stack_samples_add() for consecutive outermost calls of the same kind as the
 * thread's last one, with no pause between them. t1: end of the last of them. */
void tfh_stack_samples_went_on(struct tfh_stack_samples *l, uint32_t thread, int64_t t1);
/* All events have been added. delay_per_run: as in struct tfh_facts. */
void tfh_stack_samples_end(struct tfh_stack_samples *l, double delay_per_run);
/* How [t0, t1), in a pause of a thread, divides. False if there are too few samples. */
bool tfh_stack_samples_divide(const struct tfh_stack_samples *l, uint32_t thread, int64_t t0,
			      int64_t t1, struct tfh_seen *out);
/* A sample outside of calls. They are in order of time. */
struct tfh_seen_sample {
	int64_t t;
	double ns;	/* time of the thread that it represents */
	uint32_t place; /* place in Python code, 0: unknown */
	/* It waits in an event loop: stack of the next call, which a coroutine makes; 0:
	 * elsewhere. */
	uint32_t resumes;
	uint16_t thread;
	uint8_t state, at;
	uint8_t feeds; /* enum tfh_feeds */
	bool loops;    /* the program's innermost function is on the stack of the next call */
	bool copies;   /* the program's line in the sample later makes a copy */
	bool inside;   /* in a call that samples can see into: a loader's */
	/* Without a device, in a process with PyTorch: it ran without Python's lock,
	 * as ops of PyTorch do. */
	bool op;
	/* Number of the group of similar pauses that its pause belongs to; 0: a short pause, or a
	 * call. */
	uint32_t pauses;
};
/* Whether the sample shows the program's own code, which a fix of that place removes: not a call,
 * nor the path to a launch or copy. A thread that waits for Python's lock waits for another thread,
 * wherever it is. */
static inline bool tfh_sample_is_own(const struct tfh_seen_sample *k)
{
	return !k->inside && k->state != TFT_STATE_GIL && tfh_at_role(k->at) != TFH_ROLE_LAUNCH &&
	       tfh_at_role(k->at) != TFH_ROLE_COPY;
}
size_t tfh_stack_samples_count(const struct tfh_stack_samples *l);
struct tfh_seen_sample tfh_stack_samples_at(const struct tfh_stack_samples *l, size_t i);
/* Samples with a place inside calls that last long, in order of time: when, where, and for how
 * long. Calls have causes of their own; only what a place adds to them is of interest. */
size_t tfh_samples_within_count(const struct tfh_stack_samples *l);
struct tfh_seen_sample tfh_samples_within_at(const struct tfh_stack_samples *l, size_t i);
/* Some of the samples, to find their part of a pause. */
struct tfh_sample_part;
/* NULL: no memory. The caller frees it with free(). */
struct tfh_sample_part *tfh_sample_part_new(const struct tfh_stack_samples *l);
void tfh_sample_part_add(struct tfh_sample_part *p, size_t i);
double tfh_sample_part_of(const struct tfh_sample_part *p, uint32_t thread, int64_t t0, int64_t t1);
/* Whether Python runs in the process. */
bool tfh_stack_samples_python(const struct tfh_stack_samples *l);

#endif
