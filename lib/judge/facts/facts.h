/*
 * The first phase: what one look at every call of a process tells. Who drives the job, what could
 * be its step clock, how fast copies can be, which stages its input pipelines have, and which calls
 * are so long that the second look must know of them before they end. Constant for all later
 * phases.
 */
#ifndef TFH_JUDGE_FACTS_H
#define TFH_JUDGE_FACTS_H

#include "base/arena.h"
#include "judge/facts/look_shares.h"
#include "judge/feed.h"
#include "judge/numbers.h"
#include "judge/result.h"
#include "judge/vec.h"

/* What the calling thread is doing, in order of precedence when several threads do something at the
 * same time. */
enum tfh_label {
	TFH_L_GAP = 0,
	TFH_L_EXEC,   /* TFE_Execute, TF_SessionRun */
	TFH_L_INPUT,  /* get-next of a consumer */
	TFH_L_OTHER,  /* any other driver call */
	TFH_L_LAUNCH, /* launch, memset, copy that only queues */
	TFH_L_ALLOC,
	TFH_L_MODULE,
	TFH_L_COPY, /* copy that may block */
	TFH_L_SYNC, /* waits for the device */
};

/* One call on the time line. */
struct tfh_piece {
	int64_t t0, t1;
	uint64_t bytes;	 /* copies */
	uint64_t handle; /* of an event that is recorded or waited for: first argument word */
	uint32_t thread, stream;
	uint32_t stage; /* passive pieces: the stage's id, its index once on the line */
	uint8_t label;	/* enum tfh_label */
	uint8_t family, dir;
	bool pageable, passive, failed;
	bool saves;	 /* a checkpoint */
	bool makes;	 /* the first execution of a retraced function: it is compiled */
	bool writes;	 /* a value that a stream may wait for, at address `handle` */
	float density;	 /* passive: share of [t0, t1) spent in the stage */
	uint64_t number; /* order of arrival, to keep the sort stable */
};

/* A batch delivered to a training or other loop, or a step mark. */
struct tfh_tick {
	int64_t t0, t1; /* of the get-next */
	int64_t x0, x1; /* of the call that executes a graph around it, 0 = none */
	uint32_t series, thread;
	bool end;  /* "no more elements": not a batch */
	bool eval; /* mark: of a step that trains nothing */
	bool more; /* a further batch of the step that the one before began */
};

/* One iterator object. */
struct tfh_series {
	uint32_t iterator, stage;
	int32_t root;			  /* stage as an index of tfh_facts.stage, -1 not known */
	bool loop;			  /* dataset loop inside a graph */
	bool tests;			  /* nothing is trained with its batches */
	uint64_t count, contained, execs; /* batches; those inside executing calls; such calls */
	uint32_t before; /* number of the last one of its bucket, from 1; 0: none */
	size_t last;	 /* batch, among the ticks */
	int64_t exec_at; /* begin of the last executing call around one */
	struct {
		uint32_t name;
		int64_t ns;
	} tag[TFH_FACTS_SERIES_TAGS]; /* functions executed between its batches, by time */
};

/* A function given to TFE_Execute, or a session target. */
struct tfh_tag {
	uint32_t name;
	bool function, getnext, save;
	bool batches; /* takes them itself */
	/* One of many of its name: made anew for each shape or value. Calls of all of them, and
	 * what the name is but for its number. */
	bool retraced;
	uint64_t base, all_count;
	int64_t all_ns;
	int64_t first; /* begin of the first execution */
	uint64_t count;
	int64_t ns;
	uint32_t thread;
};

struct tfh_thread_use {
	uint64_t launches, driver, execs, gets;
	int64_t exec_ns, driver_ns, last; /* last: end of the last of them */
	int64_t outermost;		  /* end of the last outermost call */
	bool overlap;			  /* outermost calls do */
	bool drives;			  /* its calls make the step's time line */
	/* its CPU clock */
	bool cpu_open; /* the last reading may belong to a pause */
	int64_t last_cpu_t, last_cpu, open_wall, open_run;
	int64_t cpu_running, cpu_wall; /* in pauses: had a processor, and how long they were */
};

/* What a stage did. */
struct tfh_stage_time {
	uint64_t calls;
	int64_t total, self; /* ns */
};

