/* Decodes the body of a PTX kernel into the inner form; refuses what it does not know. */
#include "simgpu/ptx.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct range {
	char *prefix;
	uint32_t count, first; /* count 0: one register of this very name */
	uint8_t width;
};

struct place {
	char *name;
	uint32_t at;
};

struct decoder {
	const struct sim_func *func;
	const struct ptx_table *table;
	struct ptx_prog *prog;
	struct range *ranges;
	unsigned nranges;
	struct place *labels, *jumps, *shared; /* jumps: instruction -> label name */
	unsigned nlabels, njumps, nshared;
	char *err;
	size_t nerr;
};

/* One instruction as written: opcode parts and operands, all pointing into the statement. */
enum { PARTS = 12, OPERANDS = 6 };
struct statement {
	char *part[PARTS], *arg[OPERANDS];
	int nparts, nargs;
	enum ptx_type type[3];
	int ntypes;
};

static bool refuse(struct decoder *d, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (!d->err[0])
		vsnprintf(d->err, d->nerr, fmt, ap);
	va_end(ap);
	return false;
}

#define GROW(array, n) ((array) = realloc((array), ((n) + 1) * sizeof(*(array))))

static uint32_t new_reg(struct decoder *d, uint8_t width)
{
	struct ptx_prog *p = d->prog;
	GROW(p->width, p->nreg);
	p->width[p->nreg] = width;
	return p->nreg++;
}

static uint32_t constant(struct decoder *d, uint64_t bits, uint8_t width)
{
	struct ptx_prog *p = d->prog;
	for (uint32_t i = 0; i < p->nconst; i++)
		if (p->consts[i].bits == bits && p->width[p->consts[i].reg] == width)
			return p->consts[i].reg;
	GROW(p->consts, p->nconst);
	p->consts[p->nconst] = (struct ptx_const){new_reg(d, width), bits};
	return p->consts[p->nconst++].reg;
}

static struct ptx_ins *emit(struct decoder *d, enum ptx_kind kind)
{
	struct ptx_prog *p = d->prog;
	GROW(p->code, p->ncode);
	struct ptx_ins *i = &p->code[p->ncode++];
	memset(i, 0, sizeof(*i));
	i->kind = (uint8_t)kind;
	i->guard = PTX_NONE;
	return i;
}

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

/* Bytes of a register: 8-bit values live in 16 bits. */
static uint8_t reg_bytes(enum ptx_type t)
{
	return t == T_U8 || t == T_S8 ? 2 : (uint8_t)ptx_type_bytes(t);
}

/* ---- operands ---- */
static bool special(const char *s, uint32_t *reg)
{
	static const char *const names[] = {"%tid.", "%ntid.", "%ctaid.", "%nctaid."};
	for (uint32_t i = 0; i < 4; i++) {
		size_t n = strlen(names[i]);
		if (!strncmp(s, names[i], n) && s[n] >= 'x' && s[n] <= 'z') {
			*reg = i * 3 + (uint32_t)(s[n] - 'x');
			return true;
		}
	}
	return false;
}

static bool find_reg(struct decoder *d, const char *s, uint32_t *reg)
{
	size_t n = strlen(s), k = n;
	if (special(s, reg))
		return true;
	while (k && isdigit((unsigned char)s[k - 1]))
		k--;
	for (unsigned i = 0; i < d->nranges; i++) {
		struct range *r = &d->ranges[i];
		if (!r->count && !strcmp(r->prefix, s)) {
			*reg = r->first;
			return true;
		}
		if (r->count && k < n && strlen(r->prefix) == k && !strncmp(r->prefix, s, k)) {
			unsigned long at = strtoul(s + k, NULL, 10);
			if (at < r->count) {
				*reg = r->first + (uint32_t)at;
				return true;
			}
		}
	}
	return refuse(d, "register %s", s);
}

