/*
 * Waits that come after several steps. If a program launches the same sequence several times
 * between two waits, and nothing before or after it, the sequence is the step: it must contain what
 * ends a step (an optimizer's update). What repeats inside a step (layers, micro-batches) is
 * surrounded by other launches. The first interval may differ: the program initialises its weights
 * there and runs its first steps uncompiled.
 *
 * Steps whose data are on the device already copy nothing. Where only other work between them does,
 * such as samples that are drawn every hundredth step, the copies begin no steps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "judge/loops/anchor.h"

#define NO_FUNCTION UINT32_MAX
/* Stands for a graph, which contains many functions, with the number of its kernels. Two graphs of
 * as many are the same step, of which each has its own buffers. */
static const uint32_t GRAPH = UINT32_C(1) << 31;

static bool is_graph(uint32_t what)
{
	return what >= GRAPH && what != NO_FUNCTION;
}

struct sequence {
	TFH_VEC(uint32_t) what; /* launched functions, in order; graphs */
	TFH_VEC(uint32_t) kind; /* hashes of the same with their grids */
	TFH_VEC(uint32_t) odd;	/* `what` of the first interval, if it is not whole steps */
	uint32_t period;	/* length of the step, 0: not known yet */
	uint32_t launches;	/* of the step */
	uint32_t once;		/* the first function or graph that occurs once in it */
	double whole, all;	/* launches in intervals that consist of steps only; all launches */
	double odd_first;	/* launches of the first interval, if it does not */
	bool small;		/* so small that it may be a loop inside a step */
	bool differs;		/* its repetitions differ in their grids */
	bool fed;		/* this interval copies a batch to the device */
	bool whole_fed;		/* or one that consists of steps only does */
	uint64_t batches; /* intervals that do; in the first one, copies between its launches */
	uint64_t steps, intervals;
	uint64_t first_steps; /* at the end of the first interval, if it does not */
	int64_t ns;	      /* of all intervals */
	uint64_t each; /* steps of every interval of steps after the first one; 0: they differ */
	uint32_t end;  /* of the first interval, in tokens */
	int rc;
};

static bool repeats(const uint32_t *v, size_t n, size_t p)
{
	for (size_t i = p; i < n; i++)
		if (v[i] != v[i - p])
			return false;
	return n % p == 0;
}

/* The length of the shortest sequence of which the launches are repetitions; 0: there is none.
 * `room` holds one number per launch. room[i] becomes the length of the longest proper suffix of
 * the first i + 1 launches that is also a prefix (Knuth, Morris and Pratt). */
static size_t shortest(const struct sequence *s, uint32_t *room)
{
	const uint32_t *v = s->what.v;
	size_t n = s->what.n;
	uint32_t same = 0;

	if (n < 2)
		return 0;
	room[0] = 0;
	for (size_t i = 1; i < n; i++) {
		while (same && v[i] != v[same])
			same = room[same - 1];
		same += v[i] == v[same];
		room[i] = same;
	}
	return same && n % (n - same) == 0 ? n - same : 0;
}

