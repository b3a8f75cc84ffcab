/*
 * Merges calls of several threads into one line of spans: at every moment the innermost or most
 * informative open call, or a gap. Calls arrive in order of end time and are at most
 * tfh_facts.long_ns long (longer ones are known from the first pass), so a queue ordered by begin
 * time needs to reach back only that far.
 *
 * Passive pieces (producers of a pipeline) make no spans. For each stage, the time is summed
 * during which a producer was in it while the training loop waited for input.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "judge/account/account.h"

struct tfh_flat {
	struct tfh_accounts *accounts;
	tfh_span_fn fn;
	void *arg;
	struct tfh_piece *queue; /* [head, end), ordered by begin time */
	size_t head, end, cap, next_long, window;
	struct tfh_piece active[TFH_ACCOUNT_ACTIVE];
	/* Passive pieces: value of `waited` at their begin. */
	int64_t waited_at_begin[TFH_ACCOUNT_ACTIVE];
	size_t n_active;
	int64_t cur, waited; /* waited: exposed input time in training windows so far */
	/* last span, not passed on yet, as it may continue */
	struct tfh_piece last;
	int64_t last_t0;
	bool has_last, last_gap;
	uint64_t added;
};

/* The line begins with the first call. The only step of another profiler's trace may begin before
 * it: with a range that shows what the host did then. */
static int64_t start_of_line(const struct tfh_accounts *accounts)
{
	const struct tfh_loops *loops = accounts->loops;
	bool whole = accounts->facts->feed->imported && loops->clock == TFH_STEP_CLOCK_NONE;

	return whole && loops->window.n ? loops->window.v[0].t0 : INT64_MIN;
}

struct tfh_flat *tfh_flat_new(struct tfh_accounts *accounts, tfh_span_fn fn, void *arg)
{
	struct tfh_flat *s = calloc(1, sizeof(*s));

	if (s) {
		s->accounts = accounts;
		s->fn = fn;
		s->arg = arg;
		s->cur = start_of_line(accounts);
	}
	return s;
}

void tfh_flat_free(struct tfh_flat *s)
{
	if (s)
		free(s->queue);
	free(s);
}

static bool before(const struct tfh_piece *a, const struct tfh_piece *b)
{
	return a->t0 != b->t0 ? a->t0 < b->t0 : a->number < b->number;
}

/* Inserts a piece by begin time. Calls also arrive nearly in order of begin: only an enclosing call
 * moves, past those it encloses. */
int tfh_flat_add(struct tfh_flat *s, const struct tfh_piece *p)
{
	struct tfh_piece x;
	size_t lo, hi;

	if (s->head > 1024 && s->head * 2 > s->end) {
		memmove(s->queue, s->queue + s->head, (s->end - s->head) * sizeof(*s->queue));
		s->end -= s->head;
		s->head = 0;
	}
	if (s->end == s->cap &&
	    tfh_vec_grow((void **)&s->queue, &s->cap, s->end, sizeof(*s->queue)))
		return -ENOMEM;
	s->added++;
	lo = s->head;
	hi = s->end;
	/* Nothing in the queue begins later. */
	if (lo == hi || s->queue[hi - 1].t0 <= p->t0) {
		s->queue[hi] = *p;
		s->queue[hi].number = s->added;
		s->end++;
		return 0;
	}
	x = *p;
	x.number = s->added;
	/* Search from the end in growing strides, then bisect. */
	for (size_t stride = 1; hi > lo && before(&x, &s->queue[hi - 1]); stride *= 2) {
		size_t back = hi - lo > stride ? hi - stride : lo;
		if (!before(&x, &s->queue[back])) {
			lo = back;
			break;
		}
		hi = back;
	}
	while (lo < hi && before(&x, &s->queue[hi - 1])) {
		size_t mid = (lo + hi) / 2;
		if (before(&x, &s->queue[mid]))
			hi = mid;
		else
			lo = mid + 1;
	}
	memmove(s->queue + hi + 1, s->queue + hi, (s->end - hi) * sizeof(*s->queue));
	s->queue[hi] = x;
	s->end++;
	return 0;
}

static void flush(struct tfh_flat *s, int64_t t)
{
	if (s->has_last && t > s->last_t0)
		s->fn(s->arg, s->last_t0, t, s->last_gap ? NULL : &s->last);
	s->has_last = false;
}

static void emit(struct tfh_flat *s, const struct tfh_piece *p)
{
	if (s->has_last && s->last_gap == !p && (!p || p->number == s->last.number))
		return;
	flush(s, s->cur);
	s->has_last = true;
	s->last_gap = !p;
	s->last_t0 = s->cur;
	if (p)
		s->last = *p;
}

/* Adds to `waited` the part of [t0, t1) in training windows. */
static void wait_for_input(struct tfh_flat *s, int64_t t0, int64_t t1)
{
	struct tfh_accounts *accounts = s->accounts;

	while (s->window < accounts->loops->window.n &&
	       accounts->loops->window.v[s->window].t1 <= t0)
		s->window++;
	for (size_t i = s->window;
	     i < accounts->loops->window.n && accounts->loops->window.v[i].t0 < t1; i++) {
		const struct tfh_window *w = &accounts->loops->window.v[i];
		int64_t a = w->t0 > t0 ? w->t0 : t0, b = w->t1 < t1 ? w->t1 : t1;
		if ((w->segment == TFH_SEGMENT_TRAIN || !w->steps) && b > a)
			s->waited += b - a;
	}
}

/* A producer left its stage. Several producers of one stage count once: only time after `seen` is
 * new. */
