/* Decodes the body of a PTX kernel statement by statement; rejects what it does not know. */
#include "sim/gpu/ptx/decoder.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ptx_refuse(struct ptx_decoder *d, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (!d->err[0])
		vsnprintf(d->err, d->nerr, fmt, ap);
	va_end(ap);
	return false;
}

uint32_t ptx_new_reg(struct ptx_decoder *d, uint8_t width)
{
	struct ptx_prog *p = d->prog;
	PTX_GROW(p->width, p->nreg);
	p->width[p->nreg] = width;
	return p->nreg++;
}

/* Type of an opcode part such as "u32"; false if it is none. */
static bool type_of(const char *s, enum ptx_type *t)
{
	static const struct {
		const char *name;
		enum ptx_type type;
	} names[] = {{"pred", T_PRED}, {"u8", T_U8},   {"b8", T_U8},   {"s8", T_S8},
		     {"u16", T_U16},   {"b16", T_U16}, {"s16", T_S16}, {"u32", T_U32},
		     {"b32", T_U32},   {"s32", T_S32}, {"u64", T_U64}, {"b64", T_U64},
		     {"s64", T_S64},   {"f32", T_F32}, {"f64", T_F64}};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(names[i].name, s)) {
			*t = names[i].type;
			return true;
		}
	}
	return false;
}

uint8_t ptx_reg_bytes(enum ptx_type t)
{
	return t == T_U8 || t == T_S8 ? 2 : (uint8_t)ptx_type_bytes(t);
}

static char *trim(char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	char *e = s + strlen(s);
	while (e > s && isspace((unsigned char)e[-1]))
		*--e = 0;
	return s;
}

enum { MAX_REGISTERS = 1 << 18, MAX_SHARED = 256 << 10 };

static bool directive(struct ptx_decoder *d, char *s)
{
	char type[32], name[128], align[32];
	enum ptx_type t;
	unsigned long n;
	if (!strncmp(s, ".reg", 4)) {
		char *save = NULL, *list = strchr(s, '%');
		if (!list || sscanf(s, ".reg .%31s", type) != 1 ||
		    !(type_of(type, &t) || !strcmp(type, "f16")))
			return ptx_refuse(d, "declaration %s", s);
		uint8_t width = strcmp(type, "f16") ? ptx_reg_bytes(t) : 2;
		for (char *v = strtok_r(list, ", \t\n", &save); v;
		     v = strtok_r(NULL, ", \t\n", &save)) {
			char *angle = strchr(v, '<');
			n = angle ? strtoul(angle + 1, NULL, 10) : 0;
			if (angle)
				*angle = 0;
			if (n > MAX_REGISTERS || d->prog->nreg > MAX_REGISTERS)
				return ptx_refuse(d, "too many registers");
			PTX_GROW(d->ranges, d->nranges);
			d->ranges[d->nranges++] =
				(struct ptx_range){strdup(v), (uint32_t)n, d->prog->nreg, width};
			for (unsigned long i = 0; i < (n ? n : 1); i++)
				ptx_new_reg(d, width);
		}
		return true;
	}
	if (sscanf(s, ".shared .align %31s .%31s %127[^[ \t][%lu]", align, type, name, &n) == 4 &&
	    type_of(type, &t)) {
		uint32_t a = (uint32_t)strtoul(align, NULL, 10);
		if (n > MAX_SHARED || d->prog->shared > MAX_SHARED || a > MAX_SHARED)
			return ptx_refuse(d, "too much shared memory");
		d->prog->shared = (d->prog->shared + a - 1) / (a ? a : 1) * a;
		PTX_GROW(d->shared, d->nshared);
		d->shared[d->nshared++] = (struct ptx_place){strdup(name), d->prog->shared};
		d->prog->shared += (unsigned)(n * ptx_type_bytes(t));
		return true;
	}
	if (!strncmp(s, ".pragma", 7) || !strncmp(s, ".loc", 4))
		return true;
	return ptx_refuse(d, "directive %.40s", s);
}

