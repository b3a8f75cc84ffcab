/*
 * Kernels that are compiled again and again: a new one of nearly the same name takes the place of the last one, every few
 * launches. For finding what repeats, all of them are the first one.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "judge/facts/survey.h"

enum { HASH_DIGITS = 8 }; /* hexadecimal ones in a row: a hash of the source, not a word */

/* A function, and where among the tokens it is launched. */
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

/* The hash of a name without its numbers and hashes: versions, shapes, addresses. 0: it has no name. */
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

static bool is_kernel(const struct tfh_token *t)
{
	return t->family == TFH_FAM_LAUNCH;
}

/* One more than the largest number of a function; they are given from 1 on. */
static size_t functions(const struct tfh_facts *facts)
{
	uint32_t most = 0;

	for (size_t i = 0; i < facts->token.n; i++)
		if (is_kernel(&facts->token.v[i]) && facts->token.v[i].what > most)
			most = facts->token.v[i].what;
	return most + 1ull;
}

/* Fills v[functions], and leaves those that are launched. */
static size_t gather(const struct tfh_facts *facts, struct launched *v, size_t most)
{
	size_t n = 0;

	for (size_t i = 0; i < facts->token.n; i++) {
		const struct tfh_token *t = &facts->token.v[i];
		if (!is_kernel(t))
			continue;
		struct launched *x = &v[t->what];
		x->function = t->what;
		x->first = x->count++ ? x->first : i;
		x->last = i;
	}
	for (size_t i = 0; i < most; i++)
		if (v[i].count)
			v[n++] = v[i];
	return n;
}

/* n functions of one name, by their first launch. They take each other's place if none is launched after the next one began,
 * and if there are more of them than launches of each; two models with kernels for other shapes are no such thing. */
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

/* Writes to as[function] what each counts as, 0: itself. */
static void find(const struct tfh_facts *facts, struct launched *v, size_t n, uint32_t *as)
{
	const struct tfh_feed *f = facts->feed;

	for (size_t i = 0; i < n; i++) {
		const char *name = f->name(f->arg, facts->process, TFT_NAME_FUNCTION, v[i].function,
					   NULL, NULL);
		v[i].stem = name ? stem_of(name) : 0;
	}
	qsort(v, n, sizeof(*v), by_stem);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && v[end].stem == v[i].stem;)
			end++;
		if (v[i].stem && replace(v + i, end - i))
			for (size_t k = i; k < end; k++)
				as[v[k].function] = v[i].function;
	}
}

static void rename_launches(struct tfh_facts *facts, const uint32_t *as)
{
	for (size_t i = 0; i < facts->token.n; i++) {
		struct tfh_token *t = &facts->token.v[i];
		if (!is_kernel(t) || !as[t->what])
			continue;
		t->what = as[t->what];
		t->hash = tfh_hash_add(t->family, t->what); /* their grids may differ as well */
	}
}

int tfh_find_remade(struct tfh_facts *facts)
{
	size_t most = functions(facts);
	struct launched *v;
	uint32_t *as;

	/* Of a run with more launches than are kept as tokens, only some would get the other name. */
	if (facts->feed->imported || facts->late_launch || most == 1 || most > TFH_FACTS_TOKENS)
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
