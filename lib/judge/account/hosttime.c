/*
 * Host time: makes spans of each thread's calls, which tile its time: the innermost call, or a
 * pause. A pause during which another thread worked is a hand-over: the thread waited for that one
 * (TensorFlow's executor threads, PyTorch's autograd thread, a loader's thread).
 */
#include <math.h>
#include <stdlib.h>

#include "base/bisect.h"
#include "judge/account/device.h"
#include "base/hash.h"

static int add(struct tfh_slice *sl, int64_t t0, int64_t t1, const struct tfh_piece *p,
	       uint32_t thread)
{
	struct tfh_host_span s = {.t0 = t0,
				  .t1 = t1,
				  .thread = thread,
				  .from = TFH_NO,
				  .asked = TFH_NO,
				  .op = TFH_NO,
				  .library = TFH_CAUSE_NONE,
				  .end = true};

	if (t1 <= t0 && !(p && p->t0 == p->t1))
		return 0;
	if (p) {
		s.activity = p->activity;
		s.family = p->family;
		s.dir = p->dir;
		s.pageable = p->pageable;
		s.failed = p->failed;
		s.saves = p->saves;
		s.makes = p->makes;
		s.logs = p->logs;
		s.stream = p->stream;
		s.handle = p->handle;
		s.bytes = p->bytes;
		s.async = sl->device->async && p->activity == TFH_ACTIVITY_INPUT;
		s.end = t1 == p->t1;
	}
	return TFH_PUSH(sl->span, s);
}

/* Makes spans of one thread's calls, sorted by begin, enclosing ones first. A stack holds the
 * open calls; the top is the innermost. */
static int flatten(struct tfh_slice *sl, const struct tfh_piece *p, size_t n)
{
	const struct tfh_piece *open[TFH_ACCOUNT_DEPTH];
	size_t depth = 0;
	int64_t t = n ? p[0].t0 : 0;
	int rc = 0;

	for (size_t i = 0; i <= n && !rc; i++) {
		int64_t next = i < n ? p[i].t0 : INT64_MAX;
		while (depth && open[depth - 1]->t1 <= next && !rc) {
			rc = add(sl, t, open[depth - 1]->t1, open[depth - 1], p->thread);
			if (open[depth - 1]->t1 > t)
				t = open[depth - 1]->t1;
			depth--;
		}
		if (i == n || rc)
			break;
		rc = add(sl, t, next, depth ? open[depth - 1] : NULL, p->thread);
		if (next > t)
			t = next;
		if (depth < TFH_ACCOUNT_DEPTH)
			open[depth++] = &p[i];
	}
	return rc;
}

static int by_end(const void *a, const void *b, void *spans)
{
	const struct tfh_host_span *s = spans;
	const struct tfh_host_span *x = &s[*(const uint32_t *)a], *y = &s[*(const uint32_t *)b];

	return x->t1 != y->t1 ? (x->t1 < y->t1 ? -1 : 1) : (x < y ? -1 : x > y);
}

static int sort_ends(struct tfh_slice *sl)
{
	sl->ends.n = 0;
	sl->families = 0;
	for (uint32_t i = 0; i < sl->span.n; i++) {
		sl->families |= 1ull << (sl->span.v[i].family & 63);
		if (sl->span.v[i].activity != TFH_ACTIVITY_GAP && TFH_PUSH(sl->ends, i))
			return -ENOMEM;
	}
	tfh_sort(sl->ends.v, sl->ends.n, sizeof(*sl->ends.v), by_end, sl->span.v);
	sl->others.n = 0;
	for (uint32_t i = 0, other = 0; i < sl->ends.n; i++) {
		if (i && sl->span.v[sl->ends.v[i]].thread != sl->span.v[sl->ends.v[i - 1]].thread)
			other = i;
		if (TFH_PUSH(sl->others, other))
			return -ENOMEM;
	}
	return 0;
}

/* The call of any other thread that ended last, at or before t. */
uint32_t tfh_last_call(const struct tfh_slice *sl, int64_t t, uint32_t not_thread)
{
	size_t lo = TFH_BISECT(i, 0, sl->ends.n, sl->span.v[sl->ends.v[i]].t1 <= t);

	if (lo && sl->span.v[sl->ends.v[lo - 1]].thread == not_thread)
		lo = sl->others.v[lo - 1];
	return lo ? sl->ends.v[lo - 1] : TFH_NO;
}

