/*
 * Parts of the analysis and what they hand to each other. One struct tfh_job per analysed process:
 *
 *	survey    pass 1: who drives, which calls could be the step clock, bandwidths, pipeline
 *stages segment   windows of steps out of the survey sweep     pass 2: calls in order of begin
 *time, flattened to one line of segments attribute segments -> causes per window, closed accounting
 *	classify  causes -> class per step and for the run
 *	input     which pipeline stage is slow
 */
#ifndef TFH_ANALYZE_INTERNAL_H
#define TFH_ANALYZE_INTERNAL_H

#include "judge/feed.h"
#include "judge/result.h"
#include "base/arena.h"
#include "model/big.h"

#include <errno.h>

#define TFH_US 1000ll
#define TFH_MS 1000000ll
/* Calls at least so long are kept from the first pass, so that the second needs to look back no
 * further (tfh_job.long_ns): the first of these, doubled while there are many, up to the second. */
#define TFH_LONG_FIRST_NS TFH_MS
#define TFH_LONG_NS (100 * TFH_MS)
/* A pause between two calls below this is the price of calling, above it is the program's own
 * doing. XProf, HTA and peers use 50 us for a long launch. */
#define TFH_GAP_NS (50 * TFH_US)
/* What blocks less of the time than this holds nothing back. */
#define TFH_BLOCKING_SHARE 0.05
/* Cost of one recorded call in the job (bench/hook): for the overhead that the report states, and
 * as the part of each pause between two calls that is the recorder's. */
#define TFH_HOOK_NS 40
/* A launch that takes longer, with a deep queue behind it, waits for room in the queue. */
#define TFH_QUEUE_DEPTH 64
#define TFH_QUEUE_SLOW 8 /* of the last 64 launches */

/* Growing array. */
#define TFH_VEC(type)                                                                              \
	struct {                                                                                   \
		type *v;                                                                           \
		size_t n, cap;                                                                     \
	}
int tfh_vec_grow(void **v, size_t *cap, size_t n, size_t size);
#define TFH_PUSH(vec, ...)                                                                         \
	((vec).n < (vec).cap ||                                                                    \
			 !tfh_vec_grow((void **)&(vec).v, &(vec).cap, (vec).n, sizeof(*(vec).v))   \
		 ? ((vec).v[(vec).n++] = __VA_ARGS__, 0)                                           \
		 : -ENOMEM)
/* The same for arrays that grow with the run (model/big.h); freed by tfh_big_free(). */
#define TFH_PUSH_BIG(vec, ...)                                                                     \
	((vec).n < (vec).cap ||                                                                    \
			 !tfh_big_grow((void **)&(vec).v, &(vec).cap, (vec).n, sizeof(*(vec).v))   \
		 ? ((vec).v[(vec).n++] = __VA_ARGS__, 0)                                           \
		 : -ENOMEM)

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
	uint32_t stage; /* stages: index in tfh_job.stage, passive pieces only */
	uint8_t label;	/* enum tfh_label */
	uint8_t family, dir;
	bool pageable, passive, failed, saves; /* saves: writes a checkpoint */
	float density;			       /* passive: share of [t0, t1) spent in the stage */
	uint64_t number;		       /* order of arrival, to keep the sort stable */
};

/* A batch delivered to a training or other loop, or a step mark. */
struct tfh_tick {
	int64_t t0, t1; /* of the get-next */
	int64_t x0, x1; /* of the call that executes a graph around it, 0 = none */
	uint32_t series, thread;
	bool end;  /* "no more elements": not a batch */
	bool eval; /* mark: of a step that trains nothing */
};

/* One iterator object. */
struct tfh_series {
	uint32_t iterator, stage, group;
	bool loop;			  /* dataset loop inside a graph */
	uint64_t count, contained, execs; /* batches; those inside executing calls; such calls */
	uint32_t before; /* number of the last one of its bucket, from 1; 0: none */
	size_t last;	 /* batch, among the ticks */
	int64_t exec_at; /* begin of the last executing call around one */
	struct {
		uint32_t name;
		int64_t ns;
	} tag[6]; /* functions executed between its batches, by time */
};

