/* What each cause means in this job. What to do about it is in remedy.c. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "report/format.h"
#include "report/words/remedy.h"
#include "report/words/words.h"

/* todo: NULL for the usual advice. */
static void advise(struct tfh_wording *w, enum tfh_cause cause, const char *why, const char *todo,
		   enum tfh_remove remove)
{
	struct tfh_remedy m = tfh_remedy_in(w->r, cause);

	tfh_advise(w, m.finding, why, todo ? todo : m.todo, remove);
}

static double per_step(const struct tfh_result *r, enum tfh_part p)
{
	return r->breakdown[p].s_per_step;
}

/* ---- input ---- */

/* The slow stage, if steps call it: what only the beginnings of epochs wait for has no time per
 * step. */
static const struct tfh_input_stage *guilty(const struct tfh_result *r)
{
	return r->n_input && r->input[0].guilty && r->input[0].calls_per_step > 0 ? &r->input[0]
										  : NULL;
}

/* Advice about the slow stage; `why` is the line that shows it. */
static void advise_stage(struct tfh_wording *w, enum tfh_cause cause, const char *why)
{
	struct tfh_remedy m = tfh_stage_remedy(w->r, cause);

	if (cause == TFH_CAUSE_INPUT_MAP && tfh_runs_python(w->r))
		m.todo =
			"its functions are Python, of which one runs at a time, however many calls "
			"are in parallel: use TensorFlow's ops, or do it once and store the result";
	tfh_advise(w, m.finding, why, m.todo, TFH_REMOVE_INPUT);
}

/* The end of a stage's path: its sources are of less use than the stage itself,
 * and too long for a line. */
static const char *path_end(struct tfh_wording *w, const char *path)
{
	const char *end = path;
	size_t n = strlen(path);

	if (n <= TFH_REPORT_PATH)
		return path;
	for (end = path + n - TFH_REPORT_PATH; *end && !tfh_starts_with(end, "::");)
		end++;
	return *end ? tfh_phrase(w, "..%s", end) : path;
}

/* An asynchronous stage has its own threads, so the measured time is the time that others waited
 * for it. */
static const char *stage_line(struct tfh_wording *w, const struct tfh_input_stage *g)
{
	return tfh_phrase(
		w,
		g->async ? "%s: the pipeline's own threads wait %s per step for it, %s (%s)"
			 : "%s: %s of its own time per step, %s (%s)",
		tfh_stage_words(w, g->name), tfh_phrase_time(w, g->self_s_per_step),
		tfh_phrase_calls(w, g->calls_per_step), path_end(w, g->prefix));
}

/* NULL: nothing is known beyond the cause. */
static const char *workers_advice(struct tfh_wording *w)
{
	const struct tfh_more_workers *m = &w->r->found.workers.more;

	if (!m->to || (m->from && w->r->found.machine.busy > 0))
		return NULL;
	if (m->from)
		return tfh_phrase(w, "%u workers instead of %u: a step then takes %s to %s", m->to,
				  m->from, tfh_phrase_time(w, m->low_s),
				  tfh_phrase_time(w, m->high_s));
	const char *own = tfh_loader_workers(w, m->to);
	if (own)
		return tfh_phrase(w, "%s: at best %s a step", own, tfh_phrase_time(w, m->low_s));
	return tfh_phrase(
		w, "num_workers=%u%s%s: at best %s a step%s", m->to,
		tfh_runs(w->r, "JAX") /* its threads hold locks that a forked child never gets */
			? ", multiprocessing_context=\"spawn\" (JAX)"
			: "",
		m->splits ? ", each with its own part of the data (get_worker_info)" : "",
		tfh_phrase_time(w, m->low_s),
		m->splits ? "" : " (short epochs: persistent_workers=True)");
}

/* Says of a wait that may be for requests that it would then be no defect. */
static void explain_chance(struct tfh_wording *w)
{
	if (w->r->found.serves == TFH_SERVES_MAYBE)
		tfh_evidence(w, TFH_TELLS_WHY,
			     "what it waits for comes at random times, and nothing shows that it "
			     "trains: if these are requests, that is idle time and no defect");
}

