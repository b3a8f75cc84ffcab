/* Names and types in mangled names. They contain each other, so both are read in this file. */
#include "model/symbols/demangle.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/symbols/demangle_parser.h"

/* Names contain types as template arguments, and types contain names. */
static struct tfh_dm_text read_type(struct tfh_dm_parser *p);
static const char *type_text(struct tfh_dm_parser *p);
static const char *read_name(struct tfh_dm_parser *p, bool function);
static const char *encoding(struct tfh_dm_parser *p, bool with_parameters);

/* ---- parts of names ---- */

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
		return tfh_dm_join(p, "operator ", type_text(p));
	}
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (tfh_dm_take(p, operators[i].code))
			return tfh_dm_join3(p, "operator",
					    isalpha((unsigned char)*operators[i].text) ? " " : "",
					    operators[i].text);
	return tfh_dm_fail(p);
}

/* Parameters as "(int, float*)", up to an E or the end. */
static const char *parameters(struct tfh_dm_parser *p)
{
	const char *out = "(";

	if (tfh_dm_peek(p) == 'v' && (p->at + 1 == p->end || tfh_dm_peek2(p) == 'E')) {
		p->at++;
		return "()";
	}
	for (bool any = false; p->at < p->end && tfh_dm_peek(p) != 'E' && !p->failed;) {
		const char *one = type_text(p);
		out = tfh_dm_join3(p, out, any && *one ? ", " : "", one);
		any |= *one != '\0';
	}
	return tfh_dm_join(p, out, ")");
}

/* Appends a number: "#2}". */
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
	const char *takes = parameters(p);
	p->lambda--;
	tfh_dm_expect(p, "E");
	return counted(p, tfh_dm_join3(p, "{lambda", takes, "#"));
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
		out = tfh_dm_join(p, c == 'D' ? "~" : "", tfh_dm_last_part(p, scope));
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
		kind = encoding(p, true);
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
	kind = tfh_dm_join3(p, "(", type_text(p), ")");
	sign = tfh_dm_take(p, "n") ? "-" : "";
	value = tfh_dm_join3(p, kind, sign, tfh_dm_digits(p));
	tfh_dm_expect(p, "E");
	return value;
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
		/* Only the expressions that are addresses and literals. */
		const char *of = tfh_dm_take(p, "ad") ? "&" : "";
		tfh_dm_expect(p, "L");
		t.left = *of ? tfh_dm_join3(p, "&(", literal(p), ")") : literal(p);
		tfh_dm_expect(p, "E");
	} else {
		t = read_type(p);
	}
	return t;
}

/* `text` with "<...>" appended. Only the function's own arguments are what T_ refers to. */
static const char *template_arguments(struct tfh_dm_parser *p, const char *text, bool function)
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

/* ---- types ---- */

static const char *builtin(char c)
{
	static const struct {
		char code;
		const char *text;
	} types[] = {{'a', "signed char"}, {'b', "bool"},
		     {'c', "char"},	   {'d', "double"},
		     {'e', "long double"}, {'f', "float"},
		     {'g', "__float128"},  {'h', "unsigned char"},
		     {'i', "int"},	   {'j', "unsigned int"},
		     {'l', "long"},	   {'m', "unsigned long"},
		     {'n', "__int128"},	   {'o', "unsigned __int128"},
		     {'s', "short"},	   {'t', "unsigned short"},
		     {'v', "void"},	   {'w', "wchar_t"},
		     {'x', "long long"},   {'y', "unsigned long long"},
		     {'z', "..."}};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].code == c)
			return types[i].text;
	return NULL;
}

/* A pointer or reference to t. If t is a parameter pack, which is one text of several types, it
 * applies to the last type. */
static struct tfh_dm_text pointer(struct tfh_dm_parser *p, struct tfh_dm_text t, const char *mark)
{
	if (!*t.left)
		return t;
	size_t n = strlen(t.left);
	bool reference = n && t.left[n - 1] == '&';

	if (t.shape != TFH_DM_PLAIN) {
		t.left = tfh_dm_join3(p, t.left, " (", mark);
		t.right = tfh_dm_join3(p, t.shape == TFH_DM_ARRAY ? ") " : ")", t.right, "");
		t.shape = TFH_DM_PLAIN;
		return t;
	}
	if (*mark == '&' && reference) { /* reference collapsing: "&&" remains only for "&&" */
		bool both = n > 1 && t.left[n - 2] == '&';
		if (!both || mark[1])
			return t;
		char *out = tfh_dm_room(p, n - 1);
		if (out) {
			memcpy(out, t.left, n - 1);
			out[n - 1] = '\0';
			t.left = out;
		}
		return t;
	}
	t.left = tfh_dm_join(p, t.left, mark);
	return t;
}

