/* A run as input of the analysis, and the parts of a result that only the run knows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "judge/verdict/verdict.h"
#include "judge/chain.h"
#include "judge/feed.h"
#include "judge/generations.h"
#include "model/symbols/backtraces.h"

struct source {
	struct tfh_run *run;
	struct tfh_merge *merge;
	struct tfh_ops *ops;
	struct tfh_ops *join; /* of the current pass; made in the first pass of a process */
	uint32_t joined;      /* the process of that pass, UINT32_MAX: none yet */
	struct tfh_feed *feed;
};

static int rewind_run(void *arg, uint32_t process, struct tfh_err *err)
{
	struct source *s = arg;

	tfh_merge_close(s->merge);
	tfh_ops_close(s->join);
	s->merge = NULL;
	s->join = NULL;
	int rc = tfh_merge_open(s->run, process, &s->merge, err);
	if (!rc && s->joined != process)
		s->join = tfh_ops_join(s->merge, s->run, process);
	s->joined = process;
	return rc;
}

static bool next_event(void *arg, struct tfh_event *ev)
{
	struct source *s = arg;

	return tfh_merge_next(s->merge, ev);
}

static const struct tfh_event *borrow_event(void *arg)
{
	struct source *s = arg;

	return tfh_merge_borrow(s->merge);
}

static const struct tfh_entry *peek_events(void *arg, uint32_t *n)
{
	struct source *s = arg;

	return tfh_merge_peek(s->merge, n);
}

static void advance_events(void *arg, uint32_t n)
{
	struct source *s = arg;

	tfh_merge_advance(s->merge, n);
}

static const struct tfh_launch_row *row_of(void *arg)
{
	struct source *s = arg;

	return tfh_merge_row(s->merge);
}

static void times_of_row(void *arg, int64_t t0[TFH_LAUNCH_ROW], int64_t t1[TFH_LAUNCH_ROW])
{
	struct source *s = arg;

	tfh_merge_row_times(s->merge, t0, t1);
}

static void take_row(void *arg)
{
	struct source *s = arg;

	tfh_merge_take_row(s->merge);
}

static int pass_error(void *arg, struct tfh_err *err)
{
	struct source *s = arg;

	/* The pass may have found more holes. */
	s->feed->n_holes = tfh_run_holes(s->run, &s->feed->holes);
	return tfh_merge_error(s->merge, err);
}

static const char *name_of(void *arg, uint32_t process, enum tft_name kind, uint32_t id,
			   uint64_t *handle, uint64_t *extra)
{
	struct source *s = arg;

	return tfh_run_name(s->run, process, kind, id, handle, extra);
}

static uint32_t samples_of(void *arg, uint32_t process, const struct tfh_sample **out)
{
	struct source *s = arg;

	return tfh_run_samples(s->run, process, out);
}

static int rewind_ops(void *arg, uint32_t process, struct tfh_err *err)
{
	struct source *s = arg;

	tfh_ops_close(s->ops);
	s->ops = NULL;
	return tfh_ops_open(s->run, process, &s->ops, err);
}

static int rewind_brief(void *arg, uint32_t process, struct tfh_err *err)
{
	struct source *s = arg;
	int rc = rewind_ops(arg, process, err);

	if (!rc)
		tfh_ops_brief(s->ops);
	return rc;
}

static bool next_op(void *arg, struct tfh_op *op)
{
	struct source *s = arg;

	return tfh_ops_next(s->ops, op);
}

static const struct tfh_op *borrow_op(void *arg)
{
	struct source *s = arg;

	return tfh_ops_borrow(s->ops);
}

static int ops_error(void *arg, struct tfh_err *err)
{
	struct source *s = arg;

	return tfh_ops_error(s->ops, err);
}

static void gpu_of(void *arg, uint32_t process, struct tfh_gpu_info *out)
{
	struct source *s = arg;

	tfh_run_gpu(s->run, process, out);
}

static void count_world(struct tfh_result *r, const struct tfh_feed *f)
{
	const struct tfh_process *p = f->processes;

	for (uint32_t i = 0; i < f->n_processes; i++) {
		bool first = true, new_rank = p[i].rank >= 0;
		if (tfh_generations_other(f->generations, i))
			continue;
		for (uint32_t j = 0; j < i; j++) {
			if (tfh_generations_other(f->generations, j))
				continue;
			first &= strcmp(p[j].host, p[i].host) != 0;
			new_rank &= p[j].rank != p[i].rank;
		}
		r->hosts += first;
		r->ranks_seen += new_rank;
		if (p[i].rank >= (int32_t)r->ranks)
			r->ranks = (uint32_t)p[i].rank + 1;
		if (p[i].world > (int32_t)r->ranks)
			r->ranks = (uint32_t)p[i].world;
	}
	if (!r->ranks_seen)
		r->ranks_seen = r->found.unnumbered ? r->found.unnumbered : 1;
	if (!r->ranks)
		r->ranks = r->ranks_seen;
}

