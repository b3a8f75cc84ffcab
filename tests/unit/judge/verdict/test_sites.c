/* The report names the call site that takes most of the time of a cause, copies by function, and
 * names none if no backtraces were recorded. The verdict's place is the line that makes those calls; a line that calls several of
 * the driver's functions for several callers only passes calls on. */
#include "format/sample_loops.h"
#include "judge/account/account.h"
#include "../devgen.h"

static const char *site(void *arg, uint32_t process, uint32_t stack)
{
	static const char *const text[] = {"", "rarely < main", "grow_buffer < train", "upload",
					   "make_batch < train"};

	(void)arg;
	assert_int_equal(process, 0);
	return stack >= 100 ? "other" : text[stack];
}

/* Steps that allocate and free for 6 ms: at place 2, at place 1 every tenth time, else anywhere. */
static struct tfh_result *job(bool stacks)
{
	struct dg *d = dg_new();
	struct tfh_result *r = NULL;
	struct tfh_err err = {0};
	uint32_t other = 100;

	for (int s = 0; s < 60; s++) {
		for (int k = 0; k < 3; k++) {
			struct tfh_event *ev =
				dg_call(d, 0, k ? TFH_FN_cuMemFree_v2 : TFH_FN_cuMemAlloc_v2, 2);
			ev->kind = TFT_ALLOC;
			if (stacks)
				ev->stack = k == 0 ? 2 : s % 10 == 0 ? 1 : other++;
		}
		dg_copy_blocking(d, 0, 1, TFH_DIR_H2D, 1 << 20, 0.5);
		if (stacks)
			d->g->ev[d->g->n - 1].stack = 3;
		for (int k = 0; k < 4; k++)
			dg_launch(d, 0, 1, 0.2);
		dg_sync(d, 0, 1);
	}
	struct tfh_feed *f = dg_feed(d);
	f->site = site;
	if (tfh_analyze_feed(f, &r, &err))
		print_error("%s\n", err.text);
	dg_free(d);
	assert_non_null(r);
	return r;
}

static void test_sites(void **state)
{
	(void)state;
	struct tfh_result *r = job(true);

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_ALLOC);
	assert_non_null(gen_says(r, "cuMemAlloc_v2 called from grow_buffer < train"));
	assert_int_equal(r->n_transfers, 1);
	assert_string_equal(r->transfers[0].where, "upload");
	tfh_result_free(r);
}

static void test_none(void **state)
{
	(void)state;
	struct tfh_result *r = job(false);

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_ALLOC);
	assert_null(gen_says(r, "called from"));
	assert_string_equal(r->transfers[0].where, "");
	tfh_result_free(r);
}

/* Stack 1: a copy, made by train.py:40 through a function of the program that makes every call; stack 2: a wait, through it, too. */
static const gen_stack calls[] = {
	[1] = {{"/home/u/device.py", "Device.call", 12, false},
	       {"/home/u/train.py", "send", 40, false}},
	[2] = {{"/home/u/device.py", "Device.call", 12, false},
	       {"/home/u/train.py", "finish", 50, false}},
};

/* The rest of a step: four launches and a wait at stack `wait`. */
static void launch_and_wait(struct dg *d, uint32_t wait)
{
	for (int k = 0; k < 4; k++)
		dg_launch(d, 0, 1, 0.3);
	dg_sync(d, 0, 1);
	d->g->ev[d->g->n - 1].stack = wait;
}

static struct tfh_result *judge_transfers(struct dg *d,
					  const char *(*site_of)(void *, uint32_t, uint32_t))
{
	struct tfh_feed *f = dg_feed(d);
	struct tfh_result *r = NULL;
	struct tfh_err err = {0};

	f->site = site_of;
	if (tfh_analyze_feed(f, &r, &err))
		print_error("%s\n", err.text);
	dg_free(d);
	assert_non_null(r);
	assert_int_equal(r->verdict.cls, TFH_CLASS_TRANSFER_BOUND);
	return r;
}

/* Steps of a blocking copy of 6 ms, before which the CPU clock was read at the same line, and a wait at that stack. */
static struct tfh_result *copies(uint32_t wait)
{
	struct dg *d = dg_new();

