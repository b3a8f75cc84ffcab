#include "model/demangle.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARENA (1u << 20) /* bytes of text in all: what bounds time and memory */
#define LONGEST 8192u	 /* of a mangled name, and of every text on the way */
#define DEEPEST 96
#define SUBSTITUTIONS 512
#define PARAMETERS 64

/* A type's text stands before and behind what is declared with it: "int (" ") [3]". */
enum shape { PLAIN, FUNCTION, ARRAY };

struct text {
	const char *left, *right;
	enum shape shape; /* a pointer to it needs brackets; not after the first */
};

struct parser {
	const char *at, *end;
	char *arena;
	size_t used;
	bool failed;
	int depth, lambda; /* within so many lambdas' parameters */
	struct text sub[SUBSTITUTIONS];
	unsigned subs;
	struct text arg[PARAMETERS]; /* template arguments of the function that is read */
	unsigned args;
	bool templated;		/* the name read last ends with template arguments */
	bool unreturning;	/* it is a constructor, destructor or conversion */
	const char *qualifiers; /* of the member function: " const" */
};

static const char *type_text(struct parser *p);
static struct text type(struct parser *p);
static const char *encoding(struct parser *p, bool parameters);
static const char *name(struct parser *p, bool function);

static const char *fail(struct parser *p)
{
	p->failed = true;
	return "";
}

static char *room(struct parser *p, size_t len)
{
	if (p->failed || len >= LONGEST || len + 1 > ARENA - p->used) {
		fail(p);
		return NULL;
	}
	char *at = p->arena + p->used;
	p->used += len + 1;
	return at;
}

static const char *join3(struct parser *p, const char *a, const char *b, const char *c)
{
	size_t x = strlen(a), y = strlen(b), z = strlen(c);
	char *out = room(p, x + y + z);

	if (!out)
		return "";
	memcpy(out, a, x);
	memcpy(out + x, b, y);
	memcpy(out + x + y, c, z + 1);
	return out;
}

static const char *join(struct parser *p, const char *a, const char *b)
{
	return join3(p, a, b, "");
}

static char peek(const struct parser *p)
{
	return p->at < p->end ? *p->at : '\0';
}

static char peek2(const struct parser *p)
{
	return p->at + 1 < p->end ? p->at[1] : '\0';
}

static bool take(struct parser *p, const char *what)
{
	size_t n = strlen(what);

	if ((size_t)(p->end - p->at) < n || memcmp(p->at, what, n))
		return false;
	p->at += n;
	return true;
}

static void expect(struct parser *p, const char *what)
{
	if (!take(p, what))
		fail(p);
}

static const char *digits(struct parser *p)
{
	size_t n = 0;

	while (p->at + n < p->end && isdigit((unsigned char)p->at[n]))
		n++;
	char *out = room(p, n);
	if (!out)
		return "";
	memcpy(out, p->at, n);
	out[n] = '\0';
	p->at += n;
	return out;
}

static unsigned long number(struct parser *p)
{
	const char *text = digits(p);

	if (!*text || strlen(text) > 6)
		fail(p);
	return p->failed ? 0 : strtoul(text, NULL, 10);
}

/* "_" is 0, "0_" is 1: of lambdas, parameters; base 36 of substitutions. */
static unsigned long sequence(struct parser *p, int base)
{
	unsigned long n = 0;

	if (take(p, "_"))
		return 0;
	for (; n < LONGEST; p->at++) {
		char c = peek(p);
		if (isdigit((unsigned char)c))
			n = n * (unsigned)base + (unsigned)(c - '0');
		else if (base == 36 && c >= 'A' && c <= 'Z')
			n = n * 36 + (unsigned)(c - 'A') + 10;
		else
			break;
	}
	expect(p, "_");
	return n + 1;
}

static void remember(struct parser *p, struct text t)
{
	if (p->subs == SUBSTITUTIONS)
		fail(p);
	else
		p->sub[p->subs++] = t;
}

static void remember_name(struct parser *p, const char *text)
{
	remember(p, (struct text){text, "", PLAIN});
}

