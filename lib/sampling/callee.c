/*
 * The function that a frame calls. Python's bytecode loads the function by a name, then its
 * arguments, then calls it. The line table shows which instruction loaded the function (lines.c).
 */
#include "sampling/frames.h"
#include "sampling/lines.h"
#include "sampling/opcodes.h"

#define INSTRUCTION 2u
#define BEFORE_MOST 4u /* skipped or extending instructions before the one that loads */
#define CODE_NAMES 32  /* in a code object: a tuple */

/* The number of the name that is loaded here; -1: it is another kind of instruction. */
static int64_t name_number(const struct tfh_py *py, uint64_t from, tfh_py_view view, void *how)
{
	uint32_t argument = 0;

	for (uint32_t i = 0; i < BEFORE_MOST; i++) {
		const uint8_t *op = view(how, from + i * INSTRUCTION, INSTRUCTION);
		enum tfh_py_op kind = op ? tfh_py_op_of(py->minor, op[0]) : TFH_PY_OP_PLAIN;

		if (kind == TFH_PY_OP_SKIP)
			continue;
		argument = op ? argument << 8 | op[1] : 0;
		if (kind == TFH_PY_OP_LOAD_NAME || kind == TFH_PY_OP_ATTR)
			return argument;
		if (kind == TFH_PY_OP_LOAD_GLOBAL || kind == TFH_PY_OP_ATTR_2)
			return argument >> 1;
		if (kind != TFH_PY_OP_EXTEND)
			break;
	}
	return -1;
}

bool tfh_py_callee(const struct tfh_py *py, const struct tfh_py_frame *frame, tfh_py_view view,
		   void *how, struct tfh_py_text *name)
{
	uint64_t bytecode = frame->code + py->at.code_bytecode, names;
	struct tfh_py_code code;
	const uint8_t *p;
	int32_t from;
	int64_t i;

	if (py->at.lines != TFH_PY_LOCATIONS || frame->at < 0)
		return false;
	p = view(how, bytecode + (uint32_t)frame->at, INSTRUCTION);
	if (!p || tfh_py_op_of(py->minor, *p) != TFH_PY_OP_CALL ||
	    !tfh_py_code(py, frame->code, view, how, &code))
		return false;
	from = tfh_py_callee_at(code.table, code.table_bytes, frame->at);
	i = from < 0 ? -1 : name_number(py, bytecode + (uint32_t)from, view, how);
	p = i < 0 ? NULL : view(how, frame->code + CODE_NAMES, sizeof(uint64_t));
	names = p ? tfh_py_word(p) : 0;
	p = names ? view(how, names + TFH_PY_TUPLE_SIZE, sizeof(uint64_t)) : NULL;
	if (!p || (uint64_t)i >= tfh_py_word(p))
		return false;
	names += TFH_PY_TUPLE_ITEMS(py->minor);
	p = view(how, names + (uint64_t)i * sizeof(uint64_t), sizeof(uint64_t));
	return p && tfh_py_text_at(py, tfh_py_word(p), view, how, name);
}