static void explain_serving(struct tfh_wording *w, const char *idle)
{
	const struct tfh_result *r = w->r;
	double step = tfh_step_s(r);
	double idle_s = r->steady.cause >= 0 ? r->found.cause_s[r->steady.cause] : 0;

	w->text = tfh_phrase(w, "%s of %s it waits for the next request: idle time, no defect",
			     idle, tfh_phrase_time(w, step));
	tfh_advise(w, "it serves, and waits for requests most of the time", w->text,
		   tfh_phrase(w, "nothing, unless answers are slow: a request takes %s",
			      tfh_phrase_time(w, step - idle_s)),
		   TFH_REMOVE_NONE);
}

static void explain_input(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const struct tfh_verdict *v = &r->steady;
	const struct tfh_input_stage *g = guilty(r);
	double step = r->steps.total_s / (double)(r->steps.count ? r->steps.count : 1);
	bool prefetch = false;

	w->text = tfh_phrase(
		w, "every step waits %s of %s %s", tfh_phrase_time(w, per_step(r, TFH_PART_INPUT)),
		tfh_phrase_time(w, step),
		r->found.supposed ? "for another thread, perhaps for its batch" : "for its batch");
	if (r->found.serves == TFH_SERVES) {
		explain_serving(w, tfh_phrase_time(w, r->found.cause_s[v->cause]));
		tfh_seen_line(w);
		return;
	}
	if (!g) {
		tfh_explain_restarts(w);
		tfh_seen_line(w);
		explain_chance(w);
		struct tfh_remedy m = tfh_remedy_in(r, v->cause);
		const char *todo = tfh_opens_anew(r) ? NULL : workers_advice(w);
		tfh_advise(w, m.finding, w->text, todo ? todo : m.todo, TFH_REMOVE_INPUT);
		/* Work that moves to other processes still needs the CPUs. */
		if (todo && w->n_advice && !strcmp(w->advice[w->n_advice - 1].how, "at most "))
			w->advice[w->n_advice - 1].how = "at best ";
		return;
	}
	const char *line = stage_line(w, g);
	tfh_evidence(w, TFH_TELLS_STAGE, line);
	const char *place = r->lead ? NULL : tfh_verdict_line(w);
	if (place)
		tfh_evidence(w, TFH_TELLS_LINE, place);
	advise_stage(w, v->cause, line);
	for (uint32_t i = 0; i < r->n_input; i++)
		prefetch |= strstr(r->input[i].name, "Prefetch") != NULL;
	if (!prefetch)
		tfh_advise(w, "the pipeline does not prefetch", "no Prefetch stage was seen",
			   "end the pipeline with prefetch(tf.data.AUTOTUNE)", TFH_REMOVE_NONE);
}

void tfh_explain_also(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const struct tfh_input_stage *g = guilty(r);

	for (uint32_t i = 0; g && i < r->steady.n_also; i++)
		if (r->steady.also[i] == TFH_CLASS_INPUT_BOUND)
			advise_stage(w, w->r->found.input_cause, stage_line(w, g));
}

/* ---- the host ---- */

/* Reports functions that are retraced: which, how often, and why. Returns advice;
 * NULL: there are none. */
static const char *explain_retraced(struct tfh_wording *w)
{
	const struct tfh_retraced *x = &w->r->found.retraced;

	if (!x->variants)
		return w->r->found.imported && w->r->steps.count < TFH_LOOPS_FEWEST_STEPS
			       ? "trace later steps: the first ones compile or load what they run"
			       : NULL;
	tfh_evidence(w, TFH_TELLS_WHY,
		     tfh_phrase(w,
				"%s was traced again for %" PRIu64 " of %" PRIu64
				" calls: another shape, or another Python value, of an argument "
				"makes another function",
				x->name, x->variants, x->calls));
	return "pass numbers as tensors, keep shapes the same (pad the last batch, or drop it), or "
	       "give tf.function an input_signature with None for what changes";
}

