#include "judge/loops/tree.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "judge/loops/loop_events.h"
#include "judge/loops/fold.h"
#include "judge/loops/unit.h"
#include "judge/stats.h"

struct run_tree {
	const struct tfh_facts *facts;
	const struct tfh_loops *loops;
	struct tfh_part_of_run part[TFH_LOOPS_PARTS];
	uint32_t n;
	bool work;     /* some loops launch */
	bool ended;    /* no loop of the run follows what is added */
	int64_t least; /* ns: shorter loops do not become parts of their own */
	TFH_VEC(struct tfh_iteration) iteration;
	int rc;
};

static uint32_t add(struct run_tree *t, enum tfh_branch kind, uint32_t parent, int64_t t0,
		    int64_t ns)
{
	struct tfh_part_of_run *p = &t->part[t->n];

	*p = (struct tfh_part_of_run){.kind = kind,
				      .parent = parent,
				      .name = "",
				      .count = 1,
				      .runs = 1,
				      .begin_s = (double)t0 * 1e-9,
				      .wall_s = (double)ns * 1e-9};
	return t->n++;
}

/* Adds time that belongs to a parent and to none of its loops: one part of each kind, and another
 * one for what follows the run's last loop. If there is no room for another part, the time goes to
 * the parent's last one. */
static void add_to(struct run_tree *t, enum tfh_branch kind, uint32_t parent, int64_t t0,
		   int64_t ns, uint64_t count)
{
	bool ends = t->ended && !parent && kind == TFH_BRANCH_BETWEEN;
	uint32_t last = parent;

	for (uint32_t i = parent + 1; i < t->n; i++) {
		if (t->part[i].parent != parent)
			continue;
		last = i;
		if (t->part[i].kind == kind && t->part[i].ends == ends) {
			t->part[i].wall_s += (double)ns * 1e-9;
			t->part[i].count += count;
			return;
		}
	}
	if (t->n < TFH_LOOPS_PARTS - 1) {
		last = add(t, kind, parent, t0, ns);
		t->part[last].count = count;
		t->part[last].ends = ends;
	} else if (last > parent)
		t->part[last].wall_s += (double)ns * 1e-9;
}

/* ---- what a loop does ---- */

/* What a loop does whose batches are not those of the training. */
static enum tfh_branch role_of_group(const struct tfh_loops *loops, const struct tfh_facts *facts,
				     uint32_t group)
{
	return facts->series.v[loops->group.v[group].series].skipped ? TFH_BRANCH_SKIP
								     : TFH_BRANCH_EVALUATE;
}

/* Whether the name of an executed function says that it trains. */
static bool trains_by_name(const struct run_tree *t, const struct tfh_node *loop)
{
	bool trains = false;
	size_t n;

	for (uint32_t i = 0; i < loop->n_body && !trains; i++)
		trains = loop->body[i].kind == TFH_LOOP_EVENT_FUNCTION &&
			 tfh_role_of_name(tfh_graph_name(t->facts, loop->body[i].what, &n)) ==
				 TFH_BRANCH_TRAIN;
	return trains;
}

/* Whether a step reads batches of the training and others: one for each device, or for a prediction
 * in each step. */
static bool fed_by_both(const struct run_tree *t, const struct tfh_node *loop)
{
	bool training = false, others = false;

	for (uint32_t i = 0; i < loop->n_body; i++) {
		uint32_t feeds = loop->body[i].feeds;
		training |= feeds && (int32_t)feeds - 1 == t->loops->train_group;
		others |= feeds && (int32_t)feeds - 1 != t->loops->train_group;
	}
	return training && others;
}

/* Whether the windows of a leaf loop's iterations evaluate: that of its second one, for an event of
 * the first may belong to what was before. */
static bool in_evaluation(const struct run_tree *t, const struct tfh_node *loop)
{
	int64_t each = loop->ns / (int64_t)loop->n;
	size_t at = tfh_window_of(t->loops, loop->t0 + each + each / 2, 0);

	return at != SIZE_MAX && t->loops->window.v[at].segment == TFH_SEGMENT_EVAL;
}

