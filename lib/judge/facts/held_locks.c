/* The holders of the mutexes that threads waited for, and where the threads asked for them, by
 * samples. */
#include <stdio.h>

#include "format/waits.h"
#include "judge/facts/facts.h"
#include "judge/facts/survey.h"

static struct tfh_held_lock *held_by(struct tfh_facts *facts, uint32_t name)
{
	for (size_t i = 0; i < facts->held.n; i++)
		if (facts->held.v[i].name == name)
			return &facts->held.v[i];
	return NULL;
}

int tfh_lock_event(struct tfh_facts *facts, const struct tfh_event *ev)
{
	struct tfh_held_lock *known, new = {.name = ev->stream};
	unsigned long long caller, begins;
	const char *text;
	int runs;

	if (ev->result != TFT_STATE_LOCK || tft_wait_of(ev->w[1]) != TFT_WAIT_MUTEX || !ev->stream)
		return 0;
	known = held_by(facts, ev->stream);
	if (!known) {
		text = facts->feed->name(facts->feed->arg, facts->process, TFT_NAME_STRING,
					 ev->stream, NULL, NULL);
		if (sscanf(text, "mutex %d %u %llx %llx", &runs, &new.tid, &caller, &begins) != 4)
			return 0;
		new.runs = runs;
		new.caller = caller;
		new.begins = begins;
		if (TFH_PUSH(facts->held, new))
			return -ENOMEM;
		known = &facts->held.v[facts->held.n - 1];
	}
	known->ns += (double)ev->w[2];
	known->samples++;
	return 0;
}
