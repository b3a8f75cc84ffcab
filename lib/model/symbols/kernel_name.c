#include "model/symbols/kernel_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/symbols/demangle.h"

#define LONGEST 8192 /* longer names are cut here */
#define WORDS 32
#define LEAST_FUNCTION 8 /* least columns for a cut function name; a shorter one says nothing */

/* Words in template arguments that do not identify a kernel: types, and templates that only wrap
 * others. Words that end in _t or Metadata do not, either. */
static const char *const noise[] = {"float",
				    "double",
				    "int",
				    "long",
				    "short",
				    "char",
				    "bool",
				    "unsigned",
				    "signed",
				    "const",
				    "volatile",
				    "void",
				    "half",
				    "__half",
				    "float2",
				    "float4",
				    "BFloat16",
				    "Half",
				    "true",
				    "false",
				    "nullptr",
				    "decltype",
				    "operator",
				    "type",
				    "value",
				    "Array",
				    "array",
				    "Tensor",
				    "TensorMap",
				    "TensorEvaluator",
				    "TensorAssignOp",
				    "MakePointer",
				    "GpuDevice",
				    "TensorCwiseUnaryOp",
				    "scalar_left",
				    "scalar_right",
				    "ReduceOp",
				    "TensorIteratorBase",
				    "TensorCwiseBinaryOp",
				    "gpu_kernel_impl"};

/* Functions that only run the functor in their template argument. */
static const char *const runners[] = {"Kernel", "Kernel2", "kernel", "device_kernel",
				      "_kernel_agent"};

struct word {
	const char *at;
	size_t len;
};

/* A name in pieces; all point into `text`. */
struct pieces {
	char text[LONGEST];
	struct word space;    /* "at::native::" */
	struct word function; /* "vectorized_elementwise_kernel" */
	struct word args;     /* "4, AddFunctor<float>"; empty if there are none */
	struct word telling[WORDS];
	size_t n_telling;
};

static bool is(const struct word *w, const char *text)
{
	return strlen(text) == w->len && !memcmp(w->at, text, w->len);
}

static bool ends(const struct word *w, const char *tail)
{
	size_t len = strlen(tail);

	return w->len >= len && !memcmp(w->at + w->len - len, tail, len);
}

static bool in(const struct word *w, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is(w, list[i]))
			return true;
	return false;
}

