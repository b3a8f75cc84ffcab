/*
 * Where the program made the stages of its pipelines. The op that makes a stage (MapDataset) is
 * recorded with the line of the program that asked for it. TensorFlow names a stage after this op
 * and a number that counts all stages of the process (DatasetBase::Initialize: "MapDataset:4"), and
 * fused stages after all of theirs. So stage n is made by the n-th op, unless pipelines made some
 * of the stages before it themselves (flat_map), without an op that is recorded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "judge/facts/survey.h"

#define WORD "Dataset" /* in the names of all such ops */

int tfh_note_made_stage(struct tfh_facts *facts, const struct tfh_event *ev)
{
	const struct tfh_feed *f = facts->feed;

	if (!ev->stack || facts->made.n == TFH_FACTS_MADE)
		return 0;
	const char *op =
		f->name(f->arg, facts->process, TFT_NAME_OP, (uint32_t)ev->w[0], NULL, NULL);
	if (!op || !strstr(op, WORD))
		return 0;
	char *copy = tfh_arena_strndup(facts->arena, op, strlen(op));
	struct tfh_made_stage m = {.op = copy, .stack = ev->stack};
	return !copy || TFH_PUSH(facts->made, m) ? -ENOMEM : 0;
}

void tfh_note_maker(struct tfh_facts *facts, struct tfh_stage_use *s, const char *text)
{
	static const char name[] = "#name=", fused[] = "fused(";
	const char *at = strstr(text, name);
	size_t n;

	if (!at || s->maker)
		return;
	at += sizeof(name) - 1;
	if (tfh_starts_with(at, fused))
		at += sizeof(fused) - 1;
	n = strcspn(at, ":,)#");
	if (at[n] != ':' || !n)
		return;
	s->maker = tfh_arena_strndup(facts->arena, at, n);
	s->number = (uint32_t)strtoul(at + n + 1, NULL, 10);
}

/* How many stages are of the type of the op that made them, if `before` stages had no op. */
static uint32_t agreeing(const struct tfh_facts *facts, uint32_t before)
{
	uint32_t n = 0;

	for (size_t i = 0; i < facts->stage.n && i < TFH_FACTS_NUMBERED; i++) {
		const struct tfh_stage_use *s = &facts->stage.v[i];
		n += s->maker && s->number >= before && s->number - before < facts->made.n &&
		     !strcmp(facts->made.v[s->number - before].op, s->maker);
	}
	return n;
}

uint32_t tfh_stage_stack(const struct tfh_facts *facts, const struct tfh_stage_use *s)
{
	uint32_t most = 0, stack = 0;

	for (size_t i = facts->made.n; s->maker && i-- > 0;) {
		if (i > s->number || strcmp(facts->made.v[i].op, s->maker) != 0)
			continue;
		uint32_t before = s->number - (uint32_t)i, n = agreeing(facts, before);
		/* Only the first stages are certain by themselves. */
		if (n > most && (n > 1 || !before)) {
			most = n;
			stack = facts->made.v[i].stack;
		}
	}
	return stack;
}