/* What is known about a leaf loop's steps: by a mark, the name of the executed function, the
 * iterator that feeds them, or the windows. */
static enum tfh_branch said(const struct run_tree *t, const struct tfh_node *loop)
{
	enum tfh_branch role = trains_by_name(t, loop) ? TFH_BRANCH_TRAIN : TFH_BRANCH_STEP;
	size_t n;

	if (fed_by_both(t, loop))
		return role;
	for (uint32_t i = 0; i < loop->n_body && role == TFH_BRANCH_STEP; i++) {
		const struct tfh_node *v = &loop->body[i];
		if (v->kind == TFH_LOOP_EVENT_FUNCTION)
			role = tfh_role_of_name(tfh_graph_name(t->facts, v->what, &n));
		else if (v->kind == TFH_LOOP_EVENT_MARK && v->what)
			role = TFH_BRANCH_EVALUATE;
		if (role == TFH_BRANCH_STEP && v->feeds && t->loops->train_group >= 0 &&
		    (int32_t)v->feeds - 1 != t->loops->train_group)
			role = role_of_group(t->loops, t->facts, v->feeds - 1);
	}
	return role == TFH_BRANCH_STEP && in_evaluation(t, loop) ? TFH_BRANCH_EVALUATE : role;
}

/* Whether a launches everything that b does and more: the backward pass and the update. */
static bool does_more(const struct tfh_node *a, const struct tfh_node *b)
{
	return b->launches && !(b->ops & ~a->ops) && a->ops != b->ops &&
	       a->launches * b->n > b->launches * a->n;
}

/* Whether a loop iterates inside of a step, so that its iterations are parts of a step, whatever
 * they launch. This is only assumed of loops that nothing names, if the step is a period of
 * launches and no evaluation interrupts the steps. */
static bool in_a_step(const struct run_tree *t, const struct tfh_node *loop)
{
	int64_t each = loop->ns / (int64_t)loop->n;
	size_t at = tfh_window_of(t->loops, loop->t0 + each / 2, 0);
	const struct tfh_window *w = at == SIZE_MAX ? NULL : &t->loops->window.v[at];

	return w && t->loops->clock == TFH_STEP_CLOCK_PERIOD &&
	       !t->loops->segment_n[TFH_SEGMENT_EVAL] && 2 * each < w->t1 - w->t0;
}

static enum tfh_branch role_of(const struct run_tree *t, const struct tfh_node *parent,
			       const struct tfh_node *loop)
{
	enum tfh_branch role = said(t, loop);

	if (role == TFH_BRANCH_STEP && in_a_step(t, loop))
		return role;
	for (uint32_t i = 0; i < parent->n_body && role == TFH_BRANCH_STEP; i++) {
		const struct tfh_node *other = &parent->body[i];
		if (!tfh_node_is_leaf(other) || tfh_nodes_alike(other, loop))
			continue;
		if (said(t, other) == TFH_BRANCH_EVALUATE || does_more(loop, other))
			role = TFH_BRANCH_TRAIN;
		else if (said(t, other) == TFH_BRANCH_TRAIN || does_more(other, loop))
			role = TFH_BRANCH_EVALUATE;
	}
	return role;
}

/* The name of the function with most time, as its author wrote it: "__inference_train_step_129" is
 * train_step. */
static const char *name_of(struct run_tree *t, const struct tfh_node *loop)
{
	const struct tfh_node *best = NULL;

	for (uint32_t i = 0; i < loop->n_body; i++)
		if (loop->body[i].kind == TFH_LOOP_EVENT_FUNCTION &&
		    (!best || loop->body[i].ns > best->ns))
			best = &loop->body[i];
	return best ? tfh_graph_base(t->facts, best->what) : "";
}

/* ---- parts ---- */

/* group: of the iterator; -1: any. */
static bool ends_iterator(const struct tfh_node *loop, int32_t group)
{
	for (uint32_t i = 0; i < loop->n_body; i++)
		if (loop->body[i].kind == TFH_LOOP_EVENT_END &&
		    (group < 0 || loop->body[i].what == (uint32_t)group))
			return true;
	return false;
}

