/* Decodes PTX instructions and their operands. */
#include "sim/gpu/ptx/decoder.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static uint32_t constant(struct ptx_decoder *d, uint64_t bits, uint8_t width)
{
	struct ptx_prog *p = d->prog;
	for (uint32_t i = 0; i < p->nconst; i++)
		if (p->consts[i].bits == bits && p->width[p->consts[i].reg] == width)
			return p->consts[i].reg;
	PTX_GROW(p->consts, p->nconst);
	p->consts[p->nconst] = (struct ptx_const){ptx_new_reg(d, width), bits};
	return p->consts[p->nconst++].reg;
}

struct ptx_ins *ptx_emit(struct ptx_decoder *d, enum ptx_kind kind)
{
	struct ptx_prog *p = d->prog;
	PTX_GROW(p->code, p->ncode);
	struct ptx_ins *i = &p->code[p->ncode++];
	memset(i, 0, sizeof(*i));
	i->kind = (uint8_t)kind;
	i->guard = PTX_NONE;
	return i;
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

bool ptx_find_reg(struct ptx_decoder *d, const char *s, uint32_t *reg)
{
	size_t n = strlen(s), k = n;
	if (special(s, reg))
		return true;
	while (k && isdigit((unsigned char)s[k - 1]))
		k--;
	for (unsigned i = 0; i < d->nranges; i++) {
		struct ptx_range *r = &d->ranges[i];
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
	return ptx_refuse(d, "register %s", s);
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

static bool find_shared(struct ptx_decoder *d, const char *s, uint64_t *off)
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

static bool source(struct ptx_decoder *d, const char *s, enum ptx_type t, uint32_t *reg)
{
	uint64_t bits;
	uint8_t width = ptx_reg_bytes(t);
	if (*s == '%') {
		if (!ptx_find_reg(d, s, reg))
			return false;
		if (d->prog->width[*reg] != width)
			return ptx_refuse(d, "%s has not %u bytes", s, width);
		return true;
	}
	if (!find_shared(d, s, &bits) && !number(s, &bits))
		return ptx_refuse(d, "operand %s", s);
	if (width < 8)
		bits &= (1ull << (width * 8)) - 1;
	*reg = constant(d, bits, width);
	return true;
}

static bool destination(struct ptx_decoder *d, const char *s, uint8_t width, uint32_t *reg)
{
	if (*s != '%' || !ptx_find_reg(d, s, reg))
		return ptx_refuse(d, "destination %s", s);
	if (*reg < R_FIRST || d->prog->width[*reg] != width)
		return ptx_refuse(d, "destination %s has not %u bytes", s, width);
	return true;
}

/* "[reg+off]", "[shared+off]", "[param+off]": the address as a register and an offset. */
static bool address(struct ptx_decoder *d, char *s, uint32_t *reg, int64_t *off, int *param)
{
	uint64_t at;
	char *close = strchr(s, ']');
	if (*s != '[' || !close)
		return ptx_refuse(d, "address %s", s);
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
		return ptx_refuse(d, "address %s", s);
	*reg = constant(d, at, 8);
	return true;
}

/* ---- instructions ---- */
static bool has(const struct ptx_statement *s, const char *part)
{
	for (int i = 1; i < s->nparts; i++)
		if (!strcmp(s->part[i], part))
			return true;
	return false;
}

/* Number of operands of an instruction, including its destination. */
static int operands(enum ptx_op op)
{
	switch (op) {
	case OP_MAD:
	case OP_MADWIDE:
	case OP_FMA:
	case OP_SELP:
		return 4;
	case OP_MOV:
	case OP_NOT:
	case OP_NEG:
	case OP_ABS:
		return 2;
	default:
		return op >= OP_EX2 && op <= OP_RINT ? 2 : 3;
	}
}

static bool alu(struct ptx_decoder *d, struct ptx_statement *s, enum ptx_op op, enum ptx_type t,
		uint8_t width)
{
	uint32_t r[3] = {0}, dst;
	ptx_fn fn = d->table->op[op][t];
	if (!fn || s->nargs != operands(op))
		return ptx_refuse(d, "this form of %s", s->part[0]);
	for (int i = 1; i < s->nargs; i++) {
		enum ptx_type st = t;
		if ((op == OP_SHL || op == OP_SHR) && i == 2)
			st = T_U32;
		else if (op == OP_SELP && i == 3)
			st = T_PRED;
		else if (op == OP_MADWIDE && i == 3)
			st = T_U64;
		if (i > 3 || !source(d, s->arg[i], st, &r[i - 1]))
			return ptx_refuse(d, "instruction %s", s->part[0]);
	}
	if (!destination(d, s->arg[0], width, &dst))
		return false;
	struct ptx_ins *i = ptx_emit(d, PTX_ALU);
	i->fn = fn;
	i->width = width;
	i->d[0] = dst;
	memcpy(i->s, r, sizeof(r));
	return true;
}

static bool plain(struct ptx_decoder *d, struct ptx_statement *s, enum ptx_op op)
{
	if (has(s, "sat") || has(s, "cc"))
		return ptx_refuse(d, "%s with .sat or .cc", s->part[0]);
	return alu(d, s, op, s->type[0], ptx_reg_bytes(s->type[0]));
}

static bool compare(struct ptx_decoder *d, struct ptx_statement *s)
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
	return ptx_refuse(d, "this form of setp");
}

static bool convert(struct ptx_decoder *d, struct ptx_statement *s)
{
	static const struct {
		const char *name;
		enum ptx_op op;
	} rounds[] = {{"rzi", OP_TRUNC}, {"rmi", OP_FLOOR}, {"rpi", OP_CEIL}, {"rni", OP_RINT}};
	enum ptx_type to = s->type[0], from = s->type[1];
	uint32_t src, dst;
	bool real = from == T_F32 || from == T_F64;
	if (s->ntypes != 2 || s->nargs != 2 || has(s, "sat") || !d->table->cvt[to][from])
		return ptx_refuse(d, "this conversion");
	if (!source(d, s->arg[1], from, &src) ||
	    !destination(d, s->arg[0], ptx_reg_bytes(to), &dst))
		return false;
	for (size_t k = 0; real && k < 4; k++) {
		if (!has(s, rounds[k].name) || (k == 0 && to != from))
			continue;
		uint32_t between = to == from ? dst : ptx_new_reg(d, ptx_reg_bytes(from));
		struct ptx_ins *i = ptx_emit(d, PTX_ALU);
		i->fn = d->table->op[rounds[k].op][from];
		i->width = ptx_reg_bytes(from);
		i->d[0] = between;
		i->s[0] = src;
		if (to == from)
			return true;
		src = between;
	}
	struct ptx_ins *i = ptx_emit(d, PTX_ALU);
	i->fn = d->table->cvt[to][from];
	i->width = ptx_reg_bytes(to);
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

static bool memory(struct ptx_decoder *d, struct ptx_statement *s, bool load)
{
	char *names[PTX_VECTOR];
	struct ptx_ins i = {0};
	int param;
	enum ptx_type t = s->type[0];
	bool global = has(s, "global"), shared = has(s, "shared"),
	     from_param = load && has(s, "param");
	if (s->nargs != 2 || s->ntypes != 1 || (!global && !shared && !from_param))
		return ptx_refuse(d, "this form of %s", s->part[0]);
	int n = elements(s->arg[load ? 0 : 1], names);
	if (!address(d, s->arg[load ? 1 : 0], &i.s[0], &i.off, &param))
		return false;
	if ((param >= 0) != from_param || (from_param && n != 1) || n < 1)
		return ptx_refuse(d, "this form of %s", s->part[0]);
	for (int k = 0; k < n; k++) {
		bool ok = load ? destination(d, names[k], ptx_reg_bytes(t), &i.d[k])
			       : source(d, names[k], t, &i.d[k]);
		if (!ok)
			return false;
	}
	struct ptx_ins *e = ptx_emit(d, from_param ? PTX_PARAM : load ? PTX_LOAD : PTX_STORE);
	i.kind = e->kind;
	i.guard = PTX_NONE;
	i.fn = load ? d->table->load[t] : d->table->store[t];
	i.nvec = (uint8_t)n;
	i.mem = (uint8_t)ptx_type_bytes(t);
	i.width = ptx_reg_bytes(t);
	i.shared = shared;
	if (from_param)
		i.off += d->func->params[param].off;
	*e = i;
	return i.fn ? true : ptx_refuse(d, "%s of this type", s->part[0]);
}

static bool branch(struct ptx_decoder *d, struct ptx_statement *s)
{
	ptx_emit(d, PTX_BRANCH);
	PTX_GROW(d->jumps, d->njumps);
	d->jumps[d->njumps++] = (struct ptx_place){strdup(s->arg[0]), d->prog->ncode - 1};
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

static bool wide(struct ptx_decoder *d, struct ptx_statement *s, enum ptx_op op)
{
	return alu(d, s, op, s->type[0], (uint8_t)(2 * ptx_reg_bytes(s->type[0])));
}

bool ptx_instruction(struct ptx_decoder *d, struct ptx_statement *s)
{
	const char *op = s->part[0];
	bool real = s->ntypes && (s->type[0] == T_F32 || s->type[0] == T_F64);
	if (!strcmp(op, "ret") || !strcmp(op, "exit"))
		return ptx_emit(d, PTX_RETURN) != NULL;
	/* All lanes of a block run together, and those that are behind run first: nothing to wait
	 * for. */
	if (!strcmp(op, "bar") || !strcmp(op, "barrier"))
		return has(s, "sync") ? ptx_emit(d, PTX_NOTHING) != NULL
				      : ptx_refuse(d, "this form of bar");
	if (!s->nargs)
		return ptx_refuse(d, "instruction %s", op);
	if (!strcmp(op, "bra"))
		return branch(d, s);
	if (!s->ntypes || s->type[0] >= T_COUNT)
		return ptx_refuse(d, "type of %s", op);
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
	return ptx_refuse(d, "instruction %s", op);
}
