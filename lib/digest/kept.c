#include "digest/kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/codec.h"

/* ---- writing ---- */

struct bytes {
	uint8_t *v;
	size_t n, cap;
	bool full; /* out of memory */
};

static void add(struct bytes *b, const void *data, size_t n)
{
	if (b->n + n > b->cap) {
		size_t cap = (b->n + n) * 2;
		uint8_t *v = realloc(b->v, cap);
		if (!v) {
			b->full = true;
			return;
		}
		b->v = v;
		b->cap = cap;
	}
	if (n)
		memcpy(b->v + b->n, data, n);
	b->n += n;
}

static void add_varint(struct bytes *b, uint64_t x)
{
	uint8_t part[10];
	size_t n = 0;

	do {
		part[n] = (uint8_t)(x & 0x7f);
		x >>= 7;
		part[n++] |= x ? 0x80 : 0;
	} while (x);
	add(b, part, n);
}

static void add_bytes(struct bytes *b, uint32_t number, const void *data, size_t n)
{
	add_varint(b, (uint64_t)number << 3 | 2);
	add_varint(b, n);
	add(b, data, n);
}

static uint64_t load(const void *at, uint8_t size)
{
	uint64_t x = 0;

	memcpy(&x, at, size); /* little-endian, as everywhere in the format */
	return x;
}

static int64_t load_signed(const void *at, uint8_t size)
{
	int shift = 64 - 8 * size;

	return (int64_t)(load(at, size) << shift) >> shift;
}

static uint64_t stored(const struct tfh_kept_field *f, const void *at)
{
	if (f->form == TFH_KEPT_SIGNED)
		return tft_zigzag((uint64_t)load_signed(at, f->size));
	if (f->form == TFH_KEPT_MEMBER)
		return (uint64_t)(load_signed(at, f->size) + 1);
	return load(at, f->size);
}

/* A number or a real; several are packed. A member of a vocabulary is written even if it is 0
 * (none). */
static void add_numbers(struct bytes *b, const struct tfh_kept_field *f, const char *at)
{
	struct bytes packed = {.v = NULL};
	bool real = f->form == TFH_KEPT_REAL, any = f->form == TFH_KEPT_MEMBER;

	for (uint32_t i = 0; i < f->count; i++) {
		uint64_t x = stored(f, at + (size_t)i * f->size);
		any |= x != 0;
		if (real)
			add(&packed, &x, f->size);
		else
			add_varint(&packed, x);
	}
	if (any && f->count > 1) {
		add_bytes(b, f->number, packed.v, packed.n);
	} else if (any) {
		add_varint(b, (uint64_t)f->number << 3 | (!real ? 0 : f->size == 8 ? 1 : 5));
		add(b, packed.v, packed.n);
	}
	b->full |= packed.full;
	free(packed.v);
}

static void add_struct(struct bytes *b, const struct tfh_kept_type *type, const char *from);

static void add_structs(struct bytes *b, const struct tfh_kept_field *f, const char *at, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct bytes one = {.v = NULL};
		add_struct(&one, f->of, at + i * f->of->size);
		add_bytes(b, f->number, one.v, one.n);
		b->full |= one.full;
		free(one.v);
	}
}

/* NULL also for a field that is not a pointer. */
static const void *pointer_at(const struct tfh_kept_field *f, const char *at)
{
	const void *to = NULL;

	if (f->form == TFH_KEPT_TEXT || f->form == TFH_KEPT_MAYBE || f->form >= TFH_KEPT_LIST)
		memcpy(&to, at, sizeof(to));
	return to;
}