	for (int s = 0; s < 60; s++) {
		dg_code(d, 0, 0.3);
		struct tfh_event *ev = dg_call(d, 0, TFH_FN_NONE, 0);
		ev->kind = TFT_CPUTIME;
		ev->stack = 1;
		ev->w[0] = (uint64_t)gen_ns(s);
		dg_copy_blocking(d, 0, 1, TFH_DIR_H2D, 1 << 24, 6);
		d->g->ev[d->g->n - 1].stack = 1;
		launch_and_wait(d, wait);
	}
	GEN_STACKS(&d->g->feed, calls);
	return judge_transfers(d, site);
}

static void test_line_of_copies(void **state)
{
	(void)state;
	struct tfh_result *r = copies(0);

	assert_string_equal(r->found.line.function, "Device.call");
	assert_int_equal(r->found.line.line, 12);
	assert_int_equal(r->found.line.samples, 0);
	assert_non_null(gen_says(r, "called from device.py:12 Device.call"));
	tfh_result_free(r);
	r = copies(2);
	assert_string_equal(r->found.line.function, "send");
	assert_int_equal(r->found.line.line, 40);
	assert_non_null(gen_says(r, "called from train.py:40 send"));
	tfh_result_free(r);
	/* A line that copies and waits for the copy does so by itself. */
	r = copies(1);
	assert_string_equal(r->found.line.function, "Device.call");
	tfh_result_free(r);
}

/* Device.upload copies for two lines of train.py and, at stack 9, launches at a line far from the copy. */
#define UPLOAD "/home/u/device.py", "Device.upload", 35, false

static const gen_stack uploads[] = {
	[1] = {{UPLOAD}, {"/home/u/train.py", "Table.cuda", 28, false}},
	[2] = {{UPLOAD}, {"/home/u/train.py", "Net.forward", 43, false}},
	[3] = {{UPLOAD}, {"/usr/lib/net/module.py", "call", 7, true}},
	[9] = {{"/home/u/device.py", "Device.upload", 60, false},
	       {"/home/u/train.py", "Table.cuda", 28, false}},
	[10] = {{"/home/u/train.py", "Table.cuda", 30, false}},
};

/* Whether samples show a loop in Device.upload, the second function from outside. */
static bool looping;

static void look(struct dg *d)
{
	static struct tfh_packed_loops p;
	const struct tft_loop loop = {2, true, 1, 4, TFH_START_ITERATOR};

	p.bytes = (uint8_t)tft_loops_pack(&loop, 1, p.byte);
	gen_sample(d->g, 0, d->now[0] + 10 * US, TFT_STATE_RUNNING, 1, 0.02)->loops = &p;
	dg_code(d, 0, 20 * US);
}

/* Steps of two copies; a wait at stack `wait`. */
static struct tfh_result *uploaded(double first_ms, uint32_t second, double second_ms,
				   uint32_t wait)
{
	struct dg *d = dg_new();

	for (int s = 0; s < 60; s++) {
		if (looping)
			look(d);
		dg_copy_blocking(d, 0, 1, TFH_DIR_H2D, 1 << 24, first_ms);
		d->g->ev[d->g->n - 1].stack = 1;
		dg_copy_blocking(d, 0, 1, TFH_DIR_H2D, 1 << 22, second_ms);
		d->g->ev[d->g->n - 1].stack = second;
		launch_and_wait(d, wait);
	}
	GEN_STACKS(&d->g->feed, uploads);
	return judge_transfers(d, NULL);
}

/* A wrapper around the driver: the line is its caller's with most of the time. */
static void test_callers_of_a_wrapper(void **state)
{
	(void)state;
	struct tfh_result *r = uploaded(6, 2, 1, 0);

	assert_string_equal(r->found.line.function, "Table.cuda");
	assert_int_equal(r->found.line.line, 28);
	assert_int_equal(r->found.line.through.line, 35);
	assert_non_null(gen_says(
		r, "called from train.py:28 Table.cuda, through device.py:35 Device.upload"));
	tfh_result_free(r);
	r = uploaded(3, 2, 3, 0);
	assert_int_equal(r->found.line.line, 35);
	assert_int_equal(r->found.line.n_caller, 2);
	assert_non_null(gen_says(r, "called from device.py:35 Device.upload, from train.py:"));
	tfh_result_free(r);
	/* One caller, which goes on after it. */
	r = uploaded(6, 1, 1, 10);
	assert_int_equal(r->found.line.line, 28);
	assert_int_equal(r->found.line.through.line, 35);
	tfh_result_free(r);
	/* Only its loop calls the driver many times. */
	looping = true;
	r = uploaded(6, 1, 1, 10);
	assert_int_equal(r->found.line.line, 35);
	tfh_result_free(r);
	looping = false;
	/* One caller, which may be entered once; a function that does more elsewhere; one that a library calls. */
	const uint32_t not [][2] = {{1, 0}, {2, 9}, {3, 0}};
	for (size_t i = 0; i < sizeof(not ) / sizeof(*not ); i++) {
		r = uploaded(6, not [i][0], 1, not [i][1]);
		assert_int_equal(r->found.line.line, 35);
		assert_null(r->found.line.through.file);
		assert_int_equal(r->found.line.n_caller, 0);
		tfh_result_free(r);
	}
}