static void add_quality(struct tfh_result *r, struct tfh_run *run, const struct tfh_process *p,
			uint32_t n)
{
	const struct tfh_hole *holes;
	const char *const *left_out;
	const struct tfh_sample *sample;
	uint32_t n_samples;
	struct tfh_quality *q = &r->quality;
	struct tfh_gpu_info gpu;

	q->unhooked = tfh_run_unhooked(run, &q->unhooked_names);
	q->holes = tfh_run_holes(run, &holes);
	q->files = tfh_run_unreadable(run, &left_out);
	q->clean_end = true;
	q->clock = "tsc";
	for (uint32_t i = 0; i < n; i++) {
		q->dropped += p[i].dropped;
		q->unnamed += p[i].unnamed;
		q->clean_end &= p[i].clean_end;
		q->clock = p[i].by_monotonic ? "clock_gettime" : q->clock;
		q->files += p[i].segments + p[i].segments_missing;
		q->files_complete += p[i].bad_chunks || p[i].tail_bytes ? 0 : p[i].segments;
	}
	n_samples = tfh_run_samples(run, r->process, &sample);
	tfh_run_gpu(run, r->process, &gpu);
	for (uint32_t i = 0; i < n_samples && tfh_run_wall_ns(run) > 0; i++)
		q->overhead_share += sample[i].flusher_s * 1e9 / (double)tfh_run_wall_ns(run);
	q->cupti_share = q->device_times_share = NAN;
	if (tfh_run_wall_ns(run) > 0) {
		q->overhead_share += (double)gpu.overhead_ns / (double)tfh_run_wall_ns(run);
		if (gpu.overhead_ns)
			q->cupti_share = (double)gpu.overhead_ns / (double)tfh_run_wall_ns(run);
		if (gpu.recorder_ns)
			q->device_times_share =
				(double)gpu.recorder_ns / (double)tfh_run_wall_ns(run);
	}
	q->clock_residual_s = (double)p[r->process].clock_residual_ns / 1e9;
	if (tfh_run_source(run) != TFH_SRC_TFT) { /* the overhead of another tool is not known */
		q->clock = NULL;
		q->clock_residual_s = q->overhead_share = NAN;
	}
}

/* Finds which of several ranks that did not end properly was silent first. */
static void find_silent(struct tfh_result *r, const struct tfh_process *p)
{
	int64_t last = INT64_MIN;

	for (uint32_t i = 0; i < r->n_rank; i++)
		if (p[r->rank[i].process].heard_ns > last)
			last = p[r->rank[i].process].heard_ns;
	for (uint32_t i = 0; i < r->n_rank; i++) {
		const struct tfh_process *mine = &p[r->rank[i].process];
		r->rank[i].silent_s = (double)(last - mine->heard_ns) / 1e9;
		r->rank[i].closed = mine->clean_end;
	}
}

static const char *site_of(void *arg, uint32_t process, uint32_t stack)
{
	struct source *s = arg;
	return tfh_run_site(s->run, process, stack);
}

static uint32_t place_of(void *arg, uint32_t process, uint32_t place, struct tfh_model_line *frame,
			 uint32_t most)
{
	struct source *s = arg;
	return tfh_run_place(s->run, process, place, frame, most);
}

static uint32_t lines_of(void *arg, uint32_t process, uint32_t stack, struct tfh_model_line *frame,
			 uint32_t most)
{
	struct source *s = arg;
	return tfh_run_python(s->run, process, stack, frame, most);
}

static uint32_t functions_of(void *arg, uint32_t process, uint32_t stack,
			     struct tfh_model_line *frame, uint32_t most)
{
	struct source *s = arg;
	return tfh_run_functions(s->run, process, stack, frame, most);
}

static bool function_at(void *arg, uint32_t process, uint64_t address, struct tfh_model_line *out)
{
	struct source *s = arg;
	return tfh_run_function(s->run, process, address, out);
}

static const struct tfh_start *start_of(void *arg, uint32_t process)
{
	struct source *s = arg;
	return tfh_run_start(s->run, process);
}

static int digests_of(void *arg, uint32_t process, tfh_digest_cb cb, void *cb_arg)
{
	struct source *s = arg;
	return tfh_run_digests(s->run, process, cb, cb_arg);
}

static uint32_t judging(void)
{
	struct tfh_options options;

	tfh_options_read(&options, environ);
	return (uint32_t)tfh_opt_int(&options, TFH_OPT_JUDGING);
}

/* Whether only one process is judged, so that its likely steps can be chosen in advance. */
static bool is_alone(const struct tfh_feed *f)
{
	uint32_t process[TFH_VERDICT_RANKS];

	return tfh_ranks_of(f, process) <= 1;
}

