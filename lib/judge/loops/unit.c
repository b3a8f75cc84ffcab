#include "judge/loops/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/loops/loop_events.h"

struct units {
	const struct tfh_facts *facts;
	const struct tfh_loops *loops;
	const struct tfh_node *first;  /* leaf loop */
	uint64_t iterations, launches; /* of similar leaf loops */
	bool others;		       /* there are other leaf loops */
	bool fed;		       /* each of these iterations copies data to the device */
	bool fed_outside;	       /* or an iteration of an enclosing loop does */
	bool accumulates;	       /* each consists of several inner iterations and an update */
	/* The loop whose only loop they are, and whose iterations have one more of them. */
	const struct tfh_node *odd;
	uint64_t all_launches;
	TFH_VEC(int64_t) begin;
	int rc;
};

bool tfh_counts_units(const struct tfh_facts *facts, const struct tfh_loops *loops)
{
	/* In longer runs the sequence does not contain all launches. */
	return loops->window.n > 1 && loops->clock != TFH_STEP_CLOCK_MARK && !loops->grouped &&
	       !loops->several && !facts->feed->imported && !facts->late.n && !facts->late_launch &&
	       !facts->late_lost;
}

static void take(struct units *u, const struct tfh_node *loop)
{
	u->iterations += loop->n;
	u->launches += loop->launches;
	for (size_t i = 0; i < loop->n_begin && !u->rc; i++)
		u->rc = TFH_PUSH(u->begin, loop->begin[i]);
}

static bool feeds(const struct tfh_node *v)
{
	return v->kind == TFH_LOOP_EVENT_BATCH ||
	       (v->kind == TFH_LOOP_EVENT_COPY && v->what == (TFH_DIR_H2D << 8 | 1));
}

static bool is_fed(const struct tfh_node *loop)
{
	for (uint32_t i = 0; i < loop->n_body; i++)
		if (feeds(&loop->body[i]))
			return true;
	return false;
}

/* The only loop in the body of another, if it contains no further loops; NULL: there is none, or
 * there are several. */
static const struct tfh_node *inner_loop(const struct tfh_node *loop)
{
	const struct tfh_node *inner = NULL;

	for (uint32_t i = 0; i < loop->n_body; i++) {
		const struct tfh_node *v = &loop->body[i];
		if (v->body && (inner || !tfh_node_is_leaf(v)))
			return NULL;
		inner = v->body ? v : inner;
	}
	return inner;
}

static bool launches(const struct tfh_node *v)
{
	return v->kind == TFH_LOOP_EVENT_BURST || v->kind == TFH_LOOP_EVENT_GRAPH;
}

/* Whether the rest of an outer loop's body is one more iteration of its inner loop. It is if one of
 * the two launches kernels and the other the graph made from them: the function is created anew in
 * each iteration of the outer loop, and its first execution is not compiled. If both launch
 * kernels, they do different work, like the two models of a GAN. */
static bool has_odd(const struct tfh_node *outer, const struct tfh_node *inner)
{
	uint32_t n = 0, at = (uint32_t)(inner - outer->body);
	bool graph = false;

	if (!is_fed(inner))
		return false;
	for (uint32_t i = 1; i < outer->n_body && n < inner->n_body; i++) {
		const struct tfh_node *a = &outer->body[(at + i) % outer->n_body];
		const struct tfh_node *b = &inner->body[n++];
		graph |= a->kind != b->kind;
		if (a->kind == b->kind ? a->what != b->what : !launches(a) || !launches(b))
			return false;
	}
	return graph && n == inner->n_body && outer->n_body == n + 1;
}

static void take_leaves(struct units *u, const struct tfh_node *node)
{
	const struct tfh_node *inner = node->n > 1 ? inner_loop(node) : NULL;

	if (inner && inner->launches && has_odd(node, inner))
		u->odd = node;
	else
		u->fed_outside |= node->n > 1 && is_fed(node);
	for (uint32_t i = 0; i < node->n_body; i++) {
		const struct tfh_node *v = &node->body[i];
		if (!tfh_node_is_leaf(v)) {
			take_leaves(u, v);
		} else if (v->launches) {
			u->first = u->first ? u->first : v;
			u->others |= !tfh_nodes_alike(u->first, v);
			u->fed = (u->fed || v == u->first) && is_fed(v);
			take(u, v);
		}
	}
}

