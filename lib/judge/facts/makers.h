/*
 * The threads and processes that make batches besides the driving threads: child processes (workers
 * of a loader or pool), and other threads of the process that run Python, which are sampled while a
 * driving thread waits.
 */
#ifndef TFH_JUDGE_FACTS_MAKERS_H
#define TFH_JUDGE_FACTS_MAKERS_H

#include "judge/facts/place_role.h"

struct tfh_facts;

/* A sample of a thread of this process, or of the main thread of a child process. */
struct tfh_child_sample {
	int64_t t;
	double ns;	    /* time of the thread that the sample represents */
	uint32_t id, place; /* tid or pid */
	uint8_t state;	    /* enum tft_state */
	bool thread;	    /* of this process */
};

/* What such a sample shows. */
struct tfh_maker {
	struct tfh_model_line frame[TFH_VERDICT_FRAMES]; /* the innermost first */
	uint32_t n; /* frames of its own work, without those that started it */
	/* the stack does not begin like that of a thread of Python: a library's native thread calls
	 * Python */
	bool outside;
	bool busy;	    /* makes something or waits for its source, not for work or for room */
	bool told;	    /* a child process that waits for what the program sends to it */
	enum tfh_role role; /* by its frames */
	enum tfh_cause cause; /* of its work: input.unknown if not known */
};
/* False: the thread has no frames of its own. */
bool tfh_maker_at(const struct tfh_facts *facts, const struct tfh_child_sample *sample,
		  struct tfh_maker *out);

/* The same of a sample whose n frames are already in `out`. */
bool tfh_maker_of(const struct tfh_child_sample *sample, uint32_t n, struct tfh_maker *out);

/* Whether a thread of TensorFlow's was running a function of the program there (py_function): its
 * stack begins with that call. */
bool tfh_is_called(const struct tfh_facts *facts, uint32_t place);

/* Reads all samples of other threads and of child processes: lock_feeds, lock_logs, calls_back,
 * makers, workers, threads, told. */
void tfh_find_makers(struct tfh_facts *facts);

#endif