/* Steps of 40 small copies to the device, of which the first has a stack if it is given, and a fetch with a stack of its own. */
static struct tfh_result *small_copies(uint32_t sent)
{
	struct dg *d = dg_new();
	struct tfh_result *r = NULL;
	struct tfh_err err = {0};

	for (int s = 0; s < 60; s++) {
		for (int k = 0; k < 40; k++) {
			dg_copy_blocking(d, 0, 1, TFH_DIR_H2D, 1 << 10, 0.02);
			d->g->ev[d->g->n - 1].stack = k ? 0 : sent;
		}
		for (int k = 0; k < 4; k++)
			dg_launch(d, 0, 1, 0.05);
		dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, 1 << 12, 0.1);
		d->g->ev[d->g->n - 1].stack = 2;
	}
	struct tfh_feed *f = dg_feed(d);
	GEN_STACKS(f, calls);
	if (tfh_analyze_feed(f, &r, &err))
		print_error("%s\n", err.text);
	dg_free(d);
	assert_non_null(r);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_TRANSFER_SMALL_COPIES);
	return r;
}

/* The line is that of the copies which the verdict names, however little of their time has stacks; that of others is none. */
static void test_line_of_small_copies(void **state)
{
	(void)state;
	struct tfh_result *r = small_copies(0);

	assert_null(r->found.line.file);
	tfh_result_free(r);
	r = small_copies(1);
	assert_string_equal(r->found.line.function, "send");
	tfh_result_free(r);
}

/* Stack 1: residual_norm() of the program fetches, through a library; stack 2: main() launches; stack 3: make_graph() makes a graph;
 * stacks 4 and 5: residual_norm() fetches at other lines. */
static uint32_t fetch_line; /* 0: no debug information */
static bool in_three;
static uint32_t functions(void *arg, uint32_t process, uint32_t stack, struct tfh_model_line *frame,
			  uint32_t most)
{
	static const struct tfh_model_line library = {"libla.so", "dnrm2", 0, true},
					   of[] = {{"cfd", "residual_norm", 0, false},
						   {"cfd", "main", 0, false},
						   {"cfd", "make_graph", 0, false}};

	(void)arg;
	(void)process;
	if (!stack || most < 2)
		return 0;
	frame[0] = stack == 1 || stack > 3 ? library : of[stack - 1];
	frame[1] = of[stack > 3 ? 0 : stack - 1];
	if (fetch_line && frame[0].library)
		frame[1].line = fetch_line + stack;
	return 2;
}

/* Steps that launch and fetch a number, and whose thread hears of that 0.1 ms later. Or they capture them in a graph, which takes less time in the calls with
 * stacks than its launch. */
static struct tfh_result *program(bool graphs, bool python)
{
	struct dg *d = dg_new();
	struct tfh_result *r = NULL;
	struct tfh_err err = {0};

	for (int s = 0; s < 60; s++) {
		for (int k = 0; k < 40 && graphs; k++) {
			struct tfh_event *ev = dg_call(d, 0, TFH_FN_cuLaunchKernel, 10 * US);
			ev->w[0] = 1;
			ev->flags |= TFT_F_CAPTURED;
			ev->stack =
				2; /* they take most of the time, but a graph is made elsewhere */
		}
		if (graphs) {
			dg_call(d, 0, TFH_FN_cuGraphInstantiateWithFlags, 3 * US)->stack = 3;
			dg_graph(d, 0, 1, 40, 2 * US, DG_NEXT);
			d->g->ev[d->g->n - 1].stack = 2;
			dg_sync(d, 0, 1);
		}
		if (!graphs) {
			dg_launch(d, 0, 1, 0.05);
			dg_copy_blocking(d, 0, 1, TFH_DIR_D2H, 8, 0.001);
			d->g->ev[d->g->n - 1].stack = in_three && s % 3 ? 3 + s % 3 : 1;
			d->g->ev[d->g->n - 1].t1 += gen_ns(0.1);
			dg_code(d, 0, 0.1);
		}
	}
	struct tfh_feed *f = dg_feed(d);
	f->site = site;
	f->functions = functions;
	if (python)
		GEN_STACKS(f, calls);
	if (tfh_analyze_feed(f, &r, &err))
		print_error("%s\n", err.text);
	dg_free(d);
	assert_non_null(r);
	return r;
}