/* Iterators of the same program place: the same pipeline feeding the same function. */
struct tfh_group {
	uint64_t key, count, runs;
	uint64_t like;	  /* the same for functions whose names differ in their number only */
	int64_t owned_ns; /* time from its batches to the next batch of any group */
	int64_t wait_ns;
	uint64_t inner; /* batches with another of their iterator behind them */
	int64_t inner_ns, longest;
	uint32_t series; /* a member */
	const char *tag; /* function text, "" eager */
};

/* A function given to TFE_Execute, or a session target. */
struct tfh_tag {
	uint32_t name;
	bool function, getnext, save;
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

/* Pipeline stage: all objects with the same place in the pipeline. */
struct tfh_stage_use {
	const char *prefix; /* without [n] */
	const char *type;   /* last component */
	int32_t parent;	    /* index, -1 root */
	bool async;
	uint32_t parallelism;
	uint64_t calls;
	int64_t total, self;
	int64_t waited; /* exposed input time during which a runner of the parent was in this stage
			 */
	int64_t seen;	/* last moment counted into `waited` */
};

/* One window: `steps` steps that are judged together (1, or the steps of one executed call). */
struct tfh_window {
	int64_t t0, t1;
	uint32_t steps;
	uint32_t launches;
	uint8_t segment;       /* enum tfh_segment */
	bool hole, group, cut; /* cut: ended by something else than the next batch */
	int64_t x1;	       /* group: end of the executing call that begins in the window */
	int64_t last;	       /* group: return of the last get-next in that call */
	int64_t gets;	       /* group: time in get-next between t0 and x1 */
};

/* Whether a window tells what steps are like: steady, whole, closed by the next batch (the last one
 * of an epoch has not waited for any). */
static inline bool tfh_window_counts(const struct tfh_window *w)
{
	return w->segment == TFH_SEGMENT_TRAIN && !w->hole && !w->cut;
}

/* Where a window's time went. Causes carry all but compute and the unattributed rest. What was done
 * while the device had work is tentative until the next wait tells whether the device was busy all
 * the time. */
struct tfh_account {
	int64_t cause[TFH_CAUSE_COUNT], tentative[TFH_CAUSE_COUNT];
	int64_t compute, direct; /* direct: charged without inference about the device */
	int64_t input_in_exec;	 /* group windows: input charged before x1 */
	int64_t d2h_bytes;
	bool compiled, saved;
};

/* Token of the launch sequence, for the launch-period clock. */
#define TFH_TOKEN_THREADS 255
struct tfh_token {
	uint64_t hash;
	int64_t t0, t1;
	uint8_t thread; /* TFH_TOKEN_THREADS: that or a higher one */
	uint8_t dir, family;
	uint32_t what; /* launches: the function; copies: bytes, at most UINT32_MAX */
};

/* Backtraces by time spent in their calls: a newcomer takes the place of the least. */
#define TFH_SITES 8
struct tfh_site_use {
	uint32_t stack; /* 0: free */
	int64_t ns;
	const struct tfh_fn_info *fn;
};

/* Copies below it cost their calls, not their bytes. */
#define TFH_SMALL_COPY (64u << 10)

struct tfh_copy_use {
	const struct tfh_fn_info *fn;
	uint8_t dir;
	bool pageable;
	uint64_t calls, bytes, blocking, small;
	int64_t ns, small_ns;
	struct tfh_site_use site[TFH_SITES];
};

struct tfh_kernel_use {
	uint32_t function, before; /* before: the last one of its bucket, from 1; 0: none */
	uint64_t calls;
};

/* The last kernel launched into a stream. */
#define TFH_LAST_LAUNCHES 64
struct tfh_last_call {
	uint32_t stream, function;
	int64_t t; /* 0: none */
};

#define TFH_SERIES_BUCKETS 1024
#define TFH_KERNEL_BUCKETS 4096
#define TFH_BINS 40
struct tfh_job {
	const struct tfh_feed *feed;
	uint32_t process;
	struct tfh_arena arena; /* strings of the result */
	/* survey */
	int64_t first, last, last_work; /* ns; last end of a driving call */
	uint64_t events, launches, consumers, execs, syncs, copies, marks, ranges;
	struct tfh_thread_use *thread; /* by run thread index */
	TFH_VEC(struct tfh_tick) tick;
	TFH_VEC(struct tfh_tick) mark;
	bool mark_ends; /* marks of the period clock end with the step */
	TFH_VEC(struct tfh_series) series;
	uint32_t series_at[TFH_SERIES_BUCKETS]; /* by iterator: the last one, from 1 */
	TFH_VEC(struct tfh_group) group;
	TFH_VEC(struct tfh_tag) tag;
	TFH_VEC(int32_t) tag_of;	 /* by name id: index in tag, -1 not looked up */
	TFH_VEC(struct tfh_piece) longs; /* by t0 after the survey */
	int64_t long_ns;		 /* all calls at least so long are in it */
	TFH_VEC(struct tfh_token) token;
	TFH_VEC(struct tfh_token) late; /* after them, without plain launches */
	bool late_launch, late_lost;	/* launches that are in neither; others */
	bool one_line; /* one thread makes the line, and its outermost calls follow each other */
	TFH_VEC(struct tfh_stage_use) stage;
	TFH_VEC(int32_t) stage_of; /* by stage id: index in stage, -1 not looked up, -2 unknown */
	double best_bw[8][2][TFH_BINS]; /* bytes/ns by direction, pageable, log2 of size */
	int32_t train_group;		/* -1 none */
	uint32_t alike_loops;		/* that are in it, 0: one */
	uint32_t mark_name;		/* string of the first mark, 0 none */
	/* segment */
	enum tfh_step_clock clock;
	const char *clock_name;
	uint32_t exec_name; /* op that is the clock */
	double per_execution;
	bool grouped;
	TFH_VEC(struct tfh_window) window; /* tiles what is judged, in order */
	int64_t segment_ns[TFH_SEGMENT_COUNT];
	uint32_t segment_n[TFH_SEGMENT_COUNT];
	int64_t lead_in;  /* of the whole trace as one step: not its own work */
	int64_t median;	  /* of a step */
	int64_t stall_ns; /* a longer step stood still, if it hardly computed; 0: none did */
	/* attribute */
	TFH_VEC(struct tfh_step) step; /* by window, times of the whole window */
	bool step_given;	       /* that array belongs to the result */
	int64_t cause_ns[TFH_CAUSE_COUNT], compute_ns, direct_ns,
		train_ns; /* sums of judged windows */
	TFH_VEC(struct tfh_copy_use) copy;
	TFH_VEC(struct tfh_kernel_use) kernel;
	uint32_t kernel_at[TFH_KERNEL_BUCKETS]; /* by function: the last one, from 1 */
	struct tfh_site_use wait_site[TFH_SITES], alloc_site[TFH_SITES], load_site[TFH_SITES];
	uint64_t graph_launches;
	size_t counted;	       /* window of the event counted last */
	uint64_t train_steps;  /* in windows of segment TRAIN */
	uint64_t judged_steps; /* of those that count: what the sums above are over */
	bool cpu_only;	       /* no launch in the whole run: executing graphs is the compute */
	uint64_t recompiles;   /* modules loaded by training steps */
	int64_t recompile_ns;
	int64_t phase[TFH_PHASE_COUNT]; /* start-up, 0: not seen */
	uint64_t mixed_bytes; /* of queued copies that were waited for together with kernels */
	double compute_ran;   /* share of the executing time for which the process had a processor;
				 NAN unknown */
	int64_t cpu_running, cpu_wall; /* of the driving threads, where CPU clocks were read */
	/* classify */
	enum tfh_cause input_cause;
	int32_t guilty;	    /* stage index, -1 */
	const char *loader; /* a PyTorch DataLoader's get-next, NULL: none */
	struct tfh_last_call last_launch[TFH_LAST_LAUNCHES]; /* by stream */
	struct tfh_heap *heap;
	struct tfh_cover *cover; /* NULL: nothing tells what threads did in pauses */
	struct tfh_device *device;
	const struct tfh_meet *meet; /* collectives of all ranks, NULL */
};

/* Above this share of the time without a processor though ready to run, the machine is busy with
 * something else, and little processor time is no proof of waiting. */
#define TFH_CROWDED_SHARE 0.03

/* steps.c: seconds that the job's threads together were ready to run and had no processor, in each
 * second; 0 where too little of the run was sampled. */
double tfh_crowd(const struct tfh_job *job);

/* survey.c */
int tfh_survey(struct tfh_job *job, struct tfh_err *err);
bool tfh_event_label(const struct tfh_event *ev,
		     struct tfh_piece *p); /* false: not a call of interest */
/* What a driver call is in the sequence of launches, copies and waits; false: not in it. */
bool tfh_token_of(const struct tfh_event *ev, const struct tfh_piece *p, struct tfh_token *t);
/* Calls that execute ops: only outermost ones count (false for others); a get-next run eagerly is
 * input. */
bool tfh_exec_piece(struct tfh_job *job, const struct tfh_event *ev, struct tfh_piece *p);

/* heap.c: device memory; wall: length of the run */
struct tfh_heap *tfh_heap_new(void);
void tfh_heap_free(struct tfh_heap *h);
int tfh_heap_event(struct tfh_heap *h, const struct tfh_event *ev, int64_t wall);
const struct tfh_heap_sum *tfh_heap_end(struct tfh_heap *h);

/* stall.c: steps that stood still */
void tfh_find_stalls(struct tfh_job *job, bool device);
bool tfh_is_stall(const struct tfh_job *job, const struct tfh_window *w, int64_t ns,
		  int64_t compute);
void tfh_tell_stalls(struct tfh_job *job, struct tfh_result *r);

/* periodic.c: steps that are slow in turn */
void tfh_find_periodic(struct tfh_job *job, struct tfh_result *r);

/* pattern.c: steps of several kinds, micro-steps */
void tfh_find_patterns(struct tfh_job *job, struct tfh_result *r);

/* startup.c: what the time before the first steady step was for */
void tfh_startup_event(struct tfh_job *job, const struct tfh_event *ev);
void tfh_fill_startup(struct tfh_job *job, struct tfh_result *r);

/* given_up.c: stretches whose records were given up */
/* How much of [t0, t1) lies outside of them. */
int64_t tfh_seen_ns(const struct tfh_job *job, int64_t t0, int64_t t1);
/* Where the first of them that reaches into [t0, t1) begins, INT64_MAX: none does. */
int64_t tfh_given_up_from(const struct tfh_job *job, int64_t t0, int64_t t1);
int tfh_fill_given_up(struct tfh_job *job, struct tfh_result *r);

/* supply.c: how fast batches could come */
void tfh_find_supply(struct tfh_job *job, struct tfh_result *r);

/* stage.c: pipeline stages by place */
int32_t tfh_stage_index(struct tfh_job *job, uint32_t id);
bool tfh_stage_is_loop_child(struct tfh_job *job, uint32_t id);

/* clock.c: iterators into groups, choice of the training group */
void tfh_choose_iterator(struct tfh_job *job);
/* As many batches, but for a few. */
bool tfh_as_many(const struct tfh_group *a, const struct tfh_group *b);
void tfh_tell_alike_loops(struct tfh_job *job, struct tfh_result *r);

/* period.c */
int tfh_find_period(struct tfh_job *job, struct tfh_err *err);

/* named.c: steps of an imported trace by its ranges; 0 or a negative errno */
/* Leaves in job->mark the steps that PyTorch's optimizer ends, if there are three or more. */
int tfh_find_updates(struct tfh_job *job, struct tfh_err *err);
/* Looks whether the period in job->mark is one of steps; if not, puts the calls that it lies in in
 * its place, or nothing, and job->clock accordingly. */
int tfh_check_period(struct tfh_job *job, struct tfh_err *err);

/* segment.c */
int tfh_segment_run(struct tfh_job *job, struct tfh_err *err);
/* job->mark in order of their begin. */
void tfh_sort_marks(struct tfh_job *job);

/* sweep.c */
typedef void (*tfh_seg_fn)(void *arg, int64_t t0, int64_t t1, const struct tfh_piece *p);
struct tfh_sweep;
struct tfh_sweep *tfh_sweep_new(struct tfh_job *job, tfh_seg_fn fn, void *arg);
int tfh_sweep_add(struct tfh_sweep *s, const struct tfh_piece *p);
/* The same where it is known that nothing that comes later begins before the end of this piece;
 * mostly it is handed on at once. */
int tfh_sweep_next(struct tfh_sweep *s, const struct tfh_piece *p);
/* Where nothing else is open or waiting, and the call [t0, t1) begins less than `most` behind what
 * was handed out last, at *from: the call and the pause before it are passed over, for the caller
 * to charge. Otherwise as tfh_sweep_next. */
bool tfh_sweep_pass(struct tfh_sweep *s, int64_t t0, int64_t t1, int64_t most, int64_t *from);
void tfh_sweep_until(struct tfh_sweep *s,
		     int64_t t); /* everything that begins before t has been added */
void tfh_sweep_free(struct tfh_sweep *s);

/* attribute.c */
int tfh_attribute(struct tfh_job *job, struct tfh_err *err);

/* tables.c */
int tfh_count_event(struct tfh_job *job, const struct tfh_event *ev, const struct tfh_piece *p);
/* The same of a kernel's launch that is not captured. */
int tfh_count_launch(struct tfh_job *job, const struct tfh_event *ev);
int tfh_fill_tables(struct tfh_job *job, struct tfh_result *r);
void tfh_fill_last(struct tfh_job *job, struct tfh_result *r);

/* sites.c */
void tfh_site_count(struct tfh_site_use *site, const struct tfh_event *ev);
/* "" where it is not known. */
const char *tfh_site_text(const struct tfh_job *job, const struct tfh_site_use *site);
/* Who makes the calls behind a cause of the host's, NULL where it is not known. */
const char *tfh_site_line(struct tfh_job *job, enum tfh_cause cause);

/* What to do about a cause of the host's, where a trace tells of its functions; NULL. */
const char *tfh_site_advice(struct tfh_job *job, enum tfh_cause cause);

/* cover.c: what threads did in their pauses, by the ranges of an imported trace */
enum tfh_covered {
	TFH_COVERED_NOT,      /* nothing tells, or of less than half of it */
	TFH_COVERED_LAUNCH,   /* within ops that launch */
	TFH_COVERED_CODE,     /* functions of Python, ops that compute on the host */
	TFH_COVERED_OTHER,    /* waiting; an op that launches, but takes too long for that */
	TFH_COVERED_EXCHANGE, /* data goes to other ranks */
};
int tfh_cover_find(struct tfh_job *job, struct tfh_err *err);
void tfh_cover_free(struct tfh_cover *c);
enum tfh_covered tfh_covered_by(const struct tfh_job *job, uint32_t thread, int64_t t0, int64_t t1);
/* Whose ranges tell of a pause: the thread's own; where it has none, it waited to be given work,
 * and another's, if only one other ran the program's code most of that time. */
uint32_t tfh_cover_thread(const struct tfh_job *job, uint32_t thread, int64_t t0, int64_t t1);
/* Of a process without a device: what all its threads did from t0 on, the same until *until (at
 * most t1). CODE: ops were executed. */
enum tfh_covered tfh_covered_line(const struct tfh_job *job, int64_t t0, int64_t t1,
				  int64_t *until);
/* [t0, t1) of that thread is charged to a cause: its functions get their parts of it, each
 * without what it calls but for libraries' functions. */
void tfh_cover_count(struct tfh_job *job, uint32_t thread, int64_t t0, int64_t t1,
		     enum tfh_cause cause);
/* What was charged since is of a window that counts, or not; all before is forgotten. */
void tfh_cover_settle(struct tfh_job *job, bool counts);
void tfh_cover_restart(struct tfh_job *job);
/* The functions with the largest parts. */
#define TFH_PAUSE_SITES 3
struct tfh_pause_site {
	const char *name;
	int64_t ns;
};
uint32_t tfh_cover_sites(const struct tfh_job *job, enum tfh_cause cause,
			 struct tfh_pause_site out[TFH_PAUSE_SITES]);
int64_t tfh_cover_ns(const struct tfh_job *job, enum tfh_cause cause); /* of all functions */

/* frames.c */
enum tfh_frame { TFH_FRAME_NEW, TFH_FRAME_USER, TFH_FRAME_LIBRARY, TFH_FRAME_WAITS };
enum tfh_frame tfh_frame_of(const char *name);

/* input.c */
void tfh_input_judge(struct tfh_job *job);
bool tfh_input_async(struct tfh_job *job);
int tfh_fill_input(struct tfh_job *job, struct tfh_result *r);

/* account.c: the accounts of windows that are not settled yet */
struct tfh_ledger;
struct tfh_ledger *tfh_ledger_new(struct tfh_job *job);
void tfh_ledger_free(struct tfh_ledger *l);
/* Charges [t0, t1) to a cause (TFH_CAUSE_NONE: compute), window by window. */
void tfh_charge(struct tfh_ledger *l, int64_t t0, int64_t t1, enum tfh_cause cause, bool tentative,
		bool direct);
/* A pause of the driving thread; what it was shows when its window ends. `code`: known to be the
 * program's. */
void tfh_charge_gap(struct tfh_ledger *l, int64_t t0, int64_t t1, bool tentative, bool code);
/* Work of the step's main line ended at t1; ns: how much of it. */
void tfh_note_work(struct tfh_ledger *l, int64_t t1, int64_t ns);
/* Everything tentative was compute (or the given transfer) if the device was busy, else what the
 * host did. */
void tfh_settle(struct tfh_ledger *l, bool busy, enum tfh_cause device);
/* The account of the window around t, NULL outside. */
struct tfh_account *tfh_account_at(struct tfh_ledger *l, int64_t t);
int tfh_ledger_end(struct tfh_ledger *l);

/* classify.c */
enum tfh_class tfh_class_of(const double part[TFH_PART_COUNT], double total);
enum tfh_cause tfh_largest_cause(const int64_t cause[TFH_CAUSE_COUNT], enum tfh_class cls);
int tfh_classify(struct tfh_job *job, struct tfh_result *r);
/* After the what-ifs, with device times and calls: the class that blocks most may gain nothing by
 * going (code that runs while the next batch is made elsewhere); one that blocks 5 %, and half as
 * much, and gains 5 % by going is the verdict then, and of the steps that it blocks so. Less than
 * half speaks against the replay: it may not know all that waits for the first. -ENOMEM. */
int tfh_prefer_gain(const struct tfh_job *job, struct tfh_result *r);

/* steps.c: corrections that need more than one step */
void tfh_idle_compute(struct tfh_job *job);
void tfh_smooth_classes(struct tfh_job *job);

/* whatif.c, text.c */
void tfh_whatif(struct tfh_job *job, struct tfh_result *r);
void tfh_explain(struct tfh_job *job, struct tfh_result *r);

/* stats.c */
/* A remark of the report, which keeps the pointer; without a place for it, it is left out. */
void tfh_remark(struct tfh_result *r, const char *text);
const char *tfh_text(struct tfh_job *job, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* May sort v. */
double tfh_quantile(double *v, size_t n, double q);
/* The k-th smallest, from 0. May sort v. */
double tfh_select(double *v, size_t n, size_t k);

#endif
