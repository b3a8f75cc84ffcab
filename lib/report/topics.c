/* Explains how a figure of the report was computed, with this run's figures: the gain, the verdict,
 * the tier, a class or a cause. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "report/text_parts.h"
#include "report/words/remedy.h"

static void line(const struct tfh_page *page, const char *label, const char *text)
{
	tfh_row(page, label, text);
}

/* ---- gain ---- */

/* Whether the bound also assumes that the rest of the step gets faster than it is on average. */
static bool rest_is_faster(const struct tfh_result *r, const struct tfh_whatif *w)
{
	enum tfh_part part = tfh_remove_part(w->remove);
	double left = part == TFH_PART_NONE   ? w->about_s
		      : part < TFH_PART_COUNT ? tfh_step_s(r) - r->breakdown[part].s_per_step
					      : r->breakdown[TFH_PART_COMPUTE].s_per_step;

	return r->steady.tier == 'C' && tfh_least_step(r, w) < 0.99 * left;
}

/* The step without the part, and how far that is certain. */
static const char *then_words(const struct tfh_result *r, const struct tfh_whatif *w,
			      char text[320])
{
	char a[TFH_TEXT], range[TFH_RANGE];

	if (tfh_gain_of(w) == TFH_GAIN_PREDICTED)
		snprintf(text, 320,
			 "%s a step (range %s): recorded steps replayed without the time charged "
			 "to it, and everything else as recorded",
			 tfh_fmt_time(a, w->step_s),
			 isnan(w->low_s) ? TFH_NOT_MEASURED
					 : tfh_fmt_times(range, w->low_s, w->high_s));
	else if (tfh_is_range(r, w))
		snprintf(text, 320,
			 "%s a step: a range, since steps vary too much for a single time",
			 tfh_fmt_times(range, w->low_s, w->high_s));
	else if (w->no_bound)
		snprintf(text, 320, "no estimate: %s", w->no_bound);
	else
		return "not predicted: without device times, or where steps vary too much, there "
		       "is only the bound";
	return text;
}

static void why_whatif(const struct tfh_page *page, const struct tfh_whatif *w)
{
	const struct tfh_result *r = page->r;
	enum tfh_part part = tfh_remove_part(w->remove);
	char text[320], a[TFH_TEXT], b[TFH_TEXT], c[TFH_TEXT], n[TFH_TEXT];

	const struct tfh_place_gain *place = r->line_place ? &r->place[r->line_place - 1] : NULL;
	bool is_place = place && w == &place->gain,
	     is_part = !is_place && part >= 0 && part < TFH_PART_COUNT;

	tfh_heading(page, "WITHOUT %s",
		    is_place		 ? page->words->place[r->line_place - 1]
		    : is_part		 ? tfh_part_words(part)
		    : w == &r->uncrowded ? "waiting for a CPU"
					 : "anything but compute");
	if (is_part || is_place) {
		snprintf(text, sizeof(text), "%s of a step of %s, on average of %s steps",
			 tfh_fmt_time(a,
				      is_place ? place->s_per_step : r->breakdown[part].s_per_step),
			 tfh_fmt_time(b, tfh_step_s(r)), tfh_fmt_count(n, r->steps.count));
		line(page, "now", text);
	}
	line(page, "then", then_words(r, w, text));
	if (!isnan(w->ceiling_speedup)) {
		snprintf(text, sizeof(text), "%s a step, %s: without any of that time, and %s",
			 tfh_fmt_time(a, tfh_least_step(r, w)),
			 tfh_fmt_factor(b, w->ceiling_speedup),
			 rest_is_faster(r, w)
				 ? "with the rest as fast as it may become (fastest steps, warm "
				   "caches)"
				 : "nothing else changed");
		line(page, "at best", text);
	}
	if (w->saved_s > 0) {
		double run_s = (double)tfh_run_wall_ns(r->run) * 1e-9;
		snprintf(text, sizeof(text), "%s -> %s, if all %s steps gain as much",
			 tfh_fmt_time(a, run_s), tfh_fmt_time(c, run_s - w->saved_s),
			 tfh_fmt_count(n, r->steps.total));
		line(page, "run", text);
	}
}

