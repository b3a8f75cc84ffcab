/*
 * Kernels that are compiled or loaded again and again: a new kernel with the same name replaces the
 * last one, as in a search that builds its model anew for each trial, or, every few launches, one
 * with nearly the same name does. In the search for what repeats, all of them count as the first
 * one.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "judge/facts/survey.h"

enum { HASH_DIGITS = 8 }; /* consecutive hexadecimal digits: a hash of the source, not a word */

/* A function, and its launches among the tokens. */
struct launched {
	uint64_t name, stem; /* hashes; 0: it has no name */
	size_t first, last;
	uint64_t count;
	uint32_t function;
};

static size_t hash_length(const char *s)
{
	size_t n = 0, digits = 0;

	for (; isxdigit((unsigned char)s[n]); n++)
		digits += isdigit((unsigned char)s[n]) != 0;
	return n >= HASH_DIGITS && digits ? n : 0;
}

/* The hash of a name without its numbers and hashes: versions, shapes, addresses. 0: it has no
 * name. */
static uint64_t stem_of(const char *name)
{
	uint64_t stem = 0;

	while (*name) {
		size_t n = hash_length(name);
		if (!n && !isdigit((unsigned char)*name))
			stem = tfh_hash_add(stem, (unsigned char)*name);
		name += n ? n : 1;
	}
	return stem;
}

static int by_stem(const void *a, const void *b)
{
	const struct launched *x = a, *y = b;

	if (x->stem != y->stem)
		return x->stem < y->stem ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

static int by_name(const void *a, const void *b)
{
	const struct launched *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

static bool is_kernel(const struct tfh_token_kind *k)
{
	return k->family == TFH_FAM_LAUNCH;
}

/* One more than the largest function number; numbers start at 1. */
static size_t functions(const struct tfh_facts *facts)
{
	uint32_t most = 0;

	for (size_t i = 0; i < facts->kind.n; i++)
		if (is_kernel(&facts->kind.v[i]) && facts->kind.v[i].what > most)
			most = facts->kind.v[i].what;
	return most + 1ull;
}

/* Fills v[functions] with the names of the launched functions, and keeps only those. */
static size_t gather(const struct tfh_facts *facts, struct launched *v, size_t most)
{
	const struct tfh_feed *f = facts->feed;
	size_t n = 0;

	for (size_t i = 0; i < facts->kind.n; i++)
		if (is_kernel(&facts->kind.v[i]))
			v[facts->kind.v[i].what].count = 1;
	for (size_t i = 0; i < most; i++) {
		const char *name = NULL;
		if (!v[i].count)
			continue;
		name = f->name(f->arg, facts->process, TFT_NAME_FUNCTION, (uint32_t)i, NULL, NULL);
		v[n++] = (struct launched){.name = name && *name ? tfh_hash_str(name) : 0,
					   .stem = name ? stem_of(name) : 0,
					   .function = (uint32_t)i};
	}
	return n;
}

/* Whether enough functions share one name to count as one. The functions are sorted by their
 * stems. */
static bool any_alike(const struct launched *v, size_t n)
{
	for (size_t i = 0; i + TFH_FACTS_RETRACED <= n; i++)
		if (v[i].stem && v[i].stem == v[i + TFH_FACTS_RETRACED - 1].stem)
			return true;
	return false;
}

/* Counts the launches of each function; at[function]: its index in v, + 1. */
static void count(const struct tfh_facts *facts, struct launched *v, const uint32_t *at)
{
	for (size_t i = 0; i < facts->token.n; i++) {
		const struct tfh_token_kind *k = tfh_kind_of(facts, &facts->token.v[i]);
		if (!is_kernel(k))
			continue;
		struct launched *x = &v[at[k->what] - 1];
		x->first = x->count++ ? x->first : i;
		x->last = i;
	}
}

/* Whether each of n functions, sorted by first launch, replaces the one before: none is launched
 * after the next one begins. */
static bool in_turn(const struct launched *v, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++)
		if (v[i].last > v[i + 1].first)
			return false;
	return n >= TFH_FACTS_RETRACED;
}

/* Whether n functions of nearly the same name replace each other, and are more than the launches of
 * each. Two models with kernels for different shapes do not qualify. */
static bool replace(const struct launched *v, size_t n)
{
	uint64_t launches = 0;

	for (size_t i = 0; i < n; i++)
		launches += v[i].count;
	return in_turn(v, n) && n * n > launches;
}

/* Moves to the front the functions that are not launched again once the next one of the name is,
 * and returns their number. The others are different kernels, of a compiler whose names differ only
 * in their hashes. */
static size_t leave_out(struct launched *v, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (i + 1 == n || v[i].last <= v[i + 1].first)
			v[kept++] = v[i];
	return kept;
}

/* Whether functions, sorted by first launch, begin in each quarter of the run: those that only
 * prepare it do not. */
static bool throughout(const struct tfh_facts *facts, const struct launched *v, size_t n)
{
	size_t quarter = 0;

	for (size_t i = 0; i < n; i++)
		quarter += v[i].first * 4 / facts->token.n == quarter;
	return quarter == 4;
}

/* Whether each of n functions was made for a single launch. */
static bool are_new(const struct launched *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].count > 1)
			return false;
	return true;
}

