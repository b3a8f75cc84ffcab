/*
 * Folding compares events exactly: an iteration that also writes a log splits its loop, and a last
 * epoch that was cut short remains separate from the others. This pass adds such iterations to
 * their loop. Innermost loops come first; no time is lost or counted twice.
 */
#include <string.h>

#include "judge/loops/loop_events.h"
#include "judge/loops/fold.h"

/* Whether the event names what the program does, unlike launches, copies and waits, which only
 * carry it out. */
static bool is_strong(const struct tfh_node *v)
{
	return !v->body && v->kind >= TFH_LOOP_EVENT_BATCH;
}

/* Whether two events are equal except for the size of a copy: the last batch of an epoch may be
 * smaller. */
static bool like(const struct tfh_node *a, const struct tfh_node *b)
{
	return a->key == b->key || (!a->body && !b->body && a->kind == TFH_LOOP_EVENT_COPY &&
				    b->kind == TFH_LOOP_EVENT_COPY && a->what >> 8 == b->what >> 8);
}

/* The event of the loop's body; NULL: it has none. */
static struct tfh_node *event_of(const struct tfh_node *loop, const struct tfh_node *event)
{
	for (uint32_t i = 0; i < loop->n_body; i++)
		if (like(&loop->body[i], event))
			return &loop->body[i];
	return NULL;
}

static bool has(const struct tfh_node *loop, const struct tfh_node *event)
{
	return event_of(loop, event) != NULL;
}

bool tfh_node_is_leaf(const struct tfh_node *v)
{
	for (uint32_t i = 0; i < v->n_body; i++)
		if (v->body[i].body)
			return false;
	return v->body != NULL;
}

/* The number of n events that also occur in a loop's body. */
static uint32_t in_common(const struct tfh_node *loop, const struct tfh_node *v, uint32_t n)
{
	uint32_t common = 0;

	for (uint32_t i = 0; i < n; i++)
		common += has(loop, &v[i]);
	return common;
}

/* Whether most launched functions are the same: an evaluation has the copies and waits of a
 * training step, but not its backward pass and update. */
static bool launch_alike(const struct tfh_node *a, const struct tfh_node *b)
{
	int both = __builtin_popcountll(a->ops & b->ops),
	    all = __builtin_popcountll(a->ops | b->ops);

	return !a->ops || !b->ops || both >= TFH_LOOPS_ITERATION_SHARE * all;
}

/* Whether two leaf loops have the same steps: the program names them alike, or most events and
 * launches are the same. */
bool tfh_nodes_alike(const struct tfh_node *a, const struct tfh_node *b)
{
	uint32_t strong = 0, same = 0, common;

	if (!tfh_node_is_leaf(a) || !tfh_node_is_leaf(b))
		return a->body && a->key == b->key;
	common = in_common(a, b->body, b->n_body);
	for (uint32_t i = 0; i < b->n_body; i++) {
		strong += is_strong(&b->body[i]);
		same += is_strong(&b->body[i]) && has(a, &b->body[i]);
	}
	for (uint32_t i = 0; i < a->n_body; i++) {
		strong += is_strong(&a->body[i]);
		same += is_strong(&a->body[i]) && has(b, &a->body[i]);
	}
	if (strong)
		return same == strong;
	return common >= TFH_LOOPS_ITERATION_SHARE * (a->n_body + b->n_body - common) &&
	       launch_alike(a, b);
}

/* Adds the time and the launches of v, and the events that the loop also has. */
static void take_in(struct tfh_node *loop, struct tfh_node *v)
{
	tfh_node_add(loop, v);
	for (uint32_t i = 0; i < loop->n_body; i++) {
		struct tfh_node *b = &loop->body[i];
		if (b->key != v->key || b->body)
			continue;
		b->n += v->n;
		b->ns += v->ns;
		break;
	}
	tfh_node_clear(v);
}

static void take_in_loop(struct tfh_node *loop, struct tfh_node *v, bool goes_on)
{
	loop->n += v->n;
	tfh_node_add(loop, v);
	tfh_node_take_begins(loop, v);
	if (!goes_on) {
		loop->runs += v->runs;
		loop->first_ns += v->first_ns;
	}
	for (uint32_t i = 0; i < v->n_body; i++)
		for (uint32_t j = 0; j < loop->n_body; j++)
			if (loop->body[j].key == v->body[i].key) {
				loop->body[j].n += v->body[i].n;
				loop->body[j].ns += v->body[i].ns;
				break;
			}
	tfh_node_clear(v);
}

/* Where the iteration that begins at item `at` ends: before the next iteration, before a loop, and
 * before anything that the program names differently. */
static uint32_t round_end(const struct tfh_node *list, uint32_t at, const struct tfh_node *loop)
{
	uint32_t i = at + 1;

	while (i < list->n_body && !list->body[i].body && !like(&list->body[i], &list->body[at]) &&
	       (!is_strong(&list->body[i]) || has(loop, &list->body[i])))
		i++;
	return i;
}

