/*
 * Steps and phases. A step runs from the moment its batch was delivered to the moment the next one
 * was: windows tile the training loop, and their number is the number of batches. Order of trust:
 * the job's own marks, the training iterator, a repeated graph execution, the period of the
 * launches.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "judge/loops/step_clock.h"
#include "judge/loops/tree.h"
#include "judge/stats.h"

/* The window being built. */
struct build {
	const struct tfh_facts *facts;
	struct tfh_loops *loops;
	struct tfh_window w;
	bool open;
	int64_t must; /* the window reaches at least here when it is cut */
	int rc;
};

static void note_segment(struct tfh_loops *loops, enum tfh_segment kind, int64_t ns, uint32_t n)
{
	if (ns <= 0)
		return;
	loops->segment_ns[kind] += ns;
	loops->segment_n[kind] += n;
}

static void close_window(struct build *b, int64_t t, bool cut)
{
	if (!b->open)
		return;
	b->open = false;
	/* What follows is not known for a while: the step ends there, as far as it is seen. */
	int64_t gone = tfh_discarded_from(b->facts, b->w.t0, t);
	cut |= gone < t;
	t = gone < t ? gone : t;
	b->w.t1 = t > b->w.t0 ? t : b->w.t0;
	b->w.cut = cut;
	b->w.last = b->w.last ? b->w.last : b->must;
	if (TFH_PUSH_BIG(b->loops->window, b->w))
		b->rc = -ENOMEM;
}

static void open_window(struct build *b, int64_t t, enum tfh_segment segment)
{
	memset(&b->w, 0, sizeof(b->w));
	b->w.t0 = t;
	b->w.steps = 1;
	b->w.segment = (uint8_t)segment;
	b->must = 0;
	b->open = true;
}

static bool mine(const struct tfh_loops *loops, const struct tfh_tick *t)
{
	return (int32_t)tfh_group_of(loops, t) == loops->train_group;
}

/* Batches of another loop come in runs; an iterator that takes turns with the training one belongs
 * to the step. Replicas' threads run ahead of each other a little, so where there are as many
 * batches as the training loop has, runs must be long. */
static bool evaluates(const struct tfh_loops *loops, const struct tfh_tick *t)
{
	const struct tfh_group *g = &loops->group.v[tfh_group_of(loops, t)];
	const struct tfh_group *train = &loops->group.v[loops->train_group];

	if (mine(loops, t))
		return false;
	if (tfh_as_many(g, train))
		return g->runs * TFH_LOOPS_REPLICA_RUN <= g->count;
	return g->runs * TFH_LOOPS_EVAL_RUN <= g->count ||
	       g->runs * TFH_LOOPS_EVAL_PART <= train->count;
}

/* A few batches before the first step, to build the model from or to try whether it runs: start-up.
 */
static bool tried(const struct tfh_loops *loops, const struct tfh_tick *t)
{
	return loops->group.v[tfh_group_of(loops, t)].count <= TFH_LOOPS_TRIED_BATCHES;
}

static int64_t begin_of(const struct tfh_tick *t)
{
	return t->x0 ? t->x0 : t->t0;
}

/* Takes all ticks of the executing call that begins with *i; leaves *i at its last. */
static void take_group(struct build *b, size_t *i)
{
	const struct tfh_facts *facts = b->facts;
	struct tfh_loops *loops = b->loops;
	const struct tfh_tick *first = &facts->tick.v[*i];
	size_t j = *i;

	b->w.group = true;
	b->w.x1 = first->x1;
	b->w.last = first->t1;
	while (j + 1 < facts->tick.n && facts->tick.v[j + 1].x0 == first->x0 && first->x0) {
		const struct tfh_tick *t = &facts->tick.v[++j];
		if (!mine(loops, t))
			continue;
		b->w.gets += t->t1 - t->t0;
		b->w.steps += !t->end;
		b->w.last = t->t1;
	}
	*i = j;
}

