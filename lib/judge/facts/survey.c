/*
 * The first pass over all calls: which threads drive the job, candidates for its step clock, the
 * bandwidth of copies, and calls so long that the second pass must know of them before they end.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#include "judge/facts/survey.h"
#include "judge/stats.h"

/* Device work submitted since the last wait; gives the bandwidth of copies that were waited for
 * alone. */
struct pending {
	uint64_t launches, bytes[8];
	int64_t since;
};

static void bandwidth(struct tfh_facts *facts, uint8_t dir, bool pageable, uint64_t bytes,
		      int64_t ns)
{
	int bin = bytes ? 63 - __builtin_clzll(bytes) : 0;
	double *best = &facts->best_bw[dir & 7][pageable][bin < TFH_BINS ? bin : TFH_BINS - 1];

	if (ns > 0 && (double)bytes / (double)ns > *best)
		*best = (double)bytes / (double)ns;
}

/* Keeps the first million tokens, and after them a million that are not plain launches. Usually one
 * of those begins or ends every step, so no further pass is needed. */
static int keep_token(struct tfh_facts *facts, const struct tfh_event *ev,
		      const struct tfh_piece *p)
{
	bool late = facts->token.n >= TFH_FACTS_TOKENS && !facts->eager;
	struct tfh_token_kind kind;
	uint32_t n;

	if (late && p->family == TFH_FAM_LAUNCH) {
		facts->late_launch = true;
		return 0;
	}
	if (!tfh_token_kind(ev, p, &kind))
		return 0;
	if (facts->eager)
		tfh_eager_drop(facts);
	/* Not needed if step marks or batches give the steps. */
	if (late)
		facts->late_lost |=
			facts->late.n >= TFH_FACTS_TOKENS || facts->mark.n > 1 || facts->batch.n;
	if (late && facts->late_lost)
		return 0;
	n = tfh_kind_number(facts, &kind);
	if (n == UINT32_MAX)
		return -ENOMEM;
	return late ? TFH_PUSH_BIG(facts->late, tfh_token_make(ev->t0, ev->t1, n))
		    : tfh_keep_token(facts, ev, n);
}

static int add_driver(struct tfh_facts *facts, const struct tfh_event *ev,
		      const struct tfh_piece *p, struct pending *q)
{
	bool launch = tfh_family_launches(p->family);

	facts->launches += launch;
	facts->graph_launches += p->family == TFH_FAM_GRAPH_LAUNCH;
	if (launch && tfh_quiet_until(facts, ev->t1))
		return -ENOMEM;
	facts->exchanges += ev->fn->args == TFH_ARGS_COLLECTIVE;
	if (p->family == TFH_FAM_LAUNCH)
		facts->last_launch[p->stream % TFH_FACTS_LAST_LAUNCHES] =
			(struct tfh_last_call){p->stream, (uint32_t)ev->w[0], ev->t1};
	if (launch)
		q->launches++;
	else if (p->activity == TFH_ACTIVITY_COPY && !q->launches && !q->since)
		bandwidth(facts, p->dir, p->pageable, p->bytes, p->t1 - p->t0);
	else if (p->family == TFH_FAM_COPY && !q->bytes[p->dir & 7])
		q->since = q->since ? q->since : p->t0;
	if (p->activity == TFH_ACTIVITY_LAUNCH && p->family == TFH_FAM_COPY)
		q->bytes[p->dir & 7] += p->bytes;
	/* A blocking copy waits for earlier work, like a synchronising call. */
	if (p->activity == TFH_ACTIVITY_COPY)
		memset(q, 0, sizeof(*q));
	if (p->family == TFH_FAM_SYNC) {
		for (uint8_t d = 1; d < 6 && !q->launches; d++)
			if (q->bytes[d])
				bandwidth(facts, d, false, q->bytes[d], p->t1 - q->since);
		memset(q, 0, sizeof(*q));
	}
	return keep_token(facts, ev, p);
}

