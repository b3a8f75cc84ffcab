/*
 * Waits for a file to be written through to the disk. Much of that time is work of the kernel, or a
 * wait for a processor between two blocks, and a sample then shows the thread running. The line of
 * Python is the same: at a place where samples show a thread waiting for this, those that show it
 * running belong to the same call.
 */
#include <stdlib.h>
#include "judge/facts/sample_groups.h"

bool tfh_writes_through(uint16_t call)
{
	enum {
#define SYSTEM_CALL(name, number, ...) CALL_##name = number,
#include "base/system_calls.def"
	};

	return call == CALL_fsync || call == CALL_fdatasync || call == CALL_sync_file_range ||
	       call == CALL_syncfs || call == CALL_sync || call == CALL_msync;
}

/* What is written through, by place; 0: nothing. NULL: no memory. */
static uint8_t *places(const struct tfh_stack_samples *l)
{
	uint8_t *to = NULL;

	for (size_t i = 0; i < l->sample.n; i++) {
		const struct tfh_stack_sample *k = &l->sample.v[i];
		if (!k->through || !k->place || k->place >= TFH_FACTS_SAMPLE_PLACES)
			continue;
		if (!to && !(to = calloc(TFH_FACTS_SAMPLE_PLACES, 1)))
			return NULL;
		to[k->place] = k->state == TFH_SEEN_LOG ? TFH_ROLE_LOG : TFH_ROLE_SAVE;
	}
	return to;
}

/* Also applies to a line that calls fsync(): only samples of the wait show which file it writes
 * through. */
static bool only_runs(const struct tfh_stack_sample *k)
{
	enum tfh_role role = tfh_at_role(k->at);

	return k->at == TFT_STATE_RUNNING || role == TFH_ROLE_FIRST || role == TFH_ROLE_LATER ||
	       role == TFH_ROLE_SAVE;
}

static void move(struct tfh_stack_samples *l, struct tfh_stack_sample *k, uint8_t at)
{
	for (uint32_t g = k->group; g < TFH_IN_CALL; g = l->group[g].parent) {
		l->group[g].seen[k->at] -= (double)k->ns;
		l->group[g].seen[at] += (double)k->ns;
	}
	k->at = at;
}

void tfh_stack_samples_write_through(struct tfh_stack_samples *l)
{
	uint8_t *to = places(l);

	for (size_t i = 0; to && i < l->sample.n; i++) {
		struct tfh_stack_sample *k = &l->sample.v[i];
		if (k->group < TFH_IN_CALL && k->place < TFH_FACTS_SAMPLE_PLACES && to[k->place] &&
		    only_runs(k))
			move(l, k, (uint8_t)TFH_AT(to[k->place], 0));
	}
	free(to);
}
