/* Launches that follow another launch without a pause. Most calls by far are of this kind, so they
 * are counted in bulk. */
#include <errno.h>

#include "judge/facts/survey.h"

/* Makes room for n more tokens; for the maximum at once if the run is likely to have that many. */
static int token_room(struct tfh_facts *facts, uint32_t n)
{
	size_t want = facts->token.n + n;

	if (want <= facts->token.cap)
		return 0;
	want = want < TFH_FACTS_TOKENS_FEW ? want * 2 : TFH_FACTS_TOKENS;
	return tfh_vec_reserve((void **)&facts->token.v, &facts->token.cap, want,
			       sizeof(*facts->token.v));
}

/* How many of the next n launches are kept as tokens. */
static uint32_t kept(struct tfh_facts *facts, uint32_t n)
{
	size_t room = TFH_FACTS_TOKENS - facts->token.n;

	facts->late_launch |= n > room;
	return n < room ? n : (uint32_t)room;
}

/* Keeps the tokens of n entries as long as there is room. */
static int keep_entries(struct tfh_facts *facts, const struct tfh_entry *x, uint32_t n)
{
	uint32_t kind = 0;

	n = kept(facts, n);
	if (token_room(facts, n))
		return -ENOMEM;
	struct tfh_token *t = &facts->token.v[facts->token.n];
	for (uint32_t i = 0; i < n; i++) {
		if (!i || x[i].ev != x[i - 1].ev)
			kind = tfh_launch_kind(facts, x[i].ev, x->thread);
		if (kind == UINT32_MAX)
			return -ENOMEM;
		t[i] = tfh_token_make(x[i].t0, x[i].t1, kind);
	}
	if (n)
		tfh_note_order(facts, t); /* they are in order among themselves */
	facts->token.n += n;
	return 0;
}

/* The same for a row with these times. */
static int keep_row(struct tfh_facts *facts, const struct tfh_launch_row *r, const int64_t *t0,
		    const int64_t *t1)
{
	uint32_t n = kept(facts, r->n), i = 0;

	if (token_room(facts, n))
		return -ENOMEM;
	struct tfh_token *t = &facts->token.v[facts->token.n];
	for (uint32_t p = 0, to = 0; i < n; p++) {
		uint32_t kind = tfh_launch_kind(facts, r->part[p].ev, r->thread);
		if (kind == UINT32_MAX)
			return -ENOMEM;
		for (to += r->part[p].n; i < to && i < n; i++)
			t[i] = tfh_token_make(t0[i], t1[i], kind);
	}
	if (n)
		tfh_note_order(facts, t);
	facts->token.n += n;
	return 0;
}

static void note_last_launch(struct tfh_facts *facts, const struct tfh_event *ev, int64_t t1)
{
	facts->last_launch[ev->stream % TFH_FACTS_LAST_LAUNCHES] =
		(struct tfh_last_call){ev->stream, (uint32_t)ev->w[0], t1};
}

/* Counts n launches of one thread, which ended at `to`. */
static void count(struct tfh_facts *facts, uint32_t thread, uint32_t n, int64_t to)
{
	struct tfh_thread_use *use = &facts->thread[thread];

	facts->events += n;
	facts->last = to > facts->last ? to : facts->last;
	facts->launches += n;
	use->driver += n;
	use->launches += n;
	use->last = use->outermost = to;
	if (facts->samples)
		tfh_stack_samples_went_on(facts->samples, thread, to);
}

/* A pause or a call of at least this length is not counted in bulk. */
static int64_t too_long(const struct tfh_facts *facts)
{
	return facts->long_ns < TFH_FACTS_SAMPLE_PAUSE_NS ? facts->long_ns
							  : TFH_FACTS_SAMPLE_PAUSE_NS;
}

/* Whether the stack of such a launch shows what is not yet known of its thread. */
static bool shows_stack(const struct tfh_facts *facts, uint32_t thread, const struct tfh_event *ev)
{
	const struct tfh_thread_use *use = &facts->thread[thread];

	return ev->stack && !use->python && use->stacks < TFH_FACTS_PYTHON_STACKS;
}

