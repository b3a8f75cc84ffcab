/* The verdict if something other than the steps delays the run most. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "report/words/remedy.h"
#include "report/words/words.h"

/* Computing between loops. If the steps compute next to nothing, it is work that they only issue,
 * and for which the program waits between the loops. */
static const char *between_steps(struct tfh_wording *w, const struct tfh_recurring *x,
				 const char *share, const char *each)
{
	if (!(w->r->breakdown[TFH_PART_COMPUTE].share < TFH_BLOCKING_SHARE))
		return tfh_phrase(w, "computing between loops is %s: %" PRIu64 " times %s", share,
				  x->count, each);
	return tfh_phrase(
		w,
		"between loops the program waits for work that its steps only issue, %s per step: "
		"%s",
		tfh_phrase_time(w, x->total_s / (double)w->r->steps.count), share);
}

/* What it is, how often it occurred, and how long each took. */
static const char *what(struct tfh_wording *w, const struct tfh_recurring *x)
{
	const struct tfh_retraced *f = &w->r->found.retraced;
	const char *each = tfh_phrase_time(w, x->total_s / (double)x->count);
	const char *share = tfh_phrase(w, "%.0f %% of the time in and between steps",
				       100 * x->total_s / w->r->recurs_s);

	switch (x->kind) {
	case TFH_SEGMENT_CHECKPOINT:
		return tfh_phrase(w, "checkpoints take %s: %" PRIu64 " time%s, %s each", share,
				  x->count, x->count == 1 ? "" : "s", each);
	case TFH_SEGMENT_COMPILE:
		return tfh_phrase(w,
				  "compiling or loading kernels takes %s: %" PRIu64 " of %" PRIu64
				  " steps do it, and take %s longer%s",
				  share, x->count, w->r->steps.total, each,
				  f->variants ? "" : "; new shapes, or functions traced again");
	case TFH_SEGMENT_EVAL:
		return tfh_phrase(w, "evaluation takes %s, %s in all; it is %s for %s of that",
				  share, tfh_phrase_time(w, x->total_s), tfh_class_name(x->cls),
				  tfh_phrase_time(w, x->blocked_s));
	default:
		if (x->evaluates_s > 0)
			return tfh_phrase(
				w,
				"a function that the library calls takes %s: %s, of which it "
				"evaluates for %s",
				share, tfh_phrase_time(w, x->total_s),
				tfh_phrase_time(w, x->evaluates_s));
		if (x->cls == TFH_CLASS_COMPUTE_BOUND)
			return between_steps(w, x, share, each);
		return tfh_phrase(
			w,
			"time between loops, such as at the beginnings of epochs, is %s: %" PRIu64
			" times %s, most of it %s",
			share, x->count, each,
			x->cls == TFH_CLASS_INPUT_BOUND ? "waiting for the first batch"
			: tfh_cause_name(x->cause)	? tfh_cause_name(x->cause)
							: tfh_class_name(x->cls));
	}
}

/* Inserts a line before all others. */
static void first_line(struct tfh_wording *w, enum tfh_tells tells, const char *line)
{
	uint32_t n = w->n_evidence < TFH_REPORT_EVIDENCE ? w->n_evidence++ : w->n_evidence - 1;

	memmove(w->evidence + 1, w->evidence, n * sizeof(*w->evidence));
	memmove(w->tells + 1, w->tells, n * sizeof(*w->tells));
	w->tells[0] = tells;
	w->evidence[0] = line;
}

/* Advice about the same cause in the steps may follow, so this one says first where it applies. */
static const char *placed(struct tfh_wording *w, const struct tfh_recurring *x, const char *finding)
{
	if (x->cls == TFH_CLASS_COMPUTE_BOUND || x->evaluates_s > 0 ||
	    tfh_callback_evaluates(w->r, x->cause))
		return finding;
	switch (x->kind) {
	case TFH_SEGMENT_CHECKPOINT:
	case TFH_SEGMENT_COMPILE: /* their findings already say so */
		return finding;
	case TFH_SEGMENT_EVAL:
		return x->cause == TFH_CAUSE_HOST_COMPILE
			       ? "evaluation compiles or loads kernels or functions again"
			       : tfh_phrase(w, "in evaluation %s", finding);
	default:
		return x->cause == TFH_CAUSE_HOST_COMPILE
			       ? "functions are traced or compiled again before each loop"
			       : tfh_phrase(w, "between loops %s", finding);
	}
}