static void add_field(struct bytes *b, const struct tfh_kept_field *f, const char *from)
{
	const char *at = from + f->offset;
	const void *list = pointer_at(f, at);
	uint32_t n = list ? (uint32_t)load(from + f->count_offset, sizeof(n)) : 0;
	const char *text = list;

	switch (f->form) {
	case TFH_KEPT_TEXT:
	case TFH_KEPT_MAYBE:
		if (text && (*text || f->form == TFH_KEPT_MAYBE))
			add_bytes(b, f->number, text, strlen(text));
		break;
	case TFH_KEPT_STRUCT:
		add_structs(b, f, at, f->count);
		break;
	case TFH_KEPT_LIST:
		add_structs(b, f, list, n);
		break;
	case TFH_KEPT_TEXTS:
		for (uint32_t i = 0; i < n; i++) {
			text = ((const char *const *)list)[i];
			add_bytes(b, f->number, text, strlen(text));
		}
		break;
	case TFH_KEPT_REALS:
		if (n)
			add_bytes(b, f->number, list, n * sizeof(float));
		break;
	default:
		add_numbers(b, f, at);
	}
}

static void add_struct(struct bytes *b, const struct tfh_kept_type *type, const char *from)
{
	for (uint32_t i = 0; i < type->n; i++)
		add_field(b, &type->field[i], from);
}

int tfh_kept_pack(const struct tfh_kept_type *type, const void *from, void **out, size_t *n)
{
	struct bytes b = {.v = NULL};

	add_struct(&b, type, from);
	*out = b.v;
	*n = b.n;
	if (!b.full)
		return 0;
	free(b.v);
	*out = NULL;
	return -ENOMEM;
}

/* ---- reading ---- */

static int read_struct(const struct tfh_kept_type *type, struct tfh_wire w, char *to,
		       struct tfh_arena *arena);

/* Sets a struct to what a message without fields means. */
static void clear(const struct tfh_kept_type *type, char *to)
{
	for (uint32_t i = 0; i < type->n; i++) {
		const struct tfh_kept_field *f = &type->field[i];
		const char *none = "";
		if (f->form == TFH_KEPT_TEXT)
			memcpy(to + f->offset, &none, sizeof(none));
		for (uint32_t k = 0; f->form == TFH_KEPT_STRUCT && k < f->count; k++)
			clear(f->of, to + f->offset + k * f->of->size);
	}
}

static int put_number(const struct tfh_kept_field *f, uint64_t x, char *at)
{
	if (f->form == TFH_KEPT_SIGNED) {
		x = tft_unzigzag(x);
		if (f->size < 8 && (int64_t)x != load_signed(&x, f->size))
			return -EBADMSG;
	} else if (f->form == TFH_KEPT_MEMBER) {
		if (x > f->most || (!x && !f->maybe_none))
			return -EBADMSG;
		x--;
	} else if ((f->most && x > f->most) || (f->size < 8 && x >> 8 * f->size)) {
		return -EBADMSG;
	}
	memcpy(at, &x, f->size);
	return 0;
}

static int read_packed(const struct tfh_kept_field *f, struct tfh_wire w, char *at)
{
	int rc = 0;

	for (uint32_t i = 0; i < f->count && w.p < w.end && !rc; i++) {
		char *to = at + (size_t)i * f->size;
		if (f->form != TFH_KEPT_REAL) {
			rc = put_number(f, tfh_wire_varint(&w), to);
		} else if (w.end - w.p < f->size) {
			rc = -EBADMSG;
		} else {
			memcpy(to, w.p, f->size);
			w.p += f->size;
		}
	}
	return w.bad ? -EBADMSG : rc;
}

static int read_text(struct tfh_arena *arena, struct tfh_wire w, const char **out)
{
	*out = w.p ? tfh_arena_strndup(arena, (const char *)w.p, (size_t)(w.end - w.p)) : NULL;
	return *out ? 0 : w.p ? -ENOMEM : -EBADMSG;
}

static int read_reals(const struct tfh_kept_field *f, struct tfh_wire w, char *to,
		      struct tfh_arena *arena)
{
	uint32_t n = (uint32_t)((size_t)(w.end - w.p) / sizeof(float));
	float *v = tfh_arena_array(arena, n + 1u, sizeof(*v));

