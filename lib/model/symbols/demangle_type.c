/* Types in mangled names. */
#include "model/symbols/demangle_parser.h"

#include <string.h>

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
	if (*mark == '&' && reference) { /* collapses: "&&" stays only with "&&" */
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
	const char *returns = tfh_dm_type_text(p);
	const char *takes = tfh_dm_parameters(p);
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
	struct tfh_dm_text of = tfh_dm_type(p);
	return (struct tfh_dm_text){
		of.left, tfh_dm_join(p, tfh_dm_join3(p, "[", size, "]"), of.right), TFH_DM_ARRAY};
}

static struct tfh_dm_text member_pointer(struct tfh_dm_parser *p)
{
	tfh_dm_expect(p, "M");
	const char *class = tfh_dm_type_text(p), *mark = tfh_dm_join(p, class, "::*");
	struct tfh_dm_text t = tfh_dm_type(p);

	if (t.shape == TFH_DM_PLAIN)
		t.left = tfh_dm_join(p, t.left, " ");
	return pointer(p, t, mark);
}

/* Types that begin with D. */
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
		return tfh_dm_type(p);
	if (tfh_dm_take(p, "Dv")) {
		const char *size = tfh_dm_join3(p, " __vector(", tfh_dm_digits(p), ")");
		tfh_dm_expect(p, "_");
		t.left = tfh_dm_join(p, tfh_dm_type_text(p), size);
		return t;
	}
	tfh_dm_fail(p);
	return t;
}

/* All but qualifiers; `remembered`: no substitution stands for it alone. */
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
		p->at++;
		return pointer(p, tfh_dm_type(p), "*");
	case 'R':
		p->at++;
		return pointer(p, tfh_dm_type(p), "&");
	case 'O':
		p->at++;
		return pointer(p, tfh_dm_type(p), "&&");
	case 'C':
		p->at++;
		t.left = tfh_dm_join(p, tfh_dm_type_text(p), " _Complex");
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
		t.left = tfh_dm_template_arguments(p, tfh_dm_flat(p, t), false);
		return t;
	case 'S':
		if (tfh_dm_peek2(p) == 't')
			break;
		t = tfh_dm_substitution(p);
		*remembered = tfh_dm_peek(p) != 'I';
		if (!*remembered)
			t = (struct tfh_dm_text){
				tfh_dm_template_arguments(p, tfh_dm_flat(p, t), false), "",
				TFH_DM_PLAIN};
		return t;
	default:
		break;
	}
	const char *qualifiers = p->qualifiers;
	bool templated = p->templated, unreturning = p->unreturning;
	t.left = tfh_dm_name(p, false);
	p->qualifiers = qualifiers;
	p->templated = templated;
	p->unreturning = unreturning;
	return t;
}

struct tfh_dm_text tfh_dm_type(struct tfh_dm_parser *p)
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

const char *tfh_dm_type_text(struct tfh_dm_parser *p)
{
	return tfh_dm_flat(p, tfh_dm_type(p));
}