static bool number(const char *s, uint64_t *bits)
{
	char *end;
	if (s[0] == '0' && strchr("fF", s[1]) && s[1])
		*bits = strtoull(s + 2, &end, 16);
	else if (s[0] == '0' && strchr("dD", s[1]) && s[1])
		*bits = strtoull(s + 2, &end, 16);
	else
		*bits = *s == '-' ? (uint64_t)strtoll(s, &end, 0) : strtoull(s, &end, 0);
	return end != s && (!*end || !strcmp(end, "U"));
}

static bool find_shared(struct decoder *d, const char *s, uint64_t *off)
{
	size_t n = strcspn(s, "[+");
	for (unsigned i = 0; i < d->nshared; i++) {
		if (strlen(d->shared[i].name) == n && !strncmp(d->shared[i].name, s, n)) {
			*off = d->shared[i].at + (s[n] ? strtoull(s + n + 1, NULL, 0) : 0);
			return true;
		}
	}
	return false;
}

static bool source(struct decoder *d, const char *s, enum ptx_type t, uint32_t *reg)
{
	uint64_t bits;
	uint8_t width = reg_bytes(t);
	if (*s == '%') {
		if (!find_reg(d, s, reg))
			return false;
		if (d->prog->width[*reg] != width)
			return refuse(d, "%s has not %u bytes", s, width);
		return true;
	}
	if (!find_shared(d, s, &bits) && !number(s, &bits))
		return refuse(d, "operand %s", s);
	if (width < 8)
		bits &= (1ull << (width * 8)) - 1;
	*reg = constant(d, bits, width);
	return true;
}

static bool destination(struct decoder *d, const char *s, uint8_t width, uint32_t *reg)
{
	if (*s != '%' || !find_reg(d, s, reg))
		return refuse(d, "destination %s", s);
	if (*reg < R_FIRST || d->prog->width[*reg] != width)
		return refuse(d, "destination %s has not %u bytes", s, width);
	return true;
}

/* "[reg+off]", "[shared+off]", "[param+off]": the address as a register and an offset. */
static bool address(struct decoder *d, char *s, uint32_t *reg, int64_t *off, int *param)
{
	uint64_t at;
	char *close = strchr(s, ']');
	if (*s != '[' || !close)
		return refuse(d, "address %s", s);
	*close = 0;
	s++;
	char *plus = strpbrk(s, "+");
	*off = plus ? strtoll(plus + 1, NULL, 0) : 0;
	if (plus)
		*plus = 0;
	while (*s && isspace((unsigned char)s[strlen(s) - 1]))
		s[strlen(s) - 1] = 0;
	*param = -1;
	if (*s == '%')
		return source(d, s, T_U64, reg);
	for (int i = 0; i < d->func->nparams; i++) {
		if (d->func->params[i].name && !strcmp(d->func->params[i].name, s)) {
			*param = i;
			return true;
		}
	}
	if (!find_shared(d, s, &at))
		return refuse(d, "address %s", s);
	*reg = constant(d, at, 8);
	return true;
}

/* ---- instructions ---- */
static bool has(const struct statement *s, const char *part)
{
	for (int i = 1; i < s->nparts; i++)
		if (!strcmp(s->part[i], part))
			return true;
	return false;
}

static bool alu(struct decoder *d, struct statement *s, enum ptx_op op, enum ptx_type t,
		uint8_t width)
{
	uint32_t r[3] = {0}, dst;
	ptx_fn fn = d->table->op[op][t];
	if (!fn)
		return refuse(d, "instruction %s of this type", s->part[0]);
	for (int i = 1; i < s->nargs; i++) {
		enum ptx_type st = t;
		if ((op == OP_SHL || op == OP_SHR) && i == 2)
			st = T_U32;
		else if (op == OP_SELP && i == 3)
			st = T_PRED;
		else if (op == OP_MADWIDE && i == 3)
			st = T_U64;
		if (i > 3 || !source(d, s->arg[i], st, &r[i - 1]))
			return refuse(d, "instruction %s", s->part[0]);
	}
	if (!destination(d, s->arg[0], width, &dst))
		return false;
	struct ptx_ins *i = emit(d, PTX_ALU);
	i->fn = fn;
	i->width = width;
	i->d[0] = dst;
	memcpy(i->s, r, sizeof(r));
	return true;
}

