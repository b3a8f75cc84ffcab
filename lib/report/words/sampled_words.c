/* The words about a run in which no call was recorded, of which there are only samples of its main
 * thread, or of the threads or processes that it waits for. */
#include <math.h>
#include <string.h>

#include "judge/facts/served.h"
#include "model/symbols/pylines.h"
#include "report/words/remedy.h"
#include "report/words/words.h"

/* For each cause: what the thread does, and what to do about it where that is not the same as in a
 * step of a job that records. */
static const struct sampled_row {
	enum tfh_cause cause;
	const char *does, *todo;
} rows[] = {
	{TFH_CAUSE_COMPUTE_CPU, "computes in native code",
	 "if a GPU should do it, check that the library finds one; otherwise fewer or cheaper operations, or more CPUs"},
	{TFH_CAUSE_HOST_PYTHON, "runs Python code",
	 "make the line cheaper: call functions that work on whole arrays, keep what does not change, or do it less often"},
	{TFH_CAUSE_HOST_LAUNCH, "makes JAX's operations one by one", TFH_JIT_OPS},
	{TFH_CAUSE_HOST_GIL, "waits for the GIL, which another thread holds", NULL},
	{TFH_CAUSE_HOST_LOCK, "waits for another thread", NULL},
	{TFH_CAUSE_HOST_CALLBACK, "waits for functions of the program that a library calls",
	 TFH_CHEAPER_CALLBACKS},
	{TFH_CAUSE_HOST_SLEEP, "sleeps", NULL},
	{TFH_CAUSE_HOST_WAIT, "waits for another process or machine", NULL},
	{TFH_CAUSE_HOST_CHECKPOINT, "saves files", NULL},
	{TFH_CAUSE_HOST_LOGGING, "writes a log", NULL},
	{TFH_CAUSE_HOST_GC, "collects garbage", NULL},
	{TFH_CAUSE_HOST_COMPILE, "compiles",
	 "keep shapes and static arguments the same; what is compiled once, cache for the next run "
	 "(JAX: jax_compilation_cache_dir)"},
	{TFH_CAUSE_INPUT_READ, "reads files", NULL},
	{TFH_CAUSE_INPUT_REMOTE, "asks a service",
	 "ask ahead, in a thread, for several things at once, over one connection"},
	{TFH_CAUSE_INPUT_DECODE, "decodes data", NULL},
	{TFH_CAUSE_INPUT_MAP, "transforms data", "transform ahead, in other processes, or once"},
	{TFH_CAUSE_INPUT_BATCH, "assembles batches", NULL},
	{TFH_CAUSE_INPUT_DATALOADER, "makes batches",
	 "make them ahead, in other processes (the loader's workers)"},
	{TFH_CAUSE_NONE, "waits", "look at the line"},
};

/* Where the function that a step calls is not jitted as a whole: neither a cache nor equal shapes
 * would help. */
static const struct sampled_row traces = {
	TFH_CAUSE_HOST_COMPILE, "retraces JAX functions",
	"wrap the whole function that the step calls there in jax.jit, once, before the loop: "
	"called op by op, it retraces parts of itself in each call"};

static const struct sampled_row *row_of(const struct tfh_result *r, enum tfh_cause cause)
{
	size_t i = 0;

	while (rows[i].cause != TFH_CAUSE_NONE && rows[i].cause != cause)
		i++;
	return cause == traces.cause && r->found.sampled.traced > 1 - TFH_BLOCKING_SHARE ? &traces
											 : &rows[i];
}

static const char *sampled_todo(const struct tfh_result *r, enum tfh_cause cause)
{
	const char *todo = row_of(r, cause)->todo;

	return todo ? todo : tfh_remedy_in(r, cause).todo;
}

/* Whether samples show a library that may use a GPU. */
static bool could_use_gpu(const struct tfh_result *r)
{
	static const char *const folders[] = {
		"/torch/",   "/jax/",	   "/jaxlib/",	 "/tensorflow/", "/keras/", "/cupy/",
		"/xgboost/", "/lightgbm/", "/catboost/", "/tinygrad/",	 "/mxnet/", "/paddle/"};

	for (uint32_t i = 0; i < r->found.n_node; i++)
		for (size_t k = 0; k < sizeof(folders) / sizeof(*folders); k++)
			if (tfh_is_in_package(r->found.node[i].file, folders[k]))
				return true;
	return false;
}

