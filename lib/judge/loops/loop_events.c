#include "judge/loops/loop_events.h"

#include <ctype.h>
#include <errno.h>

#include "base/hash.h"
#include "judge/loops/fold.h"

/* The iterator of a group's last batch, counted from 1, and whether it has reported its end. */
struct event_source {
	uint32_t series;
	bool ended;
};

/* The reading positions: the next item of each source, and the event that has not ended. */
struct reader {
	const struct tfh_facts *facts;
	const struct tfh_loops *loops;
	tfh_loop_event_fn fn;
	void *arg;
	uint8_t thread;			 /* the main thread, by the number that tokens use */
	const struct tfh_exec *executed; /* functions or, if there are none, programs */
	size_t execs;
	size_t token, late, batch, exec, mark, rare;
	int64_t inside; /* end of the running function */
	struct tfh_node event;
	uint64_t same;		     /* the event's key before its launches are known */
	struct event_source *source; /* [groups] */
};

static uint64_t drives(const struct tfh_thread_use *u)
{
	return u->launches + u->execs + u->gets + u->driver;
}

/* The thread that executes programs, otherwise the one with most of the driving calls, or the
 * process' first thread if it makes a tenth of them. */
static uint8_t main_thread(const struct tfh_facts *facts)
{
	const struct tfh_feed *f = facts->feed;
	uint64_t all = 0, most = 0;
	uint32_t best = 0;

	if (facts->program.n)
		return tfh_token_thread(facts->program.v[0].thread);
	for (uint32_t i = 0; i < f->n_threads; i++)
		all += facts->thread[i].drives ? drives(&facts->thread[i]) : 0;
	for (uint32_t i = 0; i < f->n_threads; i++) {
		const struct tfh_thread_use *u = &facts->thread[i];
		bool first = f->threads[i].process == facts->process &&
			     f->threads[i].tid == f->processes[facts->process].pid;
		if (!u->drives || drives(u) < most)
			continue;
		best = i;
		most = first && drives(u) * TFH_LOOPS_MAIN_PART >= all ? UINT64_MAX : drives(u);
	}
	return tfh_token_thread(best);
}

static int end_event(struct reader *r, int64_t t)
{
	struct tfh_node *b = &r->event;

	if (!r->same)
		return 0;
	b->ns = t > b->t0 ? t - b->t0 : 0;
	b->key = b->kind == TFH_LOOP_EVENT_BURST ? tfh_hash_add(r->same, b->ops) : r->same;
	r->same = 0;
	return r->fn(r->arg, b);
}

static uint64_t key_of(uint8_t kind, uint64_t what)
{
	return tfh_hash_add(kind, what) | 1;
}

/* How likely an event begins a step: what the program itself reports comes first, then what feeds
 * the step. */
static uint8_t rank_of(uint8_t kind, uint64_t what)
{
	static const uint8_t rank[TFH_LOOP_EVENT_COUNT] = {
		[TFH_LOOP_EVENT_WAIT] = 1,     [TFH_LOOP_EVENT_COPY] = 2,
		[TFH_LOOP_EVENT_BURST] = 3,    [TFH_LOOP_EVENT_GRAPH] = 4,
		[TFH_LOOP_EVENT_FUNCTION] = 6, [TFH_LOOP_EVENT_BATCH] = 7,
		[TFH_LOOP_EVENT_MARK] = 8};

	return kind == TFH_LOOP_EVENT_COPY && what >> 8 == TFH_DIR_H2D ? 5 : rank[kind];
}

/* Begins an event of that kind at t, or continues the open one if it is the same and may
 * continue. */
static int event(struct reader *r, uint8_t kind, uint64_t what, int64_t t, bool goes_on)
{
	uint64_t key = key_of(kind, what);
	int rc;

	if (goes_on && r->same == key)
		return 0;
	t = t > r->event.t0 ? t : r->event.t0;
	rc = end_event(r, t);
	r->event = (struct tfh_node){
		.t0 = t, .n = 1, .kind = kind, .what = (uint32_t)what, .rank = rank_of(kind, what)};
	r->same = key;
	return rc;
}

