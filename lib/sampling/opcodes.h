/* What the opcodes of CPython's bytecode do (opcodes.def). */
#ifndef TFH_SAMPLING_OPCODES_H
#define TFH_SAMPLING_OPCODES_H

#include <stdint.h>

enum tfh_py_op {
	TFH_PY_OP_PLAIN,   /* goes on with the next instruction */
	TFH_PY_OP_REFUSED, /* hides what it stands for: debugged or compiled code */
	TFH_PY_OP_SKIP,	   /* has no source position of its own */
	TFH_PY_OP_EXTEND,  /* holds the upper bits of the next instruction's argument */
	TFH_PY_OP_CALL,
	TFH_PY_OP_ATTR,	  /* the argument is a name */
	TFH_PY_OP_ATTR_2, /* twice that, as the lowest bit means something else */
	TFH_PY_OP_LOAD_CONST,
	TFH_PY_OP_SMALL_INT, /* the argument itself */
	TFH_PY_OP_LOAD_FAST,
	TFH_PY_OP_LOAD_NAME,
	TFH_PY_OP_LOAD_GLOBAL, /* from 3.11 on, twice the name */
	TFH_PY_OP_LOAD_DEREF,
	TFH_PY_OP_LOAD_2, /* two fast ones, four bits each */
	TFH_PY_OP_STORE_FAST,
	TFH_PY_OP_STORE_NAME,
	TFH_PY_OP_STORE_GLOBAL,
	TFH_PY_OP_STORE_DEREF,
	TFH_PY_OP_STORE_2,    /* two fast ones */
	TFH_PY_OP_STORE_LOAD, /* stores one, loads another */
	TFH_PY_OP_STORE_ATTR, /* the argument is a name */
	TFH_PY_OP_COPY,	      /* of what is on the stack */
	TFH_PY_OP_SWAP,	      /* of the two uppermost on the stack, if the argument is at most 2 */
	TFH_PY_OP_ADD,
	TFH_PY_OP_BINARY, /* the argument says which operator */
	TFH_PY_OP_COMPARE,
	TFH_PY_OP_YIELD, /* a generator gives an element */
	TFH_PY_OP_ENDS,	 /* returns or raises */
	TFH_PY_OP_FOR,	 /* begins an iteration, or jumps forward to the loop's end */
	/* Jumps: always; or perhaps, on true, on false; forward, or back, or to an offset. */
	TFH_PY_OP_FORWARD,
	TFH_PY_OP_BACK,
	TFH_PY_OP_TO,
	TFH_PY_OP_BRANCH,
	TFH_PY_OP_BRANCH_BACK,
	TFH_PY_OP_BRANCH_TO,
	TFH_PY_OP_TRUE,
	TFH_PY_OP_TRUE_BACK,
	TFH_PY_OP_TRUE_TO,
	TFH_PY_OP_FALSE,
	TFH_PY_OP_FALSE_BACK,
	TFH_PY_OP_FALSE_TO,
};

/* Of one version, by opcode. */
struct tfh_py_ops {
	uint8_t op[256], caches[256]; /* enum tfh_py_op; units after the instruction */
};

void tfh_py_ops(unsigned minor, struct tfh_py_ops *out);
enum tfh_py_op tfh_py_op_of(unsigned minor, uint8_t opcode);

#endif
