/* What threads did in their pauses, from the ranges of another profiler's trace. */
#ifndef TFH_JUDGE_FACTS_COVER_H
#define TFH_JUDGE_FACTS_COVER_H

#include "judge/facts/facts.h"
#include "judge/facts/place_role.h"

enum tfh_covered {
	TFH_COVERED_NOT,      /* unknown, or known for less than half of the time */
	TFH_COVERED_LAUNCH,   /* in ops that launch */
	TFH_COVERED_CODE,     /* in Python functions or ops that compute on the host */
	TFH_COVERED_OTHER,    /* waiting; or in an op that launches but takes too long for that */
	TFH_COVERED_EXCHANGE, /* sending data to other ranks */
};

/* NOTED: only the program's own name for the range is known */
enum tfh_cover_kind {
	TFH_COVER_NOTHING,
	TFH_COVER_NOTED,
	TFH_COVER_ISSUES,
	TFH_COVER_OWN,
	TFH_COVER_WAITS,
	TFH_COVER_EXCHANGES,
	TFH_COVER_KINDS
};

/* One activity of a thread in a pause. */
struct tfh_cover_part {
	int64_t t0, t1;
	uint32_t thread, name; /* name: string id */
	uint8_t kind;	       /* enum tfh_cover_kind */
	/* what it did, by samples (sample_shares.h): a role, or that it slept; 0: not known */
	uint8_t at;
};

struct tfh_cover {
	const struct tfh_facts *facts;
	TFH_VEC(struct tfh_cover_part) part; /* by thread and begin; they do not overlap */
	TFH_VEC(struct tfh_cover_part)
	line;		/* without a device: activity of the process as a whole */
	size_t *first;	/* by thread: index in `part`; has one more entry than there are threads */
	uint32_t names; /* string ids are below this */
	bool python;	/* there are functions of Python */
};

/* Reads the ranges of another profiler's trace; *out is NULL if there are none. The caller frees
 * it, also after an error. Returns 0 or a negative errno. */
int tfh_cover_find(const struct tfh_facts *facts, struct tfh_cover **out, struct tfh_err *err);
void tfh_cover_free(struct tfh_cover *c);
/* The kind of [t0, t1) of a thread. These functions return TFH_COVERED_NOT for a NULL cover. */
enum tfh_covered tfh_covered_by(const struct tfh_cover *c, uint32_t thread, int64_t t0, int64_t t1);
/* The cause of what is COVERED_CODE: a trace without functions of Python shows ops and ranges of
 * C++. */
static inline enum tfh_cause tfh_cover_code(const struct tfh_cover *c)
{
	return !c || c->python ? TFH_CAUSE_HOST_PYTHON : TFH_CAUSE_HOST_CODE;
}
/* The thread whose ranges describe a pause: the thread itself; if it has none, it waited for work
 * from another thread, if only one other ran the program's code most of that time. */
uint32_t tfh_cover_thread(const struct tfh_cover *c, uint32_t thread, int64_t t0, int64_t t1);
/* For a process without a device: the activity of all its threads together at t0. It stays the same
 * until *until, which is at most t1. CODE: ops are executed. */
enum tfh_covered tfh_covered_line(const struct tfh_cover *c, int64_t t0, int64_t t1,
				  int64_t *until);
/* What a part is on its own; NOT: only a name. */
enum tfh_covered tfh_cover_part_is(const struct tfh_cover_part *part);
/* The first of a thread's parts that ends after t; tfh_cover.first[thread + 1] if there is none. */
size_t tfh_cover_at(const struct tfh_cover *c, uint32_t thread, int64_t t);

/* python_names.c: the kind of a function, by its name */
enum tfh_frame {
	TFH_FRAME_NEW,
	TFH_FRAME_USER,
	TFH_FRAME_LIBRARY,
	TFH_FRAME_WAITS,
	/* a DataLoader's: what it calls makes the batch, what calls it wants one */
	TFH_FRAME_FEEDS,
};
enum tfh_frame tfh_frame_of(const char *name);
/* The function's row of places.def. */
struct tfh_role_frame tfh_frame_role(const char *name);
/* range_role.c: what a program does in a range to which it gave that name, if it gets or prepares a
 * batch: TFH_ROLE_FED, _MAP or _BATCH. TFH_ROLE_NONE: the name says nothing of the kind. */
enum tfh_role tfh_role_of_range(const char *name);
/* Whether a function that waits only sleeps for a given time. */
bool tfh_frame_sleeps(const char *name);

#endif