static bool sleeps(const struct tfh_sampled_line *l)
{
	return l->state != TFT_STATE_RUNNING && l->state != TFT_STATE_MEMORY &&
	       l->state != TFT_STATE_READ && l->state != TFT_STATE_PAGE &&
	       l->state != TFT_STATE_NAMES && l->state != TFT_STATE_WRITE;
}

static const char *who(const struct tfh_result *r)
{
	return !r->found.sampled.pool.file ? "the main thread"
	       : r->found.workers.threads  ? "a worker thread"
					   : "a worker process";
}

const char *tfh_sampled_does(const struct tfh_result *r, const struct tfh_sampled_line *l)
{
	const char *state = tfh_state_words(l->state);

	if (sleeps(l) && l->cause == TFH_CAUSE_COMPUTE_CPU)
		return "waits for computing on other threads";
	if (sleeps(l) && l->cause == TFH_CAUSE_HOST_COMPILE)
		return "waits for the compiler";
	if (sleeps(l) && *state)
		return state;
	if (l->callee && l->cause == TFH_CAUSE_HOST_PYTHON && tfh_loads_file_by(l->callee))
		return "loads files";
	return l->cause == TFH_CAUSE_COMPUTE_CPU   ? "native code"
	       : l->cause == TFH_CAUSE_HOST_PYTHON ? "Python code"
						   : row_of(r, l->cause)->does;
}

const char *tfh_sampled_at(struct tfh_wording *w, const struct tfh_sampled_line *l)
{
	const char *line = tfh_phrase(w, "%s:%u", tfh_short_file(l->file), l->line);

	if (strcmp(l->function, "<module>") != 0)
		line = tfh_phrase(w, "%s %s", line, tfh_function_of(w, l->function));
	if (!l->callee)
		return line;
	return tfh_phrase(w, "%s > %s", line, tfh_function_of(w, l->callee));
}

/* The line of the verdict in the table; NULL: none. */
static const struct tfh_sampled_line *verdict_line(const struct tfh_result *r)
{
	const struct tfh_sampled *s = &r->found.sampled;

	for (uint32_t i = 0; i < s->n_line && r->found.line.file && r->found.line.function; i++)
		if (s->line[i].line == r->found.line.line &&
		    !strcmp(s->line[i].file, r->found.line.file) &&
		    !strcmp(s->line[i].function, r->found.line.function))
			return &s->line[i];
	return NULL;
}

/* "16.1 ms each: iterations of the loop in main, train.py:40 to 47, entered 3 times" */
static void say_steps(struct tfh_wording *w)
{
	const struct tfh_step_loop *l = &w->r->found.sampled.loop;
	const char *to = "", *times = "";

	if (!l->file)
		return;
	if (l->last > l->first)
		to = tfh_phrase(w, " to %u", l->last);
	if (l->times > 1)
		times = tfh_phrase(w, ", entered %llu times", (unsigned long long)l->times);
	tfh_evidence(w, TFH_TELLS_WHY,
		     tfh_phrase(w, "steps of %s: iterations of the loop in %s, %s:%u%s%s",
				tfh_phrase_time(w, w->r->steps.median_s),
				strcmp(l->function, "<module>") != 0
					? tfh_function_of(w, l->function)
					: "the program",
				tfh_short_file(l->file), l->first, to, times));
}

/* Whether the verdict's line is one of the other threads, for which the main thread waits. */
static bool is_makers(const struct tfh_result *r)
{
	const struct tfh_seen_line *l = &r->found.line;

	return r->found.workers.threads && l->file && l->file == r->found.workers.line.file &&
	       l->line == r->found.workers.line.line &&
	       l->function == r->found.workers.line.function;
}

/* "; all of Penalty.__call__: 61 %": what the gain is of, if that is much more than the line. */
static const char *whole_text(struct tfh_wording *w, const struct tfh_sampled_line *l)
{
	const struct tfh_place_gain *g =
		w->r->line_place ? &w->r->place[w->r->line_place - 1] : NULL;
	double share = g ? g->s_per_step / w->r->steps.median_s : 0;

	if (!g || share - l->share < TFH_REPORT_NAMED_SHARE)
		return "";
	return tfh_phrase(w, "; all of %s: %.0f %%",
			  g->whole ? tfh_function_of(w, g->function)
				   : w->place[w->r->line_place - 1],
			  100 * share);
}

