/*
 * The Python frames of a thread, read from CPython's own memory: function, file, line. Reading them
 * imports and executes nothing, takes no lock, allocates nothing, and does not stop the
 * interpreter.
 *
 *	offsets.c	the table of offsets into each version's structures
 *	frames.c	a thread's frames, innermost first
 *	code.c		a code object: its identity and texts
 *	lines.c		its lines
 *	py_text.c	strings
 *	callee.c	the name of the function that a frame calls, which may have no frame
 *	copied.c	copies made by the kernel, of memory that may change meanwhile
 *	walks.c		the frames of a thread that keeps running meanwhile
 *	iterators.c	how far its loops have come
 *	opcodes.def	what the opcodes of each version do
 *	bytecode.c	the loops of a function, and the variables that count them
 *	counters.c	the values of these
 *	outside.c	the interpreter of another process, found in its files
 *
 * Memory is read through a "view" (tfh_py_view). The calling thread's own stack is read directly,
 * since its frames keep all of it alive. Anything else is read from a copy.
 */
#ifndef TFH_SAMPLING_FRAMES_H
#define TFH_SAMPLING_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arch.h"
#include "format/layout.h"
#include "sampling/offsets.h"
#include "sampling/py_text.h"

/* From this minor version on, the calling thread can be asked for its attached state. Before, the
 * states of several interpreters cannot be distinguished by thread. */
#define TFH_PY_PER_THREAD 12

/* An interpreter. The functions belong to this process (hook/python/version.c); they are NULL for
 * another process's interpreter, whose addresses are that process's. */
struct tfh_py {
	struct tfh_py_layout at;
	unsigned minor;
	const char *runtime; /* address of _PyRuntime */
	uint64_t code_type;  /* address of PyCode_Type */
	/* PyExc_StopIteration, the address of the type; NULL: unknown. */
	const uint64_t *stop_iteration;
	/* Of another process, whose strings have different hashes: contents are hashed. */
	bool own_seed;
	/* CPython's own functions. They need no lock and touch only their own variables. */
	void *(*state_of_thread)(void); /* the calling thread's state, or NULL */
	/* The holder of the GIL; from 3.12 on the calling thread, if it holds it. */
	void *(*state_attached)(void);
	int (*finalizing)(void); /* the interpreter is shutting down */
	void *(*newest_interpreter)(void), *(*main_interpreter)(void);
};

/* ---- memory ---- */

/* Returns `bytes` bytes of memory from the address `from` on, to be read where they are; NULL if
 * they are not available. `how` belongs to the view. */
typedef const uint8_t *(*tfh_py_view)(void *how, uint64_t from, uint32_t bytes);

/* Reads directly; `how` is not used. It is one function for all files, defined in frames.c, since
 * its address tells them how memory is read. */
inline const uint8_t *tfh_py_straight(void *how, uint64_t from, uint32_t bytes)
{
	(void)how;
	(void)bytes;
	/* A process has nothing in the first page or in the upper half of the address space. */
	return from - 4096 < TFH_ARCH_ADDRESSES - 4096 ? (const uint8_t *)from : NULL;
}

static inline uint64_t tfh_py_word(const uint8_t *at)
{
	uint64_t word;

	__builtin_memcpy(&word, at, sizeof(word));
	return word;
}

static inline int32_t tfh_py_int(const uint8_t *at)
{
	int32_t value;

	__builtin_memcpy(&value, at, sizeof(value));
	return value;
}

/* ---- frames.c ---- */

struct tfh_py_frame {
	uint64_t code;	/* address of the code object */
	int32_t at;	/* offset of the instruction in bytes of bytecode; negative: not begun */
	uint64_t frame; /* its own address */
};

/* Offset of the instruction of a copied frame of this code object. */
static inline __attribute__((always_inline)) int32_t
tfh_py_instruction(const struct tfh_py_layout *at, const uint8_t *frame, uint64_t code)
{
	if (at->instr == TFH_PY_POINTER)
		return (int32_t)(tfh_py_word(frame + at->frame_instr) - (code + at->code_bytecode));
	/* may be any number if the copy is no longer a frame */
	uint32_t n = (uint32_t)tfh_py_int(frame + at->frame_instr);
	return (int32_t)(at->instr == TFH_PY_UNITS ? 2 * n : n);
}

/* Puts the frames of the thread with this state into `frame`, innermost first, at most `most`.
 * Returns their number, or 0 if the memory is not available or shows that the thread ran on
 * meanwhile. With copied memory, the code objects have not been read yet: fetch them
 * (tfh_py_fetch_codes), and leave out frames for which tfh_py_code() returns false. */
uint32_t tfh_py_frames(const struct tfh_py *py, uint64_t state, tfh_py_view view, void *how,
		       struct tfh_py_frame *frame, uint32_t most);

/* ---- code.c ---- */

struct tfh_py_code {
	uint64_t key; /* of file, name and first line: equal for equal texts */
	int32_t first;
	struct tfh_py_text file, name; /* name: qualified from 3.11 on */
	const uint8_t *table;	       /* the line table */
	uint32_t table_bytes;
};