/* Finds what the chosen steps waited for, from the first analysis or from a second one. */
static int find_chains(struct tfh_feed *f, const struct tfh_steps_wanted *wanted,
		       const struct tfh_result *r, struct tfh_err *err)
{
	struct tfh_chain *chosen = wanted->choose(wanted->arg, r);
	struct tfh_result *again = NULL;
	int rc = 0;

	if (!chosen)
		return 0;
	if (!f->likely || !tfh_likely_give(f->likely, chosen)) {
		f->chain = chosen;
		f->likely = NULL;
		f->each = NULL;
		rc = tfh_analyze_feed(f, &again, err);
		tfh_result_free(again);
	}
	return rc ? rc : tfh_chain_finish(chosen, f, err);
}

/* Analyses a feed, with the chains that `wanted` requests (NULL: none). */
static int analyze_feed(struct tfh_feed *f, const struct tfh_steps_wanted *wanted,
			struct tfh_result **out, struct tfh_err *err)
{
	struct tfh_likely *likely = wanted && is_alone(f) ? malloc(sizeof(*likely)) : NULL;

	if (likely) {
		tfh_likely_init(likely, wanted->likely);
		f->likely = likely;
		f->chain = likely->chain;
	}
	int rc = tfh_analyze_feed(f, out, err);
	if (!rc && wanted && (rc = find_chains(f, wanted, *out, err))) {
		tfh_result_free(*out);
		*out = NULL;
	}
	if (likely)
		tfh_likely_free(likely);
	free(likely);
	return rc;
}

/* The functions by which the phases read a recording. */
static const struct tfh_feed reading = {
	.rewind = rewind_run,
	.next = next_event,
	.borrow = borrow_event,
	.peek = peek_events,
	.advance = advance_events,
	.row = row_of,
	.row_times = times_of_row,
	.take_row = take_row,
	.error = pass_error,
	.name = name_of,
	.samples = samples_of,
	.site = site_of,
	.place = place_of,
	.lines = lines_of,
	.functions = functions_of,
	.function_at = function_at,
	.start = start_of,
	.digests = digests_of,
	.rewind_ops = rewind_ops,
	.rewind_brief = rewind_brief,
	.next_op = next_op,
	.borrow_op = borrow_op,
	.ops_error = ops_error,
	.gpu = gpu_of,
};

static int analyze(struct tfh_run *run, tfh_rank_fn each, void *each_arg, bool every_generation,
		   const struct tfh_steps_wanted *wanted, struct tfh_result **out,
		   struct tfh_err *err)
{
	struct source s = {.run = run, .joined = UINT32_MAX};
	struct tfh_generations generations;
	struct tfh_feed feed = reading;

	s.feed = &feed;
	feed.arg = &s;
	feed.wall_ns = tfh_run_wall_ns(run);
	feed.end_ns = tfh_run_end_ns(run);
	feed.imported = tfh_run_source(run) != TFH_SRC_TFT;
	int code = 0;
	feed.failed = tfh_run_end(run, &code) == TFH_END_EXIT && code;
	feed.kineto =
		tfh_run_source(run) == TFH_SRC_KINETO || tfh_run_source(run) == TFH_SRC_ASCEND;
	feed.judging = judging();
	feed.each = each;
	feed.each_arg = each_arg;
	tfh_run_decoders(run, feed.judging);
	feed.n_processes = tfh_run_processes(run, &feed.processes);
	feed.n_threads = tfh_run_threads(run, &feed.threads);
	feed.n_holes = tfh_run_holes(run, &feed.holes);
	feed.n_discarded = tfh_run_discarded_spans(run, &feed.discarded);
	int rc = tfh_generations_find(feed.processes, feed.n_processes, &generations);
	feed.generations = generations.n > 1 ? &generations : NULL;
	feed.every_generation = every_generation;
	if (rc)
		tfh_err_set(err, rc, "out of memory");
	else
		rc = analyze_feed(&feed, wanted, out, err);
	if (!rc && (rc = tfh_generations_fill(&feed, run, *out, err))) {
		tfh_result_free(*out);
		*out = NULL;
	}
	if (!rc)
		count_world(*out, &feed);
	tfh_generations_free(&generations);
	tfh_merge_close(s.merge);
	tfh_ops_close(s.join);
	tfh_ops_close(s.ops);
	if (rc)
		return rc;
	(*out)->run = run;
	(*out)->end = tfh_run_end(run, &(*out)->end_code);
	tfh_doubt_killed(*out);
	add_quality(*out, run, feed.processes, feed.n_processes);
	find_silent(*out, feed.processes);
	tfh_find_machine(run, *out);
	return 0;
}

int tfh_analyze(struct tfh_run *run, struct tfh_result **out, struct tfh_err *err)
{
	return analyze(run, NULL, NULL, false, NULL, out, err);
}

int tfh_analyze_steps(struct tfh_run *run, const struct tfh_steps_wanted *wanted, tfh_rank_fn fn,
		      void *arg, struct tfh_result **out, struct tfh_err *err)
{
	return analyze(run, fn, arg, false, wanted, out, err);
}

int tfh_analyze_ranks(struct tfh_run *run, tfh_rank_fn fn, void *arg, struct tfh_result **out,
		      struct tfh_err *err)
{
	return analyze(run, fn, arg, true, NULL, out, err);
}