static const char *flat(struct parser *p, struct text t)
{
	return *t.right ? join3(p, t.left, t.shape == PLAIN ? "" : " ", t.right) : t.left;
}

/* ---- parts of names ---- */

static const char *source_name(struct parser *p)
{
	size_t n = number(p);

	if (p->failed || !n || n > (size_t)(p->end - p->at))
		return fail(p);
	const char *from = p->at;
	p->at += n;
	if (n >= 10 && !memcmp(from, "_GLOBAL_", 8) && strchr("._$", from[8]) && from[9] == 'N')
		return "(anonymous namespace)";
	char *out = room(p, n);
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

static const char *operator_name(struct parser *p)
{
	if (take(p, "cv")) {
		p->unreturning = true;
		return join(p, "operator ", type_text(p));
	}
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (take(p, operators[i].code))
			return join3(p, "operator",
				     isalpha((unsigned char)*operators[i].text) ? " " : "",
				     operators[i].text);
	return fail(p);
}

/* "(int, float*)" up to an E or the end. */
static const char *parameters(struct parser *p)
{
	const char *out = "(";

	if (peek(p) == 'v' && (p->at + 1 == p->end || peek2(p) == 'E')) {
		p->at++;
		return "()";
	}
	for (bool any = false; p->at < p->end && peek(p) != 'E' && !p->failed;) {
		const char *one = type_text(p);
		out = join3(p, out, any && *one ? ", " : "", one);
		any |= *one != '\0';
	}
	return join(p, out, ")");
}

/* "#2}" */
static const char *counted(struct parser *p, const char *text)
{
	char count[16];
	unsigned long n = sequence(p, 10) + 1;
	size_t len = sizeof(count) - 1;

	count[len] = '\0';
	for (; n; n /= 10)
		count[--len] = (char)('0' + n % 10);
	return join3(p, text, count + len, "}");
}

static const char *unnamed(struct parser *p)
{
	if (take(p, "Ut"))
		return counted(p, "{unnamed type#");
	expect(p, "Ul");
	p->lambda++;
	const char *takes = parameters(p);
	p->lambda--;
	expect(p, "E");
	return counted(p, join3(p, "{lambda", takes, "#"));
}

/* The class' own name, of which its constructors are called. */
static const char *last_part(struct parser *p, const char *scope)
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
	char *out = begin <= end ? room(p, (size_t)(end - begin)) : NULL;
	if (!out)
		return fail(p);
	memcpy(out, begin, (size_t)(end - begin));
	out[end - begin] = '\0';
	return out;
}

static const char *unqualified(struct parser *p, const char *scope)
{
	const char *out;
	char c = peek(p), d = peek2(p);

	p->templated = p->unreturning = false;
	if (c == 'L')
		p->at++;
	if (isdigit((unsigned char)peek(p))) {
		out = source_name(p);
	} else if (c == 'U') {
		out = unnamed(p);
	} else if (*scope &&
		   ((c == 'C' && d >= '1' && d <= '5') || (c == 'D' && d >= '0' && d <= '5'))) {
		p->at += 2;
		out = join(p, c == 'D' ? "~" : "", last_part(p, scope));
		p->unreturning = true;
	} else {
		out = operator_name(p);
	}
	while (take(p, "B"))
		out = join(p, out, join3(p, "[abi:", source_name(p), "]"));
	return out;
}

/* ---- template arguments ---- */

static const char *literal(struct parser *p)
{
	static const struct {
		char type;
		const char *suffix;
	} suffixes[] = {{'i', ""}, {'j', "u"}, {'l', "l"}, {'m', "ul"}, {'x', "ll"}, {'y', "ull"}};
	char c = peek(p);
	const char *kind, *sign, *value;

	if (take(p, "_Z")) {
		kind = encoding(p, true);
		expect(p, "E");
		return kind;
	}
	if (c == 'b' && (peek2(p) == '0' || peek2(p) == '1') && p->at + 2 < p->end &&
	    p->at[2] == 'E') {
		p->at += 3;
		return p->at[-2] == '1' ? "true" : "false";
	}
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		if (c != suffixes[i].type)
			continue;
		p->at++;
		sign = take(p, "n") ? "-" : "";
		value = join3(p, sign, digits(p), suffixes[i].suffix);
		expect(p, "E");
		return value;
	}
	kind = join3(p, "(", type_text(p), ")");
	sign = take(p, "n") ? "-" : "";
	value = join3(p, kind, sign, digits(p));
	expect(p, "E");
	return value;
}

