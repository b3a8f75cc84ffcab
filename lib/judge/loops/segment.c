/*
 * Steps and phases. A step lasts from the delivery of its batch to the delivery of the next:
 * windows tile the training loop, and their number is the number of batches. Clocks in order of
 * trust: the job's own marks, the training iterator, a repeated graph execution, the period of the
 * launches.
 */
#include <stdlib.h>
#include <string.h>

#include "judge/loops/step_clock.h"
#include "judge/loops/tree.h"
#include "judge/loops/turns.h"

/* Executions of a function and their time; for one that is compiled repeatedly, those of all
 * functions with its name. */
static uint64_t exec_count(const struct tfh_tag *tag)
{
	return tag->retraced ? tag->all_count : tag->count;
}

static int64_t exec_ns(const struct tfh_tag *tag)
{
	return tag->retraced ? tag->all_ns : tag->ns;
}

static bool same_exec(const struct tfh_facts *facts, uint32_t name, const struct tfh_tag *best)
{
	return name == best->name || (best->retraced && name < facts->tag_of.n &&
				      facts->tag.v[facts->tag_of.v[name]].base == best->base);
}

/* Finds the function executed most often; its calls become marks. */
static int find_exec(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	const struct tfh_feed *f = facts->feed;
	const struct tfh_tag *best = NULL;
	int rc = 0;

	for (size_t i = 0; i < facts->tag.n; i++)
		if (facts->tag.v[i].function &&
		    exec_count(&facts->tag.v[i]) >= TFH_LOOPS_FEWEST_EXECS &&
		    (!best || exec_ns(&facts->tag.v[i]) > exec_ns(best)))
			best = &facts->tag.v[i];
	if (!best)
		return 0;
	loops->exec_name = best->name;
	loops->clock_name = f->name(f->arg, facts->process, TFT_NAME_OP, best->name, NULL, NULL);
	for (size_t i = 0; i < facts->exec.n && !rc; tfh_big_pass(++i))
		if (same_exec(facts, facts->exec.v[i].name, best))
			rc = TFH_PUSH_BIG(loops->mark,
					  ((struct tfh_boundary){.t0 = facts->exec.v[i].t0,
								 .t1 = facts->exec.v[i].t1}));
	return rc;
}

/* If one executed call takes several batches, fetched by a thread that may run ahead of the
 * computing, the call is judged as a whole and its steps share its time equally. */
static void decide_grouping(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	const struct tfh_group *g = &loops->group.v[loops->train_group];
	uint64_t execs = 0, contained = 0;
	bool loop = false;

	for (size_t i = 0; i < facts->series.n; i++) {
		const struct tfh_series *s = &facts->series.v[i];
		if ((int32_t)loops->group_of[i] != loops->train_group)
			continue;
		execs += s->execs;
		contained += s->contained;
		loop |= s->loop;
	}
	loops->per_execution = execs && !loop ? (double)contained / (double)execs : 1;
	loops->grouped = !loop && execs >= TFH_LOOPS_GROUP_EXECS &&
			 loops->per_execution > TFH_LOOPS_GROUP_BATCHES &&
			 loops->per_execution <= TFH_LOOPS_GROUP_MOST &&
			 contained * TFH_LOOPS_GROUP_PART > g->count;
	if (!loops->grouped)
		loops->per_execution = 1;
}

static const char *iterator_name(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	const struct tfh_group *g = &loops->group.v[loops->train_group];

	if (facts->loader)
		return "batches of the DataLoader";
	if (*g->tag)
		return tfh_arena_text(facts->arena, "get-next of %s", g->tag);
	return facts->series.v[g->series].loop ? "dataset loop inside a graph" : "get-next";
}

/* The name of the marks: "ProfilerStep" in a PyTorch trace. */
static const char *mark_name(const struct tfh_facts *facts)
{
	const struct tfh_feed *f = facts->feed;
	const char *name = facts->mark_name ? f->name(f->arg, facts->process, TFT_NAME_STRING,
						      facts->mark_name, NULL, NULL)
					    : NULL;

	return name && *name ? name : "tfhook_step";
}

