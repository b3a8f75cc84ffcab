/*
 * The third phase: where the time of each window went. A window has one account. It is charged from
 * the device line where there are device times (device.c and the files it names), otherwise from
 * the host line (host_line.c, which reads the calls that flatten.c merged and charges through
 * open_accounts.c). Only charge.c changes an account.
 */
#ifndef TFH_JUDGE_ACCOUNT_ACCOUNT_H
#define TFH_JUDGE_ACCOUNT_ACCOUNT_H

#include "judge/chain.h"
#include "judge/facts/cover.h"
#include "judge/facts/exposed.h"
#include "judge/loops/loops.h"

/* Where a window's time went, ns: compute, causes, and an unattributed rest that is not stored. */
struct tfh_account {
	int64_t cause[TFH_CAUSE_COUNT];
	/* direct: time that is known from calls or ops alone, without inference about the device */
	int64_t compute, direct;
};

/* charge.c: the only writer of accounts (scripts/check-deps). TFH_CAUSE_NONE: compute.
 * `direct`: see struct tfh_account. */
/* Adds time whose place in the window is not known. */
void tfh_account_add(struct tfh_account *a, int64_t ns, enum tfh_cause cause, bool direct);
/* Charges [t0, t1); nothing if it is empty. `chain`: the chain of the window, or NULL. */
void tfh_account_charge(struct tfh_account *a, struct tfh_chain *chain, int64_t t0, int64_t t1,
			enum tfh_cause cause, bool direct);
/* Adds an account to a sum of accounts. */
void tfh_account_sum(struct tfh_account *sum, const struct tfh_account *a);

/* Part of a pause that is charged to one cause. It begins where the previous part ends. */
struct tfh_share_end {
	int64_t t1;
	enum tfh_cause cause;
};
/* Divides a pause by shares that add up to 1 (tfh_pause_causes()); returns the number of parts.
 * Shares are reliable for many pauses together; the order of the parts within one pause means
 * nothing. */
uint32_t tfh_divide(int64_t t0, int64_t t1, const double share[TFH_CAUSE_COUNT],
		    struct tfh_share_end part[TFH_CAUSE_COUNT]);

/* Time of a tf.data stage in training steps, by its index in tfh_facts.stage. */
struct tfh_stage_account {
	struct tfh_stage_time time;
	/* The same, and between loops, where first batches are waited for. */
	struct tfh_stage_time with_between;
	/* Exposed input time during which a thread of its consumer was inside this stage. */
	int64_t waited;
	int64_t seen; /* end of the time already counted into `waited` */
};

/* Time of a step for which driving threads were ready to run without a CPU, seconds. */
struct tfh_contention {
	float late;		  /* host.cpu-contention: before they continued after a wait */
	float sync, launch, host; /* during their work; counted in these parts */
};

struct tfh_matches;
struct tfh_pauses;
struct tfh_brief;

/* Windows of one kind that are not usual steps. */
struct tfh_others {
	struct tfh_account sum;
	int64_t ns, longest;
	uint64_t n, late; /* late: in the second half of all windows */
	uint64_t steps;
};

/* What is known of a window in addition to its account. */
struct tfh_use {
	uint32_t launches;
	uint8_t segment; /* enum tfh_segment: of the window, or what it turned out to be */
	char tier;	 /* 'A' or 'B' with device times, 'C' without */
};

/* A backtrace and the time spent in its calls, ns. */
struct tfh_site_use {
	uint32_t stack; /* 0: free */
	int64_t ns;
	const struct tfh_fn_info *fn;
};

/* The calls on one side of pauses, by the pauses' time. */
struct tfh_pause_bound {
	struct tfh_site_use fn[TFH_ACCOUNT_SITES];   /* by function, of all pauses; no stacks */
	struct tfh_site_use site[TFH_ACCOUNT_SITES]; /* of those with known stacks */
};