/* Whether each iteration trains, or goes once through the batches of an iterator and does not only
 * evaluate. If the ends of iterators that train are known, those of an evaluation within an epoch
 * make none. */
static bool is_epoch(const struct run_tree *t, const struct tfh_node *loop)
{
	enum tfh_branch least = ends_iterator(loop, -1) ? TFH_BRANCH_STEP : TFH_BRANCH_TRAIN;

	if (t->facts->told_ends && t->loops->clock == TFH_STEP_CLOCK_ITERATOR &&
	    !ends_iterator(loop, t->loops->train_group))
		return false;
	for (uint32_t i = 0; i < loop->n_body; i++) {
		const struct tfh_node *v = &loop->body[i];
		enum tfh_branch role = tfh_node_is_leaf(v) ? role_of(t, loop, v) : TFH_BRANCH_LOOP;
		if (role == TFH_BRANCH_TRAIN || role == least ||
		    (v->body && !tfh_node_is_leaf(v) && is_epoch(t, v)))
			return true;
	}
	return false;
}

static enum tfh_branch role_in(const struct run_tree *t, const struct tfh_node *parent,
			       const struct tfh_node *loop)
{
	if (tfh_node_is_leaf(loop))
		return role_of(t, parent, loop);
	return is_epoch(t, loop) ? TFH_BRANCH_EPOCH : TFH_BRANCH_LOOP;
}

/* The time by which first iterations exceed the others. If a loop that recurs has hardly two
 * iterations each time, the first is another kind of work rather than longer: two models of a GAN,
 * which train in turn. */
static int64_t first_longer(const struct tfh_node *loop)
{
	int64_t longer;

	if (loop->n <= loop->runs ||
	    (loop->runs >= TFH_VERDICT_RECURS && loop->n < TFH_LOOPS_FIRST_OF * loop->runs))
		return 0;
	longer = loop->first_ns - (loop->ns - loop->first_ns) / (int64_t)(loop->n - loop->runs) *
					  (int64_t)loop->runs;
	return longer > 0 ? longer : 0;
}

/* The number of a loop's steps: one call may execute several. */
static uint64_t iterations(const struct run_tree *t, const struct tfh_node *loop)
{
	bool function = false;

	for (uint32_t i = 0; i < loop->n_body; i++)
		function |= loop->body[i].kind == TFH_LOOP_EVENT_FUNCTION;
	if (!t->loops->grouped || !function || !tfh_node_is_leaf(loop))
		return loop->n;
	return (uint64_t)llround((double)loop->n * t->loops->per_execution);
}

/* The number of epochs. If a loop evaluates first, an iteration may lack training (a check before
 * the training starts): only those that train count. */
static uint64_t epochs(const struct run_tree *t, const struct tfh_node *loop)
{
	const struct tfh_node *first = NULL;
	uint64_t trained = 0;

	for (uint32_t i = 0; i < loop->n_body; i++) {
		const struct tfh_node *v = &loop->body[i];
		if (!v->body)
			continue;
		if (!tfh_node_is_leaf(v))
			return loop->n;
		first = !first || v->t0 < first->t0 ? v : first;
		if (role_of(t, loop, v) == TFH_BRANCH_TRAIN && v->runs > trained)
			trained = v->runs;
	}
	return trained && loop->t0 >= loop->body[0].t0 &&
			       role_of(t, loop, first) == TFH_BRANCH_EVALUATE && trained < loop->n
		       ? trained
		       : loop->n;
}

static void add_parts(struct run_tree *t, struct tfh_node *node, uint32_t parent,
		      enum tfh_branch rest);

static void note_rounds(struct run_tree *t, const struct tfh_node *loop, uint32_t part)
{
	for (size_t i = 0; i < loop->n_begin && !t->rc; i++)
		t->rc = TFH_PUSH_BIG(t->iteration, ((struct tfh_iteration){loop->begin[i], part}));
}

