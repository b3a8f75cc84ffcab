/*
 * What a thread did in its pauses between calls, from the ranges of another profiler's trace:
 * frameworks' ops and Python functions. Only ranges that overlap a pause of 50 us or more are kept;
 * calls that wait (for a batch, the device, memory) are like pauses, since ranges name the place of
 * the call. At each moment the innermost range counts. Of nested ops the outermost counts, as the
 * whole op either launches or computes on the host. A range that the program named only supplies
 * its name.
 *
 * A process without a device has a second line: when any of its threads executed ops, and when one
 * communicated with other ranks while none did.
 */
#include <stdlib.h>

#include "base/bisect.h"
#include "base/text.h"
#include "judge/facts/cover.h"
#include "judge/facts/sample_shares.h"
#include "judge/stats.h"

struct cover_call {
	int64_t t0, t1;
	uint32_t thread;
	bool launch, waits;
};

struct range {
	int64_t t0, t1;
	uint32_t thread, name;
	uint8_t kind; /* enum tft_range */
};

/* What a name shows, looked up when it is first needed. */
struct name {
	uint8_t frame; /* enum tfh_frame */
	uint8_t feeds; /* enum tfh_role: of a range in which the program prepares its batch */
	bool sleeps, looked_at, compiles;
	struct tfh_role_frame role;
};

/* State while a cover is made. */
struct maker {
	const struct tfh_facts *facts;
	struct tfh_cover *cover;
	TFH_VEC(struct cover_call) call;
	TFH_VEC(struct range) range;
	TFH_VEC(struct cover_call) pause;
	struct name *known;
	struct tfh_role_frame *frame; /* of the functions of Python that are open */
	int64_t least;		      /* ns; shorter ranges are not kept */
};

static const char *text_of(const struct maker *m, uint32_t name)
{
	const struct tfh_feed *f = m->facts->feed;
	const char *s = f->name(f->arg, m->facts->process, TFT_NAME_STRING, name, NULL, NULL);

	return s ? s : "";
}

static const struct name *frame_of(struct maker *m, uint32_t name)
{
	static const struct name none = {.frame = TFH_FRAME_LIBRARY, .role.library = true};
	struct name *k = &m->known[name];

	if (!name || name >= m->cover->names)
		return &none;
	if (k->frame == TFH_FRAME_NEW) {
		const char *s = text_of(m, name);
		k->frame = (uint8_t)tfh_frame_of(s);
		k->sleeps = k->frame == TFH_FRAME_WAITS && tfh_frame_sleeps(s);
		k->role = tfh_frame_role(s);
		if (k->role.library && k->frame == TFH_FRAME_USER)
			k->frame = TFH_FRAME_LIBRARY;
	}
	return k;
}

/* The name of a range that is no function of Python. */
static const struct name *note_of(struct maker *m, uint32_t name)
{
	static const struct name none = {.looked_at = true};
	struct name *k = &m->known[name];

	if (!name || name >= m->cover->names)
		return &none;
	if (!k->looked_at) {
		k->looked_at = true;
		k->compiles = tfh_names_compiling(text_of(m, name));
		k->feeds = (uint8_t)tfh_role_of_range(text_of(m, name));
	}
	return k;
}

/* ---- selecting ranges ---- */

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
	const struct cover_call *x = a, *y = b;

	(void)arg;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->t0 != y->t0 ? (x->t0 < y->t0 ? -1 : 1) : 0;
}

static void drop_short(struct maker *m)
{
	size_t n = 0;

	m->least = m->least ? m->least * 2 : TFH_US;
	for (size_t i = 0; i < m->range.n; i++)
		if (m->range.v[i].t1 - m->range.v[i].t0 >= m->least)
			m->range.v[n++] = m->range.v[i];
	m->range.n = n;
}

static int add_event(struct maker *m, const struct tfh_event *ev)
{
	struct tfh_piece p;

	if (ev->kind == TFT_RANGE && ev->w[0] < UINT32_MAX) {
		struct range r = {ev->t0, ev->t1, ev->thread, (uint32_t)ev->w[0],
				  (uint8_t)ev->w[1]};
		while (m->range.n >= TFH_FACTS_RANGES)
			drop_short(m);
		m->cover->python |= r.kind == TFT_RANGE_PYTHON;
		if (r.name >= m->cover->names)
			m->cover->names = r.name + 1;
		return ev->t1 - ev->t0 >= m->least ? TFH_PUSH(m->range, r) : 0;
	}
	if (!tfh_piece_of(ev, &p) || p.passive)
		return 0;
	struct cover_call x = {
		p.t0, p.t1, p.thread, tfh_family_issues(p.family),
		p.activity == TFH_ACTIVITY_INPUT || p.activity == TFH_ACTIVITY_SYNC ||
			p.activity == TFH_ACTIVITY_ALLOC || p.activity == TFH_ACTIVITY_COPY};
	if (m->facts->cpu_only && p.activity == TFH_ACTIVITY_EXEC) {
		struct tfh_cover_part e = {p.t0, p.t1, 0, 0, TFH_COVER_OWN, 0};
		if (TFH_PUSH(m->cover->line, e))
			return -ENOMEM;
	}
	return TFH_PUSH(m->call, x);
}

