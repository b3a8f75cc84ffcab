/* What else would gain time, besides what the verdict names: other parts of the steps, and what the
 * run does besides its steps. The largest gain comes first. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/words/remedy.h"
#include "report/words/words.h"

/* What the run does besides its steps, and advice about it. what NULL: tfh_outside(),
 * with the usual work there. */
static const struct {
	enum tfh_branch kind;
	const char *what, *todo;
} besides[] = {
	{TFH_BRANCH_BEFORE, NULL,
	 "building the model, opening data: do less of it, or do it in parallel"},
	{TFH_BRANCH_STARTUP, "start-up",
	 "cache what is compiled and loaded; `tfhook report --all` shows how long each part took"},
	{TFH_BRANCH_SKIP, "batches made and skipped before the first step",
	 "skip them in the sampler or the list of files: the loader makes each of them in full"},
	{TFH_BRANCH_EVALUATE, "evaluation", "evaluate less often, or on fewer batches"},
	{TFH_BRANCH_PREDICT, "prediction", "predict less often, or for fewer batches"},
	{TFH_BRANCH_FIRST, "first steps, beyond the usual",
	 "if they compile: cache that, and keep shapes the same"},
	{TFH_BRANCH_CHECKPOINT, "checkpoints", TFH_SAVE_LESS},
	{TFH_BRANCH_BETWEEN, "between loops",
	 "make pipelines and functions once, before the loops; see what else the job does then"},
	{TFH_BRANCH_AFTER, NULL, "see what the job still does then: saving, uploading, clean-up"},
};
#define BESIDES (sizeof(besides) / sizeof(besides[0]))

/* A candidate: a what-if, a place of the program, compiling, or a row of besides. */
struct next {
	const struct tfh_whatif *whatif;
	const struct tfh_place_gain *place;
	bool compiling;
	size_t row;
	double saved_s;
};

static enum tfh_cause largest_cause(const struct tfh_result *r, enum tfh_part part)
{
	enum tfh_cause most = TFH_CAUSE_NONE;

	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		if (tfh_cause_part(c) == part && c != TFH_CAUSE_HOST_CONTENTION &&
		    r->found.cause_s[c] > 0 &&
		    (most == TFH_CAUSE_NONE || r->found.cause_s[c] > r->found.cause_s[most]))
			most = c;
	return most;
}

static const struct tfh_place_gain *place_of(const struct tfh_result *r, enum tfh_part part);

/* Whether most of a part is at the line of the verdict, which starts the input pipeline anew. */
static bool is_of_restarts(const struct tfh_result *r, enum tfh_part part)
{
	const struct tfh_place_gain *g = place_of(r, part);
	const struct tfh_seen_line *l = &r->found.line;

	return r->found.restarts && tfh_cause_part(r->steady.cause) == TFH_PART_INPUT && g &&
	       l->file && !strcmp(g->file, l->file) && g->first_line <= l->line &&
	       l->line <= g->last_line;
}

/* Seconds per step of a part of the steps, without waiting for a CPU. */
static double own_s(const struct tfh_result *r, enum tfh_part part)
{
	return r->breakdown[part].s_per_step -
	       (part == TFH_PART_SYNC ? r->found.cause_s[TFH_CAUSE_HOST_CONTENTION] : 0);
}

/* Whether it is a part of the steps that blocks enough to be a class,
 * and that no advice covers yet. */
