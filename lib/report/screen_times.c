/* The first screen: where the run's time went, beside where a step's time goes. The rows of each
 * add up to the whole. */
#include <math.h>
#include <string.h>

#include "base/print.h"
#include "report/text_parts.h"

#define COLUMNS 40 /* of a table, including the gap to the next one */
#define NAME_AND_BAR 21
#define ROWS 16

struct times {
	struct {
		const char *name;
		double seconds;
		int percent;
		bool kept; /* never merged as "other" */
	} row[ROWS];
	size_t n;
	double all_s;
	char title[48];
	bool tells;    /* a large merged row is named after its largest part */
	char rest[24]; /* name of the merged row */
	int name, bar; /* columns */
};

static void add_row(struct times *t, const char *name, double seconds, bool kept)
{
	if (seconds > 0 && t->n < ROWS) {
		t->row[t->n].name = name;
		t->row[t->n].kept = kept;
		t->row[t->n++].seconds = seconds;
	}
}

/* The largest first. */
static void sort_rows(struct times *t)
{
	for (size_t i = 1; i < t->n; i++)
		for (size_t k = i; k > 0 && t->row[k].seconds > t->row[k - 1].seconds; k--) {
			typeof(t->row[0]) row = t->row[k];
			t->row[k] = t->row[k - 1];
			t->row[k - 1] = row;
		}
}

static double left_over(const struct times *t)
{
	double left = t->all_s;

	for (size_t i = 0; i < t->n; i++)
		left -= t->row[i].seconds;
	return left;
}

/* The smallest row that may be merged; their number if there is none. */
static size_t least_row(const struct times *t)
{
	size_t least = t->n;

	for (size_t i = 0; i < t->n; i++)
		if (!t->row[i].kept && (least == t->n || t->row[i].seconds < t->row[least].seconds))
			least = i;
	return least;
}

/* The rows of a step say what limits it, which is often not its largest part. */
static void name_rest(struct times *t, const char *largest)
{
	snprintf(t->rest, sizeof(t->rest), "%s etc.", largest);
	if ((int)strlen(t->rest) > t->name) {
		t->name = (int)strlen(t->rest);
		t->bar = NAME_AND_BAR - t->name;
	}
}

/* Keeps at most `rows` rows: the smallest ones are merged into the last. */
static void close_up(struct times *t, size_t rows)
{
	const double shown = 0.005 * t->all_s; /* a smaller share would print as 0 % */
	const char *largest = NULL;
	double most = 0;
	double share[ROWS];
	int percent[ROWS];

	for (size_t least = least_row(t); least < t->n; least = least_row(t)) {
		if (t->n < rows + (left_over(t) < shown) && t->row[least].seconds >= shown)
			break;
		largest = t->row[least].name; /* the smallest first: the last one is the largest */
		most = t->row[least].seconds;
		t->n--;
		memmove(&t->row[least], &t->row[least + 1], (t->n - least) * sizeof(t->row[0]));
	}
	snprintf(t->rest, sizeof(t->rest), "other");
	if (t->tells && left_over(t) >= TFH_REPORT_OTHER_SHARE * t->all_s &&
	    2 * most > left_over(t))
		name_rest(t, largest);
	if (left_over(t) >= shown)
		add_row(t, t->rest, left_over(t), false);
	for (size_t i = 0; i < t->n; i++)
		share[i] = t->row[i].seconds / t->all_s;
	tfh_percents(share, t->n, percent);
	for (size_t i = 0; i < t->n; i++)
		t->row[i].percent = percent[i];
	while (t->n && !t->row[t->n - 1].percent && !t->row[t->n - 1].kept)
		t->n--;
}

/* The largest row that may be merged; their number if there is none. */
static size_t largest_merged(const struct times *t)
{
	size_t largest = t->n;

	for (size_t i = 0; i < t->n; i++)
		if (!t->row[i].kept &&
		    (largest == t->n || t->row[i].seconds > t->row[largest].seconds))
			largest = i;
	return largest;
}