/* The slow stage that feeds a shuffle(), which gives nothing before its buffer is full, if loops
 * wait for that; NULL: they do not. */
static const struct tfh_input_stage *fills(const struct tfh_result *r,
					   const struct tfh_recurring *x)
{
	const struct tfh_input_stage *s = r->input;
	bool waits = x->kind == TFH_SEGMENT_BETWEEN && x->cls == TFH_CLASS_INPUT_BOUND &&
		     r->n_input && s[0].guilty;

	for (uint32_t i = 1; i < r->n_input && waits; i++)
		if (strstr(s[i].name, "Shuffle") && tfh_starts_with(s[0].prefix, s[i].prefix))
			return s;
	return NULL;
}

/* How many times as many steps evaluation has as training. */
static double times_as_many(const struct tfh_result *r)
{
	uint64_t batches = 0, steps = r->steps.total;

	if (r->pattern.per_update > 1)
		steps *= r->pattern.per_update;
	for (uint32_t i = 0; i < r->n_tree; i++)
		batches += r->tree[i].kind == TFH_BRANCH_EVALUATE ? r->tree[i].count : 0;
	return steps ? (double)batches / (double)steps : 0;
}

/* Evaluation that takes longer than training, whatever bounds it, even if all steps of unknown
 * contents train. If nothing but computing takes time in the steps, also one that takes over half
 * as long: less of it gains more than any change of a step. */
static const char *longer_evaluation(struct tfh_wording *w)
{
	double train = tfh_spent(w->r, TFH_BRANCH_TRAIN);
	double evaluation = tfh_spent(w->r, TFH_BRANCH_EVALUATE);
	double steps = train + tfh_spent(w->r, TFH_BRANCH_STEP);
	bool computes = w->r->steady.cls == TFH_CLASS_COMPUTE_BOUND && !w->r->lead;

	train = train > 0 ? train : steps;
	if (!(train > 0) || evaluation <= (computes ? TFH_VERDICT_MOST_SHARE : 1) * steps)
		return NULL;
	if (evaluation <= steps)
		return tfh_phrase(w, "evaluation takes %s of this run, the training itself %s",
				  tfh_phrase_time(w, evaluation), tfh_phrase_time(w, train));
	double times = times_as_many(w->r);
	return tfh_phrase(
		w, "evaluation takes %.1f times as long as training: %s of this run against %s%s",
		evaluation / train, tfh_phrase_time(w, evaluation), tfh_phrase_time(w, train),
		times >= TFH_REPORT_TIMES_STEPS
			? tfh_phrase(w, "; it has %.1f times as many steps", times)
			: "");
}

/* Whether evaluation takes longer than training, and no line of the program has what it takes:
 * only less of it helps, or a faster way for all of it. */
static bool is_all_of_it(struct tfh_wording *w, const struct tfh_recurring *x)
{
	const struct tfh_seen_line *l = &w->r->found.line;

	return x->kind == TFH_SEGMENT_EVAL && (!l->file || l->not_own) && longer_evaluation(w);
}

/* What to do about it, where that differs from what the cause needs in steps. */
static struct tfh_remedy remedy_of(struct tfh_wording *w, const struct tfh_recurring *x)
{
	const struct tfh_result *r = w->r;

	static const struct tfh_remedy filled = {
		"shuffle() fills its buffer with what is made too slowly",
		"cache() before shuffle(), or shuffle the names of files, before they are read"};

	/* Without stages of a pipeline, the batches come from another framework. */
	struct tfh_remedy m = r->n_input ? tfh_remedy_of(x->cause) : tfh_remedy_in(r, x->cause);

