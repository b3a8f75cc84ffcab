/*
 * What a thread did in its pauses between calls, where another profiler's trace tells: ranges of
 * frameworks' ops and of Python's functions. Only those that reach into a pause of 50 us or more
 * are kept. At each moment the innermost tells, but for an op: the outermost, as it is the whole of
 * it that either launches or computes on the host. A range that the program named tells no more
 * than its name.
 *
 * A process without a device has a second line: when any of its threads executed ops, and when one
 * exchanged data with other ranks while none did.
 */
#include <stdlib.h>
#include <string.h>

#include "judge/internal.h"

/* Python's stacks are deep, more so with a module per layer. */
#define NESTING 512
/* Ranges kept at a time; with more, the shorter ones are given up. */
#define MOST_RANGES (4u << 20)
/* No op takes so long to launch: it makes something ready, or waits for a lock. */
#define DISPATCH_NS TFH_MS

/* NOTED: only the program's own name for it is known */
enum kind { NOTHING, NOTED, ISSUES, OWN, WAITS, EXCHANGES, KINDS };

struct call {
	int64_t t0, t1;
	uint32_t thread;
	bool launch;
};

struct range {
	int64_t t0, t1;
	uint32_t thread, name;
	uint8_t kind; /* enum tft_range */
};

struct part {
	int64_t t0, t1;
	uint32_t thread, name;
	uint8_t kind;
};

struct tfh_cover {
	TFH_VEC(struct part) part;    /* by thread and begin; they do not overlap */
	TFH_VEC(struct part) line;    /* a process without a device: what it did as a whole */
	size_t *first;		      /* by thread: index in `part`; one more than threads */
	int64_t *site[2];	      /* ns by name, of host.python and of other causes */
	TFH_VEC(struct part) pending; /* kind: index in `site` */
	uint32_t names;
	/* while it is made */
	TFH_VEC(struct call) call;
	TFH_VEC(struct range) range;
	TFH_VEC(struct call) pause;
	uint8_t *known; /* by name: enum tfh_frame */
	int64_t least;	/* shorter ranges are not kept */
};

static enum tfh_frame frame_of(struct tfh_job *job, uint32_t name)
{
	struct tfh_cover *c = job->cover;
	const char *s;

	if (!name || name >= c->names)
		return TFH_FRAME_LIBRARY;
	if (c->known[name] == TFH_FRAME_NEW) {
		s = job->feed->name(job->feed->arg, job->process, TFT_NAME_STRING, name, NULL,
				    NULL);
		c->known[name] = (uint8_t)tfh_frame_of(s);
	}
	return c->known[name];
}

/* ---- the ranges that count ---- */

static int by_place(const void *a, const void *b, void *arg)
{
	const struct range *x = a, *y = b;

	(void)arg;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->t0 != y->t0)
		return x->t0 < y->t0 ? -1 : 1;
	return x->t1 != y->t1 ? (x->t1 > y->t1 ? -1 : 1) : 0;
}

static int by_begin(const void *a, const void *b, void *arg)
{
	const struct call *x = a, *y = b;

	(void)arg;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->t0 != y->t0 ? (x->t0 < y->t0 ? -1 : 1) : 0;
}

static void give_up_short(struct tfh_cover *c)
{
	size_t n = 0;

	c->least = c->least ? c->least * 2 : TFH_US;
	for (size_t i = 0; i < c->range.n; i++)
		if (c->range.v[i].t1 - c->range.v[i].t0 >= c->least)
			c->range.v[n++] = c->range.v[i];
	c->range.n = n;
}

static int add_event(struct tfh_job *job, const struct tfh_event *ev)
{
	struct tfh_cover *c = job->cover;
	struct tfh_piece p;

	if (ev->kind == TFT_RANGE && ev->w[0] < UINT32_MAX) {
		struct range r = {ev->t0, ev->t1, ev->thread, (uint32_t)ev->w[0],
				  (uint8_t)ev->w[1]};
		while (c->range.n >= MOST_RANGES)
			give_up_short(c);
		if (r.name >= c->names)
			c->names = r.name + 1;
		return ev->t1 - ev->t0 >= c->least ? TFH_PUSH(c->range, r) : 0;
	}
	if (!tfh_event_label(ev, &p) || p.passive)
		return 0;
	struct call x = {p.t0, p.t1, p.thread,
			 p.family == TFH_FAM_LAUNCH || p.family == TFH_FAM_GRAPH_LAUNCH ||
				 p.family == TFH_FAM_COPY || p.family == TFH_FAM_MEMSET};
	if (job->cpu_only && p.label == TFH_L_EXEC) {
		struct part e = {p.t0, p.t1, 0, 0, OWN};
		if (TFH_PUSH(c->line, e))
			return -ENOMEM;
	}
	return TFH_PUSH(c->call, x);
}

