/*
 * Where CPython keeps the data from which a stack is read: offsets in bytes into its structures.
 * These structures are private to the interpreter, and every minor version has its own. From 3.13
 * on, the interpreter describes most of them in a table at the beginning of _PyRuntime. Checked on
 * 3.8 to 3.15; other versions are refused (version.c).
 */
#ifndef TFH_SAMPLING_OFFSETS_H
#define TFH_SAMPLING_OFFSETS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/python.h"

/* How a frame refers to its current instruction. */
enum tfh_py_instr {
	TFH_PY_BYTES,	/* int: offset in bytes of bytecode */
	TFH_PY_UNITS,	/* int: offset in units of two bytes */
	TFH_PY_POINTER, /* address in the bytecode, which is the end of the code object */
};

/* How a code object encodes the lines of its instructions (lines.c). */
enum tfh_py_lines { TFH_PY_LNOTAB, TFH_PY_LINETABLE, TFH_PY_LOCATIONS };

struct tfh_py_layout {
	/* Interpreter: the newest of its thread states, which form a list. */
	uint16_t threads;
	/* Thread state: its thread (pthread_self()); and the innermost frame or, if cframe_frame is
	 * not negative, the structure that holds it. */
	uint16_t state_thread, state_frame;
	int16_t cframe_frame;
	/* Frame. Frames whose owner is owner_shim or more are the interpreter's own entries.
	 * frame_owner < 0: frames have no owner. */
	uint16_t frame_back, frame_code, frame_instr, frame_bytes;
	int16_t frame_owner;
	uint8_t owner_shim;
	uint8_t instr; /* enum tfh_py_instr */
	/* Its locals, with the evaluation stack after them; up to 3.10 the address of that stack.
	 * In a generator: its frame, or up to 3.10 the frame's address. */
	uint16_t frame_locals, generator_frame;
	/* Code object; code_name is the qualified name from 3.11 on. */
	uint16_t code_first, code_file, code_name, code_lines, code_bytecode;
	uint8_t lines; /* enum tfh_py_lines */
	/* str: header sizes of ASCII and of other strings. Length and hash are at 16 and 24, the
	 * state at 32. */
	uint8_t text_ascii, text_wide;
	/* Thread state: the address of the innermost record of exceptions that are being handled;
	 * and the exception in it. */
	uint16_t state_handled, handled_value;
	/* What shows whether a thread holds the GIL (walks.c): up to 3.11, the holder's state in
	 * _PyRuntime; from 3.12 on, the thread's own status. 0: not in this version. */
	uint16_t runtime_current, state_status;
};

/* The same in all versions. */
#define TFH_PY_OBJECT_TYPE 8
#define TFH_PY_TYPE_NAME 24
#define TFH_PY_STATE_NEXT 8
/* From 3.11 on, the kernel's thread id follows the thread's pthread_self(). */
#define TFH_PY_TIDS 11
#define TFH_PY_STATE_TID(at) ((at)->state_thread + 8u)
/* From 3.11 on, what shows where a frame's evaluation stack ends while it does not execute. */
#define TFH_PY_FRAME_TOP 64
#define TFH_PY_TUPLE_SIZE 16
#define TFH_PY_TUPLE_ITEMS(minor) ((minor) < 14 ? 24u : 32u) /* 3.14: after its hash */
#define TFH_PY_BYTES_SIZE 16
#define TFH_PY_BYTES_DATA 32
#define TFH_PY_TEXT_LENGTH 16
#define TFH_PY_TEXT_HASH 24
#define TFH_PY_TEXT_STATE 32

/* Bytes of _PyRuntime that hold the layout and the addresses of the interpreters. */
#define TFH_PY_RUNTIME_BYTES 1024

/* Returns why the stacks of a CPython 3.`minor` (0: unknown) cannot be read; NULL: they can, and
 * *out is its layout. `version`: as Py_Version, 0 up to 3.10. `runtime`: the beginning of its
 * _PyRuntime, or a copy. */
const char *tfh_py_unreadable(unsigned minor, unsigned long version, const void *runtime,
			      struct tfh_py_layout *out);

#endif
