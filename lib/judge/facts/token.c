/* The sequence of launches, copies and waits: each call is represented by the number of its kind
 * and its times. */
#include <stdlib.h>

#include "base/bisect.h"
#include "base/hash.h"
#include "judge/facts/survey.h"

_Static_assert(sizeof(struct tfh_token) == 16, "tokens are small");
_Static_assert(1ll << (64 - TFH_FACTS_TOKEN_BITS) >= 2ll * TFH_FACTS_TOKENS,
	       "kinds are numbered: tokens and late ones may all be of different kinds");

void tfh_kind_complete(struct tfh_token_kind *k)
{
	bool graph = k->family == TFH_FAM_GRAPH_LAUNCH;

	k->rough = tfh_hash_u64(graph ? 1 : ((uint64_t)k->what << 8) + 2);
	k->bucket = graph ? 0 : (uint8_t)tfh_hash_u64(k->what + 1ull);
}

static struct tfh_token_kind launch_kind(const struct tfh_event *ev, uint32_t thread)
{
	bool graph = ev->fn->family == TFH_FAM_GRAPH_LAUNCH;
	struct tfh_token_kind k = {
		.dir = ev->dir,
		.family = ev->fn->family,
		.thread = tfh_token_thread(thread),
		.what = (uint32_t)ev->w[graph ? 2 : 0],
		.hash = tfh_hash_add(ev->fn->family,
				     tfh_hash_add(ev->w[0] & 0xffffffffu, ev->w[1]))};

	tfh_kind_complete(&k);
	return k;
}

bool tfh_token_kind(const struct tfh_event *ev, const struct tfh_piece *p,
		    struct tfh_token_kind *out)
{
	if (tfh_family_launches(p->family)) {
		*out = launch_kind(ev, ev->thread);
		return true;
	}
	if (p->family != TFH_FAM_SYNC && p->family != TFH_FAM_COPY)
		return false;
	*out = (struct tfh_token_kind){.dir = p->dir,
				       .family = p->family,
				       .what = p->bytes > UINT32_MAX ? UINT32_MAX
								     : (uint32_t)p->bytes,
				       .thread = tfh_token_thread(p->thread),
				       .hash = tfh_hash_add(p->family, tfh_hash_str(ev->fn->name))};
	if (p->family == TFH_FAM_COPY)
		out->hash = tfh_hash_add(out->hash, ev->w[0]);
	return true;
}

static bool same(const struct tfh_token_kind *a, const struct tfh_token_kind *b)
{
	return a->hash == b->hash && a->what == b->what && a->thread == b->thread &&
	       a->dir == b->dir && a->family == b->family;
}

static uint64_t place_of(const struct tfh_facts *facts, const struct tfh_token_kind *k)
{
	uint64_t at = tfh_hash_add(k->hash, k->thread) & (facts->kind_room - 1);

	while (facts->kind_at[at] && !same(&facts->kind.v[facts->kind_at[at] - 1], k))
		at = (at + 1) & (facts->kind_room - 1);
	return at;
}

static bool grow(struct tfh_facts *facts)
{
	size_t room = facts->kind_room ? facts->kind_room * 4 : 256;
	uint32_t *at = calloc(room, sizeof(*at));

	if (!at)
		return false;
	free(facts->kind_at);
	facts->kind_at = at;
	facts->kind_room = room;
	for (size_t i = 0; i < facts->kind.n; i++)
		at[place_of(facts, &facts->kind.v[i])] = (uint32_t)i + 1;
	return true;
}

uint32_t tfh_kind_number(struct tfh_facts *facts, const struct tfh_token_kind *kind)
{
	if (facts->kind.n * 2 >= facts->kind_room && !grow(facts))
		return UINT32_MAX;
	uint32_t *at = &facts->kind_at[place_of(facts, kind)];
	if (!*at) {
		if (TFH_PUSH(facts->kind, *kind))
			return UINT32_MAX;
		*at = (uint32_t)facts->kind.n;
	}
	return *at - 1;
}

