/*
 * The loops over lanes, one function for each operation and type. Included by lanes_base.c and
 * lanes_avx2.c, which compile it for different processors under the name LANES_TABLE.
 */
#include <math.h>
#include <string.h>

/* "Is this type signed" is asked of unsigned types too. */
#pragma GCC diagnostic ignored "-Wtype-limits"

#ifdef __clang__
/* Not every loop can be a vector loop: those that call the mathematics library cannot. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define NO_CARRY _Pragma("clang loop vectorize(assume_safety)")
#else
#define NO_CARRY _Pragma("GCC ivdep")
#endif

/* Storage of a register of each type: 8-bit values live in 16-bit registers. */
typedef uint8_t reg_pred;
typedef uint16_t reg_u8;
typedef int16_t reg_s8;
typedef uint16_t reg_u16;
typedef int16_t reg_s16;
typedef uint32_t reg_u32;
typedef int32_t reg_s32;
typedef uint64_t reg_u64;
typedef int64_t reg_s64;
typedef float reg_f32;
typedef double reg_f64;
typedef uint8_t val_u8;
typedef int8_t val_s8;
typedef uint16_t val_u16;
typedef int16_t val_s16;
typedef uint32_t val_u32;
typedef int32_t val_s32;
typedef uint64_t val_u64;
typedef int64_t val_s64;
typedef float val_f32;
typedef double val_f64;

