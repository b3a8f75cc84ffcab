/* What must hold: a stack that is read straight is recognised as such in every file (its view has one address): frames of which
 * the code object is none are left out at once, which copies cannot tell yet; and a mark tells frames apart by texts, first line,
 * table of lines and what was before, also where the interpreter has kept no hash of a text. A text that becomes another one, or
 * none, between two readings of it does no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sampling/frames.h"

#define WORDS 64

/* As 3.10 has them. */
struct fake {
	uint64_t state[WORDS], frame[2][WORDS], code[WORDS], type[1];
	uint8_t file[256], name[256], table[256];
};

static void make_text(uint8_t *object, const char *text)
{
	uint64_t length = strlen(text), unknown = UINT64_MAX;
	uint32_t state = 1 << 2 | 1 << 5 | 1 << 6; /* one byte each, compact, ASCII */

	memset(object, 0, 256);
	memcpy(object + TFH_PY_TEXT_LENGTH, &length, sizeof(length));
	memcpy(object + TFH_PY_TEXT_HASH, &unknown, sizeof(unknown));
	memcpy(object + TFH_PY_TEXT_STATE, &state, sizeof(state));
	memcpy(object + 48, text, length);
}

static void make(struct fake *f, struct tfh_py *py)
{
	uint64_t bytes = 20;

	memset(f, 0, sizeof(*f));
	memset(py, 0, sizeof(*py));
	assert_null(tfh_py_unreadable(10, 0, NULL, &py->at));
	py->minor = 10;
	py->code_type = (uint64_t)(uintptr_t)f->type;
	f->state[py->at.state_frame / 8] = (uint64_t)(uintptr_t)f->frame[0];
	for (int i = 0; i < 2; i++)
		f->frame[i][py->at.frame_code / 8] = (uint64_t)(uintptr_t)f->code;
	f->frame[0][py->at.frame_back / 8] = (uint64_t)(uintptr_t)f->frame[1];
	f->code[TFH_PY_OBJECT_TYPE / 8] = py->code_type;
	f->code[py->at.code_file / 8] = (uint64_t)(uintptr_t)f->file;
	f->code[py->at.code_name / 8] = (uint64_t)(uintptr_t)f->name;
	f->code[py->at.code_lines / 8] = (uint64_t)(uintptr_t)f->table;
	make_text(f->file, "/home/somebody/train.py");
	make_text(f->name, "step");
	memcpy(f->table + TFH_PY_BYTES_SIZE, &bytes, sizeof(bytes));
}

static uint32_t walk(struct fake *f, const struct tfh_py *py, struct tfh_py_frame out[4])
{
	return tfh_py_frames(py, (uint64_t)(uintptr_t)f->state, tfh_py_straight, NULL, out, 4);
}

static void test_one_view(void **state)
{
	struct tfh_py_frame frame[4];
	struct tfh_py py;
	struct fake f;

	(void)state;
	make(&f, &py);
	assert_int_equal(walk(&f, &py, frame), 2);
	f.code[TFH_PY_OBJECT_TYPE / 8] = 0;
	assert_int_equal(walk(&f, &py, frame), 0);
}

static void test_marks(void **state)
{
	struct tfh_py_frame frame[4];
	struct tfh_py py;
	struct fake f;
	uint64_t mark, hash = 5;

	(void)state;
	make(&f, &py);
	assert_int_equal(walk(&f, &py, frame), 2);
	mark = tfh_py_mark(&py, frame, 1);
	assert_int_not_equal(mark, 0);
	assert_true(mark == tfh_py_mark(&py, frame, 1));
	assert_true(mark != tfh_py_mark(&py, frame, 2));
	for (int i = 0; i < 20; i++) { /* every byte of the table counts */
		f.table[TFH_PY_BYTES_DATA + i] ^= 1;
		assert_true(mark != tfh_py_mark(&py, frame, 1));
		f.table[TFH_PY_BYTES_DATA + i] ^= 1;
	}
	for (int i = 0; i < 23; i++) { /* and of the file's name */
		f.file[48 + i] ^= 1;
		assert_true(mark != tfh_py_mark(&py, frame, 1));
		f.file[48 + i] ^= 1;
	}
	frame[0].at ^= 2;
	assert_true(mark != tfh_py_mark(&py, frame, 1));
	frame[0].at ^= 2;
	assert_true(mark == tfh_py_mark(&py, frame, 1));
	memcpy(f.name + TFH_PY_TEXT_HASH, &hash, sizeof(hash));
	assert_true(mark != tfh_py_mark(&py, frame, 1));
}

/* A process that goes on meanwhile: from the second reading on its text begins with this state, and has this length. */
struct busy {
	uint8_t *text, copy[512];
	uint32_t state;
	uint64_t length;
	int seen;
};

static const uint8_t *busy_view(void *how, uint64_t from, uint32_t bytes)
{
	struct busy *b = how;

	if (from != (uint64_t)(uintptr_t)b->text || !b->seen++)
		return (const uint8_t *)(uintptr_t)from;
	assert_true(bytes <= sizeof(b->copy));
	memset(b->copy, 0xa5, sizeof(b->copy));
	memcpy(b->copy, b->text, bytes);
	memcpy(b->copy + TFH_PY_TEXT_STATE, &b->state, sizeof(b->state));
	memcpy(b->copy + TFH_PY_TEXT_LENGTH, &b->length, sizeof(b->length));
	return b->copy;
}

static void test_changing_text(void **state)
{
	const struct {
		uint32_t state;
		uint64_t length;
		bool good;
	} row[] = {{1 << 2 | 1 << 5 | 1 << 6, 23, true},
		   {0, 0, false},
		   {0, 23, false},
		   {1 << 2 | 1 << 5 | 1 << 6, 24, false},
		   {4 << 2 | 1 << 5 | 1 << 6, 23, false},
		   {7 << 2 | 1 << 5, 1, false},
		   {1 << 2 | 1 << 5 | 1 << 6, 1ull << 40, false}};
	struct tfh_py_code code;
	struct tfh_py py;
	struct fake f;

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct busy b = {.text = f.file, .state = row[i].state, .length = row[i].length};
		make(&f, &py);
		assert_int_equal(
			tfh_py_code(&py, (uint64_t)(uintptr_t)f.code, busy_view, &b, &code),
			row[i].good);
		assert_int_equal(b.seen, 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_view),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_changing_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
