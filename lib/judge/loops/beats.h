/*
 * The beats of a run: what its main thread does that may come again, in order of time. A beat lasts
 * until the next one begins, so that the beats tile the time from the first to the last.
 */
#ifndef TFH_JUDGE_BEATS_H
#define TFH_JUDGE_BEATS_H

#include "judge/loops/loops.h"

enum tfh_beat {
	TFH_BEAT_NONE,	   /* several things */
	TFH_BEAT_BURST,	   /* launches in a row */
	TFH_BEAT_GRAPH,	   /* launches of graphs in a row */
	TFH_BEAT_COPY,	   /* copies in a row; what: direction << 8, + 1 if they carry data */
	TFH_BEAT_WAIT,	   /* waits in a row */
	TFH_BEAT_BATCH,	   /* a batch; feeds: its group of iterators, from 1 */
	TFH_BEAT_END,	   /* an iterator has no more */
	TFH_BEAT_FUNCTION, /* what: the name; feeds: the group that it takes its batch from, 0: none */
	TFH_BEAT_MARK,	   /* what: 1 if it begins no training */
	TFH_BEAT_SAVE,	   /* a checkpoint is written */
	TFH_BEAT_COUNT
};

/* Tells `fn` each beat; its error ends it. */
struct tfh_node;
typedef int (*tfh_beat_fn)(void *arg, const struct tfh_node *beat);
int tfh_beats(const struct tfh_facts *facts, const struct tfh_loops *loops, tfh_beat_fn fn,
	      void *arg);

#endif
