/*
 * Finds the call of a correlation number by elimination. Candidates are the calls that may have
 * this rank in some order that their times allow. If times, neighbouring numbers with known calls,
 * or the op's stream leave only one, that is the call.
 *
 * Otherwise the op stays without a call, and one of the candidates is "unmatched": it belongs to
 * that op, but which one is not known. Unmatched calls stay among the candidates of the next
 * numbers, until as many calls as are unmatched have been recognised as such, or could no longer
 * come next.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

#include "model/ops/calls_by_order.h"

/* bound on calls waiting for their op, in case the host is far ahead of the device */
#define MOST_CALLS (1u << 17)
#define CANDIDATES 64u
#define TOLERANCE_NS 5000
/* A call of the CUDA runtime takes its correlation number before it calls the driver, at most so
 * much earlier. */
#define AHEAD_NS 5000

/* ---- streams ---- */

static uint32_t place_of(const struct tfh_streams *s, uint32_t device)
{
	return (uint32_t)tfh_hash_u64(device) % (sizeof(s->v) / sizeof(*s->v));
}

/* The host's handle of a device's stream, +1; 0: unknown. */
static uint32_t host_stream(const struct tfh_streams *s, uint32_t device)
{
	uint32_t at = place_of(s, device);

	return s->v[at].device == device + 1 ? s->v[at].host : 0;
}

void tfh_streams_set(struct tfh_streams *s, uint32_t device, uint32_t host)
{
	uint32_t at = place_of(s, device);

	s->v[at].device = device + 1;
	s->v[at].host = host + 1;
}

/* ---- the ring of calls ---- */

static struct tfh_made *call_at(const struct tfh_calls *k, uint32_t i)
{
	return &k->v[(k->first + i) & (k->cap - 1)];
}

static int make_room(struct tfh_calls *k)
{
	uint32_t cap = k->cap ? k->cap * 4 : 32;
	struct tfh_made *v;

	if (k->n < k->cap)
		return 0;
	v = malloc(cap * sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < k->n; i++)
		v[i] = *call_at(k, i);
	free(k->v);
	k->v = v;
	k->first = 0;
	k->cap = cap;
	return 0;
}

int tfh_calls_add(struct tfh_calls *k, const struct tfh_made *call)
{
	uint32_t i;

	if (k->broken)
		return 0;
	if (k->n == MOST_CALLS) {
		k->broken = true;
		k->n = 0;
		return 0;
	}
	if (make_room(k))
		return -ENOMEM;
	k->several |= k->thread && k->thread != call->issue.thread + 1;
	k->thread = call->issue.thread + 1;
	for (i = k->n++; i > 0 && call_at(k, i - 1)->issue.t0 > call->issue.t0; i--)
		*call_at(k, i) = *call_at(k, i - 1);
	*call_at(k, i) = *call;
	return 0;
}

static struct tfh_made take(struct tfh_calls *k, uint32_t i)
{
	struct tfh_made c = *call_at(k, i);

	for (; i > 0; i--)
		*call_at(k, i) = *call_at(k, i - 1);
	k->first++;
	k->n--;
	return c;
}

/* ---- unmatched calls: each belongs to an op whose call stayed unknown ---- */

static void forget_unmatched(struct tfh_calls *k)
{
	k->unmatched = k->n_by_stream = 0;
	k->others = false;
}

void tfh_calls_begin(struct tfh_calls *k, int64_t t)
{
	while (k->n && call_at(k, 0)->issue.t0 < t)
		take(k, 0);
	k->broken = false;
	forget_unmatched(k);
}

void tfh_calls_add_unmatched(struct tfh_calls *k, const uint32_t *stream)
{
	uint32_t i = 0;

	k->unmatched++;
	while (stream && i < k->n_by_stream && k->by_stream[i].stream != *stream)
		i++;
	if (!stream || i == TFH_UNMATCHED_STREAMS) {
		k->others = true;
		return;
	}
	if (i == k->n_by_stream) {
		k->by_stream[i].stream = *stream;
		k->by_stream[i].n = 0;
		k->n_by_stream++;
	}
	k->by_stream[i].n++;
}

/* How many of the ops with unmatched calls may have run in the stream `host` (the host's handle +
 * 1); *last: index of the last one. */
static uint32_t unmatched_streams(const struct tfh_calls *k, const struct tfh_streams *s,
				  uint32_t host, uint32_t *last)
{
	uint32_t n = k->others * 2;

	*last = 0;
	for (uint32_t i = 0; i < k->n_by_stream; i++) {
		uint32_t known = host_stream(s, k->by_stream[i].stream);
		if (known && known != host)
			continue;
		*last = i;
		n++;
	}
	return n;
}