/*
 * The CPU clock of a thread is read at the end of long pauses and of long calls. Two readings
 * around a pause show whether the thread computed or slept. A reading at the end of a call has that
 * call's end time, and the call's record comes next; such a reading is about the call, not about a
 * pause.
 */
static void cpu_clock(struct tfh_thread_use *u, const struct tfh_event *ev)
{
	if (ev->kind == TFT_CPUTIME) {
		u->cpu_open = u->last_cpu_t != 0;
		u->open_wall = ev->t1 - u->last_cpu_t;
		u->open_run = (int64_t)ev->w[0] - u->last_cpu;
		u->last_cpu_t = ev->t1;
		u->last_cpu = (int64_t)ev->w[0];
	} else if (u->cpu_open && ev->kind == TFT_CALL) {
		u->cpu_open = false;
		if (ev->t1 != u->last_cpu_t) {
			u->cpu_wall += u->open_wall;
			u->cpu_running += u->open_run;
		}
	}
}

/* Stores a long call. If there are too many, drops the shorter ones; the second pass reads them
 * again. */
static int keep_long(struct tfh_facts *facts, const struct tfh_event *ev, struct tfh_piece *p)
{
	size_t n = 0;

	if (facts->longs.n >= TFH_FACTS_LONGS && facts->long_ns < TFH_LONG_NS) {
		facts->long_ns =
			facts->long_ns * 2 < TFH_LONG_NS ? facts->long_ns * 2 : TFH_LONG_NS;
		for (size_t i = 0; i < facts->longs.n; i++)
			if (facts->longs.v[i].t1 - facts->longs.v[i].t0 >= facts->long_ns)
				facts->longs.v[n++] = facts->longs.v[i];
		facts->longs.n = n;
	}
	if (p->t1 - p->t0 < facts->long_ns || !tfh_exec_piece(facts, ev, p))
		return 0;
	return TFH_PUSH_BIG(facts->longs, *p);
}

/* Whether a driver's call gives the device work or waits for it. Calls that free, destroy or unload
 * at a process' end may come long after the last of these. */
static bool works(const struct tfh_piece *p)
{
	return p->activity == TFH_ACTIVITY_LAUNCH || p->activity == TFH_ACTIVITY_COPY ||
	       p->activity == TFH_ACTIVITY_SYNC || p->family == TFH_FAM_COMMUNICATION;
}

static int add_driver_call(struct tfh_facts *facts, const struct tfh_event *ev, struct tfh_piece *p,
			   struct pending *q)
{
	struct tfh_thread_use *use = &facts->thread[ev->thread];
	size_t kinds = facts->kind.n;

	use->driver++;
	use->launches += tfh_family_launches(p->family);
	/* Another profiler's trace is judged as a whole if nothing in it repeats for most of the
	 * time: what it releases is a part of that. */
	if (works(p) || facts->feed->imported)
		use->last = ev->t1;
	int rc = add_driver(facts, ev, p, q);
	if (!rc && p->activity == TFH_ACTIVITY_MODULE)
		rc = TFH_PUSH_BIG(facts->rare, ((struct tfh_rare){ev->t0, ev->thread, false}));
	if (!rc && tfh_piece_records(p))
		rc = tfh_handles_add(&facts->recorded, p->handle);
	return rc ? rc : tfh_note_loading(facts, p, facts->kind.n > kinds);
}