/* Until when, after t0, the program waited for the device before it launched or copied anything:
 * for work from before the trace. */
static int64_t waited_first(const struct tfh_facts *facts, int64_t t0, int64_t most, int64_t least)
{
	for (size_t i = 0; i < facts->token.n; i++) {
		int64_t begin = facts->token.v[i].t0, end = tfh_token_end(&facts->token.v[i]);
		if (tfh_kind_of(facts, &facts->token.v[i])->family != TFH_FAM_SYNC ||
		    begin - t0 > most)
			return 0;
		if (end - begin > least)
			return end - t0;
	}
	return 0;
}

/*
 * How long after t0 the device was busy with work from before the trace. The trace shows nothing of
 * that work but the wait of its own ops: near its beginning the device has no op for more than a
 * tenth of the trace, although the call that issued the next op had returned in the first tenth of
 * that time (a call that loads or compiles its kernel returns only at the end). The 100 us that an
 * idle device may take to start its first op do not count.
 */
static int find_lead_in(const struct tfh_facts *facts, struct tfh_loops *loops, int64_t t0,
			int64_t t1, struct tfh_err *err)
{
	const struct tfh_feed *f = facts->feed;
	int64_t most = (t1 - t0) / TFH_LOOPS_LEAD_PART, end = t0,
		least = most > TFH_LOOPS_LEAD_NS ? most : TFH_LOOPS_LEAD_NS;
	const struct tfh_op *op;
	struct tfh_op room;
	int rc = f->rewind_ops ? tfh_feed_rewind_brief(f, facts->process, err) : 0;

	loops->lead_in = waited_first(facts, t0, most, least);
	end += loops->lead_in;
	while (!rc && f->rewind_ops && end - t0 <= most && (op = tfh_feed_borrow_op(f, &room))) {
		if (op->t0 - end > least && op->t0 < t1 && op->issue0 > INT64_MIN &&
		    op->issue1 - end <= (op->t0 - end) / TFH_LOOPS_LEAD_PART) {
			loops->lead_in = op->t0 - t0;
			break;
		}
		end = op->t1 > end ? op->t1 : end;
	}
	return rc || !f->rewind_ops ? rc : f->ops_error(f->arg, err);
}

/* Another profiler's trace in which nothing repeats is one step, from the first record to the last,
 * since its owner wants to know about all of it. */
static int from_whole(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err)
{
	const struct tfh_feed *f = facts->feed;
	struct tfh_gpu_info gpu = {0};

	if (f->gpu)
		f->gpu(f->arg, facts->process, &gpu);
	if (!f->imported)
		return 0;
	int64_t ready = facts->phase[TFH_PHASE_CONTEXT];
	int64_t t0 = gpu.n_span ? gpu.span[0].t0 : ready > facts->first ? ready : facts->first;
	int64_t t1 = gpu.n_span ? gpu.span[gpu.n_span - 1].t1 : facts->last;
	loops->clock_name = "the whole trace";
	int rc = tfh_one_window(facts, loops, t0, t1);
	return rc || !gpu.n_span ? rc : find_lead_in(facts, loops, t0, t1, err);
}

/* Uses the job's own marks if they show its steps. A mark with a duration is the one step of a
 * short trace in which nothing else repeats, if it covers most of it. */
static int own_marks(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	const struct tfh_boundary *m = facts->mark.v;
	bool one = facts->mark.n == 1 && m[0].t1 > m[0].t0 &&
		   facts->batch.n < TFH_LOOPS_MARK_BATCHES &&
		   TFH_LOOPS_COVERED_PART * (m[0].t1 - m[0].t0) >= facts->last - facts->first;
	int rc = 0;

	for (size_t i = 0; i < facts->mark.n && (facts->mark.n >= 2 || one) && !rc;
	     tfh_big_pass(++i))
		rc = TFH_PUSH_BIG(loops->mark, m[i]);
	return rc;
}