static bool worth_removing(const struct tfh_result *r, const struct tfh_whatif *w)
{
	enum tfh_part part = tfh_remove_part(w->remove);
	enum tfh_cause blamed = r->steady.cause;
	struct tfh_remedy anew;

	/* the verdict's advice is about that pipeline */
	if (part == TFH_PART_INPUT && blamed == TFH_CAUSE_HOST_COMPILE && tfh_remedy_anew(r, &anew))
		return false;
	if (part == TFH_PART_HOST && tfh_makes_pools(r, blamed) &&
	    2 * r->found.new_pool.s_per_step > own_s(r, part))
		return false;
	if (is_of_restarts(r, part) || (part == TFH_PART_HOST && r->found.host_guessed))
		return false;
	/* on a crowded machine, compared with the step without its waits for a CPU */
	double step = tfh_step_s(r) -
		      (blamed == TFH_CAUSE_HOST_CONTENTION ? r->found.contended.s_per_step : 0);
	if (w->remove == TFH_REMOVE_EVERYTHING_BUT_COMPUTE || !(w->saved_s > 0) ||
	    !(own_s(r, part) >= TFH_BLOCKING_SHARE * step))
		return false;
	for (uint32_t i = 0; i < r->steady.n_also && r->n_input && r->input[0].guilty; i++)
		if (part == TFH_PART_INPUT && r->steady.also[i] == TFH_CLASS_INPUT_BOUND)
			return false;
	return blamed == TFH_CAUSE_NONE || blamed == TFH_CAUSE_HOST_CONTENTION ||
	       tfh_cause_part(blamed) != part;
}

/* Whether fixing the place is said to gain the same as the verdict's fix. The figure is then a
 * bound that says nothing about this place. */
static bool gains_the_same(const struct tfh_wording *w, const struct tfh_place_gain *place)
{
	double first = w->n_advice ? w->advice[0].saved_s : NAN;

	return fabs(place->gain.saved_s - first) < TFH_REPORT_SAME_GAIN * first;
}

static bool is_at(const struct tfh_place_gain *g, const struct tfh_seen_node *n)
{
	return n->file && !strcmp(g->file, n->file) && !strcmp(g->function, n->function) &&
	       (g->whole || (g->first_line <= n->line && n->line <= g->last_line));
}

/* Whether the place led to the call of node i. */
static bool called_by(const struct tfh_result *r, uint32_t i, const struct tfh_place_gain *g)
{
	for (const struct tfh_seen_node *node = r->found.node; node[i].parent != i;) {
		i = node[i].parent;
		if (is_at(g, &node[i]))
			return true;
	}
	return false;
}

/* Whether most of a place's time is that of calls which another one makes. */
static bool is_part_of(const struct tfh_result *r, const struct tfh_place_gain *place,
		       const struct tfh_place_gain *of)
{
	double all_s = 0, called_s = 0;

	for (uint32_t i = 0; i < r->found.n_node; i++) {
		const struct tfh_seen_node *n = &r->found.node[i];
		if (!is_at(place, n) || called_by(r, i, place))
			continue;
		all_s += n->s_per_step;
		called_s += called_by(r, i, of) ? n->s_per_step : 0;
	}
	return 2 * called_s > all_s;
}

bool tfh_places_overlap(const struct tfh_result *r, const struct tfh_place_gain *a,
			const struct tfh_place_gain *b)
{
	return a == b || is_part_of(r, a, b) || is_part_of(r, b, a);
}

/* Whether a place is mostly the same time as the verdict's,
 * or as one of the n candidates: one calls the other. */
static bool is_told(const struct tfh_result *r, const struct tfh_place_gain *place,
		    const struct next *next, size_t n)
{
	/* both_s: the work at both ends of exchanges, which includes that of all these places. */
	if (tfh_places_overlap(r, place, &r->place[r->line_place - 1]) || r->found.both_s > 0)
		return true;
	for (size_t i = 0; i < n; i++)
		if (next[i].place && tfh_places_overlap(r, place, next[i].place))
			return true;
	return false;
}

/* Whether steps that are slow at regular intervals (such as those that evaluate), or a few long
 * ones with a line of their own, cost much. Not if they are slow in the verdict's own part, which
 * has its advice; nor if they are the updates of accumulated gradients. */
static bool slow_steps_matter(const struct tfh_result *r)
{
	enum tfh_cause cause = r->steady.cause;
	bool own = cause != TFH_CAUSE_NONE && r->steady.cls != TFH_CLASS_COMPUTE_BOUND &&
		   tfh_cause_part(cause) == r->found.slow.part;

	return (r->found.slow.every > 0 || r->found.slow.file) &&
	       r->found.slow.share >= TFH_REPORT_SLOW_ADVICE && !own && r->pattern.per_update <= 1;
}

