/*
 * A mutator that knows JSON: it changes, repeats, removes and exchanges whole values and members, so
 * that most changes leave a text that is still JSON.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define MOST 8192 /* values that are known; what comes after them stays as it is */

/* A value, or with `member` a key and its value. */
struct span {
	size_t from, to;
	size_t value; /* where its value begins */
	bool member;
};

struct text {
	const uint8_t *at;
	size_t n;
	struct span span[MOST];
	size_t spans;
};

static uint32_t draw(uint64_t *seed, size_t below)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return below ? (uint32_t)((*seed >> 16) % below) : 0;
}

static size_t after_string(const struct text *t, size_t at)
{
	for (at++; at < t->n && t->at[at] != '"'; at++)
		at += t->at[at] == '\\';
	return at < t->n ? at + 1 : t->n;
}

static size_t after_word(const struct text *t, size_t at)
{
	while (at < t->n && !memchr(",:]}[{\" \n\t\r", t->at[at], 10))
		at++;
	return at;
}

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Notes every value and member with where it begins and ends. */
static void read_spans(struct text *t)
{
	size_t open[64], depth = 0, at = 0;
	size_t key = SIZE_MAX;

	while (at < t->n && t->spans < MOST) {
		uint8_t c = t->at[at];
		size_t from = at;

		if (is_blank(c) || c == ',' || c == ':') {
			at++;
			continue;
		}
		if (c == ']' || c == '}') {
			at++;
			if (depth)
				t->span[open[--depth]].to = at;
			continue;
		}
		if (c == '{' || c == '[') {
			at++;
			if (depth == 64)
				return;
		} else {
			at = c == '"' ? after_string(t, at) : after_word(t, at);
			if (at == from)
				at++;
		}
		size_t next = at;
		while (next < t->n && is_blank(t->at[next]))
			next++;
		if (c == '"' && next < t->n && t->at[next] == ':') {
			key = from;
			continue;
		}
		t->span[t->spans] =
			(struct span){key != SIZE_MAX ? key : from, at, from, key != SIZE_MAX};
		if (c == '{' || c == '[') {
			open[depth++] = t->spans;
			t->span[t->spans].to = t->n;
		}
		t->spans++;
		key = SIZE_MAX;
	}
}

static void put(uint8_t *out, size_t *n, size_t max, const void *from, size_t size)
{
	if (size > max - *n)
		size = max - *n;
	if (size)
		memcpy(out + *n, from, size);
	*n += size;
}

static size_t other_number(char text[64], uint64_t *seed)
{
	static const char *const odd[] = {
		"0",	"-1", "1",     "1e308", "-1e308",     "9223372036854775807",
		"null", "7",  "0.001", "1e15",	"123456.789", "4294967296"};

	if (draw(seed, 2))
		return (size_t)snprintf(text, 64, "%s",
					odd[draw(seed, sizeof(odd) / sizeof(*odd))]);
	return (size_t)snprintf(text, 64, "%u.%03u", draw(seed, 20000), draw(seed, 1000));
}

/* Another value in its place. */
static void put_changed(uint8_t *out, size_t *n, size_t max, const struct text *t,
			const struct span *s, uint64_t *seed)
{
	size_t size = s->to - s->value, inside;
	uint8_t *copy;
	char number[64];

	put(out, n, max, t->at + s->from, s->value - s->from);
	if (t->at[s->value] != '"' || size < 2) {
		put(out, n, max, number, other_number(number, seed));
		return;
	}
	copy = calloc(1, size + 64);
	if (!copy)
		return;
	memcpy(copy, t->at + s->value + 1, size - 2);
	inside = LLVMFuzzerMutate(copy, size - 2, size + 62);
	put(out, n, max, "\"", 1);
	put(out, n, max, copy, inside);
	put(out, n, max, "\"", 1);
	free(copy);
}

/* A value of the same kind, if one is met among a few. */
static const struct span *alike(const struct text *t, const struct span *s, uint64_t *seed)
{
	const struct span *other = s;

	for (int i = 0; i < 16; i++) {
		other = &t->span[draw(seed, t->spans)];
		if (other != s && other->member == s->member &&
		    t->at[other->value] == t->at[s->value])
			break;
	}
	return other;
}

static size_t rewrite(uint8_t *out, size_t max, const struct text *t, uint64_t *seed)
{
	const struct span *s = &t->span[draw(seed, t->spans)], *other = alike(t, s, seed);
	size_t n = 0, rest = s->to;

	put(out, &n, max, t->at, s->from);
	switch (draw(seed, 8)) {
	case 0: /* left out, with the comma behind it */
		while (rest < t->n && is_blank(t->at[rest]))
			rest++;
		rest += rest < t->n && t->at[rest] == ',';
		break;
	case 1: /* twice */
		put(out, &n, max, t->at + s->from, s->to - s->from);
		put(out, &n, max, ",", 1);
		put(out, &n, max, t->at + s->from, s->to - s->from);
		break;
	case 2: /* another one before it */
		put(out, &n, max, t->at + other->from, other->to - other->from);
		put(out, &n, max, ",", 1);
		put(out, &n, max, t->at + s->from, s->to - s->from);
		break;
	case 3: /* another one's value */
		put(out, &n, max, t->at + s->from, s->value - s->from);
		put(out, &n, max, t->at + other->value, other->to - other->value);
		break;
	default:
		put_changed(out, &n, max, t, s, seed);
	}
	put(out, &n, max, t->at + rest, t->n - rest);
	return n;
}

size_t tfh_fuzz_mutate_json(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	static struct text t;
	uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
	uint8_t *out = malloc(max + 1), *copy = malloc(size + 1);

	t.at = copy;
	t.n = size;
	t.spans = 0;
	if (out && copy && draw(&state, 16)) {
		memcpy(copy, data, size);
		for (uint32_t i = 1 + draw(&state, 3); i; i--) {
			t.spans = 0;
			read_spans(&t);
			if (!t.spans)
				break;
			size = rewrite(out, max, &t, &state);
			memcpy(data, out, size);
			if (size > t.n) {
				uint8_t *grown = realloc(copy, size + 1);
				if (!grown)
					break;
				copy = grown;
			}
			memcpy(copy, out, size);
			t.at = copy;
			t.n = size;
		}
	}
	free(copy);
	free(out);
	return t.spans ? size : LLVMFuzzerMutate(data, size, max);
}
