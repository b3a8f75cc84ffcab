/*
 * Kernels that are compiled again and again: every few launches, a new kernel with nearly the same
 * name replaces the last one. In the search for what repeats, all of them count as the first one.
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
	uint64_t stem;
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
		v[n++] = (struct launched){.stem = name ? stem_of(name) : 0,
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

/* Whether n functions of one name, sorted by first launch, replace each other: none is launched
 * after the next one begins, and there are more functions than launches of each. Two models with
 * kernels for different shapes do not qualify. */
static bool replace(const struct launched *v, size_t n)
{
	uint64_t launches = 0;

	for (size_t i = 0; i < n; i++)
		launches += v[i].count;
	for (size_t i = 0; i + 1 < n; i++)
		if (v[i].last > v[i + 1].first)
			return false;
	return n >= TFH_FACTS_RETRACED && n * n > launches;
}

/* Moves to the front the functions that are not launched again once the next one of the name
 * begins, and returns their number. The others are kernels of their own, if all names of a compiler
 * differ only in their hashes. */
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

/* Writes to as[function] the function that each counts as, 0: itself. */
static void find(struct tfh_facts *facts, struct launched *v, size_t n, uint32_t *as)
{
	size_t most = 0;

	qsort(v, n, sizeof(*v), by_stem);
	if (!any_alike(v, n))
		return;
	for (size_t i = 0; i < n; i++)
		as[v[i].function] = (uint32_t)i + 1;
	count(facts, v, as);
	for (size_t i = 0; i < n; i++)
		as[v[i].function] = 0;
	qsort(v, n, sizeof(*v), by_stem);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && v[end].stem == v[i].stem;)
			end++;
		size_t some = end - i;
		if (v[i].stem && !replace(v + i, some)) {
			some = leave_out(v + i, some);
			some = throughout(facts, v + i, some) ? some : 0;
		}
		if (!v[i].stem || !replace(v + i, some))
			continue;
		for (size_t k = i; k < i + some; k++)
			as[v[k].function] = v[i].function;
		if (some > most && are_new(v + i, some)) {
			most = some;
			facts->remade = v[i].function;
		}
	}
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
