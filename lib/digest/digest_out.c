#include "digest/digest_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEAP_MOST (16u << 20)

uint32_t tfh_digest_add_text(struct tfh_digest_out *o, const char *text)
{
	uint32_t n = text ? (uint32_t)strnlen(text, TFH_DIGEST_TEXT) : 0, at = o->heap_bytes;

	if (!n)
		return 0;
	at += !at; /* offset 0 is the empty text */
	if (at + n + 1 > o->heap_cap) {
		uint32_t cap = (at + n + 1) * 2;
		char *heap = cap <= HEAP_MOST ? realloc(o->heap, cap) : NULL;
		if (!heap) {
			o->full = true;
			return 0;
		}
		o->heap = heap;
		o->heap_cap = cap;
	}
	o->heap[0] = '\0';
	memcpy(o->heap + at, text, n);
	o->heap[at + n] = '\0';
	o->heap_bytes = at + n + 1;
	return at;
}

int tfh_digest_put(struct tfh_digest_out *o, uint32_t type, const struct tft_table *table,
		   const void *rows, uint32_t n)
{
	const struct tft_table_extra extra = {.heap = o->heap, .heap_bytes = o->heap_bytes};
	size_t cap = tft_table_bound(table, n, &extra);

	if (!n || o->full)
		return o->full ? -ENOMEM : 0;
	if (cap > o->payload_cap) {
		free(o->payload);
		o->payload = malloc(cap);
		o->payload_cap = o->payload ? cap : 0;
	}
	if (!o->payload)
		return -ENOMEM;
	size_t len = tft_table_pack(table, rows, n, &extra, o->payload);
	o->heap_bytes = 0;
	return tft_write_chunk(o->w, type, o->payload, (uint32_t)len);
}

void tfh_digest_out_free(struct tfh_digest_out *o)
{
	free(o->heap);
	free(o->payload);
	free(o->comm);
}