	if (tfh_remedy_evaluates(r, x->cause, &m))
		return m;
	const char *line = tfh_loads_files(r, x->cause) ? NULL : tfh_line_advice(w, x->cause);
	m.todo = line ? line : m.todo;
	if (is_all_of_it(w, x))
		m.todo = tfh_phrase(
			w, "evaluate less often, on fewer batches, or once for all metrics; or %s",
			m.todo);
	if (x->kind == TFH_SEGMENT_COMPILE && x->cause == TFH_CAUSE_HOST_COMPILE &&
	    r->found.made_anew)
		m.todo = tfh_phrase(w,
				    "kernels of one name are made %u times: define them once, "
				    "and keep shapes and static arguments (jit) the same",
				    r->found.made_anew);
	if (x->kind == TFH_SEGMENT_EVAL && x->cause == TFH_CAUSE_HOST_COMPILE)
		m.todo = "keep shapes the same, and evaluate all examples in one call (each "
			 "predict() of Keras makes a pipeline; model(x) does not)";
	if (x->kind != TFH_SEGMENT_BETWEEN)
		return m;
	if (x->cls == TFH_CLASS_INPUT_BOUND && r->n_input && r->input[0].guilty)
		return fills(r, x) ? filled : tfh_stage_remedy(r, x->cause);
	if (x->cause == TFH_CAUSE_INPUT_DATALOADER) {
		m.finding = "the DataLoader starts its workers again";
		m.todo = "keep them (persistent_workers=True), or use fewer";
	}
	if (x->cause == TFH_CAUSE_HOST_COMPILE)
		m.todo =
			"make functions and models once, before the loops, and assign what changes "
			"(a learning rate): compile(), tf.function and jit start from scratch each "
			"time";
	return m;
}

const char *tfh_lead_no_bound(const struct tfh_result *r)
{
	const struct tfh_recurring *x = r->lead ? &r->recurring[r->lead - 1] : NULL;
	uint32_t train = tfh_recurring_of(r, TFH_SEGMENT_TRAIN);
	bool all = x && train && x->cause == TFH_CAUSE_HOST_COMPILE &&
		   r->steady.cause == TFH_CAUSE_HOST_COMPILE &&
		   r->recurring[train - 1].blocked_s * TFH_VERDICT_ALSO_PART >= x->blocked_s;

	return all ? "what each step compiles again may run faster or slower once it stays" : NULL;
}

/* What faster batches save besides the waits at the beginnings of further loops: that of the first
 * loop, if its start took about as long, and the steps' own waits for input. */
static double saves_of_batches(const struct tfh_result *r, double each)
{
	double first = tfh_spent(r, TFH_BRANCH_FIRST) + tfh_spent(r, TFH_BRANCH_STARTUP);
	uint32_t train = tfh_recurring_of(r, TFH_SEGMENT_TRAIN);
	bool also = train && r->recurring[train - 1].cls == TFH_CLASS_INPUT_BOUND;

	return (first >= (1 - TFH_BLOCKING_SHARE) * each ? each : 0) +
	       (also ? r->recurring[train - 1].blocked_s : 0);
}

/* What removing it saves at best; NAN: computing can be made cheaper, but not removed. Between
 * loops only the program's preparations run, and a fix may make all of them unnecessary. */
static double saves(struct tfh_wording *w, const struct tfh_recurring *x)
{
	const struct tfh_result *r = w->r;

	if (is_all_of_it(w, x)) /* with what is between its loops */
		return fmax(x->total_s, tfh_spent(r, TFH_BRANCH_EVALUATE)) +
		       tfh_spent(r, TFH_BRANCH_BETWEEN);
	if (x->cls == TFH_CLASS_COMPUTE_BOUND)
		return NAN;
	if (x->kind != TFH_SEGMENT_BETWEEN)
		return x->blocked_s;
	return x->total_s + (x->cls == TFH_CLASS_INPUT_BOUND
				     ? saves_of_batches(r, x->total_s / (double)x->count)
				     : 0);
}

