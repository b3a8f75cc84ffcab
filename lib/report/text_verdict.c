/* The verdict: class, cause, share, and the gain of removing it; in full,
 * and as rows of the first screen. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/print.h"
#include "report/text_parts.h"

static enum tfh_tint class_tint(enum tfh_class cls)
{
	if (cls == TFH_CLASS_COMPUTE_BOUND || cls == TFH_CLASS_BALANCED)
		return TFH_GREEN;
	return cls == TFH_CLASS_UNCLASSIFIED ? TFH_YELLOW : TFH_RED;
}

double tfh_cause_share(const struct tfh_result *r)
{
	const struct tfh_verdict *v = &r->verdict;

	if (r->found.sampled.samples)
		return v->cause == TFH_CAUSE_NONE ? NAN : r->found.sampled.cause[v->cause];
	/* CPU contention affects other parts, too. */
	if (r->lead || v->cause == TFH_CAUSE_NONE || v->cause == TFH_CAUSE_HOST_CONTENTION ||
	    v->cls != TFH_CLASS_HOST_BOUND)
		return NAN;
	double part = r->breakdown[tfh_cause_part(v->cause)].share;
	double cause = tfh_tells_cause(r) ? r->found.cause_s[v->cause] / tfh_step_s(r) : part;
	double share = cause > 0 ? fmin(cause, part) : part;
	return v->share - share < TFH_REPORT_PART_OFF ? NAN : share;
}

void tfh_headline_of(const struct tfh_result *r, struct tfh_headline *h)
{
	const struct tfh_verdict *v = &r->verdict;
	const char *name = tfh_class_name(v->cls), *cause = tfh_cause_name(v->cause);
	bool judged = v->cls != TFH_CLASS_UNCLASSIFIED;
	char share[TFH_TEXT];
	double cause_part = tfh_cause_share(r);
	size_t n = 0;

	*h = (struct tfh_headline){.cause = cause ? cause : ""};
	for (; name[n] && n + 1 < sizeof(h->cls); n++)
		h->cls[n] = (char)toupper((unsigned char)name[n]);
	if (judged)
		snprintf(h->sure, sizeof(h->sure), "(%s)", tfh_confidence_name(v->confidence));
	if (!isnan(v->share) && v->cls != TFH_CLASS_BALANCED && judged)
		snprintf(h->share, sizeof(h->share), "%s of %s",
			 tfh_fmt_share(share, cause_part > 0 ? cause_part : v->share),
			 r->lead ? "the time in and between steps" : tfh_training_words(r));
}

/* "INPUT-BOUND (high)   input.map   41 % of training time" */
static void print_headline(const struct tfh_page *page)
{
	struct tfh_headline h;
	size_t n;

	tfh_headline_of(page->r, &h);
	n = strlen(h.cls) + (*h.sure ? 1 + strlen(h.sure) : 0);
	tfh_put("\n", page->out);
	tfh_tinted(page, class_tint(page->r->verdict.cls), "%s", h.cls);
	tfh_print(page->out, "%s%s", *h.sure ? " " : "", h.sure);
	if (*h.cause)
		tfh_field(page, &n, h.cause);
	if (*h.share)
		tfh_field(page, &n, h.share);
	tfh_put("\n", page->out);
}

static double class_share(const struct tfh_result *r, enum tfh_class cls)
{
	double share = 0;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		share += tfh_part_class(p) == cls ? r->breakdown[p].share : 0;
	return share;
}

/* "transfer-bound, 30 % of training time" */
static void also_line(const struct tfh_result *r, char *out, size_t size)
{
	const struct tfh_verdict *v = &r->verdict;
	char share[TFH_TEXT];
	size_t n = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < v->n_also && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s, %s", i ? "; " : "",
				      tfh_class_name(v->also[i]),
				      tfh_fmt_share(share, class_share(r, v->also[i])));
	if (n && n < size)
		snprintf(out + n, size - n, " of %s", tfh_training_words(r));
}

/* ---- the gain ---- */