static bool plain(struct decoder *d, struct statement *s, enum ptx_op op)
{
	if (has(s, "sat") || has(s, "cc"))
		return refuse(d, "%s with .sat or .cc", s->part[0]);
	return alu(d, s, op, s->type[0], reg_bytes(s->type[0]));
}

static bool compare(struct decoder *d, struct statement *s)
{
	static const struct {
		const char *name;
		enum ptx_op op;
	} ops[] = {{"eq", OP_EQ},   {"ne", OP_NE},   {"lt", OP_LT},   {"le", OP_LE},
		   {"gt", OP_GT},   {"ge", OP_GE},   {"lo", OP_LT},   {"ls", OP_LE},
		   {"hi", OP_GT},   {"hs", OP_GE},   {"equ", OP_EQU}, {"neu", OP_NEU},
		   {"ltu", OP_LTU}, {"leu", OP_LEU}, {"gtu", OP_GTU}, {"geu", OP_GEU}};
	if (s->nparts > 1 && s->nargs == 3)
		for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
			if (!strcmp(ops[i].name, s->part[1]))
				return alu(d, s, ops[i].op, s->type[0], 1);
	return refuse(d, "this form of setp");
}

static bool convert(struct decoder *d, struct statement *s)
{
	static const struct {
		const char *name;
		enum ptx_op op;
	} rounds[] = {{"rzi", OP_TRUNC}, {"rmi", OP_FLOOR}, {"rpi", OP_CEIL}, {"rni", OP_RINT}};
	enum ptx_type to = s->type[0], from = s->type[1];
	uint32_t src, dst;
	bool real = from == T_F32 || from == T_F64;
	if (s->ntypes != 2 || has(s, "sat") || !d->table->cvt[to][from])
		return refuse(d, "this conversion");
	if (!source(d, s->arg[1], from, &src) || !destination(d, s->arg[0], reg_bytes(to), &dst))
		return false;
	for (size_t k = 0; real && k < 4; k++) {
		if (!has(s, rounds[k].name) || (k == 0 && to != from))
			continue;
		uint32_t between = to == from ? dst : new_reg(d, reg_bytes(from));
		struct ptx_ins *i = emit(d, PTX_ALU);
		i->fn = d->table->op[rounds[k].op][from];
		i->width = reg_bytes(from);
		i->d[0] = between;
		i->s[0] = src;
		if (to == from)
			return true;
		src = between;
	}
	struct ptx_ins *i = emit(d, PTX_ALU);
	i->fn = d->table->cvt[to][from];
	i->width = reg_bytes(to);
	i->d[0] = dst;
	i->s[0] = src;
	return true;
}

/* Splits "{a, b}" or "a" into register names. */
static int elements(char *s, char **out)
{
	int n = 0;
	char *save = NULL;
	for (char *t = strtok_r(s, "{}, \t\n", &save); t && n < PTX_VECTOR;
	     t = strtok_r(NULL, "{}, \t\n", &save))
		out[n++] = t;
	return n;
}

static bool memory(struct decoder *d, struct statement *s, bool load)
{
	char *names[PTX_VECTOR];
	struct ptx_ins i = {0};
	int param;
	enum ptx_type t = s->type[0];
	bool global = has(s, "global"), shared = has(s, "shared"),
	     from_param = load && has(s, "param");
	if (s->nargs != 2 || s->ntypes != 1 || (!global && !shared && !from_param))
		return refuse(d, "this form of %s", s->part[0]);
	int n = elements(s->arg[load ? 0 : 1], names);
	if (!address(d, s->arg[load ? 1 : 0], &i.s[0], &i.off, &param))
		return false;
	if ((param >= 0) != from_param || (from_param && n != 1) || n < 1)
		return refuse(d, "this form of %s", s->part[0]);
	for (int k = 0; k < n; k++) {
		bool ok = load ? destination(d, names[k], reg_bytes(t), &i.d[k])
			       : source(d, names[k], t, &i.d[k]);
		if (!ok)
			return false;
	}
	struct ptx_ins *e = emit(d, from_param ? PTX_PARAM : load ? PTX_LOAD : PTX_STORE);
	i.kind = e->kind;
	i.guard = PTX_NONE;
	i.fn = load ? d->table->load[t] : d->table->store[t];
	i.nvec = (uint8_t)n;
	i.mem = (uint8_t)ptx_type_bytes(t);
	i.width = reg_bytes(t);
	i.shared = shared;
	if (from_param)
		i.off += d->func->params[param].off;
	*e = i;
	return i.fn ? true : refuse(d, "%s of this type", s->part[0]);
}