static void leave_stage(struct tfh_flat *s, size_t i)
{
	const struct tfh_piece *p = &s->active[i];
	struct tfh_stage_account *stage = &s->accounts->stage[p->stage];
	int64_t from = s->waited_at_begin[i];

	if (p->density >= 1 && from < stage->seen)
		from = stage->seen;
	if (s->waited <= from)
		return;
	stage->waited += (int64_t)(p->density * (double)(s->waited - from));
	if (p->density >= 1)
		stage->seen = s->waited;
}

static void drop_ended(struct tfh_flat *s)
{
	for (size_t i = 0; i < s->n_active;) {
		if (s->active[i].t1 > s->cur) {
			i++;
			continue;
		}
		if (s->active[i].passive)
			leave_stage(s, i);
		s->n_active--;
		s->active[i] = s->active[s->n_active];
		s->waited_at_begin[i] = s->waited_at_begin[s->n_active];
	}
}

static void advance(struct tfh_flat *s, int64_t to)
{
	while (s->cur < to) {
		int64_t end = to;
		const struct tfh_piece *best = NULL;
		for (size_t i = 0; i < s->n_active; i++) {
			const struct tfh_piece *p = &s->active[i];
			if (p->t1 < end)
				end = p->t1;
			if (!p->passive && (!best || p->activity > best->activity ||
					    (p->activity == best->activity && p->t0 > best->t0)))
				best = p;
		}
		emit(s, best);
		if (best && best->activity == TFH_ACTIVITY_INPUT)
			wait_for_input(s, s->cur, end);
		s->cur = end;
		drop_ended(s);
	}
}

/* Passes on a piece whose span is complete, because nothing overlaps it. */
static void take_alone(struct tfh_flat *s, const struct tfh_piece *p)
{
	flush(s, s->cur);
	if (p->activity == TFH_ACTIVITY_INPUT)
		wait_for_input(s, s->cur, p->t1);
	s->fn(s->arg, s->cur, p->t1, p);
	s->cur = p->t1;
}

/* Whether the piece just taken from the queue ends before the next one begins. */
static bool alone(const struct tfh_flat *s, const struct tfh_piece *p, int64_t t)
{
	return !s->n_active && !p->passive && s->head < s->end && p->t1 <= p[1].t0 && p[1].t0 < t;
}

int64_t tfh_flat_passable(const struct tfh_flat *s, int64_t *at)
{
	const struct tfh_facts *facts = s->accounts->facts;

	*at = s->cur;
	if (s->head < s->end || s->n_active || s->has_last || s->cur == INT64_MIN)
		return INT64_MIN;
	return s->next_long < facts->longs.n ? facts->longs.v[s->next_long].t0 : INT64_MAX;
}

void tfh_flat_pass(struct tfh_flat *s, int64_t to)
{
	s->cur = to;
}

int tfh_flat_next(struct tfh_flat *s, const struct tfh_piece *p)
{
	const struct tfh_accounts *accounts = s->accounts;
	bool longer = s->next_long < accounts->facts->longs.n &&
		      accounts->facts->longs.v[s->next_long].t0 < p->t1;

	if (s->head == s->end && !longer && s->n_active && p->t0 > s->cur)
		advance(s, p->t0);
	if (s->head < s->end || longer || s->n_active || p->passive) {
		int rc = tfh_flat_add(s, p);
		tfh_flat_until(s, p->t1);
		return rc;
	}
	if (s->cur == INT64_MIN)
		s->cur = p->t0;
	if (p->t0 > s->cur) {
		emit(s, NULL);
		s->cur = p->t0;
	}
	if (p->t1 > s->cur)
		take_alone(s, p);
	return 0;
}

/* Adds a long call, which the first pass has stored. */
static void add_long(struct tfh_flat *s, const struct tfh_piece *p)
{
	struct tfh_piece x = *p;

	if (tfh_line_piece(s->accounts->facts, &x))
		tfh_flat_add(s, &x);
}

void tfh_flat_until(struct tfh_flat *s, int64_t t)
{
	struct tfh_accounts *accounts = s->accounts;

	for (; s->next_long < accounts->facts->longs.n &&
	       accounts->facts->longs.v[s->next_long].t0 < t;
	     s->next_long++)
		add_long(s, &accounts->facts->longs.v[s->next_long]);
	while (s->head < s->end && s->queue[s->head].t0 < t) {
		const struct tfh_piece *p = &s->queue[s->head++];
		if (s->cur == INT64_MIN)
			s->cur = p->t0;
		if (p->t0 > s->cur && s->n_active) {
			advance(s, p->t0);
		} else if (p->t0 > s->cur) {
			emit(s, NULL);
			s->cur = p->t0;
		}
		if (p->t1 <= s->cur || s->n_active == TFH_ACCOUNT_ACTIVE)
			continue;
		if (alone(s, p, t)) {
			take_alone(s, p);
			continue;
		}
		s->waited_at_begin[s->n_active] = s->waited;
		s->active[s->n_active++] = *p;
	}
	if (t == INT64_MAX) {
		const struct tfh_window *window = accounts->loops->window.v;
		size_t n = accounts->loops->window.n;
		if (s->cur == INT64_MIN && n) /* no call at all */
			s->cur = window[0].t0;
		int64_t end = s->cur;
		for (size_t i = 0; i < s->n_active; i++)
			if (s->active[i].t1 > end)
				end = s->active[i].t1;
		if (n && window[n - 1].t1 > end)
			end = window[n - 1].t1;
		advance(s, end);
		flush(s, end);
	}
}