static void why_gain(const struct tfh_page *page)
{
	if (page->r->line_place && !page->r->lead)
		why_whatif(page, &page->r->place[page->r->line_place - 1].gain);
	else if (!page->r->n_whatif)
		tfh_put("nothing was predicted: no part but compute takes enough of a step\n",
			page->out);
	for (uint32_t i = 0; i < page->r->n_whatif; i++)
		why_whatif(page, &page->r->whatif[i]);
	if (page->r->found.contended.share >= TFH_BLOCKING_SHARE &&
	    page->r->uncrowded.ceiling_speedup > 0)
		why_whatif(page, &page->r->uncrowded);
}

/* ---- verdict ---- */

static void why_verdict(const struct tfh_page *page)
{
	tfh_text_verdict(page);
	if (page->r->found.sampled.samples) {
		tfh_text_sampled(page);
		tfh_put("\n", page->out);
		line(page, "class",
		     "the kind of time that takes most of the main thread's, by samples: no call was recorded");
		return;
	}
	tfh_text_breakdown(page);
	tfh_text_classes(page);
	tfh_put("\n", page->out);
	line(page, "class",
	     "the kind of time that blocks most, if it blocks 5 % of a step or more");
}

static void why_tier(const struct tfh_page *page)
{
	static const struct {
		char tier;
		const char *text;
	} tiers[] = {
		{'A',
		 "device times, and which call issued each op: causes by what each idle moment "
		 "waited for"},
		{'B',
		 "device times without the calls that issued the ops: causes by what ran at the "
		 "same time"},
		{'C', "no device times: causes by what the host waited for; gains are bounds"}};

	for (size_t i = 0; i < sizeof(tiers) / sizeof(tiers[0]); i++)
		if (tiers[i].tier == page->r->verdict.tier) {
			char label[8];
			snprintf(label, sizeof(label), "tier %c", tiers[i].tier);
			line(page, label, tiers[i].text);
		}
	tfh_text_data(page);
}

/* ---- a cause ---- */

/* Seconds per step that a cause takes. In compute-bound steps, the verdict's cause stands for all
 * of the computing. */
static double time_of(const struct tfh_result *r, enum tfh_cause cause)
{
	bool all = r->steady.cls == TFH_CLASS_COMPUTE_BOUND && r->steady.cause == cause;

	return all ? r->breakdown[TFH_PART_COMPUTE].s_per_step : r->found.cause_s[cause];
}

static void why_cause(const struct tfh_page *page, enum tfh_cause cause)
{
	const struct tfh_result *r = page->r;
	struct tfh_remedy m = tfh_remedy_in(r, cause);
	double s = time_of(r, cause);
	char text[160], a[TFH_TEXT], b[TFH_TEXT];

	line(page, "is", m.finding);
	snprintf(text, sizeof(text), "%s of a step, %s", tfh_fmt_time(a, s),
		 tfh_fmt_share(b, s / tfh_step_s(r)));
	line(page, "here", s > 0 ? text : "nothing of a step");
	line(page, "do", m.todo);
}

/* ---- the table ---- */

static const struct topic {
	const char *name;
	void (*print)(const struct tfh_page *page);
} topics[] = {{"gain", why_gain},
	      {"verdict", why_verdict},
	      {"class", why_verdict},
	      {"sure", why_tier},
	      {"tier", why_tier}};
#define TOPICS (sizeof(topics) / sizeof(topics[0]))

static enum tfh_cause cause_of(const char *name)
{
	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		if (!strcmp(tfh_cause_name(c), name))
			return (enum tfh_cause)c;
	return TFH_CAUSE_NONE;
}

bool tfh_report_topic(const char *name)
{
	for (size_t i = 0; i < TOPICS; i++)
		if (!strcmp(topics[i].name, name))
			return true;
	return cause_of(name) != TFH_CAUSE_NONE;
}

static void print_topic(const struct tfh_page *page, const void *arg)
{
	const char *name = arg;

	for (size_t i = 0; i < TOPICS; i++)
		if (!strcmp(topics[i].name, name)) {
			topics[i].print(page);
			return;
		}
	why_cause(page, cause_of(name));
}

void tfh_report_why(FILE *out, const struct tfh_wording *words, const struct tfh_style *style,
		    const char *topic)
{
	struct tfh_page page = {.out = out, .words = words, .r = words->r, .style = *style};
	char *text = tfh_in_memory(&page, print_topic, topic);

	if (text)
		tfh_pass_on(&page, text + (*text == '\n'));
	free(text);
}