/* The kind of part in the run's tree that holds the time which the verdict is about; RUN: the tree
 * has none for it. */
static enum tfh_branch lead_branch(enum tfh_segment lead)
{
	return lead == TFH_SEGMENT_CHECKPOINT ? TFH_BRANCH_CHECKPOINT
	       : lead == TFH_SEGMENT_EVAL     ? TFH_BRANCH_EVALUATE
	       : lead == TFH_SEGMENT_COMPILE  ? TFH_BRANCH_FIRST
	       : lead == TFH_SEGMENT_BETWEEN  ? TFH_BRANCH_BETWEEN
					      : TFH_BRANCH_RUN;
}

/* Seconds that a part of the run takes, without the time that other advice is about: the verdict's,
 * and that about compiling and imports. */
static double besides_lead(const struct tfh_result *r, enum tfh_branch kind)
{
	const struct tfh_recurring *lead = r->lead ? &r->recurring[r->lead - 1] : NULL;
	enum tfh_branch own = lead ? lead_branch(lead->kind) : TFH_BRANCH_RUN;
	double seen = tfh_spent(r, kind) * tfh_start_share(r, kind);
	double s = fmax(seen - tfh_compiled_in(r, kind), 0);

	/* In a program that only predicts, the predictions are its steps. */
	if (kind == TFH_BRANCH_PREDICT && s >= TFH_VERDICT_MOST_SHARE * r->steps.total_s &&
	    !(tfh_spent(r, TFH_BRANCH_TRAIN) + tfh_spent(r, TFH_BRANCH_STEP) > 0))
		return 0;

	/* Evaluation in a callback is counted in the steps, where the verdict is about it, and
	 * again in the tree. */
	if (kind == TFH_BRANCH_EVALUATE && !lead && r->line_place &&
	    tfh_callback_evaluates(r, r->verdict.cause) &&
	    r->place[r->line_place - 1].gain.saved_s > 0)
		s = fmax(s - r->place[r->line_place - 1].gain.saved_s, 0);
	if (own == TFH_BRANCH_RUN)
		return s;
	if (kind == TFH_BRANCH_EVALUATE && lead->evaluates_s > 0)
		return fmax(s - lead->evaluates_s, 0);
	if (kind == own)
		return kind == TFH_BRANCH_BETWEEN ? 0 : s - lead->total_s;
	/* without a part of its own in the tree, the verdict's time is within that between loops */
	bool within = kind == TFH_BRANCH_BETWEEN && !(tfh_spent(r, own) > 0);
	return within ? s - lead->total_s : s;
}

/* Whether a place is where the model computes, forwards or backwards: nothing to do less often. */
static bool computes(const struct tfh_result *r, const struct tfh_place_gain *g)
{
	const struct tfh_computed_line *of[] = {r->found.computed.forward,
						r->found.computed.backward};

	for (size_t i = 0; g && i < sizeof(of) / sizeof(*of); i++)
		for (int k = 0; k < TFH_COMPUTED_LINES && of[i][k].file; k++)
			if (of[i][k].line >= g->first_line && of[i][k].line <= g->last_line &&
			    !strcmp(of[i][k].file, g->file))
				return true;
	return false;
}

/* The place where most of the host's own time was seen; NULL: there is none, or places have advice
 * of their own. */
static const struct tfh_place_gain *place_of(const struct tfh_result *r, enum tfh_part part)
{
	uint32_t most = 0;

	for (uint32_t i = 1; i < r->n_place; i++)
		most = r->place[i].s_per_step > r->place[most].s_per_step ? i : most;
	if (part != TFH_PART_HOST || r->line_place || most >= r->n_place ||
	    r->place[most].s_per_step < TFH_REPORT_NAMED_SHARE * r->breakdown[part].s_per_step)
		return NULL;
	return &r->place[most];
}

/* The predicted gain of fixing a part: that of its main place, if known. */
static const struct tfh_whatif *part_gain(const struct tfh_result *r, const struct tfh_whatif *all)
{
	const struct tfh_place_gain *g = place_of(r, tfh_remove_part(all->remove));

	return g && g->gain.saved_s > 0 ? &g->gain : all;
}

