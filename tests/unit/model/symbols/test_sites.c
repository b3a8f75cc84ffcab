/* A backtrace names the module that was at its addresses when it was written, whatever was loaded
 * there later. The line for people leaves out how a call got to the driver. If Python frames are
 * known, the line names the innermost one of the program and the library function that it called. A
 * file that contradicts itself causes no endless loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/table.h"
#include "format/tft_write.h"
#include "model/symbols/backtraces.h"
#include "model/symbols/pylines.h"

static const char heap[] =
	"\0/x/liba.so\0/x/libb.so\0/x/libtfhook.so\0/x/libpython3.so\0/x/lib\033c.so\0/x/libc.so.6";
enum { A = 1, B = 12, HOOK = 23, PYTHON = 40, C = 58, LIBC = 70 };

static void put(struct tft_writer *w, uint32_t type, const struct tft_table *t, const void *rows,
		uint32_t n, uint64_t time)
{
	static uint8_t out[1 << 16];
	const struct tft_table_extra extra = {.heap = heap, .heap_bytes = sizeof(heap)};
	size_t len = tft_table_pack(t, rows, n, &extra, out);

	assert_int_equal(tft_write_chunk_at(w, type, out, (uint32_t)len, time, time), 0);
}

static const char py_heap[] =
	"\0/home/u/train.py\0/opt/lib/python3.11/site-packages/torch/_tensor.py\0/usr/lib/python3.11/queue.py\0"
	"/home/u/data/__init__.py\0<frozen runpy>\0step\0Tensor.item\0get\0make\0<module>\0run";

static uint32_t text(const char *of)
{
	const void *at = memmem(py_heap, sizeof(py_heap), of, strlen(of) + 1);

	assert_non_null(at);
	return (uint32_t)((const char *)at - py_heap);
}

static void put_python(struct tft_writer *w)
{
	enum { STEP = 1, ITEM, GET, MAKE, RUN };
	const struct tft_pyco_row code[] = {
		{STEP, text("/home/u/train.py"), text("step"), 40},
		{ITEM, text("/opt/lib/python3.11/site-packages/torch/_tensor.py"),
		 text("Tensor.item"), 80},
		{GET, text("/usr/lib/python3.11/queue.py"), text("get"), 150},
		{MAKE, text("/home/u/data/__init__.py"), text("make"), 1},
		{RUN, text("<frozen runpy>"), text("run"), 60}};
	/* 5 and 6 call each other; 7's caller was lost, 8's code not kept. */
	const struct tft_pyfr_row place[] = {{1, 0, RUN, 61},	{2, 1, STEP, 42}, {3, 2, ITEM, 89},
					     {4, 2, MAKE, 7},	{5, 6, STEP, 1},  {6, 5, STEP, 2},
					     {7, 70, GET, 171}, {8, 2, 0, 0}};
	const struct tft_btrc_row stack[] = {{0, 11, 0, 3}, {0x1010, 12, 0, 2}, {0x7010, 12, 1, 0},
					     {0, 13, 0, 4}, {0, 14, 0, 5},	{0, 15, 0, 7},
					     {0, 16, 0, 8}, {0, 17, 0, 99}};
	const struct tft_table_extra extra = {.heap = py_heap, .heap_bytes = sizeof(py_heap)},
				     none = {0};
	static uint8_t out[1 << 16];

	assert_int_equal(tft_write_chunk(w, TFT_PYCO, out,
					 (uint32_t)tft_table_pack(&tft_pyco, code, 5, &extra, out)),
			 0);
	assert_int_equal(tft_write_chunk(w, TFT_PYFR, out,
					 (uint32_t)tft_table_pack(&tft_pyfr, place, 8, &none, out)),
			 0);
	put(w, TFT_BTRC, &tft_btrc, stack, 8, 60);
}