	if (!v || n > f->most)
		return v ? -EBADMSG : -ENOMEM;
	memcpy(v, w.p, n * sizeof(*v));
	memcpy(to + f->offset, &v, sizeof(v));
	memcpy(to + f->count_offset, &n, sizeof(n));
	return 0;
}

static uint32_t occurrences(struct tfh_wire w, uint32_t number)
{
	struct tfh_field x;
	uint32_t n = 0;

	while (tfh_wire_next(&w, &x))
		n += x.number == number && x.bytes.p;
	return n;
}

/* Reads a whole list when its first element is found. */
static int read_list(const struct tfh_kept_field *f, struct tfh_wire w, char *to,
		     struct tfh_arena *arena)
{
	bool texts = f->form == TFH_KEPT_TEXTS;
	size_t size = texts ? sizeof(const char *) : f->of->size;
	uint32_t n = occurrences(w, f->number), at = 0;
	char *list = tfh_arena_array(arena, n + 1u, size);
	struct tfh_field x;
	int rc = list ? 0 : -ENOMEM;

	while (!rc && tfh_wire_next(&w, &x)) {
		if (x.number != f->number || !x.bytes.p)
			continue;
		rc = texts ? read_text(arena, x.bytes, (const char **)(void *)list + at)
			   : read_struct(f->of, x.bytes, list + at * size, arena);
		at++;
	}
	memcpy(to + f->offset, &list, sizeof(list));
	memcpy(to + f->count_offset, &n, sizeof(n));
	return rc;
}

/* `seen`: number of structs of this field read so far. */
static int read_field(const struct tfh_kept_field *f, const struct tfh_field *x, struct tfh_wire w,
		      char *to, uint32_t seen, struct tfh_arena *arena)
{
	char *at = to + f->offset;
	const char *text;
	int rc = 0;

	switch (f->form) {
	case TFH_KEPT_TEXT:
	case TFH_KEPT_MAYBE:
		rc = read_text(arena, x->bytes, &text);
		if (!rc)
			memcpy(at, &text, sizeof(text));
		return rc;
	case TFH_KEPT_STRUCT:
		if (!x->bytes.p)
			return -EBADMSG;
		return seen < f->count
			       ? read_struct(f->of, x->bytes, at + seen * f->of->size, arena)
			       : 0;
	case TFH_KEPT_LIST:
	case TFH_KEPT_TEXTS:
		return seen ? 0 : read_list(f, w, to, arena);
	case TFH_KEPT_REALS:
		return x->bytes.p && !seen ? read_reals(f, x->bytes, to, arena) : -EBADMSG;
	default:
		break;
	}
	if (f->count > 1)
		return x->bytes.p ? read_packed(f, x->bytes, at) : -EBADMSG;
	if (f->form != TFH_KEPT_REAL)
		return put_number(f, x->value, at);
	memcpy(at, &x->value, f->size);
	return 0;
}

static int read_struct(const struct tfh_kept_type *type, struct tfh_wire w, char *to,
		       struct tfh_arena *arena)
{
	const struct tfh_wire whole = w;
	struct tfh_field x;
	uint32_t at = 0, seen = 0;

	clear(type, to);
	/* Fields are in the order of the table, and fields of the same number are adjacent. */
	while (tfh_wire_next(&w, &x)) {
		uint32_t before = at;
		while (at < type->n && type->field[at].number < x.number)
			at++;
		seen = at == before ? seen : 0;
		if (at == type->n || type->field[at].number != x.number)
			continue;
		int rc = read_field(&type->field[at], &x, whole, to, seen++, arena);
		if (rc)
			return rc;
	}
	return w.bad ? -EBADMSG : 0;
}

int tfh_kept_unpack(const struct tfh_kept_type *type, const void *data, size_t n, void *to,
		    struct tfh_arena *arena)
{
	return read_struct(type, tfh_wire_of(data, n), to, arena);
}