/* Keeps rows that are as large as a kept one, since a row must not be merged while a smaller one is
 * named. Nor may the merged rest be larger than the steps, if it is a large part of the run. */
static void keep_larger(struct times *t)
{
	double least = t->all_s, merged = left_over(t), most;
	size_t largest;

	for (size_t i = 0; i < t->n; i++)
		least = t->row[i].kept ? fmin(least, t->row[i].seconds) : least;
	most = fmax(least, TFH_REPORT_MERGED_SHARE * t->all_s);
	least = fmax(least, TFH_REPORT_OTHER_SHARE * t->all_s);
	for (size_t i = 0; i < t->n; i++) {
		t->row[i].kept |= t->row[i].seconds >= least;
		merged += t->row[i].kept ? 0 : t->row[i].seconds;
	}
	while (merged > most && (largest = largest_merged(t)) < t->n) {
		t->row[largest].kept = true;
		merged -= t->row[largest].seconds;
	}
}

/* The number of first steps of loops that the tree shows apart, because they take longer than
 * others. */
static uint64_t first_steps(const struct tfh_result *r)
{
	uint64_t n = 0;

	for (uint32_t i = 1; i < r->n_tree; i++)
		n += r->tree[i].kind == TFH_BRANCH_FIRST ? r->tree[i].count : 0;
	return n;
}

/* The run's time by kind, of those parts of its tree that are not divided further. */
static void run_times(const struct tfh_result *r, struct times *t, size_t rows, bool merged)
{
	double seconds[TFH_BRANCH_COUNT];
	char all[TFH_TEXT], of[24] = "";

	*t = (struct times){.name = 15, .bar = NAME_AND_BAR - 15};
	if (r->n_tree < 2 || !(r->tree[0].wall_s > 0))
		return;
	t->all_s = r->tree[0].wall_s;
	int32_t rank = tfh_report_rank(r, r->process);
	if (rank >= 0)
		snprintf(of, sizeof(of), "rank %d: ", rank);
	else if (r->found.unjudged)
		snprintf(of, sizeof(of), "pid %u: ", r->found.pid);
	snprintf(t->title, sizeof(t->title), "WHERE THE RUN WENT (%s%s)", of,
		 tfh_fmt_time(all, t->all_s));
	tfh_spent_all(r, seconds);
	for (int k = 0; k < TFH_BRANCH_COUNT; k++)
		add_row(t,
			k == TFH_BRANCH_FIRST && first_steps(r) > 1 ? "long 1st steps"
			: k == TFH_BRANCH_TRAIN && !(seconds[TFH_BRANCH_STEP] > 0)
				? "steps" /* as the title has them */
			: k == TFH_BRANCH_AFTER && r->found.sampled.samples
				? tfh_outside(r, TFH_BRANCH_AFTER)
				: tfh_branch_words((enum tfh_branch)k),
			seconds[k], k == TFH_BRANCH_TRAIN || k == TFH_BRANCH_STEP);
	if (!merged)
		keep_larger(t);
	/* If the steps were not found by the tree, the tree does not show them. */
	if (r->verdict.cls != TFH_CLASS_UNCLASSIFIED &&
	    !(seconds[TFH_BRANCH_TRAIN] + seconds[TFH_BRANCH_STEP] > 0))
		t->n = 0;
	else
		close_up(t, rows);
}

/* Whether there is room for the parts of what the CPU computes, beside what else takes a step. */
static bool shows_parts(const struct tfh_result *r, size_t rows)
{
	const double least = TFH_BLOCKING_SHARE * tfh_step_s(r);
	size_t n = 1; /* the rest */

	for (int p = 0; p < TFH_PART_COUNT; p++)
		n += p != TFH_PART_COMPUTE && r->breakdown[p].s_per_step >= least;
	for (int k = 0; k < TFH_COMPUTES_COUNT; k++)
		n += r->found.computed.part[k].s_per_step >= least;
	return tfh_computed_in_parts(r) && r->steady.cls == TFH_CLASS_COMPUTE_BOUND && n <= rows;
}