/* The what-if that removes the part of the steps that the verdict names. */
static const struct tfh_whatif *whatif_of_part(const struct tfh_result *r)
{
	enum tfh_part blamed = r->verdict.cause == TFH_CAUSE_NONE
				       ? TFH_PART_NONE
				       : tfh_cause_part(r->verdict.cause);

	if (!r->lead && r->verdict.cause == TFH_CAUSE_HOST_CONTENTION)
		return r->uncrowded.ceiling_speedup > 0 ? &r->uncrowded : NULL;
	for (uint32_t i = 0; !r->lead && i < r->n_whatif; i++)
		if (blamed != TFH_PART_NONE && tfh_remove_part(r->whatif[i].remove) == blamed)
			return &r->whatif[i];
	return NULL;
}

/* If the verdict's line is known, the what-if that removes only its place.
 * The time of other places stays, unless the fix is for all of them. */
static const struct tfh_whatif *whatif_of(const struct tfh_result *r)
{
	if (r->found.serves == TFH_SERVES) /* less idle time is no gain */
		return NULL;
	const struct tfh_whatif *place = r->line_place ? &r->place[r->line_place - 1].gain : NULL;

	return place && !r->lead && !tfh_fixes_all(r) && !isnan(place->ceiling_speedup)
		       ? place
		       : whatif_of_part(r);
}

/* Whether the what-if removes more kinds of copies than the one that the verdict names. */
static bool removes_other_copies(const struct tfh_result *r, const struct tfh_whatif *w)
{
	enum tfh_cause cause = r->verdict.cause;

	return w && cause != TFH_CAUSE_NONE && cause != TFH_CAUSE_TRANSFER_SMALL_COPIES &&
	       tfh_remove_part(w->remove) == TFH_PART_TRANSFER && r->found.cause_s[cause] > 0 &&
	       r->breakdown[TFH_PART_TRANSFER].s_per_step - r->found.cause_s[cause] >=
		       TFH_BLOCKING_SHARE * tfh_step_s(r);
}

/* What the gain supposes to be removed, if that is not just what the verdict names: any copies, or
 * the place of its line where removing the whole part would gain more. Otherwise NULL. */
static const char *place_of(const struct tfh_page *page)
{
	const struct tfh_result *r = page->r;
	const struct tfh_whatif *part = whatif_of_part(r), *w = whatif_of(r);

	if (removes_other_copies(r, w))
		return "any copies";
	if (!w || w == part || (part && !(part->low_s < w->low_s)) ||
	    (!part && r->verdict.cls != TFH_CLASS_COMPUTE_BOUND))
		return NULL;
	return r->found.both_s > 0 ? "that work of both" : page->words->place[r->line_place - 1];
}

/* ", which saves 3.12 s of the run" */
static const char *saving(const struct tfh_result *r, const struct tfh_whatif *w,
			  char out[TFH_TEXT + 40])
{
	static const char *const how[] = {[TFH_GAIN_PREDICTED] = "",
					  [TFH_GAIN_ESTIMATED] = "about ",
					  [TFH_GAIN_BOUND] = "at most ",
					  [TFH_GAIN_LEAST] = "at least "};
	char time[TFH_TEXT];
	double wall = r->n_tree ? r->tree[0].wall_s : 0;

	out[0] = '\0';
	if (wall > 0 && w->saved_s >= TFH_REPORT_RUN_SHARE * wall)
		snprintf(out, TFH_TEXT + 40, ", which saves %s%s of the run", how[tfh_gain_of(w)],
			 tfh_fmt_time(time, w->saved_s));
	return out;
}

bool tfh_is_range(const struct tfh_result *r, const struct tfh_whatif *w)
{
	return tfh_gain_of(w) != TFH_GAIN_PREDICTED && w->low_s > 0 && w->high_s < tfh_step_s(r);
}

/* "20.9 -> 2.88 ms", "1.46 s -> 381 ms" */
static const char *change(char out[TFH_RANGE], double from, double to, const char *how)
{
	char a[TFH_TEXT], b[TFH_TEXT];
	const char *a_unit = strchr(tfh_fmt_time(a, from), ' ');
	const char *b_unit = strchr(tfh_fmt_time(b, to), ' ');
	bool same = a_unit && b_unit && !strcmp(a_unit, b_unit);

	snprintf(out, TFH_RANGE, "%.*s -> %s%s", same ? (int)(a_unit - a) : (int)strlen(a), a, how,
		 b);
	return out;
}

/* For a what-if without a bound: about how long the run would take with everything else unchanged,
 * as DO NEXT says it; or that there is no estimate, and why. */
