#include "model/symbols/demangle.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/symbols/demangle_parser.h"

/* ---- parts of names ---- */

const char *tfh_dm_source_name(struct tfh_dm_parser *p)
{
	size_t n = tfh_dm_number(p);

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

static const struct {
	const char *code, *text;
} operators[] = {
	{"nw", "new"}, {"na", "new[]"}, {"dl", "delete"}, {"da", "delete[]"}, {"ps", "+"},
	{"ng", "-"},   {"ad", "&"},	{"de", "*"},	  {"co", "~"},	      {"pl", "+"},
	{"mi", "-"},   {"ml", "*"},	{"dv", "/"},	  {"rm", "%"},	      {"an", "&"},
	{"or", "|"},   {"eo", "^"},	{"aS", "="},	  {"pL", "+="},	      {"mI", "-="},
	{"mL", "*="},  {"dV", "/="},	{"rM", "%="},	  {"aN", "&="},	      {"oR", "|="},
	{"eO", "^="},  {"ls", "<<"},	{"rs", ">>"},	  {"lS", "<<="},      {"rS", ">>="},
	{"eq", "=="},  {"ne", "!="},	{"lt", "<"},	  {"gt", ">"},	      {"le", "<="},
	{"ge", ">="},  {"ss", "<=>"},	{"nt", "!"},	  {"aa", "&&"},	      {"oo", "||"},
	{"pp", "++"},  {"mm", "--"},	{"cm", ","},	  {"pm", "->*"},      {"pt", "->"},
	{"cl", "()"},  {"ix", "[]"},	{"qu", "?"},
};

static const char *operator_name(struct tfh_dm_parser *p)
{
	if (tfh_dm_take(p, "cv")) {
		p->unreturning = true;
		return tfh_dm_join(p, "operator ", tfh_dm_type_text(p));
	}
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (tfh_dm_take(p, operators[i].code))
			return tfh_dm_join3(p, "operator",
					    isalpha((unsigned char)*operators[i].text) ? " " : "",
					    operators[i].text);
	return tfh_dm_fail(p);
}

/* "(int, float*)" up to an E or the end. */
const char *tfh_dm_parameters(struct tfh_dm_parser *p)
{
	const char *out = "(";

	if (tfh_dm_peek(p) == 'v' && (p->at + 1 == p->end || tfh_dm_peek2(p) == 'E')) {
		p->at++;
		return "()";
	}
	for (bool any = false; p->at < p->end && tfh_dm_peek(p) != 'E' && !p->failed;) {
		const char *one = tfh_dm_type_text(p);
		out = tfh_dm_join3(p, out, any && *one ? ", " : "", one);
		any |= *one != '\0';
	}
	return tfh_dm_join(p, out, ")");
}

/* "#2}" */
static const char *counted(struct tfh_dm_parser *p, const char *text)
{
	char count[16];
	unsigned long n = tfh_dm_sequence(p, 10) + 1;
	size_t len = sizeof(count) - 1;

	count[len] = '\0';
	for (; n; n /= 10)
		count[--len] = (char)('0' + n % 10);
	return tfh_dm_join3(p, text, count + len, "}");
}

static const char *unnamed(struct tfh_dm_parser *p)
{
	if (tfh_dm_take(p, "Ut"))
		return counted(p, "{unnamed type#");
	tfh_dm_expect(p, "Ul");
	p->lambda++;
	const char *takes = tfh_dm_parameters(p);
	p->lambda--;
	tfh_dm_expect(p, "E");
	return counted(p, tfh_dm_join3(p, "{lambda", takes, "#"));
}

/* The class' own name, of which its constructors are called. */
static const char *last_part(struct tfh_dm_parser *p, const char *scope)
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

static const char *unqualified(struct tfh_dm_parser *p, const char *scope)
{
	const char *out;
	char c = tfh_dm_peek(p), d = tfh_dm_peek2(p);

	p->templated = p->unreturning = false;
	if (c == 'L')
		p->at++;
	if (isdigit((unsigned char)tfh_dm_peek(p))) {
		out = tfh_dm_source_name(p);
	} else if (c == 'U') {
		out = unnamed(p);
	} else if (*scope &&
		   ((c == 'C' && d >= '1' && d <= '5') || (c == 'D' && d >= '0' && d <= '5'))) {
		p->at += 2;
		out = tfh_dm_join(p, c == 'D' ? "~" : "", last_part(p, scope));
		p->unreturning = true;
	} else {
		out = operator_name(p);
	}
	while (tfh_dm_take(p, "B"))
		out = tfh_dm_join(p, out, tfh_dm_join3(p, "[abi:", tfh_dm_source_name(p), "]"));
	return out;
}

/* ---- template arguments ---- */

static const char *literal(struct tfh_dm_parser *p)
{
	static const struct {
		char type;
		const char *suffix;
	} suffixes[] = {{'i', ""}, {'j', "u"}, {'l', "l"}, {'m', "ul"}, {'x', "ll"}, {'y', "ull"}};
	char c = tfh_dm_peek(p);
	const char *kind, *sign, *value;

	if (tfh_dm_take(p, "_Z")) {
		kind = tfh_dm_encoding(p, true);
		tfh_dm_expect(p, "E");
		return kind;
	}
	if (c == 'b' && (tfh_dm_peek2(p) == '0' || tfh_dm_peek2(p) == '1') && p->at + 2 < p->end &&
	    p->at[2] == 'E') {
		p->at += 3;
		return p->at[-2] == '1' ? "true" : "false";
	}
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		if (c != suffixes[i].type)
			continue;
		p->at++;
		sign = tfh_dm_take(p, "n") ? "-" : "";
		value = tfh_dm_join3(p, sign, tfh_dm_digits(p), suffixes[i].suffix);
		tfh_dm_expect(p, "E");
		return value;
	}
	kind = tfh_dm_join3(p, "(", tfh_dm_type_text(p), ")");
	sign = tfh_dm_take(p, "n") ? "-" : "";
	value = tfh_dm_join3(p, kind, sign, tfh_dm_digits(p));
	tfh_dm_expect(p, "E");
	return value;
}

