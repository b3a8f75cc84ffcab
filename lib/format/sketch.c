#include "format/sketch_build.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/hash.h"

void tft_sketch_init(struct tft_sketch_build *b, const struct tfh_fn_info *fn, uint32_t fn_count)
{
	memset(b, 0, sizeof(*b));
	b->fn = fn;
	b->fn_count = fn_count < TFT_SKETCH_FN_SLOTS ? fn_count : TFT_SKETCH_FN_SLOTS;
}

void tft_sketch_reset(struct tft_sketch_build *b)
{
	tft_sketch_init(b, b->fn, b->fn_count);
}

void tft_sketch_thread(struct tft_sketch_build *b, uint32_t thread)
{
	b->thread = thread + 1;
}

static struct tft_sketch_stage *stage_of(struct tft_sketch_build *b, uint32_t stage)
{
	struct tft_sketch *s = &b->sketch;
	uint32_t p = (uint32_t)tfh_hash_u64(stage) % 1024;

	for (; b->stage_at[p]; p = (p + 1) % 1024)
		if (s->stage[b->stage_at[p] - 1].stage == stage)
			return &s->stage[b->stage_at[p] - 1];
	if (s->n_stage == TFT_SKETCH_STAGES)
		return NULL;
	s->stage[s->n_stage].stage = stage;
	b->stage_at[p] = (uint16_t)++s->n_stage;
	return &s->stage[s->n_stage - 1];
}

static void add_stage(struct tft_sketch_build *b, uint32_t stage, uint32_t n, uint64_t total,
		      uint64_t self)
{
	struct tft_sketch_stage *e = stage_of(b, stage);

	if (!e) {
		b->sketch.overflow += n;
		return;
	}
	e->count += n;
	e->total += total;
	e->self += self;
}

static struct tft_sketch_clock *clock_of(struct tft_sketch_build *b, uint16_t fn, uint32_t key)
{
	struct tft_sketch *s = &b->sketch;
	uint32_t p = (uint32_t)tfh_hash_u64((uint64_t)fn << 32 | key) % 256;

	for (; b->clock_at[p]; p = (p + 1) % 256) {
		struct tft_sketch_clock *c = &s->clock[b->clock_at[p] - 1];
		if (c->fn == fn && c->key == key)
			return c;
	}
	if (s->n_clock == TFT_SKETCH_CLOCKS)
		return NULL;
	s->clock[s->n_clock].fn = fn;
	s->clock[s->n_clock].key = key;
	b->clock_at[p] = (uint8_t)++s->n_clock;
	return &s->clock[s->n_clock - 1];
}

static void add_clock(struct tft_sketch_build *b, const struct tfh_rec *r, uint32_t key)
{
	struct tft_sketch_clock *c = clock_of(b, r->fn, key);

	if (!c) {
		b->sketch.overflow++;
		return;
	}
	if (c->count == 0)
		c->t_first = c->t_last = r->t_end;
	if (r->t_end < c->t_first)
		c->t_first = r->t_end;
	if (r->t_end > c->t_last)
		c->t_last = r->t_end;
	c->count++;
	c->ticks += r->t_end - r->t_begin;
	uint32_t *thread = &b->clock_thread[c - b->sketch.clock];
	if (*thread != b->thread)
		c->threads++;
	*thread = b->thread;
}

/* Adds the bandwidth of a copy that returns only when it is complete. */
static void add_copy(struct tft_sketch_build *b, const struct tfh_rec *r, uint8_t dir)
{
	struct tft_sketch *s = &b->sketch;
	uint64_t ticks = r->t_end - r->t_begin;
	uint32_t log = r->w[0] ? 63 - (uint32_t)__builtin_clzll(r->w[0]) : 0;
	uint8_t bin = (uint8_t)(log < 10 ? 0 : log - 10);
	uint32_t i;

	for (i = 0; i < s->n_bin; i++)
		if (s->bin[i].dir == dir && s->bin[i].bin == bin && s->bin[i].fn == r->fn)
			break;
	if (i == TFT_SKETCH_BINS || ticks == 0) {
		s->overflow++;
		return;
	}
	struct tft_sketch_bin *e = &s->bin[i];
	if (i == s->n_bin) {
		s->n_bin++;
		e->dir = dir;
		e->bin = bin;
		e->fn = r->fn;
	}
	double rate = (double)r->w[0] / (double)ticks * 4294967296.0;
	uint64_t q32 = rate < 9e18 ? (uint64_t)rate : (uint64_t)9e18;
	e->count++;
	e->bytes += r->w[0];
	if (q32 > e->best_bytes_per_tick_q32)
		e->best_bytes_per_tick_q32 = q32;
}