/* Finds repeating events if there are neither marks nor an iterator. */
static int find_ticks(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err)
{
	bool imported = facts->feed->imported;
	int rc = imported || !facts->update.n ? find_exec(facts, loops) : 0;

	if (!rc && !loops->mark.n && !facts->update.n)
		rc = tfh_find_programs(facts, loops);
	if (rc || loops->mark.n) {
		loops->clock = TFH_STEP_CLOCK_EXEC;
		return rc ? rc : tfh_join_turns(facts, loops, TFH_TURNS_OF_CALLERS);
	}
	if ((imported || facts->update.n) &&
	    ((rc = tfh_find_updates(facts, loops, err)) || loops->mark.n)) {
		loops->clock = TFH_STEP_CLOCK_MARK;
		return rc;
	}
	rc = tfh_find_period(facts, loops, err);
	loops->clock = loops->mark.n ? TFH_STEP_CLOCK_PERIOD : TFH_STEP_CLOCK_NONE;
	loops->clock_name = facts->eager ? "period of the ops" : "period of the launches";
	if (!rc && loops->mark.n && facts->feed->imported)
		rc = tfh_check_period(facts, loops, err);
	if (!rc && !loops->mark.n && imported && facts->eager && TFH_DETECT_ANNOTATED)
		rc = tfh_find_annotated(facts, loops, err);
	if (loops->mark.n && loops->clock == TFH_STEP_CLOCK_NONE)
		loops->clock = TFH_STEP_CLOCK_MARK;
	return rc;
}

static int choose_clock(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err)
{
	int rc = tfh_choose_iterator(facts, loops);

	loops->per_execution = 1;
	if (!rc)
		rc = own_marks(facts, loops);
	if (rc)
		return rc;
	if (loops->mark.n) {
		loops->clock = TFH_STEP_CLOCK_MARK;
		loops->clock_name = mark_name(facts);
		return tfh_windows_at_marks(facts, loops);
	}
	/* A short trace with one batch is one step, which no next batch ends. */
	if (facts->feed->imported && loops->train_group >= 0 &&
	    loops->group.v[loops->train_group].count < 2) {
		loops->train_group = -1;
		loops->clock = TFH_STEP_CLOCK_NONE;
		return from_whole(facts, loops, err);
	}
	if (loops->train_group >= 0) {
		loops->clock = TFH_STEP_CLOCK_ITERATOR;
		loops->clock_name = iterator_name(facts, loops);
		decide_grouping(facts, loops);
		rc = tfh_windows_at_batches(facts, loops);
		return rc ? rc : tfh_join_ahead(facts, loops, err);
	}
	rc = find_ticks(facts, loops, err);
	if (rc)
		return rc;
	if (loops->clock == TFH_STEP_CLOCK_NONE && (rc = from_whole(facts, loops, err)))
		return rc;
	tfh_sort_marks(loops);
	return tfh_windows_at_marks(facts, loops);
}

int tfh_find_loops(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err)
{
	int rc;

	memset(loops, 0, sizeof(*loops));
	loops->train_group = -1;
	rc = choose_clock(facts, loops, err);
	if (rc)
		return tfh_err_set(err, rc, "cannot find the steps: %s", strerror(-rc));
	rc = tfh_find_tree(facts, loops);
	if (rc)
		return tfh_err_set(err, rc, "out of memory");
	rc = tfh_take_iterations(facts, loops);
	rc = rc ? rc : tfh_finish_windows(facts, loops);
	return rc ? tfh_err_set(err, rc, "out of memory") : 0;
}

void tfh_loops_free(struct tfh_loops *loops)
{
	free(loops->group.v);
	tfh_big_free(loops->group_of);
	tfh_big_free(loops->mark.v);
	tfh_big_free(loops->window.v);
	tfh_big_free(loops->iteration);
}