/* A batch of another loop: an evaluation between training steps. `idle` is when the loop before was
 * last seen. */
static void eval_tick(struct build *b, const struct tfh_tick *t, int64_t *eval, int64_t *idle)
{
	bool first = !*eval;

	close_window(b, first ? begin_of(t) : t->t1, first || t->end);
	if (first) {
		*eval = begin_of(t);
		b->loops->segment_n[TFH_SEGMENT_EVAL]++;
	}
	*idle = t->t1;
	if (t->end)
		return;
	open_window(b, t->t1, TFH_SEGMENT_EVAL);
	b->must = t->x1;
}

/* Iterators that deliver one batch each, as a call that predicts one example makes them: that call is the step, and goes on until
 * the next. */
static bool single(const struct tfh_loops *loops)
{
	const struct tfh_group *g = &loops->group.v[loops->train_group];

	return 2 * g->inner < g->count;
}

static void from_iterator(struct build *b)
{
	const struct tfh_facts *facts = b->facts;
	struct tfh_loops *loops = b->loops;
	uint32_t series = UINT32_MAX;
	int64_t eval = 0, idle = 0;
	bool one = single(loops);

	for (size_t i = 0; i < facts->tick.n; tfh_big_pass(++i)) {
		const struct tfh_tick *t = &facts->tick.v[i];
		if (evaluates(loops, t)) {
			if (series == UINT32_MAX && tried(loops, t))
				continue;
			eval_tick(b, t, &eval, &idle);
			continue;
		}
		if (!mine(loops, t))
			continue;
		if (eval) {
			close_window(b, begin_of(t), true);
			loops->segment_ns[TFH_SEGMENT_EVAL] +=
				tfh_recorded_ns(facts, eval, begin_of(t));
			eval = 0;
		}
		if (t->end) {
			if (!one)
				close_window(b, t->t1, true);
			idle = t->t1;
			continue;
		}
		/* A new iterator is a new epoch: its first batch is waited for before its first
		 * step. */
		if (series != UINT32_MAX && t->series != series && !one)
			close_window(b, begin_of(t), true);
		if (t->more) {
			b->must = t->t1;
			continue;
		}
		close_window(b, t->t1, false);
		series = t->series;
		open_window(b, t->t1, TFH_SEGMENT_TRAIN);
		b->must = t->x1;
		if (loops->grouped)
			take_group(b, &i);
	}
	if (eval)
		loops->segment_ns[TFH_SEGMENT_EVAL] += tfh_recorded_ns(
			facts, eval, idle > facts->last_work ? idle : facts->last_work);
	close_window(b, facts->last_work, true);
}

static void from_marks(struct build *b)
{
	const struct tfh_facts *facts = b->facts;
	struct tfh_loops *loops = b->loops;
	int64_t eval = 0;

	TFH_EACH (i, loops->mark.n) {
		const struct tfh_tick *m = &loops->mark.v[i];
		/* A step before an evaluation has not waited for another batch. */
		close_window(b, m->t0, m->eval && !eval && !loops->mark_ends);
		if (eval && !m->eval)
			loops->segment_ns[TFH_SEGMENT_EVAL] += tfh_recorded_ns(facts, eval, m->t0);
		loops->segment_n[TFH_SEGMENT_EVAL] += m->eval && !eval;
		eval = !m->eval ? 0 : eval ? eval : m->t0;
		open_window(b, m->t0, m->eval ? TFH_SEGMENT_EVAL : TFH_SEGMENT_TRAIN);
		b->must = m->t1;
	}
	if (loops->mark.n) {
		/* Marks and waits end their step; what only begins one leaves its end open. */
		const struct tfh_tick *m = &loops->mark.v[loops->mark.n - 1];
		bool whole = loops->clock == TFH_STEP_CLOCK_MARK || loops->mark_ends;
		close_window(b, whole ? m->t1 : facts->last_work, !whole);
		if (eval)
			loops->segment_ns[TFH_SEGMENT_EVAL] +=
				tfh_recorded_ns(facts, eval, whole ? m->t1 : facts->last_work);
	}
}