static void make(const char *path)
{
	static const struct tft_mods_row module[] = {
		{.start = 0x1000, .end = 0x2000, .offset = 0x100, .unloaded = 50, .path = A},
		{.start = 0x1000, .end = 0x2000, .offset = 0x100, .loaded = 45, .path = B},
		{.start = 0x5000, .end = 0x6000, .path = HOOK},
		{.start = 0x7000, .end = 0x8000, .path = PYTHON},
		{.start = 0x9000, .end = 0xa000, .path = C},
		{.start = 0xb000, .end = 0xc000, .path = LIBC}};
	static const struct tft_btrc_row early[] = {
		{0x5010, 1, 0, 0}, {0x1010, 1, 1, 0}, {0x9010, 1, 2, 0}};
	static const struct tft_btrc_row late[] = {
		{0x1010, 2, 0, 0}, {0x7010, 2, 1, 0}, {0x7020, 2, 2, 0}, {0x2001, 2, 3, 0},
		{0x5010, 3, 0, 0}, {0x1010, 1, 1, 0}, {0x1010, 5, 0, 0}, {0x7010, 5, 1, 0},
		{0xb010, 5, 2, 0}, {0xb020, 5, 3, 0}, {0xb010, 6, 0, 0}};
	struct tft_head head = {.rank = -1,
				.world = -1,
				.host = "h",
				.exe = "/x/p",
				.command = "p",
				.boot_id = "b",
				.tfhook_version = "0",
				.job = "",
				.journal_path = "",
				.tick_hz = 1000000000,
				.fn = tfh_fn_table,
				.fn_count = TFH_FN_COUNT};
	struct tft_clock_triple clock = {1, 1000, 1000};
	struct tfh_rec rec = {.t_begin = 10, .t_end = 20, .fn = TFH_FN_cuInit, .kind = TFT_CALL};
	struct tft_batch batch = {&rec, 1, 1, 1, 0};
	struct tft_writer *w;

	assert_int_equal(tft_writer_create(path, NULL, &head, &w), 0);
	assert_int_equal(tft_write_clocks(w, &clock, 1), 0);
	assert_int_equal(tft_write_events(w, &batch, 1, 0), 0);
	put(w, TFT_BTRC, &tft_btrc, early, 3, 40);
	put(w, TFT_BTRC, &tft_btrc, late, 11, 60);
	put(w, TFT_MODS, &tft_mods, module, 6, 60);
	put_python(w);
	assert_int_equal(tft_writer_finish(w, true), 0);
}

static void look_at_python(struct tfh_run *run)
{
	struct tfh_model_line frame[8];

	assert_string_equal(tfh_run_site(run, 0, 11),
			    "train.py:42 step > torch/_tensor.py:89 Tensor.item");
	assert_int_equal(tfh_run_python(run, 0, 11, frame, 8), 3);
	assert_string_equal(frame[1].file, "/home/u/train.py");
	assert_int_equal(frame[1].line, 42);
	assert_true(frame[0].library && !frame[1].library && frame[2].library);
	assert_int_equal(tfh_run_python(run, 0, 11, frame, 1), 1);
	/* Machine code beside it is known, too. */
	assert_string_equal(tfh_run_site(run, 0, 12), "train.py:42 step");
	assert_string_equal(tfh_run_site(run, 0, 13), "data/__init__.py:7 make");
	assert_int_equal(tfh_run_python(run, 0, 14, frame, 8), 8);
	assert_string_equal(tfh_run_site(run, 0, 15), "queue.py:171 get");
	/* A function that was not kept is passed over. */
	assert_string_equal(tfh_run_site(run, 0, 16), "train.py:42 step");
	assert_string_equal(tfh_run_site(run, 0, 17), "");
	assert_int_equal(tfh_run_python(run, 0, 1, frame, 8), 0);
}