static void add_loop(struct run_tree *t, const struct tfh_node *parent, struct tfh_node *loop,
		     uint32_t at)
{
	bool leaf = tfh_node_is_leaf(loop);
	int64_t longer = leaf ? first_longer(loop) : 0;
	uint32_t i;

	longer = longer >= t->least ? longer : 0;
	i = add(t, role_in(t, parent, loop), at, loop->t0, loop->ns - longer);
	t->part[i].count =
		t->part[i].kind == TFH_BRANCH_EPOCH ? epochs(t, loop) : iterations(t, loop);
	t->part[i].runs = loop->runs;
	t->part[i].name = leaf ? name_of(t, loop) : "";
	if (longer)
		add_to(t, TFH_BRANCH_FIRST, at, loop->t0, longer, loop->runs);
	if (leaf)
		note_rounds(t, loop, i);
	else
		add_parts(t, loop, i, TFH_BRANCH_BETWEEN);
}

/* Equal loops of a parent, in one entry. */
struct same {
	/* Shares its body with the first, which has the begins of all iterations. */
	struct tfh_node sum;
	uint32_t first;
};

/* Returns the number of entries. *left: time of those that did not fit. */
static uint32_t gather(struct tfh_node *node, struct same *v, int64_t *left)
{
	uint32_t n = 0;

	*left = 0;
	for (uint32_t i = 0; i < node->n_body; i++) {
		struct tfh_node *more = &node->body[i];
		uint32_t k = 0;
		if (!tfh_node_is_leaf(more))
			continue;
		while (k < n && !tfh_nodes_alike(&v[k].sum, more))
			k++;
		if (k == TFH_LOOPS_PARTS) {
			*left += more->ns;
		} else if (k == n) {
			v[n++] = (struct same){*more, i};
		} else {
			tfh_node_add(&v[k].sum, more);
			v[k].sum.n += more->n;
			v[k].sum.runs += more->runs;
			v[k].sum.first_ns += more->first_ns;
			tfh_node_take_begins(&node->body[v[k].first], more);
		}
	}
	for (uint32_t k = 0; k < n; k++) {
		v[k].sum.begin = node->body[v[k].first].begin;
		v[k].sum.n_begin = node->body[v[k].first].n_begin;
	}
	return n;
}

/* Whether a loop only copies and waits. */
static bool carries(const struct tfh_node *loop)
{
	for (uint32_t i = 0; i < loop->n_body; i++)
		if (loop->body[i].kind != TFH_LOOP_EVENT_COPY &&
		    loop->body[i].kind != TFH_LOOP_EVENT_WAIT)
			return false;
	return true;
}

/* Whether there is a loop whose iterations launch something. Then loops that only copy are no
 * steps: they fetch the model to save it, or send data. */
static bool has_work(const struct tfh_node *node)
{
	for (uint32_t i = 0; i < node->n_body; i++) {
		const struct tfh_node *v = &node->body[i];
		if (v->body && (tfh_node_is_leaf(v) ? v->launches > 0 : has_work(v)))
			return true;
	}
	return false;
}

/* Whether batches in a loop, or in one inside of it, fit a preprocessing layer. */
static bool adapts(const struct run_tree *t, const struct tfh_node *node)
{
	uint32_t feeds = node->feeds;

	if (feeds && t->facts->series.v[t->loops->group.v[feeds - 1].series].adapts)
		return true;
	for (uint32_t i = 0; i < node->n_body; i++)
		if (adapts(t, &node->body[i]))
			return true;
	return false;
}

/* Whether a loop before the first step makes weights or data, or copies them: it is much shorter
 * than the training, or copies only; or fits a preprocessing layer. */
static bool prepares(const struct run_tree *t, const struct tfh_node *loop)
{
	const struct tfh_loops *l = t->loops;
	int64_t first = l->window.n ? l->window.v[0].t0 : INT64_MIN;

	if (loop->t0 >= first)
		return false;
	if (adapts(t, loop))
		return true;
	if (!tfh_node_is_leaf(loop))
		return false;
	/* XLA's programs are the clock: others make weights. */
	bool others = t->facts->program.n && l->clock == TFH_STEP_CLOCK_EXEC;
	return others || carries(loop) ||
	       (loop->t0 + loop->ns <= first && loop->n * TFH_LOOPS_PREPARE_PART <= l->window.n);
}

