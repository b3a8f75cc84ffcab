/*
 * Windows from the events of the chosen clock. A step lasts from the delivery of its batch to the
 * delivery of the next.
 */
#include <errno.h>
#include <string.h>

#include "judge/loops/step_clock.h"

/* The window being built. */
struct window_builder {
	const struct tfh_facts *facts;
	struct tfh_loops *loops;
	struct tfh_window w;
	bool open;
	int64_t must; /* minimum end of the window when it is cut */
	int rc;
};

static void close_window(struct window_builder *b, int64_t t, bool cut)
{
	if (!b->open)
		return;
	b->open = false;
	/* Records are missing for a while: the step ends where they end. */
	int64_t gone = tfh_discarded_from(b->facts, b->w.t0, t);
	cut |= gone < t;
	t = gone < t ? gone : t;
	b->w.t1 = t > b->w.t0 ? t : b->w.t0;
	b->w.cut = cut;
	b->w.last = b->w.last ? b->w.last : b->must;
	if (TFH_PUSH_BIG(b->loops->window, b->w))
		b->rc = -ENOMEM;
}

static void open_window(struct window_builder *b, int64_t t, enum tfh_segment segment)
{
	memset(&b->w, 0, sizeof(b->w));
	b->w.t0 = t;
	b->w.steps = 1;
	b->w.segment = (uint8_t)segment;
	b->must = 0;
	b->open = true;
}

static bool mine(const struct tfh_loops *loops, const struct tfh_boundary *t)
{
	return (int32_t)tfh_group_of(loops, t) == loops->train_group;
}

/* Batches of an evaluation occur in runs; an iterator that alternates with the training one belongs
 * to the step. Threads of replicas run slightly ahead of each other, so if a group of another
 * thread has as many batches as the training loop, runs must be long. */
static bool evaluates(const struct window_builder *b, const struct tfh_boundary *t)
{
	const struct tfh_loops *loops = b->loops;
	const struct tfh_group *g = &loops->group.v[tfh_group_of(loops, t)];
	const struct tfh_group *train = &loops->group.v[loops->train_group];
	uint32_t thread = b->facts->batch.v[train->first].thread;

	if (mine(loops, t))
		return false;
	if (tfh_as_many(g, train) && t->thread != thread)
		return g->runs * TFH_LOOPS_REPLICA_RUN <= g->count;
	return g->runs * TFH_LOOPS_EVAL_RUN <= g->count ||
	       g->runs * TFH_LOOPS_EVAL_PART <= train->count;
}

/* Batches before the first step: those that fitted preprocessing layers, a few that were used to
 * build the model or to test it (start-up), or those that a resumed job passed over. */
static bool tried(const struct tfh_facts *facts, const struct tfh_loops *loops,
		  const struct tfh_boundary *t)
{
	return facts->series.v[t->series].skipped || facts->series.v[t->series].adapts ||
	       loops->group.v[tfh_group_of(loops, t)].count <= TFH_LOOPS_TRIED_BATCHES;
}

static int64_t begin_of(const struct tfh_boundary *t)
{
	return t->x0 ? t->x0 : t->t0;
}

/* Takes all batches of the executing call that begins with *i; leaves *i at its last. */
static void take_group(struct window_builder *b, size_t *i)
{
	const struct tfh_facts *facts = b->facts;
	struct tfh_loops *loops = b->loops;
	const struct tfh_boundary *first = &facts->batch.v[*i];
	size_t j = *i;

	b->w.group = true;
	b->w.x1 = first->x1;
	b->w.last = first->t1;
	while (j + 1 < facts->batch.n && facts->batch.v[j + 1].x0 == first->x0 && first->x0) {
		const struct tfh_boundary *t = &facts->batch.v[++j];
		if (!mine(loops, t))
			continue;
		b->w.gets += t->t1 - t->t0;
		b->w.steps += !t->end;
		b->w.last = t->t1;
	}
	*i = j;
}

/* A batch of another loop: an evaluation between training steps. `idle`: the last activity of the
 * loop before. */
static void eval_batch(struct window_builder *b, const struct tfh_boundary *t, int64_t *eval,
		       int64_t *idle)
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

/* Whether iterators deliver one batch each, as in a call that predicts one example: that call is
 * the step, which lasts until the next call. */
static bool single(const struct tfh_loops *loops)
{
	const struct tfh_group *g = &loops->group.v[loops->train_group];

	return 2 * g->inner < g->count;
}

/* What follows an evaluation's last batch, such as metrics, is part of it if the training then goes
 * on with its iterator: at an epoch's end, the next epoch's start may be in that time. */
static void go_on(struct window_builder *b, const struct tfh_boundary *t, uint32_t series,
		  int64_t idle)
{
	const struct tfh_series *all = b->facts->series.v;

	if (!TFH_DETECT_METRICS || b->open || t->end || series == UINT32_MAX ||
	    all[t->series].iterator != all[series].iterator || begin_of(t) - idle <= TFH_GAP_NS)
		return;
	open_window(b, idle, TFH_SEGMENT_EVAL);
	b->w.steps = 0;
}

