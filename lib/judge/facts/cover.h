/* What threads did in their pauses, by the ranges of an imported trace. */
#ifndef TFH_JUDGE_COVER_H
#define TFH_JUDGE_COVER_H

#include "judge/facts/facts.h"

enum tfh_covered {
	TFH_COVERED_NOT,      /* nothing tells, or of less than half of it */
	TFH_COVERED_LAUNCH,   /* within ops that launch */
	TFH_COVERED_CODE,     /* functions of Python, ops that compute on the host */
	TFH_COVERED_OTHER,    /* waiting; an op that launches, but takes too long for that */
	TFH_COVERED_EXCHANGE, /* data goes to other ranks */
};

/* One thing that a thread did in a pause. */
struct tfh_cover_part {
	int64_t t0, t1;
	uint32_t thread, name; /* name: string id */
	uint8_t kind;
};

struct tfh_cover {
	const struct tfh_facts *facts;
	TFH_VEC(struct tfh_cover_part) part; /* by thread and begin; they do not overlap */
	TFH_VEC(struct tfh_cover_part) line; /* no device: what the process did as a whole */
	size_t *first;			     /* by thread: index in `part`; one more than threads */
	uint32_t names;			     /* ids of strings are below it */
};

/* Looks at the ranges of another profiler's trace; *out is NULL where there are none. The caller
 * frees it, also after an error. 0 or a negative errno. */
int tfh_cover_find(const struct tfh_facts *facts, struct tfh_cover **out, struct tfh_err *err);
void tfh_cover_free(struct tfh_cover *c);
/* What [t0, t1) of a thread was; all of these answer NOT for a NULL cover. */
enum tfh_covered tfh_covered_by(const struct tfh_cover *c, uint32_t thread, int64_t t0, int64_t t1);
/* Whose ranges tell of a pause: the thread's own; where it has none, it waited to be given work,
 * and another's, if only one other ran the program's code most of that time. */
uint32_t tfh_cover_thread(const struct tfh_cover *c, uint32_t thread, int64_t t0, int64_t t1);
/* Of a process without a device: what all its threads did from t0 on, the same until *until (at
 * most t1). CODE: ops were executed. */
enum tfh_covered tfh_covered_line(const struct tfh_cover *c, int64_t t0, int64_t t1,
				  int64_t *until);
/* The first of a thread's parts that ends after t; tfh_cover.first[thread + 1]: none. */
size_t tfh_cover_at(const struct tfh_cover *c, uint32_t thread, int64_t t);

/* python_names.c: what a function's name tells */
enum tfh_frame { TFH_FRAME_NEW, TFH_FRAME_USER, TFH_FRAME_LIBRARY, TFH_FRAME_WAITS };
enum tfh_frame tfh_frame_of(const char *name);

#endif