/* Whether it is a loop of its own, rather than time between loops. */
static bool is_loop(const struct run_tree *t, const struct tfh_node *v)
{
	return v->body && v->ns >= t->least && !(t->work && tfh_node_is_leaf(v) && carries(v));
}

static void add_part(struct run_tree *t, const struct tfh_node *node, struct tfh_node *v,
		     uint32_t parent, enum tfh_branch *rest)
{
	if (v->kind == TFH_LOOP_EVENT_SAVE) {
		add_to(t, TFH_BRANCH_CHECKPOINT, parent, v->t0, v->ns, v->n);
	} else if (!is_loop(t, v) || t->n >= TFH_LOOPS_PARTS / 2 ||
		   (*rest == TFH_BRANCH_STARTUP && prepares(t, v))) {
		add_to(t, *rest, parent, v->t0, v->ns, v->body ? 1 : v->n);
	} else {
		add_loop(t, node, v, parent);
		*rest = TFH_BRANCH_BETWEEN;
	}
}

/* Equal loops of a parent become one part, however often they occur. `rest`: the time before the
 * first loop. */
static void add_parts(struct run_tree *t, struct tfh_node *node, uint32_t parent,
		      enum tfh_branch rest)
{
	struct same same[TFH_LOOPS_PARTS];
	int64_t left;
	uint32_t n = gather(node, same, &left), k = 0, end = node->n_body;

	while (end && !is_loop(t, &node->body[end - 1]))
		end--;
	for (uint32_t i = 0; i < node->n_body; i++) {
		struct tfh_node *v = &node->body[i];
		t->ended = i >= end;
		if (!tfh_node_is_leaf(v))
			add_part(t, node, v, parent, &rest);
		else if (k < n && same[k].first == i)
			add_part(t, node, &same[k++].sum, parent, &rest);
	}
	t->ended = false;
	if (left)
		add_to(t, rest, parent, node->t0, left, 1);
}

static int add_event(void *fold, const struct tfh_node *event)
{
	return tfh_fold_add(fold, event);
}

static int keep(struct run_tree *t, struct tfh_loops *loops)
{
	size_t size = t->n * sizeof(*t->part);

	loops->tree = tfh_arena_array(t->facts->arena, t->n, sizeof(*t->part));
	if (!loops->tree)
		return -ENOMEM;
	memcpy(loops->tree, t->part, size);
	loops->n_tree = t->n;
	return t->rc;
}

static int by_begin(const void *a, const void *b, void *arg)
{
	const struct tfh_iteration *x = a, *y = b;

	(void)arg;
	return x->t0 < y->t0 ? -1 : x->t0 > y->t0;
}

/* Sorts the iterations by time and keeps the first of each interval of one part. */
static void keep_rounds(struct run_tree *t, struct tfh_loops *loops)
{
	size_t n = 0;

	if (t->iteration.n)
		tfh_sort(t->iteration.v, t->iteration.n, sizeof(*t->iteration.v), by_begin, NULL);
	for (size_t i = 0; i < t->iteration.n; i++)
		if (!n || t->iteration.v[n - 1].part != t->iteration.v[i].part)
			t->iteration.v[n++] = t->iteration.v[i];
	loops->iteration = t->iteration.v;
	loops->n_round = n;
}

/* The time of the loops found so far that consist of steps. */
static double steps_s(const struct run_tree *t)
{
	double s = 0;

	for (uint32_t i = 0; i < t->n; i++)
		if (t->part[i].kind >= TFH_BRANCH_TRAIN && t->part[i].kind <= TFH_BRANCH_CHECKPOINT)
			s += t->part[i].wall_s;
	return s;
}

/*
 * Another profiler's trace holds few steps whose launches differ, so what repeats may only be a
 * detail of a step. If the loops found do not cover the steps, the steps replace them. In a
 * recording they do so if no loop was found: its launches, or the ops that a processor executes one
 * by one, are not separated by any other call. Returns their end.
 */
