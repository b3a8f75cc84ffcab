/*
 * What looks say of pauses: the time of a thread between two of its calls. A look sees a thread at
 * a random moment, and a pause is mostly shorter than the time between two looks; so pauses of a
 * kind are taken together: those of a thread behind the same kind of call, before the same kind,
 * and about as long. How long a pause was, its calls tell; how much of it the thread ran, the
 * readings of its processor clock; looks divide what is left.
 */
#ifndef TFH_JUDGE_LOOK_SHARES_H
#define TFH_JUDGE_LOOK_SHARES_H

#include "judge/facts/place_role.h"

/* What a thread was at: a state; or, where its place tells more, a role, running or asleep. */
#define TFH_AT_COUNT (TFH_SEEN_COUNT + 2 * TFH_ROLE_COUNT)
#define TFH_AT(role, asleep) (TFH_SEEN_COUNT + 2 * (role) + (asleep))
static inline enum tfh_role tfh_at_role(int at)
{
	return at < TFH_SEEN_COUNT ? TFH_ROLE_NONE : (enum tfh_role)((at - TFH_SEEN_COUNT) / 2);
}

/* How a pause divides. */
struct tfh_seen {
	double part[TFH_AT_COUNT]; /* by what the thread was at; 0: nothing was seen; together 1 */
	bool feeds; /* the first work behind it is a copy to the device: a batch, as a rule */
};

struct tfh_looks;
/* NULL: no memory. */
struct tfh_looks *tfh_looks_new(const struct tfh_feed *feed, uint32_t process);
void tfh_looks_free(struct tfh_looks *l);
/* Takes every event in order of their ends. 0 or -ENOMEM. */
int tfh_looks_add(struct tfh_looks *l, const struct tfh_event *ev);
/* Instead of outermost calls of the kind of the one that a thread made last, without a pause between: when they ended. */
void tfh_looks_went_on(struct tfh_looks *l, uint32_t thread, int64_t t1);
/* All events have been taken. */
void tfh_looks_end(struct tfh_looks *l);
/* How [t0, t1) of a pause of a thread divides. False: too little was seen. */
bool tfh_looks_divide(const struct tfh_looks *l, uint32_t thread, int64_t t0, int64_t t1,
		      struct tfh_seen *out);
/* The looks outside of calls, in order of time. */
struct tfh_seen_look {
	int64_t t;
	double ns;	/* of the thread's time that it stands for */
	uint32_t place; /* in Python code, 0: not known */
	uint16_t thread;
	uint8_t state, at;
	bool feeds; /* as above */
};
size_t tfh_looks_count(const struct tfh_looks *l);
struct tfh_seen_look tfh_looks_at(const struct tfh_looks *l, size_t i);
/* Does Python run in the process? */
bool tfh_looks_python(const struct tfh_looks *l);

#endif
