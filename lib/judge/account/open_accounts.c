/*
 * Accounts of windows without device times until they are closed. Every nanosecond of a window is
 * charged once, to compute or to a cause, or it stays unattributed. What the host did while the
 * device had work is kept separately, until the next wait shows whether the device was busy all the
 * time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "judge/account/account.h"

struct gap {
	int64_t t0, t1;
	bool tentative;
	enum tfh_gap_kind kind;
};

/* Work of the step's main thread. */
struct work {
	int64_t end, ns;
};

/* A window without device times. */
struct open_window {
	size_t number;
	struct tfh_account account;
	int64_t tentative[TFH_CAUSE_COUNT];
	int64_t input_in_exec; /* grouped steps: input charged before x1 */
};

struct tfh_open_accounts {
	struct tfh_accounts *accounts;
	struct open_window *ring;
	size_t cap;			 /* capacity of the ring, a power of two */
	size_t first, cur;		 /* slots first..cur are in use */
	size_t number;			 /* number of the window at cur */
	const struct tfh_window *window; /* that window, NULL after the last one */
	struct open_window *at;		 /* its slot */
	bool unsettled;
	TFH_VEC(struct gap) gap;   /* pauses of window cur */
	TFH_VEC(struct work) work; /* that may be main work of window cur */
	int64_t all_work;	   /* all work of the window, ns */
	int rc;
};

static struct open_window *slot_of(struct tfh_open_accounts *l, size_t at)
{
	return &l->ring[at & (l->cap - 1)];
}

/* Puts the next window without device times, from number `to` on, into slot cur. */
static void set_window(struct tfh_open_accounts *l, size_t to)
{
	const struct tfh_accounts *accounts = l->accounts;

	while (to < accounts->loops->window.n && accounts->use[to].tier != 'C')
		tfh_big_pass(++to);
	l->at = slot_of(l, l->cur);
	l->number = l->at->number = to;
	l->window = to < accounts->loops->window.n ? &accounts->loops->window.v[to] : NULL;
}

struct tfh_open_accounts *tfh_open_accounts_new(struct tfh_accounts *accounts)
{
	struct tfh_open_accounts *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->accounts = accounts;
	for (l->cap = 4; l->cap < TFH_ACCOUNT_RING && l->cap < accounts->loops->window.n + 2;)
		l->cap *= 2;
	l->ring = calloc(l->cap, sizeof(*l->ring));
	if (!l->ring) {
		free(l);
		return NULL;
	}
	set_window(l, 0);
	return l;
}

void tfh_open_accounts_free(struct tfh_open_accounts *l)
{
	if (!l)
		return;
	free(l->ring);
	free(l->gap.v);
	free(l->work.v);
	free(l);
}

/* End of the step's main work in this window. Callbacks, metrics and logging run after it and
 * before the request for the next batch; small ops among them do not count as main work. */
static int64_t main_end(const struct tfh_open_accounts *l)
{
	int64_t end = INT64_MIN;

	for (size_t i = 0; i < l->work.n; i++)
		if (l->work.v[i].ns * TFH_ACCOUNT_MAIN_PART >= l->all_work &&
		    l->work.v[i].end > end)
			end = l->work.v[i].end;
	return end;
}

/* Drops work below a tenth of all work. As the total only grows, such work cannot become main work
 * again, and at most ten entries remain. */
static void keep_main_work(struct tfh_open_accounts *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->work.n; i++)
		if (l->work.v[i].ns * TFH_ACCOUNT_MAIN_PART >= l->all_work)
			l->work.v[n++] = l->work.v[i];
	l->work.n = n;
}

/* Whether the main work may end between the two pauses. */
static bool parted(const struct tfh_open_accounts *l, const struct gap *a, const struct gap *b)
{
	for (size_t i = 0; i < l->work.n; i++)
		if (l->work.v[i].end > a->t0 && l->work.v[i].end <= b->t0)
			return true;
	return false;
}

/* Joins pauses that will get the same cause. */
static void join_gaps(struct tfh_open_accounts *l)
{
	size_t n = 0;

	keep_main_work(l);
	for (size_t i = 0; i < l->gap.n; i++) {
		struct gap *last = n ? &l->gap.v[n - 1] : NULL;
		const struct gap g = l->gap.v[i];
		if (last && last->tentative == g.tentative && last->kind == g.kind &&
		    !parted(l, last, &g))
			last->t1 += g.t1 - g.t0;
		else
			l->gap.v[n++] = g;
	}
	l->gap.n = n;
}

static enum tfh_cause gap_cause(const struct tfh_open_accounts *l, const struct gap *g, int64_t end)
{
	const struct tfh_accounts *accounts = l->accounts;

	/* PyTorch has no callbacks: its optimizer's step and the program's own lines run at that
	 * point. */
	bool calls_back = accounts->facts->consumers &&
			  (!accounts->facts->loader || accounts->facts->feed->imported);

