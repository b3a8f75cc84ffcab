/*
 * Lines of Python that the driving threads were seen at between their calls: the one where most of
 * the verdict's cause is, and all of them as a tree of calls.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/verdict/verdict.h"

struct lead {
	struct tfh_model_line line;
	struct tfh_model_line callee; /* the function that most looks saw it call, by votes */
	double votes, ns;
	uint64_t looks;
};

struct lines {
	const struct tfh_accounts *accounts;
	struct tfh_result *r;
	TFH_VEC(struct lead) lead;
	TFH_VEC(struct tfh_seen_node) node;
	double cause_ns; /* of all looks of the cause, with a line or without */
	uint64_t cause_looks;
};

static bool same(const char *a, const char *b)
{
	return a == b || !strcmp(a, b);
}

static bool same_line(const struct tfh_model_line *a, const struct tfh_model_line *b)
{
	return a->line == b->line && same(a->file, b->file) && same(a->function, b->function);
}

/* Who has more than half of all votes wins. */
static void vote(struct lead *l, const struct tfh_model_line *callee, double ns)
{
	l->votes += same_line(&l->callee, callee) ? ns : -ns;
	if (l->votes >= 0)
		return;
	l->callee = *callee;
	l->votes = -l->votes;
}

/* frame[at] is the line, frame[at - 1] what it called. */
static int add_lead(struct lines *x, const struct tfh_model_line *frame, uint32_t at, double ns)
{
	static const struct tfh_model_line none = {"", "", 0, false};
	struct lead *l = NULL;

	for (size_t i = 0; i < x->lead.n && !l; i++)
		if (same_line(&x->lead.v[i].line, &frame[at]))
			l = &x->lead.v[i];
	if (!l) {
		if (x->lead.n == TFH_VERDICT_LINES)
			return 0;
		if (TFH_PUSH(x->lead, ((struct lead){.line = frame[at], .callee = none})))
			return -ENOMEM;
		l = &x->lead.v[x->lead.n - 1];
	}
	l->ns += ns;
	l->looks++;
	vote(l, at ? &frame[at - 1] : &none, ns);
	return 0;
}

/* The node of that line below another one; UINT32_MAX: there is no more room. */
static uint32_t node_of(struct lines *x, uint32_t parent, const struct tfh_model_line *line)
{
	struct tfh_seen_node node = {.file = line->file,
				     .function = line->function,
				     .line = line->line,
				     .parent = parent};

	for (size_t i = 0; i < x->node.n; i++) {
		const struct tfh_seen_node *n = &x->node.v[i];
		bool top = n->parent == i;
		if (n->line == line->line &&
		    (parent == UINT32_MAX ? top : !top && n->parent == parent) &&
		    same(n->file, line->file) && same(n->function, line->function))
			return (uint32_t)i;
	}
	if (parent == UINT32_MAX)
		node.parent = (uint32_t)x->node.n;
	if (x->node.n == TFH_VERDICT_NODES || TFH_PUSH(x->node, node))
		return UINT32_MAX;
	return (uint32_t)x->node.n - 1;
}

static void add_nodes(struct lines *x, const struct tfh_model_line *frame, uint32_t n, double ns)
{
	uint32_t at = UINT32_MAX;

	for (uint32_t i = n; i-- > 0;) {
		uint32_t next = node_of(x, at, &frame[i]);
		if (next == UINT32_MAX)
			break;
		at = next;
		x->node.v[at].s_per_step += ns;
		x->node.v[at].looks++;
	}
	if (at != UINT32_MAX)
		x->node.v[at].own_s += ns;
}

static int add_look(struct lines *x, const struct tfh_seen_look *k)
{
	const struct tfh_facts *facts = x->accounts->facts;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	enum tfh_cause cause = x->r->verdict.cause;
	bool counts =
		cause == TFH_CAUSE_HOST_CALLBACK || tfh_look_cause(facts, k->at, k->feeds) == cause;
	uint32_t n = facts->feed->place && k->place
			     ? facts->feed->place(facts->feed->arg, facts->process, k->place, frame,
						  TFH_VERDICT_FRAMES)
			     : 0;

	x->cause_ns += counts ? k->ns : 0;
	x->cause_looks += counts;
	if (!n)
		return 0;
	add_nodes(x, frame, n, k->ns);
	return counts ? add_lead(x, frame, tfh_role_lead(frame, n, tfh_at_role(k->at)), k->ns) : 0;
}

/* The line that most looks saw, and what share of the cause that is. */
static void choose(struct lines *x)
{
	struct tfh_seen_line *out = &x->r->found.line;
	const struct lead *best = NULL;
	double n = (double)x->cause_looks, share;

	for (size_t i = 0; i < x->lead.n; i++)
		if (!best || x->lead.v[i].ns > best->ns)
			best = &x->lead.v[i];
	if (!best || best->looks < TFH_VERDICT_LINE_LOOKS)
		return;
	share = best->ns / x->cause_ns;
	out->file = best->line.file;
	out->function = best->line.function;
	out->line = best->line.line;
	out->looks = best->looks;
	if (best->callee.library) {
		out->callee = best->callee.function;
		out->callee_file = best->callee.file;
		out->callee_line = best->callee.line;
	}
	out->of_s = x->r->found.cause_s[x->r->verdict.cause];
	out->s_per_step = share * out->of_s;
	out->off_s = 2 * sqrt((share * (1 - share) + 1 / n) / n) * out->of_s;
}

static int keep_nodes(struct lines *x)
{
	double steps = (double)x->accounts->judged_steps * 1e9;
	size_t n = x->node.n;

	if (!n)
		return 0;
	x->r->found.node = tfh_arena_array(x->accounts->facts->arena, n, sizeof(*x->node.v));
	if (!x->r->found.node)
		return -ENOMEM;
	memcpy(x->r->found.node, x->node.v, n * sizeof(*x->node.v));
	x->r->found.n_node = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		x->r->found.node[i].s_per_step /= steps;
		x->r->found.node[i].own_s /= steps;
	}
	return 0;
}

/* The window that t lies in counts; looks come in order of time. */
static bool in_step(const struct tfh_accounts *accounts, int64_t t, size_t *window)
{
	while (*window < accounts->loops->window.n && accounts->loops->window.v[*window].t1 <= t)
		++*window;
	return *window < accounts->loops->window.n && accounts->loops->window.v[*window].t0 <= t &&
	       tfh_window_counts(accounts, *window);
}

int tfh_find_lines(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	const struct tfh_looks *looks = accounts->facts->looks;
	struct lines x = {.accounts = accounts, .r = r};
	size_t window = 0;
	int rc = 0;

	for (size_t i = 0; i < tfh_looks_count(looks) && !rc; i++) {
		struct tfh_seen_look k = tfh_looks_at(looks, i);
		if (in_step(accounts, k.t, &window) && accounts->facts->thread[k.thread].drives)
			rc = add_look(&x, &k);
	}
	if (!rc && r->verdict.cause != TFH_CAUSE_NONE && x.cause_ns > 0)
		choose(&x);
	if (!rc && accounts->judged_steps)
		rc = keep_nodes(&x);
	free(x.lead.v);
	free(x.node.v);
	return rc;
}
