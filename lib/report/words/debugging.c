/* Debugging aids that were left on: PyTorch's detection of anomalies formats the stack of every op
 * of the forward pass, and looks for NaNs in every gradient. No single line shows it, since every
 * line of the model pays. */
#include <string.h>

#include "base/text.h"
#include "report/words/words.h"

static bool formats(const struct tfh_seen_node *node)
{
	return node->file && node->function && !strcmp(node->function, "format_stack") &&
	       tfh_ends_with(node->file, "/traceback.py");
}

void tfh_advise_debugging(struct tfh_wording *w)
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
		   "if detection of anomalies is on (torch.autograd.set_detect_anomaly), switch it "
		   "off: it looks for NaNs in each gradient, too",
		   TFH_REMOVE_NONE);
}
