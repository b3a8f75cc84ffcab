/* Text report: steps by class, and where a step goes. */
#include <math.h>
#include <string.h>

#include "base/print.h"
#include "report/text_parts.h"

const char *tfh_part_words(enum tfh_part part)
{
	switch (part) {
	case TFH_PART_COMPUTE:
		return "compute";
	case TFH_PART_INPUT:
		return "input wait";
	case TFH_PART_TRANSFER:
		return "copies";
	case TFH_PART_COMMUNICATION:
		return "communication";
	case TFH_PART_LAUNCH:
		return "launches";
	case TFH_PART_HOST:
		return "host code";
	case TFH_PART_SYNC:
		return "sync wait";
	default:
		return "unattributed";
	}
}

/* Columns of the class table; parts with a common remedy share a column. */
static const struct {
	const char *head;
	unsigned parts; /* bit set */
	bool always;
} columns[] = {
	{"input", 1u << TFH_PART_INPUT, true},
	{"copy", 1u << TFH_PART_TRANSFER, true},
	{"comp", 1u << TFH_PART_COMPUTE, true},
	{"host", 1u << TFH_PART_LAUNCH | 1u << TFH_PART_HOST | 1u << TFH_PART_SYNC, true},
	{"comm", 1u << TFH_PART_COMMUNICATION, false},
	{"rest", 1u << TFH_PART_UNATTRIBUTED, false},
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static double column_share(const struct tfh_class_count *k, size_t c)
{
	double sum = 0;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		if (columns[c].parts & 1u << p && !isnan(k->breakdown[p]))
			sum += k->breakdown[p];
	return sum;
}

static bool column_shown(const struct tfh_steps *s, size_t c)
{
	if (columns[c].always)
		return true;
	for (int k = 0; k < TFH_CLASS_COUNT; k++)
		if (s->classes[k].count && column_share(&s->classes[k], c) >= 0.005)
			return true;
	return false;
}

/* Width of "100%". */
static int column_width(size_t c)
{
	int n = (int)strlen(columns[c].head);

	return n < 4 ? 4 : n;
}

static void class_row(const struct tfh_page *page, enum tfh_class cls, const bool *shown)
{
	const struct tfh_class_count *k = &page->r->steps.classes[cls];
	char name[32], count[TFH_TEXT], median[TFH_TEXT], p95[TFH_TEXT];
	double share[COLUMNS];
	int percent[COLUMNS];

	for (size_t c = 0; c < COLUMNS; c++)
		share[c] = column_share(k, c);
	tfh_percents(share, COLUMNS, percent);
	tfh_print(page->out, "  %-14s %7s %8s %8s %5.1f%%",
		  tfh_fmt_cut(name, sizeof(name), tfh_class_name(cls), 14),
		  tfh_fmt_count(count, k->count), tfh_fmt_time(median, k->median_s),
		  tfh_fmt_time(p95, k->p95_s), k->time_share * 100);
	for (size_t c = 0; c < COLUMNS && cls != TFH_CLASS_UNCLASSIFIED; c++)
		if (shown[c])
			tfh_print(page->out, " %*d%%", column_width(c) - 1, percent[c]);
	tfh_put("\n", page->out);
}

/* The run's tree has a start-up and times between loops of its own, which are not the same. */
static const char *row_name(enum tfh_segment kind)
{
	return kind == TFH_SEGMENT_STARTUP   ? "before steps"
	       : kind == TFH_SEGMENT_BETWEEN ? "between steps"
					     : tfh_segment_name(kind);
}

static void segment_rows(const struct tfh_page *page)
{
	const struct tfh_result *r = page->r;

	for (uint32_t i = 0; i < r->n_segments; i++) {
		const struct tfh_segment_sum *s = &r->segments[i];
		char count[TFH_TEXT], total[TFH_TEXT], every[TFH_TEXT];
		if (s->kind == TFH_SEGMENT_TRAIN || (!s->count && !(s->total_s > 0)))
			continue;
		/* what precedes the first step, in a trace that starts with it */
		if (s->kind == TFH_SEGMENT_STARTUP &&
		    s->total_s < 1e-12 * (double)tfh_run_wall_ns(r->run))
			continue;
		bool warmup = s->kind == TFH_SEGMENT_WARMUP;
		tfh_print(page->out, "  %-14s %7s   not counted: %s in all%s", row_name(s->kind),
			  tfh_fmt_count(count, s->count), tfh_fmt_time(total, s->total_s),
			  warmup ? ", first and last steps" : "");
		if (s->every_steps > 0 && !warmup)
			tfh_print(page->out, ", every %s steps",
				  tfh_fmt_mean(every, s->every_steps));
		tfh_put("\n", page->out);
	}
}

/* Parts of a startup that took seconds, and modules loaded after training had begun. */
static void startup_lines(const struct tfh_page *page)
{
	static const char *const name[TFH_PHASE_COUNT] = {
		[TFH_PHASE_DRIVER] = "driver",	      [TFH_PHASE_CONTEXT] = "context",
		[TFH_PHASE_MODULE] = "first kernels", [TFH_PHASE_BATCH] = "first batch",
		[TFH_PHASE_STEP] = "first step",      [TFH_PHASE_STEADY] = "steady"};
	const struct tfh_result *r = page->r;
	char line[320], at[TFH_TEXT], total[TFH_TEXT];
	int n = 0;

	if (tfh_into_run(r, r->startup[TFH_PHASE_STEADY]) >= 1)
		for (int k = 0; k < TFH_PHASE_COUNT; k++)
			if (!isnan(r->startup[k]))
				n += snprintf(line + n, sizeof(line) - (size_t)n, "%s%s %s",
					      n ? ", " : "from the start to: ", name[k],
					      tfh_fmt_time(at, tfh_into_run(r, r->startup[k])));
	if (n)
		tfh_wrap(page, "  ", "    ", line);
	if (!r->pattern.recompiles)
		return;
	snprintf(line, sizeof(line), "training steps loaded kernels %s time%s, %s in all",
		 tfh_fmt_count(at, r->pattern.recompiles), r->pattern.recompiles == 1 ? "" : "s",
		 tfh_fmt_time(total, r->pattern.recompile_s));
	tfh_wrap(page, "  ", "    ", line);
}

void tfh_text_classes(const struct tfh_page *page)
{
	const struct tfh_steps *s = &page->r->steps;
	bool shown[COLUMNS];

	if (!s->count || page->r->found.sampled.samples)
		return;
	tfh_put("\n", page->out);
	tfh_tint(page, TFH_BOLD);
	tfh_print(page->out, "%-16s %7s %8s %8s %6s", "STEPS", "count", "median", "p95", "share");
	for (size_t c = 0; c < COLUMNS; c++) {
		shown[c] = column_shown(s, c);
		if (shown[c])
			tfh_print(page->out, " %*s", column_width(c), columns[c].head);
	}
	tfh_tint(page, TFH_PLAIN);
	tfh_put("\n", page->out);
	for (int k = 0; k < TFH_CLASS_COUNT; k++)
		if (s->classes[k].count)
			class_row(page, (enum tfh_class)k, shown);
	segment_rows(page);
	startup_lines(page);
}

/* ---- where a step goes ---- */

#define BAR 30

static void bar(const struct tfh_page *page, double share)
{
	int full = (int)lround(share * BAR);

	if (full)
		tfh_put("  ", page->out);
	for (int i = 0; i < full && i < BAR; i++)
		tfh_print(page->out, "%s", page->style.utf8 ? "\u2588" : "#");
}

/* Time that overlapped something else and so cost nothing. */
static double hidden_of(const struct tfh_result *r, enum tfh_part part)
{
	const struct tfh_job_stage *s = r->stages;

	switch (part) {
	case TFH_PART_COMPUTE:
		return s[TFH_STAGE_COMPUTE].hidden_s;
	case TFH_PART_INPUT:
		return s[TFH_STAGE_RAW_INPUT].hidden_s + s[TFH_STAGE_PREPROCESS].hidden_s;
	case TFH_PART_TRANSFER:
		return s[TFH_STAGE_H2D].hidden_s + s[TFH_STAGE_D2H].hidden_s;
	case TFH_PART_COMMUNICATION:
		return s[TFH_STAGE_COMMUNICATION].hidden_s;
	default:
		return NAN;
	}
}

const char *const tfh_xprof_names[TFH_XPROF_COUNT] = {[TFH_XPROF_COMPUTE] = "device compute",
						      [TFH_XPROF_OUTPUT] = "output",
						      [TFH_XPROF_DEVICE] = "device to device",
						      [TFH_XPROF_COLLECTIVES] = "collectives",
						      [TFH_XPROF_INPUT] = "input",
						      [TFH_XPROF_OTHER] = "other"};

/* The same step by the rules of XProf's overview page, for comparison. */
static void xprof_line(const struct tfh_page *page)
{
	const double *share = page->r->xprof;
	char line[256];
	int percent[TFH_XPROF_COUNT], n = 0;

	if (isnan(share[0]))
		return;
	tfh_percents(share, TFH_XPROF_COUNT, percent);
	for (int k = 0; k < TFH_XPROF_COUNT; k++)
		if (percent[k])
			n += snprintf(
				line + n, sizeof(line) - (size_t)n, "%s%s %d %%",
				n ? ", "
				  : "from a step's first device op to its last, by XProf's rules: ",
				tfh_xprof_names[k], percent[k]);
	if (n)
		tfh_wrap(page, "  ", "    ", line);
}

/* On a CPU, the parts of computing. */
static void computed_rows(const struct tfh_page *page, double step_s)
{
	const struct tfh_computed *c = &page->r->found.computed;

	for (int k = 0; k < TFH_COMPUTES_COUNT && tfh_computed_in_parts(page->r); k++) {
		char time[TFH_TEXT], error[TFH_TEXT];
		double s = c->part[k].s_per_step;
		if (s < 0.005 * step_s)
			continue;
		tfh_print(page->out, "    %-13s %8s %3.0f %%",
			  tfh_computes_words((enum tfh_computes)k), tfh_fmt_time(time, s),
			  100 * s / step_s);
		if (c->part[k].samples)
			tfh_print(page->out, "  (sampled, +-%s)",
				  tfh_fmt_time(error, c->part[k].off_s));
		tfh_put("\n", page->out);
	}
}

void tfh_text_breakdown(const struct tfh_page *page)
{
	const struct tfh_result *r = page->r;
	double share[TFH_PART_COUNT], sum = 0;
	int percent[TFH_PART_COUNT];
	double seconds = 0;
	char mean[TFH_TEXT];

	for (int p = 0; p < TFH_PART_COUNT; p++) {
		share[p] = r->breakdown[p].share;
		seconds += isnan(share[p]) ? 0 : r->breakdown[p].s_per_step;
		sum += isnan(share[p]) ? 0 : share[p];
	}
	if (!(sum > 0))
		return;
	tfh_percents(share, TFH_PART_COUNT, percent);
	tfh_heading(page, "WHERE A STEP GOES (%s on average)", tfh_fmt_time(mean, seconds));
	for (int rank = 0; rank < TFH_PART_COUNT; rank++) {
		char time[TFH_TEXT], hidden[TFH_TEXT];
		int most = -1;
		for (int p = 0; p < TFH_PART_COUNT; p++)
			if (!isnan(share[p]) && (most < 0 || share[p] > share[most]))
				most = p;
		if (most < 0 || share[most] < 0.005)
			break;
		tfh_print(page->out, "  %-14s %9s %3d %%", tfh_part_words((enum tfh_part)most),
			  tfh_fmt_time(time, r->breakdown[most].s_per_step), percent[most]);
		bar(page, share[most]);
		double under = hidden_of(r, (enum tfh_part)most);
		if (under > 0.005 * r->steps.median_s)
			tfh_print(page->out, "  (+%s hidden)", tfh_fmt_time(hidden, under));
		double others = r->found.cause_s[TFH_CAUSE_COMPUTE_CONTENTION];
		if (most == TFH_PART_COMPUTE && others > 0)
			tfh_print(page->out, "  (%s for others)", tfh_fmt_time(hidden, others));
		tfh_put("\n", page->out);
		if (most == TFH_PART_COMPUTE)
			computed_rows(page, seconds);
		share[most] = NAN;
	}
	xprof_line(page);
}

/* ---- what if ---- */

static void removed_words(enum tfh_remove what, char *out, size_t size)
{
	if (what == TFH_REMOVE_EVERYTHING_BUT_COMPUTE)
		snprintf(out, size, "nothing but compute");
	else
		snprintf(out, size, "no %s", tfh_part_words(tfh_remove_part(what)));
}

double tfh_least_step(const struct tfh_result *r, const struct tfh_whatif *w)
{
	return (isnan(w->low_s) ? r->steps.median_s : tfh_step_s(r)) / w->ceiling_speedup;
}

/* Rows of the what-if: of parts of a step, of places of the program, then of waiting for a CPU. */
static uint32_t n_rows(const struct tfh_result *r)
{
	return r->n_whatif + r->n_place +
	       (r->found.contended.share >= TFH_BLOCKING_SHARE && r->uncrowded.ceiling_speedup > 0);
}

static const struct tfh_whatif *row_of(const struct tfh_page *page, uint32_t i, char *label,
				       size_t size)
{
	const struct tfh_result *r = page->r;

	if (i < r->n_whatif) {
		removed_words(r->whatif[i].remove, label, size);
		return &r->whatif[i];
	}
	if (i == r->n_whatif + r->n_place) {
		snprintf(label, size, "no wait for a CPU");
		return &r->uncrowded;
	}
	char name[48];
	snprintf(label, size, "no %s",
		 tfh_fmt_cut(name, sizeof(name), page->words->place[i - r->n_whatif], 21));
	return &r->place[i - r->n_whatif].gain;
}

/* Whether the bound is that of computing alone, which says nothing about the part itself. */
static bool says_nothing(const struct tfh_result *r, const struct tfh_whatif *w)
{
	const struct tfh_whatif *last = &r->whatif[r->n_whatif - 1];

	return last->remove == TFH_REMOVE_EVERYTHING_BUT_COMPUTE && w != last &&
	       w->ceiling_speedup >= last->ceiling_speedup;
}

/* Without device times there is no replay, only the bound: all of that time is gone,
 * and nothing else changes. */
static void bounds_only(const struct tfh_page *page)
{
	const struct tfh_result *r = page->r;

	tfh_heading(page, "%-26s %11s %9s", "WHAT IF THERE WERE", "per step", "at best");
	for (uint32_t i = 0; i < n_rows(r); i++) {
		char step[TFH_TEXT], best[TFH_TEXT], label[48];
		const struct tfh_whatif *w = row_of(page, i, label, sizeof(label));
		if (says_nothing(r, w))
			continue;
		tfh_print(page->out, "  %-24s %11s %9s\n", label,
			  tfh_fmt_time(step, tfh_least_step(r, w)),
			  tfh_fmt_factor(best, w->ceiling_speedup));
	}
}

void tfh_text_whatif(const struct tfh_page *page)
{
	const struct tfh_result *r = page->r;
	bool replayed = false, vague = false, hides = false;

	for (uint32_t i = 0; i < r->n_whatif; i++)
		replayed |= tfh_gain_of(&r->whatif[i]) == TFH_GAIN_PREDICTED;
	replayed |= n_rows(r) > r->n_whatif + r->n_place &&
		    tfh_gain_of(&r->uncrowded) == TFH_GAIN_PREDICTED;
	if (!r->n_whatif)
		return;
	if (!replayed) {
		bounds_only(page);
		return;
	}
	tfh_heading(page, "%-26s %9s   %-21s %8s %9s", "WHAT IF THERE WERE", "per step",
		    "likely range", "faster", "at best");
	for (uint32_t i = 0; i < n_rows(r); i++) {
		char step[TFH_TEXT], factor[TFH_TEXT], best[TFH_TEXT], label[48],
			range[TFH_RANGE] = "";
		const struct tfh_whatif *w = row_of(page, i, label, sizeof(label));
		bool more = i < r->n_whatif && tfh_hides_more(r, w);
		bool predicted = tfh_gain_of(w) == TFH_GAIN_PREDICTED;
		if (more)
			strncat(label, " *", sizeof(label) - strlen(label) - 1);
		hides |= more;
		if (!isnan(w->low_s) && !isnan(w->high_s))
			tfh_fmt_times(range, w->low_s, w->high_s);
		tfh_print(page->out, "  %-24s %9s   %-21s %8s %9s\n", label,
			  predicted ? tfh_fmt_time(step, w->step_s) : "-", range,
			  predicted ? tfh_fmt_factor(factor, w->speedup) : "-",
			  tfh_fmt_factor(best, w->ceiling_speedup));
		vague |= !predicted;
	}
	if (hides)
		tfh_wrap(page, "  *: ", "     ",
			 "less than the step without that time, since the host and the device, "
			 "which now take turns, would then work at the same time");
	if (vague)
		tfh_put("  -: the data supports only a range or bound, not one number\n",
			page->out);
}
