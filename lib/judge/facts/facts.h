/*
 * The first phase: what one pass over all calls of a process finds. Which threads drive the job,
 * candidates for its step clock, the bandwidth of copies, the stages of its input pipelines, and
 * calls so long that the second pass must know of them before they end. Later phases do not change
 * it.
 */
#ifndef TFH_JUDGE_FACTS_FACTS_H
#define TFH_JUDGE_FACTS_FACTS_H

#include "base/arena.h"
#include "judge/facts/sample_shares.h"
#include "judge/facts/makers.h"
#include "judge/feed.h"
#include "judge/numbers.h"
#include "judge/result.h"
#include "model/vec.h"

/* The activity of a thread. If several threads are active at the same time, the higher value
 * counts. */
enum tfh_activity {
	TFH_ACTIVITY_GAP = 0,
	TFH_ACTIVITY_EXEC,   /* TFE_Execute, TF_SessionRun */
	TFH_ACTIVITY_INPUT,  /* get-next of a consumer */
	TFH_ACTIVITY_OTHER,  /* any other driver call */
	TFH_ACTIVITY_LAUNCH, /* launch, memset, copy that only queues */
	TFH_ACTIVITY_ALLOC,
	TFH_ACTIVITY_MODULE,
	TFH_ACTIVITY_COPY, /* copy that may block */
	TFH_ACTIVITY_SYNC, /* waits for the device */
};

/* One call on the time line. */
struct tfh_piece {
	int64_t t0, t1;
	uint64_t bytes; /* copies */
	/* of calls that record or wait for an event; copies: the address in host memory */
	uint64_t handle;
	uint32_t thread, stream;
	uint32_t stage;	  /* passive pieces: the stage's id; on the line, its index */
	uint8_t activity; /* enum tfh_activity */
	uint8_t family, dir;
	bool pageable, passive, failed;
	bool saves;    /* a checkpoint */
	bool logs;     /* writes a summary, or prints */
	bool eager;    /* a single op that assigns no variable */
	bool makes;    /* compiles: first execution of a retraced function, or an input pipeline */
	bool iterator; /* makes an iterator */
	bool writes;   /* writes a value that a stream may wait for, at address `handle` */
	float density; /* passive pieces: share of [t0, t1) spent in the stage */
	uint64_t number; /* order of arrival, which keeps the sort stable */
};

/* A possible boundary of steps: a batch delivered to a training or other loop, or a step mark. */
struct tfh_boundary {
	int64_t t0, t1; /* of the get-next */
	int64_t x0, x1; /* of the call that executes a graph around it; 0: none */
	uint32_t series, thread;
	bool end;   /* "no more elements" instead of a batch */
	bool eval;  /* mark: the step does not train */
	bool left;  /* mark: the next mark's number is higher by more than one */
	bool more;  /* a further batch of the step that the previous batch began */
	bool fresh; /* of an iterator that was made since the batch before */
};

/* One iterator object. */
struct tfh_series {
	uint32_t iterator, stage;
	int32_t root; /* stage as an index of tfh_facts.stage, -1: unknown */
	bool loop;    /* a dataset loop inside a graph */
	bool tests;   /* its batches are not trained with */
	bool skipped; /* nothing was done with them, and training follows */
	bool adapts;  /* they fit a preprocessing layer, not the model */
	bool goes_on; /* continues an iterator that an evaluation interrupted */
	/* count: batches; contained: those inside executing calls; execs: such calls. */
	uint64_t count, contained, execs;
	uint64_t ops;	 /* executed one by one between its batches */
	uint32_t before; /* hash chain: index + 1 of the previous one in its bucket; 0: none */
	size_t last;	 /* index of its last batch among the batches */
	int64_t exec_at; /* begin of the last executing call around a batch */
	struct {
		uint32_t name, calls;
		int64_t ns;
	} tag[TFH_FACTS_SERIES_TAGS]; /* functions executed between its batches, with their time */
};

/* A function given to TFE_Execute, or a session target. */
struct tfh_tag {
	uint32_t name;
	bool function, getnext, save, log;
	bool backward; /* PyTorch's backward pass */
	bool updates;  /* assigns a variable */
	bool pipeline; /* makes a data set or an iterator, whose graph is optimised and compiled */
	bool iterator; /* makes an iterator */
	bool batches;  /* it fetches batches itself */
	/* One of many functions with the same base name, retraced for each shape or value. Number
	 * of calls of all of them, and the base name. */
	bool retraced;
	uint64_t base, all_count;
	int64_t all_ns;
	int64_t first, first_ns; /* begin of its first execution, and its time */
	uint64_t count;
	int64_t ns;
	uint32_t thread;
};

