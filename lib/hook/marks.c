/*
 * Marks set by the job: the exported functions of include/tfhook/tfhook.h.
 *
 * A step or range does not count as an open call: calls inside have the same depth as without
 * marks. The record is written at the end of the step or range, with the begin time stored here.
 */
#include <string.h>

#include "hook/driver/driver.h"
#include "record/record.h"

#define EXPORT __attribute__((visibility("default")))
#define RANGES 64 /* nesting per thread */
#define NAME_BYTES 255

struct mark {
	uint64_t begin; /* ticks; 0: not begun, or begun while recording was off */
	uint32_t name;
	uint32_t journal;
};

static __thread struct {
	struct mark step; /* between step_begin and step_end */
	struct mark tick; /* since the last tfhook_step */
	uint32_t ranges;  /* open ranges, including those beyond RANGES */
} marks __attribute__((tls_model("initial-exec")));

_Static_assert(RANGES * sizeof(struct mark) <= sizeof(((struct tfh_room *)0)->ranges), "room");

/* The open range at that level; NULL while the thread is not recorded. */
static struct mark *range_at(uint32_t level)
{
	struct tfh_room *room = tfh_self.room;

	return room && level < RANGES ? (struct mark *)room->ranges + level : NULL;
}

static uint64_t steps; /* steps ended so far, in all threads */

EXPORT void tfhook_step_begin(const char *name);
EXPORT void tfhook_step_end(void);
EXPORT void tfhook_step(void);
EXPORT void tfhook_range_push(const char *name);
EXPORT void tfhook_range_pop(void);
EXPORT void tfhook_pause(void);
EXPORT void tfhook_resume(void);
EXPORT int tfhook_flush(unsigned milliseconds);
EXPORT int tfhook_active(void);

/* Notes the time. Uses a range's function number: while recording is off, steps are counted once,
 * at their end. */
static struct mark begin(const char *name)
{
	struct mark mark = {0};
	uint64_t now;
	struct tfh_self *self = tfh_enter(TFH_FN_mark_range, 0, &now);

	if (self) {
		mark.begin = now;
		mark.journal = self->seen.generation;
		if (name)
			mark.name =
				tfh_text_id(self, TFT_NAME_STRING, name, strnlen(name, NAME_BYTES));
		tfh_leave_quiet(self, mark.begin);
	}
	return mark;
}

/* Begin times and name ids of calls kept in memory stay valid when recording starts, but not across
 * a fork. */
static inline bool usable(const struct tfh_self *self, const struct mark *mark)
{
	return mark->begin && (mark->journal ^ self->seen.generation) <= 1;
}

static void end(enum tfh_fn fn, enum tft_kind kind, struct mark *mark, uint64_t number,
		uint8_t depth)
{
	uint64_t now;
	struct tfh_self *self = tfh_enter(fn, number, &now);
	struct tfh_rec *rec;

	if (!self) {
		mark->begin = 0;
		return;
	}
	if (usable(self, mark)) {
		rec = tfh_leave(self, now, fn, kind);
		if (rec) {
			rec->t_begin = mark->begin;
			rec->depth = depth;
			rec->w[0] = kind == TFT_MARK ? number : mark->name;
			rec->w[1] = kind == TFT_MARK ? mark->name : 0;
			tfh_publish(self, 1);
		}
	} else {
		tfh_leave_quiet(self, now);
	}
	mark->begin = 0;
}

void tfhook_step_begin(const char *name)
{
	marks.step = begin(name);
}

void tfhook_step_end(void)
{
	if (marks.step.begin || tfh_mode == TFH_MODE_OFF)
		end(TFH_FN_mark_step, TFT_MARK, &marks.step,
		    __atomic_fetch_add(&steps, 1, __ATOMIC_RELAXED), 0);
}

void tfhook_step(void)
{
	if (marks.tick.begin || tfh_mode == TFH_MODE_OFF)
		end(TFH_FN_mark_step, TFT_MARK, &marks.tick,
		    __atomic_fetch_add(&steps, 1, __ATOMIC_RELAXED), 0);
	marks.tick = begin(NULL);
}

void tfhook_range_push(const char *name)
{
	uint32_t level = marks.ranges++;
	struct mark opened = {0}, *range;

	if (level < RANGES)
		opened = begin(name ? name : "");
	range = range_at(level); /* the first one allocates */
	if (range)
		*range = opened;
}

void tfhook_range_pop(void)
{
	if (!marks.ranges)
		return;
	uint32_t level = --marks.ranges;
	struct mark *range = range_at(level);

	if (range && range->begin)
		end(TFH_FN_mark_range, TFT_RANGE, range, 0, (uint8_t)level);
}

void tfh_range(const char *name, uint64_t begin_ticks)
{
	struct mark range = begin(name);

	if (range.begin) {
		range.begin = begin_ticks;
		end(TFH_FN_mark_range, TFT_RANGE, &range, 0, 0);
	}
}

void tfhook_pause(void)
{
	tfh_pause();
}

void tfhook_resume(void)
{
	tfh_resume();
}

int tfhook_flush(unsigned milliseconds)
{
	return tfh_flush_now(milliseconds);
}

int tfhook_active(void)
{
	return tfh_mode == TFH_MODE_ON;
}