#define UNARY(name, t, expr)                                                                       \
	static void name##_##t(struct ptx_frame *f, const struct ptx_ins *i)                       \
	{                                                                                          \
		reg_##t *d = f->dst;                                                               \
		const reg_##t *a = f->reg[i->s[0]];                                                \
		unsigned n = f->n;                                                                 \
		NO_CARRY for (unsigned k = 0; k < n; k++)                                          \
		{                                                                                  \
			reg_##t x = a[k];                                                          \
			d[k] = (reg_##t)(expr);                                                    \
		}                                                                                  \
	}
#define BINARY_TO(name, t, to, expr)                                                               \
	static void name##_##t(struct ptx_frame *f, const struct ptx_ins *i)                       \
	{                                                                                          \
		to *d = f->dst;                                                                    \
		const reg_##t *a = f->reg[i->s[0]], *b = f->reg[i->s[1]];                          \
		unsigned n = f->n;                                                                 \
		NO_CARRY for (unsigned k = 0; k < n; k++)                                          \
		{                                                                                  \
			reg_##t x = a[k], y = b[k];                                                \
			d[k] = (to)(expr);                                                         \
		}                                                                                  \
	}
#define BINARY(name, t, expr) BINARY_TO(name, t, reg_##t, expr)
#define SHIFT(name, t, expr)                                                                       \
	static void name##_##t(struct ptx_frame *f, const struct ptx_ins *i)                       \
	{                                                                                          \
		enum { BITS = sizeof(reg_##t) * 8 };                                               \
		reg_##t *d = f->dst;                                                               \
		const reg_##t *a = f->reg[i->s[0]];                                                \
		const uint32_t *b = f->reg[i->s[1]];                                               \
		unsigned n = f->n;                                                                 \
		NO_CARRY for (unsigned k = 0; k < n; k++)                                          \
		{                                                                                  \
			reg_##t x = a[k];                                                          \
			uint32_t y = b[k];                                                         \
			d[k] = (reg_##t)(expr);                                                    \
		}                                                                                  \
	}
#define TERNARY_TO(name, t, to, expr)                                                              \
	static void name##_##t(struct ptx_frame *f, const struct ptx_ins *i)                       \
	{                                                                                          \
		to *d = f->dst;                                                                    \
		const reg_##t *a = f->reg[i->s[0]], *b = f->reg[i->s[1]];                          \
		const to *c = f->reg[i->s[2]];                                                     \
		unsigned n = f->n;                                                                 \
		NO_CARRY for (unsigned k = 0; k < n; k++)                                          \
		{                                                                                  \
			reg_##t x = a[k], y = b[k];                                                \
			to z = c[k];                                                               \
			d[k] = (to)(expr);                                                         \
		}                                                                                  \
	}
#define SELECT(t)                                                                                  \
	static void selp_##t(struct ptx_frame *f, const struct ptx_ins *i)                         \
	{                                                                                          \
		reg_##t *d = f->dst;                                                               \
		const reg_##t *a = f->reg[i->s[0]], *b = f->reg[i->s[1]];                          \
		const uint8_t *p = f->reg[i->s[2]];                                                \
		unsigned n = f->n;                                                                 \
		NO_CARRY for (unsigned k = 0; k < n; k++) d[k] = p[k] ? a[k] : b[k];               \
	}

#define INTEGERS(M) M(u16) M(s16) M(u32) M(s32) M(u64) M(s64)
#define UNSIGNED(M) M(u16) M(u32) M(u64)
#define FLOATS(M) M(f32) M(f64)

#define WRAPPING(t)                                                                                \
	UNARY(mov, t, x)                                                                           \
	BINARY(add, t, x + y)                                                                      \
	BINARY(sub, t, x - y)                                                                      \
	BINARY(mul, t, (uint64_t)x *y)                                                             \
	TERNARY_TO(mad, t, reg_##t, (uint64_t)x *y + z)                                            \
	BINARY(and, t, x &y)                                                                       \
	BINARY(or, t, x | y)                                                                       \
	BINARY(xor, t, x ^ y)                                                                      \
	UNARY(not, t, ~x)                                                                          \
	UNARY(neg, t, 0 - x)                                                                       \
	SHIFT(shl, t, y >= BITS ? 0 : x << y)                                                      \
	SELECT(t)
UNSIGNED(WRAPPING)

#define SIGN_AWARE(t)                                                                              \
	BINARY(div, t,                                                                             \
	       !y					 ? (reg_##t) - 1                           \
	       : (reg_##t) - 1 < 0 && y == (reg_##t) - 1 ? (reg_##t)(0 - (uint64_t)x)              \
							 : x / y)                                  \
	BINARY(rem, t, !y ? x : (reg_##t) - 1 < 0 && y == (reg_##t) - 1 ? 0 : x % y)               \
	BINARY(min, t, x < y ? x : y)                                                              \
	BINARY(max, t, x < y ? y : x)                                                              \
	SHIFT(shr, t, y >= BITS ? ((reg_##t) - 1 < 0 ? x >> (BITS - 1) : 0) : x >> y)              \
	UNARY(abs, t, (reg_##t) - 1 < 0 && (int64_t)x < 0 ? 0 - (uint64_t)x : (uint64_t)x)         \
	BINARY_TO(eq, t, uint8_t, x == y)                                                          \
	BINARY_TO(ne, t, uint8_t, x != y)                                                          \
	BINARY_TO(lt, t, uint8_t, x < y)                                                           \
	BINARY_TO(le, t, uint8_t, x <= y)                                                          \
	BINARY_TO(gt, t, uint8_t, x > y)                                                           \
	BINARY_TO(ge, t, uint8_t, x >= y)
INTEGERS(SIGN_AWARE)

BINARY(mulhi, u32, ((uint64_t)x * y) >> 32)
BINARY(mulhi, s32, ((int64_t)x * y) >> 32)
BINARY(mulhi, u64, (uint64_t)(((unsigned __int128)x * y) >> 64))
BINARY(mulhi, s64, (int64_t)(((__int128)x * y) >> 64))
BINARY_TO(mulwide, u16, uint32_t, (uint32_t)x *y)
BINARY_TO(mulwide, s16, int32_t, (int32_t)x *y)
BINARY_TO(mulwide, u32, uint64_t, (uint64_t)x *y)
BINARY_TO(mulwide, s32, int64_t, (int64_t)x *y)
TERNARY_TO(madwide, u32, uint64_t, (uint64_t)x *y + z)
TERNARY_TO(madwide, s32, int64_t, (int64_t)((uint64_t)((int64_t)x *y) + (uint64_t)z))

#define FLOATING(t)                                                                                \
	BINARY(add, t, x + y)                                                                      \
	BINARY(sub, t, x - y)                                                                      \
	BINARY(mul, t, x *y)                                                                       \
	BINARY(div, t, x / y)                                                                      \
	BINARY(min, t, x < y || y != y ? x : y)                                                    \
	BINARY(max, t, x > y || y != y ? x : y)                                                    \
	UNARY(neg, t, -x)                                                                          \
	UNARY(rcp, t, 1 / x)                                                                       \
	BINARY_TO(eq, t, uint8_t, x == y)                                                          \
	BINARY_TO(ne, t, uint8_t, x<y || x> y)                                                     \
	BINARY_TO(lt, t, uint8_t, x < y)                                                           \
	BINARY_TO(le, t, uint8_t, x <= y)                                                          \
	BINARY_TO(gt, t, uint8_t, x > y)                                                           \
	BINARY_TO(ge, t, uint8_t, x >= y)                                                          \
	BINARY_TO(equ, t, uint8_t, !(x < y || x > y))                                              \
	BINARY_TO(neu, t, uint8_t, x != y)                                                         \
	BINARY_TO(ltu, t, uint8_t, !(x >= y))                                                      \
	BINARY_TO(leu, t, uint8_t, !(x > y))                                                       \
	BINARY_TO(gtu, t, uint8_t, !(x <= y))                                                      \
	BINARY_TO(geu, t, uint8_t, !(x < y))
FLOATS(FLOATING)

#define MATHS(t, sfx)                                                                              \
	TERNARY_TO(fma, t, reg_##t, __builtin_fma##sfx(x, y, z))                                   \
	UNARY(abs, t, __builtin_fabs##sfx(x))                                                      \
	UNARY(sqrt, t, __builtin_sqrt##sfx(x))                                                     \
	UNARY(rsqrt, t, 1 / __builtin_sqrt##sfx(x))                                                \
	UNARY(ex2, t, exp2##sfx(x))                                                                \
	UNARY(lg2, t, log2##sfx(x))                                                                \
	UNARY(sin, t, sin##sfx(x))                                                                 \
	UNARY(cos, t, cos##sfx(x))                                                                 \
	UNARY(tanh, t, tanh##sfx(x))                                                               \
	UNARY(trunc, t, __builtin_trunc##sfx(x))                                                   \
	UNARY(floor, t, __builtin_floor##sfx(x))                                                   \
	UNARY(ceil, t, __builtin_ceil##sfx(x))                                                     \
	UNARY(rint, t, __builtin_rint##sfx(x))
MATHS(f32, f)
MATHS(f64, )

UNARY(mov, pred, x)
BINARY(and, pred, x &y)
BINARY(or, pred, x | y)
BINARY(xor, pred, x ^ y)
UNARY(not, pred, !x)

/* ---- conversions ---- */
#define CVT(to, from, expr)                                                                        \
	static void cvt_##to##_##from(struct ptx_frame *f, const struct ptx_ins *i)                \
	{                                                                                          \
		reg_##to *d = f->dst;                                                              \
		const reg_##from *a = f->reg[i->s[0]];                                             \
		unsigned n = f->n;                                                                 \
		NO_CARRY for (unsigned k = 0; k < n; k++)                                          \
		{                                                                                  \
			val_##from x = (val_##from)a[k];                                           \
			d[k] = (reg_##to)(expr);                                                   \
		}                                                                                  \
	}
/* Float to integer saturates, and gives 0 for not-a-number. */
#define CVT_FI(to, lo, hi)                                                                         \
	CVT(to, f32,                                                                               \
	    x != x		? 0                                                                \
	    : (double)x <= (lo) ? (val_##to)(lo)                                                   \
	    : (double)x >= (hi) ? LAST_##to                                                        \
				: (val_##to)x)                                                     \
	CVT(to, f64, x != x ? 0 : x <= (lo) ? (val_##to)(lo) : x >= (hi) ? LAST_##to : (val_##to)x)
#define LAST_u8 UINT8_MAX
#define LAST_s8 INT8_MAX
#define LAST_u16 UINT16_MAX
#define LAST_s16 INT16_MAX
#define LAST_u32 UINT32_MAX
#define LAST_s32 INT32_MAX
#define LAST_u64 UINT64_MAX
#define LAST_s64 INT64_MAX
CVT_FI(u8, 0.0, 255.0)
CVT_FI(s8, -128.0, 127.0)
CVT_FI(u16, 0.0, 65535.0)
CVT_FI(s16, -32768.0, 32767.0)
CVT_FI(u32, 0.0, 4294967295.0)
CVT_FI(s32, -2147483648.0, 2147483647.0)
CVT_FI(u64, 0.0, 18446744073709551616.0)
CVT_FI(s64, -9223372036854775808.0, 9223372036854775808.0)

#define FROM_INTEGERS(to)                                                                          \
	CVT(to, u8, (val_##to)x)                                                                   \
	CVT(to, s8, (val_##to)x)                                                                   \
	CVT(to, u16, (val_##to)x)                                                                  \
	CVT(to, s16, (val_##to)x)                                                                  \
	CVT(to, u32, (val_##to)x)                                                                  \
	CVT(to, s32, (val_##to)x)                                                                  \
	CVT(to, u64, (val_##to)x)                                                                  \
	CVT(to, s64, (val_##to)x)
#define ALL(M) M(u8) M(s8) M(u16) M(s16) M(u32) M(s32) M(u64) M(s64) M(f32) M(f64)
ALL(FROM_INTEGERS)
CVT(f32, f64, (float)x)
CVT(f64, f32, x)
CVT(f32, f32, x)
CVT(f64, f64, x)

/* ---- memory ---- */
static inline char *at(const struct ptx_frame *f, const struct ptx_ins *i, const uint64_t *a,
		       unsigned k)
{
	if (i->shared)
		return f->shared + f->shared_off[k] + a[k] + (uint64_t)i->off;
	return (char *)(uintptr_t)(a[k] + (uint64_t)i->off);
}

#define LOAD(t)                                                                                    \
	static void load_##t(struct ptx_frame *f, const struct ptx_ins *i)                         \
	{                                                                                          \
		const uint64_t *a = f->reg[i->s[0]];                                               \
		unsigned n = f->n;                                                                 \
		if (!ptx_check(f, a, i->off, i->nvec * (unsigned)sizeof(val_##t)))                 \
			return;                                                                    \
		for (unsigned e = 0; e < i->nvec; e++) {                                           \
			reg_##t *d = f->reg[i->d[e]];                                              \
			int64_t off = i->off + (int64_t)(e * sizeof(val_##t));                     \
			if (!f->mask && !i->shared) {                                              \
				NO_CARRY for (unsigned k = 0; k < n; k++) d[k] =                   \
					*(const val_##t *)(uintptr_t)(a[k] + (uint64_t)off);       \
				continue;                                                          \
			}                                                                          \
			for (unsigned k = 0; k < n; k++)                                           \
				if (!f->mask || f->mask[k])                                        \
					d[k] = *(const val_##t *)(at(f, i, a, k) +                 \
								  e * sizeof(val_##t));            \
		}                                                                                  \
	}
#define STORE(t)                                                                                   \
	static void store_##t(struct ptx_frame *f, const struct ptx_ins *i)                        \
	{                                                                                          \
		const uint64_t *a = f->reg[i->s[0]];                                               \
		unsigned n = f->n;                                                                 \
		if (!ptx_check(f, a, i->off, i->nvec * (unsigned)sizeof(val_##t)))                 \
			return;                                                                    \
		for (unsigned e = 0; e < i->nvec; e++) {                                           \
			const reg_##t *v = f->reg[i->d[e]];                                        \
			for (unsigned k = 0; k < n; k++)                                           \
				if (!f->mask || f->mask[k])                                        \
					*(val_##t *)(at(f, i, a, k) + e * sizeof(val_##t)) =       \
						(val_##t)v[k];                                     \
		}                                                                                  \
	}
#define LOAD_STORE(t) LOAD(t) STORE(t)
LOAD(s8)
LOAD(s16)
LOAD_STORE(u8)
LOAD_STORE(u16)
LOAD_STORE(u32)
LOAD_STORE(u64)

/* dst = the active lanes (mask, NULL for all) on which the guard of i holds. */
static void guard(struct ptx_frame *f, const struct ptx_ins *i)
{
	uint8_t *d = f->dst, flip = i->negate;
	const uint8_t *p = f->reg[i->guard], *m = f->mask;
	unsigned n = f->n;
	if (m) {
		NO_CARRY for (unsigned k = 0; k < n; k++) d[k] = (p[k] ^ flip) & m[k];
	} else {
		NO_CARRY for (unsigned k = 0; k < n; k++) d[k] = p[k] ^ flip;
	}
}

/* ---- the table; signed types share what does not depend on the sign ---- */
#define SAME(name)                                                                                 \
	[T_U16] = name##_u16, [T_S16] = name##_u16, [T_U32] = name##_u32, [T_S32] = name##_u32,    \
	[T_U64] = name##_u64, [T_S64] = name##_u64
#define EACH(name)                                                                                 \
	[T_U16] = name##_u16, [T_S16] = name##_s16, [T_U32] = name##_u32, [T_S32] = name##_s32,    \
	[T_U64] = name##_u64, [T_S64] = name##_s64
#define REAL(name) [T_F32] = name##_f32, [T_F64] = name##_f64
#define BITS(name) [T_F32] = name##_u32, [T_F64] = name##_u64
#define NARROW(name) [T_U8] = name##_u16, [T_S8] = name##_u16
#define CVT_ROW(to)                                                                                \
	[T_U8] = cvt_##to##_u8, [T_S8] = cvt_##to##_s8, [T_U16] = cvt_##to##_u16,                  \
	[T_S16] = cvt_##to##_s16, [T_U32] = cvt_##to##_u32, [T_S32] = cvt_##to##_s32,              \
	[T_U64] = cvt_##to##_u64, [T_S64] = cvt_##to##_s64, [T_F32] = cvt_##to##_f32,              \
	[T_F64] = cvt_##to##_f64

const struct ptx_table LANES_TABLE = {
	.op = {[OP_MOV] = {[T_PRED] = mov_pred, SAME(mov), BITS(mov), NARROW(mov)},
	       [OP_ADD] = {SAME(add), REAL(add)},
	       [OP_SUB] = {SAME(sub), REAL(sub)},
	       [OP_MUL] = {SAME(mul), REAL(mul)},
	       [OP_MULHI] = {[T_U32] = mulhi_u32,
			     [T_S32] = mulhi_s32,
			     [T_U64] = mulhi_u64,
			     [T_S64] = mulhi_s64},
	       [OP_MULWIDE] = {[T_U16] = mulwide_u16,
			       [T_S16] = mulwide_s16,
			       [T_U32] = mulwide_u32,
			       [T_S32] = mulwide_s32},
	       [OP_MAD] = {SAME(mad)},
	       [OP_MADWIDE] = {[T_U32] = madwide_u32, [T_S32] = madwide_s32},
	       [OP_FMA] = {REAL(fma)},
	       [OP_DIV] = {EACH(div), REAL(div)},
	       [OP_REM] = {EACH(rem)},
	       [OP_MIN] = {EACH(min), REAL(min)},
	       [OP_MAX] = {EACH(max), REAL(max)},
	       [OP_AND] = {[T_PRED] = and_pred, SAME(and)},
	       [OP_OR] = {[T_PRED] = or_pred, SAME(or)},
	       [OP_XOR] = {[T_PRED] = xor_pred, SAME(xor)},
	       [OP_NOT] = {[T_PRED] = not_pred, SAME(not )},
	       [OP_NEG] = {SAME(neg), REAL(neg)},
	       [OP_ABS] = {EACH(abs), REAL(abs)},
	       [OP_SHL] = {SAME(shl)},
	       [OP_SHR] = {EACH(shr)},
	       [OP_SELP] = {SAME(selp), BITS(selp)},
	       [OP_EX2] = {REAL(ex2)},
	       [OP_LG2] = {REAL(lg2)},
	       [OP_RCP] = {REAL(rcp)},
	       [OP_SQRT] = {REAL(sqrt)},
	       [OP_RSQRT] = {REAL(rsqrt)},
	       [OP_SIN] = {REAL(sin)},
	       [OP_COS] = {REAL(cos)},
	       [OP_TANH] = {REAL(tanh)},
	       [OP_TRUNC] = {REAL(trunc)},
	       [OP_FLOOR] = {REAL(floor)},
	       [OP_CEIL] = {REAL(ceil)},
	       [OP_RINT] = {REAL(rint)},
	       [OP_EQ] = {EACH(eq), REAL(eq)},
	       [OP_NE] = {EACH(ne), REAL(ne)},
	       [OP_LT] = {EACH(lt), REAL(lt)},
	       [OP_LE] = {EACH(le), REAL(le)},
	       [OP_GT] = {EACH(gt), REAL(gt)},
	       [OP_GE] = {EACH(ge), REAL(ge)},
	       [OP_EQU] = {REAL(equ)},
	       [OP_NEU] = {REAL(neu)},
	       [OP_LTU] = {REAL(ltu)},
	       [OP_LEU] = {REAL(leu)},
	       [OP_GTU] = {REAL(gtu)},
	       [OP_GEU] = {REAL(geu)}},
	.cvt = {[T_U8] = {CVT_ROW(u8)},
		[T_S8] = {CVT_ROW(s8)},
		[T_U16] = {CVT_ROW(u16)},
		[T_S16] = {CVT_ROW(s16)},
		[T_U32] = {CVT_ROW(u32)},
		[T_S32] = {CVT_ROW(s32)},
		[T_U64] = {CVT_ROW(u64)},
		[T_S64] = {CVT_ROW(s64)},
		[T_F32] = {CVT_ROW(f32)},
		[T_F64] = {CVT_ROW(f64)}},
	.load = {[T_U8] = load_u8,
		 [T_S8] = load_s8,
		 [T_S16] = load_s16,
		 [T_U16] = load_u16,
		 [T_U32] = load_u32,
		 [T_S32] = load_u32,
		 [T_U64] = load_u64,
		 [T_S64] = load_u64,
		 [T_F32] = load_u32,
		 [T_F64] = load_u64},
	.store = {[T_U8] = store_u8,
		  [T_S8] = store_u8,
		  [T_U16] = store_u16,
		  [T_S16] = store_u16,
		  [T_U32] = store_u32,
		  [T_S32] = store_u32,
		  [T_U64] = store_u64,
		  [T_S64] = store_u64,
		  [T_F32] = store_u32,
		  [T_F64] = store_u64},
	.guard = guard,
};
