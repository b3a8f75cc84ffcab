/*
 * Jobs that execute op by op, without a device. If neither batches, functions nor marks show their
 * steps, the ops take the place of launches in the sequence whose period is the step.
 */
#include <errno.h>
#include <string.h>

#include "base/hash.h"

#include "judge/facts/survey.h"

bool tfh_eager_kind(const struct tfh_facts *facts, const struct tfh_event *ev,
		    struct tfh_token_kind *out)
{
	uint32_t name = (uint32_t)ev->w[0];
	const struct tfh_tag *tag = tfh_tag_of(facts, name);

	if (ev->kind != TFT_CALL || ev->fn->family != TFH_FAM_EXECUTE || ev->depth || !name ||
	    !tag || tag->function || tag->getnext)
		return false;
	*out = (struct tfh_token_kind){.family = TFH_FAM_LAUNCH,
				       .thread = tfh_token_thread(ev->thread),
				       .what = name,
				       .hash = tfh_hash_add(TFH_FAM_LAUNCH, name)};
	tfh_kind_complete(out);
	return true;
}

bool tfh_is_single_op(const struct tfh_facts *facts, const struct tfh_event *ev)
{
	const struct tfh_tag *tag = tfh_tag_of(facts, (uint32_t)ev->w[0]);

	return ev->kind == TFT_CALL && ev->w[0] && tag && !tag->function && !tag->getnext &&
	       !tag->pipeline && !tag->iterator;
}

int tfh_eager_event(struct tfh_facts *facts, const struct tfh_event *ev)
{
	struct tfh_token_kind kind;
	uint32_t n;

	if ((facts->token.n && !facts->eager) || facts->batch.n ||
	    !tfh_eager_kind(facts, ev, &kind))
		return 0;
	facts->eager = true;
	if (facts->token.n >= TFH_FACTS_TOKENS) {
		facts->late_launch = true;
		return 0;
	}
	n = tfh_kind_number(facts, &kind);
	return n == UINT32_MAX ? -ENOMEM : tfh_keep_token(facts, ev, n);
}

void tfh_eager_drop(struct tfh_facts *facts)
{
	facts->eager = facts->late_launch = facts->token_mixed = false;
	facts->token.n = 0;
}

void tfh_eager_end(struct tfh_facts *facts)
{
	if (facts->eager && (facts->batch.n || facts->mark.n > 1 || facts->update.n ||
			     facts->exec.n >= TFH_LOOPS_FEWEST_EXECS))
		tfh_eager_drop(facts);
}

static bool loaded(const struct tfh_facts *facts, const char *software)
{
	return tfh_find_software(&facts->feed->processes[facts->process], software);
}

/* A loop that updates its weights by hand is seen by the library alone. */
bool tfh_uses_torch(const struct tfh_facts *facts)
{
	return facts->loader || facts->update.n ||
	       (loaded(facts, "PyTorch") && !loaded(facts, "TensorFlow"));
}

bool tfh_op_by_op(const struct tfh_facts *facts)
{
	return facts->cpu_only && (facts->eager || tfh_uses_torch(facts));
}

bool tfh_executes_graphs(const struct tfh_facts *facts)
{
	uint64_t functions = 0, ops = 0;

	for (size_t i = 0; i < facts->tag.n; i++) {
		const struct tfh_tag *tag = &facts->tag.v[i];
		functions += tag->function ? tag->count : 0;
		ops += tag->function || tag->getnext ? 0 : tag->count;
	}
	return functions && ops < TFH_LOOPS_STEP_LAUNCHES * functions;
}
