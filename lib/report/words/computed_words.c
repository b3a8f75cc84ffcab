/* What a job computes on a CPU: its parts, and the lines and layers that take most of them. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/words/words.h"

const char *tfh_computes_words(enum tfh_computes part)
{
	static const char *const words[TFH_COMPUTES_COUNT] = {
		[TFH_COMPUTES_BACKWARD] = "backward",	  [TFH_COMPUTES_FORWARD] = "forward",
		[TFH_COMPUTES_UPDATE] = "optimizer",	  [TFH_COMPUTES_FUNCTION] = "tf.function",
		[TFH_COMPUTES_EVALUATION] = "evaluation", [TFH_COMPUTES_OTHER] = "other compute",
	};

	return words[part];
}

bool tfh_computed_in_parts(const struct tfh_result *r)
{
	const struct tfh_computed *c = &r->found.computed;

	return c->part[TFH_COMPUTES_BACKWARD].s_per_step > 0 ||
	       c->part[TFH_COMPUTES_UPDATE].s_per_step > 0;
}

/* Time per step in modules, whether they train or evaluate. */
static double modules_s(const struct tfh_result *r)
{
	return r->found.computed.part[TFH_COMPUTES_FORWARD].s_per_step +
	       r->found.computed.part[TFH_COMPUTES_EVALUATION].s_per_step;
}

/* The layer in which most of the forward passes' time is spent: "Linear" of Linear.forward; NULL:
 * there is none. */
static const char *main_layer(struct tfh_wording *w)
{
	const struct tfh_computed *c = &w->r->found.computed;
	const struct tfh_computed_line *l = &c->layer[0];

	if (!l->function || 2 * l->s_per_step < modules_s(w->r))
		return NULL;
	const char *name = tfh_function_of(w, l->function), *dot = strstr(name, "forward");
	dot = dot ? strchr(name, '.') : NULL;
	return dot ? tfh_phrase(w, "%.*s", (int)(dot - name), name) : name;
}

const char *tfh_computed_shares(struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	bool told[TFH_COMPUTES_COUNT] = {[TFH_COMPUTES_OTHER] = true};
	const char *text = NULL, *layer = main_layer(w);

	while (tfh_computed_in_parts(r)) {
		int most = TFH_COMPUTES_OTHER;
		for (int k = 0; k < TFH_COMPUTES_COUNT; k++)
			if (!told[k] &&
			    (told[most] || r->found.computed.part[k].s_per_step >
						   r->found.computed.part[most].s_per_step))
				most = k;
		double share = r->found.computed.part[most].s_per_step / tfh_step_s(r);
		if (told[most] || share < TFH_BLOCKING_SHARE)
			break;
		told[most] = true;
		bool in = layer && most == TFH_COMPUTES_FORWARD;
		text = tfh_phrase(w, "%s%s%s %.0f %%%s%s%s", text ? text : "", text ? ", " : "",
				  tfh_computes_words((enum tfh_computes)most), 100 * share,
				  in ? " (mostly " : "", in ? layer : "", in ? ")" : "");
	}
	return text ? tfh_phrase(w, "%s of a step", text) : NULL;
}

/* The largest of both lists that is smaller than `below` and worth naming. */
static const struct tfh_computed_line *next_line(const struct tfh_result *r, double below,
						 enum tfh_computes *part)
{
	const struct tfh_computed *c = &r->found.computed;
	const double least = TFH_REPORT_NAMED_SHARE * r->breakdown[TFH_PART_COMPUTE].s_per_step;
	const struct tfh_computed_line *best = NULL;

	for (int i = 0; i < 2 * TFH_COMPUTED_LINES; i++) {
		bool back = i >= TFH_COMPUTED_LINES;
		const struct tfh_computed_line *l =
			back ? &c->backward[i - TFH_COMPUTED_LINES] : &c->forward[i];
		if (!l->file || !(l->s_per_step < below && l->s_per_step >= least) ||
		    (best && l->s_per_step <= best->s_per_step))
			continue;
		best = l;
		*part = back ? TFH_COMPUTES_BACKWARD : TFH_COMPUTES_FORWARD;
	}
	return best;
}

static bool name_lines(struct tfh_wording *w)
{
	enum tfh_computes part;
	double below = INFINITY;
	const struct tfh_computed_line *l;
	const char *text = NULL;

	while ((l = next_line(w->r, below, &part))) {
		text = tfh_phrase(w, "%s%s%s %s:%u, %s", text ? text : "", text ? "; " : "",
				  tfh_computes_words(part), tfh_file_words(w, l->file), l->line,
				  l->samples ? tfh_phrase_error(w, l->s_per_step)
					     : tfh_phrase_time(w, l->s_per_step));
		below = l->s_per_step;
	}
	if (text)
		tfh_evidence(w, TFH_TELLS_LINE, text);
	return text != NULL;
}

/* The layers in which the forward passes spend most of their time. */
static void name_layers(struct tfh_wording *w)
{
	const struct tfh_computed *c = &w->r->found.computed;
	const double all_s = modules_s(w->r);
	const char *line = NULL;

	if (all_s < TFH_REPORT_NAMED_SHARE * w->r->breakdown[TFH_PART_COMPUTE].s_per_step)
		return;
	for (int i = 0; i < TFH_COMPUTED_LINES && c->layer[i].function; i++) {
		const struct tfh_computed_line *l = &c->layer[i];
		double share = l->s_per_step / all_s;
		if (share < TFH_REPORT_NAMED_SHARE)
			break;
		line = line ? tfh_phrase(w, "%s, %.0f %% in %s", line, 100 * share,
					 tfh_function_of(w, l->function))
			    : tfh_phrase(w, "%.0f %% of the forward pass in %s", 100 * share,
					 tfh_function_of(w, l->function));
	}
	if (line)
		tfh_evidence(w, TFH_TELLS_MORE, line);
}

/* Evaluation inside the steps, which nothing else tells apart from them. */
static void name_evaluation(struct tfh_wording *w)
{
	const struct tfh_computed *c = &w->r->found.computed;
	const struct tfh_computed_line *l = &c->evaluate[0];

	if (!l->file || !l->steps)
		return;
	double all_s = l->s_per_step * (double)w->r->steps.count;
	tfh_evidence(w, TFH_TELLS_MORE,
		     tfh_phrase(w, "evaluation in %" PRIu64 " of %" PRIu64 " steps, %s there: %s",
				l->steps, w->r->steps.count,
				tfh_phrase_error(w, all_s / (double)l->steps),
				tfh_at_words(w, l->function, l->file, l->line)));
}

/* What one call executes has neither lines nor ops. */
static bool name_function(struct tfh_wording *w)
{
	const struct tfh_computed *c = &w->r->found.computed;
	double share = c->part[TFH_COMPUTES_FUNCTION].s_per_step /
		       w->r->breakdown[TFH_PART_COMPUTE].s_per_step;

	if (!c->function || share < TFH_REPORT_NAMED_SHARE)
		return false;
	const char *name = tfh_inner_name(c->function);
	tfh_evidence(w, TFH_TELLS_OPS,
		     tfh_phrase(w, "%sin %s%s, whose ops are not recorded",
				share > 1 - TFH_BLOCKING_SHARE
					? ""
					: tfh_phrase(w, "%.0f %% ", 100 * share),
				name == c->function ? "the tf.function " : "", name));
	return true;
}

bool tfh_explain_computed(struct tfh_wording *w, bool placed)
{
	bool told = !placed && (name_lines(w) || name_function(w));

	name_layers(w);
	name_evaluation(w);
	return told;
}