/* Finds the pauses of every thread, including the time before its first call and after its last. */
static int find_pauses(struct maker *m, uint32_t threads)
{
	size_t i = 0;
	int rc = 0;

	for (uint32_t t = 0; t < threads && !rc; t++) {
		int64_t end = INT64_MIN / 2;
		for (; i < m->call.n && m->call.v[i].thread == t && !rc; i++) {
			const struct cover_call *x = &m->call.v[i];
			if (x->waits)
				continue;
			if (x->t0 - end >= TFH_GAP_NS)
				rc = TFH_PUSH(m->pause,
					      (struct cover_call){end, x->t0, t, false, false});
			end = x->t1 > end ? x->t1 : end;
		}
		if (!rc)
			rc = TFH_PUSH(m->pause,
				      (struct cover_call){end, INT64_MAX, t, false, false});
	}
	return rc;
}

/* Index of the first element that ends after t on that thread, or belongs to a later thread. */
static size_t after(const struct cover_call *v, size_t n, uint32_t thread, int64_t t)
{
	return TFH_BISECT(i, 0, n, v[i].thread < thread || (v[i].thread == thread && v[i].t1 <= t));
}

static bool in_pause(const struct maker *m, uint32_t thread, int64_t t0, int64_t t1)
{
	size_t i = after(m->pause.v, m->pause.n, thread, t0);

	return i < m->pause.n && m->pause.v[i].thread == thread && m->pause.v[i].t0 < t1;
}

/* Whether a launch is inside a range. m->call must contain only launches. */
static bool launches_in(const struct maker *m, const struct range *r)
{
	size_t i = after(m->call.v, m->call.n, r->thread, r->t0);

	return i < m->call.n && m->call.v[i].thread == r->thread && m->call.v[i].t0 < r->t1;
}

/* ---- from ranges to the activity at each moment ---- */

struct state {
	int64_t t1;
	uint32_t name, frames;	 /* frames: open functions of Python */
	uint8_t kind, at, feeds; /* feeds: TFH_AT() that a range around it was named for; 0: none */
	bool op, user, row, compiles; /* row: one of the functions has a row of places.def */
};

/* What a thread does, by the Python functions that are open, with the same table as for samples.
 * But roles that mean computing or other Python code on the host are ignored here: the trace has
 * ranges for the ops themselves. */
static uint8_t at_of(const struct maker *m, const struct state *s, const struct name *innermost)
{
	bool waits = innermost->frame == TFH_FRAME_WAITS;
	enum tfh_role role = s->row ? tfh_role_of_frames(m->frame, s->frames) : TFH_ROLE_NONE;

	switch (tfh_role_cause(role)) {
	case TFH_CAUSE_HOST_PYTHON:
	case TFH_CAUSE_HOST_UNKNOWN:
	case TFH_CAUSE_COMPUTE_CPU:
		role = TFH_ROLE_NONE;
		break;
	default:
		if (tfh_role_waits(role) && !waits)
			role = TFH_ROLE_NONE;
	}
	if (role != TFH_ROLE_NONE)
		return (uint8_t)TFH_AT(role, waits);
	return innermost->sleeps ? TFT_STATE_SLEEP : 0;
}

static bool is_input(uint8_t at)
{
	return tfh_cause_part(tfh_role_cause(tfh_at_role(at))) == TFH_PART_INPUT;
}

static void enter_python(struct maker *m, const struct range *r, struct state *s)
{
	const struct name *k = frame_of(m, r->name);
	enum tfh_frame frame = k->frame;

	m->frame[s->frames++] = k->role;
	s->row |= k->role.row != 0;
	if (!s->compiles)
		s->at = at_of(m, s, k);
	if (s->feeds && !is_input(s->at)) /* it waits, or computes, for the batch */
		s->at = s->feeds;
	if (!s->op || s->at) {
		bool waits = frame == TFH_FRAME_WAITS && !s->compiles && !s->feeds;
		s->kind = waits ? TFH_COVER_WAITS : TFH_COVER_OWN;
	}
	/* What a compiler traces says less than what called it. */
	if (s->name && tfh_role_compiles(tfh_at_role(s->at)))
		return;
	if (frame == TFH_FRAME_USER || frame == TFH_FRAME_FEEDS || !s->name)
		s->name = r->name;
	s->user = frame == TFH_FRAME_USER || (s->user && frame != TFH_FRAME_FEEDS);
}