static void add_compute(const struct tfh_result *r, struct times *t, size_t rows)
{
	/* Time in which the device computed for other processes. */
	double others = fmax(r->found.cause_s[TFH_CAUSE_COMPUTE_CONTENTION], 0); /* NaN: unknown */
	bool parts = shows_parts(r, rows);

	for (int k = 0; k < TFH_COMPUTES_COUNT && parts; k++)
		add_row(t, tfh_computes_words((enum tfh_computes)k),
			r->found.computed.part[k].s_per_step, false);
	if (!parts)
		add_row(t, tfh_part_words(TFH_PART_COMPUTE),
			r->breakdown[TFH_PART_COMPUTE].s_per_step - others, false);
	add_row(t, "others on GPU", others, false);
}

static void step_times(const struct tfh_result *r, struct times *t, size_t rows)
{
	char mean[TFH_TEXT];

	*t = (struct times){.name = 13, .bar = NAME_AND_BAR - 13, .tells = true};
	t->all_s = tfh_step_s(r);
	snprintf(t->title, sizeof(t->title), "WHERE A STEP GOES (%s on average)",
		 tfh_fmt_time(mean, t->all_s));
	for (int p = 0; p < TFH_PART_COUNT; p++) {
		if (isnan(r->breakdown[p].share))
			continue;
		if (p == TFH_PART_COMPUTE)
			add_compute(r, t, rows);
		else
			add_row(t, tfh_part_words((enum tfh_part)p), r->breakdown[p].s_per_step,
				false);
	}
	sort_rows(t);
	close_up(t, rows);
}

/* Prints row i of a table, padded to its width if another table follows. */
static void print_row(const struct tfh_page *page, const struct times *t, size_t i, bool padded)
{
	char time[TFH_TEXT];
	int bar = 0, column;

	if (i >= t->n) {
		tfh_print(page->out, "%*s", padded ? COLUMNS : 0, "");
		return;
	}
	bar = (int)lround(t->row[i].seconds / t->all_s * t->bar);
	tfh_print(page->out, "  %-*s %8s %3d %%%s", t->name, t->row[i].name,
		  tfh_fmt_time(time, t->row[i].seconds), t->row[i].percent, bar ? "  " : "");
	for (int k = 0; k < bar; k++)
		tfh_print(page->out, "%s", page->style.utf8 ? "\u2588" : "#");
	column = 2 + t->name + 1 + 8 + 1 + 5 + (bar ? 2 + bar : 0);
	tfh_print(page->out, "%*s", padded && column < COLUMNS ? COLUMNS - column : 0, "");
}

static void print_one(const struct tfh_page *page, const struct times *t)
{
	if (!t->n)
		return;
	tfh_heading(page, "%s", t->title);
	for (size_t i = 0; i < t->n; i++) {
		print_row(page, t, i, false);
		tfh_put("\n", page->out);
	}
}

void tfh_screen_step(const struct tfh_page *page, size_t rows)
{
	struct times step;

	step_times(page->r, &step, rows);
	print_one(page, &step);
}

void tfh_screen_times(const struct tfh_page *page, size_t rows, bool merged)
{
	struct times run, step;

	run_times(page->r, &run, rows, merged);
	step_times(page->r, &step, rows);
	bool beside = run.n && step.n && tfh_page_columns(page) >= 2 * COLUMNS;
	/* the shorter table may have as many rows as the longer one beside it, at no cost in
	 * lines */
	if (beside && run.n < step.n)
		run_times(page->r, &run, step.n, merged);
	else if (beside && step.n < run.n)
		step_times(page->r, &step, run.n);
	if (!beside) {
		print_one(page, &run);
		print_one(page, &step);
		return;
	}
	tfh_heading(page, "%-*s%s", COLUMNS, run.title, step.title);
	for (size_t i = 0; i < run.n || i < step.n; i++) {
		print_row(page, &run, i, i < step.n);
		print_row(page, &step, i, false);
		tfh_put("\n", page->out);
	}
}