/* Pauses of every thread, also before its first call and after its last. */
static int find_pauses(struct tfh_cover *c, uint32_t threads)
{
	size_t i = 0;
	int rc = 0;

	for (uint32_t t = 0; t < threads && !rc; t++) {
		int64_t end = INT64_MIN / 2;
		for (; i < c->call.n && c->call.v[i].thread == t && !rc; i++) {
			const struct call *x = &c->call.v[i];
			if (x->t0 - end >= TFH_GAP_NS)
				rc = TFH_PUSH(c->pause, (struct call){end, x->t0, t, false});
			end = x->t1 > end ? x->t1 : end;
		}
		if (!rc)
			rc = TFH_PUSH(c->pause, (struct call){end, INT64_MAX, t, false});
	}
	return rc;
}

/* The first of v that ends after t on that thread or comes later. */
static size_t after(const struct call *v, size_t n, uint32_t thread, int64_t t)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (v[mid].thread < thread || (v[mid].thread == thread && v[mid].t1 <= t))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool in_pause(const struct tfh_cover *c, uint32_t thread, int64_t t0, int64_t t1)
{
	size_t i = after(c->pause.v, c->pause.n, thread, t0);

	return i < c->pause.n && c->pause.v[i].thread == thread && c->pause.v[i].t0 < t1;
}

/* Whether a launch lies in a range; c->call holds launches only by now. */
static bool launches_in(const struct tfh_cover *c, const struct range *r)
{
	size_t i = after(c->call.v, c->call.n, r->thread, r->t0);

	return i < c->call.n && c->call.v[i].thread == r->thread && c->call.v[i].t0 < r->t1;
}

/* ---- from ranges to what the thread did at each moment ---- */

struct state {
	int64_t t1;
	uint32_t name;
	uint8_t kind;
	bool op, user;
};

static struct state enter(struct tfh_job *job, const struct range *r, const struct state *around)
{
	struct state s = *around;
	uint8_t kind = r->kind;

	s.t1 = r->t1;
	if (kind == TFT_RANGE_EXCHANGE_OP)
		kind = job->cpu_only ? TFT_RANGE_EXCHANGE : TFT_RANGE_OP;
	if (kind == TFT_RANGE_NOTE) {
		s.kind = s.kind == NOTHING ? NOTED : s.kind;
		s.name = s.op ? s.name : r->name;
	} else if (kind == TFT_RANGE_EXCHANGE) {
		s.kind = EXCHANGES;
		s.name = s.user ? s.name : r->name;
	} else if (kind == TFT_RANGE_OP) {
		/* A short op is the price of calling it. */
		bool issues = r->t1 - r->t0 < TFH_GAP_NS || launches_in(job->cover, r);
		s.kind = s.op ? s.kind : issues ? ISSUES : OWN;
		s.name = s.op || s.user ? s.name : r->name;
		s.op = true;
	} else {
		enum tfh_frame frame = frame_of(job, r->name);
		if (!s.op)
			s.kind = frame == TFH_FRAME_WAITS ? WAITS : OWN;
		if (frame == TFH_FRAME_USER || !s.name)
			s.name = r->name;
		s.user |= frame == TFH_FRAME_USER;
	}
	return s;
}

static int add_part(struct tfh_cover *c, uint32_t thread, int64_t t0, int64_t t1,
		    const struct state *s)
{
	struct part *last = c->part.n ? &c->part.v[c->part.n - 1] : NULL;
	struct part p = {t0, t1, thread, s->name, s->kind};

	if (t1 <= t0 || s->kind == NOTHING || !in_pause(c, thread, t0, t1))
		return 0;
	if (last && last->thread == thread && last->t1 == t0 && last->name == p.name &&
	    last->kind == p.kind) {
		last->t1 = t1;
		return 0;
	}
	return TFH_PUSH(c->part, p);
}

