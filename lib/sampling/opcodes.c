#include "sampling/opcodes.h"

#include <stddef.h>
#include <string.h>

static const struct opcode_row {
	uint8_t minor, first, last, op, caches;
} rows[] = {
#define ROW(minor, first, last, op, caches) {minor, first, last, TFH_PY_OP_##op, caches},
#include "sampling/opcodes.def"
#undef ROW
};
#define ROWS (sizeof(rows) / sizeof(*rows))

void tfh_py_ops(unsigned minor, struct tfh_py_ops *out)
{
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < ROWS; i++)
		for (unsigned k = rows[i].first; rows[i].minor == minor && k <= rows[i].last; k++) {
			out->op[k] = rows[i].op;
			out->caches[k] = rows[i].caches;
		}
}

enum tfh_py_op tfh_py_op_of(unsigned minor, uint8_t opcode)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].minor == minor && opcode >= rows[i].first && opcode <= rows[i].last)
			return (enum tfh_py_op)rows[i].op;
	return TFH_PY_OP_PLAIN;
}
