/*
 * The events of a run: what its main thread does that may repeat, in order of time. An event lasts
 * until the next one begins, so events tile the time from the first to the last.
 */
#ifndef TFH_JUDGE_LOOPS_LOOP_EVENTS_H
#define TFH_JUDGE_LOOPS_LOOP_EVENTS_H

#include "judge/loops/loops.h"

enum tfh_loop_event {
	TFH_LOOP_EVENT_NONE,  /* several things */
	TFH_LOOP_EVENT_BURST, /* consecutive launches */
	TFH_LOOP_EVENT_GRAPH, /* consecutive launches of graphs */
	TFH_LOOP_EVENT_COPY,  /* consecutive copies; what: direction << 8, + 1 if they carry data */
	TFH_LOOP_EVENT_WAIT,  /* consecutive waits */
	TFH_LOOP_EVENT_BATCH, /* a batch; feeds: its group of iterators, from 1 */
	TFH_LOOP_EVENT_END,   /* an iterator is exhausted */
	TFH_LOOP_EVENT_FUNCTION, /* what: the name; feeds: the group of its batch, 0: none */
	TFH_LOOP_EVENT_MARK,	 /* what: 1 if it does not begin training */
	TFH_LOOP_EVENT_SAVE,	 /* a checkpoint is written */
	TFH_LOOP_EVENT_COUNT
};

/* A launch as a member of tfh_node.ops. */
static inline uint64_t tfh_op_of(const struct tfh_token_kind *k)
{
	return 1ull << (k->hash & 63);
}

/* Calls `fn` for each event; an error of it ends the iteration. */
struct tfh_node;
typedef int (*tfh_loop_event_fn)(void *arg, const struct tfh_node *event);
int tfh_loop_events(const struct tfh_facts *facts, const struct tfh_loops *loops,
		    tfh_loop_event_fn fn, void *arg);

#endif