static void say_line(struct tfh_wording *w)
{
	const struct tfh_sampled_line *l = verdict_line(w->r);
	const struct tfh_seen_workers *k = &w->r->found.workers;
	const char *callee = "";

	if (is_makers(w->r))
		tfh_evidence(
			w, TFH_TELLS_LINE,
			tfh_phrase(w, "%s: %.0f %% of the other %s work",
				   tfh_at_words(w, k->line.function, k->line.file, k->line.line),
				   100 * k->line.share, k->threads == 1 ? "thread's" : "threads'"));
	if (!l || is_makers(w->r))
		return;
	if (l->callee)
		callee = tfh_phrase(w, ", in %s (%s:%u)", tfh_function_of(w, l->callee),
				    tfh_short_file(l->callee_file), l->callee_line);
	tfh_evidence(w, TFH_TELLS_LINE,
		     tfh_phrase(w, "%s, %s:%u: %.0f %% of its time%s%s",
				tfh_function_of(w, l->function), tfh_short_file(l->file), l->line,
				100 * l->share, callee, whole_text(w, l)));
}

/* Whether computing is mostly that of other threads, which the thread waits for. */
static bool awaits_computing(const struct tfh_result *r)
{
	const struct tfh_sampled *s = &r->found.sampled;

	return r->verdict.cause == TFH_CAUSE_COMPUTE_CPU &&
	       2 * s->state[TFT_STATE_LOCK] > s->cause[TFH_CAUSE_COMPUTE_CPU];
}

/* "running without the GIL 71 %, running 20 %, waiting for a lock 5 %" */
static void say_states(struct tfh_wording *w)
{
	const struct tfh_sampled *s = &w->r->found.sampled;
	const char *all = "";

	for (int i = 0; i < TFT_STATE_COUNT; i++) {
		const char *state = i == TFT_STATE_LOCK && awaits_computing(w->r)
					    ? "waiting for their results"
					    : tfh_state_words(i);
		double released = i == TFT_STATE_RUNNING ? s->released : 0;
		if (released >= TFH_BLOCKING_SHARE)
			all = tfh_phrase(w, "running without the GIL %.0f %%", 100 * released);
		if (s->state[i] - released >= TFH_BLOCKING_SHARE && *state)
			all = tfh_phrase(w, "%s%s%s%s %.0f %%", all, *all ? ", " : "", state,
					 released > 0 ? " with it" : "",
					 100 * (s->state[i] - released));
	}
	if (*all)
		tfh_evidence(w, TFH_TELLS_WHY, all);
}

static void say_others(struct tfh_wording *w)
{
	const struct tfh_seen_workers *k = &w->r->found.workers;
	uint32_t n = k->threads + k->processes;
	const char *what = k->threads ? "thread" : "process", *line = "";

	if (!n)
		return;
	if (k->line.file && k->line.function && !w->r->found.sampled.pool.file && !is_makers(w->r))
		line = tfh_phrase(w, ", %.0f %% of it in %s", 100 * k->line.share,
				  tfh_at_words(w, k->line.function, k->line.file, k->line.line));
	tfh_evidence(w, TFH_TELLS_WHO,
		     tfh_phrase(w, "%u other %s%s, busy for %.0f %% of %s%s", n, what,
				n == 1	     ? ""
				: k->threads ? "s"
					     : "es",
				100 * k->busy,
				k->threads ? "the time in which it waits" : "the time", line));
}

/* For a job whose main thread has given all the work to others. */
static void say_pool(struct tfh_wording *w)
{
	const struct tfh_pool_wait *p = &w->r->found.sampled.pool;

	if (p->file)
		tfh_evidence(
			w, TFH_TELLS_WHY,
			tfh_phrase(w, "the main thread waits for %s for %.0f %% of its time, at %s",
				   w->r->found.workers.threads + w->r->found.workers.processes == 1
					   ? "it"
					   : "them",
				   100 * p->share, tfh_at_words(w, p->function, p->file, p->line)));
}

/* Why there is no class. */
static const char *missing(struct tfh_wording *w)
{
	const struct tfh_sampled *s = &w->r->found.sampled;
	double of[TFH_CLASS_COUNT] = {0};
	int first = 0, second = 0;
	uint64_t placed = 0;

	for (uint32_t i = 0; i < s->n_line; i++)
		placed += s->line[i].samples;
	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		of[tfh_cause_class((enum tfh_cause)c)] += s->cause[c];
	for (int c = 1; c < TFH_CLASS_COUNT; c++)
		first = of[c] > of[first] ? c : first;
	second = !first;
	for (int c = 0; c < TFH_CLASS_COUNT; c++)
		second = c != first && of[c] > of[second] ? c : second;
	if (s->why)
		return s->why;
	if (placed >= TFH_VERDICT_SAMPLED_LEAST)
		return tfh_phrase(w, "what %s did is not known for a fifth of the time", who(w->r));
	if (placed < TFH_FACTS_SAMPLE_LEAST || !(of[second] > 0))
		return "there are too few samples with a line of Python";
	return tfh_phrase(w, "%llu samples leave open whether it is %s (%.0f %%) or %s (%.0f %%)",
			  (unsigned long long)placed, tfh_class_name((enum tfh_class)first),
			  100 * of[first], tfh_class_name((enum tfh_class)second),
			  100 * of[second]);
}