static struct text template_parameter(struct parser *p)
{
	static const struct text none = {"", "", PLAIN};

	expect(p, "T");
	unsigned long i = sequence(p, 10);
	if (p->lambda) { /* its own: what "auto" stands for */
		char n[] = {(char)('1' + i % 9), '\0'};
		return (struct text){i < 9 ? join(p, "auto:", n) : fail(p), "", PLAIN};
	}
	if (i < p->args)
		return p->arg[i];
	fail(p);
	return none;
}

static struct text template_argument(struct parser *p)
{
	struct text t = {"", "", PLAIN};

	if (take(p, "L")) {
		t.left = literal(p);
	} else if (take(p, "J")) {
		for (bool any = false; peek(p) != 'E' && !p->failed;) {
			const char *one = flat(p, template_argument(p));
			t.left = join3(p, t.left, any && *one ? ", " : "", one);
			any |= *one != '\0';
		}
		expect(p, "E");
	} else if (take(p, "X")) {
		/* Of expressions, addresses and literals only. */
		const char *of = take(p, "ad") ? "&" : "";
		expect(p, "L");
		t.left = *of ? join3(p, "&(", literal(p), ")") : literal(p);
		expect(p, "E");
	} else {
		t = type(p);
	}
	return t;
}

/* `text` with "<...>" behind it; the function's own arguments are those that T_ means. */
static const char *template_arguments(struct parser *p, const char *text, bool function)
{
	struct text own[PARAMETERS];
	unsigned n = 0;
	const char *out;
	int lambda = p->lambda;

	expect(p, "I");
	if (++p->depth > DEEPEST)
		return fail(p);
	p->lambda = 0;
	size_t len = strlen(text);
	out = join(p, text, len && text[len - 1] == '<' ? " <" : "<");
	for (bool any = false; peek(p) != 'E' && !p->failed;) {
		struct text one = template_argument(p);
		const char *shown = flat(p, one);
		if (n == PARAMETERS)
			return fail(p);
		own[n++] = one;
		out = join3(p, out, any && *shown ? ", " : "", shown);
		any |= *shown != '\0';
	}
	expect(p, "E");
	p->depth--;
	p->lambda = lambda;
	if (function) {
		memcpy(p->arg, own, n * sizeof(own[0]));
		p->args = n;
	}
	p->templated = true;
	len = strlen(out);
	return join(p, out, len && out[len - 1] == '>' ? " >" : ">");
}

/* ---- names ---- */

/* "S1_" and "Sa", without what may follow; "St" is left to the caller. */
static struct text substitution(struct parser *p)
{
	static const struct {
		const char *code, *text;
	} standard[] = {{"Sa", "std::allocator"}, {"Sb", "std::basic_string"},
			{"Ss", "std::string"},	  {"Si", "std::istream"},
			{"So", "std::ostream"},	  {"Sd", "std::iostream"}};
	static const struct text none = {"", "", PLAIN};

	for (size_t i = 0; i < sizeof(standard) / sizeof(standard[0]); i++)
		if (take(p, standard[i].code))
			return (struct text){standard[i].text, "", PLAIN};
	expect(p, "S");
	unsigned long i = sequence(p, 36);
	if (!p->failed && i < p->subs)
		return p->sub[i];
	fail(p);
	return none;
}

