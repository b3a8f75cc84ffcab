/* Data that sample_shares.c collects and sample_divide.c reads. */
#ifndef TFH_JUDGE_FACTS_SAMPLE_GROUPS_H
#define TFH_JUDGE_FACTS_SAMPLE_GROUPS_H

#include "judge/facts/sample_shares.h"
#include "judge/facts/pause_role.h"
#include "judge/numbers.h"
#include "model/vec.h"

#define TFH_NO_GROUP UINT32_MAX
#define TFH_IN_CALL (UINT32_MAX - 1)

/* A group of similar pauses. Samples are weighted by the time that each represents. */
struct tfh_sample_group {
	uint64_t key;
	uint32_t parent; /* the less specific group */
	enum tfh_feeds feeds;
	bool brief; /* pauses too short for CPU clock readings of their own */
	uint32_t samples;
	double seen[TFH_AT_COUNT];
	/* Of pauses with CPU clock readings: wall time and time off the CPU, ns. */
	double wall, asleep;
};

struct tfh_sample_pause {
	int64_t t0, t1;
	uint32_t group;
};

/* A sample outside of calls. */
struct tfh_stack_sample {
	int64_t t;
	int64_t timeout; /* of a poll, ns; 0: none */
	float ns;
	uint32_t group; /* TFH_NO_GROUP: in a short pause, or in one that is open; TFH_IN_CALL */
	uint32_t place;
	uint32_t resumes; /* see struct tfh_seen_sample */
	uint16_t thread;
	uint8_t state, at;
	bool line;     /* at the line of the program that makes the next call */
	bool copy;     /* and that call is a copy */
	bool loops;    /* see struct tfh_seen_sample */
	bool through;  /* it waited for a file to be written through to the disk */
	bool released; /* it ran without Python's lock: in a function in C that computes */
};

/* A reading of a thread's CPU clock. */
struct tfh_cpu_reading {
	int64_t t, cpu; /* t 0: there is none */
	uint32_t stack;
};

struct tfh_sample_line {
	int64_t end; /* end of the last outermost call, 0: none yet */
	/* A call that waits also has a reading at its end, which comes before the call's own
	 * event. */
	struct tfh_cpu_reading last, before_last;
	/* The last reading when the last call ended; some are in ranges. */
	struct tfh_cpu_reading base;
	uint16_t before;  /* kind of the last call */
	bool fetched;	  /* results, since the last copy to the device */
	uint32_t samples; /* number of samples since that call */
	/* a pause whose following work has not been seen yet */
	struct tfh_sample_pause open;
	uint16_t after;
	uint32_t stack; /* the last stack recorded at the end of a pause, 0: none */
	uint32_t open_samples;
	double open_seen[TFH_AT_COUNT];
	int64_t open_asleep, open_wall;
	TFH_VEC(struct tfh_sample_pause) pause; /* in order of time */
};

struct tfh_stack_samples {
	const struct tfh_feed *feed;
	uint32_t process;
	struct tfh_sample_line *line; /* by thread */
	struct tfh_sample_group group[TFH_FACTS_SAMPLE_GROUPS];
	TFH_VEC(struct tfh_stack_sample) sample;
	TFH_VEC(struct tfh_stack_sample) within; /* taken inside calls that last long */
	TFH_VEC(uint8_t) role; /* by place and order; UINT8_MAX: not determined yet */
	double delay_per_run;  /* as in struct tfh_facts */
	bool any, python;
	bool called;			  /* a call was recorded, not only marks */
	bool device;			  /* something has been launched */
	bool driver;			  /* to a device: by the driver's functions, or copied */
	char launcher[TFH_FACTS_PACKAGE]; /* the package that launches, by known stacks; "": none */
	bool jax;			  /* JAX is loaded */
	bool torch;			  /* PyTorch is */
	bool graphs; /* functions of TensorFlow were executed, with known stacks */
	/* functions of the program that a library called, and that executed one of these */
	struct tfh_model_line stepper[TFH_FACTS_STEPPERS];
	uint32_t n_stepper;
};

/* ---- sample_groups.c; TFH_NO_GROUP: the table is full ---- */

/* The group of a pause, from the most specific to the least: pauses at the same position of the
 * program; of about the same duration; all pauses of the thread. */
uint32_t tfh_group_of_pause(struct tfh_stack_samples *l, uint32_t thread, uint16_t before,
			    uint16_t after, int64_t ns, enum tfh_feeds feeds);
/* The group of all short pauses of a thread, created if necessary. */
uint32_t tfh_make_group_of_brief(struct tfh_stack_samples *l, uint32_t thread);
/* Adds times of samples to a group and to those that it is part of. */
void tfh_group_add(struct tfh_stack_samples *l, uint32_t at, const double seen[TFH_AT_COUNT],
		   uint32_t samples, int64_t wall, int64_t asleep);
/* Whether there are samples of a thread's pauses. */
bool tfh_has_groups(const struct tfh_stack_samples *l, uint32_t thread);
/* The group of all short pauses of a thread; TFH_NO_GROUP: there are no samples of its pauses. */
uint32_t tfh_group_of_brief(const struct tfh_stack_samples *l, uint32_t thread);

/* ---- sample_role.c ---- */

/* Decides what a thread was doing in its samples in [t0, t1), now that the call after them is
 * known, and adds their times to `seen`. */
void tfh_place_samples(struct tfh_stack_samples *l, uint32_t thread, int64_t t0, int64_t t1,
		       const struct tfh_pause_end *to, double seen[TFH_AT_COUNT]);
/* The same for those inside a call for a loader's next batch. Returns their number. */
uint32_t tfh_place_samples_inside(struct tfh_stack_samples *l, const struct tfh_event *ev);

/* sample_state.c: enum tft_state, or TFH_SEEN_... */
uint8_t tfh_sample_state(const struct tfh_stack_samples *l, const struct tfh_event *ev);
/* sample_through.c: whether a system call waits for a file to be written through; and reassigns
 * samples in which a thread ran in such a call. */
bool tfh_writes_through(uint16_t call);
void tfh_stack_samples_write_through(struct tfh_stack_samples *l);

/* Whether a state is waiting in a system call that may take long. In all other states the thread
 * runs or the kernel works for it. */
static inline bool tfh_is_asleep(int at)
{
	if (at >= TFH_SEEN_COUNT)
		return (at - TFH_SEEN_COUNT) % 2;
	return at > TFT_STATE_RUNNING && at != TFT_STATE_MEMORY;
}

#endif