/* The span of a thread that contains the moment before t. */
uint32_t tfh_span_at(const struct tfh_slice *sl, uint32_t thread, int64_t t)
{
	uint32_t lo, hi, first;

	if (thread >= sl->accounts->facts->feed->n_threads)
		return TFH_NO;
	first = lo = sl->thread_span[thread];
	hi = sl->thread_span[thread + 1];
	/* Requests mostly come in order of time: search from the last result in growing strides. */
	uint32_t *near = &sl->near.v[thread];
	if (*near >= lo && *near < hi && sl->span.v[*near].t0 < t) {
		uint32_t stride = 1;
		for (lo = *near; lo + stride < hi && sl->span.v[lo + stride].t0 < t; stride *= 2)
			lo += stride;
		hi = lo + stride < hi ? lo + stride : hi;
	}
	lo = (uint32_t)TFH_BISECT(i, lo, hi, sl->span.v[i].t0 < t);
	*near = lo > first ? lo - 1 : first;
	return lo > first ? lo - 1 : TFH_NO;
}

/*
 * The call that a pause (or a graph execution by other threads) waited for, TFH_NO if none: the
 * call of another thread that ended last before this thread continued, if it ended during the pause
 * and most of the pause is before its end. A pause during which others merely happened to make
 * calls continues long after their last call, or is short. `sure`: set if there is no doubt.
 */
static uint32_t handed_by(const struct tfh_slice *sl, const struct tfh_host_span *s, bool *sure)
{
	uint32_t q;

	*sure = false;
	if ((s->activity != TFH_ACTIVITY_GAP && s->activity != TFH_ACTIVITY_EXEC) ||
	    s->t1 - s->t0 < TFH_GAP_NS)
		return TFH_NO;
	q = tfh_last_call(sl, s->t1, s->thread);
	if (q == TFH_NO || sl->span.v[q].t1 - s->t0 < TFH_GAP_NS ||
	    sl->span.v[q].t1 - s->t0 < s->t1 - sl->span.v[q].t1)
		return TFH_NO;
	/* Threads that rarely launch make many calls that no other thread waits for; for these,
	 * accept a hand-over only if the pause ended right after the call. */
	int64_t rest = s->t1 - sl->span.v[q].t1, late = (s->t1 - s->t0) / TFH_ACCOUNT_WOKEN_PART;

	late = late > TFH_WOKEN_NS ? late : TFH_WOKEN_NS;
	*sure = sl->accounts->facts->thread[sl->span.v[q].thread].drives || rest <= late;
	return q;
}

/* A kind of pause by its position in the program: the call before it, the call after it, and the
 * last call of another thread meanwhile. */
struct pause_place {
	uint64_t key;
	uint32_t sure, doubted;
};

static uint64_t what_call(uint64_t key, const struct tfh_host_span *s)
{
	return tfh_hash_add(key, (uint64_t)s->thread << 32 | (uint64_t)s->activity << 16 |
					 (uint64_t)s->family << 8 | (uint64_t)s->dir);
}

static struct pause_place *place_of(struct pause_place *all, const struct tfh_slice *sl,
				    const struct tfh_host_span *s, uint32_t q)
{
	uint64_t key = what_call(1, &sl->span.v[q]);

	key = s > sl->span.v ? what_call(key, s - 1) : key;
	key = (s + 1 < sl->span.v + sl->span.n ? what_call(key, s + 1) : key) | 1;
	for (uint64_t i = 0; i < TFH_ACCOUNT_PLACES; i++) {
		struct pause_place *p = &all[(key / 2 + i) % TFH_ACCOUNT_PLACES];
		if (!p->key)
			p->key = key;
		if (p->key == key)
			return p;
	}
	return NULL;
}

/* Finds the hand-overs. A pause whose thread woke up late, on a busy machine, is still a hand-over
 * if most pauses of its kind are. */