static int take_token(struct reader *r, const struct tfh_token *t)
{
	const struct tfh_token_kind *k = tfh_kind_of(r->facts, t);
	uint64_t large =
		k->what >= TFH_LOOPS_COPY_BYTES; /* batches differ in size, numbers do not */
	int rc = 0;

	if (t->t0 >= r->inside && k->thread != r->thread)
		return 0;
	if (t->t0 >= r->inside) {
		if (tfh_is_launch(k))
			rc = event(r,
				   k->family == TFH_FAM_LAUNCH ? TFH_LOOP_EVENT_BURST
							       : TFH_LOOP_EVENT_GRAPH,
				   0, t->t0, true);
		else if (k->family == TFH_FAM_COPY)
			rc = event(r, TFH_LOOP_EVENT_COPY, (uint64_t)k->dir << 8 | large, t->t0,
				   true);
		else
			rc = event(r, TFH_LOOP_EVENT_WAIT, 0, t->t0, true);
	}
	if (tfh_is_launch(k)) {
		r->event.launches++;
		r->event.ops |= tfh_op_of(k);
	}
	return rc;
}

/* Takes the launches that begin before `until` as long as they only extend the open burst, which is
 * true of most tokens. */
static void take_burst(struct reader *r, int64_t until)
{
	const struct tfh_facts *f = r->facts;

	if (r->same != key_of(TFH_LOOP_EVENT_BURST, 0))
		return;
	const struct tfh_token *t = &f->token.v[r->token], *end = f->token.v + f->token.n;
	const struct tfh_token *same = NULL; /* one that was taken */
	for (const int64_t from = r->inside; t < end && t->t0 >= from && t->t0 < until; t++) {
		if (same && t->kind == same->kind)
			continue;
		const struct tfh_token_kind *k = tfh_kind_of(f, t);
		if (k->family != TFH_FAM_LAUNCH || k->thread != r->thread)
			break;
		r->event.ops |= tfh_op_of(k);
		same = t;
	}
	r->event.launches += (size_t)(t - &f->token.v[r->token]);
	r->token = (size_t)(t - f->token.v);
}

/* Hash of a function's name without its number, so that a retraced function is the same. */
static uint64_t stem_hash(const char *name, size_t n)
{
	while (n && (isdigit((unsigned char)name[n - 1]) || name[n - 1] == '_'))
		n--;
	return tfh_hash_bytes(name, n);
}

/* The get-next that a function itself calls; NULL: none. */
static const struct tfh_boundary *own_batch(const struct reader *r, const struct tfh_exec *x)
{
	const struct tfh_facts *f = r->facts;
	bool own = r->batch < f->batch.n && f->batch.v[r->batch].x0 == x->t0;

	return own ? &f->batch.v[r->batch] : NULL;
}

/* Ends an iterator that was never read beyond its last batch: if the number of batches is known,
 * Keras begins the next epoch with a new iterator and no end. */
static int end_silently(struct reader *r, const struct tfh_boundary *t, uint32_t group)
{
	struct event_source *last = &r->source[group];
	bool silent = last->series && last->series != t->series + 1 && !last->ended &&
		      !r->facts->series.v[t->series].goes_on;

	*last = (struct event_source){t->series + 1, t->end};
	return silent ? event(r, TFH_LOOP_EVENT_END, group, t->t0, false) : 0;
}

static int take_exec(struct reader *r, const struct tfh_exec *x)
{
	const struct tfh_boundary *batch = own_batch(r, x);
	/* Keras gives its train and test functions the same name. */
	uint32_t feeds = batch ? 1 + tfh_group_of(r->loops, batch) : 0;
	const char *name;
	size_t length;
	int rc = 0;

	if (x->t0 < r->inside)
		return 0;
	if (batch)
		rc = end_silently(r, batch, feeds - 1);
	if (batch && batch->end) { /* the iterator may also end in a function that finds no batch */
		r->inside = x->t1;
		return rc ? rc : event(r, TFH_LOOP_EVENT_END, feeds - 1, x->t0, false);
	}
	name = tfh_function_name(r->facts, x->name, &length);
	if (!rc)
		rc = event(r, TFH_LOOP_EVENT_FUNCTION, tfh_hash_add(stem_hash(name, length), feeds),
			   x->t0, false);
	r->event.what = x->name;
	r->event.feeds = feeds;
	r->inside = x->t1;
	return rc;
}