static int add_call(struct tfh_facts *facts, const struct tfh_event *ev, struct pending *q)
{
	struct tfh_thread_use *use = &facts->thread[ev->thread];
	struct tfh_piece p;
	int64_t ns = ev->t1 - ev->t0;
	int rc = 0;

	cpu_clock(use, ev);
	if (!tfh_piece_of(ev, &p))
		return 0;
	if (p.family == TFH_FAM_CONTEXT || p.family == TFH_FAM_MODULE)
		tfh_startup_event(facts, ev);
	if (p.passive) {
		int32_t stage = tfh_stage_learn(facts, p.stage);
		if (stage >= 0)
			tfh_stage_count(&facts->stage.v[stage].time, ev);
		if (stage >= 0 && ev->kind == TFT_CALL && tfh_stage_is_loop_child(facts, p.stage))
			rc = tfh_batch_event(facts, ev, true);
	} else if (p.activity == TFH_ACTIVITY_INPUT) {
		facts->consumers++;
		use->gets++;
		if (ev->fn->name != facts->loader && strstr(ev->fn->name, "DataLoader"))
			facts->loader = ev->fn->name;
		rc = tfh_batch_event(facts, ev, false);
	} else if (p.activity == TFH_ACTIVITY_EXEC) {
		if (ev->depth == 0) {
			use->execs++;
			use->ops += tfh_is_single_op(facts, ev);
			use->exec_ns += ns;
			use->last = ev->t1;
			rc = tfh_exec_event(facts, ev);
			rc = rc ? rc : tfh_eager_event(facts, ev);
		}
		rc = rc ? rc : tfh_note_made_stage(facts, ev);
	} else {
		rc = add_driver_call(facts, ev, &p, q);
	}
	return !rc && ns >= facts->long_ns ? keep_long(facts, ev, &p) : rc;
}

/* Notes whether a thread's outermost calls overlap: other tools' traces have no depth. */
static inline void note_outermost(struct tfh_thread_use *u, const struct tfh_event *ev)
{
	if (ev->depth || (ev->kind != TFT_CALL && ev->kind != TFT_ALLOC))
		return;
	u->overlap |= ev->t0 < u->outermost;
	u->outermost = ev->t1;
}

/* Whether one thread alone makes the time line. Then each of its outermost calls shows that
 * everything before its end is known. */
static bool one_line(const struct tfh_facts *facts)
{
	uint32_t drive = 0;

	for (uint32_t i = 0; i < facts->feed->n_threads; i++) {
		const struct tfh_thread_use *u = &facts->thread[i];
		if ((u->drives && u->overlap) || (!u->drives && (u->gets || u->execs)))
			return false;
		drive += u->drives;
	}
	return drive == 1 && !facts->stage.n;
}

static bool is_main(const struct tfh_facts *facts, uint32_t thread)
{
	const struct tfh_feed *f = facts->feed;

	return f->threads[thread].process == facts->process &&
	       f->threads[thread].tid == f->processes[facts->process].pid;
}

/* Chooses the threads whose calls make the step's time line: those that launch; without a device,
 * the thread that executes most, preferring the main thread (tf.data's own threads execute ops,
 * too). */
static void choose_threads(struct tfh_facts *facts)
{
	const struct tfh_feed *f = facts->feed;
	double best = 0;
	uint32_t exec = 0;
	bool any = false, gets = false;

	for (uint32_t i = 0; i < f->n_threads; i++) {
		struct tfh_thread_use *u = &facts->thread[i];
		double score = (double)u->exec_ns * (is_main(facts, i) ? TFH_FACTS_MAIN_TIMES : 1);
		if (facts->launches ? u->launches * TFH_FACTS_DRIVES_PART >= facts->launches
				    : u->driver > 0)
			any = u->drives = true;
		if (u->execs && score > best) {
			best = score;
			exec = i;
		}
	}
	if (best > 0)
		any = facts->thread[exec].drives = true;
	/* XLA's autotuner may launch far more than the steps, each of which is one graph. */
	if (facts->program.n)
		any = facts->thread[facts->program.v[0].thread].drives = true;
	for (uint32_t i = 0; i < f->n_threads; i++)
		gets |= facts->thread[i].gets > 0;
	for (uint32_t i = 0; i < f->n_threads; i++) {
		struct tfh_thread_use *u = &facts->thread[i];
		/* If only steps were marked, their time is the main thread's. */
		if (!any && (gets ? u->gets > 0 : is_main(facts, i)))
			u->drives = true;
		if (!u->drives)
			continue;
		if (u->last > facts->last_work)
			facts->last_work = u->last;
		facts->cpu_wall += u->cpu_wall;
		facts->cpu_running += u->cpu_running;
	}
}