/* Pipeline stage: all objects with the same place in the pipeline. */
struct tfh_stage_use {
	const char *prefix; /* without [n] */
	const char *type;   /* last component */
	int32_t parent;	    /* index, -1 root */
	bool async;
	uint32_t parallelism;
	struct tfh_stage_time time; /* in the whole run */
};

/* Token of the launch sequence, for the launch-period clock. */
struct tfh_token {
	uint64_t hash;
	int64_t t0, t1;
	uint8_t thread; /* TFH_FACTS_TOKEN_THREADS: that or a higher one */
	uint8_t dir, family;
	uint32_t what; /* launches: the function; copies: bytes, at most UINT32_MAX */
};

/* The last kernel launched into a stream. */
struct tfh_last_call {
	uint32_t stream, function;
	int64_t t; /* 0: none */
};

/* What an op keeps busy. */
enum tfh_work {
	TFH_W_COMPUTE,
	TFH_W_COMM,
	TFH_W_H2D,
	TFH_W_D2H,
	TFH_W_D2D, /* copies on the device and memsets */
	TFH_W_P2P,
	TFH_W_MANAGED,
	TFH_W_COUNT
};

/* Handles of events, or addresses of values, that the process itself recorded or wrote at any time:
 * what waits for another one waits for somebody outside. */
struct tfh_handles {
	uint64_t *v; /* 0: free */
	size_t n, room;
	bool full; /* too many to keep: every handle counts as recorded */
};

/* A function was executed, by a call that nothing encloses. */
struct tfh_exec {
	int64_t t0, t1;
	uint32_t name; /* of the op */
};

/* A call that makes a step another one than usual: loads kernels, or saves the model. */
struct tfh_rare {
	int64_t t0;
	uint32_t thread;
	bool saves;
};

/* Between the ends of two launches. */
struct tfh_quiet {
	int64_t t0, t1;
};

/* The main thread of a child process, as it was seen. */
struct tfh_child_look {
	int64_t t;
	double ns; /* of its time that the look stands for */
	uint32_t pid, place;
	uint8_t state; /* enum tft_look */
};

struct tfh_facts {
	const struct tfh_feed *feed;
	uint32_t process;
	struct tfh_arena *arena;	/* the result's: strings that outlive the judging */
	int64_t first, last, last_work; /* ns; last end of a driving call */
	uint64_t events, launches, consumers, execs, syncs, copies, ranges;
	struct tfh_thread_use *thread; /* by run thread index */
	TFH_VEC(struct tfh_tick) tick; /* batches in order of their delivery */
	TFH_VEC(struct tfh_tick) mark; /* that the job set, by begin */
	uint32_t mark_name;	       /* string of the first of them, 0 none */
	TFH_VEC(struct tfh_series) series;
	uint32_t series_at[TFH_FACTS_SERIES_BUCKETS]; /* by iterator: the last one, from 1 */
	TFH_VEC(struct tfh_tag) tag;
	TFH_VEC(int32_t) tag_of;	 /* by name id: index in tag, -1 not looked up */
	TFH_VEC(struct tfh_piece) longs; /* by begin */
	int64_t long_ns;		 /* all calls at least so long are in it */
	TFH_VEC(struct tfh_token) token; /* by begin */
	TFH_VEC(struct tfh_token) late;	 /* after them, without plain launches */
	bool late_launch, late_lost;	 /* launches that are in neither; others */
	bool one_line; /* one thread makes the line, and its outermost calls follow each other */
	TFH_VEC(struct tfh_stage_use) stage;
	TFH_VEC(int32_t) stage_of; /* by stage id: index in stage, -1 not looked up, -2 unknown */
	double best_bw[8][2][TFH_BINS]; /* bytes/ns by direction, pageable, log2 of size */
	bool cpu_only; /* no launch in the whole run: executing graphs is the compute */
	int64_t cpu_running, cpu_wall;	/* of the driving threads, where CPU clocks were read */
	int64_t phase[TFH_PHASE_COUNT]; /* start-up, 0: not seen */
	const char *loader;		/* a PyTorch DataLoader's get-next, NULL: none */
	struct tfh_last_call last_launch[TFH_FACTS_LAST_LAUNCHES]; /* by stream */
	TFH_VEC(struct tfh_exec) exec;				   /* by end */
	TFH_VEC(int64_t) update;       /* ends of optimizers' steps, as PyTorch names them */
	TFH_VEC(uint8_t) updates;      /* by string: is it such a name? UINT8_MAX: not looked up */
	TFH_VEC(struct tfh_rare) rare; /* by end */
	TFH_VEC(int64_t) call_at;      /* ends of every TFH_FACTS_CALLS_APART-th event */
	int64_t launched;	       /* end of the last launch, INT64_MIN / 2: none yet */
	TFH_VEC(struct tfh_quiet) quiet; /* by time */
	int64_t quiet_ns;		 /* all that are at least so long are in it */
	struct tfh_heap_sum heap;
	double kernel_share; /* of the process's processor time after its start, page faults apart */
	bool much_kernel;    /* it is so much that files are read or written */
	/* What is written to files meanwhile: nothing, so much that copying it is what takes the
	 * time, or so little that the calls are: lines of a log. */
	enum { TFH_WRITES_NOTHING, TFH_WRITES_BYTES, TFH_WRITES_LINES } writes;
	struct tfh_looks *looks;	      /* NULL: no thread was looked at */
	TFH_VEC(struct tfh_child_look) child; /* looks at child processes, in order of time */
	struct tfh_handles recorded;
};