/* Whether one of these kernels does, by its name. ops: as in struct tfh_node */
static bool any_updates(const struct tfh_facts *facts, uint64_t ops)
{
	const struct tfh_feed *f = facts->feed;

	for (size_t i = 0; i < facts->kind.n; i++) {
		const struct tfh_token_kind *k = &facts->kind.v[i];
		if (k->family == TFH_FAM_LAUNCH && ops & tfh_op_of(k) &&
		    tfh_name_updates(f->name(f->arg, facts->process, TFT_NAME_FUNCTION, k->what,
					     NULL, NULL)))
			return true;
	}
	return false;
}

/* Whether the event copies a batch to the device as the loop's iterations do, however small. */
static bool feeds_like(const struct tfh_node *v, const struct tfh_node *loop)
{
	bool copy = v->kind == TFH_LOOP_EVENT_COPY && v->what >> 8 == TFH_DIR_H2D;

	for (uint32_t i = 0; copy && i < loop->n_body; i++)
		if (loop->body[i].kind == v->kind && loop->body[i].what == v->what)
			return true;
	return feeds(v);
}

static bool waits(const struct tfh_node *v)
{
	return v->kind == TFH_LOOP_EVENT_WAIT ||
	       (v->kind == TFH_LOOP_EVENT_COPY && v->what >> 8 == TFH_DIR_D2H);
}

static uint32_t fetches(const struct tfh_node *loop)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < loop->n_body; i++)
		n += waits(&loop->body[i]) && loop->body[i].kind == TFH_LOOP_EVENT_COPY;
	return n;
}

/*
 * Whether the rest of an outer loop's body only reports how far the program is: what it launches
 * besides is read at once, before anything else is launched, while an update is not read. Then each
 * inner iteration is a step, if it ends with a wait of its own. The report may be part of an
 * iteration (`whole`) or follow one that takes data of its own; then it reads only numbers, or it
 * would be the result of them all (a picture of many tiles).
 */
static bool reports(const struct tfh_node *outer, const struct tfh_node *inner, bool whole)
{
	uint32_t at = (uint32_t)(inner - outer->body), n = outer->n_body;
	const struct tfh_node *fetch = NULL, *v;

	if (!TFH_DETECT_REPORTS || !waits(&inner->body[inner->n_body - 1]) ||
	    fetches(outer) <= (whole ? fetches(inner) : 0))
		return false;
	for (uint32_t i = 1; i < n && waits(v = &outer->body[(at + n - i) % n]); i++)
		fetch = v->kind == TFH_LOOP_EVENT_COPY ? v : fetch;
	return fetch && (whole || (is_fed(inner) && fetch->what == TFH_DIR_D2H << 8));
}

/*
 * Whether each iteration of a loop is a fixed number of inner iterations followed by an update.
 * There must be fewer inner iterations per outer one than outer ones. The rest launches something
 * that the inner iterations do not, and is at most as large as one of them, by launches or by time.
 * The last inner iteration may be part of the rest, since no wait separates them. If the rest has a
 * batch of its own and is no such iteration, names must show that it updates another model.
 */
static bool accumulates(const struct units *u, const struct tfh_node *loop)
{
	const struct tfh_node *inner = inner_loop(loop);
	uint64_t ops = 0, fed = 0, launches = 0; /* a batch may be copied too: fed once */
	int64_t rest = 0;
	size_t length;
	bool update = false;

	if (!inner || inner->n % loop->n || inner->n > loop->n * loop->n)
		return false;
	for (uint32_t i = 0; i < loop->n_body; i++) {
		const struct tfh_node *v = &loop->body[i];
		if (v == inner)
			continue;
		rest += v->ns;
		ops |= v->ops;
		launches += v->launches;
		fed = feeds_like(v, inner) && v->n > fed ? v->n : fed;
		update |= v->kind == TFH_LOOP_EVENT_FUNCTION &&
			  tfh_name_updates(tfh_function_name(u->facts, v->what, &length));
	}
	bool whole = !(inner->ops & ~ops);
	if (fed > loop->n ||
	    (reports(loop, inner, whole) && !any_updates(u->facts, ops & ~inner->ops)))
		return false;
	update |= (ops & ~inner->ops) &&
		  (!fed || whole || (TFH_DETECT_TURNS && any_updates(u->facts, ops & ~inner->ops)));
	double iterations = (double)loop->n * (fed ? 2 : 1) / (double)inner->n;
	return update && ((double)launches <= iterations * (double)inner->launches ||
			  (double)rest <= iterations * (double)inner->ns);
}