static int by_function(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The first function or graph that occurs once in the first p launches. `room`: for p numbers. */
static uint32_t once(const struct sequence *s, size_t p, uint32_t *room)
{
	memcpy(room, s->what.v, p * sizeof(*room));
	qsort(room, p, sizeof(*room), by_function);
	for (size_t i = 0; i < p; i++) {
		uint32_t what = s->what.v[i];
		size_t at = TFH_BISECT(k, 0, p, room[k] < what);
		if (at + 1 == p || room[at + 1] != what)
			return what;
	}
	return NO_FUNCTION;
}

/* The number of launches in the first p; a graph counts as several. */
static uint32_t launches(const struct sequence *s, size_t p)
{
	uint32_t n = 0;

	for (size_t i = 0; i < p; i++)
		n += is_graph(s->what.v[i]) ? TFH_LOOPS_GRAPH_LAUNCHES : 1;
	return n;
}

/* Whether the first p launches, which do not repeat anything as a whole, may be a step: they have
 * at least the minimum number of different functions of a step, or are so many that they contain a
 * loop. */
static bool are_a_step(const struct sequence *s, size_t p)
{
	uint32_t n = 0;

	if (p >= TFH_LOOPS_STEP_SEQUENCE)
		return true;
	for (size_t i = 0; i < p; i++) {
		size_t k = 0;
		while (s->what.v[k] != s->what.v[i])
			k++;
		n += is_graph(s->what.v[i]) ? TFH_LOOPS_STEP_FUNCTIONS : k == i;
	}
	return n >= TFH_LOOPS_STEP_FUNCTIONS;
}

/* How often the step found is at the end of the first interval, after what sets up and compiles. */
static size_t steps_of_first(const struct sequence *s)
{
	size_t n = 0, p = s->period;

	while (n < s->odd.n && s->odd.v[s->odd.n - 1 - n] == s->what.v[p - 1 - n % p])
		n++;
	return n / p;
}

/* Finds the step in the launches before the first wait that has several of them. */
static int find_step(struct sequence *s)
{
	uint32_t *room = malloc((s->what.n + 1) * sizeof(*room));
	size_t p = room ? shortest(s, room) : 0;

	if (p > 1 || (p && is_graph(s->what.v[0]))) {
		s->small = !are_a_step(s, p);
		s->differs = false;
		s->period = (uint32_t)p;
		s->launches = launches(s, p);
		s->once = once(s, p, room);
		s->steps = s->first_steps = steps_of_first(s);
		s->whole = (double)(s->steps * p);
	}
	free(room);
	return room ? 0 : -ENOMEM;
}

/* Whether the interval consists of steps only. */
static bool is_whole(const struct sequence *s)
{
	size_t at = 0, n = s->what.n;

	while (at < n && s->what.v[at] != s->once)
		at++;
	return s->period && at < n && repeats(s->what.v, n, s->period);
}

static int close_interval(struct sequence *s)
{
	size_t n = s->what.n;
	bool known = s->period && (!s->small || repeats(s->what.v, n, s->period)), whole;
	int rc = known ? 0 : find_step(s);

	whole = is_whole(s);
	if (s->intervals == 1)
		s->each = whole ? n / s->period : 0;
	else if (s->intervals > 1 && whole && n / s->period != s->each)
		s->each = 0;
	s->whole_fed |= s->intervals && s->fed && whole;
	s->fed = false;
	if (whole) {
		s->whole += (double)n;
		s->steps += n / s->period;
		s->differs |= !repeats(s->kind.v, n, s->period);
	} else if (!s->intervals) {
		s->odd_first = (double)n;
		TFH_SWAP(s->odd, s->what);
	}
	s->intervals += n > 0;
	s->all += (double)n;
	s->what.n = s->kind.n = 0;
	return rc;
}

/* The launch of a token, or its copy of a batch of at least so many bytes. */
static int add_token(struct sequence *s, const struct tfh_token_kind *k, uint32_t least)
{
	uint32_t what = k->family == TFH_FAM_LAUNCH ? k->what : GRAPH | (k->what & (GRAPH / 2 - 1));

	if (k->family == TFH_FAM_COPY && k->dir == TFH_DIR_H2D && k->what >= least) {
		s->batches += !s->fed && (s->intervals || s->what.n);
		s->fed = true;
	}
	if (!tfh_is_launch(k))
		return 0;
	s->fed &= s->intervals > 0;
	int rc = TFH_PUSH(s->what, what);
	return rc ? rc : TFH_PUSH(s->kind, (uint32_t)k->hash);
}

/* Whether the repetitions in an interval are steps, and no loop inside a step. A small sequence, or
 * one that is repeated very often, is a step if the same launches, which are not short, are
 * repeated, and the program waits seldom: to look at a result. */
static bool are_steps(const struct sequence *s)
{
	double n = (double)s->intervals, each = (double)s->steps / n;

	if (s->once == NO_FUNCTION || each < 2)
		return false;
	if (!s->small && each <= TFH_LOOPS_SEVERAL_TIMES * (double)s->launches)
		return true;
	return TFH_DETECT_LOOKS && !s->differs && n <= TFH_LOOPS_LOOKS_TIMES * each &&
	       (double)s->ns >= TFH_LOOPS_LOOKS_NS * (double)s->steps;
}

/* Whether one step is missing in the first interval, before the first call that each step makes: it
 * was not compiled yet, and launched kernel by kernel what became a graph. */
static bool lacks_one(const struct tfh_facts *facts, const struct tfh_anchor *a,
		      const struct sequence *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->end; i++) {
		const struct tfh_token_kind *k = tfh_kind_of(facts, &facts->token.v[i]);
		n += tfh_is_launch(k) && k->what == a->what &&
		     (k->family == TFH_FAM_GRAPH_LAUNCH) == (a->kind == TFH_ANCHOR_GRAPH);
	}
	return s->each > 1 && n && n + 1 == s->each && s->odd_first > (double)n * s->period;
}