/* Without Python, the functions of the program that make the calls take the place of lines: those that wait in blocking copies, and those
 * that make graphs. */
static void test_functions(void **state)
{
	(void)state;
	struct tfh_result *r = program(false, false);

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_SYNC);
	assert_string_equal(r->found.line.function, "residual_norm");
	assert_int_equal(r->found.line.line, 0);
	assert_non_null(gen_says(r, "cuMemcpyDtoH_v2 called from residual_norm [cfd]"));
	tfh_result_free(r);
	r = program(true, false);
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LAUNCH);
	assert_string_equal(r->found.line.function, "make_graph");
	assert_non_null(gen_says(r, "make_graph [cfd]"));
	tfh_result_free(r);
	/* Lines of Python come first. */
	r = program(false, true);
	assert_string_equal(r->found.line.function, "Device.call");
	tfh_result_free(r);
}

/* With debug information it is a line of them; the function as a whole, if it fetches at several lines. */
static void test_lines_of_functions(void **state)
{
	(void)state;
	fetch_line = 11;
	struct tfh_result *r = program(false, false);

	assert_string_equal(r->found.line.function, "residual_norm");
	assert_int_equal(r->found.line.line, 12);
	tfh_result_free(r);
	in_three = true;
	r = program(false, false);
	assert_string_equal(r->found.line.function, "residual_norm");
	assert_int_equal(r->found.line.line, 0);
	tfh_result_free(r);
	in_three = false;
	fetch_line = 0;
}

/* Steps that wait for the device, and then run code of the program's for 3 ms. Stacks of the wait and of the first call after
 * the code, of each of three steps. */
struct pausing {
	uint32_t wait[3], end[3];
};

static struct tfh_result *pausing(const struct pausing *p)
{
	struct dg *d = dg_new();
	struct tfh_result *r = NULL;
	struct tfh_err err = {0};

	for (int s = 0; s < 60; s++) {
		dg_launch(d, 0, 1, 1);
		dg_sync(d, 0, 1);
		d->g->ev[d->g->n - 1].stack = p->wait[s % 3];
		dg_code(d, 0, 3);
		struct tfh_event *ev = dg_call(d, 0, TFH_FN_cuLaunchKernel, 0);
		ev->kind = TFT_CPUTIME;
		ev->w[0] = (uint64_t)ev->t1;
		ev->stack = p->end[s % 3];
	}
	struct tfh_feed *f = dg_feed(d);
	f->site = site;
	f->functions = functions;
	if (tfh_analyze_feed(f, &r, &err))
		print_error("%s\n", err.text);
	dg_free(d);
	assert_non_null(r);
	assert_int_equal(tfh_cause_part(r->verdict.cause), TFH_PART_HOST);
	return r;
}

static void says(const struct pausing *p, const char *line)
{
	struct tfh_result *r = pausing(p);

	assert_null(r->found.line.file);
	if (line)
		assert_non_null(gen_says(r, line));
	else
		assert_null(gen_says(r, "most of it"));
	tfh_result_free(r);
}

/* The calls around the pauses bound the place of what the program does in them: only those whose place is known, and only if
 * most of them are at that place. */
static void test_around(void **state)
{
	(void)state;
	says(&(struct pausing){{2, 2, 2}, {0, 0, 0}},
	     "most of it follows cuStreamSynchronize at grow_buffer < train");
	says(&(struct pausing){{0, 0, 0}, {3, 3, 3}},
	     "most of it ends with cuLaunchKernel at upload");
	says(&(struct pausing){{2, 2, 2}, {3, 3, 3}},
	     "most of it lies between cuStreamSynchronize at grow_buffer and cuLaunchKernel at upload");
	says(&(struct pausing){{4, 4, 4}, {2, 2, 2}},
	     "most of it lies between cuStreamSynchronize at make_batch and cuLaunchKernel at grow_buffer < train");
	says(&(struct pausing){{2, 2, 2}, {2, 2, 2}},
	     "most of it lies between cuStreamSynchronize and cuLaunchKernel at grow_buffer < train");
	says(&(struct pausing){{1, 2, 3}, {2, 2, 2}},
	     "most of it ends with cuLaunchKernel at grow_buffer < train");
	says(&(struct pausing){{0, 0, 0}, {0, 0, 0}}, NULL);
	says(&(struct pausing){{1, 2, 3}, {2, 3, 4}}, NULL);
}

