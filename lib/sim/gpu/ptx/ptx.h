/*
 * Internal representation of the PTX interpreter. All threads ("lanes") of some blocks run
 * together: a register is an array with one value per lane, and each instruction is one loop over
 * the lanes, so decoding costs little and the compiler can vectorise. Diverging lanes wait at their
 * own positions; those at the lowest position run until they reconverge.
 */
#ifndef TFH_SIM_GPU_PTX_PTX_H
#define TFH_SIM_GPU_PTX_PTX_H

#include "sim/gpu/sim.h"

enum ptx_type {
	T_PRED,
	T_U8,
	T_S8,
	T_U16,
	T_S16,
	T_U32,
	T_S32,
	T_U64,
	T_S64,
	T_F32,
	T_F64,
	T_COUNT
};

enum ptx_op {
	OP_MOV,
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_MULHI,
	OP_MULWIDE,
	OP_MAD,
	OP_MADWIDE,
	OP_FMA,
	OP_DIV,
	OP_REM,
	OP_MIN,
	OP_MAX,
	OP_AND,
	OP_OR,
	OP_XOR,
	OP_NOT,
	OP_NEG,
	OP_ABS,
	OP_SHL,
	OP_SHR,
	OP_SELP,
	OP_EX2,
	OP_LG2,
	OP_RCP,
	OP_SQRT,
	OP_RSQRT,
	OP_SIN,
	OP_COS,
	OP_TANH,
	OP_TRUNC,
	OP_FLOOR,
	OP_CEIL,
	OP_RINT,
	OP_EQ,
	OP_NE,
	OP_LT,
	OP_LE,
	OP_GT,
	OP_GE,
	OP_EQU,
	OP_NEU,
	OP_LTU,
	OP_LEU,
	OP_GTU,
	OP_GEU,
	OP_COUNT
};

enum ptx_kind { PTX_ALU, PTX_LOAD, PTX_STORE, PTX_PARAM, PTX_BRANCH, PTX_RETURN, PTX_NOTHING };
enum { PTX_NONE = 0xffffffffu };
/* Of its own, to be an int: newer compilers give all of an enum one type. */
enum { PTX_VECTOR = 4 };

struct ptx_frame;
struct ptx_ins;
typedef void (*ptx_fn)(struct ptx_frame *f, const struct ptx_ins *i);

struct ptx_ins {
	ptx_fn fn;
	uint8_t kind, width; /* bytes of a lane of the destination */
	uint8_t nvec, mem;   /* elements and bytes of a memory access */
	bool shared, negate;
	uint32_t guard; /* predicate register or PTX_NONE */
	uint32_t d[PTX_VECTOR], s[3];
	uint32_t target; /* of a branch */
	int64_t off;
};

/* Registers that the hardware sets; their numbers come first. */
enum { R_TID, R_NTID = 3, R_CTAID = 6, R_NCTAID = 9, R_FIRST = 12 };

struct ptx_const {
	uint32_t reg;
	uint64_t bits;
};

struct ptx_prog {
	struct ptx_ins *code;
	uint32_t ncode;
	uint8_t *width; /* of each register */
	uint32_t nreg;
	struct ptx_const *consts;
	uint32_t nconst;
	unsigned shared; /* bytes of static shared memory */
};

struct ptx_frame {
	void **reg;
	unsigned n;	     /* lanes */
	void *dst;	     /* where an ALU instruction writes */
	const uint8_t *mask; /* lanes of a memory access, NULL for all */
	char *shared;
	const uint32_t *shared_off; /* per lane */
	unsigned nshared;
	uint64_t lo, hi; /* allocation of the last global access */
	bool wild;
};

struct ptx_table {
	ptx_fn op[OP_COUNT][T_COUNT];
	ptx_fn cvt[T_COUNT][T_COUNT]; /* to, from */
	ptx_fn load[T_COUNT];	      /* by type in memory */
	ptx_fn store[T_COUNT];
	ptx_fn guard;
};
extern const struct ptx_table ptx_lanes_base, ptx_lanes_avx2;
/* The faster table that this processor can run. */
const struct ptx_table *ptx_lanes(void);
/* Checks that all lanes of an access stay inside memory that exists; sets wild otherwise. */
bool ptx_check(struct ptx_frame *f, const uint64_t *addr, int64_t off, unsigned bytes);

static inline unsigned ptx_type_bytes(enum ptx_type t)
{
	static const uint8_t bytes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
	return bytes[t];
}

#endif
