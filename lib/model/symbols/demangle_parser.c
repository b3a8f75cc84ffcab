/* The parser's position in the mangled name, and the texts made of it. */
#include "model/symbols/demangle_parser.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *tfh_dm_fail(struct tfh_dm_parser *p)
{
	p->failed = true;
	return "";
}

char *tfh_dm_room(struct tfh_dm_parser *p, size_t len)
{
	if (p->failed || len >= LONGEST || len + 1 > ARENA - p->used) {
		tfh_dm_fail(p);
		return NULL;
	}
	char *at = p->arena + p->used;
	p->used += len + 1;
	return at;
}

const char *tfh_dm_join3(struct tfh_dm_parser *p, const char *a, const char *b, const char *c)
{
	size_t x = strlen(a), y = strlen(b), z = strlen(c);
	char *out = tfh_dm_room(p, x + y + z);

	if (!out)
		return "";
	memcpy(out, a, x);
	memcpy(out + x, b, y);
	memcpy(out + x + y, c, z + 1);
	return out;
}

const char *tfh_dm_join(struct tfh_dm_parser *p, const char *a, const char *b)
{
	return tfh_dm_join3(p, a, b, "");
}

char tfh_dm_peek(const struct tfh_dm_parser *p)
{
	return p->at < p->end ? *p->at : '\0';
}

char tfh_dm_peek2(const struct tfh_dm_parser *p)
{
	return p->at + 1 < p->end ? p->at[1] : '\0';
}

bool tfh_dm_take(struct tfh_dm_parser *p, const char *what)
{
	size_t n = strlen(what);

	if ((size_t)(p->end - p->at) < n || memcmp(p->at, what, n))
		return false;
	p->at += n;
	return true;
}

void tfh_dm_expect(struct tfh_dm_parser *p, const char *what)
{
	if (!tfh_dm_take(p, what))
		tfh_dm_fail(p);
}

const char *tfh_dm_digits(struct tfh_dm_parser *p)
{
	size_t n = 0;

	while (p->at + n < p->end && isdigit((unsigned char)p->at[n]))
		n++;
	char *out = tfh_dm_room(p, n);
	if (!out)
		return "";
	memcpy(out, p->at, n);
	out[n] = '\0';
	p->at += n;
	return out;
}

/* Reads a number of at most six digits. */
static unsigned long number(struct tfh_dm_parser *p)
{
	const char *text = tfh_dm_digits(p);

	if (!*text || strlen(text) > 6)
		tfh_dm_fail(p);
	return p->failed ? 0 : strtoul(text, NULL, 10);
}

/* A sequence number: "_" is 0, "0_" is 1. Base 10 for lambdas and parameters, 36 for
 * substitutions. */
unsigned long tfh_dm_sequence(struct tfh_dm_parser *p, int base)
{
	unsigned long n = 0;

	if (tfh_dm_take(p, "_"))
		return 0;
	for (; n < LONGEST; p->at++) {
		char c = tfh_dm_peek(p);
		if (isdigit((unsigned char)c))
			n = n * (unsigned)base + (unsigned)(c - '0');
		else if (base == 36 && c >= 'A' && c <= 'Z')
			n = n * 36 + (unsigned)(c - 'A') + 10;
		else
			break;
	}
	tfh_dm_expect(p, "_");
	return n + 1;
}

void tfh_dm_remember(struct tfh_dm_parser *p, struct tfh_dm_text t)
{
	if (p->subs == SUBSTITUTIONS)
		tfh_dm_fail(p);
	else
		p->sub[p->subs++] = t;
}

void tfh_dm_remember_name(struct tfh_dm_parser *p, const char *text)
{
	tfh_dm_remember(p, (struct tfh_dm_text){text, "", TFH_DM_PLAIN});
}

const char *tfh_dm_flat(struct tfh_dm_parser *p, struct tfh_dm_text t)
{
	return *t.right ? tfh_dm_join3(p, t.left, t.shape == TFH_DM_PLAIN ? "" : " ", t.right)
			: t.left;
}

/* ---- parts of names that contain no other name or type ---- */

const char *tfh_dm_source_name(struct tfh_dm_parser *p)
{
	size_t n = number(p);

	if (p->failed || !n || n > (size_t)(p->end - p->at))
		return tfh_dm_fail(p);
	const char *from = p->at;
	p->at += n;
	if (n >= 10 && !memcmp(from, "_GLOBAL_", 8) && strchr("._$", from[8]) && from[9] == 'N')
		return "(anonymous namespace)";
	char *out = tfh_dm_room(p, n);
	if (!out)
		return "";
	memcpy(out, from, n);
	out[n] = '\0';
	return out;
}

const char *tfh_dm_last_part(struct tfh_dm_parser *p, const char *scope)
{
	const char *begin = scope, *end = scope + strlen(scope);
	int depth = 0;

	for (const char *c = scope; *c; c++) {
		if (!depth && *c == '<')
			end = c;
		if (!depth && c[0] == ':' && c[1] == ':') {
			begin = c + 2;
			end = scope + strlen(scope);
		}
		depth += (*c == '<' || *c == '(' || *c == '{') -
			 (*c == '>' || *c == ')' || *c == '}');
	}
	char *out = begin <= end ? tfh_dm_room(p, (size_t)(end - begin)) : NULL;
	if (!out)
		return tfh_dm_fail(p);
	memcpy(out, begin, (size_t)(end - begin));
	out[end - begin] = '\0';
	return out;
}

struct tfh_dm_text tfh_dm_template_parameter(struct tfh_dm_parser *p)
{
	static const struct tfh_dm_text none = {"", "", TFH_DM_PLAIN};

	tfh_dm_expect(p, "T");
	unsigned long i = tfh_dm_sequence(p, 10);
	if (p->lambda) { /* a lambda's own parameter: what "auto" stands for */
		char n[] = {(char)('1' + i % 9), '\0'};
		return (struct tfh_dm_text){i < 9 ? tfh_dm_join(p, "auto:", n) : tfh_dm_fail(p), "",
					    TFH_DM_PLAIN};
	}
	if (i < p->args)
		return p->arg[i];
	tfh_dm_fail(p);
	return none;
}

/* "S1_" and "Sa", without what may follow. The caller handles "St". */
struct tfh_dm_text tfh_dm_substitution(struct tfh_dm_parser *p)
{
	static const struct {
		const char *code, *text;
	} standard[] = {{"Sa", "std::allocator"}, {"Sb", "std::basic_string"},
			{"Ss", "std::string"},	  {"Si", "std::istream"},
			{"So", "std::ostream"},	  {"Sd", "std::iostream"}};
	static const struct tfh_dm_text none = {"", "", TFH_DM_PLAIN};

	for (size_t i = 0; i < sizeof(standard) / sizeof(standard[0]); i++)
		if (tfh_dm_take(p, standard[i].code))
			return (struct tfh_dm_text){standard[i].text, "", TFH_DM_PLAIN};
	tfh_dm_expect(p, "S");
	unsigned long i = tfh_dm_sequence(p, 36);
	if (!p->failed && i < p->subs)
		return p->sub[i];
	tfh_dm_fail(p);
	return none;
}
