/*
 * Where the verdict's line is a program's own wrapper around the driver (a method that copies an
 * array to the device), the line that calls it decides what is copied, and how often. A function
 * passes calls on if it was only ever seen at a few lines in a row, and is called from several
 * lines of the program, or if it was seen at a single line and in no loop of its own.
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
	bool loops;		    /* it was seen in a loop of its own */
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
	struct tfh_judged_samples at = {0};
	struct tfh_seen_sample k;

	while (tfh_next_judged_sample(x->accounts, &at, &k))
		add(x, frame, tfh_frames_at(facts, k.place, frame), x->sampled ? k.ns : 0);
}

static void find_loops(struct caller_sums *x)
{
	const struct tfh_facts *facts = x->accounts->facts;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];

	for (size_t i = 0, at = 0; i < facts->looped.n && !x->loops; at += facts->looped.v[i++].n) {
		uint32_t n = tfh_frames_at(facts, facts->looped.v[i].place, frame);
		for (uint32_t k = 0; k < facts->looped.v[i].n; k++) {
			uint32_t depth = facts->loop.v[at + k].depth;
			x->loops |= depth <= n && tfh_same_function(&frame[n - depth], &x->line);
		}
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

/* What is known of the callers of the line's function; 0 or -ENOMEM. */
static int find_calls(const struct tfh_accounts *accounts, const struct tfh_seen_line *line,
		      struct caller_sums *x)
{
	*x = (struct caller_sums){.accounts = accounts,
				  .line = {line->file, line->function, line->line, false},
				  .sampled = line->samples > 0,
				  .first = UINT32_MAX};
	add_calls(x);
	add_samples(x);
	find_loops(x);
	if (!x->rc)
		tfh_line_sums_sort(&x->caller);
	return x->rc;
}

/* Whether the function may only pass calls on. */
static bool may_pass(const struct caller_sums *x)
{
	if (x->hidden || !x->caller.of.n)
		return false;
	return x->caller.of.n > 1 ? x->last - x->first < TFH_VERDICT_WRAPPER_LINES
				  : x->last == x->first && !x->loops;
}

/*
 * Passes nested wrappers, outwards. A function with a single caller may also be main(), and is only
 * passed if the program returns from it: then a function further outside is seen at other lines,
 * too, or is called from several.
 */
static int pass_wrappers(const struct tfh_accounts *accounts, struct tfh_seen_line *line)
{
	struct tfh_seen_line at = *line;
	bool passed = false;
	int rc = 0;

	for (int i = 0; i <= TFH_VERDICT_WRAPPERS && !rc && !at.n_caller; i++) {
		struct caller_sums x;
		rc = find_calls(accounts, &at, &x);
		bool returns = x.first != x.last || x.caller.of.n > 1;
		if (!rc && passed && returns)
			*line = at;
		passed = !rc && i < TFH_VERDICT_WRAPPERS && may_pass(&x);
		if (passed)
			take(&x, &at);
		if (passed && x.caller.of.n > 1)
			*line = at;
		free(x.caller.of.v);
		if (!passed)
			break;
	}
	return rc;
}

/* Whether the cause is in calls of the driver, whose number and size their caller chooses. */
static bool is_of_calls(enum tfh_cause cause)
{
	return cause == TFH_CAUSE_HOST_SYNC || cause == TFH_CAUSE_HOST_ALLOC ||
	       cause == TFH_CAUSE_HOST_LAUNCH || cause == TFH_CAUSE_COMPUTE_IMBALANCE ||
	       tfh_cause_part(cause) == TFH_PART_TRANSFER;
}

int tfh_find_callers(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct tfh_seen_line *line = &r->found.line;

	if (!TFH_DETECT_WRAPPERS || !line->file || !line->line ||
	    (line->kind != TFH_LINE_IS && line->kind != TFH_LINE_AWAITS) || r->lead ||
	    r->verdict.cause == TFH_CAUSE_NONE || !is_of_calls(r->verdict.cause))
		return 0;
	return pass_wrappers(accounts, line);
}
