/*
 * The Python frames of a thread, read out of CPython's own memory: function, file, line. Nothing is imported or executed,
 * no lock is taken, nothing is allocated, and the interpreter is not asked to stop.
 *
 *	offsets.c	where each version keeps things: the one table of offsets
 *	frames.c	a thread's frames, innermost first
 *	code.c		a code object: who it is, its texts; lines.c: its lines; py_text.c: strings
 *	callee.c	the name of the function that a frame calls, which may have no frame
 *	copied.c	memory read by the kernel: what another thread changes meanwhile, or another process
 *	walks.c		the frames of a thread that goes on meanwhile
 *	outside.c	the interpreter of another process, found in its files
 *
 * Whoever reads takes memory through a "view" (tfh_py_view): of the calling thread's own stack straight, since its own
 * frames keep all of it alive; of anything else a copy.
 */
#ifndef TFH_LOOK_FRAMES_H
#define TFH_LOOK_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "look/offsets.h"
#include "look/py_text.h"

/* From this minor version on "attached" is asked of the calling thread; before, several interpreters cannot be told
 * apart by a thread. */
#define TFH_PY_PER_THREAD 12

/* An interpreter. The functions are those of this process (hook/python/version.c); NULL of another one's. */
struct tfh_py {
	struct tfh_py_layout at;
	unsigned minor;
	const char *runtime; /* _PyRuntime */
	uint64_t code_type;  /* address of PyCode_Type */
	bool own_seed; /* another process', whose strings have other hashes: contents are hashed */
	/* CPython's own; they need no lock and touch nothing but their own variables. */
	void *(*state_of_thread)(void); /* the calling thread's, or NULL */
	void *(*state_attached)(
		void);		 /* who has the GIL; from 3.12 on the calling thread if it has */
	int (*finalizing)(void); /* the interpreter is being taken down */
	void *(*newest_interpreter)(void), *(*main_interpreter)(void);
};

/* ---- memory ---- */

/* `bytes` bytes of memory from the address `from` on, to be read here; NULL: not to be had. `how` is the view's own. */
typedef const uint8_t *(*tfh_py_view)(void *how, uint64_t from, uint32_t bytes);

/* Straight; `how` is not used. One function in all files, which tell by its address how they read: frames.c has it. */
inline const uint8_t *tfh_py_straight(void *how, uint64_t from, uint32_t bytes)
{
	(void)how;
	(void)bytes;
	/* Nothing of a process lies in the first page, or above the middle of the address space. */
	return from - 4096 < (1ull << 47) - 4096 ? (const uint8_t *)from : NULL;
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
	uint64_t code; /* address of the code object */
	int32_t at;    /* of the instruction: bytes into the bytecode, negative: not begun */
};

/* The frames of the thread with this state, the innermost first, `most` at most; returns how many, 0 where the memory
 * cannot be had, or shows that the thread went on meanwhile. Of copied memory the code objects have not been seen yet:
 * fetch them (tfh_py_fetch_codes); a frame of which tfh_py_code() says that it has none is to be left out. */
uint32_t tfh_py_frames(const struct tfh_py *py, uint64_t state, tfh_py_view view, void *how,
		       struct tfh_py_frame *frame, uint32_t most);

/* ---- code.c ---- */

struct tfh_py_code {
	uint64_t key; /* of file, name and first line: the same for the same texts */
	int32_t first;
	struct tfh_py_text file, name; /* name: qualified from 3.11 on */
	const uint8_t *table;	       /* of lines */
	uint32_t table_bytes;
};

/* What a code object says; it stays readable as long as the view's memory. False: it is none. */
bool tfh_py_code(const struct tfh_py *py, uint64_t code, tfh_py_view view, void *how,
		 struct tfh_py_code *out);

/* Tells apart what a frame's code object says of its instruction (texts, first line, table of lines), and what was `before` it; of
 * straight memory only, where the frame is. 0: it has to be read (tfh_py_code). A fifth of what reading takes. */
uint64_t tfh_py_mark(const struct tfh_py *py, const struct tfh_py_frame *frame, uint64_t before);

/* A str that an object of the interpreter refers to. */
bool tfh_py_text_at(const struct tfh_py *py, uint64_t object, tfh_py_view view, void *how,
		    struct tfh_py_text *out);

/* The line of an instruction, 0: none. */
int32_t tfh_py_line_at(const struct tfh_py *py, const struct tfh_py_code *code, int32_t at);

/* ---- callee.c ---- */

/* The last part of the name by which the frame's instruction, a call, has its function: a function in C has no frame. False: it is
 * no call, what it calls has no name, or this version's bytecode is not known (only that of 3.11 to 3.13 is). */
bool tfh_py_callee(const struct tfh_py *py, const struct tfh_py_frame *frame, tfh_py_view view,
		   void *how, struct tfh_py_text *name);

/* ---- copied.c ---- */

/*
 * Copies of memory, made by the kernel, which fails where there is none: for what may be freed or change while it is
 * read, in this process or another. A view for them is tfh_py_copied(); what it has not got it fetches, a page or two
 * at a time (a system call each), so fetch many at once where they are known (tfh_py_fetch). Of frames that lie far
 * apart (those of generators do, and up to 3.10 all) pages would take 4 KB each: once TFH_PY_PAGES_BYTES are used, only
 * what is asked for is fetched. The rest has room for the 256 frames that are kept, 112 bytes each, and as many
 * functions with texts and lines, 1 KB each. The copies are as old as their first use: begin anew for another look.
 */
#define TFH_PY_PAGE 4096ull
#define TFH_PY_COPY_BYTES (512u << 10)
#define TFH_PY_PAGES_BYTES (128u << 10)
#define TFH_PY_COPIES 2048u

struct tfh_py_copies {
	int32_t pid;
	uint32_t n, used;
	bool full; /* something found no room: what was read is not the whole */
	struct tfh_py_copy {
		uint64_t from;
		uint32_t bytes, at; /* at: in `data` */
	} copy[TFH_PY_COPIES];
	uint8_t data[TFH_PY_COPY_BYTES];
};

void tfh_py_copies_begin(struct tfh_py_copies *c, int32_t pid);
/* The same memory as in `from`, as it is now, with one system call for 64 pieces. */
void tfh_py_copies_again(struct tfh_py_copies *to, const struct tfh_py_copies *from);
const uint8_t *tfh_py_copied(void *copies, uint64_t from, uint32_t bytes);
struct tfh_py_piece {
	uint64_t from;
	uint32_t bytes;
};
/* Copies what it lacks of these with one system call per 64; pieces that are not there are left out. */
void tfh_py_fetch(struct tfh_py_copies *c, const struct tfh_py_piece *piece, uint32_t n);
/* The code objects of these frames, with texts and lines, in two rounds. */
void tfh_py_fetch_codes(const struct tfh_py *py, struct tfh_py_copies *c,
			const struct tfh_py_frame *frame, uint32_t n);

#endif