/* What to do about a cause, unless other threads make the data. */
static const char *todo_of(struct tfh_wording *w, enum tfh_cause cause)
{
	const struct tfh_result *r = w->r;
	bool computes = cause == TFH_CAUSE_COMPUTE_CPU;
	const char *workers =
		tfh_cause_class(cause) == TFH_CLASS_INPUT_BOUND ? tfh_loader_workers(w, 1) : NULL;

	if (workers)
		return tfh_phrase(w,
				  "%s, or more: processes make the batches; and do less for each",
				  workers);
	if (tfh_makes_pools(r, cause) || (!computes && tfh_loads_files(r, cause)))
		return tfh_remedy_in(r, cause).todo;
	if (computes && r->verdict.cause == cause && r->line_place)
		return "do it less often, keep its results, or leave it out; otherwise cheaper operations, or more CPUs";
	if (computes && !could_use_gpu(r))
		return "fewer or cheaper operations, or more CPUs";
	return sampled_todo(r, cause);
}

static void explain(struct tfh_wording *w)
{
	const struct tfh_verdict *v = &w->r->verdict;
	const struct tfh_sampled *s = &w->r->found.sampled;
	const struct tfh_sampled_line *l = verdict_line(w->r);
	const struct tfh_seen_workers *maker = &w->r->found.workers;
	const struct sampled_row *row = row_of(w->r, v->cause);
	bool loads = tfh_loads_files(w->r, v->cause);
	bool fed = v->cls == TFH_CLASS_INPUT_BOUND && (is_makers(w->r) || (l && sleeps(l)));
	const char *does = fed					 ? "waits for data"
			   : tfh_saves_images(w->r, v->cause)	 ? "saves images"
			   : tfh_measures_itself(w->r, v->cause) ? "runs a profiler or meter"
			   : loads && row->cause == TFH_CAUSE_HOST_PYTHON
				   ? "runs Python code, mostly to load files"
			   : loads		    ? "loads files"
			   : awaits_computing(w->r) ? "waits for computing on other threads"
						    : row->does;
	double share = v->cause == TFH_CAUSE_NONE ? NAN : s->cause[v->cause];
	const struct tfh_whatif none = {.step_s = NAN, .ceiling_speedup = NAN, .saved_s = NAN},
				*gain = w->r->line_place ? &w->r->place[w->r->line_place - 1].gain
							 : &none;

	if (v->cause == TFH_CAUSE_NONE) {
		w->missing = missing(w);
		w->missing_do = "record a longer run";
		w->text = "not enough evidence for a verdict";
		return;
	}
	w->text = tfh_phrase(w, "for %.0f %% of its time %s %s", 100 * share, who(w->r), does);
	const char *finding = tfh_phrase(w, "%s %s", who(w->r), does);
	if (fed && maker->line.file && maker->line.function)
		finding = tfh_phrase(
			w, "%s that %s makes", finding,
			tfh_at_words(w, maker->line.function, maker->line.file, maker->line.line));
	else if (l)
		finding = tfh_phrase(w, "%s: %s", finding,
				     tfh_at_words(w, l->function, l->file, l->line));
	tfh_advise_gain(
		w, finding, w->text,
		fed ? "make the data in more threads or processes, further ahead, or do less for each"
		    : todo_of(w, v->cause),
		gain);
}

static void advise_other_places(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const char *first = w->n_advice ? w->advice[0].todo : "",
		   *todo = todo_of(w, r->verdict.cause);

	for (uint32_t i = 0; i < r->n_place && r->line_place; i++)
		if (!tfh_places_overlap(r, &r->place[i], &r->place[r->line_place - 1]))
			tfh_advise_place(w, &r->place[i],
					 strcmp(first, todo) != 0 ? todo : "the same");
}

/* What to fix next: the largest cause of a class that alone would still keep the steps from being
 * compute-bound, or computing, if it takes more time than the verdict's class. NONE: there is
 * none. */
