/*
 * What the main thread did outside the steps: before the first recorded call (sampled by `tfhook
 * run` from outside), during start-up (sampled from outside or by the process itself), between
 * loops (in the longest gap if it has most of that time, or in all gaps), and in all evaluations. A
 * line of the program that imports a module is charged with everything the module does: "importing
 * tensorflow (train.py:3)". Shares of lines refer to the wall time of the part, so time without
 * samples belongs to no line.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "judge/verdict/line_tree.h"
#include "judge/verdict/sampled.h"

struct start_lead {
	struct tfh_model_line line;
	bool importing;
	const char *imports; /* file of the module in most samples, by votes; NULL: not seen */
	double votes, ns;
	uint64_t samples;
};

struct start_part {
	const struct tfh_accounts *accounts;
	struct tfh_seen_start *out;
	int64_t t0, t1;
	enum tfh_segment all; /* all windows of that kind are the part; NONE: from t0 to t1 */
	/* Depth of the program's frame whose line is told, from 1 at its outermost one that steps
	 * do not go through; 0: its innermost one. */
	uint32_t depth;
	const struct tfh_seen_node *steps; /* lines of the steps */
	uint32_t n_steps;
	TFH_VEC(struct start_lead) lead;
};

static bool is_module(const struct tfh_model_line *f)
{
	return !strcmp(f->function, "<module>");
}

/* Whether the frame belongs to the interpreter's own machinery, whose files have this prefix. */
static bool is_frozen(const struct tfh_model_line *f)
{
	return tfh_starts_with(f->file, "<frozen ");
}

uint32_t tfh_start_lead(const struct tfh_model_line *frame, uint32_t n)
{
	uint32_t own = tfh_place_lead(frame, n), at = n - 1;

	if (!strcmp(frame[at].file, "<frozen site>"))
		return at;
	if (!frame[own].library)
		return own;
	while (at && is_frozen(&frame[at]))
		at--;
	return at;
}

bool tfh_line_imports(const struct tfh_model_line *frame, uint32_t lead, const char **file)
{
	bool found = false;

	*file = NULL;
	for (uint32_t i = lead; i-- > 0 && !*file;) {
		if (is_module(&frame[i]) && !is_frozen(&frame[i]))
			*file = frame[i].file;
		found |= *file || tfh_is_import(&frame[i]) || strstr(frame[i].file, "/importlib/");
	}
	return found;
}

/* Majority vote, since a line may import several modules: a file with more than half of all votes
 * wins. */
static void vote(struct start_lead *l, const char *file, double ns)
{
	l->votes += !l->imports || !strcmp(l->imports, file) ? ns : -ns;
	if (!l->imports || l->votes < 0) {
		l->imports = file;
		l->votes = l->votes < 0 ? -l->votes : l->votes;
	}
}

static bool in_steps(const struct start_part *p, const struct tfh_model_line *line)
{
	for (uint32_t i = 0; i < p->n_steps; i++) {
		const struct tfh_seen_node *n = &p->steps[i];
		const struct tfh_model_line of = {n->file, n->function, n->line, false};
		if (tfh_same_line(&of, line))
			return true;
	}
	return false;
}

/* The program's frame at the part's depth. Frames around those that differ from the steps', such as
 * the call of main(), lead to both. */
static uint32_t outer_lead(const struct start_part *p, const struct tfh_model_line *frame,
			   uint32_t n)
{
	uint32_t at = tfh_start_lead(frame, n), depth = 0;

	for (uint32_t i = n; i-- > at && depth < p->depth;) {
		if (frame[i].library || is_frozen(&frame[i]))
			continue;
		depth += depth || !in_steps(p, &frame[i]);
		at = depth == p->depth ? i : at;
	}
	return at;
}

/* The line of the program, or the library's function that does this, if all steps run through that
 * line, too. */
static uint32_t lead_of(const struct start_part *p, const struct tfh_model_line *frame, uint32_t n,
			enum tfh_role role)
{
	uint32_t lead = outer_lead(p, frame, n);

	if (role == TFH_ROLE_NONE || !tfh_runs_through(p->accounts, &frame[lead]))
		return lead;
	for (uint32_t i = lead; i-- > 0;)
		if (tfh_place_role(&frame[i], 1, TFH_ORDER_UNKNOWN) == role)
			return i;
	return lead;
}