/* The functions that the first of them replaced. */
struct remade {
	uint32_t *as; /* [function]: the function that it counts as, 0: itself */
	/* number of functions made for a single launch that facts->remade stands for */
	size_t most;
};

static void join(struct tfh_facts *facts, struct remade *m, const struct launched *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		m->as[v[i].function] = v[0].function;
	if (n > m->most && are_new(v, n)) {
		m->most = n;
		facts->remade = v[0].function;
	}
}

static void note_anew(struct tfh_facts *facts, size_t n)
{
	facts->made_anew = n > facts->made_anew ? (uint32_t)n : facts->made_anew;
}

/* Joins functions of one name, and moves the others to the front. Returns their number. */
static size_t join_names(struct tfh_facts *facts, struct remade *m, struct launched *v, size_t n)
{
	size_t kept = 0;

	qsort(v, n, sizeof(*v), by_name);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && v[end].name == v[i].name;)
			end++;
		if (v[i].name && in_turn(v + i, end - i)) {
			join(facts, m, v + i, end - i);
			note_anew(facts, end - i);
			continue;
		}
		memmove(v + kept, v + i, (end - i) * sizeof(*v));
		kept += end - i;
	}
	return kept;
}

static void join_stems(struct tfh_facts *facts, struct remade *m, struct launched *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_stem);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && v[end].stem == v[i].stem;)
			end++;
		size_t some = end - i;
		if (v[i].stem && in_turn(v + i, some))
			note_anew(facts, some);
		if (v[i].stem && !replace(v + i, some)) {
			some = leave_out(v + i, some);
			some = throughout(facts, v + i, some) ? some : 0;
		}
		if (v[i].stem && replace(v + i, some))
			join(facts, m, v + i, some);
	}
}

static void find(struct tfh_facts *facts, struct launched *v, size_t n, uint32_t *as)
{
	struct remade m = {.as = as};

	qsort(v, n, sizeof(*v), by_stem);
	if (!any_alike(v, n))
		return;
	for (size_t i = 0; i < n; i++)
		as[v[i].function] = (uint32_t)i + 1;
	count(facts, v, as);
	for (size_t i = 0; i < n; i++)
		as[v[i].function] = 0;
	join_stems(facts, &m, v, join_names(facts, &m, v, n));
}

static void rename_launches(struct tfh_facts *facts, const uint32_t *as)
{
	for (size_t i = 0; i < facts->kind.n; i++) {
		struct tfh_token_kind *k = &facts->kind.v[i];
		if (!is_kernel(k) || !as[k->what])
			continue;
		k->what = as[k->what];
		k->hash = tfh_hash_add(k->family, k->what); /* their grids may differ as well */
		tfh_kind_complete(k);
	}
}

int tfh_find_remade(struct tfh_facts *facts)
{
	size_t most = functions(facts);
	struct launched *v;
	uint32_t *as;

	/* If a run has more launches than tokens are kept, only some of them would be renamed. */
	if (facts->feed->imported || facts->eager || facts->late_launch || most == 1 ||
	    most > TFH_FACTS_TOKENS)
		return 0;
	v = calloc(most, sizeof(*v));
	as = calloc(most, sizeof(*as));
	if (v && as) {
		find(facts, v, gather(facts, v, most), as);
		rename_launches(facts, as);
	}
	free(v);
	free(as);
	return v && as ? 0 : -ENOMEM;
}