/* A stretch of a thread in which it makes and writes summaries. */
struct tfh_logged {
	int64_t t0, t1;
	uint32_t thread;
};

struct tfh_thread_use {
	uint64_t launches, driver, execs, gets;
	uint64_t ops;	       /* executed one by one, without a device */
	int64_t exec_ns, last; /* last: end of its last call that works or waits */
	int64_t outermost;     /* end of its last outermost call */
	int64_t updated;       /* end of its last function or update since a batch, 0: none */
	bool overlap;	       /* its outermost calls overlap */
	/* A driving thread: its calls make the step's time line. */
	bool drives;
	bool python;	/* runs Python, by the stacks of its first calls that have one */
	uint8_t stacks; /* of those that were looked at */
	/* readings of its CPU clock */
	bool cpu_open; /* the last reading may belong to a pause */
	int64_t last_cpu_t, last_cpu, open_wall, open_run;
	int64_t cpu_running, cpu_wall; /* in pauses, ns: time on a CPU, and wall time */
};

/* Time of a stage. */
struct tfh_stage_time {
	uint64_t calls;
	int64_t total, self; /* ns */
};

/* A pipeline stage: all objects at the same position of the pipeline. */
struct tfh_stage_use {
	const char *prefix; /* its path without [n] */
	const char *type;   /* last component of the path */
	int32_t parent;	    /* index of the stage that consumes its elements, -1: root */
	bool async;
	uint32_t parallelism;
	const char *maker;	    /* the op that made it; NULL: not known */
	uint32_t number;	    /* stages that were made before it */
	struct tfh_stage_time time; /* over the whole run */
};

/* An op that made a stage. */
struct tfh_made_stage {
	const char *op;
	uint32_t stack; /* of the program */
};

/* The common properties of all calls in the sequence of launches,
 * copies and waits that differ only in their times. */
struct tfh_token_kind {
	uint64_t hash;
	uint64_t rough; /* of launches: the same for all grids of a function */
	/* Launches: the function; graphs: their kernels; copies: bytes, at most UINT32_MAX. */
	uint32_t what;
	uint8_t thread; /* TFH_FACTS_TOKEN_THREADS: that thread or a higher one */
	uint8_t dir, family;
	uint8_t bucket; /* of launches: a small hash of the function */
};

/* Element of the sequence in which the launch period is found. There may be a million, which are
 * read several times, so they are small. */
struct tfh_token {
	int64_t t0;
	int64_t ns : TFH_FACTS_TOKEN_BITS; /* the duration, capped at the largest value */
	uint64_t kind : 64 - TFH_FACTS_TOKEN_BITS;
};

/* A token that is not a plain launch, and the launches between it and the one before: sums over
 * their kinds. */
struct tfh_stop {
	uint64_t exact, rough; /* of tfh_token_kind.hash and .rough */
	uint32_t at;	       /* index of the token */
};

/* The last kernel launched into a stream. */
struct tfh_last_call {
	uint32_t stream, function;
	int64_t t; /* 0: none */
};

/* The engine that an op keeps busy. */
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

/* Handles of events, or addresses of values, that the process itself recorded or wrote at any time.
 * A stream that waits for any other one waits for another process or machine. */
struct tfh_handles {
	uint64_t *v; /* 0: free */
	size_t n, room;
	bool full; /* too many to store: every handle counts as recorded */
};

/* Flag in a function's name: the rest is the number of a string,
 * the range around an execution of one of XLA's programs. */
#define TFH_FACTS_PROGRAM (UINT32_C(1) << 31)

/* An execution of a function by an outermost call, or of a program. */
struct tfh_exec {
	int64_t t0, t1;
	uint32_t name;		/* name of the op, or of a program's range with TFH_FACTS_PROGRAM */
	uint32_t thread, stack; /* stack: of a backward pass, where it was read; 0: unknown */
};

/* An optimizer's step, by PyTorch's range around it. */
struct tfh_update {
	int64_t t0, t1;
};

/* A call that makes its step unusual: loads kernels, or saves the model. */
struct tfh_rare {
	int64_t t0;
	uint32_t thread;
	bool saves;
};

/* A sample that shows loops. */
struct tfh_looped_sample {
	int64_t t;
	uint32_t thread, place, n; /* n: loops */
};

