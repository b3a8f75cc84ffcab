/* A code object of CPython: its identity, its texts, and the line of an instruction. */
#include "base/hash.h"
#include "base/map.h"
#include "sampling/lines.h"
#include "sampling/frames.h"

/* Longer tables are cut. This is enough for 100,000 lines. */
#define TABLE_MOST (1u << 20)
/* Reading a table of up to this size is faster than looking its result up. */
#define TABLE_SMALL 192u
#define LINES 4096u

static inline __attribute__((always_inline)) bool
text(const struct tfh_py *py, uint64_t object, tfh_py_view view, void *how, struct tfh_py_text *out)
{
	const struct tfh_py_layout *at = &py->at;
	const uint8_t *p = view(how, object, at->text_ascii);
	uint32_t header, bytes;

	if (!p || !tfh_py_text_extent(at, p, &header, &bytes) ||
	    !(p = view(how, object, header + bytes)) || !tfh_py_text(at, p, header + bytes, out))
		return false;
	if (py->own_seed)
		out->hash = tfh_hash_bytes(out->data, out->length * out->width);
	return true;
}

static inline __attribute__((always_inline)) bool read_code(const struct tfh_py *py, uint64_t code,
							    tfh_py_view view, void *how,
							    struct tfh_py_code *out)
{
	const struct tfh_py_layout *at = &py->at;
	const uint8_t *c = view(how, code, at->code_bytecode), *table;
	uint64_t object, bytes;

	if (!c || tfh_py_word(c + TFH_PY_OBJECT_TYPE) != py->code_type || tfh_py_own_code(at, c) ||
	    !text(py, tfh_py_word(c + at->code_file), view, how, &out->file) ||
	    !text(py, tfh_py_word(c + at->code_name), view, how, &out->name))
		return false;
	out->first = tfh_py_int(c + at->code_first);
	object = tfh_py_word(c + at->code_lines);
	table = view(how, object, TFH_PY_BYTES_DATA);
	bytes = table ? tfh_py_word(table + TFH_PY_BYTES_SIZE) : 0;
	out->table_bytes = bytes < TABLE_MOST ? (uint32_t)bytes : TABLE_MOST;
	table = view(how, object, TFH_PY_BYTES_DATA + out->table_bytes);
	out->table = table ? table + TFH_PY_BYTES_DATA : NULL;
	if (!table)
		out->table_bytes = 0;
	out->key = tfh_hash_add(tfh_hash_add(out->file.hash, out->name.hash),
				(uint64_t)(uint32_t)out->first);
	return true;
}

bool tfh_py_text_at(const struct tfh_py *py, uint64_t object, tfh_py_view view, void *how,
		    struct tfh_py_text *out)
{
	return text(py, object, view, how, out);
}

#define NUMBERED 12 /* from this minor version on, code objects have numbers */

bool tfh_py_marked(const struct tfh_py *py, const struct tfh_py_code *code)
{
	return py->minor >= NUMBERED || (code->file.length && code->file.data[0] != '<');
}

bool tfh_py_code(const struct tfh_py *py, uint64_t code, tfh_py_view view, void *how,
		 struct tfh_py_code *out)
{
	return view == tfh_py_straight ? read_code(py, code, tfh_py_straight, NULL, out)
				       : read_code(py, code, view, how, out);
}

#define LANES 4
#define ODD 0x9e3779b97f4a7c15ull

/*
 * Hashes memory that is mapped, of any length: 10 bytes per ns, or 3 ns for short texts. Four
 * products are computed side by side, and the last bytes are read together with some before them.
 * tfh_hash_bytes() waits for two products per 8 bytes.
 */
static uint64_t quick_hash(const uint8_t *p, uint32_t bytes)
{
	uint64_t lane[LANES] = {bytes, 1, 2, 3}, word = 0;
	uint32_t at = 0;

	for (; bytes - at >= 8 * LANES; at += 8 * LANES)
		for (int i = 0; i < LANES; i++)
			lane[i] = (lane[i] ^ tfh_py_word(p + at + 8 * i)) * ODD;
	for (int i = 0; bytes - at >= 8; at += 8, i++)
		lane[i] = (lane[i] ^ tfh_py_word(p + at)) * ODD;
	if (at < bytes && bytes >= 8)
		word = tfh_py_word(p + bytes - 8);
	else
		for (; at < bytes; at++)
			word = word << 8 | p[at];
	lane[0] = (lane[0] ^ lane[1] >> 31 ^ word) * ODD;
	lane[2] = (lane[2] ^ lane[3] >> 31 ^ lane[1]) * ODD;
	return (lane[0] ^ lane[2] >> 29 ^ lane[3]) * ODD;
}

