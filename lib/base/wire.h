/*
 * Reads protocol buffers: a sequence of fields, every length checked against the bytes left. Enough
 * for messages with known field numbers; allocates nothing.
 */
#ifndef TFH_BASE_WIRE_H
#define TFH_BASE_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct tfh_wire {
	const uint8_t *p, *end;
	bool bad; /* a length or varint was invalid; the message ends there */
};

struct tfh_field {
	uint32_t number;
	uint64_t value;	       /* varint, fixed32 and fixed64 */
	struct tfh_wire bytes; /* strings and messages; p NULL for others */
};

static inline struct tfh_wire tfh_wire_of(const void *data, size_t n)
{
	return (struct tfh_wire){.p = data, .end = (const uint8_t *)data + n};
}

static inline uint64_t tfh_wire_varint(struct tfh_wire *w)
{
	uint64_t v = 0;

	for (int shift = 0; shift < 70 && w->p < w->end; shift += 7) {
		uint8_t byte = *w->p++;
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	w->bad = true;
	w->p = w->end;
	return 0;
}

/* The next field; false at the end of the message, or if it is invalid. */
static inline bool tfh_wire_next(struct tfh_wire *w, struct tfh_field *f)
{
	uint64_t key, length;

	if (w->p == w->end)
		return false;
	key = tfh_wire_varint(w);
	f->number = (uint32_t)(key >> 3);
	f->value = 0;
	f->bytes = (struct tfh_wire){NULL, NULL, false};
	switch (w->bad ? 7 : key & 7) {
	case 0:
		f->value = tfh_wire_varint(w);
		return !w->bad;
	case 1:
	case 5:
		length = (key & 7) == 1 ? 8 : 4;
		if ((uint64_t)(w->end - w->p) < length)
			break;
		memcpy(&f->value, w->p, length);
		w->p += length;
		return f->number != 0;
	case 2:
		length = tfh_wire_varint(w);
		if (w->bad || length > (uint64_t)(w->end - w->p))
			break;
		f->bytes.p = w->p;
		f->bytes.end = w->p += length;
		return true;
	}
	w->bad = true;
	w->p = w->end;
	return false;
}

#endif
