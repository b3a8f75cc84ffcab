/*
 * Makes the run's tree agree with the steps where something repeats inside one: layers, logged
 * values, backward passes whose gradients are accumulated fold into a loop as steps do. If the
 * iterations of the enclosing loop are not fewer than the steps, the inner loop is a part of each
 * step.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "judge/loops/loop_events.h"
#include "judge/loops/unit.h"

/* The steps that begin between two times. Without iterators, intervals that evaluate look like
 * those that train, and what repeats in them is no part of a training step. */
static uint64_t steps_in(const struct tfh_loops *loops, int64_t t0, int64_t t1)
{
	uint64_t n = 0;

	TFH_EACH (i, loops->window.n) {
		const struct tfh_window *w = &loops->window.v[i];
		bool step =
			w->segment == TFH_SEGMENT_TRAIN ||
			(w->segment == TFH_SEGMENT_EVAL && loops->clock != TFH_STEP_CLOCK_ITERATOR);
		if (step && w->t0 >= t0 && w->t0 < t1)
			n += w->steps;
	}
	return n;
}

/* Whether a loop goes through the batches of an iterator, or was marked: such loops are steps. */
static bool is_told(const struct tfh_node *loop)
{
	for (uint32_t i = 0; i < loop->n_body; i++) {
		const struct tfh_node *v = &loop->body[i];
		if (v->kind == TFH_LOOP_EVENT_BATCH || v->kind == TFH_LOOP_EVENT_END ||
		    v->kind == TFH_LOOP_EVENT_MARK || v->feeds || (v->body && is_told(v)))
			return true;
	}
	return false;
}

/* Whether a loop has inner loops, and none of them consists of steps. */
static bool has_parts(const struct tfh_node *loop)
{
	bool parts = false;

	for (uint32_t i = 0; i < loop->n_body; i++) {
		const struct tfh_node *v = &loop->body[i];
		if (v->body && is_told(v))
			return false;
		parts |= v->body != NULL;
	}
	return parts;
}

/* Replaces the inner loops of a loop by their events. */
static int open_loop(struct tfh_node *loop)
{
	struct tfh_node *body;
	uint32_t n = 0;

	for (uint32_t i = 0; i < loop->n_body; i++)
		n += loop->body[i].body ? loop->body[i].n_body : 1;
	body = malloc(n * sizeof(*body));
	if (!body)
		return -ENOMEM;
	n = 0;
	for (uint32_t i = 0; i < loop->n_body; i++) {
		struct tfh_node *v = &loop->body[i];
		if (!v->body) {
			body[n++] = *v;
			continue;
		}
		memcpy(&body[n], v->body, v->n_body * sizeof(*body));
		n += v->n_body;
		v->n_body = 0; /* its events have moved */
		tfh_node_clear(v);
	}
	free(loop->body);
	loop->body = body;
	loop->n_body = n;
	return 0;
}

/* `steps`: during the loop of the run's outermost level that contains these. */
static int open_inside(struct tfh_node *node, uint64_t steps)
{
	int rc = 0;

	for (uint32_t i = 0; i < node->n_body && !rc; i++)
		rc = open_inside(&node->body[i], steps);
	while (!rc && node->n > 1 && node->n + node->runs >= steps && has_parts(node))
		rc = open_loop(node);
	return rc;
}

int tfh_open_steps(const struct tfh_loops *loops, struct tfh_node *root)
{
	int rc = 0;

	for (uint32_t i = 0; i < root->n_body && !rc; i++) {
		struct tfh_node *v = &root->body[i];
		uint64_t steps = v->body ? steps_in(loops, v->t0, v->t0 + v->ns) : 0;
		rc = steps ? open_inside(v, steps) : 0;
	}
	return rc;
}
