/* Reads the outline of PTX text: kernels with their parameters, module variables. */
#include "sim/gpu/sim.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

static const char *skip(const char *p)
{
	for (;;) {
		while (isspace((unsigned char)*p))
			p++;
		if (p[0] == '/' && p[1] == '/')
			p += strcspn(p, "\n");
		else if (p[0] == '/' && p[1] == '*')
			p = strstr(p, "*/") ? strstr(p, "*/") + 2 : p + strlen(p);
		else
			return p;
	}
}

static size_t word(const char *p)
{
	size_t n = 0;
	while (word_char(p[n]))
		n++;
	return n;
}

static bool is(const char *p, const char *token)
{
	size_t n = strlen(token);
	return !strncmp(p, token, n) && !word_char(p[n]);
}

/* Bytes of a type such as ".u64" or ".b8"; 0 if p is not one. */
static unsigned type_size(const char *p)
{
	if (*p != '.' || !strchr("busf", p[1]))
		return is(p, ".pred") ? 1 : 0;
	int bits = atoi(p + 2);
	return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128
		       ? (unsigned)bits / 8
		       : 0;
}

/*
 * Reads "[.align N] .type name[count]" after a state space. Returns the name and the size in bytes;
 * count may be missing. Other directives (.ptr .global .align 4) are skipped.
 */
static const char *declaration(const char *p, const char **name, size_t *nname, size_t *size,
			       unsigned *align)
{
	unsigned elem = 0;
	*align = 0;
	*name = p;
	*nname = 0;
	for (p = skip(p); *p && *p != ',' && *p != ';' && *p != ')' && *p != '=' && *p != '[';
	     p = skip(p)) {
		if (is(p, ".align")) {
			p = skip(p + 6);
			*align = (unsigned)strtoul(p, (char **)&p, 10);
		} else if (is(p, ".attribute")) { /* (.managed) */
			p += strcspn(p, ");");
			p += *p == ')';
		} else if (*p == '.') {
			elem = type_size(p) ? type_size(p) : elem;
			p++;
			p += word(p);
		} else if (word(p)) {
			*name = p;
			*nname = word(p);
			p += *nname;
		} else {
			p++;
		}
	}
	*size = elem;
	while (*p == '[') {
		char *end;
		*size *= strtoul(p + 1, &end, 0);
		p = end;
		p += strcspn(p, "];");
		p = skip(*p ? p + 1 : p);
	}
	if (!*align)
		*align = elem ? elem : 1;
	return p;
}

enum { MAX_PARAM = 32764 }; /* bytes of all parameters, by the PTX manual */

static const char *parameters(struct sim_func *f, const char *p)
{
	unsigned off = 0;
	f->nparams = 0;
	while (*p && *p != ')') {
		const char *name;
		size_t nname, size;
		unsigned align;
		p = skip(*p == '(' || *p == ',' ? p + 1 : p);
		if (!is(p, ".param"))
			break;
		p = declaration(p + 6, &name, &nname, &size, &align);
		if (size > MAX_PARAM || align > MAX_PARAM || off > MAX_PARAM)
			size = align = 1;
		off = (off + align - 1) / align * align;
		f->params = realloc(f->params, (size_t)(f->nparams + 1) * sizeof(*f->params));
		f->params[f->nparams++] =
			(struct sim_param){off, (unsigned)size, strndup(name, nname)};
		off += (unsigned)size;
	}
	f->psize = off;
	return *p == ')' ? p + 1 : p;
}

static const char *body_end(const char *p)
{
	int depth = 0;
	for (; *p; p++) {
		p = skip(p);
		if (*p == '{')
			depth++;
		else if (*p == '}' && --depth == 0)
			return p;
		else if (!*p)
			break;
	}
	return p;
}

static const char *entry(struct sim_module *m, const char *p)
{
	p = skip(p);
	size_t n = word(p);
	if (!n)
		return p;
	struct sim_func *f = sim_func_add(m, p, n);
	p = skip(p + n);
	if (*p == '(')
		p = parameters(f, p);
	else
		f->nparams = 0;
	for (p = skip(p); *p && *p != '{' && *p != ';'; p = skip(p)) {
		if (is(p, ".maxntid"))
			f->max_threads = (unsigned)strtoul(skip(p + 8), NULL, 10);
		p++;
	}
	if (*p != '{')
		return p;
	f->text = p + 1;
	f->text_end = body_end(p);
	return f->text_end;
}

void sim_ptx_scan(struct sim_module *m)
{
	int depth = 0;
	for (const char *p = skip(m->text); *p; p = skip(p)) {
		const char *name;
		size_t nname, size;
		unsigned align;
		if (is(p, ".entry")) {
			p = entry(m, p + 6);
		} else if (!depth && (is(p, ".global") || is(p, ".const"))) {
			p = declaration(p + (p[1] == 'g' ? 7 : 6), &name, &nname, &size, &align);
			if (nname)
				sim_var_add(m, name, nname, size);
		} else if (word(p)) {
			p += word(p);
		} else {
			depth += (*p == '{') - (*p == '}');
			p++;
		}
	}
}
