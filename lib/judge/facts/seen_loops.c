/* Keeps how far the loops of driving threads had come when they were sampled. */
#include "format/sample_loops.h"
#include "judge/facts/survey.h"

/* Keeps every second sample. */
static void thin(struct tfh_facts *facts)
{
	size_t kept = 0, loops = 0, at = 0;

	for (size_t i = 0; i < facts->looped.n; i++) {
		struct tfh_looped_sample s = facts->looped.v[i];
		for (uint32_t k = 0; k < s.n && i % 2 == 0; k++)
			facts->loop.v[loops++] = facts->loop.v[at + k];
		at += s.n;
		if (i % 2 == 0)
			facts->looped.v[kept++] = s;
	}
	facts->looped.n = kept;
	facts->loop.n = loops;
	facts->looped_every *= 2;
}

int tfh_loops_event(struct tfh_facts *facts, const struct tfh_event *ev)
{
	struct tft_loop loop[TFT_LOOPS];
	uint32_t n = ev->loops ? tft_loops_unpack(ev->loops->byte, ev->loops->bytes, loop) : 0;
	struct tfh_looped_sample s = {ev->t1, ev->thread, ev->stack, 0};
	int rc = 0;

	/* A later version may have more kinds. */
	for (uint32_t i = 0; i < n; i++)
		n = loop[i].count < TFH_START_COUNTS ? n : i;
	if (!n || !ev->stack)
		return 0;
	s.n = n;
	facts->looped_every = facts->looped_every ? facts->looped_every : 1;
	if (facts->looped_skip++ % facts->looped_every)
		return 0;
	if (facts->looped.n == TFH_FACTS_LOOPED)
		thin(facts);
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = TFH_PUSH(facts->loop,
			      ((struct tfh_start_loop){.depth = loop[i].depth,
						       .done = loop[i].done,
						       .left = (int64_t)loop[i].left - 1,
						       .count = loop[i].count,
						       .sure = loop[i].sure}));
	return rc ? rc : TFH_PUSH(facts->looped, s);
}