/* The first batch of training after an evaluation, or the end of the run at `end`. */
static void end_evaluation(const struct window_builder *b, int64_t *eval, int64_t end)
{
	b->loops->segment_ns[TFH_SEGMENT_EVAL] += tfh_recorded_ns(b->facts, *eval, end);
	*eval = 0;
}

/* Where cutting at batches has come to. */
struct batch_cut {
	uint32_t series;    /* of the last step; UINT32_MAX: none yet */
	int64_t eval, idle; /* begin of an evaluation, 0: none; the last activity of its thread */
	bool one;	    /* single() */
	bool ended;	    /* the last batch was an iterator's end */
};

/* Takes a batch, or the end, of the training's iterator. Returns whether a step begins with it. */
static bool train_batch(struct window_builder *b, struct batch_cut *c, const struct tfh_boundary *t)
{
	if (c->eval) {
		if (!c->ended)
			go_on(b, t, c->series, c->idle);
		close_window(b, begin_of(t), true);
		end_evaluation(b, &c->eval, begin_of(t));
	}
	c->ended = t->end;
	if (t->end) {
		if (!c->one)
			close_window(b, t->t1, true);
		c->idle = t->t1;
		return false;
	}
	/* A new iterator is a new epoch: the wait for its first batch is before its first step. */
	if (c->series != UINT32_MAX && t->series != c->series && !c->one)
		close_window(b, begin_of(t), true);
	if (t->more) {
		b->must = t->t1;
		return false;
	}
	close_window(b, t->t1, false);
	c->series = t->series;
	open_window(b, t->t1, TFH_SEGMENT_TRAIN);
	b->must = t->x1;
	return true;
}

static void cut_at_batches(struct window_builder *b)
{
	const struct tfh_facts *facts = b->facts;
	struct tfh_loops *loops = b->loops;
	struct batch_cut c = {.series = UINT32_MAX, .one = single(loops)};

	for (size_t i = 0; i < facts->batch.n; tfh_big_pass(++i)) {
		const struct tfh_boundary *t = &facts->batch.v[i];
		if (evaluates(b, t)) {
			if (c.series != UINT32_MAX || !tried(facts, loops, t))
				eval_batch(b, t, &c.eval, &c.idle);
		} else if (mine(loops, t) && train_batch(b, &c, t) && loops->grouped) {
			take_group(b, &i);
		}
	}
	if (c.eval)
		end_evaluation(b, &c.eval, c.idle > facts->last_work ? c.idle : facts->last_work);
	close_window(b, facts->last_work, true);
}

/* Whether gaps in the marks' numbers show steps that the profiler did not record (its schedule
 * repeats). Gaps are few then; if most marks had one, the numbers would count something else. */
static bool recorded_apart(const struct tfh_facts *facts, const struct tfh_loops *loops)
{
	return TFH_DETECT_APART && facts->feed->imported && facts->marks_left &&
	       loops->clock == TFH_STEP_CLOCK_MARK && 2 * facts->marks_left < facts->mark.n;
}

static void cut_at_marks(struct window_builder *b)
{
	const struct tfh_facts *facts = b->facts;
	struct tfh_loops *loops = b->loops;
	int64_t eval = 0;

	loops->apart = recorded_apart(facts, loops);
	TFH_EACH (i, loops->mark.n) {
		const struct tfh_boundary *m = &loops->mark.v[i];
		if (loops->apart && i && m[-1].left)
			close_window(b, m[-1].t1, false);
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
		/* Marks and waits end their step; a call that only begins a step leaves its end
		 * open. */
		const struct tfh_boundary *m = &loops->mark.v[loops->mark.n - 1];
		bool whole = loops->clock == TFH_STEP_CLOCK_MARK || loops->mark_ends;
		close_window(b, whole ? m->t1 : facts->last_work, !whole);
		if (eval)
			loops->segment_ns[TFH_SEGMENT_EVAL] +=
				tfh_recorded_ns(facts, eval, whole ? m->t1 : facts->last_work);
	}
}

static struct window_builder builder(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	return (struct window_builder){.facts = facts, .loops = loops};
}

int tfh_windows_at_batches(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	struct window_builder b = builder(facts, loops);

	cut_at_batches(&b);
	return b.rc;
}

int tfh_windows_at_marks(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	struct window_builder b = builder(facts, loops);

	cut_at_marks(&b);
	return b.rc;
}

int tfh_one_window(const struct tfh_facts *facts, struct tfh_loops *loops, int64_t t0, int64_t t1)
{
	struct window_builder b = builder(facts, loops);

	open_window(&b, t0, TFH_SEGMENT_TRAIN);
	close_window(&b, t1, false);
	return b.rc;
}