/* Time between the ends of two launches. */
struct tfh_quiet {
	int64_t t0, t1;
};

/* A thread that held a mutex while another one waited for it: whether the holder ran, the address
 * at which the waiting thread asked for the mutex, and the function with which the holder began; 0:
 * not known. */
struct tfh_held_lock {
	uint32_t name, tid;
	bool runs;
	uint64_t caller, begins, samples;
	double ns;
};

struct tfh_facts {
	const struct tfh_feed *feed;
	uint32_t process;
	struct tfh_arena *arena;	/* of the result: for strings that outlive the analysis */
	int64_t first, last, last_work; /* run ns; last_work: of the driving threads' last work */
	uint64_t events, launches, consumers, execs, ranges, exchanges;
	struct tfh_thread_use *thread;	    /* by index of the thread in the run */
	TFH_VEC(struct tfh_boundary) batch; /* batches in order of delivery */
	TFH_VEC(struct tfh_boundary) mark;  /* step marks set by the job, by begin */
	bool iterator_made;		    /* during the survey: since the last batch */
	/* Most batches are the first of an iterator that is made for them, over a data set that is
	 * kept: each starts the pipeline anew. */
	bool restarts;
	uint32_t mark_name;   /* string id of the first mark, 0: none */
	uint64_t mark_number; /* of the last mark */
	size_t marks_left;    /* how many marks have `left` */
	TFH_VEC(struct tfh_series) series;
	/* Hash buckets by iterator: index + 1 of the last one. */
	uint32_t series_at[TFH_FACTS_SERIES_BUCKETS];
	TFH_VEC(struct tfh_tag) tag;
	TFH_VEC(int32_t) tag_of;	     /* by name id: index in tag, -1 not looked up */
	TFH_VEC(struct tfh_piece) longs;     /* long calls, by begin */
	int64_t long_ns;		     /* `longs` holds all calls at least so long */
	TFH_VEC(struct tfh_token_kind) kind; /* in order of their first call */
	uint32_t *kind_at;		     /* hash table of them: index + 1, 0: free */
	size_t kind_room;		     /* its size, a power of two */
	struct {
		uint64_t w[2];		   /* of the launches */
		uint32_t kind;		   /* + 1, 0: free */
	} kind_near[TFH_FACTS_NEAR_KINDS]; /* of recent launches, so that most need no hash */
	TFH_VEC(struct tfh_token) token;   /* the first ones, by begin */
	/* Stands for all kernels that are made for a single launch each; 0: none. */
	uint32_t remade;
	/* The largest number of kernels of nearly one name that replaced one another; 0: none. */
	uint32_t made_anew;
	bool eager;			/* the launches are ops that a processor executed */
	int64_t last_exec;		/* when the last op that takes no batch began */
	bool token_mixed;		/* the calls did not arrive in order of their begin */
	TFH_VEC(struct tfh_stop) stop;	/* in order; the last one represents the end */
	TFH_VEC(struct tfh_token) late; /* later ones, without plain launches */
	/* `token` and `late` together lack launches; other tokens. */
	bool late_launch, late_lost;
	/* A single thread makes the time line, and its outermost calls do not overlap. */
	bool one_line;
	TFH_VEC(struct tfh_stage_use) stage;
	TFH_VEC(int32_t) stage_of; /* by stage id: index in stage, -1 not looked up, -2 unknown */
	TFH_VEC(struct tfh_made_stage) made; /* in order */
	/* Best bandwidth seen, bytes/ns, by direction, pageable and log2 of size. */
	double best_bw[8][2][TFH_BINS];
	bool cpu_only; /* no launch in the whole run: graphs are computed on the CPU */
	int64_t cpu_running, cpu_wall;	/* of the driving threads, if their CPU clocks were read */
	int64_t phase[TFH_PHASE_COUNT]; /* begin of each start-up phase, 0: not seen */
	const char *loader;		/* name of a PyTorch DataLoader's get-next, NULL: none */
	bool told_ends; /* the ends of PyTorch's iterators that train are recorded */
	/* last launch into each stream */
	struct tfh_last_call last_launch[TFH_FACTS_LAST_LAUNCHES];
	TFH_VEC(struct tfh_exec) exec;	   /* by end */
	TFH_VEC(struct tfh_update) update; /* by end */
	TFH_VEC(struct tfh_exec) program; /* executions of XLA's programs by one thread, by begin */
	TFH_VEC(uint8_t) range_name;	  /* by string: what a range of this name is */
	TFH_VEC(struct tfh_rare) rare;	  /* by end */
	TFH_VEC(struct tfh_logged) logged; /* by end */
	TFH_VEC(int64_t) loading; /* begins of long launches that were the first of their kernel */
	TFH_VEC(int64_t) call_at; /* end of every TFH_FACTS_CALLS_APART-th event */
	uint64_t launches_loaded; /* launches before the last module was loaded */
	uint64_t graph_launches;
	int64_t launched;		 /* end of the last launch, INT64_MIN / 2: none yet */
	TFH_VEC(struct tfh_quiet) quiet; /* long intervals without a launch, in order */
	int64_t quiet_ns;		 /* `quiet` holds all that are at least this long */
	struct tfh_heap_sum heap;
	/* Share of the process' CPU time after its start that the kernel used, without page
	 * faults */
	double kernel_share;
	bool much_kernel; /* large enough that the process reads or writes files */
	/* What is written to files at the same time: nothing; so much that copying takes the time;
	 * or so little that the calls take it, as with lines of a log. */
	enum { TFH_WRITES_NOTHING, TFH_WRITES_BYTES, TFH_WRITES_LINES } writes;
	struct tfh_stack_samples *samples; /* samples of threads; NULL: there are none */
	/* Samples of driving threads that show loops of Python, in order of time, and the loops;
	 * of very many, every `looped_every`-th. */
	TFH_VEC(struct tfh_looped_sample) looped;
	TFH_VEC(struct tfh_start_loop) loop;
	uint32_t looped_every, looped_skip;
	/* Samples of other threads and of child processes, in order of time. */
	TFH_VEC(struct tfh_child_sample) child;
	TFH_VEC(struct tfh_held_lock) held;
	/* Threads that hold Python's global lock mostly run functions of the input pipeline
	 * (py_function, generators): waiting for the lock is waiting for input. */
	bool lock_feeds;
	/* Such threads mostly write a log (TensorBoard's writer): waiting for the lock is part of
	 * logging. */
	bool lock_logs;
	/* Other threads at work mostly run functions of the program that a library's threads call,
	 * other than a pipeline's (JAX's pure_callback, py_function in a model): waiting for
	 * another thread is waiting for such a callback. */
	bool calls_back;
	/* Other threads or child processes were often at work, so that they may make the
	 * batches. */
	bool makers;
	bool workers; /* child processes were */
	/* Threads that the program started were. If it waits for a lock, they hold it, rather than
	 * another process. */
	bool threads;
	/* Child processes wait for the program for a considerable part of their time, each at a
	 * pipe of its own. What they send depends on what they are sent (the actions of this step),
	 * so they cannot work ahead as a loader's workers do. */
	bool told;
	/* Child processes work only while the program waits for them, and mostly at lines at which
	 * it works, too: they are the other end of an exchange. */
	bool answers;
	/* While a driving thread waited for another thread, threads other than the driving ones
	 * mostly ran: its wait is their work. */
	bool others_run;
	/* Without a device, threads other than the driving ones execute most ops, one by one:
	 * replicas of a step that was not compiled. A driving thread that waits for a thread waits
	 * for these. */
	bool others_launch;
	bool peer;	      /* the device of another process of the run ran about as many ops */
	bool crowded;	      /* the driving threads were often ready to run without a CPU */
	double delay_per_run; /* delay per second of running; 0: hardly any */
	struct tfh_handles recorded;
};