static void add_anchor(struct tft_sketch_build *b, const struct tfh_rec *r, uint32_t what,
		       uint64_t bytes)
{
	struct tft_sketch_anchor *a = &b->sketch.anchor[what];

	if (a->count == 0)
		a->t_first = a->t_last = r->t_end;
	if (r->t_end < a->t_first)
		a->t_first = r->t_end;
	if (r->t_end > a->t_last)
		a->t_last = r->t_end;
	a->count++;
	a->ticks += r->t_end - r->t_begin;
	a->bytes += bytes;
}

static void add_call(struct tft_sketch_build *b, const struct tfh_rec *r,
		     const struct tfh_fn_info *fn)
{
	switch (fn->family) {
	case TFH_FAM_LAUNCH:
		b->sketch.launch_hash =
			b->sketch.launch_hash * 0x100000001b3ull + (uint32_t)r->w[0] + 1;
		b->sketch.launches++;
		break;
	case TFH_FAM_GRAPH_LAUNCH:
	case TFH_FAM_CONSUMER:
	case TFH_FAM_REDUCE:
	case TFH_FAM_EXECUTE:
	case TFH_FAM_SESSION:
		add_clock(b, r, (uint32_t)r->w[0]);
		break;
	case TFH_FAM_SYNC:
		add_anchor(b, r, TFT_SKETCH_WAIT, 0);
		break;
	case TFH_FAM_COPY:
		if (fn->args == TFH_ARGS_COPY && fn->dir < TFT_SKETCH_WAIT)
			add_anchor(b, r, fn->dir, r->w[0]);
		if (fn->args == TFH_ARGS_COPY && fn->props & TFH_FN_SYNC_COPY)
			add_copy(b, r, fn->dir);
		break;
	default:
		break;
	}
	if (fn->family == TFH_FAM_STAGE)
		add_stage(b, (uint32_t)r->w[1], 1, r->t_end - r->t_begin, r->w[2]);
}

void tft_sketch_add(struct tft_sketch_build *b, const struct tfh_rec *r)
{
	uint32_t n = 1;
	uint64_t ticks = r->t_end - r->t_begin;

	switch (r->kind) {
	case TFT_AGG:
		n = r->ctx;
		ticks = r->w[0];
		add_stage(b, r->stream, n, ticks, r->w[1]);
		break;
	case TFT_MARK:
		add_clock(b, r, (uint32_t)r->w[1]);
		break;
	case TFT_CALL:
		if (r->fn < b->fn_count)
			add_call(b, r, &b->fn[r->fn]);
		break;
	case TFT_ALLOC:
	case TFT_RANGE:
		break;
	default:
		return;
	}
	if (r->fn < TFT_SKETCH_FN_SLOTS) {
		b->fn_calls[r->fn] += n;
		b->fn_ticks[r->fn] += ticks;
	} else {
		b->sketch.overflow += n;
	}
}

const struct tft_sketch *tft_sketch_done(struct tft_sketch_build *b)
{
	struct tft_sketch *s = &b->sketch;

	for (uint32_t i = 0; i < TFT_SKETCH_FN_SLOTS; i++) {
		if (!b->fn_calls[i])
			continue;
		if (s->n_fn == TFT_SKETCH_FNS) {
			s->overflow += b->fn_calls[i];
			continue;
		}
		s->fn[s->n_fn].fn = (uint16_t)i;
		s->fn[s->n_fn].count = b->fn_calls[i];
		s->fn[s->n_fn++].ticks = b->fn_ticks[i];
	}
	return s;
}

/* ---- packed form: consecutive LEB128 numbers ---- */

static uint8_t *put(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

static uint8_t *pack_anchors(const struct tft_sketch *s, uint8_t *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < TFT_SKETCH_ANCHORS; i++)
		n += s->anchor[i].count != 0;
	p = put(p, n);
	for (uint32_t i = 0; i < TFT_SKETCH_ANCHORS; i++) {
		const struct tft_sketch_anchor *a = &s->anchor[i];
		if (!a->count)
			continue;
		p = put(p, i);
		p = put(p, a->count);
		p = put(p, a->ticks);
		p = put(p, a->bytes);
		p = put(p, a->t_first);
		p = put(p, a->t_last - a->t_first);
	}
	return p;
}

