/* Shared by the two halves of the decoder: statements (statements.c) and instructions
 * (instructions.c). */
#ifndef TFH_SIM_GPU_PTX_DECODER_H
#define TFH_SIM_GPU_PTX_DECODER_H

#include "sim/gpu/ptx/ptx.h"

struct ptx_range {
	char *prefix;
	uint32_t count, first; /* count 0: one register of this very name */
	uint8_t width;
};

struct ptx_place {
	char *name;
	uint32_t at;
};

struct ptx_decoder {
	const struct sim_func *func;
	const struct ptx_table *table;
	struct ptx_prog *prog;
	struct ptx_range *ranges;
	unsigned nranges;
	struct ptx_place *labels, *jumps, *shared; /* jumps: instruction -> label name */
	unsigned nlabels, njumps, nshared;
	char *err;
	size_t nerr;
};

/* One instruction as written: opcode parts and operands, all pointing into the statement. */
enum { PTX_PARTS = 12, PTX_OPERANDS = 6 };
struct ptx_statement {
	char *part[PTX_PARTS], *arg[PTX_OPERANDS];
	int nparts, nargs;
	enum ptx_type type[3];
	int ntypes;
};

#define PTX_GROW(array, n) ((array) = realloc((array), ((n) + 1) * sizeof(*(array))))

/* Reports once why the kernel is not interpreted; always false. */
bool ptx_refuse(struct ptx_decoder *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
uint32_t ptx_new_reg(struct ptx_decoder *d, uint8_t width);
/* Bytes of a register: 8-bit values live in 16 bits. */
uint8_t ptx_reg_bytes(enum ptx_type t);
bool ptx_find_reg(struct ptx_decoder *d, const char *name, uint32_t *reg);
struct ptx_ins *ptx_emit(struct ptx_decoder *d, enum ptx_kind kind);
/* Emits code for the statement. */
bool ptx_instruction(struct ptx_decoder *d, struct ptx_statement *s);

#endif