/* survey.c: reads all calls. The caller frees the result, also after an error. Strings are
 * allocated from `arena`. */
int tfh_find_facts(const struct tfh_feed *feed, uint32_t process, struct tfh_arena *arena,
		   struct tfh_facts *out, struct tfh_err *err);
void tfh_facts_free(struct tfh_facts *facts);

/* piece.c: converts a call for the time line; false if it is of no interest. */
bool tfh_piece_of(const struct tfh_event *ev, struct tfh_piece *p);
/* What is known of an executed op or function; NULL: nothing. */
static inline const struct tfh_tag *tfh_tag_of(const struct tfh_facts *facts, uint32_t name)
{
	return name < facts->tag_of.n && facts->tag_of.v[name] >= 0
		       ? &facts->tag.v[facts->tag_of.v[name]]
		       : NULL;
}
/* range_names.c: the name of an executed function or program, and its length */
const char *tfh_function_name(const struct tfh_facts *facts, uint32_t name, size_t *n);
/* The same without TensorFlow's prefix. */
const char *tfh_graph_name(const struct tfh_facts *facts, uint32_t name, size_t *n);
/* Nor its number: "train_step" of __inference_train_step_1234. Lives as long as the facts. */
const char *tfh_graph_base(const struct tfh_facts *facts, uint32_t name);
/* Length of a name of n bytes without the number at its end, which differs between the functions
 * that TensorFlow makes of one of Python, as when it is retraced for a smaller last batch. */
