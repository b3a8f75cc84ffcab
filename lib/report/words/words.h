/*
 * The sentences of a report, made from a result's facts: the verdict in one sentence, its evidence,
 * what is missing if there is no verdict, what to do, and notes. No other folder makes sentences
 * about a verdict.
 *
 *	words.c			what is said, in which order; what a verdict is based on
 *	cause.c, computing.c	what each cause means in this job
 *	crowd.c			who had the machine's CPUs
 *	families.c		the kinds of kernels
 *	device_words.c		several devices of one process
 *	rank_words.c		which rank delays the others
 *	computed_words.c	the parts of what is computed on a CPU
 *	remedy.c		what to do about a cause: tables
 *	kind_remedies.c		the same for jobs of a kind
 *	loaders.c, task_costs.c	the same for those that make batches
 *	misuse.c		mistakes that have one known remedy
 *	sample_lines.c		what samples of the thread have shown
 *	where.c			where in the program the time goes
 *	run_time.c		the steps' share of the whole run
 *	start_words.c		what happened besides the steps
 *	compiling_words.c	compiling besides what the verdict is about
 *	jax_ops.c		JAX's operations outside of jitted functions
 *	sampled_words.c		a run in which no call was recorded
 *	recurs.c		what recurs besides the steps, if that is the verdict
 *	next.c			what else would gain, besides what the verdict names
 *	remarks.c		notes below a verdict
 *	wording.c		where sentences are stored
 */
#ifndef TFH_REPORT_WORDS_WORDS_H
#define TFH_REPORT_WORDS_WORDS_H

#include "base/arena.h"
#include "judge/result.h"

struct tfh_advice {
	const char *finding, *evidence, *todo;
	double gain;	 /* speed-up factor of the steps, at most; NAN: unknown */
	double saved_s;	 /* of the run; NAN: unknown */
	const char *how; /* before the time that the run then takes, "at best " */
};

/* What a line of evidence is about: what is to blame, why,
 * or more than the first screen has room for. */
enum tfh_tells {
	TFH_TELLS_MORE,
	TFH_TELLS_WHY,
	TFH_TELLS_STAGE,
	TFH_TELLS_LINE,
	TFH_TELLS_COPIES,
	TFH_TELLS_KERNEL,
	TFH_TELLS_OPS,
	TFH_TELLS_RANK,
	TFH_TELLS_DEVICES,
	TFH_TELLS_WHO /* had the CPUs */
};

struct tfh_wording {
	const struct tfh_result *r;
	struct tfh_arena arena; /* of the strings that are not static */
	const char *text;	/* one sentence, the verdict */
	/* further lines, "in 2,098 of 2,130 steps ..." */
	const char *evidence[TFH_REPORT_EVIDENCE];
	enum tfh_tells tells[TFH_REPORT_EVIDENCE];
	uint32_t n_evidence;
	const char *missing;	/* why no class is given, or NULL */
	const char *missing_do; /* what would give one */
	/* Why no line of the program is named where one is to blame, or NULL. */
	const char *no_line;
	const char *no_memory; /* which requests for device memory failed, or NULL */
	struct tfh_advice advice[TFH_REPORT_ADVICE];
	uint32_t n_advice;
	/* Number in `advice` of a mistake that makes computing dearer; 0: none is known. */
	uint32_t misuse;
	/* Names of the result's places: "augment", "train.py:53". */
	const char *place[TFH_PREDICT_PLACES];
	const char *remark[TFH_REPORT_REMARKS]; /* "no input pipeline was visible", ... */
	uint32_t n_remark, n_first; /* the first n_first are always on the first screen */
};

/* Makes all sentences about a result, which must outlive them. Without memory, sentences are empty.
 * Free them with tfh_wording_free(). */
void tfh_wording_make(struct tfh_wording *w, const struct tfh_result *r);
void tfh_wording_free(struct tfh_wording *w);

/* ---- between the files of this folder ---- */

