/*
 * A mutator that knows protocol buffers: it changes fields of an XPlane trace at any depth, and
 * makes the lengths around them right again, so that a change of a stat leaves a trace.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "base/wire.h"

/* Messages of xplane.proto, and which of their fields are messages. */
enum kind { SPACE, PLANE, LINE, EVENT, STAT, ENTRY, METADATA, KINDS, NONE = KINDS };
static const struct {
	enum kind in;
	uint32_t number;
	enum kind is;
} inner[] = {{SPACE, 1, PLANE}, {PLANE, 3, LINE},     {PLANE, 4, ENTRY},
	     {PLANE, 5, ENTRY}, {PLANE, 6, STAT},     {LINE, 4, EVENT},
	     {EVENT, 4, STAT},	{ENTRY, 2, METADATA}, {METADATA, 5, STAT}};

#define MOST 512 /* fields of a message; the rest goes as it is */

struct field {
	const uint8_t *at; /* its key */
	size_t size;	   /* with the key */
	struct tfh_field f;
};

struct out {
	uint8_t *at;
	size_t n, max;
};

static uint64_t draw(uint64_t *seed, uint64_t below)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return below ? (*seed >> 16) % below : 0;
}

static void put(struct out *o, const void *from, size_t n)
{
	if (n > o->max - o->n)
		n = o->max - o->n;
	if (n)
		memcpy(o->at + o->n, from, n);
	o->n += n;
}

static void put_varint(struct out *o, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	for (; v > 127; v >>= 7)
		bytes[n++] = (uint8_t)(v | 128);
	bytes[n++] = (uint8_t)v;
	put(o, bytes, n);
}

static void put_bytes(struct out *o, uint32_t number, const void *from, size_t n)
{
	put_varint(o, (uint64_t)number << 3 | 2);
	put_varint(o, n);
	put(o, from, n);
}

static enum kind kind_of(enum kind in, uint32_t number)
{
	for (size_t i = 0; i < sizeof(inner) / sizeof(*inner); i++)
		if (inner[i].in == in && inner[i].number == number)
			return inner[i].is;
	return NONE;
}

static size_t fields_of(struct tfh_wire *w, struct field *all)
{
	size_t n = 0;

	for (const uint8_t *at = w->p; n < MOST && tfh_wire_next(w, &all[n].f); at = w->p, n++) {
		all[n].at = at;
		all[n].size = (size_t)(w->p - at);
	}
	return n;
}

static uint64_t other_number(uint64_t *seed, uint64_t v)
{
	static const uint64_t odd[] = {
		0,	   1,	       2,	   127,	       128,
		1000,	   1000000000, 1ull << 32, 1ull << 53, 1ull << 62,
		INT64_MAX, 1ull << 63, UINT64_MAX, 123456789,  1700000000000000000};

	switch (draw(seed, 3)) {
	case 0:
		return odd[draw(seed, sizeof(odd) / sizeof(*odd))];
	case 1:
		return v + draw(seed, 64) - 32;
	default:
		return v ^ 1ull << draw(seed, 64);
	}
}

/* A field with another value. */
static void put_changed(struct out *o, const struct field *f, uint64_t *seed)
{
	size_t n, room;
	uint8_t *copy;

	if (!f->f.bytes.p) {
		put_varint(o, (uint64_t)f->f.number << 3);
		put_varint(o, other_number(seed, f->f.value));
		return;
	}
	n = (size_t)(f->f.bytes.end - f->f.bytes.p);
	room = n + 64;
	copy = calloc(1, room);
	if (!copy)
		return;
	if (n)
		memcpy(copy, f->f.bytes.p, n);
	put_bytes(o, f->f.number, copy, LLVMFuzzerMutate(copy, n, room));
	free(copy);
}

static void rewrite(struct out *o, enum kind kind, struct tfh_wire w, uint64_t *seed);

static void put_inner(struct out *o, const struct field *f, enum kind is, uint64_t *seed)
{
	struct out body = {.max = (size_t)(f->f.bytes.end - f->f.bytes.p) + 4096};

	body.at = malloc(body.max);
	if (!body.at)
		return;
	rewrite(&body, is, f->f.bytes, seed);
	put_bytes(o, f->f.number, body.at, body.n);
	free(body.at);
}

/* One field of the message, or of one within it, is changed, repeated, left out, exchanged with
 * another or made. */
static void rewrite(struct out *o, enum kind kind, struct tfh_wire w, uint64_t *seed)
{
	struct field *all = malloc(MOST * sizeof(*all)), *other;
	size_t n = all ? fields_of(&w, all) : 0, chosen = draw(seed, n);
	enum kind is;

	for (size_t i = 0; i < n; i++) {
		if (i != chosen) {
			put(o, all[i].at, all[i].size);
			continue;
		}
		is = all[i].f.bytes.p ? kind_of(kind, all[i].f.number) : NONE;
		if (is != NONE && draw(seed, 4)) {
			put_inner(o, &all[i], is, seed);
			continue;
		}
		other = &all[draw(seed, n)];
		switch (draw(seed, 8)) {
		case 0:
			break;
		case 1:
			put(o, all[i].at, all[i].size);
			put(o, all[i].at, all[i].size);
			break;
		case 2:
			put(o, other->at, other->size);
			break;
		case 3: /* its value under another number */
			put_varint(o, (1 + draw(seed, 12)) << 3);
			put_varint(o, all[i].f.value);
			put(o, all[i].at, all[i].size);
			break;
		default:
			put_changed(o, &all[i], seed);
		}
	}
	put(o, w.p, (size_t)(w.end - w.p));
	free(all);
}

size_t tfh_fuzz_mutate_wire(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
	struct out o = {.at = malloc(max + 1), .max = max};

	if (!o.at || !size || !draw(&state, 16)) {
		free(o.at);
		return LLVMFuzzerMutate(data, size, max);
	}
	rewrite(&o, SPACE, tfh_wire_of(data, size), &state);
	memcpy(data, o.at, o.n);
	free(o.at);
	return o.n;
}