static bool statement(struct ptx_decoder *d, char *text)
{
	struct ptx_statement s = {0};
	char *save = NULL, *guard = NULL, *t = trim(text);
	if (!*t)
		return true;
	if (*t == '.')
		return directive(d, t);
	if (*t == '@') {
		guard = t + 1;
		t += strcspn(t, " \t\n");
		*t++ = 0;
		t = trim(t);
	}
	char *args = t + strcspn(t, " \t\n");
	if (*args)
		*args++ = 0;
	for (char *p = strtok_r(t, ".", &save); p && s.nparts < PTX_PARTS;
	     p = strtok_r(NULL, ".", &save)) {
		s.part[s.nparts++] = p;
		if (s.nparts > 1 && s.ntypes < 3 && type_of(p, &s.type[s.ntypes]))
			s.ntypes++;
	}
	int depth = 0;
	char *from = args = trim(args);
	for (char *p = args;; p++) {
		depth += (*p == '{') - (*p == '}');
		if ((*p == ',' && !depth) || !*p) {
			bool last = !*p;
			*p = 0;
			if (s.nargs == PTX_OPERANDS)
				return ptx_refuse(d, "operands of %s", s.part[0]);
			if (*trim(from))
				s.arg[s.nargs++] = trim(from);
			from = p + 1;
			if (last)
				break;
		}
	}
	uint32_t at = d->prog->ncode;
	if (!s.nparts)
		return ptx_refuse(d, "statement without an instruction");
	if (!ptx_instruction(d, &s))
		return false;
	for (; guard && at < d->prog->ncode; at++) {
		struct ptx_ins *i = &d->prog->code[at];
		i->negate = *guard == '!';
		if (!ptx_find_reg(d, guard + i->negate, &i->guard))
			return false;
		if (d->prog->width[i->guard] != 1)
			return ptx_refuse(d, "guard %s", guard);
	}
	return true;
}

static void strip_comments(char *s)
{
	for (char *p = s; (p = strstr(p, "//"));)
		while (*p && *p != '\n')
			*p++ = ' ';
	for (char *p = s; (p = strstr(p, "/*"));) {
		char *e = strstr(p, "*/");
		for (e = e ? e + 2 : p + strlen(p); p < e; p++)
			*p = ' ';
	}
}

/* Length of a label that stands before ':' at s, or 0. */
static size_t label(const char *s)
{
	size_t n = 0;
	while (isalnum((unsigned char)s[n]) || s[n] == '_' || s[n] == '$')
		n++;
	size_t k = n;
	while (isspace((unsigned char)s[k]))
		k++;
	return n && s[k] == ':' ? n : 0;
}

static bool body(struct ptx_decoder *d, char *text)
{
	for (char *s = trim(text); *s; s = trim(s)) {
		size_t n = label(s);
		if (n) {
			PTX_GROW(d->labels, d->nlabels);
			d->labels[d->nlabels++] = (struct ptx_place){strndup(s, n), d->prog->ncode};
			s = strchr(s, ':') + 1;
			continue;
		}
		char *end = strchr(s, ';');
		if (!end)
			return ptx_refuse(d, "no ';' after %.40s", s);
		*end = 0;
		if (!statement(d, s))
			return false;
		s = end + 1;
	}
	ptx_emit(d, PTX_RETURN);
	for (unsigned i = 0; i < d->njumps; i++) {
		unsigned k = 0;
		while (k < d->nlabels && strcmp(d->labels[k].name, d->jumps[i].name))
			k++;
		if (k == d->nlabels)
			return ptx_refuse(d, "label %s", d->jumps[i].name);
		d->prog->code[d->jumps[i].at].target = d->labels[k].at;
	}
	return true;
}

static void free_places(struct ptx_place *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		free(p[i].name);
	free(p);
}

struct ptx_prog *ptx_decode(const struct sim_func *f, char *err, size_t nerr)
{
	struct ptx_decoder d = {.func = f, .table = ptx_lanes(), .err = err, .nerr = nerr};
	*err = 0;
	d.prog = calloc(1, sizeof(*d.prog));
	for (int i = 0; i < R_FIRST; i++)
		ptx_new_reg(&d, 4);
	char *text = strndup(f->text, (size_t)(f->text_end - f->text));
	strip_comments(text);
	bool ok = body(&d, text);
	free(text);
	for (unsigned i = 0; i < d.nranges; i++)
		free(d.ranges[i].prefix);
	free(d.ranges);
	free_places(d.labels, d.nlabels);
	free_places(d.jumps, d.njumps);
	free_places(d.shared, d.nshared);
	if (ok)
		return d.prog;
	ptx_free(d.prog);
	return NULL;
}

void ptx_free(struct ptx_prog *p)
{
	if (!p)
		return;
	free(p->code);
	free(p->width);
	free(p->consts);
	free(p);
}
