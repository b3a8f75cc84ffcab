/* What the steps are of the whole run: a verdict about them says nothing of the rest. */
#include <math.h>

#include "report/words/words.h"

/* Seconds of all parts of a kind. */
double tfh_spent(const struct tfh_result *r, enum tfh_branch kind)
{
	double s = 0;

	for (uint32_t i = 0; i < r->n_tree; i++)
		s += r->tree[i].kind == kind ? r->tree[i].wall_s : 0;
	return s;
}

static const char *part(struct tfh_wording *w, enum tfh_branch kind)
{
	static const char *const where[TFH_BRANCH_COUNT] = {
		[TFH_BRANCH_BEFORE] = "before the first call",
		[TFH_BRANCH_STARTUP] = "in start-up",
		[TFH_BRANCH_EVALUATE] = "in evaluation",
		[TFH_BRANCH_PREDICT] = "in prediction",
		[TFH_BRANCH_FIRST] = "in what first steps take longer than others",
		[TFH_BRANCH_CHECKPOINT] = "in checkpoints",
		[TFH_BRANCH_BETWEEN] = "between loops",
		[TFH_BRANCH_AFTER] = "after the last call",
	};
	double share = tfh_spent(w->r, kind) / w->r->tree[0].wall_s;

	if (!where[kind] || share < TFH_REPORT_OTHER_SHARE)
		return NULL;
	return tfh_phrase(w, "%.0f %% %s", share * 100, where[kind]);
}

/* All parts that took long, in the order of the run. */
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

void tfh_note_run(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	double wall = r->n_tree ? r->tree[0].wall_s : 0;
	double steps = tfh_spent(r, TFH_BRANCH_TRAIN) + tfh_spent(r, TFH_BRANCH_STEP);

	if (!(wall > 0) || !(steps > 0))
		return;
	/* One that was killed or still runs has not seen most of its steps. */
	if (r->end == TFH_END_EXIT && steps < TFH_REPORT_RUN_PART * wall)
		tfh_remark(w, tfh_phrase(w, "these steps are %.0f %% of the run's %s%s",
					 steps / wall * 100, tfh_phrase_time(w, wall), others(w)));
}