size_t tft_sketch_pack(const struct tft_sketch *s, uint8_t *out)
{
	uint8_t *p = out;

	p = put(p, s->overflow);
	p = put(p, s->launches);
	p = put(p, s->launch_hash);
	p = put(p, s->n_fn);
	for (uint32_t i = 0; i < s->n_fn; i++) {
		p = put(p, s->fn[i].fn);
		p = put(p, s->fn[i].count);
		p = put(p, s->fn[i].ticks);
	}
	p = put(p, s->n_stage);
	for (uint32_t i = 0; i < s->n_stage; i++) {
		p = put(p, s->stage[i].stage);
		p = put(p, s->stage[i].count);
		p = put(p, s->stage[i].total);
		p = put(p, s->stage[i].self);
	}
	p = put(p, s->n_clock);
	for (uint32_t i = 0; i < s->n_clock; i++) {
		const struct tft_sketch_clock *c = &s->clock[i];
		p = put(p, c->fn);
		p = put(p, c->key);
		p = put(p, c->count);
		p = put(p, c->threads);
		p = put(p, c->t_first);
		p = put(p, c->t_last - c->t_first);
		p = put(p, c->ticks);
	}
	p = put(p, s->n_bin);
	for (uint32_t i = 0; i < s->n_bin; i++) {
		p = put(p, s->bin[i].dir);
		p = put(p, s->bin[i].bin);
		p = put(p, s->bin[i].fn);
		p = put(p, s->bin[i].count);
		p = put(p, s->bin[i].bytes);
		p = put(p, s->bin[i].best_bytes_per_tick_q32);
	}
	return (size_t)(pack_anchors(s, p) - out);
}

struct input {
	const uint8_t *p, *end;
	bool bad;
};

static uint64_t get(struct input *in)
{
	uint64_t v = 0;

	for (uint32_t shift = 0; shift < 64 && in->p < in->end; shift += 7) {
		uint8_t b = *in->p++;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
	in->bad = true;
	return 0;
}

/* Reads a number of entries. Each takes at least one byte, so a number larger than the bytes left
 * is invalid. */
static uint32_t get_count(struct input *in, uint32_t cap)
{
	uint64_t n = get(in);

	if (n > cap) {
		in->bad = true;
		return 0;
	}
	return (uint32_t)n;
}

static void unpack_clocks(struct tft_sketch *s, struct input *in)
{
	s->n_clock = get_count(in, TFT_SKETCH_CLOCKS);
	for (uint32_t i = 0; i < s->n_clock; i++) {
		struct tft_sketch_clock *c = &s->clock[i];
		c->fn = (uint16_t)get(in);
		c->key = (uint32_t)get(in);
		c->count = (uint32_t)get(in);
		c->threads = (uint32_t)get(in);
		c->t_first = get(in);
		c->t_last = c->t_first + get(in);
		c->ticks = get(in);
	}
}

static void unpack_bins(struct tft_sketch *s, struct input *in)
{
	s->n_bin = get_count(in, TFT_SKETCH_BINS);
	for (uint32_t i = 0; i < s->n_bin; i++) {
		s->bin[i].dir = (uint8_t)get(in);
		s->bin[i].bin = (uint8_t)get(in);
		s->bin[i].fn = (uint16_t)get(in);
		s->bin[i].count = (uint32_t)get(in);
		s->bin[i].bytes = get(in);
		s->bin[i].best_bytes_per_tick_q32 = get(in);
	}
}

static void unpack_anchors(struct tft_sketch *s, struct input *in)
{
	uint64_t n;

	if (in->p == in->end)
		return;
	s->knows_anchors = 1;
	n = get(in);
	for (; n && !in->bad; n--) {
		struct tft_sketch_anchor a = {0};
		uint64_t what = get(in);
		a.count = (uint32_t)get(in);
		a.ticks = get(in);
		a.bytes = get(in);
		a.t_first = get(in);
		a.t_last = a.t_first + get(in);
		if (what < TFT_SKETCH_ANCHORS)
			s->anchor[what] = a;
	}
}

int tft_sketch_unpack(struct tft_sketch *s, const uint8_t *data, size_t len)
{
	struct input in = {data, data + len, false};

	memset(s, 0, sizeof(*s));
	if (len == 0)
		return 0;
	s->overflow = (uint32_t)get(&in);
	s->launches = get(&in);
	s->launch_hash = get(&in);
	s->n_fn = get_count(&in, TFT_SKETCH_FNS);
	for (uint32_t i = 0; i < s->n_fn; i++) {
		s->fn[i].fn = (uint16_t)get(&in);
		s->fn[i].count = (uint32_t)get(&in);
		s->fn[i].ticks = get(&in);
	}
	s->n_stage = get_count(&in, TFT_SKETCH_STAGES);
	for (uint32_t i = 0; i < s->n_stage; i++) {
		s->stage[i].stage = (uint32_t)get(&in);
		s->stage[i].count = (uint32_t)get(&in);
		s->stage[i].total = get(&in);
		s->stage[i].self = get(&in);
	}
	unpack_clocks(s, &in);
	unpack_bins(s, &in);
	if (!in.bad)
		unpack_anchors(s, &in);
	if (!in.bad)
		return 0;
	memset(s, 0, sizeof(*s));
	return -EBADMSG;
}