/* A function of the program that the driver ran in a stream, and the time of its runs, ns. */
struct tfh_queued_use {
	uint64_t address; /* 0: free */
	int64_t ns;
};

struct tfh_copy_use {
	const struct tfh_fn_info *fn;
	uint8_t dir;
	bool pageable;
	uint64_t calls, bytes, blocking, small;
	int64_t ns, small_ns;
	struct tfh_site_use site[TFH_ACCOUNT_SITES];
};

/* A copy between host and device that may repeat in every step. */
struct tfh_same_copy {
	uint64_t host, device, bytes; /* addresses; bytes 0: free */
	/* steps with the copy; steps in which it sent back what had been fetched. */
	uint64_t steps, back;
	size_t window; /* of the last one */
	uint8_t dir;
};

struct tfh_kernel_use {
	/* before: index + 1 of the previous one in its hash bucket, 0: none. */
	uint32_t function, before;
	uint64_t calls;
};

/* The accounts of one process. Results of earlier phases are referenced, not owned. */
struct tfh_accounts {
	const struct tfh_facts *facts;
	const struct tfh_loops *loops;
	const struct tfh_cover *cover;	   /* NULL: no trace shows what threads did in pauses */
	const struct tfh_matches *matches; /* collectives of all ranks, or NULL */
	const struct tfh_exposed *exposed; /* exchanges of a job on the CPU; may be empty */
	struct tfh_use *use;		   /* by window */
	struct tfh_stage_account *stage;   /* by index of stage */
	struct tfh_brief *brief;	   /* by thread; NULL: short pauses are launching */
	struct tfh_pauses *pauses;	   /* functions in which the pauses were spent, or NULL */
	bool timed;	/* some training windows have device times; sums are over those */
	bool compiles;	/* samples show compiling in training windows */
	bool evaluates; /* likewise after warm-up; most of it is for predict() or evaluate() */
	/* A step longer than this that hardly computed is a stall; 0: there are none. */
	int64_t stall_ns;
	/* filled by the pass over calls and ops */
	TFH_VEC(struct tfh_step) step;	      /* by window, times of the whole window */
	float (*step_cause)[TFH_CAUSE_COUNT]; /* likewise, in seconds; NULL: not requested */
	int64_t cause_ns[TFH_CAUSE_COUNT], compute_ns, direct_ns,
		train_ns; /* sums over judged windows */
	struct tfh_others other[TFH_SEGMENT_COUNT];
	TFH_VEC(struct tfh_copy_use) copy;
	struct tfh_same_copy same_copy[TFH_ACCOUNT_SAME_COPIES];
	TFH_VEC(struct tfh_kernel_use) kernel;
	/* Hash buckets by function: index + 1 of the last entry. */
	uint32_t kernel_at[TFH_ACCOUNT_KERNEL_BUCKETS];
	struct tfh_site_use wait_site[TFH_ACCOUNT_SITES], alloc_site[TFH_ACCOUNT_SITES],
		load_site[TFH_ACCOUNT_SITES], pause_site[TFH_ACCOUNT_SITES],
		input_site[TFH_ACCOUNT_SITES], launch_site[TFH_ACCOUNT_SITES],
		managed_site[TFH_ACCOUNT_SITES];
	struct tfh_site_use graph_site[TFH_ACCOUNT_SITES]; /* calls that make graphs */
	/* Executed calls, by the time that they compute, and that they wait for exchanges. */
	struct tfh_site_use executed_site[TFH_ACCOUNT_SITES], exchange_site[TFH_ACCOUNT_SITES];
	struct tfh_queued_use queued[TFH_ACCOUNT_SITES];
	int64_t *ran_ns; /* of the ops that a processor executed, by facts->tag */
	struct tfh_pause_bound pauses_from, pauses_to; /* calls before and after pauses */
	int64_t pauses_ns;			       /* of all these pauses, of 200 us and more */
	int64_t gaps_ns; /* of shorter ones, except between launches in a row */
	/* The last pause with a stack, which shows where the next batch is asked for; stack 0: the
	 * call after the pause has ended. */
	struct tfh_event asked;
	int64_t asked_ns; /* time of batches since then */
	uint64_t graph_launches;
	size_t counted;	       /* window of the last counted event */
	uint64_t train_steps;  /* in windows of segment TRAIN */
	uint64_t judged_steps; /* training steps that the sums above are over */
	uint64_t recompiles;   /* modules loaded in training steps */
	uint64_t unloads;      /* and unloaded there */
	int64_t recompile_ns;
	uint64_t graph_steps; /* training windows in which a graph was made executable */
	size_t graph_window;  /* the last of them */
	/* Bytes of queued copies that one wait covered together with kernels. */
	uint64_t mixed_bytes;
	/* Share of the executing time during which the process ran on a CPU; NAN unknown. */
	double compute_ran;
	struct tfh_contention *contention; /* by window; NULL: the machine was not crowded */
	/* Of cause_ns: time without a CPU in the threads' work; contention.c. */
	double slowed_ns[TFH_CAUSE_COUNT];
	/* set after the pass, by input.c */
	enum tfh_cause input_cause, between_cause; /* the latter: between loops */
	int32_t guilty;				   /* index of the slow stage, -1: none */
	/* The thread that asks for batches does most of the work that they wait for. */
	bool asker_works;
	struct tfh_device *device;
	struct tfh_model_line through[TFH_ACCOUNT_THROUGH]; /* see tfh_find_through() */
	uint32_t n_through;
};