/* How many calls come before the next one whose end is kept. */
static uint64_t next_kept(const struct tfh_facts *facts)
{
	const uint64_t apart = TFH_FACTS_CALLS_APART;

	return (apart - facts->events % apart) % apart;
}

/* Takes n launches of one thread. */
static int take_entries(struct tfh_facts *facts, const struct tfh_entry *x, uint32_t n)
{
	int rc = keep_entries(facts, x, n);

	for (uint64_t i = next_kept(facts); i < n && !rc; i += TFH_FACTS_CALLS_APART)
		rc = TFH_PUSH(facts->call_at, x[i].t1);
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = tfh_quiet_until(facts, x[i].t1);
	note_last_launch(facts, x[n - 1].ev, x[n - 1].t1);
	count(facts, x->thread, n, x[n - 1].t1);
	return rc;
}

/* Takes a row. The times of its launches are read only if something is kept of single ones. */
static int take_row(struct tfh_facts *facts, const struct tfh_launch_row *r)
{
	const struct tfh_feed *f = facts->feed;
	bool keeps = facts->token.n < TFH_FACTS_TOKENS, quiet;
	int64_t t0[TFH_LAUNCH_ROW], t1[TFH_LAUNCH_ROW];
	uint64_t at = next_kept(facts);
	int rc = 0;

	quiet = r->apart >= facts->quiet_ns || r->first - facts->launched >= facts->quiet_ns;
	if (keeps || quiet || at < r->n)
		f->row_times(f->arg, t0, t1);
	if (keeps)
		rc = keep_row(facts, r, t0, t1);
	else
		facts->late_launch = true;
	for (; at < r->n && !rc; at += TFH_FACTS_CALLS_APART)
		rc = TFH_PUSH(facts->call_at, t1[at]);
	for (uint32_t i = 0; quiet && i < r->n && !rc; i++)
		rc = tfh_quiet_until(facts, t1[i]);
	facts->launched = r->t1;
	note_last_launch(facts, r->part[r->parts - 1].ev, r->t1);
	count(facts, r->thread, r->n, r->t1);
	f->take_row(f->arg);
	return rc;
}

static bool row_shows_stack(const struct tfh_facts *facts, const struct tfh_launch_row *r)
{
	for (uint32_t p = 0; p < r->parts; p++)
		if (shows_stack(facts, r->thread, r->part[p].ev))
			return true;
	return false;
}

/* Takes the following rows as long as there is no long pause before or in them. */
static int take_rows(struct tfh_facts *facts, uint32_t thread, int64_t to, uint64_t *launches)
{
	int64_t most = too_long(facts);
	const struct tfh_launch_row *r;
	int rc = 0;

	while (!rc && (r = tfh_feed_row(facts->feed)) && r->thread == thread && r->t0 >= to &&
	       r->first - to < most && r->apart < most && !row_shows_stack(facts, r)) {
		to = r->t1;
		*launches += r->n;
		rc = take_row(facts, r);
	}
	return rc;
}

int tfh_take_launches(struct tfh_facts *facts, const struct tfh_event *ev, uint64_t *launches)
{
	const struct tfh_feed *f = facts->feed;
	int64_t most = too_long(facts), to = ev->t1;
	uint32_t n, k = 0;
	const struct tfh_entry *x = tfh_feed_peek(f, &n);
	const uint32_t thread = ev->thread;

	for (; k < n && x[k].launch && x[k].thread == thread && x[k].t0 >= to &&
	       x[k].t1 >= x[k].t0 && x[k].t1 - to < most;
	     to = x[k++].t1) {
		bool other = !k || x[k].ev != x[k - 1].ev;
		if (other && shows_stack(facts, thread, x[k].ev))
			break;
		if (other && k)
			note_last_launch(facts, x[k - 1].ev, x[k - 1].t1);
	}
	*launches += k;
	tfh_feed_advance(f, k);
	int rc = k ? take_entries(facts, x, k) : 0;
	return rc || k < n ? rc : take_rows(facts, thread, to, launches);
}