static size_t of_steps(const struct tfh_wording *w, struct next *next)
{
	const struct tfh_result *r = w->r;
	size_t n = 0;

	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (worth_removing(r, &r->whatif[i]) &&
		    !computes(r, place_of(r, tfh_remove_part(r->whatif[i].remove))))
			next[n++] = (struct next){.whatif = &r->whatif[i],
						  .saved_s = part_gain(r, &r->whatif[i])->saved_s};
	if (r->steady.cause != TFH_CAUSE_HOST_CONTENTION && r->steady.tier != 'C' &&
	    r->uncrowded.saved_s >= TFH_BLOCKING_SHARE * r->steps.total_s)
		next[n++] = (struct next){.whatif = &r->uncrowded, .saved_s = r->uncrowded.saved_s};
	for (uint32_t i = 0; i < r->n_place && r->line_place; i++)
		if (r->place[i].gain.saved_s > 0 && !computes(r, &r->place[i]) &&
		    !gains_the_same(w, &r->place[i]) && !is_told(r, &r->place[i], next, n))
			next[n++] = (struct next){.place = &r->place[i],
						  .saved_s = r->place[i].gain.saved_s};
	return n;
}

/* Another profiler's trace is not the whole run. */
static size_t of_compiling(const struct tfh_result *r, struct next *next)
{
	double s = tfh_compiling_s(r);

	if (!tfh_run_tells(r) || !r->steps.count || !(s > 0) || tfh_compiling_is_told(r))
		return 0;
	*next = (struct next){.compiling = true, .saved_s = s};
	return 1;
}

/* Whether most of a part of the run is within its loops: a longer run has more of it. */
static bool recurs(const struct tfh_result *r, enum tfh_branch kind)
{
	double within = 0;

	for (uint32_t i = 1; i < r->n_tree; i++)
		within += r->tree[i].kind == kind && r->tree[i].parent ? r->tree[i].wall_s : 0;
	return within > TFH_VERDICT_MOST_SHARE * tfh_spent(r, kind);
}

/* For a run that was killed, what happens only once is reported only if there were hardly any
 * steps: a longer run would have had more of them, but no more of this. */
static size_t besides_steps(const struct tfh_result *r, struct next *next)
{
	double wall = r->n_tree ? r->tree[0].wall_s : 0;
	size_t n = 0;

	for (size_t i = 0; i < BESIDES && r->steps.count; i++) {
		enum tfh_branch kind = besides[i].kind;
		bool told = tfh_run_tells(r) || (r->end == TFH_END_SIGNAL && recurs(r, kind));
		double s = told ? besides_lead(r, kind) : 0;
		/* a job that failed saves nothing: what follows is its end */
		if (kind == TFH_BRANCH_AFTER && (r->end_code || r->end != TFH_END_EXIT))
			continue;
		if (wall > 0 && s >= TFH_REPORT_OTHER_SHARE * wall)
			next[n++] = (struct next){.row = i, .saved_s = s};
	}
	return n;
}

bool tfh_hides_more(const struct tfh_result *r, const struct tfh_whatif *w)
{
	double step = tfh_step_s(r);

	if (w->remove == TFH_REMOVE_EVERYTHING_BUT_COMPUTE)
		return false;
	return step - w->step_s >
	       r->breakdown[tfh_remove_part(w->remove)].s_per_step + TFH_BLOCKING_SHARE * step;
}

/* They come first: a longer run has more of them,
 * which is not so of what happens besides the steps. */
