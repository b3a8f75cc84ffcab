/*
 * What ran during one step, to be drawn as bars on tracks. A track is a thread's calls of one
 * depth, its stages of the input pipeline, or a stream of a device. Bars too short to be
 * distinguished are merged, so a track has a bounded number of bars however many calls there were.
 */
#ifndef TFH_JUDGE_DRAWN_H
#define TFH_JUDGE_DRAWN_H

#include "base/arena.h"
#include "judge/feed.h"
#include "model/vec.h"

enum tfh_track_kind { TFH_TRACK_CALLS, TFH_TRACK_STAGES, TFH_TRACK_STREAM };

struct tfh_bar {
	int64_t t0, t1;
	uint32_t calls;	   /* number of calls that the bar represents */
	int32_t part;	   /* enum tfh_part of an op; TFH_PART_NONE: a call */
	const char *what;  /* of several calls the first, "" if they differ */
	const char *where; /* the call's place in the program, "" not known */
};

struct tfh_track {
	enum tfh_track_kind kind;
	uint32_t of;  /* thread (index among the run's), or device */
	uint32_t row; /* depth, or stream */
	int64_t busy_ns;
	TFH_VEC(struct tfh_bar) bar; /* in order of their ends */
};

struct tfh_drawn {
	int64_t from, to;  /* the time of the run that is drawn */
	uint32_t left_out; /* bars without a track */
	struct tfh_arena arena;
	TFH_VEC(struct tfh_track) track;
};

void tfh_drawn_init(struct tfh_drawn *d, int64_t from, int64_t to);
void tfh_drawn_free(struct tfh_drawn *d);

/* Adds a call of a process, in order of their ends; an op, in order of their starts. 0 or
 * -ENOMEM. */
int tfh_draw_call(struct tfh_drawn *d, const struct tfh_feed *f, uint32_t process,
		  const struct tfh_event *ev);
int tfh_draw_op(struct tfh_drawn *d, const struct tfh_op *op);

#endif