static const char *nested(struct parser *p, bool function)
{
	const char *scope = "", *qualifiers = "";

	expect(p, "N");
	for (; strchr("rVKRO", peek(p)) && peek(p); p->at++)
		qualifiers = join(p,
				  peek(p) == 'K'   ? " const"
				  : peek(p) == 'V' ? " volatile"
				  : peek(p) == 'R' ? " &"
				  : peek(p) == 'O' ? " &&"
						   : " __restrict",
				  qualifiers);
	while (!p->failed && !take(p, "E")) {
		bool begin = !*scope;
		if (begin && take(p, "St")) {
			scope = "std";
			continue;
		}
		if (begin && peek(p) == 'S') {
			scope = flat(p, substitution(p));
			p->templated = false;
			continue;
		}
		if (!begin && take(p, "M"))
			continue; /* of a lambda in a member's initializer */
		if (begin && peek(p) == 'T')
			scope = flat(p, template_parameter(p));
		else if (!begin && peek(p) == 'I')
			scope = template_arguments(p, scope, function);
		else
			scope = join3(p, scope, begin ? "" : "::", unqualified(p, scope));
		if (peek(p) != 'E')
			remember_name(p, scope);
	}
	p->qualifiers = qualifiers;
	return scope;
}

/* "f(int)::x": what is declared within a function. */
static const char *local(struct parser *p)
{
	expect(p, "Z");
	const char *within = encoding(p, true), *inner;

	expect(p, "E");
	if (take(p, "s")) {
		inner = "string literal";
	} else {
		if (take(p, "d"))
			sequence(p, 10);
		inner = name(p, true);
	}
	if (take(p, "__"))
		sequence(p, 10);
	else if (peek(p) == '_' && isdigit((unsigned char)peek2(p)))
		p->at += 2;
	return join3(p, within, "::", inner);
}

static const char *name(struct parser *p, bool function)
{
	const char *out;

	if (++p->depth > DEEPEST)
		return fail(p);
	p->qualifiers = "";
	p->templated = p->unreturning = false;
	if (peek(p) == 'N') {
		out = nested(p, function);
	} else if (peek(p) == 'Z') {
		out = local(p);
	} else if (peek(p) == 'S' && peek2(p) != 't') {
		out = template_arguments(p, flat(p, substitution(p)), function);
	} else {
		const char *scope = take(p, "St") ? "std::" : "";
		out = join(p, scope, unqualified(p, ""));
		if (peek(p) == 'I') {
			remember_name(p, out);
			out = template_arguments(p, out, function);
		}
	}
	p->depth--;
	return out;
}

/* A function: its name, and on request what it takes. */
static const char *encoding(struct parser *p, bool with_parameters)
{
	struct text arg[PARAMETERS];
	unsigned args = p->args;
	int lambda = p->lambda;

	memcpy(arg, p->arg, args * sizeof(arg[0]));
	p->lambda = 0;
	const char *out = name(p, true), *qualifiers = p->qualifiers;
	if (with_parameters && p->at < p->end && peek(p) != 'E') {
		if (p->templated && !p->unreturning)
			type(p); /* what it returns is not shown */
		out = join3(p, out, parameters(p), qualifiers);
		memcpy(p->arg, arg, args * sizeof(arg[0]));
		p->args = args;
	}
	p->lambda = lambda;
	return out;
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

/* A pointer or reference to t; of a pack, which is its types' text, to the last one. */
static struct text pointer(struct parser *p, struct text t, const char *mark)
{
	if (!*t.left)
		return t;
	size_t n = strlen(t.left);
	bool reference = n && t.left[n - 1] == '&';

	if (t.shape != PLAIN) {
		t.left = join3(p, t.left, " (", mark);
		t.right = join3(p, t.shape == ARRAY ? ") " : ")", t.right, "");
		t.shape = PLAIN;
		return t;
	}
	if (*mark == '&' && reference) { /* collapses: "&&" stays only with "&&" */
		bool both = n > 1 && t.left[n - 2] == '&';
		if (!both || mark[1])
			return t;
		char *out = room(p, n - 1);
		if (out) {
			memcpy(out, t.left, n - 1);
			out[n - 1] = '\0';
			t.left = out;
		}
		return t;
	}
	t.left = join(p, t.left, mark);
	return t;
}

static struct text function_type(struct parser *p, const char *qualifiers)
{
	struct text t = {"", "", FUNCTION};

	expect(p, "F");
	take(p, "Y");
	const char *returns = type_text(p);
	const char *takes = parameters(p);
	expect(p, "E");
	t.left = returns;
	t.right = join(p, takes, qualifiers);
	return t;
}

static struct text array_type(struct parser *p)
{
	expect(p, "A");
	const char *size = digits(p);
	expect(p, "_");
	struct text of = type(p);
	return (struct text){of.left, join(p, join3(p, "[", size, "]"), of.right), ARRAY};
}

static struct text member_pointer(struct parser *p)
{
	expect(p, "M");
	const char *class = type_text(p), *mark = join(p, class, "::*");
	struct text t = type(p);

	if (t.shape == PLAIN)
		t.left = join(p, t.left, " ");
	return pointer(p, t, mark);
}

/* Types that begin with D. */
static struct text special_type(struct parser *p, bool *known)
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
	struct text t = {"", "", PLAIN};

	*known = true;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (take(p, types[i].code)) {
			t.left = types[i].text;
			return t;
		}
	*known = false;
	if (take(p, "Do"))
		return function_type(p, " noexcept");
	if (take(p, "Dp"))
		return type(p);
	if (take(p, "Dv")) {
		const char *size = join3(p, " __vector(", digits(p), ")");
		expect(p, "_");
		t.left = join(p, type_text(p), size);
		return t;
	}
	fail(p);
	return t;
}