/* Whether a window represents usual steps: steady, complete, and closed by the next batch. (The
 * last window of an epoch did not wait for a next batch.) */
static inline bool tfh_window_counts(const struct tfh_accounts *accounts, size_t i)
{
	const struct tfh_window *w = &accounts->loops->window.v[i];

	return accounts->use[i].segment == TFH_SEGMENT_TRAIN && !w->hole && !w->cut;
}

/* Whether a window is in the sums: if there are device times, one without them is not. */
static inline bool tfh_window_summed(const struct tfh_accounts *accounts, size_t i)
{
	return tfh_window_counts(accounts, i) && (!accounts->timed || accounts->use[i].tier != 'C');
}

/* steps.c: whether t is in a step that counts. *window starts at 0 and advances from call to call,
 * so t must not decrease. */
bool tfh_judged_at(const struct tfh_accounts *accounts, int64_t t, size_t *window);
/* The next sample of a driving thread in a step that counts; `at` starts as {0}. False: no more. */
struct tfh_judged_samples {
	size_t next, window; /* window: that of the sample */
};
bool tfh_next_judged_sample(const struct tfh_accounts *accounts, struct tfh_judged_samples *at,
			    struct tfh_seen_sample *k);

/* through.c: finds the lines through which all steps run, from samples and calls that ask for
 * batches; and whether a line is one. */
void tfh_find_through(struct tfh_accounts *accounts);
/* Whether nearly all samples of judged steps are in that function, and batches are asked for in it,
 * if it is known where. */
bool tfh_in_all_steps(const struct tfh_accounts *accounts, const struct tfh_model_line *line);
bool tfh_runs_through(const struct tfh_accounts *accounts, const struct tfh_model_line *line);

/* likely.c: assigns steps to the chains of the feed's `likely`. Runs after steps.c. 0 or
 * -ENOMEM. */
int tfh_find_likely(struct tfh_accounts *accounts);
/* Finds the windows of the steps that the feed's chains are for. */
void tfh_place_chains(const struct tfh_accounts *accounts);

/* host_line.c: charges windows without device times, from the host's calls. */
struct tfh_host_line;
/* NULL when out of memory */
struct tfh_host_line *tfh_host_line_new(struct tfh_accounts *accounts);
/* Adds a call. Calls come in order of their end. 0 or -ENOMEM. */
int tfh_host_line_add(struct tfh_host_line *h, const struct tfh_event *ev);
/* Adds all remaining calls of the feed in one loop; a function call for each would take a tenth of
 * a report's time. */
