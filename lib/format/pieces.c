#include "base/bisect.h"
#include "format/pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int tft_pieces_add(struct tft_pieces *s, struct tft_piece p)
{
	if (p.count == 0)
		return 0;
	if (s->n == s->cap) {
		uint32_t cap = s->cap ? s->cap * 2 : 64;
		struct tft_piece *grown = realloc(s->v, cap * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		s->v = grown;
		s->cap = cap;
	}
	s->v[s->n++] = p;
	return 0;
}

void tft_pieces_free(struct tft_pieces *s)
{
	free(s->v);
	memset(s, 0, sizeof(*s));
}

static int by_place(const void *pa, const void *pb)
{
	const struct tft_piece *a = pa, *b = pb;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

/* Drops the first n records of a piece. */
static void advance(struct tft_piece *p, uint64_t n)
{
	p->first += n;
	p->count -= (uint32_t)n;
	if (p->records)
		p->records += n;
}

void tft_pieces_normalise(struct tft_pieces *s)
{
	uint32_t kept = 0;

	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_place);
	for (uint32_t i = 0; i < s->n; i++) {
		struct tft_piece p = s->v[i];
		const struct tft_piece *last = kept ? &s->v[kept - 1] : NULL;
		uint64_t end = last ? last->first + last->count : 0;
		if (last && last->thread == p.thread && p.first < end) {
			if (p.first + p.count <= end)
				continue;
			advance(&p, end - p.first);
		}
		s->v[kept++] = p;
	}
	s->n = kept;
}

/* Index of the first piece that ends after `number` of this thread, or belongs to a later
 * thread. */
static uint32_t find(const struct tft_pieces *s, uint32_t thread, uint64_t number)
{
	const struct tft_piece *v = s->v;

	return (uint32_t)TFH_BISECT(i, 0, s->n,
				    v[i].thread < thread || (v[i].thread == thread &&
							     v[i].first + v[i].count <= number));
}

int tft_pieces_overlap(const struct tft_pieces *s, uint32_t thread, uint64_t first, uint32_t count)
{
	uint32_t i = find(s, thread, first);

	return i < s->n && s->v[i].thread == thread && s->v[i].first < first + count;
}

int tft_pieces_minus(const struct tft_pieces *a, const struct tft_pieces *b, struct tft_pieces *out)
{
	for (uint32_t i = 0; i < a->n; i++) {
		struct tft_piece p = a->v[i];
		for (uint32_t k = find(b, p.thread, p.first); p.count && k < b->n; k++) {
			const struct tft_piece *q = &b->v[k];
			if (q->thread != p.thread || q->first >= p.first + p.count)
				break;
			if (q->first > p.first) {
				struct tft_piece before = p;
				before.count = (uint32_t)(q->first - p.first);
				if (tft_pieces_add(out, before) < 0)
					return -ENOMEM;
			}
			uint64_t end = q->first + q->count;
			advance(&p, end - p.first < p.count ? end - p.first : p.count);
		}
		if (tft_pieces_add(out, p) < 0)
			return -ENOMEM;
	}
	return 0;
}