/* All but qualifiers; `remembered`: no substitution stands for it alone. */
static struct text bare_type(struct parser *p, bool *remembered)
{
	struct text t = {"", "", PLAIN};
	const char *plain = builtin(peek(p));

	*remembered = plain != NULL;
	if (plain) {
		p->at++;
		t.left = plain;
		return t;
	}
	switch (peek(p)) {
	case 'P':
		p->at++;
		return pointer(p, type(p), "*");
	case 'R':
		p->at++;
		return pointer(p, type(p), "&");
	case 'O':
		p->at++;
		return pointer(p, type(p), "&&");
	case 'C':
		p->at++;
		t.left = join(p, type_text(p), " _Complex");
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
		t.left = source_name(p);
		return t;
	case 'T':
		t = template_parameter(p);
		if (peek(p) != 'I')
			return t;
		remember(p, t);
		t.left = template_arguments(p, flat(p, t), false);
		return t;
	case 'S':
		if (peek2(p) == 't')
			break;
		t = substitution(p);
		*remembered = peek(p) != 'I';
		if (!*remembered)
			t = (struct text){template_arguments(p, flat(p, t), false), "", PLAIN};
		return t;
	default:
		break;
	}
	const char *qualifiers = p->qualifiers;
	bool templated = p->templated, unreturning = p->unreturning;
	t.left = name(p, false);
	p->qualifiers = qualifiers;
	p->templated = templated;
	p->unreturning = unreturning;
	return t;
}

static struct text type(struct parser *p)
{
	const char *qualifiers = "";
	bool remembered;
	struct text t = {"", "", PLAIN};

	if (p->failed || ++p->depth > DEEPEST) {
		fail(p);
		return t;
	}
	for (; peek(p) && strchr("rVK", peek(p)); p->at++)
		qualifiers = join(p,
				  peek(p) == 'K'   ? " const"
				  : peek(p) == 'V' ? " volatile"
						   : " __restrict",
				  qualifiers);
	if (*qualifiers && peek(p) == 'F') {
		t = function_type(p, qualifiers);
		remembered = false;
	} else {
		t = bare_type(p, &remembered);
		if (*qualifiers && !remembered)
			remember(p, t);
		if (*qualifiers)
			t.left = join(p, t.left, qualifiers);
	}
	if (!remembered || *qualifiers)
		remember(p, t);
	p->depth--;
	return t;
}

static const char *type_text(struct parser *p)
{
	return flat(p, type(p));
}

bool tfh_demangle(const char *mangled, char *out, size_t size)
{
	size_t len = strnlen(mangled, LONGEST);

	if (len < 3 || len == LONGEST || memcmp(mangled, "_Z", 2))
		return false;
	struct parser *p = calloc(1, sizeof(*p));
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
