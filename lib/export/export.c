#include "base/bisect.h"
#include "export/export.h"

#include <errno.h>
#include <stdlib.h>

#include "model/big.h"

/* Called for each judged process; its result is valid only during the call. */
static int keep_steps(void *arg, const struct tfh_result *r, struct tfh_err *err)
{
	struct tfh_export *x = arg;
	struct tfh_export_rank *more = realloc(x->rank, (x->n_rank + 1) * sizeof(*more));

	if (!more)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	x->rank = more;
	struct tfh_export_rank *rank = &x->rank[x->n_rank];
	*rank = (struct tfh_export_rank){
		.process = r->process, .n = r->n_step, .clock = r->steps.clock};
	rank->step = tfh_big_array(r->n_step + 1, sizeof(*rank->step));
	if (!rank->step)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	x->n_rank++;
	TFH_EACH (i, r->n_step)
		rank->step[i] = r->step[i];
	return 0;
}

int tfh_export_open(struct tfh_run *run, struct tfh_export *x, struct tfh_err *err)
{
	*x = (struct tfh_export){.run = run, .only = UINT32_MAX};
	return tfh_analyze_ranks(run, keep_steps, x, &x->result, err);
}

int tfh_export_hide_names(struct tfh_export *x, struct tfh_err *err)
{
	x->hidden = tfh_pseudonyms_new();
	return x->hidden ? 0 : tfh_err_set(err, -ENOMEM, "out of memory");
}

void tfh_export_close(struct tfh_export *x)
{
	for (uint32_t i = 0; i < x->n_rank; i++)
		tfh_big_free(x->rank[i].step);
	free(x->rank);
	tfh_result_free(x->result);
	tfh_pseudonyms_free(x->hidden);
	*x = (struct tfh_export){.run = NULL};
}

const struct tfh_export_rank *tfh_export_rank_of(const struct tfh_export *x, uint32_t process)
{
	for (uint32_t i = 0; i < x->n_rank; i++)
		if (x->rank[i].process == process)
			return &x->rank[i];
	return NULL;
}

bool tfh_export_has(const struct tfh_export *x, const struct tfh_step *s)
{
	return !x->part || (s->index >= x->first && s->index <= x->last);
}

/* Steps are in order of time. */
const struct tfh_step *tfh_export_step_at(const struct tfh_export_rank *rank, int64_t t)
{
	size_t low = TFH_BISECT(i, 0, rank ? rank->n : 0, tfh_step_begin_ns(&rank->step[i]) <= t);

	return low && t < tfh_step_end_ns(&rank->step[low - 1]) ? &rank->step[low - 1] : NULL;
}

/* The time of a rank's exported steps; false: it has none. */
static bool steps_span(const struct tfh_export *x, const struct tfh_export_rank *rank, int64_t *t0,
		       int64_t *t1)
{
	bool any = false;

	TFH_EACH (i, rank ? rank->n : 0) {
		const struct tfh_step *s = &rank->step[i];
		if (!tfh_export_has(x, s))
			continue;
		int64_t begin = tfh_step_begin_ns(s), end = tfh_step_end_ns(s);
		*t0 = any && *t0 < begin ? *t0 : begin;
		*t1 = any && *t1 > end ? *t1 : end;
		any = true;
	}
	return any;
}

int tfh_export_limit(struct tfh_export *x, uint64_t first, uint64_t last, struct tfh_err *err)
{
	const struct tfh_export_rank *rank = tfh_export_rank_of(x, x->result->process);
	int64_t t0, t1;

	x->part = true;
	x->first = first;
	x->last = last;
	if (steps_span(x, rank, &t0, &t1))
		return 0;
	if (!rank || !rank->n)
		return tfh_err_set(err, -ENODATA, "no steps were found, so none can be selected");
	return tfh_err_set(err, -ENODATA, "there is no such step; the steps are %llu to %llu",
			   (unsigned long long)rank->step[0].index,
			   (unsigned long long)rank->step[rank->n - 1].index);
}

void tfh_export_span(const struct tfh_export *x, uint32_t process, int64_t *t0, int64_t *t1)
{
	*t0 = INT64_MIN;
	*t1 = INT64_MAX;
	if (x->part && !steps_span(x, tfh_export_rank_of(x, process), t0, t1))
		steps_span(x, tfh_export_rank_of(x, x->result->process), t0, t1);
}