static int add_stack(struct start_part *p, const struct tfh_model_line *frame, uint32_t n,
		     enum tfh_role role, double ns)
{
	uint32_t at = lead_of(p, frame, n, role);
	const char *file;
	bool importing = tfh_line_imports(frame, at, &file);
	struct start_lead *l = NULL;

	for (size_t i = 0; i < p->lead.n && !l; i++)
		if (p->lead.v[i].importing == importing &&
		    tfh_same_line(&p->lead.v[i].line, &frame[at]))
			l = &p->lead.v[i];
	if (!l) {
		if (p->lead.n == TFH_VERDICT_LINES)
			return 0;
		if (TFH_PUSH(p->lead,
			     ((struct start_lead){.line = frame[at], .importing = importing})))
			return -ENOMEM;
		l = &p->lead.v[p->lead.n - 1];
	}
	if (file)
		vote(l, file, ns);
	l->ns += ns;
	l->samples++;
	return 0;
}

/* A part's states are the kernel's, without what a file, timer or lock tells besides. */
static uint8_t kernel_state(uint8_t state)
{
	switch (state) {
	case TFH_SEEN_LOG:
		return TFT_STATE_WRITE;
	case TFH_SEEN_TIMER:
		return TFT_STATE_POLL;
	case TFH_SEEN_MUTEX:
	case TFH_SEEN_SIGNAL:
	case TFH_SEEN_END:
		return TFT_STATE_LOCK;
	default:
		return state;
	}
}

static void add_state(struct start_part *p, uint8_t state, double ns)
{
	p->out->samples++;
	p->out->state[state] += ns / (double)(p->t1 - p->t0);
}

static bool is_in(const struct start_part *p, const struct tfh_start_sample *k)
{
	return k->t >= p->t0 && k->t < p->t1;
}

/* Each sample from outside represents the mean interval, since a busy machine delays samples.
 * Together they represent the time over which they were taken. */
static double scale_of(const struct start_part *p, const struct tfh_start *s)
{
	int64_t last = s->n ? s->sample[s->n - 1].t : p->t0;
	double ns = 0;

	for (uint32_t i = 0; i < s->n; i++)
		ns += is_in(p, &s->sample[i]) ? s->sample[i].ns : 0;
	last = last < p->t1 ? last : p->t1;
	return ns > 0 ? (double)(last - p->t0) / ns : 0;
}

static int add_outside(struct start_part *p, const struct tfh_start *s)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	double scale = scale_of(p, s);
	int rc = 0;

	for (uint32_t i = 0; i < s->n && !rc; i++) {
		uint32_t n = tfh_start_frames(s, s->sample[i].place, frame, TFH_VERDICT_FRAMES);
		if (!is_in(p, &s->sample[i]))
			continue;
		add_state(p, s->sample[i].state, s->sample[i].ns * scale);
		rc = n ? add_stack(p, frame, n, TFH_ROLE_NONE, s->sample[i].ns * scale) : 0;
	}
	return rc;
}

/* Whether a time is in a window of that kind; *window advances with it. */
static bool is_within(const struct tfh_accounts *accounts, int64_t t, enum tfh_segment of,
		      size_t *window)
{
	tfh_judged_at(accounts, t, window);
	return *window < accounts->step.n && accounts->step.v[*window].start_s <= (double)t / 1e9 &&
	       accounts->use[*window].segment == of;
}

/* Adds the process' own samples after the last one from outside. */
static int add_own(struct start_part *p, int64_t from)
{
	const struct tfh_facts *facts = p->accounts->facts;
	const struct tfh_feed *feed = facts->feed;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	uint32_t main = feed->processes[facts->process].pid;
	size_t window = 0;
	int rc = 0;

	for (size_t i = 0; i < tfh_stack_samples_count(facts->samples) && !rc; i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		bool in = p->all != TFH_SEGMENT_NONE ? is_within(p->accounts, k.t, p->all, &window)
						     : k.t > from && k.t >= p->t0 && k.t < p->t1;
		if (!in || feed->threads[k.thread].tid != main)
			continue;
		uint32_t n = tfh_frames_at(facts, k.place, frame);
		add_state(p, kernel_state(k.state), k.ns);
		rc = n ? add_stack(p, frame, n, tfh_at_role(k.at), k.ns) : 0;
	}
	return rc;
}