static void put_unbound(const struct tfh_result *r, const struct tfh_whatif *w, char *out,
			size_t size)
{
	const struct tfh_whatif *place =
		r->line_place && !r->lead ? &r->place[r->line_place - 1].gain : NULL;
	char both[TFH_RANGE];
	double wall = tfh_run_s(r);

	if (place && place->about_s > 0)
		w = place;
	double saved = tfh_run_saves(r, w->saved_s);

	if (w->about_s > 0 && wall > saved && saved >= TFH_REPORT_RUN_SHARE * wall)
		snprintf(out, size, "run %s%s; no figure for a step: %s",
			 change(both, wall, wall - saved, tfh_gain_how(w)),
			 tfh_gain_of(w) == TFH_GAIN_LEAST ? " if that work goes" : "", w->no_bound);
	else
		snprintf(out, size, "no estimate: %s", w->no_bound);
}

static void gain_line(const struct tfh_page *page, char *out, size_t size)
{
	const struct tfh_result *r = page->r;
	const struct tfh_whatif *w = whatif_of(r);
	const char *place = place_of(page);
	char step[TFH_TEXT], factor[TFH_TEXT], range[TFH_RANGE], saved[TFH_TEXT + 40];

	out[0] = '\0';
	if (!w)
		return;
	saving(r, w, saved);
	if (w->no_bound) {
		int n = snprintf(out, size, "gain: ");
		put_unbound(r, w, out + n, size - (size_t)n);
	}
	if (tfh_gain_of(w) == TFH_GAIN_PREDICTED)
		snprintf(out, size, "without %s %s per step (%s%s%s faster)%s",
			 place ? place : "it", tfh_fmt_time(step, w->step_s),
			 isnan(w->low_s) ? "" : tfh_fmt_times(range, w->low_s, w->high_s),
			 isnan(w->low_s) ? "" : "; ", tfh_fmt_factor(factor, w->speedup), saved);
	else if (tfh_is_range(r, w))
		snprintf(out, size, "without %s %s per step%s", place ? place : "it",
			 tfh_fmt_times(range, w->low_s, w->high_s), saved);
	else if (!isnan(w->ceiling_speedup))
		snprintf(out, size, "without %s at best %s per step (%s)%s", place ? place : "it",
			 tfh_fmt_time(step, tfh_least_step(r, w)),
			 tfh_fmt_factor(factor, w->ceiling_speedup), saved);
}

void tfh_text_verdict(const struct tfh_page *page)
{
	const struct tfh_wording *w = page->words;
	char gain[256], also[160], share[TFH_TEXT];

	print_headline(page);
	if (w->text && *w->text)
		tfh_wrap(page, "  ", "    ", w->text);
	for (uint32_t i = 0; i < w->n_evidence; i++)
		tfh_wrap(page, "  ", "    ", w->evidence[i]);
	if (tfh_cause_share(page->r) > 0 && !page->r->found.sampled.samples)
		tfh_print(page->out, "  host in all: %s of %s\n",
			  tfh_fmt_share(share, page->r->verdict.share),
			  tfh_training_words(page->r));
	also_line(page->r, also, sizeof(also));
	if (*also)
		tfh_wrap(page, "  also ", "    ", also);
	gain_line(page, gain, sizeof(gain));
	if (*gain)
		tfh_wrap(page, "  ", "    ", gain);
	if (w->missing)
		tfh_wrap(page, "  missing: ", "    ", w->missing);
	if (w->missing_do)
		tfh_wrap(page, "  to get a verdict: ", "    ", w->missing_do);
	for (uint32_t i = 0; i < w->n_remark; i++)
		tfh_wrap(page, "  note: ", "    ", w->remark[i]);
}

/* ---- on the first screen ---- */

/* The step before and after: "20.9 -> 2.88 ms (2.77 to 3.14 ms), 7.24x", "20.9 -> about 2.88 ms (at
 * best 1.2 ms), 7.24x", "20.9 ms -> 2.77 to 6.14 ms", "20.9 -> at best 2.88 ms, 7.24x" */
