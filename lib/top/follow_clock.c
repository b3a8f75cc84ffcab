/* The clock of a followed process: its ticks, from the readings in its journal. */
#include <time.h>

#include "base/clock.h"
#include "top/follow_part.h"

#define CLOCK_NS 1000000000ull /* least time between readings to compute the rate */

double tfh_follow_hz(const struct tfh_follow *f)
{
	const struct tft_journal *j = &f->journal;
	struct tft_clock_triple a = j->start, b = tft_journal_clock(j);
	bool ns = f->has_head ? f->head.ticks_are_ns : j->flags & TFT_JF_TICKS_ARE_NS;
	uint64_t told = j->tick_hz ? j->tick_hz : f->head.tick_hz;

	if (ns)
		return 1e9;
	if (b.monotonic_ns > a.monotonic_ns + CLOCK_NS && b.ticks > a.ticks)
		return (double)(b.ticks - a.ticks) * 1e9 /
		       (double)(b.monotonic_ns - a.monotonic_ns);
	return told && told != UINT64_MAX ? (double)told : 1e9;
}

uint64_t tfh_follow_ns(void)
{
	return (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
}

uint64_t tfh_follow_now(const struct tfh_follow *f)
{
	struct tft_clock_triple c = tft_journal_clock(&f->journal);
	uint64_t now = tfh_follow_ns();

	/* A process that has ended, or runs on another machine, is shown as of its last record. */
	if (!f->view)
		return f->last;
	if (now <= c.monotonic_ns)
		return c.ticks;
	return c.ticks + (uint64_t)((double)(now - c.monotonic_ns) * tfh_follow_hz(f) / 1e9);
}
