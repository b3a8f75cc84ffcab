/* What `tfhook run` saw of a process from outside before it recorded, or if it never did
 * (format/FORMAT.md, 5). */
#ifndef TFH_MODEL_START_H
#define TFH_MODEL_START_H

#include "model/symbols/pylines.h"

#define TFH_START_WHOLE_CPU 9 /* tfh_start_sample.others */

struct tfh_start_sample {
	int64_t t;	    /* run time */
	double ns;	    /* time of the main thread that this sample represents */
	uint32_t place;	    /* tfh_start_place(), 0: not known */
	uint8_t state, gil; /* enum tft_state, enum tft_gil */
	uint8_t others;	    /* CPU time of the process' other threads up to it, ninths of a CPU */
};

/* What counted a loop's iterations. The values are those of start.json, as enum tfh_py_count. */
enum tfh_start_count {
	TFH_START_ITERATOR,
	TFH_START_COUNTER,	   /* a variable that is reset each time the loop is entered */
	TFH_START_COUNTER_ON,	   /* one that goes on counting; it began with a known number */
	TFH_START_COUNTER_FROM,	   /* like COUNTER, but its first number is unknown */
	TFH_START_COUNTER_ON_FROM, /* like COUNTER_ON, but its first number is unknown */
	TFH_START_COUNTS
};

/* How far a loop on the main thread's stack had come when a sample was taken. */
struct tfh_start_loop {
	uint32_t sample; /* index */
	uint32_t depth;	 /* of its frame, counted from the outermost one, 1 */
	uint64_t done;	 /* iterations, including the running one */
	int64_t left;	 /* further ones; -1: not known */
	uint8_t count;	 /* enum tfh_start_count */
	bool sure;	 /* of an iterator: it is known to have begun with its first element */
};

/* Another Python thread of the process, chosen at random while the main thread waited. */
struct tfh_start_other {
	struct tfh_start_sample at; /* ns: time of such a thread that this sample represents */
	uint32_t tid;
};

struct tfh_start_place {
	uint32_t caller, function, line; /* numbers from 1, 0: none; a caller's number is smaller */
};

struct tfh_start_function {
	const char *file, *name;
	bool library;
};

/* Samples of one process. All processes of a run share the functions and places. n 0: no
 * samples. */
struct tfh_start {
	const struct tfh_start_sample *sample; /* in time order */
	uint32_t n;
	const struct tfh_start_loop *loop; /* in order of samples, then from the outermost on */
	uint32_t n_loop;
	const struct tfh_start_other *other;
	uint32_t n_other;
	const char *why; /* why there are no places; NULL: they could be read */
	const struct tfh_start_place *place;
	const struct tfh_start_function *function;
};

const struct tfh_start *tfh_run_start(const struct tfh_run *run, uint32_t process);
/* The frames of a place, innermost first; returns their number, 0: unknown. */
uint32_t tfh_start_frames(const struct tfh_start *s, uint32_t place, struct tfh_model_line *frame,
			  uint32_t most);

#endif