static void put_step_gain(const struct tfh_result *r, const struct tfh_whatif *w, char *out,
			  size_t size)
{
	enum tfh_gain gain = tfh_gain_of(w);
	bool point = gain == TFH_GAIN_PREDICTED, about = gain == TFH_GAIN_ESTIMATED,
	     between = tfh_is_range(r, w);
	double step = tfh_step_s(r), least = tfh_least_step(r, w);
	double then = point ? w->step_s : about ? w->about_s : least;
	char both[TFH_RANGE], range[TFH_RANGE] = "", part[TFH_RANGE + 16] = "", text[TFH_TEXT];

	if (between || (point && !isnan(w->low_s)))
		tfh_fmt_times(range, w->low_s, w->high_s);
	if (between && (!about || w->high_s > TFH_REPORT_WIDE_TIMES * then)) {
		snprintf(out, size, "%s -> %s", tfh_fmt_time(text, step), range);
		return;
	}
	if (*range)
		snprintf(part, sizeof(part), " (%s)", range);
	else if (about)
		snprintf(part, sizeof(part), " (at best %s)", tfh_fmt_time(text, least));
	snprintf(out, size, "%s%s, %s", change(both, step, then, tfh_gain_how(w)), part,
		 tfh_fmt_factor(text, point   ? w->speedup
				      : about ? step / then
					      : w->ceiling_speedup));
}

/* "step 20.9 -> 2.88 ms (2.77 to 3.14 ms), 7.24x; run 5.17 -> 4.09 s" */
static void gain_row(const struct tfh_page *page, const char *label)
{
	const struct tfh_result *r = page->r;
	const struct tfh_whatif *w = whatif_of(r);
	const char *place = place_of(page);
	char line[320], both[TFH_RANGE], step[3 * TFH_RANGE];
	double wall = tfh_run_s(r);
	size_t n;

	if (w && w->no_bound) {
		put_unbound(r, w, line, sizeof(line));
		tfh_row(page, label, line);
	}
	if (!w || isnan(w->ceiling_speedup))
		return;
	bool maybe = r->found.serves == TFH_SERVES_MAYBE;
	put_step_gain(r, w, step, sizeof(step));
	n = (size_t)snprintf(line, sizeof(line), "%s%s%s%sstep %s",
			     maybe ? "none if it waits for requests; else " : "",
			     place ? "without " : "", place ? place : "", place ? ": " : "", step);
	char run[TFH_RANGE + 8] = "";
	double saved = tfh_run_saves(r, w->saved_s);
	if (wall > saved && saved >= TFH_REPORT_RUN_SHARE * wall && !maybe)
		snprintf(run, sizeof(run), "run %s",
			 change(both, wall, wall - saved, tfh_gain_how(w)));
	/* A change is not broken over two lines. */
	bool fits =
		strlen("  gain     ") + n + strlen("; ") + strlen(run) <= tfh_page_columns(page);
	if (*run && fits)
		snprintf(line + n, sizeof(line) - n, "; %s", run);
	tfh_row(page, label, line);
	if (*run && !fits)
		tfh_row(page, "", run);
}

/* The most that an advice saves of the run; *number: its own in DO NEXT. */
static double most_saved(const struct tfh_page *page, size_t *number)
{
	const struct tfh_advice *order[TFH_REPORT_ADVICE];
	size_t n = tfh_next_order(page->words, order);
	double saved = 0;

	for (size_t i = 0; i < n; i++)
		if (order[i]->saved_s > saved) {
			saved = order[i]->saved_s;
			*number = i + 1;
		}
	return tfh_run_saves(page->r, saved);
}

/* " in the steps", if the run could gain more elsewhere. */
static const char *in_the_steps(const struct tfh_page *page, double most)
{
	size_t number = 0;
	double wall = tfh_run_s(page->r), saved = most_saved(page, &number);

	return saved >= TFH_REPORT_RUN_SHARE * wall && wall > most * (wall - saved)
		       ? " in the steps"
		       : "";
}

/* The gain from removing something else that recurs: all of the time that it blocks. */
static void lead_row(const struct tfh_page *page)
{
	const struct tfh_wording *w = page->words;
	double wall = tfh_run_s(page->r),
	       saved = w->n_advice ? tfh_run_saves(page->r, w->advice[0].saved_s) : NAN;
	const char *why = tfh_lead_no_bound(page->r);
	char line[160], both[TFH_RANGE];

	if (why) {
		snprintf(line, sizeof(line), "no estimate: %s", why);
		tfh_row(page, "gain", line);
	}
	if (page->r->verdict.cls == TFH_CLASS_COMPUTE_BOUND && !*in_the_steps(page, 1))
		tfh_row(page, "gain", "none without cheaper computing");
	if (!(saved > 0) || !(wall > saved))
		return;
	snprintf(line, sizeof(line), "run %s", change(both, wall, wall - saved, "at best "));
	tfh_row(page, "gain", line);
}