/* What is said about host time, by cause. The last row is for time without a known cause. */
static const struct {
	enum tfh_cause cause;
	enum tfh_remove remove;
	const char *what;
} code_rows[] = {
	{TFH_CAUSE_HOST_SYNC, TFH_REMOVE_SYNC,
	 "for %s of every step the program waits for a device that is idle"},
	{TFH_CAUSE_HOST_CONTENTION, TFH_REMOVE_SYNC,
	 "for %s of every step the program is ready to run but waits for a CPU"},
	{TFH_CAUSE_HOST_ALLOC, TFH_REMOVE_HOST,
	 "the host delays every step by %s, mostly by allocating and freeing device or pinned "
	 "memory"},
	{TFH_CAUSE_HOST_COMPILE, TFH_REMOVE_HOST,
	 "the host delays every step by %s, mostly by compiling or loading kernels or functions"},
	{TFH_CAUSE_HOST_CHECKPOINT, TFH_REMOVE_HOST, "saving checkpoints delays every step by %s"},
	{TFH_CAUSE_HOST_LOGGING, TFH_REMOVE_HOST, "logging delays every step by %s"},
	{TFH_CAUSE_HOST_GC, TFH_REMOVE_HOST, "Python's garbage collection delays every step by %s"},
	{TFH_CAUSE_HOST_GIL, TFH_REMOVE_HOST,
	 "for %s of every step the program waits for the GIL, which its other threads hold"},
	{TFH_CAUSE_HOST_LOCK, TFH_REMOVE_HOST,
	 "for %s of every step the program waits for another of its threads"},
	{TFH_CAUSE_HOST_SLEEP, TFH_REMOVE_HOST, "for %s of every step the program sleeps"},
	{TFH_CAUSE_HOST_WAIT, TFH_REMOVE_HOST,
	 "for %s of every step the program waits for another process or machine"},
	{TFH_CAUSE_HOST_CODE, TFH_REMOVE_HOST,
	 "the program's own native code delays every step by %s"},
	{TFH_CAUSE_NONE, TFH_REMOVE_HOST,
	 "the program's own code delays every step by %s while nothing else runs"},
};

/* The same, in other words where samples show what the thread does or whom it waits for. */
static const char *what_of(const struct tfh_result *r, size_t row)
{
	if (code_rows[row].cause == TFH_CAUSE_HOST_LOCK && tfh_seen_mostly(r, false))
		return "for %s of every step the program waits for a lock that another of its threads holds";
	if (code_rows[row].cause == TFH_CAUSE_HOST_CODE && tfh_seen_mostly(r, true))
		return "for %s of every step the program waits for the work of another of its threads";
	if (tfh_saves_images(r, code_rows[row].cause))
		return "saving images delays every step by %s";
	if (tfh_measures_itself(r, code_rows[row].cause))
		return "a profiler or meter delays every step by %s";
	return code_rows[row].what;
}

/* What is known of the program's own code beyond its cause, and what to do then. False: it does not
 * apply. */
static bool explain_anew(struct tfh_wording *w, enum tfh_remove remove)
{
	struct tfh_remedy anew;

	if (w->r->steady.cause != TFH_CAUSE_HOST_COMPILE || !tfh_remedy_anew(w->r, &anew))
		return false;
	tfh_advise(w, anew.finding, w->text, anew.todo, remove);
	return true;
}

static bool explain_turns(struct tfh_wording *w, const char *time, enum tfh_remove remove)
{
	const struct tfh_result *r = w->r;

	if (r->steady.cause != TFH_CAUSE_HOST_SYNC || !r->found.devices_turn)
		return false;
	w->text = tfh_phrase(w,
			     "for %s of every step one of %" PRIu32
			     " devices has nothing to do, because the program waits for another "
			     "before it launches",
			     time, r->found.devices_turn);
	tfh_advise(w, "the devices take turns", w->text,
		   "launch the work of all devices first, then wait for them; or use a thread "
		   "for each device",
		   remove);
	return true;
}