/* survey.c: looks at all calls. The caller frees what it found, also after an error. `arena` takes
 * strings. */
int tfh_find_facts(const struct tfh_feed *feed, uint32_t process, struct tfh_arena *arena,
		   struct tfh_facts *out, struct tfh_err *err);
void tfh_facts_free(struct tfh_facts *facts);

/* piece.c: one call for the time line; false: none of interest. */
bool tfh_event_label(const struct tfh_event *ev, struct tfh_piece *p);
/* A launch in the sequence of launches, copies and waits. */
void tfh_launch_token(const struct tfh_event *ev, struct tfh_token *t);
/* What a driver call is in that sequence; false: not in it. */
bool tfh_token_of(const struct tfh_event *ev, const struct tfh_piece *p, struct tfh_token *t);
/* Calls that execute ops: only outermost ones count (false for others); a get-next run eagerly is
 * input. */
bool tfh_exec_piece(const struct tfh_facts *facts, const struct tfh_event *ev, struct tfh_piece *p);
/* Whether a call belongs to the host's line, as the line wants it: those of driving threads, waits
 * for input, and producers of asynchronous stages (passive). */
bool tfh_line_piece(const struct tfh_facts *facts, struct tfh_piece *p);

/* What a device op keeps busy; TFH_W_COUNT: nothing. */
uint8_t tfh_work_of(const struct tfh_op *op);

/* kernel_time.c: after the calls are known */
void tfh_find_kernel_time(struct tfh_facts *facts);

/* retraced.c: -ENOMEM */
int tfh_find_retraced(struct tfh_facts *facts);

/* handle_set.c; -ENOMEM */
int tfh_handles_add(struct tfh_handles *h, uint64_t handle);
bool tfh_handles_has(const struct tfh_handles *h, uint64_t handle);
/* piece.c: whether a call records an event, or writes a value that a stream may wait for. */
bool tfh_piece_records(const struct tfh_piece *p);

/* stage.c: counts one call of a stage, or their total. */
void tfh_stage_count(struct tfh_stage_time *s, const struct tfh_event *ev);
/* Index of a stage in facts->stage, -1 or -2: not known. */
int32_t tfh_stage_index(const struct tfh_facts *facts, uint32_t id);
/* In a dataset loop inside a graph: the stage that delivers the batch to the body. */
bool tfh_stage_is_loop_child(const struct tfh_facts *facts, uint32_t id);

/* recorded.c: how much of [t0, t1) lies outside of stretches whose records were given up. */
int64_t tfh_recorded_ns(const struct tfh_facts *facts, int64_t t0, int64_t t1);
/* Where the first of them that reaches into [t0, t1) begins, INT64_MAX: none does. */
int64_t tfh_discarded_from(const struct tfh_facts *facts, int64_t t0, int64_t t1);

/* quiet.c: at most so many calls ended behind t0 and up to t1. */
uint64_t tfh_calls_at_most(const struct tfh_facts *facts, int64_t t0, int64_t t1);
/* Whether any launch ended behind t0 and up to t1; true, too, where that is not known. */
bool tfh_launched_in(const struct tfh_facts *facts, int64_t t0, int64_t t1);

/* Seconds that the job's threads together were ready to run and had no processor, in each second;
 * 0 where too little of the run was sampled. */
double tfh_processor_wait(const struct tfh_facts *facts);

#endif