int tfh_host_line_read(struct tfh_host_line *h);
/* No more calls follow. */
int tfh_host_line_end(struct tfh_host_line *h);
void tfh_host_line_free(struct tfh_host_line *h);

/* staged_copies.c: whether a verdict about copies from pageable memory is about copies that a
 * library made to pinned memory. */
bool tfh_is_staged(const struct tfh_accounts *accounts, enum tfh_cause cause);

/* waits.c: causes of pauses, by samples. */
/* Any driving thread that has samples. */
#define TFH_ANY_THREAD UINT32_MAX
/* Whether a thread at this place compiles; a scheduler may also prepare what is compiled
 * already. */
bool tfh_sample_compiles(const struct tfh_facts *facts, int at);
/* Fills in whether samples show compiling, and for what. */
void tfh_find_compiling_steps(struct tfh_accounts *accounts);
/* How much of an executed call of a thread is compiling, ns: long calls are sampled like pauses,
 * and a backward pass compiles what torch.compile left for it. */
int64_t tfh_compiles_in(const struct tfh_accounts *accounts, uint32_t thread, int64_t t0,
			int64_t t1);
/* Cause of a state or role (an index of struct tfh_seen's parts) wherever in the run it is. */
enum tfh_cause tfh_plain_cause(int at);
/* Cause of the time that one sample represents. */
enum tfh_cause tfh_sample_cause(const struct tfh_facts *facts, int at, enum tfh_feeds feeds);
/* The same, but an exchange with other ranks if the sample's time shows that the thread waited for
 * one. */
enum tfh_cause tfh_seen_cause(const struct tfh_accounts *accounts, const struct tfh_seen_sample *k);
/* Whether a thread with this cause may be waiting for such an exchange. */
static inline bool tfh_may_exchange(enum tfh_cause cause)
{
	return cause == TFH_CAUSE_HOST_LOCK || cause == TFH_CAUSE_HOST_WAIT ||
	       cause == TFH_CAUSE_HOST_UNKNOWN || cause == TFH_CAUSE_INPUT_UNKNOWN;
}
/* What a thread (or TFH_ANY_THREAD) did during [t0, t1) of a pause, as shares of causes. `handed`:
 * the time that the thread waited for another thread is not part of [t0, t1). `usual`: the cause
 * that the pause's position alone suggests. False if there are no samples. */
bool tfh_pause_causes(const struct tfh_accounts *accounts, uint32_t thread, int64_t t0, int64_t t1,
		      bool handed, enum tfh_cause usual, double share[TFH_CAUSE_COUNT]);
/* Cause of one part of an imported trace's cover; `usual` if its ranges show none. */
enum tfh_cause tfh_part_cause(const struct tfh_facts *facts, const struct tfh_cover_part *part,
			      enum tfh_cause usual);
/* Divides a pause that is covered `by` what the thread did, by the causes of these parts.
 * False if all is `usual`. */
bool tfh_cover_causes(const struct tfh_accounts *accounts, enum tfh_covered by, uint32_t thread,
		      int64_t t0, int64_t t1, enum tfh_cause usual, double share[TFH_CAUSE_COUNT]);

/* brief.c: finds what pauses shorter than TFH_GAP_NS are charged to. 0 or -ENOMEM. */
int tfh_brief_find(struct tfh_accounts *accounts);
/* Shares of causes in such a pause of a thread (TFH_ANY_THREAD: of the one with most);
 * NULL: it is launching. */
const double *tfh_brief_shares(const struct tfh_accounts *accounts, uint32_t thread);

/* call_causes.c: causes of calls that are charged for what they do, at every tier */
/* Cause of an executed function that saves a model, makes kernels or functions, or writes a log, or
 * of one that does none of these. */
