/*
 * Where the verdict's line is a program's own wrapper around the driver (a method that copies an
 * array to the device), the line that calls it decides what is copied, and how often. A function
 * passes calls on if it was only ever seen at a few lines in a row, and is called from several
 * lines of the program.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/stats.h"
#include "judge/verdict/line_tree.h"

struct caller_sums {
	const struct tfh_accounts *accounts;
	struct tfh_model_line line; /* the verdict's */
	bool sampled;		    /* the shares of callers come from samples, else from calls */
	uint32_t first, last;	    /* lines at which its function was seen */
	bool hidden;		    /* a library calls it, or nothing known */
	struct tfh_line_sums caller;
	int rc;
};

/* Adds a stack with the time of its calls or samples. */
static void add(struct caller_sums *x, const struct tfh_model_line *frame, uint32_t n, double ns)
{
	uint32_t i = 0;

	while (i < n && !tfh_same_function(&frame[i], &x->line))
		i++;
	if (i == n || x->rc)
		return;
	x->first = frame[i].line < x->first ? frame[i].line : x->first;
	x->last = frame[i].line > x->last ? frame[i].line : x->last;
	x->hidden |= i + 1 == n || frame[i + 1].library;
	if (i + 1 < n)
		x->rc = tfh_line_sums_add(&x->caller, &frame[i + 1],
					  frame[i].line == x->line.line ? ns : 0);
}

static void add_sites(struct caller_sums *x, const struct tfh_site_use *site, bool counts)
{
	const struct tfh_feed *f = x->accounts->facts->feed;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];

	for (int i = 0; f->lines && i < TFH_ACCOUNT_SITES; i++)
		if (site[i].stack)
			add(x, frame,
			    f->lines(f->arg, x->accounts->facts->process, site[i].stack, frame,
				     TFH_VERDICT_FRAMES),
			    counts ? (double)site[i].ns : 0);
}

static void add_calls(struct caller_sums *x)
{
	const struct tfh_accounts *a = x->accounts;
	const struct tfh_site_use *site[] = {a->wait_site,    a->alloc_site, a->launch_site,
					     a->managed_site, a->graph_site, a->load_site};

	for (size_t i = 0; i < sizeof(site) / sizeof(*site); i++)
		add_sites(x, site[i], !x->sampled);
	for (size_t i = 0; i < a->copy.n; i++)
		add_sites(x, a->copy.v[i].site, !x->sampled);
	/* Pauses are time in front of calls, not in them. */
	add_sites(x, a->pause_site, false);
}

static void add_samples(struct caller_sums *x)
{
	const struct tfh_facts *facts = x->accounts->facts;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	size_t window = 0;

	for (size_t i = 0; i < tfh_stack_samples_count(facts->samples); i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		if (facts->thread[k.thread].drives && tfh_judged_at(x->accounts, k.t, &window))
			add(x, frame, tfh_frames_at(facts, k.place, frame), x->sampled ? k.ns : 0);
	}
}

/* The caller with most of the time takes the line's place. If none has most of it, the line keeps
 * it, and the largest ones are listed. */
static void take(const struct caller_sums *x, struct tfh_seen_line *line)
{
	const struct tfh_line_sum *v = x->caller.of.v;
	double all = 0;

	for (size_t i = 0; i < x->caller.of.n; i++)
		all += v[i].ns;
	if (!(all > 0))
		return;
	if (v[0].ns <= TFH_VERDICT_MOST_SHARE * all) {
		for (uint32_t i = 0; i < TFH_VERDICT_CALLERS && v[i].ns > 0; i++) {
			line->caller[line->n_caller++] = (struct tfh_caller_line){
				v[i].line.file, v[i].line.function, v[i].line.line, v[i].ns / all};
			if (i + 1 == x->caller.of.n)
				break;
		}
		return;
	}
	double share = v[0].ns / all;
	if (!line->through.file)
		line->through = (struct tfh_caller_line){line->file, line->function, line->line, 1};
	line->file = v[0].line.file;
	line->function = v[0].line.function;
	line->line = v[0].line.line;
	if (line->samples && line->of_s > 0) {
		double of = line->s_per_step / line->of_s;
		line->off_s = tfh_share_error(of * share, (double)line->samples / of) * line->of_s;
		line->samples = (uint64_t)lround((double)line->samples * share);
	}
	line->s_per_step *= share;
}

/* Whether another caller may take the place of what is there now; 0 or -ENOMEM in *rc. *callers:
 * how many lines call its function, of which there have to be `least`. */
static bool name_caller(const struct tfh_accounts *accounts, struct tfh_seen_line *line,
			size_t least, size_t *callers, int *rc)
{
	struct caller_sums x = {.accounts = accounts,
				.line = {line->file, line->function, line->line, false},
				.sampled = line->samples > 0,
				.first = UINT32_MAX};
	uint32_t before = line->line;

	add_calls(&x);
	add_samples(&x);
	*rc = x.rc;
	*callers = x.caller.of.n;
	bool passes = !x.rc && !x.hidden && x.caller.of.n >= least &&
		      x.last - x.first < TFH_VERDICT_WRAPPER_LINES;
	if (passes) {
		tfh_line_sums_sort(&x.caller);
		take(&x, line);
	}
	free(x.caller.of.v);
	return passes && !line->n_caller && (line->line != before);
}

/* Whether the cause is in calls of the driver, whose number and size their caller chooses. */
static bool is_of_calls(enum tfh_cause cause)
{
	return cause == TFH_CAUSE_HOST_SYNC || cause == TFH_CAUSE_HOST_ALLOC ||
	       cause == TFH_CAUSE_HOST_LAUNCH || cause == TFH_CAUSE_COMPUTE_IMBALANCE ||
	       tfh_cause_part(cause) == TFH_PART_TRANSFER;
}

/* Each device may have a wait of its own, in a loop over all of them: functions with one caller are
 * passed, too, if a later one has several. */
static int find_awaiting(const struct tfh_accounts *accounts, struct tfh_seen_line *line)
{
	struct tfh_seen_line at = *line;
	size_t callers;
	int rc = 0;

	for (int i = 0; i < TFH_VERDICT_WRAPPERS && name_caller(accounts, &at, 1, &callers, &rc);
	     i++)
		if (callers > 1)
			*line = at;
	return rc;
}

int tfh_find_callers(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct tfh_seen_line *line = &r->found.line;
	bool awaits = line->kind == TFH_LINE_AWAITS;
	size_t callers;
	int rc = 0;

	if (!TFH_DETECT_WRAPPERS || !line->file || !line->line ||
	    (line->kind != TFH_LINE_IS && !awaits) || r->lead ||
	    r->verdict.cause == TFH_CAUSE_NONE || !is_of_calls(r->verdict.cause))
		return 0;
	if (awaits)
		return find_awaiting(accounts, line);
	for (int i = 0; i < TFH_VERDICT_WRAPPERS && name_caller(accounts, line, 2, &callers, &rc);)
		i++;
	return rc;
}
