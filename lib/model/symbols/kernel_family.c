#include "model/symbols/kernel_family.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/symbols/demangle.h"
#include "model/symbols/kernel_name.h"

#define LONGEST 2048 /* longer names are cut here */

enum place { HEAD, ALL };

static const struct {
	const char *name, *words;
} families[] = {
#define FAMILY(id, name, words) {name, words},
#include "model/symbols/kernel_families.def"
#undef FAMILY
};

static const struct {
	enum tfh_kernel_family family;
	enum place place;
	const char *pattern;
} rows[] = {
#define NAMED(family, place, pattern) {TFH_FAMILY_##family, place, pattern},
#include "model/symbols/kernel_families.def"
#undef NAMED
};

static const struct {
	bool yes;
	const char *pattern;
} tensor[] = {
#define TENSOR(yes, pattern) {yes, pattern},
#include "model/symbols/kernel_families.def"
#undef TENSOR
};

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

/* Whether the text continues with the pattern up to its end or an asterisk. */
static bool goes_on(const char *text, const char *pattern, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (pattern[i] == '#' ? !isdigit((unsigned char)text[i]) : text[i] != pattern[i])
			return false;
	return true;
}

static bool fits(const char *text, const char *pattern)
{
	bool anchored = *pattern == '^';

	for (pattern += anchored; *pattern; anchored = false) {
		size_t n = strcspn(pattern, "*");
		while (!goes_on(text, pattern, n)) {
			if (anchored || !*text)
				return false;
			text++;
		}
		text += n;
		pattern += n + (pattern[n] == '*');
	}
	return true;
}

/* Start of the parameter list: the parenthesis outside of template arguments that is not
 * "(anonymous namespace)". */
static size_t before_parameters(const char *name)
{
	size_t depth = 0, i;

	for (i = 0; name[i]; i++) {
		if (name[i] == '<')
			depth++;
		else if (name[i] == '>' && depth)
			depth--;
		else if (name[i] == '(' && !depth && !tfh_starts_with(name + i, "(anonymous"))
			break;
	}
	return i;
}

/* The name in lower case, without result type and parameters. Returns its length without template
 * arguments. */
static size_t reduce(char out[LONGEST], const char *name)
{
	char text[LONGEST];
	size_t n;

	if (!tfh_starts_with(name, "_Z") || !tfh_demangle(name, text, sizeof(text)))
		snprintf(text, sizeof(text), "%s", name);
	name = !tfh_starts_with(text, "void ") ? text : text + 5;
	n = before_parameters(name);
	for (size_t i = 0; i < n; i++)
		out[i] = (char)tolower((unsigned char)name[i]);
	out[n] = '\0';
	return strcspn(out, "<");
}

static enum tfh_kernel_family with_tensor_cores(enum tfh_kernel_family family, const char *name)
{
	bool matmul = family == TFH_FAMILY_MATMUL;

	if (!matmul && family != TFH_FAMILY_CONVOLUTION)
		return family;
	for (size_t i = 0; i < COUNT(tensor); i++) {
		if (!fits(name, tensor[i].pattern))
			continue;
		if (tensor[i].yes)
			return matmul ? TFH_FAMILY_MATMUL_TENSOR : TFH_FAMILY_CONVOLUTION_TENSOR;
		return matmul ? TFH_FAMILY_MATMUL_PLAIN : TFH_FAMILY_CONVOLUTION_PLAIN;
	}
	return family;
}

enum tfh_kernel_family tfh_kernel_family(const char *name)
{
	char all[LONGEST], head[LONGEST];
	size_t n;

	if (tfh_kernel_communicates(name))
		return TFH_FAMILY_COMMUNICATION;
	n = reduce(all, name);
	memcpy(head, all, n);
	head[n] = '\0';
	for (size_t i = 0; i < COUNT(rows); i++)
		if (fits(rows[i].place == HEAD ? head : all, rows[i].pattern))
			return with_tensor_cores(rows[i].family, all);
	return TFH_FAMILY_OTHER;
}

const char *tfh_family_name(enum tfh_kernel_family family)
{
	return families[family].name;
}

const char *tfh_family_words(enum tfh_kernel_family family)
{
	return families[family].words;
}