static int by_begin(const void *a, const void *b, void *arg)
{
	const struct tfh_piece *x = a, *y = b;

	(void)arg;
	return x->t0 < y->t0 ? -1 : x->t0 > y->t0;
}

static int by_delivery(const void *a, const void *b, void *arg)
{
	const struct tfh_boundary *x = a, *y = b;

	(void)arg;
	return x->t1 < y->t1 ? -1 : x->t1 > y->t1;
}

static int by_mark(const void *a, const void *b, void *arg)
{
	const struct tfh_boundary *x = a, *y = b;

	(void)arg;
	return x->t0 < y->t0 ? -1 : x->t0 > y->t0;
}

static int put_in_order(struct tfh_facts *facts)
{
	int rc;

	if (facts->longs.n)
		tfh_sort(facts->longs.v, facts->longs.n, sizeof(*facts->longs.v), by_begin, NULL);
	if (facts->batch.n)
		tfh_sort(facts->batch.v, facts->batch.n, sizeof(*facts->batch.v), by_delivery,
			 NULL);
	if (facts->mark.n)
		tfh_sort(facts->mark.v, facts->mark.n, sizeof(*facts->mark.v), by_mark, NULL);
	tfh_sort_tokens(facts);
	tfh_end_batches(facts);
	tfh_end_marks(facts);
	tfh_end_logged(facts);
	rc = tfh_programs_end(facts);
	rc = rc ? rc : tfh_torch_batches(facts);
	TFH_EACH (i, facts->batch.n)
		if (!facts->batch.v[i].end)
			facts->series.v[facts->batch.v[i].series].last = i;
	return rc;
}

/* Adds a sample of a thread that makes calls, and so is sampled like a driving one, but only in a
 * function that TensorFlow calls to make batches: a py_function executes ops. */
static int note_called(struct tfh_facts *facts, const struct tfh_event *ev)
{
	struct tfh_child_sample sample = {.t = ev->t1,
					  .ns = (double)ev->w[2],
					  .id = ev->ctx,
					  .place = ev->stack,
					  .thread = true};

	sample.state = ev->result < TFT_STATE_COUNT ? (uint8_t)ev->result : 0;
	return TFH_PUSH_BIG(facts->child, sample);
}

/* Creates the table of samples with the first one. */
static int note_sample(struct tfh_facts *facts, const struct tfh_event *ev)
{
	if (ev->kind == TFT_STATE && (tfh_loops_event(facts, ev) || tfh_lock_event(facts, ev)))
		return -ENOMEM;
	if (!facts->samples && ev->kind == TFT_STATE)
		facts->samples = tfh_stack_samples_new(facts->feed, facts->process);
	if (ev->kind == TFT_STATE && tfh_is_called(facts, ev->stack) && note_called(facts, ev))
		return -ENOMEM;
	return facts->samples ? tfh_stack_samples_add(facts->samples, ev) : -ENOMEM;
}

/* Adds a sample of another thread of this process, or of a child process. A child process that
 * records itself is not a loader's worker. */
static int note_child(struct tfh_facts *facts, const struct tfh_event *ev)
{
	const struct tfh_feed *feed = facts->feed;
	struct tfh_child_sample sample = {
		.t = ev->t1, .ns = (double)ev->w[2], .id = ev->ctx, .place = ev->stack};

	sample.thread = feed->processes[facts->process].pid == ev->ctx;
	if (sample.thread)
		sample.id = ev->stream;
	for (uint32_t i = 0; i < feed->n_processes && !sample.thread; i++)
		if (feed->processes[i].pid == ev->ctx)
			return 0;
	sample.state = ev->result < TFT_STATE_COUNT ? (uint8_t)ev->result : 0;
	return TFH_PUSH_BIG(facts->child, sample);
}

