#include "export/proto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"

#define LENGTH 5u /* bytes reserved for the length of an inner message, as a padded varint */

void tfh_proto_free(struct tfh_proto *p)
{
	free(p->v);
	*p = (struct tfh_proto){.v = NULL};
}

static bool room(struct tfh_proto *p, size_t more)
{
	if (p->failed || p->n + more <= p->cap)
		return !p->failed;
	size_t cap = (p->n + more) * 2;
	uint8_t *v = realloc(p->v, cap);
	p->failed = !v;
	if (v) {
		p->v = v;
		p->cap = cap;
	}
	return v;
}

static size_t varint(uint8_t *to, uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		to[n++] = (uint8_t)(v | 0x80);
	to[n++] = (uint8_t)v;
	return n;
}

static void key(struct tfh_proto *p, uint32_t field, unsigned type)
{
	p->n += varint(p->v + p->n, (uint64_t)field << 3 | type);
}

void tfh_proto_uint(struct tfh_proto *p, uint32_t field, uint64_t value)
{
	if (!room(p, 20))
		return;
	key(p, field, 0);
	p->n += varint(p->v + p->n, value);
}

void tfh_proto_fixed64(struct tfh_proto *p, uint32_t field, uint64_t value)
{
	if (!room(p, 20))
		return;
	key(p, field, 1);
	memcpy(p->v + p->n, &value, 8);
	p->n += 8;
}

void tfh_proto_double(struct tfh_proto *p, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, 8);
	tfh_proto_fixed64(p, field, bits);
}

void tfh_proto_text(struct tfh_proto *p, uint32_t field, const char *text)
{
	size_t n = strlen(text), begin;

	if (!room(p, 3 * n + 20))
		return;
	begin = tfh_proto_begin(p, field);
	for (size_t i = 0, step; i < n; i += step) {
		uint32_t c;
		step = tfh_utf8(text + i, n - i, &c);
		memcpy(p->v + p->n, step ? text + i : "\xef\xbf\xbd", step ? step : 3);
		p->n += step ? step : 3;
		step += !step;
	}
	tfh_proto_end(p, begin);
}

size_t tfh_proto_begin(struct tfh_proto *p, uint32_t field)
{
	if (!room(p, 20))
		return 0;
	key(p, field, 2);
	p->n += LENGTH;
	return p->n;
}

void tfh_proto_end(struct tfh_proto *p, size_t begin)
{
	uint8_t length[10];

	if (p->failed)
		return;
	size_t n = varint(length, p->n - begin), gap = LENGTH - n;
	memcpy(p->v + begin - LENGTH, length, n);
	memmove(p->v + begin - gap, p->v + begin, p->n - begin);
	p->n -= gap;
}

int tfh_proto_flush_bytes(struct tfh_proto *p, FILE *out)
{
	size_t n = p->n;

	p->n = 0;
	if (p->failed)
		return -ENOMEM;
	errno = 0;
	return fwrite(p->v, 1, n, out) == n ? 0 : errno ? -errno : -EIO;
}

int tfh_proto_flush_head(uint32_t field, size_t bytes, FILE *out)
{
	uint8_t head[20];
	size_t n = varint(head, (uint64_t)field << 3 | 2);

	n += varint(head + n, bytes);
	errno = 0;
	return fwrite(head, 1, n, out) == n ? 0 : errno ? -errno : -EIO;
}

int tfh_proto_flush(struct tfh_proto *p, uint32_t field, FILE *out)
{
	int rc = tfh_proto_flush_head(field, p->n, out);

	return rc ? rc : tfh_proto_flush_bytes(p, out);
}