static void hand_over(struct tfh_slice *sl)
{
	struct pause_place all[TFH_ACCOUNT_PLACES] = {0};
	bool sure;

	for (int turn = 0; turn < 2; turn++)
		for (size_t i = 0; i < sl->span.n; i++) {
			struct tfh_host_span *s = &sl->span.v[i];
			uint32_t q = handed_by(sl, s, &sure);
			struct pause_place *p = q == TFH_NO ? NULL : place_of(all, sl, s, q);
			if (!turn && p)
				*(sure ? &p->sure : &p->doubted) += 1;
			if (turn && (sure || (p && p->sure > p->doubted)))
				s->from = q;
		}
}

/* The span before the execution of a graph to which span `at` belongs: the call itself, or a
 * call inside of it. TFH_NO: it belongs to none, or that began long before. */
static uint32_t before_execution(const struct tfh_slice *sl, uint32_t at)
{
	uint32_t first = sl->thread_span[sl->span.v[at].thread], left = TFH_ACCOUNT_NEARBY;
	bool inside = false;

	for (; at > first && left; at--, left--) {
		const struct tfh_host_span *s = &sl->span.v[at];
		if (inside && (s->activity == TFH_ACTIVITY_GAP ||
			       (s->activity == TFH_ACTIVITY_EXEC && s->end)))
			return at;
		if (s->activity == TFH_ACTIVITY_GAP)
			return TFH_NO;
		inside |= s->activity == TFH_ACTIVITY_EXEC;
	}
	return TFH_NO;
}

/* Where a driving thread was when it requested the execution in which pause s ended: the span
 * before the call. Most of the pause is before it. TFH_NO: there is none. */
static uint32_t asked_after(const struct tfh_slice *sl, const struct tfh_host_span *s)
{
	const struct tfh_facts *facts = sl->accounts->facts;

	for (uint32_t t = 0; t < facts->feed->n_threads; t++) {
		uint32_t at = facts->thread[t].execs && facts->thread[t].drives && t != s->thread
				      ? tfh_span_at(sl, t, s->t1)
				      : TFH_NO;
		at = at == TFH_NO ? TFH_NO : before_execution(sl, at);
		if (at != TFH_NO && sl->span.v[at].t1 - s->t0 > s->t1 - sl->span.v[at].t1)
			return at;
	}
	return TFH_NO;
}

/* Finds the pauses in which a thread of TensorFlow's executor, which launches a GPU job's ops, had
 * nothing to execute. It waited for the thread that requests the next execution, and so for what
 * that thread did before. If a call of another thread ended later, within the execution, it waited
 * for that call. */
static void find_executors(struct tfh_slice *sl)
{
	const struct tfh_thread_use *use = sl->accounts->facts->thread;

	for (size_t i = 0; i < sl->span.n; i++) {
		struct tfh_host_span *s = &sl->span.v[i];
		bool idle = s->activity == TFH_ACTIVITY_GAP && s->t1 - s->t0 >= TFH_GAP_NS &&
			    !use[s->thread].python && !use[s->thread].execs;
		uint32_t before = idle ? asked_after(sl, s) : TFH_NO;
		if (before != TFH_NO &&
		    (s->from == TFH_NO || sl->span.v[s->from].t1 < sl->span.v[before].t1))
			s->from = before;
	}
}

/*
 * Marks polling. A poll that fails, and the pause until the next one, are waiting, however long a
 * loop sleeps in between: if the next poll fails, too, the device was busy all that time. But a
 * long pause between a single failed poll and the successful one may be other work.
 */
static void mark_polls(struct tfh_slice *sl)
{
	bool looping = false;

	for (size_t i = 0; i + 2 < sl->span.n; i++) {
		struct tfh_host_span *s = &sl->span.v[i], *pause = s + 1, *next = s + 2;
		if (s->family != TFH_FAM_QUERY || !s->failed)
			continue;
		s->spin = true;
		int64_t ns = pause->t1 - pause->t0;
		pause->spin = pause->thread == s->thread && pause->activity == TFH_ACTIVITY_GAP &&
			      next->thread == s->thread && next->family == TFH_FAM_QUERY &&
			      (next->failed || ns < TFH_GAP_NS || looping);
		looping = pause->spin;
		if (pause->spin)
			pause->from = TFH_NO;
	}
}