static void advise_slow_steps(struct tfh_wording *w)
{
	const struct tfh_slow_found *slow = &w->r->found.slow;
	const char *at = slow->file ? tfh_at_words(w, slow->function, slow->file, slow->line)
			 : w->r->steps.rounds ? "acting, evaluation?"
					      : "evaluation, saving?",
		   *what = w->r->steps.rounds ? "make cheaper what is done once a round"
			   : slow->every > 0
				   ? tfh_phrase(w, "do less often what every %s step does",
						tfh_phrase_ordinal(w, slow->every))
				   : tfh_phrase(w, "do less often what %llu long steps do",
						(unsigned long long)slow->n);

	tfh_advise_run(w,
		       tfh_phrase(w, "%s (%s): %.0f %% of %s", what, at, 100 * slow->share,
				  tfh_training_words(w->r)),
		       tfh_phrase(w, "these steps take %s longer than others",
				  tfh_phrase_time(w, slow->longer_s)),
		       slow->share * w->r->steps.total_s);
}

/* "start-up, besides compiling", "before the first batch (imports, set-up)", "between loops, 3
 * times"; the line with most of it says more than the usual work. */
static const char *name_of(struct tfh_wording *w, const struct next *next, bool line)
{
	enum tfh_branch kind = besides[next->row].kind;
	const char *name =
		besides[next->row].what ? besides[next->row].what : tfh_outside(w->r, kind);
	double least = TFH_REPORT_NAMED_SHARE * tfh_spent(w->r, kind);
	bool imports = tfh_imports_s(w->r, kind) >= least,
	     compiles = tfh_compiled_in(w->r, kind) >= least;

	if (imports || compiles)
		return tfh_phrase(w, "%s, besides %s%s%s", name, imports ? "imports" : "",
				  imports && compiles ? " and " : "", compiles ? "compiling" : "");
	uint32_t again =
		kind == TFH_BRANCH_BETWEEN ? tfh_recurring_of(w->r, TFH_SEGMENT_BETWEEN) : 0;
	if (again)
		return tfh_phrase(w, "%s, %" PRIu64 " times", name,
				  w->r->recurring[again - 1].count);
	if (line || besides[next->row].what)
		return name;
	return tfh_phrase(w, "%s (%s)", name,
			  kind == TFH_BRANCH_BEFORE ? "imports, set-up" : "saving, clean-up");
}

/* Advice about what a part of the steps costs besides the verdict: about the place with most of it,
 * whose gain is then told. */
static void advise_part(struct tfh_wording *w, const struct tfh_whatif *all)
{
	const struct tfh_result *r = w->r;
	enum tfh_part part = tfh_remove_part(all->remove);
	enum tfh_cause cause = largest_cause(r, part);
	struct tfh_remedy m = tfh_remedy_in(r, cause);
	const struct tfh_place_gain *g = place_of(r, part);
	const char *todo = cause == TFH_CAUSE_HOST_LAUNCH	     ? tfh_launch_advice(w)
			   : cause == TFH_CAUSE_COMMUNICATION_JITTER ? tfh_least_waiting(w)
			   : r->found.imported			     ? tfh_place_advice(w, cause)
								     : NULL;
	double s = g ? g->s_per_step : own_s(r, part);
	const char *finding = m.finding,
		   *time = tfh_phrase(w, "%s per step", tfh_phrase_time(w, s));

	if (cause == TFH_CAUSE_HOST_SYNC)
		finding = tfh_phrase(w, "%s%s", finding, tfh_site_at(w, &r->found.wait));
	const char *mostly = part == TFH_PART_HOST && !g ? tfh_mostly_in(w) : "";
	if (g)
		finding = tfh_phrase(w, "%s also takes time", tfh_at_place(w, g));
	if (*mostly && cause == TFH_CAUSE_HOST_PYTHON) {
		finding = tfh_phrase(w, "%s%s", finding, mostly);
		todo = tfh_less_often(r, true);
	}
	const struct tfh_whatif *gain = part_gain(r, all);
	tfh_advise_gain(w, finding, time, todo ? todo : m.todo, gain);
	if (gain == all && tfh_hides_more(r, all))
		w->advice[w->n_advice - 1].how = "at best ";
}

static void advise_uncrowded(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	struct tfh_remedy m = tfh_remedy_in(r, TFH_CAUSE_HOST_CONTENTION);
	const char *own = tfh_own_crowd_advice(r);

	tfh_advise_gain(
		w, m.finding,
		tfh_phrase(w, "%s per step", tfh_phrase_time(w, r->found.contended.s_per_step)),
		own ? own : m.todo, &r->uncrowded);
}

