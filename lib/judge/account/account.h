/*
 * The third phase: where the time of each window went. A window has one account: with device times
 * by the device's line (device.c and what it names), else by the host's (calls and pauses:
 * host_line.c over sweep.c, accounts in ledger.c).
 */
#ifndef TFH_JUDGE_ACCOUNT_H
#define TFH_JUDGE_ACCOUNT_H

#include "judge/facts/cover.h"
#include "judge/loops/loops.h"

/* Where a window's time went. Causes carry all but compute and the unattributed rest. */
struct tfh_account {
	int64_t cause[TFH_CAUSE_COUNT];
	int64_t compute, direct; /* direct: charged without inference about the device */
};

/* Charges ns to a cause, TFH_CAUSE_NONE: compute. All that is in an account comes in here. */
static inline void tfh_account_add(struct tfh_account *a, int64_t ns, enum tfh_cause cause,
				   bool direct)
{
	*(cause == TFH_CAUSE_NONE ? &a->compute : &a->cause[cause]) += ns;
	a->direct += direct ? ns : 0;
}

/* What a stage of tf.data did in training steps, by its index in tfh_facts.stage. */
struct tfh_stage_account {
	struct tfh_stage_time time;
	int64_t waited; /* exposed input time during which a runner of its consumer was in it */
	int64_t seen;	/* last moment counted into `waited` */
};

struct tfh_matches;
struct tfh_pauses;

/* Windows of one kind that are no usual steps. */
struct tfh_others {
	struct tfh_account sum;
	int64_t ns, longest;
	uint64_t n, late; /* late: in the second half of all windows */
	uint64_t steps;
};

/* What became of a window. */
struct tfh_use {
	uint32_t launches;
	uint8_t segment; /* enum tfh_segment: its window's, or what else it turned out to be */
	char tier;	 /* 'A' 'B', 'C' without device times */
};

/* A backtrace, and the time spent in its calls. */
struct tfh_site_use {
	uint32_t stack; /* 0: free */
	int64_t ns;
	const struct tfh_fn_info *fn;
};

struct tfh_copy_use {
	const struct tfh_fn_info *fn;
	uint8_t dir;
	bool pageable;
	uint64_t calls, bytes, blocking, small;
	int64_t ns, small_ns;
	struct tfh_site_use site[TFH_ACCOUNT_SITES];
};

struct tfh_kernel_use {
	uint32_t function, before; /* before: the last one of its bucket, from 1; 0: none */
	uint64_t calls;
};

/* One process. What the earlier phases found is named here, not owned. */
struct tfh_accounts {
	const struct tfh_facts *facts;
	const struct tfh_loops *loops;
	const struct tfh_cover *cover;	   /* NULL: nothing tells what threads did in pauses */
	const struct tfh_matches *matches; /* collectives of all ranks, NULL */
	struct tfh_use *use;		   /* by window */
	struct tfh_stage_account *stage;   /* by index of stage */
	struct tfh_pauses *pauses;	   /* functions that the pauses were spent in, NULL */
	bool timed;	  /* there are training windows with device times: sums are of those */
	bool compiles;	  /* looks in training windows saw it */
	int64_t stall_ns; /* a longer step stood still, if it hardly computed; 0: none did */
	/* what the pass over calls and ops makes */
	TFH_VEC(struct tfh_step) step; /* by window, times of the whole window */
	int64_t cause_ns[TFH_CAUSE_COUNT], compute_ns, direct_ns,
		train_ns; /* sums of judged windows */
	struct tfh_others other[TFH_SEGMENT_COUNT];
	TFH_VEC(struct tfh_copy_use) copy;
	TFH_VEC(struct tfh_kernel_use) kernel;
	uint32_t kernel_at[TFH_ACCOUNT_KERNEL_BUCKETS]; /* by function: the last one, from 1 */
	struct tfh_site_use wait_site[TFH_ACCOUNT_SITES], alloc_site[TFH_ACCOUNT_SITES],
		load_site[TFH_ACCOUNT_SITES], pause_site[TFH_ACCOUNT_SITES];
	uint64_t graph_launches;
	size_t counted;	       /* window of the event counted last */
	uint64_t train_steps;  /* in windows of segment TRAIN */
	uint64_t judged_steps; /* of those that count: what the sums above are over */
	uint64_t recompiles;   /* modules loaded by training steps */
	int64_t recompile_ns;
	uint64_t mixed_bytes; /* of queued copies that were waited for together with kernels */
	double compute_ran;   /* share of the executing time for which the process had a processor;
				 NAN unknown */
	/* classify */
	enum tfh_cause input_cause;
	int32_t guilty; /* stage index, -1 */
	struct tfh_device *device;
};

