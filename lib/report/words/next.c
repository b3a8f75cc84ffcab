/* What else would gain time, besides what the verdict names: other parts of the steps, and what the run does
 * besides its steps. The largest gain comes first. */
#include <math.h>

#include "report/words/remedy.h"
#include "report/words/words.h"

/* What the run does besides its steps, and advice about it. */
static const struct {
	enum tfh_branch kind;
	const char *what, *todo;
} besides[] = {
	{TFH_BRANCH_BEFORE, "before the first call",
	 "imports, building the model, opening data: do less of it, or do it in parallel"},
	{TFH_BRANCH_STARTUP, "start-up",
	 "cache what is compiled and loaded; `tfhook report --all` shows how long each part took"},
	{TFH_BRANCH_EVALUATE, "evaluation", "evaluate less often, or on fewer batches"},
	{TFH_BRANCH_PREDICT, "prediction", "predict less often, or for fewer batches"},
	{TFH_BRANCH_FIRST, "first steps, beyond the usual",
	 "if they compile: cache that, and keep shapes the same"},
	{TFH_BRANCH_CHECKPOINT, "checkpoints",
	 "save less often, or in a thread while training goes on"},
	{TFH_BRANCH_BETWEEN, "between loops",
	 "make pipelines and functions once, before the loops; see what else the job does then"},
	{TFH_BRANCH_AFTER, "after the last call",
	 "see what the job still does then: saving, uploading, clean-up"},
};
#define BESIDES (sizeof(besides) / sizeof(besides[0]))

/* A candidate: a what-if, a place of the program, or a row of besides. */
struct next {
	const struct tfh_whatif *whatif;
	const struct tfh_place_gain *place;
	size_t row;
	double saved_s;
};

static enum tfh_cause largest_cause(const struct tfh_result *r, enum tfh_part part)
{
	enum tfh_cause most = TFH_CAUSE_NONE;

	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		if (tfh_cause_part(c) == part && r->found.cause_s[c] > 0 &&
		    (most == TFH_CAUSE_NONE || r->found.cause_s[c] > r->found.cause_s[most]))
			most = c;
	return most;
}

/* Whether it is a part of the steps that blocks enough to be a class, and that no advice covers yet. */
static bool worth_removing(const struct tfh_result *r, const struct tfh_whatif *w)
{
	enum tfh_part part = tfh_remove_part(w->remove);
	enum tfh_cause blamed = r->steady.cause;

	if (w->remove == TFH_REMOVE_EVERYTHING_BUT_COMPUTE || !(w->saved_s > 0) ||
	    !(r->breakdown[part].share >= TFH_BLOCKING_SHARE))
		return false;
	for (uint32_t i = 0; i < r->steady.n_also && r->n_input && r->input[0].guilty; i++)
		if (part == TFH_PART_INPUT && r->steady.also[i] == TFH_CLASS_INPUT_BOUND)
			return false;
	return blamed == TFH_CAUSE_NONE || tfh_cause_part(blamed) != part;
}

static size_t candidates(const struct tfh_result *r, struct next *next)
{
	double wall = r->n_tree ? r->tree[0].wall_s : 0;
	size_t n = 0;

	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (worth_removing(r, &r->whatif[i]))
			next[n++] = (struct next){&r->whatif[i], NULL, 0, r->whatif[i].saved_s};
	for (uint32_t i = 0; i < r->n_place && r->line_place; i++)
		if (i + 1 != r->line_place && r->place[i].gain.saved_s > 0)
			next[n++] = (struct next){NULL, &r->place[i], 0, r->place[i].gain.saved_s};
	/* A run that was killed, or another profiler's trace, is not the whole run. */
	for (size_t i = 0; i < BESIDES && r->end == TFH_END_EXIT && r->steps.count; i++) {
		double s = tfh_spent(r, besides[i].kind);
		if (r->lead && r->recurring[r->lead - 1].kind == TFH_SEGMENT_BETWEEN &&
		    besides[i].kind == TFH_BRANCH_BETWEEN)
			continue; /* the verdict's advice is about it */
		if (wall > 0 && s >= TFH_REPORT_OTHER_SHARE * wall)
			next[n++] = (struct next){NULL, NULL, i, s};
	}
	return n;
}

/* Whether the step becomes shorter by more than this part takes. The rest of such a gain comes from other waits that
 * are then hidden by computing, which depends on what the fix leaves of the part. */
static bool hides_more(const struct tfh_result *r, const struct tfh_whatif *w)
{
	double step = 0, part = r->breakdown[tfh_remove_part(w->remove)].s_per_step;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		step += r->breakdown[p].s_per_step;
	return step - w->step_s > part + TFH_BLOCKING_SHARE * step;
}

static void advise(struct tfh_wording *w, const struct next *next)
{
	const struct tfh_result *r = w->r;
	const char *seen;

	if (next->whatif) {
		enum tfh_part part = tfh_remove_part(next->whatif->remove);
		enum tfh_cause cause = largest_cause(r, part);
		struct tfh_remedy m = tfh_remedy_in(r, cause);
		const char *todo = cause == TFH_CAUSE_HOST_LAUNCH ? tfh_launch_advice(w)
				   : r->found.imported		  ? tfh_place_advice(w, cause)
								  : NULL;
		tfh_advise(w, m.finding,
			   tfh_phrase(w, "%s of every step",
				      tfh_phrase_time(w, r->breakdown[part].s_per_step)),
			   todo ? todo : m.todo, next->whatif->remove);
		w->advice[w->n_advice - 1].at_best |= hides_more(r, next->whatif);
		return;
	}
	if (next->place) {
		const char *name = w->place[next->place - r->place];
		tfh_advise_gain(
			w, tfh_phrase(w, "%s also takes time in every step", name),
			tfh_phrase(w, "%s of every step",
				   tfh_phrase_time(w, next->place->s_per_step)),
			"do it less often, in another thread or process, or while the device computes",
			&next->place->gain);
		return;
	}
	const char *mostly = tfh_start_mostly(w, besides[next->row].kind);
	seen = tfh_start_seen(w, besides[next->row].kind, *mostly != 0);
	const char *less = besides[next->row].kind == TFH_BRANCH_STARTUP
				   ? "do less of it, do it in parallel, or cache what it compiles"
				   : "do less of it, or do it in parallel";
	const char *todo = *mostly && !*seen ? less
			   : *seen ? tfh_phrase(w, "%s%s: %s", *mostly ? "then " : "", seen, less)
				   : besides[next->row].todo;
	tfh_advise_run(w,
		       tfh_phrase(w, "%s: %s%s%s", besides[next->row].what,
				  tfh_phrase_time(w, next->saved_s),
				  *mostly ? ", " : " of the run's ",
				  *mostly ? mostly : tfh_phrase_time(w, r->tree[0].wall_s)),
		       todo, next->saved_s);
}

void tfh_advise_rest(struct tfh_wording *w)
{
	struct next next[TFH_REMOVE_COUNT + TFH_PREDICT_PLACES + BESIDES];
	size_t n = candidates(w->r, next);

	for (size_t left = n; left; left--) {
		size_t most = 0;
		for (size_t i = 1; i < n; i++)
			if (next[i].saved_s > next[most].saved_s)
				most = i;
		advise(w, &next[most]);
		next[most].saved_s = -1;
	}
}