enum tfh_cause tfh_exec_cause(const struct tfh_accounts *accounts, bool saves, bool makes,
			      bool logs);
/* Cause of a call that took `ns`, of a family without an activity of its own. */
enum tfh_cause tfh_other_cause(enum tfh_family family, int64_t ns);

/* flatten.c: merges calls of several threads into one line of spans, which are passed to fn. */
typedef void (*tfh_span_fn)(void *arg, int64_t t0, int64_t t1, const struct tfh_piece *p);
struct tfh_flat;
struct tfh_flat *tfh_flat_new(struct tfh_accounts *accounts, tfh_span_fn fn, void *arg);
int tfh_flat_add(struct tfh_flat *s, const struct tfh_piece *p);
/* The same for a piece when no later piece begins before its end; usually its span is passed on
 * at once. */
int tfh_flat_next(struct tfh_flat *s, const struct tfh_piece *p);
/* The caller may charge consecutive calls itself, without adding them, if they end at or before the
 * returned time. INT64_MIN: not now, because a call is open or queued. *at: the end of the last
 * span passed on. */
int64_t tfh_flat_passable(const struct tfh_flat *s, int64_t *at);
/* The caller has charged such calls up to `to`. */
void tfh_flat_pass(struct tfh_flat *s, int64_t to);
/* All pieces that begin before t have been added. */
void tfh_flat_until(struct tfh_flat *s, int64_t t);
void tfh_flat_free(struct tfh_flat *s);

/* What is known of a pause without device times. ANY: nothing; CODE: the program's code ran; OWN:
 * the thread waited for no other thread. */
enum tfh_gap_kind { TFH_GAP_ANY, TFH_GAP_CODE, TFH_GAP_OWN };

/* open_accounts.c: accounts of tier C windows that are not closed yet. */
struct tfh_open_accounts;
struct tfh_open_accounts *tfh_open_accounts_new(struct tfh_accounts *accounts);
void tfh_open_accounts_free(struct tfh_open_accounts *l);
enum tfh_certainty {
	TFH_CERTAIN,   /* known from calls alone */
	TFH_INFERRED,  /* from what they show of the device */
	TFH_TENTATIVE, /* work of the device may have hidden it, which the next wait shows */
};
/* Charges [t0, t1) to a cause (TFH_CAUSE_NONE: compute), window by window. */
void tfh_charge(struct tfh_open_accounts *l, int64_t t0, int64_t t1, enum tfh_cause cause,
		enum tfh_certainty sure);
/* Charges a pause of the driving thread. Its cause is decided when its window ends. */
void tfh_charge_gap(struct tfh_open_accounts *l, int64_t t0, int64_t t1, enum tfh_certainty sure,
		    enum tfh_gap_kind kind);
/* Notes work of the step's main thread: it ended at t1 and took ns. */
void tfh_note_work(struct tfh_open_accounts *l, int64_t t1, int64_t ns);
/* tfh_note_work() in two parts, for work inside the current window: a counter to which the caller
 * adds all work, and a function for work that is at least a tenth of all (TFH_ACCOUNT_MAIN_PART),
 * which may be main work. */
int64_t *tfh_open_accounts_work(struct tfh_open_accounts *l);
void tfh_note_large(struct tfh_open_accounts *l, int64_t t1, int64_t ns);
/* Resolves all tentative charges: if the device was busy they become compute (or the transfer in
 * `device`), otherwise they remain what the host did. */
void tfh_settle(struct tfh_open_accounts *l, bool busy, enum tfh_cause device);
/* Until when all that begins at or after t belongs to the same window (*open) or to none (!*open).
 * INT64_MIN: the window at t is not the current one yet. */
int64_t tfh_open_accounts_until(const struct tfh_open_accounts *l, int64_t t, bool *open);
int tfh_open_accounts_end(struct tfh_open_accounts *l);