/* Whether a window tells what steps are like: steady, whole, closed by the next batch (the last one
 * of an epoch has not waited for any). */
static inline bool tfh_window_counts(const struct tfh_accounts *accounts, size_t i)
{
	const struct tfh_window *w = &accounts->loops->window.v[i];

	return accounts->use[i].segment == TFH_SEGMENT_TRAIN && !w->hole && !w->cut;
}

/* host_line.c: the accounts of windows without device times, from the host's line. */
struct tfh_host_line;
struct tfh_host_line *tfh_host_line_new(struct tfh_accounts *accounts); /* NULL: no memory */
/* Calls in order of their end. 0 or -ENOMEM. */
int tfh_host_line_add(struct tfh_host_line *h, const struct tfh_event *ev);
/* All that are left of the feed's: a call for each of them takes a tenth of a report's time. */
int tfh_host_line_read(struct tfh_host_line *h);
/* There are no more of them. */
int tfh_host_line_end(struct tfh_host_line *h);
void tfh_host_line_free(struct tfh_host_line *h);

/* waits.c: what looks say that a thread did during [t0, t1) of a pause, as shares of causes.
 * TFH_ANY_THREAD: of whichever driving thread there are some. `handed`: the time that it waited for
 * another thread is not in it. `usual`: the cause that its place alone would give. False: nothing. */
#define TFH_ANY_THREAD UINT32_MAX
/* Whether looks saw a training step compile. */
bool tfh_steps_compile(const struct tfh_accounts *accounts);
/* Cause of the time of one look. */
enum tfh_cause tfh_look_cause(const struct tfh_facts *facts, int at, bool feeds);
bool tfh_pause_causes(const struct tfh_accounts *accounts, uint32_t thread, int64_t t0, int64_t t1,
		      bool handed, enum tfh_cause usual, double share[TFH_CAUSE_COUNT]);

/* sweep.c: calls of several threads as one line of segments, handed to fn. */
typedef void (*tfh_seg_fn)(void *arg, int64_t t0, int64_t t1, const struct tfh_piece *p);
struct tfh_sweep;
struct tfh_sweep *tfh_sweep_new(struct tfh_accounts *accounts, tfh_seg_fn fn, void *arg);
int tfh_sweep_add(struct tfh_sweep *s, const struct tfh_piece *p);
/* The same where it is known that nothing that comes later begins before the end of this piece;
 * mostly it is handed on at once. */
int tfh_sweep_next(struct tfh_sweep *s, const struct tfh_piece *p);
/* What was handed out last ended at *at. Where nothing is open or waiting then, calls that follow each other may be passed over,
 * for the caller to charge: as long as they end at or before what is returned; INT64_MIN: not now. */
int64_t tfh_sweep_passable(const struct tfh_sweep *s, int64_t *at);
/* That was done up to `to`. */
void tfh_sweep_pass(struct tfh_sweep *s, int64_t to);
/* Everything that begins before t has been added. */
void tfh_sweep_until(struct tfh_sweep *s, int64_t t);
void tfh_sweep_free(struct tfh_sweep *s);

/* ledger.c: the accounts of windows of tier C that are not closed yet */
struct tfh_ledger;
struct tfh_ledger *tfh_ledger_new(struct tfh_accounts *accounts);
void tfh_ledger_free(struct tfh_ledger *l);
/* Charges [t0, t1) to a cause (TFH_CAUSE_NONE: compute), window by window. */
void tfh_charge(struct tfh_ledger *l, int64_t t0, int64_t t1, enum tfh_cause cause, bool tentative,
		bool direct);
/* A pause of the driving thread; what it was shows when its window ends. `code`: known to be the
 * program's. */
void tfh_charge_gap(struct tfh_ledger *l, int64_t t0, int64_t t1, bool tentative, bool code);
/* Work of the step's main line ended at t1; ns: how much of it. */
void tfh_note_work(struct tfh_ledger *l, int64_t t1, int64_t ns);
/* The same in two parts, for work that lies in the current window: how much there was, to be added to; and that of the new may be
 * main work, as it is a tenth of all (TFH_ACCOUNT_MAIN_PART). */
int64_t *tfh_ledger_work(struct tfh_ledger *l);
void tfh_note_large(struct tfh_ledger *l, int64_t t1, int64_t ns);
/* Everything tentative was compute (or the given transfer) if the device was busy, else what the
 * host did. */