static struct tfh_dm_text function_type(struct tfh_dm_parser *p, const char *qualifiers)
{
	struct tfh_dm_text t = {"", "", TFH_DM_FUNCTION};

	tfh_dm_expect(p, "F");
	tfh_dm_take(p, "Y");
	const char *returns = type_text(p);
	const char *takes = parameters(p);
	tfh_dm_expect(p, "E");
	t.left = returns;
	t.right = tfh_dm_join(p, takes, qualifiers);
	return t;
}

static struct tfh_dm_text array_type(struct tfh_dm_parser *p)
{
	tfh_dm_expect(p, "A");
	const char *size = tfh_dm_digits(p);
	tfh_dm_expect(p, "_");
	struct tfh_dm_text of = read_type(p);
	return (struct tfh_dm_text){
		of.left, tfh_dm_join(p, tfh_dm_join3(p, "[", size, "]"), of.right), TFH_DM_ARRAY};
}

static struct tfh_dm_text member_pointer(struct tfh_dm_parser *p)
{
	tfh_dm_expect(p, "M");
	const char *class = type_text(p), *mark = tfh_dm_join(p, class, "::*");
	struct tfh_dm_text t = read_type(p);

	if (t.shape == TFH_DM_PLAIN)
		t.left = tfh_dm_join(p, t.left, " ");
	return pointer(p, t, mark);
}

/* Types whose code begins with D. */
static struct tfh_dm_text special_type(struct tfh_dm_parser *p, bool *known)
{
	static const struct {
		const char *code, *text;
	} types[] = {{"Dn", "decltype(nullptr)"},
		     {"Di", "char32_t"},
		     {"Ds", "char16_t"},
		     {"Du", "char8_t"},
		     {"Da", "auto"},
		     {"Dc", "decltype(auto)"},
		     {"Dh", "half"},
		     {"DF16_", "_Float16"}};
	struct tfh_dm_text t = {"", "", TFH_DM_PLAIN};

	*known = true;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (tfh_dm_take(p, types[i].code)) {
			t.left = types[i].text;
			return t;
		}
	*known = false;
	if (tfh_dm_take(p, "Do"))
		return function_type(p, " noexcept");
	if (tfh_dm_take(p, "Dp"))
		return read_type(p);
	if (tfh_dm_take(p, "Dv")) {
		const char *size = tfh_dm_join3(p, " __vector(", tfh_dm_digits(p), ")");
		tfh_dm_expect(p, "_");
		t.left = tfh_dm_join(p, type_text(p), size);
		return t;
	}
	tfh_dm_fail(p);
	return t;
}

static struct tfh_dm_text pointer_to_type(struct tfh_dm_parser *p)
{
	char kind = tfh_dm_peek(p);

	p->at++;
	return pointer(p, read_type(p), kind == 'P' ? "*" : kind == 'R' ? "&" : "&&");
}

static struct tfh_dm_text substituted_type(struct tfh_dm_parser *p, bool *remembered)
{
	struct tfh_dm_text t = tfh_dm_substitution(p);

	*remembered = tfh_dm_peek(p) != 'I';
	if (*remembered)
		return t;
	return (struct tfh_dm_text){template_arguments(p, tfh_dm_flat(p, t), false), "",
				    TFH_DM_PLAIN};
}

/* A class or enumeration. What its name says about a function's type does not count for the
 * function around it. */
static struct tfh_dm_text named_type(struct tfh_dm_parser *p)
{
	const char *qualifiers = p->qualifiers;
	bool templated = p->templated, unreturning = p->unreturning;
	struct tfh_dm_text t = {read_name(p, false), "", TFH_DM_PLAIN};

	p->qualifiers = qualifiers;
	p->templated = templated;
	p->unreturning = unreturning;
	return t;
}

/* All types except qualified ones. `remembered`: set if the type itself is no substitution
 * candidate. */
static struct tfh_dm_text bare_type(struct tfh_dm_parser *p, bool *remembered)
{
	struct tfh_dm_text t = {"", "", TFH_DM_PLAIN};
	const char *plain = builtin(tfh_dm_peek(p));