static int by_time(const void *a, const void *b)
{
	const struct start_lead *x = a, *y = b;

	return x->ns > y->ns ? -1 : x->ns < y->ns;
}

/* Samples represent the intervals between them, the last of which may extend beyond the part.
 * Shares add up to 1 at most. */
static double whole_of(struct start_part *p)
{
	double wall = (double)(p->t1 - p->t0), all = 0;

	for (int i = 0; i < TFT_STATE_COUNT; i++)
		all += p->out->state[i];
	for (int i = 0; i < TFT_STATE_COUNT && all > 1; i++)
		p->out->state[i] /= all;
	return all > 1 ? wall * all : wall;
}

static void keep_lines(struct start_part *p)
{
	struct tfh_seen_start *out = p->out;
	double whole = whole_of(p);

	if (p->lead.n)
		qsort(p->lead.v, p->lead.n, sizeof(*p->lead.v), by_time);
	for (size_t i = 0; i < p->lead.n && i < TFH_VERDICT_START_LINES; i++) {
		const struct start_lead *l = &p->lead.v[i];
		out->line[out->n_line++] = (struct tfh_start_line){
			.file = l->line.file,
			.function = l->line.function,
			.line = l->line.line,
			.imports = !l->importing ? NULL
				   : l->imports	 ? l->imports
						 : "",
			.share = l->ns / whole,
			.samples = l->samples,
		};
	}
}

/* Finds the part's lines, of frames of that depth. */
static int look(struct start_part *p, const struct tfh_start *s, uint32_t depth)
{
	struct tfh_seen_start *out = p->out;
	int rc = 0;

	*out = (struct tfh_seen_start){
		.kind = out->kind, .wall_s = out->wall_s, .why = s ? s->why : NULL};
	p->depth = depth;
	p->lead.n = 0;
	if (s)
		rc = add_outside(p, s);
	if (!rc && p->accounts)
		rc = add_own(p, s && s->n ? s->sample[s->n - 1].t : INT64_MIN);
	keep_lines(p);
	return rc;
}

/* Whether one function has most of the part at lines that are the part's own. */
static bool has_lines(const struct start_part *p)
{
	const struct tfh_seen_start *s = p->out;

	for (uint32_t i = 0; i < s->n_line; i++) {
		double share = 0;
		for (uint32_t k = 0; k < s->n_line; k++) {
			const struct tfh_start_line *l = &s->line[k];
			const struct tfh_model_line line = {l->file, l->function, l->line, false};
			if (tfh_start_together(l, &s->line[i]) && !in_steps(p, &line))
				share += l->share;
		}
		if (share >= TFH_VERDICT_MOST_SHARE)
			return true;
	}
	return false;
}

/* What follows the steps often calls the same functions as these: its own lines are those that call
 * them. Finds the innermost one with most of the time. */
static int look_at_callers(struct start_part *p, const struct tfh_start *s)
{
	uint32_t depth = 0;
	int rc = 0;

	if (!p->out->n_line || has_lines(p))
		return 0;
	do
		rc = look(p, s, ++depth);
	while (!rc && depth < TFH_VERDICT_FRAMES && has_lines(p));
	return rc ? rc : look(p, s, depth - 1);
}

static int find_lines(struct start_part *p, const struct tfh_start *s,
		      const struct tfh_part_of_run *part)
{
	if (p->t1 <= p->t0)
		return 0;
	p->out->kind = part->kind;
	p->out->wall_s = part->wall_s;
	int rc = look(p, s, 0);
	if (!rc && part->kind != TFH_BRANCH_BEFORE && part->kind != TFH_BRANCH_STARTUP)
		rc = look_at_callers(p, s);
	free(p->lead.v);
	return rc;
}