/* Finds out by the stacks of a few calls whether a thread runs Python. */
static void note_python(struct tfh_facts *facts, struct tfh_thread_use *use, uint32_t stack)
{
	const struct tfh_feed *f = facts->feed;
	struct tfh_model_line frame;

	if (!stack || use->python || use->stacks >= TFH_FACTS_PYTHON_STACKS)
		return;
	use->stacks++;
	use->python = f->lines && f->lines(f->arg, facts->process, stack, &frame, 1) > 0;
}

static int add_mark(struct tfh_facts *facts, const struct tfh_event *ev)
{
	struct tfh_boundary t = {.t0 = ev->t0, .t1 = ev->t1, .thread = ev->thread};

	if (!facts->mark.n) {
		facts->mark_name = (uint32_t)ev->w[1];
	} else if (ev->w[0] > facts->mark_number + 1) {
		facts->mark.v[facts->mark.n - 1].left = true;
		facts->marks_left++;
	}
	facts->mark_number = ev->w[0];
	return TFH_PUSH_BIG(facts->mark, t);
}

static int add_event(struct tfh_facts *facts, const struct tfh_event *ev, struct pending *q,
		     struct tfh_heap *heap)
{
	int rc = 0;

	if (ev->kind == TFT_CHILD)
		return note_child(facts, ev);
	if (facts->samples || ev->kind == TFT_STATE)
		rc = note_sample(facts, ev);
	if (rc || ev->kind == TFT_STATE)
		return rc;
	if (facts->events++ % TFH_FACTS_CALLS_APART == 0 && TFH_PUSH(facts->call_at, ev->t1))
		return -ENOMEM;
	if (facts->events == 1 || ev->t0 < facts->first)
		facts->first = ev->t0;
	if (ev->t1 > facts->last)
		facts->last = ev->t1;
	note_outermost(&facts->thread[ev->thread], ev);
	if (ev->kind == TFT_RANGE) {
		facts->ranges++;
		return tfh_range_event(facts, ev);
	}
	if (ev->kind == TFT_MARK)
		return add_mark(facts, ev);
	note_python(facts, &facts->thread[ev->thread], ev->stack);
	rc = add_call(facts, ev, q);
	return !rc && ev->kind == TFT_ALLOC ? tfh_heap_event(heap, ev, facts->feed->wall_ns) : rc;
}

static int look_at_all(struct tfh_facts *facts, struct tfh_heap *heap, struct tfh_err *err)
{
	const struct tfh_feed *f = facts->feed;
	const struct tfh_event *ev;
	struct tfh_event room;
	struct pending q = {0};
	int rc = f->rewind(f->arg, facts->process, err);

	while (!rc && (ev = tfh_feed_borrow(f, &room))) {
		if (ev->thread >= f->n_threads)
			continue;
		rc = add_event(facts, ev, &q, heap);
		if (!rc && tfh_is_plain_launch(ev))
			rc = tfh_take_launches(facts, ev, &q.launches);
	}
	return rc ? tfh_err_set(err, rc, "out of memory in the first pass") : f->error(f->arg, err);
}

/* How many ops a process's device ran; 0: unknown. */
static double ops_of(const struct tfh_feed *f, uint32_t process)
{
	struct tfh_gpu_info gpu = {.source = TFH_GPU_NONE};

	if (f->rewind_ops && f->gpu)
		f->gpu(f->arg, process, &gpu);
	return gpu.source == TFH_GPU_NONE ? 0 : (double)gpu.ops;
}

/* Whether the device of another process ran as many ops,
 * but for a few: processes that work step by step together. */
static bool has_peer(const struct tfh_facts *facts)
{
	const struct tfh_feed *f = facts->feed;
	double own = f->n_processes > 1 ? ops_of(f, facts->process) : 0;

	for (uint32_t i = 0; i < f->n_processes && own > 0; i++)
		if (i != facts->process && fabs(ops_of(f, i) - own) < TFH_BLOCKING_SHARE * own)
			return true;
	return false;
}