/* What to do about a line that was seen in a part of the run. */
static const char *less_of(enum tfh_branch kind)
{
	return kind == TFH_BRANCH_STARTUP
		       ? "do less of it, do it in parallel, or cache what it compiles"
	       : kind == TFH_BRANCH_EVALUATE
		       ? "do less of it, or evaluate less often, or on fewer batches"
		       : "do less of it, or do it in parallel";
}

/* What evaluations do for most of their time besides the program's own code and computing; NULL:
 * nothing else. */
static const struct tfh_recurring *evaluates_with(const struct tfh_result *r, enum tfh_branch kind)
{
	uint32_t i = tfh_recurring_of(r, TFH_SEGMENT_EVAL);
	const struct tfh_recurring *x =
		i && kind == TFH_BRANCH_EVALUATE ? &r->recurring[i - 1] : NULL;
	bool known = x && x->cause != TFH_CAUSE_NONE && x->cause != TFH_CAUSE_HOST_UNKNOWN &&
		     x->cause != TFH_CAUSE_HOST_PYTHON && x->cause != TFH_CAUSE_HOST_CODE;

	return known && x->blocked_s > TFH_VERDICT_MOST_SHARE * x->total_s ? x : NULL;
}

/* "host-bound, ", "mostly host.checkpoint, " if that is known of evaluations, whose lines were
 * seen. */
static const char *bound_of(struct tfh_wording *w, enum tfh_branch kind)
{
	const struct tfh_recurring *with = evaluates_with(w->r, kind);
	uint32_t i = tfh_recurring_of(w->r, TFH_SEGMENT_EVAL);

	if (with)
		return tfh_phrase(w, "mostly %s, ", tfh_cause_name(with->cause));
	return i && kind == TFH_BRANCH_EVALUATE
		       ? tfh_phrase(w, "%s, ", tfh_class_name(w->r->recurring[i - 1].cls))
		       : "";
}

/* The process without a rank that worked for most of the time before the first call or after the
 * last one; NULL: none did. */
static const struct tfh_process *works_beside(const struct tfh_result *r, enum tfh_branch kind,
					      double *worked_s)
{
	const struct tfh_process *p, *best = NULL;
	double s = tfh_spent(r, kind);
	uint32_t n = r->run ? tfh_run_processes(r->run, &p) : 0;

	*worked_s = TFH_VERDICT_MOST_SHARE * s;
	if (!n || r->process >= n || p[r->process].rank >= 0 || r->found.unnumbered ||
	    (kind != TFH_BRANCH_BEFORE && kind != TFH_BRANCH_AFTER))
		return NULL;
	double t0 = (double)p[r->process].born_ns / 1e9;
	t0 += kind == TFH_BRANCH_AFTER ? r->tree[0].wall_s - s : 0;
	for (uint32_t i = 0; i < n; i++) {
		double both = fmin((double)p[i].last_ns / 1e9, t0 + s) -
			      fmax((double)p[i].start_ns / 1e9, t0);
		if (i == r->process || !(p[i].has_gpu || p[i].has_tf) || both <= *worked_s)
			continue;
		best = &p[i];
		*worked_s = both;
	}
	return best;
}

/* What the program does outside of its calls may be waiting for another one that is recorded,
 * too. False: none works then. */
static bool advise_other(struct tfh_wording *w, const struct next *next)
{
	enum tfh_branch kind = besides[next->row].kind;
	double worked_s;
	const struct tfh_process *p = works_beside(w->r, kind, &worked_s);

	if (!p)
		return false;
	tfh_advise_run(
		w,
		tfh_phrase(w, "%s: %s, of which process %u works for %s", tfh_outside(w->r, kind),
			   tfh_phrase_time(w, tfh_spent(w->r, kind)), p->pid,
			   tfh_phrase_time(w, worked_s)),
		"does this process have to wait for that one? its .tft file alone has a report, "
		"too",
		tfh_spent(w->r, kind) - worked_s);
	return true;
}