/* What all of a range is for, by its name, if nothing is launched in it. */
static void enter_named(struct maker *m, const struct range *r, struct state *s)
{
	const struct name *k = note_of(m, r->name);

	if (s->compiles || (!k->compiles && !k->feeds) || launches_in(m, r))
		return;
	s->compiles = k->compiles;
	if (k->compiles) {
		s->at = TFH_AT(TFH_ROLE_COMPILE, false);
	} else if (r->kind == TFT_RANGE_NOTE) {
		s->feeds = TFH_AT(k->feeds, false);
		s->at = s->at ? s->at : s->feeds;
	}
}

static struct state enter(struct maker *m, const struct range *r, const struct state *around)
{
	struct state s = *around;
	uint8_t kind = r->kind;

	s.t1 = r->t1;
	if (r->kind != TFT_RANGE_PYTHON)
		enter_named(m, r, &s);
	if (kind == TFT_RANGE_EXCHANGE_OP)
		kind = m->facts->cpu_only ? TFT_RANGE_EXCHANGE : TFT_RANGE_OP;
	if (kind == TFT_RANGE_NOTE) {
		s.kind = s.compiles || s.feeds	       ? TFH_COVER_OWN
			 : s.kind == TFH_COVER_NOTHING ? TFH_COVER_NOTED
						       : s.kind;
		s.name = s.op ? s.name : r->name;
	} else if (kind == TFT_RANGE_EXCHANGE) {
		s.kind = TFH_COVER_EXCHANGES;
		s.name = s.user ? s.name : r->name;
	} else if (kind == TFT_RANGE_OP) {
		/* A short op counts as launching: its time is overhead of the call. */
		bool issues = r->t1 - r->t0 < TFH_GAP_NS || launches_in(m, r);
		s.kind = s.at	  ? TFH_COVER_OWN
			 : s.op	  ? s.kind
			 : issues ? TFH_COVER_ISSUES
				  : TFH_COVER_OWN;
		s.name = s.op || s.user ? s.name : r->name;
		s.op = true;
	} else {
		enter_python(m, r, &s);
	}
	return s;
}

static int add_part(struct maker *m, uint32_t thread, int64_t t0, int64_t t1, const struct state *s)
{
	struct tfh_cover_part *last =
		m->cover->part.n ? &m->cover->part.v[m->cover->part.n - 1] : NULL;
	struct tfh_cover_part p = {t0, t1, thread, s->name, s->kind, s->at};

	if (t1 <= t0 || s->kind == TFH_COVER_NOTHING || !in_pause(m, thread, t0, t1))
		return 0;
	if (last && last->thread == thread && last->t1 == t0 && last->name == p.name &&
	    last->kind == p.kind && last->at == p.at) {
		last->t1 = t1;
		return 0;
	}
	return TFH_PUSH(m->cover->part, p);
}

static int flatten(struct maker *m, const struct range *r, size_t n)
{
	static const struct state none = {.t1 = INT64_MAX};
	struct state *open = malloc((TFH_FACTS_RANGE_DEPTH + 1) * sizeof(*open));
	size_t depth = 0;
	int64_t t = n ? r[0].t0 : 0;
	int rc = open ? 0 : -ENOMEM;

	for (size_t i = 0; i <= n && !rc; i++) {
		int64_t next = i < n ? r[i].t0 : INT64_MAX;
		while (depth && open[depth - 1].t1 <= next && !rc) {
			const struct state *s = &open[--depth];
			rc = add_part(m, r->thread, t, s->t1, s);
			t = s->t1 > t ? s->t1 : t;
		}
		if (i == n || rc)
			break;
		if (depth)
			rc = add_part(m, r->thread, t, next, &open[depth - 1]);
		t = next > t ? next : t;
		if (depth < TFH_FACTS_RANGE_DEPTH) {
			open[depth] = enter(m, &r[i], depth ? &open[depth - 1] : &none);
			depth++;
		}
	}
	free(open);
	return rc;
}

static int flatten_all(struct maker *m)
{
	size_t i = 0;
	int rc = 0;

	for (uint32_t t = 0; t < m->facts->feed->n_threads && !rc; t++) {
		size_t from = i;
		while (i < m->range.n && m->range.v[i].thread == t)
			i++;
		m->cover->first[t] = m->cover->part.n;
		if (i > from)
			rc = flatten(m, m->range.v + from, i - from);
	}
	m->cover->first[m->facts->feed->n_threads] = m->cover->part.n;
	return rc;
}

/* ---- a process without a device ---- */

struct line_change {
	int64_t t;
	int32_t own, exchange; /* +1: one begins, -1: one ends */
};
struct line_changes {
	struct line_change *v;
	size_t n, cap;
};