bool tfh_advise_waits(struct tfh_wording *w, double s)
{
	uint32_t i = tfh_recurring_of(w->r, TFH_SEGMENT_BETWEEN);
	const struct tfh_recurring *x = i ? &w->r->recurring[i - 1] : NULL;

	if (!x || x->cls != TFH_CLASS_INPUT_BOUND || x->blocked_s * TFH_VERDICT_ALSO_PART < s)
		return false;
	struct tfh_remedy m = remedy_of(w, x);
	tfh_advise_run(w,
		       tfh_phrase(w, "%s, %" PRIu64 " times %s", placed(w, x, m.finding), x->count,
				  tfh_phrase_time(w, x->total_s / (double)x->count)),
		       m.todo, s);
	return true;
}

/* Merges the advice about x with the first one, if that is about the same cause in the steps: what
 * both cost is one item. False: they have different causes. */
static bool joins(struct tfh_wording *w, const struct tfh_recurring *x, const char *finding)
{
	struct tfh_advice *steps = &w->advice[0];
	double s = saves(w, x) + steps->saved_s;

	if (x->kind != TFH_SEGMENT_EVAL || x->cause != w->r->steady.cause || !w->n_advice ||
	    strcmp(steps->finding, finding) != 0 || tfh_lead_no_bound(w->r) || !isfinite(s))
		return false;
	*steps = (struct tfh_advice){
		.finding = tfh_phrase(w, "in evaluation and in the steps %s", finding),
		.evidence = w->text,
		.todo = steps->todo,
		.gain = NAN,
		.saved_s = s,
		.how = "at best "};
	return true;
}

static void first_advice(struct tfh_wording *w, const struct tfh_recurring *x)
{
	struct tfh_remedy m = remedy_of(w, x);

	if (joins(w, x, m.finding))
		return;
	uint32_t n = w->n_advice < TFH_REPORT_ADVICE ? w->n_advice++ : w->n_advice - 1;
	memmove(w->advice + 1, w->advice, n * sizeof(*w->advice));
	w->advice[0] = (struct tfh_advice){.finding = placed(w, x, m.finding),
					   .evidence = w->text,
					   .todo = m.todo,
					   .gain = NAN,
					   .saved_s = tfh_lead_no_bound(w->r) ? NAN : saves(w, x),
					   .how = "at best "};
}

/* Puts a new sentence in front. The present one, which is about the steps, becomes evidence; `few`,
 * if not NULL, takes its place. */
static void put_first(struct tfh_wording *w, const char *text, const char *few)
{
	const char *cause = tfh_cause_name(w->r->steady.cause);

	first_line(w, TFH_TELLS_WHY,
		   few ? few
		       : tfh_phrase(w, "the steps themselves: %s%s%s; %s",
				    tfh_class_name(w->r->steady.cls), cause ? ", " : "",
				    cause ? cause : "", w->text));
	w->text = text;
}

/* The steps' verdict, if it is that of few steps with much of the time. */
static const char *few_steps(struct tfh_wording *w)
{
	const struct tfh_steps *s = &w->r->steps;
	const struct tfh_class_count *few = &s->classes[w->r->steady.cls];
	const char *cause = tfh_cause_name(w->r->steady.cause);
	enum tfh_class most = 0;

	for (int c = 1; c < TFH_CLASS_COUNT; c++)
		most = s->classes[c].count > s->classes[most].count ? c : most;
	if (!few->count || 2 * (uint64_t)few->count >= s->count || most == w->r->steady.cls)
		return NULL;
	return tfh_phrase(
		w, "%u of %" PRIu64 " steps are %s%s%s, and take %s; %u are %s, and take %s",
		few->count, s->count, tfh_class_name(w->r->steady.cls), cause ? ", " : "",
		cause ? cause : "", tfh_phrase_time(w, few->median_s), s->classes[most].count,
		tfh_class_name(most), tfh_phrase_time(w, s->classes[most].median_s));
}

/* Remarks on what costs much time besides the steps, when the verdict is about the steps. */
static void besides(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;

	for (uint32_t i = 0; i < r->n_recurring; i++)
		if (r->recurring[i].kind != TFH_SEGMENT_TRAIN &&
		    r->recurring[i].blocked_s > TFH_BLOCKING_SHARE * r->recurs_s)
			tfh_remark(w, what(w, &r->recurring[i]));
}