size_t tfh_unnumbered(const char *name, size_t n);
/* token.c: the kind of a driver call in the sequence of launches, copies and waits;
 * false if it is not part of the sequence. */
bool tfh_token_kind(const struct tfh_event *ev, const struct tfh_piece *p,
		    struct tfh_token_kind *out);
/* eager.c: whether an executed call is a single op, and of no pipeline. */
bool tfh_is_single_op(const struct tfh_facts *facts, const struct tfh_event *ev);
/* eager.c: the kind of an op that is executed by itself; false if the call is not such an op. */
bool tfh_eager_kind(const struct tfh_facts *facts, const struct tfh_event *ev,
		    struct tfh_token_kind *out);
/* Whether PyTorch makes the steps. */
bool tfh_uses_torch(const struct tfh_facts *facts);
/* Whether the processor computes op by op: every op runs once or a few times a step. */
bool tfh_op_by_op(const struct tfh_facts *facts);
/* Whether TensorFlow executes functions, each of them with fewer ops around it than a step has
 * launches. */
bool tfh_executes_graphs(const struct tfh_facts *facts);
/* The kind's index in facts->kind, to which it is added; UINT32_MAX when out of memory. */
uint32_t tfh_kind_number(struct tfh_facts *facts, const struct tfh_token_kind *kind);
/* The same for a launch by a thread. */
uint32_t tfh_launch_kind(struct tfh_facts *facts, const struct tfh_event *ev, uint32_t thread);
/* Fills facts->stop. 0 or -ENOMEM */
int tfh_find_stops(struct tfh_facts *facts);
/* The launches in [t0, t1) as far as the sequence holds them; a graph counts as several. */
uint64_t tfh_launches_in(const struct tfh_facts *facts, int64_t t0, int64_t t1);
/* Sets the fields that follow from family, function and hash. */
void tfh_kind_complete(struct tfh_token_kind *kind);
static inline uint8_t tfh_token_thread(uint32_t thread)
{
	return thread < TFH_FACTS_TOKEN_THREADS ? (uint8_t)thread : TFH_FACTS_TOKEN_THREADS;
}
static inline struct tfh_token tfh_token_make(int64_t t0, int64_t t1, uint32_t kind)
{
	const int64_t most = (1ll << (TFH_FACTS_TOKEN_BITS - 1)) - 1;
	int64_t ns = t1 - t0;

	ns = ns < most ? ns : most;
	return (struct tfh_token){.t0 = t0, .ns = ns > -most ? ns : -most, .kind = kind};
}
static inline int64_t tfh_token_end(const struct tfh_token *t)
{
	return t->t0 + t->ns;
}
/* The frames of a place, innermost first; returns their number, 0: unknown. */
static inline uint32_t tfh_frames_at(const struct tfh_facts *facts, uint32_t place,
				     struct tfh_model_line frame[TFH_VERDICT_FRAMES])
{
	const struct tfh_feed *f = facts->feed;

	return f->place && place
		       ? f->place(f->arg, facts->process, place, frame, TFH_VERDICT_FRAMES)
		       : 0;
}
static inline const struct tfh_token_kind *tfh_kind_of(const struct tfh_facts *facts,
						       const struct tfh_token *t)
{
	return &facts->kind.v[t->kind];
}
static inline bool tfh_is_launch(const struct tfh_token_kind *k)
{
	return tfh_family_launches(k->family);
}
/* A driver loads a kernel's code when the kernel is launched for the first time, which makes that
 * launch a long one. The first function notes such a launch, the second recognises it; both make
 * it an ACTIVITY_MODULE. */
int tfh_note_loading(struct tfh_facts *facts, struct tfh_piece *p, bool first);
void tfh_loading_piece(const struct tfh_facts *facts, struct tfh_piece *p);
/* An executed op or function, with its tag; 0 or -ENOMEM. */
int tfh_logged_event(struct tfh_facts *facts, const struct tfh_event *ev,
		     const struct tfh_tag *tag);