static bool explain_exchange(struct tfh_wording *w, enum tfh_remove remove)
{
	char both[TFH_TEXT];

	if (!(w->r->found.both_s > 0))
		return false;
	tfh_evidence(w, TFH_TELLS_WHY,
		     tfh_phrase(w,
				"a child process and this one take turns: for %s of every step one "
				"of them works, at the same lines, and the other one waits",
				tfh_fmt_time(both, w->r->found.both_s)));
	tfh_advise(w, "packing and unpacking what two processes exchange takes long", w->text,
		   "send less, or in a form that needs less work (bytes instead of text)", remove);
	return true;
}

/* What to do about code that none of these explains; NULL: what advise() has for its cause. */
static const char *code_advice(struct tfh_wording *w)
{
	enum tfh_cause cause = w->r->steady.cause;
	const char *todo = tfh_place_advice(w, cause);

	if (cause == TFH_CAUSE_HOST_COMPILE)
		todo = explain_retraced(w);
	if (cause == TFH_CAUSE_HOST_CONTENTION) {
		tfh_evidence(w, TFH_TELLS_WHO, tfh_who_had_cpus(w));
		todo = tfh_own_crowd_advice(w->r);
	}
	if (!todo)
		todo = tfh_jax_ops_advice(w);
	/* The input pipeline may then be a loader in plain code. */
	if (!todo && cause == TFH_CAUSE_HOST_UNKNOWN && !w->r->found.input_visible)
		todo = w->r->found.n_node
			       ? "`tfhook report --where` shows where that time goes: load batches ahead in other "
				 "threads or processes, do the rest less often or while the device "
				 "computes"
			       : "see what it does (while it runs: py-spy top, perf top): load batches "
				 "ahead in other threads or processes, do the rest less often or while "
				 "the device computes";
	return todo;
}

static void explain_code(struct tfh_wording *w, const char *time)
{
	enum tfh_cause cause = w->r->steady.cause;
	size_t i = 0;

	while (code_rows[i].cause != TFH_CAUSE_NONE && code_rows[i].cause != cause)
		i++;
	w->text = tfh_phrase(w, what_of(w->r, i), time);
	const char *line = tfh_place_line(w, cause);
	if (line)
		tfh_evidence(w, TFH_TELLS_LINE, line);
	if (explain_anew(w, code_rows[i].remove) || explain_turns(w, time, code_rows[i].remove) ||
	    explain_exchange(w, code_rows[i].remove))
		return;
	advise(w, cause, w->text, code_advice(w), code_rows[i].remove);
}

static void explain_launches(struct tfh_wording *w, const char *time)
{
	const struct tfh_result *r = w->r;
	double calls = round(tfh_launches(r));

	w->text =
		tfh_makes_graphs(r) ? tfh_phrase(w,
						 "a graph is made in %" PRIu64 " of %" PRIu64
						 " steps; that and launches take %s of every step",
						 r->pattern.graph_steps, r->steps.count, time)
		: w->r->found.cpu_only
			? tfh_phrase(w,
				     w->r->found.graphs
					     ? "calling the step's function takes %s of every step"
					     : "issuing ops one by one takes %s of every step",
				     time)
		: r->found.replays
			? tfh_phrase(w,
				     "the steps launch captured graphs; preparing these and other "
				     "calls takes %s of every step",
				     time)
		: !calls ? tfh_phrase(w, "issuing copies and other calls takes %s of every step",
				      time)
			 : tfh_phrase(w, "%s %.0f launch%s takes %s of every step",
				      tfh_prepares_launches(r) ? "preparing" : "issuing", calls,
				      calls == 1 ? "" : "es", time);
	advise(w, TFH_CAUSE_HOST_LAUNCH, w->text, tfh_launch_advice(w), TFH_REMOVE_LAUNCH);
}

static void explain_callbacks(struct tfh_wording *w, const char *time)
{
	bool queued = w->r->found.queued_functions;

	if (w->r->found.calls_back && !queued) {
		w->text = tfh_phrase(
			w,
			"for %s of every step the program waits for functions of its own that a "
			"library calls",
			time);
		tfh_advise(w, "functions that a library calls delay the training loop", w->text,
			   TFH_CHEAPER_CALLBACKS, TFH_REMOVE_HOST);
		return;
	}
	w->text = tfh_phrase(
		w,
		queued ? "for %s of every step the device waits for functions of the program that "
			 "it queued in streams (cuLaunchHostFunc)"
		       : "%s of every step is spent between the step's work and the request for "
			 "the next batch: callbacks, metrics, logging",
		time);
	advise(w, TFH_CAUSE_HOST_CALLBACK, w->text,
	       queued ? "make them shorter, or let nothing in the stream wait for them" : NULL,
	       TFH_REMOVE_HOST);
}