static bool branch(struct decoder *d, struct statement *s)
{
	emit(d, PTX_BRANCH);
	GROW(d->jumps, d->njumps);
	d->jumps[d->njumps++] = (struct place){strdup(s->arg[0]), d->prog->ncode - 1};
	return true;
}

static const struct {
	const char *name;
	enum ptx_op op;
} plain_ops[] = {
	{"add", OP_ADD}, {"sub", OP_SUB}, {"div", OP_DIV},   {"rem", OP_REM},	{"min", OP_MIN},
	{"max", OP_MAX}, {"and", OP_AND}, {"or", OP_OR},     {"xor", OP_XOR},	{"not", OP_NOT},
	{"neg", OP_NEG}, {"abs", OP_ABS}, {"shl", OP_SHL},   {"shr", OP_SHR},	{"selp", OP_SELP},
	{"ex2", OP_EX2}, {"lg2", OP_LG2}, {"rcp", OP_RCP},   {"sqrt", OP_SQRT}, {"rsqrt", OP_RSQRT},
	{"sin", OP_SIN}, {"cos", OP_COS}, {"tanh", OP_TANH}, {"fma", OP_FMA},	{"mov", OP_MOV}};

static bool wide(struct decoder *d, struct statement *s, enum ptx_op op)
{
	return alu(d, s, op, s->type[0], (uint8_t)(2 * reg_bytes(s->type[0])));
}

static bool instruction(struct decoder *d, struct statement *s)
{
	const char *op = s->part[0];
	bool real = s->ntypes && (s->type[0] == T_F32 || s->type[0] == T_F64);
	if (!strcmp(op, "ret") || !strcmp(op, "exit"))
		return emit(d, PTX_RETURN) != NULL;
	/* All lanes of a block run together, and those that are behind run first: nothing to wait
	 * for. */
	if (!strcmp(op, "bar") || !strcmp(op, "barrier"))
		return has(s, "sync") ? emit(d, PTX_NOTHING) != NULL
				      : refuse(d, "this form of bar");
	if (!s->nargs)
		return refuse(d, "instruction %s", op);
	if (!strcmp(op, "bra"))
		return branch(d, s);
	if (!s->ntypes || s->type[0] >= T_COUNT)
		return refuse(d, "type of %s", op);
	if (!strcmp(op, "ld") || !strcmp(op, "st"))
		return memory(d, s, *op == 'l');
	if (!strcmp(op, "cvt"))
		return convert(d, s);
	if (!strcmp(op, "setp"))
		return compare(d, s);
	if (!strcmp(op, "mul"))
		return has(s, "wide") ? wide(d, s, OP_MULWIDE)
				      : plain(d, s, has(s, "hi") ? OP_MULHI : OP_MUL);
	if (!strcmp(op, "mad") && !has(s, "hi"))
		return has(s, "wide") ? wide(d, s, OP_MADWIDE)
				      : plain(d, s, real ? OP_FMA : OP_MAD);
	for (size_t i = 0; i < sizeof(plain_ops) / sizeof(plain_ops[0]); i++)
		if (!strcmp(plain_ops[i].name, op))
			return plain(d, s, plain_ops[i].op);
	return refuse(d, "instruction %s", op);
}

/* ---- statements ---- */
static char *trim(char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	char *e = s + strlen(s);
	while (e > s && isspace((unsigned char)e[-1]))
		*--e = 0;
	return s;
}