struct tfh_dm_text tfh_dm_template_parameter(struct tfh_dm_parser *p)
{
	static const struct tfh_dm_text none = {"", "", TFH_DM_PLAIN};

	tfh_dm_expect(p, "T");
	unsigned long i = tfh_dm_sequence(p, 10);
	if (p->lambda) { /* its own: what "auto" stands for */
		char n[] = {(char)('1' + i % 9), '\0'};
		return (struct tfh_dm_text){i < 9 ? tfh_dm_join(p, "auto:", n) : tfh_dm_fail(p), "",
					    TFH_DM_PLAIN};
	}
	if (i < p->args)
		return p->arg[i];
	tfh_dm_fail(p);
	return none;
}

static struct tfh_dm_text template_argument(struct tfh_dm_parser *p)
{
	struct tfh_dm_text t = {"", "", TFH_DM_PLAIN};

	if (tfh_dm_take(p, "L")) {
		t.left = literal(p);
	} else if (tfh_dm_take(p, "J")) {
		for (bool any = false; tfh_dm_peek(p) != 'E' && !p->failed;) {
			const char *one = tfh_dm_flat(p, template_argument(p));
			t.left = tfh_dm_join3(p, t.left, any && *one ? ", " : "", one);
			any |= *one != '\0';
		}
		tfh_dm_expect(p, "E");
	} else if (tfh_dm_take(p, "X")) {
		/* Of expressions, addresses and literals only. */
		const char *of = tfh_dm_take(p, "ad") ? "&" : "";
		tfh_dm_expect(p, "L");
		t.left = *of ? tfh_dm_join3(p, "&(", literal(p), ")") : literal(p);
		tfh_dm_expect(p, "E");
	} else {
		t = tfh_dm_type(p);
	}
	return t;
}

/* `text` with "<...>" behind it; the function's own arguments are those that T_ means. */
const char *tfh_dm_template_arguments(struct tfh_dm_parser *p, const char *text, bool function)
{
	struct tfh_dm_text own[PARAMETERS];
	unsigned n = 0;
	const char *out;
	int lambda = p->lambda;

	tfh_dm_expect(p, "I");
	if (++p->depth > DEEPEST)
		return tfh_dm_fail(p);
	p->lambda = 0;
	size_t len = strlen(text);
	out = tfh_dm_join(p, text, len && text[len - 1] == '<' ? " <" : "<");
	for (bool any = false; tfh_dm_peek(p) != 'E' && !p->failed;) {
		struct tfh_dm_text one = template_argument(p);
		const char *shown = tfh_dm_flat(p, one);
		if (n == PARAMETERS)
			return tfh_dm_fail(p);
		own[n++] = one;
		out = tfh_dm_join3(p, out, any && *shown ? ", " : "", shown);
		any |= *shown != '\0';
	}
	tfh_dm_expect(p, "E");
	p->depth--;
	p->lambda = lambda;
	if (function) {
		memcpy(p->arg, own, n * sizeof(own[0]));
		p->args = n;
	}
	p->templated = true;
	len = strlen(out);
	return tfh_dm_join(p, out, len && out[len - 1] == '>' ? " >" : ">");
}

/* ---- names ---- */

/* "S1_" and "Sa", without what may follow; "St" is left to the caller. */
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

