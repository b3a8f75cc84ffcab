#include "sampling/offsets.h"

#include <string.h>

/*
 * Columns are the fields of struct tfh_py_layout: threads | state_thread, state_frame, cframe_frame
 * | frame_back, frame_code, frame_instr, frame_bytes, frame_owner, owner_shim, instr |
 * frame_locals, generator_frame | code_first, code_file, code_name, code_lines, code_bytecode,
 * lines | text_ascii, text_wide | state_handled, handled_value | runtime_current, state_status
 * (offsetof gilstate.tstate_current, _status). Up to 3.10 the bytecode is a separate object, and
 * code_bytecode is the end of the needed part.
 */
static const struct tfh_py_layout fixed[] = {
	/* clang-format off */
	[8]  = { 8, 176, 24, -1,  24, 32, 104, 112, -1, 0, TFH_PY_BYTES, 64, 16,    40, 104, 112, 120, 152, TFH_PY_LNOTAB,    48, 72, 144, 8, 1368, 0},
	[9]  = { 8, 176, 24, -1,  24, 32, 104, 112, -1, 0, TFH_PY_BYTES, 64, 16,    40, 104, 112, 120, 152, TFH_PY_LNOTAB,    48, 72, 144, 8, 568, 0},
	[10] = { 8, 176, 24, -1,  24, 32,  96, 104, -1, 0, TFH_PY_UNITS, 64, 16,    40, 104, 112, 120, 152, TFH_PY_LINETABLE, 48, 72, 144, 8, 568, 0},
	[11] = {16, 152, 56,  8,  48, 32,  56,  72, 69, 3, TFH_PY_POINTER, 72, 80,  72, 112, 128, 136, 184, TFH_PY_LOCATIONS, 48, 72, 120, 0, 576, 0},
	[12] = {72, 136, 56,  0,   8,  0,  56,  72, 70, 3, TFH_PY_POINTER, 72, 72,  68, 112, 128, 136, 192, TFH_PY_LOCATIONS, 40, 56, 104, 0, 0, 24},
	/* clang-format on */
};

/* Positions of fields in the table of _PyRuntime, in units of 8 bytes. */
struct told {
	uint8_t threads, state_thread, state_frame, state_status, frame_bytes, frame_back,
		frame_code, frame_instr, frame_locals, frame_owner;
	uint8_t code_first, code_file, code_name, code_lines, code_bytecode;
	uint8_t object_type, bytes_size, bytes_data, text_state, text_length, text_ascii;
};
static const struct told told[] = {
	[13] = {9, 24, 23, 27, 28, 29, 30, 31, 32, 33, 39, 35, 37, 38, 43, 45, 65, 66, 68, 69, 70},
	[14] = {9, 27, 26, 30, 31, 32, 33, 34, 35, 36, 44, 40, 42, 43, 48, 51, 75, 76, 78, 79, 80},
	[15] = {9, 30, 26, 33, 39, 40, 41, 42, 43, 44, 52, 48, 50, 51, 56, 59, 87, 88, 90, 91, 92},
};
/* What that table lacks: the offsets of exc_info in PyThreadState and of exc_value in
 * _PyErr_StackItem (cpython/pystate.h). */
static const struct {
	uint8_t state, value;
} handled[] = {[13] = {120, 0}, [14] = {120, 0}, [15] = {144, 0}};
/* Offset of gi_iframe in a generator, in all of them. */
#define GENERATOR_FRAME 72
#define TOLD_FIRST 13
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define COOKIE "xdebugpy"
#define OFFSET_MOST 1024   /* greatest offset in any of these structures but an interpreter */
#define THREADS_MOST 65536 /* greatest offset in an interpreter */

/* Whether _PyRuntime begins with its table, and the table is that of this version. */
static bool table_fits(const uint64_t *table, unsigned long version)
{
	return !memcmp(table, COOKIE, sizeof(COOKIE) - 1) && table[1] == version;
}

/* Fields that all versions share are compared, so that a table in another order is noticed. */
static bool read_told(const struct told *t, const uint64_t *table, struct tfh_py_layout *out)
{
	const uint8_t *place = (const uint8_t *)t;

	for (unsigned i = 0; i < sizeof(*t); i++)
		if (table[place[i]] > (&place[i] == &t->threads ? THREADS_MOST - 1 : OFFSET_MOST))
			return false;
	if (table[t->object_type] != TFH_PY_OBJECT_TYPE ||
	    table[t->bytes_size] != TFH_PY_BYTES_SIZE ||
	    table[t->bytes_data] != TFH_PY_BYTES_DATA ||
	    table[t->text_state] != TFH_PY_TEXT_STATE ||
	    table[t->text_length] != TFH_PY_TEXT_LENGTH || table[t->text_ascii] != 40 ||
	    table[t->frame_owner] >= table[t->frame_bytes])
		return false;
	*out = (struct tfh_py_layout){.threads = (uint16_t)table[t->threads],
				      .state_thread = (uint16_t)table[t->state_thread],
				      .state_frame = (uint16_t)table[t->state_frame],
				      .state_status = (uint16_t)table[t->state_status],
				      .cframe_frame = -1,
				      .frame_back = (uint16_t)table[t->frame_back],
				      .frame_code = (uint16_t)table[t->frame_code],
				      .frame_instr = (uint16_t)table[t->frame_instr],
				      .frame_bytes = (uint16_t)table[t->frame_bytes],
				      .frame_owner = (int16_t)table[t->frame_owner],
				      .owner_shim = 3,
				      .frame_locals = (uint16_t)table[t->frame_locals],
				      .generator_frame = GENERATOR_FRAME,
				      .instr = TFH_PY_POINTER,
				      .code_first = (uint16_t)table[t->code_first],
				      .code_file = (uint16_t)table[t->code_file],
				      .code_name = (uint16_t)table[t->code_name],
				      .code_lines = (uint16_t)table[t->code_lines],
				      .code_bytecode = (uint16_t)table[t->code_bytecode],
				      .lines = TFH_PY_LOCATIONS,
				      .text_ascii = 40,
				      .text_wide = 56};
	return true;
}

const char *tfh_py_unreadable(unsigned minor, unsigned long version, const void *runtime,
			      struct tfh_py_layout *out)
{
	static const char other[] =
		"the interpreter's table of its own layout is not the one of its version";
	static const char unknown[] = "this version of Python is not known (3." TEXT(
		TFH_PY_FIRST) " to 3." TEXT(TFH_PY_LAST) " are)";
	const uint64_t *table = runtime;

	if (minor < TFH_PY_FIRST || minor > TFH_PY_LAST)
		return unknown;
	if (minor < TOLD_FIRST) {
		*out = fixed[minor];
		return NULL;
	}
	if (!table_fits(table, version))
		return other;
	if (table[2])
		return "it is a build without the GIL (free-threaded), whose stacks may change while they are read";
	if (!read_told(&told[minor], table, out))
		return other;
	out->state_handled = handled[minor].state;
	out->handled_value = handled[minor].value;
	return NULL;
}