/* The next event of the loop's body from *i on that is not a wait; NULL: there is none. */
static const struct tfh_node *next_work(const struct tfh_node *loop, uint32_t *i)
{
	while (*i < loop->n_body && waits(&loop->body[*i]))
		++*i;
	return *i < loop->n_body ? &loop->body[(*i)++] : NULL;
}

/*
 * Whether an iteration repeats the same work several times, each time fed by a copy, and otherwise
 * only waits. Such an iteration is several steps, the last of which reads the loss. A step of
 * several micro-steps does more at its end.
 */
static bool several_inside(const struct tfh_node *loop)
{
	const struct tfh_node *first = NULL, *a, *b;
	uint32_t n = 0, fed = 0, i = 0, k = 0;

	while ((a = next_work(loop, &i))) {
		n++;
		if (!first && feeds(a))
			first = a;
		fed += first && a->key == first->key;
	}
	if (fed < 2 || n % fed)
		return false;
	for (n /= fed; n; n--)
		next_work(loop, &k);
	for (i = 0; (b = next_work(loop, &k));)
		if ((a = next_work(loop, &i))->key != b->key || a->ops != b->ops)
			return false;
	return true;
}

static void take_accumulated(struct units *u, const struct tfh_node *node)
{
	for (uint32_t i = 0; i < node->n_body; i++) {
		const struct tfh_node *v = &node->body[i];
		if (v->body && accumulates(u, v))
			take(u, v);
		else if (v->body)
			take_accumulated(u, v);
	}
}