	if (calls_back && end != INT64_MIN && g->t0 >= end)
		return TFH_CAUSE_HOST_CALLBACK;
	if (g->kind == TFH_GAP_CODE)
		return tfh_cover_code(accounts->cover);
	/* Without a visible input pipeline, the pause may be waiting for data. */
	if (!accounts->facts->consumers)
		return TFH_CAUSE_HOST_UNKNOWN;
	return tfh_pauses_run(accounts->facts) ? TFH_CAUSE_HOST_PYTHON : TFH_CAUSE_HOST_UNKNOWN;
}

/* The chain of the current window; NULL: not requested. */
static struct tfh_chain *chain_here(const struct tfh_open_accounts *l)
{
	return tfh_chain_of(l->accounts->facts->feed, l->accounts->facts->process, l->number);
}

/* Charges [t0, t1) of the current window, or keeps it as tentative. */
static void put(struct tfh_open_accounts *l, int64_t t0, int64_t t1, enum tfh_cause cause,
		enum tfh_certainty sure)
{
	struct tfh_chain *chain = chain_here(l);

	if (sure != TFH_TENTATIVE || cause == TFH_CAUSE_NONE) {
		tfh_account_charge(&l->at->account, chain, t0, t1, cause, sure == TFH_CERTAIN);
		return;
	}
	l->at->tentative[cause] += t1 - t0;
	if (chain)
		tfh_chain_add(
			chain,
			&(struct tfh_link){.t0 = t0, .t1 = t1, .cause = cause, .tentative = true});
}

static void judge_gap(struct tfh_open_accounts *l, const struct gap *g, enum tfh_cause cause)
{
	struct tfh_share_end part[TFH_CAUSE_COUNT] = {{g->t1, cause}};
	double share[TFH_CAUSE_COUNT];
	int64_t t = g->t0;
	uint32_t n = 1;

	if (g->kind != TFH_GAP_CODE && tfh_pause_causes(l->accounts, TFH_ANY_THREAD, g->t0, g->t1,
							g->kind == TFH_GAP_OWN, cause, share))
		n = tfh_divide(g->t0, g->t1, share, part);
	for (uint32_t i = 0; i < n; t = part[i++].t1)
		put(l, t, part[i].t1, part[i].cause, g->tentative ? TFH_TENTATIVE : TFH_CERTAIN);
}

static void judge_gaps(struct tfh_open_accounts *l)
{
	int64_t end = main_end(l);

	for (size_t i = 0; i < l->gap.n; i++)
		judge_gap(l, &l->gap.v[i], gap_cause(l, &l->gap.v[i], end));
	l->gap.n = 0;
	l->work.n = 0;
	l->all_work = 0;
}

/*
 * Corrects the input time of several steps in one call. If computing continues between the
 * get-nexts, their time is exposed as recorded. If they follow each other directly, computing runs
 * in parallel; the time after the last get-next is then the computing of one step or, if they ran
 * ahead, of most steps. In both cases, that time multiplied by the number of steps is what the call
 * needs without input.
 */
static void judge_group(struct tfh_open_accounts *l)
{
	struct open_window *o = l->at;
	const struct tfh_window *w = l->window;
	int64_t tail = w->x1 - w->last, between = w->last - w->t0 - w->gets;

	if (!w->group || w->steps < 2 || tail <= 0 ||
	    (double)between >= TFH_ACCOUNT_APART_SHARE * (double)((int64_t)(w->steps - 1) * tail))
		return;
	int64_t exposed = w->x1 - w->t0 - w->steps * tail;
	if (exposed < 0)
		exposed = 0;
	if (exposed > o->input_in_exec)
		exposed = o->input_in_exec;
	tfh_account_add(&o->account, exposed - o->input_in_exec, TFH_CAUSE_INPUT_UNKNOWN, false);
	tfh_account_add(&o->account, o->input_in_exec - exposed, TFH_CAUSE_NONE, false);
}

/* Closes the account in a slot. */
static void finish(struct tfh_open_accounts *l, size_t at)
{
	struct open_window *o = slot_of(l, at);
	const struct tfh_window *w = &l->accounts->loops->window.v[o->number];

	tfh_account_close(l->accounts, o->number, &o->account, w->t0, w->t1);
	memset(o, 0, sizeof(*o));
}

void tfh_settle(struct tfh_open_accounts *l, bool busy, enum tfh_cause device)
{
	struct tfh_chain *chain = l->accounts->facts->feed->chain;

	if (chain && chain->process == l->accounts->facts->process)
		tfh_chain_settle(chain, busy, device);
	for (size_t i = 0; i < l->gap.n; i++) {
		struct gap *g = &l->gap.v[i];
		if (g->tentative && busy) {
			tfh_account_charge(&l->at->account, chain_here(l), g->t0, g->t1, device,
					   false);
			g->t1 = g->t0;
		}
		g->tentative = false;
	}
	for (size_t at = l->first; at <= l->cur && l->unsettled; at++) {
		struct open_window *o = slot_of(l, at);
		for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
			tfh_account_add(&o->account, o->tentative[c], busy ? device : c, false);
			o->tentative[c] = 0;
		}
	}
	l->unsettled = false;
	for (; l->first < l->cur; l->first++)
		finish(l, l->first);
}