uint32_t tfh_launch_kind(struct tfh_facts *facts, const struct tfh_event *ev, uint32_t thread)
{
	const uint64_t w[2] = {(uint32_t)ev->w[0], ev->w[1]};
	uint64_t near = (w[0] + w[1] * 5 + thread) % TFH_FACTS_NEAR_KINDS;
	struct tfh_token_kind kind;

	if (facts->kind_near[near].kind) {
		uint32_t n = facts->kind_near[near].kind - 1;
		const struct tfh_token_kind *k = &facts->kind.v[n];
		if (facts->kind_near[near].w[0] == w[0] && facts->kind_near[near].w[1] == w[1] &&
		    k->thread == tfh_token_thread(thread) && k->family == ev->fn->family &&
		    k->dir == ev->dir)
			return n;
	}
	kind = launch_kind(ev, thread);
	uint32_t n = tfh_kind_number(facts, &kind);
	facts->kind_near[near].w[0] = w[0];
	facts->kind_near[near].w[1] = w[1];
	facts->kind_near[near].kind = n + 1; /* 0 when out of memory */
	return n;
}

static int by_token(const void *a, const void *b)
{
	const struct tfh_token *x = a, *y = b;

	if (x->t0 != y->t0)
		return x->t0 < y->t0 ? -1 : 1;
	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

void tfh_note_order(struct tfh_facts *facts, const struct tfh_token *t)
{
	facts->token_mixed |=
		facts->token.n && by_token(&facts->token.v[facts->token.n - 1], t) > 0;
}

int tfh_keep_token(struct tfh_facts *facts, const struct tfh_event *ev, uint32_t kind)
{
	const struct tfh_token t = tfh_token_make(ev->t0, ev->t1, kind);

	tfh_note_order(facts, &t);
	return TFH_PUSH(facts->token, t);
}

/* Calls of a single thread are already in this order. */
void tfh_sort_tokens(struct tfh_facts *facts)
{
	if (facts->token_mixed)
		qsort(facts->token.v, facts->token.n, sizeof(*facts->token.v), by_token);
}

/* The number of consecutive tokens of one kind, from i on. */
static size_t of_one_kind(const struct tfh_facts *facts, size_t i)
{
	const struct tfh_token *t = facts->token.v;
	size_t to = i + 1;

	while (to < facts->token.n && t[to].kind == t[i].kind)
		to++;
	return to - i;
}

int tfh_find_stops(struct tfh_facts *facts)
{
	const struct tfh_token_kind *kinds = facts->kind.v;
	struct tfh_stop sum = {0};
	int rc = 0;

	for (size_t i = 0, n; i < facts->token.n && !rc; i += n) {
		const struct tfh_token_kind *k = &kinds[facts->token.v[i].kind];
		n = 1;
		if (k->family == TFH_FAM_LAUNCH) {
			n = of_one_kind(facts, i);
			sum.exact += n * k->hash;
			sum.rough += n * k->rough;
			continue;
		}
		sum.at = (uint32_t)i;
		rc = TFH_PUSH(facts->stop, sum);
		sum = (struct tfh_stop){0};
	}
	sum.at = (uint32_t)facts->token.n;
	return rc ? rc : TFH_PUSH(facts->stop, sum);
}

uint64_t tfh_launches_in(const struct tfh_facts *facts, int64_t t0, int64_t t1)
{
	const struct tfh_token *t = facts->token.v;
	uint64_t n = 0;

	for (size_t i = TFH_BISECT(k, 0, facts->token.n, t[k].t0 < t0);
	     i < facts->token.n && t[i].t0 < t1; i++)
		if (tfh_is_launch(tfh_kind_of(facts, &t[i])))
			n += tfh_kind_of(facts, &t[i])->family == TFH_FAM_LAUNCH
				     ? 1
				     : TFH_LOOPS_GRAPH_LAUNCHES;
	return n;
}