/* How often a function was executed, and for how long; of one that is compiled again and again all
 * that have its name. */
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

/* The function executed most: its calls become marks. */
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
					  ((struct tfh_tick){.t0 = facts->exec.v[i].t0,
							     .t1 = facts->exec.v[i].t1}));
	return rc;
}

static int64_t step_ns(const struct tfh_window *w)
{
	return (w->t1 - w->t0) / (w->steps ? w->steps : 1);
}

static int64_t median_step(const struct tfh_loops *loops, bool with_cut)
{
	double *v = tfh_big_array(loops->window.n, sizeof(*v)), m = 0;
	size_t n = 0;

	TFH_EACH (i, v ? loops->window.n : 0)
		if (loops->window.v[i].segment == TFH_SEGMENT_TRAIN &&
		    (with_cut || !loops->window.v[i].cut))
			v[n++] = (double)step_ns(&loops->window.v[i]);
	if (n)
		m = tfh_select(v, n, n / 2);
	tfh_big_free(v);
	return (int64_t)m;
}

/* A window that no batch closed may run on into work that is no step's: it is cut to a usual
 * length, behind the call that its batch went to. */
static void trim(struct tfh_loops *loops)
{
	TFH_EACH (i, loops->window.n) {
		struct tfh_window *w = &loops->window.v[i];
		int64_t usual = loops->median * w->steps;
		int64_t must = w->group ? w->x1 : w->last;
		if (!w->cut || w->segment != TFH_SEGMENT_TRAIN ||
		    w->t1 - w->t0 <= usual + usual / TFH_LOOPS_USUAL_PART)
			continue;
		int64_t t1 = w->t0 + usual;
		w->t1 = must > t1 && must < w->t1 ? must : t1;
	}
}

/* What lies between two windows becomes one of its own, without a step: what the job does between its
 * loops has an account, too. */
static int fill_between(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	const struct tfh_window *old = loops->window.v;
	struct tfh_loops filled = {0};
	int rc = 0;

	for (size_t i = 0; i < loops->window.n && !rc; tfh_big_pass(++i)) {
		int64_t from = i ? old[i - 1].t1 : old[i].t0;
		bool apart = old[i].t0 - from > TFH_GAP_NS &&
			     tfh_discarded_from(facts, from, old[i].t0) >= old[i].t0;
		if (apart) {
			note_segment(loops, TFH_SEGMENT_BETWEEN, old[i].t0 - from, 1);
			rc = TFH_PUSH_BIG(filled.window,
					  ((struct tfh_window){.t0 = from,
							       .t1 = old[i].t0,
							       .last = old[i].t0,
							       .segment = TFH_SEGMENT_BETWEEN}));
		}
		rc = rc ? rc : TFH_PUSH_BIG(filled.window, old[i]);
	}
	tfh_big_free(loops->window.v);
	loops->window.v = filled.window.v;
	loops->window.n = filled.window.n;
	loops->window.cap = filled.window.cap;
	return rc;
}

/* Steady is from the first step on that is within half of the median, but no more than a tenth of
 * the run is given up for it; the first step never is. Nor is a step that no next batch closed: it
 * lacks the wait for that. */
static void warm_up(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	size_t n = 0, seen = 0;
	bool steady = false;

	TFH_EACH (i, loops->window.n)
		n += loops->window.v[i].segment == TFH_SEGMENT_TRAIN;
	size_t most = n / TFH_WARMUP_PART > 1 ? n / TFH_WARMUP_PART : 1;
	TFH_EACH (i, n >= TFH_LOOPS_WARMUP_STEPS ? loops->window.n : 0) {
		struct tfh_window *w = &loops->window.v[i];
		if (w->segment != TFH_SEGMENT_TRAIN)
			continue;
		steady |= seen &&
			  (seen >= most ||
			   step_ns(w) <= loops->median + loops->median / TFH_LOOPS_USUAL_PART);
		seen++;
		if (!steady || w->cut)
			w->segment = TFH_SEGMENT_WARMUP;
	}
	TFH_EACH (i, loops->window.n) {
		const struct tfh_window *w = &loops->window.v[i];
		if (w->segment != TFH_SEGMENT_EVAL)
			note_segment(loops, w->segment, w->t1 - w->t0 - (i ? 0 : loops->lead_in),
				     w->steps);
	}
	if (loops->window.n)
		note_segment(loops, TFH_SEGMENT_STARTUP,
			     loops->window.v[0].t0 + loops->lead_in - facts->first, 1);
}