/* close.c: closes the account of window i, judged over [from, to): fills its step, marks it if it
 * is a stall, and adds it to the sums if it counts. */
void tfh_account_close(struct tfh_accounts *accounts, size_t i, const struct tfh_account *a,
		       int64_t from, int64_t to);

/* class.c: blocking time by class. */
void tfh_blocking_of(const double part[TFH_PART_COUNT], double by_class[TFH_CLASS_COUNT]);
/* Whether a class means that something blocks the step. */
bool tfh_class_blocks(enum tfh_class cls);
/* Class of one or several steps; parts and total in any unit, the same for both. */
enum tfh_class tfh_class_of(const double part[TFH_PART_COUNT], double total);
/* Largest cause of a class, TFH_CAUSE_NONE if it has none. */
enum tfh_cause tfh_largest_cause(const int64_t cause[TFH_CAUSE_COUNT], enum tfh_class cls);

/* unusual.c: training steps that are not usual ones */
/* Finds long steps that saved the model or loaded kernels, by the host's calls. */
void tfh_find_special(struct tfh_accounts *accounts);
/* The same for windows with device times, by bytes fetched. */
void tfh_find_checkpoints(struct tfh_accounts *accounts);
/* Finds the minimum duration of a stall. */
void tfh_find_stalls(struct tfh_accounts *accounts);
/* Whether window i is a stall: it took `ns`, of which it computed `compute`. */
bool tfh_is_stall(const struct tfh_accounts *accounts, size_t i, int64_t ns, int64_t compute);

/* steps.c: corrections that need more than one step */
void tfh_idle_compute(struct tfh_accounts *accounts);
void tfh_smooth_classes(struct tfh_accounts *accounts);

/* contention.c: tfh_processor_wait() from the first training step to the end of the last one. */
double tfh_steps_wait(const struct tfh_accounts *accounts);
/* contention.c: seconds per judged step that the parts of a step, except one, waited for a CPU; 0
 * if the machine was not crowded. */
double tfh_contended_s(const struct tfh_accounts *accounts, enum tfh_part without);
/* CPUs that the process itself uses during the steps (NAN: not known), and CPUs it may use;
 * false: no samples. */
bool tfh_processors(const struct tfh_accounts *accounts, double *used, double *allowed);
/* The seconds that a step of `step` seconds takes at least if the pipeline works ahead of it.
 * Overlap removes no work and hides it only where CPUs are left: the bound is the job's CPU time,
 * with its threads' waits for a CPU, divided by the CPUs that it may use. 0: not known. */
double tfh_all_work_s(const struct tfh_accounts *accounts, double step);
/* CPUs that the driving threads used during the steps; 0: not known. */
double tfh_drivers_ran(const struct tfh_accounts *accounts);
/* contention.c: what steps lost to CPU contention. 0 or -ENOMEM */
int tfh_find_contention(struct tfh_accounts *accounts);
/* The parts of step i without contention; returns their sum, seconds. */
double tfh_own_parts(const struct tfh_accounts *accounts, size_t i, double part[TFH_PART_COUNT]);

/* input.c: finds the slow stage of the input pipeline */
void tfh_input_judge(struct tfh_accounts *accounts);
/* Whether the training loop's get-next only waits for batches that other threads or processes
 * prepare. */
bool tfh_input_async(const struct tfh_accounts *accounts);
/* The work of all stages for one batch, ns; INT64_MAX: not known, since a stage's own threads do
 * some of it. */
int64_t tfh_input_work(const struct tfh_accounts *accounts);

/* again.c: counts a copy in a training window. */
void tfh_count_same(struct tfh_accounts *accounts, const struct tfh_event *ev, size_t window);
/* The copies in a direction that were made in more than `steps` steps: the one that moved most,
 * with the bytes of all of them; bytes 0: there are none. */
struct tfh_same_copy tfh_most_same(const struct tfh_accounts *accounts, unsigned dir,
				   uint64_t steps);