static int by_time(const void *a, const void *b, void *arg)
{
	const struct line_change *x = a, *y = b;

	(void)arg;
	return x->t != y->t ? (x->t < y->t ? -1 : 1) : 0;
}

/* A part that begins at t0 and ends at t1: of a thread's ops (own), or of communication. */
static int add_changes(struct line_changes *of, int64_t t0, int64_t t1, bool own)
{
	int32_t exchange = !own;

	return TFH_PUSH(*of, (struct line_change){t0, own, exchange}) ||
			       TFH_PUSH(*of, (struct line_change){t1, -own, -exchange})
		       ? -ENOMEM
		       : 0;
}

/* Merges the ops of all threads into one line; communication counts while no thread executes
 * ops. */
static int make_line(struct maker *m)
{
	struct line_changes change = {0};
	int32_t own = 0, exchange = 0;
	int rc = 0;

	for (size_t i = 0; i < m->cover->line.n && !rc; i++)
		rc = add_changes(&change, m->cover->line.v[i].t0, m->cover->line.v[i].t1, true);
	for (size_t i = 0; i < m->range.n && !rc; i++) {
		const struct range *r = &m->range.v[i];
		if (r->kind == TFT_RANGE_EXCHANGE)
			rc = add_changes(&change, r->t0, r->t1, false);
	}
	m->cover->line.n = 0;
	if (change.n)
		qsort_r(change.v, change.n, sizeof(*change.v), by_time, NULL);
	for (size_t i = 0; i + 1 < change.n && !rc; i++) {
		own += change.v[i].own;
		exchange += change.v[i].exchange;
		struct tfh_cover_part p = {change.v[i].t,
					   change.v[i + 1].t,
					   0,
					   0,
					   own > 0	  ? TFH_COVER_OWN
					   : exchange > 0 ? TFH_COVER_EXCHANGES
							  : TFH_COVER_NOTHING,
					   0};
		if (p.t1 > p.t0 && p.kind != TFH_COVER_NOTHING)
			rc = TFH_PUSH(m->cover->line, p);
	}
	free(change.v);
	return rc;
}

/* ---- construction ---- */

static int make(struct maker *m)
{
	struct tfh_cover *c = m->cover;
	uint32_t threads = m->facts->feed->n_threads;
	size_t n = 0;
	int rc;

	if (m->facts->cpu_only && (rc = make_line(m)))
		return rc;
	m->known = calloc(c->names + 1, sizeof(*m->known));
	c->first = calloc(threads + 1, sizeof(*c->first));
	m->frame = calloc(TFH_FACTS_RANGE_DEPTH + 1, sizeof(*m->frame));
	if (!m->known || !m->frame || !c->first)
		return -ENOMEM;
	if (m->call.n)
		qsort_r(m->call.v, m->call.n, sizeof(*m->call.v), by_begin, NULL);
	rc = find_pauses(m, threads);
	for (size_t i = 0; i < m->call.n; i++)
		if (m->call.v[i].launch)
			m->call.v[n++] = m->call.v[i];
	m->call.n = n;
	n = 0;
	for (size_t i = 0; i < m->range.n && !rc; i++) {
		const struct range *r = &m->range.v[i];
		if (in_pause(m, r->thread, r->t0, r->t1))
			m->range.v[n++] = *r;
	}
	m->range.n = rc ? m->range.n : n;
	if (m->range.n)
		qsort_r(m->range.v, m->range.n, sizeof(*m->range.v), by_place, NULL);
	return rc ? rc : flatten_all(m);
}

static int look_at_ranges(struct maker *m, struct tfh_err *err)
{
	const struct tfh_feed *f = m->facts->feed;
	struct tfh_event ev;
	int rc = f->rewind(f->arg, m->facts->process, err);

	if (rc)
		return rc;
	while (!rc && f->next(f->arg, &ev))
		rc = ev.thread < f->n_threads ? add_event(m, &ev) : 0;
	if (!rc && (rc = f->error(f->arg, err)))
		return rc;
	if (!rc)
		rc = make(m);
	return rc ? tfh_err_set(err, rc, "out of memory") : 0;
}

int tfh_cover_find(const struct tfh_facts *facts, struct tfh_cover **out, struct tfh_err *err)
{
	struct maker m = {.facts = facts};
	int rc;

	*out = NULL;
	if (!facts->feed->imported || !facts->ranges)
		return 0;
	m.cover = *out = calloc(1, sizeof(**out));
	if (!m.cover)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	m.cover->facts = facts;
	rc = look_at_ranges(&m, err);
	free(m.call.v);
	free(m.range.v);
	free(m.pause.v);
	free(m.known);
	free(m.frame);
	return rc;
}

void tfh_cover_free(struct tfh_cover *c)
{
	if (!c)
		return;
	free(c->part.v);
	free(c->line.v);
	free(c->first);
	free(c);
}