static void next_window(struct tfh_open_accounts *l)
{
	judge_gaps(l);
	judge_group(l);
	l->cur++;
	set_window(l, l->number + 1);
	if (l->cur - l->first >= l->cap - 1)
		tfh_settle(l, false, TFH_CAUSE_NONE);
	if (!l->unsettled)
		for (; l->first < l->cur; l->first++)
			finish(l, l->first);
}

/* The next part of [*t0, t1) that is in one window, which becomes the current one. False at the
 * end. */
static bool next_part(struct tfh_open_accounts *l, int64_t *t0, int64_t t1, int64_t *a, int64_t *b)
{
	if (*t0 >= t1)
		return false;
	while (l->window && l->window->t1 <= *t0)
		next_window(l);
	if (!l->window || l->window->t0 >= t1)
		return false;
	*a = l->window->t0 > *t0 ? l->window->t0 : *t0;
	*b = l->window->t1 < t1 ? l->window->t1 : t1;
	*t0 = *b;
	return *b > *a;
}

/* Whether a call is entirely in the current window, as most do. */
static inline bool within(const struct tfh_open_accounts *l, int64_t t0, int64_t t1)
{
	return l->window && t0 < t1 && l->window->t0 <= t0 && t1 <= l->window->t1;
}

static inline void charge_part(struct tfh_open_accounts *l, int64_t a, int64_t b,
			       enum tfh_cause cause, enum tfh_certainty sure)
{
	const struct tfh_window *w = l->window;

	put(l, a, b, cause, sure);
	l->unsettled |= sure == TFH_TENTATIVE;
	if (cause == TFH_CAUSE_INPUT_UNKNOWN && sure != TFH_TENTATIVE && w->group && a < w->x1)
		l->at->input_in_exec += (b < w->x1 ? b : w->x1) - a;
}

void tfh_charge(struct tfh_open_accounts *l, int64_t t0, int64_t t1, enum tfh_cause cause,
		enum tfh_certainty sure)
{
	int64_t a, b;

	if (within(l, t0, t1)) {
		charge_part(l, t0, t1, cause, sure);
		return;
	}
	while (next_part(l, &t0, t1, &a, &b))
		charge_part(l, a, b, cause, sure);
}

int64_t tfh_open_accounts_until(const struct tfh_open_accounts *l, int64_t t, bool *open)
{
	*open = l->window && t >= l->window->t0;
	if (!l->window)
		return INT64_MAX;
	if (!*open)
		return l->window->t0;
	return t < l->window->t1 ? l->window->t1 : INT64_MIN;
}

void tfh_charge_gap(struct tfh_open_accounts *l, int64_t t0, int64_t t1, enum tfh_certainty sure,
		    enum tfh_gap_kind kind)
{
	int64_t a, b;

	while (next_part(l, &t0, t1, &a, &b)) {
		struct gap g = {a, b, sure == TFH_TENTATIVE, kind};
		const struct tfh_chain *chain = chain_here(l);
		l->unsettled |= g.tentative;
		/* A chain shows when each pause was. */
		if (l->gap.n >= (chain ? chain->most : TFH_ACCOUNT_PARTS))
			join_gaps(l);
		if (TFH_PUSH(l->gap, g))
			l->rc = -ENOMEM;
	}
}

void tfh_note_large(struct tfh_open_accounts *l, int64_t t1, int64_t ns)
{
	struct work work = {.end = t1, .ns = ns};

	if (l->work.n >= TFH_ACCOUNT_PARTS)
		keep_main_work(l);
	if (TFH_PUSH(l->work, work))
		l->rc = -ENOMEM;
}

int64_t *tfh_open_accounts_work(struct tfh_open_accounts *l)
{
	return &l->all_work;
}

void tfh_note_work(struct tfh_open_accounts *l, int64_t t1, int64_t ns)
{
	if (!l->window || t1 > l->window->t1 || t1 <= l->window->t0)
		return;
	l->all_work += ns;
	if (ns * TFH_ACCOUNT_MAIN_PART >= l->all_work)
		tfh_note_large(l, t1, ns);
}

int tfh_open_accounts_end(struct tfh_open_accounts *l)
{
	while (l->window)
		next_window(l);
	tfh_settle(l, false, TFH_CAUSE_NONE);
	for (; l->first < l->cur; l->first++)
		finish(l, l->first);
	return l->rc;
}