/* counts.c: counts of copies, kernels and stages, call by call */
int tfh_count_event(struct tfh_accounts *accounts, const struct tfh_event *ev,
		    const struct tfh_piece *p);
/* The same for a kernel launch outside of graph capture. */
int tfh_count_launch(struct tfh_accounts *accounts, const struct tfh_event *ev);
/* The training window of calls that end after t and at or before *until; NULL if they are in
 * none. */
struct tfh_use *tfh_count_window(struct tfh_accounts *accounts, int64_t t, int64_t *until);
/* Counts n such launches of one kernel in that window. */
int tfh_count_launches_of(struct tfh_accounts *accounts, struct tfh_use *use,
			  const struct tfh_event *ev, uint32_t n);

/* sites.c: backtraces with the time of their calls */
void tfh_site_count(struct tfh_site_use *site, const struct tfh_event *ev);
/* The same in a table by function, without stacks. */
void tfh_site_count_function(struct tfh_site_use *fn, const struct tfh_event *ev);
/* Counts a pause of a driving thread; *ev has the pause's begin and end as its times. */
void tfh_count_pause(struct tfh_accounts *accounts, const struct tfh_event *ev);
/* A pause of a driving thread, [t0, t1), and the calls before and after it. t2: the end of the
 * latter. */
struct tfh_bounded_pause {
	int64_t t0, t1, t2;
	bool brief; /* shorter than 200 us */
	struct tfh_bound_call {
		const struct tfh_fn_info *fn; /* NULL: unknown, such as one of several launches */
		uint32_t stack;		      /* 0: unknown */
	} from, to;
};
void tfh_count_bounds(struct tfh_accounts *accounts, const struct tfh_bounded_pause *p);
/* Counts a run of a host function; *ev has its address. */
void tfh_queued_count(struct tfh_queued_use *use, const struct tfh_event *ev);
/* Where the program waits for the device, one table after the other: waits, then copies that return
 * only when they are done. *at begins with 0; NULL: no more. */
const struct tfh_site_use *tfh_wait_sites(const struct tfh_accounts *accounts, size_t *at);
/* The backtrace with the most time. */
const struct tfh_site_use *tfh_site_most(const struct tfh_site_use *site);
/* The backtrace as text, "" if unknown. */
const char *tfh_site_text(const struct tfh_accounts *accounts, const struct tfh_site_use *site);

/* pauses.c: the functions in which pauses were spent, by the ranges of an imported trace.
 * tfh_pauses_new() returns NULL if the trace has none; the other functions accept NULL and do
 * nothing. */
struct tfh_pauses *tfh_pauses_new(const struct tfh_cover *c);
void tfh_pauses_free(struct tfh_pauses *p);
/* Whether the trace names functions of Python. */
bool tfh_pauses_know(const struct tfh_pauses *p);
/* [t0, t1) of a thread is charged to a cause: adds to each function its self time in it. Library
 * functions that a function calls count as its own time. */
void tfh_pauses_count(struct tfh_pauses *p, uint32_t thread, int64_t t0, int64_t t1,
		      enum tfh_cause cause);
/* Ends a window: keeps what was added since the last call if the window counts, otherwise drops
 * it. */
void tfh_pauses_settle(struct tfh_pauses *p, bool counts);
/* Adds what was settled in another one of the same trace. */
void tfh_pauses_add(struct tfh_pauses *p, const struct tfh_pauses *more);
/* A function with the time of its pauses; tfh_pauses_sites() returns the largest. */
struct tfh_pause_site {
	const char *name;
	int64_t ns;
};
uint32_t tfh_pauses_sites(const struct tfh_accounts *accounts, enum tfh_cause cause,
			  struct tfh_pause_site out[TFH_CODE_FUNCTIONS]);
int64_t tfh_pauses_ns(const struct tfh_accounts *accounts,
		      enum tfh_cause cause); /* sum over all functions */

#endif
