/*
 * The events of a run: what its main thread does that may come again, in order of time. An event lasts
 * until the next one begins, so that the events tile the time from the first to the last.
 */
#ifndef TFH_JUDGE_LOOP_EVENTS_H
#define TFH_JUDGE_LOOP_EVENTS_H

#include "judge/loops/loops.h"

enum tfh_loop_event {
	TFH_LOOP_EVENT_NONE,  /* several things */
	TFH_LOOP_EVENT_BURST, /* launches in a row */
	TFH_LOOP_EVENT_GRAPH, /* launches of graphs in a row */
	TFH_LOOP_EVENT_COPY,  /* copies in a row; what: direction << 8, + 1 if they carry data */
	TFH_LOOP_EVENT_WAIT,  /* waits in a row */
	TFH_LOOP_EVENT_BATCH, /* a batch; feeds: its group of iterators, from 1 */
	TFH_LOOP_EVENT_END,   /* an iterator has no more */
	TFH_LOOP_EVENT_FUNCTION, /* what: the name; feeds: the group that it takes its batch from, 0: none */
	TFH_LOOP_EVENT_MARK, /* what: 1 if it begins no training */
	TFH_LOOP_EVENT_SAVE, /* a checkpoint is written */
	TFH_LOOP_EVENT_COUNT
};

/* Tells `fn` each event; its error ends it. */
struct tfh_node;
typedef int (*tfh_loop_event_fn)(void *arg, const struct tfh_node *event);
int tfh_loop_events(const struct tfh_facts *facts, const struct tfh_loops *loops,
		    tfh_loop_event_fn fn, void *arg);

#endif