static int flatten(struct tfh_job *job, const struct range *r, size_t n)
{
	static const struct state none = {.t1 = INT64_MAX};
	struct state *open = malloc((NESTING + 1) * sizeof(*open));
	size_t depth = 0;
	int64_t t = n ? r[0].t0 : 0;
	int rc = open ? 0 : -ENOMEM;

	for (size_t i = 0; i <= n && !rc; i++) {
		int64_t next = i < n ? r[i].t0 : INT64_MAX;
		while (depth && open[depth - 1].t1 <= next && !rc) {
			const struct state *s = &open[--depth];
			rc = add_part(job->cover, r->thread, t, s->t1, s);
			t = s->t1 > t ? s->t1 : t;
		}
		if (i == n || rc)
			break;
		if (depth)
			rc = add_part(job->cover, r->thread, t, next, &open[depth - 1]);
		t = next > t ? next : t;
		if (depth < NESTING) {
			open[depth] = enter(job, &r[i], depth ? &open[depth - 1] : &none);
			depth++;
		}
	}
	free(open);
	return rc;
}

static int flatten_all(struct tfh_job *job)
{
	struct tfh_cover *c = job->cover;
	size_t i = 0;
	int rc = 0;

	for (uint32_t t = 0; t < job->feed->n_threads && !rc; t++) {
		size_t from = i;
		while (i < c->range.n && c->range.v[i].thread == t)
			i++;
		c->first[t] = c->part.n;
		if (i > from)
			rc = flatten(job, c->range.v + from, i - from);
	}
	c->first[job->feed->n_threads] = c->part.n;
	return rc;
}

/* ---- a process without a device ---- */

struct turn {
	int64_t t;
	int32_t own, exchange; /* +1 begins, -1 ends */
};

static int by_time(const void *a, const void *b, void *arg)
{
	const struct turn *x = a, *y = b;

	(void)arg;
	return x->t != y->t ? (x->t < y->t ? -1 : 1) : 0;
}

/* Ops of all threads, and exchanges where no thread executes ops. */
static int make_line(struct tfh_cover *c)
{
	TFH_VEC(struct turn) turn = {0};
	int32_t own = 0, exchange = 0;
	int rc = 0;

	for (size_t i = 0; i < c->line.n && !rc; i++)
		rc = TFH_PUSH(turn, (struct turn){c->line.v[i].t0, 1, 0}) ||
				     TFH_PUSH(turn, (struct turn){c->line.v[i].t1, -1, 0})
			     ? -ENOMEM
			     : 0;
	for (size_t i = 0; i < c->range.n && !rc; i++) {
		const struct range *r = &c->range.v[i];
		if (r->kind == TFT_RANGE_EXCHANGE)
			rc = TFH_PUSH(turn, (struct turn){r->t0, 0, 1}) ||
					     TFH_PUSH(turn, (struct turn){r->t1, 0, -1})
				     ? -ENOMEM
				     : 0;
	}
	c->line.n = 0;
	if (turn.n)
		qsort_r(turn.v, turn.n, sizeof(*turn.v), by_time, NULL);
	for (size_t i = 0; i + 1 < turn.n && !rc; i++) {
		own += turn.v[i].own;
		exchange += turn.v[i].exchange;
		struct part p = {turn.v[i].t, turn.v[i + 1].t, 0, 0,
				 own > 0	? OWN
				 : exchange > 0 ? EXCHANGES
						: NOTHING};
		if (p.t1 > p.t0 && p.kind != NOTHING)
			rc = TFH_PUSH(c->line, p);
	}
	free(turn.v);
	return rc;
}

/* ---- making it ---- */

static int make(struct tfh_job *job)
{
	struct tfh_cover *c = job->cover;
	uint32_t threads = job->feed->n_threads;
	size_t n = 0;
	int rc;

	if (job->cpu_only && (rc = make_line(c)))
		return rc;
	c->known = calloc(c->names + 1, sizeof(*c->known));
	c->first = calloc(threads + 1, sizeof(*c->first));
	c->site[0] = calloc(c->names + 1, sizeof(**c->site));
	c->site[1] = calloc(c->names + 1, sizeof(**c->site));
	if (!c->known || !c->first || !c->site[0] || !c->site[1])
		return -ENOMEM;
	if (c->call.n)
		qsort_r(c->call.v, c->call.n, sizeof(*c->call.v), by_begin, NULL);
	rc = find_pauses(c, threads);
	for (size_t i = 0; i < c->call.n; i++)
		if (c->call.v[i].launch)
			c->call.v[n++] = c->call.v[i];
	c->call.n = n;
	n = 0;
	for (size_t i = 0; i < c->range.n && !rc; i++) {
		const struct range *r = &c->range.v[i];
		if (in_pause(c, r->thread, r->t0, r->t1))
			c->range.v[n++] = *r;
	}
	c->range.n = rc ? c->range.n : n;
	if (c->range.n)
		qsort_r(c->range.v, c->range.n, sizeof(*c->range.v), by_place, NULL);
	return rc ? rc : flatten_all(job);
}