static bool directive(struct decoder *d, char *s)
{
	char type[32], name[128], align[32];
	enum ptx_type t;
	unsigned long n;
	if (!strncmp(s, ".reg", 4)) {
		char *save = NULL, *list = strchr(s, '%');
		if (!list || sscanf(s, ".reg .%31s", type) != 1 ||
		    !(type_of(type, &t) || !strcmp(type, "f16")))
			return refuse(d, "declaration %s", s);
		uint8_t width = strcmp(type, "f16") ? reg_bytes(t) : 2;
		for (char *v = strtok_r(list, ", \t\n", &save); v;
		     v = strtok_r(NULL, ", \t\n", &save)) {
			char *angle = strchr(v, '<');
			n = angle ? strtoul(angle + 1, NULL, 10) : 0;
			if (angle)
				*angle = 0;
			GROW(d->ranges, d->nranges);
			d->ranges[d->nranges++] =
				(struct range){strdup(v), (uint32_t)n, d->prog->nreg, width};
			for (unsigned long i = 0; i < (n ? n : 1); i++)
				new_reg(d, width);
		}
		return true;
	}
	if (sscanf(s, ".shared .align %31s .%31s %127[^[ \t][%lu]", align, type, name, &n) == 4 &&
	    type_of(type, &t)) {
		uint32_t a = (uint32_t)strtoul(align, NULL, 10);
		d->prog->shared = (d->prog->shared + a - 1) / (a ? a : 1) * a;
		GROW(d->shared, d->nshared);
		d->shared[d->nshared++] = (struct place){strdup(name), d->prog->shared};
		d->prog->shared += (unsigned)(n * ptx_type_bytes(t));
		return true;
	}
	if (!strncmp(s, ".pragma", 7) || !strncmp(s, ".loc", 4))
		return true;
	return refuse(d, "directive %.40s", s);
}

static bool statement(struct decoder *d, char *text)
{
	struct statement s = {0};
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
	for (char *p = strtok_r(t, ".", &save); p && s.nparts < PARTS;
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
			if (s.nargs == OPERANDS)
				return refuse(d, "operands of %s", s.part[0]);
			if (*trim(from))
				s.arg[s.nargs++] = trim(from);
			from = p + 1;
			if (last)
				break;
		}
	}
	uint32_t at = d->prog->ncode;
	if (!instruction(d, &s))
		return false;
	for (; guard && at < d->prog->ncode; at++) {
		struct ptx_ins *i = &d->prog->code[at];
		i->negate = *guard == '!';
		if (!find_reg(d, guard + i->negate, &i->guard))
			return false;
		if (d->prog->width[i->guard] != 1)
			return refuse(d, "guard %s", guard);
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

static bool body(struct decoder *d, char *text)
{
	for (char *s = trim(text); *s; s = trim(s)) {
		size_t n = label(s);
		if (n) {
			GROW(d->labels, d->nlabels);
			d->labels[d->nlabels++] = (struct place){strndup(s, n), d->prog->ncode};
			s = strchr(s, ':') + 1;
			continue;
		}
		char *end = strchr(s, ';');
		if (!end)
			return refuse(d, "no ';' after %.40s", s);
		*end = 0;
		if (!statement(d, s))
			return false;
		s = end + 1;
	}
	emit(d, PTX_RETURN);
	for (unsigned i = 0; i < d->njumps; i++) {
		unsigned k = 0;
		while (k < d->nlabels && strcmp(d->labels[k].name, d->jumps[i].name))
			k++;
		if (k == d->nlabels)
			return refuse(d, "label %s", d->jumps[i].name);
		d->prog->code[d->jumps[i].at].target = d->labels[k].at;
	}
	return true;
}

static void free_places(struct place *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		free(p[i].name);
	free(p);
}

struct ptx_prog *ptx_decode(const struct sim_func *f, char *err, size_t nerr)
{
	struct decoder d = {.func = f, .table = ptx_lanes(), .err = err, .nerr = nerr};
	*err = 0;
	d.prog = calloc(1, sizeof(*d.prog));
	for (int i = 0; i < R_FIRST; i++)
		new_reg(&d, 4);
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