static void explain_host(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const struct tfh_verdict *v = &r->steady;
	double all = per_step(r, TFH_PART_LAUNCH) + per_step(r, TFH_PART_HOST) +
		     per_step(r, TFH_PART_SYNC);
	double own = v->cause >= 0 ? r->found.cause_s[v->cause] : NAN;
	/* allocating and compiling are compared with all that the host does */
	bool most = v->cause == TFH_CAUSE_HOST_ALLOC || v->cause == TFH_CAUSE_HOST_COMPILE;
	if (v->cause == TFH_CAUSE_HOST_CONTENTION)
		own = r->found.contended.s_per_step;
	const char *time = tfh_phrase_time(w, most || isnan(own) ? all : own);

	if (r->found.serves == TFH_SERVES) {
		explain_serving(w, time);
	} else if (v->cause == TFH_CAUSE_HOST_LAUNCH) {
		explain_launches(w, time);
	} else if (v->cause == TFH_CAUSE_HOST_CALLBACK) {
		explain_callbacks(w, time);
	} else if (v->cause == TFH_CAUSE_HOST_UNKNOWN &&
		   w->r->found.graph_ran < TFH_GRAPH_WAITS_SHARE) {
		w->text = tfh_phrase(w,
				     "the step's graph waits instead of computing: while it "
				     "executes, the process has a CPU for %.0f %% of the time",
				     100 * w->r->found.graph_ran);
		tfh_advise(w, "something in the graph waits", w->text,
			   "look for Python functions (numpy_function, py_function) and file "
			   "accesses in the step",
			   TFH_REMOVE_HOST);
	} else {
		explain_code(w, time);
	}
	tfh_seen_line(w);
	explain_chance(w);
	if (!isnan(r->found.code_ran) && !r->found.seen.samples)
		tfh_evidence(w, TFH_TELLS_WHY,
			     tfh_phrase(w,
					"between calls its thread used a CPU for %.0f %% of "
					"the time, and slept or waited for the rest",
					100 * r->found.code_ran));
}

/* ---- other ranks, and computing ---- */

static void explain_communication(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const struct tfh_verdict *v = &r->steady;

	w->text = tfh_phrase(w,
			     v->cause == TFH_CAUSE_COMMUNICATION_JITTER
				     ? "every step waits %s for other ranks to join its collectives"
				     : "the exchange between ranks delays every step by %s",
			     tfh_phrase_time(w, per_step(r, TFH_PART_COMMUNICATION)));
	const char *line = r->lead ? NULL : tfh_verdict_line(w);
	const struct tfh_rank *late = tfh_rank_waited_for(r);
	if (line)
		tfh_evidence(w, TFH_TELLS_LINE,
			     late ? tfh_phrase(w, "in rank %d: %s", late->rank, line) : line);
	advise(w, v->cause, w->text,
	       v->cause == TFH_CAUSE_COMMUNICATION_JITTER ? tfh_least_waiting(w) : NULL,
	       TFH_REMOVE_COMMUNICATION);
}

bool tfh_explain_cause(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	switch (r->steady.cls) {
	case TFH_CLASS_INPUT_BOUND:
		explain_input(w);
		return true;
	case TFH_CLASS_TRANSFER_BOUND:
		tfh_explain_transfer(w);
		return true;
	case TFH_CLASS_HOST_BOUND:
		explain_host(w);
		return true;
	case TFH_CLASS_COMMUNICATION_BOUND:
		explain_communication(w);
		return true;
	case TFH_CLASS_COMPUTE_BOUND:
		tfh_explain_compute(w);
		return true;
	default:
		return false;
	}
}