/* Whether the items from `at` on begin like an iteration of the loop and make up most of one. */
static bool is_round(const struct tfh_node *list, uint32_t at, const struct tfh_node *loop,
		     uint32_t *end)
{
	const struct tfh_node *v = &list->body[at];

	if (v->body || !like(v, &loop->body[0]))
		return false;
	*end = round_end(list, at, loop);
	uint32_t n = *end - at, common = in_common(loop, v, n);
	return is_strong(v) || common >= TFH_LOOPS_ITERATION_SHARE * (n + loop->n_body - common);
}

static double usual(const struct tfh_node *loop)
{
	return (double)loop->ns / (double)loop->n;
}

/* Where the loop continues from item `at` on: at the first item that is not just a launch, copy or
 * wait, if the items before it take no longer than one or two iterations. */
static uint32_t goes_on_at(const struct tfh_node *list, const struct tfh_node *loop, uint32_t at)
{
	double between = 0, iteration = usual(loop);
	uint32_t end;

	while (at < list->n_body && !list->body[at].body && !is_strong(&list->body[at]) &&
	       !is_round(list, at, loop, &end))
		between += (double)list->body[at++].ns;
	if (at < list->n_body && list->body[at].body && usual(&list->body[at]) > iteration)
		iteration = usual(&list->body[at]);
	return between <= TFH_LOOPS_BETWEEN_ITERATIONS * iteration ? at : list->n_body;
}

/* Takes the iterations from item `from` on, and the same loop if it continues after them. Returns
 * the first item that does not belong to the loop. */
static uint32_t take_following(struct tfh_node *list, struct tfh_node *loop, uint32_t from)
{
	for (uint32_t at, end; (at = goes_on_at(list, loop, from)) < list->n_body; from = end) {
		struct tfh_node *next = &list->body[at];
		bool same = next->body && tfh_nodes_alike(loop, next);
		if (!same && !is_round(list, at, loop, &end))
			break;
		end = same ? at + 1 : end;
		if (!same) {
			loop->n += next->n;
			tfh_node_begin(loop, next->t0);
		}
		for (uint32_t k = from; k < end; k++) {
			if (same && k == at)
				take_in_loop(loop, next, true);
			else
				take_in(loop, &list->body[k]);
		}
	}
	return from;
}

/* Takes iterations before loop i that did not fold because they were the first ones. Returns where
 * the loop then begins. */
static uint32_t take_leading(struct tfh_node *list, uint32_t i)
{
	struct tfh_node *loop = &list->body[i];
	uint32_t first = i, end;

	while (first > 0) {
		uint32_t at = first - 1;
		while (at > 0 && !list->body[at].body && !like(&list->body[at], &loop->body[0]))
			at--;
		if (!is_round(list, at, loop, &end) || end != first)
			break;
		loop->t0 = list->body[at].t0;
		tfh_node_begin(loop, loop->t0);
		loop->first_ns = 0;
		loop->n += list->body[at].n;
		for (uint32_t k = at; k < end; k++) {
			loop->first_ns += list->body[k].ns;
			take_in(loop, &list->body[k]);
		}
		first = at;
	}
	return first;
}

/* Adds an item of an iteration that is not whole to the item of the loop's body that it repeats. */
static void take_item(struct tfh_node *loop, struct tfh_node *to, struct tfh_node *item)
{
	tfh_node_add(loop, item);
	if (item->body) {
		take_in_loop(to, item, false);
	} else {
		to->n += item->n;
		tfh_node_add(to, item);
	}
}

static bool is_item(const struct tfh_node *of, const struct tfh_node *item)
{
	return of->key == item->key || tfh_nodes_alike(of, item);
}

/* Items after a loop of loops, from item `from` on, that begin like its body are a last iteration
 * that was cut short. Returns the first item that is not. */
static uint32_t take_partial(struct tfh_node *list, struct tfh_node *loop, uint32_t from)
{
	uint32_t k = 0;
	int64_t t0 = from < list->n_body ? list->body[from].t0 : 0;

	for (; k < loop->n_body && from + k < list->n_body; k++) {
		if (!is_item(&loop->body[k], &list->body[from + k]))
			break;
		take_item(loop, &loop->body[k], &list->body[from + k]);
	}
	loop->n += k > 0;
	if (k)
		tfh_node_begin(loop, t0);
	return from + k;
}

/* Takes a first run that belongs to the first iteration of loop i but differed from the others or
 * began elsewhere. Returns the new index of the loop. */
static uint32_t take_begun(struct tfh_node *list, uint32_t i)
{
	struct tfh_node *loop = &list->body[i];
	uint32_t at = i;

	while (at > 0 && !list->body[at - 1].body && !is_strong(&list->body[at - 1]))
		at--;
	for (uint32_t k = 0; at > 0 && k < loop->n_body; k++) {
		struct tfh_node *begun = &list->body[at - 1];
		if (!tfh_node_is_leaf(begun) || !tfh_nodes_alike(&loop->body[k], begun))
			continue;
		loop->t0 = begun->t0;
		tfh_node_add(loop, begun);
		take_in_loop(&loop->body[k], begun, true);
		memmove(begun, begun + 1, (i - at + 1) * sizeof(*begun));
		return i - 1;
	}
	return i;
}