/* Removes call i, which is known to be one of the unmatched calls. */
static void pay_back(struct tfh_calls *k, const struct tfh_streams *s, uint32_t i)
{
	struct tfh_made c = take(k, i);
	uint32_t at;

	if (!--k->unmatched)
		forget_unmatched(k);
	else if (unmatched_streams(k, s, c.stream + 1, &at) == 1 && !--k->by_stream[at].n)
		k->by_stream[at] = k->by_stream[--k->n_by_stream];
}

/* ---- the order of calls ---- */

/* Whether a certainly took its number before b did. */
static bool before(const struct tfh_issue *a, const struct tfh_issue *b)
{
	return a->thread == b->thread ? a->t0 < b->t0 : a->t1 < b->t0 - AHEAD_NS;
}

/* Whether at least as many calls as are unmatched may have come before call i. If not, call i is
 * itself unmatched. */
static bool may_be_left(const struct tfh_calls *k, uint32_t i)
{
	const struct tfh_issue *c = &call_at(k, i)->issue;
	uint32_t n = i; /* calls that began before it */

	for (uint32_t j = i + 1; n < k->unmatched && j < k->n; j++) {
		const struct tfh_issue *x = &call_at(k, j)->issue;
		if (c->t1 < x->t0 - AHEAD_NS)
			break;
		n += !before(c, x);
	}
	return n >= k->unmatched;
}

static void pay_back_sure(struct tfh_calls *k, const struct tfh_streams *s)
{
	for (uint32_t i = 0; i < k->n && i < k->unmatched;) {
		if (may_be_left(k, i))
			i++;
		else
			pay_back(k, s, i);
	}
	if (!k->n)
		forget_unmatched(k);
}

/* Whether at most as many calls as are unmatched came before call i. `ended`: number of earlier
 * calls of other threads that ended before it began; it does not decrease with i. */
static bool may_be_next(const struct tfh_calls *k, uint32_t i, uint32_t *ended)
{
	const struct tfh_issue *c = &call_at(k, i)->issue;
	uint32_t n = 0;

	*ended = 0;
	for (uint32_t j = 0; j < i; j++) {
		const struct tfh_issue *x = &call_at(k, j)->issue;
		n += before(x, c);
		*ended += x->t1 < c->t0 - AHEAD_NS;
	}
	return n <= k->unmatched;
}

/* Index of the only call that a number can belong to; false if there are several or none. */
static bool only_one(const struct tfh_calls *k, const struct tfh_streams *s,
		     const struct tfh_sought *q, uint32_t *found)
{
	uint32_t host = q->stream ? host_stream(s, *q->stream) : 0;
	uint32_t n = 0, of_stream = 0, ended = 0, last;
	bool one_thread = true;

	*found = 0;
	if (!k->several)
		return true;
	for (uint32_t i = 0; i < k->n && ended <= k->unmatched; i++) {
		const struct tfh_made *c = call_at(k, i);
		if (i == CANDIDATES)
			return false;
		if (c->issue.t0 > q->start + TOLERANCE_NS)
			break;
		if (!may_be_next(k, i, &ended) || (q->below && before(&c->issue, q->below)) ||
		    (q->above && before(q->above, &c->issue)))
			continue;
		n++;
		if (of_stream && c->stream + 1 == host)
			one_thread &= c->issue.thread == call_at(k, *found)->issue.thread;
		else if (!of_stream)
			*found = i;
		of_stream += c->stream + 1 == host;
	}
	/* The only candidate used another stream: its op's call is missing, or the candidate has no
	 * op. */
	if (n == 1 && !of_stream)
		return !host;
	if (of_stream == 1)
		return true;
	/* The first call of the only thread that uses this stream, unless an unmatched call may be
	 * of that stream. */
	return of_stream && one_thread && !unmatched_streams(k, s, host, &last);
}

bool tfh_calls_find(struct tfh_calls *k, const struct tfh_streams *s, const struct tfh_sought *q,
		    struct tfh_made *out)
{
	uint32_t i;

	/* Discard calls that had no op. */
	while (k->n > 1 && q->below && before(&call_at(k, 0)->issue, q->below) &&
	       call_at(k, 1)->issue.t0 <= q->start + TOLERANCE_NS) {
		if (k->unmatched)
			pay_back(k, s, 0);
		else
			take(k, 0);
	}
	pay_back_sure(k, s);
	/* The op's call is missing. */
	if (!k->n || k->broken || call_at(k, 0)->issue.t0 > q->start + TOLERANCE_NS ||
	    (q->above && before(q->above, &call_at(k, 0)->issue)))
		return false;
	if (!only_one(k, s, q, &i)) {
		tfh_calls_add_unmatched(k, q->stream);
		return false;
	}
	*out = take(k, i);
	return true;
}

void tfh_calls_free(struct tfh_calls *k)
{
	free(k->v);
	k->v = NULL;
}