/* Whether this code object, or its copy, is of no program: from 3.13 on, a class that is called may
 * run its __init__ above a frame of the interpreter's own. That has no line, and one str is its
 * file and its name. Python's tracebacks leave it out, too. */
static inline bool tfh_py_own_code(const struct tfh_py_layout *at, const uint8_t *code)
{
	return !tfh_py_int(code + at->code_first) &&
	       tfh_py_word(code + at->code_file) == tfh_py_word(code + at->code_name);
}

/* Reads a code object. The result is valid as long as the view's memory. Returns false if the
 * address has none, or the interpreter's own. */
bool tfh_py_code(const struct tfh_py *py, uint64_t code, tfh_py_view view, void *how,
		 struct tfh_py_code *out);

/* A hash of the frame's instruction and code object (texts, first line, line table) and of
 * `before`, the mark of its callers. Only for memory that is read directly. 0: it has to be read
 * with tfh_py_code(). Takes a fifth of the time of reading. */
uint64_t tfh_py_mark(const struct tfh_py *py, const struct tfh_py_frame *frame, uint64_t before);
/* The same for a copied code object (tfh_py_fetch_heads), whose texts and lines need not be copied
 * for that: a hash of its addresses and, from 3.12 on, of the number that no other code object of
 * its interpreter has. 0: it was not copied. */
struct tfh_py_copies;
uint64_t tfh_py_copied_mark(const struct tfh_py *py, const struct tfh_py_frame *frame,
			    struct tfh_py_copies *c, uint64_t before);
/* Whether that mark may be relied on. Up to 3.11, code that a program generates again and again
 * ("<string>") may be at the same addresses each time. */
bool tfh_py_marked(const struct tfh_py *py, const struct tfh_py_code *code);

/* Reads a str that an object of the interpreter refers to. */
bool tfh_py_text_at(const struct tfh_py *py, uint64_t object, tfh_py_view view, void *how,
		    struct tfh_py_text *out);

/* The line of an instruction; 0: none. */
int32_t tfh_py_line_at(const struct tfh_py *py, const struct tfh_py_code *code, int32_t at);

/* ---- callee.c ---- */

/* The last part of the name by which the frame's instruction, a call, refers to its function: a C
 * function has no frame. Returns false if it is not a call, if the callee has no name, or if this
 * version's bytecode is unknown (only that of 3.11 to 3.13 is known). */
bool tfh_py_callee(const struct tfh_py *py, const struct tfh_py_frame *frame, tfh_py_view view,
		   void *how, struct tfh_py_text *name);

/* ---- copied.c ---- */

/*
 * Copies of memory, made by the kernel, which reports an error where nothing is mapped. They are
 * for memory that may be freed or change while it is read, in this process or another. Their view
 * is tfh_py_copied(). It fetches missing memory a page or two at a time, with a system call each,
 * so fetch known pieces together (tfh_py_fetch). Frames may be far apart (those of generators are,
 * and up to 3.10 all frames), and pages would take 4 KB for each: once TFH_PY_PAGES_BYTES are used,
 * only the requested bytes are fetched. The rest has room for the 256 frames that are kept, 112
 * bytes each, and as many functions with texts and lines, 1 KB each. Copies are as old as their
 * first use, so every sample needs new ones.
 */
#define TFH_PY_PAGE 4096ull
#define TFH_PY_COPY_BYTES (512u << 10)
#define TFH_PY_PAGES_BYTES (128u << 10)
#define TFH_PY_COPIES 2048u

struct tfh_py_copies {
	int32_t pid;
	uint32_t n, used;
	bool full; /* something found no room: the result is incomplete */
	struct tfh_py_copy {
		uint64_t from;
		uint32_t bytes, at : 31; /* at: in `data` */
		bool used : 1;		 /* something was read from it */
	} copy[TFH_PY_COPIES];
	uint8_t data[TFH_PY_COPY_BYTES];
};

void tfh_py_copies_begin(struct tfh_py_copies *c, int32_t pid);
/* Copies the same memory as `from`, with its present contents, with one system call per 64
 * pieces. */
void tfh_py_copies_again(struct tfh_py_copies *to, const struct tfh_py_copies *from);
const uint8_t *tfh_py_copied(void *copies, uint64_t from, uint32_t bytes);
struct tfh_py_piece {
	uint64_t from;
	uint32_t bytes;
};
/* Copies those of these pieces that it lacks, with one system call per 64. Pieces that are not
 * mapped are left out. */
void tfh_py_fetch(struct tfh_py_copies *c, const struct tfh_py_piece *piece, uint32_t n);
/* Copies words of memory, 64 with one system call; 0 where nothing is mapped. */
void tfh_py_words(int32_t pid, const uint64_t *from, uint64_t *to, uint32_t n);
/* Fetches the code objects of these frames, without texts and lines, in one round. */
void tfh_py_fetch_heads(const struct tfh_py *py, struct tfh_py_copies *c,
			const struct tfh_py_frame *frame, uint32_t n);
/* The same with texts and lines, in two rounds. */
void tfh_py_fetch_codes(const struct tfh_py *py, struct tfh_py_copies *c,
			const struct tfh_py_frame *frame, uint32_t n);

#endif