static int by_time(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The window whose begin is nearest to t. */
static size_t nearest(const struct tfh_loops *loops, int64_t t, size_t from)
{
	while (from + 1 < loops->window.n &&
	       llabs(loops->window.v[from + 1].t0 - t) <= llabs(loops->window.v[from].t0 - t))
		from++;
	return from;
}

/* Whether a window continues in the next one. */
static bool joins(const struct tfh_window *a, const struct tfh_window *b)
{
	return a->t1 == b->t0 && a->segment == TFH_SEGMENT_TRAIN && b->segment == TFH_SEGMENT_TRAIN;
}

void tfh_join_windows(struct tfh_loops *loops, const int64_t *step, size_t n)
{
	struct tfh_window *w = loops->window.v;
	size_t at = 0, kept = 0, before = 0, begun = 0;
	const size_t parts = n ? (loops->window.n + n / 2) / n : 0;

	for (size_t i = 0; i < loops->window.n; i++) {
		/* The last step may do less after its last part, so the tree does not count it as a
		 * unit. */
		bool begins = TFH_DETECT_LAST_PARTS && at == n && i - begun == parts &&
			      i + parts <= loops->window.n;
		for (; at < n && nearest(loops, step[at], before) == i; at++)
			begins = true;
		begun = begins ? i : begun;
		before = i;
		if (i && !begins && joins(&w[kept - 1], &w[i])) {
			w[kept - 1].t1 = w[i].t1;
			w[kept - 1].cut = w[i].cut;
			w[kept - 1].last = w[i].last;
		} else {
			w[kept++] = w[i];
		}
	}
	loops->micro = (uint32_t)llround((double)loops->window.n / (double)kept);
	loops->window.n = kept;
}

/* The unit must occur at most half as often as there are windows: slightly different numbers are
 * not another unit. Nor is a handful of long iterations, which are epochs. */
static bool fewer(const struct units *u)
{
	bool all = u->accumulates ||
		   (double)u->launches >= (1 - TFH_LOOPS_BESIDES_SHARE) * (double)u->all_launches;

	return all && u->begin.n == u->iterations && 2 * u->iterations <= u->loops->window.n &&
	       u->loops->window.n <= u->iterations * u->iterations;
}

/* Whether there are twice as many iterations as windows, each fed by a copy of its own and none by
 * an enclosing loop: then the period found was that of an event in every n-th iteration. */
static bool more(const struct units *u)
{
	return u->begin.n && u->iterations >= 2 * u->loops->window.n && u->fed && !u->fed_outside;
}

/* Finds the begins of iterations that launch other functions, too: all begin with a copy of the
 * same kind. */
static void take_fed(struct units *u)
{
	const struct tfh_facts *facts = u->facts;
	const struct tfh_token *t = facts->token.v, *end = t + facts->token.n, *first = t;
	uint64_t all = u->iterations + (u->odd ? u->odd->n : 0);

	for (; first < end; first++) {
		const struct tfh_token_kind *k = tfh_kind_of(facts, first);
		if (first->t0 >= u->begin.v[0] && k->family == TFH_FAM_COPY &&
		    k->dir == TFH_DIR_H2D && k->what >= TFH_LOOPS_COPY_BYTES)
			break;
	}
	u->begin.n = 0;
	for (; t < end && first < end && !u->rc; t++)
		if (t->kind == first->kind)
			u->rc = TFH_PUSH(u->begin, t->t0);
	/* One may be cut off by the end of the run. */
	u->iterations = u->begin.n == all || u->begin.n + 1 == all ? u->begin.n : 0;
}

/* Replaces the windows by those that begin at these times, in order; the last one ends at t1. 0 or
 * -ENOMEM. */
static int windows_at(struct tfh_loops *loops, const int64_t *begin, size_t n, int64_t t1)
{
	int rc = 0;

	loops->window.n = 0;
	for (size_t i = 0; i < n && !rc; i++) {
		bool last = i + 1 == n;
		int64_t end = last ? t1 : begin[i + 1];
		rc = TFH_PUSH_BIG(loops->window, ((struct tfh_window){.t0 = begin[i],
								      .t1 = end,
								      .steps = 1,
								      .segment = TFH_SEGMENT_TRAIN,
								      .cut = last,
								      .last = end}));
	}
	return rc;
}

/* The thread that launches everything in a window, -1: there are several, or none. *rough: what it
 * launches. *t: the first token that may be in the window. */
static int only_thread(const struct tfh_facts *facts, const struct tfh_window *w, size_t *t,
		       uint64_t *rough)
{
	int thread = -1;
	bool one = true;

	*rough = 0;
	for (; *t < facts->token.n && facts->token.v[*t].t0 < w->t1; ++*t) {
		const struct tfh_token_kind *k = tfh_kind_of(facts, &facts->token.v[*t]);
		if (!tfh_is_launch(k) || facts->token.v[*t].t0 < w->t0)
			continue;
		one &= thread < 0 || thread == k->thread;
		thread = k->thread;
		*rough += k->rough;
	}
	return one ? thread : -1;
}

/* Whether several threads do the same work side by side, so that each window is a step of one of
 * them. What one of them repeats is then no unit of all windows. */
static bool of_workers(const struct tfh_facts *facts, const struct tfh_loops *loops)
{
	size_t windows[TFH_FACTS_TOKEN_THREADS + 1] = {0}, most = 0, alike = 0, at = 0;
	uint64_t rough, before = 0;

	for (size_t i = 0; i < loops->window.n; tfh_big_pass(++i), before = rough) {
		int thread = only_thread(facts, &loops->window.v[i], &at, &rough);
		if (thread < 0 || (i && rough != before))
			continue;
		size_t n = ++windows[thread];
		most = n > most ? n : most;
		alike++;
	}
	return TFH_DETECT_SIDE_BY_SIDE &&
	       (double)alike >= TFH_CYCLE_SURE_SHARE * (double)loops->window.n &&
	       (double)most < (1 - TFH_LOOPS_BESIDES_SHARE) * (double)alike;
}

int tfh_find_units(const struct tfh_facts *facts, struct tfh_loops *loops,
		   const struct tfh_node *root)
{
	struct units u = {.facts = facts, .loops = loops, .accumulates = true};

	if (!tfh_counts_units(facts, loops) || of_workers(facts, loops))
		return 0;
	take_accumulated(&u, root);
	if (!fewer(&u) && loops->clock == TFH_STEP_CLOCK_PERIOD) {
		free(u.begin.v);
		u = (struct units){.facts = facts, .loops = loops, .all_launches = root->launches};
		take_leaves(&u, root);
		if (u.others || (u.first && several_inside(u.first)))
			u.iterations = 0;
	}
	if (!u.rc && u.begin.n)
		qsort(u.begin.v, u.begin.n, sizeof(*u.begin.v), by_time);
	if (!u.rc && fewer(&u)) {
		tfh_join_windows(loops, u.begin.v, u.begin.n);
	} else if (!u.rc && more(&u)) {
		if (u.odd || u.begin.n != u.iterations)
			take_fed(&u);
		if (!u.rc && u.iterations)
			u.rc = windows_at(loops, u.begin.v, u.begin.n, facts->last_work);
	}
	free(u.begin.v);
	return u.rc;
}