static bool function_at(void *arg, uint32_t process, uint64_t address, struct tfh_model_line *out)
{
	(void)arg;
	(void)process;
	*out = (struct tfh_model_line){"audio", address == 0x1000 ? "code_block" : "count", 0,
				       false};
	return address < 0x3000;
}

/* Steps in which the device waits for two functions that the driver runs in the stream, the second at an address and for longer. */
static struct tfh_result *queued(uint64_t address)
{
	struct dg *d = dg_new();
	struct tfh_result *r = NULL;
	struct tfh_err err = {0};

	for (int s = 0; s < 60; s++) {
		dg_launch(d, 0, 1, 1);
		for (int k = 0; k < 2; k++) {
			double ms = k ? 2 : 0.2;
			dg_call(d, 0, TFH_FN_cuLaunchHostFunc, DG_CALL)->stream = 1;
			struct tfh_event *ev =
				gen_call(d->g, 2, TFH_FN_host_function, d->end[1], d->end[1] + ms);
			ev->stream = 1;
			ev->w[0] = k ? address : 0x2000;
			d->end[1] += ms;
		}
		dg_launch(d, 0, 1, 1);
		dg_sync(d, 0, 1);
	}
	struct tfh_feed *f = dg_feed(d);
	f->function_at = function_at;
	if (tfh_analyze_feed(f, &r, &err))
		print_error("%s\n", err.text);
	dg_free(d);
	assert_non_null(r);
	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_CALLBACK);
	return r;
}

/* The function with most of the time is the place; if it is unknown, a shorter one does not stand for it. */
static void test_queued_functions(void **state)
{
	(void)state;
	struct tfh_result *r = queued(0x1000);

	assert_string_equal(r->found.line.function, "code_block");
	assert_non_null(gen_says(r, "code_block [audio]"));
	tfh_result_free(r);
	r = queued(0x9000);
	assert_null(r->found.line.file);
	tfh_result_free(r);
}

/* As long as there are no more places than are kept, the time of each is exact. */
static void test_exact_counts(void **state)
{
	(void)state;
	struct tfh_site_use use[TFH_ACCOUNT_SITES] = {0};

	for (int i = 0; i < 100; i++) {
		struct tfh_event ev = {.stack = 1 + (uint32_t)(i % TFH_ACCOUNT_SITES),
				       .t1 = 10 + i};
		tfh_site_count(use, &ev);
	}
	for (int k = 0; k < TFH_ACCOUNT_SITES; k++) {
		int64_t ns = 0;
		for (int i = k; i < 100; i += TFH_ACCOUNT_SITES)
			ns += 10 + i;
		assert_int_equal(use[k].stack, k + 1);
		assert_int_equal(use[k].ns, ns);
	}
}

/* Prefetches of managed memory, which take 6 ms of a step, are made by one line. */
static void test_managed(void **state)
{
	(void)state;
	struct dg *d = dg_new();
	struct tfh_result *r = NULL;
	struct tfh_err err = {0};

	for (int s = 0; s < 60; s++) {
		dg_call(d, 0, TFH_FN_cuMemPrefetchAsync, 6)->stack = 1;
		for (int k = 0; k < 4; k++)
			dg_launch(d, 0, 1, 0.3);
		dg_sync(d, 0, 1);
	}
	struct tfh_feed *f = dg_feed(d);
	GEN_STACKS(f, calls);
	assert_int_equal(tfh_analyze_feed(f, &r, &err), 0);
	dg_free(d);
	gen_expect(r, TFH_CLASS_TRANSFER_BOUND, TFH_CAUSE_TRANSFER_MANAGED);
	assert_string_equal(r->found.line.file, "/home/u/device.py");
	assert_int_equal(r->found.line.line, 12);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact_counts),
		cmocka_unit_test(test_sites),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_managed),
		cmocka_unit_test(test_callers_of_a_wrapper),
		cmocka_unit_test(test_line_of_copies),
		cmocka_unit_test(test_line_of_small_copies),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_lines_of_functions),
		cmocka_unit_test(test_around),
		cmocka_unit_test(test_queued_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