/* Whether an executed op makes what a summary then writes. */
bool tfh_is_logged(const struct tfh_facts *facts, const struct tfh_piece *p);
/* All events have been seen: marks the long calls. */
void tfh_end_logged(struct tfh_facts *facts);
/* Converts a call that executes ops; false unless it is outermost. An eagerly executed get-next
 * becomes input. */
bool tfh_exec_piece(const struct tfh_facts *facts, const struct tfh_event *ev, struct tfh_piece *p);
/* Whether a call belongs to the host line, in the form that the line needs: calls of driving
 * threads, waits for input, and producers of asynchronous stages (passive). */
bool tfh_line_piece(const struct tfh_facts *facts, struct tfh_piece *p);

/* The engine that a device op keeps busy; TFH_W_COUNT: none. */
uint8_t tfh_work_of(const struct tfh_op *op);

/* kernel_time.c: called after the survey */
void tfh_find_kernel_time(struct tfh_facts *facts);

/* retraced.c: 0 or -ENOMEM */
int tfh_find_retraced(struct tfh_facts *facts);

/* handle_set.c: 0 or -ENOMEM */
int tfh_handles_add(struct tfh_handles *h, uint64_t handle);
bool tfh_handles_has(const struct tfh_handles *h, uint64_t handle);
/* piece.c: whether a call records an event or writes a value that a stream may wait for. */
bool tfh_piece_records(const struct tfh_piece *p);

/* stage.c: adds one call of a stage, or the sum of several. */
void tfh_stage_count(struct tfh_stage_time *s, const struct tfh_event *ev);
/* Index of a stage in facts->stage; -1 or -2 if unknown. */
int32_t tfh_stage_index(const struct tfh_facts *facts, uint32_t id);
/* Whether this is the stage that delivers the batch to the body of a dataset loop inside a
 * graph. */
bool tfh_stage_is_loop_child(const struct tfh_facts *facts, uint32_t id);
/* made_stages.c: number of the stack at which the program made a stage; 0: not known. */
uint32_t tfh_stage_stack(const struct tfh_facts *facts, const struct tfh_stage_use *s);

/* recorded.c: the part of [t0, t1), ns, outside of spans whose records were discarded. */
int64_t tfh_recorded_ns(const struct tfh_facts *facts, int64_t t0, int64_t t1);
/* Begin of the first such span that overlaps [t0, t1); INT64_MAX if none does. */
int64_t tfh_discarded_from(const struct tfh_facts *facts, int64_t t0, int64_t t1);

/* quiet.c: upper bound of the calls that ended in (t0, t1]. */
uint64_t tfh_calls_at_most(const struct tfh_facts *facts, int64_t t0, int64_t t1);
/* Whether a launch ended in (t0, t1]; also true if unknown. */
bool tfh_launched_in(const struct tfh_facts *facts, int64_t t0, int64_t t1);

/* The machine samples of the judged process; returns their number. */
static inline uint32_t tfh_machine_samples(const struct tfh_facts *facts,
					   const struct tfh_sample **s)
{
	const struct tfh_feed *f = facts->feed;

	return f->samples ? f->samples(f->arg, facts->process, s) : 0;
}
/* Scheduling delay: seconds per second of [t0, t1), or of the run if too little of that was
 * sampled, in which the job's threads together were runnable but not on a CPU; 0 if too little of
 * the run was sampled. */
double tfh_processor_wait(const struct tfh_facts *facts, int64_t t0, int64_t t1);
/* The share of [t0, t1) in which a driving thread was runnable but not on a CPU, for the thread
 * with the largest; 0 if too little was sampled. */
double tfh_driver_wait(const struct tfh_facts *facts, int64_t t0, int64_t t1);
/* Whether the thread with this index in the process drives the job. */
bool tfh_index_drives(const struct tfh_facts *facts, uint32_t index);
/* CPU seconds of the driving threads between two samples. */
double tfh_drivers_between(const struct tfh_facts *facts, const struct tfh_sample *from,
			   const struct tfh_sample *to);
/* answers.c: sets `answers`. */
void tfh_find_answers(struct tfh_facts *facts);
/* others.c: sets `others_launch`; `others_run`. */
void tfh_find_launching_others(struct tfh_facts *facts);
void tfh_find_others(struct tfh_facts *facts);
/* Sets `crowded` and `delay_per_run`. */
void tfh_find_crowd(struct tfh_facts *facts);
/* Whether the driving threads' pauses were mostly the program's code: by their CPU clocks, the
 * threads ran or were ready to run. */
bool tfh_pauses_run(const struct tfh_facts *facts);

#endif