/* The loop of the body before item `end`; SIZE_MAX: there is none. */
static size_t loop_before(const struct tfh_node *loop, size_t end)
{
	while (end > 0 && !loop->body[end - 1].body)
		end--;
	return end > 0 ? end - 1 : SIZE_MAX;
}

/* Loops before loop i that are like those at the end of its body belong to a first iteration:
 * training before the first round of evaluation and training. Between them are events that the body
 * has, too, in whatever order: an iterator may end before or after what follows. It counts as an
 * iteration if it takes half as long as one: two batches that are evaluated to see whether that
 * works do not. Returns the number of items. */
static uint32_t take_ended(struct tfh_node *list, uint32_t i)
{
	struct tfh_node *loop = &list->body[i];
	uint32_t first = i;
	int64_t usual_ns = loop->ns / (int64_t)loop->n, ns = loop->ns;
	size_t end = loop->n_body;

	for (uint32_t at = i; at > 0; at--) {
		struct tfh_node *item = &list->body[at - 1];
		size_t like = item->body ? loop_before(loop, end) : SIZE_MAX;
		if (item->body ? like == SIZE_MAX || !is_item(&loop->body[like], item)
			       : !has(loop, item))
			break;
		first = item->body ? at - 1 : first;
		end = item->body ? like : end;
	}
	if (first == i)
		return 0;
	loop->t0 = list->body[first].t0;
	end = loop->n_body;
	for (uint32_t at = i; at > first; at--) {
		struct tfh_node *item = &list->body[at - 1];
		end = item->body ? loop_before(loop, end) : end;
		struct tfh_node *to = item->body ? &loop->body[end] : event_of(loop, item);
		to->t0 = item->t0;
		take_item(loop, to, item);
	}
	if (2 * (loop->ns - ns) < usual_ns)
		return i - first;
	tfh_node_begin(loop, loop->t0);
	loop->n++;
	return i - first;
}

/* Replaces a loop that is little more than its inner loop with that one: the rest occurs only now
 * and then. A loop whose rest launches kernels stays, because that may be an update for the inner
 * steps. */
static void unwrap(struct tfh_node *loop)
{
	struct tfh_node *inner = NULL;
	int64_t rest = 0;

	for (uint32_t i = 0; i < loop->n_body; i++) {
		struct tfh_node *v = &loop->body[i];
		if ((v->body && inner) || is_strong(v) || (!v->body && v->launches))
			return;
		if (v->body)
			inner = v;
		else
			rest += v->ns;
	}
	if (!inner || !tfh_node_is_leaf(inner) ||
	    (double)rest > TFH_LOOPS_BESIDES_SHARE * (double)loop->ns)
		return;
	struct tfh_node kept = *inner;
	inner->body = NULL;
	inner->n_body = 0;
	inner->begin = NULL;
	inner->n_begin = inner->room = 0;
	kept.t0 = loop->t0;
	kept.ns = loop->ns;
	kept.launches = loop->launches;
	kept.ops = loop->ops;
	kept.first_ns = kept.first_ns / (int64_t)kept.runs * (int64_t)loop->runs;
	kept.runs = loop->runs;
	tfh_node_clear(loop);
	*loop = kept;
}

/* Goes through a list once; items that are kept move down to the free places before them. */
static void tidy_leaves(struct tfh_node *list)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < list->n_body; kept++) {
		struct tfh_node item = list->body[i++];
		list->body[kept] = item;
		if (!tfh_node_is_leaf(&item))
			continue;
		uint32_t first = take_leading(list, kept);
		item = list->body[kept];
		kept = first;
		list->body[kept] = item;
		i = take_following(list, &list->body[kept], i);
	}
	list->n_body = kept;
}

static void tidy_loops_of_loops(struct tfh_node *list)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < list->n_body; kept++) {
		list->body[kept] = list->body[i++];
		if (!list->body[kept].body || tfh_node_is_leaf(&list->body[kept]))
			continue;
		kept = take_begun(list, kept);
		uint64_t whole = list->body[kept].n;
		uint32_t before = take_ended(list, kept), from = i;
		list->body[kept - before] = list->body[kept];
		kept -= before;
		i = take_partial(list, &list->body[kept], i);
		/* the end of a first iteration and the begin of a last one */
		if (list->body[kept].n == whole + 2 &&
		    before + i - from <= list->body[kept].n_body) {
			list->body[kept].n--;
			list->body[kept].n_begin -= list->body[kept].n_begin > 0;
		}
	}
	list->n_body = kept;
}

void tfh_fold_tidy(struct tfh_node *list)
{
	for (uint32_t i = 0; i < list->n_body; i++)
		if (list->body[i].body) {
			tfh_fold_tidy(&list->body[i]);
			unwrap(&list->body[i]);
		}
	tidy_leaves(list);
	tidy_loops_of_loops(list);
}