static enum tfh_cause second_cause(const struct tfh_result *r)
{
	const double *share = r->found.sampled.cause;
	enum tfh_cause most = TFH_CAUSE_NONE;
	double of[TFH_CLASS_COUNT] = {0};

	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		of[tfh_cause_class(c)] += share[c];
	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		enum tfh_class cls = tfh_cause_class(c);
		double least = cls == TFH_CLASS_COMPUTE_BOUND ? r->verdict.share
							      : 1 - TFH_ACCOUNT_COMPUTE_SHARE;
		if (cls != r->verdict.cls && c != TFH_CAUSE_HOST_UNKNOWN && of[cls] >= least &&
		    (most == TFH_CAUSE_NONE || share[c] > share[most]))
			most = c;
	}
	return r->verdict.cause == TFH_CAUSE_NONE ? TFH_CAUSE_NONE : most;
}

/* With the line that has most of it. */
static void advise_second(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const struct tfh_sampled *s = &r->found.sampled;
	const struct tfh_whatif none = {.step_s = NAN, .ceiling_speedup = NAN, .saved_s = NAN},
				*gain = &none;
	enum tfh_cause cause = second_cause(r);
	uint32_t at = 0;

	while (at < s->n_line &&
	       (s->line[at].cause != cause || s->line[at].samples < TFH_VERDICT_LINE_SAMPLES))
		at++;
	if (cause == TFH_CAUSE_NONE || at == s->n_line)
		return;
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (tfh_remove_part(r->whatif[i].remove) == tfh_cause_part(cause))
			gain = &r->whatif[i];
	tfh_advise_gain(w,
			tfh_phrase(w, "%s also %s: %s", who(r), row_of(r, cause)->does,
				   tfh_at_words(w, s->line[at].function, s->line[at].file,
						s->line[at].line)),
			tfh_phrase(w, "for %.0f %% of its time", 100 * s->cause[cause]),
			todo_of(w, cause), gain);
}

static void say_how_to_mark(struct tfh_wording *w)
{
	const struct tfh_sampled *s = &w->r->found.sampled;
	const char *where = "the loop over steps";

	if (s->file && s->last > s->first)
		where = tfh_phrase(w, "the loop in %s, %s:%u to %u",
				   strcmp(s->function, "<module>") != 0
					   ? tfh_function_of(w, s->function)
					   : "the program",
				   tfh_short_file(s->file), s->first, s->last);
	else if (s->file && strcmp(s->function, "<module>") != 0)
		where = tfh_phrase(w, "the loop that calls %s or is in it, %s:%u",
				   tfh_function_of(w, s->function), tfh_short_file(s->file),
				   s->first);
	tfh_advise(
		w,
		tfh_phrase(
			w,
			"for times and gains per step, if it has steps: mark them with tfhook.step_scope() around the body of %s",
			where),
		"no call was recorded", "", TFH_REMOVE_NONE);
}

static void note_left_out(struct tfh_wording *w)
{
	const struct tfh_sampled *s = &w->r->found.sampled;

	if (s->start_s < TFH_REPORT_OTHER_SHARE * s->wall_s)
		return;
	tfh_remark(w,
		   tfh_phrase(w,
			      "%s are left out: imports%s%s, and the interpreter's start and end",
			      tfh_phrase_time(w, s->start_s),
			      s->compiles_first ? ", compiling at the start" : "",
			      s->loop.file ? ", what is before and after the steps" : ""));
}

void tfh_explain_sampled(struct tfh_wording *w)
{
	const struct tfh_sampled *s = &w->r->found.sampled;

	say_line(w);
	explain(w);
	advise_other_places(w);
	advise_second(w);
	tfh_explain_new_pool(w);
	say_steps(w);
	say_states(w);
	say_others(w);
	say_pool(w);
	if (s->jax && !s->loop.file)
		tfh_remark(
			w,
			"JAX on the CPU does not show its steps; on a GPU, or with input from tf.data or a PyTorch DataLoader, they can be found");
	if (s->jax && awaits_computing(w->r))
		tfh_remark(
			w,
			"JAX queues its computing: a line that waits for a result also waits for what earlier lines queued");
	if (!(s->loop.file && tfh_note_run(w)))
		note_left_out(w);
	if (s->loop.file)
		tfh_note_start(w);
	if (s->why)
		tfh_remark(w, tfh_phrase(w, "no lines of Python were seen: %s", s->why));
	if (s->loop.file)
		tfh_advise_besides(w);
	else
		say_how_to_mark(w);
}