/* wording.c: a text that lives as long as w; "" without memory. */
const char *tfh_phrase(struct tfh_wording *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Seconds in a sentence: "5.41 s", "18.7 ms", "2.05 ms", "454 us"; as an error, with two digits. */
const char *tfh_phrase_time(struct tfh_wording *w, double s);
const char *tfh_phrase_error(struct tfh_wording *w, double s);
/* "1st", "12th" */
const char *tfh_phrase_ordinal(struct tfh_wording *w, double n);
/* "1 call", "2.5 calls" */
const char *tfh_phrase_calls(struct tfh_wording *w, double calls);
/* Adds a line below the verdict's sentence; adds a note. Left out if there is no room. */
void tfh_evidence(struct tfh_wording *w, enum tfh_tells tells, const char *line);
void tfh_remark(struct tfh_wording *w, const char *text);
/* Adds a note that the first screen shows whatever its size. */
void tfh_remark_first(struct tfh_wording *w, const char *text);
/* Adds advice: the finding, the line that shows it, what to do, and what that removes from the
 * steps (TFH_REMOVE_NONE: the gain is unknown). Left out if there is no room. */
void tfh_advise(struct tfh_wording *w, const char *finding, const char *why, const char *todo,
		enum tfh_remove remove);
/* What goes before a time that results from the gain: nothing before a prediction,
 * else "about ", "at best " or "at most ". */
const char *tfh_gain_how(const struct tfh_whatif *gain);
/* tfh_advise() where the gain is known. */
void tfh_advise_gain(struct tfh_wording *w, const char *finding, const char *why, const char *todo,
		     const struct tfh_whatif *gain);
/* The same for a part of the run besides its steps, which could be saved completely at best. */
void tfh_advise_run(struct tfh_wording *w, const char *finding, const char *todo, double saved_s);

/* Of ranks that wait for each other: what delays the one that waits least.
 * NULL: they were not recorded together. */
const char *tfh_least_waiting(struct tfh_wording *w);
/* The judged rank, if the others wait for it alone. NULL: they do not. */
const struct tfh_rank *tfh_late_rank(const struct tfh_result *r);
/* What it computes longer than the others, if that is why they wait, seconds a step; 0: it is
 * not. */
double tfh_computes_more_s(const struct tfh_result *r);
/* Its step if all ranks computed as long; NAN: that is not why they wait. */
double tfh_even_step_s(const struct tfh_result *r);
/* How long each device computes, if some are idle meanwhile. NULL: all compute as long. */
const char *tfh_devices_line(struct tfh_wording *w);
/* How long a call of a kernel takes: the median, or the mean where its calls are of several kinds,
 * so that the median is far from what they take together. */
double tfh_kernel_call_s(const struct tfh_kernel *k);
bool tfh_kernel_is_mixed(const struct tfh_kernel *k);

/* ", on GPU 5 (0000:06:00.0)": the first device of a process; "": not known. */
const char *tfh_rank_device(struct tfh_wording *w, uint32_t process);
/* "rank 0 (node0) died of signal 9, ...": the first rank of a generation that failed. */
const char *tfh_failed_words(struct tfh_wording *w, const struct tfh_generation *g);
/* Which of several generations the verdict is about, and how the others ended. */
void tfh_note_generations(struct tfh_wording *w);

/* where.c: the calls between which most of the verdict's pauses lie; NULL: unknown. */
const char *tfh_calls_around(struct tfh_wording *w);
/* Who makes the calls behind a cause on the host; NULL: unknown. */
/* ": cuCtxSynchronize at train.py:52 Model.step", "" if the place is not known */
const char *tfh_site_at(struct tfh_wording *w, const struct tfh_call_site *site);
/* The kinds of calls of which the result has the place where most are made, at most
 * TFH_CALL_PLACES. Returns their number. */
enum { TFH_CALL_PLACES = 5 };
struct tfh_call_place {
	const char *name, *words; /* in JSON, on the page */
	const struct tfh_call_site *site;
};
uint32_t tfh_call_places(const struct tfh_result *r, struct tfh_call_place *out);
const char *tfh_place_line(struct tfh_wording *w, enum tfh_cause cause);
/* Whether steps grow steadily, mostly at the verdict's line. */
bool tfh_line_grows(const struct tfh_result *r);
/* Where else the program's code may run, which its steps need not wait for then. Python holds its
 * lock (GIL) while it runs, so another thread would not help. */
const char *tfh_less_often(const struct tfh_result *r, bool python);
/* Advice about the verdict's line, for this cause; NULL: none. */
const char *tfh_line_advice(struct tfh_wording *w, enum tfh_cause cause);
/* Advice about that if a trace shows its functions; NULL: it does not. */
const char *tfh_place_advice(struct tfh_wording *w, enum tfh_cause cause);
/* "FN called from LINE": the verdict's line if it comes from backtraces, else `where`.
 * NULL: neither is known. */
const char *tfh_called_from(struct tfh_wording *w, const char *fn, const char *where);
/* What another profiler's trace may have to show the program's code,
 * as that profiler's users know it. */
const char *tfh_code_events(const struct tfh_result *r);

/* sample_lines.c: "waiting for a lock", for a state that samples show; "": the state is not
 * informative. */
const char *tfh_state_words(int state);
/* The program line with most of the verdict's cause, with two standard errors; NULL: unknown. */
const char *tfh_verdict_line(struct tfh_wording *w);
/* sample_lines.c: the function of that line, where the gain is of all its lines and these take much
 * more; NULL: it is of the line. */
const struct tfh_place_gain *tfh_function_of_line(const struct tfh_result *r);
/* The same if the verdict is not about the steps: the line's share of that time, since times per
 * step would not be those of the steps. */
const char *tfh_lead_line(struct tfh_wording *w);
/* Names the result's places. */
void tfh_name_places(struct tfh_wording *w);
/* "SumTree.find (train.py:43)", "train.py:50-52" */
const char *tfh_at_place(struct tfh_wording *w, const struct tfh_place_gain *g);
/* ", mostly in" the places besides the verdict's, if these have most of the host's own time; "":
 * they do not. */
const char *tfh_mostly_in(struct tfh_wording *w);
/* Whether a node of the lines that samples show is at that line of the program. */
bool tfh_is_at_line(const struct tfh_seen_node *n, const struct tfh_seen_line *l);
/* What the thread was doing between its calls, as a line of evidence. */
void tfh_seen_line(struct tfh_wording *w);
/* The name of a function: for a nested one, its own name; for one without a name (a lambda, a list
 * comprehension), that of the function around it, or what it is if there is none. */
const char *tfh_function_of(struct tfh_wording *w, const char *name);

/* A file without its folders; of a long name, as compilers make up, the begin and the end. */
const char *tfh_file_words(struct tfh_wording *w, const char *path);

/* "load, train.py:12"; without a line, a function of machine code: "make_graph [server]". */
/* ", through device.py:35 Device.upload"; ", from train.py:4 (50 %), test.py:7 (45 %)"; "" */
const char *tfh_caller_words(struct tfh_wording *w, const struct tfh_seen_line *l);
const char *tfh_at_words(struct tfh_wording *w, const char *function, const char *file,
			 uint32_t line);

/* families.c: the kinds of kernels that the computing consists of,
 * and advice about those that take much time. */
void tfh_explain_families(struct tfh_wording *w);

/* cause.c: the sentence, evidence and advice for a class that has a cause; false for the others. */
bool tfh_explain_cause(struct tfh_wording *w);
/* What to do about launches in this job; NULL: the usual. */
const char *tfh_launch_advice(struct tfh_wording *w);
/* If input is the second class, adds a line about its stage. */
void tfh_explain_also(struct tfh_wording *w);
/* If one op dominates the computing, and computing matters, adds a line about it,
 * whatever the class. */
void tfh_explain_kernels(struct tfh_wording *w);

/* wording.c: a function of a library's inside, by what its users know: "backward()"; any other by
 * its own name. */
const char *tfh_inner_name(const char *name);
/* A stage of tf.data; of one that TensorFlow fused,
 * also the stages of the program: "map + batch (MapAndBatch)". */
const char *tfh_stage_words(struct tfh_wording *w, const char *name);
/* Whether a fix of the verdict removes its cause everywhere in the step, not at one
 * line: one graph replaces all launches. */
bool tfh_fixes_all(const struct tfh_result *r);
/* remedy.c: the launches of a step, and whether each takes so long that the time is that of code
 * which prepares it. */
double tfh_launches(const struct tfh_result *r);
bool tfh_prepares_launches(const struct tfh_result *r);
/* recurs.c: if something other than the steps delays the run most, puts that first and the steps
 * after it. */
void tfh_explain_lead(struct tfh_wording *w);
/* Advice about `s` seconds between loops, if most of them are waits for input; false: they are
 * not. */
bool tfh_advise_waits(struct tfh_wording *w, double s);
/* Why the gain of what recurs besides the steps is unknown, as a part of a sentence; NULL: it is
 * known. */
const char *tfh_lead_no_bound(const struct tfh_result *r);
/* run_time.c: the loop of the run's tree whose iterations are the verdict's steps although the tree
 * does not mark them as steps, either because calls recur within them (such as the batches over
 * which a gradient is accumulated) or because the tree recognises no step in them; 0: there is
 * none. */
uint32_t tfh_loop_of_steps(const struct tfh_result *r);
/* "before the first GPU call", "after the last batch": the ends of the run outside of what was
 * recorded. */
const char *tfh_outside(const struct tfh_result *r, enum tfh_branch kind);
/* Mean time of a step, seconds. */
double tfh_step_s(const struct tfh_result *r);
/* Seconds of the run by kind of leaf part; seconds of one kind. If the verdict's steps are
 * iterations of a loop, all of an iteration counts as a step. tfh_note_run() adds a note if most of
 * the run was not steps, and says whether it did. */
void tfh_spent_all(const struct tfh_result *r, double seconds[TFH_BRANCH_COUNT]);
double tfh_spent(const struct tfh_result *r, enum tfh_branch kind);
bool tfh_note_run(struct tfh_wording *w);
/* Whether what the run does besides its steps is told: of one that was killed, most steps may be
 * missing, unless it had hardly come to them. */
bool tfh_run_tells(const struct tfh_result *r);
/* What shares of the judged steps' time refer to: "training time", or "the steps' time" if
 * evaluation, which has a row of its own in the run's tree, takes place within these steps. */
const char *tfh_training_words(const struct tfh_result *r);
/* words.c: whether the verdict's sentence gives the time of its cause alone,
 * not that of all causes of its class. */
bool tfh_tells_cause(const struct tfh_result *r);
/* start_words.c: what happened besides the steps, if that is much of the run. */
void tfh_note_start(struct tfh_wording *w);
/* "71 % importing tensorflow (train.py:3), ..." for one of these parts; `told`: without its first
 * line. "": nothing was seen. */
const char *tfh_start_seen(struct tfh_wording *w, enum tfh_branch part, bool told);
/* "71 % importing tensorflow", "62 % at train.py:3", for the line with the largest share; "": none
 * has a tenth. */
const char *tfh_start_mostly(struct tfh_wording *w, enum tfh_branch part);
/* What the thread does for over half of one of these parts instead of running; RUNNING: nothing
 * that tells more. */
enum tft_state tfh_start_waits(const struct tfh_result *r, enum tfh_branch part);
/* The share of a part that its lines are about: of the start, what imports nothing; of the end,
 * what Python does. */
double tfh_start_share(const struct tfh_result *r, enum tfh_branch part);
/* Seconds of a part in which modules were imported, as far as was seen. */
double tfh_imports_s(const struct tfh_result *r, enum tfh_branch part);
/* Where what precedes the steps is half of the run, and imports are a tenth of it. */
void tfh_advise_imports(struct tfh_wording *w);
/* jax_ops.c: if Python makes JAX's operations one by one for most of the time at the verdict's
 * line, adds evidence and returns what to do about it; else NULL. */
const char *tfh_jax_ops_advice(struct tfh_wording *w);
/* sampled_words.c: all sentences about a run in which no call was recorded; what a thread was
 * doing at a line, "native code"; "train.py:12 main > MLP.fit". */
void tfh_explain_sampled(struct tfh_wording *w);
const char *tfh_sampled_does(const struct tfh_result *r, const struct tfh_sampled_line *l);
const char *tfh_sampled_at(struct tfh_wording *w, const struct tfh_sampled_line *l);
/* compiling_words.c: seconds of the run in which it compiles, outside of what the verdict is about;
 * 0: too little to report. */
double tfh_compiling_s(const struct tfh_result *r);
/* Whether it is at the line of a verdict about compiling, whose advice is about both. */
bool tfh_compiling_is_told(const struct tfh_result *r);
/* The same in one kind of part. */
double tfh_compiled_in(const struct tfh_result *r, enum tfh_branch part);
void tfh_advise_compiling(struct tfh_wording *w);
/* misuse.c: evidence that steps start the input pipeline anew, if they do; advice */
void tfh_explain_restarts(struct tfh_wording *w);
void tfh_advise_misuse(struct tfh_wording *w);
/* A pool that is made anew: part of what the verdict is about, or besides it. */
void tfh_explain_new_pool(struct tfh_wording *w);
/* next.c: advice about what else blocks the steps, and about what the run does besides them. */
void tfh_advise_rest(struct tfh_wording *w);
/* What the run does besides its steps, alone. */
void tfh_advise_besides(struct tfh_wording *w);
/* That a place of the program takes time besides the verdict's line, and what to do about it. */
void tfh_advise_place(struct tfh_wording *w, const struct tfh_place_gain *place, const char *todo);
/* Whether two places are mostly the same time: one calls the other. */
bool tfh_places_overlap(const struct tfh_result *r, const struct tfh_place_gain *a,
			const struct tfh_place_gain *b);
/* Whether the step becomes shorter by more than the removed part takes. The rest of such a gain
 * comes from other waits that are then hidden by computing, which depends on what the fix leaves of
 * the part. */
bool tfh_hides_more(const struct tfh_result *r, const struct tfh_whatif *w);
/* remarks.c: what the input pipeline could deliver */
void tfh_note_supply(struct tfh_wording *w);
/* Shortages of the machine: CPUs, disk, memory. */
void tfh_note_machine(struct tfh_wording *w);
/* Devices: threads far from them, lowered clocks, errors. */
void tfh_note_devices(struct tfh_wording *w);
/* Settings that may be related to the verdict (base/priced.def). */
void tfh_note_priced(struct tfh_wording *w);
/* Page faults. */
void tfh_note_faults(struct tfh_wording *w);
/* Steps: memory, slow ones, and those left out. */
void tfh_note_steps(struct tfh_wording *w);
/* computed_words.c: "backward" */
const char *tfh_computes_words(enum tfh_computes part);
/* Whether more than one part of what is computed on the CPU is known. */
bool tfh_computed_in_parts(const struct tfh_result *r);
/* "backward 50 %, forward 41 % (mostly Linear) of a step"; NULL: not known. */
const char *tfh_computed_shares(struct tfh_wording *w);
/* What takes most of these parts. Unless the verdict has a line (`placed`): their lines, or the
 * function that is all of it; false: neither is known. */
bool tfh_explain_computed(struct tfh_wording *w, bool placed);
/* copy_words.c: a transfer-bound verdict */
void tfh_explain_transfer(struct tfh_wording *w);
/* computing.c: a compute-bound verdict */
void tfh_explain_compute(struct tfh_wording *w);
/* Other processes on the GPU, unless they are the verdict. */
void tfh_note_gpu_contention(struct tfh_wording *w);

/* loaders.c: how to have that many processes make the batches that a library's loader now makes in
 * the calling thread; NULL: no loader with words of its own. */
const char *tfh_loader_workers(struct tfh_wording *w, uint32_t workers);

/* crowd.c: who had the machine's CPUs while the job waited for one;
 * what to do if that was mostly the job itself (NULL: it was not). */
const char *tfh_who_had_cpus(struct tfh_wording *w);
const char *tfh_own_crowd_advice(const struct tfh_result *r);
/* Whether the job waited for CPUs that other programs had. */
bool tfh_others_crowd(const struct tfh_result *r);
/* remarks.c: ": more threads will not help", for a machine whose CPUs are busy, if they would be
 * the usual remedy and the advice does not recommend them; else "". */
const char *tfh_no_more_threads(const struct tfh_wording *w);

#endif