static int64_t put_steps(struct run_tree *t, int64_t born, int64_t end)
{
	const struct tfh_loops *l = t->loops;
	int64_t ns = 0, t0 = l->window.n ? l->window.v[0].t0 : 0;
	uint64_t steps = 0;

	TFH_EACH (i, l->window.n) {
		ns += l->window.v[i].t1 - l->window.v[i].t0;
		steps += l->window.v[i].steps;
	}
	if (!TFH_DETECT_TRACE_STEPS || !steps || (!t->facts->feed->imported && steps_s(t) > 0) ||
	    steps_s(t) * TFH_LOOPS_COVERED_PART >= (double)ns * 1e-9)
		return end;
	end = l->window.v[l->window.n - 1].t1;
	t0 = t0 > born ? t0 : born;
	t->n = 1;
	t->iteration.n = 0;
	add(t, TFH_BRANCH_BEFORE, 0, born,
	    t0 < t->facts->first ? t0 - born : t->facts->first - born);
	add(t, TFH_BRANCH_STARTUP, 0, t->facts->first,
	    t0 > t->facts->first ? t0 - t->facts->first : 0);
	t->part[add(t, TFH_BRANCH_STEP, 0, t0, end - t0)].count = steps;
	t->rc = t->rc ? t->rc : TFH_PUSH_BIG(t->iteration, ((struct tfh_iteration){t0, t->n - 1}));
	return end;
}

/* When the judged process ended. What others of the run did after that is no part of it. Another
 * profiler's trace does not say when a process ended. */
static int64_t end_of(const struct tfh_facts *facts)
{
	const struct tfh_feed *f = facts->feed;
	const struct tfh_process *p = &f->processes[facts->process];

	for (uint32_t i = 0; i < f->n_processes; i++)
		if (!f->imported && p->clean_end && f->processes[i].last_ns > p->heard_ns)
			return p->heard_ns;
	return f->end_ns;
}

int tfh_find_tree(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	const struct tfh_feed *f = facts->feed;
	int64_t born = f->processes[facts->process].born_ns, end = end_of(facts), last;
	struct run_tree t = {.facts = facts, .loops = loops};
	struct tfh_fold *fold = tfh_fold_new(f->each || tfh_counts_units(facts, loops));
	struct tfh_node root;
	int rc = fold ? tfh_loop_events(facts, loops, add_event, fold) : -ENOMEM;

	if (rc) {
		tfh_fold_free(fold);
		return rc;
	}
	tfh_fold_end(fold, &root);
	tfh_fold_tidy(&root);
	rc = TFH_DETECT_UNITS ? tfh_find_units(facts, loops, &root) : 0;
	rc = rc ? rc : tfh_join_waited(facts, loops);
	rc = rc || !TFH_DETECT_UNITS ? rc : tfh_open_steps(loops, &root);
	if (rc) {
		tfh_node_clear(&root);
		return rc;
	}
	if (!root.n_body)
		root.t0 = facts->last_work > facts->first ? facts->last_work : facts->first;
	/* No process is older than its run; /proc gives a start time in units of 10 ms. */
	if (f->end_ns < f->wall_ns && born < f->end_ns - f->wall_ns)
		born = f->end_ns - f->wall_ns;
	born = born < facts->first ? born : facts->first;
	end = end > root.t0 + root.ns ? end : root.t0 + root.ns;
	t.least = (end - born) / TFH_LOOPS_LEAST_PART;
	t.work = has_work(&root);
	add(&t, TFH_BRANCH_RUN, 0, born, end - born);
	add(&t, TFH_BRANCH_BEFORE, 0, born, facts->first - born);
	add(&t, TFH_BRANCH_STARTUP, 0, facts->first, root.t0 - facts->first);
	add_parts(&t, &root, 0, TFH_BRANCH_STARTUP);
	last = put_steps(&t, born, root.t0 + root.ns);
	end = end > last ? end : last;
	add(&t, TFH_BRANCH_AFTER, 0, last, end - last);
	rc = keep(&t, loops);
	keep_rounds(&t, loops);
	tfh_node_clear(&root);
	return rc;
}