/* A pause between two calls that submit work. */
static bool between_calls(const struct tfh_slice *sl, uint32_t i)
{
	const struct tfh_host_span *s = &sl->span.v[i];

	return s->activity == TFH_ACTIVITY_GAP && s->from == TFH_NO &&
	       i > sl->thread_span[s->thread] && i + 1 < sl->thread_span[s->thread + 1] &&
	       s[-1].activity == TFH_ACTIVITY_LAUNCH && s[1].activity == TFH_ACTIVITY_LAUNCH;
}

/* Marks short pauses between two copies. They are charged with the copies: fewer calls would mean
 * fewer pauses. */
static void mark_copying(struct tfh_slice *sl)
{
	for (uint32_t i = 0; i < sl->span.n; i++) {
		struct tfh_host_span *s = &sl->span.v[i];
		s->copying = between_calls(sl, i) && s->t1 - s->t0 < TFH_GAP_NS &&
			     s[-1].family == TFH_FAM_COPY && s[1].family == TFH_FAM_COPY;
	}
}

/* A long pause between launches, as one of the calls of a window. */
struct long_pause {
	uint32_t span, at; /* at: number of the thread's calls in the window before it */
	size_t window;
};

/* Counts the thread's calls in each window in memory, and finds its long pauses between
 * launches. */
static int find_long(struct tfh_slice *sl, uint32_t thread, uint32_t *calls,
		     struct long_pause **pause, size_t *n)
{
	TFH_VEC(struct long_pause) v = {0};
	size_t w = sl->w0;
	int rc = 0;

	for (uint32_t i = sl->thread_span[thread]; i < sl->thread_span[thread + 1] && !rc; i++) {
		const struct tfh_host_span *s = &sl->span.v[i];
		w = tfh_window_of(sl->accounts->loops, s->t0, w == SIZE_MAX ? 0 : w);
		if (w == SIZE_MAX || w < sl->w0 || w >= sl->w1)
			continue;
		if (s->activity != TFH_ACTIVITY_GAP)
			calls[w - sl->w0]++;
		else if (s->t1 - s->t0 >= TFH_GAP_NS && between_calls(sl, i))
			rc = TFH_PUSH(v, (struct long_pause){i, calls[w - sl->w0], w});
	}
	*pause = v.v;
	*n = v.n;
	return rc;
}

static uint32_t apart(uint32_t a, uint32_t b)
{
	return a > b ? a - b : b - a;
}

/*
 * Marks pauses between two launches that are long in this step but short at the same position of
 * most others. These are not code of the program: the thread was descheduled. The longer a thread
 * launches, the more often that happens, so it counts as launching. Only steps with about the same
 * number of calls can be compared by position.
 */
static int mark_disturbed(struct tfh_slice *sl, uint32_t thread)
{
	size_t windows = sl->w1 - sl->w0, n = 0;
	uint32_t *calls = calloc(windows + 1, sizeof(*calls));
	struct long_pause *p = NULL;
	int rc = calls ? find_long(sl, thread, calls, &p, &n) : -ENOMEM;

	for (size_t i = 0; i < n && n <= TFH_ACCOUNT_LONG_PAUSES && !rc; i++) {
		uint32_t like = 0, same = 0;
		size_t last = SIZE_MAX;
		for (size_t w = 0; w < windows; w++)
			like += apart(calls[w], calls[p[i].window - sl->w0]) <=
				TFH_ACCOUNT_NEAR_CALLS;
		for (size_t k = 0; k < n; k++) {
			if (p[k].window == last || apart(p[k].at, p[i].at) > TFH_ACCOUNT_NEAR_CALLS)
				continue;
			last = p[k].window;
			same++;
		}
		sl->span.v[p[i].span].launching = like * TFH_ACCOUNT_LIKE_PART > windows &&
						  same * TFH_ACCOUNT_SAME_PART < like &&
						  like > TFH_ACCOUNT_LIKE_STEPS;
	}
	free(calls);
	free(p);
	return rc;
}

/* The part of a pause after what it waited for. */
static int64_t own_pause(const struct tfh_slice *sl, const struct tfh_host_span *s)
{
	return s->from == TFH_NO ? s->t0 : sl->span.v[s->from].t1;
}