/* The first window that ends after t. */
static size_t window_after(const struct tfh_loops *loops, int64_t t)
{
	size_t lo = 0, hi = loops->window.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (loops->window.v[mid].t1 <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void mark_holes(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	const struct tfh_feed *f = facts->feed;

	for (uint32_t h = 0; h < f->n_holes; h++) {
		const struct tfh_hole *hole = &f->holes[h];
		if (hole->process != facts->process)
			continue;
		for (size_t i = window_after(loops, hole->t0);
		     i < loops->window.n && hole->t1 >= loops->window.v[i].t0; tfh_big_pass(++i))
			loops->window.v[i].hole = true;
	}
}

/* Several batches per executed call, fetched by a thread that may run ahead of the computing: then
 * the call is judged as a whole and its steps get equal parts. */
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

/* What the marks are called: "ProfilerStep" in a trace of PyTorch's. */
static const char *mark_name(const struct tfh_facts *facts)
{
	const struct tfh_feed *f = facts->feed;
	const char *name = facts->mark_name ? f->name(f->arg, facts->process, TFT_NAME_STRING,
						      facts->mark_name, NULL, NULL)
					    : NULL;

	return name && *name ? name : "tfhook_step";
}

/*
 * How long after t0 the device was busy with work from before the trace, of which the trace holds
 * nothing but that its own ops waited. It shows as a device without an op for more than a tenth of
 * the trace, near its beginning, though the call that issued the next op had returned in the first
 * tenth of that time: a call that loads or compiles its kernel returns only then. A device that has
 * slept may take some 100 us to start its first op: that is no such time.
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

	while (!rc && f->rewind_ops && end - t0 <= most && (op = tfh_feed_look_op(f, &room))) {
		if (op->t0 - end > least && op->t0 < t1 && op->issue0 > INT64_MIN &&
		    op->issue1 - end <= (op->t0 - end) / TFH_LOOPS_LEAD_PART) {
			loops->lead_in = op->t0 - t0;
			break;
		}
		end = op->t1 > end ? op->t1 : end;
	}
	return rc || !f->rewind_ops ? rc : f->ops_error(f->arg, err);
}

/* Another profiler's trace in which nothing repeats is what its owner asked about: one step, from
 * the first to the last that was recorded. */
static int from_whole(struct build *b, struct tfh_err *err)
{
	const struct tfh_facts *facts = b->facts;
	struct tfh_loops *loops = b->loops;
	const struct tfh_feed *f = facts->feed;
	struct tfh_gpu_info gpu = {0};

	if (f->gpu)
		f->gpu(f->arg, facts->process, &gpu);
	if (!f->imported)
		return 0;
	int64_t t0 = gpu.n_span ? gpu.span[0].t0 : facts->first;
	int64_t t1 = gpu.n_span ? gpu.span[gpu.n_span - 1].t1 : facts->last;
	loops->clock_name = "the whole trace";
	open_window(b, t0, TFH_SEGMENT_TRAIN);
	close_window(b, t1, false);
	return gpu.n_span ? find_lead_in(facts, loops, t0, t1, err) : 0;
}

/* Marks that the job set itself, where they tell its steps: one with a length is the one step of a
 * short trace, where nothing else repeats. */
static int own_marks(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	const struct tfh_tick *m = facts->mark.v;
	bool one =
		facts->mark.n == 1 && m[0].t1 > m[0].t0 && facts->tick.n < TFH_LOOPS_MARK_BATCHES;
	int rc = 0;

	for (size_t i = 0; i < facts->mark.n && (facts->mark.n >= 2 || one) && !rc;
	     tfh_big_pass(++i))
		rc = TFH_PUSH_BIG(loops->mark, m[i]);
	return rc;
}

/* The beats of something that repeats, where neither marks nor an iterator tell. */
static int find_beats(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err)
{
	bool imported = facts->feed->imported;
	int rc = imported || !facts->update.n ? find_exec(facts, loops) : 0;

	if (rc || loops->mark.n) {
		loops->clock = TFH_STEP_CLOCK_EXEC;
		return rc;
	}
	if ((imported || facts->update.n) &&
	    ((rc = tfh_find_updates(facts, loops, err)) || loops->mark.n)) {
		loops->clock = TFH_STEP_CLOCK_MARK;
		return rc;
	}
	rc = tfh_find_period(facts, loops, err);
	loops->clock = loops->mark.n ? TFH_STEP_CLOCK_PERIOD : TFH_STEP_CLOCK_NONE;
	loops->clock_name = "period of the launches";
	if (!rc && loops->mark.n && facts->feed->imported)
		rc = tfh_check_period(facts, loops, err);
	return rc;
}

static int choose_clock(struct build *b, struct tfh_err *err)
{
	const struct tfh_facts *facts = b->facts;
	struct tfh_loops *loops = b->loops;
	int rc = tfh_choose_iterator(facts, loops);

	loops->per_execution = 1;
	if (!rc)
		rc = own_marks(facts, loops);
	if (rc)
		return rc;
	if (loops->mark.n) {
		loops->clock = TFH_STEP_CLOCK_MARK;
		loops->clock_name = mark_name(facts);
		from_marks(b);
		return b->rc;
	}
	/* A short trace of one batch is one step: none that the next batch ends. */
	if (facts->feed->imported && loops->train_group >= 0 &&
	    loops->group.v[loops->train_group].count < 2) {
		loops->train_group = -1;
		loops->clock = TFH_STEP_CLOCK_NONE;
		rc = from_whole(b, err);
		return rc ? rc : b->rc;
	}
	if (loops->train_group >= 0) {
		loops->clock = TFH_STEP_CLOCK_ITERATOR;
		loops->clock_name = iterator_name(facts, loops);
		decide_grouping(facts, loops);
		from_iterator(b);
		return b->rc ? b->rc : tfh_join_ahead(facts, loops, err);
	}
	rc = find_beats(facts, loops, err);
	if (rc)
		return rc;
	if (loops->clock == TFH_STEP_CLOCK_NONE && (rc = from_whole(b, err)))
		return rc;
	tfh_sort_marks(loops);
	from_marks(b);
	return b->rc;
}

int tfh_find_loops(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err)
{
	struct build b = {.facts = facts, .loops = loops};
	int rc;

	memset(loops, 0, sizeof(*loops));
	loops->train_group = -1;
	rc = choose_clock(&b, err);
	if (rc)
		return tfh_err_set(err, rc, "cannot find the steps: %s", strerror(-rc));
	rc = tfh_find_tree(facts, loops);
	if (rc)
		return tfh_err_set(err, rc, "out of memory");
	loops->median = median_step(loops, false);
	if (!loops->median)
		loops->median = median_step(loops, true);
	trim(loops);
	warm_up(facts, loops);
	rc = fill_between(facts, loops);
	mark_holes(facts, loops);
	return rc ? tfh_err_set(err, rc, "out of memory") : 0;
}

void tfh_loops_free(struct tfh_loops *loops)
{
	free(loops->group.v);
	tfh_big_free(loops->group_of);
	tfh_big_free(loops->mark.v);
	tfh_big_free(loops->window.v);
	tfh_big_free(loops->round);
}
