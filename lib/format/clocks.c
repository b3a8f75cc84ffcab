#include "base/bisect.h"
#include "format/clocks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A reading is exact to about 10 ns. A line through two readings 10 ms apart is therefore exact to
 * 1 ppm; one through two readings 3 us apart was off by 0.2 %, 50 us at the end of its block. */
#define CLOSE_NS 10000000

static void thin_out(struct tft_clocks *c)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < c->n; i += 2)
		c->t[kept++] = c->t[i];
	c->n = kept;
}

int tft_clocks_add(struct tft_clocks *c, const void *triples, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (c->n == TFT_CLOCKS_MAX)
			thin_out(c);
		if (c->n == c->cap) {
			uint32_t cap = c->cap ? c->cap * 2 : 64;
			struct tft_clock_triple *grown = realloc(c->t, cap * sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			c->t = grown;
			c->cap = cap;
		}
		memcpy(&c->t[c->n++], (const char *)triples + i * sizeof(*c->t), sizeof(*c->t));
	}
	return 0;
}

static int by_ticks(const void *pa, const void *pb)
{
	const struct tft_clock_triple *a = pa, *b = pb;

	return a->ticks < b->ticks ? -1 : a->ticks > b->ticks;
}

/* Whether the last of n triples is too close to the one before it to give the counter's rate. */
static bool last_is_close(const struct tft_clocks *c, uint32_t n)
{
	return c->t[n - 1].monotonic_ns - c->t[n - 2].monotonic_ns < CLOSE_NS;
}

void tft_clocks_finish(struct tft_clocks *c)
{
	uint32_t kept = 0;

	if (c->n == 0)
		return;
	qsort(c->t, c->n, sizeof(*c->t), by_ticks);
	for (uint32_t i = 0; i < c->n; i++) {
		/* MONOTONIC never decreases: such a triple is damaged. */
		if (kept && (c->t[i].ticks == c->t[kept - 1].ticks ||
			     c->t[i].monotonic_ns < c->t[kept - 1].monotonic_ns))
			continue;
		if (kept > 1 && last_is_close(c, kept))
			kept--;
		c->t[kept++] = c->t[i];
	}
	if (kept > 2 && last_is_close(c, kept))
		kept--;
	c->n = kept;
}

void tft_clocks_free(struct tft_clocks *c)
{
	free(c->t);
	memset(c, 0, sizeof(*c));
}

static uint64_t scale(uint64_t delta, uint64_t num, uint64_t den)
{
	return den ? (uint64_t)((__uint128_t)delta * num / den) : 0;
}

/* Index of the first of the two neighbouring triples used for conversion; times outside use the
 * outermost pair. */
static uint32_t segment_of(const struct tft_clocks *c, uint64_t ticks)
{
	return (uint32_t)TFH_BISECT(i, 1, c->n - 1, c->t[i].ticks <= ticks) - 1;
}

/*
 * Interpolates: `at` at `from`, advancing by `ns` over `length` ticks. `ns` is passed separately,
 * so that a REALTIME clock that was set back in between still gives a line.
 */
static uint64_t on_line(uint64_t ticks, uint64_t from, uint64_t length, uint64_t at, int64_t ns)
{
	int64_t distance = (int64_t)(ticks - from);
	uint64_t far = distance < 0 ? 0 - (uint64_t)distance : (uint64_t)distance;
	uint64_t rise = scale(far, ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns, length);

	return (distance < 0) == (ns < 0) ? at + rise : at - rise;
}

static uint64_t convert(const struct tft_clocks *c, uint64_t ticks, bool realtime)
{
	uint64_t hz = c->tick_hz ? c->tick_hz : 1000000000;

	if (c->n == 0)
		return c->ticks_are_ns ? ticks : scale(ticks, 1000000000, hz);
	if (c->n == 1) {
		uint64_t at = realtime ? c->t[0].realtime_ns : c->t[0].monotonic_ns;
		return on_line(ticks, c->t[0].ticks, c->ticks_are_ns ? 1000000000 : hz, at,
			       1000000000);
	}
	const struct tft_clock_triple *a = &c->t[segment_of(c, ticks)], *b = a + 1;
	if (realtime)
		return on_line(ticks, a->ticks, b->ticks - a->ticks, a->realtime_ns,
			       (int64_t)(b->realtime_ns - a->realtime_ns));
	return on_line(ticks, a->ticks, b->ticks - a->ticks, a->monotonic_ns,
		       (int64_t)(b->monotonic_ns - a->monotonic_ns));
}

uint64_t tft_clocks_monotonic(const struct tft_clocks *c, uint64_t ticks)
{
	return convert(c, ticks, false);
}

uint64_t tft_clocks_realtime(const struct tft_clocks *c, uint64_t ticks)
{
	return convert(c, ticks, true);
}

uint64_t tft_clocks_residual_ns(const struct tft_clocks *c)
{
	uint64_t most = 0;

	for (uint32_t i = 1; i + 1 < c->n; i++) {
		const struct tft_clock_triple *a = &c->t[i - 1], *b = &c->t[i],
					      *next = &c->t[i + 1];
		uint64_t line = on_line(b->ticks, a->ticks, next->ticks - a->ticks, a->monotonic_ns,
					(int64_t)(next->monotonic_ns - a->monotonic_ns));
		uint64_t off =
			b->monotonic_ns > line ? b->monotonic_ns - line : line - b->monotonic_ns;
		most = off > most ? off : most;
	}
	return most;
}