static void drop(struct sequence *s)
{
	free(s->what.v);
	free(s->kind.v);
	free(s->odd.v);
}

uint32_t tfh_repeated_ops(const struct tfh_facts *facts, int *rc)
{
	struct sequence s = {0};

	for (size_t i = 0; i < facts->token.n && !s.rc; i++)
		s.rc = add_token(&s, tfh_kind_of(facts, &facts->token.v[i]), 0);
	s.rc = s.rc ? s.rc : find_step(&s);
	*rc = *rc ? *rc : s.rc;
	drop(&s);
	return s.period && !s.small && facts->token.n / s.period >= TFH_LOOPS_FEWEST_STEPS
		       ? s.period
		       : 0;
}

/* Whether the copies that are the anchor belong to other work than the steps found between waits,
 * and these are so many that they are no parts of a step. */
static bool feeds_others(const struct sequence *s)
{
	return TFH_DETECT_BATCH_STEPS && !s->whole_fed &&
	       s->steps >= TFH_LOOPS_BATCH_STEPS * s->batches;
}

bool tfh_part_intervals(const struct tfh_facts *facts, struct tfh_anchor *a, int *rc)
{
	const struct tfh_anchor wait = {.kind = TFH_ANCHOR_WAIT, .cycle = 1};
	bool upload = a->kind == TFH_ANCHOR_UPLOAD;
	struct tfh_cutter c = {.facts = facts, .anchor = upload ? &wait : a};
	struct sequence s = {.once = NO_FUNCTION};
	uint32_t at = 0;
	struct tfh_interval interval;

	if ((a->kind != TFH_ANCHOR_WAIT && !upload) || a->cycle > 1)
		return false;
	while (!s.rc && tfh_cut_next(&c, &interval)) {
		for (; at < c.n && !s.rc; at++)
			s.rc = add_token(&s, tfh_kind_of(facts, &facts->token.v[at]), a->what);
		if (s.rc)
			break;
		s.end = s.intervals ? s.end : c.n;
		s.ns += interval.t1 - interval.t0;
		s.rc = close_interval(&s);
	}
	double odd = s.odd_first - (double)(s.first_steps * s.period);
	bool sets_up = s.intervals > TFH_LOOPS_FEWEST_STEPS ||
		       (TFH_DETECT_ODD_FIRST && s.first_steps >= TFH_LOOPS_ENOUGH_STEPS);
	double all = s.all - (sets_up ? odd : 0);
	bool several = !s.rc && s.intervals && are_steps(&s) &&
		       s.whole >= TFH_CYCLE_SURE_SHARE * all && (!upload || feeds_others(&s));
	if (several)
		*a = (struct tfh_anchor){.kind = is_graph(s.once) ? TFH_ANCHOR_GRAPH
								  : TFH_ANCHOR_KERNEL,
					 .what = s.once & ~GRAPH,
					 .cycle = 1};
	if (several)
		a->one_before = lacks_one(facts, a, &s);
	*rc = *rc ? *rc : s.rc;
	drop(&s);
	return several;
}