/* Marks longer pauses that, according to the trace, were spent in ops that launch. */
static void mark_dispatch(struct tfh_slice *sl)
{
	for (size_t i = 0; i < sl->span.n && sl->accounts->cover; i++) {
		struct tfh_host_span *s = &sl->span.v[i];
		int64_t t0 = own_pause(sl, s);
		if (s->activity == TFH_ACTIVITY_GAP && !s->spin && !s->copying &&
		    s->t1 - t0 >= TFH_GAP_NS)
			s->launching |= tfh_covered_by(sl->accounts->cover, s->thread, t0, s->t1) ==
					TFH_COVERED_LAUNCH;
	}
}

static void divide(struct tfh_host_span *s, const double share[TFH_CAUSE_COUNT])
{
	double part[TFH_PART_COUNT] = {0};

	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		if (share[c] > 0 && tfh_cause_part(c) != TFH_PART_NONE)
			part[tfh_cause_part(c)] += share[c];
	for (int p = 0; p < TFH_PART_COUNT; p++)
		s->divided[p] = (uint8_t)(255 * fmin(part[p], 1));
}

/* Marks longer pauses in which, according to samples, the thread mostly launched; of others, keeps
 * how samples divide them: the program's own code, waiting for a batch, copying within the host's
 * memory for a copy of the device, being on the way from one small copy to the next. */
static void divide_pauses(struct tfh_slice *sl)
{
	const struct tfh_facts *facts = sl->accounts->facts;
	double share[TFH_CAUSE_COUNT];

	for (size_t i = 0; i < sl->span.n && facts->samples; i++) {
		struct tfh_host_span *s = &sl->span.v[i];
		if (s->activity != TFH_ACTIVITY_GAP || s->from != TFH_NO || s->fallback ||
		    s->copying || s->t1 - s->t0 < TFH_GAP_NS ||
		    !tfh_pause_causes(sl->accounts, s->thread, s->t0, s->t1, false,
				      TFH_CAUSE_HOST_UNKNOWN, share))
			continue;
		s->launching |= share[TFH_CAUSE_HOST_LAUNCH] * 2 > 1;
		if (!s->launching)
			divide(s, share);
	}
}

/* How many of a thread's calls the windows in memory need: those that began in time, and the next
 * one, which ends the last pause. Calls that were read ahead (by up to TFH_LONG_NS) are for later
 * windows; with steps of 30 us they are a hundred times as many. */
static size_t begun(const struct tfh_slice *sl, const struct tfh_piece *p, size_t n)
{
	size_t lo = TFH_BISECT(i, 0, n, p[i].t0 <= sl->until);

	return lo < n ? lo + 1 : n;
}

int tfh_host_time(struct tfh_slice *sl)
{
	uint32_t n = sl->accounts->facts->feed->n_threads;
	size_t i = 0;
	int rc = 0;

	sl->span.n = 0;
	sl->near.n = 0;
	rc = TFH_RESERVE(sl->span, 2 * sl->call.n);
	while (sl->near.n < n && !rc)
		rc = TFH_PUSH(sl->near, 0);
	for (uint32_t t = 0; t < n && !rc; t++) {
		size_t from = i;
		while (i < sl->call.n && sl->call.v[i].thread == t)
			i++;
		sl->thread_span[t] = (uint32_t)sl->span.n;
		rc = flatten(sl, sl->call.v + from, begun(sl, sl->call.v + from, i - from));
	}
	sl->thread_span[n] = (uint32_t)sl->span.n;
	if (!rc)
		rc = sort_ends(sl);
	if (!rc && TFH_DETECT_HAND_OVERS)
		hand_over(sl);
	if (TFH_DETECT_EXECUTORS)
		find_executors(sl);
	if (TFH_DETECT_POLLS && sl->families & 1ull << TFH_FAM_QUERY)
		mark_polls(sl);
	if (sl->families & 1ull << TFH_FAM_COPY) {
		if (TFH_DETECT_FALLBACK)
			tfh_mark_fallbacks(sl);
		if (TFH_DETECT_COPYING)
			mark_copying(sl);
	}
	for (uint32_t t = 0; t < n && !rc && TFH_DETECT_DISTURBED; t++)
		rc = mark_disturbed(sl, t);
	mark_dispatch(sl);
	if (TFH_DETECT_DIVIDED)
		divide_pauses(sl);
	return rc;
}