static void test_modules(void **state)
{
	(void)state;
	char dir[] = "/tmp/tfh-sites-XXXXXX", path[64];
	struct tfh_model_frame frame[8];
	struct tfh_run *run;
	struct tfh_err err;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/p.tft", dir);
	make(path);
	const char *paths[] = {path};
	assert_int_equal(tfh_run_open(paths, 1, &run, &err), 0);
	assert_int_equal(tfh_run_stack(run, 0, 1, frame, 8), 3);
	assert_string_equal(frame[1].module, "liba.so");
	assert_int_equal(frame[1].offset, 0x110);
	assert_string_equal(frame[1].function, "");
	assert_int_equal(tfh_run_stack(run, 0, 2, frame, 8), 4);
	assert_string_equal(frame[0].module, "libb.so");
	assert_string_equal(frame[3].module, "");
	assert_int_equal(tfh_run_stack(run, 0, 2, frame, 1), 1);
	assert_int_equal(tfh_run_stack(run, 0, 0, frame, 8), 0);
	assert_int_equal(tfh_run_stack(run, 0, 99, frame, 8), 0);
	assert_string_equal(tfh_run_site(run, 0, 1), "liba.so+0x110 < lib?c.so+0x10");
	assert_string_equal(tfh_run_site(run, 0, 2),
			    "libb.so+0x110 < Python < (generated code)+0x2001");
	assert_string_equal(tfh_run_site(run, 0, 3), "");
	/* How a program or thread was started tells nothing, unless there is nothing else. */
	assert_string_equal(tfh_run_site(run, 0, 5), "libb.so+0x110 < Python");
	assert_string_equal(tfh_run_site(run, 0, 6), "libc.so.6+0x10");
	assert_string_equal(tfh_run_site(run, 0, 4), "");
	assert_string_equal(tfh_run_site(run, 7, 1), "");
	assert_ptr_equal(tfh_run_site(run, 0, 2), tfh_run_site(run, 0, 2));
	look_at_python(run);
	tfh_run_close(run);
	unlink(path);
	rmdir(dir);
}

/* A framework is a library wherever it is: installed with `pip --target`, or in the source tree that it was built in. */
static void test_libraries(void **state)
{
	(void)state;
	assert_true(tfh_file_of_library("/opt/deps/tensorflow/python/eager/context.py"));
	assert_true(tfh_file_of_library("/home/u/pytorch/torch/nn/modules/linear.py"));
	assert_string_equal(tfh_short_file("/opt/deps/keras/src/models/model.py"),
			    "keras/src/models/model.py");
	assert_true(tfh_file_of_library("/opt/deps/numba/cuda/cudadrv/driver.py"));
	assert_true(
		tfh_file_of_library("<sqlalchemy generated _go() wrapper for orm.session.commit>"));
	assert_true(tfh_file_of_library("<eval_with_key>.3"));
	assert_true(tfh_file_of_library("/tmp/torchinductor_user/sn/csnfohpspodw.py"));
	assert_true(tfh_file_of_library("<frozen importlib._bootstrap>"));
	assert_false(tfh_file_of_library("<stdin>"));
	assert_false(tfh_file_of_library("<string>"));
	assert_false(tfh_file_of_library("<ipython-input-3-0a1b2c>"));
	assert_false(tfh_file_of_library("/home/u/torch/train.py"));
	assert_false(tfh_file_of_library("/home/u/numba/train.py"));
	assert_false(tfh_file_of_library("/home/u/tensorflow/examples/mnist.py"));
}

/* What AutoGraph makes of a function belongs to TensorFlow, which calls it; the place is the program's line. */
static void test_generated(void **state)
{
	struct tfh_model_line frame[] = {
		{"/tmp/__autograph_generated_fileab.py", "tf__step", 12, false},
		{"/v/tensorflow/python/eager/api.py", "call", 9, true},
		{"/job/train.py", "main", 58, false}};

	(void)state;
	tfh_own_generated(frame, 3);
	assert_int_equal(tfh_place_lead(frame, 3), 2);
	tfh_own_generated(frame, 1);
	frame[0].library = false;
	tfh_own_generated(frame, 1);
	assert_int_equal(frame[0].library, false);
}

/* Nor is a constructor that the standard library makes for the program (namedtuple), unless the whole program is a string. */
static void test_constructor(void **state)
{
	struct tfh_model_line made[] = {{"<string>", "<lambda>", 1, false},
					{"/job/train.py", "push", 21, false}},
			      given[] = {{"<string>", "step", 3, false},
					 {"<string>", "<module>", 9, false}};

	(void)state;
	tfh_own_generated(made, 2);
	assert_int_equal(tfh_place_lead(made, 2), 1);
	tfh_own_generated(given, 2);
	assert_int_equal(tfh_place_lead(given, 2), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modules), cmocka_unit_test(test_libraries),
		cmocka_unit_test(test_generated), cmocka_unit_test(test_constructor)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