void tfh_advise_place(struct tfh_wording *w, const struct tfh_place_gain *place, const char *todo)
{
	tfh_advise_gain(w, tfh_phrase(w, "%s also takes time", w->place[place - w->r->place]),
			tfh_phrase(w, "%s per step", tfh_phrase_time(w, place->s_per_step)), todo,
			&place->gain);
}

/* Advice about what the run does besides its steps, with the line that has most of it. Lines of a
 * part that mostly compiles are those of the compiling. */
static void advise_besides(struct tfh_wording *w, const struct next *next)
{
	enum tfh_branch kind = besides[next->row].kind;
	bool compiles = 2 * tfh_compiled_in(w->r, kind) > tfh_spent(w->r, kind);
	const char *mostly = compiles ? "" : tfh_start_mostly(w, kind), *waits = "", *seen,
		   *todo = besides[next->row].todo;
	const struct tfh_recurring *with = evaluates_with(w->r, kind);
	enum tft_state waits_for = *mostly ? tfh_start_waits(w->r, kind) : TFT_STATE_RUNNING;

	if (kind == TFH_BRANCH_BETWEEN && tfh_advise_waits(w, next->saved_s))
		return;
	if (!*mostly && advise_other(w, next))
		return;
	seen = compiles ? "" : tfh_start_seen(w, kind, *mostly != 0);
	if (waits_for != TFT_STATE_RUNNING)
		waits = tfh_phrase(w, ", %s", tfh_state_words(waits_for));
	if (waits_for == TFT_STATE_CHILD)
		todo = "see what these processes do then, and whether they can end sooner";
	else if (with)
		todo = tfh_remedy_in(w->r, with->cause).todo;
	else if ((*mostly || *seen) && !(*waits && kind == TFH_BRANCH_AFTER))
		todo = less_of(kind);
	if (*seen)
		todo = tfh_phrase(w, "%s%s: %s", *mostly ? "then " : "", seen, todo);
	tfh_advise_run(w,
		       tfh_phrase(w, "%s: %s%s%s%s%s", name_of(w, next, *mostly != 0),
				  tfh_phrase_time(w, next->saved_s), *mostly ? ", " : "",
				  *mostly ? bound_of(w, kind) : "", mostly, waits),
		       todo, with ? fmin(with->blocked_s, next->saved_s) : next->saved_s);
}

static void advise(struct tfh_wording *w, const struct next *next)
{
	if (next->whatif == &w->r->uncrowded)
		advise_uncrowded(w);
	else if (next->whatif)
		advise_part(w, next->whatif);
	else if (next->place)
		tfh_advise_place(w, next->place,
				 tfh_less_often(w->r, w->r->verdict.cause != TFH_CAUSE_HOST_CODE));
	else if (next->compiling)
		tfh_advise_compiling(w);
	else
		advise_besides(w, next);
}

static void advise_all(struct tfh_wording *w, struct next *next, size_t n)
{
	for (size_t left = n; left; left--) {
		size_t most = 0;
		for (size_t i = 1; i < n; i++)
			if (next[i].saved_s > next[most].saved_s)
				most = i;
		advise(w, &next[most]);
		next[most].saved_s = -1;
	}
	if (tfh_run_tells(w->r) && w->r->steps.count)
		tfh_advise_imports(w);
}

void tfh_advise_rest(struct tfh_wording *w)
{
	struct next next[TFH_REMOVE_COUNT + TFH_PREDICT_PLACES + 2 + BESIDES];
	size_t n = of_steps(w, next);

	n += of_compiling(w->r, &next[n]);
	n += besides_steps(w->r, &next[n]);
	if (slow_steps_matter(w->r))
		advise_slow_steps(w);
	advise_all(w, next, n);
}

void tfh_advise_besides(struct tfh_wording *w)
{
	struct next next[1 + BESIDES];
	size_t n = of_compiling(w->r, next);

	n += besides_steps(w->r, &next[n]);
	advise_all(w, next, n);
}
