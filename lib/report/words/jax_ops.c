/* JAX's operations that Python calls one by one, outside of a jitted function. */
#include <string.h>

#include "model/symbols/pylines.h"
#include "report/words/remedy.h"
#include "report/words/words.h"

/* Whether this is JAX's code that traces a function, as at the first call of one that is jitted. */
static bool traces(const struct tfh_seen_node *n)
{
	return strstr(n->file, "/jax/_src/interpreters/partial_eval.py") ||
	       strstr(n->file, "/jax/_src/linear_util.py");
}

/* Of the time at the verdict's line, the share in which Python makes operations one by one. */
static double share(const struct tfh_result *r)
{
	const struct tfh_seen_node *node = r->found.node;
	const struct tfh_seen_line *l = &r->found.line;
	double all = 0, ops = 0;

	for (uint32_t i = 0; l->file && l->function && i < r->found.n_node; i++) {
		bool op = false, traced = false, at = false;
		for (uint32_t k = i;; k = node[k].parent) {
			bool known = node[k].file && node[k].function;
			at |= known && tfh_is_at_line(&node[k], l);
			op |= known && !at && tfh_makes_jax_ops(node[k].file, node[k].function);
			traced |= known && traces(&node[k]);
			if (node[k].parent == k)
				break;
		}
		all += at ? node[i].own_s : 0;
		ops += at && op && !traced ? node[i].own_s : 0;
	}
	return all > 0 ? ops / all : 0;
}

const char *tfh_jax_ops_advice(struct tfh_wording *w)
{
	double ops = w->r->verdict.cause == TFH_CAUSE_HOST_PYTHON ? share(w->r) : 0;

	if (!(ops > TFH_VERDICT_MOST_SHARE))
		return NULL;
	tfh_evidence(w, TFH_TELLS_WHY,
		     tfh_phrase(w, "%.0f %% of the line's time makes JAX's operations one by one",
				100 * ops));
	return TFH_JIT_OPS;
}