static int take_batch(struct reader *r, const struct tfh_boundary *t)
{
	uint32_t group = tfh_group_of(r->loops, t);
	int rc;

	if (t->t0 < r->inside)
		return 0;
	rc = end_silently(r, t, group);
	if (rc || t->more) /* accumulated: the step has begun */
		return rc;
	rc = event(r, t->end ? TFH_LOOP_EVENT_END : TFH_LOOP_EVENT_BATCH, group, t->t0, false);
	r->event.feeds = t->end ? 0 : group + 1;
	return rc;
}

/* Begin of the earliest remaining token; INT64_MAX: there is none. */
static int64_t next_token(const struct reader *r)
{
	const struct tfh_facts *f = r->facts;

	return r->token < f->token.n ? f->token.v[r->token].t0
	       : r->late < f->late.n ? f->late.v[r->late].t0
				     : INT64_MAX;
}

/* Takes the earliest item of all sources; 1: there was one. */
static int take_next(struct reader *r)
{
	const struct tfh_facts *f = r->facts;
	int64_t token = next_token(r);
	int64_t batch = r->batch < f->batch.n ? f->batch.v[r->batch].t0 : INT64_MAX;
	int64_t exec = r->exec < r->execs ? r->executed[r->exec].t0 : INT64_MAX;
	int64_t mark = r->mark < f->mark.n ? f->mark.v[r->mark].t0 : INT64_MAX;
	int64_t rare = r->rare < f->rare.n ? f->rare.v[r->rare].t0 : INT64_MAX;
	int64_t driver = token < rare ? token : rare;
	int64_t above = batch < mark ? batch : mark;
	int rc;

	above = above < exec ? above : exec;
	if (above == INT64_MAX && driver == INT64_MAX)
		return 0;
	if (mark <= above && above <= driver)
		rc = event(r, TFH_LOOP_EVENT_MARK, f->mark.v[r->mark++].eval, mark, false);
	else if (exec <= above && above <= driver)
		rc = take_exec(r, &r->executed[r->exec++]);
	else if (above <= driver)
		rc = take_batch(r, &f->batch.v[r->batch++]);
	else if (rare < token)
		rc = f->rare.v[r->rare++].saves ? event(r, TFH_LOOP_EVENT_SAVE, 0, rare, true) : 0;
	else
		rc = take_token(r, r->token < f->token.n ? &f->token.v[r->token++]
							 : &f->late.v[r->late++]);
	if (!rc)
		take_burst(r, above < rare ? above : rare);
	return rc ? rc : 1;
}

/* Another profiler waits for the device when it stops. That wait is not the program's, but what the
 * device does until then is work of the program's steps. */
static int64_t work_end(const struct tfh_facts *facts)
{
	const struct tfh_feed *f = facts->feed;
	const struct tfh_op *op;
	struct tfh_op room;
	struct tfh_err err;
	int64_t end = facts->last_work;

	if (!f->imported || !f->rewind_ops || tfh_feed_rewind_brief(f, facts->process, &err))
		return end;
	while ((op = tfh_feed_borrow_op(f, &room)))
		end = op->t1 > end ? op->t1 : end;
	return end;
}

int tfh_loop_events(const struct tfh_facts *facts, const struct tfh_loops *loops,
		    tfh_loop_event_fn fn, void *arg)
{
	struct reader r = {.facts = facts,
			   .loops = loops,
			   .fn = fn,
			   .arg = arg,
			   .thread = main_thread(facts),
			   .executed = facts->exec.n ? facts->exec.v : facts->program.v,
			   .execs = facts->exec.n ? facts->exec.n : facts->program.n,
			   .inside = INT64_MIN,
			   .event.t0 = INT64_MIN,
			   .source = tfh_big_array(loops->group.n + 1, sizeof(*r.source))};
	int rc = r.source ? 1 : -ENOMEM;

	for (size_t i = 0; rc > 0; tfh_big_pass(++i))
		rc = take_next(&r);
	tfh_big_free(r.source);
	return rc ? rc : end_event(&r, work_end(facts));
}
