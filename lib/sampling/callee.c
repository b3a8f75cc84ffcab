/*
 * The function that a frame calls. Python's bytecode loads the function by a name, then its
 * arguments, then calls it. The line table shows which instruction loaded the function (lines.c).
 * Opcodes differ by version, and in a running program some have been replaced by specialized forms
 * of the same name and argument.
 */
#include "sampling/frames.h"
#include "sampling/lines.h"

enum opcode_kind {
	OTHER,
	CALL,
	SKIP,	/* has no source position of its own */
	EXTEND, /* holds the upper bits of the next instruction's argument */
	NAME,	/* loads the name with this number */
	NAME_2, /* the number's lowest bit has another meaning */
};

static const struct opcodes {
	uint8_t minor, first, last, kind;
} opcodes[] = {
	/* clang-format off */
	{11, 2, 2, SKIP}, {11, 34, 34, EXTEND}, {11, 144, 144, EXTEND},
	{11, 22, 24, CALL}, {11, 64, 67, CALL}, {11, 72, 73, CALL}, {11, 76, 81, CALL}, {11, 113, 113, CALL}, {11, 121, 121, CALL},
	{11, 127, 127, CALL}, {11, 141, 143, CALL}, {11, 166, 166, CALL}, {11, 171, 171, CALL},
	{11, 39, 43, NAME}, {11, 56, 59, NAME}, {11, 62, 63, NAME}, {11, 101, 101, NAME}, {11, 106, 106, NAME}, {11, 160, 160, NAME},
	{11, 47, 48, NAME_2}, {11, 55, 55, NAME_2}, {11, 116, 116, NAME_2},
	{12, 2, 2, SKIP}, {12, 144, 144, EXTEND},
	{12, 23, 24, CALL}, {12, 28, 29, CALL}, {12, 34, 34, CALL}, {12, 38, 48, CALL}, {12, 56, 56, CALL}, {12, 142, 142, CALL},
	{12, 171, 171, CALL},
	{12, 101, 101, NAME},
	{12, 70, 70, NAME_2}, {12, 72, 73, NAME_2}, {12, 76, 82, NAME_2}, {12, 106, 106, NAME_2}, {12, 111, 112, NAME_2},
	{12, 116, 116, NAME_2},
	{13, 34, 34, SKIP}, {13, 71, 71, EXTEND},
	{13, 53, 54, CALL}, {13, 57, 57, CALL}, {13, 162, 181, CALL},
	{13, 92, 92, NAME},
	{13, 82, 82, NAME_2}, {13, 91, 91, NAME_2}, {13, 191, 204, NAME_2},
	{14, 33, 33, SKIP}, {14, 69, 69, EXTEND},
	{14, 4, 4, CALL}, {14, 52, 52, CALL}, {14, 55, 55, CALL}, {14, 143, 165, CALL},
	{14, 93, 93, NAME},
	{14, 80, 80, NAME_2}, {14, 92, 92, NAME_2}, {14, 177, 189, NAME_2}, {14, 192, 193, NAME_2},
	{15, 31, 31, SKIP}, {15, 67, 67, EXTEND},
	{15, 4, 4, CALL}, {15, 50, 50, CALL}, {15, 53, 53, CALL}, {15, 144, 168, CALL},
	{15, 92, 92, NAME},
	{15, 79, 79, NAME_2}, {15, 91, 91, NAME_2}, {15, 183, 197, NAME_2},
	/* clang-format on */
};

#define INSTRUCTION 2u
#define BEFORE_MOST 4u /* skipped or extending instructions before the one that loads */
#define CODE_NAMES 32  /* in a code object: a tuple */
#define TUPLE_SIZE 16
#define TUPLE_ITEMS 24
#define TUPLE_ITEMS_14 32 /* from 3.14 on: after the tuple's hash */

static enum opcode_kind kind_of(unsigned minor, uint8_t opcode)
{
	for (size_t i = 0; i < sizeof(opcodes) / sizeof(*opcodes); i++)
		if (opcodes[i].minor == minor && opcode >= opcodes[i].first &&
		    opcode <= opcodes[i].last)
			return opcodes[i].kind;
	return OTHER;
}

/* The number of the name that is loaded here; -1: it is another kind of instruction. */
static int64_t name_number(const struct tfh_py *py, uint64_t from, tfh_py_view view, void *how)
{
	uint32_t argument = 0;

	for (uint32_t i = 0; i < BEFORE_MOST; i++) {
		const uint8_t *op = view(how, from + i * INSTRUCTION, INSTRUCTION);
		enum opcode_kind kind = op ? kind_of(py->minor, op[0]) : OTHER;

		if (kind == SKIP)
			continue;
		argument = op ? argument << 8 | op[1] : 0;
		if (kind == NAME || kind == NAME_2)
			return kind == NAME ? argument : argument >> 1;
		if (kind != EXTEND)
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
	if (!p || kind_of(py->minor, *p) != CALL || !tfh_py_code(py, frame->code, view, how, &code))
		return false;
	from = tfh_py_callee_at(code.table, code.table_bytes, frame->at);
	i = from < 0 ? -1 : name_number(py, bytecode + (uint32_t)from, view, how);
	p = i < 0 ? NULL : view(how, frame->code + CODE_NAMES, sizeof(uint64_t));
	names = p ? tfh_py_word(p) : 0;
	p = names ? view(how, names + TUPLE_SIZE, sizeof(uint64_t)) : NULL;
	if (!p || (uint64_t)i >= tfh_py_word(p))
		return false;
	names += py->minor < 14 ? TUPLE_ITEMS : TUPLE_ITEMS_14;
	p = view(how, names + (uint64_t)i * sizeof(uint64_t), sizeof(uint64_t));
	return p && tfh_py_text_at(py, tfh_py_word(p), view, how, name);
}