int tfh_cover_find(struct tfh_job *job, struct tfh_err *err)
{
	const struct tfh_feed *f = job->feed;
	struct tfh_event ev;
	int rc;

	if (!f->imported || !job->ranges)
		return 0;
	job->cover = calloc(1, sizeof(*job->cover));
	if (!job->cover)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	rc = f->rewind(f->arg, job->process, err);
	if (rc)
		return rc;
	while (!rc && f->next(f->arg, &ev))
		rc = ev.thread < f->n_threads ? add_event(job, &ev) : 0;
	if (!rc && (rc = f->error(f->arg, err)))
		return rc;
	if (!rc)
		rc = make(job);
	struct tfh_cover *c = job->cover;
	free(c->call.v);
	free(c->range.v);
	free(c->pause.v);
	free(c->known);
	c->call.v = c->pause.v = NULL;
	c->range.v = NULL;
	c->known = NULL;
	return rc ? tfh_err_set(err, rc, "out of memory") : 0;
}

void tfh_cover_free(struct tfh_cover *c)
{
	if (!c)
		return;
	free(c->part.v);
	free(c->line.v);
	free(c->pending.v);
	free(c->first);
	free(c->site[0]);
	free(c->site[1]);
	free(c->call.v);
	free(c->range.v);
	free(c->pause.v);
	free(c->known);
	free(c);
}

/* ---- asking it ---- */