static int find_part(const struct tfh_accounts *accounts, const struct tfh_part_of_run *part,
		     enum tfh_segment all, const struct tfh_result *r, struct tfh_seen_start *out)
{
	const struct tfh_feed *feed = accounts->facts->feed;
	bool outside = feed->start && all == TFH_SEGMENT_NONE;
	const struct tfh_start *s =
		outside ? feed->start(feed->arg, accounts->facts->process) : NULL;
	struct start_part p = {.accounts = accounts,
			       .out = out,
			       .all = all,
			       .steps = r->found.node,
			       .n_steps = r->found.n_node,
			       .t0 = (int64_t)(part->begin_s * 1e9),
			       .t1 = (int64_t)((part->begin_s + part->wall_s) * 1e9)};

	return find_lines(&p, s, part);
}

/* All windows of a kind together are a part, too, which was not sampled from outside. */
static int find_all(const struct tfh_accounts *accounts, enum tfh_branch kind, enum tfh_segment all,
		    const struct tfh_result *r, struct tfh_seen_start *out)
{
	const struct tfh_part_of_run part = {
		.kind = kind, .wall_s = (double)accounts->loops->segment_ns[all] / 1e9};

	return find_part(accounts, &part, all, r, out);
}

/* Of the time between loops, the longest gap is looked at, or all gaps if it has less than half. */
static int find_between(const struct tfh_accounts *accounts, const struct tfh_result *r,
			struct tfh_seen_start *out)
{
	const struct tfh_part_of_run *most = NULL;
	double all = 0;

	for (uint32_t i = 1; i < r->n_tree; i++) {
		const struct tfh_part_of_run *p = &r->tree[i];
		if (p->kind != TFH_BRANCH_BETWEEN)
			continue;
		all += p->wall_s;
		if (!p->parent && p->runs == 1 && (!most || p->wall_s > most->wall_s))
			most = p;
	}
	if (most && 2 * most->wall_s > all)
		return find_part(accounts, most, TFH_SEGMENT_NONE, r, out);
	return find_all(accounts, TFH_BRANCH_BETWEEN, TFH_SEGMENT_BETWEEN, r, out);
}

int tfh_sampled_start(const struct tfh_start *s, int64_t born, struct tfh_result *r)
{
	int rc = 0;

	for (int i = 0; i < TFH_SEEN_STARTS; i++)
		r->found.start[i] = (struct tfh_seen_start){.kind = TFH_BRANCH_NONE};
	for (uint32_t i = 1; i < r->n_tree && !rc; i++) {
		const struct tfh_part_of_run *part = &r->tree[i];
		bool start = part->kind == TFH_BRANCH_STARTUP;
		struct start_part p = {
			.all = TFH_SEGMENT_NONE,
			.steps = r->found.node,
			.n_steps = r->found.n_node,
			.out = &r->found.start[start ? TFH_SEEN_STARTUP : TFH_SEEN_AFTER],
			.t0 = born + (int64_t)(part->begin_s * 1e9),
			.t1 = born + (int64_t)((part->begin_s + part->wall_s) * 1e9)};
		if (start || part->kind == TFH_BRANCH_AFTER)
			rc = find_lines(&p, s, part);
	}
	return rc;
}

int tfh_find_start(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct tfh_seen_start *out = r->found.start;
	int rc = 0;

	for (int i = 0; i < TFH_SEEN_STARTS; i++)
		out[i].kind = TFH_BRANCH_NONE;
	for (uint32_t i = 1; i < r->n_tree && !rc; i++) {
		const struct tfh_part_of_run *p = &r->tree[i];
		int at = p->kind == TFH_BRANCH_BEFORE	 ? TFH_SEEN_BEFORE
			 : p->kind == TFH_BRANCH_STARTUP ? TFH_SEEN_STARTUP
			 : p->kind == TFH_BRANCH_AFTER	 ? TFH_SEEN_AFTER
							 : TFH_SEEN_STARTS;
		if (!p->parent && at != TFH_SEEN_STARTS)
			rc = find_part(accounts, p, TFH_SEGMENT_NONE, r, &out[at]);
	}
	if (!rc)
		rc = find_between(accounts, r, &out[TFH_SEEN_BETWEEN]);
	return rc ? rc
		  : find_all(accounts, TFH_BRANCH_EVALUATE, TFH_SEGMENT_EVAL, r,
			     &out[TFH_SEEN_EVALUATE]);
}