/* The factor by which steps that only compute may become faster, at most: without everything else,
 * or without any part that the report itself predicts to gain more. *like_fastest: the same if a
 * processor also computes as fast as in its fastest steps, which nothing in the program
 * promises. */
static double most_of_steps(const struct tfh_result *r, double share, double *like_fastest)
{
	double step = tfh_step_s(r), most = 1 / share, bound = most;

	for (uint32_t i = 0; i < r->n_whatif; i++) {
		const struct tfh_whatif *w = &r->whatif[i];
		most = fmax(most, w->speedup);
		if (w->about_s > 0)
			most = fmax(most, step / w->about_s);
		bound = fmax(bound, w->ceiling_speedup);
	}
	*like_fastest = fmax(most, bound);
	return r->found.cpu_only ? most : *like_fastest;
}

/* Whether an advice is about the start of the run, which takes no longer in a longer run. */
static bool is_start(const struct tfh_result *r, double saved_s)
{
	double seconds[TFH_BRANCH_COUNT];

	tfh_spent_all(r, seconds);
	return saved_s <= fmax(seconds[TFH_BRANCH_BEFORE],
			       fmax(seconds[TFH_BRANCH_STARTUP], seconds[TFH_BRANCH_FIRST]));
}

/* "run 15.5 -> at best 9.00 s, 1.72x (DO NEXT 1); ", if other advice saves more than all the steps
 * take and gains more than they can (`most` is the factor), so that it comes first. Otherwise "",
 * also if it is about the start of a program that runs once. */
static const char *gain_besides(const struct tfh_page *page, double most, char *out, size_t size)
{
	const struct tfh_result *r = page->r;
	uint32_t times = 1 + r->found.alike;
	size_t number = 0;
	double wall = tfh_run_s(r), saved = most_saved(page, &number);
	char both[TFH_RANGE], factor[TFH_TEXT];

	*out = '\0';
	if (wall > saved && saved > times * r->steps.total_s && wall > most * (wall - saved) &&
	    (times > 1 || !is_start(r, saved)))
		snprintf(out, size, "run %s, %s (DO NEXT %zu); ",
			 change(both, wall, wall - saved, "at best "),
			 tfh_fmt_factor(factor, wall / (wall - saved)), number);
	return out;
}

/* "; DO NEXT 1 makes it cheaper", if there is such an advice. */
static const char *cheaper(const struct tfh_page *page, char *out, size_t size)
{
	const struct tfh_wording *w = page->words;
	const struct tfh_advice *order[TFH_REPORT_ADVICE];
	size_t n = w->misuse ? tfh_next_order(w, order) : 0;

	*out = '\0';
	for (size_t i = 0; i < n; i++)
		if (order[i] == &w->advice[w->misuse - 1])
			snprintf(out, size, "; DO NEXT %zu makes it cheaper", i + 1);
	return out;
}

/* What would be gained if all steps were as fast as the fastest. On a crowded machine the others
 * are slow because they wait for a CPU, so it is what CPUs of the job's own would gain. */
static void like_the_fastest(const struct tfh_result *r, double most, double fastest, char *out,
			     size_t size)
{
	double waits = r->found.contended.share, own = 1 / (1 - waits);
	char factor[TFH_TEXT];

	*out = '\0';
	if (!(fastest > most * (1 + TFH_PREDICT_WORTH_SHARE)))
		return;
	if (waits < TFH_CROWDED_SHARE && !r->quality.crowded)
		snprintf(out, size, " (%s if all steps were like the fastest)",
			 tfh_fmt_factor(factor, fastest));
	else if (waits < 1 && own > 1 + TFH_BLOCKING_SHARE)
		snprintf(out, size, " (about %s with CPUs of its own)",
			 tfh_fmt_factor(factor, own));
}

