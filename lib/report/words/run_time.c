/* The steps' share of the whole run. A verdict about the steps says nothing about the rest. */
#include <math.h>
#include <string.h>

#include "report/words/words.h"

static bool is_leaf(const struct tfh_result *r, uint32_t i)
{
	return i + 1 == r->n_tree || r->tree[i + 1].parent != i;
}

/* Whether the iterations of a loop are the verdict's steps: about as many and about as long. (The
 * loop around it may have some of them among its own iterations, as with epochs or checkpoints.) */
static bool are_steps(const struct tfh_result *r, const struct tfh_part_of_run *p)
{
	double mean = r->steps.total_s / (double)(r->steps.count ? r->steps.count : 1);
	double each = p->wall_s / (double)p->count;

	return p->count == r->steps.total ||
	       (p->count <= r->steps.total &&
		(double)p->count >= TFH_REPORT_LOOP_PART * (double)r->steps.total &&
		each < 2 * mean && mean < 2 * each);
}

uint32_t tfh_loop_of_steps(const struct tfh_result *r)
{
	uint32_t loop = 0;

	for (uint32_t i = 1; i < r->n_tree; i++) {
		const struct tfh_part_of_run *p = &r->tree[i];
		if (p->count < 2 || !are_steps(r, p))
			continue;
		if (p->kind == TFH_BRANCH_STEP || p->kind == TFH_BRANCH_TRAIN)
			return 0;
		if (p->kind == TFH_BRANCH_LOOP)
			loop = i;
	}
	return loop;
}

static bool is_within(const struct tfh_result *r, uint32_t i, uint32_t loop)
{
	while (i > loop)
		i = r->tree[i].parent;
	return i == loop;
}

void tfh_spent_all(const struct tfh_result *r, double seconds[TFH_BRANCH_COUNT])
{
	uint32_t loop = tfh_loop_of_steps(r);

	memset(seconds, 0, TFH_BRANCH_COUNT * sizeof(seconds[0]));
	for (uint32_t i = 1; i < r->n_tree; i++) {
		enum tfh_branch kind = r->tree[i].kind;
		if (!is_leaf(r, i))
			continue;
		if (loop && kind == TFH_BRANCH_BETWEEN && is_within(r, i, loop))
			kind = TFH_BRANCH_STEP;
		seconds[kind] += r->tree[i].wall_s;
	}
}

double tfh_step_s(const struct tfh_result *r)
{
	double mean = 0;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		mean += isnan(r->breakdown[p].share) ? 0 : r->breakdown[p].s_per_step;
	return mean;
}

double tfh_spent(const struct tfh_result *r, enum tfh_branch kind)
{
	double seconds[TFH_BRANCH_COUNT];

	tfh_spent_all(r, seconds);
	return seconds[kind];
}

const char *tfh_training_words(const struct tfh_result *r)
{
	double seconds[TFH_BRANCH_COUNT];

	if (r->found.sampled.samples)
		return r->found.sampled.pool.file ? "the workers' time" : "the main thread's time";
	tfh_spent_all(r, seconds);
	double train = seconds[TFH_BRANCH_TRAIN] + seconds[TFH_BRANCH_STEP];
	return seconds[TFH_BRANCH_EVALUATE] > 0 && train > 0 &&
			       train < (1 - TFH_BLOCKING_SHARE) * r->steps.total_s
		       ? "the steps' time"
		       : "training time";
}

const char *tfh_outside(const struct tfh_result *r, enum tfh_branch kind)
{
	/* Without a GPU, batches are the first and last that is recorded. */
	static const char *const words[2][3] = {
		{"before the first GPU call", "before the first batch", "before the steps"},
		{"after the last GPU call", "after the last batch", "after the steps"}};
	int what = r->found.sampled.samples ? 2 : r->found.cpu_only;

	return words[kind == TFH_BRANCH_AFTER][what];
}

static const char *part(struct tfh_wording *w, enum tfh_branch kind)
{
	static const char *const where[TFH_BRANCH_COUNT] = {
		[TFH_BRANCH_STARTUP] = "in start-up",
		[TFH_BRANCH_SKIP] = "in skipped batches",
		[TFH_BRANCH_EVALUATE] = "in evaluation",
		[TFH_BRANCH_PREDICT] = "in prediction",
		[TFH_BRANCH_FIRST] = "in what first steps take longer than others",
		[TFH_BRANCH_CHECKPOINT] = "in checkpoints",
		[TFH_BRANCH_BETWEEN] = "between loops",
		[TFH_BRANCH_STALL] = "in stalls",
	};
	double share = tfh_spent(w->r, kind) / w->r->tree[0].wall_s;
	bool outside = kind == TFH_BRANCH_BEFORE || kind == TFH_BRANCH_AFTER;
	const char *what = outside ? tfh_outside(w->r, kind) : where[kind];

	if (!what || share < TFH_REPORT_OTHER_SHARE)
		return NULL;
	return tfh_phrase(w, "%.0f %% %s", share * 100, what);
}

/* All parts that took long, in the run's order. */
static const char *others(struct tfh_wording *w)
{
	const char *all = "";

	for (int k = 0; k < TFH_BRANCH_COUNT; k++) {
		const char *one = part(w, (enum tfh_branch)k);
		if (one)
			all = tfh_phrase(w, "%s%s%s", all, *all ? ", " : "; the rest: ", one);
	}
	return all;
}

bool tfh_run_tells(const struct tfh_result *r)
{
	double steps = tfh_spent(r, TFH_BRANCH_TRAIN) + tfh_spent(r, TFH_BRANCH_STEP);

	return r->end == TFH_END_EXIT || (r->end == TFH_END_SIGNAL && r->n_tree &&
					  steps < TFH_REPORT_OTHER_SHARE * r->tree[0].wall_s);
}

bool tfh_note_run(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	double wall = r->n_tree ? r->tree[0].wall_s : 0;
	double steps = tfh_spent(r, TFH_BRANCH_TRAIN) + tfh_spent(r, TFH_BRANCH_STEP);

	if (!(wall > 0) || !(steps > 0) || !tfh_run_tells(r) || steps >= TFH_REPORT_RUN_PART * wall)
		return false;
	const char *text = tfh_phrase(w, "the steps are %.*f %% of the run's %s%s",
				      steps < TFH_REPORT_RUN_SHARE * wall, steps / wall * 100,
				      tfh_phrase_time(w, wall), others(w));
	if (r->end == TFH_END_SIGNAL)
		tfh_remark_first(w, text);
	else
		tfh_remark(w, text);
	return true;
}