static bool letter(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static void erase(char *text, const char *what)
{
	size_t len = strlen(what);

	for (char *at = text; (at = strstr(at, what));)
		memmove(at, at + len, strlen(at + len) + 1);
}

/* Numba puts version, options and types of a function into such tags, each longer than its name. */
static void erase_abi_tags(char *text)
{
	for (char *tag = text, *end; (tag = strstr(tag, "[abi:")) && (end = strchr(tag, ']'));)
		memmove(tag, end + 1, strlen(end + 1) + 1);
}

/* Cuts "(int, float*)" off the end; false if there is none. */
static bool cut_parameters(char *text)
{
	size_t n = strlen(text);
	int open = 0;

	if (n > 6 && !strcmp(text + n - 6, " const"))
		n -= 6;
	if (!n || text[n - 1] != ')')
		return false;
	for (size_t i = n; i-- > 1;) {
		open += (text[i] == ')') - (text[i] == '(');
		if (open)
			continue;
		if (text[i - 1] == ' ' || (i >= 8 && !memcmp(text + i - 8, "operator", 8)))
			return false;
		text[i] = '\0';
		return true;
	}
	return false;
}

/* +1 for an opening bracket, -1 for a closing one. The > of "->" is no bracket. */
static int bracket(const char *text, const char *at)
{
	if (strchr("<({", *at))
		return 1;
	if (*at == '>' && at > text && at[-1] == '-')
		return 0;
	return strchr(">)}", *at) ? -1 : 0;
}

/* Finds the function and the template arguments in the rest of the name. */
static void split(struct pieces *p, char *name)
{
	char *function = name, *end = name + strlen(name), *args = NULL;
	int depth = 0;

	for (char *c = name; *c; c++) {
		if (depth == 0 && c[0] == ':' && c[1] == ':') {
			function = c + 2;
			args = NULL;
		} else if (depth == 0 && *c == '<' && !args) {
			args = c;
		}
		depth += bracket(name, c);
	}
	p->space = (struct word){name, (size_t)(function - name)};
	if (!args || end[-1] != '>' || args == function) {
		p->function = (struct word){function, (size_t)(end - function)};
		p->args = (struct word){end, 0};
		return;
	}
	p->function = (struct word){function, (size_t)(args - function)};
	p->args = (struct word){args + 1, (size_t)(end - args - 2)};
}

/* Finds the words of the template arguments that identify the kernel: no types, no parameters of
 * lambdas. */
static void find_telling(struct pieces *p)
{
	const char *at = p->args.at, *end = at + p->args.len;
	int inside = 0;

	p->n_telling = 0;
	while (at < end) {
		struct word w = {at, 0};
		inside += (*at == '(' || *at == '{') - (*at == ')' || *at == '}');
		while (at < end && letter(*at))
			at++;
		w.len = (size_t)(at - w.at);
		if (!w.len) {
			at++;
			continue;
		}
		bool space = end - at >= 2 && at[0] == ':' && at[1] == ':';
		if (inside || space || isdigit((unsigned char)*w.at) || ends(&w, "_t") ||
		    ends(&w, "Metadata") || in(&w, noise, sizeof(noise) / sizeof(*noise)))
			continue;
		const struct word *last = p->n_telling ? &p->telling[p->n_telling - 1] : NULL;
		bool again = last && last->len == w.len && !memcmp(last->at, w.at, w.len);
		if (!again && p->n_telling < WORDS)
			p->telling[p->n_telling++] = w;
	}
}

static void take_apart(struct pieces *p, const char *name)
{
	char *begin = p->text;
	int depth = 0;

	if (!tfh_demangle(name, p->text, LONGEST))
		snprintf(p->text, LONGEST, "%s", name);
	erase(p->text, "(anonymous namespace)::");
	/* numba: its prefix, and "<locals>" with its escapes */
	if (tfh_starts_with(p->text, "cudapy::"))
		memmove(p->text, p->text + strlen("cudapy::"),
			strlen(p->text + strlen("cudapy::")) + 1);
	erase(p->text, "_3clocals_3e::");
	erase_abi_tags(p->text);
	bool cut = cut_parameters(p->text);
	/* The name of a template instance is preceded by its result type. */
	for (char *c = p->text; (cut || tfh_starts_with(p->text, "void ")) && *c; c++) {
		if (depth == 0 && *c == ' ' && c[1] && !tfh_starts_with(c + 1, "const"))
			begin = c + 1;
		depth += bracket(p->text, c);
	}
	split(p, begin);
	find_telling(p);
}

/* ---- shortening ---- */

struct name_line {
	char *out;
	size_t len, width; /* len > width: it did not fit */
};

static void put(struct name_line *l, const char *text, size_t len)
{
	if (l->len + len <= l->width) {
		memcpy(l->out + l->len, text, len);
		l->out[l->len + len] = '\0';
	}
	l->len += len;
}

static void put_word(struct name_line *l, const struct word *w)
{
	put(l, w->at, w->len);
}

/* Appends w; if it has more than `width` columns, without its middle. */
static void put_cut(struct name_line *l, const struct word *w, size_t width)
{
	if (w->len <= width || width < 4) {
		put(l, w->at, w->len < width ? w->len : width);
		return;
	}
	size_t head = (width - 2) / 2, tail = width - 2 - head;
	put(l, w->at, head);
	put(l, "..", 2);
	put(l, w->at + w->len - tail, tail);
}

/* Appends template arguments, without namespaces and unneeded blanks. */
static void put_args(struct name_line *l, const struct word *args)
{
	const char *at = args->at, *end = at + args->len;

	while (at < end) {
		const char *begin = at;
		while (at < end && letter(*at))
			at++;
		if (at > begin && end - at >= 2 && at[0] == ':' && at[1] == ':') {
			at += 2;
			continue;
		}
		put(l, begin, (size_t)(at - begin));
		if (at == end)
			return;
		if (*at != ' ' || (at > args->at && letter(at[-1]) && letter(at[1])))
			put(l, at, 1);
		at++;
	}
}

static bool plain(struct name_line *l, const struct pieces *p, bool space)
{
	l->len = 0;
	if (space)
		put_word(l, &p->space);
	put_word(l, &p->function);
	if (p->args.len) {
		put(l, "<", 1);
		put_args(l, &p->args);
		put(l, ">", 1);
	}
	return l->len <= l->width;
}

/* Writes the name with the last n identifying words; n = 0: with "<...>". */
static bool with_words(struct name_line *l, const struct pieces *p, bool space, size_t n)
{
	l->len = 0;
	if (space)
		put_word(l, &p->space);
	put_word(l, &p->function);
	put(l, "<", 1);
	for (size_t i = p->n_telling - n; i < p->n_telling; i++) {
		put_word(l, &p->telling[i]);
		if (i + 1 < p->n_telling)
			put(l, ",", 1);
	}
	put(l, n ? ">" : "...>", n ? 1 : 4);
	return l->len <= l->width;
}

/* If nothing fits: the function cut, with its last identifying word; or that word alone. */
static void cut_all(struct name_line *l, const struct pieces *p)
{
	const struct word *last = p->n_telling ? &p->telling[p->n_telling - 1] : NULL;

	l->len = 0;
	if (!last) {
		put_cut(l, &p->function, l->width);
		return;
	}
	bool runner = in(&p->function, runners, sizeof(runners) / sizeof(*runners));
	if (runner || last->len + 2 + LEAST_FUNCTION > l->width) {
		put_cut(l, last, l->width);
		return;
	}
	put_cut(l, &p->function, l->width - last->len - 2);
	put(l, "<", 1);
	put_word(l, last);
	put(l, ">", 1);
}

static void shorten(struct name_line *l, const struct pieces *p)
{
	if (plain(l, p, true))
		return;
	if (!p->n_telling && p->args.len) {
		if (with_words(l, p, true, 0) || with_words(l, p, false, 0))
			return;
	} else if (p->args.len) {
		if (with_words(l, p, true, p->n_telling) || plain(l, p, false))
			return;
		for (size_t n = p->n_telling; n; n--)
			if (with_words(l, p, false, n))
				return;
	} else if (plain(l, p, false)) {
		return;
	}
	cut_all(l, p);
}

const char *tfh_kernel_short(char out[TFH_KERNEL_NAME], const char *name, size_t width)
{
	struct pieces p;
	struct name_line l = {out, 0, width < TFH_KERNEL_NAME ? width : TFH_KERNEL_NAME - 1};

	out[0] = '\0';
	take_apart(&p, name);
	shorten(&l, &p);
	return out;
}

/* ---- telling equal short names apart ---- */

/* The next run of letters and digits; false at the end. */
static bool next_word(const char **at, const char *end, struct word *w)
{
	while (*at < end && !letter(**at))
		++*at;
	w->at = *at;
	while (*at < end && letter(**at))
		++*at;
	w->len = (size_t)(*at - w->at);
	return w->len > 0;
}

/* Appends "..512..7": the words of p's arguments that differ from another name's, as many as fit,
 * without `shown`, which the name has anyway. */
static void put_difference(struct name_line *l, const struct pieces *p, const struct pieces *other,
			   const struct word *shown)
{
	const char *a = p->args.at, *a_end = a + p->args.len;
	const char *b = other->args.at, *b_end = b + other->args.len;
	struct word x, y;

	while (next_word(&a, a_end, &x)) {
		if (next_word(&b, b_end, &y) && x.len == y.len && !memcmp(x.at, y.at, x.len))
			continue;
		if (shown && shown->len == x.len && !memcmp(shown->at, x.at, x.len))
			continue;
		if (l->len + 2 + x.len > l->width)
			return;
		put(l, "..", 2);
		put_word(l, &x);
	}
}

/* The short name of `p`, with what distinguishes it from `other`, whose short name is the same. */
static void tell_apart(char *out, size_t width, const struct pieces *p, const struct pieces *other)
{
	const struct word *last = p->n_telling ? &p->telling[p->n_telling - 1] : NULL;
	char detail[TFH_KERNEL_NAME] = "";
	struct name_line d = {detail, 0, width / 2}, l = {out, 0, width};

	put_difference(&d, p, other, last);
	if (!d.len)
		return;
	size_t taken = 2 + d.len + (last ? last->len : 0);
	if (taken + LEAST_FUNCTION > width) {
		taken = 2 + d.len;
		last = NULL;
	}
	put_cut(&l, &p->function, width - taken);
	put(&l, "<", 1);
	if (last)
		put_word(&l, last);
	put(&l, detail, d.len);
	put(&l, ">", 1);
}

/* Appends "#2" to a name that occurs in an earlier row. */
static void number(char (*out)[TFH_KERNEL_NAME], size_t row, size_t width)
{
	size_t same = 1, len = strlen(out[row]);
	char tail[16];

	for (size_t i = 0; i < row; i++)
		same += !strcmp(out[i], out[row]);
	if (same == 1)
		return;
	int n = snprintf(tail, sizeof(tail), "#%zu", same);
	if (len + (size_t)n > width)
		len = width - (size_t)n;
	memcpy(out[row] + len, tail, (size_t)n + 1);
}

void tfh_kernel_shorts(char (*out)[TFH_KERNEL_NAME], const char *const *names, size_t n,
		       size_t width)
{
	struct pieces p, other;

	width = width < TFH_KERNEL_NAME ? width : TFH_KERNEL_NAME - 1;
	for (size_t i = 0; i < n; i++)
		tfh_kernel_short(out[i], names[i], width);
	for (size_t i = 0; i < n; i++) {
		char same[TFH_KERNEL_NAME];
		size_t first = i + 1;
		memcpy(same, out[i], sizeof(same));
		while (first < n && strcmp(out[first], same))
			first++;
		if (first == n)
			continue;
		take_apart(&p, names[i]);
		take_apart(&other, names[first]);
		tell_apart(out[i], width, &p, &other);
		for (size_t k = first; k < n; k++) {
			if (strcmp(out[k], same))
				continue;
			take_apart(&other, names[k]);
			tell_apart(out[k], width, &other, &p);
		}
	}
	for (size_t i = n; i-- > 1;)
		number(out, i, width);
}