/* How many times as long steps are on one side of a change as on the other. */
static double times(const struct tfh_change *x)
{
	return fmax(x->from_s, x->to_s) / fmin(x->from_s, x->to_s);
}

/* What most of a change is due to. Other programs on the CPUs are named only for time of the host
 * itself: how long they held up processes that it waits for is not recorded. */
static const char *of_change(struct tfh_wording *w, const struct tfh_change *x)
{
	bool on_cpus =
		x->part == TFH_PART_HOST || x->part == TFH_PART_SYNC || x->part == TFH_PART_LAUNCH;
	const char *crowd = on_cpus && tfh_others_crowd(w->r)
				    ? "; maybe due to other programs on the CPUs"
				    : "";

	if (!x->file || !x->function)
		return tfh_phrase(w, "%s%s", tfh_part_name(x->part), crowd);
	return tfh_phrase(w, "%s, mostly at %s%s", tfh_part_name(x->part),
			  tfh_at_words(w, x->function, x->file, x->line), crowd);
}

static const char *steadily(struct tfh_wording *w, const struct tfh_change *x)
{
	bool grow = x->to_s > x->from_s;
	const char *how = tfh_phrase(w, "%s steadily from %s to %s (%s)%s",
				     grow ? "grow" : "shrink", tfh_phrase_time(w, x->from_s),
				     tfh_phrase_time(w, x->to_s), of_change(w, x),
				     grow ? ": they may go through something that grows" : "");

	if (w->r->n_change == 1)
		return tfh_phrase(w, "steps %s", how);
	return tfh_phrase(w, "from %s %" PRIu64 " to %" PRIu64 ", %s into the run, steps %s",
			  x->until_evaluates ? "training step" : "step", x->step - x->evaluates,
			  x->until - x->until_evaluates, tfh_phrase_time(w, x->at_s), how);
}

static const char *suddenly(struct tfh_wording *w, const struct tfh_change *x)
{
	return tfh_phrase(
		w, "%s from %s %" PRIu64 " on, %s into the run: steps take %s, %s before (%s)",
		x->to_s > x->from_s ? "slower" : "faster", x->evaluates ? "training step" : "step",
		x->step - x->evaluates, tfh_phrase_time(w, x->at_s), tfh_phrase_time(w, x->to_s),
		tfh_phrase_time(w, x->from_s), of_change(w, x));
}

/* When steps became slower or faster. Where they changed most, the mean step of the whole run may
 * be one that never happened: that is on the first screen. */
static void changes(struct tfh_wording *w)
{
	uint32_t most = 0;

	for (uint32_t i = 1; i < w->r->n_change; i++)
		most = times(&w->r->change[i]) > times(&w->r->change[most]) ? i : most;
	if (w->r->n_change && times(&w->r->change[most]) < TFH_REPORT_CHANGED_TIMES)
		most = w->r->n_change;
	for (uint32_t i = 0; i < w->r->n_change; i++) {
		const struct tfh_change *x = &w->r->change[i];
		const char *text = x->until ? steadily(w, x) : suddenly(w, x);
		if (i == most && !w->n_first) /* two such notes would crowd the screen */
			tfh_remark_first(w, text);
		else
			tfh_remark(w, text);
	}
}

void tfh_explain_lead(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const struct tfh_recurring *x = r->lead ? &r->recurring[r->lead - 1] : NULL;
	const char *longer = longer_evaluation(w), *place;

	changes(w);
	if (!*w->text || r->steady.cls == TFH_CLASS_NONE)
		return;
	if (!x && longer) {
		put_first(w, longer, few_steps(w));
		return;
	}
	if (!x) {
		besides(w);
		return;
	}
	put_first(w, what(w, x), NULL);
	if ((place = tfh_lead_line(w)))
		first_line(w, TFH_TELLS_LINE, place);
	if (fills(r, x))
		first_line(w, TFH_TELLS_STAGE,
			   tfh_phrase(w, "Shuffle: its buffer is filled with what %s makes",
				      tfh_stage_words(w, r->input[0].name)));
	if (longer)
		first_line(w, TFH_TELLS_WHY, longer);
	first_advice(w, x);
}
