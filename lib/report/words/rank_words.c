/* Which of the ranks that wait for each other delays the others. */
#include "report/words/words.h"

const char *tfh_least_waiting(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const struct tfh_rank *least = NULL;

	for (uint32_t i = 0; i < r->n_rank; i++)
		if (!least || r->rank[i].jitter_s < least->jitter_s)
			least = &r->rank[i];
	if (!least || r->n_rank < 2)
		return NULL;
	/* The judged rank is the one that is busy itself for longest. If it waits, too,
	 * all are late in turns. */
	if (least->process == r->process || least->cls == TFH_CLASS_NONE ||
	    least->cls == TFH_CLASS_COMMUNICATION_BOUND)
		return "the ranks are late in turns: give them batches of the same size, and do "
		       "what only some steps do (saving, logging) in a thread";
	return tfh_phrase(w, "rank %d waits least, and delays all: its steps are %s, %s",
			  least->rank, tfh_class_name(least->cls), tfh_cause_name(least->cause));
}