	*remembered = plain != NULL;
	if (plain) {
		p->at++;
		t.left = plain;
		return t;
	}
	switch (tfh_dm_peek(p)) {
	case 'P':
	case 'R':
	case 'O':
		return pointer_to_type(p);
	case 'C':
		p->at++;
		t.left = tfh_dm_join(p, type_text(p), " _Complex");
		return t;
	case 'F':
		return function_type(p, "");
	case 'A':
		return array_type(p);
	case 'M':
		return member_pointer(p);
	case 'D':
		return special_type(p, remembered);
	case 'u':
		p->at++;
		t.left = tfh_dm_source_name(p);
		return t;
	case 'T':
		t = tfh_dm_template_parameter(p);
		if (tfh_dm_peek(p) != 'I')
			return t;
		tfh_dm_remember(p, t);
		t.left = template_arguments(p, tfh_dm_flat(p, t), false);
		return t;
	case 'S':
		return tfh_dm_peek2(p) == 't' ? named_type(p) : substituted_type(p, remembered);
	default:
		return named_type(p);
	}
}

static struct tfh_dm_text read_type(struct tfh_dm_parser *p)
{
	const char *qualifiers = "";
	bool remembered;
	struct tfh_dm_text t = {"", "", TFH_DM_PLAIN};

	if (p->failed || ++p->depth > DEEPEST) {
		tfh_dm_fail(p);
		return t;
	}
	for (; tfh_dm_peek(p) && strchr("rVK", tfh_dm_peek(p)); p->at++)
		qualifiers = tfh_dm_join(p,
					 tfh_dm_peek(p) == 'K'	 ? " const"
					 : tfh_dm_peek(p) == 'V' ? " volatile"
								 : " __restrict",
					 qualifiers);
	if (*qualifiers && tfh_dm_peek(p) == 'F') {
		t = function_type(p, qualifiers);
		remembered = false;
	} else {
		t = bare_type(p, &remembered);
		if (*qualifiers && !remembered)
			tfh_dm_remember(p, t);
		if (*qualifiers)
			t.left = tfh_dm_join(p, t.left, qualifiers);
	}
	if (!remembered || *qualifiers)
		tfh_dm_remember(p, t);
	p->depth--;
	return t;
}

static const char *type_text(struct tfh_dm_parser *p)
{
	return tfh_dm_flat(p, read_type(p));
}

/* ---- names ---- */

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
			continue; /* of a lambda in a member's default initializer */
		if (begin && tfh_dm_peek(p) == 'T')
			scope = tfh_dm_flat(p, tfh_dm_template_parameter(p));
		else if (!begin && tfh_dm_peek(p) == 'I')
			scope = template_arguments(p, scope, function);
		else
			scope = tfh_dm_join3(p, scope, begin ? "" : "::", unqualified(p, scope));
		if (tfh_dm_peek(p) != 'E')
			tfh_dm_remember_name(p, scope);
	}
	p->qualifiers = qualifiers;
	return scope;
}

/* "f(int)::x": an entity declared inside a function. */
static const char *local(struct tfh_dm_parser *p)
{
	tfh_dm_expect(p, "Z");
	const char *within = encoding(p, true), *inner;

	tfh_dm_expect(p, "E");
	if (tfh_dm_take(p, "s")) {
		inner = "string literal";
	} else {
		if (tfh_dm_take(p, "d"))
			tfh_dm_sequence(p, 10);
		inner = read_name(p, true);
	}
	if (tfh_dm_take(p, "__"))
		tfh_dm_sequence(p, 10);
	else if (tfh_dm_peek(p) == '_' && isdigit((unsigned char)tfh_dm_peek2(p)))
		p->at += 2;
	return tfh_dm_join3(p, within, "::", inner);
}

static const char *read_name(struct tfh_dm_parser *p, bool function)
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
		out = template_arguments(p, tfh_dm_flat(p, tfh_dm_substitution(p)), function);
	} else {
		const char *scope = tfh_dm_take(p, "St") ? "std::" : "";
		out = tfh_dm_join(p, scope, unqualified(p, ""));
		if (tfh_dm_peek(p) == 'I') {
			tfh_dm_remember_name(p, out);
			out = template_arguments(p, out, function);
		}
	}
	p->depth--;
	return out;
}

/* A function's name, with its parameters on request. */
static const char *encoding(struct tfh_dm_parser *p, bool with_parameters)
{
	struct tfh_dm_text arg[PARAMETERS];
	unsigned args = p->args;
	int lambda = p->lambda;

	memcpy(arg, p->arg, args * sizeof(arg[0]));
	p->lambda = 0;
	const char *out = read_name(p, true), *qualifiers = p->qualifiers;
	if (with_parameters && p->at < p->end && tfh_dm_peek(p) != 'E') {
		if (p->templated && !p->unreturning)
			read_type(p); /* the result type is not shown */
		out = tfh_dm_join3(p, out, parameters(p), qualifiers);
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
		const char *plain = encoding(p, false);
		done = !p->failed && strlen(plain) < size;
		if (done)
			memcpy(out, plain, strlen(plain) + 1);
	}
	free(arena);
	free(p);
	return done;
}