static const char *nested(struct tfh_dm_parser *p, bool function)
{
	const char *scope = "", *qualifiers = "";

	tfh_dm_expect(p, "N");
	for (; strchr("rVKRO", tfh_dm_peek(p)) && tfh_dm_peek(p); p->at++)
		qualifiers = tfh_dm_join(p,
					 tfh_dm_peek(p) == 'K'	 ? " const"
					 : tfh_dm_peek(p) == 'V' ? " volatile"
					 : tfh_dm_peek(p) == 'R' ? " &"
					 : tfh_dm_peek(p) == 'O' ? " &&"
								 : " __restrict",
					 qualifiers);
	while (!p->failed && !tfh_dm_take(p, "E")) {
		bool begin = !*scope;
		if (begin && tfh_dm_take(p, "St")) {
			scope = "std";
			continue;
		}
		if (begin && tfh_dm_peek(p) == 'S') {
			scope = tfh_dm_flat(p, tfh_dm_substitution(p));
			p->templated = false;
			continue;
		}
		if (!begin && tfh_dm_take(p, "M"))
			continue; /* of a lambda in a member's initializer */
		if (begin && tfh_dm_peek(p) == 'T')
			scope = tfh_dm_flat(p, tfh_dm_template_parameter(p));
		else if (!begin && tfh_dm_peek(p) == 'I')
			scope = tfh_dm_template_arguments(p, scope, function);
		else
			scope = tfh_dm_join3(p, scope, begin ? "" : "::", unqualified(p, scope));
		if (tfh_dm_peek(p) != 'E')
			tfh_dm_remember_name(p, scope);
	}
	p->qualifiers = qualifiers;
	return scope;
}

/* "f(int)::x": what is declared within a function. */
static const char *local(struct tfh_dm_parser *p)
{
	tfh_dm_expect(p, "Z");
	const char *within = tfh_dm_encoding(p, true), *inner;

	tfh_dm_expect(p, "E");
	if (tfh_dm_take(p, "s")) {
		inner = "string literal";
	} else {
		if (tfh_dm_take(p, "d"))
			tfh_dm_sequence(p, 10);
		inner = tfh_dm_name(p, true);
	}
	if (tfh_dm_take(p, "__"))
		tfh_dm_sequence(p, 10);
	else if (tfh_dm_peek(p) == '_' && isdigit((unsigned char)tfh_dm_peek2(p)))
		p->at += 2;
	return tfh_dm_join3(p, within, "::", inner);
}

const char *tfh_dm_name(struct tfh_dm_parser *p, bool function)
{
	const char *out;

	if (++p->depth > DEEPEST)
		return tfh_dm_fail(p);
	p->qualifiers = "";
	p->templated = p->unreturning = false;
	if (tfh_dm_peek(p) == 'N') {
		out = nested(p, function);
	} else if (tfh_dm_peek(p) == 'Z') {
		out = local(p);
	} else if (tfh_dm_peek(p) == 'S' && tfh_dm_peek2(p) != 't') {
		out = tfh_dm_template_arguments(p, tfh_dm_flat(p, tfh_dm_substitution(p)),
						function);
	} else {
		const char *scope = tfh_dm_take(p, "St") ? "std::" : "";
		out = tfh_dm_join(p, scope, unqualified(p, ""));
		if (tfh_dm_peek(p) == 'I') {
			tfh_dm_remember_name(p, out);
			out = tfh_dm_template_arguments(p, out, function);
		}
	}
	p->depth--;
	return out;
}

/* A function: its name, and on request what it takes. */
const char *tfh_dm_encoding(struct tfh_dm_parser *p, bool with_parameters)
{
	struct tfh_dm_text arg[PARAMETERS];
	unsigned args = p->args;
	int lambda = p->lambda;

	memcpy(arg, p->arg, args * sizeof(arg[0]));
	p->lambda = 0;
	const char *out = tfh_dm_name(p, true), *qualifiers = p->qualifiers;
	if (with_parameters && p->at < p->end && tfh_dm_peek(p) != 'E') {
		if (p->templated && !p->unreturning)
			tfh_dm_type(p); /* what it returns is not shown */
		out = tfh_dm_join3(p, out, tfh_dm_parameters(p), qualifiers);
		memcpy(p->arg, arg, args * sizeof(arg[0]));
		p->args = args;
	}
	p->lambda = lambda;
	return out;
}

bool tfh_demangle(const char *mangled, char *out, size_t size)
{
	size_t len = strnlen(mangled, LONGEST);

	if (len < 3 || len == LONGEST || memcmp(mangled, "_Z", 2))
		return false;
	struct tfh_dm_parser *p = calloc(1, sizeof(*p));
	char *arena = malloc(ARENA);
	bool done = false;
	if (p && arena) {
		p->at = mangled + 2;
		p->end = mangled + len;
		p->arena = arena;
		p->qualifiers = "";
		const char *plain = tfh_dm_encoding(p, false);
		done = !p->failed && strlen(plain) < size;
		if (done)
			memcpy(out, plain, strlen(plain) + 1);
	}
	free(arena);
	free(p);
	return done;
}
