/* Mistakes that the step's lines and stages do not show, each of which has one known remedy. */
#include <string.h>

#include "base/text.h"
#include "report/words/remedy.h"
#include "report/words/words.h"

/* PyTorch's anomaly detection formats the stack of every op of the forward pass, and looks for
 * NaNs in every gradient. Every line of the model pays for its own ops. */
static bool formats(const struct tfh_seen_node *node)
{
	return node->file && node->function && !strcmp(node->function, "format_stack") &&
	       tfh_ends_with(node->file, "/traceback.py");
}

static void advise_anomalies(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	const struct tfh_seen_node *node = r->found.node;
	double s = 0, step = tfh_step_s(r);
	uint64_t samples = 0;

	for (uint32_t i = 0; r->found.torch && i < r->found.n_node; i++) {
		s += formats(&node[i]) ? node[i].s_per_step : 0;
		samples += formats(&node[i]) ? node[i].samples : 0;
	}
	if (samples < TFH_VERDICT_LINE_SAMPLES || s < TFH_BLOCKING_SHARE * step)
		return;
	const char *why = tfh_phrase(w, "formatting stacks (traceback.format_stack) takes %s of %s",
				     tfh_phrase_time(w, s), tfh_phrase_time(w, step));
	tfh_advise(w, "a stack is formatted for each operation", why,
		   "if anomaly detection is on (torch.autograd.set_detect_anomaly), switch it "
		   "off: it looks for NaNs in each gradient, too",
		   TFH_REMOVE_NONE);
}

/* tf.data says so itself, in a warning that many jobs suppress. */
static void advise_cache(struct tfh_wording *w)
{
	double s = w->r->found.uncached_s;

	if (s > 0 && s >= TFH_BLOCKING_SHARE * tfh_step_s(w->r))
		tfh_advise(w, "cache() keeps nothing: every epoch makes its elements again",
			   tfh_phrase(w, "the stages before it work for %s per step",
				      tfh_phrase_time(w, s)),
			   "read it to its end once: take() before cache(), not after it; one data "
			   "set for all epochs",
			   TFH_REMOVE_NONE);
}

void tfh_explain_new_pool(struct tfh_wording *w)
{
	const struct tfh_seen_line *l = &w->r->found.new_pool;

	if (!l->file)
		return;
	bool process = tfh_starts_process(w->r);
	const char *text = tfh_phrase(
		w,
		"%s again and again: starting and ending it takes %s (sampled, +-%s) of an "
		"average step, at %s",
		process ? "a process is started anew" : "a pool is made anew",
		tfh_phrase_time(w, l->s_per_step), tfh_phrase_error(w, l->off_s),
		tfh_at_words(w, l->function, l->file, l->line));
	tfh_evidence(w, TFH_TELLS_WHY, text);
	if (!tfh_makes_pools(w->r, w->r->steady.cause))
		tfh_advise(w, process ? TFH_PROCESS_ANEW : TFH_POOL_ANEW, text,
			   process ? "start it once, before the loop, and give it its work through "
				     "a queue or pipe"
				   : "make it once, before the loop",
			   TFH_REMOVE_NONE);
}

void tfh_explain_restarts(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;

	if (!r->found.restarts)
		return;
	tfh_evidence(w, TFH_TELLS_WHY, "an iterator is made for the batch of each step");
	for (uint32_t i = 0; i < r->n_input; i++) {
		const struct tfh_input_stage *up = &r->input[i];
		size_t n = strlen(up->prefix);
		for (uint32_t k = 0; strstr(up->name, "Shuffle") && k < r->n_input; k++) {
			const struct tfh_input_stage *from = &r->input[k];
			if (k == i || strncmp(from->prefix, up->prefix, n) != 0 ||
			    strstr(from->prefix + n + 2, "::") ||
			    from->calls_per_step < 2 * up->calls_per_step)
				continue;
			tfh_evidence(w, TFH_TELLS_WHY,
				     tfh_phrase(w,
						"%.0f elements a step go into the buffer of %s, "
						"which %.0f leave",
						from->calls_per_step, tfh_stage_words(w, up->name),
						up->calls_per_step));
			return;
		}
	}
}

void tfh_advise_misuse(struct tfh_wording *w)
{
	uint32_t n = w->n_advice;

	advise_anomalies(w);
	advise_cache(w);
	tfh_explain_new_pool(w);
	w->misuse = w->n_advice > n ? n + 1 : 0;
}
