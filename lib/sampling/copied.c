/* Copies of an interpreter's memory, which may change or go away meanwhile: the kernel makes
 * them. */
#include <string.h>
#include <sys/uio.h>

#include "base/refused.h"
#include "sampling/frames.h"

#define BATCH 64u
/* Per piece; longer ones are not fetched. */
#define PIECE_MOST (32u << 10)

void tfh_py_copies_begin(struct tfh_py_copies *c, int32_t pid)
{
	c->pid = pid;
	c->n = c->used = 0;
	c->full = false;
}

static struct tfh_py_copy *copy_of(struct tfh_py_copies *c, uint64_t from, uint32_t bytes)
{
	for (uint32_t i = c->n; i-- > 0;) {
		uint64_t into = from - c->copy[i].from;

		if (into <= c->copy[i].bytes && bytes <= c->copy[i].bytes - into)
			return &c->copy[i];
	}
	return NULL;
}

static const uint8_t *find(struct tfh_py_copies *c, uint64_t from, uint32_t bytes)
{
	struct tfh_py_copy *copy = copy_of(c, from, bytes);

	if (!copy)
		return NULL;
	copy->used = true;
	return c->data + copy->at + (from - copy->from);
}

/* Reserves room for a copy. Returns false if there is none. */
static bool take(struct tfh_py_copies *c, uint64_t from, uint32_t bytes)
{
	if (c->n == TFH_PY_COPIES || bytes > TFH_PY_COPY_BYTES - c->used)
		c->full = true;
	if (c->full || bytes > PIECE_MOST)
		return false;
	c->copy[c->n++] = (struct tfh_py_copy){from, bytes, c->used, false};
	c->used += bytes;
	return true;
}

/* Reads the copies from `first` on, BATCH with one system call. The kernel stops at the first piece
 * that it cannot read. That one is left out, and those after it are requested again. */
static void read_copies(struct tfh_py_copies *c, uint32_t first)
{
	while (first < c->n) {
		struct iovec to[BATCH], at[BATCH];
		uint32_t n = c->n - first < BATCH ? c->n - first : BATCH;
		ssize_t got;

		for (uint32_t i = 0; i < n; i++) {
			const struct tfh_py_copy *copy = &c->copy[first + i];

			to[i] = (struct iovec){c->data + copy->at, copy->bytes};
			at[i] = (struct iovec){(void *)(uintptr_t)copy->from, copy->bytes};
		}
		got = tfh_copy_memory(c->pid, to, n, at, n);
		for (; n && got >= (ssize_t)c->copy[first].bytes; n--)
			got -= (ssize_t)c->copy[first++].bytes;
		if (n)
			c->copy[first++].bytes = 0;
	}
}

void tfh_py_words(int32_t pid, const uint64_t *from, uint64_t *to, uint32_t n)
{
	memset(to, 0, n * sizeof(*to));
	for (uint32_t first = 0; first < n;) {
		uint32_t some = n - first < BATCH ? n - first : BATCH;
		struct iovec at[BATCH], out = {to + first, some * sizeof(*to)};
		ssize_t got;

		for (uint32_t i = 0; i < some; i++)
			at[i] = (struct iovec){(void *)(uintptr_t)from[first + i], sizeof(*to)};
		got = tfh_copy_memory(pid, &out, 1, at, some);
		/* The kernel stops at one that it cannot read. */
		if (got != (ssize_t)out.iov_len)
			some = got > 0 ? (uint32_t)got / sizeof(*to) + 1 : 1;
		first += some;
	}
}

void tfh_py_fetch(struct tfh_py_copies *c, const struct tfh_py_piece *piece, uint32_t n)
{
	uint32_t first = c->n;

	for (uint32_t i = 0; i < n; i++)
		if (piece[i].from && !copy_of(c, piece[i].from, piece[i].bytes))
			take(c, piece[i].from, piece[i].bytes);
	read_copies(c, first);
}

void tfh_py_copies_again(struct tfh_py_copies *to, const struct tfh_py_copies *from)
{
	to->pid = from->pid;
	to->n = from->n;
	to->used = from->used;
	to->full = false;
	memcpy(to->copy, from->copy, from->n * sizeof(from->copy[0]));
	read_copies(to, 0);
}

/* Fetches whole pages: a thread's frames are close together. */
const uint8_t *tfh_py_copied(void *copies, uint64_t from, uint32_t bytes)
{
	struct tfh_py_copies *c = copies;
	uint64_t begin = from & ~(TFH_PY_PAGE - 1),
		 end = (from + bytes + TFH_PY_PAGE - 1) & ~(TFH_PY_PAGE - 1);
	const uint8_t *found = find(c, from, bytes);
	struct tfh_py_piece piece = {begin, (uint32_t)(end - begin)};

	if (found || bytes > PIECE_MOST || from + bytes < from)
		return found;
	if (c->used >= TFH_PY_PAGES_BYTES)
		piece = (struct tfh_py_piece){from, bytes};
	tfh_py_fetch(c, &piece, 1);
	return find(c, from, bytes);
}

/* Most texts and tables are no longer than this; for longer ones the view fetches the pages. */
#define TEXT_GUESS 160u
#define TABLE_GUESS 512u
#define CODES_MOST 128u

/* Distinct code objects of these frames. */
static uint32_t distinct(const struct tfh_py_frame *frame, uint32_t n, uint32_t bytes,
			 struct tfh_py_piece *code)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n && found < CODES_MOST; i++) {
		uint32_t k = 0;

		while (k < found && code[k].from != frame[i].code)
			k++;
		if (k == found)
			code[found++] = (struct tfh_py_piece){frame[i].code, bytes};
	}
	return found;
}

void tfh_py_fetch_heads(const struct tfh_py *py, struct tfh_py_copies *c,
			const struct tfh_py_frame *frame, uint32_t n)
{
	struct tfh_py_piece code[CODES_MOST];

	tfh_py_fetch(c, code, distinct(frame, n, py->at.code_bytecode, code));
}

void tfh_py_fetch_codes(const struct tfh_py *py, struct tfh_py_copies *c,
			const struct tfh_py_frame *frame, uint32_t n)
{
	const struct tfh_py_layout *at = &py->at;
	struct tfh_py_piece code[CODES_MOST], of_code[3];
	uint32_t first;

	n = distinct(frame, n, at->code_bytecode, code);
	tfh_py_fetch(c, code, n);
	first = c->n;
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *p = find(c, code[i].from, code[i].bytes);

		if (!p)
			continue;
		of_code[0] = (struct tfh_py_piece){tfh_py_word(p + at->code_file), TEXT_GUESS};
		of_code[1] = (struct tfh_py_piece){tfh_py_word(p + at->code_name), TEXT_GUESS};
		of_code[2] = (struct tfh_py_piece){tfh_py_word(p + at->code_lines), TABLE_GUESS};
		for (int k = 0; k < 3; k++)
			if (!copy_of(c, of_code[k].from, of_code[k].bytes))
				take(c, of_code[k].from, of_code[k].bytes);
	}
	read_copies(c, first);
}