int tfh_find_facts(const struct tfh_feed *feed, uint32_t process, struct tfh_arena *arena,
		   struct tfh_facts *facts, struct tfh_err *err)
{
	struct tfh_heap *heap = tfh_heap_new();
	int rc;

	memset(facts, 0, sizeof(*facts));
	facts->feed = feed;
	facts->process = process;
	facts->arena = arena;
	facts->thread = calloc(feed->n_threads + 1, sizeof(*facts->thread));
	facts->long_ns = TFH_LONG_FIRST_NS;
	facts->launched = INT64_MIN / 2;
	facts->quiet_ns = TFH_FACTS_QUIET_FIRST_NS;
	rc = facts->thread && heap ? look_at_all(facts, heap, err)
				   : tfh_err_set(err, -ENOMEM, "out of memory");
	if (!rc && tfh_quiet_until(facts, INT64_MAX / 2))
		rc = tfh_err_set(err, -ENOMEM, "out of memory");
	if (!rc) {
		facts->heap = *tfh_heap_end(heap);
		facts->cpu_only = facts->launches == 0;
		tfh_eager_end(facts);
		if (put_in_order(facts) || (TFH_DETECT_RETRACED && tfh_find_retraced(facts)) ||
		    (TFH_DETECT_REMADE && tfh_find_remade(facts)) || tfh_find_stops(facts))
			rc = tfh_err_set(err, -ENOMEM, "out of memory");
		if (TFH_DETECT_RESTARTS)
			tfh_find_restarts(facts);
		choose_threads(facts);
		tfh_find_crowd(facts);
		if (facts->samples)
			tfh_stack_samples_end(facts->samples, facts->delay_per_run);
		if (TFH_DETECT_ADAPTING && facts->samples && facts->batch.n &&
		    tfh_find_adapting(facts))
			rc = tfh_err_set(err, -ENOMEM, "out of memory");
		if (TFH_DETECT_KERNEL_TIME)
			tfh_find_kernel_time(facts);
		tfh_find_answers(facts);
		tfh_find_makers(facts);
		if (TFH_DETECT_OTHERS_LAUNCH)
			tfh_find_launching_others(facts);
		if (TFH_DETECT_OTHERS_RUN)
			tfh_find_others(facts);
		facts->peer = has_peer(facts);
		facts->one_line = one_line(facts);
		for (size_t i = 0; i < facts->series.n; i++)
			facts->series.v[i].root = tfh_stage_place(facts, facts->series.v[i].stage);
	}
	tfh_heap_free(heap);
	return rc;
}

void tfh_facts_free(struct tfh_facts *facts)
{
	free(facts->thread);
	tfh_big_free(facts->batch.v);
	tfh_big_free(facts->mark.v);
	tfh_big_free(facts->series.v);
	free(facts->tag.v);
	free(facts->tag_of.v);
	tfh_big_free(facts->longs.v);
	free(facts->looped.v);
	free(facts->loop.v);
	free(facts->held.v);
	free(facts->kind.v);
	free(facts->kind_at);
	free(facts->token.v);
	free(facts->stop.v);
	tfh_big_free(facts->late.v);
	tfh_big_free(facts->exec.v);
	tfh_big_free(facts->update.v);
	tfh_big_free(facts->program.v);
	free(facts->range_name.v);
	tfh_big_free(facts->rare.v);
	tfh_big_free(facts->logged.v);
	free(facts->loading.v);
	free(facts->quiet.v);
	free(facts->call_at.v);
	free(facts->stage.v);
	free(facts->stage_of.v);
	free(facts->made.v);
	free(facts->recorded.v);
	tfh_stack_samples_free(facts->samples);
	tfh_big_free(facts->child.v);
}
