#include "judge/drawn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void tfh_drawn_init(struct tfh_drawn *d, int64_t from, int64_t to)
{
	memset(d, 0, sizeof(*d));
	d->from = from;
	d->to = to;
	tfh_arena_init(&d->arena, 0);
}

void tfh_drawn_free(struct tfh_drawn *d)
{
	for (size_t i = 0; i < d->track.n; i++)
		free(d->track.v[i].bar.v);
	free(d->track.v);
	tfh_arena_free(&d->arena);
}

/* The shortest visible bar. */
static int64_t shortest(const struct tfh_drawn *d)
{
	return (d->to - d->from) / TFH_DRAWN_BARS + 1;
}

/* NULL: there is no room for another track, or no memory. */
static struct tfh_track *track_of(struct tfh_drawn *d, enum tfh_track_kind kind, uint32_t of,
				  uint32_t row)
{
	for (size_t i = 0; i < d->track.n; i++) {
		struct tfh_track *t = &d->track.v[i];
		if (t->kind == kind && t->of == of && t->row == row)
			return t;
	}
	if (d->track.n >= TFH_DRAWN_TRACKS)
		return NULL;
	struct tfh_track t = {.kind = kind, .of = of, .row = row};
	return TFH_PUSH(d->track, t) ? NULL : &d->track.v[d->track.n - 1];
}

/* Copies a text, because those of the feed do not outlive it; there are few different ones. */
static const char *kept(struct tfh_drawn *d, const struct tfh_track *t, const char *text,
			bool where)
{
	if (!*text)
		return "";
	for (size_t i = t->bar.n, tried = 0; i-- && tried < TFH_DRAWN_ALIKE; tried++) {
		const char *other = where ? t->bar.v[i].where : t->bar.v[i].what;
		if (!strcmp(other, text))
			return other;
	}
	return tfh_arena_strdup(&d->arena, text);
}

/* Whether a bar continues the last one of its track without a visible difference. */
static bool one_with(const struct tfh_drawn *d, const struct tfh_bar *last,
		     const struct tfh_bar *bar)
{
	int64_t least = shortest(d);

	return bar->t0 - last->t1 < least && bar->t1 - bar->t0 < least && last->part == bar->part &&
	       (last->calls > 1 || last->t1 - last->t0 < least);
}

static int draw(struct tfh_drawn *d, struct tfh_track *t, struct tfh_bar bar)
{
	struct tfh_bar *last = t->bar.n ? &t->bar.v[t->bar.n - 1] : NULL;

	bar.t0 = bar.t0 < d->from ? d->from : bar.t0;
	bar.t1 = bar.t1 > d->to ? d->to : bar.t1;
	t->busy_ns += bar.t1 - bar.t0;
	if (last && one_with(d, last, &bar)) {
		last->t0 = bar.t0 < last->t0 ? bar.t0 : last->t0;
		last->t1 = bar.t1 > last->t1 ? bar.t1 : last->t1;
		last->calls += bar.calls;
		if (strcmp(last->what, bar.what) != 0)
			last->what = "";
		last->where = "";
		return 0;
	}
	bar.what = kept(d, t, bar.what, false);
	bar.where = kept(d, t, bar.where, true);
	return bar.what && bar.where ? TFH_PUSH(t->bar, bar) : -ENOMEM;
}

/* "ParallelMapV2" from a stage's trace name "Iterator::Root::ParallelMapV2#parallelism=4#". */
static const char *stage_name(const char *path, char *out, size_t size)
{
	size_t n = strcspn(path, "#"), at = n;

	while (at && path[at - 1] != ':')
		at--;
	snprintf(out, size, "%.*s", (int)(n - at), path + at);
	return out;
}

/* The name shown for a call: that of its stage, op or range, or that of the function. */
static const char *name_of(const struct tfh_feed *f, uint32_t process, const struct tfh_event *ev,
			   char *room, size_t size)
{
	enum tft_name kind = ev->kind == TFT_RANGE		? TFT_NAME_STRING
			     : ev->fn->args == TFH_ARGS_EXECUTE ? TFT_NAME_OP
								: TFT_NAME_STAGE;
	bool stage = ev->kind == TFT_AGG || ev->fn->family == TFH_FAM_STAGE;
	const char *text = "";

	if (ev->kind == TFT_RANGE || ev->fn->args == TFH_ARGS_EXECUTE)
		text = f->name(f->arg, process, kind, (uint32_t)ev->w[0], NULL, NULL);
	else if (stage)
		text = f->name(f->arg, process, kind,
			       ev->kind == TFT_AGG ? ev->stream : (uint32_t)ev->w[1], NULL, NULL);
	if (!text || !*text)
		return ev->fn->name;
	return stage ? stage_name(text, room, size) : text;
}

int tfh_draw_call(struct tfh_drawn *d, const struct tfh_feed *f, uint32_t process,
		  const struct tfh_event *ev)
{
	bool range = ev->kind == TFT_RANGE && ev->w[1] != TFT_RANGE_PYTHON;
	bool agg = ev->kind == TFT_AGG, call = ev->kind == TFT_CALL || ev->kind == TFT_ALLOC;
	char room[256];

	if (!(range || agg || call) || ev->t1 <= d->from || ev->t0 >= d->to ||
	    ev->depth >= TFH_DRAWN_DEPTH)
		return 0;
	bool stage = agg || ev->fn->family == TFH_FAM_STAGE;
	struct tfh_track *t =
		track_of(d, stage ? TFH_TRACK_STAGES : TFH_TRACK_CALLS, ev->thread, ev->depth);
	d->left_out += !t;
	if (!t)
		return 0;
	bool seen = ev->t1 - ev->t0 >= shortest(d);
	struct tfh_bar bar = {
		.t0 = ev->t0,
		.t1 = ev->t1,
		.calls = agg ? ev->ctx : 1,
		.part = TFH_PART_NONE,
		.what = name_of(f, process, ev, room, sizeof(room)),
		.where = seen && ev->stack && f->site ? f->site(f->arg, process, ev->stack) : ""};
	bar.where = bar.where ? bar.where : "";
	return draw(d, t, bar);
}

static const char *op_name(const struct tfh_op *op)
{
	static const char *const copy[] = {"copy",
					   "copy to the device",
					   "copy to the host",
					   "copy within the device",
					   "copy on the host",
					   "copy between devices"};

	if (op->name && *op->name)
		return op->name;
	if (op->kind == TFH_OP_COPY)
		return copy[op->dir < sizeof(copy) / sizeof(copy[0]) ? op->dir : 0];
	return op->kind == TFH_OP_MEMSET ? "memset" : "graph";
}

int tfh_draw_op(struct tfh_drawn *d, const struct tfh_op *op)
{
	if (op->t1 <= d->from || op->t0 >= d->to || op->kind == TFH_OP_SYNC)
		return 0;
	struct tfh_track *t = track_of(d, TFH_TRACK_STREAM, op->device, op->stream);
	d->left_out += !t;
	if (!t)
		return 0;
	return draw(d, t,
		    (struct tfh_bar){.t0 = op->t0,
				     .t1 = op->t1,
				     .calls = 1,
				     .part = op->communication	       ? TFH_PART_COMMUNICATION
					     : op->kind == TFH_OP_COPY ? TFH_PART_TRANSFER
								       : TFH_PART_COMPUTE,
				     .what = op_name(op),
				     .where = ""});
}