void tfh_settle(struct tfh_ledger *l, bool busy, enum tfh_cause device);
/* Up to when what begins at t is of the same window, or of none (*open: of one); INT64_MIN: nobody has looked yet. */
int64_t tfh_ledger_until(const struct tfh_ledger *l, int64_t t, bool *open);
int tfh_ledger_end(struct tfh_ledger *l);

/* Closes the account of window i, judged over [from, to): its step, whether it stood still, and the
 * sums of all that count. */
void tfh_account_close(struct tfh_accounts *accounts, size_t i, const struct tfh_account *a,
		       int64_t from, int64_t to);

/* class.c: blocking time by class. */
void tfh_blocking_of(const double part[TFH_PART_COUNT], double by_class[TFH_CLASS_COUNT]);
/* Class of a step or of many: parts and total in any unit. */
enum tfh_class tfh_class_of(const double part[TFH_PART_COUNT], double total);
/* Largest cause of a class, TFH_CAUSE_NONE: it has none. */
enum tfh_cause tfh_largest_cause(const int64_t cause[TFH_CAUSE_COUNT], enum tfh_class cls);
/* Cause of the time that a copy of a direction (enum tfh_dir) takes. */
enum tfh_cause tfh_copy_cause(unsigned dir, bool pageable);

/* unusual.c: what a step was that is no usual one */
/* Long steps that saved the model or loaded kernels, by the host's calls. */
void tfh_find_special(struct tfh_accounts *accounts);
/* Of those with device times. */
void tfh_find_checkpoints(struct tfh_accounts *accounts);
/* How long a step is that stood still. */
void tfh_find_stalls(struct tfh_accounts *accounts);
/* Whether window i, which took ns and computed so long, stood still. */
bool tfh_is_stall(const struct tfh_accounts *accounts, size_t i, int64_t ns, int64_t compute);

/* steps.c: corrections that need more than one step */
void tfh_idle_compute(struct tfh_accounts *accounts);
void tfh_smooth_classes(struct tfh_accounts *accounts);

/* input.c: the stage of the pipeline that is too slow */
void tfh_input_judge(struct tfh_accounts *accounts);
/* Whether the training loop's get-next only waits for what other threads or processes prepare. */
bool tfh_input_async(const struct tfh_accounts *accounts);

/* counts.c: what is counted call by call */
int tfh_count_event(struct tfh_accounts *accounts, const struct tfh_event *ev,
		    const struct tfh_piece *p);
/* The same of a kernel's launch that is not captured. */
int tfh_count_launch(struct tfh_accounts *accounts, const struct tfh_event *ev);
/* The training window of calls that end behind t and up to *until; NULL: they are of none. */
struct tfh_use *tfh_count_window(struct tfh_accounts *accounts, int64_t t, int64_t *until);
/* Such a launch of that window. */
int tfh_count_launch_of(struct tfh_accounts *accounts, struct tfh_use *use,
			const struct tfh_event *ev);

/* sites.c: backtraces by the time of their calls */
void tfh_site_count(struct tfh_site_use *site, const struct tfh_event *ev);
/* A pause of a thread that drives has ended; its length as times of *ev. */
void tfh_count_pause(struct tfh_accounts *accounts, const struct tfh_event *ev);
/* The one that took longest. */
const struct tfh_site_use *tfh_site_most(const struct tfh_site_use *site);
/* "" where it is not known. */
const char *tfh_site_text(const struct tfh_accounts *accounts, const struct tfh_site_use *site);

/* pauses.c: which functions the pauses were spent in, by the ranges of an imported trace. NULL
 * where there are none, and all of these do nothing. */
struct tfh_pauses *tfh_pauses_new(const struct tfh_cover *c);
void tfh_pauses_free(struct tfh_pauses *p);
/* [t0, t1) of that thread is charged to a cause: its functions get their parts of it, each
 * without what it calls but for libraries' functions. */
void tfh_pauses_count(struct tfh_pauses *p, uint32_t thread, int64_t t0, int64_t t1,
		      enum tfh_cause cause);
/* What was charged since is of a window that counts, or not. */
void tfh_pauses_settle(struct tfh_pauses *p, bool counts);
/* The functions with the largest parts. */
struct tfh_pause_site {
	const char *name;
	int64_t ns;
};
uint32_t tfh_pauses_sites(const struct tfh_accounts *accounts, enum tfh_cause cause,
			  struct tfh_pause_site out[TFH_CODE_FUNCTIONS]);
int64_t tfh_pauses_ns(const struct tfh_accounts *accounts,
		      enum tfh_cause cause); /* of all functions */

#endif