/* The hash of a str: the one that the interpreter has stored, if any; file names have none. Returns
 * false if the str is of an unusual kind. */
static inline bool quick_text(const struct tfh_py_layout *at, const uint8_t *object, uint64_t *hash)
{
	uint32_t header, bytes;

	*hash = tfh_py_word(object + TFH_PY_TEXT_HASH);
	if (*hash != UINT64_MAX)
		return true;
	if (!tfh_py_text_extent(at, object, &header, &bytes))
		return false;
	*hash = quick_hash(object + header, bytes);
	return true;
}

uint64_t tfh_py_mark(const struct tfh_py *py, const struct tfh_py_frame *frame, uint64_t before)
{
	const struct tfh_py_layout *at = &py->at;
	const uint8_t *c = (const uint8_t *)frame->code;
	const uint8_t *table = (const uint8_t *)tfh_py_word(c + at->code_lines);
	uint64_t bytes = tfh_py_word(table + TFH_PY_BYTES_SIZE), file, name, mark;

	if (bytes > TABLE_MOST ||
	    !quick_text(at, (const uint8_t *)tfh_py_word(c + at->code_file), &file) ||
	    !quick_text(at, (const uint8_t *)tfh_py_word(c + at->code_name), &name))
		return 0;
	mark = (uint64_t)(uint32_t)tfh_py_int(c + at->code_first) << 32 | (uint32_t)frame->at;
	mark = (mark ^ quick_hash(table + TFH_PY_BYTES_DATA, (uint32_t)bytes)) * ODD;
	mark = (mark ^ mark >> 32 ^ file) * ODD;
	mark = (mark ^ mark >> 32 ^ name) * ODD;
	return tfh_hash_add(mark, before);
}

#define HEAD_FROM 16u /* before it, the number of references and the type */

uint64_t tfh_py_copied_mark(const struct tfh_py *py, const struct tfh_py_frame *frame,
			    struct tfh_py_copies *c, uint64_t before)
{
	const uint8_t *p = tfh_py_copied(c, frame->code, py->at.code_bytecode);
	uint64_t mark;

	if (!p || tfh_py_word(p + TFH_PY_OBJECT_TYPE) != py->code_type)
		return 0;
	/* Another process may have another code object at the same address. */
	mark = (uint64_t)(uint32_t)c->pid << 32 | (uint32_t)frame->at;
	mark = (mark ^ quick_hash(p + HEAD_FROM, py->at.code_bytecode - HEAD_FROM)) * ODD;
	return tfh_hash_add(tfh_hash_add(mark, frame->code), before);
}

/*
 * Lines of large functions, for all threads: one word each, so no lock is needed. The slot and the
 * upper 40 bits come from a hash of the whole table and the instruction (code generated at run time
 * often differs in nothing else); the lower 24 bits are the line.
 */
static uint64_t *lines; /* mapped by the first thread that has such a function */
#define LINE_BITS 24
#define LINE_MASK ((1ull << LINE_BITS) - 1)

int32_t tfh_py_line_at(const struct tfh_py *py, const struct tfh_py_code *code, int32_t at)
{
	enum tfh_py_lines kind = (enum tfh_py_lines)py->at.lines;
	uint64_t key, known,
		*slot = code->table_bytes > TABLE_SMALL
				? tfh_map_once(&lines, LINES * sizeof(*lines))
				: NULL;
	int32_t line;

	if (!slot)
		return tfh_py_line(kind, code->table, code->table_bytes, code->first, at);
	key = tfh_hash_add(tfh_hash_add(quick_hash(code->table, code->table_bytes), (uint32_t)at),
			   (uint32_t)code->first);
	slot += key % LINES;
	key &= ~LINE_MASK;
	known = __atomic_load_n(slot, __ATOMIC_RELAXED);
	if ((known & ~LINE_MASK) == key)
		return (int32_t)(known & LINE_MASK);
	line = tfh_py_line(kind, code->table, code->table_bytes, code->first, at);
	if (line >= 0 && (uint64_t)line < LINE_MASK)
		__atomic_store_n(slot, key | (uint64_t)line, __ATOMIC_RELAXED);
	return line;
}
