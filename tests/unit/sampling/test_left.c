/* What must hold: of a thread that goes on while it is looked at, a walk over copies finds the frames that stayed, though the
 * innermost one was left and its memory is used for something else, before and behind it; nothing is found where a generator
 * has stopped, which knows its caller no more, or where nothing is a frame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sampling/frames.h"

#define WORDS 2048
#define CODE_BYTES 512u
#define MOST 16

/* A thread of 3.11: its frames lie one above the other in a stack of its own. */
static struct fake {
	uint64_t state[64], cframe[2];
	_Alignas(4096) uint64_t stack[WORDS];
	uint8_t code[8][CODE_BYTES];
} fake;
static struct tfh_py py;

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* Only the fake's memory is there. */
static const uint8_t *view(void *how, uint64_t from, uint32_t bytes)
{
	uint64_t begin = address(&fake);

	(void)how;
	return from >= begin && from + bytes <= begin + sizeof(fake)
		       ? (const uint8_t *)(uintptr_t)from
		       : NULL;
}

static void put_word(uint64_t at, uint32_t offset, uint64_t value)
{
	memcpy((uint8_t *)(uintptr_t)at + offset, &value, sizeof(value));
}

/* The frame number i, 40 words above the one before, called by `back`. */
static uint64_t put_frame(int i, uint64_t back, uint8_t owner)
{
	uint64_t at = address(&fake.stack[512 + 40 * i]), code = address(fake.code[i]);

	memset((void *)(uintptr_t)at, 0, py.at.frame_bytes);
	put_word(at, py.at.frame_back, back);
	put_word(at, py.at.frame_code, code);
	put_word(at, py.at.frame_instr, code + py.at.code_bytecode + 6);
	((uint8_t *)(uintptr_t)at)[py.at.frame_owner] = owner;
	return at;
}

/* Frames 0 to 4, each called by the one before. */
static uint64_t make(void)
{
	uint64_t frame = 0;

	memset(&fake, 0, sizeof(fake));
	memset(&py, 0, sizeof(py));
	assert_null(tfh_py_unreadable(11, 0, NULL, &py.at));
	py.minor = 11;
	for (int i = 0; i < 5; i++)
		frame = put_frame(i, frame, 0);
	put_word(address(fake.state), py.at.state_frame, address(fake.cframe));
	put_word(address(fake.cframe), (uint32_t)py.at.cframe_frame, frame);
	return frame;
}

/* Expects the frames from this one on outwards. */
static void expect(int innermost)
{
	struct tfh_py_frame found[MOST];
	uint32_t n = tfh_py_frames(&py, address(fake.state), view, NULL, found, MOST);

	assert_int_equal(n, innermost + 1);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(found[i].code, address(fake.code[innermost - (int)i]));
		assert_int_equal(found[i].at, 6);
	}
}

static void nothing_changed(void **state)
{
	(void)state;
	make();
	expect(4);
}

static void innermost_left(void **state)
{
	uint64_t frame = make();

	(void)state;
	/* its memory is another function's variables: objects, numbers */
	for (uint32_t i = 0; i < 10; i++)
		put_word(frame, 8 * i, i % 2 ? address(fake.code[i % 8]) : i);
	expect(3);
	memset((void *)(uintptr_t)frame, 0xff, py.at.frame_bytes);
	expect(3);
}

static void caller_left(void **state)
{
	uint64_t frame = make();

	(void)state;
	/* The innermost one is an earlier call's, whose caller is no frame any more, or lies nowhere. */
	put_word(frame, py.at.frame_back, address(&fake.stack[512 + 40 * 3 + 5]));
	expect(3);
	put_word(frame, py.at.frame_back, 0x100008);
	expect(3);
}

static void generator_stopped(void **state)
{
	(void)state;
	make();
	put_frame(4, 0, 1);
	expect(-1);
	/* 3.8 to 3.10 have frames in no order; a generator's tells its generator, a free one is in no use. */
	assert_null(tfh_py_unreadable(10, 0, NULL, &py.at));
	py.minor = 10;
	for (uint64_t used = 0; used < 2; used++)
		for (uint64_t generator = 0; generator < 2; generator++) {
			struct tfh_py_frame found[MOST];
			uint64_t at = address(&fake.stack[512]);

			memset(&fake, 0, sizeof(fake));
			put_word(address(fake.state), py.at.state_frame, at);
			put_word(at, 0, used);
			put_word(at, py.at.frame_code, address(fake.code[0]));
			put_word(at, py.at.frame_instr - 8u, generator * at);
			assert_int_equal(
				tfh_py_frames(&py, address(fake.state), view, NULL, found, MOST),
				used && !generator);
		}
}

static void no_frames(void **state)
{
	(void)state;
	make();
	memset(fake.stack, 0x5a, sizeof(fake.stack));
	expect(-1);
	/* a ring */
	make();
	put_frame(0, address(&fake.stack[512 + 40 * 4]), 3);
	for (int i = 1; i < 5; i++)
		put_frame(i, address(&fake.stack[512 + 40 * (i - 1)]), 3);
	expect(-1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_changed), cmocka_unit_test(innermost_left),
		cmocka_unit_test(caller_left),	   cmocka_unit_test(generator_stopped),
		cmocka_unit_test(no_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