/* The first part of [lo, hi) that ends after t. */
static size_t part_at(const struct part *v, size_t lo, size_t hi, int64_t t)
{
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (v[mid].t1 <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Time of each kind in [t0, t1). What is neither waiting nor covered by an op for less than 50 us
 * between two ops that launch, or at the edge of the pause beside one, is the price of calling. */
static void weigh(const struct tfh_cover *c, uint32_t thread, int64_t t0, int64_t t1,
		  int64_t ns[KINDS])
{
	size_t end = c->first[thread + 1];
	size_t i = part_at(c->part.v, c->first[thread], end, t0);
	int64_t from = t0, between[KINDS] = {0}; /* since the last op that launches */

	memset(ns, 0, KINDS * sizeof(*ns));
	for (;; i++) {
		const struct part *p = i < end && c->part.v[i].t0 < t1 ? &c->part.v[i] : NULL;
		int64_t a = p && p->t0 > t0 ? p->t0 : p ? t0 : t1, b = p && p->t1 < t1 ? p->t1 : t1;
		if (!p || p->kind == ISSUES) {
			bool beside = (p || ns[ISSUES]) && a - from < TFH_GAP_NS && !between[WAITS];
			if (beside)
				ns[ISSUES] += a - from;
			for (int k = 0; k < KINDS && !beside; k++)
				ns[k] += between[k];
			memset(between, 0, sizeof(between));
			if (!p)
				return;
			ns[ISSUES] += b - a;
			from = b;
		} else {
			between[p->kind] += b - a;
		}
	}
}

enum tfh_covered tfh_covered_by(const struct tfh_job *job, uint32_t thread, int64_t t0, int64_t t1)
{
	static const enum tfh_covered is[KINDS] = {[OWN] = TFH_COVERED_CODE,
						   [WAITS] = TFH_COVERED_OTHER,
						   [EXCHANGES] = TFH_COVERED_EXCHANGE};
	int64_t ns[KINDS];
	int most = NOTHING;

	if (!job->cover || thread >= job->feed->n_threads || t1 <= t0)
		return TFH_COVERED_NOT;
	weigh(job->cover, thread, t0, t1, ns);
	for (int k = ISSUES; k < KINDS; k++)
		if (ns[k] > ns[most] || !most)
			most = k;
	if (ns[most] * 2 < t1 - t0)
		return TFH_COVERED_NOT;
	if (most == ISSUES)
		return t1 - t0 < DISPATCH_NS ? TFH_COVERED_LAUNCH : TFH_COVERED_OTHER;
	return is[most];
}

static bool has_part(const struct tfh_cover *c, uint32_t thread, int64_t t0, int64_t t1)
{
	size_t end = c->first[thread + 1], i = part_at(c->part.v, c->first[thread], end, t0);

	while (i < end && c->part.v[i].t0 < t1 && c->part.v[i].kind == NOTED)
		i++;
	return i < end && c->part.v[i].t0 < t1;
}

uint32_t tfh_cover_thread(const struct tfh_job *job, uint32_t thread, int64_t t0, int64_t t1)
{
	const struct tfh_feed *f = job->feed;
	uint32_t other = thread;

	if (!job->cover || thread >= f->n_threads || has_part(job->cover, thread, t0, t1))
		return thread;
	for (uint32_t i = 0; i < f->n_threads; i++) {
		if (f->threads[i].process != job->process || !has_part(job->cover, i, t0, t1) ||
		    tfh_covered_by(job, i, t0, t1) != TFH_COVERED_CODE)
			continue;
		if (other != thread)
			return thread;
		other = i;
	}
	return other;
}

enum tfh_covered tfh_covered_line(const struct tfh_job *job, int64_t t0, int64_t t1, int64_t *until)
{
	const struct tfh_cover *c = job->cover;
	size_t i = c ? part_at(c->line.v, 0, c->line.n, t0) : 0;

	*until = t1;
	if (!c || i >= c->line.n || c->line.v[i].t0 >= t1)
		return TFH_COVERED_NOT;
	if (c->line.v[i].t0 > t0) {
		*until = c->line.v[i].t0;
		return TFH_COVERED_NOT;
	}
	*until = c->line.v[i].t1 < t1 ? c->line.v[i].t1 : t1;
	return c->line.v[i].kind == OWN ? TFH_COVERED_CODE : TFH_COVERED_EXCHANGE;
}

void tfh_cover_count(struct tfh_job *job, uint32_t thread, int64_t t0, int64_t t1,
		     enum tfh_cause cause)
{
	struct tfh_cover *c = job->cover;

	if (!c || thread >= job->feed->n_threads || t1 <= t0)
		return;
	for (size_t i = part_at(c->part.v, c->first[thread], c->first[thread + 1], t0);
	     i < c->first[thread + 1] && c->part.v[i].t0 < t1; i++) {
		const struct part *p = &c->part.v[i];
		struct part x = {p->t0 > t0 ? p->t0 : t0, p->t1 < t1 ? p->t1 : t1, 0, p->name,
				 cause != TFH_CAUSE_HOST_PYTHON};
		if (p->name < c->names && TFH_PUSH(c->pending, x))
			return; /* a line less of evidence */
	}
}

void tfh_cover_settle(struct tfh_job *job, bool counts)
{
	struct tfh_cover *c = job->cover;

	for (size_t i = 0; c && counts && i < c->pending.n; i++) {
		const struct part *p = &c->pending.v[i];
		c->site[p->kind][p->name] += p->t1 - p->t0;
	}
	if (c)
		c->pending.n = 0;
}

void tfh_cover_restart(struct tfh_job *job)
{
	struct tfh_cover *c = job->cover;

	for (int i = 0; c && i < 2; i++)
		memset(c->site[i], 0, (c->names + 1) * sizeof(**c->site));
}

uint32_t tfh_cover_sites(const struct tfh_job *job, enum tfh_cause cause,
			 struct tfh_pause_site out[TFH_PAUSE_SITES])
{
	const struct tfh_cover *c = job->cover;
	const int64_t *site = c ? c->site[cause != TFH_CAUSE_HOST_PYTHON] : NULL;
	uint32_t top[TFH_PAUSE_SITES] = {0}, n = 0;

	for (uint32_t i = 1; site && i < c->names; i++) {
		uint32_t at = n;
		while (at > 0 && site[i] > site[top[at - 1]])
			at--;
		if (site[i] <= 0 || at >= TFH_PAUSE_SITES)
			continue;
		n += n < TFH_PAUSE_SITES;
		memmove(top + at + 1, top + at, (n - at - 1) * sizeof(*top));
		top[at] = i;
	}
	for (uint32_t i = 0; i < n; i++) {
		out[i].ns = site[top[i]];
		out[i].name = job->feed->name(job->feed->arg, job->process, TFT_NAME_STRING, top[i],
					      NULL, NULL);
	}
	return n;
}

int64_t tfh_cover_ns(const struct tfh_job *job, enum tfh_cause cause)
{
	const struct tfh_cover *c = job->cover;
	int64_t ns = 0;

	for (uint32_t i = 1; c && i < c->names; i++)
		ns += c->site[cause != TFH_CAUSE_HOST_PYTHON][i];
	return ns;
}