/* If only computing takes long, this is all that can be gained. */
static void little_to_gain(const struct tfh_page *page)
{
	const struct tfh_result *r = page->r;
	double share = r->breakdown[TFH_PART_COMPUTE].share, step = tfh_step_s(r);
	double fastest, most = most_of_steps(r, share, &fastest), even = tfh_even_step_s(r);
	bool ranks = even > 0;
	char line[320], factor[TFH_TEXT], both[TFH_RANGE], besides[TFH_RANGE + 64], also[80] = "";
	char mistake[64];

	if (!(share > 0))
		return;
	even = ranks ? even : tfh_even_devices_s(r);
	if (even > 0) {
		snprintf(line, sizeof(line), "if all %s computed as long: step %s, %s",
			 ranks ? "ranks" : "devices", change(both, step, even, "about "),
			 tfh_fmt_factor(factor, step / even));
	} else if (r->verdict.cause == TFH_CAUSE_COMPUTE_CONTENTION) {
		double alone = step - r->found.cause_s[r->verdict.cause];
		snprintf(line, sizeof(line), "alone on the GPU: step %s, %s",
			 change(both, step, alone, "at best "),
			 tfh_fmt_factor(factor, step / alone));
	} else {
		bool none = most < 1 + TFH_PREDICT_WORTH_SHARE;
		like_the_fastest(r, most, fastest, also, sizeof(also));
		snprintf(line, sizeof(line), "%s%s%s%s without cheaper computing%s%s",
			 gain_besides(page, fastest, besides, sizeof(besides)),
			 none ? "none" : "at most ", none ? "" : tfh_fmt_factor(factor, most),
			 in_the_steps(page, fastest), also,
			 cheaper(page, mistake, sizeof(mistake)));
	}
	tfh_row(page, "gain", line);
}

/* Prints the first `most` lines of evidence of one kind, with its label. */
static void evidence_rows(const struct tfh_page *page, enum tfh_tells tells, const char *label,
			  size_t most)
{
	const struct tfh_wording *w = page->words;
	size_t n = 0;

	for (uint32_t i = 0; i < w->n_evidence; i++)
		if (w->tells[i] == tells && n++ < most)
			tfh_row(page, label, w->evidence[i]);
}

static void blame_rows(const struct tfh_page *page)
{
	static const struct {
		enum tfh_tells tells;
		const char *label;
	} rows[] = {{TFH_TELLS_RANK, "rank"},	  {TFH_TELLS_DEVICES, "devices"},
		    {TFH_TELLS_WHO, "who"},	  {TFH_TELLS_STAGE, "stage"},
		    {TFH_TELLS_LINE, "line"},	  {TFH_TELLS_COPIES, "copies"},
		    {TFH_TELLS_KERNEL, "kernel"}, {TFH_TELLS_OPS, "ops"}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		/* Kernels belong to the steps. If something else is to blame, they are left out. */
		if ((rows[i].tells != TFH_TELLS_KERNEL && rows[i].tells != TFH_TELLS_OPS) ||
		    page->r->verdict.cls == TFH_CLASS_COMPUTE_BOUND)
			evidence_rows(page, rows[i].tells, rows[i].label, SIZE_MAX);
	if (page->words->no_line)
		tfh_row(page, "line", page->words->no_line);
}

void tfh_screen_rows(const struct tfh_page *page, size_t whys)
{
	const struct tfh_wording *w = page->words;
	enum tfh_class cls = page->r->verdict.cls;
	char also[160];

	blame_rows(page);
	if (w->missing)
		tfh_row(page, "missing", w->missing);
	else if (w->text && *w->text)
		tfh_row(page, "why", w->text);
	evidence_rows(page, TFH_TELLS_WHY, w->missing ? "why" : "", whys);
	also_line(page->r, also, sizeof(also));
	if (*also)
		tfh_row(page, "also", also);
	if (page->r->lead)
		lead_row(page);
	else if (cls != TFH_CLASS_COMPUTE_BOUND && cls != TFH_CLASS_BALANCED)
		gain_row(page, "gain");
	else {
		little_to_gain(page);
		if (page->r->line_place)
			gain_row(page, "");
	}
}

void tfh_screen_verdict(const struct tfh_page *page, size_t whys)
{
	print_headline(page);
	tfh_screen_rows(page, whys);
}
