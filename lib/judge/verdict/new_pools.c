/*
 * A pool of processes or threads that the program makes anew in many steps. What it takes to start
 * and end its members is neither making batches nor computing, and none of it is left if the
 * program makes one pool before its loop.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "judge/stats.h"
#include "judge/verdict/new_pools.h"
#include "judge/verdict/verdict.h"

/* Functions of the standard library that start or end a pool, or one of its members. Not those that
 * wait until all tasks are done, as join() and shutdown() may. */
static bool starts_or_ends(const struct tfh_model_line *f)
{
	static const struct {
		const char *file, *name;
	} rows[] = {
		{"/multiprocessing/context.py", "Pool"},
		{"/multiprocessing/pool.py", "__init__"},
		{"/multiprocessing/pool.py", "terminate"},
		{"/multiprocessing/pool.py", "__exit__"},
		{"/multiprocessing/process.py", "start"},
		{"/concurrent/futures/process.py", "__init__"},
		{"/concurrent/futures/process.py", "_start_executor_manager_thread"},
		{"/concurrent/futures/process.py", "_adjust_process_count"},
		{"/concurrent/futures/process.py", "_launch_processes"},
		{"/concurrent/futures/thread.py", "_adjust_thread_count"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (tfh_ends_with(f->file, rows[i].file) &&
		    !strcmp(tfh_last_name(f->function), rows[i].name))
			return true;
	return false;
}

/* The program's line that makes or ends a pool there; NULL: it does not. *callee: the outermost
 * function that does. Frames outside the first function of a forked process are its parent's; a
 * data loader's workers have rules of their own; and TensorFlow's strategies make pools that the
 * program cannot keep. */
static const struct tfh_model_line *pool_line(const struct tfh_model_line *frame, uint32_t n,
					      const struct tfh_model_line **callee)
{
	*callee = NULL;

	for (uint32_t i = 0; i < n; i++) {
		if (tfh_ends_with(frame[i].function, "_bootstrap") ||
		    strstr(frame[i].file, "/torch/utils/data/") ||
		    strstr(frame[i].file, "/tensorflow/python/distribute/"))
			return NULL;
		if (!frame[i].library)
			return *callee ? &frame[i] : NULL;
		*callee = starts_or_ends(&frame[i]) ? &frame[i] : *callee;
	}
	return NULL;
}

static int add_line(struct tfh_new_pools *p, const struct tfh_model_line *line,
		    const struct tfh_model_line *callee, double ns, size_t step)
{
	struct tfh_new_pool *of = NULL;

	for (size_t i = 0; i < p->of.n && !of; i++)
		if (tfh_same_line(&p->of.v[i].line, line))
			of = &p->of.v[i];
	if (!of) {
		const struct tfh_new_pool first = {
			.line = *line, .callee = *callee, .step = SIZE_MAX};
		if (p->of.n == TFH_VERDICT_LINES)
			return 0;
		if (TFH_PUSH(p->of, first))
			return -ENOMEM;
		of = &p->of.v[p->of.n - 1];
	}
	of->ns += ns;
	of->samples++;
	of->steps += of->step != step;
	of->step = step;
	return 0;
}

int tfh_new_pools_add(struct tfh_new_pools *p, const struct tfh_model_line *frame, uint32_t n,
		      double ns, size_t step)
{
	const struct tfh_model_line *callee, *line = pool_line(frame, n, &callee);

	p->all_ns += ns;
	p->samples++;
	return line && TFH_DETECT_NEW_POOLS ? add_line(p, line, callee, ns, step) : 0;
}

void tfh_new_pools_keep(const struct tfh_new_pools *p, double steps, double step_s,
			struct tfh_seen_line *out)
{
	const struct tfh_new_pool *best = NULL;

	for (size_t i = 0; i < p->of.n; i++)
		if (!best || p->of.v[i].ns > best->ns)
			best = &p->of.v[i];
	if (!best || best->samples < TFH_VERDICT_LINE_SAMPLES || best->steps < TFH_VERDICT_RECURS ||
	    best->ns < 1e9 * steps * TFH_BLOCKING_SHARE * step_s)
		return;
	double share = best->ns / p->all_ns;
	out->file = best->line.file;
	out->function = best->line.function;
	out->line = best->line.line;
	out->callee = best->callee.function;
	out->callee_file = best->callee.file;
	out->callee_line = best->callee.line;
	out->samples = best->samples;
	out->s_per_step = best->ns / 1e9 / steps;
	out->off_s = tfh_share_error(share, (double)p->samples) * p->all_ns / 1e9 / steps;
}

int tfh_find_new_pools(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	struct tfh_new_pools p = {.all_ns = 0};
	struct tfh_judged_samples at = {0};
	struct tfh_seen_sample k;
	int rc = 0;

	while (!rc && tfh_next_judged_sample(accounts, &at, &k))
		rc = tfh_new_pools_add(&p, frame, tfh_frames_at(accounts->facts, k.place, frame),
				       k.ns, at.window);
	if (!rc)
		tfh_new_pools_keep(&p, (double)accounts->judged_steps, tfh_mean_step_s(r),
				   &r->found.new_pool);
	free(p.of.v);
	return rc;
}
